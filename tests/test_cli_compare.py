"""`probdice compare` and `probdice info`: options, files of the field's own writers, refusals."""

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
from probdice.cli.progress import Progress, progress
from probdice.comparison import comparing
from probdice.engine.threads import watcher

LABELS = np.repeat(np.array([1, 1, 1, 1, 2, 2, 2, 2], np.uint8)[:, None, None], 2, axis=1)
SPLIT = np.repeat(np.array([7, 7, 5, 5, 5, 9, 9, 9], np.uint8)[:, None, None], 2, axis=1)
SURE = np.stack([LABELS == 1, LABELS == 2], axis=-1).astype(np.float32)
UNSURE = SURE * np.float32(0.8) + np.float32(0.1)
AFFINE = np.diag([2.0, 2.0, 3.0, 1.0])


class Done:
    """What a command left behind."""

    def __init__(self, code: int, out: str, err: str):
        self.code, self.out, self.err = code, out, err
        self.said = " ".join(re.sub("[│╭╮╰╯─]", " ", err).split())  # without Typer's frame


def run(*words: object) -> Done:
    done = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Done(done.exit_code, done.stdout, done.stderr)


def compared(*words: object) -> probdice.Comparison:
    done = run("compare", *words, "--json", "-")
    assert done.code == 0, done.err
    return probdice.Comparison.from_json(done.out)


def noted(*words: object) -> list[str]:
    """The notes as they are shown."""
    lines = run("compare", *words).out.splitlines()
    return [line.removeprefix("note: ") for line in lines if line.startswith("note: ")]


def refused(*words: object, code: int = 1) -> str:
    """The message of a command that must fail, with nothing printed and no traceback."""
    done = run("compare", *words)
    assert (done.code, done.out) == (code, "")
    assert "Traceback" not in done.err
    if code == 1:
        assert done.err.startswith("error: ")
    return done.said


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


# ---- files of every kind


def test_formats_of_the_field_against_each_other(tmp_path: Path, reference: Path) -> None:
    image = SimpleITK.GetImageFromArray(LABELS.transpose(2, 1, 0))
    image.SetSpacing((2.0, 2.0, 3.0))
    image.SetDirection((-1.0, 0, 0, 0, -1, 0, 0, 0, 1))  # ITK counts left and posterior
    for name in ("a.mha", "a.nrrd"):
        SimpleITK.WriteImage(image, tmp_path / name)
        assert compared(reference, tmp_path / name).score == 1
    np.save(tmp_path / "a.npy", LABELS)
    tifffile.imwrite(tmp_path / "a.tif", LABELS, photometric="minisblack")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["deep/labels"] = LABELS
    for name in ("a.tif", "a.h5:/deep/labels"):
        assert compared(tmp_path / "a.npy", tmp_path / name).score == 1
    flat = LABELS[:, :, 0]
    Image.fromarray(flat).save(tmp_path / "a.png")
    np.savez(tmp_path / "a.npz", labels=flat)
    assert compared(tmp_path / "a.png", tmp_path / "a.npz:labels").score == 1


def test_segments_carry_their_names(tmp_path: Path) -> None:
    masks = {"left": LEFT, "top": TOP}
    crisp = save_dicom(tmp_path / "a.dcm", "BINARY", masks)
    shares = {name: mask * 0.5 for name, mask in masks.items()}
    soft = save_dicom(tmp_path / "b.dcm", "FRACTIONAL", shares)
    result = compared(crisp, soft, "--sums", "background")
    assert result.reference_labels == (0, "left", "top")
    assert result.prediction_labels == ("left", "top", "background")
    assert result.groups[1].reference == result.groups[1].prediction == ("left",)


def test_one_file_per_region(tmp_path: Path, reference: Path) -> None:
    for k, name in enumerate(("grey", "white")):
        save(tmp_path / f"seg_{name}.nii.gz", UNSURE[..., k])
    for words in (
        f"{tmp_path}/seg_*.nii.gz",
        f"{tmp_path}/seg_grey.nii.gz,{tmp_path}/seg_white.nii.gz",
    ):
        result = compared(reference, words)
        assert result.prediction_labels == ("grey", "white")
        assert result.score == pytest.approx(0.9)


# ---- options


def test_merging(reference: Path, prediction: Path) -> None:
    assert compared(reference, prediction).score == 0.625
    for side in ("prediction", "both"):
        assert compared(reference, prediction, "--merge", side).score == 0.875
    shown = run("compare", reference, prediction, "--merge", "both").out
    assert "matched score   0.6250  before 1 prediction region was merged" in shown


def test_both_sides_may_be_merged_in_one_image(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.repeat([1, 2, 3], [6, 2, 8]))
    np.save(tmp_path / "b.npy", np.repeat([5, 6, 7], [8, 5, 3]))
    shown = run("compare", tmp_path / "a.npy", tmp_path / "b.npy", "--merge", "both").out
    assert "score           1.0000" in shown
    merged = "before 1 reference region and 1 prediction region were merged"
    assert f"matched score   0.6875  {merged}" in shown
    assert "unmatched" not in shown


def test_the_headline_says_what_a_score_alone_does_not(reference: Path, prediction: Path) -> None:
    shown = run("compare", reference, prediction).out
    assert "adjusted score  0.4000  1 is equal, 0 is chance (which scores 0.3750)" in shown
    assert "explained       0.6667  of the reference by the prediction" in shown
    assert "                0.3333  of the prediction by the reference" in shown
    assert "mean Dice       0.5079" in shown  # of 2/3, 6/7 and 0
    assert "lowest Dice     0.0000  prediction 5, unmatched" in shown
    assert "unmatched            1  of 3 prediction regions" in shown


def test_sampled_chance_has_an_error(reference: Path, unsure: Path) -> None:
    shown = run("compare", unsure, unsure, "--similarity", "aitchison").out
    assert re.search(r"which scores 0\.\d{4} ± 0\.\d{4}\)", shown)
    assert "±" not in run("compare", reference, unsure).out


def test_spare_regions_come_with_an_option(tmp_path: Path, unsure: Path) -> None:
    three = np.concatenate([UNSURE[..., :1] / 2, UNSURE[..., :1] / 2, UNSURE[..., 1:]], axis=-1)
    prediction = save(tmp_path / "three.nii.gz", three)
    assert noted(unsure, prediction)[0] == (
        "1 prediction region is unmatched and counts as Dice 0 (region 1). "
        "To merge it into a matched region, use --merge prediction."
    )


# ---- which region is which


def test_equal_labels_correspond_where_that_is_asked_for(
    tmp_path: Path, reference: Path, prediction: Path
) -> None:
    other = save(tmp_path / "swapped.nii.gz", (3 - LABELS).astype(np.uint8))
    crossed = "2 labels exist on both sides but were matched to a different label (1, 2)."
    assert noted(reference, other) == [
        f"{crossed} If equal labels mean the same region, use --match labels."
    ]
    assert compared(reference, other).score == 1
    assert compared(reference, other, "--match", "labels").score == 0
    said = refused(reference, prediction, "--match", "labels")
    assert "with --match labels nothing corresponds" in said and "use --match overlap" in said
    said = refused(reference, other, "--match", "labels", "--merge", "both", code=2)
    assert "--merge both does not go with --match labels" in said


def test_the_rule_of_the_paper(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.repeat([1, 2, 3], [6, 2, 8]))
    np.save(tmp_path / "b.npy", np.repeat([5, 6, 7], [8, 5, 3]))
    words = tmp_path / "a.npy", tmp_path / "b.npy", "--match", "paper"
    assert compared(*words).unmatched == {"reference": (), "prediction": ()}
    assert (
        "1 matched pair does not overlap. To match overlapping regions only, use --match overlap."
        in noted(*words)
    )


def test_pairs_are_prediction_label_equals_reference_label(
    tmp_path: Path, reference: Path, prediction: Path
) -> None:
    result = compared(reference, prediction, "--match", "5=1,9=2")
    assert [group.prediction for group in result.groups] == [(5,), (9,), (7,)]
    assert result.match == {5: 1, 9: 2}
    many = compared(reference, prediction, "--match", " 5 = 1 ,7=1, 9=2")
    assert many.groups[0].prediction == (5, 7)
    assert many.score == 0.875
    for k, name in enumerate(("grey", "white")):
        save(tmp_path / f"seg_{name}.nii.gz", UNSURE[..., k])
    named = compared(f"{tmp_path}/seg_*.nii.gz", reference, "--match", "1=white,2=grey")
    assert named.groups[0].reference == ("grey",) and named.groups[0].prediction == (2,)
    assert "match names 4" in refused(reference, prediction, "--match", "4=1")
    assert "5 twice" in refused(reference, prediction, "--match", "5=1,5=2", code=2)
    for wrong in ("lables", "5=", "=1", "5=1,", "", "5:1"):
        said = refused(reference, prediction, "--match", wrong, code=2)
        assert "expected overlap, paper, labels, pairs of labels such as 0=csf,1=grey" in said


def test_the_correspondence_of_an_earlier_comparison(
    tmp_path: Path, reference: Path, prediction: Path
) -> None:
    earlier = tmp_path / "earlier.json"
    assert run("compare", reference, prediction, "--merge", "both", "--json", earlier).code == 0
    again = compared(reference, prediction, "--match", earlier)
    assert again.score == again.matched_score == 0.875
    assert again.groups[0].prediction == (5, 7)
    said = refused(reference, prediction, "--match", earlier, "--merge", "both", code=2)
    assert "does not go with an earlier comparison" in said
    said = refused(reference, prediction, "--match", earlier, "--json", earlier, code=2)
    assert "is also an input, read for --match" in said
    new = save(tmp_path / "new.nii.gz", np.where(SPLIT == 9, 8, SPLIT))
    assert "1 prediction label is missing from the earlier comparison (8)." in noted(
        reference, new, "--match", earlier
    )


def test_a_file_that_holds_no_earlier_comparison(
    tmp_path: Path, reference: Path, prediction: Path
) -> None:
    missing = tmp_path / "missing.json"
    said = refused(reference, prediction, "--match", missing)
    assert said == f"error: {missing}: no such file"
    for content in (b"", b"[]", b'{"format": 1}', b'{"format": 2}', b"\xff\xfe"):
        missing.write_bytes(content)
        said = refused(reference, prediction, "--match", missing)
        assert said.startswith(f"error: {missing}: ")
    (tmp_path / "folder.json").mkdir()
    said = refused(reference, prediction, "--match", tmp_path / "folder.json")
    assert said.endswith("folder.json: cannot be read: Is a directory")


def test_an_option_of_before_leads_to_the_new_one(reference: Path) -> None:
    assert "--match" in refused(reference, reference, "--no-match", code=2).replace(
        "--no-match", ""
    )


# ---- what is compared


def test_mask_and_ignored_labels(tmp_path: Path, reference: Path, prediction: Path) -> None:
    mask = save(tmp_path / "mask.nii.gz", (LABELS == 2).astype(np.float32))
    assert compared(reference, prediction, "--mask", mask).pixels == 8
    result = compared(reference, prediction, "--ignore", 1, "--ignore", 255)
    assert (result.pixels, result.reference_labels) == (8, (2,))
    soft = save(tmp_path / "soft.nii.gz", SURE)
    said = refused(soft, prediction, "--ignore", 1, "--ignore", 3)
    assert (
        "--ignore 1 --ignore 3 applies to label maps" in said
        and "To exclude voxels, use --mask" in said
    )
    empty = save(tmp_path / "empty.nii.gz", np.zeros_like(LABELS))
    assert refused(reference, prediction, "--mask", empty).endswith("no pixels are left to compare")


@pytest.mark.parametrize(
    ("ignored", "absent"), [([7], [7]), ([1, 7], [7]), ([-1, 2, 255], [-1, 255]), ([2], [])]
)
def test_a_label_to_be_ignored_that_is_not_there_is_told(
    reference: Path, prediction: Path, ignored: list[int], absent: list[int]
) -> None:
    words = [word for label in ignored for word in ("--ignore", label)]
    notes = [text for text in noted(reference, prediction, *words) if "ignored" in text]
    assert notes == [
        f"The ignored label {label} does not occur in the reference" for label in absent
    ]


def test_a_mask_with_holes_is_told(tmp_path: Path, reference: Path, prediction: Path) -> None:
    mask = np.ones(LABELS.shape, np.float32)
    mask[0] = np.nan
    words = "--mask", save(tmp_path / "mask.nii.gz", mask)
    assert "2 pixels of the mask are NaN and treated as outside." in noted(
        reference, prediction, *words
    )


def test_aitchison_says_when_most_is_infinitely_far(reference: Path, unsure: Path) -> None:
    shown = run("compare", reference, unsure, "--similarity", "aitchison")
    assert (shown.code, shown.err) == (0, "")
    assert "note: 100.0 % of the pixels are infinitely far apart" in shown.out
    assert "consider --floor 1e-3, --similarity absolute" in shown.out
    floored = compared(reference, unsure, "--similarity", "aitchison", "--floor", 0.01)
    assert floored.score == pytest.approx(0.37000384, abs=1e-6)
    assert "aitchison" in refused(reference, unsure, "--floor", 0.01, code=2)
    assert "below 0.5" in refused(
        reference, unsure, "--similarity", "aitchison", "--floor", 0.7, code=2
    )


def test_sums_for_both_sides_or_one(tmp_path: Path, reference: Path) -> None:
    thin = save(tmp_path / "thin.nii.gz", UNSURE * np.float32(0.5))
    said = refused(reference, thin)
    assert "sum to 0.5" in said and "To divide by the sum, pass --sums normalise" in said
    assert compared(reference, thin, "--sums", "normalise").score == pytest.approx(0.9)
    result = compared(
        thin, thin, "--sums", "reference:background", "--sums", "prediction:normalise"
    )
    assert result.reference_labels == (0, 1, "background")
    assert result.prediction_labels == (0, 1)
    for wrong in ("sometimes", "both:error"):
        assert "sums" in refused(reference, thin, "--sums", wrong, code=2)


def test_scale_leaves_label_maps_and_probabilities_alone(
    tmp_path: Path, reference: Path, unsure: Path
) -> None:
    percent = save(tmp_path / "percent.nii.gz", UNSURE * np.float32(100))
    whole = save(tmp_path / "whole.nii.gz", np.round(UNSURE * 100).astype(np.uint8))
    for prediction in (percent, whole):
        result = compared(reference, prediction, "--scale", 100)
        assert result.reference_labels == (1, 2)
        assert result.score == pytest.approx(0.9)
        assert str(result.notes[0]) == "The values of the prediction were divided by 100."
        assert compared(unsure, prediction, "--scale", 100).score == pytest.approx(1)
    assert compared(percent, whole, "--scale", 100).score == pytest.approx(1)
    assert "--scale 100 or --scale 255" in refused(reference, whole)


def test_scale_for_a_side_whatever_it_holds(tmp_path: Path) -> None:
    grey, labels = tmp_path / "grey.png", tmp_path / "labels.png"
    Image.fromarray(np.array([[0, 255], [51, 204]], np.uint8)).save(grey)
    Image.fromarray(np.array([[0, 1], [0, 1]], np.uint8)).save(labels)
    said = refused(labels, grey, "--scale", 255)
    assert "the reference is a label map" in said and "--scale prediction:255" in said
    result = compared(labels, grey, "--scale", "prediction:255")
    assert result.score == pytest.approx((1 + 1 + 0.8 + 0.8) / 4)
    for wrong in ("much", "-1", "inf", "nan", "left:3", "prediction:-1"):
        assert "scale" in refused(labels, grey, "--scale", wrong, code=2)
    both = "--scale", "prediction:255", "--scale", 2
    assert "name the side of each" in refused(labels, grey, *both, code=2)


def test_an_image_of_intensities_is_doubted(tmp_path: Path, reference: Path) -> None:
    image = save(tmp_path / "ct.nii.gz", LABELS.astype(np.int16) * 700 - 1000)
    assert noted(reference, image)[0].startswith("the prediction has negative labels")


def test_quiet_is_one_number(reference: Path, prediction: Path) -> None:
    assert run("compare", reference, prediction, "-q", "--workers", 1).out == "0.625\n"
    for wrong in (0, -1, 2.5, "1e2", "two", "", "nan"):
        assert "--workers" in refused(reference, prediction, "--workers", wrong, code=2)


# ---- where the images lie


def test_the_same_grid_in_another_order_is_the_same(tmp_path: Path, reference: Path) -> None:
    image = nibabel.load(reference).as_reoriented([[1, 1], [0, -1], [2, -1]])
    nibabel.save(image, tmp_path / "turned.nii.gz")
    assert compared(reference, tmp_path / "turned.nii.gz").score == 1


@pytest.mark.parametrize("change", ["origin", "spacing", "flip"])
def test_other_places_are_refused_side_by_side(
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
    said = refused(reference, moved)
    assert "do not lie on the same grid" in said
    assert "reference prediction size 8 × 2 × 1" in said
    result = run("compare", reference, moved, "--ignore-geometry")
    assert "score           1.0000" in result.out
    assert "note: geometry was ignored" in result.out


def test_tolerance_in_pixels(tmp_path: Path, reference: Path) -> None:
    affine = AFFINE.copy()
    affine[0, 3] = 0.5  # a quarter of a pixel
    moved = save(tmp_path / "moved.nii.gz", LABELS, affine)
    refused(reference, moved)
    assert compared(reference, moved, "--geometry-tolerance", 0.3).score == 1
    assert compared(reference, reference, "--mask", moved, "--geometry-tolerance", 0.3)
    affine[0, 3] = 0.1
    moved = save(tmp_path / "near.nii.gz", LABELS, affine)
    assert compared(reference, moved).score == 1
    assert "reference prediction size" in refused(reference, moved, "--geometry-tolerance", 0.01)
    assert "mask" in refused(reference, reference, "--mask", moved, "--geometry-tolerance", 0.01)
    refused(reference, moved, "--geometry-tolerance", 1, "--ignore-geometry", code=2)


def test_one_side_without_a_place_is_refused(tmp_path: Path, reference: Path) -> None:
    np.save(tmp_path / "a.npy", LABELS)
    said = refused(reference, tmp_path / "a.npy")
    assert "prediction has no geometry" in said and "with --ignore-geometry" in said
    assert compared(reference, tmp_path / "a.npy", "--ignore-geometry").score == 1


# ---- what is written


def test_json_says_what_it_was_made_of(tmp_path: Path, reference: Path, prediction: Path) -> None:
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


def test_the_bar_says_that_kernels_are_compiled() -> None:
    display = Progress()
    display.say("comparing")
    display.compiling()
    assert "compiling kernels, once on this machine" in display._doing["description"]
    display.compiled()
    assert display._doing["description"] == "comparing"


def test_kernels_can_be_compiled_beforehand(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = np.arange(24 * 24, dtype=np.uint8).reshape(24, 24) % 3
    monkeypatch.setattr(warm_up, "_pairs", lambda: iter([(labels, labels)]))
    first, again = run("warm-up"), run("warm-up")
    assert (first.code, again.code) == (0, 0)
    assert re.fullmatch(r"\d+ kernels? (was|were) compiled in \d+ s\n", first.out)
    assert again.out.startswith("0 kernels were compiled")


def test_map_relabelled_and_json(tmp_path: Path, reference: Path, prediction: Path) -> None:
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


def test_a_page_to_look_at(tmp_path: Path, reference: Path, prediction: Path) -> None:
    page = tmp_path / "page.html"
    done = run("compare", reference, prediction, "--report", page)
    assert (done.code, done.err) == (0, "")
    assert f"wrote {page}: a page to open in a browser" in done.out
    content = page.read_text()
    assert content.lstrip().lower().startswith("<!doctype html>")
    assert "--merge prediction" in content and "merge=" not in content


def test_a_page_shows_images_and_the_command_that_made_it(
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


def test_an_image_that_does_not_fit_is_refused_before_anything_is_written(
    tmp_path: Path, reference: Path, prediction: Path
) -> None:
    page = tmp_path / "page.html"
    far = save(tmp_path / "far.nii.gz", LABELS, AFFINE + np.diag([0, 0, 0, 0]) + np.eye(4, k=3) * 9)
    said = refused(reference, prediction, "--report", page, "--image", far)
    assert "far.nii.gz" in said and "does not lie on the grid" in said and not page.exists()
    np.save(tmp_path / "scan.npy", LABELS)
    said = refused(reference, prediction, "--report", page, "--image", tmp_path / "scan.npy")
    assert "has no geometry" in said and "--ignore-geometry" in said
    words = ["--image", tmp_path / "scan.npy", "--ignore-geometry"]
    assert run("compare", reference, prediction, "--report", page, *words).code == 0
    assert "--report" in refused(reference, prediction, "--image", far, code=2)


def test_files_lie_where_the_reference_lies(tmp_path: Path, reference: Path) -> None:
    np.save(tmp_path / "a.npy", SPLIT)
    words = ["--ignore-geometry", "--map", tmp_path / "m.nii", "--relabelled", tmp_path / "r.nii"]
    assert run("compare", reference, tmp_path / "a.npy", *words).code == 0
    for name in ("m.nii", "r.nii"):
        assert np.array_equal(nibabel.load(tmp_path / name).affine, AFFINE)


def test_the_order_of_relabelled_regions_is_told(
    tmp_path: Path, reference: Path, unsure: Path
) -> None:
    path = tmp_path / "new.nii.gz"
    done = run("compare", reference, unsure, "--relabelled", path)
    assert f"{path}: the prediction with the reference's labels, regions in this order: 1, 2" in (
        done.out
    )


def test_outputs_are_looked_at_before_the_work(
    tmp_path: Path, reference: Path, prediction: Path
) -> None:
    both = reference, prediction
    assert "no suffix" in refused(*both, "--map", tmp_path / "map.doc", code=2)
    assert "no folder" in refused(*both, "--json", tmp_path / "no" / "a.json", code=2)
    assert "is a folder" in refused(*both, "--json", tmp_path, code=2)
    assert "also an input" in refused(*both, "--relabelled", prediction, code=2)
    twice = tmp_path / "a.nii"
    said = refused(*both, "--map", twice, "--relabelled", twice, code=2)
    assert "also written by --map" in said
    assert "PNG stores only whole numbers" in refused(*both, "--map", tmp_path / "a.png")
    assert "PNG stores 2 axes" in refused(*both, "--relabelled", tmp_path / "a.png")
    assert not list(tmp_path.glob("a*"))


def region_files(folder: Path) -> list[Path]:
    """Probabilities as FSL writes them, one file a region."""
    return [save(folder / f"pve_{k}.nii.gz", UNSURE[..., k]) for k in range(2)]


def never_written(option: str, output: Path, *words: object, input_: Path | None = None) -> str:
    """The refusal of an output that is an input, which must be as it was."""
    content = (input_ or output).read_bytes()
    said = refused(*words, option, output, code=2)
    assert f"Invalid value for {option}" in said and str(output) in said
    assert "is also an input" in said
    assert (input_ or output).read_bytes() == content
    return said


def test_no_file_of_a_list_or_a_pattern_is_overwritten(tmp_path: Path, reference: Path) -> None:
    first, second = region_files(tmp_path)
    for words in (f"{first},{second}", tmp_path / "pve_*.nii.gz"):
        assert "read for PREDICTION" in never_written("--map", first, reference, words)
        never_written("--relabelled", second, reference, words)
        assert "read for REFERENCE" in never_written("--map", second, words, reference)


def test_a_file_is_not_overwritten_through_what_lies_inside_it(
    tmp_path: Path, reference: Path
) -> None:
    archive = tmp_path / "pred.npz"
    np.savez(archive, probs=UNSURE.transpose(3, 0, 1, 2), other=LABELS)
    never_written("--relabelled", archive, reference, f"{archive}:probs", "--ignore-geometry")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["deep/labels"] = LABELS
    store = tmp_path / "a.h5"
    never_written("--json", store, reference, f"{store}:/deep/labels", "--ignore-geometry")


def test_the_mask_is_not_overwritten(tmp_path: Path, reference: Path, prediction: Path) -> None:
    mask = save(tmp_path / "mask.nii.gz", np.ones_like(LABELS))
    said = never_written("--map", mask, reference, prediction, "--mask", mask)
    assert "read for --mask" in said


def test_an_input_under_another_name_is_not_overwritten(
    tmp_path: Path, reference: Path, prediction: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hard, soft, far = (tmp_path / name for name in ("hard.nii.gz", "soft.nii.gz", "far.nii.gz"))
    os.link(prediction, hard)
    soft.symlink_to(prediction)
    far.symlink_to(soft)
    for name in (hard, soft, far, tmp_path / "." / ".." / tmp_path.name / prediction.name):
        never_written("--relabelled", name, reference, prediction, input_=prediction)
        never_written("--map", prediction, reference, name)
    assert soft.is_symlink() and hard.samefile(prediction)
    monkeypatch.chdir(tmp_path)
    never_written("--map", Path(reference.name), reference, prediction)


def test_files_that_are_read_beside_an_input_are_not_overwritten(
    tmp_path: Path, reference: Path
) -> None:
    nibabel.save(nibabel.Nifti1Pair(SPLIT, AFFINE), tmp_path / "pair.hdr")
    header, values = tmp_path / "pair.hdr", tmp_path / "pair.img"
    never_written("--json", values, reference, header)
    never_written("--json", header, reference, values)
    probabilities = tmp_path / "case.npz"
    np.savez(probabilities, probabilities=UNSURE.transpose(3, 2, 1, 0))
    labels = save(tmp_path / "case.nii.gz", LABELS)
    never_written("--map", labels, reference, probabilities)
    image = SimpleITK.GetImageFromArray(SPLIT.transpose(2, 1, 0))
    for name, values in (("a.mhd", "a.raw"), ("b.nhdr", "b.raw.gz")):
        SimpleITK.WriteImage(image, tmp_path / name, useCompression=name == "b.nhdr")
        assert (tmp_path / values).exists()
        never_written("--json", tmp_path / values, reference, tmp_path / name)


def test_files_that_only_look_like_an_input_may_be_overwritten(
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


def test_two_outputs_are_two_files_whatever_they_are_called(
    tmp_path: Path, reference: Path, prediction: Path
) -> None:
    both = reference, prediction
    target, link = tmp_path / "target.nii", tmp_path / "link.nii"
    link.symlink_to(target)  # which is not there yet
    said = refused(*both, "--map", link, "--relabelled", target, code=2)
    assert "is also written by --map" in said
    target.write_bytes(b"old")
    said = refused(*both, "--map", link, "--relabelled", target, code=2)
    assert "is also written by --map" in said
    assert target.read_bytes() == b"old"
    astray, circle = tmp_path / "astray.nii", tmp_path / "circle.nii"
    astray.symlink_to(tmp_path / "no" / "a.nii")
    circle.symlink_to(circle)
    assert f"there is no folder {tmp_path / 'no'}" in refused(*both, "--map", astray, code=2)
    assert "leads in a circle" in refused(*both, "--map", circle, code=2)


def test_a_name_that_no_file_can_have_is_refused(
    tmp_path: Path, reference: Path, prediction: Path
) -> None:
    name = tmp_path / f"{'a' * 300}.nii"
    assert refused(reference, prediction, "--map", name) == f"error: {name}: File name too long"


def test_a_full_disk_leaves_what_was_there(
    tmp_path: Path, reference: Path, prediction: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "a.json").write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    for option, name in (("--json", "a.json"), ("--map", "a.nii.gz")):
        said = refused(reference, prediction, option, tmp_path / name)
        assert said == f"error: {tmp_path / name}: cannot be written: No space left on device"
    assert (tmp_path / "a.json").read_text() == "old"
    assert {path.name for path in tmp_path.iterdir()} == {reference.name, prediction.name, "a.json"}


def test_a_device_is_written_to_and_not_replaced(reference: Path, prediction: Path) -> None:
    assert run("compare", reference, prediction, "--json", os.devnull).code == 0
    assert not os.path.isfile(os.devnull)


# ---- what cannot be compared


def corrupt(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_files_that_are_not_what_they_should_be(tmp_path: Path, reference: Path) -> None:
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
        (corrupt(tmp_path / "text.nii.gz", b"hello, this is text"), "is a text that starts"),
        (corrupt(tmp_path / "text.txt", b"hello, this is text"), "not a segmentation file"),
        (tmp_path / "rgb.png", "RGB"),
        (save(tmp_path / "series.nii.gz", np.full((8, 2, 1, 5), 300, np.int16)), "time series"),
    ]
    for path, words in cases:
        for pair in ((reference, path), (path, reference)):
            said = refused(*pair)
            assert words in said and Path(str(path)).name in said


def test_values_that_cannot_be(tmp_path: Path, reference: Path) -> None:
    for value, words in ((np.nan, "found nan"), (-0.5, "is negative"), (3.5, "is above 1")):
        wrong = UNSURE.copy()
        wrong[3, 1, 0, 0] = value
        said = refused(reference, save(tmp_path / "wrong.nii.gz", wrong))
        assert said.startswith("error: prediction (") and "wrong.nii.gz): " in said
        assert words in said and "(3, 1, 0)" in said


def test_sizes_that_do_not_fit(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", LABELS)
    np.save(tmp_path / "b.npy", LABELS[:-1])
    assert "(8, 2, 1)" in refused(tmp_path / "a.npy", tmp_path / "b.npy")


def test_a_bug_is_told_in_one_line(reference: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("oh")

    monkeypatch.setattr(comparing, "compare_images", broken)
    assert refused(reference, reference) == "error: unexpected KeyError: 'oh'; --debug shows where"
    monkeypatch.setattr(comparing, "compare_images", lambda *_, **__: [][1])
    assert "IndexError" in refused(reference, reference)


def test_the_name_of_a_file_is_never_rewritten(tmp_path: Path, reference: Path) -> None:
    for name in ("match=False.nii.gz", 'merge="both".nii.gz', "with a mask.nii.gz"):
        assert refused(reference, tmp_path / name) == f"error: {tmp_path / name}: no such file"


# ---- progress


def test_progress_follows_the_passes() -> None:
    told: list[tuple[int, int]] = []
    token = watcher.set(lambda done, total: told.append((done, total)))
    try:
        labels = np.ones((2048, 1024), np.int64)
        probdice.compare(labels, labels)
    finally:
        watcher.reset(token)
    total = told[0][1]
    assert total > 1
    assert told[:total] == [(k, total) for k in range(1, total + 1)]


def test_no_bar_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(shown=True) as display:
        display.say("reading")
        display.start()
        display.stop()
    assert watcher.get() is None
    late = Progress()
    late.stop()
    late.start()  # after the end nothing is shown
    assert capsys.readouterr().out == ""


# ---- info


def test_info_of_a_label_map(reference: Path) -> None:
    shown = run("info", reference).out
    assert "label map, 2 labels, stored as uint8" in shown
    assert "8 × 2 × 1" in shown and "2 2 3 mm" in shown and "(RAS)" in shown
    assert re.search(r"2 +8 +0\.096 mL +50\.00 %", shown)


def test_info_of_probabilities(tmp_path: Path, unsure: Path) -> None:
    thin = save(tmp_path / "thin.nii.gz", SURE * np.float32(0.5))
    shown = run("info", thin).out
    assert "probabilities of 2 regions, stored as float32" in shown
    assert "from 0.5 to 0.5; not 1 at 100.00 % of the pixels" in shown
    assert "50.00 % of the values are 0, 0.00 % are 1" in shown
    assert "compare would refuse it: probabilities sum to 0.5" in shown and "--sums" in shown
    mended = run("info", thin, "--sums", "background").out
    assert "a region called background" in mended and "refuse" not in mended
    assert "not 1" not in run("info", unsure).out


def test_info_never_rounds_up_to_all(tmp_path: Path) -> None:
    labels = np.ones(40_000, np.uint8)
    labels[0] = 2
    np.save(tmp_path / "a.npy", labels)
    shown = run("info", tmp_path / "a.npy").out
    assert "99.99 %" in shown and "100.00" not in shown


def test_a_comparison_never_rounds_up_to_equality(tmp_path: Path) -> None:
    labels = np.repeat(np.array([1, 2], np.uint8), 20_000)
    np.save(tmp_path / "a.npy", labels)
    labels[0] = 2
    np.save(tmp_path / "b.npy", labels)
    shown = run("compare", tmp_path / "a.npy", tmp_path / "b.npy").out
    assert "score           0.9999" in shown and "1.0000" not in shown


def test_info_of_one_foreground_and_of_names(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[0.0, 25.0], [100.0, 50.5]], np.float32))
    shown = run("info", tmp_path / "a.npy").out
    assert "compare would refuse it" in shown or "whole" in shown
    Image.fromarray(np.array([[0, 255]], np.uint8)).save(tmp_path / "a.png")
    shown = run("info", tmp_path / "a.png", "--scale", 255).out
    assert "probability of one foreground" in shown
    assert "none: nothing says where the image lies" in shown
    masks = save_dicom(tmp_path / "a.dcm", "BINARY", {"left": LEFT, "top": TOP})
    assert re.search(r"2 +top", run("info", masks).out)


def test_info_refuses_like_compare(tmp_path: Path) -> None:
    done = run("info", tmp_path / "missing.nii.gz")
    assert (done.code, done.out) == (1, "")
    assert done.err == f"error: {tmp_path / 'missing.nii.gz'}: no such file\n"
    done = run("info", tmp_path / "missing.nii.gz", "--scale", 0)
    assert (done.code, done.out) == (2, "") and "scale must be a positive number" in done.said


def test_info_names_a_file_whose_values_are_damaged(tmp_path: Path) -> None:
    file = tmp_path / "a.h5"
    with h5py.File(file, "w") as store:
        values = np.random.default_rng(0).integers(0, 3, (64, 64), np.uint8)
        data = store.create_dataset("labels", data=values, chunks=(64, 64), fletcher32=True)
        place = data.id.get_chunk_info(0).byte_offset
    with file.open("rb+") as stream:  # the checksum of the values is then wrong
        stream.seek(place)
        stream.write(bytes(100))
    for path in (tmp_path, corrupt(tmp_path / "text.nii", b"hello, this is text"), file):
        done = run("info", path)
        assert (done.code, done.out) == (1, "")
        assert done.err.startswith(f"error: {path}: ") and done.err.count(str(path)) == 1


def test_a_page_has_the_suffix_of_one(tmp_path: Path, reference: Path) -> None:
    for name in ("-", tmp_path / "page.txt"):
        assert ".html" in refused(reference, reference, "--report", name, code=2)


def test_names_before_files_and_in_tables(tmp_path: Path, reference: Path) -> None:
    for k in range(2):
        save(tmp_path / f"pve_{k}.nii.gz", UNSURE[..., k])
    named = f"left={tmp_path}/pve_0.nii.gz,right={tmp_path}/pve_1.nii.gz"
    (tmp_path / "dseg.tsv").write_text("index\tname\n1\tleft\n2\tright\n9\tother\n")
    table = tmp_path / "dseg.tsv"
    result = compared(reference, named, "--reference-names", table, "--match", "labels")
    assert [group.reference for group in result.groups] == [("left",), ("right",)]
    assert [group.prediction for group in result.groups] == [("left",), ("right",)]
    shown = run("compare", reference, reference, "--names", table).out
    assert re.search(r"left +left +1\.0000", shown) and "other" not in shown
    (tmp_path / "wrong.csv").write_text("7,csf\n")
    said = refused(reference, named, "--prediction-names", tmp_path / "wrong.csv")
    assert "names none of the regions: the image has left, right" in said
    said = refused(reference, reference, "--names", tmp_path / "wrong.csv", "--json", table)
    assert "names none of the labels" in said or "also an input" in said


def test_an_input_of_names_is_not_overwritten(tmp_path: Path, reference: Path) -> None:
    (tmp_path / "names.json").write_text('{"1": "a"}')
    words = ("--names", tmp_path / "names.json", "--json", tmp_path / "names.json")
    assert "read for --names" in refused(reference, reference, *words, code=2)


def test_overlapping_masks_are_settled_by_priority(tmp_path: Path) -> None:
    kidney, tumour = (LABELS == 1).astype(np.uint8), np.zeros_like(LABELS)
    tumour[1:3] = 1
    paths = [save(tmp_path / "kidney.nii.gz", kidney), save(tmp_path / "tumour.nii.gz", tumour)]
    side = ",".join(map(str, paths))
    assert "use --priority tumour,kidney" in refused(side, side)
    shared = noted(side, side, "--sums", "background")
    assert any("4 pixels are in several masks" in note and "--priority" in note for note in shared)
    result = compared(side, side, "--priority", "tumour,kidney")
    volumes = {group.reference: group.reference_volume for group in result.groups}
    assert volumes == {("background",): 8, ("kidney",): 4, ("tumour",): 4}
    words = ("--priority", "reference:tumour", "--sums", "prediction:background")
    mixed = compared(side, side, *words)
    assert mixed.matched_score < 1 and len(mixed.notes) >= 2
    assert "names cyst, but the regions are kidney, tumour" in refused(
        side, side, "--priority", "cyst"
    )


def test_volumes_are_in_millilitres_too(reference: Path, prediction: Path) -> None:
    shown = run("compare", reference, prediction).out
    assert re.search(
        r"Jaccard +similarity +ref\. mL +pred\. mL +ref\. pixels +pred\. pixels", shown
    )
    assert re.search(r"1 +7 +0\.6667 +0\.5000 +0\.7500 +0\.096 +0\.048 +8 +4\n", shown)
    assert "0.096 mL" in run("info", reference).out


def test_info_lists_what_a_container_holds(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("a.npz", labels_a=LABELS, soft=SURE.astype(np.float16), x=np.array(["a"]))
    with h5py.File("a.h5", "w") as store:
        store["one/labels"], store["two"] = LABELS, np.zeros((2, 3, 4, 5), np.float32)
    scipy.io.savemat("a.mat", {"people": np.array([LABELS, LABELS[:2]], object)})
    shown = run("info", "a.npz").out
    assert re.search(r":labels_a +8 × 2 × 1 +uint8 +a label map", shown)
    assert re.search(r":soft .* float16 +labels if all are whole, else .* 8 regions", shown)
    assert re.search(r":x +1 +<U1 +no numbers", shown)
    shown = run("info", "a.h5").out
    assert re.search(r":/one/labels +8 × 2 × 1 +uint8 +a label map", shown)
    assert re.search(r":/two +2 × 3 × 4 × 5 +float32 +probabilities of 2 regions", shown)
    shown = run("info", "a.mat").out
    assert re.search(r":people/1 +2 × 2 × 1 +uint8 +a label map", shown)
    assert run("info", "a.h5:/one/labels").code == 0
    done = run("info", "a.h5:/three")
    assert (done.code, done.out) == (1, "") and "has no data set" in done.err


def test_info_of_overlapping_segments_says_what_compare_would(tmp_path: Path) -> None:
    file = save_dicom(tmp_path / "a.dcm", "BINARY", {"left": LEFT, "both": LEFT | TOP})
    shown = run("info", file).out
    assert re.search(r"left +■ #E69F00 +12\.0", shown)
    assert "compare would refuse it" in shown and "--priority left,both" in shown
    settled = run("info", file, "--priority", "left").out
    assert re.search(r"1 +left +■ #E69F00", settled) and re.search(r"2 +both", settled)


def test_info_of_bytes_and_of_names(tmp_path: Path, reference: Path) -> None:
    values = np.clip(np.round(255 / (1 + np.exp(-np.linspace(-8, 8, 60_000)))), 0, 255)
    np.save(tmp_path / "bytes.npy", values.astype(np.uint8))
    assert (
        "looks like probabilities stored as bytes; --scale 255"
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


# -- the field's other numbers ---------------------------------------------------------------------


def test_indices_are_shown_on_request(tmp_path: Path) -> None:
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


def test_indices_of_probabilities_say_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "p.npy"
    np.save(path, np.array([[[0.9, 0.2]], [[0.1, 0.8]]]))
    shown = run("compare", path, path, "--indices").out
    assert "kappa" in shown and "adjusted rand" not in shown
    assert "note: indices that count pixels or pairs of pixels" in shown


def test_components_are_regions_of_their_own(tmp_path: Path) -> None:
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
    assert "prediction: components are those of a label map" in done.said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--components"], "--components: needs --background"),
        (["--background", "0"], "--background: is for --indices and --components"),
    ],
)
def test_a_background_is_said_where_it_is_needed(
    tmp_path: Path, words: Sequence[str], message: str
) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.array([[0, 1]]))
    done = run("compare", path, path, *words)
    assert done.code == 2
    assert message in done.said


def test_the_memory_for_a_file_can_be_limited(reference: Path, prediction: Path) -> None:
    assert "pass --max-bytes " in refused(reference, prediction, "--max-bytes", 20)
    assert "pass --max-bytes " in run("info", reference, "--max-bytes", 20).said
    assert run("compare", reference, prediction, "--max-bytes", 10**6).code == 0
