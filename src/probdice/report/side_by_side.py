"""All methods of one case on one page: the same slice of the reference and of every prediction."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.method.matching import listed
from probdice.pictures.colours import Colours, colours_of
from probdice.pictures.label_images import blended
from probdice.pictures.planes import Plane, finest, planes_of
from probdice.pictures.views import View, every_nth, images_of, look, plane_through, worst_place
from probdice.report.encoding import shortened
from probdice.report.rendering import render, write_page
from probdice.text.formatting import decimal

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison
    from probdice.method.region_labels import Label

__all__ = ["CaseSlices", "PageLink", "Panel", "write_side_by_side"]

WIDEST = 480  # longer side of an image in pixels
MOST = 2**18  # most pixels read per slice
SEARCHED = 2**21  # most pixels searched for the largest difference
UNMATCHED = "#4D4D4D"  # colour of unmatched prediction regions
OUTSIDE = 0.94  # grey level of pixels that are not compared


@dataclass(frozen=True)
class PageLink:
    """A link to another page of the evaluation."""

    text: str
    address: str


@dataclass(frozen=True)
class Panel:
    """Images of a prediction and of its differences from the reference, with its numbers."""

    name: str
    picture: str
    difference: str
    facts: tuple[str, ...]


@dataclass
class CaseSlices:
    """Slices of one case, added method by method. The first method determines the slice."""

    case: str
    where: str = ""
    size: tuple[int, int] = (0, 0)
    reference: str = ""
    panels: list[Panel] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)  # methods without images
    _cut: tuple[Plane, tuple[int, ...]] | None = None
    _colours: dict[Label, str] = field(default_factory=dict)

    def add(self, method: str, comparison: Comparison) -> None:
        """Add the slice of a method. The comparison must have its images."""
        segmentation = images_of(comparison).reference
        shape = segmentation.shape
        if self._cut is None:
            view = look(comparison, every_nth(shape, SEARCHED))
            place = view.place(worst_place(view))
            planes = planes_of(len(shape), segmentation.geometry)
            self._cut = finest(planes, shape, segmentation.geometry), place
            self.where = _where(*self._cut)
        plane, place = self._cut
        colours = self._same_colours(comparison)
        view = look(comparison, every_nth(shape, MOST, _box(plane, place, shape)))
        if not self.reference:
            picture = _drawn(blended(view, "reference", colours), view, plane)
            self.size = picture.shape[1], picture.shape[0]
            self.reference = _address(picture)
        f = np.where(view.inside, view.f, np.nan)[..., None].repeat(4, axis=-1)
        f[..., 3] = view.inside
        self.panels.append(
            Panel(
                shortened(method),
                _address(_drawn(blended(view, "prediction", colours), view, plane)),
                _address(_drawn(np.nan_to_num(f), view, plane)),
                _facts(comparison),
            )
        )

    def _same_colours(self, comparison: Comparison) -> Colours:
        """Colours that are equal for all methods; matched regions have the reference colour."""
        own = colours_of(comparison)
        own_colours = own.by_label(comparison)
        for label in comparison.reference_labels:
            self._colours.setdefault(label, own_colours["reference", label])
        prediction_colours: dict[Label, str] = {}
        for group in comparison.groups:
            colour = self._colours[group.reference[0]] if group.reference else UNMATCHED
            prediction_colours |= dict.fromkeys(group.prediction, colour)
        return Colours(
            own.groups,
            {
                "reference": tuple(self._colours[label] for label in comparison.reference_labels),
                "prediction": tuple(
                    prediction_colours[label] for label in comparison.prediction_labels
                ),
            },
        )


def write_side_by_side(
    slices: CaseSlices, path: Path, links: Sequence[PageLink], pages: dict[str, str]
) -> None:
    """Write the page; `pages` holds the addresses of the pages of single methods by name."""
    page = {
        "title": f"{shortened(slices.case, 200)}: all methods",
        "where": slices.where,
        "reference": slices.reference,
        "width": slices.size[0],
        "height": slices.size[1],
        "panels": slices.panels,
        "absent": [shortened(method) for method in slices.absent],
        "pages": pages,
    }
    text = render("side_by_side.html", {"page": page, "links": links}, style="assets/page.css")
    write_page(path, text, alone=True)


def _facts(comparison: Comparison) -> tuple[str, ...]:
    """Mean and lowest Dice, unmatched regions, and the score."""
    lowest = comparison.lowest
    pair = shortened(f"{listed(lowest.reference, 2)} ↔ {listed(lowest.prediction, 2)}", 60)
    unmatched = [
        f"{len(labels)} {side} {'region' if len(labels) == 1 else 'regions'} unmatched"
        for side, labels in comparison.unmatched.items()
        if labels
    ]
    return (
        f"mean Dice {decimal(comparison.mean_dice)}",
        f"lowest Dice {decimal(lowest.dice)} ({pair})",
        *unmatched,
        f"score {decimal(comparison.score)}",
    )


def _where(plane: Plane, place: tuple[int, ...]) -> str:
    across = plane.across(len(place))
    if not across:
        return ""
    return f"{plane.name} slice {', '.join(str(place[axis]) for axis in across)}"


def _box(plane: Plane, place: tuple[int, ...], shape: tuple[int, ...]) -> tuple[range, ...]:
    return plane_through(place, shape, plane.rows, plane.columns)


def _drawn(image: NDArray[Any], view: View, plane: Plane) -> NDArray[np.uint8]:
    """A slice as displayed: rotated, grey where not compared, with square pixels."""
    drawn = plane.drawn(image, len(view.ranges))
    opacity = drawn[..., 3:]
    rgb = np.round(255 * (drawn[..., :3] * opacity + OUTSIDE * (1 - opacity))).astype(np.uint8)
    steps = [view.ranges[axis].step if axis >= 0 else 1 for axis in (plane.rows, plane.columns)]
    height = rgb.shape[0] * plane.aspect * steps[0] / steps[1]
    if plane.rows < 0:
        height = 0.15 * rgb.shape[1]  # a single row, high enough to be visible
    scale = WIDEST / max(height, rgb.shape[1])
    rows = _indices(rgb.shape[0], max(round(height * scale), 1))
    columns = _indices(rgb.shape[1], max(round(rgb.shape[1] * scale), 1))
    picture: NDArray[np.uint8] = rgb[rows[:, None], columns[None]]
    return picture


def _indices(count: int, length: int) -> NDArray[np.int64]:
    """Nearest-neighbour indices that resize `count` pixels to `length`."""
    return np.minimum((np.arange(length) + 0.5) * count / length, count - 1).astype(np.int64)


def _address(rgb: NDArray[np.uint8]) -> str:
    """An image as a data URI."""
    from PIL import Image

    buffer = BytesIO()
    Image.fromarray(rgb).save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
