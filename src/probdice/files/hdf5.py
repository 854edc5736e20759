"""HDF5 (extra `hdf5`): `file.h5:/path/to/dataset`; the path may be left out where there is one.

ilastik says in `axistags` which axis is which. Without them, floating numbers along up to three
axes are one value per pixel, and along four the probabilities of regions, which come first.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.arrays import chunks_of
from probdice.errors import FormatError
from probdice.files.damage import DEFLATE_RATIO, check_crumbs, check_size, library_call
from probdice.files.lazy import Lazy, zeros_and_ones
from probdice.files.model import Content, Format, Image, Source, meaning_of, need
from probdice.files.rehearsal import rehearse

__all__ = ["HDF5", "OnDisk", "check_dataset", "datasets", "opened"]

SIGNATURE = b"\x89HDF\r\n\x1a\n"

MOST_UNPACKING = 1 << 16  # what filters other than gzip make of a byte, at most


def _recognises(source: Source) -> bool:
    head = source.head
    signed = any(head[at : at + 8] == SIGNATURE for at in (0, 512, 1024, 2048))
    return signed and not source.name.endswith(".mnc")  # MINC is HDF5 too, and SimpleITK reads it


def _read(source: Source) -> Image:
    h5py = need("h5py", "hdf5", "reading HDF5")
    file = opened(h5py, source.path)  # stays open while blocks of it may be read
    try:
        dataset = _dataset(h5py, file, source.inside)
        check_dataset(dataset, source.path)
        axes = _axes(dataset)
    except FormatError:
        file.close()
        raise
    array = OnDisk(dataset, f"{source.path}:{source.inside}" if source.inside else str(source.path))
    if axes is None:
        channels = 0 if len(array.shape) == 4 and array.dtype.kind == "f" else None
        return Image(array, regions=channels, assumed=True)
    if "c" not in axes:
        return Image(array)
    return Image(array, regions=axes.index("c"))


def _contents(source: Source) -> list[Content]:
    """Every data set of numbers."""
    h5py = need("h5py", "hdf5", "reading HDF5")
    contents = []
    with library_call(), opened(h5py, source.path) as file:
        for name, dataset in datasets(h5py, file).items():
            axes = _axes(dataset)
            regions = 0 if axes is None and len(dataset.shape) == 4 else None
            if axes is not None and "c" in axes:
                regions = axes.index("c")
            whole = regions is None
            meaning = meaning_of(dataset.shape, dataset.dtype, regions, labels=whole)
            contents.append(Content(name, tuple(dataset.shape), dataset.dtype, meaning))
    return contents


HDF5 = Format("HDF5", (".h5", ".hdf5", ".hdf", ".ilp"), _recognises, _read, contents=_contents)


def opened(h5py: Any, path: Path) -> Any:
    """The file, which the library can be trusted with."""
    rehearse(path)
    with library_call():
        return h5py.File(path, "r")


class OnDisk(Lazy):
    """A data set in a file, whose damaged parts are an error of ours when they are read."""

    def __init__(self, dataset: Any, source: str) -> None:
        self.dataset, self.source = dataset, source
        self.shape, self.dtype = tuple(dataset.shape), dataset.dtype
        self.chunks = chunks_of(dataset)

    def block(self, index: tuple[slice, ...]) -> NDArray[Any]:
        """The values under one slice for each axis."""
        try:
            with library_call():
                return zeros_and_ones(np.asarray(self.dataset[index]))
        except FormatError as error:  # read later than the file was opened, so it is named here
            raise FormatError(f"{self.source}: {error}") from error


def datasets(h5py: Any, group: Any) -> dict[str, Any]:
    """All data sets of numbers by their paths."""
    numeric: dict[str, Any] = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.dtype.kind in "biuf" and item.shape:
            numeric[f"/{name}"] = item

    with library_call():
        group.visititems(visit)
    return numeric


def check_dataset(dataset: Any, path: Path) -> None:
    """Refuse a data set that the file cannot hold; chunks that were never written are zeros."""
    with library_call():
        shape, chunks, itemsize = tuple(dataset.shape), dataset.chunks, dataset.dtype.itemsize
        stored = dataset.id.get_storage_size()
        elsewhere = dataset.is_virtual or bool(dataset.external)
        ratio = DEFLATE_RATIO if dataset.compression == "gzip" else MOST_UNPACKING
    if elsewhere or not math.prod(shape):
        return
    size = path.stat().st_size
    if stored == 0:
        raise FormatError(f"is incomplete: no values of {dataset.name} were ever written")
    if chunks is None:
        check_size(itemsize * math.prod(shape), min(stored, size), shape)
    else:
        if len(chunks) != len(shape):
            raise FormatError(f"is damaged: its shape is {shape} in chunks of {chunks}")
        check_crumbs(shape, chunks, itemsize)
        check_size(itemsize * math.prod(chunks), size, chunks, ratio=ratio)
        # Chunks that were never written cost no space, but time.
        check_size(itemsize * math.prod(shape), size, shape, ratio=MOST_UNPACKING)


def _dataset(h5py: Any, file: Any, inside: str) -> Any:
    numeric = datasets(h5py, file)
    listed = ", ".join(f"{name} {numeric[name].shape}" for name in list(numeric)[:12]) or "none"
    listed += ", …" if len(numeric) > 12 else ""
    if inside:
        with library_call():
            dataset = file.get(inside)
        if not isinstance(dataset, h5py.Dataset):
            raise FormatError(f"has no data set {inside!r}; it holds {listed}")
        return dataset
    if len(numeric) != 1:
        example = next(iter(numeric), "/path")
        raise FormatError(
            f"holds {len(numeric)} data sets ({listed}): say which one, as in file.h5:{example}"
        )
    return next(iter(numeric.values()))


def _axes(dataset: Any) -> str | None:
    """The keys of the axes, such as "zyxc", where the file says so."""
    with library_call():
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
