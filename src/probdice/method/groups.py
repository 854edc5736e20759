"""Groups of corresponding regions and the cost of each group."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.method.overlap import Integers, Overlap
from probdice.method.sides import SIDES, Both, Side

__all__ = ["Groups", "costs", "counted_groups", "group_volumes", "known_from_table"]


@dataclass(frozen=True, eq=False)
class Groups:
    """The group number of every region. The number of an empty region is −1.

    The first `matched` groups have regions of both sides and are ordered by their lowest reference
    region. The next groups are the unmatched reference regions, followed by the unmatched
    prediction regions.
    """

    reference: Integers
    prediction: Integers
    matched: int

    @classmethod
    def of_numbers(cls, overlap: Overlap, reference: Integers, prediction: Integers) -> "Groups":
        """Create groups from arbitrary group numbers. Negative numbers mean unmatched regions."""
        group_indices = Both(reference.copy(), prediction.copy())
        next_group = max((int(side.max(initial=-1)) for side in group_indices), default=-1) + 1
        for side in SIDES:
            occupied = overlap.side(side).occupied
            empty = np.ones(len(overlap.side(side)), np.bool_)
            empty[occupied] = False
            group_indices[side][empty] = -1
            unmatched = occupied[group_indices[side][occupied] < 0]
            group_indices[side][unmatched] = np.arange(next_group, next_group + unmatched.size)
            next_group += unmatched.size
        last = np.iinfo(np.int64).max
        lowest = Both(*(np.full(next_group, last, np.int64) for _ in SIDES))
        for side in SIDES:
            occupied = overlap.side(side).occupied
            np.minimum.at(lowest[side], group_indices[side][occupied], occupied)
        groups = np.flatnonzero((lowest.reference < last) | (lowest.prediction < last))
        one_sided = (lowest.reference[groups] == last) | (lowest.prediction[groups] == last)
        order = groups[np.lexsort((lowest.prediction[groups], lowest.reference[groups], one_sided))]
        new_numbers = np.full(next_group + 1, -1, np.int64)  # the last entry is for group −1
        new_numbers[order] = np.arange(order.size)
        matched = int(order.size - one_sided.sum())
        return cls(
            new_numbers[group_indices.reference], new_numbers[group_indices.prediction], matched
        )

    @cached_property
    def count(self) -> int:
        """Number of groups."""
        return 1 + max(int(side.max(initial=-1)) for side in (self.reference, self.prediction))

    def group_indices(self, side: Side) -> Integers:
        """Return the group number of every region of one side."""
        return self.reference if side == "reference" else self.prediction

    @cached_property
    def members(self) -> Both[tuple[Integers, Integers]]:
        """Per side, the start of each group in the list of all members, and this list."""
        return Both(*(_listed(self.group_indices(side), self.count) for side in SIDES))

    def regions(self, side: Side, group: int) -> Integers:
        """Return the regions of one side in a group."""
        starts, members = self.members[side]
        return members[starts[group] : starts[group + 1]]

    def unmatched(self, side: Side) -> Integers:
        """Return the unmatched regions of one side."""
        return np.flatnonzero(self.group_indices(side) >= self.matched)


def counted_groups(
    overlap: Overlap, groups: Groups, excluded_regions: Both[NDArray[np.bool_]] | None = None
) -> NDArray[np.bool_]:
    """Return a mask of the groups that are included in means over regions and counts of regions.

    A group is included if at least one of its regions is present (`Regions.present`). Regions in
    `excluded_regions`, such as the background, are ignored. Without `excluded_regions`, the groups
    that are not included are *faint*.
    """
    counts = np.zeros(groups.count, np.bool_)
    for side in SIDES:
        present = overlap.side(side).present
        if excluded_regions is not None:
            present = present & ~excluded_regions[side]
        group_indices = groups.group_indices(side)[present]
        counts[group_indices[group_indices >= 0]] = True
    return counts


def group_volumes(overlap: Overlap, groups: Groups, side: Side) -> NDArray[np.float64]:
    """Return the volume of one side of each group, in pixels."""
    regions = overlap.side(side)
    total = np.zeros(groups.count)
    np.add.at(
        total, groups.group_indices(side)[regions.occupied], regions.volumes[regions.occupied]
    )
    return total


def costs(overlap: Overlap, groups: Groups) -> NDArray[Any]:
    """Compute Σ (1 − f) of each group from the overlap table, in multiples of `Overlap.unit`.

    The result may be inexact for groups of several soft regions, because these regions share
    pixels. See `known_from_table`.
    """
    overlapping, alone = overlap.pairs, overlap.alone
    total = np.zeros(groups.count, overlapping.savings.dtype)
    for group_indices, costs_alone in (
        (groups.reference, alone.reference),
        (groups.prediction, alone.prediction),
    ):
        grouped = group_indices >= 0
        np.add.at(total, group_indices[grouped], costs_alone[grouped])
    group_indices = groups.reference[overlapping.rows]
    together = group_indices == groups.prediction[overlapping.columns]
    np.subtract.at(total, group_indices[together], 2 * overlapping.savings[together])
    return np.maximum(total, 0, out=total)


def known_from_table(overlap: Overlap, groups: Groups) -> NDArray[np.bool_]:
    """Return a mask of the groups whose costs the overlap table alone determines."""
    if overlap.crisp:
        return np.ones(groups.count, np.bool_)
    sizes = Both(*(_sizes(groups.group_indices(side), groups.count) for side in SIDES))
    single = Both(*(sizes[side] <= 1 for side in SIDES))
    crisp = Both(overlap.reference.crisp, overlap.prediction.crisp)
    single_or_crisp = Both(*(single[side] | crisp[side] for side in SIDES))
    is_known = single_or_crisp.reference & single_or_crisp.prediction
    if overlap.similarity.separable:
        # The costs of unmatched regions are their volumes, which can be summed.
        is_known |= (sizes.reference == 0) | (sizes.prediction == 0)
    return np.asarray(is_known)


def _sizes(group_indices: Integers, count: int) -> Integers:
    """Return the number of regions of each group."""
    return np.bincount(group_indices[group_indices >= 0], minlength=count)


def _listed(group_indices: Integers, count: int) -> tuple[Integers, Integers]:
    """Return the start of each group in the list of regions sorted by group, and this list."""
    order = np.argsort(group_indices, kind="stable")
    order = order[int(np.count_nonzero(group_indices < 0)) :]
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(group_indices[order], minlength=count), out=starts[1:])
    return starts, order
