"""The share of the variance of one segmentation that the other segmentation explains."""

from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.method.overlap import Floats, Overlap
from probdice.method.pixel_passes import Moments
from probdice.method.sides import SIDES, Both, Side, other

__all__ = ["explained_by_counts", "explained_by_moments"]

MIN_VARIANCE = 1e-12  # a smaller variance per pixel counts as zero
MIN_EIGENVALUE_RATIO = 1e-10  # eigenvalues below this share of the largest are rounding errors


def explained_by_counts(overlap: Overlap) -> dict[Side, float]:
    """Compute Goodman and Kruskal's τ for each side of two label maps."""
    overlapping, pixels = overlap.pairs, overlap.pixels
    counts = overlapping.savings.astype(np.float64)
    shares: dict[Side, float] = {}
    for side in SIDES:
        predictors = overlapping.columns if side == "reference" else overlapping.rows
        volumes = overlap.side(side).volumes.astype(np.float64)
        predictor_volumes = overlap.side(other(side)).volumes.astype(np.float64)
        variance = float(np.sum(volumes * (1 - volumes / pixels)))
        unexplained = float(np.sum(counts * (1 - counts / predictor_volumes[predictors])))
        constant = variance <= MIN_VARIANCE * pixels
        shares[side] = nan if constant else min(max(1 - unexplained / variance, 0.0), 1.0)
    return shares


def explained_by_moments(moments: Moments, pixels: int) -> dict[Side, float]:
    """Compute the R² of the least-squares regression of each side on the other side."""
    shares: dict[Side, float] = {}
    volumes = moments.volumes
    cross = moments.cross_products - np.outer(volumes.reference, volumes.prediction / pixels)
    covariances = Both(
        _covariance(moments.products.reference, volumes.reference, cross, pixels),
        _covariance(moments.products.prediction, volumes.prediction, cross.T, pixels),
    )
    for side in SIDES:
        predictor = other(side)
        covariance = cross if side == "reference" else cross.T
        variance = _variance(covariances[side], volumes[side], pixels)
        if variance <= MIN_VARIANCE * pixels:
            shares[side] = nan
            continue
        predictor_covariance = covariances[predictor]
        if predictor_covariance is None:  # regression predicts the mean within each label
            occupied = volumes[predictor] > 0
            squares = covariance[:, occupied] ** 2
            explained_variance = float(np.sum(squares / volumes[predictor][occupied]))
        else:
            explained_variance = _explained_variance(covariance, predictor_covariance)
        shares[side] = min(max(explained_variance / variance, 0.0), 1.0)
    return shares


def _covariance(
    products: Floats | None, volumes: Floats, cross: Floats, pixels: int
) -> Floats | None:
    """Return the covariance of the regions of one side, or None for a label map.

    The rows of `cross` are the covariances of these regions with the other side. If the regions sum
    to a constant, the covariances of the largest region are computed from those of the other
    regions, and also replaced in `cross`. Otherwise, if the probability of the largest region is
    nearly 1, its variance would be smaller than the rounding errors of its moments.
    """
    if products is None:
        return None
    covariance: Floats = products - np.outer(volumes, volumes / pixels)
    if covariance.sum() <= MIN_VARIANCE * pixels:
        largest = int(volumes.argmax())
        for rows in (covariance, covariance.T, cross):
            rows[largest] = 0
            rows[largest] = -rows.sum(axis=0)
    return covariance


def _variance(covariance: Floats | None, volumes: Floats, pixels: int) -> float:
    """Return the trace of the covariance matrix of one side. For a label map, Σ p² equals Σ p."""
    if covariance is None:
        return float(np.sum(volumes - volumes**2 / pixels))
    return float(np.trace(covariance))


def _explained_variance(covariance: Floats, predictor_covariance: Floats) -> float:
    """Return tr(C_qp C_pp⁺ C_pq)."""
    values, vectors = np.linalg.eigh(predictor_covariance)
    positive = values > MIN_EIGENVALUE_RATIO * max(float(values.max(initial=0)), 0.0)
    projected: NDArray[Any] = covariance @ vectors[:, positive]
    return float(np.sum(projected**2 / values[positive]))
