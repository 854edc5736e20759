"""Position of an image in space, and alignment of two grids."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from math import inf, isfinite
from operator import index
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from probdice.data.pixel_words import words_for_axes
from probdice.errors import InputError

__all__ = ["Geometry"]


@dataclass(frozen=True, eq=False)  # an affine is compared as an array
class Geometry:
    """Position of the pixels (voxels in 3-D) of an image in space.

    Parameters
    ----------
    shape : tuple of int
        Number of pixels along each axis.
    affine : array_like
        Homogeneous matrix that maps a pixel index to a position in millimetres (in 3-D: right,
        anterior, superior). For an image with n axes, the matrix has n + 1 rows and columns.

    Examples
    --------
    >>> import numpy as np
    >>> from probdice import Geometry
    >>> Geometry((64, 64, 30), np.diag([0.8, 0.8, 3.0, 1.0])).spacing
    (0.8, 0.8, 3.0)
    >>> Geometry((2,), np.eye(2)) == Geometry((2,), np.eye(2))
    True
    """

    on_grid: ClassVar[bool] = True  # False for vertices, which have no rows and columns

    shape: tuple[int, ...]
    affine: NDArray[np.float64]

    def __post_init__(self) -> None:
        try:
            affine = np.array(self.affine, dtype=np.float64) + 0.0  # converts −0.0 to 0.0
            shape = tuple(index(n) for n in self.shape)
        except (TypeError, ValueError):
            raise InputError(
                f"shape must contain whole numbers and affine must contain numbers, found "
                f"{self.shape!r} and {self.affine!r}"
            ) from None
        size = len(shape) + 1
        if affine.shape != (size, size):
            raise InputError(
                f"affine must be {size} × {size} for an image with {size - 1} axes, "
                f"found shape {affine.shape}"
            )
        if not np.all(np.isfinite(affine)) or np.linalg.matrix_rank(affine[:-1, :-1]) < size - 1:
            raise InputError(f"affine must be finite and invertible, found {affine.tolist()}")
        affine.flags.writeable = False
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "affine", affine)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Geometry):
            return NotImplemented
        return self.shape == other.shape and np.array_equal(self.affine, other.affine)

    def __hash__(self) -> int:
        return hash((self.shape, self.affine.tobytes()))

    @property
    def spacing(self) -> tuple[float, ...]:
        """Distance between neighbouring pixels along each axis, in millimetres."""
        return tuple(float(x) for x in np.linalg.norm(self.affine[:-1, :-1], axis=0))

    @property
    def origin(self) -> tuple[float, ...]:
        """Position of the first pixel, in millimetres."""
        return tuple(float(x) for x in self.affine[:-1, -1])

    @property
    def direction(self) -> NDArray[np.float64]:
        """Unit vectors along the axes, as columns."""
        direction: NDArray[np.float64] = self.affine[:-1, :-1] / np.array(self.spacing)
        return direction

    @property
    def pixel_volume(self) -> float:
        """Volume of one voxel in mm³, or area of one pixel in mm² in 2-D."""
        return float(abs(np.linalg.det(self.affine[:-1, :-1])))

    def steps_onto(self, other: "Geometry") -> tuple[tuple[int, ...], tuple[int, ...], float]:
        """Return the order of axes and the flipped axes that align this grid with `other`.

        The third value is the largest remaining distance between corresponding corners, in pixels
        of `other`. The distance is infinite if the grids cannot be aligned.
        """
        axes = len(self.shape)
        not_aligned = tuple(range(axes)), (), inf
        if len(other.shape) != axes or not other.on_grid:
            return not_aligned
        to_other = np.linalg.inv(other.affine) @ self.affine
        order = [int(np.argmax(np.abs(row[:axes]))) for row in to_other[:axes]]
        if len(set(order)) != axes or tuple(self.shape[a] for a in order) != other.shape:
            return not_aligned
        flips = tuple(k for k in range(axes) if to_other[k, order[k]] < 0)
        distance = 0.0
        for corner in product(*((0, n - 1) for n in other.shape)):
            index = np.ones(axes + 1)
            for k in range(axes):
                index[order[k]] = other.shape[k] - 1 - corner[k] if k in flips else corner[k]
            distance = max(distance, float(np.linalg.norm((to_other @ index)[:axes] - corner)))
        return tuple(order), flips, distance

    def obstacle(self, other: "Geometry", distance: float) -> str:
        """Describe why this grid cannot be aligned with `other`.

        `distance` is the distance that `steps_onto` returned.
        """
        if isfinite(distance):
            return f"corners are up to {distance:.3g} {words_for_axes(len(self.shape)).many} apart"
        return "the grids differ in size or direction for every order of the axes"

    def of_one_pixel(self) -> "Geometry":
        """Return the geometry of an image that contains only the first pixel."""
        return Geometry((1,) * len(self.shape), self.affine)

    def describe(self) -> dict[str, str]:
        """Return the size, spacing, origin and direction as short strings."""

        def numbers(values: Iterable[float]) -> str:
            return " ".join(f"{value + 0.0:.6g}" for value in values)

        return {
            "size": " × ".join(str(n) for n in self.shape),
            "spacing": numbers(self.spacing),
            "origin": numbers(self.origin),
            "direction": "; ".join(numbers(np.round(row, 6)) for row in self.direction),
        }

    def mismatch(self, expected: "Geometry") -> str:
        """Describe the properties that differ from those of the expected geometry."""
        properties, expected_properties = self.describe(), expected.describe()
        return "; ".join(
            f"{key} {properties.get(key, 'none')}, expected {expected_properties.get(key, 'none')}"
            for key in dict.fromkeys((*properties, *expected_properties))
            if properties.get(key) != expected_properties.get(key)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the geometry as a dictionary for JSON.

        Examples
        --------
        >>> import numpy as np
        >>> from probdice import Geometry
        >>> Geometry((4,), np.diag([2.0, 1.0])).to_dict()
        {'shape': [4], 'affine': [[2.0, 0.0], [0.0, 1.0]]}
        """
        return {"shape": list(self.shape), "affine": self.affine.tolist()}
