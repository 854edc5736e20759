"""Pictures of several raters: inter-rater agreement, consensus and disagreement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.options import METHODS
from probdice.pictures.canvas import colour_bar
from probdice.pictures.colours import NEUTRAL, PALETTE, SIMILARITY, colour_map, triples
from probdice.pictures.label_images import checked_place
from probdice.pictures.planes import Plane, planes_of
from probdice.text.formatting import decimal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from probdice.raters import Agreement, Consensus

__all__ = ["background_channel", "draw_agreement", "draw_consensus", "region_colours"]

ANNOTATED = 16  # largest number of raters for which scores are written in the cells
MAX_RATERS = 12  # largest number of raters in a figure
COLUMNS = 4


@dataclass(frozen=True, eq=False)
class Slices:
    """A slice of the consensus, of the entropy and of every rater.

    Attributes
    ----------
    plane : Plane
    where : str
        The name and the index of the slice; "" if the image has only one slice.
    consensus : ndarray
        Red, green and blue between 0 and 1. The colours of the regions are weighted by probability.
    entropy : ndarray
        The entropy in bits; NaN outside the mask.
    raters : dict of str to ndarray
        Pictures of the raters in the same colours.
    """

    plane: Plane
    where: str
    consensus: NDArray[np.float64]
    entropy: NDArray[np.float64]
    raters: dict[str, NDArray[np.float64]]


def region_colours(consensus: Consensus) -> tuple[str, ...]:
    """Return one colour per common region. The background is grey if it has no defined colour."""
    segmentation = consensus.segmentation
    background = background_channel(consensus)
    count = len(segmentation.regions)
    palette = iter(PALETTE[k % len(PALETTE)] for k in range(count))
    return tuple(
        segmentation.colours.get(k) or (NEUTRAL if k == background else next(palette))
        for k in range(count)
    )


def background_channel(consensus: Consensus) -> int | None:
    """Return the index of the background region, or None.

    It is the background that the user named. Without such a background, it is the largest region if
    the label of this region is 0 or "background".
    """
    if consensus.background is not None:
        return consensus.background
    largest = int(np.argmax(consensus.volumes))
    label = str(consensus.segmentation.regions[largest]).lower()
    return largest if label in ("0", "background") else None


def slices_of(
    consensus: Consensus, place: Sequence[int] | None, max_raters: int | None = None
) -> Slices:
    """Return the slice through a given pixel, or the slice with the most disagreement.

    The result contains all raters, or only the first `max_raters` raters.
    """
    segmentation, array = consensus.segmentation, consensus.probabilities
    shape = segmentation.shape
    plane = planes_of(len(shape), segmentation.geometry)[0]
    across = plane.across(len(shape))
    centre = _most_disputed(consensus, across) if place is None else checked_place(shape, place)
    box = tuple(
        slice(centre[axis], centre[axis] + 1) if axis in across else slice(None)
        for axis in range(len(shape))
    )
    size = tuple(1 if axis in across else n for axis, n in enumerate(shape))
    palette = triples(region_colours(consensus))
    blended_image = np.empty((*size, 3))
    for part, values in array.pieces(box):
        blended_image[part] = np.tensordot(values, palette, axes=(0, 0))
    entropy = np.empty(size)
    for part, bits in consensus.entropies(box):
        entropy[part] = bits
    raters = {}
    for rater in consensus.names[:max_raters]:
        image = np.empty((*size, 3))
        colours = np.vstack([palette, [[1.0, 1.0, 1.0]]])  # index −1 refers to the last colour
        for part, decision in array.rater(rater, box):
            soft = decision.ndim > len(shape)
            image[part] = (
                np.tensordot(decision, palette, axes=(0, 0)) if soft else colours[decision]
            )
        raters[rater] = _slice_image(plane, image, len(shape))
    where = f"{plane.name}, slice {', '.join(str(centre[k]) for k in across)}" if across else ""
    return Slices(
        plane,
        where,
        _slice_image(plane, blended_image, len(shape)),
        _slice_image(plane, entropy, len(shape)),
        raters,
    )


def draw_consensus(consensus: Consensus, place: Sequence[int] | None) -> Figure:
    """Draw the consensus, the entropy, and the raters in the colours of the consensus."""
    from matplotlib.figure import Figure

    slices = slices_of(consensus, place, MAX_RATERS)
    count = 2 + len(slices.raters)
    columns = min(COLUMNS, count)
    rows = ceil(count / columns)
    height, width = slices.entropy.shape
    ratio = min(max(slices.plane.aspect * height / width, 0.15), 2)
    figure = Figure(
        figsize=(2.7 * columns + 0.6, (2.7 * ratio + 0.35) * rows + 0.4),
        layout="constrained",
        dpi=120,
    )
    axes = figure.subplots(rows, columns, squeeze=False).reshape(-1)
    title = f"consensus of {len(consensus.names)} raters ({METHODS[consensus.method].title})"
    _show(axes[0], slices.plane, slices.consensus, title)
    bits = np.ma.masked_invalid(slices.entropy)
    max_entropy = max(float(np.nanmax(slices.entropy, initial=0)), 1.0)
    image = _show(
        axes[1], slices.plane, bits, "disagreement", cmap="inferno", vmin=0, vmax=max_entropy
    )
    colour_bar(image, [axes[1]], label="bits")
    for ax, (name, picture) in zip(axes[2:], slices.raters.items(), strict=False):
        text = f"rater {name}" if name.isdigit() else name
        _show(ax, slices.plane, picture, text[:40].replace("$", r"\$"))
    for ax in axes[count:]:
        ax.set_axis_off()
    hidden_count = len(consensus.names) - len(slices.raters)
    omission_note = f"first {MAX_RATERS} of {len(consensus.names)} raters" if hidden_count else ""
    if title := ", ".join(text for text in (slices.where, omission_note) if text):
        figure.suptitle(title, fontsize=9, color="#555555")
    return figure


def draw_agreement(agreement: Agreement) -> Figure:
    """Draw the scores of all pairs of raters, and of each rater with the mean of all others."""
    from matplotlib.figure import Figure

    order = list(agreement.order)
    names = [agreement.names[k][:24].replace("$", r"\$") for k in order]
    scores = agreement.score[np.ix_(order, order)]
    rater_scores = np.array([[agreement.others[k].score] for k in order])
    count = len(order)
    tones = colour_map(SIMILARITY)
    cell = 0.55 if count <= ANNOTATED else max(0.12, 9 / count)
    figure = Figure(
        figsize=(cell * (count + 1) + 2.6, cell * count + 1.4), layout="constrained", dpi=120
    )
    matrix_ax, mean_ax = figure.subplots(1, 2, width_ratios=[count, 1])
    image = matrix_ax.imshow(scores, cmap=tones, vmin=0, vmax=1, aspect="auto")
    mean_ax.imshow(rater_scores, cmap=tones, vmin=0, vmax=1, aspect="auto")
    if count <= ANNOTATED:
        for ax, table in ((matrix_ax, scores), (mean_ax, rater_scores)):
            for (i, j), score in np.ndenumerate(table):
                ax.text(j, i, decimal(score, 2), ha="center", va="center", fontsize=8)
    rotation = 90 if max(map(len, names)) > 4 else 0
    matrix_ax.set_xticks(range(count), names, rotation=rotation, fontsize=8)
    matrix_ax.set_yticks(range(count), names, fontsize=8)
    matrix_ax.set_title("score of every pair", fontsize=9)
    mean_ax.set_xticks([0], ["mean"], rotation=rotation, fontsize=8)
    mean_ax.set_yticks([])
    mean_ax.set_title("others", fontsize=9)
    colour_bar(image, [matrix_ax, mean_ax])
    return figure


def _show(ax: Axes, plane: Plane, picture: Any, title: str, **options: Any) -> Any:
    aspect = plane.aspect if plane.rows >= 0 else 0.15 * max(picture.shape[1], 1)
    image = ax.imshow(picture, aspect=aspect, interpolation="nearest", **options)
    ax.set(xticks=[], yticks=[])
    ax.set_title(title, fontsize=9)
    for spine in ax.spines.values():
        spine.set(linewidth=0.5, color="#888888")
    return image


def _slice_image(plane: Plane, image: NDArray[np.float64], axes: int) -> NDArray[np.float64]:
    return np.asarray(np.clip(plane.drawn(image, axes), 0, None))


def _most_disputed(consensus: Consensus, across: tuple[int, ...]) -> tuple[int, ...]:
    """Return a pixel of the slice with the most disagreement."""
    shape = consensus.segmentation.shape
    if not across:
        return (0,) * len(shape)
    totals = np.zeros(tuple(shape[axis] for axis in across))
    full_image = (slice(None),) * len(shape)
    slice_axes = tuple(axis for axis in range(len(shape)) if axis not in across)
    for part, bits in consensus.entropies(full_image):
        totals[tuple(part[axis] for axis in across)] += np.nansum(bits, axis=slice_axes)
    best = np.unravel_index(int(np.argmax(totals)), totals.shape)
    centre = [n // 2 for n in shape]
    for axis, index in zip(across, best, strict=True):
        centre[axis] = int(index)
    return tuple(centre)
