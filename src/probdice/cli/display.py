"""A comparison on the terminal."""

import sys
from collections.abc import Callable, Sequence
from math import isnan
from typing import TYPE_CHECKING, TypeVar

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from probdice.cli.streams import print_text, printing
from probdice.comparison import Comparison
from probdice.errors import in_command
from probdice.formatting import decimal, millilitres
from probdice.matching import listed
from probdice.scoring import NeedsImages
from probdice.sides import SIDES, other

if TYPE_CHECKING:
    from probdice.detection import Detection
    from probdice.indices import Indices
    from probdice.segmentation import Label

__all__ = ["note_line", "plain_table", "show", "show_comparison"]

T = TypeVar("T")

MOST = 60  # rows of a table on the terminal
WIDE = 160  # columns where the output is no terminal


def show_comparison(
    result: Comparison,
    title: str,
    written: Sequence[str] = (),
    *,
    indices: "Indices | None" = None,
    detection: "Detection | None" = None,
) -> None:
    """Scores, groups, other numbers, notes and the files that were written."""
    parts: list[RenderableType] = [Text(title, style="bold"), _asked(result), "", _headline(result)]
    parts += [_groups(result)]
    if len(result.groups) > MOST:
        parts.append(f"… and {len(result.groups) - MOST} more groups; --json holds all of them")
    notes = list(result.notes)
    if indices is not None:
        parts += [_indices(indices), ""]
        notes += indices.notes
    if detection is not None:
        parts += [Text(repr(detection)), ""]
    for side, labels in result.empty.items():
        if labels:
            regions = "region is" if len(labels) == 1 else "regions are"
            parts.append(
                note_line(
                    f"{len(labels)} {side} {regions} empty and took no part ({listed(labels)})"
                )
            )
    parts += [note_line(in_command(note.message)) for note in notes]
    parts += [f"wrote {line}" for line in written]
    show(*parts)


def show(*parts: RenderableType) -> None:
    """Print to standard output."""
    console = Console(highlight=False, markup=False, soft_wrap=True)
    if not sys.stdout.isatty():
        console = Console(highlight=False, markup=False, soft_wrap=True, width=WIDE)
    with printing(), console.capture() as captured:  # Rich writes an empty text even so
        for part in parts:
            console.print(part)
    print_text("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def plain_table(*columns: str) -> Table:
    """An empty table of our kind; a column whose name starts with ">" is aligned to the right."""
    table = Table(box=box.SIMPLE, pad_edge=False)
    for column in columns:
        right = column.startswith(">")
        table.add_column(column.lstrip(">"), justify="right" if right else "left", overflow="fold")
    return table


def _asked(result: Comparison) -> str:
    counts = [len(result.labels(side)) for side in SIDES]
    regions = f"{counts[0]} reference and {counts[1]} prediction regions"
    return ", ".join([*result.options.in_words(), f"{regions} over {result.pixels:,} pixels"])


def _headline(result: Comparison) -> Table:
    """What a comparison comes to, as far as it is known without the images."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_column()
    score = decimal(_known(lambda: result.score))
    table.add_row(Text("score", style="bold"), Text(score, style="bold"), "")
    if result.merges:
        counts = [(side, sum(merge.side == side for merge in result.merges)) for side in SIDES]
        regions = " and ".join(_count(count, side) for side, count in counts if count)
        were = "was" if len(result.merges) == 1 else "were"
        matched = decimal(_known(lambda: result.matched_score))
        table.add_row("matched score", matched, f"before {regions} {were} merged")
    chance = _known(lambda: result.chance)
    if chance is not None:
        level = decimal(chance)
        if result.chance_error:
            level += f" ± {max(result.chance_error, 1e-4):.4f}"
        scale = f"1 is equal, 0 is chance (which scores {level})"
        if isnan(result.adjusted_score):
            scale = f"chance scores {level} and leaves nothing to adjust"
        table.add_row("adjusted score", decimal(result.adjusted_score), scale)
    explained = _known(lambda: result.explained)
    if explained is not None:
        for side in SIDES:
            name = "explained" if side == "reference" else ""
            table.add_row(name, decimal(explained[side]), f"of the {side} by the {other(side)}")
    lowest = result.lowest
    if lowest.reference and lowest.prediction:
        pair = f"reference {listed(lowest.reference)} ↔ prediction {listed(lowest.prediction)}"
        table.add_row("lowest Dice", decimal(lowest.dice), pair)
    spare = [len(result.unmatched[side]) for side in SIDES]
    if any(spare):
        totals = [_count(len(result.labels(side)), side) for side in SIDES]
        whose = " and ".join(
            f"{count} of {total}" for count, total in zip(spare, totals, strict=True) if count
        )
        if not all(spare):  # the count stands there already
            whose = whose[whose.index("of") :]
        table.add_row("no partner", str(sum(spare)), whose)
    return table


def _indices(indices: "Indices") -> Table:
    """Name and value; what has no value is left out, and a note says why."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    for name, value in indices.to_dict().items():
        if not isnan(value):
            table.add_row(name.replace("_", " "), decimal(value))
    return table


def _known(number: Callable[[], T]) -> T | None:
    """A number of a result, or None where it would need images that are gone."""
    try:
        return number()
    except NeedsImages:
        return None


def _count(count: int, side: str) -> str:
    return f"{count} {side} {'region' if count == 1 else 'regions'}"


def _groups(result: Comparison) -> Table:
    table = plain_table(
        "reference", "prediction", ">Dice", ">Jaccard", ">similarity",
        ">reference volume", ">prediction volume",
    )  # fmt: skip
    for group in result.groups[:MOST]:
        alone = not (group.reference and group.prediction)
        table.add_row(
            _labels(group.reference),
            _labels(group.prediction),
            decimal(group.dice),
            decimal(group.jaccard),
            decimal(group.similarity),
            _volume(group.reference_volume, result.pixel_volume),
            _volume(group.prediction_volume, result.pixel_volume),
            style="yellow" if alone else None,
        )
    return table


def _labels(labels: "Sequence[Label]") -> Text:
    return Text(listed(labels))


def _volume(pixels: float, pixel_volume: float | None) -> str:
    """In pixels, and in millilitres where these are known."""
    text = f"{pixels:,.0f}" if pixels >= 100 or pixels == int(pixels) else f"{pixels:.2f}"
    size = millilitres(pixels, pixel_volume)
    return f"{text} ({size})" if size else text


def note_line(text: str) -> Text:
    """A note, in a terminal."""
    return Text.assemble(("note: ", "yellow"), text)
