"""Plots of volume differences against mean volumes, per method of an evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle
from math import ceil, isnan
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from probdice.pictures.canvas import DOTS, PAGE, PlotRequest, canvas_for, tidy
from probdice.pictures.colours import PALETTE
from probdice.pictures.region_names import MAX_NAME_LENGTH, short_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from probdice.evaluation import Evaluation

__all__ = ["Volumes", "draw_volumes", "limits_of", "volumes_of"]

ACROSS = 3  # largest number of panels per row
LOGARITHMIC = 30  # ratio of the largest to the smallest volume above which the axis is logarithmic
NORMAL = 1.96  # ± this many standard deviations contain 95 % of a normal distribution

Floats = NDArray[np.float64]


def draw_volumes(evaluation: Evaluation, measure: str | None, request: PlotRequest) -> Figure:
    """Draw the difference of volumes against their mean, with one panel per method."""
    methods = list(evaluation.methods)
    across = min(len(methods), ACROSS)
    down = ceil(len(methods) / across)
    size = max(3.1 * across, 4.0), min(2.7 * down + 0.3, PAGE)
    if request.axes is None:
        canvas = canvas_for(request, size, rows=down, columns=across)
    else:
        canvas = canvas_for(request, size, columns=len(methods))
    for unused_ax in canvas.axes[len(methods) :]:
        unused_ax.set_axis_off()
    volumes = {method: volumes_of(evaluation, method) for method in methods}
    names = short_names(methods, MAX_NAME_LENGTH)
    for ax, method, name, colour in zip(canvas.axes, methods, names, cycle(PALETTE), strict=False):
        _draw_volumes(ax, volumes[method], name, colour)
    highest = max(
        (float(abs(ax.get_ylim()[end])) for ax in canvas.axes[: len(methods)] for end in (0, 1)),
        default=1.0,
    )
    for ax in canvas.axes[: len(methods)]:
        ax.set_ylim(-highest, highest)  # equal limits make methods comparable
    return canvas.figure


def _draw_volumes(ax: Axes, volumes: Volumes, name: str, colour: str) -> None:
    differences = volumes.differences
    mean, low, high = limits_of(differences)
    ax.plot(volumes.means, differences, "o", ms=DOTS, color=colour, alpha=0.65, mew=0)
    ax.axhline(0, color="#BBBBBB", linewidth=0.7)
    for level, style in ((mean, "solid"), (low, (0, (4, 3))), (high, (0, (4, 3)))):
        if not isnan(level):
            ax.axhline(level, color="black", linewidth=0.9, linestyle=style)
            ax.annotate(
                f"{level:+.1f} %".replace("-", "−"),
                (1, level),
                xycoords=("axes fraction", "data"),
                xytext=(-2, 1),
                textcoords="offset points",
                ha="right",
                va="bottom",
                fontsize=7,
            )
    if volumes.means.size and volumes.means.max() > LOGARITHMIC * volumes.means.min():
        ax.set_xscale("log")
    ax.set_title(f"{name} ({volumes.means.size:,} regions)", fontsize=9)
    ax.set_xlabel(f"mean volume in {volumes.unit}", fontsize=8)
    ax.set_ylabel("difference, % of the mean", fontsize=8)
    tidy(ax)


@dataclass(frozen=True, eq=False)
class Volumes:
    """Volumes of the matched groups in all cases of a method, excluding faint groups."""

    reference: Floats
    prediction: Floats
    unit: str

    @property
    def means(self) -> Floats:
        """The mean of the reference volume and the prediction volume of each group."""
        return (self.reference + self.prediction) / 2

    @property
    def differences(self) -> Floats:
        """Prediction − reference, as a percentage of the mean volume."""
        return 100 * (self.prediction - self.reference) / self.means


def volumes_of(evaluation: Evaluation, method: str) -> Volumes:
    """Return the volumes of a method.

    The unit is millilitres if all cases have a pixel size, and pixels otherwise.
    """
    comparisons = [
        record.comparison
        for record in evaluation.records
        if record.method == method and record.comparison is not None
    ]
    has_size = bool(comparisons) and all(result.pixel_volume is not None for result in comparisons)
    pairs = [
        (group.reference_volume * scale, group.prediction_volume * scale)
        for result in comparisons
        for scale in [(result.pixel_volume or 0) / 1000 if has_size else 1.0]
        for group in result.groups
        if group.reference and group.prediction and not group.faint
    ]
    values = np.array(pairs, np.float64).reshape(-1, 2)
    return Volumes(values[:, 0], values[:, 1], "mL" if has_size else "pixels")


def limits_of(differences: Floats) -> tuple[float, float, float]:
    """Return the mean difference and both limits of agreement; NaN without differences."""
    if not differences.size:
        return float("nan"), float("nan"), float("nan")
    mean = float(differences.mean())
    spread = NORMAL * float(differences.std(ddof=1)) if differences.size > 1 else 0.0
    return mean, mean - spread, mean + spread
