"""Segmentations on other grids: crop, pad and interpolation."""

import json
import tracemalloc

import nibabel
import numpy as np
import pytest
from typer.testing import CliRunner

from probdice import (
    Geometry,
    GeometryError,
    InputError,
    Segmentation,
    TooLargeError,
    agreement,
    compare,
    consensus,
    evaluate,
)
from probdice.cli.app import app
from probdice.data.resampled_arrays import FieldOfView
from probdice.data.resampling import placed, resample
from probdice.engine.several import SegmentationSet
from probdice.report.page import page_of

RNG = np.random.default_rng(7)


def grid(shape, spacing=1.0, origin=0.0):
    """A grid with axes along those of space."""
    affine = np.diag([*np.broadcast_to(spacing, len(shape)), 1.0])
    affine[:-1, -1] = origin
    return Geometry(shape, affine)


def rotation(degrees, axes=(0, 1), size=3):
    matrix = np.eye(size)
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    matrix[np.ix_(axes, axes)] = [[c, -s], [s, c]]
    return matrix


def random_grids(rng):
    """A source and a target that overlap, turned and scaled at random."""
    grids = []
    for shape in ((9, 8, 7), (8, 6, 9)):
        angles = rng.uniform(-40, 40, 3)
        turn = rotation(angles[0]) @ rotation(angles[1], (1, 2)) @ rotation(angles[2], (0, 2))
        affine = np.eye(4)
        affine[:3, :3] = turn * rng.uniform(0.7, 1.4, 3)
        affine[:3, 3] = rng.uniform(-0.5, 0.5, 3) - affine[:3, :3] @ (np.array(shape) - 1) / 2
        grids.append(Geometry(shape, affine))
    return grids


def test_half_a_pixel_of_shift_gives_halves():
    labels = Segmentation.from_labels([3, 3, 5, 5, 9], geometry=grid((5,)))
    moved = labels.resampled(grid((4,), origin=0.5))
    assert moved.regions == (3, 5, 9)
    expected = [[1, 0.5, 0, 0], [0, 0.5, 1, 0.5], [0, 0, 0, 0.5]]
    np.testing.assert_array_equal(moved.probabilities(), expected)


def test_half_a_voxel_along_all_axes_counts_the_eight_neighbours():
    values = np.zeros((3, 3, 3), np.uint8)
    values[1, 1, 1], values[0] = 2, 1
    moved = Segmentation.from_labels(values, geometry=grid((3, 3, 3))).resampled(
        grid((2, 2, 2), origin=0.5)
    )
    expected = np.zeros((3, 2, 2, 2))
    expected[2], expected[1, 0] = 1 / 8, 1 / 2
    expected[0] = 1 - expected[1] - expected[2]
    np.testing.assert_array_equal(moved.probabilities(), expected)


def test_two_pixels_become_one():
    values = np.array([[0, 0, 1, 1], [0, 1, 1, 1]], np.uint8)
    labels = Segmentation.from_labels(values, geometry=grid((2, 4)))
    moved = labels.resampled(grid((1, 2), spacing=2.0, origin=0.5))
    np.testing.assert_array_equal(moved.probabilities(), [[[0.75, 0]], [[0.25, 1]]])


def test_probabilities_are_interpolated():
    soft = Segmentation.from_probabilities(
        [[1.0, 0.6, 0.2], [0.0, 0.4, 0.8]], names=["grey", "white"], geometry=grid((3,))
    )
    moved = soft.resampled(grid((2,), origin=0.25))
    assert moved.regions == ("grey", "white")
    np.testing.assert_allclose(moved.probabilities(), [[0.9, 0.5], [0.1, 0.5]], atol=1e-15)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (Segmentation.from_probabilities([[2.0, 1.0], [2.0, 3.0]], sums="normalise"), 0.375),
        (Segmentation.from_probabilities([[0.2, 0.4]], sums="background"), 0.3),
        (Segmentation.from_probabilities([0.8, 0.3], axis=None), 0.45),
        (Segmentation.from_logits(np.log([[1.0, 3.0], [1.0, 1.0]])), 0.625),
    ],
    ids=["normalise", "background", "foreground", "logits"],
)
def test_stored_values_are_converted_before_interpolation(given, expected):
    array = given.array / 4 if given.reading == "normalise" else given.array
    placed_side = Segmentation(
        array, crisp=False, labels=given.labels, reading=given.reading, geometry=grid((2,))
    )
    moved = placed_side.resampled(grid((1,), origin=0.5))
    assert moved.probabilities()[0, 0] == pytest.approx(expected, abs=1e-7)


def test_nearest_keeps_labels():
    labels = Segmentation.from_labels(
        np.array([4, 4, 300], np.int16), names={300: "x"}, geometry=grid((3,))
    )
    moved = labels.resampled(grid((4,), spacing=0.6, origin=0.1), "nearest")
    assert moved.crisp and moved.names == {300: "x"}
    np.testing.assert_array_equal(np.asarray(moved.array), [4, 4, 4, 300])
    assert np.asarray(moved.array).dtype == np.int16


def test_a_position_halfway_goes_to_the_higher_index():
    labels = Segmentation.from_labels([1, 2, 3], geometry=grid((3,)))
    moved = labels.resampled(grid((2,), origin=0.5), "nearest")
    np.testing.assert_array_equal(np.asarray(moved.array), [2, 3])


@pytest.mark.parametrize("seed", [0, 1, 2, 4])  # no position close to the edge of the view
@pytest.mark.parametrize("memory", ["C", "F"])
def test_random_grids_give_the_values_of_simpleitk(seed, memory):
    import SimpleITK as sitk

    rng = np.random.default_rng(seed)
    source, target = random_grids(rng)
    labels = np.asarray(rng.integers(0, 4, source.shape).astype(np.uint8), order=memory)

    def image(geometry, values):
        made = sitk.GetImageFromArray(np.ascontiguousarray(values.T))
        made.SetSpacing(geometry.spacing)
        made.SetOrigin((np.diag([-1, -1, 1]) @ geometry.origin).tolist())
        made.SetDirection((np.diag([-1, -1, 1]) @ geometry.direction).ravel().tolist())
        return made

    to = image(target, np.zeros(target.shape))

    def resampled(values, method):
        moved = sitk.Resample(image(source, values), to, sitk.Transform(), method, -1.0)
        return sitk.GetArrayFromImage(moved).T

    linear = np.stack([resampled((labels == k) * 1.0, sitk.sitkLinear) for k in range(4)])
    nearest = resampled(labels.astype(np.float64), sitk.sitkNearestNeighbor)
    inside = linear[0] >= 0
    assert 0.2 < inside.mean() < 1
    side = Segmentation.from_labels(labels, geometry=source)
    moved, view = resample(side, target, "linear")
    np.testing.assert_array_equal(view[...], inside)
    np.testing.assert_allclose(moved.probabilities()[:, inside], linear[:, inside], atol=2e-4)
    kept, _ = resample(side, target, "nearest")
    np.testing.assert_array_equal(np.asarray(kept.array)[inside], nearest[inside])
    one_hot = np.stack([labels == k for k in range(4)]).astype(np.float64)
    soft = Segmentation.from_probabilities(np.asarray(one_hot, order=memory), geometry=source)
    rows, _ = resample(soft, target, "linear")
    np.testing.assert_allclose(
        np.asarray(rows.array)[:, inside], moved.probabilities()[:, inside], atol=1e-6
    )


@pytest.mark.filterwarnings("ignore:Resampling binary images")
@pytest.mark.parametrize("seed", range(3))
def test_sheared_grids_give_the_values_of_nilearn(seed):
    from nilearn import image as nilearn

    rng = np.random.default_rng(seed)
    source, target = random_grids(rng)
    shear = np.eye(4)
    shear[0, 1] = 0.2
    target = Geometry(target.shape, shear @ target.affine)
    labels = rng.integers(0, 3, source.shape)
    expected = np.stack(
        [
            nilearn.resample_img(
                nibabel.Nifti1Image((labels == k) * 1.0, source.affine),
                target_affine=target.affine,
                target_shape=target.shape,
                interpolation="linear",
                copy_header=True,
                force_resample=True,
            ).get_fdata()
            for k in range(3)
        ]
    )
    within = np.abs(expected.sum(axis=0) - 1) < 1e-9  # nilearn fades to 0 beyond the last centres
    assert within.mean() > 0.1
    moved, _ = resample(Segmentation.from_labels(labels, geometry=source), target, "linear")
    np.testing.assert_allclose(moved.probabilities()[:, within], expected[:, within], atol=2e-4)


def test_turned_by_30_degrees_and_back_scores_above_0_97():
    n = 64
    x, y, z = np.mgrid[:n, :n, :n] - (n - 1) / 2
    labels = ((x**2 + y**2 + z**2 < 24**2) * 1 + ((x - 6) ** 2 + y**2 + z**2 < 12**2)).astype("u1")
    centred = np.eye(4)
    centred[:3, 3] = -(n - 1) / 2
    straight = Geometry((n, n, n), centred)
    turn = np.eye(4)
    turn[:3, :3] = rotation(30) @ rotation(30, (1, 2))
    turned = Geometry((n, n, n), turn @ centred)
    original = Segmentation.from_labels(labels, geometry=straight)
    back = original.resampled(turned, background=0).resampled(straight, background=0)
    result = compare(original, back, match="labels")
    assert 0.97 < result.score < 1
    assert 0.93 < result.lowest_dice < 1


def test_any_box_has_the_values_of_the_whole():
    source, target = random_grids(np.random.default_rng(3))
    labels = Segmentation.from_labels(RNG.integers(0, 5, source.shape), geometry=source)
    for how in ("linear", "nearest"):
        array = labels.resampled(target, how, background=0).array
        whole = np.asarray(array)
        box = (slice(1, 6), slice(2, 3), slice(4, None))
        index = (slice(1, 3), *box) if how == "linear" else box
        np.testing.assert_array_equal(array[index], whole[index])
        assert array.chunks[-3:] == ((8,), (6,), (9,))


# -- the same lattice


def lattice_pair():
    labels = RNG.integers(0, 4, (6, 7, 5)).astype(np.uint8)
    return labels, grid(labels.shape, spacing=(1, 2, 3), origin=(10, -20, 5))


def test_crop_on_the_same_lattice_is_exact_and_stays_a_view():
    labels, geometry = lattice_pair()
    part = grid((3, 4, 5), spacing=(1, 2, 3), origin=(12, -18, 5))
    moved = Segmentation.from_labels(labels, geometry=geometry).resampled(part)
    assert moved.crisp and np.shares_memory(moved.array, labels)
    np.testing.assert_array_equal(moved.array, labels[2:5, 1:5])


def test_pad_and_crop_with_reordered_and_flipped_axes():
    labels, geometry = lattice_pair()
    # axes: z, then x backwards from index 4 to index −1, then y from index −2 to 3
    affine = np.eye(4)
    affine[:3, :3] = np.array([[0, -1, 0], [0, 0, 2], [3, 0, 0]])
    affine[:3, 3] = [10 + 4, -20 - 2 * 2, 5]
    moved = Segmentation.from_labels(labels, geometry=geometry).resampled(
        Geometry((5, 6, 6), affine), background=7
    )
    expected = np.full((5, 6, 6), 7)
    for z in range(5):
        for i, x in enumerate(range(4, -2, -1)):
            for j, y in enumerate(range(-2, 4)):
                if x >= 0 and y >= 0:
                    expected[z, i, j] = labels[x, y, z]
    np.testing.assert_array_equal(np.asarray(moved.array), expected)
    np.testing.assert_array_equal(moved.array[1:3, 4:6, 0:3], expected[1:3, 4:6, 0:3])


def test_padding_probabilities_and_logits():
    for side in (
        Segmentation.from_probabilities([[0.9], [0.1]], geometry=grid((1,))),
        Segmentation.from_logits(np.log([[0.9], [0.1]]), geometry=grid((1,))),
        Segmentation.from_probabilities([0.1], axis=None, geometry=grid((1,))),
    ):
        moved = side.resampled(grid((3,), origin=-1), background=1)
        np.testing.assert_allclose(moved.probabilities(), [[0, 0.9, 0], [1, 0.1, 1]], atol=1e-7)


def test_a_background_beyond_the_type_of_the_labels():
    labels = Segmentation.from_labels(np.array([1], np.uint8), geometry=grid((1,)))
    moved = labels.resampled(grid((2,)), background=1000)
    np.testing.assert_array_equal(np.asarray(moved.array), [1, 1000])


def test_resampling_arrays_without_a_geometry_names_the_geometry():
    with pytest.raises(InputError) as caught:
        compare(np.ones((2, 2), int), np.ones((4, 4), int), resample="linear")
    assert str(caught.value) == (
        "reference has shape (2, 2) and prediction has shape (4, 4), but neither has a geometry: "
        'resample="linear" needs the positions of the pixels. Give both sides a geometry, as in '
        "Segmentation.from_labels(array, geometry=Geometry(array.shape, affine))"
    )
    assert caught.value.in_command().endswith("Use files with a geometry, such as NIfTI")


def test_pixels_outside_need_a_background():
    labels = Segmentation.from_labels([1, 2], geometry=grid((2,)))
    with pytest.raises(GeometryError, match="does not contain 3 pixels of the grid"):
        labels.resampled(grid((5,)))
    message = "background 'air' is not a region of the image. Its"
    with pytest.raises(InputError, match=f"{message} labels have no names, so set .* to a label"):
        labels.resampled(grid((5,)), background="air")
    named = Segmentation.from_labels(
        [1, 2], names={0: "rest", 1: "mass", 2: "mass"}, geometry=grid((2,))
    )
    with pytest.raises(InputError, match=rf"{message} regions are rest, mass \(1\), mass \(2\)"):
        named.resampled(grid((5,)), background="air")
    with pytest.raises(GeometryError, match="do not overlap"):
        labels.resampled(grid((5,), origin=9), background=0)
    for invalid in ("cubic", None, 1):
        with pytest.raises(
            InputError, match=f"resample must be 'linear' or 'nearest', found {invalid!r}"
        ):
            labels.resampled(grid((2,)), invalid)


def test_linear_background_may_be_a_new_label():
    labels = Segmentation.from_labels([1, 2], geometry=grid((2,)))
    moved = labels.resampled(grid((3,), origin=-0.75), background=0)
    assert moved.regions == (0, 1, 2)
    np.testing.assert_allclose(moved.probabilities(), [[1, 0, 0], [0, 0.75, 0], [0, 0.25, 1]])


# -- invalid values


def test_invalid_values_are_reported_and_not_averaged():
    # sums 1.4 and 0.6 have the mean 1
    soft = Segmentation.from_probabilities(
        [[0.7, 0.3, 0.5, 0.5], [0.7, 0.3, 0.5, 0.5]], geometry=grid((4,))
    )
    reference = Segmentation.from_labels([1, 1, 2], geometry=grid((3,), origin=0.5))
    moved = soft.resampled(reference.geometry)
    with pytest.raises(InputError, match=r"probabilities sum to 1.4 at pixel \(0,\)"):
        compare(reference, moved)
    assert compare(reference, moved, mask=[0, 0, 1]).pixels == 1


def test_labels_that_are_not_integers_are_reported():
    labels = Segmentation.from_labels([1.0, np.nan, 2.0, 2.0], geometry=grid((4,)))
    reference = Segmentation.from_labels([1, 1, 2], geometry=grid((3,), origin=0.5))
    moved = labels.resampled(reference.geometry)
    with pytest.raises(InputError, match=r"found nan at pixel \(0,\)"):
        compare(reference, moved)
    assert compare(reference, moved, mask=[0, 0, 1]).score == 1


def test_ignored_labels_are_not_mixed():
    labels = Segmentation.from_labels([1, 2], ignore=2, geometry=grid((2,)))
    with pytest.raises(InputError, match=r'mixes the ignored labels .*resample="nearest"'):
        labels.resampled(grid((1,), origin=0.5))
    moved = labels.resampled(grid((1,), origin=0.25), resample="nearest")
    assert np.asarray(moved.array).tolist() == [1]


def test_too_many_labels_for_linear_interpolation():
    labels = Segmentation.from_labels(np.arange(10_000), geometry=grid((10_000,)))
    with pytest.raises(TooLargeError, match=r'found 10000\. .*resample="nearest"'):
        labels.resampled(grid((10,), origin=0.5))


def test_labels_far_apart_and_negative():
    values = np.array([-5, 2**40, 2**40], np.int64)
    moved = Segmentation.from_labels(values, geometry=grid((3,))).resampled(grid((2,), origin=0.5))
    assert moved.labels == (-5, 2**40)
    np.testing.assert_array_equal(moved.probabilities(), [[0.5, 0], [0.5, 1]])


# -- memory


def test_blocks_bound_the_memory():
    n = 160
    labels = np.zeros((n, n, n), np.uint8)
    labels[n // 4 :, : n // 2] = 1
    turn = np.eye(4)
    turn[:3, :3] = rotation(20) @ rotation(10, (1, 2)) * 1.25
    source = Segmentation.from_labels(labels, geometry=grid(labels.shape))
    target = Geometry((120, 120, 120), turn)
    moved, _ = resample(source, target, "linear")
    moved.array[:, :2, :2, :2]  # compile
    tracemalloc.start()
    moved.array[:, :64, :64, :64]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * 2 * 64**3 * 4 + 2**25


def test_zarr_is_read_in_chunks_that_follow_its_own(tmp_path):
    import zarr

    store = zarr.create_array(
        tmp_path / "labels.zarr", shape=(40, 40), chunks=(10, 16), dtype="u1", zarr_format=2
    )
    values = RNG.integers(0, 3, (40, 40)).astype(np.uint8)
    store[...] = values
    side = Segmentation.from_labels(store, geometry=grid((40, 40)))
    target = grid((20, 36), spacing=(2, 1), origin=(0.5, 4))
    moved = side.resampled(target)
    assert moved.array.chunks == ((3,), (5, 5, 5, 5), (12, 16, 8))
    expected = Segmentation.from_labels(values, geometry=grid((40, 40))).resampled(target)
    np.testing.assert_array_equal(np.asarray(moved.array), np.asarray(expected.array))
    padded = side.resampled(grid((45, 20), origin=(-3, 4)), background=0)
    assert padded.array.chunks == ((13, 10, 10, 12), (12, 8))
    np.testing.assert_array_equal(np.asarray(padded.array)[3:43], values[:, 4:24])
    reference = Segmentation.from_labels(RNG.integers(0, 3, (20, 36)), geometry=target)
    in_memory = Segmentation.from_labels(values, geometry=grid((40, 40)))
    for how in ("linear", "nearest"):
        scores = [compare(reference, one, resample=how).score for one in (side, in_memory)]
        assert scores[0] == pytest.approx(scores[1], abs=1e-7)


def test_field_of_view_ends_half_a_pixel_beyond_the_centres():
    view = FieldOfView(placed(grid((4,)), grid((12,), spacing=0.5, origin=-1)))
    np.testing.assert_array_equal(view[...], [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0])


# -- comparisons


def compared(reference, prediction, how="linear", background=None, mask=None):
    return compare(
        reference, prediction, match="labels", resample=how, background=background, mask=mask
    )


def test_an_error_names_the_resampling_that_the_grids_need():
    reference = Segmentation.from_labels([1, 2, 3], geometry=grid((3,)))
    cropped = Segmentation.from_labels([2], geometry=grid((1,), origin=1))
    coarse = Segmentation.from_labels([2], geometry=grid((1,), spacing=3, origin=1))
    with pytest.raises(GeometryError, match=r"without interpolation, use resample=.linear"):
        compare(reference, cropped)
    with pytest.raises(GeometryError) as caught:
        compare(reference, coarse)
    assert "To interpolate the prediction, use --resample linear" in caught.value.in_command()
    assert "or --resample nearest (labels stay labels)" in caught.value.in_command()


def organs():
    """A reference, and a prediction that fails for the small organ 2 in one corner."""
    reference = np.zeros((8, 8), np.uint8)
    reference[1:6, 1:6], reference[6:, 6:] = 1, 2
    prediction = np.zeros((8, 8), np.uint8)
    prediction[1:6, 1:5], prediction[0, 7] = 1, 2
    return reference, prediction


def test_a_padded_crop_scores_like_the_image_with_background_outside():
    reference, prediction = organs()
    outside = prediction.copy()
    outside[6:], outside[:, 7:] = 0, 0
    expected = compare(reference, outside, match="labels")
    side = Segmentation.from_labels(reference, geometry=grid((8, 8)))
    crop = Segmentation.from_labels(prediction[:6, :7], geometry=grid((6, 7)))
    result = compared(side, crop, background=0)
    assert result.score == expected.score == (5 * 4 + 64 - 29) / 64
    assert result.chance == expected.chance
    assert [g.dice for g in result.groups] == [g.dice for g in expected.groups]
    assert result.notes[0].kind == "resampled"


def test_cropping_a_hard_organ_away_does_not_raise_the_score():
    reference, prediction = organs()
    prediction[0, 7], prediction[6, 6:] = 0, 2  # half of the organ
    side = Segmentation.from_labels(reference, geometry=grid((8, 8)))
    whole = compared(side, Segmentation.from_labels(prediction, geometry=grid((8, 8))))
    assert whole.score == (64 - 5 - 2) / 64
    crop = Segmentation.from_labels(prediction[:6, :6], geometry=grid((6, 6)))
    padded = compared(side, crop, background=0)
    assert padded.score == (64 - 5 - 4) / 64
    assert padded.mean_dice < whole.mean_dice


def test_pixels_outside_the_view_are_left_out_and_counted_per_region():
    reference, prediction = organs()
    side = Segmentation.from_labels(
        reference, names={1: "liver", 2: "gland"}, geometry=grid((8, 8))
    )
    crop = Segmentation.from_labels(prediction[:6, :6], geometry=grid((6, 6)))
    result = compared(side, crop)
    assert result.pixels == 36
    assert result.score == (4 * 5 + 36 - 25) / 36
    note = next(note for note in result.notes if note.kind == "outside")
    assert str(note).startswith(
        "28 pixels are outside the field of view of the prediction (0: 24, gland: 4) and left out."
    )
    inside = np.zeros((8, 8), bool)
    inside[:6, :6] = True
    masked = compared(side, crop, mask=inside)
    assert masked.pixels == 36 and not [n for n in masked.notes if n.kind == "outside"]


def test_pages_distinguish_the_mask_from_the_field_of_view():
    reference, prediction = organs()
    side = Segmentation.from_labels(reference, geometry=grid((8, 8)))
    crop = Segmentation.from_labels(prediction[:6, :6], geometry=grid((6, 6)))
    upper = np.arange(64).reshape(8, 8) < 32
    inside = np.zeros((8, 8), bool)
    inside[:6, :6] = True

    def excluded(mask):
        facts = {
            fact.name: fact.values for fact in page_of(compared(side, crop, mask=mask)).options
        }
        return facts["Excluded by"]

    view = "field of view of the prediction"
    assert excluded(None) == (f"{view}: 28 of 64 pixels (43.8 %)",)
    assert excluded(inside) == ("mask: 28 of 64 pixels (43.8 %)",)
    assert excluded(upper) == (f"mask and {view}: 40 of 64 pixels (62.5 %)",)


def test_a_mask_without_pixels_in_the_view_is_an_error():
    reference, prediction = organs()
    side = Segmentation.from_labels(reference, geometry=grid((8, 8)))
    crop = Segmentation.from_labels(prediction[:6, :6], geometry=grid((6, 6)))
    mask = np.zeros((8, 8), bool)
    mask[7, 7] = True
    message = "no pixels inside the mask are in the field of view of the prediction"
    with pytest.raises(InputError, match=message):
        compared(side, crop, mask=mask)


@pytest.mark.parametrize("soft", [False, True])
def test_interpolated_scores_are_those_of_numpy(soft):
    """2 × 2 pixels become one, so the probabilities are means of 4 pixels."""
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 3, (8, 12, 6))
    shares = np.stack([labels == k for k in range(3)]).astype(np.float64)
    if soft:
        shares = rng.dirichlet([1, 1, 1], labels.shape).transpose(3, 0, 1, 2)
    means = shares.reshape(3, 4, 2, 6, 2, 3, 2).mean(axis=(2, 4, 6))
    reference = rng.integers(0, 3, (4, 6, 3))
    one_hot = np.stack([reference == k for k in range(3)])
    expected = 1 - np.abs(one_hot - means).sum() / 2 / reference.size
    fine, coarse = grid((8, 12, 6)), grid((4, 6, 3), spacing=2, origin=0.5)
    side = Segmentation.from_labels(labels, geometry=fine)
    if soft:
        side = Segmentation.from_probabilities(shares, geometry=fine)
    result = compared(Segmentation.from_labels(reference, geometry=coarse), side)
    assert result.score == pytest.approx(expected, abs=1e-6)
    assert result.map().shape == (4, 6, 3)


def test_raters_on_other_grids_use_the_smallest_pixels():
    fine = Segmentation.from_labels([1, 1, 2, 2], geometry=grid((4,)))
    coarse = Segmentation.from_labels([1, 2], geometry=grid((2,), spacing=2, origin=0.5))
    crop = Segmentation.from_labels([1, 2, 2], geometry=grid((3,), origin=1))
    several = SegmentationSet.of({"a": coarse, "b": fine, "c": crop}, interpolation="linear")
    assert several.first.geometry is fine.geometry
    np.testing.assert_allclose(
        several.sides["a"].probabilities(), [[1, 0.75, 0.25, 0], [0, 0.25, 0.75, 1]]
    )
    np.testing.assert_array_equal(several.mask[...], [0, 1, 1, 1])
    assert [str(note) for note in several.notes] == [
        "a was interpolated linearly onto the grid of b.",
        "1 pixel outside the field of view of c has no value. To count them as "
        "background, use background=….",
        "c was cropped or padded, without interpolation, to the grid of b.",
    ]


def test_dask_workers_interpolate(tmp_path):
    from dask import array as dask_array

    rng = np.random.default_rng(2)
    labels, reference = rng.integers(0, 3, (20, 20)), rng.integers(0, 3, (14, 14))
    turn = np.eye(3)
    turn[:2, :2], turn[:2, 2] = rotation(25, size=2), (5, 0)
    sides = [
        Segmentation.from_labels(of(labels), geometry=grid((20, 20)))
        for of in (np.asarray, lambda values: dask_array.from_array(values, chunks=(7, 20)))
    ]
    side = Segmentation.from_labels(reference, geometry=Geometry((14, 14), turn))
    scores = [compared(side, one, background=0).score for one in sides]
    assert scores[0] == pytest.approx(scores[1], abs=1e-7)
    chunked = Segmentation.from_labels(
        dask_array.from_array(reference, chunks=(5, 14)), geometry=Geometry((14, 14), turn)
    )
    assert compared(chunked, sides[0]).score == pytest.approx(compared(side, sides[1]).score)


def test_raters_outside_the_view_need_a_background_for_a_consensus():
    whole = Segmentation.from_labels([0, 1, 1, 0], geometry=grid((4,)))
    crop = Segmentation.from_labels([1, 0], geometry=grid((2,), origin=2))
    raters = {"a": whole, "b": crop}
    with pytest.raises(GeometryError, match="2 pixels outside the field of view of b"):
        consensus(raters, resample="linear")
    made = consensus(raters, resample="linear", background=0).segmentation
    np.testing.assert_array_equal(made.probabilities()[1], [0, 0.5, 1, 0])
    result = agreement(raters, resample="nearest")
    assert result.pixels == 2 and result.mean_score == 1
    assert "2 pixels outside the field of view of b" in repr(result)
    assert agreement(raters, resample="nearest", background=0).mean_score == 0.75
    with pytest.raises(GeometryError, match="do not lie on the same grid"):
        agreement(raters)


# -- files and commands


def save(path, values, geometry):
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(values, geometry.affine), path)
    return path


def run(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    return done.exit_code, " ".join(done.output.split())


def test_the_command_compares_other_grids(tmp_path):
    rng = np.random.default_rng(8)
    labels = rng.integers(0, 3, (8, 8, 8)).astype(np.uint8)
    reference = rng.integers(0, 3, (4, 4, 4)).astype(np.uint8)
    coarse = grid((4, 4, 4), spacing=2, origin=0.5)
    first = save(tmp_path / "a.nii.gz", reference, coarse)
    second = save(tmp_path / "b.nii.gz", labels, grid((8, 8, 8)))
    code, text = run("compare", first, second)
    assert code == 1 and "--resample linear" in text
    saved, page = tmp_path / "r.json", tmp_path / "p.html"
    words = ["--resample", "linear", "--match", "labels", "--json", saved, "--report", page]
    code, text = run("compare", first, second, *words)
    assert code == 0 and "interpolated linearly" in text
    shares = np.stack([labels == k for k in range(3)]).reshape(3, 4, 2, 4, 2, 4, 2)
    means = shares.mean(axis=(2, 4, 6))
    expected = np.take_along_axis(means, reference[None].astype(int), axis=0).mean()
    content = json.loads(saved.read_text())
    assert content["score"] == pytest.approx(expected, abs=1e-6)
    assert content["options"]["resample"] == "linear"
    assert "interpolated linearly" in page.read_text()
    code, text = run("compare", first, second, "--resample", "linear", "--ignore-geometry")
    assert code != 0 and "cannot be combined with --ignore-geometry" in text
    code, text = run("agree", first, second, "--resample", "nearest")
    assert code == 0, text
    code, text = run("consensus", first, second, "--resample", "linear", "-o", tmp_path / "c.npz")
    assert code == 0, text


def test_evaluate_fails_cases_with_pixels_outside_the_view(tmp_path):
    reference, prediction = organs()
    for case, size in (("whole", 8), ("crop", 6)):
        save(tmp_path / f"ref/{case}.nii.gz", reference[..., None], grid((8, 8, 1)))
        part = prediction[:size, :size, None]
        save(tmp_path / f"net/{case}.nii.gz", part, grid(part.shape))
    result = evaluate(tmp_path / "ref", tmp_path / "net", resample="linear", match="labels")
    (failure,) = result.failures
    assert failure.case == "crop"
    assert "28 voxels are outside the field of view of the prediction (0: 24, 2: 4)" in str(
        failure.error
    )
    words = ["--resample", "linear", "--match", "labels", "--background", "0"]
    code, text = run("evaluate", tmp_path / "ref", tmp_path / "net", "-o", tmp_path / "o", *words)
    assert code == 0, text
    rows = [line.split(",") for line in (tmp_path / "o/cases.csv").read_text().splitlines()]
    column = rows[0].index("score")
    scores = {row[0]: float(row[column]) for row in rows[1:]}
    assert scores == {"whole": (64 - 10) / 64, "crop": (64 - 9) / 64}


def test_notes_of_raters_name_resampling_the_field_of_view_and_nan_in_the_mask():
    first = Segmentation.from_labels([1, 1, 2, 2], geometry=grid((4,)))
    second = Segmentation.from_labels([1, 2], geometry=grid((2,), origin=1.0))
    mask = np.array([1.0, 1.0, 1.0, np.nan])
    result = agreement({"a": first, "b": second}, mask=mask, resample="nearest")
    assert [note.kind for note in result.notes[:3]] == ["outside", "resampled", "mask"]
    assert result.pixels == 2
