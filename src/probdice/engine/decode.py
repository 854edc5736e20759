"""The one decoder: stored values of a segmentation as kernels take them.

Values are labels, booleans, probabilities, logits or a single foreground, of any type, byte order
and memory order, masked or not. They are used as they lie in memory where that is possible, and
otherwise copied into a scratch array of the thread.
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
    as_probabilities,
    examine_labels,
    examine_values,
    whole_numbers,
)
from probdice.engine.grids import Block

__all__ = [
    "Crisp",
    "LabelDecoder",
    "ProbabilityDecoder",
    "Ready",
    "Soft",
    "decoder_of",
    "encoded",
    "working_type",
]


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

    @property
    def values(self) -> NDArray[Any]:
        """The label of every pixel."""
        return self.labels[self.codes]


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


def decoder_of(
    side: Segmentation,
    order: tuple[int, ...],
    dtype: np.dtype[Any] | None = None,
    *,
    in_order: bool = False,
) -> "LabelDecoder | ProbabilityDecoder":
    """What reads the values of a segmentation, block by block.

    Parameters
    ----------
    order : tuple of int
        The axes of the image in the order in which pixels are visited.
    dtype : dtype, optional
        The type of probabilities; the one that holds all values by default.
    in_order : bool
        Whether every block is a range of pixels in that order, which may then be used as it lies
        in memory.
    """
    if side.crisp:
        return LabelDecoder(side, order)
    return ProbabilityDecoder(side, order, dtype or working_type(side), in_order=in_order)


def working_type(side: Segmentation) -> np.dtype[Any]:
    """float32 wherever it holds every value."""
    if side.crisp:
        return np.dtype(np.float32)
    return np.result_type(side.array.dtype, np.float32)


class ProbabilityDecoder:
    """A probabilistic side."""

    def __init__(
        self,
        side: Segmentation,
        order: tuple[int, ...],
        dtype: np.dtype[Any],
        *,
        in_order: bool,
    ):
        first = 0 if side.reading == "foreground" else 1
        self.array = reordered(side.array, order, (), first)
        self.reading = side.reading
        self.regions = len(side.regions)
        self.dtype = dtype
        self.scratch = _Scratch()
        self.flat = None
        if in_order and side.reading == "error" and self.array.dtype == dtype:
            self.flat = _flat(self.array, (self.regions, -1))

    def read(self, block: Block, inside: NDArray[np.int64] | None) -> tuple[Soft, Fault | None]:
        """Rows of probabilities. Where they are taken as they came, the kernels look for faults."""
        if self.flat is not None and inside is None:
            return Soft(self.flat, block.start, block.size), None
        rows = self._raw(block, inside)
        fault = None
        if self.reading != "error":
            fault = examine_values(rows, self.reading)
            into = None
            if len(rows) < self.regions:
                shape = self.regions, rows.shape[1]
                into = self.scratch.array("mended", shape, self.dtype)
            rows = as_probabilities(rows, self.reading, into)
        return Soft(rows, 0, rows.shape[1]), fault

    def _raw(self, block: Block, inside: NDArray[np.int64] | None) -> NDArray[Any]:
        """The values as they came, contiguous and of the working type."""
        box = block.box if self.reading == "foreground" else (slice(None), *block.box)
        values = np.asarray(self.array[box])
        channels = 1 if self.reading == "foreground" else self.array.shape[0]
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
    """A crisp side."""

    def __init__(self, side: Segmentation, order: tuple[int, ...]):
        self.array = reordered(side.array, order, ())
        self.scratch = _Scratch()
        self.dtype = np.dtype(np.int64) if side.array.dtype.kind == "f" else side.array.dtype
        self.dtype = self.dtype.newbyteorder("=")
        # Whether the values are labels as they lie in the array.
        self.plain = self.array.dtype == self.dtype and self.dtype.kind != "b"
        if isinstance(self.array, np.ndarray):
            self.plain = self.plain and self.array.flags.c_contiguous and self.array.flags.aligned

    def values(self, block: Block) -> NDArray[Any]:
        """The labels of a block, contiguous; floating where the map is."""
        if self.plain and isinstance(self.array, np.ndarray):
            return np.asarray(self.array[block.box]).reshape(-1)
        return self.scratch.last(block, lambda: self._read(block))

    def _read(self, block: Block) -> NDArray[Any]:
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
        into = self.scratch.array("codes", unsigned.shape, np.dtype(np.int32))
        codes, labels = encoded(unsigned, into)
        return codes, labels.view(values.dtype)


class _Scratch(threading.local):
    """Arrays that a worker uses again for every block of one side."""

    def __init__(self) -> None:
        self._buffers: dict[object, NDArray[Any]] = {}
        self._last: tuple[Block, NDArray[Any]] | None = None

    def last(self, block: Block, read: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """What is read of a block; once, while it is asked for the same block."""
        if self._last is None or self._last[0] != block:
            self._last = block, read()
        return self._last[1]

    def array(self, purpose: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """An uninitialised array, contiguous; the last one for this purpose is gone."""
        size = prod(shape)
        buffer = self._buffers.get((purpose, dtype))
        if buffer is None or buffer.size < size:
            buffer = self._buffers[purpose, dtype] = np.empty(size, dtype)
        return buffer[:size].reshape(shape)


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


def _flat(array: Array, shape: tuple[int, ...]) -> NDArray[Any] | None:
    """The array itself with its spatial axes joined, if it lies in memory that way."""
    if isinstance(array, np.ndarray) and array.flags.c_contiguous and array.flags.aligned:
        return np.asarray(array).reshape(shape)
    return None
