"""Create the sections of the page, with figures, claims and numbers."""

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
from probdice.paper.experiment_images import near_and_far, over_segment, shuffled_pair
from probdice.paper.figures import COEFFICIENTS, SUBSCRIPTS, DegradationTable, Rule, compare_quietly
from probdice.paper.study import STAND_IN, Study, rank_study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Segmentations = Mapping[str, Segmentation]


@dataclass(frozen=True, eq=False)
class Section:
    """One figure with its caption, claims and numbers."""

    name: str
    title: str
    caption: str
    figure: "Figure"
    claims: tuple[Claim, ...] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)


def forms() -> Section:
    """Show the two forms of the crisp coefficient."""
    data = figures.dice_forms()
    return Section(
        "dice-forms",
        "The two forms of the crisp coefficient",
        "Every pair of binary segmentations is a point in the lower left triangle. In the top left "
        "corner, all pixels of both segmentations are background. In this corner, S₁, the "
        "classical coefficient of one foreground, is undefined. Near the corner, S₁ takes all "
        "values from 0 to 1. S₂, the fraction of agreeing pixels, is 1 in the corner.",
        drawings.draw_dice_forms(data),
        (claims.forms_claim(data),),
    )


def similarities() -> Section:
    """Show f₁ and f₂ over all pairs of probabilities."""
    data = figures.two_regions()
    return Section(
        "two-regions",
        "f₁ and f₂ of two regions",
        "f₁ falls linearly with the difference of the probabilities. f₂ falls fastest near "
        "equality, especially where the reference is nearly certain. f₂ is 0 along the edges, "
        "where one side is certain and the other side differs.",
        drawings.draw_two_regions(data),
        (claims.linear_claim(data), claims.steep_claim(data), claims.certainty_claim(data)),
    )


def pixels(seed: int) -> Section:
    """Show f₁ and f₂ of two predictions at every pixel."""
    reference, predictions = near_and_far(seed=seed)
    results = {
        name: [compare_quietly(reference, prediction, similarity) for prediction in predictions]
        for name, similarity in COEFFICIENTS.items()
    }
    return Section(
        "pixel-similarities",
        "f₁ and f₂ at every pixel",
        "Red, green and blue show the probabilities of the three regions. f₁ is low where "
        "boundaries differ. Small differences elsewhere also reduce f₂.",
        drawings.draw_pixel_similarities(reference, predictions, results),
        numbers={
            "pixels": {name: [result.score for result in row] for name, row in results.items()}
        },
    )


def table(data: DegradationTable) -> Section:
    """Show the images and their degraded versions."""
    numbers: dict[str, Any] = {name: {} for name in data.references}
    for image, version, scores in data.cells:
        numbers[image][version.name] = scores
    return Section(
        "degradation-table",
        "Seven images, seven degraded versions of each",
        "Blur and deformation are given in pixels. Noise is given as its standard deviation in "
        "log-probabilities. The known strength increases from 1 to 7, from left to right. D₂ is "
        "much more sensitive to noise than D₁.",
        drawings.draw_degradation_table(data),
        (claims.crisp_claim(data),),
        {"table": numbers},
    )


def strength_sweep(references: Segmentations, seed: int) -> Section:
    """Show the rank correlation between score and strength for each degradation."""
    data = figures.sweep(references, seed=seed)
    correlations = {name: data.spearman(name).tolist() for name in COEFFICIENTS}
    return Section(
        "sweep",
        "Do the scores fall with increasing degradation?",
        "Spearman's correlation between score and strength is −1 if the score falls at every step. "
        "Unmatched regions are not merged, so degradations that split or join regions leave some "
        "regions unmatched. With the Aitchison similarity, a single unmatched region reduces the "
        "score to 0, the lowest possible score.",
        drawings.draw_sweep(data),
        (claims.falling_claim(data),),
        {"sweep": {"strengths": data.strengths, "scores": data.scores, "spearman": correlations}},
    )


def weights(references: Segmentations, seed: int) -> Section:
    """Show the weight of a pair of regions."""
    data = figures.pair_weight(*shuffled_pair(seed=seed))
    numbers = {"pair": data.pair, "weight": data.weight, "weights": data.weights.tolist()}
    return Section(
        "pair-weight",
        "The weight of a pair of regions",
        f"Reference region {data.pair[0]} and prediction region {data.pair[1]} are shown as binary "
        f"segmentations, in which white is 1. The similarity f of these segmentations is shown at "
        f"every pixel. The weight of the edge between the two regions is 1 − mean f = "
        f"{data.weight:.4f}. The matching selects the edges with the smallest total weight.",
        correspondence.draw_pair_weight(data),
        (claims.permutation_claim(references, seed=seed),),
        {"pair weight": numbers},
    )


def merging(references: Segmentations, methods: Segmentations, seed: int) -> Section:
    """Show a correspondence in which the regions of an over-segmentation are merged."""
    coffee_pair = figures.merged_pair(methods["normalised cuts"], methods["watershed"])
    merged_pairs = {"coffee, watershed": coffee_pair} | {
        name: figures.merged_pair(reference, over_segment(reference, seed=seed))
        for name, reference in references.items()
    }
    numbers = {
        name: {
            **_scores(data.result),
            "steps": [asdict(step) for step in data.steps],
        }
        for name, data in merged_pairs.items()
    }
    return Section(
        "merging",
        "A correspondence with a merged over-segmentation",
        "A photograph of a cup is segmented with a watershed (prediction) and with normalised cuts "
        "(reference). Every reference region is matched to one prediction region. The unmatched "
        "regions are then merged into groups. The merge with the largest gain in similarity comes "
        "first.",
        correspondence.draw_merging(coffee_pair),
        (claims.merging_claim(merged_pairs),),
        {"merges": numbers},
    )


def sources(image: NDArray[np.float64], methods: Segmentations) -> Section:
    """Show the results of segmentation methods that return regions in arbitrary order."""
    results = {
        method: compare_quietly(methods["random walker"], segmentation, match="paper", merge="both")
        for method, segmentation in methods.items()
    }
    numbers = {method: _scores(result) for method, result in results.items()}
    return Section(
        "sources",
        "Sources of unordered regions",
        "The figure shows the methods that the paper names. The probabilities of the random walker "
        "are the reference. Each method is scored with D₁ without merging, with D₁ after merging "
        "both sides, and with the merged score adjusted for chance. Equal colours in different "
        "pictures do not mean the same region.",
        correspondence.draw_sources(image, methods, results),
        numbers={"sources": numbers},
    )


def study(coefficient: str, study: Study) -> Section:
    """Show the study with known degradation strengths instead of human ranks."""
    name, fit = f"D{SUBSCRIPTS[coefficient]}", study.overall
    return Section(
        f"study-{coefficient.lower()}",
        f"Ranks by {name} and by known degradation strength",
        f"Each point is one degraded segmentation. The slope is {fit.slope:.2f}, Pearson's "
        f"correlation is {fit.pearson:.2f}, and Spearman's correlation is {fit.spearman:.2f}. "
        f"These three values are equal if no ranks are tied. Any agreement with the paper's values "
        f"is coincidental, because the relative strengths of blur, deformation and noise were "
        f"chosen arbitrarily.",
        drawings.draw_study(study, title=f"{name}: no human data"),
        numbers={f"stand-in study {coefficient}": study.to_dict()},
    )


def both_rules(references: Segmentations, methods: Segmentations, seed: int) -> dict[str, Any]:
    """Return the examples in which the paper's rule and the overlap rule match different pairs.

    The result contains the lowest matched Dice and the scores for each example and each rule.
    """
    walker, cuts = methods["random walker"], methods["normalised cuts"]
    examples = {"watershed and normalised cuts": (cuts, methods["watershed"])}
    examples |= {f"{name} and random walker": (walker, methods[name]) for name in methods}
    examples["shuffled labels"] = shuffled_pair(seed=seed)
    for name, reference in references.items():
        examples[f"{name}, over-segmented"] = reference, over_segment(reference, seed=seed)
    rows = {}
    rules: tuple[Rule, Rule] = ("paper", "overlap")
    for example, sides in examples.items():
        results = [compare_quietly(*sides, match=rule) for rule in rules]
        if results[0].groups != results[1].groups:
            rows[example] = {
                rule: {"lowest_matched_dice": _lowest_matched(result)}
                | _scores(compare_quietly(*sides, match=rule, merge="both"))
                for rule, result in zip(rules, results, strict=True)
            }
    return rows


def _lowest_matched(result: Comparison) -> float:
    """Return the lowest Dice of the groups with regions on both sides."""
    return min(group.dice for group in result.groups if group.reference and group.prediction)


def stand_in_answers(table: DegradationTable) -> list[Answer]:
    """Rank segmentations by known degradation strength. Never label these ranks as human."""
    return [
        Answer(STAND_IN, image, version.name, version.strength) for image, version, _ in table.cells
    ]


def stand_in_study(table: DegradationTable, coefficient: str, *, seed: int = 0) -> Study:
    """Compare ranks by score with ranks by known degradation strength."""
    scores = [
        Scored(image, version.name, scores[coefficient]) for image, version, scores in table.cells
    ]
    return rank_study(stand_in_answers(table), scores, seed=seed)


def _scores(result: Comparison) -> dict[str, float]:
    return {name: getattr(result, name) for name in ("matched_score", "score", "adjusted_score")}
