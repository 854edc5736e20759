"""Images to look at under a segmentation: grey values, or the colours of a photograph."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from probdice.data.geometry import Geometry
from probdice.data.segmentation import Array, reordered
from probdice.errors import FormatError, GeometryError, InputError, Option
from probdice.files.corrupt import check_memory, check_size, library_call
from probdice.files.lazy import Scaled
from probdice.files.model import Image, Source
from probdice.files.raster import pixels, png_picture

__all__ = ["Underlay", "laid_on", "photograph", "underlay_of"]

JPEG_RATIO = 2048  # a byte of a JPEG gives at most so many: a bit a block, of which many are run
GREY = ("1", "L", "I", "I;16", "I;16B", "F")  # Pillow's names for one value a pixel


@dataclass(frozen=True, eq=False)
class Underlay:
    """An image on the grid of a segmentation.

    Attributes
    ----------
    array : array
        A number for each pixel; or red, green and blue along the last axis, from 0 to 255.
    colour : bool
        Which of the two.
    geometry : Geometry or None
        Where it lies, if it says so.
    name : str
        What it is called.
    """

    array: Array
    colour: bool
    geometry: Geometry | None = None
    name: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its pixels along each axis."""
        shape = tuple(self.array.shape)
        return shape[:-1] if self.colour else shape


def underlay_of(image: Image) -> Underlay:
    """What a file holds, as an image to look at."""
    if image.assumed:  # regions first is the rule for segmentations
        image = replace(image, regions=None)
    array, geometry = image.array, None
    if image.regions is not None and array.shape[image.regions] == 1:
        index: tuple[Any, ...] = (slice(None),) * image.regions
        array = np.asarray(array[(*index, 0)])
    elif image.regions is not None:
        raise FormatError(
            f"holds {array.shape[image.regions]} values a pixel, expected one grey value; "
            f"store the volume to look at on its own"
        )
    if array.dtype.kind not in "biuf":
        raise FormatError(f"holds values of type {array.dtype}, expected numbers")
    if image.affine is not None:
        geometry = Geometry(tuple(array.shape), image.affine)
    if (image.slope, image.inter) != (1, 0):
        array = Scaled(array, image.slope, image.inter, 1.0)
    return Underlay(array, colour=False, geometry=geometry)


def photograph(source: Source, *, png: bool) -> Underlay:
    """A JPEG or PNG picture: grey values, or colours, those of a palette included."""
    with png_picture(source) if png else _jpeg_picture(source) as picture:
        grey = picture.mode in GREY
        return Underlay(pixels(picture, "" if grey else "RGB"), colour=not grey)


@contextmanager
def _jpeg_picture(source: Source) -> Iterator[Any]:
    """A JPEG as a picture of Pillow, whose size is held against that of the file."""
    from PIL import JpegImagePlugin

    with library_call(), JpegImagePlugin.JpegImageFile(source.path) as picture:
        shape = (picture.height, picture.width)
        needed = picture.height * picture.width * len(picture.getbands())
        check_size(needed, source.path.stat().st_size, shape, ratio=JPEG_RATIO)
        check_memory(needed, shape, source.max_bytes)
        picture.load()
        yield picture


def laid_on(
    underlay: Underlay,
    geometry: Geometry | None,
    shape: tuple[int, ...],
    *,
    tolerance: float,
    placed: bool,
) -> Underlay:
    """The image on the grid of the segmentations; refused where it does not lie on it.

    `placed` is whether a place must be known on both sides or on neither; an array that was given
    as it is lies on the grid by its shape alone.
    """
    if placed and (underlay.geometry is None) != (geometry is None):
        lacking, known = "it", "the segmentations do"
        if geometry is None:
            lacking, known = "the segmentations", "it does"
        raise GeometryError(
            f"{lacking} {'has' if lacking == 'it' else 'have'} no geometry but {known}, so nothing "
            f"says that they lie in the same place; ",
            Option(
                "ignore_geometry",
                python="pass it as an array to take it by array order",
                command="take it by array order with --ignore-geometry",
            ),
        )
    if underlay.geometry is not None and geometry is not None:
        order, flips, apart = underlay.geometry.steps_onto(geometry)
        if not apart <= tolerance:
            why = "in no order of the axes do the grids have the same size"
            if np.isfinite(apart):
                why = f"corners lie up to {apart:.3g} pixels apart"
            raise GeometryError(
                f"it does not lie on the grid of the segmentations: {why}; resample it onto them"
            )
        array = reordered(underlay.array, order, flips, 0)
        return replace(underlay, array=array, geometry=geometry)
    if underlay.shape != shape:
        raise InputError(
            f"it has shape {underlay.shape} but the segmentations have shape {shape}: both must "
            f"cover the same pixels"
        )
    return underlay
