"""Tables as aligned text and as pandas data frames."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from probdice.errors import MissingExtraError

if TYPE_CHECKING:
    import pandas

__all__ = ["aligned_columns", "data_frame"]


def aligned_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return one line per row, with right-aligned columns.

    Examples
    --------
    >>> from probdice.text.table_output import aligned_columns
    >>> aligned_columns([("name", "Dice"), ("left kidney", "0.9")])
    ['       name  Dice', 'left kidney   0.9']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def data_frame(content: Any, columns: Sequence[str] | None = None) -> "pandas.DataFrame":
    """Create a data frame from rows or columns. If pandas is missing, raise `MissingExtraError`.

    `columns` selects the columns and determines their order. If the rows are lists, `columns`
    contains the names of the columns.

    Examples
    --------
    >>> from probdice.text.table_output import data_frame
    >>> data_frame({"name": ["liver"], "dice": [0.5]})["dice"].tolist()
    [0.5]
    """
    try:
        import pandas
    except ImportError:
        raise MissingExtraError('data frames require pandas: pip install "pandas"') from None
    return pandas.DataFrame(content, columns=None if columns is None else list(columns))
