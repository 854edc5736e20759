"""Names and descriptions of boundary measures: distances, and shares within a tolerance."""

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = [
    "BOUNDARY_DISTANCES",
    "BOUNDARY_SHARES",
    "STATISTICS",
    "BoundaryDistance",
    "BoundaryShare",
    "distance_definitions",
    "is_share",
    "share_definitions",
    "share_names",
]


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
        Whether the measure is a percentile. The argument ``percentiles`` of
        `Comparison.boundaries` selects other percentiles.
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


@dataclass(frozen=True)
class BoundaryShare:
    """The descriptions of a boundary share.

    A boundary share is the share of both boundaries that is within a tolerance of the other one.

    Attributes
    ----------
    title : str
        Title in text, figures and pages, and description in the help text of ``--boundaries``.
    definition : str
        How the share is computed, for methods sections and HTML pages. The tolerances replace
        "{0}".
    """

    title: str
    definition: str


BOUNDARY_SHARES = {  # in the order of `engine.kernels.surface_summary`
    "nsd": BoundaryShare(
        "surface Dice", "the share of the two surfaces that lies within {0} of the other surface"
    ),
}

# The distances that `engine.kernels.surface_summary` stores before the percentiles, in that order.
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


def share_definitions(tolerances: str) -> str:
    """Return the definitions of all shares as one clause.

    Examples
    --------
    >>> from probdice.options.boundary_distances import share_definitions
    >>> share_definitions("1 mm")
    'nsd is the share of the two surfaces that lies within 1 mm of the other surface'
    """
    definitions = (
        f"{name} is {one.definition.format(tolerances)}" for name, one in BOUNDARY_SHARES.items()
    )
    return "; ".join(definitions)


def share_names(tolerances: Iterable[float]) -> tuple[str, ...]:
    """Return the names of all shares at all tolerances, in the order of `surface_summary`.

    Examples
    --------
    >>> from probdice.options.boundary_distances import share_names
    >>> share_names([1, 2.5])
    ('nsd@1', 'nsd@2.5')
    """
    limits = [f"{tolerance:.12g}" for tolerance in tolerances]
    return tuple(f"{name}@{limit}" for name in BOUNDARY_SHARES for limit in limits)


def is_share(name: str) -> bool:
    """Return whether a measure, such as nsd@1, is a share. A share has no unit."""
    return "@" in name
