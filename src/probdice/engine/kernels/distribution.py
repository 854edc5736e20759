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
    places = np.empty(STEP, np.int32)
    for i in range(rows.shape[0]):
        for done in range(start, start + size, STEP):
            row = rows[i, done : min(done + STEP, start + size)]
            _places(row, counts.shape[1], places)
            _add_runs(row, places, counts[i], sums[i])


@inner
def _add_runs(row: Rows, places: NDArray[np.int32], counts: NDArray[np.int64], sums: Sums) -> None:
    """Add the number and the sum of the values in each bin.

    Neighbouring pixels are often in the same bin. The sum of the current bin stays in a register,
    because adding to a memory cell immediately after it was written is slow.
    """
    size = np.uint64(row.size)
    first, place = np.uint64(0), np.uint64(places[0])
    total = sums[place]
    for k in range(size):
        if np.uint64(places[k]) != place:
            counts[place] += k - first
            sums[place] = total
            first, place = np.uint64(k), np.uint64(places[k])
            total = sums[place]
        total += row[k]
    counts[place] += size - first
    sums[place] = total


@inner
def _places(row: Rows, bins: int, into: NDArray[np.int32]) -> None:
    """Write the bin index of every value in a row."""
    real = row.dtype.type
    scale, last = real(bins * math.sqrt(0.5)), np.int32(bins - 1)
    for k in range(row.size):
        inward = max(min(row[k], real(1) - row[k]), real(0))
        place = np.int32(scale * np.sqrt(inward))
        into[k] = place if row[k] < real(0.5) else last - place
