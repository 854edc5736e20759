"""Several segmentations of one image, and the passes over their pixels."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from hashlib import blake2b
from math import inf, prod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from probdice.data.lazy_arrays import WithoutLabels
from probdice.data.machine import cores
from probdice.data.pixel_words import PixelWords, pixel_words, words_for_axes
from probdice.data.resampled_arrays import FieldOfView
from probdice.data.resampling import Interpolation
from probdice.data.segmentation import Array, Segmentation
from probdice.data.value_checks import examine_values
from probdice.engine.alignment import file_of, mask_notes, mask_on, moved_onto, within
from probdice.engine.blocks import Blocks
from probdice.engine.decode import Crisp, Soft, decoder_of, encoded
from probdice.engine.executors import run_pass
from probdice.engine.grids import Block, cut
from probdice.engine.pair import BACKGROUND_OPTION, SegmentationPair
from probdice.engine.passes import Pass, summed
from probdice.errors import InputError, Note, Option, ProbdiceError, TooLargeError
from probdice.method.overlap import Integers
from probdice.method.region_labels import Label
from probdice.options import TOLERANCE

__all__ = ["Combinations", "Content", "Decision", "Reader", "SegmentationSet", "boxes"]

MAX_COMBINATIONS = 2**24
R = TypeVar("R")

BOX_VALUES = 2**21  # number of probabilities of one segmentation that are in memory at once

# The decision of one segmentation at some pixels: the class number of each pixel (−1 for a pixel
# without a class), or the probabilities of all classes.
Decision = NDArray[np.int64] | NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Content:
    """The order of a segmentation's regions, and a digest of the segmentation.

    Neither depends on the label numbers or on the order of the channels.

    Attributes
    ----------
    keys : ndarray of int
        Labels in the order of their first pixels, or channels sorted by the digests of their
        values.
    digest : bytes
        Digest of the values, which is identical for two segmentations that differ only in their
        label numbers or in the order of their channels.
    """

    keys: NDArray[Any]
    digest: bytes


@dataclass(frozen=True, eq=False)
class Combinations:
    """Number of pixels of each combination of classes.

    `classes` has one row per combination and one column per segmentation.
    """

    classes: Integers
    counts: Integers

    @classmethod
    def total(cls, several: Iterable["Combinations"]) -> "Combinations":
        """Add the pixel counts of all parts. Combinations are in ascending order."""
        pending: list[Combinations] = []
        size = compact = 0
        for part in several:
            pending.append(part)
            size += len(part.counts)
            if size > 2 * compact + 2**18:
                pending = [cls._added(pending)]
                size = compact = len(pending[0].counts)
            if size > MAX_COMBINATIONS:
                raise TooLargeError(
                    f"{part.classes.shape[1]} segmentations divide the image into more than "
                    f"{MAX_COMBINATIONS:,} combinations of regions, which do not fit in memory. "
                    f"Use ",
                    Option("method", "mean"),
                    ".",
                )
        return cls._added(pending)

    @classmethod
    def _added(cls, parts: Sequence["Combinations"]) -> "Combinations":
        classes, indices = np.unique(
            np.concatenate([part.classes for part in parts]), axis=0, return_inverse=True
        )
        counts = np.zeros(len(classes), np.int64)
        np.add.at(counts, indices.reshape(-1), np.concatenate([part.counts for part in parts]))
        return cls(classes[counts > 0], counts[counts > 0])


@dataclass(frozen=True, eq=False)
class SegmentationSet:
    """Named segmentations of one image on one grid.

    A pixel that has an ignored label in any segmentation is excluded from all segmentations.
    `not_ignored` excludes only these pixels. `mask` also excludes the pixels outside the given mask
    and the pixels outside the field of view of any segmentation, unless they count as background.
    """

    sides: Mapping[str, Segmentation]
    mask: Array | None
    workers: int
    mask_file: str = ""  # as in `SegmentationPair`
    notes: tuple[Note, ...] = ()
    ignored_labels: tuple[int, ...] = ()
    not_ignored: Array | None = None

    @classmethod
    def of(
        cls,
        segmentations: Mapping[str, Segmentation],
        *,
        mask: Segmentation | Array | None = None,
        workers: int | None = None,
        tolerance: float = TOLERANCE,
        interpolation: Interpolation | None = None,
        background: Label | None = None,
    ) -> "SegmentationSet":
        """Return all segmentations on one grid. The parameters are those of `SegmentationPair.of`.

        The grid with the smallest pixels is used. The choice does not depend on the order of the
        segmentations.
        """
        first = min(segmentations, key=lambda name: _place(segmentations[name]))
        sides, views, notes = {}, [], []
        label_masks: list[Array] = []
        for name, side in segmentations.items():
            try:
                aligned, view, action = moved_onto(
                    segmentations[first], side, tolerance, interpolation, background
                )
            except ProbdiceError as error:
                raise error.prefixed(f"{first} (reference) and {name} (prediction): ") from None
            sides[name] = replace(aligned, ignore=())
            if aligned.ignore:
                label_masks.append(WithoutLabels(aligned.array, aligned.ignore))
            if view is not None:
                views.append(view)
                notes.append(_outside_note(name, view))
            if action:
                notes.append(Note("resampled", (f"{name} was {action} of {first}.",)))
        array = None
        if mask is not None:
            array, unknown = mask_on(segmentations[first], mask, tolerance)
            notes += mask_notes(unknown, segmentations[first])
        file = "" if mask is None else file_of(mask)
        return cls(
            sides,
            within(array, [*views, *label_masks]),
            workers or cores(),
            file,
            tuple(notes),
            tuple(dict.fromkeys(label for side in segmentations.values() for label in side.ignore)),
            within(None, label_masks),
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields, without cached values."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the segmentations."""
        return tuple(self.sides)

    @property
    def first(self) -> Segmentation:
        """One of the segmentations. All segmentations have the same shape and geometry."""
        return next(iter(self.sides.values()))

    @property
    def crisp(self) -> bool:
        """Whether all segmentations are label maps."""
        return all(side.crisp for side in self.sides.values())

    def select(self, names: Sequence[str]) -> "SegmentationSet":
        """Return the segmentations with these names, in this order."""
        return replace(self, sides={name: self.sides[name] for name in names})

    def pair(self, first: str, second: str) -> SegmentationPair:
        """Return two of the segmentations, for a comparison."""
        return SegmentationPair(self.sides[first], self.sides[second], self.mask, self.workers)

    @cached_property
    def _blocks(self) -> Blocks:
        return Blocks(*self.sides.values(), mask=self.mask)

    def contents(self) -> dict[str, Content]:
        """Return the `Content` of each segmentation. This pass also checks the values."""
        contents: dict[str, Content] = {}
        if self._blocks.blocks:
            visit = partial(_described, names=self.names, words=pixel_words(self.first))
            task = Pass(visit, _BlockContents.total)
            description = run_pass(task, self._blocks, self.workers)
            contents = dict(zip(self.names, description.contents(), strict=True))
        if not any(content.keys.size for content in contents.values()):
            pixels = pixel_words(self.first).many
            raise InputError(f"there are no {pixels} to compare: {self._reason_for_no_pixels()}")
        return contents

    def _reason_for_no_pixels(self) -> str:
        if self.ignored_labels:
            return (
                f"every {pixel_words(self.first).one} has one of the ignored labels "
                f"{self.ignored_labels} in a segmentation, or is outside the mask{self.mask_file} "
                f"or outside the field of view of a segmentation"
            )
        if self.mask is not None:
            return (
                f"every {pixel_words(self.first).one} is outside the mask{self.mask_file} or "
                f"outside the field of view of a segmentation"
            )
        return f"the shape of the images is {self.first.shape}"

    def combinations(self, numbers: Sequence[Mapping[int, int]]) -> Combinations:
        """Return the number of pixels of each combination of classes, for label maps only.

        `numbers` contains, for each segmentation, the class of every label.
        """
        task = Pass(partial(_combinations, numbers=numbers), Combinations.total)
        return run_pass(task, self._blocks, self.workers)

    def total(
        self,
        numbers: Sequence[Mapping[int, int]],
        classes: int,
        work: Callable[[list[Decision]], R],
    ) -> R:
        """Apply `work` to the decisions at all compared pixels, and return the sum of its results.

        `numbers` contains, for each segmentation, the class of every label or channel.
        """
        sides = self.sides.values()
        blocks = Blocks(*sides, mask=self.mask, max_pixels=max(1, BOX_VALUES // classes))
        task = Pass(partial(_worked, numbers=numbers, classes=classes, work=work), summed)
        return run_pass(task, blocks, self.workers)

    def readers(self, numbers: Sequence[Mapping[int, int]], classes: int) -> list["Reader"]:
        """Return one reader per segmentation, with the classes of its labels or channels."""
        return [
            Reader(side, number_of, classes)
            for side, number_of in zip(self.sides.values(), numbers, strict=True)
        ]


class Reader:
    """Reader of the decisions of a segmentation, which converts regions to classes."""

    def __init__(self, side: Segmentation, number_of: Mapping[int, int], classes: int):
        self.number_of, self.classes = number_of, classes
        self.decoder = decoder_of(side, tuple(range(len(side.shape))))

    def read(self, box: tuple[slice, ...]) -> Decision:
        """Return the decisions at the pixels of a box, in C order."""
        pixels, _ = self.decoder.read(Block(box, 0), None)
        return _decision(pixels, self.number_of, self.classes)


def _decision(side: Soft | Crisp, number_of: Mapping[int, int], classes: int) -> Decision:
    """Return the class of every pixel, or the probability of every class at every pixel."""
    if isinstance(side, Crisp):
        numbers = [number_of.get(label, -1) for label in side.labels.tolist()]
        return np.array(numbers or [-1], np.int64)[side.codes]
    into = np.zeros((classes, side.size))
    for key, number in number_of.items():
        if number >= 0:
            into[number] += side.values[key]
    return into


def _worked(
    blocks: Blocks,
    block: Block,
    numbers: Sequence[Mapping[int, int]],
    classes: int,
    work: Callable[[list[Decision]], R],
) -> R:
    sides = blocks.decode(block).sides
    return work(
        [
            _decision(side, number_of, classes)
            for side, number_of in zip(sides, numbers, strict=True)
        ]
    )


def boxes(shape: tuple[int, ...], classes: int) -> list[tuple[slice, ...]]:
    """Divide an image into boxes so small that the probabilities of all classes fit in memory."""
    return [block.box for block in cut(shape, max(1, BOX_VALUES // classes))]


@dataclass(frozen=True, eq=False)
class _Pattern:
    """The arrangement of the labels in one label map, independent of the label numbers.

    `labels` is in the order of the labels' first pixels. For each block, `blocks` contains the
    digest of the block's codes and the indices of its labels in `labels`.
    """

    labels: list[int]
    blocks: list[tuple[bytes, Integers]]

    @classmethod
    def total(cls, parts: Sequence["_Pattern"]) -> "_Pattern":
        """Combine the patterns of several parts of an image, in the order of the parts."""
        number_of: dict[int, int] = {}
        blocks = []
        for part in parts:
            for label in part.labels:
                number_of.setdefault(label, len(number_of))
            indices = np.array([number_of[label] for label in part.labels], np.int64)
            blocks += [(digest, indices[local]) for digest, local in part.blocks]
        return cls(list(number_of), blocks)

    def content(self) -> Content:
        dtype = np.uint64 if max(self.labels, default=0) >= 2**63 else np.int64
        digest = blake2b(digest_size=16)
        for pattern, indices in self.blocks:
            digest.update(pattern + indices.tobytes())
        return Content(np.array(self.labels, dtype), digest.digest())


@dataclass(frozen=True, eq=False)
class _Rows:
    """For each region of a probabilistic segmentation, the digest of its values in every block."""

    digests: list[list[bytes]]

    @classmethod
    def total(cls, several: Sequence["_Rows"]) -> "_Rows":
        """Combine the digests of several parts of an image, in the order of the parts."""
        rows = zip(*(one.digests for one in several), strict=True)
        return cls([[digest for part in row for digest in part] for row in rows])

    def content(self) -> Content:
        digests = [blake2b(b"".join(row), digest_size=16).digest() for row in self.digests]
        order = sorted(range(len(digests)), key=digests.__getitem__)
        digest = blake2b(b"".join(digests[k] for k in order), digest_size=16)
        return Content(np.array(order, np.int64), digest.digest())


@dataclass(frozen=True, eq=False)
class _BlockContents:
    """Patterns or digests of some blocks, for every segmentation."""

    sides: tuple[_Pattern | _Rows, ...]

    @classmethod
    def total(cls, descriptions: Iterable["_BlockContents"]) -> "_BlockContents":
        """Combine the patterns or digests of all parts, in the order of the parts."""
        sides: Iterable[tuple[Any, ...]] = zip(*(one.sides for one in descriptions), strict=True)
        return cls(tuple(type(parts[0]).total(parts) for parts in sides))

    def contents(self) -> list[Content]:
        return [side.content() for side in self.sides]


def _described(
    blocks: Blocks, block: Block, names: Sequence[str], words: PixelWords
) -> _BlockContents:
    """Return the contents of a block. Raise an error if the values of any side are invalid."""
    ready = blocks.decode(block)
    for name, side, fault in zip(names, ready.sides, ready.faults, strict=True):
        if fault is None and isinstance(side, Soft):
            fault = examine_values(side.values, "error")
        if fault is not None:
            located_fault = blocks.located(fault, block, ready.inside)
            first, worst = (
                blocks.position_of(pixel) for pixel in (located_fault.first, located_fault.worst)
            )
            raise InputError(f"{name}: ", *located_fault.message(first, worst, words))
    return _BlockContents(tuple(_pattern(side) for side in ready.sides))


def _pattern(side: Soft | Crisp) -> _Pattern | _Rows:
    if isinstance(side, Soft):
        rows = side.values
        return _Rows(
            [[blake2b(np.ascontiguousarray(row).data, digest_size=16).digest()] for row in rows]
        )
    first = np.full(side.labels.size, side.size, np.int64)
    first[side.codes[::-1]] = np.arange(side.size - 1, -1, -1)  # the first pixel is written last
    order = np.argsort(first, kind="stable")
    order = order[first[order] < side.size]
    new_codes = np.zeros(side.labels.size, np.int32)
    new_codes[order] = np.arange(order.size)
    digest = blake2b(new_codes[side.codes].data, digest_size=16).digest()
    return _Pattern(side.labels[order].tolist(), [(digest, np.arange(order.size))])


def _combinations(
    blocks: Blocks, block: Block, numbers: Sequence[Mapping[int, int]]
) -> Combinations:
    sides = [side for side in blocks.decode(block).sides if isinstance(side, Crisp)]
    codes, counts = _code_combinations(sides)
    classes = np.empty((len(counts), len(sides)), np.int64)
    for k, (side, number_of) in enumerate(zip(sides, numbers, strict=True)):
        of_code = [number_of.get(label, -1) for label in side.labels.tolist()]
        classes[:, k] = np.array(of_code, np.int64)[codes[:, k]]
    return Combinations(classes, counts)


def _code_combinations(sides: Sequence[Crisp]) -> tuple[Integers, Integers]:
    """Return the combinations of codes, one per row, and the number of pixels of each."""
    codes, rows = sides[0].codes, np.arange(sides[0].labels.size)[:, None]
    for side in sides[1:]:
        pairs = (codes.astype(np.uint64) << np.uint64(32)) | side.codes.astype(np.uint64)
        codes, keys = encoded(pairs, np.empty(pairs.size, np.int32))
        row_codes, side_codes = keys >> np.uint64(32), keys & np.uint64(2**32 - 1)
        rows = np.column_stack([rows[row_codes.astype(np.int64)], side_codes.astype(np.int64)])
    return rows, np.bincount(codes, minlength=len(rows))


def _place(side: Segmentation) -> tuple[float, int, bytes]:
    """Return a sort key that prefers grids with small pixels, then grids with many pixels."""
    geometry = side.geometry
    if geometry is None:
        return inf, 0, b""
    return round(geometry.pixel_volume, 9), -prod(geometry.shape), geometry.affine.tobytes()


def _outside_note(name: str, view: FieldOfView) -> Note:
    """Return a note on the pixels outside the field of view of one segmentation."""
    boxes_of_view = boxes(view.shape, 1)
    inside = sum(int(np.count_nonzero(view[box])) for box in boxes_of_view)
    outside = prod(view.shape) - inside
    pixels = words_for_axes(len(view.shape)).of(outside)
    text = (
        f"{outside} {pixels} outside the field of view of {name} "
        f"{'has' if outside == 1 else 'have'} no value. To count them as background, use "
    )
    return Note("outside", (text, BACKGROUND_OPTION, "."))
