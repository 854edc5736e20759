"""Passes that compare groups of regions at every pixel.

The passes compute scores, the similarity f and the group number of every pixel, and the losses of
groups after a region is added.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.engine.blocks import BLOCK_BYTES, Blocks
from probdice.engine.decode import Crisp, DecodedBlock, Soft
from probdice.engine.grids import Block
from probdice.engine.passes import Pass, summed
from probdice.engine.similarity_kernels import RowGroups, kernels_of
from probdice.method.overlap import Floats, Integers
from probdice.method.pixel_passes import Lists, ScoreSums
from probdice.method.sides import SIDES, Both, Side
from probdice.method.similarity import Similarity

__all__ = [
    "GroupLookup",
    "agreement",
    "joined",
    "joined_pass",
    "map_visit",
    "matching_codes",
    "numbers_visit",
    "pixel_ranges",
    "row_groups",
    "scores",
    "scores_pass",
]


def scores_pass(similarity: Similarity, groups: Both[Lists]) -> Pass[ScoreSums]:
    """Return a pass that compares the groups of both sides at every pixel."""
    return Pass(partial(_scores, similarity=similarity, groups=groups.map(GroupLookup)), summed)


def joined_pass(
    similarity: Similarity,
    side: Side,
    members: Lists,
    opposite_members: Lists,
    unmatched: Sequence[int],
) -> Pass[Floats]:
    """Return a pass that sums 1 − f of each group with one unmatched region of `side` added.

    `members` and `opposite_members` list the regions of the groups on `side` and on the other side.
    Regions are given by channel or label.
    """
    side_index = SIDES.index(side)
    visit = partial(
        _joined,
        similarity=similarity,
        side_index=side_index,
        members=members,
        opposite_members=opposite_members,
        unmatched=unmatched,
    )
    return Pass(visit, summed)


def map_visit(similarity: Similarity, groups: Both[Lists], blocks: Blocks) -> Any:
    """Return a function that computes f at every pixel of a block, with NaN at excluded pixels."""
    members = groups.map(GroupLookup)
    if not all(side.crisp for side in blocks.sides):
        return partial(_map, similarity=similarity, groups=members)
    tables = Both(*(m.table(t) for m, t in zip(members, blocks.label_types, strict=True)))
    return partial(_agreement, similarity=similarity, tables=tables)


def numbers_visit(side: Side, groups: Lists) -> Any:
    """Return a function that computes the group number of every pixel of a label map."""
    return partial(_numbers, side_index=SIDES.index(side), members=GroupLookup(groups))


@dataclass(frozen=True, eq=False)
class GroupLookup:
    """The regions of each group on one side, with lookups of the group of each label."""

    lists: Lists

    def __len__(self) -> int:
        return len(self.lists)

    def group_of(self, labels: NDArray[Any], none: int) -> Integers:
        """Return the group of each label, or `none` for a label that belongs to no group."""
        keys, numbers = self._ascending
        groups = np.full(labels.size, none, np.int64)
        codes, indices = matching_codes(labels, keys)
        groups[codes] = numbers[indices]
        return groups

    def table(self, dtype: np.dtype[Any]) -> Any:
        """Return a hash table of the groups of all labels, for kernels with this label type."""
        from probdice.engine import kernels

        keys, numbers = self._ascending
        least, most = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        in_range = (keys >= least) & (keys <= most)
        keys, numbers = keys[in_range], numbers[in_range]
        unsigned_keys = keys.astype(dtype).view(f"u{dtype.itemsize}")
        labels = np.empty_like(unsigned_keys)
        slots = np.full(2 << max(keys.size, 1).bit_length(), -1, np.int32)
        kernels.labels.encode(unsigned_keys, slots, labels, np.empty(keys.size, np.int32))
        return slots, labels, np.append(numbers, -1)

    @cached_property
    def _ascending(self) -> tuple[NDArray[Any], Integers]:
        """All labels in ascending order, and the group of each label."""
        labels = list(chain(*self.lists))
        keys = np.array(labels, np.uint64 if max(labels, default=0) >= 2**63 else np.int64)
        numbers = np.repeat(np.arange(len(self)), [len(regions) for regions in self.lists])
        order = np.argsort(keys)
        return keys[order], numbers[order]


def _scores(
    blocks: Blocks, block: Block, similarity: Similarity, groups: Both[GroupLookup]
) -> ScoreSums:
    ready = blocks.decode(block)
    return scores(ready, similarity, groups, np.empty(ready.size, blocks.dtype))


def _map(
    blocks: Blocks, block: Block, similarity: Similarity, groups: Both[GroupLookup]
) -> NDArray[np.float32]:
    ready = blocks.decode(block)
    f = np.empty(ready.size, blocks.dtype)
    scores(ready, similarity, groups, f)
    return block.shaped(f.astype(np.float32, copy=False), ready.inside, np.nan)


def _agreement(
    blocks: Blocks, block: Block, similarity: Similarity, tables: Both[Any]
) -> NDArray[np.float32]:
    """Return f at every pixel of a block of two label maps, with NaN at excluded pixels."""
    labels, inside = blocks.labels_of(block), None
    if labels is None:
        ready = blocks.decode(block)
        p, q = ready.sides
        assert isinstance(p, Crisp) and isinstance(q, Crisp)
        labels, inside = (p.values, q.values), ready.inside
    return block.shaped(agreement(*labels, tables, similarity), inside, np.nan)


def _numbers(
    blocks: Blocks, block: Block, side_index: int, members: GroupLookup
) -> NDArray[np.int32]:
    ready = blocks.decode(block)
    side = ready.sides[side_index]
    assert isinstance(side, Crisp)
    numbers = members.group_of(side.labels, -1).astype(np.int32)[side.codes]
    return block.shaped(numbers, ready.inside, -1)


def _joined(
    blocks: Blocks,
    block: Block,
    similarity: Similarity,
    side_index: int,
    members: Lists,
    opposite_members: Lists,
    unmatched: Sequence[int],
) -> Floats:
    ready = blocks.decode(block)
    return joined(ready, similarity, side_index, members, opposite_members, unmatched, blocks.dtype)


def scores(
    ready: DecodedBlock, similarity: Similarity, groups: Both[GroupLookup], f: NDArray[Any]
) -> ScoreSums:
    """Return the sums over the pixels of a block, and write f at every pixel to `f`."""
    p, q = ready.sides
    differences = np.zeros(len(groups.reference))
    loss, infinite = 0.0, 0
    for start, stop in pixel_ranges(ready, len(groups.reference)):
        block_loss, block_infinite = kernels_of(similarity).pixels(
            row_groups(p, groups.reference, start, stop, f.dtype),
            row_groups(q, groups.prediction, start, stop, f.dtype),
            stop - start,
            differences,
            f[start:stop],
        )
        loss, infinite = loss + block_loss, infinite + block_infinite
    return ScoreSums(loss, infinite, differences)


def agreement(
    p: NDArray[Any], q: NDArray[Any], tables: Both[Any], similarity: Similarity
) -> NDArray[np.float32]:
    """Return f at every pixel of two label maps, given tables with the group of each label."""
    from probdice.engine import kernels

    f = np.empty(p.size, np.float32)
    p, q = p.view(f"u{p.itemsize}"), q.view(f"u{q.itemsize}")
    other = 1 - similarity.disagreement
    kernels.labels.agree(p, q, tables.reference, tables.prediction, other, f)
    return f


def joined(
    ready: DecodedBlock,
    similarity: Similarity,
    side_index: int,
    members: Lists,
    opposite_members: Lists,
    unmatched: Sequence[int],
    dtype: np.dtype[Any],
) -> Floats:
    """Return Σ (1 − f) of each group (rows) with one unmatched region added (columns).

    `side_index` is the index of the side with the unmatched regions. `members` lists the regions of
    each group on that side, and `opposite_members` lists the regions on the other side.
    """
    growing_side, opposite_side = ready.sides[side_index], ready.sides[1 - side_index]
    total = np.zeros((len(members), len(unmatched)))
    regions = GroupLookup([*members, *([region] for region in unmatched)])
    opposite_regions = GroupLookup(opposite_members)
    for start, stop in pixel_ranges(ready, len(members) + len(unmatched)):
        rows, first, bounds, group_rows = row_groups(growing_side, regions, start, stop, dtype)
        last = bounds[len(members)]
        kernels_of(similarity).joined(
            RowGroups(rows, first, bounds[: len(members) + 1], group_rows[:last]),
            group_rows[last:],
            row_groups(opposite_side, opposite_regions, start, stop, dtype),
            stop - start,
            total,
        )
    return total


def row_groups(
    side: Soft | Crisp, groups: GroupLookup, start: int, stop: int, dtype: np.dtype[Any]
) -> RowGroups:
    """Return the rows and groups of one side, for the pixels from `start` up to `stop`.

    A label map is expanded to one row per group, plus one row for labels without a group.
    """
    from probdice.engine import kernels

    if isinstance(side, Soft):
        return RowGroups(side.rows, side.start + start, *_starts(groups.lists))
    rows = np.empty((len(groups) + 1, stop - start), dtype)
    group_of_code = groups.group_of(side.labels, len(groups))
    kernels.label_rows.indicate(side.codes[start:stop], group_of_code, rows)
    lists = [[g] if regions else [] for g, regions in enumerate(groups.lists)]
    return RowGroups(rows, 0, *_starts(lists))


def _starts(groups: Lists) -> tuple[Integers, Integers]:
    """Return the start of each group in the list of all members, followed by that list."""
    starts = np.cumsum([0, *(len(group) for group in groups)])
    return starts.astype(np.int64), np.array(list(chain(*groups)), np.int64)


def pixel_ranges(ready: DecodedBlock, groups: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of pixels; each range is processed in one step.

    If a side is a label map, ranges are short, because labels are expanded to one row per group.
    Otherwise, there is one range.
    """
    spread = any(isinstance(side, Crisp) for side in ready.sides)
    step = max(1024, BLOCK_BYTES // (8 * (groups + 1))) if spread else max(ready.size, 1)
    for start in range(0, ready.size, step):
        yield start, min(start + step, ready.size)


def matching_codes(labels: NDArray[Any], keys: NDArray[Any]) -> tuple[Integers, Integers]:
    """Return the codes whose labels are among the keys, and the positions of their keys."""
    typed_labels = labels.astype(keys.dtype)
    indices = np.minimum(np.searchsorted(keys, typed_labels), max(keys.size - 1, 0))
    codes = np.flatnonzero(keys[indices] == typed_labels) if keys.size else np.zeros(0, np.int64)
    return codes, indices[codes]
