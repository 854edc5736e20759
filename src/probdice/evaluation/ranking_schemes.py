"""Ranking schemes: the order of the methods, and the sentence about this order in how.md.

"rank-then-aggregate" ranks the methods within every case and orders them by their mean rank.
"aggregate-then-rank" orders the methods by their mean value, or by the median if a value is
infinite. "test-based" orders the methods by the share of other methods that they beat in a
one-sided test (`paired_test`), like the significance ranking of challengeR (Wiesenfarth et al.,
2021, https://doi.org/10.1038/s41598-021-82017-6).

`options.SCHEMES` contains the descriptions for the help and for pages.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import nan

import numpy as np
from numpy.typing import ArrayLike, NDArray

from probdice.evaluation.conclusion import join_names
from probdice.evaluation.intervals import Floats, Numbers, weighted_medians
from probdice.evaluation.paired_test import ALPHA, one_sided
from probdice.evaluation.statistics import Aggregate, gaps, rounded, subject_aggregates
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
    """A ranking scheme.

    Attributes
    ----------
    ordering : callable
        Returns the function that orders the methods in every resample. The arguments of `ordering`
        are the costs for every measure, the subject of every case, the significance level, and
        whether tests use one value per subject.
    descending : callable
        Returns whether a higher `Rank.value` is better, for a ranking by one measure. The argument
        is true if higher values of the measure are better.
    sentence : callable
        Returns the sentence in how.md. The arguments are the titles of the measures and the name of
        the test.
    columns : tuple of str
        Default columns of the publication table that are specific to this scheme.
    """

    ordering: Callable[[Sequence["Costs"], Numbers, float, bool], Ordering]
    descending: Callable[[bool], bool]
    sentence: Callable[[Sequence[str], str], str]
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Costs:
    """The values of one measure as costs: lower is better, and missing values are replaced.

    Methods are rows and cases are columns.

    Attributes
    ----------
    costs : array of float
        The cost of each method and case.
    absent : array of bool
        Whether each value is missing.
    counted : array of bool
        Whether each case is included in the ranking.
    case_ranks : array of float
        The rank of each method within each case.
    """

    costs: Floats
    absent: Booleans
    counted: Booleans
    case_ranks: Floats

    @property
    def aggregate(self) -> Aggregate:
        return "median" if np.isinf(self.costs[:, self.counted]).any() else "mean"

    def of_cases(self, selected_cases: Booleans) -> "Costs":
        return Costs(
            self.costs[:, selected_cases],
            self.absent[:, selected_cases],
            self.counted[selected_cases],
            self.case_ranks[:, selected_cases],
        )


def costs_of(values: Sequence[Floats], higher_is_better: bool, missing: MissingRule) -> Costs:
    """Convert the values of one measure, one array per method, to costs.

    Examples
    --------
    >>> import numpy as np
    >>> from probdice.evaluation.ranking_schemes import costs_of
    >>> costs = costs_of([np.array([0.9, 0.5]), np.array([0.8, np.nan])], True, "worst")
    >>> costs.costs.tolist(), costs.case_ranks.tolist()
    ([[-0.9, -0.5], [-0.8, 0.0]], [[1.0, 1.0], [2.0, 2.0]])
    """
    from scipy.stats import rankdata

    table = np.array(values)
    costs = -table if higher_is_better else table
    absent = np.isnan(costs)
    counted_cases = ~in_any(absent) if missing == "exclude" else in_any(~absent)
    worst_cost = max(0.0, float(np.max(costs, initial=-np.inf, where=~absent)))
    filled_costs = np.where(absent, worst_cost if higher_is_better else np.inf, costs)
    # A missing value ranks behind an infinite one.
    ranked_costs = np.where(np.isposinf(costs), np.finfo(np.float64).max, rounded(costs))
    case_ranks: Floats = rankdata(np.where(absent, np.inf, ranked_costs), axis=0)
    return Costs(filled_costs, absent, counted_cases, case_ranks)


def in_any(rows: ArrayLike) -> Booleans:
    """Return, for each column, whether any row is true. Without rows, the result is empty."""
    table = np.asarray(rows, np.bool_)
    columns: Booleans = np.logical_or.reduce(table, axis=0) if table.size else np.zeros(0, np.bool_)
    return columns


def mean_ranks(measure_costs: Sequence[Costs], weights: Floats) -> Floats:
    """Return the rank of each method within a case, averaged over all measures and counted cases.

    Every row of `weights` contains one weight per case. Ranks are multiples of 1/2, so their sums
    are exact, and equal means are ties.
    """
    by_measure = [
        costs.case_ranks[:, costs.counted] @ weights[:, costs.counted].T for costs in measure_costs
    ]
    sums = np.stack(by_measure).sum(axis=0, dtype=np.float64)
    totals = np.sum([weights[:, costs.counted].sum(axis=1) for costs in measure_costs], axis=0)
    means: Floats = sums / np.where(totals > 0, totals, nan)
    return means


def _by_mean_ranks(
    measure_costs: Sequence[Costs], owners: Numbers, alpha: float, has_subjects: bool
) -> Ordering:
    return lambda counts: mean_ranks(measure_costs, counts[:, owners])


def _by_aggregates(
    measure_costs: Sequence[Costs], owners: Numbers, alpha: float, has_subjects: bool
) -> Ordering:
    return _joint([_order_by_aggregate(costs, owners) for costs in measure_costs])


def _by_tests(
    measure_costs: Sequence[Costs], owners: Numbers, alpha: float, has_subjects: bool
) -> Ordering:
    return _joint(
        [
            _order_by_tests(costs, owners, alpha, has_subjects=has_subjects)
            for costs in measure_costs
        ]
    )


def _joint(orders: Sequence[Ordering]) -> Ordering:
    """Return the ordering by one measure, or by the mean rank over several measures."""
    return orders[0] if len(orders) == 1 else lambda counts: _mean_of_ranks(orders, counts)


def _order_by_aggregate(costs: Costs, owners: Numbers) -> Ordering:
    """Return the ordering by the mean value, or by the median if a value is infinite."""
    counted_costs, median = costs.costs[:, costs.counted], costs.aggregate == "median"

    def aggregates(counts: Floats) -> Floats:
        weights = counts[:, owners][:, costs.counted]
        totals = weights.sum(axis=1)
        values: Floats
        if median:
            values = np.array([weighted_medians(row, weights) for row in counted_costs])
        else:
            values = counted_costs @ weights.T / np.maximum(totals, 1)
        values[:, totals == 0] = nan
        return rounded(values)

    return aggregates


def _order_by_tests(costs: Costs, owners: Numbers, alpha: float, *, has_subjects: bool) -> Ordering:
    """Return the ordering by the share of methods that a method beats significantly, negated."""
    counted_costs, case_owners = costs.costs[:, costs.counted], owners[costs.counted]
    methods = counted_costs.shape[0]
    pairs = {}
    for first, second in combinations(range(methods), 2):
        # The differences are above 0 where the first method is better.
        differences = gaps(counted_costs[second], counted_costs[first])
        if has_subjects:
            differences = subject_aggregates(differences, case_owners)
        pairs[first, second] = rounded(differences)
    subjects = np.unique(case_owners)

    def negative_shares(counts: Floats) -> Floats:
        wins = np.zeros((methods, counts.shape[0]))
        for (first, second), differences in pairs.items():
            above, below = one_sided(differences, counts[:, subjects])
            wins[first] += above <= alpha
            wins[second] += below <= alpha
        shares: Floats = -wins / max(methods - 1, 1)
        return shares

    return negative_shares


def _mean_of_ranks(orders: Sequence[Ordering], counts: Floats) -> Floats:
    """Return the rank by each measure, averaged over the measures."""
    from scipy.stats import rankdata

    by_measure = [rankdata(order(counts), axis=0, nan_policy="omit") for order in orders]
    means: Floats = np.nanmean(by_measure, axis=0)  # a resample may lack the cases of a measure
    return means


def _mean_ranks_sentence(titles: Sequence[str], test: str) -> str:
    measures, has_several = join_names(titles), len(titles) > 1
    measure_text = f"by each of {measures}" if has_several else f"by {measures}"
    return (
        f"Methods are ranked {measure_text} within every case, and tied methods share the mean of "
        f"their ranks in that case. Methods are then ordered by the mean of these ranks "
        f"(rank-then-aggregate). Methods with equal mean ranks share a place."
    )


def _aggregates_sentence(titles: Sequence[str], test: str) -> str:
    return (
        f"Methods are ordered by their mean {join_names(titles)} over the cases, or by "
        f"the median if a value is infinite (aggregate-then-rank).{_tie_sentences(titles)}"
    )


def _tests_sentence(titles: Sequence[str], test: str) -> str:
    return (
        f"Methods are ordered by the share of other methods that they beat in one-sided {test}s of "
        f"{join_names(titles)} at α = {ALPHA:g}, without correction for multiple comparisons "
        f"(test-based).{_tie_sentences(titles)}"
    )


def _tie_sentences(titles: Sequence[str]) -> str:
    """Return the sentences about several measures and about ties."""
    measure_sentence = " The ranks by each measure are averaged with equal weights." * (
        len(titles) > 1
    )
    return f"{measure_sentence} Tied methods share a place."


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
