"""`probdice consensus` and `probdice agree`."""

import json
import re

import nibabel
import numpy as np
import pytest
from test_cli_compare import run

import probdice

RATERS = {
    "anna": np.array([[1, 1, 2], [1, 2, 2]], np.uint8),
    "ben": np.array([[7, 7, 7], [7, 9, 9]], np.uint8),
    "eva": np.array([[5, 5, 4], [5, 4, 4]], np.uint8),
}


@pytest.fixture
def files(tmp_path):
    for name, labels in RATERS.items():
        np.save(tmp_path / f"{name}.npy", labels)
    return [tmp_path / f"{name}.npy" for name in RATERS]


def test_consensus_writes_probabilities_and_entropy(files, tmp_path):
    out, bits = tmp_path / "out.nii.gz", tmp_path / "bits.npy"
    done = run("consensus", *files, "-o", out, "--entropy", bits)
    assert done.code == 0, done.err
    assert "3 raters (mean): 2 common regions over 6 pixels" in done.out
    assert f"wrote {out}: consensus" in done.out.replace("\n", " ")
    consensus = probdice.consensus(RATERS)
    stored = probdice.read(out).probabilities()
    assert np.allclose(np.squeeze(stored), consensus.segmentation.probabilities())
    assert np.allclose(np.load(bits), consensus.entropy())


def test_consensus_checks_the_format_of_the_entropy_first(tmp_path):
    files = [tmp_path / f"{name}.nii.gz" for name in RATERS]
    geometry = probdice.Geometry((6,), [[2, 0], [0, 1]])
    for file, labels in zip(files, RATERS.values(), strict=True):
        probdice.write(file, np.ravel(labels), geometry)
    out, bits = tmp_path / "out.nii.gz", tmp_path / "bits.npy"
    done = run("consensus", *files, "-o", out, "--entropy", bits)
    assert done.code == 1
    assert "bits.npy: NPY stores only an array, so the geometry would be lost" in done.message
    assert not out.exists() and not bits.exists()


def test_consensus_prints_the_json_of_the_library(files):
    done = run("consensus", *files, "--method", "staple", "--json", "-")
    assert json.loads(done.out) == json.loads(probdice.consensus(RATERS, method="staple").to_json())


def test_agree_prints_the_matrix_and_each_rater_vs_the_others(files):
    done = run("agree", *files)
    agreement = probdice.agreement(RATERS)
    numbers = agreement.mean_adjusted_score, agreement.mean_explained, agreement.mean_score
    adjusted, explained, score = (f"{number:.4f}" for number in numbers)
    dice = f"{sum(region.mean_dice for region in agreement.regions) / 2:.4f}"
    first = f"mean of all pairs: Dice {dice}, adjusted score {adjusted}, explained {explained}, "
    assert f"{first}score {score}" in " ".join(done.out.split())
    assert f"{agreement.score[0, 1]:.4f}" in done.out
    ben = agreement.others[1]
    numbers = [f"{value:.4f}" for value in (ben.score, ben.adjusted_score, ben.explained)]
    assert ["ben", *numbers] in [line.split() for line in done.out.splitlines()]


def test_agree_prints_the_foreground_dice_and_a_note_on_a_missing_background(tmp_path):
    raters = {"anna": [0, 17, 17, 53], "ben": [0, 0, 17, 53]}
    files = [tmp_path / f"{name}.npy" for name in raters]
    for file, labels in zip(files, raters.values(), strict=True):
        np.save(file, np.array(labels, np.uint8))
    done = run("agree", *files, "--match", "labels", "--background", "0")
    # Dice: 2/3 for label 17, 1 for label 53.
    assert "foreground: Dice 0.8333" in done.out
    assert "note" not in done.out
    missing = run("agree", *files, "--match", "labels", "--background", "9")
    assert "--background 9: no rater has this background" in " ".join(missing.out.split())
    notes = probdice.consensus(raters, match="labels", background=9).notes
    assert [note.kind for note in notes] == ["background"]


@pytest.mark.parametrize("command", ["consensus", "agree"])
def test_both_commands_print_the_worst_20_regions_or_all_regions(tmp_path, command):
    anna = np.repeat(np.arange(24), 30)
    ben = anna.copy()
    for label in range(24):
        ben[30 * label : 30 * label + 23 - label] = 24  # only ben has this region
    files = [tmp_path / "anna.npy", tmp_path / "ben.npy"]
    for file, labels in zip(files, (anna, ben), strict=True):
        np.save(file, labels.astype(np.uint8))

    def labels_in(text):
        return re.findall(r"^(\d+) +\d\.\d{4} +\d\.\d{4} ", text, re.MULTILINE)

    done = run(command, *files, "--match", "labels")
    assert labels_in(done.out) == [str(k) for k in range(20)]
    assert "… 5 more regions; --all prints all regions" in done.out
    done = run(command, *files, "--match", "labels", "--all")
    assert labels_in(done.out) == [str(k) for k in range(25)]
    assert "more regions" not in done.out


def test_agree_prints_json_or_only_the_score(files):
    agreement = probdice.agreement(RATERS)
    assert json.loads(run("agree", *files, "--json", "-").out) == json.loads(agreement.to_json())
    assert run("agree", *files, "--quiet").out == f"{agreement.mean_score:.4f}\n"


@pytest.mark.parametrize("command", ["consensus", "agree"])
def test_both_commands_write_the_report(files, tmp_path, command):
    page = tmp_path / "page.html"
    assert run(command, *files, "--report", page).code == 0
    assert "Only one rater" in page.read_text()


def test_agree_has_options_for_matching_and_similarity(files):
    done = run("agree", *files[:2], "--match", "labels")
    assert (
        done.code == 1
        and "no label in common" in done.message
        and "--match overlap" in done.message
    )
    done = run("agree", *files, "--similarity", "aitchison", "--floor", "0.01", "--json", "-")
    expected = probdice.agreement(RATERS, similarity=probdice.Aitchison(floor=0.01))
    assert json.loads(done.out)["score"] == expected.score.tolist()


def test_raters_with_equal_file_names_are_named_by_the_ends_of_their_paths(tmp_path):
    paths = []
    for name, labels in RATERS.items():
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "case.npy", labels)
        paths.append(tmp_path / name / "case.npy")
    names = [f"{name}/case.npy" for name in RATERS]
    assert json.loads(run("agree", *paths, "--json", "-").out)["raters"] == names


def test_invalid_files_are_rejected(files, tmp_path):
    assert "expected two or more files" in run("agree", files[0]).message
    assert "a file occurs twice" in run("agree", files[0], files[0]).message
    done = run("consensus", *files, "-o", files[1])
    assert done.code == 2 and "is also an input file (FILES" in done.message
    np.save(tmp_path / "small.npy", np.zeros((2, 2), np.uint8))
    done = run("consensus", files[0], tmp_path / "small.npy")
    assert done.code == 1 and "anna (reference) and small (prediction)" in done.message


@pytest.mark.parametrize("command", ["consensus", "agree"])
def test_geometry_tolerance_allows_slightly_different_grids(tmp_path, command):
    paths = []
    for k, labels in enumerate(RATERS.values()):
        affine = np.eye(4)
        affine[0, 3] = 0.3 * (k == 1)  # pixels
        paths.append(tmp_path / f"{k}.nii")
        nibabel.Nifti1Image(labels[..., None], affine).to_filename(paths[-1])
    done = run(command, *paths, "--quiet")
    assert done.code == 1 and "or raise the tolerance with --geometry-tolerance T" in done.message
    done = run(command, *paths, "--quiet", "--geometry-tolerance", "0.4")
    assert done.out == "0.8889\n"
    done = run(command, *paths, "--ignore-geometry", "--geometry-tolerance", "0.4")
    assert done.code == 2 and "geometry is not compared in this case" in done.message


@pytest.mark.parametrize("command", ["consensus", "agree"])
def test_max_bytes_limits_decompressed_files(tmp_path, command):
    paths = [tmp_path / f"{name}.npz" for name in RATERS]
    for path, labels in zip(paths, RATERS.values(), strict=True):
        np.savez_compressed(path, labels)
    mask = tmp_path / "mask.npz"
    np.savez_compressed(mask, np.ones((2, 3), np.uint16))
    assert run(command, *paths, "--quiet", "--max-bytes", "6").code == 0
    done = run(command, *paths, "--max-bytes", "5")
    assert done.code == 1 and "anna.npz: contains an array" in done.message
    assert "--max-bytes 6" in done.message
    done = run(command, *paths, "--mask", mask, "--max-bytes", "6")
    assert done.code == 1 and "mask.npz: contains an array" in done.message


def test_an_empty_mask_is_named(files, tmp_path):
    np.save(tmp_path / "nothing.npy", np.zeros((2, 3), np.uint8))
    done = run("agree", *files, "--mask", tmp_path / "nothing.npy")
    assert done.code == 1 and "every pixel is outside the mask (nothing.npy)" in done.message
    done = run("compare", *files[:2], "--mask", tmp_path / "nothing.npy")
    assert done.code == 1 and "mask (nothing.npy) is empty" in done.message
