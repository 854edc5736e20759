"""The groups and merges of a comparison."""

from dataclasses import dataclass
from itertools import pairwise
from math import nan
from typing import TYPE_CHECKING

import numpy as np

from probdice.method.groups import Groups, counted_groups, group_volumes
from probdice.method.overlap import Overlap
from probdice.method.region_labels import Label
from probdice.method.scoring import NeedsImages
from probdice.method.sides import SIDES, Both, Side, other
from probdice.metrics.volumes import VolumeDifferences

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison

__all__ = ["Group", "Merge", "groups_of", "merges_of"]


@dataclass(frozen=True)
class Group(VolumeDifferences):
    """Corresponding regions of both sides, and their agreement.

    Attributes
    ----------
    reference : tuple of int or str
        Labels of the reference regions; empty for an unmatched prediction region.
    prediction : tuple of int or str
        Labels of the prediction regions; empty for an unmatched reference region.
    similarity : float
        Mean similarity of the pixels if each side is divided into the group and all other regions.
    dice : float
        Fuzzy Dice coefficient, 2 Σ min(p, q) / (Σ p + Σ q).
    jaccard : float
        Fuzzy Jaccard index, Σ min(p, q) / Σ max(p, q).
    reference_volume : float
        Sum of the probabilities of the reference regions, in pixels.
    prediction_volume : float
        Sum of the probabilities of the prediction regions, in pixels.
    volume_difference : float
        Difference `prediction_volume` − `reference_volume`, in pixels.
    relative_volume_difference : float
        The volume difference divided by `reference_volume`; NaN if `reference_volume` is 0.
    faint : bool
        Whether the group is excluded from means over regions and from counts of regions. A group is
        faint if it contains no region of a label map and none of its regions is the most probable
        (within 1e-6) at any pixel.

    Examples
    --------
    >>> import probdice
    >>> probdice.compare([1, 1, 2, 2], [5, 5, 5, 8]).groups[0]
    Group(reference=(1,), prediction=(5,), dice=0.8)
    """

    reference: tuple[Label, ...]
    prediction: tuple[Label, ...]
    similarity: float
    dice: float
    jaccard: float
    reference_volume: float
    prediction_volume: float
    faint: bool = False

    def __repr__(self) -> str:
        faint = ", faint=True" if self.faint else ""
        return (
            f"Group(reference={self.reference}, prediction={self.prediction}, "
            f"dice={self.dice:g}{faint})"
        )

    def side(self, side: Side) -> tuple[Label, ...]:
        """Return the labels of one side."""
        return self.reference if side == "reference" else self.prediction

    @property
    def total_volume(self) -> float:
        """Sum of the volumes of both sides, Σ p + Σ q, in pixels."""
        return self.reference_volume + self.prediction_volume

    @property
    def common_volume(self) -> float:
        """Volume that both sides have in common, Σ min(p, q), in pixels."""
        return self.dice * self.total_volume / 2


@dataclass(frozen=True)
class Merge:
    """An unmatched region that was merged into a group.

    Attributes
    ----------
    side : {"reference", "prediction"}
        The side of the region.
    region : int or str
        The label of the region.
    into : tuple of int or str
        The labels of the regions that the group has on the other side.
    gain : float
        The change in the group's similarity, which may be negative.

    Examples
    --------
    >>> import probdice
    >>> probdice.compare([1, 1, 1, 1, 2, 2, 2, 2], [7, 7, 5, 5, 5, 9, 9, 9], merge="both").merges
    (Merge(side='prediction', region=5, into=(1,), gain=0.125),)
    """

    side: Side
    region: Label
    into: tuple[Label, ...]
    gain: float


def groups_of(result: "Comparison") -> tuple[Group, ...]:
    """Return the groups of a comparison with their labels, Dice and volumes."""
    table, groups = result.overlap, result.correspondence.groups
    similarities = np.clip(1 - result.costs * (table.unit / table.pixels), 0, 1)
    try:
        measured_differences = result.measured.differences
        differences = result.costs if measured_differences is None else measured_differences
    except NeedsImages:
        differences = np.full(groups.count, nan)
    volumes = Both(*(group_volumes(table, groups, side) for side in SIDES))
    total = volumes.reference + volumes.prediction
    common_volumes = np.maximum(total - differences, 0)
    common_volumes[groups.matched :] = 0
    return tuple(
        Group(*entry)
        for entry in zip(
            _group_labels(table, groups, "reference"),
            _group_labels(table, groups, "prediction"),
            similarities.tolist(),
            (common_volumes / total).tolist(),
            (common_volumes / (2 * total - common_volumes)).tolist(),
            volumes.reference.tolist(),
            volumes.prediction.tolist(),
            (~counted_groups(table, groups)).tolist(),
            strict=True,
        )
    )


def _group_labels(table: Overlap, groups: Groups, side: Side) -> list[tuple[Label, ...]]:
    """Return the labels of one side in each group."""
    starts, members = (part.tolist() for part in groups.members[side])
    labels = table.side(side).labels
    member_labels = [labels[k] for k in members]
    return [tuple(member_labels[a:b]) for a, b in pairwise(starts)]


def merges_of(result: "Comparison") -> tuple[Merge, ...]:
    """Return the merges of a comparison with the labels of their regions, in order of merging."""
    labels = {side: result.overlap.side(side).labels for side in SIDES}
    return tuple(
        Merge(
            join.side,
            labels[join.side][join.region],
            tuple(labels[other(join.side)][k] for k in join.into),
            join.gain,
        )
        for join in result.correspondence.merges
    )
