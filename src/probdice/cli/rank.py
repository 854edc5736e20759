"""`probdice rank`: compare human ranks with ranks by score."""

from json import dumps
from typing import TYPE_CHECKING, Annotated

import typer

from probdice.cli.outcome import reporting_errors
from probdice.cli.outputs import check_outputs, write_json
from probdice.cli.parameters import DebugOption, JsonOption, argument, option

if TYPE_CHECKING:
    from rich.console import RenderableType

    from probdice.evaluation.intervals import Interval
    from probdice.paper import Fit, Study

__all__ = ["rank"]

PLOTS = (".png", ".svg", ".pdf")


def rank(
    rankings: Annotated[
        str,
        argument(
            "RANKINGS",
            "CSV file with the columns person, image, segmentation and rank (1 is most similar), "
            "or a folder of CSV files.",
        ),
    ],
    scores: Annotated[
        str,
        argument(
            "SCORES",
            "CSV file with the columns image, segmentation and a score (higher is more similar).",
        ),
    ],
    column: Annotated[
        str, option("Options", "NAME", "Name of the column with the scores; score by default.")
    ] = "score",
    plot: Annotated[
        str | None, option("Options", "FILE", "Write the scatter plot as PNG, SVG or PDF.")
    ] = None,
    json: JsonOption = None,
    seed: Annotated[int, option("Options", "N", "Seed of the bootstrap.", minimum=0)] = 0,
    debug: DebugOption = False,
) -> None:
    """Compare the mean ranks given by people with the ranks by score, as in the paper's study."""
    if plot is not None and not plot.lower().endswith(PLOTS):
        raise typer.BadParameter(
            f"{plot}: the name must end in {', '.join(PLOTS[:-1])} or {PLOTS[-1]}",
            param_hint="--plot",
        )
    inputs = {"RANKINGS": rankings, "SCORES": scores}
    with reporting_errors(debug=debug):
        check_outputs({"--plot": plot, "--json": json}, inputs=inputs)
        from probdice.paper import rank_study, read_rankings, read_scores

        study = rank_study(read_rankings(rankings), read_scores(scores, column=column), seed=seed)
        if plot is not None:
            _write_plot(plot, study)
        if json is not None:
            text = dumps(study.to_dict(), indent=2, allow_nan=False, ensure_ascii=False)
            if write_json(json, text):
                return
        from probdice.cli.display import show

        output_paths = {"scatter plot": plot, "all results": json}
        show(
            *_table(study),
            file_lines=[f"{path}: {content}" for content, path in output_paths.items() if path],
        )


def _write_plot(path: str, study: "Study") -> None:
    from pathlib import Path

    from probdice.files.atomic_files import replacing
    from probdice.paper import draw_study

    with replacing(Path(path)) as partial:
        draw_study(study).savefig(partial, format=path.rsplit(".", 1)[1].lower(), dpi=150)


def _table(study: "Study") -> "list[RenderableType]":
    """Return a title, a table of the fits for each image and for all images, and a legend."""
    from rich.text import Text

    from probdice.cli.terminal_tables import plain_table
    from probdice.paper import PAPER_PEARSON, PAPER_SLOPE

    table = plain_table("image", ">slope", ">Pearson", ">Spearman")
    for image, fit in study.images.items():
        table.add_row(Text(image), *_cells(fit))
    table.add_section()
    table.add_row(Text("all images", style="bold"), *_cells(study.overall), style="bold")
    table.add_row("the paper", str(PAPER_SLOPE), str(PAPER_PEARSON), "–")
    lines = ["in brackets: 95 % bootstrap confidence interval"]
    if study.overall.slope_interval.kind == "withheld":
        lines = [f"no confidence intervals: {study.overall.slope_interval.reason}"]
    return [Text(study.title, style="bold"), "", table, *lines]


def _cells(fit: "Fit") -> list[str]:
    from probdice.text.formatting import decimal

    def cell(value: float, interval: "Interval") -> str:
        if interval.kind == "withheld":
            return decimal(value, 2)
        return f"{decimal(value, 2)} [{decimal(interval.low, 2)}, {decimal(interval.high, 2)}]"

    return [
        cell(fit.slope, fit.slope_interval),
        cell(fit.pearson, fit.pearson_interval),
        cell(fit.spearman, fit.spearman_interval),
    ]
