"""Images of f and of the regions, whose colours are blended by probability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from probdice.errors import InputError
from probdice.method.region_labels import listed
from probdice.pictures.canvas import Canvas, PlotRequest, canvas_for, colour_bar
from probdice.pictures.colours import SIMILARITY, Colours, colour_map, colours_of, triples
from probdice.pictures.planes import Plane, planes_of
from probdice.pictures.region_names import short_names
from probdice.pictures.views import (
    View,
    every_nth,
    images_of,
    look,
    plane_through,
    worst_place,
)
from probdice.text.formatting import decimal

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from probdice.comparison.result import Comparison
    from probdice.data.geometry import Geometry
    from probdice.method.sides import Side

__all__ = [
    "MAX_PICTURE_PIXELS",
    "blended",
    "checked_place",
    "draw_map",
    "draw_overview",
    "draw_regions",
    "draw_views",
]

MAX_PICTURE_PIXELS = 2**20
MAX_SEARCHED_PIXELS = 2**21  # searched for the worst place
LEGEND = 16  # largest number of groups in a legend
MAX_LEGEND_LENGTH = 44  # characters per legend entry
FLAT_ASPECT = 0.15  # height of a one-dimensional image, relative to its width
OUTSIDE_COLOUR = "#F3F1EC"  # colour outside the mask, hatched

Place = Sequence[int] | None


def blended(view: View, side: Side, colours: Colours) -> NDArray[np.float32]:
    """Return the RGBA colour of every pixel, Σ p · colour.

    Pixels outside the mask are transparent.
    """
    values, palette = view.sides[side], triples(colours.regions[side])
    image = np.zeros((*view.f.shape, 4), np.float32)
    if view.crisp(side):
        image[..., :3] = palette[values]
    else:
        image[..., :3] = np.tensordot(values, palette, axes=(0, 0))
    image[..., 3] = view.inside
    return np.clip(image, 0, 1)


def draw_overview(comparison: Comparison, request: PlotRequest) -> Figure:
    """Draw the reference, the prediction and f side by side."""
    return _side_by_side(comparison, request, ("reference", "prediction", "f"))


def draw_regions(comparison: Comparison, request: PlotRequest) -> Figure:
    """Draw the reference and the prediction side by side."""
    return _side_by_side(comparison, request, ("reference", "prediction"))


def draw_map(comparison: Comparison, request: PlotRequest) -> Figure:
    """Draw the map of f, where white is 1 and red is 0."""
    return _side_by_side(comparison, request, ("f",))


def draw_views(comparison: Comparison, request: PlotRequest) -> Figure:
    """Draw three orthogonal slices through one voxel, by default where the sides differ most."""
    shape, geometry = _grid(comparison)
    if len(shape) != 3:
        raise InputError(f"kind='views' requires a volume with three axes, found shape {shape}")
    centre = _place(comparison, request.place)
    planes = planes_of(3, geometry)
    columns = ("reference", "prediction", "f")
    canvas = _canvas(request, shape, planes, columns)
    axes = [canvas.axes[k : k + 3] for k in (0, 3, 6)]
    colours = colours_of(comparison, request.palette)
    for row, plane in zip(axes, planes, strict=True):
        box = plane_through(centre, shape, plane.rows, plane.columns)
        view = look(comparison, every_nth(shape, MAX_PICTURE_PIXELS, box))
        for ax, panel in zip(row, columns, strict=True):
            _show(ax, view, panel, colours, plane)
            _cross(ax, plane, centre, shape)
        row[0].set_title(_where(plane, centre), fontsize=8, loc="left", color="#555555")
    for ax, panel in zip(axes[0], columns, strict=True):
        ax.set_title(panel, fontsize=10)
    colour_bar(axes[0][-1].images[0], [row[-1] for row in axes]).set_ticks([0, 0.5, 1])
    _finish(canvas, comparison, colours, f"through ({', '.join(map(str, centre))})")
    return canvas.figure


def _side_by_side(comparison: Comparison, request: PlotRequest, columns: Sequence[str]) -> Figure:
    shape, geometry = _grid(comparison)
    plane = planes_of(len(shape), geometry)[0]
    centre = _place(comparison, request.place)
    colours = colours_of(comparison, request.palette)
    canvas = _canvas(request, shape, [plane], columns)
    box = plane_through(centre, shape, plane.rows, plane.columns)
    view = look(comparison, every_nth(shape, MAX_PICTURE_PIXELS, box))
    for ax, panel in zip(canvas.axes, columns, strict=True):
        _show(ax, view, panel, colours, plane)
        ax.set_title(f"f, mean {decimal(comparison.score)}" if panel == "f" else panel, fontsize=10)
        if panel == "f":
            colour_bar(ax.images[0], [ax]).set_ticks([0, 0.5, 1])
    where = _where(plane, centre) if len(shape) > 2 else ""
    _finish(canvas, comparison, colours if "reference" in columns else None, where)
    return canvas.figure


def _canvas(
    request: PlotRequest, shape: tuple[int, ...], planes: Sequence[Plane], columns: Sequence[str]
) -> Canvas:
    """Return one row of axes per plane. Rows have the heights of their images, within limits."""
    width = 3.2
    ratios = [_ratio(plane, shape) for plane in planes]
    heights = [min(max(width * ratio, 0.5), 2 * width) for ratio in ratios]
    size = width * len(columns) + 0.7, sum(heights) + 0.7
    return canvas_for(request, size, rows=len(planes), columns=len(columns), heights=heights)


def _show(ax: Axes, view: View, panel: str, colours: Colours, plane: Plane) -> None:
    """Draw one panel: a side in the colours of its regions, or f."""
    from matplotlib.patches import Rectangle

    axes = len(view.ranges)
    step = _step(view, plane.rows) / _step(view, plane.columns)
    # A one-dimensional image is drawn as a band.
    pixel = plane.aspect * step if plane.rows >= 0 else FLAT_ASPECT * max(view.f.size, 1)
    if not view.inside.all():
        outside = Rectangle((0, 0), 1, 1, transform=ax.transAxes, zorder=0, hatch="////")
        outside.set(facecolor=OUTSIDE_COLOUR, edgecolor="#DDD8CC", linewidth=0)
        ax.add_patch(outside)
    if panel == "f":
        f = np.ma.masked_invalid(plane.drawn(view.f, axes))
        tones = colour_map(SIMILARITY)
        ax.imshow(f, cmap=tones, vmin=0, vmax=1, aspect=pixel, interpolation="nearest")
    else:
        side: Side = "reference" if panel == "reference" else "prediction"
        image = plane.drawn(blended(view, side, colours), axes)
        ax.imshow(image, aspect=pixel, interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set(linewidth=0.5, color="#888888")
    _letters(ax, plane)


def _letters(ax: Axes, plane: Plane) -> None:
    """Write the anatomical directions at the edges, with a white outline for legibility."""
    from matplotlib.patheffects import withStroke

    coordinates = ((0.5, 0.98), (0.98, 0.5), (0.5, 0.02), (0.02, 0.5))
    across, up = ("center", "right", "center", "left"), ("top", "center", "bottom", "center")
    for letter, (x, y), ha, va in zip(plane.edges, coordinates, across, up, strict=True):
        if letter:
            text = ax.text(x, y, letter, ha=ha, va=va, fontsize=7, transform=ax.transAxes)
            text.set_path_effects([withStroke(linewidth=2, foreground="white")])


def _cross(ax: Axes, plane: Plane, centre: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Mark the position of the pixel with short lines at the edges."""
    for axis, flip, across in (
        (plane.columns, plane.flip_columns, False),
        (plane.rows, plane.flip_rows, True),
    ):
        at = (centre[axis] + 0.5) / shape[axis]
        at = 1 - at if flip else at
        for start, end in ((0, 0.08), (0.92, 1)):
            ends = (start, end), (1 - at, 1 - at)
            xs, ys = ends if across else ((at, at), ends[0])
            ax.plot(xs, ys, color="#D55E00", linewidth=1, transform=ax.transAxes)


def _finish(canvas: Canvas, comparison: Comparison, colours: Colours | None, where: str) -> None:
    """Add the legend of the groups, and write the position of the slices."""
    from matplotlib.patches import Patch

    if canvas.is_new:
        engine = canvas.figure.get_layout_engine()
        engine.set(h_pad=0.06, w_pad=0.06)  # type: ignore[union-attr, call-arg]
    canvas.add_title(where)
    if colours is None or len(comparison.groups) > LEGEND:
        return
    pairs = [
        f"{listed(group.reference, 3)} ↔ {listed(group.prediction, 3)}"
        for group in comparison.groups
    ]
    handles: list[Artist] = [
        Patch(facecolor=colour, label=name, edgecolor="#888888", linewidth=0.4)
        for name, colour in zip(short_names(pairs, MAX_LEGEND_LENGTH), colours.groups, strict=True)
    ]
    canvas.legend(handles, columns=_columns(canvas, handles))


def _columns(canvas: Canvas, handles: list[Artist]) -> int:
    """Return the number of legend columns that fit, depending on the longest name."""
    longest = max(len(str(handle.get_label())) for handle in handles)
    return max(int(canvas.figure.get_figwidth() / (0.5 + 0.068 * longest)), 1)


def _grid(comparison: Comparison) -> tuple[tuple[int, ...], Geometry | None]:
    reference = images_of(comparison).reference
    return reference.shape, reference.geometry


def _place(comparison: Comparison, place: Place) -> tuple[int, ...]:
    """Return the requested pixel, by default a pixel in the area with the lowest mean f.

    Images with fewer than three axes have a single slice, so the default is the first pixel.
    """
    shape, _ = _grid(comparison)
    if place is None:
        if len(shape) < 3:
            return tuple(0 for _ in shape)
        view = look(comparison, every_nth(shape, MAX_SEARCHED_PIXELS))
        return view.position_of(worst_place(view))
    return checked_place(shape, place)


def checked_place(shape: tuple[int, ...], place: Sequence[int]) -> tuple[int, ...]:
    """Return a pixel index as a tuple of int. Raise an error if the pixel is outside the image."""
    fits = len(place) == len(shape) and all(0 <= k < n for k, n in zip(place, shape, strict=False))
    if not fits:
        raise InputError(f"place must be a pixel index within the shape {shape}, found {place}")
    return tuple(int(k) for k in place)


def _ratio(plane: Plane, shape: tuple[int, ...]) -> float:
    """Return the height of a plane divided by its width."""
    if plane.rows < 0:
        return FLAT_ASPECT
    return plane.aspect * shape[plane.rows] / max(shape[plane.columns], 1)


def _step(view: View, axis: int) -> int:
    return view.ranges[axis].step if axis >= 0 else 1


def _where(plane: Plane, centre: tuple[int, ...]) -> str:
    across = plane.across(len(centre))
    coordinates = ", ".join(str(centre[axis]) for axis in across)
    return f"{plane.name}, slice {coordinates}"
