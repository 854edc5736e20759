"""Case pages of an evaluation: selection, files and links."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from probdice.errors import InputError, ProbdiceError, ProbdiceWarning, Words, in_words
from probdice.files import FORMATS
from probdice.report.encoding import shortened
from probdice.report.page_files import write_comparison
from probdice.report.side_by_side import CaseSlices, PageLink, write_side_by_side
from probdice.text.formatting import quantity

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison
    from probdice.data.surface import Surface
    from probdice.evaluation import Evaluation

__all__ = [
    "ALL_METHODS",
    "Pages",
    "remove_unlinked",
    "select_pages",
    "worst_count",
    "write_case_pages",
]

# File names of pages, and of partial files that an interrupted run may leave.
PAGE = r"\d{4,}-[A-Za-z0-9._-]{1,100}\.html"
PAGE_FILE = re.compile(rf"{PAGE}|\.{PAGE}\.partial")
MAX_PROBLEMS = 3  # problems listed in a warning
ALL_METHODS = ""  # represents all methods of a case; no method has this name

CompareCase = Callable[[str, str], "Comparison"]
Pages = dict[tuple[str, str], str]  # page addresses by case and method


def worst_count(reports: str) -> int | None:
    """Return the number N in "worst:N", 0 for "none", or None for "all"."""
    if reports in ("all", "none"):
        return None if reports == "all" else 0
    worst = re.fullmatch(r"worst:([0-9]{1,9})", reports)
    if worst is None:
        raise InputError(f"reports must be 'all', 'none' or 'worst:N', found {reports!r}")
    return int(worst[1])


def select_pages(evaluation: Evaluation, reports: str) -> list[tuple[str, str]]:
    """Return the pairs of a case and a method that get a page.

    "worst:N" selects the N worst cases of every method, and all methods of the N cases with the
    worst means over methods.
    """
    scored_pages = [(r.case, r.method) for r in evaluation.records if r.comparison is not None]
    count = worst_count(reports)
    if count is None:
        return scored_pages
    worst = evaluation.worst(count=count)
    worst_pages = {(case, method) for method, cases in worst.items() for case in cases}
    worst_cases = _worst_on_average(evaluation, count) if len(evaluation.methods) > 1 else set()
    return [page for page in scored_pages if page in worst_pages or page[0] in worst_cases]


def _worst_on_average(evaluation: Evaluation, count: int) -> set[str]:
    """Return the cases with the worst means over methods.

    Cases in which fewer than two methods have a value are excluded.
    """
    values = np.array(list(_costs(evaluation).values()))
    is_comparable = (~np.isnan(values)).sum(axis=0) > 1
    means = np.full(is_comparable.shape, -np.inf)
    means[is_comparable] = np.nanmean(values[:, is_comparable], axis=0)
    order = np.argsort(-means, kind="stable")[: min(count, int(is_comparable.sum()))]
    return {evaluation.cases[k] for k in order}


def write_case_pages(
    evaluation: Evaluation,
    path: Path,
    selection: list[tuple[str, str]],
    compare_case: CompareCase | None,
    images: Mapping[str, str],
    progress: Callable[[int, int, str], None] | None,
    words: Words = "python",
    surfaces: tuple[Surface, ...] = (),
) -> Pages:
    """Write the case pages into a folder beside the report, and return their addresses.

    An additional page shows the methods of a case side by side if the case has at least two scored
    methods, all of them are in `selection`, and `compare_case` is not None. If a reference of the
    evaluation contains values at vertices, no case gets this page, because vertices have no slices.
    """
    folder = _folder(path)
    if selection:
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: cannot create the folder: {error.strerror}") from error
    names = _names(evaluation, selection, compare_case is not None and not _on_vertices(evaluation))
    pages: Pages = {}
    problems = []
    count = 0
    for case in dict.fromkeys(case for case, _ in selection):
        slices = CaseSlices(case, images.get(case))
        for method in (method for selected_case, method in selection if selected_case == case):
            links = _links(path, names, selection, case, method)
            file = folder / names[case, method]
            comparison, is_written, problem = _write_case_page(
                evaluation,
                case,
                method,
                file,
                compare_case,
                images.get(case),
                surfaces,
                words,
                links,
            )
            if is_written:
                pages[case, method] = quote(f"{folder.name}/{file.name}")
            if (case, ALL_METHODS) in names and not _add_slice(slices, method, comparison):
                slices.absent.append(method)
            if problem:
                problems.append(problem)
            count += 1
            if progress is not None:
                progress(count, len(selection), problem)
        if (case, ALL_METHODS) in names:
            method_pages = {shortened(m): quote(names[c, m]) for c, m in selection if c == case}
            links = _links(path, names, selection, case, ALL_METHODS)
            file = folder / names[case, ALL_METHODS]
            write_side_by_side(slices, _reference_name(evaluation), file, links, method_pages)
            pages[case, ALL_METHODS] = quote(f"{folder.name}/{names[case, ALL_METHODS]}")
    if problems:
        suffix = (
            f"; … and {len(problems) - MAX_PROBLEMS} more" if len(problems) > MAX_PROBLEMS else ""
        )
        warnings.warn("; ".join(problems[:MAX_PROBLEMS]) + suffix, ProbdiceWarning, stacklevel=3)
    return pages


def _add_slice(slices: CaseSlices, method: str, comparison: Comparison | None) -> bool:
    """Add the slices of a method. Return False if its images are missing or cannot be read."""
    if comparison is None:
        return False
    try:
        slices.add(method, comparison)
    except (ProbdiceError, OSError, MemoryError):
        return False
    return True


def _names(
    evaluation: Evaluation, selection: list[tuple[str, str]], images: bool
) -> dict[tuple[str, str], str]:
    """Return the file name of every page by case and method, for the links between pages."""
    totals = Counter(record.case for record in evaluation.records if record.comparison is not None)
    counts = Counter(case for case, _ in selection)
    complete_cases = [case for case, count in counts.items() if 1 < count == totals[case]]
    all_pages = [*selection, *((case, ALL_METHODS) for case in complete_cases if images)]
    names = {}
    for number, (case, method) in enumerate(all_pages):
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{case}-{method or 'all'}")[:100]
        names[case, method] = f"{number:04d}-{name}.html"
    return names


def _on_vertices(evaluation: Evaluation) -> bool:
    """Return whether any reference is a surface file."""
    suffixes = tuple(
        suffix for file_format in FORMATS if file_format.surfaces for suffix in file_format.suffixes
    )
    files = {file.partition(":")[0] for record in evaluation.records for file in record.reference}
    return any(file.lower().endswith(suffixes) for file in files)


def _costs(evaluation: Evaluation) -> dict[str, NDArray[np.float64]]:
    """Return the values of the first ranking measure, signed so that higher is worse."""
    sign = -1.0 if evaluation.higher_is_better(evaluation.rank_by[0]) else 1.0
    return {method: sign * values for method, values in evaluation.values().items()}


def _links(
    path: Path,
    names: dict[tuple[str, str], str],
    selection: list[tuple[str, str]],
    case: str,
    method: str,
) -> list[PageLink]:
    """Return the links of a case page to the report, to adjacent cases and to other methods."""
    same_method = [page for page in names if page[1] == method]
    index = same_method.index((case, method))
    nearby = (("previous", same_method[:index][-1:]), ("next", same_method[index + 1 : index + 2]))
    side_by_side = (
        [(case, ALL_METHODS)] if method != ALL_METHODS and (case, ALL_METHODS) in names else []
    )
    other_methods = [page for page in selection if page[0] == case and page[1] != method]
    return [
        PageLink("← all cases", quote(f"../{path.name}")),
        *(
            PageLink(f"{word}: {shortened(page[0], 60)}", names[page])
            for word, neighbours in nearby
            for page in neighbours
        ),
        *(PageLink("all methods of this case", names[page]) for page in side_by_side),
        *(PageLink(shortened(page[1], 60), names[page]) for page in other_methods),
    ]


def remove_unlinked(path: Path, pages: Pages) -> None:
    """Remove pages and partial pages of earlier runs that are not linked. Other files stay."""
    folder = _folder(path)
    linked_names = {unquote(address) for address in pages.values()}
    with suppress(OSError):  # a page that cannot be removed is harmless
        for file in folder.iterdir():
            if PAGE_FILE.fullmatch(file.name) and f"{folder.name}/{file.name}" not in linked_names:
                file.unlink()
        if not pages:
            folder.rmdir()


def _folder(path: Path) -> Path:
    return path.with_name(f"{path.stem}_cases")


def _reference_name(evaluation: Evaluation) -> str:
    """Return the name of the reference folder, or the number of raters whose mean it contains."""
    raters = evaluation.rater_comparison
    if raters is not None and raters.reference_is_mean:
        return f"the mean of {quantity(len(raters.raters), 'rater')}"
    return Path(evaluation.reference).name


def _write_case_page(
    evaluation: Evaluation,
    case: str,
    method: str,
    file: Path,
    compare_case: CompareCase | None,
    image: str | None,
    surfaces: tuple[Surface, ...],
    words: Words,
    links: Sequence[PageLink],
) -> tuple[Comparison | None, bool, str]:
    """Write the page of a case and a method.

    Return the comparison (None if its images are not available), whether the page was written, and
    a description of the problem ("" if there is none).
    """
    title = f"{case} by {method}, compared with {_reference_name(evaluation)}"
    notice, problem = "", ""
    if compare_case is not None:
        try:
            comparison = compare_case(case, method)
            write_comparison(
                comparison,
                file,
                title=title,
                image=() if image is None else image,
                surface=surfaces,
                every_surface=False,
                words=words,
                links=links,
                has_lock=True,
            )
            return comparison, True, ""
        except (ProbdiceError, OSError, MemoryError) as error:
            reason = _reason(error, words)
            notice = (
                "The page shows only recorded numbers, because the images cannot be shown. "
                f"{reason}"
            )
            problem = f"{case} ({method}): the page has no images: {reason}"
    try:
        comparison = evaluation.comparison(case, method)
        write_comparison(
            comparison, file, title=title, notice=notice, words=words, links=links, has_lock=True
        )
    except (ProbdiceError, OSError, MemoryError) as error:
        problem = f"{case} ({method}): cannot write the page: {_reason(error, words)}"
        return None, False, problem
    return None, True, problem


def _reason(error: Exception, words: Words) -> str:
    """Return an error message, with the option names of Python or of the command line."""
    if isinstance(error, ProbdiceError):
        return in_words(error.args, words)
    return str(error) or "not enough memory"
