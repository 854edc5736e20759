"""Sums over the pixels for every pair of rows, computed in tiles of several rows."""

from collections.abc import Callable
from typing import cast

import numpy as np

from probdice.compiler.jit import inlined, inner, prefetch
from probdice.engine.kernels.rows import SHORT, Indices, Rows, Sums

PADDING = (1, 3)  # rows and columns of the output that tiles may use beyond the listed rows

LINE = 64  # number of bytes in a cache line

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
        """Sum the values of all pairs of rows, in tiles of two rows of p and four rows of q.

        If fewer rows remain, the last row is repeated. Meanwhile, the same number of pixels of
        `p_next` and `q_next` is loaded into the cache, a few lines at a time. Requesting all lines
        at once would delay the sums.
        """
        last_p, last_q = p_rows.size - 1, q_rows.size - 1
        line, last_line = 0, -(-size * p_next.itemsize // LINE)
        tiles = -(-p_rows.size // 2) * -(-q_rows.size // 4)
        parts = -(-size // int(SHORT))
        lines = -(-last_line // max(tiles * parts, 1))
        for a in range(0, p_rows.size, 2):
            for b in range(0, q_rows.size, 4):
                tile(
                    p[p_rows[a], p_start : p_start + size],
                    p[p_rows[min(a + 1, last_p)], p_start : p_start + size],
                    q[q_rows[b], q_start : q_start + size],
                    q[q_rows[min(b + 1, last_q)], q_start : q_start + size],
                    q[q_rows[min(b + 2, last_q)], q_start : q_start + size],
                    q[q_rows[min(b + 3, last_q)], q_start : q_start + size],
                    into[a : a + 2, b : b + 4],
                    p_next, p_next_start, q_next, q_next_start, line, lines, last_line,
                )  # fmt: skip
                line += lines * parts

    return pair_sums


def _tile_of(value: Value, two: TwoValues | None) -> Callable[..., None]:
    """Return a function that sums value(p_i, q_j) for two rows of p and four rows of q."""

    paired, both = two is not None, cast(TwoValues, two)

    @inner
    def tile(
        p0: Rows, p1: Rows, q0: Rows, q1: Rows, q2: Rows, q3: Rows, into: Sums,
        p_next: Rows, p_next_start: int, q_next: Rows, q_next_start: int,
        line: int, lines: int, last_line: int,
    ) -> None:  # fmt: skip
        """Compute eight sums in one loop, so that each loaded value is used several times."""
        size = np.uint64(p0.size)
        into[:] = 0
        for start in range(np.uint64(0), size, SHORT):
            stop_line = min(line + lines, last_line)
            _load(p_next, p_next_start, line, stop_line)
            _load(q_next, q_next_start, line, stop_line)
            line = stop_line
            s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = p0.dtype.type(0)
            first, stop = np.uint64(start), min(start + SHORT, size)
            if paired:  # then at most one pixel is left
                half = (stop - start) // np.uint64(2)
                first = start + half + half
                for k in range(start, start + half):
                    m = k + half
                    s00 += both(p0[k], q0[k], p0[m], q0[m])
                    s01 += both(p0[k], q1[k], p0[m], q1[m])
                    s02 += both(p0[k], q2[k], p0[m], q2[m])
                    s03 += both(p0[k], q3[k], p0[m], q3[m])
                    s10 += both(p1[k], q0[k], p1[m], q0[m])
                    s11 += both(p1[k], q1[k], p1[m], q1[m])
                    s12 += both(p1[k], q2[k], p1[m], q2[m])
                    s13 += both(p1[k], q3[k], p1[m], q3[m])
            for k in range(first, stop):
                s00 += value(p0[k], q0[k])
                s01 += value(p0[k], q1[k])
                s02 += value(p0[k], q2[k])
                s03 += value(p0[k], q3[k])
                s10 += value(p1[k], q0[k])
                s11 += value(p1[k], q1[k])
                s12 += value(p1[k], q2[k])
                s13 += value(p1[k], q3[k])
            into[0, 0] += s00
            into[0, 1] += s01
            into[0, 2] += s02
            into[0, 3] += s03
            into[1, 0] += s10
            into[1, 1] += s11
            into[1, 2] += s12
            into[1, 3] += s13

    return tile


@inlined
def _load(rows: Rows, start: int, line: int, stop_line: int) -> None:
    """Load cache lines of every row. Lines are counted from the pixel `start`."""
    pixels = LINE // rows.itemsize
    for i in range(rows.shape[0]):
        for k in range(line, stop_line):
            prefetch(rows, i, start + k * pixels)
