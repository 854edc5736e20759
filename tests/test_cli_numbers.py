"""Foreground numbers, derived regions and tables through files and the command."""

import csv
import json
from pathlib import Path

import nibabel
import numpy as np
import pytest
from numpy.typing import NDArray
from pytest import approx
from typer.testing import CliRunner

from probdice.cli.app import app

EXACT = {"rel": 1e-9, "abs": 1e-12}
RUNNER = CliRunner()


def tumour(shift: float) -> NDArray[np.uint8]:
    """A BraTS-like label map: oedema 2 around a core of 1 and enhancing tumour 3."""
    rows, columns, _ = np.indices((12, 14, 3))
    distance = np.hypot(rows - 6 - shift, columns - 7 + shift / 2)
    labels = np.zeros((12, 14, 3), np.uint8)
    for radius, label in ((5.2, 2), (3.4, 1), (1.8, 3)):
        labels[distance < radius] = label
    return labels


def softmax(labels: NDArray[np.uint8]) -> NDArray[np.float32]:
    rng = np.random.default_rng(5)
    values = (labels[..., None] == np.arange(4)) + 0.4 * rng.random((*labels.shape, 4))
    return (values / values.sum(axis=-1, keepdims=True)).astype(np.float32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    affine = np.diag([2.0, 2.0, 2.5, 1.0])  # 10 mm³
    images = {"reference": tumour(0), "labels": tumour(1), "soft": softmax(tumour(1))}
    for name, values in images.items():
        nibabel.save(nibabel.Nifti1Image(values, affine), tmp_path / f"{name}.nii.gz")
    content = {"labels": {"background": 0, "WT": [1, 2, 3], "TC": [1, 3], "ET": 3}}
    (tmp_path / "dataset.json").write_text(json.dumps(content))
    return tmp_path


def compared(folder: Path, prediction: str, *words: str) -> dict:
    done = RUNNER.invoke(
        app,
        [
            "compare",
            str(folder / "reference.nii.gz"),
            str(folder / f"{prediction}.nii.gz"),
            *("--match", "labels", "--background", "0"),
            *words,
            *("--json", "-"),
        ],
    )
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def dice(p: NDArray, q: NDArray) -> float:
    p, q = p.astype(np.float64), q.astype(np.float64)
    return float(2 * np.minimum(p, q).sum() / (p.sum() + q.sum()))


@pytest.mark.parametrize("prediction", ["labels", "soft"])
def test_foreground_numbers_of_files(folder: Path, prediction: str) -> None:
    content = compared(folder, prediction)
    reference = (tumour(0)[..., None] == np.arange(4)).astype(float)
    predicted = (tumour(1)[..., None] == np.arange(4)).astype(float)
    if prediction == "soft":
        predicted = softmax(tumour(1)).astype(np.float64)
    shared = np.minimum(reference, predicted).reshape(-1, 4).sum(axis=0)
    volumes = (reference + predicted).reshape(-1, 4).sum(axis=0)
    pixels = tumour(0).size
    assert content["foreground_dice"] == approx((2 * shared / volumes)[1:].mean(), rel=1e-6)
    assert content["pooled_dice"] == approx(2 * shared[1:].sum() / volumes[1:].sum(), rel=1e-6)
    score = shared[1:].sum() / (pixels - shared[0])
    assert content["foreground_score"] == approx(score, rel=1e-6)
    shares = reference.reshape(-1, 4).mean(axis=0) * predicted.reshape(-1, 4).mean(axis=0)
    chance = shares[1:].sum() / (1 - shares[0])
    assert content["foreground_chance"] == approx(chance, rel=1e-5)
    assert content["adjusted_foreground_score"] == approx((score - chance) / (1 - chance), rel=1e-4)


@pytest.mark.parametrize("prediction", ["labels", "soft"])
def test_derived_regions_of_files(folder: Path, prediction: str) -> None:
    words = ("--derived", str(folder / "dataset.json"), "--derived", "oedema and core = 1, 2")
    derived = compared(folder, prediction, *words)["derived"]
    unions = {"WT": (1, 2, 3), "TC": (1, 3), "ET": (3,), "oedema and core": (1, 2)}
    assert list(derived) == list(unions)
    for name, members in unions.items():
        p = np.isin(tumour(0), members)
        q = np.isin(tumour(1), members)
        if prediction == "soft":
            q = softmax(tumour(1))[..., list(members)].sum(axis=-1)
        assert derived[name]["dice"] == approx(dice(p, q), rel=1e-6), name
        assert derived[name]["reference_ml"] == approx(p.sum() / 100, **EXACT)


def test_the_table_of_groups_is_written(folder: Path) -> None:
    path = folder / "groups.csv"
    compared(folder, "labels", "--csv", str(path))
    with path.open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["reference"] for row in rows] == ["0", "1", "2", "3"]
    for label, row in enumerate(rows):
        p, q = tumour(0) == label, tumour(1) == label
        assert float(row["dice"]) == approx(dice(p, q), **EXACT)
        assert float(row["difference_ml"]) == approx((q.sum() - p.sum()) / 100, **EXACT)
        relative = (q.sum() - p.sum()) / p.sum()
        assert float(row["relative_volume_difference"]) == approx(relative, **EXACT)


def test_the_screen_shows_the_foreground_and_derived_regions(folder: Path) -> None:
    files = [str(folder / name) for name in ("reference.nii.gz", "labels.nii.gz")]
    words = ["--match", "labels", "--background", "0", "--derived", "core=1,3"]
    done = RUNNER.invoke(app, ["compare", *files, *words])
    assert done.exit_code == 0, done.output
    value = dice(np.isin(tumour(0), (1, 3)), np.isin(tumour(1), (1, 3)))
    assert "foreground Dice" in done.stdout and "foreground score" in done.stdout
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("core"))
    assert f"{value:.4f}" in line


@pytest.mark.parametrize(
    ("word", "message"),
    [("core=", "expected NAME=LABEL"), ("core", "expected NAME=LABEL"), ("x=9", "neither side")],
)
def test_invalid_derived_regions_are_rejected(folder: Path, word: str, message: str) -> None:
    files = [str(folder / name) for name in ("reference.nii.gz", "labels.nii.gz")]
    done = RUNNER.invoke(app, ["compare", *files, "--match", "labels", "--derived", word])
    assert done.exit_code in (1, 2)
    assert message in done.output


def test_a_file_without_unions_is_rejected(folder: Path) -> None:
    (folder / "flat.json").write_text(json.dumps({"labels": {"background": 0, "a": 1}}))
    files = [str(folder / name) for name in ("reference.nii.gz", "labels.nii.gz")]
    done = RUNNER.invoke(app, ["compare", *files, "--derived", str(folder / "flat.json")])
    assert done.exit_code == 1
    assert "has no derived regions" in done.output


def test_a_softmax_that_is_right_without_foreground_is_undefined(folder: Path) -> None:
    affine = np.diag([2.0, 2.0, 2.5, 1.0])
    empty = np.zeros((12, 14, 3), np.uint8)
    nibabel.save(nibabel.Nifti1Image(empty, affine), folder / "reference.nii.gz")
    right = np.zeros((12, 14, 3, 4), np.float32) + np.float32(0.01)
    right[..., 0] = 0.97
    nibabel.save(nibabel.Nifti1Image(right, affine), folder / "soft.nii.gz")
    content = compared(folder, "soft")
    for name in ("foreground_dice", "pooled_dice", "foreground_score", "adjusted_foreground_score"):
        assert content[name] is None, name
