"""Label maps: dense indices for labels, counts of pairs, and sums grouped by label."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.kernels._jit import kernel, part
from probdice.kernels.aitchison import BLOCK, UNIT, log_ratio
from probdice.kernels.rows import Indices, Rows, Sums, active, others, survey

Codes = NDArray[np.int32]
Counts = NDArray[np.int64]


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
    count = 0
    code = np.int32(-1)
    last = values[0] if values.size else values.dtype.type(0)
    for k in range(values.size):
        value = values[k]
        if value != last or code < 0:
            # Multiplying by 2^64 / φ spreads neighbouring labels over the upper half.
            slot = ((np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask
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
            last = value
        into[k] = code
    return count


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
    c0 = np.zeros((p_labels, q_labels), np.int64)
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
    volumes: Sums,
    outside: Sums,
    inside: Sums,
) -> bool:
    """Add what `_grouped` says, with |1 − q_j| inside a region and |q_j| outside."""
    real = q.dtype.type
    sound = True
    sums = np.empty(BLOCK, q.dtype)
    block = np.empty(q.shape[0])
    listed = np.empty(q.shape[0], np.int64)
    change = np.empty((q.shape[0] + 1, BLOCK), q.dtype)
    for done in range(0, codes.size, BLOCK):
        step = min(BLOCK, codes.size - done)
        start = q_start + done
        sound &= survey(q, start, start + step, sums, block)
        count = active(block, listed)
        for j in range(q.shape[0]):
            volumes[j] += block[j]
            outside[j] += block[j]
        for b in range(count):
            row, into = q[listed[b], start : start + step], change[b]
            for k in range(step):
                into[k] = abs(real(1) - row[k]) - row[k]
        zero = change[count]
        for k in range(step):
            zero[k] = real(1)
        _grouped(codes[done : done + step], change, block, inside)
    return sound


@kernel
def pairs_aitchison(
    codes: Codes,
    q: Rows,
    q_start: int,
    floor: float,
    volumes: Sums,
    outside: Sums,
    inside: Sums,
) -> bool:
    """Add what `_grouped` says, with the loss against (1, 0) inside and (0, 1) outside."""
    sound = True
    sums = np.empty(BLOCK, q.dtype)
    block = np.empty(q.shape[0])
    listed = np.empty(q.shape[0], np.int64)
    change = np.empty((q.shape[0] + 1, BLOCK), q.dtype)
    rest = np.empty((q.shape[0] + 1, BLOCK), q.dtype)
    zero = np.zeros(BLOCK, q.dtype)
    for done in range(0, codes.size, BLOCK):
        step = min(BLOCK, codes.size - done)
        start = q_start + done
        sound &= survey(q, start, start + step, sums, block)
        count = active(block, listed)
        others(q, start, start + step, listed[:count], rest)
        lost = _certain_losses(zero[:step], rest[count, :step], floor, change[count])
        b = 0
        for j in range(q.shape[0]):
            volumes[j] += block[j]
            if block[j] == 0:
                outside[j] += lost
            else:
                row = q[j, start : start + step]
                outside[j] += _certain_losses(row, rest[b, :step], floor, change[b])
                b += 1
        _grouped(codes[done : done + step], change, block, inside)
    return sound


@part
def _certain_losses(a: Rows, b: Rows, floor: float, change: Rows) -> float:
    """Loss of (a, b) against (0, 1) in all, and what changes where it is (1, 0) instead."""
    real = a.dtype.type
    certain = real(-math.log2(floor) if floor > 0 else 1e30)
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
def _grouped(codes: Codes, change: Rows, block: Sums, into: Sums) -> None:
    """Add the rows of `change` into the codes of their pixels, run by run.

    `change` has a row for each active region (a `block` volume that is not 0), and after these
    one that all others share.
    """
    start = 0
    while start < codes.size:
        stop = start + 1
        while stop < codes.size and stop - start < 256 and codes[stop] == codes[start]:
            stop += 1
        code = codes[start]
        b = 0
        for j in range(block.size):
            b += block[j] != 0
        shared = _sum(change[b, start:stop]) if b < block.size else 0.0
        b = 0
        for j in range(block.size):
            if block[j] != 0:
                into[code, j] += _sum(change[b, start:stop])
                b += 1
            else:
                into[code, j] += shared
        start = stop


@part
def _sum(row: Rows) -> float:
    total: float = row.dtype.type(0)
    for k in range(row.size):
        total += row[k]
    return total


@kernel
def indicate(codes: Codes, group_of_code: Indices, into: Rows) -> None:
    """Rows that are 1 where a pixel's code belongs to the row's group, else 0."""
    into[:] = into.dtype.type(0)
    for k in range(codes.size):
        into[group_of_code[codes[k]], k] = into.dtype.type(1)
