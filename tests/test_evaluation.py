"""evaluate() on folders: scores, statistics, files, failures and continued runs."""

import csv
import json
import os
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest

import probdice
from probdice import Aitchison, Geometry, compare, write
from probdice.errors import InputError, MissingExtraError, ProbdiceError, ProbdiceWarning
from probdice.evaluation import (
    Evaluation,
    Progress,
    case_scoring,
    compare_again,
    evaluate,
    running,
)
from probdice.evaluation.journal import locked
from probdice.options import CompareOptions

REFERENCE = np.array([1, 1, 1, 1, 2, 2, 2, 2])
PREDICTIONS = {  # per method, one prediction per case; cases a to h
    "good": [np.roll(REFERENCE, k % 2) for k in range(8)],
    "poor": [np.array([7, 7, 5, 5, 5, 9, 9, 9]) for _ in range(8)],
}
FINAL = (
    *("cases.csv", "regions.csv", "files.csv", "ranking.csv", "table.md", "table.tex", "how.md"),
    "summary.json",
)


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    for folder in ("truth", *PREDICTIONS):
        (tmp_path / folder).mkdir()
    for k, case in enumerate("abcdefgh"):
        np.save(tmp_path / "truth" / case, REFERENCE)
        for method, arrays in PREDICTIONS.items():
            np.save(tmp_path / method / case, arrays[k])
    return tmp_path


def run(folders: Path, out: str | None = "out", **options: Any) -> Evaluation:
    return evaluate(
        folders / "truth",
        {name: folders / name for name in PREDICTIONS},
        out=None if out is None else folders / out,
        **options,
    )


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def final(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in FINAL}


def lines(out: Path) -> int:
    return (out / "cases.jsonl").read_bytes().count(b"\n")


# Results --------------------------------------------------------------------------------


def test_every_case_of_every_method_is_scored(folders: Path) -> None:
    result = run(folders)
    assert result.cases == tuple("abcdefgh")
    assert result.values()["good"].tolist() == [1.0, 0.75] * 4
    assert result.values()["poor"].tolist() == [0.625] * 8
    assert result.failures == () and result.missing == ()
    assert len(result.records) == 16


def test_the_files_contain_the_numbers_of_the_result(folders: Path) -> None:
    result = run(folders)
    table = rows(folders / "out" / "cases.csv")
    assert [(row["case"], row["method"]) for row in table[:3]] == [
        ("a", "good"),
        ("a", "poor"),
        ("b", "good"),
    ]
    assert table[1]["score"] == "0.625"
    assert table[1]["status"] == "scored"
    assert table[1]["unmatched_prediction"] == "1"
    assert "unmatched" in table[1]["notes"]
    regions = [row for row in rows(folders / "out" / "regions.csv") if row["method"] == "poor"]
    assert [(r["reference"], r["prediction"], r["dice"]) for r in regions[:3]] == [
        ("1", "7", repr(2 * 2 / 6)),
        ("2", "9", repr(2 * 3 / 7)),
        ("", "5", "0.0"),
    ]
    summary = json.loads((folders / "out" / "summary.json").read_text())
    assert summary == json.loads(json.dumps(result.summary))
    assert summary["format"] == 6
    assert summary["versions"]["probdice"] == probdice.__version__
    assert summary["options"]["similarity"] == {"name": "absolute"}
    assert summary["words"] == "python"


def test_data_frames_equal_the_csv_tables(folders: Path) -> None:
    result = run(folders, out=None)
    assert result.cases_frame()["score"].tolist()[:4] == [1.0, 0.625, 0.75, 0.625]
    assert result.regions_frame().shape == (8 * 2 + 8 * 3, 16)


def test_data_frames_without_pandas_raise_an_error_with_the_install_command(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run(folders, out=None)
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(MissingExtraError, match='pip install "pandas"'):
        result.cases_frame()


def test_statistics_of_methods(folders: Path) -> None:
    result = run(folders)
    summaries = result.summaries()
    assert (summaries["good"].mean, summaries["good"].n) == (0.875, 8)
    assert summaries["good"].interval.kind == "bca"
    assert summaries["poor"].interval.kind == "percentile"
    (pair,) = result.differences()
    assert (pair.first, pair.second, pair.n, pair.mean) == ("good", "poor", 8, 0.25)
    assert pair.p == pytest.approx(2 / 2**8)
    assert [rank.method for rank in result.ranks()] == ["good", "poor"]
    assert result.worst(count=2)["good"] == ["b", "d"]


def test_region_statistics_are_per_reference_label(folders: Path) -> None:
    np.save(folders / "truth" / "a.npy", np.array([1, 1, 1, 1, 3, 3, 3, 3]))
    regions = run(folders).regions()
    assert list(regions) == [(m, label) for m in ("good", "poor") for label in (1, 2, 3)]
    assert regions["poor", 1].n == 8
    assert regions["poor", 1].mean == pytest.approx(2 / 3)
    assert regions["poor", 2].n == 7
    assert regions["poor", 3].n == 1
    assert regions["poor", 3].interval.kind == "withheld"


def test_a_missed_region_counts_as_zero(folders: Path) -> None:
    np.save(folders / "good" / "a.npy", np.ones(8, int))
    result = run(folders)
    dice = result.regions()["good", 2]
    assert (dice.n, dice.lowest) == (8, 0.0)
    assert result.values("lowest_dice")["good"][0] == 0.0
    assert result.values("mean_dice")["good"][0] == pytest.approx((2 * 4 / 12 + 0) / 2)


def test_an_undefined_adjusted_score_is_excluded_from_the_mean(folders: Path) -> None:
    np.save(folders / "truth" / "a.npy", np.ones(8, int))
    np.save(folders / "good" / "a.npy", np.ones(8, int))
    result = run(folders)
    summary = result.summaries("adjusted_score")["good"]
    assert (summary.n, summary.missing) == (7, 1)
    assert rows(folders / "out" / "cases.csv")[0]["adjusted_score"] == ""
    stored = json.loads((folders / "out" / "summary.json").read_text())
    assert stored["measures"]["adjusted_score"]["methods"][0]["n"] == 7


def test_options_reach_the_comparison(folders: Path) -> None:
    merged = run(folders, out=None, merge="both", similarity=Aitchison(0.01), ignore=[2])
    record = next(r for r in merged.records if r.method == "poor")
    expected = compare(
        probdice.Segmentation.from_labels(REFERENCE, ignore=[2]),
        PREDICTIONS["poor"][0],
        merge="both",
        similarity=Aitchison(0.01),
    )
    assert record.comparison is not None
    assert record.comparison.score == expected.score
    assert record.comparison.similarity == Aitchison(0.01)
    assert record.comparison.pixels == 4


def test_explained_shares_are_measures(folders: Path) -> None:
    result = run(folders)
    assert result.values("explained_reference")["poor"].tolist() == pytest.approx([2 / 3] * 8)
    assert result.values("explained_prediction")["poor"].tolist() == pytest.approx([1 / 3] * 8)
    row = rows(folders / "out" / "cases.csv")[1]
    assert float(row["explained_reference"]) == pytest.approx(2 / 3)
    assert float(row["explained_prediction"]) == pytest.approx(1 / 3)
    summary = json.loads((folders / "out" / "summary.json").read_text())
    assert summary["measures"]["explained_reference"]["methods"][1]["mean"] == pytest.approx(2 / 3)


def test_the_explained_share_of_a_constant_image_is_undefined(folders: Path) -> None:
    np.save(folders / "truth" / "a.npy", np.ones(8, int))
    result = run(folders)
    assert np.isnan(result.values("explained_reference")["good"][0])
    assert rows(folders / "out" / "cases.csv")[0]["explained_reference"] == ""


def test_chance_and_explained_of_probabilities_are_in_the_journal(tmp_path: Path) -> None:
    reference = np.array([[0.9, 0.7, 0.2, 0.1], [0.1, 0.3, 0.8, 0.9]])
    prediction = np.array([[0.6, 0.5, 0.1, 0], [0.3, 0.3, 0.1, 0.1], [0.1, 0.2, 0.8, 0.9]])
    for name, array in (("truth", reference), ("soft", prediction)):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "a", array)
    evaluate(tmp_path / "truth", tmp_path / "soft", out=tmp_path / "out")
    (record,) = Evaluation.load(tmp_path / "out").records
    assert record.comparison is not None and record.comparison.images is None
    assert record.comparison.chance == pytest.approx(0.525, abs=0.005)
    assert record.value("explained_reference") == pytest.approx(0.99441341)
    assert record.value("explained_prediction") == pytest.approx(0.98715084)


@pytest.mark.parametrize(
    ("method", "match", "scores"),
    [
        ("poor", "overlap", [0.625] * 8),
        ("poor", "paper", [0.625] * 8),
        ("good", "labels", [1.0, 0.75] * 4),
        ("poor", {5: 1, 7: 2}, [0.25] * 8),
        ("poor", compare(REFERENCE, PREDICTIONS["poor"][0], merge="both"), [0.875] * 8),
    ],
)
def test_every_matching_rule_works(
    folders: Path, method: str, match: Any, scores: list[float]
) -> None:
    for _ in range(2):  # the second run computes nothing
        result = evaluate(folders / "truth", folders / method, match=match, out=folders / "out")
        assert result.values()[method].tolist() == scores
        assert lines(folders / "out") == 8
    assert Evaluation.load(folders / "out").options == result.options


def test_many_regions_give_a_short_journal_line(tmp_path: Path) -> None:
    rows, columns = np.divmod(np.arange(450 * 450), 450)
    cells = (rows // 10 * 45 + columns // 10).reshape(450, 450)
    for name, array in (("truth", cells), ("net", np.roll(cells, (3, 4), (0, 1)))):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "a", array)
    result = evaluate(tmp_path / "truth", tmp_path / "net", out=tmp_path / "out")
    assert len(result.comparison("a").reference_labels) == 2025
    assert (tmp_path / "out" / "cases.jsonl").stat().st_size < 1_000_000


def test_sums_and_scale_of_one_side(folders: Path) -> None:
    percent = np.array([[89.5, 80, 100, 50], [10.5, 20, 0, 25]])
    for folder in ("truth", "soft"):
        (folders / f"p-{folder}").mkdir()
    np.save(folders / "p-truth" / "a", np.array([0, 0, 0, 1]))
    np.save(folders / "p-soft" / "a", percent)
    result = evaluate(
        folders / "p-truth",
        {"soft": folders / "p-soft"},
        scale=100,
        sums={"prediction": "background"},
    )
    # Label map as it is; background 0.25 at the last pixel is unmatched.
    assert result.values()["soft"].tolist() == pytest.approx([(0.895 + 0.8 + 1 + 0.25) / 4])
    forced = evaluate(
        folders / "p-truth", {"soft": folders / "p-soft"}, scale={"prediction": 50}, sums="error"
    )
    assert "above 1" in forced.failures[0].error or "sum" in forced.failures[0].error


def test_the_complete_comparison_is_read_back(folders: Path) -> None:
    run(folders)
    again = Evaluation.load(folders / "out")
    comparison = again.comparison("a", "poor")
    assert comparison.weights.tolist() == [[0.375, 0.25, 0.875], [0.625, 0.75, 0.125]]
    with pytest.raises(InputError, match="no case 'z' of method 'poor'"):
        again.comparison("z", "poor")


def test_a_finished_run_is_read_back(folders: Path) -> None:
    result = run(folders)
    again = Evaluation.load(folders / "out")
    assert again.summary == result.summary
    assert str(again) == str(result)
    again.write(folders / "out")
    assert final(folders / "out") == final(folders / "out")


def test_loading_an_unfinished_run_is_an_error(folders: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a results folder written by evaluate"):
        Evaluation.load(tmp_path / "truth")
    run(folders)
    (folders / "out" / "summary.json").unlink()
    with pytest.raises(
        InputError, match=r"its journal has 16 comparisons\); run the same command again"
    ):
        Evaluation.load(folders / "out")


def test_parquet(folders: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    result = run(folders, parquet=True)
    frame = pandas.read_parquet(folders / "out" / "cases.parquet")
    assert frame["score"].tolist() == result.cases_frame()["score"].tolist()
    assert len(pandas.read_parquet(folders / "out" / "regions.parquet")) == 40


def test_parquet_without_pyarrow_is_rejected_before_any_comparison(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("probdice.evaluation.one_reference.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="Parquet requires pandas"):
        run(folders, parquet=True)
    assert not (folders / "out").exists()


# Missing and failed cases ----------------------------------------------


def test_missing_cases_are_listed_and_rank_last(folders: Path) -> None:
    (folders / "good" / "c.npy").unlink()
    np.save(folders / "poor" / "x.npy", REFERENCE)
    result = run(folders)
    assert result.missing_rule == "worst"
    assert [(m.case, m.method, m.side) for m in result.missing] == [
        ("c", "good", "prediction"),
        ("x", "poor", "reference"),
    ]
    row = rows(folders / "out" / "cases.csv")[4]
    assert (row["case"], row["method"], row["status"]) == ("c", "good", "missing")
    assert (row["score"], row["error"]) == ("", "no prediction")
    assert result.summaries()["good"].n == 7
    assert result.differences()[0].n == 7
    assert Evaluation.load(folders / "out").missing == result.missing


def write_bad_cases(folders: Path) -> None:
    """A truncated file, a shape mismatch, an unreadable file and a NaN map, and valid cases."""
    image = nibabel.Nifti1Image(np.arange(8, dtype=np.int16).reshape(2, 2, 2), np.eye(4))
    for folder in ("truth", *PREDICTIONS):
        nibabel.save(image, folders / folder / "truncated.nii.gz")
        np.save(folders / folder / "mismatch", REFERENCE)
        np.save(folders / folder / "unreadable", REFERENCE)
        np.save(folders / folder / "nan", REFERENCE)
    file = folders / "good" / "truncated.nii.gz"
    file.write_bytes(file.read_bytes()[:60])
    np.save(folders / "good" / "mismatch", REFERENCE[:6])
    (folders / "good" / "unreadable.npy").unlink()
    (folders / "good" / "unreadable.npy").symlink_to(folders / "nowhere.npy")
    np.save(folders / "good" / "nan", np.array([[0.5] * 8, [0.5] * 7 + [np.nan]]))


def test_failed_cases_are_listed_and_other_cases_are_scored(folders: Path) -> None:
    write_bad_cases(folders)
    result = run(folders)
    errors = {(r.case, r.method): r.error for r in result.failures}
    assert errors.keys() == {
        (case, "good") for case in ("truncated", "mismatch", "unreadable", "nan")
    }
    assert "truncated.nii.gz" in errors["truncated", "good"]
    assert "It may be incomplete" in errors["truncated", "good"]
    assert "shape (8,)" in errors["mismatch", "good"] and "(6,)" in errors["mismatch", "good"]
    assert "no such file" in errors["unreadable", "good"]
    assert errors["nan", "good"].startswith("prediction (")
    assert "nan.npy): found nan at pixel (7,)" in errors["nan", "good"]
    assert "nan at pixel (7,)" in errors["nan", "good"]
    assert result.summaries()["good"].n == 8
    assert result.summaries()["good"].missing == 4
    assert result.summaries()["poor"].n == 12
    table = {(r["case"], r["method"]): r for r in rows(folders / "out" / "cases.csv")}
    assert table["nan", "good"]["status"] == "failed"
    # Written files have paths relative to the results folder.
    assert table["nan", "good"]["error"] == errors["nan", "good"].replace(f"{folders}/", "../")
    assert table["nan", "poor"]["status"] == "scored"


def test_failed_cases_are_tried_again(folders: Path) -> None:
    write_bad_cases(folders)
    run(folders)
    assert lines(folders / "out") == 24
    run(folders)
    assert lines(folders / "out") == 28
    np.save(folders / "good" / "nan", REFERENCE)
    result = run(folders)
    assert lines(folders / "out") == 32
    assert {r.case for r in result.failures} == {"truncated", "mismatch", "unreadable"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"merge": "all"}, "merge must be"),
        ({"merge": "both", "match": "labels"}, 'cannot be combined with match="labels"'),
        ({"match": False}, 'match="labels" instead of False'),
        ({"match": {}}, "match is an empty mapping"),
        ({"similarity": "cosine"}, "similarity must be"),
        ({"sums": "guess"}, "sums must be"),
        ({"sums": {"truth": "error"}}, "expected a mapping with the keys 'reference' and"),
        ({"scale": -1}, "scale must be a positive number"),
        ({"workers": 0}, "workers must be a positive integer, found 0"),
        ({"workers": True}, "workers must be a positive integer, found True"),
        ({"workers": 2.0}, r"workers must be a positive integer, found 2\.0"),
        ({"ignore": True}, "ignore must contain whole numbers, found True"),
        ({"ignore": [1, "2"]}, "ignore: expected whole numbers, found '2'"),
        ({"ignore": "12"}, "ignore: expected whole numbers, found '12'"),
        (
            {"ignore_geometry": True, "geometry_tolerance": 0.1},
            "cannot be combined with ignore_geometry",
        ),
        ({"pattern": {"other": "{case}.npy"}}, r"a method or rater, found \['other'\]"),
        ({"pattern": 5}, "pattern must be a file name pattern, .* or a mapping .*, found 5"),
        ({"pattern": {"good": 5}}, r"pattern must be .*, found \{'good': 5\}"),
        ({"mask": 5}, "mask must be the path of a folder, found 5"),
        ({"image": ["a"]}, r"image must be the path of a folder, found \['a'\]"),
        ({"surface": 5}, "surface must be one or more paths of files, found 5"),
        ({"surface": ["lh.pial", 5]}, r"surface must be one or more paths of files, found \['lh"),
        ({"subjects": 5}, "subjects must be a pattern of case names, .*, found 5"),
        ({"raters": ["a", "b"]}, r"raters must be a mapping .* to folders, found \['a', 'b'\]"),
        ({"raters": {"a": 5}}, "raters: expected the path of a folder for 'a', found 5"),
    ],
)
def test_invalid_options_are_rejected_before_any_comparison(
    folders: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        run(folders, **options)
    assert not (folders / "out").exists()


@pytest.mark.parametrize("ignore", [2, np.int64(2), [2], np.array([2]), np.array(2), {2}])
def test_ignore_accepts_one_label_or_several(folders: Path, ignore: Any) -> None:
    result = run(folders, out=None, ignore=ignore, workers=np.int64(2))
    assert result.options.ignore == (2,)
    assert {r.comparison.pixels for r in result.records if r.comparison} == {4}


def test_methods_need_a_name_of_any_text(folders: Path) -> None:
    with pytest.raises(InputError, match="at least one method"):
        evaluate(folders / "truth", {})
    with pytest.raises(InputError, match="found an empty name"):
        evaluate(folders / "truth", {"": folders / "good"})
    with pytest.raises(InputError, match=r"predictions must be .*, found \['a', 'b'\]"):
        evaluate(folders / "truth", ["a", "b"])  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"predictions: .* a folder for 'a', found 5"):
        evaluate(folders / "truth", {"a": 5})  # type: ignore[dict-item]
    with pytest.raises(InputError, match="reference must be the path of a folder, found 5"):
        evaluate(5, folders / "good")  # type: ignore[arg-type]
    sides = {"reference": folders / "poor", "prediction": folders / "good"}
    named = evaluate(folders / "truth", sides, pattern={"reference": "{case}.npy"})
    assert named.values()["reference"].tolist() == [0.625] * 8
    assert list(evaluate(folders / "truth", folders / "good").methods) == ["good"]


def test_patterns_may_differ_per_side_and_method(folders: Path) -> None:
    for case in "abcdefgh":
        (folders / "poor" / f"{case}.npy").rename(folders / "poor" / f"{case}_out.npy")
    result = run(folders, out=None, pattern={"poor": "{case}_out.npy"})
    assert len(result.records) == 16
    general = evaluate(
        folders / "truth", folders / "poor", pattern={"prediction": "{case}_out.npy"}
    )
    assert len(general.records) == 8


def test_probabilities_of_nnunet_are_not_hardened(tmp_path: Path) -> None:
    labels = np.zeros((2, 3, 4), np.uint8)
    labels[1] = 1
    soft = np.stack([1 - 0.5 * labels, 0.5 * labels]).astype(np.float32)
    for folder in ("truth", "net"):
        (tmp_path / folder).mkdir()
        nibabel.save(nibabel.Nifti1Image(labels, np.eye(4)), tmp_path / folder / "c.nii.gz")
    np.savez_compressed(tmp_path / "net" / "c.npz", probabilities=soft.transpose(0, 3, 2, 1))
    nets = {"net": tmp_path / "net"}
    assert evaluate(tmp_path / "truth", nets).values()["net"].tolist() == [1.0]
    soft_result = evaluate(tmp_path / "truth", nets, probabilities=True)
    assert soft_result.values()["net"].tolist() == [0.75]


def test_geometry_is_checked_unless_it_is_ignored(tmp_path: Path) -> None:
    labels = np.zeros((2, 2, 2), np.uint8)
    labels[1] = 1
    for folder, shift in (("truth", 0.0), ("net", 0.3)):
        (tmp_path / folder).mkdir()
        affine = np.eye(4)
        affine[0, 3] = shift
        nibabel.save(nibabel.Nifti1Image(labels, affine), tmp_path / folder / "c.nii")
    both = tmp_path / "truth", {"net": tmp_path / "net"}
    assert "do not lie on the same grid" in evaluate(*both).failures[0].error
    assert evaluate(*both, geometry_tolerance=0.5).values()["net"].tolist() == [1.0]
    assert evaluate(*both, ignore_geometry=True).values()["net"].tolist() == [1.0]


# Continued runs -----------------------------------------------------------------------------------


def test_a_second_run_computes_nothing_and_writes_the_same(folders: Path) -> None:
    run(folders)
    first = final(folders / "out")
    seen: list[Progress] = []
    run(folders, progress=seen.append)
    assert lines(folders / "out") == 16
    assert final(folders / "out") == first
    assert [(p.total, p.done, p.resumed, p.failed) for p in seen] == [(16, 16, 16, 0)]


def test_progress_is_reported_case_by_case(folders: Path) -> None:
    np.save(folders / "poor" / "h", REFERENCE[:3])
    seen: list[Progress] = []
    run(folders, progress=seen.append)
    assert [p.done for p in seen] == list(range(17))
    assert seen[0].latest is None
    assert seen[-1].failed == 1
    assert seen[-1].latest is not None and seen[-1].latest.error != ""


@pytest.mark.parametrize("cut", [0.0, 0.1, 0.5, 0.77, 0.999])
def test_a_run_with_a_truncated_journal_ends_with_the_same_files(folders: Path, cut: float) -> None:
    run(folders)
    whole = final(folders / "out")
    journal = folders / "out" / "cases.jsonl"
    content = journal.read_bytes()
    journal.write_bytes(content[: int(cut * len(content))])
    for name in FINAL:
        (folders / "out" / name).unlink()
    run(folders)
    assert final(folders / "out") == whole
    assert lines(folders / "out") == 16


def test_the_order_of_the_journal_does_not_matter(folders: Path) -> None:
    run(folders)
    whole = final(folders / "out")
    journal = folders / "out" / "cases.jsonl"
    journal.write_bytes(b"".join(reversed(journal.read_bytes().splitlines(keepends=True))))
    run(folders)
    assert final(folders / "out") == whole


def test_other_options_are_computed_again_and_both_results_are_stored(folders: Path) -> None:
    run(folders)
    first = final(folders / "out")
    merged = run(folders, merge="both")
    assert lines(folders / "out") == 32
    assert merged.values("score")["poor"].tolist() == [0.875] * 8
    run(folders)
    assert lines(folders / "out") == 32
    assert final(folders / "out") == first


def test_changed_inputs_are_computed_again(folders: Path) -> None:
    run(folders)
    np.save(folders / "good" / "b", REFERENCE)
    result = run(folders)
    assert lines(folders / "out") == 17
    assert result.values()["good"].tolist()[:2] == [1.0, 1.0]


def test_a_changed_table_of_names_is_computed_again(tmp_path: Path) -> None:
    for folder, labels in (("truth", [1, 1, 1, 2]), ("mine", [1, 1, 2, 2])):
        (tmp_path / folder).mkdir()
        np.save(tmp_path / folder / "a", np.array(labels))
    names = {"reference": {1: "left", 2: "right"}, "prediction": tmp_path / "names.csv"}

    def score(table: str) -> float:
        (tmp_path / "names.csv").write_text(table)
        folders = tmp_path / "truth", tmp_path / "mine"
        result = evaluate(*folders, names=names, match="labels", out=tmp_path / "out")
        return result.comparison("a").score

    assert score("1,left\n2,right\n") == 0.75
    assert score("2,left\n1,right\n") == 0.25
    assert "names.csv" in (tmp_path / "out" / "files.csv").read_text()


def test_inputs_that_were_changed_and_restored_are_computed_again(folders: Path) -> None:
    run(folders)
    first = final(folders / "out")
    file = folders / "good" / "b.npy"
    content, times = file.read_bytes(), file.stat().st_mtime_ns
    np.save(file, REFERENCE)
    run(folders)
    file.write_bytes(content)
    os.utime(file, ns=(times, times))
    run(folders)
    assert final(folders / "out") == first
    again = Evaluation.load(folders / "out")
    assert again.values()["good"][1] == 0.75  # the latest line of a case counts


def test_a_concurrent_run_into_the_same_folder_is_rejected(folders: Path) -> None:
    (folders / "out").mkdir()
    with locked(folders / "out"), pytest.raises(InputError, match="another run is writing"):
        run(folders)
    assert len(run(folders).records) == 16


def test_inputs_with_a_new_modification_time_are_unchanged_only_with_verify(folders: Path) -> None:
    run(folders, verify=True)
    os.utime(folders / "truth" / "a.npy", ns=(1, 1))
    run(folders, verify=True)
    assert lines(folders / "out") == 16
    run(folders)
    assert lines(folders / "out") == 18


def test_verify_detects_a_change_with_the_same_size_and_time(folders: Path) -> None:
    run(folders, verify=True)
    file = folders / "good" / "b.npy"
    times = file.stat().st_mtime_ns
    np.save(file, REFERENCE)
    os.utime(file, ns=(times, times))
    assert run(folders).values()["good"][1] == 0.75
    assert run(folders, verify=True).values()["good"][1] == 1.0


def test_a_change_of_a_companion_file_is_a_change(tmp_path: Path) -> None:
    sides = {"reference": (str(tmp_path / "r.nii"),), "prediction": (str(tmp_path / "c.npz"),)}
    job = case_scoring.Job("c", "m", {**sides, "mask": ()})
    np.savez(tmp_path / "c.npz", probabilities=np.ones((1, 2, 2, 2)))
    names = CompareOptions().names
    before = case_scoring.inputs_of(job, names, verify=False)
    (tmp_path / "c.nii.gz").touch()  # the probabilities use its geometry
    assert not case_scoring.same_inputs(
        before, case_scoring.inputs_of(job, names, verify=False), verify=False
    )


def test_the_files_do_not_depend_on_the_number_of_workers(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(folders, "one", workers=1)
    monkeypatch.setattr(running, "MIN_PARALLEL_BYTES", 0)
    run(folders, "two", workers=2)
    assert final(folders / "one") == final(folders / "two")


def test_nothing_is_stored_without_a_results_folder(folders: Path) -> None:
    before = sorted(folders.rglob("*"))
    result = run(folders, out=None)
    assert sorted(folders.rglob("*")) == before
    assert result.comparison("b", "good").score == 0.75


def test_the_final_files_contain_no_time(folders: Path) -> None:
    run(folders, "one")
    os.utime(folders / "truth" / "a.npy", ns=(1, 1))
    run(folders, "two")
    assert final(folders / "one") == final(folders / "two")


def test_repr_lists_at_most_five_failures(folders: Path) -> None:
    for case in "abcdefgh":
        np.save(folders / "good" / case, REFERENCE[:3])
    text = str(run(folders))
    assert "8 scored, 0 missing, 8 failed" in text
    assert text.count("failed: ") == 5
    assert "… and 3 more failures" in text


def test_cases_of_another_version_are_computed_again(folders: Path) -> None:
    run(folders)
    journal = folders / "out" / "cases.jsonl"
    journal.write_text(journal.read_text().replace('"version": "', '"version": "0.'))
    seen: list[Progress] = []
    run(folders, progress=seen.append)
    assert (seen[0].resumed, seen[-1].done) == (0, 16)


def test_a_folder_of_an_older_format_is_rejected_and_computed_again(folders: Path) -> None:
    run(folders)
    first = final(folders / "out")
    for name, current in (("summary.json", 6), ("cases.jsonl", 3)):
        path = folders / "out" / name
        path.write_text(path.read_text().replace(f'"format": {current}', '"format": 2'))
    with pytest.raises(
        InputError, match=r"expected summary format 6, found 2\. The file was not written by"
    ):
        Evaluation.load(folders / "out")
    run(folders)
    assert lines(folders / "out") == 32
    assert final(folders / "out") == first


# Comparing cases again for pages ------------------------------------------------------------------


def shows_images(page: Path) -> bool:
    text = page.read_text(encoding="utf-8")
    return 'id="pixels"' in text or 'id="slices"' in text


def test_records_have_full_paths_from_any_working_directory(
    folders: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folders)
    evaluate("truth", {"good": "good"}, out="out")
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    record = Evaluation.load(folders / "out").records[1]
    assert record.reference == (str(folders / "truth" / "b.npy"),)
    assert record.prediction == (str(folders / "good" / "b.npy"),)
    again = compare_again(record, Evaluation.load(folders / "out").options)
    assert again.map().tolist() == [0, 1, 1, 1, 0, 1, 1, 1]


def test_a_path_inside_a_file_is_compared_again(folders: Path) -> None:
    (folders / "packed").mkdir()
    np.savez(folders / "packed" / "a_out.npz", first=REFERENCE, second=np.roll(REFERENCE, 1))
    result = evaluate(
        folders / "truth",
        {"packed": folders / "packed"},
        pattern={"prediction": "{case}_out.npz:second"},
        missing="worst",
    )
    assert result.records[0].prediction == (f"{folders / 'packed' / 'a_out.npz'}:second",)
    assert compare_again(result.records[0], result.options).score == 0.75


def test_a_case_is_compared_again_with_the_options_of_the_run(folders: Path) -> None:
    options = {"similarity": Aitchison(0.01), "merge": "prediction", "ignore": [1]}
    result = run(folders, **options)
    for record in Evaluation.load(folders / "out").records:
        assert record.comparison is not None
        again = compare_again(record, result.options, workers=1)
        assert again.to_dict() == record.comparison.to_dict()


def test_missing_or_changed_files_are_errors(folders: Path) -> None:
    result = run(folders)
    np.save(folders / "good" / "a", np.roll(REFERENCE, 3))
    (folders / "good" / "b.npy").unlink()
    (folders / "good" / "c.npy").write_bytes(b"nonsense")
    a, b, c = (result.records[k] for k in (0, 2, 4))
    with pytest.raises(InputError, match="the files have changed since"):
        compare_again(a, result.options)
    with pytest.raises(InputError, match=r"good/b\.npy: no such file"):
        compare_again(b, result.options)
    with pytest.raises(ProbdiceError, match=r"good/c\.npy"):
        compare_again(c, result.options)


def test_moved_input_folders_need_no_new_comparison(folders: Path) -> None:
    run(folders)
    before = final(folders / "out")
    journal_lines = {
        (line["case"], line["method"]): line["comparison"]
        for line in map(json.loads, (folders / "out" / "cases.jsonl").read_text().splitlines())
    }
    (folders / "truth").rename(folders / "moved")
    methods = {name: folders / name for name in PREDICTIONS}
    seen: list[Progress] = []
    evaluate(folders / "moved", methods, out=folders / "out", progress=seen.append)
    assert [(one.done, one.resumed) for one in seen] == [(16, 16)]
    assert lines(folders / "out") == 32
    loaded = Evaluation.load(folders / "out")
    assert {record.reference[0].split("/")[-2] for record in loaded.records} == {"moved"}
    for (case, method), content in journal_lines.items():
        assert json.loads(loaded.comparison(case, method).to_json()) == content
    evaluate(folders / "moved", methods, out=folders / "out")
    assert lines(folders / "out") == 32
    (folders / "moved").rename(folders / "truth")
    run(folders)
    assert final(folders / "out") == before


def test_the_report_links_to_case_pages_with_images(folders: Path) -> None:
    result = run(folders)
    page = result.report(reports="worst:1")
    assert page == folders / "out" / "report.html"
    cases = sorted((folders / "out" / "report_cases").iterdir())
    # The worst case of each method, and all methods of the case that is worst on average.
    assert [file.name for file in cases] == [
        "0000-a-poor.html",
        "0001-b-good.html",
        "0002-b-poor.html",
        "0003-b-all.html",
    ]
    assert all(shows_images(file) for file in cases)
    bytes_before = {file: file.read_bytes() for file in (page, *cases)}
    Evaluation.load(folders / "out").report(reports="worst:1", workers=1)
    assert {file: file.read_bytes() for file in (page, *cases)} == bytes_before


def test_the_page_of_a_case_with_a_missing_file_has_a_notice(folders: Path) -> None:
    run(folders)
    (folders / "good" / "b.npy").unlink()
    with pytest.warns(ProbdiceWarning, match=r"b \(good\): the page has no images: .*no such file"):
        Evaluation.load(folders / "out").report(reports="worst:1")
    first, second, *_ = sorted((folders / "out" / "report_cases").iterdir())
    assert shows_images(first) and not shows_images(second)
    text = second.read_text(encoding="utf-8")
    assert "shows only recorded numbers" in text and "b.npy: no such file" in text
    assert "0.7500" in text


def test_a_report_needs_a_path_and_no_concurrent_run(folders: Path, tmp_path: Path) -> None:
    result = run(folders, None)
    with pytest.raises(InputError, match="path=None requires a results folder"):
        result.report()
    assert result.report(tmp_path / "page.html", reports="worst:1") == tmp_path / "page.html"
    assert all(shows_images(file) for file in (tmp_path / "page_cases").iterdir())
    stored = run(folders)
    with (
        locked(folders / "out"),
        pytest.raises(InputError, match="another run is writing into this folder"),
    ):
        stored.report()


def test_an_input_folder_is_rejected_as_results_folder(tmp_path: Path) -> None:
    for folder in ("reference", "method"):
        (tmp_path / folder).mkdir()
        np.save(tmp_path / folder / "a.npy", np.array([1, 2, 2]))
    for folder in ("reference", "method"):
        with pytest.raises(ProbdiceError, match="is an input folder"):
            evaluate(tmp_path / "reference", {"m": tmp_path / "method"}, out=tmp_path / folder)
        assert [path.name for path in (tmp_path / folder).iterdir()] == ["a.npy"]


def test_names_and_priority_apply_to_every_case(tmp_path):
    kidney, tumour = np.array([1, 1, 1, 0], np.uint8), np.array([0, 1, 0, 0], np.uint8)
    for folder in ("truth", "mine"):
        (tmp_path / folder / "a").mkdir(parents=True)
        np.save(tmp_path / folder / "a" / "kidney.npy", kidney)
        np.save(tmp_path / folder / "a" / "tumour.npy", tumour)
    (tmp_path / "names.csv").write_text("1,organ\n2,lesion\n")
    result = evaluate(
        tmp_path / "truth",
        {"mine": tmp_path / "mine"},
        pattern="{case}/*.npy",
        priority=("tumour", "kidney"),
        names={"reference": tmp_path / "names.csv"},
    )
    (record,) = result.records
    assert not result.failures
    groups = [(group.reference, group.prediction) for group in record.comparison.groups]
    assert groups == [
        (("background",), ("background",)),
        (("organ",), ("kidney",)),
        (("lesion",), ("tumour",)),
    ]


def test_region_volumes_are_in_millilitres_if_the_geometry_is_known(tmp_path):
    place = Geometry((2, 2, 1), np.diag([10.0, 10.0, 5.0, 1.0]))
    for folder in ("truth", "mine"):
        (tmp_path / folder).mkdir()
        labels = np.array([[[1], [1]], [[1], [2]]], np.uint8)
        write(tmp_path / folder / "placed.nii.gz", labels, place)
        np.save(tmp_path / folder / "plain.npy", labels)
    result = evaluate(tmp_path / "truth", {"mine": tmp_path / "mine"}, out=tmp_path / "out")
    assert not result.failures
    with (tmp_path / "out" / "regions.csv").open() as stream:
        rows = [(row["case"], row["reference_ml"]) for row in csv.DictReader(stream)]
    assert rows == [("placed", "1.5"), ("placed", "0.5"), ("plain", ""), ("plain", "")]


# -- indices and detection ---------------------------------------------------------------------


def test_indices_and_detection_columns_on_request(folders: Path) -> None:
    plain = rows(folders / "out" / "cases.csv") if run(folders) else []
    assert "rand" not in plain[0]
    result = run(folders, indices=True, background=1)
    table = rows(folders / "out" / "cases.csv")
    first = next(row for row in table if row["case"] == "a" and row["method"] == "poor")
    expected = compare(REFERENCE, PREDICTIONS["poor"][0], background=1)
    assert float(first["rand"]) == expected.indices().rand
    assert float(first["covering_reference"]) == expected.indices().covering["reference"]
    assert int(first["misses"]) == expected.detection().misses
    assert list(first)[-2:] == ["notes", "error"]
    assert Evaluation.load(folders / "out").others == result.others
    assert result.cases_frame()["f1"].notna().all()


def test_additional_columns_need_no_new_comparison(folders: Path) -> None:
    run(folders)
    journal = (folders / "out" / "cases.jsonl").read_bytes()
    run(folders, indices=True)
    assert (folders / "out" / "cases.jsonl").read_bytes() == journal


def test_a_background_that_cannot_be_found_fails_the_case(folders: Path) -> None:
    run(folders, background="nothing")
    row = rows(folders / "out" / "cases.csv")[0]
    assert row["status"] == "failed"
    assert 'background="nothing": the regions of the reference have no names' in row["error"]


# One correspondence over all cases -------------------------------------------------------------


@pytest.fixture
def clusters(tmp_path: Path) -> Path:
    """Three clusters for two classes. Matching the third case alone would exchange the classes."""
    truth = {"a": [1, 1, 1, 2], "b": [1, 1, 2, 2], "c": [1, 1, 2, 2]}
    mine = {"a": [5, 5, 9, 7], "b": [5, 5, 7, 7], "c": [7, 7, 5, 9]}
    for name, cases in (("truth", truth), ("mine", mine)):
        (tmp_path / name).mkdir()
        for case, labels in cases.items():
            np.save(tmp_path / name / case, np.array(labels))
    return tmp_path


def run_set(folder: Path, **options: Any) -> Evaluation:
    return evaluate(folder / "truth", folder / "mine", correspondence="set", **options)


def test_one_correspondence_applies_to_all_cases(clusters: Path) -> None:
    each = evaluate(clusters / "truth", clusters / "mine")
    assert each.values()["mine"].tolist() == [0.75, 1.0, 0.75]
    result = run_set(clusters)
    assert result.values()["mine"].tolist() == [0.75, 1.0, 0.0]
    assert result.correspondences["mine"].groups == (((1,), (5,)), ((2,), (7,)), ((), (9,)))
    assert result.comparison("c").match == result.correspondences["mine"].groups
    many_to_one = run_set(clusters, merge="prediction")
    assert many_to_one.correspondences["mine"].groups == (((1,), (5, 9)), ((2,), (7,)))
    assert many_to_one.values("score")["mine"].tolist() == [1.0, 1.0, 0.0]


def test_the_mean_of_equal_cases_is_the_score_of_the_sum(clusters: Path) -> None:
    result = run_set(clusters, merge="prediction")
    total = sum(record.comparison.overlap for record in result.records if record.comparison)
    assert total.compare(merge="prediction").score == np.mean(result.values("score")["mine"])


def test_a_set_is_continued_loaded_and_compared_again(clusters: Path) -> None:
    out, seen = clusters / "out", []
    first = run_set(clusters, out=out, merge="prediction", progress=seen.append)
    assert [(now.stage, now.done, now.total) for now in seen] == [
        *(("overlaps", done, 3) for done in range(4)),
        *(("comparisons", done, 3) for done in range(4)),
    ]
    before, counted = final(out), lines(out)
    loaded = Evaluation.load(out)
    assert loaded.values()["mine"].tolist() == first.values()["mine"].tolist()
    assert loaded.correspondences == first.correspondences
    again = compare_again(loaded.records[0], loaded.options_of("mine"))
    assert again.score == 1
    run_set(clusters, out=out, merge="prediction")
    assert (final(out), lines(out)) == (before, counted)
    np.save(clusters / "truth" / "d", np.array([2, 2, 2, 2, 2, 2]))
    np.save(clusters / "mine" / "d", np.array([9, 9, 9, 9, 9, 9]))
    merged = run_set(clusters, out=out, merge="prediction")  # another correspondence
    assert merged.correspondences["mine"].groups == (((1,), (5,)), ((2,), (7, 9)))
    assert Evaluation.load(out).values("score")["mine"].tolist() == [0.75, 1.0, 0.25, 1.0]
    first.report(out / "page.html")


def test_an_unreadable_case_does_not_change_the_common_correspondence(clusters: Path) -> None:
    (clusters / "mine" / "c.npy").write_bytes(b"corrupt")
    seen: list[Progress] = []
    result = run_set(clusters, progress=seen.append)
    assert [record.case for record in result.failures] == ["c"]
    assert result.values()["mine"].tolist()[:2] == [0.75, 1.0]
    assert [now.latest.case for now in seen if now.latest and now.latest.failure] == ["c"]
    for case in "ab":
        (clusters / "mine" / f"{case}.npy").write_bytes(b"corrupt")
    assert len(run_set(clusters).failures) == 3


def test_overlaps_for_a_set_do_not_compute_chance(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for folder in ("truth", "mine"):
        (tmp_path / folder).mkdir()
        for case in "ab":
            np.save(tmp_path / folder / case, rng.dirichlet(np.ones(2), 50).T)
    run_set(tmp_path, out=tmp_path / "out")
    journal = (tmp_path / "out" / "cases.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in journal.splitlines()]
    assert ["explained" in line["comparison"] for line in lines] == [False, False, True, True]


def test_missing_cases_rank_last_or_count_as_0_or_are_excluded(folders: Path) -> None:
    for case in "gh":
        (folders / "good" / f"{case}.npy").unlink()
    worst, zero, exclude = (run(folders, None, missing=r) for r in ("worst", "zero", "exclude"))
    scored = worst.summaries()["good"].mean
    assert [one.summaries()["good"].n for one in (worst, zero, exclude)] == [6, 8, 6]
    assert zero.summaries()["good"].mean == pytest.approx(scored * 6 / 8)
    assert exclude.summaries()["good"].mean == scored
    ranks = [{rank.method: rank for rank in one.ranks()} for one in (worst, zero, exclude)]
    assert [(one["good"].n, one["good"].last) for one in ranks] == [(8, 2), (8, 2), (6, 0)]
    assert [one.differences()[0].n for one in (worst, zero, exclude)] == [6, 8, 6]
    assert worst.counts["good"].missing == 2
    assert worst.remarks["good"] == ("2 missing of 8 cases, which rank last",)
    with pytest.raises(InputError, match="missing must be 'worst', 'zero' or 'exclude', found"):
        run(folders, missing="best")


def test_a_scored_case_without_a_value_is_excluded_from_the_ranking(folders: Path) -> None:
    np.save(folders / "truth" / "a", np.zeros(8, int))
    np.save(folders / "good" / "a", np.zeros(8, int))  # equal, so the adjusted score is undefined
    result = run(folders, None, missing="worst")
    assert np.isnan(result.values("adjusted_score")["good"][0])
    assert {rank.n for rank in result.ranks("adjusted_score")} == {7}
    assert {rank.n for rank in result.ranks("score")} == {8}


def test_methods_are_ranked_by_the_given_measure(folders: Path) -> None:
    assert run(folders, None).rank_by == ("score",)
    assert run(folders, None, merge="both").rank_by == ("adjusted_score",)
    result = run(folders, None, background=1, rank_by="lowest_dice")
    assert (result.rank_by, result.measures[0]) == (("lowest_dice",), "lowest_dice")
    foreground = run(folders, None, background=1)
    assert foreground.rank_by == ("foreground_dice",)
    case = foreground.comparison("a", "poor")
    assert case.background == {"reference": 1, "prediction": 1}
    assert foreground.values()["poor"][0] == case.foreground_dice
    with pytest.raises(InputError, match="foreground_dice requires a background; pass"):
        run(folders, rank_by="foreground_dice")
    with pytest.raises(
        InputError, match=r"measure must be one of score, .*found 'beauty'"
    ) as error:
        run(folders, rank_by="beauty", background=1)
    assert str(error.value).count(" pooled_dice,") == 1


def test_only_pixels_inside_masks_are_compared(folders: Path) -> None:
    (folders / "masks").mkdir()
    for case in "abcdefgh":
        np.save(folders / "masks" / case, np.array([1] * 6 + [0] * 2))
    result = run(folders, mask=folders / "masks")
    assert {record.comparison.pixels for record in result.records if record.comparison} == {6}
    whole = final(folders / "out")
    np.save(folders / "masks" / "a", np.ones(8, int))
    changed = run(folders, mask=folders / "masks")
    assert changed.comparison("a", "good").pixels == 8
    assert final(folders / "out") != whole
    loaded = Evaluation.load(folders / "out")
    assert compare_again(loaded.records[0], loaded.options).pixels == 8


def test_case_pages_show_images(folders: Path) -> None:
    (folders / "scans").mkdir()
    for folder in ("truth", *PREDICTIONS):
        for case in "abcdefgh":
            file = folders / folder / f"{case}.npy"
            np.save(file, np.load(file).reshape(2, 4))
    np.save(folders / "scans" / "a_scan", np.arange(8.0).reshape(2, 4))
    asked = {"image": folders / "scans", "pattern": {"image": "{case}_scan.npy"}}
    result = run(folders, **asked)
    result.report(reports="all")
    pages = {page.name: page.read_text() for page in (folders / "out/report_cases").iterdir()}
    assert {name for name, text in pages.items() if "a_scan" in text} == {
        "0000-a-good.html",
        "0001-a-poor.html",
    }
    with pytest.raises(InputError, match="no image matches a case"):
        run(folders, image=folders / "scans")


def test_errors_of_a_common_correspondence_name_the_method(clusters: Path) -> None:
    rng = np.random.default_rng(0)
    for folder, regions in (("truth", 2), ("mine", 3)):
        for case in "abc":
            (clusters / folder / f"{case}.npy").unlink()
            np.save(clusters / folder / case, rng.dirichlet(np.ones(regions), 5).T)
    with pytest.raises(InputError, match="mine: cannot match regions over all cases: Merging or"):
        run_set(clusters, merge="prediction")
    assert len(run_set(clusters).records) == 3
    with pytest.raises(InputError, match="correspondence must be 'case' or 'set', found 'all'"):
        evaluate(clusters / "truth", clusters / "mine", correspondence="all")  # type: ignore[arg-type]


def test_max_bytes_applies_in_workers_and_does_not_change_results(folders: Path) -> None:
    method = next(iter(PREDICTIONS))
    for name in ("truth", method):
        for file in list((folders / name).iterdir()):
            np.savez_compressed(file.with_suffix(".npz"), a=np.load(file))
            file.unlink()
    truth, mine, out = folders / "truth", {method: folders / method}, folders / "out"
    small = evaluate(truth, mine, out=out, max_bytes=1)
    assert all("max_bytes=" in record.error for record in small.failures)
    assert len(small.failures) == len(small.records)
    first = evaluate(truth, mine, out=out)
    assert first.failures == ()
    before = lines(out)
    evaluate(truth, mine, out=out, max_bytes=10**9)
    assert lines(out) == before
