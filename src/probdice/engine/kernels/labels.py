"""Kernels for label maps: dense codes for labels, and counts of pairs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.compiler.jit import inner, kernel
from probdice.engine.kernels.rows import Indices, Rows

Codes = NDArray[np.int32]
Counts = NDArray[np.int32]
# The slots that `encode` filled, the labels, and the group of each label. The last entry of the
# groups is −1, for other labels.
GroupOf = tuple[Codes, NDArray[np.unsignedinteger[Any]], Indices]

_NONE = np.zeros((0, 0), np.int64)
GOLDEN = 0x9E3779B97F4A7C15  # multiplying by 2⁶⁴ / φ spreads keys over the upper bits
ODD = 0xC2B2AE3D27D4EB4F  # a similar multiplier for the second of two keys


@kernel
def encode(
    values: NDArray[np.unsignedinteger[Any]],
    slots: Codes,
    labels: NDArray[np.unsignedinteger[Any]],
    into: Codes,
) -> int:
    """Number the labels in order of occurrence, using open addressing. Return the number of labels.

    Free `slots` contain −1, and the number of slots is a power of two. Return −1 if `labels` is
    full.
    """
    shift = _shift(slots.size)
    count = code = 0
    for k in range(np.uint64(values.size)):
        if k == 0 or values[k] != values[k - np.uint64(1)]:
            code = _code(values[k], slots, shift, labels, count)
            if code == labels.size:
                return -1
            count = max(count, code + 1)
        into[k] = code
    return count


@inner
def _code(
    value: Any, slots: Codes, shift: Any, labels: NDArray[np.unsignedinteger[Any]], count: int
) -> Any:
    """Return the code of a label.

    A new label gets the code `count` and is stored if there is space.
    """
    mask = np.uint64(slots.size - 1)
    slot = (np.uint64(value) * np.uint64(GOLDEN)) >> shift
    code = slots[slot]
    while code >= 0 and labels[code] != value:
        slot = (slot + np.uint64(1)) & mask
        code = slots[slot]
    if code >= 0:
        return np.int64(code)
    if count < labels.size:
        slots[slot] = count
        labels[count] = value
    return count


@inner
def _shift(slots: int) -> Any:
    """Return the number of bits by which a hashed key is shifted right to get its slot."""
    shift = np.uint64(64)
    while np.uint64(1) << (np.uint64(64) - shift) != np.uint64(slots):
        shift -= np.uint64(1)
    return shift


@inner
def run_end(values: NDArray[Any], start: int) -> int:
    """Return the end of the run of equal values that begins at `start`."""
    value = values[start]
    stop = start + 1
    while stop < values.size and values[np.uint64(stop)] == value:
        stop += 1
    return stop


@kernel
def count_range(
    p: NDArray[np.int64], q: NDArray[np.int64], most: int
) -> tuple[Indices, Indices, Indices]:
    """Count pairs of labels in a table with one cell per pair of labels in the two ranges.

    For each map, return an array with a row of labels and a row of counts. Also return the rows,
    columns and counts of the pairs that occur. The arrays are empty if the table would have more
    than `most` cells.
    """
    p_low, p_high, q_low, q_high = p[0], p[0], q[0], q[0]
    for k in range(p.size):
        p_low, p_high = min(p_low, p[k]), max(p_high, p[k])
        q_low, q_high = min(q_low, q[k]), max(q_high, q[k])
    p_width, q_width = p_high - p_low + 1, q_high - q_low + 1  # negative if 64 bits overflow
    if not (0 < p_width <= most and 0 < q_width <= most and p_width * q_width <= most):
        return _NONE, _NONE, _NONE
    table = _count_in_turn(p, q, p_low, q_low, p_width * q_width, q_width)
    table = table.reshape(p_width, q_width)
    p_places, q_places = np.zeros(p_width, np.int64), np.zeros(q_width, np.int64)
    pairs = 0
    for i in range(p_width):
        for j in range(q_width):
            p_places[i] += table[i, j]
            q_places[j] += table[i, j]
            pairs += table[i, j] > 0
    p_labels, q_labels = _occurring(p_places, p_low), _occurring(q_places, q_low)
    overlapping = np.empty((3, pairs), np.int64)
    pair = 0
    for i in range(p_width):
        for j in range(q_width):
            if table[i, j] > 0:
                overlapping[0, pair], overlapping[1, pair] = p_places[i], q_places[j]
                overlapping[2, pair] = table[i, j]
                pair += 1
    return p_labels, q_labels, overlapping


@inner
def _count_in_turn(
    p: NDArray[np.int64], q: NDArray[np.int64], p_low: int, q_low: int, cells: int, width: int
) -> Indices:
    """Count the pixels of each cell in four alternating tables, as `count_bytes` does.

    Indices are unsigned, because a negative index would count from the end of the table.
    """
    tables = np.zeros((4, cells), np.int64)
    c0, c1, c2, c3 = tables[0], tables[1], tables[2], tables[3]
    columns = np.uint64(width)
    first = np.uint64(p_low) * columns + np.uint64(q_low)
    whole = np.uint64(p.size - p.size % 4)
    for k in range(np.uint64(0), whole, np.uint64(4)):
        one, two, three = k + np.uint64(1), k + np.uint64(2), k + np.uint64(3)
        c0[np.uint64(p[k]) * columns + np.uint64(q[k]) - first] += 1
        c1[np.uint64(p[one]) * columns + np.uint64(q[one]) - first] += 1
        c2[np.uint64(p[two]) * columns + np.uint64(q[two]) - first] += 1
        c3[np.uint64(p[three]) * columns + np.uint64(q[three]) - first] += 1
    for k in range(whole, np.uint64(p.size)):
        c0[np.uint64(p[k]) * columns + np.uint64(q[k]) - first] += 1
    for cell in range(cells):
        c0[cell] += c1[cell] + c2[cell] + c3[cell]
    return c0


@inner
def _occurring(counts: Indices, low: int) -> Indices:
    """Return the labels that occur and their counts.

    Each positive count is replaced with the index of its label in the result.
    """
    labels = 0
    for count in counts:
        labels += count > 0
    occurring = np.empty((2, labels), np.int64)
    place = 0
    for k in range(counts.size):
        if counts[k] > 0:
            occurring[0, place], occurring[1, place] = low + k, counts[k]
            counts[k] = place
            place += 1
    return occurring


@kernel
def count_bytes(p: NDArray[np.uint8], q: NDArray[np.uint8]) -> Counts:
    """Return the number of pixels of each pair of one-byte labels.

    Pixels are counted in four alternating tables, because neighbouring pixels are mostly equal, and
    incrementing the same cell twice in a row is slow.
    """
    c0 = np.zeros((256, 256), np.int32)
    c1, c2, c3 = np.zeros_like(c0), np.zeros_like(c0), np.zeros_like(c0)
    whole = p.size - p.size % 4
    for k in range(0, whole, 4):
        c0[p[k], q[k]] += 1
        c1[p[k + 1], q[k + 1]] += 1
        c2[p[k + 2], q[k + 2]] += 1
        c3[p[k + 3], q[k + 3]] += 1
    for k in range(whole, p.size):
        c0[p[k], q[k]] += 1
    for i in range(256):
        for j in range(256):
            c0[i, j] += c1[i, j] + c2[i, j] + c3[i, j]
    return c0


@kernel
def count_runs(
    p: NDArray[np.unsignedinteger[Any]],
    q: NDArray[np.unsignedinteger[Any]],
    start: int,
    pairs: int,
    slots: Codes,
    p_labels: NDArray[np.unsignedinteger[Any]],
    q_labels: NDArray[np.unsignedinteger[Any]],
    counts: NDArray[np.int64],
) -> tuple[int, int]:
    """List the pairs of labels in order of occurrence, and count their pixels, from pixel `start`.

    The list may already contain pairs. `slots` is a hash table of the pairs with open addressing:
    free slots are −1, and the number of slots is a power of two above the capacity for pairs.
    Return the number of pairs, and the pixel at which the list was full, or the number of pixels.
    """
    shift = _shift(slots.size)
    for pair in range(pairs):
        slots[_slot(p_labels[pair], q_labels[pair], slots, shift, p_labels, q_labels)] = pair
    while start < p.size:
        i, j = p[start], q[start]
        stop = start + 1
        while stop < p.size and p[np.uint64(stop)] == i and q[np.uint64(stop)] == j:
            stop += 1
        slot = _slot(i, j, slots, shift, p_labels, q_labels)
        pair = slots[slot]
        if pair < 0:
            if pairs == counts.size:
                break
            pair = pairs
            slots[slot], p_labels[pair], q_labels[pair], counts[pair] = pair, i, j, 0
            pairs += 1
        counts[pair] += stop - start
        start = stop
    return pairs, start


@inner
def _slot(
    i: Any,
    j: Any,
    slots: Codes,
    shift: Any,
    p_labels: NDArray[np.unsignedinteger[Any]],
    q_labels: NDArray[np.unsignedinteger[Any]],
) -> Any:
    """Return the slot of a pair of labels, or a free slot if the pair is not in the list."""
    spread = np.uint64(i) * np.uint64(GOLDEN) ^ np.uint64(j) * np.uint64(ODD)
    slot, mask = spread >> shift, np.uint64(slots.size - 1)
    pair = slots[slot]
    while pair >= 0 and (p_labels[pair] != i or q_labels[pair] != j):
        slot = (slot + np.uint64(1)) & mask
        pair = slots[slot]
    return slot


@kernel
def agree(
    p: NDArray[np.unsignedinteger[Any]],
    q: NDArray[np.unsignedinteger[Any]],
    p_groups: GroupOf,
    q_groups: GroupOf,
    other: float,
    into: Rows,
) -> None:
    """Write 1 where both labels of a pixel are in the same group, and `other` elsewhere."""
    one, differing = into.dtype.type(1), into.dtype.type(other)
    p_shift, q_shift = _shift(p_groups[0].size), _shift(q_groups[0].size)
    start = 0
    while start < p.size:
        i, j = p[start], q[start]
        stop = start + 1
        while stop < p.size and p[np.uint64(stop)] == i and q[np.uint64(stop)] == j:
            stop += 1
        group = _group(i, p_groups, p_shift)
        same = group >= 0 and group == _group(j, q_groups, q_shift)
        into[start:stop] = one if same else differing
        start = stop


@inner
def _group(label: Any, groups: GroupOf, shift: Any) -> Any:
    slots, labels, numbers = groups
    return numbers[_code(label, slots, shift, labels, labels.size)]
