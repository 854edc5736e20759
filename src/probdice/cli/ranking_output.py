"""Print the summary of an evaluation, from the content of summary.json."""

import re
from collections import Counter
from collections.abc import Sequence
from os.path import abspath, join, relpath
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from probdice.cli.display import note_line, show
from probdice.cli.terminal_tables import Column, FittingTable, plain_table
from probdice.method.matching import listed
from probdice.metrics.registry import MISSING_RULES, REGISTRY, title_of
from probdice.options import Options
from probdice.text.escaping import printable
from probdice.text.formatting import decimal, percent

__all__ = ["Failures", "show_summary"]

SHORT = {
    name: measure.title for name, measure in REGISTRY.items()
} | {  # headings of narrow columns
    "adjusted_score": "adjusted score",
    "explained_reference": "expl. ref.",
    "explained_prediction": "expl. pred.",
    "foreground_dice": "foregr. Dice",
}
MAX_LINES = 20  # regions and failures that are printed
MAX_CASES = 10  # missing cases that are named
MAX_OF_ONE_KIND = 3  # failures that are printed
MAX_LENGTH = 160  # characters of the line of a failure


class Failures:
    """One line per failed case, for the first failures of every kind."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.last: dict[str, str] = {}

    def line(self, case: str, method: str, error: str) -> str:
        """Return the line of a failed case, or "" after the first ones of its kind."""
        message = error.strip().partition("\n")[0]
        kind = _kind(message.replace(case, ""))
        self.counts[kind] += 1
        if self.counts[kind] > MAX_OF_ONE_KIND:
            return ""
        self.last[kind] = printable(f"{case} ({method})")
        line = printable(f"{case} ({method}): {message}")
        return line if len(line) <= MAX_LENGTH else f"{line[: MAX_LENGTH - 1]}…"

    def rest(self) -> list[str]:
        """Return one line per kind with the number of failures that were not printed."""
        return [
            f"{count - MAX_OF_ONE_KIND} more like {self.last[kind]}"
            for kind, count in self.counts.items()
            if count > MAX_OF_ONE_KIND
        ]


def _kind(message: str) -> str:
    """Return a message without paths and numbers, which differ between cases."""
    return re.sub(r"\S*[/\\]\S*|[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?", "", message)


def show_summary(summary: dict[str, Any], out: str, measure: str | None) -> None:
    """Print the ranking with remarks, then all measures, regions, failures and notes.

    `measure` replaces the measure that ranks.
    """
    chosen = measure or summary["rank_by"]
    measured = summary["measures"][chosen]
    several = len(summary["methods"]) > 1
    reference = abspath(join(out, summary["reference"]))
    reference = min(reference, relpath(reference), key=len)
    parts: list[RenderableType] = [
        Text(f"{reference} ↔ {', '.join(summary['methods'])}", style="bold"),
        _settings(summary),
        "",
        Text(_title(summary, chosen), style="bold"),
        _methods(summary, chosen),
    ]
    remarks = [
        note_line(f"{method}: {text}")
        for method, texts in summary["remarks"].items()
        for text in texts
    ]
    parts += [*remarks, ""] if remarks else []
    if summary["yardstick"] is not None:
        title = f"mean {title_of(summary['yardstick']['measure'])} against each rater"
        parts += [Text(title, style="bold"), _raters(summary["yardstick"]), ""]
    parts += [Text("means of all measures", style="bold"), _means(summary, chosen)]
    if several:
        parts += [
            Text("places by all measures, with rank stability (bootstrap)", style="bold"),
            _places(summary, chosen),
            Text(f"differences in {title_of(chosen)} on the cases that both have", style="bold"),
            _differences(measured["differences"]),
        ]
    if summary["regions"]:
        labels = list(dict.fromkeys(row["label"] for row in summary["regions"]))
        title = "Dice of the reference's regions: mean (cases), 95 % CI"
        parts += [Text(title, style="bold"), _regions(summary, labels[:MAX_LINES])]
        if len(labels) > MAX_LINES:
            parts.append(f"… and {len(labels) - MAX_LINES} more regions in {out}/summary.json")
    parts += _worst(measured["methods"], chosen)
    parts += _failed(summary["failures"], out)
    parts += _missing(summary["missing"])
    parts += [note_line(note) for note in (*summary["notes"], *_notes(summary, chosen))]
    show(
        *parts,
        f"all results are in {out}: ranking.csv, table.md, table.tex, how.md, cases.csv, "
        f"regions.csv, files.csv, summary.json, cases.jsonl",
    )


def _settings(summary: dict[str, Any]) -> str:
    """The options, and the numbers of cases and methods, in a line."""
    options = Options.from_dict(summary["options"])
    merge = [] if options.merge == "none" else [f"merge {options.merge}"]
    mask = ["within masks"] if summary["mask"] is not None else []
    settings = ", ".join([*options.in_words(), *merge, *mask])
    cases, methods = summary["counts"][0]["cases"], len(summary["methods"])
    return f"{settings}: {cases} case{'s' * (cases != 1)}, {methods} method{'s' * (methods != 1)}"


def _title(summary: dict[str, Any], measure: str) -> str:
    """The title of the first table, with the rule for missing cases."""
    if len(summary["methods"]) == 1:
        return title_of(measure)
    rule = summary["missing_rule"]
    missing = f"missing and failed cases {MISSING_RULES[rule]} ({rule})"
    return f"ranking by {title_of(measure)}; {missing}"


def _methods(summary: dict[str, Any], measure: str) -> FittingTable:
    """The methods by one measure, the best first."""
    measured = summary["measures"][measure]
    several = len(summary["methods"]) > 1
    # Summaries of earlier versions do not have the mean with equal labels.
    equal_labels = {row["method"]: row.get("equal_labels") for row in measured["methods"]}
    differing = any(mean is not None for mean in equal_labels.values())
    heads = ["method", ">scored", ">mean", "95 % CI", *([">equal labels"] if differing else [])]
    heads = (
        [">place", *heads, ">mean rank", ">stability"]
        if several
        else [*heads, ">median", "quartiles"]
    )
    table = plain_table(*heads)
    rows = {row["method"]: row for row in measured["methods"]}
    counts = {row["method"]: row for row in summary["counts"]}
    for rank in measured["ranks"]:
        row, count = rows[rank["method"]], counts[rank["method"]]
        cells = [
            row["method"],
            f"{count['scored']}/{count['cases']}",
            decimal(row["mean"]),
            _interval(row["interval"]),
            *([decimal(equal_labels[rank["method"]])] if differing else []),
        ]
        if several:
            mean_rank = "–" if rank["mean_rank"] is None else f"{rank['mean_rank']:.2f}"
            stability = "–" if rank["kept"] is None else percent(rank["kept"], 0)
            cells = [_short(rank["place"]), *cells, mean_rank, stability]
        else:
            quartiles = f"{decimal(row['lower_quartile'])} {decimal(row['upper_quartile'])}"
            cells += [decimal(row["median"]), quartiles]
        table.add_row(*map(Text, cells))
    return table


def _raters(agreement: dict[str, Any]) -> FittingTable:
    """Methods and raters against each rater; methods beside inter-rater agreement.

    Inter-rater agreement is over the cases of the method; in the last row it is over all cases.
    """
    table = plain_table(
        "",
        *(f">{name}" for name in agreement["raters"]),
        *(">cases", ">mean", "95 % CI", ">raters", "95 % CI (raters)"),
    )
    methods = agreement["methods"]
    baselines = agreement.get("baselines", {})  # absent from summaries of earlier versions
    for name, means in sorted(agreement["means"].items(), key=lambda row: row[0] not in methods):
        cells = [decimal(means[rater]) if rater in means else "–" for rater in agreement["raters"]]
        own, baseline = methods.get(name), baselines.get(name)
        cells += ["", "", ""] if own is None else [str(own["n"]), *_mean_and_interval(own)]
        cells += ["", ""] if baseline is None else _mean_and_interval(baseline)
        table.add_row(Text(name), *cells)
    among_raters = agreement["among"]
    blank = [""] * len(agreement["raters"])
    last = [str(among_raters["n"]), "", "", *_mean_and_interval(among_raters)]
    table.add_row("inter-rater agreement", *blank, *last)
    return table


def _mean_and_interval(summary: dict[str, Any]) -> list[str]:
    return [decimal(summary["mean"]), _interval(summary["interval"])]


def _means(summary: dict[str, Any], chosen: str) -> FittingTable:
    """The means of every method, the measure that ranks first."""
    measures = _shown_measures(summary, chosen)
    means = [
        {row["method"]: row["mean"] for row in summary["measures"][measure]["methods"]}
        for measure in measures
    ]
    table = FittingTable([Column("method"), *_measure_columns(measures)])
    for rank in summary["measures"][chosen]["ranks"]:
        table.add_row(Text(rank["method"]), *(decimal(mean[rank["method"]]) for mean in means))
    return table


def _places(summary: dict[str, Any], chosen: str) -> FittingTable:
    """The place of every method by every measure, with its stability."""
    measures = _shown_measures(summary, chosen)
    ranks = [
        {rank["method"]: rank for rank in summary["measures"][measure]["ranks"]}
        for measure in measures
    ]
    table = FittingTable([Column("method"), *_measure_columns(measures)])
    for rank in ranks[0].values():
        table.add_row(Text(rank["method"]), *(_place(one[rank["method"]]) for one in ranks))
    return table


def _shown_measures(summary: dict[str, Any], chosen: str) -> list[str]:
    """The measures, the chosen one first; without merging the matched score is the score."""
    merged = summary["options"]["merge"] != "none"
    others = [one for one in summary["measures"] if merged or one != "matched_score"]
    return list(dict.fromkeys([chosen, *others]))


def _measure_columns(measures: Sequence[str]) -> list[Column]:
    """A column for every measure; the last ones are omitted first if the terminal is narrow."""
    return [Column(SHORT[one], numbers=True, drop_order=k) for k, one in enumerate(measures)]


def _place(rank: dict[str, Any]) -> str:
    stability = "" if rank["kept"] is None else f" {percent(rank['kept'], 0)}"
    return f"{_short(rank['place'])}{stability}"


def _worst(rows: Sequence[dict[str, Any]], measure: str) -> list[RenderableType]:
    """The cases with the lowest values of every method."""
    named = [
        f"{row['method']}: {', '.join(case for case, _ in row['worst'][:3])}"
        for row in rows
        if row["worst"]
    ]
    return [Text(f"lowest {title_of(measure)}: {'; '.join(named)}")] if named else []


def _differences(rows: Sequence[dict[str, Any]]) -> FittingTable:
    table = plain_table(
        "difference", ">cases", ">mean", "95 % CI", ">Wilcoxon p", ">Holm p"
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


def _regions(summary: dict[str, Any], labels: Sequence[Any]) -> FittingTable:
    """One row per region, one column per method."""
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
    by_kind = Failures()
    all_lines = [by_kind.line(one["case"], one["method"], one["error"]) for one in failures]
    lines = [line for line in all_lines if line]
    hidden = len(lines) - MAX_LINES
    lines = lines[:MAX_LINES] + by_kind.rest()
    if hidden > 0:
        lines.append(f"{hidden} more of other kinds")
    parts: list[RenderableType] = [Text.assemble(("failed: ", "red"), line) for line in lines]
    if parts:
        parts.append(f"Full messages are in cases.csv; probdice show {out} CASE prints one.")
    return parts


def _missing(missing: Sequence[dict[str, str]]) -> list[RenderableType]:
    """Cases that lack a side, one line per method and side."""
    cases: dict[tuple[str, str], list[str]] = {}
    for one in missing:
        cases.setdefault((one["method"], one["side"]), []).append(one["case"])
    return [
        Text.assemble(
            ("missing: ", "red"),
            printable(
                f"{method}: no {side} of {len(names)} case{'s' * (len(names) != 1)}: "
                f"{listed(names, MAX_CASES)}"
            ),
        )
        for (method, side), names in cases.items()
    ]


def _notes(summary: dict[str, Any], measure: str) -> list[str]:
    """Why numbers are missing or unusual: every reason once, with the methods that it concerns."""
    measured = summary["measures"][measure]
    scored = {row["method"]: row["scored"] for row in summary["counts"]}
    subjects: dict[str, list[str]] = {}
    for row in measured["methods"]:
        kind, reason = row["interval"]["kind"], row["interval"]["reason"]
        if kind == "withheld" and row["n"]:
            subjects.setdefault(f"no confidence interval: {reason}", []).append(row["method"])
        elif kind == "percentile":
            text = f"95 % CI by percentiles (*): {reason}"
            subjects.setdefault(text, []).append(row["method"])
        undefined = scored[row["method"]] - row["n"]
        if undefined > 0:
            reason = (
                f"1 scored case has no {title_of(measure)} and is not ranked"
                if undefined == 1
                else f"{undefined} scored cases have no {title_of(measure)} and are not ranked"
            )
            subjects.setdefault(reason, []).append(row["method"])
    for row in measured["differences"]:
        if row["reason"] and row["n"]:
            pair = f"{row['first']} − {row['second']}"
            subjects.setdefault(row["reason"], []).append(pair)
    notes = [f"{listed(names)}: {reason}" for reason, names in subjects.items()]
    if any(row["p"] is not None for row in measured["differences"]):
        notes.append(
            "Holm's correction accounts for the pairs of methods, not for trying several measures. "
            "Choose the measure before you look at the results."
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
