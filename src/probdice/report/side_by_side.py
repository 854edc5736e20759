"""The page of one case with all methods: the same slices of the reference and every prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.method.region_labels import listed
from probdice.method.sides import Side
from probdice.pictures.colours import background_group, colours_of
from probdice.pictures.views import View, images_of, largest, look, worst_place
from probdice.report.encoding import shortened
from probdice.report.image_layers import background_images_of
from probdice.report.rendering import render, write_page
from probdice.report.slice_stacks import (
    SLICE_SCRIPTS,
    Stack,
    fraction_layer,
    image_layer,
    region_layer,
    stack_of,
)
from probdice.text.formatting import decimal

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison
    from probdice.method.region_labels import Label

__all__ = ["CaseSlices", "PageLink", "Panel", "write_side_by_side"]

MOST_LABELS = 2**21  # most pixels per layer of label maps
MOST_PROBABILITIES = 2**19  # most pixels per layer if a side has probabilities
UNMATCHED = "#4D4D4D"  # colour of unmatched prediction regions


@dataclass(frozen=True)
class PageLink:
    """A link to another page of the evaluation."""

    text: str
    address: str


@dataclass(frozen=True)
class Panel:
    """The layers of a prediction and of its similarity to the reference, and its measures."""

    name: str
    regions: str
    similarity: str
    facts: tuple[str, ...]


@dataclass
class CaseSlices:
    """Slices of one case, added method by method.

    The page opens at the slice where the first method differs most from the reference.
    """

    case: str
    image: str | None = None  # the file of the background image
    content: dict[str, Any] = field(default_factory=dict)
    left_out: str = ""
    panels: list[Panel] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)  # names of methods without images
    _stack: Stack | None = None
    _colours: dict[Label, str] = field(default_factory=dict)

    def add(self, method: str, comparison: Comparison) -> None:
        """Add the slices of a method. The comparison must have its images."""
        number = len(self.panels)
        crisp = comparison.overlap.crisp
        reference = images_of(comparison).reference
        stack = self._stack or stack_of(reference, MOST_LABELS if crisp else MOST_PROBABILITIES)
        view = look(comparison, stack.ranges)
        if self._stack is None:
            self._start(comparison, stack, view)
        colours = self._same_colours(comparison)
        layers = self.content["layers"]
        layers.setdefault("reference", _regions(stack, view, "reference", colours["reference"]))
        panel = Panel(
            shortened(method), f"regions-{number}", f"similarity-{number}", _facts(comparison)
        )
        layers[panel.regions] = _regions(stack, view, "prediction", colours["prediction"])
        f = np.where(view.inside, view.f, np.nan)
        layers[panel.similarity] = fraction_layer(stack, f, "similarity")
        self.panels.append(panel)

    def _start(self, comparison: Comparison, stack: Stack, view: View) -> None:
        """Set the slices and the background image."""
        self.content = stack.content(stack.slice_of(view.place(worst_place(view))))
        self.content |= {"layers": {}, "image": None}
        if self.image is not None:
            (image,) = background_images_of(images_of(comparison), comparison.options, self.image)
            self.content["image"] = image_layer(stack, image)
        self.left_out, self._stack = stack.left_out, stack

    def _same_colours(self, comparison: Comparison) -> dict[Side, list[str]]:
        """Return region colours for all methods. Matched regions have the colour of the reference.

        On a background image, the background has no colour.
        """
        own_colours = colours_of(comparison).by_label(comparison)
        for label in comparison.reference_labels:
            self._colours.setdefault(label, own_colours["reference", label])
        background = background_group(comparison.groups)
        sides: dict[Side, dict[Label, str]] = {"reference": {}, "prediction": {}}
        for number, group in enumerate(comparison.groups):
            is_hidden = number == background and self.content["image"] is not None
            for label in group.reference:
                sides["reference"][label] = "" if is_hidden else self._colours[label]
            colour = self._colours[group.reference[0]] if group.reference else UNMATCHED
            for label in group.prediction:
                sides["prediction"][label] = "" if is_hidden else colour
        return {
            side: [colours[label] for label in comparison.labels(side)]
            for side, colours in sides.items()
        }


def write_side_by_side(
    slices: CaseSlices, path: Path, links: Sequence[PageLink], pages: dict[str, str]
) -> None:
    """Write the page. The methods are in the order of the links.

    `pages` contains the addresses of the pages of individual methods by name.
    """
    order = {link.text: number for number, link in enumerate(links)}
    page = {
        "title": f"{shortened(slices.case, 200)}: all methods",
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
        scripts=SLICE_SCRIPTS if slices.panels else (),
    )
    write_page(path, text, alone=True)


def _regions(stack: Stack, view: View, side: Side, colours: list[str]) -> dict[str, Any]:
    """Return the most probable region of every pixel."""
    codes: NDArray[Any] = largest(view, side, 1)[0][0]
    return region_layer(stack, np.where(view.inside, codes, -1), colours)


def _facts(comparison: Comparison) -> tuple[str, ...]:
    """Return the mean and the lowest Dice, the number of unmatched regions, and the score."""
    lowest = comparison.lowest
    pair = shortened(f"{listed(lowest.reference, 2)} ↔ {listed(lowest.prediction, 2)}", 60)
    unmatched = [
        f"{len(labels)} {side} {'region' if len(labels) == 1 else 'regions'} unmatched"
        for side, labels in comparison.unmatched.items()
        if labels
    ]
    dice = f"mean Dice {decimal(comparison.mean_dice)}"
    if comparison.background is not None:
        dice = f"foreground Dice {decimal(comparison.foreground_dice)}"
    return (
        dice,
        f"lowest Dice {decimal(lowest.dice)} ({pair})",
        *unmatched,
        f"score {decimal(comparison.score)}",
    )
