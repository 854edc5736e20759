"""For every group, the intersection of the two sides and the volume of each side."""

from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.method.groups import Groups, counted_groups, known_from_table
from probdice.method.overlap import Floats, Overlap
from probdice.method.sides import SIDES, Both

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison

__all__ = ["Shares", "background_masks", "shares_of"]


@dataclass(frozen=True, eq=False)
class Shares:
    """Per group, the intersection of the two sides and the volume of each side, in pixels.

    `regions` is the number of regions per side and group. `counted` marks the groups that are
    included in means. Regions that are marked as `outside` in `shares_of` are excluded from all
    attributes.
    """

    common: Floats
    volumes: Both[Floats]
    regions: Both[NDArray[np.int64]]
    counted: NDArray[np.bool_]

    @property
    def occupied(self) -> NDArray[np.bool_]:
        """Whether each group has at least one region."""
        return np.asarray((self.regions.reference > 0) | (self.regions.prediction > 0))

    @property
    def dice(self) -> Floats:
        """The Dice coefficient of every group; NaN for groups without a region."""
        total = self.volumes.reference + self.volumes.prediction
        return _quotients(2 * self.common, total)

    @property
    def jaccard(self) -> Floats:
        """The Jaccard index of every group; NaN for groups without a region."""
        union = self.volumes.reference + self.volumes.prediction - self.common
        return _quotients(self.common, union)


def shares_of(
    overlap: Overlap,
    groups: Groups,
    outside: Both[NDArray[np.bool_]],
    dice: Floats | None = None,
) -> Shares:
    """Return, for every group, the intersection of the two sides and the volume of each side.

    If the overlap table does not determine the intersection (for groups of several soft regions, or
    for similarities that are not separable), the intersection is computed from `dice`, the Dice
    coefficients of the groups. Without these coefficients, the intersection is NaN.
    """
    inside = Both(*((groups.group_indices(side) >= 0) & ~outside[side] for side in SIDES))
    group_indices = Both(*(groups.group_indices(side)[inside[side]] for side in SIDES))
    volumes = Both(
        *(
            _sums_by_index(
                overlap.side(side).volumes[inside[side]], group_indices[side], groups.count
            )
            for side in SIDES
        )
    )
    regions = Both(*(np.bincount(group_indices[side], minlength=groups.count) for side in SIDES))
    overlapping = overlap.pairs
    number = groups.reference[overlapping.rows]
    is_common = (
        (number == groups.prediction[overlapping.columns])
        & inside.reference[overlapping.rows]
        & inside.prediction[overlapping.columns]
    )
    common = _sums_by_index(overlapping.savings[is_common], number[is_common], groups.count)
    if not overlap.crisp:
        is_unknown = ~known_from_table(overlap, groups)
        if not overlap.similarity.separable:
            is_unknown[:] = True
        is_unknown &= (regions.reference > 0) & (regions.prediction > 0)
        total = volumes.reference + volumes.prediction
        estimate = np.full(groups.count, nan) if dice is None else dice * total / 2
        common[is_unknown] = estimate[is_unknown]
        common = np.minimum(common, np.minimum(volumes.reference, volumes.prediction))
    return Shares(common, volumes, regions, counted_groups(overlap, groups, outside))


def background_masks(result: "Comparison") -> Both[NDArray[np.bool_]]:
    """Return masks of the background regions of each side."""
    masks = Both(*(np.zeros(len(result.overlap.side(side)), np.bool_) for side in SIDES))
    for side in SIDES:
        region = result.background_regions[side]
        if region is not None:
            masks[side][region] = True
    return masks


def _sums_by_index(values: NDArray[Any], indices: NDArray[np.int64], count: int) -> Floats:
    """Return the sum of the values at every index below `count`."""
    return np.bincount(indices, values, count).astype(np.float64)


def _quotients(parts: Floats, totals: Floats) -> Floats:
    """Return the quotients; NaN where the divisor is 0."""
    quotients = np.full(totals.shape, nan)
    np.divide(parts, totals, out=quotients, where=totals > 0)
    return quotients
