"""Tables of names: what the labels of a segmentation are called.

| table | known by |
|---|---|
| FreeSurfer's colour table, 3D Slicer's .ctbl | lines of a number, a name, and red, green and blue |
| ITK-SNAP's label description | lines of a number, six more, and a name in quotes |
| BIDS dseg.tsv, CSV, tables with semicolons | columns; the numbers are labels, the texts names |
| JSON | {"1": "grey"}, {"grey": 1}, ["background", "grey"], [{"index": 1, "name": "grey"}], or one of the first two under "labels", as in nnU-Net's dataset.json |
"""  # noqa: E501

import csv
import io
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from probdice.errors import FormatError, InputError
from probdice.files.meaning import beyond_one
from probdice.files.model import as_label, distinct_names, printable
from probdice.matching import listed
from probdice.segmentation import Label, Segmentation

__all__ = ["Names", "called", "named", "read_names"]

Names = str | os.PathLike[str] | Mapping[Any, str] | Sequence[str]

LARGEST = 1 << 24  # bytes; the longest colour tables have a hundred thousand
COLOURED = re.compile(r"(-?\d+)\s+(\S.*?)\s+\d+(?:\s+\d+){2,3}")  # FreeSurfer, Slicer
ITK_SNAP = re.compile(r'(\d+)(?:\s+[\d.]+){6}\s+"(.*)"')
NUMBERS = ("index", "label", "id", "value", "labelvalue", "number", "key", "no.", "no")
EXPECTED = (
    "expected FreeSurfer's colour table, ITK-SNAP's label description, a .tsv of BIDS, a .ctbl of "
    "3D Slicer, or CSV or JSON of labels and names"
)


def named(segmentation: Segmentation, names: Names) -> Segmentation:
    """The segmentation with names for its labels or regions.

    A table may name many labels that the image does not have, which then are left out; what the
    user names in so many words stays, as an empty region.
    """
    table = isinstance(names, str | os.PathLike)
    called = _mapping(names)
    prefix = f"{os.fspath(names)}: " if isinstance(names, str | os.PathLike) else ""
    try:
        if segmentation.crisp:
            return _named_labels(segmentation, called, table)
        if isinstance(names, Sequence) and not table:
            return _listed_regions(segmentation, names)
        return _named_regions(segmentation, called)
    except InputError as error:
        raise error.prefixed(prefix) if prefix else error from None


def called(segmentation: Segmentation, name: str) -> Segmentation:
    """The segmentation of one region, which has this name; the rest is background."""
    if not segmentation.crisp:
        if segmentation.reading != "foreground":
            raise InputError(
                f"holds {len(segmentation.regions)} regions, but {name!r} is the name of one"
            )
        return replace(segmentation, regions=("background", name))
    other = beyond_one(segmentation.array)
    if other is not None:
        raise InputError(
            f"holds the label {other}, but {name!r} is the name of one region; a mask has 0 and 1"
        )
    return replace(segmentation, names={0: "background", 1: name})


def read_names(path: str | os.PathLike[str]) -> dict[Label, str]:
    """The names in a table, by label.

    Parameters
    ----------
    path : path
        A colour table of FreeSurfer or 3D Slicer, ITK-SNAP's label description, a .tsv of BIDS,
        CSV or JSON.

    Examples
    --------
    >>> import os, tempfile
    >>> from probdice.files.names import read_names
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "dseg.tsv")
    ...     with open(file, "w") as stream:
    ...         _ = stream.write("index\\tname\\n1\\tgrey matter\\n2\\twhite matter\\n")
    ...     read_names(file)
    {1: 'grey matter', 2: 'white matter'}
    """
    file = Path(path)
    try:
        with file.open("rb") as stream:
            content = stream.read(LARGEST + 1)
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror or error}") from error
    try:
        names = _parsed(content)
    except FormatError as error:
        raise error.prefixed(f"{path}: ") from None
    return {label: printable(name) for label, name in names.items()}


def _parsed(content: bytes) -> dict[Label, str]:
    if len(content) > LARGEST or b"\0" in content:
        raise FormatError(f"is no table of names; {EXPECTED}")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    if text.lstrip().startswith(("{", "[")):
        return _json(text)
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    for pattern in (ITK_SNAP, COLOURED):
        rows = [pattern.fullmatch(line) for line in lines]
        if rows and all(rows):
            names: dict[Label, str] = {int(row[1]): row[2] for row in rows if row}
            return {label: name for label, name in names.items() if name != "(none)"}
    return _columns(text)


def _columns(text: str) -> dict[Label, str]:
    """A table with a column of labels and one of names."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not lines:
        raise FormatError(f"is empty; {EXPECTED}")
    separator = max("\t;,", key=lines[0].count)
    rows = [
        [cell.strip() for cell in row]
        for row in csv.reader(io.StringIO("\n".join(lines)), delimiter=separator)
    ]
    width = min(len(row) for row in rows)
    if width < 2:
        raise FormatError(f"is no table of names: it starts with {lines[0][:60]!r}; {EXPECTED}")
    header = [cell.lower() for cell in rows[0]]
    body = rows[1:] if _is_header(rows) else rows
    whole = [k for k in range(width) if body and all(_is_whole(row[k]) for row in body)]
    labels = next((k for name in NUMBERS for k in whole if header[k] == name), None)
    if labels is None:
        labels = whole[0] if whole else 0
    others = [k for k in range(width) if k != labels and k not in whole]
    if not others:
        raise FormatError(f"has no column of names: it starts with {lines[0][:60]!r}; {EXPECTED}")
    text_column = next((k for k in others if header[k] == "name"), None)
    if text_column is None:
        text_column = next((k for k in others if "name" in header[k]), others[0])
    return {as_label(row[labels]): row[text_column] for row in body}


def _is_header(rows: list[list[str]]) -> bool:
    """Whether the first row has a text where all others have a whole number, or names columns."""
    first, body = rows[0], rows[1:]
    if any(cell.lower() in ("name", "label", "index") for cell in first):
        return True
    return any(
        not _is_whole(cell) and body and all(len(row) > k and _is_whole(row[k]) for row in body)
        for k, cell in enumerate(first)
    )


def _json(text: str) -> dict[Label, str]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"is not JSON: {error}") from None
    if isinstance(content, dict) and isinstance(content.get("labels"), dict | list):
        content = content["labels"]
    if isinstance(content, list) and content and all(isinstance(x, dict) for x in content):
        content = dict(_entry(item) for item in content)
    elif isinstance(content, list):
        content = dict(enumerate(content))
    if not isinstance(content, dict) or not content:
        raise FormatError(f"holds no names; {EXPECTED}")
    if all(isinstance(value, int) and not isinstance(value, bool) for value in content.values()):
        content = {label: name for name, label in content.items()}
    for label, name in content.items():
        if not isinstance(name, str):
            raise FormatError(f"{label!r} must have a name, found {name!r}; {EXPECTED}")
    return {as_label(str(label)): name for label, name in content.items()}


def _entry(item: Mapping[str, Any]) -> tuple[Any, Any]:
    """A label and its name in a list of objects."""
    lower = {key.lower(): value for key, value in item.items()}
    label = next((lower[key] for key in NUMBERS if isinstance(lower.get(key), int)), None)
    name = next((lower[key] for key in ("name", "label") if isinstance(lower.get(key), str)), None)
    if label is None or name is None:
        raise FormatError(f"has an entry without a label or a name: {dict(item)!r}; {EXPECTED}")
    return label, name


def _mapping(names: Names) -> dict[Label, str]:
    if isinstance(names, str | os.PathLike):
        return read_names(names)
    if isinstance(names, Mapping):
        return {
            as_label(label) if isinstance(label, str) else label: str(name)
            for label, name in names.items()
        }
    if not isinstance(names, Sequence):
        raise InputError(
            f"names must be a mapping of labels to names, a list of names, or the path of a "
            f"table, found {names!r}"
        )
    return dict(enumerate(str(name) for name in names))


def _named_labels(
    segmentation: Segmentation, called: Mapping[Label, str], table: bool
) -> Segmentation:
    if not table and (words := [label for label in called if not isinstance(label, int)]):
        raise InputError(f"names must be those of whole numbers, found {listed(words)}")
    present = _labels_in(segmentation)
    known = [label for label in called if label in present]
    if not known:
        raise _none(called, sorted(present), "labels")
    chosen = {int(label): called[label] for label in (known if table else called)}
    names = {**segmentation.names, **(distinct_names(chosen) if table else chosen)}
    return replace(segmentation, names=names)


def _named_regions(segmentation: Segmentation, called: Mapping[Label, str]) -> Segmentation:
    names = {str(label): name for label, name in called.items()}
    regions = [names.get(str(region), region) for region in segmentation.regions]
    if not any(str(region) in names for region in segmentation.regions):
        raise _none(called, segmentation.regions, "regions")
    return replace(segmentation, regions=tuple(regions))


def _listed_regions(segmentation: Segmentation, names: Sequence[str]) -> Segmentation:
    added = segmentation.regions[-1:] if segmentation.reading == "background" else ()
    count = len(segmentation.regions) - len(added)
    if len(names) != count:
        raise InputError(
            f"names must be a list of {count} names, one a region, found {len(names)}: "
            f"{listed(names)}"
        )
    return replace(segmentation, regions=(*map(str, names), *added))


def _none(called: Mapping[Label, str], labels: Sequence[Label], what: str) -> InputError:
    entries = [f"{label}={name}" for label, name in called.items()]
    return InputError(
        f"names none of the {what}: the image has {listed(labels)}, and the names are for "
        f"{listed(entries)}; do the two belong together?"
    )


def _labels_in(segmentation: Segmentation) -> set[int]:
    """The labels of a label map, by a pass over its pixels."""
    from probdice.engine.blocks import Blocks, Crisp

    blocks = Blocks(segmentation)
    labels: set[int] = set()
    for block in blocks.blocks:
        side = blocks.ready(block).sides[0]
        assert isinstance(side, Crisp)
        labels.update(int(label) for label in side.labels.tolist())
    return labels | set(segmentation.ignore)


def _is_whole(text: str) -> bool:
    return text.lstrip("-").isdecimal()
