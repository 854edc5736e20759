"""Compare the variability of sampled segmentations with that of raters.

The regions of all raters and samples are matched to common regions. The distance of two
segmentations is 1 − their mean IoU over the common regions that at least one of them has, without
the background. If neither has any region, their IoU is 1. IoU is fuzzy, Σ min / Σ max, which is the
usual IoU for label maps.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from probdice.errors import InputError
from probdice.files.inputs import Comparable
from probdice.method.overlap import Floats
from probdice.method.region_labels import Label
from probdice.raters.panel import Common, Panel, RaterMatch, Raters, panel_of
from probdice.text.formatting import decimal

__all__ = ["SetComparison", "compare_sets"]


@dataclass(frozen=True, eq=False, repr=False)
class SetComparison:
    """A comparison of a set of samples with a set of raters, the result of `compare_sets`.

    Attributes
    ----------
    energy_distance : float
        The squared generalised energy distance (Székely & Rizzo 2013, Kohl et al. 2018),
        2 E d(R, S) − E d(R, R′) − E d(S, S′), with d = 1 − IoU and means over all pairs, including
        each segmentation with itself. 0 if both sets are equal.
    matched_iou : float
        The mean IoU of the best one-to-one matching (Kohl et al. 2019). Both sets are repeated
        until they have the same size.
    iou : ndarray
        The mean IoU of every pair, raters × samples.
    rater_diversity : float
        The mean distance between raters, E d(R, R′).
    sample_diversity : float
        The mean distance between samples, E d(S, S′).
    volume_scores : dict
        The continuous ranked probability score of the volume of every common region, in pixels.
        The volumes of the samples are the forecast of each rater's volume r,
        E|S − r| − ½ E|S − S′|, averaged over the raters. The score is exact, without a Gaussian
        approximation.
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
        """All numbers as plain types.

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
        One or more segmentations each, label maps or probabilities.
    background : int or str, optional
        The label of the common region to exclude. The label of a common region is the one that
        most segmentations use. By default, no region is excluded.
    match, mask, workers
        As for `consensus`.

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
    named = {("rater", name): one for name, one in _named(raters).items()}
    named |= {("sample", name): one for name, one in _named(samples).items()}
    for kind in ("rater", "sample"):
        if not any(key[0] == kind for key in named):
            raise InputError(f"{kind}s: expected at least one segmentation, found none")
    panel = panel_of(
        {f"{kind} {name}": one for (kind, name), one in named.items()},
        match=match,
        mask=mask,
        workers=workers,
    )
    common = panel.common(panel.names)
    counted = _counted_regions(common, background)
    iou = _ious(panel, common, counted)
    first = sum(kind == "rater" for kind, _ in named)
    distance = 1 - iou
    between = float(distance[:first, first:].mean())
    within = float(distance[:first, :first].mean()), float(distance[first:, first:].mean())
    volumes = _volumes(panel, common, counted)
    return SetComparison(
        2 * between - within[0] - within[1],
        _best_matching(iou[:first, first:]),
        iou[:first, first:],
        *within,
        {common.labels[k]: _ranked(volumes[:first, c], volumes[first:, c])
         for c, k in enumerate(counted)},
        tuple(common.labels[k] for k in counted),
    )  # fmt: skip


def _named(given: Raters) -> dict[str, Comparable]:
    if isinstance(given, Mapping):
        return {str(name): one for name, one in given.items()}
    return {str(k): one for k, one in enumerate(given, start=1)}


def _counted_regions(common: Common, background: Label | None) -> list[int]:
    """The common regions without the background, in the order of their labels."""
    names = [str(label) for label in common.labels]
    if background is not None and str(background) not in names:
        raise InputError(
            f"background must be the label of a common region, found {background!r}; the labels "
            f"are {', '.join(sorted(names))}"
        )
    return [k for k in common.channels if background is None or names[k] != str(background)]


def _volumes(panel: Panel, common: Common, counted: list[int]) -> Floats:
    """The volumes, segmentation × counted common region."""
    volumes = np.zeros((len(panel.names), len(common.labels)))
    for i, name in enumerate(panel.names):
        regions, number_of = panel.regions(name), common.of(name)
        for key, volume in zip(regions.keys.tolist(), regions.volumes.tolist(), strict=True):
            if key in number_of:
                volumes[i, number_of[key]] += volume
    return volumes[:, counted]


def _ious(panel: Panel, common: Common, counted: list[int]) -> Floats:
    """The mean IoU of every pair."""
    names = panel.names
    volumes = np.zeros((len(names), len(common.labels)))
    volumes[:, counted] = _volumes(panel, common, counted)
    is_counted = np.zeros(len(common.labels), np.bool_)
    is_counted[counted] = True
    result = np.eye(len(names))
    for (first, second), comparison in panel.comparisons.items():
        i, j = names.index(first), names.index(second)
        overlap = comparison.overlap
        rows = _numbers(common.of(first), overlap.reference.keys.tolist())
        columns = _numbers(common.of(second), overlap.prediction.keys.tolist())
        meeting = overlap.meeting
        matched = rows[meeting.rows] == columns[meeting.columns]
        shared = np.zeros(len(common.labels))
        np.add.at(shared, rows[meeting.rows[matched]], meeting.savings[matched])
        union = volumes[i] + volumes[j] - shared
        present = is_counted & (volumes[i] + volumes[j] > 0)
        ious = shared[present] / union[present]
        result[i, j] = result[j, i] = float(ious.mean()) if ious.size else 1.0
    return result


def _numbers(number_of: Mapping[int, int], keys: list[int]) -> "np.ndarray[Any, Any]":
    return np.array([number_of.get(key, -1) for key in keys], np.int64)


def _best_matching(iou: Floats) -> float:
    """The mean IoU of the best matching of two sets, repeated until they have the same size.

    This equals optimal transport between the sets with equal weights within each set.
    """
    from scipy.optimize import linear_sum_assignment, linprog

    rows, columns = iou.shape
    if rows == columns:
        return float(iou[linear_sum_assignment(-iou)].mean())
    shares = np.concatenate([np.full(rows, 1 / rows), np.full(columns, 1 / columns)])
    sums = np.vstack(
        [np.kron(np.eye(rows), np.ones(columns)), np.kron(np.ones(rows), np.eye(columns))]
    )
    solved = linprog(-iou.reshape(-1), A_eq=sums, b_eq=shares, method="highs")
    moved = np.asarray(solved.x, np.float64).reshape(iou.shape)
    return float(np.sum(iou * moved))


def _ranked(raters: Floats, samples: Floats) -> float:
    """The continuous ranked probability score of samples as forecast, mean over raters."""
    error = np.abs(samples[:, None] - raters[None]).mean()
    spread = np.abs(samples[:, None] - samples[None]).mean()
    return float(error - spread / 2)
