"""Worked examples of the method, as literals."""

import numpy as np
import pytest

from probdice import Absolute, Aitchison, aitchison_distance, classical_dice, compare

REFERENCE = [1, 1, 1, 1, 2, 2, 2, 2]
SPLIT = [7, 7, 5, 5, 5, 9, 9, 9]
JOINED_REFERENCE = np.repeat([1, 2, 3], [6, 2, 8])
JOINED_PREDICTION = np.repeat([5, 6, 7], [8, 5, 3])
SOFT_PREDICTION = [[0.6, 0.5, 0.1, 0], [0.3, 0.3, 0.1, 0.1], [0.1, 0.2, 0.8, 0.9]]
SOFT_REFERENCE = [[0.9, 0.7, 0.2, 0.1], [0.1, 0.3, 0.8, 0.9]]
RULES = ["overlap", "paper"]


def pairs(result):
    return [(group.reference, group.prediction) for group in result.groups]


def merges(result):
    return [(merge.side, merge.region, merge.into) for merge in result.merges]


def test_the_classical_coefficient():
    assert classical_dice([True, False, True, False], [True, True, True, False]) == 4 / 5


@pytest.mark.parametrize("similarity", ["absolute", "aitchison"])
@pytest.mark.parametrize("match", [*RULES, "labels"])
def test_the_fraction_of_pixels_with_corresponding_labels(similarity, match):
    merge = "none" if match == "labels" else "both"
    result = compare([1, 2, 1, 2], [1, 1, 1, 2], similarity=similarity, match=match, merge=merge)
    assert result.score == 3 / 4


@pytest.mark.parametrize(
    ("first", "f1", "f2"),
    [(0.8, 0.9, 0.635560531405), (0.7, 0.8, 0.511628723387), (0.6, 0.7, 0.441118358899)],
)
def test_two_regions(first, f1, f2):
    p, q = [[0.9], [0.1]], [[first], [1 - first]]
    assert Absolute()(p, q)[0] == pytest.approx(f1, abs=1e-12)
    assert Aitchison()(p, q)[0] == pytest.approx(f2, abs=1e-12)
    assert compare(p, q, match="labels").score == pytest.approx(f1, abs=1e-12)
    result = compare(p, q, match="labels", similarity="aitchison")
    assert result.score == pytest.approx(f2, abs=1e-12)


@pytest.mark.parametrize(
    ("p", "q", "similarity", "expected"),
    [
        ([0.2, 0.3, 0.5], [0.1, 0.6, 0.3], Absolute(), 0.7),
        ([0.2, 0.3, 0.5], [0.1, 0.6, 0.3], Aitchison(), 0.48419074),
        ([0.5, 0.5, 0], [0.4, 0.6, 0], Aitchison(), 0.77717763),
        ([0.5, 0.5, 0], [0.4, 0.5, 0.1], Aitchison(), 0),
        ([0.5, 0.5, 0], [0.4, 0.5, 0.1], Aitchison(0.01), 0.33585719),
        ([1, 0], [0.9, 0.1], Aitchison(0.01), 0.37000384),
    ],
)
@pytest.mark.filterwarnings("ignore::probdice.ProbdiceWarning")
def test_vectors(p, q, similarity, expected):
    assert similarity(p, q) == pytest.approx(expected, abs=5e-9)
    p, q = np.array(p, float)[:, None], np.array(q)[:, None]
    result = compare(p, q, match="labels", similarity=similarity)
    assert result.score == pytest.approx(expected, abs=5e-9)


def test_distances():
    assert aitchison_distance([0.2, 0.3, 0.5], [0.1, 0.6, 0.3]) == pytest.approx(
        1.06530179, abs=5e-9
    )
    assert aitchison_distance([0.5, 0.5, 0], [0.4, 0.6, 0]) == pytest.approx(0.28670713, abs=5e-9)


@pytest.mark.parametrize("match", RULES)
@pytest.mark.parametrize("similarity", ["absolute", "aitchison"])
def test_over_segmentation_of_a_label_map(match, similarity):
    result = compare(REFERENCE, SPLIT, match=match, merge="both", similarity=similarity)
    assert result.reference_labels == (1, 2)
    assert result.prediction_labels == (5, 7, 9)
    assert result.weights.tolist() == [[0.375, 0.25, 0.875], [0.625, 0.75, 0.125]]
    assert pairs(result) == [((1,), (5, 7)), ((2,), (9,))]
    assert merges(result) == [("prediction", 5, (1,))]
    assert result.merges[0].gain == 0.125
    assert (result.score, result.matched_score) == (0.875, 0.625)
    assert result.explained == pytest.approx({"reference": 2 / 3, "prediction": 1 / 3})
    unmerged = compare(REFERENCE, SPLIT, match=match, similarity=similarity)
    assert pairs(unmerged) == [((1,), (7,)), ((2,), (9,)), ((), (5,))]
    if match == "overlap":
        assert (unmerged.chance, result.chance) == (0.375, 0.5)


def test_one_pair_joined_and_one_region_split():
    result = compare(JOINED_REFERENCE, JOINED_PREDICTION, merge="both")
    assert pairs(result) == [((1, 2), (5,)), ((3,), (6, 7))]
    assert merges(result) == [("prediction", 7, (3,)), ("reference", 2, (5,))]
    assert [merge.gain for merge in result.merges] == [0.1875, 0.125]
    assert (result.score, result.matched_score) == (1.0, 0.6875)
    assert compare(JOINED_REFERENCE, JOINED_PREDICTION).chance == 0.390625
    paper = compare(JOINED_REFERENCE, JOINED_PREDICTION, match="paper", merge="both")
    assert pairs(paper) == [((1,), (5,)), ((2,), (7,)), ((3,), (6,))]
    assert paper.merges == ()
    assert paper.score == 0.6875
    assert [note.kind for note in paper.notes] == ["apart"]


@pytest.mark.parametrize("match", RULES)
def test_over_segmentation_of_probabilities_by_absolute(match):
    result = compare(SOFT_REFERENCE, SOFT_PREDICTION, match=match, merge="both")
    assert pairs(result) == [((0,), (0, 1)), ((1,), (2,))]
    assert merges(result) == [("prediction", 1, (0,))]
    assert result.merges[0].gain == pytest.approx(0.15, abs=1e-12)
    assert result.score == pytest.approx(0.975, abs=1e-12)
    assert result.matched_score == pytest.approx(0.8, abs=1e-12)
    assert result.explained["reference"] == pytest.approx(0.99441341, abs=5e-9)
    assert result.explained["prediction"] == pytest.approx(0.98715084, abs=5e-9)
    if match == "overlap":  # the paper's rule finds other pairs in the table of chance
        assert compare(SOFT_REFERENCE, SOFT_PREDICTION).chance == pytest.approx(0.525)


@pytest.mark.parametrize("match", RULES)
def test_over_segmentation_of_probabilities_by_aitchison(match):
    result = compare(
        SOFT_REFERENCE, SOFT_PREDICTION, match=match, similarity="aitchison", merge="both"
    )
    assert pairs(result) == [((0,), (0, 1)), ((1,), (2,))]
    assert merges(result) == [("prediction", 0, (0,))]
    assert result.merges[0].gain == pytest.approx(0.32910048, abs=5e-9)
    assert result.score == pytest.approx(0.93101145, abs=5e-9)
    assert result.matched_score == pytest.approx(0.25, abs=1e-12)
