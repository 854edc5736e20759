"""Print a comparison on the terminal."""

import sys
from collections.abc import Callable, Sequence
from math import isnan
from typing import TYPE_CHECKING, TypeVar

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from probdice.cli.console import console
from probdice.cli.streams import printing, write_output
from probdice.cli.terminal_tables import FittingTable, TerminalColumn
from probdice.comparison.requested_metrics import STORED_METRICS
from probdice.comparison.result import Comparison, Group
from probdice.errors import in_command
from probdice.method.region_labels import listed
from probdice.method.scoring import NeedsImages
from probdice.method.sides import SIDES, Side, other
from probdice.metrics.verdict import verdict_of, words_of, worst_first
from probdice.text.escaping import printable
from probdice.text.formatting import decimal, millilitres, quantity

if TYPE_CHECKING:
    from probdice.metrics.derived import Derived
    from probdice.metrics.detection import Detection
    from probdice.metrics.indices import Indices

__all__ = ["note_line", "show", "show_comparison"]

T = TypeVar("T")

SHORT_SIDES: dict[Side, str] = {"reference": "ref.", "prediction": "pred."}
MAX_ROWS = 20  # rows of a table, unless all groups are requested
FILE_WIDTH = 160  # characters per line if the output is not a terminal


def show_comparison(
    result: Comparison,
    title: str,
    file_lines: Sequence[str] = (),
    *,
    indices: "Indices | None" = None,
    detection: "Detection | None" = None,
    all_groups: bool = False,
) -> None:
    """Print scores, groups (worst first), other metrics, notes and the paths of written files."""
    parts: list[RenderableType] = [
        Text(printable(title), style="bold"),
        _settings(result),
        "",
        Text(printable(verdict_of(result)), style="bold"),
        "",
        _headline(result),
    ]
    order = worst_first(result.groups)
    printed_indices = order if all_groups else order[:MAX_ROWS]
    parts.append(_groups(result, [result.groups[k] for k in printed_indices]))
    if len(printed_indices) < len(order):
        parts.append(
            f"… {len(order) - len(printed_indices):,} more groups; --all prints all groups"
        )
    notes = list(result.notes)
    if indices is not None:
        parts += [_indices(indices), ""]
        notes += indices.notes
    if detection is not None:
        parts += [Text(repr(detection)), ""]
    parts += _requested_metrics(result, all_groups=all_groups)
    for side, labels in result.empty.items():
        if labels:
            verb = "is" if len(labels) == 1 else "are"
            regions = f"{_count(len(labels), side)} {verb} empty and not compared"
            parts.append(note_line(f"{regions} ({listed(labels)})."))
    parts += [note_line(in_command(note.message)) for note in notes]
    show(*parts, file_lines=file_lines)


def show(*parts: RenderableType, file_lines: Sequence[str] = ()) -> None:
    """Print parts to standard output, followed by one line per written file.

    On a terminal, lines are wrapped between words. Each entry of `file_lines` describes one file or
    folder: the path, a colon and a description.
    """
    terminal = sys.stdout.isatty()
    screen = console(width=None if terminal else FILE_WIDTH)
    # Even while capturing, Rich writes empty text to standard output, which may fail.
    with printing(), screen.capture() as capture:
        for part in (*parts, *(printable(f"wrote {line}") for line in file_lines)):
            if terminal and isinstance(part, str | Text):
                part = wrap_lines(part, screen.width)
            screen.print(part)
    write_output("".join(f"{line.rstrip()}\n" for line in capture.get().split("\n")[:-1]))


def wrap_lines(text: str | Text, width: int) -> Text:
    """Break a text into lines between words. Words longer than a line remain whole."""
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


def _settings(result: Comparison) -> str:
    counts = [result.region_count(side) for side in SIDES]
    regions = f"{counts[0]} reference and {counts[1]} prediction regions"
    words = result.options.in_words()
    if result.labels_by is not None:
        words[-1] += f" by {result.labels_by}"
    return ", ".join([*words, f"{regions} over {result.pixels:,} {words_of(result).many}"])


def _headline(result: Comparison) -> Table:
    """Return the summary table.

    A value that requires images is omitted or shown as a dash if the result has no images.
    """
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_column()
    lowest = result.groups[worst_first(result.groups)[0]]
    style = "bold"
    if result.background is not None:
        _add_foreground(table, result)
        style = ""
    if not isnan(lowest.dice):
        mean = Text(decimal(result.mean_dice), style=style)
        table.add_row(Text("mean Dice", style=style), mean, "")
    chance = _if_available(lambda: result.chance)
    if chance is not None:
        level = decimal(chance)
        if result.chance_error:
            level += f" ± {max(result.chance_error, 1e-4):.4f}"
        scale = f"0 is chance level (a score of {level}), 1 means identical"
        if isnan(result.adjusted_score):
            scale = f"undefined, because the chance level is {level}"
        table.add_row("adjusted score", decimal(result.adjusted_score), scale)
    explained = _if_available(lambda: result.explained)
    if explained is not None:
        for side in SIDES:
            name = "explained" if side == "reference" else ""
            table.add_row(name, decimal(explained[side]), f"of the {side} by the {other(side)}")
    if not isnan(lowest.dice):
        table.add_row("lowest Dice", decimal(lowest.dice), _pair(lowest))
    unmatched = [len(result.unmatched[side]) for side in SIDES]
    if any(unmatched):
        totals = [_count(result.region_count(side), side) for side in SIDES]
        counts = " and ".join(
            f"{count} of {total}" for count, total in zip(unmatched, totals, strict=True) if count
        )
        if not all(unmatched):  # the preceding column already contains the count
            counts = counts[counts.index("of") :]
        table.add_row("unmatched", str(sum(unmatched)), counts)
    table.add_row("score", decimal(_if_available(lambda: result.score)), "")
    if result.merges:
        merge_counts = [
            (side, sum(merge.side == side for merge in result.merges)) for side in SIDES
        ]
        regions = " and ".join(_count(count, side) for side, count in merge_counts if count)
        matched = decimal(_if_available(lambda: result.matched_score))
        table.add_row("matched score", matched, f"before merging {regions}")
    return table


def _add_foreground(table: Table, result: Comparison) -> None:
    """Add the foreground measures to the summary table."""
    dice = Text(decimal(result.foreground_dice), style="bold")
    table.add_row(Text("foreground Dice", style="bold"), dice, "")
    table.add_row("pooled Dice", decimal(result.pooled_dice), "of all foreground groups")
    chance = _if_available(lambda: result.foreground_chance)
    adjusted = ""
    if chance is not None:
        adjusted = f"adjusted {decimal(result.adjusted_foreground_score)}, chance {decimal(chance)}"
    table.add_row("foreground score", decimal(result.foreground_score), adjusted)


def _derived(regions: "Derived", pixels: str) -> FittingTable:
    """Return the table of derived regions."""
    names = ("derived region", "reference", "prediction")
    numbers = ("Dice", "Jaccard", f"ref. {pixels}", f"pred. {pixels}")
    table = FittingTable(
        [
            *(TerminalColumn(name) for name in names),
            *(TerminalColumn(name, numbers=True) for name in numbers),
        ]
    )
    for region in regions:
        table.add_row(
            region.name,
            listed(region.reference),
            listed(region.prediction),
            decimal(region.dice),
            decimal(region.jaccard),
            _pixels(region.reference_volume),
            _pixels(region.prediction_volume),
            style="dim" if region.faint else None,
        )
    return table


def _requested_metrics(result: Comparison, *, all_groups: bool) -> list[RenderableType]:
    """Return the requested metrics: derived regions as a table, and all other metrics as text."""
    parts: list[RenderableType] = []
    for name, stored in STORED_METRICS.items():
        metric = result.numbers.known(name)
        if name == "derived" and metric is not None:
            parts.append(_derived(metric, words_of(result).many))
        elif metric is not None:
            parts += ["Derived regions"] if name == "derived_boundaries" else []
            text = stored.to_text(metric, None if all_groups else MAX_ROWS)
            parts += [Text(text), ""]
    return parts


def _pair(group: Group) -> str:
    """Describe a group, such as "reference 1 ↔ prediction 4" or "reference 2, unmatched"."""
    sides = [f"{side} {listed(group.side(side))}" for side in SIDES if group.side(side)]
    return " ↔ ".join(sides) if len(sides) == 2 else f"{sides[0]}, unmatched"


def _indices(indices: "Indices") -> Table:
    """Return a table with the names and values of the indices that are not NaN."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    for name, value in indices.to_dict().items():
        if not isnan(value):
            table.add_row(name.replace("_", " "), decimal(value))
    return table


def _if_available(number: Callable[[], T]) -> T | None:
    """Return the result of `number`; None if the comparison lacks the images that it requires."""
    try:
        return number()
    except NeedsImages:
        return None


def _count(count: int, side: str) -> str:
    return quantity(count, f"{side} region")


def _groups(result: Comparison, groups: Sequence[Group]) -> FittingTable:
    """Return the table of groups, with volumes in millilitres if voxel sizes are known."""
    has_volume = result.pixel_volume is not None
    columns = [
        TerminalColumn("reference"),
        TerminalColumn("prediction"),
        TerminalColumn("Dice", numbers=True),
        TerminalColumn("Jaccard", numbers=True, drop_order=2),
    ]
    if has_volume:
        columns += [
            TerminalColumn(f"{side} mL", numbers=True, drop_order=1)
            for side in SHORT_SIDES.values()
        ]
    columns += [
        TerminalColumn(
            f"{side} {words_of(result).many}", numbers=True, drop_order=4 if has_volume else 1
        )
        for side in SHORT_SIDES.values()
    ]
    columns.append(TerminalColumn("volume diff.", numbers=True, drop_order=5))
    has_faint = any(group.faint for group in groups)
    if has_faint:
        columns.append(TerminalColumn(""))
    table = FittingTable(columns)
    for group in groups:
        is_unmatched = not (group.reference and group.prediction)
        volumes = group.reference_volume, group.prediction_volume
        sizes = (
            [millilitres(volume, result.pixel_volume) for volume in volumes] if has_volume else []
        )
        table.add_row(
            listed(group.reference),
            listed(group.prediction),
            decimal(group.dice),
            decimal(group.jaccard),
            *(size.removesuffix(" mL") for size in sizes),
            *map(_pixels, volumes),
            _signed_percent(group.relative_volume_difference),
            *(["faint" if group.faint else ""] if has_faint else []),
            style="dim" if group.faint else "yellow" if is_unmatched else None,
        )
    return table


def _signed_percent(difference: float) -> str:
    """Return a relative difference as a percentage with a sign, or a dash for NaN."""
    return "–" if isnan(difference) else f"{100 * difference:+.1f} %"


def _pixels(volume: float) -> str:
    return f"{volume:,.0f}" if volume >= 100 or volume == int(volume) else f"{volume:.2f}"


def note_line(text: str) -> Text:
    """Return a note as a line for the terminal."""
    return Text.assemble(("note: ", "yellow"), text)
