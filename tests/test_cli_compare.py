"""`probdice compare` and `probdice info`: options, file formats and errors."""

import gzip
import hashlib
import json
import os
import re
import shlex
from collections.abc import Sequence
from html import unescape
from pathlib import Path
from typing import Any

import h5py
import nibabel
import numpy as np
import pytest
import scipy.io
import SimpleITK
import tifffile
from numpy.typing import NDArray
from PIL import Image
from test_files_dicom import LEFT, TOP
from test_files_dicom import save as save_dicom
from typer.testing import CliRunner

import probdice
from probdice.cli import warm_up
from probdice.cli.app import app
from probdice.cli.progress import ProgressDisplay, progress
from probdice.comparison import comparing
from probdice.engine.threads import watcher

LABELS = np.repeat(np.array([1, 1, 1, 1, 2, 2, 2, 2], np.uint8)[:, None, None], 2, axis=1)
SPLIT = np.repeat(np.array([7, 7, 5, 5, 5, 9, 9, 9], np.uint8)[:, None, None], 2, axis=1)
SURE = np.stack([LABELS == 1, LABELS == 2], axis=-1).astype(np.float32)
UNSURE = SURE * np.float32(0.8) + np.float32(0.1)
AFFINE = np.diag([2.0, 2.0, 3.0, 1.0])


class Result:
    """The exit code and output of a command."""

    def __init__(self, code: int, out: str, err: str):
        self.code, self.out, self.err = code, out, err
        self.message = " ".join(
            re.sub("[│╭╮╰╯─]", " ", err).split()
        )  # without the frame that Typer draws


def run(*words: object) -> Result:
    done = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Result(done.exit_code, done.stdout, done.stderr)


def compare_files(*words: object) -> probdice.Comparison:
    done = run("compare", *words, "--json", "-")
    assert done.code == 0, done.err
    return probdice.Comparison.from_json(done.out)


def notes_of(*words: object) -> list[str]:
    """Return the printed notes."""
    lines = run("compare", *words).out.splitlines()
    return [line.removeprefix("note: ") for line in lines if line.startswith("note: ")]


def error_of(*words: object, code: int = 1) -> str:
    """Return the message of a command that must fail without output or traceback."""
    done = run("compare", *words)
    assert (done.code, done.out) == (code, "")
    assert "Traceback" not in done.err
    if code == 1:
        assert done.err.startswith("error: ")
    return done.message


def save(path: Path, array: NDArray[Any], affine: NDArray[Any] = AFFINE) -> Path:
    nibabel.save(nibabel.Nifti1Image(array, affine), path)
    return path


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    return save(tmp_path / "reference.nii.gz", LABELS)


@pytest.fixture
def prediction(tmp_path: Path) -> Path:
    return save(tmp_path / "prediction.nii.gz", SPLIT)


@pytest.fixture
def unsure(tmp_path: Path) -> Path:
    return save(tmp_path / "unsure.nii.gz", UNSURE)


# ---- file formats


def test_the_same_labels_in_all_formats_are_equal(tmp_path: Path, reference: Path) -> None:
    image = SimpleITK.GetImageFromArray(LABELS.transpose(2, 1, 0))
    image.SetSpacing((2.0, 2.0, 3.0))
    image.SetDirection((-1.0, 0, 0, 0, -1, 0, 0, 0, 1))  # ITK axes point left and posterior
    for name in ("a.mha", "a.nrrd"):
        SimpleITK.WriteImage(image, tmp_path / name)
        assert compare_files(reference, tmp_path / name).score == 1
    np.save(tmp_path / "a.npy", LABELS)
    tifffile.imwrite(tmp_path / "a.tif", LABELS, photometric="minisblack")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["deep/labels"] = LABELS
    for name in ("a.tif", "a.h5:/deep/labels"):
        assert compare_files(tmp_path / "a.npy", tmp_path / name).score == 1
    flat = LABELS[:, :, 0]
    Image.fromarray(flat).save(tmp_path / "a.png")
    np.savez(tmp_path / "a.npz", labels=flat)
    assert compare_files(tmp_path / "a.png", tmp_path / "a.npz:labels").score == 1


def test_dicom_segments_keep_their_names(tmp_path: Path) -> None:
    masks = {"left": LEFT, "top": TOP}
    crisp = save_dicom(tmp_path / "a.dcm", "BINARY", masks)
    shares = {name: mask * 0.5 for name, mask in masks.items()}
    soft = save_dicom(tmp_path / "b.dcm", "FRACTIONAL", shares)
    result = compare_files(crisp, soft, "--sums", "background")
    assert result.reference_labels == (0, "left", "top")
    assert result.prediction_labels == ("left", "top", "background")
    assert result.groups[1].reference == result.groups[1].prediction == ("left",)


def test_a_side_can_have_one_file_per_region(tmp_path: Path, reference: Path) -> None:
    for k, name in enumerate(("grey", "white")):
        save(tmp_path / f"seg_{name}.nii.gz", UNSURE[..., k])
    for words in (
        f"{tmp_path}/seg_*.nii.gz",
        f"{tmp_path}/seg_grey.nii.gz,{tmp_path}/seg_white.nii.gz",
    ):
        result = compare_files(reference, words)
        assert result.prediction_labels == ("grey", "white")
        assert result.score == pytest.approx(0.9)


# ---- options


def test_merging_joins_unmatched_regions(reference: Path, prediction: Path) -> None:
    assert compare_files(reference, prediction).score == 0.625
    for side in ("prediction", "both"):
        assert compare_files(reference, prediction, "--merge", side).score == 0.875
    shown = run("compare", reference, prediction, "--merge", "both").out
    assert "matched score   0.6250  before merging 1 prediction region" in shown


def test_regions_of_both_sides_can_be_merged(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.repeat([1, 2, 3], [6, 2, 8]))
    np.save(tmp_path / "b.npy", np.repeat([5, 6, 7], [8, 5, 3]))
    shown = run("compare", tmp_path / "a.npy", tmp_path / "b.npy", "--merge", "both").out
    assert "score           1.0000" in shown
    merged = "before merging 1 reference region and 1 prediction region"
    assert f"matched score   0.6875  {merged}" in shown
    assert "unmatched" not in shown


def test_the_summary_shows_adjusted_score_explained_and_dice(
    reference: Path, prediction: Path
) -> None:
    shown = run("compare", reference, prediction).out
    scale = "0 is chance level (a score of 0.3750), 1 means identical"
    assert f"adjusted score  0.4000  {scale}" in shown
    assert "explained       0.6667  of the reference by the prediction" in shown
    assert "                0.3333  of the prediction by the reference" in shown
    assert "mean Dice       0.5079" in shown  # of 2/3, 6/7 and 0
    assert "lowest Dice     0.0000  prediction 5, unmatched" in shown
    assert "unmatched            1  of 3 prediction regions" in shown


def test_sampled_chance_is_shown_with_its_error(reference: Path, unsure: Path) -> None:
    shown = run("compare", unsure, unsure, "--similarity", "aitchison").out
    assert re.search(r"a score of 0\.\d{4} ± 0\.\d{4}\)", shown)
    assert "±" not in run("compare", reference, unsure).out


def test_the_note_about_unmatched_regions_recommends_merge(tmp_path: Path, unsure: Path) -> None:
    three = np.concatenate([UNSURE[..., :1] / 2, UNSURE[..., :1] / 2, UNSURE[..., 1:]], axis=-1)
    prediction = save(tmp_path / "three.nii.gz", three)
    assert notes_of(unsure, prediction)[0] == (
        "1 prediction region is unmatched and counts as Dice 0 (region 1). "
        "To merge it into a matched region, use --merge prediction."
    )


# ---- matching


def test_match_labels_matches_equal_labels(
    tmp_path: Path, reference: Path, prediction: Path
) -> None:
    other = save(tmp_path / "swapped.nii.gz", (3 - LABELS).astype(np.uint8))
    crossed = "2 labels exist on both sides but were matched to a different label (1, 2)."
    assert notes_of(reference, other) == [
        f"{crossed} If equal labels mean the same region, use --match labels."
    ]
    assert compare_files(reference, other).score == 1
    assert compare_files(reference, other, "--match", "labels").score == 0
    said = error_of(reference, prediction, "--match", "labels")
    assert "have no label in common" in said and "Use --match overlap" in said
    said = error_of(reference, other, "--match", "labels", "--merge", "both", code=2)
    assert "--merge both cannot be combined with --match labels" in said


def test_match_paper_uses_the_rule_of_the_paper(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.repeat([1, 2, 3], [6, 2, 8]))
    np.save(tmp_path / "b.npy", np.repeat([5, 6, 7], [8, 5, 3]))
    words = tmp_path / "a.npy", tmp_path / "b.npy", "--match", "paper"
    assert compare_files(*words).unmatched == {"reference": (), "prediction": ()}
    assert (
        "1 matched pair does not overlap. To match overlapping regions only, use --match overlap."
        in notes_of(*words)
    )


def test_match_accepts_pairs_prediction_equals_reference(
    tmp_path: Path, reference: Path, prediction: Path
) -> None:
    result = compare_files(reference, prediction, "--match", "5=1,9=2")
    assert [group.prediction for group in result.groups] == [(5,), (9,), (7,)]
    assert result.match == {5: 1, 9: 2}
    many = compare_files(reference, prediction, "--match", " 5 = 1 ,7=1, 9=2")
    assert many.groups[0].prediction == (5, 7)
    assert many.score == 0.875
    for k, name in enumerate(("grey", "white")):
        save(tmp_path / f"seg_{name}.nii.gz", UNSURE[..., k])
    named = compare_files(f"{tmp_path}/seg_*.nii.gz", reference, "--match", "1=white,2=grey")
    assert named.groups[0].reference == ("grey",) and named.groups[0].prediction == (2,)
    assert "match names 4" in error_of(reference, prediction, "--match", "4=1")
    assert "5 occurs twice" in error_of(reference, prediction, "--match", "5=1,5=2", code=2)
    for wrong in ("lables", "5=", "=1", "5=1,", "", "5:1"):
        message = error_of(reference, prediction, "--match", wrong, code=2)
        assert "expected overlap, paper, labels, pairs of labels such as 0=csf,1=grey" in message


def test_match_accepts_an_earlier_comparison(
    tmp_path: Path, reference: Path, prediction: Path
) -> None:
    earlier = tmp_path / "earlier.json"
    assert run("compare", reference, prediction, "--merge", "both", "--json", earlier).code == 0
    again = compare_files(reference, prediction, "--match", earlier)
    assert again.score == again.matched_score == 0.875
    assert again.groups[0].prediction == (5, 7)
    message = error_of(reference, prediction, "--match", earlier, "--merge", "both", code=2)
    assert "cannot be combined with an earlier comparison" in message
    message = error_of(reference, prediction, "--match", earlier, "--json", earlier, code=2)
    assert "is also an input file (--match)" in message
    new = save(tmp_path / "new.nii.gz", np.where(SPLIT == 9, 8, SPLIT))
    assert "1 prediction label is missing from the earlier comparison (8)." in notes_of(
        reference, new, "--match", earlier
    )


def test_a_match_file_without_a_comparison_is_rejected(
    tmp_path: Path, reference: Path, prediction: Path
) -> None:
    missing = tmp_path / "missing.json"
    message = error_of(reference, prediction, "--match", missing)
    assert message == f"error: {missing}: no such file"
    for content in (b"", b"[]", b'{"format": 1}', b'{"format": 3}', b"\xff\xfe"):
        missing.write_bytes(content)
        message = error_of(reference, prediction, "--match", missing)
        assert message.startswith(f"error: {missing}: ")
    (tmp_path / "folder.json").mkdir()
    message = error_of(reference, prediction, "--match", tmp_path / "folder.json")
    assert message.endswith("folder.json: cannot be read: Is a directory")


def test_the_error_for_a_removed_option_names_the_new_one(reference: Path) -> None:
    assert "--match" in error_of(reference, reference, "--no-match", code=2).replace(
        "--no-match", ""
    )


# ---- masks, similarities and scales


def test_masked_and_ignored_pixels_are_excluded(
    tmp_path: Path, reference: Path, prediction: Path
) -> None:
    mask = save(tmp_path / "mask.nii.gz", (LABELS == 2).astype(np.float32))
    assert compare_files(reference, prediction, "--mask", mask).pixels == 8
    result = compare_files(reference, prediction, "--ignore", 1, "--ignore", 255)
    assert (result.pixels, result.reference_labels) == (8, (2,))
    soft = save(tmp_path / "soft.nii.gz", SURE)
    said = error_of(soft, prediction, "--ignore", 1, "--ignore", 3)
    assert (
        "--ignore 1 --ignore 3 applies to label maps" in said
        and "To exclude voxels, use --mask" in said
    )
    empty = save(tmp_path / "empty.nii.gz", np.zeros_like(LABELS))
    assert error_of(reference, prediction, "--mask", empty).endswith(
        "no voxels are left to compare"
    )


@pytest.mark.parametrize(
    ("ignored", "absent"), [([7], [7]), ([1, 7], [7]), ([-1, 2, 255], [-1, 255]), ([2], [])]
)
def test_a_note_reports_ignored_labels_that_do_not_occur(
    reference: Path, prediction: Path, ignored: list[int], absent: list[int]
) -> None:
    words = [word for label in ignored for word in ("--ignore", label)]
    notes = [text for text in notes_of(reference, prediction, *words) if "ignored" in text]
    assert notes == [
        f"The ignored label {label} does not occur in the reference." for label in absent
    ]


def test_a_note_reports_nan_in_the_mask(tmp_path: Path, reference: Path, prediction: Path) -> None:
    mask = np.ones(LABELS.shape, np.float32)
    mask[0] = np.nan
    words = "--mask", save(tmp_path / "mask.nii.gz", mask)
    assert "2 voxels of the mask are NaN and counted as outside the mask." in notes_of(
        reference, prediction, *words
    )


def test_a_note_reports_infinite_aitchison_distances(reference: Path, unsure: Path) -> None:
    shown = run("compare", reference, unsure, "--similarity", "aitchison")
    assert (shown.code, shown.err) == (0, "")
    assert "note: The sides are infinitely far apart at 100.0 % of the voxels" in shown.out
    assert "Consider --floor 1e-3 or --similarity absolute" in shown.out
    floored = compare_files(reference, unsure, "--similarity", "aitchison", "--floor", 0.01)
    assert floored.score == pytest.approx(0.37000384, abs=1e-6)
    assert "aitchison" in error_of(reference, unsure, "--floor", 0.01, code=2)
    assert "below 0.5" in error_of(
        reference, unsure, "--similarity", "aitchison", "--floor", 0.7, code=2
    )


def test_sums_applies_to_both_sides_or_one(tmp_path: Path, reference: Path) -> None:
    thin = save(tmp_path / "thin.nii.gz", UNSURE * np.float32(0.5))
    said = error_of(reference, thin)
    assert "sum to 0.5" in said and "To divide by the sum, pass --sums normalise" in said
    assert compare_files(reference, thin, "--sums", "normalise").score == pytest.approx(0.9)
    result = compare_files(
        thin, thin, "--sums", "reference:background", "--sums", "prediction:normalise"
    )
    assert result.reference_labels == (0, 1, "background")
    assert result.prediction_labels == (0, 1)
    for wrong in ("sometimes", "both:error"):
        assert "sums" in error_of(reference, thin, "--sums", wrong, code=2)


def test_scale_does_not_change_label_maps_and_probabilities(
    tmp_path: Path, reference: Path, unsure: Path
) -> None:
    percent = save(tmp_path / "percent.nii.gz", UNSURE * np.float32(100))
    whole = save(tmp_path / "whole.nii.gz", np.round(UNSURE * 100).astype(np.uint8))
    for prediction in (percent, whole):
        result = compare_files(reference, prediction, "--scale", 100)
        assert result.reference_labels == (1, 2)
        assert result.score == pytest.approx(0.9)
        assert str(result.notes[0]) == "The values of the prediction were divided by 100."
        assert compare_files(unsure, prediction, "--scale", 100).score == pytest.approx(1)
    assert compare_files(percent, whole, "--scale", 100).score == pytest.approx(1)
    assert "--scale 100 or --scale 255" in error_of(reference, whole)


def test_scale_for_one_side_always_applies(tmp_path: Path) -> None:
    grey, labels = tmp_path / "grey.png", tmp_path / "labels.png"
    Image.fromarray(np.array([[0, 255], [51, 204]], np.uint8)).save(grey)
    Image.fromarray(np.array([[0, 1], [0, 1]], np.uint8)).save(labels)
    message = error_of(labels, grey, "--scale", 255)
    assert "the reference is a label map" in message and "--scale prediction:255" in message
    result = compare_files(labels, grey, "--scale", "prediction:255")
    assert result.score == pytest.approx((1 + 1 + 0.8 + 0.8) / 4)
    for wrong in ("much", "-1", "inf", "nan", "left:3", "prediction:-1"):
        assert "scale" in error_of(labels, grey, "--scale", wrong, code=2)
    both = "--scale", "prediction:255", "--scale", 2
    assert "or reference:NUMBER and" in error_of(labels, grey, *both, code=2)


def test_a_note_warns_of_image_intensities(tmp_path: Path, reference: Path) -> None:
    image = save(tmp_path / "ct.nii.gz", LABELS.astype(np.int16) * 700 - 1000)
    assert notes_of(reference, image)[0].startswith("The prediction has negative labels")


def test_quiet_prints_one_number(reference: Path, prediction: Path) -> None:
    assert run("compare", reference, prediction, "-q", "--workers", 1).out == "0.6250\n"
    for wrong in (0, -1, 2.5, "1e2", "two", "", "nan"):
        assert "--workers" in error_of(reference, prediction, "--workers", wrong, code=2)


# ---- geometry


def test_the_same_grid_in_another_axis_order_is_accepted(tmp_path: Path, reference: Path) -> None:
    image = nibabel.load(reference).as_reoriented([[1, 1], [0, -1], [2, -1]])
    nibabel.save(image, tmp_path / "turned.nii.gz")
    assert compare_files(reference, tmp_path / "turned.nii.gz").score == 1


@pytest.mark.parametrize("change", ["origin", "spacing", "flip"])
def test_a_different_grid_is_rejected_with_both_geometries(
    tmp_path: Path, reference: Path, change: str
) -> None:
    affine = AFFINE.copy()
    if change == "origin":
        affine[0, 3] = 1.0
    elif change == "spacing":
        affine[0, 0] = 2.2
    else:
        affine[0, 0] = -2.0
    moved = save(tmp_path / "moved.nii.gz", LABELS, affine)
    message = error_of(reference, moved)
    assert "do not lie on the same grid" in message
    assert "reference prediction size 8 × 2 × 1" in message
    result = run("compare", reference, moved, "--ignore-geometry")
    assert "score           1.0000" in result.out
    assert "note: Geometry was ignored" in result.out


def test_geometry_tolerance_is_in_pixels(tmp_path: Path, reference: Path) -> None:
    affine = AFFINE.copy()
    affine[0, 3] = 0.5  # a quarter of a pixel
    moved = save(tmp_path / "moved.nii.gz", LABELS, affine)
    error_of(reference, moved)
    assert compare_files(reference, moved, "--geometry-tolerance", 0.3).score == 1
    assert compare_files(reference, reference, "--mask", moved, "--geometry-tolerance", 0.3)
    affine[0, 3] = 0.1
    moved = save(tmp_path / "near.nii.gz", LABELS, affine)
    assert compare_files(reference, moved).score == 1
    assert "reference prediction size" in error_of(reference, moved, "--geometry-tolerance", 0.01)
    assert "mask" in error_of(reference, reference, "--mask", moved, "--geometry-tolerance", 0.01)
    error_of(reference, moved, "--geometry-tolerance", 1, "--ignore-geometry", code=2)


def test_one_side_without_geometry_is_rejected(tmp_path: Path, reference: Path) -> None:
    np.save(tmp_path / "a.npy", LABELS)
    message = error_of(reference, tmp_path / "a.npy")
    assert "prediction (a.npy) has no geometry but the reference (" in message
    assert "use --ignore-geometry" in message
    assert compare_files(reference, tmp_path / "a.npy", "--ignore-geometry").score == 1


# ---- output files


def test_json_contains_version_options_and_input_files(
    tmp_path: Path, reference: Path, prediction: Path
) -> None:
    mask = save(tmp_path / "mask.nii.gz", np.ones(nibabel.load(reference).shape, np.uint8))
    done = run("compare", reference, prediction, "--mask", mask, "--json", "-")
    content = json.loads(done.out)
    assert content["version"] == probdice.__version__
    assert content["options"]["match"] == "overlap"
    for role, file in (("reference", reference), ("prediction", prediction), ("mask", mask)):
        sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
        assert content["files"][role] == {
            "path": str(file),
            "read": [{"file": str(file), "sha256": sha256}],
        }
    without = json.loads(run("compare", reference, prediction, "--json", "-").out)
    assert without["files"]["mask"] is None


def test_the_progress_bar_shows_that_kernels_are_compiled() -> None:
    display = ProgressDisplay()
    display.begin("comparing")
    display.compiling()
    assert "compiling kernels, once per machine" in display._task["description"]
    display.compiled()
    assert display._task["description"] == "comparing"


def test_warm_up_compiles_kernels_once(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = np.arange(24 * 24, dtype=np.uint8).reshape(24, 24) % 3
    monkeypatch.setattr(warm_up, "_pairs", lambda: iter([(labels, labels)]))
    first, again = run("warm-up"), run("warm-up")
    assert (first.code, again.code) == (0, 0)
    assert re.fullmatch(r"compiled \d+ kernels? in \d+ s\n", first.out)
    assert again.out.startswith("compiled 0 kernels")


def test_map_relabelled_and_json_are_written(
    tmp_path: Path, reference: Path, prediction: Path
) -> None:
    paths = [tmp_path / name for name in ("map.nii.gz", "new.mha", "result.json")]
    paths[2].write_text("old")
    words = ["--map", paths[0], "--relabelled", paths[1], "--json", paths[2], "--merge", "both"]
    done = run("compare", reference, prediction, *words)
    assert done.code == 0, done.err
    image = nibabel.load(paths[0])
    assert np.array_equal(image.affine, AFFINE)
    assert image.get_fdata()[:, 0, 0].tolist() == [1, 1, 1, 1, 0, 1, 1, 1]
    relabelled = probdice.read(paths[1])
    assert relabelled.names == {} and relabelled.array[:, 0, 0].tolist() == [1] * 5 + [2] * 3
    result = probdice.Comparison.from_json(paths[2].read_text())
    assert (result.score, result.merges[0].region) == (0.875, 5)
    for path in paths:
        assert f"wrote {path}" in done.out
    assert sorted(tmp_path.iterdir()) == sorted([reference, prediction, *paths])


def test_the_report_is_an_html_file(tmp_path: Path, reference: Path, prediction: Path) -> None:
    page = tmp_path / "page.html"
    done = run("compare", reference, prediction, "--report", page)
    assert (done.code, done.err) == (0, "")
    assert f"wrote {page}: report" in done.out
    content = page.read_text()
    assert content.lstrip().lower().startswith("<!doctype html>")
    assert "--merge</span> prediction" in content and "merge=" not in content


def test_the_report_shows_images_and_the_command(
    tmp_path: Path, reference: Path, prediction: Path
) -> None:
    page = tmp_path / "a page.html"
    for name in ("t1", "t2"):
        save(tmp_path / f"{name}.nii.gz", LABELS.astype(np.float32) * 100)
    images = ["--image", tmp_path / "t1.nii.gz", "--image", tmp_path / "t2.nii.gz"]
    words = ["compare", reference, prediction, "--report", page, *images, "--merge", "both"]
    done = run(*words)
    assert (done.code, done.err) == (0, "")
    content = page.read_text()
    assert '"name":"t1.nii.gz"' in content and '"name":"t2.nii.gz"' in content
    (command,) = re.findall('<pre id="command">(.*?)</pre>', content)
    typed = shlex.split(unescape(command))
    assert typed[:4] == ["probdice", "compare", str(reference), str(prediction)]
    expected = [*(str(word) for word in images), "--merge", "both", "--report", str(page)]
    assert sorted(typed[4:]) == sorted(expected)


def test_an_image_on_another_grid_is_rejected_before_files_are_written(
    tmp_path: Path, reference: Path, prediction: Path
) -> None:
    page = tmp_path / "page.html"
    far = save(tmp_path / "far.nii.gz", LABELS, AFFINE + np.diag([0, 0, 0, 0]) + np.eye(4, k=3) * 9)
    message = error_of(reference, prediction, "--report", page, "--image", far)
    assert "far.nii.gz" in message and "is not on the grid" in message and not page.exists()
    np.save(tmp_path / "scan.npy", LABELS)
    message = error_of(reference, prediction, "--report", page, "--image", tmp_path / "scan.npy")
    assert "has no geometry" in message and "--ignore-geometry" in message
    words = ["--image", tmp_path / "scan.npy", "--ignore-geometry"]
    assert run("compare", reference, prediction, "--report", page, *words).code == 0
    assert "--report" in error_of(reference, prediction, "--image", far, code=2)


def test_written_images_have_the_geometry_of_the_reference(tmp_path: Path, reference: Path) -> None:
    np.save(tmp_path / "a.npy", SPLIT)
    words = ["--ignore-geometry", "--map", tmp_path / "m.nii", "--relabelled", tmp_path / "r.nii"]
    assert run("compare", reference, tmp_path / "a.npy", *words).code == 0
    for name in ("m.nii", "r.nii"):
        assert np.array_equal(nibabel.load(tmp_path / name).affine, AFFINE)


def test_the_order_of_relabelled_regions_is_printed(
    tmp_path: Path, reference: Path, unsure: Path
) -> None:
    path = tmp_path / "new.nii.gz"
    done = run("compare", reference, unsure, "--relabelled", path)
    line = f"wrote {path}: prediction with the labels of the reference (region order: 1, 2)"
    assert line in done.out


def test_outputs_are_checked_before_the_comparison(
    tmp_path: Path, reference: Path, prediction: Path
) -> None:
    both = reference, prediction
    assert "unsupported suffix" in error_of(*both, "--map", tmp_path / "map.doc", code=2)
    assert "does not exist" in error_of(*both, "--json", tmp_path / "no" / "a.json", code=2)
    assert "is a folder" in error_of(*both, "--json", tmp_path, code=2)
    assert "also an input" in error_of(*both, "--relabelled", prediction, code=2)
    twice = tmp_path / "a.nii"
    said = error_of(*both, "--map", twice, "--relabelled", twice, code=2)
    assert "also written by --map" in said
    assert "PNG stores only whole numbers" in error_of(*both, "--map", tmp_path / "a.png")
    assert "PNG stores images with 2 axes" in error_of(*both, "--relabelled", tmp_path / "a.png")
    assert not list(tmp_path.glob("a*"))


def region_files(folder: Path) -> list[Path]:
    """Write probabilities as FSL does, with one file per region."""
    return [save(folder / f"pve_{k}.nii.gz", UNSURE[..., k]) for k in range(2)]


def input_rejected_as_output(
    option: str, output: Path, *words: object, input_: Path | None = None
) -> str:
    """Return the error for an output that is an input, which must not change."""
    content = (input_ or output).read_bytes()
    message = error_of(*words, option, output, code=2)
    assert f"Invalid value for {option}" in message and str(output) in message
    assert "is also an input file" in message
    assert (input_ or output).read_bytes() == content
    return message


def test_files_of_a_list_or_a_pattern_are_not_overwritten(tmp_path: Path, reference: Path) -> None:
    first, second = region_files(tmp_path)
    for words in (f"{first},{second}", tmp_path / "pve_*.nii.gz"):
        assert "an input file (PREDICTION)" in input_rejected_as_output(
            "--map", first, reference, words
        )
        input_rejected_as_output("--relabelled", second, reference, words)
        assert "an input file (REFERENCE)" in input_rejected_as_output(
            "--map", second, words, reference
        )


def test_a_container_is_not_overwritten_if_an_array_in_it_is_read(
    tmp_path: Path, reference: Path
) -> None:
    archive = tmp_path / "pred.npz"
    np.savez(archive, probs=UNSURE.transpose(3, 0, 1, 2), other=LABELS)
    input_rejected_as_output(
        "--relabelled", archive, reference, f"{archive}:probs", "--ignore-geometry"
    )
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["deep/labels"] = LABELS
    store = tmp_path / "a.h5"
    input_rejected_as_output(
        "--json", store, reference, f"{store}:/deep/labels", "--ignore-geometry"
    )


def test_the_mask_is_not_overwritten(tmp_path: Path, reference: Path, prediction: Path) -> None:
    mask = save(tmp_path / "mask.nii.gz", np.ones_like(LABELS))
    message = input_rejected_as_output("--map", mask, reference, prediction, "--mask", mask)
    assert "an input file (--mask)" in message


def test_an_input_under_another_name_is_not_overwritten(
    tmp_path: Path, reference: Path, prediction: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hard, soft, far = (tmp_path / name for name in ("hard.nii.gz", "soft.nii.gz", "far.nii.gz"))
    os.link(prediction, hard)
    soft.symlink_to(prediction)
    far.symlink_to(soft)
    for name in (hard, soft, far, tmp_path / "." / ".." / tmp_path.name / prediction.name):
        input_rejected_as_output("--relabelled", name, reference, prediction, input_=prediction)
        input_rejected_as_output("--map", prediction, reference, name)
    assert soft.is_symlink() and hard.samefile(prediction)
    monkeypatch.chdir(tmp_path)
    input_rejected_as_output("--map", Path(reference.name), reference, prediction)


def test_companion_files_of_an_input_are_not_overwritten(tmp_path: Path, reference: Path) -> None:
    nibabel.save(nibabel.Nifti1Pair(SPLIT, AFFINE), tmp_path / "pair.hdr")
    header, values = tmp_path / "pair.hdr", tmp_path / "pair.img"
    input_rejected_as_output("--json", values, reference, header)
    input_rejected_as_output("--json", header, reference, values)
    probabilities = tmp_path / "case.npz"
    np.savez(probabilities, probabilities=UNSURE.transpose(3, 2, 1, 0))
    labels = save(tmp_path / "case.nii.gz", LABELS)
    input_rejected_as_output("--map", labels, reference, probabilities)
    image = SimpleITK.GetImageFromArray(SPLIT.transpose(2, 1, 0))
    for name, values in (("a.mhd", "a.raw"), ("b.nhdr", "b.raw.gz")):
        SimpleITK.WriteImage(image, tmp_path / name, useCompression=name == "b.nhdr")
        assert (tmp_path / values).exists()
        input_rejected_as_output("--json", tmp_path / values, reference, tmp_path / name)


def test_files_with_similar_names_can_be_overwritten(
    tmp_path: Path, reference: Path, prediction: Path
) -> None:
    np.savez(tmp_path / "a.npz", labels=LABELS, affine=AFFINE)
    old = save(tmp_path / "a.nii.gz", LABELS * 2)
    assert run("compare", reference, tmp_path / "a.npz", "--map", old).code == 0
    assert nibabel.load(old).get_fdata().max() == 1
    other = save(tmp_path / "pve_10.nii.gz", SPLIT)
    region_files(tmp_path)
    words = reference, f"{tmp_path}/pve_?.nii.gz", "--relabelled", other
    assert run("compare", *words).code == 0


def test_two_outputs_must_be_different_files(
    tmp_path: Path, reference: Path, prediction: Path
) -> None:
    both = reference, prediction
    target, link = tmp_path / "target.nii", tmp_path / "link.nii"
    link.symlink_to(target)  # the target does not exist yet
    message = error_of(*both, "--map", link, "--relabelled", target, code=2)
    assert "is also written by --map" in message
    target.write_bytes(b"old")
    message = error_of(*both, "--map", link, "--relabelled", target, code=2)
    assert "is also written by --map" in message
    assert target.read_bytes() == b"old"
    dangling, circle = tmp_path / "dangling.nii", tmp_path / "circle.nii"
    dangling.symlink_to(tmp_path / "no" / "a.nii")
    circle.symlink_to(circle)
    assert f"the folder {tmp_path / 'no'} does not exist" in error_of(
        *both, "--map", dangling, code=2
    )
    assert "is a circular symbolic link" in error_of(*both, "--map", circle, code=2)


def test_a_file_name_that_is_too_long_is_rejected(
    tmp_path: Path, reference: Path, prediction: Path
) -> None:
    name = tmp_path / f"{'a' * 300}.nii"
    assert error_of(reference, prediction, "--map", name) == f"error: {name}: File name too long"


def test_existing_files_are_unchanged_if_the_disk_is_full(
    tmp_path: Path, reference: Path, prediction: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "a.json").write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    for option, name in (("--json", "a.json"), ("--map", "a.nii.gz")):
        message = error_of(reference, prediction, option, tmp_path / name)
        assert message == f"error: {tmp_path / name}: cannot be written: No space left on device"
    assert (tmp_path / "a.json").read_text() == "old"
    assert {path.name for path in tmp_path.iterdir()} == {reference.name, prediction.name, "a.json"}


def test_a_device_is_not_replaced(reference: Path, prediction: Path) -> None:
    assert run("compare", reference, prediction, "--json", os.devnull).code == 0
    assert not os.path.isfile(os.devnull)


# ---- invalid input


def corrupt(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_invalid_files_are_rejected_by_name(tmp_path: Path, reference: Path) -> None:
    packed = reference.read_bytes()
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(tmp_path / "rgb.png")
    cases: Sequence[tuple[Path | str, str]] = [
        (tmp_path, "is a folder"),
        (f"{tmp_path}/none_*.nii.gz", "no file matches"),
        (corrupt(tmp_path / "empty.nii.gz", b""), "is empty"),
        (corrupt(tmp_path / "cut.nii.gz", packed[:-20]), "complete"),
        (
            corrupt(tmp_path / "short.nii.gz", gzip.compress(gzip.decompress(packed)[:-3])),
            "incomplete",
        ),
        (corrupt(tmp_path / "text.nii.gz", b"hello, this is text"), "it is text starting"),
        (corrupt(tmp_path / "text.txt", b"hello, this is text"), "not a segmentation file"),
        (tmp_path / "rgb.png", "RGB"),
        (save(tmp_path / "series.nii.gz", np.full((8, 2, 1, 5), 300, np.int16)), "time series"),
    ]
    for path, words in cases:
        for pair in ((reference, path), (path, reference)):
            message = error_of(*pair)
            assert words in message and Path(str(path)).name in message


def test_invalid_probabilities_are_rejected(tmp_path: Path, reference: Path) -> None:
    for value, words in ((np.nan, "found nan"), (-0.5, "is negative"), (3.5, "is above 1")):
        wrong = UNSURE.copy()
        wrong[3, 1, 0, 0] = value
        message = error_of(reference, save(tmp_path / "wrong.nii.gz", wrong))
        assert message.startswith("error: prediction (") and "wrong.nii.gz): " in message
        assert words in message and "(3, 1, 0)" in message


def test_different_shapes_are_rejected(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", LABELS)
    np.save(tmp_path / "b.npy", LABELS[:-1])
    assert "(8, 2, 1)" in error_of(tmp_path / "a.npy", tmp_path / "b.npy")


def test_an_unexpected_error_is_one_line(reference: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("oh")

    monkeypatch.setattr(comparing, "compare_images", broken)
    shown = "error: unexpected KeyError: 'oh'. Use --debug to print the traceback."
    assert error_of(reference, reference) == shown
    monkeypatch.setattr(comparing, "compare_images", lambda *_, **__: [][1])
    assert "IndexError" in error_of(reference, reference)


def test_file_names_in_messages_are_not_rewritten(tmp_path: Path, reference: Path) -> None:
    for name in ("match=False.nii.gz", 'merge="both".nii.gz', "with a mask.nii.gz"):
        assert error_of(reference, tmp_path / name) == f"error: {tmp_path / name}: no such file"


# ---- progress


def test_progress_counts_blocks() -> None:
    calls: list[tuple[int, int]] = []
    token = watcher.set(lambda done, total: calls.append((done, total)))
    try:
        labels = np.ones((2048, 1024), np.int64)
        probdice.compare(labels, labels)
    finally:
        watcher.reset(token)
    total = calls[0][1]
    assert total > 1
    assert calls[:total] == [(k, total) for k in range(1, total + 1)]


def test_no_progress_bar_is_shown_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(visible=True) as display:
        display.begin("reading")
        display.start()
        display.stop()
    assert watcher.get() is None
    stopped = ProgressDisplay()
    stopped.stop()
    stopped.start()  # shows nothing
    assert capsys.readouterr().out == ""


# ---- info


def test_info_describes_a_label_map(reference: Path) -> None:
    shown = run("info", reference).out
    assert "label map, 2 labels, stored as uint8" in shown
    assert "8 × 2 × 1" in shown and "2 2 3 mm" in shown and "(RAS)" in shown
    assert re.search(r"2 +8 +0\.096 mL +50\.00 %", shown)


def test_info_describes_probabilities(tmp_path: Path, unsure: Path) -> None:
    thin = save(tmp_path / "thin.nii.gz", SURE * np.float32(0.5))
    shown = run("info", thin).out
    assert "probabilities of 2 regions, stored as float32" in shown
    assert "from 0.5 to 0.5; not 1 at 100.00 % of the voxels" in shown
    assert "50.00 % of the values are 0, 0.00 % are 1" in shown
    assert "compare would reject this file: probabilities sum to 0.5" in shown and "--sums" in shown
    with_background = run("info", thin, "--sums", "background").out
    assert "added as a region called background" in with_background
    assert "reject" not in with_background
    assert "not 1" not in run("info", unsure).out


def test_info_never_rounds_up_to_100_percent(tmp_path: Path) -> None:
    labels = np.ones(40_000, np.uint8)
    labels[0] = 2
    np.save(tmp_path / "a.npy", labels)
    shown = run("info", tmp_path / "a.npy").out
    assert "99.99 %" in shown and "100.00" not in shown


def test_a_score_below_1_is_never_rounded_up_to_1(tmp_path: Path) -> None:
    labels = np.repeat(np.array([1, 2], np.uint8), 20_000)
    np.save(tmp_path / "a.npy", labels)
    labels[0] = 2
    np.save(tmp_path / "b.npy", labels)
    shown = run("compare", tmp_path / "a.npy", tmp_path / "b.npy").out
    assert "score           0.9999" in shown and "1.0000" not in shown


def test_info_describes_one_foreground_and_named_segments(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[0.0, 25.0], [100.0, 50.5]], np.float32))
    shown = run("info", tmp_path / "a.npy").out
    assert "compare would reject this file" in shown or "whole" in shown
    Image.fromarray(np.array([[0, 255]], np.uint8)).save(tmp_path / "a.png")
    shown = run("info", tmp_path / "a.png", "--scale", 255).out
    assert "probability of one foreground" in shown
    assert "none: the file has no spacing, origin or direction" in shown
    masks = save_dicom(tmp_path / "a.dcm", "BINARY", {"left": LEFT, "top": TOP})
    assert re.search(r"2 +top", run("info", masks).out)


def test_info_reports_the_same_errors_as_compare(tmp_path: Path) -> None:
    done = run("info", tmp_path / "missing.nii.gz")
    assert (done.code, done.out) == (1, "")
    assert done.err == f"error: {tmp_path / 'missing.nii.gz'}: no such file\n"
    done = run("info", tmp_path / "missing.nii.gz", "--scale", 0)
    assert (done.code, done.out) == (2, "") and "scale must be a positive number" in done.message


def test_info_names_a_corrupt_file(tmp_path: Path) -> None:
    file = tmp_path / "a.h5"
    with h5py.File(file, "w") as store:
        values = np.random.default_rng(0).integers(0, 3, (64, 64), np.uint8)
        data = store.create_dataset("labels", data=values, chunks=(64, 64), fletcher32=True)
        place = data.id.get_chunk_info(0).byte_offset
    with file.open("rb+") as stream:  # this invalidates the checksum of the values
        stream.seek(place)
        stream.write(bytes(100))
    for path in (tmp_path, corrupt(tmp_path / "text.nii", b"hello, this is text"), file):
        done = run("info", path)
        assert (done.code, done.out) == (1, "")
        assert done.err.startswith(f"error: {path}: ") and done.err.count(str(path)) == 1


def test_the_report_must_have_the_suffix_html(tmp_path: Path, reference: Path) -> None:
    for name in ("-", tmp_path / "page.txt"):
        assert ".html" in error_of(reference, reference, "--report", name, code=2)


def test_region_names_come_from_arguments_and_tables(tmp_path: Path, reference: Path) -> None:
    for k in range(2):
        save(tmp_path / f"pve_{k}.nii.gz", UNSURE[..., k])
    named = f"left={tmp_path}/pve_0.nii.gz,right={tmp_path}/pve_1.nii.gz"
    (tmp_path / "dseg.tsv").write_text("index\tname\n1\tleft\n2\tright\n9\tother\n")
    table = tmp_path / "dseg.tsv"
    result = compare_files(reference, named, "--names", f"reference:{table}", "--match", "labels")
    assert [group.reference for group in result.groups] == [("left",), ("right",)]
    assert [group.prediction for group in result.groups] == [("left",), ("right",)]
    shown = run("compare", reference, reference, "--names", table).out
    assert re.search(r"left +left +1\.0000", shown) and "other" not in shown
    (tmp_path / "wrong.csv").write_text("7,csf\n")
    message = error_of(reference, named, "--names", f"prediction:{tmp_path}/wrong.csv")
    assert "the names match none of the regions: the image has left, right" in message
    message = error_of(reference, reference, "--names", tmp_path / "wrong.csv", "--json", table)
    assert "the names match none of the labels" in message or "also an input" in message


def test_a_table_of_names_is_not_overwritten(tmp_path: Path, reference: Path) -> None:
    (tmp_path / "names.json").write_text('{"1": "a"}')
    words = ("--names", tmp_path / "names.json", "--json", tmp_path / "names.json")
    assert "an input file (--names (" in error_of(reference, reference, *words, code=2)


def test_priority_resolves_overlapping_masks(tmp_path: Path) -> None:
    kidney, tumour = (LABELS == 1).astype(np.uint8), np.zeros_like(LABELS)
    tumour[1:3] = 1
    paths = [save(tmp_path / "kidney.nii.gz", kidney), save(tmp_path / "tumour.nii.gz", tumour)]
    side = ",".join(map(str, paths))
    assert "use --priority tumour,kidney" in error_of(side, side)
    shared = notes_of(side, side, "--sums", "background")
    assert any("4 voxels are in several masks" in note and "--priority" in note for note in shared)
    result = compare_files(side, side, "--priority", "tumour,kidney")
    volumes = {group.reference: group.reference_volume for group in result.groups}
    assert volumes == {("background",): 8, ("kidney",): 4, ("tumour",): 4}
    words = ("--priority", "reference:tumour", "--sums", "prediction:background")
    mixed = compare_files(side, side, *words)
    assert mixed.matched_score < 1 and len(mixed.notes) >= 2
    assert "names cyst, but the regions are kidney, tumour" in error_of(
        side, side, "--priority", "cyst"
    )


def test_volumes_are_also_in_millilitres(reference: Path, prediction: Path) -> None:
    shown = run("compare", reference, prediction).out
    assert re.search(r"Jaccard +ref\. mL +pred\. mL +ref\. voxels +pred\. voxels", shown)
    assert re.search(r"1 +7 +0\.6667 +0\.5000 +0\.096 +0\.048 +8 +4 +-50\.0 %\n", shown)
    assert "0.096 mL" in run("info", reference).out


def test_info_lists_the_arrays_of_a_container(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("a.npz", labels_a=LABELS, soft=SURE.astype(np.float16), x=np.array(["a"]))
    with h5py.File("a.h5", "w") as store:
        store["one/labels"], store["two"] = LABELS, np.zeros((2, 3, 4, 5), np.float32)
    scipy.io.savemat("a.mat", {"people": np.array([LABELS, LABELS[:2]], object)})
    shown = run("info", "a.npz").out
    assert re.search(r":labels_a +8 × 2 × 1 +uint8 +a label map", shown)
    assert re.search(
        r":soft .* float16 +labels if all values are whole, otherwise .* 8 regions", shown
    )
    assert re.search(r":x +1 +<U1 +not numeric", shown)
    shown = run("info", "a.h5").out
    assert re.search(r":/one/labels +8 × 2 × 1 +uint8 +a label map", shown)
    assert re.search(r":/two +2 × 3 × 4 × 5 +float32 +probabilities of 2 regions", shown)
    shown = run("info", "a.mat").out
    assert re.search(r":people/1 +2 × 2 × 1 +uint8 +a label map", shown)
    assert run("info", "a.h5:/one/labels").code == 0
    done = run("info", "a.h5:/three")
    assert (done.code, done.out) == (1, "") and "contains no dataset" in done.err


def test_info_of_overlapping_segments_shows_the_error_of_compare(tmp_path: Path) -> None:
    file = save_dicom(tmp_path / "a.dcm", "BINARY", {"left": LEFT, "both": LEFT | TOP})
    shown = run("info", file).out
    assert re.search(r"left +■ #E69F00 +12\.0", shown)
    assert "compare would reject this file" in shown and "--priority left,both" in shown
    resolved = run("info", file, "--priority", "left").out
    assert re.search(r"1 +left +■ #E69F00", resolved) and re.search(r"2 +both", resolved)


def test_info_recommends_a_scale_and_shows_colours(tmp_path: Path, reference: Path) -> None:
    values = np.clip(np.round(255 / (1 + np.exp(-np.linspace(-8, 8, 60_000)))), 0, 255)
    np.save(tmp_path / "bytes.npy", values.astype(np.uint8))
    assert (
        "The values look like 8-bit probabilities. If they are, use --scale 255 (in compare, "
        in run("info", tmp_path / "bytes.npy").out
    )
    (tmp_path / "names.csv").write_text("label,name,color\n1,grey,#808080\n2,white,#ffffff\n")
    shown = run("info", reference, "--names", tmp_path / "names.csv").out
    assert re.search(r"1 +grey +■ #808080", shown)
    page, json_file = tmp_path / "page.html", tmp_path / "a.json"
    outputs = "--report", page, "--json", json_file
    run("compare", reference, reference, "--names", tmp_path / "names.csv", *outputs)
    assert "#808080" in page.read_text()
    result = probdice.Comparison.from_json(json_file.read_text())
    assert result.overlap.reference.colours == {1: "#808080", 2: "#FFFFFF"}


# -- indices and components -----------------------------------------------------------------------


def test_indices_are_printed_with_an_option(tmp_path: Path) -> None:
    paths = [tmp_path / "a.npy", tmp_path / "b.npy"]
    np.save(paths[0], np.array([[0, 1, 1, 1, 0, 2, 2, 2, 2, 0]]))
    np.save(paths[1], np.array([[0, 7, 7, 7, 7, 8, 8, 9, 9, 5]]))
    assert "adjusted rand" not in run("compare", *paths).out
    shown = run("compare", *paths, "--indices").out
    assert "adjusted rand" in shown
    assert "Detection" not in shown and "mean foreground dice" not in shown
    shown = run("compare", *paths, "--indices", "--background", "0").out
    assert "mean foreground dice" in shown
    assert "reference 2 was split into 2: 8, 9" in shown
    assert "no background" in run("compare", *paths, "--indices", "--background", "none").out


def test_indices_are_in_the_json(tmp_path: Path) -> None:
    import json

    path, out = tmp_path / "a.npy", tmp_path / "out.json"
    np.save(path, np.array([[0, 1, 1, 2]]))
    done = run("compare", path, path, "--indices", "--background", 0, "--json", out)
    assert done.code == 0, done.err
    content = json.loads(out.read_text())
    assert content["indices"]["rand"] == 1
    assert content["detection"]["true_positives"] == 2
    assert probdice.Comparison.from_json(out.read_text()).score == 1


def test_indices_of_probabilities_report_undefined_ones(tmp_path: Path) -> None:
    path = tmp_path / "p.npy"
    np.save(path, np.array([[[0.9, 0.2]], [[0.1, 0.8]]]))
    shown = run("compare", path, path, "--indices").out
    assert "kappa" in shown and "adjusted rand" not in shown
    assert "note: A side contains probabilities. Rand indices, variation of information" in shown


def test_components_are_separate_regions(tmp_path: Path) -> None:
    pytest.importorskip("cc3d")
    paths = [tmp_path / "a.npy", tmp_path / "b.npy"]
    np.save(paths[0], np.array([[1, 1, 0, 1, 1, 0, 0]]))
    np.save(paths[1], np.array([[1, 1, 0, 0, 0, 0, 1]]))
    done = run("compare", *paths, "--components", "--background", "0")
    assert "1 found, 1 missed, 1 false" in done.out
    assert "1#2" in done.out
    soft = tmp_path / "soft.npy"
    np.save(soft, np.full((2, 1, 7), 0.5))
    done = run("compare", paths[0], soft, "--components", "--background", "0")
    assert done.code == 1
    assert "prediction: components require a label map, found probabilities" in done.message


def test_components_need_a_background(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.array([[0, 1]]))
    done = run("compare", path, path, "--components")
    assert done.code == 2
    assert "--components: requires --background" in done.message


def test_max_bytes_limits_the_memory_of_a_file(reference: Path, prediction: Path) -> None:
    assert "use --max-bytes " in error_of(reference, prediction, "--max-bytes", 20)
    assert "use --max-bytes " in run("info", reference, "--max-bytes", 20).message
    assert run("compare", reference, prediction, "--max-bytes", 10**6).code == 0


def test_an_unknown_choice_is_reported_without_the_words_of_pydantic() -> None:
    done = run("compare", "a.png", "b.png", "--similarity", "foo")
    assert done.code == 2
    expected = "Invalid value for '--similarity': 'foo' is not one of 'absolute', 'aitchison'."
    assert expected in done.message
