"""Orthographic views of a surface: the vertex shown at each pixel of a picture, and its shading."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probdice.data.surface import Surface

__all__ = ["SurfaceView", "painted", "views_of"]

SAMPLES_PER_PIXEL = 2  # along each axis
NO_VERTEX = -1  # vertex of a pixel outside the surface
AMBIENT = 0.55  # brightness of a surface that faces sideways
BATCH = 1 << 21  # pairs of a triangle and a sample tested at once, which limits memory


@dataclass(frozen=True, eq=False)
class SurfaceView:
    """One view of a surface.

    Attributes
    ----------
    name : str
        "lateral" or "medial"; for an unknown structure, "from the left" or "from the right".
    vertices : ndarray of int64
        The vertex at each sample of the picture; −1 outside the surface.
    shading : ndarray of float64
        Brightness of each sample from 0 to 1.
    """

    name: str
    vertices: NDArray[np.int64]
    shading: NDArray[np.float64]


def views_of(surface: Surface, *, width: int = 360) -> tuple[SurfaceView, SurfaceView]:
    """Return the lateral and the medial view of a hemisphere.

    If the hemisphere is unknown, return the views from the left and from the right. The larger of
    the width and the height of each picture is about `width` pixels.

    Examples
    --------
    >>> import numpy as np
    >>> from probdice.data.surface import Surface
    >>> from probdice.pictures.surface_views import views_of
    >>> points = np.array([[0, 0, 0], [0, 9, 0], [0, 0, 9.0]])
    >>> triangle = Surface(points, np.array([[0, 1, 2]]), "left cortex")
    >>> lateral, medial = views_of(triangle, width=10)
    >>> lateral.name, sorted(set(lateral.vertices.ravel().tolist()))
    ('lateral', [-1, 0, 1, 2])
    """
    names = {"left": ("lateral", "medial"), "right": ("medial", "lateral")}
    from_left, from_right = names.get(
        surface.structure.split(" ")[0], ("from the left", "from the right")
    )
    views = (
        _view(surface, from_left, -1.0, width * SAMPLES_PER_PIXEL),
        _view(surface, from_right, 1.0, width * SAMPLES_PER_PIXEL),
    )
    return views if from_left != "medial" else (views[1], views[0])


def painted(view: SurfaceView, colours: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return an RGBA picture from one colour per vertex.

    Vertices whose colour is NaN are grey. Pixels outside the surface are transparent.

    Examples
    --------
    >>> import numpy as np
    >>> from probdice.pictures.surface_views import SurfaceView, painted
    >>> view = SurfaceView("lateral", np.array([[0, 0], [0, -1]]), np.ones((2, 2)))
    >>> painted(view, np.array([[1.0, 0, 0]])).tolist()
    [[[255, 0, 0, 191]]]
    """
    vertex_colours = np.where(np.isnan(colours), 0.6, colours)
    inside = view.vertices != NO_VERTEX
    samples = np.zeros((*view.vertices.shape, 4))
    samples[inside, :3] = vertex_colours[view.vertices[inside]] * view.shading[inside, None]
    samples[inside, 3] = 1.0
    rows, columns = (n // SAMPLES_PER_PIXEL for n in view.vertices.shape)
    mean = samples.reshape(rows, SAMPLES_PER_PIXEL, columns, SAMPLES_PER_PIXEL, 4).mean(axis=(1, 3))
    mean[..., :3] /= np.maximum(mean[..., 3:], 1e-9)  # colours do not mix with the outside
    picture: NDArray[np.uint8] = np.rint(255 * np.clip(mean, 0, 1)).astype(np.uint8)
    return picture


def _view(surface: Surface, name: str, side: float, width: int) -> SurfaceView:
    """Return the view along the x axis from the left (side −1) or from the right (side 1)."""
    right, anterior, superior = surface.points.T
    x, y, depth = side * anterior, -superior, side * right  # depth increases towards the viewer
    normals = _normals(surface)
    facing = side * normals[:, 0]
    low = np.array([x.min(), y.min()])
    extent = np.array([x.max(), y.max()]) - low
    scale = (width - 1) / max(float(extent[0]), float(extent[1]), 1e-9)
    shape = tuple(
        SAMPLES_PER_PIXEL * (int(extent[k] * scale) // SAMPLES_PER_PIXEL + 1) for k in (1, 0)
    )
    x, y = (x - low[0]) * scale, (y - low[1]) * scale
    vertices = _visible(np.stack([x, y, depth], axis=1), surface.triangles, shape)
    # The inner sides of an open mesh have the same shading as the outer sides.
    light = AMBIENT + (1 - AMBIENT) * np.abs(facing)
    shading = np.where(vertices == NO_VERTEX, 0.0, light[vertices])
    return SurfaceView(name, vertices, shading)


def _normals(surface: Surface) -> NDArray[np.float64]:
    """Return the unit normal of each vertex: the mean normal of its triangles, weighted by area."""
    corners = surface.points[surface.triangles]
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals = np.zeros_like(surface.points)
    for k in range(3):
        for axis in range(3):
            normals[:, axis] += np.bincount(surface.triangles[:, k], cross[:, axis], len(normals))
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    unit: NDArray[np.float64] = normals / np.maximum(lengths, 1e-12)
    return unit


def _visible(
    points: NDArray[np.float64], triangles: NDArray[np.int64], shape: tuple[int, ...]
) -> NDArray[np.int64]:
    """Return the closest vertex of the foremost triangle at each sample, using a depth buffer.

    Triangles are tested at each sample of their bounding boxes. Triangles whose boxes have the same
    size are tested together.
    """
    rows, columns = shape
    nearest = np.full(rows * columns, -np.inf)
    vertices = np.full(rows * columns, NO_VERTEX, np.int64)
    corners = points[triangles]
    low = np.ceil(corners[:, :, :2].min(axis=1)).astype(np.int64)
    high = np.floor(corners[:, :, :2].max(axis=1)).astype(np.int64)
    sizes = high - low + 1
    order = np.flatnonzero((sizes > 0).all(axis=1))
    order = order[np.lexsort((sizes[order, 1], sizes[order, 0]))]
    if not order.size:  # all triangles are seen edge-on, or smaller than a sample
        return vertices.reshape(rows, columns)
    kinds, starts = np.unique(sizes[order], axis=0, return_index=True)
    for (across, down), group in zip(kinds, np.split(order, starts[1:]), strict=True):
        steps = np.stack(np.meshgrid(np.arange(across), np.arange(down)), -1).reshape(-1, 2)
        batch = max(1, BATCH // len(steps))
        for some in (group[k : k + batch] for k in range(0, len(group), batch)):
            candidates = low[some, None] + steps
            weights = _weights(corners[some], candidates.astype(np.float64))
            inside = (weights >= -1e-9).all(axis=-1)
            depth = (weights * corners[some][:, None, :, 2]).sum(axis=-1)[inside]
            at = (candidates[..., 1] * columns + candidates[..., 0])[inside]
            closest_vertices = np.take_along_axis(
                triangles[some][:, None], weights.argmax(axis=-1)[..., None], axis=2
            )[..., 0][inside]
            front = np.argsort(depth, kind="stable")
            at, depth, closest_vertices = at[front], depth[front], closest_vertices[front]
            closer = depth > nearest[at]
            # If a sample has several values, the last value, which is closest to the viewer, is
            # kept.
            nearest[at[closer]] = depth[closer]
            vertices[at[closer]] = closest_vertices[closer]
    return vertices.reshape(rows, columns)


def _weights(corners: NDArray[np.float64], candidates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return barycentric coordinates of points; −1 for triangles seen edge-on."""
    a, b, c = (corners[:, None, k, :2] for k in range(3))
    area = (b - a)[..., 0] * (c - a)[..., 1] - (b - a)[..., 1] * (c - a)[..., 0]
    second = (candidates - a)[..., 0] * (c - a)[..., 1] - (candidates - a)[..., 1] * (c - a)[..., 0]
    third = (b - a)[..., 0] * (candidates - a)[..., 1] - (b - a)[..., 1] * (candidates - a)[..., 0]
    safe = np.where(area == 0, 1.0, area)
    weights = np.stack([1 - (second + third) / safe, second / safe, third / safe], axis=-1)
    weights[np.broadcast_to(area == 0, weights.shape[:-1])] = -1.0
    return weights
