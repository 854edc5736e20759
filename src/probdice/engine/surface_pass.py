"""Surfaces of the groups of two images that are read in blocks.

One pass collects the cells that have a surface, for all groups and levels of both sides. They are
far fewer than the pixels, and only they stay in memory. Distances are measured between the
collected cells, so results do not depend on the division into blocks.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from probdice.engine.blocks import Blocks
from probdice.engine.decode import Crisp, Soft
from probdice.engine.executors import executor_for
from probdice.engine.grids import Block
from probdice.engine.group_passes import Members
from probdice.engine.kernels import surface_summary, surfaces
from probdice.engine.kernels.surface_shapes import Shapes, shapes_for
from probdice.engine.kernels.surface_summary import Collected
from probdice.engine.kernels.surfaces import OUTSIDE, Surface
from probdice.engine.pair import Images
from probdice.engine.passes import Pass
from probdice.engine.surface_distances import (
    ABOVE,
    LARGE,
    Elements,
    elements_between,
    numbers_between,
    together,
)
from probdice.engine.threads import run
from probdice.method.pixel_passes import Lists
from probdice.method.sides import SIDES, Both

__all__ = ["BlockOutlines", "Cells", "cells_pass"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST = 2**23  # pixels of a block, which needs some 16 bytes per pixel
DENSE = 2**24  # cells in the box of a group from which on it is stored in bricks


class Cells(NamedTuple):
    """Cells with a surface: the set that each belongs to, its place, and its configuration."""

    numbers: NDArray[np.int32]
    cells: Integers
    configurations: NDArray[np.uint8]


def cells_pass(groups: Both[Lists], levels: Sequence[float], shapes: Shapes) -> Pass[Both[Cells]]:
    """The cells with a surface of every group of both sides.

    The number of the set of a soft group is ``group · len(levels) + level``; that of a group of a
    label map is the number of the group.
    """
    visit = partial(_cells, groups=groups.map(Members), levels=tuple(levels), shapes=shapes)
    return Pass(visit, _all, halo=1)


def _cells(
    blocks: Blocks, block: Block, groups: Both[Members], levels: tuple[float, ...], shapes: Shapes
) -> Both[Cells]:
    box = tuple(slice(max(part.start - 1, 0), part.stop) for part in block.box)
    read = Block(box, 0)  # a cell lies between a pixel and the one before it
    ready = blocks.ready(read)
    sizes = _cell_counts(blocks.shape)
    first = np.array([0, *(part.start for part in block.box)][-3:], np.int64)

    def collected(codes: NDArray[Any]) -> Cells:
        image = _closed(read.shaped(codes, ready.inside, OUTSIDE), block, blocks.shape)
        nothing = Cells(np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.uint8))
        masked = ready.inside is not None
        count = surfaces.collect(image, first, sizes, masked, shapes, *nothing)
        cells = Cells(*(np.empty(count, array.dtype) for array in nothing))
        surfaces.collect(image, first, sizes, masked, shapes, *cells)
        return cells

    def of_side(place: int) -> Cells:
        side, members = ready.sides[place], groups[SIDES[place]]
        if isinstance(side, Crisp):
            return collected(members.group_of(side.labels, -1).astype(np.int32)[side.codes])
        sets = _sets(side, members, levels, blocks.dtype)
        return _concatenated([collected(codes) for codes in sets])

    return Both(of_side(0), of_side(1))


def _sets(
    side: Soft, members: Members, levels: tuple[float, ...], dtype: np.dtype[Any]
) -> Iterable[NDArray[np.int32]]:
    """The number of each set of a soft side inside it, and −1 outside."""
    for group, channels in enumerate(members.lists):
        rows = side.rows[list(channels), side.start : side.start + side.size]
        probabilities = rows.sum(axis=0, dtype=dtype)
        for k, level in enumerate(levels):
            inside = probabilities > level + ABOVE
            yield np.where(inside, np.int32(group * len(levels) + k), np.int32(-1))


def _closed(image: NDArray[np.int32], block: Block, shape: tuple[int, ...]) -> NDArray[np.int32]:
    """Codes with three axes, and with a layer outside at every border of the image."""
    around = [
        (int(part.start == 0), int(part.stop == length))
        for part, length in zip(block.box, shape, strict=True)
    ]
    if image.ndim == 2:  # the one layer is the second one of its cells
        image, around = image[None], [(1, 0), *around]
    return np.ascontiguousarray(np.pad(image, around, constant_values=-1))


def _cell_counts(shape: tuple[int, ...]) -> Integers:
    """Cells along three axes; an image of two axes is one layer."""
    return np.array([1, *(length + 1 for length in shape)][-3:], np.int64)


def _all(results: Iterable[Both[Cells]]) -> Both[Cells]:
    parts = list(results)
    return Both(*(_concatenated([part[side] for part in parts]) for side in SIDES))


def _concatenated(parts: Sequence[Cells]) -> Cells:
    if not parts:
        return Cells(np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.uint8))
    return Cells(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


@dataclass(frozen=True, eq=False)
class BlockOutlines:
    """Outlines of images that are read in blocks.

    Attributes
    ----------
    images : Images
        The images, the mask and the number of workers.
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
        """Distances between the surfaces of every group, at every level, as by `numbers_of`."""
        measured = np.array(percentiles, np.float64), np.array(tolerances, np.float64)
        columns = surface_summary.FIXED + len(percentiles) + len(tolerances)
        count = 1 if self.crisp else len(levels)
        pairs = np.stack(
            [
                np.repeat(np.arange(groups), count) if side.crisp else np.arange(groups * count)
                for side in self.images.sides
            ],
            axis=1,
        )
        table = np.empty((len(pairs), columns))
        self._collected(self.groups, axes, levels, pairs, workers).measure(*measured, table)
        return table.reshape(groups, count, columns)

    def elements(self, axes: Floats, workers: int, group: int, level: float) -> Both[Elements]:
        """The elements of both surfaces of one group, for which the images are read again."""
        alone = self.groups.map(lambda lists: lists[group : group + 1])
        pair = np.zeros((1, 2), np.int64)
        return self._collected(alone, axes, [level], pair, workers).elements(0)

    def _collected(
        self,
        groups: Both[Lists],
        axes: Floats,
        levels: Sequence[float],
        pairs: Integers,
        workers: int,
    ) -> "_Sets":
        images = self.images
        blocks = Blocks(images.reference, images.prediction, mask=images.mask, most=MOST, halo=1)
        shapes = shapes_for(axes[:, list(blocks.order)])
        task = cells_pass(groups, levels, shapes)
        cells = executor_for(blocks, images.workers).run(task, blocks)
        return _Sets.of(cells, pairs, blocks, shapes, workers)


@dataclass(frozen=True, eq=False)
class _Sets:
    """The surfaces of pairs of sets, given by their cells."""

    sides: Both[Collected]
    pairs: Integers  # of each pair, the number of the set of each side
    boxes: Integers  # of each pair, the first cell and the number of cells
    sizes: Integers  # cells of the image along each axis
    order: tuple[int, ...]  # the axes of the image
    shapes: Shapes
    workers: int

    @classmethod
    def of(
        cls, both: Both[Cells], pairs: Integers, blocks: Blocks, shapes: Shapes, workers: int
    ) -> "_Sets":
        sizes = _cell_counts(blocks.shape)
        boxes = np.empty((len(pairs), 6), np.int64)
        boxes[:, :3], boxes[:, 3:] = np.iinfo(np.int64).max, -1
        sides = []
        for place, cells in enumerate(both):
            count = int(pairs[:, place].max(initial=-1)) + 1
            of_sets = np.empty((count, 6), np.int64)
            of_sets[:, :3], of_sets[:, 3:] = np.iinfo(np.int64).max, -1
            surfaces.cell_bounds(cells.numbers, cells.cells, sizes, of_sets)
            np.minimum(boxes[:, :3], of_sets[pairs[:, place], :3], out=boxes[:, :3])
            np.maximum(boxes[:, 3:], of_sets[pairs[:, place], 3:], out=boxes[:, 3:])
            # In this order, sums do not depend on the division into blocks.
            order = np.lexsort((cells.cells, cells.numbers))
            starts = np.searchsorted(cells.numbers[order], np.arange(count + 1))
            sides.append(Collected(cells.cells[order], cells.configurations[order], starts))
        empty = boxes[:, 3] < 0
        boxes[empty] = 0, 0, 0, -1, -1, -1
        boxes[:, 3:] += 1 - boxes[:, :3]
        return cls(Both(*sides), pairs, boxes, sizes, blocks.order, shapes, workers)

    def measure(self, percentiles: Floats, tolerances: Floats, table: Floats) -> None:
        """Write the numbers of every pair to the rows of a table."""
        volumes = self.boxes[:, 3:].prod(axis=1)

        def visit(some: Integers) -> None:
            rows = np.empty((some.size, table.shape[1]))
            surface_summary.summarise_sets(
                self.sides.reference,
                self.sides.prediction,
                self.pairs[some],
                self.boxes[some],
                self.sizes,
                self.shapes,
                percentiles,
                tolerances,
                rows,
            )
            table[some] = rows

        for _ in run(visit, together(np.flatnonzero(volumes <= LARGE), volumes), self.workers):
            pass
        for pair in np.flatnonzero(volumes > LARGE).tolist():
            both = self._assembled(pair)
            numbers_between(both, self.shapes, self.workers, percentiles, tolerances, table[pair])

    def elements(self, pair: int) -> Both[Elements]:
        """The elements of both surfaces of one pair."""
        both, box = self._assembled(pair), self.boxes[pair]
        return elements_between(both, box, self.shapes, self.workers, self.order)

    def _assembled(self, pair: int) -> Both[Surface]:
        def assembled(place: int) -> Surface:
            side, number = self.sides[SIDES[place]], self.pairs[pair, place]
            some = slice(side.starts[number], side.starts[number + 1])
            return surfaces.assemble(
                side.cells[some],
                side.configurations[some],
                self.sizes,
                self.boxes[pair],
                self.shapes,
                DENSE,
            )

        return Both(assembled(0), assembled(1))
