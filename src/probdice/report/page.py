"""The page of one comparison, as data: every text and number that the template shows."""

from dataclasses import dataclass
from typing import Any

from probdice.comparison import Comparison, Group
from probdice.errors import Words, as_words, in_words
from probdice.formatting import decimal
from probdice.matching import listed
from probdice.pictures.colours import Colours, colours_of
from probdice.pictures.layout import Layout, Link, arrange, width_of
from probdice.report.facts import (
    Fact,
    names_of,
    options_of,
    sides_of,
    size_of,
    volume,
)
from probdice.report.headline import Figure, Scale, figures_of, scale_of, sentences_of
from probdice.report.packing import pixels_of, shortened

__all__ = ["Page", "page_of"]


DRAWN = 100  # groups in the drawing of the correspondence
LISTED = 2000  # groups in the table
LEGEND = 12  # groups up to which the images have a legend
LONGEST = 2000  # characters of a note
ROW = 38  # height of a region in the drawing
ABOVE = 34  # height of the heading over the columns


@dataclass(frozen=True)
class Row:
    """A group in the table."""

    number: int
    reference: str
    prediction: str
    colour: str
    numbers: tuple[tuple[str, float, str], ...]  # name, value to sort by, text


@dataclass(frozen=True)
class Dot:
    """A region in the drawing."""

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
    """A line in the drawing."""

    group: int
    start: float
    end: float
    width: float
    merged: bool
    apart: bool
    about: str


@dataclass(frozen=True)
class Drawing:
    """The correspondence."""

    dots: tuple[Dot, ...]
    lines: tuple[Line, ...]
    height: int
    hidden: int
    merged: bool
    apart: int


@dataclass(frozen=True)
class Page:
    """Everything on the page of a comparison."""

    title: str
    subtitle: str
    figures: tuple[Figure, ...]
    scale: Scale | None
    sentences: tuple[str, ...]
    notes: tuple[str, ...]
    rows: tuple[Row, ...]
    hidden_rows: int
    legend: tuple[Row, ...]
    drawing: Drawing
    options: tuple[Fact, ...]
    sides: tuple[Fact, ...]
    viewer: dict[str, Any] | None
    omissions: tuple[str, ...]
    axes: int


def page_of(
    comparison: Comparison,
    title: str | None = None,
    notice: str = "",
    words: Words = "python",
) -> Page:
    """The page of a comparison, with images where it still has them; a notice leads its notes."""
    notes = [in_words(note.message, as_words(words)) for note in comparison.notes]
    colours = colours_of(comparison)
    rows = tuple(
        _row(k, group, colours.groups[k], comparison.pixel_volume)
        for k, group in enumerate(comparison.groups[:LISTED])
    )
    viewer, axes = None, 0
    omissions: tuple[str, ...] = ("This comparison does not have its images any more.",)
    if comparison.images is not None:
        pixels = pixels_of(comparison, colours)
        viewer, omissions = pixels.content, pixels.omissions
        axes = len(pixels.content["shape"])
    names = names_of(comparison)
    return Page(
        title=shortened(title, 200) if title else f"{names[0]} and {names[1]}",
        subtitle=_subtitle(comparison),
        figures=figures_of(comparison),
        scale=scale_of(comparison),
        sentences=sentences_of(comparison),
        notes=tuple(shortened(text, LONGEST) for text in (notice, *notes) if text),
        rows=rows,
        hidden_rows=len(comparison.groups) - len(rows),
        legend=rows if len(comparison.groups) <= LEGEND else (),
        drawing=_drawing(comparison, arrange(comparison, DRAWN), colours),
        options=options_of(comparison),
        sides=sides_of(comparison),
        viewer=viewer,
        omissions=omissions,
        axes=axes,
    )


def _subtitle(comparison: Comparison) -> str:
    """What was compared, in a line."""
    counts = len(comparison.reference_labels), len(comparison.prediction_labels)
    text = f"{counts[0]} reference and {counts[1]} prediction "
    text += "region, " if counts == (1, 1) else "regions, "
    text += "1 pixel" if comparison.pixels == 1 else f"{volume(comparison.pixels)} pixels"
    if comparison.images is not None and len(comparison.images.reference.shape) > 1:
        text += f" of a {size_of(comparison.images.reference)} image"
    return f"{text}, {comparison.similarity} similarity"


def _row(number: int, group: Group, colour: str, pixel_volume: float | None) -> Row:
    sizes = {
        "reference": volume(group.reference_volume, pixel_volume),
        "prediction": volume(group.prediction_volume, pixel_volume),
    }
    return Row(
        number,
        shortened(listed(group.reference), 300),
        shortened(listed(group.prediction), 300),
        colour,
        (
            ("Dice", group.dice, decimal(group.dice)),
            ("Jaccard", group.jaccard, decimal(group.jaccard)),
            ("Similarity", group.similarity, decimal(group.similarity)),
            ("Volume, reference", group.reference_volume, sizes["reference"]),
            ("Volume, prediction", group.prediction_volume, sizes["prediction"]),
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
            volume=volume(node.volume, node.pixel_volume, unit=" px"),
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
    return Drawing(dots, lines, height, layout.hidden, merged, layout.apart)


def _about(link: Link) -> str:
    """A line in words."""
    between = "merged with" if link.merged else "↔"
    text = f"{shortened(link.reference.label)} {between} {shortened(link.prediction.label)}: "
    text += f"Dice of the group {decimal(link.dice)}"
    return f"{text}; they share no pixel" if link.apart else text
