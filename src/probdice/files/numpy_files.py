"""Read and write NumPy files (.npy and .npz). Pickled objects are never loaded.

Values in .npy files are memory-mapped. Values have the same meaning as arrays in memory: integers
are labels, and floating-point numbers are probabilities with the regions along the first axis. As
an exception, floating-point numbers are labels if all of them are whole and at least one is
neither 0 nor 1. In .npz files that probdice wrote, the key of an array determines whether it has a
region axis.

Images have no geometry, with two exceptions. An .npz file that probdice wrote may contain a
geometry. The `probabilities` of nnU-Net have the geometry of the label image with the same name in
the same folder. The axes of nnU-Net (region, z, y, x) become (region, x, y, z).
"""

import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.data.segmentation import Array
from probdice.errors import FormatError, InputError
from probdice.files.corrupt import (
    DEFLATE_RATIO,
    check_memory,
    check_size,
    corrupt,
    library_call,
    select_name,
)
from probdice.files.description import DESCRIPTION, description_of, with_description
from probdice.files.interpretation import beyond_one, fraction_in
from probdice.files.model import (
    ContainedArray,
    Format,
    Image,
    Payload,
    Source,
    as_label,
    meaning_of,
)
from probdice.files.unsupported import archive_of

__all__ = ["NPY", "NPZ", "label_image", "member", "regions_of_plain"]

VALUE_KEYS = ("labels", "regions", "map")  # keys that `write` uses for values
METADATA_KEYS = ("affine", "names", DESCRIPTION)  # only older versions wrote "names"
MAX_METADATA_BYTES = 1 << 26  # memory limit in bytes for each item of other data
PIECE = 1 << 18  # number of bytes per read, which fit in the CPU cache
LABEL_FILES = (".nii.gz", ".nii", ".nrrd", ".mha", ".mhd", ".tif", ".tiff", ".png")  # of nnU-Net
OBJECTS = (
    "contains pickled Python objects, which can run code and are never loaded. Save an array of "
    "numbers."
)


def _is_npy(source: Source) -> bool:
    return source.head[:6] == b"\x93NUMPY"


def _read_npy(source: Source) -> Image:
    with _numpy_call():
        array = np.load(source.path, mmap_mode="r", allow_pickle=False)
    return Image(array, regions=regions_of_plain(array), assumed=True)


def _write_npy(path: Path, payload: Payload) -> None:
    array = payload.array
    _check_plain(payload)
    if payload.kind == "foreground":  # the first axis of a floating-point array is the region axis
        array = np.stack([np.clip(1 - array, 0, 1), array])
    with path.open("wb") as stream:
        np.save(stream, array, allow_pickle=False)


def _check_plain(payload: Payload) -> None:
    """Reject a segmentation or a map with properties that an NPY file cannot store."""
    labels, names = payload.region_labels, payload.region_names
    properties = {
        "the geometry": payload.geometry is not None,
        "the names": payload.label_names or any(name is not None for name in names),
        "the labels of the regions": any(label not in (None, k) for k, label in enumerate(labels)),
        "the region axis of length 1": len(labels) == 1,
    }
    lost = [name for name, exists in properties.items() if exists]
    if lost:
        raise InputError(
            f"NPY stores only an array, so {' and '.join(lost)} would be lost. Write .npz instead."
        )


NPY = Format("NPY", (".npy",), _is_npy, _read_npy, (".npy",), _write_npy)


def _is_npz(source: Source) -> bool:
    return source.head[:4] == b"PK\x03\x04"


def _read_npz(source: Source) -> Image:
    with source.path.open("rb") as stream:
        with library_call():
            archive = zipfile.ZipFile(stream)
        if archive_type := archive_of(archive.namelist()):
            raise FormatError(f"not a segmentation file: it is {archive_type}")
        members = {name.removesuffix(".npy"): name for name in archive.namelist()}
        key = _key(source.inside.strip("/"), list(members))
        array = member(archive, members[key], source.max_bytes)
        affine, names, description = (
            member(archive, members[name], MAX_METADATA_BYTES)
            if key in VALUE_KEYS and name in members
            else None
            for name in METADATA_KEYS
        )
    if affine is not None and affine.dtype.kind not in "iuf":
        raise corrupt(f"its affine must be numeric, found {affine.dtype}")
    if key == "probabilities" and array.ndim == 4:
        return _nnunet(source.path, array)
    if key not in VALUE_KEYS:
        return Image(array, regions=regions_of_plain(array), assumed=True)
    image = Image(array, regions=0 if key == "regions" else None, affine=affine)
    if description is not None:
        return with_description(image, str(description))
    return image if names is None else _named(image, names)


def _named(image: Image, names: NDArray[Any]) -> Image:
    """Add names that are stored in the format of older probdice versions.

    The names are pairs of a label and a name, or one name per region.
    """
    if image.regions is not None:
        return replace(image, region_names=[as_label(str(name)) for name in names.ravel()])
    try:
        return replace(image, label_names={int(label): str(name) for label, name in names})
    except (TypeError, ValueError) as error:
        raise corrupt(f"its names must be pairs of a label and a name ({error})") from error


def _write_npz(path: Path, payload: Payload) -> None:
    key = {"labels": "labels", "probabilities": "regions"}.get(payload.kind, "map")
    arrays: dict[str, Any] = {key: payload.array}
    if payload.geometry is not None:
        arrays["affine"] = payload.geometry.affine
    if description := description_of(payload, names=True):
        arrays[DESCRIPTION] = np.array(description)
    with path.open("wb") as stream:
        np.savez_compressed(stream, **arrays)


def _contents_npz(source: Source) -> list[ContainedArray]:
    """List the arrays of an archive. Only the headers of the arrays are read."""
    contents = []
    with source.path.open("rb") as stream, library_call():
        archive = zipfile.ZipFile(stream)
        for name in archive.namelist():
            with archive.open(name) as member, _numpy_call():
                shape, _, dtype = _header(member)
            key = name.removesuffix(".npy")
            axis = 0 if shape else None
            contents.append(ContainedArray(key, shape, dtype, meaning_of(shape, dtype, axis)))
    return contents


NPZ = Format("NPZ", (".npz",), _is_npz, _read_npz, (".npz",), _write_npz, contents=_contents_npz)


# NumPy parses headers as Python literals, which CPython 3.11 cannot do on two threads at once.
_parsing = Lock()


@contextmanager
def _numpy_call() -> Iterator[None]:
    """Convert exceptions of NumPy's readers to `FormatError`, with a special text for pickles.

    Only one thread at a time can be in this block.
    """
    try:
        with library_call(), _parsing:
            yield
    except FormatError as error:
        if "allow_pickle" in str(error) or "Python objects" in str(error):
            raise FormatError(OBJECTS) from error
        raise


def _header(stream: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the shape, the memory order and the type of the array at the current position."""
    version = np.lib.format.read_magic(stream)
    read_header = np.lib.format.read_array_header_2_0
    if version == (1, 0):
        read_header = np.lib.format.read_array_header_1_0
    return read_header(stream)


def member(archive: zipfile.ZipFile, name: str, max_bytes: int) -> NDArray[Any]:
    """Read one array of an archive after comparing its header with the size of the member."""
    info = archive.getinfo(name)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise FormatError(
            f"{name} is compressed with zip method {info.compress_type}, expected deflate. Save it "
            f"with numpy.savez_compressed."
        )
    ratio = 1 if info.compress_type == zipfile.ZIP_STORED else DEFLATE_RATIO
    with library_call():
        stream = archive.open(info)
    with stream:
        with _numpy_call():
            shape, fortran_order, dtype = _header(stream)
        if dtype.hasobject:
            raise FormatError(OBJECTS)
        if any(length < 0 for length in shape):
            raise corrupt(f"{name} has a negative length in its shape {shape}")
        needed = dtype.itemsize * math.prod(shape)
        check_size(needed, info.compress_size, shape, ratio=ratio)
        check_memory(needed, shape, max_bytes)
        # Reading the last byte verifies the checksum, so no bytes may remain.
        if stream.tell() + needed != info.file_size:
            raise corrupt(
                f"{name} has {info.file_size} bytes, expected {stream.tell() + needed} for an "
                f"array of shape {shape} and type {dtype}"
            )
        content = np.empty(needed, np.uint8)
        count = 0
        with library_call():
            while piece := stream.read(PIECE):
                content[count : count + len(piece)] = np.frombuffer(piece, np.uint8)
                count += len(piece)
    if count < needed:
        raise corrupt(f"{name} ends after {count} of {needed} bytes")
    return np.ndarray(shape, dtype, buffer=content, order="F" if fortran_order else "C")


def _key(wanted: str, keys: list[str]) -> str:
    """Return the key of the array to read.

    The default is `probabilities` if it exists, because nnU-Net also stores other arrays.
    Otherwise, the default is the only array.
    """
    if not wanted and "probabilities" in keys:
        return "probabilities"
    values = keys if wanted else [key for key in keys if key not in METADATA_KEYS]
    return select_name(wanted, values, "arrays", "file.npz:")


def _nnunet(path: Path, array: NDArray[Any]) -> Image:
    """Convert probabilities of nnU-Net to an `Image`. The label image contains the geometry."""
    label_file = label_image(path)
    if label_file is not None and label_file.suffix == ".png":  # 2-D: (region, 1, y, x)
        return Image(array[:, 0] if array.shape[1] == 1 else array, regions=0)
    return Image(array.transpose(0, 3, 2, 1), regions=0, geometry_file=label_file)


def label_image(path: Path) -> Path | None:
    """Return the label image next to nnU-Net probabilities, or None if there is none."""
    candidates = (Path(f"{path.with_suffix('')}{suffix}") for suffix in LABEL_FILES)
    return next((file for file in candidates if file.exists()), None)


def regions_of_plain(array: Array) -> int | None:
    """Return the region axis of an array without metadata, or None if the values are labels."""
    if array.dtype.kind != "f" or not array.shape:
        return None
    whole_above_one = fraction_in(array) is None and beyond_one(array) is not None
    return None if whole_above_one else 0
