"""Boundary distances in tables and rankings of an evaluation.

If a region is missing on one side (for probabilities, at any threshold level), the mean distance of
the case is infinite, unless a penalty distance is set. Additional columns contain the mean of the
finite values and the number of infinite values.
"""

from collections.abc import Iterable, Sequence
from math import nan
from typing import TYPE_CHECKING

from probdice.metrics.boundary_result import Boundaries, BoundaryMean
from probdice.metrics.registry import DISTANCES
from probdice.options.boundary_distances import distance_definitions, share_definitions, share_names

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison

__all__ = [
    "boundary_cells",
    "boundary_columns",
    "boundary_definition",
    "boundary_mean",
    "boundary_names",
    "boundary_rows",
    "derived_boundary_rows",
]

INFINITE_COLUMN = "infinite_distances"  # the number of groups with an infinite distance


def boundary_names(tolerances: Iterable[float]) -> tuple[str, ...]:
    """Return the names of all measures: the distances and the surface Dice at every tolerance.

    Examples
    --------
    >>> from probdice.metrics.boundary_measures import boundary_names
    >>> boundary_names([1, 2.5])[-2:]
    ('nsd@1', 'nsd@2.5')
    """
    return (*DISTANCES, *share_names(tolerances))


def boundary_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Return the boundary columns of the case table.

    Examples
    --------
    >>> from probdice.metrics.boundary_measures import boundary_columns
    >>> boundary_columns(["hd95", "nsd@1"])
    ('hd95', 'nsd@1', 'finite_hd95', 'infinite_distances')
    """
    finite = (f"finite_{name}" for name in names if name in DISTANCES)
    return (*names, *finite, INFINITE_COLUMN) if names else ()


def boundary_mean(comparison: "Comparison", name: str) -> BoundaryMean:
    """Return the mean of one measure over the included groups.

    The mean is NaN if boundaries were not computed.

    Examples
    --------
    >>> import numpy as np
    >>> import probdice
    >>> from probdice.metrics.boundary_measures import boundary_mean
    >>> reference, prediction = np.zeros((2, 14, 14), int)
    >>> reference[4:10, 4:10] = prediction[4:10, 5:11] = 1
    >>> result = probdice.compare(reference, prediction, background=0)
    >>> _ = result.boundaries(tolerances=[0.5])
    >>> boundary_mean(result, "nsd@0.5").mean
    0.5
    """
    boundaries: Boundaries | None = comparison.numbers.known("boundaries")
    return BoundaryMean(nan, nan, 0) if boundaries is None else boundaries.means[name]


def boundary_cells(comparison: "Comparison", names: Sequence[str]) -> dict[str, float]:
    """Return the values of `boundary_columns` for one case."""
    means = {name: boundary_mean(comparison, name) for name in names}
    cells: dict[str, float] = {name: mean.mean for name, mean in means.items()}
    cells |= {f"finite_{name}": means[name].finite_mean for name in names if name in DISTANCES}
    if names:
        cells[INFINITE_COLUMN] = means[names[0]].infinite
    return cells


def boundary_rows(comparison: "Comparison") -> list[dict[str, float]]:
    """Return the measures of every group; rows are empty if boundaries were not computed."""
    return _rows(comparison.numbers.known("boundaries"), len(comparison.groups))


def derived_boundary_rows(comparison: "Comparison") -> list[dict[str, float]]:
    """Return the measures of every derived region; rows are empty without boundaries."""
    boundaries = comparison.numbers.known("derived_boundaries")
    return _rows(boundaries, len(comparison.options.derived))


def _rows(boundaries: Boundaries | None, count: int) -> list[dict[str, float]]:
    """Return one row per group or derived region."""
    if boundaries is None:
        return [{} for _ in range(count)]
    columns = [boundaries[name].tolist() for name in boundaries.names]
    rows = zip(*columns, strict=True)
    return [dict(zip(boundaries.names, row, strict=True)) for row in rows]


def boundary_definition(tolerances: Sequence[float], infinite: float | None) -> str:
    """Return the definition of the distances and of the surface Dice, for a methods section."""
    penalty_text = (
        "Regions that are absent from one side have infinite distances, and means that include "
        "these regions are also infinite"
        if infinite is None
        else f"Regions that are absent from one side have a distance of {infinite:g}"
    )
    limits = ", ".join(f"{tolerance:.12g}" for tolerance in tolerances)
    surface = f"; {share_definitions(limits)}" if tolerances else ""
    return (
        f"Boundary distances are exact distances from the centroids of the elements of one surface "
        f"to the nearest point of the other surface, weighted by area or length (Podobnik and "
        f"Vrtovec, MeshMetrics, arXiv:2509.05670). Surfaces lie halfway between voxels. "
        f"{distance_definitions()}{surface}. {penalty_text}. "
        f"Probabilities are compared at the levels 0.1 to 0.9. Distances and tolerances are in mm, "
        f"or in voxels for images without geometry."
    )
