"""Summaries of a method's values over its cases, and paired tests between methods.

The functions do not read files or images. NaN values are excluded, and every mean is reported with
the number of values. If a value is infinite, such as the distance to a missed region, the median
replaces the mean.

Cases of one subject are not independent. With `subjects`, confidence intervals resample subjects
(`intervals`), and tests (`paired_test`) use one value per subject.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import nan
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from probdice.errors import InputError
from probdice.evaluation.intervals import (
    RESAMPLES,
    Floats,
    Interval,
    Numbers,
    mean_interval,
    median,
    median_interval,
    subject_numbers,
    withheld,
)
from probdice.evaluation.paired_test import corrected, two_sided

__all__ = [
    "Aggregate",
    "Difference",
    "Summary",
    "as_table",
    "differences",
    "gaps",
    "rounded",
    "subject_aggregates",
    "summarise",
]

DECIMALS = 12  # decimals that are compared when ties are detected

Aggregate = Literal["mean", "median"]


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
        The mean; infinite if a value is infinite, and NaN if values are +∞ and −∞.
    median : float
        The median. The midpoint between −∞ and +∞ is 0.
    deviation : float
        The sample standard deviation (n − 1); NaN for fewer than two values or if a value is
        infinite.
    lower_quartile : float
        The 25th percentile.
    upper_quartile : float
        The 75th percentile.
    lowest : float
        The lowest value.
    highest : float
        The highest value.
    interval : Interval
        The confidence interval of the mean or median.
    infinite : int
        The number of infinite values.
    aggregate : {"mean", "median"}
        The statistic that summarises the values. The confidence interval is that of this statistic.
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
    infinite: int = 0
    aggregate: Aggregate = "mean"

    @property
    def value(self) -> float:
        """The mean or median, as selected by `aggregate`."""
        return self.mean if self.aggregate == "mean" else self.median


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
        The mean of the differences first − second; NaN if a difference is infinite.
    median : float
        The median of the differences. The midpoint between −∞ and +∞ is 0, which favours neither
        method.
    interval : Interval
        The confidence interval of the mean difference, or of the median difference if a difference
        is infinite.
    statistic : float
        The test statistic of `paired_test.two_sided`.
    p : float
        The p-value of the test.
    p_corrected : float
        The p-value after Holm's correction for multiple comparisons (all pairs of methods).
    reason : str
        The reason why there is no test, a remark on the test, or "".
    subjects : int or None
        The number of subjects, if the test uses one difference per subject; None if the test uses
        one difference per case.
    """

    first: str
    second: str
    n: int
    mean: float
    median: float
    interval: Interval
    statistic: float
    p: float
    p_corrected: float
    reason: str = ""
    subjects: int | None = None


def summarise(
    values: ArrayLike,
    *,
    subjects: Sequence[Hashable] | None = None,
    aggregate: Aggregate = "mean",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Summary:
    """Compute the mean, median, spread and confidence interval of values.

    Parameters
    ----------
    values : array_like
        One value per case; NaN for missing values.
    subjects : sequence, optional
        The subject of every case. With subjects, the confidence interval resamples subjects.
    aggregate : {"mean", "median"}, optional
        The statistic that summarises the values. The median is always used if a value is infinite.
    resamples : int, optional
        The number of bootstrap resamples.
    seed : int, optional
        The seed of the bootstrap. The same seed gives the same confidence interval.

    Returns
    -------
    Summary
        The statistics. If there is no value, n is 0 and the statistics are NaN.

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
    >>> distances = summarise([1.0, 2.0, 4.0, float("inf")])
    >>> distances.value, distances.aggregate
    (3.0, 'median')
    """
    all_values = _vector(values, "values")
    owners = subject_numbers(subjects, all_values.size)
    has_value = ~np.isnan(all_values)
    defined_values, owners = all_values[has_value], None if owners is None else owners[has_value]
    n = defined_values.size
    if n == 0:
        no_interval = withheld(0, owners is not None)
        return Summary(0, all_values.size, nan, nan, nan, nan, nan, nan, nan, no_interval)
    infinite = int(np.isinf(defined_values).sum())
    used_aggregate: Aggregate = "median" if infinite else aggregate
    lower, upper = _quartiles(defined_values)
    with np.errstate(invalid="ignore"):  # the sum of −∞ and +∞
        mean = float(np.mean(defined_values))
    interval = mean_interval if used_aggregate == "mean" else median_interval
    return Summary(
        n=n,
        missing=all_values.size - n,
        mean=mean,
        median=median(defined_values),
        deviation=float(np.std(defined_values, ddof=1)) if n > 1 and not infinite else nan,
        lower_quartile=lower,
        upper_quartile=upper,
        lowest=float(defined_values.min()),
        highest=float(defined_values.max()),
        interval=interval(defined_values, owners, resamples=resamples, seed=seed),
        infinite=infinite,
        aggregate=used_aggregate,
    )


def differences(
    scores: Mapping[str, ArrayLike],
    *,
    subjects: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[Difference, ...]:
    """Compare every pair of methods on the cases for which both have a value.

    Differences are rounded to 12 decimals, so that differences that are equal up to rounding errors
    are ties. The test is `paired_test.two_sided`. With `subjects`, the test uses one value per
    subject: the mean of the subject's differences, or the median if a difference is infinite.

    Parameters
    ----------
    scores : mapping of str to array_like
        One value per case for every method, in the same order of cases; NaN for missing values.
    subjects, resamples, seed
        As in `summarise`.

    Examples
    --------
    >>> from probdice.evaluation.statistics import differences
    >>> pair, = differences({"new": [0.8, 0.9, 0.7, 0.8, 0.9, 0.6], "old": [0.7] * 5 + [0.5]})
    >>> pair.first, pair.second, pair.n, round(pair.mean, 4), pair.p
    ('new', 'old', 6, 0.1167, 0.0625)
    """
    table = as_table(scores)
    cases = next((values.size for values in table.values()), 0)
    owners = subject_numbers(subjects, cases)
    pairs = [
        _difference(
            first, second, gaps(table[first], table[second]), owners, resamples=resamples, seed=seed
        )
        for first, second in combinations(table, 2)
    ]
    corrected_p = corrected([pair.p for pair in pairs])
    return tuple(replace(pair, p_corrected=p) for pair, p in zip(pairs, corrected_p, strict=True))


def as_table(scores: Mapping[str, ArrayLike]) -> dict[str, Floats]:
    """Convert the values of every method to an array, and check that all arrays are equally long.

    Examples
    --------
    >>> from probdice.evaluation.statistics import as_table
    >>> as_table({"new": [1, 2]})
    {'new': array([1., 2.])}
    """
    table = {name: _vector(values, name) for name, values in scores.items()}
    sizes = {name: values.size for name, values in table.items()}
    if len(set(sizes.values())) > 1:
        raise InputError(f"scores must have one value per case for every method, found {sizes}")
    return table


def gaps(first: Floats, second: Floats) -> Floats:
    """Return the differences first − second; two equal infinite values have the difference 0.

    Examples
    --------
    >>> import numpy as np
    >>> from probdice.evaluation.statistics import gaps
    >>> gaps(np.array([0.5, np.inf, np.inf]), np.array([0.25, 2.0, np.inf]))
    array([0.25,  inf, 0.  ])
    """
    with np.errstate(invalid="ignore"):  # the difference of infinite values
        differences = first - second
    result: Floats = np.where(np.isinf(first) & (first == second), 0.0, differences)
    return result


def rounded(values: Floats) -> Floats:
    """Return values rounded to 12 decimals, so that values equal up to rounding errors are ties.

    Round only the results that are compared, not the terms of a sum. For example, 2/3 − 1/3 equals
    1/3 − 0, but the differences of the rounded values are not equal.

    Examples
    --------
    >>> import numpy as np
    >>> from probdice.evaluation.statistics import rounded
    >>> rounded(np.array([0.3 - 0.1, 0.2])).tolist()
    [0.2, 0.2]
    """
    result: Floats = np.round(values, DECIMALS) + 0.0  # 0 instead of −0
    return result


def _difference(
    first: str,
    second: str,
    all_gaps: Floats,
    owners: Numbers | None,
    *,
    resamples: int,
    seed: int,
) -> Difference:
    """Compare one pair of methods, without the correction of p-values."""
    has_value = ~np.isnan(all_gaps)
    exact_gaps, owners = all_gaps[has_value], None if owners is None else owners[has_value]
    pair_gaps = rounded(exact_gaps)
    infinite = bool(np.isinf(pair_gaps).any())
    tested_gaps = pair_gaps if owners is None else rounded(subject_aggregates(exact_gaps, owners))
    statistic, p, reason = two_sided(tested_gaps, of_subjects=owners is not None)
    interval = median_interval if infinite else mean_interval
    return Difference(
        first=first,
        second=second,
        n=pair_gaps.size,
        mean=float(np.mean(pair_gaps)) if pair_gaps.size and not infinite else nan,
        median=median(pair_gaps) if pair_gaps.size else nan,
        interval=interval(pair_gaps, owners, resamples=resamples, seed=seed),
        statistic=statistic,
        p=p,
        p_corrected=nan,
        reason=reason,
        subjects=None if owners is None else tested_gaps.size,
    )


def subject_aggregates(pair_gaps: Floats, owners: Numbers) -> Floats:
    """Return the mean difference of every subject; the median if any difference is infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from probdice.evaluation.statistics import subject_aggregates
    >>> subject_aggregates(np.array([1.0, 3.0, 5.0]), np.array([7, 7, 9]))
    array([2., 5.])
    """
    numbers, owner_indices = np.unique(owners, return_inverse=True)
    if not np.isinf(pair_gaps).any():
        sums = np.bincount(owner_indices, weights=pair_gaps, minlength=numbers.size)
        means: Floats = sums / np.bincount(owner_indices)
        return means
    return np.array([median(pair_gaps[owner_indices == k]) for k in range(numbers.size)])


def _quartiles(values: Floats) -> tuple[float, float]:
    """Return the quartiles, without interpolation if a value is infinite."""
    method: Literal["linear", "inverted_cdf"] = (
        "inverted_cdf" if np.isinf(values).any() else "linear"
    )
    lower, upper = np.quantile(values, (0.25, 0.75), method=method)
    return float(lower), float(upper)


def _vector(values: ArrayLike, name: str) -> Floats:
    vector = np.asarray(values, dtype=np.float64)
    if vector.ndim != 1:
        raise InputError(
            f"{name}: expected a 1-D array with one number per case, found shape {vector.shape}"
        )
    return vector
