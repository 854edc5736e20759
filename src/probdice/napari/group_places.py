"""For each group, find a pixel in the image part where the sides of the group differ most."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.engine.blocks import Blocks
from probdice.engine.decode import Crisp, DecodedBlock, Soft
from probdice.engine.executors import run_pass
from probdice.engine.grids import Block
from probdice.engine.group_passes import GroupLookup
from probdice.engine.passes import Pass
from probdice.method.overlap import Floats, Integers
from probdice.method.scoring import key_lists
from probdice.method.sides import SIDES, Both

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison

__all__ = ["group_places"]

PARTS = 8  # the image is divided into this number of parts along each axis
# Weight of a pixel where both sides agree. It matters only for groups without a difference.
AGREEMENT_WEIGHT = 1e-12


def group_places(comparison: "Comparison") -> Integers:
    """Return one pixel per group, in the image part where the sides of the group differ most.

    The image is divided into parts, eight along each axis. For each group, the part with the
    largest sum of |p − q| is chosen. The result is a pixel of that part: for two label maps, a
    pixel that belongs to the group on one side only; otherwise, a pixel with a large difference.
    For a group without any difference, the result is a pixel in the part that contains most of the
    group.

    Parameters
    ----------
    comparison : Comparison
        A comparison with its images. All pixels are read once.

    Returns
    -------
    ndarray of int
        One row per group: the index of a pixel of the reference.

    Examples
    --------
    >>> import probdice
    >>> from probdice.napari.group_places import group_places
    >>> result = probdice.compare([1, 1, 1, 1, 1, 2, 2, 2], [7, 7, 7, 8, 8, 8, 8, 8])
    >>> group_places(result).tolist()
    [[3], [3]]
    """
    images = comparison.need_images("group_places()")
    groups = comparison.correspondence.groups
    lists = key_lists(comparison.overlap, groups).map(GroupLookup)
    soft_lists = [lists[side].lists for side in SIDES if not images.side(side).crisp]
    soft = [k for k, members in enumerate(zip(*soft_lists, strict=True)) if any(map(len, members))]
    task = Pass(partial(_candidates, groups=lists, soft=soft), _Candidates.total)
    blocks = images.blocks
    candidates = run_pass(task, blocks, images.workers)
    index = np.unravel_index(candidates.best(groups.count), blocks.shape)
    return np.stack([index[blocks.order.index(axis)] for axis in range(len(index))], axis=1)


@dataclass(frozen=True, eq=False)
class _Candidates:
    """One pixel per group and part of the image, and the group's sum of |p − q| in that part."""

    group: Integers
    part: Integers
    weight: Floats
    pixel: Integers

    @classmethod
    def total(cls, parts: "Iterable[_Candidates]") -> "_Candidates":
        """Sum the weights of each group and part, and keep the pixel with the largest weight."""
        group, part, weight, pixel = (
            np.concatenate(columns)
            for columns in zip(*((c.group, c.part, c.weight, c.pixel) for c in parts), strict=True)
        )
        order = np.lexsort((-weight, part, group))
        group, part, weight, pixel = (column[order] for column in (group, part, weight, pixel))
        starts = _starts(group, part)
        return cls(
            group[starts],
            part[starts],
            np.add.reduceat(weight, starts) if starts.size else weight,
            pixel[starts],
        )

    def best(self, groups: int) -> Integers:
        """Return the pixel of each group in the part with the largest weight."""
        order = np.lexsort((self.part, -self.weight, self.group))[::-1]
        pixels = np.zeros(groups, np.int64)
        pixels[self.group[order]] = self.pixel[order]  # keeps the last pixel of each group
        return pixels


def _starts(*columns: NDArray[Any]) -> Integers:
    """Return the rows at which a new combination of values starts, given sorted columns."""
    is_start = np.zeros(columns[0].size, np.bool_)
    is_start[:1] = True
    for column in columns:
        is_start[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(is_start)


def _candidates(
    blocks: Blocks, block: Block, groups: Both[GroupLookup], soft: list[int]
) -> _Candidates:
    """Return the candidates of one block.

    A group in `soft` has probabilities on at least one side.
    """
    ready = blocks.decode(block)
    p_numbers, q_numbers = (
        block.shaped(_numbers(side, members, ready), ready.inside, -1)
        for side, members in zip(ready.sides, groups, strict=True)
    )
    rows: list[tuple[Any, Any, Any, Any]] = []
    parts = list(_parts(block, blocks.shape))
    for group in soft:
        p, q = (
            _probabilities(side, members, group, ready)
            for side, members in zip(ready.sides, groups, strict=True)
        )
        weights = block.shaped(np.abs(p - q) + AGREEMENT_WEIGHT * (p + q), ready.inside, 0)
        for part, box in parts:
            piece = weights[box]
            pixel = np.array([int(np.argmax(piece))])
            rows.append(
                ([group], part, [piece.sum()], _image_pixels(pixel, box, block, blocks.shape))
            )
    by_pixel = np.ones(len(groups.reference), np.bool_)
    by_pixel[soft] = False
    for part, box in parts if by_pixel.any() else ():
        group_numbers, weights, pixels = _middle_pixels(p_numbers[box], q_numbers[box], by_pixel)
        rows.append((group_numbers, part, weights, _image_pixels(pixels, box, block, blocks.shape)))
    return _Candidates.total(
        _Candidates(
            np.asarray(group, np.int64),
            np.full(len(group), part, np.int64),
            np.asarray(weight, np.float64),
            pixel,
        )
        for group, part, weight, pixel in rows
    )


def _numbers(side: Crisp | Soft, members: GroupLookup, ready: DecodedBlock) -> NDArray[np.int32]:
    """Return the group of every compared pixel of a label map, or −1 for probabilities."""
    if isinstance(side, Crisp):
        return members.group_of(side.labels, -1).astype(np.int32)[side.codes]
    return np.full(ready.size, -1, np.int32)


def _probabilities(
    side: Crisp | Soft, members: GroupLookup, group: int, ready: DecodedBlock
) -> Floats:
    """Return the probability of one group at every compared pixel."""
    keys = members.lists[group]
    if isinstance(side, Crisp):
        return np.isin(side.labels, np.asarray(keys, np.int64)).astype(np.float64)[side.codes]
    rows = side.values[list(keys)]
    return np.asarray(rows.sum(axis=0, dtype=np.float64))


def _middle_pixels(
    reference: NDArray[np.int32], prediction: NDArray[np.int32], selected_groups: NDArray[np.bool_]
) -> tuple[Integers, Floats, Integers]:
    """Return the groups in one part of the image, with a weight and a pixel for each group.

    The weight is the number of pixels that belong to the group on one side only. If there are none,
    the weight is the number of pixels of the group, multiplied by `AGREEMENT_WEIGHT`.
    """
    p, q = reference.reshape(-1), prediction.reshape(-1)
    different_pixels = np.flatnonzero(p != q)
    has_difference = np.zeros(selected_groups.size + 1, np.bool_)  # the last entry is for group −1
    has_difference[p[different_pixels]] = has_difference[q[different_pixels]] = True
    equal_pixels = np.flatnonzero((p == q) & ~has_difference[p])
    group = np.concatenate([p[different_pixels], q[different_pixels], p[equal_pixels]])
    pixel = np.concatenate([different_pixels, different_pixels, equal_pixels])
    weight = np.repeat([1.0, AGREEMENT_WEIGHT], [2 * different_pixels.size, equal_pixels.size])
    is_selected = np.append(selected_groups, False)[group]
    group, pixel, weight = group[is_selected], pixel[is_selected], weight[is_selected]
    order = np.argsort(group, kind="stable")
    starts = _starts(group[order])
    sizes = np.diff(np.append(starts, group.size))
    middle = order[starts + sizes // 2]
    return group[middle], weight[middle] * sizes, pixel[middle]


def _parts(block: Block, shape: tuple[int, ...]) -> Iterator[tuple[int, tuple[slice, ...]]]:
    """Yield the index and the box of each image part that overlaps a block.

    The box is in the coordinates of the block.
    """
    axes = []
    for extent, length in zip(block.box, shape, strict=True):
        edges = [length * k // PARTS for k in range(PARTS + 1)]
        ranges = [
            (k, slice(max(low, extent.start) - extent.start, min(high, extent.stop) - extent.start))
            for k, (low, high) in enumerate(pairwise(edges))
        ]
        axes.append([(k, part) for k, part in ranges if part.stop > part.start])
    for axis_parts in product(*axes):
        number = 0
        for k, _ in axis_parts:
            number = number * PARTS + k
        yield number, tuple(part for _, part in axis_parts)


def _image_pixels(
    pixels: Integers, box: tuple[slice, ...], block: Block, shape: tuple[int, ...]
) -> Integers:
    """Convert flat pixel indices in a box of a block to flat pixel indices of the image."""
    sizes = tuple(part.stop - part.start for part in box)
    index = np.unravel_index(pixels, sizes)
    starts = [part.start + extent.start for part, extent in zip(box, block.box, strict=True)]
    coordinates = [positions + start for positions, start in zip(index, starts, strict=True)]
    return np.asarray(np.ravel_multi_index(coordinates, shape), np.int64)
