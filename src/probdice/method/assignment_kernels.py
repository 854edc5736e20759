"""Compiled loops of the linear assignment. Importing this module imports Numba."""

from typing import Any

import numpy as np

from probdice.compiler.jit import inlined, inner, kernel

__all__ = ["bid", "refine", "search", "shortest_paths", "take_dominant"]

SWEEPS = 8  # sweeps over all rows between two searches for cycles of exchanges
MAX_SWEEPS = 512  # sweeps after which pairs are dissolved and prices are no longer lowered


@kernel
def shortest_paths(costs: Any) -> Any:
    """Assign columns to rows, one row at a time, along the shortest path to a free column."""
    rows, columns = costs.shape
    row_prices, column_prices = np.zeros(rows), np.zeros(columns)
    column_of, owners = np.full(rows, -1, np.int64), np.full(columns, -1, np.int64)
    path, unseen = np.empty(columns, np.int64), np.empty(columns, np.int64)
    lengths = np.empty(columns)
    for first in range(rows):
        for k in range(columns):
            unseen[k] = columns - k - 1
        lengths[:] = np.inf
        count, length, row, end = columns, 0.0, first, -1
        while end < 0:
            nearest, shortest = -1, np.inf
            for k in range(count):
                column = unseen[k]
                new_length = length + costs[row, column] - row_prices[row] - column_prices[column]
                if new_length < lengths[column]:
                    lengths[column], path[column] = new_length, row
                free = owners[column] < 0
                if lengths[column] < shortest or (lengths[column] == shortest and free):
                    nearest, shortest = k, lengths[column]
            length, column = shortest, unseen[nearest]
            count -= 1
            unseen[nearest], unseen[count] = unseen[count], column  # move seen columns to the end
            row = owners[column]
            if row < 0:
                end = column
        row_prices[first] += length
        for k in range(count, columns):
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


@kernel
def take_dominant(
    rows: Any,
    columns: Any,
    savings: Any,
    undecided: Any,
    best: Any,
    is_taken: Any,
    is_selected: Any,
) -> int:
    """Choose pairs that are part of an optimum, and return the number of undecided pairs.

    The undecided pairs are the first entries of `undecided`. A chosen pair saves at least as much
    as the best other pair of its row and the best other pair of its column together. It can
    therefore replace these two pairs without loss.
    """
    taken_rows, taken_columns = is_taken[0], is_taken[1]
    row_best, row_first, row_second = best[0], best[1], best[2]
    column_best, column_first, column_second = best[3], best[4], best[5]
    count = rows.size
    while True:
        for i in range(row_first.size):
            row_first[i] = row_second[i] = column_first[i] = column_second[i] = 0
        for a in range(count):
            k = undecided[a]
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
                is_selected[k] = True
                taken_rows[i] = True
                taken_columns[j] = True
        before = count
        count = 0
        for a in range(before):
            k = undecided[a]
            if not (taken_rows[rows[k]] or taken_columns[columns[k]]):
                undecided[count] = k
                count += 1
        if 16 * (before - count) <= before:  # another round would cost more than it saves
            return count


@kernel
def bid(index: Any, table: Any, waiting: Any, state: Any, step: int, bids: int) -> int:
    """Run an auction. Set `edges` to the pair of each row, or to −1 if the row has no pair.

    Return the number of rows that still need a search. These rows are the first entries of
    `waiting`.
    """
    _, columns, savings, starts = table
    edges, owners, u, v = state[0], state[1], state[2], state[3]

    for w in range(waiting.size):
        _sort_descending(starts[waiting[w]], starts[waiting[w] + 1], savings, columns, index)

    # A row takes its best column and raises the price v of that column until the second-best column
    # is equally good, plus one step. If the column has an owner, and its price cannot be raised or
    # no bids are left, the row needs a search.
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


@inner
def _sort_descending(low: int, high: int, savings: Any, columns: Any, index: Any) -> None:
    """Sort the pairs of a row by descending saving (Shell sort), so that scans can stop early."""
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


@kernel
def search(table: Any, waiting: Any, state: Any, patience: int) -> bool:
    """Match each waiting row, or leave it unmatched, so that the total is maximal.

    The duals u of rows and v of columns are never negative. For every pair, u + v is at least its
    saving; for matched pairs, u + v equals the saving. For unmatched columns, v is 0. Once u is 0
    for unmatched rows, the total saving equals the sum of the duals, which is an upper bound.

    Return False if searches reached more than `patience` columns before they finished. A negative
    `patience` means no limit.
    """
    _, columns, savings, starts = table
    edges, u, v, distance = state[0], state[2], state[3], state[4]
    owners, heap_index, heap, ready = state[1], state[6], state[7], state[8]
    for w in range(waiting.size):
        start = waiting[w]
        bound = 0
        for e in range(starts[start], starts[start + 1]):
            if savings[e] <= bound:
                break
            bound = max(bound, savings[e] - v[columns[e]])
        u[start] = bound
        if bound == 0:
            continue
        bound, end, leaver, tail, size = _shortest_augmenting_path(table, state, start, bound)
        u[start] -= bound
        for t in range(tail):
            j = ready[t]
            heap_index[j] = 0
            if distance[j] < bound:
                v[j] += bound - distance[j]
                u[owners[j]] -= bound - distance[j]
        for p in range(1, size + 1):
            heap_index[heap[p]] = 0
        if patience >= 0:
            patience -= tail
            if patience < 0:
                return False
        if end < 0:
            if leaver == start:
                continue
            end = columns[edges[leaver]]
            edges[leaver] = -1
        _augment(table, state, start, end)
    return True


@inner
def _shortest_augmenting_path(
    table: Any, state: Any, start: int, bound: int
) -> tuple[int, int, int, int, int]:
    """Find the shortest path from a row to a free column, or to a row that becomes unmatched.

    The length of a pair is its slack: u + v minus its saving. A path that ends at a row adds the u
    of that row to its length.

    Return the length of the path, the column where the path ends (or −1), the row that becomes
    unmatched, and the numbers of columns in `ready` and `heap`.
    """
    _, columns, savings, starts = table
    owners, u, v, distance = state[1], state[2], state[3], state[4]
    source, heap_index, heap, ready = state[5], state[6], state[7], state[8]
    i = start
    end, leaver = -1, start
    head = tail = size = now = 0
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
            p = heap_index[j]
            if p > 0 and distance[j] <= reach:
                continue
            distance[j] = reach
            source[j] = e
            if p == 0:
                if reach == now:  # ties are explored breadth first, without the heap
                    heap_index[j] = 1
                    ready[tail] = j
                    tail += 1
                    continue
                size += 1
                p = size
            _move_up(heap, heap_index, distance, p, j)
        if bound == now:
            break
        if head == tail:
            if size == 0 or distance[heap[1]] >= bound:
                break
            ready[tail] = heap[1]
            tail += 1
            size -= 1
            _move_down(heap, heap_index, distance, size)
        j = ready[head]
        head += 1
        now = distance[j]
        i = owners[j]
    return bound, end, leaver, tail, size


@inlined
def _move_up(heap: Any, heap_index: Any, distance: Any, p: int, column: int) -> None:
    """Insert a column into the heap at position `p` or closer to the top."""
    while p > 1 and distance[heap[p >> 1]] > distance[column]:
        heap[p] = heap[p >> 1]
        heap_index[heap[p]] = p
        p >>= 1
    heap[p] = column
    heap_index[column] = p


@inlined
def _move_down(heap: Any, heap_index: Any, distance: Any, size: int) -> None:
    """Remove the top of the heap, and put the last column in its place. `size` is the new size."""
    last = heap[size + 1]
    p = 1
    while 2 * p <= size:
        child = 2 * p
        if child < size and distance[heap[child + 1]] < distance[heap[child]]:
            child += 1
        if distance[heap[child]] >= distance[last]:
            break
        heap[p] = heap[child]
        heap_index[heap[p]] = p
        p = child
    if size > 0:
        heap[p] = last
        heap_index[last] = p


@inner
def _augment(table: Any, state: Any, start: int, end: int) -> None:
    """Match the rows of a path with its columns, from the last column back to the first row."""
    rows, columns, edges, owners, source = table[0], table[1], state[0], state[1], state[5]
    while True:
        e = source[end]
        i = rows[e]
        before = edges[i]
        edges[i] = e
        owners[end] = i
        if i == start:
            return
        end = columns[before]


@kernel
def refine(table: Any, state: Any) -> None:
    """Lower prices until every matched pair is optimal for its row.

    Pairs for which this is not possible are dissolved. If each row of a cycle prefers the column of
    the next row, the rows exchange columns, provided that the exchange increases the total saving.
    """
    _, columns, savings, starts = table
    edges, owners, u, v, rival, walk = state[0], state[1], state[2], state[3], state[4], state[5]
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
                if price < 0 or sweep > MAX_SWEEPS:
                    owners[j] = edges[i] = -1
                    continue
                v[j] = price
                rival[i] = at
            u[i] = savings[edges[i]] - v[j]
        if sweep % SWEEPS > 0:
            continue
        walk[:] = -1
        for start in range(starts.size - 1):
            i = start
            while i >= 0 and walk[i] < 0 and rival[i] >= 0 and edges[i] >= 0:
                walk[i] = start
                i = owners[columns[rival[i]]]
            if i < 0 or walk[i] != start:
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
