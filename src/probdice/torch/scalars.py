"""The measures of a comparison as one flat dictionary, with the names used in publications."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from fractions import Fraction
from math import floor, isnan, nan

from probdice.comparison.result import Comparison
from probdice.method.region_labels import Label
from probdice.method.scoring import NeedsImages
from probdice.method.sides import SIDES

__all__ = ["in_steps", "keys", "mean_of_steps", "scalars"]

MEASURES = "accuracy", "dice", "iou"  # per class
OF_CHANCE = "chance", "adjusted_score"
OF_FOREGROUND = "foreground_dice", "pooled_dice", "foreground_score"  # with a background
OF_FOREGROUND_CLASSES = "foreground_accuracy", "foreground_iou"
OF_LABELS = "explained_reference", "explained_prediction"
STEP = 2**30  # values are summed as integer multiples of 2⁻⁶⁰; their order is irrelevant


def keys(classes: Sequence[Label], *, foreground: bool) -> list[str]:
    """Return the keys of the result of `scalars`, which are the same for every input.

    `foreground` adds the measures that require a background.
    """
    means = [f"mean_{measure}" for measure in MEASURES]
    foreground_keys = [*OF_FOREGROUND, "adjusted_foreground_score", *OF_FOREGROUND_CLASSES]
    class_keys = [f"{measure}_{label}" for measure in MEASURES for label in classes]
    scores = ["score", "matched_score", *OF_CHANCE, *OF_LABELS, "accuracy"]
    return [*scores, *means, *(foreground_keys if foreground else ()), *class_keys]


def scalars(result: Comparison, classes: Sequence[Label]) -> dict[str, float]:
    """Return the scores of a comparison, and the values of every class of the reference.

    A measure that requires another pass over the pixels is NaN. The values of a class that does not
    occur in the reference, or whose group is faint (`Group.faint`), are NaN and excluded from the
    means. The values of an unmatched class are 0. If regions are matched by label, a class that
    occurs only in the prediction has Dice and IoU 0. Foreground measures require a background.
    """
    values = dict.fromkeys(keys(classes, foreground=result.background is not None), nan)
    values |= {"score": result.score, "matched_score": result.matched_score}
    with suppress(NeedsImages):
        detached_result = result.detach()
        values |= {
            "chance": detached_result.chance,
            "adjusted_score": detached_result.adjusted_score,
        }
    if result.overlap.crisp:
        values |= {f"explained_{side}": result.explained[side] for side in SIDES}
    values_by_class = _classes(result)
    values["accuracy"] = _accuracy(result)
    for k, measure in enumerate(MEASURES):
        class_values = {label: values_by_class.get(label, (nan,) * 3)[k] for label in classes}
        values[f"mean_{measure}"] = _mean(class_values.values())
        values |= {f"{measure}_{label}": value for label, value in class_values.items()}
    return values | _foreground(result, classes, values_by_class)


def in_steps(value: float) -> tuple[int, int]:
    """Split a number into integer multiples of 2⁻³⁰ and 2⁻⁶⁰, which can be added exactly."""
    whole_steps = floor(value * STEP)
    return whole_steps, round((value * STEP - whole_steps) * STEP)


def mean_of_steps(total: Sequence[int], count: int) -> float:
    """Return the mean of `count` numbers from the sum of their steps; NaN if `count` is 0."""
    return float(Fraction(total[0] * STEP + total[1], STEP * STEP * count)) if count else nan


def _foreground(
    result: Comparison,
    classes: Sequence[Label],
    values_by_class: dict[Label, tuple[float, float, float]],
) -> dict[str, float]:
    """Return the foreground measures by name; an empty dictionary without a background."""
    if result.background is None:
        return {}
    values = {name: getattr(result, name) for name in OF_FOREGROUND}
    with suppress(NeedsImages):
        name = "adjusted_foreground_score"
        values[name] = getattr(result.detach(), name)
    background_region = result.background_regions.reference
    background = (
        None if background_region is None else result.overlap.reference.label(background_region)
    )
    foreground_values = [
        values_by_class[label]
        for label in classes
        if label in values_by_class and label != background
    ]
    for name, k in zip(OF_FOREGROUND_CLASSES, (0, 2), strict=True):
        values[name] = _mean(entry[k] for entry in foreground_values)
    return values


def _mean(values: Iterable[float]) -> float:
    """Return the mean of the defined values; NaN if there are none."""
    known_values = [value for value in values if not isnan(value)]
    return sum(known_values) / len(known_values) if known_values else nan


def _accuracy(result: Comparison) -> float:
    """Return the share of agreeing pixels; for probabilities, Σ min(p, q) / pixels."""
    if result.similarity.separable:
        return result.score
    return sum(group.common_volume for group in result.groups) / result.pixels


def _classes(result: Comparison) -> dict[Label, tuple[float, float, float]]:
    """Return the accuracy, Dice and IoU of every class, taken from the group of the class."""
    values: dict[Label, tuple[float, float, float]] = {}
    if result.match == "labels":  # predicted classes that do not occur in the target
        values |= {label: (nan, 0.0, 0.0) for label in result.unmatched["prediction"]}
    return values | {
        label: (group.common_volume / group.reference_volume, group.dice, group.jaccard)
        for group in result.groups
        if not group.faint
        for label in group.reference
    }
