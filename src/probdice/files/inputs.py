"""Convert arrays, paths and images of other libraries to a `Segmentation`."""

from collections.abc import Iterable
from os import PathLike
from typing import Any, TypeAlias

import numpy as np

from probdice.data.arrays import AnyArray, as_array, region_dimension
from probdice.data.segmentation import Array, Segmentation
from probdice.data.surface import Surface
from probdice.errors import InputError, ProbdiceError
from probdice.files import read, read_background_image, read_mask, read_surface
from probdice.files.background_images import BackgroundImage
from probdice.files.sources import is_image, split_paths

__all__ = ["Comparable", "as_background_image", "as_mask", "as_segmentation", "as_surfaces"]

# Types that can be compared or used as a mask. See the table in docs/how-to/inputs.md.
Comparable: TypeAlias = Segmentation | AnyArray | str | PathLike[str]


def as_segmentation(value: Comparable, name: str) -> Segmentation:
    """Convert an array, a path or an image to a segmentation.

    In an array, integers and booleans are labels, and floating-point numbers are probabilities. An
    xarray DataArray with a region axis contains probabilities, whatever its type. Error messages
    start with `name`, the name of the argument.
    """
    if isinstance(value, Segmentation):
        return value
    try:
        if not isinstance(value, np.ndarray):
            if _is_file(value):
                return read(value)
            dimension = region_dimension(value)
            if dimension is not None:
                axis, names = dimension
                return Segmentation.from_probabilities(as_array(value), axis=axis, names=names)
            value = as_array(value)
        if value.dtype.kind in "biu":
            return Segmentation(value, crisp=True)
        if value.dtype.kind in "fV":  # bfloat16 and similar types become float32
            return Segmentation.from_probabilities(value)
        raise InputError(
            f"must contain labels (integers) or probabilities (floating-point numbers), "
            f"found {value.dtype}"
        )
    except ProbdiceError as error:
        raise error.prefixed(f"{name}: ") from None


def as_mask(mask: Comparable | None) -> Segmentation | Array | None:
    """Convert a mask, which selects the pixels to compare, to an array or a label map."""
    if mask is None or isinstance(mask, Segmentation):
        return mask
    if isinstance(mask, np.ma.MaskedArray):
        raise InputError(
            "mask: is a NumPy masked array, whose own mask would be ignored. To exclude its masked "
            "elements, pass mask=array.filled(0)."
        )
    try:
        return read_mask(mask) if _is_file(mask) else as_array(mask)
    except ProbdiceError as error:
        raise error.prefixed("mask: ") from None


def as_background_image(
    value: BackgroundImage | Comparable, shape: tuple[int, ...]
) -> BackgroundImage:
    """Convert an array, a path or an image to a background image for segmentations of `shape`.

    The last axis of an array may contain red, green and blue.
    """
    if isinstance(value, BackgroundImage):
        return value
    if _is_file(value):
        return read_background_image(value)
    array = as_array(value)
    if array.dtype.kind not in "biuf":
        raise InputError(f"must contain numbers, found {array.dtype}")
    return BackgroundImage(array, colour=tuple(array.shape) == (*shape, 3))


def as_surfaces(value: Any) -> tuple[Surface, ...]:
    """Read one or more surfaces from their paths. `Surface` objects are returned unchanged."""
    if isinstance(value, Surface):
        return (value,)
    if isinstance(value, str | PathLike):
        return tuple(read_surface(file) for file in split_paths(value))
    if not isinstance(value, Iterable):
        raise InputError(f"surface must be one or more paths of surfaces, found {value!r}")
    return tuple(surface for one in value for surface in as_surfaces(one))


def _is_file(value: Any) -> bool:
    """Return whether a value is a path, an image of another library, or several of these."""
    first = value[0] if isinstance(value, list | tuple) and value else value
    if isinstance(first, np.ndarray | list | tuple | int | float):
        return False
    return isinstance(first, str | PathLike | dict) or is_image(first)
