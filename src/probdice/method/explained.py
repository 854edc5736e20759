"""The share of the variance of one segmentation that the other segmentation explains."""

from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.method.overlap import Floats, Overlap
from probdice.method.pixel_passes import Moments
from probdice.method.sides import SIDES, Side, other

__all__ = ["explained_by_counts", "explained_by_moments"]

CONSTANT = 1e-12  # a smaller variance per pixel counts as zero
DROPPED = 1e-10  # eigenvalues below this share of the largest are rounding errors


def explained_by_counts(overlap: Overlap) -> dict[Side, float]:
    """Compute Goodman and Kruskal's τ for each side of two label maps."""
    meeting, pixels = overlap.meeting, overlap.pixels
    counts = meeting.savings.astype(np.float64)
    shares: dict[Side, float] = {}
    for side in SIDES:
        predictors = meeting.columns if side == "reference" else meeting.rows
        volumes = overlap.side(side).volumes.astype(np.float64)
        predictor_volumes = overlap.side(other(side)).volumes.astype(np.float64)
        variance = float(np.sum(volumes * (1 - volumes / pixels)))
        unexplained = float(np.sum(counts * (1 - counts / predictor_volumes[predictors])))
        constant = variance <= CONSTANT * pixels
        shares[side] = nan if constant else min(max(1 - unexplained / variance, 0.0), 1.0)
    return shares


def explained_by_moments(moments: Moments, pixels: int) -> dict[Side, float]:
    """Compute the R² of the least-squares regression of each side on the other side."""
    shares: dict[Side, float] = {}
    means = moments.volumes.map(lambda volumes: volumes / pixels)
    for side in SIDES:
        predictor = other(side)
        cross_products = moments.cross_products if side == "reference" else moments.cross_products.T
        covariance = cross_products - np.outer(moments.volumes[side], means[predictor])
        variance = _variance(moments.products[side], moments.volumes[side], pixels)
        if variance <= CONSTANT * pixels:
            shares[side] = nan
            continue
        products = moments.products[predictor]
        if products is None:  # for a label map, regression predicts the mean within each label
            volumes = moments.volumes[predictor]
            occupied = volumes > 0
            explained_variance = float(np.sum(covariance[:, occupied] ** 2 / volumes[occupied]))
        else:
            predictor_covariance = products - np.outer(moments.volumes[predictor], means[predictor])
            explained_variance = _explained_variance(covariance, predictor_covariance)
        shares[side] = min(max(explained_variance / variance, 0.0), 1.0)
    return shares


def _variance(products: Floats | None, volumes: Floats, pixels: int) -> float:
    """Return the trace of the covariance matrix of one side. For a label map, Σ p² equals Σ p."""
    squares = volumes if products is None else np.diag(products)
    return float(np.sum(squares - volumes**2 / pixels))


def _explained_variance(covariance: Floats, predictor_covariance: Floats) -> float:
    """Return tr(C_qp C_pp⁺ C_pq)."""
    values, vectors = np.linalg.eigh(predictor_covariance)
    positive = values > DROPPED * max(float(values.max(initial=0)), 0.0)
    projected: NDArray[Any] = covariance @ vectors[:, positive]
    return float(np.sum(projected**2 / values[positive]))
