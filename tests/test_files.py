"""Common tests of every format, with files from third-party writers."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import highdicom
import nibabel
import numpy as np
import pydicom
import pydicom.uid
import pytest
import scipy.io
import SimpleITK as sitk
import tifffile
from numpy.typing import NDArray
from PIL import Image as Pillow
from pydicom.sr.codedict import codes

from probdice.data.segmentation import Geometry, Segmentation
from probdice.errors import FormatError, MissingExtraError, TooLargeError
from probdice.files import FORMATS, read
from probdice.files.model import Format
from probdice.files.sources import open_source, split_inside

# Labels over (4, 3, 2) pixels, no two of whose axes can be confused.
LABELS = np.array(
    [
        [[0, 0], [0, 1], [2, 2]],
        [[0, 1], [1, 1], [2, 2]],
        [[0, 1], [1, 1], [7, 2]],
        [[0, 0], [1, 0], [7, 7]],
    ],
    dtype=np.uint8,
)
PROBABILITIES = np.stack(
    [np.linspace(0.1, 0.5, 24).reshape(4, 3, 2), np.linspace(0.6, 0.3, 24).reshape(4, 3, 2)]
)
PROBABILITIES = np.concatenate([PROBABILITIES, 1 - PROBABILITIES.sum(0)[None]]).astype(np.float32)
# Right to left, anterior to posterior, 2 mm by 3 mm by 5 mm.
AFFINE = np.array([[-2.0, 0, 0, 10], [0, -3, 0, 20], [0, 0, 5, -30], [0, 0, 0, 1]])


def whole(segmentation: Segmentation) -> NDArray[Any]:
    return np.asarray(segmentation.array[(slice(None),) * len(segmentation.array.shape)])


def sitk_image(array: NDArray[Any], *, vector: bool = False) -> Any:
    """`array` (x, y, z[, region]) as an image with the geometry AFFINE."""
    turned = array.transpose(2, 1, 0, 3) if vector else array.transpose(2, 1, 0)
    image = sitk.GetImageFromArray(np.ascontiguousarray(turned), isVector=vector)
    image.SetSpacing((2.0, 3.0, 5.0))
    image.SetOrigin((-10.0, -20.0, -30.0))  # the same place in LPS
    return image


def write_itk(path: Path, array: NDArray[Any]) -> None:
    vector = array.ndim == 4
    values = np.moveaxis(array, 0, -1) if vector else array
    sitk.WriteImage(sitk_image(values, vector=vector), str(path), useCompression=True)


def write_nibabel(path: Path, array: NDArray[Any]) -> None:
    kind = nibabel.MGHImage if path.suffix == ".mgz" else nibabel.Nifti1Image
    values = np.moveaxis(array, 0, -1) if array.ndim == 4 else array
    if path.suffix == ".img":
        kind = nibabel.Nifti1Pair
    image = kind(values, AFFINE)
    nibabel.save(image, path)


def write_hdf5(path: Path, array: NDArray[Any]) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("exported", data=array, chunks=True, compression="gzip")


def write_mat(path: Path, array: NDArray[Any]) -> None:
    values = np.moveaxis(array, 0, -1) if array.ndim == 4 else array
    scipy.io.savemat(path, {"segmentation": values}, do_compression=True)


def write_dicom(path: Path, array: NDArray[Any]) -> None:
    """Write a label map with one segment per label and the geometry AFFINE."""
    segments = [
        highdicom.seg.SegmentDescription(
            segment_number=int(label),
            segment_label=f"segment {label}",
            segmented_property_category=codes.SCT.Organ,
            segmented_property_type=codes.SCT.Liver,
            algorithm_type="MANUAL",
        )
        for label in np.unique(array)
        if label
    ]
    highdicom.seg.Segmentation(
        source_images=ct_slices(array.shape),
        pixel_array=np.ascontiguousarray(array.transpose(2, 1, 0)),
        segmentation_type="LABELMAP",
        segment_descriptions=segments,
        series_instance_uid=highdicom.UID(),
        series_number=1,
        sop_instance_uid=highdicom.UID(),
        instance_number=1,
        manufacturer="us",
        manufacturer_model_name="test",
        software_versions="1",
        device_serial_number="1",
    ).save_as(path)


def ct_slices(shape: tuple[int, ...]) -> list[pydicom.Dataset]:
    """The CT slices from which a DICOM segmentation with the geometry AFFINE was made."""
    study, series, place = pydicom.uid.generate_uid(), pydicom.uid.generate_uid(), highdicom.UID()
    slices = []
    for z in range(shape[2]):
        slice_ = pydicom.Dataset()
        slice_.file_meta = pydicom.dataset.FileMetaDataset()
        slice_.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
        slice_.SOPClassUID = pydicom.uid.CTImageStorage
        slice_.SOPInstanceUID = pydicom.uid.generate_uid()
        slice_.StudyInstanceUID, slice_.SeriesInstanceUID = study, series
        slice_.FrameOfReferenceUID = place
        slice_.PatientID, slice_.PatientName, slice_.StudyID = "1", "No^Body", "1"
        slice_.PatientBirthDate = slice_.PatientSex = slice_.AccessionNumber = ""
        slice_.StudyDate = slice_.StudyTime = slice_.ReferringPhysicianName = ""
        slice_.Modality = "CT"
        slice_.Rows, slice_.Columns = shape[1], shape[0]
        slice_.PixelSpacing, slice_.SliceThickness = [3.0, 2.0], 5.0
        slice_.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
        slice_.ImagePositionPatient = [-10.0, -20.0, -30.0 + 5 * z]
        slices.append(slice_)
    return slices


def write_tiff(path: Path, array: NDArray[Any]) -> None:
    axes = "CZYX" if array.ndim == 4 else "ZYX"
    tifffile.imwrite(path, array, photometric="minisblack", metadata={"axes": axes})


def write_picture(path: Path, array: NDArray[Any]) -> None:
    Pillow.fromarray(array[:, :, 0].copy()).save(path)


@dataclass(frozen=True)
class Kind:
    file: str
    write: Callable[[Path, NDArray[Any]], None]
    probabilities: bool = True
    placed: bool = False
    flat: bool = False


KINDS = (
    Kind("a.nii", write_nibabel, placed=True),
    Kind("a.nii.gz", write_nibabel, placed=True),
    Kind("a.img", write_nibabel, placed=True),
    Kind("a.mgz", write_nibabel, placed=True),
    Kind("a.nrrd", write_itk, placed=True),
    Kind("a.mha", write_itk, placed=True),
    Kind("a.npy", lambda path, array: np.save(path, array)),
    Kind("a.npz", lambda path, array: np.savez_compressed(path, segmentation=array)),
    Kind("a.tif", write_tiff),
    Kind("a.png", write_picture, probabilities=False, flat=True),
    Kind("a.bmp", write_picture, probabilities=False, flat=True),
    Kind("a.h5", write_hdf5),
    Kind("a.mat", write_mat),
    Kind("a.dcm", write_dicom, probabilities=False, placed=True),
)
PROBABILISTIC = [kind for kind in KINDS if kind.probabilities]


def named(kind: Kind) -> str:
    return kind.file


@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_labels_come_back(kind: Kind, tmp_path: Path) -> None:
    kind.write(tmp_path / kind.file, LABELS)
    segmentation = read(tmp_path / kind.file)
    assert segmentation.crisp
    assert segmentation.source == str(tmp_path / kind.file)
    if kind.placed:  # DICOM orders its slices from the last to the first
        segmentation = segmentation.onto(Geometry((4, 3, 2), AFFINE), tolerance=1e-3)
    expected = LABELS[:, :, 0] if kind.flat else LABELS
    assert segmentation.shape == expected.shape
    assert np.array_equal(whole(segmentation), expected)


@pytest.mark.parametrize("kind", PROBABILISTIC, ids=named)
def test_probabilities_come_back(kind: Kind, tmp_path: Path) -> None:
    kind.write(tmp_path / kind.file, PROBABILITIES)
    segmentation = read(tmp_path / kind.file, sums="normalise")
    assert not segmentation.crisp
    assert segmentation.reading == "normalise"
    assert segmentation.regions == (0, 1, 2)
    assert segmentation.shape == (4, 3, 2)
    assert np.array_equal(whole(segmentation), PROBABILITIES)


@pytest.mark.parametrize("kind", PROBABILISTIC, ids=named)
def test_floating_whole_numbers_are_labels(kind: Kind, tmp_path: Path) -> None:
    kind.write(tmp_path / kind.file, LABELS.astype(np.float32))
    segmentation = read(tmp_path / kind.file, ignore=[7])
    assert segmentation.crisp
    assert segmentation.ignore == (7,)
    assert np.array_equal(whole(segmentation), LABELS)


@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_scale_makes_probabilities(kind: Kind, tmp_path: Path) -> None:
    kind.write(tmp_path / kind.file, LABELS)
    segmentation = read(tmp_path / kind.file, scale=10)
    assert segmentation.reading == "foreground"
    assert segmentation.array.dtype == np.float32
    assert whole(segmentation).max() == np.float32(0.7)


@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_geometry_is_in_millimetres_or_absent(kind: Kind, tmp_path: Path) -> None:
    kind.write(tmp_path / kind.file, LABELS)
    geometry = read(tmp_path / kind.file).geometry
    if not kind.placed:
        assert geometry is None
        return
    assert geometry is not None
    assert geometry.shape == (4, 3, 2)
    assert geometry.spacing == pytest.approx((2, 3, 5))
    if kind.file == "a.dcm":  # its slices are ordered from the last to the first
        assert geometry.origin == pytest.approx((10, 20, -25))
    else:
        assert geometry.affine == pytest.approx(AFFINE)


@pytest.mark.parametrize("kind", PROBABILISTIC, ids=named)
def test_a_block_equals_that_of_the_whole(kind: Kind, tmp_path: Path) -> None:
    kind.write(tmp_path / kind.file, PROBABILITIES)
    block = (slice(0, 2), slice(1, 4), slice(0, 2), slice(1, 2))
    expected = PROBABILITIES[0:2, 1:4, 0:2, 1:2]
    assert np.array_equal(read(tmp_path / kind.file).array[block], expected)
    assert np.array_equal(read(tmp_path / kind.file, scale=2).array[block], expected / 2)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.7, 0.97])
@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_a_truncated_file_is_a_named_error(kind: Kind, share: float, tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 250, (40, 30, 20)).astype(np.uint8)
    path = tmp_path / kind.file
    kind.write(path, noise)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(FormatError) as caught:
        segmentation = read(path)
        whole(segmentation)  # some formats detect it only when the values are read
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_content_counts_more_than_the_name(kind: Kind, tmp_path: Path) -> None:
    if kind.file == "a.img":
        pytest.skip("the two halves find each other by their names")
    kind.write(tmp_path / kind.file, LABELS)
    (tmp_path / kind.file).rename(tmp_path / "renamed.bin")
    assert read(tmp_path / "renamed.bin").crisp


@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_a_name_without_the_content_is_rejected(kind: Kind, tmp_path: Path) -> None:
    (tmp_path / kind.file).write_bytes(b"this is not an image at all")
    with pytest.raises(
        FormatError, match=r"not a .* file despite its name: it is text starting with"
    ):
        read(tmp_path / kind.file)


@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_a_file_that_may_not_be_read(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind.write(tmp_path / kind.file, LABELS)

    def refuse(*arguments: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)  # root can read every file, so the error is simulated
    with pytest.raises(FormatError, match=f"{kind.file}: cannot be read: Permission denied"):
        read(tmp_path / kind.file)


def test_every_format_has_the_common_tests(tmp_path: Path) -> None:
    tested = set()
    for kind in KINDS:
        kind.write(tmp_path / kind.file, LABELS)
        source = open_source(str(tmp_path / kind.file))
        tested.add(next(form.name for form in FORMATS if form.recognises(source)))
    without = [form.name for form in FORMATS if form.name not in tested]
    # Formats of surfaces and Zarr have tests of their own; JPEG is recognised to be rejected.
    surfaces = [form.name for form in FORMATS if form.surfaces]
    assert without == [*surfaces, "JPEG", "Zarr"]


def test_importing_loads_no_reader() -> None:
    code = (
        "import sys, probdice.files; "
        "print([m for m in ('nibabel', 'SimpleITK', 'h5py', 'highdicom', 'pydicom', 'scipy', "
        "'tifffile', 'PIL', 'isal', 'numba') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("module", "file", "extra"),
    [("SimpleITK", "a.nrrd", "itk"), ("h5py", "a.h5", "hdf5"), ("highdicom", "a.dcm", "dicom")],
)
def test_a_missing_extra_is_named(
    module: str, file: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    next(kind for kind in KINDS if kind.file == file).write(tmp_path / file, LABELS)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf'{module}.*pip install "probdice\[{extra}\]"'):
        read(tmp_path / file)


def test_an_image_that_does_not_fit_in_memory_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "a.npy", LABELS)

    def exhausted(*arguments: object, **options: object) -> None:
        raise MemoryError

    monkeypatch.setattr(np, "load", exhausted)
    with pytest.raises(TooLargeError, match=r"a\.npy: does not fit in memory"):
        read(tmp_path / "a.npy")


@pytest.mark.parametrize("form", [one for one in FORMATS if one.contents and not one.folder])
def test_a_colon_selects_an_array_of_every_format_with_several(form: Format) -> None:
    for suffix in form.suffixes:
        assert split_inside(f"folder/a{suffix}:first") == (Path(f"folder/a{suffix}"), "first")
