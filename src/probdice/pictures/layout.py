"""The correspondence as a drawing: two columns of regions and the lines between them."""

from dataclasses import dataclass
from math import nan, sqrt

from probdice.result import Comparison, Group
from probdice.segmentation import Label
from probdice.tally import Side

__all__ = ["MATCHED", "MERGED", "Layout", "Link", "Node", "arrange", "width_of"]

MATCHED, MERGED = "#0072B2", "#009E73"  # as in the paper: blue and green


@dataclass(frozen=True)
class Node:
    """A region in its column; `row` counts from the top, `volume` is NaN where not known."""

    side: Side
    label: Label
    group: int
    row: float
    volume: float


@dataclass(frozen=True)
class Link:
    """A line between two regions: a matched pair, or a merged region and where it went."""

    group: int
    reference: Node
    prediction: Node
    weight: float
    merged: bool


@dataclass(frozen=True)
class Layout:
    """Where everything stands. `hidden` groups did not find room."""

    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    rows: int
    hidden: int


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
    volumes = _volumes(comparison)
    merged = {(merge.side, merge.region) for merge in comparison.merges}
    index: dict[Side, dict[Label, int]] = {
        "reference": {label: k for k, label in enumerate(comparison.reference_labels)},
        "prediction": {label: k for k, label in enumerate(comparison.prediction_labels)},
    }
    nodes: list[Node] = []
    links: list[Link] = []
    top = 0
    shown = comparison.groups[:most]
    for number, group in enumerate(shown):
        height = max(len(group.reference), len(group.prediction))
        placed: dict[Side, list[Node]] = {"reference": [], "prediction": []}
        for side, column in placed.items():
            members = group.reference if side == "reference" else group.prediction
            # The matched region first, then those that joined it.
            ordered = sorted(members, key=lambda label: (side, label) in merged)
            start = top + (height - len(ordered)) / 2
            for k, label in enumerate(ordered):
                volume = volumes[side].get(label, nan)
                column.append(Node(side, label, number, start + k, volume))
        nodes += [*placed["reference"], *placed["prediction"]]
        for one in placed["reference"]:
            for two in placed["prediction"]:
                both = (one.side, one.label) in merged, (two.side, two.label) in merged
                if not all(both):
                    weight = comparison.weights[
                        index["reference"][one.label], index["prediction"][two.label]
                    ]
                    links.append(Link(number, one, two, float(weight), any(both)))
        top += height
    return Layout(tuple(nodes), tuple(links), top, len(comparison.groups) - len(shown))


def width_of(weight: float) -> float:
    """The width of a line: 7 for a weight of 0, 1 for a weight of 1.

    By the square root, since a weight counts pixels of the whole image and so is small for most
    pairs that belong together.
    """
    return 7 - 6 * sqrt(weight)


def _volumes(comparison: Comparison) -> dict[Side, dict[Label, float]]:
    """The volume of every region; without the images only of those alone in their group."""
    if comparison._work is not None:
        problem, _ = comparison._work
        return {
            side: dict(zip(regions.names, problem.sums.volumes[side].tolist(), strict=True))
            for side, regions in problem.regions.items()
        }
    return {
        "reference": {g.reference[0]: g.reference_volume for g in _alone(comparison, "reference")},
        "prediction": {
            g.prediction[0]: g.prediction_volume for g in _alone(comparison, "prediction")
        },
    }


def _alone(comparison: Comparison, side: Side) -> list[Group]:
    return [
        group
        for group in comparison.groups
        if len(group.reference if side == "reference" else group.prediction) == 1
    ]
