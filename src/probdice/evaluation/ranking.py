"""Rank methods by one or more measures with any ranking scheme, and compute rank stability.

Rank stability is computed by a bootstrap over cases, or over subjects if they are given. The
functions do not read files or images.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import nan

import numpy as np
from numpy.typing import ArrayLike

from probdice.errors import InputError
from probdice.evaluation.intervals import (
    MIN_SUBJECTS,
    RESAMPLES,
    Floats,
    Interval,
    Numbers,
    percentiles,
    resampled_counts,
    subject_numbers,
    withheld,
)
from probdice.evaluation.paired_test import ALPHA
from probdice.evaluation.ranking_schemes import (
    RANKING_SCHEMES,
    Costs,
    Ordering,
    costs_of,
    in_any,
    mean_ranks,
)
from probdice.evaluation.statistics import as_table
from probdice.options import SCHEMES, MissingRule, Scheme

__all__ = [
    "Rank",
    "Scores",
    "case_ranks",
    "joint_ranks",
    "kendall",
    "ranks",
]

FEW_VALUES = "ranks have few distinct values"


@dataclass(frozen=True)
class Scores:
    """The values of one measure for all methods.

    Attributes
    ----------
    values : mapping of str to array_like
        One value per case for every method, in the same order of cases; NaN for missing values.
    higher_is_better : bool
        Whether higher values are better. False for measures such as distances.
    """

    values: Mapping[str, ArrayLike]
    higher_is_better: bool = True


@dataclass(frozen=True)
class Rank:
    """The place of a method in a ranking.

    Attributes
    ----------
    method : str
        The method.
    n : int
        The number of ranked cases.
    last : int
        The number of ranked cases in which the method lacks a value of at least one measure. In
        such a case, the method is ranked last by every measure whose value it lacks.
    mean_rank : float
        The rank of the method within a case, averaged over cases (and measures). Rank 1 is best,
        and tied methods share the mean of their ranks in that case.
    place : int or None
        One plus the number of methods that the scheme places before this one. Four methods can have
        the places 1, 2, 2 and 4. None for a method without ranked cases.
    mean_rank_interval : Interval
        The bootstrap confidence interval of the mean rank, from the same resamples for all methods.
    place_interval : Interval
        The bootstrap confidence interval of the place, from the same resamples.
    stability : float
        Rank stability: the share of resamples in which the method keeps its place; NaN if rank
        stability is withheld.
    shares : tuple of float
        The shares of resamples in which the method has place 1, 2, …; empty if the shares are
        withheld.
    value : float
        The value by which the scheme orders the methods: the mean rank, the mean or median, or the
        share of other methods that this method beats significantly. With several measures,
        "aggregate-then-rank" and "test-based" use the mean of the method's ranks by each measure.
    """

    method: str
    n: int
    last: int
    mean_rank: float
    place: int | None
    mean_rank_interval: Interval = field(default_factory=lambda: withheld(0, of_subjects=False))
    place_interval: Interval = field(default_factory=lambda: withheld(0, of_subjects=False))
    stability: float = nan
    shares: tuple[float, ...] = ()
    value: float = nan


def ranks(
    scores: Mapping[str, ArrayLike],
    *,
    missing: MissingRule = "worst",
    higher_is_better: bool = True,
    scheme: Scheme = "rank-then-aggregate",
    alpha: float = ALPHA,
    subjects: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[Rank, ...]:
    """Rank methods from best to worst by one measure.

    Confidence intervals use percentiles, because ranks have few distinct values and are bounded.
    If lower values are better, infinity is the worst value.

    Parameters
    ----------
    scores : mapping of str to array_like
        One value per case for every method, in the same order of cases; NaN for missing values.
    missing : {"worst", "zero", "exclude"}, optional
        With "worst" and "zero", a method without a value is ranked last for that case. Several
        methods without a value are tied for last. In means and tests, a missing value counts as 0
        or as the lowest of all values, whichever is lower. If lower values are better, a missing
        value counts as infinity. With "exclude", the case is excluded for all methods, and a method
        without any value is not ranked. A case for which no method has a value is always excluded.
    higher_is_better : bool, optional
        Whether higher values are better. Use False for measures such as distances.
    scheme : str, optional
        How the methods are ordered: a name in `RANKING_SCHEMES`.
    alpha : float, optional
        The significance level of the test-based scheme. This scheme does not correct p-values for
        multiple comparisons.
    subjects : sequence, optional
        The subject of every case. With subjects, resamples draw subjects, and tests use one value
        per subject.
    resamples, seed : int, optional
        The number of bootstrap resamples, and the seed.

    Examples
    --------
    >>> from probdice.evaluation.ranking import ranks
    >>> best, worst = ranks({"a": [0.5, 0.6, 0.9], "b": [0.6, 0.7, 0.8]})
    >>> best.method, best.place, round(best.mean_rank, 4), best.place_interval.kind
    ('b', 1, 1.3333, 'withheld')
    >>> nan = float("nan")
    >>> scores = {"whole": [0.9, 0.8, 0.2], "easy": [0.95, 0.85, nan]}
    >>> [(rank.method, rank.n, rank.last) for rank in ranks(scores)]
    [('easy', 3, 1), ('whole', 3, 0)]
    >>> [(rank.method, rank.value) for rank in ranks(scores, scheme="aggregate-then-rank")]
    [('whole', 0.633333333333), ('easy', 0.6)]
    """
    return joint_ranks(
        {"": Scores(scores, higher_is_better)},
        missing=missing,
        scheme=scheme,
        alpha=alpha,
        subjects=subjects,
        resamples=resamples,
        seed=seed,
    )


def joint_ranks(
    measures: Mapping[str, Scores],
    *,
    missing: MissingRule = "worst",
    scheme: Scheme = "rank-then-aggregate",
    alpha: float = ALPHA,
    subjects: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[Rank, ...]:
    """Rank methods from best to worst by several measures, which have equal weights.

    "rank-then-aggregate" ranks the methods for every measure and case, and orders them by the mean
    of these ranks. The other schemes rank the methods by every measure and order them by the mean
    of these ranks. Tied methods share the mean of their ranks.

    Parameters
    ----------
    measures : mapping of str to Scores
        The scores for each measure. All measures must have the same methods and cases.
    missing, scheme, alpha, subjects, resamples, seed
        As in `ranks`. With "exclude", a method that lacks all values of a measure is not ranked.

    Examples
    --------
    >>> from probdice.evaluation.ranking import Scores, joint_ranks
    >>> dice = Scores({"a": [0.9, 0.8], "b": [0.8, 0.7], "c": [0.7, 0.9]})
    >>> distance = Scores({"a": [5.0, 6.0], "b": [1.0, 2.0], "c": [3.0, 9.0]}, False)
    >>> [(rank.method, rank.mean_rank) for rank in joint_ranks({"dice": dice, "hd95": distance})]
    [('b', 1.75), ('a', 2.0), ('c', 2.25)]
    """
    if scheme not in SCHEMES:
        raise InputError(f"scheme must be one of {', '.join(SCHEMES)}, found {scheme!r}")
    tables = _tables(measures)
    names = list(next(iter(tables.values()), {}))
    unranked_names = _without_values(tables.values()) if missing == "exclude" else []
    ranked_names = [name for name in names if name not in unranked_names]
    measure_costs = [
        costs_of([table[name] for name in ranked_names], measures[key].higher_is_better, missing)
        for key, table in tables.items()
        if ranked_names
    ]
    counted_cases = in_any([costs.counted for costs in measure_costs])
    if not counted_cases.any():
        return _ranks_without_place([*ranked_names, *unranked_names])
    measure_costs = [costs.of_cases(counted_cases) for costs in measure_costs]
    cases = counted_cases.size
    case_subjects = subject_numbers(subjects, cases)
    owners = np.arange(cases) if case_subjects is None else case_subjects
    _, owners = np.unique(owners[counted_cases], return_inverse=True)
    ranking_scheme = RANKING_SCHEMES[scheme]
    order = ranking_scheme.ordering(measure_costs, owners, alpha, case_subjects is not None)
    result = _rank_methods(
        ranked_names,
        measure_costs,
        owners,
        order,
        resamples=resamples,
        seed=seed,
        has_subjects=case_subjects is not None,
    )
    if len(measures) == 1 and ranking_scheme.descending(
        next(iter(measures.values())).higher_is_better
    ):
        result = [replace(rank, value=0.0 - rank.value) for rank in result]  # never −0
    return (*result, *_ranks_without_place(unranked_names))


def case_ranks(
    measures: Mapping[str, Scores], *, missing: MissingRule = "worst"
) -> dict[str, Floats]:
    """Return the rank of every method within every case, averaged over the measures.

    The rank is NaN for cases that are not ranked. If there are several measures, the tests between
    methods use the differences between these ranks.

    Parameters
    ----------
    measures, missing
        As in `joint_ranks`.

    Examples
    --------
    >>> from probdice.evaluation.ranking import Scores, case_ranks
    >>> dice = Scores({"a": [0.9, 0.8], "b": [0.8, 0.8]})
    >>> distance = Scores({"a": [5.0, 1.0], "b": [1.0, 2.0]}, higher_is_better=False)
    >>> case_ranks({"dice": dice, "hd95": distance})
    {'a': array([1.5 , 1.25]), 'b': array([1.5 , 1.75])}
    """
    tables = _tables(measures)
    names = list(next(iter(tables.values()), {}))
    if not names:
        return {}
    measure_costs = [
        costs_of(list(table.values()), measures[key].higher_is_better, missing)
        for key, table in tables.items()
    ]
    counts = np.sum([costs.counted for costs in measure_costs], axis=0)
    sums = np.sum(
        [np.where(costs.counted, costs.case_ranks, 0.0) for costs in measure_costs], axis=0
    )
    means = np.where(counts > 0, sums / np.maximum(counts, 1), nan)
    return dict(zip(names, means, strict=True))


def kendall(first: Sequence[Rank], second: Sequence[Rank]) -> float:
    """Return Kendall's τ-b between two rankings, over the methods that both rankings contain.

    The value is 1 for the same order and −1 for the reverse order. It is NaN if the rankings have
    fewer than two methods in common, or if one ranking gives all common methods the same place.

    Parameters
    ----------
    first, second : sequence of Rank
        The rankings.

    Examples
    --------
    >>> from probdice.evaluation.ranking import kendall, ranks
    >>> by_dice = ranks({"a": [0.9], "b": [0.8], "c": [0.7]})
    >>> by_score = ranks({"a": [0.8], "b": [0.9], "c": [0.7]})
    >>> round(kendall(by_dice, by_score), 4)  # two of three pairs agree, one disagrees
    0.3333
    """
    from scipy.stats import kendalltau

    places = {rank.method: rank.place for rank in second if rank.place is not None}
    pairs = [
        (rank.place, places[rank.method])
        for rank in first
        if rank.place is not None and rank.method in places
    ]
    if len(pairs) < 2 or any(len(set(side)) == 1 for side in zip(*pairs, strict=True)):
        return nan
    return float(kendalltau(*zip(*pairs, strict=True)).statistic)


def _rank_methods(
    names: Sequence[str],
    measure_costs: Sequence[Costs],
    owners: Numbers,
    order: Ordering,
    *,
    resamples: int,
    seed: int,
    has_subjects: bool,
) -> list[Rank]:
    """Return the ranks in the order of a scheme, with rank stability."""
    subjects, cases = int(owners.max()) + 1, owners.size
    one_each = np.ones((1, subjects))
    values, means = order(one_each)[:, 0], mean_ranks(measure_costs, one_each[:, owners])[:, 0]
    places = _places(values)
    absent_counts = np.any([costs.absent & costs.counted for costs in measure_costs], axis=0).sum(
        axis=1
    )
    no_interval = withheld(subjects, has_subjects)
    result = [
        Rank(
            method=name,
            n=cases,
            last=int(absent_counts[k]),
            mean_rank=float(means[k]),
            place=int(places[k]),
            mean_rank_interval=no_interval,
            place_interval=no_interval,
            value=float(values[k]),
        )
        for k, name in enumerate(names)
    ]
    if subjects >= MIN_SUBJECTS:
        blocks = [
            (_places(order(counts)), mean_ranks(measure_costs, counts[:, owners]))
            for counts in resampled_counts(subjects, resamples, seed, cases * len(names))
        ]
        resampled_places, resampled_means = (
            np.concatenate(arrays, axis=1) for arrays in zip(*blocks, strict=True)
        )
        result = [
            _with_stability(rank, resampled_places[k], resampled_means[k], len(names))
            for k, rank in enumerate(result)
        ]
    return [result[k] for k in np.argsort(places, kind="stable")]


def _with_stability(rank: Rank, places: Numbers, means: Floats, methods: int) -> Rank:
    """Return a rank with confidence intervals and the shares of resampled places."""
    shares = np.bincount(places, minlength=methods + 1)[1:] / places.size
    return replace(
        rank,
        mean_rank_interval=percentiles(means[~np.isnan(means)], FEW_VALUES),
        place_interval=percentiles(places, FEW_VALUES),
        stability=float(shares[(rank.place or 1) - 1]),
        shares=tuple(shares.tolist()),
    )


def _places(values: Floats) -> Numbers:
    """Return standard competition ranks (1, 2, 2, 4) along the first axis."""
    from scipy.stats import rankdata

    places: Numbers = rankdata(values, method="min", axis=0).astype(np.int64)
    return places


def _tables(measures: Mapping[str, Scores]) -> dict[str, dict[str, Floats]]:
    """Check that all measures have the same methods and cases, and return their values."""
    tables = {key: as_table(scores.values) for key, scores in measures.items()}
    shapes = {key: (list(table), _cases(table)) for key, table in tables.items()}
    if len({(tuple(names), cases) for names, cases in shapes.values()}) > 1:
        raise InputError(f"measures must have the same methods and cases, found {shapes}")
    return tables


def _cases(table: Mapping[str, Floats]) -> int:
    return next((values.size for values in table.values()), 0)


def _without_values(tables: Iterable[Mapping[str, Floats]]) -> list[str]:
    """Return the methods that lack all values of at least one measure."""
    names = {
        name: None for table in tables for name, values in table.items() if np.isnan(values).all()
    }
    return list(names)


def _ranks_without_place(names: Sequence[str]) -> tuple[Rank, ...]:
    """Return the ranks of methods without ranked cases."""
    return tuple(Rank(name, 0, 0, nan, None) for name in names)
