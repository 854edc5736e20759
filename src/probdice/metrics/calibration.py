"""Calibration of a prediction's probabilities against a crisp or soft reference.

One pass sorts the pixels of every group into fine bins of the predicted probability and sums
moments per bin. All results are computed from these moments. Conventions:

- *Expected and maximum calibration errors* of the most probable region of every pixel follow Guo et
  al. (2017). Bins exclude their lower end and include their upper end; the first bin also includes
  0. The errors are the mean over pixels and the maximum over bins of |mean predicted probability in
  the bin − share of correct pixels in the bin|. The CURVAS challenge computes both errors against
  each rater. For a soft reference, the mean reference probability of the most probable region
  replaces the share of correct pixels.
- *Chance* is the mean error of a calibrated predictor. For a label map as reference, it is computed
  from references whose regions are drawn at random, independently at every pixel, with the
  predicted probabilities. Neighbouring pixels of a real image are not independent, so a calibrated
  predictor may have larger errors for such an image.
- *Brier* is the mean over pixels of Σ (q − p)² over all regions (Brier 1950), decomposed as in
  Murphy (1973) with the within-bin terms of Stephenson et al. (2008). With the signs given in
  `Brier`, the terms sum to the score.
- *Thresholded Dice* follows QUBIQ: both sides are thresholded (values above the threshold are
  inside), and the classical Dice coefficients are averaged over the thresholds. The Dice
  coefficient of two empty masks is 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from math import nan
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from probdice.errors import InputError
from probdice.method.scoring import key_lists
from probdice.text.formatting import decimal
from probdice.text.table_output import aligned

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from probdice.comparison.result import Comparison, Group
    from probdice.engine.moment_passes import Forecast
    from probdice.method.overlap import Floats
    from probdice.method.region_labels import Label

__all__ = ["Binning", "Brier", "Calibration", "RegionCalibration", "Reliability", "calibration_of"]

Binning = Literal["width", "mass"]

# Smallest number of fine bins per group, unless `MOST_CELLS` limits it. Fine bins are combined into
# bins of equal width or mass.
FINE = 4096
MOST_CELLS = 2**20  # largest total number of fine bins of all groups
DRAWS = 2000  # random draws for the chance values
NORMAL = 25.0  # variance above which a sum of draws is approximated as normal
LEVEL = 0.95


@dataclass(frozen=True, eq=False, repr=False)
class Reliability:
    """A reliability diagram: predicted probabilities and observed frequencies.

    Attributes
    ----------
    lower : ndarray
        Lower end of each bin. Bins without pixels are excluded.
    upper : ndarray
        Upper end of each bin.
    pixels : ndarray
        Number of predictions in each bin.
    predicted : ndarray
        Mean predicted probability in each bin.
    observed : ndarray
        Mean reference probability in each bin. If the reference is a label map, this is the share
        of correct predictions.
    expected_error : float
        Expected calibration error (ECE): the mean of |predicted − observed| over pixels.
    maximum_error : float
        Maximum calibration error (MCE): the largest |predicted − observed| of all bins.
    chance_expected_error : float
        The mean ECE of a calibrated predictor with the same probabilities.
    chance_maximum_error : float
        The mean MCE of a calibrated predictor with the same probabilities.
    chance_expected_limit : float
        The 95th percentile of the ECE of calibrated predictors with the same probabilities.
    chance_maximum_limit : float
        The 95th percentile of the MCE of calibrated predictors with the same probabilities.

    Examples
    --------
    >>> import probdice
    >>> prediction = [[0.9, 0.8, 0.6, 0.1], [0.1, 0.2, 0.4, 0.9]]
    >>> result = probdice.compare([0, 0, 1, 1], prediction, match="labels")
    >>> result.calibration(bins=5).likely
    Reliability: 4 predictions in 3 bins, expected error 0.2500 (chance 0.2821, up to 0.4000), \
maximum 0.6000 (chance 0.5475, up to 0.8000)
    """

    lower: Floats
    upper: Floats
    pixels: Floats
    predicted: Floats
    observed: Floats
    expected_error: float
    maximum_error: float
    chance_expected_error: float
    chance_expected_limit: float
    chance_maximum_error: float
    chance_maximum_limit: float

    def to_dict(self) -> dict[str, Any]:
        """Return the diagram as built-in Python types."""
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in vars(self).items()
        }

    def __repr__(self) -> str:
        return (
            f"Reliability: {self.pixels.sum():,.0f} predictions in {self.pixels.size} bins, "
            f"expected error {decimal(self.expected_error)} (chance "
            f"{decimal(self.chance_expected_error)}, up to {decimal(self.chance_expected_limit)}), "
            f"maximum {decimal(self.maximum_error)} (chance "
            f"{decimal(self.chance_maximum_error)}, up to {decimal(self.chance_maximum_limit)})"
        )


@dataclass(frozen=True)
class Brier:
    """The Brier score and its decomposition.

    score = reliability − resolution + uncertainty + variance_within − 2 · covariance_within. The
    last two terms are due to differences between pixels of the same bin. Both terms are 0 if all
    predictions in each bin are equal.

    Examples
    --------
    >>> import probdice
    >>> result = probdice.compare([0, 0, 1, 1], [[1.0, 0.5, 0.5, 0], [0, 0.5, 0.5, 1]])
    >>> result.calibration().brier.score
    0.25
    """

    score: float
    reliability: float
    resolution: float
    uncertainty: float
    variance_within: float
    covariance_within: float

    def __add__(self, other: Brier) -> Brier:
        return Brier(
            *(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True))
        )


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
        The Brier score of all groups: the sum of the scores of the groups.
    log_loss : float
        The mean of −Σ p log q, in nats, over the pixels where this sum is finite.
    infinite : int
        Number of pixels with infinite log loss. At these pixels, the prediction assigns probability
        0 to a region that has a positive probability in the reference.
    thresholds : tuple of float
        Thresholds of the thresholded Dice coefficients.
    pixels : int
        Number of compared pixels.

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

    def plot(self) -> Figure:
        """Draw the reliability diagram as a Matplotlib figure.

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
        return "\n  ".join([*lines, *aligned(rows)])


def calibration_of(
    comparison: Comparison, *, bins: int, binning: Binning, thresholds: Iterable[float]
) -> Calibration:
    """Compute the calibration of a comparison. The comparison must have its images."""
    if isinstance(bins, bool) or not isinstance(bins, Integral) or not 1 <= bins <= FINE:
        raise InputError(f"bins must be a whole number from 1 to {FINE}, found {bins!r}")
    if not isinstance(binning, str) or binning not in get_args(Binning):
        raise InputError(f"binning must be 'width' or 'mass', found {binning!r}")
    cuts = _thresholds(thresholds)
    images = comparison.need_images("calibration()")
    groups = comparison.groups
    most_per_bin = max(1, MOST_CELLS // (len(groups) * int(bins)))
    fine_count = int(bins) * min(-(-FINE // int(bins)), most_per_bin)
    lists = key_lists(comparison.overlap, comparison.correspondence.groups)
    forecast = images.forecast(lists, fine_count, np.array(cuts))
    coarse_bins = _Bins(int(bins), binning, comparison.overlap.reference.crisp)
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


def _region(group: Group, forecast: Forecast, k: int, coarse_bins: _Bins) -> RegionCalibration:
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


@dataclass(frozen=True)
class _Bins:
    """Combine fine bins into at most `bins` bins of equal width or nearly equal pixel counts."""

    bins: int
    binning: Binning
    crisp: bool

    def join(self, fine_moments: Floats) -> tuple[Floats, NDArray[np.int64]]:
        """Return the moments of each bin, and the edges of the bins as indices of fine bins."""
        if self.binning == "width":
            cuts = np.arange(0, len(fine_moments) + 1, len(fine_moments) // self.bins)
        else:
            cumulative = np.cumsum(fine_moments[:, 0])
            shares = cumulative[-1] * np.arange(1, self.bins) / self.bins
            inner = np.searchsorted(cumulative, shares) + 1
            cuts = np.unique(np.concatenate([[0], inner, [len(fine_moments)]]))
        return np.add.reduceat(fine_moments, cuts[:-1], axis=0), cuts

    def brier(self, fine_moments: Floats) -> Brier:
        """Return the Brier score of one group and its decomposition."""
        moments, _ = self.join(fine_moments)
        moments = moments[moments[:, 0] > 0]
        n, p, q, pp, qq, pq = moments.T
        total, base = n.sum(), p.sum() / n.sum()
        return Brier(
            float((pp + qq - 2 * pq).sum() / total),
            float(((q - p) ** 2 / n).sum() / total),
            float((n * (p / n - base) ** 2).sum() / total),
            float(pp.sum() / total - base**2),
            float((qq - q**2 / n).sum() / total),
            float((pq - p * q / n).sum() / total),
        )

    def reliability(self, fine_moments: Floats) -> Reliability:
        """Return the diagram of one group, with its chance values."""
        moments, cuts = self.join(fine_moments)
        occupied_bins = np.flatnonzero(moments[:, 0] > 0)
        n, p, q, *_ = moments[occupied_bins].T
        errors = np.abs(p - q)
        expected_errors, maximum_errors = self._chance(
            fine_moments, moments[occupied_bins], cuts, occupied_bins
        )
        return Reliability(
            cuts[occupied_bins] / len(fine_moments),
            cuts[occupied_bins + 1] / len(fine_moments),
            n,
            q / n,
            p / n,
            float(errors.sum() / n.sum()),
            float((errors / n).max()),
            float(expected_errors.mean()),
            float(np.quantile(expected_errors, LEVEL)),
            float(maximum_errors.mean()),
            float(np.quantile(maximum_errors, LEVEL)),
        )

    def _chance(
        self,
        fine_moments: Floats,
        moments: Floats,
        cuts: NDArray[np.int64],
        occupied_bins: Sequence[int] | NDArray[np.int64],
    ) -> tuple[Floats, Floats]:
        """Sample the expected and maximum calibration errors of a perfectly calibrated prediction.

        If the variance of a bin is large, the sum over its pixels is drawn from a normal
        distribution. Otherwise, one number is drawn from a binomial distribution for each fine bin.
        The distribution of a soft reference is unknown, so the sum is always drawn from a normal
        distribution with the observed variance of the reference about the prediction.
        """
        rng = np.random.default_rng(0)
        n, p, q, pp, qq, pq = moments.T
        if self.crisp:
            variance = np.maximum(q - qq, 0)
        else:
            variance = np.maximum(pp + qq - 2 * pq - (p - q) ** 2 / n, 0)
        errors = rng.standard_normal((DRAWS, n.size)) * np.sqrt(variance)
        for position, k in enumerate(occupied_bins):
            if self.crisp and 0 < variance[position] < NORMAL:
                part = fine_moments[cuts[k] : cuts[k + 1]]
                part = part[part[:, 0] > 0]
                chance = np.clip(part[:, 2] / part[:, 0], 0, 1)
                draws = rng.binomial(part[:, 0].astype(np.int64), chance, (DRAWS, len(part)))
                errors[:, position] = draws.sum(axis=1) - q[position]
        errors = np.abs(errors)
        return errors.sum(axis=1) / n.sum(), (errors / n).max(axis=1)
