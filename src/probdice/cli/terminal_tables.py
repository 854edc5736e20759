"""Tables that fit the terminal.

Numbers, and words of up to 30 characters, are never broken across lines. Columns that do not fit
are omitted and named below the table.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from probdice.text.escaping import printable

__all__ = ["FittingTable", "TerminalColumn", "plain_table", "wrapped"]

Cell = str | Text

GAP = 2  # characters between columns
PREFERRED_WIDTH = 20  # characters of a text column; other columns are omitted to reach this width
MAX_WORD_LENGTH = 30  # characters; longer words may be broken
# A name may be broken after a space or a punctuation mark or before a capital letter, but not
# inside a number.
BREAKS = re.compile(
    r"(?<=[\s_/|;])(?=[^\s_/|;])"
    r"|(?<=[A-Za-z0-9)]-)(?=[A-Za-z(])"
    r"|(?<=[.,:])(?=[A-Za-z(])"
    r"|(?<=[a-z0-9])(?=[A-Z])"
)


@dataclass(frozen=True)
class TerminalColumn:
    """A column of a table.

    Numbers are aligned to the right and never broken. If the table is too wide, the columns with
    the highest `drop_order` are omitted first; a column with 0 is always shown.
    """

    heading: str
    numbers: bool = False
    drop_order: int = 0


@dataclass(frozen=True)
class _Row:
    cells: tuple[Cell, ...]
    style: str | None
    section: bool


class FittingTable:
    """A table that adapts to the width of the console when the table is printed."""

    def __init__(self, columns: Sequence[TerminalColumn]) -> None:
        self.columns = tuple(columns)
        self.rows: list[_Row] = []

    def add_row(self, *cells: Cell, style: str | None = None) -> None:
        """Add a row with one cell per column."""
        self.rows.append(_Row(tuple(map(_escaped, cells)), style, False))

    def add_section(self) -> None:
        """Add a horizontal line below the last row."""
        last_row = self.rows[-1]
        self.rows[-1] = _Row(last_row.cells, last_row.style, True)

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        column_indices = self._fitting_columns(options.max_width)
        widths = self._widths(column_indices, options.max_width)
        table = Table(box=box.SIMPLE, padding=(0, GAP - 1, 0, 0), show_edge=False, pad_edge=False)
        for k in column_indices:
            column = self.columns[k]
            table.add_column(
                _wrap_cell(column.heading, widths[k]),
                justify="right" if column.numbers else "left",
                no_wrap=True,
                width=widths[k],
            )
        for row in self.rows:
            cells = [_wrap_cell(row.cells[k], widths[k]) for k in column_indices]
            table.add_row(*cells, style=row.style, end_section=row.section)
        yield ""
        yield table
        omitted_headings = [
            column.heading for k, column in enumerate(self.columns) if k not in column_indices
        ]
        if omitted_headings:
            yield f"(omitted columns: {', '.join(omitted_headings)})"
        yield ""

    def _fitting_columns(self, width: int) -> list[int]:
        """Return the columns that fit; columns with the same `drop_order` are omitted together."""
        column_indices = list(range(len(self.columns)))
        while sum(self._preferred_width(k) + GAP for k in column_indices) - GAP > width:
            last_order = max(self.columns[k].drop_order for k in column_indices)
            if not last_order:
                break
            column_indices = [k for k in column_indices if self.columns[k].drop_order != last_order]
        return column_indices

    def _widths(self, column_indices: Sequence[int], width: int) -> dict[int, int]:
        """Return the width of each column: the minimum width plus a part of the remaining width."""
        widths = {k: self._min_width(k) for k in column_indices}
        free_width = width - sum(column_width + GAP for column_width in widths.values()) + GAP
        # The column that needs the least additional width comes first.
        order = sorted(column_indices, key=lambda k: self._max_width(k) - widths[k])
        for widened_count, k in enumerate(order):
            extra_width = min(
                self._max_width(k) - widths[k], max(free_width, 0) // (len(order) - widened_count)
            )
            widths[k] += extra_width
            free_width -= extra_width
        return widths

    def _texts(self, k: int) -> list[str]:
        return [self.columns[k].heading, *(str(row.cells[k]) for row in self.rows)]

    def _max_width(self, k: int) -> int:
        """Return the width at which no cell of a column is broken."""
        return max(map(len, self._texts(k)))

    def _preferred_width(self, k: int) -> int:
        """Return the width below which other columns are omitted instead of narrowing this one."""
        if self.columns[k].numbers:
            return self._min_width(k)
        return max(self._min_width(k), min(self._max_width(k), PREFERRED_WIDTH))

    def _min_width(self, k: int) -> int:
        """Return the width at which no number and no word (unless it is very long) is broken."""
        column = self.columns[k]
        words = [word.rstrip() for word in BREAKS.split(column.heading)]
        for row in self.rows:
            cell = str(row.cells[k])
            words += [cell] if column.numbers else [word.rstrip() for word in BREAKS.split(cell)]
        longest = max(map(len, words))
        return longest if column.numbers else min(longest, MAX_WORD_LENGTH)


def plain_table(*columns: str | TerminalColumn) -> FittingTable:
    """Return an empty table. A heading that starts with ">" marks a column of numbers."""
    return FittingTable(
        [
            TerminalColumn(column.lstrip(">"), column.startswith(">"))
            if isinstance(column, str)
            else column
            for column in columns
        ]
    )


def wrapped(text: str, width: int) -> list[str]:
    """Break a text into lines between words and between the parts of names.

    Examples
    --------
    >>> from probdice.cli.terminal_tables import wrapped
    >>> wrapped("lung_upper_lobe_left", 12)
    ['lung_upper_', 'lobe_left']
    """
    lines = [""]
    for word in BREAKS.split(text):
        if len(lines[-1]) + len(word.rstrip()) > width and lines[-1]:
            lines.append("")
        lines[-1] += word
        while len(lines[-1].rstrip()) > width:  # a word longer than the line
            lines[-1:] = [lines[-1][:width], lines[-1][width:]]
    return [line.rstrip() for line in lines]


def _escaped(cell: Cell) -> Cell:
    """Return a cell with control codes escaped, as one line of known width."""
    if isinstance(cell, str):
        return printable(cell)
    if not cell.plain.isprintable():
        return Text(printable(cell.plain), style=cell.style)
    return cell


def _wrap_cell(cell: Cell, width: int) -> Cell:
    if len(cell) <= width:
        return cell
    style = cell.style if isinstance(cell, Text) else ""
    return Text("\n".join(wrapped(str(cell), width)), style=style)
