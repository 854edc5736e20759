"""The similarities and the classical coefficient, compared with values worked by hand."""

import math

import numpy as np
import pytest

from probdice import (
    Absolute,
    Aitchison,
    ProbdiceError,
    Similarity,
    aitchison_distance,
    classical_dice,
    compare,
)
from probdice.method.similarity import SIMILARITIES, as_similarity


@pytest.mark.parametrize(
    ("first", "f1", "f2"),
    [(0.8, 0.9, 0.635560531405), (0.7, 0.8, 0.511628723387), (0.6, 0.7, 0.441118358899)],
)
def test_both_similarities_fall_as_the_prediction_moves_away(first, f1, f2):
    reference, prediction = [0.9, 0.1], [first, 1 - first]
    assert Absolute()(reference, prediction) == pytest.approx(f1, abs=1e-12)
    assert Aitchison()(reference, prediction) == pytest.approx(f2, abs=1e-12)


def test_three_regions():
    p, q = [0.2, 0.3, 0.5], [0.1, 0.6, 0.3]
    assert Absolute()(p, q) == pytest.approx(0.7, abs=1e-12)
    assert aitchison_distance(p, q) == pytest.approx(1.06530179, abs=5e-9)
    assert Aitchison()(p, q) == pytest.approx(0.48419074, abs=5e-9)


def test_a_region_absent_from_both_is_left_out():
    assert aitchison_distance([0.5, 0.5, 0], [0.4, 0.6, 0]) == pytest.approx(0.28670713, abs=5e-9)
    assert Aitchison()([0.5, 0.5, 0], [0.4, 0.6, 0]) == pytest.approx(0.77717763, abs=5e-9)


def test_a_region_absent_from_one_is_infinitely_far_unless_a_floor_raises_it():
    assert aitchison_distance([0.5, 0.5, 0], [0.4, 0.5, 0.1]) == math.inf
    assert Aitchison()([0.5, 0.5, 0], [0.4, 0.5, 0.1]) == 0
    softened = Aitchison(floor=0.01)
    assert softened([0.5, 0.5, 0], [0.4, 0.5, 0.1]) == pytest.approx(0.33585719, abs=5e-9)
    assert softened([1, 0], [0.9, 0.1]) == pytest.approx(0.37000384, abs=5e-9)


def test_certain_vectors_are_equal_or_infinitely_far():
    for f in (Absolute(), Aitchison()):
        assert f([0, 1, 0], [0, 1, 0]) == 1
        assert f([0, 1, 0], [1, 0, 0]) == 0


def test_a_disagreement_under_a_floor():
    assert Aitchison(floor=0.01)([1, 0, 0], [0, 0, 1]) == pytest.approx(
        1 / (1 + math.sqrt(2) * math.log(100))
    )


def test_absolute_is_zero_only_where_no_region_is_shared():
    assert Absolute()([0.5, 0.5, 0, 0], [0, 0, 0.3, 0.7]) == 0
    assert Absolute()([0.5, 0.5, 0, 0], [0, 0.01, 0.3, 0.69]) > 0


def test_absolute_is_linear_and_aitchison_falls_faster_near_equality():
    steps = np.linspace(0, 0.3, 7)
    p = np.stack([0.6 - steps, 0.4 + steps])
    reference = np.array([[0.6], [0.4]])
    f1, f2 = Absolute()(reference, p), Aitchison()(reference, p)
    assert np.diff(f1) == pytest.approx(np.full(6, -0.05))
    assert np.all(np.diff(f2) < 0)
    assert f2[0] - f2[1] > f2[1] - f2[2] > f2[2] - f2[3]


def test_two_regions_by_logits():
    p, q = 0.83, 0.12
    logit = math.log(p / (1 - p)) - math.log(q / (1 - q))
    assert aitchison_distance([p, 1 - p], [q, 1 - q]) == pytest.approx(abs(logit) / math.sqrt(2))


def test_distance_agrees_with_the_inner_product_and_norm_of_scikit_bio():
    # skbio.stats.composition.inner of scikit-bio 0.7.4; the norm is the root of inner(x, x).
    x, y = [0.1, 0.3, 0.4, 0.2], [0.2, 0.4, 0.2, 0.2]
    inner_xy, inner_xx, inner_yy = 0.21078524737545556, 1.0842074932562766, 0.360339760438651
    neutral = [0.25, 0.25, 0.25, 0.25]
    assert aitchison_distance(x, neutral) == pytest.approx(math.sqrt(inner_xx), abs=1e-12)
    assert aitchison_distance(y, neutral) == pytest.approx(math.sqrt(inner_yy), abs=1e-12)
    squared = inner_xx + inner_yy - 2 * inner_xy
    assert aitchison_distance(x, y) == pytest.approx(math.sqrt(squared), abs=1e-12)


def test_the_distance_ignores_scale_and_broadcasts():
    p = np.array([[0.2, 0.7], [0.3, 0.1], [0.5, 0.2]])
    q = np.array([[0.1], [0.6], [0.3]])
    assert aitchison_distance(p * 7, q / 3) == pytest.approx(aitchison_distance(p, q), abs=1e-12)
    assert aitchison_distance(p.T, q.T, axis=1) == pytest.approx(aitchison_distance(p, q))


@pytest.mark.parametrize("floor", [-0.1, 0.5, math.nan])
def test_a_floor_out_of_range_is_rejected(floor):
    with pytest.raises(ProbdiceError, match=r"at least 0 and below 0\.5"):
        Aitchison(floor=floor)


@pytest.mark.parametrize(
    ("p", "q", "message"),
    [
        ([0.5, -0.5], [0.5, 0.5], "p must contain only finite, non-negative numbers"),
        ([0.5, 0.5], [math.nan, 0.5], "q must contain only finite, non-negative numbers"),
        ([0.5, 0.5], [0.2, 0.3, 0.5], "the same number of regions along axis 0, found 2 and 3"),
        (np.ones((2, 3)), np.ones((2, 4)), r"region axis is removed, found \(3,\) and \(4,\)"),
        (0.5, 0.5, "p has no axis 0"),
        (["a"], [0.5], "p must be an array of real numbers"),
    ],
)
def test_invalid_vectors_are_rejected(p, q, message):
    with pytest.raises(ProbdiceError, match=message):
        aitchison_distance(p, q)


def test_classical_dice():
    x, y = np.array([1, 0, 1, 0], bool), np.array([1, 1, 1, 0], bool)
    assert classical_dice(x, y) == 0.8
    assert classical_dice(x, x) == 1
    assert classical_dice(x, ~x) == 0
    assert math.isnan(classical_dice(np.zeros(3, bool), np.zeros(3, bool)))


def test_classical_dice_needs_masks_of_one_shape():
    with pytest.raises(ProbdiceError, match="reference must be a boolean mask, found int64"):
        classical_dice([1, 0], [True, False])
    with pytest.raises(ProbdiceError, match=r"\(2,\) but prediction has shape \(3,\)"):
        classical_dice([True, False], [True, False, True])


@pytest.mark.parametrize("f", [Absolute(), Aitchison(), Aitchison(0.01), aitchison_distance])
def test_one_vector_is_compared_with_an_image_along_the_axis_of_the_regions(f):
    """(3,) against (3, 3) would broadcast along the last axis in NumPy."""
    vector = np.array([0.2, 0.3, 0.5])
    image = np.random.default_rng(0).dirichlet(np.ones(3), 3).T
    expected = [float(f(vector, image[:, k])) for k in range(3)]
    assert f(vector, image) == pytest.approx(expected)
    assert f(image, vector) == pytest.approx(expected)
    assert f(vector, image.T, axis=-1) == pytest.approx(expected)
    volume = np.stack([image, image[:, ::-1]], axis=-1)
    assert f(vector, volume).shape == (3, 2)
    assert f(vector, volume)[:, 0] == pytest.approx(expected)


def test_a_disagreement_costs_less_under_a_floor():
    assert Absolute().disagreement == Aitchison().disagreement == 1
    assert Aitchison(0.01).disagreement == pytest.approx(1 - 1 / (1 + math.sqrt(2) * math.log(100)))


def test_similarities_by_name():
    assert as_similarity("absolute") == Absolute()
    assert as_similarity(Aitchison(0.1)) == Aitchison(0.1)
    assert Aitchison(np.float32(0.25)) == Aitchison(0.25)
    for wrong in ("dice", None, np.array(["absolute", "x"]), np.array([1.0, 2.0]), Absolute):
        with pytest.raises(ProbdiceError, match="similarity must be 'absolute', 'aitchison'"):
            as_similarity(wrong)
    with pytest.raises(ProbdiceError, match="floor must be a number, found 'low'"):
        Aitchison("low")


def test_a_similarity_that_is_defined_again_replaces_the_first():
    soft = [[0.9, 0.2], [0.1, 0.8]], [[0.8, 0.3], [0.2, 0.7]]

    def constant(value):
        class Constant(Similarity):
            name = "constant example"

            def __call__(self, p, q, *, axis=0):
                return np.where((p == q).all(axis=axis), 1.0, value)

        return compare(*soft, similarity="constant example").score

    try:
        assert (constant(0.25), constant(0.5)) == (0.25, 0.5)
    finally:
        del SIMILARITIES["constant example"]
