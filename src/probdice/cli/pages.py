"""Write the report and the case pages of an evaluation."""

from typing import TYPE_CHECKING

import typer

from probdice.cli.progress import counting_bar
from probdice.cli.streams import print_text

if TYPE_CHECKING:
    from probdice.evaluation import Evaluation

__all__ = ["REPORTS", "check_reports", "write_pages"]

REPORTS = "all|worst:N|none"


def check_reports(reports: str) -> None:
    """Raise a usage error for an unknown value of --reports."""
    from probdice.errors import InputError
    from probdice.report.cases import worst_count

    try:
        worst_count(reports)
    except InputError:
        raise typer.BadParameter(
            f"expected all, none, or worst:N with a number N, found {reports!r}",
            param_hint="--reports",
        ) from None


def write_pages(
    evaluation: "Evaluation", reports: str, *, workers: int | None, quiet: bool
) -> None:
    """Write the pages into the results folder, and print the path of the report."""
    with counting_bar("pages", visible=not quiet) as bar:

        def show_progress(finished_count: int, total: int, problem: str) -> None:
            if problem:
                bar.print(problem.splitlines()[0])
            bar.show(finished_count, total)

        page = evaluation.report(reports=reports, workers=workers, progress=show_progress)
    if not quiet:
        print_text(f"wrote {page}: report\n")
