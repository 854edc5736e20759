"""The interface between passes and the kernels of a similarity.

In arrays of probabilities, rows are regions and columns are pixels. A group is a list of rows.
"""

from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from probdice.method.overlap import Floats, Integers
from probdice.method.similarity import Similarity

__all__ = ["BlockKernels", "LabelPairSums", "PairSums", "RowGroups", "kernels_of"]

Rows = NDArray[Any]
Codes = NDArray[np.int32]


@lru_cache
def kernels_of(similarity: Similarity) -> "BlockKernels":
    """Return the kernels that the attribute `kernels` of a similarity names."""
    module, factory = similarity.kernels.split(":")
    kernels: BlockKernels = getattr(import_module(module), factory)(similarity)
    return kernels


class PairSums(NamedTuple):
    """Sums over a set of pixels, for each region and each pair of regions of probabilistic sides.

    `likeliest` contains the number of pixels at which each region is the most probable. `losses`
    contains Σ (1 − f) of each region against an empty region, or is None if this sum equals the
    volume. `sound` is False for a side whose values may be invalid and must be checked.
    """

    volumes: tuple[Floats, Floats]
    likeliest: tuple[Integers, Integers]
    losses: tuple[Floats | None, Floats | None]
    savings: Floats
    sound: tuple[bool, bool]


class LabelPairSums(NamedTuple):
    """Sums over a set of pixels for the codes of a label map and the regions of the other side.

    The fields have the same meaning as in `PairSums`. `counts` contains the volumes of the codes.
    """

    counts: Integers
    volumes: Floats
    likeliest: Integers
    losses: Floats | None
    savings: Floats
    sound: bool


class RowGroups(NamedTuple):
    """The rows of one side, and the rows that belong to each group.

    The pixels start at column `start`. The indices of the rows of group g are
    ``members[bounds[g] : bounds[g + 1]]``.
    """

    rows: Rows
    start: int
    bounds: Integers
    members: Integers


class BlockKernels(Protocol):
    """Functions that compute a similarity and its sums over the pixels of a block."""

    def pairs(self, p: Rows, p_start: int, q: Rows, q_start: int, size: int) -> PairSums:
        """Compute the sums for each region and each pair of regions of two probabilistic sides."""

    def label_pairs(self, codes: Codes, labels: int, q: Rows, q_start: int) -> LabelPairSums:
        """Compute the sums for each label and each pair of a label and a probabilistic region."""

    def joined(
        self, groups: RowGroups, unmatched: Integers, opposite: RowGroups, size: int, into: Floats
    ) -> None:
        """Sum 1 − f of each group with one unmatched row added, for every unmatched row."""

    def pixels(
        self, p: RowGroups, q: RowGroups, size: int, differences: Floats, into: Rows
    ) -> tuple[float, int]:
        """Write f at every pixel, and add Σ|p − q| of each group to `differences`.

        Return Σ (1 − f) and the number of pixels with an infinite distance. The first value is 0 if
        the differences determine the sum.
        """
