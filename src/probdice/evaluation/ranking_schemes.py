"""The ranking schemes: how each orders methods, and its sentence in how.md.

"rank-then-aggregate" ranks the methods within every case and orders them by their mean rank.
"aggregate-then-rank" orders them by their mean value, or by the median if a value is infinite.
"test-based" orders them by how many other methods they beat in a one-sided test (`paired_test`),
like the significance ranking of challengeR (Wiesenfarth et al., 2021,
https://doi.org/10.1038/s41598-021-82017-6).

The words of a scheme in the help and on pages are in `options.SCHEMES`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import nan

import numpy as np
from numpy.typing import ArrayLike, NDArray

from probdice.evaluation.conclusion import joined
from probdice.evaluation.intervals import Floats, Numbers, weighted_medians
from probdice.evaluation.paired_test import ALPHA, one_sided
from probdice.evaluation.statistics import DECIMALS, Aggregate, gaps, subject_aggregates
from probdice.options import MissingRule, Scheme

__all__ = [
    "RANKING_SCHEMES",
    "Costs",
    "Ordering",
    "RankingScheme",
    "costs_of",
    "in_any",
    "mean_ranks",
]

Booleans = NDArray[np.bool_]
Ordering = Callable[[Floats], Floats]  # counts of subjects → value per method, lower is better


@dataclass(frozen=True)
class RankingScheme:
    """How methods are ordered.

    Attributes
    ----------
    ordering : callable
        Returns the function that orders the methods in every resample. Its arguments are the costs
        by every measure, the subject of every case, the significance level, and whether cases of
        one subject belong together.
    descending : callable
        Whether the method with the largest number is first, for a measure whose higher values are
        better or not.
    sentence : callable
        Describes the order in how.md, from the titles of the measures and the name of the test.
    columns : tuple of str
        Columns that the publication table has only for this scheme by default.
    """

    ordering: Callable[[Sequence["Costs"], Numbers, float, bool], Ordering]
    descending: Callable[[bool], bool]
    sentence: Callable[[Sequence[str], str], str]
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Costs:
    """The values of one measure, signed so that lower is better; missing values are replaced.

    Methods are rows and cases are columns.

    Attributes
    ----------
    costs : array of float
        The values.
    absent : array of bool
        Where values are missing.
    counted : array of bool
        The cases that enter the ranking.
    within : array of float
        The ranks within every case.
    """

    costs: Floats
    absent: Booleans
    counted: Booleans
    within: Floats

    @property
    def aggregate(self) -> Aggregate:
        return "median" if np.isinf(self.costs[:, self.counted]).any() else "mean"

    def of_cases(self, chosen: Booleans) -> "Costs":
        return Costs(
            self.costs[:, chosen],
            self.absent[:, chosen],
            self.counted[chosen],
            self.within[:, chosen],
        )


def costs_of(values: Sequence[Floats], higher_is_better: bool, missing: MissingRule) -> Costs:
    """Prepare the values of every method by one measure.

    Examples
    --------
    >>> import numpy as np
    >>> from probdice.evaluation.ranking_schemes import costs_of
    >>> costs = costs_of([np.array([0.9, 0.5]), np.array([0.8, np.nan])], True, "worst")
    >>> costs.costs.tolist(), costs.within.tolist()
    ([[-0.9, -0.5], [-0.8, 0.0]], [[1.0, 1.0], [2.0, 2.0]])
    """
    from scipy.stats import rankdata

    table = np.array(values)
    costs = np.round(-table if higher_is_better else table, DECIMALS)
    absent = np.isnan(costs)
    counted = ~in_any(absent) if missing == "exclude" else in_any(~absent)
    worst = max(0.0, float(np.max(costs, initial=-np.inf, where=~absent)))
    filled = np.where(absent, worst if higher_is_better else np.inf, costs)
    within: Floats = rankdata(np.where(absent, np.inf, costs), axis=0)
    return Costs(filled, absent, counted, within)


def in_any(rows: ArrayLike) -> Booleans:
    """Whether each column is true in any row. The result is empty if there are no rows."""
    table = np.asarray(rows, np.bool_)
    columns: Booleans = np.logical_or.reduce(table, axis=0) if table.size else np.zeros(0, np.bool_)
    return columns


def mean_ranks(prepared: Sequence[Costs], weights: Floats) -> Floats:
    """The rank within a case, averaged over all measures and counted cases.

    Ranks are multiples of 1/2, whose sums are exact, so equal means are ties.
    """
    by_measure = [one.within[:, one.counted] @ weights[:, one.counted].T for one in prepared]
    sums = np.stack(by_measure).sum(axis=0, dtype=np.float64)
    totals = np.sum([weights[:, one.counted].sum(axis=1) for one in prepared], axis=0)
    means: Floats = sums / np.where(totals > 0, totals, nan)
    return means


def _by_mean_ranks(
    prepared: Sequence[Costs], owners: Numbers, alpha: float, grouped: bool
) -> Ordering:
    return lambda counts: mean_ranks(prepared, counts[:, owners])


def _by_aggregates(
    prepared: Sequence[Costs], owners: Numbers, alpha: float, grouped: bool
) -> Ordering:
    return _joint([_aggregated(one, owners) for one in prepared])


def _by_tests(prepared: Sequence[Costs], owners: Numbers, alpha: float, grouped: bool) -> Ordering:
    return _joint([_tested(one, owners, alpha, grouped=grouped) for one in prepared])


def _joint(orders: Sequence[Ordering]) -> Ordering:
    """The order by one measure, or by the mean of the ranks by several."""
    return orders[0] if len(orders) == 1 else lambda counts: _mean_of_ranks(orders, counts)


def _aggregated(one: Costs, owners: Numbers) -> Ordering:
    """The mean value, or the median if a value is infinite."""
    costs, median = one.costs[:, one.counted], one.aggregate == "median"

    def aggregated(counts: Floats) -> Floats:
        weights = counts[:, owners][:, one.counted]
        totals = weights.sum(axis=1)
        values: Floats
        if median:
            values = np.array([weighted_medians(row, weights) for row in costs])
        else:
            values = costs @ weights.T / np.maximum(totals, 1)
        values[:, totals == 0] = nan
        rounded: Floats = np.round(values, DECIMALS)
        return rounded

    return aggregated


def _tested(one: Costs, owners: Numbers, alpha: float, *, grouped: bool) -> Ordering:
    """The share of other methods that a method does not beat significantly, minus 1."""
    costs, own = one.costs[:, one.counted], owners[one.counted]
    methods = costs.shape[0]
    pairs = {}
    for first, second in combinations(range(methods), 2):
        paired = gaps(costs[second], costs[first])  # above 0 where the first is better
        pairs[first, second] = subject_aggregates(paired, own) if grouped else paired
    drawn = np.unique(own)

    def tested(counts: Floats) -> Floats:
        wins = np.zeros((methods, counts.shape[0]))
        for (first, second), paired in pairs.items():
            above, below = one_sided(paired, counts[:, drawn])
            wins[first] += above <= alpha
            wins[second] += below <= alpha
        beaten: Floats = -wins / max(methods - 1, 1)
        return beaten

    return tested


def _mean_of_ranks(orders: Sequence[Ordering], counts: Floats) -> Floats:
    """The rank by each measure, averaged over the measures."""
    from scipy.stats import rankdata

    by_measure = [rankdata(order(counts), axis=0, nan_policy="omit") for order in orders]
    means: Floats = np.nanmean(by_measure, axis=0)  # a resample may lack the cases of a measure
    return means


def _mean_ranks_sentence(titles: Sequence[str], test: str) -> str:
    measures, several = joined(titles), len(titles) > 1
    by = f"by each of {measures}" if several else f"by {measures}"
    pairs = "every measure and case" if several else "every case"
    return (
        f"Methods are ranked {by} within {pairs}, where ties share their mean rank, and then by "
        f"the mean of these ranks (rank-then-aggregate). Methods with equal mean ranks share a "
        f"place."
    )


def _aggregates_sentence(titles: Sequence[str], test: str) -> str:
    return (
        f"Methods are ordered by their mean {joined(titles)} over the cases, or by "
        f"the median if a value is infinite (aggregate-then-rank).{_shared(titles)}"
    )


def _tests_sentence(titles: Sequence[str], test: str) -> str:
    return (
        f"Methods are ordered by the number of other methods that they beat in "
        f"{joined(titles)}, in one-sided {test}s at α = {ALPHA:g} without correction "
        f"(test-based).{_shared(titles)}"
    )


def _shared(titles: Sequence[str]) -> str:
    """How the orders by several measures are combined, and how ties are treated."""
    several = " The places by each measure are averaged with equal weights." * (len(titles) > 1)
    return f"{several} Methods with equal numbers share a place."


RANKING_SCHEMES: dict[Scheme, RankingScheme] = {
    "rank-then-aggregate": RankingScheme(
        _by_mean_ranks, lambda higher_is_better: False, _mean_ranks_sentence
    ),
    "aggregate-then-rank": RankingScheme(
        _by_aggregates, lambda higher_is_better: higher_is_better, _aggregates_sentence
    ),
    "test-based": RankingScheme(
        _by_tests, lambda higher_is_better: True, _tests_sentence, columns=("wins",)
    ),
}
