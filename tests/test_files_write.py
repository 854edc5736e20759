"""`write`: stored values, geometry, and atomic replacement of files."""

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
import SimpleITK as sitk
import tifffile
from numpy.typing import NDArray
from PIL import Image as Pillow

from probdice.data.segmentation import Geometry, Segmentation
from probdice.errors import FormatError, InputError, MissingExtraError
from probdice.files import read, write, writing

LABELS = np.arange(24).reshape(4, 3, 2) % 5
SHARES = np.linspace(0.0, 1.0, 24, dtype=np.float32).reshape(4, 3, 2)
BOTH = np.stack([SHARES, 1 - SHARES])
AFFINE = np.array([[-2.0, 0, 0, 10], [0, -3, 0, 20], [0, 0, 5, -30], [0, 0, 0, 1]])
HERE = Geometry((4, 3, 2), AFFINE)
PLACED = ["a.nii", "a.nii.gz", "a.mgz", "a.nrrd", "a.seg.nrrd", "a.mha", "a.npz", "a.tif"]
EVERY = [*PLACED, "a.npy"]


def whole(segmentation: Segmentation) -> NDArray[Any]:
    return np.asarray(segmentation.array[(slice(None),) * len(segmentation.array.shape)])


@pytest.mark.parametrize("name", EVERY)
def test_labels_come_back(name: str, tmp_path: Path) -> None:
    here = HERE if name in PLACED else None
    write(tmp_path / name, Segmentation.from_labels(LABELS, geometry=here))
    segmentation = read(tmp_path / name)
    assert segmentation.crisp
    assert segmentation.array.dtype == np.uint8
    assert np.array_equal(whole(segmentation), LABELS)
    assert os.listdir(tmp_path) == [name]
    if name in PLACED:
        assert segmentation.geometry is not None
        assert segmentation.geometry.affine == pytest.approx(AFFINE, abs=1e-5)
    else:
        assert segmentation.geometry is None


@pytest.mark.parametrize("name", EVERY)
def test_probabilities_come_back(name: str, tmp_path: Path) -> None:
    here = HERE if name in PLACED else None
    write(tmp_path / name, Segmentation.from_probabilities(BOTH, geometry=here))
    segmentation = read(tmp_path / name)
    assert len(segmentation.regions) == 2
    assert np.array_equal(whole(segmentation), BOTH)


@pytest.mark.parametrize("name", EVERY)
def test_a_map_comes_back_with_its_nan(name: str, tmp_path: Path) -> None:
    values = SHARES.astype(np.float64)
    values[1, 2, 0] = np.nan
    write(tmp_path / name, values, HERE if name in PLACED else None)
    if name in ("a.npy", "a.tif"):  # read as NumPy and tifffile have them
        stored = np.load(tmp_path / name) if name == "a.npy" else tifffile.imread(tmp_path / name)
    else:
        stored = whole(read(tmp_path / name))
    assert stored.dtype.newbyteorder("=") == np.float32
    assert np.array_equal(stored, values.astype(np.float32), equal_nan=True)


def test_other_tools_read_the_same_geometry(tmp_path: Path) -> None:
    write(tmp_path / "a.nii.gz", LABELS, HERE)
    image = nibabel.load(tmp_path / "a.nii.gz")
    assert image.affine == pytest.approx(AFFINE)
    assert (int(image.header["sform_code"]), int(image.header["qform_code"])) == (1, 1)
    assert image.header.get_xyzt_units()[0] == "mm"
    by_itk = sitk.ReadImage(str(tmp_path / "a.nii.gz"))
    write(tmp_path / "a.mha", LABELS, HERE)
    again = sitk.ReadImage(str(tmp_path / "a.mha"))
    for found in (by_itk, again):
        assert found.GetOrigin() == pytest.approx((-10, -20, -30))
        assert found.GetSpacing() == pytest.approx((2, 3, 5))
        assert found.GetDirection() == pytest.approx((1, 0, 0, 0, 1, 0, 0, 0, 1), abs=1e-6)


def test_a_sheared_grid_keeps_its_sform_alone(tmp_path: Path) -> None:
    sheared = AFFINE.copy()
    sheared[0, 1] = 1.0
    write(tmp_path / "a.nii", LABELS, Geometry((4, 3, 2), sheared))
    image = nibabel.load(tmp_path / "a.nii")
    assert image.affine == pytest.approx(sheared)
    assert int(image.header["qform_code"]) == 0


@pytest.mark.parametrize(
    ("top", "dtype"),
    [(255, "u1"), (256, "i2"), (40000, "u2"), (70000, "i4"), (3 << 30, "u4"), (1 << 40, "i8")],
)
def test_labels_take_the_smallest_type(top: int, dtype: str, tmp_path: Path) -> None:
    for name in ("a.nii.gz", "a.npy"):
        write(tmp_path / name, Segmentation.from_labels(np.array([[[0, top]]])))
        assert read(tmp_path / name).array.dtype == np.dtype(dtype)
        assert whole(read(tmp_path / name)).tolist() == [[[0, top]]]
    write(tmp_path / "negative.nii", np.array([[[-1, 1]]]))
    assert read(tmp_path / "negative.nii").array.dtype == np.int16


def test_names_come_back_where_the_format_holds_them(tmp_path: Path) -> None:
    labels = Segmentation.from_labels(LABELS, names={1: "grey", 3: "white"})
    for name in ("a.npz", "a.seg.nrrd"):
        write(tmp_path / name, labels)
        assert read(tmp_path / name).names == {1: "grey", 3: "white"}
    write(tmp_path / "b.npz", Segmentation.from_probabilities(BOTH, names=["in", "out"]))
    assert read(tmp_path / "b.npz").regions == ("in", "out")


def test_probabilities_are_stored_as_they_are_compared(tmp_path: Path) -> None:
    values = np.array([[0.5, 0.0, 1.5], [0.25, 0.0, 0.5]])
    stored = Segmentation.from_probabilities(values, sums="background", names=["a", "b"])
    write(tmp_path / "a.npz", stored)
    assert read(tmp_path / "a.npz").regions == ("a", "b", "background")
    expected = [[0.5, 0.0, 0.75], [0.25, 0.0, 0.25], [0.25, 1.0, 0.0]]
    assert whole(read(tmp_path / "a.npz")).tolist() == expected
    write(tmp_path / "b.npy", Segmentation.from_probabilities(values[:, ::2], sums="normalise"))
    assert whole(read(tmp_path / "b.npy")) == pytest.approx(np.array([[2, 3], [1, 1]]) / [3, 4])
    write(tmp_path / "c.npy", Segmentation.from_logits(np.log([[0.2, 0.9], [0.8, 0.1]])))
    assert whole(read(tmp_path / "c.npy")) == pytest.approx(np.array([[0.2, 0.9], [0.8, 0.1]]))
    write(tmp_path / "d.nii", Segmentation.from_probabilities(SHARES, axis=None))
    assert nibabel.load(tmp_path / "d.nii").shape == (4, 3, 2)


def test_flat_images(tmp_path: Path) -> None:
    flat = Geometry((4, 3), np.diag([0.5, 0.25, 1.0]))
    write(tmp_path / "a.nii", LABELS[:, :, 0], flat)
    assert nibabel.load(tmp_path / "a.nii").shape == (4, 3, 1)
    assert read(tmp_path / "a.nii").shape == (4, 3)
    write(tmp_path / "a.mha", LABELS[:, :, 0], flat)
    again = read(tmp_path / "a.mha")
    assert again.geometry is not None
    assert again.geometry.spacing == (0.5, 0.25)
    write(tmp_path / "a.png", LABELS[:, :, 0] * 300)
    assert np.array_equal(np.asarray(Pillow.open(tmp_path / "a.png")), LABELS[:, :, 0] * 300)


@pytest.mark.parametrize("name", PLACED)
def test_maps_keep_their_geometry(name: str, tmp_path: Path) -> None:
    write(tmp_path / name, SHARES, HERE)
    stored = read(tmp_path / name)
    assert np.array_equal(stored.probabilities()[1], SHARES)
    assert stored.geometry is not None
    assert stored.geometry.affine == pytest.approx(AFFINE, abs=1e-5)


def test_maps_keep_their_shape_and_get_no_geometry(tmp_path: Path) -> None:
    for suffix in (".nii", ".mgz", ".mha", ".npz", ".tif"):
        write(tmp_path / f"a{suffix}", SHARES[:, :, 0])
        stored = read(tmp_path / f"a{suffix}")
        assert stored.shape == (4, 3)
        assert stored.geometry is None


def test_npy_rejects_a_map_with_a_geometry(tmp_path: Path) -> None:
    message = r"a\.npy: NPY stores only an array, so the geometry would be lost\. Write \.npz"
    with pytest.raises(InputError, match=message):
        write(tmp_path / "a.npy", SHARES, HERE)
    write(tmp_path / "a.npy", SHARES)
    assert os.listdir(tmp_path) == ["a.npy"]


def test_data_that_a_format_cannot_store_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.png: PNG stores only whole numbers. Write prob"):
        write(tmp_path / "a.png", SHARES[:, :, 0])
    with pytest.raises(InputError, match="PNG stores images with 2 axes, found 3"):
        write(tmp_path / "a.png", LABELS)
    with pytest.raises(InputError, match="PNG stores labels from 0 to 65535, found 0 to 70000"):
        write(tmp_path / "a.png", np.array([[0, 70000]]))
    with pytest.raises(InputError, match="store images with up to 3 axes, found 4"):
        write(tmp_path / "a.nii", np.zeros((2, 2, 2, 2)))
    with pytest.raises(InputError, match="store images with 2 or 3 axes, found 4"):
        write(tmp_path / "a.mha", np.zeros((2, 2, 2, 2)))
    with pytest.raises(InputError, match="stores images with 2 to 4 axes, found 5"):
        write(tmp_path / "a.tif", np.zeros((1,) * 5))
    message = r"a\.mgz: MGH stores labels from −2³¹ to 2³¹ − 1, found"
    with pytest.raises(InputError, match=f"{message} 0 to 2147483648. Write .nii.gz or .npz"):
        write(tmp_path / "a.mgz", np.array([[[0, 1 << 31]]]))
    with pytest.raises(InputError, match=f"{message} -1099511627776 to 5"):
        write(tmp_path / "a.mgz", np.array([[[-(1 << 40), 5]]]))
    with pytest.raises(
        InputError, match="NIfTI stores up to 32767 voxels or regions along an axis"
    ):
        write(tmp_path / "a.nii", np.zeros((2, 40000), np.uint8))
    for name in ("a.dcm", "a.mhd", "a.hdr", "a.jpg", "a"):
        with pytest.raises(InputError, match=rf"{name}: unsupported file name suffix.* \.nii\.gz,"):
            write(tmp_path / name, LABELS)
    for invalid in (0.25, np.inf, -np.inf, np.nan):
        with pytest.raises(InputError, match=f"labels must be whole numbers, found {invalid:g}"):
            write(tmp_path / "a.nii", Segmentation.from_labels([[0.0, 3.0, invalid, 0.5]]))
    with pytest.raises(InputError, match=r"geometry has shape \(4, 3, 2\)"):
        write(tmp_path / "a.nii", LABELS[1:], HERE)
    with pytest.raises(InputError, match="expected labels or a numeric map, found <U1"):
        write(tmp_path / "a.nii", np.array(["a"]))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", [*EVERY, "a.png"])
def test_a_full_disk_keeps_the_existing_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_text("precious")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FormatError, match=rf"{name}: cannot be written: No space left on device"):
        write(tmp_path / name, LABELS[:, :, 0])
    assert os.listdir(tmp_path) == [name]
    assert (tmp_path / name).read_text() == "precious"


def test_a_disk_that_fills_while_writing(tmp_path: Path) -> None:
    # A limit on the file size makes the system fail in the middle of a write.
    code = """
import os, resource, sys
import numpy as np
from probdice.errors import FormatError
from probdice.files import write, writing
import nibabel, SimpleITK, tifffile, PIL.Image, isal.igzip
noise = np.random.default_rng(0).integers(0, 60000, (400, 400))
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
for name in sys.argv[2:]:
    try:
        write(os.path.join(sys.argv[1], name), noise)
    except FormatError as error:
        print(name, "cannot be written" in str(error))
    else:
        print(name, "was accepted")
"""
    names = [*EVERY, "a.png"]
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), *names],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [f"{name} True" for name in names]
    assert os.listdir(tmp_path) == []


def test_paths_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.nii", "a.npy", "a.tif", "a.png", "a.mha"):
        with pytest.raises(FormatError, match=rf"none/{name}: cannot be written"):
            write(tmp_path / "none" / name, LABELS[:, :, 0])
    (tmp_path / "folder.nii").mkdir()
    with pytest.raises(InputError, match=r"folder\.nii: is a folder"):
        write(tmp_path / "folder.nii", LABELS)

    def refuse(*arguments: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(FormatError, match=r"a\.nii: cannot be written: Permission denied"):
        write(tmp_path / "a.nii", LABELS)


def test_an_existing_file_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "a.nii.gz"
    path.write_text("old")
    path.chmod(0o640)
    write(path, LABELS)
    assert np.array_equal(whole(read(path)), LABELS)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_equal_images_are_equal_files(tmp_path: Path) -> None:
    for name in ("a.nii.gz", "b.nii.gz"):
        write(tmp_path / name, LABELS, HERE)
    assert (tmp_path / "a.nii.gz").read_bytes() == (tmp_path / "b.nii.gz").read_bytes()


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "SimpleITK", None)
    with pytest.raises(MissingExtraError, match=r'a\.mha: .*pip install "probdice\[itk\]"'):
        write(tmp_path / "a.mha", LABELS)


def test_a_segmentation_read_lazily_is_written(tmp_path: Path) -> None:
    for number in (1, 2):
        np.save(tmp_path / f"p{number}.npy", BOTH[number - 1])
    write(tmp_path / "out.npz", read(tmp_path / "p*.npy"))
    assert np.array_equal(whole(read(tmp_path / "out.npz")), BOTH)


def test_a_lazy_array_is_written_in_parts(tmp_path: Path, monkeypatch: Any) -> None:
    """A consensus of raters is computed in parts when it is read."""
    values = np.random.default_rng(0).dirichlet(np.ones(3), (6, 5, 4)).transpose(3, 0, 1, 2)
    asked: list[tuple[int, ...]] = []

    class InParts:
        shape, dtype = values.shape, values.dtype

        def __getitem__(self, box: Any) -> NDArray[Any]:
            asked.append(values[box].shape)
            return values[box]

    monkeypatch.setattr(writing, "BATCH", 2 * 3 * 20)
    segmentation = Segmentation(InParts(), crisp=False, labels=(0, 1, 2))
    write(tmp_path / "a.nii.gz", segmentation)
    assert asked == [(3, 2, 5, 4)] * 3
    assert np.array_equal(read(tmp_path / "a.nii.gz").probabilities(), values)
    values[1, 3, 2, 1] = np.nan
    with pytest.raises(InputError, match=r"nan at voxel \(3, 2, 1\)"):
        write(tmp_path / "a.nii.gz", segmentation)


def test_probabilities_that_are_all_zero_are_rejected_with_their_pixel(tmp_path: Path) -> None:
    values = np.array([[0.5, 0.0, 0.0], [0.25, 0.0, 0.0]])
    stored = Segmentation.from_probabilities(values, sums="normalise")
    with pytest.raises(
        InputError,
        match=r"a\.npy: all probabilities are 0 at pixel \(1,\) \(the first of 2 such pixels\), so "
        r'they cannot be divided by their sum\. To add .* pass sums="background"',
    ):
        write(tmp_path / "a.npy", stored)
    assert os.listdir(tmp_path) == []


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    target = tmp_path / "store" / "blob"
    target.write_text("old")
    (tmp_path / "a.nii.gz").symlink_to(target)
    write(tmp_path / "a.nii.gz", LABELS)
    assert (tmp_path / "a.nii.gz").is_symlink()
    assert not target.is_symlink()
    assert np.array_equal(whole(read(target)), LABELS)
    (tmp_path / "b.npy").symlink_to(tmp_path / "store" / "new.npy")  # this file does not exist yet
    write(tmp_path / "b.npy", LABELS)
    assert (tmp_path / "b.npy").is_symlink()
    assert sorted(os.listdir(tmp_path / "store")) == ["blob", "new.npy"]


def test_regions_keep_their_numbers(tmp_path: Path) -> None:
    write(tmp_path / "a.npz", Segmentation.from_probabilities(BOTH))
    assert read(tmp_path / "a.npz").regions == (0, 1)


def test_write_requires_a_path() -> None:
    with pytest.raises(InputError, match="path must be the path of the file to write, found None"):
        write(None, LABELS)  # type: ignore[arg-type]


def test_a_single_region_comes_back_from_every_format(tmp_path: Path) -> None:
    single = Segmentation.from_probabilities(np.ones((1, 2, 3, 4), np.float32))
    for suffix in (".nii.gz", ".mgz", ".npz", ".tif", ".mha"):
        write(tmp_path / f"a{suffix}", single)
        assert read(tmp_path / f"a{suffix}").shape == (2, 3, 4)


def test_one_dimensional_labels_are_not_written_as_tiff(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.tif: TIFF stores images with 2 to 4 axes, found 1"):
        write(tmp_path / "a.tif", np.array([0, 1, 2]))
    assert list(tmp_path.iterdir()) == []
