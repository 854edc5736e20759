"""Messages shorten file names to their differing parts, and state a fix."""

import re
from pathlib import Path

import nibabel
import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from probdice import GeometryError, InputError, compare, evaluate, read
from probdice.cli.app import app
from probdice.text.formatting import short_paths

LABELS = np.repeat(np.array([1, 1, 2, 3], np.uint8)[:, None, None], 2, axis=1)


def save(path: Path, array: NDArray[np.generic], affine: NDArray[np.float64] | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(array, np.eye(4) if affine is None else affine), path)
    return path


def said(*words: object) -> str:
    """Run a command that must fail, and return its error message on one line."""
    done = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "300"})
    assert done.exit_code == 1, done.output
    return " ".join(done.stderr.split())


def test_short_paths_keep_the_parts_that_differ() -> None:
    assert short_paths("/a/b/c.nii.gz") == ("c.nii.gz",)
    assert short_paths("/a/x/c.nii", "/b/x/c.nii") == ("a/x/c.nii", "b/x/c.nii")
    assert short_paths("c.nii", "/b/c.nii") == ("c.nii", "b/c.nii")
    assert short_paths("c.nii", "c.nii") == ("c.nii", "c.nii")
    assert short_paths("/a/v.zarr/labels/0", "C:\\d\\e.npz:key") == ("v.zarr/labels/0", "e.npz:key")
    assert short_paths("/a,b/c.nii") == ("c.nii",)
    assert short_paths("/a/p0.nii,/a/p1.nii,/a/p2.nii") == ("p0.nii and 2 more",)


def test_a_side_of_several_files_is_named_on_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "a folder with a name that is as long as those on clusters are"
    for k in range(3):
        save(folder / f"pve_{k}.nii.gz", np.full((4, 2, 1), 0.2, np.float32))
    save(folder / "labels.nii.gz", LABELS)
    message = said("compare", folder / "labels.nii.gz", folder / "pve_*.nii.gz")
    assert "prediction (pve_0.nii.gz and 2 more): probabilities sum to 0.6" in message
    assert len(message) < 300


def test_equal_file_names_are_distinguished_by_their_folders(tmp_path: Path) -> None:
    reference = save(tmp_path / "truth" / "a.nii.gz", LABELS)
    prediction = save(tmp_path / "net" / "a.nii.gz", LABELS, np.diag([2.0, 1, 1, 1]))
    message = said("compare", reference, prediction)
    assert "reference (truth/a.nii.gz) and prediction (net/a.nii.gz) do not lie on" in message


def test_a_mask_on_another_grid_is_rejected_side_by_side(tmp_path: Path) -> None:
    reference = save(tmp_path / "a.nii.gz", LABELS)
    mask = save(tmp_path / "mask.nii.gz", LABELS, np.diag([1.0, 1, 1.5, 1]) + np.eye(4, k=3) * 2)
    message = said("compare", reference, reference, "--mask", mask)
    assert (
        "mask (mask.nii.gz) and reference (a.nii.gz) do not lie on the same grid: corners are up "
        "to 2 voxels apart mask reference size 4 × 2 × 1 4 × 2 × 1 spacing 1 1 1.5 1 1 1 origin "
        "2 0 0 0 0 0 direction"
    ) in message
    assert "Resample the mask onto the reference first" in message
    with pytest.raises(GeometryError, match=r"\n +size +4 × 2 × 1 +4 × 2 × 1\n"):
        compare(read(reference), read(reference), mask=read(mask))


def test_a_mask_that_ignored_labels_empty_is_not_called_empty(tmp_path: Path) -> None:
    reference = save(tmp_path / "a.nii.gz", LABELS)
    mask = save(tmp_path / "mask.nii.gz", (LABELS == 2).astype(np.uint8))
    message = said("compare", reference, reference, "--mask", mask, "--ignore", 2)
    assert "all 2 voxels inside the mask (mask.nii.gz) have ignored labels (2,)" in message
    nothing = save(tmp_path / "nothing.nii.gz", np.zeros((4, 2, 1), np.uint8))
    message = said("compare", reference, reference, "--mask", nothing, "--ignore", 2)
    assert "mask (nothing.nii.gz) is empty" in message


def test_a_folder_of_bids_data_sets_gets_a_pattern_that_works(tmp_path: Path) -> None:
    for subject in ("01", "02"):
        stem = f"site/sub-{subject}/anat/sub-{subject}"
        save(tmp_path / f"truth/{stem}_T1w.nii.gz", LABELS)
        save(tmp_path / f"truth/{stem}_dseg.nii.gz", LABELS)
        save(tmp_path / f"net/{stem}_desc-net_dseg.nii.gz", LABELS)
    message = said("evaluate", tmp_path / "truth", tmp_path / "net", "--output", tmp_path / "o")
    assert "no supported file" not in message
    assert "4 files in subfolders, such as site/sub-01/anat/sub-01_dseg.nii.gz" in message
    patterns = (
        "--pattern 'reference:**/{case}_dseg.nii.gz' --pattern 'net:**/{case}_desc-net_dseg.nii.gz'"
    )
    assert patterns in message
    options = re.findall("--pattern '([^']+)'", message)
    words = ["evaluate", tmp_path / "truth", tmp_path / "net", "--output", tmp_path / "o"]
    for option in options:
        words += ["--pattern", option]
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    with pytest.raises(InputError, match=re.escape("pattern='**/{case}_dseg.nii.gz'")):
        evaluate(tmp_path / "truth", tmp_path / "truth")
    (tmp_path / "nothing").mkdir()
    with pytest.raises(InputError, match="nothing: no supported file"):
        evaluate(tmp_path / "nothing", tmp_path / "truth")
