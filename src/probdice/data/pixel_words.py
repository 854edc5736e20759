"""The word for the elements of an image: pixels, voxels or vertices."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from probdice.text.formatting import pixel_word

if TYPE_CHECKING:
    from probdice.data.segmentation import Segmentation

__all__ = ["PixelWords", "pixel_words"]


class PixelWords(NamedTuple):
    """The word for one element, and for several."""

    one: str
    many: str

    def of(self, number: float) -> str:
        """Return the word for a number of elements."""
        return self.one if number == 1 else self.many


VERTICES = PixelWords("vertex", "vertices")


def pixel_words(segmentation: Segmentation | None, axes: int | None = None) -> PixelWords:
    """Return the words for the elements of a segmentation, or of an image with so many axes.

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
    if segmentation is not None:
        if segmentation.geometry is not None and not segmentation.geometry.on_grid:
            return VERTICES
        axes = len(segmentation.shape)
    return PixelWords(pixel_word(axes, 1), pixel_word(axes))
