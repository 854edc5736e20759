"""Histograms of the values of regions."""

import math

import numpy as np
from numpy.typing import NDArray

from probdice.compiler.jit import inner, kernel
from probdice.engine.kernels.rows import Rows, Sums

STEP = 1024  # number of pixels whose bins stay in the cache


@kernel
def histogram(rows: Rows, start: int, size: int, counts: NDArray[np.int64], sums: Sums) -> None:
    """For each row and each bin of [0, 1], add the number and the sum of the values.

    Bins are narrow near 0 and 1 and wide near 0.5, because most values are close to 0 or 1.
    """
    bin_indices = np.empty(STEP, np.int32)
    for i in range(rows.shape[0]):
        for done in range(start, start + size, STEP):
            row = rows[i, done : min(done + STEP, start + size)]
            _find_bins(row, counts.shape[1], bin_indices)
            _add_runs(row, bin_indices, counts[i], sums[i])


@inner
def _add_runs(
    row: Rows, bin_indices: NDArray[np.int32], counts: NDArray[np.int64], sums: Sums
) -> None:
    """Add the number and the sum of the values in each bin.

    Neighbouring pixels are often in the same bin. The sum of the current bin stays in a register,
    because adding to a memory cell immediately after it was written is slow.
    """
    size = np.uint64(row.size)
    first, bin_index = np.uint64(0), np.uint64(bin_indices[0])
    total = sums[bin_index]
    for k in range(size):
        if np.uint64(bin_indices[k]) != bin_index:
            counts[bin_index] += k - first
            sums[bin_index] = total
            first, bin_index = np.uint64(k), np.uint64(bin_indices[k])
            total = sums[bin_index]
        total += row[k]
    counts[bin_index] += size - first
    sums[bin_index] = total


@inner
def _find_bins(row: Rows, bins: int, into: NDArray[np.int32]) -> None:
    """Write the bin index of every value in a row."""
    real = row.dtype.type
    scale, last = real(bins * math.sqrt(0.5)), np.int32(bins - 1)
    for k in range(row.size):
        inward = max(min(row[k], real(1) - row[k]), real(0))
        bin_index = np.int32(scale * np.sqrt(inward))
        into[k] = bin_index if row[k] < real(0.5) else last - bin_index
