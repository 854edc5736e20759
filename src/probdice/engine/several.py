"""Several segmentations of one image: what each holds, whatever its labels, and pixel by pixel."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from probdice.engine.blocks import Block, Blocks, Crisp, Ready, Soft, cut, encoded
from probdice.engine.images import Images, aligned, file_of, mask_on
from probdice.engine.threads import cores, run
from probdice.errors import InputError, Option, ProbdiceError, TooLargeError
from probdice.options import TOLERANCE
from probdice.overlaps import Integers
from probdice.segmentation import Array, Segmentation
from probdice.value_checks import Fault, as_probabilities, examine_values

__all__ = ["Combinations", "Content", "Decision", "Reader", "Several", "boxes"]

MOST_COMBINATIONS = 2**24
R = TypeVar("R")

BOX_VALUES = 2**21  # probabilities of one segmentation that are held at once

# What one segmentation says of some pixels: the number of a class, −1 for none, or a probability
# of every class.
Decision = NDArray[np.int64] | NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Content:
    """What a segmentation holds, whatever its regions are called.

    Attributes
    ----------
    keys : ndarray of int
        Labels by the first pixel that has them, or channels by their values: an order that does
        not change when labels or channels are exchanged.
    digest : bytes
        The same for two segmentations that differ in their labels alone.
    """

    keys: NDArray[Any]
    digest: bytes


@dataclass(frozen=True, eq=False)
class Combinations:
    """How many pixels have each combination of classes: one row each, one column a segmentation."""

    classes: Integers
    counts: Integers


@dataclass(frozen=True, eq=False)
class Several:
    """Segmentations of one image by name, on one grid, and how many threads may read them."""

    sides: Mapping[str, Segmentation]
    mask: Array | None
    workers: int
    mask_file: str = ""  # as in `Images`

    @classmethod
    def of(
        cls,
        named: Mapping[str, Segmentation],
        *,
        mask: Segmentation | Array | None = None,
        workers: int | None = None,
        tolerance: float = TOLERANCE,
    ) -> "Several":
        """All on one grid; no pixel is read.

        Which of several equivalent grids that is does not depend on their order.
        """
        for name, side in named.items():
            if side.ignore:
                raise InputError(
                    f"{name}: must not ignore labels, found ignore={side.ignore}; say which "
                    f"pixels count with ",
                    Option("mask", "FILE", python="mask=…"),
                )
        first = min(named, key=lambda name: _place(named[name]))
        sides = {}
        for name, side in named.items():
            try:
                sides[name] = aligned(named[first], side, tolerance=tolerance)
            except ProbdiceError as error:
                raise error.prefixed(f"{first} and {name}, as reference and prediction: ") from None
        if mask is None:
            return cls(sides, None, workers or cores())
        array, _ = mask_on(named[first], mask, tolerance)
        return cls(sides, array, workers or cores(), file_of(mask))

    def __getstate__(self) -> dict[str, Any]:
        """Without what is computed again when it is first asked for."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    @property
    def names(self) -> tuple[str, ...]:
        """What they are called."""
        return tuple(self.sides)

    @property
    def any(self) -> Segmentation:
        """One of them: its shape and its geometry are those of all."""
        return next(iter(self.sides.values()))

    @property
    def crisp(self) -> bool:
        """Whether all are label maps."""
        return all(side.crisp for side in self.sides.values())

    def only(self, names: Sequence[str]) -> "Several":
        """Some of them, in this order."""
        return replace(self, sides={name: self.sides[name] for name in names})

    def pair(self, first: str, second: str) -> Images:
        """Two of them, to be compared."""
        return Images(self.sides[first], self.sides[second], self.mask, self.workers)

    @cached_property
    def _blocks(self) -> Blocks:
        return Blocks(*self.sides.values(), mask=self.mask)

    def contents(self) -> dict[str, Content]:
        """The first pass: what each holds. Values are checked here."""
        blocks, names = self._blocks, self.names
        gathered = [_Gathered(name) for name in names]

        def visit(block: Block) -> list[tuple[Any, ...]]:
            ready = blocks.ready(block)
            for name, side, fault in zip(names, ready.sides, ready.faults, strict=True):
                self._refuse(name, side, fault, block, ready)
            return [_described(side) for side in ready.sides]

        for described in run(visit, blocks.blocks, self.workers):
            for one, part in zip(gathered, described, strict=True):
                one.add(part)
        contents = {one.name: one.content() for one in gathered}
        if not any(content.keys.size for content in contents.values()):
            raise InputError(
                f"there is no pixel to compare: the mask{self.mask_file} is empty"
                if self.mask is not None
                else f"there is no pixel to compare: the shape of the images is {self.any.shape}"
            )
        return contents

    def _refuse(
        self, name: str, side: Soft | Crisp, fault: Fault | None, block: Block, ready: Ready
    ) -> None:
        if fault is None and isinstance(side, Soft):
            fault = examine_values(side.rows[:, side.start : side.start + side.size], "error")
        if fault is not None:
            moved = self._blocks.located(fault, block, ready.inside)
            first, worst = (self._blocks.place(pixel) for pixel in (moved.first, moved.worst))
            raise InputError(f"{name}: ", *moved.message(first, worst))

    def combinations(self, numbers: Sequence[Mapping[int, int]]) -> Combinations:
        """How often each combination of classes occurs, where all are label maps.

        `numbers` says for each of them which class a label belongs to.
        """
        blocks = self._blocks

        def visit(block: Block) -> tuple[Integers, Integers]:
            sides = blocks.ready(block).sides
            codes, counts = _combined([side for side in sides if isinstance(side, Crisp)])
            classes = np.empty((len(counts), len(sides)), np.int64)
            for k, (side, number_of) in enumerate(zip(sides, numbers, strict=True)):
                assert isinstance(side, Crisp)
                of_code = [number_of.get(label, -1) for label in side.labels.tolist()]
                classes[:, k] = np.array(of_code, np.int64)[codes[:, k]]
            return classes, counts

        waiting: list[tuple[Integers, Integers]] = []
        size = compact = 0
        for part in run(visit, blocks.blocks, self.workers):
            waiting.append(part)
            size += len(part[1])
            if size > 2 * compact + 2**18:
                waiting = [_added(waiting)]
                size = compact = len(waiting[0][1])
            if size > MOST_COMBINATIONS:
                raise TooLargeError(
                    f"{len(self.sides)} segmentations divide the image into more than "
                    f"{MOST_COMBINATIONS:,} combinations of regions, too many to hold; use ",
                    Option("method", "mean"),
                )
        return Combinations(*_added(waiting))

    def visit(
        self,
        numbers: Sequence[Mapping[int, int]],
        classes: int,
        work: Callable[[list[Decision]], R],
    ) -> Iterator[R]:
        """A pass with what all say of the pixels in Ω, a box of the image at a time."""
        readers = self.readers(numbers, classes)

        def visit(box: tuple[slice, ...]) -> R:
            decisions = [reader.read(box) for reader in readers]
            if self.mask is not None:
                inside = np.asarray(self.mask[box]).reshape(-1) != 0
                decisions = [decision[..., inside] for decision in decisions]
            return work(decisions)

        yield from run(visit, boxes(self.any.shape, classes), self.workers)

    def readers(self, numbers: Sequence[Mapping[int, int]], classes: int) -> list["Reader"]:
        """One for each, with the classes of its labels or channels."""
        return [
            Reader(side, number_of, classes)
            for side, number_of in zip(self.sides.values(), numbers, strict=True)
        ]


class Reader:
    """A segmentation read by boxes of the image, its regions as classes."""

    def __init__(self, side: Segmentation, number_of: Mapping[int, int], classes: int):
        self.side, self.classes = side, classes
        keys = sorted(number_of)
        self.numbers = np.array([number_of[key] for key in keys] or [-1], np.int64)
        self.keys = np.array(keys or [0])
        self.table = None
        if side.crisp and side.array.dtype.itemsize <= 2:
            # One place for every value that can occur; what is negative stands at the end.
            self.table = np.full(2**16, -1, np.int64)
            self.table[self.keys.astype(np.int64)] = self.numbers

    def read(self, box: tuple[slice, ...]) -> Decision:
        """What it says of the pixels of a box, in C order."""
        if not self.side.crisp:
            return self._probabilities(box)
        values = np.asarray(self.side.array[box]).reshape(-1)
        if values.dtype.kind == "b":  # a boolean is true whatever its byte
            values = values.view(np.uint8) != 0
        if self.table is not None and values.dtype.kind in "biu":
            return self.table[values.astype(np.int64)]
        labels = values.astype(self.keys.dtype) if values.dtype.kind in "bf" else values
        places = np.minimum(np.searchsorted(self.keys, labels), self.keys.size - 1)
        return np.where(self.keys[places] == labels, self.numbers[places], -1)

    def _probabilities(self, box: tuple[slice, ...]) -> NDArray[np.float64]:
        foreground = self.side.reading == "foreground"
        values = np.asarray(self.side.array[box if foreground else (slice(None), *box)])
        values = values.reshape((1 if foreground else values.shape[0], -1))
        dtype = np.result_type(values.dtype, np.float32)  # as they are compared
        rows = as_probabilities(values.astype(dtype), self.side.reading)
        into = np.zeros((self.classes, rows.shape[1]))
        for key, number in zip(self.keys.tolist(), self.numbers.tolist(), strict=True):
            if number >= 0:
                into[number] += rows[key]
        return into


def boxes(shape: tuple[int, ...], classes: int) -> list[tuple[slice, ...]]:
    """An image cut into boxes in which probabilities of so many classes find room."""
    return [block.box for block in cut(shape, max(1, BOX_VALUES // classes))]


class _Gathered:
    """What the blocks of one segmentation hold, in their order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.number_of: dict[int, int] = {}
        self.digest = blake2b(digest_size=16)
        self.rows: list[Any] = []

    def add(self, part: tuple[Any, ...]) -> None:
        if len(part) == 2:  # labels in the order of their first pixels, and their pattern
            for label in part[0]:
                self.number_of.setdefault(label, len(self.number_of))
            numbers = np.array([self.number_of[label] for label in part[0]], np.int64)
            self.digest.update(part[1] + numbers.tobytes())
            return
        self.rows = self.rows or [blake2b(digest_size=16) for _ in part[0]]
        for row, digest in zip(self.rows, part[0], strict=True):
            row.update(digest)

    def content(self) -> Content:
        if not self.rows:
            keys = list(self.number_of)
            dtype = np.uint64 if max(keys, default=0) >= 2**63 else np.int64
            return Content(np.array(keys, dtype), self.digest.digest())
        digests = [row.digest() for row in self.rows]
        order = sorted(range(len(digests)), key=digests.__getitem__)
        whole = blake2b(b"".join(digests[k] for k in order), digest_size=16)
        return Content(np.array(order, np.int64), whole.digest())


def _described(side: Soft | Crisp) -> tuple[Any, ...]:
    """The labels of a block by their first pixels and a digest of the pattern; or one a row."""
    if isinstance(side, Soft):
        rows = side.rows[:, side.start : side.start + side.size]
        return ([blake2b(np.ascontiguousarray(row).data, digest_size=16).digest() for row in rows],)
    first = np.full(side.labels.size, side.size, np.int64)
    first[side.codes[::-1]] = np.arange(side.size - 1, -1, -1)  # the last to be written stays
    order = np.argsort(first, kind="stable")
    order = order[first[order] < side.size]
    anew = np.zeros(side.labels.size, np.int32)
    anew[order] = np.arange(order.size)
    digest = blake2b(anew[side.codes].data, digest_size=16).digest()
    return side.labels[order].tolist(), digest


def _combined(sides: Sequence[Crisp]) -> tuple[Integers, Integers]:
    """The combinations of codes that occur, one row each, and how often each does."""
    codes, rows = sides[0].codes, np.arange(sides[0].labels.size)[:, None]
    for side in sides[1:]:
        pairs = (codes.astype(np.uint64) << np.uint64(32)) | side.codes.astype(np.uint64)
        codes, keys = encoded(pairs, np.empty(pairs.size, np.int32))
        before, added = keys >> np.uint64(32), keys & np.uint64(2**32 - 1)
        rows = np.column_stack([rows[before.astype(np.int64)], added.astype(np.int64)])
    return rows, np.bincount(codes, minlength=len(rows))


def _added(parts: Sequence[tuple[Integers, Integers]]) -> tuple[Integers, Integers]:
    """Combinations added up, in ascending order; those that do not occur are left out."""
    classes, places = np.unique(
        np.concatenate([part[0] for part in parts]), axis=0, return_inverse=True
    )
    counts = np.zeros(len(classes), np.int64)
    np.add.at(counts, places.reshape(-1), np.concatenate([part[1] for part in parts]))
    return classes[counts > 0], counts[counts > 0]


def _place(side: Segmentation) -> tuple[bool, bytes]:
    """By which grids are told apart where the same pixels can be said in several ways."""
    return side.geometry is None, b"" if side.geometry is None else side.geometry.affine.tobytes()
