"""How the values of a region are distributed, whatever their places."""

import numpy as np
from numpy.typing import NDArray

from probdice.engine.kernels._jit import kernel
from probdice.engine.kernels.rows import Rows, Sums


@kernel
def histogram(rows: Rows, start: int, size: int, counts: NDArray[np.int64], sums: Sums) -> None:
    """Add how many values of each row lie in each of the equal bins of [0, 1].

    And the sums of what they exceed the left end of their bin by, in widths of a bin.
    """
    bins = counts.shape[1]
    for i in range(rows.shape[0]):
        row = rows[i, start : start + size]
        row_counts, row_sums = counts[i], sums[i]
        for k in range(size):
            value = np.float64(row[k]) * bins
            place = min(max(int(value), 0), bins - 1)
            row_counts[place] += 1
            row_sums[place] += value - place


@kernel
def mean_minimum(p: Rows, q: Rows) -> float:
    """E min(X, Y) of independent X and Y, each one of the sorted values of a row."""
    total = above = 0.0
    j = 0
    for i in range(p.size):
        while j < q.size and q[j] < p[i]:
            above += q[j]
            j += 1
        total += above + np.float64(p[i]) * (q.size - j)
    return total / (np.float64(p.size) * q.size)
