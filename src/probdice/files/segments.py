"""Segments of 3D Slicer, which are described in the headers of NRRD and MetaImage files."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.errors import FormatError
from probdice.files.corrupt import check_memory, whole_number
from probdice.files.description import DESCRIPTION, with_description
from probdice.files.model import Image, as_colour

__all__ = ["SEGMENT", "description_fields", "image_of_segments"]

# Header fields of segments, and of the parts of a description.
SEGMENT = re.compile(
    rf"Segment(\d{{1,9}})_(LabelValue|Layer|Name|ID|Color)|{DESCRIPTION}_(\d{{1,6}})"
)
PART = 4000  # number of characters per field, because MetaImage limits the length of fields


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
    """Create an image whose labels have the names of the segments in the metadata.

    Segments in several layers become one label map if no segments overlap. Otherwise, each segment
    becomes a mask.
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
    return with_description(image, "".join(parts[number] for number in sorted(parts)))


def description_fields(description: str) -> dict[str, str]:
    """Split a description into header fields. Spaces are escaped, because readers strip them."""
    text = description.replace(" ", "\\u0020")
    starts = range(0, len(text), PART)
    return {f"{DESCRIPTION}_{k}": text[start : start + PART] for k, start in enumerate(starts)}


def _listed(metadata: Mapping[str, str]) -> list[_Segment]:
    """Return the segments in the order of their numbers.

    Versions of 3D Slicer before 4.11 store neither label values nor layers, but one mask per layer.
    """
    segments: dict[int, _Segment] = {}
    older = not any(key.endswith("_LabelValue") for key in metadata)
    for key in metadata:
        match = SEGMENT.fullmatch(key)
        if match and match[2] == ("ID" if older else "LabelValue"):
            prefix = f"Segment{match[1]}"
            label = 1 if older else whole_number(metadata[key], key)
            name = metadata.get(f"{prefix}_Name", metadata.get(f"{prefix}_ID", str(label)))
            layer = int(match[1]) if older else 0
            layer = whole_number(metadata.get(f"{prefix}_Layer", layer), f"{prefix}_Layer")
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
                f"has {array.shape[-1]} layers (numbered from 0), but its header assigns segment "
                f"{segment.name!r} to layer {segment.layer}"
            )
    labels = [segment.label for segment in segments]
    # The labels of each layer may start at 1.
    if len(set(labels)) < len(labels) or max(map(abs, labels)) >= 2**31:
        labels = list(range(1, len(segments) + 1))
    combined = np.zeros(array.shape[:-1], np.int32)
    covered = np.zeros(array.shape[:-1], np.bool_)
    names = [segment.name for segment in segments]
    colours = {k: segment.colour for k, segment in enumerate(segments) if segment.colour}
    for segment, label in zip(segments, labels, strict=True):
        mask = array[..., segment.layer] == segment.label
        if (covered & mask).any():
            break
        covered |= mask
        combined[mask] = label
    else:
        return Image(
            combined,
            affine=affine,
            label_names=dict(zip(labels, names, strict=True)),
            colours={labels[k]: colour for k, colour in colours.items()},
        )
    check_memory(len(segments) * combined.size, (len(segments), *combined.shape), max_bytes)
    masks = np.empty((len(segments), *combined.shape), np.uint8)
    for number, segment in enumerate(segments):
        masks[number] = array[..., segment.layer] == segment.label
    return Image(
        masks,
        regions=0,
        affine=affine,
        region_labels=labels,
        region_names=names,
        colours=colours,
    )
