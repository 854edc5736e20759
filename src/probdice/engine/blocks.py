"""The blocks of segmentations of one image, decoded one at a time."""

from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.data.arrays import chunks_of
from probdice.data.segmentation import Array, Segmentation, reordered
from probdice.data.value_checks import Fault
from probdice.engine.decode import LabelDecoder, Ready, decoder_of, working_type
from probdice.engine.grids import Block, Grid, Store, cut, cut_along_chunks

__all__ = ["BLOCK_BYTES", "Blocks"]

# Bytes of all sides in a block: large enough that the cost of a Python call per block is
# negligible, small enough to be copied.
BLOCK_BYTES = 2**24
CHUNKED = 2  # factor for blocks that follow chunks, which need many read calls
# Bytes of all sides in a block if smaller blocks would decode chunks several times.
LARGEST_BYTES = 2**26
FEWEST_PIXELS = 4096  # smallest block, for any number of regions


class Blocks:
    """The blocks of segmentations of one image, in one order of traversal.

    Pixels outside the mask, and pixels with labels that the first segmentation ignores, are
    excluded. If results are written `into` an array with chunks, every block is a union of whole
    chunks. `most` limits the number of pixels of a block. With a `halo`, blocks can be read with a
    margin of pixels around them.
    """

    def __init__(
        self,
        *sides: Segmentation,
        mask: Array | None = None,
        into: Array | None = None,
        most: int | None = None,
        halo: int = 0,
    ):
        self._most = most
        # The chunks of the output array, without an axis of regions.
        target = None if into is None else chunks_of(into)
        self._target = None if target is None else target[-len(sides[0].shape) :]
        self.followed = target is not None or any(
            not isinstance(array, np.ndarray) and chunks_of(array) is not None
            for array in (mask, *(side.array for side in sides))
            if array is not None
        )
        self.order = tuple(range(len(sides[0].shape))) if self.followed else _traversal(sides)
        self.shape = tuple(sides[0].shape[axis] for axis in self.order)
        self.dtype = np.result_type(*(working_type(side) for side in sides))
        if self.followed:  # sums in float32 would depend on the division into blocks
            self.dtype = np.result_type(self.dtype, np.float64)
        self.sides, self.mask = sides, mask
        self.ignore = sides[0].ignore
        self._mask = None if mask is None else reordered(mask, self.order, ())
        self._decoders = [
            decoder_of(side, self.order, self.dtype, in_order=not self.followed and halo == 0)
            for side in sides
        ]

    @cached_property
    def blocks(self) -> Grid:
        """All blocks."""
        pixel = sum(
            side.array.dtype.itemsize if side.crisp else len(side.regions) * self.dtype.itemsize
            for side in self.sides
        )
        most = max(FEWEST_PIXELS, BLOCK_BYTES * (CHUNKED if self.followed else 1) // pixel)
        largest = max(FEWEST_PIXELS, LARGEST_BYTES // pixel)
        if self._most is not None:
            most, largest = min(most, self._most), min(largest, self._most)
        if not self.followed:
            return cut(self.shape, most)
        arrays = [side.array for side in self.sides]
        stores = [
            Store(chunks[-len(self.shape) :], prod(array.shape) * array.dtype.itemsize)
            for array in (arrays if self.mask is None else [*arrays, self.mask])
            if (chunks := chunks_of(array)) is not None
        ]
        return cut_along_chunks(self.shape, stores, most, largest, self._target)

    @property
    def whole(self) -> bool:
        """Whether all pixels are compared."""
        return self._mask is None and not self.ignore

    def ready(self, block: Block) -> Ready:
        """Return the compared pixels of a block, decoded for kernels."""
        inside = self._inside(block)
        sides, faults = zip(*(side.read(block, inside) for side in self._decoders), strict=True)
        return Ready(sides, faults, inside)

    @property
    def label_types(self) -> tuple[np.dtype[Any], ...]:
        """The type of the decoded labels of every side, if all are label maps."""
        return tuple(side.dtype for side in self._decoders if isinstance(side, LabelDecoder))

    def labels_of(self, block: Block) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """Both sides without a copy, if both are label maps and all pixels are compared."""
        if not self.whole:
            return None
        p, q = self._decoders
        if not (isinstance(p, LabelDecoder) and isinstance(q, LabelDecoder)):
            return None
        if not (p.plain and q.plain):
            return None
        return p.values(block), q.values(block)

    def image(self, values: NDArray[Any]) -> NDArray[Any]:
        """Transpose values from traversal order (the last axes) to the axes of the image."""
        first = values.ndim - len(self.shape)
        back = np.argsort(self.order) + first
        return values.transpose((*range(first), *back))

    def located(self, fault: Fault, block: Block, inside: NDArray[np.int64] | None = None) -> Fault:
        """Return an invalid value of a block, with its pixel number in the whole image."""

        def number(pixel: int) -> int:
            place = np.unravel_index(pixel if inside is None else inside[pixel], block.shape)
            index = tuple(int(k) + part.start for k, part in zip(place, block.box, strict=True))
            return int(np.ravel_multi_index(index, self.shape)) if index else 0

        return fault.moved(number)

    def place(self, pixel: int) -> tuple[int, ...]:
        """Index in the image of a pixel in the order of traversal."""
        index = np.unravel_index(pixel, self.shape)
        return tuple(int(index[self.order.index(axis)]) for axis in range(len(self.shape)))

    def _inside(self, block: Block) -> NDArray[np.int64] | None:
        """Return the compared pixels of a block; None if all are compared."""
        if self.whole:
            return None
        inside = np.ones(block.size, np.bool_)
        if self._mask is not None:
            inside &= np.asarray(self._mask[block.box]).reshape(-1) != 0
        if self.ignore:
            labels = self._decoders[0]
            assert isinstance(labels, LabelDecoder)
            values = labels.values(block)
            for label in self.ignore:
                inside &= values != label
        return None if inside.all() else np.flatnonzero(inside)


def _traversal(sides: Sequence[Segmentation]) -> tuple[int, ...]:
    """Return the spatial axes in descending order of the strides of the largest array."""
    axes = tuple(range(len(sides[0].shape)))
    arrays = [side.array for side in sides if isinstance(side.array, np.ndarray)]
    if not arrays or not axes or all(array.flags.c_contiguous for array in arrays):
        return axes
    strides = max((array.nbytes, array.strides[-len(axes) :]) for array in arrays)[1]
    return tuple(sorted(axes, key=lambda axis: -abs(strides[axis])))
