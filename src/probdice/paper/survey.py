"""Write the sheets on which people rank segmentations, and a table for their answers."""

import base64
import json
from io import BytesIO
from pathlib import Path

import numpy as np

from probdice.data.segmentation import Segmentation
from probdice.errors import InputError
from probdice.files.atomic_files import replacing
from probdice.paper.answers import write_csv
from probdice.paper.drawings import blended_colours
from probdice.paper.figures import VERSIONS, DegradationTable
from probdice.report.rendering import render, write_page

LETTERS = "ABCDEFG"  # one letter per version
GUIDE = """How to repeat the study

1. Give every person one of the sheets (sheet-01.html, sheet-02.html and so on), on screen or
   printed. Each sheet has its own order of images and segmentations. Do not explain the purpose of
   the study.
2. On screen, people type their ranks into the sheet and save them as a file, such as
   answers-01.csv. Put these files into one folder, for example answers.
   For printed sheets, write each rank into answers.csv, in the row of the person, image and
   letter. Rank 1 means most similar to the reference, and equal ranks are allowed. If a person
   did not rank an image, leave all ranks of this image empty. Use answers.csv instead of the
   folder.
3. Compare the answers with the scores:

   probdice rank answers scores.csv --column D1
   probdice rank answers scores.csv --column D2

answers.csv and the saved files list the segmentation that each letter stands for. Do not show these
files to people who have not answered yet.
"""


def write_survey(
    folder: str | Path, table: DegradationTable, *, people: int = 25, seed: int = 0
) -> list[Path]:
    """Write one sheet per person, a table for the answers, the scores and instructions.

    Images and segmentations have a random order on each sheet. A sheet saves its ranks in the
    format of `read_rankings`. The names of the segmentations are encoded, so that people cannot
    read them in the source of the sheet.
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
        tasks, answer_key = [], []
        for name in rng.permutation(list(references)).tolist():
            order = rng.permutation(len(VERSIONS)).tolist()
            letters = list(zip(LETTERS, order, strict=True))
            choices = [(letter, pictures[name][k]) for letter, k in letters]
            tasks.append({"image": name, "reference": references[name], "choices": choices})
            segmentations = [(letter, VERSIONS[k].name) for letter, k in letters]
            answer_key.append({"image": name, "segmentations": segmentations})
            rows += [(person, name, letter, VERSIONS[k].name, "") for letter, k in letters]
        sheets.append(folder / f"sheet-{number:02d}.html")
        key = {
            "person": person,
            "file": f"answers-{number:02d}.csv",
            "tasks": base64.b64encode(json.dumps(answer_key).encode()).decode("ascii"),
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
        partial.write_text(GUIDE, encoding="utf-8", newline="\n")
    return [*sheets, answers, scores, guide]


def write_scores(path: Path, table: DegradationTable) -> None:
    """Write the scores of a table in the format that `probdice rank` reads."""
    rows = [
        (image, version.name, *(repr(score) for score in scores.values()))
        for image, version, scores in table.cells
    ]
    write_csv(path, ("image", "segmentation", *table.scores), rows)


def data_address(png: bytes) -> str:
    """Return an image as a data URL."""
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def _picture(segmentation: Segmentation) -> str:
    """Return a coloured picture of a segmentation as a data URL."""
    from PIL import Image

    buffer = BytesIO()
    pixels = np.round(blended_colours(segmentation) * 255).astype(np.uint8)
    Image.fromarray(pixels).save(buffer, "PNG", optimize=True)
    return data_address(buffer.getvalue())
