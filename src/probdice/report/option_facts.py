"""Rows about the options of a comparison, for the settings section of a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from probdice.method.label_matching import LabelsBy
from probdice.method.matching import RULES, GivenGroups, GivenPairs
from probdice.method.region_labels import listed
from probdice.method.sides import Both
from probdice.options import TOLERANCE, CompareOptions, StatisticsOptions
from probdice.options.declaration import declarations
from probdice.options.stored_options import NOT_STORED
from probdice.report.encoding import shortened

if TYPE_CHECKING:
    from probdice.metrics.boundary_result import Boundaries

__all__ = ["Fact", "option_facts", "rule_words", "statistics_facts"]

# Options that have their own description. All other stored options are listed by name.
DESCRIBED_OPTIONS = frozenset(
    (
        *("similarity", "match", "merge", "correspondence", "ignore", "sums", "scale"),
        *("ignore_geometry", "geometry_tolerance", "resample", "components"),
        *("missing", "rank_by", "scheme"),
    )
)
DISTANCES = ("tolerance", "infinite")  # options in the unit of boundary distances


@dataclass(frozen=True)
class Fact:
    """A row of the settings: a name with one or more values, such as one value per side."""

    name: str
    values: tuple[str, ...]


def rule_words(options: CompareOptions, labels_by: LabelsBy | None = None) -> str:
    """Return the matching rule in words."""
    if isinstance(options.match, GivenPairs):
        pairs = ", ".join(
            f"{reference} ↔ {prediction}" for prediction, reference in options.match.pairs
        )
        return shortened(f"{pairs} as given, other regions by overlap", 300)
    if isinstance(options.match, GivenGroups):
        if options.correspondence == "set":
            return "matched over all cases of the method"
        return "as in an earlier comparison"
    words = RULES[options.match].words
    return words if labels_by is None else f"{words}, by {labels_by}"


def option_facts(options: CompareOptions, boundaries: Boundaries | None = None) -> list[Fact]:
    """Return the options that differ from the defaults, except similarity, matching and merging.

    Options that are distances have the unit of the `boundaries`.
    """
    facts = []
    if options.correspondence == "set":
        facts.append(Fact("Correspondence", ("one for all cases of a method",)))
    if options.ignore:
        facts.append(Fact("Ignored labels", (shortened(listed(options.ignore), 300),)))
    if set(options.sums) != {"error"}:
        facts.append(Fact("Sums", _per_side(options.sums.map(str))))
    if options.common_scale is not None:
        facts.append(Fact("Scale", (f"{options.common_scale:g} where values exceed 1",)))
    elif isinstance(options.scale, Both):
        facts.append(Fact("Scale", _per_side(options.scale.map(_divisor))))
    if options.ignore_geometry:
        facts.append(Fact("Geometry", ("ignored",)))
    elif options.geometry_tolerance != TOLERANCE:
        facts.append(Fact("Geometry", (f"within {options.geometry_tolerance:g} voxels",)))
    if options.resample is not None:
        facts.append(Fact("Resampling", (f"{options.resample}, onto the reference",)))
    if options.components is not None:
        classes = listed(options.components) if options.components else "all"
        facts.append(Fact("Components", (shortened(classes, 300),)))
    unit = "" if boundaries is None else f", {boundaries.unit}"
    return facts + _other_options(options, CompareOptions(), unit)


def statistics_facts(statistics: StatisticsOptions) -> list[Fact]:
    """Return statistics options that differ from the defaults, except `DESCRIBED_OPTIONS`."""
    return _other_options(statistics, type(statistics)())


def _other_options(options: Any, defaults: Any, unit: str = "") -> list[Fact]:
    """Return options that change results and differ from `defaults`, except `DESCRIBED_OPTIONS`."""
    declared = declarations(type(defaults))  # type: ignore[arg-type]  # a class is hashable
    return [
        Fact(
            name.replace("_", " ").capitalize() + (unit if name in DISTANCES else ""),
            (shortened(_words(getattr(options, name)), 300),),
        )
        for name in declared
        if name not in (*DESCRIBED_OPTIONS, *NOT_STORED)
        and getattr(options, name) != getattr(defaults, name)
    ]


def _words(value: Any) -> str:
    """Return an option as text.

    The two items of a pair, as in names and derived regions, are joined by a colon.
    """
    if isinstance(value, Both):
        words = value.map(_words)
        return words.reference if len(set(words)) == 1 else _per_side(words)[0]
    if isinstance(value, tuple):
        if any(isinstance(one, tuple) for one in value):
            return "; ".join(f"{first}: {_words(second)}" for first, second in value)
        return ", ".join(map(_words, value)) or "none"
    if isinstance(value, float):
        return f"{value:g}"
    if value is None:
        return "none"
    return "yes" if value is True else str(value)


def _per_side(values: Both[str]) -> tuple[str, ...]:
    """Return one text with the values of both sides."""
    return (f"reference {values.reference}, prediction {values.prediction}",)


def _divisor(scale: float | None) -> str:
    return "as it is" if scale is None else f"divided by {scale:g}"
