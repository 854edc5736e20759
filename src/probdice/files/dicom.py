"""Read DICOM SEG of types BINARY, LABELMAP and FRACTIONAL with highdicom (extra `dicom`).

Arrays are transposed to (column, row, slice). The *segment number* of DICOM becomes the label of a
region, and the *segment label* becomes its name. The label of the background is 0. Overlapping
masks remain separate regions.
"""

import math
from pathlib import Path
from typing import Any, Literal

import numpy as np

from probdice.errors import FormatError
from probdice.files.contained_images import answer_of, contained_image
from probdice.files.containment import ReaderResult, grant
from probdice.files.corrupt import check_memory, check_size, corrupt, library_call, whole_number
from probdice.files.model import Format, Image, Source, as_colour, expect, lps_to_ras, need

__all__ = ["DICOM"]

SEGMENTATIONS = ("1.2.840.10008.5.1.4.1.1.66.4", "1.2.840.10008.5.1.4.1.1.66.7")
SIZES = ("NumberOfFrames", "Rows", "Columns", "BitsAllocated")
UNPACKING = 1 << 16  # largest compression ratio of a frame
# Largest number of slices per stored frame; empty slices are not stored.
MAX_SLICES_PER_FRAME = 4096


def _recognises(source: Source) -> bool:
    return source.head[128:132] == b"DICM"


def _read(source: Source) -> Image:
    expect("highdicom", "dicom", "reading DICOM")
    return contained_image(source, read_segments, library="highdicom")


DICOM = Format("DICOM", (".dcm",), _recognises, _read)


# -- in the child process --------------------------------------------------------------------------


def read_segments(file: str, max_bytes: int) -> ReaderResult:
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
            f"is {kind}, expected DICOM SEG (Segmentation Storage). Segment the image or, for a "
            f"structure set, convert it to DICOM SEG."
        )
    frames = _checked_frames(pydicom, dataset)
    with library_call():
        seg = highdicom.seg.Segmentation.from_dataset(dataset, copy=False)
        geometry = seg.get_volume_geometry()
        fractional = dataset.SegmentationType == "FRACTIONAL"
    if geometry is None:
        raise FormatError(
            "its frames do not form one regular volume. Resample the image to equal slice spacing."
        )
    shape = tuple(int(length) for length in geometry.spatial_shape)
    if shape[0] > MAX_SLICES_PER_FRAME * frames:
        raise corrupt(
            f"its {frames} frames span {shape[0]} slices, expected at most {MAX_SLICES_PER_FRAME} "
            f"per frame"
        )
    numbers = [int(number) for number in seg.segment_numbers]
    needed = math.prod(shape) * (4 * len(numbers) if fractional else 1)
    check_memory(needed, shape, max_bytes)
    grant(needed)
    with library_call():
        if fractional:
            volume = seg.get_volume(combine_segments=False, rescale_fractional=True)
            return _regions(seg, volume, numbers, "probabilities")
        try:
            volume = seg.get_volume(combine_segments=True)
        except RuntimeError as error:
            if "overlap" not in str(error):
                raise
            check_memory(math.prod(shape) * len(numbers), (*shape, len(numbers)), max_bytes)
            grant(math.prod(shape) * (len(numbers) - 1))
            # The failed call leaves a locked table, so the file is opened again.
            seg = highdicom.seg.segread(path)
            volume = seg.get_volume(combine_segments=False)
            return _regions(seg, volume, numbers, "values")
        return Image(
            volume.array.transpose(2, 1, 0),
            affine=_affine(volume),
            label_names={number: _name(seg, number) for number in numbers},
            colours={n: colour for n in numbers if (colour := _colour(seg, n))},
        )


def _checked_frames(pydicom: Any, dataset: Any) -> int:
    """Return the number of frames, after comparing it with the size of the stored values."""
    with library_call():
        values = {name: dataset[name].value for name in SIZES}
        stored = len(dataset["PixelData"].value or b"")  # pydicom returns None for empty values
        # pydicom returns a corrupt UID as text.
        packed = pydicom.uid.UID(str(dataset.file_meta.TransferSyntaxUID)).is_encapsulated
    frames, rows, columns, bits = (whole_number(values[name], name) for name in SIZES)
    shape = (frames, rows, columns)
    check_size(math.prod(shape) * bits // 8, stored, shape, ratio=UNPACKING if packed else 1)
    return frames


def _regions(
    seg: Any, volume: Any, numbers: list[int], kind: Literal["values", "probabilities"]
) -> Image:
    """Create an image with one region per segment."""
    return Image(
        volume.array.transpose(2, 1, 0, 3),
        regions=3,
        kind=kind,
        affine=_affine(volume),
        region_labels=numbers,
        region_names=[_name(seg, number) for number in numbers],
        colours={k: colour for k, n in enumerate(numbers) if (colour := _colour(seg, n))},
    )


def _name(seg: Any, number: int) -> str:
    return str(seg.get_segment_description(number).segment_label)


def _colour(seg: Any, number: int) -> str | None:
    """Return the recommended display colour of a segment, which is stored as CIELAB.

    Colours outside the range of RGB are clipped. Rounding moves even black outside this range.
    """
    value = seg.get_segment_description(number).get("RecommendedDisplayCIELabValue")
    if value is None or len(value) != 3:
        return None
    color = need("highdicom.color", "dicom", "reading DICOM")
    return as_colour(color.CIELabColor.from_dicom_value(value).to_rgb(clip=True), 255)


def _affine(volume: Any) -> Any:
    """Return the affine from (column, row, slice) to RAS.

    The affine of highdicom maps (slice, row, column) to LPS coordinates.
    """
    return lps_to_ras(np.asarray(volume.affine)[:, [2, 1, 0, 3]])
