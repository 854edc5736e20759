"""The paper's study, which tests whether ranks by score agree with human ranks.

People rank segmentations of an image from the most similar to the least similar to a reference. The
average human rank is compared with the rank by score.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import isfinite, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.errors import InputError
from probdice.evaluation.intervals import MIN_SUBJECTS, Interval
from probdice.files.atomic_files import null_for_nan
from probdice.paper.answers import Answer, Scored

Floats = NDArray[np.float64]

PAPER_SLOPE, PAPER_PEARSON = 0.82, 0.72  # values that the paper reports
# Replaces the name of a person if there are no human data. Never present it as a person.
STAND_IN = "known degradation strength (stand-in, not a person)"


@dataclass(frozen=True)
class Fit:
    """Regression of the ranks by score on the average human ranks.

    Attributes
    ----------
    slope : float
        Slope of the line that predicts the rank by score from the average human rank, or NaN if
        all average human ranks are equal.
    intercept : float
        Intercept of the regression line, or NaN if all average human ranks are equal.
    pearson : float
        Pearson's correlation, or NaN if all average human ranks or all ranks by score are equal.
    spearman : float
        Spearman's correlation, or NaN in the same cases as `pearson`.
    slope_interval : Interval
        95 % percentile bootstrap confidence interval of the slope.
    pearson_interval : Interval
        95 % percentile bootstrap confidence interval of Pearson's correlation.
    spearman_interval : Interval
        95 % percentile bootstrap confidence interval of Spearman's correlation.
    """

    slope: float
    intercept: float
    pearson: float
    spearman: float
    slope_interval: Interval
    pearson_interval: Interval
    spearman_interval: Interval


@dataclass(frozen=True)
class RankedPoint:
    """One segmentation: its average human rank, its score, and its rank by score."""

    image: str
    segmentation: str
    human_rank: float
    score: float
    score_rank: float


@dataclass(frozen=True)
class Study:
    """Average human ranks and ranks by score.

    Attributes
    ----------
    points : tuple of RankedPoint
        Every segmentation of every image.
    images : dict
        The fit of each image.
    overall : Fit
        The fit over all points, as in the paper.
    people : tuple of str
        The people who answered.
    """

    points: tuple[RankedPoint, ...]
    images: Mapping[str, Fit]
    overall: Fit
    people: tuple[str, ...]

    @property
    def stand_in(self) -> bool:
        """Whether known degradation strengths replace the answers of people."""
        return self.people == (STAND_IN,)

    @property
    def title(self) -> str:
        """Text with the numbers of ranked segmentations, images and people."""
        who = "1 person" if len(self.people) == 1 else f"{len(self.people)} people"
        who = "known degradation strength, not by people" if self.stand_in else who
        images = "1 image" if len(self.images) == 1 else f"{len(self.images)} images"
        return f"{len(self.points)} segmentations of {images}, ranked by {who}"

    def to_dict(self) -> dict[str, Any]:
        """Return the study as a dictionary of built-in Python types. NaN becomes None."""
        content = {
            "people": self.people,
            "stand_in": self.stand_in,
            "overall": asdict(self.overall),
            "images": {image: asdict(fit) for image, fit in self.images.items()},
            "points": [asdict(point) for point in self.points],
            "paper": {"slope": PAPER_SLOPE, "pearson": PAPER_PEARSON},
        }
        return dict(null_for_nan(content))


def rank_study(
    answers: Iterable[Answer], scores: Iterable[Scored], *, repeats: int = 2000, seed: int = 0
) -> Study:
    """Compare average human ranks with ranks by score, per image and overall.

    The answers of each person are ranked again within an image, so that tied answers get their mean
    rank. Scores are ranked in the same way, with the highest score first. The regression line and
    the correlations are computed from these two kinds of ranks.

    For the confidence intervals of one image, the bootstrap resamples people. For the overall
    confidence intervals, the bootstrap resamples people and whole images, because the segmentations
    of an image are ranked relative to each other. The confidence intervals of one image require at
    least 6 people. The overall confidence intervals require at least 6 people or 6 images.

    Parameters
    ----------
    answers : iterable of Answer
        Each person must have ranked all scored segmentations of an image, or none.
    scores : iterable of Scored
        One score for every segmentation.
    repeats : int, optional
        Number of bootstrap samples.
    seed : int, optional
        Seed of the bootstrap.

    Examples
    --------
    >>> from probdice.paper import Answer, Scored, rank_study
    >>> answers = [Answer("Ann", "cup", "a", 1), Answer("Ann", "cup", "b", 2),
    ...            Answer("Ann", "cup", "c", 3)]
    >>> scores = [Scored("cup", "a", 0.9), Scored("cup", "b", 0.7), Scored("cup", "c", 0.7)]
    >>> study = rank_study(answers, scores)
    >>> [point.score_rank for point in study.points]
    [1.0, 2.5, 2.5]
    >>> round(study.overall.slope, 4), round(study.overall.pearson, 4)
    (0.75, 0.866)
    """
    from scipy.stats import rankdata

    images = _score_table(scores)
    people, ranks = _rank_table(answers, images)
    ends = np.cumsum([0, *map(len, images.values())]).tolist()
    columns = [np.arange(first, last) for first, last in pairwise(ends)]
    values = np.array([score for entries in images.values() for score in entries.values()])
    by_score = np.concatenate([rankdata(-values[of_image]) for of_image in columns])
    rng = np.random.default_rng(seed)
    names = [(image, name) for image, entries in images.items() for name in entries]
    numbers = zip(_mean_ranks(ranks).tolist(), values.tolist(), by_score.tolist(), strict=True)
    return Study(
        tuple(RankedPoint(*name, *row) for name, row in zip(names, numbers, strict=True)),
        {
            image: _fit(ranks, by_score, [of_image], repeats, rng)
            for image, of_image in zip(images, columns, strict=True)
        },
        _fit(ranks, by_score, columns, repeats, rng),
        tuple(people),
    )


def spearman(x: Sequence[float] | Floats, y: Sequence[float] | Floats) -> float:
    """Return Spearman's rank correlation, or NaN if `x` or `y` is constant."""
    from scipy.stats import rankdata

    # Numbers are rounded, because mathematically equal numbers may differ in their last digits.
    return _pearson(rankdata(np.round([x, y], 12), axis=1))


def _fit(
    ranks: Floats,
    by_score: Floats,
    images: Sequence[NDArray[np.int64]],
    repeats: int,
    rng: np.random.Generator,
) -> Fit:
    """Return the fit for the given images, with bootstrap confidence intervals.

    Each item of `images` contains the columns of one image.
    """
    columns = np.concatenate(images)
    values = _line(_mean_ranks(ranks)[columns], by_score[columns])
    if max(len(ranks), len(images)) < MIN_SUBJECTS:
        reason = f"fewer than {MIN_SUBJECTS} people" + (
            f" and fewer than {MIN_SUBJECTS} images" if len(images) > 1 else ""
        )
        return Fit(*values, *[Interval(nan, nan, "withheld", reason)] * 3)
    samples = []
    for _ in range(repeats):
        human = _mean_ranks(ranks[rng.integers(len(ranks), size=len(ranks))])
        image_indices = rng.integers(len(images), size=len(images))
        columns = np.concatenate([images[k] for k in image_indices])
        columns = columns[np.isfinite(human[columns])]
        samples.append(_line(human[columns], by_score[columns]))
    reason = "people and images are resampled" if len(images) > 1 else "people are resampled"
    slope, _, pearson, rank_correlation = (
        _interval(column, reason) for column in np.array(samples).reshape(-1, 4).T
    )
    return Fit(*values, slope, pearson, rank_correlation)


def _line(human: Floats, by_score: Floats) -> tuple[float, float, float, float]:
    """Return the slope and the intercept of the regression line, and both correlations."""
    if human.size == 0 or not np.ptp(human):
        return nan, nan, nan, nan
    # SciPy's linregress and pearsonr also compute p-values, which makes the bootstrap four times
    # slower.
    covariance = np.asarray(np.cov(human, by_score))
    slope = float(covariance[0, 1] / covariance[0, 0])
    intercept = float(by_score.mean() - slope * human.mean())
    return slope, intercept, _pearson(np.stack([human, by_score])), spearman(human, by_score)


def _pearson(rows: Floats) -> float:
    """Return the correlation of two rows, or NaN if one row is constant."""
    return float(np.asarray(np.corrcoef(rows))[0, 1]) if np.ptp(rows, axis=1).all() else nan


def _mean_ranks(ranks: Floats) -> Floats:
    """Return the mean of every column over the people who answered; NaN for an empty column."""
    has_rank = np.isfinite(ranks)
    means: Floats = np.full(ranks.shape[1], nan)
    counts = has_rank.sum(axis=0)
    np.divide(np.where(has_rank, ranks, 0).sum(axis=0), counts, out=means, where=counts > 0)
    return np.round(means, 12)  # so that mathematically equal numbers compare equal


def _interval(values: Floats, reason: str) -> Interval:
    values = values[np.isfinite(values)]
    if values.size == 0:
        return Interval(nan, nan, "withheld", "no bootstrap sample has a value")
    low, high = np.percentile(values, [2.5, 97.5])
    return Interval(float(low), float(high), "percentile", reason)


def _score_table(scores: Iterable[Scored]) -> dict[str, dict[str, float]]:
    """Check the scores, and return them by image and segmentation."""
    images: dict[str, dict[str, float]] = {}
    for entry in scores:
        description = f"scores: {entry.segmentation!r} of image {entry.image!r}"
        if not isfinite(entry.score):
            raise InputError(f"{description} must have a finite score, found {entry.score}")
        if entry.segmentation in images.setdefault(entry.image, {}):
            raise InputError(f"{description} occurs twice")
        images[entry.image][entry.segmentation] = entry.score
    if not images:
        raise InputError("scores: the table is empty")
    return images


def _rank_table(
    answers: Iterable[Answer], images: Mapping[str, Mapping[str, float]]
) -> tuple[list[str], Floats]:
    """Rank each person's answers within each image.

    Return the people, and a table with one row per person and one column per segmentation.
    """
    from scipy.stats import rankdata

    ranks_of: dict[str, dict[tuple[str, str], float]] = {}
    for answer in answers:
        key = answer.image, answer.segmentation
        description = f"{answer.segmentation!r} of image {answer.image!r}"
        if answer.segmentation not in images.get(answer.image, {}):
            raise InputError(f"scores: {description} has no score, but {answer.person!r} ranked it")
        if key in ranks_of.setdefault(answer.person, {}):
            raise InputError(f"rankings: {answer.person!r} ranked {description} twice")
        ranks_of[answer.person][key] = answer.rank
    rows: list[list[float]] = []
    for person, ranks in ranks_of.items():
        rows.append([])
        for image, entries in images.items():
            missing = [name for name in entries if (image, name) not in ranks]
            if 0 < len(missing) < len(entries):
                raise InputError(
                    f"rankings: {person!r} ranked {len(entries) - len(missing)} of the "
                    f"{len(entries)} segmentations of image {image!r}; {missing[0]!r} is missing"
                )
            image_ranks = [ranks.get((image, name), nan) for name in entries]
            rows[-1] += image_ranks if missing else rankdata(image_ranks).tolist()
    ranked_images = {image for ranks in ranks_of.values() for image, _ in ranks}
    if ranked_images != set(images):
        missing_images = ", ".join(repr(image) for image in images if image not in ranked_images)
        raise InputError(f"rankings: no person ranked image {missing_images}")
    return list(ranks_of), np.array(rows)
