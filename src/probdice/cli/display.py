"""A comparison on the terminal."""

import sys
from collections.abc import Callable, Sequence
from math import isnan
from typing import TYPE_CHECKING, TypeVar

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from probdice.cli.console import console
from probdice.cli.streams import printing, write_output
from probdice.cli.terminal_tables import Column, FittingTable
from probdice.comparison.result import Comparison, Group
from probdice.errors import in_command
from probdice.method.matching import listed
from probdice.method.scoring import NeedsImages
from probdice.method.sides import SIDES, Side, other
from probdice.text.escaping import printable
from probdice.text.formatting import decimal, millilitres

if TYPE_CHECKING:
    from probdice.metrics.detection import Detection
    from probdice.metrics.indices import Indices

__all__ = ["note_line", "show", "show_comparison"]

T = TypeVar("T")

SHORT: dict[Side, str] = {"reference": "ref.", "prediction": "pred."}  # in headings
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
    parts: list[RenderableType] = [
        Text(printable(title), style="bold"),
        _asked(result),
        "",
        _headline(result),
    ]
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
    parts += [printable(f"wrote {line}") for line in written]
    show(*parts)


def show(*parts: RenderableType) -> None:
    """Print to standard output, on a terminal in lines that are broken between words."""
    terminal = sys.stdout.isatty()
    screen = console(width=None if terminal else WIDE)
    with printing(), screen.capture() as captured:  # Rich writes an empty text even so
        for part in parts:
            if terminal and isinstance(part, str | Text):
                part = broken(part, screen.width)
            screen.print(part)
    write_output("".join(f"{line.rstrip()}\n" for line in captured.get().split("\n")[:-1]))


def broken(text: str | Text, width: int) -> Text:
    """A text in lines, broken between words; a path that is longer than a line stays whole."""
    text = Text(text) if isinstance(text, str) else text.copy()
    letters = list(text.plain)
    start = 0
    for space in [k for k, letter in enumerate(letters) if letter in " \n"]:
        end = next((k for k in range(space + 1, len(letters)) if letters[k] in " \n"), len(letters))
        if letters[space] == "\n":
            start = space + 1
        elif end - start > width and space > start:
            letters[space] = "\n"
            start = space + 1
    text.plain = "".join(letters)
    return text


def _asked(result: Comparison) -> str:
    counts = [result.counted(side) for side in SIDES]
    regions = f"{counts[0]} reference and {counts[1]} prediction regions"
    words = result.options.in_words()
    if result.labels_by is not None:
        words[-1] += f" by {result.labels_by}"
    return ", ".join([*words, f"{regions} over {result.pixels:,} pixels"])


def _headline(result: Comparison) -> Table:
    """What a comparison comes to, as far as it is known without the images."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_column()
    lowest = result.lowest
    if not isnan(lowest.dice):
        table.add_row(
            Text("mean Dice", style="bold"), Text(decimal(result.mean_dice), style="bold"), ""
        )
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
    if not isnan(lowest.dice):
        table.add_row("lowest Dice", decimal(lowest.dice), _pair(lowest))
    unmatched = [len(result.unmatched[side]) for side in SIDES]
    if any(unmatched):
        totals = [_count(result.counted(side), side) for side in SIDES]
        whose = " and ".join(
            f"{count} of {total}" for count, total in zip(unmatched, totals, strict=True) if count
        )
        if not all(unmatched):  # the count stands there already
            whose = whose[whose.index("of") :]
        table.add_row("unmatched", str(sum(unmatched)), whose)
    table.add_row("score", decimal(_known(lambda: result.score)), "")
    if result.merges:
        counts = [(side, sum(merge.side == side for merge in result.merges)) for side in SIDES]
        regions = " and ".join(_count(count, side) for side, count in counts if count)
        were = "was" if len(result.merges) == 1 else "were"
        matched = decimal(_known(lambda: result.matched_score))
        table.add_row("matched score", matched, f"before {regions} {were} merged")
    return table


def _pair(group: Group) -> str:
    """The regions of a group."""
    sides = [f"{side} {listed(group.side(side))}" for side in SIDES if group.side(side)]
    return " ↔ ".join(sides) if len(sides) == 2 else f"{sides[0]}, unmatched"


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


def _groups(result: Comparison) -> FittingTable:
    """The groups, with volumes in millilitres where these are known."""
    known = result.pixel_volume is not None
    columns = [
        Column("reference"),
        Column("prediction"),
        Column("Dice", numbers=True),
        Column("Jaccard", numbers=True, spare=2),
        Column("similarity", numbers=True, spare=3),
    ]
    if known:
        columns += [Column(f"{side} mL", numbers=True, spare=1) for side in SHORT.values()]
    columns += [
        Column(f"{side} pixels", numbers=True, spare=4 if known else 1) for side in SHORT.values()
    ]
    faint = any(group.faint for group in result.groups[:MOST])
    if faint:
        columns.append(Column(""))
    table = FittingTable(columns)
    for group in result.groups[:MOST]:
        alone = not (group.reference and group.prediction)
        volumes = group.reference_volume, group.prediction_volume
        sizes = [millilitres(volume, result.pixel_volume) for volume in volumes] if known else []
        table.add_row(
            listed(group.reference),
            listed(group.prediction),
            decimal(group.dice),
            decimal(group.jaccard),
            decimal(group.similarity),
            *(size.removesuffix(" mL") for size in sizes),
            *map(_pixels, volumes),
            *(["faint" if group.faint else ""] if faint else []),
            style="dim" if group.faint else "yellow" if alone else None,
        )
    return table


def _pixels(volume: float) -> str:
    return f"{volume:,.0f}" if volume >= 100 or volume == int(volume) else f"{volume:.2f}"


def note_line(text: str) -> Text:
    """A note, in a terminal."""
    return Text.assemble(("note: ", "yellow"), text)
