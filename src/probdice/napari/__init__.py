"""A napari plugin that compares two layers in a dock widget (extra `napari`)."""

from probdice.errors import imports_of_extra

with imports_of_extra("napari", "napari", "qtpy"):
    from probdice.napari.comparison_widget import ComparisonWidget
    from probdice.napari.sample_data import demo_layers

__all__ = ["ComparisonWidget", "demo_layers"]
