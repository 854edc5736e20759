"""The measures by which cases are scored and methods are ranked, each declared once.

Tables, ranking, help texts, pages and pictures read this registry.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Literal, get_args

from probdice.errors import InputError
from probdice.method.region_labels import Label
from probdice.metrics.indices import foreground_dice

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison

__all__ = ["MEASURES", "MISSING_RULES", "REGISTRY", "Measure", "MeasureName", "title_of"]

MeasureName = Literal[
    "score",
    "adjusted_score",
    "matched_score",
    "explained_reference",
    "explained_prediction",
    "mean_dice",
    "lowest_dice",
    "foreground_dice",
]
MEASURES: tuple[MeasureName, ...] = get_args(MeasureName)

MISSING_RULES = {  # how a ranking treats missing and failed cases of a method
    "worst": "rank last",
    "zero": "rank last and count as 0 in means",
    "exclude": "are left out of the ranking for all methods",
}


@dataclass(frozen=True)
class Measure:
    """A number that scores one case.

    Attributes
    ----------
    name : str
        Name in options, tables and files.
    title : str
        Title in text, figures and pages.
    compute : callable
        Computes the value from a comparison and the label of the background (or None). The value is
        NaN if the measure is undefined.
    higher_is_better : bool
        Whether a ranking sorts by descending value.
    unit : str
        Unit of the value; empty for a share or a coefficient.
    """

    name: str
    title: str
    compute: Callable[["Comparison", Label | None], float]
    higher_is_better: bool = True
    unit: str = ""


def _foreground_dice(comparison: "Comparison", background: Label | None) -> float:
    try:
        return foreground_dice(comparison, background)
    except InputError:  # no region of this case has the label of the background
        return nan


REGISTRY: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure("score", "score", lambda result, _: result.score),
        Measure("adjusted_score", "adjusted score", lambda result, _: result.adjusted_score),
        Measure("matched_score", "matched score", lambda result, _: result.matched_score),
        Measure(
            "explained_reference",
            "reference explained",
            lambda result, _: result.explained["reference"],
        ),
        Measure(
            "explained_prediction",
            "prediction explained",
            lambda result, _: result.explained["prediction"],
        ),
        Measure("mean_dice", "mean Dice", lambda result, _: result.mean_dice),
        Measure("lowest_dice", "lowest Dice", lambda result, _: result.lowest_dice),
        Measure("foreground_dice", "foreground Dice", _foreground_dice),
    )
}


def title_of(measure: str) -> str:
    """The title of a measure."""
    return REGISTRY[measure].title
