"""Calibration of a prediction's probabilities against a crisp or soft reference.

One pass sorts the pixels of every group into fine bins of the predicted probability and sums
moments per bin. The calibration errors, their chance values and the Brier score are computed from
these moments. The same pass computes the log loss and counts pixels above thresholds. Conventions:

- *Expected and maximum calibration errors* of the most probable region of every pixel follow Guo et
  al. (2017). Bins exclude their lower end and include their upper end; the first bin also includes
  0. The errors are the mean over pixels and the maximum over bins of |mean predicted probability in
  the bin − share of correct pixels in the bin|. The CURVAS challenge computes the expected error
  against each rater. For a soft reference, the mean reference probability of the most probable
  region replaces the share of correct pixels.
- *Chance* is the mean error of a calibrated predictor. For a label map as reference, it is computed
  from references whose regions are drawn at random, independently at every pixel, with the
  predicted probabilities. Neighbouring pixels of a real image are not independent, so a calibrated
  predictor may have larger errors for such an image.
- *Brier* is the mean over pixels of Σ (q − p)² over all groups (Brier 1950), decomposed as in
  Murphy (1973) with the within-bin terms of Stephenson et al. (2008). With the signs given in
  `Brier`, the terms sum to the score.
- *Thresholded Dice* follows QUBIQ: both sides are thresholded (values above the threshold are
  inside), and the classical Dice coefficients are averaged over the thresholds. The Dice
  coefficient of two empty masks is 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from math import nan
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from probdice.errors import InputError
from probdice.method.scoring import key_lists
from probdice.metrics.calibration_bins import Binning, Brier, CalibrationBins, Reliability
from probdice.text.formatting import decimal
from probdice.text.table_output import aligned_columns

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from probdice.comparison.result import Comparison, Group
    from probdice.engine.moment_passes import Forecast
    from probdice.method.region_labels import Label

__all__ = ["Binning", "Brier", "Calibration", "RegionCalibration", "Reliability", "calibration_of"]

# Smallest number of fine bins per group, unless `MAX_FINE_BINS` limits it. Fine bins are combined
# into bins of equal width or mass.
FINE_BINS = 4096
MAX_FINE_BINS = 2**20  # largest total number of fine bins, but every bin has at least one fine bin


@dataclass(frozen=True, eq=False)
class RegionCalibration:
    """The calibration of one group.

    Attributes
    ----------
    reference : tuple of int or str
        The reference labels of the group.
    prediction : tuple of int or str
        The prediction labels of the group.
    reliability : Reliability
        Reliability diagram of the probabilities of the group at all pixels.
    brier : Brier
        Brier score of the group.
    dice : tuple of float
        Classical Dice coefficient of the two thresholded sides, at each threshold.
    mean_dice : float
        Mean of `dice`.
    """

    reference: tuple[Label, ...]
    prediction: tuple[Label, ...]
    reliability: Reliability
    brier: Brier
    dice: tuple[float, ...]

    @property
    def mean_dice(self) -> float:
        """The mean Dice coefficient over the thresholds; NaN without thresholds."""
        return float(np.mean(self.dice)) if self.dice else nan

    def to_dict(self) -> dict[str, Any]:
        """Return the calibration as built-in Python types."""
        return {
            "reference": list(self.reference),
            "prediction": list(self.prediction),
            "reliability": self.reliability.to_dict(),
            "brier": asdict(self.brier),
            "dice": list(self.dice),
            "mean_dice": self.mean_dice,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """The calibration of a prediction's probabilities, from `Comparison.calibration`.

    Attributes
    ----------
    likely : Reliability
        Reliability diagram of the most probable region of every pixel.
    regions : tuple of RegionCalibration
        The calibration of every group, in the order of the comparison.
    brier : Brier
        The Brier score over all groups, which is the sum of their Brier scores.
    log_loss : float
        The mean of −Σ p log q, in nats, over the pixels where this sum is finite.
    infinite : int
        Number of pixels with infinite log loss. At these pixels, the prediction assigns probability
        0 to a group that has a positive probability in the reference.
    thresholds : tuple of float
        Thresholds of the thresholded Dice coefficients.
    pixels : int
        Number of compared pixels.
    crisp_reference : bool
        Whether the reference is a label map.

    Examples
    --------
    >>> import probdice
    >>> prediction = [[0.9, 0.8, 0.6, 0.0], [0.1, 0.2, 0.4, 1.0]]
    >>> probdice.compare([0, 0, 1, 0], prediction, match="labels").calibration()
    Calibration of 4 pixels
      most probable region: expected error 0.4750 (chance 0.2458), maximum 1.0000 (chance 0.5845)
      Brier 0.7050, log loss 0.4149 over 3 pixels; infinite at 1 pixel
      reference  prediction     ECE   Brier  thresholded Dice
              0           0  0.4750  0.3525            0.6037
              1           1  0.4750  0.3525            0.2037
    """

    likely: Reliability
    regions: tuple[RegionCalibration, ...]
    brier: Brier
    log_loss: float
    infinite: int
    thresholds: tuple[float, ...]
    pixels: int
    crisp_reference: bool

    def plot(self) -> Figure:
        """Draw the reliability diagram as a Matplotlib figure.

        For a label map as reference, a band shows the observed frequencies of 95 % of calibrated
        predictors in every bin, if pixels are independent. For a soft reference, no band is drawn,
        because the distribution of its probabilities is unknown.

        Examples
        --------
        >>> import probdice
        >>> result = probdice.compare([0, 0, 1, 1], [[0.9, 0.8, 0.6, 0.1], [0.1, 0.2, 0.4, 0.9]])
        >>> result.calibration().plot().axes[0].get_xlabel()
        'predicted probability'
        """
        from probdice.pictures.reliability_diagrams import draw_calibration

        return draw_calibration(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the calibration as built-in Python types.

        Examples
        --------
        >>> import probdice
        >>> result = probdice.compare([0, 0, 1, 1], [[0.9, 0.8, 0.6, 0.1], [0.1, 0.2, 0.4, 0.9]])
        >>> round(result.calibration().to_dict()["log_loss"], 4)
        0.3375
        """
        return {
            "pixels": self.pixels,
            "likely": self.likely.to_dict(),
            "brier": asdict(self.brier),
            "log_loss": self.log_loss,
            "infinite": self.infinite,
            "thresholds": list(self.thresholds),
            "regions": [region.to_dict() for region in self.regions],
        }

    def __repr__(self) -> str:
        likely = self.likely
        finite = self.pixels - self.infinite
        loss = f"log loss {decimal(self.log_loss)}"
        if self.infinite:
            infinite = f"infinite at {self.infinite} pixel{'s' * (self.infinite != 1)}"
            loss += f" over {finite} pixels; {infinite}"
        rows: list[tuple[str, ...]] = [
            ("reference", "prediction", "ECE", "Brier", "thresholded Dice")
        ]
        for region in self.regions:
            labels = (
                ", ".join(map(str, side)) or "–" for side in (region.reference, region.prediction)
            )
            numbers = region.reliability.expected_error, region.brier.score, region.mean_dice
            rows.append((*labels, *map(decimal, numbers)))
        lines = [
            f"Calibration of {self.pixels} pixels",
            f"most probable region: expected error {decimal(likely.expected_error)} (chance "
            f"{decimal(likely.chance_expected_error)}), maximum {decimal(likely.maximum_error)} "
            f"(chance {decimal(likely.chance_maximum_error)})",
            f"Brier {decimal(self.brier.score)}, {loss}",
        ]
        return "\n  ".join([*lines, *aligned_columns(rows)])


def calibration_of(
    comparison: Comparison, *, bins: int, binning: Binning, thresholds: Iterable[float]
) -> Calibration:
    """Compute the calibration of a comparison. The comparison must contain its images."""
    if isinstance(bins, bool) or not isinstance(bins, Integral) or not 1 <= bins <= FINE_BINS:
        raise InputError(f"bins must be a whole number from 1 to {FINE_BINS}, found {bins!r}")
    if not isinstance(binning, str) or binning not in get_args(Binning):
        raise InputError(f"binning must be 'width' or 'mass', found {binning!r}")
    cuts = _thresholds(thresholds)
    images = comparison.need_images("calibration()")
    groups = comparison.groups
    most_per_bin = max(1, MAX_FINE_BINS // (len(groups) * int(bins)))
    fine_count = int(bins) * min(-(-FINE_BINS // int(bins)), most_per_bin)
    lists = key_lists(comparison.overlap, comparison.correspondence.groups)
    forecast = images.forecast(lists, fine_count, np.array(cuts))
    crisp_reference = comparison.overlap.reference.crisp
    coarse_bins = CalibrationBins(int(bins), binning, crisp_reference)
    regions = tuple(_region(group, forecast, k, coarse_bins) for k, group in enumerate(groups))
    finite = comparison.pixels - int(forecast.infinite)
    return Calibration(
        coarse_bins.reliability(forecast.likely),
        regions,
        sum((region.brier for region in regions[1:]), start=regions[0].brier),
        forecast.loss / finite if finite else nan,
        int(forecast.infinite),
        tuple(cuts),
        comparison.pixels,
        crisp_reference,
    )


def _thresholds(thresholds: Iterable[float]) -> list[float]:
    candidates = list(thresholds) if isinstance(thresholds, Iterable) else [thresholds]
    are_valid = all(isinstance(t, Real) and 0 <= float(t) < 1 for t in candidates)
    values = sorted({float(t) for t in candidates}) if are_valid else []
    if not are_valid or len(values) != len(candidates):
        raise InputError(
            f"thresholds must be distinct numbers from 0 to below 1, found {thresholds!r}"
        )
    return values


def _region(
    group: Group, forecast: Forecast, k: int, coarse_bins: CalibrationBins
) -> RegionCalibration:
    return RegionCalibration(
        group.reference,
        group.prediction,
        coarse_bins.reliability(forecast.moments[k]),
        coarse_bins.brier(forecast.moments[k]),
        _dice(forecast.above[k]),
    )


def _dice(above: NDArray[np.int64]) -> tuple[float, ...]:
    """Return the Dice coefficient at each threshold.

    Entry (i, j) of `above` is the number of pixels at which the reference exceeds i thresholds and
    the prediction exceeds j.
    """
    exceeding = above[::-1, ::-1].cumsum(axis=0).cumsum(axis=1)[::-1, ::-1]
    values = []
    for t in range(1, above.shape[0]):
        total = int(exceeding[t, 0] + exceeding[0, t])
        values.append(2 * int(exceeding[t, t]) / total if total else 1.0)
    return tuple(values)
