"""Sums over the pixels for every pair of rows, computed in tiles of several rows."""

from collections.abc import Callable
from typing import cast

import numpy as np

from probdice.compiler.jit import alike, inlined, inner, prefetch
from probdice.engine.kernels.rows import FLOAT32_SUM_LENGTH, Indices, Rows, Sums

SIDE = 4  # number of rows of p and of q in a tile
PADDING = SIDE - 1  # rows and columns of the output that tiles may use beyond the listed rows

LINE = 64  # number of bytes in a cache line

Four = tuple[float, float, float, float]
Value = Callable[[float, float], float]
TwoValues = Callable[[float, float, float, float], float]
PairSums = Callable[[Rows, int, Indices, Rows, int, Indices, int, Sums, Rows, int, Rows, int], None]


def pair_sums_of(value: Value, two: TwoValues | None = None) -> PairSums:
    """Return a compiled function that sums value(p_i, q_j) over the pixels for every pair.

    The optional two(p_i, q_j, p_i', q_j') returns the sum of the values of two pixels. It should
    take less time than two calls of `value`.
    """

    tile = _tile_of(value, two)

    @inner
    def pair_sums(
        p: Rows,
        p_start: int,
        p_rows: Indices,
        q: Rows,
        q_start: int,
        q_rows: Indices,
        size: int,
        into: Sums,
        p_next: Rows,
        p_next_start: int,
        q_next: Rows,
        q_next_start: int,
    ) -> None:
        """Sum the values of all pairs of rows, in tiles of four rows of p and four rows of q.

        If fewer rows remain, the last row is repeated. Between the sums, the same number of pixels
        of `p_next` and `q_next` is loaded into the cache, a few lines at a time. Requesting all
        lines at once would delay the sums.
        """
        last_p, last_q = p_rows.size - 1, q_rows.size - 1
        line, last_line = 0, -(-size * p_next.itemsize // LINE)
        tiles = -(-p_rows.size // SIDE) * -(-q_rows.size // SIDE)
        parts = -(-size // int(FLOAT32_SUM_LENGTH))
        lines = -(-last_line // max(tiles * parts, 1))
        for a in range(0, p_rows.size, SIDE):
            for b in range(0, q_rows.size, SIDE):
                tile(
                    p[p_rows[a], p_start : p_start + size],
                    p[p_rows[min(a + 1, last_p)], p_start : p_start + size],
                    p[p_rows[min(a + 2, last_p)], p_start : p_start + size],
                    p[p_rows[min(a + 3, last_p)], p_start : p_start + size],
                    q[q_rows[b], q_start : q_start + size],
                    q[q_rows[min(b + 1, last_q)], q_start : q_start + size],
                    q[q_rows[min(b + 2, last_q)], q_start : q_start + size],
                    q[q_rows[min(b + 3, last_q)], q_start : q_start + size],
                    into[a : a + SIDE, b : b + SIDE],
                    p_next, p_next_start, q_next, q_next_start, line, lines, last_line,
                )  # fmt: skip
                line += lines * parts

    return pair_sums


def _tile_of(value: Value, two: TwoValues | None) -> Callable[..., None]:
    """Return a function that sums value(p_i, q_j) for four rows of p and four rows of q."""

    paired, both = two is not None, cast(TwoValues, two)

    @inlined
    def add(sums: Four, x: float, y: Four) -> Four:
        """Add the values of one row of p and four rows of q at one pixel."""
        return (
            sums[0] + value(x, y[0]),
            sums[1] + value(x, y[1]),
            sums[2] + value(x, y[2]),
            sums[3] + value(x, y[3]),
        )

    @inlined
    def add_both(sums: Four, x: float, y: Four, x_next: float, y_next: Four) -> Four:
        """Add the values at two pixels."""
        return (
            sums[0] + both(x, y[0], x_next, y_next[0]),
            sums[1] + both(x, y[1], x_next, y_next[1]),
            sums[2] + both(x, y[2], x_next, y_next[2]),
            sums[3] + both(x, y[3], x_next, y_next[3]),
        )

    @inner
    def tile(
        p0: Rows, p1: Rows, p2: Rows, p3: Rows, q0: Rows, q1: Rows, q2: Rows, q3: Rows, into: Sums,
        p_next: Rows, p_next_start: int, q_next: Rows, q_next_start: int,
        line: int, lines: int, last_line: int,
    ) -> None:  # fmt: skip
        """Compute sixteen sums in one loop, so that each loaded value is used several times."""
        size = np.uint64(p0.size)
        zero = p0.dtype.type(0)
        none = alike(0.0, value(zero, zero))  # sums have the type of the values
        into[:] = 0
        for start in range(np.uint64(0), size, FLOAT32_SUM_LENGTH):
            stop_line = min(line + lines, last_line)
            _load(p_next, p_next_start, line, stop_line)
            _load(q_next, q_next_start, line, stop_line)
            line = stop_line
            s0 = s1 = s2 = s3 = (none, none, none, none)
            first, stop = np.uint64(start), min(start + FLOAT32_SUM_LENGTH, size)
            if paired:  # then at most one pixel is left
                half = (stop - start) // np.uint64(2)
                first = start + half + half
                for k in range(start, start + half):
                    m = k + half
                    y, y_next = (q0[k], q1[k], q2[k], q3[k]), (q0[m], q1[m], q2[m], q3[m])
                    s0 = add_both(s0, p0[k], y, p0[m], y_next)
                    s1 = add_both(s1, p1[k], y, p1[m], y_next)
                    s2 = add_both(s2, p2[k], y, p2[m], y_next)
                    s3 = add_both(s3, p3[k], y, p3[m], y_next)
            for k in range(first, stop):
                y = q0[k], q1[k], q2[k], q3[k]
                s0 = add(s0, p0[k], y)
                s1 = add(s1, p1[k], y)
                s2 = add(s2, p2[k], y)
                s3 = add(s3, p3[k], y)
            _add_to(into, (s0, s1, s2, s3))

    return tile


@inlined
def _add_to(into: Sums, rows: tuple[Four, Four, Four, Four]) -> None:
    """Add the sums of a part of the pixels, one tuple per row of p."""
    for a, sums in enumerate(rows):
        for b in range(SIDE):
            into[a, b] += sums[b]


@inlined
def _load(rows: Rows, start: int, line: int, stop_line: int) -> None:
    """Load cache lines of every row. Lines are counted from the pixel `start`."""
    pixels = LINE // rows.itemsize
    for i in range(rows.shape[0]):
        for k in range(line, stop_line):
            prefetch(rows, i, start + k * pixels)


@inlined
def load_part(
    p: Rows, p_start: int, q: Rows, q_start: int, size: int, part: int, parts: int
) -> None:
    """Load one of several equal parts of the next `size` pixels of all rows into the cache.

    The parts should be requested at different times. Requesting all lines at once would delay the
    computation.
    """
    lines = -(-size * p.itemsize // LINE)
    line, stop_line = part * lines // parts, (part + 1) * lines // parts
    _load(p, p_start, line, stop_line)
    _load(q, q_start, line, stop_line)
