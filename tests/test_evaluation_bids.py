"""BIDS derivatives are evaluated without a pattern."""

import json
from pathlib import Path

import nibabel
import numpy as np
import pytest
from typer.testing import CliRunner

from probdice import InputError, read
from probdice.cli.app import app
from probdice.evaluation import evaluate
from probdice.evaluation.case_files import find_cases, name_regions
from probdice.files.bids import BidsName, label_table

LABELS = np.array([[[1], [1]], [[2], [0]]], np.uint8)
OTHER = np.array([[[1], [2]], [[2], [0]]], np.uint8)


def save(path: Path, values: np.ndarray) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), path)
    return path


def table(path: Path, *names: str) -> Path:
    lines = [f"{k}\t{name}" for k, name in enumerate(names)]
    path.write_text("\n".join(["index\tname", *lines, ""]))
    return path


def test_names_are_parsed_by_entity() -> None:
    name = BidsName.of("sub-01_ses-b_label-GM_probseg.nii.gz")
    assert name is not None
    assert name.entities == (("sub", "01"), ("ses", "b"), ("label", "GM"))
    assert (name.suffix, name.extension) == ("probseg", ".nii.gz")
    for other in ("sub-01_sub-02_dseg.nii", "sub01_dseg.nii", "sub-_dseg.nii", "sub-01_.nii"):
        assert BidsName.of(other) is None


def test_label_maps_are_found_by_subject_and_session(tmp_path: Path) -> None:
    for case in ("sub-01/ses-1/anat/sub-01_ses-1", "sub-01/ses-2/anat/sub-01_ses-2_run-2"):
        save(tmp_path / f"{case}_dseg.nii.gz", LABELS)
        save(tmp_path / f"{case}_space-MNI_dseg.nii.gz", LABELS)
        save(tmp_path / f"{case}_desc-aseg_dseg.nii.gz", LABELS)
        save(tmp_path / f"{case}_label-GM_probseg.nii.gz", LABELS.astype(np.float32))
        save(tmp_path / f"{case}_T1w.nii.gz", LABELS)
    cases = find_cases(tmp_path, None, probabilities=False)
    assert {case: [Path(file).name for file in files] for case, files in cases.items()} == {
        "sub-01_ses-1": ["sub-01_ses-1_dseg.nii.gz"],
        "sub-01_ses-2_run-2": ["sub-01_ses-2_run-2_dseg.nii.gz"],
    }
    soft = find_cases(tmp_path, None, probabilities=True)
    assert name_regions(tmp_path, None, soft) == dict.fromkeys(cases, ("GM",))


def test_several_kinds_need_a_pattern(tmp_path: Path) -> None:
    for kind in ("space-MNI", "space-T1w"):
        save(tmp_path / f"sub-1/anat/sub-1_{kind}_dseg.nii.gz", LABELS)
    with pytest.raises(InputError, match="several kinds") as caught:
        find_cases(tmp_path, None, probabilities=False)
    pattern = "**/{case}_space-MNI_dseg.nii.gz"
    assert f"--pattern '{pattern}'" in caught.value.in_command()
    assert list(find_cases(tmp_path, pattern, probabilities=False)) == ["sub-1"]
    save(tmp_path / "sub-2/anat/sub-2_dseg.nii.gz", LABELS)
    save(tmp_path / "sub-2/anat/sub-2_dseg.nii", LABELS)
    with pytest.raises(InputError, match="several kinds"):
        find_cases(tmp_path, None, probabilities=False)


def test_two_files_of_one_case_are_an_error(tmp_path: Path) -> None:
    for folder in ("anat", "other"):
        save(tmp_path / f"sub-1/{folder}/sub-1_dseg.nii.gz", LABELS)
    with pytest.raises(InputError, match="case sub-1 has several files of one kind"):
        find_cases(tmp_path, None, probabilities=False)


@pytest.mark.parametrize(
    ("place", "known"),
    [
        ("sub-1/anat/sub-1_desc-aseg_dseg.tsv", True),
        ("sub-1/anat/sub-1_dseg.tsv", True),
        ("dseg.tsv", True),
        ("desc-aseg_dseg.tsv", True),
        ("desc-aparc_dseg.tsv", False),
        ("sub-2_dseg.tsv", False),
    ],
)
def test_names_come_from_the_table_of_the_data_set(tmp_path: Path, place: str, known: bool) -> None:
    file = save(tmp_path / "data/sub-1/anat/sub-1_desc-aseg_dseg.nii.gz", LABELS)
    names = table(tmp_path / "data" / place, "air", "grey", "white", "not here")
    table(tmp_path / "dseg.tsv", "above", "the", "data set")
    assert label_table(file) == (names if known else None)
    expected = {0: "air", 1: "grey", 2: "white"} if known else {}
    assert read(file).names == expected
    assert read(file, names=["a", "b", "c"]).names == {0: "a", 1: "b", 2: "c"}


def test_the_nearest_table_with_the_most_entities_counts(tmp_path: Path) -> None:
    file = save(tmp_path / "sub-1/anat/sub-1_desc-x_dseg.nii.gz", LABELS)
    table(tmp_path / "desc-x_dseg.tsv", "a", "b", "c")
    assert read(file).names[1] == "b"
    table(tmp_path / "sub-1/anat/sub-1_dseg.tsv", "d", "e", "f")
    assert read(file).names[1] == "e"
    table(tmp_path / "sub-1/anat/sub-1_desc-x_dseg.tsv", "g", "h", "i")
    assert read(file).names[1] == "h"


def test_a_table_may_name_none_of_the_labels(tmp_path: Path) -> None:
    file = save(tmp_path / "sub-1/sub-1_dseg.nii.gz", np.zeros((2, 2, 1), np.uint8))
    (tmp_path / "dseg.tsv").write_text("index\tname\n5\tlesion\n")
    assert read(file).names == {}


def derivatives(folder: Path) -> None:
    """Two subjects; the reference has names, the method calls the same regions by number."""
    for subject, prediction in (("sub-01", LABELS), ("sub-02", OTHER)):
        stem = f"{subject}/anat/{subject}"
        save(folder / f"truth/{stem}_dseg.nii.gz", LABELS)
        save(folder / f"truth/{stem}_space-MNI_dseg.nii.gz", LABELS)
        save(folder / f"net/{stem}_desc-net_dseg.nii.gz", prediction)
    table(folder / "truth/dseg.tsv", "air", "grey", "white")
    table(folder / "net/desc-net_dseg.tsv", "air", "grey", "white")


def test_the_command_prints_what_it_recognised(tmp_path: Path) -> None:
    derivatives(tmp_path)
    words = ["evaluate", tmp_path / "truth", tmp_path / "net", "--output", tmp_path / "o"]
    words += ["--match", "labels"]
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    text = " ".join(done.output.split())
    assert "BIDS derivatives were recognised" in text
    assert "reference: sub-*/anat/*_dseg.nii.gz" in text
    assert "net: sub-*/anat/*_desc-net_dseg.nii.gz" in text
    assert "--pattern" in text
    summary = json.loads((tmp_path / "o/summary.json").read_text())
    assert any("recognised" in note for note in summary["notes"])
    lines = (tmp_path / "o/cases.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines[1:]] == ["sub-01", "sub-02"]
    assert "grey" in (tmp_path / "o/regions.csv").read_text()


def test_scores_and_files_of_derivatives(tmp_path: Path) -> None:
    derivatives(tmp_path)
    result = evaluate(
        tmp_path / "truth", tmp_path / "net", out=tmp_path / "o", match="labels", verify=True
    )
    scores = {record.case: record.comparison.score for record in result.records}
    assert scores == {"sub-01": 1.0, "sub-02": 0.75}
    files = [Path(file) for file, _, _ in result.records[0].files_of("reference")]
    assert files[1] == tmp_path / "truth/dseg.tsv"
    journal = (tmp_path / "o/cases.jsonl").read_bytes()
    evaluate(tmp_path / "truth", tmp_path / "net", out=tmp_path / "o", match="labels", verify=True)
    assert (tmp_path / "o/cases.jsonl").read_bytes() == journal
    table(tmp_path / "truth/dseg.tsv", "air", "cortex", "white")
    again = evaluate(
        tmp_path / "truth", tmp_path / "net", out=tmp_path / "o", match="labels", verify=True
    )
    assert "cortex" in again.records[0].comparison.overlap.reference.names.values()


def test_a_pattern_overrides_the_recognition(tmp_path: Path) -> None:
    derivatives(tmp_path)
    pattern = {"reference": "*/anat/{case}_space-MNI_dseg.nii.gz"}
    result = evaluate(tmp_path / "truth", tmp_path / "net", pattern=pattern)
    assert all("space-MNI" in record.reference[0] for record in result.records)
    (note,) = [note for note in result.notes if note.kind == "bids"]
    assert "reference:" not in str(note) and "net:" in str(note)


def test_probability_maps_have_the_names_of_their_labels(tmp_path: Path) -> None:
    for subject in ("sub-1", "sub-2"):
        for label, value in (("GM", 1), ("WM", 2)):
            values = np.where(LABELS == 0, 0.5, value == LABELS).astype(np.float32)
            save(tmp_path / f"soft/{subject}/anat/{subject}_label-{label}_probseg.nii.gz", values)
            save(tmp_path / f"soft/{subject}/anat/{subject}_desc-brain_mask.nii.gz", LABELS)
        save(tmp_path / f"truth/{subject}/anat/{subject}_dseg.nii.gz", LABELS)
    (tmp_path / "truth/dseg.tsv").write_text("index\tname\n1\tGM\n2\tWM\n")
    result = evaluate(tmp_path / "truth", tmp_path / "soft", mask=tmp_path / "soft", match="labels")
    comparison = result.records[0].comparison
    assert comparison is not None and comparison.score == 1 and comparison.pixels == 3
    assert result.records[0].regions == {"prediction": ("GM", "WM")}
    assert [group.reference for group in comparison.groups] == [("GM",), ("WM",)]
