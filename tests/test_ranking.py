"""Ranking schemes compared with hand computations, SciPy and challengeR."""

import math
from itertools import permutations
from typing import get_args

import numpy as np
import pytest
import scipy.stats

from probdice.errors import InputError
from probdice.evaluation.intervals import Floats
from probdice.evaluation.paired_test import one_sided
from probdice.evaluation.ranking import (
    Rank,
    Scores,
    case_ranks,
    joint_ranks,
    kendall,
    ranks,
)
from probdice.evaluation.ranking_schemes import RANKING_SCHEMES
from probdice.options import SCHEMES, MissingRule, Scheme

NAN = float("nan")
SCORES = [0.71, 0.83, 0.64, 0.92, 0.88, 0.79, 0.95, 0.58]
THREE = {
    "a": [0.5, 0.8, 0.5, 0.9],
    "b": [0.6, 0.8, 0.4, 0.9],
    "c": [0.1, 0.2, 0.9, NAN],
}


@pytest.mark.parametrize("rule", ["worst", "zero"])
def test_ranks_equal_a_hand_computation(rule: MissingRule) -> None:
    # Per case: b a c; a and b share 1.5, c 3; c a b; a and b share 1.5, c has no value and is last.
    ranking = ranks(THREE, missing=rule)
    assert [rank.method for rank in ranking] == ["a", "b", "c"]
    assert [rank.mean_rank for rank in ranking] == [7 / 4, 7 / 4, 10 / 4]
    assert [rank.place for rank in ranking] == [1, 1, 3]
    assert [(rank.n, rank.last) for rank in ranking] == [(4, 0), (4, 0), (4, 1)]
    assert {rank.place_interval.kind for rank in ranking} == {"withheld"}
    assert all(math.isnan(rank.stability) and rank.shares == () for rank in ranking)


def test_cases_that_one_method_lacks_may_be_excluded_for_all() -> None:
    ranking = ranks(THREE, missing="exclude")
    assert [rank.mean_rank for rank in ranking] == pytest.approx([5.5 / 3, 5.5 / 3, 7 / 3])
    assert [rank.place for rank in ranking] == [1, 1, 3]
    assert {(rank.n, rank.last) for rank in ranking} == {(3, 0)}


def test_a_method_without_values_does_not_prevent_the_ranking_of_others() -> None:
    broken = THREE | {"broken": [NAN] * 4}
    ranking = ranks(broken, missing="exclude")
    assert [(rank.method, rank.place) for rank in ranking] == [
        *(("a", 1), ("b", 1), ("c", 3)),
        ("broken", None),
    ]
    assert [(rank.method, rank.place, rank.last) for rank in ranks(broken)][-1] == ("broken", 4, 4)


def test_methods_without_a_value_share_the_last_rank() -> None:
    first, *others = ranks({"a": [0.1], "b": [NAN], "c": [NAN]})
    assert (first.method, first.mean_rank) == ("a", 1.0)
    assert [rank.mean_rank for rank in others] == [2.5, 2.5]
    assert [rank.place for rank in others] == [2, 2]


def test_a_case_without_any_value_is_not_counted() -> None:
    assert {rank.n for rank in ranks({"a": [0.1, NAN], "b": [0.2, NAN]})} == {1}


def test_rank_stability_is_the_share_of_resamples_with_each_place() -> None:
    generator = np.random.default_rng(6)
    scores = generator.uniform(size=(3, 20)) + np.array([[0.2], [0.1], [0.0]])
    ranking = ranks(dict(zip("abc", scores, strict=True)), seed=9)
    drawn = np.random.default_rng(9).integers(20, size=(2000, 20))
    within = scipy.stats.rankdata(-scores, axis=0)
    sums = np.array([[within[m, chosen].sum() for chosen in drawn] for m in range(3)])
    for rank in ranking:
        better = (sums < sums["abc".index(rank.method)]).sum(axis=0)
        expected = [float(np.mean(better == place)) for place in range(3)]
        assert rank.shares == pytest.approx(tuple(expected))
        assert rank.place is not None and rank.stability == rank.shares[rank.place - 1]


def test_a_method_that_always_wins_is_first_in_every_resample() -> None:
    generator = np.random.default_rng(4)
    base = generator.uniform(size=10)
    ranking = ranks({"low": base, "high": base + 1, "other": generator.permutation(base)})
    best = ranking[0]
    assert (best.method, best.place, best.mean_rank) == ("high", 1, 1.0)
    assert (best.stability, best.shares) == (1.0, (1.0, 0.0, 0.0))
    assert (best.place_interval.low, best.place_interval.high) == (1.0, 1.0)
    assert best.place_interval.kind == "percentile"


def test_rank_intervals_equal_those_of_resampled_cases() -> None:
    generator = np.random.default_rng(6)
    scores = generator.uniform(size=(3, 20)) + np.array([[0.2], [0.1], [0.0]])
    ranking = {rank.method: rank for rank in ranks(dict(zip("abc", scores, strict=True)), seed=9)}
    drawn = np.random.default_rng(9).integers(20, size=(2000, 20))
    within = scipy.stats.rankdata(-scores, axis=0)
    means = np.array([[within[m, chosen].mean() for chosen in drawn] for m in range(3)])
    for k, name in enumerate("abc"):
        inner = np.sort(means[k])[[49, 1950]]  # 2.5 % of the 2,000 lie outside on either side
        interval = ranking[name].mean_rank_interval
        assert (interval.low, interval.high) == pytest.approx(tuple(inner))
        assert ranking[name].place_interval.low <= ranking[name].place_interval.high
        assert ranking[name].place_interval.low in (1, 2, 3)


def test_ranks_without_methods_or_cases() -> None:
    assert ranks({}) == ()
    (only,) = ranks({"a": [NAN]})
    assert only.n == 0 and only.place is None
    assert ranks({"a": SCORES})[0].place == 1


def test_lower_values_rank_first_where_they_are_better():
    distances = {"near": [1.0, 2.0, 3.0], "far": [2.0, NAN, 4.0]}
    ranked = ranks(distances, higher_is_better=False)
    assert [(rank.method, rank.mean_rank) for rank in ranked] == [("near", 1.0), ("far", 2.0)]


def places(ranking: tuple[Rank, ...]) -> dict[str, int | None]:
    return {rank.method: rank.place for rank in ranking}


# Task c_random of data_matrix.csv of challengeR (Wiesenfarth et al., 2021), cases 1 to 10, rounded
# to four decimals. Higher values are better.
CHALLENGER = {
    "A1": [0.7055, 0.8434, 0.6602, 0.9567, 0.8617, 0.6636, 0.8795, 0.9036, 0.8885, 0.7676],
    "A2": [0.8697, 0.7085, 0.8631, 0.5916, 0.9495, 0.9701, 0.7564, 0.6120, 0.8879, 0.7966],
    "A3": [0.7067, 0.8238, 0.6432, 0.8400, 0.6996, 0.9633, 0.9017, 0.9176, 0.8681, 0.9602],
    "A4": [0.8755, 0.8148, 0.7653, 0.6389, 0.5031, 0.6046, 0.9241, 0.7066, 0.5289, 0.9667],
    "A5": [0.8710, 0.9604, 0.9563, 0.7630, 0.3132, 0.9820, 0.8973, 0.8851, 0.8156, 0.8819],
}


def test_the_schemes_order_challengers_example_as_a_hand_computation() -> None:
    # Sums of the values: A1 8.1303, A2 8.0054, A3 8.3242, A4 7.3285, A5 8.3258.
    means = ranks(CHALLENGER, scheme="aggregate-then-rank")
    assert [rank.method for rank in means] == ["A5", "A3", "A1", "A2", "A4"]
    assert [rank.value for rank in means] == pytest.approx(
        [0.83258, 0.83242, 0.81303, 0.80054, 0.73285]
    )
    # Ranks per case, summed: A1 30, A2 34, A3 28, A4 32, A5 26.
    within = ranks(CHALLENGER)
    assert [rank.method for rank in within] == ["A5", "A3", "A1", "A4", "A2"]
    assert [rank.value for rank in within] == [2.6, 2.8, 3.0, 3.2, 3.4]
    assert kendall(means, within) == pytest.approx((9 - 1) / 10)


def test_significance_ranking_equals_scipys_one_sided_tests() -> None:
    # challengeR: wilcox.test(exact = FALSE, paired = TRUE), p ≤ 0.05, no correction.
    generator = np.random.default_rng(3)
    base = generator.uniform(size=25)
    scores = {
        name: base + shift + generator.normal(0, 0.1, 25)
        for name, shift in (("a", 0.1), ("b", 0.05), ("c", 0.05), ("d", 0.0))
    }
    expected = {
        name: np.mean(
            [
                scipy.stats.wilcoxon(
                    scores[name] - scores[other],
                    alternative="greater",
                    method="asymptotic",
                    correction=True,
                ).pvalue
                <= 0.05
                for other in scores
                if other != name
            ]
        )
        for name in scores
    }
    ranking = ranks(scores, scheme="test-based")
    assert {rank.method: rank.value for rank in ranking} == pytest.approx(expected)
    assert len(set(expected.values())) > 1
    better = {
        name: sum(other > share for other in expected.values()) for name, share in expected.items()
    }
    assert places(ranking) == {name: count + 1 for name, count in better.items()}


@pytest.mark.parametrize("direction", [False, True])
def test_significance_ranking_equals_challengers_own_tests(direction: bool) -> None:
    # tests/testthat/test-testThenRank.R: four cases of 0.2 against 1.0, in both directions. By
    # hand: V = 10, (10 − 5 − 0.5) / √(7.5 − 60 / 48) = 1.8, p = 0.0359.
    ranking = ranks(
        {"A1": [0.2] * 4, "A2": [1.0] * 4}, scheme="test-based", higher_is_better=direction
    )
    best, worst = ("A2", "A1") if direction else ("A1", "A2")
    assert [(rank.method, rank.value, rank.place) for rank in ranking] == [
        (best, 1.0, 1),
        (worst, 0.0, 2),
    ]
    # Two cases of 0.6 against 0.8: no test is significant, and both share place 1.
    tied = ranks({"A1": [0.6, 0.6], "A2": [0.8, 0.8]}, scheme="test-based")
    assert [(rank.value, rank.place) for rank in tied] == [(0.0, 1), (0.0, 1)]


def test_every_scheme_has_words_and_an_order() -> None:
    assert tuple(SCHEMES) == tuple(RANKING_SCHEMES) == get_args(Scheme)


@pytest.mark.parametrize(
    ("scheme", "titles", "sentence"),
    [
        (
            "rank-then-aggregate",
            ["score"],
            "Methods are ranked by score within every case, and tied methods share the mean of "
            "their ranks in that case. Methods are then ordered by the mean of these ranks "
            "(rank-then-aggregate). Methods with equal mean ranks share a place.",
        ),
        (
            "aggregate-then-rank",
            ["score"],
            "Methods are ordered by their mean score over the cases, or by the median if a value "
            "is infinite (aggregate-then-rank). Tied methods share a place.",
        ),
        (
            "test-based",
            ["score", "HD"],
            "Methods are ordered by the share of other methods that they beat in one-sided sign "
            "tests of score and HD at α = 0.05, without correction for multiple comparisons "
            "(test-based). The ranks by each measure are averaged with equal weights. Tied methods "
            "share a place.",
        ),
    ],
)
def test_the_sentence_of_a_scheme(scheme: Scheme, titles: list[str], sentence: str) -> None:
    assert RANKING_SCHEMES[scheme].sentence(titles, "sign test") == sentence


@pytest.mark.parametrize("scheme", SCHEMES)
def test_challengers_ideal_task_has_the_same_stable_order_by_every_scheme(scheme: Scheme) -> None:
    # As task c_ideal: the values of the methods do not overlap.
    generator = np.random.default_rng(0)
    scores = {f"A{k}": generator.uniform(1 - k / 10, 1.09 - k / 10, 50) for k in range(1, 6)}
    ranking = ranks(scores, scheme=scheme)
    assert [(rank.method, rank.place, rank.stability) for rank in ranking] == [
        (f"A{k}", k, 1.0) for k in range(1, 6)
    ]
    if scheme == "test-based":
        assert [rank.value for rank in ranking] == [1.0, 0.75, 0.5, 0.25, 0.0]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_challengers_worst_task_has_one_shared_place_by_every_scheme(scheme: Scheme) -> None:
    # As task c_worstcase: every order of five methods occurs once.
    orders = np.array(list(permutations([0.8, 0.85, 0.9, 0.95, 1.0]))).T
    ranking = ranks(dict(zip("abcde", orders, strict=True)), scheme=scheme)
    assert [rank.place for rank in ranking] == [1] * 5
    expected = {"rank-then-aggregate": 3.0, "aggregate-then-rank": 0.9, "test-based": 0.0}
    assert {rank.value for rank in ranking} == {expected[scheme]}


INFINITE = {"near": [1.0, 2.0, math.inf], "far": [3.0, 4.0, 5.0], "lost": [math.inf, math.inf, 1.0]}


def test_an_infinite_value_is_the_worst_and_the_median_replaces_the_mean() -> None:
    ranking = ranks(INFINITE, higher_is_better=False, scheme="aggregate-then-rank")
    assert [(rank.method, rank.value) for rank in ranking] == [
        ("near", 2.0),
        ("far", 4.0),
        ("lost", math.inf),
    ]
    # Within cases: near far lost; near far lost; lost far near.
    by_rank = ranks(INFINITE, higher_is_better=False)
    assert [(rank.method, rank.mean_rank) for rank in by_rank] == [
        ("near", 5 / 3),
        ("far", 2.0),
        ("lost", 7 / 3),
    ]


def test_a_missing_value_ranks_behind_an_infinite_one() -> None:
    ranking = ranks({"far": [math.inf], "lost": [NAN], "near": [1.0]}, higher_is_better=False)
    assert [(rank.method, rank.mean_rank) for rank in ranking] == [
        ("near", 1.0),
        ("far", 2.0),
        ("lost", 3.0),
    ]


@pytest.mark.parametrize("scheme", ["aggregate-then-rank", "test-based"])
def test_a_value_of_0_has_no_sign(scheme: Scheme) -> None:
    ranking = ranks({"a": [0.0, 0.0], "b": [0.0, 0.0]}, scheme=scheme)
    assert [str(rank.value) for rank in ranking] == ["0.0", "0.0"]


def test_equal_means_are_ties_and_tests_use_unrounded_values() -> None:
    # Both means are 1/6.
    means = ranks({"a": [1 / 3, 0.0], "b": [1 / 6, 1 / 6]}, scheme="aggregate-then-rank")
    assert [(rank.method, rank.place) for rank in means] == [("a", 1), ("b", 1)]
    # All differences are ±1/3, so all ranks are 4: with 6 of 7 positive, the statistic is 24, its
    # mean 14 and its variance 7 · 8 · 15 / 24 − (7³ − 7) / 48 = 28. p = Φ(−9.5 / √28) = 0.0363.
    first = [1.0, 2 / 3, 1 / 3, 1.0, 2 / 3, 1 / 3, 0.0]
    second = [2 / 3, 1 / 3, 0.0, 2 / 3, 1 / 3, 0.0, 1 / 3]
    tested = ranks({"a": first, "b": second}, scheme="test-based", alpha=0.0364)
    assert [(rank.method, rank.value) for rank in tested] == [("a", 1.0), ("b", 0.0)]
    tested = ranks({"a": first, "b": second}, scheme="test-based", alpha=0.0362)
    assert [rank.value for rank in tested] == [0.0, 0.0]


def test_two_infinite_values_of_one_case_are_equal_in_a_test() -> None:
    first = [math.inf, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    second = [math.inf, 2.0, 3.0, 4.0, 5.0, 6.0, math.inf]
    ranking = ranks({"a": first, "b": second}, higher_is_better=False, scheme="test-based")
    # Six differences, all in favour of a: (21 − 10.5 − 0.5) / √22.75 = 2.097, p = 0.018.
    assert [(rank.method, rank.value) for rank in ranking] == [("a", 1.0), ("b", 0.0)]
    above, below = one_sided(np.array([0.0, 1, 2, 3, 4, 5, math.inf]), np.ones((1, 7)))
    assert above[0] == pytest.approx(scipy.stats.norm.sf(10 / math.sqrt(22.75)))
    assert below[0] == pytest.approx(scipy.stats.norm.cdf(11 / math.sqrt(22.75)))


def test_missing_values_count_as_zero_in_means_and_are_last_if_lower_is_better() -> None:
    scores = {"whole": [0.5, 0.5, 0.5], "easy": [0.9, 0.9, NAN]}
    by_mean = ranks(scores, scheme="aggregate-then-rank")
    assert [(rank.method, rank.value) for rank in by_mean] == [
        ("easy", pytest.approx(0.6)),
        ("whole", 0.5),
    ]
    negative = ranks({"a": [-0.2, 0.1], "b": [NAN, 0.1]}, scheme="aggregate-then-rank")
    assert [(rank.method, rank.place) for rank in negative] == [("a", 1), ("b", 1)]
    distances = ranks(
        {"whole": [5.0, 5.0, 5.0], "easy": [1.0, NAN, NAN]},
        scheme="aggregate-then-rank",
        higher_is_better=False,
    )
    assert [(rank.method, rank.value) for rank in distances] == [("whole", 5.0), ("easy", math.inf)]
    only_shared = ranks(scores, scheme="aggregate-then-rank", missing="exclude")
    assert [(rank.method, rank.value, rank.n) for rank in only_shared] == [
        ("easy", 0.9, 2),
        ("whole", 0.5, 2),
    ]


# Two measures, three methods, three cases.
DICE = Scores({"a": [0.9, 0.8, 0.7], "b": [0.8, 0.9, 0.7], "c": [0.7, 0.7, 0.9]})
DISTANCE = Scores({"a": [4.0, 4.0, 4.0], "b": [1.0, 2.0, math.inf], "c": [2.0, NAN, 5.0]}, False)


def test_two_measures_equal_a_hand_computation() -> None:
    # Dice ranks: a 1 2 2.5, b 2 1 2.5, c 3 3 1. Distance ranks: a 3 2 1, b 1 1 3, c 2 3 2.
    ranking = joint_ranks({"dice": DICE, "hd95": DISTANCE})
    assert [(rank.method, rank.mean_rank, rank.place) for rank in ranking] == [
        ("b", 10.5 / 6, 1),
        ("a", 11.5 / 6, 2),
        ("c", 14 / 6, 3),
    ]
    assert [(rank.method, rank.last) for rank in ranking] == [("b", 0), ("a", 0), ("c", 1)]
    by_case = case_ranks({"dice": DICE, "hd95": DISTANCE})
    assert by_case["a"].tolist() == [2.0, 2.0, 1.75]
    assert by_case["b"].tolist() == [1.5, 1.0, 2.75]
    assert by_case["c"].tolist() == [2.5, 3.0, 1.5]


def test_two_measures_aggregated_first_equal_a_hand_computation() -> None:
    # Mean Dice: a 0.8, b 0.8, c 0.767: ranks 1.5, 1.5, 3. Median distance, with ∞ for the missing
    # value: a 4, b 2, c 5: ranks 2, 1, 3.
    ranking = joint_ranks({"dice": DICE, "hd95": DISTANCE}, scheme="aggregate-then-rank")
    assert [(rank.method, rank.value, rank.place) for rank in ranking] == [
        ("b", 1.25, 1),
        ("a", 1.75, 2),
        ("c", 3.0, 3),
    ]


def test_a_case_that_one_measure_excludes_counts_by_the_other() -> None:
    ranking = joint_ranks({"dice": DICE, "hd95": DISTANCE}, missing="exclude")
    # Without the distances of case 2: sums a 9.5, b 9.5, c 11 of 5 ranks.
    assert {rank.method: rank.mean_rank for rank in ranking} == {"a": 1.9, "b": 1.9, "c": 2.2}
    assert {rank.n for rank in ranking} == {3}


def test_measures_with_other_methods_or_cases_are_rejected() -> None:
    with pytest.raises(InputError, match="same methods and cases"):
        joint_ranks({"dice": DICE, "hd95": Scores({"a": [1.0]})})


def test_kendalls_tau_equals_a_hand_computation() -> None:
    # Of six pairs of four methods, five have the same order and one is reversed: (5 − 1) / 6.
    first = ranks({"a": [4.0], "b": [3.0], "c": [2.0], "d": [1.0]})
    second = ranks({"a": [4.0], "b": [3.0], "c": [1.0], "d": [2.0]})
    assert kendall(first, second) == pytest.approx(4 / 6)
    assert kendall(first, first) == 1.0
    # With one tie: (5 − 0) / √(6 · 5).
    tied = ranks({"a": [4.0], "b": [3.0], "c": [1.0], "d": [1.0]})
    assert kendall(first, tied) == pytest.approx(5 / math.sqrt(30))
    assert math.isnan(kendall(first[:1], second))
    assert math.isnan(kendall(first, ranks({name: [1.0] for name in "abcd"})))


def test_an_unknown_scheme_is_rejected() -> None:
    with pytest.raises(InputError, match="scheme must be one of rank-then-aggregate"):
        ranks(THREE, scheme="mean")  # type: ignore[arg-type]


def resampled_by_hand(owners: list[str], seed: int) -> list[list[int]]:
    """The cases of 2,000 samples of subjects, drawn as a list."""
    subjects = list(dict.fromkeys(owners))
    drawn = np.random.default_rng(seed).integers(len(subjects), size=(2000, len(subjects)))
    cases = {name: [k for k, own in enumerate(owners) if own == name] for name in subjects}
    return [[case for k in row for case in cases[subjects[k]]] for row in drawn]


OWNERS = [f"subject {k}" for k, size in enumerate((1, 2, 3, 4, 1, 2, 5)) for _ in range(size)]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_rank_stability_over_subjects_equals_a_hand_written_cluster_bootstrap(
    scheme: Scheme,
) -> None:
    generator = np.random.default_rng(5)
    effect = dict(zip(dict.fromkeys(OWNERS), generator.normal(size=(7, 3)), strict=True))
    scores = np.array([effect[owner] for owner in OWNERS]).T * 0.3
    scores += generator.normal(size=scores.shape) * 0.1 + np.array([[0.2], [0.1], [0.0]])
    ranking = ranks(dict(zip("abc", scores, strict=True)), scheme=scheme, subjects=OWNERS, seed=4)
    counts = {name: np.zeros(3) for name in "abc"}
    for sample in resampled_by_hand(OWNERS, 4)[:300]:
        chosen = scores[:, sample]
        if scheme == "rank-then-aggregate":
            cost = scipy.stats.rankdata(-chosen, axis=0).sum(axis=1)
        elif scheme == "aggregate-then-rank":
            cost = -chosen.mean(axis=1).round(12)
        else:
            cost = -_significant_wins(chosen, [OWNERS[k] for k in sample])
        for name, place in zip("abc", scipy.stats.rankdata(cost, method="min"), strict=True):
            counts[name][int(place) - 1] += 1
    short = ranks(
        dict(zip("abc", scores, strict=True)),
        scheme=scheme,
        subjects=OWNERS,
        seed=4,
        resamples=300,
    )
    for rank in short:
        assert rank.shares == pytest.approx(tuple(counts[rank.method] / 300))
    assert places(short) == places(ranking)


def _significant_wins(values: Floats, owners: list[str]) -> Floats:
    """How many methods each method beats, tested on the means of subjects by SciPy.

    A subject that is drawn twice counts twice.
    """
    names = sorted(set(owners))
    sizes = {name: OWNERS.count(name) for name in names}
    wins = np.zeros(3)
    for first, second in permutations(range(3), 2):
        paired: list[float] = []
        for name in names:
            own = [values[first, k] - values[second, k] for k, o in enumerate(owners) if o == name]
            paired += [float(np.mean(own))] * (len(own) // sizes[name])
        p = scipy.stats.wilcoxon(
            np.round(paired, 12), alternative="greater", method="asymptotic", correction=True
        ).pvalue
        wins[first] += p <= 0.05
    return wins


def test_fewer_than_six_subjects_have_no_rank_stability() -> None:
    ranking = ranks({"a": SCORES, "b": [0.5] * 8}, subjects=[1, 1, 2, 2, 3, 3, 4, 4])
    assert {rank.place_interval.reason for rank in ranking} == {"4 subjects, fewer than 6"}
