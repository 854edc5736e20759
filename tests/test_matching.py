"""Matching by overlap, by the paper's rule, by equal labels, or as given."""

import numpy as np
import pytest

from probdice import Comparison, ProbdiceError, Segmentation, TooLargeError, compare, overlap
from probdice.method.matching import assigned
from probdice.method.region_labels import listed

REFERENCE = [1, 1, 1, 1, 2, 2, 2, 2]
SPLIT = [7, 7, 5, 5, 5, 9, 9, 9]


def pairs(result):
    return [(group.reference, group.prediction) for group in result.groups]


def kinds(result):
    return [note.kind for note in result.notes]


# By overlap ------------------------------------------------------------------------------------


def test_regions_that_do_not_overlap_are_not_matched():
    result = compare([1, 1, 2, 3], [5, 5, 5, 6], match="overlap")
    assert pairs(result) == [((1,), (5,)), ((3,), (6,)), ((2,), ())]


def test_the_larger_overlap_wins_though_the_region_is_larger():
    # The paper's weights prefer a small partner; the overlap rule prefers the most common pixels.
    reference = np.repeat([1, 2], [10, 90])
    prediction = np.concatenate([np.repeat([5, 6], [1, 9]), np.full(90, 6)])
    assert pairs(compare(reference, prediction)) == [((1,), (5,)), ((2,), (6,))]
    reference = np.repeat([1], [100])
    prediction = np.repeat([5, 6], [40, 60])
    assert pairs(compare(reference, prediction))[0] == ((1,), (6,))


def test_of_equal_overlaps_the_region_with_the_smaller_remainder_is_matched():
    # 5 and 7 both share two pixels with 1; 5 has a pixel outside.
    for match in ("overlap", {9: 2}):
        result = compare(REFERENCE, SPLIT, match=match)
        assert pairs(result) == [((1,), (7,)), ((2,), (9,)), ((), (5,))]
        exchanged = compare(SPLIT, REFERENCE, match=match if match == "overlap" else {2: 9})
        assert pairs(exchanged) == [((7,), (1,)), ((9,), (2,)), ((5,), ())]


def test_the_same_pairs_every_time():
    rng = np.random.default_rng(0)
    p, q = rng.integers(0, 30, 500), rng.integers(0, 40, 500)
    assert pairs(compare(p, q)) == pairs(compare(p, q))


# By the paper's rule ---------------------------------------------------------------------------


def test_the_paper_matches_every_region_of_the_side_with_fewer_regions():
    reference, prediction = np.repeat([1, 2, 3], [6, 2, 8]), np.repeat([5, 6, 7], [8, 5, 3])
    result = compare(reference, prediction, match="paper")
    assert pairs(result) == [((1,), (5,)), ((2,), (7,)), ((3,), (6,))]
    assert kinds(result) == ["apart"]
    assert str(result.notes[0]) == (
        '1 matched pair does not overlap. To match overlapping regions only, use match="overlap".'
    )


def test_both_rules_agree_if_every_region_is_matched():
    rng = np.random.default_rng(1)
    p, q = rng.dirichlet(np.ones(5), 100).T, rng.dirichlet(np.ones(5), 100).T
    assert pairs(compare(p, q, match="paper")) == pairs(compare(p, q))


def test_the_papers_rule_is_rejected_for_too_many_regions():
    labels = np.arange(20_000)
    with pytest.raises(TooLargeError, match=r'too many for the paper.*match="overlap"'):
        compare(labels, labels, match="paper")
    assert compare(labels, labels).score == 1


def test_the_least_total_of_a_table():
    table = np.array([[1, 2, 9], [1, 5, 9]])
    assert [side.tolist() for side in assigned(table)] == [[0, 1], [1, 0]]
    assert [side.tolist() for side in assigned(table.T)] == [[0, 1], [1, 0]]


# By equal labels -------------------------------------------------------------------------------


def test_equal_labels_correspond():
    result = compare([1, 1, 2, 2, 3], [1, 2, 2, 2, 4], match="labels")
    assert pairs(result) == [((1,), (1,)), ((2,), (2,)), ((3,), ()), ((), (4,))]
    assert result.score == 0.6
    assert [group.dice for group in result.groups] == pytest.approx([2 / 3, 0.8, 0, 0])
    assert all("merge" not in str(note) for note in result.notes)


def test_a_mapping_may_have_the_text_of_a_number():
    named = Segmentation.from_probabilities([[1.0, 0], [0, 1.0]], names=["0", "1"])
    assert compare([0, 1], named, match={"0": 0, 1: "1"}).score == 1


def test_no_label_in_common_is_rejected():
    with pytest.raises(
        ProbdiceError,
        match=r"reference \(1, 2\) and prediction \(5, 7, 9\) have no label in common.*"
        r'Use match="overlap"',
    ):
        compare(REFERENCE, SPLIT, match="labels")


def test_a_common_label_without_pixels_is_enough():
    result = compare([[1.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]], match="labels")
    assert result.score == 0
    assert result.empty == {"reference": (1,), "prediction": (0,)}


# A mapping -------------------------------------------------------------------------------------


def test_a_mapping_fixes_its_pairs():
    result = compare(REFERENCE, SPLIT, match={5: 1})
    assert pairs(result) == [((1,), (5,)), ((2,), (9,)), ((), (7,))]
    assert result.match == {5: 1}


def test_a_mapping_may_pair_regions_that_do_not_overlap():
    result = compare([1, 1, 2, 2], [5, 5, 6, 6], match={5: 2})
    assert pairs(result) == [((2,), (5,)), ((1,), ()), ((), (6,))]
    assert result.score == 0


def test_a_mapping_may_be_many_to_one():
    result = compare(REFERENCE, SPLIT, match={5: 1, 7: 1})
    assert pairs(result) == [((1,), (5, 7)), ((2,), (9,))]
    assert result.score == 0.875
    assert result.matched_score == 0.875
    assert result.merges == ()
    soft = [[0.6, 0.5, 0.1, 0], [0.3, 0.3, 0.1, 0.1], [0.1, 0.2, 0.8, 0.9]]
    reference = [[0.9, 0.7, 0.2, 0.1], [0.1, 0.3, 0.8, 0.9]]
    for similarity, score in (("absolute", 0.975), ("aitchison", 0.93101145)):
        result = compare(reference, soft, match={0: 0, 1: 0, 2: 1}, similarity=similarity)
        assert result.score == pytest.approx(score, abs=5e-9)


@pytest.mark.parametrize("mapping", [{1: 1, "1": 2}, {1: 1, "liver": 2}])
def test_a_mapping_that_pairs_a_prediction_region_twice_is_rejected(mapping):
    prediction = Segmentation.from_labels([1, 1, 2, 2], names={1: "liver"})
    with pytest.raises(ProbdiceError, match=r"match pairs prediction region 'liver' with several"):
        compare([1, 1, 2, 2], prediction, match=mapping)


def test_regions_outside_a_mapping_may_be_merged():
    result = compare(REFERENCE, SPLIT, match={5: 1}, merge="prediction")
    assert pairs(result) == [((1,), (5, 7)), ((2,), (9,))]
    assert [(merge.region, merge.into) for merge in result.merges] == [(7, (1,))]
    assert result.matched_score == 0.625


def test_pairs_whose_reference_label_is_absent_do_not_join_other_pairs():
    # The reference lacks 0, and 1 is its first region.
    result = compare([1, 1, 1, 2, 2, 2], [5, 5, 7, 7, 0, 0], match={5: 1, 7: 0})
    assert pairs(result) == [((1,), (5,)), ((2,), (0,)), ((), (7,))]
    assert result.score == pytest.approx(4 / 6)
    result = compare([0, 0, 0, 0, 2, 2], [0, 0, 1, 1, 2, 2], match={0: 0, 1: 1, 2: 2})
    assert pairs(result) == [((0,), (0,)), ((2,), (2,)), ((), (1,))]


def test_a_name_that_neither_side_has_is_rejected():
    with pytest.raises(ProbdiceError, match=r"match names 4, which neither side has.*has 1, 2"):
        compare(REFERENCE, SPLIT, match={5: 4})
    absent = Segmentation.from_labels(REFERENCE, names={3: "kidney"})
    assert compare(absent, SPLIT, match={5: "kidney", 7: 1}).unmatched["prediction"] == (5,)


# An earlier comparison -------------------------------------------------------------------------


@pytest.mark.parametrize("stored", [False, True])
def test_the_groups_of_an_earlier_comparison_are_used_unchanged(stored):
    earlier = compare(REFERENCE, SPLIT, merge="both")
    if stored:
        earlier = Comparison.from_json(earlier.to_json())
    result = compare([1, 2, 2, 2], [5, 7, 9, 9], match=earlier)
    assert pairs(result) == [((1,), (5, 7)), ((2,), (9,))]
    assert result.score == result.matched_score == 0.75
    assert result.merges == ()
    assert result.match == (((1,), (5, 7)), ((2,), (9,)))


def test_a_label_missing_from_the_earlier_comparison_stays_unmatched_and_gets_a_note():
    earlier = compare(REFERENCE, SPLIT, merge="both")
    result = compare([1, 1, 4, 4], [5, 5, 8, 8], match=earlier)
    assert pairs(result) == [((1,), (5,)), ((4,), ()), ((), (8,))]
    unknown = [str(note) for note in result.notes if note.kind == "unknown"]
    assert unknown == [
        "1 reference label is missing from the earlier comparison (4).",
        "1 prediction label is missing from the earlier comparison (8).",
    ]


def test_unmatched_regions_of_an_earlier_comparison_stay_unmatched():
    earlier = compare(REFERENCE, SPLIT)
    assert pairs(compare([1, 1], [5, 5], match=earlier)) == [((1,), ()), ((), (5,))]


def test_a_correspondence_learnt_on_a_data_set():
    total = overlap(REFERENCE, SPLIT) + overlap([2, 2, 1], [9, 9, 5])
    learnt = total.compare(merge="both")
    assert compare([1, 1, 2], [5, 7, 9], match=learnt).score == 1


def test_lists_of_labels_are_shortened():
    assert listed(()) == "–"
    assert listed((1, "a")) == "1, a"
    assert listed(range(9)) == "0, 1, 2, 3, 4, 5, … 3 more"


def test_a_mapping_with_exchanged_sides_is_rejected():
    reference = Segmentation.from_labels([0, 0, 1], names={0: "csf", 1: "grey"})
    with pytest.raises(ProbdiceError, match="first is a reference label"):
        compare(reference, [4, 4, 5], match={"csf": 4})
    assert compare(reference, [4, 4, 5], match={4: "csf"}).score == 1
