"""The dock widget in a real viewer: table, clicks, cancelling, errors and the report."""

import os
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from extras import require

require("napari", "qtpy", "pytestqt")
os.environ.setdefault("NAPARI_CONFIG", str(Path(tempfile.mkdtemp()) / "settings.yaml"))

import dask.array
from napari.components import ViewerModel
from qtpy.QtCore import Qt, QTimer

from probdice import compare
from probdice.napari import ComparisonWidget
from probdice.napari.comparison_widget import webbrowser
from probdice.napari.group_summary import DICE

REFERENCE, PREDICTION, SIMILARITY, REFERENCE_VOLUME = 0, 1, 3, 4


@pytest.fixture
def viewer(qapp):
    """A viewer without a window, which would need OpenGL."""
    return ViewerModel()


def widget_of(viewer, qtbot):
    widget = ComparisonWidget(viewer)
    qtbot.addWidget(widget)
    return widget


def compared(widget, qtbot):
    """Press Compare and wait for the result or an error; kernels may have to be compiled."""
    qtbot.mouseClick(widget.compare_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: widget.compare_button.isEnabled(), timeout=120_000)
    return widget


def cells(widget, column):
    model = widget.table
    return [model.data(model.index(row, column)) for row in range(model.rowCount())]


def click(widget, qtbot, row):
    view = widget.table_view
    place = view.visualRect(widget.table.index(row, DICE)).center()
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=place)


def test_two_layers_give_a_headline_a_table_and_layers(viewer, qtbot):
    reference = viewer.add_labels(np.array([[1, 1, 1, 1], [2, 2, 2, 2]]), name="truth")
    viewer.add_labels(np.array([[7, 7, 5, 5], [5, 9, 9, 9]]), name="net")
    widget = widget_of(viewer, qtbot)
    widget.merge.setCurrentText("both")
    compared(widget, qtbot)
    # Groups {1} and {5, 7}: 2 · 4 / (4 + 5); groups {2} and {9}: 2 · 3 / (4 + 3).
    assert "Mean Dice 0.8730" in widget.headline.text()
    assert "score 0.8750" in widget.headline.text()
    assert cells(widget, DICE) == ["0.8571", "0.8889"]  # the lowest Dice is first
    assert cells(widget, REFERENCE) == ["2", "1"]
    assert cells(widget, PREDICTION) == ["9", "5, 7"]
    assert cells(widget, REFERENCE_VOLUME) == ["4", "4"]
    assert [layer.name for layer in viewer.layers] == [
        "truth",
        "net",
        "net relabelled",
        "similarity map",
    ]
    assert viewer.layers["net relabelled"].data.tolist() == [[1, 1, 1, 1], [1, 2, 2, 2]]
    swatch = widget.table.data(widget.table.index(0, 0), Qt.ItemDataRole.DecorationRole)
    np.testing.assert_allclose(swatch.getRgbF(), reference.get_color(2), atol=1e-4)


def test_comparing_again_replaces_the_layers(viewer, qtbot):
    viewer.add_labels(np.array([[1, 1, 2, 2]]), name="truth")
    viewer.add_labels(np.array([[3, 3, 3, 4]]), name="net")
    widget = widget_of(viewer, qtbot)
    compared(compared(widget, qtbot), qtbot)
    assert len(viewer.layers) == 4


def test_columns_sort_and_the_selected_group_stays_selected(viewer, qtbot):
    viewer.add_labels(np.array([[1, 1, 1, 2, 2, 3, 10, 10]]), name="truth")
    viewer.add_labels(np.array([[5, 5, 5, 5, 6, 7, 7, 8]]), name="net")
    widget = compared(widget_of(viewer, qtbot), qtbot)
    click(widget, qtbot, 0)
    group = widget.table.group(widget.table_view.currentIndex().row())
    widget.table_view.sortByColumn(REFERENCE, Qt.SortOrder.DescendingOrder)
    assert [text for text in cells(widget, REFERENCE) if text != "–"] == ["10", "3", "2", "1"]
    assert widget.table.group(widget.table_view.currentIndex().row()) == group
    widget.table_view.sortByColumn(SIMILARITY, Qt.SortOrder.AscendingOrder)
    assert cells(widget, SIMILARITY) == sorted(cells(widget, SIMILARITY))


def test_a_click_moves_camera_and_slice_to_the_difference(viewer, qtbot):
    labels = np.zeros((12, 20, 20), np.uint8)
    labels[2:10, 2:9, 2:9] = 1
    labels[2:10, 11:19, 11:19] = 2
    predicted = labels.copy()
    predicted[8, 3, 4] = 0  # label 1 is wrong at one voxel only
    for name, data in (("truth", labels), ("net", predicted)):
        viewer.add_labels(data, name=name, scale=(3, 0.5, 0.5), translate=(10, 0, 0))
    widget = compared(widget_of(viewer, qtbot), qtbot)
    row = cells(widget, REFERENCE).index("1")
    click(widget, qtbot, row)
    assert viewer.dims.point == (10 + 8 * 3, 3 * 0.5, 4 * 0.5)
    scene = getattr(viewer, "scene", viewer)  # napari before 0.9 has no scene
    assert scene.camera.center[1:] == (1.5, 2.0)
    assert viewer.layers["net relabelled"].selected_label == 1
    viewer.dims.set_point(0, 10)
    click(widget, qtbot, row)  # the same row again
    assert viewer.dims.point[0] == 34


def test_a_click_finds_the_place_in_a_stack_of_probabilities(viewer, qtbot):
    reference = np.zeros((2, 5, 16, 16), np.float32)
    reference[0] = 1
    reference[:, 3, 12, 5] = 0.2, 0.8
    prediction = reference.copy()
    prediction[:, 3, 12, 5] = 0.7, 0.3
    for name, data in (("truth", reference), ("net", prediction)):
        viewer.add_image(data, name=name, scale=(1, 2, 1, 1))
    widget = compared(widget_of(viewer, qtbot), qtbot)
    click(widget, qtbot, 0)
    assert viewer.dims.point[1:] == (6, 12, 5)


def test_scale_gives_volumes_in_millilitres(viewer, qtbot):
    labels = np.ones((10, 10, 10), int)
    labels[:3] = 2  # 300 voxels of 2 · 2 · 2.5 mm³
    for name in ("truth", "net"):
        viewer.add_labels(labels, name=name, scale=(2, 2, 2.5))
    widget = compared(widget_of(viewer, qtbot), qtbot)
    header = widget.table.headerData(REFERENCE_VOLUME, Qt.Orientation.Horizontal)
    assert header == "Reference (mL)"
    assert sorted(cells(widget, REFERENCE_VOLUME)) == ["3", "7"]


def test_micrometres_give_volumes_in_cubic_micrometres(viewer, qtbot):
    labels = np.ones((2, 2, 2), int)
    for name in ("truth", "net"):
        viewer.add_labels(labels, name=name, scale=(1, 0.5, 0.5), units=("um",) * 3)
    widget = compared(widget_of(viewer, qtbot), qtbot)
    header = widget.table.headerData(REFERENCE_VOLUME, Qt.Orientation.Horizontal)
    assert header == "Reference (µm³)"
    assert cells(widget, REFERENCE_VOLUME) == ["2"]


def slow_layers(viewer, qtbot, monkeypatch):
    """A widget, the list of the chunks of its prediction that a comparison reads, and a gate.

    The comparison reads 5 of 128 chunks, and the others when the gate is open.
    """
    monkeypatch.setattr("probdice.engine.blocks.BLOCK_BYTES", 2**11)
    monkeypatch.setattr("probdice.engine.blocks.MIN_BLOCK_PIXELS", 256)
    reads, started, gate = [], [], threading.Event()

    def slow(block):
        if started:
            reads.append(None)
            if len(reads) > 4:
                gate.wait(120)
            time.sleep(0.02)
        return block

    labels = np.ones((512, 64), np.int64)
    viewer.add_labels(labels, name="truth")
    widget = compared(widget_of(viewer, qtbot), qtbot)  # compiles the kernels
    viewer.layers[1:] = []
    lazy = dask.array.from_array(labels, chunks=(4, 64))
    viewer.add_labels(lazy.map_blocks(slow, dtype=np.int64, meta=labels[:0]), name="net")
    widget.reset_choices()
    started.append(None)
    return widget, reads, gate


def test_cancelling_stops_reading(viewer, qtbot, monkeypatch):
    widget, reads, gate = slow_layers(viewer, qtbot, monkeypatch)
    qtbot.mouseClick(widget.compare_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(reads) > 4, timeout=60_000)
    qtbot.mouseClick(widget.cancel_button, Qt.MouseButton.LeftButton)
    gate.set()
    qtbot.waitUntil(lambda: widget.compare_button.isEnabled(), timeout=60_000)
    assert widget.message.text() == "Cancelled."
    stopped = len(reads)
    assert stopped < 64
    qtbot.wait(200)
    assert len(reads) - stopped <= 2 * os.cpu_count()  # tasks that had started
    assert [layer.name for layer in viewer.layers] == ["truth", "net"]
    assert widget.outcome is None and not widget.report_button.isEnabled()


def test_closing_the_widget_stops_reading(viewer, qapp, qtbot, monkeypatch):
    widget, reads, gate = slow_layers(viewer, qtbot, monkeypatch)
    widget.compare()
    qtbot.waitUntil(lambda: len(reads) > 4, timeout=60_000)
    with qtbot.waitSignal(widget.destroyed, timeout=60_000):
        widget.deleteLater()
    gate.set()
    qtbot.wait(500)
    stopped = len(reads)
    assert stopped < 64
    qtbot.wait(200)
    assert len(reads) == stopped
    assert [layer.name for layer in viewer.layers] == ["truth", "net"]


def test_a_hundred_thousand_cells_stay_responsive(viewer, qtbot):
    side = 317
    cell = np.arange(1, side * side + 1).reshape(side, side).repeat(3, axis=0).repeat(3, axis=1)
    shuffled = np.random.default_rng(0).permutation(side * side + 1)[np.roll(cell, 1, axis=1)]
    compare(cell[:2, :2], shuffled[:2, :2]).map()  # compiles the kernels
    viewer.add_labels(cell, name="truth")
    viewer.add_labels(shuffled, name="net")
    widget = widget_of(viewer, qtbot)
    widget.resize(500, 900)
    widget.show()
    ticks = []
    timer = QTimer()
    timer.timeout.connect(lambda: ticks.append(time.monotonic()))
    timer.start(10)
    compared(widget, qtbot)
    timer.stop()
    assert widget.table.rowCount() >= side * side
    assert np.diff(ticks).max() < 60  # well below a second on an idle machine
    started = time.process_time()
    for column in range(widget.table.columnCount()):
        widget.table_view.sortByColumn(column, Qt.SortOrder.DescendingOrder)
        widget.table_view.scrollToBottom()
        widget.grab()
    assert time.process_time() - started < 30  # about a second
    # Every cell is shifted by one of its three columns, so two thirds of its pixels agree.
    widget.table_view.sortByColumn(DICE, Qt.SortOrder.AscendingOrder)
    assert widget.table.data(widget.table.index(side * side // 2, DICE)) == "0.6667"


def test_the_background_is_optional_and_may_differ_between_the_sides(viewer, qtbot):
    viewer.add_labels(np.array([[0, 0, 0, 0, 1, 1, 2, 2]]), name="truth")
    viewer.add_labels(np.array([[9, 9, 9, 5, 5, 5, 7, 9]]), name="net")
    widget = widget_of(viewer, qtbot)
    widget.background.reference.setText("0")
    widget.background.prediction.setText("9")
    compared(widget, qtbot)
    # Without the background: 2 · 2 / (2 + 3) and 2 · 1 / (2 + 1).
    assert "Foreground Dice 0.7333" in widget.headline.text()
    widget.background.prediction.setText("")  # the same as the reference: no pixel has it
    compared(widget, qtbot)
    assert cells(widget, PREDICTION)[cells(widget, REFERENCE).index("0")] == "–"
    widget.background.reference.setText("air")
    compared(widget, qtbot)
    assert "no region is called 'air'" in widget.message.text()


def test_wrong_shapes_are_explained_in_the_widget(viewer, qtbot):
    viewer.add_labels(np.ones((4, 5), int), name="truth")
    viewer.add_labels(np.ones((4, 6), int), name="net")
    widget = compared(widget_of(viewer, qtbot), qtbot)
    text = widget.message.text()
    assert "reference has shape (4, 5) but prediction has shape (4, 6)" in text
    assert widget.table.rowCount() == 0 and len(viewer.layers) == 2


def test_different_grids_are_an_error_unless_geometry_is_ignored(viewer, qtbot):
    viewer.add_labels(np.ones((4, 5), int), name="truth", scale=(2, 2))
    viewer.add_labels(np.ones((4, 5), int), name="net")
    widget = compared(widget_of(viewer, qtbot), qtbot)
    assert "do not lie on the same grid" in widget.message.text()
    widget.ignore_geometry.setChecked(True)
    compared(widget, qtbot)
    assert cells(widget, DICE) == ["1.0000"]


def test_values_that_are_not_probabilities_are_explained(viewer, qtbot):
    viewer.add_image(np.full((2, 4, 5), 0.3), name="truth")
    viewer.add_labels(np.ones((4, 5), int), name="net")
    widget = compared(widget_of(viewer, qtbot), qtbot)
    assert "reference" in widget.message.text() and "0.6" in widget.message.text()
    widget.sums.setCurrentText("normalise")
    compared(widget, qtbot)
    assert widget.table.rowCount() == 2


def test_a_layer_that_cannot_be_compared_is_named(viewer, qtbot):
    viewer.add_labels(np.ones((4, 5), int), name="truth")
    viewer.add_image(np.ones((4, 5), np.uint8), name="scan")
    widget = compared(widget_of(viewer, qtbot), qtbot)
    assert "prediction (layer 'scan')" in widget.message.text()


def test_without_layers_the_widget_explains_what_to_add(viewer, qtbot):
    widget = compared(widget_of(viewer, qtbot), qtbot)
    assert "add a Labels layer" in widget.message.text()


def test_errors_of_other_libraries_are_shown(viewer, qtbot):
    def broken(block):
        raise OSError("the disk is gone")

    lazy = dask.array.ones((4, 5), dtype=int).map_blocks(
        broken, dtype=int, meta=np.ones((0, 0), int)
    )
    viewer.add_labels(np.ones((4, 5), int), name="truth")
    widget = widget_of(viewer, qtbot)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("probdice.napari.layer_input._lazy", lambda array: lazy, raising=True)
        widget.prediction.setCurrentIndex(0)
        compared(widget, qtbot)
    assert "the disk is gone" in widget.message.text()


def test_the_report_opens_in_a_browser(viewer, qtbot, monkeypatch):
    viewer.add_labels(np.array([[1, 1, 2, 2]]), name="truth")
    viewer.add_labels(np.array([[3, 3, 3, 4]]), name="net")
    widget = compared(widget_of(viewer, qtbot), qtbot)
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    qtbot.mouseClick(widget.report_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: bool(opened), timeout=60_000)
    page = Path(opened[0].removeprefix("file://"))
    assert "net compared with truth" in page.read_text()
