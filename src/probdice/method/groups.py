"""Which regions of the two sides belong together, and what they cost."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.method.overlap import Integers, Overlap
from probdice.method.sides import SIDES, Both, Side

__all__ = ["Groups", "costs", "counted", "known_from_table"]


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of every region, by number; −1 for an empty region, which belongs to none.

    The first `matched` groups have regions of both sides and are ordered by their lowest reference
    region; then come reference regions alone, then prediction regions alone.
    """

    reference: Integers
    prediction: Integers
    matched: int

    @classmethod
    def of_pairs(cls, overlap: Overlap, rows: Integers, columns: Integers) -> "Groups":
        """Pairs of one region each, sorted by row; all other regions are alone."""
        reference = np.full(len(overlap.reference), -1, np.int64)
        prediction = np.full(len(overlap.prediction), -1, np.int64)
        matched = len(rows)
        reference[rows] = prediction[columns] = np.arange(matched)
        count = matched
        for regions, numbers in (
            (overlap.reference, reference),
            (overlap.prediction, prediction),
        ):
            if matched < len(regions):
                spare = regions.occupied[numbers[regions.occupied] < 0]
                numbers[spare] = np.arange(count, count + spare.size)
                count += spare.size
        return cls(reference, prediction, matched)

    @classmethod
    def of_numbers(cls, overlap: Overlap, reference: Integers, prediction: Integers) -> "Groups":
        """Groups numbered in any way, numbered anew; negative numbers are regions alone."""
        numbers = Both(reference.copy(), prediction.copy())
        following = max((int(side.max(initial=-1)) for side in numbers), default=-1) + 1
        for side in SIDES:
            occupied = overlap.side(side).occupied
            empty = np.ones(len(overlap.side(side)), np.bool_)
            empty[occupied] = False
            numbers[side][empty] = -1
            spare = occupied[numbers[side][occupied] < 0]
            numbers[side][spare] = np.arange(following, following + spare.size)
            following += spare.size
        last = np.iinfo(np.int64).max
        first = Both(*(np.full(following, last, np.int64) for _ in SIDES))
        for side in SIDES:
            occupied = overlap.side(side).occupied
            np.minimum.at(first[side], numbers[side][occupied], occupied)
        used = np.flatnonzero((first.reference < last) | (first.prediction < last))
        alone = (first.reference[used] == last) | (first.prediction[used] == last)
        order = used[np.lexsort((first.prediction[used], first.reference[used], alone))]
        anew = np.full(following + 1, -1, np.int64)  # the last one is where −1 leads
        anew[order] = np.arange(order.size)
        return cls(anew[numbers.reference], anew[numbers.prediction], int(order.size - alone.sum()))

    @cached_property
    def count(self) -> int:
        """How many groups there are."""
        return 1 + max(int(side.max(initial=-1)) for side in (self.reference, self.prediction))

    def numbers(self, side: Side) -> Integers:
        """The group of every region of one side."""
        return self.reference if side == "reference" else self.prediction

    @cached_property
    def members(self) -> Both[tuple[Integers, Integers]]:
        """Per side, where each group starts in the list of all members, and that list."""
        return Both(*(_listed(self.numbers(side), self.count) for side in SIDES))

    def regions(self, side: Side, group: int) -> Integers:
        """The regions of one side in a group."""
        starts, members = self.members[side]
        return members[starts[group] : starts[group + 1]]

    def spare(self, side: Side) -> Integers:
        """The regions of one side without a partner."""
        return np.flatnonzero(self.numbers(side) >= self.matched)


def counted(
    overlap: Overlap, groups: Groups, left_out: Both[NDArray[np.bool_]] | None = None
) -> NDArray[np.bool_]:
    """Which groups count in means over regions and in counts of regions; the others are faint.

    A group counts if at least one of its regions is present (`Regions.present`). Regions in
    `left_out`, such as the background, are disregarded.
    """
    counts = np.zeros(groups.count, np.bool_)
    for side in SIDES:
        present = overlap.side(side).present
        if left_out is not None:
            present = present & ~left_out[side]
        numbers = groups.numbers(side)[present]
        counts[numbers[numbers >= 0]] = True
    return counts


def costs(overlap: Overlap, groups: Groups) -> NDArray[Any]:
    """Σ 1 − f between both sides of each group, in units, as far as the table knows it.

    Groups of several soft regions share pixels that the table counts more than once: see
    `known_from_table`.
    """
    meeting, alone = overlap.meeting, overlap.alone
    total = np.zeros(groups.count, meeting.savings.dtype)
    for numbers, costs_alone in (
        (groups.reference, alone.reference),
        (groups.prediction, alone.prediction),
    ):
        kept = numbers >= 0
        np.add.at(total, numbers[kept], costs_alone[kept])
    numbers = groups.reference[meeting.rows]
    together = numbers == groups.prediction[meeting.columns]
    np.subtract.at(total, numbers[together], 2 * meeting.savings[together])
    return np.maximum(total, 0, out=total)


def known_from_table(overlap: Overlap, groups: Groups) -> NDArray[np.bool_]:
    """Which groups' costs follow from the table alone."""
    if overlap.crisp:
        return np.ones(groups.count, np.bool_)
    sizes = Both(*(np.diff(groups.members[side][0]) for side in SIDES))
    single = Both(*(sizes[side] <= 1 for side in SIDES))
    crisp = Both(overlap.reference.crisp, overlap.prediction.crisp)
    single_or_crisp = Both(*(single[side] | crisp[side] for side in SIDES))
    known = single_or_crisp.reference & single_or_crisp.prediction
    if overlap.similarity.separable:
        # Of regions without a partner, absolute costs are volumes, and add up.
        known |= (sizes.reference == 0) | (sizes.prediction == 0)
    return np.asarray(known)


def _listed(numbers: Integers, count: int) -> tuple[Integers, Integers]:
    """Regions by group: where each group starts, and all regions in that order."""
    order = np.argsort(numbers, kind="stable")
    order = order[int(np.count_nonzero(numbers < 0)) :]
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(numbers[order], minlength=count), out=starts[1:])
    return starts, order
