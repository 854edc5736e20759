"""A napari dock widget that compares two layers."""

import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, get_args

from napari.layers import Layer
from napari.utils.notifications import notification_manager
from qtpy.QtCore import Qt
from qtpy.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QComboBox,
    QFormLayout,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from probdice.data.value_checks import Sums
from probdice.errors import ProbdiceError
from probdice.method.matching import RULES
from probdice.method.region_labels import Label
from probdice.method.sides import Both
from probdice.napari.background_job import BackgroundJob
from probdice.napari.group_summary import DICE, GroupSummary
from probdice.napari.layer_comparison import (
    Cancelled,
    ComparedLayers,
    Outcome,
    Steps,
)
from probdice.napari.layer_input import LayerGrid, is_labels, is_stack, segmentations_of
from probdice.napari.table_model import GroupTable
from probdice.options import CompareOptions
from probdice.options.declaration import declarations

if TYPE_CHECKING:
    import napari

__all__ = ["ComparisonWidget"]

WIDTH = 360  # pixels
MEASURED_ROWS = 50  # rows that determine the width of columns


class ComparisonWidget(QWidget):
    """A widget that compares two layers and shows the result in a viewer.

    Parameters
    ----------
    napari_viewer : napari.Viewer
        The viewer whose layers are compared. New layers are added to this viewer.

    Attributes
    ----------
    outcome : Outcome or None
        The result of the last comparison; None before the first comparison, while a comparison
        runs, and after it has failed.

    Examples
    --------
    >>> import numpy as np
    >>> from napari.components import ViewerModel
    >>> from napari.qt import get_qapp
    >>> from probdice.napari import ComparisonWidget
    >>> application, viewer = get_qapp(), ViewerModel()
    >>> layers = [viewer.add_labels(np.eye(4, dtype=int), name=name) for name in ("a", "b")]
    >>> widget = ComparisonWidget(viewer)
    >>> widget.reference.currentText(), widget.prediction.currentText()
    ('a', 'b')
    """

    def __init__(self, napari_viewer: "napari.Viewer") -> None:
        super().__init__()
        self.viewer = napari_viewer
        self.outcome: Outcome | None = None
        self._grid: LayerGrid | None = None
        self._job: BackgroundJob | None = None
        self._choices: list[Layer] = []
        self._added_layers: list[Layer] = []
        self._build()
        self.reset_choices()

    # -- appearance ------------------------------------------------------------------------------

    def _build(self) -> None:
        self.reference, self.prediction = QComboBox(), QComboBox()
        options = declarations(CompareOptions)
        self.similarity = _choice(options["similarity"].form.choices, options["similarity"].help)
        self.match = _choice(tuple(RULES), "How to match regions.")
        self.merge = _choice(options["merge"].form.choices, options["merge"].help)
        self.background = Both(
            _field("none", options["background"].help),
            _field("as reference", options["background"].help),
        )
        self.sums = _choice(get_args(Sums), options["sums"].help)
        self.ignore_geometry = QCheckBox("Ignore scale and position")
        self.compare_button = _button("Compare", self.compare)
        self.cancel_button = _button("Cancel", self.cancel)
        self.report_button = _button("Open report", self.open_report)
        self.progress = QProgressBar()
        self.headline = _text()
        self.message = _text()
        self.table = GroupTable(self)
        self.table_view = self._table_view()
        background = QHBoxLayout()
        for control in self.background:
            background.addWidget(control)
        form = QFormLayout()
        for title, control in (
            ("Reference", self.reference),
            ("Prediction", self.prediction),
            ("Similarity", self.similarity),
            ("Match", self.match),
            ("Merge", self.merge),
            ("Background", background),
            ("Sums", self.sums),
            ("Geometry", self.ignore_geometry),
        ):
            form.addRow(title, control)
        buttons = QHBoxLayout()
        for button in (self.compare_button, self.cancel_button, self.report_button):
            buttons.addWidget(button)
        layout = QVBoxLayout(self)
        layout.addLayout(form)
        layout.addLayout(buttons)
        for part in (self.progress, self.headline, self.table_view, self.message):
            layout.addWidget(part)
        layout.setStretchFactor(self.table_view, 1)
        self.setMinimumWidth(WIDTH)
        self._set_running(False)

    def _table_view(self) -> QTableView:
        view = QTableView()
        view.setModel(self.table)
        view.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        view.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        view.setSortingEnabled(True)
        view.sortByColumn(DICE, Qt.SortOrder.AscendingOrder)
        view.setWordWrap(False)
        view.horizontalHeader().setResizeContentsPrecision(MEASURED_ROWS)
        rows = view.verticalHeader()
        rows.setVisible(False)
        rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)  # do not measure every row
        view.selectionModel().currentRowChanged.connect(self._row_changed)
        view.clicked.connect(self._row_changed)  # also if the row is already the current row
        return view

    def reset_choices(self, event: Any = None) -> None:
        """Update the lists of layers that can be compared. napari calls this when layers change."""
        reference, prediction = self._chosen_layers()
        self._choices = [
            layer for layer in self.viewer.layers if is_labels(layer) or is_stack(layer)
        ]
        if reference not in self._choices:
            reference = next(iter(self._choices), None)
        if prediction not in self._choices or prediction is reference:
            other_layers = (layer for layer in self._choices if layer is not reference)
            prediction = next(other_layers, reference)
        for box, layer in ((self.reference, reference), (self.prediction, prediction)):
            box.clear()
            box.addItems([choice.name for choice in self._choices])
            box.setCurrentIndex(-1 if layer is None else self._choices.index(layer))

    def _chosen_layers(self) -> tuple[Layer | None, Layer | None]:
        rows = self.reference.currentIndex(), self.prediction.currentIndex()
        first, second = (self._choices[row] if row >= 0 else None for row in rows)
        return first, second

    # -- running ---------------------------------------------------------------------------------

    def compare(self) -> None:
        """Compare the two chosen layers in a thread."""
        reference, prediction = self._chosen_layers()
        self._show_summary(None)
        if reference is None or prediction is None:
            self._show_error(
                "No layers to compare. For each side, add a Labels layer, or an Image layer of "
                "probabilities with the regions along the first axis."
            )
            return
        try:
            options = self.options()
            sides = segmentations_of(reference, prediction, sums=self.sums.currentText())
            grid = LayerGrid.of(reference)
        except ProbdiceError as error:
            self._show_error(str(error))
            return
        layers = ComparedLayers(
            sides,
            Both(reference.name, prediction.name),
            grid,
            reference.colormap if is_labels(reference) else None,
        )
        self._grid = grid

        def task(steps: Steps, show_summary: Callable[[GroupSummary], None]) -> Outcome:
            return layers.compare(options, steps, show_summary)

        self._start(task, self._show_outcome)

    def options(self) -> CompareOptions:
        """Check and return the options set in the controls."""
        first, second = (_label(control.text()) for control in self.background)
        background = None
        if first is not None or second is not None:
            background = {
                "reference": second if first is None else first,
                "prediction": first if second is None else second,
            }
        return CompareOptions.of(
            similarity=self.similarity.currentText(),
            match=self.match.currentText(),
            merge=self.merge.currentText(),
            background=background,
            ignore_geometry=self.ignore_geometry.isChecked(),
        )

    def cancel(self) -> None:
        """Stop the running computation after its current block."""
        if self._job is not None:
            self._job.quit()
            self.progress.setFormat("cancelling")

    def open_report(self) -> None:
        """Write the HTML report of the result in a thread, and open it in a browser."""
        if self.outcome is None:
            return
        comparison = self.outcome.comparison
        title = f"{self.prediction.currentText()} compared with {self.reference.currentText()}"
        path = Path(mkdtemp(prefix="probdice-")) / "report.html"

        def task(steps: Steps, show_summary: Callable[[GroupSummary], None]) -> Path:
            with steps.watching():
                steps.begin("writing the report")
                comparison.report(path, title=title)
            return path

        self._start(task, self._open_page)

    def _open_page(self, page: Path) -> None:
        webbrowser.open(page.as_uri())

    def _start(
        self,
        task: Callable[[Steps, Callable[[GroupSummary], None]], Any],
        show_result: Callable[[Any], object],
    ) -> None:
        job = BackgroundJob(task)
        job.progressed.connect(self._show_progress)
        job.compared.connect(self._show_summary)
        job.returned.connect(show_result)
        job.errored.connect(self._show_failure)
        job.warned.connect(self._warn)
        job.finished.connect(self._end_job)
        self.destroyed.connect(job.quit)
        self._job = job
        self._set_running(True)
        job.start()

    def _end_job(self) -> None:
        self._job = None
        self._set_running(False)

    def _set_running(self, running: bool) -> None:
        self.compare_button.setEnabled(not running)
        self.cancel_button.setEnabled(running)
        self.report_button.setEnabled(not running and self.outcome is not None)
        self.progress.setVisible(running)

    def _show_progress(self, step: str, blocks: int, total: int) -> None:
        self.progress.setRange(0, total)
        self.progress.setValue(blocks)
        self.progress.setFormat(f"{step} %p %" if total else step)

    def _show_failure(self, error: Exception) -> None:
        if isinstance(error, Cancelled):
            self.message.setText("Cancelled.")
        elif isinstance(error, ProbdiceError):
            self._show_error(str(error))
        else:
            self._show_error(f"{type(error).__name__}: {error}")
            notification_manager.receive_error(type(error), error, error.__traceback__)

    def _warn(self, warning: tuple[Any, ...]) -> None:
        notification_manager.receive_warning(*warning)

    # -- the result ------------------------------------------------------------------------------

    def _show_summary(self, summary: GroupSummary | None) -> None:
        """Show the results of a comparison, or clear them if `summary` is None."""
        self.outcome = None
        self.table.show(summary)
        self.headline.setText("" if summary is None else summary.headline)
        self.message.setStyleSheet("")
        self.message.setText("" if summary is None else summary.notes)
        self.table_view.resizeColumnsToContents()

    def _show_error(self, text: str) -> None:
        self.message.setStyleSheet("color: #E61A4C")
        self.message.setText(text)

    def _show_outcome(self, outcome: Outcome) -> None:
        """Replace the layers of the last comparison, and show colours in the table."""
        for layer in self._added_layers:
            if layer in self.viewer.layers:
                self.viewer.layers.remove(layer)
        self._added_layers = [
            self.viewer.add_layer(Layer.create(*layer_data)) for layer_data in outcome.layers
        ]
        self.outcome = outcome
        self.table.colour(outcome.shown.colours)
        self.table_view.resizeColumnsToContents()

    def _row_changed(self, index: Any, previous: Any = None) -> None:
        if index.isValid() and self.outcome is not None:
            self.show_group(self.table.group(index.row()))

    def show_group(self, group: int) -> None:
        """Show a place where the sides of a group differ, and select the label of the group."""
        if self.outcome is None or self._grid is None:
            return
        point = self._grid.world(self.outcome.positions[group])
        dims = self.viewer.dims
        first = dims.ndim - len(point)
        for axis, position in enumerate(point):
            dims.set_point(first + axis, position)
        scene = getattr(self.viewer, "scene", self.viewer)  # napari before 0.9 has no scene
        scene.camera.center = tuple(
            point[axis - first] if axis >= first else 0.0 for axis in dims.displayed
        )
        for layer in self._added_layers:
            if is_labels(layer):
                layer.selected_label = self.outcome.shown.labels[group]


def _choice(values: Sequence[str], tool_tip: str) -> QComboBox:
    box = QComboBox()
    box.addItems(list(values))
    box.setToolTip(tool_tip)
    return box


def _field(placeholder: str, tool_tip: str) -> QLineEdit:
    field = QLineEdit()
    field.setPlaceholderText(placeholder)
    field.setToolTip(tool_tip)
    return field


def _label(text: str) -> Label | None:
    """Return the label or name in a field, or None if the field is empty."""
    text = text.strip()
    return int(text) if text.removeprefix("-").isdecimal() else text or None


def _button(title: str, action: Callable[[], None]) -> QPushButton:
    button = QPushButton(title)
    button.clicked.connect(lambda checked=False: action())
    return button


def _text() -> QLabel:
    label = QLabel()
    label.setWordWrap(True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label
