"""Which region is which: a minimum-weight matching, or equality of labels."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from probdice.segmentation import Label
from probdice.tally import Side

__all__ = ["Correspondence", "by_label", "by_weight"]


@dataclass(frozen=True)
class Correspondence:
    """Pairs of regions (reference, prediction), and the spare regions of each side, by index."""

    pairs: tuple[tuple[int, int], ...]
    spare: dict[Side, tuple[int, ...]]


def by_weight(table: NDArray[Any]) -> Correspondence:
    """The pairs of the least weight in all; every region of the smaller side is in one."""
    small = table if table.shape[0] <= table.shape[1] else table.T
    best = small.argmin(axis=1).tolist()
    if len(set(best)) == len(best):  # no two want the same: nothing is left to solve
        pairs = list(enumerate(best))
    else:
        from scipy.optimize import linear_sum_assignment

        rows, columns = linear_sum_assignment(small)
        pairs = list(zip(rows.tolist(), columns.tolist(), strict=True))
    if small is not table:
        pairs = [(i, j) for j, i in pairs]
    return _correspondence(pairs, table.shape)


def by_label(reference: Sequence[Label], prediction: Sequence[Label]) -> Correspondence:
    """The pairs of equal labels."""
    place = {label: j for j, label in enumerate(prediction)}
    pairs = ((i, place[label]) for i, label in enumerate(reference) if label in place)
    return _correspondence(pairs, (len(reference), len(prediction)))


def _correspondence(pairs: Iterable[tuple[int, int]], shape: tuple[int, ...]) -> Correspondence:
    pairs = tuple(sorted(pairs))
    matched = {i for i, _ in pairs}, {j for _, j in pairs}
    spare = [
        tuple(k for k in range(n) if k not in taken)
        for n, taken in zip(shape, matched, strict=True)
    ]
    return Correspondence(pairs, {"reference": spare[0], "prediction": spare[1]})
