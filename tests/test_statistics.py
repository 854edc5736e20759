"""Statistics compared with SciPy, statsmodels and hand computations."""

import math
from itertools import product

import numpy as np
import pytest
import scipy.stats

from probdice.errors import InputError
from probdice.evaluation.paired_test import corrected
from probdice.evaluation.statistics import Difference, differences, summarise

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
    assert interval.reason == "BCa is undefined because all values are equal"


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


def test_tables_and_unequal_numbers_of_cases_are_rejected() -> None:
    with pytest.raises(InputError, match=r"one number per case, found shape \(1, 2\)"):
        summarise([[0.5, 0.6]])
    with pytest.raises(InputError, match=r"one value per case for every method.*'a': 2, 'b': 1"):
        differences({"a": [1, 2], "b": [1]})


def test_holms_correction_equals_a_hand_computation() -> None:
    # Sorted: 0.01·4, 0.02·3, 0.03·2, 0.04·1; each at least the one before.
    assert corrected([0.04, 0.01, 0.03, 0.02]) == pytest.approx((0.06, 0.04, 0.06, 0.06))
    assert corrected([]) == ()
    assert corrected([0.9, 0.8]) == (1.0, 1.0)


def test_holm_agrees_with_statsmodels() -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    generator = np.random.default_rng(5)
    for n in range(1, 12):
        p = generator.uniform(size=n) ** 2
        _, expected, _, _ = multitest.multipletests(p, method="holm")
        assert corrected(p.tolist()) == pytest.approx(tuple(expected))


def test_withheld_tests_do_not_count_in_the_correction() -> None:
    first, withheld, last = corrected([0.01, NAN, 0.04])
    assert first == pytest.approx(0.02)
    assert math.isnan(withheld)
    assert last == pytest.approx(0.04)


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
    assert (pair.p, pair.p_corrected, pair.mean, pair.reason) == (
        1.0,
        1.0,
        0.0,
        "all differences are 0",
    )
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
    assert pair.reason == "excluded differences of 0: 2 of 9"


def test_fewer_than_six_pairs_are_not_tested() -> None:
    three = {"a": SCORES[:5], "b": [0.0] * 5, "c": [1.0] * 5}
    for pair in differences(three):
        assert math.isnan(pair.p) and math.isnan(pair.p_corrected)
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
    assert [pair.p_corrected for pair in pairs] == list(corrected([pair.p for pair in pairs]))
    assert pairs[1].p_corrected == pytest.approx(3 * 2 / 2**12)


def test_an_undefined_bca_interval_uses_percentiles_with_a_reason() -> None:
    # With a single resample the bias correction is infinite.
    interval = summarise(SCORES, resamples=1).interval
    assert interval.kind == "percentile"
    assert interval.reason == "BCa is undefined for these values"
    assert interval.low == interval.high


OWNERS = [f"subject {k}" for k, size in enumerate((1, 2, 3, 4, 1, 2, 5, 2)) for _ in range(size)]


def of_subjects(generator: np.random.Generator, owners: list[str]) -> list[float]:
    """Values of which most of the variance is between subjects."""
    effects = {owner: generator.normal() for owner in dict.fromkeys(owners)}
    return [effects[owner] + 0.3 * generator.normal() for owner in owners]


def test_an_interval_over_subjects_equals_a_hand_written_cluster_bootstrap() -> None:
    values = np.array(of_subjects(np.random.default_rng(1), OWNERS))
    values = np.round(values * 1024) / 1024  # sums are exact in any order, so ties are too
    interval = summarise(values, subjects=OWNERS, seed=3).interval
    names = list(dict.fromkeys(OWNERS))
    rows = {name: values[[k for k, owner in enumerate(OWNERS) if owner == name]] for name in names}
    drawn = np.random.default_rng(3).integers(8, size=(2000, 8))
    means = np.array([np.concatenate([rows[names[k]] for k in row]).mean() for row in drawn])
    # BCa by its definition (Efron, 1987), with a jackknife that leaves out one subject at a time.
    mean = values.mean()
    z0 = scipy.stats.norm.ppf((np.sum(means < mean) + np.sum(means <= mean)) / 4000)
    left = np.array(
        [np.concatenate([rows[other] for other in names if other != name]).mean() for name in names]
    )
    deviations = left.mean() - left
    acceleration = np.sum(deviations**3) / (6 * np.sum(deviations**2) ** 1.5)
    ends = []
    for z in scipy.stats.norm.ppf([0.025, 0.975]):
        share = scipy.stats.norm.cdf(z0 + (z0 + z) / (1 - acceleration * (z0 + z)))
        ends.append(np.quantile(means, share))
    assert interval.kind == "bca"
    assert (interval.low, interval.high) == pytest.approx(ends, abs=1e-9)


def test_a_subject_per_case_changes_nothing() -> None:
    plain, grouped = summarise(SCORES), summarise(SCORES, subjects=range(8))
    assert (plain.interval.low, plain.interval.high) == pytest.approx(
        (grouped.interval.low, grouped.interval.high)
    )
    values = {"a": SCORES, "b": SCORES[::-1]}
    assert differences(values)[0].p == differences(values, subjects=range(8))[0].p


def test_fewer_than_six_subjects_have_a_withheld_interval_and_no_test() -> None:
    owners = [1, 1, 2, 2, 3, 3, 4, 4]
    assert summarise(SCORES, subjects=owners).interval.reason == "4 subjects, fewer than 6"
    (pair,) = differences({"a": SCORES, "b": [0.0] * 8}, subjects=owners)
    assert pair.reason == "4 subjects, fewer than 6: no result could be significant"
    assert (pair.n, pair.subjects) == (8, 4)
    with pytest.raises(InputError, match="expected one subject for each of 8 cases, found 2"):
        summarise(SCORES, subjects=[1, 2])


def test_the_coverage_over_subjects_is_near_its_level_and_that_over_cases_is_not() -> None:
    generator = np.random.default_rng(0)
    owners = [f"subject {k}" for k in range(30) for _ in range(4)]
    covered = {"subjects": 0, "cases": 0}
    for _ in range(150):
        values = of_subjects(generator, owners)
        for kind, given in (("subjects", owners), ("cases", None)):
            interval = summarise(values, subjects=given, resamples=400).interval
            covered[kind] += interval.low <= 0 <= interval.high
    assert 0.88 <= covered["subjects"] / 150 <= 0.99
    assert covered["cases"] / 150 <= 0.75


def test_a_test_over_subjects_uses_one_mean_difference_per_subject() -> None:
    # Means of the subjects: 1, 2, 3, 4, 5, 6, −7; as in the hand computation over cases.
    first = [0.5, 1.5, 2, 2.5, 3.5, 4, 5, 5, 5, 6, -7]
    owners = ["a", "a", "b", "c", "c", "d", "e", "e", "e", "f", "g"]
    (pair,) = differences({"first": first, "second": [0.0] * 11}, subjects=owners)
    assert (pair.n, pair.subjects, pair.statistic) == (11, 7, 7)
    assert pair.p == pytest.approx(38 / 128)
    assert pair.mean == pytest.approx(sum(first) / 11)


def test_equal_mean_differences_of_subjects_are_ties() -> None:
    # Means of the subjects: 1/3 (of 2/3 and 0), −1/3, 1, 2, 3, 4. Their ranks are 1.5 1.5 3 4 5 6.
    first = [2 / 3, 0, -1 / 3, 1, 2, 3, 4]
    (pair,) = differences({"first": first, "second": [0.0] * 7}, subjects="aabcdef")
    assert pair.statistic == 1.5


def test_infinite_values_are_summarised_by_the_median() -> None:
    summary = summarise([1.0, 2.0, 3.0, 4.0, 5.0, math.inf, NAN])
    assert (summary.n, summary.missing, summary.infinite) == (6, 1, 1)
    assert (summary.aggregate, summary.value, summary.median) == ("median", 3.5, 3.5)
    assert summary.mean == math.inf and math.isnan(summary.deviation)
    assert (summary.lower_quartile, summary.upper_quartile) == (2.0, 5.0)
    assert summary.interval.kind == "percentile"
    # The 2.5 % and 97.5 % points of the median of six drawn values: by hand, as drawn.
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0, math.inf])
    drawn = np.random.default_rng(0).integers(6, size=(2000, 6))
    medians = np.sort([np.median(values[row]) for row in drawn])
    assert (summary.interval.low, summary.interval.high) == (medians[49], medians[1950])
    assert summarise([1.0, 2.0]).aggregate == "mean"


@pytest.mark.parametrize("subjects", [None, range(8)])
def test_infinite_differences_of_both_signs_favour_neither_method(subjects: object) -> None:
    # Each method misses a region in four of eight cases. The fourth and fifth of the sorted
    # differences are −∞ and ∞. A resample has fewer than four ∞, or more, with probability 0.36.
    infinite, finite = [math.inf] * 4, [1.0] * 4
    (pair,) = differences({"a": infinite + finite, "b": finite + infinite}, subjects=subjects)
    assert (pair.median, pair.p) == (0.0, 1.0)
    assert (pair.interval.low, pair.interval.high) == (-math.inf, math.inf)
    assert pair.interval.kind == "percentile"


def test_values_that_are_infinite_with_both_signs_have_no_mean() -> None:
    summary = summarise([-math.inf, -math.inf, math.inf, math.inf])
    assert math.isnan(summary.mean)
    assert (summary.median, summary.value, summary.infinite) == (0.0, 0.0, 4)


def test_a_difference_with_infinite_values_equals_a_hand_computation() -> None:
    # Differences 0 (both infinite), ∞, 1, 2, 3, 4, −5: without 0, ranks 6 1 2 3 4 and −5.
    pair = pair_of([math.inf, math.inf, 2, 3, 4, 5, 0], [math.inf, 1, 1, 1, 1, 1, 5])
    assert (pair.statistic, pair.n, pair.median) == (5, 7, 2.0)
    assert math.isnan(pair.mean)
    assert pair.reason == "excluded differences of 0: 1 of 7"
    as_extreme = sum(
        min(s := sum(k for k, sign in enumerate(signs, 1) if sign), 21 - s) <= 5
        for signs in product([0, 1], repeat=6)
    )
    assert pair.p == pytest.approx(as_extreme / 2**6)
