"""Reference regions that were split, and prediction regions that merge several regions."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probdice.method.groups import Groups
from probdice.method.overlap import Overlap
from probdice.method.region_labels import Label, listed
from probdice.method.sides import SIDES, Both, Side, other

__all__ = ["Split", "splits_of"]

PART = 0.5  # a region is part of another region if more than this share of its volume is inside


@dataclass(frozen=True)
class Split:
    """A region that has at least two parts among the regions of the other side.

    Attributes
    ----------
    side : {"reference", "prediction"}
        The side of the region. If it is "reference", the prediction splits the region. If it is
        "prediction", the region merges several reference regions.
    region : int or str
        The label of the region.
    parts : tuple of int or str
        The labels of the regions of the other side that are more than half inside this region.

    Examples
    --------
    >>> import probdice
    >>> detection = probdice.compare([12, 12, 12, 12], [40, 40, 41, 57]).detection()
    >>> print(detection.splits[0])
    reference 12 was split into 3: 40, 41, 57
    """

    side: Side
    region: Label
    parts: tuple[Label, ...]

    def __str__(self) -> str:
        verb = "was split into" if self.side == "reference" else "merges"
        return f"{self.side} {self.region} {verb} {len(self.parts)}: {listed(self.parts)}"


def splits_of(
    overlap: Overlap,
    groups: Groups,
    outside: Both[NDArray[np.bool_]],
    counted_groups: NDArray[np.bool_],
    side: Side,
) -> tuple[Split, ...]:
    """Return the regions of one side with at least two parts on the other side.

    `outside` marks the background regions of each side, and `counted_groups` marks the groups that
    are not faint.
    """
    overlapping, other_side = overlap.pairs, other(side)
    indices = Both(overlapping.rows, overlapping.columns)
    volumes = overlap.side(other_side).volumes[indices[other_side]]
    is_part = overlapping.savings > PART * volumes
    for name in SIDES:
        group = groups.group_indices(name)[indices[name]]
        is_part &= ~outside[name][indices[name]] & counted_groups[group]
    regions, parts = indices[side][is_part], indices[other_side][is_part]
    order = np.lexsort((parts, regions))
    regions, parts = regions[order], parts[order]
    distinct_regions, starts, counts = np.unique(regions, return_index=True, return_counts=True)
    side_regions, other_regions = overlap.side(side), overlap.side(other_side)
    return tuple(
        Split(
            side,
            side_regions.label(region),
            tuple(other_regions.label(k) for k in parts[start : start + count].tolist()),
        )
        for region, start, count in zip(
            distinct_regions.tolist(), starts.tolist(), counts.tolist(), strict=True
        )
        if count > 1
    )
