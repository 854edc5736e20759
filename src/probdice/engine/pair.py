"""Two segmentations of one image, and the passes over their pixels."""

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

ONE_HOT = 3  # fewest regions for which an array of 0 and 1 is taken as one-hot
R = TypeVar("R")
IGNORE_GEOMETRY = Option("ignore_geometry", python="without_geometry()")


@dataclass(frozen=True, eq=False)
class Images:
    """Two segmentations of one image and the pixels to compare.

    Attributes
    ----------
    reference : Segmentation
        The reference, which defines the grid.
    prediction : Segmentation
        The prediction, on the grid of the reference.
    mask : array or None
        Pixels with values other than 0 are compared.
    workers : int
        Number of threads.
    notes : tuple of Note
        Messages about how the images were read.
    mask_file : str
        " (file)" for messages if the mask comes from a file.
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
        """Both sides and the mask on one grid. No pixels are read."""
        if prediction.ignore:
            raise InputError(
                f"prediction must not ignore labels, found ignore={prediction.ignore}. Otherwise "
                f"it could leave out difficult pixels. Set ignore for the reference, or use ",
                Option("mask", "FILE", python="mask=…"),
                ".",
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
            pixels = "pixel of the mask is" if unknown == 1 else "pixels of the mask are"
            text = f"{unknown} {pixels} NaN and treated as outside."
            notes = (*notes, Note("mask", (text,)))
        return cls(reference, prediction, array, workers or cores(), notes, file_of(mask))

    def side(self, side: Side) -> Segmentation:
        """One of the two segmentations."""
        return self.reference if side == "reference" else self.prediction

    @property
    def sides(self) -> Both[Segmentation]:
        """Both segmentations."""
        return Both(self.reference, self.prediction)

    def __getstate__(self) -> dict[str, Any]:
        # Blocks hold buffers of the threads of this process. They are recreated on demand.
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    @cached_property
    def blocks(self) -> Blocks:
        """The blocks of both sides."""
        return Blocks(self.reference, self.prediction, mask=self.mask)

    def overlap(self, similarity: Similarity) -> Overlap:
        """The overlap of every pair of regions."""
        return self.first_pass(similarity)[0]

    def first_pass(self, similarity: Similarity) -> tuple[Overlap, tuple[Note, ...]]:
        """The overlap, and the notes on the images. Only this pass checks the values."""
        checked = self._run(overlap_pass(similarity)) if self.blocks.blocks else None
        for side, fault in zip(SIDES, checked.faults if checked else (), strict=False):
            if fault is not None:
                raise self._fault_error(side, fault)
        if checked is None or checked.overlap.pixels == 0:
            raise InputError(*self._why_empty())
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
            Note("ignore", (f"The ignored label {label} does not occur in the reference",))
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
        """Σ (1 − f) of each group with each unmatched region of `side` added.

        `own` and `across` are the regions of the groups on `side` and on the other side. All
        regions are given by channel or label.
        """
        return self._run(joined_pass(similarity, side, own, across, unmatched))

    def scores(self, similarity: Similarity, groups: Both[Lists]) -> Scores:
        """Compare the groups of both sides at every pixel."""
        return self._run(scores_pass(similarity, groups))

    def map(
        self, similarity: Similarity, groups: Both[Lists], into: Any = None
    ) -> NDArray[np.float32]:
        """The similarity f at every pixel; NaN outside the mask. See `image`."""
        blocks = self.blocks
        if into is not None:
            blocks = Blocks(self.reference, self.prediction, mask=self.mask, into=into)
        visit = map_visit(similarity, groups, blocks)
        result: NDArray[np.float32] = image(visit, blocks, np.float32, self.workers, into=into)
        return result

    def moments(self, keys: Both[NDArray[Any]]) -> Moments:
        """The moments of both sides, in the order of these labels or channels."""
        return self._run(moments_pass(keys))

    def distributions(self, bins: int) -> Both[Distribution]:
        """The histogram of every region of two soft sides."""
        return self._run(distributions_pass(bins))

    def forecast(self, groups: Both[Lists], bins: int, thresholds: Floats) -> Forecast:
        """The sums for the calibration of the prediction, per group."""
        return self._run(forecast_pass(groups, bins, thresholds))

    def sample(self, ranks: Both[Integers]) -> Both[NDArray[Any]]:
        """The compared pixels with these ascending ranks: columns of probabilities, or labels."""
        starts = None
        if not self.blocks.whole:
            counts = self._run(count_pass())
            starts = dict(zip(counts, accumulate(counts.values(), initial=0), strict=False))
        samples = self._run(sample_pass(ranks, starts))

        def in_order(side: Side) -> NDArray[Any]:
            places = np.concatenate([sample[side][0] for sample in samples.values()])
            values = np.concatenate([sample[side][1] for sample in samples.values()], axis=-1)
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

    def _fault_error(self, side: Side, fault: Fault) -> InputError:
        segmentation = self.side(side)
        first, worst = self.blocks.place(fault.first), self.blocks.place(fault.worst)
        return InputError(f"{side}{file_of(segmentation)}: ", *fault.message(first, worst))

    def _why_empty(self) -> list[str | Option]:
        if self.mask is not None:
            inside = np.asarray(self.mask[(slice(None),) * len(self.mask.shape)]) != 0
            if not inside.any():
                return [f"mask{self.mask_file} is empty: no pixels are left to compare"]
            return [
                f"all {np.count_nonzero(inside)} pixels inside the mask{self.mask_file} have "
                f"ignored labels {self.reference.ignore}, so no pixels are left to compare. "
                f"Ignore fewer labels or use another mask."
            ]
        if self.reference.ignore:
            return [f"all pixels of the reference have ignored labels {self.reference.ignore}"]
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
                f"Resample one of them onto the other first",
                *_tolerance_hint(reference.geometry, prediction.geometry),
                ".",
            ) from None
    for side in SIDES:
        first, second = (reference, prediction)[:: 1 if side == "reference" else -1]
        if first.geometry is None and second.geometry is not None:
            raise GeometryError(
                f"{side} has no geometry but the {other(side)} does, so their alignment is "
                f"unknown. ",
                Option(
                    "ignore_geometry",
                    python="Set geometry=…, or compare in array order with without_geometry().",
                    command="To compare in array order, use --ignore-geometry.",
                ),
            )
    if reference.shape != prediction.shape:
        raise InputError(
            f"reference has shape {reference.shape} but prediction has shape {prediction.shape}: "
            f"both must cover the same pixels",
            *_misread(reference, prediction),
        )
    return prediction


def _tolerance_hint(reference: Geometry, prediction: Geometry) -> tuple[str | Option, ...]:
    """A hint on the tolerance, if the grids have the same shape."""
    if not isfinite(prediction.steps_onto(reference)[2]):
        return ()
    option = Option("geometry_tolerance", "T", python="Segmentation.onto(…, tolerance=…)")
    return ", or raise the tolerance with ", option


def mask_on(
    reference: Segmentation, mask: Segmentation | Array, tolerance: float
) -> tuple[Array, int]:
    """The mask as an array on the reference's grid, and the number of its NaN values."""
    array: Array
    if isinstance(mask, Segmentation):
        if not mask.crisp:
            raise InputError("mask must be a label map (0 is outside), found probabilities")
        if (mask.geometry is None) != (reference.geometry is None):
            without = "mask" if mask.geometry is None else "reference"
            raise GeometryError(
                f"{without} has no geometry, so the alignment of mask and reference is unknown. "
                f"Pass the mask as an array, or compare in array order with ",
                IGNORE_GEOMETRY,
                ".",
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
                    f"Resample the mask onto the reference first",
                    *_tolerance_hint(reference.geometry, grid),
                    ".",
                ) from None
        array = mask.array
    else:
        array = mask
    if array.dtype.kind not in "biuf":
        raise InputError(f"mask must hold booleans or integers, found {array.dtype}")
    if tuple(array.shape) != reference.shape:
        raise InputError(
            f"mask has shape {tuple(array.shape)} but the images have shape {reference.shape}"
        )
    return _whole_mask(array) if array.dtype.kind == "f" else (array, 0)


def _whole_mask(mask: Array) -> tuple[NDArray[np.bool_], int]:
    """A floating-point mask as booleans. NaN is outside; fractions are rejected."""
    values = np.asarray(mask[(slice(None),) * len(mask.shape)])
    known = np.isfinite(values)
    wrong = np.isinf(values) | (known & (values != np.floor(np.where(known, values, 0))))
    if wrong.any():
        place = tuple(int(k) for k in np.unravel_index(int(np.argmax(wrong)), values.shape))
        raise InputError(
            f"mask must hold integers, found {values[place]:g} at pixel {place}. "
            f"Use a threshold, as in mask > 0.5."
        )
    return known & (values != 0), int(np.isnan(values).sum())


def one_hot_axis(side: Segmentation) -> int | None:
    """The first or last axis if a label map of 0 and 1 is one-hot along it, else None."""
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
    """A hint if an array was probably misread as labels or as probabilities."""
    for side, across in (sides, sides[::-1]):
        axis = one_hot_axis(side) if len(side.shape) == len(across.shape) + 1 else None
        if axis is not None:
            return (
                ". The integers were read as labels but look one-hot encoded. ",
                Option(
                    "one_hot",
                    python=f"Use Segmentation.from_probabilities(array, axis={axis}).",
                    command="Store them as floating-point numbers.",
                ),
            )
        if not side.crisp and tuple(side.array.shape) == across.shape:
            return (
                ". The first axis of a floating-point array is the axis of the regions. ",
                Option(
                    "regions",
                    python="Use Segmentation.from_labels(array) for labels, or "
                    "Segmentation.from_probabilities(array, axis=None) for a single foreground.",
                    command="Store labels as integers.",
                ),
            )
        if not side.crisp and tuple(side.array.shape[:-1]) == across.shape:
            return (
                ". The first axis was read as the axis of the regions, but it seems to be the "
                "last. ",
                Option(
                    "axis",
                    python="Use Segmentation.from_probabilities(array, axis=-1).",
                    command="Store the regions along the first axis.",
                ),
            )
    return ()


def file_of(image: Segmentation | Array, *others: Segmentation) -> str:
    """The file of an image in parentheses, for messages; an empty string without a file."""
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
    """Add the names of labels, which Dask tasks do not carry, and the classes of components."""
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
    """The regions with the colours of their segmentation."""
    given = segmentation.colours
    return replace(
        regions, colours={key: given[key] for key in regions.keys.tolist() if key in given}
    )


def _without(overlap: Overlap, ignored: Sequence[int]) -> Overlap:
    """An overlap without the ignored labels of the reference."""
    regions = overlap.reference
    used = np.array([key not in ignored for key in regions.keys.tolist()], np.bool_)
    places = np.cumsum(used) - 1
    names = {key: name for key, name in regions.names.items() if key not in ignored}
    meeting = overlap.meeting
    return Overlap(
        overlap.similarity,
        overlap.pixels,
        replace(regions, keys=regions.keys[used], volumes=regions.volumes[used], names=names),
        overlap.prediction,
        Pairs(places[meeting.rows], meeting.columns, meeting.savings),
    )
