"""Orientation of displayed slices.

Volumes with a known geometry are shown in radiological convention: the front or the top of the
patient is up, the patient's right is on the left, and in sagittal slices the nose points to the
left. Other images are shown like printed arrays: the first axis of a slice points down, and the
second axis points to the right.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.data.geometry import Geometry

__all__ = ["Plane", "finest", "planes_of"]

# For each of R, A and S: the name of the perpendicular slice, and its axes down and to the right.
ANATOMY = {2: ("axial", 1, 0), 1: ("coronal", 2, 0), 0: ("sagittal", 2, 1)}
ENDS = (("L", "R"), ("P", "A"), ("I", "S"))
FIRST = ("A", "R", "S")  # directions at the top or the left


@dataclass(frozen=True)
class Plane:
    """Two axes of an image and their orientation on the screen.

    Attributes
    ----------
    name : str
        The name of the plane.
    rows : int
        The image axis that points down; −1 for no axis.
    columns : int
        The image axis that points to the right; −1 for no axis.
    flip_rows : bool
        Whether the axis `rows` is reversed.
    flip_columns : bool
        Whether the axis `columns` is reversed.
    edges : tuple of str
        Directions at the top, right, bottom and left; empty if unknown.
    aspect : float
        Height of a pixel divided by its width.
    """

    name: str
    rows: int
    columns: int
    flip_rows: bool = False
    flip_columns: bool = False
    edges: tuple[str, str, str, str] = ("", "", "", "")
    aspect: float = 1.0

    def across(self, axes: int) -> tuple[int, ...]:
        """Return the axes perpendicular to a slice."""
        return tuple(axis for axis in range(axes) if axis not in (self.rows, self.columns))

    def drawn(self, image: NDArray[Any], axes: int) -> NDArray[Any]:
        """Return the first slice of an image in display order.

        `axes` is the number of image axes. Further axes of the array, such as colours, are kept.
        """
        order = [axis for axis in (self.rows, self.columns) if axis >= 0]
        across = self.across(axes)
        channel_axes = tuple(range(axes, image.ndim))
        plane: NDArray[Any] = image.transpose(*across, *order, *channel_axes)[(0,) * len(across)]
        for _ in range(2 - len(order)):
            plane = plane[None]
        if self.flip_rows:
            plane = plane[::-1]
        return plane[:, ::-1] if self.flip_columns else plane


def planes_of(axes: int, geometry: Geometry | None) -> tuple[Plane, ...]:
    """Return the planes in which an image can be shown, in order of preference.

    Examples
    --------
    >>> import numpy as np
    >>> from probdice import Geometry
    >>> from probdice.pictures.planes import planes_of
    >>> planes = planes_of(3, Geometry((9, 9, 9), np.diag([2.0, 2.0, 3.0, 1.0])))
    >>> [(plane.name, plane.edges, plane.aspect) for plane in planes]
    [('axial', ('A', 'L', 'P', 'R'), 1.0), ('coronal', ('S', 'L', 'I', 'R'), 1.5), \
('sagittal', ('S', 'P', 'I', 'A'), 1.5)]
    """
    spacing = geometry.spacing if geometry is not None else (1.0,) * axes
    if axes < 2:
        return (Plane("all", -1, axes - 1),)
    if axes == 2:
        return (Plane("all", 0, 1, aspect=spacing[0] / spacing[1]),)
    if axes == 3 and geometry is not None:
        towards = np.argmax(np.abs(geometry.direction), axis=0)
        if sorted(towards) == [0, 1, 2]:
            return tuple(_anatomical(geometry, towards, world) for world in ANATOMY)
    planes = [
        Plane(_name(rows, columns, axes), rows, columns, aspect=spacing[rows] / spacing[columns])
        for rows, columns in combinations(range(axes), 2)
    ]
    return tuple(reversed(planes))


def finest(planes: Sequence[Plane], shape: tuple[int, ...], geometry: Geometry | None) -> Plane:
    """Return the plane that pages show first: the plane with the smallest pixels.

    In a tie, return the first of these planes. If the pixel size is unknown, return the plane with
    the most pixels.

    Examples
    --------
    >>> import numpy as np
    >>> from probdice import Geometry
    >>> from probdice.pictures.planes import finest, planes_of
    >>> spine = Geometry((17, 512, 512), np.diag([4.0, 0.6, 0.6, 1.0]))
    >>> finest(planes_of(3, spine), spine.shape, spine).name
    'sagittal'
    """

    def coarseness(plane: Plane) -> float:
        axes = [axis for axis in (plane.rows, plane.columns) if axis >= 0]
        if geometry is None:
            return -float(np.prod([shape[axis] for axis in axes]))
        return float(f"{np.prod([geometry.spacing[axis] for axis in axes]):.3g}")

    return min(planes, key=coarseness)


def _anatomical(geometry: Geometry, towards: NDArray[np.int64], across: int) -> Plane:
    """Return the plane perpendicular to one direction of the body."""
    name, down, right = ANATOMY[across]
    rows, columns = (int(np.flatnonzero(towards == world)[0]) for world in (down, right))
    flips, ends = [], []
    for axis, world in ((rows, down), (columns, right)):
        low, high = ENDS[world]
        if geometry.direction[world, axis] < 0:
            low, high = high, low
        flip = low not in FIRST
        flips.append(flip)
        ends.append((high, low) if flip else (low, high))
    (top, bottom), (left, right_end) = ends
    aspect = geometry.spacing[rows] / geometry.spacing[columns]
    return Plane(name, rows, columns, flips[0], flips[1], (top, right_end, bottom, left), aspect)


def _name(rows: int, columns: int, axes: int) -> str:
    if axes == 3:
        return f"axis {3 - rows - columns}"
    return f"axes {rows} and {columns}"
