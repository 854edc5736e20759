"""How regions come to correspond: the weight of a pair, and what merging does to a region."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probdice.errors import InputError
from probdice.paper.figures import score
from probdice.result import Comparison
from probdice.segmentation import Label, Segmentation, as_segmentation
from probdice.similarity import Similarity, as_similarity
from probdice.synthesis import probabilities

__all__ = ["MergeStep", "Merging", "PairWeight", "auxiliary", "merging", "pair_weight"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PairWeight:
    """How the weight of a pair of regions comes about.

    Attributes
    ----------
    reference, prediction : Segmentation
        The two sides.
    pair : tuple
        Labels of the region of the reference and that of the prediction.
    auxiliaries : tuple of ndarray
        Of each, the binary segmentation: the region, and the sum of all others.
    f : ndarray
        Similarity of the two at every pixel.
    weight : float
        1 − the mean of `f`.
    weights : ndarray
        The weights of all pairs, as `compare` finds them.
    matched : tuple
        The pairs that the minimum-weight matching chose.
    """

    reference: Segmentation
    prediction: Segmentation
    pair: tuple[Label, Label]
    auxiliaries: tuple[Floats, Floats]
    f: Floats
    weight: float
    weights: Floats
    matched: tuple[tuple[Label, Label], ...]


def pair_weight(
    reference: Segmentation,
    prediction: Segmentation,
    pair: tuple[Label, Label],
    *,
    similarity: str | Similarity = "absolute",
) -> PairWeight:
    """The two auxiliary segmentations of a pair of regions, their f and the weight.

    Examples
    --------
    >>> from probdice import Segmentation
    >>> from probdice.paper import pair_weight
    >>> reference = Segmentation.from_labels([1, 1, 1, 1, 2, 2, 2, 2])
    >>> prediction = Segmentation.from_labels([7, 7, 5, 5, 5, 9, 9, 9])
    >>> pair_weight(reference, prediction, (1, 7)).weight
    0.25
    """
    auxiliaries = auxiliary(reference, [pair[0]]), auxiliary(prediction, [pair[1]])
    f = as_similarity(similarity)(*auxiliaries)
    result = score(reference, prediction, similarity, match=True)
    matched = tuple(
        (group.reference[0], group.prediction[0])
        for group in result.groups
        if group.reference and group.prediction
    )
    weight = 1 - float(f.mean())
    return PairWeight(reference, prediction, pair, auxiliaries, f, weight, result.weights, matched)


@dataclass(frozen=True)
class MergeStep:
    """One spare region that joined a group, and what that did to the group."""

    region: Label
    into: Label
    similarity_before: float
    similarity_after: float
    dice_before: float
    dice_after: float


@dataclass(frozen=True, eq=False)
class Merging:
    """A correspondence and the merges that followed it."""

    reference: Segmentation
    prediction: Segmentation
    result: Comparison
    matched: tuple[tuple[Label, Label], ...]
    steps: tuple[MergeStep, ...]


def merging(
    reference: Segmentation,
    prediction: Segmentation,
    *,
    similarity: str | Similarity = "absolute",
) -> Merging:
    """A correspondence with over-segmentation merged, and Dice before and after each merge.

    The reference must not have more regions than the prediction.

    Examples
    --------
    >>> from probdice import Segmentation
    >>> from probdice.paper import merging
    >>> reference = Segmentation.from_labels([1, 1, 1, 1, 2, 2, 2, 2])
    >>> prediction = Segmentation.from_labels([7, 7, 5, 5, 5, 9, 9, 9])
    >>> step = merging(reference, prediction).steps[0]
    >>> step.region, step.into, step.similarity_before, step.similarity_after
    (5, 1, 0.75, 0.875)
    """
    result = score(reference, prediction, similarity, match=True, merge="prediction")
    if len(result.reference_labels) > len(result.prediction_labels):
        raise InputError("reference has more regions than prediction: exchange the two")
    merged = {merge.region for merge in result.merges}
    members = {
        group.reference[0]: [label for label in group.prediction if label not in merged]
        for group in result.groups
    }
    matched = tuple((target, labels[0]) for target, labels in members.items())
    steps = []
    for merge in result.merges:
        target = merge.into[0]
        wanted = auxiliary(reference, [target])
        before = auxiliary(prediction, members[target])
        members[target].append(merge.region)
        after = auxiliary(prediction, members[target])
        f = as_similarity(similarity)
        steps.append(
            MergeStep(
                merge.region,
                target,
                float(f(before, wanted).mean()),
                float(f(after, wanted).mean()),
                _fuzzy_dice(before[0], wanted[0]),
                _fuzzy_dice(after[0], wanted[0]),
            )
        )
    return Merging(reference, prediction, result, matched, tuple(steps))


def auxiliary(segmentation: Segmentation, labels: Sequence[Label]) -> Floats:
    """The binary segmentation of some regions together against the sum of all others."""
    values, regions = probabilities(as_segmentation(segmentation))
    chosen = np.isin(np.arange(len(regions)), [regions.index(label) for label in labels])
    values = values.astype(np.float64)
    return np.stack([values[chosen].sum(axis=0), values[~chosen].sum(axis=0)])


def _fuzzy_dice(p: Floats, q: Floats) -> float:
    total = float(p.sum() + q.sum())
    return 2 * float(np.minimum(p, q).sum()) / total if total else float("nan")
