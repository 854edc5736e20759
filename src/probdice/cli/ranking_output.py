"""Print the summary of an evaluation from summary.json."""

from collections.abc import Sequence
from math import inf, isnan
from os.path import abspath, join, relpath
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from probdice.cli.component_tables import component_tables
from probdice.cli.display import note_line, show
from probdice.cli.failure_lines import Failures
from probdice.cli.terminal_tables import FittingTable, TerminalColumn, plain_table
from probdice.evaluation.conclusion import conclusion, join_names, summary_line
from probdice.method.region_labels import listed
from probdice.metrics.registry import MISSING_RULES
from probdice.options import CompareOptions
from probdice.text.escaping import printable
from probdice.text.formatting import decimal, percent, quantity

__all__ = ["show_summary"]

SHORT_HEADINGS = {
    "explained_reference": "expl. ref.",
    "explained_prediction": "expl. pred.",
    "foreground_dice": "foregr. Dice",
    "foreground_score": "foregr. score",
    "adjusted_foreground_score": "adj. foregr.",
}
MAX_LINES = 20  # printed regions, and printed failures
MAX_CASES = 10  # missing cases listed by name
MAX_PAIRS = 3  # pairs of rankings; if there are more, only the pair with the lowest τ is printed


def show_summary(
    summary: dict[str, Any], out: str, measure: str | None = None, file_lines: Sequence[str] = ()
) -> None:
    """Print the ranking and all other results, followed by one line per written file.

    If `measure` is given, methods are ranked by this measure instead of the ranking measures of the
    evaluation.
    """
    first_measure = measure or summary["rank_by"][0]
    statistics = summary["measures"][first_measure]
    title = summary["titles"][first_measure]
    ranks = statistics["ranks"] if measure else summary["ranking"]["ranks"]
    result = [] if measure else [Text(text) for text in (conclusion(summary),) if text]
    several_methods = len(summary["methods"]) > 1
    reference = abspath(join(out, summary["reference"]))
    reference = min(reference, relpath(reference), key=len)
    parts: list[RenderableType] = [
        Text(f"{reference} ↔ {', '.join(summary['methods'])}", style="bold"),
        _settings(summary),
        "",
        Text(_title(summary, measure), style="bold"),
        _method_table(summary, first_measure, ranks),
        *result,
    ]
    remarks = [
        note_line(f"{method}: {text}")
        for method, texts in summary["remarks"].items()
        for text in texts
    ]
    parts += [*remarks, ""] if remarks else []
    if summary["rater_comparison"] is not None:
        rater_heading = f"mean {summary['rater_comparison']['title']} against each rater"
        parts += [Text(rater_heading, style="bold"), _rater_table(summary["rater_comparison"]), ""]
    parts += [
        Text("means of all measures (medians if a value is infinite)", style="bold"),
        _mean_table(summary, first_measure),
    ]
    if several_methods:
        parts += [
            Text("places by measure, with rank stability (bootstrap)", style="bold"),
            _place_table(summary, first_measure),
            *_agreement(summary),
            Text(
                f"differences in {title} over the cases with values for both methods", style="bold"
            ),
            Text(f"p: {summary['test']}"),
            _difference_table(statistics["differences"]),
        ]
    if summary["regions"]:
        means = [(row["mean"], row["label"]) for row in summary["regions"]]
        worst_first = sorted(means, key=lambda row: inf if row[0] is None else row[0])
        labels = list(dict.fromkeys(label for _, label in worst_first))
        heading = "Dice of the reference's regions, worst first: mean (cases), 95 % CI"
        parts += [Text(heading, style="bold"), _region_table(summary, labels[:MAX_LINES])]
        if len(labels) > MAX_LINES:
            omitted_count = len(labels) - MAX_LINES
            parts.append(f"… and {quantity(omitted_count, 'more region')} in {out}/summary.json")
    if summary["derived"]:
        names = list(dict.fromkeys(row["label"] for row in summary["derived"]))
        heading = "Dice of derived regions: mean (cases), 95 % CI"
        parts += [Text(heading, style="bold"), _region_table(summary, names, "derived")]
    if summary["components"]:
        parts += component_tables(summary, out)
    parts += _worst_cases(statistics, title)
    parts += _failure_lines(summary["failures"], out)
    parts += _missing_lines(summary["missing"])
    parts += [note_line(note) for note in (*summary["notes"], *_notes(summary, first_measure))]
    show(*parts, summary_line(summary["counts"]), file_lines=file_lines)


def _settings(summary: dict[str, Any]) -> str:
    """Return one line with the options and the numbers of cases and methods."""
    options = CompareOptions.from_dict(summary["options"])
    merge = [] if options.merge == "none" else [f"merge {options.merge}"]
    mask = ["within masks"] if summary["mask"] is not None else []
    settings = ", ".join([*options.in_words(), *merge, *mask])
    cases = quantity(summary["counts"][0]["cases"], "case")
    subjects = summary["subjects"]
    subject_text = (
        "" if subjects is None else f" of {quantity(len(set(subjects.values())), 'subject')}"
    )
    return f"{settings}: {cases}{subject_text}, {quantity(len(summary['methods']), 'method')}"


def _title(summary: dict[str, Any], measure: str | None) -> str:
    """Return the title of the first table, with the scheme and the rule for missing cases."""
    titles = [summary["titles"][name] for name in ([measure] if measure else summary["rank_by"])]
    title_list = join_names(titles)
    if len(summary["methods"]) == 1:
        return title_list
    rule = summary["missing_rule"]
    missing_text = f"missing and failed cases {MISSING_RULES[rule]} ({rule})"
    return f"ranking by {title_list} ({summary['scheme']}); {missing_text}"


def _method_table(
    summary: dict[str, Any], measure: str, ranks: Sequence[dict[str, Any]]
) -> FittingTable:
    """Return a table of the methods in the order of a ranking, with the values of one measure."""
    statistics = summary["measures"][measure]
    several_methods = len(summary["methods"]) > 1
    equal_labels = {row["method"]: row["equal_labels"] for row in statistics["methods"]}
    kind = statistics["methods"][0]["aggregate"]
    labels_differ = any(mean is not None for mean in equal_labels.values())
    measure_suffix = f" {summary['titles'][measure]}" if len(summary["rank_by"]) > 1 else ""
    heads = ["method", ">scored", f">{kind}{measure_suffix}", "95 % CI"]
    heads += [">equal labels"] * labels_differ
    heads = (
        [">place", *heads, ">mean rank", ">stability"]
        if several_methods
        else [*heads, ">median", "quartiles"]
    )
    table = plain_table(*heads)
    rows = {row["method"]: row for row in statistics["methods"]}
    counts = {row["method"]: row for row in summary["counts"]}
    for rank in ranks:
        row, count = rows[rank["method"]], counts[rank["method"]]
        cells = [
            row["method"],
            f"{count['scored']}/{count['cases']}",
            decimal(row[kind]),
            _interval(row["interval"]),
            *([decimal(equal_labels[rank["method"]])] if labels_differ else []),
        ]
        if several_methods:
            mean_rank = "–" if rank["mean_rank"] is None else f"{rank['mean_rank']:.2f}"
            stability = "–" if rank["stability"] is None else percent(rank["stability"], 0)
            cells = [_number_text(rank["place"]), *cells, mean_rank, stability]
        else:
            quartiles = f"{decimal(row['lower_quartile'])} {decimal(row['upper_quartile'])}"
            cells += [decimal(row["median"]), quartiles]
        table.add_row(*map(Text, cells))
    return table


def _rater_table(agreement: dict[str, Any]) -> FittingTable:
    """Return a table with the scores of methods and raters against each rater.

    The last columns contain the inter-rater agreement. In the row of a method, inter-rater
    agreement is computed from the cases of that method. In the last row, it is computed from all
    cases.
    """
    inter_rater = agreement["inter_rater"]
    table = plain_table(
        "",
        *(f">{name}" for name in agreement["raters"]),
        *(">cases", f">{inter_rater['aggregate']}", "95 % CI", ">raters", "95 % CI (raters)"),
    )
    methods = agreement["methods"]
    baselines = agreement["baselines"]
    for name, means in sorted(agreement["means"].items(), key=lambda row: row[0] not in methods):
        cells = [decimal(means[rater]) if rater in means else "–" for rater in agreement["raters"]]
        method_summary, baseline = methods.get(name), baselines.get(name)
        cells += (
            ["", "", ""]
            if method_summary is None
            else [str(method_summary["n"]), *_mean_and_interval(method_summary)]
        )
        cells += ["", ""] if baseline is None else _mean_and_interval(baseline)
        table.add_row(Text(name), *cells)
    blank = [""] * len(agreement["raters"])
    last_cells = [str(inter_rater["n"]), "", "", *_mean_and_interval(inter_rater)]
    table.add_row("inter-rater agreement", *blank, *last_cells)
    return table


def _mean_and_interval(summary: dict[str, Any]) -> list[str]:
    return [decimal(summary[summary["aggregate"]]), _interval(summary["interval"])]


def _mean_table(summary: dict[str, Any], first_measure: str) -> FittingTable:
    """Return a table of the means of every method, with `first_measure` as the first measure."""
    measures = _printed_measures(summary, first_measure)
    means = [
        {row["method"]: row[row["aggregate"]] for row in summary["measures"][measure]["methods"]}
        for measure in measures
    ]
    table = FittingTable([TerminalColumn("method"), *_measure_columns(summary, measures)])
    for rank in summary["measures"][first_measure]["ranks"]:
        table.add_row(Text(rank["method"]), *(decimal(mean[rank["method"]]) for mean in means))
    return table


def _place_table(summary: dict[str, Any], first_measure: str) -> FittingTable:
    """Return a table of the place and rank stability of every method for every measure."""
    measures = _printed_measures(summary, first_measure)
    ranks = [
        {rank["method"]: rank for rank in summary["measures"][measure]["ranks"]}
        for measure in measures
    ]
    table = FittingTable([TerminalColumn("method"), *_measure_columns(summary, measures)])
    for rank in ranks[0].values():
        table.add_row(
            Text(rank["method"]),
            *(_place(measure_ranks[rank["method"]]) for measure_ranks in ranks),
        )
    return table


def _printed_measures(summary: dict[str, Any], first_measure: str) -> list[str]:
    """Return the measures, starting with `first_measure`.

    The matched score is included only if regions may be merged.
    """
    has_merging = summary["options"]["merge"] != "none"
    measures = [name for name in summary["measures"] if has_merging or name != "matched_score"]
    return list(dict.fromkeys([first_measure, *measures]))


def _measure_columns(summary: dict[str, Any], measures: Sequence[str]) -> list[TerminalColumn]:
    """Return one column per measure. On a narrow terminal, the last columns are omitted first."""
    heads = [SHORT_HEADINGS.get(measure, summary["titles"][measure]) for measure in measures]
    return [TerminalColumn(head, numbers=True, drop_order=k) for k, head in enumerate(heads)]


def _agreement(summary: dict[str, Any]) -> list[RenderableType]:
    """Return lines with the winners by every ranking scheme and Kendall's τ between rankings."""
    ranking = summary["ranking"]
    winners = [
        f"{' and '.join(rank['method'] for rank in ranks if rank['place'] == 1) or '–'} ({scheme})"
        for scheme, ranks in ranking["schemes"].items()
    ]
    lines: list[RenderableType] = [Text(f"first by scheme: {', '.join(winners)}")]
    for name in ("scheme", "measure"):
        pairs = sorted(ranking[f"{name}_agreement"], key=_lowest_first)
        texts = [
            f"{pair['first']} and {pair['second']} {decimal(pair['tau'], 2)}" for pair in pairs
        ]
        if len(texts) > MAX_PAIRS:
            texts = [f"lowest of {len(texts)} pairs {texts[0]} (summary.json lists all)"]
        if texts:
            lines.append(Text(f"Kendall's τ between rankings by {name}: {', '.join(texts)}"))
    return lines


def _lowest_first(pair: dict[str, Any]) -> float:
    """Return the sort key of a pair of rankings. An undefined τ is sorted to the end."""
    tau: float | None = pair["tau"]
    return inf if tau is None or isnan(tau) else tau


def _place(rank: dict[str, Any]) -> str:
    stability = "" if rank["stability"] is None else f" {percent(rank['stability'], 0)}"
    return f"{_number_text(rank['place'])}{stability}"


def _worst_cases(statistics: dict[str, Any], title: str) -> list[RenderableType]:
    """Return a line that names up to three of the worst cases for each method."""
    method_texts = [
        f"{row['method']}: {', '.join(case for case, _ in row['worst'][:3])}"
        for row in statistics["methods"]
        if row["worst"]
    ]
    word = "lowest" if statistics["higher_is_better"] else "highest"
    return [Text(f"{word} {title}: {'; '.join(method_texts)}")] if method_texts else []


def _difference_table(rows: Sequence[dict[str, Any]]) -> FittingTable:
    centre = "median" if any(row["mean"] is None for row in rows) else "mean"  # infinite values
    table = plain_table("difference", ">cases", f">{centre}", "95 % CI", ">p", ">corrected p")
    for row in rows:
        table.add_row(
            Text(f"{row['first']} − {row['second']}"),
            str(row["n"]),
            _signed_decimal(row[centre]),
            _interval(row["interval"], _signed_decimal),
            _probability(row["p"]),
            _probability(row["p_corrected"]),
        )
    return table


def _region_table(
    summary: dict[str, Any], labels: Sequence[Any], key: str = "regions"
) -> FittingTable:
    """Return a table with one row per region or derived region, and one column per method."""
    table = plain_table("region", *summary["methods"])
    cells = {
        (row["method"], row["label"]): f"{decimal(row['mean'])} ({row['n']}) "
        f"{_interval(row['interval'])}"
        for row in summary[key]
    }
    for label in labels:
        row = [cells.get((method, label), "–") for method in summary["methods"]]
        table.add_row(Text(str(label)), *row)
    return table


def _failure_lines(failures: Sequence[dict[str, str]], out: str) -> list[RenderableType]:
    by_kind = Failures()
    all_lines = [
        by_kind.line(failure["case"], failure["method"], failure["error"]) for failure in failures
    ]
    lines = [line for line in all_lines if line]
    hidden_count = len(lines) - MAX_LINES
    lines = lines[:MAX_LINES] + by_kind.remaining_lines()
    if hidden_count > 0:
        lines.append(f"{quantity(hidden_count, 'more failure')} of other kinds")
    parts: list[RenderableType] = [Text.assemble(("failed: ", "red"), line) for line in lines]
    if parts:
        parts.append(
            f"Full messages are in cases.csv; probdice show {out} CASE prints those of one case."
        )
    return parts


def _missing_lines(missing: Sequence[dict[str, str]]) -> list[RenderableType]:
    """List the cases that lack a reference or prediction, one line per method and side."""
    cases: dict[tuple[str, str], list[str]] = {}
    for entry in missing:
        cases.setdefault((entry["method"], entry["side"]), []).append(entry["case"])
    return [
        Text.assemble(
            ("missing: ", "red"),
            printable(
                f"{method}: no {side} for {quantity(len(names), 'case')}: "
                f"{listed(names, MAX_CASES)}"
            ),
        )
        for (method, side), names in cases.items()
    ]


def _notes(summary: dict[str, Any], measure: str) -> list[str]:
    """Return notes on missing or unusual values, each with its methods, and on p-values."""
    statistics, title = summary["measures"][measure], summary["titles"][measure]
    scored_counts = {row["method"]: row["scored"] for row in summary["counts"]}
    names_by_reason: dict[str, list[str]] = {}
    for row in statistics["methods"]:
        kind, reason = row["interval"]["kind"], row["interval"]["reason"]
        if kind == "withheld" and row["n"]:
            names_by_reason.setdefault(f"no confidence interval: {reason}", []).append(
                row["method"]
            )
        elif kind == "percentile":
            text = f"95 % CI by percentiles (*): {reason}"
            names_by_reason.setdefault(text, []).append(row["method"])
        undefined_count = scored_counts[row["method"]] - row["n"]
        if undefined_count > 0:
            reason = (
                f"1 scored case has no {title} and is not ranked"
                if undefined_count == 1
                else f"{undefined_count} scored cases have no {title} and are not ranked"
            )
            names_by_reason.setdefault(reason, []).append(row["method"])
    for row in statistics["differences"]:
        if row["reason"] and row["n"]:
            pair = f"{row['first']} − {row['second']}"
            names_by_reason.setdefault(row["reason"], []).append(pair)
    notes = [f"{listed(names)}: {reason}" for reason, names in names_by_reason.items()]
    if any(row["p"] is not None for row in statistics["differences"]):
        notes.append(
            "Corrected p-values account for the number of pairs of methods, but not for the number "
            "of measures. Choose the measure before you look at the results."
        )
    return notes


def _interval(interval: dict[str, Any], write: Any = None) -> str:
    if interval["kind"] == "withheld":
        return "withheld"
    write = write or decimal
    mark = "*" if interval["kind"] == "percentile" and "undefined" in interval["reason"] else ""
    return f"{write(interval['low'])} to {write(interval['high'])}{mark}"


def _signed_decimal(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{'-' if value < 0 else '+'}{decimal(abs(value))}"


def _number_text(value: float | None) -> str:
    return "–" if value is None else f"{value:g}"


def _probability(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.2g}" if value < 0.001 else decimal(value, 3)
