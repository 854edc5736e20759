"""Metadata of OME-Zarr 0.4 and 0.5: axes, spacing, origin, names and colours.

Images are read with their axes in any order. Images are written with the axes z, y and x.
Probabilities have a channel axis before these axes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from probdice.data.arrays import Array
from probdice.data.geometry import Geometry
from probdice.data.lazy_arrays import Dropped
from probdice.errors import FormatError, InputError
from probdice.files.corrupt import corrupt
from probdice.files.description import DESCRIPTION, with_description
from probdice.files.length_units import in_millimetres
from probdice.files.model import Image, Payload, as_colour, as_label
from probdice.method.region_labels import shown_labels

__all__ = [
    "Level",
    "image_metadata",
    "label_images_in",
    "levels_of",
    "naming_metadata",
    "order_and_flips",
]

PIXELS = ("pixel", "pixels", "voxel", "voxels")  # units if the size of a pixel is unknown
WORLD = "xyz"  # the order of world axes
VERSION = "0.5"  # the version that `write` uses


class _Axis(NamedTuple):
    name: str
    kind: str
    unit: str


# -- reading ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Level:
    """One resolution level of an image, with its metadata."""

    path: str
    dataset: Mapping[str, Any]
    image: Mapping[str, Any]
    attributes: Mapping[str, Any]
    description: object

    @property
    def labels(self) -> Mapping[str, Any] | None:
        """Metadata of a label image, or None for other images."""
        return self.attributes.get("image-label")

    def read(self, values: Array) -> Image:
        """Convert the array of this level to an image."""
        axes = self._axes(len(values.shape))
        spacing, origin = self._transformed(len(axes))
        for k in reversed(range(len(axes))):
            if axes[k].kind == "time" and values.shape[k] == 1:
                values = Dropped(values, k)
                del axes[k]
                spacing, origin = np.delete(spacing, k), np.delete(origin, k)
        regions = next((k for k, axis in enumerate(axes) if axis.kind == "channel"), None)
        names = [entry.get("label") for entry in _entries(self.attributes.get("omero"), "channels")]
        named = regions is not None and all(names) and len(names) == values.shape[regions]
        image = Image(
            values,
            regions=regions,
            kind="values" if self.labels is None else "labels",
            affine=_affine(axes, spacing, origin),
            label_names=_label_names(self.labels),
            region_names=[as_label(str(name)) for name in names] if named else None,
            colours=_colours(self.labels),
        )
        return with_description(image, self.description)

    def _axes(self, count: int) -> list[_Axis]:
        """Return the axes. Before version 0.3 of OME-Zarr, they are always t, c, z, y and x."""
        axes = []
        for entry in self.image.get("axes", "tczyx"):
            axis = {"name": entry} if isinstance(entry, str) else entry
            name = axis["name"]
            usual = {"t": "time", "c": "channel"}.get(name, "space")
            axes.append(_Axis(name, str(axis.get("type", usual)), str(axis.get("unit") or "")))
        if len(axes) != count:
            raise corrupt(f"its metadata define {len(axes)} axes, but its array has {count}")
        return axes

    def _transformed(self, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the spacing and the origin along every axis."""
        spacing, origin = np.ones(count), np.zeros(count)
        for holder in (self.dataset, self.image):
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


def levels_of(group: Any) -> list[Level]:
    """Return the levels of the first image in a group, or [] if the group is not an image."""
    attributes = _attributes(group)
    images = attributes.get("multiscales")
    if not isinstance(images, list) or not images:
        return []
    datasets = images[0].get("datasets")
    if not datasets or not all(isinstance(dataset["path"], str) for dataset in datasets):
        raise corrupt("in its multiscales metadata, the datasets or their paths are missing")
    description = group.attrs.get(DESCRIPTION)
    return [
        Level(dataset["path"], dataset, images[0], attributes, description) for dataset in datasets
    ]


def label_images_in(group: Any) -> list[str]:
    """Return the names of the label images that a group lists."""
    return [str(name) for name in _attributes(group).get("labels") or ()]


def _attributes(node: Any) -> Mapping[str, Any]:
    """Return the OME-Zarr metadata, which version 0.5 stores under the key "ome"."""
    attributes = dict(node.attrs)
    ome = attributes.get("ome")
    return ome if isinstance(ome, Mapping) else attributes


def _affine(
    axes: Sequence[_Axis], spacing: NDArray[np.float64], origin: NDArray[np.float64]
) -> NDArray[np.float64] | None:
    """Return the affine in millimetres, or None if the unit of an axis is pixels.

    Lengths without a unit are in millimetres.
    """
    if any(axis.unit in PIXELS for axis in axes):
        return None
    image = [k for k, axis in enumerate(axes) if axis.kind != "channel"]
    names = [axes[k].name for k in image]
    world = sorted(names, key=lambda name: (name not in WORLD, WORLD.find(name), names.index(name)))
    affine = np.zeros((len(image) + 1, len(image) + 1))
    affine[-1, -1] = 1
    for column, k in enumerate(image):
        row = world.index(axes[k].name)
        unit = in_millimetres(axes[k].unit) if axes[k].kind == "space" else 1.0
        affine[row, column], affine[row, -1] = spacing[k] * unit, origin[k] * unit
    if not np.isfinite(affine).all() or not spacing[image].all():
        raise FormatError(
            f"its pixel spacing must be finite and not 0, found scale {spacing.tolist()}"
        )
    return affine


def _label_names(labels: Any) -> dict[int, str]:
    """Return the names of labels or, if there are none, their classes if these are unique."""
    entries = _entries(labels, "properties")
    names, classes = (
        {entry["label-value"]: str(entry[key]) for entry in entries if entry.get(key)}
        for key in ("name", "class")
    )
    distinct = len(set(classes.values())) == len(classes)
    return names or (classes if distinct else {})


def _colours(labels: Any) -> dict[int, str]:
    colours = {}
    for entry in _entries(labels, "colors"):
        if colour := as_colour((entry.get("rgba") or ())[:3], 255):
            colours[entry["label-value"]] = colour
    return colours


def _entries(holder: Any, name: str) -> list[Mapping[str, Any]]:
    """Return the valid objects in the list `name`. All except channels require a label value."""
    entries = holder.get(name) if isinstance(holder, Mapping) else None
    return [
        entry
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, Mapping)
        and (name == "channels" or isinstance(entry.get("label-value"), int))
    ]


# -- writing ---------------------------------------------------------------------------------------


def order_and_flips(geometry: Geometry) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the order of axes and the flipped axes that align an image with z, y and x."""
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
            ".nii.gz or .nrrd."
        )
    order = tuple(int(np.flatnonzero(along == row)[0]) for row in reversed(range(axes)))
    flips = tuple(k for k, axis in enumerate(order) if directions[along[axis], axis] < 0)
    return order, flips


def naming_metadata(payload: Payload) -> dict[str, Any]:
    """Return the metadata with the names and colours of labels or regions."""
    colours = payload.colours
    if payload.labels:
        names = payload.label_names.items()
        labels = {
            "version": VERSION,
            "properties": [{"label-value": label, "name": name} for label, name in names],
            "colors": [
                {"label-value": label, "rgba": [*bytes.fromhex(colour[1:]), 255]}
                for label, colour in colours.items()
            ],
        }
        return {"image-label": labels}
    if not payload.regions:
        return {}
    window = {"start": 0, "end": 1, "min": 0, "max": 1}
    named = {k: name for k, name in enumerate(payload.region_names) if name is not None}
    channels = [
        {"label": str(label), "color": colours.get(k, "#808080")[1:], "window": window}
        for k, label in enumerate(shown_labels(payload.region_labels, named))
    ]
    return {"omero": {"channels": channels}}


def image_metadata(geometry: Geometry, *, regions: bool) -> dict[str, Any]:
    """Return the metadata with the axes, the spacing and the origin."""
    order, flips = order_and_flips(geometry)
    axes = len(order)
    first = np.ones(axes + 1)
    for k, axis in enumerate(order):
        first[axis] = geometry.shape[axis] - 1 if k in flips else 0
    origin = [float(x) for x in (geometry.affine @ first)[:-1][::-1]]
    spacing = [float(np.abs(geometry.affine[:-1, axis]).max()) for axis in order]
    spatial = [{"name": name, "type": "space", "unit": "millimeter"} for name in "zyx"[-axes:]]
    steps = [
        {"type": "scale", "scale": [1.0] * regions + spacing},
        {"type": "translation", "translation": [0.0] * regions + origin},
    ]
    image = {
        "axes": [{"name": "c", "type": "channel"}] * regions + spatial,
        "datasets": [{"path": "0", "coordinateTransformations": steps}],
    }
    return {"version": VERSION, "multiscales": [image]}
