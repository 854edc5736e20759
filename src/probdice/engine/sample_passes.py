"""Passes that take some pixels by their rank in Ω."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.engine.blocks import Blocks
from probdice.engine.decode import Crisp
from probdice.engine.grids import Block
from probdice.engine.passes import Pass, joint
from probdice.method.overlap import Integers
from probdice.method.sides import SIDES, Both

__all__ = ["count_pass", "sample_pass"]

Taken = dict[int, Both[tuple[Integers, NDArray[Any]]]]


def count_pass() -> Pass[dict[int, int]]:
    """How many pixels of every block are in Ω, by the block's first pixel."""
    return Pass(_count, joint)


def sample_pass(ranks: Both[Integers], starts: dict[int, int] | None) -> Pass[Taken]:
    """Which of the ranks each block has, and their pixels, of both sides.

    `starts` has the rank of every block's first pixel where Ω is not the whole image.
    """
    return Pass(partial(_sample, ranks=ranks, starts=starts), joint)


def _count(blocks: Blocks, block: Block) -> dict[int, int]:
    """How many pixels of the block are in Ω, by the block's first pixel."""
    return {block.start: blocks.ready(block).size}


def _sample(
    blocks: Blocks, block: Block, ranks: Both[Integers], starts: dict[int, int] | None
) -> Taken:
    """Of each side, which of the ranks the block has, and their pixels; by its first pixel.

    `starts` has the rank of every block's first pixel where Ω is not the whole image.
    """
    if starts is None:
        chosen = ranks.map(lambda numbers: _within(block, numbers, blocks.shape))
        if not any(places.size for places, _ in chosen):
            return {}
    ready = blocks.ready(block)
    if starts is not None:
        first = starts[block.start]
        bounds = ranks.map(lambda those: np.searchsorted(those, [first, first + ready.size]))
        chosen = Both(
            *(
                (np.arange(*bounds[side]), ranks[side][slice(*bounds[side])] - first)
                for side in SIDES
            )
        )
    taken = []
    for name, side in zip(SIDES, ready.sides, strict=True):
        places, pixels = chosen[name]
        if isinstance(side, Crisp):
            taken.append((places, side.labels[side.codes[pixels]]))
        else:
            taken.append((places, side.rows[:, side.start + pixels]))
    return {block.start: Both(*taken)}


def _within(block: Block, numbers: Integers, shape: tuple[int, ...]) -> tuple[Integers, Integers]:
    """Which of these ascending numbers of pixels lie in a block, and their places in it."""
    if not shape:
        return np.arange(numbers.size), numbers
    last = int(np.ravel_multi_index([part.stop - 1 for part in block.box], shape))
    first, stop = np.searchsorted(numbers, [block.start, last + 1])
    index = np.array(np.unravel_index(numbers[first:stop], shape))
    starts = np.array([[part.start] for part in block.box])
    stops = np.array([[part.stop] for part in block.box])
    inside = ((index >= starts) & (index < stops)).all(axis=0)
    places = np.ravel_multi_index(tuple((index - starts)[:, inside]), block.shape)
    return first + np.flatnonzero(inside), places
