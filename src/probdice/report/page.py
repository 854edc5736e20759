"""The data of the page of one comparison: all texts and numbers that the template shows."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

from probdice.errors import Option, Words, as_words, in_words
from probdice.method.region_labels import listed
from probdice.method.sides import SIDES, Side
from probdice.metrics.verdict import (
    name_in_text,
    name_of,
    side_of,
    verdict_of,
    words_of,
    worst_first,
)
from probdice.pictures.colours import Colours, colours_of
from probdice.pictures.layout import Layout, arrange, width_of
from probdice.report.boundary_section import BoundarySection, boundary_section
from probdice.report.encoding import encoded, shortened
from probdice.report.facts import (
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
from probdice.report.option_facts import Fact
from probdice.report.packing import pixels_of
from probdice.report.surface_pictures import SurfacePicture, pictures_on, vertex_space_of
from probdice.text.formatting import decimal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from probdice.comparison.result import Comparison, Group
    from probdice.data.pixel_words import PixelWords
    from probdice.data.surface import Surface
    from probdice.files.background_images import BackgroundImage

__all__ = ["Page", "page_of"]

NO_SURFACE = (
    "The values belong to the vertices of a surface. To show them, pass the surface with ",
    Option("surface", "FILE", python="surface=…"),
    ".",
)

MAX_TABLE_ROWS = 2000  # groups
# Largest number of matched groups, and of unmatched ones per side, in the plot.
MAX_PLOTTED_ROWS = 500
# A side with more unmatched regions shows only the first; a list contains the others.
MAX_SEPARATE_UNMATCHED = 3
TOP_NOTES = 2  # largest number of notes at the top of the page
MAX_JSON_BYTES = 1_000_000  # largest compressed result in a page, in bytes before base64
MAX_PRINTED_ROWS = 30  # diagrams with more rows are not printed
MAX_DIAGRAM_NAME_LENGTH = 18  # characters
ROW_HEIGHT = 38  # of a region in the diagram
HEADING_HEIGHT = 34  # of the column headings in the diagram


@dataclass(frozen=True)
class GroupRow:
    """A row in the table of groups."""

    number: int
    name: str
    title: str  # the name of the group with the sides of its regions
    reference: str
    prediction: str
    colour: str
    faint: bool
    only: str  # the side of an unmatched region
    dice: float
    numbers: tuple[tuple[str, float, str], ...]  # name, value to sort by, text
    similarity: str


@dataclass(frozen=True)
class UnmatchedRows:
    """The unmatched regions of one side in the plot.

    The regions in `first` are always visible. Those in `others` are in a list that readers can
    open.
    """

    side: Side
    first: tuple[GroupRow, ...]
    others: tuple[GroupRow, ...]
    count: int  # number of regions that are not in `first`, including those that are not listed


@dataclass(frozen=True)
class GroupDot:
    """A region in the diagram."""

    side: str
    group: int
    name: str
    full: str  # the full name, if `name` is shortened
    volume: str
    colour: str
    y: float
    alone: bool


@dataclass(frozen=True)
class Line:
    """A line between two regions in the diagram, given by their positions in the lists."""

    reference: int
    prediction: int
    dice: str
    width: float
    merged: bool
    apart: bool


@dataclass(frozen=True)
class Drawing:
    """The diagram of matched regions. Long diagrams are not printed."""

    dots: tuple[GroupDot, ...]
    lines: tuple[Line, ...]
    height: int
    merged: bool
    apart: int
    printed: bool
    units: tuple[str, str]  # the unit of volumes, in the singular and in the plural
    pixel: str  # the word for a pixel

    @property
    def content(self) -> dict[str, Any]:
        """Return the diagram for the script that draws its visible part."""
        return {
            "height": self.height,
            "units": self.units,
            "pixel": self.pixel,
            "regions": [_compact(dot) for dot in self.dots],
            "lines": [_compact(line) for line in self.lines],
        }


def _compact(entry: GroupDot | Line) -> list[Any]:
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
    words: PixelWords
    rows: tuple[GroupRow, ...]
    groups: int  # number of groups, including groups that are not listed
    unmatched: tuple[UnmatchedRows, ...]
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
        return self.notes[:TOP_NOTES]

    @property
    def other_notes(self) -> tuple[Sentence, ...]:
        """The notes further down the page."""
        return self.notes[TOP_NOTES:]

    @property
    def matched(self) -> tuple[GroupRow, ...]:
        """The matched groups in the plot of Dice, without faint groups."""
        return tuple(row for row in self.rows if not row.only and not row.faint)[:MAX_PLOTTED_ROWS]

    @property
    def plotted(self) -> int:
        """The number of groups in the plot of Dice."""
        unmatched = sum(len(side.first) + len(side.others) for side in self.unmatched)
        return unmatched + len(self.matched)

    @property
    def names_differ(self) -> bool:
        """Whether the plot has pairs of regions with different names."""
        return any(row.reference != row.prediction for row in self.matched)

    @property
    def axes(self) -> int:
        """The number of axes of the displayed images; 0 if the page has no viewer."""
        return len(self.viewer["shape"]) if self.viewer else 0

    @property
    def crisp(self) -> bool:
        """Whether both sides are label maps; False if the page has no viewer."""
        return bool(self.viewer and self.viewer["crisp"])

    @property
    def panels(self) -> tuple[tuple[str, str], ...]:
        """The keys and names of the panels of the viewer."""
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

    The notice is shown before the notes. `command` is the command line that created the page.
    Values at vertices are shown on the `surfaces`. Without surfaces, a page of values at vertices
    has no images. `every_surface` determines whether each surface must belong to this comparison.
    """
    colours = colours_of(comparison)
    words_for_pixels = words_of(comparison)
    rows = tuple(
        _row(k, comparison.groups[k], colours.groups[k], comparison, words_for_pixels)
        for k in _groups_to_list(comparison.groups)
    )
    viewer, left_out = None, ""
    omissions: tuple[str, ...] = ("The images of this comparison are not available.",)
    pictures = pictures_on(comparison, colours, surfaces, every=every_surface)
    if vertex_space_of(comparison.images) is not None:
        omissions = () if pictures else (in_words(NO_SURFACE, as_words(words)),)
    elif comparison.images is not None:
        pixels = pixels_of(comparison, colours, layers)
        viewer, left_out, omissions = pixels.content, pixels.left_out, pixels.omissions
    tiles = tiles_of(comparison)  # before to_json(), which omits numbers that are not computed
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
        words=words_for_pixels,
        rows=rows,
        groups=len(comparison.groups),
        unmatched=_unmatched(comparison, rows),
        drawing=_drawing(comparison, arrange(comparison), colours, words_for_pixels),
        boundaries=boundary_section(comparison, colours, viewer),
        options=options_of(comparison),
        sides=sides_of(comparison, tuple(layer.name for layer in layers)),
        viewer=viewer,
        surfaces=pictures,
        left_out=left_out,
        omissions=omissions,
        command=command,
        result=result if len(result) <= MAX_JSON_BYTES * 4 / 3 else "",
    )


def _mean(comparison: Comparison) -> float:
    """Return the mean Dice shown in the plot."""
    background = comparison.background is not None
    return comparison.foreground_dice if background else comparison.mean_dice


def _subtitle(comparison: Comparison) -> str:
    """Return one line that describes the comparison."""
    counts = comparison.region_count("reference"), comparison.region_count("prediction")
    text = f"{counts[0]} reference and {counts[1]} prediction "
    text += "region, " if counts == (1, 1) else "regions, "
    text += f"{volume(comparison.pixels)} {words_of(comparison).of(comparison.pixels)}"
    if comparison.images is not None and len(comparison.images.reference.shape) > 1:
        text += f" of a {size_of(comparison.images.reference)} image"
    return f"{text}, {comparison.similarity} similarity"


def _groups_to_list(groups: Sequence[Group]) -> list[int]:
    """Return the indices of the groups to list: the worst unmatched and the worst matched groups.

    Matched groups fill at least half of the list if there are enough matched groups.
    """
    order = worst_first(groups)
    unmatched = [k for k in order if side_of(groups[k])]
    matched = [k for k in order if not side_of(groups[k])]
    indices = set(unmatched[: MAX_TABLE_ROWS - min(len(matched), MAX_TABLE_ROWS // 2)])
    indices |= set(matched[: MAX_TABLE_ROWS - len(indices)])
    return [k for k in order if k in indices]


def _unmatched(comparison: Comparison, rows: tuple[GroupRow, ...]) -> tuple[UnmatchedRows, ...]:
    """Return unmatched regions to plot by side, beginning with the side of the worst region."""
    unmatched = [row for row in rows if row.only and not row.faint]
    result = []
    for side in sorted(SIDES, key=lambda side: bool(unmatched) and unmatched[0].only != side):
        side_rows = tuple(row for row in unmatched if row.only == side)
        count = len(comparison.unmatched[side])
        if side_rows:
            first = count if count <= MAX_SEPARATE_UNMATCHED else 1
            result.append(
                UnmatchedRows(
                    side, side_rows[:first], side_rows[first:MAX_PLOTTED_ROWS], count - first
                )
            )
    return tuple(result)


def _row(
    number: int, group: Group, colour: str, comparison: Comparison, words: PixelWords
) -> GroupRow:
    pixel_volume = comparison.pixel_volume
    unit = words.many if pixel_volume is None else "mL"
    return GroupRow(
        number,
        name_of(group),
        name_in_text(group),
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
                (f"{side.capitalize()}, {unit}", size, extent(size, pixel_volume))
                for side, size in (
                    ("reference", group.reference_volume),
                    ("prediction", group.prediction_volume),
                )
            ),
        ),
        decimal(group.similarity),
    )


def _drawing(
    comparison: Comparison, layout: Layout, colours: Colours, words: PixelWords
) -> Drawing:
    shades = colours.by_label(comparison)
    linked_nodes = {id(node) for link in layout.links for node in (link.reference, link.prediction)}
    dots = tuple(
        GroupDot(
            side=node.side,
            group=node.group,
            name=shortened(node.label, MAX_DIAGRAM_NAME_LENGTH),
            full=shortened(node.label, 200)
            if len(str(node.label)) > MAX_DIAGRAM_NAME_LENGTH
            else "",
            volume=extent(node.volume, node.pixel_volume),
            colour=shades[node.side, node.label],
            y=HEADING_HEIGHT + ROW_HEIGHT * (node.row + 0.5),
            alone=id(node) not in linked_nodes,
        )
        for node in layout.nodes
    )
    node_indices = {id(node): k for k, node in enumerate(layout.nodes)}
    lines = tuple(
        Line(
            node_indices[id(link.reference)],
            node_indices[id(link.prediction)],
            decimal(link.dice),
            round(width_of(link.dice), 2),
            link.merged,
            link.apart,
        )
        for link in layout.links
    )
    height = HEADING_HEIGHT + ROW_HEIGHT * layout.rows
    merged = any(line.merged for line in lines)
    printed = layout.rows <= MAX_PRINTED_ROWS
    units = words if comparison.pixel_volume is None else ("mL", "mL")
    return Drawing(dots, lines, height, merged, layout.apart, printed, units, words.one)
