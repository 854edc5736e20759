"""The outlines of the groups with the largest distances, and the scale of these distances."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from probdice.pictures.colours import DIFFERENT, background_group
from probdice.pictures.views import images_of

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison
    from probdice.metrics.boundary_result import Boundaries

__all__ = ["DISTANCE_COLOURS", "Outline", "distance_scale", "outlines_of", "stored_boundaries"]

DISTANCE_COLOURS = ("#3895FF", "#967AF0", "#D658C4", DIFFERENT)  # near to far
# Percentile of the distances at which the scale ends if the largest is far above it.
SCALE_PERCENTILE = 99.0
# The scale ends at the largest distance if this is at most this multiple of the percentile.
MAX_SCALE_RATIO = 1.5

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Outline:
    """Both outlines of one group.

    Attributes
    ----------
    group : int
        The index of the group.
    points : tuple of ndarray
        Per side, the centroids of the elements (triangles or line segments) of the outline, in
        pixel coordinates.
    distances : tuple of ndarray
        Per side, the distance of each element to the other outline.
    weights : tuple of ndarray
        Per side, the area or length of each element.
    """

    group: int
    points: tuple[Floats, Floats]
    distances: tuple[Floats, Floats]
    weights: tuple[Floats, Floats]

    @cached_property
    def worst(self) -> tuple[int, ...]:
        """The index of the pixel that contains the element with the largest distance."""
        side = int(np.argmax([distances.max(initial=-1.0) for distances in self.distances]))
        point = self.points[side][int(np.argmax(self.distances[side]))]
        return tuple(int(k) for k in np.floor(point + 0.5))

    def histogram(self, edges: Floats) -> Floats:
        """Return the share of both outlines, by area or length, in each bin of distances.

        The last bin includes all larger finite distances.
        """
        counts = np.zeros(len(edges) - 1)
        for distances, weights in zip(self.distances, self.weights, strict=True):
            finite = np.isfinite(distances)
            clipped_distances = np.minimum(distances[finite], edges[-1])
            counts += np.histogram(clipped_distances, edges, weights=weights[finite])[0]
        total = sum(float(weights.sum()) for weights in self.weights)
        return counts / total


def stored_boundaries(comparison: Comparison) -> Boundaries:
    """Return the most recently computed boundaries, or compute them with default options."""
    boundaries: Boundaries | None = comparison.numbers.known("boundaries")
    return comparison.boundaries() if boundaries is None else boundaries


def outlines_of(comparison: Comparison, boundaries: Boundaries, max_outlines: int) -> list[Outline]:
    """Return the outlines of at most `max_outlines` groups, sorted by descending largest distance.

    The background is excluded if there are other groups with a known distance. For probabilities,
    outlines are computed at the level of `boundaries` that is closest to 0.5.
    """
    largest = boundaries["hd"]
    groups = [k for k in np.argsort(-largest, kind="stable").tolist() if not np.isnan(largest[k])]
    background = background_group(comparison)
    groups = [k for k in groups if k != background] or groups
    level = min(boundaries.levels, key=lambda level: abs(level - 0.5), default=None)
    outlines = (_outline(comparison, boundaries, k, level) for k in groups[:max_outlines])
    return [outline for outline in outlines if any(map(len, outline.points))]


def distance_scale(outlines: list[Outline]) -> tuple[float, bool]:
    """Return the end of the distance scale, and whether finite distances exceed it.

    Infinite distances are ignored. The scale ends at the largest finite distance. If this distance
    is more than 1.5 times the 99th percentile, and the percentile is above 0, the scale ends at the
    percentile instead. If no finite distance is above 0, the scale ends at 1.
    """
    distances = np.concatenate(
        [np.zeros(1), *(d for outline in outlines for d in outline.distances)]
    )
    finite = distances[np.isfinite(distances)]
    largest, percentile = float(finite.max()), float(np.percentile(finite, SCALE_PERCENTILE))
    if largest <= MAX_SCALE_RATIO * percentile or percentile == 0:
        return largest or 1.0, False
    return percentile, True


def _outline(
    comparison: Comparison, boundaries: Boundaries, group: int, level: float | None
) -> Outline:
    geometry = images_of(comparison).reference.geometry
    sides = boundaries.group(group, level)

    def in_pixels(points: Floats) -> Floats:
        if geometry is None:
            return points
        origin = geometry.affine[:-1, -1]
        return np.asarray(
            np.linalg.solve(geometry.affine[:-1, :-1], (points - origin).T).T, np.float64
        )

    reference, prediction = sides
    return Outline(
        group,
        (in_pixels(reference.points), in_pixels(prediction.points)),
        (reference.distances, prediction.distances),
        (reference.weights, prediction.weights),
    )
