"""Sets of samples against sets of raters: do the samples differ as the raters do?

Regions are the common ones of all raters and samples together. The distance of two segmentations
is 1 − their mean IoU: over the common regions that either of them has, but for the background; a
region that neither has is left out, and where neither has any, the two agree: their IoU is 1. IoU
is fuzzy, Σ min / Σ max, and of label maps the usual one.
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
    """How a set of samples compares with a set of raters. `probdice.compare_sets` makes one.

    Attributes
    ----------
    energy_distance : float
        The squared generalised energy distance (Székely & Rizzo 2013, Kohl et al. 2018),
        2 E d(R, S) − E d(R, R′) − E d(S, S′), with d = 1 − IoU and means over all pairs, those of
        one with itself included. 0 where both sets are the same.
    matched_iou : float
        The mean IoU of the best one-to-one matching (Kohl et al. 2019), each set repeated until
        both are equally large.
    iou : ndarray
        Raters × samples.
    rater_diversity : float
        E d(R, R′).
    sample_diversity : float
        E d(S, S′).
    volume_scores : dict
        For every common region the continuous ranked probability score of its volume, in pixels:
        the samples' volumes as a forecast of each rater's, E|S − r| − ½ E|S − S′|, averaged over
        the raters. Exact, without a Gaussian in place of either set.
    regions : tuple of int or str
        The common regions, the background left out.

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
        """Everything as plain types.

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
        The common region that is left out, by its label: the one that most of the segmentations
        give it. None by default: nothing is.
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
            raise InputError(f"{kind}s must be at least one segmentation, found none")
    panel = panel_of(
        {f"{kind} {name}": one for (kind, name), one in named.items()},
        match=match,
        mask=mask,
        workers=workers,
    )
    common = panel.common(panel.names)
    kept = _kept(common, background)
    iou = _ious(panel, common, kept)
    first = sum(kind == "rater" for kind, _ in named)
    apart = 1 - iou
    between = float(apart[:first, first:].mean())
    among = float(apart[:first, :first].mean()), float(apart[first:, first:].mean())
    volumes = _volumes(panel, common, kept)
    return SetComparison(
        2 * between - among[0] - among[1],
        _best_matching(iou[:first, first:]),
        iou[:first, first:],
        *among,
        {common.labels[k]: _ranked(volumes[:first, c], volumes[first:, c])
         for c, k in enumerate(kept)},
        tuple(common.labels[k] for k in kept),
    )  # fmt: skip


def _named(given: Raters) -> dict[str, Comparable]:
    if isinstance(given, Mapping):
        return {str(name): one for name, one in given.items()}
    return {str(k): one for k, one in enumerate(given, start=1)}


def _kept(common: Common, background: Label | None) -> list[int]:
    """The common regions that count, in the order of their labels."""
    names = [str(label) for label in common.labels]
    if background is not None and str(background) not in names:
        raise InputError(
            f"background must be the label of a common region, found {background!r}; there are "
            f"{', '.join(sorted(names))}"
        )
    return [k for k in common.channels if background is None or names[k] != str(background)]


def _volumes(panel: Panel, common: Common, kept: list[int]) -> Floats:
    """The volume of every common region that counts, by segmentation."""
    volumes = np.zeros((len(panel.names), len(common.labels)))
    for i, name in enumerate(panel.names):
        regions, number_of = panel.regions(name), common.of(name)
        for key, volume in zip(regions.keys.tolist(), regions.volumes.tolist(), strict=True):
            if key in number_of:
                volumes[i, number_of[key]] += volume
    return volumes[:, kept]


def _ious(panel: Panel, common: Common, kept: list[int]) -> Floats:
    """The mean IoU of every pair."""
    names = panel.names
    volumes = np.zeros((len(names), len(common.labels)))
    volumes[:, kept] = _volumes(panel, common, kept)
    counted = np.zeros(len(common.labels), np.bool_)
    counted[kept] = True
    result = np.eye(len(names))
    for (first, second), comparison in panel.comparisons.items():
        i, j = names.index(first), names.index(second)
        overlap = comparison.overlap
        rows = _numbers(common.of(first), overlap.reference.keys.tolist())
        columns = _numbers(common.of(second), overlap.prediction.keys.tolist())
        meeting = overlap.meeting
        together = rows[meeting.rows] == columns[meeting.columns]
        shared = np.zeros(len(common.labels))
        np.add.at(shared, rows[meeting.rows[together]], meeting.savings[together])
        union = volumes[i] + volumes[j] - shared
        present = counted & (volumes[i] + volumes[j] > 0)
        ious = shared[present] / union[present]
        result[i, j] = result[j, i] = float(ious.mean()) if ious.size else 1.0
    return result


def _numbers(number_of: Mapping[int, int], keys: list[int]) -> "np.ndarray[Any, Any]":
    return np.array([number_of.get(key, -1) for key in keys], np.int64)


def _best_matching(iou: Floats) -> float:
    """The mean IoU of the best matching of two sets, repeated until they are equally large.

    That is the optimal transport between them, each one of a set having an equal share.
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
    """The continuous ranked probability score of samples as a forecast, over all raters."""
    far = np.abs(samples[:, None] - raters[None]).mean()
    spread = np.abs(samples[:, None] - samples[None]).mean()
    return float(far - spread / 2)
