"""The data behind the paper's figures: one function each, from our own comparisons.

What concerns pairs of regions is in `pairs`; the drawings, called `draw_…`, are in `drawings` and
`correspondence`.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from probdice.comparison import compare
from probdice.errors import ProbdiceWarning
from probdice.result import Comparison
from probdice.segmentation import Segmentation
from probdice.similarity import Absolute, Aitchison, Similarity
from probdice.synthesis import blur, deform, noise

__all__ = [
    "VERSIONS",
    "DegradationTable",
    "DiceForms",
    "PixelSimilarities",
    "TwoRegions",
    "Version",
    "degradation_table",
    "degraded",
    "dice_forms",
    "pixel_similarities",
    "score",
    "two_regions",
]

Floats = NDArray[np.float64]

PIXELS_OF_BLUR, PIXELS_OF_DEFORMATION, NOISE = 0.8, 1.5, 0.25  # one unit of strength of each


@dataclass(frozen=True, eq=False)
class DiceForms:
    """Both forms of the crisp coefficient over all binary pairs.

    Attributes
    ----------
    foreground, background : ndarray
        Fractions of the pixels that are foreground, or background, in both segmentations.
    s1, s2 : ndarray
        The coefficient of the S₁ and of the S₂ form; rows are `background`, columns
        `foreground`. NaN where the two fractions sum to more than 1, and S₁ at (0, 1).
    """

    foreground: Floats
    background: Floats
    s1: Floats
    s2: Floats


def dice_forms(points: int = 201) -> DiceForms:
    """The S₁ against the S₂ form of the coefficient over the binary plane.

    With a the fraction of pixels that are foreground in both segmentations and b that of
    background in both, ``S₁ = 2a / (1 + a − b)`` and ``S₂ = a + b``. Where everything is
    background, at (0, 1), S₁ is 0/0 and S₂ is 1.

    Examples
    --------
    >>> from probdice.paper import dice_forms
    >>> forms = dice_forms(5)
    >>> float(forms.s1[1, 2]), float(forms.s2[1, 2])  # a = 0.5, b = 0.25
    (0.8, 0.75)
    >>> float(forms.s1[4, 0]), float(forms.s2[4, 0])  # a = 0, b = 1
    (nan, 1.0)
    """
    fractions = np.linspace(0, 1, points)
    a, b = fractions[None, :], fractions[:, None]
    possible = a + b <= 1 + 1e-12
    s1 = np.full((points, points), np.nan)
    np.divide(2 * a, 1 + a - b, out=s1, where=possible & (1 + a - b > 1e-12))
    return DiceForms(fractions, fractions, s1, np.where(possible, np.minimum(a + b, 1), np.nan))


@dataclass(frozen=True, eq=False)
class TwoRegions:
    """f₁ and f₂ of two regions.

    Attributes
    ----------
    probability : ndarray
        Probability of the first region.
    f1, f2 : ndarray
        The similarities; rows are the reference's probability, columns the prediction's.
    """

    probability: Floats
    f1: Floats
    f2: Floats


def two_regions(points: int = 201) -> TwoRegions:
    """f₁ and f₂ for two regions over all pairs of probabilities, certainty included.

    Examples
    --------
    >>> from probdice.paper import two_regions
    >>> data = two_regions(11)
    >>> round(float(data.f1[9, 7]), 12), round(float(data.f2[9, 7]), 12)  # 0.9 against 0.7
    (0.8, 0.511628723387)
    """
    probability = np.linspace(0, 1, points)
    reference = np.stack([probability, 1 - probability])[:, :, None]
    prediction = np.stack([probability, 1 - probability])[:, None, :]
    return TwoRegions(
        probability, Absolute()(reference, prediction), Aitchison()(reference, prediction)
    )


@dataclass(frozen=True, eq=False)
class PixelSimilarities:
    """Maps of f₁ and f₂ of some predictions against one reference, and their means."""

    reference: Segmentation
    predictions: tuple[Segmentation, ...]
    f1: tuple[NDArray[np.float32], ...]
    f2: tuple[NDArray[np.float32], ...]
    d1: tuple[float, ...]
    d2: tuple[float, ...]


def pixel_similarities(
    reference: Segmentation, predictions: Sequence[Segmentation]
) -> PixelSimilarities:
    """f₁ and f₂ at every pixel, labels taken as corresponding.

    Examples
    --------
    >>> import numpy as np
    >>> from probdice import Segmentation
    >>> from probdice.paper import pixel_similarities
    >>> reference = Segmentation.from_probabilities([[0.9, 0.5], [0.1, 0.5]])
    >>> prediction = Segmentation.from_probabilities([[0.7, 0.5], [0.3, 0.5]])
    >>> data = pixel_similarities(reference, [prediction])
    >>> np.round(data.f1[0], 4).tolist(), round(data.d2[0], 6)
    ([0.800000011920929, 1.0], 0.755814)
    """
    absolute = [score(reference, prediction, "absolute") for prediction in predictions]
    aitchison = [score(reference, prediction, "aitchison") for prediction in predictions]
    return PixelSimilarities(
        reference,
        tuple(predictions),
        tuple(result.map() for result in absolute),
        tuple(result.map() for result in aitchison),
        tuple(result.score for result in absolute),
        tuple(result.score for result in aitchison),
    )


@dataclass(frozen=True)
class Version:
    """One column of the table: how much of each degradation, and the strength of it all."""

    name: str
    strength: float
    blur: float = 0.0
    deform: float = 0.0
    noise: float = 0.0


def _all_three(strength: float) -> Version:
    # Each kind counts as one direction, so that the three of them make up the strength.
    part = strength / 3**0.5
    return Version(
        "all three",
        strength,
        round(part * PIXELS_OF_BLUR, 2),
        round(part * PIXELS_OF_DEFORMATION, 2),
        round(part * NOISE, 2),
    )


VERSIONS = (
    Version("blur 0.8", 1, blur=1 * PIXELS_OF_BLUR),
    Version("deform 3", 2, deform=2 * PIXELS_OF_DEFORMATION),
    Version("noise 0.75", 3, noise=3 * NOISE),
    Version("blur 3.2", 4, blur=4 * PIXELS_OF_BLUR),
    Version("deform 7.5", 5, deform=5 * PIXELS_OF_DEFORMATION),
    Version("noise 1.5", 6, noise=6 * NOISE),
    _all_three(7),
)
"""The seven degraded versions of every image, by rising strength."""


def degraded(reference: Segmentation, version: Version, *, seed: int = 0) -> Segmentation:
    """One version of a segmentation: deformed, then blurred, then made noisy.

    Examples
    --------
    >>> from probdice.paper import VERSIONS, degraded
    >>> from probdice.synthesis import stripes
    >>> degraded(stripes((16, 16)), VERSIONS[0])
    Segmentation(regions=(0, 1, 2, 3), shape=(16, 16), float32)
    """
    spoilt = deform(reference, version.deform, seed=seed)
    return noise(blur(spoilt, version.blur), version.noise, seed=seed + 1)


@dataclass(frozen=True, eq=False)
class DegradationTable:
    """D₁ and D₂ of every image's degraded versions.

    Attributes
    ----------
    references : dict
        The images by their name.
    versions : tuple of Version
        The columns.
    predictions : dict
        For every image, its degraded versions.
    d1, d2 : ndarray
        Scores; rows are images, columns versions.
    """

    references: Mapping[str, Segmentation]
    versions: tuple[Version, ...]
    predictions: Mapping[str, tuple[Segmentation, ...]]
    d1: Floats
    d2: Floats


def degradation_table(
    references: Mapping[str, Segmentation],
    *,
    versions: Sequence[Version] = VERSIONS,
    seed: int = 0,
) -> DegradationTable:
    """The table of images × degradations, with D₁ and D₂.

    Examples
    --------
    >>> from probdice.paper import degradation_table
    >>> from probdice.synthesis import stripes
    >>> table = degradation_table({"stripes": stripes((32, 32))})
    >>> table.d1.shape, bool((table.d1 < 1).all())
    ((1, 7), True)
    """
    predictions = {
        name: tuple(
            degraded(reference, version, seed=seed + 100 * row + 10 * column)
            for column, version in enumerate(versions)
        )
        for row, (name, reference) in enumerate(references.items())
    }

    def scores(similarity: str) -> Floats:
        return np.array(
            [
                [score(references[name], prediction, similarity).score for prediction in row]
                for name, row in predictions.items()
            ]
        )

    return DegradationTable(
        dict(references), tuple(versions), predictions, scores("absolute"), scores("aitchison")
    )


def score(
    reference: Segmentation,
    prediction: Segmentation,
    similarity: str | Similarity,
    *,
    match: bool = False,
    merge: Literal["none", "prediction"] = "none",
) -> Comparison:
    """A comparison without the warning about contradicted certainty, which is expected here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbdiceWarning)
        return compare(reference, prediction, similarity=similarity, match=match, merge=merge)
