"""Surfaces of the groups of two images in memory, their elements, and the distances between them.

Each side gives the set of pixels of every group, at a level where it is soft. The kernels take
both sides as arrays of group numbers, so label maps of any number of groups are passed as they are,
and other images as one group per pair of sets. `engine.surface_pass` does the same for images that
are read in blocks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from probdice.engine.kernels import surface_search, surface_summary, surfaces
from probdice.engine.kernels.surface_shapes import Shapes, shapes_for
from probdice.engine.kernels.surfaces import OUTSIDE, Surface
from probdice.engine.threads import run
from probdice.errors import InputError
from probdice.method.sides import Both

__all__ = [
    "ABOVE",
    "LARGE",
    "ArrayOutlines",
    "Elements",
    "Grid",
    "GroupSets",
    "LabelSets",
    "Outlines",
    "SoftSets",
    "elements_between",
    "elements_of",
    "numbers_between",
    "numbers_of",
    "together",
]

Codes = NDArray[np.int32]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

ABOVE = 1e-6  # by which a probability must exceed a level
LARGE = 2**18  # cells in the box of a group from which on its surface is divided among workers
TOGETHER = 2**16  # cells in the boxes of small groups that one worker visits at once
CELLS = 2**11  # cells with a surface that one worker visits at once


class GroupSets(Protocol):
    """The sets of pixels of all groups of one side."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of pixels along each axis."""

    @property
    def labels(self) -> NDArray[np.integer[Any]] | None:
        """The group of every pixel if sets are the same at all levels, otherwise None."""

    def of(self, group: int) -> Callable[[float], Mask]:
        """The set of a group, by level."""


@dataclass(frozen=True, eq=False)
class LabelSets:
    """A label map.

    Parameters
    ----------
    labels : ndarray of int
        The number of the group of every pixel; −1 for none.
    """

    labels: NDArray[np.integer[Any]]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.labels.shape

    def of(self, group: int) -> Callable[[float], Mask]:
        inside = self.labels == group
        return lambda _: inside


@dataclass(frozen=True, eq=False)
class SoftSets:
    """Probabilities, which exceed a level in the set of that level.

    Parameters
    ----------
    maps : sequence of ndarray
        The probability of each group. One at a time is asked for, in their order, so that a
        sequence may also compute them.
    shape : tuple of int
        The shape of each map.
    """

    maps: Sequence[NDArray[np.floating[Any]]]
    shape: tuple[int, ...]

    @property
    def labels(self) -> None:
        return None

    def of(self, group: int) -> Callable[[float], Mask]:
        probabilities = self.maps[group]
        if probabilities.dtype.itemsize < 4:  # half precision rounds the level
            probabilities = probabilities.astype(np.float32)
        return lambda level: np.asarray(probabilities > level + ABOVE)


@dataclass(frozen=True, eq=False)
class Grid:
    """Where the pixels of both sides lie, and which of them are compared.

    Attributes
    ----------
    axes : ndarray
        The steps from pixel to pixel along each of the two or three axes, as columns.
    mask : ndarray of bool or None
        The pixels that are compared; None for all.
    workers : int
        Threads. Results do not depend on their number.
    """

    axes: Floats
    mask: Mask | None
    workers: int


@dataclass(frozen=True, eq=False)
class Elements:
    """The triangles or segments of one surface.

    Attributes
    ----------
    points : ndarray
        Centroids, one row each, as indices of pixels.
    distances : ndarray
        From each centroid to the nearest point of the other surface; infinite if that is empty.
    weights : ndarray
        Areas of triangles, or lengths of segments.
    """

    points: Floats
    distances: Floats
    weights: Floats


class Outlines(Protocol):
    """The outlines of the groups of two images, and the distances between them."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of pixels along each axis."""

    @property
    def crisp(self) -> bool:
        """Whether both sides are label maps, which are the same at every level."""

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
        """Distances between the surfaces of every group, at every level, as by `numbers_of`."""

    def elements(self, axes: Floats, workers: int, group: int, level: float) -> Both[Elements]:
        """The elements of both surfaces of one group."""


@dataclass(frozen=True, eq=False)
class ArrayOutlines:
    """Outlines of images in memory.

    Attributes
    ----------
    sides : Both
        The sets of pixels of the groups of each side.
    mask : ndarray of bool or None
        The pixels that are compared; None for all.
    """

    sides: Both[GroupSets]
    mask: Mask | None = None

    def __post_init__(self) -> None:
        for name, image in (("prediction", self.sides.prediction), ("mask", self.mask)):
            if image is not None and image.shape != self.shape:
                raise InputError(
                    f"{name} must have the shape of reference, {self.shape}, not {image.shape}"
                )

    @property
    def shape(self) -> tuple[int, ...]:
        return self.sides.reference.shape

    @property
    def crisp(self) -> bool:
        return all(side.labels is not None for side in self.sides)

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
        return numbers_of(
            self.sides,
            Grid(axes, self.mask, workers),
            groups,
            percentiles=percentiles,
            tolerances=tolerances,
            levels=levels,
        )

    def elements(self, axes: Floats, workers: int, group: int, level: float) -> Both[Elements]:
        return elements_of(self.sides, Grid(axes, self.mask, workers), group, level)


def numbers_of(
    sides: Both[GroupSets],
    grid: Grid,
    groups: int,
    *,
    percentiles: Sequence[float],
    tolerances: Sequence[float],
    levels: Sequence[float],
) -> Floats:
    """Distances between the surfaces of every group, at every level.

    The axes of the result are the groups, the levels (one where both sides are label maps) and the
    numbers: hd, assd, masd, the percentiles, and nsd at the tolerances. NaN where both surfaces
    are empty; where one is, distances are infinite and nsd is 0.
    """
    asked = np.array(percentiles, np.float64), np.array(tolerances, np.float64)
    if (outlines := _of_labels(sides, grid)) is not None:
        return outlines.numbers(groups, *asked)[:, None]
    numbers = np.empty(
        (groups, len(levels), surface_summary.FIXED + len(percentiles) + len(tolerances))
    )
    for group in range(groups):
        sets = Both(*(side.of(group) for side in sides))
        for k, level in enumerate(levels):
            numbers[group, k] = _of_sets(sets, level, grid).numbers(1, *asked)
    return numbers


def elements_of(sides: Both[GroupSets], grid: Grid, group: int, level: float) -> Both[Elements]:
    """The elements of both surfaces of one group; label maps are the same at every level."""
    if (outlines := _of_labels(sides, grid)) is not None:
        return outlines.elements(group)
    sets = Both(*(side.of(group) for side in sides))
    return _of_sets(sets, level, grid).elements(0)


def _of_labels(sides: Both[GroupSets], grid: Grid) -> "_Outlines | None":
    """Both label maps as they are, if they are label maps."""
    reference, prediction = sides.reference.labels, sides.prediction.labels
    if reference is None or prediction is None:
        return None
    return _Outlines(Both(*(_masked(x, grid.mask) for x in (reference, prediction))), grid)


def _of_sets(sets: Both[Callable[[float], Mask]], level: float, grid: Grid) -> "_Outlines":
    """The sets of one group at one level as group 0."""
    return _Outlines(sets.map(lambda at: _masked(at(level) - np.int32(1), grid.mask)), grid)


def _masked(labels: NDArray[np.integer[Any]], mask: Mask | None) -> Codes:
    """Group numbers as the kernels take them."""
    codes = labels.astype(np.int32, copy=False)
    return codes if mask is None else np.where(mask, codes, np.int32(OUTSIDE))


@dataclass(frozen=True, eq=False)
class _Outlines:
    """The surfaces of the groups of two arrays of group numbers."""

    codes: Both[Codes]
    grid: Grid

    def numbers(self, count: int, percentiles: Floats, tolerances: Floats) -> Floats:
        """One row per group."""
        boxes = self._boxes(count)
        sizes = boxes[:, 3:].prod(axis=1)
        table = np.empty((count, surface_summary.FIXED + percentiles.size + tolerances.size))

        def visit(groups: Integers) -> None:
            rows = np.empty((groups.size, table.shape[1]))
            surface_summary.summarise_groups(
                self._images.reference,
                self._images.prediction,
                groups,
                boxes[groups],
                self._is_masked,
                self._shapes,
                percentiles,
                tolerances,
                rows,
            )
            table[groups] = rows

        for _ in run(visit, together(np.flatnonzero(sizes <= LARGE), sizes), self.grid.workers):
            pass
        for group in np.flatnonzero(sizes > LARGE).tolist():
            both = self._traced(group, boxes[group])
            numbers_between(
                both, self._shapes, self.grid.workers, percentiles, tolerances, table[group]
            )
        return table

    def elements(self, group: int) -> Both[Elements]:
        """The elements of both surfaces of one group."""
        box = self._boxes(group + 1)[group]
        both = self._traced(group, box)
        return elements_between(both, box, self._shapes, self.grid.workers, self._order)

    @property
    def _is_masked(self) -> bool:
        return self.grid.mask is not None

    @cached_property
    def _order(self) -> list[int]:
        """The axes in the order in which the reference lies in memory."""
        strides = self.codes.reference.strides
        return sorted(range(len(strides)), key=lambda axis: -abs(strides[axis]))

    @cached_property
    def _images(self) -> Both[Codes]:
        """Both images as they lie in memory, with three axes: one of two axes is one layer."""

        def ordered(codes: Codes) -> Codes:
            contiguous = np.ascontiguousarray(codes.transpose(self._order))
            return contiguous.reshape((1, *contiguous.shape)[-3:])

        return self.codes.map(ordered)

    @cached_property
    def _shapes(self) -> Shapes:
        return shapes_for(self.grid.axes[:, self._order])

    def _boxes(self, count: int) -> Integers:
        """Per group, the first cell of the box of both surfaces, and its number of cells.

        Groups from `count` on are left out.
        """
        depth = self._images.reference.shape[0]
        edges = np.linspace(0, depth, min(depth, 4 * self.grid.workers) + 1).astype(int).tolist()
        slabs = [(image, *edge) for image in self._images for edge in pairwise(edges)]
        nothing = np.empty((count, 6), np.int64)
        nothing[:, :3], nothing[:, 3:] = np.iinfo(np.int64).max, -1

        def visit(slab: tuple[Codes, int, int]) -> Integers:
            image, first, last = slab
            boxes = nothing.copy()
            surfaces.bounds(image[first:last], first, boxes)
            return boxes

        boxes = nothing.copy()
        for of_slab in run(visit, slabs, self.grid.workers):
            np.minimum(boxes[:, :3], of_slab[:, :3], out=boxes[:, :3])
            np.maximum(boxes[:, 3:], of_slab[:, 3:], out=boxes[:, 3:])
        empty = boxes[:, 3] < 0
        boxes[empty] = 0, 0, 0, -2, -2, -2  # no cells
        boxes[:, 3:] += 2 - boxes[:, :3]
        if len(self._order) == 2:  # the one layer is the second one of its cells
            boxes[:, 3] = np.minimum(boxes[:, 3], 1)
        return boxes

    def _traced(self, group: int, box: Integers) -> Both[Surface]:
        def visit(codes: Codes) -> Surface:
            return surfaces.trace(codes, group, box, self._is_masked, self._shapes)

        return Both(*run(visit, list(self._images), self.grid.workers))


def numbers_between(
    both: Both[Surface],
    shapes: Shapes,
    workers: int,
    percentiles: Floats,
    tolerances: Floats,
    into: Floats,
) -> None:
    """The numbers of two large surfaces, divided among workers."""
    reference, prediction = both
    surface_summary.summarise(
        *_distances(reference, prediction, shapes, workers),
        *_distances(prediction, reference, shapes, workers),
        percentiles,
        tolerances,
        into,
    )


def elements_between(
    both: Both[Surface], box: Integers, shapes: Shapes, workers: int, order: Sequence[int]
) -> Both[Elements]:
    """The elements of two surfaces in a box; `order` has the axes of the image as in the box."""

    def elements(surface: Surface, other: Surface) -> Elements:
        points = np.empty((surface.starts[-1], 3))
        surface_search.centroids(surface, shapes, box, points)
        points = points[:, 3 - len(order) :][:, np.argsort(order)]
        return Elements(points, *_distances(surface, other, shapes, workers))

    reference, prediction = both
    return Both(elements(reference, prediction), elements(prediction, reference))


def _distances(
    surface: Surface, other: Surface, shapes: Shapes, workers: int
) -> tuple[Floats, Floats]:
    """Distances from the elements of one surface to another, and their weights."""
    distances, weights = np.empty(surface.starts[-1]), np.empty(surface.starts[-1])

    def visit(first: int) -> None:
        last = min(first + CELLS, surface.cells.size)
        surface_search.distances(surface, other, shapes, first, last, distances, weights)

    for _ in run(visit, range(0, surface.cells.size, CELLS), workers):
        pass
    return distances, weights


def together(groups: Integers, sizes: Integers) -> list[Integers]:
    """Groups in packs of about the same work."""
    if groups.size == 0:
        return []
    packs = np.cumsum(sizes[groups]) // TOGETHER
    return np.split(groups, np.flatnonzero(np.diff(packs)) + 1)
