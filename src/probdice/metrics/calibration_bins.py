"""Bins of predicted probabilities: reliability diagrams and Brier scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from probdice.text.formatting import decimal

if TYPE_CHECKING:
    from probdice.method.overlap import Floats

__all__ = ["Binning", "Brier", "CalibrationBins", "Reliability"]

Binning = Literal["width", "mass"]

DRAWS = 2000  # random draws for the chance values
NORMAL = 25.0  # variance from which a sum of draws is approximated as normal
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
        Mean reference probability of the predicted region in each bin. If the reference is a label
        map, this is the share of the pixels that belong to this region in the reference.
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


@dataclass(frozen=True)
class CalibrationBins:
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
        """Return the reliability diagram of these moments, with the errors expected by chance."""
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

        For a label map as reference, the sum over the pixels of a bin is drawn from a normal
        distribution if its variance is large. Otherwise, one number is drawn from a binomial
        distribution for each fine bin. The distribution of a soft reference is unknown, so for a
        soft reference, the sum is always drawn from a normal distribution with the observed
        variance of the reference about the prediction.
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
