"""Read tables of measures from other programs, such as the run time per method and case."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import nan
from os import fspath

from probdice.errors import InputError
from probdice.evaluation.folders import as_name
from probdice.files.columns import parse_number, read_columns

__all__ = ["ExternalColumn", "as_external_column"]

COLUMN_PATTERN = re.compile(r"(?P<name>[^=:]+)(?::(?P<direction>[^=]*))?=(?P<file>.+)", re.DOTALL)
DIRECTIONS = {"lower": False, "higher": True}


@dataclass(frozen=True)
class ExternalColumn:
    """A measure whose values are read from a table.

    Attributes
    ----------
    name : str
        The name of the measure and of its column in the table.
    file : str
        The path of a CSV or TSV file with the columns case, method and `name`.
    higher_is_better : bool
        Whether higher values are better.
    values : mapping of str to mapping of str to float
        The values by method and case.
    """

    name: str
    file: str
    higher_is_better: bool = False
    values: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def of(self, method: str, case: str) -> float:
        """Return the value of one method and case; NaN if the table has no value."""
        return self.values.get(method, {}).get(case, nan)

    def read(self, methods: Iterable[str], cases: Iterable[str]) -> "ExternalColumn":
        """Read the values of methods and cases. Other rows of the table are ignored.

        Raises
        ------
        InputError
            If a method has no value in the table, or has two values for the same case.
        """
        case_names = {as_name(case) for case in cases}
        table: dict[str, dict[str, float]] = {as_name(method): {} for method in methods}
        for line, (case, method, text) in read_columns(self.file, ("case", "method", self.name)):
            method_values = table.get(as_name(method))
            if method_values is None or as_name(case) not in case_names or not text:
                continue
            if as_name(case) in method_values:
                raise InputError(
                    f"{line}: case {case!r} of method {method!r} already has a value; keep one row "
                    f"per case and method"
                )
            method_values[as_name(case)] = parse_number(text, self.name, line)
        for method, method_values in table.items():
            if not method_values:
                raise InputError(
                    f"{self.file}: column {self.name!r} has no value for any case of method "
                    f"{method!r}; add rows that have this name in the column 'method'"
                )
        return replace(self, values=table)


def as_external_column(column: str | ExternalColumn) -> ExternalColumn:
    """Parse ``NAME=FILE``, ``NAME:lower=FILE`` or ``NAME:higher=FILE``; "lower" is the default.

    Examples
    --------
    >>> from probdice.evaluation.external_columns import as_external_column
    >>> as_external_column("runtime=times.csv")
    ExternalColumn(name='runtime', file='times.csv', higher_is_better=False, values={})
    >>> as_external_column("reading:higher=reader.tsv").higher_is_better
    True
    """
    if isinstance(column, ExternalColumn):
        return column
    match = COLUMN_PATTERN.fullmatch(fspath(column))
    direction = "" if match is None else match["direction"] or "lower"
    if match is None or direction not in DIRECTIONS:
        raise InputError(
            f"column: expected NAME=FILE, NAME:lower=FILE (lower values are better) or "
            f"NAME:higher=FILE, such as runtime=times.csv, found {column!r}"
        )
    return ExternalColumn(match["name"], match["file"], DIRECTIONS[direction])
