"""The mean of raters and STAPLE: what each pixel is, and how each rater performs.

STAPLE is that of Warfield, Zou and Wells (IEEE TMI 2004) in its multi-label form: rater k says j
where the truth is c with the probability θ_k[j, c], and the truth is c with the probability π_c,
the share of c among all raters' pixels, which stays as it is. As in ITK's binary filter it starts
from the mean of the raters with an M step and ends when no θ changes by more than 10⁻⁷. A rater who
gives probabilities d counts as evidence for every decision, Σ_j d_j θ_k[j, c].
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from operator import add

import numpy as np

from probdice.engine.decode import encoded
from probdice.engine.several import Combinations, Decision, Several
from probdice.errors import Option, TooLargeError
from probdice.method.overlap import Floats
from probdice.raters.panel import Common

__all__ = ["Evidence", "Model", "Staple", "expected", "staple"]

STEP = 1e-7  # a change of θ that ends STAPLE, as in ITK
MOST_STEPS = 100_000  # on a table of combinations
MOST_PASSES = 200  # over the pixels of probabilities
BATCH = 2**21  # probabilities that are held at once
LARGEST = 2**26  # entries of all confusion matrices


@dataclass(frozen=True, eq=False)
class Model:
    """What turns decisions into probabilities of the common regions.

    Attributes
    ----------
    weights : ndarray
        How much each rater counts in the mean.
    regions : int
        How many common regions there are.
    prior : ndarray or None
        π, of STAPLE; None for the mean.
    theta : ndarray or None
        θ of every rater: rater × said × true; None for the mean.
    """

    weights: Floats
    regions: int
    prior: Floats | None = None
    theta: Floats | None = None

    def everywhere(self, decisions: Sequence[Decision]) -> Floats:
        """The probability of every common region at many pixels, regions first.

        Where all decisions are labels, few combinations occur, and each is looked at once.
        """
        if any(decision.ndim == 2 for decision in decisions):
            return self(decisions, decisions[0].shape[-1])
        if (self.regions + 1) ** len(decisions) >= 2**63:
            return self(decisions, decisions[0].size)
        keys = np.zeros(decisions[0].size, np.uint64)
        for decision in decisions:
            keys *= np.uint64(self.regions + 1)
            keys += (decision + 1).astype(np.uint64)
        codes, combined = encoded(keys, np.empty(keys.size, np.int32))
        distinct: list[Decision] = []
        for _ in decisions:
            combined, said = np.divmod(combined, np.uint64(self.regions + 1))
            distinct.insert(0, said.astype(np.int64) - 1)
        return np.asarray(self(distinct, distinct[0].size)[:, codes])

    def __call__(self, decisions: Sequence[Decision], size: int) -> Floats:
        """The same for each decision."""
        if self.theta is None or self.prior is None:
            return self._mean(decisions, size)
        result = np.repeat(self.prior[:, None], size, axis=1)
        for decision, theta in zip(decisions, self.theta, strict=True):
            result *= likelihood(decision, theta)
            result /= result.sum(axis=0)  # at once: many small factors would underflow
        return result

    def _mean(self, decisions: Sequence[Decision], size: int) -> Floats:
        total = np.zeros((self.regions, size))
        everywhere = np.arange(size)
        for decision, weight in zip(decisions, self.weights, strict=True):
            if decision.ndim == 2:
                total += weight * decision
            else:
                said = decision >= 0
                total[decision[said], everywhere[said]] += weight
        # Where nobody says anything, outside the mask, nothing is known.
        sums = total.sum(axis=0)
        unknown = np.full_like(total, 1 / self.regions)
        return np.asarray(np.divide(total, sums, out=unknown, where=sums > 0))


def likelihood(decision: Decision, theta: Floats) -> Floats:
    """Of what a rater says, for every true region; 1 where nothing is said."""
    if decision.ndim == 2:
        return np.asarray(theta.T @ decision)
    rows = np.vstack([theta, np.ones(theta.shape[1])])  # the last one is where −1 leads
    return rows[decision].T


@dataclass(frozen=True, eq=False)
class Evidence:
    """All decisions of the raters, in a form that can be gone through again and again.

    Label maps are a table of combinations with how often each occurs, so that an iteration visits
    no pixel; probabilities are visited where they are.
    """

    several: Several
    common: Common

    @cached_property
    def combinations(self) -> Combinations | None:
        """How often each combination of regions occurs; None where a rater has probabilities."""
        return self.several.combinations(self.common.numbers) if self.several.crisp else None

    def total(self, work: Callable[[list[Decision], Floats], Floats]) -> Floats:
        """The sum of some work on all decisions, given how many pixels each stands for."""
        classes = len(self.common.labels)
        if self.combinations is None:
            return self.several.total(self.common.numbers, classes, partial(_each_once, work))
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


def _each_once(
    work: Callable[[list[Decision], Floats], Floats], decisions: list[Decision]
) -> Floats:
    """The work on decisions that stand for one pixel each."""
    return work(decisions, np.ones(decisions[0].shape[-1]))


@dataclass(frozen=True, eq=False)
class Staple:
    """What STAPLE came to: a model, the expected pixels of what is said by what is true."""

    model: Model
    joint: Floats
    iterations: int
    settled: bool


def staple(evidence: Evidence, mean: Model) -> Staple:
    """Raise the likelihood of all decisions until nothing changes."""

    def shares(decisions: list[Decision], counts: Floats) -> Floats:
        return np.stack([_spread(decision, counts, mean.regions) for decision in decisions])

    joint = expected(evidence, mean)
    said = evidence.total(shares).sum(axis=0)
    prior, model = said / said.sum(), mean
    most = MOST_STEPS if evidence.combinations is not None else MOST_PASSES
    for iteration in range(most):
        theta = _shares_of_true(joint)
        settled = model.theta is not None and bool(np.all(np.abs(theta - model.theta) <= STEP))
        model = replace(mean, prior=prior, theta=theta)
        if settled:
            return Staple(model, joint, iteration, True)
        joint = expected(evidence, model)
    return Staple(model, joint, most, False)


def expected(evidence: Evidence, model: Model) -> Floats:
    """The expected number of pixels by rater, by what is said, and by what is true."""
    raters, regions = len(evidence.common.names), model.regions
    if raters * regions**2 > LARGEST:
        raise TooLargeError(
            f"{regions:,} common regions make confusion matrices of "
            f"{raters * regions**2 * 8 / 2**30:.1f} GiB, more than is tried; use ",
            Option("method", "mean"),
            ", and leave the performance of raters out",
        )
    return evidence.total(partial(_joint, model))


def _spread(decision: Decision, counts: Floats, classes: int) -> Floats:
    """How many pixels a rater gives to every common region."""
    if decision.ndim == 2:
        return np.asarray(decision @ counts)
    said = decision >= 0
    return np.asarray(
        np.bincount(decision[said], weights=counts[said], minlength=classes), np.float64
    )


def _joint(model: Model, decisions: list[Decision], counts: Floats) -> Floats:
    """What some decisions add to the expected number of pixels."""
    regions = model.regions
    truth = model(decisions, counts.size) * counts
    joint = np.empty((len(decisions), regions, regions))
    for k, decision in enumerate(decisions):
        if decision.ndim == 1:
            said = decision >= 0
            for c in range(regions):
                joint[k, :, c] = np.bincount(
                    decision[said], weights=truth[c, said], minlength=regions
                )
        elif model.theta is None:
            joint[k] = decision @ truth.T
        else:  # which of its decisions a rater meant is known by θ as well
            theta = model.theta[k]
            odds = likelihood(decision, theta)
            share = np.divide(truth, odds, out=np.zeros_like(truth), where=odds > 0)
            joint[k] = theta * (decision @ share.T)
    return joint


def _shares_of_true(joint: Floats) -> Floats:
    """P(said | true): every column divided by its sum."""
    sums = joint.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(joint, sums, out=np.zeros_like(joint), where=sums > 0))
