"""3D Slicer's segments, which NRRD and MetaImage headers list by label, layer and name."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.errors import FormatError
from probdice.files.corrupt import check_memory, whole_number
from probdice.files.description import DESCRIPTION, described
from probdice.files.model import Image, as_colour

__all__ = ["SEGMENT", "description_fields", "image_of_segments"]

# The fields of a header that are read: those of segments, and the parts of a description.
SEGMENT = re.compile(
    rf"Segment(\d{{1,9}})_(LabelValue|Layer|Name|ID|Color)|{DESCRIPTION}_(\d{{1,6}})"
)
PART = 4000  # characters of a description in one field, of which MetaImage holds few


@dataclass(frozen=True)
class _Segment:
    name: str
    label: int
    layer: int
    colour: str | None


def image_of_segments(
    array: NDArray[Any],
    regions: int | None,
    affine: NDArray[np.float64] | None,
    metadata: Mapping[str, str],
    *,
    max_bytes: int,
) -> Image:
    """The image whose labels have the names of the segments, as far as a header lists some.

    Segments of several layers are one label map where none overlaps, else one mask each.
    """
    segments = _listed(metadata)
    if segments and regions is not None:
        return _layers(array, segments, affine, max_bytes)
    names = {segment.label: segment.name for segment in segments}
    colours = {segment.label: segment.colour for segment in segments if segment.colour}
    image = Image(array, regions=regions, affine=affine, label_names=names, colours=colours)
    parts = {
        int(match[3]): metadata[key]
        for key in metadata
        if (match := SEGMENT.fullmatch(key)) and match[3]
    }
    description = "".join(parts[number] for number in sorted(parts))
    return described(image, description) if description else image


def description_fields(description: str) -> dict[str, str]:
    """The fields of a header that hold a description; spaces at their ends would be lost."""
    text = description.replace(" ", "\\u0020")
    starts = range(0, len(text), PART)
    return {f"{DESCRIPTION}_{k}": text[start : start + PART] for k, start in enumerate(starts)}


def _listed(metadata: Mapping[str, str]) -> list[_Segment]:
    """The segments in the order of the header."""
    segments: dict[int, _Segment] = {}
    for key in metadata:
        if (match := SEGMENT.fullmatch(key)) and match[2] == "LabelValue":
            prefix = f"Segment{match[1]}"
            label = whole_number(metadata[key], key)
            name = metadata.get(f"{prefix}_Name", metadata.get(f"{prefix}_ID", str(label)))
            layer = whole_number(metadata.get(f"{prefix}_Layer", 0), f"{prefix}_Layer")
            colour = as_colour(metadata.get(f"{prefix}_Color", "").split(), 1.0)
            segments[int(match[1])] = _Segment(name, label, layer, colour)
    return [segments[number] for number in sorted(segments)]


def _layers(
    array: NDArray[Any],
    segments: list[_Segment],
    affine: NDArray[np.float64] | None,
    max_bytes: int,
) -> Image:
    for segment in segments:
        if not 0 <= segment.layer < array.shape[-1]:
            raise FormatError(
                f"has {array.shape[-1]} layers, but {segment.name!r} is said to be in layer "
                f"{segment.layer}"
            )
    labels = [segment.label for segment in segments]
    # Each layer may count from 1.
    if len(set(labels)) < len(labels) or max(map(abs, labels)) >= 2**31:
        labels = list(range(1, len(segments) + 1))
    combined = np.zeros(array.shape[:-1], np.int32)
    claimed = np.zeros(array.shape[:-1], np.bool_)
    for segment, label in zip(segments, labels, strict=True):
        mask = array[..., segment.layer] == segment.label
        if (claimed & mask).any():
            break
        claimed |= mask
        combined[mask] = label
    else:
        named = {label: s.name for label, s in zip(labels, segments, strict=True)}
        colours = {label: s.colour for label, s in zip(labels, segments, strict=True) if s.colour}
        return Image(combined, affine=affine, label_names=named, colours=colours)
    check_memory(len(segments) * claimed.size, (len(segments), *claimed.shape), max_bytes)
    masks = np.empty((len(segments), *claimed.shape), np.uint8)
    for number, segment in enumerate(segments):
        masks[number] = array[..., segment.layer] == segment.label
    names = [segment.name for segment in segments]
    colours = {k: segment.colour for k, segment in enumerate(segments) if segment.colour}
    return Image(
        masks,
        regions=0,
        affine=affine,
        region_labels=labels,
        region_names=names,
        colours=colours,
    )
