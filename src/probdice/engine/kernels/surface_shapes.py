"""The surface of a set of pixels inside one cell, for every configuration of the cell's pixels.

A cell is the 2 × 2 × 2 pixels (in 2-D, the 2 × 2 pixels) around a corner of the pixel grid. Its
configuration is a number of eight bits, one per pixel, set where the pixel is in the set; bit
``4 dz + 2 dx + dy`` is the pixel at ``(dx, dy, dz)``. In 2-D only the pixels with dx = 1 count.

The surface passes through the midpoints of the cell's edges between a pixel inside the set and one
outside. On every face of the cell, midpoints are joined by segments; where two inside pixels touch
only diagonally, each is cut off by its own segment. In 2-D these segments are the surface. In 3-D
they form closed polygons: a triangle stays as it is, and a polygon of more corners is divided into
triangles from the mean of its corners. The rule does not depend on the orientation of the array.
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
MIDDLE = 1e-9  # sizes below this are rounding

Edge = frozenset[int]  # the two corners that it joins
Polygon = tuple[Edge, ...]


class Shapes(NamedTuple):
    """Elements and facets of all configurations, in coordinates relative to the cell's first pixel.

    Elements are the triangles or segments that the rule gives: they have a centroid and a size.
    Facets are the same set of points in fewer pieces, since the triangles of a flat polygon are
    one facet: distances are measured to them. Configuration c has the elements
    ``element_starts[c]`` up to ``element_starts[c + 1]``, and likewise its facets.

    A point r has the coordinates ``frames[f, :9] · r + frames[f, 9:]`` with respect to a facet:
    two in its plane and one along its normal. Each of its edges, counterclockwise, has a start
    (2), a unit direction (2) and a length.
    """

    axes: Floats  # columns: one step along each axis of the array
    heights: Floats  # per axis, the distance between two layers of cells
    neighbours: Integers  # cells around a cell, itself included, the closest first
    steps: Floats  # from the cell to each of them
    element_starts: Integers
    fractions: Floats  # centroids in pixels
    places: Floats  # centroids
    sizes: Floats  # areas or lengths
    facet_starts: Integers
    frames: Floats
    edge_starts: Integers
    edges: Floats
    boxes: Floats  # per configuration, the centre of its surface and half its size along each axis


def shapes_for(axes: Floats) -> Shapes:
    """The shapes of an image with these steps along its two or three axes, as columns.

    Distances do not change when everything is rotated, and boxes along the axes of the coordinates
    fit cells best, so the axes are rotated onto those of the coordinates as far as possible.
    """
    steps = np.eye(3)
    steps[3 - len(axes) :, 3 - len(axes) :] = np.linalg.qr(axes)[1]
    elements, facets = _pieces(len(axes))
    corners = np.array([corner for pieces in elements for corner in pieces])
    places = corners @ steps.T
    first, second = places[:, 1] - places[:, 0], places[:, -1] - places[:, 0]
    if len(axes) == 3:
        sizes = np.linalg.norm(np.cross(first, second), axis=1) / 2
    else:
        sizes = np.linalg.norm(first, axis=1)
    frames, edge_starts, edges = _frames(
        [corner @ steps.T for pieces in facets for corner in pieces]
    )
    boxes = np.zeros((CONFIGURATIONS, 6))
    for configuration, pieces in enumerate(facets):
        if pieces:
            reached = np.concatenate(pieces) @ steps.T
            low, high = reached.min(axis=0), reached.max(axis=0)
            boxes[configuration] = *(low + high) / 2, *(high - low) / 2
    neighbours = np.array(list(product((-1, 0, 1), repeat=3)))
    lengths = np.linalg.norm(neighbours @ steps.T, axis=1)
    neighbours = neighbours[np.argsort(lengths, kind="stable")]
    return Shapes(
        axes=steps,
        neighbours=neighbours,
        steps=neighbours @ steps.T,
        heights=1 / np.linalg.norm(np.linalg.inv(steps), axis=1),
        element_starts=_starts(elements),
        fractions=corners.mean(axis=1),
        places=places.mean(axis=1),
        sizes=sizes,
        facet_starts=_starts(facets),
        frames=frames,
        edge_starts=edge_starts,
        edges=edges,
        boxes=boxes,
    )


def _starts(pieces: list[list[Floats]]) -> Integers:
    return np.cumsum([0, *map(len, pieces)])


@cache
def _pieces(dimensions: int) -> tuple[list[list[Floats]], list[list[Floats]]]:
    """Corners of the elements and of the facets of every configuration, in pixels."""
    elements: list[list[Floats]] = []
    facets: list[list[Floats]] = []
    for configuration in range(CONFIGURATIONS):
        elements.append([])
        facets.append([])
        for polygon in polygons(configuration, dimensions):
            corners = np.array([_midpoint(edge) for edge in polygon])
            if len(corners) <= 3:
                pieces = [corners]
            else:
                centre = corners.mean(axis=0)
                following = np.roll(corners, -1, axis=0)
                pieces = [np.array([centre, a, b]) for a, b in zip(corners, following, strict=True)]
            elements[-1] += pieces
            facets[-1] += [corners] if _flat(corners) else pieces
    return elements, facets


def polygons(configuration: int, dimensions: int) -> list[Polygon]:
    """The closed polygons of a 3-D cell, or the segments of a 2-D cell, by the edges they cross."""
    if dimensions == 2:
        return [tuple(pair) for pair in _segments(configuration, _face(0, 1))]
    partners: dict[Edge, list[Edge]] = {}
    for axis in range(3):
        for side in range(2):
            for a, b in _segments(configuration, _face(axis, side)):
                partners.setdefault(a, []).append(b)
                partners.setdefault(b, []).append(a)
    closed = []
    while partners:  # every edge has two partners, one on each of its faces
        polygon = [min(partners, key=sorted)]
        while True:
            onwards = [edge for edge in partners.pop(polygon[-1]) if edge in partners]
            if not onwards:
                break
            polygon.append(onwards[0])
        closed.append(tuple(polygon))
    return closed


def _face(axis: int, side: int) -> list[int]:
    """The four corners of a face, around it."""
    around = []
    for first, second in ((0, 0), (1, 0), (1, 1), (0, 1)):
        place = [first, second]
        place.insert(axis, side)
        around.append(CORNERS.index((place[0], place[1], place[2])))
    return around


def _segments(configuration: int, face: list[int]) -> list[tuple[Edge, Edge]]:
    """The pairs of edges of a face whose midpoints are joined."""
    inside = [configuration >> corner & 1 for corner in face]
    edges = [frozenset((face[k], face[(k + 1) % 4])) for k in range(4)]
    crossed = [edges[k] for k in range(4) if inside[k] != inside[(k + 1) % 4]]
    if len(crossed) == 4:
        return [(edges[k - 1], edges[k]) for k in range(4) if inside[k]]
    return [(crossed[0], crossed[1])] if crossed else []


def _midpoint(edge: Edge) -> Floats:
    midpoint: Floats = np.mean([CORNERS[corner] for corner in edge], axis=0)
    return midpoint


def _flat(corners: Floats) -> bool:
    """Whether a polygon is flat and convex, so that it is one facet."""
    if len(corners) <= 3:
        return True
    sides = np.roll(corners, -1, axis=0) - corners
    turns = np.cross(sides, np.roll(sides, -1, axis=0))
    flat = np.linalg.matrix_rank(corners - corners[0], tol=MIDDLE) == 2
    return bool(flat and (turns @ turns[0] > 0).all())


def _frames(facets: list[Floats]) -> tuple[Floats, Integers, Floats]:
    """Coordinates with respect to each facet, and its edges in them."""
    counts = np.array([len(corners) for corners in facets])
    starts = np.cumsum([0, *counts])
    frames = np.zeros((len(facets), 12))
    edges = np.zeros((starts[-1], 5))
    for count in np.unique(counts).tolist():  # all facets with equally many corners at once
        rows = np.flatnonzero(counts == count)
        corners = np.array([facets[row] for row in rows])
        first = corners[:, 1] - corners[:, 0]
        along = first / np.linalg.norm(first, axis=1, keepdims=True)
        if count == 2:  # a segment: the third axis of a 2-D image is the first one
            normal = np.broadcast_to([1.0, 0.0, 0.0], along.shape)
        else:
            normal = np.cross(first, corners[:, 2] - corners[:, 0])
            normal = normal / np.linalg.norm(normal, axis=1, keepdims=True)
        frame = np.stack([along, np.cross(normal, along), normal], axis=1)
        frames[rows, :9] = frame.reshape(-1, 9)
        frames[rows, 9:] = -np.einsum("fij,fj->fi", frame, corners[:, 0])
        plane = np.einsum("fij,fkj->fki", frame, corners - corners[:, :1])[..., :2]
        sides = np.roll(plane, -1, axis=1) - plane
        lengths = np.linalg.norm(sides, axis=2, keepdims=True)
        of_facet = np.concatenate([plane, sides / lengths, lengths], axis=2)
        edges[starts[rows][:, None] + np.arange(count)] = of_facet
    return frames, starts, edges
