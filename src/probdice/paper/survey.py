"""Sheets to repeat the study with: what to hand to people, and a table for their answers."""

import base64
import csv
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from probdice.errors import InputError
from probdice.paper.answers import Answer
from probdice.paper.canvas import blended
from probdice.paper.figures import DegradationTable
from probdice.paper.page import render
from probdice.segmentation import Segmentation

__all__ = ["write_rankings", "write_scores", "write_survey"]

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
GUIDE = """How to repeat the study

1. Give every person one of the sheets, sheet-01.html and on, on screen or printed. Each has its
   own order of images and of segmentations. Do not say what the study is about.
2. Write their ranks into answers.csv, in the row of the person, the image and the letter
   (1 is most similar to the reference; equal ranks are allowed). Leave a whole image empty where
   a person did not answer it.
3. Hold the answers against the scores:

   probdice rank answers.csv scores.csv --column D1
   probdice rank answers.csv scores.csv --column D2

answers.csv names the segmentation behind each letter: keep it from the people who answer.
"""


@dataclass(frozen=True)
class _Choice:
    letter: str
    picture: str


@dataclass(frozen=True)
class _Task:
    image: str
    reference: str
    choices: tuple[_Choice, ...]


def write_survey(
    folder: str | Path, table: DegradationTable, *, people: int = 25, seed: int = 0
) -> list[Path]:
    """Write a sheet for each person, the template for their answers, the scores and a guide.

    Parameters
    ----------
    folder : path
        Where to write; it is made if it does not exist.
    table : DegradationTable
        The images and their degraded versions.
    people : int, optional
        How many sheets to write.
    seed : int, optional
        Of the order of images and segmentations, which differs from person to person.

    Returns
    -------
    list of Path
        What was written.
    """
    if people < 1:
        raise InputError(f"people must be at least 1, found {people}")
    if len(table.versions) > len(LETTERS):
        raise InputError(f"a sheet has letters for {len(LETTERS)} segmentations, not more")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    pictures = {
        name: [_picture(version) for version in versions]
        for name, versions in table.predictions.items()
    }
    references = {name: _picture(image) for name, image in table.references.items()}
    written, rows = [], []
    for number in range(1, people + 1):
        person = f"person {number:02d}"
        tasks = []
        for name in rng.permutation(list(references)).tolist():
            order = rng.permutation(len(table.versions)).tolist()
            tasks.append(
                _Task(
                    name,
                    references[name],
                    tuple(_Choice(LETTERS[k], pictures[name][v]) for k, v in enumerate(order)),
                )
            )
            rows += [
                (person, name, LETTERS[k], table.versions[v].name, "") for k, v in enumerate(order)
            ]
        sheet = folder / f"sheet-{number:02d}.html"
        sheet.write_text(
            render("sheet.html", title=f"Sheet of {person}", person=person, tasks=tasks),
            encoding="utf-8",
        )
        written.append(sheet)
    header = ("person", "image", "letter", "segmentation", "rank")
    written.append(_write_csv(folder / "answers.csv", header, rows))
    written.append(write_scores(folder / "scores.csv", table))
    guide = folder / "guide.txt"
    guide.write_text(GUIDE, encoding="utf-8")
    return [*written, guide]


def write_scores(path: Path, table: DegradationTable) -> Path:
    """The scores of a table, as `probdice rank` reads them."""
    rows = [
        (name, version.name, repr(float(table.d1[i, j])), repr(float(table.d2[i, j])))
        for i, name in enumerate(table.references)
        for j, version in enumerate(table.versions)
    ]
    return _write_csv(path, ("image", "segmentation", "D1", "D2"), rows)


def write_rankings(path: Path, answers: Sequence[Answer]) -> Path:
    """Answers, as `probdice rank` reads them."""
    rows = [
        (answer.person, answer.image, answer.segmentation, f"{answer.rank:g}") for answer in answers
    ]
    return _write_csv(path, ("person", "image", "segmentation", "rank"), rows)


def _write_csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Path:
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
    return path


def _picture(segmentation: Segmentation) -> str:
    """A picture of a segmentation as a data address, in all its colours: it is to be judged."""
    pixels = np.round(blended(segmentation) * 255).astype(np.uint8)
    buffer = BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
