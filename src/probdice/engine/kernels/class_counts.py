"""Counts of label maps whose labels are 0, 1, … up to a known number."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.compiler.jit import inner, kernel
from probdice.engine.kernels.rows import Indices

Labels = NDArray[Any]  # int64 or uint8
TABLES = 4  # counted into in turn: an increment of the cell that was just written would wait for it


@kernel
def count(p: Labels, q: Labels, ignored: Indices, tables: NDArray[np.int64]) -> Any:
    """Count the pairs of labels. Return the first pixel with an unknown label, or −1.

    The counts are the sum of the `TABLES` tables. If the label of `p` is ignored, an unknown label
    is not counted; a known label is counted in its row of the tables, which must not be used.
    """
    rows, columns = np.uint64(tables.shape[1]), np.uint64(tables.shape[2])
    c0, c1 = tables[0].reshape(-1), tables[1].reshape(-1)
    c2, c3 = tables[2].reshape(-1), tables[3].reshape(-1)
    whole = np.uint64(p.size - p.size % TABLES)
    for k in range(np.uint64(0), whole, np.uint64(TABLES)):
        # As unsigned integers, negative labels become very large.
        i0, j0 = np.uint64(p[k]), np.uint64(q[k])
        i1, j1 = np.uint64(p[k + np.uint64(1)]), np.uint64(q[k + np.uint64(1)])
        i2, j2 = np.uint64(p[k + np.uint64(2)]), np.uint64(q[k + np.uint64(2)])
        i3, j3 = np.uint64(p[k + np.uint64(3)]), np.uint64(q[k + np.uint64(3)])
        if max(max(i0, i1), max(i2, i3)) < rows and max(max(j0, j1), max(j2, j3)) < columns:
            c0[i0 * columns + j0] += 1
            c1[i1 * columns + j1] += 1
            c2[i2 * columns + j2] += 1
            c3[i3 * columns + j3] += 1
        else:
            unknown = _count_some(p, q, k, k + np.uint64(TABLES), ignored, tables[0])
            if unknown >= 0:
                return unknown
    return _count_some(p, q, whole, np.uint64(p.size), ignored, tables[0])


@inner
def _count_some(
    p: Labels, q: Labels, start: Any, stop: Any, ignored: Indices, table: NDArray[np.int64]
) -> Any:
    """`count` for a few pixels, some of which may have unknown labels."""
    rows, columns = np.uint64(table.shape[0]), np.uint64(table.shape[1])
    for k in range(start, stop):
        i, j = np.uint64(p[k]), np.uint64(q[k])
        if i < rows and j < columns:
            table[i, j] += 1
        elif not _among(p[k], ignored):
            return np.int64(k)  # beside −1, an unsigned number would become a floating one
    return np.int64(-1)


@kernel
def codes(
    labels: Labels, ignored: Indices, regions: int, into: NDArray[np.int32], inside: Indices
) -> tuple[int, int]:
    """Write the codes and positions of labels that are not ignored.

    Returns their number, and the first pixel with an unknown label, or −1.
    """
    kept = 0
    for k in range(labels.size):
        if _among(labels[k], ignored):
            continue
        if np.uint64(labels[k]) >= np.uint64(regions):
            return kept, k
        into[kept] = labels[k]
        inside[kept] = k
        kept += 1
    return kept, -1


@inner
def _among(label: int, labels: Indices) -> bool:
    """Whether a label is ignored."""
    found = False
    for one in labels:
        found |= one == label
    return found
