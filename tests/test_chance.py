"""The chance level."""

import math

import numpy as np
import pytest
from oracles import chance, one_hot

from probdice import Aitchison, Segmentation, compare
from probdice.comparison.comparing import compare_images
from probdice.engine.pair import SegmentationPair
from probdice.options import CompareOptions

pytestmark = pytest.mark.filterwarnings("ignore::probdice.ProbdiceWarning")

REFERENCE = [1, 1, 1, 1, 2, 2, 2, 2]
SPLIT = [7, 7, 5, 5, 5, 9, 9, 9]


def soft(regions, pixels, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(regions), pixels).T


def test_label_maps_in_closed_form():
    result = compare(np.repeat([1, 2], [6, 4]), np.repeat([1, 2], [5, 5]))
    # The expected table is (3, 3), (2, 2): either matching agrees on half of the pixels.
    assert result.chance == pytest.approx(0.5)
    assert result.adjusted_score == pytest.approx((0.9 - 0.5) / 0.5)
    assert result.chance_error == 0


def test_largest_regions_are_matched_and_unmatched_regions_merge_into_the_largest():
    # Shares 1/2, 1/2 against 3/8, 3/8, 2/8.
    assert compare(REFERENCE, SPLIT).chance == 3 / 8
    assert compare(REFERENCE, SPLIT, merge="prediction").chance == 3 / 8 + 2 / 8 * 1 / 2
    assert compare(REFERENCE, SPLIT, merge="reference").chance == 3 / 8
    assert compare(SPLIT, REFERENCE, merge="both").chance == 1 / 2


def components(labels):
    return Segmentation.from_labels(labels).components(background=0)


def test_components_are_matched_within_their_class():
    pytest.importorskip("cc3d")
    # Shares by class: 0.6 and 0.1 of the reference, 0.1 and 0.6 of the prediction, 0.3 background.
    reference = components(np.repeat([1, 0, 2, 0], [60, 5, 10, 25]))
    prediction = components(np.repeat([1, 0, 2, 0], [10, 5, 60, 25]))
    result = compare(reference, prediction, background=0)
    assert result.chance == pytest.approx(0.6 * 0.1 + 0.1 * 0.6 + 0.3 * 0.3)
    assert result.adjusted_score == pytest.approx((0.45 - 0.21) / (1 - 0.21))
    assert result.foreground_chance == pytest.approx(0.12 / (1 - 0.3 * 0.3))
    assert compare(reference, prediction).chance == result.chance


def test_components_merge_by_chance_within_their_class():
    pytest.importorskip("cc3d")
    # Class 1: shares 0.4 and 0.1 against 0.2. Class 2: 0.2 against 0.1 and 0.3.
    reference = components(np.repeat([1, 0, 1, 0, 2, 0], [4, 1, 1, 1, 2, 1]))
    prediction = components(np.repeat([1, 0, 2, 0, 2, 0], [2, 1, 1, 1, 3, 2]))
    chance = 0.4 * 0.2 + 0.2 * 0.3 + 0.3 * 0.4
    expected = {
        "none": chance,
        "reference": chance + 0.1 * 0.2,
        "prediction": chance + 0.1 * 0.2,
        "both": chance + 2 * 0.1 * 0.2,
    }
    for merge, level in expected.items():
        result = compare(reference, prediction, background=0, merge=merge)
        assert result.chance == pytest.approx(level)


def test_classes_of_components_without_a_common_label_correspond_by_size():
    pytest.importorskip("cc3d")
    # Classes of 4 (2 + 2) and 3 pixels against classes of 5 and 2 (1 + 1) pixels; 5 are background.
    reference = components([2, 2, 0, 2, 2, 0, 1, 1, 1, 0, 0, 0])
    prediction = components([7, 7, 7, 7, 7, 0, 8, 0, 8, 0, 0, 0])
    result = compare(reference, prediction, background=0)
    assert result.chance == pytest.approx((2 * 5 + 3 * 1 + 5 * 5) / 144)


def test_empty_labels_are_ignored():
    """Labels that occur only outside the mask once counted as matches of unmatched regions."""
    reference = np.array([*REFERENCE, 11, 12, 13])
    prediction = np.array([*SPLIT, 9, 9, 9])
    mask = np.arange(11) < 8
    for merge in ("none", "prediction", "reference", "both"):
        expected = compare(REFERENCE, SPLIT, merge=merge).chance
        assert compare(reference, prediction, mask=mask, merge=merge).chance == expected
        exchanged = compare(prediction, reference, mask=mask, merge=merge).chance
        assert exchanged == compare(SPLIT, REFERENCE, merge=merge).chance


def test_a_floor_raises_the_chance_level():
    forgiven = 1 / (1 + math.sqrt(2) * math.log(100))
    result = compare(REFERENCE, SPLIT, similarity=Aitchison(0.01))
    assert result.chance == pytest.approx(3 / 8 + 5 / 8 * forgiven)


def test_the_papers_rule_is_applied_to_the_table_of_chance():
    # Weights 5 − m/4 and 3 + m/4: the smaller region prefers the smallest partner.
    sides = np.repeat([1, 2], [5, 3]), np.repeat([5, 6, 7], [4, 3, 1])
    assert compare(*sides, match="paper").chance == (5 * 4 + 3 * 1) / 64
    assert compare(*sides, match="overlap").chance == (5 * 4 + 3 * 3) / 64


def test_given_correspondences_are_kept():
    assert compare([1, 1, 1, 2], [1, 2, 2, 2], match="labels").chance == 3 / 16 + 3 / 16
    earlier = compare(REFERENCE, SPLIT, merge="both")
    assert compare(REFERENCE, SPLIT, match=earlier).chance == 5 / 8 * 1 / 2 + 3 / 8 * 1 / 2
    fixed = compare(REFERENCE, SPLIT, match={5: 2})
    assert fixed.chance == pytest.approx(1 / 2 * 3 / 8 + 1 / 2 * 3 / 8)


@pytest.mark.parametrize("pixels", [60, 40_000])
def test_many_pixels_in_bins_agree_with_few_that_are_sorted(pixels):
    p, q = soft(3, 60), soft(4, 60, 1)
    expected = chance(p, q)
    repeats = pixels // 60
    result = compare(np.tile(p, repeats), np.tile(q, repeats))
    assert result.chance == pytest.approx(expected, abs=1e-5)
    assert result.chance_error == 0


def test_a_label_map_and_its_one_hot_probabilities_agree():
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 3, 4000), rng.integers(0, 4, 4000)
    expected = compare(a, b).chance
    for pair in ((a, one_hot(b)), (one_hot(a), b), (one_hot(a), one_hot(b))):
        assert compare(*pair).chance == pytest.approx(expected, abs=1e-9)
        merged = compare(*pair, merge="both")
        assert merged.chance == pytest.approx(compare(a, b, merge="both").chance, abs=0.02)


def test_adjusted_scores_of_independent_pixels_are_about_0():
    p, q = soft(3, 20_000), soft(3, 20_000, 1)
    for options in ({}, {"merge": "both"}, {"similarity": "aitchison"}, {"match": "labels"}):
        result = compare(p, q, **options)
        assert result.adjusted_score == pytest.approx(0, abs=0.01)
        assert compare(p, q, **options).chance == result.chance
    assert compare(p, 0.9 * p + 0.1 / 3).adjusted_score > 0.9


def test_sampled_chance_has_a_standard_error():
    p, q = soft(3, 20_000), soft(4, 20_000, 1)
    result = compare(p, q, similarity="aitchison", merge="both")
    assert 0 < result.chance_error < 0.01
    assert result.chance == pytest.approx(result.score, abs=5 * result.chance_error + 0.005)


def test_groups_of_several_soft_regions_that_were_given_are_sampled():
    """Pairwise overlaps of independent sides count pixels that such groups share twice."""
    p, q = soft(3, 20_000), soft(4, 20_000, 1)
    earlier = compare(p, q, merge="both")
    assert earlier.merges
    result = compare(p, q, match=earlier)
    assert result.chance_error > 0
    assert result.adjusted_score == pytest.approx(0, abs=0.02)


@pytest.mark.parametrize("place", range(6))
def test_a_rare_label_may_be_missing_among_the_samples(place):
    labels = np.zeros(600, int)
    labels[place * 100] = 9
    probabilities = soft(3, 600)
    fixed = compare(probabilities, labels, similarity=Aitchison(0.01), match={9: 0})
    assert 0 < fixed.chance < 1
    named = Segmentation.from_probabilities(probabilities, names=[9, 10, 11])
    equal = compare(labels, named, similarity=Aitchison(0.01), match="labels")
    assert 0 < equal.chance < 1


def test_a_region_whose_given_partner_is_absent_has_none_by_chance():
    # Region 5 of the prediction belongs to region 1, which this image lacks, so no pixel agrees.
    prediction = Segmentation.from_probabilities(np.ones((1, 40)), labels=[5])
    images = SegmentationPair.of(Segmentation.from_labels([2] * 40), prediction)
    options = CompareOptions.of(match={5: 1}, similarity="aitchison")
    result = compare_images(images, options, of_many=True)
    assert (result.score, result.chance) == (0, 0)


def test_given_groups_of_several_soft_regions():
    # Every pixel has the same probabilities, so independent pixels have the score of the images.
    reference = np.full((2, 40), [[0.25], [0.75]])
    prediction = np.full((3, 40), [[0.25], [0.25], [0.5]])
    result = compare(
        reference,
        prediction,
        match={0: 0, 1: 0, 2: 1},
        background={"reference": 1, "prediction": 2},
    )
    assert result.chance == pytest.approx(0.75)  # min(0.25, 0.5) + min(0.75, 0.5)
    assert result.foreground_chance == pytest.approx(0.5)  # 0.25 / (1 − 0.5)


def test_a_label_map_and_given_groups_of_several_soft_regions():
    reference = [1, 1, 2, 2]
    prediction = np.array(
        [[0.5, 0.5, 0.25, 0.25], [0.25, 0.25, 0.25, 0.25], [0.25, 0.25, 0.5, 0.5]]
    )
    earlier = compare(reference, prediction, match={0: 1, 1: 1, 2: 2})
    result = compare(reference, prediction, match=earlier)
    assert [group.prediction for group in result.groups] == [(0, 1), (2,)]
    assert result.chance == pytest.approx(0.5)  # 0.5 · 0.625 + 0.5 · 0.375
    assert result.chance_error == 0


def test_the_adjusted_score_is_nan_if_chance_is_1():
    assert math.isnan(compare([1, 1], [2, 2]).adjusted_score)
    assert compare([1, 2], [1, 2]).adjusted_score == 1


def test_the_mean_minimum_of_sorted_values():
    from probdice.method.chance import _mean_minimum

    rng = np.random.default_rng(0)
    p, q = np.sort(rng.random(30)), np.sort(np.round(rng.random(20), 1))
    assert _mean_minimum(p, q) == pytest.approx(np.minimum.outer(p, q).mean(), abs=1e-14)
