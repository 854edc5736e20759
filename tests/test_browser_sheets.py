"""Survey sheets and pages of evaluations in a browser and on paper."""

import csv
import re

import numpy as np
import pytest
from test_browser import browser, unavailable, visit  # noqa: F401  (fixtures)

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
    """Sheets for two people with a tall and a wide image."""
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


def test_the_ranks_typed_on_a_sheet_are_read_by_rank(survey, visit, tmp_path):  # noqa: F811
    strengths = {version.name: version.strength for version in VERSIONS}
    for number in (1, 2):
        page = visit(survey / f"sheet-0{number}.html", ready="#sheet")
        rows = behind_letters(survey, f"person 0{number}")
        fields = page.locator("#sheet input")
        assert fields.count() == len(rows) == 14
        for k, row in enumerate(rows):
            fields.nth(k).fill(str(strengths[row["segmentation"]]))
        assert page.inner_text("#status") == "14 of 14 ranks entered."
        file = f"answers-0{number}.csv"
        assert save(page, tmp_path / file) == file
        assert page.inner_text("#status") == f"Saved as {file}. Thank you."
        with open(tmp_path / file, encoding="utf-8", newline="") as saved:
            expected = [row | {"rank": str(strengths[row["segmentation"]])} for row in rows]
            assert list(csv.DictReader(saved)) == expected
    study = rank_study(read_rankings(tmp_path), read_scores(survey / "scores.csv", column="D1"))
    assert study.people == ("person 01", "person 02")
    assert len(study.points) == 14


def test_an_incomplete_task_is_saved_as_not_answered(survey, visit, tmp_path):  # noqa: F811
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
def test_the_reference_stays_visible_and_covers_nothing(survey, visit, width):  # noqa: F811
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
def test_every_task_is_printed_on_one_sheet(survey, visit, paper, landscape, tmp_path):  # noqa: F811
    page = visit(survey / "sheet-01.html", ready="#sheet")
    page.pdf(path=tmp_path / "sheet.pdf", landscape=landscape, **PAPER[paper])
    pages = re.findall(rb"/Type ?/Page\b", (tmp_path / "sheet.pdf").read_bytes())
    # The first page contains the instructions, and every task starts on a new page. An additional
    # page would contain the rest of a task without its reference.
    assert len(pages) == 1 + len(NAMES)


def test_printed_sheets_have_fields_and_no_buttons(survey, visit):  # noqa: F811
    page = visit(survey / "sheet-01.html", ready="#sheet")
    page.emulate_media(media="print")
    assert not page.is_visible("#save")
    assert page.locator("#sheet input").first.is_visible()


# --- the page of an evaluation


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The page of three methods on six small volumes, one of which failed."""
    from probdice.evaluation import evaluate

    folder = tmp_path_factory.mktemp("run")
    rows, columns = np.mgrid[:24, :30]
    for name, off in (("truth", 0), ("near", 1), ("far", 3), ("other", 2)):
        (folder / name).mkdir()
        for case in range(6):
            labels = 1 + (columns > 14 + off).astype(int) + 2 * (rows > 10 + case % 3)
            np.save(folder / name / f"case{case}.npy", np.stack([labels, labels, labels]))
    np.save(folder / "far" / "case5.npy", np.ones((2, 2), int))
    methods = {name: folder / name for name in ("near", "far", "other")}
    result = evaluate(folder / "truth", methods, out=folder / "out", workers=1)
    result.report(reports="worst:2")
    return folder / "out"


def evaluation_pages(run):
    return [run / "report.html", *(run / "report_cases").iterdir()]


def test_failures_are_in_the_headline_and_paths_are_relative(run, visit):  # noqa: F811
    page = visit(run / "report.html", ready="#cases[data-ready]")
    assert page.inner_text("p.failed").startswith("“far”: 1 failed of 6 cases.")
    page.click("p.failed a")
    assert page.url.endswith("#unscored")
    for file in evaluation_pages(run):
        assert str(run.parent) not in file.read_text(encoding="utf-8")


def test_axes_have_round_ticks_and_the_chance_level(run, visit):  # noqa: F811
    page = visit(run / "report.html", ready="#cases[data-ready]")
    dots = page.locator(".measure:not([hidden]) .dots")
    ticks = [float(text) for text in dots.locator("text.tick").all_text_contents()]
    steps = np.diff(ticks)
    assert ticks[-1] == 1 and np.allclose(steps, steps[0]) and len(ticks) <= 9
    assert round(steps[0], 6) in {0.01, 0.02, 0.05, 0.1, 0.2}
    assert "chance" in dots.text_content()


def test_every_dot_links_to_a_page_or_table_row(run, visit):  # noqa: F811
    page = visit(run / "report.html", ready="#cases[data-ready]", linked=evaluation_pages(run))
    circles = page.locator(".measure:not([hidden]) .dots circle")
    assert circles.count() == 17
    alone = [k for k in range(17) if not circles.nth(k).get_attribute("data-page")]
    circles.nth(alone[0]).dispatch_event("click")
    assert page.input_value("#filter").startswith("case")
    linked = next(k for k in range(17) if k not in alone)
    circles.nth(linked).dispatch_event("click")
    page.wait_for_url("**/report_cases/*.html")


def test_case_pages_link_to_each_other_and_to_the_report(run, visit):  # noqa: F811
    together = sorted((run / "report_cases").glob("*-all.html"))
    assert len(together) == 2
    pages = evaluation_pages(run)
    page = visit(together[0], ready=".sides", linked=pages)
    assert page.locator(".sides figure").count() == 4
    assert page.locator(".sides h2").all_inner_texts()[0] == "Reference"
    page.wait_for_selector("body[data-ready]")
    sizes = page.evaluate(
        "[...document.querySelectorAll('canvas')].map(c => c.width + 'x' + c.height)"
    )
    assert len(set(sizes)) == 1 and len(sizes) == 7
    page.click("nav.links a:has-text('next:')")
    page.wait_for_selector(".sides")
    page.click("nav.links a:has-text('near')")
    page.wait_for_selector("#viewer[data-ready]", state="attached")
    page.click("nav.links a:has-text('all methods of this case')")
    page.wait_for_selector(".sides")
    page.click("nav.links a:has-text('all cases')")
    page.wait_for_selector("#cases[data-ready]", state="attached")
    for file in pages:
        for address in re.findall(r'<a href="([^"#]+)"', file.read_text(encoding="utf-8")):
            assert (file.parent / address).exists(), (file.name, address)


def test_the_first_screen_has_the_verdict_the_plot_and_the_stability(run, visit):  # noqa: F811
    page = visit(run / "report.html", width=1400, height=900, ready="#cases[data-ready]")
    for selector in ("#conclusion", ".intervals", ".stability"):
        box = page.locator(f"{selector} >> visible=true").first.bounding_box()
        assert box["y"] + box["height"] <= 900
    names = page.locator(".measure:not([hidden]) .intervals .name").all_text_contents()
    rows = page.locator(".measure:not([hidden]) > .scroll tbody tr td:first-child")
    assert names == [text.strip() for text in rows.all_inner_texts()]
    stability = page.locator(".measure:not([hidden]) .stability").text_content()
    assert "Method" in stability and "Place" in stability


def test_the_slider_shows_every_slice_on_the_image(visit, tmp_path):  # noqa: F811
    from probdice.evaluation import evaluate

    labels = np.ones((3, 8, 10), int)
    labels[1, :, 5:] = 2
    names = ("truth", "near", "far", "scan")
    for name in names:
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "case.npy", labels if name != "far" else labels[::-1] * 0 + 1)
    np.save(tmp_path / "scan" / "case.npy", np.arange(240.0).reshape(3, 8, 10))
    methods = {name: tmp_path / name for name in ("near", "far")}
    result = evaluate(
        tmp_path / "truth", methods, out=tmp_path / "out", workers=1, image=tmp_path / "scan"
    )
    result.report(reports="all")
    (file,) = (tmp_path / "out" / "report_cases").glob("*-all.html")
    page = visit(file, ready="body[data-ready]")
    assert page.inner_text("#where") == "axis 0 slice 1"  # where far differs
    pixel = """(name) => {
        const canvas = document.querySelector(`canvas[data-layer="${name}"]`);
        const place = [Math.round(canvas.width * 0.95), Math.round(canvas.height / 2)];
        const copy = new OffscreenCanvas(1, 1).getContext("2d");
        copy.drawImage(canvas, ...place, 1, 1, 0, 0, 1, 1);
        return [...copy.getImageData(0, 0, 1, 1).data].slice(0, 3);
    }"""
    # Slice 1, row 4, column 9 is 129, or grey 138. The opacity of differences is 2 · 35 %.
    assert page.evaluate(pixel, "similarity-1") == [220, 74, 111]
    ring = """() => {
        const canvas = document.querySelector('canvas[data-layer="reference"]');
        const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
        copy.drawImage(canvas, 0, 0);
        const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
        return data.some((_, k) => k % 4 === 0 && data[k] === 255 && data[k + 1] === 232);
    }"""
    assert page.evaluate(ring)
    before = page.evaluate(pixel, "reference")
    assert page.evaluate(pixel, "regions-1") != before  # far, the second method
    page.locator("#slice").press("ArrowRight")
    assert page.inner_text("#where") == "axis 0 slice 2"
    assert not page.evaluate(ring)
    bright = page.evaluate(pixel, "")
    assert page.evaluate(pixel, "similarity-1") == bright
    # Slice 2, row 4, column 9 is 209, in a window from 1.195 to 237.805 (percentiles 0.5 and 99.5).
    assert bright == [224, 224, 224]
    page.locator("#opacity").fill("0")
    assert page.evaluate(pixel, "reference") == bright


def test_overlapping_dots_have_a_count(tmp_path, visit):  # noqa: F811
    from probdice.evaluation import evaluate

    labels = np.repeat([1, 2], 8)
    for name in ("truth", "mine"):
        (tmp_path / name).mkdir()
        for case in range(40):
            np.save(tmp_path / name / f"case{case}.npy", labels)
    result = evaluate(tmp_path / "truth", tmp_path / "mine", out=tmp_path / "out", workers=1)
    result.report(reports="none")
    page = visit(tmp_path / "out" / "report.html", ready="#cases[data-ready]")
    assert "40×" in page.locator(".measure:not([hidden]) .dots").inner_text()


@pytest.mark.parametrize("width", [380, 1280])
def test_the_page_of_an_evaluation_fits_its_window(run, visit, width):  # noqa: F811
    together = sorted((run / "report_cases").glob("*-all.html"))[0]
    for file, ready in ((run / "report.html", "#cases[data-ready]"), (together, ".sides")):
        page = visit(file, width=width, ready=ready)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_dots_are_printed_completely(run, visit):  # noqa: F811
    page = visit(run / "report.html", width=2000, ready="#cases[data-ready]")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 700, "height": 1000})  # the width of a sheet of paper
    picture = page.locator(".measure:not([hidden]) .dots svg")
    picture.wait_for()  # a slow browser has no layout right after the change of size
    frame = picture.bounding_box()
    for circle in picture.locator("circle").all():
        box = circle.bounding_box()
        assert frame["x"] <= box["x"] and box["x"] + box["width"] <= frame["x"] + frame["width"]
    assert frame["x"] + frame["width"] <= 700


def test_firefox_shows_the_pages(run, survey, tmp_path):
    import shutil
    import subprocess

    firefox = shutil.which("firefox-esr") or shutil.which("firefox")
    if firefox is None:
        unavailable("no firefox on this machine: apt-get install firefox-esr")
    from PIL import Image

    for name, file in (("evaluation", run / "report.html"), ("sheet", survey / "sheet-01.html")):
        picture = tmp_path / f"{name}.png"
        command = [firefox, "--headless", "--no-remote", "--profile", str(tmp_path / name)]
        (tmp_path / name).mkdir()
        subprocess.run(
            [*command, "--window-size", "1280,900", "--screenshot", str(picture), file.as_uri()],
            check=True,
            capture_output=True,
            timeout=120,
        )
        colours = Image.open(picture).convert("RGB").getcolors(2**24)
        assert colours is not None and len(colours) > 20  # text and pictures, not an empty page
