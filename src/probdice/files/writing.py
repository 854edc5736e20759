"""Convert values to the data type in which they are stored, and write files atomically."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from math import prod
from operator import add
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from probdice.data.arrays import in_memory
from probdice.data.geometry import Geometry
from probdice.data.segmentation import Segmentation
from probdice.data.value_checks import as_probabilities, examine_values
from probdice.errors import InputError
from probdice.files.atomic_files import replacing, replacing_folder
from probdice.files.model import Format, Payload
from probdice.files.sources import is_store

__all__ = [
    "check_vertices",
    "described_payload",
    "payload_of",
    "replacing_store",
    "write_atomically",
]

BATCH = 2**24  # number of probabilities per batch, for an array that is not in memory
INTEGERS = (np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64)


def payload_of(value: Segmentation | ArrayLike, geometry: Geometry | None) -> Payload:
    """Convert a segmentation or an array to a `Payload`, which contains the data to write."""
    if isinstance(value, Segmentation):
        if value.crisp:
            array = _smallest(in_memory(value.array))
        elif value.reading == "foreground":  # one map is enough
            array = value.probabilities()[1]
        else:
            array = _probabilities(value)
        payload = described_payload(value, array, geometry)
    else:
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            raise InputError(f"expected labels or a numeric map, found {array.dtype}")
        if array.dtype.kind == "f":
            payload = Payload(array.astype(np.float32), "map", geometry)
        else:
            payload = Payload(_smallest(array), "labels", geometry)
    grid, shape = payload.geometry, payload.shape
    if grid is not None and grid.shape != shape:
        raise InputError(f"geometry has shape {grid.shape}, but the image has shape {shape}")
    return payload


def described_payload(value: Segmentation, array: Any, geometry: Geometry | None) -> Payload:
    """Combine an array, which may already be stored, with the metadata of a segmentation."""
    grid = value.geometry if geometry is None else geometry
    if value.crisp:
        return Payload(array, "labels", grid, label_names=value.names, colours=value.colours)
    return Payload(
        array,
        "foreground" if value.reading == "foreground" else "probabilities",
        grid,
        region_labels=value.labels,
        region_names=tuple(value.names.get(k) for k in range(len(value.labels))),
        colours=value.colours,
    )


def check_vertices(file_format: Format, payload: Payload) -> None:
    """Reject values per vertex if the format stores only images on a grid."""
    if payload.geometry is not None and not payload.geometry.on_grid and not file_format.surfaces:
        suffixes = ".annot, .label.gii or .dlabel.nii"
        if not payload.labels:
            suffixes = ".func.gii or .dscalar.nii"
        raise InputError(
            f"the format ({file_format.name}) cannot store the vertices of a surface. "
            f"Write {suffixes}."
        )


def write_atomically(
    path: str, file_format: Format, payload: Payload, *, has_lock: bool = False
) -> None:
    """Write a file. If writing fails, remove the incomplete file.

    For `has_lock`, see `atomic_files.replacing`.
    """
    assert file_format.write is not None
    if file_format.folder:
        with replacing_store(Path(path)) as folder:
            file_format.write(folder, payload)
        return
    # The temporary file keeps the suffix, because libraries use the suffix to choose the format.
    suffix = next(
        s for s in sorted(file_format.writes, key=len, reverse=True) if path.lower().endswith(s)
    )
    with replacing(Path(path), suffix, has_lock=has_lock) as partial:
        file_format.write(partial, payload)


@contextmanager
def replacing_store(target: Path) -> Iterator[Path]:
    """Yield the path of a temporary folder, which becomes or replaces the store at the end."""
    if target.exists() and not is_store(target):
        raise InputError("exists and is not a Zarr store, so it is not replaced. Remove it first.")
    with replacing_folder(target) as folder:
        yield folder


def _probabilities(value: Segmentation) -> NDArray[Any]:
    """Return all probabilities.

    A lazy array that already contains probabilities may be large, so it is copied to a memory map.
    """
    if isinstance(value.array, np.ndarray) or value.reading != "error":
        return value.probabilities()
    count, *shape = value.array.shape
    dtype = np.result_type(value.array.dtype, np.float32)
    row = prod(shape[1:])
    with TemporaryFile() as stream:  # the file is deleted with the last view of the memory map
        array = np.memmap(stream, dtype, "w+", shape=(count, *shape))
    step = max(1, BATCH // max(count * row, 1))
    for start in range(0, shape[0], step):
        part = value.array[:, start : start + step]
        values = np.asarray(part, dtype).reshape(count, -1)
        fault = examine_values(values, value.reading)
        value.raise_if_invalid(fault and fault.moved(partial(add, start * row)))
        array[:, start : start + step] = as_probabilities(values, value.reading).reshape(part.shape)
    return array


def _smallest(labels: NDArray[Any]) -> NDArray[Any]:
    """Convert labels to the first type in `INTEGERS` that can represent them."""
    if labels.dtype.kind == "f":
        invalid = labels[~np.isfinite(labels) | (labels != np.trunc(labels))]
        if invalid.size:
            raise InputError(f"labels must be whole numbers, found {invalid[0]:g}")
    low, high = (int(labels.min()), int(labels.max())) if labels.size else (0, 0)
    for candidate in INTEGERS:
        if np.iinfo(candidate).min <= low and high <= np.iinfo(candidate).max:
            return labels.astype(candidate)
    raise InputError(f"labels from {low} to {high} do not fit in 64-bit integers. Renumber them.")
