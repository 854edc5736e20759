"""Functions that several kernels apply to the rows of a block, such as sums and checks."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.compiler.jit import inlined, inner, sign_of

Rows = NDArray[Any]  # float32 or float64
Sums = NDArray[np.float64]
Indices = NDArray[np.int64]

# Number of pixels that are summed in float32 before the sum is added in float64. In longer sums of
# a constant, the sixth digit may be wrong. The type is unsigned, because loops whose indices may be
# negative are not vectorised.
FLOAT32_SUM_LENGTH = np.uint64(128)
SPAN = 1024  # number of pixels whose rows stay in the first-level cache during checks and counts
TOLERANCE = 1e-3  # largest deviation of a pixel's sum of probabilities from 1
# A probability that is this close to the largest probability of its pixel ties with it.
TIE_TOLERANCE = 1e-6


@inner
def survey(rows: Rows, start: int, stop: int, volumes: Sums, likeliest: Indices) -> bool:
    """Write the sum of each row to `volumes`. Return whether all values are valid.

    The number of pixels at which each row has the largest value is added to `likeliest`. The result
    is False if a value is negative or not finite, or if the values of a pixel do not sum to 1. The
    result is also False for a negative zero, although a negative zero is valid.
    """
    real = rows.dtype.type
    count = rows.shape[0]
    sums, largest = np.empty(SPAN, rows.dtype), np.empty(SPAN, rows.dtype)
    nothing = np.zeros(SPAN if count % 4 else 0, rows.dtype)
    volumes[:] = 0
    signs = sign_of(real(0))
    off = 0
    for first in range(start, stop, SPAN):
        last = min(first + SPAN, stop)
        size = last - first
        for k in range(size):
            sums[k] = largest[k] = real(0)
        for i in range(0, count, 4):
            signs |= _survey_four(
                rows[i, first:last],
                rows[i + 1, first:last] if i + 1 < count else nothing,
                rows[i + 2, first:last] if i + 2 < count else nothing,
                rows[i + 3, first:last] if i + 3 < count else nothing,
                sums,
                largest,
                volumes[i:],
            )
        count_likeliest(rows, first, last, largest, likeliest)
        for k in range(size):
            off += not abs(sums[k] - real(1)) <= real(TOLERANCE)
    return signs >= 0 and off == 0


@inlined
def _survey_four(
    a: Rows, b: Rows, c: Rows, d: Rows, sums: Rows, largest: Rows, volumes: Sums
) -> int:
    """Process four rows at a time to reduce memory traffic.

    Return a negative number if the sign bit of a value is set.
    """
    size = np.uint64(a.size)
    none = a.dtype.type(0)
    signs = sign_of(none)
    v0 = v1 = v2 = v3 = 0.0
    for start in range(np.uint64(0), size, FLOAT32_SUM_LENGTH):
        s0 = s1 = s2 = s3 = none
        for k in range(start, min(start + FLOAT32_SUM_LENGTH, size)):
            s0 += a[k]
            s1 += b[k]
            s2 += c[k]
            s3 += d[k]
            sums[k] += (a[k] + b[k]) + (c[k] + d[k])
            largest[k] = max(max(max(a[k], b[k]), max(c[k], d[k])), largest[k])
            signs |= (sign_of(a[k]) | sign_of(b[k])) | (sign_of(c[k]) | sign_of(d[k]))
        v0 += s0
        v1 += s1
        v2 += s2
        v3 += s3
    for i, volume in enumerate((v0, v1, v2, v3)):
        if i < volumes.size:
            volumes[i] += volume
    return signs


@inner
def survey_rest(
    rows: Rows, start: int, stop: int, largest: Rows, rest: Rows, volumes: Sums, likeliest: Indices
) -> bool:
    """Extend `survey`: also write the largest value of each pixel and the sum of its other values.

    Because the largest value is left out of this sum, much smaller values keep their precision.
    For every region except the largest, the sum of the other regions is at least half of the total,
    so subtracting the region from the total is accurate.
    """
    real = rows.dtype.type
    size, count = stop - start, rows.shape[0]
    nothing = np.zeros(size if count % 4 else 0, rows.dtype)
    for k in range(size):
        largest[k] = rest[k] = real(0)
    signs = sign_of(real(0))
    for i in range(0, count, 4):
        signs |= _survey_four_rest(
            rows[i, start:stop],
            rows[i + 1, start:stop] if i + 1 < count else nothing,
            rows[i + 2, start:stop] if i + 2 < count else nothing,
            rows[i + 3, start:stop] if i + 3 < count else nothing,
            largest,
            rest,
            volumes[i:],
        )
    count_likeliest(rows, start, stop, largest, likeliest)
    off = 0
    for k in range(size):
        off += not abs(largest[k] + rest[k] - real(1)) <= real(TOLERANCE)
    return signs >= 0 and off == 0


@inner
def _survey_four_rest(
    a: Rows, b: Rows, c: Rows, d: Rows, largest: Rows, rest: Rows, volumes: Sums
) -> int:
    """Process four rows at a time, like `_survey_four`."""
    size = np.uint64(a.size)
    none = a.dtype.type(0)
    signs = sign_of(none)
    v0 = v1 = v2 = v3 = 0.0
    for start in range(np.uint64(0), size, FLOAT32_SUM_LENGTH):
        s0 = s1 = s2 = s3 = none
        for k in range(start, min(start + FLOAT32_SUM_LENGTH, size)):
            s0 += a[k]
            s1 += b[k]
            s2 += c[k]
            s3 += d[k]
            # Find the largest value of each pair, then of all four, and sum the other values.
            high, low = max(a[k], b[k]), min(a[k], b[k])
            other_high, other_low = max(c[k], d[k]), min(c[k], d[k])
            low, high = low + other_low + min(high, other_high), max(high, other_high)
            rest[k] += low + min(high, largest[k])
            largest[k] = max(high, largest[k])
            signs |= (sign_of(a[k]) | sign_of(b[k])) | (sign_of(c[k]) | sign_of(d[k]))
        v0 += s0
        v1 += s1
        v2 += s2
        v3 += s3
    for i, volume in enumerate((v0, v1, v2, v3)):
        if i < volumes.size:
            volumes[i] = volume
    return signs


@inner
def count_likeliest(rows: Rows, start: int, stop: int, largest: Rows, likeliest: Indices) -> None:
    """Add the number of pixels at which each row is within `TIE_TOLERANCE` of the largest value.

    The difference of two nearly equal floating-point numbers is exact. Therefore, neither the order
    of the pixels nor the width of the vectors changes a count.
    """
    count = rows.shape[0]
    last = count - 1
    for i in range(0, count, 4):
        _count_four(
            rows[i, start:stop],
            rows[min(i + 1, last), start:stop],
            rows[min(i + 2, last), start:stop],
            rows[min(i + 3, last), start:stop],
            largest,
            likeliest[i:],
        )


@inlined
def _count_four(a: Rows, b: Rows, c: Rows, d: Rows, largest: Rows, likeliest: Indices) -> None:
    real = a.dtype.type
    one, none, tied = real(1), real(0), real(TIE_TOLERANCE)
    # Counts are floating-point numbers with the width of the values, so that the loop is
    # vectorised. These counts are exact, because the number of pixels is small.
    n0 = n1 = n2 = n3 = none
    for k in range(np.uint64(a.size)):
        n0 += one if largest[k] - a[k] <= tied else none
        n1 += one if largest[k] - b[k] <= tied else none
        n2 += one if largest[k] - c[k] <= tied else none
        n3 += one if largest[k] - d[k] <= tied else none
    for i, count in enumerate((n0, n1, n2, n3)):
        if i < likeliest.size:
            likeliest[i] += np.int64(count)


@inner
def volume(row: Rows) -> float:
    """Return the sum of a row."""
    size = np.uint64(row.size)
    total = 0.0
    for start in range(np.uint64(0), size, FLOAT32_SUM_LENGTH):
        short = row.dtype.type(0)
        for k in range(start, min(start + FLOAT32_SUM_LENGTH, size)):
            short += row[k]
        total += short
    return total


@inner
def active(volumes: Sums, into: Indices) -> int:
    """List the rows that are not zero everywhere, and return their number."""
    count = 0
    for i in range(volumes.size):
        if volumes[i] != 0:
            into[count] = i
            count += 1
    return count


@inner
def equal(a: Rows, b: Rows) -> bool:
    """Return whether two rows are equal."""
    different = 0
    for k in range(a.size):
        different |= a[k] != b[k]
    return different == 0


@inner
def nearly(a: float, b: float) -> bool:
    """Return whether two sums agree up to rounding errors, so that their rows may be equal."""
    return abs(a - b) <= 1e-4 * abs(b)


@inner
def join(rows: Rows, start: int, stop: int, members: Indices, into: Rows) -> Rows:
    """Write the sum of the listed rows to `into`, and return it.

    If only one row is listed, return this row without a copy.
    """
    if members.size == 1:
        return rows[members[0], start:stop]
    size = stop - start
    joined = into[:size]
    for k in range(size):
        joined[k] = rows.dtype.type(0)
    for m in members:
        row = rows[m, start:stop]
        for k in range(size):
            joined[k] += row[k]
    return joined


@inner
def others(rows: Rows, start: int, stop: int, listed: Indices, into: Rows) -> None:
    """For each listed row, write the sum of all other listed rows; then write the sum of all.

    Suffix and prefix sums are used, because a difference from the total would lose small values.
    """
    size = stop - start
    count = listed.size
    sums = np.zeros((2, size), rows.dtype)
    suffix, prefix = sums[0], sums[1]
    for i in range(count - 1, -1, -1):
        _pass_on(rows[listed[i], start:stop], suffix, into[i])
    for i in range(count):
        _add_on(rows[listed[i], start:stop], prefix, into[i])
    total = into[count]
    for k in range(size):
        total[k] = prefix[k]


@inner
def _pass_on(row: Rows, running: Rows, into: Rows) -> None:
    """Write the running sum to `into`, then add the row to the running sum."""
    for k in range(row.size):
        so_far = running[k]
        into[k] = so_far
        running[k] = so_far + row[k]


@inner
def _add_on(row: Rows, running: Rows, into: Rows) -> None:
    """Add the running sum to `into`, then add the row to the running sum."""
    for k in range(row.size):
        so_far = running[k]
        into[k] += so_far
        running[k] = so_far + row[k]
