"""Label maps: dense indices for labels, counts of pairs, and sums grouped by label."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.kernels import absolute
from probdice.kernels._jit import kernel, part
from probdice.kernels.aitchison import BLOCK, CERTAIN, UNIT, log_ratio
from probdice.kernels.rows import CHUNK, Indices, Rows, Sums, active, others, survey

Codes = NDArray[np.int32]
Counts = NDArray[np.int32]

LONGEST = int(CHUNK)  # pixels of a run that are summed at once


@kernel
def encode(
    values: NDArray[np.unsignedinteger[Any]],
    slots: Codes,
    labels: NDArray[np.unsignedinteger[Any]],
    into: Codes,
) -> int:
    """Number the labels as they come, by open addressing; how many there are.

    `slots` holds −1 where it is free, and its size is a power of two. Returns −1 when `labels`
    has no room for another label.
    """
    mask = np.uint64(slots.size - 1)
    shift = np.uint64(64)
    for _ in range(64):
        if np.uint64(1) << (np.uint64(64) - shift) == np.uint64(slots.size):
            break
        shift -= np.uint64(1)
    count = start = 0
    while start < values.size:
        value = values[start]
        # Multiplying by 2^64 / φ spreads labels over the upper bits.
        slot = (np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)) >> shift
        code = slots[slot]
        while code >= 0 and labels[code] != value:
            slot = (slot + np.uint64(1)) & mask
            code = slots[slot]
        if code < 0:
            if count == labels.size:
                return -1
            code = np.int32(count)
            slots[slot] = code
            labels[count] = value
            count += 1
        stop = _run(values, start)
        into[start:stop] = code
        start = stop
    return count


@part
def _run(values: NDArray[Any], start: int) -> int:
    """Where the run of equal values that begins at `start` ends."""
    value = values[start]
    stop = start + 1
    while stop < values.size and values[np.uint64(stop)] == value:
        stop += 1
    return stop


@kernel
def count_bytes(p: NDArray[np.uint8], q: NDArray[np.uint8]) -> Counts:
    """How many pixels have each pair of labels of one byte."""
    return _count(p, q, 256, 256)


@kernel
def count_codes(p: Codes, q: Codes, p_labels: int, q_labels: int) -> Counts:
    """How many pixels have each pair of codes."""
    return _count(p, q, p_labels, q_labels)


@part
def _count(p: NDArray[Any], q: NDArray[Any], p_labels: int, q_labels: int) -> Counts:
    """Count into four tables in turn: neighbours mostly agree, and an increment of the cell that
    was just written would have to wait for it.
    """
    c0 = np.zeros((p_labels, q_labels), np.int32)
    c1, c2, c3 = np.zeros_like(c0), np.zeros_like(c0), np.zeros_like(c0)
    whole = p.size - p.size % 4
    for k in range(0, whole, 4):
        c0[p[k], q[k]] += 1
        c1[p[k + 1], q[k + 1]] += 1
        c2[p[k + 2], q[k + 2]] += 1
        c3[p[k + 3], q[k + 3]] += 1
    for k in range(whole, p.size):
        c0[p[k], q[k]] += 1
    for i in range(p_labels):
        for j in range(q_labels):
            c0[i, j] += c1[i, j] + c2[i, j] + c3[i, j]
    return c0


@kernel
def pairs_absolute(
    codes: Codes,
    q: Rows,
    q_start: int,
    counts: NDArray[np.int64],
    volumes: Sums,
    shared: Sums,
) -> bool:
    """Add the pixels of each code, the volumes, and Σ min(q_j, 1) over the pixels of each code."""
    sound = True
    sums = np.empty(absolute.BLOCK, q.dtype)
    block = np.empty(q.shape[0])
    listed = np.empty(q.shape[0], np.int64)
    bounds = np.empty(absolute.BLOCK + 1, np.int64)
    for done in range(0, codes.size, absolute.BLOCK):
        step = min(absolute.BLOCK, codes.size - done)
        start = q_start + done
        sound &= survey(q, start, start + step, sums, block)
        for j in range(q.shape[0]):
            volumes[j] += block[j]
        here = codes[done : done + step]
        runs = _runs(here, bounds, counts)
        # A region that is zero throughout shares nothing with any label.
        columns = listed[: active(block, listed)]
        _group_sums(here, bounds[: runs + 1], q, start, columns, columns, shared)
    return sound


@kernel
def pairs_aitchison(
    codes: Codes,
    q: Rows,
    q_start: int,
    floor: float,
    counts: NDArray[np.int64],
    volumes: Sums,
    outside: Sums,
    inside: Sums,
) -> bool:
    """Add the pixels of each code, the volumes, and losses.

    `outside` is the loss of (q_j, rest) against (0, 1), a pixel that does not have a label;
    `inside` what changes by against (1, 0), over the pixels of each code.
    """
    sound = True
    sums = np.empty(BLOCK, q.dtype)
    block = np.empty(q.shape[0])
    listed = np.empty(q.shape[0], np.int64)
    bounds = np.empty(BLOCK + 1, np.int64)
    places = np.empty(q.shape[0], np.int64)
    every = np.arange(q.shape[0])
    change = np.empty((q.shape[0] + 1, BLOCK), q.dtype)
    rest = np.empty((q.shape[0] + 1, BLOCK), q.dtype)
    zero = np.zeros(BLOCK, q.dtype)
    for done in range(0, codes.size, BLOCK):
        step = min(BLOCK, codes.size - done)
        start = q_start + done
        sound &= survey(q, start, start + step, sums, block)
        count = active(block, listed)
        others(q, start, start + step, listed[:count], rest)
        # Regions that are zero throughout share the row after those of the active ones.
        lost = _certain_losses(zero[:step], rest[count, :step], floor, change[count])
        b = 0
        for j in range(q.shape[0]):
            volumes[j] += block[j]
            places[j] = count
            if block[j] != 0:
                row = q[j, start : start + step]
                outside[j] += _certain_losses(row, rest[b, :step], floor, change[b])
                places[j] = b
                b += 1
            else:
                outside[j] += lost
        here = codes[done : done + step]
        runs = _runs(here, bounds, counts)
        _group_sums(here, bounds[: runs + 1], change, 0, places, every, inside)
    return sound


@part
def _certain_losses(a: Rows, b: Rows, floor: float, change: Rows) -> float:
    """Loss of (a, b) against (0, 1) in all, and at each pixel what changes by against (1, 0)."""
    real = a.dtype.type
    certain = real(-math.log2(floor) if floor > 0 else CERTAIN)
    logits = np.empty(a.size, a.dtype)
    log_ratio(a, b, floor, logits)
    total = 0.0
    for k in range(a.size):
        out = abs(logits[k] + certain) * real(UNIT)
        out = real(0) if a[k] == 0 else out / (real(1) + out)
        within = abs(logits[k] - certain) * real(UNIT)
        within = real(0) if b[k] == 0 else within / (real(1) + within)
        change[k] = within - out
        total += out
    return total


@part
def _runs(codes: Codes, bounds: Indices, counts: NDArray[np.int64]) -> int:
    """Where runs of one code begin, and after them the end; how many there are.

    Their lengths are added to `counts`.
    """
    count = start = 0
    while start < codes.size:
        stop = _run(codes, start)
        counts[codes[start]] += stop - start
        for part_start in range(start, stop, LONGEST):
            bounds[count] = part_start
            count += 1
        start = stop
    bounds[count] = codes.size
    return count


@part
def _group_sums(
    codes: Codes,
    bounds: Indices,
    rows: Rows,
    start: int,
    listed: Indices,
    columns: Indices,
    into: Sums,
) -> None:
    """Add the listed rows, cut off at 1, run by run into the code of the run and their columns.

    Four rows at a time keep sums of short runs from waiting for each other; where fewer are left,
    the last one is taken again.
    """
    one, last = rows.dtype.type(1), listed.size - 1
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
                s0 += min(r0[k], one)
                s1 += min(r1[k], one)
                s2 += min(r2[k], one)
                s3 += min(r3[k], one)
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
    """Rows that are 1 where a pixel's code belongs to the row's group, else 0."""
    into[:] = into.dtype.type(0)
    for k in range(codes.size):
        into[group_of_code[codes[k]], k] = into.dtype.type(1)
