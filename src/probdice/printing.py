"""A comparison as text and as HTML; no pixel is read for either."""

from collections.abc import Sequence
from html import escape
from math import isnan

from probdice.comparison import SHOWN, Comparison
from probdice.formatting import decimal
from probdice.matching import listed
from probdice.scoring import NeedsImages
from probdice.sides import SIDES
from probdice.similarity import Aitchison

__all__ = ["as_html", "as_text"]


def as_text(result: Comparison) -> str:
    """For a terminal."""
    lines = [
        _title(result),
        *(f"  {line}" for line in _lines(result)),
        *(f"  {line}" for line in _columns(_rows(result))),
    ]
    if len(result.groups) > SHOWN:
        lines.append(f"  … and {len(result.groups) - SHOWN} more groups")
    return "\n".join(lines + [f"  note: {note}" for note in result.notes])


def as_html(result: Comparison) -> str:
    """For a notebook."""
    header, *rows = _rows(result)
    table = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    headline, *others = _lines(result)
    texts = [*others, *(f"note: {note}" for note in result.notes)]
    remarks = "".join(f"<p>{escape(text)}</p>" for text in texts)
    left_out = "".join(f"<p><small>{escape(text)}</small></p>" for text in _left_out(result))
    return (
        f"<div><p>{escape(_title(result))}</p><p><strong>{escape(headline)}</strong></p>"
        f"{remarks}<table><thead><tr>{head}</tr></thead><tbody>{table}</tbody></table>"
        f"{left_out}</div>"
    )


def _left_out(result: Comparison) -> list[str]:
    """What a table in a notebook does not show, and where it is."""
    columns = "Jaccard and volumes are left out; to_frame() has them"
    more = len(result.groups) - SHOWN
    if more > 0:
        groups = "group" if more == 1 else "groups"
        columns = f"{more:,} more {groups}, and Jaccard and volumes of all, are left out; "
        columns += "to_frame() has them"
    texts = [columns]
    unknown = [
        name
        for name, key in (("adjusted_score and chance", "_chance"), ("explained", "explained"))
        if key not in result.__dict__ and not (key == "explained" and result.overlap.crisp)
    ]
    if unknown:
        why = "ask for them to see them" if result.images is not None else "they need the images"
        texts.append(f"{' and '.join(unknown)} are left out; {why}")
    return texts


def _title(result: Comparison) -> str:
    asked = [result.similarity.name]
    if isinstance(result.similarity, Aitchison) and result.similarity.floor:
        asked.append(f"floor={result.similarity.floor:g}")
    if result.match != "overlap":
        word = result.match if isinstance(result.match, str) else "…"
        asked.append(f"match={word!r}" if word != "…" else "match=…")
        if result.labels_by is not None:
            asked[-1] += f" by {result.labels_by}"
    if result.merge != "none":
        asked.append(f"merge={result.merge!r}")
    counts = [len(result.labels(side)) for side in SIDES]
    return (
        f"Comparison ({', '.join(asked)}): {counts[0]} reference and {counts[1]} prediction "
        f"regions over {result.pixels} pixels"
    )


def _lines(result: Comparison) -> list[str]:
    """Score and chance, what is explained, and what was merged, as far as they are known."""
    parts = []
    try:
        parts.append(f"score {decimal(result.score)}")
        if "_chance" not in result.__dict__:
            result.__dict__["_chance"] = result._chance_with(None)
    except NeedsImages:
        pass
    if parts and "_chance" in result.__dict__:
        chance = f"chance {decimal(result.chance)}"
        parts.append(f"adjusted {decimal(result.adjusted_score)} ({chance})")
    lowest = result.lowest
    if not isnan(lowest.dice):
        pair = f"{listed(lowest.reference)} ↔ {listed(lowest.prediction)}"
        parts.append(f"lowest Dice {decimal(lowest.dice)} ({pair})")
    lines = ["   ".join(parts) or "score: needs the images"]
    if result.overlap.crisp or "explained" in result.__dict__:
        shares = ", ".join(f"{side} {decimal(result.explained[side])}" for side in SIDES)
        lines.append(f"explained: {shares}")
    if result.merges:
        counts = []
        for side in SIDES:
            count = sum(merge.side == side for merge in result.merges)
            if count:
                counts.append(f"{count} {side} {'region' if count == 1 else 'regions'}")
        merged = f"{' and '.join(counts)} merged"
        if result.overlap.separable or "matched_score" in result.__dict__:
            merged = f"matched score {decimal(result.matched_score)}; {merged}"
        lines.append(merged)
    return lines


def _rows(result: Comparison) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("reference", "prediction", "Dice", "similarity")]
    for group in result.groups[:SHOWN]:
        rows.append(
            (
                listed(group.reference),
                listed(group.prediction),
                decimal(group.dice),
                decimal(group.similarity),
            )
        )
    return rows


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
