"""How the values of a region are distributed, whatever their places."""

import numpy as np
from numpy.typing import NDArray

from probdice.engine.kernels._jit import kernel
from probdice.engine.kernels.rows import Rows, Sums


@kernel
def histogram(rows: Rows, start: int, size: int, counts: NDArray[np.int64], sums: Sums) -> None:
    """Add how many values of each row lie in each of the equal bins of [0, 1], and their sums."""
    bins = counts.shape[1]
    for i in range(rows.shape[0]):
        for k in range(start, start + size):
            value = np.float64(rows[i, k])
            place = min(max(int(value * bins), 0), bins - 1)
            counts[i, place] += 1
            sums[i, place] += value


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
