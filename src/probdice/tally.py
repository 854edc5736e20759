"""Sums over pixels that add up.

A pass over a block of pixels gives a tally; `+` joins the tallies of two sets of pixels. There is
one kind for each pairing of crisp and soft sides, since each needs other sums. What they have in
common, once all pixels are in, is `PairSums`: the table that matching, merging and the scores are
read from.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from probdice.similarity import Absolute, Similarity

__all__ = ["CrispTally", "MixedTally", "PairSums", "Side", "SoftTally", "Tally", "other"]

Side = Literal["reference", "prediction"]
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def other(side: Side) -> Side:
    """The side across."""
    return "prediction" if side == "reference" else "reference"


@dataclass(frozen=True, eq=False)
class PairSums:
    """Every region of one side against every region of the other, summed over the pixels.

    Attributes
    ----------
    pixels : int
        |Ω|.
    volumes : dict of side to ndarray
        Sum of the probability of each region.
    table : ndarray, reference × prediction regions
        Sum of 1 − f between the auxiliary segmentations of both, in units of `unit`.
    alone : dict of side to ndarray
        The same between each region and an empty one, where known without a pass.
    crisp : set of side
        Sides that are label maps. Joining regions of such a side adds up their sums.
    unit : float
        What one pixel that disagrees costs: less than 1 only for label maps under a floor.
    separable : bool
        Whether a score is the sum of what its groups cost.
    """

    pixels: int
    volumes: dict[Side, NDArray[Any]]
    table: NDArray[Any]
    alone: dict[Side, NDArray[Any]]
    crisp: frozenset[Side]
    separable: bool
    unit: float = 1.0

    @property
    def weights(self) -> Floats:
        """w_ij = 1 − D(auxiliary i, auxiliary j)."""
        weights: Floats = self.table * (self.unit / self.pixels)
        return np.clip(weights, 0, 1)

    def gains(self, side: Side) -> NDArray[Any]:
        """What adding a region of the crisp `side` to any group matched with j takes off its sum.

        In rows the regions of `side`, in columns those of the other side.
        """
        table = self.table if side == "reference" else self.table.T
        gains: NDArray[Any] = self.alone[other(side)][None, :] - table
        return gains

    def restricted(self, keep: Mapping[Side, Integers]) -> "PairSums":
        """The same for some of the regions."""
        return PairSums(
            self.pixels,
            {side: values[keep[side]] for side, values in self.volumes.items()},
            self.table[np.ix_(keep["reference"], keep["prediction"])],
            {side: values[keep[side]] for side, values in self.alone.items()},
            self.crisp,
            self.separable,
            self.unit,
        )


class Tally(ABC):
    """Sums over some pixels of two segmentations."""

    pixels: int

    @abstractmethod
    def __add__(self, more: Self) -> Self:
        """The sums over these and other pixels."""

    @abstractmethod
    def labels(self, side: Side) -> NDArray[Any]:
        """The channels of a side, or the labels of the whole image, in Ω or not."""

    @abstractmethod
    def pairs(self, similarity: Similarity) -> PairSums:
        """The table that results are read from."""


@dataclass(frozen=True, eq=False)
class SoftTally(Tally):
    """Probabilities against probabilities."""

    pixels: int
    reference_volumes: Floats
    prediction_volumes: Floats
    table: Floats

    def __add__(self, more: Self) -> Self:
        return type(self)(
            self.pixels + more.pixels,
            self.reference_volumes + more.reference_volumes,
            self.prediction_volumes + more.prediction_volumes,
            self.table + more.table,
        )

    def labels(self, side: Side) -> NDArray[Any]:
        return np.arange(self.table.shape[0 if side == "reference" else 1])

    def pairs(self, similarity: Similarity) -> PairSums:
        volumes: dict[Side, NDArray[Any]] = {
            "reference": self.reference_volumes,
            "prediction": self.prediction_volumes,
        }
        separable = isinstance(similarity, Absolute)
        alone = volumes if separable else {}
        return PairSums(self.pixels, volumes, self.table, alone, frozenset(), separable)


@dataclass(frozen=True, eq=False)
class MixedTally(Tally):
    """A label map against probabilities.

    `outside` is the sum of 1 − f of each soft region against an empty one, `inside` what that
    changes by where the pixel has a label, one row a label.
    """

    crisp: Side
    pixels: int
    crisp_labels: NDArray[Any]
    crisp_volumes: Integers
    soft_volumes: Floats
    outside: Floats
    inside: Floats

    def __add__(self, more: Self) -> Self:
        labels, (here, there) = _union(self.crisp_labels, more.crisp_labels)
        volumes = np.zeros(labels.size, np.int64)
        volumes[here] += self.crisp_volumes
        volumes[there] += more.crisp_volumes
        inside = np.zeros((labels.size, self.inside.shape[1]))
        inside[here] += self.inside
        inside[there] += more.inside
        return type(self)(
            self.crisp,
            self.pixels + more.pixels,
            labels,
            volumes,
            self.soft_volumes + more.soft_volumes,
            self.outside + more.outside,
            inside,
        )

    def labels(self, side: Side) -> NDArray[Any]:
        return self.crisp_labels if side == self.crisp else np.arange(self.soft_volumes.size)

    def pairs(self, similarity: Similarity) -> PairSums:
        table = self.inside + self.outside[None, :]
        if self.crisp == "prediction":
            table = table.T
        soft = other(self.crisp)
        separable = isinstance(similarity, Absolute)
        alone: dict[Side, NDArray[Any]] = {soft: self.outside}
        alone[self.crisp] = self.crisp_volumes * _cost_of_disagreement(similarity)
        return PairSums(
            self.pixels,
            {self.crisp: self.crisp_volumes, soft: self.soft_volumes},
            table,
            alone,
            frozenset({self.crisp}),
            separable,
        )


@dataclass(frozen=True, eq=False)
class CrispTally(Tally):
    """Two label maps: how many pixels have each pair of labels that occurs.

    `rows`, `columns` and `counts` list the pairs, by position in the sorted labels.
    """

    reference_labels: NDArray[Any]
    prediction_labels: NDArray[Any]
    rows: Integers
    columns: Integers
    counts: Integers

    def __add__(self, more: Self) -> Self:
        reference, row_places = _union(self.reference_labels, more.reference_labels)
        prediction, column_places = _union(self.prediction_labels, more.prediction_labels)
        pairs = np.concatenate(
            [
                row_places[k][tally.rows] * prediction.size + column_places[k][tally.columns]
                for k, tally in enumerate((self, more))
            ]
        )
        distinct, place = np.unique(pairs, return_inverse=True)
        counts = np.zeros(distinct.size, np.int64)
        np.add.at(counts, place, np.concatenate([self.counts, more.counts]))
        return type(self)(reference, prediction, *np.divmod(distinct, prediction.size), counts)

    @property
    def pixels(self) -> int:  # type: ignore[override]
        return int(self.counts.sum())

    def labels(self, side: Side) -> NDArray[Any]:
        return self.reference_labels if side == "reference" else self.prediction_labels

    def pairs(self, similarity: Similarity, *, independent: bool = False) -> PairSums:
        """The table of all pixels so far, or of two maps of the same volumes that are independent.

        Whole numbers, so that no rounding decides a tie, but for independent maps.
        """
        volumes: dict[Side, NDArray[Any]] = {
            "reference": _totals(self.rows, self.counts, self.reference_labels.size),
            "prediction": _totals(self.columns, self.counts, self.prediction_labels.size),
        }
        n, m = volumes["reference"], volumes["prediction"]
        table: NDArray[Any] = n[:, None] + m[None, :]
        if independent:
            table = table - 2 * (n[:, None] / self.pixels * m[None, :])
        else:
            table[self.rows, self.columns] -= 2 * self.counts
        return PairSums(
            self.pixels,
            volumes,
            table,
            volumes,
            frozenset({"reference", "prediction"}),
            separable=True,
            unit=_cost_of_disagreement(similarity),
        )


def _cost_of_disagreement(similarity: Similarity) -> float:
    """1 − f of two different certain vectors: 1 but for a floor."""
    return 1 - float(similarity([1.0, 0.0], [0.0, 1.0]))


def _totals(places: Integers, counts: Integers, size: int) -> Integers:
    """Counts added up by place."""
    totals = np.zeros(size, np.int64)
    np.add.at(totals, places, counts)
    return totals


def _union(a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[Any], tuple[Integers, Integers]]:
    """The labels of both, sorted, and the places of each one's labels among them."""
    if np.array_equal(a, b):
        places = np.arange(a.size)
        return a, (places, places)
    union = np.union1d(a, b)
    return union, (np.searchsorted(union, a), np.searchsorted(union, b))
