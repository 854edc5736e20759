"""The aitchison similarity over the pixels of a block.

The distance between two vectors of two is |logit − logit| / √2. A logit is kept in base two and
in two parts, a whole number and a remainder: the difference of two logits near ±100 then keeps
the digits that a float32 logit would have lost. What is summed is the loss 1 − f, which is
exactly 0 where the sides are equal.
"""

import math

import numpy as np

from probdice.kernels._jit import exponent, kernel, mantissa
from probdice.kernels.absolute import difference
from probdice.kernels.rows import (
    CHUNK,
    Indices,
    Rows,
    Sums,
    active,
    join,
    others,
    survey,
    volume_and_signs,
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
    p_logits = np.empty((3 * (p_rows + 1), BLOCK), p.dtype)
    q_logits = np.empty((3 * (q_rows + 1), BLOCK), q.dtype)
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
                    found[a, b] = loss(p_logits, a, q_logits, b, step)
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


@kernel
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


@kernel
def logit(a: Rows, b: Rows, floor: float, into: Rows, at: int) -> None:
    """The logit of (a, b), in three rows of `into`.

    log₂(a/b) in two parts, and which of the two is absent: −1 where a is 0, 1 where b is.
    """
    real = a.dtype.type
    log_ratio(a, b, floor, into[3 * at], into[3 * at + 1])
    absent = into[3 * at + 2]
    for k in range(a.size):
        absent[k] = real(b[k] == 0) - real(a[k] == 0)


@kernel
def log_ratio(a: Rows, b: Rows, floor: float, whole: Rows, remainder: Rows) -> None:
    """log₂(a/b) after raising both to `floor`: a whole number, and a remainder within ±½.

    ±CERTAIN where one of them is 0, and 0 where both are. The logarithm of a mantissa m is
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
            tail = t * (real(1 / 3) + t * (real(1 / 5) + t * (real(1 / 7) + t * real(1 / 9))))
        else:
            tail = t * real(1 / 21)
            for term in (1 / 19, 1 / 17, 1 / 15, 1 / 13, 1 / 11, 1 / 9, 1 / 7, 1 / 5, 1 / 3):
                tail = t * (tail + real(term))
        fraction = (s + s * tail) * real(2 / math.log(2))
        certain = (x == none) | (y == none)
        power = real(-CERTAIN) if certain else power
        fraction = none if certain else fraction
        sign = one if x < y else -one
        sign = none if x == y else sign
        whole[k] = sign * power
        remainder[k] = sign * fraction


@kernel
def _losses(p: Rows, p_count: int, q: Rows, q_count: int, size: int, into: Sums) -> None:
    """Sum of the loss for every pair of logits, when no floor is set.

    By tiles of two against four; where fewer are left, the last one is taken again.
    """
    last_p, last_q = p_count - 1, q_count - 1
    for a in range(0, p_count, 2):
        p0, p1 = 3 * a, 3 * min(a + 1, last_p)
        for b in range(0, q_count, 4):
            q0, q1 = 3 * b, 3 * min(b + 1, last_q)
            q2, q3 = 3 * min(b + 2, last_q), 3 * min(b + 3, last_q)
            _tile(p, p0, p1, q, q0, q1, q2, q3, size, into[a : a + 2, b : b + 4])


@kernel
def _tile(
    p: Rows, p0: int, p1: int, q: Rows, q0: int, q1: int, q2: int, q3: int, size: int, into: Sums
) -> None:
    """Eight sums at once, so that each value that is loaded is used several times."""
    p0w, p0r, p1w, p1r = p[p0], p[p0 + 1], p[p1], p[p1 + 1]
    q0w, q0r, q1w, q1r = q[q0], q[q0 + 1], q[q1], q[q1 + 1]
    q2w, q2r, q3w, q3r = q[q2], q[q2 + 1], q[q3], q[q3 + 1]
    unit, one = p.dtype.type(UNIT), p.dtype.type(1)
    into[:] = 0
    for start in range(np.uint64(0), np.uint64(size), CHUNK):
        s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = p.dtype.type(0)
        for k in range(start, min(start + CHUNK, np.uint64(size))):
            s00 += _loss(p0w[k] - q0w[k], p0r[k] - q0r[k], unit, one)
            s01 += _loss(p0w[k] - q1w[k], p0r[k] - q1r[k], unit, one)
            s02 += _loss(p0w[k] - q2w[k], p0r[k] - q2r[k], unit, one)
            s03 += _loss(p0w[k] - q3w[k], p0r[k] - q3r[k], unit, one)
            s10 += _loss(p1w[k] - q0w[k], p1r[k] - q0r[k], unit, one)
            s11 += _loss(p1w[k] - q1w[k], p1r[k] - q1r[k], unit, one)
            s12 += _loss(p1w[k] - q2w[k], p1r[k] - q2r[k], unit, one)
            s13 += _loss(p1w[k] - q3w[k], p1r[k] - q3r[k], unit, one)
        into[0, 0] += s00
        into[0, 1] += s01
        into[0, 2] += s02
        into[0, 3] += s03
        into[1, 0] += s10
        into[1, 1] += s11
        into[1, 2] += s12
        into[1, 3] += s13


@kernel
def _loss(whole: float, remainder: float, unit: float, one: float) -> float:
    """1 − f of two logits, from the differences of their parts."""
    d = abs(whole + remainder) * unit
    return d / (one + d)


@kernel
def loss(p: Rows, p_at: int, q: Rows, q_at: int, size: int) -> float:
    """Sum of the loss of one pair of logits; 0 where both lack the same region."""
    p_whole, p_rest, p_absent = p[3 * p_at], p[3 * p_at + 1], p[3 * p_at + 2]
    q_whole, q_rest, q_absent = q[3 * q_at], q[3 * q_at + 1], q[3 * q_at + 2]
    unit, one, none = p.dtype.type(UNIT), p.dtype.type(1), p.dtype.type(0)
    total = 0.0
    for start in range(np.uint64(0), np.uint64(size), CHUNK):
        part = none
        for k in range(start, min(start + CHUNK, np.uint64(size))):
            lost = _loss(p_whole[k] - q_whole[k], p_rest[k] - q_rest[k], unit, one)
            part += none if p_absent[k] * q_absent[k] > none else lost
        total += part
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
    left = np.empty((1, BLOCK), p.dtype)
    inside, outside = np.empty(BLOCK, p.dtype), np.empty(BLOCK, p.dtype)
    logits = np.empty((6, BLOCK), p.dtype)
    bounds = np.array([0, rest.size])
    for done in range(0, size, BLOCK):
        step = min(BLOCK, size - done)
        p_from, q_from = p_start + done, q_start + done
        join(p, p_from, p_from + step, groups, members, joined)
        join(p, p_from, p_from + step, bounds, rest, left)
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
                    outside[k] = (apart[k] + left[0, k]) + unjoined[k]
                logit(inside[:step], outside[:step], floor, logits, 0)
                into[g, u] += loss(logits, 0, logits, 1, step)


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
    p_joined, q_joined = np.empty((count, BLOCK), p.dtype), np.empty((count, BLOCK), p.dtype)
    ratios = np.empty((count, BLOCK), p.dtype)
    whole, remainder = np.empty(BLOCK, p.dtype), np.empty(BLOCK, p.dtype)
    present, mean = np.empty(BLOCK, p.dtype), np.empty(BLOCK, p.dtype)
    square, far = np.empty(BLOCK, p.dtype), np.empty(BLOCK, p.dtype)
    listed = np.empty(count, np.int64)
    total = 0.0
    infinite = 0
    for done in range(0, size, BLOCK):
        step = min(BLOCK, size - done)
        p_from, q_from = p_start + done, q_start + done
        join(p, p_from, p_from + step, p_groups, p_members, p_joined)
        join(q, q_from, q_from + step, q_groups, q_members, q_joined)
        for k in range(step):
            present[k] = mean[k] = square[k] = far[k] = real(0)
        active_count = 0
        for g in range(count):
            a, b, ratio = p_joined[g, :step], q_joined[g, :step], ratios[g]
            if volume_and_signs(a)[0] + volume_and_signs(b)[0] == 0:
                continue
            listed[active_count] = g
            active_count += 1
            differences[g] += difference(a, b)
            log_ratio(a, b, floor, whole, remainder)
            for k in range(step):
                ratio[k] = whole[k] + remainder[k]
                far[k] = max(far[k], abs(ratio[k]))
                mean[k] += ratio[k]
                present[k] += real((a[k] > 0) | (b[k] > 0))
        for k in range(step):
            mean[k] /= max(present[k], real(1))
        for g in listed[:active_count]:
            a, b, ratio = p_joined[g, :step], q_joined[g, :step], ratios[g]
            for k in range(step):
                centred = ratio[k] - mean[k] if (a[k] > 0) | (b[k] > 0) else real(0)
                square[k] += centred * centred
        block_f = f[done : done + step]
        for k in range(step):
            d = np.sqrt(square[k]) * real(math.log(2))
            certain = far[k] >= real(CERTAIN)
            block_f[k] = real(0) if certain else real(1) / (real(1) + d)
            infinite += certain
            square[k] = real(1) if certain else d / (real(1) + d)
        total += volume_and_signs(square[:step])[0]
    return total, infinite
