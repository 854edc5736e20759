"""Rankings of an evaluation by several measures, schemes and subjects, by hand."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import probdice
from numpy.typing import NDArray

from probdice.errors import InputError
from probdice.evaluation import Evaluation, evaluate, read_summary
from probdice.evaluation.conclusion import conclusion

REFERENCE = np.array([[0, 0, 1, 1, 1, 1, 2, 2, 2, 2]])
PERFECT = REFERENCE
HALF = np.array([[0, 0, 1, 1, 0, 0, 2, 2, 2, 2]])  # Dice 2/3 and 1
BLIND = np.array([[0, 0, 1, 1, 1, 1, 0, 0, 0, 0]])  # Dice 1 and 0
METHODS = {
    "a": [PERFECT] * 3 + [BLIND] * 3,
    "b": [HALF] * 6,
    "c": [PERFECT] * 2 + [HALF] * 2 + [BLIND] * 2,
}
CASES = ["s1_1", "s1_2", "s2_1", "s2_2", "s3_1", "s3_2"]
RUNTIME = {"a": 1.0, "b": 3.0, "c": 2.0}


def save(folder: Path, images: dict[str, NDArray[np.int64]]) -> None:
    folder.mkdir()
    for case, image in images.items():
        np.save(folder / f"{case}.npy", image)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    save(tmp_path / "truth", dict.fromkeys(CASES, REFERENCE))
    lines = ["case,method,runtime"]
    for name, images in METHODS.items():
        save(tmp_path / name, dict(zip(CASES, images, strict=True)))
        lines += [f"{case},{name},{RUNTIME[name]}" for case in CASES]
    (tmp_path / "times.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def run(root: Path, **options: Any) -> Evaluation:
    folders = {name: root / name for name in METHODS}
    given: dict[str, Any] = {"match": "labels", "background": 0, "out": root / "out", "workers": 1}
    return evaluate(root / "truth", folders, **(given | options))


def places(evaluation: Evaluation, **options: Any) -> dict[str, tuple[float, int | None]]:
    return {rank.method: (rank.value, rank.place) for rank in evaluation.ranks(**options)}


def test_every_scheme_equals_a_hand_computation(root: Path) -> None:
    # Foreground Dice: a 1 1 1 .5 .5 .5, b 5/6 everywhere, c 1 1 5/6 5/6 .5 .5. The ranks within
    # cases sum to 12 for every method.
    result = run(root)
    assert result.rank_by == ("foreground_dice",)
    assert places(result) == {"a": (2.0, 1), "b": (2.0, 1), "c": (2.0, 1)}
    means = places(result, scheme="aggregate-then-rank")
    assert {name: place for name, (_, place) in means.items()} == {"b": 1, "c": 2, "a": 3}
    assert means["c"][0] == pytest.approx(14 / 18)
    assert {place for _, place in places(result, scheme="test-based").values()} == {1}
    assert result.conclusion.startswith(
        "“a”, “b” and “c” are tied for first by foreground Dice, with good overlap "
        "(foreground Dice 0.750 to 0.833)."
    )
    assert "ranking scheme: “b” by the scheme aggregate-then-rank" in result.conclusion


def test_two_measures_equal_a_hand_computation_in_every_file(root: Path) -> None:
    result = run(root, rank_by=["foreground_dice", "runtime"], column=f"runtime={root}/times.csv")
    # Runtime ranks a 1, c 2, b 3 in every case: mean ranks (12 + 6) / 12, 24 / 12, 30 / 12.
    assert places(result) == {"a": (1.5, 1), "c": (2.0, 2), "b": (2.5, 3)}
    summary = json.loads((root / "out" / "summary.json").read_text())
    assert [rank["mean_rank"] for rank in summary["ranking"]["ranks"]] == [1.5, 2.0, 2.5]
    tau = {
        (one["first"], one["second"]): one["tau"] for one in summary["ranking"]["measure_agreement"]
    }
    assert tau["all", "runtime"] == 1.0
    assert tau["all", "foreground_dice"] is None  # all methods share one place
    rows = (root / "out" / "ranking.csv").read_text().splitlines()
    assert rows[1].startswith("all,rank-then-aggregate,1,a,1.5,")
    cases = (root / "out" / "cases.csv").read_text().splitlines()
    column = cases[0].split(",").index("runtime")
    assert [line.split(",")[column] for line in cases[1:4]] == ["1.0", "3.0", "2.0"]
    how = (root / "out" / "how.md").read_text()
    assert "ranked by each of foreground Dice and runtime within every case" in how
    assert "runtime is read from times.csv; lower values are better." in how
    assert "“a” is first by foreground Dice and runtime (mean rank 1.50;" in how


def test_texts_name_the_test_and_the_correction_of_the_summary(root: Path) -> None:
    result = run(root, rank_by="runtime", column=f"runtime={root}/times.csv", scheme="test-based")
    path = root / "out" / "summary.json"
    content = json.loads(path.read_text())
    assert content["test"] == "Wilcoxon signed-rank test"
    assert "(Wilcoxon signed-rank test, Holm's correction, α = 0.05)" in result.conclusion
    how = (root / "out" / "how.md").read_text()
    assert "signed-rank tests of runtime at α = 0.05, without correction for multiple" in how
    assert content["correction"] == "Holm's correction"
    other = {"test": "sign test", "correction": "Bonferroni's correction"}
    path.write_text(json.dumps(content | other))
    text = conclusion(read_summary(root / "out"))
    assert "(sign test, Bonferroni's correction, α = 0.05)" in text
    assert "p: sign test" in probdice("summarise", root / "out").stdout


def test_the_conclusion_names_methods_that_were_not_tested(root: Path) -> None:
    run(root, rank_by="runtime", column=f"runtime={root}/times.csv")
    summary = read_summary(root / "out")
    others = [rank["method"] for rank in summary["ranking"]["ranks"]][1:]
    for pair in summary["ranking"]["differences"]:
        pair["p_corrected"] = None if others[1] in (pair["first"], pair["second"]) else 0.01
    assert f"“a” differs significantly from “{others[0]}” (" in conclusion(summary)
    untested = f"There are too few cases to test whether “a” differs from “{others[1]}”."
    assert untested in conclusion(summary)


def test_the_conclusion_reports_no_test_if_only_one_method_is_ranked(tmp_path: Path) -> None:
    for name in ("truth", "only", "broken"):
        (tmp_path / name).mkdir()
        for case in range(6):
            labels = np.arange(12).reshape(3, 4) // (4 + case)
            np.save(tmp_path / name / f"c{case}.npy", labels[:2] if name == "broken" else labels)
    methods = {name: tmp_path / name for name in ("only", "broken")}
    result = evaluate(tmp_path / "truth", methods, out=tmp_path / "out", missing="exclude")
    assert places(result)["broken"][1] is None
    assert result.conclusion.startswith("“only” is first by score")
    assert "differ" not in result.conclusion


def test_external_values_stay_available_without_their_file(root: Path) -> None:
    run(root, rank_by="runtime", column={"runtime:higher": root / "times.csv"})
    (root / "times.csv").unlink()
    loaded = Evaluation.load(root / "out")
    assert [rank.method for rank in loaded.ranks()] == ["b", "c", "a"]
    assert loaded.values()["c"].tolist() == [2.0] * 6


@pytest.mark.parametrize("fails", [False, True])
def test_an_external_value_of_a_case_without_a_score_does_not_count(
    root: Path, fails: bool
) -> None:
    file = root / "a" / "s3_2.npy"
    if fails:
        np.save(file, np.zeros(3, int))  # another shape than the reference
    else:
        file.unlink()
    column = f"runtime={root}/times.csv"
    result = run(root, rank_by="runtime", column=column)
    # Ranks: a 1 in five cases and 3 in the last, c 2 in five cases and 1 in the last.
    assert places(result) == {
        "a": (pytest.approx(8 / 6), 1),
        "c": (pytest.approx(11 / 6), 2),
        "b": (pytest.approx(17 / 6), 3),
    }
    assert (result.summaries()["a"].n, result.summaries()["a"].missing) == (5, 1)
    assert {pair.n for pair in result.differences() if "a" in (pair.first, pair.second)} == {5}
    excluded = run(root, rank_by="runtime", column=column, missing="exclude")
    assert [(rank.method, rank.n) for rank in excluded.ranks()] == [("a", 5), ("c", 5), ("b", 5)]


def test_a_region_ranks(root: Path) -> None:
    # Dice of label 2: a 1 1 1 0 0 0, b 1 everywhere, c 1 1 1 1 0 0.
    result = run(root, rank_by="dice:2", scheme="aggregate-then-rank")
    assert places(result) == {"b": (1.0, 1), "c": (pytest.approx(4 / 6), 2), "a": (0.5, 3)}
    assert result.title("dice:2") == "Dice of 2"
    assert result.values("jaccard:1")["b"].tolist() == [0.5] * 6
    # Without a region: the mean over regions 1 and 2, which have Jaccard 1/2 and 1 in b.
    assert result.values("jaccard")["b"].tolist() == [0.75] * 6
    assert result.values("dice")["b"].tolist() == pytest.approx([(2 / 3 + 1) / 2] * 6)
    assert result.title("jaccard") == "foreground Jaccard index"
    assert run(root, rank_by="dice").title("dice") == "foreground Dice"
    header = (root / "out" / "cases.csv").read_text().splitlines()[0].split(",")
    assert "dice" in header


@pytest.mark.parametrize(
    "options",
    [
        {"match": "labels"},
        {"match": "labels", "correspondence": "set"},
        {"match": {0: 0, 1: 1, 2: 2}},
        {"match": "overlap", "correspondence": "set"},
        {
            "match": "labels",
            "names": {"reference": {1: "liver", 2: "spleen"}},
            "rank_by": "dice:liver",
        },
    ],
)
def test_a_false_region_has_dice_0_if_its_label_is_known(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    labels = np.array([[0, 0, 1, 1, 2, 2]])
    save(tmp_path / "truth", {"a": labels, "b": np.array([[0, 0, 0, 0, 2, 2]])})
    save(tmp_path / "mine", {"a": labels, "b": labels})
    given: dict[str, Any] = {"rank_by": "dice:1", "workers": 1} | options
    result = evaluate(tmp_path / "truth", tmp_path / "mine", **given)
    assert result.values()["mine"].tolist() == [1.0, 0.0]


def test_unknown_measures_name_the_option_or_the_regions(root: Path) -> None:
    with pytest.raises(InputError, match=r"jaccard requires a background; .* such as background=0"):
        run(root, rank_by="jaccard", background=None)
    with pytest.raises(
        InputError, match=r"which no reference contains. Available regions: 0, 1, 2"
    ):
        run(root, rank_by="dice:tumour")
    with pytest.raises(InputError, match=r"hd95 requires boundary distances; pass boundaries=True"):
        run(root, rank_by="hd95:1")
    with pytest.raises(InputError, match=r"nsd@1 requires boundary distances at this tolerance"):
        run(root, rank_by="nsd@1", boundaries=True, tolerance=2)
    with pytest.raises(InputError, match="nsd requires a tolerance, as in nsd@1"):
        run(root, rank_by="nsd", boundaries=True)
    with pytest.raises(InputError, match=r"measure must be one of score, .*found 'beauty'"):
        run(root, rank_by="beauty")
    with pytest.raises(InputError, match="rand requires indices=True"):
        run(root, rank_by="rand")
    with pytest.raises(InputError, match=r"expected MEASURE\[@TOLERANCE\]\[:REGION\]"):
        run(root, rank_by="nsd@x:1")


def test_subjects_are_resampled_and_stated(root: Path) -> None:
    result = run(root, subjects="{subject}_{session}")
    assert result.subjects is not None and set(result.subjects.values()) == {"s1", "s2", "s3"}
    assert result.summaries()["a"].interval.reason == "3 subjects, fewer than 6"
    assert result.ranks()[0].place_interval.reason == "3 subjects, fewer than 6"
    assert {pair.subjects for pair in result.differences()} == {3}
    assert result.regions()["a", 1].interval.reason == "3 subjects, fewer than 6"
    how = (root / "out" / "how.md").read_text()
    assert "compared 3 methods on 6 cases of 3 subjects" in how
    assert "resamples draw subjects with all of their cases" in how
    assert Evaluation.load(root / "out").subjects == result.subjects


def test_chosen_columns_and_booktabs(root: Path) -> None:
    run(root, columns="place,foreground_dice,cases", booktabs=True, scheme="aggregate-then-rank")
    lines = (root / "out" / "table.tex").read_text().splitlines()
    assert lines[:8] == [
        r"% requires \usepackage{booktabs}",
        r"\begin{tabular}{rlrr}",
        r"\toprule",
        r"place & method & foreground Dice (95 \% CI) & cases \\",
        r"\midrule",
        r"1 & b & 0.833 (0.833--0.833) & 6 of 6 \\",
        lines[6],
        lines[7],
    ]
    assert lines[6].startswith("2 & c & 0.778 (") and lines[7].startswith("3 & a & 0.750 (")
    assert lines[8] == r"\bottomrule"
    with pytest.raises(InputError, match=r"columns: expected names among place, .*found 'colour'"):
        run(root, columns=["place", "colour"])


def test_a_missed_region_is_infinitely_far_and_medians_are_shown(tmp_path: Path) -> None:
    reference = np.zeros((20, 20), int)
    reference[5:15, 5:15] = 1
    shifted = np.roll(reference, 2, axis=1)
    near = [np.roll(reference, 1, axis=1)] * 6 + [np.zeros_like(reference)]
    cases = [f"c{k}" for k in range(7)]
    save(tmp_path / "truth", dict.fromkeys(cases, reference))
    save(tmp_path / "near", dict(zip(cases, near, strict=True)))
    save(tmp_path / "far", dict.fromkeys(cases, shifted))
    result = evaluate(
        tmp_path / "truth",
        {"near": tmp_path / "near", "far": tmp_path / "far"},
        out=tmp_path / "out",
        background=0,
        match="labels",
        boundaries=True,
        rank_by="hd:1",
        scheme="aggregate-then-rank",
        workers=1,
    )
    # A square moved by k columns: its sides are k away.
    assert result.values()["near"].tolist() == pytest.approx([1.0] * 6 + [math.inf])
    assert result.values()["far"].tolist() == pytest.approx([2.0] * 7)
    assert [(rank.method, rank.value) for rank in result.ranks()] == [
        ("near", pytest.approx(1.0)),
        ("far", pytest.approx(2.0)),
    ]
    assert [one.aggregate for one in result.summaries().values()] == ["median", "median"]
    assert result.worst()["near"][0] == "c6"
    content = json.loads((tmp_path / "out" / "summary.json").read_text())
    (near_summary, _) = content["measures"]["hd:1"]["methods"]
    assert (near_summary["mean"], near_summary["infinite"]) == (math.inf, 1)
    assert "| 1 | near | 1.000 (" in (tmp_path / "out" / "table.md").read_text()
    page = result.report(reports="none").read_text()
    assert "∞" in page and "“near” is first by HD of 1 (median HD of 1 1.000" in page
    xlabel = result.plot("distributions").axes[0].get_xlabel()
    assert xlabel == "HD of 1 (1 infinite value not drawn)"


def test_the_picture_of_schemes_has_the_place_by_every_scheme(root: Path) -> None:
    (axes,) = run(root).plot("schemes").axes
    assert [text.get_text() for text in axes.get_xticklabels()] == [
        "rank-then-aggregate\n(used)",
        "aggregate-then-rank",
        "test-based",
    ]
    lines = {line.get_color(): np.round(line.get_ydata()).tolist() for line in axes.get_lines()}
    assert sorted(lines.values()) == [[1, 1, 1], [1, 2, 1], [1, 3, 1]]


def test_the_command_line_counts_missing_cases_and_strict_fails(root: Path) -> None:
    (root / "c" / "s3_2.npy").unlink()
    words = ["evaluate", "truth", "a", "b", "c", "-o", "out"]
    words += ["--match", "labels", "--background", "0", "--reports", "none"]
    words += ["--rank-by", "dice:1", "--rank-by", "runtime", "--column", "runtime=times.csv"]
    words += ["--subjects", "{subject}_{session}", "--scheme", "test-based"]
    done = probdice(*words, "--strict", folder=root)
    assert done.returncode == 1, done.stderr
    assert "17 scored, 1 missing, 0 failed" in done.stdout
    assert "ranking by Dice of 1 and runtime (test-based)" in done.stdout
    assert "6 cases of 3 subjects" in done.stdout
    again = probdice(*words, folder=root)
    assert again.returncode == 0, again.stderr


def test_a_scheme_in_which_all_methods_share_a_place_has_no_other_winner(tmp_path: Path) -> None:
    """No test on two cases is significant, so all methods are first by the test-based scheme."""
    labels = {"truth": [1, 1, 2, 2], "good": [1, 1, 2, 2], "poor": [1, 2, 2, 2]}
    for name, values in labels.items():
        (tmp_path / name).mkdir()
        for case in "ab":
            np.save(tmp_path / name / case, np.array(values))
    result = evaluate(
        tmp_path / "truth", {name: tmp_path / name for name in ("good", "poor")}, match="labels"
    )
    tested = result.ranks(scheme="test-based")
    assert [rank.place for rank in tested] == [1, 1]
    assert result.conclusion.startswith("“good” is first by score")
    assert "depends on the ranking scheme" not in result.conclusion


def test_the_conclusion_reports_that_no_difference_can_be_significant(tmp_path):
    """With 6 cases, the smallest p-value of 3 tests is 3 · 2 / 2⁶ = 0.094; with 7 cases, 0.047."""
    for case in range(7):
        labels = np.zeros(20, int)
        labels[: 8 + case] = 1
        for name, shift in {"truth": 0, "near": 1, "middle": 2, "far": 3}.items():
            (tmp_path / name).mkdir(exist_ok=True)
            np.save(tmp_path / name / f"case{case}.npy", np.roll(labels, shift))
    methods = {name: tmp_path / name for name in ("near", "middle", "far")}
    seven = evaluate(tmp_path / "truth", methods, match="labels", background=0)
    assert "“near” differs significantly from all other methods" in seven.conclusion
    assert "no difference can be significant" not in seven.conclusion
    for name in ("truth", *methods):
        (tmp_path / name / "case6.npy").unlink()
    six = evaluate(tmp_path / "truth", methods, match="labels", background=0)
    assert six.conclusion.startswith("“near” is first by foreground Dice (mean rank 1.00; mean")
    text = "With 6 cases and 3 tests, no difference can be significant (p is at least 0.094)."
    assert text in six.conclusion
