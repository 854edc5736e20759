"""Phantoms in 2-D or 3-D: synthetic label maps that are softened to probabilities."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from probdice.data.segmentation import Segmentation
from probdice.errors import InputError
from probdice.method.region_labels import Label

__all__ = [
    "PHANTOMS",
    "Phantom",
    "brain_section",
    "nested_ellipses",
    "soften",
    "stripes",
    "touching_cells",
    "voronoi",
]

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

SOFTNESS = 1.5  # default standard deviation of the blur, in pixels
DOUBT = 0.02


class Phantom(Protocol):
    """The signature of every phantom."""

    def __call__(
        self,
        shape: Sequence[int] = ...,
        *,
        softness: float = ...,
        doubt: float = ...,
        seed: int = ...,
    ) -> Segmentation: ...


def nested_ellipses(
    shape: Sequence[int] = (96, 96),
    *,
    regions: int = 4,
    softness: float = SOFTNESS,
    doubt: float = DOUBT,
    seed: int = 0,
) -> Segmentation:
    """Create nested ellipses or ellipsoids. Region 0 surrounds them.

    Parameters
    ----------
    shape : sequence of int, optional
        Shape of the image, in two or three dimensions.
    regions : int, optional
        Number of regions, at least 2.
    softness : float, optional
        Standard deviation of the blur at the boundaries, in pixels.
    doubt : float, optional
        Fraction of the probability that is spread evenly over all regions at every pixel. The
        fraction must be at least 0 and below 1.
    seed : int, optional
        Seed of the random numbers.

    Returns
    -------
    Segmentation
        Probabilities in float32, with the regions along the first axis.

    Examples
    --------
    >>> from probdice.synthesis import nested_ellipses
    >>> nested_ellipses((32, 48), regions=3)
    Segmentation(regions=(0, 1, 2), shape=(32, 48), float32)
    """
    shape = _checked_shape(shape, regions)
    rng = np.random.default_rng(seed)
    grid = _rotated_grid(shape, rng)
    stretch = rng.uniform(0.6, 1.0, len(shape))
    labels = np.zeros(shape, np.int64)
    for k in range(1, regions):
        radius = 0.95 * (1 - (k - 1) / (regions - 0.5))
        centre = rng.uniform(-0.06, 0.06, len(shape))
        inside = sum(((grid - _column(centre)) / _column(radius * stretch)) ** 2) < 1
        labels[inside & (labels == k - 1)] = k
    return soften(labels, regions, softness=softness, doubt=doubt)


def voronoi(
    shape: Sequence[int] = (96, 96),
    *,
    regions: int = 7,
    softness: float = SOFTNESS,
    doubt: float = DOUBT,
    seed: int = 0,
) -> Segmentation:
    """Create Voronoi cells, in which every pixel belongs to the nearest of several random points.

    The parameters are those of `nested_ellipses`.

    Examples
    --------
    >>> from probdice.synthesis import voronoi
    >>> voronoi((16, 16, 16), regions=5)
    Segmentation(regions=(0, 1, 2, 3, 4), shape=(16, 16, 16), float32)
    """
    shape = _checked_shape(shape, regions)
    rng = np.random.default_rng(seed)
    reach = np.array(shape) / min(shape)
    points = _distant_points(rng.uniform(-reach, reach, (12 * regions, len(shape))), regions)
    return soften(_nearest(_grid(shape), points)[0], regions, softness=softness, doubt=doubt)


def brain_section(
    shape: Sequence[int] = (96, 96),
    *,
    softness: float = SOFTNESS,
    doubt: float = DOUBT,
    seed: int = 0,
) -> Segmentation:
    """Create a schematic brain section with four named regions.

    In 2-D, the front of the brain is at the top. In 3-D, the axes run from left to right, from back
    to front and from bottom to top. The parameters are those of `nested_ellipses`, without
    `regions`.

    Examples
    --------
    >>> from probdice.synthesis import brain_section
    >>> brain_section().regions
    ('background', 'fluid', 'grey matter', 'white matter')
    """
    shape = _checked_shape(shape, 4)
    rng = np.random.default_rng(seed)
    grid = _grid(shape)
    along, across = (-grid[0], grid[1]) if len(shape) == 2 else (grid[1], grid[0])
    height = np.zeros(shape) if len(shape) == 2 else grid[2]
    angle = np.arctan2(along, across)
    radius = np.sqrt((across / 0.78) ** 2 + (along / 0.93) ** 2 + (height / 0.85) ** 2)
    phases = rng.uniform(0, 2 * np.pi, 3)
    folds = (
        0.055 * np.sin(13 * angle + phases[0] + 5 * height)
        + 0.045 * np.sin(7 * angle + phases[1] - 3 * height)
        + 0.025 * np.sin(23 * angle + phases[2])
    )
    labels = np.zeros(shape, np.int64)
    labels[radius < 0.98] = 1
    labels[radius < 0.90 + 0.25 * folds] = 2
    labels[(np.abs(across) < 0.025) & (np.abs(along) > 0.42) & (labels == 2)] = 1
    labels[(radius < 0.68 + folds) & (np.abs(across) > 0.06)] = 3
    labels[(np.abs(along) < 0.3) & (np.abs(across) <= 0.06) & (radius < 0.6)] = 3
    bend = np.abs(across) - 0.13 - 0.12 * (along - 0.05) ** 2
    ventricle = (bend / 0.075) ** 2 + ((along - 0.05) / 0.36) ** 2 + (height / 0.3) ** 2
    labels[ventricle < 1] = 1
    names = ("background", "fluid", "grey matter", "white matter")
    return soften(labels, 4, softness=softness, doubt=doubt, names=names)


def touching_cells(
    shape: Sequence[int] = (96, 96),
    *,
    regions: int = 8,
    softness: float = SOFTNESS,
    doubt: float = DOUBT,
    seed: int = 0,
) -> Segmentation:
    """Create a cluster of round cells that are flat where they touch. Region 0 surrounds them.

    The parameters are those of `nested_ellipses`.

    Examples
    --------
    >>> from probdice.synthesis import touching_cells
    >>> touching_cells((40, 40), regions=4)
    Segmentation(regions=(0, 1, 2, 3), shape=(40, 40), float32)
    """
    shape = _checked_shape(shape, regions)
    rng = np.random.default_rng(seed)
    centres = _cluster(regions - 1, len(shape), rng)
    size = np.abs(centres).max() + 0.8
    nearest, distance = _nearest(_grid(shape) * size, centres)
    labels = np.where(distance < 0.58, nearest + 1, 0)
    return soften(labels, regions, softness=softness, doubt=doubt)


def stripes(
    shape: Sequence[int] = (96, 96),
    *,
    regions: int = 4,
    softness: float = SOFTNESS,
    doubt: float = DOUBT,
    seed: int = 0,
) -> Segmentation:
    """Create wavy stripes, with two stripes per region.

    The parameters are those of `nested_ellipses`.

    Examples
    --------
    >>> from probdice.synthesis import stripes
    >>> stripes((24, 24), regions=2, softness=0, doubt=0).array[:, 0, 0].tolist()
    [0.0, 1.0]
    """
    shape = _checked_shape(shape, regions)
    rng = np.random.default_rng(seed)
    grid = _rotated_grid(shape, rng)
    position = grid[0] + 0.08 * np.sin(4 * grid[1] + rng.uniform(0, 2 * np.pi))
    position -= position.min()
    bands = np.minimum(position / position.max() * 2 * regions, 2 * regions - 1)
    return soften(bands.astype(np.int64) % regions, regions, softness=softness, doubt=doubt)


PHANTOMS: dict[str, Phantom] = {
    "nested ellipses": nested_ellipses,
    "voronoi": voronoi,
    "brain section": brain_section,
    "touching cells": touching_cells,
    "stripes": stripes,
}
"""All phantoms by name."""


def soften(
    labels: ArrayLike,
    regions: int,
    *,
    softness: float = SOFTNESS,
    doubt: float = DOUBT,
    names: Sequence[Label] | None = None,
) -> Segmentation:
    """Convert a label map to probabilities: blur the boundaries, and add doubt to every pixel.

    Parameters
    ----------
    labels : array_like of int
        Labels from 0 to ``regions - 1``.
    regions : int
        Number of regions.
    softness, doubt : float, optional
        The same as in `nested_ellipses`.
    names : sequence, optional
        A name or a label for each region.

    Examples
    --------
    >>> from probdice.synthesis import soften
    >>> soften([0, 0, 1, 1], 2, softness=0, doubt=0.5).array.tolist()
    [[0.75, 0.75, 0.25, 0.25], [0.25, 0.25, 0.75, 0.75]]
    """
    if not softness >= 0 or not np.isfinite(softness):
        raise InputError(f"softness must be a finite number of at least 0, found {softness}")
    if not 0 <= doubt < 1:
        raise InputError(f"doubt must be at least 0 and below 1, found {doubt}")
    labels = np.asarray(labels)
    if labels.size and not 0 <= labels.min() <= labels.max() < regions:
        raise InputError(
            f"labels must be between 0 and {regions - 1}, found {labels.min()} to {labels.max()}"
        )
    channels = np.stack([labels == k for k in range(regions)]).astype(np.float64)
    if softness > 0:
        from scipy import ndimage

        for channel in channels:
            ndimage.gaussian_filter(channel, softness, output=channel, mode="nearest")
    channels = channels / channels.sum(axis=0) * (1 - doubt) + doubt / regions
    return Segmentation.from_probabilities(channels.astype(np.float32), names=names)


def _checked_shape(shape: Sequence[int], regions: int) -> tuple[int, ...]:
    shape = tuple(int(n) for n in shape)
    if len(shape) not in (2, 3) or min(shape) < 1:
        raise InputError(f"shape must have two or three axes of at least one pixel, found {shape}")
    if regions < 2:
        raise InputError(f"regions must be at least 2, found {regions}")
    return shape


def _grid(shape: tuple[int, ...]) -> Floats:
    """Return the coordinates of pixel centres. The centre of the image has coordinates 0.

    The edges of the image along its shortest axis have the coordinates −1 and 1.
    """
    axes = [(np.arange(n) - (n - 1) / 2) / (min(shape) / 2) for n in shape]
    return np.stack(np.meshgrid(*axes, indexing="ij"))


def _column(values: Floats) -> NDArray[Any]:
    """Reshape an array with one value per axis so that it broadcasts to a grid."""
    return values.reshape(-1, *(1,) * len(values))


def _rotated_grid(shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Return the coordinates of `_grid` after a random rotation."""
    rotation, _ = np.linalg.qr(rng.normal(size=(len(shape), len(shape))))
    return np.tensordot(rotation, _grid(shape), axes=1)


def _nearest(grid: Floats, points: Floats) -> tuple[Labels, Floats]:
    """Return the index of the point that is nearest to each pixel, and its distance."""
    nearest = np.zeros(grid.shape[1:], np.int64)
    squared_minimum = np.full(grid.shape[1:], np.inf)
    for k, point in enumerate(points):
        squared_distances = ((grid - _column(point)) ** 2).sum(axis=0)
        closer = squared_distances < squared_minimum
        nearest[closer] = k
        squared_minimum[closer] = squared_distances[closer]
    return nearest, np.sqrt(squared_minimum)


def _distant_points(candidates: Floats, count: int) -> Floats:
    """Choose candidates that are far from each other."""
    indices = [0]
    while len(indices) < count:
        gaps = np.linalg.norm(candidates[:, None] - candidates[indices], axis=2).min(axis=1)
        indices.append(int(np.argmax(gaps)))
    return candidates[indices]


def _cluster(count: int, axes: int, rng: np.random.Generator) -> Floats:
    """Draw random points at distance 1 from one earlier point and at least 0.9 from all others."""
    points = np.zeros((1, axes))
    while len(points) < count:
        step = rng.normal(size=axes)
        trial = points[rng.integers(len(points))] + step / np.linalg.norm(step)
        is_near_centre = np.linalg.norm(trial) <= 0.75 * count ** (1 / axes) + 0.3
        if is_near_centre and np.linalg.norm(points - trial, axis=1).min() >= 0.9:
            points = np.vstack([points, trial])
    centred_points: Floats = points - (points.max(axis=0) + points.min(axis=0)) / 2
    return centred_points
