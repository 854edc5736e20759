"""Read Zarr (formats 2 and 3) and OME-Zarr from a folder or a URL, and write them to a folder.

Reading and writing require the extra `zarr`.

An OME-Zarr image has one or more resolution levels. The first level is read unless the path selects
another level. An image with a geometry is written as OME-Zarr 0.5. An image without a geometry is
written as a plain array. Arrays remain in their store, and their chunks are decoded on demand.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.data.arrays import REGION_DIMENSIONS, chunks_of
from probdice.data.geometry import Geometry
from probdice.data.lazy_arrays import Lazy, reordered
from probdice.data.value_checks import zeros_and_ones
from probdice.errors import FormatError, InputError, MissingExtraError, ProbdiceError
from probdice.files.corrupt import check_chunk_size, check_memory, corrupt, one_line, select_name
from probdice.files.description import DESCRIPTION, description_of, with_description
from probdice.files.model import ContainedArray, Format, Image, Payload, Source, meaning_of, need
from probdice.files.numpy_files import OBJECTS
from probdice.files.ome_zarr import (
    Level,
    image_metadata,
    label_images_in,
    levels_of,
    naming_metadata,
    order_and_flips,
)
from probdice.files.sources import is_store, is_url

__all__ = ["ZARR", "NewStore", "ZarrArray", "is_upright"]

MAX_CHUNKS_PER_AXIS = 1 << 20
# Largest size of a chunk in bytes, and largest ratio of the size of a larger chunk to its image.
MAX_CHUNK_BYTES, MAX_CHUNK_RATIO = 1 << 25, 8
EDGE = {1: 2**20, 2: 1024, 3: 128}  # edge length of written chunks, by the number of axes
CHANNEL = {"c", *REGION_DIMENSIONS}


def _recognises(source: Source) -> bool:
    return bool(source.store)


def _read(source: Source) -> Image:
    with _metadata():
        image = _image_at(source.store)
    chunk = tuple(max(lengths, default=0) for lengths in chunks_of(image.array) or ())
    size = math.prod(chunk) * image.array.dtype.itemsize
    check_memory(size, f"a chunk of shape {chunk}", source.max_bytes)
    return image


def _contents(source: Source) -> list[ContainedArray]:
    """List the images in a group, and the arrays that are not levels of an image."""
    with _metadata():
        node = _open(source.store)
        if _is_array(node) or levels_of(node):
            return []
        images = {inside: _image_at(f"{source.store}/{inside}") for inside in _inside(node)}
    contents = []
    for inside, image in images.items():
        shape, dtype = tuple(image.array.shape), image.array.dtype
        meaning = meaning_of(shape, dtype, image.regions, labels=image.regions is None)
        contents.append(ContainedArray(f"/{inside}", shape, dtype, meaning, joint=""))
    return contents


@contextmanager
def _metadata() -> Iterator[None]:
    """Convert exceptions due to invalid metadata to `FormatError`.

    Metadata may contain values of any type, so the exceptions have several types.
    """
    try:
        yield
    except ProbdiceError:
        raise
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise corrupt(f"its metadata are invalid ({type(error).__name__}: {error})") from error


def _image_at(store: str) -> Image:
    """Read the array at a path, or the image of the group at this path."""
    node = _open(store)
    if not _is_array(node):
        return _image_of_group(node, store)
    level = _level_at(store)
    return _plain(node, store) if level is None else level.read(ZarrArray(node, store))


def _image_of_group(group: Any, store: str) -> Image:
    """Read the first level of a group's image, or the only image or array in the group."""
    levels = levels_of(group)
    name = store.rstrip("/").split("/")[-1]
    if levels:
        array = _open(f"{store}/{levels[0].path}")
        _check_no_intensities(array, store, levels[0])
        return levels[0].read(ZarrArray(array, store))
    paths = list(_inside(group))
    if not paths and is_url(store):
        raise FormatError(
            f"no image or array was found by listing the store, which the server may not support. "
            f"Add the path of an array, for example {name}/0."
        )
    inside = select_name("", paths, "images or arrays", f"{name}/")
    return _image_at(f"{store}/{inside}")


def _level_at(store: str) -> Level | None:
    """Return the metadata of an array that is a level of an image, or None for other arrays."""
    parent, _, name = store.rstrip("/").rpartition("/")
    if not is_url(store) and not is_store(Path(parent)):
        return None
    try:
        levels = levels_of(_open(parent))
    except FormatError:
        return None
    return next((level for level in levels if level.path == name), None)


def _plain(array: Any, store: str) -> Image:
    """Convert an array without OME-Zarr metadata to an `Image`. The axes may have names."""
    names = getattr(array.metadata, "dimension_names", None) or array.attrs.get("_ARRAY_DIMENSIONS")
    values = ZarrArray(array, store)
    named = [k for k, name in enumerate(names or ()) if str(name).lower() in CHANNEL]
    if named:
        image = Image(values, regions=named[0])
    else:
        plain = not names and len(values.shape) == 4 and values.dtype.kind == "f"
        image = Image(values, regions=0 if plain else None, assumed=True)
    return with_description(image, array.attrs.get(DESCRIPTION))


def _check_no_intensities(array: Any, store: str, level: Level) -> None:
    """Reject an integer image that has label images, because it probably contains intensities."""
    if level.labels is not None or array.dtype.kind not in "iu":
        return
    try:
        names = label_images_in(_open(f"{store}/labels"))
    except FormatError:
        return
    if names:
        name = store.rstrip("/").split("/")[-1]
        raise FormatError(
            f"contains a {array.dtype} image and label images ({', '.join(names)}). Select one, "
            f"for example {name}/labels/{names[0]}, or {name}/{level.path} for the image."
        )


def _inside(group: Any) -> Iterator[str]:
    """Yield the paths of all images in a group, and of arrays that are not levels of an image."""
    try:
        members = sorted(group.members(max_depth=None))
    except Exception:  # the server does not support listing
        return
    images = [name for name, node in members if not _is_array(node) and levels_of(node)]
    for name, node in members:
        within = any(name.startswith(f"{image}/") for image in images)
        if name in images or (_is_array(node) and node.shape and not within):
            yield name


# -- stores ----------------------------------------------------------------------------------------


def _is_array(node: Any) -> bool:
    return hasattr(node, "shape")


def _open(store: str) -> Any:
    """Open the array or group at a path."""
    zarr = need("zarr", "zarr", "reading Zarr")
    try:
        node = zarr.open(store, mode="r")
        _check_no_objects(node)
        if _is_array(node):
            _check_chunks(node)
        return node
    except FileNotFoundError:
        raise FormatError(f"no Zarr array or group found{_neighbours(store)}") from None
    except ImportError as error:
        raise MissingExtraError(f"this type of URL needs another package: {error}") from None
    except ProbdiceError:
        raise
    except Exception as error:
        raise FormatError(f"cannot be opened as Zarr: {one_line(error)}") from error


def _check_no_objects(node: Any) -> None:
    """Reject pickled chunks, which could run code."""
    metadata = node.metadata
    codecs = [*(getattr(metadata, "filters", None) or ()), getattr(metadata, "compressor", None)]
    if any(getattr(codec, "codec_id", "") == "pickle" for codec in codecs):
        raise FormatError(OBJECTS)


def _check_chunks(node: Any) -> None:
    """Reject an array if its chunks have length 0 or are too many, too small or too large.

    Zarr lists all chunks and decompresses whole chunks, so many chunks take time, and large chunks
    take memory.
    """
    lengths = zip(node.shape, node.chunks, strict=True)
    counts = [-(-length // chunk) if chunk > 0 else 0 for length, chunk in lengths]
    size = math.prod(node.chunks) * node.dtype.itemsize
    image = math.prod(node.shape) * node.dtype.itemsize
    check_chunk_size(node.shape, node.chunks, node.dtype.itemsize)
    if (
        min(node.chunks, default=1) < 1
        or max(counts, default=0) > MAX_CHUNKS_PER_AXIS
        or size > max(MAX_CHUNK_BYTES, MAX_CHUNK_RATIO * image)
    ):
        raise corrupt(
            f"its chunks of shape {tuple(node.chunks)} are empty, too many or too large for its "
            f"shape {tuple(node.shape)}"
        )


def _neighbours(store: str) -> str:
    """Return a text that lists the content of the nearest existing store above a missing path."""
    if is_url(store):
        return ""
    for parent in Path(store).parents:
        if is_store(parent):
            node = _open(str(parent))
            listed = ", ".join(_inside(node)) if not _is_array(node) else "one array"
            return f"; {parent} contains {listed or 'nothing'}"
    return ""


class ZarrArray(Lazy):
    """An array in a store, whose chunks are decoded on demand."""

    reopenable = True

    def __init__(self, array: Any, source: str) -> None:
        from probdice.files.chunks import with_size_limits  # needs the extra

        self.array, self.source = with_size_limits(array), source
        self.shape, self.dtype = tuple(array.shape), array.dtype
        self.chunks = chunks_of(array)

    def __reduce__(self) -> Any:
        # Codecs inside shards are pickled without their limits, so the limits are added again.
        return ZarrArray, (self.array, self.source)

    def block(self, index: tuple[slice, ...]) -> NDArray[Any]:
        """Return the values of a block, which is given by one slice per axis."""
        try:
            return zeros_and_ones(np.asarray(self.array[index]))
        except MemoryError:
            raise
        except Exception as error:  # codec and network libraries raise exceptions of any type
            chunk = self._failing(index)
            raise FormatError(
                f"{self.source}: chunk {chunk} cannot be read: {one_line(error)}"
            ) from error

    def _failing(self, index: tuple[slice, ...]) -> tuple[int, ...]:
        """Return the index of the first unreadable chunk in a block, for messages."""
        length = self.array.chunks
        bounds = [part.indices(n) for part, n in zip(index, self.shape, strict=True)]
        touched = [
            range(start // step, -(-stop // step))
            for (start, stop, _), step in zip(bounds, length, strict=True)
        ]
        for chunk_index in product(*touched):
            try:
                self.array[
                    tuple(
                        slice(k * n, (k + 1) * n) for k, n in zip(chunk_index, length, strict=True)
                    )
                ]
            except Exception:
                return chunk_index
        return tuple(part.start for part in touched)


# -- writing ---------------------------------------------------------------------------------------


def _write(path: Path, payload: Payload) -> None:
    array = payload.array
    if payload.geometry is not None:
        order, flips = order_and_flips(payload.geometry)
        array = np.asarray(reordered(array, order, flips, int(payload.regions)))
    new = NewStore(path, payload.geometry)
    new.array(array.shape, array.dtype, regions=payload.regions)[...] = array
    new.describe(replace(payload, array=array))


class NewStore:
    """A new store. The method `array` creates the array, and `describe` stores the metadata.

    With a geometry, the store is an OME-Zarr image whose spatial axes are z, y and x (y and x in
    2-D). Regions are stored along an additional first axis, c. Otherwise, the store
    is a plain array.
    """

    def __init__(
        self, path: Path, geometry: Geometry | None, chunks: tuple[int, ...] | None = None
    ):
        self.path, self.geometry, self.chunks = path, geometry, chunks
        self._node: Any = None  # the array, or the group of an OME-Zarr image

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any], *, regions: bool = False) -> Any:
        """Create the array, filled with 0. With `regions`, the first axis is the region axis."""
        zarr = need("zarr", "zarr", "writing Zarr")
        axes = len(shape) - regions
        chunks = self.chunks or tuple(min(n, EDGE.get(axes, 32)) for n in shape[regions:])
        space = "zyx"[3 - axes :] if axes <= 3 else [f"axis{k}" for k in range(axes)]
        options = {
            "shape": shape,
            "chunks": (1,) * regions + tuple(max(n, 1) for n in chunks),
            "dtype": dtype,
            "fill_value": 0,
            "dimension_names": [*["c"] * regions, *space],
        }
        if self.geometry is None:
            self._node = zarr.create_array(self.path, **options)
            return self._node
        if axes not in (2, 3):
            raise InputError(f"OME-Zarr stores images with 2 or 3 axes, found {axes}. Write .npz.")
        attributes = {"ome": image_metadata(self.geometry, regions=regions)}
        self._node = zarr.create_group(self.path, attributes=attributes)
        return self._node.create_array("0", **options)

    def describe(self, payload: Payload) -> None:
        """Store the names and colours of labels or regions."""
        if description := description_of(payload, names=self.geometry is None):
            self._node.attrs[DESCRIPTION] = description
        if self.geometry is not None:
            self._node.attrs["ome"] = self._node.attrs["ome"] | naming_metadata(payload)


def is_upright(geometry: Geometry | None) -> bool:
    """Return whether blocks can be written directly, without reordering or flipping axes."""
    if geometry is None:
        return True
    order, flips = order_and_flips(geometry)
    return not flips and order == tuple(range(len(order)))


ZARR = Format(
    "Zarr", (".zarr",), _recognises, _read, (".zarr",), _write, contents=_contents, folder=True
)
