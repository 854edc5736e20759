"""Other common segmentation metrics. Most are computed from the overlap table, not the pixels."""

from dataclasses import dataclass, field, fields
from math import nan
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from probdice.errors import InputError, Note
from probdice.method.background import named_background
from probdice.method.chance import adjusted
from probdice.method.explained import explained_by_counts
from probdice.method.groups import Groups
from probdice.method.overlap import Floats, Overlap
from probdice.method.region_labels import Label
from probdice.method.scoring import NeedsImages
from probdice.method.sides import SIDES, Both, Side
from probdice.metrics.group_shares import background_masks, shares_of
from probdice.metrics.partition_indices import (
    Average,
    adjusted_mutual_information,
    clipped_ratio,
    partition_indices,
    ratio,
)
from probdice.text.formatting import decimal

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison

__all__ = ["INDICES", "Indices", "indices_of"]

LABEL_MAPS_ONLY = (
    "A side contains probabilities. Rand indices, variation of information, mutual information, "
    "covering, achievable accuracy, and under- and over-segmentation errors are defined only for "
    "two label maps."
)


def _undefined() -> dict[Side, float]:
    return dict.fromkeys(SIDES, nan)


@dataclass(frozen=True, kw_only=True)
class Indices:
    """Other common segmentation metrics of a comparison.

    Let n_ij be the number of pixels that reference region i and prediction region j share, let a_i
    and b_j be the volumes of the regions, and let N be the number of pixels. Metrics whose
    description ends with "Label maps." are NaN if a side contains probabilities, and `notes` then
    contains the reason. The other metrics are defined for label maps and probabilities. A quotient
    0/0 is NaN.

    Attributes
    ----------
    rand : float
        Rand index: the share of pixel pairs that are either in the same region on both sides or in
        different regions on both sides, 1 − (Σ a_i² + Σ b_j² − 2 Σ n_ij²) / (N (N − 1)). Label
        maps.
    adjusted_rand : float
        Rand index corrected for chance (Hubert and Arabie): 1 for equal partitions, 0 on average
        for shuffled pixels. Label maps.
    rand_precision : float
        Share of the pairs of distinct pixels within a prediction region that are also within one
        reference region: Σ n_ij (n_ij − 1) / Σ b_j (b_j − 1). Label maps.
    rand_recall : float
        The same with the sides exchanged: Σ n_ij (n_ij − 1) / Σ a_i (a_i − 1). Label maps.
    adapted_rand_error : float
        The adapted Rand error of the SNEMI3D challenge script: 1 − 2 Σ n_ij² / (Σ a_i² + Σ b_j²),
        where each pixel also forms a pair with itself. If a background is given, background pixels
        of the *reference* are excluded. Let c be the number of remaining pixels that the prediction
        assigns to the background. These pixels count in a_i, but not in n_ij and b_j. Instead, c/N
        is added to Σ n_ij² and to Σ b_j², as in the script. Label maps.
    variation_of_information : float
        `variation_split` + `variation_merge`, in bits. Label maps.
    variation_split : float
        H(prediction | reference) = −Σ n_ij/N log₂(n_ij/a_i), in bits. Label maps.
    variation_merge : float
        H(reference | prediction) = −Σ n_ij/N log₂(n_ij/b_j), in bits. Label maps.
    mutual_information : float
        I = Σ n_ij/N log₂(N n_ij / (a_i b_j)), in bits. Label maps.
    nmi_min : float
        Mutual information, divided by the smaller of the two entropies. Label maps.
    nmi_max : float
        Mutual information, divided by the larger of the two entropies. Label maps.
    nmi_arithmetic : float
        Mutual information, divided by the arithmetic mean of the two entropies. Label maps.
    nmi_geometric : float
        Mutual information, divided by the geometric mean of the two entropies. Label maps.
    nmi_joint : float
        Mutual information, divided by the joint entropy. Label maps.
    covering : dict
        Per side, the mean over pixels of the largest Jaccard index between the region of the pixel
        and any region of the other side. For the reference, this is 1/N Σ_i a_i max_j J_ij. Label
        maps.
    achievable_accuracy : dict
        ``["reference"]`` is the accuracy if every prediction region is assigned the reference label
        that it overlaps most: 1/N Σ_j max_i n_ij. ``["prediction"]`` is the same measure with the
        sides exchanged. Label maps.
    under_segmentation_error : float
        The super-pixel error of Neubert and Protzel: 1/N Σ_ij min(n_ij, b_j − n_ij). For each pair
        of overlapping regions, the smaller part of the prediction region (inside or outside the
        reference region) is added to the error. Label maps.
    over_segmentation_error : float
        The same error with the sides exchanged. Label maps.
    accuracy : float
        The share of pixels whose reference region and prediction region correspond. For
        probabilities, this is Σ min(p, q) / N over corresponding regions.
    kappa : float
        Cohen's κ: (accuracy − e) / (1 − e), where e is the sum over groups of (share of pixels in
        the reference) × (share of pixels in the prediction).
    mean_iou : float
        Mean Jaccard index of all groups except faint groups (`Group.faint`). Unmatched regions
        count as 0.
    weighted_iou : float
        Mean Jaccard index of the same groups, weighted by their volumes in the reference.
    mean_dice : float
        Mean Dice coefficient of all groups except faint groups. Unmatched regions count as 0.
    mean_foreground_dice : float
        The mean Dice coefficient without the background, like nnU-Net's foreground mean of one
        case. It is NaN without a background, or if all foreground groups are faint.
    explained : dict
        ``["reference"]`` is the share of the variance of the reference that the prediction
        explains. It is 1 if the prediction only subdivides reference regions. ``["prediction"]`` is
        the same measure with the sides exchanged. For label maps, this measure is Goodman and
        Kruskal's τ.
    background : dict or None
        Per side, the label or name of the background.
    notes : tuple of Note
        Reasons why metrics are NaN.

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

    rand: float = nan
    adjusted_rand: float = nan
    rand_precision: float = nan
    rand_recall: float = nan
    adapted_rand_error: float = nan
    variation_of_information: float = nan
    variation_split: float = nan
    variation_merge: float = nan
    mutual_information: float = nan
    nmi_min: float = nan
    nmi_max: float = nan
    nmi_arithmetic: float = nan
    nmi_geometric: float = nan
    nmi_joint: float = nan
    covering: dict[Side, float] = field(default_factory=_undefined)
    achievable_accuracy: dict[Side, float] = field(default_factory=_undefined)
    under_segmentation_error: float = nan
    over_segmentation_error: float = nan
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
        """Compute the mutual information corrected for chance (AMI).

        AMI = (I − E) / (H − E), where E is the exact mean of I over all permutations of the pixels
        of one side, and H is an average of the two entropies. AMI is not computed with the other
        metrics, because the computation visits every pair of distinct volumes and is slow for many
        regions.

        Parameters
        ----------
        average : {"arithmetic", "min", "max", "geometric"}, optional
            How to average the two entropies.

        Returns
        -------
        float
            1 for equal partitions and 0 on average for shuffled pixels. The value is NaN for
            probabilities, and if H equals E, for example if both sides have only one region.

        Examples
        --------
        >>> import probdice
        >>> indices = probdice.overlap([1, 1, 2, 2, 2, 2], [5, 5, 7, 7, 8, 8]).indices()
        >>> round(indices.adjusted_mutual_information(), 6)
        0.615385
        """
        if average not in get_args(Average):
            raise InputError(
                f"average must be 'arithmetic', 'min', 'max' or 'geometric', found {average!r}"
            )
        if self._overlap is None or not self._overlap.crisp:
            return nan
        return adjusted_mutual_information(self._overlap, self.mutual_information, average)

    def to_dict(self) -> dict[str, float]:
        """Return all metrics by name, except the adjusted mutual information.

        Metrics with one value per side have names such as ``covering_reference``.

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
    """Return the names of all metrics in `Indices.to_dict`."""
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
    notes: list[Note] = []
    label_map_indices: dict[str, Any] = {}
    if overlap.crisp:
        label_map_indices = partition_indices(overlap, background_masks(result))
        explained = explained_by_counts(overlap)
    else:
        notes.append(Note("soft", (LABEL_MAPS_ONLY,)))
        try:
            explained = dict(result.explained)
        except NeedsImages as error:
            explained = _undefined()
            notes.append(Note("images", error.args))
    return Indices(
        **label_map_indices,
        **_of_groups(result, groups),
        explained=explained,
        background=result.background,
        notes=tuple(notes),
        _overlap=overlap,
    )


def _of_groups(result: "Comparison", groups: Groups) -> dict[str, Any]:
    """Return the indices that are computed from corresponding regions."""
    overlap, pixels = result.overlap, result.pixels
    dice = None if overlap.crisp else np.array([group.dice for group in result.groups])
    no_background = Both(*(np.zeros(len(overlap.side(side)), np.bool_) for side in SIDES))
    shares = shares_of(overlap, groups, no_background, dice)
    accuracy = min(float(shares.common.sum()) / pixels, 1.0)
    by_chance = float(shares.volumes.reference @ shares.volumes.prediction) / pixels**2
    # The sums of probabilities are rounded, so 1 − by_chance is exactly 0 only for label maps.
    if overlap.crisp:
        kappa = ratio(accuracy - by_chance, 1 - by_chance)
    else:
        kappa = adjusted(accuracy, by_chance)
    jaccard, counts = shares.jaccard, shares.counted
    weights = shares.volumes.reference[counts]
    return {
        "accuracy": accuracy,
        "kappa": kappa,
        "mean_iou": _mean_of(jaccard[counts]),
        "weighted_iou": clipped_ratio(float(weights @ jaccard[counts]), float(weights.sum())),
        "mean_dice": _mean_of(shares.dice[counts]),
        "mean_foreground_dice": nan if result.background is None else result.foreground_dice,
    }


def _mean_of(values: Floats) -> float:
    """Return the mean; NaN if there are no values."""
    return float(values.mean()) if values.size else nan
