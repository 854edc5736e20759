"""Check whether labels have the same meaning in all cases, and find exchanged labels.

All results are computed from the stored overlaps.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import nan

from probdice.comparison.comparing import checked_options, compare_overlap
from probdice.comparison.result import Comparison
from probdice.errors import InputError, Note
from probdice.evaluation.case_scoring import message_of
from probdice.evaluation.record import Record
from probdice.files.sources import natural
from probdice.method.label_matching import label_pairs, labels_by
from probdice.method.region_labels import Label
from probdice.method.scoring import NeedsImages
from probdice.method.sides import SIDES
from probdice.text.formatting import quantity

__all__ = [
    "LabelDifference",
    "different_labels",
    "label_difference",
    "label_order",
    "labels_mean_the_same",
    "labels_of_references",
    "stored_value",
    "with_equal_labels",
]

MIN_AGREEING_SHARE = 0.5  # smallest share of cases, or of pairs of cases, that must agree
MAX_LISTED_PAIRS = 5


@dataclass(frozen=True)
class LabelDifference:
    """Different labels that are matched in the cases of a method.

    Attributes
    ----------
    method : str
    cases : int
        The number of cases with at least one matched pair of different labels.
    of : int
        The number of scored cases.
    pairs : tuple of (label, label, int)
        For each pair, the reference label, the prediction label, and the number of cases in which
        these labels are matched to each other. The most frequent pair comes first.
    """

    method: str
    cases: int
    of: int
    pairs: tuple[tuple[Label, Label, int], ...]

    def __str__(self) -> str:
        pairs = [
            f"reference {reference} to prediction {prediction} in {count}"
            for reference, prediction, count in self.pairs[:MAX_LISTED_PAIRS]
        ]
        if len(self.pairs) > MAX_LISTED_PAIRS:
            pairs.append(
                f"{quantity(len(self.pairs) - MAX_LISTED_PAIRS, 'more pair')} in summary.json"
            )
        cases = f"{self.cases} of {quantity(self.of, 'case')}"
        return f"different labels are matched in {cases} ({', '.join(pairs)})"


def label_difference(
    method: str, comparisons: Iterable[Comparison], labels: frozenset[Label]
) -> LabelDifference | None:
    """Return how often a method's labels are matched to different reference labels.

    The result is None if equal labels are matched in all cases. The result is also None if the
    method uses a label that is not in `labels` (see `labels_of_references`), because the method's
    labels may then have a different meaning.
    """
    counts: Counter[tuple[Label, Label]] = Counter()
    cases = total = 0
    for comparison in comparisons:
        if not labels.issuperset(_compared_labels(comparison)):
            return None
        pairs = different_labels(comparison)
        counts.update(pairs)
        cases += bool(pairs)
        total += 1
    if not cases:
        return None
    sorted_counts = sorted(
        counts.items(), key=lambda item: (-item[1], [label_order(label) for label in item[0]])
    )
    return LabelDifference(method, cases, total, tuple((*pair, n) for pair, n in sorted_counts))


def labels_of_references(comparisons: Iterable[Comparison]) -> frozenset[Label]:
    """Return the names and the numbers of all non-empty reference regions."""
    return frozenset(
        label
        for comparison in comparisons
        for shown_label in comparison.reference_labels
        for label in comparison.overlap.reference.name_and_number(shown_label)
        if label is not None
    )


def _compared_labels(comparison: Comparison) -> Iterator[Label | None]:
    """Yield the name or the number by which each prediction region corresponds to the reference."""
    regions = comparison.overlap.prediction
    names = regions.unique_names if labels_by(comparison.overlap) == "name" else {}
    for label in comparison.prediction_labels:
        name, number = regions.name_and_number(label)
        yield name if name in names else number


def different_labels(comparison: Comparison) -> list[tuple[Label, Label]]:
    """Return the matched pairs (reference label, prediction label) whose labels differ.

    As with ``match="labels"``, labels are compared by name if both sides have names, and by number
    otherwise. Regions that were merged into a pair are ignored.
    """
    groups, overlap = comparison.correspondence.matched, comparison.overlap
    rows, columns = label_pairs(overlap)
    in_one_group = groups.reference[rows] == groups.prediction[columns]
    equal = set(groups.reference[rows[in_one_group]].tolist())
    pairs = []
    for number in range(groups.matched):
        reference, prediction = (groups.regions(side, number).tolist() for side in SIDES)
        if reference and prediction and number not in equal:
            pairs.append(
                (overlap.reference.label(reference[0]), overlap.prediction.label(prediction[0]))
            )
    return pairs


def with_equal_labels(record: Record) -> Record:
    """Return the record that a run with ``match="labels"`` and without merging would create.

    A case whose labels cannot be compared fails, for example because the two sides have no label in
    common. The explained shares stay the same, because they do not depend on the matching.
    """
    comparison = record.comparison
    if comparison is None:
        return record
    options = checked_options(
        similarity=comparison.similarity, match="labels", background=comparison.background
    )
    try:
        by_label = compare_overlap(comparison.overlap, options, of_many=True)
    except InputError as error:
        return replace(record, comparison=None, failure=Note("failed", tuple(message_of(error))))
    shares = comparison.numbers.known("explained")
    if shares is not None:
        by_label.numbers.put("explained", shares)
    return replace(record, comparison=by_label)


def stored_value(record: Record, measure: str) -> float:
    """Return the value of a measure; NaN if the case failed or the measure requires the images."""
    try:
        return record.value(measure)
    except NeedsImages:
        return nan


def labels_mean_the_same(comparisons: Iterable[tuple[str, Comparison]]) -> bool:
    """Return whether equal reference labels mostly mean the same region in different cases.

    The result is true if a label is a name, or if at least half of the cases have the same labels.
    Otherwise, every pair of cases of one method is compared for every label that is matched in both
    cases. A pair of cases agrees on a label if the label is matched to the same prediction labels
    in both cases. The result is true if the pairs agree in at least half of these comparisons. The
    result is typically false for photographs in which annotators chose the regions freely.
    """
    sets: Counter[frozenset[Label]] = Counter()
    matches: Counter[tuple[str, Label, tuple[Label, ...]]] = Counter()
    for method, comparison in comparisons:
        labels = comparison.reference_labels
        if any(isinstance(label, str) for label in labels):
            return True
        sets[frozenset(labels)] += 1
        for group in comparison.groups:
            if len(group.reference) == 1 and group.prediction:
                matches[method, group.reference[0], group.prediction] += 1
    if not sets or max(sets.values()) >= MIN_AGREEING_SHARE * sets.total():
        return True
    occurrences: Counter[tuple[str, Label]] = Counter()
    for (method, label, _), count in matches.items():
        occurrences[method, label] += count
    agreeing_pairs = sum(count * (count - 1) for count in matches.values())
    pairs = sum(count * (count - 1) for count in occurrences.values())
    return agreeing_pairs >= MIN_AGREEING_SHARE * pairs > 0


def label_order(label: Label) -> tuple[int, int, list[tuple[int, str]]]:
    """Return a sort key: integer labels in ascending order, then names."""
    return (0, label, []) if isinstance(label, int) else (1, 0, natural(label))
