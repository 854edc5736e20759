"""Pages as files: their content, the parts that they omit, and names that must not run as code."""

import base64
import hashlib
import json
import os
import re
import zlib
from html.parser import HTMLParser
from types import SimpleNamespace
from urllib.parse import unquote

import numpy as np
import pytest
from commands import probdice as run

import probdice
from probdice import Comparison, Geometry, Segmentation, compare
from probdice.errors import FormatError, InputError, Option
from probdice.evaluation import evaluate
from probdice.metrics.verdict import name_of, worst_group
from probdice.report import packing, write, write_evaluation
from probdice.report.cases import write_case_pages
from probdice.report.evaluation_settings import evaluation_settings
from probdice.report.evaluation_tables import region_table
from probdice.report.headline import tiles_of
from probdice.report.page import page_of
from probdice.report.rendering import render
from probdice.report.side_by_side import CaseSlices, write_side_by_side
from probdice.text.formatting import percent

HOSTILE = "<script>alert(1)</script>"
LIMIT = 10_000_000


class Reader(HTMLParser):
    """Collects tags with attributes, scripts, styles and other text."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.inline, self.words, self._inside = [], [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag in ("script", "style"):
            self._inside = (tag, dict(attributes))

    def handle_endtag(self, tag):
        if self._inside and tag == self._inside[0]:
            self._inside = None

    def handle_data(self, data):
        if self._inside:
            self.inline.append((*self._inside, data))
        else:
            self.words.append(data)

    @property
    def pixels(self):
        (text,) = [data for _, attributes, data in self.inline if attributes.get("id") == "pixels"]
        return json.loads(text)


def soft(shape, regions, seed=0):
    values = np.random.default_rng(seed).gamma(0.5, size=(regions, *shape)) + 1e-3
    return (values / values.sum(axis=0)).astype(np.float32)


def page(result, tmp_path, **options):
    result.report(tmp_path / "page.html", **options)
    return Reader((tmp_path / "page.html").read_text(encoding="utf-8"))


def unpacked(text, digits):
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), "u1" if digits == 2 else "<u2")


def test_the_pixels_of_a_page_are_those_of_the_arrays(tmp_path):
    p, q = soft((9, 8, 7), 3), soft((9, 8, 7), 5, seed=1)
    mask = np.random.default_rng(3).random((9, 8, 7)) < 0.8
    result = compare(p, q, mask=mask, merge="both")
    data = page(result, tmp_path).pixels
    assert data["shape"] == data["size"] == [9, 8, 7] and data["digits"] == 4
    f = unpacked(data["f"], 4).reshape(9, 8, 7)
    np.testing.assert_array_equal(f == 65535, ~mask)
    np.testing.assert_allclose(f[mask] / 1e4, result.map()[mask], atol=5.1e-5)
    for side, array in (("reference", p), ("prediction", q)):
        kept = data[side]["kept"]
        codes = np.frombuffer(zlib.decompress(base64.b64decode(data[side]["codes"])), "u1")
        values = unpacked(data[side]["values"], 4).reshape(kept, *f.shape) / 1e4
        stored = np.zeros((len(array) + 1, *array.shape[1:]))  # 0 is no region
        for code, value in zip(codes.reshape(kept, *f.shape), values, strict=True):
            np.add.at(stored, (code, *np.indices(code.shape)), value)
        np.testing.assert_allclose(stored[1:, mask], array[:, mask], atol=5.1e-5)
        assert not stored[:, ~mask].any()


def test_a_label_map_has_one_region_per_pixel_with_probability_1(tmp_path):
    labels = np.array([[0, 0, 300], [7, 7, 300]])
    data = page(compare(labels, labels), tmp_path).pixels
    assert data["reference"]["names"] == ["0", "7", "300"]
    assert data["reference"]["values"] == "" and data["reference"]["kept"] == 1
    codes = np.frombuffer(zlib.decompress(base64.b64decode(data["reference"]["codes"])), "u1")
    assert codes.tolist() == [1, 1, 3, 2, 2, 3]  # counted from 1: 0 is no region
    assert data["f"] == ""  # it follows from the regions


def test_headline_numbers_equal_those_of_the_comparison(tmp_path):
    result = compare([1, 1, 1, 1, 2, 2, 2, 2], [7, 7, 5, 5, 5, 9, 9, 9], merge="both")
    words = " ".join(page(result, tmp_path).words)
    for figure in (
        "Mean Dice 0.8730 unmatched regions count as 0",
        "Score 0.8750 0.5000 is chance level, 1 means identical",
        "Before merging 0.6250 1 prediction region merged",
        "Adjusted score 0.7500 0 is chance level, 1 means identical",
        "Explained 0.6667 / 0.3333 of the reference / of the prediction",
        "Worst region 0.8571 reference 2 ↔ prediction 9",
        "Unmatched 0 every region is matched",
    ):
        assert figure in " ".join(words.split())
    assert "87.5 % of the pixels have corresponding labels" in words
    assert "The prediction explains 66.7 % of the reference" in words
    assert "The reference explains 33.3 % of the prediction" in words


def test_the_mean_is_also_shown_without_a_pair_that_covers_most_of_the_image():
    reference = np.repeat([0, 1], [900, 100])
    prediction = np.repeat([0, 7], [950, 50])  # Dice: 1800/1850 and 100/150
    tile = tiles_of(compare(reference, prediction))[0]
    assert (tile.name, tile.value) == ("Mean Dice", "0.8198")
    assert tile.about == "0.6667 without region 0"
    tile = tiles_of(compare(reference, prediction, background=0))[0]
    assert (tile.name, tile.value) == ("Foreground Dice", "0.6667")
    tile = tiles_of(compare([1, 1, 2, 2], [1, 1, 1, 2]))[0]
    assert tile.about == "unmatched regions count as 0"


def test_a_faint_group_is_marked_on_the_page(tmp_path):
    right = [[0.98, 0.98, 0.01], [0.01, 0.01, 0.98], [0.01, 0.01, 0.01]]
    result = compare([0, 0, 1], right, match="labels")
    words = " ".join(" ".join(page(result, tmp_path).words).split())
    assert "Worst region 0.9800 region 1" in words
    assert "Unmatched 0 every region is matched" in words
    assert words.count("(faint)") == 1
    assert page_of(result).rows[-1].faint  # after the others, though its Dice is 0


@pytest.mark.parametrize(
    ("prediction", "printed"), [([1, 1, 1, 2, 2, 2], False), ([1, 2, 2, 1, 2, 2], True)]
)
def test_adjusted_scores_below_0_4_have_a_caveat(prediction, printed, tmp_path):
    # Scores are 1 and 4/6; chance is 1/2 each, so that adjusted scores are 1 and 1/3.
    words = " ".join(page(compare([1, 1, 1, 2, 2, 2], prediction), tmp_path).words)
    assert ("may not be meaningful" in words) == printed


# One pair of regions was joined, one region was split.
BOTH = [1] * 6 + [2] * 2 + [3] * 8, [5] * 8 + [6] * 5 + [7] * 3


def test_unmatched_regions_are_counted_on_both_sides():
    tiles = {figure.name: figure for figure in page_of(compare(*BOTH)).tiles}
    assert tiles["Unmatched"].value == "2"
    assert tiles["Unmatched"].about == "1 of 3 reference and 1 of 3 prediction regions"
    assert tiles["Worst region"].value == "0.0000"
    assert tiles["Worst region"].about == (
        "prediction region 7, unmatched; lowest matched 0.7692"  # 7 is larger than 2; 2·5/(8 + 5)
    )


def test_unmatched_regions_do_not_hide_matched_ones_in_the_plot():
    labels = np.repeat(np.arange(40), 50)
    split = labels * 100 + np.tile(np.arange(50), 40) // 20  # parts of 20, 20 and 10 pixels
    content = page_of(compare(labels, split))
    (unmatched,) = content.unmatched
    assert (unmatched.side, len(unmatched.first), unmatched.count) == ("prediction", 1, 79)
    assert (
        unmatched.first[0].name
        == content.rows[0].name
        == name_of(worst_group(compare(labels, split).groups))
    )
    assert len(content.matched) == 40 and content.matched[0].dice == pytest.approx(40 / 70)
    assert content.plotted == content.groups == 120
    many = np.arange(6000).reshape(60, 100)
    cut = page_of(compare(many, many // 40))
    assert len(cut.matched) == 150 and len(cut.unmatched[0].others) == 499
    assert (cut.unmatched[0].count, len(cut.rows), cut.plotted) == (5849, 2000, 650)


def test_merges_on_both_sides_are_counted_and_drawn():
    page = page_of(compare(*BOTH, merge="both"))
    figures = {figure.name: figure for figure in page.figures}
    merged = "1 reference and 1 prediction regions merged"
    assert figures["Before merging"].value == "0.6875" and figures["Before merging"].about == merged
    facts = {fact.name: fact.values for fact in page.options}
    assert facts["Merging"] == (f"both sides allowed, {merged}",)
    names = [dot.name for dot in page.drawing.dots]
    merges = [line for line in page.drawing.lines if line.merged]
    assert [(names[line.reference], names[line.prediction], line.dice) for line in merges] == [
        ("2", "5", "1.0000"),
        ("3", "7", "1.0000"),
    ]
    assert not any(line.apart for line in page.drawing.lines)


def test_pairs_that_share_no_pixel_are_dashed_and_counted(tmp_path):
    result = compare(*BOTH, match="paper")
    assert "1 pair shares no pixel" in " ".join(page(result, tmp_path).words)
    assert [line.apart for line in page_of(result).drawing.lines] == [False, True, False]
    assert "no pixel" not in " ".join(page(compare(*BOTH), tmp_path).words)


@pytest.mark.parametrize(
    ("match", "text"),
    [
        ("overlap", "matched by largest total overlap"),
        ("paper", "matched by the paper's rule"),
        ("labels", "equal labels matched, by number"),
        ({5: 1}, "1 ↔ 5 as given, other regions by overlap"),
        (compare([1, 2], [5, 6]), "as in an earlier comparison"),
    ],
)
def test_settings_describe_how_regions_were_matched(match, text):
    prediction = [1, 1, 2] if match == "labels" else [5, 5, 6]
    result = compare([1, 1, 2], prediction, match=match)
    facts = {fact.name: fact.values for fact in page_of(result).options}
    assert facts["Regions"] == (text,)


def test_the_explained_share_of_a_constant_side_is_undefined():
    _, reference, prediction = page_of(compare([1, 1, 1, 1], [1, 1, 2, 2])).sentences
    same = "The reference is the same at every pixel, so its explained share is undefined."
    assert reference.text == same
    assert prediction.text.startswith("The reference explains 0.0 % of the prediction")


def test_settings_list_options_that_differ_from_the_defaults():
    result = compare([0, 0, 1, 2], [0, 1, 1, 2], background=0)
    facts = {fact.name: fact.values for fact in page_of(result).options}
    assert facts["Background"] == ("0",)
    assert "Resampling" not in facts


@pytest.mark.parametrize(
    ("reference", "prediction", "expected"),
    [
        ([1, 1, 2, 2], [1, 2, 1, 2], "0 % of the way"),
        ([1, 1, 1, 1], [1, 1, 1, 1], "not informative"),
    ],
)
def test_the_headline_sentence_compares_the_score_with_chance(reference, prediction, expected):
    assert expected in page_of(compare(reference, prediction)).sentences[0].text


ALMOST = np.repeat([1, 2], 20_000)  # one label of 40 000 differs: a score of 0.999975
NEARLY = np.concatenate([[2], ALMOST[1:]])


def test_almost_equal_is_not_shown_as_equal(tmp_path):
    result = compare(ALMOST, NEARLY)
    reader = page(result, tmp_path)
    words = " ".join(reader.words)
    assert "99.9 % of the pixels have corresponding labels" in words
    assert "99 % of the way from the chance level to 1" in words
    assert "0.9999" in words and "1.0000" not in words and "100" not in words
    (label,) = [a["aria-label"] for tag, a in reader.tags if a.get("class") == "scale"]
    assert label.endswith("score 0.9999")


def test_equal_is_shown_as_equal(tmp_path):
    words = " ".join(page(compare(ALMOST, ALMOST), tmp_path).words)
    assert "100.0 % of the pixels have corresponding labels" in words
    assert "1.0000" in words and "100 % of the way" in words


def test_no_probability_below_1_is_rounded_to_1(tmp_path):
    sure = np.array([[1.0, 0.99997, 0.5], [0.0, 0.00003, 0.5]])
    data = page(compare(sure, [[1.0, 1.0, 0.5], [0.0, 0.0, 0.5]]), tmp_path).pixels
    kept = data["reference"]["kept"]
    values = unpacked(data["reference"]["values"], 4).reshape(kept, 3)
    assert values[0].tolist() == [10000, 9999, 5000]
    assert unpacked(data["f"], 4).tolist() == [10000, 9999, 10000]


def test_an_almost_perfect_case_is_not_shown_as_perfect(tmp_path):
    for folder, labels in (("truth", ALMOST), ("mine", NEARLY)):
        (tmp_path / folder).mkdir()
        for case in ("a", "b"):
            np.save(tmp_path / folder / f"{case}.npy", labels)
    result = evaluate(tmp_path / "truth", tmp_path / "mine", out=tmp_path / "out")
    write_evaluation(result, tmp_path / "page.html", reports="none")
    reader = Reader((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "0.9999" in " ".join(reader.words) and "1.0000" not in " ".join(reader.words)
    (text,) = [data for _, a, data in reader.inline if a.get("id") == "records"]
    assert [record[2] for record in json.loads(text)["records"]] == [0.9999, 0.9999]


@pytest.mark.parametrize(
    ("ignore", "mask", "expected"),
    [
        ((), [1, 1, 1, 1, 1, 1, 1, 0], "mask: 1 of 8 pixels (12.5 %)"),
        ((2,), None, "ignored label 2: 2 of 8 pixels (25.0 %)"),
        ((2, 3), [0, 1, 1, 1, 1, 1, 1, 1], "mask and ignored labels 2, 3: 4 of 8 pixels (50.0 %)"),
        ((9,), None, "ignored label 9: 0 of 8 pixels (0.0 %)"),
        ((), None, None),
    ],
)
def test_settings_list_the_number_of_excluded_pixels(ignore, mask, expected):
    reference = Segmentation.from_labels([1, 1, 1, 1, 1, 2, 2, 3], ignore=ignore)
    mask = None if mask is None else np.array(mask, bool)
    result = compare(reference, [1, 1, 1, 1, 1, 2, 2, 3], mask=mask)
    facts = {fact.name: fact.values for fact in page_of(result).options}
    assert facts.get("Excluded by") == (None if expected is None else (expected,))


def test_the_security_policy_forbids_requests_and_unknown_scripts(tmp_path):
    reader = page(compare(soft((5, 6), 3), soft((5, 6), 3, seed=1)), tmp_path)
    for tag, attributes in reader.tags:
        assert tag not in ("link", "iframe", "object", "embed", "base", "form")
        assert not {"src", "srcset", "style", "onclick", "onload"} & attributes.keys()
        assert attributes.get("href", "#").startswith("#")
    (policy,) = [
        attributes["content"]
        for tag, attributes in reader.tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'" and "unsafe" not in policy
    assert rules["base-uri"] == rules["form-action"] == "'none'"
    for kind in ("script", "style"):
        texts = [data for tag, attributes, data in reader.inline if tag == kind and not attributes]
        assert texts
        hashes = [base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() for t in texts]
        assert rules[f"{kind}-src"].split() == [f"'sha256-{digest}'" for digest in hashes]


def test_region_and_file_names_are_escaped(tmp_path):
    names = {1: HOSTILE, 2: '" onmouseover="alert(1)', 3: "</style></script><b>&amp;{{ 7 * 7 }}"}
    reference = Segmentation.from_labels([[1, 2, 3]], names=names)
    prediction = Segmentation.from_labels([[1, 1, 2]], names=names)
    object.__setattr__(reference, "source", f"/data/{HOSTILE}.nii")
    result = compare(reference, prediction)
    result.report(tmp_path / "page.html", title=f"{HOSTILE} & more")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script>alert" not in text and "<b>" not in text
    reader = Reader(text)
    assert reader.pixels["reference"]["names"] == list(names.values())
    for name in names.values():
        assert name in reader.words
    assert f"{HOSTILE} & more" in reader.words and f"/data/{HOSTILE}.nii" in reader.words
    assert not any("onmouseover" in attributes for _, attributes in reader.tags)


def test_large_images_are_subsampled_and_the_page_states_it(tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "MAX_PROBABILITY_PIXELS", 1000)
    result = compare(soft((30, 40, 5), 9), soft((30, 40, 5), 2, seed=1))
    reader = page(result, tmp_path)
    data = reader.pixels
    assert data["step"] == 2 and data["shape"] == [15, 20, 3]
    f = unpacked(data["f"], 4).reshape(data["shape"])
    np.testing.assert_allclose(f / 1e4, result.map()[::2, ::2, ::2], atol=5.1e-5)
    words = " ".join(reader.words)
    assert "The images show every 2nd voxel along each axis" in words
    assert "Per voxel, only the 6 most probable of 9 reference regions are shown" in words
    assert "rounded to 4 decimals" in words


def test_label_maps_are_shown_at_full_resolution(tmp_path):
    shape = (182, 218, 182)  # a head of a millimetre, seven million pixels
    blocks = [np.arange(n) // 18 for n in shape]
    labels = (blocks[0][:, None, None] * 13 + blocks[1][:, None]) * 11 + blocks[2]
    reader = page(compare(labels, np.roll(labels, 2, axis=0)), tmp_path)
    assert reader.pixels["shape"] == list(shape) and reader.pixels["step"] == 1
    assert "The images show every" not in " ".join(reader.words)
    assert os.path.getsize(tmp_path / "page.html") < 2_500_000


def test_label_maps_that_do_not_fit_are_subsampled_equally_along_all_axes(tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "MAX_BYTES", 30_000)
    noise = np.random.default_rng(0).integers(0, 200, (60, 60, 20))
    reader = page(compare(noise, noise), tmp_path)
    data = reader.pixels
    assert data["step"] == 2 and data["shape"] == [30, 30, 10]
    stored = np.frombuffer(zlib.decompress(base64.b64decode(data["reference"]["codes"])), "u1")
    np.testing.assert_array_equal(stored.reshape(30, 30, 10) - 1, noise[::2, ::2, ::2])
    messages = [a for tag, a in reader.tags if a.get("class") == "left-out"]
    assert messages and "every 2nd voxel along each axis" in " ".join(reader.words)


def test_a_page_opens_in_the_plane_with_the_smallest_pixels_zoomed_to_the_foreground(tmp_path):
    labels = np.zeros((17, 100, 120), int)
    labels[5:9, 40:60, 30:90] = 1
    spine = Geometry(labels.shape, np.diag([4.4, 0.6, 0.6, 1.0]))
    result = compare(*(Segmentation.from_labels(labels, geometry=spine),) * 2)
    data = page(result, tmp_path).pixels
    assert data["planes"][data["plane"]]["name"] == "sagittal"
    assert data["frame"] == [[4, 9], [38, 61], [27, 92]]
    plain = page(compare(labels, labels), tmp_path).pixels
    assert plain["planes"][plain["plane"]]["name"] == "axis 0"


def test_groups_are_listed_worst_first_with_volumes_in_millilitres():
    here = Geometry((2, 2, 5), np.diag([10.0, 10.0, 10.0, 1.0]))
    reference = np.repeat([1, 2, 3], [8, 6, 6]).reshape(2, 2, 5)
    prediction = np.repeat([1, 2, 3], [8, 3, 9]).reshape(2, 2, 5)
    sides = [Segmentation.from_labels(side, geometry=here) for side in (reference, prediction)]
    rows = page_of(compare(*sides)).rows
    assert [row.reference for row in rows] == ["2", "3", "1"]
    assert [number[2] for number in rows[0].numbers][2:4] == ["6", "3"]
    assert [number[0] for number in rows[0].numbers][2:4] == ["Reference, mL", "Prediction, mL"]
    plain = page_of(compare(reference, prediction)).rows
    assert [number[0] for number in plain[0].numbers][2:4] == [
        "Reference, voxels",
        "Prediction, voxels",
    ]


def test_every_sentence_has_an_icon_and_notes_are_capitalised(tmp_path):
    made = page_of(compare(*BOTH))
    assert [one.drawing for one in made.sentences] == ["score", "reference", "prediction"]
    assert [one.drawing for one in made.notes] == ["unmatched", "unmatched"]
    noticed = page_of(compare([1, 2], [1, 2]), notice="nothing was seen: file.nii is gone")
    assert noticed.notes[0].text == "Nothing was seen: file.nii is gone"
    assert noticed.notes[0].drawing == "note"
    reader = page(compare(*BOTH), tmp_path)
    assert sum(a.get("class") == "sketch" for _, a in reader.tags) == 5


# --- images underneath


def underlaid(tmp_path, image, shape=(6, 7), **options):
    labels = np.arange(np.prod(shape)).reshape(shape) // 8
    result = compare(labels, labels)
    return page(result, tmp_path, image=image, **options)


def test_the_page_contains_the_values_of_a_background_image(tmp_path):
    scan = np.linspace(-1000, 1000, 42).reshape(6, 7)
    (image,) = underlaid(tmp_path, scan).pixels["images"]
    assert image["shape"] == [6, 7] and image["step"] == 1 and image["name"] == "image 1"
    values = np.frombuffer(zlib.decompress(base64.b64decode(image["values"])), "<u2")
    shown = image["low"] + (image["high"] - image["low"]) * values / image["levels"]
    np.testing.assert_allclose(shown.reshape(6, 7), scan, atol=1)
    assert image["low"] <= image["window"][0] < image["window"][1] <= image["high"]


def test_several_background_images_and_colour_images_are_supported(tmp_path):
    photograph = np.random.default_rng(0).integers(0, 256, (6, 7, 3), dtype=np.uint8)
    np.save(tmp_path / "scan.npy", np.ones((6, 7)))
    reader = underlaid(tmp_path, [photograph, str(tmp_path / "scan.npy")])
    colours, flat = reader.pixels["images"]
    assert colours["colour"] and not flat["colour"] and flat["name"] == "scan.npy"
    values = np.frombuffer(zlib.decompress(base64.b64decode(colours["values"])), "u1")
    np.testing.assert_array_equal(values.reshape(6, 7, 3), photograph)
    assert "Background images" in reader.words and "image 1, scan.npy" in reader.words


def test_a_page_without_a_background_image_has_no_image_controls(tmp_path):
    labels = np.array([[1, 1], [2, 2]])
    data = page(compare(labels, labels), tmp_path).pixels
    assert data["images"] == []


def test_background_images_are_reduced_before_label_maps_and_the_page_states_it(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(packing, "MIN_IMAGE_BYTES", 1300)
    monkeypatch.setattr(packing, "MAX_BYTES_WITH_IMAGES", 1300)
    scan = np.random.default_rng(0).normal(size=(60, 70))
    reader = underlaid(tmp_path, scan, shape=(60, 70))
    (image,) = reader.pixels["images"]
    assert reader.pixels["step"] == 1 and reader.pixels["shape"] == [60, 70]
    assert image["step"] == 2 and image["shape"] == [30, 35] and len(image["values"]) < 1800
    values = np.frombuffer(zlib.decompress(base64.b64decode(image["values"])), "u1")
    shown = image["low"] + (image["high"] - image["low"]) * values / image["levels"]
    means = scan.reshape(30, 2, 35, 2).mean(axis=(1, 3))
    np.testing.assert_allclose(shown.reshape(30, 35), means, atol=0.05)
    text = "image 1: means over 2 pixels along each axis, 256 grey levels."
    assert text in " ".join(reader.words)


def test_background_images_on_another_grid_are_rejected_by_name(tmp_path):
    with pytest.raises(
        InputError, match=r"image: the background image has shape \(5, 7\), but the segmentations"
    ):
        underlaid(tmp_path, np.zeros((5, 7)))
    with pytest.raises(FormatError, match=r"image 2: .*gone\.nii\.gz: no such file"):
        underlaid(tmp_path, [np.zeros((6, 7)), "gone.nii.gz"])
    with pytest.raises(InputError, match="image 1: expected finite values"):
        underlaid(tmp_path, np.full((6, 7), np.nan))


def test_noise_that_does_not_compress_still_fits(tmp_path):
    shape = (128, 128, 64)  # a million pixels
    result = compare(soft(shape, 6), soft(shape, 6, seed=1))
    page(result, tmp_path)
    assert os.path.getsize(tmp_path / "page.html") < LIMIT


def test_thousands_of_regions_with_long_names_still_fit(tmp_path):
    labels = np.arange(6000).reshape(60, 100)
    names = {k: f"{k} " + "long " * 200 for k in range(6000)}
    reference = Segmentation.from_labels(labels, names=names)
    result = compare(reference, labels // 40)
    reader = page(result, tmp_path)
    assert os.path.getsize(tmp_path / "page.html") < LIMIT
    words = " ".join(reader.words)
    assert "distinguish only the 4096 largest reference regions" in words
    assert "The table lists 2000 of 6000 groups:" in words
    assert len(reader.pixels["reference"]["names"]) == 4097


def test_fewer_digits_are_shown_before_pixels_are_left_out(monkeypatch):
    result = compare(soft((64, 64), 4), soft((64, 64), 4, seed=1))
    sizes = {}
    for room in (200_000, 52_000, 40_000, 10_000):
        monkeypatch.setattr(packing, "MAX_BYTES", room)
        data = page_of(result).viewer
        sizes[room] = data["digits"], data["shape"]
    assert sizes[200_000] == (4, [64, 64])
    assert sizes[40_000][0] == 2 and sizes[40_000][1] == [64, 64]
    assert sizes[10_000][0] == 2 and np.prod(sizes[10_000][1]) < 64 * 64


@pytest.mark.parametrize("shape", [(), (1,), (12,), (6, 7), (3, 4, 5, 2)])
def test_images_of_any_number_of_axes_have_a_page(shape, tmp_path):
    data = page(compare(soft(shape, 2), soft(shape, 3, seed=1)), tmp_path).pixels
    assert data["size"] == list(shape)


def test_settings_list_options_files_and_versions(tmp_path):
    here = Geometry((2, 2, 2), np.diag([0.5, 0.5, 3.0, 1.0]))
    reference = Segmentation.from_labels(
        [[[1, 1], [2, 255]]] * 2, ignore=[255], names={9: "spleen"}, geometry=here
    )
    prediction = Segmentation.from_probabilities(
        soft((2, 2, 2), 2), geometry=here, sums="normalise"
    )
    result = compare(reference, prediction, similarity=probdice.Aitchison(floor=0.01))
    words = " ".join(page(result, tmp_path, title="One case").words)
    for text in (
        "One case",
        "aitchison with floor 0.01",
        "ignored label 255",
        "label map, int64",
        "probabilities of 2 regions, float32, divided by their sum",
        "0.5 0.5 3",
        "spleen",
        f"probdice {probdice.__version__}",
        f"NumPy {np.__version__}",
    ):
        assert text in words


def test_notes_are_on_the_page(tmp_path):
    result = compare([1, 1, 2, 2], [1, 1, 2, 3])
    words = page(result, tmp_path).words
    assert result.notes and all(str(note) in words for note in result.notes)


def test_notes_name_options_as_in_python_or_on_the_command_line(tmp_path):
    result = compare([1, 1, 2, 2], [1, 1, 2, 3])
    texts = {}
    for words in ("python", "command"):
        write(result, tmp_path / "page.html", words=words)
        texts[words] = (tmp_path / "page.html").read_text(encoding="utf-8")
    # Options are not broken at the end of a line.
    option = '<span class="option">--merge</span> prediction.'
    assert f"To merge it into a matched region, use {option}" in texts["command"]
    assert "merge=" not in texts["command"] and "--merge<" not in texts["python"]
    assert "To merge it into a matched region, use merge=&#34;prediction&#34;." in texts["python"]
    with pytest.raises(InputError, match="words must be 'python' or 'command', found 'html'"):
        write(result, tmp_path / "page.html", words="html")


def moved_squares(missed=False):
    """A square of 6 pixels that was moved by 2, and another one that may be missing."""
    reference, prediction = np.zeros((2, 16, 30), np.uint8)
    reference[4:10, 4:10] = prediction[4:10, 6:12] = 1
    reference[3:6, 20:23] = 2
    if not missed:
        prediction[3:6, 20:23] = 2
    return compare(reference, prediction, match="labels")


def test_the_page_shows_boundaries_only_if_they_were_computed(tmp_path):
    result = moved_squares()
    assert page_of(result).boundaries is None
    assert "distances" not in page(result, tmp_path).pixels
    result.boundaries(tolerances=[1])
    section = page_of(result).boundaries
    assert [row.number for row in section.rows] == [0, 1, 2]  # background and 1 are equally far
    row = section.rows[1]
    assert dict((name, text) for name, _, text in row.numbers)["hd"] == "2.0000"
    assert row.place == "5.4"  # the first straight segment of the left edge
    assert sum(height for _, _, height in row.bars) > 0
    assert dict(section.means)["hd"] == "1.3333"


def test_the_images_hold_the_distance_of_every_outline(tmp_path):
    result = moved_squares()
    result.boundaries()
    reader = page(result, tmp_path)
    distances = reader.pixels["distances"]
    pixels = np.frombuffer(zlib.decompress(base64.b64decode(distances["pixels"])), "<u4")
    steps = np.frombuffer(zlib.decompress(base64.b64decode(distances["values"])), np.uint8)
    assert (distances["most"], distances["unit"]) == (2.0, "pixels")
    shown = np.zeros(16 * 30, np.uint8)
    shown[pixels] = steps
    shown = shown.reshape(16, 30)
    assert shown[7, 4] == 255  # the left edge is 2 pixels away
    assert shown[4, 8] == 1  # the common part of the upper edge is not
    assert not shown[12:].any()


def test_a_missed_group_is_infinitely_far_on_the_page():
    result = moved_squares(missed=True)
    result.boundaries()
    section = page_of(result).boundaries
    assert dict(section.means)["hd"] == "∞"
    assert section.rows[0].numbers[0][2] == "∞"
    assert section.sentences == (
        "1 group is missing on one side, so means of distances are infinite.",
    )


def test_a_page_without_images_lists_boundaries_without_pictures(tmp_path):
    result = moved_squares()
    result.boundaries()
    restored = Comparison.from_json(result.to_json())
    section = page_of(restored).boundaries
    assert dict(section.means)["hd"] == "1.3333"
    assert all(row.place == "" and row.bars == () for row in section.rows)
    assert "Boundaries" in page(restored, tmp_path).words


def test_a_comparison_from_json_has_a_page_without_images(tmp_path):
    result = compare([[1, 1], [2, 2]], [[1, 1], [1, 2]])
    reader = page(Comparison.from_json(result.to_json()), tmp_path)
    assert "images of this comparison are not available" in " ".join(reader.words)
    assert "canvas" not in {tag for tag, _ in reader.tags}
    assert "0.7500" in reader.words


def test_a_page_without_images_omits_numbers_that_need_them(tmp_path):
    p, q = soft((6, 7), 2), soft((6, 7), 3, seed=1)
    result = probdice.overlap(p, q, similarity="aitchison").compare()
    reader = page(result, tmp_path)
    words = " ".join(reader.words)
    assert "The score is not available, because this comparison does not contain" in words
    assert "The explained share of the reference is not available, because" in words
    assert not any("nan" in attributes.values() for _, attributes in reader.tags)


def test_a_policy_is_made_for_the_templates_of_any_package(monkeypatch, tmp_path):
    (tmp_path / "elsewhere" / "templates").mkdir(parents=True)
    (tmp_path / "elsewhere" / "__init__.py").touch()
    (tmp_path / "elsewhere" / "look.css").write_text("b {}")
    (tmp_path / "elsewhere" / "templates" / "a.html").write_text(
        "{{ policy }}|{{ style }}|{{ name }}|{{ numbers | data }}"
    )
    monkeypatch.syspath_prepend(tmp_path)
    values = {"name": HOSTILE, "numbers": [float("nan"), "</script>"]}
    text = render("a.html", values, style="look.css", package="elsewhere")
    policy, style, name, numbers = text.split("|")
    digest = base64.b64encode(hashlib.sha256(b"b {}").digest()).decode()
    assert "default-src &#39;none&#39;" in policy and f"sha256-{digest}" in policy
    assert "script-src" not in policy
    assert style == "b {}" and name == "&lt;script&gt;alert(1)&lt;/script&gt;"
    assert numbers == r'[null,"\u003c/script\u003e"]'


def test_the_same_comparison_gives_the_same_page(tmp_path):
    result = compare(soft((8, 9), 3), soft((8, 9), 3, seed=1))
    write(result, tmp_path / "a.html")
    write(result, tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_an_existing_page_is_replaced_only_by_a_complete_one(tmp_path, monkeypatch):
    result = compare([[1, 1], [2, 2]], [[1, 1], [1, 2]])
    file = tmp_path / "page.html"
    file.write_text("before")

    def fail(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", fail)
        with pytest.raises(FormatError, match=r"page\.html: cannot be written: No space left"):
            result.report(file)
    assert file.read_text() == "before" and os.listdir(tmp_path) == ["page.html"]
    result.report(file)
    assert file.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_errors_name_the_path_that_cannot_be_written(tmp_path):
    result = compare([1, 2], [1, 2])
    with pytest.raises(FormatError, match=r"nowhere.*No such file"):
        result.report(tmp_path / "nowhere" / "page.html")
    with pytest.raises(InputError, match="is a folder"):
        result.report(tmp_path)


# --- a folder run


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory):
    return evaluated(tmp_path_factory.mktemp("run"))


def evaluated(folder):
    """Two methods on eight cases, one of them unreadable and one missing."""
    rng = np.random.default_rng(0)
    names = {"truth": 0.0, "good": 0.05, HOSTILE.replace("/", ""): 0.3}
    for name in names:
        (folder / name).mkdir()
    for case in range(8):
        labels = rng.integers(1, 4, size=(12, 12))
        for name, share in names.items():
            wrong = np.where(rng.random((12, 12)) < share, 1, labels)
            np.save(folder / name / f"case{case}.npy", wrong)
    (folder / "good" / "case3.npy").write_bytes(b"<img src=x onerror=alert(1)>")
    (folder / "good" / "case5.npy").unlink()
    methods = {name: folder / name for name in list(names)[1:]}
    return evaluate(folder / "truth", methods, out=folder / "out", missing="worst", workers=1)


def records_of(reader):
    (text,) = [data for _, attributes, data in reader.inline if attributes.get("id") == "records"]
    return json.loads(text)


def test_the_page_of_an_evaluation_has_every_case_once(evaluation, tmp_path):
    write_evaluation(evaluation, tmp_path / "report.html", reports="none")
    data = records_of(Reader((tmp_path / "report.html").read_text(encoding="utf-8")))
    assert data["cases"] == [f"case{k}" for k in range(8)]
    scores = evaluation.values("score")
    assert len(data["records"]) == 14
    for case, method, score, *_ in data["records"]:
        expected = list(scores.values())[method][case]
        assert score == pytest.approx(expected, abs=5.1e-5)
    assert os.listdir(tmp_path) == ["report.html"]


def test_regions_of_an_evaluation_are_listed_worst_first_on_the_page_and_terminal(tmp_path):
    truth = np.repeat(np.array([1, 2, 3], np.uint8), 10)
    mine = truth.copy()
    mine[10:14] = 3  # Dice 12/16 of region 2, 20/24 of region 3, and 1 of region 1
    for name, labels in (("truth", truth), ("mine", mine)):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "a.npy", labels)
    folders = (tmp_path / "truth", {"mine": tmp_path / "mine"})
    result = evaluate(*folders, match="labels", out=tmp_path / "out", workers=1)
    table = region_table(result.summary, ["mine"])
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["2", "0.7500"],
        ["3", "0.8333"],
        ["1", "1.0000"],
    ]
    lines = run("summarise", tmp_path / "out").stdout.splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith("region "))
    assert [line.split()[0] for line in lines[start + 2 : start + 5]] == ["2", "3", "1"]


def test_the_settings_of_an_evaluation_list_all_raters_and_units(tmp_path):
    labels = np.ones((4, 4), np.uint8)
    labels[:2] = 2
    for name in ("mine", "anna", "ben"):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "a.npy", labels)
    raters = {name: tmp_path / name for name in ("anna", "ben")}
    result = evaluate(
        None,
        {"mine": tmp_path / "mine"},
        raters=raters,
        boundaries=True,
        tolerance=(1.5,),
        out=tmp_path / "out",
        workers=1,
    )
    facts = {fact.name: fact.values for fact in evaluation_settings(result)}
    assert facts["Tolerance, pixels"] == ("1.5",)
    write_evaluation(result, tmp_path / "report.html", reports="none")
    words = " ".join(Reader((tmp_path / "report.html").read_text(encoding="utf-8")).words)
    assert re.search(r"anna: \S*anna, ben: \S*ben", words)


def test_the_page_of_an_evaluation_shows_statistics_failures_and_missing_cases(
    evaluation, tmp_path
):
    write_evaluation(evaluation, tmp_path / "report.html", reports="none")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<script>alert" not in text
    images = [dict(attributes)["src"] for tag, attributes in Reader(text).tags if tag == "img"]
    assert images and all(address.startswith("data:image/") for address in images)
    words = " ".join(Reader(text).words)
    for measure in ("score", "lowest_dice"):
        for summary in evaluation.summaries(measure).values():
            assert f"{summary.mean:.4f}" in words and f"{summary.interval.low:.4f}" in words
    for rank in evaluation.ranks():
        assert f"mean rank {rank.mean_rank:.2f} over 8 cases" in words
        assert f"place {rank.place} in {percent(rank.stability)} of samples" in words
    assert "Missing and failed cases rank last (missing: worst)." in words
    assert "“good”: 1 missing and 1 failed of 8 cases, which rank last" in words
    assert "With 6 cases, 95 % confidence intervals may be too narrow." in words
    (difference,) = evaluation.differences()
    assert f"{difference.mean:+.4f}" in words
    for summary in evaluation.regions().values():
        assert f"{summary.mean:.4f}" in words
    assert "'<img src" in words and "no prediction" in words
    assert "14 scored, 1 missing, 1 failed" in words


@pytest.mark.parametrize(("reports", "count"), [("worst:2", 5), ("worst:0", 0), ("all", 14)])
def test_the_worst_cases_have_pages(evaluation, tmp_path, reports, count):
    write_evaluation(evaluation, tmp_path / "report.html", reports=reports)
    data = records_of(Reader((tmp_path / "report.html").read_text(encoding="utf-8")))
    linked = {record[-1] for record in data["records"]} - {""}
    assert len(linked) == count
    for address in linked:
        assert (tmp_path / unquote(address)).read_text(encoding="utf-8").startswith("<!doctype")
    if reports == "worst:2":
        lowest = {(case, m) for m, cases in evaluation.worst("score", 2).items() for case in cases}
        methods = list(evaluation.methods)
        with_page = {(data["cases"][r[0]], methods[r[1]]) for r in data["records"] if r[-1]}
        # And all methods of the two cases that are lowest on average.
        means = np.mean(list(evaluation.values("score").values()), axis=0)  # NaN comes last
        both = {evaluation.cases[k] for k in np.argsort(means)[:2]}
        assert lowest < with_page
        assert with_page - lowest <= {(case, method) for case in both for method in methods}


def test_pages_of_cases_have_images_if_cases_are_compared_again(evaluation, tmp_path):
    def again(case, method):
        sides = (evaluation.reference, evaluation.methods[method])
        return compare(*(np.load(os.path.join(side, f"{case}.npy")) for side in sides))

    write_evaluation(evaluation, tmp_path / "report.html", reports="worst:1", again=again)
    files = sorted((tmp_path / "report_cases").iterdir())
    together = [file for file in files if file.name.endswith("-all.html")]
    for file in files:
        if file not in together:
            assert Reader(file.read_text(encoding="utf-8")).pixels["size"] == [12, 12]
    (page,) = together
    reader = Reader(page.read_text(encoding="utf-8"))
    (content,) = [
        json.loads(text)
        for _, attributes, text in reader.inline
        if attributes.get("id") == "slices"
    ]
    case = page.name.split("-")[1]
    truth = np.load(os.path.join(evaluation.reference, f"{case}.npy"))
    codes = unpacked(content["layers"]["reference"]["codes"], 2)
    assert codes.reshape(12, 12).tolist() == truth.tolist()  # labels 1 to 3 are codes 1 to 3
    assert set(content["layers"]) == {
        "reference", "regions-0", "similarity-0", "regions-1", "similarity-1",
    }  # fmt: skip


def test_the_page_of_all_methods_opens_at_the_worst_region_of_the_worst_method(tmp_path):
    truth = np.ones((40, 40), int)
    truth[30:36, 30:36] = 2
    relabelled, missed = truth.copy(), truth.copy()
    relabelled[:, :16] = 5  # mean Dice (0 + 0.743 + 1) / 3, score 0.6
    missed[30:36, 30:36] = 1  # mean Dice (0 + 0.989) / 2, score 0.98
    slices = CaseSlices("a")
    for name, labels in (("relabelled", relabelled), ("missed", missed)):
        slices.add(name, compare(truth, labels, match="labels"))
    assert slices.worst.name == "missed"
    row, column = slices.content["mark"]
    assert 30 <= row < 36 and 30 <= column < 36
    write_side_by_side(slices, "truth", tmp_path / "all.html", [], {})
    words = " ".join(Reader((tmp_path / "all.html").read_text(encoding="utf-8")).words)
    assert "largest difference of “missed”" in words
    assert "Lowest: “missed”" in words


def test_a_case_that_cannot_be_compared_again_shows_recorded_numbers(evaluation, tmp_path):
    def again(case, method):
        if case == "case0":
            raise InputError("case0.npy: <b>gone</b>")
        return compare([[1, 1], [2, 2]], [[1, 1], [1, 2]])

    calls = []
    with pytest.warns(probdice.ProbdiceWarning, match=r"case0 \(.*\): the page has no images"):
        write_evaluation(
            evaluation,
            tmp_path / "report.html",
            reports="all",
            again=again,
            progress=lambda *about: calls.append(about),
        )
    assert [one[:2] for one in calls] == [(k, 14) for k in range(1, 15)]
    assert [k for k, one in enumerate(calls) if one[2]] == [0, 1]
    messages = {one[2] for one in calls[:2]}
    assert "case0 (good): the page has no images: case0.npy: <b>gone</b>" in messages
    first, *_, last = sorted((tmp_path / "report_cases").glob("*[!l].html"))
    text = first.read_text(encoding="utf-8")
    reader = Reader(text)
    assert "because the images cannot be shown. case0.npy: <b>gone</b>" in " ".join(reader.words)
    assert "<b>gone" not in text
    assert f"{evaluation.comparison('case0', 'good').score:.4f}" in reader.words
    assert "canvas" not in {tag for tag, _ in reader.tags}
    assert Reader(last.read_text(encoding="utf-8")).pixels["size"] == [2, 2]


@pytest.mark.parametrize(
    ("words", "option"), [("python", 'sums="normalise"'), ("command", "--sums normalise")]
)
def test_pages_of_cases_name_options_as_in_python_or_on_the_command_line(words, option, tmp_path):
    def again(case, method):
        raise InputError("a.npy: pass ", Option("sums", "normalise"))

    recorded = SimpleNamespace(
        comparison=lambda case, method: compare([1, 2], [1, 1]).detach(),
        records=[],
        reference="truth",
        rater_comparison=None,
        cases=("a",),
        values=lambda *_: {"mine": np.array([0.5])},
        rank_by=("score",),
        higher_is_better=lambda _: True,
    )
    problems = []
    with pytest.warns(probdice.ProbdiceWarning, match="has no images"):
        write_case_pages(
            recorded,
            tmp_path / "report.html",
            [("a", "mine")],
            again,
            {},
            lambda *progress: problems.append(progress[2]),
            words,
        )
    assert problems == [f"a (mine): the page has no images: a.npy: pass {option}"]
    (file,) = (tmp_path / "report_cases").iterdir()
    text = " ".join(" ".join(Reader(file.read_text(encoding="utf-8")).words).split())
    assert f"because the images cannot be shown. a.npy: pass {option}" in text
    merge = {"python": 'merge="reference"', "command": "--merge reference"}
    assert f"To merge it into a matched region, use {merge[words]}." in text


def test_only_pages_of_an_earlier_run_are_removed(evaluation, tmp_path):
    file, folder = tmp_path / "report.html", tmp_path / "report_cases"
    write_evaluation(evaluation, file, reports="worst:3")
    (folder / ".0001-case-a.html.partial").write_text("half")
    for name in ("notes.txt", "my-0001.html", "0001-case.html.bak"):
        (folder / name).write_text("mine")
    write_evaluation(evaluation, file, reports="worst:1")
    data = records_of(Reader(file.read_text(encoding="utf-8")))
    linked = {unquote(record[-1]).rpartition("/")[2] for record in data["records"]} - {""}
    # The worst case of each method, and both methods of the case that is worst on average.
    assert len(linked) == 4
    mine = {"notes.txt", "my-0001.html", "0001-case.html.bak"}
    assert set(os.listdir(folder)) == linked | mine
    write_evaluation(evaluation, file, reports="none")
    assert set(os.listdir(folder)) == mine


def test_a_failed_report_keeps_the_pages_of_the_previous_report(evaluation, tmp_path, monkeypatch):
    file, folder = tmp_path / "report.html", tmp_path / "report_cases"
    write_evaluation(evaluation, file, reports="worst:2")
    before = {page.name: page.read_bytes() for page in folder.iterdir()}

    def fail(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", fail)
        with (
            pytest.raises(FormatError, match=r"report\.html: cannot be written: No space left"),
            pytest.warns(probdice.ProbdiceWarning, match=r"cannot write the page: .*No space left"),
        ):
            write_evaluation(evaluation, file, reports="worst:1")
    assert {page.name: page.read_bytes() for page in folder.iterdir()} == before


def test_unknown_values_of_reports_are_rejected(evaluation, tmp_path):
    for reports in ("some", "worst", "worst:x", "worst:-1", "worst:²", "worst:1 "):
        with pytest.raises(InputError, match="'all', 'none' or 'worst:N'"):
            write_evaluation(evaluation, tmp_path / "report.html", reports=reports)


def test_templates_style_and_scripts_are_files_that_fetch_nothing():
    from importlib.resources import files

    for folder in ("templates", "assets"):
        for file in (files("probdice.report") / folder).iterdir():
            text = file.read_text(encoding="utf-8")
            assert not re.search(
                r"https?://(?!www\.w3\.org/2000/svg)|@import|url\(|eval\(|innerHTML|fetch\(", text
            ), file
