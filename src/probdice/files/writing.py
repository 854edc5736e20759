"""What is to be written, and a way to write it that never leaves half a file."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from probdice.errors import InputError
from probdice.files.model import Format, Payload
from probdice.segmentation import Array, Geometry, Segmentation

__all__ = ["payload_of", "replacing", "write_atomically"]

INTEGERS = (np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64)


def payload_of(value: Segmentation | ArrayLike, geometry: Geometry | None) -> Payload:
    """The values to store, of the type they are stored in."""
    if isinstance(value, Segmentation):
        geometry = value.geometry if geometry is None else geometry
        array = _whole(value.array)
        if value.crisp:
            array, regions = _smallest(array), False
        else:
            array, regions = _probabilities(value, array), value.reading != "foreground"
        names = tuple(str(region) for region in value.regions)
        payload = Payload(array, regions, geometry, value.names, names)
    else:
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            raise InputError(f"expected labels or a map of numbers, found {array.dtype}")
        array = array.astype(np.float32) if array.dtype.kind == "f" else _smallest(array)
        payload = Payload(array, False, geometry)
    shape = array.shape[1:] if payload.regions else array.shape
    if geometry is not None and geometry.shape != shape:
        raise InputError(f"geometry is that of an image of shape {geometry.shape}, found {shape}")
    return payload


def write_atomically(path: str, form: Format, payload: Payload) -> None:
    """Write in the format of a suffix; on failure leave nothing behind."""
    assert form.write is not None
    # The suffix is kept, since libraries go by it.
    suffix = next(s for s in sorted(form.writes, key=len, reverse=True) if path.lower().endswith(s))
    with replacing(Path(path), suffix) as partial:
        form.write(partial, payload)


@contextmanager
def replacing(target: Path, suffix: str = "", *, alone: bool = False) -> Iterator[Path]:
    """A name beside the target to write to; what is there in the end takes the target's place.

    It is flushed to the disk first. On failure it is removed, and the target is as it was. A
    writer that holds a lock is `alone`: the name is then always the same, so that what a kill
    leaves behind is overwritten by the next run. A symbolic link stays one: the file that it points
    to is replaced.
    """
    target = Path(os.path.realpath(target))
    if target.is_dir():
        raise InputError("is a folder, expected the name of a file")
    if target.exists() and not target.is_file():  # to rename onto /dev/null would replace it
        raise InputError("is a device or a pipe, expected the name of a file")
    stem = target.name
    if suffix and stem.lower().endswith(suffix):
        stem = stem[: -len(suffix)]
    partial = target.with_name(f".{stem}.{'partial' if alone else secrets.token_hex(4)}{suffix}")
    try:
        yield partial
        with partial.open("rb+") as stream:
            os.fsync(stream.fileno())
        if target.exists():
            shutil.copymode(target, partial)
        os.replace(partial, target)
    finally:
        with suppress(FileNotFoundError):
            partial.unlink()


def _whole(array: Array) -> NDArray[Any]:
    return np.asarray(array[(slice(None),) * len(array.shape)])


def _smallest(labels: NDArray[Any]) -> NDArray[Any]:
    """The labels in the smallest integer type that holds them all."""
    if labels.dtype.kind == "f" and not np.all(labels == np.trunc(labels)):
        raise InputError("labels must be whole numbers, found a fraction or NaN")
    low, high = (int(labels.min()), int(labels.max())) if labels.size else (0, 0)
    for candidate in INTEGERS:
        if np.iinfo(candidate).min <= low and high <= np.iinfo(candidate).max:
            return labels.astype(candidate)
    raise InputError(f"labels from {low} to {high} fit no integer type")


def _probabilities(segmentation: Segmentation, array: NDArray[Any]) -> NDArray[Any]:
    """The probabilities as they are compared."""
    wide = array.dtype.kind == "f" and array.dtype.itemsize == 8
    values: NDArray[np.floating[Any]] = array.astype(np.float64 if wide else np.float32)
    if segmentation.reading == "softmax":
        values = np.exp(values - values.max(axis=0))
        values /= values.sum(axis=0)
        values = np.maximum(values, np.finfo(values.dtype).smallest_subnormal)
    elif segmentation.reading in ("normalise", "background"):
        total = values.sum(axis=0)
        if segmentation.reading == "normalise":
            _check_sums(total)
        if segmentation.reading == "background":
            missing = 1 - total
            missing[missing < 1e-6] = 0
            values = np.concatenate([values, missing[None]])
            total = np.maximum(total, 1)
        values = values / total
    return values


def _check_sums(total: NDArray[Any]) -> None:
    """Probabilities that are all 0 cannot be divided by their sum."""
    empty = total == 0
    if not empty.any():
        return
    count = int(np.count_nonzero(empty))
    pixel = tuple(int(k) for k in np.unravel_index(int(np.argmax(empty)), empty.shape))
    others = f" (the first of {count} such pixels)" if count > 1 else ""
    raise InputError(
        f"all probabilities are 0 at pixel {pixel}{others}, so the sum divides none; "
        f'pass sums="background" (--sums background) to add the missing part as a region'
    )
