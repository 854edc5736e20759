"""The page of one comparison, from its data to its file."""

from pathlib import Path

from probdice.comparison import Comparison
from probdice.errors import Words
from probdice.report.page import page_of
from probdice.report.rendering import render, write_page

__all__ = ["write_comparison"]


def write_comparison(
    comparison: Comparison,
    path: Path,
    *,
    title: str | None,
    notice: str = "",
    words: Words = "python",
    alone: bool = False,
) -> None:
    """Write the page; a notice stands before its notes. For `alone` see `storage.replacing`."""
    page = page_of(comparison, title, notice, words)
    scripts = ["assets/selection.js", "assets/tables.js"]
    if page.viewer:
        scripts += [f"assets/{name}.js" for name in ("numbers", "pixels", "painting", "viewer")]
    values = {"page": page}
    text = render("comparison.html", values, style="assets/page.css", scripts=tuple(scripts))
    write_page(path, text, alone=alone)
