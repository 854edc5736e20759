"""The settings of an evaluation, for the settings section of its page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from probdice.method.matching import RULES, Fixed, Given, listed
from probdice.method.sides import Both
from probdice.options import TOLERANCE, CompareOptions
from probdice.report.encoding import shortened
from probdice.report.facts import Fact
from probdice.report.page_tables import counted, measure_words

if TYPE_CHECKING:
    from probdice.evaluation.results import Evaluation

__all__ = ["evaluation_settings"]


def evaluation_settings(evaluation: Evaluation) -> tuple[Fact, ...]:
    """Return the options that differ from the defaults, and versions."""
    options, summary = evaluation.options, evaluation.summary
    facts = [
        Fact("Similarity", (str(options.similarity),)),
        Fact("Regions", (_rule(options),)),
        Fact("Merging", (options.merge,)),
    ]
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
    if summary["mask"] is not None:
        facts.append(Fact("Masks", (shortened(summary["mask"], 1000),)))
    if patterns := _patterns(summary["patterns"]):
        facts.append(Fact("Patterns", (patterns,)))
    if summary["rater_comparison"] is not None:
        raters = summary["rater_comparison"]["raters"].items()
        folders = tuple(f"{shortened(name)}: {shortened(path, 1000)}" for name, path in raters)
        facts.append(Fact("Raters", folders))
    facts.append(
        Fact("Ranked by", tuple(measure_words(summary, key)[0] for key in summary["rank_by"]))
    )
    facts.append(Fact("Ranking scheme", (summary["scheme"],)))
    if summary["subjects"] is not None:
        subjects = counted(len(set(summary["subjects"].values())), "subject")
        facts.append(Fact("Subjects", (f"{subjects}; statistics resample subjects",)))
    versions = {**summary["versions"], "Python": summary["environment"]["python"]}
    made_with = ", ".join(f"{name} {version}" for name, version in versions.items())
    return (*facts, Fact("Made with", (made_with,)))


def _patterns(patterns: dict[str, Any]) -> str:
    """Return the patterns given by the user."""
    others = {name: text for name, text in patterns.items() if name != "methods"}
    given = others | patterns["methods"]
    return shortened(", ".join(f"{name}: {text}" for name, text in given.items() if text), 1000)


def _rule(options: CompareOptions) -> str:
    """How regions were matched."""
    if isinstance(options.match, Fixed):
        pairs = ", ".join(f"{first} ↔ {second}" for first, second in options.match.pairs)
        return shortened(f"{pairs} as given, other regions by overlap", 300)
    if isinstance(options.match, Given):
        return "as in an earlier comparison"
    return RULES[options.match].words


def _per_side(values: Both[str]) -> tuple[str, ...]:
    """Return the values of both sides."""
    return (f"reference {values.reference}, prediction {values.prediction}",)


def _divisor(scale: float | None) -> str:
    return "as it is" if scale is None else f"divided by {scale:g}"
