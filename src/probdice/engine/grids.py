"""Divide images into blocks.

If an array is stored in chunks, blocks are unions or parts of its chunks, chosen so that few bytes
are decoded more than once. Otherwise, a block is a range of pixels in C order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import prod
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from probdice.data.arrays import Chunks

__all__ = ["Block", "Grid", "Store", "cut", "cut_along_chunks"]

# For blocks of a better size, this many times the smallest number of bytes may be decoded.
MAX_DECODING_RATIO = 1.02


@dataclass(frozen=True)
class Block:
    """A box of the image, and the number of its first pixel in the order of traversal."""

    box: tuple[slice, ...]
    start: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of pixels along each axis."""
        return tuple(part.stop - part.start for part in self.box)

    @property
    def size(self) -> int:
        """Number of pixels."""
        return prod(self.shape)

    def range_in(self, shape: tuple[int, ...]) -> range | None:
        """Return the range of the block's pixel numbers in an image of this shape, in C order.

        Return None if the numbers are not consecutive.
        """
        start, split = 0, False  # `split`: whether the block is longer than 1 along a previous axis
        for part, length in zip(self.box, shape, strict=True):
            extent = part.stop - part.start
            if split and extent != length:
                return None
            split = split or extent != 1
            start = start * length + part.start
        return range(start, start + self.size)

    def around(self, halo: int, shape: tuple[int, ...]) -> "Block":
        """Return the block extended by `halo` pixels in every direction, within the image."""
        box = tuple(
            slice(max(part.start - halo, 0), min(part.stop + halo, length))
            for part, length in zip(self.box, shape, strict=True)
        )
        start = np.ravel_multi_index([part.start for part in box], shape) if shape else 0
        return Block(box, int(start))

    def shaped(
        self, values: NDArray[Any], inside: NDArray[np.int64] | None, fill: float
    ) -> NDArray[Any]:
        """Return the values of the compared pixels as a box, with `fill` at all other pixels."""
        if inside is not None:
            all_values = np.full(self.size, fill, values.dtype)
            all_values[inside] = values
            values = all_values
        return values.reshape(self.shape)

    def __str__(self) -> str:
        return f"[{', '.join(f'{part.start}:{part.stop}' for part in self.box)}]"


class Grid(Sequence[Block]):
    """The blocks of an image that is cut along every axis.

    Blocks are in C order, and each block is created on demand.
    """

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
            index, edge_index = divmod(index, count)
            box.append(slice(edges[edge_index], edges[edge_index + 1]))
        box.reverse()
        start = sum(part.start * step for part, step in zip(box, self._steps, strict=True))
        return Block(tuple(box), start)

    def rounds(self, max_blocks: int) -> Iterator["Grid"]:
        """Yield grids of at most `max_blocks` consecutive blocks, in C order."""
        for some in cut(self.counts, max_blocks):
            yield Grid(
                self.shape,
                [
                    edges[part.start : part.stop + 1]
                    for edges, part in zip(self.cuts, some.box, strict=True)
                ],
            )

    @property
    def lengths(self) -> Chunks:
        """The lengths of the blocks along each axis."""
        return tuple(tuple(b - a for a, b in pairwise(edges)) for edges in self.cuts)

    @property
    def box(self) -> tuple[slice, ...]:
        """The part of the image that the blocks cover."""
        return tuple(slice(edges[0], edges[-1]) for edges in self.cuts)


@dataclass(frozen=True)
class Store:
    """The lengths of an array's chunks along each axis, and the size of the array in bytes."""

    chunks: Chunks
    nbytes: int


def cut(shape: tuple[int, ...], max_pixels: int) -> Grid:
    """Return blocks of at most `max_pixels` pixels. Each block is a range of pixels in C order."""
    if 0 < prod(shape) <= max_pixels:
        return Grid(shape, [(0, length) for length in shape])
    if not prod(shape):
        return Grid(shape, [range(length + 1) for length in shape])
    axis = 0
    while prod(shape[axis + 1 :]) > max_pixels:
        axis += 1
    step = max(1, max_pixels // prod(shape[axis + 1 :]))
    cuts: list[Sequence[int]] = [range(length + 1) for length in shape[:axis]]
    cuts.append((*range(0, shape[axis], step), shape[axis]))
    cuts += [(0, length) for length in shape[axis + 1 :]]
    return Grid(shape, cuts)


def cut_along_chunks(
    shape: tuple[int, ...],
    stores: Sequence[Store],
    usual_pixels: int,
    largest: int,
    target: Chunks | None = None,
) -> Grid:
    """Return unions or parts of chunks as blocks, so that few bytes are decoded more than once.

    Blocks have about `usual_pixels` pixels. If chunks would otherwise be decoded more often, blocks
    have up to `largest` pixels, or more if smaller blocks are not possible. With a `target`, each
    block is a union of whole chunks of the target.
    """
    if not prod(shape):
        return cut(shape, usual_pixels)
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
    # Number of pixels in the largest block, and number of times that the chunks of each store are
    # decoded, for every combination of cuts.
    sizes, decodings = np.ones(1), np.ones((1, len(stores)))
    for along_axis in ways:
        longest = np.array([way.longest for way in along_axis], np.float64)
        repeats = np.stack([way.decodings for way in along_axis])
        sizes = (sizes[:, None] * longest).reshape(-1)
        decodings = (decodings[:, None] * repeats).reshape(sizes.size, len(stores))
    decoded_bytes = decodings @ weights
    fits = sizes <= max(largest, sizes.min())
    cheap = fits & (decoded_bytes <= MAX_DECODING_RATIO * decoded_bytes[fits].min(initial=np.inf))
    deviation = np.where(cheap, np.abs(np.log(sizes / usual_pixels)), np.inf)
    best = np.unravel_index(int(np.argmin(deviation)), [len(along_axis) for along_axis in ways])
    return Grid(shape, [along_axis[k].edges for along_axis, k in zip(ways, best, strict=True)])


@dataclass(frozen=True)
class _Cuts:
    """One way to cut an axis.

    `edges` are the boundaries of the parts, including both ends of the axis, and `longest` is the
    length of the longest part. `decodings` is the mean number of times that a chunk is decoded, for
    each store.
    """

    edges: tuple[int, ...]
    longest: int
    decodings: NDArray[np.float64]


def _ways_to_cut(
    length: int,
    grids: Sequence[tuple[int, ...]],
    target: tuple[int, ...] | None,
    *,
    parts: bool,
) -> list[_Cuts]:
    """Return ways to cut an axis into unions of whole chunks and, with `parts`, parts of chunks.

    `grids` contains the edges of the chunks of each store. If there is a `target`, only unions of
    its chunks are returned.
    """
    edge_lists = [target] if target is not None else list(dict.fromkeys(grids))
    if len(edge_lists) > 1:  # also cut at the edges that all stores share
        edge_lists.append(tuple(sorted(set(edge_lists[0]).intersection(*edge_lists[1:]))))
    ways: dict[tuple[int, ...], None] = {}
    for edges in edge_lists:
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
    """Return the edges of chunks, given their lengths."""
    return tuple(dict.fromkeys((0, *accumulate(chunks))))
