"""The Aitchison similarity over the pixels of a block.

The distance between two vectors with two entries is the absolute difference of their logits,
divided by √2. Logits have base 2, because base-2 logarithms can be computed from the bits of a
floating-point number. In float32, the error of the logit of 1e-38 is 4e-6. An error of a logit
changes f by at most this error times ln 2 / √2.

`pairs` adds the saving of every pair of regions, and `joined` adds the losses 1 − f of groups with
one additional region. `pixels` writes f at every pixel.
"""

import math

import numpy as np

from probdice.compiler.jit import alike, inner, kernel
from probdice.engine.kernels.absolute import difference
from probdice.engine.kernels.logarithms import CERTAIN_LOGIT, log_ratio, log_ratio_positive, logit
from probdice.engine.kernels.rows import (
    FLOAT32_SUM_LENGTH,
    Indices,
    Rows,
    Sums,
    active,
    equal,
    join,
    nearly,
    others,
    survey_rest,
    volume,
)
from probdice.engine.kernels.tiles import PADDING, load_part, pair_sums_of

STEP = 1024  # pixels whose logits stay in the cache while every pair of rows is visited
UNIT = math.log(2) / math.sqrt(2)  # converts a difference of base-2 logits to a distance


@inner
def _similar(x: float, y: float) -> float:
    """Return f of two logits."""
    one = alike(1.0, x)
    return one / (one + alike(UNIT, x) * abs(x - y))


@inner
def _one_more(x: float, y: float) -> float:
    """Return 1 + f of two logits, or 0 if f is 0."""
    f = _similar(x, y)
    return f + alike(1.0, x) if f > alike(0.0, x) else alike(0.0, x)


@inner
def _two_similar(x: float, y: float, x_next: float, y_next: float) -> float:
    """Return the sum of f at two pixels with one division. No logit may be infinite.

    The identity 1/a + 1/b = (a + b) / (a b) saves a division. Divisions take most of the time.
    """
    one, unit = alike(1.0, x), alike(UNIT, x)
    a, b = one + unit * abs(x - y), one + unit * abs(x_next - y_next)
    return (a + b) / (a * b)


_similarities = pair_sums_of(_similar, _two_similar)
_similarities_and_one = pair_sums_of(_one_more)


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
    p_likeliest: Indices,
    q_likeliest: Indices,
    p_alone: Sums,
    q_alone: Sums,
    savings: Sums,
) -> tuple[bool, bool]:
    """Add the volumes, the losses against an empty region, and the savings of every pair.

    The number of pixels at which a region is the most probable is added to `p_likeliest` or
    `q_likeliest`. A pair saves ½ (ℓ(p_i, 0) + ℓ(0, q_j) − ℓ(p_i, q_j)) at every pixel where both
    regions are present. ℓ(a, b) is 1 − f of the vectors (a, 1 − a) and (b, 1 − b). Without a floor,
    ℓ(p_i, 0) is 1 at these pixels, so the saving is ½ (1 + f). Return, per side, whether the values
    are known to be valid (see `survey`).
    """
    p_sound = q_sound = True
    p_count, q_count = p.shape[0], q.shape[0]
    p_largest, q_largest = np.empty(STEP, p.dtype), np.empty(STEP, p.dtype)
    p_rest, q_rest = np.empty(STEP, p.dtype), np.empty(STEP, p.dtype)
    p_step, q_step = np.empty(p_count), np.empty(q_count)
    p_active, q_active = np.empty(p_count, np.int64), np.empty(q_count, np.int64)
    p_losses, q_losses = np.empty(p_count), np.empty(q_count)
    p_logits, q_logits = np.empty((p_count, STEP), p.dtype), np.empty((q_count, STEP), p.dtype)
    with_floor = 1 if floor > 0 else 0
    p_alones = np.empty((p_count * with_floor, STEP), p.dtype)
    q_alones = np.empty((q_count * with_floor, STEP), p.dtype)
    saved = np.empty((p_count + PADDING, q_count + PADDING))
    every = np.arange(max(p_count, q_count))
    for done in range(0, size, STEP):
        step = min(STEP, size - done)
        p_from, q_from = p_start + done, q_start + done
        p_sound &= survey_rest(p, p_from, p_from + step, p_largest, p_rest, p_step, p_likeliest)
        q_sound &= survey_rest(q, q_from, q_from + step, q_largest, q_rest, q_step, q_likeliest)
        p_listed = p_active[: active(p_step, p_active)]
        q_listed = q_active[: active(q_step, q_active)]
        zeros = _logits(
            p, p_from, p_listed, step, floor, p_largest, p_rest, -np.inf,
            p_logits, p_alones, p_losses,
        )  # fmt: skip
        zeros |= _logits(
            q, q_from, q_listed, step, floor, q_largest, q_rest, np.inf,
            q_logits, q_alones, q_losses,
        )  # fmt: skip
        if floor > 0:
            _savings_floor(
                p_logits, p_alones, p_listed.size, q_logits, q_alones, q_listed.size, step, saved
            )
        else:
            _savings(
                p_logits, every[: p_listed.size], q_logits, every[: q_listed.size],
                step, zeros, saved, p, p_from + step, q, q_from + step,
            )  # fmt: skip
        for i in range(p_count):
            p_volumes[i] += p_step[i]
        for j in range(q_count):
            q_volumes[j] += q_step[j]
        for a in range(p_listed.size):
            p_alone[p_listed[a]] += p_losses[a]
        for b in range(q_listed.size):
            q_alone[q_listed[b]] += q_losses[b]
        for a in range(p_listed.size):
            for b in range(q_listed.size):
                saving = saved[a, b]
                # For equal rows, the saving is exactly the loss of one row against an empty
                # region.
                if (
                    floor > 0
                    and nearly(saving, p_losses[a])
                    and nearly(saving, q_losses[b])
                    and equal(p_alones[a, :step], q_alones[b, :step])
                ):
                    saving = p_losses[a]
                savings[p_listed[a], q_listed[b]] += saving
    return p_sound, q_sound


@inner
def _logits(
    rows: Rows,
    start: int,
    listed: Indices,
    size: int,
    floor: float,
    largest: Rows,
    rest: Rows,
    absent: float,
    logits: Rows,
    alones: Rows,
    losses: Sums,
) -> bool:
    """Write the logits of the listed regions; return whether a region is absent from a pixel.

    `survey_rest` computes `largest` and `rest`. At a pixel from which a region is absent, its logit
    is set to `absent`: −∞ on one side and +∞ on the other. f of this logit and any logit of the
    other side is therefore exactly 0. The total loss of each listed region against an empty region
    is written to `losses`. With a floor, the loss at every pixel is written to `alones`.
    """
    real = rows.dtype.type
    one, none, unit = real(1), real(0), real(UNIT)
    others = np.empty(size, rows.dtype)
    zeros = False
    for n in range(listed.size):
        row, logit = rows[listed[n], start : start + size], logits[n]
        absences = 0
        for k in range(size):
            value = row[k]
            # Only the largest region requires `rest`. For all other regions, the difference is
            # accurate.
            others[k] = rest[k] if value == largest[k] else (largest[k] - value) + rest[k]
            absences += (value == none) | (others[k] == none)
        if absences == 0 and floor == 0:
            log_ratio_positive(row, others, logit)
            losses[n] = size
            continue
        log_ratio(row, others, floor, logit)
        present = 0
        for k in range(size):
            present += row[k] > none
        if floor > 0:
            alone, empty = alones[n], real(math.log2(floor))
            for k in range(size):
                d = unit * abs(logit[k] - empty)
                alone[k] = d / (one + d) if row[k] > none else none
            losses[n] = volume(alone[:size])
        else:
            losses[n] = present
        if present < size:
            zeros = True
            for k in range(size):
                logit[k] = logit[k] if row[k] > none else real(absent)
    return zeros


@inner
def _savings(
    p: Rows, p_rows: Indices, q: Rows, q_rows: Indices, size: int, zeros: bool, into: Sums,
    p_next: Rows, p_next_start: int, q_next: Rows, q_next_start: int,
) -> None:  # fmt: skip
    """Write the savings of pairs of logits without a floor: ½ (1 + f) where both are present."""
    if zeros:
        _similarities_and_one(
            p, 0, p_rows, q, 0, q_rows, size, into, p_next, p_next_start, q_next, q_next_start
        )
    else:
        _similarities(
            p, 0, p_rows, q, 0, q_rows, size, into, p_next, p_next_start, q_next, q_next_start
        )
    everywhere = 0 if zeros else size
    for a in range(p_rows.size):
        for b in range(q_rows.size):
            into[a, b] = 0.5 * (into[a, b] + everywhere)


@inner
def _savings_floor(
    p: Rows,
    p_alones: Rows,
    p_count: int,
    q: Rows,
    q_alones: Rows,
    q_count: int,
    size: int,
    into: Sums,
) -> None:
    """Write the savings of every pair of logits with a floor; 0 where a region is absent."""
    unit, one, none = p.dtype.type(UNIT), p.dtype.type(1), p.dtype.type(0)
    for a in range(p_count):
        p_logit, p_alone = p[a], p_alones[a]
        for b in range(q_count):
            q_logit, q_alone = q[b], q_alones[b]
            total = 0.0
            for start in range(np.uint64(0), np.uint64(size), FLOAT32_SUM_LENGTH):
                short = none
                for k in range(start, min(start + FLOAT32_SUM_LENGTH, np.uint64(size))):
                    f = one / (one + unit * abs(p_logit[k] - q_logit[k]))
                    short += max(p_alone[k] + (q_alone[k] - (one - f)), none)
                total += short
            into[a, b] = 0.5 * total


@inner
def _loss(p: Rows, p_at: int, q: Rows, q_at: int, size: int, floor: float) -> float:
    """Return the sum of 1 − f over the pixels of two rows of logits.

    With a floor, a pixel at which the same entry of both binary vectors is 0 adds 0.
    """
    p_logit, p_absent = p[2 * p_at], p[2 * p_at + 1]
    q_logit, q_absent = q[2 * q_at], q[2 * q_at + 1]
    unit, one, none = p.dtype.type(UNIT), p.dtype.type(1), p.dtype.type(0)
    total = 0.0
    for start in range(np.uint64(0), np.uint64(size), FLOAT32_SUM_LENGTH):
        lost = none
        for k in range(start, min(start + FLOAT32_SUM_LENGTH, np.uint64(size))):
            d = unit * abs(p_logit[k] - q_logit[k])
            both = floor > 0 and p_absent[k] * q_absent[k] > none
            lost += none if both else d / (one + d)
        total += lost
    return total


@inner
def _outside(
    rows: Rows, start: int, size: int, groups: Indices, members: Indices, rest: Indices,
    joined: Rows, others_of: Rows, left: Rows,
) -> None:  # fmt: skip
    """Write the sum of the rows in each group, in all other groups, and in no group (`rest`)."""
    scratch = np.empty(size, rows.dtype)
    count = groups.size - 1
    for g in range(count):
        joined[g, :size] = join(
            rows, start, start + size, members[groups[g] : groups[g + 1]], scratch
        )
    left[:size] = join(rows, start, start + size, rest, scratch)
    others(joined, 0, size, np.arange(count), others_of)


@kernel
def joined(
    p: Rows,
    p_start: int,
    p_groups: Indices,
    p_members: Indices,
    p_rest: Indices,
    unmatched: Indices,
    q: Rows,
    q_start: int,
    q_groups: Indices,
    q_members: Indices,
    q_rest: Indices,
    size: int,
    floor: float,
    into: Sums,
) -> None:
    """Add the loss of each group extended by each unmatched row of p.

    `p_rest` lists the rows of p that are neither unmatched nor in one of these groups. `q_rest`
    lists the rows of q that are in none of these groups.
    """
    count = p_groups.size - 1
    p_joined, q_joined = np.empty((count, STEP), p.dtype), np.empty((count, STEP), p.dtype)
    p_others = np.empty((count + 1, STEP), p.dtype)
    q_others = np.empty((count + 1, STEP), p.dtype)
    other_unmatched = np.empty((unmatched.size + 1, STEP), p.dtype)
    p_left, q_left = np.empty(STEP, p.dtype), np.empty(STEP, p.dtype)
    inside, outside = np.empty(STEP, p.dtype), np.empty(STEP, p.dtype)
    logits = np.empty((4, STEP), p.dtype)
    for done in range(0, size, STEP):
        step = min(STEP, size - done)
        p_from, q_from = p_start + done, q_start + done
        _outside(p, p_from, step, p_groups, p_members, p_rest, p_joined, p_others, p_left)
        _outside(q, q_from, step, q_groups, q_members, q_rest, q_joined, q_others, q_left)
        others(p, p_from, p_from + step, unmatched, other_unmatched)
        for g in range(count):
            for k in range(step):
                outside[k] = q_others[g, k] + q_left[k]
            logit(q_joined[g, :step], outside[:step], floor, logits, 1)
            group, apart = p_joined[g], p_others[g]
            for u in range(unmatched.size):
                row, unjoined = p[unmatched[u], p_from : p_from + step], other_unmatched[u]
                for k in range(step):
                    inside[k] = group[k] + row[k]
                    outside[k] = (apart[k] + p_left[k]) + unjoined[k]
                logit(inside[:step], outside[:step], floor, logits, 0)
                into[g, u] += _loss(logits, 0, logits, 1, step, floor)


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
    """Write f at every pixel; return the total loss and the number of pixels with f = 0.

    Σ|p − q| of every group is added to `differences`, and determines the Dice of the group.
    """
    real = p.dtype.type
    count = p_groups.size - 1
    p_scratch, q_scratch = np.empty(STEP, p.dtype), np.empty(STEP, p.dtype)
    ratios, shown = np.empty((count, STEP), p.dtype), np.empty((count, STEP), p.dtype)
    everywhere = np.empty(count, np.bool_)
    present, mean = np.empty(STEP, p.dtype), np.empty(STEP, p.dtype)
    square, far = np.empty(STEP, p.dtype), np.empty(STEP, p.dtype)
    total = 0.0
    infinite = 0
    for done in range(0, size, STEP):
        step = min(STEP, size - done)
        p_from, q_from = p_start + done, q_start + done
        for k in range(step):
            present[k] = mean[k] = square[k] = far[k] = real(0)
        listed = 0
        for g in range(count):
            load_part(p, p_from + step, q, q_from + step, STEP, 2 * g, 2 * count)
            a = join(p, p_from, p_from + step, p_members[p_groups[g] : p_groups[g + 1]], p_scratch)
            b = join(q, q_from, q_from + step, q_members[q_groups[g] : q_groups[g + 1]], q_scratch)
            absences = _zeros(a) + _zeros(b)
            load_part(p, p_from + step, q, q_from + step, STEP, 2 * g + 1, 2 * count)
            if absences == 2 * step:
                continue
            differences[g] += difference(a, b)
            everywhere[listed] = absences == 0
            _add_ratios(a, b, floor, everywhere[listed], ratios[listed], shown[listed],
                        mean, present, far)  # fmt: skip
            listed += 1
        for k in range(step):
            mean[k] /= max(present[k], real(1))
        for n in range(listed):
            ratio, visible = ratios[n], shown[n]
            if everywhere[n]:
                for k in range(step):
                    centred = ratio[k] - mean[k]
                    square[k] += centred * centred
            else:
                for k in range(step):
                    centred = (ratio[k] - mean[k]) * visible[k]
                    square[k] += centred * centred
        step_f = f[done : done + step]
        for k in range(step):
            d = np.sqrt(square[k]) * real(math.log(2))
            certain = far[k] >= real(CERTAIN_LOGIT)
            step_f[k] = real(0) if certain else real(1) / (real(1) + d)
            infinite += certain
            square[k] = real(1) if certain else d / (real(1) + d)
        total += volume(square[:step])
    return total, infinite


@inner
def _zeros(row: Rows) -> int:
    """Return the number of zeros in a row."""
    count = 0
    for k in range(row.size):
        count += row[k] == 0
    return count


@inner
def _add_ratios(
    a: Rows, b: Rows, floor: float, everywhere: bool,
    ratio: Rows, visible: Rows, total: Rows, present: Rows, far: Rows,
) -> None:  # fmt: skip
    """Add log₂(a/b) to `total` at every pixel, except where a and b are both 0."""
    real = a.dtype.type
    if everywhere and floor == 0:
        log_ratio_positive(a, b, ratio)
    else:
        log_ratio(a, b, floor, ratio)
    if everywhere:
        for k in range(a.size):
            total[k] += ratio[k]
            present[k] += real(1)
        return
    for k in range(a.size):
        visible[k] = real((a[k] > 0) | (b[k] > 0))
        ratio[k] = ratio[k] if visible[k] > 0 else real(0)
        far[k] = max(far[k], abs(ratio[k]))
        total[k] += ratio[k]
        present[k] += visible[k]
