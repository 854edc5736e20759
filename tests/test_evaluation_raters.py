"""Raters in an evaluation: each as reference, their consensus, and inter-rater agreement."""

import json

import numpy as np
import pytest
from test_cli_compare import run

import probdice
from probdice import InputError
from probdice.evaluation import Evaluation, RaterComparison, evaluate
from probdice.evaluation.conclusion import conclusion
from probdice.evaluation.intervals import Interval
from probdice.evaluation.statistics import Summary


def noisy(labels, share, seed):
    rng = np.random.default_rng(seed)
    wrong = rng.random(labels.shape) < share
    return np.where(wrong, rng.integers(0, 3, labels.shape), labels)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Eight cases of three raters with different labels, and of two methods."""
    place = tmp_path_factory.mktemp("raters")
    truth = np.repeat(np.repeat(np.arange(3), 8)[:, None], 20, axis=1)
    shares = {"anna": 0.1, "ben": 0.12, "eva": 0.14, "good": 0.08, "poor": 0.5}
    for number, (name, share) in enumerate(shares.items()):
        (place / name).mkdir()
        for case in range(8):
            labels = noisy(truth, share, 100 * number + case)
            np.save(place / name / f"case{case}.npy", (labels + number).astype(np.uint8))
    return {name: place / name for name in shares}


@pytest.fixture(scope="module")
def result(folders, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    raters = {name: folders[name] for name in ("anna", "ben", "eva")}
    methods = {name: folders[name] for name in ("good", "poor")}
    return evaluate(None, methods, raters=raters, out=out)


def score(folders, first, second, case):
    maps = [np.load(folders[name] / f"case{case}.npy") for name in (first, second)]
    return probdice.compare(*maps).score


def test_methods_are_compared_with_inter_rater_agreement(result, folders):
    raters = ("anna", "ben", "eva")
    pairs = [
        np.mean([score(folders, a, b, case) for a in raters for b in raters if a != b])
        for case in range(8)
    ]
    rater_comparison = result.rater_comparison
    assert rater_comparison.inter_rater.mean == pytest.approx(np.mean(pairs))
    assert rater_comparison.inter_rater.n == 8
    own = [np.mean([score(folders, a, "good", case) for a in raters]) for case in range(8)]
    assert rater_comparison.methods["good"].mean == pytest.approx(np.mean(own))
    assert rater_comparison.means["anna"]["ben"] == pytest.approx(
        np.mean([score(folders, "ben", "anna", case) for case in range(8)])
    )


def test_remarks_compare_methods_with_inter_rater_agreement(result):
    among = result.rater_comparison.inter_rater
    interval = f"95 % CI {among.interval.low:.3f}–{among.interval.high:.3f}"
    poor = result.rater_comparison.methods["poor"].mean
    assert result.remarks["poor"][0] == (
        f"below inter-rater agreement on 8 cases: {poor:.3f} vs {among.mean:.3f} ({interval})"
    )
    assert result.remarks["good"][0].startswith(("at inter-rater", "above inter-rater"))


def test_the_reference_is_the_consensus_of_the_raters(result, folders):
    maps = [np.load(folders[name] / "case3.npy") for name in ("anna", "ben", "eva")]
    mean = probdice.consensus(maps).segmentation
    good = np.load(folders["good"] / "case3.npy")
    alone = probdice.compare(mean, good).score
    assert result.comparison("case3", "good").score == pytest.approx(alone)


def test_each_rater_has_an_evaluation_with_the_other_raters_as_methods(result, folders):
    against = Evaluation.load(result.out / "raters" / "ben")
    assert list(against.methods) == ["good", "poor", "anna", "eva"]
    assert against.comparison("case0", "anna").score == score(folders, "ben", "anna", 0)


def test_the_comparison_with_raters_is_in_the_summary_and_read_back(result):
    content = json.loads((result.out / "summary.json").read_text())
    assert content["rater_comparison"]["sentences"]["good"] == result.remarks["good"][0]
    again = Evaluation.load(result.out)
    assert again.rater_comparison.to_dict() == result.rater_comparison.to_dict()
    assert again.remarks == result.remarks


def test_a_second_run_compares_nothing_again(result, folders):
    counted = []
    raters = {name: folders[name] for name in ("anna", "ben", "eva")}
    methods = {name: folders[name] for name in ("good", "poor")}
    evaluate(None, methods, raters=raters, out=result.out, progress=counted.append)
    assert all(one.done == one.resumed == one.total for one in counted)


def test_a_reference_may_be_given_with_raters(folders, tmp_path):
    raters = {name: folders[name] for name in ("ben", "eva")}
    beside = evaluate(folders["anna"], folders["good"], raters=raters, out=tmp_path)
    assert beside.comparison("case1").score == score(folders, "anna", "good", 1)
    assert list(beside.rater_comparison.raters) == ["ben", "eva"]
    consensus = Evaluation.load(tmp_path / "raters" / "consensus")
    maps = [np.load(folders[name] / "case1.npy") for name in ("ben", "eva")]
    good = np.load(folders["good"] / "case1.npy")
    expected = probdice.compare(probdice.consensus(maps).segmentation, good).score
    assert consensus.comparison("case1").score == pytest.approx(expected)


def test_few_cases_give_numbers_without_a_confidence_interval(folders, tmp_path):
    for name in ("anna", "ben", "good"):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "a.npy", np.load(folders[name] / "case0.npy"))
    raters = {name: tmp_path / name for name in ("anna", "ben")}
    few = evaluate(None, {"good": tmp_path / "good"}, raters=raters)
    assert few.remarks["good"][0].startswith("compared with inter-rater agreement on 1 case: ")
    assert few.remarks["good"][0].endswith("(no confidence interval: 1 case, fewer than 6)")


def test_the_terminal_and_the_page_show_inter_rater_agreement(folders, tmp_path):
    words = [f"--rater={name}={folders[name]}" for name in ("anna", "ben", "eva")]
    done = run("evaluate", "consensus", f"good={folders['good']}", *words, "-o", tmp_path / "out",
               "--reports", "none")  # fmt: skip
    assert done.code == 0, done.err
    page = (tmp_path / "out" / "report.html").read_text()
    for text in (done.out, page):
        assert "inter-rater agreement on 8 cases: " in text
        assert "95 % CI (raters)" in text


@pytest.mark.parametrize(
    ("raters", "message"),
    [
        ({"anna": "anna"}, "raters: expected at least two, found 1"),
        ({"anna": "anna", "good": "ben"}, "'good' is the name of a method or a reserved name"),
        ({"anna": "anna", "consensus": "ben"}, "'consensus' is the name of a method or a reserved"),
        ({"anna": "anna", "a/b": "ben"}, "'a/b' is not a valid folder name"),
    ],
)
def test_too_few_raters_and_invalid_rater_names_are_rejected(folders, raters, message):
    given = {name: folders[folder] for name, folder in raters.items()}
    with pytest.raises(InputError, match=message):
        evaluate(None, {"good": folders["good"]}, raters=given)


def test_a_reference_is_required_without_raters(folders):
    with pytest.raises(InputError, match="reference=None requires raters"):
        evaluate(None, {"good": folders["good"]})


def agreement(mean):
    """A summary of eight cases with a 95 % CI of ± 0.01."""
    interval = Interval(mean - 0.01, mean + 0.01, "bca")
    return Summary(8, 0, mean, mean, 0.0, mean, mean, mean, mean, interval)


def summary_of(means):
    """The parts of summary.json that a conclusion needs, for methods ranked in this order.

    `means` contains the agreement of every method with the raters. Inter-rater agreement is 0.98.
    """
    among = agreement(0.98)
    rater_comparison = RaterComparison(
        "score",
        {},
        among,
        {name: agreement(mean) for name, mean in means.items()},
        dict.fromkeys(means, among),
        {},
    )
    ranks = [
        {"method": name, "place": k, "stability": None, "mean_rank": k}
        for k, name in enumerate(means, 1)
    ]
    pairs = [("a", name, 0.01) for name in means if name != "a"]
    entries = [
        {"method": name, "aggregate": "mean", "mean": 0.5, "interval": {"kind": "withheld"}}
        for name in means
    ]
    return {
        "methods": dict.fromkeys(means, ""),
        "rank_by": ["score"],
        "titles": {"score": "score", "mean_dice": "mean Dice"},
        "measures": {"score": {"methods": entries}, "mean_dice": {"methods": entries}},
        "ranking": {
            "ranks": ranks,
            "differences": [{"first": a, "second": b, "p_corrected": p} for a, b, p in pairs],
            "schemes": {},
        },
        "rater_comparison": rater_comparison.to_dict(),
        "test": "Wilcoxon signed-rank test",
        "correction": "Holm's correction",
        "scheme": "aggregate-then-rank",
        "subjects": None,
    }


def test_one_sentence_reports_that_all_methods_are_below_the_raters():
    text = conclusion(summary_of({"a": 0.9, "b": 0.8, "no tumour": 0.7}))
    assert text == (
        "“a” is first by score (mean score 0.500), with moderate overlap (mean Dice 0.500). "
        "“a” differs significantly from all other methods (Wilcoxon signed-rank test, Holm's "
        "correction, α = 0.05). All 3 methods, "
        "“a” (0.900), “b” (0.800) and “no tumour” (0.700), are below inter-rater agreement on 8 "
        "cases: 0.980 (95 % CI 0.970–0.990)."
    )
    text = conclusion(summary_of({"a": 0.975, "b": 0.8, "c": 0.7}))
    assert text.endswith(
        "“a” is at inter-rater agreement on 8 cases: 0.975 vs 0.980 (95 % CI 0.970–0.990)."
    )


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ([255, 255, 255, 255, 7, 7], {"background": {"reference": 0, "prediction": 255}}),
        ([1, 1, 1, 1, 0, 0], {"match": {1: 0, 0: 1}, "rank_by": "dice:1"}),
    ],
)
def test_options_of_predictions_do_not_apply_to_raters(tmp_path, method, options):
    maps = {"anna": [0, 0, 0, 0, 1, 1], "ben": [0, 0, 0, 0, 0, 1], "method": method}
    for name, labels in maps.items():
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "a", np.array(labels))
    raters = {name: tmp_path / name for name in ("anna", "ben")}
    out = tmp_path / "out"
    result = evaluate(None, tmp_path / "method", raters=raters, out=out, **options)
    # Region 1 has two pixels for anna and one for ben: Dice 2 / 3. The method agrees with anna.
    means = result.rater_comparison.means
    assert means["ben"]["anna"] == means["anna"]["ben"] == pytest.approx(2 / 3)
    assert means["method"] == pytest.approx({"anna": 1, "ben": 2 / 3})
    against_anna = Evaluation.load(out / "raters" / "anna")
    against_anna.report(reports="all")
    assert against_anna.raters == ("ben",)
    # One page per method, and one page with both methods.
    assert len(list((out / "raters" / "anna" / "report_cases").glob("*.html"))) == 3
    assert "files have changed" not in (out / "raters" / "anna" / "report.html").read_text()


def test_all_values_are_medians_if_a_method_misses_a_region(tmp_path):
    """The Hausdorff distance to a square moved by d pixels is d, and infinite without a square."""

    def write(folder, case, shift):
        labels = np.zeros((8, 12), np.uint8)
        if shift is not None:
            labels[2:5, 2 + shift : 5 + shift] = 1
        (tmp_path / folder).mkdir(exist_ok=True)
        np.save(tmp_path / folder / f"case{case}.npy", labels)

    for case, shift in enumerate((0, 2, None)):
        write("anna", case, 0)
        write("ben", case, 1)
        write("net", case, shift)
    result = evaluate(
        None,
        {"net": tmp_path / "net"},
        raters={"anna": tmp_path / "anna", "ben": tmp_path / "ben"},
        background=0,
        boundaries=True,
        rank_by="hd",
    )
    among = result.rater_comparison
    # The method is 0, 2 and ∞ pixels from anna, and 1, 1 and ∞ pixels from ben.
    assert among.means["net"] == pytest.approx({"anna": 2.0, "ben": 1.0})
    assert (among.methods["net"].aggregate, among.baselines["net"].aggregate) == ("median",) * 2
    assert among.methods["net"].value == pytest.approx(1.5)
    assert among.baselines["net"].value == pytest.approx(1.0)
