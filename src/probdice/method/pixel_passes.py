"""What the mathematics asks of the pixels, and the sums that it gets.

`Passes` is implemented by the engine for two images; each method is one pass over their pixels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from probdice.method.overlap import Floats, Integers, Overlap
from probdice.method.sides import Both, Side
from probdice.method.similarity import Similarity

__all__ = ["Distribution", "Lists", "Moments", "Passes", "Scores"]

Lists = Sequence[Sequence[int]]  # the regions in each group: channels, or labels of a label map


@dataclass(frozen=True, eq=False)
class Scores:
    """Of some pixels: 1 − f in all, how many are infinitely far, and Σ|p − q| of each group."""

    loss: float
    infinite: int
    differences: Floats

    def __add__(self, other: "Scores") -> "Scores":
        return Scores(
            self.loss + other.loss,
            self.infinite + other.infinite,
            self.differences + other.differences,
        )


@dataclass(frozen=True, eq=False)
class Moments:
    """Σ p, Σ p pᵀ and Σ p qᵀ over some pixels: what is explained follows from these.

    `own` has the products of a soft side with itself; for a label map it is None.
    """

    volumes: Both[Floats]
    own: Both[Floats | None]
    between: Floats

    def __add__(self, other: "Moments") -> "Moments":
        return Moments(
            Both(*(a + b for a, b in zip(self.volumes, other.volumes, strict=True))),
            Both(
                *(
                    None if a is None or b is None else a + b
                    for a, b in zip(self.own, other.own, strict=True)
                )
            ),
            self.between + other.between,
        )


@dataclass(frozen=True, eq=False)
class Distribution:
    """How many values of each region lie in each bin of [0, 1], and the sums of these values.

    Bins are narrow at both ends, where most values are, and widest in the middle.
    """

    counts: Integers
    sums: Floats

    def __add__(self, other: "Distribution") -> "Distribution":
        return Distribution(self.counts + other.counts, self.sums + other.sums)

    @cached_property
    def widths(self) -> Floats:
        """The width of every bin."""
        bins = self.counts.shape[1]
        ends = 2 * (np.arange(bins // 2 + 1) / bins) ** 2
        widths = np.diff(ends)
        return np.concatenate([widths, widths[::-1]])

    @cached_property
    def shares(self) -> Floats:
        """The sum, over the values in each bin, of where they lie between its ends: 0 to 1."""
        left_ends = np.cumsum(self.widths) - self.widths
        return np.clip((self.sums - self.counts * left_ends) / self.widths, 0, self.counts)


class Passes(Protocol):
    """Two segmentations of one image, whose pixels can be visited again."""

    def overlap(self, similarity: Similarity) -> Overlap:
        """The overlap of both sides."""

    def scores(self, similarity: Similarity, groups: Both[Lists]) -> Scores:
        """Compare the groups of both sides at every pixel."""

    def joined(
        self,
        similarity: Similarity,
        side: Side,
        own: Lists,
        across: Lists,
        unmatched: Sequence[int],
    ) -> Floats:
        """Σ 1 − f of each group with each unmatched region of `side` joined to it."""

    def map(self, similarity: Similarity, groups: Both[Lists]) -> NDArray[np.float32]:
        """f at every pixel between the groups of both sides."""

    def moments(self, keys: Both[NDArray[Any]]) -> Moments:
        """The moments of both sides, label maps by these labels."""

    def distributions(self, bins: int) -> Both[Distribution]:
        """How the values of every region of two soft sides are distributed."""

    def sample(self, ranks: Both[Integers]) -> Both[NDArray[Any]]:
        """Pixels of each side, by ascending ranks: columns of probabilities, or labels."""

    def drawn(self, samples: Both[NDArray[Any]]) -> "Passes":
        """Images made of sampled pixels."""
