"""What an organiser publishes: the ranking as CSV, Markdown and LaTeX, and how it was made.

All of it is written from what summary.json holds, so that it says the same.
"""

import csv
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path, PurePosixPath
from typing import Any

from probdice.escaping import markdown, printable, tex
from probdice.evaluation.folders import relative_path
from probdice.evaluation.pairing import ROLES
from probdice.evaluation.record import NAMES, Record
from probdice.evaluation.tables import as_csv
from probdice.formatting import decimal, percent
from probdice.options import Options
from probdice.statistics import LEVEL, RESAMPLES

__all__ = ["RULES", "files_csv", "how_made", "ranking_csv", "table_md", "table_tex"]

RULES = {  # what becomes of a case of a method that is missing or failed
    "worst": "rank last",
    "zero": "rank last and count as 0 in means",
    "exclude": "are left out of the ranking for all methods",
}
RANKING = (
    *("measure", "place", "method", "mean", "mean_low", "mean_high", "n"),
    *("mean_rank", "mean_rank_low", "mean_rank_high", "place_low", "place_high", "kept"),
    *("ranked_cases", "last", "cases", "scored", "failed", "missing", "remarks"),
)
FILES = ("role", "method", "case", "file", "bytes", "sha256")

Summary = Mapping[str, Any]


def ranking_csv(summary: Summary) -> bytes:
    """One row per measure and method, the measure that ranks first, the best method first."""
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
    """The ranking as a table of Markdown, with what has to be said of it."""
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
    """The ranking as a tabular of LaTeX that needs no package; remarks are comments below."""
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
    """A paragraph for the methods section, every option, and the fingerprint of all files."""
    options = Options.from_dict(summary["options"])
    measure = NAMES[summary["rank_by"]]
    versions = ", ".join(f"{name} {version}" for name, version in summary["versions"].items())
    cases, methods = summary["counts"][0]["cases"], len(summary["methods"])
    text = (
        f"{_count(cases, 'case')} of {_count(methods, 'method')} were compared with the reference "
        f"by probdice {summary['versions']['probdice']} ({', '.join(options.in_words())}). "
        f"Methods are ranked by the {measure}: within every case, ties sharing their mean rank, "
        f"and then by the mean of these ranks; methods with equal mean ranks share a place. Cases "
        f"that a method lacks, or that could not be compared, {RULES[summary['missing_rule']]}. "
        f"Intervals are {percent(LEVEL, 0)} bootstrap intervals over the cases (bias-corrected and "
        f"accelerated for means, percentiles for ranks; {RESAMPLES} resamples); “kept” is the "
        f"share of resamples in which a method has the place it has."
    )
    asked = {
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
    }
    machine = ", ".join(summary["environment"].values())
    number = len(list(csv.reader(StringIO(files.decode(), newline="")))) - 1
    lines = [
        "# How this was made",
        "",
        markdown(text),
        "",
        *(
            markdown(f"{method}: {'; '.join(texts)}.")
            for method, texts in summary["remarks"].items()
            if texts
        ),
        *(markdown(f"Note: {note}.") for note in summary["notes"]),
        "",
        "| option | value |",
        "|---|---|",
        *(f"| {name} | {markdown(_value(value))} |" for name, value in asked.items()),
        "",
        f"Versions: {versions}; Python {machine}.",
        "",
        f"Files: {_count(number, 'file')}, each with its SHA-256 in files.csv, "
        f"whose own SHA-256 is {hashlib.sha256(files).hexdigest()}. Paths are seen from the folder "
        f"of the results.",
    ]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def files_csv(records: Iterable[Record], out: Path) -> bytes:
    """Every file that was read, once, with its fingerprint and its path from a folder."""
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    for record in records:
        for role in ROLES:
            paths = [relative_path(path.partition(":")[0], out) for path in getattr(record, role)]
            for name, size, _, content in record.inputs[role]:
                beside = [path for path in paths if PurePosixPath(path).name == name] or paths
                file = str(PurePosixPath(beside[0]).with_name(name))
                method = record.method if role == "prediction" else ""
                rows[role, method, file] = {
                    "role": role,
                    "method": method,
                    "case": record.case,
                    "file": file,
                    "bytes": "" if size is None else size,
                    "sha256": content or "",
                }
    order = {role: k for k, role in enumerate(ROLES)}
    ordered = sorted(rows.items(), key=lambda item: (order[item[1]["role"]], item[1]["method"]))
    return as_csv([row for _, row in ordered], FILES)


def _table(summary: Summary) -> tuple[list[str], list[list[str]]]:
    """Places, means with intervals by the measure that ranks, and the means of the others."""
    chosen, *others = summary["measures"]
    if summary["options"]["merge"] == "none":  # then it is the score
        others = [measure for measure in others if measure != "matched_score"]
    counts = {one["method"]: one for one in summary["counts"]}
    means = {
        measure: {one["method"]: one for one in summary["measures"][measure]["methods"]}
        for measure in summary["measures"]
    }
    heads = [
        *("place", "method", f"{NAMES[chosen]} (95 % interval)", "mean rank", "kept", "cases"),
        *(NAMES[measure] for measure in others),
    ]
    rows = []
    for rank in summary["measures"][chosen]["ranks"]:
        method = rank["method"]
        one, count = means[chosen][method], counts[method]
        low, high = one["interval"]["low"], one["interval"]["high"]
        interval = "" if low is None else f" ({decimal(low, 3)} to {decimal(high, 3)})"
        rows.append(
            [
                "–" if rank["place"] is None else str(rank["place"]),
                method,
                f"{decimal(one['mean'], 3)}{interval}",
                "–" if rank["mean_rank"] is None else f"{rank['mean_rank']:.2f}",
                "–" if rank["kept"] is None else percent(rank["kept"], 0),
                f"{count['scored']} of {count['cases']}",
                *(decimal(means[measure][method]["mean"], 3) for measure in others),
            ]
        )
    return heads, rows


def _remarks(summary: Summary) -> list[str]:
    rule = RULES[summary["missing_rule"]]
    texts = [
        f"Cases that a method lacks or that failed {rule} (missing: {summary['missing_rule']})."
    ]
    texts += [f"{name}: {'; '.join(said)}." for name, said in summary["remarks"].items() if said]
    return [*texts, *(f"Note: {note}." for note in summary["notes"])]


def _value(value: Any) -> str:
    """A value of an option as a cell of a table."""
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
