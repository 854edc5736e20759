"""Format the ranking as a table for publication, in Markdown and LaTeX.

Both tables are created from the content of summary.json and therefore agree with this file.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from probdice.errors import InputError
from probdice.evaluation.conclusion import conclusion
from probdice.evaluation.ranking_schemes import RANKING_SCHEMES
from probdice.metrics.registry import MISSING_RULES
from probdice.options import EvaluateOptions
from probdice.text.escaping import markdown, printable, tex
from probdice.text.formatting import decimal, percent

__all__ = [
    "TABLE_COLUMNS",
    "as_sentence",
    "check_columns",
    "remarks_by_method",
    "table_md",
    "table_tex",
]

TABLE_COLUMNS = ("place", "equal_labels", "wins", "mean_rank", "stability", "cases")
DIGITS = 3
RULES = {False: (r"\hline",) * 3, True: (r"\toprule", r"\midrule", r"\bottomrule")}

Summary = Mapping[str, Any]
Rank = Mapping[str, Any]


def table_md(summary: Summary, options: EvaluateOptions) -> str:
    """Return the ranking as a Markdown table, with the conclusion, remarks and notes."""
    heads, rows = _table(summary, options.columns)
    lines = [
        f"| {' | '.join(heads)} |",
        f"|{'|'.join('---' if head == 'method' else '---:' for head in heads)}|",
        *(f"| {' | '.join(map(markdown, row))} |" for row in rows),
        "",
        *(f"{markdown(text)}  " for text in _remarks(summary)),
    ]
    return "\n".join(lines).rstrip() + "\n"


def table_tex(summary: Summary, options: EvaluateOptions) -> str:
    """Return the ranking as a LaTeX tabular. The conclusion, remarks and notes follow as comments.

    With the option `booktabs`, the table requires the LaTeX package booktabs. Otherwise, the table
    requires no package.
    """
    heads, rows = _table(summary, options.columns)
    alignment = "".join("l" if head == "method" else "r" for head in heads)
    top, middle, bottom = RULES[options.booktabs]
    lines = [
        *([r"% requires \usepackage{booktabs}"] if options.booktabs else []),
        rf"\begin{{tabular}}{{{alignment}}}",
        top,
        " & ".join(map(tex, heads)) + r" \\",
        middle,
        *(" & ".join(map(tex, row)) + r" \\" for row in rows),
        bottom,
        r"\end{tabular}",
        *(f"% {printable(text)}" for text in _remarks(summary)),
    ]
    return "\n".join(lines) + "\n"


def check_columns(columns: Sequence[str], measures: Sequence[str]) -> tuple[str, ...]:
    """Return the column names of the table, or raise InputError if a name is unknown.

    Examples
    --------
    >>> from probdice.evaluation.publication_table import check_columns
    >>> check_columns(["place", "score"], ["score"])
    ('place', 'score')
    """
    known_columns = dict.fromkeys((*TABLE_COLUMNS, *measures))
    for column in columns:
        if column not in known_columns:
            raise InputError(
                f"columns: expected names among {', '.join(known_columns)}, found {column!r}"
            )
    return tuple(columns)


def remarks_by_method(summary: Summary) -> list[str]:
    """Return one sentence per remark. Each sentence starts with the name of the method."""
    return [
        as_sentence(f"{method}: {text}")
        for method, texts in summary["remarks"].items()
        for text in texts
    ]


def as_sentence(text: str) -> str:
    """Return the text with a final full stop."""
    return text if text.endswith(".") else f"{text}."


def _table(summary: Summary, columns: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Return the headings and the rows.

    If the place is the first column, the method is the second. Otherwise, the method is the first.
    """
    columns_by_name = _columns(summary)
    names = list(check_columns(columns, list(summary["measures"])) or _default_columns(summary))
    if "method" not in names:
        names.insert(1 if names[:1] == ["place"] else 0, "method")
    table_columns = [columns_by_name[name] for name in names]
    rows = [[cell(rank) for _, cell in table_columns] for rank in summary["ranking"]["ranks"]]
    return [head for head, _ in table_columns], rows


def _default_columns(summary: Summary) -> list[str]:
    """Return the names of the default columns, which depend on the run."""
    other_measures = [
        measure for measure in summary["measures"] if measure not in summary["rank_by"]
    ]
    if summary["options"]["merge"] == "none":  # then the matched score is the score
        other_measures = [measure for measure in other_measures if measure != "matched_score"]
    method_rows = summary["measures"][summary["rank_by"][0]]["methods"]
    labels_differ = any(row["equal_labels"] is not None for row in method_rows)
    return [
        "place",
        *summary["rank_by"],
        *(["equal_labels"] if labels_differ else []),
        *RANKING_SCHEMES[summary["scheme"]].columns,
        *("mean_rank", "stability", "cases"),
        *other_measures,
    ]


def _columns(summary: Summary) -> dict[str, tuple[str, Callable[[Rank], str]]]:
    """Return the heading of every column, and the function that returns its cells."""
    counts = {row["method"]: row for row in summary["counts"]}
    first_measure = summary["rank_by"][0]
    equal_labels_means = {
        row["method"]: row["equal_labels"] for row in summary["measures"][first_measure]["methods"]
    }
    shares = {rank["method"]: rank["value"] for rank in summary["ranking"]["schemes"]["test-based"]}
    # With several ranking measures, the value of the test-based scheme is a mean of ranks.
    wins_title = "significant wins" if len(summary["rank_by"]) == 1 else "mean rank by wins"

    def scored(rank: Rank) -> str:
        count = counts[rank["method"]]
        return f"{count['scored']} of {count['cases']}"

    return {
        "place": ("place", lambda rank: "–" if rank["place"] is None else str(rank["place"])),
        "method": ("method", lambda rank: str(rank["method"])),
        **{measure: _measure_column(summary, measure) for measure in summary["measures"]},
        "equal_labels": (
            f"{summary['titles'][first_measure]}, equal labels",
            lambda rank: decimal(equal_labels_means[rank["method"]], DIGITS),
        ),
        "wins": (wins_title, lambda rank: decimal(shares[rank["method"]], 2)),
        "mean_rank": ("mean rank", lambda rank: decimal(rank["mean_rank"], 2)),
        "stability": ("rank stability", lambda rank: percent(rank["stability"], 0)),
        "cases": ("cases", scored),
    }


def _measure_column(summary: Summary, measure: str) -> tuple[str, Callable[[Rank], str]]:
    """Return the heading of the column of a measure, and the function that returns its cells.

    A cell contains the mean or median and, for ranking measures, the 95 % CI.
    """
    rows = {row["method"]: row for row in summary["measures"][measure]["methods"]}
    kind = next(iter(rows.values()))["aggregate"]
    ranks = measure in summary["rank_by"]
    title = summary["titles"][measure] if kind == "mean" else f"median {summary['titles'][measure]}"

    def cell(rank: Rank) -> str:
        row = rows[rank["method"]]
        low, high = row["interval"]["low"], row["interval"]["high"]
        value = decimal(row[kind], DIGITS)
        if not ranks or low is None:
            return value
        return f"{value} ({decimal(low, DIGITS)}–{decimal(high, DIGITS)})"

    return f"{title} (95 % CI)" if ranks else title, cell


def _remarks(summary: Summary) -> list[str]:
    """Return the conclusion, the rule for missing cases, the remarks on methods, and the notes."""
    rule = summary["missing_rule"]
    result = conclusion(summary)
    return [
        *([result] if result else []),
        f"Missing and failed cases {MISSING_RULES[rule]} (missing: {rule}).",
        *remarks_by_method(summary),
        *(f"Note: {as_sentence(note)}" for note in summary["notes"]),
    ]
