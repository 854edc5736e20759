"""Segmentations of photographs that ship with scikit-image, by the methods the paper names.

Each method gives regions in no agreed order; the random walker gives their probabilities too.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.comparison import compare
from probdice.errors import InputError, MissingExtraError
from probdice.segmentation import Segmentation

__all__ = [
    "METHODS",
    "PHOTOGRAPHS",
    "Source",
    "felzenszwalb",
    "k_means",
    "normalised_cuts",
    "photograph",
    "random_walker",
    "require_extra",
    "sources",
    "watershed",
]

Image = NDArray[np.float64]

PHOTOGRAPHS = ("astronaut", "camera", "chelsea", "coffee", "coins", "rocket")
"""Photographs inside scikit-image's own package, which need no download."""

DOUBT = 0.02


def photograph(name: str, *, size: int = 112) -> Image:
    """A photograph in colour, from 0 to 1, its longer side `size` pixels.

    Parameters
    ----------
    name : str
        One of `PHOTOGRAPHS`.
    size : int, optional
        Pixels along the longer side.

    Examples
    --------
    >>> from probdice.paper import photograph
    >>> photograph("coffee", size=60).shape
    (40, 60, 3)
    """
    if name not in PHOTOGRAPHS:
        raise InputError(f"name must be one of {', '.join(PHOTOGRAPHS)}, found {name!r}")
    image = _skimage("util").img_as_float64(getattr(_skimage("data"), name)())
    if image.ndim == 2:
        image = np.repeat(image[:, :, None], 3, axis=2)
    scale = size / max(image.shape[:2])
    shape = tuple(max(round(n * scale), 1) for n in image.shape[:2])
    small = _skimage("transform").resize(image, (*shape, 3), anti_aliasing=True)
    return np.clip(np.asarray(small, np.float64), 0, 1)


def random_walker(
    image: Image, regions: int = 5, *, doubt: float = DOUBT, seed: int = 0
) -> Segmentation:
    """Probabilities of Grady's random walker, from seeds found by `k_means`.

    Parameters
    ----------
    image : ndarray
        A photograph in colour.
    regions : int, optional
        Number of regions.
    doubt : float, optional
        Share of every pixel's probability that is spread evenly over all regions. The walker is
        certain at its seeds; a little doubt keeps Aitchison distances finite.
    seed : int, optional
        Of the k-means that finds the seeds.

    Examples
    --------
    >>> from probdice.paper import photograph, random_walker
    >>> random_walker(photograph("coffee", size=48), 3)
    Segmentation(regions=(1, 2, 3), shape=(32, 48), float32)
    """
    smooth = _smoothed(image, 1.0)
    markers = _seeds(smooth, regions, seed)
    full = _skimage("segmentation").random_walker(
        smooth, markers, beta=300, mode="bf", channel_axis=2, return_full_prob=True
    )
    values = np.clip(np.asarray(full, np.float64), 0, None)
    values = values / values.sum(axis=0) * (1 - doubt) + doubt / regions
    return Segmentation.from_probabilities(
        values.astype(np.float32), names=tuple(range(1, regions + 1))
    )


def normalised_cuts(image: Image, regions: int = 5, *, seed: int = 0) -> Segmentation:
    """Regions of Shi and Malik's normalised cuts over superpixels; their number is not fixed.

    Examples
    --------
    >>> from probdice.paper import normalised_cuts, photograph
    >>> normalised_cuts(photograph("coffee", size=48))
    Segmentation(label map, shape=(32, 48), int64)
    """
    graph = _skimage("graph")
    pieces = _skimage("segmentation").slic(
        image, n_segments=16 * regions, compactness=12, start_label=0, channel_axis=2
    )
    adjacency = graph.rag_mean_color(_lab(image), pieces, mode="similarity", sigma=300.0)
    labels = graph.cut_normalized(pieces, adjacency, thresh=0.015 * regions, rng=seed)
    return _numbered(labels)


def felzenszwalb(image: Image, regions: int = 5, *, seed: int = 0) -> Segmentation:
    """Regions of Felzenszwalb and Huttenlocher's graph merging; their number is not fixed.

    Examples
    --------
    >>> from probdice.paper import felzenszwalb, photograph
    >>> felzenszwalb(photograph("coffee", size=48))
    Segmentation(label map, shape=(32, 48), int64)
    """
    pixels = image.shape[0] * image.shape[1]
    labels = _skimage("segmentation").felzenszwalb(
        image, scale=pixels / 40, sigma=1.0, min_size=pixels // (8 * regions), channel_axis=2
    )
    return _numbered(labels)


def watershed(image: Image, regions: int = 5, *, seed: int = 0) -> Segmentation:
    """Basins of the gradient, flooded from the largest flat places, twice as many as `regions`.

    Examples
    --------
    >>> import numpy as np
    >>> from probdice.paper import photograph, watershed
    >>> len(np.unique(watershed(photograph("coffee", size=48), 4).array))
    8
    """
    from scipy import ndimage

    smooth = _smoothed(image, 2.0)
    slope = sum(
        ndimage.gaussian_gradient_magnitude(smooth[:, :, channel], 1.0) for channel in range(3)
    )
    flat, count = ndimage.label(slope < np.quantile(slope, 0.4))
    sizes = np.bincount(flat.ravel(), minlength=count + 1)[1:]
    largest = np.argsort(-sizes, kind="stable")[: 2 * regions] + 1
    markers = np.where(np.isin(flat, largest), flat, 0)
    return _numbered(_skimage("segmentation").watershed(slope, markers))


def k_means(image: Image, regions: int = 5, *, seed: int = 0) -> Segmentation:
    """Clusters of colour and, less, of place.

    Examples
    --------
    >>> from probdice.paper import k_means, photograph
    >>> k_means(photograph("coffee", size=48), 3)
    Segmentation(label map, shape=(32, 48), int64)
    """
    labels, _ = _clusters(_smoothed(image, 1.0), regions, seed)
    return _numbered(labels)


@dataclass(frozen=True, eq=False)
class Source:
    """A segmentation by one method, and how it compares with that of the random walker.

    Attributes
    ----------
    method : str
        The name of the method.
    segmentation : Segmentation
        What it found.
    matched_score, merged_score, adjusted_score : float
        D₁ after matching alone, after merging on either side, and the latter above chance.
    """

    method: str
    segmentation: Segmentation
    matched_score: float
    merged_score: float
    adjusted_score: float


def sources(image: Image, regions: int = 5, *, seed: int = 0) -> tuple[Source, ...]:
    """A photograph by all methods, each held against the random walker.

    Examples
    --------
    >>> from probdice.paper import photograph, sources
    >>> found = sources(photograph("coffee", size=48), 3)
    >>> found[0].method, found[0].matched_score
    ('random walker', 1.0)
    """
    reference = random_walker(image, regions, seed=seed)
    found = []
    for name, method in METHODS.items():
        segmentation = method(image, regions, seed=seed)
        result = compare(reference, segmentation, merge="both")
        found.append(
            Source(name, segmentation, result.matched_score, result.score, result.adjusted_score)
        )
    return tuple(found)


METHODS: dict[str, Callable[..., Segmentation]] = {
    "random walker": random_walker,
    "normalised cuts": normalised_cuts,
    "Felzenszwalb–Huttenlocher": felzenszwalb,
    "watershed": watershed,
    "k-means": k_means,
}
"""Every method by its name; each is called with a photograph, a number of regions and a seed."""


def require_extra() -> None:
    """Say what to install where scikit-image is missing."""
    try:
        import_module("skimage")
    except ImportError:
        raise MissingExtraError(
            'photographs need scikit-image: pip install "probdice[paper]"'
        ) from None


def _skimage(module: str) -> Any:
    """A module of scikit-image, which is an extra."""
    require_extra()
    return import_module(f"skimage.{module}")


def _smoothed(image: Image, sigma: float) -> Image:
    from scipy import ndimage

    return np.asarray(ndimage.gaussian_filter(image, (sigma, sigma, 0), mode="nearest"))


def _lab(image: Image) -> Image:
    return np.asarray(_skimage("color").rgb2lab(image), np.float64)


def _numbered(labels: NDArray[Any]) -> Segmentation:
    """A label map with the numbers from 1."""
    _, numbers = np.unique(labels, return_inverse=True)
    return Segmentation.from_labels(numbers.reshape(labels.shape).astype(np.int64) + 1)


def _seeds(image: Image, regions: int, seed: int) -> NDArray[np.int32]:
    """Of every cluster, the third of its pixels that is nearest to its middle; 0 elsewhere."""
    labels, distances = _clusters(image, regions, seed)
    markers = np.zeros(labels.shape, np.int32)
    for k in range(regions):
        near = distances <= np.quantile(distances[labels == k], 1 / 3)
        markers[near & (labels == k)] = k + 1
    return markers


def _clusters(image: Image, count: int, seed: int) -> tuple[NDArray[np.int64], Image]:
    """Lloyd's k-means from a seeded k-means++ start: labels, and distances to the middles."""
    rows, columns = np.indices(image.shape[:2]) * (25 / max(image.shape[:2]))
    points = np.dstack([_lab(image), rows, columns]).reshape(-1, 5)
    rng = np.random.default_rng(seed)
    middles = points[[rng.integers(len(points))]]
    while len(middles) < count:
        gaps = _distances(points, middles).min(axis=1) ** 2
        middles = np.vstack([middles, points[rng.choice(len(points), p=gaps / gaps.sum())]])
    for _ in range(30):
        labels = _distances(points, middles).argmin(axis=1)
        present = [k for k in range(count) if (labels == k).any()]
        middles[present] = [points[labels == k].mean(axis=0) for k in present]
    distances = _distances(points, middles)
    labels = distances.argmin(axis=1)
    nearest = distances.min(axis=1)
    return labels.reshape(image.shape[:2]), nearest.reshape(image.shape[:2])


def _distances(points: Image, middles: Image) -> Image:
    return np.asarray(np.linalg.norm(points[:, None] - middles, axis=2))
