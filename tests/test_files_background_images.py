"""Background images: reading them, and rejecting those on another grid."""

import nibabel
import numpy as np
import pytest
from PIL import Image

from probdice import FormatError, Geometry, GeometryError, InputError
from probdice.files import read_background_image
from probdice.files.background_images import BackgroundImage, onto_grid

SHAPE = (2, 3, 4)
SCAN = np.arange(24, dtype=np.int16).reshape(SHAPE)
HERE = Geometry(SHAPE, np.diag([1.0, 2.0, 3.0, 1.0]))


def onto(image, *, geometry=HERE, shape=SHAPE, tolerance=0.1, placed=True):
    return onto_grid(image, geometry, shape, tolerance=tolerance, placed=placed)


def test_a_scan_is_read_with_its_slope_and_geometry(tmp_path):
    image = nibabel.Nifti1Image(SCAN, HERE.affine)
    image.header.set_slope_inter(2, -1000)
    nibabel.save(image, tmp_path / "ct.nii.gz")
    image = read_background_image(tmp_path / "ct.nii.gz")
    stored = nibabel.load(tmp_path / "ct.nii.gz").get_fdata()
    np.testing.assert_allclose(np.asarray(image.array[...]), stored)
    assert image.geometry == HERE and image.name == "ct.nii.gz" and not image.colour


def test_a_photograph_has_its_colours(tmp_path):
    colours = np.zeros((5, 7, 3), np.uint8)
    colours[..., 1] = 200
    Image.fromarray(colours).save(tmp_path / "a.jpg", quality=95)
    Image.fromarray(colours).quantize(4).save(tmp_path / "a.png")
    Image.fromarray(colours[..., 1]).save(tmp_path / "grey.png")
    for name in ("a.jpg", "a.png"):
        photograph = read_background_image(tmp_path / name)
        assert photograph.colour and photograph.shape == (5, 7)
        np.testing.assert_allclose(photograph.array, colours, atol=4)
    grey = read_background_image(tmp_path / "grey.png")
    assert not grey.colour and grey.array.tolist() == colours[..., 1].tolist()


def test_a_name_may_be_given_with_the_file(tmp_path):
    np.save(tmp_path / "a.npy", SCAN.astype(np.float32))
    image = read_background_image(f"T1={tmp_path / 'a.npy'}")
    assert image.name == "T1" and image.shape == SHAPE


def test_several_values_per_voxel_are_rejected(tmp_path):
    series = np.zeros((*SHAPE, 5), np.int16)
    nibabel.save(nibabel.Nifti1Image(series, HERE.affine), tmp_path / "bold.nii.gz")
    with pytest.raises(
        FormatError, match=r"bold\.nii\.gz: contains 5 values per voxel, expected one"
    ):
        read_background_image(tmp_path / "bold.nii.gz")


def test_axes_are_permuted_like_those_of_a_segmentation():
    turned = SCAN.transpose(2, 0, 1)[::-1]
    affine = HERE.affine @ np.array([[0, 1, 0, 0], [0, 0, 1, 0], [-1, 0, 0, 3], [0, 0, 0, 1.0]])
    laid = onto(BackgroundImage(turned, False, Geometry(turned.shape, affine)))
    np.testing.assert_array_equal(laid.array, SCAN)


def test_background_images_on_another_grid_are_rejected():
    far = Geometry(SHAPE, HERE.affine + np.array([[0, 0, 0, 9.0]] + [[0] * 4] * 3))
    with pytest.raises(GeometryError, match=r"corners are up to 9 voxels apart. Resample it"):
        onto(BackgroundImage(SCAN, False, far))
    finer = Geometry((4, 6, 8), np.diag([0.5, 1.0, 1.5, 1.0]))
    with pytest.raises(GeometryError, match="for every order of the axes"):
        onto(BackgroundImage(np.zeros((4, 6, 8)), False, finer))
    assert onto(BackgroundImage(SCAN, False, far), tolerance=10).geometry == HERE


def test_both_or_neither_must_have_a_geometry():
    with pytest.raises(
        GeometryError, match="background image has no geometry, but the segmentations"
    ):
        onto(BackgroundImage(SCAN, False))
    with pytest.raises(
        GeometryError, match="the segmentations have no geometry, but the background image"
    ):
        onto(BackgroundImage(SCAN, False, HERE), geometry=None)
    assert onto(BackgroundImage(SCAN, False), placed=False).array is SCAN
    with pytest.raises(InputError, match=r"shape \(3, 4\), but the segmentations have shape"):
        onto(BackgroundImage(SCAN[0], False), placed=False)


def test_a_photograph_with_a_wrong_checksum_is_rejected(tmp_path):
    path = tmp_path / "photo.png"
    Image.fromarray(np.arange(300, dtype=np.uint8).reshape(10, 10, 3)).save(path)
    content = bytearray(path.read_bytes())
    content[-20] ^= 1  # of the packed values
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"photo\.png: .* chunk IDAT .* wrong checksum"):
        read_background_image(path)


def test_a_photograph_header_far_larger_than_its_file_is_rejected(tmp_path):
    path = tmp_path / "photo.jpg"
    Image.fromarray(np.zeros((16, 16, 3), np.uint8)).save(path)
    content = path.read_bytes()
    start = content.index(b"\xff\xc0\x00\x11\x08") + 5  # position of height and width
    path.write_bytes(content[:start] + b"\x7f\xff\x7f\xff" + content[start + 4 :])
    with pytest.raises(FormatError, match=r"photo\.jpg: .* describes an image of shape \(32767, 3"):
        read_background_image(path)
