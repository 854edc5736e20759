"""The page of one case with all methods: the same slices of the reference and every prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.method.sides import SIDES, Side
from probdice.metrics.verdict import (
    name_in_text,
    overlap_in_words,
    side_of,
    unmatched_in_words,
    worst_group,
)
from probdice.pictures.colours import background_group, colours_of
from probdice.pictures.views import View, group_numbers, images_of, largest, largest_loss, look
from probdice.report.encoding import shortened
from probdice.report.image_layers import background_images_of
from probdice.report.rendering import render, write_page
from probdice.report.slice_stacks import (
    SLICE_SCRIPTS,
    Stack,
    fraction_layer,
    frame_of,
    image_layer,
    region_layer,
    stack_of,
)
from probdice.text.formatting import decimal

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison
    from probdice.method.region_labels import Label

__all__ = ["CaseSlices", "MethodPanel", "PageLink", "write_side_by_side"]

MAX_LABEL_LAYER_PIXELS = 2**21  # largest number of pixels per layer of label maps
MAX_PROBABILITY_LAYER_PIXELS = 2**19  # the same if a side has probabilities
UNMATCHED = "#4D4D4D"  # colour of unmatched prediction regions
MAX_LEGEND_REGIONS = 16


@dataclass(frozen=True)
class PageLink:
    """A link to another page of the evaluation."""

    text: str
    address: str


@dataclass(frozen=True)
class MethodPanel:
    """A method: the names of its region layer and similarity layer, and its measures."""

    name: str
    regions: str
    similarity: str
    dice_name: str
    dice: float
    worst: str  # the worst region with its Dice
    facts: tuple[str, ...]


@dataclass
class CaseSlices:
    """Slices of one case, added method by method.

    The page opens at the largest difference in the worst region of the method with the lowest Dice.
    """

    case: str
    image: str | None = None  # the file of the background image
    content: dict[str, Any] = field(default_factory=dict)
    left_out: str = ""
    legend: dict[str, str] = field(default_factory=dict)  # names and colours of regions
    unnamed: int = 0  # number of reference regions that are not in the legend
    has_unmatched: bool = False  # whether a prediction has unmatched regions
    panels: list[MethodPanel] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)  # names of methods without images
    worst: MethodPanel | None = None  # the method with the lowest Dice
    _stack: Stack | None = None
    _colours: dict[Label, str] = field(default_factory=dict)
    _foreground: NDArray[np.bool_] | None = None

    def add(self, method: str, comparison: Comparison) -> None:
        """Add the slices of a method. The comparison must have its images."""
        number = len(self.panels)
        crisp = comparison.overlap.crisp
        reference = images_of(comparison).reference
        stack = self._stack or stack_of(
            reference, MAX_LABEL_LAYER_PIXELS if crisp else MAX_PROBABILITY_LAYER_PIXELS
        )
        view = look(comparison, stack.ranges)
        if self._stack is None:
            self._start(comparison, stack, view)
        colours = self._same_colours(comparison)
        layers = self.content["layers"]
        layers.setdefault("reference", _regions(stack, view, "reference", colours["reference"]))
        panel = _panel(method, comparison, number)
        layers[panel.regions] = _regions(stack, view, "prediction", colours["prediction"])
        f = np.where(view.inside, view.f, np.nan)
        layers[panel.similarity] = fraction_layer(stack, f, "similarity")
        self._extend_frame(comparison, stack, view)
        if self.worst is None or panel.dice < self.worst.dice or isnan(self.worst.dice):
            self.worst = panel
            self.content |= stack.content(stack.position_of(_worst_place(comparison, view)))
        self.panels.append(panel)

    def _start(self, comparison: Comparison, stack: Stack, view: View) -> None:
        """Set the background image and the legend from the first method."""
        self.content = {"layers": {}, "image": None}
        if self.image is not None:
            (image,) = background_images_of(images_of(comparison), comparison.options, self.image)
            self.content["image"] = image_layer(stack, image)
        self.left_out, self._stack = stack.left_out, stack
        colours = colours_of(comparison).by_label(comparison)
        background = background_group(comparison)
        names = {
            str(label): (group.reference_volume, colours["reference", label])
            for number, group in enumerate(comparison.groups)
            for label in group.reference
            if number != background and not group.faint
        }
        largest_first = sorted(names, key=lambda name: -names[name][0])
        self.legend = {
            name: names[name][1] for name in names if name in largest_first[:MAX_LEGEND_REGIONS]
        }
        self.unnamed = len(names) - len(self.legend)

    def _extend_frame(self, comparison: Comparison, stack: Stack, view: View) -> None:
        """Extend the displayed part of the slices to the foreground of a method."""
        background = background_group(comparison)
        foreground = np.zeros(view.inside.shape, np.bool_)
        for side in SIDES:
            numbers = np.array([*group_numbers(comparison, side), background])
            foreground |= (numbers != background)[largest(view, side, 1)[0][0]]
        if self._foreground is not None:
            foreground |= self._foreground
        self._foreground = foreground & view.inside
        self.content["frame"] = frame_of(stack.drawn(self._foreground))[1:]

    def _same_colours(self, comparison: Comparison) -> dict[Side, list[str]]:
        """Return the colours of the regions of a comparison, which are the same for all methods.

        Prediction regions have the colour of the first reference region of their group. Unmatched
        prediction regions are grey. If there is a background image, the background is transparent.
        """
        own_colours = colours_of(comparison).by_label(comparison)
        for label in comparison.reference_labels:
            self._colours.setdefault(label, own_colours["reference", label])
        background = background_group(comparison)
        sides: dict[Side, dict[Label, str]] = {"reference": {}, "prediction": {}}
        for number, group in enumerate(comparison.groups):
            is_hidden = number == background and self.content["image"] is not None
            for label in group.reference:
                sides["reference"][label] = "" if is_hidden else self._colours[label]
            colour = self._colours[group.reference[0]] if group.reference else UNMATCHED
            self.has_unmatched |= not group.reference
            for label in group.prediction:
                sides["prediction"][label] = "" if is_hidden else colour
        return {
            side: [colours[label] for label in comparison.labels(side)]
            for side, colours in sides.items()
        }


def write_side_by_side(
    slices: CaseSlices,
    reference: str,
    path: Path,
    links: Sequence[PageLink],
    pages: dict[str, str],
) -> None:
    """Write the page. The methods are in the order of the links.

    `reference` is the name of the reference. `pages` contains the addresses of the pages of
    individual methods by name.
    """
    order = {link.text: number for number, link in enumerate(links)}
    methods = f"{len(slices.panels)} methods compared with {reference}"
    page = {
        "title": f"{shortened(slices.case, 200)}: {methods}",
        "verdict": _verdict(slices.panels),
        "worst": slices.worst.name if slices.worst else "",
        "legend": slices.legend,
        "unnamed": slices.unnamed,
        "unmatched": UNMATCHED if slices.has_unmatched else "",
        "slices": slices.content,
        "left_out": slices.left_out,
        "panels": sorted(slices.panels, key=lambda panel: order.get(panel.name, len(order))),
        "absent": [shortened(method) for method in slices.absent],
        "pages": pages,
    }
    text = render(
        "side_by_side.html",
        {"page": page, "links": links},
        style="assets/page.css",
        extra_styles=("assets/evaluation.css",),
        scripts=(*SLICE_SCRIPTS, "assets/paper.js") if slices.panels else (),
    )
    write_page(path, text, has_lock=True)


def _regions(stack: Stack, view: View, side: Side, colours: list[str]) -> dict[str, Any]:
    """Return the most probable region of every pixel."""
    codes: NDArray[Any] = largest(view, side, 1)[0][0]
    return region_layer(stack, np.where(view.inside, codes, -1), colours)


def _worst_place(comparison: Comparison, view: View) -> tuple[int, ...]:
    """Return the pixel of the largest difference in the worst region."""
    loss = np.where(view.inside, 1 - view.f, np.nan)
    worst = worst_group(comparison.groups)
    if worst is None:
        return largest_loss(loss)
    in_worst = np.zeros(loss.shape, np.bool_)
    for side in SIDES:
        is_worst = [label in worst.side(side) for label in comparison.labels(side)]
        in_worst |= np.array([*is_worst, False])[largest(view, side, 1)[0][0]]
    return largest_loss(np.where(in_worst, loss, 0 * loss))


def _panel(method: str, comparison: Comparison, number: int) -> MethodPanel:
    """Return the panel of a method with its Dice, worst region, unmatched regions and score."""
    dice_name, dice = "mean Dice", comparison.mean_dice
    if comparison.background is not None:
        dice_name, dice = "foreground Dice", comparison.foreground_dice
    worst = worst_group(comparison.groups)
    worst_text = ""
    if worst is not None:
        unmatched = "unmatched, " if side_of(worst) else ""
        worst_text = f"{name_in_text(worst)} ({unmatched}Dice {decimal(worst.dice, 2)})"
    counts = unmatched_in_words(comparison)
    facts = [f"worst region: {worst_text}"] if worst_text else []
    facts += [f"{counts} unmatched"] if counts else []
    return MethodPanel(
        shortened(method),
        f"regions-{number}",
        f"similarity-{number}",
        dice_name,
        dice,
        worst_text,
        (f"{dice_name} {decimal(dice)}", *facts, f"score {decimal(comparison.score)}"),
    )


def _verdict(panels: Sequence[MethodPanel]) -> str:
    """Return sentences about the methods with the highest and the lowest Dice."""
    ranked = sorted(
        (panel for panel in panels if not isnan(panel.dice)), key=lambda panel: -panel.dice
    )
    if not ranked:
        return ""
    texts = [
        f"“{panel.name}” ({decimal(panel.dice, 2)}, {overlap_in_words(panel.dice).lower()})"
        for panel in (ranked[0], ranked[-1])
    ]
    name = ranked[0].dice_name
    worst = f"; worst region: {ranked[-1].worst}" if ranked[-1].worst else ""
    if len(ranked) == 1:
        return f"{name.capitalize().replace('dice', 'Dice')} of {texts[0]}{worst}."
    return f"Highest {name}: {texts[0]}. Lowest: {texts[1]}{worst}."
