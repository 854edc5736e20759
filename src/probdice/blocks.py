"""The passes over the pixels: Ω in slabs, each through a kernel, and what they give added up.

Slabs are worked on by threads (the kernels hold no lock), and their results are added in the order
of the slabs, so that a result does not depend on the number of workers, to the bit.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import chain
from operator import add
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from probdice.errors import InputError
from probdice.faults import Fault, examine_values
from probdice.segmentation import Array, Segmentation
from probdice.similarity import Aitchison, Similarity
from probdice.slabs import SLAB_BYTES, Crisp, Portion, Reader, Slab, Soft
from probdice.tally import Side, Tally
from probdice.tallying import pair_bytes, pair_mixed, pair_up

__all__ = ["Groups", "Pair", "Scored", "default_workers", "watcher"]

R = TypeVar("R")
Floats = NDArray[np.float64]
Groups = Sequence[Sequence[int]]  # the regions in each group: channels, or labels of a label map

# Called with the slabs done and the slabs in all, through every pass over the pixels.
watcher: ContextVar[Callable[[int, int], None] | None] = ContextVar("watcher", default=None)


def default_workers() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True, eq=False)
class Scored:
    """Of some pixels: 1 − f in all, how many are infinitely far, and Σ|p − q| of each group."""

    loss: float
    infinite: int
    differences: Floats

    def __add__(self, more: "Scored") -> "Scored":
        return Scored(
            self.loss + more.loss,
            self.infinite + more.infinite,
            self.differences + more.differences,
        )


@dataclass(frozen=True, eq=False)
class Pair:
    """Two segmentations of one image over Ω, and the passes that can be made over them."""

    reference: Segmentation
    prediction: Segmentation
    mask: Array | None
    workers: int

    def __getstate__(self) -> dict[str, Any]:
        # The reader holds scratch of this process's threads, and is made anew where it is missed.
        return {name: value for name, value in self.__dict__.items() if name != "reader"}

    def side(self, side: Side) -> Segmentation:
        """One of the two."""
        return self.reference if side == "reference" else self.prediction

    @cached_property
    def reader(self) -> Reader:
        """Cuts and prepares the slabs."""
        return Reader(self.reference, self.prediction, mask=self.mask)

    def tally(self, similarity: Similarity) -> Tally:
        """The first pass: every pair of regions. Values are checked here, and only here."""

        def visit(slab: Slab) -> tuple[Tally, list[Fault | None]]:
            if (both := self.reader.bytes_of(slab)) is not None:
                return pair_bytes(*both), []
            portion = self.reader.read(slab)
            tally, sound = pair_up(portion.sides, similarity)
            return tally, _faults(portion, sound, slab)

        total: Tally | None = None
        faults: list[Fault | None] = [None, None]
        for part, found in self._run(visit):
            total = part if total is None else total + part
            for k, fault in enumerate(found):
                earlier = faults[k]
                faults[k] = earlier + fault if earlier and fault else earlier or fault
        for name, side, fault in zip(
            ("reference", "prediction"), (self.reference, self.prediction), faults, strict=True
        ):
            if fault is not None:
                place, worst = self.reader.place(fault.first), self.reader.place(fault.worst)
                file = f" ({side.source})" if side.source else ""
                raise InputError(f"{name}{file}: {fault.tell(place, worst)}")
        if total is None or total.pixels == 0:
            raise InputError(self._nothing_left())
        return total

    def alone(self, similarity: Similarity, side: Side) -> Floats:
        """Sum of 1 − f between each region of a soft side and an empty region."""

        def visit(slab: Slab) -> Floats:
            part = self.reader.read(slab).sides[_place(side)]
            everywhere = Crisp(np.zeros(part.size, np.int32), np.zeros(1, np.int64))
            return pair_mixed(everywhere, part, similarity)[0].outside

        return reduce(add, self._run(visit))

    def joined(
        self,
        similarity: Similarity,
        side: Side,
        groups: Groups,
        targets: Sequence[int],
        spare: Sequence[int],
        rest: Sequence[int],
    ) -> Floats:
        """Sum of 1 − f between each group with each spare region added to it, and its target.

        `groups`, `spare` and `rest` are the regions of the soft `side`, all of them; `targets`
        are the regions of the other side that the groups are matched with.
        """
        from probdice import kernels

        own = _grouping(groups)
        added, left = np.array(spare, np.int64), np.array(rest, np.int64)

        def visit(slab: Slab) -> Floats:
            sides = self.reader.read(slab).sides
            mine, theirs = sides[_place(side)], sides[1 - _place(side)]
            total = np.zeros((len(groups), len(spare)))
            for start, stop in _pieces(mine.size, sides, len(groups)):
                p, p_start, _ = self._rows(mine, groups, start, stop)
                q, q_start, (_, aims) = self._rows(theirs, [[t] for t in targets], start, stop)
                places = (p, p_start, *own, added), (q, q_start, aims, stop - start)
                if isinstance(similarity, Aitchison):
                    kernels.aitchison.gains(*places[0], left, *places[1], similarity.floor, total)
                else:
                    kernels.absolute.gains(*places[0], *places[1], total)
            return total

        return reduce(add, self._run(visit))

    def score(self, similarity: Aitchison, groups: dict[Side, Groups]) -> Scored:
        """Compare the groups of both sides at every pixel."""

        def visit(slab: Slab) -> Scored:
            return self._visit_pixels(slab, similarity, groups)[0]

        return reduce(add, self._run(visit))

    def map(self, similarity: Similarity, groups: dict[Side, Groups]) -> NDArray[np.float32]:
        """f at every pixel between the groups of both sides; NaN outside Ω."""
        image = np.full(int(np.prod(self.reader.shape)), np.nan, np.float32)

        def visit(slab: Slab) -> None:
            _, f, inside = self._visit_pixels(slab, similarity, groups)
            image[slab.start : slab.stop][slice(None) if inside is None else inside] = f

        deque(self._run(visit), maxlen=0)
        return self.reader.image(image)

    def sample(self, ranks: dict[Side, NDArray[np.int64]]) -> dict[Side, NDArray[Any]]:
        """Pixels of each side, by ascending ranks in Ω: columns of probabilities, or labels."""
        parts: dict[Side, list[NDArray[Any]]] = {"reference": [], "prediction": []}
        before = 0
        for slab in self.reader.slabs:
            portion = self.reader.read(slab)
            for side, part in zip(parts, portion.sides, strict=True):
                first, last = np.searchsorted(ranks[side], [before, before + portion.size])
                here = ranks[side][first:last] - before
                if isinstance(part, Crisp):
                    parts[side].append(part.labels[part.codes[here]])
                else:
                    parts[side].append(part.rows[:, part.start + here])
            before += portion.size
        return {side: np.concatenate(pieces, axis=-1) for side, pieces in parts.items()}

    def _visit_pixels(
        self, slab: Slab, similarity: Similarity, groups: dict[Side, Groups]
    ) -> tuple[Scored, NDArray[Any], NDArray[np.int64] | None]:
        """Sums over the pixels of a slab, f at each, and which pixels of the slab these are."""
        from probdice import kernels

        portion = self.reader.read(slab)
        count = len(groups["reference"])
        f = np.empty(portion.size, self.reader.dtype)
        differences = np.zeros(count)
        loss, infinite = 0.0, 0
        for start, stop in _pieces(portion.size, portion.sides, count):
            p, p_start, p_groups = self._rows(portion.sides[0], groups["reference"], start, stop)
            q, q_start, q_groups = self._rows(portion.sides[1], groups["prediction"], start, stop)
            both = p, p_start, *p_groups, q, q_start, *q_groups, stop - start
            if isinstance(similarity, Aitchison):
                more_loss, more_infinite = kernels.aitchison.pixels(
                    *both, similarity.floor, differences, f[start:stop]
                )
                loss, infinite = loss + more_loss, infinite + more_infinite
            else:
                kernels.absolute.pixels(*both, f[start:stop])
        return Scored(loss, infinite, differences), f, portion.inside

    def _rows(
        self, part: Soft | Crisp, groups: Groups, start: int, stop: int
    ) -> tuple[NDArray[Any], int, tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Rows of some pixels, the column they start at, and which of them make up each group.

        A label map gives one row a group, and a last one for what is in no group.
        """
        from probdice import kernels

        if isinstance(part, Soft):
            return part.rows, part.start + start, _grouping(groups)
        group_of = {label: g for g, group in enumerate(groups) for label in group}
        codes = [group_of.get(label, len(groups)) for label in part.labels.tolist()]
        rows = np.empty((len(groups) + 1, stop - start), self.reader.dtype)
        kernels.labels.indicate(part.codes[start:stop], np.array(codes, np.int64), rows)
        return rows, 0, _grouping([[g] if group else [] for g, group in enumerate(groups)])

    def _run(self, visit: Callable[[Slab], R]) -> Iterator[R]:
        """Results of all slabs, in their order; whoever watches is told of each."""
        tell = watcher.get()
        for done, result in enumerate(self._visited(visit), start=1):
            if tell is not None:
                tell(done, len(self.reader.slabs))
            yield result

    def _visited(self, visit: Callable[[Slab], R]) -> Iterator[R]:
        """Results of all slabs, from as many threads as there are workers."""
        slabs = self.reader.slabs
        if self.workers == 1 or len(slabs) == 1:
            yield from map(visit, slabs)
            return
        with ThreadPoolExecutor(self.workers) as pool:
            ahead: deque[Future[R]] = deque()
            try:
                for slab in slabs:
                    ahead.append(pool.submit(visit, slab))
                    if len(ahead) > 2 * self.workers:  # no more results wait than are needed
                        yield ahead.popleft().result()
                while ahead:
                    yield ahead.popleft().result()
            finally:  # an interrupt need not wait for slabs that nobody has begun
                for future in ahead:
                    future.cancel()

    def _nothing_left(self) -> str:
        if self.mask is not None:
            return "mask is empty: it leaves no pixel to compare"
        if self.reference.ignore:
            return f"reference has no pixel but those with ignored labels {self.reference.ignore}"
        return f"reference and prediction have no pixels: their shape is {self.reference.shape}"


def _place(side: Side) -> int:
    return 0 if side == "reference" else 1


def _grouping(groups: Groups) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Groups as the kernels take them: where each one starts in the list of all members."""
    starts = np.cumsum([0, *(len(group) for group in groups)])
    return starts.astype(np.int64), np.array(list(chain(*groups)), np.int64)


def _pieces(size: int, sides: Sequence[Soft | Crisp], groups: int) -> Iterator[tuple[int, int]]:
    """Ranges of pixels; short ones where a label map is spread out into a row for each group."""
    spread = any(isinstance(side, Crisp) for side in sides)
    step = max(1024, SLAB_BYTES // (8 * (groups + 1))) if spread else max(size, 1)
    for start in range(0, size, step):
        yield start, min(start + step, size)


def _faults(portion: Portion, sound: Sequence[bool], slab: Slab) -> list[Fault | None]:
    """What is amiss with each side, by pixels of the image."""
    found = []
    for part, fault, fine in zip(portion.sides, portion.faults, sound, strict=True):
        if fault is None and not fine:
            assert isinstance(part, Soft)
            fault = examine_values(part.rows[:, part.start : part.start + part.size], "error")
        found.append(fault and fault.moved(slab.start, portion.inside))
    return found
