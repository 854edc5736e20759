"""Read HDF5 (extra `hdf5`): `file.h5:/path/to/dataset`, or `file.h5` with a single dataset.

The `axistags` of ilastik define the axes, so spatial axes in any order become z, y and x. A time
axis of length 1 is dropped. Without `axistags`, a floating-point array with four axes contains the
probabilities of regions, with the regions along the first axis. A floating-point array with any
other number of axes contains one value per voxel.
"""

import json
import math
import os
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from probdice.data.arrays import Array, regular_chunks
from probdice.data.lazy_arrays import Dropped, Lazy, reordered
from probdice.data.value_checks import zeros_and_ones
from probdice.errors import FormatError
from probdice.files.child_messages import Dtype, Size
from probdice.files.containment import Filling, ReaderResult, grant, run_in_child
from probdice.files.corrupt import (
    DEFLATE_RATIO,
    check_chunk_size,
    check_size,
    corrupt,
    library_call,
    select_name,
)
from probdice.files.model import ContainedArray, Format, Image, Source, expect, meaning_of, need

__all__ = ["HDF5", "check_dataset", "datasets", "filling_of", "open_file"]

SIGNATURE = b"\x89HDF\r\n\x1a\n"
AXES = "tzyx"  # the order of the axes of an image with axistags, as in TIFF
MAX_COMPRESSION_RATIO = 1 << 16  # largest compression ratio of filters other than gzip


def _recognises(source: Source) -> bool:
    head = source.head
    signed = any(head[at : at + 8] == SIGNATURE for at in (0, 512, 1024, 2048))
    return signed and not source.name.endswith(".mnc")  # SimpleITK reads MINC, which is HDF5 too


class _Dataset(TypedDict):
    """The properties of a numeric dataset."""

    name: str
    shape: list[Size]
    dtype: Dtype
    chunks: list[Size] | None
    axes: str | None
    version: list[Size]  # the version of the file, from `_version`


def _read(source: Source) -> Image:
    dataset = _run_in_child(source, find_dataset, source.inside, returns=_Dataset)
    name = f"{source.path}:{source.inside}" if source.inside else str(source.path)
    array = Hdf5Array(source.path, dataset, name)
    if dataset["axes"] is not None:
        return _image_of_tagged(array, dataset["axes"])
    regions = None if array.dtype.kind != "f" else _region_axis(dataset)
    return Image(array, regions=regions, assumed=True)


def _image_of_tagged(array: Array, axes: str) -> Image:
    """Create an image whose axes are t, z, y and x, with the region axis at its stored position."""
    time = axes.find("t")
    if time >= 0 and array.shape[time] == 1:
        array, axes = Dropped(array, time), axes[:time] + axes[time + 1 :]
    image_axes = [k for k, key in enumerate(axes) if key != "c"]
    remaining = iter(sorted(image_axes, key=lambda k: AXES.find(axes[k])))
    order = [k if key == "c" else next(remaining) for k, key in enumerate(axes)]
    return Image(reordered(array, order, ()), regions=axes.index("c") if "c" in axes else None)


def _contents(source: Source) -> list[ContainedArray]:
    """List every numeric dataset."""
    contents = []
    for dataset in _run_in_child(source, list_datasets, returns=list[_Dataset]):
        shape, dtype = tuple(dataset["shape"]), np.dtype(dataset["dtype"])
        regions = _region_axis(dataset)
        meaning = meaning_of(shape, dtype, regions, labels=regions is None)
        contents.append(ContainedArray(dataset["name"], shape, dtype, meaning))
    return contents


def _run_in_child(source: Source, reader: Any, *arguments: Any, returns: Any) -> Any:
    expect("h5py", "hdf5", "reading HDF5")
    max_bytes = source.max_bytes
    return run_in_child(
        reader, source.path, *arguments, returns=returns, library="h5py", max_bytes=max_bytes
    ).value


def _region_axis(dataset: _Dataset) -> int | None:
    """Return the region axis: ilastik's axis "c" or, without axistags, the first of four axes."""
    if dataset["axes"] is None:
        return 0 if len(dataset["shape"]) == 4 else None
    return dataset["axes"].index("c") if "c" in dataset["axes"] else None


HDF5 = Format("HDF5", (".h5", ".hdf5", ".hdf", ".ilp"), _recognises, _read, contents=_contents)


class Hdf5Array(Lazy):
    """A dataset in a file. The values remain on disk, and one box is read at a time.

    If a child process can be started, only the child imports h5py. Reading then takes 1.1 to 1.5
    times as long as with h5py in this process.
    """

    def __init__(self, path: Path, dataset: _Dataset, source: str) -> None:
        self.path, self.dataset, self.source = os.path.abspath(path), dataset, source
        self.shape, self.dtype = tuple(dataset["shape"]), np.dtype(dataset["dtype"])
        self.chunk = tuple(dataset["chunks"] or ())
        self.chunks = regular_chunks(self.shape, self.chunk)

    def block(self, index: tuple[slice, ...]) -> NDArray[Any]:
        """Return the values of a block, which is given by one slice per axis."""
        parts = [part.indices(size) for part, size in zip(index, self.shape, strict=True)]
        shape = tuple(len(range(*part)) for part in parts)
        if not math.prod(shape):
            return np.empty(shape, self.dtype)
        needed = (math.prod(shape) + math.prod(self.chunk)) * self.dtype.itemsize
        name, version = self.dataset["name"], self.dataset["version"]
        try:
            answer = run_in_child(
                read_box,
                Path(self.path),
                *(name, version, parts, needed),
                returns=None,
                library="h5py",
                max_bytes=needed,
            )
            (array,) = answer.arrays or (None,)
            if array is None or array.shape != shape or array.dtype != self.dtype:
                raise corrupt("the result of h5py is invalid")
        except FormatError as error:  # `read` has returned and no longer adds the file name
            raise FormatError(f"{self.source}: ", *error.args) from error
        except OSError as error:  # for example, the file was deleted
            reason = error.strerror or error
            raise FormatError(f"{self.source}: cannot be read: {reason}") from error
        return zeros_and_ones(array)


# -- in the child process --------------------------------------------------------------------------


def find_dataset(file: str, inside: str) -> ReaderResult:
    """Find the dataset with this path, or the only dataset, and check its size."""
    h5py = need("h5py", "hdf5", "reading HDF5")
    with open_file(h5py, file) as content:
        dataset = _dataset(h5py, content, inside)
        check_dataset(dataset, Path(file))
        return ReaderResult(_described(dataset, file))


def list_datasets(file: str) -> ReaderResult:
    """List every numeric dataset."""
    h5py = need("h5py", "hdf5", "reading HDF5")
    with open_file(h5py, file) as content:
        numeric = datasets(h5py, content).values()
        return ReaderResult([_described(dataset, file) for dataset in numeric])


def read_box(
    file: str, name: str, version: list[int], parts: list[list[int]], needed: int
) -> ReaderResult:
    """Read the values of a box, which is given by one slice per axis."""
    h5py = need("h5py", "hdf5", "reading HDF5")
    if _version(file) != list(version):
        raise FormatError("was modified while it was being read. Read it again.")
    grant(needed)
    content = open_file(h5py, file)  # `Filling.fill` closes it
    with library_call():
        dataset = content[name]
    box = tuple(slice(start, stop, step) for start, stop, step in parts)
    shape = tuple(len(range(*part)) for part in parts)
    return ReaderResult(None, (filling_of(content, dataset, box, shape),))


def filling_of(content: Any, dataset: Any, box: Any, shape: tuple[int, ...]) -> Filling:
    """Return a `Filling` that reads a part of a dataset.

    The file is closed once the array has been filled.
    """

    def fill(target: NDArray[Any]) -> None:
        with content, library_call():
            dataset.read_direct(target, box)

    return Filling(shape, dataset.dtype, fill)


def open_file(h5py: Any, file: str) -> Any:
    """Open an HDF5 file for reading."""
    with library_call():
        return h5py.File(file, "r")


def _described(dataset: Any, file: str) -> dict[str, Any]:
    with library_call():
        return {
            "name": dataset.name,
            "shape": dataset.shape,
            "dtype": dataset.dtype.str,
            "chunks": dataset.chunks,
            "axes": _axes(dataset),
            "version": _version(file),
        }


def _version(file: str) -> list[int]:
    """Return the device, inode, size and modification time, which identify a version of a file."""
    status = os.stat(file)
    return [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns]


def datasets(h5py: Any, group: Any) -> dict[str, Any]:
    """Return a mapping from paths to all numeric datasets in a group, except single numbers."""
    numeric: dict[str, Any] = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.dtype.kind in "biuf" and item.shape:
            numeric[f"/{name}"] = item

    with library_call():
        group.visititems(visit)
    return numeric


def check_dataset(dataset: Any, path: Path) -> None:
    """Reject a dataset that declares more values than the file can contain."""
    with library_call():
        shape, chunks, itemsize = tuple(dataset.shape), dataset.chunks, dataset.dtype.itemsize
        stored = dataset.id.get_storage_size()
        elsewhere = dataset.is_virtual or bool(dataset.external)
        ratio = DEFLATE_RATIO if dataset.compression == "gzip" else MAX_COMPRESSION_RATIO
    if elsewhere or not math.prod(shape):
        return
    size = path.stat().st_size
    if stored == 0:
        raise corrupt(f"{dataset.name} has no stored values")
    if chunks is None:
        check_size(itemsize * math.prod(shape), min(stored, size), shape)
    else:
        if len(chunks) != len(shape):
            raise corrupt(f"its shape is {shape}, but the shape of its chunks is {chunks}")
        check_chunk_size(shape, chunks, itemsize)
        chunk = f"a chunk of shape {tuple(chunks)}"
        check_size(itemsize * math.prod(chunks), size, chunk, ratio=ratio)
        # Unwritten chunks take no space, but reading them takes time.
        check_size(itemsize * math.prod(shape), size, shape, ratio=MAX_COMPRESSION_RATIO)


def _dataset(h5py: Any, file: Any, inside: str) -> Any:
    """Return the dataset at the path `inside`, or the only numeric dataset."""
    numeric = datasets(h5py, file)
    with library_call():
        linked = file.get(inside) if inside else None  # links are not listed
    if isinstance(linked, h5py.Dataset) and linked.dtype.kind in "biuf" and linked.shape:
        return linked
    shown = [f"{name} {dataset.shape}" for name, dataset in numeric.items()]
    return numeric[select_name(inside, list(numeric), "datasets", "file.h5:", shown)]


def _axes(dataset: Any) -> str | None:
    """Return the keys of the axes, such as "zyxc", or None if there are no `axistags`."""
    with library_call():
        tags = dataset.attrs.get("axistags")
    if tags is None:
        return None
    try:
        keys = [axis["key"] for axis in json.loads(tags)["axes"]]
        if any(len(key) != 1 for key in keys):
            raise ValueError("the key of an axis is one letter")
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"has axistags that are not in ilastik's format: {tags!r}") from error
    if len(keys) != len(dataset.shape):
        raise FormatError(f"has {len(keys)} axistags, but its array has {len(dataset.shape)} axes")
    return "".join(keys)
