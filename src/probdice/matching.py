"""Which region is which: by overlap, by the paper's rule, by equal labels, or as it is given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from probdice.assignment import largest_total, least_total
from probdice.errors import InputError, Option, TooLargeError
from probdice.groups import Groups
from probdice.overlaps import LARGEST_TABLE, Integers, Overlap, Pairs, Regions
from probdice.region_labels import Label
from probdice.sides import SIDES, Side

__all__ = ["TIE", "Fixed", "Given", "Rule", "find_groups", "knows", "listed"]

TIE = 1e-12  # differences in D that are closer to 0 than this are rounding


@dataclass(frozen=True)
class Fixed:
    """Pairs that the user names, as (prediction label, reference label)."""

    pairs: tuple[tuple[Label, Label], ...]


@dataclass(frozen=True)
class Given:
    """Groups of an earlier comparison, as (reference labels, prediction labels)."""

    groups: tuple[tuple[tuple[Label, ...], tuple[Label, ...]], ...]


Rule = Literal["overlap", "paper", "labels"] | Fixed | Given


def find_groups(overlap: Overlap, rule: Rule) -> Groups:
    """The correspondence by a rule: pairs, but for what is given with more."""
    if rule == "overlap":
        return Groups.of_pairs(overlap, *_by_overlap(overlap))
    if rule == "paper":
        return Groups.of_pairs(overlap, *_by_weight(overlap))
    if rule == "labels":
        return _by_label(overlap)
    if isinstance(rule, Fixed):
        return _around_fixed(overlap, rule)
    return _as_given(overlap, rule)


def listed(labels: Sequence[Label], most: int = 6) -> str:
    """Labels in a row, the first few of many; a dash for none."""
    if not labels:
        return "–"
    more = f", … {len(labels) - most} more" if len(labels) > most else ""
    return ", ".join(str(label) for label in labels[:most]) + more


def _by_overlap(overlap: Overlap) -> tuple[Integers, Integers]:
    """The pairs with the largest total overlap."""
    meeting = overlap.meeting
    shape = len(overlap.reference), len(overlap.prediction)
    chosen = largest_total(meeting.rows, meeting.columns, meeting.savings, shape)
    rows, columns = meeting.rows[chosen], meeting.columns[chosen]
    if len(rows) < max(shape):  # some region may be spare
        partners = _exchanged(overlap, rows, columns)
        rows, columns = np.flatnonzero(partners >= 0), partners[partners >= 0]
    return rows, columns


def _exchanged(overlap: Overlap, rows: Integers, columns: Integers) -> Integers:
    """The column of every row, or −1, after exchanging partners for spare regions.

    Of two regions that overlap a third one equally, the one that sticks out less is the partner.
    Every exchange lowers the total weight, so this comes to an end.
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
    partner_of: Integers,
    taken_by: Integers,
    ends: Integers,
    others: Integers,
    savings: NDArray[Any],
    cost: NDArray[Any],
    tie: float,
) -> bool:
    """Exchange the partners of one side for spare regions of the other; whether any was."""
    saved = np.full(partner_of.size, -1, savings.dtype)
    paired = partner_of[ends] == others
    saved[ends[paired]] = savings[paired]
    equal = (partner_of[ends] >= 0) & (np.abs(savings - saved[ends]) <= tie)
    offers = np.flatnonzero(equal & (taken_by[others] < 0))
    offers = offers[cost[others[offers]] < cost[partner_of[ends[offers]]] - tie]
    if not offers.size:
        return False
    # Whom each region may take over: those whose partner saves as much as it would.
    order = np.flatnonzero(equal)[np.argsort(others[equal], kind="stable")]
    starts = np.searchsorted(others[order], np.arange(taken_by.size + 1))
    waiting = [(cost[k], k) for k in np.unique(others[offers]).tolist()]
    heapify(waiting)
    while waiting:
        spare_cost, spare = heappop(waiting)
        if taken_by[spare] >= 0:
            continue
        for end in ends[order[starts[spare] : starts[spare + 1]]].tolist():
            partner = int(partner_of[end])
            if spare_cost < cost[partner] - tie:
                partner_of[end], taken_by[spare], taken_by[partner] = spare, end, -1
                heappush(waiting, (cost[partner], partner))
                break
    return True


def _by_weight(overlap: Overlap) -> tuple[Integers, Integers]:
    """The paper's matching: least total weight, every region of the smaller side in a pair."""
    rows, columns = overlap.reference.occupied, overlap.prediction.occupied
    if rows.size * columns.size > LARGEST_TABLE:
        raise TooLargeError(
            f"{rows.size} reference and {columns.size} prediction regions are too many for the "
            f"paper's matching, which needs the weight of every pair; use ",
            Option("match", "overlap"),
        )
    table = _table(overlap, rows, columns)
    pairs = assigned(table)
    return rows[pairs[0]], columns[pairs[1]]


def assigned(table: NDArray[Any]) -> tuple[Integers, Integers]:
    """Rows and columns of least total, every row or every column in a pair; sorted by row."""
    small = table if table.shape[0] <= table.shape[1] else table.T
    best = small.argmin(axis=1)
    if np.unique(best).size == best.size:  # no two want the same: nothing is left to solve
        rows, columns = np.arange(best.size), best
    else:
        rows, columns = np.arange(best.size), least_total(small)
    if small is not table:
        rows, columns = columns, rows
    order = np.argsort(rows)
    return rows[order], columns[order]


def _table(overlap: Overlap, rows: Integers, columns: Integers) -> NDArray[Any]:
    """What every pair of regions that are not empty costs, in units: whole numbers for maps."""
    alone, meeting = overlap.alone, overlap.meeting
    table: NDArray[Any] = np.add.outer(alone.reference[rows], alone.prediction[columns])
    row_places = np.zeros(len(overlap.reference), np.int64)
    column_places = np.zeros(len(overlap.prediction), np.int64)
    row_places[rows], column_places[columns] = np.arange(rows.size), np.arange(columns.size)
    table[row_places[meeting.rows], column_places[meeting.columns]] -= 2 * meeting.savings
    return table


def _by_label(overlap: Overlap) -> Groups:
    """Equal labels correspond; a label that one side lacks is an empty region there."""
    names = {
        side: {str(label): k for k, label in enumerate(overlap.side(side).labels)} for side in SIDES
    }
    common = [
        (k, names["prediction"][name])
        for name, k in names["reference"].items()
        if name in names["prediction"]
    ]
    if not common and not _known(overlap.reference) & _known(overlap.prediction):
        reference, prediction = (listed(overlap.side(side).labels) for side in SIDES)
        raise InputError(
            "no label in common, so with ",
            Option("match", "labels"),
            f" nothing corresponds: reference has {reference}, prediction has {prediction}; use ",
            Option("match", "overlap"),
        )
    volumes = overlap.reference.volumes, overlap.prediction.volumes
    present = sorted((i, j) for i, j in common if volumes[0][i] and volumes[1][j])
    rows, columns = (np.array([pair[k] for pair in present], np.int64) for k in (0, 1))
    return Groups.of_pairs(overlap, rows, columns)


def knows(overlap: Overlap, label: Label) -> bool:
    """Whether either side has a label, be it that of an empty region."""
    return any(str(label) in _known(overlap.side(side)) for side in SIDES)


def _known(regions: Regions) -> set[str]:
    """Every label that a side knows, those of empty regions included."""
    return {str(label) for label in (*regions.labels, *regions.empty)}


def _around_fixed(overlap: Overlap, fixed: Fixed) -> Groups:
    """The pairs that are named; the rest by overlap."""
    known = _known(overlap.reference) | _known(overlap.prediction)
    for name in (name for pair in fixed.pairs for name in pair):
        if str(name) not in known:
            raise InputError(
                f"match names {name!r}, which neither side has: the reference has "
                f"{listed(overlap.reference.labels)}, the prediction has "
                f"{listed(overlap.prediction.labels)}"
            )
    _check_order(overlap, fixed)
    places = {side: _places(overlap.side(side)) for side in SIDES}
    numbers = {side: np.full(len(overlap.side(side)), -1, np.int64) for side in SIDES}
    held = {side: np.zeros(len(overlap.side(side)), np.bool_) for side in SIDES}
    group_of: dict[str, int] = {}
    for prediction_label, reference_label in fixed.pairs:
        j = places["prediction"].get(str(prediction_label))
        i = places["reference"].get(str(reference_label))
        number = group_of.setdefault(str(reference_label), len(group_of))
        for side, k in (("reference", i), ("prediction", j)):
            if k is not None:
                numbers[side][k], held[side][k] = number, True  # type: ignore[index]
    meeting = overlap.meeting
    free = ~held["reference"][meeting.rows] & ~held["prediction"][meeting.columns]
    rest = Pairs(meeting.rows[free], meeting.columns[free], meeting.savings[free])
    rows, columns = _by_overlap(replace(overlap, meeting=rest))
    following = len(group_of) + np.arange(rows.size)
    numbers["reference"][rows] = following
    numbers["prediction"][columns] = following
    return Groups.of_numbers(overlap, numbers["reference"], numbers["prediction"])


def _check_order(overlap: Overlap, fixed: Fixed) -> None:
    """A pair that is named the wrong way round would fix nothing without a word."""
    reference, prediction = _known(overlap.reference), _known(overlap.prediction)
    for prediction_label, reference_label in fixed.pairs:
        first, second = str(prediction_label), str(reference_label)
        if first not in prediction and second not in reference:
            raise InputError(
                f"match pairs {prediction_label!r} with {reference_label!r}, but the first is a "
                f"label of the reference and the second one of the prediction: say the "
                f"prediction's label first"
            )


def _as_given(overlap: Overlap, given: Given) -> Groups:
    """The groups of an earlier comparison; a label that it does not know stays alone."""
    numbers: dict[Side, Integers] = {}
    for side in SIDES:
        numbers[side] = np.full(len(overlap.side(side)), -1, np.int64)
        places = _places(overlap.side(side))
        for number, (reference, prediction) in enumerate(given.groups):
            for label in reference if side == "reference" else prediction:
                k = places.get(str(label))
                if k is not None:
                    numbers[side][k] = number
    return Groups.of_numbers(overlap, numbers["reference"], numbers["prediction"])


def _places(regions: Regions) -> Mapping[str, int]:
    return {str(label): k for k, label in enumerate(regions.labels)}
