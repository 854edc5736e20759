"""The data of the tables of a page, and the text of the cells. `parts.html` draws every table."""

from collections.abc import Callable
from dataclasses import dataclass
from math import isnan
from typing import Any

from probdice.metrics.registry import REGISTRY
from probdice.report.encoding import shortened
from probdice.text.formatting import decimal, percent, quantity

__all__ = [
    "NOTHING",
    "Cell",
    "Column",
    "Table",
    "cell_of",
    "centre_of",
    "interval_cell",
    "measure_words",
    "method_cell",
    "place_cell",
    "shade_of",
    "signed",
    "text_cell",
]

SHADES = 10  # steps of the colour scale of similarity

FormatNumber = Callable[[float | None], str]


@dataclass(frozen=True)
class Cell:
    """A table cell. `value` is the value to sort by, and `about` is a remark below `text`."""

    value: float | str | None
    text: str
    about: str = ""
    colour: str = ""  # colour of a small square before the text
    shade: int | None = None  # shade of the cell on the similarity scale; see `shade_of`
    link: str = ""  # the address that the text links to


@dataclass(frozen=True)
class Column:
    """The heading of a column."""

    name: str
    about: str = ""
    number: bool = True


@dataclass(frozen=True)
class Table:
    """A table that readers can sort."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    about: str = ""


NOTHING = Cell(None, "–")


def measure_words(summary: dict[str, Any], key: str) -> tuple[str, str]:
    """Return the name of a measure, and a remark about the measure or ""."""
    title = str(summary["titles"][key])
    remark = REGISTRY[key].remark if key in REGISTRY else ""
    return shortened(title[:1].upper() + title[1:], 100), remark


def centre_of(entry: dict[str, Any]) -> tuple[float | None, ...]:
    """Return the mean, or the median if a value is infinite, with its confidence interval."""
    return entry[entry["aggregate"]], entry["interval"]["low"], entry["interval"]["high"]


def text_cell(text: str, about: str = "") -> Cell:
    return Cell(text, text, about)


def method_cell(method: str, colours: dict[str, str]) -> Cell:
    name = shortened(method)
    return Cell(name, name, colour=colours[method])


def cell_of(value: float | None, format_number: FormatNumber = decimal, about: str = "") -> Cell:
    return Cell(value, format_number(value), about)


def place_cell(rank: dict[str, Any], *, details: bool = False) -> Cell:
    """Return the place of a method in a ranking, with its stability.

    If `details` is True, the 95 % CI of the place and the mean rank replace the stability.
    """
    if rank["place"] is None or (details and rank["n"] == 0):
        return Cell(None, "–", "no ranked case" if details else "")
    text = f"{rank['place']:g}"
    if not details:
        about = "" if rank["stability"] is None else f"stability {percent(rank['stability'], 0)}"
        return Cell(rank["place"], text, about)
    about = f"mean rank {rank['mean_rank']:.2f} over {quantity(rank['n'], 'case')}"
    if rank["last"]:
        about += f", last on {rank['last']}"
    interval = rank["place_interval"]
    if interval["kind"] != "withheld" and interval["low"] != interval["high"]:
        text += f" ({interval['low']:g} to {interval['high']:g})"
    return Cell(rank["place"], text, about)


def interval_cell(interval: dict[str, Any], format_number: FormatNumber = decimal) -> Cell:
    if interval["kind"] == "withheld" or interval["low"] is None:
        return Cell(None, "withheld", interval["reason"])
    text = f"{format_number(interval['low'])} to {format_number(interval['high'])}"
    return Cell(interval["low"], text, interval["reason"])


def shade_of(value: float) -> int | None:
    """Return the shade of a value on the similarity scale: 0 for a value of 1, `SHADES` for 0."""
    return None if isnan(value) else round(SHADES * (1 - min(max(value, 0.0), 1.0)))


def signed(value: float | None) -> str:
    """Return a difference with its sign."""
    return f"+{decimal(value)}" if value is not None and value >= 0 else decimal(value)
