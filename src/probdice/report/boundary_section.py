"""The section about boundary distances on a page, and the distances shown in the images."""

from __future__ import annotations

from dataclasses import dataclass
from math import isinf, isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from probdice.method.region_labels import listed
from probdice.options.boundary_distances import distance_definitions, share_definitions
from probdice.pictures.colours import Colours
from probdice.pictures.outlines import Outline, distance_scale, outlines_of
from probdice.report.encoding import encoded, shortened
from probdice.text.formatting import decimal

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison
    from probdice.metrics.boundary_result import Boundaries

__all__ = ["BoundaryRow", "BoundarySection", "boundary_section"]

MAX_OUTLINED_GROUPS = 24  # groups with a histogram and outlines in the images
MAX_TABLE_ROWS = 2000  # groups
BINS = 32  # number of bins of a histogram
HEIGHT = 20  # height of a histogram


@dataclass(frozen=True)
class BoundaryRow:
    """One group, with its boundary measures, histogram, and pixel with the largest distance."""

    number: int
    reference: str
    prediction: str
    colour: str
    numbers: tuple[tuple[str, float, str], ...]  # name, value to sort by, text
    bars: tuple[tuple[int, float, float], ...]  # left, top and height
    place: str


@dataclass(frozen=True)
class BoundarySection:
    """The data of the section. `most` is the distance at which the histograms end."""

    unit: str
    names: tuple[str, ...]
    over: str  # the groups that are included in means
    means: tuple[tuple[str, str], ...]
    sentences: tuple[str, ...]
    rows: tuple[BoundaryRow, ...]
    hidden: int
    most: str
    definitions: str
    share_definitions: str


def boundary_section(
    comparison: Comparison, colours: Colours, viewer: dict[str, Any] | None
) -> BoundarySection | None:
    """Return the section, or None if boundaries were not computed.

    If `viewer` is not None, the distances at the outlines are added to it.
    """
    boundaries: Boundaries | None = comparison.numbers.known("boundaries")
    if boundaries is None:
        return None
    outlines = [] if viewer is None else outlines_of(comparison, boundaries, MAX_OUTLINED_GROUPS)
    scale_end, exceeds_scale = distance_scale(outlines)
    if viewer is not None and outlines:
        viewer["distances"] = _distances(outlines, viewer, scale_end) | {
            "most": scale_end,
            "above": exceeds_scale,
            "unit": boundaries.unit,
        }
    step = 1 if viewer is None else viewer["step"]
    by_group = {outline.group: outline for outline in outlines}
    largest = np.nan_to_num(boundaries["hd"], nan=-1.0)
    order = np.argsort(-largest, kind="stable").tolist()
    columns = {name: boundaries[name].tolist() for name in boundaries.names}
    rows = [
        BoundaryRow(
            k,
            shortened(listed(boundaries.groups.reference[k]), 300),
            shortened(listed(boundaries.groups.prediction[k]), 300),
            colours.groups[k],
            tuple((name, values[k], _text(values[k])) for name, values in columns.items()),
            _bars(by_group[k], scale_end) if k in by_group else (),
            ".".join(str(index // step) for index in by_group[k].worst) if k in by_group else "",
        )
        for k in order[:MAX_TABLE_ROWS]
    ]
    return BoundarySection(
        boundaries.unit,
        boundaries.names,
        "groups" if comparison.options.background is None else "foreground groups",
        tuple((name, _text(mean.mean)) for name, mean in boundaries.means.items()),
        _sentences(boundaries),
        tuple(rows),
        len(boundaries) - len(rows),
        f"{decimal(scale_end, 1)} {boundaries.unit}{' or more' if exceeds_scale else ''}",
        distance_definitions(),
        share_definitions("a tolerance"),
    )


def _distances(outlines: list[Outline], viewer: dict[str, Any], scale_end: float) -> dict[str, Any]:
    """Return the largest distance at every outline pixel, quantised to 255 steps."""
    shape = tuple(viewer["shape"])
    points = np.concatenate([points for outline in outlines for points in outline.points])
    distances = np.concatenate(
        [distances for outline in outlines for distances in outline.distances]
    )
    indices = (np.floor(points + 0.5) // viewer["step"]).astype(np.int64)
    indices = np.clip(indices, 0, np.array(shape) - 1)
    flat = np.ravel_multi_index(tuple(indices.T), shape)
    steps = 1 + np.rint(254 * np.minimum(distances / scale_end, 1)).astype(np.uint8)
    order = np.lexsort((steps, flat))
    last = np.append(np.diff(flat[order]) > 0, True)
    return {
        "pixels": encoded(flat[order][last].astype("<u4")),
        "values": encoded(steps[order][last]),
    }


def _bars(outline: Outline, scale_end: float) -> tuple[tuple[int, float, float], ...]:
    shares = outline.histogram(np.linspace(0, scale_end, BINS + 1))
    heights = HEIGHT * shares / (shares.max() or 1.0)
    return tuple(
        (k, round(HEIGHT - height, 2), round(height, 2))
        for k, height in enumerate(heights.tolist())
        if height > 0.005
    )


def _sentences(boundaries: Boundaries) -> tuple[str, ...]:
    sentences = []
    if boundaries.levels:
        levels = ", ".join(f"{level:g}" for level in boundaries.levels)
        sentences.append(f"Each value is the mean over the probability levels {levels}.")
    missing = boundaries.means["hd"].infinite
    if missing:
        groups = "group is" if missing == 1 else "groups are"
        where = "on one side at one or more levels" if boundaries.levels else "on one side"
        if boundaries.infinite is None:
            effect = "so means of distances are infinite"
        else:
            effect = f"and counted as {boundaries.infinite:g} {boundaries.unit}"
        sentences.append(f"{missing} {groups} missing {where}, {effect}.")
    return tuple(sentences)


def _text(value: float) -> str:
    return "–" if isnan(value) else "∞" if isinf(value) else decimal(value)
