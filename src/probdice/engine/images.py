"""Two segmentations of one image over Ω, and the passes that can be made over their pixels."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from itertools import accumulate
from math import isfinite
from operator import add
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from probdice.arrays import has_type, travels
from probdice.engine import passes
from probdice.engine.blocks import Block, Blocks, Crisp, Ready, Soft
from probdice.engine.passes import (
    Checked,
    Distribution,
    Forecast,
    Lists,
    Members,
    Moments,
    Scores,
)
from probdice.engine.threads import cores, run
from probdice.errors import GeometryError, InputError, Note, Option
from probdice.formatting import short_paths
from probdice.geometry import Geometry
from probdice.options import TOLERANCE
from probdice.overlaps import Floats, Integers, Overlap, Pairs, Regions
from probdice.segmentation import Array, Segmentation
from probdice.sides import SIDES, Both, Side, other
from probdice.similarity import Similarity
from probdice.value_checks import Fault, examine_values

__all__ = ["Images", "aligned", "file_of", "image", "mask_on", "one_hot_axis", "total"]

ONE_HOT = 3  # regions from which on an array of 0 and 1 is taken to be one-hot, not two masks
T = TypeVar("T")
R = TypeVar("R")
IGNORE_GEOMETRY = Option("ignore_geometry", python="without_geometry()")


@dataclass(frozen=True, eq=False)
class Images:
    """Two segmentations of one image, the pixels to compare, and how many threads may read them.

    Attributes
    ----------
    reference, prediction : Segmentation
        On one grid: that of the reference.
    mask : array or None
        What is not 0 is compared.
    workers : int
    notes : list of Note
        What is worth knowing about them; the first pass adds to it.
    mask_file : str
        " (file)" where the mask comes from one, for messages.
    """

    reference: Segmentation
    prediction: Segmentation
    mask: Array | None
    workers: int
    notes: list[Note] = field(default_factory=list)
    mask_file: str = ""

    @classmethod
    def of(
        cls,
        reference: Segmentation,
        prediction: Segmentation,
        *,
        mask: Segmentation | Array | None = None,
        workers: int | None = None,
        tolerance: float = TOLERANCE,
    ) -> "Images":
        """Both sides and the mask brought to one grid; no pixel is read."""
        if prediction.ignore:
            raise InputError(
                f"prediction must not ignore labels, found ignore={prediction.ignore}: it could "
                f"leave out what it finds hard; let the reference ignore them, or pass ",
                Option("mask", "FILE", python="mask=…"),
            )
        prediction = aligned(reference, prediction, tolerance=tolerance)
        notes = []
        if reference.notes or prediction.notes:
            notes = [
                Note(note.kind, (f"{side}: ", *note.message))
                for side, segmentation in zip(SIDES, (reference, prediction), strict=True)
                for note in segmentation.notes
            ]
        if mask is None:
            return cls(reference, prediction, None, workers or cores(), notes)
        array, unknown = mask_on(reference, mask, tolerance)
        images = cls(reference, prediction, array, workers or cores(), notes, file_of(mask))
        if unknown:
            pixels = "pixel is" if unknown == 1 else "pixels are"
            text = f"{unknown} {pixels} NaN in the mask and counted as outside"
            images.notes.append(Note("mask", (text,)))
        return images

    def side(self, side: Side) -> Segmentation:
        """One of the two."""
        return self.reference if side == "reference" else self.prediction

    @property
    def sides(self) -> Both[Segmentation]:
        """The two."""
        return Both(self.reference, self.prediction)

    def __getstate__(self) -> dict[str, Any]:
        # Blocks hold scratch of this process's threads, and are made anew where they are missed.
        return {name: value for name, value in self.__dict__.items() if name != "blocks"}

    @cached_property
    def blocks(self) -> Blocks:
        """Cuts and prepares the blocks."""
        return Blocks(self.reference, self.prediction, mask=self.mask)

    def overlap(self, similarity: Similarity) -> Overlap:
        """The first pass: every pair of regions. Values are checked here, and only here."""
        visit = partial(_overlap, similarity=similarity)
        checked = self._total(visit, Checked.total) if self.blocks.blocks else None
        for side, fault in zip(SIDES, checked.faults if checked else (), strict=False):
            if fault is not None:
                raise self._refusal(side, fault)
        if checked is None or checked.overlap.pixels == 0:
            raise InputError(*self._nothing_left())
        overlap = _named(checked.overlap, self.sides)
        if self.reference.colours or self.prediction.colours:
            reference = _coloured(overlap.reference, self.reference)
            prediction = _coloured(overlap.prediction, self.prediction)
            overlap = replace(overlap, reference=reference, prediction=prediction)
        ignored = self.reference.ignore
        if not ignored:
            return overlap
        self.notes[:] = [note for note in self.notes if note.kind != "ignore"]
        keys = set(overlap.reference.keys.tolist())
        for label in dict.fromkeys(ignored):
            if label not in keys:
                text = f"label {label} to be ignored does not occur in the reference"
                self.notes.append(Note("ignore", (text,)))
        return _without(overlap, ignored)

    def joined(
        self, similarity: Similarity, side: Side, own: Lists, across: Lists, spare: Sequence[int]
    ) -> Floats:
        """Σ 1 − f of each group with each spare region of `side` joined to it.

        `own` and `across` are the regions of the groups, and `spare` of `side`, by channel or
        label.
        """
        place = SIDES.index(side)
        visit = partial(
            _joined, similarity=similarity, place=place, own=own, across=across, spare=spare
        )
        return self._total(visit, _sum)

    def scores(self, similarity: Similarity, groups: Both[Lists]) -> Scores:
        """Compare the groups of both sides at every pixel."""
        visit = partial(_scores, similarity=similarity, groups=groups.map(Members))
        return self._total(visit, _sum)

    def map(
        self, similarity: Similarity, groups: Both[Lists], into: Any = None
    ) -> NDArray[np.float32]:
        """f at every pixel between the groups of both sides; NaN outside Ω. See `image`."""
        blocks = self.blocks
        if into is not None:
            blocks = Blocks(self.reference, self.prediction, mask=self.mask, into=into)
        members = groups.map(Members)
        visit: Callable[[Blocks, Block], NDArray[np.float32]]
        if self.reference.crisp and self.prediction.crisp:
            tables = Both(*(m.table(t) for m, t in zip(members, blocks.label_types, strict=True)))
            visit = partial(_agreement, similarity=similarity, tables=tables)
        else:
            visit = partial(_map, similarity=similarity, groups=members)
        result: NDArray[np.float32] = image(visit, blocks, np.float32, self.workers, into=into)
        return result

    def moments(self, keys: Both[NDArray[Any]]) -> Moments:
        """The moments of both sides, label maps by these labels."""
        return self._total(partial(_moments, keys=keys), _sum)

    def distributions(self, bins: int) -> Both[Distribution]:
        """How the values of every region of two soft sides are distributed."""
        return self._total(partial(_distributions, bins=bins), _sum_of_both)

    def forecast(self, groups: Both[Lists], bins: int, thresholds: Floats) -> Forecast:
        """How far the prediction is borne out by the reference, group by group."""
        visit = partial(_forecast, groups=groups.map(Members), bins=bins, thresholds=thresholds)
        return self._total(visit, _sum)

    def sample(self, ranks: Both[Integers]) -> Both[NDArray[Any]]:
        """Pixels of each side, by ascending ranks in Ω: columns of probabilities, or labels."""
        starts = None
        if not self.blocks.whole:
            counts = self._total(_count, _joint)
            starts = dict(zip(counts, accumulate(counts.values(), initial=0), strict=False))
        drawn = self._total(partial(_sample, ranks=ranks, starts=starts), _joint)

        def in_order(side: Side) -> NDArray[Any]:
            places = np.concatenate([taken[side][0] for taken in drawn.values()])
            values = np.concatenate([taken[side][1] for taken in drawn.values()], axis=-1)
            return values[..., np.argsort(places)]

        return Both(in_order("reference"), in_order("prediction"))

    def _total(self, visit: Callable[[Blocks, Block], R], add: Callable[[Iterable[R]], R]) -> R:
        return total(visit, self.blocks, add, self.workers)

    def _refusal(self, side: Side, fault: Fault) -> InputError:
        segmentation = self.side(side)
        first, worst = self.blocks.place(fault.first), self.blocks.place(fault.worst)
        return InputError(f"{side}{file_of(segmentation)}: ", *fault.message(first, worst))

    def _nothing_left(self) -> list[str | Option]:
        if self.mask is not None:
            inside = np.asarray(self.mask[(slice(None),) * len(self.mask.shape)]) != 0
            if not inside.any():
                return [f"mask{self.mask_file} is empty: it leaves no pixel to compare"]
            return [
                f"all {np.count_nonzero(inside)} pixels inside the mask{self.mask_file} have "
                f"labels that are ignored {self.reference.ignore}, so none is left to compare; "
                f"ignore fewer labels or use another mask"
            ]
        if self.reference.ignore:
            return [f"reference has no pixel but those with ignored labels {self.reference.ignore}"]
        return [f"reference and prediction have no pixels: their shape is {self.reference.shape}"]


def total(
    visit: Callable[[Blocks, Block], R],
    blocks: Blocks,
    add: Callable[[Iterable[R]], R],
    workers: int,
    *,
    here: bool = False,
) -> R:
    """A pass over all blocks, added up: by Dask where it is in charge, else on threads.

    `here` means in this process, whose memory the pass writes to.
    """
    if blocks.followed and not here:
        from probdice.engine import dask

        if dask.in_charge(blocks):
            return dask.total(visit, blocks, add)
    return add(run(partial(visit, blocks), blocks.blocks, workers))


def image(
    visit: Callable[[Blocks, Block], NDArray[Any]],
    blocks: Blocks,
    dtype: DTypeLike,
    workers: int,
    *,
    rows: int | None = None,
    into: Any = None,
) -> Any:
    """An image made of what `visit` gives of every block; with `rows` there are several values.

    It is written `into` an array, block by block, or else is a new one; of Dask arrays it is a
    Dask array, whose blocks are computed when they are asked for.
    """
    if into is None and any(has_type(side.array, "dask", "Array") for side in blocks.sides):
        from probdice.engine import dask

        return dask.image(visit, blocks, np.dtype(dtype), rows)
    if into is not None:
        total(partial(_write, visit=visit, into=into), blocks, _nothing, workers,
              here=not travels(into))  # fmt: skip
        return into
    values = np.empty((*(() if rows is None else (rows,)), *blocks.shape), dtype)
    total(partial(_write, visit=visit, into=values), blocks, _nothing, workers, here=True)
    return blocks.image(values)


def aligned(
    reference: Segmentation, prediction: Segmentation, *, tolerance: float = TOLERANCE
) -> Segmentation:
    """The prediction on the reference's grid, to within `tolerance` pixels at every corner."""
    if reference.geometry is not None and prediction.geometry is not None:
        try:
            return prediction.onto(reference.geometry, tolerance=tolerance)
        except GeometryError as error:
            raise GeometryError(
                f"reference{file_of(reference, prediction)} and "
                f"prediction{file_of(prediction, reference)} do not lie on the same grid: ",
                *error.args,
                f"\n{_side_by_side(reference=reference, prediction=prediction)}\n"
                f"resample one of them onto the other first",
                *_more_tolerance(reference.geometry, prediction.geometry),
            ) from None
    for side in SIDES:
        lacking, known = (reference, prediction)[:: 1 if side == "reference" else -1]
        if lacking.geometry is None and known.geometry is not None:
            raise GeometryError(
                f"{side} has no geometry but the {other(side)} does, so nothing says that they "
                f"lie in the same place; ",
                Option(
                    "ignore_geometry",
                    python="give it geometry=…, or compare by array order with without_geometry()",
                    command="compare by array order with --ignore-geometry",
                ),
            )
    if reference.shape != prediction.shape:
        raise InputError(
            f"reference has shape {reference.shape} but prediction has shape {prediction.shape}: "
            f"both must cover the same pixels",
            *_misread(reference, prediction),
        )
    return prediction


def _more_tolerance(reference: Geometry, prediction: Geometry) -> tuple[str | Option, ...]:
    """What else helps where the grids are equally large and only lie apart."""
    if not isfinite(prediction.steps_onto(reference)[2]):
        return ()
    option = Option("geometry_tolerance", "T", python="Segmentation.onto(…, tolerance=…)")
    return ", or allow more with ", option


def mask_on(
    reference: Segmentation, mask: Segmentation | Array, tolerance: float
) -> tuple[Array, int]:
    """The mask as an array over the reference's grid, and how many of its values are NaN."""
    array: Array
    if isinstance(mask, Segmentation):
        if not mask.crisp:
            raise InputError("mask must be a label map (0 is outside), found probabilities")
        if (mask.geometry is None) != (reference.geometry is None):
            without = "mask" if mask.geometry is None else "reference"
            raise GeometryError(
                f"{without} has no geometry, so nothing says that the mask lies on the reference; "
                f"pass the mask as an array, or compare by array order with ",
                IGNORE_GEOMETRY,
            )
        grid = mask.geometry
        if grid is not None and reference.geometry is not None:
            try:
                mask = mask.onto(reference.geometry, tolerance=tolerance)
            except GeometryError as error:
                raise GeometryError(
                    f"mask{file_of(mask, reference)} and reference{file_of(reference, mask)} do "
                    f"not lie on the same grid: ",
                    *error.args,
                    f"\n{_side_by_side(mask=mask, reference=reference)}\n"
                    f"resample the mask onto the reference first",
                    *_more_tolerance(reference.geometry, grid),
                ) from None
        array = mask.array
    else:
        array = mask
    if array.dtype.kind not in "biuf":
        raise InputError(f"mask must hold booleans or whole numbers, found {array.dtype}")
    if tuple(array.shape) != reference.shape:
        raise InputError(
            f"mask has shape {tuple(array.shape)} but the images have shape {reference.shape}"
        )
    return _whole_mask(array) if array.dtype.kind == "f" else (array, 0)


def _whole_mask(mask: Array) -> tuple[NDArray[np.bool_], int]:
    """A floating mask as booleans: NaN is outside, fractions are refused."""
    values = np.asarray(mask[(slice(None),) * len(mask.shape)])
    known = np.isfinite(values)
    wrong = np.isinf(values) | (known & (values != np.floor(np.where(known, values, 0))))
    if wrong.any():
        place = tuple(int(k) for k in np.unravel_index(int(np.argmax(wrong)), values.shape))
        raise InputError(
            f"mask must hold 0 and whole numbers, found {values[place]:g} at pixel {place}; "
            f"say which pixels are inside, as in mask > 0.5"
        )
    return known & (values != 0), int(np.isnan(values).sum())


def one_hot_axis(side: Segmentation) -> int | None:
    """The first or last axis, if it makes a label map of 0 and 1 a one-hot array; or None."""
    array = side.array
    if not side.crisp or array.dtype.kind not in "biu" or not isinstance(array, np.ndarray):
        return None
    for axis in (0, -1):
        if array.ndim > 1 and array.shape[axis] >= ONE_HOT and array.max(initial=0) == 1:
            sums = np.add.reduce(array, axis=axis, dtype=np.int64)
            if array.min() == 0 and (sums == 1).all():
                return axis
    return None


def _misread(*sides: Segmentation) -> tuple[str | Option, ...]:
    """A hint where an array was taken for labels or for probabilities and seems to be the other."""
    for side, across in (sides, sides[::-1]):
        axis = one_hot_axis(side) if len(side.shape) == len(across.shape) + 1 else None
        if axis is not None:
            return (
                "; integers are labels, and these look like one-hot regions, so ",
                Option(
                    "one_hot",
                    python=f"say Segmentation.from_probabilities(array, axis={axis})",
                    command="store them as floating numbers",
                ),
            )
        if not side.crisp and tuple(side.array.shape) == across.shape:
            return (
                "; a floating array has its regions along the first axis, so ",
                Option(
                    "regions",
                    python="say Segmentation.from_labels(array) for labels, or "
                    "Segmentation.from_probabilities(array, axis=None) for a single foreground",
                    command="store labels as whole numbers",
                ),
            )
        if not side.crisp and tuple(side.array.shape[:-1]) == across.shape:
            return (
                "; regions were taken along the first axis and seem to lie along the last, so ",
                Option(
                    "axis",
                    python="say Segmentation.from_probabilities(array, axis=-1), or store them "
                    "first",
                    command="store the regions along the first axis",
                ),
            )
    return ()


def file_of(image: Segmentation | Array, *others: Segmentation) -> str:
    """The file of an image as in messages, told apart from those of others; "" without one."""
    if not isinstance(image, Segmentation) or not image.source:
        return ""
    return f" ({short_paths(image.source, *(other.source for other in others))[0]})"


def _side_by_side(**images: Segmentation) -> str:
    """The geometries of two images as a table."""
    (first, left), (second, right) = (
        (name, {} if image.geometry is None else image.geometry.describe())
        for name, image in images.items()
    )
    width = max(len(text) for text in (*left.values(), first))
    rows = [f"{'':>10}  {first:<{width}}  {second}"]
    rows += [f"{key:>10}  {left[key]:<{width}}  {right[key]}" for key in left]
    return "\n".join(rows)


# -- what is done with a block ---------------------------------------------------------------------


def _overlap(blocks: Blocks, block: Block, similarity: Similarity) -> Checked:
    p, q = blocks.sides
    labels = blocks.labels_of(block)
    if labels is not None:
        return Checked(passes.labels_overlap(Both(p, q), *labels, similarity))
    ready = blocks.ready(block)
    result, sound = passes.overlap(Both(p, q), ready, similarity)
    return Checked(result, _faults(ready, sound, blocks, block))


def _joined(
    blocks: Blocks,
    block: Block,
    similarity: Similarity,
    place: int,
    own: Lists,
    across: Lists,
    spare: Sequence[int],
) -> Floats:
    ready = blocks.ready(block)
    return passes.joined(ready, similarity, place, own, across, spare, blocks.dtype)


def _scores(blocks: Blocks, block: Block, similarity: Similarity, groups: Both[Members]) -> Scores:
    ready = blocks.ready(block)
    return passes.scores(ready, similarity, groups, np.empty(ready.size, blocks.dtype))


def _map(
    blocks: Blocks, block: Block, similarity: Similarity, groups: Both[Members]
) -> NDArray[np.float32]:
    ready = blocks.ready(block)
    f = np.empty(ready.size, blocks.dtype)
    passes.scores(ready, similarity, groups, f)
    return block.shaped(f.astype(np.float32, copy=False), ready.inside, np.nan)


def _agreement(
    blocks: Blocks, block: Block, similarity: Similarity, tables: Both[Any]
) -> NDArray[np.float32]:
    """The same for two label maps."""
    labels, inside = blocks.labels_of(block), None
    if labels is None:
        ready = blocks.ready(block)
        p, q = ready.sides
        assert isinstance(p, Crisp) and isinstance(q, Crisp)
        labels, inside = (p.values, q.values), ready.inside
    return block.shaped(passes.agreement(*labels, tables, similarity), inside, np.nan)


def _write(
    blocks: Blocks, block: Block, visit: Callable[[Blocks, Block], NDArray[Any]], into: Any
) -> None:
    values = visit(blocks, block)
    box = block.box if values.ndim == len(block.box) else (slice(None), *block.box)
    into[box] = values


def _moments(blocks: Blocks, block: Block, keys: Both[NDArray[Any]]) -> Moments:
    return passes.moments(blocks.ready(block), keys)


def _distributions(blocks: Blocks, block: Block, bins: int) -> Both[Distribution]:
    sides = blocks.ready(block).sides
    return Both(*(passes.distribution(side, bins) for side in sides if isinstance(side, Soft)))


def _forecast(
    blocks: Blocks, block: Block, groups: Both[Members], bins: int, thresholds: Floats
) -> Forecast:
    return passes.forecast(blocks.ready(block), groups, bins, thresholds, blocks.dtype)


def _count(blocks: Blocks, block: Block) -> dict[int, int]:
    """How many pixels of the block are in Ω, by the block's first pixel."""
    return {block.start: blocks.ready(block).size}


def _sample(
    blocks: Blocks, block: Block, ranks: Both[Integers], starts: dict[int, int] | None
) -> dict[int, Both[tuple[Integers, NDArray[Any]]]]:
    """Of each side, which of the ranks the block has, and their pixels; by its first pixel.

    `starts` has the rank of every block's first pixel where Ω is not the whole image.
    """
    if starts is None:
        chosen = ranks.map(lambda numbers: _within(block, numbers, blocks.shape))
        if not any(places.size for places, _ in chosen):
            return {}
    ready = blocks.ready(block)
    if starts is not None:
        first = starts[block.start]
        bounds = ranks.map(lambda those: np.searchsorted(those, [first, first + ready.size]))
        chosen = Both(
            *(
                (np.arange(*bounds[side]), ranks[side][slice(*bounds[side])] - first)
                for side in SIDES
            )
        )
    taken = []
    for name, side in zip(SIDES, ready.sides, strict=True):
        places, pixels = chosen[name]
        if isinstance(side, Crisp):
            taken.append((places, side.labels[side.codes[pixels]]))
        else:
            taken.append((places, side.rows[:, side.start + pixels]))
    return {block.start: Both(*taken)}


def _within(block: Block, numbers: Integers, shape: tuple[int, ...]) -> tuple[Integers, Integers]:
    """Which of these ascending numbers of pixels lie in a block, and their places in it."""
    if not shape:
        return np.arange(numbers.size), numbers
    last = int(np.ravel_multi_index([part.stop - 1 for part in block.box], shape))
    first, stop = np.searchsorted(numbers, [block.start, last + 1])
    index = np.array(np.unravel_index(numbers[first:stop], shape))
    starts = np.array([[part.start] for part in block.box])
    stops = np.array([[part.stop] for part in block.box])
    inside = ((index >= starts) & (index < stops)).all(axis=0)
    places = np.ravel_multi_index(tuple((index - starts)[:, inside]), block.shape)
    return first + np.flatnonzero(inside), places


def _sum(several: Iterable[R]) -> R:
    result: R = reduce(cast(Any, add), several)
    return result


def _sum_of_both(several: Iterable[Both[Distribution]]) -> Both[Distribution]:
    return reduce(
        lambda one, more: Both(one.reference + more.reference, one.prediction + more.prediction),
        several,
    )


def _joint(several: Iterable[dict[int, T]]) -> dict[int, T]:
    return {key: value for some in several for key, value in some.items()}


def _nothing(several: Iterable[None]) -> None:
    deque(several, maxlen=0)


def _faults(
    ready: Ready, sound: Sequence[bool], blocks: Blocks, block: Block
) -> tuple[Fault | None, ...]:
    """What is amiss with each side, by pixels of the image."""
    faults = []
    for side, fault, fine in zip(ready.sides, ready.faults, sound, strict=True):
        if fault is None and not fine:
            assert isinstance(side, Soft)
            fault = examine_values(side.rows[:, side.start : side.start + side.size], "error")
        faults.append(fault and blocks.located(fault, block, ready.inside))
    return tuple(faults)


def _named(overlap: Overlap, sides: Both[Segmentation]) -> Overlap:
    """With the names of labels, which tasks of Dask do without, and the classes of components."""
    for name, side in sides.to_dict().items():
        regions = overlap.side(name)
        if side.origins or (side.names and regions.crisp and not regions.names):
            regions = replace(regions, names=side.names, origins=side.origins)
            overlap = (
                replace(overlap, reference=regions)
                if name == "reference"
                else replace(overlap, prediction=regions)
            )
    return overlap


def _coloured(regions: Regions, segmentation: Segmentation) -> Regions:
    """The regions with the colours that their segmentation gives them."""
    given = segmentation.colours
    return replace(
        regions, colours={key: given[key] for key in regions.keys.tolist() if key in given}
    )


def _without(overlap: Overlap, ignored: Sequence[int]) -> Overlap:
    """An overlap without labels of the reference that no pixel of Ω has."""
    regions = overlap.reference
    kept = np.array([key not in ignored for key in regions.keys.tolist()], np.bool_)
    places = np.cumsum(kept) - 1
    names = {key: name for key, name in regions.names.items() if key not in ignored}
    meeting = overlap.meeting
    return Overlap(
        overlap.similarity,
        overlap.pixels,
        replace(regions, keys=regions.keys[kept], volumes=regions.volumes[kept], names=names),
        overlap.prediction,
        Pairs(places[meeting.rows], meeting.columns, meeting.savings),
    )
