"""Interpret the values of a file as a label map or as probabilities of regions.

| values, one per pixel | meaning |
|---|---|
| whole numbers, of integer or floating type | labels |
| fractional numbers, or any numbers with `scale` | the probability of one foreground region |

| values, one per pixel and region | meaning |
|---|---|
| only 0 and 1, unless the file declares probabilities | masks, one per region |
| other numbers that are floating-point, or scaled by the file or by `scale` | probabilities |
| other integers | an error, because they may be a time series or percentages |

The comparison, not this module, checks that probabilities are in [0, 1] and sum to 1.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from probdice.data.geometry import Geometry
from probdice.data.lazy_arrays import Dropped, Scaled, Stacked, blocks
from probdice.data.segmentation import Array, Segmentation
from probdice.data.value_checks import MASK, SUMS_BACKGROUND, SUMS_NORMALISE, Sums, zeros_and_ones
from probdice.errors import FormatError, GeometryError, InputError, Note, Option
from probdice.files.masks import label_map_by_priority, priority_option, shared_pixels
from probdice.files.model import Image
from probdice.method.region_labels import Label, as_channels, shown_labels
from probdice.options import TOLERANCE
from probdice.text.formatting import short_paths

__all__ = [
    "beyond_one",
    "fraction_in",
    "ignore_option",
    "scaled_values",
    "segmentation_of",
    "segmentation_of_many",
    "without_single_region",
]

SCALES = (Option("scale", 100), " or ", Option("scale", 255))


def segmentation_of(
    image: Image,
    *,
    scale: float | None,
    sums: Sums,
    ignore: Iterable[int],
    priority: Sequence[str] = (),
) -> Segmentation:
    """Convert one image to a segmentation."""
    if image.kind != "regions":
        image = without_single_region(image)
    if image.regions is not None and image.array.shape[image.regions] == 0:
        raise FormatError(f"contains no regions: its shape is {tuple(image.array.shape)}")
    ignore = tuple(ignore)
    values = scaled_values(image, scale)
    geometry = _geometry(image)
    if image.regions is None and scale is None and _are_labels(image, values):
        label_map = Segmentation.from_labels(
            values, ignore=ignore, names=image.label_names, geometry=geometry
        )
        return replace(label_map, colours=image.colours)
    if ignore:
        raise InputError(
            ignore_option(ignore),
            " applies to label maps, but the file contains probabilities. To exclude voxels, use ",
            MASK,
        )
    if image.kind == "foreground" or image.regions is None:
        labels, names, colours = _foreground(image)
        foreground = Segmentation.from_probabilities(
            values, axis=None, labels=labels, geometry=geometry
        )
        return replace(foreground, names=names, colours=colours)
    count = values.shape[image.regions]
    labels, names = _channels(image.region_labels, image.region_names, count)
    integers = values.dtype.kind in "iu"
    stated = image.kind in ("probabilities", "regions")  # the file declares probabilities
    other = beyond_one(values) if integers or priority or not stated else None
    if integers and other is not None:
        raise _not_masks(values, other)
    notes: tuple[Note, ...] = ()
    if not stated and other is None:
        masks: list[Array] = list(np.moveaxis(np.asarray(values), image.regions, 0))
        if priority:
            return label_map_by_priority(masks, labels, names, priority, geometry, image.colours)
        sums, notes = _divided(masks, shown_labels(labels, names), sums, geometry)
    elif priority:
        raise _no_masks(priority, other)
    result = Segmentation.from_probabilities(
        values, axis=image.regions, labels=labels, sums=sums, geometry=geometry
    )
    return replace(result, names={**result.names, **names}, notes=notes, colours=image.colours)


def _channels(
    labels: Sequence[int | None] | None, names: Sequence[Label | None] | None, count: int
) -> tuple[tuple[int | None, ...], dict[int, str]]:
    """Return the label of each region (None if it has no label), and the names by channel."""
    if names is not None and labels is None:
        names = _distinct(names)
    elif labels is None:
        labels = [None] * count
    return as_channels(labels, names, count)


def _foreground(
    image: Image,
) -> tuple[Sequence[int | None], Mapping[int, str], Mapping[int, str]]:
    """Return the labels, names and colours of the two regions, background and foreground."""
    if image.kind == "foreground":
        labels, names = _channels(image.region_labels, image.region_names, 2)
        return labels, names, image.colours
    (label,), names = _channels(image.region_labels, image.region_names, 1)
    names = {0: "background", 1: names[0]} if names else {}
    colours = {k + 1: colour for k, colour in image.colours.items()}
    return (0 if label else None, label), names, colours


def ignore_option(labels: Sequence[int]) -> Option:
    """Return the option that excludes the pixels with these labels, for messages."""
    command = " ".join(f"--ignore {label}" for label in labels)
    return Option("ignore", python=f"ignore={list(labels)}", command=command)


def segmentation_of_many(
    images: Sequence[tuple[str, Image]],
    names: Sequence[Label],
    *,
    scale: float | None,
    sums: Sums,
    priority: Sequence[str] = (),
) -> Segmentation:
    """Combine several images, each of which contains the probabilities or mask of one region."""
    first: Segmentation | None = None
    arrays: list[Array] = []
    beyond: float | None = None  # the first value other than 0 and 1
    for file, image in images:
        image = without_single_region(image)
        if image.regions is not None and not image.assumed:
            raise FormatError(
                f"{file}: with one file per region, a file must contain one value per voxel, but "
                f"this file contains {image.array.shape[image.regions]} regions. Read it alone."
            )
        image = replace(image, regions=None)
        values = scaled_values(image, scale)
        if beyond is None or values.dtype.kind in "iu":
            other = beyond_one(values)
            beyond = other if beyond is None else beyond
            if values.dtype.kind in "iu" and other is not None:
                raise FormatError(
                    f"{file}: with one file per region, a file must contain probabilities or a "
                    f"mask of 0 and 1, found {other}. If the file is a label map, read it alone. "
                    f"For percentages or 8-bit maps, use ",
                    *SCALES,
                )
        region = Segmentation.from_probabilities(values, axis=None, geometry=_geometry(image))
        first = first or region
        arrays.append(_onto(region, first, file, images[0][0]).array)
    assert first is not None
    labels, called = _channels(None, names, len(arrays))
    notes: tuple[Note, ...] = ()
    if beyond is None:
        if priority:
            return label_map_by_priority(arrays, labels, called, priority, first.geometry, {})
        (files,) = short_paths(",".join(file for file, _ in images))
        shown = shown_labels(labels, called)
        sums, notes = _divided(arrays, shown, sums, first.geometry, prefix=f"{files}: ")
    elif priority:
        raise _no_masks(priority, beyond)
    result = Segmentation.from_probabilities(
        Stacked(arrays), labels=labels, sums=sums, geometry=first.geometry
    )
    return replace(result, names={**result.names, **called}, notes=notes)


def fraction_in(array: Array) -> float | None:
    """Return the first fractional number, or None. NaN is ignored; the comparison reports it."""
    for block in blocks(array):
        fractions = (block != np.trunc(block)) & (block == block)
        if fractions.any():
            return float(block[np.unravel_index(fractions.argmax(), block.shape)])
    return None


def beyond_one(array: Array) -> float | None:
    """Return the first number that is neither 0 nor 1, or None."""
    for block in blocks(array):
        others = (block != 0) & (block != 1)
        if others.any():
            other: float | int = block[np.unravel_index(others.argmax(), block.shape)].item()
            return other
    return None


def without_single_region(image: Image) -> Image:
    """Drop the region axis of an image with a single region."""
    axis = image.regions
    if axis is None or image.array.shape[axis] != 1:
        return image
    if isinstance(image.array, np.ndarray):
        return replace(image, array=image.array.squeeze(axis), regions=None)
    return replace(image, array=Dropped(image.array, axis % len(image.array.shape)), regions=None)


def scaled_values(image: Image, scale: float | None) -> Array:
    """Apply the file's slope and intercept, and then the user's scale, to the values."""
    if image.array.dtype.kind not in "biuf" or image.array.dtype.itemsize > 8:
        raise FormatError(
            f"values must be integers or floating-point numbers of at most 64 bits, "
            f"found {image.array.dtype}"
        )
    if (image.slope, image.inter, scale) == (1, 0, None):
        return zeros_and_ones(image.array) if isinstance(image.array, np.ndarray) else image.array
    return Scaled(image.array, image.slope, image.inter, 1.0 if scale is None else scale)


def _are_labels(image: Image, values: Array) -> bool:
    if image.kind == "values":
        return values.dtype.kind != "f" or fraction_in(values) is None
    return image.kind == "labels"


def _divided(
    masks: Sequence[Array],
    names: Sequence[Label],
    sums: Sums,
    geometry: Geometry | None,
    prefix: str = "",
) -> tuple[Sums, tuple[Note, ...]]:
    """Return the option `sums` for masks, and a note if masks share pixels.

    If masks share pixels and `sums` is "error", raise an error.
    """
    shared = shared_pixels(masks, names, geometry)
    if not shared.pixels:
        return sums, ()
    if sums == "error":
        raise shared.error.prefixed(prefix)
    # Masks do not include the background, so dividing by the sum is not enough.
    return "background", (shared.note,)


def _no_masks(priority: Sequence[str], value: float | None) -> InputError:
    content = "probabilities" if value is None else f"{value:g}"
    return InputError(
        priority_option(priority),
        f" applies only to masks of 0 and 1, but the input contains {content}. For probabilities, "
        "pass ",
        SUMS_NORMALISE,
        " or ",
        SUMS_BACKGROUND,
    )


def _not_masks(values: Array, other: float) -> FormatError:
    return FormatError(
        f"contains {' × '.join(map(str, values.shape))} whole numbers, such as {other}: expected "
        f"one label per voxel, or the probability of every region. For percentages or 8-bit maps, "
        f"use ",
        *SCALES,
        ". If the file is a time series, extract one volume.",
    )


def _geometry(image: Image) -> Geometry | None:
    if image.affine is None or image.vertices is not None:
        return image.vertices
    shape = list(image.array.shape)
    if image.regions is not None:
        del shape[image.regions]
    return Geometry(tuple(shape), image.affine)


def _onto(region: Segmentation, first: Segmentation, file: str, first_file: str) -> Segmentation:
    """Reorder the axes of one region to match the grid of the first region."""
    file, first_file = short_paths(file, first_file)
    if region.geometry is not None and first.geometry is not None:
        try:
            return region.onto(first.geometry, tolerance=TOLERANCE)
        except GeometryError:
            raise GeometryError(
                f"{file}: is not on the grid of {first_file}: "
                f"{region.geometry.mismatch(first.geometry)}. "
                f"Resample it onto that grid first."
            ) from None
    if (region.geometry is None) != (first.geometry is None):
        without, other = (file, first_file) if region.geometry is None else (first_file, file)
        raise GeometryError(
            f"{without}: has no geometry but {other} has one, so they cannot be combined as "
            f"regions of one image. Save both files with the same geometry."
        )
    if region.shape != first.shape:
        raise GeometryError(
            f"{file}: has shape {region.shape}, expected {first.shape} as in {first_file}"
        )
    return region


def _distinct(names: Sequence[Label | None]) -> list[Label | None]:
    """Add numbers to repeated names, because two segments may both be called "lesion"."""
    distinct: list[Label | None] = []
    for name in names:
        number, candidate = 1, name
        while candidate is not None and candidate in distinct:
            number += 1
            candidate = f"{name} ({number})"
        distinct.append(candidate)
    return distinct
