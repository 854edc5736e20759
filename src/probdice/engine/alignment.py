"""Align segmentations and masks of one image on one grid."""

from collections.abc import Sequence
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from probdice.data.geometry import Geometry
from probdice.data.lazy_arrays import Intersection
from probdice.data.pixel_words import PixelWords, pixel_words, words_for_axes
from probdice.data.resampled_arrays import FieldOfView
from probdice.data.resampling import Interpolation, placed, resample, same_lattice
from probdice.data.segmentation import Array, Segmentation
from probdice.errors import GeometryError, InputError, Note, Option, ProbdiceError
from probdice.method.region_labels import Label
from probdice.method.sides import SIDES, other
from probdice.options import TOLERANCE
from probdice.text.formatting import short_paths

__all__ = ["aligned", "file_of", "mask_on", "moved_onto", "one_hot_axis", "within"]

ONE_HOT = 3  # fewest regions for which an array of zeros and ones is treated as one-hot
IGNORE_GEOMETRY = Option("ignore_geometry", python="without_geometry()")


def aligned(
    reference: Segmentation, prediction: Segmentation, *, tolerance: float = TOLERANCE
) -> Segmentation:
    """Return the prediction on the grid of the reference, without interpolation.

    If both sides have a geometry, their grids must agree within `tolerance` pixels, apart from the
    order and direction of the axes. If neither side has a geometry, the shapes must be equal.
    """
    if reference.geometry is not None and prediction.geometry is not None:
        try:
            return prediction.onto(reference.geometry, tolerance=tolerance)
        except GeometryError as error:
            raise GeometryError(
                f"reference{file_of(reference, prediction)} and "
                f"prediction{file_of(prediction, reference)} do not "
                f"{_relation(reference, prediction)}: ",
                *error.args,
                f"\n{_side_by_side(reference=reference, prediction=prediction)}\n",
                *_resampling_hint(reference.geometry, prediction.geometry, tolerance),
                *_tolerance_hint(reference.geometry, prediction.geometry),
                ".",
            ) from None
    for side in SIDES:
        first, second = (reference, prediction)[:: 1 if side == "reference" else -1]
        if first.geometry is None and second.geometry is not None:
            raise GeometryError(
                f"{side}{file_of(first, second)} has no geometry but the {other(side)}"
                f"{file_of(second, first)} does, so their alignment is unknown. ",
                Option(
                    "ignore_geometry",
                    python="Set geometry=…, or compare in array order with without_geometry().",
                    command="To compare in array order, use --ignore-geometry.",
                ),
            )
    if reference.shape != prediction.shape:
        raise InputError(
            f"reference{file_of(reference, prediction)} has shape {reference.shape} but "
            f"prediction{file_of(prediction, reference)} has shape {prediction.shape}: both must "
            f"cover the same {pixel_words(reference).many}",
            *_misread(reference, prediction),
        )
    return prediction


def moved_onto(
    reference: Segmentation,
    prediction: Segmentation,
    tolerance: float,
    interpolation: Interpolation | None,
    background: Label | None,
) -> tuple[Segmentation, FieldOfView | None, str]:
    """Return the prediction on the grid of the reference, resampled if necessary and allowed.

    The second value is the field of view of the prediction if pixels outside it are excluded, and
    None otherwise. The third value describes how the prediction was resampled, cropped or padded,
    such as "interpolated linearly onto the grid". It is "" if the prediction was not changed.
    """
    target, geometry = reference.geometry, prediction.geometry
    if (
        interpolation is not None
        and target is geometry is None
        and reference.shape != prediction.shape
    ):
        raise InputError(
            f"reference has shape {reference.shape} and prediction has shape {prediction.shape}, "
            f"but neither has a geometry: ",
            Option("resample", interpolation),
            f" needs the positions of the {pixel_words(reference).many}. ",
            Option(
                "geometry",
                python="Give both sides a geometry, as in Segmentation.from_labels(array, "
                "geometry=Geometry(array.shape, affine))",
                command="Use files with a geometry, such as NIfTI",
            ),
            *_misread(reference, prediction),
        )
    if interpolation is None or target is None or geometry is None:
        return aligned(reference, prediction, tolerance=tolerance), None, ""
    if geometry.steps_onto(target)[2] <= tolerance:
        return prediction.onto(target, tolerance=tolerance), None, ""
    try:
        resampled, view = resample(
            prediction, target, interpolation, background=background, tolerance=tolerance
        )
    except ProbdiceError as error:
        raise error.prefixed(f"prediction{file_of(prediction, reference)}: ") from None
    if same_lattice(placed(geometry, target), tolerance) is not None:
        return resampled, view, "cropped or padded, without interpolation, to the grid"
    if interpolation == "nearest":
        return resampled, view, "resampled, by nearest-neighbour interpolation, onto the grid"
    return resampled, view, "interpolated linearly onto the grid"


def mask_notes(unknown: int, reference: Segmentation) -> tuple[Note, ...]:
    """Return a note if a mask contains NaN at `unknown` pixels."""
    if not unknown:
        return ()
    pixels = pixel_words(reference).of(unknown)
    verb = "is" if unknown == 1 else "are"
    text = f"{unknown} {pixels} of the mask {verb} NaN and counted as outside the mask."
    return (Note("mask", (text,)),)


def within(mask: Array | None, views: Sequence[Array]) -> Array | None:
    """Return a mask of the pixels that are in the given mask and in all fields of view.

    Return None if all pixels are included.
    """
    arrays = [*(() if mask is None else (mask,)), *views]
    if len(arrays) < 2:
        return arrays[0] if arrays else None
    return Intersection(arrays)


def _resampling_hint(
    reference: Geometry, prediction: Geometry, tolerance: float
) -> tuple[str | Option, ...]:
    """Return a hint on the resampling that the grids require, and the option that enables it."""
    if not (reference.on_grid and prediction.on_grid):
        return (
            "Use files of the same surface, or resample one of them first, for example with "
            "wb_command -label-resample or mri_surf2surf",
        )
    if len(reference.shape) != len(prediction.shape):
        return ("Use images with the same number of axes",)
    if same_lattice(placed(prediction, reference), tolerance) is not None:
        return (
            f"The grids differ only by whole {words_for_axes(len(reference.shape)).many}. To crop "
            f"or pad the prediction without interpolation, use ",
            Option("resample", "linear"),
        )
    return (
        "To interpolate the prediction, use ",
        Option("resample", "linear"),
        " (labels become probabilities) or ",
        Option("resample", "nearest"),
        " (labels stay labels)",
    )


def _tolerance_hint(reference: Geometry, prediction: Geometry) -> tuple[str | Option, ...]:
    """Return a hint on grids that have equal sizes along their axes but do not coincide."""
    distance = prediction.steps_onto(reference)[2]
    if not isfinite(distance):
        return ()
    if distance < 1:
        option = Option("geometry_tolerance", "T", python="Segmentation.onto(…, tolerance=…)")
        return ", or raise the tolerance with ", option
    return ". If only a header is wrong, compare in array order with ", IGNORE_GEOMETRY


def mask_on(
    reference: Segmentation, mask: Segmentation | Array, tolerance: float
) -> tuple[Array, int]:
    """Return the mask as an array on the grid of the reference, and its number of NaN values."""
    array: Array
    if isinstance(mask, Segmentation):
        if not mask.crisp:
            raise InputError(
                f"mask{file_of(mask, reference)} must be a label map (0 is outside), found "
                f"probabilities"
            )
        if (mask.geometry is None) != (reference.geometry is None):
            without = "mask" if mask.geometry is None else "reference"
            raise GeometryError(
                f"{without} has no geometry, so the alignment of mask and reference is unknown. ",
                Option(
                    "ignore_geometry",
                    python="Pass the mask as an array, or compare in array order with "
                    "without_geometry().",
                    command="To compare in array order, use --ignore-geometry.",
                ),
            )
        grid = mask.geometry
        if grid is not None and reference.geometry is not None:
            try:
                mask = mask.onto(reference.geometry, tolerance=tolerance)
            except GeometryError as error:
                raise GeometryError(
                    f"mask{file_of(mask, reference)} and reference{file_of(reference, mask)} do "
                    f"not {_relation(mask, reference)}: ",
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
        raise InputError(f"mask must contain booleans or integers, found {array.dtype}")
    if tuple(array.shape) != reference.shape:
        raise InputError(
            f"mask has shape {tuple(array.shape)} but the images have shape {reference.shape}"
        )
    return _boolean_mask(array, pixel_words(reference)) if array.dtype.kind == "f" else (array, 0)


def _boolean_mask(mask: Array, words: PixelWords) -> tuple[NDArray[np.bool_], int]:
    """Convert a floating-point mask to booleans, and return it with its number of NaN values.

    Pixels with NaN are outside the mask. Fractions and infinite values are rejected.
    """
    values = np.asarray(mask[(slice(None),) * len(mask.shape)])
    finite = np.isfinite(values)
    wrong = np.isinf(values) | (finite & (values != np.floor(np.where(finite, values, 0))))
    if wrong.any():
        position = tuple(int(k) for k in np.unravel_index(int(np.argmax(wrong)), values.shape))
        raise InputError(
            f"mask must contain integers, found {values[position]:g} at {words.one} {position}. "
            f"Use a threshold, as in mask > 0.5."
        )
    return finite & (values != 0), int(np.isnan(values).sum())


def one_hot_axis(side: Segmentation) -> int | None:
    """Return the axis (0 or −1) along which a label map is one-hot encoded, or None."""
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
    """Return a hint if an array was probably misread as labels or as probabilities."""
    for side, opposite in (sides, sides[::-1]):
        axis = one_hot_axis(side) if len(side.shape) == len(opposite.shape) + 1 else None
        if axis is not None:
            return (
                ". The integers were read as labels but look one-hot encoded. ",
                Option(
                    "one_hot",
                    python=f"Use Segmentation.from_probabilities(array, axis={axis}).",
                    command="Store the values as floating-point numbers.",
                ),
            )
        if not side.crisp and tuple(side.array.shape) == opposite.shape:
            return (
                ". The first axis of a floating-point array is the region axis. ",
                Option(
                    "regions",
                    python="Use Segmentation.from_labels(array) for labels, or "
                    "Segmentation.from_probabilities(array, axis=None) for a single foreground.",
                    command="Store labels as integers.",
                ),
            )
        if not side.crisp and tuple(side.array.shape[:-1]) == opposite.shape:
            return (
                ". The first axis was read as the region axis, but the region axis seems to be the "
                "last axis. ",
                Option(
                    "axis",
                    python="Use Segmentation.from_probabilities(array, axis=-1).",
                    command="Store the regions along the first axis.",
                ),
            )
    return ()


def file_of(image: Segmentation | Array, *other_images: Segmentation) -> str:
    """Return the file name of an image in parentheses, or "" if the image has no file."""
    if not isinstance(image, Segmentation) or not image.source:
        return ""
    return f" ({short_paths(image.source, *(other.source for other in other_images))[0]})"


def _side_by_side(**images: Segmentation) -> str:
    """Return the geometries of two images as a table."""
    (first, first_facts), (second, second_facts) = (
        (name, {} if image.geometry is None else image.geometry.describe())
        for name, image in images.items()
    )
    width = max(len(text) for text in (*first_facts.values(), first))
    rows = [f"{'':>10}  {first:<{width}}  {second}"]
    keys = dict.fromkeys((*first_facts, *second_facts))
    rows += [
        f"{key:>10}  {first_facts.get(key, ''):<{width}}  {second_facts.get(key, '')}"
        for key in keys
    ]
    return "\n".join(rows)


def _relation(*images: Segmentation) -> str:
    """Return the words for the property that two images should share (a grid or vertices)."""
    grids = all(image.geometry is None or image.geometry.on_grid for image in images)
    return "lie on the same grid" if grids else "have the same vertices in the same order"
