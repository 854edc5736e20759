"""Pages to look at: one self-contained HTML file each, which needs no network and no server."""

import os
from pathlib import Path

from probdice.report.page import page_of
from probdice.report.rendering import render, write_page
from probdice.result import Comparison

__all__ = ["write"]


def write(
    comparison: Comparison, path: str | os.PathLike[str], *, title: str | None = None
) -> None:
    """Write the page of a comparison.

    Parameters
    ----------
    comparison : Comparison
        What `compare` found. One that was read from JSON gives a page without images.
    path : path
        Where to; a file that is there is replaced when the new one is complete.
    title : str, optional
        What stands on top; the names of the files by default.

    Examples
    --------
    >>> import os, tempfile
    >>> import probdice
    >>> from probdice import report
    >>> result = probdice.compare([[1, 1], [2, 2]], [[1, 1], [1, 2]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report.write(result, os.path.join(folder, "page.html"))
    ...     os.listdir(folder)
    ['page.html']
    """
    page = page_of(comparison, title)
    scripts = ("selection.js", "tables.js", *(("viewer.js",) if page.viewer else ()))
    write_page(Path(path), render("comparison.html", page, style="page.css", scripts=scripts))
