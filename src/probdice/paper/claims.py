"""Measurements that check each claim of the paper."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from probdice.data.segmentation import Segmentation
from probdice.paper import figures
from probdice.synthesis import permute, probabilities

ROUNDING = 1e-12
FLOAT32_ROUNDING = 2e-6


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, its measurement, whether it holds, and the exceptions."""

    name: str
    statement: str
    measured: str
    holds: bool
    exceptions: tuple[str, ...] = ()


def forms_claim(forms: figures.ValuePlane) -> Claim:
    """Check that S₁ is undefined and S₂ is 1 if all pixels are background."""
    s1, s2 = float(forms.first[-1, 0]), float(forms.second[-1, 0])
    return Claim(
        "The undefined corner",
        "If both segmentations contain only background, the S₁ form is undefined and the S₂ form "
        "is 1. Near this case, S₁ varies rapidly.",
        f"At (0, 1): S₁ is {'undefined' if np.isnan(s1) else f'{s1:g}'}, S₂ is {s2:g}. One step "
        f"({forms.ticks[1]:g}) away, S₁ is {forms.first[-2, 0]:.3f} or {forms.first[-2, 1]:.3f}.",
        bool(np.isnan(s1)) and s2 == 1,
    )


def linear_claim(data: figures.ValuePlane) -> Claim:
    """Check that f₁ is linear on either side of equality."""
    bends = np.diff(data.first, n=2, axis=1)
    rows, columns = np.indices(bends.shape)
    one_sided = columns + 1 != rows  # where all three points lie on one side of equality
    largest = float(np.abs(bends[one_sided]).max())
    return Claim(
        "f₁ is linear",
        "f₁ varies linearly as the prediction's probability moves away from the reference's "
        "probability.",
        f"Largest second difference on either side of equality: {largest:.1g} "
        f"({one_sided.sum()} points).",
        largest < ROUNDING,
    )


def steep_claim(data: figures.ValuePlane) -> Claim:
    """Check that f₂ falls fastest near equality, and faster there than f₁."""
    points = len(data.ticks)
    step = max(round(0.05 * (points - 1)), 1)
    inner = np.arange(2 * step + 1, points - 2 * step - 1)
    one_step, two_steps = (np.stack([inner - k * step, inner + k * step]) for k in (1, 2))
    first_drop = 1 - data.second[inner, one_step]  # the first decrease, towards 0 and towards 1
    second_drop = data.second[inner, one_step] - data.second[inner, two_steps]
    f1_drop = 1 - data.first[inner, one_step]
    width = float(data.ticks[step])
    exceptions = tuple(
        f"reference {data.ticks[inner[index]]:.3f}, prediction moving towards {side}: "
        f"f₂ falls by {first_drop[side, index]:.3f}, then by {second_drop[side, index]:.3f}"
        for side, index in np.argwhere((first_drop <= second_drop) | (first_drop <= f1_drop))
    )
    return Claim(
        "f₂ falls faster near equality",
        "f₂ varies more rapidly than f₁ when the prediction is close to the reference.",
        f"If the prediction moves away from the reference by {width:g}, f₂ falls by "
        f"{first_drop.min():.3f} to {first_drop.max():.3f}, and f₁ falls by {f1_drop.max():.3f}. "
        f"If the prediction moves by another {width:g}, f₂ falls by a further "
        f"{second_drop.min():.3f} to {second_drop.max():.3f}. The first decrease of f₂ is "
        f"larger than the second at {(first_drop > second_drop).sum()} of {first_drop.size} "
        f"points, and larger than the decrease of f₁ at {(first_drop > f1_drop).sum()} points.",
        not exceptions,
        exceptions,
    )


def certainty_claim(data: figures.ValuePlane) -> Claim:
    """Check f₂ if one side is certain: 0 if the other side differs, and 1 if it is equal."""
    edges = np.concatenate(
        [data.second[0, 1:], data.second[-1, :-1], data.second[1:, 0], data.second[:-1, -1]]
    )
    corners = float(data.second[0, 0]), float(data.second[-1, -1])
    return Claim(
        "Contradicted certainty",
        "f₂ is 0 if one segmentation is certain and the other is not certain of the same region. "
        "(The paper states that f₂ is 0 if either segmentation is certain, but then f₂ would not "
        "reduce to the crisp coefficient. In probdice, two equal certain vectors have f₂ = 1.)",
        f"Largest f₂ of {edges.size} pairs in which one side is certain and the other differs: "
        f"{edges.max():g}. If both sides are certain of the same region, f₂ is {corners[1]:g} for "
        f"region 1 and {corners[0]:g} for region 2.",
        float(edges.max()) == 0 and corners == (1, 1),
    )


def crisp_claim(table: figures.DegradationTable) -> Claim:
    """Check that both scores of crisp segmentations equal the fraction of agreeing pixels."""
    differences = []
    for name, reference in table.references.items():
        regions = np.arange(len(reference.regions))[:, None, None]
        reference_labels = probabilities(reference)[0].argmax(axis=0)
        for prediction in table.predictions[name]:
            predicted_labels = probabilities(prediction)[0].argmax(axis=0)
            sides = [
                Segmentation.from_probabilities((labels == regions).astype(np.float32))
                for labels in (reference_labels, predicted_labels)
            ]
            agreement = float((reference_labels == predicted_labels).mean())
            for similarity in figures.COEFFICIENTS.values():
                score = figures.compare_quietly(sides[0], sides[1], similarity).score
                differences.append(abs(score - agreement))
    return Claim(
        "Both reduce to the crisp coefficient",
        "If all probabilities are 0 or 1, D₁ and D₂ equal the crisp multi-region coefficient, the "
        "fraction of pixels with the same label.",
        f"Largest difference of D₁ or D₂ from this fraction over {len(differences) // 2} pairs of "
        f"crisp segmentations, given as one-hot probabilities: {max(differences):.1g}.",
        max(differences) < ROUNDING,
    )


def falling_claim(data: figures.Sweep) -> Claim:
    """Check that both scores fall as the strength of each degradation increases."""
    exceptions, total = [], 0
    for coefficient, images in data.scores.items():
        correlations = data.spearman(coefficient).ravel()
        total += correlations.size
        sequences = [
            (image, kind, scores) for image in images for kind, scores in images[image].items()
        ]
        for (image, kind, scores), correlation in zip(sequences, correlations, strict=True):
            if correlation <= -1 + ROUNDING:
                continue
            rise = float(np.diff(scores).max())
            manner = (
                f"rises by up to {rise:.4f} between two strengths"
                if rise > ROUNDING
                else "never rises, but is constant at some steps"
            )
            name, rho = f"D{figures.SUBSCRIPTS[coefficient]}", figures.signed(correlation)
            exceptions.append(f"{name}, {image}, {kind}: ρ = {rho}; the score {manner}")
    return Claim(
        "Both fall with increasing degradation",
        "Both coefficients fall as the segmentation deviates further from the reference.",
        f"Spearman's ρ between score and strength is exactly −1 in {total - len(exceptions)} of "
        f"{total} sequences (image × degradation × coefficient).",
        not exceptions,
        tuple(exceptions),
    )


def permutation_claim(references: Mapping[str, Segmentation], *, seed: int = 0) -> Claim:
    """Check that matching restores the score of 1 after labels are exchanged."""
    lowest = min(
        figures.compare_quietly(
            reference, permute(reference, 10, seed=seed), similarity, match="paper"
        ).score
        for reference in references.values()
        for similarity in figures.COEFFICIENTS.values()
    )
    return Claim(
        "Unordered labels",
        "Matching finds the corresponding regions, whatever their labels are.",
        f"Lowest D₁ or D₂ between an image and the same image with shuffled labels, over "
        f"{len(references)} images: {lowest:.12g}.",
        lowest == 1,
    )


def merging_claim(pairs: Mapping[str, figures.MergedPair]) -> Claim:
    """Check that merging raises the Dice of the target region, and that no score falls."""
    steps = [(name, step) for name, pair in pairs.items() for step in pair.steps]
    exceptions = tuple(
        f"{name}: {step.region} is merged into {step.into}, Dice {step.dice_before:.4f} → "
        f"{step.dice_after:.4f}, similarity {step.similarity_before:.4f} → "
        f"{step.similarity_after:.4f}"
        for name, step in steps
        if not step.dice_after > step.dice_before
    )
    gains = [step.dice_after - step.dice_before for _, step in steps]
    scores = [(pair.result.matched_score, pair.result.score) for pair in pairs.values()]
    never_lower = all(after >= before - FLOAT32_ROUNDING for before, after in scores)
    return Claim(
        "Merging raises the region's Dice",
        "Merging the parts of an over-segmented region improves the coefficient with the "
        "original region.",
        f"{len(steps) - len(exceptions)} of {len(steps)} merges over {len(pairs)} pairs raised "
        f"the Dice of the target region. The mean change is {np.mean(gains):+.4f}. "
        f"{'No score fell' if never_lower else 'Some scores fell'} after merging. Scores before "
        f"and after merging: "
        + ", ".join(f"{before:.4f} → {after:.4f}" for before, after in scores)
        + ".",
        not exceptions and never_lower,
        exceptions,
    )
