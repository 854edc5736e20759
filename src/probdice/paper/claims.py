"""The paper's claims, each checked by measuring it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probdice.errors import InputError
from probdice.paper.correlation import spearman
from probdice.paper.figures import DegradationTable, DiceForms, TwoRegions, score
from probdice.paper.pairs import Merging
from probdice.segmentation import Segmentation
from probdice.synthesis import DEGRADATIONS, permute, probabilities

__all__ = [
    "STRENGTHS",
    "Claim",
    "Sweep",
    "certainty_claim",
    "crisp_claim",
    "falling_claim",
    "forms_claim",
    "linear_claim",
    "merging_claim",
    "permutation_claim",
    "steep_claim",
    "sweep",
]

ROUNDING = 1e-12
FLOAT32_ROUNDING = 2e-6

STRENGTHS: dict[str, tuple[float, ...]] = {
    "blur": (0, 0.5, 1, 2, 3, 4, 6, 8),
    "deform": (0, 1, 2, 3, 4, 6, 8, 10),
    "noise": (0, 0.1, 0.2, 0.4, 0.8, 1.2, 1.6, 2),
    "grow": (0, 0.5, 1, 1.5, 2, 3, 4, 5),
    "shrink": (0, 0.5, 1, 1.5, 2, 3, 4, 5),
    "split": (0, 1, 2, 3, 4),
    "merge": (0, 1, 2, 3),
}
"""The strengths at which every degradation is measured."""


@dataclass(frozen=True)
class Claim:
    """A statement of the paper and what was measured.

    Attributes
    ----------
    name : str
        A short name.
    statement : str
        What the paper says.
    measured : str
        What was found.
    holds : bool
        Whether the measurement agrees without exception.
    exceptions : tuple of str
        Where it does not.
    """

    name: str
    statement: str
    measured: str
    holds: bool
    exceptions: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Sweep:
    """Scores of every image under every degradation at rising strength.

    Attributes
    ----------
    images, degradations : tuple of str
        Names of the rows and the columns.
    strengths : dict
        The strengths of each degradation.
    d1, d2 : dict
        By image and degradation, the scores at these strengths.
    """

    images: tuple[str, ...]
    degradations: tuple[str, ...]
    strengths: Mapping[str, tuple[float, ...]]
    d1: Mapping[tuple[str, str], tuple[float, ...]]
    d2: Mapping[tuple[str, str], tuple[float, ...]]

    def spearman(self, similarity: str) -> NDArray[np.float64]:
        """Rank correlation of score and strength; rows are images, columns degradations."""
        scores = self.d1 if similarity == "absolute" else self.d2
        return np.array(
            [
                [spearman(self.strengths[kind], scores[image, kind]) for kind in self.degradations]
                for image in self.images
            ]
        )


def sweep(
    references: Mapping[str, Segmentation],
    *,
    strengths: Mapping[str, Sequence[float]] = STRENGTHS,
    seed: int = 0,
) -> Sweep:
    """Degrade every image with every degradation at rising strength, and score the result.

    Labels are taken as corresponding, except where regions were split or merged: there the
    score is that after matching alone.

    Examples
    --------
    >>> from probdice.paper import sweep
    >>> from probdice.synthesis import stripes
    >>> result = sweep({"stripes": stripes((32, 32))}, strengths={"blur": (0, 1, 2, 4)})
    >>> result.spearman("absolute").tolist()
    [[-1.0]]
    """
    found: dict[str, dict[tuple[str, str], tuple[float, ...]]] = {"absolute": {}, "aitchison": {}}
    for image, reference in references.items():
        for kind, steps in strengths.items():
            if kind not in DEGRADATIONS:
                raise InputError(f"degradation must be one of {tuple(DEGRADATIONS)}, found {kind}")
            degrade = DEGRADATIONS[kind]
            spoilt = [degrade(reference, strength, seed=seed) for strength in steps]
            for similarity, scores in found.items():
                scores[image, kind] = tuple(
                    score(reference, prediction, similarity, match=kind in ("split", "merge")).score
                    for prediction in spoilt
                )
    return Sweep(
        tuple(references),
        tuple(strengths),
        {kind: tuple(steps) for kind, steps in strengths.items()},
        found["absolute"],
        found["aitchison"],
    )


def forms_claim(forms: DiceForms) -> Claim:
    """S₁ has no value where all is background, S₂ is 1 there."""
    s1, s2 = float(forms.s1[-1, 0]), float(forms.s2[-1, 0])
    beside = float(forms.s1[-2, 0]), float(forms.s1[-2, 1])
    return Claim(
        "The undefined corner",
        "Where both segmentations are all background the S₁ form is undefined and varies rapidly "
        "nearby; the S₂ form is 1 there.",
        f"At (0, 1): S₁ is {_number(s1)}, S₂ is {_number(s2)}. One step of "
        f"{forms.foreground[1]:g} away S₁ is {beside[0]:.3f} or {beside[1]:.3f}.",
        bool(np.isnan(s1)) and s2 == 1,
    )


def linear_claim(data: TwoRegions) -> Claim:
    """f₁ is linear on either side of equality."""
    bends = np.diff(data.f1, n=2, axis=1)
    rows, columns = np.indices(bends.shape)
    away = columns + 1 != rows  # the three points do not straddle equality
    largest = float(np.abs(bends[away]).max())
    return Claim(
        "f₁ is linear",
        "As the prediction's probability moves away from the reference's, f₁ varies linearly.",
        f"Largest second difference on either side of equality: {largest:.1g} "
        f"({away.sum()} places).",
        largest < ROUNDING,
    )


def steep_claim(data: TwoRegions) -> Claim:
    """f₂ falls faster than f₁, and fastest, next to equality."""
    points = len(data.probability)
    step = max(round(0.05 * (points - 1)), 1)
    inner = np.arange(2 * step + 1, points - 2 * step - 1)
    near, far, straight = [], [], []
    for sign in (-1, 1):
        near.append(1 - data.f2[inner, inner + sign * step])
        far.append(data.f2[inner, inner + sign * step] - data.f2[inner, inner + sign * 2 * step])
        straight.append(1 - data.f1[inner, inner + sign * step])
    fastest = np.array(near) > np.array(far)
    faster = np.array(near) > np.array(straight)
    width = float(data.probability[step])
    exceptions = tuple(
        f"reference {data.probability[inner[place]]:.3f}, prediction moving towards {'01'[side]}: "
        f"f₂ falls by {near[side][place]:.3f}, then by {far[side][place]:.3f}"
        for side, place in np.argwhere(~(fastest & faster))
    )
    return Claim(
        "f₂ falls faster near equality",
        "f₂ varies more rapidly than f₁ when the prediction is close to the reference.",
        f"Over the first {width:g} of probability f₂ falls by {np.min(near):.3f} to "
        f"{np.max(near):.3f}, f₁ by {np.max(straight):.3f}; over the next {width:g} f₂ falls by "
        f"{np.min(far):.3f} to {np.max(far):.3f}. The first fall of f₂ is the larger of its two "
        f"in {fastest.sum()} of {fastest.size} places, and larger than that of f₁ in "
        f"{faster.sum()}.",
        not exceptions,
        exceptions,
    )


def certainty_claim(data: TwoRegions) -> Claim:
    """f₂ is 0 where certainty is contradicted, and 1 where it is shared."""
    edges = np.concatenate([data.f2[0, 1:], data.f2[-1, :-1], data.f2[1:, 0], data.f2[:-1, -1]])
    shared = float(data.f2[0, 0]), float(data.f2[-1, -1])
    return Claim(
        "Contradicted certainty",
        "f₂ is 0 if one segmentation is certain and the other is not of the same mind. (The paper "
        "says: if either is certain; but then f₂ could not reduce to the crisp coefficient. We "
        "let certainty that is shared count as equal.)",
        f"Largest f₂ of {edges.size} pairs with one certain side that the other contradicts: "
        f"{edges.max():g}. Both certain of the same: {shared[0]:g} and {shared[1]:g}.",
        float(edges.max()) == 0 and shared == (1, 1),
    )


def crisp_claim(table: DegradationTable) -> Claim:
    """On crisp segmentations both scores are the fraction of agreeing pixels."""
    largest, pairs = 0.0, 0
    for name, reference in table.references.items():
        expected = _hardened(reference)
        for prediction in table.predictions[name]:
            found = _hardened(prediction)
            agreement = float((expected == found).mean())
            regions = len(reference.regions)
            sides = _one_hot(expected, regions), _one_hot(found, regions)
            scores = [
                score(sides[0], sides[1], similarity).score
                for similarity in ("absolute", "aitchison")
            ]
            largest = max(largest, *(abs(value - agreement) for value in scores))
            pairs += 1
    return Claim(
        "Both reduce to the crisp coefficient",
        "With all probabilities 0 or 1, D₁ and D₂ are the crisp multi-region coefficient: the "
        "fraction of pixels that carry the same label.",
        f"Largest difference of D₁ or D₂ from that fraction over {pairs} pairs of crisp "
        f"segmentations, given as one-hot probabilities: {largest:.1g}.",
        largest < ROUNDING,
    )


def falling_claim(measured: Sweep) -> Claim:
    """Both scores fall as each degradation grows."""
    exceptions, total = [], 0
    for similarity, scores, name in (
        ("absolute", measured.d1, "D₁"),
        ("aitchison", measured.d2, "D₂"),
    ):
        table = measured.spearman(similarity)
        for row, image in enumerate(measured.images):
            for column, kind in enumerate(measured.degradations):
                total += 1
                if table[row, column] <= -1 + ROUNDING:
                    continue
                values = scores[image, kind]
                rise = max(float(np.diff(values).max()), 0.0)
                manner = (
                    f"rises by at most {rise:.4f} from one strength to the next"
                    if rise > ROUNDING
                    else "never rises, but stands still"
                )
                exceptions.append(
                    f"{name}, {image}, {kind}: ρ = {signed(table[row, column])}; it {manner}"
                )
    return Claim(
        "Both fall as a degradation grows",
        "Both coefficients drop as the segmentation deviates further from the reference.",
        f"Spearman's ρ of score and strength is exactly −1 in {total - len(exceptions)} of {total} "
        f"sequences (image × degradation × coefficient).",
        not exceptions,
        tuple(exceptions),
    )


def permutation_claim(references: Mapping[str, Segmentation], *, seed: int = 0) -> Claim:
    """Exchanged labels change nothing once regions are matched."""
    lowest = min(
        score(reference, permute(reference, 10, seed=seed), similarity, match=True).score
        for reference in references.values()
        for similarity in ("absolute", "aitchison")
    )
    return Claim(
        "Unordered labels",
        "Matching finds which region is which, whatever their labels.",
        f"Lowest D₁ or D₂ of an image against itself with its labels shuffled, over "
        f"{len(references)} images: {lowest:.12g}.",
        lowest == 1,
    )


def merging_claim(measured: Mapping[str, Merging]) -> Claim:
    """Merging spare regions raises the Dice of the region they join."""
    steps = [(name, step) for name, data in measured.items() for step in data.steps]
    exceptions = tuple(
        f"{name}: {step.region} joins {step.into}, Dice {step.dice_before:.4f} → "
        f"{step.dice_after:.4f}, similarity {step.similarity_before:.4f} → "
        f"{step.similarity_after:.4f}"
        for name, step in steps
        if not step.dice_after > step.dice_before
    )
    gains = [step.dice_after - step.dice_before for _, step in steps]
    scores = [(data.result.matched_score, data.result.score) for data in measured.values()]
    never_lower = all(after >= before - FLOAT32_ROUNDING for before, after in scores)
    return Claim(
        "Merging raises the region's Dice",
        "Adding the parts of an over-segmented region together improves the coefficient with "
        "the region they were cut from.",
        f"{len(steps) - len(exceptions)} of {len(steps)} merges over {len(measured)} pairs raised "
        f"the Dice of their region, by {np.mean(gains):.4f} on average. "
        f"{'No' if never_lower else 'Some'} score fell by merging: "
        + ", ".join(f"{before:.4f} → {after:.4f}" for before, after in scores)
        + ".",
        not exceptions and never_lower,
        exceptions,
    )


def signed(value: float) -> str:
    """Two digits, with a minus sign that is one."""
    return f"{value:.2f}".replace("-", "−")


def _number(value: float) -> str:
    return "undefined" if np.isnan(value) else f"{value:g}"


def _hardened(segmentation: Segmentation) -> NDArray[np.int64]:
    return np.asarray(probabilities(segmentation)[0].argmax(axis=0))


def _one_hot(labels: NDArray[np.int64], regions: int) -> Segmentation:
    return Segmentation.from_probabilities(
        np.stack([labels == k for k in range(regions)]).astype(np.float32)
    )
