"""A comparison on the terminal."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import isnan
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from probdice.cli.outcome import in_options
from probdice.cli.streams import print_text, printing
from probdice.numbers_shown import decimal
from probdice.result import Comparison, Group, listed

if TYPE_CHECKING:
    from probdice.segmentation import Label

__all__ = ["Promise", "number", "plain_table", "show", "show_comparison"]

MOST = 60  # rows of a table on the terminal
JOINS = 6  # merges in a sentence
WIDE = 160  # columns where the output is no terminal

number = decimal  # the name by which the summary of an evaluation asks for it


@dataclass(frozen=True, eq=False)
class Promise:
    """What merging the spare regions of a side would give."""

    side: str
    merged: Comparison

    def in_note(self, note: str) -> str:
        """The note about these regions, with where each would go."""
        joins = self.merged.merges[:JOINS]
        goals = ", ".join(f"{join.region} → {listed(join.into)}" for join in joins)
        hidden = len(self.merged.merges) - len(joins)
        if hidden:
            goals += f", … {hidden} more"
        return note.replace(
            f"--merge {self.side} would join each to a matched one",
            f"--merge {self.side} would join {goals} for a score of {decimal(self.merged.score)}",
        )


def show_comparison(
    result: Comparison, title: str, promises: Sequence[Promise], written: Sequence[str]
) -> None:
    """Scores, groups, spare regions, notes and the files that were written."""
    parts: list[RenderableType] = [Text(title, style="bold"), _asked(result), "", _scores(result)]
    parts += [_groups(result)]
    if len(result.groups) > MOST:
        parts.append(f"… and {len(result.groups) - MOST} more groups; --json holds all of them")
    for side, labels in result.empty.items():
        if labels:
            regions = "region is" if len(labels) == 1 else "regions are"
            parts.append(
                _note(f"{len(labels)} {side} {regions} empty and took no part ({listed(labels)})")
            )
    for note in map(in_options, result.notes):
        parts.append(_note(reduce(lambda text, promise: promise.in_note(text), promises, note)))
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
    floor = f" (floor {result.floor:g})" if result.floor else ""
    counts = [len(result.reference_labels), len(result.prediction_labels)]
    return (
        f"{result.similarity} similarity{floor}, {counts[0]} reference and {counts[1]} prediction "
        f"regions over {result.pixels:,} pixels"
    )


def _scores(result: Comparison) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row(Text("score", style="bold"), Text(decimal(result.score), style="bold"), "")
    if result.merges:
        count = len(result.merges)
        after = f"before {count} {result.merges[0].side} region{'s' * (count > 1)} were merged"
        after = after.replace("region were", "region was")
        table.add_row("matched score", decimal(result.matched_score), after)
    adjusted = "" if not isnan(result.adjusted_score) else "; chance leaves nothing to adjust"
    table.add_row(
        "adjusted score",
        decimal(result.adjusted_score),
        f"1 is equal, 0 is chance (which scores {decimal(result.chance)}){adjusted}",
    )
    lowest = result.lowest
    table.add_row("lowest Dice", decimal(lowest.dice), _pair(lowest))
    return table


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
            _volume(group.reference_volume),
            _volume(group.prediction_volume),
            style="yellow" if alone else None,
        )
    return table


def _labels(labels: "Sequence[Label]") -> Text:
    return Text(listed(labels))


def _pair(group: Group) -> str:
    return f"reference {listed(group.reference)} ↔ prediction {listed(group.prediction)}"


def _volume(pixels: float) -> str:
    return f"{pixels:,.0f}" if pixels >= 100 or pixels == int(pixels) else f"{pixels:.2f}"


def _note(text: str) -> Text:
    return Text.assemble(("note: ", "yellow"), text)
