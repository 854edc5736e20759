"""TIFF with tifffile, PNG with Pillow: labels, and in TIFF also probabilities.

Grey values and palette indices are labels; the colours of a palette only say how to show them.
Colour pictures are refused: several colours may stand for one label and none is a number. Axes
are (row, column), with planes in front. Neither format says where the image lies.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.errors import FormatError, InputError
from probdice.files.arrays import regions_of_plain
from probdice.files.model import Format, Image, Payload, Source

__all__ = ["JPEG", "PNG", "TIFF"]

COLOUR = (
    "is a colour picture, expected one label per pixel; store the labels as grey values or "
    "palette indices (8 or 16 bit), not as the colours they are shown in"
)


def _is_png(source: Source) -> bool:
    return source.head[:8] == b"\x89PNG\r\n\x1a\n"


def _read_png(source: Source) -> Image:
    from PIL import Image as Pillow

    with Pillow.open(source.path, formats=["PNG"]) as picture:
        if picture.mode not in ("1", "L", "P", "I", "I;16"):
            raise FormatError(f"{COLOUR} (found mode {picture.mode})")
        array = np.asarray(picture)
    # Pillow stretches grey values of 2 and 4 bits to 8: 1 becomes 85, or 17.
    depth, colour = source.head[24], source.head[25]
    return Image(array // {2: 85, 4: 17}[depth] if colour == 0 and depth in (2, 4) else array)


def _write_png(path: Path, payload: Payload) -> None:
    from PIL import Image as Pillow

    array = payload.array
    if not payload.labels:
        raise InputError("PNG holds whole numbers only; write a map as .nii.gz, .tif or .npy")
    if array.ndim != 2:
        raise InputError(f"PNG holds 2 axes, found {array.ndim}; write .tif or .nii.gz")
    if array.dtype not in (np.uint8, np.uint16):
        if array.size and (array.min() < 0 or array.max() > 65535):
            raise InputError(
                f"PNG holds labels from 0 to 65535, found {array.min()} to {array.max()}; "
                f"write .tif or .npy"
            )
        array = array.astype(np.uint16)
    Pillow.fromarray(np.ascontiguousarray(array)).save(path, format="PNG")


PNG = Format("PNG", (".png",), _is_png, _read_png, (".png",), _write_png)


def _is_tiff(source: Source) -> bool:
    return source.head[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")


def _read_tiff(source: Source) -> Image:
    import tifffile

    with _complaints() as complaints, tifffile.TiffFile(source.path) as file:
        if len(file.series) != 1:
            shapes = ", ".join(str(series.shape) for series in file.series) or "none"
            raise FormatError(f"holds {len(file.series)} images ({shapes}), expected one")
        series = file.series[0]
        page = series.keyframe
        if page.photometric in (2, 5, 6, 8) and page.samplesperpixel > 1:  # RGB, CMYK, YCbCr, Lab
            raise FormatError(COLOUR)
        axes = series.axes
        array: NDArray[Any]
        try:
            array = tifffile.memmap(source.path, mode="r")
        except ValueError:  # compressed or scattered: unpack it
            array = series.asarray()
    if complaints:
        raise FormatError(f"is damaged or incomplete: {complaints[0]}")
    array = array.reshape(series.shape)
    for channel in "CS":
        if channel in axes:
            return Image(array, regions=axes.index(channel))
    # Planes along Z or T are space and time; planes of unknown meaning follow the plain rule.
    plain = array.ndim > 2 and not set(axes) & set("ZT")
    return Image(array, regions=regions_of_plain(array) if plain else None, assumed=True)


@contextmanager
def _complaints() -> Iterator[list[str]]:
    """The errors that tifffile logs in this thread: it reports missing pages there and reads on."""
    errors: list[str] = []
    here = threading.get_ident()

    def keep(record: logging.LogRecord) -> bool:
        if record.thread != here:
            return True
        # A private tag that cannot be read says nothing about the values.
        if record.levelno >= logging.ERROR and "TiffTag" not in record.getMessage():
            errors.append(record.getMessage())
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
    if len(space) < payload.array.ndim - payload.regions:
        raise InputError("TIFF holds images of up to 4 axes; write .npy")
    tifffile.imwrite(
        path, payload.array, photometric="minisblack", metadata={"axes": axes}, compression="zlib"
    )


TIFF = Format("TIFF", (".tif", ".tiff"), _is_tiff, _read_tiff, (".tif", ".tiff"), _write_tiff)


def _is_jpeg(source: Source) -> bool:
    return source.head[:3] == b"\xff\xd8\xff"


def _read_jpeg(source: Source) -> Image:
    raise FormatError(
        "is a JPEG picture; JPEG changes values where they jump, so it cannot hold labels. "
        "Use PNG or TIFF"
    )


JPEG = Format("JPEG", (".jpg", ".jpeg"), _is_jpeg, _read_jpeg)
