"""The sections of the page: what each one draws, claims and counts."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.comparison.result import Comparison
from probdice.data.segmentation import Segmentation
from probdice.paper import claims, drawings, figures
from probdice.paper import region_correspondence as correspondence
from probdice.paper.answers import Answer, Scored
from probdice.paper.claims import Claim
from probdice.paper.figures import COEFFICIENTS, SUBSCRIPTS, DegradationTable, Rule, compared
from probdice.paper.study import STAND_IN, Study, rank_study
from probdice.paper.test_images import near_and_far, over_segmented, shuffled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Segmentations = Mapping[str, Segmentation]


@dataclass(frozen=True, eq=False)
class Section:
    """One figure with its caption, and the claims and numbers that go with it."""

    name: str
    title: str
    caption: str
    figure: "Figure"
    claims: tuple[Claim, ...] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)


def forms() -> Section:
    """The two forms of the crisp coefficient."""
    data = figures.dice_forms()
    return Section(
        "dice-forms",
        "The two forms of the crisp coefficient",
        "Every pair of binary segmentations lies in the lower left triangle. S₁, the classical "
        "coefficient of one foreground, has no value where everything is background, and takes "
        "every value from 0 to 1 next to that corner. S₂, the fraction of agreeing pixels, is 1 "
        "there.",
        drawings.draw_dice_forms(data),
        (claims.forms_claim(data),),
    )


def similarities() -> Section:
    """f₁ and f₂ over all pairs of probabilities."""
    data = figures.two_regions()
    return Section(
        "two-regions",
        "f₁ and f₂ of two regions",
        "f₁ falls evenly with the difference of the probabilities. f₂ falls most next to equality, "
        "the more so where the reference is nearly certain, and is 0 along the edges, where one "
        "side is certain and the other is not.",
        drawings.draw_two_regions(data),
        (claims.linear_claim(data), claims.steep_claim(data), claims.certainty_claim(data)),
    )


def pixels(seed: int) -> Section:
    """f₁ and f₂ of two predictions at every pixel."""
    reference, predictions = near_and_far(seed=seed)
    results = {
        name: [compared(reference, prediction, similarity) for prediction in predictions]
        for name, similarity in COEFFICIENTS.items()
    }
    return Section(
        "pixel-similarities",
        "f₁ and f₂ at every pixel",
        "Red, green and blue are the probabilities of the three regions. f₁ is low where "
        "boundaries differ; f₂ also sees the small differences everywhere else.",
        drawings.draw_pixel_similarities(reference, predictions, results),
        numbers={
            "pixels": {name: [result.score for result in row] for name, row in results.items()}
        },
    )


def table(data: DegradationTable) -> Section:
    """The images and their degraded versions."""
    numbers: dict[str, Any] = {name: {} for name in data.references}
    for image, version, scores in data.cells:
        numbers[image][version.name] = scores
    return Section(
        "degradation-table",
        "Seven images, seven degraded versions of each",
        "Blur and deformation in pixels, noise as the standard deviation of the log-ratios; the "
        "known strength, 1 to 7, rises from left to right. D₂ answers to noise far more than D₁ "
        "does.",
        drawings.draw_degradation_table(data),
        (claims.crisp_claim(data),),
        {"table": numbers},
    )


def falling(references: Segmentations, seed: int) -> Section:
    """Scores as every degradation grows."""
    data = figures.sweep(references, seed=seed)
    correlations = {name: data.spearman(name).tolist() for name in COEFFICIENTS}
    return Section(
        "sweep",
        "Do the scores fall as a degradation grows?",
        "Spearman's correlation of score and strength; −1 where the score falls at every step. "
        "Split and merged regions are scored after matching alone: under Aitchison a single "
        "region without a partner already makes the score 0, and it cannot fall further.",
        drawings.draw_sweep(data),
        (claims.falling_claim(data),),
        {"sweep": {"strengths": data.strengths, "scores": data.scores, "spearman": correlations}},
    )


def weights(references: Segmentations, seed: int) -> Section:
    """How the weight of a pair comes about."""
    data = figures.pair_weight(*shuffled(seed=seed))
    numbers = {"pair": data.pair, "weight": data.weight, "weights": data.weights.tolist()}
    return Section(
        "pair-weight",
        "How the weight of a pair comes about",
        f"Region {data.pair[0]} of the reference and region {data.pair[1]} of the prediction each "
        f"against the sum of the others (white is 1), their similarity f at every pixel, and the "
        f"weight of the edge: 1 − mean f = {data.weight:.4f}. The matching takes the edges of "
        f"least total weight.",
        correspondence.draw_pair_weight(data),
        (claims.permutation_claim(references, seed=seed),),
        {"pair weight": numbers},
    )


def merging(references: Segmentations, methods: Segmentations, seed: int) -> Section:
    """A correspondence with over-segmentation merged."""
    cup = figures.merged_pair(methods["normalised cuts"], methods["watershed"])
    measured = {"coffee, watershed": cup} | {
        name: figures.merged_pair(reference, over_segmented(reference, seed=seed))
        for name, reference in references.items()
    }
    numbers = {
        name: {
            **_scores(data.result),
            "steps": [asdict(step) for step in data.steps],
        }
        for name, data in measured.items()
    }
    return Section(
        "merging",
        "A correspondence, with over-segmentation merged",
        "A photograph of a cup by watershed (prediction) and by normalised cuts (reference). "
        "Every region of the reference is matched with one of the prediction; each spare region "
        "then joins the group whose similarity gains most, the largest gain first.",
        correspondence.draw_merging(cup),
        (claims.merging_claim(measured),),
        {"merges": numbers},
    )


def sources(image: NDArray[np.float64], methods: Segmentations) -> Section:
    """Where unordered regions come from."""
    results = {
        method: compared(methods["random walker"], segmentation, match="paper", merge="both")
        for method, segmentation in methods.items()
    }
    numbers = {method: _scores(result) for method, result in results.items()}
    return Section(
        "sources",
        "Where unordered regions come from",
        "The methods that the paper names, each compared with the probabilities of the random "
        "walker: D₁ after matching alone, after merging on either side, and the merged score "
        "above chance. Colours only number the regions of one picture.",
        correspondence.draw_sources(image, methods, results),
        numbers={"sources": numbers},
    )


def study(coefficient: str, study: Study) -> Section:
    """The study, on a stand-in for people."""
    name, fit = f"D{SUBSCRIPTS[coefficient]}", study.overall
    return Section(
        f"study-{coefficient.lower()}",
        f"Ranks by {name} and the stand-in",
        f"Each point is one degraded segmentation. Slope {fit.slope:.2f}, Pearson "
        f"{fit.pearson:.2f}, Spearman {fit.spearman:.2f}; the three agree where both sides are "
        f"ranks without ties. Whatever lies near the paper's values does so by chance: how much "
        f"blur counts as much as so much noise is our choice of units.",
        drawings.draw_study(study, title=f"{name} against a stand-in: no human data"),
        numbers={f"stand-in study {coefficient}": study.to_dict()},
    )


def both_rules(references: Segmentations, methods: Segmentations, seed: int) -> dict[str, Any]:
    """The pairs of this page that correspond differently by the paper's rule and by overlap.

    Of each, under both rules: the lowest matched Dice, and the scores.
    """
    walker, cuts = methods["random walker"], methods["normalised cuts"]
    examples = {"watershed and normalised cuts": (cuts, methods["watershed"])}
    examples |= {f"{name} and random walker": (walker, methods[name]) for name in methods}
    examples["shuffled labels"] = shuffled(seed=seed)
    for name, reference in references.items():
        examples[f"{name}, over-segmented"] = reference, over_segmented(reference, seed=seed)
    rows = {}
    rules: tuple[Rule, Rule] = ("paper", "overlap")
    for example, sides in examples.items():
        matched = [compared(*sides, match=rule) for rule in rules]
        if matched[0].groups != matched[1].groups:
            rows[example] = {
                rule: {"lowest_matched_dice": _lowest_matched(result)}
                | _scores(compared(*sides, match=rule, merge="both"))
                for rule, result in zip(rules, matched, strict=True)
            }
    return rows


def _lowest_matched(result: Comparison) -> float:
    """The lowest Dice of the groups with regions of both sides."""
    return min(group.dice for group in result.groups if group.reference and group.prediction)


def stand_in_answers(table: DegradationTable) -> list[Answer]:
    """Ranks by known degradation strength, in the place of people's; never to be called human."""
    return [
        Answer(STAND_IN, image, version.name, version.strength) for image, version, _ in table.cells
    ]


def stand_in_study(table: DegradationTable, coefficient: str, *, seed: int = 0) -> Study:
    """Ranks by score against those of the stand-in."""
    scores = [
        Scored(image, version.name, scores[coefficient]) for image, version, scores in table.cells
    ]
    return rank_study(stand_in_answers(table), scores, seed=seed)


def _scores(result: Comparison) -> dict[str, float]:
    return {name: getattr(result, name) for name in ("matched_score", "score", "adjusted_score")}
