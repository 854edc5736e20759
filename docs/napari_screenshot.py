"""Write docs/images/napari.png, a screenshot of the napari plugin with its sample data.

    xvfb-run -s "-screen 0 1600x1200x24" python docs/napari_screenshot.py

The script requires napari with a Qt library, and OpenGL.
"""

import os
import tempfile
from pathlib import Path

os.environ["NAPARI_CONFIG"] = str(Path(tempfile.mkdtemp()) / "settings.yaml")

import napari
from PIL import Image
from qtpy.QtCore import QTimer

import probdice.napari

TARGET = Path(__file__).parent / "images" / "napari.png"
SIZE = 1500, 760
COLOURS = 256  # a palette reduces the file size by two thirds


def main() -> None:
    """Open the sample data, compare both layers, select a group, and take a screenshot."""
    viewer = napari.Viewer(show=False)
    for data, arguments, kind in probdice.napari.demo_layers():
        viewer.add_layer(napari.layers.Layer.create(data, arguments, kind))
    widget = probdice.napari.ComparisonWidget(viewer)
    viewer.window.add_dock_widget(widget, name="Compare segmentations (probdice)", area="right")
    widget.setMinimumWidth(650)  # shows all columns
    viewer.window.resize(*SIZE)
    viewer.show()
    widget.merge.setCurrentText("prediction")
    widget.compare()

    def wait() -> None:
        if widget.outcome is None:
            QTimer.singleShot(200, wait)
            return
        for layer in viewer.layers:
            layer.visible = "most probable" in layer.name
        viewer.layers["prediction relabelled (most probable)"].opacity = 0.5
        outlines = viewer.layers["reference (most probable)"]
        viewer.layers.move(viewer.layers.index(outlines), len(viewer.layers))
        outlines.contour, outlines.opacity = 1, 1
        viewer.reset_view()
        widget.table_view.selectRow(1)
        QTimer.singleShot(1500, shoot)

    def shoot() -> None:
        viewer.window.screenshot(str(TARGET), canvas_only=False, flash=False)
        viewer.close()

    QTimer.singleShot(500, wait)
    napari.run()
    Image.open(TARGET).convert("RGB").quantize(COLOURS).save(TARGET, optimize=True)
    print(f"{TARGET}: {TARGET.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
