"""Whatever people have, as a Segmentation: an array, a path, an image of another library."""

from os import PathLike
from typing import Any, cast

from numpy.typing import ArrayLike

from probdice.errors import InputError, ProbdiceError
from probdice.files import read
from probdice.segmentation import Array, Segmentation, as_array
from probdice.sides import Side

__all__ = ["Comparable", "as_mask", "as_segmentation"]

Comparable = Segmentation | ArrayLike | Array | PathLike[str]


def as_segmentation(value: Comparable, side: Side) -> Segmentation:
    """One side of a comparison; integers are a label map, floating numbers probabilities."""
    if isinstance(value, Segmentation):
        return value
    try:
        if isinstance(value, str | PathLike):
            return read(value)
        array = as_array(cast(ArrayLike, value))
        if array.dtype.kind in "biu":
            return Segmentation(array, crisp=True)
        if array.dtype.kind == "f":
            return Segmentation.from_probabilities(array)
        raise InputError(
            f"must hold labels (integers) or probabilities (floating numbers), found {array.dtype}"
        )
    except ProbdiceError as error:
        raise error.prefixed(f"{side}: ") from None


def as_mask(mask: Any) -> Segmentation | Array | None:
    """The pixels to compare, as an array or a label map."""
    if mask is None or isinstance(mask, Segmentation):
        return mask
    try:
        if isinstance(mask, str | PathLike):
            return read(mask)
        return as_array(mask)
    except ProbdiceError as error:
        raise error.prefixed("mask: ") from None
