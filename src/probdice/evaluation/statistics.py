"""Intervals, paired tests and ranks over cases and methods.

Numbers come in, frozen results go out; nothing here knows of files or images. What is not a number
(NaN) is never counted, and every mean says over how many values it is.

Fewer than 6 cases are too few: their bootstrap distribution has a handful of distinct values, and
no outcome of a two-sided signed rank test on 5 pairs lies below 0.05 (the smallest is 1/16).
Intervals and tests are withheld then, and the result says why. From 6 to 49 cases an interval is
given, but holds the mean less often than it says (`benchmarks/intervals.py`).
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

FEWEST = 6  # cases; with fewer, intervals and tests are withheld
FEW = 50  # cases; with fewer, intervals hold the mean less often than they say
LEVEL = 0.95  # of every interval
RESAMPLES = 2000
CELLS = 2**20  # numbers of a bootstrap that are held at once
DECIMALS = 12  # differences that agree to this many are tied, and those that vanish are 0

Floats = NDArray[np.float64]
MissingRule = Literal["worst", "zero", "exclude"]
MISSING: tuple[MissingRule, ...] = get_args(MissingRule)


@dataclass(frozen=True)
class Interval:
    """A 95 % bootstrap interval, and how it was made.

    Attributes
    ----------
    low : float
        The lower end; NaN where the interval was withheld.
    high : float
        The upper end; NaN where the interval was withheld.
    kind : {"bca", "percentile", "withheld"}
        Bias-corrected and accelerated, by percentiles, or not given at all.
    reason : str
        Why it is not of the first kind, or "".
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
    """Values of one kind, such as the scores of a method over its cases.

    Attributes
    ----------
    n : int
        How many values were counted.
    missing : int
        How many were not, because they are not numbers.
    mean : float
        The mean.
    median : float
        The median.
    deviation : float
        The standard deviation of a sample (n − 1); NaN for fewer than two values.
    lower_quartile : float
        A quarter of the values are below.
    upper_quartile : float
        A quarter of the values are above.
    lowest : float
        The lowest value.
    highest : float
        The highest value.
    interval : Interval
        Of the mean.
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
    """Two methods on the cases that both have a value for.

    Attributes
    ----------
    first : str
        The method that is compared.
    second : str
        The method whose values are subtracted.
    n : int
        The number of cases.
    mean : float
        The mean of the differences first − second.
    median : float
        Their median.
    interval : Interval
        Of the mean difference.
    statistic : float
        Wilcoxon's signed rank test, two-sided: the smaller sum of ranks.
    p : float
        Its probability.
    p_holm : float
        The probability after Holm's correction for all pairs that were tested together.
    reason : str
        Why there is no test, or what is special about it, or "".
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
    """The place of a method among all.

    Attributes
    ----------
    method : str
    n : int
        The number of cases that were ranked.
    last : int
        On how many of them the method has no value and ranks last.
    mean_rank : float
        Mean over the cases of the rank within a case: 1 is the best, ties share their mean.
    place : int or None
        One more than the number of methods with a better mean rank, as in sports: 1, 2, 2, 4.
        None for a method without a case to be ranked by.
    mean_rank_interval : Interval
        Bootstrap interval of the mean rank, over cases, the same for all methods.
    place_interval : Interval
        Bootstrap interval of the place, over the same resamples.
    kept : float
        In what share of these draws the method has the place it has; NaN where they are withheld.
    shares : tuple of float
        In what share of them it has place 1, 2, …; empty where they are withheld.
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
    """Mean, median, spread and an interval of the mean.

    Parameters
    ----------
    values : array_like
        One value per case; NaN where there is none.
    resamples : int, optional
        Of the bootstrap.
    seed : int, optional
        The same seed gives the same interval.

    Returns
    -------
    Summary
        All NaN, with n = 0, when there is no value at all.

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
    """Every pair of methods, each on the cases that both have a value for.

    Differences that agree to 12 decimals are tied and those that vanish are 0; Wilcoxon's test
    leaves the latter out. Where all differences are 0 the probability is 1.

    Parameters
    ----------
    scores : mapping of str to array_like
        Of every method one value per case, the cases in the same order; NaN where there is none.
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
    """Holm's step-down correction of the probabilities of several tests.

    The k-th smallest of m becomes the largest of (m − j + 1)·p_j over j ≤ k, at most 1. NaN, a test
    that was not made, stays NaN and is not counted in m.

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
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[Rank, ...]:
    """The methods from best to worst, by their mean rank over the cases.

    The larger value is the better one. Intervals are by percentiles: a rank has few values, and
    none beyond the first and the last.

    Parameters
    ----------
    scores : mapping of str to array_like
        Of every method one value per case, the cases in the same order; NaN where there is none.
    missing : {"worst", "zero", "exclude"}, optional
        A method without a value ranks last on that case, and shares the last rank with others
        without one; under "exclude" the case is left out for all methods, and a method without
        any value has no place. A case for which no method has a value is never counted.
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
    # Halves, whose sums are exact: ties stay ties.
    within: Floats = rankdata(np.where(absent, np.inf, -values), axis=0)
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
    """One pair of methods, before the correction for the others."""
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
    """Wilcoxon's statistic and probability, and what to know about them."""
    if paired.size < FEWEST:
        return nan, nan, f"{_few(paired.size)}: no outcome could be significant"
    zeros = int(np.sum(paired == 0))
    if zeros == paired.size:
        return 0.0, 1.0, "all differences are 0"
    from scipy.stats import wilcoxon

    result: Any = wilcoxon(paired[paired != 0])
    left_out = f"{zeros} of {paired.size} differences are 0 and left out" if zeros else ""
    return float(result.statistic), float(result.pvalue), left_out


def _interval(values: Floats, resamples: int, seed: int) -> Interval:
    """Of the mean: BCa, or by percentiles where that is undefined."""
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
        # The caller sees the NaN.
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
    """Mean ranks of every method over cases drawn again; None for too few cases."""
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
    """Methods without a case to be ranked by."""
    return tuple(Rank(name, 0, 0, nan, None) for name in names)


def _percentiles(drawn: NDArray[Any]) -> Interval:
    """From one drawn value to another: there is no place between two places."""
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
        raise InputError(f"{name}: expected finite numbers or NaN, found an infinite one")
    return vector
