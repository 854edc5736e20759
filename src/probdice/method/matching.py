"""Match regions by overlap, by the paper's rule, by equal labels, or as given by the user."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from probdice.errors import InputError, Option, TooLargeError
from probdice.method.assignment import largest_total, least_total
from probdice.method.background import (
    NO_BACKGROUND,
    Places,
    background_pair,
    without_background,
)
from probdice.method.groups import Groups
from probdice.method.overlap import LARGEST_TABLE, Integers, Overlap, Pairs, Regions
from probdice.method.region_labels import Label
from probdice.method.sides import SIDES, Both, Side

__all__ = [
    "RULES",
    "TIE",
    "Fixed",
    "Given",
    "LabelsBy",
    "MatchingRule",
    "Rule",
    "check_fixed",
    "find_groups",
    "is_given",
    "knows",
    "label_pairs",
    "labels_by",
    "listed",
    "within_classes",
]

TIE = 1e-12  # smaller differences in D are rounding errors


@dataclass(frozen=True)
class Fixed:
    """Pairs given by the user, as (prediction label, reference label)."""

    pairs: tuple[tuple[Label, Label], ...]

    def partners(self, label: Label | None) -> tuple[Label, ...]:
        """Return the prediction labels that correspond to a reference label."""
        return tuple(prediction for prediction, reference in self.pairs if reference == label)


@dataclass(frozen=True)
class Given:
    """Groups of an earlier comparison, as (reference labels, prediction labels)."""

    groups: tuple[tuple[tuple[Label, ...], tuple[Label, ...]], ...]

    def partners(self, label: Label | None) -> tuple[Label, ...]:
        """Return the prediction labels that correspond to a reference label."""
        return tuple(
            one for reference, several in self.groups if label in reference for one in several
        )


Rule = str | Fixed | Given  # a string is a key of `RULES`
LabelsBy = Literal["name", "number"]


@dataclass(frozen=True)
class MatchingRule:
    """A matching rule that users choose by its name.

    Attributes
    ----------
    pairs : callable
        Returns the rows and columns of the matched pairs of an overlap, sorted by row, without the
        background regions.
    help : str
        Description in the help text of ``--match``.
    words : str
        Description in the settings of a result.
    """

    pairs: Callable[[Overlap, Places], tuple[Integers, Integers]]
    help: str
    words: str


def find_groups(overlap: Overlap, rule: Rule, background: Places = NO_BACKGROUND) -> Groups:
    """Find the correspondence by a rule: pairs, except for groups given by the user.

    The background regions correspond to each other and to no other region.
    """
    if isinstance(rule, Fixed):
        return _around_fixed(overlap, rule, background)
    if isinstance(rule, Given):
        return _as_given(overlap, rule, background)
    rows, columns = RULES[rule].pairs(overlap, background)
    pair = background_pair(overlap, background)
    if pair is not None:
        place = int(np.searchsorted(rows, pair[0]))
        rows, columns = np.insert(rows, place, pair[0]), np.insert(columns, place, pair[1])
    return Groups.of_pairs(overlap, rows, columns)


def is_given(rule: Rule) -> bool:
    """Return whether a rule fixes the correspondence, so that no region can be merged."""
    return rule == "labels" or isinstance(rule, Given)


def listed(labels: Sequence[Label], most: int = 6) -> str:
    """List the first labels and the number of further ones; return a dash if there are none."""
    if not labels:
        return "–"
    rest = f", … {len(labels) - most} more" if len(labels) > most else ""
    return ", ".join(str(label) for label in labels[:most]) + rest


def _by_overlap(overlap: Overlap, background: Places = NO_BACKGROUND) -> tuple[Integers, Integers]:
    """Choose the pairs with the largest total overlap, components within corresponding classes."""
    overlap = within_classes(without_background(overlap, background))
    meeting = overlap.meeting
    shape = len(overlap.reference), len(overlap.prediction)
    chosen = largest_total(meeting.rows, meeting.columns, meeting.savings, shape)
    rows, columns = meeting.rows[chosen], meeting.columns[chosen]
    if len(rows) < max(shape):  # some region may be unmatched
        column_of = _exchanged(overlap, rows, columns)
        rows, columns = np.flatnonzero(column_of >= 0), column_of[column_of >= 0]
    return rows, columns


def within_classes(overlap: Overlap) -> Overlap:
    """Return the overlap, restricted to pairs of components of corresponding classes.

    An overlap of regions that are not components is returned as it is. Classes with equal labels
    correspond. If the two sides have no class label in common, the
    classes are matched by largest total overlap. Regions that are not components, such as the
    background, form one class.
    """
    if not (overlap.reference.origins and overlap.prediction.origins):
        return overlap
    codes, labels = zip(*(_classes(overlap.side(side)) for side in SIDES), strict=True)
    meeting = overlap.meeting
    p, q = codes[0][meeting.rows], codes[1][meeting.columns]
    common = [(i, labels[1].index(x)) for i, x in enumerate(labels[0]) if x in labels[1]]
    if len(common) == 1:  # only the background
        cells, places = np.unique(p * len(labels[1]) + q, return_inverse=True)
        savings = np.zeros(cells.size, meeting.savings.dtype)
        np.add.at(savings, places, meeting.savings)
        rows, columns = np.divmod(cells, len(labels[1]))
        inside = (rows > 0) & (columns > 0)
        rows, columns, savings = rows[inside], columns[inside], savings[inside]
        chosen = largest_total(rows, columns, savings, (len(labels[0]), len(labels[1])))
        common += list(zip(rows[chosen].tolist(), columns[chosen].tolist(), strict=True))
    class_of = np.full(len(labels[0]), -1, np.int64)
    for i, j in common:
        class_of[i] = j
    same = class_of[p] == q
    pairs = Pairs(meeting.rows[same], meeting.columns[same], meeting.savings[same])
    return replace(overlap, meeting=pairs)


def _classes(regions: Regions) -> tuple[Integers, list[str]]:
    """Return the class code of every region, and the label of every code; 0 means no component."""
    labels = ["", *dict.fromkeys(str(label) for label in regions.origins.values())]
    code_of = {label: code for code, label in enumerate(labels)}
    keys: list[int] = regions.keys.tolist()
    codes = [code_of[str(regions.origins[k])] if k in regions.origins else 0 for k in keys]
    return np.array(codes, np.int64), labels


def _exchanged(overlap: Overlap, rows: Integers, columns: Integers) -> Integers:
    """Return the column of every row, or −1, after replacing matches with better unmatched regions.

    If two regions overlap a third one equally, the one that costs less alone is matched.
    Every exchange lowers the total weight, so the loop terminates.
    """
    column_of = np.full(len(overlap.reference), -1, np.int64)
    row_of = np.full(len(overlap.prediction), -1, np.int64)
    column_of[rows], row_of[columns] = columns, rows
    meeting, alone = overlap.meeting, overlap.alone
    tie = 0 if overlap.crisp else TIE * overlap.pixels
    while _exchange(
        column_of, row_of, meeting.rows, meeting.columns, meeting.savings, alone.prediction, tie
    ) | _exchange(
        row_of, column_of, meeting.columns, meeting.rows, meeting.savings, alone.reference, tie
    ):
        pass
    return column_of


def _exchange(
    match_of: Integers,
    taken_by: Integers,
    ends: Integers,
    others: Integers,
    savings: NDArray[Any],
    cost: NDArray[Any],
    tie: float,
) -> bool:
    """Replace matches of one side with unmatched regions of the other; return whether any was."""
    saved = np.full(match_of.size, -1, savings.dtype)
    paired = match_of[ends] == others
    saved[ends[paired]] = savings[paired]
    equal = (match_of[ends] >= 0) & (np.abs(savings - saved[ends]) <= tie)
    offers = np.flatnonzero(equal & (taken_by[others] < 0))
    offers = offers[cost[others[offers]] < cost[match_of[ends[offers]]] - tie]
    if not offers.size:
        return False
    # A region can replace a match that saves as much as the region would.
    order = np.flatnonzero(equal)[np.argsort(others[equal], kind="stable")]
    starts = np.searchsorted(others[order], np.arange(taken_by.size + 1))
    waiting = [(cost[k], k) for k in np.unique(others[offers]).tolist()]
    heapify(waiting)
    while waiting:
        region_cost, region = heappop(waiting)
        if taken_by[region] >= 0:
            continue
        for end in ends[order[starts[region] : starts[region + 1]]].tolist():
            match = int(match_of[end])
            if region_cost < cost[match] - tie:
                match_of[end], taken_by[region], taken_by[match] = region, end, -1
                heappush(waiting, (cost[match], match))
                break
    return True


def _by_weight(overlap: Overlap, background: Places) -> tuple[Integers, Integers]:
    """Choose the pairs of least total weight, as the paper does; one side is matched completely."""
    rows, columns = (
        places[places != (-1 if background[side] is None else background[side])]
        for side, places in zip(
            SIDES, (overlap.reference.occupied, overlap.prediction.occupied), strict=True
        )
    )
    if not rows.size or not columns.size:
        return rows[:0], columns[:0]
    if rows.size * columns.size > LARGEST_TABLE:
        raise TooLargeError(
            f"{rows.size} reference and {columns.size} prediction regions are too many for the "
            f"paper's matching, which needs the weight of every pair. Use ",
            Option("match", "overlap"),
            ".",
        )
    table = _table(overlap, rows, columns)
    pairs = assigned(table)
    return rows[pairs[0]], columns[pairs[1]]


def assigned(table: NDArray[Any]) -> tuple[Integers, Integers]:
    """Return the pairs of least total that use every row or every column, sorted by row."""
    small = table if table.shape[0] <= table.shape[1] else table.T
    best = small.argmin(axis=1)
    if np.unique(best).size == best.size:  # no conflict: the best columns are the solution
        rows, columns = np.arange(best.size), best
    else:
        rows, columns = np.arange(best.size), least_total(small)
    if small is not table:
        rows, columns = columns, rows
    order = np.argsort(rows)
    return rows[order], columns[order]


def _table(overlap: Overlap, rows: Integers, columns: Integers) -> NDArray[Any]:
    """Return the cost of every pair of non-empty regions, in units; integers for label maps."""
    alone, meeting = overlap.alone, overlap.meeting
    table: NDArray[Any] = np.add.outer(alone.reference[rows], alone.prediction[columns])
    row_places = np.zeros(len(overlap.reference), np.int64)
    column_places = np.zeros(len(overlap.prediction), np.int64)
    row_places[rows], column_places[columns] = np.arange(rows.size), np.arange(columns.size)
    table[row_places[meeting.rows], column_places[meeting.columns]] -= 2 * meeting.savings
    return table


def _by_label(overlap: Overlap, background: Places) -> tuple[Integers, Integers]:
    """Match equal names or numbers. A label that one side lacks is an empty region there."""
    _check_labels(overlap)
    rows, columns = label_pairs(overlap)
    in_common = rows.size or background_pair(overlap, background) is not None
    if not in_common and not _common_label(overlap):
        reference, prediction = (listed(overlap.side(side).labels) for side in SIDES)
        raise InputError(
            f"reference ({reference}) and prediction ({prediction}) have no label in common "
            f"(compared by {labels_by(overlap)}), as ",
            Option("match", "labels"),
            " requires. Use ",
            Option("match", "overlap"),
            ".",
        )
    chosen = (overlap.reference.volumes[rows] > 0) & (overlap.prediction.volumes[columns] > 0)
    for places, region in zip((rows, columns), background, strict=True):
        if region is not None:
            chosen &= places != region
    return rows[chosen], columns[chosen]


RULES = {
    "overlap": MatchingRule(
        _by_overlap, "largest total overlap, the default", "matched by largest total overlap"
    ),
    "paper": MatchingRule(_by_weight, "the paper's rule", "matched by the paper's rule"),
    "labels": MatchingRule(_by_label, "equal labels", "equal labels matched"),
}


def labels_by(overlap: Overlap) -> LabelsBy:
    """Return whether regions correspond by name or by number.

    They correspond by name if both sides have names that identify a region. A name that two
    regions of a side share does not identify either.
    """
    named = all(regions.places_by_name for regions in (overlap.reference, overlap.prediction))
    return "name" if named else "number"


def label_pairs(overlap: Overlap) -> tuple[Integers, Integers]:
    """Return the pairs of regions with equal labels, including empty regions, sorted by row.

    If regions correspond by name, a region without a unique name corresponds by its number.
    """
    reference, prediction = overlap.reference, overlap.prediction
    i, j = _equal_numbers(reference, prediction)
    if labels_by(overlap) == "number":
        return i, j
    names = Both(reference.places_by_name, prediction.places_by_name)
    common = [name for name in names.reference if name in names.prediction]
    rows, columns = (np.array([side[name] for name in common], np.int64) for side in names)
    named = Both(*(np.zeros(len(overlap.side(side)), np.bool_) for side in SIDES))
    paired = Both(*(np.zeros(len(overlap.side(side)), np.bool_) for side in SIDES))
    for side, places, pairs in zip(SIDES, names, (rows, columns), strict=True):
        named[side][list(places.values())] = True
        paired[side][pairs] = True
    by_number = ~paired.reference[i] & ~paired.prediction[j]
    by_number &= ~(named.reference[i] & named.prediction[j])
    rows, columns = np.concatenate([rows, i[by_number]]), np.concatenate([columns, j[by_number]])
    order = np.argsort(rows)
    return rows[order], columns[order]


def _equal_numbers(reference: Regions, prediction: Regions) -> tuple[Integers, Integers]:
    """Return the pairs of regions with equal numbers, sorted by row."""
    (p, i), (q, j) = _numbers(reference), _numbers(prediction)
    if p.dtype != q.dtype:  # NumPy would compare int64 and uint64 as floating-point numbers
        p, i = p[p >= 0].astype(np.uint64), i[p >= 0]
        q, j = q[q >= 0].astype(np.uint64), j[q >= 0]
    if q.size == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    places = np.minimum(np.searchsorted(q, p), q.size - 1)
    equal = q[places] == p
    rows, columns = i[equal], j[places[equal]]
    order = np.argsort(rows, kind="stable")
    return rows[order], columns[order]


def _numbers(regions: Regions) -> tuple[NDArray[Any], Integers]:
    """Return the numbers of the regions that have one, ascending, and the indices of these regions.

    A channel that has neither number nor name uses its channel index as number.
    """
    if regions.crisp:
        return regions.keys, np.arange(len(regions))
    numbers = {**{key: key for key in regions.unlabelled}, **regions.numbers}
    keys = [key for key in regions.keys.tolist() if key in numbers]
    values = np.array([numbers[key] for key in keys], np.int64)
    order = np.argsort(values)
    return values[order], np.searchsorted(regions.keys, keys)[order]


def _check_labels(overlap: Overlap) -> None:
    """Reject labels whose correspondence is undefined."""
    if overlap.reference.origins and overlap.prediction.origins:
        raise InputError(
            "the numbers of connected components are arbitrary, so equal numbers do not "
            "correspond. Use ",
            Option("match", "overlap"),
            ".",
        )
    for side, across in (SIDES, SIDES[::-1]):
        own, opposite = overlap.side(side), overlap.side(across)
        if labels_by(overlap) == "name":
            continue
        if own.names and not opposite.names and not _numbers(own)[0].size:
            raise InputError(
                f"the {side} has names ({listed(own.labels)}) but no numbers, and the {across} has "
                f"numbers ({listed(opposite.labels)}) but no names. For ",
                Option("match", "labels"),
                ", give the numbers names with ",
                Option("names", python=f"read(…, names=…) for the {across}"),
                "; otherwise use ",
                Option("match", "overlap"),
                ".",
            )
        if own.unlabelled and not opposite.unlabelled:
            numbers = _numbers(own)[0]
            unknown = ~np.isin(_numbers(opposite)[0], numbers)
            if unknown.any() or (not opposite.crisp and not opposite.numbers):
                raise InputError(
                    f"the channels of the {side} have no labels, and the labels of the {across} "
                    f"({listed(opposite.labels)}) are not all channel numbers (0 to {len(own) - 1})"
                    f". For ",
                    Option("match", "labels"),
                    ", store the labels of the channels in the file, or set them in Python with "
                    "Segmentation.from_probabilities(…, labels=…); otherwise use ",
                    Option("match", "overlap"),
                    ".",
                )


def _common_label(overlap: Overlap) -> bool:
    """Return whether the two sides have a label in common, including labels without pixels."""
    own, others = overlap.reference, overlap.prediction
    by_name = labels_by(overlap) == "name"
    if by_name and own.unique_names.keys() & others.unique_names.keys():
        return True
    named = own.unique_names.values(), others.unique_names.values()
    p, q = _known_numbers(own), _known_numbers(others)
    return any(
        not (by_name and p[number] in named[0] and q[number] in named[1])
        for number in p.keys() & q.keys()
    )


def _known_numbers(regions: Regions) -> dict[int, int]:
    """Return the labels or channels by number, including labels without pixels."""
    keys: list[int] = [*regions.keys.tolist(), *regions.names, *regions.numbers]
    unlabelled = set(regions.unlabelled)
    numbers = ((key if key in unlabelled else regions.number_of(key), key) for key in keys)
    return {number: key for number, key in numbers if number is not None}


def knows(overlap: Overlap, label: Label) -> bool:
    """Return whether either side has a label, even if its region is empty."""
    return any(overlap.side(side).knows(label) for side in SIDES)


def _around_fixed(overlap: Overlap, fixed: Fixed, background: Places) -> Groups:
    """Return the given pairs whose regions exist, and the remaining regions by overlap."""
    numbers = {side: np.full(len(overlap.side(side)), -1, np.int64) for side in SIDES}
    group_of: dict[Label, int] = {}
    for prediction_label, reference_label in fixed.pairs:
        i = overlap.reference.find(reference_label)
        j = overlap.prediction.find(prediction_label)
        _check_apart({"reference": [i], "prediction": [j]}, background, overlap)
        number = group_of.setdefault(reference_label if i is None else i, len(group_of))
        if i is not None:
            numbers["reference"][i] = number
        if j is not None:
            numbers["prediction"][j] = number
    next_group = _with_background(numbers, background, len(group_of))
    meeting = overlap.meeting
    free = (numbers["reference"][meeting.rows] < 0) & (numbers["prediction"][meeting.columns] < 0)
    rest = Pairs(meeting.rows[free], meeting.columns[free], meeting.savings[free])
    rows, columns = _by_overlap(replace(overlap, meeting=rest))
    next_groups = next_group + np.arange(rows.size)
    numbers["reference"][rows] = next_groups
    numbers["prediction"][columns] = next_groups
    return Groups.of_numbers(overlap, numbers["reference"], numbers["prediction"])


def check_fixed(rule: Rule, overlaps: Sequence[Overlap]) -> None:
    """Reject a label that is in none of these overlaps, and pairs in the wrong order."""
    if not isinstance(rule, Fixed):
        return

    def exists(side: Side, label: Label) -> bool:
        return any(overlap.side(side).knows(label) for overlap in overlaps)

    where = "neither side has" if len(overlaps) == 1 else "no case has"
    for pair in rule.pairs:
        for label in pair:
            if not (exists("reference", label) or exists("prediction", label)):
                reference, prediction = (
                    listed(list(dict.fromkeys(x for o in overlaps for x in o.side(side).labels)))
                    for side in SIDES
                )
                raise InputError(
                    f"match names {label!r}, which {where}: the reference has {reference}, "
                    f"the prediction has {prediction}"
                )
        # Such a pair would be silently ignored.
        if not exists("prediction", pair[0]) and not exists("reference", pair[1]):
            raise InputError(
                f"match pairs {pair[0]!r} with {pair[1]!r}, but the first is a reference label and "
                f"the second a prediction label. Put the prediction label first."
            )


def _as_given(overlap: Overlap, given: Given, background: Places) -> Groups:
    """Return the groups of an earlier comparison. A label that it lacks stays unmatched."""
    numbers = {side: np.full(len(overlap.side(side)), -1, np.int64) for side in SIDES}
    for number, group in enumerate(given.groups):
        members: dict[Side, list[int | None]] = {
            side: [overlap.side(side).find(label) for label in labels]
            for side, labels in zip(SIDES, group, strict=True)
        }
        _check_apart(members, background, overlap)
        for side in SIDES:
            numbers[side][[k for k in members[side] if k is not None]] = number
    _with_background(numbers, background, len(given.groups))
    return Groups.of_numbers(overlap, numbers["reference"], numbers["prediction"])


def _with_background(numbers: dict[Side, Integers], background: Places, next_group: int) -> int:
    """Give the background regions a group of their own; return the next free number."""
    for side in SIDES:
        if background[side] is not None:
            numbers[side][background[side]] = next_group
    return next_group if background == NO_BACKGROUND else next_group + 1


def _check_apart(
    members: dict[Side, list[int | None]], background: Places, overlap: Overlap
) -> None:
    """Reject a given group that contains a background region and another region."""
    regions = [(side, k) for side in SIDES for k in members[side] if k is not None]
    inside = [background[side] == k for side, k in regions]
    if any(inside) and not all(inside):
        labels = {
            side: listed([overlap.side(side).label(k) for one, k in regions if one == side])
            for side in SIDES
        }
        raise InputError(
            f"match groups the background with another region (reference {labels['reference']}, "
            f"prediction {labels['prediction']}), but the two backgrounds correspond only to each "
            f"other. Change match, or name another ",
            Option("background", python="background", command="--background"),
            ".",
        )
