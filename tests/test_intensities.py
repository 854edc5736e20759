"""A scan or a photograph that is passed as a label map."""

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from probdice import Segmentation, compare, write
from probdice.cli.app import app

GRID = np.stack(np.meshgrid(*[np.arange(48)] * 3, indexing="ij"))


def scan(levels: int, noise: float) -> NDArray[np.int64]:
    """A bright ball on an empty background: a smooth shading with noise, as of a scanner."""
    distance = np.sqrt(((GRID - 23.5) ** 2).sum(axis=0))
    shading = 0.6 + 0.3 * np.sin(GRID[0] / 9) * np.cos(GRID[1] / 7)
    values = shading + np.random.default_rng(0).normal(0, noise, shading.shape)
    return np.where(distance < 22, (levels * values).astype(np.int64), 0)


def cubes(edge: int) -> NDArray[np.int64]:
    """Cubic cells of one edge, numbered in a random order from 1."""
    x, y, z = GRID // edge
    count = -(-48 // edge)
    numbers = np.random.default_rng(1).permutation(count**3) + 1
    return numbers[(x * count + y) * count + z]


@pytest.mark.parametrize(
    ("levels", "noise"), [(4000, 0.05), (1000, 0.02), (255, 0.05), (60000, 0.01)]
)
def test_a_scan_gets_a_note_with_its_file_and_number_of_labels(levels, noise, tmp_path):
    values = scan(levels, noise)
    write(tmp_path / "t1.nii.gz", values)
    write(tmp_path / "labels.nii.gz", cubes(16))
    files = [str(tmp_path / "labels.nii.gz"), str(tmp_path / "t1.nii.gz")]
    count = np.unique(values).size
    message = f"the image has {count} labels, and"
    result = CliRunner().invoke(app, ["compare", *files], env={"COLUMNS": "400"})
    assert result.exit_code == 0
    text = " ".join(result.output.split())
    assert f"prediction (t1.nii.gz): {message}" in text
    assert "It looks like a scan or a photograph, not a label map" in text
    result = CliRunner().invoke(app, ["info", files[1]], env={"COLUMNS": "400"})
    assert message in " ".join(result.output.split())
    assert message not in " ".join(CliRunner().invoke(app, ["info", files[0]]).output.split())


@pytest.mark.parametrize("edge", [2, 3, 4, 8])
def test_small_cells_are_label_maps(edge):
    cells = cubes(edge)
    result = compare(cells, cells)
    assert "intensities" not in [note.kind for note in result.notes]


def test_a_photograph_gets_a_note_and_its_superpixels_none():
    x, y = np.meshgrid(np.arange(300), np.arange(200), indexing="ij")
    photograph = (128 + 60 * np.sin(x / 31) * np.cos(y / 17)).astype(np.int64)
    photograph += np.random.default_rng(2).integers(-3, 4, photograph.shape)
    superpixels = (x // 10) * 20 + y // 10
    result = compare(Segmentation.from_labels(superpixels), photograph)
    (note,) = [note for note in result.notes if note.kind == "intensities"]
    assert str(note).startswith(
        f"prediction: the image has {np.unique(photograph).size} labels, and 8"
    )


def test_regions_away_from_the_middle_are_not_judged():
    labels = np.zeros((200, 200, 200), np.int16)
    labels[:10, :10, :10] = np.random.default_rng(3).integers(1, 300, (10, 10, 10))
    assert "intensities" not in [note.kind for note in compare(labels, labels).notes]


def test_a_photograph_that_looks_like_8_bit_probabilities_gets_both_fixes(tmp_path):
    x, y = np.meshgrid(np.arange(300), np.arange(200), indexing="ij")
    photograph = np.clip(127.5 * (1 + np.sin(x / 31) * np.cos(y / 17)), 0, 255)
    photograph += np.random.default_rng(2).normal(0, 8, photograph.shape)
    file = tmp_path / "photograph.png"
    write(file, np.clip(photograph, 0, 255).astype(np.int64))
    text = CliRunner().invoke(app, ["info", str(file)], env={"COLUMNS": "400"}).output
    assert "looks like a scan or a photograph" in " ".join(text.split())
    assert "If it contains 8-bit probabilities, use --scale 255" in " ".join(text.split())
