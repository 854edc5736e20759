"""Images cut into blocks, and one block made ready for a kernel.

Where an array is stored in chunks, blocks are unions or cuts of its chunks, chosen so that as
little as possible is decoded more than once; otherwise a block is a range of pixels as they lie in
memory.

A block is handed out as it lies in memory wherever that is possible. Otherwise it is copied into a
scratch array of the worker, which is where axes are put in order, types and byte order converted,
sums mended and pixels outside Ω dropped.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from math import prod
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from probdice.arrays import Chunks, chunks_of
from probdice.segmentation import Array, Segmentation, reordered
from probdice.value_checks import (
    Fault,
    as_probabilities,
    examine_labels,
    examine_values,
    whole_numbers,
)

__all__ = [
    "Block",
    "Blocks",
    "Crisp",
    "Grid",
    "Ready",
    "Soft",
    "Store",
    "cut",
    "cut_along_chunks",
    "encoded",
]

# Of all sides in a block: large enough that the cost of a Python call per block does not matter,
# small enough to be copied.
BLOCK_BYTES = 2**24
# How many times as large they are where they follow chunks, whose reading takes many calls.
CHUNKED = 2
# Of all sides in a block, where smaller ones would decode chunks again and again.
LARGEST_BYTES = 2**26
CHEAP = 1.02  # what may be decoded, against the least, for blocks of a better size
FEWEST_PIXELS = 4096  # in a block, however many regions there are


@dataclass(frozen=True)
class Block:
    """A box of the image, and the number of its first pixel in the order of traversal."""

    box: tuple[slice, ...]
    start: int

    @property
    def shape(self) -> tuple[int, ...]:
        """How many pixels it has along each axis."""
        return tuple(part.stop - part.start for part in self.box)

    @property
    def size(self) -> int:
        """How many pixels it has."""
        return prod(self.shape)

    def shaped(
        self, values: NDArray[Any], inside: NDArray[np.int64] | None, fill: float
    ) -> NDArray[Any]:
        """Values of the pixels in Ω as a box, which has `fill` at the others."""
        if inside is not None:
            whole = np.full(self.size, fill, values.dtype)
            whole[inside] = values
            values = whole
        return values.reshape(self.shape)

    def __str__(self) -> str:
        return f"[{', '.join(f'{part.start}:{part.stop}' for part in self.box)}]"


class Grid(Sequence[Block]):
    """An image cut along every axis: its blocks in C order, each made when it is asked for."""

    def __init__(self, shape: tuple[int, ...], cuts: Sequence[Sequence[int]]):
        self.shape = shape
        self.cuts = tuple(tuple(edges) for edges in cuts)
        self.counts = tuple(len(edges) - 1 for edges in self.cuts)
        self._count = prod(self.counts)
        self._steps = tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Block]:
        return (self[k] for k in range(self._count))

    @overload
    def __getitem__(self, index: int) -> Block: ...
    @overload
    def __getitem__(self, index: slice) -> list[Block]: ...
    def __getitem__(self, index: int | slice) -> Block | list[Block]:
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        if not 0 <= index < self._count:
            raise IndexError(index)
        box = []
        for edges, count in zip(reversed(self.cuts), reversed(self.counts), strict=True):
            index, place = divmod(index, count)
            box.append(slice(edges[place], edges[place + 1]))
        box.reverse()
        start = sum(part.start * step for part, step in zip(box, self._steps, strict=True))
        return Block(tuple(box), start)

    def rounds(self, most: int) -> Iterator["Grid"]:
        """Boxes of at most `most` blocks, which follow each other in C order."""
        for some in cut(self.counts, most):
            yield Grid(
                self.shape,
                [
                    edges[part.start : part.stop + 1]
                    for edges, part in zip(self.cuts, some.box, strict=True)
                ],
            )

    @property
    def lengths(self) -> Chunks:
        """Those of the blocks along each axis."""
        return tuple(tuple(b - a for a, b in pairwise(edges)) for edges in self.cuts)

    @property
    def box(self) -> tuple[slice, ...]:
        """The part of the image that the blocks cover."""
        return tuple(slice(edges[0], edges[-1]) for edges in self.cuts)


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


class Blocks:
    """The blocks of segmentations of one image, in one order of traversal.

    Labels that the first one ignores leave Ω, like what is outside the mask. Where results are
    written `into` an array with chunks, every block is a union of whole ones.
    """

    def __init__(self, *sides: Segmentation, mask: Array | None = None, into: Array | None = None):
        # The chunks of what is written to, without the axis of the regions where there is one.
        target = None if into is None else chunks_of(into)
        self._target = None if target is None else target[-len(sides[0].shape) :]
        self.followed = target is not None or any(
            not isinstance(array, np.ndarray) and chunks_of(array) is not None
            for array in (mask, *(side.array for side in sides))
            if array is not None
        )
        self.order = tuple(range(len(sides[0].shape))) if self.followed else _traversal(sides)
        self.shape = tuple(sides[0].shape[axis] for axis in self.order)
        self.dtype = np.result_type(*(_working_type(side) for side in sides))
        if self.followed:  # sums in float32 would depend on which pixels a block has
            self.dtype = np.result_type(self.dtype, np.float64)
        self.sides, self.mask = sides, mask
        self.ignore = sides[0].ignore
        self._mask = None if mask is None else reordered(mask, self.order, ())
        self._readers = [self._side(side, in_order=not self.followed) for side in sides]

    @cached_property
    def blocks(self) -> Grid:
        """All blocks."""
        pixel = sum(
            side.array.dtype.itemsize if side.crisp else len(side.regions) * self.dtype.itemsize
            for side in self.sides
        )
        most = max(FEWEST_PIXELS, BLOCK_BYTES * (CHUNKED if self.followed else 1) // pixel)
        if not self.followed:
            return cut(self.shape, most)
        largest = max(FEWEST_PIXELS, LARGEST_BYTES // pixel)
        arrays = [side.array for side in self.sides]
        stores = [
            Store(chunks[-len(self.shape) :], prod(array.shape) * array.dtype.itemsize)
            for array in (arrays if self.mask is None else [*arrays, self.mask])
            if (chunks := chunks_of(array)) is not None
        ]
        return cut_along_chunks(self.shape, stores, most, largest, self._target)

    @property
    def whole(self) -> bool:
        """Whether Ω is the whole image."""
        return self._mask is None and not self.ignore

    def ready(self, block: Block) -> Ready:
        """The pixels of Ω in a block, as kernels take them."""
        inside = self._inside(block)
        sides, faults = zip(*(side.read(block, inside) for side in self._readers), strict=True)
        return Ready(sides, faults, inside)

    @property
    def label_types(self) -> tuple[np.dtype[Any], ...]:
        """The types that labels of every side are given out as, where all are label maps."""
        return tuple(side.dtype for side in self._readers if isinstance(side, _LabelMap))

    def labels_of(self, block: Block) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """Both sides as they lie in memory, where both are label maps and all pixels are in Ω."""
        if not self.whole:
            return None
        p, q = self._readers
        if not (isinstance(p, _LabelMap) and isinstance(q, _LabelMap)):
            return None
        if not (p.plain and q.plain):
            return None
        return p.values(block), q.values(block)

    def image(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values in the order of traversal, along the last axes, as an image."""
        first = values.ndim - len(self.shape)
        back = np.argsort(self.order) + first
        return values.transpose((*range(first), *back))

    def located(self, fault: Fault, block: Block, inside: NDArray[np.int64] | None = None) -> Fault:
        """A fault of a block, by the numbers that its pixels have in the whole image."""

        def number(pixel: int) -> int:
            place = np.unravel_index(pixel if inside is None else inside[pixel], block.shape)
            index = tuple(int(k) + part.start for k, part in zip(place, block.box, strict=True))
            return int(np.ravel_multi_index(index, self.shape)) if index else 0

        return fault.moved(number)

    def place(self, pixel: int) -> tuple[int, ...]:
        """Index in the image of a pixel in the order of traversal."""
        index = np.unravel_index(pixel, self.shape)
        return tuple(int(index[self.order.index(axis)]) for axis in range(len(self.shape)))

    def _side(self, side: Segmentation, *, in_order: bool) -> "_LabelMap | _Probabilities":
        if side.crisp:
            return _LabelMap(side, self.order)
        return _Probabilities(side, self.order, self.dtype, in_order=in_order)

    def _inside(self, block: Block) -> NDArray[np.int64] | None:
        """Which pixels of a block are in Ω; None where all are."""
        if self.whole:
            return None
        inside = np.ones(block.size, np.bool_)
        if self._mask is not None:
            inside &= np.asarray(self._mask[block.box]).reshape(-1) != 0
        if self.ignore:
            labels = self._readers[0]
            assert isinstance(labels, _LabelMap)
            values = labels.values(block)
            for label in self.ignore:
                inside &= values != label
        return None if inside.all() else np.flatnonzero(inside)


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


class _Probabilities:
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


class _LabelMap:
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


def cut(shape: tuple[int, ...], most: int) -> Grid:
    """Blocks of at most `most` pixels, each a range of pixels in C order."""
    if 0 < prod(shape) <= most:
        return Grid(shape, [(0, length) for length in shape])
    if not prod(shape):
        return Grid(shape, [range(length + 1) for length in shape])
    axis = 0
    while prod(shape[axis + 1 :]) > most:
        axis += 1
    step = max(1, most // prod(shape[axis + 1 :]))
    cuts: list[Sequence[int]] = [range(length + 1) for length in shape[:axis]]
    cuts.append((*range(0, shape[axis], step), shape[axis]))
    cuts += [(0, length) for length in shape[axis + 1 :]]
    return Grid(shape, cuts)


@dataclass(frozen=True)
class Store:
    """An array that is stored in chunks: their lengths along each axis, and its bytes in all."""

    chunks: Chunks
    nbytes: int


@dataclass(frozen=True)
class _Cuts:
    """One way to cut an axis: its edges, the longest part, and what it costs each store.

    `again` is how often a chunk of each store is decoded on average because of these cuts.
    """

    edges: tuple[int, ...]
    longest: int
    again: NDArray[np.float64]


def cut_along_chunks(
    shape: tuple[int, ...],
    stores: Sequence[Store],
    most: int,
    largest: int,
    target: Chunks | None = None,
) -> Grid:
    """Blocks that are unions or cuts of chunks, such that the least is decoded.

    Blocks have `most` pixels or so; up to `largest` where chunks would else be decoded more often.
    With a `target` each is a union of whole chunks of that one.
    """
    if not prod(shape):
        return cut(shape, most)
    fit = any(prod(map(max, store.chunks)) <= largest for store in stores)
    ways = [
        _ways_to_cut(
            length,
            [_edges(store.chunks[axis]) for store in stores],
            None if target is None else _edges(target[axis]),
            parts=not fit,
        )
        for axis, length in enumerate(shape)
    ]
    weights = np.array([store.nbytes for store in stores], np.float64)
    # Every combination of ways to cut the axes: pixels of its largest block, and bytes to decode.
    sizes, again = np.ones(1), np.ones((1, len(stores)))
    for along_axis in ways:
        longest = np.array([way.longest for way in along_axis], np.float64)
        repeats = np.stack([way.again for way in along_axis])
        sizes = (sizes[:, None] * longest).reshape(-1)
        again = (again[:, None] * repeats).reshape(sizes.size, len(stores))
    decoded = again @ weights
    fits = sizes <= max(largest, sizes.min())
    cheap = fits & (decoded <= CHEAP * decoded[fits].min(initial=np.inf))
    unlike = np.where(cheap, np.abs(np.log(sizes / most)), np.inf)
    chosen = np.unravel_index(int(np.argmin(unlike)), [len(along_axis) for along_axis in ways])
    return Grid(shape, [along_axis[k].edges for along_axis, k in zip(ways, chosen, strict=True)])


def _ways_to_cut(
    length: int,
    grids: Sequence[tuple[int, ...]],
    target: tuple[int, ...] | None,
    *,
    parts: bool,
) -> list[_Cuts]:
    """Ways to cut an axis: into unions of whole chunks of some store, and into parts of chunks.

    `grids` are the edges of the chunks of each store.
    """
    followed = [target] if target is not None else list(dict.fromkeys(grids))
    if len(followed) > 1:  # where all of them have an edge
        followed.append(tuple(sorted(set(followed[0]).intersection(*followed[1:]))))
    ways: dict[tuple[int, ...], None] = {}
    for edges in followed:
        together = 1
        while together < len(edges) - 1:
            ways[(*edges[:-1:together], length)] = None
            together += max(1, together // 2)
        ways[0, length] = None
        pieces = 2
        while parts and target is None and pieces <= max(np.diff(edges)):
            cuts = {a + (b - a) * k // pieces for a, b in pairwise(edges) for k in range(pieces)}
            ways[(*sorted(cuts), length)] = None
            pieces *= 2
    return [
        _Cuts(
            edges,
            int(max(np.diff(edges))),
            np.array([(len({*grid, *edges}) - 1) / (len(grid) - 1) for grid in grids]),
        )
        for edges in ways
    ]


def _edges(chunks: tuple[int, ...]) -> tuple[int, ...]:
    """Where chunks of these lengths begin and end."""
    return tuple(dict.fromkeys((0, *accumulate(chunks))))
