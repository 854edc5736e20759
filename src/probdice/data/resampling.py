"""Resample a segmentation onto another grid.

If both grids lie on the same lattice (parallel axes, equal spacing, offset by whole pixels), the
image is cropped or padded. Otherwise, its values are interpolated. Values are read only when a
block of the result is read. The only exception is the linear interpolation of a label map, which
first reads the whole label map to list its labels.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from math import inf
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from probdice.data.arrays import has_type
from probdice.data.geometry import Geometry
from probdice.data.resampled_arrays import (
    Decoded,
    FieldOfView,
    InterpolatedLabels,
    InterpolatedRows,
    Nearest,
    Placement,
)
from probdice.data.segmentation import Segmentation, reordered
from probdice.errors import GeometryError, InputError, Option, TooLargeError
from probdice.method.region_labels import Label, listed, whole_number

__all__ = ["Interpolation", "as_interpolation", "placed", "resample", "same_lattice"]

Interpolation = Literal["linear", "nearest"]

MAX_RESAMPLED_REGIONS = 2**13  # with more regions, the smallest tile would take more than 128 MB


def as_interpolation(value: object) -> Interpolation | None:
    """Check the option `resample` and return it."""
    if value is None:
        return None
    for interpolation in get_args(Interpolation):
        if isinstance(value, str) and value == interpolation:
            return interpolation  # type: ignore[no-any-return]
    raise InputError(f"resample must be 'linear', 'nearest' or None, found {value!r}")


def resample(
    segmentation: Segmentation,
    geometry: Geometry,
    interpolation: Interpolation,
    *,
    background: Label | None = None,
    tolerance: float = 0.1,
) -> tuple[Segmentation, FieldOfView | None]:
    """Return a segmentation on another grid, and its field of view if pixels must be excluded.

    Without a `background`, pixels outside the field of view have arbitrary values and must be
    excluded. With a `background`, these pixels are assigned to the background. The second value is
    None if all pixels can be compared.
    """
    if segmentation.geometry is None:
        raise GeometryError("has no geometry, so it cannot be resampled onto another grid")
    if not (segmentation.geometry.on_grid and geometry.on_grid):
        raise GeometryError(
            "vertices of a surface cannot be resampled: ",
            segmentation.geometry.obstacle(geometry, inf),
            ". Resample the file first, for example with wb_command -label-resample.",
        )
    if len(segmentation.geometry.shape) != len(geometry.shape):
        raise GeometryError(
            f"has {len(segmentation.geometry.shape)} axes but the other grid has "
            f"{len(geometry.shape)}, so it cannot be resampled"
        )
    placement = placed(segmentation.geometry, geometry)
    low, high = placement.reach(placement.full_box)
    edge = np.array(placement.sizes) - 0.5
    if (low > edge).any() or (high < -0.5).any():
        raise GeometryError("the fields of view of the two grids do not overlap")
    exact = same_lattice(placement, tolerance)
    if exact is not None:
        placement = exact
        low, high = placement.reach(placement.full_box)
    covered = bool((low >= -0.5).all() and (high <= edge).all())
    outside = None if covered else background
    array = segmentation.array
    can_slice = isinstance(array, np.ndarray) or has_type(array, "dask", "Array")
    if exact is not None and covered and can_slice:
        resampled = _crop(segmentation, exact, geometry)
    elif interpolation == "nearest" or exact is not None:
        resampled = _nearest(segmentation, placement, geometry, outside)
    else:
        resampled = _interpolate(segmentation, placement, geometry, outside)
    return resampled, None if covered or background is not None else FieldOfView(placement)


def placed(source: Geometry, target: Geometry) -> Placement:
    """Return the mapping from the pixels of a target grid to positions in a source image."""
    axes = len(source.shape)
    to_source = np.linalg.inv(source.affine) @ target.affine
    return Placement(to_source[:axes, :axes], to_source[:axes, axes], source.shape, target.shape)


def same_lattice(placement: Placement, tolerance: float) -> Placement | None:
    """Return the placement rounded to whole pixels, or None if the lattices of the grids differ.

    The grids lie on the same lattice if rounding moves no corner by more than `tolerance` pixels.
    """
    steps = np.rint(placement.matrix)
    axes = len(placement.shape)
    if not all((np.abs(steps).sum(axis=axis) == 1).all() for axis in (0, 1)):
        return None
    corners = np.array(list(product(*((0, n - 1) for n in placement.shape)))).reshape(-1, axes)
    offsets = corners @ (placement.matrix - steps).T + placement.offset
    whole_offset = np.rint(offsets.mean(axis=0))
    if np.linalg.norm(offsets - whole_offset, axis=1).max() > tolerance:
        return None
    return replace(placement, matrix=steps, offset=whole_offset)


def _crop(segmentation: Segmentation, exact: Placement, geometry: Geometry) -> Segmentation:
    """Crop a segmentation to a grid on the same lattice."""
    order = [int(np.argmax(np.abs(column))) for column in exact.matrix.T]
    flips = [k for k, axis in enumerate(order) if exact.matrix[axis, k] < 0]
    first = len(segmentation.array.shape) - len(order)
    box = [slice(None)] * first
    for k, (axis, length) in enumerate(zip(order, exact.shape, strict=True)):
        start = int(exact.offset[axis])
        start = exact.sizes[axis] - 1 - start if k in flips else start
        box.append(slice(start, start + length))
    array = reordered(segmentation.array, order, flips, first)[tuple(box)]
    return replace(segmentation, array=array, geometry=geometry)


def _nearest(
    segmentation: Segmentation, placement: Placement, geometry: Geometry, background: Label | None
) -> Segmentation:
    """Return a segmentation with the labels or probabilities of the nearest pixels."""
    segmentation = _as_probabilities(segmentation)
    array = Nearest(segmentation.array, placement, _outside(segmentation, background))
    return replace(segmentation, array=array, geometry=geometry)


def _interpolate(
    segmentation: Segmentation, placement: Placement, geometry: Geometry, background: Label | None
) -> Segmentation:
    """Linearly interpolate probabilities or the indicators of labels."""
    if not segmentation.crisp:
        segmentation = _as_probabilities(segmentation)
        rows = InterpolatedRows(segmentation.array, placement, _outside(segmentation, background))
        return replace(segmentation, array=rows, geometry=geometry)
    if segmentation.ignore:
        raise InputError(
            f"linear interpolation mixes the ignored labels {segmentation.ignore} with other "
            f"labels. Use ",
            Option("resample", "nearest"),
            ".",
        )
    labels = _labels(segmentation)
    outside = 0
    if background is not None:
        label = _outside(segmentation, background)
        labels = np.union1d(labels, np.array([label], labels.dtype))
        outside = int(np.searchsorted(labels, label))
    if labels.size > MAX_RESAMPLED_REGIONS:
        raise TooLargeError(
            f"linear interpolation stores one probability per label and pixel, which takes too "
            f"much memory for more than {MAX_RESAMPLED_REGIONS} labels, found {labels.size}. To "
            f"keep labels, use ",
            Option("resample", "nearest"),
            ".",
        )
    return Segmentation(
        InterpolatedLabels(segmentation.array, placement, outside, labels),
        crisp=False,
        labels=tuple(labels.tolist()),
        names=_by_channel(segmentation.names, labels),
        colours=_by_channel(segmentation.colours, labels),
        geometry=geometry,
        source=segmentation.source,
        notes=segmentation.notes,
    )


def _labels(segmentation: Segmentation) -> NDArray[Any]:
    """Return the labels of a label map in ascending order."""
    from probdice.files.name_tables import labels_in

    labels = sorted(labels_in(segmentation)) or [0]
    return np.array(labels, np.uint64 if labels[-1] >= 2**63 else np.int64)


def _by_channel(texts: Mapping[int, str], labels: NDArray[Any]) -> dict[int, str]:
    """Convert a mapping from labels to texts into a mapping from channel indices to texts."""
    return {k: texts[label] for k, label in enumerate(labels.tolist()) if label in texts}


def _as_probabilities(segmentation: Segmentation) -> Segmentation:
    """Convert stored values to the probabilities of all regions. Label maps remain unchanged."""
    if segmentation.crisp or segmentation.reading == "error":
        return segmentation
    array = Decoded(segmentation.array, segmentation.reading, len(segmentation.regions))
    return replace(segmentation, array=array, reading="error")


def _outside(segmentation: Segmentation, background: Label | None) -> int:
    """Return the label or the channel index of the background, or 0 if there is no background."""
    if background is None:
        return 0
    if segmentation.crisp:
        if not isinstance(background, str):
            return whole_number(background, "background")
        regions = [segmentation.label(label) for label in segmentation.names]
        pairs = zip(segmentation.names, regions, strict=True)
        candidates = [label for label, name in pairs if name == background]
    else:
        regions = list(segmentation.regions)
        channels = enumerate(zip(segmentation.labels, regions, strict=True))
        candidates = [k for k, names in channels if background in names]
    if len(candidates) != 1:
        known = f"Its regions are {listed(regions)}."
        if not regions:
            known = "Its labels have no names, so set background to a label."
        raise InputError(f"background {background!r} is not a region of the image. {known}")
    return candidates[0]
