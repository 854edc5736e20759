"""What can be computed on a block: its overlap, gains, scores, f at every pixel, moments."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.engine.blocks import BLOCK_BYTES, Crisp, Ready, Soft
from probdice.overlaps import Floats, Integers, Overlap, Pairs, Regions
from probdice.segmentation import Segmentation
from probdice.sides import Both
from probdice.similarity import Aitchison, Similarity
from probdice.value_checks import Fault

__all__ = [
    "Checked",
    "Distribution",
    "Forecast",
    "Lists",
    "Members",
    "Moments",
    "Scores",
    "agreement",
    "distribution",
    "forecast",
    "joined",
    "labels_overlap",
    "moments",
    "overlap",
    "scores",
]

FEW_PIXELS = 2**16  # fewer do not pay for a table of all pairs of bytes
MANY_PIXELS = 2**19  # more pay for listing the pairs that meet
FEW_CELLS = 2**14  # pairs of labels whose table fits in the cache
FEW_PAIRS = 2**12  # for which there is room before more is made

Lists = Sequence[Sequence[int]]  # the regions in each group: channels, or labels of a label map


# -- the overlap ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Checked:
    """The overlap of some pixels, and what is amiss with the values of each side."""

    overlap: Overlap
    faults: tuple[Fault | None, ...] = (None, None)

    @classmethod
    def total(cls, several: Iterable["Checked"]) -> "Checked":
        """All together."""
        faults: list[Fault | None] = [None, None]

        def overlaps() -> Iterator[Overlap]:
            for checked in several:
                for k, fault in enumerate(checked.faults):
                    earlier = faults[k]
                    faults[k] = earlier + fault if earlier and fault else earlier or fault
                yield checked.overlap

        overlap = Overlap.total(overlaps())
        return cls(overlap, tuple(faults))


def overlap(
    sides: Both[Segmentation], ready: Ready, similarity: Similarity
) -> tuple[Overlap, tuple[bool, bool]]:
    """The overlap of some pixels, and whether the values of each side look sound."""
    p, q = ready.sides
    if isinstance(p, Crisp) and isinstance(q, Crisp):
        return _crisp_overlap(sides, p, q, similarity), (True, True)
    if isinstance(p, Soft) and isinstance(q, Soft):
        return _soft_overlap(sides, p, q, similarity)
    return _mixed_overlap(sides, p, q, similarity)


def labels_overlap(
    sides: Both[Segmentation], p: NDArray[Any], q: NDArray[Any], similarity: Similarity
) -> Overlap:
    """The same for label maps as they lie in memory."""
    from probdice.engine import kernels

    if p.itemsize == q.itemsize == 1 and p.size >= FEW_PIXELS:
        return _bytes_overlap(sides, p, q, similarity)
    if p.size <= MANY_PIXELS and np.uint64 not in (p.dtype, q.dtype):
        whole = p.astype(np.int64, copy=False), q.astype(np.int64, copy=False)
        p_labels, q_labels, meeting = kernels.labels.count_range(*whole, FEW_CELLS)
        if meeting.size:
            return Overlap(
                similarity,
                p.size,
                Regions(p_labels[0], p_labels[1], True, sides.reference.names),
                Regions(q_labels[0], q_labels[1], True, sides.prediction.names),
                Pairs(*meeting),
            )
    p_met, q_met, counts = _runs(p, q)
    p_labels, rows = np.unique(p_met, return_inverse=True)
    q_labels, columns = np.unique(q_met, return_inverse=True)
    return _listed(sides, p_labels, q_labels, rows, columns, counts, similarity)


def _bytes_overlap(
    sides: Both[Segmentation], p: NDArray[Any], q: NDArray[Any], similarity: Similarity
) -> Overlap:
    """Label maps of one byte a pixel are their own codes."""
    from probdice.engine import kernels

    table = kernels.labels.count_bytes(p.view(np.uint8), q.view(np.uint8))
    labels = [np.arange(256, dtype=np.uint8).view(side.dtype) for side in (p, q)]
    # Most of the 256 labels do not occur.
    rows, columns = np.flatnonzero(table.any(axis=1)), np.flatnonzero(table.any(axis=0))
    return _counted(
        sides, labels[0][rows], labels[1][columns], table[np.ix_(rows, columns)], similarity
    )


def _crisp_overlap(
    sides: Both[Segmentation], p: Crisp, q: Crisp, similarity: Similarity
) -> Overlap:
    rows, columns, counts = _runs(p.codes, q.codes)
    return _listed(sides, p.labels, q.labels, rows, columns, counts, similarity)


def _runs(p: NDArray[Any], q: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], Integers]:
    """The pairs of whole numbers that meet, in any order, and how often."""
    from probdice.engine import kernels

    p_whole, q_whole = p.view(f"u{p.itemsize}"), q.view(f"u{q.itemsize}")
    room, pairs, done = FEW_PAIRS, 0, 0
    p_met, q_met = np.empty(room, p_whole.dtype), np.empty(room, q_whole.dtype)
    counts = np.empty(room, np.int64)
    while True:
        slots = np.full(4 * room, -1, np.int32)
        pairs, done = kernels.labels.count_runs(
            p_whole, q_whole, done, pairs, slots, p_met, q_met, counts
        )
        if done == p.size:
            return p_met[:pairs].view(p.dtype), q_met[:pairs].view(q.dtype), counts[:pairs]
        room *= 8
        p_met, q_met, counts = (np.resize(listed, room) for listed in (p_met, q_met, counts))


def _counted(
    sides: Both[Segmentation],
    p_labels: NDArray[Any],
    q_labels: NDArray[Any],
    table: NDArray[Any],
    similarity: Similarity,
) -> Overlap:
    """From a table of counts, its labels in any order."""
    p_keys, p_places = _ascending(p_labels)
    q_keys, q_places = _ascending(q_labels)
    ascending = np.empty(table.shape, np.int64)
    ascending[p_places[:, None], q_places] = table
    rows, columns = ascending.nonzero()
    return _crisp_result(
        sides,
        similarity,
        Both(p_keys, q_keys),
        Both(ascending.sum(axis=1), ascending.sum(axis=0)),
        Pairs(rows, columns, ascending[rows, columns]),
    )


def _listed(
    sides: Both[Segmentation],
    p_labels: NDArray[Any],
    q_labels: NDArray[Any],
    rows: Integers,
    columns: Integers,
    counts: Integers,
    similarity: Similarity,
) -> Overlap:
    """From pairs of codes and how often each occurs, codes in any order."""
    p_keys, p_places = _ascending(p_labels)
    q_keys, q_places = _ascending(q_labels)
    rows, columns = p_places[rows], q_places[columns]
    order = np.argsort(rows * q_keys.size + columns)
    rows, columns, counts = rows[order], columns[order], counts[order]
    return _crisp_result(
        sides,
        similarity,
        Both(p_keys, q_keys),
        Both(_totals(rows, counts, p_keys.size), _totals(columns, counts, q_keys.size)),
        Pairs(rows, columns, counts),
    )


def _crisp_result(
    sides: Both[Segmentation],
    similarity: Similarity,
    keys: Both[NDArray[Any]],
    volumes: Both[Integers],
    pairs: Pairs,
) -> Overlap:
    return Overlap(
        similarity,
        int(pairs.savings.sum()),
        Regions(keys.reference, volumes.reference, True, sides.reference.names),
        Regions(keys.prediction, volumes.prediction, True, sides.prediction.names),
        pairs,
    )


def _soft_overlap(
    sides: Both[Segmentation], p: Soft, q: Soft, similarity: Similarity
) -> tuple[Overlap, tuple[bool, bool]]:
    from probdice.engine import kernels

    counts = p.rows.shape[0], q.rows.shape[0]
    volumes = Both(np.zeros(counts[0]), np.zeros(counts[1]))
    savings = np.zeros(counts)
    pixels = p.rows, p.start, q.rows, q.start, p.size
    losses: tuple[Floats, Floats] | tuple[None, None] = None, None
    if isinstance(similarity, Aitchison):
        losses = np.zeros(counts[0]), np.zeros(counts[1])
        sound = kernels.aitchison.pairs(
            *pixels, similarity.floor, volumes.reference, volumes.prediction,
            *losses, savings,
        )  # fmt: skip
    else:
        sound = kernels.absolute.pairs(*pixels, volumes.reference, volumes.prediction, savings)
    rows, columns = np.nonzero(savings)
    result = Overlap(
        similarity,
        p.size,
        _soft_regions(sides.reference, volumes.reference, losses[0]),
        _soft_regions(sides.prediction, volumes.prediction, losses[1]),
        Pairs(rows, columns, savings[rows, columns]),
    )
    return result, sound


def _mixed_overlap(
    sides: Both[Segmentation], p: Soft | Crisp, q: Soft | Crisp, similarity: Similarity
) -> tuple[Overlap, tuple[bool, bool]]:
    from probdice.engine import kernels

    crisp, soft = (p, q) if isinstance(p, Crisp) else (q, p)
    assert isinstance(crisp, Crisp) and isinstance(soft, Soft)
    volumes, counts = np.zeros(soft.rows.shape[0]), np.zeros(crisp.labels.size, np.int64)
    savings = np.zeros((counts.size, volumes.size))
    pixels = crisp.codes, soft.rows, soft.start
    losses = None
    if isinstance(similarity, Aitchison):
        losses = np.zeros(volumes.size)
        sound = kernels.labels.pairs_aitchison(
            *pixels, similarity.floor, counts, volumes, losses, savings
        )
    else:
        sound = kernels.labels.pairs_absolute(*pixels, counts, volumes, savings)
    keys, places = _ascending(crisp.labels)
    ascending = np.empty_like(places)
    ascending[places] = np.arange(places.size)
    crisp_side, soft_side = sides if crisp is p else reversed(list(sides))
    labels = Regions(keys, counts[ascending], True, crisp_side.names)
    regions = _soft_regions(soft_side, volumes, losses)
    savings = savings[ascending]
    if crisp is q:
        savings = savings.T
    rows, columns = np.nonzero(savings)
    pairs = Pairs(rows, columns, savings[rows, columns])
    if crisp is p:
        return Overlap(similarity, soft.size, labels, regions, pairs), (True, sound)
    return Overlap(similarity, soft.size, regions, labels, pairs), (sound, True)


def _soft_regions(side: Segmentation, volumes: Floats, losses: Floats | None) -> Regions:
    numbers = {channel: label for channel, label in enumerate(side.labels) if label is not None}
    keys = np.arange(volumes.size)
    return Regions(keys, volumes, False, side.names, losses, numbers=numbers)


def _ascending(labels: NDArray[Any]) -> tuple[NDArray[Any], Integers]:
    """Labels in ascending order as whole numbers of 64 bits, and the place of each."""
    if labels.dtype == np.uint64 and labels.size and int(labels.max()) >= 2**63:
        keys = labels
    else:
        keys = labels.astype(np.int64)
    order = np.argsort(keys)
    places = np.empty(order.size, np.int64)
    places[order] = np.arange(order.size)
    return keys[order], places


def _totals(places: Integers, counts: Integers, size: int) -> Integers:
    """Counts added up by place, as whole numbers."""
    totals = np.zeros(size, np.int64)
    np.add.at(totals, places, counts)
    return totals


# -- groups at every pixel -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Scores:
    """Of some pixels: 1 − f in all, how many are infinitely far, and Σ|p − q| of each group."""

    loss: float
    infinite: int
    differences: Floats

    def __add__(self, other: "Scores") -> "Scores":
        return Scores(
            self.loss + other.loss,
            self.infinite + other.infinite,
            self.differences + other.differences,
        )


@dataclass(frozen=True, eq=False)
class Members:
    """The regions in each group of one side, and of labels the group that each is in."""

    lists: Lists

    def __len__(self) -> int:
        return len(self.lists)

    def group_of(self, labels: NDArray[Any], none: int) -> Integers:
        """The group of each of these labels; `none` where there is none."""
        keys, numbers = self._ascending
        groups = np.full(labels.size, none, np.int64)
        kept, places = _known(labels, keys)
        groups[kept] = numbers[places]
        return groups

    def table(self, dtype: np.dtype[Any]) -> Any:
        """The groups of all labels of a type, as the kernel takes them."""
        from probdice.engine import kernels

        keys, numbers = self._ascending
        least, most = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        kept = (keys >= least) & (keys <= most)
        keys, numbers = keys[kept], numbers[kept]
        stored = keys.astype(dtype).view(f"u{dtype.itemsize}")
        labels = np.empty_like(stored)
        slots = np.full(2 << max(keys.size, 1).bit_length(), -1, np.int32)
        kernels.labels.encode(stored, slots, labels, np.empty(keys.size, np.int32))
        return slots, labels, np.append(numbers, -1)

    @cached_property
    def _ascending(self) -> tuple[NDArray[Any], Integers]:
        """All labels, ascending, and their groups: found once for all blocks."""
        labels = list(chain(*self.lists))
        keys = np.array(labels, np.uint64 if max(labels, default=0) >= 2**63 else np.int64)
        numbers = np.repeat(np.arange(len(self)), [len(regions) for regions in self.lists])
        order = np.argsort(keys)
        return keys[order], numbers[order]


def scores(ready: Ready, similarity: Similarity, groups: Both[Members], f: NDArray[Any]) -> Scores:
    """Sums over the pixels of a block after correspondence; f at each is written to `f`."""
    from probdice.engine import kernels

    p, q = ready.sides
    differences = np.zeros(len(groups.reference))
    loss, infinite = 0.0, 0
    for start, stop in _ranges(ready, len(groups.reference)):
        rows = Both(
            _rows(p, groups.reference, start, stop, f.dtype),
            _rows(q, groups.prediction, start, stop, f.dtype),
        )
        both = *rows.reference, *rows.prediction, stop - start
        if isinstance(similarity, Aitchison):
            more_loss, more_infinite = kernels.aitchison.pixels(
                *both, similarity.floor, differences, f[start:stop]
            )
            loss, infinite = loss + more_loss, infinite + more_infinite
        else:
            kernels.absolute.pixels(*both, differences, f[start:stop])
    return Scores(loss, infinite, differences)


def agreement(
    p: NDArray[Any], q: NDArray[Any], tables: Both[Any], similarity: Similarity
) -> NDArray[np.float32]:
    """f at every pixel of two label maps, by the tables of the groups that labels are in."""
    from probdice.engine import kernels

    f = np.empty(p.size, np.float32)
    p, q = p.view(f"u{p.itemsize}"), q.view(f"u{q.itemsize}")
    other = 1 - similarity.disagreement
    kernels.labels.agree(p, q, tables.reference, tables.prediction, other, f)
    return f


def joined(
    ready: Ready,
    similarity: Similarity,
    place: int,
    own: Lists,
    across: Lists,
    spare: Sequence[int],
    dtype: np.dtype[Any],
) -> Floats:
    """Σ 1 − f of each group with each spare region of one side joined to it.

    `own` are the groups' regions on the side that grows, which is side number `place`.
    """
    from probdice.engine import kernels

    growing, across_side = ready.sides[place], ready.sides[1 - place]
    total = np.zeros((len(own), len(spare)))
    regions, regions_across = Members([*own, *([region] for region in spare)]), Members(across)
    for start, stop in _ranges(ready, len(own) + len(spare)):
        p, p_start, p_starts, p_members = _rows(growing, regions, start, stop, dtype)
        q, q_start, q_starts, q_members = _rows(across_side, regions_across, start, stop, dtype)
        spares = p_members[p_starts[len(own)] :]
        grown = p_starts[: len(own) + 1], p_members[: p_starts[len(own)]]
        if isinstance(similarity, Aitchison):
            kernels.aitchison.joined(
                p, p_start, *grown, _rest(p, p_members), spares,
                q, q_start, q_starts, q_members, _rest(q, q_members),
                stop - start, similarity.floor, total,
            )  # fmt: skip
        else:
            kernels.absolute.joined(
                p, p_start, *grown, spares, q, q_start, q_starts, q_members, stop - start, total
            )
    return total


def _rows(
    side: Soft | Crisp, groups: Members, start: int, stop: int, dtype: np.dtype[Any]
) -> tuple[NDArray[Any], int, Integers, Integers]:
    """Rows of some pixels, the column they start at, and which of them make up each group.

    A label map gives one row a group, and a last one for what is in no group.
    """
    from probdice.engine import kernels

    if isinstance(side, Soft):
        return side.rows, side.start + start, *_starts(groups.lists)
    rows = np.empty((len(groups) + 1, stop - start), dtype)
    group_of_code = groups.group_of(side.labels, len(groups))
    kernels.labels.indicate(side.codes[start:stop], group_of_code, rows)
    return rows, 0, *_starts([[g] if regions else [] for g, regions in enumerate(groups.lists)])


def _starts(groups: Lists) -> tuple[Integers, Integers]:
    """Groups as the kernels take them: where each one starts in the list of all members."""
    starts = np.cumsum([0, *(len(group) for group in groups)])
    return starts.astype(np.int64), np.array(list(chain(*groups)), np.int64)


def _rest(rows: NDArray[Any], members: Integers) -> Integers:
    """The rows that are in no group."""
    return np.setdiff1d(np.arange(rows.shape[0]), members)


def _ranges(ready: Ready, groups: int) -> Iterator[tuple[int, int]]:
    """Ranges of pixels; short ones where a label map is spread out into a row for each group."""
    spread = any(isinstance(side, Crisp) for side in ready.sides)
    step = max(1024, BLOCK_BYTES // (8 * (groups + 1))) if spread else max(ready.size, 1)
    for start in range(0, ready.size, step):
        yield start, min(start + step, ready.size)


# -- moments and distributions -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Moments:
    """Σ p, Σ p pᵀ and Σ p qᵀ over some pixels: what is explained follows from these.

    `own` has the products of a soft side with itself; for a label map it is None.
    """

    volumes: Both[Floats]
    own: Both[Floats | None]
    between: Floats

    def __add__(self, other: "Moments") -> "Moments":
        return Moments(
            Both(*(a + b for a, b in zip(self.volumes, other.volumes, strict=True))),
            Both(
                *(
                    None if a is None or b is None else a + b
                    for a, b in zip(self.own, other.own, strict=True)
                )
            ),
            self.between + other.between,
        )


def moments(ready: Ready, keys: Both[NDArray[Any]]) -> Moments:
    """The moments of a block; label maps by the labels in `keys`."""
    from probdice.engine import kernels

    sides = Both(*ready.sides)
    own = sides.map(lambda side: _products(side, side) if isinstance(side, Soft) else None)
    volumes = Both(*(_volumes(side, keys[name]) for name, side in sides.to_dict().items()))
    p, q = sides
    if isinstance(p, Soft) and isinstance(q, Soft):
        between = _products(p, q)
    else:
        crisp, soft = (p, q) if isinstance(p, Crisp) else (q, p)
        assert isinstance(crisp, Crisp) and isinstance(soft, Soft)
        sums = np.zeros((crisp.labels.size, soft.rows.shape[0]))
        kernels.labels.group_sums(crisp.codes, soft.rows, soft.start, sums)
        labels = keys.reference if crisp is p else keys.prediction
        between = np.zeros((labels.size, sums.shape[1]))
        kept, places = _known(crisp.labels, labels)
        between[places] = sums[kept]
        between = between if crisp is p else between.T
    return Moments(volumes, own, between)


def _products(p: Soft, q: Soft) -> Floats:
    from probdice.engine import kernels

    products = np.zeros((p.rows.shape[0], q.rows.shape[0]))
    kernels.moments.products(p.rows, p.start, q.rows, q.start, p.size, products)
    return products


def _volumes(side: Soft | Crisp, keys: NDArray[Any]) -> Floats:
    if isinstance(side, Soft):
        rows = side.rows[:, side.start : side.start + side.size]
        sums: Floats = rows.sum(axis=1, dtype=np.float64)
        return sums
    volumes = np.zeros(keys.size)
    counts = np.bincount(side.codes, minlength=side.labels.size)
    kept, places = _known(side.labels, keys)
    volumes[places] = counts[kept]
    return volumes


def _known(labels: NDArray[Any], keys: NDArray[Any]) -> tuple[Integers, Integers]:
    """The codes whose label is among the keys, and its place there; ignored labels are not."""
    whole = labels.astype(keys.dtype)
    places = np.minimum(np.searchsorted(keys, whole), max(keys.size - 1, 0))
    kept = np.flatnonzero(keys[places] == whole) if keys.size else np.zeros(0, np.int64)
    return kept, places[kept]


@dataclass(frozen=True, eq=False)
class Distribution:
    """How many values of each region lie in each bin of [0, 1], and the sums of these values.

    Bins are narrow at both ends, where most values are, and widest in the middle.
    """

    counts: Integers
    sums: Floats

    def __add__(self, other: "Distribution") -> "Distribution":
        return Distribution(self.counts + other.counts, self.sums + other.sums)

    @cached_property
    def widths(self) -> Floats:
        """The width of every bin."""
        bins = self.counts.shape[1]
        ends = 2 * (np.arange(bins // 2 + 1) / bins) ** 2
        widths = np.diff(ends)
        return np.concatenate([widths, widths[::-1]])

    @cached_property
    def shares(self) -> Floats:
        """The sum, over the values in each bin, of where they lie between its ends: 0 to 1."""
        left_ends = np.cumsum(self.widths) - self.widths
        return np.clip((self.sums - self.counts * left_ends) / self.widths, 0, self.counts)


def distribution(side: Soft, bins: int) -> Distribution:
    """The distribution of the values of a block; `bins` is even."""
    from probdice.engine import kernels

    counts = np.zeros((side.rows.shape[0], bins), np.int64)
    sums = np.zeros(counts.shape)
    kernels.distribution.histogram(side.rows, side.start, side.size, counts, sums)
    return Distribution(counts, sums)


# -- calibration ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Forecast:
    """How far the prediction of some pixels is borne out by the reference, group by group.

    Attributes
    ----------
    moments : ndarray
        By group and by bin of the predicted probability q: pixels, Σp, Σq, Σp², Σq² and Σpq.
    likely : ndarray
        The same for the likeliest group of every pixel alone, by bin.
    above : ndarray
        By group, how many pixels exceed how many thresholds in the reference and the prediction.
    loss : float
        −Σ p log q over the pixels where it is finite.
    infinite : float
        How many pixels there are where it is not.
    """

    moments: Floats
    likely: Floats
    above: Integers
    loss: float
    infinite: float

    def __add__(self, other: "Forecast") -> "Forecast":
        return Forecast(
            self.moments + other.moments,
            self.likely + other.likely,
            self.above + other.above,
            self.loss + other.loss,
            self.infinite + other.infinite,
        )


def forecast(
    ready: Ready, groups: Both[Members], bins: int, thresholds: Floats, dtype: np.dtype[Any]
) -> Forecast:
    """How far the prediction of a block is borne out."""
    from probdice.engine import kernels

    p, q = ready.sides
    count, levels = len(groups.reference), thresholds.size + 1
    moments = np.zeros((count, bins, kernels.calibration.MOMENTS))
    likely, losses = np.zeros(moments.shape[1:]), np.zeros(2)
    above = np.zeros((count, levels, levels), np.int64)
    for start, stop in _ranges(ready, count):
        kernels.calibration.calibrate(
            *_rows(p, groups.reference, start, stop, dtype),
            *_rows(q, groups.prediction, start, stop, dtype),
            stop - start, thresholds.astype(dtype), moments, likely, above, losses,
        )  # fmt: skip
    return Forecast(moments, likely, above, float(losses[0]), float(losses[1]))
