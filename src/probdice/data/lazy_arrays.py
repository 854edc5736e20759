"""Arrays that compute their blocks on demand, so that data on disk remain on disk."""

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise, product
from math import prod
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from probdice.data.arrays import Array, Chunks, chunks_of, has_type, is_reopenable

__all__ = [
    "Complement",
    "DerivedArray",
    "Dropped",
    "Intersection",
    "Lazy",
    "Scaled",
    "Stacked",
    "WithoutLabels",
    "blocks",
    "boxes",
    "reordered",
]


BLOCK = 1 << 20  # approximate number of values that are read at once


class Lazy(ABC):
    """An array whose shape and data type are known and whose blocks are computed on demand."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunks: Chunks | None = None  # chunk lengths along each axis, if the array is stored in chunks
    reopenable = False  # whether another process can read the array from its store

    @abstractmethod
    def block(self, index: tuple[slice, ...]) -> NDArray[Any]:
        """Return the values of a block, which is given by one slice of step 1 per axis."""

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any, /) -> NDArray[Any]:
        parts = [
            _part(part, size) for part, size in zip(self._per_axis(index), self.shape, strict=True)
        ]
        block: NDArray[Any] = self.block(tuple([box for box, _ in parts]))
        if all(selection == slice(None) for _, selection in parts):
            return block
        return block[tuple([selection for _, selection in parts])]

    def _per_axis(self, index: Any) -> tuple[Any, ...]:
        """Return one index per axis, with slices in place of an ellipsis and of missing indices."""
        parts = index if isinstance(index, tuple) else (index,)
        missing = len(self.shape) - sum(part is not Ellipsis for part in parts)
        if missing < 0:
            raise IndexError(f"{len(parts)} indices for an array with {len(self.shape)} axes")
        first = next((k for k, part in enumerate(parts) if part is Ellipsis), len(parts))
        return (*parts[:first], *(slice(None),) * missing, *parts[first + 1 :])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self.block((slice(None),) * len(self.shape)), dtype=dtype)


def _part(index: Any, size: int) -> tuple[slice, slice | int]:
    """Return the slice of an axis to read, and the index to apply to the values read.

    `index` is an integer or a slice with any step.
    """
    if not isinstance(index, slice):
        position = operator.index(index)
        if not -size <= position < size:
            raise IndexError(f"index {position} is out of bounds for an axis of length {size}")
        position %= size
        return slice(position, position + 1), 0
    start, stop, step = index.indices(size)
    if step == 1:
        return slice(start, max(start, stop)), slice(None)
    positions = range(start, stop, step)
    if not positions:
        return slice(0, 0), slice(None)
    lowest, highest = min(positions[0], positions[-1]), max(positions[0], positions[-1])
    return slice(lowest, highest + 1), slice(positions[0] - lowest, None, step)


class DerivedArray(Lazy):
    """An array that is computed from one or more arrays of the same shape.

    The result has the chunks of the first array that is stored in chunks. Subclasses may change the
    shape and the chunks.
    """

    def __init__(self, *arrays: Array, dtype: DTypeLike | None = None) -> None:
        self.arrays = arrays
        self.array = arrays[0]
        self.shape = tuple(self.array.shape)
        self.dtype = self.array.dtype if dtype is None else np.dtype(dtype)
        self.chunks = next((c for array in arrays if (c := chunks_of(array)) is not None), None)
        self.reopenable = all(is_reopenable(array) for array in arrays)


class Complement(DerivedArray):
    """The mask of the pixels where another mask is 0."""

    def __init__(self, mask: Array) -> None:
        super().__init__(mask, dtype=np.bool_)

    def block(self, index: tuple[slice, ...]) -> NDArray[Any]:
        return np.asarray(np.asarray(self.array[index]) == 0)


class Intersection(DerivedArray):
    """The mask of the pixels where all given masks differ from 0."""

    def __init__(self, masks: Sequence[Array]) -> None:
        super().__init__(*masks, dtype=np.bool_)

    def block(self, index: tuple[slice, ...]) -> NDArray[Any]:
        blocks = [np.asarray(mask[index]) != 0 for mask in self.arrays]
        return np.asarray(np.logical_and.reduce(blocks))


class WithoutLabels(DerivedArray):
    """The mask of the pixels in a label map whose label is not one of `labels`."""

    def __init__(self, array: Array, labels: Sequence[int]) -> None:
        super().__init__(array, dtype=np.bool_)
        self.labels = tuple(labels)

    def block(self, index: tuple[slice, ...]) -> NDArray[Any]:
        values = np.asarray(self.array[index])
        return np.asarray(np.logical_and.reduce([values != label for label in self.labels]))


class Scaled(DerivedArray):
    """The values (array × slope + inter) / divisor, as floating-point numbers."""

    def __init__(self, array: Array, slope: float, inter: float, divisor: float) -> None:
        # float32 can represent every 16-bit integer; float16 would lose digits in the division.
        needs_float64 = array.dtype.itemsize > (4 if array.dtype.kind == "f" else 2)
        super().__init__(array, dtype=np.float64 if needs_float64 else np.float32)
        self.slope, self.inter, self.divisor = slope, inter, divisor

    def block(self, index: tuple[slice, ...]) -> NDArray[Any]:
        # Overflow gives infinity, which the comparison rejects.
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.asarray(self.array[index]).astype(self.dtype)
            if self.slope != 1:
                values *= self.dtype.type(self.slope)
            if self.inter != 0:
                values += self.dtype.type(self.inter)
            if self.divisor != 1:
                values /= self.dtype.type(self.divisor)
        return values


class Stacked(DerivedArray):
    """Arrays of the same shape, stacked along a new first axis."""

    def __init__(self, arrays: Sequence[Array]) -> None:
        dtype = np.result_type(*(array.dtype for array in arrays)).newbyteorder("=")
        super().__init__(*arrays, dtype=dtype)
        self.shape = (len(arrays), *self.shape)
        chunks = chunks_of(self.array)
        self.chunks = None if chunks is None else ((1,) * len(arrays), *chunks)

    def block(self, index: tuple[slice, ...]) -> NDArray[Any]:
        parts = [np.asarray(array[index[1:]]) for array in self.arrays[index[0]]]
        if not parts:
            return np.empty((0, *np.empty(self.shape[1:], bool)[index[1:]].shape), self.dtype)
        return np.stack(parts).astype(self.dtype, copy=False)


class Dropped(DerivedArray):
    """An array from which one axis of length 1 is removed."""

    def __init__(self, array: Array, axis: int) -> None:
        super().__init__(array)
        self.axis = axis
        self.shape = (*self.shape[:axis], *self.shape[axis + 1 :])
        if self.chunks is not None:
            self.chunks = (*self.chunks[:axis], *self.chunks[axis + 1 :])

    def block(self, index: tuple[slice, ...]) -> NDArray[Any]:
        full_index = (*index[: self.axis], slice(None), *index[self.axis :])
        return np.asarray(self.array[full_index]).squeeze(self.axis)


class _Reordered(DerivedArray):
    """An array whose axes are reordered, then flipped."""

    def __init__(self, array: Array, order: tuple[int, ...], flips: tuple[int, ...]) -> None:
        super().__init__(array)
        self.order, self.flips = order, flips
        self.shape = tuple(array.shape[axis] for axis in order)
        if self.chunks is not None:
            lengths = [self.chunks[axis] for axis in order]
            self.chunks = tuple(n[::-1] if k in flips else n for k, n in enumerate(lengths))

    def block(self, index: tuple[slice, ...]) -> NDArray[Any]:
        source_index: list[slice] = [slice(None)] * len(self.order)
        for k, (axis, part) in enumerate(zip(self.order, index, strict=True)):
            start, stop, _ = part.indices(self.shape[k])
            if k in self.flips:
                start, stop = self.shape[k] - stop, self.shape[k] - start
            source_index[axis] = slice(start, stop)
        block = np.asarray(self.array[tuple(source_index)]).transpose(self.order)
        return np.flip(block, self.flips)


def reordered(array: Array, order: Sequence[int], flips: Sequence[int], first: int = 0) -> Array:
    """Reorder and then flip the axes of `array` that follow its `first` leading axes."""
    if not flips and tuple(order) == tuple(range(len(order))):
        return array
    order = (*range(first), *(first + axis for axis in order))
    flips = tuple(first + axis for axis in flips)
    if isinstance(array, np.ndarray):
        return np.flip(array.transpose(order), flips)
    if has_type(array, "dask", "Array"):  # remains a Dask array with one task per chunk
        steps = (slice(None, None, -1 if k in flips else 1) for k in range(len(order)))
        return cast(Array, cast(Any, array).transpose(order)[tuple(steps)])
    return _Reordered(array, order, flips)


def blocks(array: Array) -> Iterator[NDArray[Any]]:
    """Yield the whole array in blocks of about `BLOCK` values (see `boxes`)."""
    return (np.asarray(array[box]) for box in boxes(array))


def boxes(array: Array) -> Iterator[tuple[slice, ...]]:
    """Yield the boxes of the blocks into which an array is divided.

    If the array has chunks, each box consists of whole chunks. A NumPy array is divided along the
    axis with the largest stride. Any other array without chunks is divided along the first axis.
    """
    chunks = chunks_of(array)
    axes = range(len(array.shape))
    if chunks is not None:
        yield from _whole_chunks(chunks)
    elif not axes:
        yield ()
    else:
        strides = array.strides if isinstance(array, np.ndarray) else (1,) * len(axes)
        slowest = max(axes, key=lambda axis: abs(strides[axis]))
        step = max(1, BLOCK * array.shape[slowest] // max(prod(array.shape), 1))
        for start in range(0, array.shape[slowest], step):
            part = slice(start, start + step)
            yield tuple(part if axis == slowest else slice(None) for axis in axes)


def _whole_chunks(chunks: Chunks) -> Iterator[tuple[slice, ...]]:
    """Yield boxes of whole chunks. Boxes are extended along the last axes first."""
    edges = [list(accumulate(lengths, initial=0)) for lengths in chunks]
    count = prod(max(lengths, default=0) for lengths in chunks)  # values of the largest box
    for axis in reversed(range(len(edges))):
        chunks_per_box = max(1, min(BLOCK // max(count, 1), len(chunks[axis])))
        edges[axis] = [*edges[axis][:-1:chunks_per_box], edges[axis][-1]]
        count *= chunks_per_box
    yield from product(*([slice(*pair) for pair in pairwise(axis_edges)] for axis_edges in edges))
