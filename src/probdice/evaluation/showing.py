"""Show an evaluation as HTML in a notebook: the ranking, failures and notes."""

from html import escape
from typing import TYPE_CHECKING

from probdice.metrics.registry import MISSING_RULES
from probdice.text.formatting import decimal, quantity

if TYPE_CHECKING:
    from probdice.evaluation.results import Evaluation

__all__ = ["evaluation_as_html"]

METHODS = 20  # methods in the table
FAILURES = 5  # failures in the list


def evaluation_as_html(evaluation: "Evaluation") -> str:
    """Return HTML for a notebook. No image is read."""
    title_line, *lines = repr(evaluation).partition("\n")[0], *_failures_and_notes(evaluation)
    table = "".join(_row("td", cells) for cells in _methods(evaluation))
    kind = next(iter(evaluation.summaries().values())).aggregate
    title = f"{kind} {evaluation.title(evaluation.rank_by[0])}"
    head = _row("th", ("place", "method", "scored", title, "95 % CI"))
    remarks = "".join(f"<p>{escape(line)}</p>" for line in lines)
    omission_notes = "".join(
        f"<p><small>{escape(text)}</small></p>" for text in _omission_notes(evaluation)
    )
    return (
        f"<div><p><strong>{escape(title_line)}</strong></p>"
        f"<table><thead>{head}</thead><tbody>{table}</tbody></table>{remarks}{omission_notes}</div>"
    )


def _methods(evaluation: "Evaluation") -> list[tuple[str, ...]]:
    summaries = evaluation.summaries()
    rows: list[tuple[str, ...]] = []
    for rank in evaluation.ranks()[:METHODS]:
        summary, counts = summaries[rank.method], evaluation.counts[rank.method]
        rows.append(
            (
                "–" if rank.place is None else str(rank.place),
                rank.method,
                f"{counts.scored}/{counts.cases}",
                decimal(summary.value),
                str(summary.interval),
            )
        )
    return rows


def _failures_and_notes(evaluation: "Evaluation") -> list[str]:
    """Return failures, the rule for missing cases, and notes."""
    lines = [
        f"failed: {record.case} ({record.method}): {record.error.partition(chr(10))[0]}"
        for record in evaluation.failures[:FAILURES]
    ]
    if evaluation.failures or evaluation.missing:
        lines.append(f"missing and failed cases {MISSING_RULES[evaluation.missing_rule]}")
    return lines + [f"note: {note}" for note in evaluation.notes]


def _omission_notes(evaluation: "Evaluation") -> list[str]:
    texts = []
    methods, failures = len(evaluation.methods) - METHODS, len(evaluation.failures) - FAILURES
    if methods > 0:
        texts.append(f"not shown: {quantity(methods, 'more method')}; see ranks()")
    if failures > 0:
        texts.append(f"not shown: {quantity(failures, 'more failure')}; see .failures")
    other_measures = quantity(len(evaluation.measures) - 1, "other measure")
    texts.append(
        f"not shown: cases, regions and {other_measures}; see summaries(), cases_frame() and "
        f"regions_frame()"
    )
    return texts


def _row(tag: str, cells: tuple[str, ...]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"
