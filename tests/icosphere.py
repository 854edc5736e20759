"""A synthetic hemisphere: an icosphere with the vertex counts of fsaverage, and parcellations."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["icosphere", "parcels"]


def icosphere(order: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Points and triangles of an icosahedron subdivided `order` times: 10 · 4^order + 2 points."""
    t = (1 + 5**0.5) / 2
    points = [
        *((-1, t, 0), (1, t, 0), (-1, -t, 0), (1, -t, 0), (0, -1, t), (0, 1, t)),
        *((0, -1, -t), (0, 1, -t), (t, 0, -1), (t, 0, 1), (-t, 0, -1), (-t, 0, 1)),
    ]
    triangles = np.array(
        [
            *([0, 11, 5], [0, 5, 1], [0, 1, 7], [0, 7, 10], [0, 10, 11], [1, 5, 9], [5, 11, 4]),
            *([11, 10, 2], [10, 7, 6], [7, 1, 8], [3, 9, 4], [3, 4, 2], [3, 2, 6], [3, 6, 8]),
            *([3, 8, 9], [4, 9, 5], [2, 4, 11], [6, 2, 10], [8, 6, 7], [9, 8, 1]),
        ]
    )
    sphere = np.array(points, float)
    for _ in range(order):
        edges = np.sort(
            np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]]), 1
        )
        unique, places = np.unique(edges, axis=0, return_inverse=True)
        ab, bc, ca = places.reshape(3, -1) + len(sphere)
        a, b, c = triangles.T
        sphere = np.concatenate([sphere, sphere[unique].mean(axis=1)])
        triangles = np.concatenate(
            [np.stack(t, 1) for t in ((a, ab, ca), (b, bc, ab), (c, ca, bc), (ab, bc, ca))]
        )
    return sphere / np.linalg.norm(sphere, axis=1, keepdims=True), triangles


def parcels(points: NDArray[np.float64], count: int, seed: int = 0) -> NDArray[np.int32]:
    """Labels 1 … count of the nearest of `count` random points, and 0 for the medial wall.

    The medial wall of a left hemisphere is its rightmost part.
    """
    centres = np.random.default_rng(seed).normal(size=(count, 3))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    labels = 1 + np.argmax(points @ centres.T, axis=1)
    return np.where(points[:, 0] > 0.9, 0, labels).astype(np.int32)
