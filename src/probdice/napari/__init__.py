"""A napari plugin that compares two layers in a dock widget (extra `napari`)."""

from probdice.errors import MissingExtraError

try:
    from probdice.napari.comparison_widget import ComparisonWidget
    from probdice.napari.sample_data import demo_layers
except ModuleNotFoundError as error:
    missing = (error.name or "").split(".")[0]
    if missing not in ("napari", "qtpy"):
        raise
    raise MissingExtraError(
        f'probdice.napari requires {missing}: pip install "probdice[napari]"'
    ) from None

__all__ = ["ComparisonWidget", "demo_layers"]
