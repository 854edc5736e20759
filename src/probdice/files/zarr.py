"""Read and write Zarr and OME-Zarr (extra `zarr`), formats 2 and 3, from a folder or a URL.

OME-Zarr 0.4 and 0.5 store the axes, the spacing and the origin. An image has several levels; the
first is read unless the path selects another. An image with a geometry is written as OME-Zarr 0.5,
one without as a plain array. Arrays stay in their store: chunks are decoded on demand.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.data.arrays import REGION_DIMENSIONS, Array, Lazy, chunks_of
from probdice.data.geometry import Geometry
from probdice.data.segmentation import reordered
from probdice.errors import FormatError, InputError, MissingExtraError, ProbdiceError
from probdice.files.corrupt import check_crumbs, check_memory
from probdice.files.description import DESCRIPTION, described, description_of
from probdice.files.lazy import Dropped, zeros_and_ones
from probdice.files.model import (
    Content,
    Format,
    Image,
    Payload,
    Source,
    as_colour,
    as_label,
    meaning_of,
    need,
)
from probdice.files.numpy_files import OBJECTS
from probdice.files.sources import is_store, is_url
from probdice.method.region_labels import Label, shown_labels

__all__ = ["ZARR", "NewStore", "Stored", "streams"]

# Units of OME-Zarr that microscopes and scanners use, in millimetres.
MILLIMETRES = {
    "angstrom": 1e-7,
    "nanometer": 1e-6,
    "micrometer": 1e-3,
    "millimeter": 1.0,
    "centimeter": 10.0,
    "meter": 1000.0,
}
MOST_CHUNKS = 1 << 20  # along an axis
LARGE, PADDED = 1 << 25, 8  # a larger chunk (bytes) may be at most PADDED times the image
WORLD = "xyz"  # the order of world axes
EDGE = {1: 2**20, 2: 1024, 3: 128}  # chunk length when writing, by the number of axes
VERSION = "0.5"  # OME-Zarr version when writing
CHANNEL = {"c", *REGION_DIMENSIONS}


def _recognises(source: Source) -> bool:
    return bool(source.store)


def _read(source: Source) -> Image:
    with _metadata():
        image = _image_at(source.store)
    chunk = tuple(max(lengths, default=0) for lengths in chunks_of(image.array) or ())
    check_memory(math.prod(chunk) * image.array.dtype.itemsize, chunk, source.max_bytes)
    return image


@contextmanager
def _metadata() -> Iterator[None]:
    """Convert errors from invalid metadata, whose values may have any type."""
    try:
        yield
    except ProbdiceError:
        raise
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise FormatError(
            f"is corrupt: its metadata are invalid ({type(error).__name__}: {error})"
        ) from error


def _image_at(store: str) -> Image:
    """Read the array, or the group with one image, at a path."""
    node = _open(store)
    if not hasattr(node, "shape"):
        return _image_of_group(node, store)
    level = _level_of(store)
    return _plain(node, store) if level is None else _image(node, store, level)


def _contents(source: Source) -> list[Content]:
    """List every image and every array of a group."""
    with _metadata():
        node = _open(source.store)
        if hasattr(node, "shape") or _multiscale(node) is not None:
            return []
        images = {inside: _image_at(f"{source.store}/{inside}") for inside in _inside(node)}
    contents = []
    for inside, image in images.items():
        shape, dtype = tuple(image.array.shape), image.array.dtype
        meaning = meaning_of(shape, dtype, image.regions, labels=image.regions is None)
        contents.append(Content(f"/{inside}", shape, dtype, meaning, joint=""))
    return contents


def _open(store: str) -> Any:
    """Open the array or group at a path."""
    zarr = need("zarr", "zarr", "reading Zarr")
    try:
        node = zarr.open(store, mode="r")
        _check_no_objects(node)
        _check_chunks(node)
        return node
    except FileNotFoundError:
        raise FormatError(f"no Zarr array or group found{_neighbours(store)}") from None
    except ImportError as error:
        raise MissingExtraError(f"this type of URL needs another package: {error}") from None
    except ProbdiceError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise FormatError(f"cannot be opened as Zarr: {reason}") from error


def _check_no_objects(node: Any) -> None:
    """Reject pickled chunks, which could run code."""
    metadata = node.metadata
    codecs = [*(getattr(metadata, "filters", None) or ()), getattr(metadata, "compressor", None)]
    if any(getattr(codec, "codec_id", "") == "pickle" for codec in codecs):
        raise FormatError(OBJECTS)


def _check_chunks(node: Any) -> None:
    """Reject invalid chunks: of length 0, too many, too small or too large.

    All chunks are listed, each costs time and memory, and a chunk is decompressed as a whole.
    """
    if not hasattr(node, "shape"):
        return
    lengths = zip(node.shape, node.chunks, strict=True)
    counts = [-(-length // chunk) if chunk > 0 else 0 for length, chunk in lengths]
    size = math.prod(node.chunks) * node.dtype.itemsize
    image = math.prod(node.shape) * node.dtype.itemsize
    check_crumbs(node.shape, node.chunks, node.dtype.itemsize)
    if (
        min(node.chunks, default=1) < 1
        or max(counts, default=0) > MOST_CHUNKS
        or size > max(LARGE, PADDED * image)
    ):
        raise FormatError(
            f"is corrupt: its shape is {tuple(node.shape)} in chunks of {tuple(node.chunks)}"
        )


def _neighbours(store: str) -> str:
    """List the content of the nearest existing store above a missing path."""
    if is_url(store):
        return ""
    for parent in Path(store).parents:
        if is_store(parent):
            node = _open(str(parent))
            listed = ", ".join(_inside(node)) if not hasattr(node, "shape") else "one array"
            return f"; {parent} contains {listed or 'nothing'}"
    return ""


# -- what is read --------------------------------------------------------------------------------


class Stored(Lazy):
    """An array in a store; its chunks are decoded on demand."""

    travels = True

    def __init__(self, array: Any, source: str) -> None:
        from probdice.files.chunks import bounded  # needs the extra

        self.array, self.source = bounded(array), source
        self.shape, self.dtype = tuple(array.shape), array.dtype
        self.chunks = chunks_of(array)

    def __reduce__(self) -> Any:
        return Stored, (self.array, self.source)  # codecs inside shards are pickled without bounds

    def block(self, index: tuple[slice, ...]) -> NDArray[Any]:
        """Return the values of one slice per axis."""
        try:
            return zeros_and_ones(np.asarray(self.array[index]))
        except MemoryError:
            raise
        except Exception as error:  # codec and network libraries raise exceptions of any type
            reason = " ".join(str(error).split()) or type(error).__name__
            where = self._failing(index)
            raise FormatError(f"{self.source}: chunk {where} cannot be read: {reason}") from error

    def _failing(self, index: tuple[slice, ...]) -> tuple[int, ...]:
        """Return the first chunk that cannot be read on its own."""
        length = self.array.chunks
        bounds = [part.indices(n) for part, n in zip(index, self.shape, strict=True)]
        touched = [
            range(start // step, -(-stop // step))
            for (start, stop, _), step in zip(bounds, length, strict=True)
        ]
        for place in product(*touched):
            try:
                self.array[
                    tuple(slice(k * n, (k + 1) * n) for k, n in zip(place, length, strict=True))
                ]
            except Exception:
                return place
        return tuple(part.start for part in touched)


def _image_of_group(group: Any, store: str) -> Image:
    """Read the image of a group, or its only array."""
    level = _multiscale(group)
    if level is not None:
        _check_no_intensities(group, store, level)
        path = _text(level["datasets"][0], "path")
        return _image(_open(f"{store}/{path}"), store, level | {"dataset": level["datasets"][0]})
    inside = list(_inside(group))
    if len(inside) != 1:
        listed = ", ".join(inside[:12]) + (", …" if len(inside) > 12 else "")
        raise FormatError(
            f"contains {len(inside)} images or arrays ({listed or 'none'}). Select one, for "
            f"example {store.rstrip('/').split('/')[-1]}/{inside[0] if inside else 'path'}"
        )
    return _image_at(f"{store}/{inside[0]}")


def _check_no_intensities(group: Any, store: str, level: Mapping[str, Any]) -> None:
    """Reject an integer image that has label images: it is the image that was segmented."""
    if "image-label" in level["attributes"]:
        return
    try:
        labels = _open(f"{store}/labels")
    except FormatError:
        return
    names = _ome(labels).get("labels") or []
    array = _open(f"{store}/{_text(level['datasets'][0], 'path')}")
    if names and array.dtype.kind in "iu":
        name = store.rstrip("/").split("/")[-1]
        raise FormatError(
            f"contains a {array.dtype} image and label images ({', '.join(map(str, names))}). "
            f"Select one, for example {name}/labels/{names[0]}, or "
            f"{name}/{level['datasets'][0]['path']} for the image"
        )


def _inside(group: Any) -> Iterator[str]:
    """Yield the paths of all images and arrays of a group, without the levels of images."""
    try:
        members = sorted(group.members(max_depth=None))
    except Exception:  # the server does not support listing
        return
    images = [name for name, node in members if not hasattr(node, "shape") and _multiscale(node)]
    for name, node in members:
        own = name in images
        within = any(name.startswith(f"{image}/") for image in images if image != name)
        if own or (hasattr(node, "shape") and node.shape and not within):
            yield name


def _ome(node: Any) -> Mapping[str, Any]:
    """Return the OME-Zarr metadata, which version 0.5 stores under the key "ome"."""
    attributes = dict(node.attrs)
    ome = attributes.get("ome")
    return ome if isinstance(ome, Mapping) else attributes


def _multiscale(group: Any) -> dict[str, Any] | None:
    """Return the first multiscale image of a group with the group's metadata, or None."""
    attributes = _ome(group)
    scales = attributes.get("multiscales")
    if not isinstance(scales, list) or not scales:
        return None
    if not isinstance(scales[0], Mapping) or not scales[0].get("datasets"):
        raise FormatError("is corrupt: its multiscales list no datasets")
    description = group.attrs.get(DESCRIPTION)
    return dict(scales[0]) | {"attributes": attributes, "description": description}


def _level_of(store: str) -> dict[str, Any] | None:
    """Return the metadata of the parent group if an array is a level of an image, or None."""
    parent, _, name = store.rstrip("/").rpartition("/")
    if not is_url(store) and not is_store(Path(parent)):
        return None
    try:
        level = _multiscale(_open(parent))
    except FormatError:
        return None
    if level is None:
        return None
    for dataset in level["datasets"]:
        if _text(dataset, "path") == name:
            return level | {"dataset": dataset}
    return None


def _image(array: Any, store: str, level: Mapping[str, Any]) -> Image:
    """Convert one level of an OME-Zarr image."""
    axes = _axes(level, len(array.shape))
    values: Array = Stored(array, store)
    spacing, origin = _transformed(level, len(axes))
    for axis in reversed(range(len(axes))):
        if axes[axis][1] == "time" and values.shape[axis] == 1:
            values = Dropped(values, axis)
            del axes[axis]
            spacing, origin = np.delete(spacing, axis), np.delete(origin, axis)
    regions = next((k for k, (_, kind, _) in enumerate(axes) if kind == "channel"), None)
    attributes = level["attributes"]
    labels = attributes.get("image-label")
    image = Image(
        values,
        regions=regions,
        kind="values" if labels is None else "labels",
        affine=_affine(axes, spacing, origin),
        label_names=_label_names(labels),
        region_names=None if regions is None else _channel_names(attributes, values.shape[regions]),
        colours=_colours(labels),
    )
    description = level.get("description")
    return described(image, description) if isinstance(description, str) else image


def _plain(array: Any, store: str) -> Image:
    """Convert an array without OME-Zarr metadata; its axes may have names."""
    names = getattr(array.metadata, "dimension_names", None) or array.attrs.get("_ARRAY_DIMENSIONS")
    values = Stored(array, store)
    named = [k for k, name in enumerate(names or ()) if str(name).lower() in CHANNEL]
    if named:
        image = Image(values, regions=named[0])
    else:
        plain = not names and len(values.shape) == 4 and values.dtype.kind == "f"
        image = Image(values, regions=0 if plain else None, assumed=True)
    description = array.attrs.get(DESCRIPTION)
    return described(image, description) if isinstance(description, str) else image


def _axes(level: Mapping[str, Any], count: int) -> list[tuple[str, str, str]]:
    """Return the name, type and unit of every axis."""
    given = level.get("axes")
    if given is None:  # versions before 0.3 always have five axes
        given = list("tczyx")
    axes = []
    for axis in given:
        entry = {"name": axis} if isinstance(axis, str) else axis
        name = _text(entry, "name")
        usual = {"t": "time", "c": "channel"}.get(name, "space")
        axes.append((name, str(entry.get("type", usual)), str(entry.get("unit", ""))))
    if len(axes) != count:
        raise FormatError(
            f"is corrupt: its metadata name {len(axes)} axes, but its array has {count}"
        )
    return axes


def _transformed(
    level: Mapping[str, Any], count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the spacing and the origin along every axis."""
    spacing, origin = np.ones(count), np.zeros(count)
    for holder in (level["dataset"], level):
        for step in holder.get("coordinateTransformations") or ():
            kind = step.get("type")
            values = step.get(kind) if kind in ("scale", "translation") else None
            if kind == "identity":
                continue
            if not isinstance(values, list) or len(values) != count:
                raise FormatError(
                    f"has an unsupported coordinate transformation: expected a scale or a "
                    f"translation of {count} numbers, found {dict(step)}"
                )
            if kind == "scale":
                spacing, origin = spacing * values, origin * values
            else:
                origin = origin + values
    return spacing, origin


def _affine(
    axes: Sequence[tuple[str, str, str]], spacing: NDArray[np.float64], origin: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the affine to millimetres; lengths without a unit are in millimetres."""
    image = [k for k, (_, kind, _) in enumerate(axes) if kind != "channel"]
    names = [axes[k][0] for k in image]
    world = sorted(names, key=lambda name: (name not in WORLD, WORLD.find(name), names.index(name)))
    affine = np.zeros((len(image) + 1, len(image) + 1))
    affine[-1, -1] = 1
    for column, k in enumerate(image):
        row, unit = world.index(axes[k][0]), MILLIMETRES.get(axes[k][2], 1.0)
        affine[row, column], affine[row, -1] = spacing[k] * unit, origin[k] * unit
    if not np.isfinite(affine).all() or not spacing[image].all():
        raise FormatError(
            f"its pixel spacing must be finite and not 0, found scale {spacing.tolist()}"
        )
    return affine


def _label_names(labels: Any) -> dict[int, str]:
    """Return the names of labels, or their classes if there are no names and no duplicates."""
    names: dict[int, str] = {}
    classes: dict[int, str] = {}
    for entry in _entries(labels, "properties"):
        value = entry.get("label-value")
        if isinstance(value, int):
            if entry.get("name"):
                names[value] = str(entry["name"])
            if entry.get("class"):
                classes[value] = str(entry["class"])
    distinct = len(set(classes.values())) == len(classes)
    return names or (classes if distinct else {})


def _colours(labels: Any) -> dict[int, str]:
    colours: dict[int, str] = {}
    for entry in _entries(labels, "colors"):
        value, rgba = entry.get("label-value"), entry.get("rgba")
        if isinstance(value, int) and isinstance(rgba, list):
            colour = as_colour(rgba[:3], 255)
            if colour:
                colours[value] = colour
    return colours


def _channel_names(attributes: Mapping[str, Any], count: int) -> list[Label] | None:
    channels = _entries(attributes.get("omero"), "channels")
    names = [str(entry.get("label") or "") for entry in channels]
    return [as_label(name) for name in names] if len(names) == count and all(names) else None


def _entries(holder: Any, name: str) -> list[Mapping[str, Any]]:
    """Return the list of objects under a key of the metadata; empty if there is none."""
    entries = holder.get(name) if isinstance(holder, Mapping) else None
    listed = entries if isinstance(entries, list) else []
    return [entry for entry in listed if isinstance(entry, Mapping)]


def _text(entry: Any, name: str) -> str:
    value = entry.get(name) if isinstance(entry, Mapping) else None
    if not isinstance(value, str) or not value:
        raise FormatError(f"is corrupt: its metadata need a {name}, found {entry!r}")
    return value


# -- what is written -----------------------------------------------------------------------------


def _write(path: Path, payload: Payload) -> None:
    order, flips = _upright(payload.geometry)
    array = payload.array
    if payload.geometry is not None:
        array = np.asarray(reordered(array, order, flips, int(payload.regions)))
    new = NewStore(path, payload.geometry)
    new.array(array.shape, array.dtype, regions=payload.regions)[...] = array
    new.describe(replace(payload, array=array))


class NewStore:
    """A store to write: first an array to fill, then its metadata.

    With a geometry it is an OME-Zarr image with the axes z, y, x, otherwise a plain array.
    """

    def __init__(
        self, path: Path, geometry: Geometry | None, chunks: tuple[int, ...] | None = None
    ):
        self.path, self.geometry, self.chunks = path, geometry, chunks
        self._group: Any = None
        self._array: Any = None
        self._ome: dict[str, Any] = {}

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any], *, regions: bool = False) -> Any:
        """Create the empty array; with `regions`, its first axis is the region axis."""
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
            self._array = zarr.create_array(self.path, **options)
            return self._array
        if axes not in (2, 3):
            raise InputError(f"OME-Zarr stores images of 2 or 3 axes, found {axes}. Write .npz")
        self._ome = {"version": VERSION, "multiscales": [_multiscales(self.geometry, regions)]}
        self._group = zarr.create_group(self.path, attributes={"ome": self._ome})
        return self._group.create_array("0", **options)

    def describe(self, payload: Payload) -> None:
        """Store the names and colours of labels or regions."""
        plain = self._group is None
        description = description_of(payload, names=plain)
        node = self._array if plain else self._group
        if description:
            node.attrs[DESCRIPTION] = description
        if plain:
            return
        colours = payload.colours
        if payload.labels:
            self._ome["image-label"] = {
                "version": VERSION,
                "properties": [
                    {"label-value": key, "name": name} for key, name in payload.label_names.items()
                ],
                "colors": [
                    {"label-value": key, "rgba": [*bytes.fromhex(colour[1:]), 255]}
                    for key, colour in colours.items()
                ],
            }
        if payload.regions:
            window = {"start": 0, "end": 1, "min": 0, "max": 1}
            called = dict(enumerate(payload.region_names))
            names = {k: name for k, name in called.items() if name is not None}
            self._ome["omero"] = {
                "channels": [
                    {"label": str(label), "color": colours.get(k, "#808080")[1:], "window": window}
                    for k, label in enumerate(shown_labels(payload.region_labels, names))
                ]
            }
        self._group.attrs["ome"] = self._ome


def _multiscales(geometry: Geometry, regions: bool) -> dict[str, Any]:
    """Return the OME-Zarr metadata of the axes, spacing and origin."""
    order, flips = _upright(geometry)
    axes = len(order)
    first = np.ones(axes + 1)
    for k, axis in enumerate(order):
        first[axis] = geometry.shape[axis] - 1 if k in flips else 0
    origin = [float(x) for x in (geometry.affine @ first)[:-1][::-1]]
    spacing = [float(np.abs(geometry.affine[:-1, axis]).max()) for axis in order]
    spatial = [{"name": name, "type": "space", "unit": "millimeter"} for name in "zyx"[-axes:]]
    return {
        "axes": [{"name": "c", "type": "channel"}] * regions + spatial,
        "datasets": [
            {
                "path": "0",
                "coordinateTransformations": [
                    {"type": "scale", "scale": [1.0] * regions + spacing},
                    {"type": "translation", "translation": [0.0] * regions + origin},
                ],
            }
        ],
    }


def streams(geometry: Geometry | None) -> bool:
    """Return whether the axes need no reordering, so that blocks can be written directly."""
    if geometry is None:
        return True
    order, flips = _upright(geometry)
    return not flips and order == tuple(range(len(order)))


def _upright(geometry: Geometry | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the order of axes and the axes to flip that align an image with z, y, x."""
    if geometry is None:
        return (), ()
    directions = geometry.affine[:-1, :-1]
    axes = len(directions)
    along = np.abs(directions).argmax(axis=0)
    straight = np.zeros_like(directions)
    straight[along, np.arange(axes)] = directions[along, np.arange(axes)]
    if len(set(along.tolist())) < axes or not np.allclose(
        straight, directions, atol=1e-6 * np.abs(directions).max()
    ):
        raise InputError(
            "OME-Zarr stores spacing and origin but no rotation, and this image is rotated. Write "
            ".nii.gz or .nrrd"
        )
    order = tuple(int(np.flatnonzero(along == row)[0]) for row in reversed(range(axes)))
    flips = tuple(k for k, axis in enumerate(order) if directions[along[axis], axis] < 0)
    return order, flips


ZARR = Format(
    "Zarr", (".zarr",), _recognises, _read, (".zarr",), _write, contents=_contents, folder=True
)
