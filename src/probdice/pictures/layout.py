"""Layout of the correspondence diagram: two columns of regions, and lines between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from probdice.method.region_labels import Label
from probdice.method.sides import SIDES, Both, Side

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison, Group

__all__ = ["MATCHED", "MERGED", "Layout", "Link", "Node", "arrange", "width_of"]

MATCHED, MERGED = "#0072B2", "#009E73"  # blue and green, as in the paper
MAX_NODES = 8  # largest number of nodes per side of a group if not all nodes fit
UNKNOWN_DICE_WIDTH = 2.0  # of a line


@dataclass(frozen=True)
class Node:
    """A region in its column. Rows are numbered from the top.

    If one side of a group has too many regions, the last node of this side represents `count`
    regions, and `label` is the label of the first of these regions.
    """

    side: Side
    label: Label
    group: int
    row: float
    volume: float
    pixel_volume: float | None = None
    count: int = 1


@dataclass(frozen=True)
class Link:
    """A line between two regions: a matched pair, or a merged region and its target.

    `dice` is the Dice of the group. `apart` is True if the regions have no pixel in common.
    """

    group: int
    reference: Node
    prediction: Node
    dice: float
    merged: bool
    apart: bool


@dataclass(frozen=True)
class Layout:
    """Positions of all nodes and lines.

    `hidden` is the number of groups that are not shown. `apart` is the number of joined pairs that
    have no pixel in common, including pairs of hidden groups. If groups were selected by their
    Dice, `floor` is the lowest Dice of the hidden matched groups, excluding faint groups.
    Otherwise, it is None.
    """

    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    rows: int
    hidden: int
    apart: int
    floor: float | None = None


@dataclass(frozen=True)
class Pair:
    """Two regions that may be joined by a line.

    If `only` is True, the regions are joined even if they do not overlap.
    """

    group: int
    reference: Label
    prediction: Label
    merged: bool
    only: bool


MergeTargets = dict[tuple[Side, Label], tuple[Label, ...]]  # merged regions and their targets
Columns = Both[list[tuple[Label, ...]]]  # per side, the labels of each node of a group


def arrange(
    comparison: Comparison, max_groups: int | None = None, *, rows: int | None = None
) -> Layout:
    """Arrange groups from top to bottom, with their regions on both sides.

    By default, all groups are shown. `max_groups` limits the layout to the first groups. If not
    all regions of these groups fit into `rows`, as many groups as fit are selected from all groups
    in ascending order of Dice, and each side of a group is shortened to `MAX_NODES` nodes.

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
    targets: MergeTargets = {(merge.side, merge.region): merge.into for merge in comparison.merges}
    columns = [_columns(group, targets) for group in comparison.groups]
    visible_groups = list(range(len(columns)))[:max_groups]
    if rows is not None and sum(_height(columns[k]) for k in visible_groups) > rows:
        columns = [_cut(sides) for sides in columns]
        visible_groups = _lowest_groups(comparison.groups, columns, rows)
    volumes = _volumes(comparison)
    nodes: dict[tuple[Side, Label], Node] = {}
    top = 0
    for number in visible_groups:
        nodes |= _nodes(number, columns[number], top, volumes, comparison.pixel_volume)
        top += _height(columns[number])
    pairs = [
        pair for k, group in enumerate(comparison.groups) for pair in _pairs(k, group, targets)
    ]
    links: dict[tuple[Label, Label], Link] = {}
    apart = 0
    for pair, meets in _linked_pairs(comparison, pairs):
        apart += not meets
        reference = nodes.get(("reference", pair.reference))
        prediction = nodes.get(("prediction", pair.prediction))
        if reference is None or prediction is None:
            continue
        link = Link(
            pair.group,
            reference,
            prediction,
            comparison.groups[pair.group].dice,
            pair.merged,
            not meets,
        )
        links.setdefault((reference.label, prediction.label), link)
    hidden_groups = set(range(len(columns))).difference(visible_groups)
    hidden_dice = [
        group.dice
        for k, group in enumerate(comparison.groups)
        if k in hidden_groups and group.reference and group.prediction and not group.faint
    ]
    by_dice = rows is not None and bool(hidden_groups)
    return Layout(
        tuple(dict.fromkeys(nodes.values())),
        tuple(links.values()),
        top,
        len(hidden_groups),
        apart,
        min(hidden_dice) if by_dice and hidden_dice else None,
    )


def width_of(dice: float) -> float:
    """Return the width of a line, from 1 for a Dice of 0 to 7 for a Dice of 1."""
    return UNKNOWN_DICE_WIDTH if isnan(dice) else 1 + 6 * dice


def _columns(group: Group, targets: MergeTargets) -> Columns:
    """Return the regions of a group on each side: matched regions first, then merged regions."""
    columns: list[list[tuple[Label, ...]]] = []
    for side in SIDES:
        labels = [label for label in group.side(side) if (side, label) not in targets]
        labels += [label for label in group.side(side) if (side, label) in targets]
        columns.append([(label,) for label in labels])
    return Both(*columns)


def _cut(columns: Columns) -> Columns:
    """Limit each side to `MAX_NODES` entries. The last entry represents the remaining regions."""

    def cut(entries: list[tuple[Label, ...]]) -> list[tuple[Label, ...]]:
        if len(entries) <= MAX_NODES:
            return entries
        remaining_labels = tuple(label for entry in entries[MAX_NODES - 1 :] for label in entry)
        return [*entries[: MAX_NODES - 1], remaining_labels]

    return columns.map(cut)


def _lowest_groups(groups: Sequence[Group], columns: Sequence[Columns], rows: int) -> list[int]:
    """Return as many groups as fit, but at least one, in ascending order of Dice.

    Unmatched groups follow the matched groups, and faint groups are last.
    """
    order = sorted(
        range(len(groups)),
        key=lambda k: (
            groups[k].faint,
            not (groups[k].reference and groups[k].prediction),
            isnan(groups[k].dice),
            groups[k].dice,
        ),
    )
    visible_groups: list[int] = []
    top = 0
    for number in order:
        top += _height(columns[number])
        if top > rows and visible_groups:
            break
        visible_groups.append(number)
    return visible_groups


def _volumes(comparison: Comparison) -> dict[tuple[Side, Label], float]:
    return {
        (side, label): volume
        for side in SIDES
        for label, volume in zip(
            comparison.overlap.side(side).labels,
            comparison.overlap.side(side).volumes.tolist(),
            strict=True,
        )
    }


def _nodes(
    number: int,
    columns: Columns,
    top: int,
    volumes: dict[tuple[Side, Label], float],
    pixel_volume: float | None,
) -> dict[tuple[Side, Label], Node]:
    """Return the nodes of a group by region. Each side is centred vertically."""
    nodes: dict[tuple[Side, Label], Node] = {}
    for side in SIDES:
        start = top + (_height(columns) - len(columns[side])) / 2
        for k, labels in enumerate(columns[side]):
            volume = sum(volumes[side, label] for label in labels)
            node = Node(side, labels[0], number, start + k, volume, pixel_volume, len(labels))
            nodes |= {(side, label): node for label in labels}
    return nodes


def _height(columns: Columns) -> int:
    return max(len(entries) for entries in columns)


def _pairs(number: int, group: Group, targets: MergeTargets) -> Iterator[Pair]:
    """Return the matched pairs, and the pairs of each merged region with its targets."""
    matched = [
        [label for label in group.side(side) if (side, label) not in targets] for side in SIDES
    ]
    only = min(map(len, matched)) == 1
    for reference in matched[0]:
        for prediction in matched[1]:
            yield Pair(number, reference, prediction, False, only)
    for reference in group.reference:
        for prediction in targets.get(("reference", reference), ()):
            yield Pair(number, reference, prediction, True, False)
    for prediction in group.prediction:
        for reference in targets.get(("prediction", prediction), ()):
            yield Pair(number, reference, prediction, True, False)


def _linked_pairs(comparison: Comparison, pairs: list[Pair]) -> Iterator[tuple[Pair, bool]]:
    """Return the pairs that are joined by a line, and whether they have a pixel in common.

    Overlapping pairs are joined. A matched pair that does not overlap is joined if `only` is True
    or if one of its regions would otherwise have no line.
    """
    meet = _meet(comparison, pairs)
    linked_regions = {
        (side, pair.group, getattr(pair, side))
        for pair, meets in zip(pairs, meet.tolist(), strict=True)
        if meets
        for side in SIDES
    }
    for pair, meets in zip(pairs, meet.tolist(), strict=True):
        without_line = not pair.merged and any(
            (side, pair.group, getattr(pair, side)) not in linked_regions for side in SIDES
        )
        if meets or without_line or pair.only:
            yield pair, meets


def _meet(comparison: Comparison, pairs: list[Pair]) -> NDArray[np.bool_]:
    """Return whether the two regions of each pair have a pixel in common."""
    table = comparison.overlap
    indices = {
        side: {label: k for k, label in enumerate(table.side(side).labels)} for side in SIDES
    }
    rows = np.array([indices["reference"][pair.reference] for pair in pairs], np.int64)
    columns = np.array([indices["prediction"][pair.prediction] for pair in pairs], np.int64)
    width = len(table.prediction)
    overlapping = table.pairs
    return np.isin(rows * width + columns, overlapping.rows * width + overlapping.columns)
