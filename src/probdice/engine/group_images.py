"""Groups of regions as images: the group of every pixel, or the probability of one group."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.engine.blocks import Blocks
from probdice.engine.decode import Crisp, Soft
from probdice.engine.executors import image
from probdice.engine.grids import Block
from probdice.engine.group_passes import Members
from probdice.engine.pair import Images
from probdice.method.pixel_passes import Lists
from probdice.method.sides import SIDES, Side

__all__ = ["compared_pixels", "group_numbers", "group_probabilities"]


def group_numbers(images: Images, side: Side, groups: Lists) -> NDArray[np.int32]:
    """The number of the group of every pixel of a label map; −1 for none and outside Ω."""
    visit = partial(_numbers, place=SIDES.index(side), members=Members(groups))
    numbers: NDArray[np.int32] = image(visit, images.blocks, np.int32, images.workers)
    return np.asarray(numbers)


def group_probabilities(
    images: Images, side: Side, channels: Sequence[int]
) -> NDArray[np.floating[Any]]:
    """The sum of some channels of a soft side at every pixel; 0 outside Ω."""
    visit = partial(_probabilities, place=SIDES.index(side), channels=list(channels))
    values: NDArray[Any] = image(visit, images.blocks, images.blocks.dtype, images.workers)
    return np.asarray(values)


def compared_pixels(images: Images) -> NDArray[np.bool_] | None:
    """Which pixels are in Ω; None if all are."""
    if images.blocks.whole:
        return None
    inside: NDArray[np.bool_] = image(_inside, images.blocks, np.bool_, images.workers)
    return np.asarray(inside)


def _numbers(blocks: Blocks, block: Block, place: int, members: Members) -> NDArray[Any]:
    ready = blocks.ready(block)
    side = ready.sides[place]
    assert isinstance(side, Crisp)
    numbers = members.group_of(side.labels, -1).astype(np.int32)[side.codes]
    return block.shaped(numbers, ready.inside, -1)


def _probabilities(blocks: Blocks, block: Block, place: int, channels: list[int]) -> NDArray[Any]:
    ready = blocks.ready(block)
    side = ready.sides[place]
    assert isinstance(side, Soft)
    rows = side.rows[channels, side.start : side.start + side.size]
    return block.shaped(rows.sum(axis=0, dtype=blocks.dtype), ready.inside, 0)


def _inside(blocks: Blocks, block: Block) -> NDArray[Any]:
    ready = blocks.ready(block)
    return block.shaped(np.ones(ready.size, np.bool_), ready.inside, False)
