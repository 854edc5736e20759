"""Generic kernels in NumPy for similarities without compiled kernels."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.engine.similarity_kernels import LabelPairSums, PairSums, RowGroups
from probdice.method.overlap import Floats, Integers
from probdice.method.similarity import Similarity

__all__ = ["NumpyKernels"]

CERTAIN_REGION = np.array([[1.0], [0.0]])  # a region with probability 1
TIE_TOLERANCE = 1e-6  # smaller differences from the largest probability of a pixel count as ties
EMPTY_REGION = np.array([[0.0], [1.0]])  # a region with probability 0


class NumpyKernels:
    """Kernels that call the similarity on NumPy arrays, in float64."""

    def __init__(self, similarity: Similarity) -> None:
        self.similarity = similarity

    def pairs(
        self, p: NDArray[Any], p_start: int, q: NDArray[Any], q_start: int, size: int
    ) -> PairSums:
        """Compute the sums for each region and each pair of regions of two probabilistic sides."""
        p, q = (_columns(rows, at, size) for rows, at in ((p, p_start), (q, q_start)))
        p_binary, q_binary = _auxiliaries(p), _auxiliaries(q)
        p_alone = [self._losses(vector, EMPTY_REGION) for vector in p_binary]
        q_alone = [self._losses(EMPTY_REGION, vector) for vector in q_binary]
        savings = np.zeros((len(p), len(q)))
        for i, j in np.ndindex(savings.shape):
            common = (p[i] > 0) & (q[j] > 0)
            pair = self._losses(p_binary[i][:, common], q_binary[j][:, common])
            savings[i, j] = _pixel_savings(p_alone[i][common], q_alone[j][common], pair).sum()
        volumes = p.sum(axis=1), q.sum(axis=1)
        likeliest = _likeliest(p), _likeliest(q)
        losses = _totals(p_alone), _totals(q_alone)
        return PairSums(volumes, likeliest, losses, savings, (False, False))

    def label_pairs(
        self, codes: NDArray[np.int32], labels: int, q: NDArray[Any], q_start: int
    ) -> LabelPairSums:
        """Compute the sums for each label and each pair of a label and a probabilistic region."""
        q = _columns(q, q_start, codes.size)
        savings, losses = np.zeros((labels, len(q))), np.zeros(len(q))
        certain_alone = np.full(codes.size, self.similarity.disagreement)
        for j, vector in enumerate(_auxiliaries(q)):
            alone = self._losses(EMPTY_REGION, vector)
            pixel_savings = _pixel_savings(
                certain_alone, alone, self._losses(CERTAIN_REGION, vector)
            )
            savings[:, j] = np.bincount(codes, np.where(q[j] > 0, pixel_savings, 0), labels)
            losses[j] = alone.sum()
        counts = np.bincount(codes, minlength=labels)
        return LabelPairSums(counts, q.sum(axis=1), _likeliest(q), losses, savings, False)

    def joined(
        self, groups: RowGroups, unmatched: Integers, opposite: RowGroups, size: int, into: Floats
    ) -> None:
        """Sum 1 − f of each group with one unmatched row added, for every unmatched row."""
        p, q = (_columns(side.rows, side.start, size) for side in (groups, opposite))
        for g in range(groups.bounds.size - 1):
            vector = _binary(q, _members(opposite, g))
            for u, row in enumerate(unmatched):
                grown = _binary(p, np.append(_members(groups, g), row))
                into[g, u] += self._losses(grown, vector).sum()

    def pixels(
        self, p: RowGroups, q: RowGroups, size: int, differences: Floats, into: NDArray[Any]
    ) -> tuple[float, int]:
        """Write f at every pixel, and add Σ|p − q| of each group to `differences`."""
        sums = [
            np.stack([rows[_members(side, g)].sum(axis=0) for g in range(side.bounds.size - 1)])
            for side in (p, q)
            for rows in [_columns(side.rows, side.start, size)]
        ]
        differences += np.abs(sums[0] - sums[1]).sum(axis=1)
        f = np.asarray(self.similarity(*sums, axis=0))
        into[:] = f
        infinite = np.count_nonzero(f == 0) if self.similarity.unbounded else 0
        return float((1 - f).sum()), int(infinite)

    def _losses(self, p: Floats, q: Floats) -> Floats:
        """Return 1 − f at every pixel."""
        p, q = np.broadcast_arrays(p, q)
        return 1 - np.asarray(self.similarity(p, q, axis=0), np.float64)


def _columns(rows: NDArray[Any], start: int, size: int) -> Floats:
    return rows[:, start : start + size].astype(np.float64)


def _auxiliaries(rows: Floats) -> list[Floats]:
    """Return one binary segmentation per region.

    The rows of a binary segmentation are the probability of the region and the sum of all other
    probabilities.
    """
    return [_binary(rows, np.array([k])) for k in range(len(rows))]


def _binary(rows: Floats, members: Integers) -> Floats:
    other_rows = np.delete(rows, members, axis=0)
    return np.stack([rows[members].sum(axis=0), other_rows.sum(axis=0)])


def _members(side: RowGroups, group: int) -> Integers:
    members: Integers = side.members[side.bounds[group] : side.bounds[group + 1]]
    return members


def _pixel_savings(p_alone: Floats, q_alone: Floats, pair: Floats) -> Floats:
    """Return the saving at every pixel if two regions are matched instead of left unmatched."""
    return np.maximum((p_alone + q_alone - pair) / 2, 0)


def _likeliest(rows: Floats) -> Integers:
    """Return the number of pixels at which each row is within `TIE_TOLERANCE` of the maximum."""
    likeliest: Integers = (rows >= rows.max(axis=0, initial=0) - TIE_TOLERANCE).sum(axis=1)
    return likeliest


def _totals(alone: list[Floats]) -> Floats:
    return np.array([losses.sum() for losses in alone])
