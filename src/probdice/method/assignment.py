"""Linear assignment: choose pairs of rows and columns with the largest total saving.

Small tables are treated as dense and solved by shortest augmenting paths (Crouse 2016). SciPy's
optimiser is not used, because importing it takes 0.34 s of CPU time, longer than most comparisons.
The compiled loops are in `assignment_kernels`, which is imported on first use because importing
Numba is slow.

Large tables are treated as sparse. Pairs that are certain to be part of an optimum are chosen
first. In the remaining table, rows bid for columns, and for each row without a column, a search
finds the shortest augmenting path (Jonker and Volgenant 1987). The cost of a search depends on the
cells that it visits, not on the size of the table. If searches become long, an auction with small
steps (Bertsekas 1988) finds a nearly optimal assignment, and searches complete it.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["largest_total", "least_total"]

Integers = NDArray[np.int64]

MAX_DENSE_TABLE = 2**16  # a table with more cells is solved as a sparse table
BITS = 60  # bits of the largest integer saving, so that the sum of two savings fits in 64 bits
# Largest mean number of bids per row; more bids could raise prices by only small amounts.
MAX_BIDS_PER_ROW = 8
PATIENCE = 48  # columns that searches visit per row, on average, before the auction with steps
STEPS = (
    (20, 32),
    (12, 200),
)  # of each auction: log2(typical saving / step), and the largest mean number of bids per row


def largest_total(
    rows: Integers,
    columns: Integers,
    savings: NDArray[np.int64] | NDArray[np.float64],
    shape: tuple[int, int],
) -> Integers:
    """Choose pairs with the largest total saving, at most one pair per row and column.

    Parameters
    ----------
    rows, columns : int64 arrays of shape (pairs,)
        The rows and columns of the pairs of overlapping regions, in any order. No pair occurs
        twice.
    savings : int64 or float64 array of shape (pairs,)
        The saving of each pair, greater than 0.
    shape : (int, int)
        The numbers of rows and columns of the table. Rows and columns may remain unmatched.

    Returns
    -------
    int64 array
        The chosen pairs as ascending indices into `rows`. For integer savings, the total is exactly
        the optimum. For floating-point savings, the total may differ from the optimum by the
        rounding error of the sum of the chosen savings. Ties between equal totals are resolved
        deterministically.

    Examples
    --------
    The largest saving of row 0 is in column 0, but row 1 can only be paired with column 0:

    >>> rows, columns = np.array([0, 0, 1]), np.array([0, 1, 0])
    >>> largest_total(rows, columns, np.array([5, 4, 3]), (2, 2))
    array([1, 2])
    """
    if rows.size == 0:
        return np.empty(0, np.int64)
    if shape[0] > shape[1]:  # rows are the side with fewer regions
        rows, columns, shape = columns, rows, (shape[1], shape[0])
    if shape[0] * shape[1] > MAX_DENSE_TABLE:
        return _sparse(rows, columns, savings, shape)
    table = np.zeros(shape)
    table[rows, columns] = np.negative(savings)
    selected_pairs: Integers = (table.argmin(axis=1)[rows] == columns).nonzero()[0]
    # The sum of the row minima is a lower bound, which is reached if all minima are in different
    # columns.
    if len(set(columns[selected_pairs].tolist())) == selected_pairs.size:
        return selected_pairs
    selected_pairs = (least_total(table)[rows] == columns).nonzero()[0]
    return selected_pairs


def least_total(table: NDArray[np.float64]) -> Integers:
    """Assign a different column to every row so that the total is as small as possible.

    There must not be more rows than columns.

    Examples
    --------
    >>> least_total(np.array([[1.0, 2.0, 9.0], [1.0, 9.0, 9.0]]))
    array([1, 0])
    """
    columns: Integers = _kernels().shortest_paths(np.ascontiguousarray(table, np.float64))
    return columns


def _sparse(
    rows: Integers, columns: Integers, savings: NDArray[Any], shape: tuple[int, int]
) -> Integers:
    """Return the result of `largest_total`, computed without a dense table."""
    if savings.dtype.kind == "f":
        # Scaled by a power of two, savings of at least 2⁻⁷ of the largest are exact integers.
        exponent = BITS - int(np.frexp(savings.max())[1])
        savings = np.maximum(np.rint(np.ldexp(savings, exponent)), 1)
    rows, columns, savings = (np.ascontiguousarray(a, np.int64) for a in (rows, columns, savings))
    is_selected = np.zeros(rows.size, np.bool_)
    undecided = np.arange(rows.size, dtype=np.int64)
    best = np.empty((6, max(shape)), np.int64)
    is_taken = np.zeros((2, max(shape)), np.bool_)
    count = _kernels().take_dominant(rows, columns, savings, undecided, best, is_taken, is_selected)
    if count > 0:
        undecided = undecided[:count]
        undecided = undecided[np.argsort(rows[undecided], kind="stable")]
        is_selected[
            _augmented(undecided, rows[undecided], columns[undecided], savings[undecided], shape)
        ] = True
    return is_selected.nonzero()[0]


def _augmented(
    index: Integers,
    rows: Integers,
    columns: Integers,
    savings: Integers,
    shape: tuple[int, int],
) -> Integers:
    """Return the chosen pairs, as entries of `index`. The given pairs must be grouped by row.

    The pairs of each row are sorted in place.
    """
    starts = _starts(rows, shape[0])
    table = rows, columns, savings, starts
    present = np.flatnonzero(np.diff(starts))
    state = np.zeros((9, max(shape) + 1), np.int64)
    state[:2] = -1
    edges, owners = state[0, : shape[0]], state[1, : shape[1]]
    waiting = present.copy()
    count = _kernels().bid(index, table, waiting, state, 0, MAX_BIDS_PER_ROW * present.size)
    if _kernels().search(table, waiting[:count], state, PATIENCE * present.size):
        return index[edges[edges >= 0]]

    # Searches are long if many choices are almost equally good and the choice depends on distant
    # rows. Bids that raise prices by a small extra step propagate the choice much faster. The
    # result is optimal except for these steps, whose effect the refinement then removes.
    nearest = np.zeros(shape[1], np.int64)  # the first row of each column, by which to sort
    nearest[columns[::-1]] = rows[::-1]
    columns[:] = np.argsort(np.argsort(nearest, kind="stable"))[columns]
    savings <<= max(0, min(STEPS[0][0], BITS - int(savings.max()).bit_length()))
    typical = int(np.median(savings[starts[present]]))
    for bits, bids in STEPS:
        state[:2], state[2:] = -1, 0
        step = max(1, typical >> bits)
        if not _kernels().bid(index, table, present.copy(), state, step, bids * present.size):
            break
    _kernels().refine(table, state)
    _kernels().search(table, present[edges[present] < 0], state, -1)

    # Search for a row for each column that still has a price but no longer has a row.
    waiting = np.flatnonzero((owners < 0) & (state[3, : shape[1]] > 0))
    if waiting.size > 0:
        order = np.lexsort((-savings, columns))
        pairs = np.flatnonzero(edges[rows[order]] == order)
        index, rows, columns, savings = (a[order] for a in (index, columns, rows, savings))
        table = rows, columns, savings, _starts(rows, shape[1])
        state[:2], state[2:4] = -1, state[3:1:-1].copy()
        edges, owners = state[0, : shape[1]], state[1, : shape[0]]
        edges[rows[pairs]], owners[columns[pairs]] = pairs, rows[pairs]
        _kernels().search(table, waiting, state, -1)
    return index[edges[edges >= 0]]


def _starts(rows: Integers, count: int) -> Integers:
    """Return the index of the first pair of each row, followed by the number of pairs."""
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=count), out=starts[1:])
    return starts


@cache
def _kernels() -> Any:
    """Import the compiled loops on first use, because importing Numba is slow."""
    from probdice.method import assignment_kernels

    return assignment_kernels
