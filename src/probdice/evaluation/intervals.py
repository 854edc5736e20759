"""Bootstrap confidence intervals over cases, or over subjects if subjects are given.

Each resample draws subjects with replacement, and every drawn subject contributes all of its cases
(cluster bootstrap). Without subjects, every case is its own subject.

With fewer than 6 subjects, the bootstrap distribution has very few distinct values, so confidence
intervals are withheld and the result contains the reason. With 6 to 49 subjects, the coverage of a
confidence interval is below its nominal level (`benchmarks/intervals.py`).
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from probdice.errors import InputError
from probdice.text.formatting import decimal, quantity

__all__ = [
    "LEVEL",
    "MIN_RELIABLE_SUBJECTS",
    "MIN_SUBJECTS",
    "RESAMPLES",
    "Floats",
    "Interval",
    "Numbers",
    "few",
    "mean_interval",
    "median",
    "median_interval",
    "percentiles",
    "resampled_counts",
    "subject_numbers",
    "weighted_medians",
    "withheld",
]

MIN_SUBJECTS = 6  # subjects; with fewer, confidence intervals and two-sided tests are withheld
MIN_RELIABLE_SUBJECTS = 50  # subjects; with fewer, confidence intervals may be too narrow
LEVEL = 0.95  # confidence level of all intervals
RESAMPLES = 2000
CELLS = 2**20  # largest number of bootstrap values in memory at once

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Interval:
    """A 95 % bootstrap confidence interval.

    Attributes
    ----------
    low : float
        The lower limit; NaN if the interval is withheld.
    high : float
        The upper limit; NaN if the interval is withheld.
    kind : {"bca", "percentile", "withheld"}
        Whether the interval is bias-corrected and accelerated (BCa), uses percentiles, or is
        withheld.
    reason : str
        The reason why the kind is not "bca"; "" for a BCa interval.
    """

    low: float
    high: float
    kind: Literal["bca", "percentile", "withheld"]
    reason: str = ""

    def __str__(self) -> str:
        if self.kind == "withheld":
            return "withheld"
        return f"{decimal(self.low)} to {decimal(self.high)}"


def subject_numbers(subjects: Sequence[Hashable] | None, cases: int) -> Numbers | None:
    """Return the subject number (0, 1, …) of every case; None if every case is its own subject.

    Examples
    --------
    >>> from probdice.evaluation.intervals import subject_numbers
    >>> subject_numbers(["anna", "anna", "ben"], 3)
    array([0, 0, 1])
    >>> print(subject_numbers(None, 3))
    None
    """
    if subjects is None:
        return None
    if len(subjects) != cases:
        raise InputError(
            f"subjects: expected one subject for each of {cases} cases, found {len(subjects)}"
        )
    order = {subject: k for k, subject in enumerate(dict.fromkeys(subjects))}
    return np.array([order[subject] for subject in subjects], np.int64)


def mean_interval(
    values: Floats, subjects: Numbers | None = None, *, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """Return the BCa interval of the mean, or the percentile interval if BCa is undefined.

    The interval is withheld for fewer than 6 cases or subjects.

    Parameters
    ----------
    values : array of float
        One finite value per case.
    subjects : array of int, optional
        The index of the subject of every case.
    resamples, seed : int, optional
        The number of bootstrap resamples and the random seed.

    Examples
    --------
    >>> import numpy as np
    >>> from probdice.evaluation.intervals import mean_interval
    >>> values = np.array([0.7, 0.8, 0.9, 0.9, 0.95, 0.6, 0.85])
    >>> mean_interval(values).kind
    'bca'
    >>> mean_interval(values, np.array([0, 0, 1, 1, 2, 2, 3])).reason
    '4 subjects, fewer than 6'
    """
    groups = _group_by_subject(values, subjects)
    n = groups[0].size
    if n < MIN_SUBJECTS:
        return withheld(n, subjects is not None)
    if np.all(values == values[0]):
        value = float(values[0])
        return Interval(value, value, "percentile", "BCa is undefined because all values are equal")
    low, high = _bootstrap(groups, "BCa", resamples, seed)
    if not (isnan(low) or isnan(high)):
        return Interval(low, high, "bca")
    low, high = _bootstrap(groups, "percentile", resamples, seed)
    return Interval(low, high, "percentile", "BCa is undefined for these values")


def median_interval(
    values: Floats, subjects: Numbers | None = None, *, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """Return the percentile confidence interval of the median of values that may be infinite.

    Parameters
    ----------
    values, subjects, resamples, seed
        As in `mean_interval`; values may be infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from probdice.evaluation.intervals import median_interval
    >>> median_interval(np.array([1, 1, 1, 2, 2, 2, 2, np.inf])).high
    2.0
    """
    owners = np.arange(values.size) if subjects is None else subjects
    n = np.unique(owners).size
    if n < MIN_SUBJECTS:
        return withheld(n, subjects is not None)
    _, owners = np.unique(owners, return_inverse=True)
    medians = [
        weighted_medians(values, counts[:, owners])
        for counts in resampled_counts(n, resamples, seed, values.size)
    ]
    return percentiles(np.concatenate(medians), "interval of a median")


def resampled_counts(subjects: int, resamples: int, seed: int, width: int) -> Iterator[Floats]:
    """Yield how often each resample draws each subject, in blocks of shape (resamples, subjects).

    The block size depends on `width`, the number of values that the caller computes per resample.
    """
    generator = np.random.default_rng(seed)
    step = max(1, CELLS // max(width, subjects, 1))
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        drawn_subjects = generator.integers(subjects, size=(rows, subjects))
        indices = drawn_subjects + subjects * np.arange(rows)[:, np.newaxis]
        counts = np.bincount(indices.ravel(), minlength=rows * subjects)
        yield counts.reshape(rows, subjects).astype(np.float64)


def weighted_medians(values: Floats, weights: Floats) -> Floats:
    """Return the weighted median of the values for every row of weights.

    A weight is a whole number: how often the value occurs.
    The midpoint between −∞ and +∞ is 0. If the values are differences between two methods, such a
    median favours neither method.

    Examples
    --------
    >>> import numpy as np
    >>> from probdice.evaluation.intervals import weighted_medians
    >>> weighted_medians(np.array([3.0, 1.0, np.inf]), np.array([[1, 1, 1], [1, 1, 0], [0, 0, 3]]))
    array([ 3.,  2., inf])
    """
    order = np.argsort(values, kind="stable")
    cumulative_weights = np.cumsum(weights[:, order], axis=1)
    totals = cumulative_weights[:, -1]
    lower = (cumulative_weights > ((totals - 1) // 2)[:, np.newaxis]).argmax(axis=1)
    upper = (cumulative_weights > (totals // 2)[:, np.newaxis]).argmax(axis=1)
    sorted_values = values[order]
    with np.errstate(invalid="ignore"):  # the midpoint between −∞ and +∞
        midpoints = (sorted_values[lower] + sorted_values[upper]) / 2
    medians: Floats = np.where(np.isnan(midpoints), 0.0, midpoints)
    return medians


def median(values: Floats) -> float:
    """Return the median of values that may be infinite; see `weighted_medians`.

    Examples
    --------
    >>> import numpy as np
    >>> from probdice.evaluation.intervals import median
    >>> median(np.array([np.inf, -np.inf])), median(np.array([np.inf, -np.inf, 1.0, np.inf]))
    (0.0, inf)
    """
    return float(weighted_medians(values, np.ones((1, values.size)))[0])


def percentiles(values: NDArray[Any], reason: str) -> Interval:
    """Return the percentile interval of resampled values, without interpolation."""
    low = float(np.quantile(values, (1 - LEVEL) / 2, method="lower"))
    high = float(np.quantile(values, (1 + LEVEL) / 2, method="higher"))
    return Interval(low, high, "percentile", reason)


def withheld(n: int, of_subjects: bool) -> Interval:
    """Return an interval that is withheld because there are too few cases or subjects."""
    return Interval(nan, nan, "withheld", few(n, of_subjects))


def few(n: int, of_subjects: bool) -> str:
    """Return the reason why an interval or a two-sided test is withheld."""
    return f"{quantity(n, 'subject' if of_subjects else 'case')}, fewer than {MIN_SUBJECTS}"


def _group_by_subject(values: Floats, subjects: Numbers | None) -> tuple[Floats, ...]:
    """Return the values or, with subjects, the sum and the number of values of each subject."""
    if subjects is None:
        return (values,)
    _, owners = np.unique(subjects, return_inverse=True)
    sums: Floats = np.bincount(owners, weights=values).astype(np.float64)
    return sums, np.bincount(owners).astype(np.float64)


def _bootstrap(
    groups: tuple[Floats, ...], method: Literal["BCa", "percentile"], resamples: int, seed: int
) -> tuple[float, float]:
    """Return the interval of the mean. Sums and counts of subjects are resampled together."""
    import warnings

    from scipy.stats import DegenerateDataWarning, bootstrap

    with warnings.catch_warnings():
        # If scipy issues these warnings, the result can be NaN, which the caller handles.
        warnings.simplefilter("ignore", DegenerateDataWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        result: Any = bootstrap(
            groups,
            np.mean if len(groups) == 1 else _ratio,
            n_resamples=resamples,
            batch=max(1, CELLS // groups[0].size),
            vectorized=True,
            paired=len(groups) > 1,
            axis=-1,
            confidence_level=LEVEL,
            method=method,
            rng=np.random.default_rng(seed),
        )
    return float(result.confidence_interval.low), float(result.confidence_interval.high)


def _ratio(sums: Floats, counts: Floats, axis: int = -1) -> Floats:
    """Return the mean over all cases, from the sums and counts of the subjects."""
    means: Floats = np.sum(sums, axis=axis) / np.sum(counts, axis=axis)
    return means
