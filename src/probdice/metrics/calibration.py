"""How far the probabilities of a prediction can be trusted, against a crisp or soft reference.

All numbers come from one pass that sorts pixels into fine bins of the predicted probability, group
by group under the correspondence, and adds up moments there. Conventions:

- *Expected and maximum calibration error* of the likeliest region of every pixel are those of Guo
  et al. (2017): bins open to the left; the mean and the largest of |mean predicted probability −
  share that was right|. CURVAS takes them against each rater. With a soft reference, the share that
  was right is the reference's mean probability.
- *Chance* is what a calibrated predictor would show: pixels are drawn anew, each in its region with
  the predicted probability. Neighbouring pixels are not independent, so a calibrated predictor of
  a real image may well show more.
- *Brier* is the mean over pixels of Σ (q − p)² over all regions (Brier 1950), divided as by Murphy
  (1973) with the terms within bins of Stephenson et al. (2008), so that the parts add up.
- *Thresholded Dice* is that of QUBIQ: both sides are cut at each threshold (what exceeds it is in),
  and the classical Dice coefficients are averaged; two empty masks agree, and count as 1.
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

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from probdice.comparison.result import Comparison, Group
    from probdice.engine.moment_passes import Forecast
    from probdice.method.overlap import Floats
    from probdice.method.region_labels import Label

__all__ = ["Binning", "Brier", "Calibration", "RegionCalibration", "Reliability", "calibration_of"]

Binning = Literal["width", "mass"]

FINE = 4096  # bins into which pixels are sorted, at least; equal masses are made of these
MOST_CELLS = 2**20  # bins of all groups
DRAWS = 2000  # of what chance shows
NORMAL = 25.0  # a variance from which on a sum of draws is as good as normal
LEVEL = 0.95


@dataclass(frozen=True, eq=False, repr=False)
class Reliability:
    """A reliability diagram: predicted probabilities beside how often they were right.

    Attributes
    ----------
    lower : ndarray
        Where each bin begins; bins without pixels are left out.
    upper : ndarray
        Where each bin ends.
    pixels : ndarray
        How many predictions lie in each.
    predicted : ndarray
        The mean of these probabilities.
    observed : ndarray
        The share of them that was right.
    expected_error : float
        ECE: the mean of |predicted − observed| over pixels.
    maximum_error : float
        MCE: the largest |predicted − observed|.
    chance_expected_error : float
        The mean ECE of a calibrated predictor with the same probabilities.
    chance_maximum_error : float
        Its mean MCE.
    chance_expected_limit : float
        95 % of calibrated predictors have an ECE below this.
    chance_maximum_limit : float
        95 % of calibrated predictors have an MCE below this.

    Examples
    --------
    >>> import probdice
    >>> prediction = [[0.9, 0.8, 0.6, 0.1], [0.1, 0.2, 0.4, 0.9]]
    >>> result = probdice.compare([0, 0, 1, 1], prediction, match="labels")
    >>> result.calibration(bins=5).likely
    Reliability: 4 predictions in 3 bins, expected error 0.2500 (by chance 0.2821, up to 0.4000), \
maximum 0.6000 (by chance 0.5475, up to 0.8000)
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
        """Plain types."""
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in vars(self).items()
        }

    def __repr__(self) -> str:
        return (
            f"Reliability: {self.pixels.sum():,.0f} predictions in {self.pixels.size} bins, "
            f"expected error {decimal(self.expected_error)} (by chance "
            f"{decimal(self.chance_expected_error)}, up to {decimal(self.chance_expected_limit)}), "
            f"maximum {decimal(self.maximum_error)} (by chance "
            f"{decimal(self.chance_maximum_error)}, up to {decimal(self.chance_maximum_limit)})"
        )


@dataclass(frozen=True)
class Brier:
    """The Brier score and its parts.

    score = reliability − resolution + uncertainty + variance_within − 2 · covariance_within, where
    the last two are what bins leave of the differences between pixels, and 0 where all
    predictions of a bin are equal.

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
    """How far the probability of one group can be trusted.

    Attributes
    ----------
    reference : tuple of int or str
        The reference labels of the group.
    prediction : tuple of int or str
        The prediction labels of the group.
    reliability : Reliability
        Of the group's probability at every pixel.
    brier : Brier
        Of the group alone.
    dice : tuple of float
        Classical Dice of both sides cut at each threshold.
    mean_dice : float
        Their mean.
    """

    reference: tuple[Label, ...]
    prediction: tuple[Label, ...]
    reliability: Reliability
    brier: Brier
    dice: tuple[float, ...]

    @property
    def mean_dice(self) -> float:
        """The mean over the thresholds."""
        return float(np.mean(self.dice)) if self.dice else nan

    def to_dict(self) -> dict[str, Any]:
        """Plain types."""
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
    """How far the probabilities of a prediction can be trusted; `Comparison.calibration` makes one.

    Attributes
    ----------
    likely : Reliability
        Of the likeliest region of every pixel: how sure the prediction is, and how often right.
    regions : tuple of RegionCalibration
        Of every group of the comparison, in its order.
    brier : Brier
        The mean over pixels of the squared differences of all regions.
    log_loss : float
        The mean of −Σ p log q, in nats, over the pixels where it is finite.
    infinite : int
        Pixels where the prediction rules out what the reference has, whose loss is infinite.
    thresholds : tuple of float
        At which Dice was taken.
    pixels : int

    Examples
    --------
    >>> import probdice
    >>> prediction = [[0.9, 0.8, 0.6, 0.0], [0.1, 0.2, 0.4, 1.0]]
    >>> probdice.compare([0, 0, 1, 0], prediction, match="labels").calibration()
    Calibration of 4 pixels
      likeliest region: expected error 0.4750 (by chance 0.2458), maximum 1.0000 (by chance 0.5845)
      Brier 0.7050, log loss 0.4149 over 3 pixels; 1 pixel infinite
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
        """The reliability diagram, as a Matplotlib figure.

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
        """Everything as plain types.

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
            infinite = f"{self.infinite} pixel{'s' * (self.infinite != 1)} infinite"
            loss += f" over {finite} pixels; {infinite}"
        names = [
            (", ".join(map(str, one.reference)) or "–", ", ".join(map(str, one.prediction)) or "–")
            for one in self.regions
        ]
        widths = [max(len(head), *(len(name[k]) for name in names))
                  for k, head in enumerate(("reference", "prediction"))]  # fmt: skip
        lines = [
            f"Calibration of {self.pixels} pixels",
            f"  likeliest region: expected error {decimal(likely.expected_error)} (by chance "
            f"{decimal(likely.chance_expected_error)}), maximum {decimal(likely.maximum_error)} "
            f"(by chance {decimal(likely.chance_maximum_error)})",
            f"  Brier {decimal(self.brier.score)}, {loss}",
            f"  {'reference':>{widths[0]}}  {'prediction':>{widths[1]}}     ECE   Brier  "
            f"thresholded Dice",
        ]
        lines += [
            f"  {name[0]:>{widths[0]}}  {name[1]:>{widths[1]}}  "
            f"{decimal(one.reliability.expected_error)}  {decimal(one.brier.score)}  "
            f"{decimal(one.mean_dice):>16}"
            for name, one in zip(names, self.regions, strict=True)
        ]
        return "\n".join(lines)


def calibration_of(
    comparison: Comparison, *, bins: int, binning: Binning, thresholds: Iterable[float]
) -> Calibration:
    """The calibration of a comparison that still has its images."""
    if isinstance(bins, bool) or not isinstance(bins, Integral) or not 1 <= bins <= FINE:
        raise InputError(f"bins must be a whole number from 1 to {FINE}, found {bins!r}")
    if not isinstance(binning, str) or binning not in get_args(Binning):
        raise InputError(f"binning must be 'width' or 'mass', found {binning!r}")
    cuts = _thresholds(thresholds)
    images = comparison.need_images("calibration()")
    groups = comparison.groups
    room = max(1, MOST_CELLS // (len(groups) * int(bins)))
    fine = int(bins) * min(-(-FINE // int(bins)), room)
    lists = key_lists(comparison.overlap, comparison.correspondence.groups)
    forecast = images.forecast(lists, fine, np.array(cuts))
    binned = _Binned(int(bins), binning, comparison.overlap.reference.crisp)
    regions = tuple(_region(group, forecast, k, binned) for k, group in enumerate(groups))
    finite = comparison.pixels - int(forecast.infinite)
    return Calibration(
        binned.reliability(forecast.likely),
        regions,
        sum((region.brier for region in regions[1:]), start=regions[0].brier),
        forecast.loss / finite if finite else nan,
        int(forecast.infinite),
        tuple(cuts),
        comparison.pixels,
    )


def _thresholds(thresholds: Iterable[float]) -> list[float]:
    given = list(thresholds) if isinstance(thresholds, Iterable) else [thresholds]
    fit = all(isinstance(t, Real) and 0 <= float(t) < 1 for t in given)
    values = sorted({float(t) for t in given}) if fit else []
    if not fit or len(values) != len(given):
        raise InputError(
            f"thresholds must be different numbers from 0 up to but not including 1, "
            f"found {thresholds!r}"
        )
    return values


def _region(group: Group, forecast: Forecast, k: int, binned: _Binned) -> RegionCalibration:
    return RegionCalibration(
        group.reference,
        group.prediction,
        binned.reliability(forecast.moments[k]),
        binned.brier(forecast.moments[k]),
        _dice(forecast.above[k]),
    )


def _dice(above: NDArray[np.int64]) -> tuple[float, ...]:
    """Dice at each threshold, from how many pixels exceed how many of them on both sides."""
    exceeding = above[::-1, ::-1].cumsum(axis=0).cumsum(axis=1)[::-1, ::-1]
    values = []
    for t in range(1, above.shape[0]):
        total = int(exceeding[t, 0] + exceeding[0, t])
        values.append(2 * int(exceeding[t, t]) / total if total else 1.0)
    return tuple(values)


@dataclass(frozen=True)
class _Binned:
    """How fine bins are joined: so many, of equal width or mass, for a crisp reference or not."""

    bins: int
    binning: Binning
    crisp: bool

    def cuts(self, fine: Floats) -> NDArray[np.int64]:
        """Where bins begin among the fine ones, and the end."""
        if self.binning == "width":
            return np.arange(0, len(fine) + 1, len(fine) // self.bins)
        reached = np.cumsum(fine[:, 0])
        shares = reached[-1] * np.arange(1, self.bins) / self.bins
        inner = np.searchsorted(reached, shares) + 1
        return np.unique(np.concatenate([[0], inner, [len(fine)]]))

    def joined(self, fine: Floats) -> tuple[Floats, NDArray[np.int64]]:
        """The moments of each bin that has pixels, and where it begins."""
        cuts = self.cuts(fine)
        moments = np.add.reduceat(fine, cuts[:-1], axis=0)
        return moments, cuts

    def brier(self, fine: Floats) -> Brier:
        """The Brier score of one group and its parts."""
        moments, _ = self.joined(fine)
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

    def reliability(self, fine: Floats) -> Reliability:
        """The diagram of one group, and what chance would show."""
        moments, cuts = self.joined(fine)
        kept = np.flatnonzero(moments[:, 0] > 0)
        n, p, q, *_ = moments[kept].T
        errors = np.abs(p - q)
        expected, largest = self._chance(fine, moments[kept], cuts, kept)
        return Reliability(
            cuts[kept] / len(fine),
            cuts[kept + 1] / len(fine),
            n,
            q / n,
            p / n,
            float(errors.sum() / n.sum()),
            float((errors / n).max()),
            float(expected.mean()),
            float(np.quantile(expected, LEVEL)),
            float(largest.mean()),
            float(np.quantile(largest, LEVEL)),
        )

    def _chance(
        self,
        fine: Floats,
        moments: Floats,
        cuts: NDArray[np.int64],
        kept: Sequence[int] | NDArray[np.int64],
    ) -> tuple[Floats, Floats]:
        """Both errors of calibrated predictors, many times.

        Sums of many draws are normal; few draws are made one fine bin at a time. A soft reference
        does not say how it was drawn: its spread about the prediction is taken as it is.
        """
        rng = np.random.default_rng(0)
        n, p, q, pp, qq, pq = moments.T
        if self.crisp:
            variance = np.maximum(q - qq, 0)
        else:
            variance = np.maximum(pp + qq - 2 * pq - (p - q) ** 2 / n, 0)
        errors = rng.standard_normal((DRAWS, n.size)) * np.sqrt(variance)
        for place, k in enumerate(kept):
            if self.crisp and 0 < variance[place] < NORMAL:
                part = fine[cuts[k] : cuts[k + 1]]
                part = part[part[:, 0] > 0]
                chance = np.clip(part[:, 2] / part[:, 0], 0, 1)
                drawn = rng.binomial(part[:, 0].astype(np.int64), chance, (DRAWS, len(part)))
                errors[:, place] = drawn.sum(axis=1) - q[place]
        errors = np.abs(errors)
        return errors.sum(axis=1) / n.sum(), (errors / n).max(axis=1)
