"""The reliability diagram."""

from typing import TYPE_CHECKING

import numpy as np

from probdice.metrics.calibration import Calibration
from probdice.pictures.canvas import tidy
from probdice.pictures.layout import MATCHED
from probdice.text.formatting import decimal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_calibration"]

LIMIT = 1.96  # half-width of the band, in standard errors


def draw_calibration(calibration: Calibration) -> "Figure":
    """Draw observed frequencies against the predicted probabilities of the most probable region.

    The band of chance is drawn only if the reference is a label map.
    """
    from matplotlib.figure import Figure

    likely = calibration.likely
    figure = Figure(figsize=(4.6, 5.0), layout="constrained", dpi=120)
    ax, below = figure.subplots(2, 1, height_ratios=[4, 1], sharex=True)
    ax.plot([0, 1], [0, 1], color="#999999", linewidth=0.8, linestyle=(0, (4, 3)))
    if calibration.crisp_reference:  # the probabilities of a soft reference are not binomial
        error = LIMIT * np.sqrt(likely.predicted * (1 - likely.predicted) / likely.pixels)
        ax.fill_between(
            likely.predicted,
            np.clip(likely.predicted - error, 0, 1),
            np.clip(likely.predicted + error, 0, 1),
            color="#999999",
            alpha=0.25,
            linewidth=0,
            label="95 % of calibrated predictors",
        )
        ax.legend(loc="upper left", fontsize=7, frameon=False)
    ax.plot(likely.predicted, likely.observed, "o-", color=MATCHED, markersize=4)
    ax.set(xlim=(0, 1), ylim=(0, 1), ylabel="observed frequency", xlabel="predicted probability")
    ax.set_title(
        f"expected error {decimal(likely.expected_error)} "
        f"(chance {decimal(likely.chance_expected_error)}), "
        f"maximum {decimal(likely.maximum_error)}",
        fontsize=8,
    )
    share = likely.pixels / likely.pixels.sum()
    width = likely.upper - likely.lower
    below.bar(likely.lower, share, width=width, align="edge", color=MATCHED, alpha=0.6)
    below.set(ylabel="share of pixels", yscale="log")
    for axis in (ax, below):
        tidy(axis)
    return figure
