"""The pages of individual cases of an evaluation: selection, files and links."""

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

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison
    from probdice.data.surface import Surface
    from probdice.evaluation import Evaluation

__all__ = [
    "TOGETHER",
    "Pages",
    "pages_wanted",
    "remove_unlinked",
    "worst_count",
    "write_case_pages",
]

# File names of pages, and of partial files that a killed run may leave.
PAGE = r"\d{4,}-[A-Za-z0-9._-]{1,100}\.html"
PAGE_FILE = re.compile(rf"{PAGE}|\.{PAGE}\.partial")
MAX_PROBLEMS = 3  # problems listed in a warning
TOGETHER = ""  # stands for all methods of a case; no method has this name

Again = Callable[[str, str], "Comparison"]
Pages = dict[tuple[str, str], str]  # page addresses by case and method


def worst_count(reports: str) -> int | None:
    """Return the number N of "worst:N"; 0 for "none" and None for "all"."""
    if reports in ("all", "none"):
        return None if reports == "all" else 0
    worst = re.fullmatch(r"worst:([0-9]{1,9})", reports)
    if worst is None:
        raise InputError(f"reports must be 'all', 'none' or 'worst:N', found {reports!r}")
    return int(worst[1])


def pages_wanted(evaluation: Evaluation, reports: str) -> list[tuple[str, str]]:
    """Return the cases and methods that get a page.

    "worst:N" selects the N worst cases of every method, and all methods of the N cases with the
    worst means over methods.
    """
    scored = [(r.case, r.method) for r in evaluation.records if r.comparison is not None]
    count = worst_count(reports)
    if count is None:
        return scored
    worst = evaluation.worst(count=count)
    wanted = {(case, method) for method, cases in worst.items() for case in cases}
    together = _worst_on_average(evaluation, count) if len(evaluation.methods) > 1 else set()
    return [one for one in scored if one in wanted or one[0] in together]


def _worst_on_average(evaluation: Evaluation, count: int) -> set[str]:
    """Return the cases with the worst means over methods, among cases with at least two methods."""
    values = np.array(list(_costs(evaluation).values()))
    known = (~np.isnan(values)).sum(axis=0) > 1
    means = np.full(known.shape, -np.inf)
    means[known] = np.nanmean(values[:, known], axis=0)
    order = np.argsort(-means, kind="stable")[: min(count, int(known.sum()))]
    return {evaluation.cases[k] for k in order}


def write_case_pages(
    evaluation: Evaluation,
    path: Path,
    wanted: list[tuple[str, str]],
    again: Again | None,
    images: Mapping[str, str],
    progress: Callable[[int, int, str], None] | None,
    words: Words = "python",
    surfaces: tuple[Surface, ...] = (),
) -> Pages:
    """Write the pages of cases into a folder beside the report, and return their addresses.

    A case whose methods are all in `wanted` gets an additional page that shows the methods side by
    side, unless its values belong to vertices, which have no slices.
    """
    folder = _folder(path)
    if wanted:
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: cannot create the folder: {error.strerror}") from error
    names = _names(evaluation, wanted, again is not None and not _on_vertices(evaluation))
    pages: Pages = {}
    problems = []
    done = 0
    for case in dict.fromkeys(case for case, _ in wanted):
        slices = CaseSlices(case, images.get(case))
        for method in _worst_first(evaluation, case, wanted):
            links = _links(path, names, wanted, case, method)
            file = folder / names[case, method]
            comparison, written, problem = _write(
                evaluation, case, method, file, again, images.get(case), surfaces, words, links
            )
            if written:
                pages[case, method] = quote(f"{folder.name}/{file.name}")
            if (case, TOGETHER) in names and not _gathered(slices, method, comparison):
                slices.absent.append(method)
            if problem:
                problems.append(problem)
            done += 1
            if progress is not None:
                progress(done, len(wanted), problem)
        if (case, TOGETHER) in names:
            own = {shortened(m): quote(names[c, m]) for c, m in wanted if c == case}
            links = _links(path, names, wanted, case, TOGETHER)
            write_side_by_side(slices, folder / names[case, TOGETHER], links, own)
            pages[case, TOGETHER] = quote(f"{folder.name}/{names[case, TOGETHER]}")
    if problems:
        rest = (
            f"; … and {len(problems) - MAX_PROBLEMS} more" if len(problems) > MAX_PROBLEMS else ""
        )
        warnings.warn("; ".join(problems[:MAX_PROBLEMS]) + rest, ProbdiceWarning, stacklevel=3)
    return pages


def _gathered(slices: CaseSlices, method: str, comparison: Comparison | None) -> bool:
    """Add the slice of a method; return False if its images are unavailable or too large."""
    if comparison is None:
        return False
    try:
        slices.add(method, comparison)
    except (ProbdiceError, OSError, MemoryError):
        return False
    return True


def _names(
    evaluation: Evaluation, wanted: list[tuple[str, str]], images: bool
) -> dict[tuple[str, str], str]:
    """Return the file names of all pages, for the links between pages."""
    scored = Counter(record.case for record in evaluation.records if record.comparison is not None)
    counts = Counter(case for case, _ in wanted)
    several = [case for case, count in counts.items() if 1 < count == scored[case]]
    everything = [*wanted, *((case, TOGETHER) for case in several if images)]
    names = {}
    for number, (case, method) in enumerate(everything):
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{case}-{method or 'all'}")[:100]
        names[case, method] = f"{number:04d}-{name}.html"
    return names


def _on_vertices(evaluation: Evaluation) -> bool:
    """Return whether the references are surface files."""
    suffixes = tuple(
        suffix for file_format in FORMATS if file_format.surfaces for suffix in file_format.suffixes
    )
    files = {file.partition(":")[0] for record in evaluation.records for file in record.reference}
    return any(file.lower().endswith(suffixes) for file in files)


def _worst_first(evaluation: Evaluation, case: str, wanted: list[tuple[str, str]]) -> list[str]:
    """Return the selected methods of a case, worst first.

    The worst method determines the displayed slice.
    """
    place = evaluation.cases.index(case)
    costs = _costs(evaluation)
    methods = [method for one, method in wanted if one == case]
    return sorted(methods, key=lambda method: np.nan_to_num(-costs[method][place], nan=np.inf))


def _costs(evaluation: Evaluation) -> dict[str, NDArray[np.float64]]:
    """Return the values of the first ranking measure, signed so that higher is worse."""
    sign = -1.0 if evaluation.higher_is_better(evaluation.rank_by[0]) else 1.0
    return {method: sign * values for method, values in evaluation.values().items()}


def _links(
    path: Path,
    names: dict[tuple[str, str], str],
    wanted: list[tuple[str, str]],
    case: str,
    method: str,
) -> list[PageLink]:
    """Links from the page of a case to the report, to adjacent cases and to other methods."""
    same_method = [one for one in names if one[1] == method]
    place = same_method.index((case, method))
    nearby = (("previous", same_method[:place][-1:]), ("next", same_method[place + 1 : place + 2]))
    own = [(case, TOGETHER)] if method != TOGETHER and (case, TOGETHER) in names else []
    others = [one for one in wanted if one[0] == case and one[1] != method]
    return [
        PageLink("← all cases", quote(f"../{path.name}")),
        *(
            PageLink(f"{word}: {shortened(one[0], 60)}", names[one])
            for word, some in nearby
            for one in some
        ),
        *(PageLink("all methods of this case", names[one]) for one in own),
        *(PageLink(shortened(one[1], 60), names[one]) for one in others),
    ]


def remove_unlinked(path: Path, pages: Pages) -> None:
    """Remove pages of earlier runs that are no longer linked. Other files stay."""
    folder = _folder(path)
    linked = {unquote(address) for address in pages.values()}
    with suppress(OSError):  # a page that cannot be removed does no harm
        for file in folder.iterdir():
            if PAGE_FILE.fullmatch(file.name) and f"{folder.name}/{file.name}" not in linked:
                file.unlink()
        if not pages:
            folder.rmdir()


def _folder(path: Path) -> Path:
    return path.with_name(f"{path.stem}_cases")


def _write(
    evaluation: Evaluation,
    case: str,
    method: str,
    file: Path,
    again: Again | None,
    image: str | None,
    surfaces: tuple[Surface, ...],
    words: Words,
    links: Sequence[PageLink],
) -> tuple[Comparison | None, bool, str]:
    """Write a page. Return the comparison with images, whether the page exists, and a problem."""
    title, notice, problem = f"{case} by {method}", "", ""
    if again is not None:
        try:
            comparison = again(case, method)
            write_comparison(
                comparison,
                file,
                title=title,
                image=() if image is None else image,
                surface=surfaces,
                every_surface=False,
                words=words,
                links=links,
                alone=True,
            )
            return comparison, True, ""
        except (ProbdiceError, OSError, MemoryError) as error:
            reason = _reason(error, words)
            notice = f"No images are available, so the page shows recorded numbers: {reason}"
            problem = f"{case} ({method}): the page has no images: {reason}"
    try:
        recorded = evaluation.comparison(case, method)
        write_comparison(
            recorded, file, title=title, notice=notice, words=words, links=links, alone=True
        )
    except (ProbdiceError, OSError, MemoryError) as error:
        problem = f"{case} ({method}): cannot write the page: {_reason(error, words)}"
        return None, False, problem
    return None, True, problem


def _reason(error: Exception, words: Words) -> str:
    """Return the message of an error, with the option names of Python or of the command line."""
    if isinstance(error, ProbdiceError):
        return in_words(error.args, words)
    return str(error) or "not enough memory"
