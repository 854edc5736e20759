"""The correspondence as a drawing: two columns of regions and the lines between them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np
from numpy.typing import NDArray

from probdice.comparison import Comparison, Group
from probdice.segmentation import Label
from probdice.sides import SIDES, Side

__all__ = ["MATCHED", "MERGED", "Layout", "Link", "Node", "arrange", "width_of"]

MATCHED, MERGED = "#0072B2", "#009E73"  # as in the paper: blue and green
UNKNOWN = 2.0  # width of a line where Dice is not known


@dataclass(frozen=True)
class Node:
    """A region in its column; `row` counts from the top."""

    side: Side
    label: Label
    group: int
    row: float
    volume: float
    pixel_volume: float | None = None


@dataclass(frozen=True)
class Link:
    """A line between two regions: a matched pair, or a merged region and one that it joined.

    `dice` is that of their group. Regions that are `apart` share no pixel.
    """

    group: int
    reference: Node
    prediction: Node
    dice: float
    merged: bool
    apart: bool


@dataclass(frozen=True)
class Layout:
    """Where everything stands.

    `hidden` groups did not find room; `apart` counts the pairs that share no pixel in all groups.
    """

    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    rows: int
    hidden: int
    apart: int


@dataclass(frozen=True)
class Pair:
    """Two regions between which there may be a line; for `only` ones there always is."""

    group: int
    reference: Label
    prediction: Label
    merged: bool
    only: bool


Merged = dict[tuple[Side, Label], tuple[Label, ...]]  # which regions each merged one joined


def arrange(comparison: Comparison, most: int | None = None) -> Layout:
    """Groups one below the other, their regions on both sides, at most `most` groups.

    Examples
    --------
    >>> import probdice
    >>> from probdice.pictures.layout import arrange
    >>> result = probdice.compare([1, 1, 1, 1, 2, 2, 2, 2], [7, 7, 5, 5, 5, 9, 9, 9], merge="both")
    >>> layout = arrange(result)
    >>> [(node.side[:3], node.label, node.row) for node in layout.nodes]
    [('ref', 1, 0.5), ('pre', 7, 0.0), ('pre', 5, 1.0), ('ref', 2, 2.0), ('pre', 9, 2.0)]
    >>> [(link.reference.label, link.prediction.label, link.merged) for link in layout.links]
    [(1, 7, False), (1, 5, True), (2, 9, False)]
    """
    merged: Merged = {(merge.side, merge.region): merge.into for merge in comparison.merges}
    shown = comparison.groups[:most]
    nodes = {(node.side, node.label): node for node in _nodes(comparison, shown, merged)}
    rows = sum(_height(group) for group in shown)
    pairs = [pair for k, group in enumerate(comparison.groups) for pair in _pairs(k, group, merged)]
    links, apart = [], 0
    for pair, meets in _drawn(comparison, pairs):
        apart += not meets
        if pair.group < len(shown):
            links.append(
                Link(
                    pair.group,
                    nodes["reference", pair.reference],
                    nodes["prediction", pair.prediction],
                    comparison.groups[pair.group].dice,
                    pair.merged,
                    not meets,
                )
            )
    hidden = len(comparison.groups) - len(shown)
    return Layout(tuple(nodes.values()), tuple(links), rows, hidden, apart)


def width_of(dice: float) -> float:
    """The width of a line: 1 for a Dice of 0, 7 for a Dice of 1."""
    return UNKNOWN if isnan(dice) else 1 + 6 * dice


def _nodes(comparison: Comparison, groups: Sequence[Group], merged: Merged) -> Iterator[Node]:
    """The regions of every group, each side in the middle of the group's height."""
    table = comparison.overlap
    volumes: dict[Side, dict[Label, float]] = {
        side: dict(zip(table.side(side).labels, table.side(side).volumes.tolist(), strict=True))
        for side in SIDES
    }
    top = 0
    for number, group in enumerate(groups):
        for side in SIDES:
            # The matched regions first, then those that joined them.
            ordered = [label for label in group.side(side) if (side, label) not in merged]
            ordered += [label for label in group.side(side) if (side, label) in merged]
            start = top + (_height(group) - len(ordered)) / 2
            for k, label in enumerate(ordered):
                yield Node(
                    side,
                    label,
                    number,
                    start + k,
                    volumes[side][label],
                    comparison.pixel_volume,
                )
        top += _height(group)


def _height(group: Group) -> int:
    return max(len(group.reference), len(group.prediction))


def _pairs(number: int, group: Group, merged: Merged) -> Iterator[Pair]:
    """Matched regions by two, and every merged region with those that it joined."""
    matched = [
        [label for label in group.side(side) if (side, label) not in merged] for side in SIDES
    ]
    only = min(map(len, matched)) == 1
    for one in matched[0]:
        for two in matched[1]:
            yield Pair(number, one, two, False, only)
    for one in group.reference:
        for two in merged.get(("reference", one), ()):
            yield Pair(number, one, two, True, False)
    for two in group.prediction:
        for one in merged.get(("prediction", two), ()):
            yield Pair(number, one, two, True, False)


def _drawn(comparison: Comparison, pairs: list[Pair]) -> Iterator[tuple[Pair, bool]]:
    """The pairs that get a line, and whether they share a pixel.

    Those that meet; and matched ones where a region would otherwise have no line at all.
    """
    meet = _meet(comparison, pairs)
    reached = {
        (side, pair.group, getattr(pair, side))
        for pair, meets in zip(pairs, meet.tolist(), strict=True)
        if meets
        for side in SIDES
    }
    for pair, meets in zip(pairs, meet.tolist(), strict=True):
        lonely = not pair.merged and any(
            (side, pair.group, getattr(pair, side)) not in reached for side in SIDES
        )
        if meets or lonely or pair.only:
            yield pair, meets


def _meet(comparison: Comparison, pairs: list[Pair]) -> NDArray[np.bool_]:
    """Whether the two regions of each pair share a pixel."""
    table = comparison.overlap
    places = {side: {label: k for k, label in enumerate(table.side(side).labels)} for side in SIDES}
    rows = np.array([places["reference"][pair.reference] for pair in pairs], np.int64)
    columns = np.array([places["prediction"][pair.prediction] for pair in pairs], np.int64)
    width = len(table.prediction)
    meeting = table.meeting
    return np.isin(rows * width + columns, meeting.rows * width + meeting.columns)
