"""Kernels of the absolute similarity, for the pixels of a block.

`pairs` sums the overlap min(p_i, q_j) of every pair of regions. `joined` sums |p − q| for groups
with one additional region. `pixels` writes f at every pixel and sums |p − q| for each group.
"""

import numpy as np

from probdice.compiler.jit import inner, kernel, smaller
from probdice.engine.kernels.rows import (
    FLOAT32_SUM_LENGTH,
    Indices,
    Rows,
    Sums,
    active,
    equal,
    join,
    nearly,
    survey,
)
from probdice.engine.kernels.tiles import PADDING, pair_sums_of

STEP = 4096  # number of pixels whose rows stay in the cache while all pairs of rows are visited


_minima = pair_sums_of(smaller)


@kernel
def pairs(
    p: Rows,
    p_start: int,
    q: Rows,
    q_start: int,
    size: int,
    p_volumes: Sums,
    q_volumes: Sums,
    p_likeliest: Indices,
    q_likeliest: Indices,
    savings: Sums,
) -> tuple[bool, bool]:
    """Add Σ min(p_i, q_j) to `savings`, and the sum of each row to `p_volumes` or `q_volumes`.

    For each region, the number of pixels at which it is the most probable is added to `p_likeliest`
    or `q_likeliest`. Return, per side, whether the values are known to be valid (see `survey`).
    """
    p_sound = q_sound = True
    p_step, q_step = np.empty(p.shape[0]), np.empty(q.shape[0])
    p_active, q_active = np.empty(p.shape[0], np.int64), np.empty(q.shape[0], np.int64)
    shared = np.empty((p.shape[0] + PADDING, q.shape[0] + PADDING))
    for done in range(0, size, STEP):
        step = min(STEP, size - done)
        p_from, q_from = p_start + done, q_start + done
        p_sound &= survey(p, p_from, p_from + step, p_step, p_likeliest)
        q_sound &= survey(q, q_from, q_from + step, q_step, q_likeliest)
        for i in range(p.shape[0]):
            p_volumes[i] += p_step[i]
        for j in range(q.shape[0]):
            q_volumes[j] += q_step[j]
        p_listed = p_active[: active(p_step, p_active)]
        q_listed = q_active[: active(q_step, q_active)]
        _minima(
            p, p_from, p_listed, q, q_from, q_listed, step, shared,
            p, p_from + step, q, q_from + step,
        )  # fmt: skip
        for a in range(p_listed.size):
            for b in range(q_listed.size):
                i, j = p_listed[a], q_listed[b]
                saving = shared[a, b]
                # If two rows are equal, their volume is used, so that the order of summation has
                # no effect.
                if (
                    nearly(saving, p_step[i])
                    and nearly(saving, q_step[j])
                    and equal(p[i, p_from : p_from + step], q[j, q_from : q_from + step])
                ):
                    saving = p_step[i]
                savings[i, j] += saving
    return p_sound, q_sound


@inner
def difference(p: Rows, q: Rows) -> float:
    """Return the sum of |p − q| over the pixels of two rows."""
    size = np.uint64(p.size)
    total = 0.0
    for start in range(np.uint64(0), size, FLOAT32_SUM_LENGTH):
        short = p.dtype.type(0)
        for k in range(start, min(start + FLOAT32_SUM_LENGTH, size)):
            short += abs(p[k] - q[k])
        total += short
    return total


@kernel
def joined(
    p: Rows,
    p_start: int,
    p_groups: Indices,
    p_members: Indices,
    unmatched: Indices,
    q: Rows,
    q_start: int,
    q_groups: Indices,
    q_members: Indices,
    size: int,
    into: Sums,
) -> None:
    """Add Σ|p − q| for each group extended by each unmatched row of p."""
    p_scratch, q_scratch = np.empty(STEP, p.dtype), np.empty(STEP, p.dtype)
    with_unmatched = np.empty(STEP, p.dtype)
    for done in range(0, size, STEP):
        step = min(STEP, size - done)
        p_from, q_from = p_start + done, q_start + done
        for g in range(p_groups.size - 1):
            a = join(p, p_from, p_from + step, p_members[p_groups[g] : p_groups[g + 1]], p_scratch)
            b = join(q, q_from, q_from + step, q_members[q_groups[g] : q_groups[g + 1]], q_scratch)
            for u in range(unmatched.size):
                row = p[unmatched[u], p_from : p_from + step]
                for k in range(step):
                    with_unmatched[k] = a[k] + row[k]
                into[g, u] += difference(with_unmatched[:step], b)


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
    differences: Sums,
    into: Rows,
) -> None:
    """Write f at every pixel, and add Σ|p − q| of each group to `differences`."""
    real = p.dtype.type
    p_scratch, q_scratch = np.empty(STEP, p.dtype), np.empty(STEP, p.dtype)
    for done in range(0, size, STEP):
        step = min(STEP, size - done)
        p_from, q_from = p_start + done, q_start + done
        f = into[done : done + step]
        f[:] = real(0)
        for g in range(p_groups.size - 1):
            a = join(p, p_from, p_from + step, p_members[p_groups[g] : p_groups[g + 1]], p_scratch)
            b = join(q, q_from, q_from + step, q_members[q_groups[g] : q_groups[g + 1]], q_scratch)
            differences[g] += difference(a, b)
            for k in range(step):
                f[k] += abs(a[k] - b[k])
        for k in range(step):
            f[k] = min(max(real(1) - real(0.5) * f[k], real(0)), real(1))
