"""Read and write TIFF (with tifffile) and PNG (with Pillow), and read BMP (with Pillow).

Grey values and palette indices are labels. Palette colours are the display colours of labels. TIFF
may also contain probabilities. Colour images are rejected because a colour is not a label. Apart
from the region axis, the last two axes are (row, column). In a file with several planes, the axes
that number the planes come first. `write` stores the geometry in the description. The spacing in
other metadata is ignored.
"""

import io
import logging
import math
import re
import struct
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.errors import FormatError, InputError
from probdice.files.corrupt import (
    DEFLATE_RATIO,
    check_memory,
    check_size,
    corrupt,
    library_call,
    whole_number,
)
from probdice.files.description import DESCRIPTION, description_of, with_description
from probdice.files.model import Format, Image, Payload, Source, as_colour
from probdice.files.numpy_files import regions_of_plain
from probdice.files.packed import unpack_pieces

__all__ = ["BMP", "JPEG", "PNG", "TIFF", "pixels", "png_picture", "sized_picture"]

COLOUR = (
    "is a colour image{}, expected one label per pixel. Save the labels as grey values or palette "
    "indices (8 or 16 bit), not as display colours."
)

COLOURS = (2, 5, 6, 8)  # TIFF codes of RGB, CMYK, YCbCr and Lab
OME_PIXELS = re.compile(r"<(?:\w+:)?Pixels\b[^>]*")
OME_SIZE = re.compile(r"\bSize[CTZ]\s*=\s*[\"'](\d{1,18})[\"']")
# The passes of an interlaced PNG: the first pixel of each pass, and the steps between its pixels.
ADAM7 = (
    *((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2)),
    (0, 1, 1, 2),
)
STRIP = 1 << 20  # number of pixels that are copied from Pillow at once
NO_PALETTE: NDArray[Any] = np.zeros((0, 3), np.uint8)
GREY_MODES = ("1", "L", "P", "I", "I;16")  # Pillow modes of grey values and palette indices
LZW = 5  # TIFF compression code
# Largest compression ratio by TIFF code: none, LZW, deflate (two codes), PackBits.
UNPACKING = {1: 1, LZW: 4096, 8: DEFLATE_RATIO, 32946: DEFLATE_RATIO, 32773: 128}
BMP_HEADERS = (12, 40, 52, 56, 64, 108, 124)  # possible header sizes in bytes
BMP_UNPACKING = 128  # largest compression ratio: a run of 255 pixels takes two bytes
# Largest compression ratio of other codes, such as Zstandard and fax.
MAX_COMPRESSION_RATIO = 1 << 16


def _is_png(source: Source) -> bool:
    return source.head[:8] == b"\x89PNG\r\n\x1a\n"


def _read_png(source: Source) -> Image:
    with png_picture(source) as picture:
        image = _labels_of(picture)
    # Pillow scales grey values of 2 and 4 bits to 8 bits, so 1 becomes 85 or 17.
    depth, colour = source.head[24], source.head[25]
    if colour == 0 and depth in (2, 4):
        image = replace(image, array=np.asarray(image.array) // {2: 85, 4: 17}[depth])
    return with_description(image, _png_description(source.path.read_bytes()))


def _png_description(content: bytes) -> str:
    """Return the description that `write` stores in a PNG, or "" if there is none."""
    match = re.search(rb"(.{4})tEXt" + DESCRIPTION.encode() + rb"\0", content, re.DOTALL)
    if match is None:
        return ""
    start, length = match.start() + 8, int.from_bytes(match[1], "big")
    return content[match.end() : start + length].decode("latin-1")


def _labels_of(picture: Any) -> Image:
    """Return the grey values or palette indices of a Pillow image."""
    mode = picture.mode
    if mode not in GREY_MODES:
        raise FormatError(COLOUR.format(f" or has transparency (found mode {mode})"))
    palette = np.reshape(picture.getpalette() or [], (-1, 3)) if mode == "P" else NO_PALETTE
    return Image(pixels(picture), colours=_palette_colours(palette, 255))


@contextmanager
def png_picture(source: Source) -> Iterator[Any]:
    """Open a PNG file with Pillow after verifying its checksums."""
    from PIL import PngImagePlugin

    stream = io.BytesIO(_critical_chunks(source.path.read_bytes(), source.max_bytes))
    # Pillow's `open` is not used, because it rejects large images even if the file is large too.
    with library_call(), PngImagePlugin.PngImageFile(stream) as picture:
        picture.load()
        stream.close()  # frees memory, at most the size of the decoded image
        yield picture


@contextmanager
def sized_picture(kind: Any, source: Source, ratio: int) -> Iterator[Any]:
    """Load an image with a Pillow class after comparing the image size with the file size.

    `ratio` is the largest compression ratio of the format.
    """
    with library_call(), kind(source.path) as picture:
        shape = (picture.height, picture.width)
        needed = math.prod(shape) * len(picture.getbands())
        check_size(needed, source.path.stat().st_size, shape, ratio=ratio)
        check_memory(needed, shape, source.max_bytes)
        picture.load()
        yield picture


def pixels(picture: Any, mode: str = "") -> NDArray[Any]:
    """Return the values of a Pillow image, converted to `mode` if `mode` is not empty.

    Only a few rows are converted at a time, because Pillow makes two temporary copies of them.
    """
    width, height = picture.size
    step = max(1, STRIP // width)
    array = None
    for row in range(0, height, step):
        part = picture.crop((0, row, width, min(row + step, height)))
        strip = np.asarray(part.convert(mode) if mode else part)
        if array is None:
            array = np.empty((height, *strip.shape[1:]), strip.dtype)
        array[row : row + len(strip)] = strip
    assert array is not None  # an image has at least one row
    return array


def _palette_colours(palette: NDArray[Any], max_value: int) -> dict[int, str]:
    """Return the colours of palette indices, or {} if the palette is grey."""
    if (palette == palette[:, :1]).all():
        return {}
    colours = {k: as_colour(row, max_value) for k, row in enumerate(palette.tolist())}
    return {k: colour for k, colour in colours.items() if colour}


def _critical_chunks(content: bytes, max_bytes: int) -> bytes:
    """Verify all checksums of a PNG file, and return the file without its ancillary chunks.

    Pillow does not verify the checksums of the values, and it rejects images with long comments.
    """
    view = memoryview(content)
    chunks, values = [view[:8]], []
    start = 8
    kind = b""
    while kind != b"IEND":
        length = int.from_bytes(view[start : start + 4], "big")
        stop = start + 12 + length
        kind = bytes(view[start + 4 : start + 8])
        if stop > len(content):
            raise corrupt(f"it ends after {len(content)} bytes, within a chunk")
        expected = int.from_bytes(view[stop - 4 : stop], "big")
        if zlib.crc32(view[start + 4 : stop - 4]) != expected:
            name = kind.decode() if kind.isalpha() else repr(kind)
            raise corrupt(f"chunk {name} at byte {start} has a wrong checksum")
        if kind in (b"IHDR", b"PLTE", b"IDAT", b"IEND"):
            chunks.append(view[start:stop])
            if kind == b"IDAT":
                values.append(view[start + 8 : stop - 4])
        start = stop
    if bytes(chunks[1][4:8]) != b"IHDR" or len(chunks[1]) != 25:
        raise corrupt("it does not start with a header")
    width, height, depth, colour, interlaced = struct.unpack(">IIBB2xB", chunks[1][8:21])
    samples = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}.get(colour, 1)
    shape = (height, width)
    needed = _rows_size(width, height, depth * samples, bool(interlaced))
    check_size(needed, sum(map(len, values)), shape, ratio=DEFLATE_RATIO)
    check_memory(width * height * (2 if depth == 16 else 1), shape, max_bytes)
    # Pillow would fill missing rows with zeros, so the decompressed size is checked first.
    unpacked = 0
    for piece in unpack_pieces(values):
        unpacked += len(piece)
        if unpacked >= needed:
            return b"".join(chunks)
    raise corrupt("its compressed values end too early")


def _rows_size(width: int, height: int, bits: int, interlaced: bool) -> int:
    """Return the size of all rows of a PNG in bytes, including one filter byte per row."""
    size = 0
    for x, y, dx, dy in ADAM7 if interlaced else ((0, 0, 1, 1),):
        columns, rows = -(-(width - x) // dx), -(-(height - y) // dy)
        if columns > 0 and rows > 0:
            size += rows * (1 + (columns * bits + 7) // 8)
    return size


def _write_png(path: Path, payload: Payload) -> None:
    from PIL import Image as Pillow
    from PIL.PngImagePlugin import PngInfo

    array = payload.array
    if not payload.labels:
        raise InputError(
            "PNG stores only whole numbers. Write probabilities and maps as .nii.gz or .tif."
        )
    if array.ndim != 2:
        raise InputError(
            f"PNG stores images with 2 axes, found {array.ndim}. Write .tif or .nii.gz."
        )
    if array.dtype not in (np.uint8, np.uint16):
        if array.size and (array.min() < 0 or array.max() > 65535):
            raise InputError(
                f"PNG stores labels from 0 to 65535, found {array.min()} to {array.max()}. "
                f"Write .tif or .npz."
            )
        array = array.astype(np.uint16)
    texts = PngInfo()
    description = description_of(payload, names=True, affine=payload.geometry is not None)
    if description:
        texts.add_text(DESCRIPTION, description)
    Pillow.fromarray(np.ascontiguousarray(array)).save(path, format="PNG", pnginfo=texts)


PNG = Format("PNG", (".png",), _is_png, _read_png, (".png",), _write_png)


def _is_tiff(source: Source) -> bool:
    return source.head[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")


def _read_tiff(source: Source) -> Image:
    import tifffile

    with _logged_errors() as errors:
        with library_call():
            file = tifffile.TiffFile(source.path)
        with file:
            _check_planes(file)
            with library_call():
                shapes = [series.shape for series in file.series]
            if len(shapes) != 1:
                listed = ", ".join(map(str, shapes[:3])) or "none"
                more = f", … {len(shapes) - 3} more" if len(shapes) > 3 else ""
                stack = "Save one image per file"
                if len(set(shapes)) == 1:  # tifffile reads pages that were written separately
                    stack += ", or save the slices of one image as one stack"
                raise FormatError(
                    f"contains {len(shapes)} images ({listed}{more}), expected one. {stack}."
                )
            series = file.series[0]
            with library_call():
                page = series.keyframe
                axes = series.axes
                colour = page.photometric in COLOURS and page.samplesperpixel > 1
                colours = page.colormap
            palette = NO_PALETTE
            if colours is not None:
                if not isinstance(colours, np.ndarray) or colours.ndim != 2 or len(colours) != 3:
                    raise corrupt("its colour map does not consist of red, green and blue")
                palette = colours.T
            if colour:
                raise FormatError(COLOUR.format(""))
            array = _tiff_values(source, series, file.byteorder)
            with library_call():
                metadata = file.shaped_metadata or ({},)
    if errors:
        raise corrupt(errors[0])
    return with_description(_tiff_image(array, axes, palette), metadata[0].get(DESCRIPTION))


def _tiff_image(array: NDArray[Any], axes: str, palette: NDArray[Any]) -> Image:
    """Create an image from values and tifffile's names of their axes."""
    for channel in "CS":
        if channel in axes:
            return Image(array, regions=axes.index(channel))
    # Z is a spatial axis, and T is time. Without Z and T, the rule for plain arrays applies.
    plain = array.ndim > 2 and not set(axes) & set("ZT")
    return Image(
        array,
        regions=regions_of_plain(array) if plain else None,
        assumed=True,
        colours=_palette_colours(palette, 65535),
    )


def _check_planes(file: Any) -> None:
    """Reject cyclic pages, and OME metadata that describe more planes than the file has bytes.

    Otherwise, tifffile would follow a cycle of pages forever, or allocate a list of all planes.
    """
    with library_call():
        len(file.pages)  # detects cycles
        description = file.pages.first.description if file.is_ome else ""
        size = file.filehandle.size
    for pixels in OME_PIXELS.findall(description):
        planes = math.prod(int(number) for number in OME_SIZE.findall(pixels))
        if planes > size:
            raise corrupt(
                f"its OME metadata describe {planes} planes, but the file has {size} bytes"
            )


def _tiff_values(source: Source, series: Any, byteorder: str) -> NDArray[Any]:
    """Memory-map contiguous uncompressed values, and decompress all other values."""
    with library_call():
        shape, dtype, offset = tuple(series.shape), series.dtype, series.dataoffset
    if dtype is None:
        raise FormatError("contains values of a type that tifffile does not support")
    if not all(isinstance(length, int | np.integer) for length in shape):  # ImageJ metadata
        raise corrupt(f"its shape must contain whole numbers, found {shape}")
    needed = math.prod(shape) * dtype.itemsize
    if offset is not None:
        offset = whole_number(offset, "StripOffsets")
        check_size(needed, source.path.stat().st_size - offset, shape)
        return np.memmap(source.path, np.dtype(byteorder + dtype.char), "r", offset, shape)
    with library_call():
        compression = series.keyframe.compression
        pages = [page for page in series.pages if page is not None]
        complete = len(pages) == len(series.pages)
        stored = 0
        for page in pages:
            for start, length in zip(page.dataoffsets, page.databytecounts, strict=True):
                stored += whole_number(length, "StripByteCounts")
                start = whole_number(start, "StripOffsets")
                complete &= 0 < length <= page.parent.filehandle.size - start
    if not complete:  # tifffile would fill in zeros
        raise FormatError(
            "is corrupt, incomplete or sparse: parts of its values are not in the file. Write it "
            "again, not as a sparse file."
        )
    compression = whole_number(compression, "compression")
    check_size(needed, stored, shape, ratio=UNPACKING.get(compression, MAX_COMPRESSION_RATIO))
    check_memory(needed, shape, source.max_bytes)
    if compression == LZW:
        _check_lzw(source, pages)
    with library_call():
        return np.asarray(series.asarray()).reshape(shape)


def _check_lzw(source: Source, pages: Sequence[Any]) -> None:
    """Reject LZW streams with undefined codes, which crash imagecodecs."""
    from probdice.files.lzw import is_valid

    content = np.memmap(source.path, np.uint8, "r")
    for page in pages:
        for start, length in zip(page.dataoffsets, page.databytecounts, strict=True):
            packed = np.array(content[int(start) : int(start) + int(length)])
            if page.keyframe.fillorder == 2:  # lowest bit first
                packed = np.packbits(np.unpackbits(packed, bitorder="little"))
            if not is_valid(packed):
                raise corrupt("a part of its values is not a valid LZW stream")


@contextmanager
def _logged_errors() -> Iterator[list[str]]:
    """Raise an error if tifffile logs a problem in this thread, such as a missing page."""
    errors: list[str] = []
    this_thread = threading.get_ident()

    def keep(record: logging.LogRecord) -> bool:
        if record.thread != this_thread:
            return True
        # An unreadable private tag does not affect the values.
        if record.levelno >= logging.ERROR and "TiffTag" not in record.getMessage():
            errors.append(record.getMessage())
            # With a corrupt page count, tifffile may log one error per page. Stop at the first.
            raise corrupt(errors[0])
        return False

    logger = logging.getLogger("tifffile")
    logger.addFilter(keep)
    try:
        yield errors
    finally:
        logger.removeFilter(keep)


def _write_tiff(path: Path, payload: Payload) -> None:
    import tifffile

    space = "TZYX"[-(payload.array.ndim - payload.regions) :]
    axes = "C" + space if payload.regions else space
    if payload.array.ndim < 2 or len(space) < payload.array.ndim - payload.regions:
        raise InputError(
            f"TIFF stores images with 2 to 4 axes, found {payload.array.ndim - payload.regions}. "
            f"Write .npz."
        )
    metadata = {"axes": axes}
    description = description_of(
        payload, names=True, affine=payload.geometry is not None, shape=1 in payload.shape
    )
    if description:
        metadata[DESCRIPTION] = description
    tifffile.imwrite(
        path, payload.array, photometric="minisblack", metadata=metadata, compression="zlib"
    )


TIFF = Format("TIFF", (".tif", ".tiff"), _is_tiff, _read_tiff, (".tif", ".tiff"), _write_tiff)


def _is_jpeg(source: Source) -> bool:
    return source.head[:3] == b"\xff\xd8\xff"


def _read_jpeg(source: Source) -> Image:
    raise FormatError(
        "is a JPEG image. JPEG compression changes label values at edges. Use PNG or TIFF."
    )


JPEG = Format("JPEG", (".jpg", ".jpeg"), _is_jpeg, _read_jpeg)


def _is_bmp(source: Source) -> bool:
    size = int.from_bytes(source.head[14:18], "little")
    return source.head[:2] == b"BM" and size in BMP_HEADERS


def _read_bmp(source: Source) -> Image:
    from PIL import BmpImagePlugin

    with sized_picture(BmpImagePlugin.BmpImageFile, source, BMP_UNPACKING) as picture:
        return _labels_of(picture)


BMP = Format("BMP", (".bmp",), _is_bmp, _read_bmp)
