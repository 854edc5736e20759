"""HTML reports.

Each page is a self-contained file that requires neither network access nor a server.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probdice.errors import Words
from probdice.files.inputs import as_surfaces
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
    surface: Any = (),
    words: Words = "python",
    command: str = "",
) -> None:
    """Write an HTML page about a comparison.

    Parameters
    ----------
    comparison : Comparison
        The result of `compare`. If the images of the comparison are not available, the page shows
        no images.
    path : path
        The file to write. An existing file is replaced once the new file is complete.
    title : str, optional
        The title of the page. The default contains the file names, or is "Reference and prediction"
        for arrays.
    image : array, path or image, or several, optional
        One or more images to show under the segmentations, such as the segmented scan. The images
        must be on the grid of the segmentations, within the option `geometry_tolerance` of the
        comparison. For arrays, and if the comparison ignores the geometry, the same shape is
        sufficient. Colour images are supported.
    surface : path or several, optional
        Surfaces, one per hemisphere, on which to show values at vertices. They are FreeSurfer files
        such as ``lh.inflated``, or GIFTI files (.surf.gii). Without surfaces, values at vertices
        are shown only in plots and tables.
    words : {"python", "command"}, optional
        Whether notes and hints use the option names of Python (``merge="both"``) or of the command
        line (``--merge both``).
    command : str, optional
        The command line that created the page. The page shows it and has a button to copy it.

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
    write_comparison(
        comparison,
        Path(path),
        title=title,
        image=image,
        surface=surface,
        words=words,
        command=command,
    )


def write_evaluation(
    evaluation: Evaluation,
    path: str | os.PathLike[str],
    *,
    reports: str = "worst:5",
    again: Callable[[str, str], Comparison] | None = None,
    images: Mapping[str, str] | None = None,
    surface: Any = (),
    title: str | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    words: Words = "python",
) -> dict[tuple[str, str], str]:
    """Write the HTML report of an evaluation, and the pages of selected cases into a folder.

    Case pages of an earlier run that are no longer linked are removed. If `again` raises an error
    for a case, for example because a file is missing, the case page shows the recorded results and
    a notice. If the recorded results are not available either, the case has no page. Both problems
    cause a warning, not an error.

    Parameters
    ----------
    evaluation : Evaluation
        The result of `evaluate`.
    path : path
        The file to write. The case pages are written to a folder next to it, which has the name of
        the file with the suffix ``_cases`` instead of ``.html``.
    reports : str, optional
        The cases that get a page: ``"all"``, ``"none"`` or ``"worst:N"``. ``"worst:N"`` selects the
        N worst cases of every method by the first ranking measure. With several methods,
        ``"worst:N"`` also selects the N cases with the worst mean over methods, for all methods.
    again : callable, optional
        A function that receives the case and the method and returns the comparison with its images.
        By default, the comparison is read from the journal, and the case pages have no images.
    images : mapping of str to path, optional
        The images to show under the segmentations, by case. Cases may be omitted.
    surface : path or several, optional
        Surfaces on which to show values at vertices; each case uses the surfaces of its
        hemispheres.
    title : str, optional
        The title of the report. The default contains the numbers of cases and methods.
    progress : callable, optional
        A function that is called after the page of every selected case and method, with the number
        of finished pages, the total number of these pages, and a description of the problem with
        this page ("" if there is none).
    words : {"python", "command"}, optional
        Whether pages and warnings use the option names of Python or of the command line; see
        `write`.

    Returns
    -------
    dict of (str, str) to str
        The addresses of the case pages, relative to the report, by case and method. The method ""
        refers to the page that shows all methods of a case side by side.

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
    {('a', 'mine'): 'report_cases/0000-a-mine.html'}
    >>> sorted(name for name in os.listdir(out) if name.startswith("report"))
    ['report.html', 'report_cases']
    >>> folder.cleanup()
    """
    from probdice.report.cases import remove_unlinked, select_pages, write_case_pages
    from probdice.report.evaluation_page import evaluation_page

    file = Path(path)
    selection = select_pages(evaluation, reports)
    pages = write_case_pages(
        evaluation, file, selection, again, images or {}, progress, words, as_surfaces(surface)
    )
    page = evaluation_page(evaluation, pages, title)
    scripts = tuple(f"assets/{name}.js" for name in ("numbers", "tables", "evaluation", "paper"))
    text = render(
        "evaluation.html",
        {"page": page},
        style="assets/page.css",
        extra_styles=("assets/evaluation.css",),
        scripts=scripts,
    )
    write_page(file, text, has_lock=True)
    # Old case pages are removed last, because the old report links to them until it is replaced.
    remove_unlinked(file, pages)
    return pages
