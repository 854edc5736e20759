"""Read named columns of CSV and TSV files."""

import csv
from collections.abc import Sequence
from math import isfinite, nan
from os import PathLike, fspath

from probdice.errors import FormatError

__all__ = ["parse_number", "read_columns"]


def read_columns(path: str | PathLike[str], columns: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Read columns of a table, and return one pair per row.

    The first item of a pair is the file and line of the row, for messages. The second item contains
    the cells of the row in the order of `columns`.

    Parameters
    ----------
    path : path
        A file with a header line. The columns are separated by tabs in .tsv files, and by commas in
        other files.
    columns : sequence of str
        The names of the columns. Other columns are ignored.

    Raises
    ------
    FormatError
        If the file cannot be read or lacks one of the columns.

    Examples
    --------
    >>> import os, tempfile
    >>> from probdice.files.columns import read_columns
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "subjects.tsv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("subject\\tcase\\nanna\\ta1\\nanna\\ta2\\n")
    ...     [cells for _, cells in read_columns(path, ("case", "subject"))]
    [['a1', 'anna'], ['a2', 'anna']]
    """
    delimiter = "\t" if fspath(path).lower().endswith(".tsv") else ","
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, delimiter=delimiter)
            header = list(reader.fieldnames or ())
            missing = [name for name in columns if name not in header]
            if missing:
                names = ", ".join(map(repr, missing))
                verb = f"column {names} is" if len(missing) == 1 else f"columns {names} are"
                header_row = ", ".join(map(repr, header)) or "nothing"
                fix = (
                    ". Separate columns by commas."
                    if delimiter == "," and ";" in header_row
                    else ""
                )
                raise FormatError(f"{path}: {verb} missing, found {header_row}{fix}")
            return [
                (
                    f"{path}, line {reader.line_num}",
                    [(row[name] or "").strip() for name in columns],
                )
                for row in reader
            ]
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise FormatError(f"{path}: cannot be read as a table: it is not UTF-8 text") from None
    except csv.Error as error:
        raise FormatError(f"{path}: cannot be read as a table: {error}") from None


def parse_number(text: str, column: str, location: str) -> float:
    """Convert a cell to a finite number. `location` is the file and line of the cell, for messages.

    Examples
    --------
    >>> from probdice.files.columns import parse_number
    >>> parse_number("1.5", "runtime", "times.csv, line 2")
    1.5
    """
    try:
        value = float(text)
    except ValueError:
        value = nan
    if not isfinite(value):
        raise FormatError(f"{location}: {column} must be a finite number, found {text!r}")
    return value
