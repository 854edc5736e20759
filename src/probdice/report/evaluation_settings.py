"""The settings of an evaluation, for the settings section of its page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from probdice.options import CompareOptions
from probdice.report.encoding import shortened
from probdice.report.evaluation_tables import boundaries_of
from probdice.report.option_facts import Fact, option_facts, rule_words, statistics_facts
from probdice.report.page_tables import measure_words
from probdice.text.formatting import quantity

if TYPE_CHECKING:
    from probdice.evaluation.results import Evaluation

__all__ = ["evaluation_settings"]


def evaluation_settings(evaluation: Evaluation) -> tuple[Fact, ...]:
    """Return the main options, other options with non-default values, and software versions."""
    summary = evaluation.summary
    options = CompareOptions.from_dict(summary["options"])  # with relative paths
    facts = [
        Fact("Similarity", (str(options.similarity),)),
        Fact("Regions", (rule_words(options),)),
        Fact("Merging", (options.merge,)),
    ]
    facts += option_facts(options, boundaries_of(evaluation))
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
    facts += statistics_facts(evaluation.statistics)
    if summary["subjects"] is not None:
        subjects = quantity(len(set(summary["subjects"].values())), "subject")
        facts.append(Fact("Subjects", (f"{subjects}; statistics resample subjects",)))
    versions = {**summary["versions"], "Python": summary["environment"]["python"]}
    made_with = ", ".join(f"{name} {version}" for name, version in versions.items())
    return (*facts, Fact("Made with", (made_with,)))


def _patterns(patterns: dict[str, Any]) -> str:
    """Return the file patterns given by the user."""
    folder_patterns = {name: text for name, text in patterns.items() if name != "methods"}
    by_name = folder_patterns | patterns["methods"]
    return shortened(", ".join(f"{name}: {text}" for name, text in by_name.items() if text), 1000)
