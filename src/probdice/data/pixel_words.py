"""Words for the elements of an image: pixels, voxels or vertices."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from probdice.data.geometry import Geometry
    from probdice.data.segmentation import Segmentation

__all__ = ["PixelWords", "pixel_words", "words_for_axes"]


class PixelWords(NamedTuple):
    """The singular and the plural of the word for an element."""

    one: str
    many: str

    def of(self, number: float) -> str:
        """Return the word for a number of elements."""
        return self.one if number == 1 else self.many


PIXELS = PixelWords("pixel", "pixels")
VOXELS = PixelWords("voxel", "voxels")
VERTICES = PixelWords("vertex", "vertices")


def pixel_words(segmentation: Segmentation | None, axes: int | None = None) -> PixelWords:
    """Return the words for the elements of a segmentation, or of an image with `axes` axes.

    If both are None, the words are "pixel" and "pixels".

    Examples
    --------
    >>> import numpy as np
    >>> from probdice import Segmentation
    >>> from probdice.data.pixel_words import pixel_words
    >>> pixel_words(Segmentation.from_labels(np.zeros((2, 2, 2), int))).many
    'voxels'
    >>> pixel_words(None)
    PixelWords(one='pixel', many='pixels')
    """
    if segmentation is None:
        return PIXELS if axes is None else words_for_axes(axes)
    return words_for_axes(len(segmentation.shape), segmentation.geometry)


def words_for_axes(axes: int, geometry: Geometry | None = None) -> PixelWords:
    """Return the words for the elements of an image with this number of axes."""
    if geometry is not None and not geometry.on_grid:
        return VERTICES
    return VOXELS if axes > 2 else PIXELS
