"""The pages of cases beside the page of a folder run: which, where, and what if one fails."""

import re
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, unquote

from probdice.comparison import Comparison
from probdice.errors import InputError, ProbdiceError, ProbdiceWarning, Words, in_words
from probdice.evaluation import Evaluation
from probdice.report.writing import write_comparison

__all__ = ["Pages", "pages_wanted", "remove_unlinked", "worst_count", "write_case_pages"]

# What we call a page, and what a killed run may leave of one.
PAGE = r"\d{4,}-[A-Za-z0-9._-]{1,100}\.html"
OURS = re.compile(rf"{PAGE}|\.{PAGE}\.partial")
SHOWN = 3  # troubles in a warning

Again = Callable[[str, str], Comparison]
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
    """The cases and methods that get a page of their own."""
    scored = [(r.case, r.method) for r in evaluation.records if r.comparison is not None]
    count = worst_count(reports)
    if count is None:
        return scored
    worst = evaluation.worst(count=count)
    wanted = {(case, method) for method, cases in worst.items() for case in cases}
    return [one for one in scored if one in wanted]


def write_case_pages(
    evaluation: Evaluation,
    path: Path,
    wanted: list[tuple[str, str]],
    again: Again | None,
    images: Mapping[str, str],
    progress: Callable[[int, int, str], None] | None,
    words: Words = "python",
) -> Pages:
    """Write the pages of cases into a folder beside the page, one at a time; their addresses."""
    folder = _folder(path)
    if wanted:
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: cannot be made: {error.strerror}") from error
    pages: Pages = {}
    troubles = []
    for number, (case, method) in enumerate(wanted):
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{case}-{method}")[:100]
        file = folder / f"{number:04d}-{name}.html"
        written, trouble = _write(evaluation, case, method, file, again, images.get(case), words)
        if written:
            pages[case, method] = quote(f"{folder.name}/{file.name}")
        if trouble:
            troubles.append(trouble)
        if progress is not None:
            progress(number + 1, len(wanted), trouble)
    if troubles:
        more = f"; … and {len(troubles) - SHOWN} more" if len(troubles) > SHOWN else ""
        warnings.warn("; ".join(troubles[:SHOWN]) + more, ProbdiceWarning, stacklevel=3)
    return pages


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
) -> tuple[bool, str]:
    """Whether there is a page of the case, and what is wrong with it."""
    title, notice, trouble = f"{case} by {method}", "", ""
    if again is not None:
        try:
            write_comparison(
                again(case, method),
                file,
                title=title,
                image=() if image is None else image,
                words=words,
                alone=True,
            )
            return True, ""
        except (ProbdiceError, OSError, MemoryError) as error:
            reason = _reason(error, words)
            notice = f"There are no images of this case, only what was recorded: {reason}"
            trouble = f"the page of {case} ({method}) has no images: {reason}"
    try:
        recorded = evaluation.comparison(case, method)
        write_comparison(recorded, file, title=title, notice=notice, words=words, alone=True)
    except (ProbdiceError, OSError, MemoryError) as error:
        return False, f"{case} ({method}) has no page: {_reason(error, words)}"
    return True, trouble


def _reason(error: Exception, words: Words) -> str:
    """What is wrong, for someone who calls functions or who types commands."""
    if isinstance(error, ProbdiceError):
        return in_words(error.args, words)
    return str(error) or "not enough memory"
