"""The texts of the widget: the headline, the notes, and the columns of the group table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.comparison.result import Comparison, Group
from probdice.data.geometry import Geometry
from probdice.method.region_labels import Label
from probdice.method.sides import SIDES, Side
from probdice.text.formatting import decimal, quantity

__all__ = ["DICE", "GroupColumn", "GroupSummary", "volume_unit"]

MAX_CELL_LABELS = 4
NOTES = 5  # largest number of notes below the table; the report lists all notes
DICE = 2  # index of the Dice column
# Size of a pixel in mm³ or mm² below which volumes are shown in µm³ or µm².
MICROMETRE_PIXEL_SIZE = 1e-4


@dataclass(frozen=True, eq=False)
class GroupColumn:
    """A column of the table of groups.

    Attributes
    ----------
    title : str
        The title.
    text : callable
        Returns the text of the cell for a group.
    keys : ndarray
        One number per group, which determines the sort order of the column.
    numeric : bool
        Whether the cells contain numbers.
    """

    title: str
    text: Callable[[Group], str]
    keys: NDArray[Any]
    numeric: bool = True


@dataclass(frozen=True, eq=False)
class GroupSummary:
    """The texts and numbers that the widget shows for a comparison.

    Attributes
    ----------
    groups : tuple of Group
        The groups, one per row.
    columns : tuple of GroupColumn
        The columns.
    headline : str
        Dice, score, and the numbers of groups and unmatched regions, as HTML.
    notes : str
        The first few notes, one per line.

    Examples
    --------
    >>> import probdice
    >>> from probdice.napari.group_summary import GroupSummary
    >>> summary = GroupSummary.of(probdice.compare([1, 1, 2, 2], [5, 5, 5, 8]))
    >>> [column.title for column in summary.columns]
    ['Reference', 'Prediction', 'Dice', 'Similarity', 'Reference (pixels)', 'Prediction (pixels)']
    >>> summary.headline
    '<b>Mean Dice 0.7333</b> &nbsp; score 0.7500 &nbsp; 2 groups, 0 unmatched regions'
    """

    groups: tuple[Group, ...]
    columns: tuple[GroupColumn, ...]
    headline: str
    notes: str

    @classmethod
    def of(cls, comparison: Comparison) -> "GroupSummary":
        """Compute the summary of a comparison."""
        return cls(
            comparison.groups, _columns(comparison), _headline(comparison), _notes(comparison)
        )


def volume_unit(geometry: Geometry | None) -> tuple[str, float]:
    """Return the unit of volumes in the table, and the volume of a pixel in this unit.

    Examples
    --------
    >>> import numpy as np
    >>> from probdice import Geometry
    >>> from probdice.napari.group_summary import volume_unit
    >>> volume_unit(Geometry((9, 9, 9), np.diag([2.0, 2.0, 2.5, 1.0])))
    ('mL', 0.01)
    >>> volume_unit(None)
    ('pixels', 1.0)
    """
    axes = 0 if geometry is None else len(geometry.shape)
    if geometry is None or axes not in (2, 3):
        return "pixels", 1.0
    size = float(f"{geometry.pixel_volume:.12g}")  # drops the rounding error of the determinant
    if size < MICROMETRE_PIXEL_SIZE:
        return ("µm³", size * 1e9) if axes == 3 else ("µm²", size * 1e6)
    return ("mL", size / 1000) if axes == 3 else ("mm²", size)


def _columns(comparison: Comparison) -> tuple[GroupColumn, ...]:
    groups = comparison.groups
    images = comparison.images
    unit, size = volume_unit(None if images is None else images.reference.geometry)

    def numbers(name: str) -> NDArray[np.float64]:
        return np.array([getattr(group, name) for group in groups], np.float64)

    labels = [
        GroupColumn(
            side.capitalize(),
            partial(_labels, side=side),
            _ranks([group.side(side) for group in groups]),
            numeric=False,
        )
        for side in SIDES
    ]
    return (
        *labels,
        GroupColumn("Dice", lambda group: decimal(group.dice), numbers("dice")),
        GroupColumn("Similarity", lambda group: decimal(group.similarity), numbers("similarity")),
        GroupColumn(
            f"Reference ({unit})",
            lambda group: _amount(group.reference_volume * size),
            numbers("reference_volume"),
        ),
        GroupColumn(
            f"Prediction ({unit})",
            lambda group: _amount(group.prediction_volume * size),
            numbers("prediction_volume"),
        ),
    )


def _amount(volume: float) -> str:
    """Format a volume. Numbers below 1000 have up to four significant digits."""
    return f"{volume:,.0f}" if volume >= 1000 or volume == round(volume) else f"{volume:.4g}"


def _labels(group: Group, side: Side) -> str:
    labels = group.side(side)
    if not labels:
        return "–"
    text = ", ".join(str(label) for label in labels[:MAX_CELL_LABELS])
    return text if len(labels) <= MAX_CELL_LABELS else f"{text}, … ({len(labels)})"


def _ranks(lists: Sequence[tuple[Label, ...]]) -> NDArray[np.int64]:
    """Return the rank of each list by its first label: numbers, then names, then empty lists."""

    def key(labels: tuple[Label, ...]) -> tuple[int, float, str]:
        if not labels:
            return 2, 0, ""
        first = labels[0]
        return (1, 0, first.lower()) if isinstance(first, str) else (0, first, "")

    keys = [key(labels) for labels in lists]
    ranks = {value: rank for rank, value in enumerate(sorted(set(keys)))}
    return np.array([ranks[value] for value in keys], np.int64)


def _headline(comparison: Comparison) -> str:
    unmatched = sum(len(labels) for labels in comparison.unmatched.values())
    name, dice = "Mean Dice", comparison.mean_dice
    if comparison.background is not None:
        name, dice = "Foreground Dice", comparison.foreground_dice
    return (
        f"<b>{name} {decimal(dice)}</b> &nbsp; score {decimal(comparison.score)} &nbsp; "
        f"{len(comparison.groups):,} groups, {unmatched:,} unmatched regions"
    )


def _notes(comparison: Comparison) -> str:
    notes = comparison.notes
    texts = [str(note) for note in notes[:NOTES]]
    if len(notes) > NOTES:
        texts.append(f"The report contains {quantity(len(notes) - NOTES, 'more note')}.")
    return "\n".join(texts)
