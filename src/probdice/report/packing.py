"""The pixels of a page: as many as fit, rounded to the digits that are shown, and compressed.

A page carries for every pixel the largest few regions of each side and f. Probabilities are stored
rounded to as many digits as the page shows, so that what it shows is what the arrays hold, to the
digits shown. Where that does not fit, every n-th pixel along every axis is carried, and the page
says so beside the images. Between label maps f follows from the regions and is not carried.
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
from probdice.pictures.colours import NEUTRAL, Colours, background_group
from probdice.pictures.planes import finest, planes_of
from probdice.pictures.views import View, group_numbers, images_of, largest, look
from probdice.report.encoding import encoded, ordinal, shortened
from probdice.report.image_layers import packed_underlay

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison
    from probdice.files.background_images import Underlay

__all__ = ["Pixels", "pixels_of"]

ROOM = 6_000_000  # bytes of both sides, before base64 makes four of three
ROOM_IN_ALL = 7_000_000  # with the images under them
LEAST_ROOM = 400_000  # bytes of an image, however many there are
MOST_LABELS = 2**27  # pixels of label maps
MOST_PIXELS = 2**23  # pixels where there are probabilities
MOST_VALUES = 2**25  # probabilities of one side that are looked at
MANY = 2**20  # pixels from which on a few slices are tried first
SLICES = 8  # whose compressed size tells that of all
CLEARLY = 1.3  # how much too large that must be
KEPT = 6  # regions of a pixel
NAMED = 4096  # regions of a side that the images tell apart
DIGITS = ((2**21, 4), (2**23, 3))  # up to so many probabilities: so many digits; else 2
MARGIN = 0.03  # around what is not background, as a share of it


@dataclass(frozen=True)
class Pixels:
    """What the viewer needs, ready for JSON.

    What it leaves out is said in words: pixels beside the images, and the rest below them.
    """

    content: dict[str, Any]
    left_out: str
    omissions: tuple[str, ...]


def pixels_of(comparison: Comparison, colours: Colours, underlays: Sequence[Underlay]) -> Pixels:
    """The pixels of a comparison, both sides in at most `ROOM` bytes, and the images under it."""
    shape = images_of(comparison).reference.shape
    step = _first_step(comparison, shape)
    while True:
        ranges = tuple(range(0, n, step) for n in shape)
        if _clearly_too_much(comparison, ranges, colours):
            step += 1
            continue
        view = look(comparison, ranges)
        regions = {side: _regions(view, side, KEPT) for side in SIDES}
        values = sum(codes.size for codes, _ in regions.values())
        digits = next((digits for limit, digits in DIGITS if values <= limit), 2)
        for number in range(2 if comparison.overlap.crisp else digits, 1, -1):
            sides: dict[str, dict[str, Any]] = {
                side: _packed_side(comparison, side, *regions[side], colours, number)
                for side in SIDES
            }
            f = "" if _follows(comparison) else encoded(_rounded(view.f[None], number))
            size = len(f) + sum(len(s["codes"]) + len(s["values"]) for s in sides.values())
            if size <= ROOM * 4 / 3 or prod(map(len, view.ranges)) <= 1:
                background = background_group(comparison.groups)
                loud = _loud(comparison, view, background)
                content = _content(comparison, view, number, background, loud)
                room = (ROOM_IN_ALL - size * 3 // 4) // max(len(underlays), 1)
                packed = [
                    packed_underlay(one, view, loud, max(room, LEAST_ROOM)) for one in underlays
                ]
                content |= {"f": f, **sides, "images": [one for one, _ in packed]}
                reduced = [text for _, text in packed if text]
                return Pixels(
                    content,
                    " ".join([*_left_out(step), *reduced]),
                    _omissions(comparison, number),
                )
        step += 1


def _first_step(comparison: Comparison, shape: tuple[int, ...]) -> int:
    """Every how many pixels along each axis may fit at all."""
    channels = [len(comparison.labels(side)) for side in SIDES if not _crisp(comparison, side)]
    most = MOST_LABELS
    if channels:
        most = min(MOST_PIXELS, MOST_VALUES // max(channels))
    return next(n for n in count(1) if prod(ceil(size / n) for size in shape) <= max(most, 1))


def _clearly_too_much(comparison: Comparison, ranges: tuple[range, ...], colours: Colours) -> bool:
    """Whether a few slices already tell that probabilities do not fit."""
    if comparison.overlap.crisp or prod(map(len, ranges)) < MANY:
        return False
    first, *others = ranges
    few = first[:: max(1, len(first) // SLICES)]
    view = look(comparison, (few, *others))
    size = sum(
        len(entry["codes"]) + len(entry["values"])
        for side in SIDES
        for entry in (_packed_side(comparison, side, *_regions(view, side, KEPT), colours, 2),)
    )
    return size * (len(first) / len(few)) > CLEARLY * ROOM * 4 / 3


def _crisp(comparison: Comparison, side: Side) -> bool:
    return comparison.overlap.side(side).crisp


def _follows(comparison: Comparison) -> bool:
    """Whether f follows from the regions that the page tells apart."""
    few = all(len(comparison.labels(side)) <= NAMED for side in SIDES)
    return comparison.overlap.crisp and few


def _regions(
    view: View, side: Side, most: int
) -> tuple[NDArray[np.integer[Any]], NDArray[np.floating[Any]]]:
    """The largest regions of each pixel and, of probabilities, how large they are."""
    if view.crisp(side):
        return view.sides[side][None], np.empty(0, np.float32)
    return largest(view, side, most)


def _loud(comparison: Comparison, view: View, background: int | None) -> NDArray[np.bool_]:
    """Which pixels are, on either side, in a region that is not background."""
    loud = np.zeros(view.inside.shape, np.bool_)
    if background is None:
        return view.inside
    for side in SIDES:
        numbers = np.array([*group_numbers(comparison, side), background])  # −1: outside
        codes, _ = _regions(view, side, 1)
        loud |= (numbers != background)[codes[0]]
    return loud & view.inside if loud.any() else view.inside


def _content(
    comparison: Comparison,
    view: View,
    digits: int,
    background: int | None,
    loud: NDArray[np.bool_],
) -> dict[str, Any]:
    """Everything the viewer knows but the values."""
    reference = images_of(comparison).reference
    axes, geometry = len(view.ranges), reference.geometry
    planes = planes_of(axes, geometry)
    return {
        "shape": [len(indices) for indices in view.ranges],
        "step": view.ranges[0].step if axes else 1,
        "size": list(reference.shape),
        "frame": _frame(loud),
        "digits": digits,
        "crisp": comparison.overlap.crisp,
        "apart": 1 - comparison.similarity.disagreement,
        "background": -1 if background is None else background,
        "affine": None if geometry is None else geometry.affine.tolist(),
        "spacing": None if geometry is None else geometry.spacing,
        # Along which direction of the world each axis runs.
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


def _frame(loud: NDArray[np.bool_]) -> list[list[int]]:
    """The first and the last pixel along each axis of what is not background, and a margin."""
    frame = []
    for axis, size in enumerate(loud.shape):
        others = tuple(k for k in range(loud.ndim) if k != axis)
        places = np.flatnonzero(loud.any(axis=others))
        first, last = (int(places[0]), int(places[-1])) if places.size else (0, size - 1)
        margin = 1 + round(MARGIN * (last - first))
        frame.append([max(first - margin, 0), min(last + margin, size - 1)])
    return frame


def _packed_side(
    comparison: Comparison,
    side: Side,
    codes: NDArray[np.integer[Any]],
    values: NDArray[np.floating[Any]],
    colours: Colours,
    digits: int,
) -> dict[str, Any]:
    """The regions of one side and, per pixel, which of them are largest and how large.

    They are counted from 1: 0 is no region, as outside the mask.
    """
    shades = colours.regions[side]
    names = [shortened(label) for label in comparison.labels(side)]
    groups = group_numbers(comparison, side)
    if len(names) > NAMED:
        regions = comparison.overlap.side(side)
        ascending = np.argsort(regions.volumes[regions.occupied], kind="stable")
        kept = np.sort(ascending[-NAMED:])
        place = np.full(len(names), NAMED)
        place[kept] = np.arange(NAMED)
        codes = np.where(codes >= 0, place[codes], -1)
        names = [*(names[k] for k in kept), f"one of {len(names) - NAMED} small regions"]
        groups = [*(groups[k] for k in kept), -1]
        shades = (*(shades[k] for k in kept), NEUTRAL)
    wide = len(names) > 255
    stored = (codes + 1).astype("<u2" if wide else "u1")
    entry = {
        "kept": codes.shape[0],
        "names": names,
        "groups": groups,
        "colours": list(shades),
        "wide": wide,
    }
    if _crisp(comparison, side):
        return {**entry, "codes": encoded(stored, level=6), "values": ""}
    rounded = _rounded(values, digits)
    stored[rounded == 0] = 0  # a region that rounds to nothing is not told apart: zeros compress
    return {**entry, "codes": encoded(stored), "values": encoded(rounded)}


def _rounded(values: NDArray[np.floating[Any]], digits: int) -> NDArray[Any]:
    """Whole multiples of the last digit shown; the largest integer where there is no number.

    What is less than 1 is not rounded up to it, as in `formatting`.
    """
    dtype = np.dtype("u1") if digits == 2 else np.dtype("<u2")
    rounded = np.empty(values.shape, dtype)
    for k, row in enumerate(values):  # one after the other, to hold little
        scaled = np.rint(row.astype(np.float64) * 10**digits)
        scaled = np.where(row < 1, np.minimum(scaled, 10**digits - 1), scaled)
        rounded[k] = np.where(np.isnan(scaled), np.iinfo(dtype).max, scaled)
    return rounded


def _left_out(step: int) -> list[str]:
    """Which pixels the images show, where not all, as a sentence."""
    if step == 1:
        return []
    return [
        f"The images show every {ordinal(step)} pixel along each axis; all numbers are of all "
        f"pixels."
    ]


def _omissions(comparison: Comparison, digits: int) -> tuple[str, ...]:
    """What else the images do not show, as sentences."""
    sentences = []
    for side in SIDES:
        number = len(comparison.labels(side))
        if not _crisp(comparison, side) and number > KEPT:
            text = f"Of the {number} {side} regions the {KEPT} largest at a pixel are shown."
            sentences.append(text)
        if number > NAMED:
            sentences.append(f"The {NAMED} largest {side} regions are told apart in the images.")
    if not comparison.overlap.crisp:
        sentences.append(f"Probabilities and similarities are rounded to {digits} digits.")
    return tuple(sentences)
