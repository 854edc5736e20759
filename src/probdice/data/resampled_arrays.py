"""Arrays that read an image at the pixels of another grid, block by block, and masks."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.data.arrays import Array, Chunks, Lazy, chunks_of, travels
from probdice.data.value_checks import (
    Reading,
    as_probabilities,
    decoded_labels,
    invalid_values,
    whole_numbers,
)

__all__ = [
    "Complement",
    "Decoded",
    "FieldOfView",
    "InterpolatedLabels",
    "InterpolatedRows",
    "Intersection",
    "Nearest",
    "Padded",
    "Placement",
    "WithoutLabels",
]

LARGEST = 2**21  # source pixels that are read at once
SMALLEST = 2**12  # pixels that are always read at once, even if their source is larger
TILE = 2**18  # pixels of a chunk if the grids are rotated against each other
TABLE = 2**20  # largest range of labels with a lookup table
ALIGNED = 1e-6  # largest matrix element of axes that do not influence each other

Box = Sequence[slice]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Placement:
    """Position of the pixels of a target grid in a source image.

    The target pixel i lies at ``matrix @ i + offset``, in source pixels.

    Attributes
    ----------
    matrix : ndarray of float64
        One row per axis of the source, one column per axis of the target.
    offset : ndarray of float64
        Position of the first target pixel.
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
        """The lowest and highest positions of the pixels of a box, along each source axis."""
        ends = [self.matrix[:, k] * part.start for k, part in enumerate(box)]
        others = [self.matrix[:, k] * (part.stop - 1) for k, part in enumerate(box)]
        low = self.offset + sum(map(np.minimum, ends, others))
        high = self.offset + sum(map(np.maximum, ends, others))
        return low, high

    @property
    def whole(self) -> tuple[slice, ...]:
        """The box of all target pixels."""
        return tuple(slice(0, length) for length in self.shape)

    def source_box(self, box: Box) -> tuple[slice, ...]:
        """The source pixels that the values of a box depend on."""
        parts = []
        for low, high, size in zip(*self.reach(box), self.sizes, strict=True):
            start = min(max(floor(low), 0), size - 1)
            parts.append(slice(start, max(start + 1, min(floor(high) + 2, size))))
        return tuple(parts)

    def at(self, box: Box) -> Floats:
        """The position of the first pixel of a box."""
        start: Floats = self.offset + self.matrix @ [part.start for part in box]
        return start

    def chunks(self, source: Chunks | None) -> Chunks | None:
        """The chunks of the target that follow the chunks of the source.

        If the grids are rotated against each other, chunks are cubes, because they depend on the
        fewest source pixels.
        """
        pairs = [int(np.argmax(np.abs(column))) for column in self.matrix.T]
        rest = self.matrix.copy()
        rest[pairs, range(len(pairs))] = 0
        if len(set(pairs)) < len(pairs) or np.abs(rest).max(initial=0) > ALIGNED:
            edge = max(1, round(TILE ** (1 / len(self.shape))))
            return tuple(_lengths(range(edge, n, edge), n) for n in self.shape)
        if source is None:
            return None
        lengths = []
        for k, axis in enumerate(pairs):
            edges = np.cumsum(source[axis])[:-1]
            cuts = (edges - 0.5 - self.offset[axis]) / self.matrix[axis, k]
            lengths.append(_lengths([ceil(cut) for cut in cuts], self.shape[k]))
        return tuple(lengths)


class FieldOfView(Lazy):
    """Whether each target pixel lies in the field of view of the source."""

    dtype = np.dtype(np.bool_)
    travels = True

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self.shape = placement.shape

    def block(self, index: tuple[slice, ...]) -> NDArray[Any]:
        box = _within(index, self.shape)
        whole = tuple(slice(0, size) for size in self.placement.sizes)
        return _nearest(self.placement, box, whole, range(len(whole))) >= 0


class Intersection(Lazy):
    """Pixels where all masks differ from 0."""

    dtype = np.dtype(np.bool_)

    def __init__(self, masks: Sequence[Array]) -> None:
        self.masks = tuple(masks)
        self.shape = tuple(self.masks[0].shape)
        self.chunks = next((c for mask in masks if (c := chunks_of(mask)) is not None), None)
        self.travels = all(travels(mask) for mask in self.masks)

    def block(self, index: tuple[slice, ...]) -> NDArray[Any]:
        blocks = [np.asarray(mask[index]) != 0 for mask in self.masks]
        return np.asarray(np.logical_and.reduce(blocks))


class WithoutLabels(Lazy):
    """Pixels of a label map that have none of some labels."""

    dtype = np.dtype(np.bool_)

    def __init__(self, array: Array, labels: Sequence[int]) -> None:
        self.array, self.labels = array, tuple(labels)
        self.shape = tuple(array.shape)
        self.chunks = chunks_of(array)
        self.travels = travels(array)

    def block(self, index: tuple[slice, ...]) -> NDArray[Any]:
        values = np.asarray(self.array[index])
        return np.asarray(np.logical_and.reduce([values != label for label in self.labels]))


class Complement(Lazy):
    """Pixels where a mask is 0."""

    dtype = np.dtype(np.bool_)

    def __init__(self, mask: Array) -> None:
        self.mask = mask
        self.shape = tuple(mask.shape)
        self.chunks, self.travels = chunks_of(mask), travels(mask)

    def block(self, index: tuple[slice, ...]) -> NDArray[Any]:
        return np.asarray(np.asarray(self.mask[index]) == 0)


class Decoded(Lazy):
    """Stored values as probabilities, regions first. Pixels with invalid values are NaN."""

    def __init__(self, array: Array, reading: Reading, regions: int) -> None:
        self.array, self.reading = array, reading
        self.first = 0 if reading == "foreground" else 1
        self.shape = (regions, *array.shape[self.first :])
        self.dtype = np.result_type(array.dtype, np.float32)
        chunks = chunks_of(array)
        self.chunks = None if chunks is None else ((regions,), *chunks[self.first :])
        self.travels = travels(array)

    def block(self, index: tuple[slice, ...]) -> NDArray[Any]:
        values = np.asarray(self.array[(slice(None),) * self.first + tuple(index[1:])])
        size = values.shape[self.first :]
        rows = values.astype(self.dtype).reshape(values.shape[0] if self.first else 1, -1)
        invalid = invalid_values(rows, self.reading)
        rows = as_probabilities(rows, self.reading)
        rows[:, invalid] = np.nan
        return rows.reshape(-1, *size)[index[0]]


class Padded(Lazy):
    """An array with the axes of the target, cropped or padded along each of them.

    Target pixel i is the pixel i + start of the array. Pixels outside get the label `outside`, or
    probability 1 in the row `outside`.
    """

    def __init__(
        self, array: Array, starts: Sequence[int], shape: tuple[int, ...], outside: int
    ) -> None:
        self.array, self.starts, self.outside = array, tuple(starts), outside
        self.first = len(array.shape) - len(shape)
        self.shape = (*array.shape[: self.first], *shape)
        fits = self.first or np.array(outside).astype(array.dtype) == outside
        self.dtype = array.dtype if fits else np.dtype(np.int64)
        self.travels = travels(array)
        chunks = chunks_of(array)
        if chunks is not None:
            moved = (
                _lengths((np.cumsum(lengths)[:-1] - start).tolist(), length)
                for lengths, start, length in zip(
                    chunks[self.first :], self.starts, shape, strict=True
                )
            )
            self.chunks = (*chunks[: self.first], *moved)

    def block(self, index: tuple[slice, ...]) -> NDArray[Any]:
        rows = np.arange(self.shape[0])[index[0]] if self.first else None
        box = _within(index[self.first :], self.shape[self.first :])
        size = tuple(part.stop - part.start for part in box)
        if rows is None:
            result = np.full(size, self.outside, self.dtype)
        else:
            result = np.zeros((rows.size, *size), self.dtype)
            result[rows == self.outside] = 1
        taken, put = [], []
        for part, start, length in zip(
            box, self.starts, self.array.shape[self.first :], strict=True
        ):
            low = min(max(part.start + start, 0), length)
            high = min(max(part.stop + start, low), length)
            taken.append(slice(low, high))
            put.append(slice(low - start - part.start, high - start - part.start))
        if all(part.stop > part.start for part in taken):
            regions = index[: self.first]
            result[(slice(None),) * self.first + tuple(put)] = self.array[(*regions, *taken)]
        return result


class _Resampled(Lazy):
    """Values of a source array at the positions of a `placement`.

    Boxes are divided such that the part of the source that a division depends on is small.
    """

    def __init__(self, array: Array, placement: Placement, rows: int | None) -> None:
        self.array, self.placement = array, placement
        self.first = len(array.shape) - len(placement.sizes)
        self.shape = placement.shape if rows is None else (rows, *placement.shape)
        chunks = chunks_of(array)
        spatial = placement.chunks(None if chunks is None else chunks[self.first :])
        if spatial is not None:
            self.chunks = spatial if rows is None else ((rows,), *spatial)
        self.travels = travels(array)

    @abstractmethod
    def tile(self, box: tuple[slice, ...]) -> NDArray[Any]:
        """The values of a small box, with all rows."""

    def block(self, index: tuple[slice, ...]) -> NDArray[Any]:
        regions = index[: len(self.shape) - len(self.placement.shape)]
        box = _within(index[len(regions) :], self.placement.shape)
        tiles = list(self._tiles(box))
        if len(tiles) == 1:
            return self.tile(box)[regions] if regions else self.tile(box)
        size = (*self.shape[: len(regions)], *(part.stop - part.start for part in box))
        result = np.empty(size, self.dtype)
        for tile in tiles:
            place = (
                slice(part.start - own.start, part.stop - own.start)
                for part, own in zip(tile, box, strict=True)
            )
            result[(slice(None),) * len(regions) + tuple(place)] = self.tile(tile)
        return result[regions] if regions else result

    def _tiles(self, box: tuple[slice, ...]) -> Iterator[tuple[slice, ...]]:
        lengths = [part.stop - part.start for part in box]
        source = prod(part.stop - part.start for part in self.placement.source_box(box))
        if source <= LARGEST or prod(lengths) <= SMALLEST:
            yield box
            return
        axis = int(np.argmax(lengths))
        middle = box[axis].start + lengths[axis] // 2
        for part in (slice(box[axis].start, middle), slice(middle, box[axis].stop)):
            yield from self._tiles((*box[:axis], part, *box[axis + 1 :]))

    def source(self, box: Box) -> tuple[NDArray[Any], tuple[slice, ...], list[int]]:
        """The values that a box depends on, with axes in memory order, their box, and the order."""
        part = self.placement.source_box(box)
        values = np.asarray(self.array[(slice(None),) * self.first + part])
        strides = values.strides[self.first :]
        order = sorted(range(len(part)), key=lambda axis: -abs(strides[axis]))
        axes = (*range(self.first), *(self.first + axis for axis in order))
        return values.transpose(axes), part, order


class Nearest(_Resampled):
    """The nearest labels or probabilities.

    Pixels outside get the label `outside`, or probability 1 in the row `outside`.
    """

    def __init__(self, array: Array, placement: Placement, outside: int) -> None:
        soft = len(array.shape) > len(placement.sizes)
        super().__init__(array, placement, array.shape[0] if soft else None)
        self.outside = outside
        fits = soft or np.array(outside).astype(array.dtype) == outside
        self.dtype = array.dtype if fits else np.dtype(np.int64)

    def tile(self, box: tuple[slice, ...]) -> NDArray[Any]:
        values, part, order = self.source(box)
        places = _nearest(self.placement, box, part, order)
        flat = values.reshape((*values.shape[: self.first], -1))
        result = flat[..., np.maximum(places, 0)].astype(self.dtype, copy=False)
        if (places < 0).any():
            if self.first:
                result[:, places < 0] = 0
                result[self.outside, places < 0] = 1
            else:
                result[places < 0] = self.outside
        return result


class InterpolatedLabels(_Resampled):
    """Linear interpolation of the indicators of labels: one row of probabilities per label."""

    dtype = np.dtype(np.float32)

    def __init__(
        self, array: Array, placement: Placement, labels: NDArray[Any], outside: int
    ) -> None:
        super().__init__(array, placement, labels.size)
        self.labels, self.outside = labels, outside

    def tile(self, box: tuple[slice, ...]) -> NDArray[Any]:
        from probdice.data.interpolation import interpolate_labels

        values, part, order = self.source(box)
        codes = self._codes(np.ascontiguousarray(values).reshape(-1))
        size = tuple(part.stop - part.start for part in box)
        result = np.zeros((self.labels.size, prod(size)), self.dtype)
        arguments = _arguments(self.placement, box, part, order)
        interpolate_labels(codes, *arguments, self.outside, result)
        return result.reshape(-1, *size)

    def _codes(self, values: NDArray[Any]) -> NDArray[np.int32]:
        """The row of every label; −1 for values that are not whole numbers."""
        values = decoded_labels(values)
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
    """Linear interpolation of probabilities."""

    def __init__(self, array: Array, placement: Placement, outside: int) -> None:
        super().__init__(array, placement, array.shape[0])
        self.outside = outside
        self.dtype = np.result_type(array.dtype, np.float32)

    def tile(self, box: tuple[slice, ...]) -> NDArray[Any]:
        from probdice.data.interpolation import interpolate_rows

        values, part, order = self.source(box)
        rows = np.ascontiguousarray(values, self.dtype).reshape(len(values), -1)
        size = tuple(part.stop - part.start for part in box)
        result = np.empty((len(rows), prod(size)), self.dtype)
        arguments = _arguments(self.placement, box, part, order)
        interpolate_rows(rows, *arguments, self.outside, invalid_values(rows, "error"), result)
        return result.reshape(-1, *size)


def _arguments(
    placement: Placement, box: Box, source: Box, order: Sequence[int]
) -> tuple[Floats, Floats, Integers, Integers, Integers, Integers]:
    """The arguments of kernels for a target box, with the source axes in this order."""
    axes = list(order)
    return (
        np.ascontiguousarray(placement.matrix[axes]),
        placement.at(box)[axes],
        np.array([placement.sizes[axis] for axis in axes], np.int64),
        np.array([source[axis].start for axis in axes], np.int64),
        np.array([source[axis].stop - source[axis].start for axis in axes], np.int64),
        np.array([part.stop - part.start for part in box], np.int64),
    )


def _nearest(placement: Placement, box: Box, source: Box, order: Sequence[int]) -> Integers:
    """The nearest pixel of the source box of every pixel of a box; −1 outside."""
    from probdice.data.interpolation import nearest_places

    size = tuple(part.stop - part.start for part in box)
    places = np.empty(size, np.int64)
    nearest_places(*_arguments(placement, box, source, order), places.reshape(-1))
    return places


def _within(index: Sequence[slice], shape: Sequence[int]) -> tuple[slice, ...]:
    """Slices with explicit bounds."""
    ranges = (part.indices(length) for part, length in zip(index, shape, strict=True))
    return tuple(slice(start, max(start, stop)) for start, stop, _ in ranges)


def _lengths(cuts: Sequence[int], length: int) -> tuple[int, ...]:
    """The lengths of the parts of an axis that is divided at these places."""
    edges = sorted({0, length, *(cut for cut in cuts if 0 < cut < length)})
    return tuple(b - a for a, b in pairwise(edges))
