"""Files to publish: the ranking as CSV, Markdown and LaTeX, and how.md.

All of them are written from the content of summary.json, so that they agree with it.
"""

import csv
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from probdice.evaluation.folders import relative_path
from probdice.evaluation.pairing import ROLES
from probdice.evaluation.rater_comparison import RaterFile
from probdice.evaluation.record import Record
from probdice.evaluation.statistics import LEVEL, RESAMPLES
from probdice.evaluation.tables import as_csv
from probdice.method.matching import listed
from probdice.metrics.registry import MISSING_RULES, title_of
from probdice.options import Options
from probdice.text.escaping import markdown, printable, tex
from probdice.text.formatting import decimal, percent

__all__ = ["files_csv", "how_made", "ranking_csv", "table_md", "table_tex"]

RANKING = (
    *("measure", "place", "method", "mean", "mean_low", "mean_high", "n", "mean_equal_labels"),
    *("mean_rank", "mean_rank_low", "mean_rank_high", "place_low", "place_high", "kept"),
    *("ranked_cases", "last", "cases", "scored", "failed", "missing", "remarks"),
)
FILES = ("role", "method", "case", "file", "bytes", "sha256")

Summary = Mapping[str, Any]


def ranking_csv(summary: Summary) -> bytes:
    """One row per measure and method: the measure that ranks first, the best method first."""
    counts = {one["method"]: one for one in summary["counts"]}
    rows = []
    for measure, content in summary["measures"].items():
        means = {one["method"]: one for one in content["methods"]}
        for rank in content["ranks"]:
            method = rank["method"]
            mean = means[method]
            rows.append(
                {
                    "measure": measure,
                    "place": _plain(rank["place"]),
                    "method": method,
                    "mean": _plain(mean["mean"]),
                    "mean_low": _plain(mean["interval"]["low"]),
                    "mean_high": _plain(mean["interval"]["high"]),
                    "n": mean["n"],
                    "mean_equal_labels": _plain(mean["equal_labels"]),
                    "mean_rank": _plain(rank["mean_rank"]),
                    "mean_rank_low": _plain(rank["mean_rank_interval"]["low"]),
                    "mean_rank_high": _plain(rank["mean_rank_interval"]["high"]),
                    "place_low": _plain(rank["place_interval"]["low"]),
                    "place_high": _plain(rank["place_interval"]["high"]),
                    "kept": _plain(rank["kept"]),
                    "ranked_cases": rank["n"],
                    "last": rank["last"],
                    **{key: counts[method][key] for key in counts[method] if key != "method"},
                    "remarks": "; ".join(summary["remarks"][method]),
                }
            )
    return as_csv(rows, RANKING)


def table_md(summary: Summary) -> str:
    """The ranking as a Markdown table, with remarks and notes."""
    heads, rows = _table(summary)
    lines = [
        f"| {' | '.join(heads)} |",
        f"|{'|'.join('---' if head == 'method' else '---:' for head in heads)}|",
        *(f"| {' | '.join(map(markdown, row))} |" for row in rows),
        "",
        *(f"{markdown(text)}  " for text in _remarks(summary)),
    ]
    return "\n".join(lines).rstrip() + "\n"


def table_tex(summary: Summary) -> str:
    """The ranking as a LaTeX tabular that needs no package; remarks are comments below."""
    heads, rows = _table(summary)
    columns = "".join("l" if head == "method" else "r" for head in heads)
    lines = [
        rf"\begin{{tabular}}{{{columns}}}",
        r"\hline",
        " & ".join(map(tex, heads)) + r" \\",
        r"\hline",
        *(" & ".join(map(tex, row)) + r" \\" for row in rows),
        r"\hline",
        r"\end{tabular}",
        *(f"% {printable(text)}" for text in _remarks(summary)),
    ]
    return "\n".join(lines) + "\n"


def how_made(summary: Summary, files: bytes) -> str:
    """The text of how.md: a methods paragraph, all options, versions and SHA-256 of files."""
    options = Options.from_dict(summary["options"])
    measure = title_of(summary["rank_by"])
    missing = MISSING_RULES[summary["missing_rule"]]
    versions = ", ".join(f"{name} {version}" for name, version in summary["versions"].items())
    cases, methods = summary["counts"][0]["cases"], len(summary["methods"])
    agreement = summary["yardstick"]
    text = (
        f"probdice {summary['versions']['probdice']} ({', '.join(options.in_words())}) compared "
        f"{_count(methods, 'method')} on {_count(cases, 'case')} with {_reference(agreement)}. "
        f"Methods are ranked by {measure} within every case, where ties share their mean rank, and "
        f"then by the mean of these ranks. Methods with equal mean ranks share a place. Missing "
        f"and failed cases {missing}. "
        f"Confidence intervals (CI) are {percent(LEVEL, 0)} bootstrap intervals over the cases: "
        f"bias-corrected and accelerated for means, percentiles for ranks, {RESAMPLES} resamples. "
        f"Rank stability is the share of resamples in which a method has the same place."
    )
    option_values = {
        "similarity": str(options.similarity),
        **{key: value for key, value in summary["options"].items() if key != "similarity"},
        "missing": summary["missing_rule"],
        "rank_by": summary["rank_by"],
        **summary["others"],
        "probabilities": summary["probabilities"],
        "patterns": summary["patterns"],
        "reference": summary["reference"],
        "methods": summary["methods"],
        "mask": summary["mask"],
        "image": summary["image"],
        "raters": None if agreement is None else agreement["raters"],
    }
    machine = ", ".join(summary["environment"].values())
    number = len(list(csv.reader(StringIO(files.decode(), newline="")))) - 1
    lines = [
        "# How these results were computed",
        "",
        markdown(text),
        "",
        *(markdown(text) for text in _by_method(summary)),
        *(markdown(f"Note: {_sentence(note)}") for note in summary["notes"]),
        "",
        "| option | value |",
        "|---|---|",
        *(f"| {name} | {markdown(_value(value))} |" for name, value in option_values.items()),
        "",
        f"Versions: {versions}; Python {machine}.",
        "",
        f"Files: {_count(number, 'file')}, each with its SHA-256 in files.csv, "
        f"whose own SHA-256 is {hashlib.sha256(files).hexdigest()}. Paths are relative to the "
        f"results folder.",
    ]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def files_csv(records: Iterable[Record], raters: Iterable[RaterFile], out: Path) -> bytes:
    """Every file that was read, with its SHA-256 and its path relative to a folder.

    Files of raters have the role "rater" and the name of the rater as their method.
    """
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}

    def add(
        role: str, method: str, case: str, path: str, size: int | None, sha: str | None
    ) -> None:
        file = relative_path(path, out)
        rows[role, method, file] = {
            "role": role,
            "method": method,
            "case": case,
            "file": file,
            "bytes": _plain(size),
            "sha256": _plain(sha),
        }

    for record in records:
        for role in ROLES:
            method = record.method if role == "prediction" else ""
            for path, size, sha in record.files_of(role):
                add(role, method, record.case, path, size, sha)
    for one in raters:
        add("rater", one.rater, one.case, one.file, one.bytes, one.sha256)
    order = {role: k for k, role in enumerate((*ROLES, "rater"))}
    ordered = sorted(rows.values(), key=lambda row: (order[row["role"]], row["method"]))
    return as_csv(ordered, FILES)


def _table(summary: Summary) -> tuple[list[str], list[list[str]]]:
    """Places, means with confidence intervals by the measure that ranks, and other means."""
    chosen, *others = summary["measures"]
    if summary["options"]["merge"] == "none":  # then the matched score is the score
        others = [measure for measure in others if measure != "matched_score"]
    counts = {one["method"]: one for one in summary["counts"]}
    means = {
        measure: {one["method"]: one for one in summary["measures"][measure]["methods"]}
        for measure in summary["measures"]
    }
    differing = any(one["equal_labels"] is not None for one in means[chosen].values())
    heads = [
        *("place", "method", f"{title_of(chosen)} (95 % CI)"),
        *([f"{title_of(chosen)}, equal labels"] if differing else []),
        *("mean rank", "rank stability", "cases"),
        *(title_of(measure) for measure in others),
    ]
    rows = []
    for rank in summary["measures"][chosen]["ranks"]:
        method = rank["method"]
        one, count = means[chosen][method], counts[method]
        low, high = one["interval"]["low"], one["interval"]["high"]
        interval = "" if low is None else f" ({decimal(low, 3)}–{decimal(high, 3)})"
        rows.append(
            [
                "–" if rank["place"] is None else str(rank["place"]),
                method,
                f"{decimal(one['mean'], 3)}{interval}",
                *([decimal(one["equal_labels"], 3)] if differing else []),
                "–" if rank["mean_rank"] is None else f"{rank['mean_rank']:.2f}",
                "–" if rank["kept"] is None else percent(rank["kept"], 0),
                f"{count['scored']} of {count['cases']}",
                *(decimal(means[measure][method]["mean"], 3) for measure in others),
            ]
        )
    return heads, rows


def _remarks(summary: Summary) -> list[str]:
    """The rule for missing cases, the remarks on methods, and the notes."""
    rule = summary["missing_rule"]
    return [
        f"Missing and failed cases {MISSING_RULES[rule]} (missing: {rule}).",
        *_by_method(summary),
        *(f"Note: {_sentence(note)}" for note in summary["notes"]),
    ]


def _by_method(summary: Summary) -> list[str]:
    """The remarks on every method, one per line."""
    return [
        _sentence(f"{method}: {text}")
        for method, texts in summary["remarks"].items()
        for text in texts
    ]


def _reference(agreement: Mapping[str, Any] | None) -> str:
    """The reference of the methods paragraph."""
    if agreement is None:
        return "the reference"
    raters = (
        f"{_count(len(agreement['raters']), 'rater')} ({listed(list(agreement['raters']), 20)})"
    )
    if agreement["reference_is_mean"]:
        return f"the mean of {raters} and with each of these raters"
    return f"the reference and with each of {raters}"


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _value(value: Any) -> str:
    """The value of an option as a table cell."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_value(one)}" for key, one in value.items()) or "–"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_value, value)) or "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "–" if value is None else str(value)


def _plain(value: Any) -> Any:
    return "" if value is None else value


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
