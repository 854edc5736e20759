"""Drawings of how regions come to correspond: weights, matching, merging, and their sources."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.paper.canvas import (
    BLUE,
    GREEN,
    GREY,
    RED,
    add_scale,
    blended,
    centres,
    colours,
    figure_of,
    show,
)
from probdice.paper.pairs import Merging, PairWeight
from probdice.paper.photographs import Source
from probdice.segmentation import Label, Segmentation
from probdice.synthesis import probabilities

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_merging", "draw_pair_weight", "draw_sources"]


def draw_pair_weight(data: PairWeight) -> "Figure":
    """Both sides, the graph between their regions, and what one edge of it weighs."""
    figure = figure_of(11.5, 6.2)
    top, bottom = np.asarray(figure.subfigures(2, 1, height_ratios=[1.08, 1])).tolist()
    left, middle, right = top.subplots(1, 3, width_ratios=[1, 1.25, 1])
    _numbered_picture(left, data.reference, "reference")
    _numbered_picture(right, data.prediction, "prediction")
    places = _nodes(middle, data.reference, data.prediction)
    for i, row in enumerate(data.weights):
        for j, _ in enumerate(row):
            _edge(middle, places[0][i], places[1][j], "#b8bec6", 0.8, 1)
    labels = probabilities(data.reference)[1], probabilities(data.prediction)[1]
    for pair in data.matched:
        ends = places[0][labels[0].index(pair[0])], places[1][labels[1].index(pair[1])]
        _edge(middle, *ends, BLUE, 1.8, 2)
    chosen = places[0][labels[0].index(data.pair[0])], places[1][labels[1].index(data.pair[1])]
    _edge(middle, *chosen, RED, 3.0, 3)
    middle.set_title(f"red: weight {data.weight:.4f}; blue: matched", fontsize=10)
    axes = bottom.subplots(1, 4, width_ratios=[1, 1, 1, 1.15])
    for place, auxiliary, side, label in (
        (axes[0], data.auxiliaries[0], "reference", data.pair[0]),
        (axes[1], data.auxiliaries[1], "prediction", data.pair[1]),
    ):
        place.imshow(auxiliary[0], **GREY)
        show(place, None, f"auxiliary: {side} {label}", hide=False)
    shown = axes[2].imshow(data.f, **GREY)
    show(axes[2], None, f"f, mean {data.f.mean():.4f}", hide=False)
    add_scale(bottom, shown, [axes[2]], "")
    _weight_table(axes[3], data, labels)
    return figure


def draw_merging(data: Merging) -> "Figure":
    """Both sides, which regions correspond, and Dice before and after each merge."""
    figure = figure_of(11.5, 7.6)
    top, bottom = np.asarray(figure.subfigures(2, 1, height_ratios=[1.5, 1])).tolist()
    left, middle, right = top.subplots(1, 3, width_ratios=[1, 0.85, 1])
    _numbered_picture(
        left, data.prediction, f"prediction: {len(data.result.prediction_labels)} regions"
    )
    _numbered_picture(
        right, data.reference, f"reference: {len(data.result.reference_labels)} regions"
    )
    places = _nodes(middle, data.prediction, data.reference)
    labels = probabilities(data.prediction)[1], probabilities(data.reference)[1]

    def join(region: Label, target: Label, colour: str) -> None:
        ends = places[0][labels[0].index(region)], places[1][labels[1].index(target)]
        _edge(middle, *ends, colour, 2.0, 2)

    for target, region in data.matched:
        join(region, target, BLUE)
    for step in data.steps:
        join(step.region, step.into, GREEN)
    middle.set_title(
        f"blue: matched; green: merged\nscore {data.result.matched_score:.4f} → "
        f"{data.result.score:.4f}",
        fontsize=10,
    )
    _steps(bottom.subplots(), data)
    return figure


def draw_sources(image: NDArray[np.float64], found: Sequence[Source]) -> "Figure":
    """A photograph and its segmentations by several methods, with their scores."""
    figure = figure_of(11.0, 6.0)
    axes = figure.subplots(2, 3).ravel()
    show(axes[0], image, "photograph")
    for place, source in zip(axes[1:], found, strict=True):
        regions = len(probabilities(source.segmentation)[1])
        show(place, blended(source.segmentation), f"{source.method}, {regions} regions")
        place.set_xlabel(
            f"matched {source.matched_score:.3f}   merged {source.merged_score:.3f}   "
            f"adjusted {source.adjusted_score:.3f}",
            fontsize=9,
        )
    return figure


def _numbered_picture(place: Any, segmentation: Segmentation, title: str) -> None:
    show(place, blended(segmentation), title)
    labels = probabilities(segmentation)[1]
    for label, centre in zip(labels, centres(segmentation), strict=True):
        if centre is not None:
            place.text(
                centre[1],
                centre[0],
                str(label),
                ha="center",
                va="center",
                fontsize=9,
                bbox={"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.8},
            )


def _nodes(
    place: Any, left: Segmentation, right: Segmentation
) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """A circle for each region of both sides, and where it is."""
    sides = []
    for x, segmentation in ((0.0, left), (1.0, right)):
        labels = probabilities(segmentation)[1]
        places = [(x, 1 - (k + 0.5) / len(labels)) for k in range(len(labels))]
        for (_, y), label, colour in zip(places, labels, colours(len(labels)), strict=True):
            place.plot([x], [y], "o", ms=19, mfc=colour, mec="#444", zorder=4)
            dark = float(np.dot(colour, [0.3, 0.59, 0.11])) < 0.5
            place.text(
                x,
                y,
                str(label),
                ha="center",
                va="center",
                zorder=5,
                fontsize=9,
                color="white" if dark else "black",
            )
        sides.append(places)
    place.set_xlim(-0.2, 1.2)
    place.set_ylim(0, 1)
    place.set_axis_off()
    return sides[0], sides[1]


def _edge(
    place: Any,
    start: tuple[float, float],
    stop: tuple[float, float],
    colour: str,
    width: float,
    layer: int,
) -> None:
    place.plot([start[0], stop[0]], [start[1], stop[1]], color=colour, lw=width, zorder=layer)


def _weight_table(
    place: Any, data: PairWeight, labels: tuple[tuple[Label, ...], tuple[Label, ...]]
) -> None:
    place.imshow(
        data.weights, cmap="Blues_r", vmin=0, vmax=float(data.weights.max()), aspect="auto"
    )
    for (i, j), weight in np.ndenumerate(data.weights):
        pair = labels[0][i], labels[1][j]
        place.text(
            j,
            i,
            f"{weight:.3f}",
            ha="center",
            va="center",
            fontsize=9,
            color="white" if weight < 0.55 * data.weights.max() else "black",
            bbox={
                "boxstyle": "square,pad=0.3",
                "fc": "none",
                "ec": RED if pair == data.pair else "white" if pair in data.matched else "none",
                "lw": 2,
            },
        )
    place.set_xticks(range(len(labels[1])), [str(label) for label in labels[1]])
    place.set_yticks(range(len(labels[0])), [str(label) for label in labels[0]])
    place.set_xlabel("prediction")
    place.set_ylabel("reference")
    place.set_title("weights; boxes: matched", fontsize=10)


def _steps(place: Any, data: Merging) -> None:
    """For every merge a bar from the Dice before it to the Dice after it."""
    for k, step in enumerate(data.steps):
        y = len(data.steps) - 1 - k
        place.plot([step.dice_before, step.dice_after], [y, y], color=GREEN, lw=5, alpha=0.35)
        place.plot(
            [step.dice_before], [y], "o", color="#555", ms=8, label="before" if k == 0 else None
        )
        place.plot(
            [step.dice_after], [y], "o", color=GREEN, ms=8, label="after" if k == 0 else None
        )
        high = max(step.dice_before, step.dice_after)
        place.text(
            high + 0.02,
            y,
            f"{step.dice_before:.4f} → {step.dice_after:.4f}",
            va="center",
            fontsize=9,
        )
    names = [f"{step.region} joins {step.into}" for step in data.steps]
    place.set_yticks(range(len(names)), names[::-1])
    place.set_ylim(-0.6, max(len(names) - 0.4, 0.6))
    place.set_xlim(0, 1.22)
    place.set_xticks([0, 0.25, 0.5, 0.75, 1])
    place.set_xlabel("Dice of the region of the reference, before and after the merge")
    place.grid(alpha=0.3, axis="x")
    if data.steps:
        place.legend(loc="lower left", fontsize=9)
