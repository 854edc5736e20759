"""Create napari layers from a comparison: similarity map, reference and relabelled prediction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.comparison.relabelling import reference_numbers
from probdice.data.arrays import Array
from probdice.data.segmentation import Segmentation
from probdice.engine.blocks import Blocks
from probdice.engine.decode import Soft
from probdice.engine.executors import image_from_blocks
from probdice.engine.grids import Block
from probdice.method.region_labels import Label
from probdice.napari.layer_input import LayerGrid
from probdice.pictures.colours import background_group, colours_of

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison

__all__ = ["LayerData", "ShownGroups", "map_layer", "reference_layers", "relabelled_layers"]

LayerData = tuple[Any, dict[str, Any], str]  # data, arguments and type of a layer, as in napari
TRANSPARENT = "#00000000"


@dataclass(frozen=True, eq=False)
class ShownGroups:
    """The label of each group in Labels layers, and the colours of these labels.

    A group with reference regions has the label of the first reference region that was not merged
    into the group. The label of an unmatched prediction region is its label in the relabelled
    prediction.

    Attributes
    ----------
    labels : tuple of int
        The label of each group.
    channels : mapping
        The labels of the channels of the reference and of the relabelled prediction. They are used
        only for probabilities.
    colormap : napari colormap
        The colours of all labels. If the reference is a Labels layer, this is the colormap of that
        layer; otherwise, the colours are those of the report.
    """

    labels: tuple[int, ...]
    channels: Mapping[str, tuple[int, ...]]
    colormap: Any

    @classmethod
    def of(
        cls, comparison: "Comparison", relabelled: Segmentation, colormap: Any = None
    ) -> "ShownGroups":
        """Choose the label of each group, and its colour if no colormap is given."""
        overlap = comparison.overlap
        numbers = dict(zip(overlap.reference.labels, reference_numbers(overlap), strict=True))
        relabelled_numbers = _relabelled_numbers(relabelled, numbers)
        merged_labels = {merge.region for merge in comparison.merges if merge.side == "reference"}
        labels = tuple(
            numbers[next(label for label in group.reference if label not in merged_labels)]
            if group.reference
            else relabelled_numbers[f"{group.prediction[0]} (unmatched)"]
            for group in comparison.groups
        )
        if colormap is None:
            colormap = _colormap(comparison, numbers, labels)
        channels = {
            "reference": tuple(numbers.values()),
            "prediction": tuple(relabelled_numbers.values()),
        }
        return cls(labels, channels, colormap)

    @property
    def colours(self) -> NDArray[np.float64]:
        """The red, green, blue and opacity of each group, as values between 0 and 1."""
        return np.asarray(self.colormap.map(np.array(self.labels)), np.float64)


def map_layer(comparison: "Comparison", grid: LayerGrid, name: str) -> LayerData:
    """Create an Image layer of the similarity at every pixel, lazily for Dask arrays."""
    arguments = {
        **grid.placement(),
        "name": name,
        "colormap": "magma",
        "contrast_limits": (0.0, 1.0),
        "visible": False,
    }
    return comparison.map(), arguments, "image"


def relabelled_layers(
    relabelled: Segmentation,
    shown_groups: ShownGroups,
    grid: LayerGrid,
    name: str,
    workers: int | None,
) -> list[LayerData]:
    """Create a Labels layer of the prediction with the labels of the reference.

    For a probabilistic prediction, create an Image layer of the probabilities with the region axis
    first, and a Labels layer of the most probable region of each pixel.
    """
    if relabelled.crisp:
        return [_labels_layer(relabelled.array, shown_groups, grid, name)]
    arguments = {
        **grid.placement(regions=True),
        "name": f"{name} (probabilities)",
        "contrast_limits": (0.0, 1.0),
        "visible": False,
        "metadata": {"names": [str(region) for region in relabelled.regions]},
    }
    likeliest = _most_probable(relabelled, shown_groups.channels["prediction"], workers)
    return [
        (relabelled.array, arguments, "image"),
        _labels_layer(likeliest, shown_groups, grid, f"{name} (most probable)"),
    ]


def reference_layers(
    reference: Segmentation,
    shown_groups: ShownGroups,
    grid: LayerGrid,
    name: str,
    workers: int | None,
) -> list[LayerData]:
    """Create a Labels layer of the most probable regions if the reference is probabilistic."""
    if reference.crisp:
        return []
    likeliest = _most_probable(reference, shown_groups.channels["reference"], workers)
    return [_labels_layer(likeliest, shown_groups, grid, f"{name} (most probable)")]


def _labels_layer(array: Array, shown_groups: ShownGroups, grid: LayerGrid, name: str) -> LayerData:
    return array, {**grid.placement(), "name": name, "colormap": shown_groups.colormap}, "labels"


def _most_probable(segmentation: Segmentation, labels: Sequence[int], workers: int | None) -> Any:
    """Return the label of the most probable region of each pixel, lazily for Dask arrays."""
    numbers = np.array(labels, np.int32 if max(labels) < 2**31 else np.int64)
    visit = partial(_likeliest, labels=numbers)
    return image_from_blocks(visit, Blocks(segmentation), numbers.dtype, workers)


def _likeliest(blocks: Blocks, block: Block, labels: NDArray[Any]) -> NDArray[Any]:
    side = blocks.decode(block).sides[0]
    assert isinstance(side, Soft)
    rows = side.values
    return labels[np.argmax(rows, axis=0)].reshape(block.shape)


def _relabelled_numbers(relabelled: Segmentation, numbers: Mapping[Label, int]) -> dict[Label, int]:
    """Return the label of each named region of a label map, or of each channel of probabilities."""
    if relabelled.crisp:
        return {name: number for number, name in relabelled.names.items()}
    used_labels = {*numbers.values(), *(label for label in relabelled.labels if label is not None)}
    free = count(max(used_labels) + 1)
    return {
        region: numbers[region] if region in numbers else next(free) if label is None else label
        for region, label in zip(relabelled.regions, relabelled.labels, strict=True)
    }


def _colormap(comparison: "Comparison", numbers: Mapping[Label, int], labels: Sequence[int]) -> Any:
    """Create a colormap with the same colours as the report. The background is transparent."""
    from napari.utils.colormaps import DirectLabelColormap

    colours = colours_of(comparison)
    by_label: dict[int | None, str] = {None: TRANSPARENT}
    by_label |= dict(zip(labels, colours.groups, strict=True))
    for label, colour in zip(
        comparison.reference_labels, colours.regions["reference"], strict=True
    ):
        by_label[numbers[label]] = colour
    background = background_group(comparison)
    if background is not None:
        by_label[labels[background]] = TRANSPARENT
    return DirectLabelColormap(color_dict=by_label)
