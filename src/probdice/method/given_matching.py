"""Match regions according to given pairs or to the groups of an earlier comparison."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from probdice.errors import InputError, Option
from probdice.method.background import NO_BACKGROUND, BackgroundIndices
from probdice.method.groups import Groups
from probdice.method.overlap import Integers, Overlap, Pairs
from probdice.method.region_labels import Label, listed
from probdice.method.sides import SIDES, Both, Side

__all__ = [
    "GivenGroups",
    "GivenPairs",
    "check_fixed",
    "group_indices_of_fixed",
    "groups_as_given",
    "without_lone_fixed",
]


@dataclass(frozen=True)
class GivenPairs:
    """Pairs given by the user, as (prediction label, reference label)."""

    pairs: tuple[tuple[Label, Label], ...]

    def partners(self, label: Label | None) -> tuple[Label, ...]:
        """Return the prediction labels that correspond to a reference label."""
        return tuple(prediction for prediction, reference in self.pairs if reference == label)

    def references(self, label: Label | None) -> tuple[Label, ...]:
        """Return the reference labels that correspond to a prediction label."""
        return tuple(reference for prediction, reference in self.pairs if prediction == label)

    @property
    def one_to_one(self) -> bool:
        """Whether every group has at most one region per side."""
        references = [str(reference) for _, reference in self.pairs]
        return len(set(references)) == len(references)


@dataclass(frozen=True)
class GivenGroups:
    """Groups of an earlier comparison, as (reference labels, prediction labels)."""

    groups: tuple[tuple[tuple[Label, ...], tuple[Label, ...]], ...]

    def partners(self, label: Label | None) -> tuple[Label, ...]:
        """Return the prediction labels that correspond to a reference label."""
        return tuple(
            one for reference, labels in self.groups if label in reference for one in labels
        )

    def references(self, label: Label | None) -> tuple[Label, ...]:
        """Return the reference labels that correspond to a prediction label."""
        return tuple(
            one for labels, prediction in self.groups if label in prediction for one in labels
        )

    @property
    def one_to_one(self) -> bool:
        """Whether every group has at most one region per side."""
        return all(len(labels) < 2 for group in self.groups for labels in group)


def check_fixed(fixed: GivenPairs, overlaps: Sequence[Overlap]) -> None:
    """Reject labels that are absent from all of these overlaps, and pairs in the wrong order."""

    def exists(side: Side, label: Label) -> bool:
        return any(overlap.side(side).knows(label) for overlap in overlaps)

    where = "neither side has" if len(overlaps) == 1 else "no case has"
    for pair in fixed.pairs:
        for label in pair:
            if not (exists("reference", label) or exists("prediction", label)):
                reference, prediction = (
                    listed(list(dict.fromkeys(x for o in overlaps for x in o.side(side).labels)))
                    for side in SIDES
                )
                raise InputError(
                    f"match names {label!r}, which {where}: the reference has {reference}, "
                    f"the prediction has {prediction}"
                )
        # Such a pair would be silently ignored.
        if not exists("prediction", pair[0]) and not exists("reference", pair[1]):
            raise InputError(
                f"match pairs {pair[0]!r} with {pair[1]!r}, but the first is a reference label and "
                f"the second is a prediction label. Put the prediction label first."
            )


def group_indices_of_fixed(
    overlap: Overlap, fixed: GivenPairs, background: BackgroundIndices
) -> tuple[dict[Side, Integers], int]:
    """Return the group numbers of the regions in the given pairs and of the background.

    The number of every other region is −1. The second value is the next free group number. Labels
    without a region are skipped. The regions that are paired with such a label form a group without
    regions on the other side.
    """
    group_indices = {side: np.full(len(overlap.side(side)), -1, np.int64) for side in SIDES}
    group_of: dict[tuple[int | None, Label | None], int] = {}
    for prediction_label, reference_label in fixed.pairs:
        i = overlap.reference.find(reference_label)
        j = overlap.prediction.find(prediction_label)
        _check_apart({"reference": [i], "prediction": [j]}, background, overlap)
        absent_label = reference_label if i is None else None
        number = group_of.setdefault((i, absent_label), len(group_of))
        if i is not None:
            group_indices["reference"][i] = number
        if j is not None:
            if group_indices["prediction"][j] not in (-1, number):
                raise InputError(
                    f"match pairs prediction region {overlap.prediction.label(j)!r} with several "
                    f"reference regions, one of which is {reference_label!r}. Pair every "
                    f"prediction region with one reference region."
                )
            group_indices["prediction"][j] = number
    return group_indices, _with_background(group_indices, background, len(group_of))


def without_lone_fixed(overlap: Overlap, fixed: GivenPairs, groups: Groups) -> Overlap:
    """Return the overlap without the savings of regions whose given partner is absent.

    Such a region remains unmatched, and merging must not join it to another region.
    """
    overlapping = overlap.pairs
    inside = np.ones(len(overlapping), np.bool_)
    named = Both({pair[1] for pair in fixed.pairs}, {pair[0] for pair in fixed.pairs})
    for side, indices in zip(SIDES, (overlapping.rows, overlapping.columns), strict=True):
        regions = {overlap.side(side).find(label) for label in named[side]}
        unmatched = [k for k in groups.unmatched(side).tolist() if k in regions]
        inside &= ~np.isin(indices, unmatched)
    pairs = Pairs(
        overlapping.rows[inside], overlapping.columns[inside], overlapping.savings[inside]
    )
    return replace(overlap, pairs=pairs)


def groups_as_given(overlap: Overlap, given: GivenGroups, background: BackgroundIndices) -> Groups:
    """Match regions as in an earlier comparison.

    A region whose label is absent from the earlier comparison remains unmatched, except the
    background.
    """
    group_indices = {side: np.full(len(overlap.side(side)), -1, np.int64) for side in SIDES}
    for number, group in enumerate(given.groups):
        members: dict[Side, list[int | None]] = {
            side: [overlap.side(side).find(label) for label in labels]
            for side, labels in zip(SIDES, group, strict=True)
        }
        _check_apart(members, background, overlap)
        for side in SIDES:
            group_indices[side][[k for k in members[side] if k is not None]] = number
    _with_background(group_indices, background, len(given.groups))
    return Groups.of_numbers(overlap, group_indices["reference"], group_indices["prediction"])


def _with_background(
    group_indices: dict[Side, Integers], background: BackgroundIndices, next_group: int
) -> int:
    """Assign the background regions to a separate group, and return the next free group number."""
    for side in SIDES:
        if background[side] is not None:
            group_indices[side][background[side]] = next_group
    return next_group if background == NO_BACKGROUND else next_group + 1


def _check_apart(
    members: dict[Side, list[int | None]], background: BackgroundIndices, overlap: Overlap
) -> None:
    """Reject a given group that contains a background region and a foreground region."""
    regions = [(side, k) for side in SIDES for k in members[side] if k is not None]
    inside = [background[side] == k for side, k in regions]
    if any(inside) and not all(inside):
        labels = {
            side: listed([overlap.side(side).label(k) for one, k in regions if one == side])
            for side in SIDES
        }
        raise InputError(
            f"match groups the background with another region (reference {labels['reference']}, "
            f"prediction {labels['prediction']}), but the two backgrounds correspond only to each "
            f"other. Change match, or name another ",
            Option("background", python="background", command="--background"),
            ".",
        )
