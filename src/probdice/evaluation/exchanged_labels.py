"""Check whether labels have the same meaning in all cases, and find exchanged labels.

All results are computed from the stored overlaps.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import nan

from probdice.comparison.result import Comparison
from probdice.errors import InputError
from probdice.evaluation.record import Record
from probdice.files.sources import natural
from probdice.method.region_labels import Label
from probdice.method.scoring import NeedsImages
from probdice.method.sides import SIDES
from probdice.text.formatting import quantity

__all__ = [
    "LabelDifference",
    "different_labels",
    "equal_labels_value",
    "label_difference",
    "label_order",
    "labels_mean_the_same",
]

MOSTLY = 0.5  # smallest share of cases, or of pairs of cases, that must agree
EXPLAINED = ("explained_reference", "explained_prediction")  # do not depend on the matching
SHOWN = 5  # number of pairs listed in a sentence


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
            for reference, prediction, count in self.pairs[:SHOWN]
        ]
        if len(self.pairs) > SHOWN:
            pairs.append(f"{quantity(len(self.pairs) - SHOWN, 'more pair')} in summary.json")
        cases = f"{self.cases} of {quantity(self.of, 'case')}"
        return f"different labels are matched in {cases} ({', '.join(pairs)})"


def label_difference(
    method: str, comparisons: Iterable[Comparison], labels: frozenset[Label]
) -> LabelDifference | None:
    """Return how often a method's labels are matched to different reference labels.

    The result is None if equal labels are matched in all cases. The result is also None if the
    method uses a label that is not in `labels` (the labels of the reference), because the method's
    labels may then have a different meaning.
    """
    counts: Counter[tuple[Label, Label]] = Counter()
    cases = total = 0
    for comparison in comparisons:
        if not labels.issuperset(comparison.prediction_labels):
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


def different_labels(comparison: Comparison) -> list[tuple[Label, Label]]:
    """Return the matched pairs (reference label, prediction label) whose labels differ.

    Regions that were merged into a pair are ignored.
    """
    groups = comparison.correspondence.matched
    pairs = []
    for number in range(groups.matched):
        reference, prediction = (
            [comparison.overlap.side(side).label(k) for k in groups.regions(side, number).tolist()]
            for side in SIDES
        )
        if reference and prediction and not set(reference) & set(prediction):
            pairs.append((reference[0], prediction[0]))
    return pairs


def equal_labels_value(record: Record, measure: str) -> float:
    """Return the value that a measure would have for a case if equal labels were matched.

    The value is NaN if the case failed, or if the measure can only be computed from the images. If
    the two sides have no label in common, the value is 0. The explained shares are returned
    unchanged, because they do not depend on the matching.
    """
    if record.comparison is None or measure in EXPLAINED:
        return record.value(measure)
    try:
        background = record.comparison.background
        comparison = record.comparison.overlap.compare(match="labels", background=background)
        return replace(record, comparison=comparison).value(measure)
    except NeedsImages:
        return nan
    except InputError:  # no label in common
        return 0.0


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
    if not sets or max(sets.values()) >= MOSTLY * sets.total():
        return True
    occurrences: Counter[tuple[str, Label]] = Counter()
    for (method, label, _), count in matches.items():
        occurrences[method, label] += count
    agreeing_pairs = sum(count * (count - 1) for count in matches.values())
    pairs = sum(count * (count - 1) for count in occurrences.values())
    return agreeing_pairs >= MOSTLY * pairs > 0


def label_order(label: Label) -> tuple[int, int, list[tuple[int, str]]]:
    """Return a sort key: integer labels in ascending order, then names."""
    return (0, label, []) if isinstance(label, int) else (1, 0, natural(label))
