"""Pages to look at: one self-contained HTML file each, which needs no network and no server."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probdice.errors import Words
from probdice.report.page_files import write_comparison
from probdice.report.rendering import render, write_page

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison
    from probdice.evaluation import Evaluation

__all__ = ["Words", "write", "write_evaluation"]


def write(
    comparison: Comparison,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    image: Any = (),
    words: Words = "python",
    command: str = "",
) -> None:
    """Write the page of a comparison.

    Parameters
    ----------
    comparison : Comparison
        What `compare` found. One without images gives a page without them.
    path : path
        Where to; a file that is there is replaced when the new one is complete.
    title : str, optional
        What stands on top; the names of the files by default.
    image : array, path or image, or several, optional
        What to show under the segmentations, such as the scan that they are of. It must lie on
        their grid, as strictly as they on each other's. A photograph may be in colour.
    words : {"python", "command"}, optional
        How notes name the options that they recommend: ``merge="both"`` or ``--merge both``.
    command : str, optional
        What was typed to make the page, for others to copy.

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
    write_comparison(comparison, Path(path), title=title, image=image, words=words, command=command)


def write_evaluation(
    evaluation: Evaluation,
    path: str | os.PathLike[str],
    *,
    reports: str = "worst:5",
    again: Callable[[str, str], Comparison] | None = None,
    images: Mapping[str, str] | None = None,
    title: str | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    words: Words = "python",
) -> None:
    """Write the page of a folder run, and the pages of its cases into a folder beside it.

    Pages of cases from an earlier run that are no longer linked are removed. The page of a case
    whose files are gone shows what the journal holds and says so; without even that there is no
    page. Neither is an error, but a warning.

    Parameters
    ----------
    evaluation : Evaluation
        What `evaluate` found.
    path : path
        Where to. The pages of cases go into the folder of the same name with ``_cases``.
    reports : str, optional
        Which cases get a page of their own: ``"worst:5"`` (the five with the lowest score, of
        every method), another number, ``"all"`` or ``"none"``.
    again : callable, optional
        Called with the case and the method, gives the comparison with its images. By default
        it is read from the journal, and the pages of cases have no images.
    images : mapping of str to path, optional
        The image of every case that has one, to be shown under its regions.
    title : str, optional
        What stands on top.
    progress : callable, optional
        Called after every page of a case: how many are done, of how many, and what is wrong with
        this one, or "".
    words : {"python", "command"}, optional
        How the pages of cases name options, and what is said of a page that fails; see `write`.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from probdice import report
    >>> from probdice.evaluation import evaluate
    >>> folder = tempfile.TemporaryDirectory()
    >>> for name in ("truth", "mine"):
    ...     os.mkdir(os.path.join(folder.name, name))
    ...     np.save(os.path.join(folder.name, name, "a.npy"), np.array([[1, 1, 2, 2]]))
    >>> truth, mine = (os.path.join(folder.name, name) for name in ("truth", "mine"))
    >>> out = os.path.join(folder.name, "out")
    >>> report.write_evaluation(evaluate(truth, mine, out=out), os.path.join(out, "report.html"))
    >>> sorted(name for name in os.listdir(out) if name.startswith("report"))
    ['report.html', 'report_cases']
    >>> folder.cleanup()
    """
    from probdice.report.cases import pages_wanted, remove_unlinked, write_case_pages
    from probdice.report.evaluation_page import evaluation_page

    file = Path(path)
    wanted = pages_wanted(evaluation, reports)
    pages = write_case_pages(evaluation, file, wanted, again, images or {}, progress, words)
    page = evaluation_page(evaluation, pages, title)
    scripts = ("assets/numbers.js", "assets/tables.js", "assets/evaluation.js")
    text = render("evaluation.html", {"page": page}, style="assets/page.css", scripts=scripts)
    write_page(file, text, alone=True)
    remove_unlinked(file, pages)  # only now: until then the page before needed them
