"""Sums for the calibration of predicted probabilities."""

import numpy as np
from numpy.typing import NDArray

from probdice.compiler.jit import inner, kernel
from probdice.engine.kernels.rows import Indices, Rows, Sums

STEP = 4096
MOMENTS = 6  # the number of pixels, Σp, Σq, Σp², Σq² and Σpq


@kernel
def calibrate(
    p: Rows,
    p_start: int,
    p_starts: Indices,
    p_members: Indices,
    q: Rows,
    q_start: int,
    q_starts: Indices,
    q_members: Indices,
    size: int,
    thresholds: Rows,
    moments: Sums,
    likely: Sums,
    above: NDArray[np.int64],
    losses: Sums,
) -> None:
    """Add the sums for groups of rows. p is the reference, and q is the prediction.

    `moments` contains the sums for each group and each bin of q. Bins are open on the left, except
    the first bin. `likely` contains the same sums for the group with the largest q at every pixel.
    ``above[g, i, j]`` is the number of pixels at which p exceeds exactly i thresholds and q exceeds
    exactly j. `losses` contains the sum of −Σ p log q over the pixels where this value is finite,
    and the number of pixels where it is infinite.
    """
    groups, bins = moments.shape[0], moments.shape[1]
    p_sums, q_sums = np.empty((groups, STEP), p.dtype), np.empty((groups, STEP), q.dtype)
    for done in range(0, size, STEP):
        step = min(STEP, size - done)
        _join(p, p_start + done, p_starts, p_members, step, p_sums)
        _join(q, q_start + done, q_starts, q_members, step, q_sums)
        for g in range(groups):
            for k in range(step):
                a, b = np.float64(p_sums[g, k]), np.float64(q_sums[g, k])
                _add(moments[g, _bin(b, bins)], a, b)
                i = j = 0
                for t in thresholds:
                    i += p_sums[g, k] > t
                    j += q_sums[g, k] > t
                above[g, i, j] += 1
        for k in range(step):
            best, loss, infinite = 0, 0.0, False
            for g in range(groups):
                if q_sums[g, k] > q_sums[best, k]:
                    best = g
                if p_sums[g, k] > 0:
                    if q_sums[g, k] > 0:
                        loss -= np.float64(p_sums[g, k]) * np.log(np.float64(q_sums[g, k]))
                    else:
                        infinite = True
            a, b = np.float64(p_sums[best, k]), np.float64(q_sums[best, k])
            _add(likely[_bin(b, bins)], a, b)
            if infinite:
                losses[1] += 1
            else:
                losses[0] += loss


@inner
def _join(rows: Rows, start: int, starts: Indices, members: Indices, step: int, into: Rows) -> None:
    """Write the sum of the rows of each group."""
    for g in range(starts.size - 1):
        for k in range(step):
            into[g, k] = 0
        for m in range(starts[g], starts[g + 1]):
            row = rows[members[m], start : start + step]
            for k in range(step):
                into[g, k] += row[k]


@inner
def _bin(value: float, bins: int) -> int:
    """Return the index of the bin of a value.

    A bin includes its right end but not its left end. The first bin also includes 0.
    """
    return min(max(int(np.ceil(value * bins)) - 1, 0), bins - 1)


@inner
def _add(into: Sums, p: float, q: float) -> None:
    into[0] += 1
    into[1] += p
    into[2] += q
    into[3] += p * p
    into[4] += q * q
    into[5] += p * q
