"""The summary of an evaluation on the terminal, from what summary.json holds."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from probdice.cli.display import show
from probdice.cli.tables import FittingTable, plain_table
from probdice.formatting import decimal
from probdice.matching import listed
from probdice.options import Options

__all__ = ["Failures", "show_summary"]

NAMES = {
    "score": "score",
    "adjusted_score": "adjusted score",
    "matched_score": "matched score",
    "explained_reference": "explained, reference",
    "explained_prediction": "explained, prediction",
    "mean_dice": "mean Dice",
    "lowest_dice": "lowest Dice",
}
HEADLINE = ("score", "adjusted_score", "explained_reference", "explained_prediction", "lowest_dice")
MOST = 20  # regions, failures and missing partners
ALIKE = 3  # failures of one kind that are shown
LONGEST = 160  # characters of the line of a failure


class Failures:
    """Failed cases as lines, one each, and of many of one kind only the first."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.last: dict[str, str] = {}

    def line(self, case: str, method: str, error: str) -> str:
        """The line of a failed case, or "" where enough like it were shown."""
        message = error.strip().partition("\n")[0]
        kind = _kind(message.replace(case, ""))
        self.counts[kind] += 1
        if self.counts[kind] > ALIKE:
            return ""
        self.last[kind] = f"{case} ({method})"
        line = f"{case} ({method}): {message}"
        return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"

    def rest(self) -> list[str]:
        """How many of each kind were not shown."""
        return [
            f"{count - ALIKE} more like {self.last[kind]}"
            for kind, count in self.counts.items()
            if count > ALIKE
        ]


def _kind(message: str) -> str:
    """A message without what differs between cases: paths and numbers."""
    return re.sub(r"\S*[/\\]\S*|[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?", "", message)


def show_summary(summary: dict[str, Any], out: str, measure: str | None) -> None:
    """Methods, their differences and ranks, regions, failures and what was withheld.

    The measure by which methods are told apart is, unless one is given, the score, and where
    regions were merged the adjusted score.
    """
    merged = summary["options"]["merge"] != "none"
    chosen = measure or ("adjusted_score" if merged else "score")
    headline = list(dict.fromkeys([chosen, *HEADLINE]))
    parts: list[RenderableType] = [
        Text(f"{summary['reference']} ↔ {', '.join(summary['methods'])}", style="bold"),
        _asked(summary),
        _methods(summary, headline),
    ]
    measured = summary["measures"][chosen]
    if len(summary["methods"]) > 1:
        parts += [
            Text(f"between methods, by {NAMES[chosen]}, on the cases they share", style="bold"),
            _differences(measured["differences"]),
            _ranks(measured["ranks"]),
        ]
    if summary["regions"]:
        labels = list(dict.fromkeys(row["label"] for row in summary["regions"]))
        title = "Dice of the reference's regions: mean (n), 95 % interval"
        parts += [Text(title, style="bold"), _regions(summary, labels[:MOST])]
        if len(labels) > MOST:
            parts.append(f"… and {len(labels) - MOST} more regions in {out}/summary.json")
    parts += _failed(summary["failures"], out)
    parts += _missing(summary["missing"])
    notes = [*summary["notes"], *_notes(measured, chosen)]
    parts += [Text.assemble(("note: ", "yellow"), note) for note in notes]
    show(*parts, f"everything is in {out}: cases.csv, regions.csv, summary.json, cases.jsonl")


def _asked(summary: dict[str, Any]) -> str:
    """What was compared, and how, in a line."""
    options = Options.from_dict(summary["options"])
    merge = [] if options.merge == "none" else [f"merge {options.merge}"]
    asked = ", ".join([*options.in_words(), *merge])
    cases, methods = len({case for case, _ in summary["jobs"]}), len(summary["methods"])
    return f"{asked}: {cases} case{'s' * (cases != 1)}, {methods} method{'s' * (methods != 1)}"


def _methods(summary: dict[str, Any], measures: Sequence[str]) -> FittingTable:
    table = plain_table(
        "measure", "method", ">n", ">mean", "95 % interval", ">median", ">deviation",
        "quartiles", "worst cases",
    )  # fmt: skip
    for measure in measures:
        for k, row in enumerate(summary["measures"][measure]["methods"]):
            table.add_row(
                NAMES[measure] if k == 0 else "",
                Text(row["method"]),
                str(row["n"]),
                decimal(row["mean"]),
                _interval(row["interval"]),
                decimal(row["median"]),
                decimal(row["deviation"]),
                f"{decimal(row['lower_quartile'])} {decimal(row['upper_quartile'])}",
                Text(", ".join(case for case, _ in row["worst"][:3])),
            )
    return table


def _differences(rows: Sequence[dict[str, Any]]) -> FittingTable:
    table = plain_table(
        "difference", ">n", ">mean", "95 % interval", ">Wilcoxon p", ">Holm p"
    )  # fmt: skip
    for row in rows:
        table.add_row(
            Text(f"{row['first']} − {row['second']}"),
            str(row["n"]),
            _signed(row["mean"]),
            _interval(row["interval"], _signed),
            _probability(row["p"]),
            _probability(row["p_holm"]),
        )
    return table


def _ranks(rows: Sequence[dict[str, Any]]) -> FittingTable:
    table = plain_table(">place", "95 % interval", "method", ">mean rank", "95 % interval", ">n")
    for row in rows:
        table.add_row(
            _short(row["place"]),
            _interval(row["place_interval"], _short),
            Text(row["method"]),
            "–" if row["mean_rank"] is None else f"{row['mean_rank']:.2f}",
            _interval(row["mean_rank_interval"], lambda x: "–" if x is None else f"{x:.2f}"),
            str(row["n"]),
        )
    return table


def _regions(summary: dict[str, Any], labels: Sequence[Any]) -> FittingTable:
    """Methods side by side."""
    table = plain_table("region", *summary["methods"])
    cells = {
        (row["method"], row["label"]): f"{decimal(row['mean'])} ({row['n']}) "
        f"{_interval(row['interval'])}"
        for row in summary["regions"]
    }
    for label in labels:
        row = [cells.get((method, label), "–") for method in summary["methods"]]
        table.add_row(Text(str(label)), *row)
    return table


def _failed(failures: Sequence[dict[str, str]], out: str) -> list[RenderableType]:
    known = Failures()
    written = [known.line(one["case"], one["method"], one["error"]) for one in failures]
    lines = [line for line in written if line]
    hidden = len(lines) - MOST
    lines = lines[:MOST] + known.rest()
    if hidden > 0:
        lines.append(f"{hidden} more of other kinds")
    shown: list[RenderableType] = [Text.assemble(("failed: ", "red"), line) for line in lines]
    if shown:
        shown.append(f"cases.csv has whole messages; probdice show {out} CASE prints one")
    return shown


def _missing(missing: Sequence[dict[str, str]]) -> list[RenderableType]:
    lines: list[RenderableType] = [
        Text.assemble(("missing: ", "red"), f"{one['case']} ({one['method']}): no {one['side']}")
        for one in missing[:MOST]
    ]
    if len(missing) > MOST:
        lines.append(f"… and {len(missing) - MOST} more missing; cases.csv names all of them")
    return lines


def _notes(measured: dict[str, Any], measure: str) -> list[str]:
    """Why numbers are missing or unusual: each reason once, with the methods it concerns."""
    subjects: dict[str, list[str]] = {}
    for row in measured["methods"]:
        if row["interval"]["kind"] == "withheld":
            reason = f"intervals are withheld: {row['interval']['reason']}"
            subjects.setdefault(reason, []).append(row["method"])
        elif row["interval"]["kind"] == "percentile":
            reason = f"interval by percentiles*: {row['interval']['reason']}"
            subjects.setdefault(reason, []).append(row["method"])
        if row["missing"]:
            cases = "case has" if row["missing"] == 1 else "cases have"
            reason = f"{row['missing']} {cases} no {NAMES[measure]}"
            subjects.setdefault(reason, []).append(row["method"])
    for row in measured["differences"]:
        if row["reason"]:
            pair = f"{row['first']} − {row['second']}"
            subjects.setdefault(row["reason"], []).append(pair)
    notes = [f"{listed(names)}: {reason}" for reason, names in subjects.items()]
    if any(row["p"] is not None for row in measured["differences"]):
        notes.append(
            "Holm's correction is for the pairs of methods, not for trying several measures: "
            "choose one beforehand"
        )
    return notes


def _interval(interval: dict[str, Any], write: Any = None) -> str:
    if interval["kind"] == "withheld":
        return "withheld"
    write = write or decimal
    mark = "*" if interval["kind"] == "percentile" and "undefined" in interval["reason"] else ""
    return f"{write(interval['low'])} to {write(interval['high'])}{mark}"


def _signed(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{'-' if value < 0 else '+'}{decimal(abs(value))}"


def _short(value: float | None) -> str:
    return "–" if value is None else f"{value:g}"


def _probability(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.2g}" if value < 0.001 else decimal(value, 3)
