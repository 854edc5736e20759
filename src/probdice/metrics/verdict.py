"""A one-sentence summary of a comparison, and the order of its groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isnan, nan
from typing import TYPE_CHECKING

from probdice.data.pixel_words import PixelWords, pixel_words
from probdice.method.region_labels import listed
from probdice.method.scoring import NeedsImages
from probdice.method.sides import SIDES, Side
from probdice.text.formatting import decimal, percent

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison, Group

__all__ = [
    "available",
    "explained_of",
    "largest_pair",
    "lowest_matched",
    "mean_without",
    "name_in_text",
    "name_of",
    "overlap_in_words",
    "side_of",
    "unmatched_in_words",
    "verdict_of",
    "words_of",
    "worst_first",
    "worst_group",
]

OVERLAPS = (  # smallest Dice, and the description of the overlap
    (0.9, "Very good overlap"),
    (0.7, "Good overlap"),
    (0.5, "Moderate overlap"),
    (0.0, "Low overlap"),
)
HIGH_DICE = 0.7  # Dice from which no possible reason for a low overlap is reported
HIGH_ADJUSTED_SCORE = 0.8  # adjusted score from which most pixels are reported to agree
HIGH_EXPLAINED_SHARE = 0.75  # explained share from which one side is reported to explain the other
MIN_BACKGROUND_SHARE = 0.5  # share of the pixels above which a matched pair may be a background
NAME = 60  # most characters of the name of a group


def verdict_of(comparison: Comparison) -> str:
    """Return a sentence about the overlap, the worst region and unmatched regions.

    The wording depends on thresholds; see the how-to page about reports.

    Examples
    --------
    >>> import probdice
    >>> from probdice.metrics.verdict import verdict_of
    >>> verdict_of(probdice.compare([1, 1, 1, 2, 2, 2], [1, 1, 2, 2, 2, 2]))
    'Good overlap (mean Dice 0.83); weakest in region 1 (Dice 0.80); every region matched.'
    >>> verdict_of(probdice.compare([1, 1, 2, 2], [1, 1, 2, 2]))
    'Both sides are equal.'
    """
    if available(lambda: comparison.score) == 1:
        return f"Both sides are equal{' after merging' if comparison.merges else ''}."
    return "; ".join([*_overlap_clauses(comparison), *_worst_clauses(comparison)]) + "."


def worst_first(groups: Sequence[Group]) -> list[int]:
    """Return the indices of groups in ascending order of Dice.

    Groups of equal Dice are ordered by descending size, with unmatched regions first. Groups with
    unknown Dice and faint groups are last.

    Examples
    --------
    >>> import probdice
    >>> from probdice.metrics.verdict import worst_first
    >>> worst_first(probdice.compare([1, 1, 2, 2, 3], [1, 1, 2, 3, 3]).groups)
    [1, 2, 0]
    """

    def key(number: int) -> tuple[bool, bool, float, bool, float]:
        group = groups[number]
        dice = 0.0 if isnan(group.dice) else group.dice
        return group.faint, isnan(group.dice), dice, side_of(group) is None, -group.total_volume

    return sorted(range(len(groups)), key=key)


def worst_group(groups: Sequence[Group]) -> Group | None:
    """Return the group with the lowest Dice among the groups that are not faint, or None."""
    counted_groups = [group for group in groups if not group.faint and not isnan(group.dice)]
    return counted_groups[worst_first(counted_groups)[0]] if counted_groups else None


def lowest_matched(groups: Sequence[Group]) -> Group | None:
    """Return the matched group with the lowest Dice, or None."""
    return worst_group([group for group in groups if side_of(group) is None])


def name_of(group: Group) -> str:
    """Return the name of a group, shortened if it is long.

    If both sides have the same name, the name is written once.
    """
    reference, prediction = (listed(group.side(side), 2) for side in SIDES)
    if side_of(group):
        name = reference if group.reference else prediction
    else:
        name = reference if reference == prediction else f"{reference} ↔ {prediction}"
    return name if len(name) <= NAME else f"{name[: NAME - 1]}…"


def name_in_text(group: Group) -> str:
    """Return the name of a group with its sides, such as "reference 1 ↔ prediction 4".

    Examples
    --------
    >>> import probdice
    >>> from probdice.metrics.verdict import name_in_text
    >>> groups = probdice.compare([1, 1, 2, 2, 3], [1, 1, 5, 5, 5]).groups
    >>> [name_in_text(group) for group in groups]
    ['region 1', 'reference 2 ↔ prediction 5', 'reference region 3']
    """
    name, side = name_of(group), side_of(group)
    labels = group.reference or group.prediction
    region = "" if isinstance(labels[0], str) else "region "
    if side:
        return f"{side} {region}{name}"
    reference, prediction = (listed(group.side(one), 2) for one in SIDES)
    if reference == prediction:
        return f"{region}{name}"
    names = [
        one if len(one) <= NAME // 2 else f"{one[: NAME // 2 - 1]}…"
        for one in (reference, prediction)
    ]
    return f"reference {names[0]} ↔ prediction {names[1]}"


def side_of(group: Group) -> Side | None:
    """Return the side of an unmatched region, or None for a matched group."""
    if group.reference and group.prediction:
        return None
    return "reference" if group.reference else "prediction"


def largest_pair(comparison: Comparison) -> Group | None:
    """Return the matched pair whose overlap covers more than half of the compared pixels.

    Such a pair may be the background. Return None if there is no such pair, or if the user has
    named a background.
    """
    if comparison.options.background is not None:
        return None
    for group in comparison.groups:
        pair = len(group.reference) == len(group.prediction) == 1
        if pair and group.common_volume > MIN_BACKGROUND_SHARE * comparison.pixels:
            return group
    return None


def mean_without(comparison: Comparison, excluded_group: Group) -> float:
    """Return the mean Dice of all groups except faint ones and `excluded_group`; NaN if none."""
    dice = [
        group.dice for group in comparison.groups if group != excluded_group and not group.faint
    ]
    return sum(dice) / len(dice) if dice else nan


def unmatched_in_words(comparison: Comparison) -> str:
    """Return the numbers of unmatched regions, such as "2 of 7 reference regions", or ""."""
    counts = [
        f"{len(comparison.unmatched[side])} of {comparison.region_count(side)} {side}"
        for side in SIDES
        if comparison.unmatched[side]
    ]
    return f"{' and '.join(counts)} regions" if counts else ""


def words_of(comparison: Comparison) -> PixelWords:
    """Return the words for the pixels of a comparison, such as "voxel" and "voxels"."""
    images = comparison.images
    return pixel_words(None if images is None else images.reference, comparison.axes)


def overlap_in_words(dice: float) -> str:
    """Return a description of a Dice coefficient, such as "Good overlap"."""
    return next((words for lowest, words in OVERLAPS if dice >= lowest), "Unknown overlap")


def available(number: Callable[[], float]) -> float:
    """Return a number, or NaN if it requires images that are not available."""
    try:
        return number()
    except NeedsImages:
        return nan


def explained_of(comparison: Comparison) -> dict[Side, float]:
    """Return the explained shares; NaN if they require images that are not available."""
    try:
        return comparison.explained
    except NeedsImages:
        return dict.fromkeys(SIDES, nan)


def _overlap_clauses(comparison: Comparison) -> list[str]:
    """Return a clause about the overlap and, if it is low, a clause about a possible reason."""
    name, dice = "mean Dice", comparison.mean_dice
    if comparison.background is not None:
        name, dice = "foreground Dice", comparison.foreground_dice
    if isnan(dice):
        return [f"The {name} is unknown"]
    overlap = (
        f"{overlap_in_words(dice)} ({name} {decimal(dice, 2)}{_mean_without_pair(comparison)})"
    )
    if dice >= HIGH_DICE:
        return [overlap]
    adjusted = available(lambda: comparison.adjusted_score)
    if adjusted >= HIGH_ADJUSTED_SCORE:
        agreement_text = f"but most {words_of(comparison).many} agree"
        return [f"{overlap}, {agreement_text} (adjusted score {decimal(adjusted, 2)})"]
    return [overlap, *_split_clauses(comparison)]


def _mean_without_pair(comparison: Comparison) -> str:
    """Return the mean Dice without a pair that may be the background, or ""."""
    pair = largest_pair(comparison)
    if pair is None:
        return ""
    mean = mean_without(comparison, pair)
    return "" if isnan(mean) else f", {decimal(mean, 2)} without {name_in_text(pair)}"


def _split_clauses(comparison: Comparison) -> list[str]:
    """Return a clause about regions that the two sides split differently, if there are any.

    A side is assumed to split regions of the other side if some of its regions are unmatched or
    merged, and if it explains a share of at least `HIGH_EXPLAINED_SHARE` of the other side.
    """
    split_sides = {side for side in SIDES if comparison.unmatched[side]}
    split_sides |= {merge.side for merge in comparison.merges}
    shares = explained_of(comparison)
    reference, prediction = (percent(shares[side], 0) for side in SIDES)
    explained_sides = {side for side in SIDES if shares[side] >= HIGH_EXPLAINED_SHARE}
    if len(split_sides) == len(explained_sides) == 2:
        explained_shares = f"{reference} of the reference and {prediction} of the prediction"
        return [f"the same regions, split differently ({explained_shares} explained)"]
    if "prediction" in split_sides and "reference" in explained_sides:
        splits = "the prediction splits regions of the reference"
        return [f"{splits} ({reference} of the reference explained)"]
    if "reference" in split_sides and "prediction" in explained_sides:
        joins = "the prediction joins regions of the reference"
        return [f"{joins} ({prediction} of the prediction explained)"]
    return []


def _worst_clauses(comparison: Comparison) -> list[str]:
    """Return clauses about the unmatched regions and the matched group with the lowest Dice."""
    matched = [group for group in comparison.groups if side_of(group) is None and not group.faint]
    lowest_group = lowest_matched(matched) if len(matched) > 1 else None
    unmatched = _unmatched_clause(comparison)
    if not unmatched:
        weakest = (
            f"weakest in {name_in_text(lowest_group)} (Dice {decimal(lowest_group.dice, 2)})"
            if lowest_group
            else ""
        )
        return [*filter(None, [weakest]), "every region matched"]
    if lowest_group is None:
        return [unmatched]
    return [
        unmatched,
        f"lowest matched Dice {decimal(lowest_group.dice, 2)} in {name_in_text(lowest_group)}",
    ]


def _unmatched_clause(comparison: Comparison) -> str:
    """Return a clause about the unmatched regions that names the largest one, or ""."""
    count = sum(len(labels) for labels in comparison.unmatched.values())
    worst_unmatched = worst_group([group for group in comparison.groups if side_of(group)])
    if not count or worst_unmatched is None:
        return ""
    if count == 1:
        return f"{name_in_text(worst_unmatched)} unmatched (Dice 0)"
    largest_name = name_in_text(worst_unmatched)
    return f"{unmatched_in_words(comparison)} unmatched (Dice 0), the largest is {largest_name}"
