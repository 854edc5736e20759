"""Sums of products, which are used for covariances."""

import numpy as np

from probdice.compiler.jit import inner, kernel
from probdice.engine.kernels.rows import Indices, Rows, Sums
from probdice.engine.kernels.tiles import ROOM, pair_sums_of

STEP = 1024  # number of pixels whose rows stay in the cache while all pairs of rows are visited


@inner
def _product(x: float, y: float) -> float:
    return np.float64(x) * np.float64(y)


_products = pair_sums_of(_product)


@kernel
def products(p: Rows, p_start: int, q: Rows, q_start: int, size: int, into: Sums) -> None:
    """Add Σ p_i q_j in float64, because covariances are small differences between these sums."""
    p_rows, q_rows = np.empty(p.shape[0], np.int64), np.empty(q.shape[0], np.int64)
    sums = np.empty((p.shape[0] + ROOM[0], q.shape[0] + ROOM[1]))
    for done in range(0, size, STEP):
        step = min(STEP, size - done)
        p_from, q_from = p_start + done, q_start + done
        p_listed = p_rows[: _present(p, p_from, p_from + step, p_rows)]
        q_listed = q_rows[: _present(q, q_from, q_from + step, q_rows)]
        _products(
            p, p_from, p_listed, q, q_from, q_listed, step, sums,
            p, p_from + step, q, q_from + step,
        )  # fmt: skip
        for a in range(p_listed.size):
            for b in range(q_listed.size):
                into[p_listed[a], q_listed[b]] += sums[a, b]


@inner
def _present(rows: Rows, start: int, stop: int, into: Indices) -> int:
    """List the rows that are not zero everywhere, and return their number."""
    count = 0
    for i in range(rows.shape[0]):
        row = rows[i, start:stop]
        positive = 0
        for k in range(row.size):
            positive |= row[k] > 0
        if positive:
            into[count] = i
            count += 1
    return count
