"""`probdice summarise`: print the tables of an evaluation again."""

from typing import Annotated

import typer

from probdice.cli.outcome import reporting_errors
from probdice.cli.pages import REPORTS, check_reports, write_pages
from probdice.cli.parameters import DebugOption, ResultsArgument, option

__all__ = ["summarise"]


def summarise(
    out: ResultsArgument,
    measure: Annotated[
        str | None,
        option(
            "Options",
            "NAME",
            "Rank methods by another measure of the evaluation, such as mean_dice or hd95.",
        ),
    ] = None,
    reports: Annotated[
        str | None,
        option(
            "Options",
            REPORTS,
            "Write OUT/report.html again, with pages for all cases, for the N worst cases of each "
            "method and of all methods together by the first ranking measure, or for no case.",
        ),
    ] = None,
    debug: DebugOption = False,
) -> None:
    """Print the tables of an evaluation again."""
    if reports is not None:
        check_reports(reports)
    with reporting_errors(debug=debug):
        from probdice.cli.ranking_output import show_summary
        from probdice.errors import InputError
        from probdice.evaluation import Evaluation, read_summary

        summary = read_summary(out)
        if measure is not None and measure not in summary["measures"]:
            raise typer.BadParameter(
                f"{out} has no measure {measure}; expected one of {', '.join(summary['measures'])}",
                param_hint="--measure",
            )
        try:
            show_summary(summary, out, measure)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f"{out}/summary.json: not a valid summary; run evaluate with this folder again"
            ) from error
        if reports is not None:
            write_pages(Evaluation.load(out), reports, workers=None, quiet=False)
