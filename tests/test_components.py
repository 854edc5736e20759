"""Connected components as instances, and scores that count every component once."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pytest import approx
from scipy import ndimage

from probdice import Geometry, InputError, MissingExtraError, Overlap, Segmentation, compare

pytest.importorskip("cc3d")

EXACT = {"rel": 1e-12, "abs": 1e-12}


def components(labels, **options):
    return Segmentation.from_labels(np.asarray(labels)).components(**options)


# -- a label map as instances ----------------------------------------------------------------------


def test_every_component_has_its_original_label():
    instances = components([[1, 0, 2], [0, 0, 2], [2, 0, 1]], background=0, connectivity=4)
    assert np.asarray(instances.array).tolist() == [[1, 0, 2], [0, 0, 2], [3, 0, 4]]
    assert instances.origins == {1: 1, 2: 2, 3: 2, 4: 1}
    assert instances.names == {1: "1#1", 2: "2#1", 3: "2#2", 4: "1#2"}


def test_names_and_geometry_stay():
    geometry = Geometry((5,), np.diag([2.0, 1.0]))
    labels = Segmentation.from_labels(
        [0, 4, 4, 0, 4], names={0: "nothing", 4: "lesion"}, geometry=geometry
    )
    instances = labels.components(background="nothing")
    assert instances.names == {0: "nothing", 1: "lesion#1", 2: "lesion#2"}
    assert instances.origins == {1: "lesion", 2: "lesion"}
    assert instances.geometry is geometry


@pytest.mark.parametrize(("connectivity", "count"), [(4, 2), (8, 1), (None, 1)])
def test_neighbours_in_a_plane(connectivity, count):
    instances = components([[1, 0], [0, 1]], background=0, connectivity=connectivity)
    assert len(instances.origins) == count


@pytest.mark.parametrize(("connectivity", "count"), [(6, 3), (18, 2), (26, 1), (None, 1)])
def test_neighbours_in_a_volume(connectivity, count):
    volume = np.zeros((3, 3, 3), np.uint8)
    # The first two share an edge, the last two a corner.
    volume[0, 0, 0] = volume[0, 1, 1] = volume[1, 2, 2] = 1
    instances = components(volume, background=0, connectivity=connectivity)
    assert len(instances.origins) == count


def test_without_a_background_every_label_is_divided():
    instances = components([0, 0, 1, 0], background=None)
    assert np.asarray(instances.array).tolist() == [1, 1, 2, 3]
    assert instances.origins == {1: 0, 2: 1, 3: 0}


def test_another_background_and_ignored_labels_keep_their_numbers():
    labels = Segmentation.from_labels([2, 7, 0, 7, 255, 1], ignore=255)
    instances = labels.components(background=2)
    assert np.asarray(instances.array).tolist() == [2, 1, 3, 4, 255, 5]
    assert instances.origins == {1: 7, 3: 0, 4: 7, 5: 1}
    assert compare(instances, [1, 1, 1, 1, 1, 1]).pixels == 5


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.float32, ">i4"])
def test_any_type_of_label(dtype):
    instances = components(np.array([0, 1, 0, 1], dtype), background=0)
    assert np.asarray(instances.array).tolist() == [0, 1, 0, 2]
    assert instances.origins == {1: 1, 2: 1}


def test_an_array_that_is_read_only(tmp_path):
    np.save(tmp_path / "labels.npy", np.array([0, 1, 0, 1]))
    mapped = np.load(tmp_path / "labels.npy", mmap_mode="r")
    assert np.asarray(components(mapped, background=0).array).tolist() == [0, 1, 0, 2]


def test_negative_labels_and_any_memory_order():
    labels = np.array([[-3, 0, -3], [5, 5, -3]])
    expected = [[1, 0, 2], [3, 3, 2]]
    for array in (labels, np.asfortranarray(labels)):
        instances = components(array, background=0, connectivity=4)
        assert np.asarray(instances.array).tolist() == expected
        assert instances.origins == {1: -3, 2: -3, 3: 5}
    kept = components(labels, background=-3, connectivity=4)
    assert np.asarray(kept.array).tolist() == [[-3, 1, -3], [2, 2, -3]]


def test_instances_compare_like_any_segmentation():
    reference = components([1, 1, 0, 1, 1, 0, 0], background=0)
    prediction = components([1, 1, 0, 0, 0, 0, 1], background=0)
    detection = compare(reference, prediction, background=0).detection()
    assert (detection.true_positives, detection.false_positives, detection.misses) == (1, 1, 1)
    assert detection.to_frame("reference")["label"].tolist() == ["1#1", "1#2"]


@given(hnp.arrays(np.int64, (5, 6), elements=st.integers(0, 2)))
def test_components_are_those_of_scipy(labels):
    ours = np.asarray(components(labels, background=0, connectivity=4).array)
    for label in np.setdiff1d(labels, [0]):
        theirs, _ = ndimage.label(labels == label)
        pairs = set(zip(ours[labels == label].tolist(), theirs[theirs > 0].tolist(), strict=True))
        assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
    assert np.array_equal(ours == 0, labels == 0)


def test_invalid_arguments_are_rejected():
    soft = Segmentation.from_probabilities([[0.5], [0.5]])
    with pytest.raises(InputError, match="components require a label map"):
        soft.components(background=0)
    with pytest.raises(InputError, match="connectivity must be 4 or 8 for a 2-D image"):
        components([[1]], background=0, connectivity=6)
    with pytest.raises(InputError, match="an image with 1 to 3 axes, found 4 axes"):
        components(np.ones((1, 1, 1, 1), int), background=0)
    with pytest.raises(InputError, match="background 'nil': no label has this name"):
        components([1], background="nil")
    with pytest.raises(InputError, match=r"a label, a name or None, found 1\.5"):
        components([1], background=1.5)
    with pytest.raises(InputError, match=r"label 0.5 at pixel \(0,\)"):
        components([0.5, 1], background=0)


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cc3d", None)
    with pytest.raises(MissingExtraError, match=r"probdice\[instances\]"):
        components([1], background=0)


# -- a score for every component -------------------------------------------------------------------


def slow_scores(reference, prediction):
    """Scores by the steps of CC-Metrics, with distances to one component after the other."""
    found, count = ndimage.label(reference, np.ones((3,) * reference.ndim))
    nearest, least = np.zeros(found.shape, int), np.full(found.shape, np.inf)
    for number in range(1, count + 1):
        distance = ndimage.distance_transform_edt(found != number)
        closer = distance < least
        least[closer], nearest[closer] = distance[closer], number
    scores = []
    for number in range(1, count + 1):
        a, b = found == number, prediction & (nearest == number)
        scores.append(2 * np.sum(a & b) / (a.sum() + b.sum()))
    return scores


def test_values_of_cc_metrics():
    """CCMetrics 0.0.3, CCDiceMetric: a mean of 0.3862 over four components."""
    reference, prediction = np.zeros((2, 24, 20, 16), np.uint8)
    reference[2:8, 3:9, 4:8] = reference[14:16, 13:15, 10:12] = 1
    reference[20:23, 2:4, 2:5] = reference[15, 2, 13] = 1
    prediction[3:9, 3:9, 4:9] = prediction[14:16, 13:15, 11:13] = 1
    prediction[20:22, 3:6, 2:5] = prediction[10, 10, 13] = 1
    scores = compare(reference, prediction, match="labels", background=0).component_scores()
    assert [component.dice for component in scores.components] == approx(
        [0.7407407407407407, 0.47058823529411764, 0, 1 / 3], **EXACT
    )
    assert scores.mean_dice == approx(0.3862, abs=5e-5)


@pytest.mark.parametrize("seed", range(3))
def test_components_by_the_steps_of_cc_metrics(seed):
    rng = np.random.default_rng(seed)
    smooth = ndimage.gaussian_filter(rng.random((40, 44)), 2)
    reference = smooth > np.quantile(smooth, 0.8)
    prediction = ndimage.shift(reference.astype(np.uint8), (1, 1), order=0).astype(bool)
    scores = compare(reference, prediction, match="labels", background=0).component_scores()
    expected = slow_scores(reference, prediction)
    assert len(expected) > 5
    ours = [component.dice for component in scores.components]
    # A pixel equally near to two components may go to either.
    assert sorted(ours) == approx(sorted(expected), abs=0.03)
    assert scores.mean_dice == approx(np.mean(expected), abs=0.01)


def test_large_and_small_components_have_the_same_weight():
    reference, prediction = np.zeros((2, 50), int)
    reference[:40] = reference[45] = 1
    prediction[:40] = 1
    result = compare(reference, prediction, background=0)
    assert result.groups[1].dice > 0.98
    scores = result.component_scores()
    assert scores.mean_dice == 0.5
    assert scores.mean_jaccard == 0.5
    assert repr(scores) == "ComponentScores: 2 components, mean Dice 0.5000, mean Jaccard 0.5000"


def test_surroundings_are_nearer_to_their_component_than_to_any_other():
    reference = [1, 0, 0, 0, 0, 0, 1, 0]
    prediction = [0, 1, 1, 0, 1, 1, 1, 1]
    first, second = (
        compare(reference, prediction, match="labels", background=0).component_scores().components
    )
    assert (first.number, first.reference_volume, first.prediction_volume) == (1, 1, 2)
    assert (second.number, second.reference_volume, second.prediction_volume) == (2, 1, 4)
    assert (first.dice, second.dice) == (0, 2 / 5)


def test_every_group_has_components_of_its_own():
    reference = [1, 1, 0, 2, 0, 1, 0, 2]
    prediction = [7, 7, 0, 8, 0, 0, 0, 8]
    scores = compare(reference, prediction, background=0).component_scores()
    assert scores.per_group == {((1,), (7,)): 0.5, ((2,), (8,)): 1.0}
    frame = scores.to_frame()
    assert frame["reference"].tolist() == [(1,), (1,), (2,), (2,)]
    assert frame["prediction"].tolist() == [(7,), (7,), (8,), (8,)]
    assert frame["number"].tolist() == [1, 2, 1, 2]


def test_a_group_that_only_the_prediction_has_scores_0():
    scores = compare([0, 0, 1], [0, 5, 1], match="labels", background=0).component_scores()
    assert [(c.prediction, c.number, c.dice) for c in scores.components] == [
        ((1,), 1, 1.0),
        ((5,), 0, 0.0),
    ]
    assert scores.per_group == {((1,), (1,)): 1.0, ((), (5,)): 0.0}


def test_a_group_and_an_unmatched_prediction_region_with_the_same_label_are_separate():
    # Label 1 of the reference is matched to 2, and label 1 of the prediction is unmatched.
    reference, prediction = [1, 1, 1, 1, 0, 0, 0, 0], [2, 2, 2, 0, 1, 0, 0, 0]
    scores = compare(reference, prediction, background=0).component_scores()
    assert scores.per_group == {((1,), (2,)): approx(6 / 7, **EXACT), ((), (1,)): 0.0}


def test_means_leave_out_faint_groups():
    # Class 2 is nowhere the most probable, and the reference lacks it.
    softmax = [[0.97, 0.97, 0.01, 0.01], [0.01, 0.01, 0.97, 0.97], [0.02] * 4]
    scores = compare([0, 0, 1, 1], softmax, match="labels").component_scores()
    # Both regions have 2 pixels; the probabilities sum to 1.96, of which 1.94 are in the region.
    assert scores.mean_dice == approx(2 * 1.94 / 3.96, **EXACT)
    assert scores.mean_jaccard == approx(1.94 / 2.02, **EXACT)
    assert [component.faint for component in scores.components] == [False, False, True]
    assert scores.per_group[(), (2,)] == 0


def test_probabilities_are_summed_around_every_component():
    foreground = Segmentation.from_probabilities([0.5, 1.0, 0.25, 0.0, 0.5], axis=None)
    scores = compare([1, 1, 0, 0, 1], foreground, match="labels", background=0).component_scores()
    first, second = scores.components
    assert (first.prediction_volume, second.prediction_volume) == (1.75, 0.5)
    assert first.dice == approx(2 * 1.5 / (2 + 1.75), **EXACT)
    assert second.dice == approx(2 * 0.5 / (1 + 0.5), **EXACT)


def test_nothing_is_read_outside_the_mask_and_ignored_labels_are_left_out():
    prediction = np.array([[1, 0, np.nan, 0.0], [0, 1, np.nan, 1.0]])
    result = compare([0, 1, 1, 1], prediction, mask=[1, 1, 0, 1], match="labels", background=0)
    first, second = result.component_scores().components
    assert (first.dice, second.dice) == (1, 1)
    reference = Segmentation.from_labels([0, 1, 9, 1], ignore=9)
    scores = compare(reference, [0, 1, 1, 1], match="labels", background=0).component_scores()
    assert [component.prediction_volume for component in scores.components] == [1, 1]


def test_scores_need_a_label_map_and_the_images():
    soft = [[0.9, 0.2], [0.1, 0.8]]
    with pytest.raises(
        InputError, match="require a reference that is a label map, found probabilities"
    ):
        compare(soft, [0, 1], background=0).component_scores()
    with pytest.raises(InputError, match=r"component_scores\(\) requires the images"):
        compare([0, 1], [0, 1], background=0).detach().component_scores()


def test_the_mean_is_nan_if_there_is_only_background():
    scores = compare([0, 0], [0, 0], background=0).component_scores()
    assert scores.components == ()
    assert np.isnan(scores.mean_dice)


def test_components_match_within_corresponding_classes_only():
    # Class 2 of the reference lies on class 1 of the prediction, which is larger than its own.
    reference = Segmentation.from_labels([1, 1, 0, 2, 2, 2, 0, 2]).components(background=0)
    prediction = Segmentation.from_labels([1, 1, 0, 1, 1, 2, 0, 2]).components(background=0)
    result = compare(reference, prediction)
    pairs = {(g.reference, g.prediction) for g in result.groups if g.reference and g.prediction}
    assert pairs == {
        ((0,), (0,)),
        (("1#1",), ("1#1",)),
        (("2#1",), ("2#1",)),
        (("2#2",), ("2#2",)),
    }
    assert result.unmatched == {"reference": (), "prediction": ("1#2",)}
    stored = Overlap.from_dict(result.overlap.to_dict())
    assert stored.compare().score == result.score == 6 / 8


def test_classes_without_a_common_label_correspond_by_overlap():
    reference = Segmentation.from_labels([1, 1, 0, 2, 2, 2]).components(background=0)
    prediction = Segmentation.from_labels([7, 7, 0, 9, 9, 7]).components(background=0)
    pairs = [(g.reference, g.prediction) for g in compare(reference, prediction).groups]
    assert pairs[:3] == [((0,), (0,)), (("1#1",), ("7#1",)), (("2#1",), ("9#1",))]
    assert pairs[3] == ((), ("7#2",))


def test_numbers_of_components_are_not_reported_as_labels():
    reference = Segmentation.from_labels([3, 0, 3, 3, 0, 0]).components(background=0)
    prediction = Segmentation.from_labels([0, 0, 3, 3, 0, 3]).components(background=0)
    result = compare(reference, prediction)
    assert [note.kind for note in result.notes if note.kind == "crossed"] == []
    with pytest.raises(InputError, match="numbers of connected components are arbitrary"):
        compare(reference, prediction, match="labels")
    with pytest.raises(InputError, match="rule pairs connected components of different"):
        compare(reference, prediction, match="paper")


def test_components_merge_within_corresponding_classes_only():
    reference = Segmentation.from_labels([0, 1, 1, 1, 1, 0, 2, 2, 2, 2])
    # The second prediction component of class 2 overlaps the reference component of class 1.
    prediction = Segmentation.from_labels([0, 1, 1, 2, 2, 0, 2, 2, 2, 2])
    sides = [side.components(background=0) for side in (reference, prediction)]
    result = compare(*sides, merge="both")
    assert result.merges == ()
    assert [group.prediction for group in result.groups if not group.reference] == [("2#1",)]
