"""A consensus as a segmentation whose probabilities are computed when they are read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.data.segmentation import Segmentation
from probdice.engine.several import Decision, Reader, SegmentationSet, boxes
from probdice.errors import InputError
from probdice.method.region_labels import free_numbers, integer_type
from probdice.raters.fusing import Model
from probdice.raters.panel import Common, Panel

__all__ = ["Fused", "fused_segmentation", "label_map_of", "mean_of"]

TIE = 1e-9  # smaller differences of probabilities count as rounding errors


@dataclass(frozen=True, eq=False)
class Fused:
    """Probabilities of the common regions in any box of the image, with the region axis first.

    Only the raters are stored. The probabilities of a box are computed when the box is read, so
    that a consensus can be compared in blocks like any other segmentation.
    """

    segmentations: SegmentationSet
    common: Common
    model: Model
    channels: tuple[int, ...]

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields without cached values, for pickling."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of regions, followed by the shape of the image."""
        return len(self.common.labels), *self.segmentations.first.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32, the type of compared probabilities."""
        return np.dtype(np.float32)

    @cached_property
    def _readers(self) -> list[Reader]:
        return self.segmentations.readers(self.common.numbers, len(self.common.labels))

    def __getitem__(self, index: Any) -> NDArray[np.float32]:
        index = index if isinstance(index, tuple) else (index,)
        regions, *box = index + (slice(None),) * (len(self.shape) - len(index))
        channels = np.arange(self.shape[0])[regions]
        result = np.empty(
            (len(channels), *(len(indices) for indices in self._index_ranges(box))), self.dtype
        )
        for part, values in self.pieces(box):
            result[(slice(None), *part)] = values[channels]
        return result

    def pieces(
        self, box: Sequence[slice]
    ) -> Iterator[tuple[tuple[slice, ...], NDArray[np.float64]]]:
        """Yield the position and the probabilities of each part of a box."""
        channels = np.array(self.channels)
        for part, image_box in self._parts(box):
            values = self.model.probabilities([reader.read(image_box) for reader in self._readers])
            size = tuple(piece.stop - piece.start for piece in image_box)
            yield part, values[channels].reshape(-1, *size)

    def rater(
        self, name: str, box: Sequence[slice]
    ) -> Iterator[tuple[tuple[slice, ...], Decision]]:
        """Yield the position and one rater's channels or probabilities for each part of a box."""
        reader = self._readers[self.common.names.index(name)]
        channel_of = np.append(
            np.argsort(self.channels), -1
        )  # index −1 (no region) selects the last entry
        for part, image_box in self._parts(box):
            decision = reader.read(image_box)
            size = tuple(piece.stop - piece.start for piece in image_box)
            values = (
                channel_of[decision] if decision.ndim == 1 else decision[np.array(self.channels)]
            )
            yield part, values.reshape(*values.shape[:-1], *size)

    def _index_ranges(self, box: Sequence[slice]) -> list[range]:
        return [range(*part.indices(n)) for part, n in zip(box, self.shape[1:], strict=True)]

    def _parts(self, box: Sequence[slice]) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...]]]:
        """Yield the parts of a box, as slices in the box and slices in the image."""
        box_indices = self._index_ranges(box)
        size = tuple(len(indices) for indices in box_indices)
        for part in boxes(size, self.shape[0]):
            ranges = [range(n)[piece] for n, piece in zip(size, part, strict=True)]
            image_box = tuple(
                slice(indices.start + piece.start, indices.start + piece.stop)
                for indices, piece in zip(box_indices, ranges, strict=True)
            )
            yield part, image_box


def fused_segmentation(
    panel: Panel, common: Common, model: Model, channels: tuple[int, ...]
) -> Segmentation:
    """Return the segmentation of a model, with the regions in the order of `channels`."""
    segmentations = panel.segmentations.select(common.names)
    array = Fused(segmentations, common, model, channels)
    return Segmentation(
        array,
        crisp=False,
        labels=tuple(common.region_labels[k] for k in channels),
        names={
            channel: common.region_names[k]
            for channel, k in enumerate(channels)
            if k in common.region_names
        },
        colours=_colours(panel, common, channels),
        geometry=segmentations.first.geometry,
    )


def _colours(panel: Panel, common: Common, channels: tuple[int, ...]) -> dict[int, str]:
    """Return the colour of each channel, from the first rater who has a colour for the region."""
    colours: dict[int, str] = {}
    for name in common.names:
        rater_colours = panel.regions(name).colours
        for key, number in common.of(name).items():
            if key in rater_colours:
                colours.setdefault(channels.index(number), rater_colours[key])
    return colours


def label_map_of(array: Fused, segmentation: Segmentation) -> Segmentation:
    """Return a label map of the most probable regions. In a tie, the first region is used.

    Regions without a label get the next free labels. Ignored pixels get an ignored label.
    """
    free = free_numbers({label for label in segmentation.labels if label is not None})
    labels = [next(free) if label is None else label for label in segmentation.labels]
    ignored_labels = [label for label in array.segmentations.ignored_labels if label not in labels]
    ignore = (
        (ignored_labels or [next(free)])[:1] if array.segmentations.not_ignored is not None else []
    )
    all_labels = [*labels, *ignore]
    limits = min(all_labels), max(all_labels)
    dtype = integer_type(np.result_type(*map(np.min_scalar_type, limits)), limits)
    if dtype is None:
        raise InputError(
            f"a label map cannot contain both the labels {limits[0]} and {limits[1]}, because no "
            f"integer type represents both. Use the probabilities of the consensus."
        )
    label_of_channel = np.array(labels, dtype)
    result = np.empty(segmentation.shape, label_of_channel.dtype)
    for part, values in array.pieces((slice(None),) * result.ndim):
        result[part] = label_of_channel[np.argmax(values >= values.max(axis=0) - TIE, axis=0)]
        if array.segmentations.not_ignored is not None:
            result[part][~array.segmentations.not_ignored[part]] = ignore[0]
    return Segmentation(
        result,
        crisp=True,
        names={labels[channel]: name for channel, name in segmentation.names.items()},
        ignore=tuple(ignore),
        geometry=segmentation.geometry,
        colours={labels[channel]: colour for channel, colour in segmentation.colours.items()},
    )


def mean_of(panel: Panel, common: Common) -> Segmentation:
    """Return the mean of some raters, with their common regions as channels, in this order."""
    model = Model(np.ones(len(common.names)), len(common.labels))
    return fused_segmentation(panel, common, model, tuple(range(len(common.labels))))
