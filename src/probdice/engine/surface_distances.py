"""Distances between the surfaces of the groups of two images.

One pass collects the cells that contain a surface of any group (`surface_pass`). Then, for every
pair of surfaces, the kernels find the point of the other surface that is nearest to each element
(`surface_search`), and summarise the distances (`surface_summary`). Results depend neither on the
division into blocks nor on the number of workers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from probdice.data.machine import cores
from probdice.engine.blocks import Blocks
from probdice.engine.executors import run_pass
from probdice.engine.kernels import surface_search, surface_summary, surfaces
from probdice.engine.kernels.surface_shapes import Shapes, shapes_for
from probdice.engine.kernels.surface_summary import Collected, Directed
from probdice.engine.kernels.surfaces import Pyramid, SetSurface, SurfacePart
from probdice.engine.pair import SegmentationPair
from probdice.engine.surface_pass import Cells, cell_counts, cells_pass
from probdice.engine.threads import run
from probdice.method.pixel_passes import Lists
from probdice.method.sides import Both

__all__ = ["Elements", "Outlines"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PIXELS = 2**18, 2**23  # smallest and largest number of pixels in a block, at 16 bytes per pixel
MAX_UNDIVIDED_CELLS = 2**18  # the box of a pair with more cells is divided among workers
BOX_CELLS_PER_TASK = 2**16  # cells in the boxes of small pairs
MAX_DENSE_CELLS = 2**24  # the box of a pair with more cells is stored in bricks
SURFACE_CELLS_PER_TASK = 2**11


@dataclass(frozen=True, eq=False)
class Elements:
    """The triangles or segments of one surface.

    Attributes
    ----------
    points : ndarray
        Centroids in pixel coordinates, one per row.
    distances : ndarray
        Distance from each centroid to the nearest point of the other surface, or infinity if the
        other surface is empty.
    weights : ndarray
        Areas of triangles, or lengths of segments.
    """

    points: Floats
    distances: Floats
    weights: Floats


@dataclass(frozen=True, eq=False)
class Outlines:
    """The reference and the prediction surface of every group, and the distances between the two.

    Attributes
    ----------
    images : SegmentationPair
        The images, the mask and the number of workers. Each call of `numbers` and `elements` reads
        the images.
    groups : Both
        The regions of every group on each side, given by channel or label. Groups may share
        regions.
    """

    images: SegmentationPair
    groups: Both[Lists]

    @property
    def crisp(self) -> bool:
        """Whether both sides are label maps, whose outlines do not depend on the level."""
        return all(side.crisp for side in self.images.sides)

    def numbers(
        self,
        *,
        percentiles: Sequence[float],
        tolerances: Sequence[float],
        levels: Sequence[float],
    ) -> Floats:
        """Return the boundary measures of every group at every level.

        The axes of the result are the groups, the levels (one if both sides are label maps) and the
        measures, in the order of `summarise`. All measures are NaN if both surfaces are empty. If
        one surface is empty, distances are infinite and shares are 0.
        """
        groups, count = len(self.groups.reference), 1 if self.crisp else len(levels)
        sets = (
            np.repeat(np.arange(groups), count) if side.crisp else np.arange(groups * count)
            for side in self.images.sides
        )
        pairs = self._pairs(levels, np.stack(list(sets), axis=1))
        table = pairs.numbers(np.array(percentiles, float), np.array(tolerances, float))
        return table.reshape(groups, count, -1)

    def elements(self, group: int, level: float) -> Both[Elements]:
        """Return the elements of both surfaces of one group, at one probability level."""
        single_group = Outlines(
            self.images, self.groups.map(lambda lists: lists[group : group + 1])
        )
        return single_group._pairs([level], np.zeros((1, 2), np.int64)).elements(0)

    def _pairs(self, levels: Sequence[float], sets: Integers) -> "_Pairs":
        images, (least, max_pixels) = self.images, PIXELS
        workers = images.workers or cores()
        max_pixels = min(max(prod(images.reference.shape) // (4 * workers), least), max_pixels)
        blocks = Blocks(
            images.reference, images.prediction, mask=images.compared, max_pixels=max_pixels
        )
        geometry = images.reference.geometry
        axes = np.eye(len(blocks.shape)) if geometry is None else geometry.affine[:-1, :-1]
        shapes = shapes_for(axes[:, list(blocks.order)])
        cells = run_pass(cells_pass(self.groups, levels, shapes), blocks, workers)
        return _Pairs.of(cells, sets, blocks, shapes, workers)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs of sets of pixels (one group at one level), with the cells of their surfaces."""

    sides: Both[Collected]
    sets: Integers  # per pair, the set number of each side
    boxes: Integers  # per pair, the first cell and the number of cells along each axis
    sizes: Integers  # number of cells in the image along each axis
    order: tuple[int, ...]  # the axes of the image in the order of traversal
    shapes: Shapes
    workers: int

    @classmethod
    def of(
        cls, side_cells: Both[Cells], sets: Integers, blocks: Blocks, shapes: Shapes, workers: int
    ) -> "_Pairs":
        sizes = cell_counts(blocks.shape)
        lows, highs, sides = [], [], []
        for cells, numbers in zip(side_cells, sets.T, strict=True):
            side, low, high = _by_set(cells, int(numbers.max(initial=-1)) + 1, sizes)
            lows.append(low[numbers])
            highs.append(high[numbers])
            sides.append(side)
        low, high = np.minimum(*lows), np.maximum(*highs)
        boxes = np.concatenate([low, high - low + 1], axis=1)
        boxes[high[:, 0] < 0] = 0
        return cls(Both(*sides), sets, boxes, sizes, blocks.order, shapes, workers)

    def numbers(self, percentiles: Floats, tolerances: Floats) -> Floats:
        """Return one row per pair with the measures of `summarise`."""
        shares = surface_summary.SHARES * tolerances.size
        columns = surface_summary.STATISTICS + percentiles.size + shares
        table = np.empty((len(self.sets), columns))
        volumes = self.boxes[:, 3:].prod(axis=1)

        def visit(some: Integers) -> None:
            rows = np.empty((some.size, columns))
            surface_summary.summarise_sets(
                self.sides.reference,
                self.sides.prediction,
                self.sets[some],
                self.boxes[some],
                self.sizes,
                self.shapes,
                percentiles,
                tolerances,
                rows,
            )
            table[some] = rows

        small = np.flatnonzero(volumes <= MAX_UNDIVIDED_CELLS)
        together = np.cumsum(volumes[small]) // BOX_CELLS_PER_TASK
        for _ in run(visit, np.split(small, np.flatnonzero(np.diff(together)) + 1), self.workers):
            pass
        for pair in np.flatnonzero(volumes > MAX_UNDIVIDED_CELLS).tolist():
            reference, prediction = self._surfaces(pair)
            surface_summary.summarise(
                self._directed(reference, prediction),
                self._directed(prediction, reference),
                percentiles,
                tolerances,
                table[pair],
            )
        return table

    def elements(self, pair: int) -> Both[Elements]:
        """Return the elements of both surfaces of one pair."""
        reference, prediction = self._surfaces(pair)
        return Both(
            self._elements(pair, reference, prediction), self._elements(pair, prediction, reference)
        )

    def _elements(self, pair: int, surface: SetSurface, other: SetSurface) -> Elements:
        points = np.empty((surface.part.starts[-1], 3))
        surface_search.centroids(surface.part, self.shapes, self.boxes[pair], points)
        points = points[:, 3 - len(self.order) :][:, np.argsort(self.order)]
        return Elements(points, *self._distances(surface.part, other.pyramid))

    def _surfaces(self, pair: int) -> list[SetSurface]:
        def assemble(side: Collected, number: int) -> SetSurface:
            some = slice(side.starts[number], side.starts[number + 1])
            cells = side.cells[some], side.configurations[some]
            return surfaces.assemble(
                *cells, self.sizes, self.boxes[pair], self.shapes, MAX_DENSE_CELLS
            )

        return list(map(assemble, self.sides, self.sets[pair]))

    def _directed(self, surface: SetSurface, other: SetSurface) -> Directed:
        part, shared = surfaces.differing(surface.part, other.pyramid, self.shapes)
        return Directed(*self._distances(part, other.pyramid), shared, surface.part.cells.size == 0)

    def _distances(self, part: SurfacePart, other: Pyramid) -> tuple[Floats, Floats]:
        """Return the distance from each element to another surface, and each element's weight."""
        distances, weights = np.empty((2, part.starts[-1]))

        def visit(first: int) -> None:
            last = min(first + SURFACE_CELLS_PER_TASK, part.cells.size)
            surface_search.find_distances(part, other, self.shapes, first, last, distances, weights)

        for _ in run(visit, range(0, part.cells.size, SURFACE_CELLS_PER_TASK), self.workers):
            pass
        return distances, weights


def _by_set(cells: Cells, count: int, sizes: Integers) -> tuple[Collected, Integers, Integers]:
    """Sort cells by set and then by position, so that sums do not depend on the blocks.

    Also return the smallest and the largest index of each set's cells along each axis.
    """
    if (cells.cells[1:] < cells.cells[:-1]).any():  # if blocks follow chunks
        order = np.argsort(cells.cells, kind="stable")
        cells = Cells(*(array[order] for array in cells))
    low, high = np.full((count, 3), np.iinfo(np.int64).max), np.full((count, 3), -1)
    starts = np.zeros(count + 1, np.int64)
    surfaces.bounds(cells.numbers, cells.cells, sizes, low, high, starts[1:])
    np.cumsum(starts, out=starts)
    by_set = np.empty_like(cells.cells), np.empty_like(cells.configurations)
    surfaces.arrange(*cells, starts[:-1].copy(), *by_set)
    return Collected(*by_set, starts), low, high
