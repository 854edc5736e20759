"""Two segmentations of one image over Ω, and the passes that can be made over their pixels."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import accumulate
from math import isfinite
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from probdice.data.geometry import Geometry
from probdice.data.machine import cores
from probdice.data.segmentation import Array, Segmentation
from probdice.data.value_checks import Fault
from probdice.engine.blocks import Blocks
from probdice.engine.executors import executor_for, image
from probdice.engine.group_passes import joined_pass, map_visit, scores_pass
from probdice.engine.moment_passes import (
    Forecast,
    distributions_pass,
    forecast_pass,
    moments_pass,
)
from probdice.engine.overlap_pass import overlap_pass
from probdice.engine.passes import Pass
from probdice.engine.sample_passes import count_pass, sample_pass
from probdice.errors import GeometryError, InputError, Note, Option
from probdice.method.overlap import Floats, Integers, Overlap, Pairs, Regions
from probdice.method.pixel_passes import Distribution, Lists, Moments, Scores
from probdice.method.sides import SIDES, Both, Side, other
from probdice.method.similarity import Similarity
from probdice.options import TOLERANCE
from probdice.text.formatting import short_paths

__all__ = ["Images", "aligned", "file_of", "mask_on", "one_hot_axis"]

ONE_HOT = 3  # regions from which on an array of 0 and 1 is taken to be one-hot, not two masks
R = TypeVar("R")
IGNORE_GEOMETRY = Option("ignore_geometry", python="without_geometry()")


@dataclass(frozen=True, eq=False)
class Images:
    """Two segmentations of one image, the pixels to compare, and how many threads may read them.

    Attributes
    ----------
    reference : Segmentation
        The reference; its grid is the grid of all.
    prediction : Segmentation
        The prediction, on the grid of the reference.
    mask : array or None
        What is not 0 is compared.
    workers : int
    notes : tuple of Note
        What is worth knowing about how they were read.
    mask_file : str
        " (file)" where the mask comes from one, for messages.
    """

    reference: Segmentation
    prediction: Segmentation
    mask: Array | None
    workers: int
    notes: tuple[Note, ...] = ()
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
        notes = tuple(
            Note(note.kind, (f"{side}: ", *note.message))
            for side, segmentation in zip(SIDES, (reference, prediction), strict=True)
            for note in segmentation.notes
        )
        if mask is None:
            return cls(reference, prediction, None, workers or cores(), notes)
        array, unknown = mask_on(reference, mask, tolerance)
        if unknown:
            pixels = "pixel is" if unknown == 1 else "pixels are"
            text = f"{unknown} {pixels} NaN in the mask and counted as outside"
            notes = (*notes, Note("mask", (text,)))
        return cls(reference, prediction, array, workers or cores(), notes, file_of(mask))

    def side(self, side: Side) -> Segmentation:
        """One of the two."""
        return self.reference if side == "reference" else self.prediction

    @property
    def sides(self) -> Both[Segmentation]:
        """The two."""
        return Both(self.reference, self.prediction)

    def __getstate__(self) -> dict[str, Any]:
        # Blocks hold scratch of this process's threads, and are made anew where they are missed.
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    @cached_property
    def blocks(self) -> Blocks:
        """Cuts and prepares the blocks."""
        return Blocks(self.reference, self.prediction, mask=self.mask)

    def overlap(self, similarity: Similarity) -> Overlap:
        """The overlap of every pair of regions."""
        return self.first_pass(similarity)[0]

    def first_pass(self, similarity: Similarity) -> tuple[Overlap, tuple[Note, ...]]:
        """The overlap, and the notes on the images. Values are checked here, and only here."""
        checked = self._run(overlap_pass(similarity)) if self.blocks.blocks else None
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
            return overlap, self.notes
        keys = set(overlap.reference.keys.tolist())
        notes = (
            Note("ignore", (f"label {label} to be ignored does not occur in the reference",))
            for label in dict.fromkeys(ignored)
            if label not in keys
        )
        return _without(overlap, ignored), (*self.notes, *notes)

    def joined(
        self,
        similarity: Similarity,
        side: Side,
        own: Lists,
        across: Lists,
        unmatched: Sequence[int],
    ) -> Floats:
        """Σ 1 − f of each group with each unmatched region of `side` joined to it.

        `own` and `across` are the regions of the groups, and `unmatched` of `side`, by channel or
        label.
        """
        return self._run(joined_pass(similarity, side, own, across, unmatched))

    def scores(self, similarity: Similarity, groups: Both[Lists]) -> Scores:
        """Compare the groups of both sides at every pixel."""
        return self._run(scores_pass(similarity, groups))

    def map(
        self, similarity: Similarity, groups: Both[Lists], into: Any = None
    ) -> NDArray[np.float32]:
        """f at every pixel between the groups of both sides; NaN outside Ω. See `image`."""
        blocks = self.blocks
        if into is not None:
            blocks = Blocks(self.reference, self.prediction, mask=self.mask, into=into)
        visit = map_visit(similarity, groups, blocks)
        result: NDArray[np.float32] = image(visit, blocks, np.float32, self.workers, into=into)
        return result

    def moments(self, keys: Both[NDArray[Any]]) -> Moments:
        """The moments of both sides, label maps by these labels."""
        return self._run(moments_pass(keys))

    def distributions(self, bins: int) -> Both[Distribution]:
        """How the values of every region of two soft sides are distributed."""
        return self._run(distributions_pass(bins))

    def forecast(self, groups: Both[Lists], bins: int, thresholds: Floats) -> Forecast:
        """How far the reference confirms the prediction, group by group."""
        return self._run(forecast_pass(groups, bins, thresholds))

    def sample(self, ranks: Both[Integers]) -> Both[NDArray[Any]]:
        """Pixels of each side, by ascending ranks in Ω: columns of probabilities, or labels."""
        starts = None
        if not self.blocks.whole:
            counts = self._run(count_pass())
            starts = dict(zip(counts, accumulate(counts.values(), initial=0), strict=False))
        drawn = self._run(sample_pass(ranks, starts))

        def in_order(side: Side) -> NDArray[Any]:
            places = np.concatenate([taken[side][0] for taken in drawn.values()])
            values = np.concatenate([taken[side][1] for taken in drawn.values()], axis=-1)
            return values[..., np.argsort(places)]

        return Both(in_order("reference"), in_order("prediction"))

    def drawn(self, samples: Both[NDArray[Any]]) -> "Images":
        """Images made of sampled pixels."""

        def drawn(side: Side) -> Segmentation:
            segmentation, values = self.side(side), samples[side]
            if segmentation.crisp:
                return Segmentation.from_labels(values, names=segmentation.names)
            return replace(
                Segmentation.from_probabilities(values),
                labels=segmentation.labels,
                names=segmentation.names,
            )

        return Images(drawn("reference"), drawn("prediction"), None, self.workers)

    def _run(self, task: Pass[R]) -> R:
        return executor_for(self.blocks, self.workers).run(task, self.blocks)

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
