"""Boundary distances as a result: laws of the method, empty regions, levels, and printed output."""

import json
import pickle
from itertools import permutations
from math import inf, isnan

import numpy as np
import pytest
from boundaries_reference import summary
from boundary_images import images_of
from hypothesis import given, settings
from hypothesis import strategies as st

from probdice import InputError
from probdice.engine.kernels import surface_summary
from probdice.evaluation.criteria import criterion_of
from probdice.evaluation.tables import ExtraColumns
from probdice.method.sides import Both
from probdice.metrics.boundaries import LEVELS, Boundaries, boundaries_of
from probdice.metrics.boundary_measures import boundary_definition, boundary_names
from probdice.metrics.registry import Description, description_of
from probdice.options import CompareOptions
from probdice.options.boundary_distances import (
    BOUNDARY_DISTANCES,
    BOUNDARY_SHARES,
    STATISTICS,
    BoundaryShare,
    distance_definitions,
)
from probdice.options.declaration import declarations

TOLERANCES = (0.5, 1.0, 2.0)
NAMES = ("hd", "hd95", "hd50", "assd", "masd", "nsd@0.5", "nsd@1", "nsd@2")


def measured(reference, prediction, affine=None, mask=None, **options):
    """Boundaries of label maps of group numbers, or of stacks of probabilities."""
    count = max(
        int(side.max()) + 1 if np.issubdtype(side.dtype, np.integer) else len(side)
        for side in (reference, prediction)
    )
    members = [(k,) for k in range(count)]
    both = Both(members, members)
    images = images_of(reference, prediction, affine, mask)
    settings = {"percentiles": (95, 50), "tolerances": TOLERANCES} | options
    return boundaries_of(images, both, groups=both, **settings)


def blobs(seed, shape, groups=2):
    """Two label maps with smooth groups that differ somewhat."""
    rng = np.random.default_rng(seed)
    fields = rng.normal(size=(groups + 1, *shape))
    maps = []
    for _ in range(2):
        noisy = fields + 0.3 * rng.normal(size=fields.shape)
        for axis in range(1, fields.ndim):
            for _ in range(2):
                before, after = np.roll(noisy, 1, axis), np.roll(noisy, -1, axis)
                noisy = (before + 2 * noisy + after) / 4
        maps.append(noisy.argmax(axis=0) - 1)
    return maps


def equal(one, two, tolerance=1e-9, scale=1.0):
    for name in NAMES:
        factor = 1.0 if name.startswith("nsd") else scale
        np.testing.assert_allclose(
            one[name], factor * two[name], rtol=0, atol=tolerance, err_msg=name
        )


shapes = st.sampled_from([(12, 11), (7, 8, 9)])
seeds = st.integers(0, 2**32)


# -- laws ------------------------------------------------------------------------------------------


@settings(max_examples=10)
@given(seeds, shapes)
def test_exchanging_the_sides_changes_nothing(seed, shape):
    reference, prediction = blobs(seed, shape)
    equal(measured(reference, prediction), measured(prediction, reference))


@settings(max_examples=10)
@given(seeds, shapes)
def test_equal_images_have_no_distance(seed, shape):
    labels, _ = blobs(seed, shape)
    boundaries = measured(labels, labels.copy())
    for name in NAMES:
        expected = 1.0 if name.startswith("nsd") else 0.0
        np.testing.assert_allclose(boundaries[name], expected, atol=1e-12)


@settings(max_examples=10)
@given(seeds, shapes)
def test_cropping_that_leaves_a_margin_changes_nothing(seed, shape):
    reference, prediction = blobs(seed, shape)
    wider = [np.pad(labels, 3, constant_values=-1) for labels in (reference, prediction)]
    equal(
        measured(*wider),
        measured(*(np.pad(x, 1, constant_values=-1) for x in (reference, prediction))),
    )
    equal(measured(*wider), measured(reference, prediction))  # closed at the border of the image


@settings(max_examples=10)
@given(seeds, shapes)
def test_renaming_groups_changes_only_their_order(seed, shape):
    reference, prediction = blobs(seed, shape, groups=3)
    renamed = np.array([2, 0, 1, -1])
    one, two = measured(reference, prediction), measured(renamed[reference], renamed[prediction])
    for name in NAMES:
        np.testing.assert_allclose(two[name][renamed[:3]], one[name], atol=1e-12)


@settings(max_examples=6)
@given(seeds, shapes)
def test_flips_and_exchanged_axes_change_nothing(seed, shape):
    rng = np.random.default_rng(seed)
    d = len(shape)
    affine = np.eye(d + 1)
    affine[:-1, :-1] = np.linalg.qr(rng.normal(size=(d, d)))[0] * rng.uniform(0.5, 3, d)
    affine[:-1, -1] = rng.uniform(-50, 50, d)
    pair = blobs(seed, shape)
    straight = measured(*pair, affine)
    for order in permutations(range(d)):
        flips = [axis for axis in range(d) if rng.random() < 0.5]
        changed = affine.copy()
        for axis in flips:
            changed[:-1, -1] += changed[:-1, axis] * (shape[axis] - 1)
            changed[:-1, axis] *= -1
        changed[:-1, :-1] = changed[:-1, :-1][:, order]
        moved = [np.flip(labels, flips).transpose(order) for labels in pair]
        boundaries = measured(*moved, changed)
        equal(boundaries, straight)
        for side in ("reference", "prediction"):  # and the positions of the elements are the same
            points = boundaries.group(0)[side].points, straight.group(0)[side].points
            ordered = [p[np.lexsort(p.round(6).T)] for p in points]
            np.testing.assert_allclose(*ordered, atol=1e-9)


@settings(max_examples=6)
@given(seeds, shapes)
def test_a_label_map_and_its_one_hot_probabilities_agree(seed, shape):
    reference, prediction = blobs(seed, shape)

    def one_hot(labels):
        return np.stack([labels == k for k in range(2)]).astype(np.float32)

    crisp = measured(reference, prediction)
    equal(measured(one_hot(reference), one_hot(prediction)), crisp, 1e-12)
    equal(measured(reference, one_hot(prediction)), crisp, 1e-12)
    equal(measured(one_hot(reference), prediction), crisp, 1e-12)


@settings(max_examples=10)
@given(seeds, shapes, st.floats(0.01, 100))
def test_scaling_the_geometry_scales_the_distances(seed, shape, factor):
    reference, prediction = blobs(seed, shape)
    affine = np.diag([*np.linspace(0.5, 2, len(shape)), 1.0])
    larger = np.diag([*np.diag(affine)[:-1] * factor, 1.0])
    one = measured(reference, prediction, affine)
    two = measured(reference, prediction, larger, tolerances=[t * factor for t in TOLERANCES])
    for name in ("hd", "hd95", "hd50", "assd", "masd"):
        np.testing.assert_allclose(two[name], one[name] * factor, rtol=1e-9, atol=1e-9 * factor)


def test_distances_are_in_pixels_without_a_geometry_and_in_millimetres_with_one():
    reference, prediction = np.full((2, 9, 9), -1)
    reference[3:6, 3:6] = prediction[3:6, 4:7] = 0
    pixels = measured(reference, prediction)
    millimetres = measured(reference, prediction, np.diag([1.0, 2.5, 1.0]))
    assert (pixels.unit, millimetres.unit) == ("pixels", "mm")
    assert pixels["hd"][0] == pytest.approx(1.0)
    assert millimetres["hd"][0] == pytest.approx(2.5)


# -- the mask, and empty sets ----------------------------------------------------------------------


def test_a_cell_with_a_pixel_outside_the_mask_has_no_surface():
    """A bar of 2 × 6 pixels of which the mask cuts off one end: its three sides remain."""
    labels = np.full((6, 10), -1)
    labels[2:4, 2:8] = 0
    mask = np.ones((6, 10), bool)
    mask[:, 6:] = False
    elements = measured(labels, labels, mask=mask).group(0).reference
    # Without the mask the outline has 10 straight segments of two sides and 4 + 2 at the ends.
    # Columns 6 and on are outside, so that cells from column 5 on have no surface.
    straight = 2 * 3 + 1
    assert elements.weights.sum() == pytest.approx(straight + 2 * np.sqrt(0.5))
    assert elements.points[:, 1].max() == pytest.approx(4.5)


def test_the_mask_does_not_open_the_surface_at_the_border_of_the_image():
    labels = np.zeros((3, 3), int)
    elements = measured(labels, labels, mask=np.ones((3, 3), bool)).group(0).reference
    assert elements.weights.sum() == pytest.approx(4 * 2 + 4 * np.sqrt(0.5))


def test_values_outside_the_mask_are_never_read():
    rng = np.random.default_rng(0)
    maps = rng.random((2, 1, 8, 8)).astype(np.float32)
    mask = rng.random((8, 8)) < 0.8
    expected = measured(*maps, mask=mask)
    maps[:, :, ~mask] = np.nan
    equal(measured(*maps, mask=mask), expected, 0)


def test_groups_without_any_surface_are_nan_and_missed_ones_are_infinite():
    reference, prediction = np.full((2, 6, 6), -1)
    reference[1:3, 1:3] = 0
    prediction[4, 4] = 1
    boundaries = boundaries_of(
        images_of(reference, prediction),
        Both([(0,), (), ()], [(), (1,), ()]),
        groups=Both([(5,), (), ()], [(), (8,), ()]),
        tolerances=[100],
    )
    for name in ("hd", "hd95", "assd", "masd"):
        assert boundaries[name].tolist()[:2] == [inf, inf]
        assert isnan(boundaries[name][2])
        assert boundaries.means[name].mean == inf
        assert boundaries.means[name].infinite == 2
        assert isnan(boundaries.means[name].finite_mean)
    assert boundaries["nsd@100"].tolist()[:2] == [0, 0]
    assert isnan(boundaries["nsd@100"][2])
    assert boundaries.means["nsd@100"].mean == 0
    missed = boundaries.group(0)
    assert missed.reference.distances.tolist() == [inf] * 8
    assert missed.prediction.points.shape == (0, 2)


def two_squares(missed):
    """A group that was moved by one pixel, and one that may be missing."""
    reference, prediction = np.full((2, 14, 30), -1)
    reference[4:10, 4:10] = prediction[4:10, 5:11] = 0
    reference[4:8, 20:24] = 1
    if not missed:
        prediction[4:8, 20:24] = 1
    return reference, prediction


def test_a_missed_region_makes_the_mean_infinite_unless_there_is_a_penalty():
    boundaries = measured(*two_squares(missed=True))
    assert boundaries["hd"].tolist() == [pytest.approx(1), inf]
    mean = boundaries.means["hd"]
    assert (mean.mean, mean.finite_mean, mean.infinite) == (inf, pytest.approx(1), 1)
    penalised = measured(*two_squares(missed=True), infinite=20)
    assert penalised["hd"].tolist() == [pytest.approx(1), 20]
    mean = penalised.means["hd"]
    assert (mean.mean, mean.finite_mean, mean.infinite) == (
        pytest.approx(10.5),
        pytest.approx(1),
        1,
    )
    assert penalised.means["nsd@0.5"].mean == pytest.approx(0.25)


def test_means_are_over_the_groups_that_count():
    boundaries = measured(*two_squares(missed=True), counted=np.array([True, False]))
    assert boundaries.means["hd"].mean == pytest.approx(1)
    assert boundaries.means["hd"].infinite == 0
    none = measured(*two_squares(missed=True), counted=np.array([False, False]))
    assert isnan(none.means["hd"].mean)


# -- levels ----------------------------------------------------------------------------------------


def cone(height):
    """A square pyramid of probabilities whose top is `height`: at level t a square remains."""
    around = np.abs(np.indices((21, 21)) - 10).max(axis=0)
    return (height - 0.1 * around).clip(0)[None]


def test_numbers_are_means_over_the_levels():
    reference, prediction = cone(0.95), cone(0.85)
    boundaries = measured(reference, prediction, levels=(0.2, 0.4, 0.6))
    assert boundaries.levels == (0.2, 0.4, 0.6)
    by_level = boundaries.by_level("assd")[0]
    for level, value in zip(boundaries.levels, by_level, strict=True):
        crisp = [(side[0] > level).astype(int) - 1 for side in (reference, prediction)]
        assert value == pytest.approx(measured(*crisp)["assd"][0], abs=1e-12)
    assert boundaries["assd"][0] == pytest.approx(by_level.mean(), abs=1e-12)


def test_the_declared_distances_are_the_computed_ones():
    image = np.eye(4, dtype=int)
    assert len(STATISTICS) == surface_summary.STATISTICS
    assert len(BOUNDARY_SHARES) == surface_summary.SHARES
    names = measured(image, image, percentiles=(95,), tolerances=(1, 2)).names
    shares = tuple(f"{name}@{tolerance}" for name in BOUNDARY_SHARES for tolerance in (1, 2))
    assert names == (*BOUNDARY_DISTANCES, *shares) == boundary_names([1, 2])


def test_a_new_share_is_in_every_text(monkeypatch):
    new_share = BoundaryShare("boundary F1", "the F1 of the shares within {0}")
    monkeypatch.setitem(BOUNDARY_SHARES, "bf1", new_share)
    assert boundary_names([1, 2])[-4:] == ("nsd@1", "nsd@2", "bf1@1", "bf1@2")
    assert description_of("bf1@2") == Description("boundary F1 at 2")
    text = boundary_definition([1], None)
    assert "lies within 1 of the other surface; bf1 is the F1 of the shares" in text
    with pytest.raises(InputError, match="bf1 requires a tolerance, as in bf1@1"):
        criterion_of("bf1", ExtraColumns())


def test_the_definition_and_the_help_name_every_distance():
    texts = distance_definitions(), declarations(CompareOptions)["boundaries"].help
    assert texts[0] == (
        "hd is the maximum, hd95 is the larger of the two directed 95th percentiles, assd is the "
        "mean over both surfaces, and masd is the mean of the two directed means"
    )
    assert all(name in text for name in BOUNDARY_DISTANCES for text in texts)
    assert texts[1].endswith("masd (mean average surface distance) and, with --tolerance, nsd "
                             "(surface Dice).")  # fmt: skip


def test_the_levels_are_tenths_by_default():
    assert measured(cone(0.95), cone(0.95)).levels == LEVELS
    assert LEVELS == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    assert measured(*two_squares(missed=False)).levels == ()


def test_a_level_at_which_one_side_is_empty_is_infinite_and_may_have_a_penalty():
    boundaries = measured(cone(0.95), cone(0.85))
    assert boundaries.by_level("hd")[0, -1] == inf  # at 0.9
    assert boundaries["hd"][0] == inf
    assert boundaries.means["hd"].infinite == 1
    assert boundaries.by_level("nsd@2")[0].tolist() == [1] * 8 + [0]
    assert boundaries["nsd@2"][0] == pytest.approx(8 / 9)
    penalised = measured(cone(0.95), cone(0.85), infinite=10)
    finite = boundaries.by_level("hd")[0, :8]
    assert penalised["hd"][0] == pytest.approx((finite.sum() + 10) / 9)
    assert penalised.means["hd"].infinite == 1


def test_a_level_at_which_both_sides_are_empty_is_left_out():
    boundaries = measured(cone(0.45), cone(0.45))
    assert boundaries["hd"].tolist() == [0]
    assert boundaries["nsd@1"].tolist() == [1]
    assert np.isnan(boundaries.by_level("hd")[0]).tolist() == [False] * 4 + [True] * 5
    assert isnan(measured(cone(0.05), cone(0.05))["hd"][0])


# -- elements --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(12, 11), (7, 8, 9)])
def test_the_elements_of_a_group_give_its_numbers(shape):
    affine = np.diag([*np.linspace(0.7, 3, len(shape)), 1.0])
    boundaries = measured(*blobs(5, shape), affine)
    for k in range(2):
        both = boundaries.group(k)
        expected = summary(*((side.distances, side.weights) for side in both), (95, 50), TOLERANCES)
        for name in NAMES:
            assert boundaries[name][k] == pytest.approx(expected[name], abs=1e-12)


def test_points_are_in_world_coordinates():
    """One pixel at index (2, 3) with spacing 2 and 1 from (10, 20)."""
    labels = np.full((6, 6), -1)
    labels[2, 3] = 0
    affine = np.array([[2.0, 0, 10], [0, 1, 20], [0, 0, 1]])
    points = measured(labels, labels, affine).group(0).reference.points
    expected = [[13.5, 22.75], [13.5, 23.25], [14.5, 22.75], [14.5, 23.25]]
    np.testing.assert_allclose(sorted(points.tolist()), expected)


def test_probabilities_have_elements_at_each_level():
    boundaries = measured(cone(0.95), cone(0.85))
    at_half = boundaries.group(0, level=0.5)
    assert at_half.reference.distances.max() == pytest.approx(boundaries.by_level("hd")[0, 4])
    with pytest.raises(InputError, match=r"level must be one of 0.1, 0.2, .*, found None"):
        boundaries.group(0)
    with pytest.raises(InputError, match="k must be the index of one of 1 groups, found 3"):
        boundaries.group(3, level=0.5)
    single = measured(cone(0.95), cone(0.85), levels=[0.5])
    assert single.group(0).reference.distances.max() == at_half.reference.distances.max()


def test_a_detached_result_keeps_its_numbers_without_elements():
    boundaries = measured(*two_squares(missed=False))
    detached = boundaries.detach()
    equal(detached, boundaries, 0)
    with pytest.raises(InputError, match="boundaries are not available, because"):
        detached.group(0)


def test_a_pickled_result_has_the_same_numbers():
    boundaries = measured(*two_squares(missed=True))
    again = pickle.loads(pickle.dumps(boundaries))
    equal(again, boundaries, 0)
    assert again.group(0).reference.distances.size == 24


# -- printed output --------------------------------------------------------------------------------


def test_text_lists_the_largest_distances_first_and_counts_missed_regions():
    text = repr(measured(*two_squares(missed=True), percentiles=[95], tolerances=[0.5]))
    assert text.splitlines() == [
        "Boundaries (pixels): 2 groups",
        "  mean hd ∞   hd95 ∞   assd ∞   masd ∞   nsd@0.5 0.2500",
        "  1 group is missing on one side",
        "  mean of the others hd 1.0000   hd95 1.0000   assd 0.5335   masd 0.5335",
        "  reference  prediction      hd    hd95    assd    masd  nsd@0.5",
        "          1           1       ∞       ∞       ∞       ∞   0.0000",
        "          0           0  1.0000  1.0000  0.5335  0.5335   0.5000",
    ]
    penalised = repr(measured(*two_squares(missed=True), infinite=20))
    assert "1 group is missing on one side, counted as 20 pixels" in penalised


def test_text_names_unit_and_levels_and_html_has_the_same():
    boundaries = measured(cone(0.95), cone(0.85), np.eye(3), levels=[0.25, 0.5])
    title = "Boundaries (mm, mean over the levels 0.25, 0.5): 1 group"
    assert repr(boundaries).startswith(title)
    html = boundaries._repr_html_()
    assert title in html
    assert "<th>hd95</th>" in html


def test_many_groups_are_shown_in_part():
    labels = np.arange(20).repeat(9).reshape(20, 3, 3).transpose(1, 0, 2).reshape(3, 60)
    boundaries = measured(labels, labels)
    assert "… and 8 more groups" in repr(boundaries)
    assert "to_frame() lists 8 more groups" in boundaries._repr_html_()
    assert len(boundaries.to_frame()) == len(boundaries) == 20


def test_tables_have_one_row_per_group_or_per_level():
    boundaries = measured(cone(0.95), cone(0.85), infinite=10)
    frame = boundaries.to_frame()
    assert frame.columns.tolist() == ["reference", "prediction", "counted", *NAMES]
    assert frame["hd"].tolist() == boundaries["hd"].tolist()
    levels = boundaries.to_frame(by_level=True)
    assert levels["level"].tolist() == list(LEVELS)
    assert levels["hd"].tolist()[-1] == inf


def test_the_dictionary_has_plain_types_only():
    content = measured(*two_squares(missed=True)).to_dict()
    assert content["unit"] == "pixels"
    assert content["levels"] == []
    assert content["means"]["hd"]["infinite"] == 1
    assert content["groups"][1]["hd"] == "Infinity"
    assert content["groups"][0]["reference"] == [0]
    assert content["groups"][0]["by_level"]["hd"] == [pytest.approx(1)]
    assert type(content["groups"][0]["counted"]) is bool
    assert type(content["groups"][0]["hd"]) is float


@pytest.mark.parametrize("infinite", [None, 20.0])
def test_the_dictionary_restores_all_numbers(infinite):
    for pair in (two_squares(missed=True), (cone(0.95), cone(0.85))):
        boundaries = measured(*pair, infinite=infinite)
        text = json.dumps(boundaries.to_dict(), allow_nan=False)
        again = Boundaries.from_dict(json.loads(text))
        assert again.names == boundaries.names
        assert again.levels == boundaries.levels
        assert repr(again) == repr(boundaries)
        for name in NAMES:
            np.testing.assert_array_equal(again.by_level(name), boundaries.by_level(name))
            assert again.means[name].infinite == boundaries.means[name].infinite


# -- invalid input ---------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(9,), (3, 3, 3, 3)])
def test_images_of_one_or_four_axes_have_no_boundaries(shape):
    labels = np.zeros(shape, int)
    with pytest.raises(InputError, match="two or three axes"):
        measured(labels, labels)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"percentiles": [0]}, "percentiles must be above 0 and at most 100, found 0"),
        ({"percentiles": [101]}, "percentiles must be above 0 and at most 100, found 101"),
        ({"tolerances": [-1]}, "tolerances must be finite and at least 0, found -1"),
        ({"tolerances": ["a"]}, "tolerances: expected numbers"),
        ({"levels": [1]}, "levels must be at least 0 and below 1, found 1"),
        ({"levels": []}, "levels must contain at least one number"),
        ({"infinite": inf}, "infinite must be finite and at least 0, found inf"),
    ],
)
def test_options_out_of_range_are_rejected(options, message):
    with pytest.raises(InputError, match=message):
        measured(cone(0.95), cone(0.85), **options)


def test_an_unknown_number_is_rejected():
    with pytest.raises(InputError, match=r"name must be one of hd, hd95, .*, found 'hd99'"):
        measured(*two_squares(missed=False))["hd99"]


# -- other software --------------------------------------------------------------------------------


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", [(40, 36), (30, 34, 32)])
def test_distances_agree_with_meshmetrics(seed, shape):
    """Needs the package pymeshmetrics. It divides polygons of 3-D cells differently."""
    meshmetrics = pytest.importorskip("meshmetrics", reason="pip install pymeshmetrics")
    rng = np.random.default_rng(seed)
    spacing = rng.uniform(0.6, 3, len(shape))
    affine = np.eye(len(shape) + 1)
    turned = np.linalg.qr(rng.normal(size=(len(shape), len(shape))))[0]
    affine[:-1, :-1] = turned * spacing
    reference, prediction = smooth(rng, shape)
    ours = measured(reference - 1, prediction - 1, affine)
    theirs = meshmetrics.DistanceMetrics(verbose=False)
    theirs.set_input(reference == 1, prediction == 1, tuple(spacing.tolist()))
    means, largest = (1e-6, 1e-6) if len(shape) == 2 else (0.01, 0.05)
    assert ours["assd"][0] == pytest.approx(theirs.assd(), rel=means)
    assert ours["masd"][0] == pytest.approx(theirs.masd(), rel=means)
    assert ours["hd"][0] == pytest.approx(theirs.hd(), rel=largest)
    assert ours["hd95"][0] == pytest.approx(theirs.hd(95), rel=largest)


def smooth(rng, shape):
    """Two similar sets with smooth outlines, away from the border."""
    fields = []
    common = rng.normal(size=shape)
    for _ in range(2):
        field = common + 0.5 * rng.normal(size=shape)
        for axis in range(len(shape)):
            for _ in range(20):
                field = (np.roll(field, 1, axis) + 2 * field + np.roll(field, -1, axis)) / 4
        inside = field > 0
        for axis in range(len(shape)):
            inside.swapaxes(0, axis)[[0, 1, -2, -1]] = False
        fields.append(inside.astype(int))
    return fields
