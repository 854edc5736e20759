"""The colours of the groups of a comparison, by default the same in its pictures and on its page.

By default, the background is grey. Any other group has the colour that a file or a label table
defines for its regions. If no colour is defined, or if an earlier group already has the colour, the
group gets a colour from a colour-blind safe palette. The palette starts with the colours of Okabe
and Ito (2008). The other colours were chosen one by one from a grid of saturated colours of medium
lightness, each with a large CIEDE2000 distance from the previous colours, black, white, the greys
and the red of differences. Distances in deuteranopic and protanopic vision (Machado et al. 2009)
were multiplied by 1.6, and distances from black and white by 1.3. Colours less than 8.2 CIELAB
units away from another colour, in any of these types of vision, were excluded.

Similarity has the same colour scale in all pictures of this package and on all pages of reports. A
similarity of 0 is `DIFFERENT`, a red that is not in the palette. A similarity of 1 is white in
pictures, the colour of the page on HTML pages, and transparent over an image.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from probdice.errors import InputError
from probdice.method.background import background_group as given_background
from probdice.method.sides import SIDES, Side

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison
    from probdice.method.region_labels import Label

__all__ = [
    "DIFFERENT",
    "NEUTRAL",
    "PALETTE",
    "RGB",
    "SIMILARITY",
    "Colours",
    "Palette",
    "background_group",
    "colour_map",
    "colours_of",
    "triples",
]

Palette = Literal["given", "safe", "rgb"]

DIFFERENT = "#FF2E63"
SIMILARITY = (DIFFERENT, "#FFFFFF")
NEUTRAL = "#B8B8B8"
RGB = ("#FF0000", "#00FF00", "#0000FF")
PALETTE = (
    *("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#F0E442", "#26268C"),
    *("#8C0D0D", "#73FFBF", "#FFD9FF", "#8C73FF", "#A64073", "#8C5940", "#A6BF8C", "#590DFF"),
    *("#592626", "#BFF28C", "#0D8C8C", "#0D4059", "#598C40", "#26D9D9", "#8C590D", "#BF8C8C"),
    *("#0DD959", "#73408C", "#8C0D40", "#D90DBF", "#BFF2D9", "#5959F2", "#D9408C", "#26A6BF"),
    *("#8C7359", "#FF8CA6", "#405926", "#0D40BF", "#D9BFFF", "#D98C40", "#0D7373", "#730D59"),
    *("#FFA6D9", "#D95940", "#D9D9A6", "#F273D9", "#264073", "#59A6FF", "#0D0DD9", "#A673D9"),
    *("#8C73A6", "#A6A659", "#8CA673", "#F2BF0D", "#738C0D", "#FFBF73", "#A62626", "#7326A6"),
    *("#A62659", "#8CBF73", "#BFD98C", "#D9F273", "#8C26D9", "#A640D9", "#FFA640", "#590DA6"),
)
SHADES = ((1.0, 0.35), (0.0, 0.25), (1.0, 0.6), (0.0, 0.45))  # white or black, and its share


@dataclass(frozen=True)
class Colours:
    """The colours (#RRGGBB) of the groups of a comparison, and of the regions of both sides.

    Regions are in the order of `reference_labels` and `prediction_labels`. A merged region has a
    shade of the colour of its group.
    """

    groups: tuple[str, ...]
    regions: dict[Side, tuple[str, ...]]

    def by_label(self, comparison: Comparison) -> dict[tuple[Side, Label], str]:
        """Return the colour of every region, by side and label."""
        return {
            (side, label): colour
            for side, colours in self.regions.items()
            for label, colour in zip(comparison.labels(side), colours, strict=True)
        }


def colours_of(comparison: Comparison, palette: Palette = "given") -> Colours:
    """Return the colours of a comparison.

    Parameters
    ----------
    comparison : Comparison
        The comparison.
    palette : {"given", "safe", "rgb"}, optional
        "given" uses the colours that the file or the label table of the reference defines, or else
        those of the prediction. If several groups have the same defined colour, only the first
        group uses it. All other groups have colour-blind safe colours. "safe" uses only
        colour-blind safe colours. "rgb" uses red, green and blue for at most three groups, so that
        the colour of a pixel shows the probabilities of all three groups.

    Returns
    -------
    Colours
        Colour-blind safe colours repeat after 64 groups. The background is grey, except with "rgb".

    Examples
    --------
    >>> import probdice
    >>> from probdice.pictures.colours import colours_of
    >>> result = probdice.compare([1, 1, 1, 1, 2, 2, 2, 2], [7, 7, 5, 5, 5, 9, 9, 9], merge="both")
    >>> colours_of(result).groups
    ('#0072B2', '#E69F00')
    >>> colours_of(result).regions["prediction"]  # 5 was merged into the group of 7
    ('#59A3CD', '#0072B2', '#E69F00')
    """
    groups = _group_colours(comparison, palette)
    merged_regions = {(merge.side, merge.region) for merge in comparison.merges}
    shades: dict[tuple[Side, Label], str] = {}
    for group, colour in zip(comparison.groups, groups, strict=True):
        count = 0  # counts merged regions of both sides, so that these have different shades
        for side in SIDES:
            for label in group.side(side):
                shades[side, label] = colour
                if (side, label) in merged_regions:
                    shades[side, label] = _shade(colour, *SHADES[count % len(SHADES)])
                    count += 1
    regions = {
        side: tuple(shades[side, label] for label in comparison.labels(side)) for side in SIDES
    }
    return Colours(groups, regions)


def triples(colours: tuple[str, ...]) -> NDArray[np.float64]:
    """Return colours as rows of red, green and blue between 0 and 1."""
    bytes_ = [[int(colour[k : k + 2], 16) for k in (1, 3, 5)] for colour in colours]
    return np.array(bytes_, np.float64).reshape(-1, 3) / 255


def colour_map(colours: tuple[str, ...]) -> Any:
    """Return a Matplotlib colour map that interpolates between colours, from low to high values."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("probdice", colours)


def _group_colours(comparison: Comparison, palette: Palette) -> tuple[str, ...]:
    groups = comparison.groups
    if palette == "rgb":
        if len(groups) > len(RGB):
            raise InputError(
                f"palette='rgb' shows at most {len(RGB)} groups, found {len(groups)}. "
                f"Use palette='safe' for any number of groups."
            )
        return RGB[: len(groups)]
    if palette not in ("given", "safe"):
        raise InputError(f"palette must be 'given', 'safe' or 'rgb', found {palette!r}")
    colours = _file_colours(comparison) if palette == "given" else [None] * len(groups)
    background = background_group(comparison)
    free = cycle([colour for colour in PALETTE if colour not in colours] or PALETTE)
    return tuple(
        NEUTRAL if k == background else colour or next(free) for k, colour in enumerate(colours)
    )


def _file_colours(comparison: Comparison) -> list[str | None]:
    """Return the colour of each group from the reference file, or else from the prediction file.

    The colours of matched regions take precedence over those of merged regions. A group without a
    colour, or with the colour of an earlier group, has None.
    """
    merged_regions = {(merge.side, merge.region) for merge in comparison.merges}
    colours: dict[tuple[Side, Label], str] = {}
    for side in SIDES:
        regions = comparison.overlap.side(side)
        colours |= {
            (side, regions.label_of(key)): colour for key, colour in regions.colours.items()
        }
    if not colours:
        return [None] * len(comparison.groups)
    result: list[str | None] = []
    for group in comparison.groups:
        members = [(side, label) for side in SIDES for label in group.side(side)]
        members.sort(key=merged_regions.__contains__)
        colour = next((colours[member] for member in members if member in colours), None)
        result.append(None if colour in result else colour)
    return result


def background_group(comparison: Comparison) -> int | None:
    """Return the group to draw in grey as background, or None.

    If the comparison has no background, it is the group with the largest reference volume, provided
    that one of its reference labels is 0 or "background". A strong colour over most of an image
    would hide the other regions.
    """
    given = given_background(comparison.correspondence.groups, comparison.background_regions)
    if given is not None:
        return given
    groups = comparison.groups
    largest = max(range(len(groups)), key=lambda k: groups[k].reference_volume)
    names = {str(label).strip().lower() for label in groups[largest].reference}
    return largest if names & {"0", "background"} else None


def _shade(colour: str, towards: float, share: float) -> str:
    components = triples((colour,))[0] * (1 - share) + towards * share
    return "#" + "".join(f"{round(255 * value):02X}" for value in components)
