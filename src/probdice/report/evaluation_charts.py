"""Charts on the page of an evaluation, as data URIs."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

from probdice.pictures.evaluations import plot_evaluation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from probdice.evaluation import Evaluation

__all__ = ["Chart", "charts_of"]

MAX_VECTOR_DOTS = 4000  # charts with more dots are PNG images instead of SVG
PNG_RESOLUTION = 150  # resolution of PNG images, in dots per inch


@dataclass(frozen=True)
class Chart:
    """A chart with its title and caption."""

    title: str
    address: str
    caption: str


def charts_of(evaluation: Evaluation) -> tuple[Chart, ...]:
    """Return a chart of volumes and, if labels mean the same in every case, a chart of regions."""
    results = [record.comparison for record in evaluation.records if record.comparison is not None]
    dots = sum(len(comparison.groups) for comparison in results)
    charts = []
    if not dots:
        return ()
    if evaluation.labels_agree:
        figure = plot_evaluation(evaluation, "regions")
        caption = "One dot per case. Bars show the interquartile range, and lines show the median."
        charts.append(Chart("Dice of every region", _address(figure, dots), caption))
    if any(
        group.reference and group.prediction
        for comparison in results
        for group in comparison.groups
    ):
        figure = plot_evaluation(evaluation, "volumes")
        caption = (
            "Bland–Altman plot, one dot per region and case: predicted minus reference volume, in "
            "per cent of their mean. Dashed lines are the limits of agreement, which contain 95 % "
            "of a normal distribution."
        )
        charts.append(Chart("Volumes", _address(figure, dots), caption))
    return tuple(charts)


def _address(figure: Figure, dots: int) -> str:
    buffer = BytesIO()
    if dots > MAX_VECTOR_DOTS:
        figure.savefig(buffer, format="png", dpi=PNG_RESOLUTION)
        return _data("image/png", buffer)
    from matplotlib import rc_context

    # Without a date and random identifiers, the same evaluation always gives the same page.
    with rc_context({"svg.hashsalt": "probdice"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return _data("image/svg+xml", buffer)


def _data(kind: str, buffer: BytesIO) -> str:
    return f"data:{kind};base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"
