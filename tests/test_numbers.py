"""Accuracy of scores, compared with mpmath and exact sums."""

import math

import mpmath
import numpy as np
import pytest

from probdice import Aitchison, Segmentation, compare

TOLERANCE = {
    "absolute": {"f2": 1e-6, "f4": 1e-6, "f8": 1e-12},
    "aitchison": {"f4": 5e-6, "f8": 1e-12},
}


def exact_score(p, q, similarity, floor=0):
    """D with 60 digits, computed from the stored values."""
    mpmath.mp.dps = 60
    total = mpmath.mpf(0)
    for a, b in zip(p.T.tolist(), q.T.tolist(), strict=True):
        a, b = [mpmath.mpf(x) for x in a], [mpmath.mpf(x) for x in b]
        if similarity == "absolute":
            total += 1 - sum(abs(x - y) for x, y in zip(a, b, strict=True)) / 2
            continue
        shared = [(x, y) for x, y in zip(a, b, strict=True) if x or y]
        if not floor and any(not x or not y for x, y in shared):
            continue
        logs = [mpmath.log(max(x, floor)) - mpmath.log(max(y, floor)) for x, y in shared]
        mean = sum(logs) / len(logs)
        total += 1 / (1 + mpmath.sqrt(sum((log - mean) ** 2 for log in logs)))
    return float(total / p.shape[1])


def extreme(rng, pixels, dtype):
    """Probabilities down to 1e-30 beside ones within 1e-9 of 1."""
    small = 10.0 ** rng.uniform(-30, -9, (2, pixels))
    p = np.concatenate([small, 1 - small.sum(0, keepdims=True)])
    return rng.permuted(p, axis=0).astype(dtype)


@pytest.mark.parametrize("similarity", ["absolute", "aitchison"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_extreme_probabilities(similarity, dtype):
    rng = np.random.default_rng(0)
    p, q = extreme(rng, 300, dtype), extreme(rng, 300, dtype)
    q[:, :100] = p[:, :100]
    nearly = p[:, 100:200]
    q[:, 100:200] = np.where(nearly < 0.5, nearly * nearly.dtype.type(1.01), nearly)
    result = compare(p, q, similarity=similarity, match="labels")
    expected = exact_score(p, q, similarity)
    assert result.score == pytest.approx(expected, abs=TOLERANCE[similarity][dtype])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("floor", [0.0, 1e-3])
def test_pair_weights_of_extreme_probabilities(dtype, floor):
    """The second component is a sum, because 1 − p loses the digits of small probabilities."""
    rng = np.random.default_rng(1)
    p, q = extreme(rng, 100, dtype), extreme(rng, 100, dtype)
    result = compare(p, q, similarity=Aitchison(floor))
    for i in range(3):
        for j in range(3):
            a = np.stack([p[i], np.delete(p, i, 0).astype("f8").sum(0).astype(dtype)])
            b = np.stack([q[j], np.delete(q, j, 0).astype("f8").sum(0).astype(dtype)])
            expected = 1 - exact_score(a, b, "aitchison", floor)
            assert result.weights[i, j] == pytest.approx(
                expected, abs=TOLERANCE["aitchison"][dtype]
            )


@pytest.mark.parametrize("value", [0.1, 0.3, 0.7, 1 / 3])
def test_long_sums_of_one_constant_do_not_drift(value):
    """The worst case for sums in float32: every rounding goes the same way."""
    pixels = 3_000_000
    p = np.empty((2, pixels), np.float32)
    p[0], p[1] = value, 1 - value
    q = np.empty((2, pixels), np.float32)
    q[0], q[1] = 0.05, 0.95
    expected = 1 - (abs(float(p[0, 0]) - float(q[0, 0])) + abs(float(p[1, 0]) - float(q[1, 0]))) / 2
    assert compare(p, q, match="labels").score == pytest.approx(expected, abs=5e-7)
    expected = exact_score(p[:, :1], q[:, :1], "aitchison")
    result = compare(p, q, match="labels", similarity="aitchison")
    assert result.score == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize("similarity", ["absolute", "aitchison"])
def test_accuracy_does_not_depend_on_size(similarity):
    """The same hundred pixels, over and over."""
    rng = np.random.default_rng(2)
    p, q = rng.dirichlet(np.ones(3), 100).T, rng.dirichlet(np.ones(3), 100).T
    expected = exact_score(p, q, similarity)
    for repeats in (1, 20_001):
        large = (np.tile(side, repeats) for side in (p, q))
        score = compare(*large, similarity=similarity, match="labels").score
        assert score == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("similarity", ["absolute", "aitchison"])
def test_all_types_agree_with_the_definition(dtype, similarity):
    rng = np.random.default_rng(3)
    p, q = (rng.multinomial(512, rng.dirichlet(np.ones(4), 5000)).T / 512 + 0.0 for _ in range(2))
    p, q = p.astype(dtype), q.astype(dtype)
    from probdice.method.similarity import as_similarity

    expected = as_similarity(similarity)(p.astype("f8"), q.astype("f8")).mean()
    score = compare(p, q, similarity=similarity, match="labels").score
    assert score == pytest.approx(expected, abs={"f8": 1e-12}.get(dtype, 1e-6))


def test_subnormal_probabilities_keep_their_logarithm():
    tiny = np.float32(1e-42)
    p = np.array([[tiny], [1.0]], np.float32)
    q = np.array([[tiny * 2], [1.0]], np.float32)
    expected = exact_score(p, q, "aitchison")
    score = compare(p, q, similarity="aitchison", match="labels").score
    assert score == pytest.approx(expected, abs=1e-5)


def test_logits_of_float16_give_the_score_of_float64():
    logits = np.array([[8.0, -8.0, 0.5], [-8.0, 8.0, 0.0]], np.float16)
    p = np.exp(logits.astype("f8"))
    p /= p.sum(0)
    score = compare(
        Segmentation.from_logits(logits), p, similarity="aitchison", match="labels"
    ).score
    assert score == pytest.approx(1, abs=1e-5)
    assert math.isclose(
        compare(Segmentation.from_logits(logits), p, match="labels").score, 1, abs_tol=1e-6
    )
