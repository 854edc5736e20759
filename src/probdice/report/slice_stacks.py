"""All slices of an image in one orientation, as data for the slider of a page.

A stack contains all slices parallel to one plane, in display order. If the image is large, the
stack contains only every n-th pixel along the longest axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.data.pixel_words import words_for_axes
from probdice.pictures.planes import Plane, finest, planes_of
from probdice.pictures.views import every_nth
from probdice.report.encoding import encoded, ordinal

if TYPE_CHECKING:
    from probdice.data.segmentation import Segmentation
    from probdice.files.background_images import BackgroundImage

__all__ = [
    "SLICE_SCRIPTS",
    "Stack",
    "fraction_layer",
    "frame_of",
    "image_layer",
    "region_layer",
    "stack_of",
]

OUTSIDE_VALUE = 255  # value of pixels that are not compared, in layers of fractions
WINDOW = (0.5, 99.5)  # percentiles of an image that are shown as black and white
SLICE_SCRIPTS = ("assets/unpacking.js", "assets/slices.js")  # scripts of pages with slices
MARGIN = 0.03  # margin around the foreground, as a share of its size, in addition to one pixel
FLAT_ASPECT = 0.15  # height of a single row of pixels, relative to its width


@dataclass(frozen=True)
class Stack:
    """The selected pixels of an image and the plane in which they are drawn."""

    plane: Plane
    ranges: tuple[range, ...]

    def drawn(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the selected pixels as an array of slices, rows and columns in display order."""
        plane, axes = self.plane, len(self.ranges)
        order = [axis for axis in (plane.rows, plane.columns) if axis >= 0]
        across = plane.across(axes)
        image = values.transpose(*across, *order, *range(axes, values.ndim))
        size = tuple(len(self.ranges[axis]) for axis in order)
        rows_and_columns = (1,) * (2 - len(size)) + size
        image = image.reshape(-1, *rows_and_columns, *values.shape[axes:])
        if plane.flip_rows:
            image = image[:, ::-1]
        return image[:, :, ::-1] if plane.flip_columns else image

    def position_of(self, index: tuple[int, ...]) -> tuple[int, ...]:
        """Return the slice, row and column of a selected pixel in display order."""
        is_pixel = np.zeros([len(indices) for indices in self.ranges], np.bool_)
        is_pixel[index] = True
        drawn = self.drawn(is_pixel)
        return tuple(int(k) for k in np.unravel_index(np.argmax(drawn), drawn.shape))

    def content(self, position: tuple[int, ...]) -> dict[str, Any]:
        """Return the size and names of the slices, and the slice, row and column of the mark.

        The page opens at the slice of the mark.
        """
        plane, axes = self.plane, len(self.ranges)
        across = plane.across(axes)
        positions = np.stack(
            np.meshgrid(*(np.array(self.ranges[axis]) for axis in across), indexing="ij"), axis=-1
        ).reshape(-1, len(across)) if across else np.empty((1, 0), int)  # fmt: skip
        height, width = (
            len(self.ranges[axis]) if axis >= 0 else 1 for axis in (plane.rows, plane.columns)
        )
        steps = [self.ranges[axis].step if axis >= 0 else 1 for axis in (plane.rows, plane.columns)]
        aspect = plane.aspect * steps[0] / steps[1] if plane.rows >= 0 else FLAT_ASPECT * width
        names = [
            f"{plane.name} slice {', '.join(map(str, index))}" if across else ""
            for index in positions.tolist()
        ]
        return {
            "width": width,
            "height": height,
            "aspect": aspect,
            "names": names,
            "start": position[0],
            "mark": position[1:],
        }

    @property
    def left_out(self) -> str:
        """A sentence about the displayed pixels, or "" if all pixels are displayed."""
        steps = {indices.step for indices in self.ranges}
        if not steps - {1}:
            return ""
        word = words_for_axes(len(self.ranges)).one
        return f"The images show at least every {ordinal(max(steps))} {word} along each axis."


def stack_of(segmentation: Segmentation, max_pixels: int) -> Stack:
    """Return slices with at most `max_pixels` pixels, in the plane with the smallest pixels."""
    shape, geometry = segmentation.shape, segmentation.geometry
    plane = finest(planes_of(len(shape), geometry), shape, geometry)
    return Stack(plane, every_nth(shape, max_pixels))


def frame_of(foreground: NDArray[np.bool_]) -> list[list[int]]:
    """Return the first and last foreground pixel along each axis, with a margin.

    If there is no foreground pixel, return the first and last pixel of the image.

    Examples
    --------
    >>> import numpy as np
    >>> from probdice.report.slice_stacks import frame_of
    >>> frame_of(np.array([[False] * 6, [False, False, False, True, False, False]]))
    [[0, 1], [2, 4]]
    """
    frame = []
    for axis, size in enumerate(foreground.shape):
        other_axes = tuple(k for k in range(foreground.ndim) if k != axis)
        positions = np.flatnonzero(foreground.any(axis=other_axes))
        first, last = (int(positions[0]), int(positions[-1])) if positions.size else (0, size - 1)
        margin = 1 + round(MARGIN * (last - first))
        frame.append([max(first - margin, 0), min(last + margin, size - 1)])
    return frame


def region_layer(
    stack: Stack, codes: NDArray[np.integer[Any]], colours: Sequence[str]
) -> dict[str, Any]:
    """Return a layer with the region of every pixel. The colour "" is transparent.

    `codes` contains the index of the region of every pixel, or −1 for no region.
    """
    is_wide = len(colours) > 255
    stored_codes = stack.drawn(codes + 1).astype("<u2" if is_wide else "u1")
    return {"codes": encoded(stored_codes, level=6), "wide": is_wide, "colours": list(colours)}


def fraction_layer(stack: Stack, values: NDArray[np.floating[Any]], ramp: str) -> dict[str, Any]:
    """Return values from 0 to 1 and the name of a colour ramp. NaN means outside the mask."""
    levels = np.rint(np.clip(values, 0, 1) * (OUTSIDE_VALUE - 1))
    stored_levels = np.where(np.isnan(values), OUTSIDE_VALUE, np.nan_to_num(levels)).astype("u1")
    return {"values": encoded(stack.drawn(stored_levels), level=6), "ramp": ramp}


def image_layer(stack: Stack, image: BackgroundImage) -> dict[str, Any]:
    """Return the image under the segmentations, in 256 grey values or in colour."""
    values = np.asarray(image.array[(slice(None),) * len(image.array.shape)])
    pixels = values[np.ix_(*(np.array(indices) for indices in stack.ranges))].astype(np.float32)
    finite = pixels[np.isfinite(pixels)]
    low, high = (0.0, 255.0)
    if not image.colour and finite.size:
        low, high = (float(edge) for edge in np.percentile(finite, WINDOW))
    span = high - low if high > low else 1.0
    levels = np.clip(np.nan_to_num(pixels - low) * (255 / span), 0, 255)
    stored_levels = stack.drawn(np.rint(levels).astype("u1"))
    return {"values": encoded(stored_levels, level=6), "colour": image.colour}
