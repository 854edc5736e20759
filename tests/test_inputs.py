"""Conversion of all supported inputs to a segmentation."""

import os
from pathlib import Path

import numpy as np
import pytest

from probdice import FormatError, Geometry, InputError, Segmentation, compare, read, write
from probdice.files.inputs import as_mask, as_segmentation


@pytest.mark.parametrize(
    ("value", "crisp"),
    [
        ([1, 2], True),
        (np.array([True, False]), True),
        (np.array([1, 2], np.uint8), True),
        ([[0.5, 1.0], [0.5, 0.0]], False),
        (np.ones((1, 3), np.float16), False),
    ],
)
def test_integers_are_labels_and_floating_numbers_probabilities(value, crisp):
    assert as_segmentation(value, "reference").crisp == crisp


def test_a_segmentation_is_used_unchanged():
    segmentation = Segmentation.from_labels([1, 2])
    assert as_segmentation(segmentation, "reference") is segmentation
    assert as_mask(segmentation) is segmentation
    assert as_mask(None) is None


@pytest.mark.parametrize("kind", [str, Path, os.fspath])
def test_a_path_is_read(tmp_path, kind):
    np.save(tmp_path / "labels.npy", np.array([[1, 1], [2, 3]]))
    path = kind(tmp_path / "labels.npy")
    assert as_segmentation(path, "prediction").source
    assert compare(path, [[1, 1], [2, 3]]).score == 1
    assert compare([[1, 1], [2, 3]], [[1, 1], [2, 3]], mask=path).pixels == 4


def test_errors_name_the_side():
    for side in ("reference", "prediction"):
        with pytest.raises(FormatError, match=f"{side}: missing.npy: no such file"):
            as_segmentation("missing.npy", side)
        with pytest.raises(InputError, match=f"{side}: must contain labels .* found complex128"):
            as_segmentation(np.zeros(3, complex), side)
        with pytest.raises(InputError, match=f"{side}: must be an array with rows of equal length"):
            as_segmentation([[1], [2, 3]], side)
        with pytest.raises(InputError, match=f"{side}: must be an array of numbers, found None"):
            as_segmentation(None, side)
    with pytest.raises(FormatError, match=r"mask: missing.npy: no such file"):
        as_mask("missing.npy")
    with pytest.raises(InputError, match="mask: must be an array with rows of equal length"):
        as_mask([[1], []])


# -- the rows of docs/how-to/inputs.md, each a test ---------------------------------------------

LABELS = np.array([[[0, 0], [0, 1], [2, 2]], [[0, 1], [1, 1], [2, 2]]], np.uint8)  # (2, 3, 2)
FIRST = np.linspace(0.125, 0.5, 12, dtype=np.float32).reshape(2, 3, 2)
PROBABILITIES = np.stack([FIRST, 1 - FIRST])
AFFINE = np.array([[-2.0, 0, 0, 10], [0, -3, 0, 20], [0, 0, 5, -30], [0, 0, 0, 1]])
PLACE = Geometry((2, 3, 2), AFFINE)


def dlpack(array):
    class Exchanged:
        def __dlpack__(self, **options):
            return array.__dlpack__(**options)

        def __dlpack_device__(self):
            return array.__dlpack_device__()

    return Exchanged()


def mapped(folder, array):
    np.save(folder / "mapped.npy", array)
    return np.load(folder / "mapped.npy", mmap_mode="r")


def tensor(folder, array):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    value = torch.tensor(array)
    return value.requires_grad_() if array.dtype.kind == "f" else value


def jax_array(folder, array):
    return pytest.importorskip("jax.numpy", reason="JAX is not installed").asarray(array)


def data_array(folder, array):
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    if array.ndim == 3:
        return xarray.DataArray(array, dims=("x", "y", "z"))
    return xarray.DataArray(np.moveaxis(array, 0, 1), dims=("x", "class", "y", "z"))


def nibabel_image(folder, array):
    nibabel = pytest.importorskip("nibabel")
    return nibabel.Nifti1Image(np.moveaxis(array, 0, -1) if array.ndim == 4 else array, AFFINE)


def simpleitk_image(folder, array):
    sitk = pytest.importorskip("SimpleITK", reason="the extra itk is not installed")
    image = sitk.GetImageFromArray(np.ascontiguousarray(array.T), isVector=array.ndim == 4)
    image.SetSpacing((2.0, 3.0, 5.0))
    image.SetOrigin((-10.0, -20.0, -30.0))
    return image


def written(name):
    def make(folder, array):
        placed = PLACE if name.endswith((".nii.gz", ".mgz", ".nrrd", ".mha")) else None
        if array.ndim == 4:
            segmentation = Segmentation.from_probabilities(array, geometry=placed)
        else:
            named = {0: "air", 1: "bone", 2: "skin"} if ".seg." in name else None
            segmentation = Segmentation.from_labels(array, geometry=placed, names=named)
        write(folder / name, segmentation)
        return folder / name

    return make


def hdf5_file(folder, array):
    h5py = pytest.importorskip("h5py", reason="the extra hdf5 is not installed")
    with h5py.File(folder / "a.h5", "w") as file:
        file["values"], file["other"] = array, np.zeros(3)
    return f"{folder / 'a.h5'}:/values"


def zarr_array(folder, array):
    zarr = pytest.importorskip("zarr", reason="the extra zarr is not installed")
    stored = zarr.create_array(folder / "array.zarr", shape=array.shape, dtype=array.dtype)
    stored[...] = array
    return stored


def dask_array(folder, array):
    library = pytest.importorskip("dask.array", reason="the extra dask is not installed")
    return library.from_array(array, chunks=2)


def zarr_store(folder, array):
    zarr_array(folder, array)
    return folder / "array.zarr"


def matlab_file(folder, array):
    scipy_io = pytest.importorskip("scipy.io")
    values = np.moveaxis(array, 0, -1) if array.ndim == 4 else array
    scipy_io.savemat(folder / "a.mat", {"values": values})
    return folder / "a.mat"


def region_files(folder, array):
    for name, region in zip(("grey", "white"), array, strict=True):
        write(folder / f"{name}.nii.gz", region, PLACE)
    return [folder / "grey.nii.gz", folder / "white.nii.gz"]


def named_files(folder, array):
    grey, white = region_files(folder, array)
    return f"csf={grey},bone={white}"


def region_images(folder, array):
    return {name: nibabel_image(folder, x) for name, x in zip(("a", "b"), array, strict=True)}


# Row of the documentation: how to create it, from what, whether it has a geometry, its names.
ROWS = {
    "a list of numbers": (lambda _, a: a.tolist(), "both", False),
    "a NumPy array of integers or booleans": (lambda _, a: a, "labels", False),
    "a NumPy array of floating-point numbers": (lambda _, a: a, "probabilities", False),
    "a memory map": (mapped, "both", False),
    "a torch tensor": (tensor, "both", False),
    "a JAX array": (jax_array, "both", False),
    "an array that supports DLPack": (lambda _, a: dlpack(a), "both", False),
    "an xarray DataArray": (data_array, "both", False),
    "a Zarr array": (zarr_array, "both", False),
    "a Dask array": (dask_array, "both", False),
    "a nibabel image": (nibabel_image, "both", True),
    "a SimpleITK image": (simpleitk_image, "both", True),
    "NIfTI, .nii and .nii.gz": (written("a.nii.gz"), "both", True),
    "MGH, .mgh and .mgz": (written("a.mgz"), "both", True),
    "NPY": (written("a.npy"), "both", False),
    "NPZ": (written("a.npz"), "both", False),
    "TIFF": (written("a.tif"), "both", False),
    "PNG": (written("a.png"), "flat labels", False),
    "NRRD and MHA": (written("a.nrrd"), "both", True),
    "3D Slicer's .seg.nrrd": (written("a.seg.nrrd"), "labels", True),
    "HDF5": (hdf5_file, "both", False),
    "Zarr and OME-Zarr": (zarr_store, "both", False),
    "MATLAB": (matlab_file, "both", False),
    "one file per region": (region_files, "probabilities", True),
    "one file per region, named": (named_files, "probabilities", True),
    "one image per region": (region_images, "probabilities", True),
}
ELSEWHERE = {"DICOM SEG", "a mask of 0.0 and 1.0"}  # test_files_dicom.py, and below
NAMED = {
    "one file per region": ("grey", "white"),
    "one file per region, named": ("csf", "bone"),
    "one image per region": ("a", "b"),
}


def test_every_row_of_the_documentation_is_a_test():
    path = Path(__file__).parent.parent / "docs" / "how-to" / "inputs.md"
    text = path.read_text(encoding="utf-8")
    table = text.split("## ")[0]
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")]
    assert set(rows) - {"you have"} == set(ROWS) | ELSEWHERE


@pytest.mark.parametrize("row", ROWS)
def test_labels_in_every_container_are_accepted(row, tmp_path):
    make, holds, placed = ROWS[row]
    if holds == "probabilities":
        pytest.skip("it holds no labels")
    labels = LABELS[:, :, 0] if holds == "flat labels" else LABELS
    segmentation = as_segmentation(make(tmp_path, labels), "reference")
    assert segmentation.crisp
    assert np.array_equal(np.asarray(segmentation.array[...]), labels)
    assert (segmentation.geometry == PLACE) == placed
    if ".seg.nrrd" in row:
        assert segmentation.names == {0: "air", 1: "bone", 2: "skin"}


@pytest.mark.parametrize("row", ROWS)
def test_probabilities_in_every_container_are_accepted(row, tmp_path):
    make, holds, placed = ROWS[row]
    if holds.endswith("labels"):
        pytest.skip("it holds no probabilities")
    segmentation = as_segmentation(make(tmp_path, PROBABILITIES), "prediction")
    assert not segmentation.crisp
    assert segmentation.regions == NAMED.get(row, (0, 1))
    assert np.allclose(segmentation.probabilities(), PROBABILITIES, rtol=0, atol=1e-7)
    assert (segmentation.geometry == PLACE) == placed


@pytest.mark.parametrize(
    "make", [lambda _, a: a, tensor, data_array, nibabel_image, simpleitk_image,
             written("a.npy"), written("a.nii.gz"), lambda _, a: a.tolist()]
)  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
def test_a_mask_is_accepted_in_every_container(make, dtype, tmp_path):
    mask = make(tmp_path, (LABELS != 0).astype(dtype))
    geometry = PLACE if make in (nibabel_image, simpleitk_image) else None
    if isinstance(mask, Path) and mask.suffix == ".gz":
        geometry = PLACE
    side = Segmentation.from_labels(LABELS, geometry=geometry)
    assert compare(side, side, mask=mask).pixels == np.count_nonzero(LABELS)


def test_a_floating_mask_in_a_plain_file_has_no_regions(tmp_path):
    np.save(tmp_path / "mask.npy", (LABELS != 0).astype(np.float32))
    assert compare(LABELS, LABELS, mask=tmp_path / "mask.npy").pixels == np.count_nonzero(LABELS)
    with pytest.raises(InputError, match="mask: expected one mask file, found 2"):
        as_mask(["a.npy", "b.npy"])


def test_a_scaled_nibabel_image_is_read_like_its_file(tmp_path):
    nibabel = pytest.importorskip("nibabel")
    image = nibabel.Nifti1Image(np.array([[[0, 51, 255]]], np.uint8), AFFINE)
    image.header.set_slope_inter(1 / 255, 0)
    nibabel.save(image, tmp_path / "scaled.nii")
    image = nibabel.load(tmp_path / "scaled.nii")
    loaded = nibabel.load(tmp_path / "scaled.nii")
    for segmentation in (as_segmentation(loaded, "reference"), read(tmp_path / "scaled.nii")):
        assert segmentation.reading == "foreground"
        assert np.allclose(segmentation.array[...], [[[0, 0.2, 1]]])
    assert as_segmentation(loaded, "reference").source.endswith("scaled.nii")


def test_a_nibabel_image_without_geometry_gets_none(tmp_path):
    nibabel = pytest.importorskip("nibabel")
    image = nibabel.Nifti1Image(LABELS, None)
    assert as_segmentation(image, "reference").geometry is None
    surface = nibabel.gifti.GiftiImage()
    with pytest.raises(FormatError, match=r"reference: a nibabel.GiftiImage: contains no map"):
        as_segmentation(surface, "reference")


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.bool_])
def test_one_hot_integers_are_recognised(axis, dtype):
    one_hot = np.stack([k == LABELS for k in range(3)], axis=axis).astype(dtype)
    with pytest.raises(InputError, match=rf"from_probabilities\(array, axis={axis}\)"):
        compare(LABELS, one_hot)
    with pytest.raises(InputError, match=rf"from_probabilities\(array, axis={axis}\)"):
        compare(one_hot, LABELS)
    segmentation = Segmentation.from_probabilities(one_hot, axis=axis)
    assert compare(LABELS, segmentation).score == 1
    kinds = [note.kind for note in compare(one_hot, one_hot).notes]
    assert kinds == ["one-hot", "one-hot", "background"]


def test_masks_are_not_read_as_one_hot_arrays():
    mask = (LABELS > 0).astype(np.uint8)
    assert [note.kind for note in compare(mask, mask).notes] == ["background"]
    with pytest.raises(InputError) as caught:
        compare(LABELS, np.stack([LABELS] * 3))
    assert "one-hot" not in str(caught.value)
