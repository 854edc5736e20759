"""Read and write answers and scores as CSV files."""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from probdice.errors import FormatError
from probdice.files.atomic_files import replacing
from probdice.files.columns import parse_number, read_columns
from probdice.text.escaping import csv_text

RANKING = ("person", "image", "segmentation", "rank")


@dataclass(frozen=True)
class Answer:
    """The rank that a person gave to one segmentation. Rank 1: most similar to the reference."""

    person: str
    image: str
    segmentation: str
    rank: float


@dataclass(frozen=True)
class Scored:
    """The score of one segmentation. A higher score means more similar to the reference."""

    image: str
    segmentation: str
    score: float


def read_rankings(path: str | PathLike[str]) -> list[Answer]:
    """Read answers from a CSV file, or from all .csv files in a folder.

    The columns are person, image, segmentation and rank. Other columns are ignored. Rows with an
    empty rank are skipped.
    """
    folder = Path(path)
    files = sorted(folder.glob("*.csv")) if folder.is_dir() else [folder]
    if not files:
        raise FormatError(f"{path}: the folder contains no .csv file")
    answers = [
        Answer(person, image, segmentation, parse_number(rank, "rank", location))
        for file in files
        for location, (person, image, segmentation, rank) in read_columns(file, RANKING)
        if rank
    ]
    if not answers:
        raise FormatError(f"{path}: no row has a rank")
    return answers


def read_scores(path: str | PathLike[str], *, column: str = "score") -> list[Scored]:
    """Read scores from a CSV file with the columns image, segmentation and `column`."""
    scores = [
        Scored(image, segmentation, parse_number(score, column, location))
        for location, (image, segmentation, score) in read_columns(
            path, ("image", "segmentation", column)
        )
    ]
    if not scores:
        raise FormatError(f"{path}: no row has a score")
    return scores


def write_csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write a table that `read_rankings` or `read_scores` can read."""
    with replacing(path) as partial:
        partial.write_text(csv_text([header, *rows]), encoding="utf-8", newline="")
