"""Figures of the page of an evaluation, and stacks of slices."""

import zlib
from base64 import b64decode
from dataclasses import replace

import numpy as np
import pytest

from probdice import Geometry, Segmentation, compare
from probdice.files.background_images import BackgroundImage
from probdice.pictures.colours import PALETTE
from probdice.pictures.views import largest_loss
from probdice.report.evaluation_figures import interval_plot, round_ticks, stability_figure
from probdice.report.facts import title_of
from probdice.report.side_by_side import CaseSlices, write_side_by_side
from probdice.report.slice_stacks import fraction_layer, image_layer, region_layer, stack_of

COLOURS = {"a": "#0072B2", "b": "#E69F00"}


def entry(method, mean, low=None, high=None):
    interval = {"low": low, "high": high}
    return {"method": method, "mean": mean, "aggregate": "mean", "interval": interval}


def summary(raters=None):
    """Method b is first: 0.8 (0.75 to 0.85); a has 0.6 (0.5 to 0.7)."""
    score = {
        "higher_is_better": True,
        "methods": [entry("a", 0.6, 0.5, 0.7), entry("b", 0.8, 0.75, 0.85)],
        "ranks": [{"method": "b"}, {"method": "a"}],
    }
    return {"measures": {"score": score}, "rater_comparison": raters}


def unpacked(text):
    return np.frombuffer(zlib.decompress(b64decode(text)), "u1")


def test_methods_are_drawn_in_the_order_of_the_table_at_their_values():
    plot = interval_plot("score", "Score", summary(), COLOURS)
    assert [(dot.name, dot.value) for dot in plot.dots] == [
        ("b", "0.800 (0.750–0.850)"),
        ("a", "0.600 (0.500–0.700)"),
    ]
    # The axis has a margin of 8 % of 0.5 to 0.85 on both sides: from 0.472 to 0.878. It is drawn
    # from 2 % to 98 % of the width.
    place = {value: 2 + 96 * (value - 0.472) / 0.406 for value in (0.5, 0.6, 0.7, 0.75, 0.8, 0.85)}
    first, second = plot.dots
    assert (first.low, first.x, first.high) == pytest.approx(
        (place[0.75], place[0.8], place[0.85]), abs=1e-3
    )
    assert (second.low, second.x, second.high) == pytest.approx(
        (place[0.5], place[0.6], place[0.7]), abs=1e-3
    )
    assert [text for _, text in plot.ticks] == ["0.5", "0.6", "0.7", "0.8"]
    assert dict((text, x) for x, text in plot.ticks)["0.6"] == second.x
    assert plot.band is None and first.with_raters is None
    assert plot.axis == "Score, mean over the cases with 95 % CI (higher is better)"


def test_the_band_is_the_inter_rater_agreement():
    raters = {
        "measure": "score",
        "inter_rater": entry("", 0.9, 0.85, 0.95),
        "methods": {"a": entry("a", 0.55), "b": entry("b", 0.75)},
    }
    plot = interval_plot("score", "Score", summary(raters), COLOURS)
    # The axis goes from 0.5 − 0.036 to 0.95 + 0.036.
    across = lambda value: 2 + 96 * (value - 0.464) / 0.522  # noqa: E731
    assert plot.band.x == pytest.approx(across(0.9), abs=1e-3)
    assert plot.band.low == pytest.approx(across(0.85), abs=1e-3)
    assert plot.band.width == pytest.approx(across(0.95) - across(0.85), abs=2e-3)
    assert plot.band.label == "between raters 0.900 (0.850–0.950)"
    # The label is left of a band near the right end of the axis.
    assert (plot.band.anchor, plot.band.label_x) == ("end", plot.band.low)
    assert [dot.with_raters for dot in plot.dots] == pytest.approx(
        [across(0.75), across(0.55)], abs=1e-3
    )
    other = interval_plot("score", "Score", summary(raters | {"measure": "mean_dice"}), COLOURS)
    assert other.band is None


def test_a_measure_without_finite_values_has_no_plot():
    content = summary()
    content["measures"]["score"]["methods"] = [entry("a", None), entry("b", float("inf"))]
    assert interval_plot("score", "Score", content, COLOURS) is None


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.472, 0.878, [0.5, 0.6, 0.7, 0.8]),
        (0.0, 1.0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (0.0, 5.9, [0.0, 2.0, 4.0]),
        (0.0, 0.055, [0.0, 0.02, 0.04]),
        (-3.0, 30.0, [0.0, 10.0, 20.0, 30.0]),
    ],
)
def test_ticks_are_round(low, high, expected):
    assert round_ticks(low, high) == expected


def test_rank_stability_lists_the_share_of_every_place():
    ranks = [
        {"method": "b", "place": 1, "shares": [0.996, 0.004]},
        {"method": "a", "place": 2, "shares": [0.004, 0.996]},
    ]
    figure = stability_figure(ranks, COLOURS)
    assert [blob.share for blob in figure.blobs] == ["99 %", "< 1 %", "< 1 %", "99 %"]
    assert [name for _, name in figure.methods] == ["b", "a"]
    assert [place for _, place in figure.places] == [1, 2]
    assert stability_figure(ranks[:1], COLOURS) is None
    assert not figure.tied
    ranks[1]["shares"] = [0.1, 0.9]  # tied for first in 9.6 % of the samples
    assert stability_figure(ranks, COLOURS).tied


def test_a_stack_contains_every_slice_as_displayed():
    shape = (2, 3, 4)
    labels = np.arange(24).reshape(shape)
    # The second axis points to anterior and the third to superior, so that rows start at the end.
    geometry = Geometry(shape, np.diag([5.0, 1.0, 1.0, 1.0]))
    stack = stack_of(Segmentation.from_labels(labels, geometry=geometry), 10**6)
    assert stack.plane.name == "sagittal"
    content = stack.content(stack.position_of((1, 0, 0)))
    assert (content["height"], content["width"], content["start"]) == (4, 3, 1)
    assert content["mark"] == (3, 2)  # the bottom right corner
    assert content["names"] == ["sagittal slice 0", "sagittal slice 1"]
    layer = region_layer(stack, labels, ["#000000"] * 24)
    codes = unpacked(layer["codes"]).reshape(2, 4, 3)
    # Superior is at the top and anterior on the left.
    expected = np.stack([image.T[::-1, ::-1] + 1 for image in labels])
    assert codes.tolist() == expected.tolist()
    assert stack.left_out == ""


def test_large_images_are_subsampled_along_the_longest_axes():
    stack = stack_of(Segmentation.from_labels(np.zeros((2, 9, 10), int)), 50)
    assert [indices.step for indices in stack.ranges] == [1, 2, 2]
    assert stack.left_out == "The images show at least every 2nd voxel along each axis."
    assert stack.position_of((1, 4, 0)) == (1, 4, 0)


def test_fractions_and_images_are_stored_in_bytes():
    stack = stack_of(Segmentation.from_labels(np.zeros((1, 3), int)), 100)
    layer = fraction_layer(stack, np.array([[0.0, 0.5, np.nan]]), "similarity")
    assert unpacked(layer["values"]).tolist() == [0, 127, 255]
    grey = image_layer(stack, BackgroundImage(np.array([[10.0, 20.0, 30.0]]), False))
    assert unpacked(grey["values"]).tolist() == [0, 128, 255]


@pytest.mark.parametrize(
    "width", [0.0123, 0.045, 0.049, 0.0499, 0.052, 0.0999, 0.5, 0.97, 4.9, 9.99]
)
def test_there_are_some_ticks_for_every_range(width: float) -> None:
    ticks = round_ticks(0.3, 0.3 + width)
    assert 1 <= len(ticks) <= 10
    assert all(0.3 - 1e-6 <= tick <= 0.3 + width + 1e-6 for tick in ticks)


@pytest.mark.parametrize(
    ("reference", "prediction", "title"),
    [
        (
            "maps/pve_0.nii,maps/pve_1.nii,maps/pve_2.nii",
            "csf.nii,grey.nii",
            "pve_{0,1,2}.nii (reference) and csf.nii, grey.nii (prediction)",
        ),
        (
            "/data/anna/7.png",
            "/data/ben/7.png",
            "anna/7.png (reference) and ben/7.png (prediction)",
        ),
        ("truth.png", "", "truth.png (reference) and prediction"),
    ],
)
def test_the_title_names_all_files_and_distinguishes_equal_names(reference, prediction, title):
    sides = [
        replace(Segmentation.from_labels([1, 2]), source=source)
        for source in (reference, prediction)
    ]
    assert title_of(compare(*sides)) == title


def test_the_page_of_all_methods_has_a_verdict_a_legend_and_a_mark(tmp_path):
    truth = np.array([[1, 1, 2, 2], [1, 1, 2, 2]])
    far, near = truth.copy(), truth.copy()
    far[:, 1], near[1, 1] = 2, 2
    slices = CaseSlices("seven")
    slices.add("far", compare(truth, far))
    slices.add("near", compare(truth, near))
    assert slices.content["mark"] == (0, 1)
    assert slices.content["frame"] == [[0, 1], [0, 3]]
    assert slices.legend == {"1": PALETTE[0], "2": PALETTE[1]}
    write_side_by_side(slices, "truth", tmp_path / "page.html", [], {})
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    # By hand: 6/7 and 8/9 for near, 4/6 and 8/10 for far.
    assert (
        "Highest mean Dice: “near” (0.87, good overlap). Lowest: “far” (0.73, good overlap); "
        "worst region: region 1 (Dice 0.67)." in text
    )
    assert "> unmatched<" not in text


def test_the_mark_is_a_pixel_of_large_loss():
    loss = np.zeros((60, 60))
    loss[30, 10:20], loss[5, 50] = 1, 1
    row, column = largest_loss(loss)
    assert row == 30 and 10 <= column < 20
    assert largest_loss(np.zeros((4, 6))) == (2, 3)
