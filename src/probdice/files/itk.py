"""Read MetaImage, NRRD and other SimpleITK formats, and write .mha and .nrrd (extra `itk`).

The child process parses files. Arrays are transposed to (x, y, z). The region axis is the axis of
the components or the fourth axis. A .seg.nrrd file of 3D Slicer contains the names of its segments.
Segments in different layers may overlap. MetaImage values remain on disk if they are uncompressed,
binary and in one file.

If a VTK, GIPL or MRC file lacks the image size or some values, SimpleITK returns uninitialised
memory. To detect these files, this module also parses the relevant parts of their headers.
"""

import math
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from probdice.errors import FormatError, InputError
from probdice.files.child_messages import Dtype, Size
from probdice.files.contained_images import answer_of, contained_image
from probdice.files.containment import ReaderResult, grant, run_in_child
from probdice.files.corrupt import DEFLATE_RATIO, check_memory, check_size, corrupt, one_line
from probdice.files.description import description_of
from probdice.files.length_units import in_millimetres
from probdice.files.model import Format, Image, Payload, Source, expect, lps_to_ras, need, rgb_of
from probdice.files.segments import SEGMENT, description_fields, image_of_segments
from probdice.files.sources import open_source
from probdice.files.value_files import (
    Values,
    check_stored,
    check_sums,
    metaimage_values,
    nrrd_values,
)

__all__ = ["ITK", "METAIMAGE", "of_simpleitk"]

READS = (".nrrd", ".nhdr", ".vtk", ".gipl", ".mnc", ".mrc")
WRITES = (".nrrd", ".mha")  # single files; a pair of .mhd and .raw cannot be replaced atomically
MAGIC = {b"NRRD0": "NrrdImageIO", b"# vtk DataFile": "VTKImageIO"}
GZIPPED_READERS = ("MINCImageIO",)  # readers of formats that may be gzipped internally
MAX_BYTES_PER_CHARACTER = 8  # largest number of bytes that one character of text may become
VTK_BINARY = re.compile(rb"\n\s*binary", re.IGNORECASE)
VTK_VALUES = re.compile(
    rb"\n(?:color_)?(?:scalars|vectors|tensors)[^\n]*\n(?:lookup_table[^\n]*\n)?", re.IGNORECASE
)
VTK_LENGTHS = re.compile(rb"\n\s*dimensions\s+(\d+)\s+(\d+)\s+(\d+)", re.IGNORECASE)
NRRD_UNITS = re.compile(r"^space units:(.*)", re.MULTILINE | re.IGNORECASE)
META_OBJECT = re.compile(rb"ObjectType\s*=\s*Image\s")  # the first line that MetaIO writes
GIPL_HEADER = 256  # bytes
MAX_IMAGE_AXES = 4  # three spatial axes and one region axis
BY_NAME = (".mnc", ".mrc", ".gipl", ".gipl.gz")  # recognised by suffix only


def _io(source: Source) -> str:
    """Return the name of ITK's reader for a file, or "" if this module does not read the file.

    If possible, the first bytes determine the reader. Otherwise, SimpleITK determines the reader of
    a file whose name ends in one of `BY_NAME`.
    """
    head = source.head.lstrip()
    for start, io in MAGIC.items():
        if head.startswith(start):
            return io
    if _is_metaimage(source):
        return "MetaImageIO"
    if source.name.endswith(BY_NAME):
        return str(_run_in_child(source, find_io, returns=str).value)
    return ""


def _is_metaimage(source: Source) -> bool:
    head = source.head[:2048]
    # Names of segments may precede the type of the values.
    return b"=" in head and (b"ElementType" in head or META_OBJECT.match(head) is not None)


def _recognises(source: Source) -> bool:
    return _io(source) != ""


def _read(source: Source) -> Image:
    io = _io(source)
    if io == "MetaImageIO" and metaimage_values(source.path).stays_on_disk:
        return _mapped(source)
    expect("SimpleITK", "itk", "reading this format")
    return contained_image(source, read_image, io, library="SimpleITK")


def _run_in_child(source: Source, reader: Any, *, returns: Any) -> ReaderResult:
    expect("SimpleITK", "itk", "reading this format")
    max_bytes = source.max_bytes
    return run_in_child(
        reader, source.path, returns=returns, library="SimpleITK", max_bytes=max_bytes
    )


class _Header(TypedDict):
    """The header of a MetaImage."""

    shape: list[Size]
    dtype: Dtype
    components: Size
    metadata: list[tuple[str, str]]


def _mapped(source: Source) -> Image:
    """Memory-map a MetaImage with uncompressed values in one file."""
    answer = _run_in_child(source, read_metaimage_header, returns=_Header)
    shape, components = tuple(answer.value["shape"]), answer.value["components"]
    affine = answer.arrays[0] if answer.arrays else None
    if not all((*shape, components)) or affine is None or affine.shape not in ((3, 3), (4, 4)):
        raise corrupt("the result of SimpleITK is invalid")
    kind = np.dtype(answer.value["dtype"])
    needed = math.prod(shape) * components * kind.itemsize
    values = metaimage_values(source.path, needed)
    check_stored(values, (*shape, components) if components > 1 else shape, needed)
    ((file, start),) = values.files
    flat = np.memmap(file, kind.newbyteorder(values.order), "r", start, (needed // kind.itemsize,))
    # The components of a voxel are adjacent, and x varies faster than y.
    array = flat.reshape(components, *shape, order="F")
    array = array[0] if components == 1 else np.moveaxis(array, 0, -1)
    regions = _regions(array, len(shape), components)
    metadata = dict(answer.value["metadata"])
    return image_of_segments(array, regions, affine, metadata, max_bytes=source.max_bytes)


def of_simpleitk(image: Any, *, max_bytes: int, no_geometry: bool = False) -> Image:
    """Convert a SimpleITK image to an `Image`. With `no_geometry`, ignore the geometry."""
    sitk = need("SimpleITK", "itk", "reading a SimpleITK image")
    with _itk_call():
        array = _transposed(sitk, image)
    regions = _regions(array, image.GetDimension(), image.GetNumberOfComponentsPerPixel())
    affine = None if no_geometry else _affine(image)
    return image_of_segments(array, regions, affine, _segments_in(image), max_bytes=max_bytes)


def _regions(array: NDArray[Any], axes: int, components: int) -> int | None:
    """Return the region axis (the axis of the components or the fourth axis), or None."""
    if axes == 4 and components > 1:
        raise FormatError(f"has shape {array.shape}: expected at most one region axis")
    if axes == 4:
        return 3
    return axes if components > 1 else None


def _segments_in(image: Any) -> dict[str, str]:
    keys = [key for key in image.GetMetaDataKeys() if SEGMENT.fullmatch(key)]
    return {key: image.GetMetaData(key) for key in keys}


def _write(path: Path, payload: Payload) -> None:
    sitk = need("SimpleITK", "itk", "writing this format")
    array = payload.array
    axes = array.ndim - payload.regions
    if axes not in (2, 3):
        raise InputError(f"NRRD and MHA store images with 2 or 3 axes, found {axes}. Write .npz.")
    if array.dtype == np.float16:
        array = array.astype(np.float32)
    # (region, x, y, z) becomes (z, y, x) with the regions as components.
    transposed = np.ascontiguousarray(array.T)
    image = sitk.GetImageFromArray(transposed, isVector=payload.regions)
    if payload.geometry is not None:
        affine = np.array(payload.geometry.affine)
        if axes == 3:
            affine = lps_to_ras(affine)
        spacing = np.linalg.norm(affine[:-1, :-1], axis=0)
        image.SetSpacing(spacing.tolist())
        image.SetOrigin(affine[:-1, -1].tolist())
        image.SetDirection((affine[:-1, :-1] / spacing).ravel().tolist())
    if payload.labels:
        for number, (label, name) in enumerate(sorted(payload.label_names.items())):
            image.SetMetaData(f"Segment{number}_ID", f"Segment_{number + 1}")
            image.SetMetaData(f"Segment{number}_LabelValue", str(label))
            image.SetMetaData(f"Segment{number}_Layer", "0")
            image.SetMetaData(f"Segment{number}_Name", name)
            if colour := payload.colours.get(label):
                shares = " ".join(f"{share:.6g}" for share in rgb_of(colour))
                image.SetMetaData(f"Segment{number}_Color", shares)
    # MetaIO truncates non-ASCII characters at the end of a name.
    ascii_names = "".join(payload.label_names.values()).isascii()
    description = description_of(payload, names=not ascii_names, affine=payload.geometry is None)
    for key, text in description_fields(description).items():
        image.SetMetaData(key, text)
    try:
        sitk.WriteImage(image, str(path), useCompression=True)
    except RuntimeError as error:  # SimpleITK's error for a full disk or a missing folder
        raise FormatError(f"cannot be written by SimpleITK: {one_line(error)}") from error


METAIMAGE = Format("MetaImage", (".mha", ".mhd"), _is_metaimage, _read)
ITK = Format("NRRD or another ITK format", READS, _recognises, _read, WRITES, _write)


# -- in the child process --------------------------------------------------------------------------


def find_io(file: str) -> ReaderResult:
    """Return the name of ITK's reader for a file, or "" if no reader supports the file."""
    sitk = need("SimpleITK", "itk", "reading this format")
    return ReaderResult(sitk.ImageFileReader.GetImageIOFromFileName(file))


def read_image(file: str, io: str, max_bytes: int) -> ReaderResult:
    """Read the image in a file."""
    sitk = need("SimpleITK", "itk", "reading this format")
    source = open_source(file, max_bytes)
    reader = _reader(sitk, file, io)
    _check_header(sitk, reader, source, io)
    with _itk_call():
        image = reader.Execute()
    no_geometry = source.head.startswith(b"NRRD") and b"space directions:" not in source.head
    result = of_simpleitk(image, max_bytes=max_bytes, no_geometry=no_geometry)
    if io == "NrrdImageIO" and result.affine is not None:
        result = replace(result, affine=_with_units(result.affine, source.head))
    return answer_of(result)


def _with_units(affine: NDArray[np.float64], head: bytes) -> NDArray[np.float64]:
    """Convert an affine to millimetres. SimpleITK ignores the field `space units` of NRRD."""
    header = head.partition(b"\n\n")[0].decode("utf-8", "replace")
    field = NRRD_UNITS.search(header)
    units = re.findall(r'"([^"]*)"', field[1]) if field else []
    if len(units) != len(affine) - 1:
        return affine
    return np.diag([*map(in_millimetres, units), 1.0]) @ affine


def read_metaimage_header(file: str) -> ReaderResult:
    """Read the header of a MetaImage."""
    sitk = need("SimpleITK", "itk", "reading this format")
    reader = _reader(sitk, file, "MetaImageIO")
    return ReaderResult(
        {
            "shape": _shape(reader),
            "dtype": _dtype(sitk, reader).str,
            "components": reader.GetNumberOfComponents(),
            "metadata": list(_segments_in(reader).items()),
        },
        (_affine(reader),),
    )


def _reader(sitk: Any, file: str, io: str) -> Any:
    """Return SimpleITK's reader after it has read the header."""
    reader = sitk.ImageFileReader()
    reader.SetFileName(file)
    reader.SetImageIO(io)
    with _itk_call():
        reader.ReadImageInformation()
    return reader


def _shape(reader: Any) -> tuple[int, ...]:
    shape = tuple(int(length) for length in reader.GetSize())
    if min(shape, default=0) < 1:
        raise FormatError(f"contains no voxels: its shape is {shape}")
    if len(shape) > MAX_IMAGE_AXES:
        raise FormatError(f"has shape {shape}: expected at most {MAX_IMAGE_AXES} axes")
    return shape


@contextmanager
def _itk_call() -> Iterator[None]:
    """Convert SimpleITK's errors to `FormatError`."""
    try:
        yield
    except RuntimeError as error:
        # Only NRRD gives useful reasons; other formats report "Success" or "No such file".
        reasons = [line for line in str(error).splitlines() if line.startswith("[nrrd]")]
        raise corrupt(": ".join(["SimpleITK cannot read it", *reasons[-1:]])) from error


def _dtype(sitk: Any, reader: Any) -> np.dtype[Any]:
    """Return the data type of an image."""
    name = sitk.GetPixelIDValueAsString(reader.GetPixelID())
    match = re.fullmatch(r"(?:vector of )?(\d+)-bit (unsigned|signed|float)(?: integer)?", name)
    if match is None:
        raise FormatError(
            f"contains values of an unsupported type ({name}), expected integers or floating-point "
            f"numbers"
        )
    kind = {"unsigned": "u", "signed": "i", "float": "f"}[match[2]]
    return np.dtype(f"{kind}{int(match[1]) // 8}")


def _check_header(sitk: Any, reader: Any, source: Source, io: str) -> None:
    """Compare the header with the stored values before SimpleITK allocates memory."""
    packed = source.gzipped
    voxels = None if packed else _voxels_in_header(source.head, io)
    if voxels == 0 or voxels not in (None, math.prod(reader.GetSize())):
        raise corrupt("its header has no valid number of voxels")
    shape = _shape(reader)
    components = reader.GetNumberOfComponents()
    needed = math.prod(shape) * components * _dtype(sitk, reader).itemsize
    values: Values | None = None
    if io == "NrrdImageIO":
        values = nrrd_values(source.path)
    elif io == "MetaImageIO":
        values = metaimage_values(source.path, needed)
    if values is not None:
        check_stored(values, (*shape, components) if components > 1 else shape, needed)
    else:
        stored = source.path.stat().st_size - (0 if packed else _header_size(source.head, io))
        ratio = 1
        if packed or io in GZIPPED_READERS:
            ratio = DEFLATE_RATIO
        elif io == "VTKImageIO" and not VTK_BINARY.search(source.head):
            ratio = MAX_BYTES_PER_CHARACTER
        check_size(needed, stored, shape, ratio=ratio)
    check_memory(needed, shape, source.max_bytes)
    grant(needed)
    if values is not None:
        check_sums(values, needed)


def _voxels_in_header(head: bytes, io: str) -> int | None:
    """Return the number of voxels that a VTK, GIPL or MRC header declares, or None.

    Return None for other formats. Return 0 if the header lacks the image size, because SimpleITK
    would then use uninitialised memory.
    """
    if io == "VTKImageIO":
        lengths = VTK_LENGTHS.search(head)
        return math.prod(int(length) for length in lengths.groups()) if lengths else 0
    if io == "GiplImageIO":
        if len(head) < GIPL_HEADER:
            return 0
        return math.prod(max(1, int(length)) for length in struct.unpack_from(">4H", head))
    if io == "MRCImageIO":
        return math.prod(_mrc_number(head, offset) for offset in (0, 4, 8))
    return None


def _mrc_number(head: bytes, offset: int) -> int:
    order: Literal["little", "big"] = "big" if head[212:213] == b"\x11" else "little"
    return max(0, int.from_bytes(head[offset : offset + 4], order, signed=True))


def _header_size(head: bytes, io: str) -> int:
    """Return the size of a VTK, GIPL or MRC header, and 0 for other formats.

    In these three formats, SimpleITK does not detect missing values.
    """
    if io == "MRCImageIO":
        return 1024 + _mrc_number(head, 92)
    if io == "GiplImageIO":
        return GIPL_HEADER
    values = VTK_VALUES.search(head) if io == "VTKImageIO" else None
    return values.end() if values else 0


class _ImageMemory:
    """A view of an image's memory that keeps the image alive, unlike SimpleITK's own view."""

    def __init__(self, image: Any, view: NDArray[Any]) -> None:
        self.image = image
        self.__array_interface__ = view.__array_interface__


def _transposed(sitk: Any, image: Any) -> NDArray[Any]:
    """Return a view of the values with axes (x, y, z), followed by the components."""
    array: NDArray[Any] = np.asarray(_ImageMemory(image, sitk.GetArrayViewFromImage(image)))
    axes = tuple(range(image.GetDimension()))
    return array.transpose(axes[::-1] + tuple(range(len(axes), array.ndim)))


def _affine(image: Any) -> NDArray[np.float64]:
    dimension = image.GetDimension()
    space = min(dimension, 3)
    direction = np.reshape(image.GetDirection(), (dimension, dimension))[:space, :space]
    affine = np.eye(space + 1)
    spacing, origin = image.GetSpacing()[:space], image.GetOrigin()[:space]
    if not np.all(np.isfinite([*spacing, *origin])) or not np.all(np.isfinite(direction)):
        raise corrupt(f"its origin {origin}, its spacing {spacing} or its direction is not finite")
    affine[:space, :space] = direction * np.array(spacing)
    affine[:space, space] = origin
    if np.linalg.matrix_rank(affine) <= space:
        raise corrupt(
            f"its spacing is {spacing} and its direction is {direction.tolist()}, which do not "
            "form an invertible matrix"
        )
    return lps_to_ras(affine) if space == 3 else affine
