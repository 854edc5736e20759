"""`probdice consensus` and `probdice agree`."""

import json

import nibabel
import numpy as np
import pytest
from test_cli_compare import run

import probdice

PEOPLE = {
    "anna": np.array([[1, 1, 2], [1, 2, 2]], np.uint8),
    "ben": np.array([[7, 7, 7], [7, 9, 9]], np.uint8),
    "eva": np.array([[5, 5, 4], [5, 4, 4]], np.uint8),
}


@pytest.fixture
def files(tmp_path):
    for name, labels in PEOPLE.items():
        np.save(tmp_path / f"{name}.npy", labels)
    return [tmp_path / f"{name}.npy" for name in PEOPLE]


def test_consensus_writes_the_probabilities_and_where_raters_disagree(files, tmp_path):
    out, bits = tmp_path / "out.nii.gz", tmp_path / "bits.npy"
    done = run("consensus", *files, "-o", out, "--entropy", bits)
    assert done.code == 0, done.err
    assert "3 raters (mean): 2 common regions over 6 pixels" in done.out
    assert f"wrote the consensus to {out}" in done.out.replace("\n", " ")
    consensus = probdice.consensus(PEOPLE)
    stored = probdice.read(out).probabilities()
    assert np.allclose(np.squeeze(stored), consensus.segmentation.probabilities())
    assert np.allclose(np.load(bits), consensus.entropy())


def test_consensus_as_json_is_that_of_the_library(files):
    done = run("consensus", *files, "--method", "staple", "--json", "-")
    assert json.loads(done.out) == json.loads(probdice.consensus(PEOPLE, method="staple").to_json())


def test_agree_shows_the_matrix_and_each_against_the_others(files):
    done = run("agree", *files)
    agreement = probdice.agreement(PEOPLE)
    assert f"mean of all pairs: score {agreement.mean_score:.4f}" in done.out
    assert f"{agreement.score[0, 1]:.4f}" in done.out
    one = agreement.others[1]
    numbers = [f"{value:.4f}" for value in (one.score, one.adjusted_score, one.explained)]
    assert ["ben", *numbers] in [line.split() for line in done.out.splitlines()]


def test_agree_as_json_and_in_brief(files):
    agreement = probdice.agreement(PEOPLE)
    assert json.loads(run("agree", *files, "--json", "-").out) == json.loads(agreement.to_json())
    assert float(run("agree", *files, "--quiet").out) == agreement.mean_score


@pytest.mark.parametrize("command", ["consensus", "agree"])
def test_both_write_the_page(files, tmp_path, command):
    page = tmp_path / "page.html"
    assert run(command, *files, "--report", page).code == 0
    assert "Rater vs other raters" in page.read_text()


def test_equal_labels_and_other_similarities_can_be_asked_for(files):
    done = run("agree", *files[:2], "--match", "labels")
    assert done.code == 1 and "no label in common" in done.said and "--match overlap" in done.said
    done = run("agree", *files, "--similarity", "aitchison", "--floor", "0.01", "--json", "-")
    expected = probdice.agreement(PEOPLE, similarity=probdice.Aitchison(floor=0.01))
    assert json.loads(done.out)["score"] == expected.score.tolist()


def test_files_of_one_name_are_told_apart(tmp_path):
    paths = []
    for name, labels in PEOPLE.items():
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "case.npy", labels)
        paths.append(tmp_path / name / "case.npy")
    assert json.loads(run("agree", *paths, "--json", "-").out)["raters"] == [str(p) for p in paths]


def test_what_cannot_be_done_is_wrong_usage_or_refused(files, tmp_path):
    assert "two or more are needed" in run("agree", files[0]).said
    assert "a file was named twice" in run("agree", files[0], files[0]).said
    done = run("consensus", *files, "-o", files[1])
    assert done.code == 2 and "is also an input" in done.said
    np.save(tmp_path / "small.npy", np.zeros((2, 2), np.uint8))
    done = run("consensus", files[0], tmp_path / "small.npy")
    assert done.code == 1 and "anna and small" in done.said


@pytest.mark.parametrize("command", ["consensus", "agree"])
def test_grids_that_lie_a_little_apart_are_allowed_on_request(tmp_path, command):
    paths = []
    for k, labels in enumerate(PEOPLE.values()):
        place = np.eye(4)
        place[0, 3] = 0.3 * (k == 1)  # pixels
        paths.append(tmp_path / f"{k}.nii")
        nibabel.Nifti1Image(labels[..., None], place).to_filename(paths[-1])
    done = run(command, *paths, "--quiet")
    assert done.code == 1 and "or allow more with --geometry-tolerance T" in done.said
    done = run(command, *paths, "--quiet", "--geometry-tolerance", "0.4")
    assert float(done.out) == probdice.agreement(PEOPLE).mean_score
    done = run(command, *paths, "--ignore-geometry", "--geometry-tolerance", "0.4")
    assert done.code == 2 and "there is nothing to tolerate" in done.said


@pytest.mark.parametrize("command", ["consensus", "agree"])
def test_files_that_unpack_to_more_than_allowed_are_refused(tmp_path, command):
    paths = [tmp_path / f"{name}.npz" for name in PEOPLE]
    for path, labels in zip(paths, PEOPLE.values(), strict=True):
        np.savez_compressed(path, labels)
    mask = tmp_path / "mask.npz"
    np.savez_compressed(mask, np.ones((2, 3), np.uint16))
    assert run(command, *paths, "--quiet", "--max-bytes", "6").code == 0
    done = run(command, *paths, "--max-bytes", "5")
    assert done.code == 1 and "anna.npz: holds an image" in done.said
    assert "--max-bytes 6" in done.said
    done = run(command, *paths, "--mask", mask, "--max-bytes", "6")
    assert done.code == 1 and "mask.npz: holds an image" in done.said


def test_a_mask_that_leaves_nothing_is_named(files, tmp_path):
    np.save(tmp_path / "nothing.npy", np.zeros((2, 3), np.uint8))
    done = run("agree", *files, "--mask", tmp_path / "nothing.npy")
    assert done.code == 1 and "the mask (nothing.npy) is empty" in done.said
    done = run("compare", *files[:2], "--mask", tmp_path / "nothing.npy")
    assert done.code == 1 and "mask (nothing.npy) is empty" in done.said
