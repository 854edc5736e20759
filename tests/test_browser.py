"""The pages in a browser: they work, by mouse and by keyboard, and ask the network for nothing."""

import os
import re
import shutil
from itertools import pairwise

import numpy as np
import pytest

import probdice
from probdice import Geometry, Segmentation, compare, overlap
from probdice.evaluation import evaluate

HOSTILE = "<script>alert(1)</script>"
SHAPE = (14, 16, 12)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def unavailable(reason):
    """Skip, but never where all tests must run."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def browser():
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        unavailable("no chromium on this machine: apt-get install chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        unavailable("Playwright is not installed: pip install playwright")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser):
    """Opens a file; in the end nothing was fetched and nothing went wrong."""
    contexts, troubles = [], []

    def open_page(
        file, *, width=1280, height=900, scheme="light", ready="#viewer[data-ready]", linked=()
    ):
        known = {one.as_uri() for one in (file, *linked)}
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: troubles.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        page.on("dialog", lambda dialog: troubles.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: request.url in known or troubles.append(request.url))
        page.goto(file.as_uri())
        if ready:
            page.wait_for_selector(ready, state="attached")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []


def soft(regions, seed):
    values = np.random.default_rng(seed).gamma(0.4, size=(regions, *SHAPE)) + 1e-3
    return values / values.sum(axis=0)


class Volume:
    """A comparison of two volumes with hostile names, and its page."""

    def __init__(self, folder):
        self.p, self.q = soft(3, 0), soft(4, 1)
        self.mask = np.ones(SHAPE, bool)
        self.mask[:, :3] = False
        here = Geometry(SHAPE, np.diag([2.0, 2.0, 3.0, 1.0]))
        self.names = ["grey", HOSTILE, "white & <b>"]
        self.result = compare(
            Segmentation.from_probabilities(self.p, names=self.names, geometry=here),
            Segmentation.from_probabilities(self.q, names=[10, 2, 30, 4], geometry=here),
            mask=self.mask,
            merge="both",
        )
        self.f = self.result.map()
        self.file = folder / "volume.html"
        self.result.report(self.file)


@pytest.fixture(scope="module")
def volume(tmp_path_factory):
    return Volume(tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="module")
def picture(tmp_path_factory):
    """Two label maps of forty regions."""
    rows, columns = np.mgrid[:60, :80]
    labels = rows // 12 * 8 + columns // 10
    file = tmp_path_factory.mktemp("pages") / "picture.html"
    moved = np.where(rows < 24, np.roll(labels, 3, axis=1), np.roll(labels, 1, axis=1))
    compare(labels, moved).report(file)
    return file


def shown_place(page):
    text = page.inner_text(".panel[data-side=f] .where")
    return tuple(int(k) for k in re.findall(r"\d+", text))


def shown_values(page, side):
    lines = page.query_selector_all(f".panel[data-side={side}] .values li")
    return {
        line.query_selector(".name").inner_text(): line.query_selector(".amount").inner_text()
        for line in lines
    }


def point_at(page, side, x, y):
    """Point at a part of the image of a panel, from 0 to 1 in both directions."""
    canvas = page.locator(f".panel[data-side={side}] canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])


def painted(page, side):
    """Red, green, blue and opacity of the pixels of a panel."""
    values = page.evaluate(
        """(side) => {
            const canvas = document.querySelector(`.panel[data-side=${side}] canvas`);
            const image = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            return [canvas.height, canvas.width, [...image.data]];
        }""",
        side,
    )
    return np.array(values[2]).reshape(values[0], values[1], 4)


def chosen(page):
    return {
        int(element.get_attribute("data-group"))
        for element in page.query_selector_all("tbody tr.chosen")
    }


# --- pointing


@pytest.mark.parametrize("plane", ["axial", "coronal", "sagittal"])
def test_the_numbers_under_the_pointer_are_those_of_the_arrays(visit, volume, plane):
    page = visit(volume.file)
    page.check(f"input[name=plane][value={plane}]", force=True)
    for side, x, y in (("reference", 0.3, 0.4), ("prediction", 0.71, 0.13), ("f", 0.52, 0.9)):
        point_at(page, side, x, y)
        place = shown_place(page)
        if not volume.mask[place]:
            assert page.inner_text("#similarity") == "not compared"
            continue
        assert page.inner_text("#similarity") == f"{volume.f[place]:.4f}"
        for name, array, labels in (
            ("reference", volume.p, volume.names),
            ("prediction", volume.q, [10, 2, 30, 4]),
        ):
            expected = {
                str(label): f"{array[k][place]:.4f}"
                for k, label in enumerate(labels)
                if round(float(array[k][place]), 4) > 0
            }
            assert shown_values(page, name) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [("0.99996", "0.9999"), ("1", "1.0000"), ("-0.99996", "-0.9999"), ("-1e-9", "0.0000"),
     ("0.5, 2", "0.50"), ("0.999, 2", "0.99"), ("null", "–")],
)  # fmt: skip
def test_the_page_never_rounds_up_to_equality(visit, volume, value, expected):
    assert visit(volume.file).evaluate(f"decimal({value})") == expected


def test_the_pointer_is_over_the_pixel_that_is_told(visit, volume):
    page = visit(volume.file)
    # Axial: the patient's right (high index of the first axis) on the left, the front on top.
    point_at(page, "reference", 0.5 / 14, 0.5 / 16)
    assert shown_place(page)[:2] == (13, 15)
    point_at(page, "reference", 13.5 / 14, 12.5 / 16)
    assert shown_place(page)[:2] == (0, 3)


# --- what is painted


def test_the_three_ways_to_paint_the_regions(visit, volume):
    from probdice.pictures.colours import colours_of, triples

    page = visit(volume.file)
    z = shown_place(page)[2]
    turned = {
        "p": volume.p[:, ::-1, ::-1, z].transpose(2, 1, 0),
        "f": volume.f[::-1, ::-1, z].T[..., None],
        "mask": volume.mask[::-1, ::-1, z].T,
    }
    palette = 255 * triples(colours_of(volume.result).regions["reference"])
    blend = turned["p"] @ palette
    expected = {
        "probabilities": blend,
        "likely": palette[turned["p"].argmax(axis=-1)],
        "f": blend * (1 - turned["f"]) + 255 * turned["f"],
    }
    for mode, colours in expected.items():
        page.check(f"input[name=mode][value={mode}]", force=True)
        image = painted(page, "reference")
        np.testing.assert_array_equal(image[..., 3] > 0, turned["mask"])
        inside = turned["mask"]
        np.testing.assert_allclose(image[inside][:, :3], colours[inside], atol=1.5)
    grey = painted(page, "f")[turned["mask"]]
    np.testing.assert_allclose(grey[:, 0], 255 * turned["f"][turned["mask"]][:, 0], atol=1)
    assert np.ptp(grey[:, :3], axis=1).max() == 0


# --- slices, planes, zoom


def test_the_slider_and_the_keys_change_the_slice(visit, volume):
    page = visit(volume.file)
    slider = page.locator("#sliders input")
    slider.fill("4")
    assert shown_place(page)[2] == 4 and "4 (0–11)" in page.inner_text("#sliders output")
    before = painted(page, "prediction")
    page.focus(".panel[data-side=reference] canvas")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    assert shown_place(page)[2] == 6 and slider.input_value() == "6"
    assert (painted(page, "prediction") != before).any()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    assert shown_place(page)[2] == 4
    for _ in range(6):
        page.keyboard.press("ArrowLeft")
    assert shown_place(page)[2] == 0
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("ArrowRight")  # with nothing in focus, too
    assert shown_place(page)[2] == 1
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert shown_place(page)[2] == 2


def test_the_point_moves_by_keys_and_is_spoken(visit, volume):
    page = visit(volume.file)
    page.focus(".panel[data-side=f] canvas")
    x, y, z = shown_place(page)
    page.keyboard.press("Shift+ArrowUp" if y < 15 else "Shift+ArrowDown")
    page.keyboard.press("Shift+ArrowLeft" if x < 13 else "Shift+ArrowRight")
    place = (x + (1 if x < 13 else -1), y + (1 if y < 15 else -1), z)
    assert shown_place(page) == place
    spoken = page.inner_text("#spoken")
    assert str(place) in spoken
    if volume.mask[place]:
        assert f"f {volume.f[place]:.4f}" in spoken


def test_planes_show_the_other_axes(visit, volume):
    page = visit(volume.file)
    sizes = {}
    for plane in ("axial", "coronal", "sagittal"):
        page.check(f"input[name=plane][value={plane}]", force=True)
        sizes[plane] = painted(page, "f").shape[:2]
    assert sizes == {"axial": (16, 14), "coronal": (12, 14), "sagittal": (12, 16)}
    assert page.locator(".panel[data-side=f] .edge").all_inner_texts() == ["S", "P", "I", "A"]


def test_zooming_keeps_the_point_in_sight_and_the_numbers_right(visit, volume):
    page = visit(volume.file)
    wide = page.locator(".panel[data-side=f] canvas").bounding_box()["width"]
    page.click("#zoom-in")
    page.focus(".panel[data-side=f] canvas")
    page.keyboard.press("+")
    assert page.inner_text("#zoom-reset") == "4×"
    canvas = page.locator(".panel[data-side=f] canvas").bounding_box()
    assert canvas["width"] == pytest.approx(4 * wide, rel=1e-3)
    frame = page.locator(".panel[data-side=f] .frame").bounding_box()
    point = page.locator(".panel[data-side=f] .point").bounding_box()
    assert frame["x"] <= point["x"] + 1 and point["x"] < frame["x"] + frame["width"]
    page.mouse.move(frame["x"] + 50, frame["y"] + 60)
    x, *_ = shown_place(page)
    column = int((frame["x"] + 50 - canvas["x"]) / canvas["width"] * 14)
    assert x == 13 - column
    page.mouse.down()
    page.mouse.move(frame["x"] + 90, frame["y"] + 60, steps=4)
    page.mouse.up()
    moved = page.locator(".panel[data-side=f] canvas").bounding_box()
    assert moved["x"] > canvas["x"] or canvas["x"] == pytest.approx(frame["x"] + 1, abs=2)
    page.keyboard.press("0")
    assert page.inner_text("#zoom-reset") == "1×"


# --- highlighting


def test_a_group_is_highlighted_everywhere_from_wherever_it_is_chosen(visit, volume):
    page = visit(volume.file)
    plain = painted(page, "reference")
    groups = volume.result.groups
    page.click("tbody tr[data-group='1'] td:nth-child(2)")
    assert chosen(page) == {1}
    assert page.get_attribute("tbody tr[data-group='1'] .pick", "aria-pressed") == "true"
    assert page.locator(".graph .region.chosen").count() == len(
        groups[1].reference + groups[1].prediction
    )
    faded = painted(page, "reference")
    assert (faded != plain).any()
    page.keyboard.press("Escape")
    assert chosen(page) == set()
    np.testing.assert_array_equal(painted(page, "reference"), plain)
    page.locator(".graph .region[data-group='2']").first.click()
    assert chosen(page) == {2}
    page.locator(".graph .region[data-group='0']").first.focus()
    page.keyboard.press("Enter")
    assert chosen(page) == {0}
    page.locator(".legend button").nth(1).click()
    assert chosen(page) == {1}
    page.locator(".legend button").nth(1).click()
    assert chosen(page) == set()
    page.locator(".graph .link[data-group='2'] line").first.click(force=True)
    assert chosen(page) == {2}


def test_a_click_into_an_image_chooses_the_most_likely_region(visit, volume):
    page = visit(volume.file)
    point_at(page, "prediction", 0.4, 0.3)
    place = shown_place(page)
    page.mouse.down()
    page.mouse.up()
    label = [10, 2, 30, 4][int(volume.q[(slice(None), *place)].argmax())]
    (number,) = chosen(page)
    assert label in volume.result.groups[number].prediction


# --- tables


def test_the_table_is_sorted_by_a_click_on_a_heading(visit, picture):
    page = visit(picture)

    def column(number):
        return page.eval_on_selector_all(
            f".sortable tbody td:nth-child({number})",
            "cells => cells.map(cell => cell.dataset.value)",
        )

    page.click(".sortable thead button:has-text('Dice')")
    values = [float(value) for value in column(3)]
    assert values == sorted(values) and len(set(values)) > 1
    page.click(".sortable thead button:has-text('Dice')")
    assert [float(value) for value in column(3)] == sorted(values, reverse=True)
    header = page.locator(".sortable th", has=page.locator("button:has-text('Dice')"))
    assert header.get_attribute("aria-sort") == "descending"
    page.click(".sortable thead button >> text=/^Reference$/")
    assert column(1) == [str(k) for k in range(40)]  # 2 before 10


def test_a_picture_has_no_slices_and_its_keys_move_the_point(visit, picture):
    page = visit(picture)
    assert page.locator("#planes").is_hidden() and page.locator("#sliders input").count() == 0
    point_at(page, "reference", 0.5, 0.5)
    row, column = shown_place(page)
    page.focus(".panel[data-side=reference] canvas")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert shown_place(page) == (row + 1, column + 1)
    assert list(shown_values(page, "reference").values()) == ["1"]


def test_pairs_that_share_no_pixel_are_drawn_dashed(visit, tmp_path):
    reference, prediction = [1] * 6 + [2] * 2 + [3] * 8, [5] * 8 + [6] * 5 + [7] * 3
    compare(reference, prediction, match="paper").report(tmp_path / "page.html")
    page = visit(tmp_path / "page.html")
    dashes = page.eval_on_selector_all(
        ".graph .link line:not(.hit)",
        "lines => lines.map(line => [getComputedStyle(line).strokeDasharray, "
        "Number(line.getAttribute('stroke-width'))])",
    )
    # 1↔5 has a Dice of 6/7, 2↔7 of 0, 3↔6 of 10/13.
    assert [line[0] != "none" for line in dashes] == [False, True, False]
    assert [line[1] for line in dashes] == pytest.approx([6.14, 1, 5.62], abs=0.01)
    assert "1 pair shares no pixel" in page.inner_text(".key")


def test_a_page_without_images_is_whole(visit, tmp_path):
    result = overlap(soft(3, 0), soft(4, 1), similarity="aitchison").compare()
    result.report(tmp_path / "page.html")
    page = visit(tmp_path / "page.html", ready=None)
    assert page.locator("canvas").count() == 0
    assert page.inner_text(".figures .main dd >> nth=0") == "–"
    page.click(".sortable thead button:has-text('Dice')")
    assert page.locator(".groups tbody tr").count() == 4


# --- a folder run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Three methods on 70 cases, one with a hostile name; the page and its numbers."""
    folder = tmp_path_factory.mktemp("run")
    rng = np.random.default_rng(0)
    names = {"truth": 0.0, "good": 0.05, "middle": 0.2, "<i>odd": 0.4}
    for name in names:
        (folder / name).mkdir()
    for case in range(70):
        labels = rng.integers(1, 4, size=(8, 8))
        for name, share in names.items():
            wrong = np.where(rng.random((8, 8)) < share, 1, labels)
            np.save(folder / name / f"case{case}.npy", wrong)
    (folder / "good" / "case7.npy").write_bytes(b"<script>alert(1)</script>")
    methods = {name: folder / name for name in list(names)[1:]}
    result = evaluate(folder / "truth", methods, out=folder / "out", workers=1)
    return result, result.report(reports="worst:2")


def case_rows(page):
    return page.eval_on_selector_all(
        "#case-table tbody tr",
        "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))",
    )


def test_cases_come_worst_first_and_are_sorted_and_filtered(visit, run):
    evaluation, file = run
    page = visit(file, ready="#cases[data-ready]")
    scores = np.concatenate(list(evaluation.values("score").values()))
    ascending = [f"{score:.4f}" for score in np.sort(scores[~np.isnan(scores)])]
    assert [row[2] for row in case_rows(page)] == ascending[:200]
    assert page.inner_text("#count") == "200 of 209 shown"
    page.click("#more")
    assert [row[2] for row in case_rows(page)] == ascending
    assert page.locator("#more").is_hidden()
    page.click("#case-table thead button:has-text('Lowest Dice')")
    lowest = [row[8] for row in case_rows(page)]
    assert lowest == sorted(lowest)
    page.click("#case-table thead button:has-text('Case')")
    assert [row[0] for row in case_rows(page)[:4]] == ["case0", "case0", "case0", "case1"]
    page.fill("#filter", "CASE6")
    assert {row[0] for row in case_rows(page)} == {"case6", *(f"case{k}" for k in range(60, 70))}
    page.select_option("#method", label="<i>odd")
    assert len(case_rows(page)) == 11 and {row[1] for row in case_rows(page)} == {"<i>odd"}
    page.fill("#filter", "nothing like it")
    assert case_rows(page) == [] and page.inner_text("#count") == "0 of 0 shown"


def test_a_measure_is_chosen_for_tables_dots_and_cases(visit, run):
    evaluation, file = run
    page = visit(file, ready="#cases[data-ready]")
    page.check("input[name=measure][value=mean_dice]", force=True)
    shown = page.locator(".measure:visible")
    assert shown.count() == 1 and "Mean Dice" in shown.inner_text()
    dots = shown.locator("circle").evaluate_all(
        "dots => dots.map(dot => [dot.textContent, Number(dot.getAttribute('cx'))])"
    )
    assert len(dots) == 209
    titles = {text for text, _ in dots}
    values = evaluation.values("mean_dice")["middle"]
    assert {f"case{k}: {value:.4f}" for k, value in enumerate(values)} <= titles
    # Dots lie where their values say, on a line that ends at 1.
    low, high = (float(t) for t in shown.locator(".tick").all_text_contents()[::4])
    rail = shown.locator(".rail").first
    left, right = float(rail.get_attribute("x1")), float(rail.get_attribute("x2"))
    for text, x in dots:
        value = float(text.split(": ")[1])
        assert x == pytest.approx(left + (value - low) / (high - low) * (right - left), abs=0.1)
    first = case_rows(page)[0]
    everything = np.concatenate(list(evaluation.values("mean_dice").values()))
    assert first[7] == f"{np.nanmin(everything):.4f}"


def test_a_case_leads_to_its_page(visit, run):
    evaluation, file = run
    page = visit(file, ready="#cases[data-ready]", linked=(file.parent / "report_cases").iterdir())
    text = page.inner_text(".failures")
    assert "case7" in text and "<script>alert(1)</script>" in text
    assert page.locator("#case-table a").count() == 6
    case, method, score, *_ = case_rows(page)[0]
    page.locator("#case-table a").first.click()
    page.wait_for_selector("#viewer[data-ready]", state="attached")
    assert page.inner_text("h1") == f"{case} by {method}"
    assert score in page.inner_text(".figures")
    # The images are those of the files: where labels are equal f is white, and else black.
    sides = [
        np.load(os.path.join(place, f"{case}.npy"))
        for place in (evaluation.reference, evaluation.methods[method])
    ]
    colours = painted(page, "reference")
    assert colours.shape == (8, 8, 4)
    for label in (1, 2, 3):
        assert len(np.unique(colours[sides[0] == label], axis=0)) == 1
    assert len(np.unique(colours.reshape(-1, 4), axis=0)) == 3
    assert set(painted(page, "f")[..., 0].ravel()) == {0, 255}
    assert painted(page, "f")[..., 0].mean() / 255 == pytest.approx(float(score), abs=1e-4)


# --- for everybody


def test_hostile_names_stay_text(visit, volume):
    page = visit(volume.file)
    assert page.locator(f"text={HOSTILE}").count() >= 2
    page.keyboard.press("ArrowRight")
    assert page.locator(".values b").count() == 0 and page.locator("table b").count() == 0


def file_of(request, which):
    """The page of a fixture, which is made only where it is asked for."""
    made = request.getfixturevalue(which)
    return {"volume": lambda: made.file, "picture": lambda: made, "run": lambda: made[1]}[which]()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("which", ["volume", "picture", "run"])
def test_nothing_overflows_a_phone(visit, request, which, scheme):
    page = visit(file_of(request, which), width=380, scheme=scheme, ready="[data-ready]")
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
    wide = page.evaluate(
        """() => [...document.querySelectorAll("body *")]
            .filter((one) => !one.closest(".frame, .unseen, .skip, svg, script"))
            .filter((one) => one.getBoundingClientRect().right > 380.5)
            .map((one) => one.outerHTML.slice(0, 100))"""
    )
    assert wide == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("which", ["volume", "run"])
def test_axe_finds_no_serious_issue(visit, request, which, scheme):
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        unavailable("axe-core is not installed: pip install axe-playwright-python")
    page = visit(file_of(request, which), scheme=scheme, ready="[data-ready]")
    if which == "volume":
        page.click("tbody tr[data-group='1'] td:nth-child(2)")
    else:
        page.fill("#filter", "case12")  # few rows: they are all alike
    found = Axe().run(page).response["violations"]
    serious = [
        (issue["id"], [node["html"][:120] for node in issue["nodes"][:3]])
        for issue in found
        if issue["impact"] in ("serious", "critical")
    ]
    assert serious == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_of_raters_fits_a_phone_and_axe_finds_no_serious_issue(visit, tmp_path, scheme):
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        unavailable("axe-core is not installed: pip install axe-playwright-python")
    rng = np.random.default_rng(0)
    raters = {name: rng.integers(0, 4, (9, 12)) for name in ("anna", HOSTILE, "ben", "eva")}
    probdice.consensus(raters).report(tmp_path / "raters.html")
    page = visit(tmp_path / "raters.html", width=380, scheme=scheme, ready="")
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
    assert page.evaluate("[...document.images].every((one) => one.naturalWidth === 12)")
    found = Axe().run(page).response["violations"]
    assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []


def test_headings_are_in_order(visit, volume):
    page = visit(volume.file)
    levels = [
        int(tag[1])
        for tag in page.eval_on_selector_all(
            "h1, h2, h3", "headings => headings.map(heading => heading.tagName)"
        )
    ]
    assert levels[0] == 1 and all(after <= before + 1 for before, after in pairwise(levels))


def test_a_printed_page_has_images_and_the_whole_table(visit, picture):
    page = visit(picture)
    page.emulate_media(media="print")
    assert page.locator(".controls").is_hidden()
    scroll = page.locator(".scroll").last
    assert scroll.evaluate("one => one.scrollHeight <= one.clientHeight + 1")
    assert page.locator("canvas").first.is_visible()
