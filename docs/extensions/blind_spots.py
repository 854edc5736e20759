"""Blind spots of each number: synthetic pairs of segmentations for which the number misleads.

`CASES` contains the pairs, each with a verdict. A number is misleading if it is high for a bad
segmentation or low for a good one. The tests check that every number misleads in both ways.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Literal

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from probdice import ProbdiceWarning, Segmentation, compare
from probdice.synthesis import brain_section, split, stripes, touching_cells, voronoi

__all__ = ["CASES", "NUMBERS", "Case", "Overview", "Table"]

HIGH, LOW = 0.9, 0.6  # the smallest high value and the largest low value
Pair = tuple[Segmentation, Segmentation]
Labels = NDArray[np.int64]

NUMBERS = {
    "score": "score",
    "adjusted": "adjusted score",
    "merged": "merged score",
    "explained_reference": "reference explained",
    "explained_prediction": "prediction explained",
    "mean_dice": "mean Dice",
    "lowest_dice": "lowest Dice",
    "by_labels": "score by equal labels",
    "aitchison": "aitchison score",
    "adjusted_rand": "adjusted Rand",
    "f1": "F1 of instances at Jaccard 0.5",
}


@dataclass(frozen=True)
class Case:
    """Two segmentations and a verdict."""

    title: str
    verdict: Literal["bad", "good"]
    make: Callable[[], Pair]

    def numbers(self) -> dict[str, float]:
        """All numbers of `NUMBERS`; NaN where undefined."""
        reference, prediction = self.make()
        plain = compare(reference, prediction)
        indices = plain.indices()
        detection = compare(reference, prediction, background=0).detection()
        merged = compare(reference, prediction, merge="both")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ProbdiceWarning)  # infinite distances are intended
            aitchison = compare(reference, prediction, similarity="aitchison")
        values = (
            plain.score,
            plain.adjusted_score,
            merged.score,
            plain.explained["reference"],
            plain.explained["prediction"],
            indices.mean_dice,
            plain.lowest_dice,
            compare(reference, prediction, match="labels").score,
            aitchison.score,
            indices.adjusted_rand,
            detection.f1,
        )
        return dict(zip(NUMBERS, map(float, values), strict=True))

    def misleads(self, value: float) -> bool:
        """Whether a number contradicts the verdict."""
        return value >= HIGH if self.verdict == "bad" else value <= LOW

    def figure(self) -> Figure:
        """Reference, prediction and their similarity at every pixel."""
        return compare(*self.make(), match="labels").plot("overview")

    def table(self) -> "Table":
        """All numbers; misleading ones are marked."""
        return Table(self)


@dataclass(frozen=True)
class Table:
    """The numbers of a case as HTML."""

    case: Case

    def _repr_html_(self) -> str:
        says = "high but bad" if self.case.verdict == "bad" else "low but good"
        rows = []
        for name, value in self.case.numbers().items():
            misleading = self.case.misleads(value)
            shown = "–" if math.isnan(value) else f"{value:.2f}"
            mark = f"<strong>{shown}</strong>" if misleading else shown
            rows.append(
                f"<tr><th scope='row'>{escape(NUMBERS[name])}</th><td>{mark}</td>"
                f"<td>{says if misleading else ''}</td></tr>"
            )
        return f"<table class='table numbers'><tbody>{''.join(rows)}</tbody></table>"


class Overview:
    """For every number, the cases in which it is misleading, as HTML."""

    def _repr_html_(self) -> str:
        values = {name: case.numbers() for name, case in CASES.items()}
        rows = []
        for number, called in NUMBERS.items():
            cells = []
            for verdict in ("bad", "good"):
                links = [
                    f"<a href='#{name}'>{escape(case.title.lower())}</a>"
                    for name, case in CASES.items()
                    if case.verdict == verdict and case.misleads(values[name][number])
                ]
                cells.append(f"<td>{', '.join(links)}</td>")
            rows.append(f"<tr><th scope='row'>{escape(called)}</th>{''.join(cells)}</tr>")
        head = "<th scope='col'>number</th><th scope='col'>high but bad</th>"
        head += "<th scope='col'>low but good</th>"
        return (
            f"<table class='table'><thead><tr>{head}</tr></thead>"
            f"<tbody>{''.join(rows)}</tbody></table>"
        )


# -- the cases -----------------------------------------------------------------------------------


def _hard(segmentation: Segmentation) -> Labels:
    return segmentation.array.argmax(axis=0).astype(np.int64)


def _labels(reference: Labels, prediction: Labels) -> Pair:
    return Segmentation.from_labels(reference), Segmentation.from_labels(prediction)


def _large_background() -> Pair:
    """Small cells on a large background, most of them missed."""
    reference = np.zeros((96, 96), np.int64)
    reference[36:60, 36:60] = _hard(touching_cells((24, 24), regions=6))
    prediction = np.where(reference == 2, 2, 0)
    return _labels(reference, np.where(reference == 3, 3, prediction))


def _one_region() -> Pair:
    """The prediction is a single region."""
    reference = _hard(voronoi((96, 96), regions=6)) + 1
    return _labels(reference, np.ones_like(reference))


def _every_pixel() -> Pair:
    """Squares of 4 × 4 pixels, independent of the image."""
    reference = _hard(voronoi((96, 96), regions=5)) + 1
    rows, columns = np.indices(reference.shape) // 4
    return _labels(reference, rows * 24 + columns + 1)


def _joined() -> Pair:
    """Six regions joined into two."""
    reference = _hard(voronoi((96, 96), regions=6)) + 1
    return _labels(reference, np.where(reference <= 4, 1, 2))


def _missed() -> Pair:
    """A small but important region is missing."""
    tissue = _hard(brain_section((96, 96)))
    reference = tissue.copy()
    reference[60:67, 26:33] = 4
    return _labels(reference, tissue)


def _broken() -> Pair:
    """A vessel is cut in two."""
    reference = np.zeros((96, 96), np.int64)
    reference[40:56] = 1
    prediction = reference.copy()
    prediction[:, 47:49] = 0
    return _labels(reference, prediction)


def _grown() -> Pair:
    """Every cell is two pixels too wide on every side."""
    from scipy import ndimage

    rows, columns = np.indices((96, 96))
    inside = (rows % 24 - 12) ** 2 + (columns % 24 - 12) ** 2 < 64
    reference = np.where(inside, 1 + rows // 24 * 4 + columns // 24, 0)
    return _labels(reference, ndimage.grey_dilation(reference, size=5))


def _swapped() -> Pair:
    """The labels of left and right are exchanged."""
    tissue = _hard(brain_section((96, 96)))
    right = np.indices(tissue.shape)[1] >= 48
    reference = np.where(tissue == 3, 3 + right, np.minimum(tissue, 2))
    return _labels(reference, np.select([reference == 3, reference == 4], [4, 3], reference))


def _renumbered() -> Pair:
    """The same regions with different labels."""
    reference = _hard(voronoi((96, 96), regions=5)) + 1
    return _labels(reference, reference % 5 + 1)


def _tiny() -> Pair:
    """Specks of 2 × 2 pixels, each shifted by one pixel along both axes."""
    reference = np.zeros((96, 96), np.int64)
    prediction = reference.copy()
    for number, (row, column) in enumerate(np.ndindex(5, 5), 1):
        top, left = 8 + 18 * row, 8 + 18 * column
        reference[top : top + 2, left : left + 2] = number
        prediction[top + 1 : top + 3, left + 1 : left + 3] = number
    return _labels(reference, prediction)


def _thin() -> Pair:
    """Stripes two pixels wide, all moved by one pixel."""
    reference = np.indices((96, 96))[1] // 2 % 2
    return _labels(reference, np.roll(reference, 1, axis=1))


def _split() -> Pair:
    """Every region is cut in two along a straight line."""
    reference = _hard(voronoi((96, 96), regions=4, seed=1)) + 1
    halves = split(Segmentation.from_labels(reference), 1)
    for label in (2, 3, 4):
        halves = split(halves, 1, region=label)
    return _labels(reference, _hard(halves) + 1)


def _barely_sure() -> Pair:
    """Right everywhere, with a probability of 55 %."""
    reference = _hard(stripes((96, 96), regions=4))
    one_hot = np.eye(4)[reference].transpose(2, 0, 1)
    return (
        Segmentation.from_labels(reference),
        Segmentation.from_probabilities(0.4 * one_hot + 0.15),
    )


def _over_confident() -> Pair:
    """A reference with a probability of 55 %, and a prediction with 98.5 %."""
    one_hot = np.eye(4)[_hard(stripes((96, 96), regions=4))].transpose(2, 0, 1)
    reference, prediction = (sure * one_hot + (1 - sure) / 4 for sure in (0.4, 0.98))
    return (
        Segmentation.from_probabilities(reference),
        Segmentation.from_probabilities(prediction),
    )


def _certain() -> Pair:
    """Equal, except that the prediction rounds probabilities of 0.001 to 0."""
    one_hot = np.eye(4)[_hard(stripes((96, 96), regions=4))].transpose(2, 0, 1)
    reference = 0.996 * one_hot + 0.001
    return Segmentation.from_probabilities(reference), Segmentation.from_probabilities(one_hot)


CASES = {
    "large-background": Case("A large background", "bad", _large_background),
    "one-region": Case("One region for the whole image", "bad", _one_region),
    "every-pixel": Case("A grid of small squares", "bad", _every_pixel),
    "joined": Case("Regions joined", "bad", _joined),
    "missed": Case("A small region missed", "bad", _missed),
    "broken": Case("A broken vessel", "bad", _broken),
    "grown": Case("Outlines too wide", "bad", _grown),
    "swapped": Case("Left and right swapped", "bad", _swapped),
    "over-confident": Case("Over-confidence", "bad", _over_confident),
    "renumbered": Case("Different labels", "good", _renumbered),
    "tiny": Case("Tiny regions, one pixel off", "good", _tiny),
    "thin": Case("A shifted boundary", "good", _thin),
    "split": Case("Regions split", "good", _split),
    "barely-sure": Case("Right, but with low confidence", "good", _barely_sure),
    "certain": Case("Small probabilities rounded to 0", "good", _certain),
}
