"""Other segmentation metrics, computed from the overlap of two segmentations without their pixels.

Let n_ij be the number of pixels that reference region i and prediction region j share, a_i and b_j
the volumes of the regions, and N the number of pixels. Every index is a function of the overlapping
pairs, so no table of all pairs is needed.
"""

from dataclasses import dataclass, field, fields
from math import fsum, log, nan, sqrt
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from probdice.errors import InputError, Note
from probdice.method.background import named_background
from probdice.method.explained import explained_by_counts
from probdice.method.groups import Groups, counted, known_from_table
from probdice.method.overlap import Floats, Overlap, Regions
from probdice.method.region_labels import Label
from probdice.method.scoring import NeedsImages
from probdice.method.sides import SIDES, Both, Side, other
from probdice.text.formatting import decimal

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison

__all__ = [
    "INDICES",
    "Indices",
    "Shares",
    "background_masks",
    "indices_of",
    "shares_of",
]

Average = Literal["min", "max", "arithmetic", "geometric"]
SQUARES_FIT = 2**31  # the square of a smaller number of pixels fits in a 64-bit integer


@dataclass(frozen=True)
class Indices:
    """Other segmentation metrics, computed from one overlap.

    Let n_ij be the number of pixels that reference region i and prediction region j share, a_i and
    b_j the volumes of the regions, and N the number of pixels. Metrics marked *label maps* are NaN
    if a side contains probabilities; `notes` reports this. The other metrics are defined for label
    maps and probabilities. A quotient 0/0 is NaN.

    Attributes
    ----------
    rand : float
        Rand index: the share of pixel pairs on which both sides agree (both in one region, or both
        in different regions), 1 − (Σ a_i² + Σ b_j² − 2 Σ n_ij²) / (N (N − 1)). Label maps.
    adjusted_rand : float
        Rand index corrected for chance (Hubert and Arabie): 1 for equal partitions, 0 on average
        for shuffled pixels. Label maps.
    rand_precision : float
        Share of the pairs of distinct pixels within a prediction region that are also within a
        reference region: Σ n_ij (n_ij − 1) / Σ b_j (b_j − 1). Label maps.
    rand_recall : float
        The same with the sides exchanged: Σ n_ij (n_ij − 1) / Σ a_i (a_i − 1). Label maps.
    adapted_rand_error : float
        The adapted Rand error of the SNEMI3D challenge script: 1 − 2 Σ n_ij² / (Σ a_i² + Σ b_j²),
        where a pixel also forms a pair with itself. If a background is given, background pixels of
        the *reference* are excluded. The other c background pixels of the prediction count in a_i,
        but not in n_ij and b_j; instead the script adds c/N to Σ n_ij² and to Σ b_j². Label maps.
    variation_of_information : float
        `variation_split` + `variation_merge`, in bits. Label maps.
    variation_split : float
        H(prediction | reference) = −Σ n_ij/N log₂(n_ij/a_i), in bits. Label maps.
    variation_merge : float
        H(reference | prediction) = −Σ n_ij/N log₂(n_ij/b_j), in bits. Label maps.
    mutual_information : float
        I = Σ n_ij/N log₂(N n_ij / (a_i b_j)), in bits. Label maps.
    nmi_min : float
        I divided by the smaller of the two entropies. Label maps.
    nmi_max : float
        I divided by the larger of the two entropies. Label maps.
    nmi_arithmetic : float
        I divided by the arithmetic mean of the two entropies. Label maps.
    nmi_geometric : float
        I divided by the geometric mean of the two entropies. Label maps.
    nmi_joint : float
        I divided by the joint entropy. Label maps.
    covering : dict
        Per side, the mean over its pixels of the best Jaccard index of their region with any region
        of the other side; for the reference, 1/N Σ_i a_i max_j J_ij. Label maps.
    achievable_accuracy : dict
        ``["reference"]`` is the accuracy if every prediction region is given the reference label
        that it overlaps most: 1/N Σ_j max_i n_ij. ``["prediction"]`` is the same with the sides
        exchanged. Label maps.
    under_segmentation_error : float
        The super-pixel error of Neubert and Protzel: 1/N Σ_ij min(n_ij, b_j − n_ij). For each pair
        of overlapping regions, it counts the smaller part of the prediction region, inside or
        outside the reference region. Label maps.
    over_segmentation_error : float
        The same error with the sides exchanged. Label maps.
    accuracy : float
        The share of pixels whose regions correspond; for probabilities, the probability that
        corresponding regions share per pixel, Σ min(p, q) / N.
    kappa : float
        Cohen's κ: (accuracy − e) / (1 − e), with e the sum over the groups of the product of both
        sides' shares of the pixels.
    mean_iou : float
        Mean Jaccard index of all groups except faint ones (`Group.faint`). Unmatched regions count
        as 0.
    weighted_iou : float
        The mean Jaccard index, weighted by the volume in the reference.
    mean_dice : float
        Mean Dice coefficient of all groups except faint ones. Unmatched regions count as 0.
    mean_foreground_dice : float
        The same mean without the background, like nnU-Net's foreground mean of one case. NaN
        without a background, or if no other group is included.
    explained : dict
        ``["reference"]`` is the share of the reference that the prediction determines (1 if it only
        subdivides), ``["prediction"]`` the reverse. For label maps it is Goodman and Kruskal's τ.
    background : dict or None
        Per side, the label or name of the background.
    notes : tuple of Note
        Reasons for missing numbers.

    Examples
    --------
    >>> import probdice
    >>> indices = probdice.overlap([1, 1, 2, 2, 2, 2], [5, 5, 7, 7, 8, 8]).indices()
    >>> indices.variation_split, indices.variation_merge
    (0.6666666666666666, 0.0)
    >>> indices.covering
    {'reference': 0.6666666666666666, 'prediction': 0.6666666666666666}
    >>> round(indices.adjusted_rand, 6)
    0.444444
    """

    rand: float
    adjusted_rand: float
    rand_precision: float
    rand_recall: float
    adapted_rand_error: float
    variation_of_information: float
    variation_split: float
    variation_merge: float
    mutual_information: float
    nmi_min: float
    nmi_max: float
    nmi_arithmetic: float
    nmi_geometric: float
    nmi_joint: float
    covering: dict[Side, float]
    achievable_accuracy: dict[Side, float]
    under_segmentation_error: float
    over_segmentation_error: float
    accuracy: float
    kappa: float
    mean_iou: float
    weighted_iou: float
    mean_dice: float
    mean_foreground_dice: float
    explained: dict[Side, float]
    background: dict[Side, Label] | None = None
    notes: tuple[Note, ...] = ()
    _overlap: Overlap | None = field(default=None, repr=False, compare=False)

    def adjusted_mutual_information(self, *, average: Average = "arithmetic") -> float:
        """Mutual information corrected for chance (AMI).

        (I − E) / (H − E), where E is the exact mean of I over all permutations of the pixels of
        one side, and H is an average of the two entropies. It is not computed with the other
        metrics because it visits every pair of distinct volumes, which is slow for many regions.

        Parameters
        ----------
        average : {"arithmetic", "min", "max", "geometric"}, optional
            How to average the two entropies.

        Returns
        -------
        float
            1 for equal partitions, 0 on average for shuffled pixels. NaN for probabilities, and
            if both sides have only one region.

        Examples
        --------
        >>> import probdice
        >>> indices = probdice.overlap([1, 1, 2, 2, 2, 2], [5, 5, 7, 7, 8, 8]).indices()
        >>> round(indices.adjusted_mutual_information(), 6)
        0.615385
        """
        if average not in ("arithmetic", "min", "max", "geometric"):
            raise InputError(
                f"average must be 'arithmetic', 'min', 'max' or 'geometric', found {average!r}"
            )
        if self._overlap is None or not self._overlap.crisp:
            return nan
        volumes = Both(*(_occupied(self._overlap.side(side)) for side in SIDES))
        entropies = volumes.map(lambda sizes: _entropy(sizes, self._pixels))
        expected = _expected_information(volumes, self._pixels)
        margin = _mean(entropies, average) - expected
        return _ratio(self.mutual_information - expected, margin if abs(margin) > 1e-15 else 0.0)

    @property
    def _pixels(self) -> int:
        return 0 if self._overlap is None else self._overlap.pixels

    def to_dict(self) -> dict[str, float]:
        """Return all numbers by name.

        Measures with a value per side have names such as ``covering_reference``.

        Examples
        --------
        >>> import probdice
        >>> probdice.overlap([1, 1, 2, 2], [5, 5, 5, 8]).indices().to_dict()["covering_reference"]
        0.5833333333333333
        """
        numbers: dict[str, float] = {}
        for name in (entry.name for entry in fields(self)):
            value = getattr(self, name)
            if isinstance(value, dict) and name != "background":
                numbers |= {f"{name}_{side}": value[side] for side in SIDES}
            elif isinstance(value, float):
                numbers[name] = value
        return numbers

    def __repr__(self) -> str:
        lines = [f"  {name:30}  {decimal(value)}" for name, value in self.to_dict().items()]
        options = ""
        if self.background is not None:
            options = f" ({named_background(Both(**self.background)).in_python()})"
        notes = [f"  note: {note}" for note in self.notes]
        return "\n".join([f"Indices{options}", *lines, *notes])


def _names() -> tuple[str, ...]:
    """Return the names of all numbers in `Indices.to_dict`."""
    names: list[str] = []
    for entry in fields(Indices):
        if entry.type is float:
            names.append(entry.name)
        elif entry.type == dict[Side, float]:
            names += [f"{entry.name}_{side}" for side in SIDES]
    return tuple(names)


INDICES = _names()


def indices_of(result: "Comparison", groups: Groups) -> Indices:
    """Return all indices except the adjusted mutual information."""
    overlap = result.overlap
    outside = background_masks(result)
    notes: list[Note] = []
    if overlap.crisp:
        explained = explained_by_counts(overlap)
    else:
        notes.append(Note("soft", (_LABEL_MAPS_ONLY,)))
        try:
            explained = dict(result.explained)
        except NeedsImages as error:
            explained = {side: nan for side in SIDES}
            notes.append(Note("images", error.args))
    return Indices(
        **_of_partitions(overlap, outside),
        **_of_groups(result, groups),
        explained=explained,
        background=result.background,
        notes=tuple(notes),
        _overlap=overlap,
    )


_LABEL_MAPS_ONLY = (
    "A side holds probabilities. Rand, variation of information, mutual information, covering, "
    "achievable accuracy, under- and over-segmentation are defined for two label maps only."
)


# -- the background ------------------------------------------------------------------------------


def background_masks(result: "Comparison") -> Both[NDArray[np.bool_]]:
    """Return which regions of each side are the background; none without a background."""
    masks = Both(*(np.zeros(len(result.overlap.side(side)), np.bool_) for side in SIDES))
    for side in SIDES:
        place = result.background_regions[side]
        if place is not None:
            masks[side][place] = True
    return masks


# -- metrics without a correspondence ------------------------------------------------------------


def _of_partitions(overlap: Overlap, outside: Both[NDArray[np.bool_]]) -> dict[str, Any]:
    """Return the indices of two partitions."""
    if not overlap.crisp:
        sides: dict[Side, float] = {side: nan for side in SIDES}
        return {name: nan for name in _PARTITION} | {
            "covering": dict(sides),
            "achievable_accuracy": dict(sides),
        }
    return (
        _pairs_of_pixels(overlap)
        | {"adapted_rand_error": _adapted_rand_error(overlap, outside)}
        | _information(overlap)
        | _segments(overlap)
    )


_PARTITION = (
    "rand",
    "adjusted_rand",
    "rand_precision",
    "rand_recall",
    "adapted_rand_error",
    "variation_of_information",
    "variation_split",
    "variation_merge",
    "mutual_information",
    "nmi_min",
    "nmi_max",
    "nmi_arithmetic",
    "nmi_geometric",
    "nmi_joint",
    "under_segmentation_error",
    "over_segmentation_error",
)


def _pairs_of_pixels(overlap: Overlap) -> dict[str, float]:
    """Rand indices in exact integers, because the adjusted index subtracts large numbers."""
    pixels = overlap.pixels
    together = _pairs(overlap.meeting.savings, pixels)
    reference = _pairs(overlap.reference.volumes, pixels)
    prediction = _pairs(overlap.prediction.volumes, pixels)
    every = pixels * (pixels - 1)
    by_chance = reference * prediction  # times `every`
    return {
        "rand": _ratio(every - reference - prediction + 2 * together, every),
        "adjusted_rand": _ratio(
            2 * (together * every - by_chance), (reference + prediction) * every - 2 * by_chance
        ),
        "rand_precision": _ratio(together, prediction),
        "rand_recall": _ratio(together, reference),
    }


def _adapted_rand_error(overlap: Overlap, outside: Both[NDArray[np.bool_]]) -> float:
    """The adapted Rand error of SNEMI3D. Sums are multiplied by N, so that they are integers."""
    meeting, pixels = overlap.meeting, overlap.pixels
    foreground = ~outside.reference[meeting.rows]
    missed = foreground & outside.prediction[meeting.columns]
    lost = int(meeting.savings[missed].sum())  # foreground pixels predicted as background
    foreground &= ~missed
    counts, columns = meeting.savings[foreground], meeting.columns[foreground]
    sizes = np.zeros(len(overlap.prediction), np.int64)
    np.add.at(sizes, columns, counts)
    together = pixels * _squares(counts, pixels) + lost
    prediction = pixels * _squares(sizes, pixels) + lost
    reference = pixels * _squares(overlap.reference.volumes[~outside.reference], pixels)
    return _ratio(reference + prediction - 2 * together, reference + prediction)


def _information(overlap: Overlap) -> dict[str, float]:
    """Entropies and mutual information, in bits."""
    meeting, pixels = overlap.meeting, overlap.pixels
    counts = meeting.savings.astype(np.float64)
    a = overlap.reference.volumes[meeting.rows]
    b = overlap.prediction.volumes[meeting.columns]
    shares = counts / pixels
    split = _sum(shares * np.log2(a / counts))
    merge = _sum(shares * np.log2(b / counts))
    joint = _sum(shares * np.log2(pixels / counts))
    mutual = max(_sum(shares * np.log2((counts / a) * (pixels / b))), 0.0)
    entropies = Both(*(_entropy(_occupied(overlap.side(side)), pixels) for side in SIDES))
    return {
        "variation_of_information": split + merge,
        "variation_split": split,
        "variation_merge": merge,
        "mutual_information": mutual,
        "nmi_min": _share(mutual, _mean(entropies, "min")),
        "nmi_max": _share(mutual, _mean(entropies, "max")),
        "nmi_arithmetic": _share(mutual, _mean(entropies, "arithmetic")),
        "nmi_geometric": _share(mutual, _mean(entropies, "geometric")),
        "nmi_joint": _share(mutual, joint),
    }


def _segments(overlap: Overlap) -> dict[str, Any]:
    """Covering, achievable accuracy, under- and over-segmentation."""
    meeting, pixels = overlap.meeting, overlap.pixels
    counts = meeting.savings
    a = overlap.reference.volumes[meeting.rows]
    b = overlap.prediction.volumes[meeting.columns]
    jaccard = counts / (a + b - counts)
    covering: dict[Side, float] = {}
    achievable: dict[Side, float] = {}
    for side in SIDES:
        regions = overlap.side(side)
        places = meeting.rows if side == "reference" else meeting.columns
        best = _largest(jaccard, places, len(regions))
        covering[side] = min(float(regions.volumes @ best) / pixels, 1.0)
        achievable[other(side)] = int(_largest(counts, places, len(regions)).sum()) / pixels
    return {
        "covering": covering,
        "achievable_accuracy": {side: achievable[side] for side in SIDES},
        "under_segmentation_error": int(np.minimum(counts, b - counts).sum()) / pixels,
        "over_segmentation_error": int(np.minimum(counts, a - counts).sum()) / pixels,
    }


# -- metrics with a correspondence ---------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Shares:
    """Per group, the intersection and the volumes of both sides, in pixels.

    `regions` is the number of regions per side and group. `counted` marks the groups that are
    included in means. Background regions are excluded from all four.
    """

    common: Floats
    volumes: Both[Floats]
    regions: Both[NDArray[np.int64]]
    counted: NDArray[np.bool_]

    @property
    def occupied(self) -> NDArray[np.bool_]:
        """The groups that have at least one region."""
        return np.asarray((self.regions.reference > 0) | (self.regions.prediction > 0))

    @property
    def dice(self) -> Floats:
        """The Dice coefficient of every group; NaN for groups without a region."""
        total = self.volumes.reference + self.volumes.prediction
        return _quotients(2 * self.common, total)

    @property
    def jaccard(self) -> Floats:
        """The Jaccard index of every group; NaN for groups without a region."""
        union = self.volumes.reference + self.volumes.prediction - self.common
        return _quotients(self.common, union)


def shares_of(
    overlap: Overlap,
    groups: Groups,
    outside: Both[NDArray[np.bool_]],
    dice: Floats | None = None,
) -> Shares:
    """Return the intersection and the volumes of the two sides of every group.

    If the intersection does not follow from the overlap table (several soft regions, or
    aitchison), it is computed from the Dice coefficients of the groups, if given.
    """
    inside = Both(*((groups.numbers(side) >= 0) & ~outside[side] for side in SIDES))
    numbers = Both(*(groups.numbers(side)[inside[side]] for side in SIDES))
    volumes = Both(
        *(
            _summed(overlap.side(side).volumes[inside[side]], numbers[side], groups.count)
            for side in SIDES
        )
    )
    regions = Both(*(np.bincount(numbers[side], minlength=groups.count) for side in SIDES))
    meeting = overlap.meeting
    number = groups.reference[meeting.rows]
    together = (
        (number == groups.prediction[meeting.columns])
        & inside.reference[meeting.rows]
        & inside.prediction[meeting.columns]
    )
    common = _summed(meeting.savings[together], number[together], groups.count)
    if not overlap.crisp:
        unknown = ~known_from_table(overlap, groups)
        if not overlap.similarity.separable:
            unknown[:] = True
        unknown &= (regions.reference > 0) & (regions.prediction > 0)
        total = volumes.reference + volumes.prediction
        estimate = np.full(groups.count, nan) if dice is None else dice * total / 2
        common[unknown] = estimate[unknown]
        common = np.minimum(common, np.minimum(volumes.reference, volumes.prediction))
    return Shares(common, volumes, regions, counted(overlap, groups, outside))


def _of_groups(result: "Comparison", groups: Groups) -> dict[str, Any]:
    """Return the indices of corresponding regions."""
    overlap, pixels = result.overlap, result.pixels
    dice = None if overlap.crisp else np.array([group.dice for group in result.groups])
    nothing = Both(*(np.zeros(len(overlap.side(side)), np.bool_) for side in SIDES))
    shares = shares_of(overlap, groups, nothing, dice)
    accuracy = min(float(shares.common.sum()) / pixels, 1.0)
    by_chance = float(shares.volumes.reference @ shares.volumes.prediction) / pixels**2
    jaccard, counts = shares.jaccard, shares.counted
    weights = shares.volumes.reference[counts]
    return {
        "accuracy": accuracy,
        "kappa": _ratio(accuracy - by_chance, 1 - by_chance),
        "mean_iou": _mean_of(jaccard[counts]),
        "weighted_iou": _share(float(weights @ jaccard[counts]), float(weights.sum())),
        "mean_dice": _mean_of(shares.dice[counts]),
        "mean_foreground_dice": nan if result.background is None else result.foreground_dice,
    }


def _mean_of(values: Floats) -> float:
    """Return the mean; NaN if there are no values."""
    return float(values.mean()) if values.size else nan


# -- sums ----------------------------------------------------------------------------------------


def _sum(values: NDArray[Any]) -> float:
    """A sum that does not depend on the order, so that relabelling does not change an entropy."""
    return fsum(values.tolist())


def _squares(counts: NDArray[Any], pixels: int) -> int:
    """Σ n², exactly."""
    if pixels < SQUARES_FIT:
        return int(counts @ counts)
    return sum(count * count for count in counts.tolist())


def _pairs(counts: NDArray[Any], pixels: int) -> int:
    """Σ n (n − 1), exactly."""
    return _squares(counts, pixels) - int(counts.sum())


def _occupied(regions: Regions) -> NDArray[Any]:
    """Return the volumes of the non-empty regions."""
    volumes: NDArray[Any] = regions.volumes[regions.occupied]
    return volumes


def _entropy(volumes: NDArray[Any], pixels: int) -> float:
    """Return the entropy of a partition, in bits."""
    return _sum((volumes / pixels) * np.log2(pixels / volumes))


def _expected_information(volumes: Both[NDArray[Any]], pixels: int) -> float:
    """Return the mean mutual information of shuffled pixels, in bits."""
    from probdice.engine.kernels.information import expected_information

    reference, prediction = (np.unique(sizes, return_counts=True) for sizes in volumes)
    return expected_information(*reference, *prediction, pixels) / log(2)


def _mean(entropies: Both[float], average: Average) -> float:
    first, second = entropies
    return {
        "min": min(first, second),
        "max": max(first, second),
        "arithmetic": (first + second) / 2,
        "geometric": sqrt(first * second),
    }[average]


def _summed(values: NDArray[Any], places: NDArray[np.int64], count: int) -> Floats:
    """Return the sum of the values at every index."""
    return np.bincount(places, values, count).astype(np.float64)


def _largest(values: NDArray[Any], places: NDArray[np.int64], count: int) -> NDArray[Any]:
    """Return the largest value at every index."""
    largest = np.zeros(count, values.dtype)
    np.maximum.at(largest, places, values)
    return largest


def _ratio(part: float, whole: float) -> float:
    """Return a quotient; NaN if the divisor is 0. Integers of any size are divided exactly."""
    return part / whole if whole else nan


def _quotients(parts: Floats, wholes: Floats) -> Floats:
    """Quotients; NaN where a divisor is 0."""
    quotients = np.full(wholes.shape, nan)
    np.divide(parts, wholes, out=quotients, where=wholes > 0)
    return quotients


def _share(part: float, whole: float) -> float:
    """Return a quotient, clipped to 1 because of rounding errors; NaN if the divisor is 0."""
    return min(part / whole, 1.0) if whole else nan
