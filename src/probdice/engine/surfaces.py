"""Surfaces of both sides of a comparison, their elements, and the distances between them.

Both images are arrays of group numbers: −1 is no group, and the pixels that are left out of the
comparison are those outside the mask. Probabilities become such arrays level by level.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from probdice.engine.kernels import surfaces
from probdice.engine.kernels.surface_shapes import Shapes, shapes_for
from probdice.engine.kernels.surfaces import OUTSIDE, Surface
from probdice.engine.threads import run
from probdice.sides import Both

__all__ = ["Elements", "Outlines", "codes_of_labels", "codes_of_set"]

Codes = NDArray[np.int32]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LARGE = 2**18  # cells in the box of a group from which on its surface is divided among workers
TOGETHER = 2**16  # cells in the boxes of small groups that one worker visits at once
CELLS = 2**11  # cells with a surface that one worker visits at once


def codes_of_labels(groups: NDArray[np.integer], mask: NDArray[np.bool_] | None) -> Codes:
    """Group numbers as `Outlines` takes them."""
    codes = np.asarray(groups, np.int32)
    return codes if mask is None else np.where(mask, codes, np.int32(OUTSIDE))


def codes_of_set(inside: NDArray[np.bool_], mask: NDArray[np.bool_] | None) -> Codes:
    """A set of pixels as `Outlines` takes it: group 0."""
    return codes_of_labels(inside.astype(np.int32) - np.int32(1), mask)


@dataclass(frozen=True, eq=False)
class Elements:
    """The elements of one surface.

    Attributes
    ----------
    points : ndarray
        Centroids, in pixels of the image, one row each.
    distances : ndarray
        From each centroid to the nearest point of the other surface; infinite if it is empty.
    weights : ndarray
        Areas of triangles, or lengths of segments.
    """

    points: Floats
    distances: Floats
    weights: Floats


@dataclass(frozen=True, eq=False)
class Outlines:
    """The groups of two images of one grid.

    Parameters
    ----------
    codes : Both
        The group of every pixel, from `codes_of_labels` or `codes_of_set`.
    axes : ndarray
        The steps from pixel to pixel along each axis of the image, as columns.
    masked : bool
        Whether pixels are left out.
    workers : int
        Threads; results do not depend on it.
    """

    codes: Both[Codes]
    axes: Floats
    masked: bool
    workers: int

    def numbers(
        self, count: int, percentiles: Sequence[float], tolerances: Sequence[float]
    ) -> Floats:
        """One row per group: hd, assd, masd, then the percentiles, then nsd at the tolerances."""
        boxes = self._boxes(count)
        sizes = boxes[:, 3:].prod(axis=1)
        asked = np.array(percentiles, np.float64), np.array(tolerances, np.float64)
        table = np.empty((count, surfaces.FIXED + len(percentiles) + len(tolerances)))
        shapes = self._shapes

        def small(groups: Integers) -> None:
            into = np.empty((groups.size, table.shape[1]))
            surfaces.summarise_groups(
                *self._images, groups, boxes[groups], self.masked, shapes, *asked, into
            )
            table[groups] = into

        for _ in run(small, _together(np.flatnonzero(sizes <= LARGE), sizes), self.workers):
            pass
        for group in np.flatnonzero(sizes > LARGE).tolist():
            traced = self._traced(group, boxes[group])
            ones, twos = self._distances(*traced), self._distances(*reversed(list(traced)))
            surfaces.summarise(*ones, *twos, *asked, table[group])
        return table

    def elements(self, group: int) -> Both[Elements]:
        """The elements of both surfaces of one group."""
        box = self._boxes(group + 1)[group]
        reference, prediction = self._traced(group, box)
        return Both(
            Elements(self._points(reference, box), *self._distances(reference, prediction)),
            Elements(self._points(prediction, box), *self._distances(prediction, reference)),
        )

    @cached_property
    def _order(self) -> list[int]:
        """The axes in the order in which the reference lies in memory."""
        strides = self.codes.reference.strides
        return sorted(range(len(strides)), key=lambda axis: -strides[axis])

    @cached_property
    def _images(self) -> Both[Codes]:
        """Both images as they lie in memory, with three axes: one of two axes is one layer."""

        def ordered(codes: Codes) -> Codes:
            contiguous = np.ascontiguousarray(codes.transpose(self._order))
            return contiguous.reshape((1, *contiguous.shape)[-3:])

        return self.codes.map(ordered)

    @cached_property
    def _shapes(self) -> Shapes:
        return shapes_for(self.axes[:, self._order])

    def _boxes(self, count: int) -> Integers:
        """Per group, the first cell of the box of both surfaces, and its number of cells."""
        depth = self._images.reference.shape[0]
        edges = np.linspace(0, depth, min(depth, 4 * self.workers) + 1).astype(int).tolist()
        slabs = [(image, *edge) for image in self._images for edge in pairwise(edges)]
        nothing = np.empty((count, 6), np.int64)
        nothing[:, :3], nothing[:, 3:] = np.iinfo(np.int64).max, -1

        def visit(slab: tuple[Codes, int, int]) -> Integers:
            image, first, last = slab
            boxes = nothing.copy()
            surfaces.bounds(image[first:last], first, boxes)
            return boxes

        boxes = nothing.copy()
        for of_slab in run(visit, slabs, self.workers):
            np.minimum(boxes[:, :3], of_slab[:, :3], out=boxes[:, :3])
            np.maximum(boxes[:, 3:], of_slab[:, 3:], out=boxes[:, 3:])
        empty = boxes[:, 3] < 0
        boxes[:, 3:] += 2 - boxes[:, :3]
        boxes[empty] = 0
        if len(self.axes) == 2:  # the one layer is the second one of its cells
            boxes[:, 3] = np.minimum(boxes[:, 3], 1)
        return boxes

    def _traced(self, group: int, box: Integers) -> Both[Surface]:
        def visit(codes: Codes) -> Surface:
            return surfaces.trace(codes, group, box, self.masked, self._shapes)

        return Both(*run(visit, list(self._images), self.workers))

    def _distances(self, surface: Surface, other: Surface) -> tuple[Floats, Floats]:
        """Distances from the elements of one surface to another, and their weights."""
        distances, weights = np.full(surface.starts[-1], np.inf), np.empty(surface.starts[-1])

        def visit(first: int) -> None:
            last = min(first + CELLS, surface.cells.size)
            surfaces.distances(surface, other, self._shapes, first, last, distances, weights)

        for _ in run(visit, range(0, surface.cells.size, CELLS), self.workers):
            pass
        return distances, weights

    def _points(self, surface: Surface, box: Integers) -> Floats:
        points = np.empty((surface.starts[-1], 3))
        surfaces.centroids(surface, self._shapes, box, points)
        return points[:, 3 - len(self.axes) :][:, np.argsort(self._order)]


def _together(groups: Integers, sizes: Integers) -> list[Integers]:
    """Groups in packs of about the same work."""
    if groups.size == 0:
        return []
    packs = np.cumsum(sizes[groups]) // TOGETHER
    return np.split(groups, np.flatnonzero(np.diff(packs)) + 1)

