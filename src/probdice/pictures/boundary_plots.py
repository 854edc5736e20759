"""Outlines of both sides in a slice, coloured by distance, and the distribution of distances."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from probdice.method.region_labels import listed
from probdice.method.sides import SIDES
from probdice.pictures.canvas import PlotRequest, canvas_for, colour_bar, tidy
from probdice.pictures.colours import Colours, colour_map, colours_of
from probdice.pictures.label_images import MAX_PICTURE_PIXELS, blended, checked_place
from probdice.pictures.outlines import (
    DISTANCE_COLOURS,
    Outline,
    distance_scale,
    outlines_of,
    stored_boundaries,
)
from probdice.pictures.planes import Plane, planes_of
from probdice.pictures.region_names import short_names
from probdice.pictures.views import every_nth, images_of, look, plane_through

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.figure import Figure

    from probdice.comparison.result import Comparison

__all__ = ["draw_boundaries"]

MAX_OUTLINED_GROUPS = 24  # groups with outlines in the slices
CURVES = 6  # groups with a histogram
BINS = 40
REGION_OPACITY = 0.3  # behind the outlines
MAX_NAME_LENGTH = 36  # characters per name
NO_OTHER = "#555555"  # outlines of regions that are absent from the other side


def draw_boundaries(comparison: Comparison, request: PlotRequest) -> Figure:
    """Draw both outlines, coloured by distance, and histograms of at most `CURVES` groups.

    A region that is absent from the other side has grey outlines and no histogram.
    """
    boundaries = stored_boundaries(comparison)
    outlines = outlines_of(comparison, boundaries, MAX_OUTLINED_GROUPS)
    image = images_of(comparison).reference
    if request.place is None:
        centre = outlines[0].worst if outlines else tuple(n // 2 for n in image.shape)
    else:
        centre = checked_place(image.shape, request.place)
    plane = planes_of(len(image.shape), image.geometry)[0]
    canvas = canvas_for(request, (10.5, 3.9), columns=3)
    colours = colours_of(comparison, request.palette)
    scale_end, exceeds_scale = distance_scale(outlines)
    for side_index, ax in enumerate(canvas.axes[:2]):
        _regions(ax, comparison, side_index, plane, centre, colours)
        for outline in outlines:
            dots = _contour(ax, outline, side_index, plane, centre, image.shape, scale_end)
        ax.set_title(SIDES[side_index], fontsize=10)
    if outlines:
        label = f"distance to the other outline, {boundaries.unit}"
        extend = "max" if exceeds_scale else "neither"
        colour_bar(dots, [canvas.axes[1]], label=label, extend=extend)
    curves = [outline for outline in outlines if all(map(len, outline.points))][:CURVES]
    _histograms(canvas.axes[2], comparison, curves, colours, scale_end, boundaries.unit)
    if len(image.shape) == 3:
        (slice_axis,) = plane.across(3)
        canvas.add_title(f"{plane.name}, slice {centre[slice_axis]}")
    return canvas.figure


def _regions(
    ax: Axes,
    comparison: Comparison,
    side_index: int,
    plane: Plane,
    centre: tuple[int, ...],
    colours: Colours,
) -> None:
    """Draw the regions of one side in faint colours."""
    shape = images_of(comparison).reference.shape
    box = plane_through(centre, shape, plane.rows, plane.columns)
    view = look(comparison, every_nth(shape, MAX_PICTURE_PIXELS, box))
    image = plane.drawn(blended(view, SIDES[side_index], colours), len(shape))
    height, width = shape[plane.rows], shape[plane.columns]
    ax.imshow(
        image,
        extent=(-0.5, width - 0.5, height - 0.5, -0.5),
        aspect=plane.aspect,
        alpha=REGION_OPACITY,
        interpolation="nearest",
    )
    ax.set(xticks=[], yticks=[])


def _contour(
    ax: Axes,
    outline: Outline,
    side_index: int,
    plane: Plane,
    centre: tuple[int, ...],
    shape: tuple[int, ...],
    scale_end: float,
) -> PathCollection:
    """Draw the elements of one outline in a slice, coloured by distance."""
    points, distances = outline.points[side_index], outline.distances[side_index]
    in_slice = np.ones(len(points), np.bool_)
    for axis in plane.across(len(shape)):
        in_slice &= np.abs(points[:, axis] - centre[axis]) <= 0.5
    columns, rows = points[in_slice, plane.columns], points[in_slice, plane.rows]
    if plane.flip_columns:
        columns = shape[plane.columns] - 1 - columns
    if plane.flip_rows:
        rows = shape[plane.rows] - 1 - rows
    values = distances[in_slice]
    finite = np.isfinite(values)  # infinite if the other side has no outline
    if not finite.all():
        ax.scatter(columns[~finite], rows[~finite], color=NO_OTHER, s=3, linewidths=0)
    return ax.scatter(
        columns[finite],
        rows[finite],
        c=np.minimum(values[finite], scale_end),
        s=3,
        cmap=colour_map(DISTANCE_COLOURS),
        vmin=0,
        vmax=scale_end,
        linewidths=0,
    )


def _histograms(
    ax: Axes,
    comparison: Comparison,
    outlines: list[Outline],
    colours: Colours,
    scale_end: float,
    unit: str,
) -> None:
    """Draw the share of the outlines at each distance, with one curve per group."""
    edges = np.linspace(0, scale_end, BINS + 1)
    groups = [comparison.groups[outline.group] for outline in outlines]
    pairs = [f"{listed(group.reference, 3)} ↔ {listed(group.prediction, 3)}" for group in groups]
    for outline, name in zip(outlines, short_names(pairs, MAX_NAME_LENGTH), strict=True):
        colour = colours.groups[outline.group]
        ax.stairs(outline.histogram(edges), edges, color=colour, label=name, linewidth=1.4)
    ax.set(xlim=(0, scale_end), ylim=(0, None))
    ax.set_xlabel(f"distance, {unit}", fontsize=8)
    ax.set_ylabel("share of both outlines", fontsize=8)
    tidy(ax)
    if outlines:
        ax.legend(fontsize=7, frameon=False)
