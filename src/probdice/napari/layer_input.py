"""Convert napari layers to segmentations with a geometry."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.data.arrays import chunks_of, has_type
from probdice.data.geometry import Geometry
from probdice.data.segmentation import Segmentation
from probdice.data.value_checks import Sums
from probdice.errors import GeometryError, InputError, ProbdiceError
from probdice.method.sides import Both

if TYPE_CHECKING:
    from napari.layers import Layer

__all__ = ["LayerGrid", "is_labels", "is_stack", "segmentations_of"]


@dataclass(frozen=True, eq=False)
class LayerGrid:
    """The position of the pixels of a layer, without the region axis.

    Attributes
    ----------
    matrix : ndarray
        The homogeneous matrix that maps a pixel index to world coordinates in `units`.
    units : tuple
        The unit of each axis, as in ``layer.units``.

    Examples
    --------
    >>> import numpy as np
    >>> from napari.layers import Labels
    >>> from probdice.napari.layer_input import LayerGrid
    >>> layer = Labels(np.zeros((3, 4), int), scale=(2, 0.5), units=("um", "um"))
    >>> grid = LayerGrid.of(layer)
    >>> grid.world((1, 3))
    (2.0, 1.5)
    >>> grid.geometry((3, 4)).spacing  # in millimetres
    (0.002, 0.0005)
    """

    matrix: NDArray[np.float64]
    units: tuple[Any, ...]

    @classmethod
    def of(cls, layer: "Layer") -> "LayerGrid":
        """Combine the scale, translation, rotation, shear and affine transform of a layer."""
        axes = layer.ndim
        origin = np.array(layer.data_to_world((0,) * axes), np.float64)
        steps = [np.array(layer.data_to_world(tuple(unit))) - origin for unit in np.eye(axes)]
        linear = np.stack(steps, axis=1)
        first = 1 if is_stack(layer) else 0
        if np.any(linear[:first, first:]) or np.any(linear[first:, :first]):
            raise GeometryError(
                f"the transform of layer {layer.name!r} mixes its first axis (the regions) with "
                f"the axes of the image. Remove the rotation and shear of the first axis."
            )
        size = axes - first
        matrix = np.eye(size + 1)
        matrix[:size, :size] = linear[first:, first:]
        matrix[:size, size] = origin[first:]
        return cls(matrix, tuple(layer.units[first:]))

    @property
    def is_default(self) -> bool:
        """Whether the grid has a spacing of 1, an origin of 0 and no physical unit."""
        return not any(_is_length(unit) for unit in self.units) and np.array_equal(
            self.matrix, np.eye(len(self.matrix))
        )

    def geometry(self, shape: tuple[int, ...]) -> Geometry:
        """Return the geometry in millimetres. A scale without a unit is read as millimetres."""
        factors = [_millimetres(unit) for unit in self.units]
        return Geometry(shape, np.diag([*factors, 1.0]) @ self.matrix)

    def world(self, index: Sequence[float]) -> tuple[float, ...]:
        """Convert a pixel index to world coordinates."""
        point = self.matrix @ np.append(np.asarray(index, np.float64), 1.0)
        return tuple(float(x) for x in point[:-1])

    def placement(self, *, regions: bool = False) -> dict[str, Any]:
        """Return the arguments that place a layer, with or without a region axis, on this grid."""
        matrix, units = self.matrix, self.units
        if regions:
            matrix = np.eye(len(matrix) + 1)
            matrix[1:, 1:] = self.matrix
            units = ("pixel", *units)
        linear, origin = matrix[:-1, :-1], matrix[:-1, -1]
        if np.array_equal(linear, np.diag(np.diag(linear))):
            return {"scale": np.diag(linear), "translate": origin, "units": units}
        return {"affine": matrix, "units": units}


def segmentations_of(
    reference: "Layer", prediction: "Layer", *, sums: Sums = "error"
) -> Both[Segmentation]:
    """Convert two layers to segmentations.

    A Labels layer becomes a label map. An Image layer of floating-point numbers contains
    probabilities with the region axis first. Dask arrays and chunked stores such as Zarr are not
    loaded into memory as a whole. The names of regions are read from ``layer.metadata["names"]``,
    which is a mapping of labels to names or, for an Image layer, a list of one name per region.

    Parameters
    ----------
    reference, prediction : Layer
        The layers. The finest level of a multiscale layer is used.
    sums : {"error", "normalise", "background"}, optional
        How to handle probabilities that do not sum to 1, as in `Segmentation.from_probabilities`.

    Returns
    -------
    Both of Segmentation
        The segmentations. They have no geometry if both layers have the default transform and no
        physical unit.

    Examples
    --------
    >>> import numpy as np
    >>> from napari.layers import Image, Labels
    >>> from probdice.napari.layer_input import segmentations_of
    >>> labels = Labels(np.zeros((3, 4), int), scale=(2, 2))
    >>> stack = Image(np.full((2, 3, 4), 0.5, np.float32), scale=(1, 2, 2))
    >>> sides = segmentations_of(labels, stack)
    >>> sides.prediction
    Segmentation(regions=(0, 1), shape=(3, 4), float32)
    >>> sides.reference.geometry == sides.prediction.geometry
    True
    """
    layers = {"reference": reference, "prediction": prediction}
    grids = {}
    for side, layer in layers.items():
        with _naming(side, layer):
            grids[side] = LayerGrid.of(layer)
    without_geometry = all(grid.is_default for grid in grids.values())
    segmentations = []
    for side, layer in layers.items():
        with _naming(side, layer):
            grid = None if without_geometry else grids[side]
            segmentations.append(_segmentation(layer, grid, sums))
    return Both(*segmentations)


def is_labels(layer: "Layer") -> bool:
    """Return whether a layer is a Labels layer, which contains a label map."""
    from napari.layers import Labels

    return isinstance(layer, Labels)


def is_stack(layer: "Layer") -> bool:
    """Return whether a layer is an Image layer, whose first axis is the region axis."""
    from napari.layers import Image

    return isinstance(layer, Image)


@contextmanager
def _naming(side: str, layer: "Layer") -> Iterator[None]:
    """Prefix errors with the names of the side and the layer."""
    try:
        yield
    except ProbdiceError as error:
        raise error.prefixed(f"{side} (layer {layer.name!r}): ") from None


def _segmentation(layer: "Layer", grid: LayerGrid | None, sums: Sums) -> Segmentation:
    array = _lazy(layer.data[0] if layer.multiscale else layer.data)
    names = layer.metadata.get("names")
    if is_labels(layer):
        geometry = None if grid is None else grid.geometry(array.shape)
        return Segmentation.from_labels(array, names=names, geometry=geometry)
    _check_stack(layer, array)
    geometry = None if grid is None else grid.geometry(array.shape[1:])
    return Segmentation.from_probabilities(array, names=names, sums=sums, geometry=geometry)


def _check_stack(layer: "Layer", array: Any) -> None:
    if layer.rgb:
        raise InputError(
            "is a colour image. Compare Labels layers, or Image layers of probabilities with the "
            "regions along the first axis."
        )
    if np.dtype(array.dtype).kind != "f":
        raise InputError(
            f"is an Image layer of {array.dtype}, so it is unclear whether it contains labels or "
            f"probabilities. Convert labels to a Labels layer (right-click the layer, Convert to "
            f"Labels), or probabilities to floating-point numbers between 0 and 1."
        )
    if len(array.shape) < 2:
        raise InputError(
            f"has {len(array.shape)} axis. Probabilities must have the regions along the first "
            f"axis, followed by the axes of the image."
        )


def _lazy(array: Any) -> Any:
    """Convert a chunked store to a Dask array, so that derived layers are computed when shown."""
    if isinstance(array, np.ndarray) or has_type(array, "dask", "Array"):
        return array
    if chunks_of(array) is None:
        return array
    from dask.array import from_array

    return from_array(array, chunks=array.chunks)


def _is_length(unit: Any) -> bool:
    return bool(unit.is_compatible_with("millimeter"))


def _millimetres(unit: Any) -> float:
    """Return the length of a unit in millimetres; 1 if the unit is not a length."""
    return float((1.0 * unit).to("millimeter").magnitude) if _is_length(unit) else 1.0
