"""Distances between the outlines of corresponding regions.

Popular tools measure from voxel centre to voxel centre and therefore disagree with each other.
Here the outline is a surface of triangles (in 2-D, a curve of segments) halfway between the pixels
inside and outside, and distances are exact:

- The surface passes through the midpoints between neighbouring pixels inside and outside the set,
  in every cell of 2 × 2 × 2 (or 2 × 2) pixels; pixels that touch only diagonally are separate. It
  is closed at the border of the image. A cell with a pixel outside the mask has no surface.
- Each triangle or segment, an *element*, gives one distance: from its centroid to the nearest point
  of the other surface. Its area or length is its weight.
- Probabilities are not hardened at one half. The set at level t has the pixels whose probability
  exceeds t, and every number is the mean over the levels. Levels at which both sets are empty are
  left out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from probdice.data.geometry import Geometry
from probdice.data.machine import cores
from probdice.engine.group_images import compared_pixels, group_numbers, group_probabilities
from probdice.engine.pair import Images
from probdice.engine.surface_distances import (
    ArrayOutlines,
    Elements,
    GroupSets,
    LabelSets,
    Outlines,
    SoftSets,
)
from probdice.engine.surface_pass import BlockOutlines
from probdice.errors import InputError
from probdice.method.overlap import Overlap
from probdice.method.pixel_passes import Lists
from probdice.method.sides import SIDES, Both, Side
from probdice.metrics.boundary_values import Boundaries, BoundaryMean, Members
from probdice.metrics.unions import Union
from probdice.options.checks import as_penalty, numbers_in

__all__ = [
    "LEVELS",
    "Boundaries",
    "BoundaryMean",
    "ImageOutlines",
    "boundaries_of",
    "union_boundaries",
]

Floats = NDArray[np.float64]

LEVELS = tuple(k / 10 for k in range(1, 10))
PERCENTILES = (95.0,)


def boundaries_of(
    outlines: Outlines,
    *,
    groups: Both[Members],
    counted: NDArray[np.bool_] | None = None,
    geometry: Geometry | None = None,
    percentiles: Iterable[float] = PERCENTILES,
    tolerances: Iterable[float] = (),
    levels: Iterable[float] = LEVELS,
    infinite: float | None = None,
    workers: int | None = None,
) -> Boundaries:
    """Distances between the outlines of corresponding regions.

    Parameters
    ----------
    outlines : Outlines
        The outlines of the groups of both sides: `ArrayOutlines` or `BlockOutlines`.
    groups : Both
        Per side, the labels of every group.
    counted : ndarray of bool, optional
        The groups that count in means; all by default.
    geometry : Geometry, optional
        Distances are in millimetres with it, and in pixels without.
    percentiles : iterable of float, optional
        Above 0 and at most 100.
    tolerances : iterable of float, optional
        Of the surface Dice, in the unit of distances. None by default, since no tolerance suits
        all images.
    levels : iterable of float, optional
        Of probabilities, at least 0 and below 1; 0.1, 0.2, … 0.9 by default. Label maps are the
        same at every level.
    infinite : float, optional
        A penalty distance that replaces infinite distances.
    workers : int, optional
        Threads; as many as there are cores by default.

    Raises
    ------
    InputError
        If the images have one axis or more than three, or an option is out of range.
    """
    shape = outlines.shape
    if len(shape) not in (2, 3):
        raise InputError(
            f"boundaries need images of two or three axes, found {len(shape)} (shape {shape}). "
            "Compare one image at a time, without channel or time axes."
        )
    if geometry is not None and geometry.shape != shape:
        raise InputError(
            f"geometry must have the shape of reference, {shape}, not {geometry.shape}"
        )
    options = {
        "percentiles": numbers_in("percentiles", percentiles, "above 0 and at most 100"),
        "tolerances": numbers_in("tolerances", tolerances, "finite and at least 0"),
        "levels": numbers_in("levels", levels, "at least 0 and below 1"),
    }
    infinite = as_penalty(infinite)
    axes = np.eye(len(shape)) if geometry is None else geometry.affine[:-1, :-1]
    workers = cores() if workers is None else workers
    if outlines.crisp:
        options["levels"] = ()
    elif not options["levels"]:
        raise InputError("levels must hold at least one number for probabilities, found none")
    count = len(groups.reference)
    return Boundaries(
        groups=groups,
        counted=np.ones(count, np.bool_) if counted is None else counted,
        unit="pixels" if geometry is None else "mm",
        infinite=infinite,
        **options,
        _values=outlines.numbers(axes, workers, count, **options),
        _elements=_Elements(outlines, axes, workers, geometry),
    )


@dataclass(frozen=True, eq=False)
class ImageOutlines:
    """Outlines of groups of regions of a comparison, made from the images whenever they are needed.

    Images that are not in memory are read in blocks. Groups may share regions.

    Attributes
    ----------
    images : Images
    groups : Both
        Per side, the regions of every group, by channel or label.
    """

    images: Images
    groups: Both[Lists]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.images.reference.shape

    @property
    def crisp(self) -> bool:
        return all(side.crisp for side in self.images.sides)

    def numbers(
        self,
        axes: Floats,
        workers: int,
        groups: int,
        *,
        percentiles: Sequence[float],
        tolerances: Sequence[float],
        levels: Sequence[float],
    ) -> Floats:
        parts = [(self, groups)]
        if any(_share_members(lists) for lists in self.groups):  # a pixel may be in several groups
            parts = [(self._alone(group), 1) for group in range(groups)]
        return np.concatenate(
            [
                part._outlines().numbers(
                    axes,
                    workers,
                    count,
                    percentiles=percentiles,
                    tolerances=tolerances,
                    levels=levels,
                )
                for part, count in parts
            ]
        )

    def elements(self, axes: Floats, workers: int, group: int, level: float) -> Both[Elements]:
        return self._alone(group)._outlines().elements(axes, workers, 0, level)

    def _alone(self, group: int) -> "ImageOutlines":
        """The outlines of one group."""
        return ImageOutlines(self.images, self.groups.map(lambda lists: lists[group : group + 1]))

    def _outlines(self) -> Outlines:
        images = self.images
        if any(type(side.array) is not np.ndarray for side in images.sides):
            return BlockOutlines(images, self.groups)
        sets = Both(*(_group_sets(images, side, self.groups[side]) for side in SIDES))
        return ArrayOutlines(sets, compared_pixels(images))


def _share_members(lists: Lists) -> bool:
    members = [member for group in lists for member in group]
    return len(set(members)) < len(members)


def union_boundaries(
    images: Images,
    unions: Sequence[Union],
    overlap: Overlap,
    *,
    percentiles: Iterable[float] = PERCENTILES,
    tolerances: Iterable[float] = (),
    levels: Iterable[float] = LEVELS,
    infinite: float | None = None,
) -> Boundaries:
    """Distances between the outlines of derived regions, which may share regions.

    Parameters
    ----------
    images : Images
        The images of a comparison.
    unions : sequence of Union
        The regions of both sides that form each derived region.
    overlap : Overlap
        The overlap of the comparison. A union without a present region does not count in means.
    percentiles, tolerances, levels, infinite
        As for `boundaries_of`.

    Examples
    --------
    >>> import numpy as np
    >>> import probdice
    >>> from probdice.metrics.boundaries import union_boundaries
    >>> from probdice.metrics.unions import unions_of
    >>> reference, prediction = np.zeros((2, 14, 14), int)
    >>> reference[4:10, 4:7] = 1
    >>> reference[4:10, 7:10] = prediction[4:10, 5:11] = 2
    >>> result = probdice.compare(reference, prediction, match="labels")
    >>> unions = unions_of(result, {"whole": (1, 2)})
    >>> union_boundaries(result.images, unions, result.overlap)["hd"].tolist()
    [1.0]
    """
    names = [(union.name,) for union in unions]
    return boundaries_of(
        ImageOutlines(
            images, Both(*([union.keys(overlap, side) for union in unions] for side in SIDES))
        ),
        groups=Both(names, names),
        counted=np.array([union.present(overlap) for union in unions]),
        geometry=images.reference.geometry,
        percentiles=percentiles,
        tolerances=tolerances,
        levels=levels,
        infinite=infinite,
        workers=images.workers,
    )


def _group_sets(images: Images, side: Side, groups: Lists) -> GroupSets:
    """The sets of pixels of the groups of one side of a comparison."""
    segmentation = images.side(side)
    if segmentation.crisp:
        return LabelSets(group_numbers(images, side, groups))
    return SoftSets(_GroupMaps(images, side, groups), segmentation.shape)


class _GroupMaps(Sequence[NDArray[Any]]):
    """The probability of every group of a soft side, computed when it is used."""

    def __init__(self, images: Images, side: Side, groups: Lists) -> None:
        self.images, self.side, self.groups = images, side, groups

    def __len__(self) -> int:
        return len(self.groups)

    @overload
    def __getitem__(self, group: int) -> NDArray[Any]: ...
    @overload
    def __getitem__(self, group: slice) -> list[NDArray[Any]]: ...
    def __getitem__(self, group: int | slice) -> NDArray[Any] | list[NDArray[Any]]:
        if isinstance(group, slice):
            return [self[k] for k in range(*group.indices(len(self)))]
        return group_probabilities(self.images, self.side, self.groups[group])


@dataclass(frozen=True, eq=False)
class _Elements:
    """What finds the elements of a group again: to keep those of all would take too much memory."""

    outlines: Outlines
    axes: Floats
    workers: int
    geometry: Geometry | None

    def __call__(self, group: int, level: float) -> Both[Elements]:
        elements = self.outlines.elements(self.axes, self.workers, group, level)
        if self.geometry is None:
            return elements
        linear, origin = self.geometry.affine[:-1, :-1], self.geometry.affine[:-1, -1]
        return elements.map(lambda side: replace(side, points=side.points @ linear.T + origin))
