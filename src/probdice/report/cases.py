"""The pages of cases beside the page of a folder run: which, where, and what if one fails."""

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

from probdice.errors import InputError, ProbdiceError, ProbdiceWarning, Words, in_words
from probdice.report.encoding import shortened
from probdice.report.page_files import write_comparison
from probdice.report.side_by_side import CaseSlices, PageLink, write_side_by_side

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison
    from probdice.evaluation import Evaluation

__all__ = [
    "TOGETHER",
    "Pages",
    "pages_wanted",
    "remove_unlinked",
    "worst_count",
    "write_case_pages",
]

# What we call a page, and what a killed run may leave of one.
PAGE = r"\d{4,}-[A-Za-z0-9._-]{1,100}\.html"
OURS = re.compile(rf"{PAGE}|\.{PAGE}\.partial")
SHOWN = 3  # troubles in a warning
TOGETHER = ""  # stands for all methods of a case: no method is called so

Again = Callable[[str, str], "Comparison"]
Pages = dict[tuple[str, str], str]  # the address of the page of a case and a method


def worst_count(reports: str) -> int | None:
    """How many of the worst cases of a method get a page: N of "worst:N"; None for all."""
    if reports in ("all", "none"):
        return None if reports == "all" else 0
    worst = re.fullmatch(r"worst:([0-9]{1,9})", reports)
    if worst is None:
        raise InputError(f"reports must be 'all', 'none' or 'worst:N', found {reports!r}")
    return int(worst[1])


def pages_wanted(evaluation: Evaluation, reports: str) -> list[tuple[str, str]]:
    """The cases and methods that get a page of their own.

    Of "worst:N" these are the N worst cases of every method, and all methods of the N cases that
    are worst on average.
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
    """The cases with the lowest means over the methods, of those that several methods have."""
    values = np.array(list(evaluation.values().values()))
    known = (~np.isnan(values)).sum(axis=0) > 1
    means = np.full(known.shape, np.inf)
    means[known] = np.nanmean(values[:, known], axis=0)
    order = np.argsort(means, kind="stable")[: min(count, int(known.sum()))]
    return {evaluation.cases[k] for k in order}


def write_case_pages(
    evaluation: Evaluation,
    path: Path,
    wanted: list[tuple[str, str]],
    again: Again | None,
    images: Mapping[str, str],
    progress: Callable[[int, int, str], None] | None,
    words: Words = "python",
) -> Pages:
    """Write the pages of cases into a folder beside the page, one at a time; their addresses.

    A case of which all methods are wanted has one more page, with all of them side by side.
    """
    folder = _folder(path)
    if wanted:
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: cannot be made: {error.strerror}") from error
    names = _names(evaluation, wanted, again is not None)
    pages: Pages = {}
    troubles = []
    done = 0
    for case in dict.fromkeys(case for case, _ in wanted):
        slices = CaseSlices(case)
        for method in _worst_first(evaluation, case, wanted):
            links = _links(path, names, wanted, case, method)
            file = folder / names[case, method]
            comparison, written, trouble = _write(
                evaluation, case, method, file, again, images.get(case), words, links
            )
            if written:
                pages[case, method] = quote(f"{folder.name}/{file.name}")
            if (case, TOGETHER) in names and not _gathered(slices, method, comparison):
                slices.absent.append(method)
            if trouble:
                troubles.append(trouble)
            done += 1
            if progress is not None:
                progress(done, len(wanted), trouble)
        if (case, TOGETHER) in names:
            own = {shortened(m): quote(names[c, m]) for c, m in wanted if c == case}
            links = _links(path, names, wanted, case, TOGETHER)
            write_side_by_side(slices, folder / names[case, TOGETHER], links, own)
            pages[case, TOGETHER] = quote(f"{folder.name}/{names[case, TOGETHER]}")
    if troubles:
        more = f"; … and {len(troubles) - SHOWN} more" if len(troubles) > SHOWN else ""
        warnings.warn("; ".join(troubles[:SHOWN]) + more, ProbdiceWarning, stacklevel=3)
    return pages


def _gathered(slices: CaseSlices, method: str, comparison: Comparison | None) -> bool:
    """Whether the slice of a method was added: its images may be gone or too large."""
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
    """The names of the files, known before any of them is written so that they can be linked."""
    scored = Counter(record.case for record in evaluation.records if record.comparison is not None)
    counts = Counter(case for case, _ in wanted)
    several = [case for case, count in counts.items() if 1 < count == scored[case]]
    everything = [*wanted, *((case, TOGETHER) for case in several if images)]
    names = {}
    for number, (case, method) in enumerate(everything):
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{case}-{method or 'all'}")[:100]
        names[case, method] = f"{number:04d}-{name}.html"
    return names


def _worst_first(evaluation: Evaluation, case: str, wanted: list[tuple[str, str]]) -> list[str]:
    """The methods of a case that are wanted; the worst one says where all of them are cut."""
    place = evaluation.cases.index(case)
    values = evaluation.values()
    methods = [method for one, method in wanted if one == case]
    return sorted(methods, key=lambda method: np.nan_to_num(values[method][place], nan=np.inf))


def _links(
    path: Path,
    names: dict[tuple[str, str], str],
    wanted: list[tuple[str, str]],
    case: str,
    method: str,
) -> list[PageLink]:
    """From the page of a case back, to its other methods, and to the cases before and after."""
    links = [PageLink("← all cases", quote(f"../{path.name}"))]
    here = [one for one in names if one[1] == method]
    at = here.index((case, method))
    if at > 0:
        links.append(PageLink(f"previous: {shortened(here[at - 1][0], 60)}", names[here[at - 1]]))
    if at + 1 < len(here):
        links.append(PageLink(f"next: {shortened(here[at + 1][0], 60)}", names[here[at + 1]]))
    if method != TOGETHER and (case, TOGETHER) in names:
        links.append(PageLink("all methods of this case", names[case, TOGETHER]))
    links += [
        PageLink(shortened(other, 60), names[case, other])
        for one, other in wanted
        if one == case and other != method
    ]
    return links


def remove_unlinked(path: Path, pages: Pages) -> None:
    """Remove the pages of cases that an earlier run made, and nothing that is not ours."""
    folder = _folder(path)
    linked = {unquote(address) for address in pages.values()}
    with suppress(OSError):  # what cannot be removed is in nobody's way
        for file in folder.iterdir():
            if OURS.fullmatch(file.name) and f"{folder.name}/{file.name}" not in linked:
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
    words: Words,
    links: Sequence[PageLink],
) -> tuple[Comparison | None, bool, str]:
    """The comparison with its images, whether there is a page, and what is wrong with it."""
    title, notice, trouble = f"{case} by {method}", "", ""
    if again is not None:
        try:
            comparison = again(case, method)
            write_comparison(
                comparison,
                file,
                title=title,
                image=() if image is None else image,
                words=words,
                links=links,
                alone=True,
            )
            return comparison, True, ""
        except (ProbdiceError, OSError, MemoryError) as error:
            reason = _reason(error, words)
            notice = f"There are no images of this case, only what was recorded: {reason}"
            trouble = f"the page of {case} ({method}) has no images: {reason}"
    try:
        recorded = evaluation.comparison(case, method)
        write_comparison(
            recorded, file, title=title, notice=notice, words=words, links=links, alone=True
        )
    except (ProbdiceError, OSError, MemoryError) as error:
        return None, False, f"{case} ({method}) has no page: {_reason(error, words)}"
    return None, True, trouble


def _reason(error: Exception, words: Words) -> str:
    """What is wrong, for someone who calls functions or who types commands."""
    if isinstance(error, ProbdiceError):
        return in_words(error.args, words)
    return str(error) or "not enough memory"
