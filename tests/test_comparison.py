"""compare(): the worked examples, options, groups, notes and what else a result holds."""

import math

import numpy as np
import pytest

from probdice import (
    Absolute,
    Aitchison,
    Comparison,
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


# The worked examples ---------------------------------------------------------------------------


@pytest.mark.parametrize("similarity", ["absolute", "aitchison"])
def test_the_fraction_of_pixels_that_agree(similarity):
    result = compare([1, 2, 1, 2], [1, 1, 1, 2], similarity=similarity, match="labels")
    assert result.score == 0.75


def test_over_segmentation_of_a_label_map():
    result = compare(REFERENCE, SPLIT, merge="both")
    assert result.reference_labels == (1, 2)
    assert result.prediction_labels == (5, 7, 9)
    assert result.weights.tolist() == [[0.375, 0.25, 0.875], [0.625, 0.75, 0.125]]
    assert pairs(result) == [((1,), (5, 7)), ((2,), (9,))]
    (merge,) = result.merges
    assert (merge.side, merge.region, merge.into, merge.gain) == ("prediction", 5, (1,), 0.125)
    assert (result.score, result.matched_score) == (0.875, 0.625)


def test_over_segmentation_of_probabilities_by_absolute():
    result = compare(SOFT_REFERENCE, SOFT_SPLIT, merge="prediction")
    assert pairs(result) == [((0,), (0, 1)), ((1,), (2,))]
    assert result.merges[0].region == 1
    assert result.merges[0].gain == pytest.approx(0.15, abs=1e-12)
    assert result.score == pytest.approx(0.975, abs=1e-12)
    assert result.matched_score == pytest.approx(0.8, abs=1e-12)


def test_over_segmentation_of_probabilities_by_aitchison():
    result = compare(SOFT_REFERENCE, SOFT_SPLIT, similarity="aitchison", merge="prediction")
    assert pairs(result) == [((0,), (0, 1)), ((1,), (2,))]
    assert result.merges[0].region == 0
    assert result.merges[0].gain == pytest.approx(0.32910048, abs=5e-9)
    assert result.score == pytest.approx(0.93101145, abs=5e-9)
    assert result.matched_score == pytest.approx(0.25, abs=1e-12)


def test_under_segmentation_is_the_same_with_the_sides_exchanged():
    result = compare(SPLIT, REFERENCE, merge="reference")
    assert pairs(result) == [((5, 7), (1,)), ((9,), (2,))]
    assert (result.score, result.matched_score) == (0.875, 0.625)


# Matching and merging --------------------------------------------------------------------------


def test_permuted_labels_score_exactly_one():
    labels = np.random.default_rng(0).integers(0, 12, (20, 30))
    permuted = np.random.default_rng(1).permutation(12)[labels] * 1000 - 7
    result = compare(labels, permuted)
    assert result.score == result.adjusted_score == 1.0
    assert all(group.dice == group.jaccard == 1.0 for group in result.groups)


def test_only_the_allowed_side_is_merged():
    for merge in ("none", "reference"):
        result = compare(REFERENCE, SPLIT, merge=merge)
        assert pairs(result) == [((1,), (7,)), ((2,), (9,)), ((), (5,))]
        assert result.score == result.matched_score == 0.625
        assert result.unmatched == {"reference": (), "prediction": (5,)}
        assert result.merges == ()
        assert 'merge="prediction"' in result.notes[0]


def test_equally_many_regions_leave_nothing_to_merge():
    result = compare([1, 1, 2, 2], [5, 5, 5, 8], merge="both")
    assert result.merges == ()
    assert result.score == 0.75


def test_every_spare_region_ends_in_a_group_even_at_a_loss():
    result = compare([1, 1, 1, 1, 1, 1], [1, 1, 2, 2, 3, 3], merge="both")
    assert pairs(result) == [((1,), (1, 2, 3))]
    assert result.score == 1
    losing = compare([0, 0, 1, 1, 1, 1], [0, 3, 3, 1, 1, 1], merge="both")
    assert [merge.gain for merge in losing.merges] == [0.0]


def test_ties_go_to_the_lower_region_and_the_lower_group():
    result = compare([1, 1, 1, 1, 2, 2, 2, 2], [1, 1, 3, 4, 2, 2, 5, 6], merge="both")
    assert [(merge.region, merge.into) for merge in result.merges] == [
        (3, (1,)),
        (4, (1,)),
        (5, (2,)),
        (6, (2,)),
    ]


def test_a_prediction_of_one_region_fits_any_merged_reference():
    rng = np.random.default_rng(5)
    reference = rng.dirichlet(np.ones(4), 50).T
    result = compare(reference, np.ones((1, 50)), merge="both")
    assert result.score == pytest.approx(1, abs=1e-12)
    assert result.chance == pytest.approx(1, abs=1e-9)
    assert math.isnan(result.adjusted_score)


def test_more_soft_regions_merge_with_one_pass_each(monkeypatch):
    from probdice.blocks import Pair

    calls = []
    joined = Pair.joined
    monkeypatch.setattr(Pair, "joined", lambda *args: calls.append(1) or joined(*args))
    rng = np.random.default_rng(0)
    compare(rng.dirichlet(np.ones(3), 200).T, rng.dirichlet(np.ones(13), 200).T, merge="both")
    assert len(calls) == 10


# Labels as given -------------------------------------------------------------------------------


def test_match_false_compares_equal_labels():
    result = compare([1, 1, 2, 2, 3], [1, 2, 2, 2, 4], match="labels")
    assert pairs(result) == [((1,), (1,)), ((2,), (2,)), ((3,), ()), ((), (4,))]
    assert result.score == 0.6
    assert [group.dice for group in result.groups] == pytest.approx([2 / 3, 0.8, 0, 0])


def test_match_false_with_a_label_map_and_probabilities():
    probabilities = np.array([[0.8, 0.3, 0.1], [0.2, 0.7, 0.9]])
    result = compare([0, 0, 1], probabilities, match="labels")
    assert result.score == pytest.approx((0.8 + 0.3 + 0.9) / 3)
    assert compare(probabilities, [0, 0, 1], match="labels").score == pytest.approx(result.score)


def test_match_false_without_a_common_label_is_refused():
    with pytest.raises(ProbdiceError, match=r"no label in common.*reference has 1, 2.*has 5, 7, 9"):
        compare(REFERENCE, SPLIT, match="labels")


def test_a_label_that_both_know_suffices_though_empty():
    result = compare([[1.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]], match="labels")
    assert result.score == 0
    assert result.empty == {"reference": (1,), "prediction": (0,)}


def test_match_false_does_not_go_with_merging():
    with pytest.raises(ProbdiceError, match="does not go with match="):
        compare(REFERENCE, SPLIT, match="labels", merge="both")


def test_names_stand_for_labels():
    reference = Segmentation.from_labels([1, 1, 2], names={1: "liver", 2: "spleen", 9: "kidney"})
    prediction = Segmentation.from_probabilities(
        [[0.9, 0.8, 0.1], [0.1, 0.2, 0.9]], names=["liver", "spleen"]
    )
    result = compare(reference, prediction, match="labels")
    assert pairs(result) == [(("liver",), ("liver",)), (("spleen",), ("spleen",))]
    assert result.empty["reference"] == ("kidney",)


# Ω ---------------------------------------------------------------------------------------------


def test_what_is_outside_the_mask_does_not_count():
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


def test_a_group_knows_its_dice_and_volumes():
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


def test_the_similarity_of_a_spare_region_is_that_with_an_empty_one():
    result = compare(SOFT_REFERENCE, SOFT_SPLIT, similarity=Aitchison(0.01))
    (alone,) = (group for group in result.groups if not group.reference)
    f = Aitchison(0.01)
    row = SOFT_SPLIT[alone.prediction[0]]
    expected = np.mean([f([p, 1 - p], [0, 1]) for p in row])
    assert alone.similarity == pytest.approx(expected, abs=1e-9)


# Chance ----------------------------------------------------------------------------------------


def test_chance_of_label_maps_in_closed_form():
    reference, prediction = np.repeat([1, 2], [6, 4]), np.repeat([1, 2], [5, 5])
    result = compare(reference, prediction)
    # The expected table is (3, 3), (2, 2): either matching agrees on half of the pixels.
    assert result.chance == pytest.approx(0.5)
    assert result.adjusted_score == pytest.approx((0.9 - 0.5) / 0.5)


def test_chance_of_probabilities_is_the_score_of_unrelated_pixels():
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(3), 20000).T, rng.dirichlet(np.ones(3), 20000).T
    result = compare(p, q)
    assert result.adjusted_score == pytest.approx(0, abs=0.01)
    assert compare(p, q).chance == result.chance
    related = compare(p, 0.9 * p + 0.1 / 3)
    assert related.adjusted_score > 0.9


def test_chance_of_a_label_map_and_its_one_hot_probabilities_agree():
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 3, 4000), rng.integers(0, 4, 4000)
    one_hot = np.stack([b == k for k in range(4)]).astype(np.float32)
    assert compare(a, one_hot, merge="both").chance == pytest.approx(
        compare(a, b, merge="both").chance, abs=0.01
    )


# Notes and warnings ----------------------------------------------------------------------------


def test_shared_labels_that_were_matched_crosswise_are_told():
    result = compare([1, 1, 1, 2, 2], [2, 2, 2, 1, 1])
    assert any("match="labels"" in note and "1, 2" in note for note in result.notes)
    assert compare([1, 1, 2], [1, 1, 2]).notes == ()


def test_infinite_distances_are_warned_of_once():
    reference, prediction = np.zeros(10, int), np.full((2, 10), 0.5)
    prediction[:, :3] = [[1], [0]]
    with pytest.warns(ProbdiceWarning, match=r"70\.0%.*floor.*absolute.*merge") as caught:
        result = compare(reference, prediction, similarity="aitchison")
    assert len(caught) == 1
    assert result.score == pytest.approx(0.3)
    assert any("70.0%" in note for note in result.notes)


def test_no_warning_at_half_or_with_a_floor():
    prediction = np.full((2, 10), 0.5)
    prediction[:, :5] = [[1], [0]]
    compare(np.zeros(10, int), prediction, similarity="aitchison")
    compare(np.zeros(10, int), np.full((2, 10), 0.5), similarity=Aitchison(floor=1e-3))


# Maps and labels -------------------------------------------------------------------------------


def test_the_map_is_f_after_correspondence():
    result = compare(REFERENCE, SPLIT, merge="both")
    assert result.map().tolist() == [1, 1, 1, 1, 0, 1, 1, 1]
    assert result.map().dtype == np.float32
    soft = compare(SOFT_REFERENCE, SOFT_SPLIT, merge="both", similarity=Aitchison(0.01))
    joined = SOFT_SPLIT[[0, 2]] + [SOFT_SPLIT[1], np.zeros(4)]
    assert soft.map() == pytest.approx(Aitchison(0.01)(SOFT_REFERENCE, joined), abs=1e-6)


def test_similarity_map_takes_labels_as_they_are():
    q = SOFT_REFERENCE[::-1]
    assert similarity_map(SOFT_REFERENCE, q) == pytest.approx(Absolute()(SOFT_REFERENCE, q))
    assert similarity_map([0, 1, 1], [[0.9, 0.2, 1], [0.1, 0.8, 0]]) == pytest.approx([0.9, 0.8, 0])


def test_the_prediction_in_the_words_of_the_reference():
    result = compare(REFERENCE, SPLIT, merge="both")
    assert np.asarray(result.relabelled().array).tolist() == [1, 1, 1, 1, 1, 2, 2, 2]


def test_a_spare_label_that_is_taken_gets_a_new_one_and_says_so():
    relabelled = compare([1, 1, 1, 2, 2, 2], [2, 2, 1, 5, 5, 5]).relabelled()
    assert np.asarray(relabelled.array).tolist() == [1, 1, 6, 2, 2, 2]
    assert relabelled.names == {6: "1 (unmatched)"}
    kept = compare([1, 1, 1, 2, 2, 2], [2, 2, 7, 5, 5, 5]).relabelled()
    assert np.asarray(kept.array).tolist() == [1, 1, 7, 2, 2, 2]


def test_relabelled_probabilities():
    relabelled = compare(SOFT_REFERENCE, SOFT_SPLIT, merge="both").relabelled()
    assert relabelled.regions == (0, 1)
    assert np.asarray(relabelled.array) == pytest.approx(
        SOFT_SPLIT[[0, 2]] + [SOFT_SPLIT[1], np.zeros(4)]
    )
    spare = compare(SOFT_REFERENCE, SOFT_SPLIT).relabelled()
    assert spare.regions == (0, 1, "1 (unmatched)")


def test_relabelled_after_merging_the_reference_uses_the_matched_region():
    relabelled = compare(SPLIT, REFERENCE, merge="reference").relabelled()
    assert np.asarray(relabelled.array).tolist() == [7, 7, 7, 7, 9, 9, 9, 9]


def test_relabelled_prediction_matches_by_label():
    rng = np.random.default_rng(3)
    reference, prediction = rng.integers(0, 4, (9, 8)), rng.integers(0, 6, (9, 8))
    result = compare(reference, prediction, merge="both")
    again = compare(reference, result.relabelled(), match="labels")
    assert again.score == result.score


# Showing and storing ---------------------------------------------------------------------------


def test_json_holds_everything_and_reads_back():
    result = compare(REFERENCE, SPLIT, merge="both")
    again = Comparison.from_json(result.to_json())
    assert again.to_dict() == result.to_dict()
    assert repr(again) == repr(result)
    assert result.to_dict()["format"] == 1
    with pytest.raises(ProbdiceError, match="read from JSON"):
        again.map()


def test_json_has_null_for_what_is_not_a_number():
    text = compare([1, 2], [3, 3], merge="both").to_json()
    assert '"adjusted_score": null' in text
    assert math.isnan(Comparison.from_json(text).adjusted_score)


def test_json_of_another_kind_is_refused():
    with pytest.raises(ProbdiceError, match="not JSON"):
        Comparison.from_json("{")
    with pytest.raises(ProbdiceError, match="format 1, found 99"):
        Comparison.from_json('{"format": 99}')


def test_a_frame_has_a_row_for_each_group():
    frame = compare(REFERENCE, SPLIT).to_frame()
    assert frame["reference_volume"].tolist() == [4, 4, 0]
    assert frame.columns[0] == "reference"


def test_html_escapes_names():
    reference = Segmentation.from_labels([0, 1], names={1: "<script>alert(1)</script>"})
    html = compare(reference, [0, 1])._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_many_groups_are_cut_short_when_printed():
    labels = np.arange(100)
    assert "… and 88 more groups" in repr(compare(labels, labels))


def test_a_result_is_frozen():
    result = compare([1, 2], [1, 2])
    with pytest.raises(AttributeError):
        result.score = 0.5


def test_relabelled_carries_integer_names_of_probabilities():
    reference = Segmentation.from_probabilities(
        [[0.9, 0.8, 0.1], [0.1, 0.2, 0.9]], names=[10, "lesion"]
    )
    result = compare(reference, [5, 5, 7])
    relabelled = result.relabelled()
    assert np.asarray(relabelled.array).tolist() == [10, 10, 0]
    assert compare(reference, relabelled, match="labels").score == result.score


@pytest.mark.parametrize("label", [2**60 + 1, 5_000_000_001, 2**64 - 1, -5])
def test_relabelled_keeps_large_labels(label):
    reference = np.array([label, label, 3], np.uint64 if label > 2**63 else np.int64)
    relabelled = compare(reference, np.array([1, 1, 2], np.uint8)).relabelled()
    assert np.asarray(relabelled.array).tolist() == [label, label, 3]


def test_a_result_can_be_copied_and_sent_elsewhere():
    import copy
    import pickle

    result = compare(SOFT_REFERENCE, SOFT_SPLIT, merge="both")
    for again in (copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert again.to_dict() == result.to_dict()
        assert again.map().tolist() == result.map().tolist()


def test_options_of_numpy_become_plain():
    result = compare([1, 2], [1, 2], similarity=Aitchison(np.float32(0.25)), match=np.bool_(True))
    assert Comparison.from_json(result.to_json()).floor == 0.25
    names = Segmentation.from_probabilities([[1.0, 0], [0, 1.0]], names=np.array(["a", "b"]))
    assert [type(label) for label in compare(names, [0, 1]).reference_labels] == [str, str]
