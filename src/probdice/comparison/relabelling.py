"""The prediction in the words of the reference."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.data.segmentation import Segmentation
from probdice.engine.blocks import Blocks
from probdice.engine.decode import Crisp, Soft
from probdice.engine.executors import image
from probdice.engine.grids import Block
from probdice.engine.pair import Images
from probdice.method.overlap import Overlap
from probdice.method.pixel_passes import Lists
from probdice.method.scoring import Correspondence

__all__ = ["Target", "relabelled"]


# Makes the array to write to, of a shape and a type; with rows first for probabilities.
Target = Callable[[tuple[int, ...], np.dtype[Any]], Any]


def relabelled(
    overlap: Overlap,
    correspondence: Correspondence,
    images: Images,
    into: Target | None = None,
) -> Segmentation:
    """The prediction with the reference's label for every group, over the whole image."""
    partners = _partners(correspondence)
    if images.prediction.crisp:
        return _relabelled_map(overlap, partners, images, into)
    return _regrouped(overlap, partners, images, into)


def _partners(correspondence: Correspondence) -> NDArray[np.int64]:
    """For every prediction region, the reference region whose label it takes, or −1.

    After merging on the reference side that is the matched region of the group.
    """
    groups, matched = correspondence.groups, correspondence.matched
    first = np.full(groups.count + 1, -1, np.int64)  # the last one is where −1 leads
    kept = np.flatnonzero((matched.reference >= 0) & (matched.reference < matched.matched))
    kept = kept[::-1]  # where a group was given with several regions, the lowest counts
    first[groups.reference[kept]] = kept
    return first[groups.prediction]


def _relabelled_map(
    overlap: Overlap, partners: NDArray[np.int64], images: Images, into: Target | None
) -> Segmentation:
    """A label map with other labels."""
    reference, prediction = images.reference, images.prediction
    numbers, regions = _numbers(overlap), overlap.prediction
    keys: list[int] = regions.keys.tolist()
    used = {*numbers, *overlap.reference.keys.tolist()} if reference.crisp else set(numbers)
    free = _free(used | set(keys))
    new: dict[int, int] = {}
    names: dict[int, str] = {}
    colours: dict[int, str] = {}
    taken = [numbers[partner] for partner in partners.tolist() if partner >= 0]
    dtype = _holding(prediction.array.dtype, [*taken, *keys])
    for k, (key, partner) in enumerate(zip(keys, partners.tolist(), strict=True)):
        if partner >= 0:
            new[key] = numbers[partner]
            name = overlap.reference.name(partner)
            colour = overlap.reference.colour(partner)
        else:
            # Labels of both sides that no type holds together: the prediction's are given up.
            new[key] = next(free) if key in used or dtype is None else key
            name = f"{regions.label(k)} (unmatched)"
            colour = regions.colour(k)
        if colour:
            colours[new[key]] = colour
        if name is not None:
            names[new[key]] = name
    values = np.array(
        list(new.values()), dtype=_holding(dtype or prediction.array.dtype, list(new.values()))
    )
    visit = partial(_new_labels, keys=regions.keys, values=values)
    target = None if into is None else into(prediction.shape, values.dtype)
    blocks = Blocks(prediction, into=target)
    renamed = Segmentation.from_labels(
        image(visit, blocks, values.dtype, images.workers, into=target),
        names=names,
        geometry=reference.geometry or prediction.geometry,
    )
    return replace(renamed, colours=colours)


def _new_labels(
    blocks: Blocks, block: Block, keys: NDArray[Any], values: NDArray[Any]
) -> NDArray[Any]:
    """A block of the prediction, with a value for every key."""
    side = blocks.ready(block).sides[0]
    assert isinstance(side, Crisp)
    labels = side.labels.astype(keys.dtype)
    # What is no label, outside a mask, reads as one that need not occur elsewhere.
    places = np.minimum(np.searchsorted(keys, labels), len(keys) - 1)
    looked_up = np.where(keys[places] == labels, values[places], 0)
    return looked_up.astype(values.dtype)[side.codes].reshape(block.shape)


def _regrouped(
    overlap: Overlap, partners: NDArray[np.int64], images: Images, into: Target | None
) -> Segmentation:
    """Probabilities with the regions of each group added up."""
    reference, prediction = images.reference, images.prediction
    members: dict[tuple[bool, int], list[int]] = {}
    for k, partner in enumerate(partners.tolist()):
        members.setdefault((partner < 0, k if partner < 0 else partner), []).append(k)
    ordered = sorted(members.items())
    numbers, names = _labels_of_groups(overlap, [key for key, _ in ordered])
    visit = partial(_sums, groups=[channels for _, channels in ordered])
    dtype = np.result_type(prediction.array.dtype, np.float32)
    target = None if into is None else into((len(ordered), *prediction.shape), dtype)
    blocks = Blocks(prediction, into=target)
    regrouped = Segmentation.from_probabilities(
        image(visit, blocks, dtype, images.workers, rows=len(ordered), into=target),
        labels=numbers,
        geometry=reference.geometry or prediction.geometry,
    )
    given = [
        overlap.prediction.colour(place) if alone else overlap.reference.colour(place)
        for (alone, place), _ in ordered
    ]
    colours = {k: colour for k, colour in enumerate(given) if colour}
    return replace(regrouped, names=names, colours=colours)


def _labels_of_groups(
    overlap: Overlap, places: Sequence[tuple[bool, int]]
) -> tuple[list[int | None], dict[int, str]]:
    """The number of every group, None where the reference has none, and the names by channel.

    A place is a region of the reference, or one of the prediction that is alone, which keeps its
    number if the reference does not use it and else gets a new one.
    """
    reference, prediction = overlap.reference, overlap.prediction
    used = {number for k in range(len(reference)) if (number := reference.number(k)) is not None}
    own = {number for k in range(len(prediction)) if (number := prediction.number(k)) is not None}
    free = _free(used | own)
    numbers: list[int | None] = []
    names: dict[int, str] = {}
    for channel, (alone, place) in enumerate(places):
        number = (prediction if alone else reference).number(place)
        name = reference.name(place) if not alone else f"{prediction.label(place)} (unmatched)"
        numbers.append(next(free) if alone and number in used else number)
        if name is not None:
            names[channel] = name
    return numbers, names


def _sums(blocks: Blocks, block: Block, groups: Lists) -> NDArray[Any]:
    """A block of the prediction, with the regions of each group added up."""
    side = blocks.ready(block).sides[0]
    assert isinstance(side, Soft)
    rows = np.empty((len(groups), *block.shape), blocks.dtype)  # cast where they are stored
    for row, channels in zip(rows, groups, strict=True):
        taken = side.rows[list(channels), side.start : side.start + side.size]
        row[...] = taken.sum(axis=0).reshape(block.shape)
    return rows


def _numbers(overlap: Overlap) -> list[int]:
    """A number for every region of the reference: its label, or what stands for its name."""
    regions = overlap.reference
    if regions.crisp:
        keys: list[int] = regions.keys.tolist()
        return keys
    given = [regions.number(k) for k in range(len(regions))]
    free = (number for number in count() if number not in given)
    return [next(free) if number is None else number for number in given]


def _free(taken: set[int]) -> Iterator[int]:
    """Numbers that are not taken, above all others while integers of 64 bits reach that far."""
    above = max(taken, default=0) + 1
    if above + len(taken) < 2**63:
        return count(above)
    return (number for number in count() if number not in taken)


def _holding(dtype: np.dtype[Any], labels: Sequence[int]) -> np.dtype[Any] | None:
    """The type of a label map if it holds these labels, else a larger one; None if none does."""
    least, most = min(labels, default=0), max(labels, default=0)
    for larger in (dtype, np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.uint64)):
        if larger.kind in "iu" and np.iinfo(larger).min <= least and most <= np.iinfo(larger).max:
            return larger
    return None
