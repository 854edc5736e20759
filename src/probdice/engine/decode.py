"""Decoders, which convert the stored values of a segmentation to the input of kernels.

Values are labels, booleans, probabilities, logits or the probability of a single foreground. Values
may have any data type, byte order and memory order. Values are used without a copy if possible.
Otherwise, values are copied into a buffer of the thread, and `probdice.data.value_checks` converts
the copy.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.data.segmentation import Array, Segmentation, reordered
from probdice.data.value_checks import (
    Fault,
    decoded,
    examine_labels,
    whole_numbers,
    zeros_and_ones,
)
from probdice.engine.grids import Block

__all__ = [
    "Crisp",
    "DecodedBlock",
    "LabelDecoder",
    "ProbabilityDecoder",
    "Soft",
    "decoder_of",
    "encoded",
    "working_type",
]


@dataclass(frozen=True)
class Soft:
    """The pixels of a probabilistic side, as a part of rows that contain more pixels."""

    rows: NDArray[Any]
    start: int
    size: int

    @property
    def values(self) -> NDArray[Any]:
        """The probabilities of the pixels, with one row per region."""
        return self.rows[:, self.start : self.start + self.size]


@dataclass(frozen=True)
class Crisp:
    """The pixels of a label map, as one code per pixel and the label of every code.

    A label that occurs only outside the mask has a code but no pixels.
    """

    codes: NDArray[np.int32]
    labels: NDArray[Any]

    @property
    def size(self) -> int:
        """Number of pixels."""
        return self.codes.size

    @property
    def values(self) -> NDArray[Any]:
        """The label of every pixel."""
        return self.labels[self.codes]


@dataclass(frozen=True)
class DecodedBlock:
    """The compared pixels of one block, and the invalid values, for each side.

    `inside` contains the positions of the compared pixels in the block, or is None if all pixels
    are compared.
    """

    sides: tuple[Soft | Crisp, ...]
    faults: tuple[Fault | None, ...]
    inside: NDArray[np.int64] | None

    @property
    def size(self) -> int:
        """Number of compared pixels."""
        return self.sides[0].size


def decoder_of(
    side: Segmentation, order: tuple[int, ...], dtype: np.dtype[Any] | None = None
) -> "LabelDecoder | ProbabilityDecoder":
    """Return the decoder of a segmentation, which reads its values block by block.

    Parameters
    ----------
    order : tuple of int
        The axes of the image in the order in which pixels are visited.
    dtype : dtype, optional
        Data type of the probabilities. The default is the `working_type` of the side.
    """
    if side.crisp:
        return LabelDecoder(side, order)
    return ProbabilityDecoder(side, order, dtype or working_type(side))


def working_type(side: Segmentation) -> np.dtype[Any]:
    """Return the type of a side's probabilities.

    It is float32 for label maps and for stored data types whose values float32 can represent, and a
    larger type otherwise.
    """
    if side.crisp:
        return np.dtype(np.float32)
    return np.result_type(side.array.dtype, np.float32)


class ProbabilityDecoder:
    """Decoder of a probabilistic side."""

    def __init__(self, side: Segmentation, order: tuple[int, ...], dtype: np.dtype[Any]):
        first = 0 if side.reading == "foreground" else 1
        self.array = reordered(side.array, order, (), first)
        self.reading = side.reading
        self.regions = len(side.regions)
        self.dtype = dtype
        self.scratch = _Scratch()
        self.flat = None
        if side.reading == "error" and self.array.dtype == dtype:
            self.flat = _flat(self.array, (self.regions, -1))

    def read(self, block: Block, inside: NDArray[np.int64] | None) -> tuple[Soft, Fault | None]:
        """Return rows of probabilities, and a `Fault` that describes invalid values, or None.

        If the reading is "error", the second value is None, and the caller checks the values.
        """
        if self.flat is not None and inside is None:
            pixels = block.range_in(self.array.shape[1:])
            if pixels is not None:
                return Soft(self.flat, pixels.start, len(pixels)), None
        rows = self._raw(block, inside)
        fault = None
        if self.reading != "error":
            into = None
            if len(rows) < self.regions:
                shape = self.regions, rows.shape[1]
                into = self.scratch.array("probabilities", shape, self.dtype)
            rows, fault = decoded(rows, self.reading, into)
        return Soft(rows, 0, rows.shape[1]), fault

    def _raw(self, block: Block, inside: NDArray[np.int64] | None) -> NDArray[Any]:
        """Return the stored values as a contiguous array of type `self.dtype`."""
        box = block.box if self.reading == "foreground" else (slice(None), *block.box)
        values = np.asarray(self.array[box])
        channels = 1 if self.reading == "foreground" else self.array.shape[0]
        unchanged = self.reading == "error" and values.dtype == self.dtype and inside is None
        if unchanged and values.flags.c_contiguous and values.flags.aligned:
            return values.reshape(channels, block.size)
        if inside is None:
            rows = self.scratch.array("raw", (channels, block.size), self.dtype)
            rows.reshape(values.shape)[...] = values
            return rows
        rows = self.scratch.array("raw", (channels, inside.size), self.dtype)
        for channel in range(channels):
            row = values if self.reading == "foreground" else values[channel]
            rows[channel] = row.reshape(-1)[inside]
        return rows


class LabelDecoder:
    """Decoder of a label map."""

    def __init__(self, side: Segmentation, order: tuple[int, ...]):
        self.array = reordered(side.array, order, ())
        self.scratch = _Scratch()
        self.dtype = np.dtype(np.int64) if side.array.dtype.kind == "f" else side.array.dtype
        self.dtype = self.dtype.newbyteorder("=")

    def values(self, block: Block) -> NDArray[Any]:
        """Return the stored labels of a block as a one-dimensional array."""
        return self.scratch.last(
            block, lambda: zeros_and_ones(np.asarray(self.array[block.box]).reshape(-1))
        )

    def read(self, block: Block, inside: NDArray[np.int64] | None) -> tuple[Crisp, Fault | None]:
        """Return the compared pixels of a block, and a `Fault` if labels are invalid."""
        values = self.values(block)
        fault = None
        if values.dtype.kind == "f":
            fault = examine_labels(values if inside is None else values[inside])
            codes, labels = self._encode_floats(values)
            if labels.size == 0 and (inside is None or inside.size):  # code 0 needs a label
                labels = np.zeros(1, self.dtype)
        else:
            codes, labels = self._encode(np.ascontiguousarray(values, self.dtype))
        return Crisp(codes if inside is None else codes[inside], labels), fault

    def _encode_floats(self, values: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Return a code for every floating-point value and the label of every code.

        Values that are not whole numbers get an arbitrary code. They are either outside the
        mask or reported as an error.
        """
        is_whole = whole_numbers(values)
        if is_whole.all():
            return self._encode(values.astype(self.dtype))
        whole_codes, labels = self._encode(values[is_whole].astype(self.dtype))
        codes = np.zeros(values.size, np.int32)
        codes[is_whole] = whole_codes
        return codes, labels

    def _encode(self, values: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Return a code for every value and the label of every code."""
        unsigned_values = values.view(f"u{values.itemsize}")
        into = self.scratch.array("codes", unsigned_values.shape, np.dtype(np.int32))
        codes, labels = encoded(unsigned_values, into)
        return codes, labels.view(values.dtype)


class _Scratch(threading.local):
    """Buffers of one thread, which are reused for every block of one side."""

    def __init__(self) -> None:
        self._buffers: dict[object, NDArray[Any]] = {}
        self._last: tuple[Block, NDArray[Any]] | None = None

    def last(self, block: Block, read: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """Return the values of a block. Values are read again only if the block changes."""
        if self._last is None or self._last[0] != block:
            self._last = block, read()
        return self._last[1]

    def array(self, purpose: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return an uninitialised contiguous array.

        The next call with the same `purpose` and `dtype` may reuse the memory of this array and
        overwrite its values.
        """
        size = prod(shape)
        buffer = self._buffers.get((purpose, dtype))
        if buffer is None or buffer.size < size:
            buffer = self._buffers[purpose, dtype] = np.empty(size, dtype)
        return buffer[:size].reshape(shape)


def encoded(
    values: NDArray[Any], into: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Return a code for every value, and the value of every code.

    Values have an unsigned type. Codes are numbered in the order in which their values first occur.
    """
    from probdice.engine.kernels import labels as kernels

    most_labels = 256
    while True:
        labels = np.empty(most_labels, values.dtype)
        slots = np.full(4 * most_labels, -1, np.int32)
        count = kernels.encode(values, slots, labels, into)
        if count >= 0:
            return into, labels[:count]
        most_labels *= 8


def _flat(array: Array, shape: tuple[int, ...]) -> NDArray[Any] | None:
    """Return a view of the array with flattened spatial axes, or None if this requires a copy."""
    if isinstance(array, np.ndarray) and array.flags.c_contiguous and array.flags.aligned:
        return np.asarray(array).reshape(shape)
    return None
