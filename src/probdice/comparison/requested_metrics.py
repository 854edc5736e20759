"""Boundary distances, derived regions and components of a comparison, stored in its numbers."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from probdice.comparison.foreground import Foreground
from probdice.comparison.result import Comparison
from probdice.method.scoring import key_lists
from probdice.method.sides import SIDES, Both
from probdice.metrics.boundaries import LEVELS, boundaries_of, union_boundaries
from probdice.metrics.derived import Derived, derived_of
from probdice.metrics.unions import check_members, unions_of

if TYPE_CHECKING:
    from probdice.metrics.boundary_values import Boundaries
    from probdice.metrics.component_table import ComponentTable
    from probdice.options import Members

__all__ = ["measured_boundaries", "requested_components", "requested_derived"]


def measured_boundaries(
    result: Comparison,
    *,
    tolerances: tuple[float, ...],
    percentiles: tuple[float, ...],
    levels: tuple[float, ...] | None,
    infinite: float | None,
    derived: "Members | None",
) -> "Boundaries":
    """Measure the distances between the outlines of the groups or of derived regions.

    The distances of the groups are stored. They are not measured again if the stored distances have
    the same percentiles, tolerances and levels.
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
    known: Boundaries | None = result.numbers.known("boundaries")
    if known is not None and known.has(percentiles, tolerances, levels):
        return replace(known, infinite=infinite)
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
    options = result.options
    unions = unions_of(result, dict(options.derived))
    if options.boundaries:
        result.numbers.get(
            "derived_boundaries",
            lambda: union_boundaries(
                result.need_images("boundaries()"),
                unions,
                result.overlap,
                tolerances=options.tolerance,
                infinite=options.infinite,
            ),
        )
    return result.numbers.get("derived", lambda: derived_of(result, unions))


def requested_components(result: Comparison) -> "ComponentTable":
    """Compare the connected components of the classes that the options name."""
    from probdice.metrics.component_table import component_table

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
