"""`probdice summarise`: the tables of a finished run once more."""

from enum import StrEnum
from typing import Annotated

import typer

from probdice.cli.options import DebugOption
from probdice.cli.outcome import answering

__all__ = ["MeasureName", "summarise"]


class MeasureName(StrEnum):
    """What methods can be told apart by."""

    score = "score"
    adjusted_score = "adjusted_score"
    matched_score = "matched_score"
    mean_dice = "mean_dice"
    lowest_dice = "lowest_dice"


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
            help="Tell methods apart by score (the default), adjusted_score (the default where "
            "regions were merged), matched_score, mean_dice or lowest_dice.",
        ),
    ] = None,
    debug: DebugOption = False,
) -> None:
    """Print the tables of an evaluation again."""
    with answering(debug=debug):
        from probdice.cli.standings import show_summary
        from probdice.evaluation import read_summary

        show_summary(read_summary(out), out, None if measure is None else measure.value)
