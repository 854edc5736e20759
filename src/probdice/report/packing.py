"""The pixel data of a page, rounded and compressed. Large images are subsampled.

For every pixel, a page contains the most probable regions of each side (at most
`MAX_REGIONS_PER_PIXEL` per side) and the similarity f. Probabilities are rounded to the digits that
the page displays. If the data exceed the size limit, the page stores fewer digits. If this is not
sufficient, the page contains only every n-th pixel along every axis, and a sentence next to the
images reports the subsampling. For two label maps with at most `MAX_DISTINCT_REGIONS` regions each,
f is not stored, because the page computes it from the regions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from math import ceil, prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.method.sides import SIDES, Side
from probdice.metrics.verdict import words_of
from probdice.pictures.colours import NEUTRAL, Colours, background_group
from probdice.pictures.planes import finest, planes_of
from probdice.pictures.views import View, group_numbers, images_of, largest, look
from probdice.report.encoding import encoded, ordinal, shortened
from probdice.report.image_layers import packed_layer
from probdice.report.slice_stacks import frame_of

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison
    from probdice.data.pixel_words import PixelWords
    from probdice.files.background_images import BackgroundImage

__all__ = ["Pixels", "pixels_of"]

MAX_BYTES = 6_000_000  # size limit of both sides and f together, before base64 encoding
MAX_BYTES_WITH_IMAGES = 7_000_000  # the same limit including background images
MIN_IMAGE_BYTES = 400_000  # bytes guaranteed for each background image
MAX_LABEL_PIXELS = 2**27  # of label maps
MAX_PROBABILITY_PIXELS = 2**23  # largest number of pixels with probabilities
MAX_PROBABILITIES = 2**25  # largest number of probabilities read per side
MIN_ESTIMATED_PIXELS = 2**20  # number of pixels from which a few slices are compressed first
SLICES = 8  # approximate number of slices that estimate the compressed size
SIZE_ESTIMATE_TOLERANCE = 1.3  # an estimate above this multiple of the limit is too large
MAX_REGIONS_PER_PIXEL = 6
MAX_DISTINCT_REGIONS = 4096  # largest number of regions of a side that images distinguish
DIGITS = ((2**21, 4), (2**23, 3))  # (largest number of stored values, digits); otherwise 2


@dataclass(frozen=True)
class Pixels:
    """The data of the viewer, to be written as JSON, and sentences about omissions.

    `left_out` is shown next to the images, and `omissions` is shown below the images.
    """

    content: dict[str, Any]
    left_out: str
    omissions: tuple[str, ...]


def pixels_of(
    comparison: Comparison, colours: Colours, layers: Sequence[BackgroundImage]
) -> Pixels:
    """Return the pixels of both sides and f in at most `MAX_BYTES`, and the background images."""
    shape = images_of(comparison).reference.shape
    step = _first_step(comparison, shape)
    words = words_of(comparison)
    while True:
        ranges = tuple(range(0, n, step) for n in shape)
        if _clearly_too_much(comparison, ranges, colours):
            step += 1
            continue
        view = look(comparison, ranges)
        regions = {side: _regions(view, side, MAX_REGIONS_PER_PIXEL) for side in SIDES}
        values = sum(codes.size for codes, _ in regions.values())
        digits = next((digits for limit, digits in DIGITS if values <= limit), 2)
        for number in range(2 if comparison.overlap.crisp else digits, 1, -1):
            sides: dict[str, dict[str, Any]] = {
                side: _packed_side(comparison, side, *regions[side], colours, number)
                for side in SIDES
            }
            f = "" if _f_follows(comparison) else encoded(_rounded_values(view.f[None], number))
            size = len(f) + sum(len(s["codes"]) + len(s["values"]) for s in sides.values())
            if size <= MAX_BYTES * 4 / 3 or prod(map(len, view.ranges)) <= 1:
                background = background_group(comparison)
                foreground = _foreground(comparison, view, background)
                content = _content(comparison, view, number, background, foreground)
                limit = (MAX_BYTES_WITH_IMAGES - size * 3 // 4) // max(len(layers), 1)
                packed_layers = [
                    packed_layer(layer, view, foreground, max(limit, MIN_IMAGE_BYTES), words)
                    for layer in layers
                ]
                content |= {"f": f, **sides, "images": [layer for layer, _ in packed_layers]}
                reductions = [text for _, text in packed_layers if text]
                return Pixels(
                    content,
                    " ".join([*_step_note(step, words), *reductions]),
                    _omissions(comparison, number, words),
                )
        step += 1


def _first_step(comparison: Comparison, shape: tuple[int, ...]) -> int:
    """Return the smallest step that satisfies the limits on pixels and probabilities."""
    channels = [len(comparison.labels(side)) for side in SIDES if not _crisp(comparison, side)]
    max_pixels = MAX_LABEL_PIXELS
    if channels:
        max_pixels = min(MAX_PROBABILITY_PIXELS, MAX_PROBABILITIES // max(channels))
    return next(n for n in count(1) if prod(ceil(size / n) for size in shape) <= max(max_pixels, 1))


def _clearly_too_much(comparison: Comparison, ranges: tuple[range, ...], colours: Colours) -> bool:
    """Estimate from a few slices whether the probabilities exceed the size limit."""
    if comparison.overlap.crisp or prod(map(len, ranges)) < MIN_ESTIMATED_PIXELS:
        return False
    first, *other_ranges = ranges
    sample = first[:: max(1, len(first) // SLICES)]
    view = look(comparison, (sample, *other_ranges))
    size = sum(
        len(entry["codes"]) + len(entry["values"])
        for side in SIDES
        for entry in (
            _packed_side(
                comparison, side, *_regions(view, side, MAX_REGIONS_PER_PIXEL), colours, 2
            ),
        )
    )
    return size * (len(first) / len(sample)) > SIZE_ESTIMATE_TOLERANCE * MAX_BYTES * 4 / 3


def _crisp(comparison: Comparison, side: Side) -> bool:
    return comparison.overlap.side(side).crisp


def _f_follows(comparison: Comparison) -> bool:
    """Return whether f can be computed from the regions that the page distinguishes."""
    few_regions = all(len(comparison.labels(side)) <= MAX_DISTINCT_REGIONS for side in SIDES)
    return comparison.overlap.crisp and few_regions


def _regions(
    view: View, side: Side, max_regions: int
) -> tuple[NDArray[np.integer[Any]], NDArray[np.floating[Any]]]:
    """Return the most probable regions of each pixel and, for probabilities, their values."""
    if view.crisp(side):
        return view.sides[side][None], np.empty(0, np.float32)
    return largest(view, side, max_regions)


def _foreground(comparison: Comparison, view: View, background: int | None) -> NDArray[np.bool_]:
    """Return a mask of the compared pixels that are foreground on either side.

    If there is no background or no foreground, return all compared pixels.
    """
    foreground = np.zeros(view.inside.shape, np.bool_)
    if background is None:
        return view.inside
    for side in SIDES:
        numbers = np.array([*group_numbers(comparison, side), background])  # −1 is background
        codes, _ = _regions(view, side, 1)
        foreground |= (numbers != background)[codes[0]]
    return foreground & view.inside if foreground.any() else view.inside


def _content(
    comparison: Comparison,
    view: View,
    digits: int,
    background: int | None,
    foreground: NDArray[np.bool_],
) -> dict[str, Any]:
    """Return the data of the viewer except pixel values."""
    reference = images_of(comparison).reference
    axes, geometry = len(view.ranges), reference.geometry
    planes = planes_of(axes, geometry)
    return {
        "shape": [len(indices) for indices in view.ranges],
        "step": view.ranges[0].step if axes else 1,
        "size": list(reference.shape),
        "frame": frame_of(foreground),
        "pixel": words_of(comparison).one,
        "digits": digits,
        "crisp": comparison.overlap.crisp,
        "apart": 1 - comparison.similarity.disagreement,
        "background": -1 if background is None else background,
        "affine": None if geometry is None else geometry.affine.tolist(),
        "spacing": None if geometry is None else geometry.spacing,
        # The world axis that is closest to each image axis.
        "towards": None if geometry is None else np.abs(geometry.direction).argmax(0).tolist(),
        "plane": planes.index(finest(planes, reference.shape, geometry)),
        "planes": [
            {
                "name": plane.name,
                "rows": plane.rows,
                "columns": plane.columns,
                "flipRows": plane.flip_rows,
                "flipColumns": plane.flip_columns,
                "edges": plane.edges,
                "aspect": plane.aspect,
                "across": plane.across(axes),
            }
            for plane in planes
        ],
    }


def _packed_side(
    comparison: Comparison,
    side: Side,
    codes: NDArray[np.integer[Any]],
    values: NDArray[np.floating[Any]],
    colours: Colours,
    digits: int,
) -> dict[str, Any]:
    """Return the regions of one side, and the most probable regions and values of each pixel.

    Region codes start at 1. Code 0 means no region, for example outside the mask.
    """
    shades = colours.regions[side]
    names = [shortened(label) for label in comparison.labels(side)]
    groups = group_numbers(comparison, side)
    if len(names) > MAX_DISTINCT_REGIONS:
        regions = comparison.overlap.side(side)
        ascending = np.argsort(regions.volumes[regions.occupied], kind="stable")
        largest_regions = np.sort(ascending[-MAX_DISTINCT_REGIONS:])
        code_of = np.full(len(names), MAX_DISTINCT_REGIONS)
        code_of[largest_regions] = np.arange(MAX_DISTINCT_REGIONS)
        codes = np.where(codes >= 0, code_of[codes], -1)
        names = [
            *(names[k] for k in largest_regions),
            f"one of {len(names) - MAX_DISTINCT_REGIONS} small regions",
        ]
        groups = [*(groups[k] for k in largest_regions), -1]
        shades = (*(shades[k] for k in largest_regions), NEUTRAL)
    is_wide = len(names) > 255
    region_codes = (codes + 1).astype("<u2" if is_wide else "u1")
    entry = {
        "kept": codes.shape[0],
        "names": names,
        "groups": groups,
        "colours": list(shades),
        "wide": is_wide,
    }
    if _crisp(comparison, side):
        return {**entry, "codes": encoded(region_codes, level=6), "values": ""}
    multiples = _rounded_values(values, digits)
    region_codes[multiples == 0] = 0  # drop regions that round to 0, because zeros compress well
    return {**entry, "codes": encoded(region_codes), "values": encoded(multiples)}


def _rounded_values(values: NDArray[np.floating[Any]], digits: int) -> NDArray[Any]:
    """Return values as integer multiples of the last displayed digit; the largest integer for NaN.

    As in `formatting`, values below 1 are not rounded up to 1.
    """
    dtype = np.dtype("u1") if digits == 2 else np.dtype("<u2")
    multiples = np.empty(values.shape, dtype)
    for k, row in enumerate(values):  # row by row, to save memory
        row_multiples = np.rint(row.astype(np.float64) * 10**digits)
        row_multiples = np.where(row < 1, np.minimum(row_multiples, 10**digits - 1), row_multiples)
        multiples[k] = np.where(np.isnan(row_multiples), np.iinfo(dtype).max, row_multiples)
    return multiples


def _step_note(step: int, words: PixelWords) -> list[str]:
    """Return a sentence about the displayed pixels, unless all pixels are displayed."""
    if step == 1:
        return []
    return [
        f"The images show every {ordinal(step)} {words.one} along each axis. All results are "
        f"computed from all compared {words.many}."
    ]


def _omissions(comparison: Comparison, digits: int, words: PixelWords) -> tuple[str, ...]:
    """Return sentences about omitted regions and rounding."""
    sentences = []
    for side in SIDES:
        number = len(comparison.labels(side))
        if not _crisp(comparison, side) and number > MAX_REGIONS_PER_PIXEL:
            shown = f"the {MAX_REGIONS_PER_PIXEL} most probable of {number} {side} regions"
            kept = f"only {shown} are shown"
            sentences.append(f"Per {words.one}, {kept}.")
        if number > MAX_DISTINCT_REGIONS:
            sentences.append(
                f"The images distinguish only the {MAX_DISTINCT_REGIONS} largest {side} regions."
            )
    if not comparison.overlap.crisp:
        sentences.append(f"Probabilities and similarities are rounded to {digits} decimals.")
    return tuple(sentences)
