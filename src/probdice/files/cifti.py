"""Read and write CIFTI-2: dense labels (.dlabel.nii) and dense scalars (.dscalar.nii).

The pixels are vertices of surfaces, usually of both hemispheres, and voxels. Structures are sorted:
first the left cortex, then the right cortex, then the remaining structures by name. The XML in
the header is parsed with nibabel. Declarations of XML entities are rejected. Uncompressed values
remain on disk unless their structures must be sorted.
"""

import re
import struct
from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from importlib import import_module
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.data.geometry import Geometry
from probdice.data.vertex_space import Structure, VertexSpace, structure_named, structure_words
from probdice.errors import FormatError, InputError
from probdice.files.corrupt import check_memory, corrupt, library_call, refuse_entities
from probdice.files.description import DESCRIPTION, description_of
from probdice.files.headers import header_of
from probdice.files.model import ContainedArray, Format, Image, Payload, Source, rgb_of
from probdice.files.nifti import stored_values
from probdice.files.surface_maps import (
    Maps,
    label_entries,
    map_contents,
    map_image,
    map_name,
    rows_to_write,
    space_of,
)

__all__ = ["CIFTI", "of_cifti"]

INTENTS = range(3000, 3100)  # NIfTI intent codes of dense labels, parcels, …
EXTENSION = 32  # code of the header extension that contains the XML
HEADER = 540  # number of bytes in a NIfTI-2 header
LABELS, SCALARS, MODELS = (
    f"CIFTI_INDEX_TYPE_{kind}" for kind in ("LABELS", "SCALARS", "BRAIN_MODELS")
)
SURFACE = "CIFTI_MODEL_TYPE_SURFACE"
CORTEX = ("left cortex", "right cortex")
KINDS = {  # by suffix: the intent, and whether the values are labels
    ".dlabel.nii": ("NIFTI_INTENT_CONNECTIVITY_DENSE_LABELS", True),
    ".dscalar.nii": ("NIFTI_INTENT_CONNECTIVITY_DENSE_SCALARS", False),
}


def _recognises(source: Source) -> bool:
    """Return whether a NIfTI-2 file has a CIFTI intent code or a CIFTI header extension."""
    head = source.head
    if head[4:7] not in (b"n+2", b"ni2") or len(head) < HEADER + 12:
        return False
    order = _order(head)
    intent, extension = (struct.unpack_from(order + "i", head, at)[0] for at in (504, 548))
    return intent in INTENTS or (head[HEADER : HEADER + 1] == b"\x01" and extension == EXTENSION)


def _read(source: Source) -> Image:
    return map_image(_maps(source), source.inside)


def _contents(source: Source) -> list[ContainedArray]:
    return map_contents(_maps(source))


def of_cifti(image: Any) -> Image:
    """Convert a nibabel Cifti2Image to an `Image`."""
    with library_call():
        values = np.asanyarray(image.dataobj)
    return map_image(_maps_of(values, image.header.matrix), "")


def _write(path: Path, payload: Payload) -> None:
    cifti2 = import_module("nibabel.cifti2")
    suffix = next(suffix for suffix in KINDS if path.name.lower().endswith(suffix))
    intent, labels = KINDS[suffix]
    if labels != payload.labels:
        other = ".dlabel.nii" if payload.labels else ".dscalar.nii"
        stored = "a label map" if payload.labels else "probabilities or a map"
        raise InputError(f"{suffix} cannot store {stored}. Write {other}.")
    models = reduce(add, _models(space_of(payload)))
    rows = payload.array if payload.regions else payload.array[None]
    if labels:
        table = {
            entry.label: (entry.name, (*rgb_of(entry.colour), 1.0))
            for entry in rows_to_write(payload)
        }
        axis = cifti2.LabelAxis(["labels"], [table])
        rows = rows.astype(np.int32)
    else:
        axis = cifti2.ScalarAxis([map_name(payload, number) for number in range(len(rows))])
        rows = rows.astype(np.float32)
    header = cifti2.Cifti2Header.from_axes((axis, models))
    if description := description_of(payload):
        header.matrix.metadata = cifti2.Cifti2MetaData({DESCRIPTION: description})
    image = cifti2.Cifti2Image(rows, header)
    image.nifti_header.set_intent(intent)
    image.to_filename(path)


CIFTI = Format(
    "CIFTI",
    (".dlabel.nii", ".dscalar.nii"),
    _recognises,
    _read,
    writes=tuple(KINDS),
    write=_write,
    contents=_contents,
    surfaces=True,
)


def _order(head: bytes) -> str:
    return "<" if head[:4] == b"\x1c\x02\0\0" else ">"


def _maps(source: Source) -> Maps:
    header = header_of(source.head)
    text = _xml(source, header.offset)
    values, _ = stored_values(source.path, header, source.head, source.max_bytes)
    if values.ndim != 6 or values.shape[:4] != (1, 1, 1, 1):
        raise corrupt(f"expected 6 axes (the first 4 of length 1), found shape {values.shape}")
    check_memory(32 * len(text), values.shape, source.max_bytes)
    maps = _maps_of(values[0, 0, 0, 0], _parsed(text).matrix)
    return replace(maps, slope=header.slope, inter=header.inter)


def _xml(source: Source, offset: int) -> bytes:
    """Return the XML of the CIFTI header, which is in a header extension."""
    with source.path.open("rb") as stream:
        stream.seek(HEADER + 4)
        content = stream.read(max(offset - HEADER - 4, 0))
    position = 0
    while position + 8 <= len(content):
        size, code = struct.unpack_from(_order(source.head) + "ii", content, position)
        if size < 8:
            break
        if code == EXTENSION:
            return content[position + 8 : position + size].rstrip(b"\0")
        position += size
    raise corrupt("its CIFTI header is missing")


def _parsed(text: bytes) -> Any:
    with library_call():
        base: Any = import_module("nibabel.cifti2.parse_cifti2").Cifti2Parser

        class Parser(base):  # type: ignore[misc]
            HANDLER_NAMES = (*base.HANDLER_NAMES, "EntityDeclHandler")
            EntityDeclHandler = staticmethod(refuse_entities)

        parser = Parser()
        parser.parse(string=text)
        if parser.header is None or parser.header.matrix is None:
            raise corrupt("its CIFTI header has no matrix")
        return parser.header


def _maps_of(values: NDArray[Any], matrix: Any) -> Maps:
    """Combine the values with the names, structures and label tables in the header."""
    with library_call():
        axes = [matrix.get_index_map(k) for k in range(2)]
        kinds = [str(axis.indices_map_to_data_type) for axis in axes]
        metadata = matrix.metadata or {}
        description = str(metadata.get(DESCRIPTION) or "")
    if kinds[1] != MODELS or kinds[0] not in (LABELS, SCALARS):
        words = " by ".join(re.sub("CIFTI_INDEX_TYPE_", "", kind).lower() for kind in kinds)
        raise FormatError(
            f"is CIFTI with {words}, expected dense labels (.dlabel.nii) or dense scalars "
            f"(.dscalar.nii)"
        )
    try:
        named = list(axes[0].named_maps)
        names = [str(one.map_name or "") for one in named]
        tables = [_entries(one.label_table) for one in named] if kinds[0] == LABELS else None
        space, order = _space(axes[1], values.shape[1])
    except InputError as error:
        raise FormatError(*error.args) from error
    except (AttributeError, OverflowError, TypeError, ValueError) as error:
        raise corrupt(f"an element of its header is missing or invalid ({error})") from error
    if len(names) != values.shape[0]:
        raise corrupt(f"it has {values.shape[0]} maps, but its header describes {len(names)}")
    return Maps(values if order is None else values[:, order], names, space, tables, description)


def _entries(table: Mapping[int, Any] | None) -> Any:
    rows = [] if table is None else table.values()
    return label_entries(
        [(one.key, one.label, one.red, one.green, one.blue, one.alpha) for one in rows]
    )


def _space(mapping: Any, size: int) -> tuple[VertexSpace, NDArray[np.int64] | None]:
    """Return the sorted structures, and the order of columns that sorts them.

    The order is None if the structures in the file are already sorted.
    """
    volume = None
    if mapping.volume is not None:
        matrix = mapping.volume.transformation_matrix_voxel_indices_ijk_to_xyz
        affine = np.array(matrix.matrix, np.float64)
        affine[:3] *= 10.0 ** (int(matrix.meter_exponent) + 3)
        volume = Geometry(tuple(mapping.volume.volume_dimensions), affine)
    models = sorted(mapping.brain_models, key=_rank)
    structures = [_structure(model, volume) for model in models]
    starts = [int(model.index_offset) for model in models]
    columns = sum(structure.size for structure in structures)
    if columns != size:
        raise corrupt(f"it has {size} values per map, but its header describes {columns}")
    order = np.concatenate(
        [start + np.arange(one.size) for start, one in zip(starts, structures, strict=True)]
    )
    if not np.array_equal(np.sort(order), np.arange(size)):
        raise corrupt("its structures overlap")
    sorted_already = np.array_equal(order, np.arange(size))
    return VertexSpace.of(structures, volume=volume), None if sorted_already else order


def _rank(model: Any) -> tuple[bool, str]:
    name = str(model.brain_structure)
    return structure_named(name) not in CORTEX, name


def _structure(model: Any, volume: Geometry | None) -> Structure:
    name = structure_named(str(model.brain_structure))
    if model.model_type == SURFACE:
        vertices = int(model.surface_number_of_vertices)
        used = np.array(list(model.vertex_indices), np.int64)
        inside = used.size and used.min() >= 0 and used.max() < vertices
        whole = used.size == vertices and np.array_equal(used, np.arange(vertices))
        structure = Structure(name, vertices, None if whole else used)
    else:
        used = np.array(list(model.voxel_indices_ijk), np.int64).reshape(-1, 3)
        inside = volume is not None and bool(((used >= 0) & (used < volume.shape)).all())
        structure = Structure(name, 0, used)
    if not inside or structure.size != model.index_count:
        raise corrupt(f"the vertex or voxel indices of {structure.label} are invalid")
    return structure


def _models(space: VertexSpace) -> Any:
    """Yield nibabel's brain model of each structure."""
    cifti2 = import_module("nibabel.cifti2")
    for structure in space.structures:
        code = "CIFTI_STRUCTURE_" + "_".join(structure_words(structure.name)).upper()
        if code not in cifti2.cifti2.CIFTI_BRAIN_STRUCTURES:
            raise InputError(
                f"CIFTI has no structure {structure.name!r}. Use a name such as 'left cortex'."
            )
        if not structure.vertices and space.volume is not None:
            yield cifti2.BrainModelAxis(
                code,
                voxel=structure.used,
                affine=space.volume.affine,
                volume_shape=space.volume.shape,
            )
            continue
        used = np.arange(structure.vertices) if structure.used is None else structure.used
        yield cifti2.BrainModelAxis(code, vertex=used, nvertices={code: structure.vertices})
