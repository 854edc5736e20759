"""Sheets to repeat the study with: what to hand to people, and a table for their answers."""

import base64
import json
from io import BytesIO
from pathlib import Path

import numpy as np

from probdice.data.segmentation import Segmentation
from probdice.errors import InputError
from probdice.files.atomic_files import replacing
from probdice.paper.answers import write_csv
from probdice.paper.drawings import blended
from probdice.paper.figures import VERSIONS, DegradationTable
from probdice.report.rendering import render, write_page

LETTERS = "ABCDEFG"  # one for each version
GUIDE = """How to repeat the study

1. Give every person one of the sheets, sheet-01.html and on, on screen or printed. Each has its
   own order of images and of segmentations. Do not say what the study is about.
2. On screen, people type their ranks into the sheet and save them: the sheet makes a file, such as
   answers-01.csv. Put these files into a folder of their own, here called answers.
   From paper, write the ranks into answers.csv, in the row of the person, the image and the letter
   (1 is most similar to the reference; equal ranks are allowed), and use answers.csv in place of
   the folder. Leave a whole image empty where a person did not answer it.
3. Hold the answers against the scores:

   probdice rank answers scores.csv --column D1
   probdice rank answers scores.csv --column D2

answers.csv names the segmentation behind each letter, and so does what a sheet saves: keep both
from people who are still to answer.
"""


def write_survey(
    folder: str | Path, table: DegradationTable, *, people: int = 25, seed: int = 0
) -> list[Path]:
    """Write a sheet for each person, a table for their answers, the scores and a guide.

    The order of images and segmentations differs from person to person. A sheet saves the ranks
    that are typed into it as `read_rankings` reads them; what is behind its letters it holds
    encoded, so that nobody reads it in passing.
    """
    if people < 1:
        raise InputError(f"people must be at least 1, found {people}")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    pictures = {
        name: [_picture(version) for version in versions]
        for name, versions in table.predictions.items()
    }
    references = {name: _picture(image) for name, image in table.references.items()}
    sheets, rows = [], []
    for number in range(1, people + 1):
        person = f"person {number:02d}"
        tasks, hidden = [], []
        for name in rng.permutation(list(references)).tolist():
            order = rng.permutation(len(VERSIONS)).tolist()
            lettered = list(zip(LETTERS, order, strict=True))
            choices = [(letter, pictures[name][k]) for letter, k in lettered]
            tasks.append({"image": name, "reference": references[name], "choices": choices})
            behind = [(letter, VERSIONS[k].name) for letter, k in lettered]
            hidden.append({"image": name, "segmentations": behind})
            rows += [(person, name, letter, VERSIONS[k].name, "") for letter, k in lettered]
        sheets.append(folder / f"sheet-{number:02d}.html")
        key = {
            "person": person,
            "file": f"answers-{number:02d}.csv",
            "tasks": base64.b64encode(json.dumps(hidden).encode()).decode("ascii"),
        }
        text = render(
            "sheet.html",
            {"title": f"Sheet of {person}", "tasks": tasks, "key": key},
            package="probdice.paper",
            style="templates/page.css",
            scripts=("templates/sheet.js",),
        )
        write_page(sheets[-1], text)
    answers, scores, guide = (folder / name for name in ("answers.csv", "scores.csv", "guide.txt"))
    write_csv(answers, ("person", "image", "letter", "segmentation", "rank"), rows)
    write_scores(scores, table)
    with replacing(guide) as partial:
        partial.write_text(GUIDE, encoding="utf-8")
    return [*sheets, answers, scores, guide]


def write_scores(path: Path, table: DegradationTable) -> None:
    """The scores of a table, as `probdice rank` reads them."""
    rows = [
        (image, version.name, *(repr(score) for score in scores.values()))
        for image, version, scores in table.cells
    ]
    write_csv(path, ("image", "segmentation", *table.scores), rows)


def data_address(png: bytes) -> str:
    """A picture as an address that holds all of it."""
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def _picture(segmentation: Segmentation) -> str:
    """A segmentation in all its colours: it is to be judged."""
    from PIL import Image

    buffer = BytesIO()
    pixels = np.round(blended(segmentation) * 255).astype(np.uint8)
    Image.fromarray(pixels).save(buffer, "PNG", optimize=True)
    return data_address(buffer.getvalue())
