"""The share of one segmentation that the other determines."""

import math

import numpy as np
import pytest
from oracles import explained, goodman_kruskal, one_hot

from probdice import Aitchison, Segmentation, compare


def shares(result):
    return result.explained["reference"], result.explained["prediction"]


def soft(regions, pixels, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).dirichlet(np.ones(regions), pixels).T.astype(dtype)


def test_worked_by_hand():
    # Of the reference, Gini is 1/2; within 5 it is 4/9, within 7 and 9 it is 0.
    result = compare([1, 1, 1, 1, 2, 2, 2, 2], [7, 7, 5, 5, 5, 9, 9, 9])
    assert shares(result) == pytest.approx((1 - 3 / 8 * 4 / 9 / (1 / 2), 1 / 3))


def test_a_refinement_explains_everything_and_is_explained_in_part():
    coarse, fine = np.repeat([0, 1], 50), np.repeat(np.arange(10), 10)
    assert compare(coarse, fine).explained["reference"] == 1
    assert compare(fine, coarse).explained["prediction"] == 1
    assert compare(coarse, fine).explained["prediction"] == pytest.approx(1 / 9)


@pytest.mark.parametrize(("dtype", "amplitude"), [("f4", 1e-6), ("f8", 1e-6), ("f8", 1e-8)])
def test_a_nearly_certain_region_explains_no_rounding_errors(dtype, amplitude):
    """Region 1 has probability 2, 2, 0, 0 times the amplitude where the reference is 1, 0, 0, 0.

    The squared correlation of (2, 2, 0, 0) with (1, 0, 0, 0) is 1/3.
    """
    foreground = amplitude * np.tile([2.0, 2, 0, 0], 50_000)
    prediction = np.stack([1 - foreground, foreground]).astype(dtype)
    result = compare(np.tile([1, 0, 0, 0], 50_000), prediction)
    assert result.explained["reference"] == pytest.approx(1 / 3, abs=1e-6)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_least_squares_of_probabilities(dtype):
    p, q = soft(3, 500, 0, dtype), soft(5, 500, 1, dtype)
    q[:3] = 0.5 * q[:3] + 0.5 * p * q[:3].sum(axis=0)
    result = compare(p, q)
    # Except for rounding, the other regions determine the last region. Rounding explains nothing.
    p, q = p.astype("f8"), q.astype("f8")
    expected = explained(p, q[:-1]), explained(q, p[:-1])
    assert shares(result) == pytest.approx(expected, abs=1e-6)
    labels = p.argmax(0)
    expected = explained(one_hot(labels), q[:-1]), explained(q, one_hot(labels))
    assert shares(compare(labels, q.astype(dtype))) == pytest.approx(expected, abs=1e-6)


def test_masked_and_ignored_pixels_do_not_count():
    p, q = soft(3, 400), soft(4, 400, 1)
    mask = np.arange(400) % 3 > 0
    cut = shares(compare(p[:, mask], q[:, mask]))
    assert shares(compare(p, q, mask=mask)) == pytest.approx(cut, abs=1e-9)
    labels = np.where(mask, p.argmax(0), 255)
    reference = Segmentation.from_labels(labels, ignore=255)
    expected = shares(compare(labels[mask], q[:, mask]))
    assert shares(compare(reference, q)) == pytest.approx(expected, abs=1e-9)


def test_explained_does_not_depend_on_similarity_matching_or_confidence():
    p, q = soft(3, 300), soft(4, 300, 1)
    before = shares(compare(p, q))
    for options in ({"similarity": Aitchison(0.01)}, {"match": "paper"}, {"merge": "both"}):
        assert shares(compare(p, q, **options)) == pytest.approx(before, abs=1e-12)
    labels = q.argmax(0)
    sure, unsure = (0.9 * one_hot(labels) + 0.025, 0.4 * one_hot(labels) + 0.15)
    assert shares(compare(p, sure)) == pytest.approx(shares(compare(p, unsure)), abs=1e-9)


def test_a_constant_side_has_nothing_to_explain_and_explains_nothing():
    for constant in (np.full(300, 4), np.full((3, 300), 1 / 3), np.full((3, 300), 1 / 3, "f4")):
        result = compare(constant, soft(3, 300))
        assert math.isnan(result.explained["reference"])
        assert result.explained["prediction"] == pytest.approx(0, abs=1e-6)


def test_independent_pixels_explain_almost_nothing():
    rng = np.random.default_rng(0)
    result = compare(rng.integers(0, 4, 50_000), rng.integers(0, 5, 50_000))
    assert all(0 <= share < 1e-3 for share in shares(result))


def test_label_maps_of_many_blocks(monkeypatch):
    monkeypatch.setattr("probdice.engine.blocks.MIN_BLOCK_PIXELS", 7)
    monkeypatch.setattr("probdice.engine.blocks.BLOCK_BYTES", 1)
    rng = np.random.default_rng(1)
    p, q = rng.integers(0, 4, 200), rng.integers(0, 5, 200)
    expected = goodman_kruskal(p, q), goodman_kruskal(q, p)
    assert shares(compare(p, q)) == pytest.approx(expected)
    assert shares(compare(p, one_hot(q))) == pytest.approx(expected, abs=1e-9)
    assert shares(compare(one_hot(p), q)) == pytest.approx(expected, abs=1e-9)
