"""Pictures of a comparison, as Matplotlib figures.

Figures are created without pyplot, so they are neither shown nor saved automatically.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal, get_args

from probdice.errors import InputError
from probdice.pictures import boundary_plots, charts, matrix
from probdice.pictures import label_images as images
from probdice.pictures.canvas import PlotRequest, request_of
from probdice.pictures.colours import Colours, Palette, colours_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from probdice.comparison.result import Comparison

__all__ = ["Colours", "Kind", "Palette", "colours_of", "plot"]

Kind = Literal[
    "overview",
    "regions",
    "map",
    "views",
    "correspondence",
    "overlap",
    "slices",
    "histogram",
    "boundaries",
]
DRAWING_FUNCTIONS: dict[str, Callable[[Comparison, PlotRequest], Figure]] = {
    "overview": images.draw_overview,
    "regions": images.draw_regions,
    "map": images.draw_map,
    "views": images.draw_views,
    "correspondence": charts.draw_correspondence,
    "overlap": matrix.draw_overlap,
    "slices": charts.draw_slices,
    "histogram": charts.draw_histogram,
    "boundaries": boundary_plots.draw_boundaries,
}


def plot(
    comparison: Comparison,
    kind: Kind = "overview",
    *,
    ax: Axes | Iterable[Axes] | None = None,
    figsize: tuple[float, float] | None = None,
    place: Sequence[int] | None = None,
    palette: Palette = "given",
) -> Figure:
    """Draw a comparison.

    Parameters
    ----------
    comparison : Comparison
        The result of `compare`.
    kind : str, optional
        The picture to draw:

        - "overview": the reference, the prediction and the similarity f per pixel, side by side;
        - "regions": the reference and the prediction side by side;
        - "map": f, where white is 1 and red is 0;
        - "views": the reference, the prediction and f in three orthogonal planes of a volume;
        - "correspondence": a diagram with blue lines for matched pairs and green lines for merges;
        - "overlap": the Dice of every pair of overlapping regions, in the order of the matching.
          For probabilities and a similarity other than `Absolute`, it shows the share of the loss
          that matching the pair saves;
        - "slices": the mean of f per slice along every axis;
        - "histogram": the distribution of f over the pixels or, for label maps, the shares of
          pixels that agree and differ;
        - "boundaries": the outlines of both sides in the slice with the largest distance, coloured
          by the distance to the other outline, and the distribution of distances per group.

        In a "correspondence" diagram, wider lines mean a higher Dice of the group, and dashed lines
        join matched regions that share no pixel. If not all groups fit on one page, the matched
        groups with the lowest Dice take precedence.
    ax : Axes or several, optional
        Axes to draw on, one per panel. "overview" and "boundaries" have 3 panels, "regions" has 2,
        "views" has 9, "slices" has one per axis of the image, and all other kinds have 1. By
        default, a new figure is created.
    figsize : (float, float), optional
        Width and height of the new figure in inches. By default, the size depends on `kind` and on
        the comparison.
    place : sequence of int, optional
        Index of the pixel at which the slices of a volume intersect. By default, the slices show
        the area in which the two sides differ most or, for "boundaries", the largest distance.
    palette : {"given", "safe", "rgb"}, optional
        "given" uses the colours that files or label tables define. "safe" uses colours that
        colour-blind readers can distinguish. "rgb" uses red, green and blue for up to three groups.
        The colour of a pixel is the mean colour of its regions, weighted by probability.

    Returns
    -------
    matplotlib.figure.Figure
        The new figure, or the figure of `ax`. Save it with `savefig`.

    Examples
    --------
    >>> import probdice
    >>> from probdice.pictures import plot
    >>> result = probdice.compare([[1, 1], [2, 2]], [[1, 1], [1, 2]])
    >>> figure = plot(result, "map")
    >>> figure.axes[0].images[0].get_array().tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    if kind not in get_args(Kind):
        kinds = ", ".join(repr(name) for name in get_args(Kind))
        raise InputError(f"kind must be one of {kinds}, found {kind!r}")
    request = request_of(kind, ax=ax, figsize=figsize, place=place, palette=palette)
    return DRAWING_FUNCTIONS[kind](comparison, request)
