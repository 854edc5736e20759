"""The parts of the reproduction: what each one draws, claims and counts."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from probdice.paper import claims, correspondence, drawings, figures, pairs
from probdice.paper.answers import Answer, Scored
from probdice.paper.claims import Claim
from probdice.paper.images import near_and_far, over_segmented, shuffled
from probdice.paper.photographs import normalised_cuts, photograph, sources, watershed
from probdice.paper.study import STAND_IN, Study, rank_study
from probdice.segmentation import Segmentation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Drawing",
    "Section",
    "falling",
    "forms",
    "merging",
    "origins",
    "pixels",
    "ranking",
    "similarities",
    "stand_in_answers",
    "table",
    "weights",
]


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure, what it is called and what there is to see."""

    name: str
    title: str
    caption: str
    figure: "Figure"


@dataclass(frozen=True, eq=False)
class Section:
    """What one part of the reproduction found."""

    drawings: tuple[Drawing, ...]
    claims: tuple[Claim, ...] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)


def forms() -> Section:
    """The two forms of the crisp coefficient."""
    data = figures.dice_forms()
    drawing = Drawing(
        "dice-forms",
        "The two forms of the crisp coefficient",
        "Every pair of binary segmentations lies in the lower left triangle. S₁, the classical "
        "coefficient of one foreground, has no value where everything is background, and takes "
        "every value from 0 to 1 next to that corner. S₂, the fraction of agreeing pixels, is 1 "
        "there.",
        drawings.draw_dice_forms(data),
    )
    return Section((drawing,), (claims.forms_claim(data),))


def similarities() -> Section:
    """f₁ and f₂ over all pairs of probabilities."""
    data = figures.two_regions()
    drawing = Drawing(
        "two-regions",
        "f₁ and f₂ of two regions",
        "f₁ falls evenly with the difference of the probabilities. f₂ falls most next to equality, "
        "the more so where the reference is nearly certain, and is 0 along the edges, where one "
        "side is certain and the other is not.",
        drawings.draw_two_regions(data),
    )
    found = claims.linear_claim(data), claims.steep_claim(data), claims.certainty_claim(data)
    return Section((drawing,), found)


def pixels(seed: int) -> Section:
    """f₁ and f₂ of two predictions at every pixel."""
    data = figures.pixel_similarities(*near_and_far(seed=seed))
    drawing = Drawing(
        "pixel-similarities",
        "f₁ and f₂ at every pixel",
        "Red, green and blue are the probabilities of the three regions. f₁ is low where "
        "boundaries differ; f₂ also sees the small differences everywhere else.",
        drawings.draw_pixel_similarities(data),
    )
    return Section((drawing,), (), {"pixels": {"d1": data.d1, "d2": data.d2}})


def table(data: figures.DegradationTable) -> Section:
    """The images and their degraded versions."""
    drawing = Drawing(
        "degradation-table",
        "Seven images, seven degraded versions of each",
        "Blur and deformation in pixels, noise as the standard deviation of the log-ratios; the "
        "known strength, 1 to 7, rises from left to right. D₂ answers to noise far more than D₁ "
        "does.",
        drawings.draw_degradation_table(data),
    )
    numbers = {
        name: {
            version.name: {"d1": float(data.d1[i, j]), "d2": float(data.d2[i, j])}
            for j, version in enumerate(data.versions)
        }
        for i, name in enumerate(data.references)
    }
    return Section((drawing,), (claims.crisp_claim(data),), {"table": numbers})


def falling(references: Mapping[str, Segmentation], seed: int) -> Section:
    """Scores as every degradation grows."""
    data = claims.sweep(references, seed=seed)
    drawing = Drawing(
        "sweep",
        "Do the scores fall as a degradation grows?",
        "Spearman's correlation of score and strength; −1 where the score falls at every step. "
        "Split and merged regions are scored after matching alone: under Aitchison a single "
        "region without a partner already makes the score 0, and it cannot fall further.",
        drawings.draw_sweep(data),
    )
    scores = {
        image: {
            kind: {"d1": data.d1[image, kind], "d2": data.d2[image, kind]}
            for kind in data.degradations
        }
        for image in data.images
    }
    correlations = {
        "d1": data.spearman("absolute").tolist(),
        "d2": data.spearman("aitchison").tolist(),
    }
    numbers = {"strengths": dict(data.strengths), "scores": scores, "spearman": correlations}
    return Section((drawing,), (claims.falling_claim(data),), {"sweep": numbers})


def weights(references: Mapping[str, Segmentation], seed: int) -> Section:
    """How the weight of a pair comes about."""
    reference, prediction = shuffled(seed=seed)
    pair = pairs.pair_weight(reference, prediction, (0, 0)).matched[0]
    data = pairs.pair_weight(reference, prediction, pair)
    drawing = Drawing(
        "pair-weight",
        "How the weight of a pair comes about",
        f"Region {pair[0]} of the reference and region {pair[1]} of the prediction each against "
        f"the sum of the others (white is 1), their similarity f at every pixel, and the weight of "
        f"the edge: 1 − mean f = {data.weight:.4f}. The matching takes the edges of least total "
        f"weight.",
        correspondence.draw_pair_weight(data),
    )
    numbers = {"pair": pair, "weight": data.weight, "weights": data.weights.tolist()}
    claim = claims.permutation_claim(references, seed=seed)
    return Section((drawing,), (claim,), {"pair weight": numbers})


def merging(references: Mapping[str, Segmentation], seed: int) -> Section:
    """A correspondence with over-segmentation merged."""
    image = photograph("coffee")
    shown = pairs.merging(normalised_cuts(image, seed=seed), watershed(image))
    measured = {"coffee, watershed": shown} | {
        name: pairs.merging(reference, over_segmented(reference, seed=seed))
        for name, reference in references.items()
    }
    drawing = Drawing(
        "merging",
        "A correspondence, with over-segmentation merged",
        "A photograph of a cup by watershed (prediction) and by normalised cuts (reference). "
        "Every region of the reference is matched with one of the prediction; each spare region "
        "then joins the group whose similarity gains most, the largest gain first.",
        correspondence.draw_merging(shown),
    )
    numbers = {
        name: {
            "matched_score": data.result.matched_score,
            "score": data.result.score,
            "steps": [asdict(step) for step in data.steps],
        }
        for name, data in measured.items()
    }
    return Section((drawing,), (claims.merging_claim(measured),), {"merges": numbers})


def origins(seed: int) -> Section:
    """Where unordered regions come from."""
    image = photograph("coffee")
    found = sources(image, seed=seed)
    drawing = Drawing(
        "sources",
        "Where unordered regions come from",
        "The methods that the paper names, each compared with the probabilities of the random "
        "walker: D₁ after matching alone, after merging on either side, and the merged score "
        "above chance. Colours only number the regions of one picture.",
        correspondence.draw_sources(image, found),
    )
    numbers = {
        source.method: {
            "matched_score": source.matched_score,
            "merged_score": source.merged_score,
            "adjusted_score": source.adjusted_score,
        }
        for source in found
    }
    return Section((drawing,), (), {"sources": numbers})


def ranking(data: figures.DegradationTable, seed: int) -> tuple[Section, dict[str, Study]]:
    """The study, on a stand-in for people's answers."""
    answers = stand_in_answers(data)
    studies, drawn, numbers = {}, [], {}
    for name, key, values in (("D₁", "d1", data.d1), ("D₂", "d2", data.d2)):
        scores = [
            Scored(image, version.name, float(values[i, j]))
            for i, image in enumerate(data.references)
            for j, version in enumerate(data.versions)
        ]
        studies[name] = study = rank_study(answers, scores, seed=seed)
        numbers[f"stand-in study {key}"] = study.to_dict()
        drawn.append(
            Drawing(
                f"study-{key}",
                f"Ranks by {name} and the stand-in",
                f"Each point is one degraded segmentation. Slope {study.overall.slope:.2f}, "
                f"Pearson {study.overall.pearson:.2f}, Spearman {study.overall.spearman:.2f}; the "
                f"three agree where both sides are ranks without ties. Whatever lies near the "
                f"paper's values does so by chance: how much blur counts as much as so much noise "
                f"is our choice of units.",
                drawings.draw_study(
                    study,
                    title=f"{name} against a stand-in: no human data",
                ),
            )
        )
    return Section(tuple(drawn), (), numbers), studies


def stand_in_answers(data: figures.DegradationTable) -> list[Answer]:
    """Ranks by known degradation strength, in the place of people's; never to be called human.

    Examples
    --------
    >>> from probdice.paper import degradation_table, stand_in_answers
    >>> from probdice.synthesis import stripes
    >>> answers = stand_in_answers(degradation_table({"stripes": stripes((16, 16))}))
    >>> answers[6].person, answers[6].segmentation, answers[6].rank
    ('known degradation strength (stand-in, not a person)', 'all three', 7)
    """
    return [
        Answer(STAND_IN, image, version.name, version.strength)
        for image in data.references
        for version in data.versions
    ]
