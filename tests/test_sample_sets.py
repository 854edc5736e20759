"""Samples compared with raters: energy distance, matched IoU and volume scores."""

from math import lcm

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import linear_sum_assignment

from probdice import InputError, Segmentation, compare_sets
from probdice.raters.sample_sets import _best_matching, _ranked_probability_score


def masks(count, seed, size=40):
    """Masks of one object with different edges."""
    rng = np.random.default_rng(seed)
    return [(np.arange(size) < edge).astype(int) for edge in rng.integers(5, 30, count)]


def iou(a, b):
    union = (a | b).sum()
    return (a & b).sum() / union if union else 1.0


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), raters=st.integers(1, 4), samples=st.integers(1, 5))
def test_the_energy_distance_equals_its_definition(seed, raters, samples):
    r, s = masks(raters, seed), masks(samples, seed + 1)
    result = compare_sets(r, s, background=0, match="labels")
    between = np.mean([1 - iou(a, b) for a in r for b in s])
    among = [np.mean([1 - iou(a, b) for a in x for b in x]) for x in (r, s)]
    assert result.energy_distance == pytest.approx(2 * between - sum(among), abs=1e-12)
    assert result.iou == pytest.approx(np.array([[iou(a, b) for b in s] for a in r]))
    assert result.energy_distance >= -1e-12


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 5))
def test_the_energy_distance_of_a_set_with_itself_is_0(seed, count):
    rng = np.random.default_rng(seed)
    people = [rng.integers(0, 4, (6, 6)) for _ in range(count)]
    other_labels = [rng.permutation(9)[rater] for rater in people]
    result = compare_sets(people, other_labels[::-1])
    assert result.energy_distance == pytest.approx(0, abs=1e-12)
    assert result.matched_iou == pytest.approx(1)
    assert result.rater_diversity == pytest.approx(result.sample_diversity)


def test_regions_absent_from_both_sides_are_excluded_and_two_empty_ones_agree():
    empty, one, both = np.zeros(4, int), np.array([0, 0, 1, 1]), np.array([0, 2, 1, 1])
    result = compare_sets([empty, one, both], [empty, one], background=0, match="labels")
    assert result.iou.tolist() == [[1, 0], [0, 1], [0, 0.5]]


def test_backgrounds_are_matched_with_each_other():
    # The samples mark the complement of what the raters mark, or nothing.
    raters, samples = [[1, 1, 1, 0], [1, 1, 1, 0]], [[0, 0, 0, 1], [0, 0, 0, 0]]
    result = compare_sets(raters, samples, background=0)
    assert result.iou.tolist() == [[0, 0], [0, 0]]
    # Region 1 of the first sample does not overlap the raters' region 1, so it gets the label 2.
    # Its volumes are 1 and 0 against 0: ½ − ½ · ½. Those of region 1 are 0 and 0 against 3.
    assert result.volume_scores == {1: 3, 2: 0.25}


def test_the_name_of_the_background_applies_to_sets_without_names():
    named = Segmentation.from_labels([0, 0, 1, 1], names={0: "air", 1: "bone"})
    for match in ("overlap", "labels"):
        result = compare_sets(
            [named, named], [[0, 1, 1, 1], [0, 0, 0, 1]], background="air", match=match
        )
        assert result.iou.tolist() == [pytest.approx([2 / 3, 1 / 2])] * 2
        assert result.regions == ("bone",)


def test_probabilities_have_a_fuzzy_iou():
    raters = [np.array([[0.5, 1.0], [0.5, 0.0]])]
    samples = [np.array([[0.25, 1.0], [0.75, 0.0]])]
    result = compare_sets(raters, samples, background=1, match="labels")
    assert result.iou[0, 0] == pytest.approx(1.25 / 1.5)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), rows=st.integers(1, 5), columns=st.integers(1, 6))
def test_matched_iou_equals_that_of_repeated_sets(seed, rows, columns):
    table = np.random.default_rng(seed).random((rows, columns))
    size = lcm(rows, columns)
    large = np.tile(table, (size // rows, size // columns))
    best = large[linear_sum_assignment(-large)].mean()
    assert _best_matching(table) == pytest.approx(best)


def test_volume_scores_equal_the_integral_of_their_definition():
    raters, samples = np.array([3.0, 7.0, 8.0]), np.array([2.0, 4.0, 9.0, 9.0])

    def score(observed):
        def squared(x):
            return ((samples <= x).mean() - (observed <= x)) ** 2

        return quad(squared, 0, 12, limit=500, points=[*samples, observed])[0]

    assert _ranked_probability_score(raters, samples) == pytest.approx(
        np.mean([score(r) for r in raters]), rel=1e-6
    )


def test_volume_scores_use_common_regions():
    raters, samples = [[5, 5, 6, 6]], [[2, 2, 2, 1], [2, 2, 1, 1]]
    scores = compare_sets(raters, samples).volume_scores
    # Volumes 3 and 2 against 2: 0.5 − ½ · 0.5; and 1 and 2 against 2.
    assert sorted(scores.values()) == pytest.approx([0.25, 0.25])


@pytest.mark.parametrize(
    ("raters", "samples", "options", "message"),
    [
        ([], [[1, 2]], {}, "raters: expected at least one"),
        ([[1, 2]], [], {}, "samples: expected at least one"),
        ([[1, 2]], [[1, 2], [1j, 2j]], {}, "^sample 2: must contain labels"),
        ([[1j, 2j]], [[1, 2]], {}, "^rater 1: must contain labels"),
        ([[1, 2]], {"vae": [[0.5, 0.5], [0.5, 0.1]]}, {}, "^sample vae: probabilities sum to 0.6"),
        (
            [[1, 2]],
            [[1, 2]],
            {"background": 7},
            "background must be the label or name of a common region",
        ),
    ],
)
def test_invalid_sets_and_options_are_rejected(raters, samples, options, message):
    with pytest.raises(InputError, match=message):
        compare_sets(raters, samples, **options)
