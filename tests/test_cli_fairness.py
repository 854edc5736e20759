"""`probdice evaluate` with missing cases, swapped labels, unreadable files and several raters.

All expected numbers are worked by hand from label maps of 10 or 20 pixels.
"""

import csv
import gzip
import hashlib
import json
import unicodedata
from pathlib import Path

import nibabel
import numpy as np
import pytest
from numpy.typing import ArrayLike
from test_cli_compare import run

from probdice.evaluation import Evaluation

TEN = np.array([1] * 5 + [2] * 5)


def save(path: Path, labels: ArrayLike) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    array = np.asarray(labels, np.uint8).reshape(-1, 1, 1)
    nibabel.save(nibabel.Nifti1Image(array, np.eye(4)), path)


def wrong(count: int) -> np.ndarray:
    """Ten pixels of which the first `count` have the other label: the score is 1 − count / 10."""
    labels = TEN.copy()
    labels[:count] = 2
    return labels


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def truncate(path: Path) -> None:
    """Cut off the last third of the voxels of a gzipped file, so that its header is valid."""
    content = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(content[: len(content) - 3]))


# -- raters ----------------------------------------------------------------------------------------


@pytest.fixture
def rated(tmp_path: Path) -> Path:
    """Eight cases of two raters, who differ in one pixel of the last two, and a method.

    The method has the first six cases and one wrong pixel in each of them.
    """
    for case in range(8):
        name = f"case{case}.nii.gz"
        save(tmp_path / "anna" / name, TEN)
        save(tmp_path / "ben" / name, wrong(0 if case < 6 else 2))
        if case < 6:
            save(tmp_path / "easy" / name, wrong(1))
    return tmp_path


def evaluate_with_raters(folder: Path, reference: str = "consensus", *words: str) -> object:
    return run(
        *("evaluate", reference, f"easy={folder / 'easy'}", "-o", folder / "out"),
        *(f"--rater=anna={folder / 'anna'}", f"--rater=ben={folder / 'ben'}"),
        *("--reports", "none", "--workers", "1", *words),
    )


def test_a_method_and_the_raters_are_compared_on_the_same_cases(rated: Path) -> None:
    done = evaluate_with_raters(rated)
    assert done.code == 0, done.err
    # Raters: 1 in six cases and 0.8 in two; the method: 0.9 in the six cases that it has.
    sentence = "below inter-rater agreement on 6 of 8 cases: 0.900 vs 1.000 (95 % CI 1.000–1.000)"
    assert f"note: easy: {sentence}" in done.out.replace("\n", " ")
    against = json.loads((rated / "out" / "summary.json").read_text())["rater_comparison"]
    assert against["inter_rater"]["n"] == 8
    assert against["inter_rater"]["mean"] == pytest.approx((6 * 1.0 + 2 * 0.8) / 8)
    assert against["baselines"]["easy"]["n"] == against["methods"]["easy"]["n"] == 6
    assert against["baselines"]["easy"]["mean"] == pytest.approx(1.0)
    assert against["methods"]["easy"]["mean"] == pytest.approx(0.9)
    page = (rated / "out" / "report.html").read_text(encoding="utf-8")
    assert sentence in page
    assert sentence in (rated / "out" / "table.md").read_text(encoding="utf-8")


def test_an_unreadable_rater_file_fails_its_case_of_the_consensus_only(rated: Path) -> None:
    truncate(rated / "ben" / "case1.nii.gz")
    done = evaluate_with_raters(rated)
    assert done.code == 1
    assert "failed: case1 (easy)" in done.out
    cases = {row["case"]: row for row in rows_of(rated / "out" / "cases.csv")}
    assert cases["case1"]["status"] == "failed"
    assert cases["case1"]["error"].startswith("no consensus of the raters: ../ben/case1.nii.gz: ")
    assert str(rated) not in cases["case1"]["error"]
    statuses = [cases[f"case{k}"]["status"] for k in range(8)]
    assert statuses == ["scored", "failed", *["scored"] * 4, "missing", "missing"]
    # The mean of two equal raters is their label map, of which the method has one pixel wrong.
    scored = [float(cases[f"case{k}"]["score"]) for k in (0, 2, 3, 4, 5)]
    assert scored == pytest.approx([0.9] * 5)
    assert "on 5 of 7 cases: 0.900 vs 1.000" in done.out.replace("\n", " ")
    again = evaluate_with_raters(rated)
    assert again.code == 1
    assert {row["case"]: row for row in rows_of(rated / "out" / "cases.csv")} == cases


def test_a_rater_file_that_became_unreadable_is_not_replaced_by_an_old_mean(rated: Path) -> None:
    assert evaluate_with_raters(rated).code == 0
    truncate(rated / "ben" / "case1.nii.gz")
    assert evaluate_with_raters(rated).code == 1
    cases = {row["case"]: row["status"] for row in rows_of(rated / "out" / "cases.csv")}
    assert cases["case1"] == "failed"


def test_with_a_reference_an_unreadable_rater_file_only_affects_the_rater_comparison(
    rated: Path,
) -> None:
    truncate(rated / "ben" / "case1.nii.gz")
    done = evaluate_with_raters(rated, str(rated / "anna"))
    assert done.code == 1  # a file could not be read
    cases = {row["case"]: row["status"] for row in rows_of(rated / "out" / "cases.csv")}
    assert [cases[f"case{k}"] for k in range(6)] == ["scored"] * 6
    text = done.out.replace("\n", " ")
    assert "case1 is not compared with the raters: no consensus of the raters: ../ben/case1" in text
    assert "on 5 of 7 cases" in text


def test_raters_and_their_files_are_in_how_and_files(rated: Path) -> None:
    (rated / "ben" / "case7.nii.gz").unlink()
    done = evaluate_with_raters(rated)
    assert done.code == 0, done.err
    note = "Rater ben lacks 1 of 8 cases (case7). For these cases, the other raters are used."
    how = (rated / "out" / "how.md").read_text(encoding="utf-8")
    assert note in done.out.replace("\n", " ") and note in how
    assert "with the mean of 2 raters (anna, ben)" in how
    assert "| raters | anna: ../anna, ben: ../ben |" in how
    files = [row for row in rows_of(rated / "out" / "files.csv") if row["role"] == "rater"]
    assert [(row["method"], row["file"]) for row in files] == [
        *(("anna", f"../anna/case{k}.nii.gz") for k in range(8 - 1)),
        *(("ben", f"../ben/case{k}.nii.gz") for k in range(8 - 1)),
    ]
    for row in files:
        content = (rated / "out" / row["file"]).read_bytes()
        assert row["sha256"] == hashlib.sha256(content).hexdigest()
        assert int(row["bytes"]) == len(content)
    loaded = Evaluation.load(rated / "out")
    before = (rated / "out" / "files.csv").read_bytes()
    loaded.write(rated / "out")
    assert (rated / "out" / "files.csv").read_bytes() == before


def test_a_reference_beside_raters_is_named_in_how(rated: Path) -> None:
    assert evaluate_with_raters(rated, str(rated / "anna")).code == 0
    how = (rated / "out" / "how.md").read_text(encoding="utf-8")
    assert "with the reference and with each of 2 raters (anna, ben)." in how


# -- labels ----------------------------------------------------------------------------------------


@pytest.fixture
def swapped(tmp_path: Path) -> Path:
    """Four cases of 20 pixels with background 0; one team has labels 1 and 2 swapped.

    The reference of case2 lacks label 2, and that of case3 lacks label 1.
    """
    right = [0] * 10 + [1] * 6 + [2] * 4
    for k, truth in enumerate((right, right, [0] * 14 + [1] * 6, [0] * 16 + [2] * 4)):
        labels = np.array(truth)
        off = labels.copy()
        off[-1] = 0  # one pixel of the last region is missed
        save(tmp_path / "truth" / f"case{k}.nii.gz", labels)
        save(tmp_path / "good" / f"case{k}.nii.gz", off)
        save(tmp_path / "swapped" / f"case{k}.nii.gz", np.array([0, 2, 1])[labels])
    return tmp_path


def evaluate_teams(folder: Path, *words: str) -> object:
    return run(
        *("evaluate", folder / "truth", folder / "good", folder / "swapped"),
        *("-o", folder / "out", "--background", "0", "--reports", "none", "--workers", "1", *words),
    )


def test_the_table_has_the_ranking_measure_for_equal_labels(swapped: Path) -> None:
    done = evaluate_teams(swapped)
    assert done.code == 0, done.err
    text = " ".join(done.out.split())
    # By overlap, the swapped labels are perfect. With equal labels, case0 and case1 have foreground
    # regions 1 and 2 with Dice 0; case2 and case3 have two unmatched foreground regions, Dice 0.
    assert "1 swapped 4/4 1.0000" in text
    assert (
        "different labels are matched in 4 of 4 cases (reference 1 to prediction 2 in 3, "
        "reference 2 to prediction 1 in 3)" in text
    )
    assert (
        "with equal labels, the mean foreground Dice is 0.0000 instead of 1.0000; if equal labels "
        "mean the same region, use --match labels" in text
    )
    ranking = {
        row["method"]: row
        for row in rows_of(swapped / "out" / "ranking.csv")
        if row["measure"] == "foreground_dice"
    }
    assert (ranking["swapped"]["place"], ranking["swapped"]["mean"]) == ("1", "1.0")
    assert float(ranking["swapped"]["mean_equal_labels"]) == 0.0
    assert ranking["good"]["mean_equal_labels"] == ""
    table = (swapped / "out" / "table.md").read_text(encoding="utf-8")
    head, _, *rows = table.splitlines()
    assert head.split(" | ")[3] == "foreground Dice, equal labels"
    assert [row.split(" | ")[1:4:2] for row in rows[:2]] == [["swapped", "0.000"], ["good", "–"]]
    assert "foreground Dice, equal labels" in (swapped / "out" / "table.tex").read_text()
    page = (swapped / "out" / "report.html").read_text(encoding="utf-8")
    assert ">Equal labels<" in page
    assert "with equal labels, the mean foreground Dice is 0.0000 instead of 1.0000" in page


def test_the_mean_for_equal_labels_equals_match_labels(swapped: Path) -> None:
    assert evaluate_teams(swapped).code == 0
    before = rows_of(swapped / "out" / "ranking.csv")
    by_overlap = {row["measure"]: row for row in before if row["method"] == "swapped"}
    assert evaluate_teams(swapped, "--match", "labels").code == 0
    after = rows_of(swapped / "out" / "ranking.csv")
    by_labels = {row["measure"]: row for row in after if row["method"] == "swapped"}
    for measure, row in by_labels.items():
        expected = pytest.approx(float(row["mean"]), abs=1e-12)
        assert float(by_overlap[measure]["mean_equal_labels"]) == expected, measure
        assert row["mean_equal_labels"] == ""
    # The score: 10 of 20 pixels, twice, then 14 and 16 of 20.
    assert float(by_labels["score"]["mean"]) == pytest.approx((0.5 + 0.5 + 0.7 + 0.8) / 4)


def test_labels_of_another_set_are_not_compared_with_those_of_the_reference(swapped: Path) -> None:
    for file in (swapped / "swapped").iterdir():
        labels = np.asarray(nibabel.load(file).dataobj).reshape(-1)
        save(file, np.array([0, 7, 8])[labels])
    done = evaluate_teams(swapped)
    assert "different labels" not in done.out and "equal labels" not in done.out
    summary = json.loads((swapped / "out" / "summary.json").read_text())
    assert summary["labels"] == {"agree": True, "differing": []}


# -- one file per region -----------------------------------------------------------------


@pytest.fixture
def kits(tmp_path: Path) -> Path:
    """Masks named as in KiTS: a kidney with a tumour, two kidneys, and one kidney."""
    kidney, tumour, other = (np.zeros(10, int) for _ in range(3))
    kidney[:4], tumour[1:3], other[6:9] = 1, 1, 1
    cases = {
        "case_0": {"kidney_instance-1": kidney, "tumor_instance-1": tumour},
        "case_1": {"kidney_instance-1": kidney, "kidney_instance-2": other},
        "case_2": {"kidney_instance-1": kidney},
    }
    for folder in ("truth", "mine"):
        for case, masks in cases.items():
            for name, mask in masks.items():
                file = tmp_path / folder / case / f"{name}_annotation-1.nii.gz"
                save(file, mask if folder == "truth" else np.roll(mask, 1) * (mask | tumour))
    return tmp_path


def evaluate_masks(folder: Path, priority: str) -> object:
    return run(
        *("evaluate", folder / "truth", folder / "mine", "-o", folder / "out"),
        *("--priority", priority, "--pattern", "{case}/*_annotation-1.nii.gz"),
        *("--reports", "none", "--workers", "1"),
    )


def test_a_priority_may_name_regions_that_a_case_lacks(kits: Path) -> None:
    done = evaluate_masks(kits, "tumor_instance-1,kidney_instance-1")
    assert done.code == 0, done.err
    scored = {row["case"]: row for row in rows_of(kits / "out" / "cases.csv")}
    assert [row["status"] for row in scored.values()] == ["scored"] * 3
    # Truth: k t t k . . . . . .; mine: k (1-3) with a tumour in 2: . k t k . . . . . .
    assert float(scored["case_0"]["score"]) == pytest.approx(0.8)
    regions = rows_of(kits / "out" / "regions.csv")
    names = {case: {row["reference"] for row in regions if row["case"] == case} for case in scored}
    assert names["case_0"] == {"background", "kidney_instance-1", "tumor_instance-1"}
    assert names["case_1"] == {"background", "kidney_instance-1", "kidney_instance-2"}
    assert names["case_2"] == {"background", "kidney_instance-1"}


def test_a_priority_that_names_a_region_of_no_case_is_an_error(kits: Path) -> None:
    done = evaluate_masks(kits, "tumour,kidney_instance-1")
    assert done.code == 1
    assert "--priority tumour,kidney_instance-1 names tumour, but the regions" in done.err
    assert "kidney_instance-1, kidney_instance-2, tumor_instance-1" in " ".join(done.err.split())
    assert not (kits / "out" / "summary.json").exists()


def test_masks_of_one_file_may_lack_a_region_of_the_priority_but_not_in_every_case(
    tmp_path: Path,
) -> None:
    masks = np.array([[1, 1, 1, 0], [0, 1, 0, 0]], np.float32)
    for folder in ("truth", "mine"):
        (tmp_path / folder).mkdir()
        np.save(tmp_path / folder / "a.npy", masks)
        np.save(tmp_path / folder / "b.npy", np.vstack([masks, [[0, 0, 0, 1]]]).astype(np.float32))
    words = ("evaluate", tmp_path / "truth", tmp_path / "mine", "--reports", "none")
    absent = run(*words, "-o", tmp_path / "out", "--priority", "1,2,0")
    assert absent.code == 0, absent.err
    unknown = run(*words, "-o", tmp_path / "other", "--priority", "1,7,0")
    assert unknown.code == 1
    assert "names 7, but the regions are 0, 1" in unknown.err


# -- names -----------------------------------------------------------------------------------------


def test_unicode_forms_of_a_name_are_one_case_and_one_method(tmp_path: Path) -> None:
    composed, decomposed = (unicodedata.normalize(form, "né") for form in ("NFC", "NFD"))
    save(tmp_path / "truth" / f"{composed}.nii.gz", TEN)
    save(tmp_path / "truth" / "b.nii.gz", TEN)
    save(tmp_path / decomposed / f"{decomposed}_seg.nii.gz", wrong(1))
    save(tmp_path / decomposed / "b_seg.nii.gz", TEN)
    done = run(
        *("evaluate", tmp_path / "truth", tmp_path / decomposed, "-o", tmp_path / "out"),
        *("--pattern", f"{composed}:{{case}}_seg.nii.gz", "--reports", "none"),
    )
    assert done.code == 0, done.err
    rows = {row["case"]: row for row in rows_of(tmp_path / "out" / "cases.csv")}
    assert {(row["method"], row["status"]) for row in rows.values()} == {(composed, "scored")}
    assert float(rows[composed]["score"]) == pytest.approx(0.9)
    files = [row["file"] for row in rows_of(tmp_path / "out" / "files.csv")]
    assert f"../{decomposed}/{decomposed}_seg.nii.gz" in files
    shown = run("show", tmp_path / "out", decomposed, "--method", decomposed)
    assert shown.code == 0 and "0.9000" in shown.out
    twice = run(
        *("evaluate", tmp_path / "truth", f"{composed}={tmp_path / decomposed}"),
        *(f"{decomposed}={tmp_path / decomposed}", "-o", tmp_path / "out"),
    )
    assert twice.code == 2 and "two folders have the name" in " ".join(twice.err.split())


def test_two_subfolders_with_unicode_forms_of_one_name_are_rejected(tmp_path: Path) -> None:
    for form in ("NFC", "NFD"):
        save(tmp_path / "truth" / unicodedata.normalize(form, "né") / "seg.nii.gz", TEN)
        save(tmp_path / "mine" / "né" / "seg.nii.gz", TEN)
    done = run("evaluate", tmp_path / "truth", tmp_path / "mine", "-o", tmp_path / "out")
    assert done.code == 1
    assert "different Unicode forms" in " ".join(done.err.split())
