"""What labels say over many cases: whether they mean the same in each, and which are exchanged.

All of it is read from the overlaps that the scores were read from.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import nan

from probdice.comparison import Comparison
from probdice.errors import InputError
from probdice.files.sources import natural
from probdice.matching import find_groups
from probdice.region_labels import Label
from probdice.scoring import NeedsImages, measure

__all__ = [
    "Exchange",
    "exchanges",
    "label_order",
    "labels_mean_the_same",
    "labels_score",
    "one_label_set",
]

MOSTLY = 0.5  # a share of cases from which on something holds for the run


@dataclass(frozen=True)
class Exchange:
    """Labels of both sides that a method exchanges.

    Attributes
    ----------
    method : str
    labels : tuple of int or str
        Each corresponds to the next one, in the prediction, and the last to the first.
    cases : int
        The number of cases in which it happens.
    of : int
        The number of cases that were scored.
    """

    method: str
    labels: tuple[Label, ...]
    cases: int
    of: int

    def __str__(self) -> str:
        *others, last = (str(label) for label in self.labels)
        cases = f"{self.cases} of {self.of} case{'s' * (self.of != 1)}"
        return f"labels {', '.join(others)} and {last} are exchanged in {cases}"


def exchanges(method: str, comparisons: Sequence[Comparison]) -> tuple[Exchange, ...]:
    """Which labels a method exchanges, those of most cases first.

    Empty where the two sides do not use one set of labels.
    """
    if not one_label_set(comparisons):
        return ()
    counts = Counter(cycle for comparison in comparisons for cycle in exchanged(comparison))
    return tuple(
        Exchange(method, cycle, count, len(comparisons))
        for cycle, count in sorted(
            counts.items(), key=lambda item: (-item[1], [label_order(x) for x in item[0]])
        )
    )


def exchanged(comparison: Comparison) -> list[tuple[Label, ...]]:
    """The labels of both sides on which the correspondence is a permutation, cycle by cycle."""
    groups, table = comparison._correspondence.matched, comparison.overlap
    partners = {
        number: table.prediction.label(k)
        for k, number in enumerate(groups.prediction.tolist())
        if 0 <= number < groups.matched
    }
    following: dict[Label, Label] = {}
    for k, number in enumerate(groups.reference.tolist()):
        label = table.reference.label(k)
        if number in partners and partners[number] != label:
            following[label] = partners[number]
    cycles = []
    for start in sorted(following, key=label_order):
        cycle = [start]
        while cycle[-1] in following and (label := following.pop(cycle[-1])) != start:
            cycle.append(label)
        if len(cycle) > 1 and label == start:
            cycles.append(tuple(cycle))
    return cycles


def labels_score(comparison: Comparison) -> float:
    """What the case scores when equal labels correspond; NaN where that needs the images."""
    try:
        groups = find_groups(comparison.overlap, "labels")
        return measure(comparison.overlap, groups, None, None).score
    except NeedsImages:
        return nan
    except InputError:  # no label in common
        return 0.0


def labels_mean_the_same(comparisons: Iterable[tuple[str, Comparison]]) -> bool:
    """Whether a label of the reference stands for the same thing in every case, by all signs.

    It does where labels have names, where most cases have the same ones, or where two cases mostly
    give a label the same partner in the prediction of a method. It does not in photographs that
    people divided as they saw fit.
    """
    sets: Counter[frozenset[Label]] = Counter()
    partners: Counter[tuple[str, Label, tuple[Label, ...]]] = Counter()
    for method, comparison in comparisons:
        labels = comparison.reference_labels
        if any(isinstance(label, str) for label in labels):
            return True
        sets[frozenset(labels)] += 1
        for group in comparison.groups:
            if len(group.reference) == 1 and group.prediction:
                partners[method, group.reference[0], group.prediction] += 1
    if not sets or max(sets.values()) >= MOSTLY * sets.total():
        return True
    occurrences: Counter[tuple[str, Label]] = Counter()
    for (method, label, _), count in partners.items():
        occurrences[method, label] += count
    agreeing = sum(count * (count - 1) for count in partners.values())
    pairs = sum(count * (count - 1) for count in occurrences.values())
    return agreeing >= MOSTLY * pairs > 0


def label_order(label: Label) -> tuple[int, int, list[tuple[int, str]]]:
    """Numbers by size, then names."""
    return (0, label, []) if isinstance(label, int) else (1, 0, natural(label))


def one_label_set(comparisons: Iterable[Comparison]) -> bool:
    """Whether the predictions use the labels of the references, over all cases."""
    reference: set[Label] = set()
    prediction: set[Label] = set()
    for comparison in comparisons:
        reference.update(comparison.reference_labels)
        prediction.update(comparison.prediction_labels)
    return prediction <= reference and len(prediction) > 1
