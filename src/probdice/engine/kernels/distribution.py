"""How the values of a region are distributed, whatever their places."""

import math

import numpy as np
from numpy.typing import NDArray

from probdice.compiler.jit import inner, kernel
from probdice.engine.kernels.rows import Rows, Sums

STEP = 1024  # pixels whose places stay in the cache


@kernel
def histogram(rows: Rows, start: int, size: int, counts: NDArray[np.int64], sums: Sums) -> None:
    """Add how many values of each row lie in each bin of [0, 1], and the sums of these values.

    A bin is as wide as its place between the nearest end and the middle: what regions do not hold
    is close to 0, and what they are sure of close to 1.
    """
    places = np.empty((rows.shape[0], STEP), np.int32)
    for done in range(start, start + size, STEP):
        step = min(STEP, start + size - done)
        for i in range(rows.shape[0]):
            _places(rows[i, done : done + step], counts.shape[1], places[i])
        # Row after row at each pixel: neighbours are alike, and an increment of the cell that was
        # just written would wait for it.
        for k in range(np.uint64(step)):
            for i in range(np.uint64(rows.shape[0])):
                place = np.uint64(places[i, k])
                counts[i, place] += 1
                sums[i, place] += rows[i, np.uint64(done) + k]


@inner
def _places(row: Rows, bins: int, into: NDArray[np.int32]) -> None:
    """The bin of every value of a row."""
    real = row.dtype.type
    scale, last = real(bins * math.sqrt(0.5)), np.int32(bins - 1)
    for k in range(row.size):
        inward = max(min(row[k], real(1) - row[k]), real(0))
        place = np.int32(scale * np.sqrt(inward))
        into[k] = place if row[k] < real(0.5) else last - place
