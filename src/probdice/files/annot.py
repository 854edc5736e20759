"""Read and write FreeSurfer annotations (.annot): one label per vertex of a hemisphere.

A file stores a colour per vertex, and a table of colours and names. The label of a vertex is the
row number of its colour in the table, or −1 if the vertex has no colour.

Files are written with nibabel, but read by this module. The reader of nibabel 5.4 has three errors:
it returns a neighbouring label for a colour that the table does not contain, it shifts names if the
table skips a number, and it allocates memory based on unchecked lengths.
"""

import struct
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.data.vertex_space import VertexSpace
from probdice.errors import FormatError, InputError
from probdice.files.corrupt import check_memory, check_size, corrupt
from probdice.files.model import Format, Image, Payload, Source, as_colour
from probdice.files.surface_maps import (
    LabelRow,
    names_and_colours,
    only_structure,
    rows_to_write,
    structure_of_file,
)

__all__ = ["ANNOT"]

UNLABELLED = -1
MISSING_LABEL = -2  # marks a vertex that the file does not list; row numbers are not negative
BLOCK = 1 << 16  # number of vertices that are converted together
MAX_LABELS = 1 << 16  # largest number of rows that `write` accepts
VERSION_2 = -2  # marks version 2 of the table, which stores −2 in place of the number of rows


def _recognises(source: Source) -> bool:
    return source.name.endswith(".annot") and not source.gzipped


def _read(source: Source) -> Image:
    stored = source.path.stat().st_size
    check_memory(stored, (stored // 8,), source.max_bytes)
    content = _Bytes(memoryview(source.path.read_bytes()))
    count = content.integer()
    if count < 1:
        raise corrupt(f"its header declares {count} vertices, expected at least 1")
    check_size(4 + 8 * count, stored, (count,))
    pairs = np.frombuffer(content.take(8 * count), ">i4").reshape(count, 2)
    rows = _table(content)
    labels = _labels(pairs, rows)
    names, shades = names_and_colours([entry for entry, _ in rows])
    if labels.min() == UNLABELLED:
        names[UNLABELLED] = "unlabelled"
    return Image(
        labels,
        kind="labels",
        label_names=names,
        colours=shades,
        vertices=VertexSpace.of_surface(count, structure_of_file(source.path.name)),
    )


def _write(path: Path, payload: Payload) -> None:
    freesurfer = import_module("nibabel.freesurfer.io")
    if not payload.labels:
        raise InputError(
            ".annot stores labels, found probabilities or a map. Write .func.gii or .dscalar.nii."
        )
    only_structure(payload, ".annot")
    entries = {entry.label: entry for entry in rows_to_write(payload)}
    entries.pop(UNLABELLED, None)
    lowest, highest = min(entries, default=0), max(entries, default=0)
    if lowest < 0 or highest >= MAX_LABELS:
        raise InputError(
            f".annot stores labels from −1 to {MAX_LABELS - 1}, found {lowest} to {highest}. Write "
            f".label.gii."
        )
    rows = [entries.get(k, LabelRow(k, str(k))) for k in range(highest + 1)]
    table = np.zeros((len(rows), 4), np.int64)
    table[:, :3] = _distinct([row.colour for row in rows])
    names = [row.name for row in rows]
    freesurfer.write_annot(str(path), payload.array.astype(np.int64), table, names)


ANNOT = Format(
    "FreeSurfer annotation",
    (".annot",),
    _recognises,
    _read,
    writes=(".annot",),
    write=_write,
    surfaces=True,
)


class _Bytes:
    """The bytes of a file, read in order from the start."""

    def __init__(self, content: memoryview) -> None:
        self.content, self.position = content, 0

    def take(self, length: int) -> memoryview:
        end = self.position + length
        if length < 0 or end > len(self.content):
            raise corrupt(
                f"expected {length} bytes at byte {self.position}, but the file has "
                f"{len(self.content)} bytes"
            )
        part = self.content[self.position : end]
        self.position = end
        return part

    def integer(self) -> int:
        return int(struct.unpack(">i", self.take(4))[0])

    def text(self) -> str:
        return bytes(self.take(self.integer())).partition(b"\0")[0].decode("utf-8", "replace")


def _table(content: _Bytes) -> list[tuple[LabelRow, int]]:
    """Return the rows of the colour table, each with the number that encodes its colour."""
    if content.position == len(content.content) or not content.integer():
        raise FormatError(
            "has no colour table, so the labels of its vertices are unknown. Write the file again "
            "with a colour table."
        )
    count = version = content.integer()
    if count <= 0:
        if version != VERSION_2:
            raise corrupt(f"its colour table has version {-version}, expected 2")
        content.integer()  # the largest row number
    content.text()  # the file from which the table was read
    if version == VERSION_2:
        count = content.integer()
    rows: dict[int, tuple[LabelRow, int]] = {}
    for k in range(count):
        number = content.integer() if version == VERSION_2 else k
        name = content.text()
        red, green, blue, _ = (content.integer() for _ in range(4))
        if number < 0 or number in rows or not all(0 <= c <= 255 for c in (red, green, blue)):
            raise corrupt(f"row {k} of its colour table is invalid")
        entry = LabelRow(number, name, as_colour((red, green, blue), 255) or "")
        rows[number] = entry, red | green << 8 | blue << 16
    return list(rows.values())


def _labels(pairs: NDArray[Any], rows: list[tuple[LabelRow, int]]) -> NDArray[np.int32]:
    """Return the label of each vertex.

    `pairs` contains each vertex and the number that encodes its colour. If several rows of the
    table have the same colour, the first row is used. Pairs are converted in blocks to save memory.
    """
    numbers = {0: UNLABELLED} | {colour: entry.label for entry, colour in reversed(rows)}
    colours_in_table = np.array(sorted(numbers))
    labels_in_table = np.array([numbers[colour] for colour in colours_in_table.tolist()], np.int32)
    count = len(pairs)
    labels = np.full(count, MISSING_LABEL, np.int32)
    for start in range(0, count, BLOCK):
        vertices, colours = pairs[start : start + BLOCK].T.astype(np.int64)
        if vertices.min() < 0 or vertices.max() >= count:
            raise corrupt(f"its vertices are not numbered from 0 to {count - 1}")
        row_indices = np.searchsorted(colours_in_table, colours).clip(max=colours_in_table.size - 1)
        unknown = colours_in_table[row_indices] != colours
        if unknown.any():
            raise corrupt(
                f"vertex {vertices[unknown][0]} has the value {colours[unknown][0]}, which is not "
                f"in the colour table"
            )
        labels[vertices] = labels_in_table[row_indices]
    if labels.min() == MISSING_LABEL:
        raise corrupt(f"its vertices are not numbered from 0 to {count - 1}")
    return labels


def _distinct(colours: list[str]) -> NDArray[Any]:
    """Return red, green and blue of each colour, with black and repeated colours changed.

    In the file, each label needs its own colour, and black means that a vertex has no label.
    """
    used = {0}
    triples = []
    for colour in colours:
        value = int.from_bytes(bytes.fromhex((colour or "#808080")[1:]), "little")
        while value in used:
            value = (value + 1) % (1 << 24)
        used.add(value)
        triples.append([*value.to_bytes(3, "little")])
    return np.array(triples, np.int64)
