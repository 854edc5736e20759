"""The page of one comparison as data: all texts and numbers that the template shows."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

from probdice.errors import Option, Words, as_words, in_words
from probdice.method.matching import listed
from probdice.metrics.verdict import name_of, side_of, verdict_of, worst_first
from probdice.pictures.colours import Colours, colours_of
from probdice.pictures.layout import Layout, arrange, width_of
from probdice.report.boundary_section import BoundarySection, boundary_section
from probdice.report.encoding import encoded, shortened
from probdice.report.facts import (
    Fact,
    extent,
    options_of,
    sides_of,
    size_of,
    title_of,
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
    tiles_of,
)
from probdice.report.packing import pixels_of
from probdice.report.surface_pictures import SurfacePicture, pictures_on, vertex_space_of
from probdice.text.formatting import decimal

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison, Group
    from probdice.data.surface import Surface
    from probdice.files.background_images import BackgroundImage

__all__ = ["Page", "page_of"]

NO_SURFACE = (
    "The values belong to the vertices of a surface. To show them, pass the surface with ",
    Option("surface", "FILE", python="surface=…"),
    ".",
)

LISTED = 2000  # groups in the table
PLOTTED = 500  # groups in the plot of Dice
WARNED = 2  # notes on the first screen
MOST_JSON = 1_000_000  # largest result embedded in a page, in bytes before base64
PRINTED = 30  # most rows of the diagram that are printed
SHORT = 18  # most characters of a name in the diagram
ROW = 38  # height of a region in the diagram
ABOVE = 34  # height of the column headings


@dataclass(frozen=True)
class Row:
    """A row of the table of groups."""

    number: int
    name: str
    reference: str
    prediction: str
    colour: str
    faint: bool
    only: str  # the side of an unmatched region
    dice: float
    numbers: tuple[tuple[str, float, str], ...]  # name, value to sort by, text


@dataclass(frozen=True)
class Dot:
    """A region in the diagram."""

    side: str
    group: int
    name: str
    full: str  # if longer than the name
    volume: str
    colour: str
    y: float
    alone: bool


@dataclass(frozen=True)
class Line:
    """A line in the diagram between two regions, given by their positions in the list."""

    reference: int
    prediction: int
    dice: str
    width: float
    merged: bool
    apart: bool


@dataclass(frozen=True)
class Drawing:
    """The diagram of matched regions. Long diagrams are not printed."""

    dots: tuple[Dot, ...]
    lines: tuple[Line, ...]
    height: int
    merged: bool
    apart: int
    printed: bool

    @property
    def content(self) -> dict[str, Any]:
        """Return the diagram for the script that draws its visible part."""
        return {
            "height": self.height,
            "regions": [_compact(dot) for dot in self.dots],
            "lines": [_compact(line) for line in self.lines],
        }


def _compact(entry: Dot | Line) -> list[Any]:
    """Return the values of an entry, with 0 and 1 for booleans."""
    return [int(value) if isinstance(value, bool) else value for value in astuple(entry)]


@dataclass(frozen=True)
class Page:
    """The content of the page of a comparison."""

    title: str
    subtitle: str
    verdict: str
    tiles: tuple[Figure, ...]
    mean: float
    figures: tuple[Figure, ...]
    scale: Scale | None
    sentences: tuple[Sentence, ...]
    notes: tuple[Sentence, ...]
    rows: tuple[Row, ...]
    hidden_rows: int
    drawing: Drawing
    boundaries: BoundarySection | None
    options: tuple[Fact, ...]
    sides: tuple[Fact, ...]
    viewer: dict[str, Any] | None
    surfaces: tuple[SurfacePicture, ...]
    left_out: str
    omissions: tuple[str, ...]
    command: str
    result: str

    @property
    def warnings(self) -> tuple[Sentence, ...]:
        """The notes at the top of the page."""
        return self.notes[:WARNED]

    @property
    def other_notes(self) -> tuple[Sentence, ...]:
        """The notes below."""
        return self.notes[WARNED:]

    @property
    def plotted(self) -> tuple[Row, ...]:
        """The groups in the plot of Dice, without faint ones."""
        return tuple(row for row in self.rows[:PLOTTED] if not row.faint)

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
    layers: tuple[BackgroundImage, ...] = (),
    command: str = "",
    surfaces: tuple[Surface, ...] = (),
    every_surface: bool = True,
) -> Page:
    """Return the page of a comparison, with images if they are available.

    The notice comes before the notes. `command` is the command line that created the page. Values
    at vertices are shown on the `surfaces`; without surfaces, the page has only tables.
    `every_surface` determines whether each surface must belong to this comparison.
    """
    colours = colours_of(comparison)
    order = worst_first(comparison.groups)
    rows = tuple(
        _row(k, comparison.groups[k], colours.groups[k], comparison.pixel_volume)
        for k in order[:LISTED]
    )
    viewer, left_out = None, ""
    omissions: tuple[str, ...] = ("The images of this comparison are no longer available.",)
    pictures = pictures_on(comparison, colours, surfaces, every=every_surface)
    if vertex_space_of(comparison.images) is not None:
        omissions = () if pictures else (in_words(NO_SURFACE, as_words(words)),)
    elif comparison.images is not None:
        pixels = pixels_of(comparison, colours, layers)
        viewer, left_out, omissions = pixels.content, pixels.left_out, pixels.omissions
    tiles = tiles_of(comparison)  # before to_json(), which stores computed numbers
    result = encoded(comparison.to_json().encode(), level=6)
    return Page(
        title=shortened(title, 200) if title else title_of(comparison),
        subtitle=_subtitle(comparison),
        verdict=verdict_of(comparison),
        tiles=tiles,
        mean=_mean(comparison),
        figures=figures_of(comparison),
        scale=scale_of(comparison),
        sentences=sentences_of(comparison),
        notes=notes_of(comparison, notice, as_words(words)),
        rows=rows,
        hidden_rows=len(comparison.groups) - len(rows),
        drawing=_drawing(comparison, arrange(comparison), colours),
        boundaries=boundary_section(comparison, colours, viewer),
        options=options_of(comparison),
        sides=sides_of(comparison, tuple(one.name for one in layers)),
        viewer=viewer,
        surfaces=pictures,
        left_out=left_out,
        omissions=omissions,
        command=command,
        result=result if len(result) <= MOST_JSON * 4 / 3 else "",
    )


def _mean(comparison: Comparison) -> float:
    """Return the mean Dice shown in the plot."""
    background = comparison.background is not None
    return comparison.foreground_dice if background else comparison.mean_dice


def _subtitle(comparison: Comparison) -> str:
    """Return one line that describes the comparison."""
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
        name_of(group),
        shortened(listed(group.reference), 300),
        shortened(listed(group.prediction), 300),
        colour,
        group.faint,
        side_of(group) or "",
        group.dice,
        (
            ("Dice", group.dice, decimal(group.dice)),
            ("Jaccard", group.jaccard, decimal(group.jaccard)),
            *(
                (f"{side.capitalize()}, {unit}", size, extent(size, pixel_volume, unit=False))
                for side, size in (
                    ("reference", group.reference_volume),
                    ("prediction", group.prediction_volume),
                )
            ),
            ("Similarity", group.similarity, decimal(group.similarity)),
        ),
    )


def _drawing(comparison: Comparison, layout: Layout, colours: Colours) -> Drawing:
    shades = colours.by_label(comparison)
    linked = {id(node) for link in layout.links for node in (link.reference, link.prediction)}
    dots = tuple(
        Dot(
            side=node.side,
            group=node.group,
            name=shortened(node.label, SHORT),
            full=shortened(node.label, 200) if len(str(node.label)) > SHORT else "",
            volume=extent(node.volume, node.pixel_volume),
            colour=shades[node.side, node.label],
            y=ABOVE + ROW * (node.row + 0.5),
            alone=id(node) not in linked,
        )
        for node in layout.nodes
    )
    places = {id(node): k for k, node in enumerate(layout.nodes)}
    lines = tuple(
        Line(
            places[id(link.reference)],
            places[id(link.prediction)],
            decimal(link.dice),
            round(width_of(link.dice), 2),
            link.merged,
            link.apart,
        )
        for link in layout.links
    )
    height = ABOVE + ROW * layout.rows
    merged = any(line.merged for line in lines)
    return Drawing(dots, lines, height, merged, layout.apart, layout.rows <= PRINTED)
