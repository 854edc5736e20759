"""From what a file holds to what it means: a label map, or the probability of every region.

| values, one per pixel | meaning |
|---|---|
| whole numbers, of integer or floating type | labels |
| numbers with fractions, or any numbers with `scale` | the probability of one foreground |

| values, one per pixel and region | meaning |
|---|---|
| floating numbers, scaled integers, any numbers with `scale` | probabilities |
| integers that are all 0 or 1 | masks, one-hot |
| other integers | refused: a time series? percent? |

Whether probabilities lie in [0, 1] and sum to 1 is checked where they are compared, not here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from probdice.data.geometry import Geometry
from probdice.data.segmentation import Array, Segmentation
from probdice.data.value_checks import BACKGROUND, MASK, NORMALISE, Sums
from probdice.errors import FormatError, GeometryError, InputError, Note, Option
from probdice.files.lazy import Dropped, Scaled, Stacked, blocks, zeros_and_ones
from probdice.files.masks import Claims, claims_of, settled
from probdice.files.model import Image
from probdice.method.region_labels import Label, as_channels, shown_labels
from probdice.options import TOLERANCE
from probdice.text.formatting import short_paths

__all__ = ["beyond_one", "fraction_in", "ignoring", "segmentation_of", "segmentation_of_many"]

SCALES = (Option("scale", 100), " or ", Option("scale", 255))


def segmentation_of(
    image: Image,
    *,
    scale: float | None,
    sums: Sums,
    ignore: Iterable[int],
    priority: Sequence[str] = (),
) -> Segmentation:
    """The segmentation that one image is."""
    if image.kind != "regions":
        image = _without_single_region(image)
    if image.regions is not None and image.array.shape[image.regions] == 0:
        raise FormatError(f"holds no regions: its shape is {tuple(image.array.shape)}")
    ignore = tuple(ignore)
    values = _scaled(image, scale)
    geometry = _geometry(image)
    if image.regions is None and scale is None and _are_labels(image, values):
        label_map = Segmentation.from_labels(
            values, ignore=ignore, names=image.label_names, geometry=geometry
        )
        return replace(label_map, colours=image.colours)
    if ignore:
        raise InputError(
            ignoring(ignore),
            " names labels, but the file holds probabilities; leave pixels out with ",
            MASK,
            " instead",
        )
    if image.kind == "foreground":
        labels, names = _channels(image.region_labels, image.region_names, 2)
        foreground = Segmentation.from_probabilities(
            values, axis=None, labels=labels, geometry=geometry
        )
        return replace(foreground, names=names, colours=image.colours)
    if image.regions is None:
        (label,), names = _channels(image.region_labels, image.region_names, 1)
        foreground = Segmentation.from_probabilities(
            values,
            axis=None,
            labels=(0 if label else None, label),
            geometry=geometry,
        )
        return replace(
            foreground,
            names={0: "background", 1: names[0]} if names else {},
            colours={k + 1: colour for k, colour in image.colours.items()},
        )
    count = values.shape[image.regions]
    labels, names = _channels(image.region_labels, image.region_names, count)
    if values.dtype.kind in "iu":
        _check_masks(values)
    notes: tuple[Note, ...] = ()
    if _are_masks(image, values):
        masks = _along(values, image.regions)
        if priority:
            return settled(masks, labels, names, priority, geometry, image.colours)
        claims = claims_of(masks, shown_labels(labels, names))
        if claims.pixels:
            sums, notes = _shared(claims, sums)
    elif priority:
        raise _no_masks(priority, beyond_one(values))
    result = Segmentation.from_probabilities(
        values, axis=image.regions, labels=labels, sums=sums, geometry=geometry
    )
    return replace(result, names={**result.names, **names}, notes=notes, colours=image.colours)


def _channels(
    labels: Sequence[int | None] | None, names: Sequence[Label | None] | None, count: int
) -> tuple[tuple[int | None, ...], dict[int, str]]:
    """The number of every region, None where the file has none, and the names by channel."""
    if names is not None and labels is None:
        names = _distinct(names)
    elif labels is None:
        labels = [None] * count
    return as_channels(labels, names, count)


def ignoring(labels: Sequence[int]) -> Option:
    """The option that leaves out the pixels with these labels."""
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
    """The segmentation of several images, each the probability or the mask of one region."""
    first: Segmentation | None = None
    arrays: list[Array] = []
    beyond: float | int | None = None  # what the masks hold beside 0 and 1
    for file, image in images:
        image = _without_single_region(image)
        if image.regions is not None and not image.assumed:
            raise FormatError(
                f"{file}: one file per region needs one value per pixel, but this file holds "
                f"{image.array.shape[image.regions]} regions; read it alone"
            )
        image = replace(image, regions=None)
        values = _scaled(image, scale)
        if beyond is None or values.dtype.kind in "iu":
            other = beyond_one(values)
            beyond = other if beyond is None else beyond
            if values.dtype.kind in "iu" and other is not None:
                raise FormatError(
                    f"{file}: one file per region needs a probability or a mask of 0 and 1, "
                    f"found {other}; a label map is read alone, and percent or 0 to 255 with ",
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
            return settled(arrays, labels, called, priority, first.geometry, {})
        claims = claims_of(arrays, shown_labels(labels, called))
        if claims.pixels:
            (files,) = short_paths(",".join(file for file, _ in images))
            sums, notes = _shared(claims, sums, prefix=f"{files}: ")
    elif priority:
        raise _no_masks(priority, beyond)
    result = Segmentation.from_probabilities(
        Stacked(arrays), labels=labels, sums=sums, geometry=first.geometry
    )
    return replace(result, names={**result.names, **called}, notes=notes)


def fraction_in(array: Array) -> float | None:
    """The first number that is not whole; NaN is left for the comparison to find."""
    for block in blocks(array):
        fractions = (block != np.trunc(block)) & (block == block)
        if fractions.any():
            return float(block[np.unravel_index(fractions.argmax(), block.shape)])
    return None


def beyond_one(array: Array) -> float | int | None:
    """The first number that is neither 0 nor 1."""
    for block in blocks(array):
        others = (block != 0) & (block != 1)
        if others.any():
            other: float | int = block[np.unravel_index(others.argmax(), block.shape)].item()
            return other
    return None


def _without_single_region(image: Image) -> Image:
    """A single region needs no axis: it is a map of one value per pixel."""
    axis = image.regions
    if axis is None or image.array.shape[axis] != 1:
        return image
    if isinstance(image.array, np.ndarray):
        return replace(image, array=image.array.squeeze(axis), regions=None)
    return replace(image, array=Dropped(image.array, axis % len(image.array.shape)), regions=None)


def _scaled(image: Image, scale: float | None) -> Array:
    """The values with the slope of the file and the scale of the user."""
    if image.array.dtype.kind not in "biuf" or image.array.dtype.itemsize > 8:
        raise FormatError(
            f"values must be integers or floating numbers of at most 64 bits, "
            f"found {image.array.dtype}"
        )
    if (image.slope, image.inter, scale) == (1, 0, None):
        return zeros_and_ones(image.array) if isinstance(image.array, np.ndarray) else image.array
    return Scaled(image.array, image.slope, image.inter, 1.0 if scale is None else scale)


def _are_labels(image: Image, values: Array) -> bool:
    if image.kind == "values":
        return values.dtype.kind != "f" or fraction_in(values) is None
    return image.kind == "labels"


def _are_masks(image: Image, values: Array) -> bool:
    """Whether every region holds 0 and 1 alone; integers were looked at before."""
    if image.kind in ("probabilities", "regions"):
        return False
    return values.dtype.kind in "biu" or beyond_one(values) is None


def _along(values: Array, axis: int) -> list[Array]:
    """One array for each region."""
    regions_first = np.moveaxis(np.asarray(values), axis, 0)
    return list(regions_first)


def _shared(claims: Claims, sums: Sums, prefix: str = "") -> tuple[Sums, tuple[Note, ...]]:
    """How overlapping masks are mended, which must be said; and how many pixels it changes."""
    if sums == "error":
        raise claims.refusal.prefixed(prefix) if prefix else claims.refusal
    # Masks leave the background out, so dividing where they overlap is not enough.
    return "background", (claims.shared,)


def _no_masks(priority: Sequence[str], value: float | int | None) -> InputError:
    return InputError(
        Option("priority", ",".join(priority), python=f"priority={tuple(priority)}"),
        f" is for masks of 0 and 1, found {value:g}; probabilities need ",
        NORMALISE,
        " or ",
        BACKGROUND,
    )


def _check_masks(values: Array) -> None:
    other = beyond_one(values)
    if other is not None:
        raise FormatError(
            f"holds {' × '.join(map(str, values.shape))} whole numbers, among them {other}: "
            f"expected one label per pixel, or a probability of every region. Percent or 0 to 255 "
            f"need ",
            *SCALES,
            "; a time series is not a segmentation: take one volume out of it",
        )


def _geometry(image: Image) -> Geometry | None:
    if image.affine is None:
        return None
    shape = list(image.array.shape)
    if image.regions is not None:
        del shape[image.regions]
    return Geometry(tuple(shape), image.affine)


def _onto(region: Segmentation, first: Segmentation, file: str, first_file: str) -> Segmentation:
    """One region laid onto the grid of the first."""
    file, first_file = short_paths(file, first_file)
    if region.geometry is not None and first.geometry is not None:
        try:
            return region.onto(first.geometry, tolerance=TOLERANCE)
        except GeometryError:
            actual, expected = region.geometry.describe(), first.geometry.describe()
            differences = "; ".join(
                f"{key} {actual[key]}, expected {expected[key]}"
                for key in actual
                if actual[key] != expected[key]
            )
            raise GeometryError(
                f"{file}: does not lie on the grid of {first_file}: {differences}. "
                f"Resample it onto that grid first"
            ) from None
    if (region.geometry is None) != (first.geometry is None):
        without, other = (file, first_file) if region.geometry is None else (first_file, file)
        raise GeometryError(
            f"{without}: has no geometry but {other} has one, so they cannot be "
            f"put together as regions of one image"
        )
    if region.shape != first.shape:
        raise GeometryError(
            f"{file}: has shape {region.shape}, expected {first.shape} as in {first_file}"
        )
    return region


def _distinct(names: Sequence[Label | None]) -> list[Label | None]:
    """The names, numbered where one occurs again: two segments may both be called "lesion"."""
    distinct: list[Label | None] = []
    for name in names:
        number, candidate = 1, name
        while candidate is not None and candidate in distinct:
            number += 1
            candidate = f"{name} ({number})"
        distinct.append(candidate)
    return distinct
