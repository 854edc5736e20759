"""The numbers of a comparison as one flat dictionary, with the names that papers use."""

from collections.abc import Sequence
from contextlib import suppress
from math import isnan, nan

from probdice.comparison.result import Comparison, Group
from probdice.method.region_labels import Label
from probdice.method.scoring import NeedsImages
from probdice.method.sides import SIDES

__all__ = ["keys", "scalars"]

MEASURES = "accuracy", "dice", "iou"  # per class
OF_CHANCE = "chance", "adjusted_score"
OF_LABELS = "explained_reference", "explained_prediction"


def keys(classes: Sequence[Label]) -> list[str]:
    """All keys of `scalars`, which are the same for every input."""
    means = [f"mean_{measure}" for measure in MEASURES]
    of_classes = [f"{measure}_{label}" for measure in MEASURES for label in classes]
    return ["score", "matched_score", *OF_CHANCE, *OF_LABELS, "accuracy", *means, *of_classes]


def scalars(
    result: Comparison, classes: Sequence[Label], background: Label | None
) -> dict[str, float]:
    """The scores of a comparison, and the values of every class of the reference.

    A number that needs another pass over the pixels is NaN. A class that does not occur, or whose
    group is faint (`Group.faint`), is NaN and left out of the means. An unmatched class is 0. The
    means leave out the background.
    """
    values = dict.fromkeys(keys(classes), nan)
    values |= {"score": result.score, "matched_score": result.matched_score}
    with suppress(NeedsImages):
        detached = result.detach()
        values |= {"chance": detached.chance, "adjusted_score": detached.adjusted_score}
    if result.overlap.crisp:
        values |= {f"explained_{side}": result.explained[side] for side in SIDES}
    of_class = _classes(result)
    values["accuracy"] = _accuracy(result)
    for k, measure in enumerate(MEASURES):
        several = [of_class.get(label, (nan,) * 3)[k] for label in classes]
        averaged = [
            value
            for label, value in zip(classes, several, strict=True)
            if label != background and not isnan(value)
        ]
        values[f"mean_{measure}"] = sum(averaged) / len(averaged) if averaged else nan
        named = zip(classes, several, strict=True)
        values |= {f"{measure}_{label}": value for label, value in named}
    return values


def _accuracy(result: Comparison) -> float:
    """The share of pixels that agree; for probabilities, Σ min(p, q) / pixels."""
    if result.similarity.separable:
        return result.score
    return sum(_shared(group) for group in result.groups) / result.pixels


def _classes(result: Comparison) -> dict[Label, tuple[float, float, float]]:
    """Accuracy, Dice and IoU of every class, taken from its group."""
    values = {
        label: (_shared(group) / group.reference_volume, group.dice, group.jaccard)
        for group in result.groups
        if not group.faint
        for label in group.reference
    }
    if result.match == "labels":  # predicted classes that do not occur in the target
        values |= {label: (nan, 0.0, 0.0) for label in result.unmatched["prediction"]}
    return values


def _shared(group: Group) -> float:
    """The intersection of both sides of a group, in pixels."""
    return group.dice * (group.reference_volume + group.prediction_volume) / 2
