"""What the kernels share about the rows of a block: sums, checks, joins."""

import numpy as np
from numpy.typing import NDArray

from probdice.kernels._jit import sign_of, kernel

Rows = NDArray[np.float32] | NDArray[np.float64]
Sums = NDArray[np.float64]
Indices = NDArray[np.int64]

# Pixels that may be summed in float32 before float64 takes over: longer sums of one constant
# would lose the sixth digit. Unsigned, because an index that could be negative is not vectorised.
CHUNK = np.uint64(256)
TOLERANCE = 1e-3  # how far the probabilities of a pixel may be from summing to 1


@kernel
def survey(rows: Rows, start: int, stop: int, sums: Rows, volumes: Sums) -> bool:
    """Sum each row into `volumes` and each pixel into `sums`; False where a value looks amiss.

    Amiss is what is negative or not finite, and a pixel that does not sum to 1. (A negative
    zero also gives False; whoever looks closer will find nothing.)
    """
    real = rows.dtype.type
    size = stop - start
    sums[:size] = real(0)
    signs = sign_of(real(0))
    even = rows.shape[0] - rows.shape[0] % 2
    for i in range(0, rows.shape[0], 2):
        # Two rows a turn halve the traffic on `sums`; the last of an odd number goes alone.
        row = rows[i, start:stop]
        other = rows[i + 1, start:stop] if i < even else row[:0]
        volumes[i], seen = volume_and_signs(row)
        signs |= seen
        if i < even:
            volumes[i + 1], seen = volume_and_signs(other)
            signs |= seen
            for k in range(size):
                sums[k] += row[k] + other[k]
        else:
            for k in range(size):
                sums[k] += row[k]
    off = 0
    for k in range(size):
        off += not abs(sums[k] - real(1)) <= real(TOLERANCE)
    return signs >= 0 and off == 0


@kernel
def volume_and_signs(row: Rows) -> tuple[float, int]:
    """Sum of a row, and its bits or-ed together: negative where any value is."""
    size = np.uint64(row.size)
    total = 0.0
    signs = sign_of(row.dtype.type(0))
    for start in range(np.uint64(0), size, CHUNK):
        volume = row.dtype.type(0)
        for k in range(start, min(start + CHUNK, size)):
            volume += row[k]
            signs |= sign_of(row[k])
        total += volume
    return total, signs


@kernel
def active(volumes: Sums, into: Indices) -> int:
    """List the rows that are not zero throughout; how many there are."""
    count = 0
    for i in range(volumes.size):
        if volumes[i] != 0:
            into[count] = i
            count += 1
    return count


@kernel
def join(rows: Rows, start: int, stop: int, groups: Indices, members: Indices, into: Rows) -> None:
    """Add up the rows of each group: those of group g are members[groups[g]:groups[g + 1]]."""
    size = stop - start
    for g in range(groups.size - 1):
        joined = into[g, :size]
        joined[:] = rows.dtype.type(0)
        for m in range(groups[g], groups[g + 1]):
            row = rows[members[m], start:stop]
            for k in range(size):
                joined[k] += row[k]


@kernel
def others(rows: Rows, start: int, stop: int, listed: Indices, into: Rows) -> None:
    """For each listed row the sum of the other listed ones; in the row after them, of all.

    By suffix and prefix sums: a difference from the total would lose what is small beside it.
    """
    size = stop - start
    count = listed.size
    prefix = np.empty(size, rows.dtype)
    total = into[count]
    for k in range(size):
        total[k] = prefix[k] = rows.dtype.type(0)
    for i in range(count - 1, -1, -1):
        suffix, later, row = into[i, :size], into[i + 1, :size], rows[listed[i], start:stop]
        for k in range(size):
            suffix[k] = later[k] + row[k]
    for i in range(count):
        rest, later, row = into[i, :size], into[i + 1, :size], rows[listed[i], start:stop]
        for k in range(size):
            rest[k] = prefix[k] + later[k]
            prefix[k] += row[k]
    for k in range(size):
        total[k] = prefix[k]
