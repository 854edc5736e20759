"""The paper's study: do ranks by score follow the ranks that people give?

People rank some segmentations of an image from the most to the least similar to a reference;
their average rank is held against the rank by score.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.errors import InputError
from probdice.paper.answers import Answer, Scored
from probdice.paper.correlation import SAME, average_ranks, pearson, spearman
from probdice.statistics import FEWEST, Interval

__all__ = [
    "PAPER_PEARSON",
    "PAPER_SLOPE",
    "STAND_IN",
    "Fit",
    "RankedPoint",
    "Study",
    "rank_study",
]

Floats = NDArray[np.float64]

STAND_IN = "known degradation strength (stand-in, not a person)"
"""Takes the place of a person where there is no human data; nothing may call it one."""

PAPER_SLOPE = 0.82
"""Slope of the line of best fit that the paper reports."""

PAPER_PEARSON = 0.72
"""Pearson's correlation that the paper reports."""


@dataclass(frozen=True)
class Fit:
    """How the ranks by score follow the average ranks of people.

    Attributes
    ----------
    slope, intercept : float
        Line of best fit: rank by score against average human rank.
    pearson, spearman : float
        Correlations; NaN where one of the two ranks never changes.
    slope_interval, pearson_interval, spearman_interval : Interval
        Bootstrap intervals, by percentiles.
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
    """Average human ranks against ranks by score.

    Attributes
    ----------
    points : tuple of RankedPoint
        Every segmentation of every image.
    images : dict
        The fit of each image.
    overall : Fit
        The fit over all points, as in the paper.
    people : tuple of str
        Who answered.
    """

    points: tuple[RankedPoint, ...]
    images: Mapping[str, Fit]
    overall: Fit
    people: tuple[str, ...]

    @property
    def stand_in(self) -> bool:
        """Whether nobody answered, and a stand-in takes the place of people."""
        return self.people == (STAND_IN,)

    @property
    def title(self) -> str:
        """How much was ranked, and by whom."""
        who = "1 person" if len(self.people) == 1 else f"{len(self.people)} people"
        who = "a stand-in, not by people" if self.stand_in else who
        images = "1 image" if len(self.images) == 1 else f"{len(self.images)} images"
        return f"{len(self.points)} segmentations of {images}, ranked by {who}"

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain types; what is not a number is None."""
        return {
            "people": list(self.people),
            "stand_in": self.stand_in,
            "overall": _plain(self.overall),
            "images": {image: _plain(fit) for image, fit in self.images.items()},
            "points": [_plain(point) for point in self.points],
            "paper": {"slope": PAPER_SLOPE, "pearson": PAPER_PEARSON},
        }


def rank_study(
    answers: Iterable[Answer], scores: Iterable[Scored], *, repeats: int = 2000, seed: int = 0
) -> Study:
    """Hold average human ranks against ranks by score, per image and overall.

    Every person's answers are ranked afresh within an image, so that ties share the mean of
    their places however they were written; so are the scores, the highest first. The line of
    best fit and the correlations are those between the two kinds of rank.

    The bootstrap draws people, with replacement, for the intervals of one image; and people and
    whole images for the overall intervals, since the segmentations of an image are ranked
    against each other and do not vary alone. With fewer than 6 of either there is no interval.

    Parameters
    ----------
    answers : iterable of Answer
        Each person must have ranked all scored segmentations of an image, or none of them.
    scores : iterable of Scored
        One score for every segmentation.
    repeats : int, optional
        Number of bootstrap samples.
    seed : int, optional
        Of the bootstrap.

    Examples
    --------
    >>> from probdice.paper import Answer, Scored, rank_study
    >>> answers = [Answer("Ann", "cup", "a", 1), Answer("Ann", "cup", "b", 2),
    ...            Answer("Ann", "cup", "c", 3)]
    >>> scores = [Scored("cup", "a", 0.9), Scored("cup", "b", 0.7), Scored("cup", "c", 0.7)]
    >>> study = rank_study(answers, scores)
    >>> [point.score_rank for point in study.points]
    [1.0, 2.5, 2.5]
    >>> study.overall.slope, round(study.overall.pearson, 4)
    (0.75, 0.866)
    """
    images = _score_table(scores)
    people, ranks = _rank_table(answers, images)
    first_ends = np.cumsum([0, *(len(entries) for entries in images.values())])
    ranges = [slice(int(a), int(b)) for a, b in pairwise(first_ends)]
    by_score = np.concatenate(
        [average_ranks([-value for value in entries.values()]) for entries in images.values()]
    )
    rng = np.random.default_rng(seed)
    human = _means(ranks, np.ones(len(people)))
    everything = _Sample(ranks, by_score, ranges)
    names = [(image, name) for image, entries in images.items() for name in entries]
    return Study(
        tuple(
            RankedPoint(image, name, float(human[k]), images[image][name], float(by_score[k]))
            for k, (image, name) in enumerate(names)
        ),
        {
            image: _Sample(ranks[:, part], by_score[part], [slice(None)]).fit(repeats, rng)
            for image, part in zip(images, ranges, strict=True)
        },
        everything.fit(repeats, rng),
        tuple(people),
    )


@dataclass(frozen=True, eq=False)
class _Sample:
    """Ranks of people (rows) and by score, and which columns belong to one image."""

    ranks: Floats
    by_score: Floats
    images: Sequence[slice]

    def fit(self, repeats: int, rng: np.random.Generator) -> Fit:
        people = len(self.ranks)
        values = _fitted(_means(self.ranks, np.ones(people)), self.by_score)
        if max(people, len(self.images)) < FEWEST:
            several = len(self.images) > 1
            reason = f"fewer than {FEWEST} people" + (" and images" if several else "")
            withheld = Interval(nan, nan, "withheld", reason)
            return Fit(*values, withheld, withheld, withheld)
        drawn = np.array([self._drawn(rng) for _ in range(repeats)]).reshape(-1, 4)
        slope, _, correlation, rank_correlation = (_interval(drawn[:, k]) for k in range(4))
        return Fit(*values, slope, correlation, rank_correlation)

    def _drawn(self, rng: np.random.Generator) -> tuple[float, float, float, float]:
        people = len(self.ranks)
        weights = np.bincount(rng.integers(people, size=people), minlength=people)
        human = _means(self.ranks, weights.astype(np.float64))
        chosen = rng.integers(len(self.images), size=len(self.images))
        columns = np.concatenate([np.arange(human.size)[self.images[k]] for k in chosen])
        columns = columns[np.isfinite(human[columns])]
        return _fitted(human[columns], self.by_score[columns])


def _fitted(human: Floats, by_score: Floats) -> tuple[float, float, float, float]:
    """Slope and intercept of the line of best fit, Pearson's and Spearman's correlation."""
    if human.size == 0 or np.ptp(human) <= SAME:
        return nan, nan, nan, nan
    x, y = human - human.mean(), by_score - by_score.mean()
    slope = float(np.sum(x * y) / np.sum(x**2))
    intercept = float(by_score.mean() - slope * human.mean())
    return slope, intercept, pearson(human, by_score), spearman(human, by_score)


def _means(ranks: Floats, weights: Floats) -> Floats:
    """Weighted mean of every column over the people who answered it; NaN where none did."""
    answered = np.isfinite(ranks)
    totals = weights @ np.where(answered, ranks, 0)
    counts = weights @ answered
    means: Floats = np.full(totals.shape, nan)
    np.divide(totals, counts, out=means, where=counts > 0)
    return means


def _interval(values: Floats) -> Interval:
    values = values[np.isfinite(values)]
    if values.size == 0:
        return Interval(nan, nan, "withheld", "no sample has a value")
    low, high = np.percentile(values, [2.5, 97.5])
    return Interval(float(low), float(high), "percentile", "people and images are drawn together")


def _score_table(scores: Iterable[Scored]) -> dict[str, dict[str, float]]:
    images: dict[str, dict[str, float]] = {}
    for entry in scores:
        if not isfinite(entry.score):
            raise InputError(
                f"scores: {entry.segmentation!r} of image {entry.image!r} has no finite score"
            )
        entries = images.setdefault(entry.image, {})
        if entry.segmentation in entries:
            raise InputError(f"scores: {entry.segmentation!r} of image {entry.image!r} comes twice")
        entries[entry.segmentation] = entry.score
    if not images:
        raise InputError("scores: there are none")
    return images


def _rank_table(
    answers: Iterable[Answer], images: Mapping[str, Mapping[str, float]]
) -> tuple[list[str], Floats]:
    """The people, and their ranks afresh: a row a person, a column a segmentation."""
    given: dict[str, dict[str, dict[str, float]]] = {}
    for answer in answers:
        if answer.segmentation not in images.get(answer.image, {}):
            raise InputError(
                f"scores: {answer.segmentation!r} of image {answer.image!r} has none, but "
                f"{answer.person!r} ranked it"
            )
        ranks = given.setdefault(answer.person, {}).setdefault(answer.image, {})
        if answer.segmentation in ranks:
            raise InputError(
                f"rankings: {answer.person!r} ranked {answer.segmentation!r} of image "
                f"{answer.image!r} twice"
            )
        ranks[answer.segmentation] = answer.rank
    rows = []
    for person, by_image in given.items():
        row: list[float] = []
        for image, entries in images.items():
            ranks = by_image.get(image, {})
            missing = [name for name in entries if name not in ranks]
            if ranks and missing:
                raise InputError(
                    f"rankings: {person!r} ranked {len(ranks)} of the {len(entries)} segmentations "
                    f"of image {image!r}; {missing[0]!r} is missing"
                )
            afresh = average_ranks([ranks.get(name, 0) for name in entries])
            row += afresh.tolist() if ranks else [nan] * len(entries)
        rows.append(row)
    table = np.array(rows)
    if not given or not np.isfinite(table).any(axis=0).all():
        lacking = [image for image in images if not any(image in row for row in given.values())]
        raise InputError(f"rankings: nobody ranked image {', '.join(map(repr, lacking))}")
    return list(given), table


def _plain(value: Any) -> Any:
    """Plain types of a dataclass; None for NaN."""
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    return None if isinstance(value, float) and not isfinite(value) else value
