"""Charts of the correspondence and the distribution of f."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.errors import InputError
from probdice.method.sides import SIDES, Side
from probdice.pictures.canvas import PAGE, Canvas, PlotRequest, canvas_for, tidy
from probdice.pictures.colours import colours_of
from probdice.pictures.layout import MATCHED, MERGED, Layout, Node, arrange, width_of
from probdice.pictures.planes import planes_of
from probdice.pictures.region_names import short_names
from probdice.pictures.views import View, every_nth, images_of, look
from probdice.text.formatting import decimal, millilitres, percent

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from probdice.comparison.result import Comparison

__all__ = ["draw_correspondence", "draw_histogram", "draw_slices", "means_along"]

MAX_DRAWN_PIXELS = 2**21  # whose f is drawn
BINS = 50
NO_OVERLAP_DASHES = 0, (2.0, 1.5)  # dash pattern for pairs that share no pixel
EXTRA_HEIGHT = 1.1  # inches for headings and legend
TWO_LINE_ROW, ONE_LINE_ROW = 0.42, 0.17  # inches per row if the volume is below or next to the name
MAX_NAME_LENGTH = 24  # characters per name
SIDE: dict[Side, float] = {"reference": 0.0, "prediction": 1.0}  # x coordinates of the columns


def draw_correspondence(comparison: Comparison, request: PlotRequest) -> Figure:
    """Draw two columns of regions, with blue lines for matched pairs and green lines for merges."""
    height = _height(request)
    layout = arrange(comparison, rows=max(int((height - EXTRA_HEIGHT) / ONE_LINE_ROW), 1))
    roomy = layout.rows * TWO_LINE_ROW <= height - EXTRA_HEIGHT
    row = TWO_LINE_ROW if roomy else ONE_LINE_ROW
    canvas = canvas_for(request, (6.4, row * layout.rows + EXTRA_HEIGHT))
    ax = canvas.axes[0]
    shades = colours_of(comparison, request.palette).by_label(comparison)
    for link in layout.links:
        ax.plot(
            [0, 1],
            [link.reference.row, link.prediction.row],
            color=MERGED if link.merged else MATCHED,
            linewidth=width_of(link.dice) * (1 if roomy else 0.7),
            linestyle=NO_OVERLAP_DASHES if link.apart else "solid",
            solid_capstyle="butt",
            zorder=1,
        )
    linked_nodes = {node for link in layout.links for node in (link.reference, link.prediction)}
    for node in layout.nodes:
        ax.plot(
            SIDE[node.side],
            node.row,
            "o",
            markersize=11 if roomy else 6.5,
            color=shades[node.side, node.label],
            markeredgecolor="white" if node in linked_nodes else "#555555",
            zorder=2,
        )
    for side in SIDES:
        nodes = [node for node in layout.nodes if node.side == side]
        _write(ax, side, nodes, canvas.inches()[0], roomy)
    ax.set(xlim=(-1.1, 2.1), ylim=(layout.rows - 0.4, -1.3 if roomy else -3))
    ax.set_axis_off()
    _explain(canvas, comparison, layout)
    return canvas.figure


def draw_slices(comparison: Comparison, request: PlotRequest) -> Figure:
    """Draw the mean of f per slice along each axis."""
    view = _sampled(comparison)
    axes = len(view.ranges)
    if axes == 0:
        raise InputError("kind='slices' requires an image with at least one axis")
    canvas = canvas_for(request, (6.4, 1.7 * axes + 0.4), rows=axes)
    planes = planes_of(axes, images_of(comparison).reference.geometry)
    names = {plane.across(axes): plane.name for plane in planes}
    means = [means_along(view, axis) for axis in range(axes)]
    lowest = min(float(np.nanmin(mean)) for mean in means)
    bottom = min(np.floor(10 * lowest - 0.2) / 10, 0.9) if lowest > 0.12 else -0.02
    for axis, ax in enumerate(canvas.axes):
        ax.axhline(comparison.score, color="#999999", linewidth=0.8, linestyle=(0, (4, 3)))
        marker = "o" if len(view.ranges[axis]) < 40 else None
        ax.plot(list(view.ranges[axis]), means[axis], color=MATCHED, marker=marker, ms=3)
        name = names.get((axis,), f"axis {axis}")
        ax.set(
            ylim=(bottom, 1 + 0.02 * (1 - bottom)),
            xlabel=f"{name} slice" if "axis" not in name else name,
        )
        ax.set_ylabel("mean f")
        tidy(ax)
    _report_sampling(canvas, view)
    return canvas.figure


def draw_histogram(comparison: Comparison, request: PlotRequest) -> Figure:
    """Draw the distribution of f over the pixels.

    For two label maps, f has only two values. In this case, the picture has two bars and does not
    require the images.
    """
    if comparison.overlap.crisp:
        return _draw_agreement(comparison, request)
    view = _sampled(comparison)
    canvas = canvas_for(request, (6.4, 3.0))
    ax = canvas.axes[0]
    values = view.f[view.inside]
    share = np.full(values.size, 1 / values.size)
    ax.hist(values, bins=BINS, range=(0, 1), weights=share, color=MATCHED)
    ax.axvline(comparison.score, color="#D55E00", linewidth=1.2)
    ax.annotate(
        f"score {decimal(comparison.score)}",
        (comparison.score, 0.98),
        xycoords=("data", "axes fraction"),
        xytext=(-4 if comparison.score > 0.5 else 4, 0),
        textcoords="offset points",
        ha="right" if comparison.score > 0.5 else "left",
        va="top",
        fontsize=8,
        color="#A84300",
    )
    ax.set(xlim=(0, 1), yscale="log", xlabel="f", ylabel="share of the pixels")
    tidy(ax)
    _report_sampling(canvas, view)
    return canvas.figure


def _draw_agreement(comparison: Comparison, request: PlotRequest) -> Figure:
    """Draw the shares of pixels at which two label maps agree or differ."""
    canvas = canvas_for(request, (3.6, 3.0))
    ax = canvas.axes[0]
    # 1 − f of a pixel that differs, which is 1 unless the similarity has a floor.
    unit = comparison.overlap.unit
    differing = round((1 - comparison.score) * comparison.pixels / unit)
    names = [f"f = {1 - unit:.2g}\ndiffer", "f = 1\nagree"]
    counts = [differing, comparison.pixels - differing]
    shares = [count / comparison.pixels for count in counts]
    bars = ax.bar(names, shares, color=["#D55E00", MATCHED], width=0.6)
    for bar, share, count in zip(bars, shares, counts, strict=True):
        ax.annotate(
            f"{percent(share, 2)}\n{count:,} {'pixel' if count == 1 else 'pixels'}",
            (bar.get_x() + bar.get_width() / 2, share),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=8,
        )
    ax.set(ylim=(0, 1.2), yticks=[0, 0.25, 0.5, 0.75, 1], ylabel="share of the pixels")
    tidy(ax)
    return canvas.figure


def means_along(view: View, axis: int) -> NDArray[np.float64]:
    """Return the mean of f per slice along an axis; NaN for a slice without compared pixels."""
    across = tuple(k for k in range(view.f.ndim) if k != axis)
    count = view.inside.sum(axis=across)
    total = np.where(view.inside, view.f, 0).sum(axis=across, dtype=np.float64)
    means: NDArray[np.float64] = np.full(count.shape, np.nan)
    np.divide(total, count, out=means, where=count > 0)
    return means


def _sampled(comparison: Comparison) -> View:
    return look(comparison, every_nth(images_of(comparison).reference.shape, MAX_DRAWN_PIXELS))


def _height(request: PlotRequest) -> float:
    """Return the available height of the axes in inches."""
    if request.axes is not None:
        ax = request.axes[0]
        return float(ax.get_window_extent().height / ax.figure.dpi) + EXTRA_HEIGHT / 2
    return PAGE if request.figsize is None else request.figsize[1]


def _explain(canvas: Canvas, comparison: Comparison, layout: Layout) -> None:
    """Add a legend for the lines, and report the number of groups that do not fit."""
    from matplotlib.lines import Line2D

    handles: list[Artist] = [Line2D([], [], color=MATCHED, linewidth=3, label="matched")]
    if comparison.merges:
        handles.append(Line2D([], [], color=MERGED, linewidth=3, label="merged"))
    if layout.apart:
        share = "pair shares" if layout.apart == 1 else "pairs share"
        text = f"{layout.apart:,} {share} no pixel"
        handles.append(
            Line2D([], [], color=MATCHED, linewidth=3, linestyle=NO_OVERLAP_DASHES, label=text)
        )
    lines = ["wider lines: higher Dice of the group"]
    if layout.hidden:
        total = len(comparison.groups)
        omission_note = f"{total - layout.hidden:,} of {total:,} groups"
        if layout.floor is not None:
            omission_note = (
                f"{omission_note}, those with the lowest matched Dice; all other matched groups "
                f"have a Dice of {decimal(layout.floor)} or more"
            )
        lines.append(omission_note)
        unmatched = {side: len(labels) for side, labels in comparison.unmatched.items()}
        counts = [f"{count:,} of the {side}" for side, count in unmatched.items() if count]
        if counts:
            lines.append(f"unmatched: {' and '.join(counts)}")
    canvas.legend(handles, columns=3, title="\n".join(lines))


def _report_sampling(canvas: Canvas, view: View) -> None:
    steps = sorted({indices.step for indices in view.ranges} - {1})
    if steps:
        canvas.add_title(f"subsampled: one in {' or '.join(f'{n}' for n in steps)} pixels per axis")


def _write(ax: Axes, side: Side, nodes: list[Node], width: float, roomy: bool) -> None:
    """Write the heading of a column, and the names and volumes of its regions."""
    at, align, outwards = (0.0, "right", -1) if side == "reference" else (1.0, "left", 1)
    column = 1.1 / 3.2 * width  # inches next to the dots
    max_length = int(column / 0.085) if roomy else int((column - 0.5) / 0.065)
    names = short_names([node.label for node in nodes], max(min(max_length, MAX_NAME_LENGTH), 4))
    grey: dict[str, Any] = {"fontsize": 7, "color": "#666666"}
    for node, name in zip(nodes, names, strict=True):
        text = name if node.count == 1 else f"{node.count:,} more"
        if roomy:
            x = at + 0.07 * outwards
            ax.text(x, node.row - 0.02, text, ha=align, va="bottom", fontsize=9)
            ax.text(x, node.row + 0.06, _volume(node), ha=align, va="top", **grey)
        else:
            x = at + 0.05 * outwards
            ax.text(x, node.row, text, ha=align, va="center_baseline", fontsize=7)
            volume = millilitres(node.volume, node.pixel_volume).removesuffix(" mL")
            volume = volume or f"{node.volume:,.0f}"
            edge = at + 1.1 * outwards
            ax.text(edge, node.row, volume, ha=_across(align), va="center_baseline", **grey)
    ax.text(at, -0.9 if roomy else -2, side, ha=align, fontsize=10, fontweight="bold")
    if not roomy:
        has_pixel_volume = bool(nodes) and nodes[0].pixel_volume is not None
        unit = "mL" if has_pixel_volume else "pixels"
        ax.text(at + 1.1 * outwards, -0.8, unit, ha=_across(align), **grey)


def _across(align: str) -> str:
    return "left" if align == "right" else "right"


def _volume(node: Node) -> str:
    """Return the volume in pixels, and in millilitres if the pixel size is known."""
    volume = f"{node.volume:,.0f} {'pixel' if node.volume == 1 else 'pixels'}"
    size = millilitres(node.volume, node.pixel_volume)
    volume = f"{volume} ({size})" if size else volume
    return volume.replace(",", "\u2009")
