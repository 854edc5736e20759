"""Kernels for a label map and probabilities: savings of pairs, and sums grouped by label."""

import math

import numpy as np
from numpy.typing import NDArray

from probdice.compiler.jit import inner, kernel
from probdice.engine.kernels import absolute, aitchison
from probdice.engine.kernels.aitchison import UNIT
from probdice.engine.kernels.labels import Codes, run_end
from probdice.engine.kernels.logarithms import CERTAIN_LOGIT, log_ratio
from probdice.engine.kernels.rows import (
    FLOAT32_SUM_LENGTH,
    Indices,
    Rows,
    Sums,
    active,
    others,
    survey,
    volume,
)

MAX_RUN_LENGTH = int(FLOAT32_SUM_LENGTH)  # number of pixels of a run that are summed at once


@kernel
def pairs_absolute(
    codes: Codes,
    q: Rows,
    q_start: int,
    counts: NDArray[np.int64],
    volumes: Sums,
    likeliest: Indices,
    savings: Sums,
) -> bool:
    """Add the pixel counts of codes, the volumes, and Σ min(q_j, 1) over the pixels of each code.

    For each region, the number of pixels at which it is the most probable is added to `likeliest`.
    Return whether the values are known to be valid (see `survey`).
    """
    sound = True
    step_volumes = np.empty(q.shape[0])
    listed = np.empty(q.shape[0], np.int64)
    bounds = np.empty(absolute.STEP + 1, np.int64)
    for done in range(0, codes.size, absolute.STEP):
        step = min(absolute.STEP, codes.size - done)
        start = q_start + done
        sound &= survey(q, start, start + step, step_volumes, likeliest)
        for j in range(q.shape[0]):
            volumes[j] += step_volumes[j]
        step_codes = codes[done : done + step]
        runs = _runs(step_codes, bounds, counts)
        # A region that is zero everywhere overlaps no label.
        columns = listed[: active(step_volumes, listed)]
        _group_sums(step_codes, bounds[: runs + 1], q, start, columns, columns, 1.0, savings)
    return sound


@kernel
def pairs_aitchison(
    codes: Codes,
    q: Rows,
    q_start: int,
    floor: float,
    counts: NDArray[np.int64],
    volumes: Sums,
    likeliest: Indices,
    alone: Sums,
    savings: Sums,
) -> bool:
    """Add the pixel counts of labels, the volumes and losses of regions, and the savings of pairs.

    The loss of a region is Σ (1 − f) against an empty region. For each region, the number of pixels
    at which it is the most probable is added to `likeliest`. Return whether the values are known to
    be valid (see `survey`).
    """
    sound = True
    size = aitchison.STEP
    step_volumes = np.empty(q.shape[0])
    listed = np.empty(q.shape[0], np.int64)
    bounds = np.empty(size + 1, np.int64)
    every = np.arange(q.shape[0])
    saved = np.empty((q.shape[0], size), q.dtype)
    rest = np.empty((q.shape[0] + 1, size), q.dtype)
    for done in range(0, codes.size, size):
        step = min(size, codes.size - done)
        start = q_start + done
        sound &= survey(q, start, start + step, step_volumes, likeliest)
        columns = listed[: active(step_volumes, listed)]
        others(q, start, start + step, columns, rest)
        for j in range(q.shape[0]):
            volumes[j] += step_volumes[j]
        for b in range(columns.size):
            row = q[columns[b], start : start + step]
            alone[columns[b]] += _certain_savings(row, rest[b, :step], floor, saved[b])
        step_codes = codes[done : done + step]
        runs = _runs(step_codes, bounds, counts)
        _group_sums(
            step_codes, bounds[: runs + 1], saved, 0, every[: columns.size], columns, 1.0, savings
        )
    return sound


@inner
def _certain_savings(a: Rows, b: Rows, floor: float, saved: Rows) -> float:
    """Return the total loss of (a, b) against an empty region, (0, 1).

    Write the saving at every pixel if the region is paired with the label of the pixel, (1, 0).
    """
    real = a.dtype.type
    one, none, unit, half = real(1), real(0), real(UNIT), real(0.5)
    certain = real(-math.log2(floor) if floor > 0 else CERTAIN_LOGIT)
    apart = real(2) * certain * unit
    apart = apart / (one + apart)  # the loss of (1, 0) against (0, 1)
    logits = np.empty(a.size, a.dtype)
    log_ratio(a, b, floor, logits)
    losses = np.empty(a.size, a.dtype)
    for k in range(a.size):
        outside = abs(logits[k] + certain) * unit
        outside = none if a[k] == none else outside / (one + outside)
        inside = abs(logits[k] - certain) * unit
        inside = none if b[k] == none else inside / (one + inside)
        losses[k] = outside
        saved[k] = max(half * ((apart - inside) + outside), none) if a[k] > none else none
    return volume(losses)


@kernel
def group_sums(codes: Codes, q: Rows, q_start: int, into: Sums) -> None:
    """Add Σ q_j over the pixels of each code."""
    bounds = np.empty(absolute.STEP + 1, np.int64)
    columns = np.arange(q.shape[0])
    unused = np.zeros(into.shape[0], np.int64)
    for done in range(0, codes.size, absolute.STEP):
        step = min(absolute.STEP, codes.size - done)
        step_codes = codes[done : done + step]
        runs = _runs(step_codes, bounds, unused)
        start = q_start + done
        _group_sums(step_codes, bounds[: runs + 1], q, start, columns, columns, np.inf, into)


@inner
def _runs(codes: Codes, bounds: Indices, counts: NDArray[np.int64]) -> int:
    """Write the starts of runs of equal codes, and the end of the last run.

    Return the number of runs. Runs longer than `MAX_RUN_LENGTH` pixels are divided. The number of
    pixels of each code is added to `counts`.
    """
    count = start = 0
    while start < codes.size:
        stop = run_end(codes, start)
        counts[codes[start]] += stop - start
        for bound in range(start, stop, MAX_RUN_LENGTH):
            bounds[count] = bound
            count += 1
        start = stop
    bounds[count] = codes.size
    return count


@inner
def _group_sums(
    codes: Codes,
    bounds: Indices,
    rows: Rows,
    start: int,
    listed: Indices,
    columns: Indices,
    most: float,
    into: Sums,
) -> None:
    """Sum the listed rows, with values clipped to `most`, over the runs of each code.

    Four rows are processed at a time, so that the sums of short runs are independent of each other.
    If fewer rows remain, the last row is repeated.
    """
    highest, last = rows.dtype.type(most), listed.size - 1
    size = codes.size
    for a in range(0, listed.size, 4):
        r0 = rows[listed[a], start : start + size]
        r1 = rows[listed[min(a + 1, last)], start : start + size]
        r2 = rows[listed[min(a + 2, last)], start : start + size]
        r3 = rows[listed[min(a + 3, last)], start : start + size]
        left = listed.size - a
        for run in range(bounds.size - 1):
            s0 = s1 = s2 = s3 = rows.dtype.type(0)
            for k in range(np.uint64(bounds[run]), np.uint64(bounds[run + 1])):
                s0 += min(r0[k], highest)
                s1 += min(r1[k], highest)
                s2 += min(r2[k], highest)
                s3 += min(r3[k], highest)
            code = codes[bounds[run]]
            into[code, columns[a]] += s0
            if left > 1:
                into[code, columns[a + 1]] += s1
            if left > 2:
                into[code, columns[a + 2]] += s2
            if left > 3:
                into[code, columns[a + 3]] += s3


@kernel
def indicate(codes: Codes, group_of_code: Indices, into: Rows) -> None:
    """Write rows that are 1 where the code of a pixel belongs to the group of the row, else 0."""
    into[:] = into.dtype.type(0)
    for k in range(codes.size):
        into[group_of_code[codes[k]], k] = into.dtype.type(1)
