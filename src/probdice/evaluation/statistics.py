"""Confidence intervals, paired tests and ranks over cases and methods.

This module takes numbers and returns frozen results, without access to files or images. NaN values
are never counted, and every mean has its number of values.

Confidence intervals and tests are withheld for fewer than 6 cases, and the result has the reason.
The bootstrap distribution then has very few distinct values, and no two-sided signed rank test on 5
pairs can be below 0.05 (the smallest p is 1/16). From 6 to 49 cases, the coverage of a confidence
interval is below its nominal level (`benchmarks/intervals.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import isnan, nan
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from probdice.errors import InputError
from probdice.text.formatting import decimal

__all__ = [
    "FEW",
    "FEWEST",
    "LEVEL",
    "MISSING",
    "Difference",
    "Interval",
    "MissingRule",
    "Rank",
    "Summary",
    "differences",
    "holm",
    "ranks",
    "summarise",
]

FEWEST = 6  # cases; with fewer, confidence intervals and tests are withheld
FEW = 50  # cases; with fewer, confidence intervals may be too narrow
LEVEL = 0.95  # of all confidence intervals
RESAMPLES = 2000
CELLS = 2**20  # numbers of a bootstrap in memory at once
DECIMALS = 12  # values are rounded to this many decimals before ties are detected

Floats = NDArray[np.float64]
MissingRule = Literal["worst", "zero", "exclude"]
MISSING: tuple[MissingRule, ...] = get_args(MissingRule)


@dataclass(frozen=True)
class Interval:
    """A 95 % bootstrap confidence interval.

    Attributes
    ----------
    low : float
        The lower end; NaN if withheld.
    high : float
        The upper end; NaN if withheld.
    kind : {"bca", "percentile", "withheld"}
        Bias-corrected and accelerated (BCa), by percentiles, or not computed.
    reason : str
        The reason if the kind is not "bca", or "".
    """

    low: float
    high: float
    kind: Literal["bca", "percentile", "withheld"]
    reason: str = ""

    def __str__(self) -> str:
        if self.kind == "withheld":
            return "withheld"
        return f"{decimal(self.low)} to {decimal(self.high)}"


_NO_INTERVAL = Interval(nan, nan, "withheld", f"0 cases, fewer than {FEWEST}")


@dataclass(frozen=True)
class Summary:
    """Statistics of values, such as the scores of a method over its cases.

    Attributes
    ----------
    n : int
        The number of values, without NaN.
    missing : int
        The number of NaN values.
    mean : float
        The mean.
    median : float
        The median.
    deviation : float
        The sample standard deviation (n − 1); NaN for fewer than two values.
    lower_quartile : float
        The 25th percentile.
    upper_quartile : float
        The 75th percentile.
    lowest : float
        The lowest value.
    highest : float
        The highest value.
    interval : Interval
        The confidence interval of the mean.
    """

    n: int
    missing: int
    mean: float
    median: float
    deviation: float
    lower_quartile: float
    upper_quartile: float
    lowest: float
    highest: float
    interval: Interval


@dataclass(frozen=True)
class Difference:
    """The difference between two methods on the cases for which both have a value.

    Attributes
    ----------
    first : str
        The first method.
    second : str
        The second method, whose values are subtracted.
    n : int
        The number of cases.
    mean : float
        The mean of the differences first − second.
    median : float
        The median of the differences.
    interval : Interval
        The confidence interval of the mean difference.
    statistic : float
        Wilcoxon's signed rank test, two-sided: the smaller sum of ranks.
    p : float
        The p-value of the test.
    p_holm : float
        The p-value after Holm's correction for all pairs of methods.
    reason : str
        The reason if there is no test, a remark on the test, or "".
    """

    first: str
    second: str
    n: int
    mean: float
    median: float
    interval: Interval
    statistic: float
    p: float
    p_holm: float
    reason: str = ""


@dataclass(frozen=True)
class Rank:
    """The place of a method in the ranking.

    Attributes
    ----------
    method : str
    n : int
        The number of ranked cases.
    last : int
        The number of ranked cases on which the method has no value and ranks last.
    mean_rank : float
        The mean over cases of the rank within a case: 1 is best, ties share their mean rank.
    place : int or None
        One more than the number of methods with a better mean rank: 1, 2, 2, 4. None for a method
        without ranked cases.
    mean_rank_interval : Interval
        The bootstrap confidence interval of the mean rank; all methods share the resamples.
    place_interval : Interval
        The bootstrap confidence interval of the place, from the same resamples.
    kept : float
        Rank stability: the share of resamples in which the method has its place; NaN if withheld.
    shares : tuple of float
        The shares of resamples in which the method has place 1, 2, …; empty if withheld.
    """

    method: str
    n: int
    last: int
    mean_rank: float
    place: int | None
    mean_rank_interval: Interval = _NO_INTERVAL
    place_interval: Interval = _NO_INTERVAL
    kept: float = nan
    shares: tuple[float, ...] = ()


def summarise(values: ArrayLike, *, resamples: int = RESAMPLES, seed: int = 0) -> Summary:
    """Compute mean, median, spread and the confidence interval of the mean.

    Parameters
    ----------
    values : array_like
        One value per case; NaN for missing values.
    resamples : int, optional
        The number of bootstrap resamples.
    seed : int, optional
        The seed of the bootstrap. The same seed gives the same confidence interval.

    Returns
    -------
    Summary
        All NaN, with n = 0, if there is no value.

    Examples
    --------
    >>> from probdice.evaluation.statistics import summarise
    >>> summary = summarise([0.7, 0.8, 0.9, float("nan")])
    >>> summary.n, summary.missing, round(summary.mean, 6), round(summary.deviation, 6)
    (3, 1, 0.8, 0.1)
    >>> summary.interval
    Interval(low=nan, high=nan, kind='withheld', reason='3 cases, fewer than 6')
    >>> summarise([0.7, 0.8, 0.9, 0.9, 0.95, 0.6, 0.85]).interval.kind
    'bca'
    """
    given = _vector(values, "values")
    counted = given[~np.isnan(given)]
    n = counted.size
    if n == 0:
        return Summary(0, given.size, nan, nan, nan, nan, nan, nan, nan, _withheld(0))
    lower, median, upper = (float(q) for q in np.quantile(counted, (0.25, 0.5, 0.75)))
    return Summary(
        n=n,
        missing=given.size - n,
        mean=float(np.mean(counted)),
        median=median,
        deviation=float(np.std(counted, ddof=1)) if n > 1 else nan,
        lower_quartile=lower,
        upper_quartile=upper,
        lowest=float(counted.min()),
        highest=float(counted.max()),
        interval=_interval(counted, resamples, seed),
    )


def differences(
    scores: Mapping[str, ArrayLike], *, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[Difference, ...]:
    """Compare every pair of methods on the cases for which both have a value.

    Differences are rounded to 12 decimals, so equal ones are ties. Wilcoxon's test excludes
    differences of 0. If all differences are 0, p is 1.

    Parameters
    ----------
    scores : mapping of str to array_like
        One value per case for every method, in the same order of cases; NaN for missing values.
    resamples, seed : int, optional
        As in `summarise`.

    Examples
    --------
    >>> from probdice.evaluation.statistics import differences
    >>> pair, = differences({"new": [0.8, 0.9, 0.7, 0.8, 0.9, 0.6], "old": [0.7] * 5 + [0.5]})
    >>> pair.first, pair.second, pair.n, round(pair.mean, 4), pair.p
    ('new', 'old', 6, 0.1167, 0.0625)
    """
    table = _table(scores)
    pairs = [
        _difference(first, second, table[first] - table[second], resamples, seed)
        for first, second in combinations(table, 2)
    ]
    corrected = holm([pair.p for pair in pairs])
    return tuple(replace(pair, p_holm=p) for pair, p in zip(pairs, corrected, strict=True))


def holm(probabilities: Sequence[float]) -> tuple[float, ...]:
    """Apply Holm's step-down correction to the p-values of several tests.

    The k-th smallest of m p-values becomes the largest of (m − j + 1)·p_j over j ≤ k, at most 1.
    NaN (no test) stays NaN and is not counted in m.

    Examples
    --------
    >>> from probdice.evaluation.statistics import holm
    >>> holm([0.5, 0.125, float("nan"), 0.25])
    (0.5, 0.375, nan, 0.5)
    """
    tested = sorted((p, k) for k, p in enumerate(probabilities) if not isnan(p))
    corrected = [nan] * len(probabilities)
    largest = 0.0
    for step, (p, k) in enumerate(tested):
        largest = max(largest, min(1.0, (len(tested) - step) * p))
        corrected[k] = largest
    return tuple(corrected)


def ranks(
    scores: Mapping[str, ArrayLike],
    *,
    missing: MissingRule = "worst",
    higher_is_better: bool = True,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[Rank, ...]:
    """Rank methods from best to worst by their mean rank over the cases.

    Confidence intervals use percentiles, because ranks have few distinct values and are bounded.

    Parameters
    ----------
    scores : mapping of str to array_like
        One value per case for every method, in the same order of cases; NaN for missing values.
    missing : {"worst", "zero", "exclude"}, optional
        With "worst" and "zero", a method without a value ranks last on that case. Several methods
        without a value share the last rank. With "exclude", the case is excluded for all methods,
        and a method without any value has no place. A case for which no method has a value is
        never counted.
    higher_is_better : bool, optional
        False for measures such as distances.
    resamples, seed : int, optional
        As in `summarise`.

    Examples
    --------
    >>> from probdice.evaluation.statistics import ranks
    >>> best, worst = ranks({"a": [0.5, 0.6, 0.9], "b": [0.6, 0.7, 0.8]})
    >>> best.method, best.place, round(best.mean_rank, 4), best.place_interval.kind
    ('b', 1, 1.3333, 'withheld')
    >>> nan = float("nan")
    >>> scores = {"whole": [0.9, 0.8, 0.2], "easy": [0.95, 0.85, nan]}
    >>> [(rank.method, rank.n, rank.last) for rank in ranks(scores)]
    [('easy', 3, 1), ('whole', 3, 0)]
    """
    from scipy.stats import rankdata

    table = _table(scores)
    if missing == "exclude":
        unranked = [name for name, values in table.items() if np.isnan(values).all()]
        table = {name: values for name, values in table.items() if name not in unranked}
    else:
        unranked = []
    if not table:
        return _unranked(unranked)
    values = np.round(np.array(list(table.values())), DECIMALS)
    absent = np.isnan(values)
    counted = ~(absent.any(axis=0) if missing == "exclude" else absent.all(axis=0))
    values, absent = values[:, counted], absent[:, counted]
    n = values.shape[1]
    if n == 0:
        return _unranked([*table, *unranked])
    # Ranks are multiples of 1/2, whose sums are exact, so equal means are ties.
    costs = -values if higher_is_better else values
    within: Floats = rankdata(np.where(absent, np.inf, costs), axis=0)
    means = within.mean(axis=1)
    places = _places(means)
    resampled = _resampled_means(within, resamples, seed)
    drawn = None if resampled is None else _places(resampled)
    ranked = []
    for k in np.argsort(places, kind="stable").tolist():
        rank = Rank(list(table)[k], n, int(absent[k].sum()), float(means[k]), int(places[k]))
        if resampled is None or drawn is None:
            interval = _withheld(n)
            ranked.append(replace(rank, mean_rank_interval=interval, place_interval=interval))
            continue
        shares = np.bincount(drawn[k], minlength=places.size + 1)[1:] / drawn.shape[1]
        ranked.append(
            replace(
                rank,
                mean_rank_interval=_percentiles(resampled[k]),
                place_interval=_percentiles(drawn[k]),
                kept=float(shares[places[k] - 1]),
                shares=tuple(shares.tolist()),
            )
        )
    return (*ranked, *_unranked(unranked))


def _difference(first: str, second: str, paired: Floats, resamples: int, seed: int) -> Difference:
    """Compare one pair of methods, before Holm's correction."""
    paired = np.round(paired[~np.isnan(paired)], DECIMALS) + 0.0
    statistic, p, reason = _signed_rank(paired)
    return Difference(
        first=first,
        second=second,
        n=paired.size,
        mean=float(np.mean(paired)) if paired.size else nan,
        median=float(np.median(paired)) if paired.size else nan,
        interval=_interval(paired, resamples, seed),
        statistic=statistic,
        p=p,
        p_holm=nan,
        reason=reason,
    )


def _signed_rank(paired: Floats) -> tuple[float, float, str]:
    """Wilcoxon's statistic and p-value, and a remark."""
    if paired.size < FEWEST:
        return nan, nan, f"{_few(paired.size)}: no result could be significant"
    zeros = int(np.sum(paired == 0))
    if zeros == paired.size:
        return 0.0, 1.0, "all differences are 0"
    from scipy.stats import wilcoxon

    result: Any = wilcoxon(paired[paired != 0])
    left_out = f"{zeros} of {paired.size} differences are 0 and excluded" if zeros else ""
    return float(result.statistic), float(result.pvalue), left_out


def _interval(values: Floats, resamples: int, seed: int) -> Interval:
    """The confidence interval of the mean: BCa, or percentiles if BCa is undefined."""
    n = values.size
    if n < FEWEST:
        return _withheld(n)
    if np.all(values == values[0]):
        same = float(values[0])
        return Interval(same, same, "percentile", "BCa is undefined: all values are equal")
    low, high = _bootstrap(values, "BCa", resamples, seed)
    if not (isnan(low) or isnan(high)):
        return Interval(low, high, "bca")
    low, high = _bootstrap(values, "percentile", resamples, seed)
    return Interval(low, high, "percentile", "BCa is undefined for these values")


def _bootstrap(
    values: Floats, method: Literal["BCa", "percentile"], resamples: int, seed: int
) -> tuple[float, float]:
    import warnings

    from scipy.stats import DegenerateDataWarning, bootstrap

    with warnings.catch_warnings():
        # The result is then NaN, which the caller handles.
        warnings.simplefilter("ignore", DegenerateDataWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        result: Any = bootstrap(
            (values,),
            np.mean,
            n_resamples=resamples,
            batch=max(1, CELLS // values.size),
            vectorized=True,
            axis=-1,
            confidence_level=LEVEL,
            method=method,
            rng=np.random.default_rng(seed),
        )
    return float(result.confidence_interval.low), float(result.confidence_interval.high)


def _places(means: Floats) -> NDArray[np.int64]:
    """Competition places by mean rank, along the first axis: 1, 2, 2, 4."""
    from scipy.stats import rankdata

    places: NDArray[np.int64] = rankdata(means, method="min", axis=0).astype(np.int64)
    return places


def _resampled_means(within: Floats, resamples: int, seed: int) -> Floats | None:
    """The mean ranks of every method over bootstrap resamples; None for too few cases."""
    methods, n = within.shape
    if n < FEWEST:
        return None
    generator = np.random.default_rng(seed)
    means = np.empty((methods, resamples))
    step = max(1, CELLS // (n * methods))
    for start in range(0, resamples, step):
        chosen = generator.integers(n, size=(min(step, resamples - start), n))
        means[:, start : start + step] = within[:, chosen].mean(axis=2)
    return means


def _unranked(names: Sequence[str]) -> tuple[Rank, ...]:
    """Methods without ranked cases."""
    return tuple(Rank(name, 0, 0, nan, None) for name in names)


def _percentiles(drawn: NDArray[Any]) -> Interval:
    """The interval between two drawn values, without interpolation between places."""
    low = float(np.quantile(drawn, (1 - LEVEL) / 2, method="lower"))
    high = float(np.quantile(drawn, (1 + LEVEL) / 2, method="higher"))
    return Interval(low, high, "percentile", "ranks have few values")


def _withheld(n: int) -> Interval:
    return Interval(nan, nan, "withheld", _few(n))


def _few(n: int) -> str:
    return f"{n} case{'' if n == 1 else 's'}, fewer than {FEWEST}"


def _table(scores: Mapping[str, ArrayLike]) -> dict[str, Floats]:
    table = {name: _vector(values, name) for name, values in scores.items()}
    sizes = {name: values.size for name, values in table.items()}
    if len(set(sizes.values())) > 1:
        raise InputError(f"scores must have one value per case for every method, found {sizes}")
    return table


def _vector(values: ArrayLike, name: str) -> Floats:
    vector = np.asarray(values, dtype=np.float64)
    if vector.ndim != 1:
        raise InputError(f"{name}: expected one number per case, found shape {vector.shape}")
    if np.isinf(vector).any():
        raise InputError(f"{name}: expected finite numbers or NaN, found infinity")
    return vector
