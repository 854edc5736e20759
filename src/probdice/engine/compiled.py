"""Compiled kernels of the paper's two similarities, with a common interface."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.engine.kernels import absolute, aitchison, label_rows
from probdice.engine.similarity_kernels import Codes, LabelPairSums, PairSums, RowGroups, Rows
from probdice.method.overlap import Floats, Integers
from probdice.method.similarity import Similarity

__all__ = ["AbsoluteKernels", "AitchisonKernels"]


class AbsoluteKernels:
    """Kernels of the absolute similarity."""

    def __init__(self, similarity: Similarity) -> None:
        """Ignore the similarity, because the absolute similarity has no parameters."""

    def pairs(self, p: Rows, p_start: int, q: Rows, q_start: int, size: int) -> PairSums:
        """Sum min(p_i, q_j) over the pixels."""
        volumes = np.zeros(p.shape[0]), np.zeros(q.shape[0])
        likeliest = np.zeros(p.shape[0], np.int64), np.zeros(q.shape[0], np.int64)
        savings = np.zeros((p.shape[0], q.shape[0]))
        sound = absolute.pairs(p, p_start, q, q_start, size, *volumes, *likeliest, savings)
        return PairSums(volumes, likeliest, (None, None), savings, sound)

    def label_pairs(self, codes: Codes, labels: int, q: Rows, q_start: int) -> LabelPairSums:
        """Sum min(q_j, 1) over the pixels of each label."""
        counts, volumes = np.zeros(labels, np.int64), np.zeros(q.shape[0])
        likeliest = np.zeros(q.shape[0], np.int64)
        savings = np.zeros((labels, q.shape[0]))
        sound = label_rows.pairs_absolute(codes, q, q_start, counts, volumes, likeliest, savings)
        return LabelPairSums(counts, volumes, likeliest, None, savings, sound)

    def joined(
        self, groups: RowGroups, unmatched: Integers, opposite: RowGroups, size: int, into: Floats
    ) -> None:
        """Sum |p − q| of each group with one unmatched row added, for every unmatched row."""
        absolute.joined(*groups, unmatched, *opposite, size, into)

    def pixels(
        self, p: RowGroups, q: RowGroups, size: int, differences: Floats, into: Rows
    ) -> tuple[float, int]:
        """Write f at every pixel, and add the sum of |p − q| of each group to `differences`."""
        absolute.pixels(*p, *q, size, differences, into)
        return 0.0, 0


class AitchisonKernels:
    """Kernels of the Aitchison similarity, with or without a floor."""

    def __init__(self, similarity: Similarity) -> None:
        self.floor: float = similarity.parameters["floor"]

    def pairs(self, p: Rows, p_start: int, q: Rows, q_start: int, size: int) -> PairSums:
        """Sum ½ (ℓ(p_i, 0) + ℓ(0, q_j) − ℓ(p_i, q_j)) over the pixels, with ℓ = 1 − f."""
        volumes = np.zeros(p.shape[0]), np.zeros(q.shape[0])
        likeliest = np.zeros(p.shape[0], np.int64), np.zeros(q.shape[0], np.int64)
        losses = np.zeros(p.shape[0]), np.zeros(q.shape[0])
        savings = np.zeros((p.shape[0], q.shape[0]))
        sound = aitchison.pairs(
            p, p_start, q, q_start, size, self.floor, *volumes, *likeliest, *losses, savings
        )
        return PairSums(volumes, likeliest, losses, savings, sound)

    def label_pairs(self, codes: Codes, labels: int, q: Rows, q_start: int) -> LabelPairSums:
        """Compute the sums of `pairs` for a label map and a probabilistic side."""
        counts = np.zeros(labels, np.int64)
        volumes, losses = np.zeros(q.shape[0]), np.zeros(q.shape[0])
        likeliest = np.zeros(q.shape[0], np.int64)
        savings = np.zeros((labels, q.shape[0]))
        sound = label_rows.pairs_aitchison(
            codes, q, q_start, self.floor, counts, volumes, likeliest, losses, savings
        )
        return LabelPairSums(counts, volumes, likeliest, losses, savings, sound)

    def joined(
        self, groups: RowGroups, unmatched: Integers, opposite: RowGroups, size: int, into: Floats
    ) -> None:
        """Sum 1 − f of each group with one unmatched row added, for every unmatched row.

        The vectors are binary. The second entry of a vector is the sum of all other rows.
        """
        rest_rows = _remaining_rows(groups.rows, np.concatenate([groups.members, unmatched]))
        opposite_rest = _remaining_rows(opposite.rows, opposite.members)
        aitchison.joined(
            *groups, rest_rows, unmatched, *opposite, opposite_rest, size, self.floor, into
        )

    def pixels(
        self, p: RowGroups, q: RowGroups, size: int, differences: Floats, into: Rows
    ) -> tuple[float, int]:
        """Write f at every pixel, and add the sum of |p − q| of each group to `differences`."""
        result: tuple[float, int] = aitchison.pixels(*p, *q, size, self.floor, differences, into)
        return result


def _remaining_rows(rows: Rows, members: Integers) -> NDArray[Any]:
    """Return the indices of the rows that are not in `members`."""
    return np.setdiff1d(np.arange(rows.shape[0]), members)
