"""`probdice consensus` and `probdice agree`."""

import json

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
    assert "A rater against the others" in page.read_text()


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
