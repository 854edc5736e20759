"""Merge unmatched regions into groups of matched regions, in order of decreasing gain."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from probdice.method.groups import Groups
from probdice.method.overlap import Overlap
from probdice.method.sides import SIDES, Side, other

__all__ = ["MERGING", "JoinedLosses", "Merging", "RegionMerge", "merge_unmatched", "sides_to_merge"]

Merging = Literal["none", "prediction", "reference", "both"]  # sides whose regions may merge
MERGING: tuple[Merging, ...] = get_args(Merging)

ORDER: tuple[Side, Side] = ("prediction", "reference")  # the first side merges first if gains tie

# The arguments are a side, the members of several groups on that side and on the other side, and
# unmatched regions of that side. The result is Σ (1 − f) of each group (rows) with each unmatched
# region added (columns).
JoinedLosses = Callable[
    [Side, Sequence[Sequence[int]], Sequence[Sequence[int]], Sequence[int]], NDArray[Any]
]


def sides_to_merge(merge: Merging) -> tuple[Side, ...]:
    """Return the sides whose unmatched regions may be merged."""
    return tuple(side for side in SIDES if merge in (side, "both"))


@dataclass(frozen=True)
class RegionMerge:
    """The merge of an unmatched region into a group.

    `into` contains the regions of the group on the other side.
    """

    side: Side
    region: int
    into: tuple[int, ...]
    group: int
    gain: float


def merge_unmatched(
    overlap: Overlap,
    groups: Groups,
    costs: NDArray[Any],
    sides: Sequence[Side],
    joined_losses: JoinedLosses,
    *,
    by_table: bool = False,
) -> tuple[Groups, NDArray[Any], tuple[RegionMerge, ...]]:
    """Merge each unmatched region of `sides` that overlaps a matched group, even if costs rise.

    Parameters
    ----------
    costs : ndarray
        Σ (1 − f) of each group, in multiples of `Overlap.unit`.
    joined_losses : callable
        Computes the costs that require the pixels.
    by_table : bool
        Whether to compute all gains from the overlap table, even gains that are then only
        approximate. Use True only if there are no images.

    Returns
    -------
    groups
        The groups after merging, with new numbers.
    costs
        The cost of each group.
    joins
        The merges, in the order in which they were performed.
    """
    if not groups.matched or not any(groups.unmatched(side).size for side in sides):
        return groups, costs, ()
    joining = _Joining(overlap, groups, costs, sides, joined_losses, by_table)
    joins = tuple(joining.run())
    group_indices = {side: groups.group_indices(side).copy() for side in ORDER}
    for join in joins:
        group_indices[join.side][join.region] = join.group
    merged_groups = Groups.of_numbers(
        overlap, group_indices["reference"], group_indices["prediction"]
    )
    old_costs = costs.copy()
    old_costs[: groups.matched] = joining.cost
    new_costs = np.empty(merged_groups.count, old_costs.dtype)
    for side in ORDER:
        occupied = overlap.side(side).occupied
        new_costs[merged_groups.group_indices(side)[occupied]] = old_costs[
            group_indices[side][occupied]
        ]
    return merged_groups, new_costs, joins


class _Joining:
    """The gains from merging unmatched regions into the groups that they overlap."""

    def __init__(
        self,
        overlap: Overlap,
        groups: Groups,
        costs: NDArray[Any],
        sides: Sequence[Side],
        joined_losses: JoinedLosses,
        by_table: bool,
    ) -> None:
        self.overlap = overlap
        self.joined_losses = joined_losses
        self.by_table = by_table
        self.cost = costs[: groups.matched].tolist()
        self.alone = {side: overlap.alone[side].tolist() for side in ORDER}
        self.members: dict[Side, list[list[int]]] = {
            side: [groups.regions(side, g).tolist() for g in range(groups.matched)]
            for side in ORDER
        }
        self.unmatched: dict[Side, set[int]] = {
            side: set(groups.unmatched(side).tolist()) if side in sides else set() for side in ORDER
        }
        self.pairs = {side: self._neighbours(side) for side in ORDER}
        # Per side and unmatched region, the saving with the other side of each group.
        self.group_savings: dict[Side, dict[int, dict[int, Any]]] = {side: {} for side in ORDER}
        self.gain: dict[tuple[int, int, int], Any] = {}
        self.heap: list[tuple[Any, int, int, int]] = []
        self.ready: list[tuple[int, int, int, Any]] = []  # tied merges, in tie-breaking order
        self.level: Any = 0  # the largest gain when the ready merges were taken from the heap
        group_of = {side: groups.group_indices(side).tolist() for side in ORDER}
        for side in ORDER:
            opposite_groups = group_of[other(side)]
            for region in self.unmatched[side]:
                region_savings = self.group_savings[side].setdefault(region, {})
                for neighbour, saving in self.pairs[side].get(region, ()):
                    if opposite_groups[neighbour] < groups.matched:
                        region_savings[opposite_groups[neighbour]] = (
                            region_savings.get(opposite_groups[neighbour], 0) + saving
                        )
            self._measure(side, range(groups.matched))
        heapify(self.heap)

    def run(self) -> list[RegionMerge]:
        """Perform all merges, largest gain first, and return them in this order."""
        overlap, joins = self.overlap, []
        scale = overlap.unit / overlap.pixels
        while (best := self._best()) is not None:
            order, region, group = best
            side = ORDER[order]
            gain = self.gain[best]
            into = tuple(sorted(self.members[other(side)][group]))
            joins.append(RegionMerge(side, region, into, group, float(gain * scale)))
            self._join(side, region, group, gain)
        return joins

    def _best(self) -> tuple[int, int, int] | None:
        """Return the merge with the largest gain, or None if no merge is left.

        In a tie, the prediction comes first, then the lower region index, then the lower group
        index. Merges whose gains tie with the largest gain are stored in `ready`, so that they are
        not compared again after every merge.
        """
        heap, ready = self.heap, self.ready
        tie = self.overlap.tie
        while True:
            while heap and not self._valid(heap[0]):
                heappop(heap)
            if heap and ready and -heap[0][0] > self.level:  # the last merge raised a gain
                for *key, negative_gain in ready:
                    heappush(heap, (negative_gain, *key))
                ready.clear()
            if not ready:
                if not heap:
                    return None
                self.level = -heap[0][0]
            while heap and -heap[0][0] >= self.level - tie:
                negative_gain, *key = heappop(heap)
                heappush(ready, (*key, negative_gain))
            *key, negative_gain = heappop(ready)
            if self._valid((negative_gain, *key)):
                return key[0], key[1], key[2]

    def _valid(self, entry: tuple[Any, int, int, int]) -> bool:
        negative_gain, order, region, group = entry
        if region not in self.unmatched[ORDER[order]]:
            return False
        return bool(self.gain[order, region, group] == -negative_gain)

    def _join(self, side: Side, region: int, group: int, gain: Any) -> None:
        """Add a region to a group and update the gains of that group."""
        self.unmatched[side].discard(region)
        self.members[side][group].append(region)
        self.cost[group] = max(self.cost[group] - gain, 0)  # sums may exceed 1 by rounding
        opposite = other(side)
        for neighbour, saving in self.pairs[side].get(region, ()):
            if neighbour in self.unmatched[opposite]:
                neighbour_savings = self.group_savings[opposite][neighbour]
                neighbour_savings[group] = neighbour_savings.get(group, 0) + saving
                if self._additive(opposite, group):
                    self._offer(
                        opposite, neighbour, group, self._from_table(opposite, neighbour, group)
                    )
        for changed_side in ORDER:
            if not self._additive(changed_side, group):
                self._measure(changed_side, [group])

    def _measure(self, side: Side, groups: Sequence[int]) -> None:
        """Compute the gains from merging the unmatched regions of a side into these groups.

        A gain is computed only for a group that the region overlaps.
        """
        additive = {g for g in groups if self._additive(side, g)}
        if additive:
            for region in self.unmatched[side]:
                for group in self.group_savings[side][region]:
                    if group in additive:
                        self._offer(side, region, group, self._from_table(side, region, group))
        unmatched = sorted(self.unmatched[side])
        by_pixels = [g for g in groups if not self._additive(side, g)] if unmatched else []
        if by_pixels:
            members, opposite_members = self.members[side], self.members[other(side)]
            losses = self.joined_losses(
                side,
                [members[g] for g in by_pixels],
                [opposite_members[g] for g in by_pixels],
                unmatched,
            )
            for group, row in zip(by_pixels, losses.tolist(), strict=True):
                for region, loss in zip(unmatched, row, strict=True):
                    if group in self.group_savings[side][region]:
                        self._offer(side, region, group, self.cost[group] - loss)

    def _additive(self, side: Side, group: int) -> bool:
        """Return whether the overlap table determines the gains from merges into a group.

        `side` is the side of the merged regions.
        """
        overlap = self.overlap
        if overlap.crisp or self.by_table:
            return True
        if not overlap.side(side).crisp:
            return False
        return overlap.similarity.separable or (len(self.members[other(side)][group]) == 1)

    def _from_table(self, side: Side, region: int, group: int) -> Any:
        return 2 * self.group_savings[side][region][group] - self.alone[side][region]

    def _offer(self, side: Side, region: int, group: int, gain: Any) -> None:
        key = ORDER.index(side), region, group
        self.gain[key] = gain
        heappush(self.heap, (-gain, *key))

    def _neighbours(self, side: Side) -> dict[int, list[tuple[int, Any]]]:
        """Return the regions that each unmatched region overlaps, and the saving of each pair."""
        overlapping = self.overlap.pairs
        ends, opposite_ends = overlapping.rows, overlapping.columns
        if side == "prediction":
            ends, opposite_ends = opposite_ends, ends
        unmatched = np.zeros(len(self.overlap.side(side)), np.bool_)
        unmatched[list(self.unmatched[side])] = True
        pairs = np.flatnonzero(unmatched[ends])
        neighbours: dict[int, list[tuple[int, Any]]] = {}
        for region, neighbour, saving in zip(
            ends[pairs].tolist(),
            opposite_ends[pairs].tolist(),
            overlapping.savings[pairs].tolist(),
            strict=True,
        ):
            neighbours.setdefault(region, []).append((neighbour, saving))
        return neighbours
