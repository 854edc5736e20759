"""Linear assignment: pairs of rows and columns with the largest total, in dense or sparse tables.

Small tables are treated as dense and solved by shortest augmenting paths (Crouse 2016).
Importing SciPy's optimiser takes 0.34 s of CPU time, longer than most comparisons.

Large tables are treated as sparse. Pairs that are part of an optimum for certain are chosen
first. In the remaining table, rows bid for columns, and each row without a column searches the
shortest augmenting path (Jonker and Volgenant 1987). The cost of a search depends on the cells that
it visits, not on the size of the table. If searches become long, an auction with small steps
(Bertsekas 1988) comes close to the optimum, and searches complete it.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["largest_total", "least_total"]

Integers = NDArray[np.int64]

LARGEST_DENSE = 2**16  # largest number of cells of a table that is solved as a dense one
BITS = 60  # bits of the largest saving as an integer, so that the sum of two fits in 64 bits
BIDS = 8  # mean number of bids per row: two rows can outbid each other by little for very long
PATIENCE = 48  # columns per row that searches may reach before the auction with steps starts
STEPS = (
    (20, 32),
    (12, 200),
)  # (bits by which a step is smaller than a typical saving, bids per row)
SWEEPS = 8  # sweeps over all rows between two searches for cycles of exchanges
MOST_SWEEPS = 512  # sweeps after which pairs are dissolved instead of lowering prices


def largest_total(
    rows: Integers,
    columns: Integers,
    savings: NDArray[np.int64] | NDArray[np.float64],
    shape: tuple[int, int],
) -> Integers:
    """Choose pairs, no two in one row or column, with the largest total saving.

    Parameters
    ----------
    rows, columns : int64 arrays of shape (pairs,)
        The pairs of overlapping regions, in any order, each at most once.
    savings : int64 or float64 array of shape (pairs,)
        The saving of each pair, greater than 0.
    shape : (int, int)
        The numbers of rows and columns of the table. Rows and columns may stay unmatched.

    Returns
    -------
    int64 array
        The chosen pairs as ascending indices into `rows`. For integers, the optimum is exact. For
        floats, the total may differ from it by the rounding error of the sum of the chosen
        savings. Equal totals are resolved deterministically.

    Examples
    --------
    Row 0 saves most with column 0, but row 1 has no other column:

    >>> rows, columns = np.array([0, 0, 1]), np.array([0, 1, 0])
    >>> largest_total(rows, columns, np.array([5, 4, 3]), (2, 2))
    array([1, 2])
    """
    if rows.size == 0:
        return np.empty(0, np.int64)
    if shape[0] > shape[1]:  # rows are the side with fewer regions
        rows, columns, shape = columns, rows, (shape[1], shape[0])
    if shape[0] * shape[1] > LARGEST_DENSE:
        return _sparse(rows, columns, savings, shape)
    table = np.zeros(shape)
    table[rows, columns] = savings
    chosen: Integers = (table.argmax(axis=1)[rows] == columns).nonzero()[0]
    # The sum of the row maxima is an upper bound. It is reached if their columns are all different.
    if len(set(columns[chosen].tolist())) == chosen.size:
        return chosen
    chosen = (least_total(-table)[rows] == columns).nonzero()[0]
    return chosen


def least_total(table: NDArray[np.float64]) -> Integers:
    """Assign a different column to every row, with the least total.

    Rows must not outnumber columns.

    Examples
    --------
    >>> least_total(np.array([[1.0, 2.0, 9.0], [1.0, 9.0, 9.0]]))
    array([1, 0])
    """
    columns: Integers = _compiled(_shortest_paths)(np.ascontiguousarray(table, np.float64))
    return columns


def _sparse(
    rows: Integers, columns: Integers, savings: NDArray[Any], shape: tuple[int, int]
) -> Integers:
    """`largest_total` without a dense table."""
    if savings.dtype.kind == "f":
        # Scaling by a power of two is exact for savings down to 2⁻⁷ of the largest.
        exponent = BITS - int(np.frexp(savings.max())[1])
        savings = np.maximum(np.rint(np.ldexp(savings, exponent)), 1)
    rows, columns, savings = (np.ascontiguousarray(a, np.int64) for a in (rows, columns, savings))
    chosen = np.zeros(rows.size, np.bool_)
    left = np.arange(rows.size, dtype=np.int64)
    best = np.empty((6, max(shape)), np.int64)
    taken = np.zeros((2, max(shape)), np.bool_)
    count = _compiled(_take_dominant)(rows, columns, savings, left, best, taken, chosen)
    if count > 0:
        left = left[:count]
        left = left[np.argsort(rows[left], kind="stable")]
        chosen[_augmented(left, rows[left], columns[left], savings[left], shape)] = True
    return chosen.nonzero()[0]


def _augmented(
    index: Integers,
    rows: Integers,
    columns: Integers,
    savings: Integers,
    shape: tuple[int, int],
) -> Integers:
    """Return the chosen pairs. The given pairs are grouped by row and are sorted in place."""
    starts = _starts(rows, shape[0])
    table = rows, columns, savings, starts
    present = np.flatnonzero(np.diff(starts))
    state = np.zeros((9, max(shape) + 1), np.int64)
    state[:2] = -1
    edges, owners = state[0, : shape[0]], state[1, : shape[1]]
    waiting = present.copy()
    count = _compiled(_bid)(index, table, waiting, state, 0, BIDS * present.size)
    if _compiled(_search)(table, waiting[:count], state, PATIENCE * present.size):
        return index[edges[edges >= 0]]

    # Searches are long if many choices are almost equally good and distant rows decide among them.
    # Bids that raise prices by a small extra step propagate this decision much faster. The result
    # is optimal up to the steps, which the refinement then undoes.
    nearest = np.zeros(shape[1], np.int64)  # sorts columns so that neighbours are close in memory
    nearest[columns[::-1]] = rows[::-1]
    columns[:] = np.argsort(np.argsort(nearest, kind="stable"))[columns]
    savings <<= max(0, min(STEPS[0][0], BITS - int(savings.max()).bit_length()))
    typical = int(np.median(savings[starts[present]]))
    for bits, bids in STEPS:
        state[:2], state[2:] = -1, 0
        step = max(1, typical >> bits)
        if not _compiled(_bid)(index, table, present.copy(), state, step, bids * present.size):
            break
    _compiled(_refine)(table, state)
    _compiled(_search)(table, present[edges[present] < 0], state, -1)

    # Columns that have a price but no row any more search for a row.
    waiting = np.flatnonzero((owners < 0) & (state[3, : shape[1]] > 0))
    if waiting.size > 0:
        order = np.lexsort((-savings, columns))
        chosen = np.flatnonzero(edges[rows[order]] == order)
        index, rows, columns, savings = (a[order] for a in (index, columns, rows, savings))
        table = rows, columns, savings, _starts(rows, shape[1])
        state[:2], state[2:4] = -1, state[3:1:-1].copy()
        edges, owners = state[0, : shape[1]], state[1, : shape[0]]
        edges[rows[chosen]], owners[columns[chosen]] = chosen, rows[chosen]
        _compiled(_search)(table, waiting, state, -1)
    return index[edges[edges >= 0]]


def _starts(rows: Integers, count: int) -> Integers:
    """Return the start of the pairs of each row, and the end of the last row."""
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=count), out=starts[1:])
    return starts


@cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the compiled function. Numba is imported on first use because importing it is slow."""
    from probdice.compiler.jit import kernel

    return kernel(function)


def _shortest_paths(costs: Any) -> Any:
    """Assign a column to one row after the other, by the shortest path to a free column."""
    rows, columns = costs.shape
    row_prices, column_prices = np.zeros(rows), np.zeros(columns)
    column_of, owners = np.full(rows, -1, np.int64), np.full(columns, -1, np.int64)
    path, unseen = np.empty(columns, np.int64), np.empty(columns, np.int64)
    lengths = np.empty(columns)
    for first in range(rows):
        for k in range(columns):
            unseen[k] = columns - k - 1
        lengths[:] = np.inf
        left, length, row, end = columns, 0.0, first, -1
        while end < 0:
            nearest, shortest = -1, np.inf
            for k in range(left):
                column = unseen[k]
                reached = length + costs[row, column] - row_prices[row] - column_prices[column]
                if reached < lengths[column]:
                    lengths[column], path[column] = reached, row
                free = owners[column] < 0
                if lengths[column] < shortest or (lengths[column] == shortest and free):
                    nearest, shortest = k, lengths[column]
            length, column = shortest, unseen[nearest]
            left -= 1
            unseen[nearest], unseen[left] = unseen[left], column  # move seen columns to the end
            row = owners[column]
            if row < 0:
                end = column
        row_prices[first] += length
        for k in range(left, columns):
            column = unseen[k]
            if owners[column] >= 0:
                row_prices[owners[column]] += length - lengths[column]
            column_prices[column] -= length - lengths[column]
        column = end
        while True:
            row = path[column]
            owners[column] = row
            column_of[row], column = column, column_of[row]
            if row == first:
                break
    return column_of


def _take_dominant(
    rows: Any, columns: Any, savings: Any, left: Any, best: Any, taken: Any, chosen: Any
) -> int:
    """Choose pairs that are part of an optimum, and return the number of undecided pairs.

    The undecided pairs are the first entries of `left`. A chosen pair saves at least as much as the
    second best pair of its row and the second best pair of its column together, so it can replace
    any other choice without loss.
    """
    taken_rows, taken_columns = taken[0], taken[1]
    row_best, row_first, row_second = best[0], best[1], best[2]
    column_best, column_first, column_second = best[3], best[4], best[5]
    count = rows.size
    while True:
        for i in range(row_first.size):
            row_first[i] = row_second[i] = column_first[i] = column_second[i] = 0
        for a in range(count):
            k = left[a]
            i, j, s = rows[k], columns[k], savings[k]
            if s > row_first[i]:
                row_second[i] = row_first[i]
                row_first[i] = s
                row_best[i] = k
            elif s > row_second[i]:
                row_second[i] = s
            if s > column_first[j]:
                column_second[j] = column_first[j]
                column_first[j] = s
                column_best[j] = k
            elif s > column_second[j]:
                column_second[j] = s
        for i in range(row_first.size):
            if row_first[i] == 0:
                continue
            k = row_best[i]
            j = columns[k]
            rival = column_second[j] if column_best[j] == k else column_first[j]
            if not taken_columns[j] and row_first[i] >= row_second[i] + rival:
                chosen[k] = True
                taken_rows[i] = True
                taken_columns[j] = True
        before = count
        count = 0
        for a in range(before):
            k = left[a]
            if not (taken_rows[rows[k]] or taken_columns[columns[k]]):
                left[count] = k
                count += 1
        if 16 * (before - count) <= before:  # another round would cost more than it saves
            return count


def _bid(index: Any, table: Any, waiting: Any, state: Any, step: int, bids: int) -> int:
    """Auction: set `edges` to the pair of each row, or leave it at −1.

    Return the number of rows that still need a search. They are the first entries of `waiting`.
    """
    _, columns, savings, starts = table
    edges, owners, u, v = state[0], state[1], state[2], state[3]

    # Sort the savings of each row in descending order (Shell sort), so that scans can stop early.
    for w in range(waiting.size):
        low, high = starts[waiting[w]], starts[waiting[w] + 1]
        gap = 1
        while 9 * gap < high - low:
            gap = 3 * gap + 1
        while gap > 0:
            for e in range(low + gap, high):
                s, j, k = savings[e], columns[e], index[e]
                f = e
                while f - gap >= low and savings[f - gap] < s:
                    savings[f] = savings[f - gap]
                    columns[f] = columns[f - gap]
                    index[f] = index[f - gap]
                    f -= gap
                savings[f], columns[f], index[f] = s, j, k
            gap //= 3

    # A row takes its best column and raises its price v until the second best is equally good, plus
    # one step. A row that cannot raise the price of a column with an owner needs a search.
    count = 0
    for w in range(waiting.size):
        i = waiting[w]
        while i >= 0:
            first = second = 0
            at = -1
            for e in range(starts[i], starts[i + 1]):
                s = savings[e]
                if s < second or (s == second and owners[columns[at]] < 0):
                    break
                gain = s - v[columns[e]]
                if gain > first or (
                    gain == first and owners[columns[at]] >= 0 and owners[columns[e]] < 0
                ):
                    second = first
                    first = gain
                    at = e
                elif gain > second:
                    second = gain
            u[i] = second
            if at < 0:
                break
            bids -= 1
            j = columns[at]
            k = owners[j]
            if k >= 0 and (first - second + step == 0 or bids < 0):
                waiting[count] = i
                count += 1
                break
            v[j] += first - second + step
            owners[j] = i
            edges[i] = at
            if k >= 0:
                edges[k] = -1
            i = k
    return count


def _search(table: Any, waiting: Any, state: Any, patience: int) -> bool:
    """Match each waiting row, or leave it unmatched, so that the total is the largest.

    The duals u of rows and v of columns are never negative. u + v is at least the saving of every
    pair, and equal to it for matched pairs. v is 0 for unmatched columns. Once u is 0 for unmatched
    rows, the total saving equals the sum of the duals, which is an upper bound.

    A search finds the shortest augmenting path. The length of a pair is its slack: u + v minus its
    saving. A path ends at a free column, or at a row that becomes unmatched, which adds u to the
    length. Return False if searches reached more than `patience` columns before they finished; a
    negative `patience` sets no limit.
    """
    rows, columns, savings, starts = table
    edges, owners, u, v, distance = state[0], state[1], state[2], state[3], state[4]
    source, place, heap, ready = state[5], state[6], state[7], state[8]
    for w in range(waiting.size):
        start = waiting[w]
        i = start
        bound = 0
        for e in range(starts[i], starts[i + 1]):
            if savings[e] <= bound:
                break
            bound = max(bound, savings[e] - v[columns[e]])
        u[i] = bound
        if bound == 0:
            continue
        end, leaver = -1, i  # the column where the path ends, or the row
        head = tail = size = 0
        now = 0
        while True:
            base = now + u[i]  # row i is reached at the distance `now`
            if base < bound:
                bound = base
                end, leaver = -1, i
            for e in range(starts[i], starts[i + 1]):
                reach = base - savings[e]
                if reach >= bound:
                    break
                j = columns[e]
                reach += v[j]
                if reach >= bound:
                    continue
                if owners[j] < 0:
                    bound = reach
                    end = j
                    source[j] = e
                    if reach == now:
                        break
                    continue
                p = place[j]
                if p > 0 and distance[j] <= reach:
                    continue
                distance[j] = reach
                source[j] = e
                if p == 0:
                    if reach == now:  # ties are explored breadth first, without the heap
                        place[j] = 1
                        ready[tail] = j
                        tail += 1
                        continue
                    size += 1
                    p = size
                while p > 1 and distance[heap[p >> 1]] > reach:
                    heap[p] = heap[p >> 1]
                    place[heap[p]] = p
                    p >>= 1
                heap[p] = j
                place[j] = p
            if bound == now:
                break
            if head == tail:
                if size == 0 or distance[heap[1]] >= bound:
                    break
                ready[tail] = heap[1]
                tail += 1
                last = heap[size]
                size -= 1
                p = 1
                while 2 * p <= size:
                    child = 2 * p
                    if child < size and distance[heap[child + 1]] < distance[heap[child]]:
                        child += 1
                    if distance[heap[child]] >= distance[last]:
                        break
                    heap[p] = heap[child]
                    place[heap[p]] = p
                    p = child
                if size > 0:
                    heap[p] = last
                    place[last] = p
            j = ready[head]
            head += 1
            now = distance[j]
            i = owners[j]
        u[start] -= bound
        for t in range(tail):
            j = ready[t]
            place[j] = 0
            if distance[j] < bound:
                v[j] += bound - distance[j]
                u[owners[j]] -= bound - distance[j]
        for p in range(1, size + 1):
            place[heap[p]] = 0
        if patience >= 0:
            patience -= tail
            if patience < 0:
                return False
        if end < 0:
            if leaver == start:
                continue
            end = columns[edges[leaver]]
            edges[leaver] = -1
        while True:
            e = source[end]
            i = rows[e]
            before = edges[i]
            edges[i] = e
            owners[end] = i
            if i == start:
                break
            end = columns[before]
    return True


def _refine(table: Any, state: Any) -> None:
    """Lower prices until every matched pair is optimal for its row; dissolve other pairs.

    If each row of a cycle prefers the column of the next row, they exchange columns if that
    increases the total saving.
    """
    _, columns, savings, starts = table
    edges, owners, u, v, rival, seen = state[0], state[1], state[2], state[3], state[4], state[5]
    rival[:] = -1
    sweep = 0
    changed = True
    while changed:
        changed = False
        sweep += 1
        for i in range(starts.size - 1):
            if edges[i] < 0:
                continue
            j = columns[edges[i]]
            best = 0
            at = -1
            for e in range(starts[i], starts[i + 1]):
                if savings[e] <= best:
                    break
                gain = savings[e] - v[columns[e]]
                if gain > best and e != edges[i]:
                    best = gain
                    at = e
            price = savings[edges[i]] - best
            if price < v[j]:
                changed = True
                if price < 0 or sweep > MOST_SWEEPS:
                    owners[j] = edges[i] = -1
                    continue
                v[j] = price
                rival[i] = at
            u[i] = savings[edges[i]] - v[j]
        if sweep % SWEEPS > 0:
            continue
        seen[:] = -1
        for start in range(starts.size - 1):
            i = start
            while i >= 0 and seen[i] < 0 and rival[i] >= 0 and edges[i] >= 0:
                seen[i] = start
                i = owners[columns[rival[i]]]
            if i < 0 or seen[i] != start:
                continue
            gain = savings[rival[i]] - savings[edges[i]]
            k = owners[columns[rival[i]]]
            while k != i:
                gain += savings[rival[k]] - savings[edges[k]]
                k = owners[columns[rival[k]]]
            while gain > 0 and rival[k] >= 0:
                e = rival[k]
                rival[k] = -1
                edges[k] = e
                j = columns[e]
                k, owners[j] = owners[j], k
