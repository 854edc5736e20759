"""`probdice summarise`: the tables of a finished run once more."""

from typing import Annotated

import typer

from probdice.cli.outcome import answering
from probdice.cli.pages import REPORTS, check_reports, write_pages
from probdice.cli.parameters import DebugOption, MeasureName

__all__ = ["summarise"]


def summarise(
    out: Annotated[
        str,
        typer.Argument(metavar="OUT", show_default=False, help="The folder of the results."),
    ],
    measure: Annotated[
        MeasureName | None,
        typer.Option(
            metavar="NAME",
            show_default=False,
            help="Tell methods apart by another measure than that of the ranking: score, "
            "adjusted_score, matched_score, explained_reference, explained_prediction, mean_dice, "
            "lowest_dice or, where a background was named, foreground_dice.",
        ),
    ] = None,
    reports: Annotated[
        str | None,
        typer.Option(
            metavar=REPORTS,
            show_default=False,
            help="Write OUT/report.html again, with pages of all cases, of the N lowest of every "
            "method by what ranks, or of none.",
        ),
    ] = None,
    debug: DebugOption = False,
) -> None:
    """Print the tables of an evaluation again."""
    if reports is not None:
        check_reports(reports)
    with answering(debug=debug):
        from probdice.cli.ranking_output import show_summary
        from probdice.errors import InputError
        from probdice.evaluation import Evaluation, read_summary

        summary = read_summary(out)
        if measure is not None and measure.value not in summary["measures"]:
            raise typer.BadParameter(
                f"{out} has {', '.join(summary['measures'])}, found {measure.value!r}",
                param_hint="--measure",
            )
        try:
            show_summary(summary, out, None if measure is None else measure.value)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f"{out}/summary.json: is not as evaluate wrote it; evaluate into this folder again"
            ) from error
        if reports is not None:
            write_pages(Evaluation.load(out), reports, workers=None, quiet=False)
