"""An evaluation in a notebook: the ranking, what failed, and what is left out."""

from html import escape
from typing import TYPE_CHECKING

from probdice.metrics.registry import MISSING_RULES, title_of
from probdice.text.formatting import decimal

if TYPE_CHECKING:
    from probdice.evaluation.results import Evaluation

__all__ = ["evaluation_as_html"]

METHODS = 20  # in the table
FAILURES = 5  # that are named


def evaluation_as_html(evaluation: "Evaluation") -> str:
    """For a notebook; no pixel is read."""
    title, *lines = repr(evaluation).partition("\n")[0], *_troubles(evaluation)
    table = "".join(_row("td", cells) for cells in _methods(evaluation))
    head = _row("th", ("place", "method", "scored", f"mean {title_of(evaluation.rank_by)}", "95 %"))
    remarks = "".join(f"<p>{escape(line)}</p>" for line in lines)
    left_out = "".join(f"<p><small>{escape(text)}</small></p>" for text in _left_out(evaluation))
    return (
        f"<div><p><strong>{escape(title)}</strong></p>"
        f"<table><thead>{head}</thead><tbody>{table}</tbody></table>{remarks}{left_out}</div>"
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
                decimal(summary.mean),
                str(summary.interval),
            )
        )
    return rows


def _troubles(evaluation: "Evaluation") -> list[str]:
    """What failed, and how that enters the table."""
    lines = [
        f"failed: {record.case} ({record.method}): {record.error.partition(chr(10))[0]}"
        for record in evaluation.failures[:FAILURES]
    ]
    if evaluation.failures or evaluation.missing:
        lines.append(f"missing and failed cases {MISSING_RULES[evaluation.missing_rule]}")
    return lines + [f"note: {note}" for note in evaluation.notes]


def _left_out(evaluation: "Evaluation") -> list[str]:
    texts = []
    methods, failures = len(evaluation.methods) - METHODS, len(evaluation.failures) - FAILURES
    if methods > 0:
        texts.append(f"{methods} more methods are left out; ranks() has them")
    if failures > 0:
        texts.append(f"{failures} more failures are left out; .failures has them")
    others = len(evaluation.measures) - 1
    texts.append(
        f"{others} other measures, every case and every region are left out; summaries(), "
        f"cases_frame() and regions_frame() have them"
    )
    return texts


def _row(tag: str, cells: tuple[str, ...]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"
