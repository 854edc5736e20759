"""Label maps whose labels are known beforehand to be 0, 1, … up to some number."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.engine.kernels._jit import inner, kernel
from probdice.engine.kernels.rows import Indices

Labels = NDArray[Any]  # int64 or uint8
TABLES = 4  # counted into in turn: an increment of the cell that was just written would wait for it


@kernel
def count(p: Labels, q: Labels, ignored: Indices, tables: NDArray[np.int64]) -> int:
    """Count the pairs of labels; the first pixel with an unknown label, or −1.

    `tables` are `TABLES` tables whose sum is wanted. Where the label of `p` is ignored, nothing is
    counted if it is unknown; if it is known, its row of the tables is not to be used.
    """
    rows, columns = np.uint64(tables.shape[1]), np.uint64(tables.shape[2])
    cells = tables.reshape(-1)
    size = rows * columns
    table = np.uint64(0)
    for k in range(np.uint64(0), np.uint64(p.size)):
        i, j = np.uint64(p[k]), np.uint64(q[k])  # what is negative becomes very large
        if i >= rows or j >= columns:
            if not _among(p[k], ignored):
                return np.int64(k)  # beside −1, an unsigned number would become a floating one
        else:
            cells[table + i * columns + j] += 1
        table += size
        if table == size * np.uint64(TABLES):
            table = np.uint64(0)
    return -1


@kernel
def codes(
    labels: Labels, ignored: Indices, regions: int, into: NDArray[np.int32], inside: Indices
) -> tuple[int, int]:
    """Labels that are not ignored as codes, and their places.

    Returns how many there are, and the first pixel with an unknown label, or −1.
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
    """Whether a label is one of some."""
    found = False
    for one in labels:
        found |= one == label
    return found
