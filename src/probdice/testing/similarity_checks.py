"""Check the properties that every similarity must have."""

import json
import pickle
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from probdice.comparison.comparing import compare
from probdice.method.similarity import Similarity, problem_with_parameters, similarity_from_dict

__all__ = ["check_similarity"]

Floats = NDArray[np.float64]
VECTORS = 500
EXACT_TOLERANCE = 1e-12
EQUALITY_TOLERANCE = 1e-9  # largest difference between two computations of the same number


def check_similarity(similarity: Similarity) -> None:
    """Check that a similarity has the properties that matching, merging and scoring require.

    The checks use random probability vectors with two to six entries, one per region. Some entries
    are 0. A similarity f must have these properties:

    - f is between 0 and 1, is symmetric, and is 1 for equal vectors.
    - Neither the order of the regions nor a region that is 0 in both vectors changes f.
    - For two different certain vectors (one entry is 1, and the others are 0), 1 − f equals
      `disagreement`, which is above 0.
    - For two regions and positive p and q, the loss 1 − f between (p, 1 − p) and (q, 1 − q) is at
      most the sum of the losses between each of these vectors and (0, 1), in which the first region
      is empty.
    - The argument `axis` selects the axis of the regions.
    - The score that `compare` returns is the mean of f, and 1 for equal segmentations.
    - The parameters of the similarity are the fields of a frozen dataclass.
    - The similarity can be restored from JSON and from a pickle.

    Parameters
    ----------
    similarity : Similarity
        The similarity to check.

    Raises
    ------
    AssertionError
        If a check fails. The message contains the property and, if a pair of vectors violates it,
        these vectors.

    Examples
    --------
    >>> import probdice
    >>> from probdice.testing import check_similarity
    >>> check_similarity(probdice.Aitchison(floor=1e-3))
    """
    problem = problem_with_parameters(similarity)
    if problem:
        raise AssertionError(problem)
    rng = np.random.default_rng(0)
    for regions in range(2, 7):
        p, q = _vectors(rng, regions), _vectors(rng, regions)
        _check_values(similarity, p, q)
        _check_invariances(similarity, p, q, rng.permutation(regions))
        _check_certain_vectors(similarity, regions)
    p, q = _vectors(rng, 2), _vectors(rng, 2)
    empty = np.broadcast_to([[0.0], [1.0]], p.shape)
    loss_sum = _loss(similarity, p, empty) + _loss(similarity, empty, q)
    both_present = (p[0] > 0) & (q[0] > 0)
    _require("1 − f is at most the sum of the losses against an empty region", p, q,
             (_loss(similarity, p, q) <= loss_sum + EQUALITY_TOLERANCE)
             | ~both_present)  # fmt: skip
    _check_comparison(similarity, rng)
    content = json.loads(json.dumps(similarity.to_dict()))
    if similarity_from_dict(content) != similarity:
        raise AssertionError(f"{similarity!r} cannot be restored from {content}")
    if pickle.loads(pickle.dumps(similarity)) != similarity:
        raise AssertionError(f"{similarity!r} changes when it is pickled and unpickled")


def _vectors(rng: np.random.Generator, regions: int) -> Floats:
    """Return random probability vectors as columns. Every third vector has an entry of 0."""
    vectors = rng.dirichlet(np.full(regions, 0.7), VECTORS).T
    vectors = np.maximum(vectors, 1e-6)
    vectors[rng.integers(regions), ::3] = 0
    return np.asarray(vectors / vectors.sum(axis=0))


def _loss(similarity: Similarity, p: Floats, q: Floats) -> Floats:
    return 1 - np.asarray(similarity(p, q, axis=0), np.float64)


def _check_values(similarity: Similarity, p: Floats, q: Floats) -> None:
    f = np.asarray(similarity(p, q, axis=0))
    if f.shape != p.shape[1:]:
        raise AssertionError(
            f"f of vectors of shape {p.shape} has shape {f.shape}, expected {p.shape[1:]}"
        )
    _require("f lies between 0 and 1", p, q, (f >= 0) & (f <= 1))
    _require("f of equal vectors is 1", p, p, np.abs(_loss(similarity, p, p)) <= EXACT_TOLERANCE)
    _require("f is symmetric", p, q, np.abs(f - similarity(q, p, axis=0)) <= EXACT_TOLERANCE)
    along_last = np.asarray(similarity(p.T, q.T, axis=-1))
    _require("f respects the argument axis", p, q, np.abs(f - along_last) <= EXACT_TOLERANCE)


def _check_invariances(
    similarity: Similarity, p: Floats, q: Floats, order: NDArray[np.int64]
) -> None:
    f = np.asarray(similarity(p, q, axis=0))
    shuffled_f = np.asarray(similarity(p[order], q[order], axis=0))
    _require(
        "f does not depend on the order of regions",
        p,
        q,
        np.abs(f - shuffled_f) <= EQUALITY_TOLERANCE,
    )
    padded_p, padded_q = (np.insert(side, 1, 0.0, axis=0) for side in (p, q))
    padded_f = np.asarray(similarity(padded_p, padded_q, axis=0))
    _require(
        "a region that is 0 on both sides does not change f",
        p,
        q,
        np.abs(f - padded_f) <= EQUALITY_TOLERANCE,
    )


def _check_certain_vectors(similarity: Similarity, regions: int) -> None:
    certain = np.eye(regions)
    expected = similarity.disagreement
    if not 0 < expected <= 1:
        raise AssertionError(f"disagreement must be above 0 and at most 1, found {expected}")
    for i, j in combinations(range(regions), 2):
        p, q = certain[:, [i]], certain[:, [j]]
        is_expected = np.abs(_loss(similarity, p, q) - expected) <= EQUALITY_TOLERANCE
        _require(f"different certain vectors have 1 − f = {expected:g}", p, q, is_expected)


def _check_comparison(similarity: Similarity, rng: np.random.Generator) -> None:
    p, q = _vectors(rng, 3), _vectors(rng, 3)
    expected = float(np.mean(np.asarray(similarity(p, q, axis=0))))
    for workers in (1, 2):
        score = compare(p, q, similarity=similarity, match="labels", workers=workers).score
        if abs(score - expected) > EQUALITY_TOLERANCE:
            raise AssertionError(f"compare returns {score}, but the mean of f is {expected}")
    if compare(p, p, similarity=similarity).score < 1 - EQUALITY_TOLERANCE:
        raise AssertionError("the score of a segmentation compared with itself is below 1")


def _require(law: str, p: Floats, q: Floats, holds: NDArray[np.bool_]) -> None:
    """Raise an error with the first pair of vectors that violates a property."""
    if not np.all(holds):
        k = int(np.argmin(holds))
        raise AssertionError(
            f"property violated: {law}. p = {p[:, k].tolist()}, q = {q[:, k].tolist()}"
        )
