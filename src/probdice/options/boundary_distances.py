"""The boundary distances: names and descriptions."""

from dataclasses import dataclass

__all__ = ["BOUNDARY_DISTANCES", "STATISTICS", "BoundaryDistance", "distance_definitions"]


@dataclass(frozen=True)
class BoundaryDistance:
    """The descriptions of a boundary distance.

    Attributes
    ----------
    title : str
        Title in text, figures and pages.
    help : str
        Description in the help text of ``--boundaries``.
    definition : str
        How the measure is computed from the distances, for methods sections and HTML pages.
    percentile : bool
        Whether the measure is a percentile, which users choose with ``percentiles``.
    """

    title: str
    help: str
    definition: str
    percentile: bool = False


BOUNDARY_DISTANCES = {  # in the order of tables
    "hd": BoundaryDistance("HD", "Hausdorff distance", "the maximum"),
    "hd95": BoundaryDistance(
        "HD95",
        "95th percentile of the distances",
        "the larger of the two directed 95th percentiles",
        percentile=True,
    ),
    "assd": BoundaryDistance(
        "ASSD", "average symmetric surface distance", "the mean over both surfaces"
    ),
    "masd": BoundaryDistance(
        "MASD", "mean average surface distance", "the mean of the two directed means"
    ),
}

# The numbers before the percentiles, in the order of `engine.kernels.surface_summary`.
STATISTICS = tuple(name for name, one in BOUNDARY_DISTANCES.items() if not one.percentile)


def distance_definitions() -> str:
    """Return the definitions of all boundary distances as one clause.

    Examples
    --------
    >>> from probdice.options.boundary_distances import distance_definitions
    >>> distance_definitions()[:60]
    'hd is the maximum, hd95 is the larger of the two directed 95'
    """
    *first, last = (f"{name} is {one.definition}" for name, one in BOUNDARY_DISTANCES.items())
    return f"{', '.join(first)}, and {last}"
