"""The test of paired differences between two methods: name, significance level and correction.

`two_sided` tests the differences between two methods, and the test-based ranking scheme uses
`one_sided`. `corrected` corrects two-sided p-values for multiple comparisons. Summaries record
`TEST` and `CORRECTION`, and texts about a run use the recorded names.
"""

from collections.abc import Sequence
from math import isnan, nan
from typing import Any

import numpy as np

from probdice.evaluation.intervals import MIN_SUBJECTS, Floats, few

__all__ = ["ALPHA", "CORRECTION", "TEST", "corrected", "least_corrected", "one_sided", "two_sided"]

TEST = "Wilcoxon signed-rank test"
ALPHA = 0.05  # significance level
CORRECTION = "Holm's correction"  # for multiple comparisons


def two_sided(differences: Floats, *, of_subjects: bool = False) -> tuple[float, float, str]:
    """Test whether differences are symmetric about 0.

    This is the Wilcoxon signed-rank test. Differences of 0 are excluded.

    Parameters
    ----------
    differences : array of float
        The differences; they may be infinite.
    of_subjects : bool, optional
        Whether each difference belongs to a subject instead of a case. This affects only the
        remark.

    Returns
    -------
    statistic : float
        The sum of the ranks of positive or of negative differences, whichever is smaller.
    p : float
        The p-value; 1 if all differences are 0. NaN for fewer than 6 differences, because with 5
        differences the smallest possible p-value is 1/16.
    remark : str
        Why there is no p-value, or how many differences were excluded; "" if neither applies.

    Examples
    --------
    >>> import numpy as np
    >>> from probdice.evaluation.paired_test import two_sided
    >>> two_sided(np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.0]))
    (0.0, 0.03125, 'excluded differences of 0: 1 of 7')
    """
    if differences.size < MIN_SUBJECTS:
        return nan, nan, f"{few(differences.size, of_subjects)}: no result could be significant"
    zeros = int(np.sum(differences == 0))
    if zeros == differences.size:
        return 0.0, 1.0, "all differences are 0"
    from scipy.stats import wilcoxon

    result: Any = wilcoxon(differences[differences != 0])
    exclusion_note = f"excluded differences of 0: {zeros} of {differences.size}" if zeros else ""
    return float(result.statistic), float(result.pvalue), exclusion_note


def least_corrected(count: int, tests: int) -> float:
    """Return the smallest corrected p-value that `count` differences can have.

    Parameters
    ----------
    count : int
        The number of differences of each test.
    tests : int
        The number of tests for which p-values are corrected.

    Examples
    --------
    >>> from probdice.evaluation.paired_test import least_corrected
    >>> least_corrected(6, 3)  # 3 · 2 / 2⁶
    0.09375
    """
    return min(1.0, tests * 2.0 ** (1 - count))


def one_sided(differences: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the p-values of one-sided Wilcoxon signed-rank tests of weighted differences.

    The tests use the normal approximation with continuity correction and exclude differences of 0,
    like R's ``wilcox.test(exact = FALSE)``, which challengeR uses.

    Parameters
    ----------
    differences : array of float
        The differences; they may be infinite.
    weights : array of float, of shape (resamples, differences)
        How often each difference occurs in each resample.

    Returns
    -------
    tuple of two arrays
        The p-value per resample, first for the alternative that the differences are above 0, then
        for the alternative that they are below 0. The p-values are 1 if all differences are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from probdice.evaluation.paired_test import one_sided
    >>> above, below = one_sided(np.array([0.8, 0.8, 0.8, 0.8]), np.ones((1, 4)))
    >>> above.round(4), below.round(4)
    (array([0.0359]), array([0.9861]))
    """
    from scipy.special import ndtr

    is_nonzero = differences != 0
    differences, weights = differences[is_nonzero], weights[:, is_nonzero]
    if not differences.size:
        ones = np.ones(weights.shape[0])
        return ones, ones.copy()
    order = np.argsort(np.abs(differences), kind="stable")
    sizes, positive = np.abs(differences[order]), differences[order] > 0
    starts = np.flatnonzero(np.r_[True, sizes[1:] != sizes[:-1]])
    weights = weights[:, order]
    tie_weights = np.add.reduceat(weights, starts, axis=1)
    positive_weights = np.add.reduceat(weights * positive, starts, axis=1)
    cumulative_weights = np.cumsum(tie_weights, axis=1)
    total = cumulative_weights[:, -1]
    statistic = np.sum((cumulative_weights - (tie_weights - 1) / 2) * positive_weights, axis=1)
    excess = statistic - total * (total + 1) / 4
    variance = (
        total * (total + 1) * (2 * total + 1) / 24
        - np.sum(tie_weights**3 - tie_weights, axis=1) / 48
    )
    deviation = np.sqrt(np.where(variance > 0, variance, 1.0))
    above = np.where(variance > 0, ndtr(-(excess - 0.5) / deviation), 1.0)
    below = np.where(variance > 0, ndtr((excess + 0.5) / deviation), 1.0)
    return above, below


def corrected(probabilities: Sequence[float]) -> tuple[float, ...]:
    """Return p-values after Holm's step-down correction for multiple comparisons.

    Let p_j be the j-th smallest of m p-values. The k-th smallest is replaced by the maximum of
    (m − j + 1)·p_j over j ≤ k, capped at 1. NaN (no test) remains NaN and is excluded from m.

    Examples
    --------
    >>> from probdice.evaluation.paired_test import corrected
    >>> corrected([0.5, 0.125, float("nan"), 0.25])
    (0.5, 0.375, nan, 0.5)
    """
    sorted_p = sorted((p, k) for k, p in enumerate(probabilities) if not isnan(p))
    corrected_p = [nan] * len(probabilities)
    largest = 0.0
    for step, (p, k) in enumerate(sorted_p):
        largest = max(largest, min(1.0, (len(sorted_p) - step) * p))
        corrected_p[k] = largest
    return tuple(corrected_p)
