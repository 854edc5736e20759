"""Ranks with ties, and the two correlations."""

from math import nan

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["SAME", "average_ranks", "pearson", "spearman"]

Floats = NDArray[np.float64]

SAME = 1e-12  # numbers this close differ by rounding alone


def average_ranks(values: ArrayLike) -> Floats:
    """Ranks from 1, ascending; equal values share the mean of their places.

    Examples
    --------
    >>> from probdice.paper import average_ranks
    >>> average_ranks([10, 30, 20, 20]).tolist()
    [1.0, 4.0, 2.5, 2.5]
    """
    # Means of ranks that are equal on paper may differ in their last digits.
    rounded = np.round(np.asarray(values, np.float64), 12)
    _, inverse, counts = np.unique(rounded, return_inverse=True, return_counts=True)
    places: Floats = np.cumsum(counts) - (counts - 1) / 2
    return places[inverse]


def pearson(x: ArrayLike, y: ArrayLike) -> float:
    """Pearson's correlation; NaN where one of the two never changes.

    Examples
    --------
    >>> from probdice.paper import pearson
    >>> pearson([1, 2, 3], [2, 4, 6]), pearson([1, 2, 3], [5, 5, 5])
    (1.0, nan)
    """
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if a.size == 0 or np.ptp(a) <= SAME or np.ptp(b) <= SAME:
        return nan
    a, b = a - a.mean(), b - b.mean()
    return float(np.clip(np.sum(a * b) / np.sqrt(np.sum(a**2) * np.sum(b**2)), -1, 1))


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman's rank correlation; ties share their mean rank.

    Examples
    --------
    >>> from probdice.paper import spearman
    >>> spearman([1, 2, 3, 4], [10, 100, 1000, 1000])
    0.9486832980505138
    """
    return pearson(average_ranks(x), average_ranks(y))
