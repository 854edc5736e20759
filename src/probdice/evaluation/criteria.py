"""Look up measures by name: registered measures, measures of one region, and external columns.

A name is ``MEASURE[@TOLERANCE][:REGION]``: ``foreground_dice``, ``dice:2``, ``hd95:tumour``,
``nsd@1:whole tumour``. Without a region, a measure that has one value per region is averaged over
all regions except the background, if one is given.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite

from probdice.comparison.result import Comparison
from probdice.errors import InputError, Option
from probdice.evaluation.external_columns import ExternalColumn
from probdice.evaluation.record import Record
from probdice.evaluation.tables import ExtraColumns
from probdice.files.sources import natural
from probdice.method.region_labels import listed
from probdice.metrics.boundary_measures import boundary_mean
from probdice.metrics.component_measures import COMPONENT_MEASURES, component_value
from probdice.metrics.indices import INDICES
from probdice.metrics.region_measures import region_labels, region_mean, region_value
from probdice.metrics.registry import (
    DISTANCES,
    MEASURES,
    REGION_NUMBERS,
    REGISTRY,
    description_of,
)
from probdice.options.boundary_distances import BOUNDARY_SHARES

__all__ = ["Criterion", "Name", "as_rank_by", "check_regions", "criterion_of"]

NAME = re.compile(r"(?P<measure>[^@:]+)(?:@(?P<tolerance>[^:]*))?(?::(?P<region>.+))?", re.DOTALL)
MAX_LISTED_REGIONS = 20


@dataclass(frozen=True)
class Name:
    """The parts of the name of a measure.

    Attributes
    ----------
    measure : str
        The name in the registry, or the name of an external column.
    tolerance : float or None
        The tolerance of the surface Dice, in the same unit as the distances.
    region : str or None
        The label or name of a region.

    Examples
    --------
    >>> from probdice.evaluation.criteria import Name
    >>> Name.of("nsd@1:whole tumour")
    Name(measure='nsd', tolerance=1.0, region='whole tumour')
    >>> str(Name.of("nsd@1.0:whole tumour"))
    'nsd@1:whole tumour'
    """

    measure: str
    tolerance: float | None = None
    region: str | None = None

    @classmethod
    def of(cls, text: str) -> "Name":
        """Parse a name, or raise InputError."""
        match = NAME.fullmatch(text.strip())
        tolerance = None
        try:
            if match is None:
                raise ValueError
            if match["tolerance"] is not None:
                tolerance = float(match["tolerance"])
                if not (isfinite(tolerance) and tolerance >= 0):
                    raise ValueError
        except ValueError:
            raise InputError(
                f"measure: expected MEASURE[@TOLERANCE][:REGION], such as score, dice:2 or "
                f"nsd@1:tumour, found {text!r}"
            ) from None
        region = None if match["region"] is None else match["region"].strip()
        return cls(match["measure"].strip(), tolerance, region)

    def __str__(self) -> str:
        tolerance = "" if self.tolerance is None else f"@{self.tolerance:.12g}"
        region = "" if self.region is None else f":{self.region}"
        return f"{self.measure}{tolerance}{region}"


@dataclass(frozen=True)
class Criterion:
    """A measure that a run can rank methods by.

    Attributes
    ----------
    key : str
        The name of the measure, as in `rank_by`.
    title : str
        The title of the measure in text, figures and pages.
    higher_is_better : bool
        Whether higher values are better.
    value : callable
        Returns the value of the measure for one case; NaN if the case failed.
    """

    key: str
    title: str
    higher_is_better: bool
    value: Callable[[Record], float]


def as_rank_by(rank_by: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return the names of the ranking measures without duplicates; () for the default measure.

    Examples
    --------
    >>> from probdice.evaluation.criteria import as_rank_by
    >>> as_rank_by(["dice:2", "nsd@1.0", "dice:2"])
    ('dice:2', 'nsd@1')
    """
    names = [rank_by] if isinstance(rank_by, str) else list(rank_by or ())
    return tuple(dict.fromkeys(str(Name.of(name)) for name in names))


def criterion_of(
    key: str, extra_columns: ExtraColumns, columns: Sequence[ExternalColumn] = ()
) -> Criterion:
    """Return the measure with the given name.

    Parameters
    ----------
    key : str
        The name.
    extra_columns : ExtraColumns
        The additional columns of the run.
    columns : sequence of ExternalColumn, optional
        The external columns of the run.

    Raises
    ------
    InputError
        If the run has no measure with this name.

    Examples
    --------
    >>> from probdice.evaluation.criteria import criterion_of
    >>> from probdice.evaluation.tables import ExtraColumns
    >>> criterion_of("dice:2", ExtraColumns()).title
    'Dice of 2'
    >>> criterion_of("jaccard", ExtraColumns(foreground=True)).title
    'foreground Jaccard index'
    >>> criterion_of("hd95", ExtraColumns(distances=("hd95",))).higher_is_better
    False
    """
    for column in columns:
        if key == column.name:
            return Criterion(key, key, column.higher_is_better, partial(_external_value, column))
    name = Name.of(key)
    measure, region = str(replace(name, region=None)), name.region
    _check_options(name, extra_columns)
    description = description_of(measure)
    value: Callable[[Comparison], float]
    if region is None and measure in (*extra_columns.measures, *extra_columns.columns):
        title, value = (
            description.title,
            partial(_value, measure=measure, extra_columns=extra_columns),
        )
    elif region is None and measure in REGION_NUMBERS:
        title, value = f"foreground {description.title}", partial(_foreground_mean, measure=measure)
    elif region is not None and measure in (*REGION_NUMBERS, *extra_columns.distances):
        title = f"{description.title} of {region}"
        value = partial(region_value, measure=measure, region=region)
    elif region is not None and extra_columns.components and measure in COMPONENT_MEASURES:
        title, threshold = f"{description.title} of {region}", extra_columns.component_threshold
        value = partial(component_value, measure=measure, threshold=threshold, label=region)
    else:
        known_measures = list(dict.fromkeys((*extra_columns.measures, *extra_columns.columns)))
        known_measures += [
            f"{measure_name}:REGION" for measure_name in (*REGION_NUMBERS, *extra_columns.distances)
        ]
        known_measures += [
            f"{measure_name}:REGION"
            for measure_name in COMPONENT_MEASURES
            if extra_columns.components
        ]
        known_measures += [column.name for column in columns]
        listed_measures = ", ".join(dict.fromkeys(known_measures))
        raise InputError(f"measure must be one of {listed_measures}, found {key!r}")
    return Criterion(
        key, title, description.higher_is_better, lambda record: record.of_comparison(value)
    )


def check_regions(measures: Iterable[str], comparisons: Sequence[Comparison]) -> None:
    """Reject a measure of a region that no reference contains and that is not a derived region."""
    names = [Name.of(measure) for measure in measures]
    regions = region_labels(comparisons) if any(name.region for name in names) else set()
    region_names = sorted(regions, key=natural)
    for name in names:
        if name.region is not None and name.region not in regions:
            raise InputError(
                f"rank_by: {name} refers to region {name.region!r}, which no reference contains. "
                f"Available regions: {listed(region_names, MAX_LISTED_REGIONS)}"
            )


def _check_options(name: Name, extra_columns: ExtraColumns) -> None:
    """Reject a measure if the option that it requires is not set."""
    measure = str(replace(name, region=None))
    needs_background = measure in MEASURES and measure not in extra_columns.measures
    needs_foreground = measure in REGION_NUMBERS and not extra_columns.foreground
    if name.region is None and (needs_background or needs_foreground):
        raise InputError(
            f"{measure} requires a background; pass its label or name, such as ",
            Option("background", 0),
        )
    if measure in BOUNDARY_SHARES:
        raise InputError(f"{measure} requires a tolerance, as in {measure}@1")
    share, _, tolerance = measure.partition("@")
    if share in BOUNDARY_SHARES and measure not in extra_columns.distances:
        raise InputError(
            f"{measure} requires boundary distances at this tolerance; pass ",
            Option("boundaries", python="boundaries=True"),
            " and ",
            Option("tolerance", float(tolerance)),
        )
    if measure in DISTANCES and measure not in extra_columns.distances:
        raise InputError(
            f"{measure} requires boundary distances; pass ",
            Option("boundaries", python="boundaries=True"),
        )
    if measure in COMPONENT_MEASURES and not extra_columns.components:
        raise InputError(
            f"{measure} requires ", Option("components", "all", python="components=True")
        )
    if measure in INDICES and measure not in (*extra_columns.columns, *extra_columns.measures):
        raise InputError(f"{measure} requires ", Option("indices", python="indices=True"))


def _external_value(column: ExternalColumn, record: Record) -> float:
    """Return the value of an external column for one case."""
    return record.of_comparison(lambda _: column.of(record.method, record.case))


def _foreground_mean(comparison: Comparison, measure: str) -> float:
    """Return the mean of a measure over the foreground groups, without faint groups."""
    return region_mean(comparison.foreground, measure)


def _value(comparison: Comparison, measure: str, extra_columns: ExtraColumns) -> float:
    """Return the value of a measure for one case, from the registry or an additional column."""
    if measure in REGISTRY:
        return REGISTRY[measure].compute(comparison)
    if measure in extra_columns.distances:
        return boundary_mean(comparison, measure).mean
    return float(extra_columns.of(comparison)[0][measure])
