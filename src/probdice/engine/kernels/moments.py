"""Sums and sums of products, which are used for covariances."""

import numpy as np

from probdice.compiler.jit import inner, kernel
from probdice.engine.kernels.rows import Indices, Rows, Sums
from probdice.engine.kernels.tiles import PADDING, pair_sums_of

STEP = 1024  # number of pixels whose rows stay in the cache while all pairs of rows are visited


@inner
def _product(x: float, y: float) -> float:
    return np.float64(x) * np.float64(y)


_products = pair_sums_of(_product)


@kernel
def moments(
    p: Rows,
    p_start: int,
    q: Rows,
    q_start: int,
    size: int,
    p_volumes: Sums,
    q_volumes: Sums,
    p_products: Sums,
    q_products: Sums,
    cross_products: Sums,
) -> None:
    """Add Σ p_i, Σ q_j, Σ p_i p_j, Σ q_i q_j and Σ p_i q_j.

    All sums are float64, because covariances are small differences between these sums.
    """
    p_rows, q_rows = np.empty(p.shape[0], np.int64), np.empty(q.shape[0], np.int64)
    most = max(p.shape[0], q.shape[0])
    sums = np.empty((most + PADDING, most + PADDING))
    for done in range(0, size, STEP):
        step = min(STEP, size - done)
        p_from, q_from = p_start + done, q_start + done
        p_listed = p_rows[: _add_volumes(p, p_from, p_from + step, p_volumes, p_rows)]
        q_listed = q_rows[: _add_volumes(q, q_from, q_from + step, q_volumes, q_rows)]
        _add_products(p, p_from, p_listed, p, p_from, p_listed, step, sums, p_products)
        _add_products(q, q_from, q_listed, q, q_from, q_listed, step, sums, q_products)
        _add_products(p, p_from, p_listed, q, q_from, q_listed, step, sums, cross_products)


@inner
def _add_products(
    p: Rows, p_from: int, p_listed: Indices, q: Rows, q_from: int, q_listed: Indices, step: int,
    sums: Sums, into: Sums,
) -> None:  # fmt: skip
    """Add the sum of products of every pair of listed rows."""
    _products(
        p, p_from, p_listed, q, q_from, q_listed, step, sums, p, p_from + step, q, q_from + step
    )
    for a in range(p_listed.size):
        for b in range(q_listed.size):
            into[p_listed[a], q_listed[b]] += sums[a, b]


@inner
def _add_volumes(rows: Rows, start: int, stop: int, volumes: Sums, listed: Indices) -> int:
    """Add the sum of each row. List the non-zero rows, and return their number."""
    count = 0
    for i in range(rows.shape[0]):
        row = rows[i, start:stop]
        volume = 0.0
        for k in range(row.size):
            volume += np.float64(row[k])
        if volume > 0:
            volumes[i] += volume
            listed[count] = i
            count += 1
    return count
