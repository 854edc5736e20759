"""The settings of an evaluation, for the settings section of its page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from probdice.method.matching import RULES, Fixed, Given, listed
from probdice.method.sides import Both
from probdice.options import TOLERANCE, CompareOptions
from probdice.options.declaration import declarations
from probdice.report.encoding import shortened
from probdice.report.facts import Fact
from probdice.report.page_tables import counted, measure_words

if TYPE_CHECKING:
    from probdice.evaluation.results import Evaluation

__all__ = ["evaluation_settings"]

# Options with their own description. All other options are listed by name.
DESCRIBED = frozenset(
    (
        *("similarity", "match", "merge", "correspondence", "ignore", "sums", "scale"),
        *("ignore_geometry", "geometry_tolerance", "resample", "components"),
    )
)


def evaluation_settings(evaluation: Evaluation) -> tuple[Fact, ...]:
    """Return the options that differ from the defaults, and software versions."""
    summary = evaluation.summary
    options = CompareOptions.from_dict(summary["options"])  # with relative paths
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
    if options.components is not None:
        classes = listed(options.components) if options.components else "all"
        facts.append(Fact("Components", (shortened(classes, 300),)))
    facts += _other_options(options)
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


def _other_options(options: CompareOptions) -> list[Fact]:
    """Return all options outside `DESCRIBED` that differ from the defaults."""
    defaults = CompareOptions()
    return [
        Fact(name.replace("_", " ").capitalize(), (shortened(_words(getattr(options, name)), 300),))
        for name in declarations(CompareOptions)
        if name not in DESCRIBED and getattr(options, name) != getattr(defaults, name)
    ]


def _words(value: Any) -> str:
    """Return an option as text. Pairs, as in names and derived regions, are joined by a colon."""
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
