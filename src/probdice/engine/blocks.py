"""Divide segmentations of one image into blocks, which are decoded one at a time."""

from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.data.arrays import Chunks, chunks_of
from probdice.data.segmentation import Array, Segmentation, reordered
from probdice.data.value_checks import Fault
from probdice.engine.decode import (
    DecodedBlock,
    LabelDecoder,
    ProbabilityDecoder,
    decoder_of,
    working_type,
)
from probdice.engine.grids import Block, Grid, Store, cut, cut_along_chunks

__all__ = ["BLOCK_BYTES", "Blocks"]

# Number of bytes of all sides in one block. A block is large enough that the cost of a Python call
# per block is negligible, and small enough to be copied.
BLOCK_BYTES = 2**24
# Factor by which blocks of chunks are larger, because they require many read calls.
CHUNKED_BLOCK_FACTOR = 2
# Largest number of bytes of all sides in one block, if chunks would otherwise be decoded several
# times.
MAX_BLOCK_BYTES = 2**26
MIN_BLOCK_PIXELS = 4096  # for any number of regions


class Blocks:
    """The blocks of one or more segmentations of an image, in the same order of traversal.

    Pixels outside the mask, and pixels with labels that the first segmentation ignores, are
    excluded. If results are written `into` an array with chunks, every block is a union of whole
    chunks of this array. `max_pixels` limits the number of pixels in a block, unless a chunk is
    larger.
    """

    def __init__(
        self,
        *sides: Segmentation,
        mask: Array | None = None,
        into: Array | None = None,
        max_pixels: int | None = None,
    ):
        # The chunks of the output array, without its region axis.
        target = None if into is None else chunks_of(into)
        self._set_up(sides, mask, target and target[-len(sides[0].shape) :], max_pixels)

    def _set_up(
        self,
        sides: tuple[Segmentation, ...],
        mask: Array | None,
        target: Chunks | None,
        max_pixels: int | None,
        order: tuple[int, ...] | None = None,
    ) -> None:
        self.sides, self.mask, self._target, self._max_pixels = sides, mask, target, max_pixels
        arrays = [side.array for side in sides]
        if mask is not None:
            arrays.append(mask)
        # Whether blocks follow the chunks of an array.
        self.chunked = target is not None or any(
            [not isinstance(array, np.ndarray) and chunks_of(array) is not None for array in arrays]
        )
        axes = tuple(range(len(sides[0].shape)))
        if order is None:
            order = axes if self.chunked else _traversal(arrays[: len(sides)], axes)
        self.order = order
        self.shape = sides[0].shape
        if order != axes:
            self.shape = tuple([self.shape[axis] for axis in order])
        self.ignore = sides[0].ignore
        self.includes_all = mask is None and not self.ignore  # whether all pixels are compared
        self.single_block = None if self.chunked else self._single_block()

    def __getstate__(self) -> tuple[Any, ...]:
        # Decoders contain buffers of threads, and views that would be pickled as additional copies.
        # The order is stored, because arrays may have a different memory order after unpickling.
        return self.sides, self.mask, self._target, self._max_pixels, self.order

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._set_up(*state)

    def _single_block(self) -> Block | None:
        """Return the block of the whole image.

        Return None if the image is empty or does not fit in one block.
        """
        if 0 < prod(self.shape) <= self._pixels(BLOCK_BYTES):
            return Block(tuple([slice(0, length) for length in self.shape]), 0)
        return None

    def _pixels(self, bytes_in_block: int) -> int:
        """Return the number of pixels whose values take this number of bytes on all sides together.

        The number is at least `MIN_BLOCK_PIXELS`, unless the given limit is smaller.
        """
        pixel = 0
        for side in self.sides:
            if side.crisp:
                pixel += side.array.dtype.itemsize
            else:
                pixel += len(side.regions) * self.dtype.itemsize
        pixels = max(MIN_BLOCK_PIXELS, bytes_in_block // pixel)
        return pixels if self._max_pixels is None else min(pixels, self._max_pixels)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the probabilities, which is the same for all sides."""
        dtype = np.result_type(*(working_type(side) for side in self.sides))
        # Sums in float32 would depend on the division into blocks.
        return np.result_type(dtype, np.float64) if self.chunked else dtype

    @cached_property
    def blocks(self) -> Grid:
        """All blocks of the image."""
        if not self.chunked:
            return cut(self.shape, self._pixels(BLOCK_BYTES))
        arrays = [side.array for side in self.sides]
        stores = [
            Store(chunks[-len(self.shape) :], prod(array.shape) * array.dtype.itemsize)
            for array in (arrays if self.mask is None else [*arrays, self.mask])
            if (chunks := chunks_of(array)) is not None
        ]
        usual_pixels = self._pixels(CHUNKED_BLOCK_FACTOR * BLOCK_BYTES)
        largest = self._pixels(MAX_BLOCK_BYTES)
        return cut_along_chunks(self.shape, stores, usual_pixels, largest, self._target)

    def decode(self, block: Block) -> DecodedBlock:
        """Return the compared pixels of any box of the image, decoded for kernels.

        The next call in the same thread may overwrite the decoded values.
        """
        inside = self._inside(block)
        sides, faults = zip(*(side.read(block, inside) for side in self._decoders), strict=True)
        return DecodedBlock(sides, faults, inside)

    @cached_property
    def _decoders(self) -> list[LabelDecoder | ProbabilityDecoder]:
        return [decoder_of(side, self.order, self.dtype) for side in self.sides]

    @property
    def label_types(self) -> tuple[np.dtype[Any], ...]:
        """Data type of the decoded labels of each side that is a label map."""
        return tuple(side.dtype for side in self._decoders if isinstance(side, LabelDecoder))

    def labels_of(self, block: Block) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """Return the stored labels of a block on both sides, or None if they must be decoded.

        Labels must be decoded if a side contains probabilities, if pixels are excluded, or if the
        labels of a side require a conversion or a copy.
        """
        if not self.includes_all:
            return None
        labels = []
        for side in self.sides:
            values = self._labels(side, block) if side.crisp else None
            if values is None:
                return None
            labels.append(values)
        return labels[0], labels[1]

    def _labels(self, side: Segmentation, block: Block) -> NDArray[Any] | None:
        """Return the stored labels of a block, or None if they require a conversion or a copy."""
        array, dtype = side.array, side.array.dtype
        if self.order != tuple(range(len(self.order))):
            array = reordered(array, self.order, ())
        if dtype.kind not in "iu" or not dtype.isnative:
            return None
        if isinstance(array, np.ndarray):
            if not (array.flags.c_contiguous and array.flags.aligned):
                return None
            if block is self.single_block:
                return array.reshape(-1)
        return np.asarray(array[block.box]).reshape(-1)

    def image(self, values: NDArray[Any]) -> NDArray[Any]:
        """Transpose the last axes of `values` from traversal order to the order of the image."""
        first = values.ndim - len(self.shape)
        back = np.argsort(self.order) + first
        return values.transpose((*range(first), *back))

    def box(self, block: Block) -> tuple[slice, ...]:
        """Return the slices of a block in the order of the image's axes."""
        return tuple([block.box[self.order.index(axis)] for axis in range(len(self.order))])

    def located(self, fault: Fault, block: Block, inside: NDArray[np.int64] | None = None) -> Fault:
        """Return the invalid values of a block, with pixels numbered in the whole image."""

        def number(pixel: int) -> int:
            position = np.unravel_index(pixel if inside is None else inside[pixel], block.shape)
            index = tuple(int(k) + part.start for k, part in zip(position, block.box, strict=True))
            return int(np.ravel_multi_index(index, self.shape)) if index else 0

        return fault.moved(number)

    def position_of(self, pixel: int) -> tuple[int, ...]:
        """Return a pixel's index in the image, given its number in the order of traversal."""
        index = np.unravel_index(pixel, self.shape)
        return tuple(int(index[self.order.index(axis)]) for axis in range(len(self.shape)))

    def _inside(self, block: Block) -> NDArray[np.int64] | None:
        """Return the positions of a block's compared pixels, or None if all are compared."""
        if self.includes_all:
            return None
        inside = np.ones(block.size, np.bool_)
        if self.mask is not None:
            mask = reordered(self.mask, self.order, ())
            inside &= np.asarray(mask[block.box]).reshape(-1) != 0
        if self.ignore:
            labels = self._decoders[0]
            assert isinstance(labels, LabelDecoder)
            values = labels.values(block)
            for label in self.ignore:
                inside &= values != label
        return None if inside.all() else np.flatnonzero(inside)


def _traversal(arrays: Sequence[Array], axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the spatial axes in descending order of the strides of the largest NumPy array."""
    numpy_arrays = [array for array in arrays if isinstance(array, np.ndarray)]
    if not numpy_arrays or not axes or all([array.flags.c_contiguous for array in numpy_arrays]):
        return axes
    strides = max((array.nbytes, array.strides[-len(axes) :]) for array in numpy_arrays)[1]
    return tuple(sorted(axes, key=lambda axis: -abs(strides[axis])))
