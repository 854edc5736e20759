"""NumPy's files: .npy, memory-mapped, and .npz. Pickled objects are never loaded.

They mean what the same array means in memory: integers are labels, floating numbers are
probabilities with the regions along the first axis. Floating whole numbers above 1 can only be
labels. There is no geometry, with two exceptions: an .npz that probdice wrote, and nnU-Net's
`probabilities`, whose axes (region, z, y, x) are turned into (region, x, y, z) and whose geometry
is that of the label image of the same name beside it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.errors import FormatError
from probdice.files.meaning import beyond_one, fraction_in
from probdice.files.model import Format, Image, Payload, Source
from probdice.segmentation import Array

__all__ = ["NPY", "NPZ", "regions_of_plain"]

WRITTEN = ("labels", "regions", "map")  # the keys that `write` uses, beside affine and names
LABEL_FILES = (".nii.gz", ".nii", ".nrrd", ".mha", ".mhd", ".tif", ".tiff", ".png")  # nnU-Net's


def _is_npy(source: Source) -> bool:
    return source.head[:6] == b"\x93NUMPY"


def _read_npy(source: Source) -> Image:
    with _no_pickles():
        array = np.load(source.path, mmap_mode="r", allow_pickle=False)
    return Image(array, regions=regions_of_plain(array), assumed=True)


def _write_npy(path: Path, payload: Payload) -> None:
    with path.open("wb") as stream:
        np.save(stream, payload.array, allow_pickle=False)


NPY = Format("NPY", (".npy",), _is_npy, _read_npy, (".npy",), _write_npy)


def _is_npz(source: Source) -> bool:
    return source.head[:4] == b"PK\x03\x04"


def _read_npz(source: Source) -> Image:
    # np.load leaves the file open when it is damaged, so it is opened here.
    with source.path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
        key = _key(source.inside.strip("/"), file.files)
        with _no_pickles():
            array = file[key]
        if key == "probabilities" and array.ndim == 4:
            return _nnunet(source.path, array)
        affine = file["affine"] if key in WRITTEN and "affine" in file.files else None
        names = file["names"].tolist() if key in WRITTEN and "names" in file.files else None
    if key == "labels":
        given = {} if names is None else {int(label): name for label, name in names}
        return Image(array, affine=affine, label_names=given)
    if key == "map":
        return Image(array, affine=affine)
    if key == "regions":
        return Image(array, regions=0, affine=affine, region_names=names)
    return Image(array, regions=regions_of_plain(array), assumed=True)


def _write_npz(path: Path, payload: Payload) -> None:
    key = "labels" if payload.labels else "regions" if payload.regions else "map"
    arrays: dict[str, Any] = {key: payload.array}
    if payload.geometry is not None:
        arrays["affine"] = payload.geometry.affine
    if payload.labels and payload.label_names:
        arrays["names"] = np.array([(str(k), v) for k, v in payload.label_names.items()])
    if payload.regions:
        arrays["names"] = np.array([str(name) for name in payload.region_names])
    with path.open("wb") as stream:
        np.savez_compressed(stream, **arrays)


NPZ = Format("NPZ", (".npz",), _is_npz, _read_npz, (".npz",), _write_npz)


# NumPy parses the header of a file as Python, which CPython 3.11 cannot do on two threads at once.
_parsing = Lock()


@contextmanager
def _no_pickles() -> Iterator[None]:
    try:
        with _parsing:
            yield
    except ValueError as error:
        if "allow_pickle" in str(error) or "Python objects" in str(error):
            raise FormatError(
                "holds pickled Python objects, which are never loaded since they can run code; "
                "save an array of numbers"
            ) from error
        raise


def _key(wanted: str, keys: list[str]) -> str:
    """The array that is meant: the one asked for, or the one there is."""
    if wanted:
        if wanted not in keys:
            raise FormatError(f"has no array {wanted!r}; it holds {', '.join(keys) or 'nothing'}")
        return wanted
    if "probabilities" in keys:
        return "probabilities"
    values = [key for key in keys if key not in ("affine", "names")]
    if len(values) != 1:
        raise FormatError(
            f"holds {len(values)} arrays ({', '.join(values) or 'none'}): "
            f"say which one, as in file.npz:{values[0] if values else 'key'}"
        )
    return values[0]


def _nnunet(path: Path, array: NDArray[Any]) -> Image:
    """nnU-Net's export of probabilities, and the label image that lies beside it."""
    stem = path.with_suffix("")
    found = [f for f in (Path(f"{stem}{suffix}") for suffix in LABEL_FILES) if f.exists()]
    if found and found[0].suffix == ".png":  # a photograph: (region, 1, y, x)
        return Image(array[:, 0] if array.shape[1] == 1 else array, regions=0)
    turned = array.transpose(0, 3, 2, 1)
    return Image(turned, regions=0, beside=found[0] if found else None)


def regions_of_plain(array: Array) -> int | None:
    """The axis of the regions, by the rule for plain arrays; None for labels."""
    if array.dtype.kind != "f" or not array.shape:
        return None
    whole_above_one = fraction_in(array) is None and beyond_one(array) is not None
    return None if whole_above_one else 0
