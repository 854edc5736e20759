"""The chance level: the expected score of independent segmentations with the same region sizes.

Unless labels or given groups fix the correspondence, the expected overlap of independent sides is
matched and merged like any other overlap, and then scored. For label maps that are matched by
overlap, by label or by given groups, the chance level has a closed form. For other label maps and
for separable similarities such as absolute, it is computed from the expected overlap of every pair
of regions if this overlap determines the costs of all groups. In all other cases, it is estimated
from randomly paired pixels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.errors import TooLargeError
from probdice.method.background import (
    BackgroundIndices,
    background_group,
    find_background,
    foreground_share,
)
from probdice.method.groups import Groups, group_volumes
from probdice.method.matching import (
    GivenGroups,
    Matching,
    common_classes,
    component_classes,
    has_classes,
)
from probdice.method.merging import sides_to_merge
from probdice.method.overlap import MAX_TABLE_PAIRS, Floats, Overlap, Pairs, Regions
from probdice.method.pixel_passes import Distribution, Lists, Passes
from probdice.method.region_labels import Label
from probdice.method.scoring import NeedsImages, correspond, group_costs, key_lists, measure
from probdice.method.sides import SIDES, Both, Side, other

__all__ = ["Chance", "adjusted", "chance_of"]

MAX_SORTED_PIXELS = 2**11  # up to this number of pixels, values are always sorted instead of binned
BINS = 2**11, 2**15  # numbers of bins; the second is used if the first is not accurate enough
MAX_BINNING_ERROR = 5e-6  # largest error of the binned result if sorted values fit in memory
MAX_DRAWS = 2**20
MAX_VALUES = 2**25  # largest number of values of both sides in memory at once
SEED = 0
MIN_MARGIN = 1e-6  # the adjusted score is NaN if 1 − chance is below this value


@dataclass(frozen=True)
class Chance:
    """The chance levels of the score and of the foreground score, with their standard errors.

    The errors are 0 unless the levels were sampled. `foreground` is NaN if no background is given
    or if all pixels are background on both sides.
    """

    level: float
    error: float = 0.0
    foreground: float = nan
    foreground_error: float = 0.0


def adjusted(score: float, chance: float) -> float:
    """Return (score − chance) / (1 − chance), or NaN if chance is almost 1."""
    margin = 1 - chance
    return (score - chance) / margin if margin >= MIN_MARGIN else nan


@dataclass(frozen=True)
class _Agreement:
    """The expected shares of pixels at which the sides agree.

    `foreground` is the sum over all foreground groups, and `background` is the background group.
    """

    foreground: float
    background: float = 0.0

    def chance(self, unit: float, *, has_background: bool) -> Chance:
        """Return the chance levels of label maps. `unit` is the cost of a disagreeing pixel."""
        level = 1 - unit * (1 - self.foreground - self.background)
        remaining_share = 1 - self.background
        share = self.foreground / remaining_share if has_background and remaining_share > 0 else nan
        return Chance(level, foreground=share)


def chance_of(
    overlap: Overlap, matching: Matching, matched: Groups, images: Passes | None
) -> Chance:
    """Return the expected scores of the same comparison if the two sides were independent.

    `matched` is the correspondence before merging. It is reused if the matching fixes the groups.
    """
    background = matching.background
    background_indices = find_background(overlap, background)
    has_background = background is not None
    if overlap.crisp and matching.by_overlap:
        merged_sides = sides_to_merge(matching.merge)
        return _largest_with_largest(overlap, merged_sides, background_indices).chance(
            overlap.unit, has_background=has_background
        )
    if overlap.crisp and matching.fixes_groups:
        return _given_agreement(overlap, matched, background_indices).chance(
            overlap.unit, has_background=has_background
        )
    if overlap.separable:
        try:
            independent = _independent(overlap, images)
            return _from_table(independent, matching, matched)
        except NeedsImages:
            if images is None:
                raise
    if images is None:
        raise NeedsImages(
            "The chance level of probabilities requires the images. Compare the segmentations "
            "themselves, or access .chance before .detach()."
        )
    return _sampled(overlap, matching, matched, images)


def _largest_with_largest(
    overlap: Overlap, sides: Sequence[Side], background_indices: BackgroundIndices
) -> _Agreement:
    """Return the agreement of two independent label maps that are matched by overlap.

    The expected overlap of two regions, as a share of the pixels, is the product of their shares.
    The optimal matching therefore pairs the largest regions of both sides, then the second-largest
    regions, and so on. Unmatched regions of `sides` are merged into the largest pair. Connected
    components are matched and merged within their class.
    """
    agreement = 0.0
    for shares in _shares(overlap, background_indices):
        pairs = min(share.size for share in shares)
        agreement += float(np.dot(shares.reference[:pairs], shares.prediction[:pairs]))
        for side in sides:
            largest = float(shares[other(side)].max(initial=0))
            agreement += float(shares[side][pairs:].sum()) * largest
    background = 1.0
    for side in SIDES:
        index = background_indices[side]
        share = 0.0 if index is None else overlap.side(side).volumes[index] / overlap.pixels
        background *= float(share)
    return _Agreement(agreement, background)


def _shares(overlap: Overlap, background_indices: BackgroundIndices) -> list[Both[Floats]]:
    """Return the volumes of non-empty foreground regions as shares of the pixels, largest first.

    There is one entry per pair of corresponding classes of connected components. Without components
    on both sides, all regions form one class. If the sides have no class label in common, the
    largest classes correspond, as in `within_classes`.
    """
    foreground = Both(*(overlap.side(side).volumes / overlap.pixels for side in SIDES))
    for side in SIDES:
        if background_indices[side] is not None:
            foreground[side][background_indices[side]] = 0
    if not has_classes(overlap):
        return [foreground.map(_largest_first)]
    codes, labels = zip(*(component_classes(overlap.side(side)) for side in SIDES), strict=True)
    pairs = common_classes(*labels)
    if len(pairs) == 1:  # only the regions that are not components
        volumes = (np.bincount(*side)[1:] for side in zip(codes, foreground, strict=True))
        pairs += zip(*((1 + np.argsort(-volume)).tolist() for volume in volumes), strict=False)
    return [
        Both(
            _largest_first(foreground.reference[codes[0] == i]),
            _largest_first(foreground.prediction[codes[1] == j]),
        )
        for i, j in pairs
    ]


def _largest_first(shares: Floats) -> Floats:
    return np.sort(shares[shares > 0])[::-1]


def _given_agreement(
    overlap: Overlap, groups: Groups, background_indices: BackgroundIndices
) -> _Agreement:
    """Return the agreement of two independent label maps whose groups are fixed."""
    shares = Both(*(group_volumes(overlap, groups, side) / overlap.pixels for side in SIDES))
    agreement = shares.reference * shares.prediction
    group = background_group(groups, background_indices)
    background = 0.0 if group is None else float(agreement[group])
    return _Agreement(float(agreement.sum()) - background, background)


def _from_table(independent: Overlap, matching: Matching, matched: Groups) -> Chance:
    """Compute the chance levels from the expected overlap of independent sides."""
    if matching.fixes_groups:
        groups, losses = matched, None
    else:
        result = correspond(independent, matching, None)
        groups, losses = result.groups, result.costs
    losses = group_costs(independent, groups, None) if losses is None else losses
    score = measure(independent, groups, losses, None).score
    if matching.background is None:
        return Chance(score)
    total = sum(group_volumes(independent, groups, side) for side in SIDES)
    group = background_group(groups, find_background(independent, matching.background))
    share = foreground_share((total - losses) / 2, group, independent.pixels)
    return Chance(score, foreground=share)


def _independent(overlap: Overlap, images: Passes | None) -> Overlap:
    """Return the expected overlap of independent sides, in which every pair of regions overlaps."""
    rows, columns = overlap.reference.occupied, overlap.prediction.occupied
    if rows.size * columns.size > MAX_TABLE_PAIRS:
        raise TooLargeError(
            f"the chance level of {rows.size} × {columns.size} regions requires the overlap of "
            f"every pair, which does not fit in memory"
        )
    volumes = Both(overlap.reference.volumes[rows], overlap.prediction.volumes[columns])
    if overlap.reference.crisp or overlap.prediction.crisp:
        # The probability of a label is 1 at its pixels, so the minimum is the other probability.
        savings = np.outer(*volumes) / overlap.pixels
    else:
        if images is None:
            raise NeedsImages(
                "The chance level of probabilities requires the images. Compare the segmentations "
                "themselves, or access .chance before .detach()."
            )
        savings = overlap.pixels * _mean_minima(overlap, images)[np.ix_(rows, columns)]
    grid = np.meshgrid(rows, columns, indexing="ij")
    pairs = Pairs(grid[0].reshape(-1), grid[1].reshape(-1), savings.reshape(-1))
    return replace(
        overlap,
        reference=_floating(overlap.reference),
        prediction=_floating(overlap.prediction),
        pairs=pairs,
    )


def _floating(regions: Regions) -> Regions:
    return replace(regions, volumes=regions.volumes.astype(np.float64))


def _mean_minima(overlap: Overlap, images: Passes) -> Floats:
    """Return E min(p_i(X), q_j(Y)) for every pair of regions and independent pixels X and Y."""
    pixels = overlap.pixels
    if pixels > MAX_SORTED_PIXELS:
        for bins in BINS:
            p, q = images.distributions(bins)
            values = pixels * (len(p.counts) + len(q.counts))
            if _accurate(p, q, pixels) or (bins == BINS[-1] and values > MAX_VALUES):
                return (_survival(p, pixels) * p.widths) @ _survival(q, pixels).T
    every = np.arange(pixels)
    sides = images.sample(Both(every, every)).map(lambda rows: np.sort(rows, axis=1))
    return np.array([[_mean_minimum(a, b) for b in sides.prediction] for a in sides.reference])


def _mean_minimum(p: NDArray[Any], q: NDArray[Any]) -> float:
    """Return E min(X, Y) for independent X and Y, each drawn from the values of a sorted row."""
    below = np.searchsorted(q, p)
    sums = np.concatenate([[0.0], np.cumsum(q, dtype=np.float64)])
    total = sums[below] + p.astype(np.float64) * (q.size - below)
    return float(total.mean() / q.size)


def _accurate(p: Distribution, q: Distribution, pixels: int) -> bool:
    """Return whether an upper bound of the binning error is at most `MAX_BINNING_ERROR`.

    For two values at relative positions a and b (0 to 1) within a bin, the error divided by the bin
    width is min(a, b) − a b, which is at most √(a (1 − a) b (1 − b)) and at most ¼. The bound of ¼
    is usually sufficient.
    """

    def total(p_bounds: NDArray[Any], q_bounds: NDArray[Any]) -> float:
        error = (p_bounds * p.widths) @ q_bounds.T
        return float(error.max(axis=1).sum() / pixels**2)

    if total(p.counts, q.counts) / 4 <= MAX_BINNING_ERROR:
        return True
    bounds = (np.sqrt(side.shares * (side.counts - side.shares)) for side in (p, q))
    return total(*bounds) <= MAX_BINNING_ERROR


def _survival(distribution: Distribution, pixels: int) -> Floats:
    """Return the mean of P(value > t) over each bin.

    E min(X, Y) = ∫ P(X > t) P(Y > t) dt. Within a bin, the product of the means approximates the
    mean of the product.
    """
    above = pixels - np.cumsum(distribution.counts, axis=1)
    survival: Floats = (above + distribution.shares) / pixels
    return survival


def _sampled(overlap: Overlap, matching: Matching, matched: Groups, images: Passes) -> Chance:
    """Estimate the chance levels from randomly paired pixels.

    One half of the pixel pairs determines the groups, and the other half is scored.
    """
    sides = overlap.reference, overlap.prediction
    rows = sum(1 if side.crisp else len(side) for side in sides)
    count = max(min(overlap.pixels, MAX_DRAWS, MAX_VALUES // rows), 2)
    rng = np.random.default_rng(SEED)
    positions = Both(*(np.sort(rng.integers(overlap.pixels, size=count)) for _ in SIDES))
    samples = images.sample(positions)
    samples = Both(samples.reference, samples.prediction[..., rng.permutation(count)])
    order = rng.permutation(count)
    parts = [
        Both(samples.reference[..., part], samples.prediction[..., part])
        for part in np.array_split(order, 2)
    ]
    halves = [images.from_samples(part) for part in parts]
    matching_half = halves[0].overlap(overlap.similarity)
    rule = matching.match
    if rule == "labels":  # the sample may lack rare labels
        rule = GivenGroups(_labelled(overlap, matched))
    sample_groups = correspond(matching_half, replace(matching, match=rule), halves[0]).groups
    sample_matching = GivenGroups(_labelled(matching_half, sample_groups))
    scoring_half = halves[1].overlap(overlap.similarity)
    groups = correspond(scoring_half, matching.given(sample_matching), halves[1]).groups
    lists = key_lists(scoring_half, groups)
    f = halves[1].map(overlap.similarity, lists).astype(np.float64)
    chance = Chance(float(f.mean()), float(f.std() / sqrt(f.size)))
    if matching.background is None:
        return chance
    group = background_group(groups, find_background(scoring_half, matching.background))
    share, error = _sampled_foreground(parts[1], lists, group)
    return replace(chance, foreground=share, foreground_error=error)


def _sampled_foreground(
    samples: Both[NDArray[Any]], lists: Both[Lists], background: int | None
) -> tuple[float, float]:
    """Return the foreground score of sampled pixels, and its standard error."""
    pixels = samples.reference.shape[-1]
    foreground, remaining_shares = np.zeros(pixels), np.ones(pixels)
    for group, members in enumerate(zip(*lists, strict=True)):
        common = np.minimum(
            *(_probabilities(side, keys) for side, keys in zip(samples, members, strict=True))
        )
        if group == background:
            remaining_shares -= common
        else:
            foreground += common
    if remaining_shares.mean() <= 0:
        return nan, 0.0
    share = float(foreground.mean() / remaining_shares.mean())
    deviation = (foreground - share * remaining_shares).std() / remaining_shares.mean()
    return share, float(deviation / sqrt(pixels))


def _probabilities(sample: NDArray[Any], keys: Sequence[int]) -> Floats:
    """Return the total probability of these regions at each sampled pixel."""
    if sample.ndim == 1:
        return np.isin(sample, keys).astype(np.float64)
    total: Floats = sample[list(keys)].sum(axis=0, dtype=np.float64)
    return total


def _labelled(
    overlap: Overlap, groups: Groups
) -> tuple[tuple[tuple[Label, ...], tuple[Label, ...]], ...]:
    """Return the labels of the matched groups."""
    labels = Both(overlap.reference.labels, overlap.prediction.labels)
    return tuple(
        (
            tuple(labels.reference[k] for k in groups.regions("reference", g).tolist()),
            tuple(labels.prediction[k] for k in groups.regions("prediction", g).tolist()),
        )
        for g in range(groups.matched)
    )
