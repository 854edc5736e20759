"""Detection of connected components in tables and rankings of an evaluation."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import inf, isnan, nan
from typing import TYPE_CHECKING, Any

from probdice.method.region_labels import Label, listed
from probdice.metrics.component_table import ComponentTable, MatchMode, count_components

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison

__all__ = [
    "COMPONENT_MEASURES",
    "STRATUM_COLUMNS",
    "component_cells",
    "component_classes",
    "component_columns",
    "component_definition",
    "component_value",
    "stratum_rows",
]

NUMBERS = {  # names of columns, and attributes of ComponentCounts
    "found": "found",
    "missed": "missed",
    "false": "false",
    "f1": "f1",
    "sq": "segmentation_quality",
    "pq": "panoptic_quality",
    "dice": "dice",
}
COUNTS = ("found", "missed", "false")
MATCH_MODES: dict[MatchMode, str] = {"one": "", "many": "_many"}  # suffixes of column names
STRATUM_COLUMNS = tuple(f"{name}{ending}" for ending in MATCH_MODES.values() for name in NUMBERS)
COMPONENT_MEASURES = tuple(f"components_{name}" for name in STRATUM_COLUMNS)


def component_value(
    comparison: "Comparison", measure: str, threshold: float, label: str | None = None
) -> float:
    """Return a measure of one class or, if `label` is None, of all classes.

    Over all classes, counts are summed, and other measures are averaged over the classes for which
    they are not NaN. The value is NaN if components were not computed.

    Examples
    --------
    >>> import probdice
    >>> from probdice.metrics.component_measures import component_value
    >>> result = probdice.compare([1, 1, 0, 1], [1, 1, 0, 0], background=0)
    >>> component_value(result, "components_f1", 0.5)
    nan
    """
    table: ComponentTable | None = comparison.numbers.known("components")
    if table is None:
        return nan
    name = measure.removeprefix("components_").removesuffix(MATCH_MODES["many"])
    reading: MatchMode = "many" if measure.endswith(MATCH_MODES["many"]) else "one"
    values: list[float] = [
        getattr(table.counts(threshold, class_label, reading=reading), NUMBERS[name])
        for class_label in (table.labels if label is None else (label,))
    ]
    if name in COUNTS:
        return sum(values)
    known_values = [value for value in values if not isnan(value)]
    return sum(known_values) / len(known_values) if known_values else nan


def component_columns(classes: Sequence[str]) -> tuple[str, ...]:
    """Return the component columns of the case table: first for all classes, then per class.

    Examples
    --------
    >>> from probdice.metrics.component_measures import component_columns
    >>> component_columns(["1"])[13:15]
    ('components_dice_many', 'components_found:1')
    """
    per_class = (f"{measure}:{label}" for label in classes for measure in COMPONENT_MEASURES)
    return (*COMPONENT_MEASURES, *per_class)


def component_cells(
    comparison: "Comparison", threshold: float, classes: Sequence[str]
) -> dict[str, float]:
    """Return the values of `component_columns` for one case."""
    cells = {}
    for column in component_columns(classes):
        measure, colon, label = column.partition(":")
        cells[column] = component_value(comparison, measure, threshold, label if colon else None)
    return cells


def component_classes(comparisons: Iterable["Comparison"]) -> tuple[str, ...]:
    """Return the classes of the components of all cases, in the order in which they first occur."""
    labels: dict[str, None] = {}
    for comparison in comparisons:
        table: ComponentTable | None = comparison.numbers.known("components")
        labels |= dict.fromkeys(() if table is None else table.labels)
    return tuple(labels)


def stratum_rows(
    comparisons: Sequence["Comparison"],
    threshold: float,
    classes: Sequence[str],
    strata: Sequence[float],
) -> list[dict[str, Any]]:
    """Return detection measures over all cases of a method.

    There is one row per size range for all classes together, and one per class and size range.
    """
    tables = [comparison.numbers.known("components") for comparison in comparisons]
    rows = [row for table in tables if table is not None for row in table.rows]
    units = dict.fromkeys(table.unit for table in tables if table is not None)
    edges = [*(strata or (0.0,)), inf]
    result = []
    for label in (None, *classes):
        for low, high in pairwise(edges):
            row = {
                "class": "all" if label is None else label,
                "from": low,
                "to": None if high == inf else high,
                "unit": " or ".join(units),
            }
            for reading, ending in MATCH_MODES.items():
                counts = count_components(
                    rows, threshold, label, sizes=(low, high), reading=reading
                )
                row |= {
                    f"{key}{ending}": getattr(counts, attribute)
                    for key, attribute in NUMBERS.items()
                }
            result.append(row)
    return result


def component_definition(
    labels: Sequence[Label], connectivity: int | None, minimum: float, threshold: float
) -> str:
    """Return the definition of component detection, for a methods section.

    Examples
    --------
    >>> from probdice.metrics.component_measures import component_definition
    >>> component_definition((), 6, 10, 0.5).partition(",")[0]
    'Components are sets of voxels connected by 6 neighbours'
    """
    neighbours = "all" if connectivity is None else str(connectivity)
    classes = f" of {listed(labels, 20)}" if labels else ""
    minimum_text = (
        f"; components smaller than {minimum:g} mm³ (voxels for 2-D images and images without "
        f"geometry) are removed from both sides"
        if minimum
        else ""
    )
    return (
        f"Components{classes} are sets of voxels connected by {neighbours} neighbours, and matched "
        f"one to one within corresponding classes with the largest total overlap{minimum_text}. A "
        f"component is found if the Jaccard index with its match is at least {threshold:g}; other "
        f"components of the reference are missed, and other components of the prediction are "
        f"false. Panoptic quality (pq) is F1 (recognition quality) times the mean Jaccard index of "
        f"found components (segmentation quality, sq). In many-to-one matching (names that end "
        f"with _many), a component is a part of a component of the other side if more than half of "
        f"it is inside that component. The Jaccard index between the component and the union of "
        f"its parts is then used for the component and for each part, unless the Jaccard index of "
        f"the one-to-one match is larger. Over the classes of a case, counts are summed and other "
        f"measures are averaged."
    )
