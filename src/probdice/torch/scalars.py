"""The numbers of a comparison by the names that papers use, as one flat dictionary."""

from collections.abc import Sequence
from contextlib import suppress
from math import isnan, nan

from probdice.comparison.result import Comparison, Group
from probdice.method.region_labels import Label
from probdice.method.scoring import NeedsImages
from probdice.method.sides import SIDES

__all__ = ["keys", "scalars"]

MEASURES = "accuracy", "dice", "iou"  # of a class
OF_CHANCE = "chance", "adjusted_score"
OF_LABELS = "explained_reference", "explained_prediction"


def keys(classes: Sequence[Label]) -> list[str]:
    """Every name that `scalars` gives, whatever the input is."""
    means = [f"mean_{measure}" for measure in MEASURES]
    of_classes = [f"{measure}_{label}" for measure in MEASURES for label in classes]
    return ["score", "matched_score", *OF_CHANCE, *OF_LABELS, "accuracy", *means, *of_classes]


def scalars(
    result: Comparison, classes: Sequence[Label], background: Label | None
) -> dict[str, float]:
    """The scores of a comparison, and the values of every class of the reference.

    A number that needs the pixels again is NaN. A class that does not occur, or whose group is
    faint (`Group.faint`), is NaN and left out of the means; an unmatched one is 0. The means leave
    out the background.
    """
    values = dict.fromkeys(keys(classes), nan)
    values |= {"score": result.score, "matched_score": result.matched_score}
    with suppress(NeedsImages):
        without = result.detach()
        values |= {"chance": without.chance, "adjusted_score": without.adjusted_score}
    if result.overlap.crisp:
        values |= {f"explained_{side}": result.explained[side] for side in SIDES}
    of_class = _classes(result)
    values["accuracy"] = _accuracy(result)
    for k, measure in enumerate(MEASURES):
        several = [of_class.get(label, (nan,) * 3)[k] for label in classes]
        kept = [
            value
            for label, value in zip(classes, several, strict=True)
            if label != background and not isnan(value)
        ]
        values[f"mean_{measure}"] = sum(kept) / len(kept) if kept else nan
        named = zip(classes, several, strict=True)
        values |= {f"{measure}_{label}": value for label, value in named}
    return values


def _accuracy(result: Comparison) -> float:
    """The share of pixels that agree; of probabilities, what corresponding regions share."""
    if result.similarity.separable:
        return result.score
    return sum(_shared(group) for group in result.groups) / result.pixels


def _classes(result: Comparison) -> dict[Label, tuple[float, float, float]]:
    """Accuracy, Dice and IoU of every class, which are those of its group."""
    values = {
        label: (_shared(group) / group.reference_volume, group.dice, group.jaccard)
        for group in result.groups
        if not group.faint
        for label in group.reference
    }
    if result.match == "labels":  # a class that was predicted though it does not occur
        values |= {label: (nan, 0.0, 0.0) for label in result.unmatched["prediction"]}
    return values


def _shared(group: Group) -> float:
    """What both sides of a group have in common, in pixels."""
    return group.dice * (group.reference_volume + group.prediction_volume) / 2
