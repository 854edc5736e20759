"""The rank study, compared with values worked by hand and with SciPy, and its errors."""

from collections.abc import Mapping, Sequence
from math import isnan, sqrt
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from probdice.errors import FormatError, InputError
from probdice.paper import (
    STAND_IN,
    Answer,
    Scored,
    rank_study,
    read_rankings,
    read_scores,
)
from probdice.paper.study import spearman


def answers_of(ranks: Mapping[str, Sequence[float]], image: str = "cup") -> list[Answer]:
    """Answers from ranks by person, of segmentations a, b, …"""
    return [
        Answer(person, image, chr(ord("a") + k), rank)
        for person, given in ranks.items()
        for k, rank in enumerate(given)
    ]


def scores_of(values: Sequence[float], image: str = "cup") -> list[Scored]:
    return [Scored(image, chr(ord("a") + k), value) for k, value in enumerate(values)]


def test_a_table_with_ties_worked_by_hand() -> None:
    # Ann's tie shares places 2 and 3: 1, 2.5, 2.5, 4. Bob: 2, 1, 3, 4.
    # Averages 1.5, 1.75, 2.75, 4; by score 1.5, 1.5, 3, 4; both have mean 2.5.
    # Sxy = 4.125, Sxx = 3.875, Syy = 4.5; of the ranks of the averages 4.5, 5 and 4.5.
    study = rank_study(
        answers_of({"Ann": (1, 2, 2, 4), "Bob": (2, 1, 3, 4)}), scores_of((0.9, 0.9, 0.5, 0.1))
    )
    assert [point.human_rank for point in study.points] == [1.5, 1.75, 2.75, 4]
    assert [point.score_rank for point in study.points] == [1.5, 1.5, 3, 4]
    for fit in (study.overall, study.images["cup"]):
        assert fit.slope == pytest.approx(4.125 / 3.875, abs=1e-12)
        assert fit.intercept == pytest.approx(2.5 - 2.5 * 4.125 / 3.875, abs=1e-12)
        assert fit.pearson == pytest.approx(4.125 / sqrt(3.875 * 4.5), abs=1e-12)
        assert fit.spearman == pytest.approx(4.5 / sqrt(5 * 4.5), abs=1e-12)
    assert study.people == ("Ann", "Bob")
    assert study.overall.slope_interval.kind == "withheld"


@pytest.mark.parametrize(
    "written", [(1, 2, 2, 4), (1, 2, 2, 3), (1, 2.5, 2.5, 4), (10, 20, 20, 40)]
)
def test_ties_are_equal_for_any_notation(written: tuple[float, ...]) -> None:
    study = rank_study(answers_of({"Ann": written}), scores_of((0.9, 0.8, 0.7, 0.6)))
    assert [point.human_rank for point in study.points] == [1, 2.5, 2.5, 4]


def test_spearman_by_hand() -> None:
    # Ranks 1, 2, 3, 4 and 1, 2, 3.5, 3.5: Sxy = 4.5, Sxx = 5, Syy = 4.5.
    assert spearman([1, 2, 3, 4], [10, 100, 1000, 1000 + 1e-13]) == pytest.approx(sqrt(0.9))
    assert isnan(spearman([1, 2, 3], [5, 5, 5])) and isnan(spearman([0], [1]))


def test_the_overall_fit_agrees_with_scipy() -> None:
    rng = np.random.default_rng(1)
    answers, scores = [], []
    for image in ("a", "b", "c"):
        for person in range(8):
            ranks = rng.integers(1, 6, 5)
            answers += [Answer(f"p{person}", image, str(k), float(r)) for k, r in enumerate(ranks)]
        scores += [Scored(image, str(k), float(v)) for k, v in enumerate(rng.integers(0, 4, 5))]
    study = rank_study(answers, scores, repeats=10)
    human, by_score = [], []
    for image in ("a", "b", "c"):
        given = np.array(
            [
                [a.rank for a in answers if a.image == image and a.person == f"p{p}"]
                for p in range(8)
            ]
        )
        human += stats.rankdata(given, axis=1).mean(axis=0).tolist()
        by_score += stats.rankdata([-s.score for s in scores if s.image == image]).tolist()
    line = stats.linregress(human, by_score)
    assert study.overall.slope == pytest.approx(line.slope, abs=1e-12)
    assert study.overall.intercept == pytest.approx(line.intercept, abs=1e-12)
    assert study.overall.pearson == pytest.approx(line.rvalue, abs=1e-12)
    expected = stats.spearmanr(np.round(human, 9), by_score).statistic
    assert study.overall.spearman == pytest.approx(expected, abs=1e-12)


def _noisy(people: int, images: int = 4, seed: int = 3) -> tuple[list[Answer], list[Scored]]:
    rng = np.random.default_rng(seed)
    answers = [
        Answer(f"p{person}", f"i{image}", str(k), float(rank))
        for person in range(people)
        for image in range(images)
        for k, rank in enumerate(np.argsort(np.argsort(np.arange(7) + rng.normal(0, 2, 7))) + 1)
    ]
    scores = [Scored(f"i{image}", str(k), 1 - 0.1 * k) for image in range(images) for k in range(7)]
    return answers, scores


def test_intervals_are_seeded_and_contain_the_estimate() -> None:
    answers, scores = _noisy(people=12)
    first, again = (rank_study(answers, scores, repeats=300, seed=5) for _ in range(2))
    other = rank_study(answers, scores, repeats=300, seed=6)
    assert first == again
    assert first.overall.pearson_interval != other.overall.pearson_interval
    fits = [first.overall, *first.images.values()]
    for fit in fits:
        assert fit.pearson_interval.low <= fit.pearson <= fit.pearson_interval.high
        assert fit.pearson_interval.low > 0.3
        assert fit.slope_interval.low < fit.slope_interval.high


def test_intervals_narrow_with_more_people() -> None:
    widths = []
    for people in (6, 60):
        interval = rank_study(*_noisy(people, images=1), repeats=400).overall.slope_interval
        widths.append(interval.high - interval.low)
    assert widths[1] < 0.6 * widths[0]


def test_intervals_of_few_are_withheld() -> None:
    study = rank_study(*_noisy(people=3, images=6), repeats=50)
    assert study.images["i0"].pearson_interval.reason == "fewer than 6 people"
    assert isnan(study.images["i0"].pearson_interval.low)
    assert study.overall.pearson_interval.kind == "percentile"
    few = rank_study(*_noisy(people=2, images=2), repeats=50)
    assert few.overall.slope_interval.reason == "fewer than 6 people and fewer than 6 images"


def test_people_may_skip_an_image() -> None:
    answers = answers_of({"Ann": (1, 2), "Bob": (2, 1)}) + answers_of({"Bob": (1, 2)}, "hat")
    study = rank_study(answers, scores_of((0.9, 0.1)) + scores_of((0.9, 0.1), "hat"))
    assert [point.human_rank for point in study.points] == [1.5, 1.5, 1, 2]
    assert isnan(study.images["cup"].slope)  # all ranks are equal
    assert study.images["hat"].slope == 1
    assert study.to_dict()["images"]["cup"]["slope"] is None


def test_equal_scores_have_no_correlation() -> None:
    fit = rank_study(answers_of({"Ann": (1, 2, 3)}), scores_of((0.5, 0.5, 0.5))).overall
    assert fit.slope == 0 and isnan(fit.pearson) and isnan(fit.spearman)


def test_a_stand_in_is_never_called_a_person() -> None:
    study = rank_study([Answer(STAND_IN, "cup", "a", 1), Answer(STAND_IN, "cup", "b", 2)],
                       scores_of((0.9, 0.1)))  # fmt: skip
    assert study.stand_in
    assert study.title == (
        "2 segmentations of 1 image, ranked by known degradation strength, not by people"
    )
    assert study.to_dict()["stand_in"] is True
    real = rank_study(answers_of({"Ann": (1, 2)}), scores_of((0.9, 0.1)))
    assert real.title == "2 segmentations of 1 image, ranked by 1 person"


@pytest.mark.parametrize(
    ("answers", "scores", "message"),
    [
        (answers_of({"Ann": (1, 2)}), scores_of((0.9, 0.5, 0.1)), "'c' is missing"),
        (answers_of({"Ann": (1, 2, 3)}), scores_of((0.9, 0.5)), "'c' of image 'cup' has no score"),
        (answers_of({"Ann": (1, 2)}) * 2, scores_of((0.9, 0.5)), "'a' of image 'cup' twice"),
        (answers_of({"Ann": (1, 2)}), scores_of((0.9, 0.5)) * 2, "occurs twice"),
        (answers_of({"Ann": (1, 2)}), scores_of((0.9, np.nan)), "a finite score, found nan"),
        (answers_of({"Ann": (1, 2)}), [], "the table is empty"),
        ([], scores_of((0.9, 0.5)), "no person ranked image 'cup'"),
        (answers_of({"Ann": (1, 2)}), scores_of((1, 0)) + scores_of((1, 0), "hat"), "image 'hat'"),
    ],
)
def test_inconsistent_answers_and_scores_are_reported(
    answers: list[Answer], scores: list[Scored], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        rank_study(answers, scores)


def test_files_are_read(tmp_path: Path) -> None:
    rankings = tmp_path / "rankings.csv"
    rankings.write_text(
        "\ufeffperson,letter,image,segmentation,rank\r\nAnn,A,cup, x ,1\r\nAnn,B,cup,y,2.5\r\n"
        'Bob,A,"cup",x,\r\n',
        encoding="utf-8",
    )
    assert read_rankings(rankings) == [Answer("Ann", "cup", "x", 1), Answer("Ann", "cup", "y", 2.5)]
    scores = tmp_path / "scores.csv"
    scores.write_text("image,segmentation,D1,D2\ncup,x,0.9,0.5\n")
    assert read_scores(scores, column="D2") == [Scored("cup", "x", 0.5)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"person,image,rank\n",
            "column 'segmentation' is missing, found 'person', 'image', 'rank'",
        ),
        (
            b"person;image;segmentation;rank\n",
            "columns 'person', .* are missing, .* Separate columns by commas.",
        ),
        (b"", "found nothing"),
        (b"person,image,segmentation,rank\n", "no row has a rank"),
        (b"person,image,segmentation,rank\nAnn,cup,a,first\n", "2: rank must be a finite number"),
        (b"person,image,segmentation,rank\nAnn,cup,a,inf\n", "2: rank must be a finite number"),
        (b"person,image,segmentation,rank\nAnn,cup\n", "no row has a rank"),
        (b"\xff\xfe\x00", "cannot be read as a table: it is not UTF-8 text"),
    ],
)
def test_invalid_files_are_reported(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "rankings.csv"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=message) as caught:
        read_rankings(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"nowhere\.csv: cannot be read: No such file"):
        read_scores(tmp_path / "nowhere.csv")
