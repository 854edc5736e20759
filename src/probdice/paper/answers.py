"""Read and write answers and scores as CSV files."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, nan
from os import PathLike
from pathlib import Path

from probdice.errors import FormatError
from probdice.files.atomic_files import replacing
from probdice.text.escaping import csv_text

RANKING = ("person", "image", "segmentation", "rank")


@dataclass(frozen=True)
class Answer:
    """A rank given by a person; 1 is most similar to the reference."""

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


def read_rankings(path: str | PathLike[str]) -> list[Answer]:
    """Read answers from a CSV file, or from all .csv files of a folder.

    The columns are person, image, segmentation and rank; other columns are ignored. Rows with an
    empty rank are skipped.
    """
    folder = Path(path)
    files = sorted(folder.glob("*.csv")) if folder.is_dir() else [folder]
    if not files:
        raise FormatError(f"{path}: the folder contains no .csv file")
    answers = [
        Answer(person, image, segmentation, _number(rank, "rank", place))
        for file in files
        for place, (person, image, segmentation, rank) in _rows(file, RANKING)
        if rank
    ]
    if not answers:
        raise FormatError(f"{path}: no row has a rank")
    return answers


def read_scores(path: str | PathLike[str], *, column: str = "score") -> list[Scored]:
    """Read scores from a CSV file with columns image, segmentation and `column`."""
    scores = [
        Scored(image, segmentation, _number(score, column, place))
        for place, (image, segmentation, score) in _rows(path, ("image", "segmentation", column))
    ]
    if not scores:
        raise FormatError(f"{path}: no row has a score")
    return scores


def write_csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write a table that `read_rankings` or `read_scores` reads."""
    with replacing(path) as partial:
        partial.write_text(csv_text([header, *rows]), encoding="utf-8", newline="")


def _rows(path: str | PathLike[str], columns: Sequence[str]) -> list[tuple[str, list[str]]]:
    """The cells of some columns per row, each with the file and line for messages."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            header = list(reader.fieldnames or ())
            missing = [name for name in columns if name not in header]
            if missing:
                raise FormatError(
                    f"{path}: column {', '.join(map(repr, missing))} is missing, found "
                    f"{', '.join(map(repr, header)) or 'nothing'}"
                )
            return [
                (
                    f"{path}, line {reader.line_num}",
                    [(row[name] or "").strip() for name in columns],
                )
                for row in reader
            ]
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise FormatError(f"{path}: cannot be read as CSV: {error}") from None


def _number(text: str, column: str, place: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = nan
    if not isfinite(value):
        raise FormatError(f"{place}: {column} must be a number, found {text!r}")
    return value
