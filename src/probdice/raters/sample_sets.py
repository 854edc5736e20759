"""Compare the variability of sampled segmentations with the variability of raters.

The regions of all raters and samples are matched to common regions. The distance between two
segmentations is 1 − mean IoU. The mean includes the common regions that are present in at least one
of the two segmentations (see `RegionAgreement`), except the background. If there is no such region,
the mean IoU is 1. The IoU is the fuzzy IoU, Σ min / Σ max. For label maps, this is the usual IoU.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from probdice.errors import InputError
from probdice.files.inputs import Comparable, as_segmentation
from probdice.method.overlap import Floats
from probdice.method.region_labels import Label
from probdice.raters.panel import Panel, RaterMatch, Raters, by_name, panel_of
from probdice.raters.region_agreement import RegionAgreement, regions_of
from probdice.text.formatting import decimal

__all__ = ["SetComparison", "compare_sets"]


@dataclass(frozen=True, eq=False, repr=False)
class SetComparison:
    """A comparison of a set of samples with a set of raters, the result of `compare_sets`.

    Attributes
    ----------
    energy_distance : float
        The squared generalised energy distance (Székely & Rizzo 2013, Kohl et al. 2018),
        2 E d(R, S) − E d(R, R′) − E d(S, S′). R is a rater, S is a sample, and d is 1 − mean IoU. E
        is the mean over all pairs, including pairs of a segmentation with itself. The distance is 0
        if both sets are identical.
    matched_iou : float
        The mean IoU of the best one-to-one matching of raters and samples (Kohl et al. 2019). Both
        sets are repeated until they have the same size.
    iou : ndarray
        The mean IoU between every rater (rows) and every sample (columns).
    rater_diversity : float
        The mean distance between raters, E d(R, R′).
    sample_diversity : float
        The mean distance between samples, E d(S, S′).
    volume_scores : dict
        The continuous ranked probability score of the volume of each of the `regions`, in pixels.
        The volumes S of the samples are a forecast of each rater's volume r. The score is
        E|S − r| − ½ E|S − S′|, averaged over the raters. The score does not assume a normal
        distribution.
    regions : tuple of int or str
        The common regions without the background.

    Examples
    --------
    >>> import probdice
    >>> raters = [[0, 0, 1, 1], [0, 1, 1, 1]]
    >>> probdice.compare_sets(raters, raters, background=0).energy_distance
    0.0
    """

    energy_distance: float
    matched_iou: float
    iou: Floats
    rater_diversity: float
    sample_diversity: float
    volume_scores: dict[Label, float]
    regions: tuple[Label, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return all results as built-in Python types.

        Examples
        --------
        >>> import probdice
        >>> sets = probdice.compare_sets([[0, 0, 1], [0, 1, 1]], [[0, 0, 1]], background=0)
        >>> sets.to_dict()["iou"], sets.to_dict()["matched_iou"]
        ([[1.0], [0.5]], 0.75)
        """
        return {
            "energy_distance": self.energy_distance,
            "matched_iou": self.matched_iou,
            "iou": self.iou.tolist(),
            "rater_diversity": self.rater_diversity,
            "sample_diversity": self.sample_diversity,
            "volume_scores": [[label, score] for label, score in self.volume_scores.items()],
            "regions": list(self.regions),
        }

    def __repr__(self) -> str:
        raters, samples = self.iou.shape
        return (
            f"SetComparison of {raters} raters and {samples} samples: energy distance "
            f"{decimal(self.energy_distance)}, matched IoU {decimal(self.matched_iou)}\n"
            f"  diversity: raters {decimal(self.rater_diversity)}, samples "
            f"{decimal(self.sample_diversity)}"
        )


def compare_sets(
    raters: Raters,
    samples: Raters,
    *,
    background: Label | None = None,
    match: RaterMatch = "overlap",
    mask: Comparable | None = None,
    workers: int | None = None,
) -> SetComparison:
    """Compare samples of a stochastic method with several raters of the same image.

    Parameters
    ----------
    raters, samples : sequence or mapping of Segmentation, array_like, path or image
        One or more segmentations per set, as label maps or probabilities.
    background : int or str, optional
        The label or name of the background of all segmentations. The backgrounds are matched with
        each other and excluded. By default, no region is excluded.
    match, mask, workers
        The same as for `consensus`.

    Returns
    -------
    SetComparison

    Examples
    --------
    >>> import probdice
    >>> raters = [[0, 0, 1, 1], [0, 1, 1, 1]]
    >>> probdice.compare_sets(raters, [[0, 0, 1, 1], [0, 0, 0, 1]], background=0)
    SetComparison of 2 raters and 2 samples: energy distance 0.3333, matched IoU 0.6667
      diversity: raters 0.1667, samples 0.2500
    """
    sets = {"rater": by_name(raters), "sample": by_name(samples)}
    for kind, members in sets.items():
        if not members:
            raise InputError(f"{kind}s: expected at least one segmentation, found none")
    panel = panel_of(
        {
            f"{kind} {name}": as_segmentation(member, f"{kind} {name}")
            for kind, members in sets.items()
            for name, member in members.items()
        },
        match=match,
        mask=mask,
        workers=workers,
        background=background,
    )
    regions = _foreground_regions(panel)
    iou = _mean_ious(regions, len(panel.names))
    rater_count = len(sets["rater"])
    distance = 1 - iou
    between_distance = float(distance[:rater_count, rater_count:].mean())
    within_distances = (
        float(distance[:rater_count, :rater_count].mean()),
        float(distance[rater_count:, rater_count:].mean()),
    )
    return SetComparison(
        2 * between_distance - within_distances[0] - within_distances[1],
        _best_matching(iou[:rater_count, rater_count:]),
        iou[:rater_count, rater_count:],
        *within_distances,
        {
            region.label: _ranked_probability_score(
                region.volumes[:rater_count], region.volumes[rater_count:]
            )
            for region in regions
        },
        tuple(region.label for region in regions),
    )


def _foreground_regions(panel: Panel) -> list[RegionAgreement]:
    regions = list(regions_of(panel))
    background = panel.options.background
    if background is None:
        return regions
    channel = panel.background_channel(panel.common_regions)
    if channel is None:
        labels = ", ".join(sorted(str(region.label) for region in regions))
        raise InputError(
            f"background must be the label or name of a common region, found "
            f"{background.reference!r}; the labels are {labels}"
        )
    del regions[channel]
    return regions


def _mean_ious(regions: Sequence[RegionAgreement], count: int) -> Floats:
    """Return the mean IoU of every pair of segmentations, over regions present in either one."""
    dice = np.array([region.dice for region in regions]).reshape(-1, count, count)
    volumes = np.array([region.volumes for region in regions]).reshape(-1, count)
    sizes = volumes[:, :, None] + volumes[:, None]
    intersections = dice * sizes / 2
    counted = np.array([region.counted_pairs for region in regions], np.bool_)
    present = counted.reshape(-1, count, count)
    total = np.where(present, intersections / (sizes - intersections), 0).sum(axis=0)
    count_of_regions = present.sum(axis=0)
    ones = np.ones_like(total)  # for pairs without any region
    return np.asarray(np.divide(total, count_of_regions, out=ones, where=count_of_regions > 0))


def _best_matching(iou: Floats) -> float:
    """Return the mean IoU of the best matching of two sets.

    Both sets are repeated until they have the same size. The matching equals optimal transport
    between the sets, with equal weights within each set.
    """
    from scipy.optimize import linear_sum_assignment, linprog

    rows, columns = iou.shape
    if rows == columns:
        return float(iou[linear_sum_assignment(-iou)].mean())
    shares = np.concatenate([np.full(rows, 1 / rows), np.full(columns, 1 / columns)])
    sums = np.vstack(
        [np.kron(np.eye(rows), np.ones(columns)), np.kron(np.ones(rows), np.eye(columns))]
    )
    solution = linprog(-iou.reshape(-1), A_eq=sums, b_eq=shares, method="highs")
    transport = np.asarray(solution.x, np.float64).reshape(iou.shape)
    return float(np.sum(iou * transport))


def _ranked_probability_score(raters: Floats, samples: Floats) -> float:
    """Return the continuous ranked probability score of the samples, averaged over the raters."""
    error = np.abs(samples[:, None] - raters[None]).mean()
    spread = np.abs(samples[:, None] - samples[None]).mean()
    return float(error - spread / 2)
