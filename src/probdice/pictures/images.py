"""Pictures of the pixels: regions blended by probability, and the map of f."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.comparison import Comparison, Group
from probdice.errors import InputError
from probdice.formatting import decimal
from probdice.geometry import Geometry
from probdice.matching import listed
from probdice.pictures.colours import Colours, Palette, colours_of, triples
from probdice.pictures.planes import Plane, planes_of
from probdice.pictures.views import (
    View,
    every_nth,
    images_of,
    look,
    plane_through,
    worst_place,
)
from probdice.sides import Side

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["blended", "draw_map", "draw_overview", "draw_regions", "draw_views"]

MOST = 2**20  # pixels of a picture
SEARCHED = 2**21  # pixels among which the worst place is sought
LEGEND = 16  # groups a legend holds
OUTSIDE = "#F3F1EC"  # where nothing was compared, hatched

Place = Sequence[int] | None


def blended(view: View, side: Side, colours: Colours) -> NDArray[np.float32]:
    """Red, green, blue and opacity of every pixel: Σ p·colour, transparent outside Ω."""
    values, palette = view.sides[side], triples(colours.regions[side])
    image = np.zeros((*view.f.shape, 4), np.float32)
    if view.crisp(side):
        image[..., :3] = palette[values]
    else:
        image[..., :3] = np.tensordot(values, palette, axes=(0, 0))
    image[..., 3] = view.inside
    return np.clip(image, 0, 1)


def draw_overview(comparison: Comparison, place: Place, palette: Palette) -> "Figure":
    """Reference, prediction and f side by side."""
    return _side_by_side(comparison, place, palette, ("reference", "prediction", "f"))


def draw_regions(comparison: Comparison, place: Place, palette: Palette) -> "Figure":
    """Reference and prediction side by side."""
    return _side_by_side(comparison, place, palette, ("reference", "prediction"))


def draw_map(comparison: Comparison, place: Place, palette: Palette) -> "Figure":
    """The map of f: white 1, black 0."""
    return _side_by_side(comparison, place, palette, ("f",))


def draw_views(comparison: Comparison, place: Place, palette: Palette) -> "Figure":
    """Three orthogonal views of a volume through one place, the worst one by default."""
    shape = _shape(comparison)
    if len(shape) != 3:
        raise InputError(f"kind='views' shows volumes, found an image of shape {shape}")
    centre = _place(comparison, place)
    planes = planes_of(3, _geometry(comparison))
    columns = ("reference", "prediction", "f")
    figure, axes = _canvas(comparison, shape, planes, columns)
    colours = colours_of(comparison, palette)
    for row, plane in zip(axes, planes, strict=True):
        view = look(comparison, every_nth(shape, MOST, _box(plane, centre, shape)))
        for ax, what in zip(row, columns, strict=True):
            _show(ax, view, what, colours, plane)
            _cross(ax, plane, centre, shape)
        row[0].set_title(_where(plane, centre), fontsize=8, loc="left", color="#555555")
    for ax, what in zip(axes[0], columns, strict=True):
        ax.set_title(what, fontsize=10)
    _scale(figure, list(axes[:, -1]))
    _finish(figure, comparison, colours, f"through {_index(centre)}")
    return figure


def _side_by_side(
    comparison: Comparison, place: Place, palette: Palette, columns: Sequence[str]
) -> "Figure":
    shape = _shape(comparison)
    plane = planes_of(len(shape), _geometry(comparison))[0]
    centre = _place(comparison, place)
    colours = colours_of(comparison, palette)
    figure, ((*axes,),) = _canvas(comparison, shape, [plane], columns)
    view = look(comparison, every_nth(shape, MOST, _box(plane, centre, shape)))
    for ax, what in zip(axes, columns, strict=True):
        _show(ax, view, what, colours, plane)
        ax.set_title(f"f, mean {decimal(comparison.score)}" if what == "f" else what, fontsize=10)
        if what == "f":
            _scale(figure, [ax])
    where = _where(plane, centre) if len(shape) > 2 else ""
    _finish(figure, comparison, colours if "reference" in columns else None, where)
    return figure


def _canvas(
    comparison: Comparison, shape: tuple[int, ...], planes: Sequence[Plane], columns: Sequence[str]
) -> tuple["Figure", Any]:
    """A figure with one row of axes a plane, of heights that suit the image."""
    from matplotlib.figure import Figure

    width = 3.2
    ratios = [_ratio(plane, shape) for plane in planes]
    heights = [min(max(width * ratio, 0.5), 2 * width) for ratio in ratios]
    figure = Figure(
        figsize=(width * len(columns) + 0.7, sum(heights) + 0.7), layout="constrained", dpi=120
    )
    axes = figure.subplots(
        len(planes), len(columns), squeeze=False, gridspec_kw={"height_ratios": heights}
    )
    return figure, axes


def _show(ax: "Axes", view: View, what: str, colours: Colours, plane: Plane) -> None:
    """One panel: a side by its regions' colours, or f."""
    from matplotlib.patches import Rectangle

    axes = len(view.ranges)
    step = _step(view, plane.rows) / _step(view, plane.columns)
    pixel = plane.aspect * step if plane.rows >= 0 else _row_height(view, plane)
    if not view.inside.all():
        outside = Rectangle((0, 0), 1, 1, transform=ax.transAxes, zorder=0, hatch="////")
        outside.set(facecolor=OUTSIDE, edgecolor="#DDD8CC", linewidth=0)
        ax.add_patch(outside)
    if what == "f":
        f = np.ma.masked_invalid(plane.drawn(view.f, axes))
        ax.imshow(f, cmap="gray", vmin=0, vmax=1, aspect=pixel, interpolation="nearest")
    else:
        side: Side = "reference" if what == "reference" else "prediction"
        image = plane.drawn(blended(view, side, colours), axes)
        ax.imshow(image, aspect=pixel, interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set(linewidth=0.5, color="#888888")
    _letters(ax, plane)


def _scale(figure: "Figure", axes: list["Axes"]) -> None:
    """What the greys of f mean, once."""
    bar = figure.colorbar(axes[0].images[0], ax=axes, shrink=0.75, pad=0.03, aspect=24)
    bar.set_ticks([0, 0.5, 1])
    bar.ax.tick_params(labelsize=8, length=2)
    bar.outline.set_linewidth(0.5)


def _letters(ax: "Axes", plane: Plane) -> None:
    """What lies at the edges, with a halo so that it is read on any colour."""
    from matplotlib.patheffects import withStroke

    places = ((0.5, 0.98), (0.98, 0.5), (0.5, 0.02), (0.02, 0.5))
    across, up = ("center", "right", "center", "left"), ("top", "center", "bottom", "center")
    for letter, (x, y), ha, va in zip(plane.edges, places, across, up, strict=True):
        if letter:
            text = ax.text(x, y, letter, ha=ha, va=va, fontsize=7, transform=ax.transAxes)
            text.set_path_effects([withStroke(linewidth=2, foreground="white")])


def _cross(ax: "Axes", plane: Plane, centre: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Thin lines through the place, open in the middle."""
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


def _finish(
    figure: "Figure",
    comparison: Comparison,
    colours: Colours | None,
    where: str,
) -> None:
    """The legend of the groups, and where the slices lie."""
    from matplotlib.patches import Patch

    figure.get_layout_engine().set(h_pad=0.06, w_pad=0.06)  # type: ignore[union-attr, call-arg]
    if where:
        figure.suptitle(where, fontsize=9, color="#555555")
    if colours is None or len(comparison.groups) > LEGEND:
        return
    handles = [
        Patch(facecolor=colour, label=_pair(group), edgecolor="#888888", linewidth=0.4)
        for group, colour in zip(comparison.groups, colours.groups, strict=True)
    ]
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=min(4, len(handles)),
        fontsize=8,
        frameon=False,
        handlelength=1,
        handleheight=1,
    )


def _pair(group: Group) -> str:
    """A group in a legend: the labels of both sides, which may be any text at all."""
    text = f"{listed(group.reference, 3)} ↔ {listed(group.prediction, 3)}"
    text = " ".join(text.split())
    return (text if len(text) <= 44 else text[:43] + "…").replace("$", r"\$")


def _shape(comparison: Comparison) -> tuple[int, ...]:
    return images_of(comparison).reference.shape


def _geometry(comparison: Comparison) -> Geometry | None:
    return images_of(comparison).reference.geometry


def _place(comparison: Comparison, place: Place) -> tuple[int, ...]:
    """A pixel that is asked for, or the worst place."""
    shape = _shape(comparison)
    if place is None:
        if len(shape) < 3:
            return tuple(0 for _ in shape)
        view = look(comparison, every_nth(shape, SEARCHED))
        return view.place(worst_place(view))
    fits = len(place) == len(shape) and all(0 <= k < n for k, n in zip(place, shape, strict=False))
    if not fits:
        raise InputError(f"place must be the index of a pixel of shape {shape}, found {place}")
    return tuple(int(k) for k in place)


def _box(plane: Plane, centre: tuple[int, ...], shape: tuple[int, ...]) -> tuple[range, ...]:
    return plane_through(centre, shape, plane.rows, plane.columns)


def _ratio(plane: Plane, shape: tuple[int, ...]) -> float:
    """Height by width of a plane."""
    if plane.rows < 0:
        return 0.15
    return plane.aspect * shape[plane.rows] / max(shape[plane.columns], 1)


def _row_height(view: View, plane: Plane) -> float:
    """The height of a row that stands alone, in pixels: enough to see it."""
    return 0.15 * max(view.f.size, 1)


def _step(view: View, axis: int) -> int:
    return view.ranges[axis].step if axis >= 0 else 1


def _where(plane: Plane, centre: tuple[int, ...]) -> str:
    across = plane.across(len(centre))
    places = ", ".join(str(centre[axis]) for axis in across)
    return f"{plane.name}, slice {places}"


def _index(centre: tuple[int, ...]) -> str:
    return f"({', '.join(str(k) for k in centre)})"
