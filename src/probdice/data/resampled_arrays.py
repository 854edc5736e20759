"""Arrays that read an image at the pixels of another grid, block by block."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from probdice.data.arrays import Array, Chunks
from probdice.data.lazy_arrays import DerivedArray, Lazy
from probdice.data.value_checks import (
    Reading,
    as_probabilities,
    invalid_values,
    whole_numbers,
    zeros_and_ones,
)

__all__ = [
    "Decoded",
    "FieldOfView",
    "InterpolatedLabels",
    "InterpolatedRows",
    "Nearest",
    "Placement",
]

MAX_SOURCE_PIXELS = 2**21  # a tile that depends on at most this many source pixels is not divided
UNDIVIDED_TILE_PIXELS = 2**12  # a tile with at most this many target pixels is never divided
TILE = 2**18  # approximate number of pixels in a chunk if the axes of the grids are not parallel
TABLE = 2**20  # largest range of labels for which a lookup table is used
AXIS_TOLERANCE = 1e-6  # a smaller matrix element means that two axes are perpendicular

Box = Sequence[slice]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Grid = tuple[Floats, Floats, Integers, Integers, Integers, Integers]


@dataclass(frozen=True, eq=False)
class Placement:
    """A mapping from the pixels of a target grid to positions in a source image.

    The target pixel i is at ``matrix @ i + offset``, in source pixels.

    Attributes
    ----------
    matrix : ndarray of float64
        Matrix with one row per source axis and one column per target axis.
    offset : ndarray of float64
        Position of the first target pixel, in source pixels.
    sizes : tuple of int
        Shape of the source.
    shape : tuple of int
        Shape of the target.
    """

    matrix: Floats
    offset: Floats
    sizes: tuple[int, ...]
    shape: tuple[int, ...]

    def reach(self, box: Box) -> tuple[Floats, Floats]:
        """Return the lowest and the highest position of a target box along each source axis."""
        starts = [self.matrix[:, k] * part.start for k, part in enumerate(box)]
        stops = [self.matrix[:, k] * (part.stop - 1) for k, part in enumerate(box)]
        low = self.offset + sum(map(np.minimum, starts, stops))
        high = self.offset + sum(map(np.maximum, starts, stops))
        return low, high

    @property
    def full_box(self) -> tuple[slice, ...]:
        """The box of all target pixels."""
        return tuple(slice(0, length) for length in self.shape)

    def source_box(self, box: Box) -> tuple[slice, ...]:
        """Return the box of source pixels on which the values of a target box depend."""
        parts = []
        for low, high, size in zip(*self.reach(box), self.sizes, strict=True):
            start = min(max(floor(low), 0), size - 1)
            parts.append(slice(start, max(start + 1, min(floor(high) + 2, size))))
        return tuple(parts)

    def grid(self, box: Box, source: Box, order: Sequence[int]) -> Grid:
        """Return the `Grid` that the kernels require, with the source axes in `order`."""
        axes = list(order)
        first = self.offset + self.matrix @ [part.start for part in box]
        return (
            np.ascontiguousarray(self.matrix[axes]),
            first[axes],
            np.array([self.sizes[axis] for axis in axes], np.int64),
            np.array([source[axis].start for axis in axes], np.int64),
            np.array([source[axis].stop - source[axis].start for axis in axes], np.int64),
            np.array(_size(box), np.int64),
        )

    def nearest(self, box: Box, source: Box, order: Sequence[int]) -> Integers:
        """For every target pixel, return the flat index of the nearest pixel in the source box.

        The index is −1 outside the field of view.
        """
        from probdice.data.interpolation import nearest_indices

        indices = np.empty(_size(box), np.int64)
        nearest_indices(self.grid(box, source, order), indices.reshape(-1))
        return indices

    def chunks(self, source: Chunks | None) -> Chunks | None:
        """Return the target chunks that correspond to the source chunks.

        If the axes of the grids are not parallel, the chunks are cubes, because cubes depend on the
        fewest source pixels. Otherwise, return None if the source has no chunks.
        """
        pairs = [int(np.argmax(np.abs(column))) for column in self.matrix.T]
        other_elements = self.matrix.copy()
        other_elements[pairs, range(len(pairs))] = 0
        if len(set(pairs)) < len(pairs) or np.abs(other_elements).max(initial=0) > AXIS_TOLERANCE:
            edge = max(1, round(TILE ** (1 / len(self.shape))))
            return tuple(_lengths(range(edge, n, edge), n) for n in self.shape)
        if source is None:
            return None
        lengths = []
        for k, axis in enumerate(pairs):
            edges = np.cumsum(source[axis])[:-1]
            positions = (edges - 0.5 - self.offset[axis]) / self.matrix[axis, k]
            lengths.append(_lengths([ceil(position) for position in positions], self.shape[k]))
        return tuple(lengths)


class FieldOfView(Lazy):
    """The mask of the target pixels that are in the field of view of the source."""

    dtype = np.dtype(np.bool_)
    reopenable = True

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self.shape = placement.shape

    def block(self, index: tuple[slice, ...]) -> NDArray[Any]:
        box = _within(index, self.shape)
        source_box = tuple(slice(0, size) for size in self.placement.sizes)
        return self.placement.nearest(box, source_box, range(len(source_box))) >= 0


class Decoded(DerivedArray):
    """Stored values that are converted to probabilities, with the regions along the first axis.

    Pixels with invalid values become NaN.
    """

    def __init__(self, array: Array, reading: Reading, regions: int) -> None:
        super().__init__(array, dtype=np.result_type(array.dtype, np.float32))
        self.reading = reading
        self.first = 0 if reading == "foreground" else 1
        self.shape = (regions, *self.shape[self.first :])
        if self.chunks is not None:
            self.chunks = ((regions,), *self.chunks[self.first :])

    def block(self, index: tuple[slice, ...]) -> NDArray[Any]:
        values = np.asarray(self.array[(slice(None),) * self.first + tuple(index[1:])])
        size = values.shape[self.first :]
        rows = values.astype(self.dtype).reshape(values.shape[0] if self.first else 1, -1)
        invalid = invalid_values(rows, self.reading)
        rows = as_probabilities(rows, self.reading)
        rows[:, invalid] = np.nan
        return rows.reshape(-1, *size)[index[0]]


class _Resampled(DerivedArray):
    """The values of a source array at the positions of a `placement`.

    A requested box is halved repeatedly until each tile is small or depends on a small part of the
    source.
    """

    def __init__(
        self, array: Array, placement: Placement, outside: int, rows: int | None, dtype: DTypeLike
    ) -> None:
        super().__init__(array, dtype=dtype)
        self.placement, self.outside = placement, outside
        self.first = len(array.shape) - len(placement.sizes)
        self.shape = placement.shape if rows is None else (rows, *placement.shape)
        chunks = placement.chunks(None if self.chunks is None else self.chunks[self.first :])
        if chunks is not None and rows is not None:
            chunks = ((rows,), *chunks)
        self.chunks = chunks

    @abstractmethod
    def tile(self, box: tuple[slice, ...]) -> NDArray[Any]:
        """Return the values of one tile, with all regions."""

    def block(self, index: tuple[slice, ...]) -> NDArray[Any]:
        regions = index[: len(self.shape) - len(self.placement.shape)]
        box = _within(index[len(regions) :], self.placement.shape)
        tiles = list(self._tiles(box))
        if len(tiles) == 1:
            return self.tile(box)[regions] if regions else self.tile(box)
        size = (*self.shape[: len(regions)], *_size(box))
        result = np.empty(size, self.dtype)
        for tile in tiles:
            target_slices = (
                slice(part.start - box_part.start, part.stop - box_part.start)
                for part, box_part in zip(tile, box, strict=True)
            )
            result[(slice(None),) * len(regions) + tuple(target_slices)] = self.tile(tile)
        return result[regions] if regions else result

    def _tiles(self, box: tuple[slice, ...]) -> Iterator[tuple[slice, ...]]:
        lengths = _size(box)
        source_pixels = prod(_size(self.placement.source_box(box)))
        if source_pixels <= MAX_SOURCE_PIXELS or prod(lengths) <= UNDIVIDED_TILE_PIXELS:
            yield box
            return
        axis = int(np.argmax(lengths))
        middle = box[axis].start + lengths[axis] // 2
        for part in (slice(box[axis].start, middle), slice(middle, box[axis].stop)):
            yield from self._tiles((*box[:axis], part, *box[axis + 1 :]))

    def source(self, box: Box) -> tuple[NDArray[Any], tuple[slice, ...], list[int]]:
        """Return the source values on which a target box depends, their box, and the axis order.

        The image axes of the returned values are sorted by descending stride.
        """
        part = self.placement.source_box(box)
        values = np.asarray(self.array[(slice(None),) * self.first + part])
        strides = values.strides[self.first :]
        order = sorted(range(len(part)), key=lambda axis: -abs(strides[axis]))
        axes = (*range(self.first), *(self.first + axis for axis in order))
        return values.transpose(axes), part, order


class Nearest(_Resampled):
    """The labels or probabilities of the nearest source pixels.

    A pixel outside the field of view gets the label `outside`, or probability 1 in the row
    `outside`.
    """

    def __init__(self, array: Array, placement: Placement, outside: int) -> None:
        soft = len(array.shape) > len(placement.sizes)
        fits = soft or np.array(outside).astype(array.dtype) == outside
        rows, dtype = (array.shape[0] if soft else None), (array.dtype if fits else np.int64)
        super().__init__(array, placement, outside, rows, dtype)

    def tile(self, box: tuple[slice, ...]) -> NDArray[Any]:
        values, part, order = self.source(box)
        indices = self.placement.nearest(box, part, order)
        flat = values.reshape((*values.shape[: self.first], -1))
        result = flat[..., np.maximum(indices, 0)].astype(self.dtype, copy=False)
        if (indices < 0).any():
            if self.first:
                result[:, indices < 0] = 0
                result[self.outside, indices < 0] = 1
            else:
                result[indices < 0] = self.outside
        return result


class InterpolatedLabels(_Resampled):
    """Linearly interpolated indicators of labels: one row of probabilities per label."""

    def __init__(
        self, array: Array, placement: Placement, outside: int, labels: NDArray[Any]
    ) -> None:
        super().__init__(array, placement, outside, labels.size, np.float32)
        self.labels = labels

    def tile(self, box: tuple[slice, ...]) -> NDArray[Any]:
        from probdice.data.interpolation import interpolate_labels

        values, part, order = self.source(box)
        codes = self._codes(np.ascontiguousarray(values).reshape(-1))
        size = _size(box)
        result = np.zeros((self.labels.size, prod(size)), self.dtype)
        grid = self.placement.grid(box, part, order)
        interpolate_labels(codes, grid, self.outside, result)
        return result.reshape(-1, *size)

    def _codes(self, values: NDArray[Any]) -> NDArray[np.int32]:
        """Return the row of each value's label, or −1 for a value that is not a whole number."""
        values = zeros_and_ones(values)
        valid = None
        if values.dtype.kind == "f":
            valid = whole_numbers(values)
            values = np.where(valid, values, self.labels[0]).astype(np.int64)
        low, high = int(self.labels[0]), int(self.labels[-1])
        if high - low < TABLE:
            table = np.zeros(high - low + 1, np.int32)
            table[(self.labels - low).astype(np.intp)] = np.arange(self.labels.size)
            codes = table[values.astype(np.intp) - low]
        else:
            codes = np.searchsorted(self.labels, values).astype(np.int32)
        if valid is not None:
            codes[~valid] = -1
        return codes


class InterpolatedRows(_Resampled):
    """Linearly interpolated probabilities."""

    def __init__(self, array: Array, placement: Placement, outside: int) -> None:
        dtype = np.result_type(array.dtype, np.float32)
        super().__init__(array, placement, outside, array.shape[0], dtype)

    def tile(self, box: tuple[slice, ...]) -> NDArray[Any]:
        from probdice.data.interpolation import interpolate_rows

        values, part, order = self.source(box)
        rows = np.ascontiguousarray(values, self.dtype).reshape(len(values), -1)
        size = _size(box)
        result = np.empty((len(rows), prod(size)), self.dtype)
        grid = self.placement.grid(box, part, order)
        interpolate_rows(rows, grid, self.outside, invalid_values(rows, "error"), result)
        return result.reshape(-1, *size)


def _size(box: Box) -> tuple[int, ...]:
    """Return the length of a box along each axis."""
    return tuple(part.stop - part.start for part in box)


def _within(index: Sequence[slice], shape: Sequence[int]) -> tuple[slice, ...]:
    """Return slices with explicit bounds that lie within `shape`."""
    ranges = (part.indices(length) for part, length in zip(index, shape, strict=True))
    return tuple(slice(start, max(start, stop)) for start, stop, _ in ranges)


def _lengths(positions: Sequence[int], length: int) -> tuple[int, ...]:
    """Return the lengths of the parts of an axis that is divided at `positions`."""
    edges = sorted({0, length, *(position for position in positions if 0 < position < length)})
    return tuple(b - a for a, b in pairwise(edges))
