"""Arrays that compute blocks on demand, so that data on disk stay on disk."""

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise, product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.data.arrays import Array, Chunks, Lazy, chunks_of, travels

__all__ = ["Dropped", "Scaled", "Stacked", "blocks", "zeros_and_ones"]


class Scaled(Lazy):
    """(array × slope + inter) / divisor, as floating-point numbers."""

    def __init__(self, array: Array, slope: float, inter: float, divisor: float) -> None:
        self.array = array
        self.slope, self.inter, self.divisor = slope, inter, divisor
        self.shape = tuple(array.shape)
        self.chunks, self.travels = chunks_of(array), travels(array)
        # float32 holds every 16-bit integer; float16 would lose digits in the division.
        wide = array.dtype.itemsize > (4 if array.dtype.kind == "f" else 2)
        self.dtype = np.dtype(np.float64 if wide else np.float32)

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


class Stacked(Lazy):
    """Arrays of the same shape, stacked along a new first axis."""

    def __init__(self, arrays: Sequence[Array]) -> None:
        self.arrays = tuple(arrays)
        self.shape = (len(self.arrays), *self.arrays[0].shape)
        chunks = chunks_of(self.arrays[0])
        self.travels = all(travels(array) for array in self.arrays)
        self.chunks = None if chunks is None else ((1,) * len(self.arrays), *chunks)
        self.dtype = np.result_type(*(array.dtype for array in self.arrays)).newbyteorder("=")

    def block(self, index: tuple[slice, ...]) -> NDArray[Any]:
        parts = [np.asarray(array[index[1:]]) for array in self.arrays[index[0]]]
        if not parts:
            return np.empty((0, *np.empty(self.shape[1:], bool)[index[1:]].shape), self.dtype)
        return np.stack(parts).astype(self.dtype, copy=False)


class Dropped(Lazy):
    """An array without one axis of length 1."""

    def __init__(self, array: Array, axis: int) -> None:
        self.array, self.axis = array, axis
        self.shape = (*array.shape[:axis], *array.shape[axis + 1 :])
        chunks = chunks_of(array)
        self.travels = travels(array)
        self.chunks = None if chunks is None else (*chunks[:axis], *chunks[axis + 1 :])
        self.dtype = array.dtype

    def block(self, index: tuple[slice, ...]) -> NDArray[Any]:
        whole = (*index[: self.axis], slice(None), *index[self.axis :])
        return np.asarray(self.array[whole]).squeeze(self.axis)


def zeros_and_ones(array: NDArray[Any]) -> NDArray[Any]:
    """Normalise the bytes of a boolean array to 0 and 1; a file may store other true values."""
    if array.dtype != np.bool_:
        return array
    content = array.view(np.uint8)
    return array if content.max(initial=0) <= 1 else content != 0


def blocks(array: Array, size: int = 1 << 20) -> Iterator[NDArray[Any]]:
    """Yield the whole array in contiguous blocks of about `size` values."""
    chunks = chunks_of(array)
    if chunks is not None:
        for box in _whole_chunks(chunks, size):
            yield np.asarray(array[box])
        return
    axes = range(len(array.shape))
    axis = 0
    if isinstance(array, np.ndarray) and array.ndim:
        axis = max(axes, key=lambda k: abs(array.strides[k]))
    if not axes:
        yield np.asarray(array)
        return
    total = int(np.prod(array.shape, dtype=np.int64))
    step = max(1, size * array.shape[axis] // max(total, 1))
    for start in range(0, array.shape[axis], step):
        part = tuple(slice(start, start + step) if k == axis else slice(None) for k in axes)
        yield np.asarray(array[part])


def _whole_chunks(chunks: Chunks, size: int) -> Iterator[tuple[slice, ...]]:
    """Yield boxes of whole chunks with about `size` values, growing along the last axes first."""
    edges = [list(accumulate(lengths, initial=0)) for lengths in chunks]
    count = prod(max(lengths, default=0) for lengths in chunks)  # values of the largest box
    for axis in reversed(range(len(edges))):
        together = max(1, min(size // max(count, 1), len(chunks[axis])))
        edges[axis] = [*edges[axis][:-1:together], edges[axis][-1]]
        count *= together
    yield from product(*([slice(*pair) for pair in pairwise(along)] for along in edges))
