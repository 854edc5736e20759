"""Pictures of a comparison, as Matplotlib figures that belong to nobody.

Nothing is shown or saved unasked: figures are made without pyplot, so no window knows of them.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

from probdice.comparison import Comparison
from probdice.errors import InputError
from probdice.pictures import charts, images
from probdice.pictures.colours import Colours, Palette, colours_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Colours", "Kind", "Palette", "colours_of", "plot"]

Kind = Literal[
    "overview", "regions", "map", "views", "correspondence", "weights", "slices", "histogram"
]
PIXELS = {
    "overview": images.draw_overview,
    "regions": images.draw_regions,
    "map": images.draw_map,
    "views": images.draw_views,
}
NUMBERS = {
    "correspondence": charts.draw_correspondence,
    "weights": charts.draw_weights,
    "slices": charts.draw_slices,
    "histogram": charts.draw_histogram,
}


def plot(
    comparison: Comparison,
    kind: Kind = "overview",
    *,
    place: Sequence[int] | None = None,
    palette: Palette = "given",
) -> "Figure":
    """Draw a comparison.

    Parameters
    ----------
    comparison : Comparison
        What `compare` found.
    kind : str, optional
        "overview": reference, prediction and f side by side; "regions": the first two; "map": f
        alone, white 1 and black 0; "views": all three in three orthogonal planes of a volume;
        "correspondence": which region is which, matched pairs in blue and merges in green, the
        wider the higher their Dice, and dashed where a pair shares no pixel; "weights": the table
        of weights; "slices": f along the slices; "histogram": f over the pixels.
    place : sequence of int, optional
        Index of the pixel through which a volume is cut; where the two differ most by default.
    palette : {"given", "safe", "rgb"}, optional
        Colours as files and tables of names give them; colours that colour-blind people tell
        apart too; or up to three regions as red, green and blue. They are blended by probability.

    Returns
    -------
    matplotlib.figure.Figure
        Save it with its `savefig`.

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
    if kind in PIXELS:
        return PIXELS[kind](comparison, place, palette)
    return NUMBERS[kind](comparison, palette)
