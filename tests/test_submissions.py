"""Manifests of challenges, and `probdice check`: correct and incorrect submissions.

All references have 4 × 3 × 2 voxels with the labels 0, 1 and 2 over all cases.
"""

import json
from dataclasses import replace
from pathlib import Path

import nibabel
import numpy as np
import pytest
from numpy.typing import ArrayLike
from test_cli_compare import run

from probdice import Geometry, Segmentation, VertexSpace, write
from probdice.data.vertex_space import Structure, geometry_from_dict
from probdice.errors import FormatError, InputError
from probdice.evaluation import EvaluateOptions, Manifest, check_submission, evaluate
from probdice.evaluation.manifest import AllowedLabel

SHAPE = (4, 3, 2)
AFFINE = np.diag([1.0, 1.0, 3.0, 1.0])
BY_LABEL = EvaluateOptions.of(match="labels")


def save(path: Path, values: ArrayLike, affine: ArrayLike = AFFINE) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(np.asarray(values), np.asarray(affine)), path)


def labels(*used: int) -> np.ndarray:
    """A label map of zeros, except for one voxel of every label."""
    values = np.zeros(SHAPE, np.uint8)
    values.reshape(-1)[: len(used)] = used
    return values


def probabilities(total: float = 1.0) -> np.ndarray:
    """Three regions along the last axis, which sum to `total` at the voxel (1, 2, 0)."""
    values = np.full((*SHAPE, 3), 1 / 3, np.float32)
    values[1, 2, 0] = total / 3
    return values


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    save(tmp_path / "truth" / "a.nii.gz", labels(1))
    save(tmp_path / "truth" / "b.nii.gz", labels(2, 2))
    return tmp_path / "truth"


def kinds(submission: Path, manifest: Manifest) -> list[tuple[str, str]]:
    result = check_submission(submission, manifest)
    return [(problem.kind, problem.severity) for problem in result.problems]


# -- the manifest ----------------------------------------------------------------------------------


def test_a_manifest_holds_cases_grids_kinds_and_the_labels_of_all_cases_together(truth: Path):
    content = Manifest.of(truth, BY_LABEL).to_dict()
    assert content["cases"] == {"a": 0, "b": 0}
    assert content["grids"] == [{"shape": [4, 3, 2], "affine": AFFINE.tolist()}]
    assert content["labels"] == [{"number": n, "name": None} for n in (0, 1, 2)]
    assert content["kinds"] == ["labels"]


def test_references_with_the_same_labels_overall_have_the_same_manifest(tmp_path: Path):
    for folder, first, second in (("one", (1, 1), (2,)), ("two", (2,), (1, 2, 2, 2))):
        save(tmp_path / folder / "a.nii.gz", labels(*first))
        save(tmp_path / folder / "b.nii.gz", labels(*second))
    one, two = (Manifest.of(tmp_path / name).to_dict() for name in ("one", "two"))
    assert one == two


def test_a_manifest_is_restored_from_its_file(truth: Path, tmp_path: Path):
    options = EvaluateOptions.of(
        pattern={"reference": "{case}.nii.gz", "prediction": "{case}_seg.nii.gz"},
        sums={"prediction": "normalise"},
        geometry_tolerance=0.02,
    )
    manifest = Manifest.of(truth, options)
    manifest.write(tmp_path / "challenge.json")
    restored = Manifest.read(tmp_path / "challenge.json")
    assert restored == manifest
    assert restored.pattern == "{case}_seg.nii.gz"
    assert restored.options.sums.prediction == "normalise"
    assert restored.options.geometry_tolerance == 0.02


def test_ignored_labels_are_not_allowed_and_names_are_listed(truth: Path, tmp_path: Path):
    (tmp_path / "names.csv").write_text("0,background\n1,kidney\n2,tumour\n")
    table = str(tmp_path / "names.csv")
    manifest = Manifest.of(truth, EvaluateOptions.of(ignore=[2], names=table))
    assert manifest.labels == (AllowedLabel(0, "background"), AllowedLabel(1, "kidney"))
    assert str(tmp_path) not in json.dumps(manifest.to_dict())
    assert dict(manifest.options.names.prediction)[2] == "tumour"


@pytest.mark.parametrize(
    "geometry",
    [
        Geometry((4, 3), np.diag([0.5, 2.0, 1.0])),
        VertexSpace.of_surface(642, "left cortex"),
        VertexSpace.of(
            [
                Structure("left cortex", 642, np.array([3, 5, 8])),
                Structure("left thalamus", 0, np.array([[1, 2, 3]])),
            ],
            volume=Geometry((4, 4, 4), np.eye(4)),
        ),
    ],
)
def test_geometries_are_restored_from_json(geometry: Geometry):
    assert geometry_from_dict(json.loads(json.dumps(geometry.to_dict()))) == geometry


def test_files_that_are_not_manifests_are_rejected(tmp_path: Path):
    file = tmp_path / "challenge.json"
    for text, kind in (("text", FormatError), ("[]", InputError), ('{"format": 2}', InputError)):
        file.write_text(text)
        with pytest.raises(kind, match=r"challenge\.json: expected a manifest"):
            Manifest.read(file)
    with pytest.raises(FormatError, match="cannot be read"):
        Manifest.read(tmp_path / "none.json")


def test_a_manifest_with_an_invalid_field_is_rejected(truth: Path):
    content = Manifest.of(truth).to_dict()
    for field, value in (("cases", {"a": 7}), ("grids", [{}]), ("kinds", ["images"])):
        with pytest.raises(InputError):
            Manifest.from_dict(content | {field: value})


def test_a_pattern_with_a_method_and_an_unreadable_reference_are_rejected(truth: Path):
    with pytest.raises(InputError, match="a submission contains one method"):
        Manifest.of(truth, EvaluateOptions.of(pattern={"prediction": "{case}_{method}.nii.gz"}))
    (truth / "b.nii.gz").write_text("text")
    with pytest.raises(InputError, match="reference of case b: "):
        Manifest.of(truth)


# -- submissions in Python -------------------------------------------------------------------------


def test_a_reoriented_copy_of_the_references_is_valid(truth: Path, tmp_path: Path):
    flipped = np.array([[-1, 0, 0, 3], [0, 1, 0, 0], [0, 0, 3, 0], [0, 0, 0, 1.0]])
    for case in ("a", "b"):
        save(tmp_path / "mine" / f"{case}.nii", labels(1)[::-1], flipped)
    result = check_submission(tmp_path / "mine", Manifest.of(truth, BY_LABEL))
    assert result.valid
    assert (result.expected, result.checked, result.problems) == (2, 2, ())


def test_the_tolerance_of_the_challenge_applies_to_grids(truth: Path, tmp_path: Path):
    shifted = AFFINE.copy()
    shifted[0, 3] = 0.05
    for case in ("a", "b"):
        save(tmp_path / "mine" / f"{case}.nii.gz", labels(1), shifted)
    assert kinds(tmp_path / "mine", Manifest.of(truth)) == []
    strict = Manifest.of(truth, EvaluateOptions.of(geometry_tolerance=0.02))
    assert kinds(tmp_path / "mine", strict) == [("grid", "error")] * 2
    relaxed = Manifest.of(truth, EvaluateOptions.of(ignore_geometry=True))
    assert kinds(tmp_path / "mine", relaxed) == []


def test_files_without_geometry_need_the_same_shape(tmp_path: Path):
    for folder in ("truth", "mine"):
        (tmp_path / folder).mkdir()
    np.save(tmp_path / "truth" / "a.npy", np.zeros((4, 3), np.uint8))
    np.save(tmp_path / "mine" / "a.npy", np.zeros((3, 4), np.uint8))
    manifest = Manifest.of(tmp_path / "truth")
    (problem,) = check_submission(tmp_path / "mine", manifest).problems
    assert "shape (3, 4), expected (4, 3)" in problem.problem
    (tmp_path / "mine" / "a.npy").unlink()
    save(tmp_path / "mine" / "a.nii.gz", np.zeros((4, 3), np.uint8))
    (problem,) = check_submission(tmp_path / "mine", manifest).problems
    assert "has spacing, origin and direction, but the case has none" in problem.problem


def test_values_at_the_vertices_of_another_hemisphere_are_on_another_grid(tmp_path: Path):
    for folder, side in (("truth", "left"), ("mine", "right")):
        (tmp_path / folder).mkdir()
        space = VertexSpace.of_surface(642, f"{side} cortex")
        surface = Segmentation.from_labels(np.arange(642) % 2, geometry=space)
        write(tmp_path / folder / "a.label.gii", surface)
    manifest = Manifest.of(tmp_path / "truth")
    assert kinds(tmp_path / "truth", manifest) == []
    (problem,) = check_submission(tmp_path / "mine", manifest).problems
    assert problem.kind == "grid"
    assert "right cortex differs from left cortex" in problem.problem


def test_other_labels_are_a_warning_if_regions_are_matched_by_overlap(truth: Path, tmp_path: Path):
    for case in ("a", "b"):
        save(tmp_path / "mine" / f"{case}.nii.gz", labels(9) if case == "a" else labels(1))
    assert kinds(tmp_path / "mine", Manifest.of(truth)) == [("labels", "warning")]
    assert kinds(tmp_path / "mine", Manifest.of(truth, BY_LABEL)) == [("labels", "error")]


def test_probabilities_are_accepted_if_the_manifest_lists_them(truth: Path, tmp_path: Path):
    for case in ("a", "b"):
        save(tmp_path / "mine" / f"{case}.nii.gz", probabilities())
    manifest = Manifest.of(truth, BY_LABEL)
    assert kinds(tmp_path / "mine", manifest) == [("kind", "error")] * 2
    both = replace(manifest, kinds=("labels", "probabilities"))
    assert kinds(tmp_path / "mine", both) == []


def test_nested_channels_of_predictions_are_read_as_in_the_evaluation(tmp_path: Path):
    whole_and_core = np.zeros((*SHAPE, 2), np.float32)
    whole_and_core[:2, ..., 0] = 1
    whole_and_core[0, ..., 1] = 1
    save(tmp_path / "truth" / "a.nii.gz", labels(1, 2))
    save(tmp_path / "mine" / "a.nii.gz", whole_and_core)
    options = EvaluateOptions.of(match="labels", nested={"prediction": (0, 1, 2)})
    manifest = replace(Manifest.of(tmp_path / "truth", options), kinds=("probabilities",))
    restored = Manifest.from_dict(json.loads(json.dumps(manifest.to_dict())))
    assert kinds(tmp_path / "mine", restored) == []
    plain = replace(Manifest.of(tmp_path / "truth", BY_LABEL), kinds=("probabilities",))
    assert kinds(tmp_path / "mine", plain) == [("unreadable", "error")]


def test_a_probability_map_that_is_zero_everywhere_is_accepted_as_probabilities(tmp_path: Path):
    save(tmp_path / "truth" / "a.nii.gz", np.full(SHAPE, 0.25, np.float32))
    save(tmp_path / "mine" / "a.nii.gz", np.zeros(SHAPE, np.float32))
    save(tmp_path / "other" / "a.nii.gz", labels(1))
    manifest = Manifest.of(tmp_path / "truth", BY_LABEL)
    assert manifest.kinds == ("probabilities",)
    assert kinds(tmp_path / "mine", manifest) == []
    assert kinds(tmp_path / "other", manifest) == [("kind", "error")]


@pytest.mark.parametrize(
    ("value", "problem", "fix"),
    [
        (np.nan, "found nan at voxel (1, 2, 0), expected a finite number", "Replace NaN"),
        (-0.5, "probability -0.5 at voxel (1, 2, 0) is negative", "instead of logits"),
        (255.0, "probability 255 at voxel (1, 2, 0) is above 1", "that means probability 1"),
    ],
)
def test_invalid_values_are_reported_with_their_position(
    truth: Path, tmp_path: Path, value: float, problem: str, fix: str
):
    (truth / "b.nii.gz").unlink()
    values = probabilities()
    values[1, 2, 0, 1] = value
    save(tmp_path / "mine" / "a.nii.gz", values)
    manifest = replace(Manifest.of(truth), kinds=("probabilities",))
    (only,) = check_submission(tmp_path / "mine", manifest).problems
    assert (only.kind, only.problem) == ("values", f"case a: {problem}")
    assert fix in only.fix


def test_an_added_background_is_not_an_unknown_label(tmp_path: Path):
    names = ("kidney", "tumour")
    for folder in ("truth", "mine"):
        for name in names:
            mask = labels(1) if name == "kidney" else labels(0, 1)
            save(tmp_path / folder / "a" / f"{name}.nii.gz", mask.astype(np.float32) * 0.5)
    options = EvaluateOptions.of(match="labels", sums="background")
    manifest = Manifest.of(tmp_path / "truth", options)
    assert [one.name for one in manifest.labels] == ["background", "kidney", "tumour"]
    without = replace(manifest, labels=manifest.labels[1:])
    assert kinds(tmp_path / "mine", without) == []
    (tmp_path / "mine" / "a" / "tumour.nii.gz").rename(tmp_path / "mine" / "a" / "cyst.nii.gz")
    (problem,) = check_submission(tmp_path / "mine", without).problems
    assert problem.problem == "case a: label cyst is not allowed; expected kidney, tumour"


def test_file_names_follow_the_pattern_of_the_challenge(truth: Path, tmp_path: Path):
    options = EvaluateOptions.of(
        pattern={"reference": "{case}.nii.gz", "prediction": "{case}_seg.nii.gz"}
    )
    save(tmp_path / "mine" / "a_seg.nii.gz", labels(1))
    save(tmp_path / "mine" / "b.nii.gz", labels(1))
    (problem,) = check_submission(tmp_path / "mine", Manifest.of(truth, options)).problems
    assert (problem.kind, problem.cases) == ("missing", ("b",))
    assert "such as b_seg.nii.gz" in problem.fix
    assert "belong to no case: b.nii.gz" in problem.fix


def test_two_files_of_one_case_are_a_problem_of_names(truth: Path, tmp_path: Path):
    save(tmp_path / "mine" / "a.nii.gz", labels(1))
    save(tmp_path / "mine" / "a.nii", labels(1))
    assert kinds(tmp_path / "mine", Manifest.of(truth)) == [("names", "error")]


def test_files_that_exceed_the_memory_limit_are_reported(truth: Path):
    result = check_submission(truth, Manifest.of(truth), max_bytes=8)
    assert [(one.kind, one.cases) for one in result.problems] == [
        ("unreadable", ("a",)),
        ("unreadable", ("b",)),
    ]


# -- the commands ----------------------------------------------------------------------------------


@pytest.fixture
def challenge(tmp_path: Path) -> Path:
    """Seven references, and a submission with a different error in each case except "good"."""
    for case in ("good", "missing", "shifted", "label", "soft", "cut", "text"):
        save(tmp_path / "truth" / f"{case}.nii.gz", labels(1, 2))
    mine = tmp_path / "mine"
    save(mine / "good.nii.gz", labels(2, 1))
    shifted = AFFINE.copy()
    shifted[0, 3] = 2
    save(mine / "shifted.nii.gz", labels(1), shifted)
    save(mine / "label.nii.gz", labels(1, 7))
    save(mine / "soft.nii.gz", probabilities(1.5))
    save(mine / "cut.nii.gz", labels(1))
    content = (mine / "cut.nii.gz").read_bytes()
    (mine / "cut.nii.gz").write_bytes(content[: len(content) // 2])
    (mine / "text.nii.gz").write_text("not an image\n" * 50)
    save(mine / "extra.nii.gz", labels(1))
    (mine / "missing.txt").write_text("1 2 3")
    return tmp_path


def test_check_reports_every_problem_and_evaluate_fails_for_the_same_cases(challenge: Path):
    manifest = challenge / "challenge.json"
    done = run("evaluate", challenge / "truth", "--match", "labels", "--write-manifest", manifest)
    assert done.code == 0
    assert "7 cases, label maps, labels 0, 1, 2 (other labels cause errors)" in done.out
    done = run("check", challenge / "mine", "--manifest", manifest, "--json", "-")
    assert done.code == 1
    verdict = json.loads(done.out)
    assert (verdict["valid"], verdict["expected"], verdict["checked"]) == (False, 7, 6)
    problems = {(one["kind"], *one["cases"]): one for one in verdict["problems"]}
    assert set(problems) == {
        ("missing", "missing"),
        ("extra", "extra"),
        ("grid", "shifted"),
        ("labels", "label"),
        ("kind", "soft"),
        ("values", "soft"),
        ("unreadable", "cut"),
        ("unreadable", "text"),
    }
    texts = {key: one["problem"] for key, one in problems.items()}
    assert "2 voxels apart (origin 2 0 0, expected 0 0 0)" in texts["grid", "shifted"]
    assert texts["labels", "label"] == "case label: label 7 is not allowed; expected 0, 1, 2"
    assert "probabilities sum to 1.5 at voxel (1, 2, 0)" in texts["values", "soft"]
    assert "text starting with 'not an image" in texts["unreadable", "text"]
    assert "missing.txt" in problems["missing", "missing"]["fix"]
    assert [one["kind"] for one in verdict["problems"] if one["severity"] == "warning"] == ["extra"]
    result = evaluate(challenge / "truth", challenge / "mine", match="labels", workers=1)
    unscored = {record.case for record in result.failures}
    assert unscored == {"shifted", "soft", "cut", "text"}


def test_check_prints_problem_consequence_and_fix_per_line(challenge: Path):
    manifest = challenge / "challenge.json"
    words = "evaluate", challenge / "truth", "-q", "--match", "labels", "--write-manifest", manifest
    assert run(*words).out == ""
    verdict = challenge / "verdict.json"
    done = run("check", challenge / "mine", "--manifest", manifest, "--json", verdict)
    assert done.code == 1
    lines = done.out.splitlines()
    assert (
        "error (labels): case label: label 7 is not allowed; expected 0, 1, 2. Labels that are not "
        "allowed match no reference region. Use the labels of the challenge." in lines
    )
    assert lines[-2].startswith("warning (extra): 1 case is not part of the challenge (extra).")
    assert lines[-1].endswith("mine cannot be evaluated: 6 of 7 cases checked, 7 errors, 1 warning")
    assert not json.loads(verdict.read_text())["valid"]


def test_a_correct_submission_passes_and_the_manifest_can_accompany_an_evaluation(truth: Path):
    manifest, out = truth.parent / "challenge.json", truth.parent / "out"
    for case in ("a", "b"):
        save(truth.parent / "mine" / f"{case}.nii.gz", labels(1, 2))
    done = run(
        *("evaluate", truth, truth.parent / "mine", "-o", out, "--write-manifest", manifest),
        *("--reports", "none", "--workers", "1"),
    )
    assert done.code == 0
    assert (out / "summary.json").exists()
    done = run("check", truth.parent / "mine", "--manifest", manifest)
    assert done.code == 0
    assert done.out.endswith("mine can be evaluated: 2 of 2 cases checked, 0 errors, 0 warnings\n")


def test_wrong_commands_exit_with_2(truth: Path):
    manifest = truth.parent / "challenge.json"
    for words in (
        ("evaluate", truth),
        ("evaluate", truth, truth),
        ("evaluate", truth, "-o", truth.parent / "out", "--write-manifest", manifest),
        ("evaluate", "consensus", "--write-manifest", manifest),
        ("evaluate", truth, "--write-manifest", truth.parent / "no" / "challenge.json"),
        ("check", truth),
        ("check", truth, "--manifest", truth.parent / "none.json"),
        ("check", truth.parent / "none", "--manifest", manifest),
        ("check", truth / "a.nii.gz", "--manifest", manifest),
        ("check", truth, "--manifest", truth / "a.nii.gz"),
    ):
        assert run(*words).code == 2, words
    assert not manifest.exists()
