"""Draw the figures about weights, matching, merging and segmentation methods."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.comparison.result import Comparison
from probdice.data.segmentation import Segmentation
from probdice.method.region_labels import Label
from probdice.paper.drawings import (
    BLUE,
    CENTRED,
    GREEN,
    GREY,
    RED,
    add_scale,
    blended_colours,
    colours,
    new_figure,
    show,
)
from probdice.paper.figures import MergedPair, PairWeight
from probdice.synthesis import probabilities

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_pair_weight(data: PairWeight) -> "Figure":
    """Draw both sides, the graph between their regions, and the weight of one edge."""
    figure = new_figure(11.5, 6.2)
    top, bottom = np.asarray(figure.subfigures(2, 1, height_ratios=[1.08, 1])).tolist()
    left_axes, middle_axes, right_axes = top.subplots(1, 3, width_ratios=[1, 1.25, 1])
    rows = _numbered_picture(left_axes, data.reference, "reference")
    columns = _numbered_picture(right_axes, data.prediction, "prediction")
    all_pairs = [(row, column) for row in rows for column in columns]
    edges = {pair: ("#b8bec6", 0.8) for pair in all_pairs}
    edges |= {pair: (BLUE, 1.8) for pair in data.matched} | {data.pair: (RED, 3.0)}
    _graph(middle_axes, rows, columns, edges)
    middle_axes.set_title(f"red: weight {data.weight:.4f}; blue: matched", fontsize=10)
    axes = bottom.subplots(1, 4, width_ratios=[1, 1, 1, 1.15])
    show(axes[0], data.auxiliaries[0][0], f"auxiliary: reference {data.pair[0]}", **GREY)
    show(axes[1], data.auxiliaries[1][0], f"auxiliary: prediction {data.pair[1]}", **GREY)
    add_scale(bottom, show(axes[2], data.f, f"f, mean {data.f.mean():.4f}", **GREY), [axes[2]], "")
    highest = float(data.weights.max())
    axes[3].imshow(data.weights, cmap="Blues_r", vmin=0, vmax=highest, aspect="auto")
    for pair, (cell, weight) in zip(all_pairs, np.ndenumerate(data.weights), strict=True):
        edge = RED if pair == data.pair else "white" if pair in data.matched else "none"
        axes[3].text(
            *cell[::-1],
            f"{weight:.3f}",
            color="white" if weight < 0.55 * highest else "black",
            bbox={"boxstyle": "square,pad=0.3", "fc": "none", "ec": edge, "lw": 2},
            **CENTRED,
        )
    axes[3].set_xticks(range(len(columns)), list(map(str, columns)))
    axes[3].set_yticks(range(len(rows)), list(map(str, rows)))
    axes[3].set(xlabel="prediction", ylabel="reference")
    axes[3].set_title("weights; boxes: matched", fontsize=10)
    return figure


def draw_merging(data: MergedPair) -> "Figure":
    """Draw both sides, the corresponding regions, and the Dice before and after each merge."""
    figure = new_figure(11.5, 7.6)
    top, bottom = np.asarray(figure.subfigures(2, 1, height_ratios=[1.5, 1])).tolist()
    left_axes, middle_axes, right_axes = top.subplots(1, 3, width_ratios=[1, 0.85, 1])
    result = data.result
    counts = len(result.prediction_labels), len(result.reference_labels)
    regions = _numbered_picture(left_axes, data.prediction, f"prediction: {counts[0]} regions")
    targets = _numbered_picture(right_axes, data.reference, f"reference: {counts[1]} regions")
    edges = {(region, target): (BLUE, 2.0) for target, region in data.matched}
    edges |= {(step.region, step.into): (GREEN, 2.0) for step in data.steps}
    _graph(middle_axes, regions, targets, edges)
    scores = f"score {result.matched_score:.4f} → {result.score:.4f}"
    middle_axes.set_title(f"blue: matched; green: merged\n{scores}", fontsize=10)
    _draw_steps(bottom.subplots(), data)
    return figure


def draw_sources(
    image: NDArray[np.float64],
    segmentations: Mapping[str, Segmentation],
    results: Mapping[str, Comparison],
) -> "Figure":
    """Draw a photograph, and its segmentations by several methods with their scores."""
    figure = new_figure(11.0, 6.0)
    axes = figure.subplots(2, 3).ravel()
    show(axes[0], image, "photograph")
    for ax, (method, result) in zip(axes[1:], results.items(), strict=True):
        regions = len(result.prediction_labels)
        show(ax, blended_colours(segmentations[method]), f"{method}, {regions} regions")
        ax.set_xlabel(
            f"matched {result.matched_score:.3f}   merged {result.score:.3f}   "
            f"adjusted {result.adjusted_score:.3f}",
            fontsize=9,
        )
    return figure


def _numbered_picture(ax: Any, segmentation: Segmentation, title: str) -> tuple[Label, ...]:
    """Draw a segmentation with each label at the point that is deepest inside its region.

    Return the labels.
    """
    from scipy import ndimage

    show(ax, blended_colours(segmentation), title)
    values, labels = probabilities(segmentation)
    likeliest = np.pad(values.argmax(axis=0), 1, constant_values=-1)
    for k, label in enumerate(labels):
        if (likeliest == k).any():
            depth = ndimage.distance_transform_edt(likeliest == k)
            row, column = np.unravel_index(int(depth.argmax()), depth.shape)
            box = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.8}
            ax.text(column - 1, row - 1, str(label), bbox=box, **CENTRED)
    return labels


def _graph(
    ax: Any,
    left_labels: tuple[Label, ...],
    right_labels: tuple[Label, ...],
    edges: Mapping[tuple[Label, Label], tuple[str, float]],
) -> None:
    """Draw two columns of circles (one circle per region) and the lines between them."""
    heights = []
    for x, labels in ((0.0, left_labels), (1.0, right_labels)):
        heights.append({label: 1 - (k + 0.5) / len(labels) for k, label in enumerate(labels)})
        for (label, y), colour in zip(heights[-1].items(), colours(len(labels)), strict=True):
            ax.plot([x], [y], "o", ms=19, mfc=colour, mec="#444", zorder=4)
            dark = float(np.dot(colour, [0.3, 0.59, 0.11])) < 0.5
            ax.text(x, y, str(label), color="white" if dark else "black", zorder=5, **CENTRED)
    for (left_label, right_label), (colour, width) in edges.items():
        ends = heights[0][left_label], heights[1][right_label]
        ax.plot([0, 1], ends, color=colour, lw=width, zorder=width)
    ax.set(xlim=(-0.2, 1.2), ylim=(0, 1))
    ax.set_axis_off()


def _draw_steps(ax: Any, data: MergedPair) -> None:
    """Draw one bar per merge, from the Dice before the merge to the Dice after the merge."""
    for y, step in enumerate(reversed(data.steps)):
        dice = step.dice_before, step.dice_after
        ax.plot(dice, [y, y], color=GREEN, lw=5, alpha=0.35)
        for value, colour, name in ((dice[0], "#555", "before"), (dice[1], GREEN, "after")):
            ax.plot([value], [y], "o", color=colour, ms=8, label=name if y == 0 else None)
        text = f"{dice[0]:.4f} → {dice[1]:.4f}"
        ax.text(max(dice) + 0.02, y, text, va="center", fontsize=9)
    names = [f"{step.region} into {step.into}" for step in reversed(data.steps)]
    ax.set_yticks(range(len(names)), names)
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1])
    ax.set(ylim=(-0.6, max(len(names) - 0.4, 0.6)), xlim=(0, 1.22))
    ax.set_xlabel("Dice of the reference region before and after the merge")
    ax.grid(alpha=0.3, axis="x")
    if data.steps:
        ax.legend(loc="lower left", fontsize=9)
