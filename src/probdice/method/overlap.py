"""The overlap of two segmentations, which contains sums over their pixels.

An overlap contains the volume of each region, the cost of each region alone, and the saving of each
pair of overlapping regions. Overlaps of image blocks, training batches or the images of a data set
can be added. Matches, scores, chance levels and other metrics are computed from the total. For
probabilities, some of them also require the pixels (see `Overlap.compare`).
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.errors import InputError, TooLargeError
from probdice.method.regions import Floats, Integers, Regions, united_regions
from probdice.method.sides import SIDES, Both, Side
from probdice.method.similarity import Similarity
from probdice.text.table_output import data_frame

if TYPE_CHECKING:
    import pandas

    from probdice.comparison.result import Comparison
    from probdice.method.merging import Merging
    from probdice.metrics.indices import Indices
    from probdice.options import GivenBackground, Match

__all__ = ["MAX_TABLE_PAIRS", "Floats", "Integers", "Overlap", "Pairs", "Regions"]

FORMAT_VERSION = 1  # of save and to_dict
TIE = 1e-12  # smaller differences between scores are rounding errors
MAX_TABLE_PAIRS = 2**27  # largest number of pairs of regions in a table, at 8 bytes per pair
COMPACTION_PAIRS = 2**20  # number of pairs that are collected before overlaps are added


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of overlapping regions. `rows` and `columns` are the indices of the two regions.

    `savings` is ½ (sum of the costs of the two regions alone − cost of the pair), summed over the
    pixels, in multiples of `Overlap.unit`.
    """

    rows: Integers
    columns: Integers
    savings: NDArray[Any]

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, eq=False, repr=False)
class Overlap:
    """The overlap of every pair of regions of two segmentations, summed over their pixels.

    Use `probdice.overlap` to compute an overlap. Add overlaps of different pixels with ``+`` or
    ``sum``.

    Attributes
    ----------
    similarity : Similarity
        The function that measures the similarity of two probability vectors.
    pixels : int
        Number of compared pixels (voxels of a volume).
    reference : Regions
        Labels and volumes of the reference regions, and the cost of each region alone.
    prediction : Regions
        Labels and volumes of the prediction regions, and the cost of each region alone.
    pairs : Pairs
        The saving of every pair of overlapping regions. For two label maps, the saving is the
        number of common pixels.

    Examples
    --------
    >>> import probdice
    >>> images = [([1, 1, 2], [5, 5, 7]), ([2, 2], [7, 5])]
    >>> total = sum(probdice.overlap(*image) for image in images)
    >>> total
    Overlap (absolute): 2 reference and 2 prediction regions over 5 pixels, 3 overlapping pairs
    >>> total.compare().score
    0.8
    """

    similarity: Similarity
    pixels: int
    reference: Regions
    prediction: Regions
    pairs: Pairs

    def side(self, side: Side) -> Regions:
        """Return the regions of one side."""
        return self.reference if side == "reference" else self.prediction

    @property
    def crisp(self) -> bool:
        """Whether both sides are label maps. If so, all sums are integers."""
        return self.reference.crisp and self.prediction.crisp

    @property
    def separable(self) -> bool:
        """Whether the sum of the costs of the groups determines the score."""
        return self.crisp or self.similarity.separable

    @property
    def unit(self) -> float:
        """The factor that converts sums to costs.

        It can be below 1 only for two label maps, for example if the similarity has a floor.
        """
        return self.similarity.disagreement if self.crisp else 1.0

    @property
    def tie(self) -> float:
        """The largest difference between two sums that count as equal."""
        return 0 if self.crisp else TIE * self.pixels

    @cached_property
    def alone(self) -> Both[NDArray[Any]]:
        """The cost of every region alone, Σ (1 − f) against an empty region, divided by `unit`."""
        return Both(*(self._alone(self.side(side)) for side in SIDES))

    def _alone(self, regions: Regions) -> NDArray[Any]:
        if regions.losses is not None:
            return regions.losses
        if regions.crisp and not self.crisp:
            costs: NDArray[Any] = regions.volumes * self.similarity.disagreement
            return costs
        return regions.volumes

    @cached_property
    def overlaps(self) -> Floats:
        """The overlap o_ij of every overlapping pair, in the order of `pairs`."""
        return self.pairs.savings * (self.unit / self.pixels)

    def costs(self, rows: Integers, columns: Integers, savings: NDArray[Any]) -> NDArray[Any]:
        """Return the costs of pairs, in multiples of `unit`. Costs are never negative."""
        alone = self.alone
        costs: NDArray[Any] = alone.reference[rows] + alone.prediction[columns] - 2 * savings
        return np.asarray(np.maximum(costs, 0))

    @cached_property
    def weights(self) -> Floats:
        """The weight w_ij of every pair of non-empty regions, as a read-only array.

        The weight is 1 − D, where D is the score if only these two regions are compared.
        """
        rows, columns = self.reference.occupied, self.prediction.occupied
        if rows.size * columns.size > MAX_TABLE_PAIRS:
            raise TooLargeError(
                f"the weights of {rows.size} reference and {columns.size} prediction regions take "
                f"{rows.size * columns.size * 8 / 2**30:.1f} GiB, more than the limit of "
                f"{MAX_TABLE_PAIRS * 8 / 2**30:g} GiB. Use overlap.to_frame(), which contains "
                f"only overlapping pairs."
            )
        alone = self.alone
        weights: Floats = np.add.outer(
            alone.reference[rows].astype(np.float64), alone.prediction[columns].astype(np.float64)
        )
        indices = Both(
            *(
                _compact_indices(len(regions), occupied)
                for regions, occupied in ((self.reference, rows), (self.prediction, columns))
            )
        )
        overlapping = self.pairs
        cells = indices.reference[overlapping.rows], indices.prediction[overlapping.columns]
        weights[cells] -= 2 * overlapping.savings
        weights *= self.unit / self.pixels
        np.clip(weights, 0, 1, out=weights)
        weights.flags.writeable = False
        return weights

    def compare(
        self,
        *,
        match: "Match" = "overlap",
        merge: "Merging" = "none",
        background: "GivenBackground" = None,
    ) -> "Comparison":
        """Match the regions and, if requested, merge unmatched regions.

        The result has no images, so operations that require the pixels raise an error. Maps always
        require the pixels. Merging, groups of several regions and chance levels require the pixels
        if both sides are probabilistic. With the Aitchison similarity, the score and chance levels
        require the pixels unless both sides are label maps, and merging may require them.

        Parameters
        ----------
        match, merge, background
            As in `probdice.compare`.

        Examples
        --------
        >>> import probdice
        >>> overlap = probdice.overlap([1, 1, 1, 1, 2, 2, 2, 2], [7, 7, 5, 5, 5, 9, 9, 9])
        >>> overlap.compare().score, overlap.compare(merge="prediction").score
        (0.625, 0.875)
        """
        from probdice.comparison.comparing import checked_options, compare_overlap

        options = checked_options(
            similarity=self.similarity, match=match, merge=merge, background=background
        )
        return compare_overlap(self, options)

    def indices(self, *, background: "GivenBackground" = None) -> "Indices":
        """Compute the Rand index, variation of information, covering, mean IoU and other indices.

        Metrics that require a correspondence use the correspondence with the largest total overlap.
        For any other correspondence, use ``compare(…).indices()``.

        Parameters
        ----------
        background : int, str or mapping of side to int or str, optional
            As in `probdice.compare`.

        Examples
        --------
        >>> import probdice
        >>> indices = probdice.overlap([1, 1, 2, 2], [5, 5, 5, 8]).indices()
        >>> indices.rand, indices.accuracy
        (0.5, 0.75)
        """
        return self.compare(background=background).indices()

    def to_frame(self) -> "pandas.DataFrame":
        """Return a table with one row per pair of overlapping regions.

        `overlap` and `weight` are shares of all compared pixels, from 0 to 1. `overlap` is the
        saving of the pair divided by the number of pixels. For label maps, it is the share of
        pixels that both regions contain. `weight` is the cost of matching the pair. For label maps,
        it is the share of pixels that exactly one of the two regions contains. For label maps and
        the Aitchison similarity with a floor, both shares are multiplied by 1 − f of two different
        labels.

        Examples
        --------
        >>> import probdice
        >>> probdice.overlap([1, 1, 2, 2], [5, 5, 5, 8]).to_frame()
           reference  prediction  overlap  weight
        0          1           5     0.50    0.25
        1          2           5     0.25    0.75
        2          2           8     0.25    0.25
        """
        overlapping = self.pairs
        weights = self.costs(overlapping.rows, overlapping.columns, overlapping.savings) * (
            self.unit / self.pixels
        )
        return data_frame(
            {
                "reference": _column(self.reference, overlapping.rows),
                "prediction": _column(self.prediction, overlapping.columns),
                "overlap": self.overlaps,
                "weight": np.minimum(weights, 1),
            }
        )

    def __add__(self, other: object) -> "Overlap":
        if not isinstance(other, Overlap):
            return NotImplemented
        return Overlap.total([self, other])

    def __radd__(self, other: object) -> "Overlap":
        """Support ``sum``, which starts with 0."""
        if isinstance(other, int) and other == 0:
            return self
        return NotImplemented

    @classmethod
    def total(cls, overlaps: Iterable["Overlap"]) -> "Overlap":
        """Return the sum of several overlaps.

        Examples
        --------
        >>> import probdice
        >>> probdice.Overlap.total([probdice.overlap([1, 2], [5, 5])] * 3).pixels
        6
        """
        pending: list[Overlap] = []
        pairs = compact = 0
        for overlap in overlaps:
            pending.append(overlap)
            pairs += len(overlap.pairs)
            # Adding requires a sort. It is postponed until there are twice as many pairs as after
            # the last sum.
            if len(pending) > 1 and pairs > COMPACTION_PAIRS + 2 * compact:
                pending = [_added(pending)]
                pairs = compact = len(pending[0].pairs)
        if not pending:
            raise InputError("overlaps is empty: expected at least one overlap")
        return pending[0] if len(pending) == 1 else _added(pending)

    def to_dict(self) -> dict[str, Any]:
        """Return the overlap as built-in Python types, with the format version.

        Examples
        --------
        >>> import probdice
        >>> probdice.overlap([1, 2, 2], [5, 5, 5]).to_dict()["savings"]
        [1, 2]
        """
        return {
            "format": FORMAT_VERSION,
            "similarity": self.similarity.to_dict(),
            "pixels": self.pixels,
            "reference": self.reference.to_dict(),
            "prediction": self.prediction.to_dict(),
            "rows": self.pairs.rows.tolist(),
            "columns": self.pairs.columns.tolist(),
            "savings": self.pairs.savings.tolist(),
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Overlap":
        """Restore an overlap from the output of `to_dict`.

        Examples
        --------
        >>> import probdice
        >>> overlap = probdice.overlap([1, 2, 2], [5, 5, 5])
        >>> probdice.Overlap.from_dict(overlap.to_dict()).pixels
        3
        """
        from probdice.method.overlap_files import overlap_from_dict

        return overlap_from_dict(content)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the overlap to a file that `load` can read. A failed write leaves no partial file.

        Examples
        --------
        >>> import os, tempfile
        >>> import probdice
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = os.path.join(folder, "overlap.npz")
        ...     probdice.overlap([1, 2, 2], [5, 5, 5]).save(file)
        ...     probdice.Overlap.load(file)
        Overlap (absolute): 2 reference and 1 prediction regions over 3 pixels, 2 overlapping pairs
        """
        from probdice.method.overlap_files import write_overlap

        write_overlap(self, os.fspath(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Overlap":
        """Read an overlap from a file written by `save`.

        Examples
        --------
        >>> import probdice
        >>> try:
        ...     probdice.Overlap.load("missing.npz")
        ... except probdice.FormatError as error:
        ...     print(error)
        missing.npz: cannot be read: No such file or directory
        """
        from probdice.method.overlap_files import read_overlap

        return read_overlap(os.fspath(path))

    def __repr__(self) -> str:
        return (
            f"Overlap ({self.similarity}): {self.reference.occupied.size} reference and "
            f"{self.prediction.occupied.size} prediction regions over {self.pixels} pixels, "
            f"{len(self.pairs)} overlapping pairs"
        )


def _added(overlaps: Sequence[Overlap]) -> Overlap:
    """Return the sum of one or more overlaps."""
    first = overlaps[0]
    for overlap in overlaps[1:]:
        if overlap.similarity != first.similarity:
            raise InputError(
                f"overlaps with different similarities cannot be added: found "
                f"{first.similarity!r} and {overlap.similarity!r}"
            )
    reference, rows = united_regions([overlap.reference for overlap in overlaps], "reference")
    prediction, columns = united_regions([overlap.prediction for overlap in overlaps], "prediction")
    savings = np.concatenate([overlap.pairs.savings for overlap in overlaps])
    pairs = np.concatenate(
        [
            rows[k][overlap.pairs.rows] * len(prediction) + columns[k][overlap.pairs.columns]
            for k, overlap in enumerate(overlaps)
        ]
    )
    order = np.argsort(pairs, kind="stable")  # a stable sort is fast on sorted runs
    pairs, savings = pairs[order], savings[order]
    distinct = np.flatnonzero(np.diff(pairs, prepend=-1))
    if pairs.size:
        pairs, savings = pairs[distinct], np.add.reduceat(savings, distinct)
    return Overlap(
        first.similarity,
        sum(overlap.pixels for overlap in overlaps),
        reference,
        prediction,
        Pairs(*np.divmod(pairs, max(len(prediction), 1)), savings),
    )


def _compact_indices(count: int, occupied: Integers) -> Integers:
    """Return the position of each region among the non-empty regions, or −1 if it is empty."""
    indices = np.full(count, -1, np.int64)
    indices[occupied] = np.arange(occupied.size)
    return indices


def _column(regions: Regions, indices: Integers) -> Any:
    """Return the labels of regions as a table column: an array of integers, or a list of labels."""
    if not regions.names and (regions.crisp or not regions.numbers):
        return regions.keys[indices]
    labels = regions.labels
    return [labels[k] for k in indices.tolist()]
