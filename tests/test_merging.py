"""Merging of unmatched regions into groups of matched ones."""

import math
import time
from functools import partial

import numpy as np
import pytest
from oracles import one_hot

from probdice import Absolute, Aitchison, Segmentation, compare, overlap
from probdice.engine.pair import SegmentationPair
from probdice.files.inputs import as_segmentation
from probdice.method.groups import costs
from probdice.method.matching import pairs_as_groups
from probdice.method.merging import merge_unmatched
from probdice.method.scoring import joined_losses
from probdice.method.sides import SIDES

REFERENCE = [1, 1, 1, 1, 2, 2, 2, 2]
SPLIT = [7, 7, 5, 5, 5, 9, 9, 9]


def pairs(result):
    return [(group.reference, group.prediction) for group in result.groups]


def merges(result):
    return [(merge.side, merge.region, merge.into) for merge in result.merges]


def test_only_the_allowed_side_is_merged():
    for merge, advice in (("none", "prediction"), ("reference", "both")):
        result = compare(REFERENCE, SPLIT, merge=merge)
        assert pairs(result) == [((1,), (7,)), ((2,), (9,)), ((), (5,))]
        assert result.score == result.matched_score == 0.625
        assert result.unmatched == {"reference": (), "prediction": (5,)}
        assert result.merges == ()
        assert f'use merge="{advice}"' in str(result.notes[0])


def test_under_segmentation_is_the_same_with_the_sides_exchanged():
    result = compare(SPLIT, REFERENCE, merge="reference")
    assert pairs(result) == [((5, 7), (1,)), ((9,), (2,))]
    assert (result.score, result.matched_score) == (0.875, 0.625)


def test_both_sides_of_one_image_are_merged():
    reference, prediction = np.repeat([1, 2, 3], [6, 2, 8]), np.repeat([5, 6, 7], [8, 5, 3])
    one = compare(reference, prediction, merge="prediction")
    assert pairs(one) == [((1,), (5,)), ((3,), (6, 7)), ((2,), ())]
    assert compare(reference, prediction, merge="both").score == 1


def test_equally_many_regions_leave_nothing_to_merge():
    result = compare([1, 1, 2, 2], [5, 5, 5, 8], merge="both")
    assert result.merges == ()
    assert result.score == 0.75


def test_an_unmatched_region_is_merged_even_at_a_loss():
    result = compare([1, 1, 1, 1, 1, 1], [1, 1, 2, 2, 3, 3], merge="both")
    assert pairs(result) == [((1,), (1, 2, 3))]
    assert result.score == 1
    # 5 shares one pixel with either region of the reference and has a third outside both.
    losing = compare([1, 1, 1, 2, 2, 2, 3, 3], [7, 7, 5, 5, 8, 8, 5, 9], merge="both")
    assert merges(losing) == [("prediction", 5, (1,))]
    assert losing.merges[0].gain == -1 / 8
    assert losing.score == losing.matched_score + 1 / 8


def test_an_unmatched_region_that_overlaps_no_group_stays_unmatched():
    """Reference 1 is reserved for a label that the prediction lacks, so 5 overlaps no match."""
    prediction = Segmentation.from_labels([5, 5, 6, 6], names={9: "kidney"})
    result = compare([1, 1, 2, 2], prediction, match={"kidney": 1}, merge="both")
    assert pairs(result) == [((2,), (6,)), ((1,), ()), ((), (5,))]
    assert [str(note) for note in result.notes] == [
        "1 reference region is unmatched and counts as Dice 0 (region 1). "
        "It was not merged because it overlaps no matched region into which merging is allowed.",
        "1 prediction region is unmatched and counts as Dice 0 (region 5). "
        "It was not merged because it overlaps no matched region into which merging is allowed.",
    ]
    several = Segmentation.from_labels([4, 5, 6, 6], names={9: "kidney"})
    result = compare([1, 1, 2, 2], several, match={"kidney": 1}, merge="prediction")
    assert [str(note) for note in result.notes] == [
        "1 reference region is unmatched and counts as Dice 0 (region 1). "
        'To merge it into a matched region, use merge="both".',
        "2 prediction regions are unmatched and count as Dice 0 (regions 4, 5). "
        "They were not merged because they overlap no matched region into which merging is "
        "allowed.",
    ]


def test_ties_go_to_the_lower_region_and_the_lower_group():
    result = compare([1, 1, 1, 1, 2, 2, 2, 2], [1, 1, 3, 4, 2, 2, 5, 6], merge="both")
    assert [(merge.region, merge.into) for merge in result.merges] == [
        (3, (1,)),
        (4, (1,)),
        (5, (2,)),
        (6, (2,)),
    ]
    # 5 is half in either region: the group with the lower reference label.
    halves = compare([1, 1, 1, 2, 2, 2], [7, 7, 5, 5, 8, 8], merge="both")
    assert merges(halves) == [("prediction", 5, (1,))]


def test_ties_go_to_the_prediction_first():
    reference = [1, 1, 1, 1, 2, 2, 2, 3]
    prediction = [5, 5, 5, 6, 7, 7, 7, 7]
    result = compare(reference, prediction, merge="both")
    assert merges(result) == [("prediction", 6, (1,)), ("reference", 3, (7,))]
    assert [merge.gain for merge in result.merges] == [0.125, 0.125]
    exchanged = compare(prediction, reference, merge="both")
    assert merges(exchanged) == [("prediction", 3, (7,)), ("reference", 6, (1,))]


def test_gains_within_rounding_tie():
    """0.1 + 0.2 is not 0.3 in binary: the tie is broken by the order, not by rounding."""
    p = np.array([[0.5] * 4, [0.5] * 4])
    q = np.array([[0.3] * 4, [0.3] * 4, [0.1, 0.2, 0.1, 0.2], [0.2, 0.1, 0.2, 0.1], [0.1] * 4])
    result = compare(p, q, merge="both")
    assert merges(result)[:2] == [("prediction", 2, (0,)), ("prediction", 3, (1,))]


@pytest.mark.parametrize("form", [Segmentation.from_labels, one_hot])
def test_merging_one_side_adds_neighbours_on_the_other(form):
    """After 2 is merged into the group of 5, a region that overlaps only 2 overlaps the group."""
    sides = np.array([[1, 1, 1, 1, 2, 2, 2, 2], [5, 5, 5, 5, 5, 5, 6, 6]])
    images = SegmentationPair.of(*(as_segmentation(form(side), "reference") for side in sides))
    table = images.overlap(Absolute())
    groups = pairs_as_groups(table, np.array([0]), np.array([0]))
    merged, _, joins = merge_unmatched(
        table, groups, costs(table, groups), SIDES, partial(joined_losses, table, images)
    )
    assert [(join.side, join.region, join.into) for join in joins] == [
        ("reference", 1, (0,)),
        ("prediction", 1, (0, 1)),
    ]
    assert [join.gain for join in joins] == [0, 0.25]
    assert merged.count == 1


def test_a_region_whose_given_partner_is_absent_is_not_merged():
    # The prediction calls two pixels 1, but the reference has no region 1.
    reference, prediction = [2, 2, 2, 2, 2, 3, 3, 3], [1, 1, 2, 2, 2, 3, 3, 4]
    soft = one_hot(np.array(prediction))  # labels 1 to 4
    soft = Segmentation.from_probabilities(soft, labels=[1, 2, 3, 4])
    for side in (prediction, soft):
        result = compare(reference, side, match={1: 1, 2: 2}, merge="both")
        assert pairs(result) == [((2,), (2,)), ((3,), (3, 4)), ((), (1,))]
        assert result.unmatched == {"reference": (), "prediction": (1,)}
        assert (result.score, result.matched_score) == (6 / 8, 5 / 8)
    # The prediction has no region 2, so region 2 of the reference is missed.
    result = compare(reference, [3] * 8, match={2: 2}, merge="both")
    assert pairs(result) == [((3,), (3,)), ((2,), ())]


def test_a_prediction_of_one_region_fits_any_merged_reference():
    rng = np.random.default_rng(5)
    reference = rng.dirichlet(np.ones(4), 50).T
    result = compare(reference, np.ones((1, 50)), merge="both")
    assert result.score == pytest.approx(1, abs=1e-12)
    assert result.chance == pytest.approx(1, abs=1e-9)
    assert math.isnan(result.adjusted_score)


def test_soft_regions_merge_with_one_pass_each(monkeypatch):
    calls = []
    joined = SegmentationPair.joined
    monkeypatch.setattr(SegmentationPair, "joined", lambda *args: calls.append(1) or joined(*args))
    rng = np.random.default_rng(0)
    compare(rng.dirichlet(np.ones(3), 200).T, rng.dirichlet(np.ones(13), 200).T, merge="both")
    assert len(calls) == 10


@pytest.mark.parametrize("similarity", ["absolute", Aitchison(0.01)])
def test_label_maps_merge_without_a_pass_over_the_pixels(similarity, monkeypatch):
    monkeypatch.setattr(
        SegmentationPair, "joined", lambda *args: pytest.fail("a pass over the pixels")
    )
    rng = np.random.default_rng(0)
    compare(rng.integers(0, 5, 500), rng.integers(0, 9, 500), merge="both", similarity=similarity)
    soft = rng.dirichlet(np.ones(3), 500).T
    compare(soft, rng.integers(0, 9, 500), merge="prediction", similarity=similarity)


def test_merging_thousands_of_equal_gains_is_fast():
    """An earlier version compared all ties again after every merge."""
    labels = np.arange(80_000) // 4
    start = time.process_time()
    result = compare(np.full((2, labels.size), 0.5), labels, merge="prediction")
    assert time.process_time() - start < 30  # a second of CPU time
    assert [merge.region for merge in result.merges] == sorted(
        merge.region for merge in result.merges
    )
    assert len(result.merges) == 19_998


def test_sums_above_one_are_exact_with_images():
    prediction = np.array([[0.6, 0.5, 0.4], [0.4005, 0.5, 0.6005]])  # 1.0005, 1 and 1.0005
    merged = compare([1, 1, 1], prediction, merge="prediction")
    assert merged.score == pytest.approx(1 - 0.5 * 0.001 / 3, abs=1e-12)
    added = overlap([1, 1, 1], prediction).compare(merge="prediction")
    assert added.score == pytest.approx(merged.score, abs=1e-3)
    assert [(m.region, m.into) for m in added.merges] == [(m.region, m.into) for m in merged.merges]
