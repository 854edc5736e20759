"""HDF5 (extra `hdf5`): `file.h5:/path/to/dataset`; the path may be left out where there is one.

ilastik says in `axistags` which axis is which. Without them, floating numbers along up to three
axes are one value per pixel, and along four the probabilities of regions, which come first.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.errors import FormatError
from probdice.files.lazy import Lazy
from probdice.files.model import Format, Image, Source, need

__all__ = ["HDF5", "OnDisk", "datasets"]

SIGNATURE = b"\x89HDF\r\n\x1a\n"


def _recognises(source: Source) -> bool:
    head = source.head
    found = any(head[at : at + 8] == SIGNATURE for at in (0, 512, 1024, 2048))
    return found and not source.name.endswith(".mnc")  # MINC is HDF5 too, and SimpleITK reads it


def _read(source: Source) -> Image:
    h5py = need("h5py", "hdf5", "reading HDF5")
    file = h5py.File(source.path, "r")
    dataset = _dataset(h5py, file, source.inside)
    array = OnDisk(dataset, source.path)
    axes = _axes(dataset)
    if axes is None:
        channels = 0 if len(array.shape) == 4 and array.dtype.kind == "f" else None
        return Image(array, regions=channels, assumed=True)
    if "c" not in axes:
        return Image(array)
    return Image(array, regions=axes.index("c"))


HDF5 = Format("HDF5", (".h5", ".hdf5", ".hdf", ".ilp"), _recognises, _read)


class OnDisk(Lazy):
    """A data set in a file, whose damaged parts are an error of ours when they are read."""

    def __init__(self, dataset: Any, path: Path) -> None:
        self.dataset, self.path = dataset, path
        self.shape, self.dtype = tuple(dataset.shape), dataset.dtype

    def block(self, index: tuple[slice, ...]) -> NDArray[Any]:
        try:
            return np.asarray(self.dataset[index])
        except (OSError, RuntimeError) as error:
            raise FormatError(f"{self.path}: is damaged or incomplete: {error}") from error


def datasets(h5py: Any, group: Any) -> list[str]:
    """The paths of all data sets of numbers."""
    found: list[str] = []

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.dtype.kind in "biuf" and item.shape:
            found.append(f"/{name}")

    group.visititems(visit)
    return found


def _dataset(h5py: Any, file: Any, inside: str) -> Any:
    there = datasets(h5py, file)
    listed = ", ".join(f"{name} {file[name].shape}" for name in there[:12]) or "none"
    listed += ", …" if len(there) > 12 else ""
    if inside:
        if not isinstance(file.get(inside), h5py.Dataset):
            raise FormatError(f"has no data set {inside!r}; it holds {listed}")
        return file[inside]
    if len(there) != 1:
        example = there[0] if there else "/path"
        raise FormatError(
            f"holds {len(there)} data sets ({listed}): say which one, as in file.h5:{example}"
        )
    return file[there[0]]


def _axes(dataset: Any) -> str | None:
    """The keys of the axes, such as "zyxc", where the file says so."""
    tags = dataset.attrs.get("axistags")
    if tags is None:
        return None
    try:
        keys = [axis["key"] for axis in json.loads(tags)["axes"]]
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"has axistags that are not those of ilastik: {tags!r}") from error
    if len(keys) != len(dataset.shape):
        raise FormatError(f"has {len(keys)} axistags for an array of shape {dataset.shape}")
    return "".join(keys)
