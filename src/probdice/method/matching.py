"""Match regions by overlap, by the paper's rule, by equal labels, or as given by the user."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.errors import InputError, Option, TooLargeError
from probdice.method.assignment import largest_total, least_total
from probdice.method.background import (
    NO_BACKGROUND,
    Background,
    BackgroundIndices,
    background_pair,
    check_background,
    find_background,
    without_background,
)
from probdice.method.given_matching import (
    GivenGroups,
    GivenPairs,
    check_fixed,
    group_indices_of_fixed,
    groups_as_given,
)
from probdice.method.groups import Groups
from probdice.method.label_matching import match_by_label
from probdice.method.merging import Merging
from probdice.method.overlap import MAX_TABLE_PAIRS, Integers, Overlap, Pairs, Regions
from probdice.method.sides import SIDES

__all__ = [
    "RULES",
    "GivenGroups",
    "GivenPairs",
    "Matching",
    "MatchingRule",
    "Rule",
    "check_labels",
    "common_classes",
    "component_classes",
    "find_groups",
    "has_classes",
    "pairs_as_groups",
    "within_classes",
]


Rule = str | GivenPairs | GivenGroups  # a string is a key of `RULES`


@dataclass(frozen=True)
class Matching:
    """The options for matching and merging the regions of two sides.

    Every field is an option of `CompareOptions` with the same name. Functions that match regions
    receive one `Matching` instead of separate options.

    Attributes
    ----------
    match : Rule
        The matching rule, or the pairs or groups given by the user.
    merge : Merging
        The sides whose unmatched regions are merged.
    background : Background or None
        The background of each side, if one was given. The two backgrounds correspond to each other,
        and no region is merged into them.
    """

    match: Rule = "overlap"
    merge: Merging = "none"
    background: Background | None = None

    @property
    def fixes_groups(self) -> bool:
        """Whether labels or given groups fix the correspondence; no region can then be merged."""
        return self.match == "labels" or isinstance(self.match, GivenGroups)

    @cached_property
    def by_overlap(self) -> bool:
        """Whether regions are matched by overlap, with or without merging and a background."""
        return replace(self, merge="none", background=None) == DEFAULT

    @property
    def one_to_one(self) -> bool:
        """Whether every group has at most one region per side."""
        return self.merge == "none" and (isinstance(self.match, str) or self.match.one_to_one)

    def given(self, groups: GivenGroups) -> "Matching":
        """Return the same options with the given groups and without merging."""
        return replace(self, match=groups, merge="none")


DEFAULT = Matching()


@dataclass(frozen=True)
class MatchingRule:
    """A matching rule that users select by name.

    Attributes
    ----------
    pairs : callable
        Returns the rows and columns of the matched pairs of an overlap, sorted by row, without the
        background regions.
    help : str
        Description in the help text of ``--match``.
    words : str
        Description in the list of settings of a result.
    """

    pairs: Callable[[Overlap, BackgroundIndices], tuple[Integers, Integers]]
    help: str
    words: str


def find_groups(overlap: Overlap, matching: Matching) -> Groups:
    """Find the groups of corresponding regions before merging."""
    rule, background = matching.match, NO_BACKGROUND
    if matching.background is not None:
        background = find_background(overlap, matching.background)
    if isinstance(rule, GivenPairs):
        return _groups_around_fixed(overlap, rule, background)
    if isinstance(rule, GivenGroups):
        return groups_as_given(overlap, rule, background)
    rows, columns = RULES[rule].pairs(overlap, background)
    pair = None if background is NO_BACKGROUND else background_pair(overlap, background)
    if pair is not None:
        index = int(np.searchsorted(rows, pair[0]))
        rows, columns = np.insert(rows, index, pair[0]), np.insert(columns, index, pair[1])
    return pairs_as_groups(overlap, rows, columns)


def pairs_as_groups(overlap: Overlap, rows: Integers, columns: Integers) -> Groups:
    """Create groups from pairs sorted by row. All other non-empty regions are unmatched."""
    matched = next_group = rows.size
    order = np.arange(matched)
    sides = []
    for regions, indices in ((overlap.reference, rows), (overlap.prediction, columns)):
        group_indices = np.empty(regions.keys.size, np.int64)
        if matched < group_indices.size:
            group_indices.fill(-1)
            unmatched = regions.volumes > 0
            unmatched[indices] = False
            count = int(np.count_nonzero(unmatched))
            group_indices[unmatched] = np.arange(next_group, next_group + count)
            next_group += count
        group_indices[indices] = order
        sides.append(group_indices)
    return Groups(sides[0], sides[1], matched)


def _by_overlap(
    overlap: Overlap, background: BackgroundIndices = NO_BACKGROUND
) -> tuple[Integers, Integers]:
    """Choose the pairs with the largest total overlap.

    If both sides contain components, only components of corresponding classes are matched.
    """
    if background is not NO_BACKGROUND:
        overlap = without_background(overlap, background)
    if overlap.reference.origins:
        overlap = within_classes(overlap)
    overlapping = overlap.pairs
    shape = overlap.reference.keys.size, overlap.prediction.keys.size
    selected_pairs = largest_total(
        overlapping.rows, overlapping.columns, overlapping.savings, shape
    )
    rows, columns = overlapping.rows[selected_pairs], overlapping.columns[selected_pairs]
    if rows.size < max(shape):  # a region may be unmatched
        # An exchange requires an unmatched region with the same saving as the matched region.
        savings = overlapping.savings
        row_savings, column_savings = (np.zeros(count, savings.dtype) for count in shape)
        row_savings[rows] = column_savings[columns] = savings[selected_pairs]
        match_savings = row_savings[overlapping.rows] + column_savings[overlapping.columns]
        if np.count_nonzero(np.abs(match_savings - savings) <= overlap.tie):
            column_of = _columns_after_exchanges(overlap, rows, columns)
            rows, columns = np.flatnonzero(column_of >= 0), column_of[column_of >= 0]
    return rows, columns


def within_classes(overlap: Overlap) -> Overlap:
    """Restrict an overlap to pairs of components whose classes correspond.

    The overlap is returned unchanged unless both sides contain components. Classes with equal
    labels correspond. If the two sides have no class label in common, the classes are matched by
    largest total overlap. Regions that are not components, such as the background, form one class.
    """
    if not has_classes(overlap):
        return overlap
    codes, labels = zip(*(component_classes(overlap.side(side)) for side in SIDES), strict=True)
    overlapping = overlap.pairs
    p, q = codes[0][overlapping.rows], codes[1][overlapping.columns]
    common = common_classes(*labels)
    if len(common) == 1:  # only the background
        cells, indices = np.unique(p * len(labels[1]) + q, return_inverse=True)
        savings = np.zeros(cells.size, overlapping.savings.dtype)
        np.add.at(savings, indices, overlapping.savings)
        rows, columns = np.divmod(cells, len(labels[1]))
        inside = (rows > 0) & (columns > 0)
        rows, columns, savings = rows[inside], columns[inside], savings[inside]
        selected_pairs = largest_total(rows, columns, savings, (len(labels[0]), len(labels[1])))
        common += list(
            zip(rows[selected_pairs].tolist(), columns[selected_pairs].tolist(), strict=True)
        )
    class_of = np.full(len(labels[0]), -1, np.int64)
    for i, j in common:
        class_of[i] = j
    same_class = class_of[p] == q
    pairs = Pairs(
        overlapping.rows[same_class],
        overlapping.columns[same_class],
        overlapping.savings[same_class],
    )
    return replace(overlap, pairs=pairs)


def has_classes(overlap: Overlap) -> bool:
    """Return whether both sides contain components, which are matched only within classes."""
    return bool(overlap.reference.origins and overlap.prediction.origins)


def component_classes(regions: Regions) -> tuple[Integers, list[str]]:
    """Return the class code of every region, and the label of every code.

    The code of a region that is not a component is 0.
    """
    labels = ["", *dict.fromkeys(str(label) for label in regions.origins.values())]
    code_of = {label: code for code, label in enumerate(labels)}
    keys: list[int] = regions.keys.tolist()
    codes = [code_of[str(regions.origins[k])] if k in regions.origins else 0 for k in keys]
    return np.array(codes, np.int64), labels


def common_classes(reference: list[str], prediction: list[str]) -> list[tuple[int, int]]:
    """Return the codes of the classes with equal labels, starting with (0, 0)."""
    return [(i, prediction.index(x)) for i, x in enumerate(reference) if x in prediction]


def _columns_after_exchanges(overlap: Overlap, rows: Integers, columns: Integers) -> Integers:
    """Return the column of every row, or −1 for an unmatched row, after resolving ties.

    If a matched and an unmatched region overlap a third region equally, the region with the smaller
    cost against an empty region becomes the match. Every exchange lowers the total weight of the
    matched pairs, so the loop terminates.
    """
    column_of = np.full(len(overlap.reference), -1, np.int64)
    row_of = np.full(len(overlap.prediction), -1, np.int64)
    column_of[rows], row_of[columns] = columns, rows
    overlapping, alone = overlap.pairs, overlap.alone
    tie = overlap.tie
    while _exchange(
        column_of,
        row_of,
        overlapping.rows,
        overlapping.columns,
        overlapping.savings,
        alone.prediction,
        tie,
    ) | _exchange(
        row_of,
        column_of,
        overlapping.columns,
        overlapping.rows,
        overlapping.savings,
        alone.reference,
        tie,
    ):
        pass
    return column_of


def _exchange(
    match_of: Integers,
    owner_of: Integers,
    ends: Integers,
    opposite_ends: Integers,
    savings: NDArray[Any],
    cost: NDArray[Any],
    tie: float,
) -> bool:
    """Exchange matched regions of one side for unmatched ones. Return whether any was exchanged."""
    match_savings = np.full(match_of.size, -1, savings.dtype)
    is_match = match_of[ends] == opposite_ends
    match_savings[ends[is_match]] = savings[is_match]
    equal = (match_of[ends] >= 0) & (np.abs(savings - match_savings[ends]) <= tie)
    offers = np.flatnonzero(equal & (owner_of[opposite_ends] < 0))
    offers = offers[cost[opposite_ends[offers]] < cost[match_of[ends[offers]]] - tie]
    if not offers.size:
        return False
    # A replacement must have the same saving as the match, so that the total does not change.
    order = np.flatnonzero(equal)[np.argsort(opposite_ends[equal], kind="stable")]
    starts = np.searchsorted(opposite_ends[order], np.arange(owner_of.size + 1))
    waiting = [(cost[k], k) for k in np.unique(opposite_ends[offers]).tolist()]
    heapify(waiting)
    while waiting:
        region_cost, region = heappop(waiting)
        if owner_of[region] >= 0:
            continue
        for end in ends[order[starts[region] : starts[region + 1]]].tolist():
            match = int(match_of[end])
            if region_cost < cost[match] - tie:
                match_of[end], owner_of[region], owner_of[match] = region, end, -1
                heappush(waiting, (cost[match], match))
                break
    return True


def _by_weight(overlap: Overlap, background: BackgroundIndices) -> tuple[Integers, Integers]:
    """Match every region of the side with fewer regions, so that the total weight is minimal.

    Empty regions and the background are excluded. Connected components on both sides are rejected,
    because this rule would pair components of different classes.
    """
    if overlap.reference.origins and overlap.prediction.origins:
        raise InputError(
            "the paper's rule pairs connected components of different classes. Use ",
            Option("match", "overlap"),
            ".",
        )
    rows, columns = (
        indices[indices != (-1 if background[side] is None else background[side])]
        for side, indices in zip(
            SIDES, (overlap.reference.occupied, overlap.prediction.occupied), strict=True
        )
    )
    if not rows.size or not columns.size:
        return rows[:0], columns[:0]
    overlap = without_background(overlap, background)
    if rows.size * columns.size > MAX_TABLE_PAIRS:
        raise TooLargeError(
            f"{rows.size} reference and {columns.size} prediction regions are too many for the "
            f"paper's matching, which requires the weight of every pair. Use ",
            Option("match", "overlap"),
            ".",
        )
    table = _table(overlap, rows, columns)
    pairs = assigned(table)
    return rows[pairs[0]], columns[pairs[1]]


def assigned(table: NDArray[Any]) -> tuple[Integers, Integers]:
    """Return the pairs with the smallest total, sorted by row.

    Every row has a pair, or every column if there are fewer columns than rows.
    """
    small = table if table.shape[0] <= table.shape[1] else table.T
    best = small.argmin(axis=1)
    if np.unique(best).size == best.size:  # the best columns are all different
        rows, columns = np.arange(best.size), best
    else:
        rows, columns = np.arange(best.size), least_total(small)
    if small is not table:
        rows, columns = columns, rows
    order = np.argsort(rows)
    return rows[order], columns[order]


def _table(overlap: Overlap, rows: Integers, columns: Integers) -> NDArray[Any]:
    """Return the cost of every pair of the given regions, in multiples of `Overlap.unit`."""
    alone, overlapping = overlap.alone, overlap.pairs
    table: NDArray[Any] = np.add.outer(alone.reference[rows], alone.prediction[columns])
    row_places = np.zeros(len(overlap.reference), np.int64)
    column_places = np.zeros(len(overlap.prediction), np.int64)
    row_places[rows], column_places[columns] = np.arange(rows.size), np.arange(columns.size)
    table[row_places[overlapping.rows], column_places[overlapping.columns]] -= (
        2 * overlapping.savings
    )
    return table


RULES = {
    "overlap": MatchingRule(
        _by_overlap, "largest total overlap, the default", "matched by largest total overlap"
    ),
    "paper": MatchingRule(_by_weight, "the paper's rule", "matched by the paper's rule"),
    "labels": MatchingRule(match_by_label, "equal labels", "equal labels matched"),
}


def _groups_around_fixed(
    overlap: Overlap, fixed: GivenPairs, background: BackgroundIndices
) -> Groups:
    """Match the given pairs whose regions exist, and match the remaining regions by overlap."""
    group_indices, next_group = group_indices_of_fixed(overlap, fixed, background)
    overlapping = overlap.pairs
    free = (group_indices["reference"][overlapping.rows] < 0) & (
        group_indices["prediction"][overlapping.columns] < 0
    )
    free_pairs = Pairs(overlapping.rows[free], overlapping.columns[free], overlapping.savings[free])
    rows, columns = _by_overlap(replace(overlap, pairs=free_pairs))
    next_groups = next_group + np.arange(rows.size)
    group_indices["reference"][rows] = next_groups
    group_indices["prediction"][columns] = next_groups
    return Groups.of_numbers(overlap, group_indices["reference"], group_indices["prediction"])


def check_labels(matching: Matching, overlaps: Sequence[Overlap]) -> None:
    """Reject given pairs and background names that fit none of these overlaps.

    A pair is rejected if one of its labels is unknown, or if its labels are in the wrong order. A
    background label that is a number is not checked.
    """
    if isinstance(matching.match, GivenPairs):
        check_fixed(matching.match, overlaps)
    if matching.background is not None:
        sides = [overlap.side(side) for overlap in overlaps for side in SIDES]
        check_background(matching.background, sides)
