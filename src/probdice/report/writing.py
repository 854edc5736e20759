"""The page of one comparison, from its data to its file."""

from pathlib import Path

from probdice.report.page import page_of
from probdice.report.rendering import render, write_page
from probdice.result import Comparison

__all__ = ["write_comparison"]


def write_comparison(
    comparison: Comparison, path: Path, *, title: str | None, notice: str = "", alone: bool = False
) -> None:
    """Write the page; a notice stands before its notes. For `alone` see `files.replacing`."""
    page = page_of(comparison, title, notice)
    scripts = (
        "selection.js",
        "tables.js",
        *(("numbers.js", "pixels.js", "painting.js", "viewer.js") if page.viewer else ()),
    )
    text = render("comparison.html", page, style="page.css", scripts=scripts)
    write_page(path, text, alone=alone)
