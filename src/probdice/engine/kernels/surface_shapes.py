"""The surface of a set of pixels inside one cell, for every configuration of the cell's pixels.

A cell consists of the 2 × 2 × 2 pixels (2 × 2 in 2-D) that share one corner. The configuration of a
cell is an 8-bit number with one bit per pixel. A bit is 1 if its pixel is in the set. Bit ``4 dz +
2 dx + dy`` represents the pixel at ``(dx, dy, dz)``. In 2-D, only the pixels with ``dx = 1`` are
used.

The surface passes through the midpoints of the cell edges that join a pixel inside the set to a
pixel outside the set. On every face of the cell, segments join these midpoints. If two inside
pixels of a face touch only diagonally, a separate segment cuts off each of these pixels. In 2-D,
these segments are the surface. In 3-D, the segments form closed polygons. A polygon with more than
three corners is divided into triangles that meet at the mean of its corners. The surface does not
depend on the orientation of the array.
"""

from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

CONFIGURATIONS = 256
CORNERS = tuple((bit >> 1 & 1, bit & 1, bit >> 2) for bit in range(8))
ROUNDING = 1e-9

Edge = frozenset[int]  # the two corners that the edge joins
Polygon = tuple[Edge, ...]


class Shapes(NamedTuple):
    """Elements and facets of all configurations, in coordinates relative to the cell's first pixel.

    Elements are the triangles or segments of the surface. Each element has a centroid and a size.
    Distances are measured to facets, which cover the same set of points in fewer pieces. The
    triangles of a flat polygon form one facet. The elements of configuration c have the indices
    from ``element_starts[c]`` up to, but not including, ``element_starts[c + 1]``. Facets are
    stored in the same way.

    With respect to facet f, a point r has the coordinates ``frames[f, :9] · r + frames[f, 9:]``.
    Two coordinates are in the plane of the facet, and one is along its normal. The edges of a facet
    are in counterclockwise order. Each edge has a start (2 numbers), a unit direction (2 numbers)
    and a length.
    """

    axes: Floats  # each column is one step along an axis of the array
    heights: Floats  # per axis, the distance between two layers of cells
    neighbours: Integers  # offsets of the cells around a cell, including the cell, closest first
    steps: Floats  # vectors from the cell to each neighbour
    element_starts: Integers
    fractions: Floats  # centroids in pixels
    centroids: Floats  # of the elements, in the units of `axes`
    sizes: Floats  # areas or lengths
    facet_starts: Integers
    frames: Floats
    edge_starts: Integers
    edges: Floats
    boxes: Floats  # per configuration, the centre of the surface and half its size along each axis


class _Pieces(NamedTuple):
    """Corners of the elements and of the facets of all configurations, in pixels."""

    element_starts: Integers
    elements: Floats  # three (or two) corners per element
    facet_starts: Integers
    corner_starts: Integers  # start of each facet in `corners`
    corners: Floats  # corners of all facets


def shapes_for(axes: Floats) -> Shapes:
    """Return the shapes for an image. The columns of `axes` are the steps along its 2 or 3 axes.

    The image axes are rotated onto the coordinate axes as far as possible. Rotations do not change
    distances, and the rotated cells fit best into boxes along the coordinate axes.
    """
    steps = np.eye(3)
    steps[3 - len(axes) :, 3 - len(axes) :] = np.linalg.qr(axes)[1]
    pieces = _pieces(len(axes))
    positions = pieces.elements @ steps.T
    first, last = positions[:, 1] - positions[:, 0], positions[:, -1] - positions[:, 0]
    spanned = np.cross(first, last) / 2 if len(axes) == 3 else first
    corners = pieces.corners @ steps.T
    frames, edges = _frames(corners, pieces.corner_starts)
    neighbours = np.array(list(product((-1, 0, 1), repeat=3)))
    lengths = np.linalg.norm(neighbours @ steps.T, axis=1)
    neighbours = neighbours[np.argsort(lengths, kind="stable")]
    return Shapes(
        axes=steps,
        heights=1 / np.linalg.norm(np.linalg.inv(steps), axis=1),
        neighbours=neighbours,
        steps=neighbours @ steps.T,
        element_starts=pieces.element_starts,
        fractions=pieces.elements.mean(axis=1),
        centroids=positions.mean(axis=1),
        sizes=np.linalg.norm(spanned, axis=1),
        facet_starts=pieces.facet_starts,
        frames=frames,
        edge_starts=pieces.corner_starts,
        edges=edges,
        boxes=_boxes(corners, pieces.corner_starts[pieces.facet_starts]),
    )


@cache
def _pieces(dimensions: int) -> _Pieces:
    elements: list[Floats] = []
    facets: list[Floats] = []
    element_starts, facet_starts = [0], [0]
    for configuration in range(CONFIGURATIONS):
        for polygon in polygons(configuration, dimensions):
            corners = np.array([_midpoint(edge) for edge in polygon])
            triangles = [corners] if len(corners) <= 3 else _from_the_middle(corners)
            elements += triangles
            facets += [corners] if _flat(corners) else triangles
        element_starts.append(len(elements))
        facet_starts.append(len(facets))
    return _Pieces(
        np.array(element_starts),
        np.array(elements),
        np.array(facet_starts),
        np.cumsum([0, *map(len, facets)]),
        np.concatenate(facets),
    )


def polygons(configuration: int, dimensions: int) -> list[Polygon]:
    """Return the closed polygons of a 3-D cell, or the segments of a 2-D cell, as edges."""
    if dimensions == 2:
        return [tuple(pair) for pair in _segments(configuration, _face(0, 1))]
    partners: dict[Edge, list[Edge]] = {}
    for axis in range(3):
        for side in range(2):
            for a, b in _segments(configuration, _face(axis, side)):
                partners.setdefault(a, []).append(b)
                partners.setdefault(b, []).append(a)
    closed = []
    while partners:  # every edge is joined to two edges, one on each of its faces
        polygon = [min(partners, key=sorted)]
        while True:
            onwards = [edge for edge in partners.pop(polygon[-1]) if edge in partners]
            if not onwards:
                break
            polygon.append(onwards[0])
        closed.append(tuple(polygon))
    return closed


def _face(axis: int, side: int) -> list[int]:
    """Return the four corners of a face, in cyclic order."""
    around = []
    for first, second in ((0, 0), (1, 0), (1, 1), (0, 1)):
        corner = [first, second]
        corner.insert(axis, side)
        around.append(CORNERS.index((corner[0], corner[1], corner[2])))
    return around


def _segments(configuration: int, face: list[int]) -> list[tuple[Edge, Edge]]:
    """Return the pairs of a face's edges whose midpoints are joined."""
    inside = [configuration >> corner & 1 for corner in face]
    edges = [frozenset((face[k], face[(k + 1) % 4])) for k in range(4)]
    crossed = [edges[k] for k in range(4) if inside[k] != inside[(k + 1) % 4]]
    if len(crossed) == 4:
        return [(edges[k - 1], edges[k]) for k in range(4) if inside[k]]
    return [(crossed[0], crossed[1])] if crossed else []


def _midpoint(edge: Edge) -> tuple[float, ...]:
    first, second = (CORNERS[corner] for corner in edge)
    return tuple((a + b) / 2 for a, b in zip(first, second, strict=True))


def _from_the_middle(corners: Floats) -> list[Floats]:
    """Return the triangles that join the sides of a polygon to the mean of its corners."""
    middle = corners.mean(axis=0)
    return [np.array([middle, corners[k - 1], corners[k]]) for k in range(len(corners))]


def _flat(corners: Floats) -> bool:
    """Return whether a polygon is flat and convex, so that it is one facet."""
    if len(corners) <= 3:
        return True
    sides = np.roll(corners, -1, axis=0) - corners
    turns = np.cross(sides, np.roll(sides, -1, axis=0))
    above = (corners - corners[0]) @ turns[0]
    return bool((np.abs(above) < ROUNDING).all() and (turns @ turns[0] > 0).all())


def _frames(corners: Floats, starts: Integers) -> tuple[Floats, Floats]:
    """Return the coordinate system of each facet, and its edges in this system."""
    counts = np.diff(starts)
    frames = np.empty((counts.size, 12))
    edges = np.empty((len(corners), 5))
    for count in np.unique(counts).tolist():  # process all facets with `count` corners at once
        facets = np.flatnonzero(counts == count)
        rows = starts[facets][:, None] + np.arange(count)
        around = corners[rows]
        first = around[:, 1] - around[:, 0]
        along = first / np.linalg.norm(first, axis=1, keepdims=True)
        if count == 2:  # a segment in a 2-D image, whose axes are the last two coordinates
            normal = np.broadcast_to([1.0, 0.0, 0.0], along.shape)
        else:
            normal = np.cross(first, around[:, 2] - around[:, 0])
            normal = normal / np.linalg.norm(normal, axis=1, keepdims=True)
        frame = np.stack([along, np.cross(normal, along), normal], axis=1)
        frames[facets, :9] = frame.reshape(-1, 9)
        frames[facets, 9:] = -np.einsum("fij,fj->fi", frame, around[:, 0])
        plane = np.einsum("fij,fkj->fki", frame, around - around[:, :1])[..., :2]
        sides = np.roll(plane, -1, axis=1) - plane
        lengths = np.linalg.norm(sides, axis=2, keepdims=True)
        edges[rows] = np.concatenate([plane, sides / lengths, lengths], axis=2)
    return frames, edges


def _boxes(corners: Floats, starts: Integers) -> Floats:
    """Return the centre and half the extent of the corners of each configuration."""
    boxes = np.zeros((CONFIGURATIONS, 6))
    occupied = np.flatnonzero(np.diff(starts))
    low = np.minimum.reduceat(corners, starts[occupied])
    high = np.maximum.reduceat(corners, starts[occupied])
    boxes[occupied] = np.concatenate([low + high, high - low], axis=1) / 2
    return boxes
