"""Create files for publication: ranking.csv, how.md, and files.csv, the list of input files.

ranking.csv and how.md are created from the content of summary.json and therefore agree with this
file. files.csv is created from the records.
"""

import csv
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from io import StringIO
from pathlib import Path
from typing import Any

from probdice.evaluation.conclusion import conclusion
from probdice.evaluation.folders import relative_path
from probdice.evaluation.intervals import LEVEL, RESAMPLES
from probdice.evaluation.pairing import ROLES
from probdice.evaluation.publication_table import as_sentence, remarks_by_method
from probdice.evaluation.ranking_schemes import RANKING_SCHEMES
from probdice.evaluation.rater_comparison import RaterFile
from probdice.evaluation.record import Record
from probdice.evaluation.tables import as_csv
from probdice.method.region_labels import listed
from probdice.metrics.boundary_measures import boundary_definition
from probdice.metrics.component_measures import component_definition
from probdice.metrics.derived import derived_definition
from probdice.metrics.registry import MISSING_RULES
from probdice.options import CompareOptions, StatisticsOptions
from probdice.text.escaping import markdown
from probdice.text.formatting import percent, quantity

__all__ = ["ALL_MEASURES", "files_csv", "how_text", "ranking_csv"]

RANKING = (
    *("measure", "scheme", "place", "method", "value", "mean", "median", "infinite", "ci_low"),
    *("ci_high", "n", "mean_equal_labels", "mean_rank", "mean_rank_low", "mean_rank_high"),
    *("place_low", "place_high", "stability", "ranked_cases", "last", "cases", "scored", "failed"),
    *("missing", "remarks"),
)
RANK_KEYS = ("place", "method", "value", "mean_rank", "stability", "last")  # as in summary.json
ALL_MEASURES = "all"  # key of the combined ranking
FILES = ("role", "method", "case", "file", "bytes", "sha256")

Summary = Mapping[str, Any]


def ranking_csv(summary: Summary) -> bytes:
    """Return ranking.csv, with one row per measure and method, sorted by measure and place.

    If there are several ranking measures, the first rows contain the combined ranking.
    """
    rows = []
    if len(summary["rank_by"]) > 1:
        rows += [_rank_row(summary, ALL_MEASURES, rank, {}) for rank in summary["ranking"]["ranks"]]
    for measure, content in summary["measures"].items():
        means = {row["method"]: row for row in content["methods"]}
        for rank in content["ranks"]:
            mean = means[rank["method"]]
            values = {
                **{key: mean[key] for key in ("mean", "median", "infinite", "n")},
                "ci_low": mean["interval"]["low"],
                "ci_high": mean["interval"]["high"],
                "mean_equal_labels": mean["equal_labels"],
            }
            rows.append(_rank_row(summary, measure, rank, values))
    return as_csv(rows, RANKING)


def _rank_row(
    summary: Summary, measure: str, rank: Mapping[str, Any], values: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a row of ranking.csv."""
    method = rank["method"]
    count = next(entry for entry in summary["counts"] if entry["method"] == method)
    return {
        "measure": measure,
        "scheme": summary["scheme"],
        **{key: rank[key] for key in RANK_KEYS},
        **values,
        "mean_rank_low": rank["mean_rank_interval"]["low"],
        "mean_rank_high": rank["mean_rank_interval"]["high"],
        "place_low": rank["place_interval"]["low"],
        "place_high": rank["place_interval"]["high"],
        "ranked_cases": rank["n"],
        **{key: count[key] for key in ("cases", "scored", "failed", "missing")},
        "remarks": "; ".join(summary["remarks"][method]),
    }


def how_text(summary: Summary, files: bytes) -> str:
    """Return how.md: a methods paragraph, the conclusion, remarks, options and versions.

    The last line contains the SHA-256 of files.csv.
    """
    versions = ", ".join(f"{name} {version}" for name, version in summary["versions"].items())
    machine = ", ".join(summary["environment"].values())
    number = len(list(csv.reader(StringIO(files.decode(), newline="")))) - 1
    options = _option_values(summary)
    lines = [
        "# How these results were computed",
        "",
        markdown(_methods_paragraph(summary)),
        "",
        markdown(conclusion(summary)),
        "",
        *(markdown(text) for text in remarks_by_method(summary)),
        *(markdown(f"Note: {as_sentence(note)}") for note in summary["notes"]),
        "",
        "| option | value |",
        "|---|---|",
        *(f"| {name} | {markdown(_value(value))} |" for name, value in options.items()),
        "",
        f"Versions: {versions}; Python {machine}.",
        "",
        f"files.csv lists the SHA-256 of {quantity(number, 'file')}. The SHA-256 of files.csv is "
        f"{hashlib.sha256(files).hexdigest()}. Paths are relative to the results folder.",
    ]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def _methods_paragraph(summary: Summary) -> str:
    """Return a paragraph that describes the evaluation, for a methods section."""
    options = CompareOptions.from_dict(summary["options"])
    cases, methods = summary["counts"][0]["cases"], len(summary["methods"])
    titles = [summary["titles"][measure] for measure in summary["rank_by"]]
    scheme = RANKING_SCHEMES[summary["scheme"]]
    subjects = summary["subjects"]
    subject_text, units, subject_sentence = "", "cases", ""
    if subjects is not None:
        subject_text, units = f" of {quantity(len(set(subjects.values())), 'subject')}", "subjects"
        subject_sentence = (
            " Cases of the same subject are not independent: resamples draw subjects with all of "
            "their cases, and tests use one value per subject."
        )
    text = (
        f"probdice {summary['versions']['probdice']} ({', '.join(options.in_words())}) compared "
        f"{quantity(methods, 'method')} on {quantity(cases, 'case')}{subject_text} with "
        f"{_reference(summary['rater_comparison'])}. "
        f"{scheme.sentence(titles, summary['test'])} "
        f"Missing and failed cases {MISSING_RULES[summary['missing_rule']]}. "
        f"Confidence intervals (CI) are {percent(LEVEL, 0)} bootstrap intervals over the {units} "
        f"with {RESAMPLES} resamples. They are bias-corrected and accelerated for means, and use "
        f"percentiles for medians and ranks. Rank stability is the share of resamples in which a "
        f"method keeps its place.{subject_sentence}"
    )
    if options.derived:
        text += f" {derived_definition(dict(options.derived))}"
    if options.components is not None:
        threshold = summary["others"]["component_threshold"]
        text += " " + component_definition(
            options.components, options.connectivity, options.minimum_size, threshold
        )
    if options.boundaries:
        text += f" {boundary_definition(options.tolerance, options.infinite)}"
    return text


def _option_values(summary: Summary) -> dict[str, Any]:
    """Return the options of the run that how.md lists, by name."""
    raters = summary["rater_comparison"]
    copied_keys = ("probabilities", "patterns", "reference", "methods", "mask", "image", "surface")
    return {
        **summary["options"],
        "similarity": str(CompareOptions.from_dict(summary["options"]).similarity),
        **asdict(StatisticsOptions.from_summary(summary)),
        "column": {column["name"]: column["file"] for column in summary["external_columns"]},
        **{key: value for key, value in summary["others"].items() if key != "components"},
        **{key: summary[key] for key in copied_keys},
        "raters": None if raters is None else raters["raters"],
    }


def files_csv(records: Iterable[Record], raters: Iterable[RaterFile], out: Path) -> bytes:
    """Return files.csv, which lists the path relative to `out` and the SHA-256 of every file read.

    In the rows of raters' files, the role is "rater" and the method is the name of the rater.
    """
    entries: list[tuple[str, str, str, str, int | None, str | None]] = [
        (role, record.method if role == "prediction" else "", record.case, *file)
        for record in records
        for role in ROLES
        for file in record.files_of(role)
    ]
    entries += [
        (
            "rater",
            entry.rater,
            entry.case,
            entry.file,
            entry.bytes,
            entry.sha256,
        )
        for entry in raters
    ]
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    for role, method, case, path, size, sha in entries:
        cells = (role, method, case, relative_path(path, out), size, sha)
        rows[role, method, cells[3]] = dict(zip(FILES, cells, strict=True))
    order = {role: k for k, role in enumerate((*ROLES, "rater"))}
    sorted_rows = sorted(rows.values(), key=lambda row: (order[row["role"]], row["method"]))
    return as_csv(sorted_rows, FILES)


def _reference(agreement: Mapping[str, Any] | None) -> str:
    """Return a description of the reference for the methods paragraph."""
    if agreement is None:
        return "the reference"
    raters = (
        f"{quantity(len(agreement['raters']), 'rater')} ({listed(list(agreement['raters']), 20)})"
    )
    if agreement["reference_is_mean"]:
        return f"the mean of {raters} and with each of these raters"
    return f"the reference and with each of {raters}"


def _value(value: Any) -> str:
    """Return the value of an option as a table cell."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_value(item)}" for key, item in value.items()) or "–"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_value, value)) or "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "–" if value is None else str(value)
