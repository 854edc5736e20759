"""The passes over pixels that the method requires, and the sums that they return.

The engine implements the protocol `Passes` for two images.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from probdice.method.overlap import Floats, Integers, Overlap
from probdice.method.sides import Both, Side
from probdice.method.similarity import Similarity

__all__ = ["Distribution", "Lists", "Moments", "Passes", "ScoreSums"]

Lists = Sequence[Sequence[int]]  # the channels or labels of the regions of each group


@dataclass(frozen=True, eq=False)
class ScoreSums:
    """Σ (1 − f), the number of pixels with infinite distance, and Σ|p − q| of each group.

    `loss` is 0 if the differences determine Σ (1 − f).
    """

    loss: float
    infinite: int
    differences: Floats

    def __add__(self, other: "ScoreSums") -> "ScoreSums":
        return ScoreSums(
            self.loss + other.loss,
            self.infinite + other.infinite,
            self.differences + other.differences,
        )


@dataclass(frozen=True, eq=False)
class Moments:
    """Σ p, Σ p pᵀ and Σ p qᵀ over a set of pixels, from which explained shares are computed.

    `products` contains Σ p pᵀ for a side with probabilities and None for a label map.
    """

    volumes: Both[Floats]
    products: Both[Floats | None]
    cross_products: Floats

    def __add__(self, other: "Moments") -> "Moments":
        return Moments(
            Both(*(a + b for a, b in zip(self.volumes, other.volumes, strict=True))),
            Both(
                *(
                    None if a is None or b is None else a + b
                    for a, b in zip(self.products, other.products, strict=True)
                )
            ),
            self.cross_products + other.cross_products,
        )


@dataclass(frozen=True, eq=False)
class Distribution:
    """A histogram per region: the number and the sum of the values in each bin of [0, 1].

    Bins are narrowest at both ends, where most values lie, and widest in the middle.
    """

    counts: Integers
    sums: Floats

    def __add__(self, other: "Distribution") -> "Distribution":
        return Distribution(self.counts + other.counts, self.sums + other.sums)

    @property
    def widths(self) -> Floats:
        """The width of every bin."""
        return _bins(self.counts.shape[1])[1]

    @cached_property
    def shares(self) -> Floats:
        """The sum of the relative positions (0 to 1) of the values in each bin."""
        starts, widths = _bins(self.counts.shape[1])
        shares = self.counts * starts
        np.subtract(self.sums, shares, out=shares)
        shares /= widths
        np.maximum(shares, 0, out=shares)
        return np.minimum(shares, self.counts, out=shares)


@lru_cache(maxsize=2)
def _bins(bins: int) -> tuple[Floats, Floats]:
    """Return the starts and the widths of `bins` bins."""
    ends = 2 * (np.arange(bins // 2 + 1) / bins) ** 2
    widths = np.diff(ends)
    widths = np.concatenate([widths, widths[::-1]])
    return np.cumsum(widths) - widths, widths


class Passes(Protocol):
    """Two segmentations of one image, and the passes over their pixels."""

    def overlap(self, similarity: Similarity) -> Overlap:
        """Return the overlap of both sides."""

    def scores(self, similarity: Similarity, groups: Both[Lists]) -> ScoreSums:
        """Compare the groups of both sides at every pixel."""

    def joined(
        self,
        similarity: Similarity,
        side: Side,
        members: Lists,
        opposite_members: Lists,
        unmatched: Sequence[int],
    ) -> Floats:
        """Return Σ (1 − f) of each group (rows) with one unmatched region added (columns)."""

    def map(self, similarity: Similarity, groups: Both[Lists]) -> NDArray[np.float32]:
        """Return the similarity f between the groups of both sides at every pixel."""

    def moments(self, keys: Both[NDArray[Any]]) -> Moments:
        """Return the moments of both sides, in the order of these labels or channels."""

    def distributions(self, bins: int) -> Both[Distribution]:
        """Return the histogram of every region. Both sides must contain probabilities."""

    def sample(self, positions: Both[Integers]) -> Both[NDArray[Any]]:
        """Read some of the compared pixels per side, as columns of probabilities or as labels.

        A position is the index of a pixel among all compared pixels. Positions must be in ascending
        order.
        """

    def from_samples(self, samples: Both[NDArray[Any]]) -> "Passes":
        """Return images that consist of the sampled pixels."""
