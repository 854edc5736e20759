"""Compute the data of the figures, with one function per figure."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from probdice.comparison.comparing import compare
from probdice.comparison.result import Comparison
from probdice.data.segmentation import Segmentation
from probdice.errors import InputError, ProbdiceWarning
from probdice.method.region_labels import Label
from probdice.method.similarity import Absolute, Aitchison, as_similarity
from probdice.paper.study import spearman
from probdice.synthesis import DEGRADATIONS, blur, deform, noise, probabilities

Floats = NDArray[np.float64]
Rule = Literal["paper", "overlap", "labels"]

COEFFICIENTS = {"D1": "absolute", "D2": "aitchison"}  # the similarity of each coefficient
SUBSCRIPTS = {"D1": "₁", "D2": "₂"}
BLUR_PIXELS, DEFORMATION_PIXELS, NOISE = 0.8, 1.5, 0.25  # amounts at strength 1
STRENGTHS: dict[str, tuple[float, ...]] = {
    "blur": (0, 0.5, 1, 2, 3, 4, 6, 8),
    "deform": (0, 1, 2, 3, 4, 6, 8, 10),
    "noise": (0, 0.1, 0.2, 0.4, 0.8, 1.2, 1.6, 2),
    "grow": (0, 0.5, 1, 1.5, 2, 3, 4, 5),
    "shrink": (0, 0.5, 1, 1.5, 2, 3, 4, 5),
    "split": (0, 1, 2, 3, 4),
    "merge": (0, 1, 2, 3),
}  # strengths of each degradation at which the scores are measured


def compare_quietly(
    reference: Segmentation,
    prediction: Segmentation,
    similarity: str = "absolute",
    *,
    match: Rule = "labels",
    merge: Literal["none", "prediction", "both"] = "none",
) -> Comparison:
    """Compare without warnings. These experiments expect the warning about infinite distances."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbdiceWarning)
        return compare(reference, prediction, similarity=similarity, match=match, merge=merge)


def signed(value: float) -> str:
    """Format a number with two decimals and a typographic minus sign. NaN becomes a dash."""
    return "–" if np.isnan(value) else f"{value:.2f}".replace("-", "−")


@dataclass(frozen=True, eq=False)
class ValuePlane:
    """The values of two functions on the unit square.

    Both axes have the same `ticks`. The first row is at the bottom.
    """

    ticks: Floats
    first: Floats
    second: Floats


def dice_forms(points: int = 201) -> ValuePlane:
    """Compute S₁ = 2a / (1 + a − b) and S₂ = a + b for all pairs of binary segmentations.

    Columns are values of a, the fraction of pixels that are foreground in both segmentations. Rows
    are values of b, the fraction of pixels that are background in both. Both forms are NaN where
    a + b > 1, and S₁ is NaN where all pixels are background.
    """
    fractions = np.linspace(0, 1, points)
    a, b = fractions[None, :], fractions[:, None]
    possible = a + b <= 1 + 1e-12
    s1 = np.full((points, points), np.nan)
    np.divide(2 * a, 1 + a - b, out=s1, where=possible & (1 + a - b > 1e-12))
    return ValuePlane(fractions, s1, np.where(possible, np.minimum(a + b, 1), np.nan))


def two_regions(points: int = 201) -> ValuePlane:
    """Compute f₁ and f₂ of two regions. Rows are references, and columns are predictions."""
    probability = np.linspace(0, 1, points)
    vectors = np.stack([probability, 1 - probability])
    sides = vectors[:, :, None], vectors[:, None, :]
    return ValuePlane(probability, Absolute()(*sides), Aitchison()(*sides))


@dataclass(frozen=True)
class Version:
    """One column of the degradation table: its amounts of degradation and its total strength."""

    name: str
    strength: float
    blur: float = 0.0
    deform: float = 0.0
    noise: float = 0.0


VERSIONS = (
    Version("blur 0.8", 1, blur=1 * BLUR_PIXELS),
    Version("deform 3", 2, deform=2 * DEFORMATION_PIXELS),
    Version("noise 0.75", 3, noise=3 * NOISE),
    Version("blur 3.2", 4, blur=4 * BLUR_PIXELS),
    Version("deform 7.5", 5, deform=5 * DEFORMATION_PIXELS),
    Version("noise 1.5", 6, noise=6 * NOISE),
    # Each of the three kinds has strength 7/√3, so that the root of the sum of squares is 7.
    Version("all three", 7, blur=3.23, deform=6.06, noise=1.01),
)  # in order of increasing strength


def degrade(reference: Segmentation, version: Version, *, seed: int = 0) -> Segmentation:
    """Deform a segmentation, then blur it, then add noise."""
    deformed_reference = deform(reference, version.deform, seed=seed)
    return noise(blur(deformed_reference, version.blur), version.noise, seed=seed + 1)


@dataclass(frozen=True, eq=False)
class DegradationTable:
    """The images by name, their degraded versions, and the scores D₁ and D₂.

    Each table of scores has one row per image and one column per version.
    """

    references: Mapping[str, Segmentation]
    predictions: Mapping[str, tuple[Segmentation, ...]]
    scores: Mapping[str, Floats]

    @property
    def cells(self) -> list[tuple[str, Version, dict[str, float]]]:
        """The image, the version and the scores of every cell."""
        return [
            (image, version, {name: float(table[i, j]) for name, table in self.scores.items()})
            for i, image in enumerate(self.references)
            for j, version in enumerate(VERSIONS)
        ]


def degradation_table(references: Mapping[str, Segmentation], *, seed: int = 0) -> DegradationTable:
    """Create all degraded versions of every image, and score them with D₁ and D₂."""
    predictions = {
        name: tuple(
            degrade(reference, version, seed=seed + 100 * row + 10 * column)
            for column, version in enumerate(VERSIONS)
        )
        for row, (name, reference) in enumerate(references.items())
    }
    scores = {
        coefficient: np.array(
            [
                [
                    compare_quietly(references[name], version, similarity).score
                    for version in versions
                ]
                for name, versions in predictions.items()
            ]
        )
        for coefficient, similarity in COEFFICIENTS.items()
    }
    return DegradationTable(dict(references), predictions, scores)


@dataclass(frozen=True, eq=False)
class Sweep:
    """Scores at every strength, by coefficient, image and degradation."""

    strengths: Mapping[str, Sequence[float]]
    scores: Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]]

    def spearman(self, coefficient: str) -> Floats:
        """Return the rank correlations between score and strength.

        The result has one row per image and one column per degradation.
        """
        return np.array(
            [
                [spearman(self.strengths[kind], values) for kind, values in by_kind.items()]
                for by_kind in self.scores[coefficient].values()
            ]
        )


def sweep(
    references: Mapping[str, Segmentation],
    *,
    strengths: Mapping[str, Sequence[float]] = STRENGTHS,
    seed: int = 0,
) -> Sweep:
    """Degrade every image with every degradation at increasing strengths, and score the results.

    Regions are matched by label. After the degradations `split` and `merge`, they are matched by
    the paper's rule.
    """
    scores: dict[str, Any] = {name: {image: {} for image in references} for name in COEFFICIENTS}
    for kind, steps in strengths.items():
        if kind not in DEGRADATIONS:
            raise InputError(f"degradation must be one of {tuple(DEGRADATIONS)}, found {kind}")
        rule: Rule = "paper" if kind in ("split", "merge") else "labels"
        for image, reference in references.items():
            versions = [DEGRADATIONS[kind](reference, strength, seed=seed) for strength in steps]
            for name, similarity in COEFFICIENTS.items():
                scores[name][image][kind] = [
                    compare_quietly(reference, prediction, similarity, match=rule).score
                    for prediction in versions
                ]
    return Sweep(strengths, scores)


@dataclass(frozen=True, eq=False)
class PairWeight:
    """The weights of all pairs of regions, and the details of one pair.

    `auxiliaries` are the binary segmentations of the two regions (see `auxiliary`), and `f` is the
    similarity of these segmentations at every pixel.
    """

    reference: Segmentation
    prediction: Segmentation
    pair: tuple[Label, Label]
    auxiliaries: tuple[Floats, Floats]
    f: Floats
    weights: Floats
    matched: tuple[tuple[Label, Label], ...]

    @property
    def weight(self) -> float:
        """Weight of the pair, which is 1 minus the mean of f."""
        return 1 - float(self.f.mean())


def pair_weight(
    reference: Segmentation,
    prediction: Segmentation,
    pair: tuple[Label, Label] | None = None,
    *,
    similarity: str = "absolute",
) -> PairWeight:
    """Compute the weights of all pairs of regions, and the details of `pair`.

    By default, `pair` is the first matched pair.
    """
    result = compare_quietly(reference, prediction, similarity, match="paper")
    matched = tuple(
        (group.reference[0], group.prediction[0])
        for group in result.groups
        if group.reference and group.prediction
    )
    pair = matched[0] if pair is None else pair
    auxiliaries = auxiliary(reference, [pair[0]]), auxiliary(prediction, [pair[1]])
    f = as_similarity(similarity)(*auxiliaries)
    return PairWeight(reference, prediction, pair, auxiliaries, f, result.weights, matched)


@dataclass(frozen=True)
class MergeStep:
    """One merge, with the similarity and the Dice of its group before and after the merge."""

    region: Label
    into: Label
    similarity_before: float
    similarity_after: float
    dice_before: float
    dice_after: float


@dataclass(frozen=True, eq=False)
class MergedPair:
    """A comparison with its matched pairs (reference region first) and its merges."""

    reference: Segmentation
    prediction: Segmentation
    result: Comparison
    matched: tuple[tuple[Label, Label], ...]
    steps: tuple[MergeStep, ...]


def merged_pair(
    reference: Segmentation,
    prediction: Segmentation,
    *,
    similarity: str = "absolute",
) -> MergedPair:
    """Match regions with the paper's rule, merge unmatched regions, and measure each merge.

    The reference must not have more regions than the prediction.
    """
    result = compare_quietly(reference, prediction, similarity, match="paper", merge="prediction")
    if len(result.reference_labels) > len(result.prediction_labels):
        raise InputError("The reference has more regions than the prediction. Exchange the two.")
    merged_labels = {merge.region for merge in result.merges}
    members = {
        group.reference[0]: [label for label in group.prediction if label not in merged_labels]
        for group in result.groups
    }
    matched = tuple((target, labels[0]) for target, labels in members.items())
    steps = []
    for merge in result.merges:
        target = merge.into[0]
        target_values = auxiliary(reference, [target])
        before = auxiliary(prediction, members[target])
        members[target].append(merge.region)
        after = auxiliary(prediction, members[target])
        similarities = [float(result.similarity(p, target_values).mean()) for p in (before, after)]
        dice = [
            2 * np.minimum(p, target_values)[0].sum() / (p + target_values)[0].sum()
            for p in (before, after)
        ]
        steps.append(MergeStep(merge.region, target, *similarities, *map(float, dice)))
    return MergedPair(reference, prediction, result, matched, tuple(steps))


def auxiliary(segmentation: Segmentation, labels: Sequence[Label]) -> Floats:
    """Return the binary segmentation of the given regions.

    The first row is the sum of their probabilities, and the second row is the sum of all other
    probabilities.
    """
    values, regions = probabilities(segmentation)
    is_member = np.array([label in labels for label in regions])
    return np.stack(
        [values[mask].sum(axis=0, dtype=np.float64) for mask in (is_member, ~is_member)]
    )
