"""The groups of a comparison as a sortable Qt table."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QAbstractTableModel, QModelIndex, Qt
from qtpy.QtGui import QColor

from probdice.comparison.result import Group
from probdice.method.sides import SIDES
from probdice.napari.group_summary import GroupColumn, GroupSummary

__all__ = ["GroupTable"]

MAX_TOOL_TIP_LABELS = 50

Root = QModelIndex()


class GroupTable(QAbstractTableModel):
    """A table with one row per group. Texts are created for visible rows only.

    Examples
    --------
    >>> import probdice
    >>> from probdice.napari.group_summary import DICE, GroupSummary
    >>> from probdice.napari.table_model import GroupTable
    >>> table = GroupTable()
    >>> table.show(GroupSummary.of(probdice.compare([1, 1, 2, 2], [5, 5, 5, 8])))
    >>> [table.data(table.index(0, column)) for column in range(table.columnCount())]
    ['1', '5', '0.8000', '0.7500', '2', '3']
    >>> table.sort(DICE)
    >>> [table.group(row) for row in range(table.rowCount())]
    [1, 0]
    """

    def __init__(self, parent: Any = None) -> None:
        super().__init__(parent)
        self._groups: tuple[Group, ...] = ()
        self._columns: tuple[GroupColumn, ...] = ()
        self._colours: NDArray[np.float64] | None = None
        self._rows: NDArray[np.int64] = np.zeros(0, np.int64)
        self._sort_order: tuple[int, Any] = -1, Qt.SortOrder.AscendingOrder

    def show(self, summary: GroupSummary | None) -> None:
        """Show the groups of a comparison in the current sort order; if None, show no groups."""
        self.beginResetModel()
        self._groups = () if summary is None else summary.groups
        self._columns = () if summary is None else summary.columns
        self._colours = None
        self._rows = self._sorted_rows(*self._sort_order)
        self.endResetModel()

    def colour(self, colours: NDArray[np.float64]) -> None:
        """Show the colour of each group in the first column."""
        self._colours = colours
        last = self.index(max(self.rowCount() - 1, 0), 0)
        self.dataChanged.emit(self.index(0, 0), last, [Qt.ItemDataRole.DecorationRole])

    def group(self, row: int) -> int:
        """Return the index of the group that is shown in a row."""
        return int(self._rows[row])

    def rowCount(self, parent: QModelIndex = Root) -> int:
        """Return the number of groups."""
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: QModelIndex = Root) -> int:
        """Return the number of columns."""
        return 0 if parent.isValid() else len(self._columns)

    def headerData(self, section: int, orientation: Any, role: int = 0) -> Any:
        """Return the title of a column."""
        is_title = orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole
        return self._columns[section].title if is_title and section < len(self._columns) else None

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return the text, colour, alignment or tool tip of a cell."""
        if not index.isValid():
            return None
        number, column = self.group(index.row()), self._columns[index.column()]
        group = self._groups[number]
        if role == Qt.ItemDataRole.DisplayRole:
            return column.text(group)
        if role == Qt.ItemDataRole.DecorationRole and index.column() == 0:
            return None if self._colours is None else QColor.fromRgbF(*self._colours[number])
        if role == Qt.ItemDataRole.TextAlignmentRole and column.numeric:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        if role == Qt.ItemDataRole.ToolTipRole:
            return _tool_tip(group)
        return None

    def sort(self, column: int, order: Any = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column, with NaN last. A negative index restores the original order."""
        self.layoutAboutToBeChanged.emit()
        old_rows = self._rows
        self._sort_order = column, order
        self._rows = self._sorted_rows(column, order)
        new_rows = np.empty_like(self._rows)
        new_rows[self._rows] = np.arange(len(self._rows))
        old = self.persistentIndexList()
        new = [self.index(int(new_rows[old_rows[index.row()]]), index.column()) for index in old]
        self.changePersistentIndexList(old, new)
        self.layoutChanged.emit()

    def _sorted_rows(self, column: int, order: Any) -> NDArray[np.int64]:
        if not 0 <= column < len(self._columns):
            return np.arange(len(self._groups))
        keys = self._columns[column].keys
        descending = order == Qt.SortOrder.DescendingOrder
        return np.argsort(-keys if descending else keys, kind="stable")


def _tool_tip(group: Group) -> str:
    lines = []
    for side in SIDES:
        labels = [str(label) for label in group.side(side)[:MAX_TOOL_TIP_LABELS]]
        if len(group.side(side)) > MAX_TOOL_TIP_LABELS:
            labels.append(f"… ({len(group.side(side))})")
        lines.append(f"{side}: {', '.join(labels) or '–'}")
    if group.faint:
        lines.append(
            "No region of this group is the most probable region of any pixel, so the mean Dice "
            "excludes the group."
        )
    return "\n".join(lines)
