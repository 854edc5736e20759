"""Pictures of the numbers: the correspondence, the weights, and how f is spread."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from probdice.comparison import Comparison
from probdice.errors import InputError
from probdice.formatting import decimal, millilitres
from probdice.pictures.colours import Palette, colours_of
from probdice.pictures.layout import MATCHED, MERGED, Layout, Node, arrange, width_of
from probdice.pictures.planes import planes_of
from probdice.pictures.views import View, every_nth, images_of, look
from probdice.segmentation import Label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "draw_correspondence",
    "draw_histogram",
    "draw_slices",
    "draw_weights",
    "means_along",
]

SAMPLED = 2**21  # pixels whose f is looked at
BINS = 50
ANNOTATED = 24  # regions up to which every weight is written into its cell
TICKED = 60  # regions up to which each is named at the edge of the table
APART = 0, (2.0, 1.5)  # dashes of a pair that shares no pixel
WRITTEN = 60  # groups that fit in a drawing of the correspondence


def draw_correspondence(comparison: Comparison, palette: Palette) -> "Figure":
    """Two columns of regions; matched pairs in blue, merges in green, the wider the higher Dice."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    layout = arrange(comparison, WRITTEN)
    shades = colours_of(comparison, palette).by_label(comparison)
    figure = Figure(figsize=(6.4, 0.42 * layout.rows + 1.1), layout="constrained", dpi=120)
    ax = figure.subplots()
    x = {"reference": 0.0, "prediction": 1.0}
    for link in layout.links:
        ax.plot(
            [0, 1],
            [link.reference.row, link.prediction.row],
            color=MERGED if link.merged else MATCHED,
            linewidth=width_of(link.dice),
            linestyle=APART if link.apart else "solid",
            solid_capstyle="butt",
            zorder=1,
        )
    linked = {id(node) for link in layout.links for node in (link.reference, link.prediction)}
    for node in layout.nodes:
        ax.plot(
            x[node.side],
            node.row,
            "o",
            markersize=11,
            color=shades[node.side, node.label],
            markeredgecolor="white" if id(node) in linked else "#555555",
            zorder=2,
        )
        _write(ax, node, x[node.side])
    for side, at in x.items():
        ax.text(at, -0.9, side, ha="right" if at == 0 else "left", fontsize=10, fontweight="bold")
    ax.set(xlim=(-1.1, 2.1), ylim=(layout.rows - 0.4, -1.3))
    ax.set_axis_off()
    handles = [Line2D([], [], color=MATCHED, linewidth=3, label="matched")]
    if comparison.merges:
        handles.append(Line2D([], [], color=MERGED, linewidth=3, label="merged"))
    if layout.apart:
        share = "pair shares" if layout.apart == 1 else "pairs share"
        text = f"{layout.apart} {share} no pixel"
        handles.append(Line2D([], [], color=MATCHED, linewidth=3, linestyle=APART, label=text))
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=3,
        frameon=False,
        fontsize=8,
        title=_about(layout),
        title_fontsize=8,
    )
    return figure


def draw_weights(comparison: Comparison, palette: Palette) -> "Figure":
    """The weights of all pairs; groups are outlined in blue (matched) and green (merged)."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    rows, columns = comparison.weights.shape
    most = max(float(comparison.weights.max(initial=0)), 0.01)
    if min(rows, columns) == 0:
        raise InputError("kind='weights' needs regions on both sides")
    cell = 0.5 if max(rows, columns) <= ANNOTATED else max(0.16, 12 / max(rows, columns))
    size = min(cell * columns + 2.2, 20), min(cell * rows + 1.4, 20)
    tones = LinearSegmentedColormap.from_list("weights", ["#FFFFFF", "#5A5A5A"])
    figure = Figure(figsize=size, layout="constrained", dpi=120)
    ax = figure.subplots()
    image = ax.imshow(comparison.weights, cmap=tones, vmin=0, vmax=most, aspect="auto")
    bar = figure.colorbar(image, ax=ax, label="weight 1 − D", fraction=0.05, pad=0.03, aspect=30)
    bar.outline.set_linewidth(0.5)
    ax.set(xlabel="prediction", ylabel="reference")
    if columns <= TICKED:
        labels = [_short(label, 14) for label in comparison.prediction_labels]
        turned = 90 if max(map(len, labels)) > 3 else 0
        ax.set_xticks(range(columns), labels, rotation=turned, fontsize=8)
    if rows <= TICKED:
        labels = [_short(label, 14) for label in comparison.reference_labels]
        ax.set_yticks(range(rows), labels, fontsize=8)
    if max(rows, columns) <= ANNOTATED:
        for (i, j), weight in np.ndenumerate(comparison.weights):
            colour = "white" if weight > 0.6 * most else "black"
            ax.text(j, i, decimal(weight, 2), ha="center", va="center", fontsize=7, color=colour)
    places = (
        {label: k for k, label in enumerate(comparison.reference_labels)},
        {label: k for k, label in enumerate(comparison.prediction_labels)},
    )
    for link in arrange(comparison).links:
        i, j = places[0][link.reference.label], places[1][link.prediction.label]
        colour = MERGED if link.merged else MATCHED
        ax.add_patch(
            Rectangle((j - 0.46, i - 0.46), 0.92, 0.92, fill=False, edgecolor=colour, linewidth=2)
        )
    return figure


def draw_slices(comparison: Comparison, palette: Palette) -> "Figure":
    """The mean of f over every slice, along each axis."""
    from matplotlib.figure import Figure

    view = _sampled(comparison)
    axes = len(view.ranges)
    if axes == 0:
        raise InputError("kind='slices' needs an image with an axis")
    figure = Figure(figsize=(6.4, 1.7 * axes + 0.4), layout="constrained", dpi=120)
    planes = planes_of(axes, images_of(comparison).reference.geometry)
    names = {plane.across(axes): plane.name for plane in planes}
    means = [means_along(view, axis) for axis in range(axes)]
    lowest = min(float(np.nanmin(mean)) for mean in means)
    bottom = min(np.floor(10 * lowest - 0.2) / 10, 0.9) if lowest > 0.12 else -0.02
    for axis, ax in enumerate(figure.subplots(axes, 1, squeeze=False)[:, 0]):
        ax.axhline(comparison.score, color="#999999", linewidth=0.8, linestyle=(0, (4, 3)))
        marker = "o" if len(view.ranges[axis]) < 40 else None
        ax.plot(list(view.ranges[axis]), means[axis], color=MATCHED, marker=marker, ms=3)
        name = names.get((axis,), f"axis {axis}")
        ax.set(
            ylim=(bottom, 1 + 0.02 * (1 - bottom)),
            xlabel=f"{name} slice" if "axis" not in name else name,
        )
        ax.set_ylabel("mean f")
        _plain(ax)
    _say_sampled(figure, view)
    return figure


def draw_histogram(comparison: Comparison, palette: Palette) -> "Figure":
    """How many pixels have which f."""
    from matplotlib.figure import Figure

    view = _sampled(comparison)
    figure = Figure(figsize=(6.4, 3.0), layout="constrained", dpi=120)
    ax = figure.subplots()
    values = view.f[view.inside]
    ax.hist(
        values,
        bins=BINS,
        range=(0, 1),
        weights=np.full(values.size, 1 / values.size),
        color=MATCHED,
    )
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
    _plain(ax)
    _say_sampled(figure, view)
    return figure


def means_along(view: View, axis: int) -> NDArray[np.float64]:
    """The mean of f over each slice across an axis; NaN where a slice has no pixel in Ω."""
    across = tuple(k for k in range(view.f.ndim) if k != axis)
    count = view.inside.sum(axis=across)
    total = np.where(view.inside, view.f, 0).sum(axis=across, dtype=np.float64)
    means: NDArray[np.float64] = np.full(count.shape, np.nan)
    np.divide(total, count, out=means, where=count > 0)
    return means


def _sampled(comparison: Comparison) -> View:
    return look(comparison, every_nth(images_of(comparison).reference.shape, SAMPLED))


def _about(layout: Layout) -> str:
    """What the widths mean, and what found no room."""
    text = "the wider, the higher the Dice of the group"
    return f"{text}; and {layout.hidden} more groups" if layout.hidden else text


def _say_sampled(figure: "Figure", view: View) -> None:
    steps = sorted({indices.step for indices in view.ranges} - {1})
    if steps:
        text = f"of every {' or '.join(f'{n}.' for n in steps)} pixel along an axis"
        figure.suptitle(text, fontsize=8, color="#555555")


def _write(ax: "Axes", node: Node, x: float) -> None:
    """The label and the volume beside a region."""
    left = x == 0
    at, align = (x - 0.07, "right") if left else (x + 0.07, "left")
    volume = f"{node.volume:,.0f} {'pixel' if node.volume == 1 else 'pixels'}"
    size = millilitres(node.volume, node.pixel_volume)
    volume = f"{volume} ({size})" if size else volume
    volume = volume.replace(",", "\u2009")
    ax.text(at, node.row - 0.02, _short(node.label, 24), ha=align, va="bottom", fontsize=9)
    ax.text(at, node.row + 0.06, volume, ha=align, va="top", fontsize=7, color="#666666")


def _plain(ax: "Axes") -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=8)


def _short(label: Label, most: int) -> str:
    """A label that fits; Matplotlib would read dollars as mathematics."""
    text = " ".join(str(label).split())
    return (text if len(text) <= most else text[: most - 1] + "…").replace("$", r"\$")
