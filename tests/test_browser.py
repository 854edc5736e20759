"""The pages in a browser: mouse, keyboard, print, accessibility and no network requests."""

import csv
import os
import re
import shutil
import subprocess
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise, product
from threading import Event, Thread
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

import probdice
from probdice import Comparison, Geometry, Segmentation, compare, overlap
from probdice.evaluation import evaluate
from probdice.metrics.verdict import worst_group
from probdice.report import write

HOSTILE = "<script>alert(1)</script>"
DIFFERENT = np.array([255, 46, 99])  # the colour of similarity 0
SHAPE = (14, 16, 12)
FRAME = 1900  # height of a page in Firefox, in pixels
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
    """Skip the test, or fail if all tests must run."""
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
    """Opens files, and fails after any network request or console message."""
    contexts, problems = [], []

    def open_page(
        file,
        *,
        address=None,
        width=1280,
        height=900,
        scheme="light",
        ready="#viewer[data-ready]",
        linked=(),
    ):
        known = {one.as_uri() for one in (file, *linked)}
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: problems.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        page.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))
        page.on(
            "request",
            lambda request: (
                request.url.split("#")[0] in known
                or request.url.startswith(("data:", "blob:"))
                or problems.append(request.url)
            ),
        )
        page.goto(address or file.as_uri())
        if ready:
            page.wait_for_selector(ready, state="attached")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []


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


class Scan:
    """Two label maps with background on an image, in slices that are thick along the first axis."""

    def __init__(self, folder):
        shape = (6, 20, 24)
        geometry = Geometry(shape, np.diag([5.0, 1.0, 1.0, 1.0]))
        self.reference = np.zeros(shape, int)
        self.reference[1:5, 5:13, 6:12] = 1
        self.reference[1:5, 5:13, 12:18] = 2
        self.prediction = self.reference.copy()
        self.prediction[1:5, 5:13, 12:13] = 1
        self.prediction[3, 8:13, 12:18] = 0  # largest error of region 2
        self.scan = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        self.result = compare(
            Segmentation.from_labels(self.reference, geometry=geometry, names={2: "tumour"}),
            Segmentation.from_labels(self.prediction, geometry=geometry, names={2: "tumour"}),
        )
        self.file = folder / "scan.html"
        write(
            self.result,
            self.file,
            image=[self.scan, -self.scan],
            command="probdice compare 'a b.nii' c.nii --image t1.nii",
        )


@pytest.fixture(scope="module")
def scan(tmp_path_factory):
    return Scan(tmp_path_factory.mktemp("pages"))


def shown_place(page):
    text = page.inner_text("#where").split("·")[0]
    return tuple(int(k) for k in re.findall(r"\d+", text))


def shown_values(page, side):
    lines = page.query_selector_all(f"#values-{side} li")
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


def painted(page, side, plane=None):
    """Red, green, blue and opacity of the pixels of a panel."""
    which = f".panel[data-side={side}]" + (f"[data-plane={plane}]" if plane else "")
    values = page.evaluate(
        """(which) => {
            const canvas = document.querySelector(`${which} canvas`);
            const image = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            return [canvas.height, canvas.width, [...image.data]];
        }""",
        which,
    )
    return np.array(values[2]).reshape(values[0], values[1], 4)


def chosen(page):
    return {
        int(element.get_attribute("data-group"))
        for element in page.query_selector_all("tbody tr.chosen")
    }


# --- pointing


def test_values_under_the_pointer_equal_the_arrays(visit, volume):
    page = visit(volume.file)
    points = (("reference", 0.3, 0.4), ("prediction", 0.71, 0.13), ("f", 0.52, 0.9))
    for plane, (side, x, y) in product(("axial", "coronal", "sagittal"), points):
        page.check(f"input[name=plane][value={plane}]", force=True)
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


def test_the_page_never_rounds_up_to_equality(visit, volume):
    texts = {
        "0.99996": "0.9999",
        "1": "1.0000",
        "-0.99996": "-0.9999",
        "-1e-9": "0.0000",
        "0.5, 2": "0.50",
        "0.999, 2": "0.99",
        "null": "–",
    }
    calls = ", ".join(f"decimal({value})" for value in texts)
    assert visit(volume.file).evaluate(f"[{calls}]") == list(texts.values())


def test_the_page_shows_the_index_of_the_pixel_under_the_pointer(visit, volume):
    page = visit(volume.file)
    # Axial: the patient's right (high index of the first axis) on the left, the front on top.
    point_at(page, "reference", 0.5 / 14, 0.5 / 16)
    assert shown_place(page)[:2] == (13, 15)
    point_at(page, "reference", 13.5 / 14, 12.5 / 16)
    x, y, z = shown_place(page)
    assert (x, y) == (0, 3)
    text = page.inner_text("#where")
    assert f"· 0.0, 6.0, {3 * z:.1f} mm" in text


def test_a_click_moves_the_cross_hair_in_all_three_planes(visit, volume):
    page = visit(volume.file)
    page.check("input[name=plane][value=all]", force=True)
    planes = ("axial", "coronal", "sagittal")
    before = {plane: painted(page, "reference", plane) for plane in planes}
    canvas = page.locator(".panel[data-plane=axial] canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.click(box["x"] + 3.5 / 14 * box["width"], box["y"] + 4.5 / 16 * box["height"])
    x, y, z = shown_place(page)
    assert (x, y) == (10, 11)
    np.testing.assert_array_equal(painted(page, "reference", "axial"), before["axial"])
    # The other planes now contain that pixel, with the same colours.
    axial = painted(page, "reference", "axial")[15 - 11, 13 - 10]
    np.testing.assert_array_equal(painted(page, "reference", "coronal")[11 - z, 13 - 10], axial)
    np.testing.assert_array_equal(painted(page, "reference", "sagittal")[11 - z, 15 - 11], axial)
    values = page.locator("#sliders input").evaluate_all("all => all.map(one => one.value)")
    assert sorted(map(int, values)) == sorted((x, y, z))


# --- colours


def test_the_three_display_modes(visit, volume):
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
    f = turned["f"][turned["mask"]]
    mixed = 255 * f + DIFFERENT * (1 - f)
    np.testing.assert_allclose(painted(page, "f")[turned["mask"]][:, :3], mixed, atol=1)
    mean = np.nanmean(np.where(volume.mask[..., z], volume.f[..., z], np.nan))
    assert page.inner_text(".panel[data-side=f] .mean") == f"slice {mean:.4f}"


def test_label_maps_show_regions_without_probabilities(visit, picture):
    page = visit(picture)
    modes = page.eval_on_selector_all("input[name=mode]", "all => all.map(one => one.value)")
    assert modes == ["probabilities", "f"]
    assert page.inner_text("input[name=mode][value=probabilities] + span") == "Regions"
    rows, columns = np.mgrid[:60, :80]
    labels = rows // 12 * 8 + columns // 10
    moved = np.where(rows < 24, np.roll(labels, 3, axis=1), np.roll(labels, 1, axis=1))
    expected = np.where((labels == moved)[..., None], 255, DIFFERENT)
    np.testing.assert_array_equal(painted(page, "f")[..., :3], expected)
    assert page.locator(".values .amount").count() == 0


def test_equal_pixels_have_the_colour_of_the_page_in_the_dark_theme(visit, picture):
    page = visit(picture, scheme="dark")
    assert set(painted(page, "f")[..., 1].ravel().tolist()) == {35, DIFFERENT[1]}


# --- plot of Dice


def test_the_plot_lists_regions_worst_first_and_follows_the_pointer(visit, scan):
    page = visit(scan.file)
    names = page.locator(".bars .name").all_inner_texts()
    dice = [float(text) for text in page.locator(".bars .value").all_inner_texts()]
    groups = sorted(scan.result.groups, key=lambda group: group.dice)
    assert names == [str(group.reference[0]) for group in groups]
    assert dice == pytest.approx([group.dice for group in groups], abs=5e-5)
    point_at(page, "reference", 0.5, 0.5)
    label = scan.reference[shown_place(page)]
    name = {0: "0", 1: "1", 2: "tumour"}[int(label)]
    if label:
        assert page.inner_text(".bars .pointed .name") == name
    page.locator(".bars button", has_text="tumour").click()
    place = shown_place(page)
    assert scan.reference[place] == 2 or scan.prediction[place] == 2
    page.keyboard.press("Escape")
    page.focus(".panel[data-side=reference] canvas")
    page.keyboard.press("Enter")
    assert page.locator(".bars .chosen").count() == 1


def test_the_first_screen_has_verdict_tiles_plot_and_images(visit, scan):
    page = visit(scan.file, width=1400)
    for part in (".verdict", ".tiles", ".bars li >> nth=2", ".panels canvas >> nth=0"):
        box = page.locator(part).bounding_box()
        assert box["y"] < 700, part
    readout = page.locator(".readout").bounding_box()
    assert readout["y"] + readout["height"] < 900
    frame = page.locator(".panel[data-side=contours] .frame").bounding_box()
    assert frame["y"] + frame["height"] < 900
    assert page.locator(".tiles > div").count() == 5
    assert page.locator(".warnings .notes li").count() <= 2
    slider = page.locator("#sliders").bounding_box()
    assert slider["width"] == page.locator("#viewer").bounding_box()["width"]


def test_a_long_diagram_is_drawn_as_far_as_it_is_scrolled(visit, tmp_path):
    labels = np.arange(400).repeat(6).reshape(40, 60)
    compare(labels, labels.T.reshape(40, 60)[::-1]).report(tmp_path / "page.html")
    page = visit(tmp_path / "page.html")
    drawn = page.locator(".graph .region").count()
    assert 100 <= drawn < 400
    page.locator(".graph").evaluate("graph => { graph.closest('.scroll').scrollTop = 1e6; }")
    page.wait_for_function("document.querySelectorAll('.graph .region').length === 800")
    assert page.locator(".graph .region[aria-label^='prediction']").count() == 400


# --- initial view


def test_the_page_opens_at_the_worst_region_of_headline_plot_and_table(visit, tmp_path):
    reference = np.zeros((6, 40, 40), int)
    reference[:, :20] = 1
    reference[4, 30:34, 30:34] = 2  # unmatched
    reference[2, 5, 5] = 3  # unmatched, smaller
    prediction = np.zeros((6, 40, 40), int)
    prediction[:, :12] = 1  # most voxels that differ
    compare(reference, prediction).report(tmp_path / "page.html")
    page = visit(tmp_path / "page.html")
    assert "reference region 2, unmatched" in page.inner_text(".tiles")
    assert "the largest is reference region 2;" in page.inner_text(".verdict")
    assert page.locator(".bars .name").first.inner_text() == "2"
    assert page.locator(".groups tbody tr").first.locator("td").first.inner_text() == "2"
    assert page.inner_text("#place") == "1 of 4: reference region 2"
    assert reference[shown_place(page)] == 2
    assert page.inner_text(".bars .pointed .name") == "2"
    page.click("#next-place")
    assert page.inner_text("#place") == "2 of 4: reference region 3"
    assert shown_place(page) == (2, 5, 5)


def test_the_page_opens_at_the_largest_difference_zoomed_to_the_foreground(visit, scan):
    page = visit(scan.file)
    assert page.locator("input[name=plane]:checked").input_value() == "sagittal"
    place = shown_place(page)
    assert scan.reference[place] != scan.prediction[place] and place[0] == 3
    *_, w, h = map(float, page.get_attribute(".overlay", "viewBox").split())
    # Rows 5–12 and columns 6–17 are not background. The image is drawn with superior at the top.
    assert 10 <= w <= 18 and 12 <= h <= 22
    assert w < 20 or h < 24


def test_a_ring_marks_the_worst_place(visit, scan):
    page = visit(scan.file)
    ring = page.locator(".panels ellipse.ring:not(.wide)").first
    assert ring.is_visible()
    page.locator(".panels canvas").first.press("Shift+ArrowRight")
    assert not ring.is_visible()
    page.click("#next-place")
    assert ring.is_visible()


def test_selecting_a_row_shows_the_worst_slice_of_its_group(visit, scan):
    page = visit(scan.file, height=500)
    row = page.locator(".groups tbody tr", has_text="tumour")
    assert row.locator("td").nth(0).inner_text() == "tumour"
    page.locator("#sliders input").fill("0")
    row.locator("td").nth(1).click()
    place = shown_place(page)
    assert place[0] == 3 and 2 in (scan.reference[place], scan.prediction[place])
    assert scan.reference[place] != scan.prediction[place]
    page.wait_for_function("document.querySelector('#viewer').getBoundingClientRect().top < 5")
    assert re.fullmatch(r"place 1 of \d+: tumour", page.inner_text("#place"))
    page.click("#next-place")
    assert "place 2 of" in page.inner_text("#place") and shown_place(page) != place
    page.click("#previous-place")
    assert shown_place(page) == place
    page.focus("canvas >> nth=0")
    page.keyboard.press("n")
    assert "place 2 of" in page.inner_text("#place")


# --- background images


def test_regions_are_painted_on_the_image(visit, scan):
    from probdice.pictures.colours import colours_of, triples

    page = visit(scan.file)
    k = shown_place(page)[0]
    data = page.evaluate("pixels.then(({data}) => data.images.map(({window, name}) => window))")
    low, high = data[0]
    turned = scan.scan[k].T[::-1, ::-1]  # sagittal: the nose to the left, the top up
    grey = np.clip(np.rint(255 * (turned - low) / (high - low)), 0, 255)
    np.testing.assert_allclose(painted(page, "contours")[..., 0], grey, atol=2)
    labels = scan.reference[k].T[::-1, ::-1]
    page.locator("#opacity").fill("25")
    palette = 255 * triples(colours_of(scan.result).regions["reference"])
    shown = painted(page, "reference")[..., :3]
    for label in (1, 2):
        expected = 0.75 * grey[labels == label][:, None] + 0.25 * palette[label]
        np.testing.assert_allclose(shown[labels == label], expected, atol=3)
    np.testing.assert_allclose(
        shown[labels == 0], np.repeat(grey[labels == 0][:, None], 3, 1), atol=2
    )
    differ = (scan.reference[k] != scan.prediction[k]).T[::-1, ::-1]
    red = painted(page, "f")[..., :3]
    assert (np.ptp(red, axis=2) > 20)[differ].all() and np.ptp(red[~differ], axis=1).max() == 0
    page.select_option("#image", "1")
    np.testing.assert_array_less(painted(page, "contours")[0, 0, 0], 256)
    assert (painted(page, "contours")[..., 0] != grey).any()
    page.locator("#width").fill("1")
    assert len(np.unique(painted(page, "contours")[..., 0])) <= 8


def test_contours_of_label_maps_follow_pixel_edges(visit, scan):
    page = visit(scan.file)
    paths = page.eval_on_selector_all(
        ".panel[data-side=contours] .contour", "all => all.map(one => one.getAttribute('d'))"
    )

    def length(path):
        moves = re.findall(r"M(\d+) (\d+)([HV])(\d+)", path)
        return sum(abs(int(to) - int(x if kind == "H" else y)) for x, y, kind, to in moves)

    def edges(image):
        framed = np.pad(image, 1)
        return (framed[1:] != framed[:-1]).sum() + (framed[:, 1:] != framed[:, :-1]).sum()

    k = shown_place(page)[0]
    worst = worst_group(scan.result.groups)
    label = scan.result.labels("reference").index(worst.reference[0])
    sides = (scan.reference[k], scan.prediction[k])
    # The contours of the worst region are emphasised, and all others are faint.
    for faint, strong, image in zip(paths[:2], paths[2:], sides, strict=True):
        assert length(strong) == edges(image == label) > 0
        assert length(faint) + length(strong) == edges(image)


def test_contours_of_probabilities_have_one_value(visit, tmp_path):
    rows, columns = np.mgrid[:41, :41]
    inside = np.clip(1 - np.hypot(rows - 20, columns - 20) / 20, 0, 1)
    values = np.stack([1 - inside, inside])
    result = compare(
        Segmentation.from_probabilities(values, names=["background", "ball"]),
        Segmentation.from_probabilities(values, names=["background", "ball"]),
    )
    result.report(tmp_path / "page.html", image=inside)
    page = visit(tmp_path / "page.html")

    def distances():
        path = "".join(
            page.eval_on_selector_all(
                ".panel[data-side=contours] .contour",
                "all => all.map(one => one.getAttribute('d'))",
            )[::2]
        )
        points = np.array(re.findall(r"[ML]([\d.]+) ([\d.]+)", path), float)
        return np.hypot(*(points - 20.5).T)

    assert np.allclose(distances(), 10, atol=0.1)
    page.fill("#levels", "0.25, 0.8")
    page.keyboard.press("Enter")
    far = distances()
    assert np.allclose(np.where(far > 10, 15, 4), far, atol=0.15)
    assert (far > 10).any() and (far < 10).any()


# --- slices, planes, zoom


def test_the_slider_the_keys_and_the_wheel_change_the_slice(visit, volume):
    page = visit(volume.file)
    slider = page.locator("#sliders input")
    slider.fill("4")
    assert shown_place(page)[2] == 4
    assert "4 (0–11) · 12.0 mm" in page.inner_text("#sliders output")
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
    page.keyboard.press("ArrowRight")  # also without focus
    assert shown_place(page)[2] == 1
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert shown_place(page)[2] == 2
    point_at(page, "f", 0.5, 0.5)
    page.mouse.wheel(0, -100)
    page.wait_for_function("document.querySelector('#sliders input').value === '3'")
    page.mouse.wheel(0, 100)
    page.wait_for_function("document.querySelector('#sliders input').value === '2'")


def test_keys_move_the_cross_hair_and_screen_readers_announce_it(visit, volume):
    page = visit(volume.file)
    page.focus(".panel[data-side=f] canvas")
    x, y, z = shown_place(page)
    page.keyboard.press("Shift+ArrowUp" if y < 15 else "Shift+ArrowDown")
    page.keyboard.press("Shift+ArrowLeft" if x < 13 else "Shift+ArrowRight")
    place = (x + (1 if x < 13 else -1), y + (1 if y < 15 else -1), z)
    assert shown_place(page) == place
    spoken = page.inner_text("#announcement")
    assert str(place) in spoken
    if volume.mask[place]:
        assert f"similarity {volume.f[place]:.4f}" in spoken


def test_planes_show_the_other_axes(visit, volume):
    page = visit(volume.file)
    sizes = {}
    for plane in ("axial", "coronal", "sagittal"):
        page.check(f"input[name=plane][value={plane}]", force=True)
        sizes[plane] = painted(page, "f").shape[:2]
    assert sizes == {"axial": (16, 14), "coronal": (12, 14), "sagittal": (12, 16)}
    assert page.locator(".panel[data-side=f] .edge").all_inner_texts() == ["S", "P", "I", "A"]


def test_zooming_keeps_the_cross_hair_visible_and_values_correct(visit, volume):
    page = visit(volume.file)
    wide = page.locator(".panel[data-side=f] canvas").bounding_box()["width"]
    page.click("#zoom-in")
    page.focus(".panel[data-side=f] canvas")
    for _ in range(2):
        page.keyboard.press("+")
    assert page.inner_text("#zoom-reset") == "3.4×"
    canvas = page.locator(".panel[data-side=f] canvas").bounding_box()
    assert canvas["width"] == pytest.approx(1.5**3 * wide, rel=1e-3)
    frame = page.locator(".panel[data-side=f] .frame").bounding_box()
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
    assert page.inner_text("#zoom-reset") == "Fit"


# --- highlighting


def test_a_selected_group_is_highlighted_in_all_elements(visit, volume):
    page = visit(volume.file)
    groups = volume.result.groups
    page.click("tbody tr[data-group='1'] td:nth-child(2)")
    assert chosen(page) == {1}
    assert page.get_attribute("tbody tr[data-group='1'] .pick", "aria-pressed") == "true"
    assert page.locator(".graph .region.chosen").count() == len(
        groups[1].reference + groups[1].prediction
    )
    faded = painted(page, "reference")
    page.keyboard.press("Escape")
    assert chosen(page) == set()
    assert (painted(page, "reference") != faded).any()
    page.locator(".graph .region[data-group='2']").first.click()
    assert chosen(page) == {2}
    page.locator(".graph .region[data-group='0']").first.focus()
    page.keyboard.press("Enter")
    assert chosen(page) == {0}
    page.locator(".bars button[data-group='1']").click()
    assert chosen(page) == {1}
    page.locator(".bars button[data-group='1']").click()
    assert chosen(page) == set()
    page.locator(".graph .link[data-group='2'] line").first.click(force=True)
    assert chosen(page) == {2}


def test_a_double_click_selects_the_most_likely_region(visit, volume):
    page = visit(volume.file)
    point_at(page, "prediction", 0.4, 0.3)
    place = shown_place(page)
    canvas = page.locator(".panel[data-side=prediction] canvas")
    box = canvas.bounding_box()
    page.mouse.dblclick(box["x"] + 0.4 * box["width"], box["y"] + 0.3 * box["height"])
    label = [10, 2, 30, 4][int(volume.q[(slice(None), *place)].argmax())]
    (number,) = chosen(page)
    assert label in volume.result.groups[number].prediction


# --- tables


def test_the_table_is_sorted_worst_first_and_can_be_sorted_and_filtered(visit, picture):
    page = visit(picture)

    def column(number):
        return page.eval_on_selector_all(
            f".sortable tbody tr:not([hidden]) td:nth-child({number})",
            "cells => cells.map(cell => cell.dataset.value)",
        )

    header = page.locator(".sortable th", has=page.locator("button:has-text('Dice')"))
    values = [float(value) for value in column(3)]
    assert values == sorted(values) and len(set(values)) > 1
    assert header.get_attribute("aria-sort") == "ascending"
    page.click(".sortable thead button:has-text('Dice')")
    assert [float(value) for value in column(3)] == sorted(values, reverse=True)
    assert header.get_attribute("aria-sort") == "descending"
    page.click(".sortable thead button >> text=/^Reference$/")
    assert column(1) == [str(k) for k in range(40)]  # 2 before 10
    page.fill("#group-filter", "3")
    assert column(1) == ["3", "13", "23", *(str(k) for k in range(30, 40))]
    assert page.inner_text("#group-count") == "13 of 40 shown"


def test_the_table_and_the_diagram_are_one_tab_stop_each(visit, picture):
    page = visit(picture)
    assert page.locator("tbody .pick[tabindex='0']").count() == 1
    assert page.locator(".graph .region[tabindex='0']").count() == 1
    stops = page.evaluate(
        """() => [...document.querySelectorAll("a[href], button, input, select, [tabindex]")]
            .filter((one) => one.tabIndex >= 0 && one.getClientRects().length).length"""
    )
    assert stops < 45
    page.locator("tbody .pick[tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    second = page.locator("tbody tr").nth(1)
    assert second.locator(".pick").evaluate("one => one === document.activeElement")
    page.keyboard.press("Enter")
    assert chosen(page) == {int(second.get_attribute("data-group"))}


def test_a_2d_image_has_no_slices_and_keys_move_the_cross_hair(visit, picture):
    page = visit(picture)
    assert page.locator("#planes").is_hidden() and page.locator("#sliders input").count() == 0
    row, column = shown_place(page)
    page.focus(".panel[data-side=reference] canvas")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowDown" if row < 59 else "ArrowUp")
    assert shown_place(page) == (row + (1 if row < 59 else -1), max(column - 1, 0))


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


def test_a_page_without_images_has_all_other_sections(visit, tmp_path):
    result = overlap(soft(3, 0), soft(4, 1), similarity="aitchison").compare()
    result.report(tmp_path / "page.html")
    page = visit(tmp_path / "page.html", ready="main[data-ready]")
    assert page.locator("canvas").count() == 0
    assert page.inner_text(".tiles dd >> nth=0") == "–"
    page.click(".sortable thead button:has-text('Dice')")
    assert page.locator(".groups tbody tr").count() == 4


# --- export


def test_a_link_restores_the_view(visit, scan):
    page = visit(scan.file)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.check("input[name=plane][value=axial]", force=True)
    page.check("input[name=mode][value=f]", force=True)
    page.locator(".groups tbody tr", has_text="tumour").locator(".pick").click()
    page.click("#zoom-in")
    page.locator("#opacity").fill("80")
    page.select_option("#image", "1")
    page.locator("#sliders input").fill("9")
    place, seen = shown_place(page), painted(page, "prediction")
    window = page.get_attribute(".overlay", "viewBox")
    page.click("#copy-link")
    link = page.evaluate("navigator.clipboard.readText()")
    assert link.startswith(scan.file.as_uri() + "#")
    other = visit(scan.file, address=link)
    assert shown_place(other) == place and place[2] == 9
    np.testing.assert_array_equal(painted(other, "prediction"), seen)
    assert other.get_attribute(".overlay", "viewBox") == window
    assert other.locator("input[name=plane]:checked").input_value() == "axial"
    assert chosen(other) == chosen(page) and other.locator("#opacity").input_value() == "80"


def test_an_invalid_link_opens_the_initial_view(visit, scan):
    plain = shown_place(visit(scan.file))
    for nonsense in ("at=a.b.c", "at=99.-5.3&plane=x&zoom=-1&group=77&window=3_3"):
        page = visit(scan.file, address=f"{scan.file.as_uri()}#{nonsense}")
        assert all(0 <= k < n for k, n in zip(shown_place(page), (6, 20, 24), strict=True))
        if "99" not in nonsense:
            assert shown_place(page) == plain


def test_numbers_and_the_command_can_be_exported(visit, scan):
    page = visit(scan.file)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    with page.expect_download() as download:
        page.click("#save-csv")
    assert download.value.suggested_filename == "scan-groups.csv"
    rows = list(csv.DictReader(download.value.path().read_text().splitlines()))
    tumour = next(group for group in scan.result.groups if group.reference == ("tumour",))
    (row,) = [row for row in rows if row["reference"] == "tumour"]
    assert float(row["dice"]) == pytest.approx(tumour.dice)
    assert float(row["reference_volume_ml"]) == pytest.approx(tumour.reference_volume * 5 / 1000)
    with page.expect_download() as download:
        page.click("#save-json")
    stored = Comparison.from_json(download.value.path().read_text())
    assert stored.score == scan.result.score and stored.groups == scan.result.groups
    page.click("#copy-command")
    text = page.evaluate("navigator.clipboard.readText()")
    assert text == "probdice compare 'a b.nii' c.nii --image t1.nii"


def test_saved_tables_contain_no_formulas(visit, tmp_path):
    labels = np.repeat(np.arange(4), 10).reshape(8, 5)
    names = {0: "=1+1", 1: "'quoted", 2: "-3", 3: "@x, y"}
    segmentation = Segmentation.from_labels(labels, names=names)
    compare(segmentation, segmentation).report(tmp_path / "formulas.html")
    page = visit(tmp_path / "formulas.html")
    with page.expect_download() as download:
        page.click("#save-csv")
    rows = list(csv.DictReader(download.value.path().read_text().splitlines()))
    assert [row["reference"] for row in rows] == ["'=1+1", "''quoted", "-3", "'@x, y"]


def test_every_picture_is_saved_as_png_and_svg(visit, scan):
    page = visit(scan.file)
    for side in ("contours", "reference", "prediction", "f"):
        panel = page.locator(f".panel[data-side={side}]")
        with page.expect_download() as download:
            panel.locator("button", has_text="PNG").click()
        name = download.value.suggested_filename
        assert name == f"scan-{'similarity' if side == 'f' else side}-sagittal-3.png"
        with Image.open(download.value.path()) as image:
            assert image.width >= 900 and len(image.getcolors(10**6)) > 1
        with page.expect_download() as download:
            panel.locator("button", has_text="SVG").click()
        drawing = ElementTree.parse(download.value.path()).getroot()
        namespace = "{http://www.w3.org/2000/svg}"
        (picture,) = drawing.iter(f"{namespace}image")
        assert picture.get("href").startswith("data:image/png;base64,")
        assert len(list(drawing.iter(f"{namespace}path"))) == (4 if side == "contours" else 0)
    for suffix in ("png", "svg"):
        with page.expect_download() as download:
            page.click(f"#graph-{suffix}")
        assert download.value.suggested_filename == f"scan-correspondence.{suffix}"


# --- evaluation


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The page of three methods on 70 cases, one with a hostile name."""
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


def test_cases_are_sorted_worst_first_and_can_be_sorted_and_filtered(visit, run):
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


def test_the_selected_measure_applies_to_tables_dots_and_cases(visit, run):
    evaluation, file = run
    page = visit(file, ready="#cases[data-ready]")
    page.check("input[name=measure][value=mean_dice]", force=True)
    shown = page.locator(".measure:visible")
    assert shown.count() == 1 and "Mean Dice" in shown.inner_text()
    dots = shown.locator(".dots circle").evaluate_all(
        "dots => dots.map(dot => [dot.textContent, Number(dot.getAttribute('cx'))])"
    )
    assert len(dots) == 209
    titles = {text for text, _ in dots}
    values = evaluation.values("mean_dice")["middle"]
    assert {f"case{k}: {value:.4f}" for k, value in enumerate(values)} <= titles
    # Dots are at their values on an axis that ends at 1.
    ticks = shown.locator(".dots .tick")
    low, high = (float(tick.text_content()) for tick in (ticks.first, ticks.last))
    left, right = (float(tick.get_attribute("x")) for tick in (ticks.first, ticks.last))
    assert high == 1
    for text, x in dots:
        value = float(text.split(": ")[1])
        assert x == pytest.approx(left + (value - low) / (high - low) * (right - left), abs=0.1)
    first = case_rows(page)[0]
    everything = np.concatenate(list(evaluation.values("mean_dice").values()))
    assert first[7] == f"{np.nanmin(everything):.4f}"


def test_a_case_links_to_its_page(visit, run):
    evaluation, file = run
    page = visit(file, ready="#cases[data-ready]", linked=(file.parent / "report_cases").iterdir())
    text = page.inner_text(".failures")
    assert "case7" in text and "<script>alert(1)</script>" in text
    # There are pages of the two worst cases of each of the three methods, and of all methods for
    # the two cases that are worst on average. The latter two cases are also shown side by side.
    assert page.locator("#case-table a:not(.quiet)").count() == 10
    assert page.locator("#case-table a.quiet").count() == 6
    case, method, score, *_ = case_rows(page)[0]
    case = case.removesuffix(" all methods")
    page.locator("#case-table a").first.click()
    page.wait_for_selector("#viewer[data-ready]", state="attached")
    assert page.inner_text("h1") == f"{case} by {method}, compared with truth"
    assert score in page.inner_text(".figures:not(.tiles)")
    # The images show the files: f is white where the labels are equal, and red elsewhere.
    sides = [
        np.load(os.path.join(place, f"{case}.npy"))
        for place in (evaluation.reference, evaluation.methods[method])
    ]
    colours = painted(page, "reference")
    assert colours.shape == (8, 8, 4)
    for label in (1, 2, 3):
        assert len(np.unique(colours[sides[0] == label], axis=0)) == 1
    assert len(np.unique(colours.reshape(-1, 4), axis=0)) == 3
    green = painted(page, "f")[..., 1]
    assert set(green.ravel().tolist()) == {DIFFERENT[1], 255}
    assert (green == 255).mean() == pytest.approx(float(score), abs=1e-4)


# --- accessibility


def test_hostile_names_are_escaped(visit, volume):
    page = visit(volume.file)
    assert page.locator(f"text={HOSTILE}").count() >= 2
    page.keyboard.press("ArrowRight")
    assert page.locator(".values b").count() == 0 and page.locator("table b").count() == 0


def file_of(request, which):
    """The page of a fixture, created on demand."""
    made = request.getfixturevalue(which)
    if which == "run":
        return made[1]
    return made if which == "picture" else made.file


@pytest.mark.parametrize("which", ["volume", "picture", "scan", "run"])
def test_nothing_overflows_on_a_phone(visit, request, which):
    page = visit(file_of(request, which), width=380, ready="[data-ready]")
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
    wide = page.evaluate(
        """() => [...document.querySelectorAll("body *")]
            .filter((one) => !one.closest(".frame, .unseen, .skip, svg, script"))
            .filter((one) => one.getBoundingClientRect().right > 380.5)
            .map((one) => one.outerHTML.slice(0, 100))"""
    )
    assert wide == []


def serious_issues(page):
    """The violations that axe reports: all rules in the light theme, contrast in the dark theme."""
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        unavailable("axe-core is not installed: pip install axe-playwright-python")
    found = Axe().run(page).response["violations"]
    page.emulate_media(color_scheme="dark")
    found += Axe().run(page, options={"runOnly": ["color-contrast"]}).response["violations"]
    return [
        (issue["id"], [node["html"][:120] for node in issue["nodes"][:3]])
        for issue in found
        if issue["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("which", ["volume", "scan", "run"])
def test_axe_finds_no_serious_issue(visit, request, which):
    page = visit(file_of(request, which), ready="[data-ready]")
    if which != "run":
        page.click("tbody tr[data-group='1'] td:nth-child(2)")
    else:
        page.fill("#filter", "case12")  # few rows suffice, because all are alike
    assert serious_issues(page) == []


def test_the_page_of_raters_fits_a_phone_and_shows_the_dice_of_every_region(visit, tmp_path):
    rng = np.random.default_rng(0)
    raters = {name: rng.integers(0, 4, (9, 12)) for name in ("anna", HOSTILE, "ben", "eva")}
    consensus = probdice.consensus(raters)
    consensus.report(tmp_path / "raters.html")
    page = visit(tmp_path / "raters.html", width=380, ready="body[data-ready]")
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
    assert page.locator("canvas.slice").count() == 3 + 4  # outlines, consensus and disagreement
    page.select_option("#region", label="2")
    (region,) = [one for one in consensus.agreement.regions if one.label == 2]
    order = list(consensus.agreement.order)
    expected = region.dice[np.ix_(order, order)]
    cells = page.locator("#region-matrix tbody td").all_inner_texts()
    for text, value in zip(cells, expected.ravel(), strict=True):
        assert text in ("–", f"{value:.3f}")
    assert cells.count("–") == 4
    assert serious_issues(page) == []


def test_outlines_of_one_region_or_of_all(visit, tmp_path):
    first = np.zeros((12, 12), int)
    first[1:4, 1:4], first[6:11, 6:11] = 1, 2
    second = np.roll(first, 1, axis=0)
    probdice.consensus({"a": first, "b": second}, match="labels").report(tmp_path / "raters.html")
    page = visit(tmp_path / "raters.html", ready="body[data-ready]")
    coloured = """() => {
        const canvas = document.querySelector('canvas[data-layer="outlines"]');
        const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
        copy.drawImage(canvas, 0, 0);
        const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
        const half = canvas.height / 2;
        const counts = [0, 0];
        for (let k = 0; k < data.length; k += 4) {
            const rgb = data.slice(k, k + 3);
            // Colours of raters are saturated, unlike the pale regions below.
            const saturated = Math.max(...rgb) - Math.min(...rgb) > 150;
            counts[Number(k / 4 / canvas.width >= half)] += saturated;
        }
        return counts;
    }"""
    top, bottom = page.evaluate(coloured)
    assert top > 0 and bottom == 0  # region 1 is the worst: Dice 12/18, and 40/50 for region 2
    page.select_option("#outlined", label="all regions")
    top, bottom = page.evaluate(coloured)
    assert top > 0 and bottom > 0


def test_the_matrices_of_all_regions_are_printed(visit, tmp_path):
    rng = np.random.default_rng(0)
    consensus = probdice.consensus({name: rng.integers(0, 4, (9, 12)) for name in "abc"})
    consensus.report(tmp_path / "raters.html")
    page = visit(tmp_path / "raters.html", ready="body[data-ready]")
    count = page.locator(".matrices > div").count()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    printed = page.locator(".matrices > div")
    assert printed.count() == count + 3
    worst_first = sorted(consensus.agreement.regions, key=lambda region: region.mean_dice)
    order = list(consensus.agreement.order)
    for k, region in enumerate(worst_first):
        cells = printed.nth(k).locator("tbody td").all_inner_texts()
        assert cells[1] == f"{region.dice[order[0], order[1]]:.3f}"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator(".matrices > div").count() == count


def test_the_picture_follows_the_numbers_on_a_phone(visit, scan):
    page = visit(scan.file, width=380)
    tops = [
        page.locator(selector).first.bounding_box()["y"]
        for selector in (".verdict", ".tiles", "#sliders", ".stage", ".bars", ".warnings")
    ]
    assert tops == sorted(tops)
    # The small panels are in one row below the contours.
    panels = [panel.bounding_box() for panel in page.locator(".panel").all()]
    assert len({round(panel["y"] + panel["height"]) for panel in panels[1:]}) == 1


def test_headings_are_in_order(visit, volume):
    page = visit(volume.file)
    levels = [
        int(tag[1])
        for tag in page.eval_on_selector_all(
            "h1, h2, h3", "headings => headings.map(heading => heading.tagName)"
        )
    ]
    assert levels[0] == 1 and all(after <= before + 1 for before, after in pairwise(levels))


@pytest.mark.parametrize("which", ["volume", "scan"])
def test_a_wide_screen_is_used(visit, request, which):
    page = visit(file_of(request, which), width=2560, height=1440)
    panels = page.locator(".panels").bounding_box()
    frame = page.locator(".frame").first.bounding_box()
    assert frame["height"] > 600 or panels["width"] > 1800
    assert frame["height"] < 1440
    table = page.locator(".groups").bounding_box()
    assert table["x"] + table["width"] > 2300


# --- print


def printed(page, file, dpi=96, *, text=False):
    """The printed pages as images, or as text."""
    try:
        import pypdfium2
    except ImportError:
        unavailable("pypdfium2 is not installed: pip install pypdfium2")
    page.pdf(path=file, format="A4")
    document = pypdfium2.PdfDocument(file)
    try:
        if text:
            return [sheet.get_textpage().get_text_range() for sheet in document]
        return [
            np.asarray(sheet.render(scale=dpi / 72).to_pil().convert("RGB")) for sheet in document
        ]
    finally:
        document.close()


def blank_shares(sheets):
    """The share of the height of every page, within its margins, below the last ink."""
    shares = []
    for sheet in sheets:
        margin = round(len(sheet) * 12 / 297)  # millimetres of A4
        inked = np.flatnonzero((sheet[margin:-margin] < 200).any(axis=(1, 2)))
        shares.append(1 - (inked[-1] + 1) / (len(sheet) - 2 * margin) if inked.size else 1.0)
    return shares


def test_a_printed_evaluation_has_headings_on_every_page_and_no_blank_page(visit, run, tmp_path):
    page = visit(run[1], ready="#cases[data-ready]")
    sheets = printed(page, tmp_path / "page.pdf", text=True)
    texts = [" ".join(text.split()) for text in sheets]
    with_cases = [text for text in texts if len(re.findall(r"\bcase\d+ (?:good|middle)", text)) > 9]
    assert len(with_cases) > 2
    for text in with_cases:
        assert re.search(r"Case Method Score", text)
    assert max(blank_shares(printed(page, tmp_path / "page.pdf", 30))) < 1 / 3


def test_printed_images_equal_those_on_the_screen(visit, picture, tmp_path):
    page = visit(picture, width=1000)
    page.emulate_media(media="print")
    page.locator(".frame").first.wait_for()
    boxes = [panel.bounding_box() for panel in page.locator(".frame").all()]
    page.emulate_media(media="null")
    assert len({round(box["width"]) for box in boxes}) == 1
    (first, *_) = printed(page, tmp_path / "page.pdf")
    for side in ("reference", "prediction"):
        seen = painted(page, side)[..., :3].reshape(-1, 3)
        colours = [tuple(colour) for colour in np.unique(seen, axis=0)]
        shares = np.array([(seen == colour).all(axis=1).mean() for colour in colours])
        # Every region is printed. Its share of the coloured area is about the same as on screen.
        counts = np.array([(np.abs(first - colour).max(axis=-1) < 3).sum() for colour in colours])
        assert (counts > 0).all()
        ratios = counts / counts.sum() / shares
        assert ratios.min() > 0.5 and ratios.max() < 2
    assert (np.abs(first - DIFFERENT).max(axis=-1) < 8).sum() > 100


def test_print_hides_controls_and_shows_the_whole_table(visit, picture):
    page = visit(picture)
    page.emulate_media(media="print")
    for hidden in (".controls", ".tools", "#keys"):
        assert page.locator(f"{hidden}:visible").count() == 0
    scroll = page.locator(".scroll").last
    assert scroll.evaluate("one => one.scrollHeight <= one.clientHeight + 1")
    assert page.locator("canvas").first.is_visible()


def test_printing_uses_the_light_theme(visit, picture, tmp_path):
    page = visit(picture, scheme="dark")
    (first, *_) = printed(page, tmp_path / "page.pdf")
    assert first[:20].mean() > 250
    assert (first > 250).all(axis=-1).mean() > 0.4


def test_many_regions_take_few_pages_with_headings_and_little_blank_space(visit, tmp_path):
    regions, columns = 400, 40
    rows, places = np.mgrid[: 3 * (regions // columns), : 3 * columns]
    labels = rows // 3 * columns + places // 3
    compare(labels, np.roll(labels, 1, axis=1)).report(
        tmp_path / "page.html", image=labels.astype(float)
    )
    page = visit(tmp_path / "page.html")
    sheets = printed(page, tmp_path / "page.pdf", 30)
    assert len(sheets) <= 8
    assert page.locator(".groups tbody tr").count() == regions
    assert max(blank_shares(sheets)) < 1 / 3
    texts = ["".join(text.split()) for text in printed(page, tmp_path / "page.pdf", text=True)]
    with_groups = [text for text in texts if len(re.findall(r"0\.6667", text)) > 9]
    assert len(with_groups) > 2
    for text in with_groups:
        assert "ReferencePredictionDice" in text


def many_measures(folder):
    """The page of an evaluation with a background, boundaries and raters, which has wide tables."""
    for name, shift in {"truth": 0, "near": 1, "far": 3, "rater1": 0, "rater2": 1}.items():
        (folder / name).mkdir()
        for case in range(6):
            labels = np.zeros((24, 24), int)
            labels[4:12, 4:12], labels[14 : 16 + case // 2, 6:20] = 1, 2
            np.save(folder / name / f"case{case}.npy", np.roll(labels, shift, axis=case % 2))
    evaluation = evaluate(
        folder / "truth",
        {name: folder / name for name in ("near", "far")},
        raters={name: folder / name for name in ("rater1", "rater2")},
        out=folder / "out",
        background=0,
        boundaries=True,
        tolerance=1,
        workers=1,
    )
    return evaluation.report(reports="none")


@pytest.mark.parametrize(
    "which", ["picture", "scan", "volume", "raters", "side by side", "many measures"]
)
def test_no_printed_page_is_more_than_a_third_blank(visit, request, which, tmp_path):
    if which == "raters":
        rng = np.random.default_rng(0)
        raters = {name: rng.integers(0, 4, (90, 120)) for name in "abc"}
        probdice.consensus(raters).report(tmp_path / "raters.html")
        page = visit(tmp_path / "raters.html", ready="body[data-ready]")
    elif which == "side by side":
        pages = request.getfixturevalue("run")[1].parent.glob("*_cases/*-all.html")
        page = visit(sorted(pages)[0], ready="body[data-ready]")
    elif which == "many measures":
        page = visit(many_measures(tmp_path), ready="#cases[data-ready]")
    else:
        page = visit(file_of(request, which))
    assert max(blank_shares(printed(page, tmp_path / "page.pdf", 30))) < 1 / 3


def test_the_diagram_is_printed_beside_the_table(visit, volume):
    page = visit(volume.file)
    page.emulate_media(media="print")
    parts = [page.locator(name) for name in (".graph", "table.groups")]
    for part in parts:
        part.wait_for()  # a slow browser has no layout right after the change of media
    graph, table = (part.bounding_box() for part in parts)
    assert table["x"] >= graph["x"] + graph["width"]
    assert table["y"] < graph["y"] + graph["height"]


def test_printing_changes_nothing_on_the_screen(visit, volume):
    page = visit(volume.file)
    page.evaluate("scrollTo(0, 500)")
    look = "[scrollY, document.body.offsetWidth, document.documentElement.scrollHeight]"
    before = page.evaluate(look)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(look) == before


# --- Firefox


FRAMES = """<body><img src=late width=1 height=1>{frames}<script>
const frames = [...document.querySelectorAll("iframe")];
const isReady = (frame) => frame.contentDocument?.querySelector(":is(#viewer, #cases)[data-ready]");
const waiting = setInterval(() => {{
  if (!frames.every(isReady)) return;
  clearInterval(waiting);
  requestAnimationFrame(() => requestAnimationFrame(() => fetch("ready")));
}}, 50);
</script>"""


class Waiting(BaseHTTPRequestHandler):
    """Serves pages in frames, and a picture that is sent when all frames are ready.

    Firefox takes its screenshot when everything is loaded, including this picture.
    """

    pages: list[bytes]
    ready: Event

    def do_GET(self):
        name = self.path.strip("/")
        answer = b""
        if name == "late":
            self.ready.wait(100)
        elif name == "ready":
            self.ready.set()
        elif name.isdigit():
            answer = self.pages[int(name)]
        elif not name:
            frames = (
                f"<iframe src={k} width=1240 height={FRAME}></iframe>"
                for k in range(len(self.pages))
            )
            answer = FRAMES.format(frames="<br>".join(frames)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def test_firefox_shows_the_pages(volume, scan, run, tmp_path):
    firefox = shutil.which("firefox-esr") or shutil.which("firefox")
    if firefox is None:
        unavailable("no firefox on this machine: apt-get install firefox-esr")
    pages = [file.read_bytes() for file in (volume.file, scan.file, run[1])]
    handler = type("Handler", (Waiting,), {"pages": pages, "ready": Event()})
    shot, profile = tmp_path / "shot.png", tmp_path / "profile"
    profile.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        command = [firefox, "--headless", "--no-remote", "--profile", profile]
        size = f"1280,{len(pages) * (FRAME + 10)}"
        subprocess.run(
            [*command, "--window-size", size, "--screenshot", shot, address],
            check=True,
            timeout=120,
            capture_output=True,
            env={**os.environ, "HOME": str(tmp_path)},
        )
        server.shutdown()
    assert handler.ready.is_set()
    with Image.open(shot) as image:
        picture = np.asarray(image.convert("RGB")).astype(int)
    # Text is grey, so all coloured pixels belong to regions or to the dots of cases.
    coloured = np.ptp(picture, axis=-1) > 60
    parts = [part.mean() for part in np.array_split(coloured, len(pages))]
    assert parts[0] > 0.01 and parts[1] > 0.01 and parts[2] > 0.001


def test_a_click_shows_the_largest_distance_and_outlines_are_coloured(visit, tmp_path):
    """A square that was moved by 2 pixels: the left edge of the reference is 2 pixels away."""
    reference, prediction = np.zeros((2, 16, 20), int)
    reference[4:10, 4:10] = prediction[4:10, 6:12] = 1
    result = compare(reference, prediction, match="labels")
    result.boundaries(tolerances=[1])
    result.report(tmp_path / "page.html")
    page = visit(tmp_path / "page.html")
    page.click("#boundaries ~ .scroll [data-place]")
    assert shown_place(page) == (5, 4)
    assert "distance between outlines: 2.00 pixels" in page.inner_text("#values-f")
    shades = painted(page, "distances")[..., :3]
    assert shades[7, 4].tolist() == DIFFERENT.tolist()  # far
    assert shades[4, 8].tolist() == [56, 149, 255]  # on the other outline
    assert shades[13, 13].tolist() == [255, 255, 255]


def test_infinite_distances_are_sorted_as_the_largest(visit, tmp_path):
    """Label 3 is missed, so its distance is infinite; label 2 is moved by one pixel."""
    reference, prediction = np.zeros((2, 20, 24), int)
    reference[2:8, 2:8] = prediction[2:8, 2:8] = 1
    reference[2:8, 12:18], prediction[2:8, 13:19] = 2, 2
    reference[12:18, 2:8] = 3
    result = compare(reference, prediction, match="labels")
    result.boundaries()
    result.report(tmp_path / "page.html")
    page = visit(tmp_path / "page.html")

    def distances():
        return page.eval_on_selector_all(
            ".boundaries tbody td[data-name=hd]", "cells => cells.map(cell => cell.textContent)"
        )

    assert distances()[0] == "∞"
    page.click(".boundaries thead button:has-text('hd,')")
    assert distances()[0] != "∞" and distances()[-1] == "∞"
    page.click(".boundaries thead button:has-text('hd,')")
    assert distances()[0] == "∞"
