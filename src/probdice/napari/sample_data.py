"""Sample data for napari: the two segmentations that ``probdice demo`` creates."""

from typing import TYPE_CHECKING

from probdice.synthesis import demo_pair

if TYPE_CHECKING:
    from probdice.napari.layer_output import LayerData

__all__ = ["demo_layers"]


def demo_layers() -> "list[LayerData]":
    """Create Image layers of a brain-like reference (4 regions) and a prediction (7 regions).

    Both layers contain probabilities with the region axis first.

    Returns
    -------
    list of tuple
        Data, arguments and type of each layer, as napari expects them.

    Examples
    --------
    >>> from probdice.napari.sample_data import demo_layers
    >>> [(data.shape, arguments["name"], kind) for data, arguments, kind in demo_layers()]
    [((4, 64, 72, 60), 'reference', 'image'), ((7, 64, 72, 60), 'prediction', 'image')]
    """
    layers = []
    for name, segmentation in zip(("reference", "prediction"), demo_pair(), strict=True):
        geometry = segmentation.geometry
        assert geometry is not None
        arguments = {
            "name": name,
            "scale": (1.0, *geometry.spacing),
            "translate": (0.0, *geometry.origin),
            "units": ("pixel", "mm", "mm", "mm"),
            "contrast_limits": (0.0, 1.0),
            "metadata": {"names": list(segmentation.regions)},
        }
        layers.append((segmentation.array, arguments, "image"))
    return layers
