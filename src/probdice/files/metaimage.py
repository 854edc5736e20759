"""MetaImage: .mha, and .mhd with its values in other files.

Arrays are (x, y, z), components and fourth axes are regions, the place is turned to RAS. SimpleITK
is not used to read since damaged headers end it, and the process with it. It writes.
"""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.errors import FormatError
from probdice.files.damage import check_memory, whole_number
from probdice.files.detached import Values, check_values, header_lines, numbered, too_few
from probdice.files.model import Format, Image, Source, lps_to_ras
from probdice.files.packed import unpack_stream
from probdice.files.segments import image_of_segments

__all__ = ["METAIMAGE", "metaimage_values"]

TYPES = {"CHAR": "i1", "UCHAR": "u1", "SHORT": "i2", "USHORT": "u2", "INT": "i4", "UINT": "u4"}
TYPES |= {"LONG": "i4", "ULONG": "u4", "LONG_LONG": "i8", "ULONG_LONG": "u8"}
TYPES |= {"FLOAT": "f4", "DOUBLE": "f8"}
MOST_AXES = 4
OBJECT = re.compile(rb"ObjectType\s*=\s*Image\s")  # the first line that MetaIO writes


def _recognises(source: Source) -> bool:
    head = source.head[:2048]
    # Names of segments may come before the type of the values.
    return b"=" in head and (b"ElementType" in head or OBJECT.match(head) is not None)


def _read(source: Source) -> Image:
    fields, end, names = _header(source.path)
    shape, dtype = _shape(fields), _dtype(fields)
    components = _number(fields, "elementnumberofchannels", 1)
    if components < 1:
        raise FormatError(f"is damaged: it has {components} values a pixel")
    needed = math.prod(shape) * components * dtype.itemsize
    values = _values(source.path, fields, end, names, needed)
    check_values(values, (*shape, components) if components > 1 else shape, needed)
    flat = _flat(values, dtype, needed, shape, source.max_bytes)
    # The components of a pixel lie together, and x runs faster than y.
    array = flat.reshape(components, *shape, order="F")
    array = array[0] if components == 1 else np.moveaxis(array, 0, -1)
    regions = len(shape) if components > 1 else None
    if len(shape) == MOST_AXES:
        if regions is not None:
            raise FormatError(f"has shape {array.shape}: expected at most one axis of regions")
        regions = MOST_AXES - 1
    return image_of_segments(
        array, regions, _affine(fields, len(shape)), fields, max_bytes=source.max_bytes
    )


METAIMAGE = Format("MetaImage", (".mha", ".mhd"), _recognises, _read)


def metaimage_values(path: Path) -> Values:
    """Where the values of a MetaImage lie."""
    fields, end, names = _header(path)
    return _values(path, fields, end, names, 0)


def _header(path: Path) -> tuple[dict[str, str], int, list[str]]:
    """The fields, also under their names in small letters; their end; the files that it lists."""
    fields: dict[str, str] = {}
    with path.open("rb") as stream:
        lines = header_lines(stream)
        for line in lines:
            key, _, value = line.partition("=")
            fields[key.strip()] = fields[key.strip().lower()] = value.strip()
            if key.strip().lower() == "elementdatafile":
                break
        end = stream.tell()
        is_list = fields.get("elementdatafile", "").lower().split()[:1] == ["list"]
        names = [line.strip() for line in lines if line.strip()] if is_list else []
    if not fields.get("elementdatafile"):
        raise FormatError("is damaged or incomplete: its header does not say where the values lie")
    return fields, end, names


def _values(path: Path, fields: dict[str, str], end: int, names: list[str], needed: int) -> Values:
    packed = _true(fields, "compresseddata")
    encoding: Any = "packed" if packed else "raw"
    if fields.get("binarydata", "")[:1] in ("F", "f", "0"):
        encoding = "text"
    packed_size = _number(fields, "compresseddatasize", 0) or None
    name = fields["elementdatafile"]
    if name.lower() == "local":
        return Values(encoding, ((path, end),), packed_size=packed_size)
    start = _number(fields, "headersize", 0)
    names = names or numbered(name) or [name]
    files = tuple(path.parent / name for name in names)
    if start == -1 and len(files) == 1 and files[0].is_file():  # the values are what comes last
        start = max(0, files[0].stat().st_size - needed)
    placed = tuple((file, max(0, start)) for file in files)
    return Values(encoding, placed, packed_size=packed_size if len(files) == 1 else None)


def _flat(
    values: Values, dtype: np.dtype[Any], needed: int, shape: tuple[int, ...], max_bytes: int
) -> NDArray[Any]:
    """All numbers one after the other: mapped where they lie in one file as they are."""
    if values.encoding == "raw" and len(values.files) == 1 and needed:
        file, start = values.files[0]
        return np.memmap(file, dtype, "r", start, (needed // dtype.itemsize,))
    check_memory(needed, shape, max_bytes)
    if values.encoding == "text":
        return _numbers(values, dtype, needed // dtype.itemsize)
    content = np.empty(needed, np.uint8)
    count = 0
    for piece in _pieces(values, needed):
        part = np.frombuffer(piece, np.uint8)[: needed - count]
        content[count : count + part.size] = part
        count += part.size
    if count < needed:
        raise too_few(needed, count)
    return content.view(dtype)


def _pieces(values: Values, needed: int) -> Iterator[bytes]:
    """What the files hold, unpacked."""
    share = needed // len(values.files)
    for file, start, stop in values.spans():
        if values.encoding == "packed":
            yield from unpack_stream(file, start, stop, share)
        else:
            with file.open("rb") as stream:
                stream.seek(start)
                yield stream.read(min(share, stop - start))


def _numbers(values: Values, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    """Numbers that are written as text."""
    words: list[bytes] = []
    for file, start in values.files:
        with file.open("rb") as stream:
            stream.seek(start)
            words += stream.read().split()
    if len(words) < count:
        raise FormatError(f"is damaged or incomplete: it holds {len(words)} numbers of {count}")
    try:
        return np.array([float(word) for word in words[:count]]).astype(dtype)
    except ValueError as error:
        raise FormatError(f"is damaged: a value is no number: {error}") from None


def _shape(fields: dict[str, str]) -> tuple[int, ...]:
    axes = _number(fields, "ndims", 0)
    words = fields.get("dimsize", "").split()
    if not 2 <= axes <= MOST_AXES or len(words) != axes:
        raise FormatError(
            f"is damaged, or no image: its header has {axes} axes and sizes {' '.join(words)!r}, "
            f"expected 2 to {MOST_AXES}"
        )
    shape = tuple(whole_number(word, "DimSize") for word in words)
    if min(shape) < 1:
        raise FormatError(f"holds no pixels: its shape is {shape}")
    return shape


def _dtype(fields: dict[str, str]) -> np.dtype[Any]:
    name = fields.get("elementtype", "").upper().removeprefix("MET_").removesuffix("_ARRAY")
    if name not in TYPES:
        raise FormatError(
            f"holds values of type {fields.get('elementtype', '')!r}, expected one of "
            f"{', '.join(f'MET_{known}' for known in TYPES)}"
        )
    swapped = _true(fields, "binarydatabyteordermsb") or _true(fields, "elementbyteordermsb")
    return np.dtype((">" if swapped else "<") + TYPES[name])


def _affine(fields: dict[str, str], axes: int) -> NDArray[np.float64]:
    """From pixels to millimetres; each row of the file's matrix is the direction of an axis."""
    space = min(axes, 3)
    matrix = _floats(fields, ("transformmatrix", "rotation", "orientation"), axes * axes)
    directions = np.eye(axes) if matrix is None else matrix.reshape(axes, axes).T
    spacing = _floats(fields, ("elementspacing", "elementsize"), axes)
    origin = _floats(fields, ("offset", "position", "origin"), axes)
    affine = np.eye(space + 1)
    affine[:space, :space] = directions[:space, :space]
    if spacing is not None:
        affine[:space, :space] *= spacing[:space]
    if origin is not None:
        affine[:space, space] = origin[:space]
    return lps_to_ras(affine) if space == 3 else affine


def _floats(
    fields: dict[str, str], names: tuple[str, ...], count: int
) -> NDArray[np.float64] | None:
    """The numbers under the first of these names that the header has."""
    name = next((name for name in names if name in fields), None)
    if name is None:
        return None
    try:
        numbers = np.array([float(word) for word in fields[name].split()])
    except ValueError:
        numbers = np.array([])
    if numbers.size != count or not np.all(np.abs(numbers) < 1e30):
        raise FormatError(
            f"is damaged: its {name} must be {count} numbers, found {fields[name][:60]!r}"
        )
    return numbers


def _number(fields: dict[str, str], name: str, default: int) -> int:
    return whole_number(fields.get(name) or default, name)


def _true(fields: dict[str, str], name: str) -> bool:
    return fields.get(name, "")[:1] in ("T", "t", "1")
