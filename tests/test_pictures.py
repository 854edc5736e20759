"""Positions, colours and values in the pictures."""

import subprocess
import sys
from dataclasses import replace
from time import perf_counter

import numpy as np
import pytest

import probdice
from probdice import Comparison, Geometry, Segmentation, compare
from probdice.errors import InputError, TooLargeError
from probdice.method.scoring import NeedsImages
from probdice.pictures import plot
from probdice.pictures.charts import means_along
from probdice.pictures.colours import NEUTRAL, PALETTE, colours_of, triples
from probdice.pictures.label_images import blended
from probdice.pictures.layout import MATCHED, MERGED, arrange, width_of
from probdice.pictures.matrix import matrix_of
from probdice.pictures.planes import planes_of
from probdice.pictures.region_names import short_names
from probdice.pictures.views import every_nth, largest, look, worst_place

CRISP = [1, 1, 1, 1, 2, 2, 2, 2], [7, 7, 5, 5, 5, 9, 9, 9]


def soft(shape, regions, seed=0):
    values = np.random.default_rng(seed).gamma(0.5, size=(regions, *shape)) + 1e-3
    return values / values.sum(axis=0)


class Sliced:
    """An array that can only be sliced; it records the size of the largest block read."""

    def __init__(self, array):
        self.array, self.shape, self.dtype, self.most = array, array.shape, array.dtype, 0

    def __getitem__(self, index):
        block = self.array[index]
        self.most = max(self.most, block.size)
        return block.copy()


# --- colours


def test_corresponding_regions_share_a_colour_and_merged_ones_its_shades():
    result = compare(*CRISP, merge="both")
    colours = colours_of(result)
    assert colours.groups == ("#0072B2", "#E69F00")
    assert colours.regions["reference"] == ("#0072B2", "#E69F00")
    shade, *matched = colours.regions["prediction"]  # of 5, 7 and 9
    assert matched == ["#0072B2", "#E69F00"]
    assert shade == "#59A3CD"  # 0.65 × (0, 114, 178) + 0.35 × 255


def test_an_unmatched_region_has_its_own_colour():
    colours = colours_of(compare(*CRISP))
    assert len(set(colours.groups)) == 3


@pytest.mark.parametrize("name", [0, "background", " Background "])
def test_the_largest_region_is_grey_if_its_label_means_background(name):
    reference = Segmentation.from_probabilities(
        [[0.9, 0.8, 0.1], [0.1, 0.2, 0.9]], names=[name, "x"]
    )
    assert colours_of(compare(reference, [4, 4, 5])).groups == (NEUTRAL, PALETTE[0])
    assert NEUTRAL not in colours_of(compare([1, 1, 0], [4, 4, 5])).groups


def test_groups_have_the_colours_given_for_their_regions():
    reference = replace(Segmentation.from_labels([1, 1, 2, 2, 3]), colours={1: "#123456"})
    prediction = replace(
        Segmentation.from_labels([7, 7, 8, 8, 9]), colours={7: "#FFFFFF", 8: PALETTE[0]}
    )
    result = compare(reference, prediction)
    assert colours_of(result).groups == ("#123456", PALETTE[0], PALETTE[1])
    assert colours_of(result).regions["prediction"] == ("#123456", PALETTE[0], PALETTE[1])
    assert colours_of(result, "safe").groups == PALETTE[:3]
    assert colours_of(Comparison.from_json(result.to_json())) == colours_of(result)


def test_a_colour_given_for_several_groups_is_used_once():
    given = {1: "#FF0080", 2: "#FF0080", 3: "#00FF00"}
    reference = replace(Segmentation.from_labels([1, 1, 2, 2, 3]), colours=given)
    colours = colours_of(compare(reference, [1, 1, 2, 2, 3]))
    assert colours.groups == ("#FF0080", PALETTE[0], "#00FF00")


def test_a_group_has_the_colour_of_its_matched_pair_before_that_of_a_merged_region():
    prediction = replace(
        Segmentation.from_labels([7, 7, 5, 5, 5, 9, 9, 9]), colours={5: "#111111", 7: "#222222"}
    )
    result = compare([1, 1, 1, 1, 2, 2, 2, 2], prediction, merge="both")
    assert colours_of(result).groups[0] == "#222222"


def test_red_green_and_blue_show_three_groups_and_no_more():
    assert colours_of(compare([1, 2, 3], [1, 2, 3]), "rgb").groups == (
        "#FF0000",
        "#00FF00",
        "#0000FF",
    )
    with pytest.raises(InputError, match="at most 3 groups, found 4"):
        colours_of(compare([1, 2, 3, 4], [1, 2, 3, 4]), "rgb")


def test_colours_are_distinct_for_colour_blind_vision():
    # Machado et al. 2009, severity 1: deuteranopia, protanopia; on linear light.
    kinds = [
        np.eye(3),
        [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
        [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    ]
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    light = ((triples(PALETTE) + 0.055) / 1.055) ** 2.4
    for kind, least in zip(kinds, [25, 15, 15], strict=True):
        seen = np.clip(light @ np.array(kind).T, 0, 1) @ to_xyz.T / [0.9505, 1, 1.089]
        root = np.cbrt(seen)
        lab = np.stack(
            [116 * root[:, 1], 500 * (root[:, 0] - root[:, 1]), 200 * (root[:, 1] - root[:, 2])], 1
        )
        apart = np.linalg.norm(lab[:, None] - lab[None], axis=-1)
        np.fill_diagonal(apart, np.inf)
        assert apart[:12, :12].min() > least
        assert apart.min() > 7.5


def test_colours_repeat_if_there_are_more_groups():
    labels = np.arange(1, 101)
    groups = colours_of(compare(labels, labels)).groups
    assert len(groups) == 100 and groups[64] == groups[0]


# --- pixels


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("sides", ["soft", "crisp", "mixed"])
def test_a_view_contains_the_pixels_of_the_arrays(sides, order):
    shape = (7, 9, 5)
    p = np.asarray(soft(shape, 3), order=order)
    q = np.asarray(soft(shape, 4, seed=1), order=order)
    labels, more = p.argmax(axis=0), q.argmax(axis=0) + 10
    mask = np.random.default_rng(2).random(shape) < 0.7
    given = {"soft": (p, q), "crisp": (labels, more), "mixed": (labels, q)}[sides]
    result = compare(*given, mask=mask, merge="both")
    ranges = (range(1, 7, 2), range(0, 9, 3), range(4, 5))
    view = look(result, ranges)
    at = np.ix_(*ranges)
    np.testing.assert_array_equal(view.inside, mask[at])
    np.testing.assert_allclose(view.f, result.map()[at], atol=1e-7)
    for side, array in zip(("reference", "prediction"), given, strict=True):
        if array.ndim == 3:
            found = np.where(mask[at], array[at] - array.min(), -1)
            np.testing.assert_array_equal(view.sides[side], found)
        else:
            expected = array[:, at[0], at[1], at[2]]
            np.testing.assert_array_equal(view.sides[side], np.where(mask[at], expected, 0))


def test_ignored_labels_and_empty_regions_are_left_out_of_a_view():
    reference = Segmentation.from_labels([[1, 1, 255], [2, 2, 255]], ignore=[255])
    prediction = np.zeros((3, 2, 3))
    prediction[0, 0], prediction[2, 1] = 1, 1
    view = look(compare(reference, prediction), (range(2), range(3)))
    assert view.sides["reference"].tolist() == [[0, 0, -1], [1, 1, -1]]
    assert view.sides["prediction"].shape == (2, 2, 3)
    assert view.inside.tolist() == [[True, True, False]] * 2


def test_a_view_reads_blocks_and_not_the_image(monkeypatch):
    monkeypatch.setattr("probdice.engine.blocks.BLOCK_BYTES", 2**20)
    p = Sliced(soft((40, 50, 60), 6).astype(np.float32))
    q = Sliced(soft((40, 50, 60), 6, seed=1).astype(np.float32))
    result = compare(Segmentation.from_probabilities(p), Segmentation.from_probabilities(q))
    p.most = 0
    view = look(result, every_nth((40, 50, 60), 2000))
    assert view.f.size <= 2000
    assert p.most <= 2**19 // 4  # values of float32 in its half of a block
    np.testing.assert_allclose(view.f, result.map()[np.ix_(*view.ranges)], atol=1e-7)


def test_every_nth_spreads_pixels_over_the_long_axes():
    assert every_nth((512, 512, 30), 2**21) == (range(0, 512, 2), range(0, 512, 2), range(30))
    assert every_nth((5, 4), 100) == (range(5), range(4))
    assert np.prod([len(r) for r in every_nth((10**6,), 1000)]) <= 1000


def test_the_largest_regions_come_first():
    values = np.array([[0.1, 0.5], [0.6, 0.5], [0.3, 0.0]])
    view = look(compare(values, [0, 1]), (range(2),))
    codes, kept = largest(view, "reference", 2)
    assert codes.tolist() == [[1, 0], [2, 1]]
    assert kept.tolist() == [[0.6, 0.5], [0.3, 0.5]]
    codes, kept = largest(view, "prediction", 2)
    assert codes.tolist() == [[0, 1]] and kept.tolist() == [[1, 1]]


def test_the_worst_place_is_where_a_neighbourhood_differs():
    reference = np.zeros((64, 64), int)
    prediction = reference.copy()
    prediction[3, 3] = 1  # a single pixel
    prediction[40:45, 20:25] = 1
    reference[-1] = prediction[-1] = 1
    view = look(compare(reference, prediction), (range(64), range(64)))
    row, column = worst_place(view)
    assert 40 <= row < 45 and 20 <= column < 25
    same = compare(reference, reference)
    assert worst_place(look(same, (range(64), range(64)))) == (32, 32)


# --- orientation


@pytest.mark.parametrize("flip", [(1, 1, 1), (-1, -1, 1), (-1, 1, -1)])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_images_with_geometry_are_shown_in_radiological_convention(flip, order):
    # One pixel at the patient's right, front and top, for any orientation of the array.
    shape = np.array((4, 5, 6))
    body = np.zeros(shape, int)
    body[-1, -1, -1] = 1
    affine = np.eye(4)
    array = body
    for axis in range(3):
        if flip[axis] < 0:
            array = np.flip(array, axis)
            affine[axis, axis], affine[axis, 3] = -1, shape[axis] - 1
    array = array.transpose(order)
    affine = affine[:, [*order, 3]]
    planes = {plane.name: plane for plane in planes_of(3, Geometry(array.shape, affine))}
    place = [int(k) for k in np.argwhere(array)[0]]
    corners = {"axial": (0, 0), "coronal": (0, 0), "sagittal": (0, 0)}
    for name, corner in corners.items():
        plane = planes[name]
        (axis,) = plane.across(3)
        cut = np.take(array, [place[axis]], axis=axis)
        assert plane.drawn(cut, 3)[corner] == 1
        assert (
            plane.edges
            == {
                "axial": ("A", "L", "P", "R"),
                "coronal": ("S", "L", "I", "R"),
                "sagittal": ("S", "P", "I", "A"),
            }[name]
        )


def test_arrays_without_geometry_are_shown_like_printed_arrays():
    (plane,) = planes_of(2, None)
    image = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(plane.drawn(image, 2), image)
    first, *_ = planes_of(3, None)
    np.testing.assert_array_equal(first.drawn(np.arange(6).reshape(1, 2, 3), 3), image)
    (line,) = planes_of(1, None)
    np.testing.assert_array_equal(line.drawn(np.arange(3), 1), [[0, 1, 2]])


# --- figures


def test_regions_are_blended_by_probability():
    p, q = soft((4, 5), 3), soft((4, 5), 3, seed=1)
    result = compare(p, q, match="labels")
    figure = plot(result, "regions", palette="rgb")
    first, second = (ax.images[0].get_array() for ax in figure.axes)
    np.testing.assert_allclose(first[..., :3], np.moveaxis(p, 0, -1), atol=1e-6)
    np.testing.assert_allclose(second[..., :3], np.moveaxis(q, 0, -1), atol=1e-6)
    safe = plot(result, "regions").axes[0].images[0].get_array()
    if result.groups[0].reference == (0,):
        expected = np.tensordot(p, triples(colours_of(result).regions["reference"]), (0, 0))
        np.testing.assert_allclose(safe[..., :3], expected, atol=1e-6)


def test_pixels_outside_the_mask_are_transparent():
    mask = np.array([[True, False], [True, True]])
    result = compare([[1, 1], [2, 2]], [[1, 1], [2, 2]], mask=mask)
    view = look(result, (range(2), range(2)))
    image = blended(view, "reference", colours_of(result))
    assert image[..., 3].tolist() == [[1, 0], [1, 1]]
    shown = plot(result, "map").axes[0].images[0].get_array()
    assert shown.mask.tolist() == [[False, True], [False, False]]


def test_the_map_is_white_where_f_is_1_and_red_where_it_is_0():
    result = compare([[1, 1], [2, 2]], [[1, 1], [1, 2]])
    figure = plot(result, "map")
    image = figure.axes[0].images[0]
    assert image.get_array().tolist() == [[1, 1], [0, 1]]
    assert image.get_clim() == (0, 1)
    assert image.cmap(1.0)[:3] == (1, 1, 1)
    assert image.cmap(0.0)[:3] == pytest.approx((1, 46 / 255, 99 / 255))
    assert len(figure.axes) == 2  # the other one is the colour bar


def test_a_volume_is_cut_through_the_worst_place_in_three_planes():
    reference = np.zeros((20, 24, 28), int)
    reference[:2] = 1
    prediction = reference.copy()
    prediction[10:13, 6:9, 20:23] = 1
    result = compare(reference, prediction)
    figure = plot(result, "views")
    panels = [ax for ax in figure.axes if ax.images and ax.get_label() != "<colorbar>"]
    f = result.map()
    assert len(panels) == 9
    maps = [np.asarray(ax.images[0].get_array()) for ax in panels[2::3]]
    for image, cut in zip(maps, (f[11], f[:, 7], f[:, :, 21]), strict=True):
        np.testing.assert_array_equal(image, cut)
    chosen = plot(result, "map", place=(0, 5, 6)).axes[0].images[0].get_array()
    np.testing.assert_array_equal(chosen, f[0])


def drawn_lines(ax):
    """Rows, colour and style of every line between two regions, and its width."""
    return {
        (*line.get_ydata(), line.get_color(), line.get_linestyle()): line.get_linewidth()
        for line in ax.lines
        if len(line.get_xdata()) == 2
    }


def test_matched_pairs_are_blue_and_merges_green():
    result = compare(*CRISP, merge="both")
    ax = plot(result, "correspondence").axes[0]
    # Reference 1 is next to 7 and 5, with Dice 8/9; 2 is next to 9, with 6/7.
    assert drawn_lines(ax) == pytest.approx(
        {
            (0.5, 0.0, MATCHED, "-"): 1 + 6 * 8 / 9,
            (0.5, 1.0, MERGED, "-"): 1 + 6 * 8 / 9,
            (2.0, 2.0, MATCHED, "-"): 1 + 6 * 6 / 7,
        }
    )
    written = [text.get_text() for text in ax.texts]
    assert {"1", "2", "5", "7", "9", "4 pixels", "2 pixels", "3 pixels"} <= set(written)
    dots = [line.get_color() for line in ax.lines if len(line.get_xdata()) == 1]
    assert dots == ["#0072B2", "#0072B2", "#59A3CD", "#E69F00", "#E69F00"]


# One pair of regions is joined, one region is split.
BOTH = [1] * 6 + [2] * 2 + [3] * 8, [5] * 8 + [6] * 5 + [7] * 3


def test_merges_on_both_sides_are_drawn_between_overlapping_regions():
    layout = arrange(compare(*BOTH, merge="both"))
    lines = [
        (link.reference.label, link.prediction.label, link.merged, link.dice, link.apart)
        for link in layout.links
    ]
    assert lines == [
        (1, 5, False, 1, False),
        (2, 5, True, 1, False),
        (3, 6, False, 1, False),
        (3, 7, True, 1, False),
    ]
    assert [node.label for node in layout.nodes] == [1, 2, 5, 3, 6, 7]


def test_regions_merged_on_both_sides_have_lines_only_if_they_overlap():
    # 1↔5; 6 and 2 are merged into them one after the other, and do not overlap.
    reference, prediction = [1] * 9 + [2] * 2, [6] * 3 + [5] * 8
    result = compare(reference, prediction, merge="both")
    assert [(merge.region, merge.into) for merge in result.merges] == [(6, (1,)), (2, (5, 6))]
    lines = [(link.reference.label, link.prediction.label) for link in arrange(result).links]
    assert lines == [(1, 5), (2, 5), (1, 6)]
    shades = colours_of(result).by_label(result)
    assert shades["reference", 2] != shades["prediction", 6]


def test_pairs_that_share_no_pixel_are_dashed_and_counted():
    result = compare(*BOTH, match="paper")  # 7↔2 share no pixel
    figure = plot(result, "correspondence")
    styles = {line[:2]: line[3] for line in drawn_lines(figure.axes[0])}
    assert styles == {(0, 0): "-", (1, 1): "--", (2, 2): "-"}
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["matched", "1 pair shares no pixel"]
    assert arrange(result, 1).apart == 1  # also if it is not drawn
    assert arrange(compare(*BOTH)).apart == 0


def test_pairs_without_common_pixels_are_dashed_with_match_by_labels_or_mapping():
    result = compare([1, 1, 2, 2, 3], [1, 1, 3, 3, 2], match="labels")
    assert [link.apart for link in arrange(result).links] == [False, True, True]
    result = compare([1, 1, 2, 2], [5, 6, 7, 7], match={5: 1, 7: 1})
    lines = [(link.prediction.label, link.apart) for link in arrange(result).links]
    assert lines == [(5, False), (7, True)]


def test_a_drawing_of_the_correspondence_needs_no_images():
    text = compare(*CRISP, merge="both").to_json()
    result = probdice.Comparison.from_json(text)
    layout = arrange(result)
    assert [link.dice for link in layout.links] == pytest.approx([8 / 9, 8 / 9, 6 / 7])
    assert [node.volume for node in layout.nodes] == [4, 2, 3, 4, 3]
    plot(result, "correspondence")


@pytest.mark.parametrize("kind", ["overview", "map", "slices", "histogram"])
def test_drawing_pixels_of_a_detached_comparison_is_an_error(kind):
    result = compare(soft((2, 2), 2), soft((2, 2), 2, seed=1))
    with pytest.raises(NeedsImages, match="a picture of the pixels requires the images"):
        plot(result.detach(), kind)


def test_a_line_with_unknown_dice_is_drawn():
    values = soft((6, 7), 2)
    overlap = probdice.overlap(values, soft((6, 7), 2, seed=1), similarity="aitchison")
    result = overlap.compare()
    assert np.isnan(result.groups[0].dice)
    plot(result, "correspondence")


def test_lines_with_higher_dice_are_wider():
    assert width_of(0) == 1 and width_of(1) == 7 and width_of(0.3) > width_of(0.2)


# --- the overlap matrix


def test_the_matrix_is_in_the_order_of_the_matching():
    # 1↔9 and 2↔7 are matched; 5 is unmatched and next to 7, in the second row.
    result = compare([1, 1, 1, 2, 2, 2, 2, 2], [9, 9, 7, 7, 7, 7, 5, 5])
    matrix = matrix_of(result)
    assert [result.overlap.prediction.label(k) for k in matrix.order.prediction] == [9, 7, 5]
    assert (matrix.matched_counts.reference, matrix.matched_counts.prediction, matrix.step) == (
        2,
        2,
        1,
    )
    nan = np.nan
    expected = [[4 / 5, 2 / 7, nan], [nan, 6 / 9, 4 / 7]]  # Dice of overlapping pairs
    np.testing.assert_allclose(matrix.cells, expected, atol=1e-12)


def test_an_unmatched_region_is_next_to_the_region_it_overlaps_most():
    # The prediction splits both reference regions; its labels are unordered.
    result = compare([1] * 9 + [2] * 9, [8] * 5 + [3] * 4 + [4] * 5 + [1] * 4)
    order = [result.overlap.prediction.label(k) for k in matrix_of(result).order.prediction]
    assert order == [8, 4, 3, 1]


def test_the_matrix_of_probabilities_contains_the_fuzzy_dice_of_every_pair():
    p, q = soft((5, 6), 3), soft((5, 6), 3, seed=1)
    result = compare(p, q, match="labels")
    expected = [[1 - np.abs(one - two).sum() / (one.sum() + two.sum()) for two in q] for one in p]
    np.testing.assert_allclose(matrix_of(result).cells, expected, atol=1e-12)


def test_groups_are_outlined_and_numbers_written_if_they_fit():
    figure = plot(compare(*CRISP, merge="both"), "overlap")
    ax = figure.axes[0]
    written = {text.get_position(): text.get_text() for text in ax.texts}
    assert written == {(0, 0): "0.57", (1, 0): "0.67", (0, 1): "0.29", (2, 1): "0.86"}
    outlined = {
        (round(box.get_x() + 0.46), round(box.get_y() + 0.46)): box.get_edgecolor()[:3]
        for box in ax.patches
    }
    blue, green = tuple(triples((MATCHED,))[0]), tuple(triples((MERGED,))[0])
    assert outlined == {(1, 0): blue, (0, 0): green, (2, 1): blue}
    assert figure.legends == []


def test_unmatched_regions_are_separated_by_a_line_and_counted():
    figure = plot(compare(*CRISP), "overlap")
    (line,) = [line for line in figure.axes[0].lines if line.get_linestyle() == "-"]
    assert list(line.get_xdata()) == [1.5, 1.5]
    (text,) = figure.legends[0].get_texts()
    assert text.get_text() == "unmatched, right of the line: 1 of the prediction"


def test_a_cell_of_many_pairs_shows_the_largest_of_them():
    reference = np.repeat(np.arange(1000), 2)
    prediction = reference.copy()
    prediction[::200] = 5000  # takes one of the two pixels of every hundredth region
    matrix = matrix_of(compare(reference, prediction), max_cells=10)
    assert matrix.cells.shape == (10, 10) and matrix.step == 101
    np.testing.assert_array_equal(np.diag(matrix.cells), 1)


def test_a_hundred_thousand_regions_need_no_table_of_all_pairs(monkeypatch):
    monkeypatch.setattr("probdice.method.overlap.MAX_TABLE_PAIRS", 99)
    labels = np.arange(100_000)
    result = compare(labels, labels[::-1])
    with pytest.raises(TooLargeError):
        result.weights  # noqa: B018
    figure = plot(result, "overlap")
    ax = figure.axes[0]
    assert ax.get_ylabel() == "reference: 100,000 regions, in matching order"
    assert max(ax.images[0].get_array().shape) <= 480


# --- names


def test_shortened_names_stay_distinct():
    names = ["Left-Cerebral-White-Matter", "Left-Cerebral-Cortex", "Left-Cerebral-Exterior", "x"]
    assert short_names(names, 14) == ["Left-C…-Matter", "Left-C…-Cortex", "Left-C…xterior", "x"]
    names = [f"the-same-beginning-{k}-and-the-same-end" for k in (1, 2)]
    assert short_names(names, 12) == ["…1-and-the-s", "…2-and-the-s"]


@pytest.mark.parametrize("most", [4, 8, 12])
def test_different_names_are_never_shortened_to_the_same(most):
    names = [f"{a * 30}{b * 30}{a * 30}" for a in "xy" for b in "pqrst"] + ["xxx…", "…1"]
    short = short_names(names, most)
    assert len(set(short)) == len(names) and max(map(len, short)) <= most


def test_equal_names_stay_equal_and_line_breaks_and_dollars_are_escaped():
    assert short_names(["a\nb", "$x$", "$x$"], 9) == ["a b", r"\$x\$", r"\$x\$"]


# --- the correspondence on a page


def shifted(count, pixels=10):
    """Regions in a row, and a copy in which each region is shifted one pixel further."""
    labels = np.repeat(np.arange(count), pixels)
    moved = labels.copy()
    for k in range(count - 1):
        moved[(k + 1) * pixels : (k + 1) * pixels + k * 5 // count] = k
    return labels, moved


def test_the_correspondence_of_many_regions_shows_the_lowest_dice_on_one_page():
    result = compare(*shifted(1500))
    figure = plot(result, "correspondence")
    width, height = figure.get_size_inches()
    assert width <= 7 and height <= 9
    layout = arrange(result, rows=46)
    shown = sorted({node.group for node in layout.nodes})
    dice = [group.dice for group in result.groups]
    assert len(shown) == 46 == len(layout.links)
    assert max(dice[k] for k in shown) <= layout.floor
    assert layout.floor == min(d for k, d in enumerate(dice) if k not in shown)
    title = figure.legends[0].get_title().get_text().replace("\n", " ")
    assert "46 of 1,500 groups, those with the lowest matched Dice" in title


def test_few_regions_keep_their_order():
    layout = arrange(compare(*shifted(20)), rows=46)
    assert [node.label for node in layout.nodes if node.side == "reference"] == list(range(20))
    assert layout.hidden == 0 and layout.floor is None


def test_a_very_large_group_is_shortened():
    reference = np.repeat([1, 2], 500)
    prediction = np.concatenate([np.arange(500), np.full(500, 999)])
    prediction[:100] = 0
    result = compare(reference, prediction, merge="prediction")
    layout = arrange(result, rows=20)
    counts = [(node.label, node.count) for node in layout.nodes if node.side == "prediction"]
    assert sum(count for _, count in counts) == 402  # 0, 100 to 499, and 999
    assert len(counts) == 9 and layout.rows == 9
    assert layout.hidden == 0
    figure = plot(result, "correspondence", figsize=(4, 3))
    assert "394 more" in {text.get_text() for text in figure.axes[0].texts}


# --- axes and sizes


@pytest.mark.parametrize("kind", ["map", "correspondence", "overlap", "histogram"])
def test_a_picture_is_drawn_into_given_axes(kind, tmp_path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3))
    left, right = figure.subplots(1, 2)
    result = compare([[1, 1, 1], [2, 2, 2]], [[1, 1, 2], [2, 2, 2]])
    assert plot(result, kind, ax=right) is figure
    assert not left.has_data() and right.has_data()
    assert figure.legends == [] and figure.get_suptitle() == ""
    assert figure.get_size_inches().tolist() == [6, 3]
    figure.savefig(tmp_path / "figure.svg")


def test_a_picture_with_several_panels_needs_one_axes_per_panel():
    from matplotlib.figure import Figure

    axes = Figure().subplots(2, 3)
    result = compare(np.tile([1, 1, 2, 2, 2], (3, 4, 1)), np.ones((3, 4, 5), int))
    assert result.plot("overview", ax=axes[0]) is axes[0, 0].figure
    result.plot("slices", ax=list(axes[1]))
    assert [ax.get_xlabel() for ax in axes[1]] == ["axis 0", "axis 1", "axis 2"]
    with pytest.raises(InputError, match="has 9 panels, but ax has 6 axes"):
        result.plot("views", ax=axes)


def test_figsize_sets_the_size_of_the_figure():
    result = compare([[1, 1], [2, 2]], [[1, 1], [1, 2]])
    for kind in ("overview", "correspondence", "overlap", "histogram", "slices"):
        assert plot(result, kind, figsize=(3.5, 2)).get_size_inches().tolist() == [3.5, 2]
    with pytest.raises(InputError, match="a width and a height in inches, found 3"):
        plot(result, "map", figsize=3)
    with pytest.raises(InputError, match="Pass ax or figsize, not both"):
        plot(result, "map", ax=plot(result, "map").axes[0], figsize=(3, 3))
    with pytest.raises(InputError, match="ax must be Matplotlib axes, found int"):
        plot(result, "map", ax=3)


@pytest.mark.parametrize("similarity", ["absolute", probdice.Aitchison(floor=0.01)])
@pytest.mark.parametrize("side", ["reference", "prediction"])
def test_unmatched_labels_are_compared_with_probabilities_in_one_group(side, similarity):
    labels = np.random.default_rng(0).integers(0, 9, (20, 30))
    pair = (labels, soft((20, 30), 3)) if side == "reference" else (soft((20, 30), 3), labels)
    result = compare(*pair, similarity=similarity)
    assert len(result.unmatched[side]) == 6
    np.testing.assert_array_equal(look(result, (range(20), range(30))).f, result.map())


@pytest.mark.parametrize("other", ["labels", "probabilities"])
def test_label_maps_of_many_regions_are_looked_up(other):
    labels = np.random.default_rng(0).integers(0, 1500, (400, 500))
    moved = np.roll(labels, 1, axis=0)
    result = compare(labels, moved if other == "labels" else soft((400, 500), 3))
    look(result, (range(2), range(2)))  # compiles
    durations = []
    for _ in range(3):
        start = perf_counter()
        look(result, (range(400), range(500)))
        durations.append(perf_counter() - start)
    assert min(durations) < 1  # it takes 0.01 s; one row per group would take 2 s


def test_values_below_1_are_never_rounded_to_1():
    labels = np.repeat([1, 2], 20_000).reshape(200, 200)
    other = labels.copy()
    other[0, 0] = 2
    result = compare(labels, other)  # a score of 0.999975
    assert plot(result, "map").axes[0].get_title() == "f, mean 0.9999"
    bars = [text.get_text() for text in plot(result, "histogram").axes[0].texts]
    assert bars == ["0.00 %\n1 pixel", "99.99 %\n39,999 pixels"]
    values = np.where(labels == 1, 0.75, 0.25)
    soft_result = compare(np.stack([values, 1 - values]), np.stack([values, 1 - values]) * 0 + 0.5)
    (score,) = plot(soft_result, "histogram").axes[0].texts
    assert score.get_text() == "score 0.7500"
    dice = [text.get_text() for text in plot(result, "overlap").axes[0].texts]
    assert dice == ["0.99", "0.00", "0.99"]


def test_slices_shows_the_mean_of_f_per_slice():
    p, q = soft((4, 5, 6), 3), soft((4, 5, 6), 3, seed=1)
    mask = np.ones((4, 5, 6), bool)
    mask[2] = False
    mask[0, :3] = False
    result = compare(p, q, mask=mask)
    figure = plot(result, "slices")
    f = result.map().astype(float)
    means = np.array([f[0, 3:].mean(), f[1].mean(), np.nan, f[3].mean()])
    drawn = figure.axes[0].lines[-1]
    np.testing.assert_allclose(drawn.get_ydata(), means, atol=1e-7)
    assert list(drawn.get_xdata()) == [0, 1, 2, 3]
    view = look(result, (range(4), range(5), range(6)))
    np.testing.assert_allclose(means_along(view, 2)[5], np.nanmean(f[:, :, 5]), atol=1e-7)


def test_the_histogram_counts_every_pixel_once():
    p, q = soft((40, 50), 3), soft((40, 50), 3, seed=1)
    result = compare(p, q)
    heights = [bar.get_height() for bar in plot(result, "histogram").axes[0].patches]
    expected, _ = np.histogram(result.map(), bins=50, range=(0, 1))
    np.testing.assert_allclose(heights, expected / 2000, atol=1e-12)


@pytest.mark.parametrize("similarity", ["absolute", probdice.Aitchison(floor=0.01)])
def test_the_histogram_of_label_maps_counts_agreeing_pixels(similarity):
    result = compare([1, 1, 1, 1, 2, 2, 2, 2], [7, 7, 7, 5, 5, 5, 5, 5], similarity=similarity)
    ax = plot(result.detach(), "histogram").axes[0]
    assert [bar.get_height() for bar in ax.patches] == [1 / 8, 7 / 8]
    assert [text.get_text() for text in ax.texts] == ["12.50 %\n1 pixel", "87.50 %\n7 pixels"]


@pytest.mark.parametrize("kind", ["overview", "regions", "map", "slices", "histogram"])
@pytest.mark.parametrize("shape", [(12,), (6, 7), (4, 5, 6), (3, 4, 5, 2)])
def test_images_of_any_number_of_axes_are_drawn(kind, shape, tmp_path):
    result = compare(soft(shape, 2), soft(shape, 3, seed=1))
    figure = plot(result, kind)
    figure.savefig(tmp_path / "figure.png", dpi=40)


def test_dollars_in_a_label_are_escaped(tmp_path):
    reference = Segmentation.from_labels([[1, 2]], names={1: "$x", 2: "a\n$^b$ <i>"})
    for kind in ("overview", "correspondence", "overlap"):
        compare(reference, [[1, 2]]).plot(kind).savefig(tmp_path / f"{kind}.svg")


def test_impossible_pictures_raise_an_error():
    result = compare([[1, 2]], [[1, 2]])
    with pytest.raises(InputError, match="kind must be one of 'overview'"):
        plot(result, "pie")
    with pytest.raises(InputError, match="requires a volume with three axes, found shape"):
        plot(result, "views")
    with pytest.raises(InputError, match="pixel index within the shape"):
        plot(result, "map", place=(5, 5))
    with pytest.raises(InputError, match="palette must be"):
        plot(result, "map", palette="jet")


def test_figures_are_not_shown_and_matplotlib_is_imported_lazily():
    code = (
        "import sys, probdice, probdice.pictures\n"
        "assert 'matplotlib' not in sys.modules\n"
        "probdice.compare([[1, 2]], [[1, 2]]).plot()\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_outlines_are_drawn_with_the_distance_of_each_element():
    reference, prediction = np.zeros((2, 14, 14), int)
    reference[4:10, 4:10] = prediction[4:10, 5:11] = 1
    figure = compare(reference, prediction, match="labels").plot("boundaries")
    for ax, first in zip(figure.axes[:2], (3.5, 4.5), strict=True):
        (outline,) = ax.collections
        assert len(outline.get_offsets()) == 24
        assert outline.get_offsets()[:, 0].min() == first
        assert outline.get_array().max() == 1
    (curve,) = figure.axes[2].patches
    assert curve.get_data().values.sum() == pytest.approx(1)


def test_outlines_of_a_volume_are_those_of_the_slice_with_the_largest_distance():
    reference, prediction = np.zeros((2, 9, 12, 12), int)
    reference[2:7, 4:8, 4:8] = prediction[2:7, 4:8, 4:8] = 1
    prediction[5, 4:8, 8:10] = 1
    figure = compare(reference, prediction, match="labels").plot("boundaries")
    assert figure.get_suptitle() == "axis 0, slice 5"
    assert figure.axes[1].collections[0].get_offsets()[:, 0].max() > 9
    elsewhere = compare(reference, prediction, match="labels").plot("boundaries", place=(3, 5, 5))
    assert elsewhere.axes[1].collections[0].get_offsets()[:, 0].max() <= 7.5


def test_outlines_of_a_missed_region_are_grey_and_have_no_histogram():
    reference, prediction = np.zeros((2, 14, 20), int)
    reference[4:10, 4:10] = prediction[4:10, 5:11] = 1
    reference[4:8, 14:18] = 2
    figure = compare(reference, prediction, match="labels").plot("boundaries")
    greys = [
        outline
        for ax in figure.axes[:2]
        for outline in ax.collections
        if outline.get_array() is None
    ]
    assert [len(outline.get_offsets()) for outline in greys] == [16]
    assert len(figure.axes[2].patches) == 1


def test_a_given_background_is_grey_whatever_its_label():
    labels = np.array([[5, 5, 5], [1, 2, 2]])
    result = compare(labels, labels, background=5)
    colours = dict(
        zip(result.reference_labels, colours_of(result).regions["reference"], strict=True)
    )
    assert [label for label, colour in colours.items() if colour == NEUTRAL] == [5]
    without = compare(labels, labels)
    assert NEUTRAL not in colours_of(without).regions["reference"]
