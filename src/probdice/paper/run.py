"""The whole paper at once: figures, numbers and a page in a folder."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from probdice.errors import MissingExtraError
from probdice.paper import claims, correspondence, drawings, figures, pairs
from probdice.paper.answers import Answer, Scored
from probdice.paper.page import PagedFigure, render
from probdice.paper.photographs import (
    normalised_cuts,
    photograph,
    random_walker,
    sources,
    watershed,
)
from probdice.paper.study import PAPER_PEARSON, PAPER_SLOPE, Fit, Study, rank_study
from probdice.paper.survey import write_rankings, write_scores, write_survey
from probdice.segmentation import Segmentation
from probdice.synthesis import (
    blur,
    brain_section,
    deform,
    nested_ellipses,
    noise,
    permute,
    split,
    touching_cells,
    voronoi,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["STAND_IN", "Progress", "paper_images", "run_paper", "stand_in_answers"]

FORMAT = 1  # version of numbers.json
STAND_IN = "known degradation strength (stand-in, not a person)"
DOTS_PER_INCH = 110

Progress = Callable[[str, int, int], None]
"""Called with what comes next, how many parts are done, and how many there are."""


def paper_images(*, size: int = 96, seed: int = 0) -> dict[str, Segmentation]:
    """The seven references of the table: four phantoms, and three photographs by random walker.

    Parameters
    ----------
    size : int, optional
        Pixels along the longer side.
    seed : int, optional
        Of the phantoms and of the walker's seeds.

    Examples
    --------
    >>> from probdice.paper import paper_images
    >>> list(paper_images(size=32))
    ['ellipses', 'Voronoi', 'brain', 'cells', 'astronaut', 'camera', 'coffee']
    """
    shape = (size, size)
    phantoms = {
        "ellipses": nested_ellipses(shape, seed=seed + 1),
        "Voronoi": voronoi(shape, seed=seed),
        "brain": brain_section(shape, seed=seed),
        "cells": touching_cells(shape, seed=seed),
    }
    photographs = {
        name: random_walker(photograph(name, size=size), 5, seed=seed)
        for name in ("astronaut", "camera", "coffee")
    }
    return phantoms | photographs


def stand_in_answers(table: figures.DegradationTable) -> list[Answer]:
    """Ranks by known degradation strength, in the place of people's; never to be called human."""
    return [
        Answer(STAND_IN, image, version.name, version.strength)
        for image in table.references
        for version in table.versions
    ]


def run_paper(
    out: str | Path,
    *,
    seed: int = 0,
    survey: bool = False,
    people: int = 25,
    progress: Progress | None = None,
) -> Path:
    """Run the paper's experiments and write their figures, numbers and a page.

    Parameters
    ----------
    out : path
        The folder to write to; it is made if it does not exist.
    seed : int, optional
        The same seed gives the same numbers.
    survey : bool, optional
        Also write the sheets to repeat the study with people, to the folder ``survey``.
    people : int, optional
        How many sheets.
    progress : callable, optional
        Told what comes next.

    Returns
    -------
    Path
        The page, ``index.html``. Beside it are ``numbers.json``, ``scores.csv``,
        ``stand-in-rankings.csv`` and the folder ``figures``.
    """
    _check_extra()
    out = Path(out)
    (out / "figures").mkdir(parents=True, exist_ok=True)
    return _Run(out, seed, progress, 11 + survey).everything(people if survey else 0)


class _Run:
    """One run: what it has found so far, and what it tells of its progress."""

    def __init__(self, out: Path, seed: int, progress: Progress | None, parts: int):
        self.out, self.seed, self.progress, self.parts = out, seed, progress, parts
        self.done = 0
        self.claims: list[claims.Claim] = []
        self.figures: list[PagedFigure] = []
        self.studies: list[PagedFigure] = []
        self.numbers: dict[str, Any] = {"format": FORMAT, "seed": seed}

    def everything(self, people: int) -> Path:
        self._next("images")
        references = paper_images(seed=self.seed)
        self._next("the two forms of the coefficient")
        self._forms()
        self._next("f₁ and f₂ of two regions")
        self._two_regions()
        self._next("f₁ and f₂ at every pixel")
        self._pixels()
        self._next("the table of degradations")
        table = self._table(references)
        self._next("scores as degradations grow")
        self._sweep(references)
        self._next("the weight of a pair")
        self._pair_weight(references)
        self._next("matching and merging")
        self._merging(references)
        self._next("sources of unordered regions")
        self._sources()
        self._next("the study on a stand-in")
        rows = self._study(table)
        if people:
            self._next("survey sheets")
            write_survey(self.out / "survey", table, people=people, seed=self.seed)
        self._next("the page")
        page = self._write(rows)
        self._next("done")
        return page

    def _forms(self) -> None:
        data = figures.dice_forms()
        self.claims.append(claims.forms_claim(data))
        self._draw(
            "dice-forms",
            "The two forms of the crisp coefficient",
            "Every pair of binary segmentations lies in the lower left triangle. S₁, the classical "
            "coefficient of one foreground, has no value where everything is background, and "
            "changes from 0 to 1 next to that corner. S₂, the fraction of agreeing pixels, is 1 "
            "there.",
            drawings.draw_dice_forms(data),
        )

    def _two_regions(self) -> None:
        data = figures.two_regions()
        self.claims += [
            claims.linear_claim(data),
            claims.steep_claim(data),
            claims.certainty_claim(data),
        ]
        self._draw(
            "two-regions",
            "f₁ and f₂ of two regions",
            "f₁ falls evenly with the difference of the probabilities. f₂ falls most next to "
            "equality, the more so where the reference is nearly certain, and is 0 along the "
            "edges, where one side is certain and the other is not.",
            drawings.draw_two_regions(data),
        )

    def _pixels(self) -> None:
        reference = nested_ellipses((96, 96), regions=3, seed=self.seed + 1)
        far = noise(deform(reference, 14, seed=self.seed + 2), 0.8, seed=self.seed)
        near = noise(blur(deform(reference, 3, seed=self.seed + 3), 0.8), 0.15, seed=self.seed)
        data = figures.pixel_similarities(reference, [far, near])
        self.numbers["pixels"] = {"d1": data.d1, "d2": data.d2}
        self._draw(
            "pixel-similarities",
            "f₁ and f₂ at every pixel",
            "Red, green and blue are the probabilities of the three regions. f₁ is low where "
            "boundaries differ; f₂ also sees the small differences everywhere else.",
            drawings.draw_pixel_similarities(data),
        )

    def _table(self, references: Mapping[str, Segmentation]) -> figures.DegradationTable:
        table = figures.degradation_table(references, seed=self.seed)
        self.claims.append(claims.crisp_claim(table))
        self.numbers["table"] = {
            name: {
                version.name: {"d1": float(table.d1[i, j]), "d2": float(table.d2[i, j])}
                for j, version in enumerate(table.versions)
            }
            for i, name in enumerate(table.references)
        }
        self._draw(
            "degradation-table",
            "Seven images, seven degraded versions of each",
            "Blur and deformation in pixels, noise as the standard deviation of the log-ratios; "
            "known strength rises from left to right. D₂ answers to noise far more than D₁, and "
            "D₁ more to deformation.",
            drawings.draw_degradation_table(table),
        )
        return table

    def _sweep(self, references: Mapping[str, Segmentation]) -> None:
        data = claims.sweep(references, seed=self.seed)
        self.claims.append(claims.falling_claim(data))
        self.numbers["sweep"] = {
            "strengths": dict(data.strengths),
            "scores": {
                image: {
                    kind: {"d1": data.d1[image, kind], "d2": data.d2[image, kind]}
                    for kind in data.degradations
                }
                for image in data.images
            },
            "spearman": {
                "d1": data.spearman("absolute").tolist(),
                "d2": data.spearman("aitchison").tolist(),
            },
        }
        self._draw(
            "sweep",
            "Do the scores fall as a degradation grows?",
            "Spearman's correlation of score and strength; −1 where the score falls at every step. "
            "Split and merged regions are scored after matching alone: under Aitchison a single "
            "region without a partner already makes the score 0, and it cannot fall further.",
            drawings.draw_sweep(data),
        )

    def _pair_weight(self, references: Mapping[str, Segmentation]) -> None:
        self.claims.append(claims.permutation_claim(references, seed=self.seed))
        reference = voronoi((96, 96), regions=4, seed=self.seed + 3)
        moved = deform(reference, 6, seed=self.seed)
        prediction = permute(moved, 5, seed=self.seed + 1)
        first = pairs.pair_weight(reference, prediction, (0, 0)).matched[0]
        data = pairs.pair_weight(reference, prediction, first)
        self.numbers["pair weight"] = {
            "pair": data.pair,
            "weight": data.weight,
            "weights": data.weights.tolist(),
        }
        self._draw(
            "pair-weight",
            "How the weight of a pair comes about",
            f"Region {first[0]} of the reference and region {first[1]} of the prediction each "
            f"against the sum of the others (white is 1), their similarity f at every pixel, and "
            f"the weight of the edge: 1 − mean f = {data.weight:.4f}. The matching takes the edges "
            f"of least total weight.",
            correspondence.draw_pair_weight(data),
        )

    def _merging(self, references: Mapping[str, Segmentation]) -> None:
        image = photograph("coffee")
        shown = pairs.merging(normalised_cuts(image, seed=self.seed), watershed(image))
        measured = {"coffee, watershed": shown} | {
            name: pairs.merging(reference, self._over_segmented(reference))
            for name, reference in references.items()
        }
        self.claims.append(claims.merging_claim(measured))
        self.numbers["merges"] = {
            name: {
                "matched_score": data.result.matched_score,
                "score": data.result.score,
                "steps": [asdict(step) for step in data.steps],
            }
            for name, data in measured.items()
        }
        self._draw(
            "merging",
            "A correspondence, with over-segmentation merged",
            "A photograph of a cup by watershed (prediction) and by normalised cuts (reference). "
            "Every region of the reference is matched with one of the prediction; each spare "
            "region then joins the group whose similarity gains most, the largest gain first.",
            correspondence.draw_merging(shown),
        )

    def _over_segmented(self, reference: Segmentation) -> Segmentation:
        spoilt = split(deform(reference, 2, seed=self.seed), 3, seed=self.seed + 1)
        return permute(noise(spoilt, 0.2, seed=self.seed), 10, seed=self.seed)

    def _sources(self) -> None:
        image = photograph("coffee")
        found = sources(image, seed=self.seed)
        self.numbers["sources"] = {
            source.method: {
                "matched_score": source.matched_score,
                "merged_score": source.merged_score,
                "adjusted_score": source.adjusted_score,
            }
            for source in found
        }
        self._draw(
            "sources",
            "Where unordered regions come from",
            "The methods that the paper names, each compared with the probabilities of the random "
            "walker: D₁ after matching alone, after merging on either side, and the merged score "
            "above chance. Colours only number the regions of one picture.",
            correspondence.draw_sources(image, found),
        )

    def _study(self, table: figures.DegradationTable) -> "_Rows":
        answers = stand_in_answers(table)
        write_rankings(self.out / "stand-in-rankings.csv", answers)
        write_scores(self.out / "scores.csv", table)
        studies: dict[str, Study] = {}
        for name, values in (("D₁", table.d1), ("D₂", table.d2)):
            scores = [
                Scored(image, version.name, float(values[i, j]))
                for i, image in enumerate(table.references)
                for j, version in enumerate(table.versions)
            ]
            studies[name] = study = rank_study(answers, scores, seed=self.seed)
            key = {"D₁": "d1", "D₂": "d2"}[name]
            self.numbers[f"stand-in study {key}"] = study.to_dict()
            figure = drawings.draw_study(
                study,
                title=f"{name} against a stand-in: no human data",
                human="rank by known degradation strength (stand-in)",
            )
            caption = (
                f"Each point is one degraded segmentation. Line of best fit: slope "
                f"{study.overall.slope:.2f}; Pearson {study.overall.pearson:.2f}, Spearman "
                f"{study.overall.spearman:.2f}."
            )
            paged = self._paged(
                f"study-{key}", f"Ranks by {name} and the stand-in", caption, figure
            )
            self.studies.append(paged)
        return _Rows(studies)

    def _write(self, rows: "_Rows") -> Path:
        self.numbers["claims"] = [asdict(claim) for claim in self.claims]
        text = json.dumps(_plain(self.numbers), indent=1, ensure_ascii=False, allow_nan=False)
        (self.out / "numbers.json").write_text(text + "\n", encoding="utf-8")
        page = self.out / "index.html"
        html = render(
            "page.html",
            title="The multi-region probabilistic Dice coefficient, reproduced",
            version=_version(),
            seed=self.seed,
            claims=self.claims,
            holding=sum(claim.holds for claim in self.claims),
            figures=self.figures,
            studies=self.studies,
            study_rows=rows,
            paper_slope=PAPER_SLOPE,
            paper_pearson=PAPER_PEARSON,
        )
        page.write_text(html, encoding="utf-8")
        return page

    def _next(self, what: str) -> None:
        if self.progress is not None:
            self.progress(what, self.done, self.parts)
        self.done += 1

    def _draw(self, name: str, title: str, caption: str, figure: "Figure") -> None:
        self.figures.append(self._paged(name, title, caption, figure))

    def _paged(self, name: str, title: str, caption: str, figure: "Figure") -> PagedFigure:
        buffer = BytesIO()
        figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH)
        (self.out / "figures" / f"{name}.png").write_bytes(buffer.getvalue())
        return PagedFigure(name, title, caption, buffer.getvalue())


class _Rows:
    """The table of the study: an image a row, what was found by each coefficient the columns."""

    def __init__(self, studies: Mapping[str, Study]):
        kinds = ("slope", "Pearson", "Spearman")
        self.columns = [f"{name} {kind}" for name in studies for kind in kinds]
        images = list(next(iter(studies.values())).images)
        self.rows = [
            [image, *self._cells([study.images[image] for study in studies.values()])]
            for image in images
        ]
        self.rows.append(["all", *self._cells([study.overall for study in studies.values()])])

    def _cells(self, fits: list[Fit]) -> list[str]:
        values = [value for fit in fits for value in (fit.slope, fit.pearson, fit.spearman)]
        return [f"{value:.2f}".replace("-", "−") for value in values]


def _check_extra() -> None:
    """Say at once what is missing, not after a minute."""
    for module, name in (("skimage", "scikit-image"), ("matplotlib", "Matplotlib")):
        try:
            __import__(module)
        except ImportError:
            raise MissingExtraError(
                f'the paper needs {name}: pip install "probdice[paper]"'
            ) from None


def _version() -> str:
    try:
        return version("probdice")
    except PackageNotFoundError:
        return "(not installed)"


def _plain(value: Any) -> Any:
    """Plain types for JSON; null for what is not a number."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
