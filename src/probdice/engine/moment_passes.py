"""Passes for the moments, the histograms and the calibration of regions."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.engine.blocks import Blocks
from probdice.engine.decode import Crisp, DecodedBlock, Soft
from probdice.engine.grids import Block
from probdice.engine.group_passes import GroupLookup, matching_codes, pixel_ranges, row_groups
from probdice.engine.passes import Pass, summed
from probdice.method.overlap import Floats, Integers
from probdice.method.pixel_passes import Distribution, Lists, Moments
from probdice.method.sides import Both

__all__ = [
    "Forecast",
    "distributions_pass",
    "forecast_pass",
    "moments",
    "moments_pass",
]


def moments_pass(keys: Both[NDArray[Any]]) -> Pass[Moments]:
    """Return a pass that computes the moments of both sides.

    `keys` contains the labels or channels of each side, in the order of the result.
    """
    return Pass(partial(_moments, keys=keys), summed)


def distributions_pass(bins: int) -> Pass[Both[Distribution]]:
    """Return a pass that computes the histogram of every region of two probabilistic sides."""
    return Pass(partial(_distributions, bins=bins), _sum_of_both)


def forecast_pass(groups: Both[Lists], bins: int, thresholds: Floats) -> Pass["Forecast"]:
    """Return a pass that computes the sums for the calibration of the prediction, per group."""
    visit = partial(_forecast, groups=groups.map(GroupLookup), bins=bins, thresholds=thresholds)
    return Pass(visit, summed)


def _moments(blocks: Blocks, block: Block, keys: Both[NDArray[Any]]) -> Moments:
    return moments(blocks.decode(block), keys)


def moments(ready: DecodedBlock, keys: Both[NDArray[Any]]) -> Moments:
    """Return the moments of a block. The labels of label maps are in the order of `keys`."""
    from probdice.engine import kernels

    p, q = ready.sides
    if isinstance(p, Soft) and isinstance(q, Soft):
        return _soft_moments(p, q)
    crisp, soft = (p, q) if isinstance(p, Crisp) else (q, p)
    assert isinstance(crisp, Crisp) and isinstance(soft, Soft)
    soft_moments = _soft_moments(soft, replace(soft, rows=soft.rows[:0]))
    labels = keys.reference if crisp is p else keys.prediction
    codes, indices = matching_codes(crisp.labels, labels)
    counts, sums = np.zeros(labels.size), np.zeros((crisp.labels.size, soft.rows.shape[0]))
    counts[indices] = np.bincount(crisp.codes, minlength=crisp.labels.size)[codes]
    kernels.label_rows.group_sums(crisp.codes, soft.rows, soft.start, sums)
    cross_products = np.zeros((labels.size, sums.shape[1]))
    cross_products[indices] = sums[codes]
    volumes, products = soft_moments.volumes.reference, soft_moments.products.reference
    if crisp is p:
        return Moments(Both(counts, volumes), Both(None, products), cross_products)
    return Moments(Both(volumes, counts), Both(products, None), cross_products.T)


def _soft_moments(p: Soft, q: Soft) -> Moments:
    from probdice.engine import kernels

    m, n = p.rows.shape[0], q.rows.shape[0]
    volumes = np.zeros(m), np.zeros(n)
    products = np.zeros((m, m)), np.zeros((n, n)), np.zeros((m, n))
    kernels.moments.moments(p.rows, p.start, q.rows, q.start, p.size, *volumes, *products)
    return Moments(Both(*volumes), Both(*products[:2]), products[2])


def _distributions(blocks: Blocks, block: Block, bins: int) -> Both[Distribution]:
    sides = blocks.decode(block).sides
    return Both(*(distribution(side, bins) for side in sides if isinstance(side, Soft)))


def distribution(side: Soft, bins: int) -> Distribution:
    """Return the histograms of the values of a block. `bins` must be even."""
    from probdice.engine import kernels

    counts = np.zeros((side.rows.shape[0], bins), np.int64)
    sums = np.zeros(counts.shape)
    kernels.distribution.histogram(side.rows, side.start, side.size, counts, sums)
    return Distribution(counts, sums)


def _sum_of_both(parts: Iterable[Both[Distribution]]) -> Both[Distribution]:
    return reduce(
        lambda a, b: Both(a.reference + b.reference, a.prediction + b.prediction),
        parts,
    )


@dataclass(frozen=True, eq=False)
class Forecast:
    """Sums over a set of pixels, from which the calibration of the prediction is computed.

    p is the probability of a group in the reference, and q is its probability in the prediction.

    Attributes
    ----------
    moments : ndarray
        Number of pixels, Σp, Σq, Σp², Σq² and Σpq, for each group and each bin of q.
    likely : ndarray
        The same sums for the most probable predicted group of every pixel, for each bin.
    above : ndarray
        Number of pixels. The axes are the group, the number of thresholds that p exceeds, and the
        number of thresholds that q exceeds.
    loss : float
        Sum of −Σ p log q over the pixels where this value is finite.
    infinite : float
        Number of pixels where −Σ p log q is infinite.
    """

    moments: Floats
    likely: Floats
    above: Integers
    loss: float
    infinite: float

    def __add__(self, other: "Forecast") -> "Forecast":
        return Forecast(
            self.moments + other.moments,
            self.likely + other.likely,
            self.above + other.above,
            self.loss + other.loss,
            self.infinite + other.infinite,
        )


def _forecast(
    blocks: Blocks, block: Block, groups: Both[GroupLookup], bins: int, thresholds: Floats
) -> Forecast:
    return forecast(blocks.decode(block), groups, bins, thresholds, blocks.dtype)


def forecast(
    ready: DecodedBlock,
    groups: Both[GroupLookup],
    bins: int,
    thresholds: Floats,
    dtype: np.dtype[Any],
) -> Forecast:
    """Return the sums over the pixels of a block for the calibration."""
    from probdice.engine import kernels

    p, q = ready.sides
    count, levels = len(groups.reference), thresholds.size + 1
    moments = np.zeros((count, bins, kernels.forecast.MOMENTS))
    likely, losses = np.zeros(moments.shape[1:]), np.zeros(2)
    above = np.zeros((count, levels, levels), np.int64)
    for start, stop in pixel_ranges(ready, count):
        kernels.forecast.calibrate(
            *row_groups(p, groups.reference, start, stop, dtype),
            *row_groups(q, groups.prediction, start, stop, dtype),
            stop - start, thresholds.astype(dtype), moments, likely, above, losses,
        )  # fmt: skip
    return Forecast(moments, likely, above, float(losses[0]), float(losses[1]))
