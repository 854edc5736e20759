"""What people answered and what was scored, from CSV files."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, nan
from os import PathLike

from probdice.errors import FormatError

__all__ = ["Answer", "Scored", "read_rankings", "read_scores"]

Path = str | PathLike[str]


@dataclass(frozen=True)
class Answer:
    """A rank that a person gave; 1 is most similar to the reference."""

    person: str
    image: str
    segmentation: str
    rank: float


@dataclass(frozen=True)
class Scored:
    """The score of one segmentation; higher is more similar to the reference."""

    image: str
    segmentation: str
    score: float


def read_rankings(path: Path) -> list[Answer]:
    """Answers from a CSV file with columns person, image, segmentation and rank.

    Rows with an empty rank were not answered and are left out; other columns are not read.
    """
    answers = []
    for place, row in _rows(path, ("person", "image", "segmentation", "rank")):
        if row["rank"]:
            rank = _value(row["rank"], "rank", place)
            answers.append(Answer(row["person"], row["image"], row["segmentation"], rank))
    if not answers:
        raise FormatError(f"{path}: no row has a rank")
    return answers


def read_scores(path: Path, *, column: str = "score") -> list[Scored]:
    """Scores from a CSV file with columns image, segmentation and `column`."""
    scores = [
        Scored(row["image"], row["segmentation"], _value(row[column], column, place))
        for place, row in _rows(path, ("image", "segmentation", column))
    ]
    if not scores:
        raise FormatError(f"{path}: no row has a score")
    return scores


def _rows(path: Path, columns: Sequence[str]) -> list[tuple[str, dict[str, str]]]:
    """Rows of a CSV file by column name, each with the place it stands at."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            found = list(reader.fieldnames or ())
            missing = [name for name in columns if name not in found]
            if missing:
                raise FormatError(
                    f"{path}: has no column {', '.join(map(repr, missing))}; found "
                    f"{', '.join(map(repr, found)) or 'nothing'}"
                )
            rows = [
                (f"{path}, line {reader.line_num}", {name: (row[name] or "") for name in columns})
                for row in reader
            ]
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise FormatError(f"{path}: cannot be read as CSV: {error}") from None
    return [(place, {name: text.strip() for name, text in row.items()}) for place, row in rows]


def _value(text: str, column: str, place: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = nan
    if not isfinite(value):
        raise FormatError(f"{place}: {column} must be a number, found {text!r}")
    return value
