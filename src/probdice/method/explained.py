"""The share of one segmentation that is explained by the other."""

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
    """Compute Goodman and Kruskal's τ of two label maps, in both directions."""
    meeting, pixels = overlap.meeting, overlap.pixels
    counts = meeting.savings.astype(np.float64)
    shares: dict[Side, float] = {}
    for side in SIDES:
        given = meeting.columns if side == "reference" else meeting.rows
        volumes = overlap.side(side).volumes.astype(np.float64)
        given_volumes = overlap.side(other(side)).volumes.astype(np.float64)
        variance = float(np.sum(volumes * (1 - volumes / pixels)))
        unexplained = float(np.sum(counts * (1 - counts / given_volumes[given])))
        constant = variance <= CONSTANT * pixels
        shares[side] = nan if constant else min(max(1 - unexplained / variance, 0.0), 1.0)
    return shares


def explained_by_moments(moments: Moments, pixels: int) -> dict[Side, float]:
    """Compute R² of the least-squares regression of each side on the other."""
    shares: dict[Side, float] = {}
    means = moments.volumes.map(lambda volumes: volumes / pixels)
    for side in SIDES:
        across = other(side)
        between = moments.between if side == "reference" else moments.between.T
        covariance = between - np.outer(moments.volumes[side], means[across])
        variance = _variance(moments.own[side], moments.volumes[side], pixels)
        if variance <= CONSTANT * pixels:
            shares[side] = nan
            continue
        products = moments.own[across]
        if products is None:  # for a label map, regression gives the mean within each label
            volumes = moments.volumes[across]
            occupied = volumes > 0
            determined = float(np.sum(covariance[:, occupied] ** 2 / volumes[occupied]))
        else:
            own = products - np.outer(moments.volumes[across], means[across])
            determined = _determined(covariance, own)
        shares[side] = min(max(determined / variance, 0.0), 1.0)
    return shares


def _variance(products: Floats | None, volumes: Floats, pixels: int) -> float:
    """Return the trace of the covariance of one side, tr C. For a label map, Σ p² equals Σ p."""
    squares = volumes if products is None else np.diag(products)
    return float(np.sum(squares - volumes**2 / pixels))


def _determined(covariance: Floats, own: Floats) -> float:
    """Return tr(C_qp C_pp⁺ C_pq)."""
    values, vectors = np.linalg.eigh(own)
    positive = values > DROPPED * max(float(values.max(initial=0)), 0.0)
    projected: NDArray[Any] = covariance @ vectors[:, positive]
    return float(np.sum(projected**2 / values[positive]))
