"""The validated arguments of `plot`, and the axes on which a picture is drawn."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal

from probdice.errors import InputError
from probdice.pictures.colours import Palette

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "DOTS",
    "PAGE",
    "TITLE_COLOUR",
    "Canvas",
    "PlotRequest",
    "canvas_for",
    "colour_bar",
    "request_of",
    "tidy",
]

TITLE_COLOUR = "#555555"  # colour of text next to a picture
DPI = 120
PAGE = 9.0  # maximum default height of a figure in inches
DOTS = 2.4  # size of a dot in points


@dataclass(frozen=True)
class PlotRequest:
    """The validated arguments of `plot`. `axes` is None for a new figure."""

    kind: str
    axes: "tuple[Axes, ...] | None" = None
    figsize: tuple[float, float] | None = None
    place: Sequence[int] | None = None
    palette: Palette = "safe"


@dataclass(frozen=True)
class Canvas:
    """The axes of a picture, row by row. `is_new` is True if `canvas_for` created the figure."""

    figure: "Figure"
    axes: "tuple[Axes, ...]"
    is_new: bool

    def inches(self, around: tuple[float, float] = (0.1, 0.1)) -> tuple[float, float]:
        """Return the approximate width and height of the axes in inches.

        The margins `around`, horizontal and vertical, are subtracted from the size of a new figure.
        """
        if self.is_new:
            width, height = self.figure.get_size_inches()
            return max(width - around[0], 0.5), max(height - around[1], 0.5)
        box, dpi = self.axes[0].get_window_extent(), self.figure.dpi
        return box.width / dpi, box.height / dpi

    def add_title(self, text: str) -> None:
        """Add a line of text above a new figure, or above the first of the given axes."""
        if self.is_new:
            self.figure.suptitle(text, fontsize=9, color=TITLE_COLOUR)
        elif text:
            first = self.axes[0]
            above = first.get_title()
            first.set_title(f"{text}\n{above}" if above else text, fontsize=9)

    def legend(self, handles: "list[Artist]", *, columns: int, title: str | None = None) -> None:
        """Add a legend below a new figure, or below the last of the given axes."""
        properties: dict[str, Any] = {
            "handles": handles,
            "ncols": max(min(columns, len(handles)), 1),
            "frameon": False,
            "fontsize": 8,
            "title": None if title is None else self._wrapped(title),
            "title_fontsize": 8,
        }
        if self.is_new:
            legend = self.figure.legend(loc="outside lower center", **properties)
        else:
            ax = self.axes[-1]
            legend = ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.02), **properties)
        legend.get_title().set_multialignment("center")

    def _wrapped(self, text: str) -> str:
        """Wrap text to the width of the figure, or to 1.5 times the width of given axes."""
        width = self.figure.get_figwidth() if self.is_new else 1.5 * self.inches()[0]
        return "\n".join(
            line for part in text.splitlines() for line in wrap(part, max(int(width / 0.07), 12))
        )


def request_of(
    kind: str,
    *,
    ax: "Axes | Iterable[Axes] | None",
    figsize: tuple[float, float] | None,
    place: Sequence[int] | None = None,
    palette: Palette = "safe",
) -> PlotRequest:
    """Validate the arguments of `plot`."""
    if ax is not None and figsize is not None:
        raise InputError("figsize is the size of a new figure. Pass ax or figsize, not both.")
    if figsize is not None:
        try:
            width, height = (float(length) for length in figsize)
        except (TypeError, ValueError):
            width = height = 0.0
        if not (0 < width < 1000 and 0 < height < 1000):
            raise InputError(f"figsize must be a width and a height in inches, found {figsize!r}")
        figsize = width, height
    return PlotRequest(kind, None if ax is None else _as_axes(ax), figsize, place, palette)


def canvas_for(
    request: PlotRequest,
    size: tuple[float, float],
    *,
    rows: int = 1,
    columns: int = 1,
    heights: Sequence[float] | None = None,
) -> Canvas:
    """Return the given axes, or the axes of a new figure.

    `size` is the default size of the figure in inches. `heights` are the relative heights of the
    rows. An `InputError` is raised if the number of given axes differs from the number of panels.
    """
    from matplotlib.figure import Figure

    if request.axes is not None:
        if len(request.axes) != rows * columns:
            panels = "panel" if rows * columns == 1 else "panels"
            raise InputError(
                f"kind={request.kind!r} has {rows * columns} {panels}, but ax has "
                f"{len(request.axes)} axes. Pass one axes per panel."
            )
        return Canvas(request.axes[0].figure.figure, request.axes, False)
    figure = Figure(figsize=request.figsize or size, layout="constrained", dpi=DPI)
    ratios = None if heights is None else list(heights)
    axes = figure.subplots(rows, columns, squeeze=False, height_ratios=ratios)
    return Canvas(figure, tuple(axes.flat), True)


def colour_bar(image: Any, axes: "list[Axes]", *, label: str = "", extend: str = "neither") -> Any:
    """Add the colour scale of an image beside its axes."""
    bar = axes[0].figure.colorbar(
        image, ax=axes, shrink=0.75, pad=0.03, aspect=24, extend=extend, label=label
    )
    bar.ax.yaxis.label.set_fontsize(8)
    bar.ax.tick_params(labelsize=8, length=2)
    bar.outline.set_linewidth(0.5)
    return bar


def tidy(ax: "Axes", *, grid: Literal["x", "y"] | None = None) -> None:
    """Remove the top and right spines, use small tick labels, and add grid lines for one axis."""
    if grid is not None:
        ax.grid(axis=grid, color="#EEEEEE", linewidth=0.6)
        ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=8)


def _as_axes(ax: "Axes | Iterable[Axes]") -> "tuple[Axes, ...]":
    """Flatten axes or nested sequences of axes."""
    from matplotlib.axes import Axes

    if isinstance(ax, Axes):
        return (ax,)
    if isinstance(ax, Iterable) and not isinstance(ax, str):
        return tuple(one for nested_axes in ax for one in _as_axes(nested_axes))
    raise InputError(f"ax must be Matplotlib axes, found {type(ax).__name__}")
