"""The slow, obvious twin of the library, in float64 and plain loops, written from METHOD.md."""

from itertools import permutations

import numpy as np


def one_hot(labels, values=None):
    """A label map as probabilities, one row per ascending label."""
    labels = np.asarray(labels)
    values = np.unique(labels) if values is None else values
    return np.stack([(labels == value).astype(np.float64) for value in values])


def absolute(p, q):
    """f₁ of two vectors."""
    return min(max(1 - sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2, 0), 1)


def aitchison(p, q, floor=0.0):
    """f₂ of two vectors, with the rules for zeros."""
    shared = [(a, b) for a, b in zip(p, q, strict=True) if not (a == 0 and b == 0)]
    if floor == 0 and any(a == 0 or b == 0 for a, b in shared):
        return 0.0
    p, q = np.array([(max(a, floor), max(b, floor)) for a, b in shared]).reshape(-1, 2).T
    clr_p, clr_q = np.log(p) - np.log(p).mean(), np.log(q) - np.log(q).mean()
    return 1 / (1 + np.sqrt(((clr_p - clr_q) ** 2).sum()))


def f_of(similarity, floor=0.0):
    """The similarity of that name."""
    return absolute if similarity == "absolute" else lambda p, q: aitchison(p, q, floor)


def score(p, q, f):
    """D: the mean of f over the pixels."""
    return float(np.mean([f(a, b) for a, b in zip(p.T, q.T, strict=True)]))


def auxiliary(p, regions):
    """The binary segmentation of some regions and the sum of all others."""
    others = [i for i in range(len(p)) if i not in regions]
    return np.stack([p[list(regions)].sum(axis=0), p[others].sum(axis=0)])


def weights(p, q, f):
    """1 − D of every pair of auxiliary segmentations."""
    return np.array(
        [
            [1 - score(auxiliary(p, [i]), auxiliary(q, [j]), f) for j in range(len(q))]
            for i in range(len(p))
        ]
    )


def best_permutation(p, q):
    """The best absolute score over all ways to match equally many regions."""
    return max(score(p, q[list(order)], absolute) for order in permutations(range(len(q))))
