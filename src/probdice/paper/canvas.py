"""What all drawings share: colours of regions, pictures of segmentations, blank figures."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.segmentation import Segmentation
from probdice.synthesis import probabilities

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "RED",
    "add_scale",
    "blended",
    "centres",
    "colours",
    "figure_of",
    "plain",
    "show",
]

RED, BLUE, GREEN = "#d1242f", "#1f6fc4", "#1a7f37"
GREY: dict[str, Any] = {"cmap": "gray", "vmin": 0.0, "vmax": 1.0, "interpolation": "nearest"}

PALETTE = (
    (0.84, 0.85, 0.87),
    (0.00, 0.45, 0.70),
    (0.90, 0.62, 0.00),
    (0.00, 0.62, 0.45),
    (0.80, 0.40, 0.00),
    (0.80, 0.47, 0.65),
    (0.34, 0.71, 0.91),
    (0.94, 0.89, 0.26),
    (0.42, 0.30, 0.62),
    (0.55, 0.34, 0.29),
    (0.60, 0.75, 0.35),
    (0.35, 0.38, 0.42),
)


def colours(count: int) -> NDArray[np.float64]:
    """A colour for each of `count` regions: red, green and blue for three, as in the paper."""
    if count <= 3:
        return np.eye(3)[:count] * 0.92
    return np.array([PALETTE[k % len(PALETTE)] for k in range(count)])


def blended(segmentation: Segmentation) -> NDArray[np.float64]:
    """Every pixel the mean of its regions' colours, by their probabilities."""
    values, regions = probabilities(segmentation)
    picture = np.tensordot(np.moveaxis(values, 0, -1), colours(len(regions)), axes=1)
    return np.asarray(np.clip(picture, 0, 1), np.float64)


def centres(segmentation: Segmentation) -> list[tuple[float, float] | None]:
    """For each region, a pixel well inside of where it is the likeliest; None if it never is."""
    from scipy import ndimage

    values, _ = probabilities(segmentation)
    likeliest = values.argmax(axis=0)
    places: list[tuple[float, float] | None] = []
    for k in range(len(values)):
        inside = np.pad(likeliest == k, 1)
        if not inside.any():
            places.append(None)
            continue
        depth = ndimage.distance_transform_edt(inside)
        row, column = np.unravel_index(int(depth.argmax()), depth.shape)
        places.append((float(row) - 1, float(column) - 1))
    return places


def figure_of(width: float, height: float) -> "Figure":
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def add_scale(figure: "Figure", shown: Any, axes: list[Any], label: str) -> None:
    """A scale from black, 0, to white, 1."""
    bar = figure.colorbar(shown, ax=axes, shrink=0.85, pad=0.02)
    bar.set_ticks([0, 0.25, 0.5, 0.75, 1])
    bar.set_label(label)


def show(place: Any, picture: NDArray[np.float64] | None, title: str, *, hide: bool = True) -> None:
    """A picture without ticks; nothing at all where there is none."""
    if picture is None and hide:
        place.set_axis_off()
        return
    if picture is not None:
        place.imshow(picture, interpolation="nearest")
    place.set_xticks([])
    place.set_yticks([])
    if title:
        place.set_title(title, fontsize=10)


def plain(text: str) -> str:
    """Text from outside, in which Matplotlib must not look for mathematics."""
    return text.replace("$", r"\$")
