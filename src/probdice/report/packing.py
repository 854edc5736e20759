"""The pixels of a page: few enough, rounded to the digits that are shown, and compressed.

A page carries for every n-th pixel the largest few regions of each side and f. Probabilities are
stored rounded to as many digits as the page shows, so that what it shows is what the arrays hold,
to the digits shown.
"""

import zlib
from base64 import b64encode
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.comparison import Comparison
from probdice.pictures.colours import NEUTRAL, Colours
from probdice.pictures.planes import planes_of
from probdice.pictures.views import (
    View,
    every_nth,
    group_numbers,
    images_of,
    largest,
    look,
    worst_place,
)
from probdice.sides import SIDES, Side

__all__ = ["Pixels", "pixels_of", "shortened"]

ROOM = 6_000_000  # bytes, before base64 makes four of three
MOST_PIXELS = 2**21
MOST_VALUES = 2**24  # probabilities of one side that are looked at
KEPT = 6  # regions of a pixel
NAMED = 4096  # regions of a side that the images tell apart
DIGITS = ((2**21, 4), (2**23, 3))  # up to so many probabilities: so many digits; else 2
LONGEST = 80  # characters of a name


@dataclass(frozen=True)
class Pixels:
    """What the viewer needs, ready for JSON, and what it leaves out, in words."""

    content: dict[str, Any]
    omissions: tuple[str, ...]


def pixels_of(comparison: Comparison, colours: Colours) -> Pixels:
    """The pixels of a comparison, in at most `ROOM` bytes."""
    shape = images_of(comparison).reference.shape
    channels = [len(comparison.labels(side)) for side in SIDES if not _crisp(comparison, side)]
    most = min(MOST_PIXELS, MOST_VALUES // max(channels, default=1))
    while True:
        view = look(comparison, every_nth(shape, most))
        regions = {side: largest(view, side, KEPT) for side in SIDES}
        values = sum(codes.size for codes, _ in regions.values())
        digits = next((digits for limit, digits in DIGITS if values <= limit), 2)
        for count in range(digits, 1, -1):
            sides: dict[str, dict[str, Any]] = {
                side: _packed_side(comparison, side, *regions[side], colours, count)
                for side in SIDES
            }
            f = _packed(_rounded(view.f[None], count))
            size = len(f) + sum(len(s["codes"]) + len(s["values"]) for s in sides.values())
            if size <= ROOM * 4 / 3:
                return Pixels(
                    _content(comparison, view, sides, f, count), _omissions(view, comparison, count)
                )
        # Compressed sizes grow about as the number of pixels does.
        most = max(1, int(view.f.size * 0.9 * ROOM * 4 / 3 / size))


def shortened(text: object, most: int = LONGEST) -> str:
    """A text from outside, cut where it would fill the page."""
    whole = str(text)
    return whole if len(whole) <= most else whole[: most - 1] + "…"


def _crisp(comparison: Comparison, side: Side) -> bool:
    return comparison.overlap.side(side).crisp


def _content(
    comparison: Comparison, view: View, sides: dict[str, dict[str, Any]], f: str, digits: int
) -> dict[str, Any]:
    """Everything the viewer knows."""
    reference = images_of(comparison).reference
    axes = len(view.ranges)
    return {
        "shape": [len(indices) for indices in view.ranges],
        "start": [indices.start for indices in view.ranges],
        "step": [indices.step for indices in view.ranges],
        "size": list(reference.shape),
        "here": list(worst_place(view)),
        "digits": digits,
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
            for plane in planes_of(axes, reference.geometry)
        ],
        "f": f,
        **sides,
    }


def _packed_side(
    comparison: Comparison,
    side: Side,
    codes: NDArray[np.int32],
    values: NDArray[np.floating[Any]],
    colours: Colours,
    digits: int,
) -> dict[str, Any]:
    """The regions of one side and, per pixel, which of them are largest and how large."""
    shades = colours.regions[side]
    names = [shortened(label) for label in comparison.labels(side)]
    groups = group_numbers(comparison, side)
    if len(names) > NAMED:
        regions = comparison.overlap.side(side)
        ascending = np.argsort(regions.volumes[regions.occupied], kind="stable")
        kept = np.sort(ascending[-NAMED:])
        place = np.full(len(names), NAMED)
        place[kept] = np.arange(NAMED)
        codes = np.where(codes >= 0, place[codes], 0)
        names = [*(names[k] for k in kept), f"one of {len(names) - NAMED} small regions"]
        groups = [*(groups[k] for k in kept), -1]
        shades = (*(shades[k] for k in kept), NEUTRAL)
    rounded = _rounded(values, digits)
    # A region that rounds to nothing is not told apart: zeros compress.
    wide = len(names) > 256
    stored = np.maximum(codes, 0).astype("<u2" if wide else "u1")
    stored[rounded == 0] = 0
    return {
        "kept": codes.shape[0],
        "names": names,
        "groups": groups,
        "colours": list(shades),
        "wide": wide,
        "codes": _packed(stored),
        "values": "" if _crisp(comparison, side) else _packed(rounded),
    }


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


def _packed(values: NDArray[Any]) -> str:
    # Level 4 is three times as fast as the default and 5 % larger.
    return b64encode(zlib.compress(values.tobytes(), 4)).decode("ascii")


def _omissions(view: View, comparison: Comparison, digits: int) -> tuple[str, ...]:
    """What the images do not show, as sentences."""
    sentences = []
    steps = {axis: indices.step for axis, indices in enumerate(view.ranges) if indices.step > 1}
    if steps:
        axes = ", ".join(f"every {_ordinal(n)} pixel along axis {k}" for k, n in steps.items())
        sentences.append(f"The images show {axes}; all numbers above them are of all pixels.")
    for side in SIDES:
        count = len(comparison.labels(side))
        if not _crisp(comparison, side) and count > KEPT:
            text = f"Of the {count} {side} regions the {KEPT} largest at a pixel are shown."
            sentences.append(text)
        if count > NAMED:
            sentences.append(f"The {NAMED} largest {side} regions are told apart in the images.")
    sentences.append(f"Probabilities and f are rounded to {digits} digits.")
    return tuple(sentences)


def _ordinal(n: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th") if n % 100 // 10 != 1 else "th"
    return f"{n}{ending}"
