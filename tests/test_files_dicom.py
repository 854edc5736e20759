"""DICOM SEG as highdicom writes it: BINARY, FRACTIONAL, overlap, names."""

from pathlib import Path
from typing import Any

import highdicom
import numpy as np
import pydicom
import pydicom.uid
import pytest
from numpy.typing import NDArray
from pydicom.sr.codedict import codes

from probdice.data.segmentation import Geometry, Segmentation
from probdice.errors import FormatError
from probdice.files import read

AFFINE = np.array([[-2.0, 0, 0, 10], [0, -3, 0, 20], [0, 0, 5, -30], [0, 0, 0, 1]])
HERE = Geometry((4, 3, 2), AFFINE)
LEFT = np.zeros((4, 3, 2), dtype=np.uint8)
LEFT[:2] = 1
TOP = np.zeros((4, 3, 2), dtype=np.uint8)
TOP[3, :, 1] = 1


def whole(segmentation: Segmentation) -> NDArray[Any]:
    placed = segmentation.onto(HERE)
    return np.asarray(placed.array[(slice(None),) * len(placed.array.shape)])


def ct_slice(z: int, study: str, place: str) -> pydicom.Dataset:
    dataset = pydicom.Dataset()
    dataset.file_meta = pydicom.dataset.FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    dataset.SOPClassUID = pydicom.uid.CTImageStorage
    dataset.SOPInstanceUID = pydicom.uid.generate_uid()
    dataset.StudyInstanceUID, dataset.SeriesInstanceUID = study, study + ".1"
    dataset.FrameOfReferenceUID = place
    dataset.PatientID, dataset.PatientName, dataset.StudyID = "1", "No^Body", "1"
    dataset.PatientBirthDate = dataset.PatientSex = dataset.AccessionNumber = ""
    dataset.StudyDate = dataset.StudyTime = dataset.ReferringPhysicianName = ""
    dataset.Modality = "CT"
    dataset.Rows, dataset.Columns = 3, 4
    dataset.PixelSpacing, dataset.SliceThickness = [3.0, 2.0], 5.0
    dataset.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
    dataset.ImagePositionPatient = [-10.0, -20.0, -30.0 + 5 * z]
    return dataset


def save(path: Path, kind: str, regions: dict[str, NDArray[Any]]) -> Path:
    """One segment for each region (x, y, z), in the order given."""
    study, place = str(pydicom.uid.generate_uid())[:60], str(pydicom.uid.generate_uid())
    segments = [
        highdicom.seg.SegmentDescription(
            number, name, codes.SCT.Organ, codes.SCT.Liver, algorithm_type="MANUAL"
        )
        for number, name in enumerate(regions, 1)
    ]
    orange = highdicom.color.CIELabColor(70.61, 16.48, 74.68)  # #E69F00
    segments[0].RecommendedDisplayCIELabValue = list(orange.value)
    stack = np.stack([region.transpose(2, 1, 0) for region in regions.values()], axis=-1)
    highdicom.seg.Segmentation(
        [ct_slice(z, study, place) for z in range(2)],
        stack,
        kind,
        segments,
        series_instance_uid=highdicom.UID(),
        series_number=1,
        sop_instance_uid=highdicom.UID(),
        instance_number=1,
        manufacturer="us",
        manufacturer_model_name="test",
        software_versions="1",
        device_serial_number="1",
    ).save_as(path)
    return path


def test_binary_segments_are_labels_with_names(tmp_path: Path) -> None:
    segmentation = read(save(tmp_path / "a.dcm", "BINARY", {"left": LEFT, "top": TOP}))
    assert segmentation.crisp
    assert segmentation.names == {1: "left", 2: "top"}
    assert segmentation.colours == {1: "#E69F00"}
    assert np.array_equal(whole(segmentation), LEFT + 2 * TOP)


def test_a_colour_that_rgb_cannot_represent_is_clipped(tmp_path: Path) -> None:
    dataset = pydicom.dcmread(save(tmp_path / "a.dcm", "BINARY", {"left": LEFT, "top": TOP}))
    left, top = dataset.SegmentSequence
    left.RecommendedDisplayCIELabValue = [0, 32768, 32768]  # black, rounded to a* = b* = −0.5
    top.RecommendedDisplayCIELabValue = [0xFFFF, 0, 0]  # far more green than RGB can represent
    dataset.save_as(tmp_path / "a.dcm")
    segmentation = read(tmp_path / "a.dcm")
    assert np.array_equal(whole(segmentation), LEFT + 2 * TOP)
    reds = {number: colour[1:3] for number, colour in segmentation.colours.items()}
    assert reds == {1: "00", 2: "00"}


def test_segments_with_the_same_name_are_numbered(tmp_path: Path) -> None:
    path = save(tmp_path / "a.dcm", "BINARY", {"lesion": LEFT, "lesion ": TOP})
    found = read(path)
    assert found.names == {1: "lesion", 2: "lesion"}
    assert (found.label(1), found.label(2)) == ("lesion (1)", "lesion (2)")


def test_overlapping_segments_need_an_option(tmp_path: Path) -> None:
    both = LEFT | TOP
    path = save(tmp_path / "a.dcm", "BINARY", {"left": LEFT, "both": both})
    with pytest.raises(FormatError, match=r'a\.dcm: 12 voxels.*priority=\("left", "both"\)'):
        read(path)
    for sums in ("normalise", "background"):
        segmentation = read(path, sums=sums)
        assert segmentation.regions == ("left", "both", "background")
        assert np.array_equal(whole(segmentation), np.stack([LEFT, both]))


def test_fractions_are_probabilities(tmp_path: Path) -> None:
    left = (LEFT * 0.6 + TOP * 0.2).astype(np.float32)
    segmentation = read(save(tmp_path / "a.dcm", "FRACTIONAL", {"left": left}))
    assert segmentation.reading == "foreground"
    assert segmentation.regions == ("background", "left")
    assert whole(segmentation) == pytest.approx(left, abs=1e-6)  # 153/255 and 51/255
    path = save(tmp_path / "b.dcm", "FRACTIONAL", {"left": left, "top": 0.4 - left / 2})
    segmentation = read(path, sums="background")
    assert segmentation.regions == ("left", "top", "background")
    assert whole(segmentation)[0] == pytest.approx(left, abs=1e-6)


def test_fractions_of_zero_and_one_stay_probabilities(tmp_path: Path) -> None:
    path = save(tmp_path / "a.dcm", "FRACTIONAL", {"left": LEFT.astype(np.float32)})
    assert read(path).regions == ("background", "left")


def test_an_image_is_not_a_segmentation(tmp_path: Path) -> None:
    dataset = ct_slice(0, "1.2.3", "1.2.4")
    pydicom.dcmwrite(tmp_path / "ct.dcm", dataset, enforce_file_format=True)
    with pytest.raises(FormatError, match=r"ct\.dcm: is CT Image Storage, expected DICOM SEG"):
        read(tmp_path / "ct.dcm")
