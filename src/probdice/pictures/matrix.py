"""The Dice of all overlapping pairs of regions as a matrix, in the order of the correspondence.

Cells of regions that do not overlap are empty. If a side has too many regions, each cell represents
several pairs and shows the highest Dice of these pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.errors import InputError
from probdice.method.sides import SIDES, Both, Side, other
from probdice.pictures.canvas import Canvas, PlotRequest, canvas_for, colour_bar
from probdice.pictures.colours import colour_map
from probdice.pictures.layout import MATCHED, MERGED, arrange
from probdice.pictures.region_names import short_names
from probdice.text.formatting import decimal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from probdice.comparison.result import Comparison
    from probdice.method.overlap import Integers, Overlap

__all__ = ["Matrix", "draw_overlap", "matrix_of"]

CELLS = 480  # largest number of cells per side
MIN_NUMBERED_CELL = 0.26  # smallest cell, in inches, in which its number is written
MIN_NAMED_ROW = 0.09  # smallest row or column, in inches, that is labelled with its name
MAX_OUTLINED_REGIONS = 60  # largest number of regions per side for which pairs are outlined
EXTRA_SIZE = 2.2, 1.6  # inches for names, colour bar and legend
MAX_NAME_LENGTH = 22  # characters per name
TONES = ("#E8E8EC", "#8C8C96", "#26262B")  # colours of overlapping pairs; white means no overlap


@dataclass(frozen=True, eq=False)
class Matrix:
    """Dice of overlapping pairs. Rows are reference regions, and columns are prediction regions.

    Attributes
    ----------
    cells : ndarray
        The Dice of each cell; NaN where regions do not overlap.
    order : Both of ndarray of int
        Per side, the indices of the regions in the overlap table, in the order of the rows from top
        to bottom and of the columns from left to right. Regions of matched groups are first.
        Unmatched regions follow, sorted by the position of the region of the other side with which
        they have the highest Dice.
    matched_counts : Both of int
        Per side, the number of regions of matched groups, which are first in `order`.
    step : int
        The number of regions per cell along each side.
    """

    cells: NDArray[np.float64]
    order: Both[Integers]
    matched_counts: Both[int]
    step: int


def matrix_of(comparison: Comparison, max_cells: int = CELLS) -> Matrix:
    """Return the matrix of a comparison, with at most `max_cells` cells along each side.

    Examples
    --------
    >>> import probdice
    >>> from probdice.pictures.matrix import matrix_of
    >>> result = probdice.compare([1, 1, 2, 2], [8, 8, 8, 5])
    >>> matrix_of(result).order.prediction  # the second region of the prediction comes first
    array([1, 0])
    >>> matrix_of(result).cells
    array([[0.8       ,        nan],
           [0.4       , 0.66666667]])
    """
    table = comparison.overlap
    shares = pair_dice(table)
    numbers = {
        side: {label: k for k, label in enumerate(table.side(side).labels)} for side in SIDES
    }
    order, matched_counts = {}, {}
    for side in SIDES:
        matched_regions = [
            numbers[side][label]
            for group in comparison.groups
            if group.reference and group.prediction
            for label in group.side(side)
        ]
        order[side] = np.array(matched_regions, np.int64)
        matched_counts[side] = len(matched_regions)
    ranks: dict[Side, Integers] = {}
    for side in SIDES:
        unmatched = np.setdiff1d(table.side(side).occupied, order[side])
        neighbours = _neighbour_positions(table, shares, side, order[other(side)])
        order[side] = np.concatenate(
            [order[side], unmatched[np.argsort(neighbours[unmatched], kind="stable")]]
        )
        ranks[side] = np.zeros(len(table.side(side)), np.int64)
        ranks[side][order[side]] = np.arange(order[side].size)
    lengths = [order[side].size for side in SIDES]
    step = -(-max(lengths) // max_cells)
    cells = np.full([-(-length // step) for length in lengths], -1.0)
    positions = (
        ranks["reference"][table.pairs.rows] // step,
        ranks["prediction"][table.pairs.columns] // step,
    )
    np.maximum.at(cells, positions, shares)
    return Matrix(
        np.where(cells < 0, np.nan, cells),
        Both(order["reference"], order["prediction"]),
        Both(matched_counts["reference"], matched_counts["prediction"]),
        step,
    )


def pair_dice(table: Overlap) -> NDArray[np.float64]:
    """Return, for every overlapping pair, twice its saving divided by the sum of both costs.

    The cost of a region is the cost of leaving it unmatched, `Overlap.alone`. The result is at most
    1. It is the Dice of the pair for label maps, and for any input with the absolute similarity.
    """
    overlapping, alone = table.pairs, table.alone
    total = alone.reference[overlapping.rows] + alone.prediction[overlapping.columns]
    shares: NDArray[np.float64] = np.minimum(2 * overlapping.savings / total, 1)
    return shares


def draw_overlap(comparison: Comparison, request: PlotRequest) -> Figure:
    """Draw the Dice of overlapping pairs.

    Matched pairs are outlined in blue, and merged pairs in green, if each side has at most
    `MAX_OUTLINED_REGIONS` regions.
    """
    matrix = matrix_of(comparison)
    rows, columns = (order.size for order in matrix.order)
    if min(rows, columns) == 0:
        raise InputError(
            f"kind='overlap' requires non-empty regions on both sides, found {rows} in the "
            f"reference and {columns} in the prediction"
        )
    canvas = canvas_for(request, _size(rows, columns))
    ax = canvas.axes[0]
    step = matrix.step
    down, across = (step * length for length in matrix.cells.shape)
    image = ax.imshow(
        np.ma.masked_invalid(matrix.cells),
        cmap=colour_map(TONES),
        vmin=0,
        vmax=1,
        aspect="auto",
        interpolation="nearest",
        extent=(-0.5, across - 0.5, down - 0.5, -0.5),
    )
    ax.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))
    measure = "Dice" if comparison.overlap.separable else "share saved"
    label = measure if step == 1 else f"{measure}, the highest of {step} × {step} pairs"
    colour_bar(image, [ax], label=label)
    width, height = canvas.inches(EXTRA_SIZE)
    cell_size = height / rows, width / columns
    _name(canvas, comparison, matrix, cell_size)
    if step == 1 and min(cell_size) >= MIN_NUMBERED_CELL:
        for (i, j), share in np.ndenumerate(matrix.cells):
            if not np.isnan(share):
                colour = "white" if share > 0.55 else "black"
                ax.text(j, i, decimal(share, 2), ha="center", va="center", fontsize=7, color=colour)
    if max(rows, columns) <= MAX_OUTLINED_REGIONS:
        _outline(canvas, comparison, matrix)
    _part(canvas, matrix)
    return canvas.figure


def _neighbour_positions(
    table: Overlap, shares: NDArray[np.float64], side: Side, order: Integers
) -> NDArray[np.float64]:
    """Return, per region of a side, the position of the region with the highest Dice.

    Positions are indices in `order`, which lists regions of the other side. They are infinite for
    regions without overlap and for regions whose neighbour is not in `order`.
    """
    overlapping = table.pairs
    regions, neighbours = (
        (overlapping.rows, overlapping.columns)
        if side == "reference"
        else (overlapping.columns, overlapping.rows)
    )
    rank = np.full(len(table.side(other(side))), np.inf)
    rank[order] = np.arange(order.size)
    best = np.full(len(table.side(side)), np.inf)
    ascending = np.argsort(shares, kind="stable")  # so that the largest share is written last
    best[regions[ascending]] = rank[neighbours[ascending]]
    return best


def _size(rows: int, columns: int) -> tuple[float, float]:
    """Return a figure size in inches that depends on the number of cells and fits on a page."""
    cell = 0.42 if max(rows, columns) <= 16 else 0.16
    return (
        min(max(cell * columns, 1.6) + EXTRA_SIZE[0], 7.5),
        min(max(cell * rows, 1.2) + EXTRA_SIZE[1], 9.0),
    )


def _name(
    canvas: Canvas, comparison: Comparison, matrix: Matrix, cell_size: tuple[float, float]
) -> None:
    """Write the names of regions at the edges, or the number of regions if the names do not fit."""
    ax = canvas.axes[0]
    for side, axis, inches in zip(SIDES, (ax.yaxis, ax.xaxis), cell_size, strict=True):
        regions, order = comparison.overlap.side(side), matrix.order[side]
        if inches >= MIN_NAMED_ROW:
            axis.set_label_text(side)
            names = short_names([regions.label(k) for k in order.tolist()], MAX_NAME_LENGTH)
            axis.set_ticks(range(order.size), names, fontsize=8 if inches >= 0.15 else 6)
            if axis is ax.xaxis and 0.09 * max(map(len, names)) > inches:
                ax.tick_params(axis="x", labelrotation=90)
        else:
            axis.set_label_text(f"{side}: {order.size:,} regions, in matching order")
            axis.set_ticks([])


def _outline(canvas: Canvas, comparison: Comparison, matrix: Matrix) -> None:
    """Outline every matched pair and every merged pair."""
    from matplotlib.patches import Rectangle

    ranks = {
        side: {comparison.overlap.side(side).label(k): n for n, k in enumerate(order.tolist())}
        for side, order in zip(SIDES, matrix.order, strict=True)
    }
    for link in arrange(comparison).links:
        i, j = (
            ranks["reference"][link.reference.label],
            ranks["prediction"][link.prediction.label],
        )
        frame = Rectangle((j - 0.46, i - 0.46), 0.92, 0.92, fill=False, linewidth=1.6)
        frame.set_edgecolor(MERGED if link.merged else MATCHED)
        canvas.axes[0].add_patch(frame)


def _part(canvas: Canvas, matrix: Matrix) -> None:
    """Draw a line between matched and unmatched regions, with a legend."""
    from matplotlib.lines import Line2D

    unmatched = Both(
        *(order.size - n for order, n in zip(matrix.order, matrix.matched_counts, strict=True))
    )
    if not any(unmatched):
        return
    look: dict[str, Any] = {"color": "#D55E00", "linewidth": 0.8}
    ax = canvas.axes[0]
    if unmatched.reference:
        ax.axhline(matrix.matched_counts.reference - 0.5, **look)
    if unmatched.prediction:
        ax.axvline(matrix.matched_counts.prediction - 0.5, **look)
    counts = [f"{count:,} of the {side}" for side, count in unmatched.to_dict().items() if count]
    where = {
        (True, True): "below and right of the line",
        (True, False): "below the line",
        (False, True): "right of the line",
    }[unmatched.reference > 0, unmatched.prediction > 0]
    text = f"unmatched, {where}: {' and '.join(counts)}"
    canvas.legend([Line2D([], [], label=text, **look)], columns=1)
