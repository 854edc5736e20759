"""The page of one comparison, as data: every text and number that the template shows."""

from dataclasses import dataclass
from math import isnan
from typing import Any

from probdice.numbers_shown import decimal, percent
from probdice.pictures.colours import Colours, colours_of
from probdice.pictures.layout import Layout, arrange, width_of
from probdice.report.facts import (
    Fact,
    measure_of,
    names_of,
    options_of,
    sides_of,
    size_of,
    volume,
)
from probdice.report.packing import pixels_of, shortened
from probdice.result import Comparison, Group, listed
from probdice.solution import SIDES

__all__ = ["Page", "page_of"]

DRAWN = 100  # groups in the drawing of the correspondence
LISTED = 2000  # groups in the table
LEGEND = 12  # groups up to which the images have a legend
LONGEST = 2000  # characters of a note
ROW = 38  # height of a region in the drawing
ABOVE = 34  # height of the heading over the columns


@dataclass(frozen=True)
class Figure:
    """A number of the headline, and a word of what it is."""

    name: str
    value: str
    about: str = ""


@dataclass(frozen=True)
class Scale:
    """The score and chance on a line from 0 to 100 per cent, and the same in words."""

    score: float
    chance: float
    about: str

    @property
    def start(self) -> float:
        """Where the bar between the two starts."""
        return min(self.score, self.chance)

    @property
    def length(self) -> float:
        """How long it is."""
        return abs(self.score - self.chance)


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
    about: str


@dataclass(frozen=True)
class Drawing:
    """The correspondence."""

    dots: tuple[Dot, ...]
    lines: tuple[Line, ...]
    height: int
    hidden: int
    merged: bool


@dataclass(frozen=True)
class Page:
    """Everything on the page of a comparison."""

    title: str
    subtitle: str
    figures: tuple[Figure, ...]
    scale: Scale | None
    sentence: str
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


def page_of(comparison: Comparison, title: str | None = None, notice: str = "") -> Page:
    """The page of a comparison, with images where it still has them; a notice leads its notes."""
    colours = colours_of(comparison)
    rows = tuple(
        _row(k, group, colours.groups[k]) for k, group in enumerate(comparison.groups[:LISTED])
    )
    viewer, axes = None, 0
    omissions: tuple[str, ...] = ("The comparison was read from JSON, so there are no images.",)
    if comparison._work is not None:
        pixels = pixels_of(comparison, colours)
        viewer, omissions = pixels.content, pixels.omissions
        axes = len(pixels.content["shape"])
    names = names_of(comparison)
    return Page(
        title=shortened(title, 200) if title else f"{names[0]} and {names[1]}",
        subtitle=_subtitle(comparison),
        figures=_figures(comparison),
        scale=_scale(comparison),
        sentence=_sentence(comparison),
        notes=tuple(
            shortened(note, LONGEST) for note in (*((notice,) if notice else ()), *comparison.notes)
        ),
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
    if comparison._work is not None and len(comparison._work[0].pair.reference.shape) > 1:
        text += f" of a {size_of(comparison._work[0].pair.reference)} image"
    return f"{text}, {measure_of(comparison)} similarity"


def _figures(comparison: Comparison) -> tuple[Figure, ...]:
    lowest = comparison.lowest
    pair = f"{listed(lowest.reference, 2)} ↔ {listed(lowest.prediction, 2)}"
    figures = [
        Figure("Score", decimal(comparison.score), "1 is equal"),
        Figure("Adjusted score", decimal(comparison.adjusted_score), "0 is chance"),
        Figure("Chance", decimal(comparison.chance), "if unrelated"),
        Figure("Lowest Dice", decimal(lowest.dice), shortened(pair, 60)),
    ]
    if comparison.merges:
        text = f"{len(comparison.merges)} {comparison.merges[0].side} "
        text += "region merged" if len(comparison.merges) == 1 else "regions merged"
        figures.insert(1, Figure("Before merging", decimal(comparison.matched_score), text))
    return tuple(figures)


def _scale(comparison: Comparison) -> Scale | None:
    if isnan(comparison.chance):
        return None
    score, chance = comparison.score, comparison.chance
    about = f"chance lies at {decimal(chance)} and the score at {decimal(score)}"
    return Scale(round(100 * score, 3), round(100 * chance, 3), f"On a line from 0 to 1, {about}")


def _sentence(comparison: Comparison) -> str:
    """What the score means, in one sentence."""
    score, chance, adjusted = comparison.score, comparison.chance, comparison.adjusted_score
    crisp = comparison._work is not None and all(
        comparison._work[0].pair.side(side).crisp for side in SIDES
    )
    share = crisp or comparison.similarity == "absolute"
    if crisp and not comparison.floor:
        what = f"{percent(score)} of the pixels carry corresponding labels"
    elif comparison.similarity == "absolute":
        what = f"On average the two agree on {percent(score)} of the probability at a pixel"
    else:
        what = (
            f"The mean similarity of the probabilities at a pixel is {decimal(score, 3)} "
            f"(1 is equal)"
        )
    if isnan(chance):
        return f"{what}."
    level = percent(chance) if share else decimal(chance, 3)
    if isnan(adjusted):
        return f"{what}, but unrelated segmentations would reach {level} too: it says nothing."
    if adjusted < 0:
        return f"{what}, less than the {level} that unrelated segmentations would reach."
    return (
        f"{what}; unrelated segmentations with regions of these sizes would reach {level}, so "
        f"{percent(adjusted, 0)} of the way from chance to identity is covered."
    )


def _row(number: int, group: Group, colour: str) -> Row:
    return Row(
        number,
        shortened(listed(group.reference), 300),
        shortened(listed(group.prediction), 300),
        colour,
        (
            ("Dice", group.dice, decimal(group.dice)),
            ("Jaccard", group.jaccard, decimal(group.jaccard)),
            ("Similarity", group.similarity, decimal(group.similarity)),
            ("Volume, reference", group.reference_volume, volume(group.reference_volume)),
            ("Volume, prediction", group.prediction_volume, volume(group.prediction_volume)),
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
            volume="" if isnan(node.volume) else f"{volume(node.volume)} px",
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
            width=round(width_of(link.weight), 2),
            merged=link.merged,
            about=f"{shortened(link.reference.label)} {'merged with' if link.merged else '↔'} "
            f"{shortened(link.prediction.label)}: weight {decimal(link.weight)}",
        )
        for link in layout.links
    )
    height = ABOVE + ROW * layout.rows
    return Drawing(dots, lines, height, layout.hidden, any(line.merged for line in lines))
