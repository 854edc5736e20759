"""What a pass asks of a similarity on the pixels of a block, and where the answer is computed.

Rows are regions and columns are pixels; a group is a range of a list of rows.
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
    """The kernels that a similarity names."""
    module, factory = similarity.kernels.split(":")
    kernels: BlockKernels = getattr(import_module(module), factory)(similarity)
    return kernels


class PairSums(NamedTuple):
    """Floats over some pixels for the regions of two soft sides and for every pair of them.

    `likeliest` is the number of pixels at which each region is the likeliest. `losses` is Σ 1 − f
    of each region against an empty one, or None where that is its volume.
    `sound` is False where the values of a side need a closer look.
    """

    volumes: tuple[Floats, Floats]
    likeliest: tuple[Integers, Integers]
    losses: tuple[Floats | None, Floats | None]
    savings: Floats
    sound: tuple[bool, bool]


class LabelPairSums(NamedTuple):
    """The same for the codes of a label map and the regions of a soft side."""

    counts: Integers
    volumes: Floats
    likeliest: Integers
    losses: Floats | None
    savings: Floats
    sound: bool


class RowGroups(NamedTuple):
    """Groups of rows of one side, from the column `start` on.

    Group g is ``members[bounds[g] : bounds[g + 1]]``.
    """

    rows: Rows
    start: int
    bounds: Integers
    members: Integers


class BlockKernels(Protocol):
    """What a similarity computes on the pixels of a block."""

    def pairs(self, p: Rows, p_start: int, q: Rows, q_start: int, size: int) -> PairSums:
        """Floats for every region and every pair of regions of two soft sides."""

    def label_pairs(self, codes: Codes, labels: int, q: Rows, q_start: int) -> LabelPairSums:
        """Floats for every label and every pair of a label and a soft region."""

    def joined(
        self, own: RowGroups, unmatched: Integers, across: RowGroups, size: int, into: Floats
    ) -> None:
        """Add 1 − f of each group with each unmatched row of its own side joined to it."""

    def pixels(
        self, p: RowGroups, q: RowGroups, size: int, differences: Floats, into: Rows
    ) -> tuple[float, int]:
        """Write f at every pixel and add Σ|p − q| of each group.

        Returns Σ 1 − f, if it does not follow from the differences, and the number of pixels that
        are infinitely far apart.
        """
