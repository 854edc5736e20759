"""Subsampled pixels of a comparison: every n-th pixel of a box, read block by block.

Only the selected pixels are kept in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.data.segmentation import Segmentation
from probdice.engine.decode import Crisp
from probdice.engine.pair import SegmentationPair
from probdice.engine.threads import watched
from probdice.method.sides import SIDES, Both, Side, other

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison
    from probdice.engine.grids import Block
    from probdice.method.pixel_passes import Lists

__all__ = [
    "View",
    "every_nth",
    "group_numbers",
    "images_of",
    "largest",
    "largest_loss",
    "look",
    "plane_through",
    "worst_place",
]

SORT_BATCH = 2**16  # pixels
MAX_INT16_REGIONS = 2**15  # largest number of regions whose indices fit into two bytes
NEIGHBOURHOOD = 8  # the worst place is in the worst box, about an eighth of the image per axis


@dataclass(frozen=True, eq=False)
class View:
    """Selected pixels of both sides.

    Attributes
    ----------
    ranges : tuple of range
        The selected indices along each axis of the image.
    sides : dict of side to ndarray
        Per side, the probabilities with the regions along the first axis. For a label map, the
        index of the region of each pixel, or −1 outside the mask. Regions are in the order of
        `reference_labels` and `prediction_labels` of the comparison.
    inside : ndarray of bool
        Whether each pixel is compared.
    f : ndarray of float32
        Similarity under the correspondence, computed on first access; NaN outside the mask.
    """

    ranges: tuple[range, ...]
    sides: dict[Side, NDArray[Any]]
    inside: NDArray[np.bool_]
    compare: Callable[[], NDArray[np.float32]]

    @cached_property
    def f(self) -> NDArray[np.float32]:
        return self.compare()

    def crisp(self, side: Side) -> bool:
        """Return whether a side is a label map."""
        return self.sides[side].dtype.kind == "i"

    def position_of(self, index: tuple[int, ...]) -> tuple[int, ...]:
        """Convert an index of the selected pixels to an index of the image."""
        return tuple(indices[k] for indices, k in zip(self.ranges, index, strict=True))


def look(comparison: Comparison, ranges: tuple[range, ...]) -> View:
    """Return the pixels of a comparison at the given indices along each axis.

    Examples
    --------
    >>> import probdice
    >>> from probdice.pictures.views import look
    >>> result = probdice.compare([[1, 1, 1], [2, 2, 2]], [[1, 1, 2], [2, 2, 2]])
    >>> look(result, (range(2), range(0, 3, 2))).f
    array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    images = images_of(comparison)
    blocks = images.blocks
    block_ranges = [ranges[axis] for axis in blocks.order]
    shape = tuple(len(indices) for indices in block_ranges)
    inside = np.zeros(prod(shape), np.bool_)
    regions = Both(comparison.overlap.reference, comparison.overlap.prediction)
    keys = regions.map(lambda side: side.keys[side.occupied])
    values: dict[Side, NDArray[Any]] = {
        side: np.full(
            inside.shape, -1, np.int16 if len(keys[side]) <= MAX_INT16_REGIONS else np.int32
        )
        if regions[side].crisp
        else np.zeros((len(keys[side]), *inside.shape), blocks.dtype)
        for side in SIDES
    }
    for block in watched(blocks.blocks, len(blocks.blocks)):
        sources, targets = _block_pixels(block, blocks.shape, block_ranges)
        if not sources.size:
            continue
        ready = blocks.decode(block)
        if ready.inside is not None:
            sources, in_omega = _ranks(sources, ready.inside)
            targets = targets[in_omega]
        inside[targets] = True
        for side, pixels in zip(SIDES, ready.sides, strict=True):
            if isinstance(pixels, Crisp):
                numbers = _region_numbers(pixels.labels, keys[side])
                values[side][targets] = numbers[pixels.codes[sources]]
            else:
                for row, key in zip(values[side], keys[side], strict=True):
                    row[targets] = pixels.rows[key, pixels.start + sources]
    back = np.argsort(blocks.order)
    for side in SIDES:
        values[side] = _image(values[side], shape, back)
    inside_image = _image(inside, shape, back)
    sample = SegmentationPair(
        _segmentation(values["reference"]),
        _segmentation(values["prediction"]),
        None if inside_image.all() else inside_image,
        images.workers,
    )
    members = _members(comparison)
    return View(ranges, values, inside_image, lambda: sample.map(comparison.similarity, members))


def images_of(comparison: Comparison) -> SegmentationPair:
    """Return the images of a comparison. Raise an error if the comparison has no images."""
    return comparison.need_images("a picture of the pixels")


def group_numbers(comparison: Comparison, side: Side) -> list[int]:
    """Return the group number of every region in ``comparison.labels(side)``."""
    numbers = {
        label: number
        for number, group in enumerate(comparison.groups)
        for label in group.side(side)
    }
    return [numbers[label] for label in comparison.labels(side)]


def every_nth(
    shape: tuple[int, ...], max_pixels: int, box: tuple[range, ...] | None = None
) -> tuple[range, ...]:
    """Return the indices of at most `max_pixels` pixels: every n-th pixel along the longest axes.

    Examples
    --------
    >>> from probdice.pictures.views import every_nth
    >>> every_nth((512, 512, 30), 2**21)
    (range(0, 512, 2), range(0, 512, 2), range(0, 30))
    """
    ranges = list(box or (range(n) for n in shape))
    while prod(len(indices) for indices in ranges) > max_pixels:
        axis = max(range(len(ranges)), key=lambda k: len(ranges[k]))
        indices = ranges[axis]
        if len(indices) == 1:
            break
        ranges[axis] = range(indices.start, indices.stop, indices.step + 1)
    return tuple(ranges)


def plane_through(
    position: tuple[int, ...], shape: tuple[int, ...], *axes: int
) -> tuple[range, ...]:
    """Return the indices of the plane that contains a pixel and extends along the given axes."""
    return tuple(
        range(n) if axis in axes else range(position[axis], position[axis] + 1)
        for axis, n in enumerate(shape)
    )


def worst_place(view: View) -> tuple[int, ...]:
    """Return a pixel in the area with the lowest mean f, as an index of the selected pixels."""
    return largest_loss(np.where(view.inside, 1 - view.f, np.nan))


def largest_loss(loss: NDArray[np.floating[Any]]) -> tuple[int, ...]:
    """Return a pixel with a large loss near the centre of the box with the largest mean loss.

    The result is the pixel closest to the centre of the box among the pixels whose loss is at least
    half of the largest loss in the box. A box is used because individual pixels with a large loss
    occur almost anywhere. NaN means outside the mask. If the loss is 0 everywhere, the result is
    the centre of the image.
    """
    from scipy.ndimage import uniform_filter

    outside = np.isnan(loss)
    known_loss = np.where(outside, 0, loss).astype(np.float32)
    if not known_loss.any() or not loss.ndim:
        return tuple(n // 2 for n in loss.shape)
    sizes = [2 * (n // NEIGHBOURHOOD // 2) + 1 for n in loss.shape]
    smooth = uniform_filter(known_loss, sizes, mode="constant")
    smooth[outside] = -1
    centre = np.unravel_index(np.argmax(smooth), loss.shape)
    box = tuple(
        slice(max(k - n // 2, 0), k + n // 2 + 1) for k, n in zip(centre, sizes, strict=True)
    )
    worst = np.argwhere(known_loss[box] >= known_loss[box].max() / 2) + [one.start for one in box]
    return tuple(worst[np.argmin(((worst - centre) ** 2).sum(axis=1))].tolist())


def largest(
    view: View, side: Side, max_regions: int
) -> tuple[NDArray[np.int32], NDArray[np.floating[Any]]]:
    """Return the `max_regions` most probable regions of each pixel, and their probabilities.

    Regions with equal probabilities keep their order. A label map has one region per pixel.
    """
    values = view.sides[side]
    if view.crisp(side):
        return values[None], (values[None] >= 0).astype(np.float32)
    rows = values.reshape(values.shape[0], -1)
    max_regions = min(max_regions, rows.shape[0])
    indices = np.empty((max_regions, rows.shape[1]), np.int32)
    probabilities = np.empty((max_regions, rows.shape[1]), rows.dtype)
    for start in range(0, rows.shape[1], SORT_BATCH):
        some = slice(start, start + SORT_BATCH)
        pixels = np.ascontiguousarray(rows[:, some].T)
        order = np.argsort(-pixels, axis=1, kind="stable")[:, :max_regions]
        indices[:, some] = order.T
        probabilities[:, some] = np.take_along_axis(pixels, order, axis=1).T
    shape = (max_regions, *values.shape[1:])
    return indices.reshape(shape), probabilities.reshape(shape)


def _block_pixels(
    block: Block, shape: tuple[int, ...], ranges: list[range]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the selected pixels of a block, and their positions among all selected pixels."""
    if not shape:
        return np.zeros(1, np.int64), np.zeros(1, np.int64)
    sources, targets, sizes = [], [], []
    for extent, n, indices in zip(block.box, shape, ranges, strict=True):
        start, stop, _ = extent.indices(n)
        first = -((indices.start - start) // indices.step) if indices.start < start else 0
        last = min(len(indices), -((indices.start - stop) // indices.step))
        positions = np.arange(first, max(last, first))
        targets.append(positions)
        sources.append(indices.start + positions * indices.step - start)
        sizes.append(stop - start)
    if any(positions.size == 0 for positions in targets):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    counts = tuple(len(indices) for indices in ranges)
    return (
        np.ravel_multi_index(np.ix_(*sources), tuple(sizes)).reshape(-1),
        np.ravel_multi_index(np.ix_(*targets), counts).reshape(-1),
    )


def _ranks(
    positions: NDArray[np.int64], inside: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Look up `positions` in the sorted array `inside`.

    Return the indices in `inside` of the positions that it contains, and a mask of `positions` that
    is true for them.
    """
    if not inside.size:
        return positions[:0], np.zeros(positions.shape, np.bool_)
    ranks = np.minimum(np.searchsorted(inside, positions), inside.size - 1)
    in_omega = inside[ranks] == positions
    return ranks[in_omega], in_omega


def _region_numbers(labels: NDArray[Any], keys: NDArray[Any]) -> NDArray[np.int32]:
    """Return the index of each label in the ascending array `keys`; −1 for unknown labels."""
    labels = labels.astype(keys.dtype)
    positions = np.minimum(np.searchsorted(keys, labels), len(keys) - 1)
    return np.where(keys[positions] == labels, positions, -1).astype(np.int32)


def _members(comparison: Comparison) -> Both[Lists]:
    """Return the regions of every group, as indices into ``comparison.labels(side)``.

    If one side is a label map and the other side contains probabilities, all groups without a
    region of the other side are joined, so that f is computed faster. Joining does not change f,
    because a pixel belongs to at most one of these groups and the other side has probability 0 in
    all of them.
    """
    members: dict[Side, list[list[int]]] = {}
    for side in SIDES:
        members[side] = [[] for _ in comparison.groups]
        for region, number in enumerate(group_numbers(comparison, side)):
            members[side][number].append(region)
    for side in SIDES:
        opposite = other(side)
        if comparison.overlap.side(side).crisp and not comparison.overlap.side(opposite).crisp:
            matched = [k for k, regions in enumerate(members[opposite]) if regions]
            unmatched = [k for k, regions in enumerate(members[opposite]) if not regions]
            label_regions = [region for k in unmatched for region in members[side][k]]
            members[side] = [*(members[side][k] for k in matched), label_regions]
            members[opposite] = [*(members[opposite][k] for k in matched), []]
    return Both(members["reference"], members["prediction"])


def _image(flat: NDArray[Any], shape: tuple[int, ...], back: NDArray[np.int64]) -> NDArray[Any]:
    """Reshape the last axis, whose pixels are in traversal order, to an image."""
    first = flat.ndim - 1
    image = flat.reshape((*flat.shape[:-1], *shape))
    return image.transpose((*range(first), *(first + back))).copy(order="C")


def _segmentation(values: NDArray[Any]) -> Segmentation:
    if values.dtype.kind == "i":
        return Segmentation.from_labels(values)
    return Segmentation.from_probabilities(values)
