"""A pass over the pixels that collects the surfaces of all groups of two images.

A cell consists of the 2 × 2 × 2 pixels (2 × 2 in 2-D) around a corner of the pixel grid. Only cells
with a surface are kept in memory, and there are far fewer of these cells than pixels.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from probdice.engine.blocks import Blocks
from probdice.engine.decode import Crisp, Soft
from probdice.engine.grids import Block
from probdice.engine.group_passes import GroupLookup
from probdice.engine.kernels import surfaces
from probdice.engine.kernels.surface_shapes import Shapes
from probdice.engine.passes import Pass
from probdice.method.pixel_passes import Lists
from probdice.method.sides import SIDES, Both

__all__ = ["Cells", "cell_counts", "cells_pass"]

LEVEL_TOLERANCE = 1e-6  # smallest amount by which a probability must exceed a level

Codes = NDArray[np.int32]


class Cells(NamedTuple):
    """Cells with a surface: the set number, the position and the configuration of each cell.

    A set contains the pixels of one group or, for probabilities, of one group at one level.
    """

    numbers: NDArray[Any]  # int32
    cells: NDArray[Any]  # int64: flat indices in the image
    configurations: NDArray[Any]  # uint8

    @classmethod
    def empty(cls, size: int = 0) -> "Cells":
        return cls(np.empty(size, np.int32), np.empty(size, np.int64), np.empty(size, np.uint8))

    @classmethod
    def joined(cls, parts: Sequence["Cells"]) -> "Cells":
        return cls(*map(np.concatenate, zip(cls.empty(), *parts, strict=True)))


def cells_pass(groups: Both[Lists], levels: Sequence[float], shapes: Shapes) -> Pass[Both[Cells]]:
    """Return a pass that collects the cells with a surface of any group, for both sides.

    For probabilities, the set number is ``group · len(levels) + level``, where `level` is the index
    of the level. For label maps, the set number is the group number.
    """
    visit = partial(_cells, groups=groups.map(_layers), levels=tuple(levels), shapes=shapes)
    return Pass(visit, _all, halo=1)


def cell_counts(shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the number of cells along three axes. A 2-D image has one layer of cells."""
    return np.array([1, *(length + 1 for length in shape)][-3:], np.int64)


def _cells(
    blocks: Blocks,
    block: Block,
    groups: Both[list[GroupLookup]],
    levels: tuple[float, ...],
    shapes: Shapes,
) -> Both[Cells]:
    box = tuple(slice(max(part.start - 1, 0), part.stop) for part in block.box)
    read_block = Block(box, 0)  # a cell lies between a pixel and the previous pixel
    ready = blocks.decode(read_block)
    first = np.array([0, *(part.start for part in block.box)][-3:], np.int64)
    ends = zip(block.box, blocks.shape, strict=True)
    last = [1, *(part.stop + (part.stop == length) for part, length in ends)][-3:]

    def collect(codes: Codes, sets: Sequence[int]) -> Cells:
        numbers = np.array([*sets, surfaces.EXCLUDED_SET, surfaces.NO_SET], np.int32)
        image = read_block.shaped(codes, ready.inside, len(sets))
        place = first, last - first, cell_counts(blocks.shape)
        pixels = image.reshape((1, *image.shape)[-3:]), numbers
        cells = Cells.empty(image.size)  # more than most images need
        count = surfaces.collect(*pixels, *place, shapes, *cells)
        if count > image.size:
            cells = Cells.empty(count)
            surfaces.collect(*pixels, *place, shapes, *cells)
        return Cells(*(array[:count].copy() for array in cells))

    def of_side(side: Crisp | Soft, layers: list[GroupLookup]) -> Cells:
        return Cells.joined(
            [collect(*set_codes) for set_codes in _set_codes(side, layers, levels, blocks.dtype)]
        )

    return Both(*map(of_side, ready.sides, groups))


def _set_codes(
    side: Crisp | Soft, layers: list[GroupLookup], levels: tuple[float, ...], dtype: np.dtype[Any]
) -> Iterator[tuple[Codes, Sequence[int]]]:
    """Yield a code per pixel, and the set number of every code (−1 for a code without a set).

    A label map gives one item per layer, and probabilities give one item per group and level.
    """
    for layer in layers:
        if isinstance(side, Crisp):
            yield side.codes, layer.group_of(side.labels, surfaces.NO_SET).tolist()
            continue
        for group, channels in enumerate(layer.lists):
            if not channels:
                continue
            rows = side.values[list(channels)]
            probabilities = rows.sum(axis=0, dtype=dtype)
            for k, level in enumerate(levels):
                inside = probabilities > level + LEVEL_TOLERANCE
                yield inside.astype(np.int32), [surfaces.NO_SET, group * len(levels) + k]


def _layers(groups: Lists) -> list[GroupLookup]:
    """Divide the groups into layers so that no two groups in a layer share a region."""
    layers: list[list[Sequence[int]]] = []
    layer_regions: list[set[int]] = []
    for k, regions in enumerate(groups):
        free = (n for n, labels in enumerate(layer_regions) if labels.isdisjoint(regions))
        layer = next(free, len(layers))
        if layer == len(layers):
            layers.append([()] * len(groups))
            layer_regions.append(set())
        layers[layer][k] = regions
        layer_regions[layer].update(regions)
    return [GroupLookup(layer) for layer in layers]


def _all(results: Iterable[Both[Cells]]) -> Both[Cells]:
    sides = [list(parts) for parts in zip(*results, strict=True)] or [[], []]
    sides.reverse()
    return Both(*(Cells.joined(sides.pop()) for _ in SIDES))  # the parts of a side are freed early
