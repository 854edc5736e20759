"""Paths that `read` accepts, and several files as regions of one segmentation."""

import os
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
from numpy.typing import NDArray

from probdice import compare
from probdice.data.segmentation import Segmentation
from probdice.errors import FormatError, GeometryError, InputError
from probdice.files import read
from probdice.files.sources import region_names

LABELS = np.array([[[0, 0], [0, 1], [2, 2]]] * 3 + [[[7, 1], [1, 0], [7, 2]]], dtype=np.uint8)
FIRST = np.linspace(0.1, 0.5, 24, dtype=np.float32).reshape(4, 3, 2)
PROBABILITIES = np.stack([FIRST, FIRST / 2, 1 - FIRST - FIRST / 2])
AFFINE = np.array([[-2.0, 0, 0, 10], [0, -3, 0, 20], [0, 0, 5, -30], [0, 0, 0, 1]])


def whole(segmentation: Segmentation) -> NDArray[Any]:
    return np.asarray(segmentation.array[(slice(None),) * len(segmentation.array.shape)])


def test_missing_files_folders_and_empty_files(tmp_path: Path) -> None:
    (tmp_path / "empty.nii.gz").touch()
    with pytest.raises(FormatError, match=r"none\.nii\.gz: no such file"):
        read(tmp_path / "none.nii.gz")
    with pytest.raises(FormatError, match="is a folder, expected a file"):
        read(tmp_path)
    with pytest.raises(FormatError, match=r"empty\.nii\.gz: is empty \(0 bytes\)"):
        read(tmp_path / "empty.nii.gz")
    with pytest.raises(FormatError, match=r"\*\.nii\.gz: no file matches this pattern"):
        read(tmp_path / "x" / "*.nii.gz")
    with pytest.raises(InputError, match=r"path must be the path of .* found nothing"):
        read([])


def test_the_error_for_an_unknown_format_lists_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("dear diary")
    with pytest.raises(FormatError, match="not a segmentation file: it is text starting"):
        read(tmp_path / "notes.txt")


def test_wrong_options_are_rejected(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", PROBABILITIES)
    with pytest.raises(InputError, match="scale must be a positive number"):
        read(tmp_path / "a.npy", scale=0)
    with pytest.raises(InputError, match="sums must be"):
        read(tmp_path / "a.npy", sums="whatever")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"a\.npy: ignore=\[1\] applies to label maps"):
        read(tmp_path / "a.npy", ignore=[1])


def write_regions(folder: Path, names: list[str], affines: list[NDArray[Any] | None]) -> list[Path]:
    paths = [folder / f"{name}.nii.gz" for name in names]
    for path, values, affine in zip(paths, PROBABILITIES, affines, strict=False):
        nibabel.save(nibabel.Nifti1Image(values, affine), path)
    return paths


def test_one_file_per_region(tmp_path: Path) -> None:
    paths = write_regions(tmp_path, ["pve_0", "pve_1", "pve_2"], [AFFINE] * 3)
    for given in (paths, ",".join(map(str, paths)), str(tmp_path / "pve_*.nii.gz")):
        segmentation = read(given, sums="background")
        assert segmentation.regions == (0, 1, 2, "background")
        assert np.array_equal(whole(segmentation), PROBABILITIES)
        assert segmentation.geometry is not None
        assert segmentation.geometry.affine == pytest.approx(AFFINE)
        assert segmentation.source == ",".join(map(str, paths))
        assert np.array_equal(
            np.asarray(segmentation.array[1:2, 0:2, :, :]), PROBABILITIES[1:2, 0:2]
        )


def test_regions_with_other_axis_orders_are_reordered(tmp_path: Path) -> None:
    paths = write_regions(tmp_path, ["grey", "white", "csf"], [AFFINE] * 3)
    turned = AFFINE @ np.array([[0, -1.0, 0, 3], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    values = np.flip(PROBABILITIES[1].transpose(1, 0, 2), 1)
    nibabel.save(nibabel.Nifti1Image(values, turned), paths[1])
    segmentation = read(paths)
    assert segmentation.regions == ("grey", "white", "csf")
    assert np.array_equal(whole(segmentation), PROBABILITIES)


def test_regions_must_be_on_the_same_grid(tmp_path: Path) -> None:
    shifted = AFFINE.copy()
    shifted[0, 3] += 1.0
    paths = write_regions(tmp_path, ["a", "b"], [AFFINE, shifted])
    with pytest.raises(
        GeometryError, match=r"b\.nii\.gz: is not on the grid .* origin 11 20 -30, exp"
    ):
        read(paths)
    paths = write_regions(tmp_path, ["a", "b"], [AFFINE, None])
    with pytest.raises(GeometryError, match=r"b\.nii\.gz: has no geometry but"):
        read(paths)
    np.save(tmp_path / "c.npy", LABELS == 1)
    np.save(tmp_path / "d.npy", LABELS[1:] == 2)
    with pytest.raises(GeometryError, match=r"d\.npy: has shape \(3, 3, 2\), expected \(4, 3, 2\)"):
        read([tmp_path / "c.npy", tmp_path / "d.npy"])


def test_float_noise_in_the_geometry_passes(tmp_path: Path) -> None:
    noisy = AFFINE.copy()
    noisy[0, 3] += 0.15  # of a pixel of 2 mm: 0.075
    assert read(write_regions(tmp_path, ["a", "b"], [AFFINE, noisy])).shape == (4, 3, 2)


def test_masks_one_per_file(tmp_path: Path) -> None:
    for name in (1, 2):
        np.save(tmp_path / f"mask{name}.npy", (name == LABELS).astype(np.uint8))
    segmentation = read(tmp_path / "mask*.npy", sums="background")
    assert segmentation.regions == (1, 2, "background")
    assert np.array_equal(whole(segmentation), np.stack([LABELS == 1, LABELS == 2]))


def test_label_maps_one_per_file_are_rejected(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", LABELS)
    np.save(tmp_path / "b.npy", LABELS == 2)
    np.save(tmp_path / "p.npy", PROBABILITIES)
    with pytest.raises(FormatError, match=r"a\.npy: with one file per region, .* found 2"):
        read([tmp_path / "a.npy", tmp_path / "b.npy"])
    with pytest.raises(GeometryError, match=r"p\.npy: has shape \(3, 4, 3, 2\), expected"):
        read([tmp_path / "b.npy", tmp_path / "p.npy"])
    nibabel.save(nibabel.Nifti1Image(PROBABILITIES.T, None), tmp_path / "p.nii")
    with pytest.raises(FormatError, match=r"p\.nii: with one file per region, .* 3 regions"):
        read([tmp_path / "b.npy", tmp_path / "p.nii"])
    with pytest.raises(InputError, match="2 files contain one region each"):
        read([tmp_path / "b.npy", tmp_path / "p.npy"], ignore=[1])


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["pve_0.nii.gz", "pve_1.nii.gz"], [0, 1]),
        (["x/csf.nii", "x/grey.nii"], ["csf", "grey"]),
        (["c1case.nii", "c2case.nii"], [1, 2]),
        (["tissue_grey.nii", "tissue_green.nii"], ["grey", "green"]),
        (["left_lung_p.nii", "right_lung_p.nii"], ["left", "right"]),
        (["lesion.nii", "lesion_2.nii"], ["lesion", "lesion_2"]),
        (["a/mask.nii", "b/mask.nii"], ["a/mask.nii", "b/mask.nii"]),
        (["f.h5:/grey", "f.h5:/white"], ["grey", "white"]),
        (["f.h5:/0", "f.h5:/1"], [0, 1]),
        (["p_1.nii", "p_01.nii"], ["1", "01"]),
        (
            ["site1/p1.nii.gz", "site2/p1.nii.gz", "site1/p2.nii.gz"],
            ["site1/p1.nii.gz", "site2/p1.nii.gz", "site1/p2.nii.gz"],
        ),
    ],
)
def test_regions_are_named_after_the_differing_parts_of_file_names(
    files: list[str], names: list[str | int]
) -> None:
    assert region_names(files) == names


def test_files_of_a_glob_are_sorted_by_number(tmp_path: Path) -> None:
    for number in (10, 9, 1):
        np.save(tmp_path / f"p{number}.npy", np.full((2, 2), number / 20))
    assert read(tmp_path / "p*.npy").regions == (1, 9, 10)


def test_commas_and_colons_may_be_part_of_a_name(tmp_path: Path) -> None:
    np.save(tmp_path / "a,b:c.npy", LABELS)
    assert read(tmp_path / "a,b:c.npy").shape == (4, 3, 2)


def test_regions_of_files_correspond_to_the_labels_of_a_map(tmp_path: Path) -> None:
    for label in (0, 1):
        np.save(tmp_path / f"pve_{label}.npy", (label == LABELS % 2).astype(np.float32))
    result = compare(LABELS % 2, read(tmp_path / "pve_*.npy"), match="labels")
    assert result.score == 1.0


def test_one_label_may_be_ignored(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", LABELS)
    assert read(tmp_path / "a.npy", ignore=2).ignore == (2,)
    assert read(tmp_path / "a.npy", ignore=np.uint8(7)).ignore == (7,)
    assert read(tmp_path / "a.npy", ignore=range(2)).ignore == (0, 1)


def test_a_list_of_paths_longer_than_a_file_name(tmp_path: Path) -> None:
    paths = write_regions(tmp_path, ["x" * 90 + tissue for tissue in ("c", "g", "w")], [AFFINE] * 3)
    assert len(",".join(path.name for path in paths)) > 255
    assert read(",".join(map(str, paths))).shape == (4, 3, 2)
    with pytest.raises(FormatError, match=r"cannot be read: File name too long"):
        read(tmp_path / ("x" * 300 + ".nii"))


@pytest.mark.parametrize("path", [None, 3, [], [None], b"a.npy", "", [b"a.npy"], 2.5, [[]]])
def test_invalid_paths_are_rejected(path: Any) -> None:
    with pytest.raises(InputError, match=r"^path .*expected|^path must be the path of a file"):
        read(path)


def test_a_pipe_is_rejected(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.nii")
    with pytest.raises(FormatError, match=r"a\.nii: is a pipe, a socket or a device"):
        read(tmp_path / "a.nii")
    with pytest.raises(FormatError, match=r"null: is a pipe, a socket or a device"):
        read("/dev/null")


def test_a_pipe_beside_a_header_is_rejected(tmp_path: Path) -> None:
    nibabel.save(nibabel.Nifti1Pair(LABELS, AFFINE), tmp_path / "a.img")
    (tmp_path / "a.img").unlink()
    os.mkfifo(tmp_path / "a.img")
    with pytest.raises(FormatError, match=r"a\.hdr: is a header without values"):
        read(tmp_path / "a.hdr")
    header = "ObjectType = Image\nNDims = 2\nDimSize = 2 2\nElementType = MET_UCHAR\n"
    (tmp_path / "b.mhd").write_text(header + "ElementDataFile = a.img\n")
    with pytest.raises(FormatError, match=r"b\.mhd: its header refers to values in .*a\.img"):
        read(tmp_path / "b.mhd")


def test_errors_of_our_own_code_are_not_the_fault_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "a.npy", LABELS)

    def mistaken(*arguments: object, **options: object) -> None:
        raise TypeError("a mistake")

    monkeypatch.setattr("probdice.files.segmentation_of", mistaken)
    with pytest.raises(TypeError, match=r"^a mistake$"):
        read(tmp_path / "a.npy")
    monkeypatch.undo()
    monkeypatch.setattr("probdice.files.numpy_files.regions_of_plain", lambda: None)
    with pytest.raises(TypeError, match="positional argument"):
        read(tmp_path / "a.npy")


def test_programming_errors_are_not_reported_as_corrupt_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "a.npy", LABELS)
    monkeypatch.setattr(np, "load", lambda: None)
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        read(tmp_path / "a.npy")

    def fails_on_damaged_files(*arguments: object, **options: object) -> None:
        raise TypeError("from deep\ninside")

    monkeypatch.setattr(np, "load", fails_on_damaged_files)
    with pytest.raises(FormatError, match=r"a\.npy: is corrupt or incomplete: from deep inside"):
        read(tmp_path / "a.npy")


def test_true_may_be_any_byte_but_zero(tmp_path: Path) -> None:
    odd = np.array([[0, 1, 255], [2, 0, 0]], np.uint8).view(bool)
    np.save(tmp_path / "a.npy", odd)
    np.savez(tmp_path / "a.npz", a=odd)
    for name in ("a.npy", "a.npz"):
        segmentation = read(tmp_path / name)
        assert whole(segmentation).view(np.uint8).tolist() == [[0, 1, 1], [1, 0, 0]]
        assert compare(segmentation, [[0, 1, 1], [1, 0, 0]]).score == 1.0
