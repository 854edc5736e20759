"""Tables as CSV."""

from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from typing import Any

from probdice.text.escaping import csv_text

__all__ = ["as_csv"]


def as_csv(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Return the rows as CSV. Numbers keep full precision; NaN and None become empty cells.

    Strings that a spreadsheet may read as formulas are escaped as in `csv_text`.

    Examples
    --------
    >>> from probdice.text.csv_tables import as_csv
    >>> print(as_csv([{"name": "liver", "dice": 0.5}, {"name": "lung"}], ["name", "dice"]))
    name,dice
    liver,0.5
    lung,
    <BLANKLINE>
    """
    cells = [[_cell(row.get(column, "")) for column in columns] for row in rows]
    return csv_text([columns, *cells])


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if isnan(value) else repr(value)
    return "" if value is None else str(value)
