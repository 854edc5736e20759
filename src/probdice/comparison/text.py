"""Format a comparison as text or as HTML, without reading any pixels."""

from html import escape
from math import isnan

from probdice.comparison.result import MAX_PRINTED_GROUPS, Comparison
from probdice.method.background import named_background
from probdice.method.region_labels import listed
from probdice.method.sides import SIDES
from probdice.metrics.verdict import words_of
from probdice.text.formatting import decimal, quantity
from probdice.text.table_output import aligned_columns

__all__ = ["as_html", "as_text"]


def as_text(result: Comparison) -> str:
    """Return the result as plain text, for a terminal."""
    lines = [
        _title(result),
        *(f"  {line}" for line in _lines(result)),
        *(f"  {line}" for line in aligned_columns(_rows(result))),
    ]
    if len(result.groups) > MAX_PRINTED_GROUPS:
        lines.append(f"  … and {quantity(len(result.groups) - MAX_PRINTED_GROUPS, 'more group')}")
    return "\n".join(lines + [f"  note: {note}" for note in result.notes])


def as_html(result: Comparison) -> str:
    """Return the result as HTML, for a notebook."""
    header, *rows = _rows(result)
    table = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    headline, *other_lines = _lines(result)
    texts = [*other_lines, *(f"note: {note}" for note in result.notes)]
    paragraphs = "".join(f"<p>{escape(text)}</p>" for text in texts)
    omission_html = "".join(
        f"<p><small>{escape(text)}</small></p>" for text in _omission_texts(result)
    )
    return (
        f"<div><p>{escape(_title(result))}</p><p><strong>{escape(headline)}</strong></p>"
        f"{paragraphs}<table><thead><tr>{head}</tr></thead><tbody>{table}</tbody></table>"
        f"{omission_html}</div>"
    )


def _omission_texts(result: Comparison) -> list[str]:
    """Return texts that list the values omitted from the table and explain how to get them."""
    hidden_count = len(result.groups) - MAX_PRINTED_GROUPS
    if hidden_count > 0:
        groups = quantity(hidden_count, "more group")
        texts = [f"Use to_frame() to get {groups}, Jaccard indices and volumes."]
    else:
        texts = ["Use to_frame() to get Jaccard indices and volumes."]
    unknown_attributes = [
        attribute
        for name, attribute in (("chance", ".adjusted_score"), ("explained", ".explained"))
        if result.without_a_pass(name) is None
    ]
    if unknown_attributes and result.images is not None:
        texts.append(
            f"Not computed yet: {', '.join(unknown_attributes)}. Access an attribute to compute it."
        )
    elif unknown_attributes:
        texts.append(f"Not available without the images: {', '.join(unknown_attributes)}.")
    return texts


def _title(result: Comparison) -> str:
    options = [str(result.similarity)]
    if result.match != "overlap":
        word = repr(result.match) if isinstance(result.match, str) else "…"
        options.append(f"match={word}")
        if result.labels_by is not None:
            options[-1] += f" by {result.labels_by}"
    if result.merge != "none":
        options.append(f"merge={result.merge!r}")
    if result.options.background is not None:
        options.append(named_background(result.options.background).in_python())
    counts = [result.region_count(side) for side in SIDES]
    return (
        f"Comparison ({', '.join(options)}): {counts[0]} reference and {counts[1]} prediction "
        f"regions over {result.pixels} {words_of(result).of(result.pixels)}"
    )


def _lines(result: Comparison) -> list[str]:
    """Return the lines above the table: the metrics that require no pass over the pixels."""
    score, chance = result.without_a_pass("score"), result.without_a_pass("chance")
    headline, lowest = [], result.lowest
    if result.background is not None:
        headline.append(f"foreground Dice {decimal(result.foreground_dice)}")
    elif not isnan(lowest.dice):
        headline.append(f"mean Dice {decimal(result.mean_dice)}")
    if score is not None and chance is not None:
        adjusted = decimal(result.adjusted_score)
        headline.append(f"adjusted score {adjusted} (chance {decimal(chance)})")
    lines = ["   ".join(headline)] if headline else []
    if result.background is not None:
        lines.append(_foreground(result))
    explained = result.without_a_pass("explained")
    if explained is not None:
        lines.append("   ".join(f"{side} explained {decimal(explained[side])}" for side in SIDES))
    unmatched = f"unmatched regions: {sum(len(result.unmatched[side]) for side in SIDES)}"
    if not isnan(lowest.dice):
        pair = f"{listed(lowest.reference)} ↔ {listed(lowest.prediction)}"
        unmatched = f"lowest Dice {decimal(lowest.dice)} ({pair})   {unmatched}"
    missing_score = "score: not available without the images"
    lines += [unmatched, missing_score if score is None else f"score {decimal(score)}"]
    if result.merges:
        counts = []
        for side in SIDES:
            count = sum(merge.side == side for merge in result.merges)
            if count:
                counts.append(f"{count} {side} {'region' if count == 1 else 'regions'}")
        merge_text = f"{' and '.join(counts)} merged"
        matched_score = result.without_a_pass("matched_score")
        if matched_score is not None:
            merge_text = f"matched score {decimal(matched_score)}; {merge_text}"
        lines[-1] += f"   {merge_text}"
    boundaries = result.numbers.known("boundaries")
    if boundaries is not None:
        lines.append(f"boundaries ({boundaries.unit}): {boundaries.summary}")
    return lines


def _foreground(result: Comparison) -> str:
    """Format the foreground measures except foreground Dice, and the mean Dice of all groups."""
    numbers = [
        f"pooled Dice {decimal(result.pooled_dice)}",
        f"mean Dice {decimal(result.mean_dice)}",
        f"foreground score {decimal(result.foreground_score)}",
    ]
    chance = result.without_a_pass("foreground_chance")
    if chance is not None:
        adjusted = decimal(result.adjusted_foreground_score)
        numbers.append(f"adjusted {adjusted} (chance {decimal(chance)})")
    return "   ".join(numbers)


def _rows(result: Comparison) -> list[tuple[str, ...]]:
    """Return the rows of the table of groups.

    Faint groups are marked in an additional last column.
    """
    printed_groups = result.groups[:MAX_PRINTED_GROUPS]
    has_faint = any(group.faint for group in printed_groups)
    mark = ("",) if has_faint else ()
    rows: list[tuple[str, ...]] = [("reference", "prediction", "Dice", "similarity", *mark)]
    for group in printed_groups:
        row = listed(group.reference), listed(group.prediction), decimal(group.dice)
        mark = ("faint" if group.faint else "",) if has_faint else ()
        rows.append((*row, decimal(group.similarity), *mark))
    return rows
