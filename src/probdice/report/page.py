"""The page of one comparison as data: every text and number that the template shows."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any

from probdice.errors import Words, as_words
from probdice.method.matching import listed
from probdice.pictures.colours import Colours, colours_of
from probdice.pictures.layout import Layout, Link, arrange, width_of
from probdice.report.encoding import encoded, shortened
from probdice.report.facts import (
    Fact,
    extent,
    names_of,
    options_of,
    sides_of,
    size_of,
    volume,
)
from probdice.report.headline import (
    Figure,
    Scale,
    Sentence,
    figures_of,
    notes_of,
    scale_of,
    sentences_of,
)
from probdice.report.packing import pixels_of
from probdice.text.formatting import decimal

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison, Group
    from probdice.files.background_images import Underlay

__all__ = ["Page", "page_of"]


DRAWN = 100  # groups in the diagram of matched regions
LISTED = 2000  # groups in the table
LEGEND = 12  # most groups for which the images have a legend
MOST_JSON = 1_000_000  # largest result embedded in a page, in bytes before base64
PRINTED = 30  # most rows of the diagram that are printed
ROW = 38  # height of a region in the diagram
ABOVE = 34  # height of the column headings


@dataclass(frozen=True)
class Row:
    """A row of the table of groups."""

    number: int
    reference: str
    prediction: str
    colour: str
    faint: bool
    numbers: tuple[tuple[str, float, str], ...]  # name, value to sort by, text


@dataclass(frozen=True)
class Dot:
    """A region in the diagram."""

    side: str
    group: int
    name: str
    full: str
    volume: str
    colour: str
    y: float
    alone: bool


@dataclass(frozen=True)
class Line:
    """A line in the diagram."""

    group: int
    start: float
    end: float
    width: float
    merged: bool
    apart: bool
    about: str


@dataclass(frozen=True)
class Drawing:
    """The diagram of matched regions. Long diagrams are not printed."""

    dots: tuple[Dot, ...]
    lines: tuple[Line, ...]
    height: int
    hidden: int
    merged: bool
    apart: int
    printed: bool


@dataclass(frozen=True)
class Page:
    """Everything on the page of a comparison."""

    title: str
    subtitle: str
    figures: tuple[Figure, ...]
    scale: Scale | None
    sentences: tuple[Sentence, ...]
    notes: tuple[Sentence, ...]
    rows: tuple[Row, ...]
    hidden_rows: int
    legend: tuple[Row, ...]
    drawing: Drawing
    options: tuple[Fact, ...]
    sides: tuple[Fact, ...]
    viewer: dict[str, Any] | None
    left_out: str
    omissions: tuple[str, ...]
    command: str
    result: str

    @property
    def axes(self) -> int:
        """The number of axes of the images; 0 without images."""
        return len(self.viewer["shape"]) if self.viewer else 0

    @property
    def crisp(self) -> bool:
        """Whether both sides are label maps."""
        return bool(self.viewer and self.viewer["crisp"])

    @property
    def panels(self) -> tuple[tuple[str, str], ...]:
        """The panels of the viewer: key and name."""
        panels = (("reference", "Reference"), ("prediction", "Prediction"), ("f", "Similarity"))
        if self.viewer and self.viewer["images"]:
            return (("contours", "Contours"), *panels)
        return panels


def page_of(
    comparison: Comparison,
    title: str | None = None,
    notice: str = "",
    words: Words = "python",
    layers: tuple[Underlay, ...] = (),
    command: str = "",
) -> Page:
    """The page of a comparison, with images if the comparison still has them.

    The notice comes before the notes. `command` is the command line that made the page.
    """
    colours = colours_of(comparison)
    # Worst first; among equal values, larger groups first. Faint groups and unknown Dice come last.
    order = sorted(
        range(len(comparison.groups)),
        key=lambda k: _badness(comparison.groups[k]),
    )
    rows = tuple(
        _row(k, comparison.groups[k], colours.groups[k], comparison.pixel_volume)
        for k in order[:LISTED]
    )
    viewer, left_out = None, ""
    omissions: tuple[str, ...] = ("The images of this comparison are no longer available.",)
    if comparison.images is not None:
        pixels = pixels_of(comparison, colours, layers)
        viewer, left_out, omissions = pixels.content, pixels.left_out, pixels.omissions
    names = names_of(comparison)
    figures = figures_of(comparison)  # before to_json(), which stores computed numbers
    result = encoded(comparison.to_json().encode(), level=6)
    return Page(
        title=shortened(title, 200) if title else f"{names[0]} and {names[1]}",
        subtitle=_subtitle(comparison),
        figures=figures,
        scale=scale_of(comparison),
        sentences=sentences_of(comparison),
        notes=notes_of(comparison, notice, as_words(words)),
        rows=rows,
        hidden_rows=len(comparison.groups) - len(rows),
        legend=_legend(rows) if len(comparison.groups) <= LEGEND else (),
        drawing=_drawing(comparison, arrange(comparison, DRAWN), colours),
        options=options_of(comparison),
        sides=sides_of(comparison, tuple(one.name for one in layers)),
        viewer=viewer,
        left_out=left_out,
        omissions=omissions,
        command=command,
        result=result if len(result) <= MOST_JSON * 4 / 3 else "",
    )


def _badness(group: Group) -> tuple[bool, bool, float, float]:
    """The sort key of groups: Dice, worst first."""
    dice = group.dice
    return group.faint, isnan(dice), 0.0 if isnan(dice) else dice, -group.reference_volume


def _legend(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """The groups in the order of the comparison."""
    return tuple(sorted(rows, key=lambda row: row.number))


def _subtitle(comparison: Comparison) -> str:
    """One line that describes the comparison."""
    counts = comparison.counted("reference"), comparison.counted("prediction")
    text = f"{counts[0]} reference and {counts[1]} prediction "
    text += "region, " if counts == (1, 1) else "regions, "
    text += "1 pixel" if comparison.pixels == 1 else f"{volume(comparison.pixels)} pixels"
    if comparison.images is not None and len(comparison.images.reference.shape) > 1:
        text += f" of a {size_of(comparison.images.reference)} image"
    return f"{text}, {comparison.similarity} similarity"


def _row(number: int, group: Group, colour: str, pixel_volume: float | None) -> Row:
    unit = "px" if pixel_volume is None else "mL"
    return Row(
        number,
        shortened(listed(group.reference), 300),
        shortened(listed(group.prediction), 300),
        colour,
        group.faint,
        (
            ("Dice", group.dice, decimal(group.dice)),
            ("Jaccard", group.jaccard, decimal(group.jaccard)),
            ("Similarity", group.similarity, decimal(group.similarity)),
            *(
                (f"{side.capitalize()}, {unit}", size, extent(size, pixel_volume, unit=False))
                for side, size in (
                    ("reference", group.reference_volume),
                    ("prediction", group.prediction_volume),
                )
            ),
        ),
    )


def _drawing(comparison: Comparison, layout: Layout, colours: Colours) -> Drawing:
    shades = colours.by_label(comparison)
    linked = {id(node) for link in layout.links for node in (link.reference, link.prediction)}
    dots = tuple(
        Dot(
            side=node.side,
            group=node.group,
            name=shortened(node.label, 18),
            full=shortened(node.label, 200),
            volume=extent(node.volume, node.pixel_volume),
            colour=shades[node.side, node.label],
            y=ABOVE + ROW * (node.row + 0.5),
            alone=id(node) not in linked,
        )
        for node in layout.nodes
    )
    lines = tuple(
        Line(
            group=link.group,
            start=ABOVE + ROW * (link.reference.row + 0.5),
            end=ABOVE + ROW * (link.prediction.row + 0.5),
            width=round(width_of(link.dice), 2),
            merged=link.merged,
            apart=link.apart,
            about=_about(link),
        )
        for link in layout.links
    )
    height = ABOVE + ROW * layout.rows
    merged = any(line.merged for line in lines)
    return Drawing(dots, lines, height, layout.hidden, merged, layout.apart, layout.rows <= PRINTED)


def _about(link: Link) -> str:
    """The tooltip of a line."""
    between = "merged with" if link.merged else "↔"
    text = f"{shortened(link.reference.label)} {between} {shortened(link.prediction.label)}: "
    text += f"Dice of the group {decimal(link.dice)}"
    return f"{text}; no pixel in common" if link.apart else text
