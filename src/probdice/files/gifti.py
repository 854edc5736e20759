"""Read and write GIFTI: labels (.label.gii), and maps of probabilities (.func.gii, .shape.gii).

Files are parsed with nibabel in the child process, because a small file can contain compressed
arrays that fill the memory. Declarations of XML entities are rejected, because no GIFTI file needs
them. For probabilities, `write` stores a JSON description (see `probdice.files.description`) in the
metadata of the file.
"""

import math
import os
import re
from importlib import import_module
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from probdice.data.vertex_space import VertexSpace, structure_named, structure_words
from probdice.errors import FormatError, InputError, Option
from probdice.files.containment import ReaderResult, grant, run_in_child
from probdice.files.corrupt import (
    DEFLATE_RATIO,
    check_memory,
    check_size,
    corrupt,
    library_call,
    refuse_entities,
)
from probdice.files.description import DESCRIPTION, description_of
from probdice.files.model import ContainedArray, Format, Image, Payload, Source, rgb_of
from probdice.files.surface_maps import (
    Maps,
    label_entries,
    map_contents,
    map_image,
    map_name,
    only_structure,
    rows_to_write,
    structure_of_file,
)
from probdice.method.region_labels import listed

__all__ = ["GIFTI", "gifti_arrays", "is_gifti", "of_gifti"]

START = re.compile(
    rb"\s*(\xef\xbb\xbf)?(<\?xml[^>]*\?>\s*)?(<!--.*?-->\s*)*(<!DOCTYPE\s+GIFTI.*?>\s*)?<GIFTI",
    re.DOTALL,
)
LABELS, POINTS, TRIANGLES = 1002, 1008, 1009  # NIfTI intent codes
STRUCTURE = "AnatomicalStructurePrimary"
Share = int | float | None  # a value of red, green, blue or alpha


class _Value(TypedDict):
    """The content of a file apart from its arrays."""

    maps: list[tuple[int, str]]  # the intent and the name of each array
    labels: list[tuple[int, str, Share, Share, Share, Share]]
    structure: str
    description: str


def is_gifti(source: Source) -> bool:
    """Return whether the file starts like a GIFTI file, with or without a document type."""
    head = source.head
    return bool(START.match(head)) or (b"<!DOCTYPE GIFTI" in head and head.lstrip()[:1] == b"<")


def _read(source: Source) -> Image:
    return map_image(_maps(source), source.inside)


def _contents(source: Source) -> list[ContainedArray]:
    return map_contents(_maps(source))


def of_gifti(image: Any) -> Image:
    """Convert a nibabel GiftiImage to an `Image`."""
    with library_call():
        answer = _answer(image)
    name = os.path.basename(image.get_filename() or "")
    return map_image(_maps_of(answer, name), "")


def _write(path: Path, payload: Payload) -> None:
    gifti = import_module("nibabel.gifti")
    structure = only_structure(payload, "GIFTI")
    name = path.name.lower()
    if payload.labels and name.endswith((".func.gii", ".shape.gii")):
        raise InputError(
            ".func.gii and .shape.gii store probabilities or a map, found labels. Write .label.gii."
        )
    if not payload.labels and name.endswith(".label.gii"):
        raise InputError(".label.gii stores labels, found probabilities or a map. Write .func.gii.")
    words = structure_words(structure.name)
    metadata = {STRUCTURE: "".join(word.capitalize() for word in words)}
    if description := description_of(payload):
        metadata[DESCRIPTION] = description
    table, arrays = gifti.GiftiLabelTable(), []
    if payload.labels:
        for entry in rows_to_write(payload):
            label = gifti.GiftiLabel(entry.label, *rgb_of(entry.colour), 1.0)
            label.label = entry.name
            table.labels.append(label)
        values = payload.array.astype(np.int32)
        arrays = [gifti.GiftiDataArray(values, "NIFTI_INTENT_LABEL", "NIFTI_TYPE_INT32")]
    else:
        intent = "NIFTI_INTENT_SHAPE" if name.endswith(".shape.gii") else "NIFTI_INTENT_NONE"
        rows = payload.array if payload.regions else payload.array[None]
        for number, row in enumerate(rows):
            titled = gifti.GiftiMetaData({"Name": map_name(payload, number)})
            values = row.astype(np.float32)
            arrays.append(gifti.GiftiDataArray(values, intent, "NIFTI_TYPE_FLOAT32", meta=titled))
    image = gifti.GiftiImage(meta=gifti.GiftiMetaData(metadata), labeltable=table, darrays=arrays)
    path.write_bytes(image.to_bytes())


GIFTI = Format(
    "GIFTI",
    (".label.gii", ".func.gii", ".shape.gii", ".gii"),
    is_gifti,
    _read,
    writes=(".label.gii", ".func.gii", ".shape.gii"),
    write=_write,
    contents=_contents,
    surfaces=True,
)


def gifti_arrays(source: Source) -> ReaderResult:
    """Return the arrays of a file, with their intents, names, label table and structure."""
    max_bytes = source.max_bytes
    answer = run_in_child(
        parse_gifti, source.path, max_bytes, returns=_Value, library="nibabel", max_bytes=max_bytes
    )
    if len(answer.value["maps"]) != len(answer.arrays):
        raise corrupt("the result of nibabel is invalid")
    return answer


def _maps(source: Source) -> Maps:
    return _maps_of(gifti_arrays(source), source.path.name)


def _maps_of(answer: ReaderResult, file: str) -> Maps:
    value: _Value = answer.value
    intents = [intent for intent, _ in value["maps"]]
    if {POINTS, TRIANGLES} & set(intents):
        raise FormatError(
            "contains a surface mesh, expected only labels or maps. Pass the labels (.label.gii) "
            "instead, and pass the mesh as ",
            Option("surface", "FILE", python="surface=…"),
        )
    if not intents:
        raise FormatError("contains no map")
    labels = LABELS in intents
    if labels and set(intents) != {LABELS}:
        raise FormatError("contains both labels and other maps. Write them to separate files.")
    names: list[str] = []
    rows: list[NDArray[Any]] = []
    for array, (_, name) in zip(answer.arrays, value["maps"], strict=True):
        columns = array.reshape(array.shape[0], -1).T if array.ndim else array.reshape(1, 1)
        rows += list(columns)
        names += [name] if len(columns) == 1 else [""] * len(columns)
    sizes = {len(row) for row in rows}
    if len(sizes) != 1 or 0 in sizes:
        raise FormatError(
            f"contains maps with {listed(sorted(sizes))} vertices: expected the same number of "
            f"vertices in all maps, and at least 1"
        )
    structure = structure_named(value["structure"]) or structure_of_file(file)
    return Maps(
        rows[0][None] if len(rows) == 1 else np.stack(rows),
        names,
        VertexSpace.of_surface(sizes.pop(), structure),
        [label_entries(value["labels"])] * len(rows) if labels else None,
        value["description"],
    )


# -- in the child process --------------------------------------------------------------------------


def parse_gifti(file: str, max_bytes: int) -> ReaderResult:
    """Parse a file with nibabel, and check the size of each array before it is decompressed."""
    with library_call():
        base: Any = import_module("nibabel.gifti.parse_gifti_fast").GiftiImageParser
        size, total = os.path.getsize(file), 0

        class Parser(base):  # type: ignore[misc]
            HANDLER_NAMES = (*base.HANDLER_NAMES, "EntityDeclHandler")
            EntityDeclHandler = staticmethod(refuse_entities)

            def StartElementHandler(self, name: str, attributes: Any) -> None:
                super().StartElementHandler(name, attributes)
                if name == "DataArray":
                    nonlocal total
                    shape = tuple(self.da.dims)
                    needed = 8 * math.prod(shape)
                    check_size(needed, size, shape, ratio=8 * DEFLATE_RATIO)
                    total += needed
                    check_memory(total, shape, max_bytes)
                    grant(needed)

        parser = Parser()
        parser.parse(string=Path(file).read_bytes())
        if parser.img is None:
            raise corrupt("it contains no GIFTI element")
        return _answer(parser.img)


def _answer(image: Any) -> ReaderResult:
    """Convert a nibabel GiftiImage to a `ReaderResult`."""
    maps, arrays = [], []
    structure = image.meta.get(STRUCTURE) or ""
    for array in image.darrays:
        if array.data is None or array.data.dtype.kind not in "iuf":
            raise corrupt("one of its arrays is empty or not numeric")
        structure = structure or array.meta.get(STRUCTURE) or ""
        maps.append((int(array.intent), str(array.meta.get("Name") or "")))
        arrays.append(np.asarray(array.data))
    labels = image.labeltable.labels
    if any(label is None for label in labels):  # nibabel's result for nested elements
        raise corrupt("its table of labels contains a label inside another label")
    value: _Value = {
        "maps": maps,
        "labels": [
            (int(one.key), str(one.label or ""), one.red, one.green, one.blue, one.alpha)
            for one in labels
        ],
        "structure": str(structure),
        "description": str(image.meta.get(DESCRIPTION) or ""),
    }
    return ReaderResult(value, tuple(arrays))
