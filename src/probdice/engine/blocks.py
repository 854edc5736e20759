"""Images cut into blocks, and one block made ready for a kernel.

A block is handed out as it lies in memory wherever that is possible. Otherwise it is copied into a
scratch array of the worker, which is where axes are put in order, types and byte order converted,
sums mended and pixels outside Ω dropped.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.segmentation import Array, Segmentation, reordered
from probdice.value_checks import (
    Fault,
    as_probabilities,
    examine_labels,
    examine_values,
    whole_numbers,
)

__all__ = ["Block", "Blocks", "Crisp", "Ready", "Soft", "cut", "encoded"]

# Of all sides in a block: large enough that the cost of a Python call per block does not matter,
# small enough to be copied.
BLOCK_BYTES = 2**24
FEWEST_PIXELS = 4096  # in a block, however many regions there are


@dataclass(frozen=True)
class Block:
    """A box of the image that is one range of pixels in the order of traversal."""

    box: tuple[slice, ...]
    start: int
    stop: int


@dataclass(frozen=True)
class Soft:
    """Pixels as rows of probabilities, from column `start` on."""

    rows: NDArray[Any]
    start: int
    size: int


@dataclass(frozen=True)
class Crisp:
    """Pixels as a code each, and the label of every code.

    Labels that occur in the block but outside Ω have a code that no pixel carries.
    """

    codes: NDArray[np.int32]
    labels: NDArray[Any]

    @property
    def size(self) -> int:
        """How many pixels there are."""
        return self.codes.size


@dataclass(frozen=True)
class Ready:
    """The pixels of Ω in one block, of every side, and what is amiss with each.

    `inside` has their places in the block, or is None where all of it is in Ω.
    """

    sides: tuple[Soft | Crisp, ...]
    faults: tuple[Fault | None, ...]
    inside: NDArray[np.int64] | None

    @property
    def size(self) -> int:
        """How many pixels there are."""
        return self.sides[0].size


class Blocks:
    """The blocks of segmentations of one image, in one order of traversal.

    Labels that the first one ignores leave Ω, like what is outside the mask.
    """

    def __init__(self, *sides: Segmentation, mask: Array | None = None):
        self.order = _traversal(sides)
        self.shape = tuple(sides[0].shape[axis] for axis in self.order)
        self.dtype = np.result_type(*(_working_type(side) for side in sides))
        self.ignore = sides[0].ignore
        self._scratch = _Scratch()
        self._mask = None if mask is None else reordered(mask, self.order, ())
        self._sides = [self._side(side) for side in sides]
        pixel = sum(
            side.array.dtype.itemsize if side.crisp else len(side.regions) * self.dtype.itemsize
            for side in sides
        )
        self.blocks = list(cut(self.shape, max(FEWEST_PIXELS, BLOCK_BYTES // pixel)))

    @property
    def whole(self) -> bool:
        """Whether Ω is the whole image."""
        return self._mask is None and not self.ignore

    def ready(self, block: Block) -> Ready:
        """The pixels of Ω in a block, as kernels take them."""
        inside = self._inside(block)
        sides, faults = zip(*(side.read(block, inside) for side in self._sides), strict=True)
        return Ready(sides, faults, inside)

    def labels_of(self, block: Block) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """Both sides as they lie in memory, where both are label maps and all pixels are in Ω."""
        if not self.whole:
            return None
        p, q = self._sides
        if not (isinstance(p, _LabelMap) and isinstance(q, _LabelMap)):
            return None
        if p.flat is None or q.flat is None:
            return None
        return p.flat[block.start : block.stop], q.flat[block.start : block.stop]

    def image(self, flat: NDArray[Any]) -> NDArray[Any]:
        """Values in the order of traversal, along the last axis, as an image."""
        shaped = flat.reshape((*flat.shape[:-1], *self.shape))
        first = flat.ndim - 1
        back = np.argsort(self.order) + first
        return shaped.transpose((*range(first), *back))

    def place(self, pixel: int) -> tuple[int, ...]:
        """Index in the image of a pixel in the order of traversal."""
        index = np.unravel_index(pixel, self.shape)
        return tuple(int(index[self.order.index(axis)]) for axis in range(len(self.shape)))

    def _side(self, side: Segmentation) -> "_LabelMap | _Probabilities":
        if side.crisp:
            return _LabelMap(side, self.order, self._scratch)
        return _Probabilities(side, self.order, self.dtype, self._scratch)

    def _inside(self, block: Block) -> NDArray[np.int64] | None:
        """Which pixels of a block are in Ω; None where all are."""
        if self.whole:
            return None
        inside = np.ones(block.stop - block.start, np.bool_)
        if self._mask is not None:
            inside &= np.asarray(self._mask[block.box]).reshape(-1) != 0
        if self.ignore:
            labels = self._sides[0]
            assert isinstance(labels, _LabelMap)
            values = labels.values(block)
            for label in self.ignore:
                inside &= values != label
        return None if inside.all() else np.flatnonzero(inside)


class _Scratch(threading.local):
    """Arrays that a worker uses again for every block."""

    def __init__(self) -> None:
        self._buffers: dict[object, NDArray[Any]] = {}

    def array(self, owner: object, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """An uninitialised array, contiguous; the owner's last one of this type is gone."""
        size = prod(shape)
        buffer = self._buffers.get((owner, dtype))
        if buffer is None or buffer.size < size:
            buffer = self._buffers[owner, dtype] = np.empty(size, dtype)
        return buffer[:size].reshape(shape)


class _Probabilities:
    """A probabilistic side."""

    def __init__(
        self, side: Segmentation, order: tuple[int, ...], dtype: np.dtype[Any], scratch: _Scratch
    ):
        first = 0 if side.reading == "foreground" else 1
        self.array = reordered(side.array, order, (), first)
        self.reading = side.reading
        self.regions = len(side.regions)
        self.dtype = dtype
        self.scratch = scratch
        self.flat = None
        if side.reading == "error" and self.array.dtype == dtype:
            self.flat = _flat(self.array, (self.regions, -1))

    def read(self, block: Block, inside: NDArray[np.int64] | None) -> tuple[Soft, Fault | None]:
        """Rows of probabilities. Where they are taken as they came, the kernels look for faults."""
        if self.flat is not None and inside is None:
            return Soft(self.flat, block.start, block.stop - block.start), None
        rows = self._raw(block, inside)
        fault = None
        if self.reading != "error":
            fault = examine_values(rows, self.reading)
            into = None
            if len(rows) < self.regions:
                shape = self.regions, rows.shape[1]
                into = self.scratch.array((self, "mended"), shape, self.dtype)
            rows = as_probabilities(rows, self.reading, into)
        return Soft(rows, 0, rows.shape[1]), fault

    def _raw(self, block: Block, inside: NDArray[np.int64] | None) -> NDArray[Any]:
        """The values as they came, contiguous and of the working type."""
        box = block.box if self.reading == "foreground" else (slice(None), *block.box)
        values = np.asarray(self.array[box])
        channels = 1 if self.reading == "foreground" else self.array.shape[0]
        size = block.stop - block.start
        if inside is None:
            rows = self.scratch.array((self, "raw"), (channels, size), self.dtype)
            rows.reshape(values.shape)[...] = values
            return rows
        rows = self.scratch.array((self, "raw"), (channels, inside.size), self.dtype)
        for channel in range(channels):
            row = values if self.reading == "foreground" else values[channel]
            rows[channel] = row.reshape(-1)[inside]
        return rows


class _LabelMap:
    """A crisp side."""

    def __init__(self, side: Segmentation, order: tuple[int, ...], scratch: _Scratch):
        self.array = reordered(side.array, order, ())
        self.scratch = scratch
        self.dtype = np.dtype(np.int64) if side.array.dtype.kind == "f" else side.array.dtype
        self.dtype = self.dtype.newbyteorder("=")
        self.flat = None
        if self.array.dtype == self.dtype and self.dtype.kind != "b":
            self.flat = _flat(self.array, (-1,))

    def values(self, block: Block) -> NDArray[Any]:
        """The labels of a block, contiguous; floating where the map is."""
        if self.flat is not None:
            return self.flat[block.start : block.stop]
        values = np.asarray(self.array[block.box]).reshape(-1)
        if values.dtype.kind == "b":  # a boolean is true whatever its byte
            return np.not_equal(values.view(np.uint8), 0)
        return values

    def read(self, block: Block, inside: NDArray[np.int64] | None) -> tuple[Crisp, Fault | None]:
        """Codes of the pixels in Ω, and the labels of all pixels of the block."""
        values = self.values(block)
        fault = None
        if values.dtype.kind == "f":
            fault = examine_labels(values if inside is None else values[inside])
            codes, labels = self._encoded_whole(values)
            if labels.size == 0 and (inside is None or inside.size):  # codes need some label
                labels = np.zeros(1, self.dtype)
        else:
            codes, labels = self._encoded(np.ascontiguousarray(values, self.dtype))
        return Crisp(codes if inside is None else codes[inside], labels), fault

    def _encoded_whole(self, values: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """The same for floating labels.

        Pixels outside Ω and invalid values get an arbitrary code; they are never counted.
        """
        whole = whole_numbers(values)
        if whole.all():
            return self._encoded(values.astype(self.dtype))
        whole_codes, labels = self._encoded(values[whole].astype(self.dtype))
        codes = np.zeros(values.size, np.int32)
        codes[whole] = whole_codes
        return codes, labels

    def _encoded(self, values: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """A code for every value and the label of every code."""
        unsigned = values.view(f"u{values.itemsize}")
        into = self.scratch.array((self, "codes"), unsigned.shape, np.dtype(np.int32))
        codes, labels = encoded(unsigned, into)
        return codes, labels.view(values.dtype)


def encoded(
    values: NDArray[Any], into: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """A code for every value of an unsigned type, numbered as they come, and those values."""
    from probdice.engine.kernels import labels as kernels

    room = 256
    while True:
        labels = np.empty(room, values.dtype)
        slots = np.full(4 * room, -1, np.int32)
        count = kernels.encode(values, slots, labels, into)
        if count >= 0:
            return into, labels[:count]
        room *= 8


def _traversal(sides: Sequence[Segmentation]) -> tuple[int, ...]:
    """Spatial axes by falling stride of the array with more bytes to read.

    Of several equally large ones it does not matter which comes first.
    """
    axes = tuple(range(len(sides[0].shape)))
    arrays = [side.array for side in sides if isinstance(side.array, np.ndarray)]
    if not arrays or not axes or all(array.flags.c_contiguous for array in arrays):
        return axes
    strides = max((array.nbytes, array.strides[-len(axes) :]) for array in arrays)[1]
    return tuple(sorted(axes, key=lambda axis: -abs(strides[axis])))


def _working_type(side: Segmentation) -> np.dtype[Any]:
    """float32 wherever it holds every value."""
    if side.crisp:
        return np.dtype(np.float32)
    return np.result_type(side.array.dtype, np.float32)


def _flat(array: Array, shape: tuple[int, ...]) -> NDArray[Any] | None:
    """The array itself with its spatial axes joined, if it lies in memory that way."""
    if isinstance(array, np.ndarray) and array.flags.c_contiguous and array.flags.aligned:
        return np.asarray(array).reshape(shape)
    return None


def cut(shape: tuple[int, ...], most: int) -> Iterator[Block]:
    """Cut an image into boxes of at most `most` pixels, each one range in C order."""
    if 0 < prod(shape) <= most:
        yield Block((slice(None),) * len(shape), 0, prod(shape))
        return
    axis = 0
    while axis < len(shape) and prod(shape[axis + 1 :]) > most:
        axis += 1
    if axis == len(shape):  # no axes at all: a single pixel
        yield Block((), 0, 1)
        return
    inner = prod(shape[axis + 1 :])
    step = max(1, most // max(inner, 1))
    start = 0
    for outer in product(*(range(n) for n in shape[:axis])):
        for first in range(0, shape[axis], step):
            stop = min(first + step, shape[axis])
            box = (
                *(slice(k, k + 1) for k in outer),
                slice(first, stop),
                *(slice(None) for _ in shape[axis + 1 :]),
            )
            size = (stop - first) * inner
            yield Block(box, start, start + size)
            start += size
