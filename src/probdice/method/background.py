"""Find the given background of each side, and exclude it from overlaps."""

from collections.abc import Collection
from dataclasses import replace
from math import nan

from probdice.errors import InputError, Option
from probdice.method.groups import Groups
from probdice.method.overlap import Floats, Overlap, Pairs, Regions
from probdice.method.region_labels import Label
from probdice.method.sides import SIDES, Both, Side, other

__all__ = [
    "NO_BACKGROUND",
    "Background",
    "BackgroundIndices",
    "background_group",
    "background_pair",
    "check_background",
    "find_background",
    "foreground_share",
    "named_background",
    "without_background",
]

Background = Both[Label]  # the label or name of the background of each side
BackgroundIndices = Both[int | None]  # index of the background region of each side; None if absent

NO_BACKGROUND: BackgroundIndices = Both(None, None)


def find_background(overlap: Overlap, background: Background | None) -> BackgroundIndices:
    """Return the index of the background region of each side; None if it is absent.

    If the background is given by name and a side has no names, the number of the region with this
    name on the other side is used. If it is given by number and a side has no numbers, the name of
    the region with this number on the other side is used. If the other side does not provide this
    number or name, an error is raised.
    """
    if background is None:
        return NO_BACKGROUND
    return Both(*(_find(overlap, background, side) for side in SIDES))


def check_background(background: Background, sides: Collection[Regions]) -> None:
    """Reject a background name that no region of these sides has."""
    for side in SIDES:
        name = background[side]
        if isinstance(name, str) and not any(regions.knows(name) for regions in sides):
            raise InputError(
                named_background(background),
                f": no region is called {name!r}. Use the label or the name of a region.",
            )


def named_background(background: Background) -> Option:
    """Return the background as an option, for use in messages."""
    if background.reference == background.prediction:
        return Option("background", background.reference)
    words = " ".join(f"--background {side}:{background[side]}" for side in SIDES)
    return Option("background", python=f"background={background.to_dict()!r}", command=words)


def without_background(overlap: Overlap, background_indices: BackgroundIndices) -> Overlap:
    """Return the overlap without the pairs that contain a background region."""
    if background_indices == NO_BACKGROUND:
        return overlap
    overlapping = overlap.pairs
    inside = (overlapping.rows != _index(background_indices.reference)) & (
        overlapping.columns != _index(background_indices.prediction)
    )
    pairs = Pairs(
        overlapping.rows[inside], overlapping.columns[inside], overlapping.savings[inside]
    )
    return replace(overlap, pairs=pairs)


def background_pair(
    overlap: Overlap, background_indices: BackgroundIndices
) -> tuple[int, int] | None:
    """Return the two background regions if both sides have a non-empty background, else None."""
    row, column = background_indices
    if row is None or column is None:
        return None
    occupied = overlap.reference.volumes[row] > 0 and overlap.prediction.volumes[column] > 0
    return (row, column) if occupied else None


def background_group(groups: Groups, background_indices: BackgroundIndices) -> int | None:
    """Return the group of the background, or None if neither side has a non-empty background."""
    for side in SIDES:
        index = background_indices[side]
        if index is not None and groups.group_indices(side)[index] >= 0:
            return int(groups.group_indices(side)[index])
    return None


def foreground_share(common: Floats, group: int | None, pixels: float) -> float:
    """Return foreground overlap / (`pixels` − background overlap), clipped to [0, 1].

    `common` contains the overlap of every group, and `group` is the index of the background group.
    The result is NaN if all pixels are background on both sides.
    """
    background = 0.0 if group is None else float(common[group])
    foreground = float(common.sum()) - background
    remaining_pixels = pixels - background
    return min(max(foreground / remaining_pixels, 0.0), 1.0) if remaining_pixels > 0 else nan


def _index(index: int | None) -> int:
    return -1 if index is None else index


def _find(overlap: Overlap, background: Background, side: Side) -> int | None:
    regions, label = overlap.side(side), background[side]
    if regions.knows(label):
        return regions.find(label)
    counterpart = overlap.side(other(side)).counterpart(label)
    if isinstance(label, str):
        if regions.names:
            return None
        if isinstance(counterpart, int):
            return regions.find(counterpart)
        problem, available = "name", "no names"
    else:
        if regions.crisp or regions.numbers or regions.unlabelled:
            return None
        if isinstance(counterpart, str):
            return regions.find(counterpart)
        problem, available = "label", "names only"
    raise InputError(
        named_background(background),
        f": the regions of the {side} have {available} ({_listed(regions)}), so the background of "
        f"the {side} cannot be found by {problem}. Use ",
        Option(
            "background",
            python='background={"reference": …, "prediction": …}',
            command="--background reference:LABEL --background prediction:LABEL",
        ),
        ".",
    )


def _listed(regions: Regions) -> str:
    return ", ".join(str(label) for label in regions.labels[:6])
