"""Read DICOM SEG with highdicom (extra `dicom`): BINARY, LABELMAP and FRACTIONAL.

Arrays are transposed to (column, row, slice). Segment numbers are labels, segment labels are names,
and 0 is the background. Overlapping masks stay separate regions.
"""

import math
from pathlib import Path
from typing import Any, Literal

import numpy as np

from probdice.errors import FormatError
from probdice.files.contained_images import answer_of, expect, image_of
from probdice.files.containment import Answer, contained, grant
from probdice.files.corrupt import check_memory, check_size, library_call, whole_number
from probdice.files.model import Format, Image, Source, as_colour, lps_to_ras, need

__all__ = ["DICOM"]

SEGMENTATIONS = ("1.2.840.10008.5.1.4.1.1.66.4", "1.2.840.10008.5.1.4.1.1.66.7")

SIZES = ("NumberOfFrames", "Rows", "Columns", "BitsAllocated")
UNPACKING = 1 << 16  # largest compression ratio of a frame
MOST_EMPTY = 4096  # largest number of slices per stored frame; empty slices are not stored


def _recognises(source: Source) -> bool:
    return source.head[128:132] == b"DICM"


def _read(source: Source) -> Image:
    expect("highdicom", "dicom", "reading DICOM")
    most = source.max_bytes
    return image_of(
        contained(read_segments, source.path, most, library="highdicom", max_bytes=most)
    )


DICOM = Format("DICOM", (".dcm",), _recognises, _read)


# -- in the child process --------------------------------------------------------------------------


def read_segments(file: str, max_bytes: int) -> Answer:
    """Read the segmentation in a file."""
    return answer_of(_image(Path(file), max_bytes))


def _image(path: Path, max_bytes: int) -> Image:
    highdicom = need("highdicom", "dicom", "reading DICOM")
    pydicom = need("pydicom", "dicom", "reading DICOM")
    with library_call():
        dataset = pydicom.dcmread(path)
        storage = str(dataset.get("SOPClassUID", ""))
        kind = pydicom.uid.UID(storage).name if storage else "an object without a class"
    if storage not in SEGMENTATIONS:
        raise FormatError(
            f"is {kind}, expected DICOM SEG (Segmentation Storage). Segment an image, or convert a "
            f"structure set, first"
        )
    frames = _checked_frames(pydicom, dataset)
    with library_call():
        seg = highdicom.seg.Segmentation.from_dataset(dataset, copy=False)
        geometry = seg.get_volume_geometry()
        fractional = dataset.SegmentationType == "FRACTIONAL"
    if geometry is None:
        raise FormatError(
            "its frames do not form one regular volume. Resample it to equal slice spacing"
        )
    slices = int(geometry.spatial_shape[0])
    if slices > MOST_EMPTY * frames:
        raise FormatError(f"is corrupt: its {frames} frames span {slices} slices")
    shape = tuple(int(length) for length in geometry.spatial_shape)
    regions = len(seg.segment_numbers) if fractional else 1
    needed = math.prod(shape) * regions * (4 if fractional else 1)
    check_memory(needed, shape, max_bytes)
    grant(needed)
    with library_call():
        if fractional:
            volume = seg.get_volume(combine_segments=False, rescale_fractional=True)
            return _regions(seg, volume, "probabilities")
        try:
            volume = seg.get_volume(combine_segments=True)
        except RuntimeError as error:
            if "overlap" not in str(error):
                raise
            masks = len(seg.segment_numbers)
            check_memory(math.prod(shape) * masks, (*shape, masks), max_bytes)
            grant(math.prod(shape) * (masks - 1))
            # The failed call leaves a locked table, so the file is opened again.
            seg = highdicom.seg.segread(path)
            return _regions(seg, seg.get_volume(combine_segments=False), "values")
        names = {number: _name(seg, number) for number in seg.segment_numbers}
        colours = {number: _colour(seg, number) for number in seg.segment_numbers}
        affine = _affine(volume)
    return Image(
        volume.array.transpose(2, 1, 0),
        affine=affine,
        label_names=names,
        colours={number: colour for number, colour in colours.items() if colour},
    )


def _checked_frames(pydicom: Any, dataset: Any) -> int:
    """Return the number of frames after comparing it with the stored values."""
    with library_call():
        values = {name: dataset[name].value for name in SIZES}
        stored = len(dataset["PixelData"].value or b"")  # pydicom returns None if it is empty
        # pydicom returns a corrupt UID as text.
        packed = pydicom.uid.UID(str(dataset.file_meta.TransferSyntaxUID)).is_encapsulated
    frames, rows, columns, bits = (whole_number(values[name], name) for name in SIZES)
    shape = (frames, rows, columns)
    check_size(math.prod(shape) * bits // 8, stored, shape, ratio=UNPACKING if packed else 1)
    return frames


def _regions(seg: Any, volume: Any, kind: Literal["values", "probabilities"]) -> Image:
    colours = [_colour(seg, number) for number in seg.segment_numbers]
    return Image(
        volume.array.transpose(2, 1, 0, 3),
        regions=3,
        kind=kind,
        affine=_affine(volume),
        region_labels=[int(number) for number in seg.segment_numbers],
        region_names=[_name(seg, number) for number in seg.segment_numbers],
        colours={k: colour for k, colour in enumerate(colours) if colour},
    )


def _name(seg: Any, number: int) -> str:
    return str(seg.get_segment_description(number).segment_label)


def _colour(seg: Any, number: int) -> str | None:
    """Return the recommended display colour of a segment, which is stored as CIELAB."""
    value = seg.get_segment_description(number).get("RecommendedDisplayCIELabValue")
    if value is None or len(value) != 3:
        return None
    color = need("highdicom.color", "dicom", "reading DICOM")
    return as_colour(color.CIELabColor.from_dicom_value(value).to_rgb(), 255)


def _affine(volume: Any) -> Any:
    """Convert highdicom's affine, which is for (slice, row, column) in LPS."""
    return lps_to_ras(np.asarray(volume.affine)[:, [2, 1, 0, 3]])
