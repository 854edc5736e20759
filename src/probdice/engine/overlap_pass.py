"""The pass that computes the overlap of two images and checks their values."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.data.segmentation import Segmentation
from probdice.data.value_checks import Fault, examine_values
from probdice.engine.blocks import Blocks
from probdice.engine.decode import Crisp, DecodedBlock, Soft
from probdice.engine.grids import Block
from probdice.engine.passes import Pass
from probdice.engine.similarity_kernels import kernels_of
from probdice.method.overlap import Floats, Integers, Overlap, Pairs, Regions
from probdice.method.sides import Both
from probdice.method.similarity import Similarity

__all__ = ["CheckedOverlap", "labels_overlap", "overlap", "overlap_pass"]

LabelNames = Mapping[int, str]

FEW_PIXELS = 2**16  # from this number on, labels of one byte are counted in a table of all pairs
MANY_PIXELS = 2**19  # above this number, a conversion of labels to int64 takes too much time
FEW_CELLS = 2**14  # largest number of cells in a table of pairs of labels that fits in the cache
FEW_PAIRS = 2**12  # initial capacity of the list of pairs


def overlap_pass(similarity: Similarity) -> Pass["CheckedOverlap"]:
    """Return a pass that computes the overlap of every pair of regions and finds invalid values."""
    return Pass(partial(_checked_overlap, similarity=similarity), CheckedOverlap.total)


@dataclass(frozen=True, eq=False)
class CheckedOverlap:
    """The overlap of a set of pixels, and the invalid values of each side, if any."""

    overlap: Overlap
    faults: tuple[Fault | None, ...] = (None, None)

    @classmethod
    def total(cls, parts: Iterable["CheckedOverlap"]) -> "CheckedOverlap":
        """Return the sum of the overlaps, with the invalid values of all parts."""
        faults: list[Fault | None] = [None, None]

        def overlaps() -> Iterator[Overlap]:
            for checked in parts:
                for k, fault in enumerate(checked.faults):
                    earlier = faults[k]
                    faults[k] = earlier + fault if earlier and fault else earlier or fault
                yield checked.overlap

        overlap = Overlap.total(overlaps())
        return cls(overlap, tuple(faults))


def _checked_overlap(blocks: Blocks, block: Block, similarity: Similarity) -> CheckedOverlap:
    p, q = blocks.sides
    labels = blocks.labels_of(block)
    if labels is not None:
        return CheckedOverlap(labels_overlap(Both(p.names, q.names), *labels, similarity))
    ready = blocks.decode(block)
    result, sound = overlap(Both(p, q), ready, similarity)
    return CheckedOverlap(result, _faults(ready, sound, blocks, block))


def _faults(
    ready: DecodedBlock, sound: Sequence[bool], blocks: Blocks, block: Block
) -> tuple[Fault | None, ...]:
    """Return the invalid values of each side, with pixels numbered in the whole image."""
    faults = []
    for side, fault, side_sound in zip(ready.sides, ready.faults, sound, strict=True):
        if fault is None and not side_sound:
            assert isinstance(side, Soft)
            fault = examine_values(side.values, "error")
        faults.append(fault and blocks.located(fault, block, ready.inside))
    return tuple(faults)


def overlap(
    sides: Both[Segmentation], ready: DecodedBlock, similarity: Similarity
) -> tuple[Overlap, tuple[bool, bool]]:
    """Return the overlap of a block, and whether the values of each side are known to be valid."""
    p, q = ready.sides
    if isinstance(p, Crisp) and isinstance(q, Crisp):
        return _crisp_overlap(sides.map(lambda side: side.names), p, q, similarity), (True, True)
    if isinstance(p, Soft) and isinstance(q, Soft):
        return _soft_overlap(sides, p, q, similarity)
    return _mixed_overlap(sides, p, q, similarity)


def labels_overlap(
    names: Both[LabelNames], p: NDArray[Any], q: NDArray[Any], similarity: Similarity
) -> Overlap:
    """Return the overlap of two label maps, given the stored label of every pixel.

    `names` contains the names of the regions of both sides, by label.
    """
    from probdice.engine import kernels

    if p.itemsize == q.itemsize == 1 and p.size >= FEW_PIXELS:
        return _bytes_overlap(names, p, q, similarity)
    both_int64 = p.dtype == q.dtype == np.int64
    if both_int64 or (p.size <= MANY_PIXELS and np.uint64 not in (p.dtype, q.dtype)):
        values = p.astype(np.int64, copy=False), q.astype(np.int64, copy=False)
        p_labels, q_labels, overlapping = kernels.labels.count_range(*values, FEW_CELLS)
        if overlapping.size:
            return Overlap(
                similarity,
                p.size,
                Regions(p_labels[0], p_labels[1], True, names.reference),
                Regions(q_labels[0], q_labels[1], True, names.prediction),
                Pairs(*overlapping),
            )
    p_met, q_met, counts = _runs(p, q)
    p_labels, rows = np.unique(p_met, return_inverse=True)
    q_labels, columns = np.unique(q_met, return_inverse=True)
    return _overlap_of_pairs(names, p_labels, q_labels, rows, columns, counts, similarity)


def _bytes_overlap(
    names: Both[LabelNames], p: NDArray[Any], q: NDArray[Any], similarity: Similarity
) -> Overlap:
    """Return the overlap of label maps with one byte per pixel, whose labels are used as codes."""
    from probdice.engine import kernels

    table = kernels.labels.count_bytes(p.view(np.uint8), q.view(np.uint8))
    labels = [np.arange(256, dtype=np.uint8).view(side.dtype) for side in (p, q)]
    # Most of the 256 labels do not occur.
    rows, columns = np.flatnonzero(table.any(axis=1)), np.flatnonzero(table.any(axis=0))
    return _overlap_of_table(
        names, labels[0][rows], labels[1][columns], table[np.ix_(rows, columns)], similarity
    )


def _crisp_overlap(names: Both[LabelNames], p: Crisp, q: Crisp, similarity: Similarity) -> Overlap:
    rows, columns, counts = _runs(p.codes, q.codes)
    return _overlap_of_pairs(names, p.labels, q.labels, rows, columns, counts, similarity)


def _runs(p: NDArray[Any], q: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], Integers]:
    """Return the pairs of integers that occur, in any order, and the number of pixels of each."""
    from probdice.engine import kernels

    p_values, q_values = p.view(f"u{p.itemsize}"), q.view(f"u{q.itemsize}")
    capacity, pairs, pixel_count = FEW_PAIRS, 0, 0
    p_met, q_met = np.empty(capacity, p_values.dtype), np.empty(capacity, q_values.dtype)
    counts = np.empty(capacity, np.int64)
    while True:
        slots = np.full(4 * capacity, -1, np.int32)
        pairs, pixel_count = kernels.labels.count_runs(
            p_values, q_values, pixel_count, pairs, slots, p_met, q_met, counts
        )
        if pixel_count == p.size:
            return p_met[:pairs].view(p.dtype), q_met[:pairs].view(q.dtype), counts[:pairs]
        capacity *= 8
        p_met, q_met, counts = (np.resize(array, capacity) for array in (p_met, q_met, counts))


def _overlap_of_table(
    names: Both[LabelNames],
    p_labels: NDArray[Any],
    q_labels: NDArray[Any],
    table: NDArray[Any],
    similarity: Similarity,
) -> Overlap:
    """Return the overlap from a table of counts with labels in any order."""
    p_keys, p_places = _ascending(p_labels)
    q_keys, q_places = _ascending(q_labels)
    ascending = np.empty(table.shape, np.int64)
    ascending[p_places[:, None], q_places] = table
    rows, columns = ascending.nonzero()
    return _crisp_result(
        names,
        similarity,
        Both(p_keys, q_keys),
        Both(ascending.sum(axis=1), ascending.sum(axis=0)),
        Pairs(rows, columns, ascending[rows, columns]),
    )


def _overlap_of_pairs(
    names: Both[LabelNames],
    p_labels: NDArray[Any],
    q_labels: NDArray[Any],
    rows: Integers,
    columns: Integers,
    counts: Integers,
    similarity: Similarity,
) -> Overlap:
    """Return the overlap from pairs of codes and their counts, in any order."""
    p_keys, p_places = _ascending(p_labels)
    q_keys, q_places = _ascending(q_labels)
    rows, columns = p_places[rows], q_places[columns]
    order = np.argsort(rows * q_keys.size + columns)
    rows, columns, counts = rows[order], columns[order], counts[order]
    return _crisp_result(
        names,
        similarity,
        Both(p_keys, q_keys),
        Both(_totals(rows, counts, p_keys.size), _totals(columns, counts, q_keys.size)),
        Pairs(rows, columns, counts),
    )


def _crisp_result(
    names: Both[LabelNames],
    similarity: Similarity,
    keys: Both[NDArray[Any]],
    volumes: Both[Integers],
    pairs: Pairs,
) -> Overlap:
    return Overlap(
        similarity,
        int(pairs.savings.sum()),
        Regions(keys.reference, volumes.reference, True, names.reference),
        Regions(keys.prediction, volumes.prediction, True, names.prediction),
        pairs,
    )


def _soft_overlap(
    sides: Both[Segmentation], p: Soft, q: Soft, similarity: Similarity
) -> tuple[Overlap, tuple[bool, bool]]:
    sums = kernels_of(similarity).pairs(p.rows, p.start, q.rows, q.start, p.size)
    rows, columns = np.nonzero(sums.savings)
    result = Overlap(
        similarity,
        p.size,
        _soft_regions(
            sides.reference, similarity, sums.volumes[0], sums.likeliest[0], sums.losses[0]
        ),
        _soft_regions(
            sides.prediction, similarity, sums.volumes[1], sums.likeliest[1], sums.losses[1]
        ),
        Pairs(rows, columns, sums.savings[rows, columns]),
    )
    return result, sums.sound


def _mixed_overlap(
    sides: Both[Segmentation], p: Soft | Crisp, q: Soft | Crisp, similarity: Similarity
) -> tuple[Overlap, tuple[bool, bool]]:
    crisp, soft = (p, q) if isinstance(p, Crisp) else (q, p)
    assert isinstance(crisp, Crisp) and isinstance(soft, Soft)
    sums = kernels_of(similarity).label_pairs(crisp.codes, crisp.labels.size, soft.rows, soft.start)
    keys, indices = _ascending(crisp.labels)
    ascending = np.empty_like(indices)
    ascending[indices] = np.arange(indices.size)
    crisp_side, soft_side = sides if crisp is p else reversed(list(sides))
    labels = Regions(keys, sums.counts[ascending], True, crisp_side.names)
    regions = _soft_regions(soft_side, similarity, sums.volumes, sums.likeliest, sums.losses)
    savings = sums.savings[ascending]
    if crisp is q:
        savings = savings.T
    rows, columns = np.nonzero(savings)
    pairs = Pairs(rows, columns, savings[rows, columns])
    if crisp is p:
        return Overlap(similarity, soft.size, labels, regions, pairs), (True, sums.sound)
    return Overlap(similarity, soft.size, regions, labels, pairs), (sums.sound, True)


def _soft_regions(
    side: Segmentation,
    similarity: Similarity,
    volumes: Floats,
    likeliest: Integers,
    losses: Floats | None,
) -> Regions:
    if similarity.separable:
        losses = None  # the volumes are the losses
    numbers = {channel: label for channel, label in enumerate(side.labels) if label is not None}
    keys = np.arange(volumes.size)
    return Regions(keys, volumes, False, side.names, losses, likeliest=likeliest, numbers=numbers)


def _ascending(labels: NDArray[Any]) -> tuple[NDArray[Any], Integers]:
    """Return the labels as 64-bit integers in ascending order, and the position of each label.

    The positions refer to this order and are listed in the order of the input.
    """
    if labels.dtype == np.uint64 and labels.size and int(labels.max()) >= 2**63:
        keys = labels
    else:
        keys = labels.astype(np.int64)
    order = np.argsort(keys)
    indices = np.empty(order.size, np.int64)
    indices[order] = np.arange(order.size)
    return keys[order], indices


def _totals(indices: Integers, counts: Integers, size: int) -> Integers:
    """Return the sum of the counts that have the same index in `indices`, for `size` indices."""
    totals = np.zeros(size, np.int64)
    np.add.at(totals, indices, counts)
    return totals
