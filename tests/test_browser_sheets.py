"""Survey sheets in a browser and on paper: ranks are saved, and no image loses its reference."""

import csv
import re

import numpy as np
import pytest
from test_browser import browser, visit  # noqa: F401  (fixtures)

from probdice import Segmentation
from probdice.paper import rank_study, read_rankings, read_scores
from probdice.paper.figures import VERSIONS, degradation_table
from probdice.paper.survey import write_survey

PAPER = {"a4": {"format": "A4"}, "letter": {"format": "Letter"}}
NAMES = ['"tall", <b>', "wide"]


def stripes(shape, seed=0):
    values = np.random.default_rng(seed).gamma(0.4, size=(3, *shape)) + 1e-3
    return Segmentation.from_probabilities(values / values.sum(axis=0))


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    """Sheets for two people with an image that is tall and one that is wide."""
    folder = tmp_path_factory.mktemp("survey")
    images = {NAMES[0]: stripes((60, 16)), NAMES[1]: stripes((16, 60), seed=1)}
    write_survey(folder, degradation_table(images), people=2)
    return folder


def behind_letters(folder, person):
    """The segmentations of a sheet, task by task, from the table that the study's leader keeps."""
    with open(folder / "answers.csv", encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["person"] == person]


def save(page, path):
    with page.expect_download() as download:
        page.click("#save")
    download.value.save_as(path)
    return download.value.suggested_filename


def test_what_is_typed_on_a_sheet_is_the_table_that_rank_reads(survey, visit, tmp_path):  # noqa: F811
    strengths = {version.name: version.strength for version in VERSIONS}
    for number in (1, 2):
        page = visit(survey / f"sheet-0{number}.html", ready="#sheet")
        rows = behind_letters(survey, f"person 0{number}")
        fields = page.locator("#sheet input")
        assert fields.count() == len(rows) == 14
        for k, row in enumerate(rows):
            fields.nth(k).fill(str(strengths[row["segmentation"]]))
        assert page.inner_text("#status") == "14 of 14 ranks are given."
        file = f"answers-0{number}.csv"
        assert save(page, tmp_path / file) == file
        assert page.inner_text("#status") == f"Saved as {file}. Thank you!"
        with open(tmp_path / file, encoding="utf-8", newline="") as saved:
            expected = [row | {"rank": str(strengths[row["segmentation"]])} for row in rows]
            assert list(csv.DictReader(saved)) == expected
    study = rank_study(read_rankings(tmp_path), read_scores(survey / "scores.csv", column="D1"))
    assert study.people == ("person 01", "person 02")
    assert len(study.points) == 14


def test_a_task_without_all_its_ranks_is_saved_as_not_answered(survey, visit, tmp_path):  # noqa: F811
    page = visit(survey / "sheet-01.html", ready="#sheet")
    fields = page.locator("#sheet input")
    for k in range(7, 14):
        fields.nth(k).fill("1" if k < 13 else "99")
    save(page, tmp_path / "answers.csv")
    assert "without tasks 1, 2" in page.inner_text("#status")
    fields.nth(13).fill("2")
    save(page, tmp_path / "answers.csv")
    assert "without task 1:" in page.inner_text("#status")
    answers = read_rankings(tmp_path / "answers.csv")
    assert [answer.rank for answer in answers] == [1, 1, 1, 1, 1, 1, 2]
    assert len({answer.image for answer in answers}) == 1


@pytest.mark.parametrize("width", [380, 900, 1280, 2560])
def test_the_reference_stays_in_sight_and_covers_nothing(survey, visit, width):  # noqa: F811
    page = visit(survey / "sheet-01.html", width=width, height=1100, ready="#sheet")
    wide = page.locator(".task", has_text="wide")
    last = wide.locator("figure").last
    last.scroll_into_view_if_needed()
    reference, choice = wide.locator(".reference").bounding_box(), last.bounding_box()
    assert reference["y"] + reference["height"] > 0
    apart = (
        reference["x"] + reference["width"] <= choice["x"] + 1
        or reference["y"] + reference["height"] <= choice["y"] + 1
    )
    assert apart
    sizes = [box["width"] for box in map(lambda img: img.bounding_box(), wide.locator("img").all())]
    assert max(sizes) - min(sizes) < 1.5  # all pictures are of one size
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("landscape", [False, True], ids=["portrait", "landscape"])
@pytest.mark.parametrize("paper", PAPER)
def test_every_task_is_one_sheet_of_paper(survey, visit, paper, landscape, tmp_path):  # noqa: F811
    page = visit(survey / "sheet-01.html", ready="#sheet")
    page.pdf(path=tmp_path / "sheet.pdf", landscape=landscape, **PAPER[paper])
    pages = re.findall(rb"/Type ?/Page\b", (tmp_path / "sheet.pdf").read_bytes())
    # Every task begins a page, so that one more page would be the rest of a task without its
    # reference. What to do stands on the first.
    assert len(pages) == 1 + len(NAMES)


def test_paper_shows_fields_to_write_into_and_no_button(survey, visit):  # noqa: F811
    page = visit(survey / "sheet-01.html", ready="#sheet")
    page.emulate_media(media="print")
    assert not page.is_visible("#save")
    assert page.locator("#sheet input").first.is_visible()
