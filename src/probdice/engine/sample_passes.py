"""Passes that sample pixels by their position among the compared pixels."""

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

Samples = dict[int, Both[tuple[Integers, NDArray[Any]]]]


def count_pass() -> Pass[dict[int, int]]:
    """Return a pass that counts the compared pixels of every block.

    The keys of the result are the numbers of the blocks' first pixels.
    """
    return Pass(_count, joint)


def sample_pass(positions: Both[Integers], starts: dict[int, int] | None) -> Pass[Samples]:
    """Return a pass that reads the compared pixels with the given positions, for each side.

    If not all pixels are compared, `starts` contains the position of the first compared pixel of
    every block.
    """
    return Pass(partial(_sample, positions=positions, starts=starts), joint)


def _count(blocks: Blocks, block: Block) -> dict[int, int]:
    """Return the number of compared pixels of a block. The key is the number of its first pixel."""
    return {block.start: blocks.decode(block).size}


def _sample(
    blocks: Blocks, block: Block, positions: Both[Integers], starts: dict[int, int] | None
) -> Samples:
    """Return the values at the given positions that lie in a block.

    For each side, the values follow the indices of their positions in `positions`. The key is the
    number of the block's first pixel.
    """
    if starts is None:
        selection = positions.map(
            lambda pixel_indices: _in_block(block, pixel_indices, blocks.shape)
        )
        if not any(indices.size for indices, _ in selection):
            return {}
    ready = blocks.decode(block)
    if starts is not None:
        first = starts[block.start]
        bounds = positions.map(
            lambda pixel_indices: np.searchsorted(pixel_indices, [first, first + ready.size])
        )
        selection = Both(
            *(
                (np.arange(*bounds[side]), positions[side][slice(*bounds[side])] - first)
                for side in SIDES
            )
        )
    samples = []
    for name, side in zip(SIDES, ready.sides, strict=True):
        indices, pixels = selection[name]
        if isinstance(side, Crisp):
            samples.append((indices, side.labels[side.codes[pixels]]))
        else:
            samples.append((indices, side.rows[:, side.start + pixels]))
    return {block.start: Both(*samples)}


def _in_block(
    block: Block, pixel_indices: Integers, shape: tuple[int, ...]
) -> tuple[Integers, Integers]:
    """Find the pixels of a block among the pixels with the given numbers.

    Return the indices of their numbers in `pixel_indices`, and their positions in the block.
    `pixel_indices` must be in ascending order.
    """
    if not shape:
        return np.arange(pixel_indices.size), pixel_indices
    last = int(np.ravel_multi_index([part.stop - 1 for part in block.box], shape))
    first, stop = np.searchsorted(pixel_indices, [block.start, last + 1])
    index = np.array(np.unravel_index(pixel_indices[first:stop], shape))
    starts = np.array([[part.start] for part in block.box])
    stops = np.array([[part.stop] for part in block.box])
    inside = ((index >= starts) & (index < stops)).all(axis=0)
    indices = np.ravel_multi_index(tuple((index - starts)[:, inside]), block.shape)
    return first + np.flatnonzero(inside), indices
