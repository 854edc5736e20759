"""Histograms of the values of regions."""

import math

import numpy as np
from numpy.typing import NDArray

from probdice.compiler.jit import inner, kernel
from probdice.engine.kernels.rows import Rows, Sums

STEP = 1024  # number of pixels whose bins stay in the cache


@kernel
def histogram(rows: Rows, start: int, size: int, counts: NDArray[np.int64], sums: Sums) -> None:
    """Add the number and the sum of each row's values in each bin of [0, 1].

    Bins are narrow near 0 and 1 and wide near 0.5, because most values are close to 0 or 1.
    """
    places = np.empty((rows.shape[0], STEP), np.int32)
    for done in range(start, start + size, STEP):
        step = min(STEP, start + size - done)
        for i in range(rows.shape[0]):
            _places(rows[i, done : done + step], counts.shape[1], places[i])
        # Visit all rows of a pixel in turn. Neighbouring pixels of a row are mostly in the same
        # bin, and incrementing a bin immediately after it was written is slow.
        for k in range(np.uint64(step)):
            for i in range(np.uint64(rows.shape[0])):
                place = np.uint64(places[i, k])
                counts[i, place] += 1
                sums[i, place] += rows[i, np.uint64(done) + k]


@inner
def _places(row: Rows, bins: int, into: NDArray[np.int32]) -> None:
    """Write the index of the bin of every value of a row."""
    real = row.dtype.type
    scale, last = real(bins * math.sqrt(0.5)), np.int32(bins - 1)
    for k in range(row.size):
        inward = max(min(row[k], real(1) - row[k]), real(0))
        place = np.int32(scale * np.sqrt(inward))
        into[k] = place if row[k] < real(0.5) else last - place
