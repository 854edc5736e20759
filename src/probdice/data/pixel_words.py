"""The word for the elements of an image: pixels, voxels or vertices."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from probdice.data.segmentation import Segmentation

__all__ = ["PIXELS", "VOXELS", "PixelWords", "pixel_words"]


class PixelWords(NamedTuple):
    """The word for one element, and for several."""

    one: str
    many: str

    def of(self, number: float) -> str:
        """Return the word for a number of elements."""
        return self.one if number == 1 else self.many


PIXELS = PixelWords("pixel", "pixels")
VOXELS = PixelWords("voxel", "voxels")
VERTICES = PixelWords("vertex", "vertices")


def pixel_words(segmentation: Segmentation | None, pixel_volume: float | None = None) -> PixelWords:
    """Return the words for the elements of a segmentation.

    Without a segmentation, a known volume means voxels.

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
        return PIXELS if pixel_volume is None else VOXELS
    if segmentation.geometry is not None and not segmentation.geometry.on_grid:
        return VERTICES
    return VOXELS if len(segmentation.shape) > 2 else PIXELS
