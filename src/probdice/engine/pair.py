"""Two segmentations of one image, and the passes over their pixels."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from probdice.data.lazy_arrays import Complement
from probdice.data.pixel_words import pixel_words
from probdice.data.resampling import Interpolation
from probdice.data.segmentation import Array, Segmentation
from probdice.data.value_checks import Fault, InvalidValues
from probdice.engine.alignment import file_of, mask_notes, mask_on, moved_onto, within
from probdice.engine.blocks import Blocks
from probdice.engine.executors import image_from_blocks, run_pass
from probdice.engine.group_passes import joined_pass, map_visit, numbers_visit, scores_pass
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
from probdice.method.pixel_passes import Distribution, Lists, Moments, ScoreSums
from probdice.method.region_labels import Label, listed
from probdice.method.sides import SIDES, Both, Side
from probdice.method.similarity import Absolute, Similarity
from probdice.options import TOLERANCE

__all__ = ["BACKGROUND_OPTION", "SegmentationPair"]

R = TypeVar("R")
BACKGROUND_OPTION = Option("background", "LABEL", python="background=…")


@dataclass(frozen=True, eq=False)
class SegmentationPair:
    """Two segmentations of one image and the pixels to compare.

    Attributes
    ----------
    reference : Segmentation
        The reference, which defines the grid.
    prediction : Segmentation
        The prediction, on the grid of the reference.
    mask : array or None
        The mask given by the user. Pixels with value 0 are excluded.
    workers : int or None
        Number of threads. None means the number of cores.
    notes : tuple of Note
        Notes on reading and aligning the images.
    mask_file : str
        File name of the mask in parentheses for messages, such as " (mask.nii.gz)", or "".
    view : array or None
        The field of view of the prediction, if pixels outside it are excluded.
    """

    reference: Segmentation
    prediction: Segmentation
    mask: Array | None
    workers: int | None = None
    notes: tuple[Note, ...] = ()
    mask_file: str = ""
    view: Array | None = None

    @classmethod
    def of(
        cls,
        reference: Segmentation,
        prediction: Segmentation,
        *,
        mask: Segmentation | Array | None = None,
        workers: int | None = None,
        tolerance: float = TOLERANCE,
        interpolation: Interpolation | None = None,
        background: Label | None = None,
        ignore_geometry: bool = False,
    ) -> "SegmentationPair":
        """Align both sides and the mask on one grid.

        Pixels are read only if a label map is interpolated linearly or the mask has a
        floating-point type. With an `interpolation`, pixels outside the field of view of the
        prediction are assigned to its region `background`. Without a `background`, they are
        excluded. With `ignore_geometry`, pixels correspond by array order.
        """
        notes: tuple[Note, ...] = ()
        if ignore_geometry:
            if reference.geometry is not None or prediction.geometry is not None:
                pixels = pixel_words(reference).many
                text = f"Geometry was ignored: {pixels} were compared in array order."
                notes = (Note("geometry", (text,)),)
            reference, prediction = reference.without_geometry(), prediction.without_geometry()
            mask = mask.without_geometry() if isinstance(mask, Segmentation) else mask
        if prediction.ignore:
            raise InputError(
                f"prediction must not ignore labels, found ignore={prediction.ignore}: ignored "
                f"labels could exclude difficult pixels. Set ignore for the reference, or use ",
                Option("mask", "FILE", python="mask=…"),
                ".",
            )
        view: Array | None = None
        action = ""
        if reference.geometry is not prediction.geometry or reference.shape != prediction.shape:
            prediction, view, action = moved_onto(
                reference, prediction, tolerance, interpolation, background
            )
        for side, segmentation in (("reference", reference), ("prediction", prediction)):
            for note in segmentation.notes:
                notes = (*notes, Note(note.kind, (f"{side}: ", *note.message)))
        if action:
            text = f"The prediction was {action} of the reference."
            notes = (*notes, Note("resampled", (text,)))
        if mask is None:
            return cls(reference, prediction, None, workers, notes, view=view)
        array, unknown = mask_on(reference, mask, tolerance)
        notes = (*notes, *mask_notes(unknown, reference))
        return cls(reference, prediction, array, workers, notes, file_of(mask), view)

    def side(self, side: Side) -> Segmentation:
        """Return one of the two segmentations."""
        return self.reference if side == "reference" else self.prediction

    @property
    def sides(self) -> Both[Segmentation]:
        """Both segmentations."""
        return Both(self.reference, self.prediction)

    def __getstate__(self) -> dict[str, Any]:
        # Blocks contain buffers of this process's threads, so blocks are recreated on demand.
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    @property
    def compared(self) -> Array | None:
        """Mask of the pixels inside the mask and the field of view, or None if there is neither.

        Pixels with ignored labels are excluded later, when blocks are decoded.
        """
        return self.mask if self.view is None else within(self.mask, [self.view])

    @cached_property
    def blocks(self) -> Blocks:
        """The blocks of both sides."""
        return Blocks(self.reference, self.prediction, mask=self.compared)

    def overlap(self, similarity: Similarity) -> Overlap:
        """Return the overlap of every pair of regions."""
        return self.first_pass(similarity)[0]

    def first_pass(self, similarity: Similarity) -> tuple[Overlap, tuple[Note, ...]]:
        """Return the overlap and the notes on the images. Only this pass checks the values."""
        if 0 in self.reference.shape:
            raise InputError(*self._why_empty())
        result = self._run(overlap_pass(similarity))
        if result.faults != (None, None):
            side, fault = next((s, f) for s, f in zip(SIDES, result.faults, strict=True) if f)
            raise self._fault_error(side, fault)
        if result.overlap.pixels == 0:
            raise InputError(*self._why_empty())
        overlap = _with_details(result.overlap, self.reference, self.prediction)
        input_notes = self.notes
        if self.view is not None and self.outside_counts:
            text = f"{self.outside_counts} and left out. To count them as background, use "
            input_notes = (*input_notes, Note("outside", (text, BACKGROUND_OPTION, ".")))
        ignored_labels = self.reference.ignore
        if not ignored_labels:
            return overlap, input_notes
        keys = set(overlap.reference.keys.tolist())
        notes = (
            Note("ignore", (f"The ignored label {label} does not occur in the reference.",))
            for label in dict.fromkeys(ignored_labels)
            if label not in keys
        )
        return _without_labels(overlap, ignored_labels), (*input_notes, *notes)

    @cached_property
    def outside_counts(self) -> str:
        """Text with the number of pixels outside the field of view of the prediction.

        The text contains the total and the number per reference region. It is empty if there are no
        such pixels.
        """
        if self.view is None:
            return ""
        outside = within(self.mask, [Complement(self.view)])
        one_region = np.broadcast_to(np.zeros((), np.uint8), self.reference.shape)
        excluded_pair = SegmentationPair(
            self.reference, Segmentation.from_labels(one_region), outside, self.workers
        )
        overlap = excluded_pair._run(overlap_pass(Absolute())).overlap
        if not overlap.pixels:
            return ""
        overlap = _with_details(overlap, excluded_pair.reference, excluded_pair.prediction)
        regions = _without_labels(overlap, self.reference.ignore).reference
        order = sorted(regions.occupied.tolist(), key=lambda k: -regions.volumes[k])
        digits = "d" if regions.crisp else ".1f"
        counts = listed([f"{regions.label(k)}: {regions.volumes[k]:{digits}}" for k in order])
        pixels = pixel_words(self.reference).of(overlap.pixels)
        verb = "is" if overlap.pixels == 1 else "are"
        where = "outside the field of view of the prediction"
        return f"{overlap.pixels} {pixels} {verb} {where} ({counts})"

    def check_field_of_view(self) -> None:
        """Raise an error if pixels are excluded because they are outside the field of view.

        Otherwise, cropping a prediction could increase its score.
        """
        if self.outside_counts:
            raise GeometryError(
                f"{self.outside_counts}, so the case is not scored. To count them as background, "
                f"use ",
                BACKGROUND_OPTION,
                ".",
            )

    def joined(
        self,
        similarity: Similarity,
        side: Side,
        members: Lists,
        opposite_members: Lists,
        unmatched: Sequence[int],
    ) -> Floats:
        """Return Σ (1 − f) of each group (rows) with one unmatched region added (columns).

        `members` and `opposite_members` are the regions of the groups on `side` and on the other
        side. Regions are given by channel or label.
        """
        return self._run(joined_pass(similarity, side, members, opposite_members, unmatched))

    def scores(self, similarity: Similarity, groups: Both[Lists]) -> ScoreSums:
        """Compare the groups of both sides at every pixel."""
        return self._run(scores_pass(similarity, groups))

    def map(
        self, similarity: Similarity, groups: Both[Lists], into: Any = None
    ) -> NDArray[np.float32]:
        """Return the similarity f at every pixel, with NaN at excluded pixels.

        See `image_from_blocks` for `into`.
        """
        blocks = self.blocks
        if into is not None:
            blocks = Blocks(self.reference, self.prediction, mask=self.compared, into=into)
        visit = map_visit(similarity, groups, blocks)
        result: NDArray[np.float32] = image_from_blocks(
            visit, blocks, np.float32, self.workers, into=into
        )
        return result

    def group_numbers(self, side: Side, groups: Lists) -> NDArray[np.int32]:
        """Return the group number of every pixel of a label map, or −1 for a pixel in no group."""
        return np.asarray(
            image_from_blocks(numbers_visit(side, groups), self.blocks, np.int32, self.workers)
        )

    def moments(self, keys: Both[NDArray[Any]]) -> Moments:
        """Return the moments of both sides, for the labels or channels in `keys`."""
        return self._run(moments_pass(keys))

    def distributions(self, bins: int) -> Both[Distribution]:
        """Return the histogram of every region of two probabilistic sides."""
        return self._run(distributions_pass(bins))

    def forecast(self, groups: Both[Lists], bins: int, thresholds: Floats) -> Forecast:
        """Return the sums for the calibration of the prediction, per group."""
        return self._run(forecast_pass(groups, bins, thresholds))

    def sample(self, positions: Both[Integers]) -> Both[NDArray[Any]]:
        """Return some of the compared pixels per side, as columns of probabilities or as labels.

        A position is the index of a pixel among all compared pixels. Positions must be in ascending
        order.
        """
        starts = None
        if not self.blocks.includes_all:
            counts = self._run(count_pass())
            starts = dict(zip(counts, accumulate(counts.values(), initial=0), strict=False))
        samples = self._run(sample_pass(positions, starts))

        def in_order(side: Side) -> NDArray[Any]:
            sample_positions = np.concatenate([sample[side][0] for sample in samples.values()])
            values = np.concatenate([sample[side][1] for sample in samples.values()], axis=-1)
            return values[..., np.argsort(sample_positions)]

        return Both(in_order("reference"), in_order("prediction"))

    def from_samples(self, samples: Both[NDArray[Any]]) -> "SegmentationPair":
        """Create images that consist of sampled pixels."""

        def sampled(side: Side) -> Segmentation:
            segmentation, values = self.side(side), samples[side]
            if segmentation.crisp:
                return Segmentation.from_labels(values, names=segmentation.names)
            return replace(
                Segmentation.from_probabilities(values),
                labels=segmentation.labels,
                names=segmentation.names,
            )

        return SegmentationPair(sampled("reference"), sampled("prediction"), None, self.workers)

    def _run(self, task: Pass[R]) -> R:
        return run_pass(task, self.blocks, self.workers)

    def _fault_error(self, side: Side, fault: Fault) -> InvalidValues:
        segmentation = self.side(side)
        first, worst = self.blocks.position_of(fault.first), self.blocks.position_of(fault.worst)
        prefix = f"{side}{file_of(segmentation)}: "
        return InvalidValues.of(prefix, fault, first, worst, pixel_words(segmentation))

    def _why_empty(self) -> list[str | Option]:
        pixels = pixel_words(self.reference).many
        if self.view is not None:
            where = "" if self.mask is None else f" inside the mask{self.mask_file}"
            return [f"no {pixels}{where} are in the field of view of the prediction"]
        if self.mask is not None:
            inside = np.asarray(self.mask[(slice(None),) * len(self.mask.shape)]) != 0
            if not inside.any():
                return [f"mask{self.mask_file} is empty: no {pixels} are left to compare"]
            return [
                f"all {np.count_nonzero(inside)} {pixels} inside the mask{self.mask_file} have "
                f"ignored labels {self.reference.ignore}, so no {pixels} are left to compare. "
                f"Ignore fewer labels or use another mask."
            ]
        if self.reference.ignore:
            return [f"all {pixels} of the reference have ignored labels {self.reference.ignore}"]
        return [f"reference and prediction have no {pixels}: their shape is {self.reference.shape}"]


def _with_details(overlap: Overlap, reference: Segmentation, prediction: Segmentation) -> Overlap:
    """Return the overlap with the names, colours and classes of the regions of both sides."""
    if reference.names or reference.colours or reference.origins:
        overlap = replace(overlap, reference=_region_details(overlap.reference, reference))
    if prediction.names or prediction.colours or prediction.origins:
        overlap = replace(overlap, prediction=_region_details(overlap.prediction, prediction))
    return overlap


def _region_details(regions: Regions, side: Segmentation) -> Regions:
    """Return the regions with the names, colours and classes of their segmentation."""
    keys: list[int] = regions.keys.tolist()
    return replace(
        regions,
        names=side.names if regions.crisp else regions.names,
        colours={key: side.colours[key] for key in keys if key in side.colours},
        origins=side.origins,
    )


def _without_labels(overlap: Overlap, labels: Sequence[int]) -> Overlap:
    """Return an overlap without the ignored labels of the reference."""
    regions = overlap.reference
    present = np.array([key not in labels for key in regions.keys.tolist()], np.bool_)
    new_indices = np.cumsum(present) - 1
    names = {key: name for key, name in regions.names.items() if key not in labels}
    overlapping = overlap.pairs
    return Overlap(
        overlap.similarity,
        overlap.pixels,
        replace(regions, keys=regions.keys[present], volumes=regions.volumes[present], names=names),
        overlap.prediction,
        Pairs(new_indices[overlapping.rows], overlapping.columns, overlapping.savings),
    )
