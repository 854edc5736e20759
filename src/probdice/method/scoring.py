"""Match and merge the regions of an overlap, and score the result."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.errors import InputError
from probdice.method.background import find_background, without_background
from probdice.method.given_matching import GivenPairs, without_lone_fixed
from probdice.method.groups import Groups, costs, known_from_table
from probdice.method.matching import Matching, find_groups, within_classes
from probdice.method.merging import RegionMerge, merge_unmatched, sides_to_merge
from probdice.method.overlap import Overlap
from probdice.method.pixel_passes import Lists, Passes
from probdice.method.sides import SIDES, Both, Side, other

__all__ = [
    "Correspondence",
    "Measured",
    "NeedsImages",
    "correspond",
    "group_costs",
    "key_lists",
    "measure",
]


class NeedsImages(InputError):
    """Raised if a metric requires another pass over the pixels but the result has no images."""


@dataclass(frozen=True, eq=False)
class Correspondence:
    """The groups after matching (`matched`) and after merging (`groups`).

    `costs` contains the costs of the groups if merging has computed them, else None.
    """

    matched: Groups
    groups: Groups
    merges: tuple[RegionMerge, ...]
    costs: NDArray[Any] | None = None


@dataclass(frozen=True, eq=False)
class Measured:
    """The score of the groups, and the number of pixels with infinite distance.

    `differences` is Σ|p − q| of each group, or None if these sums equal the costs of the groups.
    """

    score: float
    infinite: int
    differences: NDArray[Any] | None = None


def correspond(overlap: Overlap, matching: Matching, images: Passes | None) -> Correspondence:
    """Match regions, then merge unmatched regions if requested."""
    matched = find_groups(overlap, matching)
    if matching.merge == "none":
        return Correspondence(matched, matched, ())
    sides = sides_to_merge(matching.merge)

    def losses_after_joining(
        side: Side, members: Lists, opposite_members: Lists, unmatched: Sequence[int]
    ) -> NDArray[Any]:
        return joined_losses(overlap, images, side, members, opposite_members, unmatched)

    matched_costs = group_costs(overlap, matched, images)
    by_table = images is None and nearly_additive(overlap)
    background = find_background(overlap, matching.background)
    mergeable = within_classes(without_background(overlap, background))
    if isinstance(matching.match, GivenPairs):
        mergeable = without_lone_fixed(mergeable, matching.match, matched)
    groups, merged_costs, joins = merge_unmatched(
        mergeable, matched, matched_costs, sides, losses_after_joining, by_table=by_table
    )
    return Correspondence(matched, groups, joins, merged_costs)


def measure(
    overlap: Overlap, groups: Groups, losses: NDArray[Any] | None, images: Passes | None
) -> Measured:
    """Return the score of the given groups. `losses` contains the costs of the groups, if known."""
    pixels = overlap.pixels
    if overlap.separable:
        if overlap.crisp and losses is None:
            overlapping = overlap.pairs
            agreeing = groups.reference[overlapping.rows] == groups.prediction[overlapping.columns]
            disagreeing = pixels - int(overlapping.savings @ agreeing)
        else:
            losses = group_costs(overlap, groups, images) if losses is None else losses
            disagreeing = losses.sum() / 2
        score = float((pixels - overlap.unit * disagreeing) / pixels)
        unbounded = overlap.similarity.unbounded
        return Measured(min(max(score, 0.0), 1.0), int(disagreeing) if unbounded else 0)
    if images is None:
        raise NeedsImages(
            f"The {overlap.similarity.name} score of probabilities requires the images. Compare "
            f"the segmentations themselves, or use the absolute similarity."
        )
    scores = images.scores(overlap.similarity, key_lists(overlap, groups))
    return Measured(max(1 - scores.loss / pixels, 0.0), scores.infinite, scores.differences)


def nearly_additive(overlap: Overlap) -> bool:
    """Return whether the overlap table approximates the costs of groups.

    The approximation replaces min(p, 1) by p, the sum of the probabilities of a group. It is exact
    unless rounding makes this sum exceed 1. It is used if there are no images, for example for a
    sum of overlaps.
    """
    return overlap.similarity.separable and (overlap.reference.crisp or overlap.prediction.crisp)


def key_lists(overlap: Overlap, groups: Groups) -> Both[Lists]:
    """Return the channels or labels of the regions of each group, as required by `Passes`."""

    def lists(side: Side) -> Lists:
        starts, members = groups.members[side]
        keys = overlap.side(side).keys[members].tolist()
        return [keys[start:stop] for start, stop in pairwise(starts.tolist())]

    return Both(*(lists(side) for side in SIDES))


def group_costs(overlap: Overlap, groups: Groups, images: Passes | None) -> NDArray[Any]:
    """Return Σ (1 − f) between both sides of each group, in multiples of `Overlap.unit`."""
    total = costs(overlap, groups)
    if overlap.crisp:
        return total
    unknown = np.flatnonzero(~known_from_table(overlap, groups))
    if not unknown.size:
        return total
    if overlap.similarity.separable:
        if images is None and nearly_additive(overlap):
            return total
        if images is None:
            raise NeedsImages(
                "The costs of groups of several soft regions require the images. Compare the "
                "segmentations themselves."
            )
        scores = images.scores(overlap.similarity, key_lists(overlap, groups))
        total[unknown] = scores.differences[unknown]
        return total
    for group in unknown.tolist():
        members = {side: groups.regions(side, group).tolist() for side in SIDES}
        side: Side = "reference" if len(members["reference"]) > 1 else "prediction"
        *first, last = members[side]  # the cost of `first` with `last` added is the group's cost
        losses = joined_losses(overlap, images, side, [first], [members[other(side)]], [last])
        total[group] = losses[0, 0]
    return total


def joined_losses(
    overlap: Overlap,
    images: Passes | None,
    side: Side,
    group_members: Lists,
    opposite_members: Lists,
    unmatched: Sequence[int],
) -> NDArray[Any]:
    """Compute Σ (1 − f) of each group (rows) with one unmatched region added (columns)."""
    if images is None:
        raise NeedsImages(
            "Merging or grouping these regions requires the images, because a side contains "
            "probabilities. Compare the segmentations themselves."
        )
    keys = Both(overlap.reference.keys, overlap.prediction.keys)

    def as_keys(lists: Lists, lists_side: Side) -> Lists:
        return [[int(keys[lists_side][k]) for k in members] for members in lists]

    return images.joined(
        overlap.similarity,
        side,
        as_keys(group_members, side),
        as_keys(opposite_members, other(side)),
        [int(keys[side][k]) for k in unmatched],
    )
