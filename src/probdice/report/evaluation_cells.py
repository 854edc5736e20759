"""Table cells of the page of an evaluation: a value to sort by, its text and a remark."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from probdice.report.encoding import shortened
from probdice.text.formatting import decimal

__all__ = [
    "Cell",
    "absent_cases",
    "cell_of",
    "centre_of",
    "counted",
    "interval_cell",
    "place_with_interval",
    "probability",
    "quartile_cell",
    "signed",
    "words_of",
]

WORDS = {
    "score": ("Score", "after matching and merging; 1 means equal"),
    "adjusted_score": ("Adjusted score", "0 is chance level, 1 means equal"),
    "matched_score": ("Matched score", "before merging, with one-to-one matching"),
    "explained_reference": (
        "Reference explained",
        "share of its variance that the prediction explains; splitting regions does not lower it",
    ),
    "explained_prediction": (
        "Prediction explained",
        "share of its variance that the reference explains; merging regions does not lower it",
    ),
    "mean_dice": ("Mean Dice", "over all groups of a case; unmatched regions count as 0"),
    "lowest_dice": ("Lowest Dice", "over all groups of a case; unmatched regions count as 0"),
    "foreground_dice": ("Foreground Dice", "mean over all groups of a case except the background"),
    "pooled_dice": ("Pooled Dice", "2 Σ overlap / Σ volumes over all foreground groups of a case"),
    "foreground_score": (
        "Foreground score",
        "share of agreement among pixels that are foreground on at least one side",
    ),
    "adjusted_foreground_score": (
        "Adjusted foreground score",
        "foreground score adjusted for chance; 1 means identical",
    ),
}

Shown = Callable[[float | None], str]


@dataclass(frozen=True)
class Cell:
    """A table cell: the value to sort by, the text to show, and a remark."""

    value: float | None
    text: str
    about: str = ""


def words_of(summary: dict[str, Any], key: str) -> tuple[str, str]:
    """The name of a measure, and a remark."""
    title = str(summary["titles"][key])
    return WORDS.get(key, (shortened(title[:1].upper() + title[1:], 100), ""))


def centre_of(entry: dict[str, Any]) -> tuple[float | None, ...]:
    """The mean, or the median if a value is infinite, and its confidence interval."""
    return entry[entry["aggregate"]], entry["interval"]["low"], entry["interval"]["high"]


def place_with_interval(rank: dict[str, Any]) -> Cell:
    interval = rank["place_interval"]
    if rank["n"] == 0 or rank["place"] is None:
        return Cell(None, "–", "no ranked case")
    about = f"mean rank {rank['mean_rank']:.2f} over {counted(rank['n'], 'case')}"
    if rank["last"]:
        about += f", last on {rank['last']}"
    text = f"{rank['place']:g}"
    if interval["kind"] != "withheld" and interval["low"] != interval["high"]:
        text += f" ({interval['low']:g} to {interval['high']:g})"
    return Cell(rank["place"], text, about)


def interval_cell(interval: dict[str, Any], shown: Shown = decimal) -> Cell:
    if interval["kind"] == "withheld" or interval["low"] is None:
        return Cell(None, "withheld", interval["reason"])
    text = f"{shown(interval['low'])} to {shown(interval['high'])}"
    return Cell(interval["low"], text, interval["reason"])


def quartile_cell(entry: dict[str, Any]) -> Cell:
    if entry["lower_quartile"] is None:
        return Cell(None, "–")
    low, high = entry["lower_quartile"], entry["upper_quartile"]
    return Cell(low, f"{decimal(low)} to {decimal(high)}")


def cell_of(value: float | None, shown: Shown = decimal, about: str = "") -> Cell:
    return Cell(value, shown(value), about)


def signed(value: float | None) -> str:
    """A difference with its sign."""
    return f"+{decimal(value)}" if value is not None and value >= 0 else decimal(value)


def probability(p: float | None) -> str:
    if p is None:
        return "–"
    return "< 0.0001" if p < 0.0001 else decimal(p)


def absent_cases(count: dict[str, Any]) -> str:
    """How many cases are missing, and how many failed."""
    kinds = [f"{count[kind]} {kind}" for kind in ("missing", "failed") if count[kind]]
    return ", ".join(kinds)


def counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
