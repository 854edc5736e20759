"""Tables that fit the terminal: no number and no word is broken, and what has no room is named."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from probdice.text.escaping import printable

__all__ = ["Column", "FittingTable", "plain_table", "wrapped"]

Cell = str | Text

GAP = 2  # between columns
COMFORTABLE = 20  # characters of a name that are worth more than another number
LONGEST = 30  # characters of a word that is kept whole
# Where a name may be broken: after a space or a sign and before a capital letter, but in no number.
JOINTS = re.compile(
    r"(?<=[\s_/|;])(?=[^\s_/|;])"
    r"|(?<=[A-Za-z0-9)]-)(?=[A-Za-z(])"
    r"|(?<=[.,:])(?=[A-Za-z(])"
    r"|(?<=[a-z0-9])(?=[A-Z])"
)


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Numbers are aligned to the right and never broken. Where there is no room for all, columns are
    left out: those with the highest `spare` first, and those of 0 never.
    """

    heading: str
    numbers: bool = False
    spare: int = 0


@dataclass(frozen=True)
class _Row:
    cells: tuple[Cell, ...]
    style: str | None
    section: bool


class FittingTable:
    """Rows under headings, laid out when they are printed and the width is known."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = tuple(columns)
        self.rows: list[_Row] = []

    def add_row(self, *cells: Cell, style: str | None = None) -> None:
        """One more row, a cell for every column."""
        self.rows.append(_Row(tuple(map(_escaped, cells)), style, False))

    def add_section(self) -> None:
        """A line below the last row."""
        last = self.rows[-1]
        self.rows[-1] = _Row(last.cells, last.style, True)

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        shown = self._shown(options.max_width)
        widths = self._widths(shown, options.max_width)
        table = Table(box=box.SIMPLE, padding=(0, GAP - 1, 0, 0), show_edge=False, pad_edge=False)
        for k in shown:
            column = self.columns[k]
            table.add_column(
                _fitted(column.heading, widths[k]),
                justify="right" if column.numbers else "left",
                no_wrap=True,
                width=widths[k],
            )
        for row in self.rows:
            cells = [_fitted(row.cells[k], widths[k]) for k in shown]
            table.add_row(*cells, style=row.style, end_section=row.section)
        yield ""
        yield table
        left_out = [column.heading for k, column in enumerate(self.columns) if k not in shown]
        if left_out:
            yield f"(no room here for {', '.join(left_out)})"
        yield ""

    def _shown(self, width: int) -> list[int]:
        """The columns for which there is room; of two with the same `spare` both or none."""
        shown = list(range(len(self.columns)))
        while sum(self._comfortable(k) + GAP for k in shown) - GAP > width:
            spare = max(self.columns[k].spare for k in shown)
            if not spare:
                break
            shown = [k for k in shown if self.columns[k].spare != spare]
        return shown

    def _widths(self, shown: Sequence[int], width: int) -> dict[int, int]:
        """What each column gets: what it needs, and of the rest what it could use."""
        widths = {k: self._least(k) for k in shown}
        room = width - sum(needed + GAP for needed in widths.values()) + GAP
        order = sorted(shown, key=lambda k: self._most(k) - widths[k])  # who wants little first
        for done, k in enumerate(order):
            more = min(self._most(k) - widths[k], max(room, 0) // (len(order) - done))
            widths[k] += more
            room -= more
        return widths

    def _texts(self, k: int) -> list[str]:
        return [self.columns[k].heading, *(str(row.cells[k]) for row in self.rows)]

    def _most(self, k: int) -> int:
        """The width at which nothing of a column is broken into lines."""
        return max(map(len, self._texts(k)))

    def _comfortable(self, k: int) -> int:
        """The width that a column is given before others are left out for it."""
        if self.columns[k].numbers:
            return self._least(k)
        return max(self._least(k), min(self._most(k), COMFORTABLE))

    def _least(self, k: int) -> int:
        """The width at which no number and no word of a column is broken."""
        column = self.columns[k]
        words = [word.rstrip() for word in JOINTS.split(column.heading)]
        for row in self.rows:
            cell = str(row.cells[k])
            words += [cell] if column.numbers else [word.rstrip() for word in JOINTS.split(cell)]
        longest = max(map(len, words))
        return longest if column.numbers else min(longest, LONGEST)


def plain_table(*columns: str | Column) -> FittingTable:
    """An empty table; a column whose name starts with ">" holds numbers."""
    return FittingTable(
        [
            Column(column.lstrip(">"), column.startswith(">"))
            if isinstance(column, str)
            else column
            for column in columns
        ]
    )


def wrapped(text: str, width: int) -> list[str]:
    """A text in lines, broken between words and at the joints of names.

    Examples
    --------
    >>> from probdice.cli.terminal_tables import wrapped
    >>> wrapped("lung_upper_lobe_left", 12)
    ['lung_upper_', 'lobe_left']
    """
    lines = [""]
    for word in JOINTS.split(text):
        if len(lines[-1]) + len(word.rstrip()) > width and lines[-1]:
            lines.append("")
        lines[-1] += word
        while len(lines[-1].rstrip()) > width:  # a word that is longer than the line
            lines[-1:] = [lines[-1][:width], lines[-1][width:]]
    return [line.rstrip() for line in lines]


def _escaped(cell: Cell) -> Cell:
    """A cell on one line, before its width is measured."""
    if isinstance(cell, str):
        return printable(cell)
    if not cell.plain.isprintable():
        return Text(printable(cell.plain), style=cell.style)
    return cell


def _fitted(cell: Cell, width: int) -> Cell:
    """A cell that fits its column."""
    if len(cell) <= width:
        return cell
    style = cell.style if isinstance(cell, Text) else ""
    return Text("\n".join(wrapped(str(cell), width)), style=style)
