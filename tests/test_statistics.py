"""Statistics compared with SciPy, statsmodels and hand computations."""

import math
from itertools import product

import numpy as np
import pytest
import scipy.stats

from probdice.errors import InputError
from probdice.evaluation.statistics import (
    Difference,
    MissingRule,
    differences,
    holm,
    ranks,
    summarise,
)

NAN = float("nan")
SCORES = [0.71, 0.83, 0.64, 0.92, 0.88, 0.79, 0.95, 0.58]


def test_a_summary_equals_a_hand_computation() -> None:
    summary = summarise([0.2, 0.4, 0.6, 0.8])
    assert (summary.n, summary.missing) == (4, 0)
    assert summary.mean == pytest.approx(0.5)
    assert summary.median == pytest.approx(0.5)
    assert summary.deviation == pytest.approx(math.sqrt(0.2 / 3))
    assert summary.lower_quartile == pytest.approx(0.35)
    assert summary.upper_quartile == pytest.approx(0.65)
    assert (summary.lowest, summary.highest) == (0.2, 0.8)


def test_nan_values_are_counted_as_missing() -> None:
    summary = summarise([1.0, NAN, 0.5, NAN])
    assert (summary.n, summary.missing) == (2, 2)
    assert summary.mean == 0.75
    assert summary.lowest == 0.5


def test_the_mean_of_no_values_is_nan() -> None:
    for values in ([], [NAN, NAN]):
        summary = summarise(values)
        assert summary.n == 0
        assert math.isnan(summary.mean)
        assert summary.interval.kind == "withheld"


def test_the_deviation_of_one_value_is_nan() -> None:
    assert math.isnan(summarise([0.5]).deviation)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_fewer_than_six_cases_have_a_withheld_interval_with_a_reason(n: int) -> None:
    interval = summarise(SCORES[:n]).interval
    assert interval.kind == "withheld"
    assert math.isnan(interval.low) and math.isnan(interval.high)
    assert interval.reason == f"{n} case{'' if n == 1 else 's'}, fewer than 6"


def test_nan_values_do_not_count_towards_six_cases() -> None:
    assert summarise([*SCORES[:5], NAN, NAN]).interval.kind == "withheld"


def test_the_interval_equals_scipys_bca() -> None:
    interval = summarise(SCORES, seed=3).interval
    direct = scipy.stats.bootstrap(
        (np.array(SCORES),), np.mean, n_resamples=2000, rng=np.random.default_rng(3), method="BCa"
    ).confidence_interval
    assert interval.kind == "bca" and interval.reason == ""
    assert (interval.low, interval.high) == (direct.low, direct.high)


def test_the_same_seed_gives_the_same_interval() -> None:
    assert summarise(SCORES).interval == summarise(SCORES).interval
    assert summarise(SCORES).interval != summarise(SCORES, seed=1).interval


def test_equal_values_have_a_percentile_interval_with_a_reason() -> None:
    interval = summarise([0.75] * 8).interval
    assert (interval.low, interval.high, interval.kind) == (0.75, 0.75, "percentile")
    assert interval.reason == "BCa is undefined: all values are equal"


def test_the_coverage_of_the_interval_is_near_its_nominal_level() -> None:
    generator = np.random.default_rng(0)
    inside = 0
    for _ in range(200):
        interval = summarise(generator.normal(size=25), resamples=500).interval
        inside += interval.low <= 0 <= interval.high
    assert 0.89 <= inside / 200 <= 0.99


def test_resampling_many_values_needs_bounded_memory() -> None:
    values = np.random.default_rng(0).normal(size=20_000)
    interval = summarise(values, resamples=200).interval
    assert interval.low < values.mean() < interval.high


def test_infinite_values_and_tables_are_rejected() -> None:
    with pytest.raises(InputError, match="infinity"):
        summarise([0.5, math.inf])
    with pytest.raises(InputError, match=r"one number per case, found shape \(1, 2\)"):
        summarise([[0.5, 0.6]])
    with pytest.raises(InputError, match=r"one value per case for every method.*'a': 2, 'b': 1"):
        differences({"a": [1, 2], "b": [1]})


def test_holms_correction_equals_a_hand_computation() -> None:
    # Sorted: 0.01·4, 0.02·3, 0.03·2, 0.04·1; each at least the one before.
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx((0.06, 0.04, 0.06, 0.06))
    assert holm([]) == ()
    assert holm([0.9, 0.8]) == (1.0, 1.0)


def test_holm_agrees_with_statsmodels() -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    generator = np.random.default_rng(5)
    for n in range(1, 12):
        p = generator.uniform(size=n) ** 2
        _, expected, _, _ = multitest.multipletests(p, method="holm")
        assert holm(p.tolist()) == pytest.approx(tuple(expected))


def test_withheld_tests_do_not_count_in_the_correction() -> None:
    corrected = holm([0.01, NAN, 0.04])
    assert corrected[0] == pytest.approx(0.02)
    assert math.isnan(corrected[1])
    assert corrected[2] == pytest.approx(0.04)


def pair_of(first: list[float], second: list[float]) -> Difference:
    (pair,) = differences({"a": first, "b": second})
    return pair


def test_a_difference_equals_a_hand_computation() -> None:
    # Differences 1, 2, 3, 4, 5, 6, −7 of distinct size: the negative ranks sum to 7. Of the 2⁷
    # assignments of signs, those whose smaller sum is at most 7 are counted below.
    pair = pair_of([1, 2, 3, 4, 5, 6, 0], [0, 0, 0, 0, 0, 0, 7])
    as_extreme = sum(
        min(s := sum(k for k, sign in enumerate(signs, 1) if sign), 28 - s) <= 7
        for signs in product([0, 1], repeat=7)
    )
    assert pair.statistic == 7
    assert pair.p == pytest.approx(as_extreme / 2**7)
    assert pair.p == pytest.approx(38 / 128)
    assert (pair.n, pair.mean, pair.median) == (7, 2.0, 3.0)
    assert pair.reason == ""


def test_the_test_and_interval_equal_scipy() -> None:
    generator = np.random.default_rng(1)
    first, second = generator.uniform(size=(2, 30))
    pair = pair_of(first.tolist(), (second - 0.1).tolist())
    paired = first - (second - 0.1)
    direct = scipy.stats.wilcoxon(paired)
    assert pair.p == pytest.approx(float(direct.pvalue), rel=1e-12)
    assert pair.statistic == float(direct.statistic)
    interval = scipy.stats.bootstrap(
        (paired,), np.mean, n_resamples=2000, rng=np.random.default_rng(0)
    ).confidence_interval
    assert pair.interval.low == pytest.approx(interval.low, abs=1e-9)
    assert pair.interval.high == pytest.approx(interval.high, abs=1e-9)


def test_only_shared_cases_are_paired() -> None:
    pair = pair_of([1, NAN, 3, 4, 5, 6, 7, 8], [0, 5, NAN, 0, 0, 0, 0, 0])
    assert pair.n == 6
    assert pair.mean == pytest.approx(31 / 6)
    assert pair.p == pytest.approx(2 / 2**6)


def test_equal_methods_have_a_p_value_of_1() -> None:
    pair = pair_of(SCORES, SCORES)
    assert (pair.p, pair.p_holm, pair.mean, pair.reason) == (1.0, 1.0, 0.0, "all differences are 0")
    assert pair.interval.kind == "percentile"


def test_rounding_errors_are_not_differences() -> None:
    tenths = [0.1 + 0.2] * 7
    pair = pair_of(tenths, [0.3] * 7)
    assert (pair.mean, pair.p) == (0.0, 1.0)


def test_zero_differences_are_excluded_and_counted() -> None:
    first = [1, 2, 3, 4, 5, 6, 7, 0, 0]
    pair = pair_of(first, [0.0] * 9)
    assert pair.n == 9
    assert pair.p == pytest.approx(2 / 2**7)
    assert pair.reason == "2 of 9 differences are 0 and excluded"


def test_fewer_than_six_pairs_are_not_tested() -> None:
    three = {"a": SCORES[:5], "b": [0.0] * 5, "c": [1.0] * 5}
    for pair in differences(three):
        assert math.isnan(pair.p) and math.isnan(pair.p_holm)
        assert pair.reason == "5 cases, fewer than 6: no result could be significant"
        assert pair.interval.kind == "withheld"
        assert not math.isnan(pair.mean)


def test_methods_without_a_shared_case_have_no_difference() -> None:
    pair = pair_of([1, NAN], [NAN, 1])
    assert pair.n == 0 and math.isnan(pair.mean) and math.isnan(pair.p)


def test_all_pairs_are_corrected_together() -> None:
    generator = np.random.default_rng(2)
    base = generator.uniform(size=12)
    scores = {"a": base, "b": base + generator.normal(0.1, 0.1, 12), "c": base + 0.3}
    pairs = differences(scores)
    assert [(pair.first, pair.second) for pair in pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert [pair.p_holm for pair in pairs] == list(holm([pair.p for pair in pairs]))
    assert pairs[1].p_holm == pytest.approx(3 * 2 / 2**12)


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
    assert all(math.isnan(rank.kept) and rank.shares == () for rank in ranking)


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
        assert rank.place is not None and rank.kept == rank.shares[rank.place - 1]


def test_a_method_that_always_wins_is_first_in_every_resample() -> None:
    generator = np.random.default_rng(4)
    base = generator.uniform(size=10)
    ranking = ranks({"low": base, "high": base + 1, "other": generator.permutation(base)})
    best = ranking[0]
    assert (best.method, best.place, best.mean_rank) == ("high", 1, 1.0)
    assert (best.kept, best.shares) == (1.0, (1.0, 0.0, 0.0))
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


def test_an_undefined_bca_interval_uses_percentiles_with_a_reason() -> None:
    # With a single resample the bias correction is infinite.
    interval = summarise(SCORES, resamples=1).interval
    assert interval.kind == "percentile"
    assert interval.reason == "BCa is undefined for these values"
    assert interval.low == interval.high


def test_lower_values_rank_first_where_they_are_better():
    distances = {"near": [1.0, 2.0, 3.0], "far": [2.0, NAN, 4.0]}
    ranked = ranks(distances, higher_is_better=False)
    assert [(rank.method, rank.mean_rank) for rank in ranked] == [("near", 1.0), ("far", 2.0)]
