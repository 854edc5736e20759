"""Pictures on the page of an evaluation, as addresses that hold all of them."""

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

DRAWN = 4000  # dots up to which a picture is drawn in lines: it can be printed at any size
FINE = 150  # dots an inch of a picture of more


@dataclass(frozen=True)
class Chart:
    """A picture with what it shows."""

    title: str
    address: str
    caption: str


def charts_of(evaluation: Evaluation) -> tuple[Chart, ...]:
    """Regions, where their labels mean the same in every case, and volumes."""
    scored = [record.comparison for record in evaluation.records if record.comparison is not None]
    dots = sum(len(comparison.groups) for comparison in scored)
    charts = []
    if not dots:
        return ()
    if evaluation.labels_agree:
        figure = plot_evaluation(evaluation, "regions")
        caption = "Every dot is a case; bars hold the middle half, and a line is the median."
        charts.append(Chart("Dice of every region", _address(figure, dots), caption))
    if any(group.reference and group.prediction for one in scored for group in one.groups):
        figure = plot_evaluation(evaluation, "volumes")
        caption = (
            "Bland–Altman: every dot is a region of a case, its volume on the prediction less that "
            "on the reference, in per cent of their mean. Dashed lines hold 95 % of a normal "
            "distribution around the mean."
        )
        charts.append(Chart("Volumes", _address(figure, dots), caption))
    return tuple(charts)


def _address(figure: Figure, dots: int) -> str:
    buffer = BytesIO()
    if dots > DRAWN:
        figure.savefig(buffer, format="png", dpi=FINE)
        return _data("image/png", buffer)
    from matplotlib import rc_context

    # The same evaluation is the same page: no date, and names of parts that do not change.
    with rc_context({"svg.hashsalt": "probdice"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return _data("image/svg+xml", buffer)


def _data(kind: str, buffer: BytesIO) -> str:
    return f"data:{kind};base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"
