"""The test of paired differences between two methods: name, significance level and p-values.

`two_sided` tests the differences between two methods, and `one_sided` is used by the test-based
ranking scheme. Summaries record `TEST`, and texts about a run use the recorded name.
"""

from math import nan
from typing import Any

import numpy as np

from probdice.evaluation.intervals import FEWEST, Floats, few

__all__ = ["ALPHA", "TEST", "one_sided", "two_sided"]

TEST = "Wilcoxon signed-rank test"
ALPHA = 0.05  # significance level


def two_sided(paired: Floats, *, of_subjects: bool = False) -> tuple[float, float, str]:
    """Test whether differences are symmetric about 0.

    This is the Wilcoxon signed-rank test. Differences of 0 are excluded.

    Parameters
    ----------
    paired : array of float
        The differences; they may be infinite.
    of_subjects : bool, optional
        Whether each difference belongs to a subject instead of a case. This affects only the
        remark.

    Returns
    -------
    statistic : float
        The smaller sum of ranks.
    p : float
        The p-value; 1 if all differences are 0. NaN for fewer than 6 differences, because with 5
        differences the smallest possible p-value is 1/16.
    remark : str
        The reason why there is no test, a remark on the test, or "".

    Examples
    --------
    >>> import numpy as np
    >>> from probdice.evaluation.paired_test import two_sided
    >>> two_sided(np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.0]))
    (0.0, 0.03125, '1 of 7 differences are 0 and excluded')
    """
    if paired.size < FEWEST:
        return nan, nan, f"{few(paired.size, of_subjects)}: no result could be significant"
    zeros = int(np.sum(paired == 0))
    if zeros == paired.size:
        return 0.0, 1.0, "all differences are 0"
    from scipy.stats import wilcoxon

    result: Any = wilcoxon(paired[paired != 0])
    left_out = f"{zeros} of {paired.size} differences are 0 and excluded" if zeros else ""
    return float(result.statistic), float(result.pvalue), left_out


def one_sided(paired: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the p-values of one-sided Wilcoxon signed-rank tests of weighted differences.

    The tests use the normal approximation with continuity correction and exclude differences of 0,
    like R's ``wilcox.test(exact = FALSE)``, which challengeR uses.

    Parameters
    ----------
    paired : array of float
        The differences; they may be infinite.
    weights : array of float, of shape (resamples, differences)
        How often each difference occurs in each resample.

    Returns
    -------
    tuple of two arrays
        The p-values, one per resample, of the alternative that differences are above 0, and of the
        alternative that differences are below 0. The p-values are 1 if all differences are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from probdice.evaluation.paired_test import one_sided
    >>> above, below = one_sided(np.array([0.8, 0.8, 0.8, 0.8]), np.ones((1, 4)))
    >>> above.round(4), below.round(4)
    (array([0.0359]), array([0.9861]))
    """
    from scipy.special import ndtr

    differing = paired != 0
    paired, weights = paired[differing], weights[:, differing]
    if not paired.size:
        ones = np.ones(weights.shape[0])
        return ones, ones.copy()
    order = np.argsort(np.abs(paired), kind="stable")
    sizes, positive = np.abs(paired[order]), paired[order] > 0
    starts = np.flatnonzero(np.r_[True, sizes[1:] != sizes[:-1]])
    weights = weights[:, order]
    tied = np.add.reduceat(weights, starts, axis=1)
    tied_positive = np.add.reduceat(weights * positive, starts, axis=1)
    upto = np.cumsum(tied, axis=1)
    total = upto[:, -1]
    statistic = np.sum((upto - (tied - 1) / 2) * tied_positive, axis=1)
    excess = statistic - total * (total + 1) / 4
    variance = total * (total + 1) * (2 * total + 1) / 24 - np.sum(tied**3 - tied, axis=1) / 48
    deviation = np.sqrt(np.where(variance > 0, variance, 1.0))
    above = np.where(variance > 0, ndtr(-(excess - 0.5) / deviation), 1.0)
    below = np.where(variance > 0, ndtr((excess + 0.5) / deviation), 1.0)
    return above, below
