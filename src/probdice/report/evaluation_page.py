"""The report of an evaluation, with all methods and all cases."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from math import isinf, isnan
from typing import TYPE_CHECKING, Any

from probdice.method.scoring import NeedsImages
from probdice.metrics.registry import MISSING_RULES
from probdice.options import SCHEMES
from probdice.pictures.colours import PALETTE
from probdice.report.encoding import shortened
from probdice.report.evaluation_charts import Chart, charts_of
from probdice.report.evaluation_ranking import (
    MeasureBlock,
    measure_block,
    places_by_measure,
    places_by_scheme,
    ranking_by_all,
)
from probdice.report.evaluation_settings import evaluation_settings
from probdice.report.evaluation_tables import (
    boundary_table,
    component_table,
    rater_table,
    region_table,
    unscored_table,
)
from probdice.report.option_facts import Fact
from probdice.report.page_tables import Table, centre_of, measure_words
from probdice.text.formatting import decimal, quantity

if TYPE_CHECKING:
    from probdice.evaluation.results import Evaluation
    from probdice.report.cases import Pages

__all__ = ["EvaluationPage", "evaluation_page"]

DIGITS = 3  # digits of numbers in sentences
MAX_VERDICT_LENGTH = 230  # largest number of characters of the verdict, about two lines
MAX_TABLE_ROWS = 2000


@dataclass(frozen=True)
class EvaluationPage:
    """The texts, tables and figures on the page of an evaluation."""

    title: str
    subtitle: str
    rule: str
    verdict: str  # the first sentences of the conclusion
    conclusion: str  # the other sentences
    worst: tuple[str, ...]  # the worst region and the worst case
    remarks: tuple[str, ...]
    methods: tuple[tuple[str, str, str], ...]  # name, folder, colour
    measures: tuple[MeasureBlock, ...]
    first_measure: str  # the first ranking measure, which is shown first
    scheme: str  # how the scheme orders the methods
    rankings: tuple[Table, ...]  # rankings by all measures, by each measure and by each scheme
    rater_comparison: Table | None
    boundaries: Table | None
    regions: Table
    hidden_regions: int
    has_derived: bool
    components: Table  # missed and false components
    hidden_components: int
    charts: tuple[Chart, ...]
    headline: str
    unscored: Table
    hidden_unscored: int
    options: tuple[Fact, ...]
    data: dict[str, Any]


def evaluation_page(evaluation: Evaluation, pages: Pages, title: str | None) -> EvaluationPage:
    """Return the page, with links to the case pages."""
    summary = evaluation.summary
    colours = {name: PALETTE[k % len(PALETTE)] for k, name in enumerate(evaluation.methods)}
    regions, unscored = region_table(summary, list(evaluation.methods)), unscored_table(summary)
    components = component_table(evaluation, pages, colours)
    rankings = [ranking_by_all(summary, colours)] if len(summary["rank_by"]) > 1 else []
    if len(colours) > 1:
        rankings += [places_by_measure(summary, colours), places_by_scheme(summary, colours)]
    scored_count = len(evaluation.records) - len(evaluation.failures)
    counts = f"{quantity(len(evaluation.cases), 'case')}, {quantity(len(colours), 'method')}"
    sentences = evaluation.conclusion_sentences
    verdict_length = _verdict_length(sentences)
    return EvaluationPage(
        title=shortened(title, 200) if title else f"Evaluation: {counts}",
        subtitle=f"{scored_count} scored, {len(evaluation.missing)} missing, "
        f"{len(evaluation.failures)} failed; reference: {_reference(summary)}",
        rule=_missing_rule(summary),
        verdict=" ".join(sentences[:verdict_length]),
        conclusion=" ".join(sentences[verdict_length:]),
        worst=tuple(_worst_sentences(evaluation)),
        remarks=_remarks(summary),
        methods=tuple(
            (shortened(name), shortened(folder, 1000), colours[name])
            for name, folder in summary["methods"].items()
        ),
        measures=tuple(measure_block(key, summary, colours) for key in summary["measures"]),
        first_measure=summary["rank_by"][0],
        scheme=SCHEMES[summary["scheme"]].place,
        rankings=tuple(rankings),
        rater_comparison=rater_table(summary),
        boundaries=boundary_table(evaluation, colours),
        regions=replace(regions, rows=regions.rows[:MAX_TABLE_ROWS]),
        hidden_regions=max(0, len(regions.rows) - MAX_TABLE_ROWS),
        has_derived=bool(summary["derived"]),
        components=replace(components, rows=components.rows[:MAX_TABLE_ROWS]),
        hidden_components=max(0, len(components.rows) - MAX_TABLE_ROWS),
        charts=charts_of(evaluation),
        headline=_headline(evaluation),
        unscored=replace(unscored, rows=unscored.rows[:MAX_TABLE_ROWS]),
        hidden_unscored=max(0, len(unscored.rows) - MAX_TABLE_ROWS),
        options=evaluation_settings(evaluation),
        data=_data(evaluation, pages, colours),
    )


def _verdict_length(sentences: Sequence[str]) -> int:
    """Return the number of sentences that fit into the verdict, at least one."""
    lengths = accumulate(len(sentence) + 1 for sentence in sentences)
    return max(1, sum(length <= MAX_VERDICT_LENGTH + 1 for length in lengths))


def _worst_sentences(evaluation: Evaluation) -> list[str]:
    """Return sentences about the region and the case with the worst value of any method."""
    sentences = []
    means = [entry for entry in evaluation.summary["regions"] if entry["mean"] is not None]
    if means:
        entry = min(means, key=lambda entry: float(entry["mean"]))
        details = f"mean Dice {decimal(entry['mean'], DIGITS)}, “{shortened(entry['method'])}”"
        sentences.append(f"Worst region: {shortened(entry['label'])} ({details}).")
    sign = 1 if evaluation.higher_is_better(evaluation.rank_by[0]) else -1
    values = {
        (case, method): value
        for method, numbers in evaluation.values().items()
        for case, value in zip(evaluation.cases, numbers.tolist(), strict=True)
        if not isnan(value)
    }
    if values:
        case, method = min(values, key=lambda key: sign * values[key])
        title, value = evaluation.summary["titles"][evaluation.rank_by[0]], values[case, method]
        details = f"{title} {decimal(value, DIGITS)}, “{shortened(method)}”"
        sentences.append(f"Worst case: {shortened(case)} ({details}).")
    return sentences


def _headline(evaluation: Evaluation) -> str:
    """Return the numbers of failed and missing cases by method, or ""."""
    parts = []
    for name, counts in evaluation.counts.items():
        problems = [
            f"{count} {word}"
            for count, word in ((counts.failed, "failed"), (counts.missing, "missing"))
            if count
        ]
        if problems:
            cases = quantity(counts.cases, "case")
            parts.append(f"“{shortened(name)}”: {' and '.join(problems)} of {cases}")
    return "; ".join(parts)


def _chance(evaluation: Evaluation) -> dict[str, float | None]:
    """Return the chance levels of the score and of the adjusted score.

    The level of the score is the mean over the comparisons with a known chance level, or None.
    """
    levels = []
    for record in evaluation.records:
        with suppress(NeedsImages):
            if record.comparison is not None:
                levels.append(record.comparison.chance)
    defined_levels = [level for level in levels if not isnan(level)]
    return {
        "score": sum(defined_levels) / len(defined_levels) if defined_levels else None,
        "adjusted_score": 0.0,
    }


def _reference(summary: dict[str, Any]) -> str:
    """Return the reference folder, with a remark if the reference is the mean of the raters."""
    agreement = summary["rater_comparison"]
    if agreement is None or not agreement["reference_is_mean"]:
        return str(summary["reference"])
    return f"mean of {quantity(len(agreement['raters']), 'rater')} ({summary['reference']})"


def _missing_rule(summary: dict[str, Any]) -> str:
    """Return a sentence about the rule for missing and failed cases."""
    rule = summary["missing_rule"]
    return f"Missing and failed cases {MISSING_RULES[rule]} (missing: {rule})."


def _remarks(summary: dict[str, Any]) -> tuple[str, ...]:
    """Return the remarks on methods, and the notes on the whole run."""
    remarks = (
        f"“{shortened(method)}”: {text}"
        for method, texts in summary["remarks"].items()
        for text in texts
    )
    return (*remarks, *summary["notes"])


def _data(evaluation: Evaluation, pages: Pages, colours: dict[str, str]) -> dict[str, Any]:
    """Return the data of every case, for the dots and the table."""
    methods, measures = list(evaluation.methods), list(evaluation.measures)
    case_indices = {case: k for k, case in enumerate(evaluation.cases)}
    values = {key: evaluation.values(key) for key in measures}
    means = {
        key: [
            [_rounded(value) for value in centre_of(entry)]
            for entry in evaluation.summary["measures"][key]["methods"]
        ]
        for key in measures
    }
    return {
        "measures": measures,
        "names": [measure_words(evaluation.summary, key)[0] for key in measures],
        "descending": [not evaluation.higher_is_better(key) for key in measures],
        "means": means,
        # The methods in the order of the tables.
        "order": {
            key: [
                methods.index(rank["method"])
                for rank in evaluation.summary["measures"][key]["ranks"]
            ]
            for key in measures
        },
        "chance": _chance(evaluation),
        "together": {
            str(case_indices[case]): address
            for (case, method), address in pages.items()
            if not method
        },
        "methods": [shortened(name) for name in methods],
        "colours": [colours[name] for name in methods],
        "cases": [shortened(case, 200) for case in evaluation.cases],
        "records": [
            [
                case_indices[record.case],
                methods.index(record.method),
                *(
                    _rounded(values[key][record.method][case_indices[record.case]])
                    for key in measures
                ),
                pages.get((record.case, record.method), ""),
            ]
            for record in evaluation.records
            if record.comparison is not None
        ],
    }


def _rounded(value: float | None) -> float | str | None:
    """Return the value rounded to the displayed digits, to keep the page small."""
    if value is None or isnan(value):
        return None
    return decimal(value) if isinf(value) else float(decimal(value))
