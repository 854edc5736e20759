"""Indices of two label maps that do not require a correspondence of regions.

Let n_ij be the number of pixels that reference region i and prediction region j share, let a_i and
b_j be the volumes of the regions, and let N be the number of pixels. Every index can be
computed from the pairs of regions that overlap, so no table of all pairs is needed.
"""

from math import fsum, log, nan, sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from probdice.method.overlap import Overlap, Regions
from probdice.method.sides import SIDES, Both, Side, other

__all__ = ["Average", "adjusted_mutual_information", "clipped_ratio", "partition_indices", "ratio"]

Average = Literal["min", "max", "arithmetic", "geometric"]
SQUARES_FIT = 2**31  # the square of a smaller number of pixels fits in a 64-bit integer


def partition_indices(overlap: Overlap, outside: Both[NDArray[np.bool_]]) -> dict[str, Any]:
    """Return the indices of two label maps; `outside` marks the background regions."""
    return (
        _pairs_of_pixels(overlap)
        | {"adapted_rand_error": _adapted_rand_error(overlap, outside)}
        | _information(overlap)
        | _segments(overlap)
    )


def adjusted_mutual_information(overlap: Overlap, information: float, average: Average) -> float:
    """Return the mutual information of two label maps, corrected for chance."""
    from probdice.engine.kernels.information import expected_information

    volumes = Both(*(_occupied_volumes(overlap.side(side)) for side in SIDES))
    entropies = volumes.map(lambda sizes: _entropy(sizes, overlap.pixels))
    reference, prediction = (np.unique(sizes, return_counts=True) for sizes in volumes)
    expected = expected_information(*reference, *prediction, overlap.pixels) / log(2)
    margin = _mean(entropies, average) - expected
    return ratio(information - expected, margin if abs(margin) > 1e-15 else 0.0)


def _pairs_of_pixels(overlap: Overlap) -> dict[str, float]:
    """Return Rand indices. Pairs are counted with integers, so that differences are exact."""
    pixels = overlap.pixels
    common_pairs = _pairs(overlap.pairs.savings, pixels)
    reference = _pairs(overlap.reference.volumes, pixels)
    prediction = _pairs(overlap.prediction.volumes, pixels)
    all_pairs = pixels * (pixels - 1)
    # The number of common pairs that is expected by chance, multiplied by `all_pairs`.
    by_chance = reference * prediction
    return {
        "rand": ratio(all_pairs - reference - prediction + 2 * common_pairs, all_pairs),
        "adjusted_rand": ratio(
            2 * (common_pairs * all_pairs - by_chance),
            (reference + prediction) * all_pairs - 2 * by_chance,
        ),
        "rand_precision": ratio(common_pairs, prediction),
        "rand_recall": ratio(common_pairs, reference),
    }


def _adapted_rand_error(overlap: Overlap, outside: Both[NDArray[np.bool_]]) -> float:
    """Return the adapted Rand error of SNEMI3D. Sums are multiplied by N to make them integers."""
    overlapping, pixels = overlap.pairs, overlap.pixels
    foreground = ~outside.reference[overlapping.rows]
    is_missed = foreground & outside.prediction[overlapping.columns]
    missed_pixels = int(overlapping.savings[is_missed].sum())  # predicted as background
    foreground &= ~is_missed
    counts, columns = overlapping.savings[foreground], overlapping.columns[foreground]
    sizes = np.zeros(len(overlap.prediction), np.int64)
    np.add.at(sizes, columns, counts)
    common_squares = pixels * _squares(counts, pixels) + missed_pixels
    prediction = pixels * _squares(sizes, pixels) + missed_pixels
    reference = pixels * _squares(overlap.reference.volumes[~outside.reference], pixels)
    return ratio(reference + prediction - 2 * common_squares, reference + prediction)


def _information(overlap: Overlap) -> dict[str, float]:
    """Return conditional entropies and mutual information, in bits."""
    overlapping, pixels = overlap.pairs, overlap.pixels
    counts = overlapping.savings.astype(np.float64)
    a = overlap.reference.volumes[overlapping.rows]
    b = overlap.prediction.volumes[overlapping.columns]
    shares = counts / pixels
    split = _sum(shares * np.log2(a / counts))
    merge = _sum(shares * np.log2(b / counts))
    joint = _sum(shares * np.log2(pixels / counts))
    mutual = max(_sum(shares * np.log2((counts / a) * (pixels / b))), 0.0)
    entropies = Both(*(_entropy(_occupied_volumes(overlap.side(side)), pixels) for side in SIDES))
    return {
        "variation_of_information": split + merge,
        "variation_split": split,
        "variation_merge": merge,
        "mutual_information": mutual,
        "nmi_min": clipped_ratio(mutual, _mean(entropies, "min")),
        "nmi_max": clipped_ratio(mutual, _mean(entropies, "max")),
        "nmi_arithmetic": clipped_ratio(mutual, _mean(entropies, "arithmetic")),
        "nmi_geometric": clipped_ratio(mutual, _mean(entropies, "geometric")),
        "nmi_joint": clipped_ratio(mutual, joint),
    }


def _segments(overlap: Overlap) -> dict[str, Any]:
    """Return covering, achievable accuracy, and under- and over-segmentation errors."""
    overlapping, pixels = overlap.pairs, overlap.pixels
    counts = overlapping.savings
    a = overlap.reference.volumes[overlapping.rows]
    b = overlap.prediction.volumes[overlapping.columns]
    jaccard = counts / (a + b - counts)
    covering: dict[Side, float] = {}
    achievable: dict[Side, float] = {}
    for side in SIDES:
        regions = overlap.side(side)
        indices = overlapping.rows if side == "reference" else overlapping.columns
        best_jaccard = _largest(jaccard, indices, len(regions))
        covering[side] = min(float(regions.volumes @ best_jaccard) / pixels, 1.0)
        achievable[other(side)] = int(_largest(counts, indices, len(regions)).sum()) / pixels
    return {
        "covering": covering,
        "achievable_accuracy": {side: achievable[side] for side in SIDES},
        "under_segmentation_error": int(np.minimum(counts, b - counts).sum()) / pixels,
        "over_segmentation_error": int(np.minimum(counts, a - counts).sum()) / pixels,
    }


def _sum(values: NDArray[Any]) -> float:
    """Return a sum that does not depend on the order of its terms.

    Relabelling therefore does not change an entropy.
    """
    return fsum(values.tolist())


def _squares(counts: NDArray[Any], pixels: int) -> int:
    """Return the exact Σ n²."""
    if pixels < SQUARES_FIT:
        return int(counts @ counts)
    return sum(count * count for count in counts.tolist())


def _pairs(counts: NDArray[Any], pixels: int) -> int:
    """Return the exact Σ n (n − 1)."""
    return _squares(counts, pixels) - int(counts.sum())


def _occupied_volumes(regions: Regions) -> NDArray[Any]:
    """Return the volumes of the non-empty regions."""
    volumes: NDArray[Any] = regions.volumes[regions.occupied]
    return volumes


def _entropy(volumes: NDArray[Any], pixels: int) -> float:
    """Return the entropy of a partition, in bits."""
    return _sum((volumes / pixels) * np.log2(pixels / volumes))


def _mean(entropies: Both[float], average: Average) -> float:
    first, second = entropies
    return {
        "min": min(first, second),
        "max": max(first, second),
        "arithmetic": (first + second) / 2,
        "geometric": sqrt(first * second),
    }[average]


def _largest(values: NDArray[Any], indices: NDArray[np.int64], count: int) -> NDArray[Any]:
    """Return the largest of the values at every index below `count`; 0 if there are none."""
    largest = np.zeros(count, values.dtype)
    np.maximum.at(largest, indices, values)
    return largest


def ratio(part: float, total: float) -> float:
    """Return a quotient; NaN if the divisor is 0.

    The quotient of two integers is correctly rounded, even if the integers are large.
    """
    return part / total if total else nan


def clipped_ratio(part: float, total: float) -> float:
    """Return a quotient; NaN if the divisor is 0. Rounding errors above 1 are clipped to 1."""
    return min(part / total, 1.0) if total else nan
