"""compare(): labels, Ω, groups, notes, maps, and results as values."""

import copy
import inspect
import math
import pickle

import numpy as np
import pytest

import probdice
from probdice import (
    Absolute,
    Aitchison,
    Comparison,
    Geometry,
    ProbdiceError,
    ProbdiceWarning,
    Segmentation,
    compare,
    similarity_map,
)

REFERENCE = np.array([1, 1, 1, 1, 2, 2, 2, 2])
SPLIT = np.array([7, 7, 5, 5, 5, 9, 9, 9])
SOFT_REFERENCE = np.array([[0.9, 0.7, 0.2, 0.1], [0.1, 0.3, 0.8, 0.9]])
SOFT_SPLIT = np.array([[0.6, 0.5, 0.1, 0.0], [0.3, 0.3, 0.1, 0.1], [0.1, 0.2, 0.8, 0.9]])


def pairs(result):
    return [(group.reference, group.prediction) for group in result.groups]


# Labels -------------------------------------------------------------------------------


def test_equal_labels_correspond_if_requested():
    result = compare([1, 1, 2, 2, 3], [1, 2, 2, 2, 4], match="labels")
    assert pairs(result) == [((1,), (1,)), ((2,), (2,)), ((3,), ()), ((), (4,))]
    assert result.score == 0.6
    assert [group.dice for group in result.groups] == pytest.approx([2 / 3, 0.8, 0, 0])


def test_equal_labels_of_a_label_map_and_probabilities():
    probabilities = np.array([[0.8, 0.3, 0.1], [0.2, 0.7, 0.9]])
    result = compare([0, 0, 1], probabilities, match="labels")
    assert result.score == pytest.approx((0.8 + 0.3 + 0.9) / 3)
    assert compare(probabilities, [0, 0, 1], match="labels").score == pytest.approx(result.score)


def test_names_stand_for_labels():
    reference = Segmentation.from_labels([1, 1, 2], names={1: "liver", 2: "spleen", 9: "kidney"})
    prediction = Segmentation.from_probabilities(
        [[0.9, 0.8, 0.1], [0.1, 0.2, 0.9]], names=["liver", "spleen"]
    )
    result = compare(reference, prediction, match="labels")
    assert pairs(result) == [(("liver",), ("liver",)), (("spleen",), ("spleen",))]
    assert result.empty["reference"] == ("kidney",)


# Ω ---------------------------------------------------------------------------------------------


def test_pixels_outside_the_mask_are_ignored():
    mask = np.array([1, 1, 1, 0, 0], bool)
    reference = np.array([[0.9, 0.2, 0.4, math.nan, 7], [0.1, 0.8, 0.6, math.inf, -3]])
    prediction = np.array([[0.8, 0.2, 0.5, 0.1, 0.1], [0.2, 0.8, 0.5, 0.1, 0.1]])
    result = compare(reference, prediction, mask=mask)
    assert result.pixels == 3
    assert result.score == pytest.approx((0.9 + 1 + 0.9) / 3)
    assert result.map() == pytest.approx([0.9, 1, 0.9, math.nan, math.nan], nan_ok=True)


def test_ignored_labels_of_the_reference_leave_the_comparison():
    reference = Segmentation.from_labels([0, 0, 1, 255, 255], ignore=[255])
    result = compare(reference, [3, 3, 4, 4, 5])
    assert result.pixels == 3
    assert result.score == 1
    assert result.empty == {"reference": (), "prediction": (5,)}
    assert np.isnan(result.map()).tolist() == [False, False, False, True, True]


def test_a_label_that_occurs_only_outside_the_mask_is_empty():
    result = compare([1, 1, 2, 9], [1, 1, 2, 2], mask=[True, True, True, False])
    assert result.empty == {"reference": (9,), "prediction": ()}
    assert result.score == 1
    assert result.weights.shape == (2, 2)


def test_an_unused_channel_changes_nothing():
    p, q = SOFT_REFERENCE, SOFT_SPLIT[[0, 2]] + np.array([[0.3, 0.3, 0.1, 0.1], [0, 0, 0, 0]])
    for similarity in ("absolute", "aitchison"):
        without = compare(p, q, similarity=similarity)
        with_empty = compare(np.insert(p, 1, 0, axis=0), q, similarity=similarity)
        assert with_empty.score == without.score
        assert with_empty.empty["reference"] == (1,)
        assert with_empty.weights.shape == (2, 2)


# Groups ----------------------------------------------------------------------------------------


def test_a_group_has_dice_and_volumes():
    result = compare(SOFT_REFERENCE, SOFT_SPLIT)
    first = result.groups[0]
    assert (first.reference, first.prediction) == ((0,), (0,))
    assert first.reference_volume == pytest.approx(1.9)
    assert first.prediction_volume == pytest.approx(1.2)
    assert first.dice == pytest.approx(2 * 1.2 / 3.1)
    assert first.jaccard == pytest.approx(1.2 / 1.9)
    assert first.similarity == pytest.approx(1 - 0.7 / 4)
    alone = result.groups[-1]
    assert (alone.reference, alone.prediction) == ((), (1,))
    assert (alone.dice, alone.jaccard, alone.reference_volume) == (0, 0, 0)
    assert alone.similarity == pytest.approx(1 - 0.8 / 4)


def test_dice_does_not_depend_on_the_similarity():
    absolute = compare(SOFT_REFERENCE, SOFT_SPLIT[[0, 2, 1]], match="overlap")
    aitchison = compare(SOFT_REFERENCE, SOFT_SPLIT[[0, 2, 1]], similarity=Aitchison(1e-3))
    by_pair = {(g.reference, g.prediction): g.dice for g in absolute.groups}
    for group in aitchison.groups:
        if (group.reference, group.prediction) in by_pair:
            assert group.dice == pytest.approx(by_pair[group.reference, group.prediction])


def test_an_unmatched_region_is_compared_with_an_empty_one():
    result = compare(SOFT_REFERENCE, SOFT_SPLIT, similarity=Aitchison(0.01))
    (alone,) = (group for group in result.groups if not group.reference)
    f = Aitchison(0.01)
    row = SOFT_SPLIT[alone.prediction[0]]
    expected = np.mean([f([p, 1 - p], [0, 1]) for p in row])
    assert alone.similarity == pytest.approx(expected, abs=1e-9)


# Notes and warnings ----------------------------------------------------------------------------


def test_exchanged_labels_get_a_note():
    result = compare([1, 1, 2, 2], [2, 2, 1, 1])
    assert [(note.kind, str(note)) for note in result.notes] == [
        (
            "crossed",
            "2 labels exist on both sides but were matched to a different label (1, 2). "
            'If equal labels mean the same region, use match="labels".',
        )
    ]
    assert compare([1, 1, 2, 2], [1, 1, 2, 2]).notes == ()


def test_infinite_distances_cause_one_warning():
    reference, prediction = np.zeros(10, int), np.full((2, 10), 0.5)
    prediction[:, :3] = [[1], [0]]
    with pytest.warns(ProbdiceWarning, match=r"70\.0 %.*floor.*absolute.*merge") as caught:
        result = compare(reference, prediction, similarity="aitchison")
    assert len(caught) == 1
    assert result.score == pytest.approx(0.3)
    (note,) = (note for note in result.notes if note.kind == "infinite")
    assert "70.0 %" in str(note)
    assert caught[0].filename == __file__


def test_no_warning_at_half_or_with_a_floor():
    prediction = np.full((2, 10), 0.5)
    prediction[:, :5] = [[1], [0]]
    compare(np.zeros(10, int), prediction, similarity="aitchison")
    compare(np.zeros(10, int), np.full((2, 10), 0.5), similarity=Aitchison(floor=1e-3))


# Maps and labels -------------------------------------------------------------------------------


def test_the_map_is_f_of_the_matched_regions():
    result = compare(REFERENCE, SPLIT, merge="both")
    assert result.map().tolist() == [1, 1, 1, 1, 0, 1, 1, 1]
    assert result.map().dtype == np.float32
    soft = compare(SOFT_REFERENCE, SOFT_SPLIT, merge="both", similarity=Aitchison(0.01))
    joined = SOFT_SPLIT[[0, 2]] + [SOFT_SPLIT[1], np.zeros(4)]
    assert soft.map() == pytest.approx(Aitchison(0.01)(SOFT_REFERENCE, joined), abs=1e-6)


def test_similarity_map_matches_no_regions():
    q = SOFT_REFERENCE[::-1]
    assert similarity_map(SOFT_REFERENCE, q) == pytest.approx(Absolute()(SOFT_REFERENCE, q))
    assert similarity_map([0, 1, 1], [[0.9, 0.2, 1], [0.1, 0.8, 0]]) == pytest.approx([0.9, 0.8, 0])


# Showing and storing ---------------------------------------------------------------------------


def test_a_frame_has_a_row_for_each_group():
    frame = compare(REFERENCE, SPLIT).to_frame()
    assert {(1,), (2,), ()} == set(frame["reference"])  # cells can be hashed
    assert len(frame.groupby("prediction")) == 3
    assert frame["reference_volume"].tolist() == [4, 4, 0]
    assert frame.columns[0] == "reference"


def test_a_result_is_frozen():
    result = compare([1, 2], [1, 2])
    with pytest.raises(AttributeError):
        result.score = 0.5


@pytest.mark.parametrize(
    "again", [copy.deepcopy, lambda result: pickle.loads(pickle.dumps(result))]
)
def test_a_result_is_pickled_without_its_images(again):
    result = compare(SOFT_REFERENCE, SOFT_SPLIT, merge="both")
    other = again(result)
    assert other.to_dict() == result.to_dict()
    assert other.images is None
    assert result.images is not None
    with pytest.raises(ProbdiceError, match=r"map\(\) requires the images.*unpickled"):
        other.map()


def test_a_pickle_is_small():
    rng = np.random.default_rng(0)
    p, q = rng.integers(0, 10, (512, 512)), rng.integers(0, 12, (512, 512))
    result = compare(p, q, merge="both")
    _ = result.chance, result.explained, result.weights, repr(result)
    assert len(pickle.dumps(result)) < 20_000
    soft = compare(rng.dirichlet(np.ones(3), (200, 200)).transpose(2, 0, 1), p[:200, :200])
    _ = soft.chance, soft.explained
    assert len(pickle.dumps(soft)) < 20_000


def test_a_detached_result_keeps_computed_numbers():
    result = compare(SOFT_REFERENCE, SOFT_SPLIT, similarity=Aitchison(0.01))
    _ = result.explained
    detached = result.detach()
    assert detached.images is None and result.images is not None
    assert (detached.score, detached.explained) == (result.score, result.explained)
    assert detached.groups == result.groups
    with pytest.raises(ProbdiceError, match=r"access \.chance before \.detach"):
        _ = detached.chance


@pytest.mark.parametrize(
    "without",
    [
        lambda result: result.detach(),
        lambda result: pickle.loads(pickle.dumps(result)),
        lambda result: Comparison.from_json(result.to_json()),
    ],
)
def test_a_detached_result_keeps_notes_on_the_images(without):
    reference = Segmentation.from_labels([1, 2, 3], ignore=9)
    result = without(compare(reference, [1, 2, 3], mask=[1.0, 1.0, math.nan]))
    assert [note.kind for note in result.notes] == ["mask", "ignore"]


def test_options_of_numpy_become_plain():
    result = compare([1, 2], [1, 2], similarity=Aitchison(np.float32(0.25)), workers=np.int64(2))
    assert Comparison.from_json(result.to_json()).similarity == Aitchison(0.25)
    with pytest.raises(ProbdiceError, match="workers must be a positive integer"):
        compare([1, 2], [1, 2], workers=True)
    names = Segmentation.from_probabilities([[1.0, 0], [0, 1.0]], names=np.array(["a", "b"]))
    assert [type(label) for label in compare(names, [0, 1]).reference_labels] == [str, str]


def test_match_options_of_earlier_versions_are_rejected_with_the_new_names():
    for match in (True, False):
        with pytest.raises(ProbdiceError, match=r'Use match="overlap" instead of True, and'):
            compare([1, 2], [1, 2], match=match)


def test_weights_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        compare([1, 2], [1, 2]).weights[0, 0] = 1


def test_a_result_has_its_options():
    result = compare([1, 2], [1, 2], similarity=Aitchison(0.1), match="paper", merge="both")
    assert (result.similarity, result.match, result.merge) == (Aitchison(0.1), "paper", "both")
    assert result.labels("reference") == result.reference_labels == (1, 2)
    assert result.pixels == 2


def test_mean_and_lowest_dice_count_unmatched_regions_as_zero():
    # 1 ↔ 7: 2·2/(4 + 2); 2 ↔ 9: 2·3/(4 + 3); prediction 5 is unmatched
    result = compare([1, 1, 1, 1, 2, 2, 2, 2], [7, 7, 5, 5, 5, 9, 9, 9])
    assert (result.lowest.reference, result.lowest.prediction) == ((), (5,))
    assert result.lowest_dice == 0
    assert result.mean_dice == pytest.approx((2 / 3 + 6 / 7 + 0) / 3, abs=1e-15)
    equal = compare([1, 1], [2, 2], match={2: 1})
    assert (equal.mean_dice, equal.lowest_dice, equal.lowest.dice) == (1, 1, 1)


def test_dice_that_needs_missing_images_is_nan():
    p = [[0.9, 0.5, 0.2], [0.1, 0.5, 0.8]]
    result = probdice.overlap(p, p, similarity="aitchison").compare()
    assert np.isnan([result.mean_dice, result.lowest_dice]).all()


def test_all_public_names_are_listed_and_exist():
    import probdice

    assert set(probdice.__all__) <= set(dir(probdice))
    assert "__version__" in dir(probdice)
    assert dir(probdice) == sorted(dir(probdice))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = probdice.nothing


def test_the_volume_of_a_pixel_is_that_of_the_reference():
    place = Geometry((2, 2, 2), np.diag([0.5, 2.0, 3.0, 1.0]))
    labels = np.arange(8).reshape(2, 2, 2) // 4
    side = Segmentation.from_labels(labels, geometry=place)
    result = compare(side, side)
    assert result.pixel_volume == pytest.approx(3.0)
    frame = result.to_frame()
    assert frame["reference_ml"].tolist() == pytest.approx([0.012, 0.012])
    assert frame["prediction_ml"].tolist() == pytest.approx([0.012, 0.012])
    for kept in (result.detach(), pickle.loads(pickle.dumps(result))):
        assert kept.pixel_volume == result.pixel_volume
    assert Comparison.from_json(result.to_json()).pixel_volume == result.pixel_volume


def test_without_a_geometry_there_are_no_millilitres():
    flat = Segmentation.from_labels([[1, 2]], geometry=Geometry((1, 2), np.eye(3)))
    for result in (compare([1, 2], [1, 2]), compare(flat, flat)):
        assert result.pixel_volume is None
        assert "reference_ml" not in result.to_frame()
    content = compare([1, 2], [1, 2]).to_dict() | {"pixel_volume": "much"}
    with pytest.raises(ProbdiceError, match="pixel_volume is 'much'"):
        Comparison.from_dict(content)


def test_the_signature_fits_on_a_screen():
    for function in (compare, similarity_map):
        assert len(str(inspect.signature(function))) < 400


@pytest.mark.parametrize("name", ["boundaries", "scores", "options"])
def test_only_computed_attributes_can_be_computed(name):
    with pytest.raises(ProbdiceError, match=f"such as 'score' or 'chance', found '{name}'"):
        compare([1, 2], [1, 2]).compute(name)
