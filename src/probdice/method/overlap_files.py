"""Restore overlaps from built-in Python types, and store overlaps in files without pickle."""

import json
import math
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from operator import index
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from probdice.errors import FormatError, InputError, ProbdiceError
from probdice.method.overlap import FORMAT_VERSION, Overlap, Pairs
from probdice.method.region_labels import COLOUR
from probdice.method.regions import Integers, Regions
from probdice.method.sides import SIDES
from probdice.method.similarity import similarity_from_dict

__all__ = ["overlap_from_dict", "read_overlap", "write_overlap"]

HEADER = ("crisp", "names", "colours", "numbers", "origins")  # fields of a side in the file header
ARRAYS = ("keys", "volumes", "losses", "likeliest")  # arrays of a side
MAX_COMPRESSION_RATIO = 64  # largest compression ratio of the keys and of the header
# Largest number of bytes that a stored array may have in addition to its values.
MAX_ARRAY_OVERHEAD = 2**16

# Exceptions that NumPy, zipfile, zlib and json raise for corrupt files.
CORRUPT_FILE_ERRORS = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, OSError),
    *(RuntimeError, TypeError, ValueError, zipfile.BadZipFile, zlib.error),
)


def overlap_from_dict(content: Mapping[str, Any]) -> Overlap:
    """Restore an overlap from the output of `Overlap.to_dict`."""
    try:
        if content["format"] != FORMAT_VERSION:
            raise InputError(
                f"expected an overlap of format {FORMAT_VERSION}, found format "
                f"{content['format']}, written by another version of probdice. Compute the overlap "
                f"again."
            )
        reference, prediction = (Regions.from_dict(content[side]) for side in SIDES)
        crisp = reference.crisp and prediction.crisp
        overlap = Overlap(
            similarity_from_dict(content["similarity"]),
            index(content["pixels"]),
            reference,
            prediction,
            Pairs(
                np.asarray(content["rows"], np.int64),
                np.asarray(content["columns"], np.int64),
                np.asarray(content["savings"], np.int64 if crisp else np.float64),
            ),
        )
        if not all(_conditions(overlap)):
            raise InputError("not an overlap: its parts are inconsistent")
    except ProbdiceError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise InputError(f"not an overlap: {type(error).__name__}: {error}") from None
    return overlap


def _conditions(overlap: Overlap) -> Iterator[bool]:
    """Yield conditions that every overlap of real images satisfies.

    A condition may assume that all preceding conditions are true.
    """
    overlapping = overlap.pairs
    yield overlap.pixels >= 1
    yield _equally_long(overlapping.rows, overlapping.columns, overlapping.savings)
    for regions in (overlap.reference, overlap.prediction):
        needs_losses = not (overlap.similarity.separable or regions.crisp)
        yield needs_losses == (regions.losses is not None)
        losses = regions.volumes if regions.losses is None else regions.losses
        yield len(regions) > 0 and _equally_long(regions.keys, regions.volumes, losses)
        yield all(isinstance(name, str) for name in regions.names.values())
        yield all(COLOUR.fullmatch(colour) for colour in regions.colours.values())
        yield bool(np.all(regions.keys[:-1] < regions.keys[1:]))
        yield bool(np.all(np.isfinite(losses) & np.isfinite(regions.volumes)))
        yield bool(np.all((losses >= 0) & (regions.volumes >= 0)) and np.any(regions.volumes > 0))
        counts = regions.likeliest
        if counts is not None:
            yield not regions.crisp and counts.shape == regions.keys.shape
            yield bool(np.all((counts >= 0) & (counts <= overlap.pixels)))
            yield bool(np.any(regions.present))
    yield bool(np.all(np.isfinite(overlapping.savings) & (overlapping.savings > 0)))
    yield _in_range(overlapping.rows, len(overlap.reference))
    yield _in_range(overlapping.columns, len(overlap.prediction))
    pairs = overlapping.rows * len(overlap.prediction) + overlapping.columns
    yield np.unique(pairs).size == pairs.size


def _equally_long(*arrays: NDArray[Any]) -> bool:
    """Return whether all arrays are one-dimensional and have the same length."""
    return all(array.shape == (arrays[0].size,) for array in arrays)


def _in_range(indices: Integers, count: int) -> bool:
    return not indices.size or (int(indices.min()) >= 0 and int(indices.max()) < count)


def write_overlap(overlap: Overlap, name: str) -> None:
    """Write an overlap to a file. A failed write leaves no partial file."""
    from probdice.files.atomic_files import replacing

    arrays: dict[str, Any] = {
        "rows": overlap.pairs.rows,
        "columns": overlap.pairs.columns,
        "savings": overlap.pairs.savings,
    }
    header: dict[str, Any] = {
        "format": FORMAT_VERSION,
        "similarity": overlap.similarity.to_dict(),
        "pixels": overlap.pixels,
    }
    for side in SIDES:
        regions = overlap.side(side)
        for field in ARRAYS:
            if getattr(regions, field) is not None:
                arrays[f"{side}_{field}"] = getattr(regions, field)
        content = regions.to_dict()
        header[side] = {key: content[key] for key in HEADER}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    try:
        with replacing(Path(name)) as partial, partial.open("wb") as stream:
            np.savez_compressed(stream, **arrays)
    except ProbdiceError as error:
        raise error.prefixed(f"{name}: ") from None
    except OSError as error:
        raise FormatError(f"{name}: cannot be written: {error.strerror or error}") from error


def read_overlap(name: str) -> Overlap:
    """Read an overlap from a file written by `write_overlap`."""
    try:
        with Path(name).open("rb") as stream:
            return overlap_from_dict(_file_content(stream))
    except OSError as error:
        raise FormatError(f"{name}: cannot be read: {error.strerror or error}") from error
    except ProbdiceError as error:
        raise FormatError(f"{name}: ", *error.args) from None
    except CORRUPT_FILE_ERRORS as error:
        raise FormatError(
            f"{name}: not a saved overlap, or corrupt: {type(error).__name__}: {error}"
        ) from None


def _file_content(stream: BinaryIO) -> dict[str, Any]:
    """Return the content of a file as a dictionary for `overlap_from_dict`.

    A small file may decompress to huge arrays, so the sizes are checked first. The compression
    ratio of the keys and of the header is limited, because both compress little. The number of
    regions then limits the sizes of all other arrays.
    """
    from probdice.files.numpy_files import member

    archive = zipfile.ZipFile(stream)
    members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    array_names = {f"{side}_{field}" for side in SIDES for field in ARRAYS}
    array_names |= {"header", "rows", "columns", "savings"}
    # Earlier versions of probdice passed allow_pickle to NumPy 1.26, which stored it as an array.
    array_names.add("allow_pickle")
    if unknown := members.keys() - array_names:
        raise FormatError(f"not a saved overlap: unknown array {min(unknown)!r}")

    def array(name: str, max_bytes: int) -> NDArray[Any]:
        size = members[name].file_size
        if size > max_bytes + MAX_ARRAY_OVERHEAD:
            raise FormatError(
                f"corrupt file: {name} has {size} bytes, expected at most {max_bytes}"
            )
        return member(archive, members[name].filename, size)

    def packed(name: str) -> NDArray[Any]:
        return array(name, MAX_COMPRESSION_RATIO * members[name].compress_size)

    content: dict[str, Any] = dict(json.loads(packed("header").tobytes()))
    counts = []
    for side in SIDES:
        keys = packed(f"{side}_keys")
        content[side] = content[side] | {"keys": keys, "losses": None, "likeliest": None}
        for field in ("volumes", "losses", "likeliest"):
            if f"{side}_{field}" in members:
                content[side][field] = array(f"{side}_{field}", 8 * keys.size)
        counts.append(keys.size)
    rows = array("rows", 8 * math.prod(counts))
    columns, savings = (array(name, 8 * rows.size) for name in ("columns", "savings"))
    return content | {"rows": rows, "columns": columns, "savings": savings}
