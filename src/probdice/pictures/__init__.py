"""Pictures of a comparison, as Matplotlib figures that belong to nobody.

Nothing is shown or saved unasked: figures are made without pyplot, so no window knows of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal, get_args

from probdice.errors import InputError
from probdice.pictures import charts, matrix
from probdice.pictures import label_images as images
from probdice.pictures.canvas import Request, request_of
from probdice.pictures.colours import Colours, Palette, colours_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from probdice.comparison.result import Comparison

__all__ = ["Colours", "Kind", "Palette", "colours_of", "plot"]

Kind = Literal[
    "overview", "regions", "map", "views", "correspondence", "overlap", "slices", "histogram"
]
DRAWN: dict[str, Callable[[Comparison, Request], Figure]] = {
    "overview": images.draw_overview,
    "regions": images.draw_regions,
    "map": images.draw_map,
    "views": images.draw_views,
    "correspondence": charts.draw_correspondence,
    "overlap": matrix.draw_overlap,
    "slices": charts.draw_slices,
    "histogram": charts.draw_histogram,
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
        What `compare` found.
    kind : str, optional
        "overview": reference, prediction and f side by side; "regions": the first two; "map": f
        alone, white 1 and black 0; "views": all three in three orthogonal planes of a volume;
        "correspondence": which region is which, matched pairs in blue and merges in green, the
        wider the higher their Dice, and dashed where a pair shares no pixel, on one page: of more
        regions than that holds, those with the lowest Dice; "overlap": the Dice of every pair of
        regions that meets, in the order of the matching, for any number of regions; "slices": f
        along the slices; "histogram": f over the pixels, for label maps how many agree.
    ax : Axes or several, optional
        Where to draw: axes of a figure of yours, as many as the picture has panels ("overview"
        has 3, "regions" 2, "views" 9, "slices" one an axis of the image, the others 1). A new
        figure by default.
    figsize : (float, float), optional
        Width and height of the new figure in inches; chosen to suit its content by default.
    place : sequence of int, optional
        Index of the pixel through which a volume is cut; where the two differ most by default.
    palette : {"given", "safe", "rgb"}, optional
        Colours as files and tables of names give them; colours that colour-blind people tell
        apart too; or up to three regions as red, green and blue. They are blended by probability.

    Returns
    -------
    matplotlib.figure.Figure
        The new figure, or that of `ax`. Save it with its `savefig`.

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
        known = ", ".join(repr(name) for name in get_args(Kind))
        raise InputError(f"kind must be one of {known}, found {kind!r}")
    request = request_of(kind, ax=ax, figsize=figsize, place=place, palette=palette)
    return DRAWN[kind](comparison, request)
