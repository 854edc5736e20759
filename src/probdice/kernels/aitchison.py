"""The aitchison similarity over the pixels of a block.

The distance between two vectors of two is |logit − logit| / √2. Logits are in base two, which is
what the bits of a floating number give: a float32 then holds the logit of 1e-38 to 4e-6, and a
score to that times ln 2 / √2. What is summed is the loss 1 − f, which is exactly 0 where the sides
are equal.
"""

import math

import numpy as np

from probdice.kernels._jit import exponent, kernel, mantissa, part
from probdice.kernels.absolute import difference
from probdice.kernels.rows import (
    CHUNK,
    Indices,
    Rows,
    Sums,
    active,
    is_zero,
    join,
    others,
    survey,
    volume,
)

BLOCK = 1024  # pixels whose logits stay in the cache while every pair of them is visited
# The logit of certainty: far from all others, and equal to itself, which infinity is not.
CERTAIN = 1e30
UNIT = math.log(2) / math.sqrt(2)  # from a difference of logits in base two to a distance
UPSCALE = 2.0**64  # lifts what is subnormal to where every bit pattern has an exponent


@kernel
def pairs(
    p: Rows,
    p_start: int,
    q: Rows,
    q_start: int,
    size: int,
    floor: float,
    p_volumes: Sums,
    q_volumes: Sums,
    into: Sums,
) -> tuple[bool, bool]:
    """Add the volumes and the pair losses of these pixels; whether each side looks sound."""
    p_sound = q_sound = True
    p_rows, q_rows = p.shape[0], q.shape[0]
    sums = np.empty(BLOCK, p.dtype)
    p_block, q_block = np.empty(p_rows), np.empty(q_rows)
    p_active, q_active = np.empty(p_rows, np.int64), np.empty(q_rows, np.int64)
    p_logits = np.empty((2 * (p_rows + 1), BLOCK), p.dtype)
    q_logits = np.empty((2 * (q_rows + 1), BLOCK), q.dtype)
    found = np.empty((p_rows + 1, q_rows + 3))  # room for whole tiles
    for done in range(0, size, BLOCK):
        step = min(BLOCK, size - done)
        p_from, q_from = p_start + done, q_start + done
        p_sound &= survey(p, p_from, p_from + step, sums, p_block)
        q_sound &= survey(q, q_from, q_from + step, sums, q_block)
        p_count, q_count = active(p_block, p_active), active(q_block, q_active)
        p_distinct = _logits(p, p_from, p_active[:p_count], step, floor, p_logits)
        q_distinct = _logits(q, q_from, q_active[:q_count], step, floor, q_logits)
        if floor > 0:
            for a in range(p_distinct):
                for b in range(q_distinct):
                    found[a, b] = loss(p_logits, a, q_logits, b, step, floor)
        else:
            _losses(p_logits, p_distinct, q_logits, q_distinct, step, found)
        a = 0
        for i in range(p_rows):
            p_volumes[i] += p_block[i]
            row = a if p_block[i] != 0 else p_count
            a += p_block[i] != 0
            b = 0
            for j in range(q_rows):
                into[i, j] += found[row, b if q_block[j] != 0 else q_count]
                b += q_block[j] != 0
        for j in range(q_rows):
            q_volumes[j] += q_block[j]
    return p_sound, q_sound


@part
def _logits(rows: Rows, start: int, listed: Indices, size: int, floor: float, into: Rows) -> int:
    """Logits of the listed regions, each against the sum of the others; how many there are.

    One more follows where not all regions are listed: that of a region which is zero throughout
    the block, shared by all such regions.
    """
    stop = start + size
    count = listed.size
    rest = np.empty((count + 1, size), rows.dtype)
    others(rows, start, stop, listed, rest)
    for i in range(count):
        logit(rows[listed[i], start:stop], rest[i], floor, into, i)
    if count == rows.shape[0]:
        return count
    logit(np.zeros(size, rows.dtype), rest[count], floor, into, count)
    return count + 1


@part
def logit(a: Rows, b: Rows, floor: float, into: Rows, at: int) -> None:
    """The logit of (a, b), in two rows of `into`.

    log₂(a/b), and with a floor which of the two is absent: −1 where a is 0, 1 where b is.
    """
    real = a.dtype.type
    log_ratio(a, b, floor, into[2 * at])
    absent = into[2 * at + 1]
    if floor > 0:  # without a floor, equal logits say the same
        for k in range(a.size):
            absent[k] = real(b[k] == 0) - real(a[k] == 0)


@part
def log_ratio(a: Rows, b: Rows, floor: float, into: Rows) -> None:
    """log₂(a/b) after raising both to `floor`.

    ±CERTAIN where one of them is 0; they must not both be. The logarithm of a mantissa m is
    2 artanh s with s = (m − 1)/(m + 1), a series in s² that converges fast.
    """
    real = a.dtype.type
    low, one, half, none = real(floor), real(1), real(0.5), real(0)
    for k in range(a.size):
        x, y = max(a[k], low), max(b[k], low)
        ratio = min(x, y) * real(UPSCALE) / max(x, y)
        m = mantissa(ratio)
        power = exponent(ratio) - exponent(real(UPSCALE))
        large = m > real(math.sqrt(2))
        m = m * half if large else m
        power = power + one if large else power
        s = (m - one) / (m + one)
        t = s * s
        if a.itemsize == 4:
            tail = t * (real(1 / 3) + t * (real(1 / 5) + t * real(1 / 7)))
        else:
            tail = t * real(1 / 21)
            for term in (1 / 19, 1 / 17, 1 / 15, 1 / 13, 1 / 11, 1 / 9, 1 / 7, 1 / 5, 1 / 3):
                tail = t * (tail + real(term))
        logarithm = power + (s + s * tail) * real(2 / math.log(2))
        logarithm = real(-CERTAIN) if min(x, y) == none else logarithm
        into[k] = logarithm if x < y else -logarithm


@part
def _losses(p: Rows, p_count: int, q: Rows, q_count: int, size: int, into: Sums) -> None:
    """Sum of the loss for every pair of logits, when no floor is set.

    By tiles of two against four; where fewer are left, the last one is taken again.
    """
    last_p, last_q = p_count - 1, q_count - 1
    for a in range(0, p_count, 2):
        for b in range(0, q_count, 4):
            _tile(
                p[2 * a],
                p[2 * min(a + 1, last_p)],
                q[2 * b],
                q[2 * min(b + 1, last_q)],
                q[2 * min(b + 2, last_q)],
                q[2 * min(b + 3, last_q)],
                size,
                into[a : a + 2, b : b + 4],
            )


@part
def _tile(
    p0: Rows, p1: Rows, q0: Rows, q1: Rows, q2: Rows, q3: Rows, size: int, into: Sums
) -> None:
    """Eight sums at once, so that each value that is loaded is used several times."""
    unit, one = p0.dtype.type(UNIT), p0.dtype.type(1)
    into[:] = size
    for start in range(np.uint64(0), np.uint64(size), CHUNK):
        s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = p0.dtype.type(0)
        for k in range(start, min(start + CHUNK, np.uint64(size))):
            s00 += one / (one + unit * abs(p0[k] - q0[k]))
            s01 += one / (one + unit * abs(p0[k] - q1[k]))
            s02 += one / (one + unit * abs(p0[k] - q2[k]))
            s03 += one / (one + unit * abs(p0[k] - q3[k]))
            s10 += one / (one + unit * abs(p1[k] - q0[k]))
            s11 += one / (one + unit * abs(p1[k] - q1[k]))
            s12 += one / (one + unit * abs(p1[k] - q2[k]))
            s13 += one / (one + unit * abs(p1[k] - q3[k]))
        into[0, 0] -= s00
        into[0, 1] -= s01
        into[0, 2] -= s02
        into[0, 3] -= s03
        into[1, 0] -= s10
        into[1, 1] -= s11
        into[1, 2] -= s12
        into[1, 3] -= s13


@part
def loss(p: Rows, p_at: int, q: Rows, q_at: int, size: int, floor: float) -> float:
    """Sum of the loss of one pair of logits; 0 where both lack the same region."""
    p_logit, p_absent = p[2 * p_at], p[2 * p_at + 1]
    q_logit, q_absent = q[2 * q_at], q[2 * q_at + 1]
    unit, one, none = p.dtype.type(UNIT), p.dtype.type(1), p.dtype.type(0)
    total = 0.0
    for start in range(np.uint64(0), np.uint64(size), CHUNK):
        lost = none
        for k in range(start, min(start + CHUNK, np.uint64(size))):
            d = unit * abs(p_logit[k] - q_logit[k])
            both = floor > 0 and p_absent[k] * q_absent[k] > none
            lost += none if both else d / (one + d)
        total += lost
    return total


@kernel
def gains(
    p: Rows,
    p_start: int,
    groups: Indices,
    members: Indices,
    spare: Indices,
    rest: Indices,
    q: Rows,
    q_start: int,
    targets: Indices,
    size: int,
    floor: float,
    into: Sums,
) -> None:
    """Add the loss between group g with spare region u joined to it, and target g.

    `rest` lists the regions that are neither spare nor in one of these groups.
    """
    group_count = groups.size - 1
    every_q = np.arange(q.shape[0])
    singles = np.arange(group_count)
    joined = np.empty((group_count, BLOCK), p.dtype)
    other_groups = np.empty((group_count + 1, BLOCK), p.dtype)
    other_spares = np.empty((spare.size + 1, BLOCK), p.dtype)
    other_targets = np.empty((q.shape[0] + 1, BLOCK), p.dtype)
    left, scratch = np.empty(BLOCK, p.dtype), np.empty(BLOCK, p.dtype)
    inside, outside = np.empty(BLOCK, p.dtype), np.empty(BLOCK, p.dtype)
    logits = np.empty((4, BLOCK), p.dtype)
    for done in range(0, size, BLOCK):
        step = min(BLOCK, size - done)
        p_from, q_from = p_start + done, q_start + done
        for g in range(group_count):
            regions = members[groups[g] : groups[g + 1]]
            joined[g, :step] = join(p, p_from, p_from + step, regions, scratch)
        left[:step] = join(p, p_from, p_from + step, rest, scratch)
        others(joined, 0, step, singles, other_groups)
        others(p, p_from, p_from + step, spare, other_spares)
        others(q, q_from, q_from + step, every_q, other_targets)
        for g in range(group_count):
            target = q[targets[g], q_from : q_from + step]
            logit(target, other_targets[targets[g], :step], floor, logits, 1)
            group, apart = joined[g], other_groups[g]
            for u in range(spare.size):
                row, unjoined = p[spare[u], p_from : p_from + step], other_spares[u]
                for k in range(step):
                    inside[k] = group[k] + row[k]
                    outside[k] = (apart[k] + left[k]) + unjoined[k]
                logit(inside[:step], outside[:step], floor, logits, 0)
                into[g, u] += loss(logits, 0, logits, 1, step, floor)


@kernel
def pixels(
    p: Rows,
    p_start: int,
    p_groups: Indices,
    p_members: Indices,
    q: Rows,
    q_start: int,
    q_groups: Indices,
    q_members: Indices,
    size: int,
    floor: float,
    differences: Sums,
    f: Rows,
) -> tuple[float, int]:
    """f at every pixel between the groups of both sides; its loss in all, and how many are 0.

    The difference of every group is added on the way: its Dice follows from it.
    """
    real = p.dtype.type
    count = p_groups.size - 1
    p_scratch, q_scratch = np.empty(BLOCK, p.dtype), np.empty(BLOCK, p.dtype)
    ratios, here = np.empty((count, BLOCK), p.dtype), np.empty((count, BLOCK), p.dtype)
    present, mean = np.empty(BLOCK, p.dtype), np.empty(BLOCK, p.dtype)
    square, far = np.empty(BLOCK, p.dtype), np.empty(BLOCK, p.dtype)
    total = 0.0
    infinite = 0
    for done in range(0, size, BLOCK):
        step = min(BLOCK, size - done)
        p_from, q_from = p_start + done, q_start + done
        for k in range(step):
            present[k] = mean[k] = square[k] = far[k] = real(0)
        listed = 0
        for g in range(count):
            a = join(p, p_from, p_from + step, p_members[p_groups[g] : p_groups[g + 1]], p_scratch)
            b = join(q, q_from, q_from + step, q_members[q_groups[g] : q_groups[g + 1]], q_scratch)
            if is_zero(a) and is_zero(b):
                continue
            differences[g] += difference(a, b)
            ratio, shown = ratios[listed], here[listed]
            log_ratio(a, b, floor, ratio)
            for k in range(step):
                # A region that both lack is left out, of the mean and of the sum.
                shown[k] = real((a[k] > 0) | (b[k] > 0))
                ratio[k] = ratio[k] if shown[k] > 0 else real(0)
                far[k] = max(far[k], abs(ratio[k]))
                mean[k] += ratio[k]
                present[k] += shown[k]
            listed += 1
        for k in range(step):
            mean[k] /= max(present[k], real(1))
        for n in range(listed):
            ratio, shown = ratios[n], here[n]
            for k in range(step):
                centred = (ratio[k] - mean[k]) * shown[k]
                square[k] += centred * centred
        block_f = f[done : done + step]
        for k in range(step):
            d = np.sqrt(square[k]) * real(math.log(2))
            certain = far[k] >= real(CERTAIN)
            block_f[k] = real(0) if certain else real(1) / (real(1) + d)
            infinite += certain
            square[k] = real(1) if certain else d / (real(1) + d)
        total += volume(square[:step])
    return total, infinite
