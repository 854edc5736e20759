"""The plugin in a window of napari, on a virtual screen with OpenGL."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from extras import require

require("napari", "qtpy", "PyQt6")

import npe2

import probdice

ROOT = Path(__file__).parent.parent
MANIFEST = Path(probdice.__file__).parent / "napari" / "napari.yaml"

SESSION = """
import json, sys
import napari, npe2
import numpy as np
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

manager = npe2.PluginManager.instance()
manager.discover()
if "probdice" not in {manifest.name for manifest in manager.iter_manifests()}:
    manager.register(npe2.PluginManifest.from_file(sys.argv[1]))
viewer = napari.Viewer()
viewer.open_sample("probdice", "demo")
names = [layer.name for layer in viewer.layers]
_, widget = viewer.window.add_plugin_dock_widget("probdice", "Compare segmentations")
widget.merge.setCurrentText("prediction")
QTest.mouseClick(widget.compare_button, Qt.MouseButton.LeftButton)
for _ in range(1200):
    QTest.qWait(50)
    if widget.compare_button.isEnabled():
        break
for layer in viewer.layers:
    layer.visible = layer.name == "prediction relabelled (most probable)"
table, view = widget.table, widget.table_view
QTest.mouseClick(
    view.viewport(), Qt.MouseButton.LeftButton, pos=view.visualRect(table.index(0, 2)).center()
)
QTest.qWait(500)
drawn = viewer.screenshot(canvas_only=True, flash=False)
viewer.layers["reference"].name = "atlas"
print(json.dumps({
    "names": names,
    "message": widget.message.text(),
    "rows": [table.data(table.index(row, 0)) for row in range(table.rowCount())],
    "point": viewer.dims.point,
    "colours": len(np.unique(drawn.reshape(-1, 4), axis=0)),
    "reference": widget.reference.currentText(),
}))
viewer.close()
"""


def test_the_manifest_is_valid_and_registered():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["napari.manifest"] == {"probdice": "probdice.napari:napari.yaml"}
    manifest = npe2.PluginManifest.from_file(MANIFEST)
    manifest.validate_imports()
    assert manifest.name == project["name"]


def test_the_demo_is_compared_in_a_window(tmp_path):
    xvfb = shutil.which("xvfb-run")
    if xvfb is None:
        reason = "not installed: apt-get install xvfb libgl1 libegl1"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    environment = os.environ | {
        "QT_QPA_PLATFORM": "xcb",
        "NAPARI_CONFIG": str(tmp_path / "settings.yaml"),
    }
    command = [xvfb, "-a", "-s", "-screen 0 1400x1000x24", sys.executable, "-c", SESSION]
    run = subprocess.run(
        [*command, str(MANIFEST)], capture_output=True, text=True, env=environment, timeout=240
    )
    assert run.returncode == 0, run.stderr
    shown = json.loads(run.stdout.splitlines()[-1])
    assert shown["names"] == ["reference", "prediction"]
    assert shown["rows"] == ["fluid", "grey matter", "white matter", "background"]
    assert shown["reference"] == "atlas"  # napari updates the choices
    # 2.5 mm voxels around the origin: the place is a voxel centre inside the image.
    assert all(abs(x) <= 2.5 * n / 2 for x, n in zip(shown["point"][1:], (64, 72, 60), strict=True))
    assert shown["colours"] >= 4  # black, and a colour for each region
