"""The measures that score cases and rank methods.

`REGISTRY` contains the measures that are computed for every case, and `REGION_NUMBERS` contains the
measures of every region. `OTHER_NUMBERS` describes the measures of regions and those that options
add: boundary distances, the detection of components, and the counts and indices for which lower
values are better. Tables, rankings, help texts, HTML pages and figures use these dictionaries.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from probdice.options.boundary_distances import BOUNDARY_DISTANCES, BOUNDARY_SHARES

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison
    from probdice.comparison.result_groups import Group
    from probdice.metrics.derived import DerivedRegion

__all__ = [
    "DISTANCES",
    "MEASURES",
    "MISSING_RULES",
    "REGION_NUMBERS",
    "REGISTRY",
    "Description",
    "Measure",
    "MeasureName",
    "RegionNumber",
    "description_of",
    "title_of",
]

MeasureName = Literal[
    "score",
    "adjusted_score",
    "matched_score",
    "explained_reference",
    "explained_prediction",
    "mean_dice",
    "lowest_dice",
    "foreground_dice",
    "pooled_dice",
    "foreground_score",
    "adjusted_foreground_score",
]
MEASURES: tuple[MeasureName, ...] = get_args(MeasureName)

MISSING_RULES = {  # how a ranking treats missing and failed cases of a method
    "worst": "rank last",
    "zero": "rank last and count as 0 in means (as infinite if lower values are better)",
    "exclude": "are excluded from the ranking for all methods",
}


@dataclass(frozen=True)
class Description:
    """The title, sort order and unit of a measure.

    Attributes
    ----------
    title : str
        Title in text, figures and pages.
    higher_is_better : bool
        Whether a ranking sorts by descending value.
    unit : str
        Unit of the value; empty for a share, a coefficient or a count.
    """

    title: str
    higher_is_better: bool = True
    unit: str = ""


@dataclass(frozen=True)
class Measure:
    """A measure that scores one case.

    Attributes
    ----------
    name : str
        Name in options, tables and files.
    title : str
        Title in text, figures and pages.
    compute : callable
        Computes the value from a comparison. The value is NaN if the measure is undefined.
    needs_background : bool
        Whether the measure is defined only if a background is given.
    higher_is_better : bool
        Whether a ranking sorts by descending value.
    unit : str
        Unit of the value; empty for a share, a coefficient or a count.
    remark : str
        Explanation in the tables of HTML pages.
    """

    name: str
    title: str
    compute: Callable[["Comparison"], float]
    needs_background: bool = False
    higher_is_better: bool = True
    unit: str = ""
    remark: str = ""


REGISTRY: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure(
            "score",
            "score",
            lambda result: result.score,
            remark="after matching and merging; 1 means identical",
        ),
        Measure(
            "adjusted_score",
            "adjusted score",
            lambda result: result.adjusted_score,
            remark="0 is chance level, 1 means identical",
        ),
        Measure(
            "matched_score",
            "matched score",
            lambda result: result.matched_score,
            remark="after matching, before merging",
        ),
        Measure(
            "explained_reference",
            "reference explained",
            lambda result: result.explained["reference"],
            remark="share of the reference that the prediction explains; splitting regions does "
            "not lower it",
        ),
        Measure(
            "explained_prediction",
            "prediction explained",
            lambda result: result.explained["prediction"],
            remark="share of the prediction that the reference explains; merging regions does not "
            "lower it",
        ),
        Measure(
            "mean_dice",
            "mean Dice",
            lambda result: result.mean_dice,
            remark="over all groups of a case except faint groups; unmatched regions count as 0",
        ),
        Measure(
            "lowest_dice",
            "lowest Dice",
            lambda result: result.lowest_dice,
            remark="over all groups of a case except faint groups; unmatched regions count as 0",
        ),
        Measure(
            "foreground_dice",
            "foreground Dice",
            lambda result: result.foreground_dice,
            needs_background=True,
            remark="mean over all groups of a case except the background and faint groups",
        ),
        Measure(
            "pooled_dice",
            "pooled Dice",
            lambda result: result.pooled_dice,
            needs_background=True,
            remark="2 Σ overlap / Σ volumes over all foreground groups of a case",
        ),
        Measure(
            "foreground_score",
            "foreground score",
            lambda result: result.foreground_score,
            needs_background=True,
            remark="share of pixels with corresponding regions, among pixels that are foreground "
            "on at least one side",
        ),
        Measure(
            "adjusted_foreground_score",
            "adjusted foreground score",
            lambda result: result.adjusted_foreground_score,
            needs_background=True,
            remark="foreground score adjusted for chance; 1 means identical",
        ),
    )
}


@dataclass(frozen=True)
class RegionNumber:
    """A measure of one region, for rankings by a single region or by the mean over the foreground.

    Attributes
    ----------
    description : Description
        The title, sort order and unit of the measure.
    compute : callable
        Computes the value from a group or a derived region.
    """

    description: Description
    compute: Callable[["Group | DerivedRegion"], float]


REGION_NUMBERS = {
    "dice": RegionNumber(Description("Dice"), lambda region: region.dice),
    "jaccard": RegionNumber(Description("Jaccard index"), lambda region: region.jaccard),
}
DISTANCES = {  # in millimetres, or in pixels for images without geometry
    name: Description(description.title, higher_is_better=False, unit="mm")
    for name, description in BOUNDARY_DISTANCES.items()
}
ONE_TO_ONE = {  # detection of connected components
    "components_found": Description("components found"),
    "components_missed": Description("components missed", higher_is_better=False),
    "components_false": Description("false components", higher_is_better=False),
    "components_f1": Description("component F1"),
    "components_sq": Description("component segmentation quality"),
    "components_pq": Description("component panoptic quality"),
    "components_dice": Description("mean component Dice"),
}
COMPONENT_DESCRIPTIONS = ONE_TO_ONE | {
    f"{name}_many": Description(f"{description.title} (many-to-one)", description.higher_is_better)
    for name, description in ONE_TO_ONE.items()
}
LOWER_IS_BETTER = (  # counts and indices that are 0 for identical segmentations
    *("infinite_distances", "false_positives", "misses", "splits", "merges"),
    *("adapted_rand_error", "variation_of_information", "variation_split", "variation_merge"),
    *("under_segmentation_error", "over_segmentation_error"),
)
OTHER_NUMBERS: dict[str, Description] = {
    **{name: number.description for name, number in REGION_NUMBERS.items()},
    **DISTANCES,
    **COMPONENT_DESCRIPTIONS,
    **{
        f"finite_{name}": Description(
            f"{description.title}, finite values", False, description.unit
        )
        for name, description in DISTANCES.items()
    },
    **{
        name: Description(name.replace("_", " "), higher_is_better=False)
        for name in LOWER_IS_BETTER
    },
}


def description_of(measure: str) -> Description:
    """Return the description of a measure or of a column in the case table.

    Examples
    --------
    >>> from probdice.metrics.registry import description_of
    >>> description_of("hd95")
    Description(title='HD95', higher_is_better=False, unit='mm')
    >>> description_of("nsd@1").title
    'surface Dice at 1'
    """
    if measure in REGISTRY:
        entry = REGISTRY[measure]
        return Description(entry.title, entry.higher_is_better, entry.unit)
    share, _, tolerance = measure.partition("@")
    if share in BOUNDARY_SHARES:
        return Description(f"{BOUNDARY_SHARES[share].title} at {tolerance}")
    return OTHER_NUMBERS.get(measure, Description(measure.replace("_", " ")))


def title_of(measure: str) -> str:
    """Return the title of a measure."""
    return description_of(measure).title
