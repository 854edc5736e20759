"""NumPy's files: .npy, memory-mapped, and .npz. Pickled objects are never loaded.

They mean what the same array means in memory: integers are labels, floating numbers are
probabilities with the regions along the first axis. Floating whole numbers above 1 can only be
labels. There is no geometry, with two exceptions: an .npz that probdice wrote, and nnU-Net's
`probabilities`, whose axes (region, z, y, x) are turned into (region, x, y, z) and whose geometry
is that of the label image of the same name beside it.
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
from probdice.files.corrupt import DEFLATE_RATIO, check_memory, check_size, library_call
from probdice.files.description import DESCRIPTION, described, description_of
from probdice.files.interpretation import beyond_one, fraction_in
from probdice.files.model import Content, Format, Image, Payload, Source, as_label, meaning_of
from probdice.files.unsupported import archive_of

__all__ = ["NPY", "NPZ", "label_image", "member", "regions_of_plain"]

WRITTEN = ("labels", "regions", "map")  # the keys that `write` uses for values
BESIDE = ("affine", "names", DESCRIPTION)  # and for all else; older versions wrote names
SMALL = 1 << 26  # bytes of an affine, or of all names
PIECE = 1 << 18  # bytes read at once, which stay in the processor's cache
LABEL_FILES = (".nii.gz", ".nii", ".nrrd", ".mha", ".mhd", ".tif", ".tiff", ".png")  # nnU-Net's
OBJECTS = (
    "holds pickled Python objects, which are never loaded since they can run code; "
    "save an array of numbers"
)


def _is_npy(source: Source) -> bool:
    return source.head[:6] == b"\x93NUMPY"


def _read_npy(source: Source) -> Image:
    with _numpy_call():
        array = np.load(source.path, mmap_mode="r", allow_pickle=False)
    return Image(array, regions=regions_of_plain(array), assumed=True)


def _write_npy(path: Path, payload: Payload) -> None:
    array = payload.array
    if payload.kind != "map":
        _check_plain(payload)
    if payload.kind == "foreground":  # a floating array has its regions along the first axis
        array = np.stack([np.clip(1 - array, 0, 1), array])
    with path.open("wb") as stream:
        np.save(stream, array, allow_pickle=False)


def _check_plain(payload: Payload) -> None:
    """Refuse a segmentation of which NPY would lose a part: it holds an array and nothing else."""
    count = len(payload.region_labels)
    lost = []
    if payload.geometry is not None:
        lost.append("the geometry")
    if payload.label_names or any(name is not None for name in payload.region_names):
        lost.append("the names")
    if any(label not in (None, k) for k, label in enumerate(payload.region_labels)):
        lost.append("the labels of the regions")
    if count == 1:
        lost.append("that it holds one region")
    if lost:
        raise InputError(
            f"NPY holds an array and nothing else, so {' and '.join(lost)} would be lost; write "
            f".npz, which holds all"
        )


NPY = Format("NPY", (".npy",), _is_npy, _read_npy, (".npy",), _write_npy)


def _is_npz(source: Source) -> bool:
    return source.head[:4] == b"PK\x03\x04"


def _read_npz(source: Source) -> Image:
    with source.path.open("rb") as stream:
        with library_call():
            archive = zipfile.ZipFile(stream)
        if stranger := archive_of(archive.namelist()):
            raise FormatError(f"is no segmentation: it is {stranger}")
        members = {name.removesuffix(".npy"): name for name in archive.namelist()}
        key = _key(source.inside.strip("/"), list(members))
        array = member(archive, members[key], source.max_bytes)
        affine = names = description = None
        if key in WRITTEN:
            affine = member(archive, members["affine"], SMALL) if "affine" in members else None
            names = member(archive, members["names"], SMALL) if "names" in members else None
            if DESCRIPTION in members:
                description = str(member(archive, members[DESCRIPTION], SMALL))
    if affine is not None and affine.dtype.kind not in "iuf":
        raise FormatError(f"its affine must hold numbers, found {affine.dtype}")
    if key == "probabilities" and array.ndim == 4:
        return _nnunet(source.path, array)
    if key not in WRITTEN:
        return Image(array, regions=regions_of_plain(array), assumed=True)
    image = Image(array, regions=0 if key == "regions" else None, affine=affine)
    if description is not None:
        return described(image, description)
    if names is None:
        return image
    if key == "labels":  # as older versions stored names
        return replace(image, label_names=_label_names(names))
    return replace(image, region_names=[as_label(str(name)) for name in names.ravel()])


def _write_npz(path: Path, payload: Payload) -> None:
    key = {"labels": "labels", "probabilities": "regions"}.get(payload.kind, "map")
    arrays: dict[str, Any] = {key: payload.array}
    if payload.geometry is not None:
        arrays["affine"] = payload.geometry.affine
    if description := description_of(payload, names=True):
        arrays[DESCRIPTION] = np.array(description)
    with path.open("wb") as stream:
        np.savez_compressed(stream, **arrays)


def _contents_npz(source: Source) -> list[Content]:
    """Every array of an archive, by its header alone."""
    contents = []
    with source.path.open("rb") as stream, library_call():
        archive = zipfile.ZipFile(stream)
        for name in archive.namelist():
            with archive.open(name) as member, _numpy_call():
                shape, _, dtype = _header(member)
            key = name.removesuffix(".npy")
            axis = 0 if shape else None
            contents.append(Content(key, shape, dtype, meaning_of(shape, dtype, axis)))
    return contents


NPZ = Format("NPZ", (".npz",), _is_npz, _read_npz, (".npz",), _write_npz, contents=_contents_npz)


# NumPy parses the header of a file as Python, which CPython 3.11 cannot do on two threads at once.
_parsing = Lock()


@contextmanager
def _numpy_call() -> Iterator[None]:
    """Around what parses a header; a file of Python objects is refused as such."""
    try:
        with library_call(), _parsing:
            yield
    except FormatError as error:
        if "allow_pickle" in str(error) or "Python objects" in str(error):
            raise FormatError(OBJECTS) from error
        raise


def _header(stream: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type of an array that starts here."""
    version = np.lib.format.read_magic(stream)
    read_header = np.lib.format.read_array_header_2_0
    if version == (1, 0):
        read_header = np.lib.format.read_array_header_1_0
    return read_header(stream)


def member(archive: zipfile.ZipFile, name: str, max_bytes: int) -> NDArray[Any]:
    """One array of an archive, whose header is held against the size of the member."""
    info = archive.getinfo(name)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise FormatError(f"{name} is packed by method {info.compress_type}, expected deflate")
    ratio = 1 if info.compress_type == zipfile.ZIP_STORED else DEFLATE_RATIO
    with library_call():
        stream = archive.open(info)
    with stream:
        with _numpy_call():
            shape, fortran_order, dtype = _header(stream)
        if dtype.hasobject:
            raise FormatError(OBJECTS)
        if any(length < 0 for length in shape):
            raise FormatError(f"is corrupt: {name} has shape {shape}")
        needed = dtype.itemsize * math.prod(shape)
        check_size(needed, info.compress_size, shape, ratio=ratio)
        check_memory(needed, shape, max_bytes)
        # The check sum is verified with the last byte, so nothing may be left over.
        if stream.tell() + needed != info.file_size:
            raise FormatError(
                f"is corrupt: {name} has {info.file_size} bytes, expected "
                f"{stream.tell() + needed} for {shape} values of {dtype}"
            )
        content = np.empty(needed, np.uint8)
        count = 0
        with library_call():
            while piece := stream.read(PIECE):
                content[count : count + len(piece)] = np.frombuffer(piece, np.uint8)
                count += len(piece)
    if count < needed:
        raise FormatError(f"is incomplete: {name} ends after {count} bytes of {needed}")
    return np.ndarray(shape, dtype, buffer=content, order="F" if fortran_order else "C")


def _label_names(pairs: NDArray[Any]) -> dict[int, str]:
    """The names of labels as `write` stores them: rows of a label and its name."""
    try:
        return {int(label): str(name) for label, name in pairs}
    except (TypeError, ValueError) as error:
        raise FormatError(f"has names that are no pairs of a label and a name: {error}") from error


def _key(wanted: str, keys: list[str]) -> str:
    """The array that is meant: the one asked for, or the one there is."""
    if wanted:
        if wanted not in keys:
            raise FormatError(f"has no array {wanted!r}; it holds {', '.join(keys) or 'nothing'}")
        return wanted
    if "probabilities" in keys:
        return "probabilities"
    values = [key for key in keys if key not in BESIDE]
    if len(values) != 1:
        raise FormatError(
            f"holds {len(values)} arrays ({', '.join(values) or 'none'}): "
            f"say which one, as in file.npz:{values[0] if values else 'key'}"
        )
    return values[0]


def _nnunet(path: Path, array: NDArray[Any]) -> Image:
    """nnU-Net's export of probabilities, and the label image that lies beside it."""
    label_file = label_image(path)
    if label_file is not None and label_file.suffix == ".png":  # a photograph: (region, 1, y, x)
        return Image(array[:, 0] if array.shape[1] == 1 else array, regions=0)
    return Image(array.transpose(0, 3, 2, 1), regions=0, beside=label_file)


def label_image(path: Path) -> Path | None:
    """The label image beside nnU-Net's probabilities, which says where they lie."""
    candidates = (Path(f"{path.with_suffix('')}{suffix}") for suffix in LABEL_FILES)
    return next((file for file in candidates if file.exists()), None)


def regions_of_plain(array: Array) -> int | None:
    """The axis of the regions, by the rule for plain arrays; None for labels."""
    if array.dtype.kind != "f" or not array.shape:
        return None
    whole_above_one = fraction_in(array) is None and beyond_one(array) is not None
    return None if whole_above_one else 0
