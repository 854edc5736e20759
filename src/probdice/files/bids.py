"""File names of BIDS derivatives, and the tables of label names that belong to them.

A name such as ``sub-01_ses-2_space-T1w_dseg.nii.gz`` consists of entities, a suffix (dseg) and an
extension. A table ``…_dseg.tsv`` in the same folder, or in a folder above it, names the labels of a
``dseg`` file. Every entity of the table must also be an entity of the file.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["BidsName", "label_table"]

LABELS = "dseg"  # suffix of label maps and of tables of label names


@dataclass(frozen=True)
class BidsName:
    """The entities, the suffix and the extension of a BIDS file name.

    Attributes
    ----------
    entities : tuple of (str, str)
        Keys and values, in the order of the file name.
    suffix : str
        The last part before the extension, such as "dseg" or "probseg".
    extension : str
        The rest of the name, starting with the first dot.
    """

    entities: tuple[tuple[str, str], ...]
    suffix: str
    extension: str

    @classmethod
    def of(cls, name: str) -> "BidsName | None":
        """Split a name into its parts, or return None if the name does not follow BIDS.

        Examples
        --------
        >>> from probdice.files.bids import BidsName
        >>> BidsName.of("sub-01_label-GM_probseg.nii.gz")
        BidsName(entities=(('sub', '01'), ('label', 'GM')), suffix='probseg', extension='.nii.gz')
        """
        stem, dot, extension = name.partition(".")
        *pairs, suffix = stem.split("_")
        entities = tuple(pair.partition("-")[::2] for pair in pairs)
        keys = [key for key, _ in entities]
        if not suffix.isalnum() or not all(key.isalnum() and value for key, value in entities):
            return None
        return cls(entities, suffix, dot + extension) if len(set(keys)) == len(keys) else None

    def value(self, key: str) -> str:
        """Return the value of an entity, or "" if the name does not contain the entity."""
        return dict(self.entities).get(key, "")


def label_table(path: str | os.PathLike[str]) -> Path | None:
    """Return the table with the label names of a file, or None if there is no table.

    The matching table in the nearest folder is used. If this folder contains several matching
    tables, the table that shares the most entities with the file is used.
    """
    file = Path(path)
    file_name = BidsName.of(file.name)
    if file_name is None or file_name.suffix != LABELS or not file_name.value("sub"):
        return None
    for folder in _folders(file, f"sub-{file_name.value('sub')}"):
        tables = {
            table: len(name.entities)
            for table in sorted(folder.glob(f"*{LABELS}.tsv"))
            if (name := BidsName.of(table.name)) is not None
            and name.suffix == LABELS
            and set(name.entities) <= set(file_name.entities)
        }
        if tables:
            return max(tables, key=lambda table: tables[table])
    return None


def _folders(file: Path, subject: str) -> Iterator[Path]:
    """Yield the folder of a file and its parents, up to the parent of the subject's folder.

    If the file is not in a subject's folder, yield only the folder of the file.
    """
    above = list(file.absolute().parents)
    tops = [k for k, folder in enumerate(above) if folder.name == subject]
    yield from above[: max(tops, default=-1) + 2]
