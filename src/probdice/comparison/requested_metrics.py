"""Metrics that the options of a comparison can request, and that are stored in the comparison.

`STORED_METRICS` lists these metrics for the commands, for JSON and for `Comparison.detach`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from probdice.comparison.foreground import Foreground
from probdice.comparison.result import Comparison
from probdice.errors import InputError
from probdice.method.scoring import key_lists
from probdice.method.sides import SIDES, Both
from probdice.metrics.boundaries import LEVELS, boundaries_of, union_boundaries
from probdice.metrics.boundary_result import Boundaries
from probdice.metrics.component_table import ComponentTable, component_table
from probdice.metrics.derived import Derived, derived_of
from probdice.metrics.unions import Union, check_members, unions_of

if TYPE_CHECKING:
    from probdice.options import CompareOptions, Members

__all__ = [
    "STORED_METRICS",
    "StoredMetric",
    "compute_requested",
    "measured_boundaries",
    "requested_components",
    "requested_derived",
]


@dataclass(frozen=True)
class StoredMetric:
    """A metric that is stored in the JSON of a comparison. The metric has a `to_dict` method.

    Attributes
    ----------
    is_requested : callable
        Returns whether the given options request the metric.
    compute : callable
        Computes the metric with the options of a comparison, and stores it in `Comparison.numbers`.
    read : callable
        Restores the metric from JSON data and from a comparison that has no stored values yet.
    detach : callable
        Returns the metric without references to the images.
    to_text : callable
        Returns the text of the metric for the terminal. The second argument is the maximum number
        of rows, or None for all rows.
    """

    is_requested: "Callable[[CompareOptions], bool]"
    compute: Callable[[Comparison], object]
    read: Callable[[Any, Comparison], Any]
    detach: Callable[[Any], Any] = lambda metric: metric
    to_text: Callable[[Any, int | None], str] = lambda metric, max_groups: repr(metric)


def compute_requested(
    result: Comparison, begin: Callable[[str], object] = lambda metric: None
) -> None:
    """Compute all metrics that the options of a comparison request.

    `begin` is called with the name of each metric before it is computed.
    """
    for name, metric in STORED_METRICS.items():
        if metric.is_requested(result.options):
            begin(name.replace("_", " "))
            metric.compute(result)


def measured_boundaries(
    result: Comparison,
    *,
    tolerances: tuple[float, ...],
    percentiles: tuple[float, ...],
    levels: tuple[float, ...] | None,
    infinite: float | None,
    derived: "Members | None",
) -> Boundaries:
    """Measure the distances between the outlines of the groups or of derived regions.

    The distances of groups are stored. Later calls with the same percentiles, tolerances and levels
    reuse the stored distances.
    """
    levels = LEVELS if levels is None else levels
    if derived is not None:
        check_members(derived, [result.overlap])
        return union_boundaries(
            result.need_images("boundaries()"),
            unions_of(result, derived),
            result.overlap,
            percentiles=percentiles,
            tolerances=tolerances,
            levels=levels,
            infinite=infinite,
        )
    stored_boundaries: Boundaries | None = result.numbers.known("boundaries")
    if stored_boundaries is not None and stored_boundaries.has(percentiles, tolerances, levels):
        boundaries = replace(stored_boundaries, infinite=infinite)
        result.numbers.put("boundaries", boundaries)
        return boundaries
    background = Foreground.of(result).background
    boundaries = boundaries_of(
        result.need_images("boundaries()"),
        key_lists(result.overlap, result.correspondence.groups),
        groups=Both(*([group.side(side) for group in result.groups] for side in SIDES)),
        counted=np.array(
            [not group.faint and k != background for k, group in enumerate(result.groups)]
        ),
        percentiles=percentiles,
        tolerances=tolerances,
        levels=levels,
        infinite=infinite,
    )
    result.numbers.put("boundaries", boundaries)
    return boundaries


def requested_derived(result: Comparison) -> Derived:
    """Compare the requested derived regions, and measure their boundaries if requested."""
    if result.options.boundaries:
        _derived_boundaries(result)
    return result.numbers.get("derived", lambda: derived_of(result, _requested_unions(result)))


def _derived_boundaries(result: Comparison) -> Boundaries:
    options = result.options
    return result.numbers.get(
        "derived_boundaries",
        lambda: union_boundaries(
            result.need_images("boundaries()"),
            _requested_unions(result),
            result.overlap,
            tolerances=options.tolerance,
            infinite=options.infinite,
        ),
    )


def _requested_unions(result: Comparison) -> tuple[Union, ...]:
    return unions_of(result, dict(result.options.derived))


def requested_components(result: Comparison) -> ComponentTable:
    """Compare the connected components of the requested classes, or of all classes."""
    options = result.options
    return result.numbers.get(
        "components",
        lambda: component_table(
            result,
            labels=options.components or (),
            connectivity=options.connectivity,
            minimum=options.minimum_size,
        ),
    )


def _read_boundaries(content: Any, result: Comparison) -> Boundaries:
    boundaries = Boundaries.from_dict(content)
    if len(boundaries) != result.correspondence.groups.count:
        raise InputError("not a complete comparison: the boundaries do not match the groups")
    return boundaries


# Keys are the names in `Comparison.numbers` and in JSON. Metrics are computed in this order.
STORED_METRICS: dict[str, StoredMetric] = {
    "boundaries": StoredMetric(
        lambda options: options.boundaries,
        lambda result: result.requested_boundaries(),
        _read_boundaries,
        lambda boundaries: boundaries.detach(),
        Boundaries.to_text,
    ),
    "derived": StoredMetric(
        lambda options: bool(options.derived),
        requested_derived,
        lambda content, result: Derived.from_dict(content, result.pixel_volume),
    ),
    "derived_boundaries": StoredMetric(
        lambda options: bool(options.derived) and options.boundaries,
        _derived_boundaries,
        lambda content, result: Boundaries.from_dict(content),
        lambda boundaries: boundaries.detach(),
        Boundaries.to_text,
    ),
    "components": StoredMetric(
        lambda options: options.components is not None,
        requested_components,
        lambda content, result: ComponentTable.from_dict(content),
    ),
}
