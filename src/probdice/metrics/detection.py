"""Detection metrics: true positives, false positives and misses.

The regions of a comparison are the instances. The pixels of label maps are not read again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import nan
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from probdice.errors import InputError, Option
from probdice.method.background import named_background
from probdice.method.groups import Groups
from probdice.method.overlap import Floats, Overlap
from probdice.method.region_labels import Label
from probdice.method.scoring import Correspondence
from probdice.method.sides import SIDES, Both, Side, other
from probdice.metrics.group_shares import Shares, background_masks, shares_of
from probdice.metrics.splits import Split, splits_of
from probdice.text.formatting import decimal
from probdice.text.table_output import data_frame

if TYPE_CHECKING:
    import pandas

    from probdice.comparison.result import Comparison

__all__ = ["COUNTS", "Detection", "OverlapMeasure", "detection_of"]

OverlapMeasure = Literal["jaccard", "dice"]
Table = Literal["reference", "prediction", "pairs"]
# The thresholds of the 2018 Data Science Bowl and of COCO: 0.5, 0.55, … 0.95, rounded.
THRESHOLDS = tuple(round(0.5 + 0.05 * k, 2) for k in range(10))
CURVE = tuple(round(0.05 * k, 2) for k in range(21))
MAX_PRINTED_SPLITS = 5  # and the same number of merges


@dataclass(frozen=True, eq=False, repr=False)
class Detection:
    """Detection metrics of a comparison.

    A group of corresponding regions is *found* (a true positive) if its Jaccard index (or Dice
    coefficient) is at least the threshold and above 0. The background and regions of faint groups
    (`Group.faint`) are not instances. A found group counts once, even if it contains several merged
    regions. In a group that is not found, every region counts as missed or false. `matched` is the
    detection before merging. A quotient 0/0 is NaN.

    Attributes
    ----------
    threshold : float
        Minimum Jaccard index (or Dice coefficient) of a true positive.
    by : {"jaccard", "dice"}
        The index that is compared with the threshold.
    background : dict or None
        Per side, the label of the background, which is not an instance.
    true_positives : int
        Number of groups found (TP).
    false_positives : int
        Number of prediction instances that are not in a found group (FP).
    misses : int
        Number of reference instances that are not in a found group (false negatives, FN).
    precision : float
        TP / (TP + FP).
    recall : float
        TP / (TP + FN).
    f1 : float
        TP / (TP + ½ FP + ½ FN).
    recognition_quality : float
        The same as `f1`.
    segmentation_quality : float
        The mean Jaccard index (or Dice) of the groups found.
    panoptic_quality : float
        `recognition_quality` × `segmentation_quality`.
    average_precision : float
        The mean of TP/(TP + FP + FN) over the thresholds 0.5, 0.55, … 0.95, as defined by the 2018
        Data Science Bowl. This mean differs from the average precision of COCO, which ranks
        instances by confidence.
    f1_area : float
        The exact area under the curve of F1 as a function of the threshold, from 0 to 1.
    splits : tuple of Split
        Reference regions that contain at least two prediction regions as parts. A region is a part
        of another region if more than half of its volume is inside that region.
    merges : tuple of Split
        Prediction regions that contain at least two reference regions as parts.
    matched : Detection
        The detection before merging.

    Examples
    --------
    >>> import probdice
    >>> reference = [0, 1, 1, 1, 0, 2, 2, 2, 2, 0]
    >>> prediction = [0, 7, 7, 7, 7, 8, 8, 9, 9, 5]
    >>> result = probdice.compare(reference, prediction, merge="prediction", background=0)
    >>> detection = result.detection(threshold=0.6)
    >>> detection
    Detection (Jaccard of at least 0.6, background=0): 2 reference and 4 prediction instances
      2 found, 0 missed, 1 false
      precision 0.6667   recall 1.0000   F1 0.8000
      panoptic quality 0.7000 = recognition 0.8000 × segmentation 0.8750
      average precision 0.5000   area under F1 0.7000
      1 split: reference 2 was split into 2: 8, 9
    >>> detection.matched.true_positives, detection.matched.misses
    (1, 1)
    """

    threshold: float
    by: OverlapMeasure
    background: dict[Side, Label] | None
    _overlap: Overlap
    _outside: Both[NDArray[np.bool_]]
    _groups: Groups
    _shares: Shares
    _before: "Detection | None" = None

    # -- counts ----------------------------------------------------------------------------------

    @cached_property
    def _values(self) -> Floats:
        """Per group, the value to compare with the threshold; 0 if a side has no instances."""
        values = self._shares.jaccard if self.by == "jaccard" else self._shares.dice
        return np.asarray(np.where(self._is_paired, values, 0.0))

    @property
    def _is_paired(self) -> NDArray[np.bool_]:
        regions = self._regions
        return np.asarray((regions.reference > 0) & (regions.prediction > 0))

    @cached_property
    def _regions(self) -> Both[NDArray[np.int64]]:
        """Per side and group, the number of instances; 0 for a faint group."""
        return self._shares.regions.map(lambda count: np.where(self._shares.counted, count, 0))

    @cached_property
    def instances(self) -> dict[Side, int]:
        """The number of instances per side."""
        return {side: int(self._regions[side].sum()) for side in SIDES}

    def _counts(self, threshold: float) -> tuple[int, int, int]:
        """Return the numbers of true positives, false positives and misses at a threshold."""
        is_found = self._is_found(threshold)
        inside = {side: int(self._regions[side][is_found].sum()) for side in SIDES}
        return (
            int(is_found.sum()),
            self.instances["prediction"] - inside["prediction"],
            self.instances["reference"] - inside["reference"],
        )

    def _is_found(self, threshold: float) -> NDArray[np.bool_]:
        return np.asarray((self._values >= threshold) & (self._values > 0))

    @property
    def true_positives(self) -> int:
        """Number of groups found."""
        return self._counts(self.threshold)[0]

    @property
    def false_positives(self) -> int:
        """Number of prediction instances that are not in a found group."""
        return self._counts(self.threshold)[1]

    @property
    def misses(self) -> int:
        """Number of reference instances that are not in a found group."""
        return self._counts(self.threshold)[2]

    # -- qualities -------------------------------------------------------------------------------

    @property
    def precision(self) -> float:
        """TP / (TP + FP)."""
        return _ratio(self.true_positives, self.true_positives + self.false_positives)

    @property
    def recall(self) -> float:
        """TP / (TP + FN)."""
        return _ratio(self.true_positives, self.true_positives + self.misses)

    @property
    def f1(self) -> float:
        """TP / (TP + ½ FP + ½ FN)."""
        return _f1(*self._counts(self.threshold))

    @property
    def recognition_quality(self) -> float:
        """The same as F1."""
        return self.f1

    @property
    def segmentation_quality(self) -> float:
        """The mean Jaccard index (or Dice) of the groups found; NaN if no group was found."""
        found_values = self._values[self._is_found(self.threshold)]
        return float(found_values.mean()) if found_values.size else nan

    @property
    def panoptic_quality(self) -> float:
        """Recognition × segmentation quality; 0 if there are instances but none was found."""
        return 0.0 if self.f1 == 0 else self.f1 * self.segmentation_quality

    @cached_property
    def average_precision(self) -> float:
        """The mean of TP / (TP + FP + FN) over the thresholds 0.5, 0.55, … 0.95."""
        counts = [self._counts(threshold) for threshold in THRESHOLDS]
        return sum(
            _ratio(threshold_counts[0], sum(threshold_counts)) for threshold_counts in counts
        ) / len(counts)

    @cached_property
    def f1_area(self) -> float:
        """The area under the curve of F1 as a function of the threshold, from 0 to 1."""
        if not sum(self.instances.values()):
            return nan
        # F1 is a step function: it changes only at thresholds that equal the value of a group.
        order = np.argsort(-self._values, kind="stable")[: np.count_nonzero(self._values)]
        values = self._values[order]
        regions = self._regions
        found_counts = np.arange(1, order.size + 1)
        inside = np.cumsum(regions.reference[order] + regions.prediction[order])
        outside = sum(self.instances.values()) - inside
        return float(
            -np.diff(values, append=0.0) @ (2 * found_counts / (2 * found_counts + outside))
        )

    def curve(self, thresholds: Sequence[float] = CURVE) -> "pandas.DataFrame":
        """Return a table of counts and qualities with one row per threshold.

        Parameters
        ----------
        thresholds : sequence of float, optional
            Thresholds of the index; 0, 0.05, …, 1 by default. At threshold 0, every group whose two
            sides overlap is found.

        Examples
        --------
        >>> import probdice
        >>> detection = probdice.compare([1, 1, 1, 2], [5, 5, 6, 6]).detection()
        >>> detection.curve([0.5, 0.6])[["threshold", "true_positives", "f1"]]
           threshold  true_positives   f1
        0        0.5               2  1.0
        1        0.6               1  0.5
        """
        rows = []
        for threshold in thresholds:
            true_positives, false_positives, misses = self._counts(_as_threshold(threshold))
            rows.append(
                {
                    "threshold": threshold,
                    "true_positives": true_positives,
                    "false_positives": false_positives,
                    "misses": misses,
                    "precision": _ratio(true_positives, true_positives + false_positives),
                    "recall": _ratio(true_positives, true_positives + misses),
                    "f1": _f1(true_positives, false_positives, misses),
                    "average_precision": _ratio(
                        true_positives, true_positives + false_positives + misses
                    ),
                }
            )
        return data_frame(rows)

    # -- splits and merges -----------------------------------------------------------------------

    @property
    def splits(self) -> tuple[Split, ...]:
        """Reference regions that contain at least two prediction regions as parts."""
        return self._split_regions["reference"]

    @property
    def merges(self) -> tuple[Split, ...]:
        """Prediction regions that contain at least two reference regions as parts."""
        return self._split_regions["prediction"]

    @cached_property
    def _split_regions(self) -> dict[Side, tuple[Split, ...]]:
        counted_groups = self._shares.counted
        return {
            side: splits_of(self._overlap, self._groups, self._outside, counted_groups, side)
            for side in SIDES
        }

    # -- tables ----------------------------------------------------------------------------------

    @property
    def matched(self) -> "Detection":
        """The detection before merging."""
        return self if self._before is None else self._before

    def to_frame(self, table: Table = "pairs") -> "pandas.DataFrame":
        """Return a table of groups or of regions.

        Parameters
        ----------
        table : {"pairs", "reference", "prediction"}, optional
            With ``"pairs"``, the table has one row per group, with the labels of both sides as
            tuples and an *outcome*. The outcome is "found", "below threshold" (the reference
            regions of the group count as missed and its prediction regions as false), "missed",
            "false" or "faint" (the group is not counted). With ``"reference"`` and
            ``"prediction"``, the table has one row per region of that side, except empty regions
            and the background. A row contains the corresponding regions, the parts of the region if
            it has at least two, whether the region was found, and whether its group is faint. An
            unmatched region has a Jaccard index and a Dice coefficient of 0.

        Examples
        --------
        >>> import probdice
        >>> result = probdice.compare([0, 1, 1, 1, 2], [0, 5, 5, 0, 0], background=0)
        >>> result.detection().to_frame()[["reference", "prediction", "outcome"]]
          reference prediction outcome
        0      (1,)       (5,)   found
        1      (2,)         ()  missed
        """
        if table == "pairs":
            return data_frame(self._pair_rows())
        if table not in SIDES:
            raise InputError(f"table must be 'pairs', 'reference' or 'prediction', found {table!r}")
        return data_frame(self._region_rows(table))

    @cached_property
    def _members(self) -> Both[Sequence[tuple[Label, ...]]]:
        """Per side, a tuple of instance labels for every group."""
        return Both(*(self._labels(side) for side in SIDES))

    def _labels(self, side: Side) -> Sequence[tuple[Label, ...]]:
        labels, outside = self._overlap.side(side).labels, self._outside[side]
        starts, regions = self._groups.members[side]
        members: list[int] = regions.tolist()
        return [
            tuple(labels[k] for k in members[start:stop] if not outside[k])
            for start, stop in pairwise(starts.tolist())
        ]

    def _pair_rows(self) -> dict[str, Any]:
        shares, occupied_groups = self._shares, np.flatnonzero(self._shares.occupied)
        is_found, is_paired = self._is_found(self.threshold), self._is_paired
        outcomes = np.where(is_paired, "below threshold", "missed")
        outcomes[shares.regions.reference == 0] = "false"
        outcomes[is_found] = "found"
        outcomes[~shares.counted] = "faint"
        return {
            **{side: [self._members[side][g] for g in occupied_groups.tolist()] for side in SIDES},
            "outcome": outcomes[occupied_groups].tolist(),
            "jaccard": shares.jaccard[occupied_groups],
            "dice": shares.dice[occupied_groups],
            **{f"{side}_volume": shares.volumes[side][occupied_groups] for side in SIDES},
        }

    def _region_rows(self, side: Side) -> dict[str, Any]:
        regions, group_indices = self._overlap.side(side), self._groups.group_indices(side)
        instances = np.flatnonzero((group_indices >= 0) & ~self._outside[side])
        group, is_found = group_indices[instances], self._is_found(self.threshold)
        parts = {split.region: split.parts for split in self._split_regions[side]}
        labels = [regions.label(k) for k in instances.tolist()]
        return {
            "label": labels,
            "volume": regions.volumes[instances],
            other(side): [self._members[other(side)][g] for g in group.tolist()],
            "found": is_found[group],
            "faint": ~self._shares.counted[group],
            "jaccard": self._shares.jaccard[group],
            "dice": self._shares.dice[group],
            "parts": [parts.get(label, ()) for label in labels],
        }

    # -- showing ---------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, float]:
        """Return all counts and metrics by name.

        Examples
        --------
        >>> import probdice
        >>> numbers = probdice.compare([1, 1, 2], [5, 5, 6]).detection().to_dict()
        >>> numbers["true_positives"], numbers["panoptic_quality"]
        (2, 1.0)
        """
        split_counts = {"splits": len(self.splits), "merges": len(self.merges)}
        return {
            name: split_counts[name] if name in split_counts else getattr(self, name)
            for name in COUNTS
        }

    def __repr__(self) -> str:
        index = "Jaccard" if self.by == "jaccard" else "Dice"
        background = "no background"
        if self.background is not None:
            background = named_background(Both(**self.background)).in_python()
        counts = self.instances
        lines = [
            f"Detection ({index} of at least {self.threshold:g}, {background}): "
            f"{counts['reference']} reference and {counts['prediction']} prediction instances",
            f"{self.true_positives} found, {self.misses} missed, {self.false_positives} false",
            f"precision {decimal(self.precision)}   recall {decimal(self.recall)}   "
            f"F1 {decimal(self.f1)}",
            f"panoptic quality {decimal(self.panoptic_quality)} = recognition "
            f"{decimal(self.recognition_quality)} × segmentation "
            f"{decimal(self.segmentation_quality)}",
            f"average precision {decimal(self.average_precision)}   "
            f"area under F1 {decimal(self.f1_area)}",
        ]
        for word, splits in (("split", self.splits), ("merge", self.merges)):
            if splits:
                split_texts = "; ".join(str(split) for split in splits[:MAX_PRINTED_SPLITS])
                omission = (
                    f"; … and {len(splits) - MAX_PRINTED_SPLITS} more"
                    if len(splits) > MAX_PRINTED_SPLITS
                    else ""
                )
                words = word if len(splits) == 1 else f"{word}s"
                lines.append(f"{len(splits)} {words}: {split_texts}{omission}")
        return "\n  ".join(lines)


COUNTS = (
    "true_positives",
    "false_positives",
    "misses",
    "precision",
    "recall",
    "f1",
    "recognition_quality",
    "segmentation_quality",
    "panoptic_quality",
    "average_precision",
    "f1_area",
    "splits",
    "merges",
)


def detection_of(
    result: "Comparison",
    correspondence: Correspondence,
    *,
    threshold: float,
    by: OverlapMeasure,
) -> Detection:
    """Return the detection after merging, which contains the detection before merging."""
    overlap = result.overlap
    if by not in ("jaccard", "dice"):
        raise InputError(f"by must be 'jaccard' or 'dice', found {by!r}")
    if not overlap.crisp and not overlap.similarity.separable:
        raise InputError(
            "detection metrics of probabilities require intersections, which ",
            Option("similarity", overlap.similarity.name),
            " does not compute. Use ",
            Option("similarity", "absolute"),
            ".",
        )
    threshold, outside = _as_threshold(threshold), background_masks(result)
    dice = None if overlap.crisp else np.array([group.dice for group in result.groups])

    def of(groups: Groups, dice: Floats | None, before: Detection | None) -> Detection:
        shares = shares_of(overlap, groups, outside, dice)
        return Detection(threshold, by, result.background, overlap, outside, groups, shares, before)

    before = of(correspondence.matched, None, None) if correspondence.merges else None
    return of(correspondence.groups, dice, before)


def _as_threshold(threshold: object) -> float:
    if isinstance(threshold, bool) or not isinstance(threshold, int | float | np.floating):
        raise InputError(f"threshold must be a number from 0 to 1, found {threshold!r}")
    if not 0 <= threshold <= 1:
        raise InputError(f"threshold must be a number from 0 to 1, found {threshold}")
    return float(threshold)


def _ratio(part: float, total: float) -> float:
    return part / total if total else nan


def _f1(true_positives: int, false_positives: int, misses: int) -> float:
    return _ratio(2 * true_positives, 2 * true_positives + false_positives + misses)
