"""Combine raters with a consensus method, and estimate the performance of each rater.

STAPLE (Warfield, Zou and Wells, IEEE TMI 2004) is implemented in its multi-label form. θ_k[j, c] is
the probability that rater k marks region j where the true region is c. The prior probability π_c is
the share of region c in the pixels of all raters, and stays fixed. As in ITK's binary filter, the
algorithm starts from the mean of the raters with an M step and ends when no θ changes by more than
10⁻⁷. A rater with probabilities d has the likelihood Σ_j d_j θ_k[j, c].
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from operator import add

import numpy as np

from probdice.engine.decode import encoded
from probdice.engine.several import Combinations, Decision, SegmentationSet
from probdice.errors import Option, TooLargeError
from probdice.method.overlap import Floats
from probdice.options import Method
from probdice.raters.panel import Common

__all__ = ["FUSIONS", "Evidence", "Fusion", "Model", "expected_counts", "staple"]

STEP = 1e-7  # largest change of θ at convergence, as in ITK
MAX_TABLE_ITERATIONS = 100_000  # over a table of combinations
MAX_PIXEL_ITERATIONS = 200
BATCH = 2**21  # number of probabilities in memory at once
MAX_CONFUSION_ENTRIES = 2**26  # of all confusion matrices together


@dataclass(frozen=True, eq=False)
class Model:
    """A model that computes the probabilities of the common regions from the raters' decisions.

    Attributes
    ----------
    weights : ndarray
        The weight of each rater in the mean.
    regions : int
        The number of common regions.
    prior : ndarray or None
        The prior probabilities π of STAPLE; None for the mean.
    theta : ndarray or None
        The probabilities θ of STAPLE, rater × marked region × true region; None for the mean.
    """

    weights: Floats
    regions: int
    prior: Floats | None = None
    theta: Floats | None = None

    def probabilities(self, decisions: Sequence[Decision]) -> Floats:
        """Return the probability of every common region at many pixels, with the region axis first.

        If all decisions are labels and their combinations can be encoded in 63 bits, the
        probabilities of each combination are computed only once.
        """
        if any(decision.ndim == 2 for decision in decisions):
            return self(decisions, decisions[0].shape[-1])
        if (self.regions + 1) ** len(decisions) >= 2**63:
            return self(decisions, decisions[0].size)
        keys = np.zeros(decisions[0].size, np.uint64)
        for decision in decisions:
            keys *= np.uint64(self.regions + 1)
            keys += (decision + 1).astype(np.uint64)
        codes, distinct_keys = encoded(keys, np.empty(keys.size, np.int32))
        distinct_decisions: list[Decision] = []
        for _ in decisions:
            distinct_keys, code = np.divmod(distinct_keys, np.uint64(self.regions + 1))
            distinct_decisions.insert(0, code.astype(np.int64) - 1)
        return np.asarray(self(distinct_decisions, distinct_decisions[0].size)[:, codes])

    def __call__(self, decisions: Sequence[Decision], size: int) -> Floats:
        """Return the probability of every common region, for `size` pixels or combinations."""
        if self.theta is None or self.prior is None:
            return self._mean(decisions, size)
        result = np.repeat(self.prior[:, None], size, axis=1)
        possible = np.ones(size, np.bool_)
        for decision, theta in zip(decisions, self.theta, strict=True):
            result *= likelihood(decision, theta)
            sums = result.sum(axis=0)  # after each factor, to avoid underflow
            possible &= sums > 0
            np.divide(result, sums, out=result, where=possible)
        # Outside the mask, raters may have decisions with a probability of 0 under θ.
        result[:, ~possible] = 1 / self.regions
        return result

    def _mean(self, decisions: Sequence[Decision], size: int) -> Floats:
        total = np.zeros((self.regions, size))
        pixels = np.arange(size)
        for decision, weight in zip(decisions, self.weights, strict=True):
            if decision.ndim == 2:
                total += weight * decision
            else:
                decided = decision >= 0
                total[decision[decided], pixels[decided]] += weight
        # Without decisions (outside the mask), all regions are equally probable.
        sums = total.sum(axis=0)
        uniform = np.full_like(total, 1 / self.regions)
        return np.asarray(np.divide(total, sums, out=uniform, where=sums > 0))


def likelihood(decision: Decision, theta: Floats) -> Floats:
    """Return the likelihood of a decision for every true region, or 1 if there is no decision."""
    if decision.ndim == 2:
        return np.asarray(theta.T @ decision)
    rows = np.vstack(
        [theta, np.ones(theta.shape[1])]
    )  # index −1 (no decision) selects the last row
    return rows[decision].T


@dataclass(frozen=True, eq=False)
class Evidence:
    """The decisions of all raters, for repeated use.

    If all raters are label maps, they are reduced to a table of combinations with their counts, and
    an iteration reads no pixels. Otherwise, all raters are read again in every iteration.
    """

    segmentations: SegmentationSet
    common: Common

    @cached_property
    def combinations(self) -> Combinations | None:
        """The number of pixels per combination of regions; None if a rater has probabilities."""
        return (
            self.segmentations.combinations(self.common.numbers)
            if self.segmentations.crisp
            else None
        )

    def total(self, work: Callable[[list[Decision], Floats], Floats]) -> Floats:
        """Return the sum of ``work(decisions, counts)`` over all decisions and their counts."""
        classes = len(self.common.labels)
        if self.combinations is None:
            return self.segmentations.total(
                self.common.numbers, classes, partial(_one_pixel_each, work)
            )
        table, step = self.combinations, max(1, BATCH // classes)
        return reduce(
            add,
            (
                work(
                    list(table.classes[start : start + step].T),
                    table.counts[start : start + step].astype(np.float64),
                )
                for start in range(0, len(table.counts), step)
            ),
        )


def _one_pixel_each(
    work: Callable[[list[Decision], Floats], Floats], decisions: list[Decision]
) -> Floats:
    """Call `work` with a count of 1 for every pixel."""
    return work(decisions, np.ones(decisions[0].shape[-1]))


@dataclass(frozen=True, eq=False)
class Fusion:
    """The result of a consensus method.

    Attributes
    ----------
    model : Model
        The model that computes the consensus.
    joint : ndarray or None
        The result of `expected_counts` for this model, within the tolerance of convergence; None if
        it was not computed.
    iterations : int
        The number of iterations; 0 for methods without iterations.
    converged : bool
        Whether the iterations converged.
    """

    model: Model
    joint: Floats | None = None
    iterations: int = 0
    converged: bool = True


def average(evidence: Evidence, mean: Model) -> Fusion:
    """Return a fusion whose model is `mean`. No decision is read."""
    return Fusion(mean)


def staple(evidence: Evidence, mean: Model) -> Fusion:
    """Run STAPLE until it converges or reaches the maximum number of iterations."""
    joint = expected_counts(evidence, mean)
    totals = evidence.total(partial(_pixels_per_region, mean.regions)).sum(axis=0)
    prior, model = totals / totals.sum(), mean
    iteration_limit = (
        MAX_TABLE_ITERATIONS if evidence.combinations is not None else MAX_PIXEL_ITERATIONS
    )
    for iteration in range(iteration_limit):
        theta = _confusion_matrices(joint)
        converged = model.theta is not None and bool(np.all(np.abs(theta - model.theta) <= STEP))
        model = replace(mean, prior=prior, theta=theta)
        if converged:
            return Fusion(model, joint, iteration, True)
        joint = expected_counts(evidence, model)
    return Fusion(model, joint, iteration_limit, False)


# Each function receives the decisions of the raters and their weighted mean.
FUSIONS: dict[Method, Callable[[Evidence, Model], Fusion]] = {"mean": average, "staple": staple}


def expected_counts(evidence: Evidence, model: Model) -> Floats:
    """Return the expected number of pixels, rater × marked region × true region."""
    raters, regions = len(evidence.common.names), model.regions
    if raters * regions**2 > MAX_CONFUSION_ENTRIES:
        raise TooLargeError(
            f"the confusion matrices of {regions:,} common regions require "
            f"{raters * regions**2 * 8 / 2**30:.1f} GiB, more than the limit of "
            f"{MAX_CONFUSION_ENTRIES * 8 / 2**30:.1f} GiB. If only the consensus is needed, use ",
            Option("method", "mean", command='method="mean" in Python'),
            ", and read only the segmentation of the result.",
        )
    return evidence.total(partial(_joint, model))


def _pixels_per_region(classes: int, decisions: list[Decision], counts: Floats) -> Floats:
    """Return the number of pixels of each common region that each rater marks."""
    return np.stack([_marked_pixels(decision, counts, classes) for decision in decisions])


def _marked_pixels(decision: Decision, counts: Floats, classes: int) -> Floats:
    """Return the number of pixels of each common region that one rater marks."""
    if decision.ndim == 2:
        return np.asarray(decision @ counts)
    decided = decision >= 0
    return np.asarray(
        np.bincount(decision[decided], weights=counts[decided], minlength=classes), np.float64
    )


def _joint(model: Model, decisions: list[Decision], counts: Floats) -> Floats:
    """Return the contribution of the given decisions to `expected_counts`."""
    regions = model.regions
    truth = model(decisions, counts.size) * counts
    joint = np.empty((len(decisions), regions, regions))
    for k, decision in enumerate(decisions):
        if decision.ndim == 1:
            decided = decision >= 0
            for c in range(regions):
                joint[k, :, c] = np.bincount(
                    decision[decided], weights=truth[c, decided], minlength=regions
                )
        elif model.theta is None:
            joint[k] = decision @ truth.T
        else:  # soft decisions are weighted by θ
            theta = model.theta[k]
            odds = likelihood(decision, theta)
            share = np.divide(truth, odds, out=np.zeros_like(truth), where=odds > 0)
            joint[k] = theta * (decision @ share.T)
    return joint


def _confusion_matrices(joint: Floats) -> Floats:
    """Divide every column by its sum, which gives P(marked region | true region)."""
    sums = joint.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(joint, sums, out=np.zeros_like(joint), where=sums > 0))
