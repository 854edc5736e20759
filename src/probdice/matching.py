"""Which region is which: a minimum-weight matching, or equality of labels."""

import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
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
    rows, columns = _solver()(table)
    return _correspondence(zip(rows.tolist(), columns.tolist(), strict=True), table.shape)


def by_label(reference: Sequence[Label], prediction: Sequence[Label]) -> Correspondence:
    """The pairs of equal labels."""
    place = {label: j for j, label in enumerate(prediction)}
    pairs = ((i, place[label]) for i, label in enumerate(reference) if label in place)
    return _correspondence(pairs, (len(reference), len(prediction)))


@cache
def _solver() -> Callable[[NDArray[Any]], tuple[NDArray[Any], NDArray[Any]]]:
    """SciPy's linear_sum_assignment.

    It is one compiled file that needs nothing else of scipy.optimize, and to import all of that
    takes longer than to compare two volumes.
    """
    if "scipy.optimize" not in sys.modules:
        import scipy

        spec = PathFinder.find_spec("_lsap", [f"{folder}/optimize" for folder in scipy.__path__])
        with suppress(ImportError, AttributeError):  # the layout of SciPy is its own affair
            module = module_from_spec(spec)  # type: ignore[arg-type]
            spec.loader.exec_module(module)  # type: ignore[union-attr]
            return module.linear_sum_assignment  # type: ignore[no-any-return]
    from scipy.optimize import linear_sum_assignment

    return linear_sum_assignment


def _correspondence(pairs: Iterable[tuple[int, int]], shape: tuple[int, ...]) -> Correspondence:
    pairs = tuple(sorted(pairs))
    matched = {i for i, _ in pairs}, {j for _, j in pairs}
    spare = [
        tuple(k for k in range(n) if k not in taken)
        for n, taken in zip(shape, matched, strict=True)
    ]
    return Correspondence(pairs, {"reference": spare[0], "prediction": spare[1]})
