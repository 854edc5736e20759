"""NIfTI, Analyze and MGH: value types, sform and qform, units."""

import gzip
import sys
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
from numpy.typing import NDArray

from probdice.data.segmentation import Geometry, Segmentation
from probdice.errors import FormatError
from probdice.files import read, write

LABELS = np.arange(24, dtype=np.uint8).reshape(4, 3, 2) % 5
SHARES = np.linspace(0.0, 1.0, 24, dtype=np.float32).reshape(4, 3, 2)
AFFINE = np.array([[-2.0, 0, 0, 10], [0, -3, 0, 20], [0, 0, 5, -30], [0, 0, 0, 1]])


def whole(segmentation: Segmentation) -> NDArray[Any]:
    return np.asarray(segmentation.array[(slice(None),) * len(segmentation.array.shape)])


def save(path: Path, array: NDArray[Any], affine: NDArray[Any] | None = AFFINE) -> Path:
    nibabel.save(nibabel.Nifti1Image(array, affine), path)
    return path


def save_scaled(path: Path, array: NDArray[Any], slope: float, inter: float = 0.0) -> Path:
    """Integers with a slope in the header, as SPM writes them."""
    image = nibabel.Nifti1Image(array, AFFINE)
    image.header.set_slope_inter(slope, inter)
    header = image.header.copy()
    header.set_data_dtype(array.dtype)
    header["vox_offset"] = 352
    header["magic"] = b"n+1"
    path.write_bytes(header.binaryblock + b"\0" * 4 + array.tobytes(order="F"))
    return path


@pytest.mark.parametrize("dtype", ["<u1", "<i2", ">i2", "<u2", "<i4", "<f4", "<f8", ">f4"])
def test_labels_of_every_type(dtype: str, tmp_path: Path) -> None:
    image = nibabel.Nifti1Image(LABELS.astype(dtype), AFFINE)
    if dtype[0] == ">":
        header = nibabel.Nifti1Header(endianness=">")
        header.set_data_dtype(np.dtype(dtype))
        image = nibabel.Nifti1Image(LABELS.astype(dtype), AFFINE, header)
    nibabel.save(image, tmp_path / "a.nii")
    segmentation = read(tmp_path / "a.nii")
    assert segmentation.crisp
    assert segmentation.array.dtype == np.dtype(dtype)
    assert np.array_equal(whole(segmentation), LABELS)


def test_nifti_2(tmp_path: Path) -> None:
    nibabel.save(nibabel.Nifti2Image(LABELS, AFFINE), tmp_path / "a.nii.gz")
    segmentation = read(tmp_path / "a.nii.gz")
    assert np.array_equal(whole(segmentation), LABELS)
    assert segmentation.geometry is not None
    assert segmentation.geometry.affine == pytest.approx(AFFINE)


def test_header_extensions_are_skipped(tmp_path: Path) -> None:
    image = nibabel.Nifti1Image(LABELS, AFFINE)
    image.header.extensions.append(nibabel.nifti1.Nifti1Extension("comment", b"x" * 9000))
    nibabel.save(image, tmp_path / "a.nii.gz")
    assert np.array_equal(whole(read(tmp_path / "a.nii.gz")), LABELS)


def test_uncompressed_values_stay_on_disk(tmp_path: Path) -> None:
    array = read(save(tmp_path / "a.nii", LABELS)).array
    assert isinstance(array, np.ndarray)
    assert not array.flags.owndata
    assert not array.flags.writeable


def test_several_gzip_members_are_one_file(tmp_path: Path) -> None:
    plain = save(tmp_path / "a.nii", LABELS).read_bytes()
    packed = gzip.compress(plain[:360]) + gzip.compress(plain[360:])
    (tmp_path / "b.nii.gz").write_bytes(packed)
    assert np.array_equal(whole(read(tmp_path / "b.nii.gz")), LABELS)


def test_a_flipped_bit_in_a_gzipped_file(tmp_path: Path) -> None:
    noise = np.random.default_rng(1).integers(0, 255, (20, 20, 20)).astype(np.uint8)
    content = bytearray(save(tmp_path / "a.nii.gz", noise).read_bytes())
    content[-3000] ^= 0x10
    (tmp_path / "a.nii.gz").write_bytes(content)
    with pytest.raises(FormatError, match=r"a\.nii\.gz: is corrupt or incomplete"):
        read(tmp_path / "a.nii.gz")


def test_gzip_without_isal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "isal", None)
    write(tmp_path / "a.nii.gz", LABELS)
    assert np.array_equal(whole(read(tmp_path / "a.nii.gz")), LABELS)


def test_a_map_with_fractions_is_one_foreground(tmp_path: Path) -> None:
    segmentation = read(save(tmp_path / "a.nii", SHARES))
    assert segmentation.reading == "foreground"
    assert segmentation.regions == (0, 1)
    assert np.array_equal(whole(segmentation), SHARES)


def test_a_fraction_at_the_very_end_is_found(tmp_path: Path) -> None:
    values = np.zeros((130, 130, 130), dtype=np.float32)
    values[-1, -1, -1] = 0.5
    assert not read(save(tmp_path / "a.nii", values)).crisp


def test_an_array_of_integers_and_nan_is_a_label_map(tmp_path: Path) -> None:
    values = LABELS.astype(np.float32)
    values[0, 0, 0] = np.nan  # the comparison reports its position
    assert read(save(tmp_path / "a.nii", values)).crisp


def test_axes_of_length_one(tmp_path: Path) -> None:
    both = np.stack([SHARES, 1 - SHARES], axis=-1)
    assert read(save(tmp_path / "a.nii", both[..., None, :])).regions == (0, 1)
    assert read(save(tmp_path / "b.nii", both[..., None])).shape == (4, 3, 2)
    assert read(save(tmp_path / "c.nii", LABELS[..., None])).crisp
    assert read(save(tmp_path / "d.nii", SHARES[..., None, None])).reading == "foreground"
    assert read(save(tmp_path / "e.nii", LABELS[:, :, 0])).shape == (4, 3, 1)


def test_more_than_one_further_axis_is_rejected(tmp_path: Path) -> None:
    values = np.zeros((4, 3, 2, 5, 6), dtype=np.float32)
    with pytest.raises(FormatError, match=r"shape \(4, 3, 2, 5, 6\): expected three spatial axes"):
        read(save(tmp_path / "a.nii", values))


def test_scaled_integers(tmp_path: Path) -> None:
    stored = np.array([0, 51, 255, 102], dtype=np.uint8).reshape(2, 2, 1)
    segmentation = read(save_scaled(tmp_path / "a.nii", stored, 1 / 255))
    assert segmentation.reading == "foreground"
    assert whole(segmentation).ravel() == pytest.approx([0, 0.2, 1, 0.4], abs=1e-7)
    segmentation = read(save_scaled(tmp_path / "b.nii", stored, 0.5, 0.25), scale=200)
    assert whole(segmentation).ravel() == pytest.approx([0.25 / 200, 25.75 / 200, 0.63875, 0.25625])
    both = np.stack([stored, 255 - stored], axis=-1)
    segmentation = read(save_scaled(tmp_path / "c.nii", both, 1 / 255))
    assert segmentation.regions == (0, 1)
    assert whole(segmentation)[1].ravel() == pytest.approx([1, 0.8, 0, 0.6], abs=1e-7)


def test_labels_with_a_whole_slope_stay_labels(tmp_path: Path) -> None:
    segmentation = read(save_scaled(tmp_path / "a.nii", LABELS, 10.0, 1.0))
    assert segmentation.crisp
    assert np.array_equal(whole(segmentation), LABELS * 10.0 + 1.0)


def test_percentages_and_8_bit_maps_are_scaled(tmp_path: Path) -> None:
    percent = np.array([0, 25, 100], dtype=np.uint8).reshape(3, 1, 1)
    assert whole(read(save(tmp_path / "a.nii", percent), scale=100)).ravel().tolist() == [
        0,
        0.25,
        1,
    ]
    both = np.stack([percent, 100 - percent], axis=-1)
    segmentation = read(save(tmp_path / "b.nii", both), scale=100)
    assert whole(segmentation)[:, :, 0, 0].tolist() == [[0, 0.25, 1], [1, 0.75, 0]]
    with pytest.raises(FormatError, match=r"3 × 1 × 1 × 2 whole .* 100: .*scale=100.* time"):
        read(tmp_path / "b.nii")


def test_integers_of_zero_and_one_are_one_hot(tmp_path: Path) -> None:
    masks = np.stack([LABELS == 0, LABELS != 0], axis=-1).astype(np.uint8)
    segmentation = read(save(tmp_path / "a.nii", masks))
    assert segmentation.regions == (0, 1)
    assert np.array_equal(whole(segmentation), np.moveaxis(masks, -1, 0))


@pytest.mark.parametrize(("unit", "factor"), [("micron", 0.001), ("meter", 1000), ("mm", 1)])
def test_units_become_millimetres(unit: str, factor: float, tmp_path: Path) -> None:
    image = nibabel.Nifti1Image(LABELS, AFFINE)
    image.header.set_xyzt_units(unit)
    nibabel.save(image, tmp_path / "a.nii")
    geometry = read(tmp_path / "a.nii").geometry
    assert geometry is not None
    assert geometry.spacing == pytest.approx((2 * factor, 3 * factor, 5 * factor))
    assert geometry.origin == pytest.approx((10 * factor, 20 * factor, -30 * factor))


def test_without_forms_there_is_no_geometry(tmp_path: Path) -> None:
    assert read(save(tmp_path / "a.nii", LABELS, None)).geometry is None


def test_the_qform_serves_where_the_sform_is_absent_or_empty(tmp_path: Path) -> None:
    for code in (0, 1):
        image = nibabel.Nifti1Image(LABELS, None)
        image.set_qform(AFFINE, code=1)
        image.header["sform_code"] = code  # its rows stay zero
        image.header["srow_x"] = image.header["srow_y"] = image.header["srow_z"] = 0
        nibabel.save(image, tmp_path / "a.nii")
        geometry = read(tmp_path / "a.nii").geometry
        assert geometry is not None
        assert geometry.affine == pytest.approx(AFFINE)


@pytest.mark.parametrize("seed", range(20))
def test_places_agree_with_nibabel(seed: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    rotation = np.linalg.qr(random.normal(size=(3, 3)))[0]  # left- or right-handed
    if seed == 0:
        rotation = np.diag([-1.0, -1.0, 1.0])  # half a turn: the quaternion has no real part
    affine = np.eye(4)
    affine[:3, :3] = rotation * random.uniform(0.2, 5, 3)
    affine[:3, 3] = random.uniform(-200, 200, 3)
    header = nibabel.Nifti1Header(endianness="<>"[seed % 2])
    image = nibabel.Nifti1Image(LABELS, None, header)
    image.set_qform(affine, code=1)
    if seed % 3 == 0:
        image.set_sform(affine, code=2)
    nibabel.save(image, tmp_path / "a.nii")
    geometry = read(tmp_path / "a.nii").geometry
    assert geometry is not None
    assert geometry.affine == pytest.approx(nibabel.load(tmp_path / "a.nii").affine, abs=1e-5)
    assert geometry.affine == pytest.approx(affine, abs=1e-3)


def test_four_orientations_are_one_image(tmp_path: Path) -> None:
    reference = nibabel.Nifti1Image(SHARES, AFFINE)
    here = Geometry((4, 3, 2), AFFINE)
    for axes in ("RAS", "LPS", "AIL", "PSR"):
        ours = nibabel.io_orientation(AFFINE)
        theirs = nibabel.orientations.axcodes2ornt(tuple(axes))
        turn = nibabel.orientations.ornt_transform(ours, theirs)
        nibabel.save(reference.as_reoriented(turn), tmp_path / f"{axes}.nii.gz")
        segmentation = read(tmp_path / f"{axes}.nii.gz")
        assert np.array_equal(whole(segmentation.onto(here)), SHARES)


def test_analyze_has_no_geometry(tmp_path: Path) -> None:
    image = nibabel.Spm99AnalyzeImage(LABELS.astype(np.int16), None)
    nibabel.save(image, tmp_path / "a.img")
    for name in ("a.img", "a.hdr"):
        segmentation = read(tmp_path / name)
        assert np.array_equal(whole(segmentation), LABELS)
        assert segmentation.geometry is None


def test_half_of_a_pair_is_rejected(tmp_path: Path) -> None:
    nibabel.save(nibabel.Nifti1Pair(LABELS, AFFINE), tmp_path / "a.img")
    (tmp_path / "a.img").rename(tmp_path / "b.img")
    with pytest.raises(FormatError, match=r"a\.hdr: is a header without values: expected an \.img"):
        read(tmp_path / "a.hdr")
    with pytest.raises(FormatError, match=r"b\.img: not a NIfTI or MGH file"):
        read(tmp_path / "b.img")


def test_colours_and_complex_numbers_are_rejected(tmp_path: Path) -> None:
    colours = np.zeros((2, 2, 2), dtype=[("R", "u1"), ("G", "u1"), ("B", "u1")])
    with pytest.raises(FormatError, match="not colours or complex numbers"):
        read(save(tmp_path / "a.nii", colours))
    with pytest.raises(FormatError, match="not colours or complex numbers"):
        read(save(tmp_path / "b.nii", np.zeros((2, 2, 2), dtype=np.complex64)))


def test_an_image_without_pixels(tmp_path: Path) -> None:
    content = bytearray(save(tmp_path / "a.nii", LABELS).read_bytes())
    content[42:44] = b"\0\0"  # dim[1]
    (tmp_path / "a.nii").write_bytes(content)
    with pytest.raises(FormatError, match="contains no voxels"):
        read(tmp_path / "a.nii")


def test_mgz_keeps_its_regions_and_its_byte_order(tmp_path: Path) -> None:
    both = np.stack([SHARES, 1 - SHARES], axis=-1)
    nibabel.save(nibabel.MGHImage(both, AFFINE), tmp_path / "a.mgz")
    segmentation = read(tmp_path / "a.mgz")
    assert segmentation.array.dtype == np.dtype(">f4")
    assert np.array_equal(whole(segmentation), np.moveaxis(both, -1, 0))


def test_names_in_the_label_table_of_connectome_workbench_are_read(tmp_path: Path) -> None:
    table = (
        b'<CaretExtension><VolumeInformation><LabelTable><Label Key="0" Red="1" Alpha="0">???'
        b'</Label>\n<Label Key="2" Red="0.5"><![CDATA[CORTEX_LEFT]]></Label>'
        b'<Label Key="7" Red="0.9" Green="0.62" Blue="0">grey &amp; white</Label></LabelTable>'
        b"</VolumeInformation>"
    )
    image = nibabel.Nifti1Image(np.array([[[0, 2, 7]]], np.uint8), np.eye(4))
    image.header.extensions.append(nibabel.nifti1.Nifti1Extension(30, table))
    for name in ("a.nii", "a.nii.gz"):
        nibabel.save(image, tmp_path / name)
        for segmentation in (read(tmp_path / name), read(nibabel.load(tmp_path / name))):
            assert segmentation.names == {0: "???", 2: "CORTEX_LEFT", 7: "grey & white"}
            assert segmentation.colours == {7: "#E69E00"}
            assert whole(segmentation).tolist() == [[[0, 2, 7]]]
