"""Relabel the prediction with the labels of the reference."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.data.lazy_arrays import reordered
from probdice.data.segmentation import Segmentation
from probdice.data.value_checks import whole_numbers
from probdice.engine.blocks import Blocks
from probdice.engine.decode import Crisp, Soft
from probdice.engine.executors import image_from_blocks
from probdice.engine.grids import Block
from probdice.engine.pair import SegmentationPair
from probdice.errors import InputError
from probdice.method.overlap import Overlap, Regions
from probdice.method.pixel_passes import Lists
from probdice.method.region_labels import free_numbers, integer_type
from probdice.method.scoring import Correspondence

__all__ = ["Target", "reference_numbers", "relabelled"]


# A function that creates an output array with a given shape and dtype. The first axis of an array
# of probabilities is the region axis.
Target = Callable[[tuple[int, ...], np.dtype[Any]], Any]


def relabelled(
    overlap: Overlap,
    correspondence: Correspondence,
    images: SegmentationPair,
    into: Target | None = None,
) -> Segmentation:
    """Return the prediction with the labels of the reference.

    The prediction regions of a group get the label of the group's matched reference region.
    An unmatched prediction region keeps its label if the reference does not use that label;
    otherwise it gets a new label.
    """
    if into is not None and not callable(into):
        raise InputError(
            f"into: expected a function that creates the output array, such as lambda shape, "
            f"dtype: np.empty(shape, dtype), found {type(into).__name__}"
        )
    matches = _matches(correspondence)
    if images.prediction.crisp:
        return _relabel_map(overlap, matches, images, into)
    return _sum_groups(overlap, matches, images, into)


def _matches(correspondence: Correspondence) -> NDArray[np.int64]:
    """Return, for each prediction region, the reference region that provides its label, or −1.

    If a group has several reference regions, the region that was matched before merging provides
    the label. If several regions were matched, the region with the lowest index provides it.
    """
    groups, matched = correspondence.groups, correspondence.matched
    first_regions = np.full(groups.count + 1, -1, np.int64)  # the last entry is for group −1
    regions = np.flatnonzero((matched.reference >= 0) & (matched.reference < matched.matched))
    regions = regions[::-1]  # if a given group has several regions, the first one is used
    first_regions[groups.reference[regions]] = regions
    return first_regions[groups.prediction]


def _relabel_map(
    overlap: Overlap, matches: NDArray[np.int64], images: SegmentationPair, into: Target | None
) -> Segmentation:
    """Return the prediction as a label map with the labels of the reference."""
    reference, prediction = images.reference, images.prediction
    numbers, regions = reference_numbers(overlap), overlap.prediction
    keys: list[int] = regions.keys.tolist()
    used_labels = {*numbers, *overlap.reference.keys.tolist()} if reference.crisp else set(numbers)
    free_labels = free_numbers(used_labels | set(keys))
    new_labels: dict[int, int] = {}
    names: dict[int, str] = {}
    colours: dict[int, str] = {}
    assigned_labels = [numbers[match] for match in matches.tolist() if match >= 0]
    dtype = integer_type(prediction.array.dtype, [*assigned_labels, *keys])
    for k, (key, match) in enumerate(zip(keys, matches.tolist(), strict=True)):
        if match >= 0:
            new_labels[key] = numbers[match]
            name = overlap.reference.name(match)
            colour = overlap.reference.colour(match)
        else:
            # If no type can represent the labels of both sides, unmatched regions get new labels.
            new_labels[key] = next(free_labels) if key in used_labels or dtype is None else key
            name = f"{regions.label(k)} (unmatched)"
            colour = regions.colour(k)
        if colour:
            colours[new_labels[key]] = colour
        if name is not None:
            names[new_labels[key]] = name
    values = np.array(
        list(new_labels.values()),
        dtype=integer_type(dtype or prediction.array.dtype, list(new_labels.values())),
    )
    visit = partial(_new_labels, keys=regions.keys, values=values)
    target = None if into is None else into(prediction.shape, values.dtype)
    blocks = Blocks(prediction, into=target)
    segmentation = Segmentation.from_labels(
        image_from_blocks(visit, blocks, values.dtype, images.workers, into=target),
        names=names,
        geometry=reference.geometry or prediction.geometry,
    )
    return replace(segmentation, colours=colours)


def _new_labels(
    blocks: Blocks, block: Block, keys: NDArray[Any], values: NDArray[Any]
) -> NDArray[Any]:
    """Return a block of the prediction with every label in `keys` replaced by its new label.

    Values that are not labels, which may occur outside a mask, become 0.
    """
    ready = blocks.decode(block)
    side = ready.sides[0]
    assert isinstance(side, Crisp)
    labels = side.labels.astype(keys.dtype)
    # A block without labels has the label 0, which may not be among the keys.
    indices = np.minimum(np.searchsorted(keys, labels), len(keys) - 1)
    labels = np.where(keys[indices] == labels, values[indices], 0).astype(values.dtype)
    new_labels = labels[side.codes].reshape(block.shape)
    if ready.faults[0] is not None:
        stored_values = reordered(blocks.sides[0].array, blocks.order, ())[block.box]
        new_labels[~whole_numbers(np.asarray(stored_values))] = 0
    return new_labels


def _sum_groups(
    overlap: Overlap, matches: NDArray[np.int64], images: SegmentationPair, into: Target | None
) -> Segmentation:
    """Return the probabilities of the prediction, summed over the regions of each group."""
    reference, prediction = images.reference, images.prediction
    members: dict[tuple[bool, int], list[int]] = {}
    for k, match in enumerate(matches.tolist()):
        members.setdefault((match < 0, k if match < 0 else match), []).append(k)
    sorted_groups = sorted(members.items())
    labels, names = _labels_of_groups(overlap, [key for key, _ in sorted_groups])
    visit = partial(_sums, groups=[channels for _, channels in sorted_groups])
    dtype = np.result_type(prediction.array.dtype, np.float32)
    target = None if into is None else into((len(sorted_groups), *prediction.shape), dtype)
    blocks = Blocks(prediction, into=target)
    segmentation = Segmentation.from_probabilities(
        image_from_blocks(
            visit, blocks, dtype, images.workers, rows=len(sorted_groups), into=target
        ),
        labels=labels,
        names=names,
        geometry=reference.geometry or prediction.geometry,
    )
    group_colours = [
        overlap.prediction.colour(region) if unmatched else overlap.reference.colour(region)
        for (unmatched, region), _ in sorted_groups
    ]
    colours = {k: colour for k, colour in enumerate(group_colours) if colour}
    return replace(segmentation, colours=colours)


def _labels_of_groups(
    overlap: Overlap, regions: Sequence[tuple[bool, int]]
) -> tuple[list[int | None], list[str | None]]:
    """Return the integer label and the name of every group; None if a group has none.

    Each entry of `regions` is (False, reference region) or (True, unmatched prediction region). An
    unmatched region keeps its label if the reference does not use that label; otherwise it gets a
    new label.
    """
    reference, prediction = overlap.reference, overlap.prediction
    reference_labels = _numbers(reference)
    used_labels = {label for label in reference_labels if label is not None}
    unused_labels = free_numbers(used_labels | set(prediction.numbers.values()))
    labels: list[int | None] = []
    names: list[str | None] = []
    for unmatched, region in regions:
        name: str | None
        if unmatched:
            label, name = prediction.number(region), f"{prediction.label(region)} (unmatched)"
            needs_label = label in used_labels
        else:
            label, name = reference_labels[region], reference.name(region)
            needs_label = label is None and name is None
        labels.append(next(unused_labels) if needs_label else label)
        names.append(name)
    return labels, names


def _sums(blocks: Blocks, block: Block, groups: Lists) -> NDArray[Any]:
    """Return the probabilities of one block, summed over the regions of each group."""
    side = blocks.decode(block).sides[0]
    assert isinstance(side, Soft)
    rows = np.empty((len(groups), *block.shape), blocks.dtype)  # cast when the block is stored
    for row, channels in zip(rows, groups, strict=True):
        members = side.values[list(channels)]
        row[...] = members.sum(axis=0).reshape(block.shape)
    return rows


def reference_numbers(overlap: Overlap) -> list[int]:
    """Return one label per reference region. A region without a label gets an unused number."""
    numbers = _numbers(overlap.reference)
    unused_numbers = (number for number in count() if number not in numbers)
    return [next(unused_numbers) if number is None else number for number in numbers]


def _numbers(regions: Regions) -> list[int | None]:
    """Return the number of every region, or None.

    A channel that has neither a number nor a name is numbered by its index, unless another channel
    has this number.
    """
    keys: list[int] = regions.keys.tolist()
    unlabelled = set(regions.unlabelled) - set(regions.numbers.values())
    return [key if key in unlabelled else regions.number_of(key) for key in keys]
