"""All slices of the consensus, the disagreement and every rater, for the page of raters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.pictures.colours import PALETTE
from probdice.pictures.rater_plots import background_channel, region_colours
from probdice.pictures.views import largest_loss
from probdice.report.encoding import shortened
from probdice.report.slice_stacks import (
    fraction_layer,
    frame_of,
    image_layer,
    region_layer,
    stack_of,
)

if TYPE_CHECKING:
    from probdice.files.background_images import BackgroundImage
    from probdice.raters import Consensus

__all__ = ["OutlinedRater", "RaterSlices", "display_names", "rater_slices"]

MAX_LAYER_PIXELS = 2**20  # largest number of pixels per layer

Parts = Iterable[tuple[tuple[slice, ...], NDArray[Any]]]


@dataclass(frozen=True)
class OutlinedRater:
    """A rater, with the layer of the rater's regions and the colour of the outlines."""

    name: str
    layer: str
    colour: str


@dataclass(frozen=True)
class RaterSlices:
    """The layers for the slider, the raters, and the end of the entropy scale in bits.

    Similar raters are adjacent. `regions` contains the codes and names of the regions whose
    outlines can be shown.
    """

    content: dict[str, Any]
    raters: tuple[OutlinedRater, ...]
    regions: tuple[tuple[int, str], ...]
    most_bits: float
    image: str
    left_out: str


def rater_slices(
    consensus: Consensus, image: BackgroundImage | None, channels: Sequence[int]
) -> RaterSlices:
    """Return the slices of all raters, and the outlines of the regions in `channels`.

    The first slice shown is the slice with the most disagreement at the pixels of the first of
    these regions or, if the raters agree there, at all pixels.
    """
    stack = stack_of(consensus.segmentation, MAX_LAYER_PIXELS)
    shape, ranges = consensus.segmentation.shape, stack.ranges
    full_image = (slice(None),) * len(shape)
    probabilities = consensus.probabilities
    bits = _selected_pixels(consensus.entropies(full_image), shape, ranges)
    most_bits = max(float(np.nanmax(bits, initial=0)), 1.0)
    colours = list(region_colours(consensus))
    background = background_channel(consensus)
    if image is not None and background is not None:
        colours[background] = ""
    inside = ~np.isnan(bits)

    in_first_region = np.zeros(bits.shape, bool)
    foreground = np.zeros(bits.shape, bool)

    def regions(parts: Parts) -> dict[str, Any]:
        codes = _selected_pixels(_most_probable(parts, len(shape)), shape, ranges).astype(np.int32)
        if background is not None:
            foreground[inside & (codes != background)] = True
        if channels:
            in_first_region[codes == channels[0]] = True
        return region_layer(stack, np.where(inside, codes, -1), colours)

    layers = {
        "consensus": regions(probabilities.pieces(full_image)),
        "disagreement": fraction_layer(stack, bits / most_bits, "fire"),
    }
    raters = []
    names = display_names(consensus.names)
    for number, k in enumerate(consensus.agreement.order):
        colour = PALETTE[number % len(PALETTE)]
        raters.append(OutlinedRater(names[k], f"rater-{number}", colour))
        parts = probabilities.rater(consensus.names[k], full_image)
        layers[f"rater-{number}"] = regions(parts)
    if np.nansum(bits[in_first_region]) > 0:
        bits = np.where(in_first_region, bits, 0.0)
    drawn_bits = stack.drawn(bits)
    start = int(np.argmax(np.nansum(drawn_bits, axis=(1, 2))))
    lines = [{"layer": rater.layer, "colour": rater.colour} for rater in raters]
    content = stack.content((start, *largest_loss(drawn_bits[start]))) | {
        "frame": frame_of(stack.drawn(foreground))[1:],
        "layers": layers,
        "image": None if image is None else image_layer(stack, image),
        "outlines": {"outlines": {"under": "consensus", "lines": lines}},
    }
    image_name = "" if image is None else shortened(image.name)
    labels = consensus.segmentation.regions
    codes = tuple((k + 1, shortened(labels[k], 40)) for k in channels)
    return RaterSlices(content, tuple(raters), codes, most_bits, image_name, stack.left_out)


def display_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of all raters for display. The name "1" becomes "Rater 1".

    Paths are shown without the folders and file names that all raters have in common.

    Examples
    --------
    >>> from probdice.report.rater_slices import display_names
    >>> display_names(["0", "1"]), display_names(["data/anna/7.png", "data/ben/7.png"])
    (('Rater 0', 'Rater 1'), ('anna', 'ben'))
    """
    paths = [re.split(r"[/\\]", name) for name in names]
    for end in (0, -1):
        while all(len(path) > 1 for path in paths) and len({path[end] for path in paths}) == 1:
            for path in paths:
                del path[end]
    endings = ["/".join(path) for path in paths]
    return tuple(f"Rater {name}" if name.isdigit() else shortened(name, 60) for name in endings)


def _most_probable(parts: Parts, axes: int) -> Parts:
    """Yield the channel of every pixel. For probabilities, this is the most probable channel."""
    for part, values in parts:
        yield part, values if values.ndim == axes else np.argmax(values, axis=0)


def _selected_pixels(
    parts: Parts, shape: tuple[int, ...], ranges: tuple[range, ...]
) -> NDArray[np.float64]:
    """Return the selected pixels of an image that is read block by block."""
    result = np.empty(tuple(len(indices) for indices in ranges))
    for part, values in parts:
        sources, targets = [], []
        for piece, n, indices in zip(part, shape, ranges, strict=True):
            extent = range(n)[piece]
            coordinates = np.array(indices)
            positions = np.flatnonzero((coordinates >= extent.start) & (coordinates < extent.stop))
            targets.append(positions)
            sources.append(coordinates[positions] - extent.start)
        result[np.ix_(*targets)] = values[np.ix_(*sources)]
    return result
