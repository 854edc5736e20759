"""Tables with the names and colours of labels.

| table | recognised by |
|---|---|
| FreeSurfer colour table, 3D Slicer .ctbl | lines of a number, a name, and red, green and blue |
| ITK-SNAP label description | lines of seven numbers and a name in quotes |
| FSLeyes .lut | lines of a number, red, green and blue from 0 to 1, and a name |
| FSL atlas .xml | an element called atlas with elements called label |
| BIDS dseg.tsv, CSV, table with semicolons | a column of whole numbers (labels), a column of text (names) and, optionally, a column called color or colour (colours such as #0072B2) or columns of red, green and blue |
| JSON | {"1": "grey"}, {"grey": 1}, ["background", "grey"], [{"index": 1, "name": "grey", "color": "#808080"}], or one of these under "labels", as in nnU-Net's dataset.json |
"""  # noqa: E501

import csv
import io
import json
import os
import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.data.lazy_arrays import blocks
from probdice.data.segmentation import Segmentation
from probdice.errors import FormatError, InputError, Option
from probdice.files.fsl_tables import is_atlas, parse_atlas, parse_lut
from probdice.files.interpretation import beyond_one
from probdice.files.model import Entry, as_colour, as_label
from probdice.method.region_labels import COLOUR, Label, listed
from probdice.text.escaping import printable

__all__ = [
    "NamesInput",
    "labels_in",
    "read_names",
    "read_unions",
    "with_absent_labels",
    "with_names",
    "with_region_name",
]

SHORT_RANGE = 2**20  # largest range of labels whose lookup table fits in the cache

NamesInput = str | os.PathLike[str] | Mapping[Any, str] | Sequence[str]

MAX_TABLE_BYTES = 1 << 24  # largest table in bytes; the largest known table has about 100,000 bytes
TRIPLE = r"\s+(?P<red>\d+)\s+(?P<green>\d+)\s+(?P<blue>\d+)"
FREESURFER = re.compile(r"(?P<label>-?\d+)\s+(?P<name>\S.*?)" + TRIPLE + r"(?:\s+\d+)?")  # Slicer
ITK_SNAP = re.compile(r"(?P<label>\d+)" + TRIPLE + r'(?:\s+[\d.]+){3}\s+"(?P<name>.*)"')
COLOURS = ("color", "colour")
TRIPLES = (("color_r", "color_g", "color_b"), ("red", "green", "blue"), ("r", "g", "b"))
NUMBERS = ("index", "label", "id", "value", "labelvalue", "number", "key", "no.", "no")
EXPECTED = (
    "expected a FreeSurfer colour table, an ITK-SNAP label description, a BIDS .tsv, a 3D Slicer "
    ".ctbl, an FSL .lut or atlas .xml, or CSV or JSON with labels and names"
)


def with_names(
    segmentation: Segmentation, names: NamesInput, *, required: bool = True
) -> Segmentation:
    """Add names to the labels or regions of a segmentation.

    If the names are from a table, labels that do not occur in a label map are ignored. If the names
    are from a mapping or a list, these labels become empty regions. For a label map, an error is
    raised if none of its labels has a name, unless `required` is False.
    """
    table = isinstance(names, str | os.PathLike)
    entries = _entries(names, channels=not segmentation.crisp)
    try:
        if segmentation.crisp:
            return _named_labels(segmentation, entries, table, required)
        if isinstance(names, Sequence) and not table:
            return _listed_regions(segmentation, names)
        return _named_regions(segmentation, entries)
    except InputError as error:
        raise error.prefixed(f"{names}: ") if table else error from None


def with_absent_labels(
    segmentation: Segmentation, table: str | os.PathLike[str], names: Container[str]
) -> Segmentation:
    """Add the labels that a label map lacks and that have one of these names in a table.

    `with_names` ignores these labels. A name that several labels of the table share is left out.
    """
    entries = read_names(table)
    counts = Counter(entry.name for entry in entries.values())
    absent = {
        label: entry.name
        for label, entry in entries.items()
        if isinstance(label, int) and entry.name in names and counts[entry.name] == 1
    }
    return replace(segmentation, names={**absent, **segmentation.names})


def with_region_name(segmentation: Segmentation, name: str) -> Segmentation:
    """Name the only region of a segmentation. The other pixels are background."""
    if not segmentation.crisp:
        if segmentation.reading != "foreground":
            raise InputError(
                f"contains {len(segmentation.regions)} regions, but {name!r} names only one. To "
                f"name several, use ",
                Option("names", "FILE", python="names=…"),
            )
        return replace(segmentation, names={0: "background", 1: name})
    other = beyond_one(segmentation.array)
    if other is not None:
        raise InputError(
            f"contains label {other}, but {name!r} names one region: expected a mask of 0 and 1"
        )
    return replace(segmentation, names={0: "background", 1: name})


def read_names(path: str | os.PathLike[str], *, channels: bool = False) -> dict[Label, Entry]:
    """Read the names and, if there are any, the colours of labels from a table.

    Parameters
    ----------
    path : path
        FreeSurfer or 3D Slicer colour table, ITK-SNAP label description, BIDS .tsv, FSL .lut or
        atlas .xml, CSV or JSON.
    channels : bool, optional
        Whether the regions are channels of probabilities. In a probabilistic FSL atlas, channels
        are numbered from 0, and the labels of the label map are numbered from 1.

    Examples
    --------
    >>> import os, tempfile
    >>> from probdice.files.name_tables import read_names
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "dseg.tsv")
    ...     with open(file, "w") as stream:
    ...         _ = stream.write("index\\tname\\tcolor\\n1\\tgrey matter\\t#808080\\n")
    ...     read_names(file)
    {1: Entry(name='grey matter', colour='#808080')}
    """
    file = Path(path)
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_TABLE_BYTES + 1)
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror or error}") from error
    try:
        names = _parsed(content, channels)
    except FormatError as error:
        raise error.prefixed(f"{path}: ") from None
    return {k: Entry(printable(name), colour) for k, (name, colour) in names.items()}


def read_unions(path: str | os.PathLike[str]) -> dict[str, tuple[Label, ...]]:
    """Read the derived regions of nnU-Net's dataset.json, which are lists of labels.

    Single labels other than 0 also become derived regions.

    Examples
    --------
    >>> import os, tempfile
    >>> from probdice.files.name_tables import read_unions
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "dataset.json")
    ...     with open(file, "w") as stream:
    ...         _ = stream.write('{"labels": {"background": 0, "whole": [1, 2], "core": 2}}')
    ...     read_unions(file)
    {'whole': (1, 2), 'core': (2,)}
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: is not valid JSON: {error}") from None
    labels = content.get("labels") if isinstance(content, dict) else None
    lists = {
        str(name): tuple(value) if isinstance(value, list) else (value,)
        for name, value in (labels.items() if isinstance(labels, dict) else ())
        if value != 0
    }
    whole = all(type(label) is int for members in lists.values() for label in members)
    if not whole or not any(len(members) > 1 for members in lists.values()):
        raise FormatError(
            f'{path}: has no derived regions; expected "labels" with lists of labels, such as '
            f'{{"whole tumour": [1, 2, 3], "core": 3}}'
        )
    return lists


def _parsed(content: bytes, channels: bool) -> dict[Label, Entry]:
    if len(content) > MAX_TABLE_BYTES or b"\0" in content:
        raise FormatError(f"not a table of names; {EXPECTED}")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    if text.lstrip().startswith(("{", "[")):
        return _json(text)
    if is_atlas(text):
        return parse_atlas(text, channels=channels)
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    for pattern in (ITK_SNAP, FREESURFER):
        rows = [row for row in map(pattern.fullmatch, lines) if row]
        if rows and len(rows) == len(lines):
            return _distinct_names(
                (
                    int(row["label"]),
                    Entry(row["name"], as_colour(row.group("red", "green", "blue"), 255)),
                )
                for row in rows
                if row["name"] != "(none)"
            )
    return parse_lut(lines) or _columns(text)


def _distinct_names(rows: Iterable[tuple[Label, Entry]]) -> dict[Label, Entry]:
    """Return a mapping from labels to entries. Raise an error if a label has different names."""
    entries: dict[Label, Entry] = {}
    for label, entry in rows:
        earlier = entries.setdefault(label, entry)
        if earlier.name != entry.name:
            raise FormatError(
                f"label {label} has two names, {printable(earlier.name)!r} and "
                f"{printable(entry.name)!r}, so its name is ambiguous. Delete one of them."
            )
    return entries


def _columns(text: str) -> dict[Label, Entry]:
    """Parse a table with columns of labels and names and, optionally, columns of colours."""
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
        raise FormatError(f"not a table of names: it starts with {lines[0][:60]!r}; {EXPECTED}")
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
    colour_columns = [k for k in others if header[k] in COLOURS][:1]
    for triple in TRIPLES:
        if set(triple) <= set(header[:width]):
            colour_columns = [header.index(name) for name in triple]
    return _distinct_names(
        (
            _label(row[labels]),
            Entry(row[text_column], _colour([row[k] for k in colour_columns])),
        )
        for row in body
    )


def _is_header(rows: list[list[str]]) -> bool:
    """Return whether the first row is a header.

    A header has text above a column of whole numbers, or contains a known column name.
    """
    first, body = rows[0], rows[1:]
    if any(cell.lower() in ("name", "label", "index") for cell in first):
        return True
    return any(
        not _is_whole(cell) and body and all(len(row) > k and _is_whole(row[k]) for row in body)
        for k, cell in enumerate(first)
    )


def _json(text: str) -> dict[Label, Entry]:
    try:
        content = json.loads(text, object_pairs_hook=_unrepeated)
    except FormatError:
        raise
    except (ValueError, RecursionError) as error:
        raise FormatError(f"is not valid JSON: {error}") from None
    if isinstance(content, dict) and isinstance(content.get("labels"), dict | list):
        content = content["labels"]
    if isinstance(content, list) and content and all(isinstance(x, dict) for x in content):
        return _distinct_names(_entry(item) for item in content)
    elif isinstance(content, list):
        content = dict(enumerate(content))
    if not isinstance(content, dict) or not content:
        raise FormatError(f"contains no names; {EXPECTED}")
    pairs = [(str(label), name) for label, name in content.items()]
    whole = [(str(label), name) for name, label in content.items() if type(label) is int]
    if whole and all(type(label) is int or isinstance(label, list) for label in content.values()):
        pairs = whole  # lists are derived regions
    for label, name in pairs:
        if not isinstance(name, str):
            raise FormatError(f"the name of {label!r} must be text, found {name!r}; {EXPECTED}")
    return _distinct_names((_label(label), Entry(name)) for label, name in pairs)


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Create a JSON object from its pairs. Raise an error if a key has different values."""
    values: dict[str, Any] = {}
    for key, value in pairs:
        if values.setdefault(key, value) != value:
            raise FormatError(
                f"key {printable(key)!r} has several values, so its meaning is ambiguous. Delete "
                f"all but one of them."
            )
    return values


def _entry(item: Mapping[str, Any]) -> tuple[int, Entry]:
    """Return the label, name and colour of one JSON object."""
    lower = {key.lower(): value for key, value in item.items()}
    label = next((lower[key] for key in NUMBERS if isinstance(lower.get(key), int)), None)
    name = next((lower[key] for key in ("name", "label") if isinstance(lower.get(key), str)), None)
    if label is None or name is None:
        raise FormatError(f"has an entry without a label or a name: {dict(item)!r}; {EXPECTED}")
    colour: Any = next((lower[key] for key in COLOURS if key in lower), None)
    return label, Entry(name, _colour(colour if isinstance(colour, list) else [colour]))


def _colour(parts: Sequence[Any]) -> str | None:
    """Parse a colour: "#rrggbb" or three numbers from 0 to 255. Return None for other values."""
    if len(parts) == 1:
        return str(parts[0]).upper() if COLOUR.fullmatch(str(parts[0])) else None
    return as_colour(parts[:3], 255)


def _entries(names: NamesInput, *, channels: bool) -> dict[Label, Entry]:
    if isinstance(names, str | os.PathLike):
        return read_names(names, channels=channels)
    if isinstance(names, Mapping):
        return {
            _label(label) if isinstance(label, str) else label: Entry(str(name))
            for label, name in names.items()
        }
    if not isinstance(names, Sequence):
        raise InputError(
            f"names must be a mapping from labels to names, a list of names, or the path of a "
            f"table, found {names!r}"
        )
    return {label: Entry(str(name)) for label, name in enumerate(names)}


def _named_labels(
    segmentation: Segmentation, entries: Mapping[Label, Entry], table: bool, required: bool
) -> Segmentation:
    if not table and (words := [label for label in entries if not isinstance(label, int)]):
        raise InputError(f"the keys of names must be whole numbers, found {listed(words)}")
    present = labels_in(segmentation)
    labels_with_entry = [label for label in entries if label in present]
    if not labels_with_entry and required:
        raise _none(entries, sorted(present), "labels")
    chosen = {
        int(label): entries[label].name for label in (labels_with_entry if table else entries)
    }
    names = {**segmentation.names, **chosen}
    colours = {
        int(label): colour for label in labels_with_entry if (colour := entries[label].colour)
    }
    return replace(segmentation, names=names, colours={**segmentation.colours, **colours})


def _named_regions(segmentation: Segmentation, entries: Mapping[Label, Entry]) -> Segmentation:
    by_text = {str(label): entry for label, entry in entries.items()}
    labels, names = list(segmentation.labels), dict(segmentation.names)
    colours = dict(segmentation.colours)
    has_entry = False
    for k, region in enumerate(segmentation.regions):
        label = region if labels[k] is None else labels[k]
        entry = by_text.get(str(label)) or by_text.get(str(region))
        if entry is None:
            continue
        has_entry, names[k] = True, entry.name
        if isinstance(label, int):  # a channel without a label gets its index as its label
            labels[k] = label
        if entry.colour:
            colours[k] = entry.colour
    if not has_entry:
        raise _none(entries, segmentation.regions, "regions")
    return replace(segmentation, labels=tuple(labels), names=names, colours=colours)


def _listed_regions(segmentation: Segmentation, names: Sequence[str]) -> Segmentation:
    count = len(segmentation.regions) - (segmentation.reading == "background")
    if len(names) != count:
        raise InputError(
            f"names must contain {count} names, one per region, found {len(names)}: {listed(names)}"
        )
    listed_names = {k: str(name) for k, name in enumerate(names)}
    return replace(segmentation, names={**segmentation.names, **listed_names})


def _none(entries: Mapping[Label, Entry], labels: Sequence[Label], what: str) -> InputError:
    names = [f"{label}={entry.name}" for label, entry in entries.items()]
    return InputError(
        f"the names match none of the {what}: the image has {listed(labels)}, but the names are "
        f"{listed(names)}. Check that the names belong to this image."
    )


def labels_in(segmentation: Segmentation) -> set[int]:
    """Return the labels of a label map, including ignored labels."""
    labels: set[int] = set(segmentation.ignore)
    for block in blocks(segmentation.array):
        values = block.reshape(-1)
        if values.dtype.kind in "bf":
            values = values[np.isfinite(values)].astype(np.int64)
        if values.size:
            labels.update(_distinct(values))
    return labels


def _distinct(values: NDArray[Any]) -> list[int]:
    """Return the distinct values. If they span a short range, a lookup table replaces sorting."""
    lowest, highest = values.min(), values.max()
    if int(highest) - int(lowest) >= SHORT_RANGE:
        return [int(value) for value in np.unique(values).tolist()]
    seen = np.zeros(int(highest) - int(lowest) + 1, np.bool_)
    seen[(values - lowest).astype(np.intp)] = True
    return [int(lowest) + int(offset) for offset in np.flatnonzero(seen).tolist()]


def _label(text: str) -> Label:
    """Convert text to an integer label if it is a whole number, which may be negative."""
    label = as_label(text.removeprefix("-"))
    return -label if text.startswith("-") and isinstance(label, int) else as_label(text)


def _is_whole(text: str) -> bool:
    return text.lstrip("-").isdecimal()
