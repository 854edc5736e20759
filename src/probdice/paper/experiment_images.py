"""Images for the paper's figures: phantoms, and photographs segmented by the paper's methods.

The photographs are part of scikit-image. Each method returns regions in arbitrary order. The random
walker returns probabilities, and the other methods return label maps.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.data.segmentation import Segmentation
from probdice.errors import InputError, MissingExtraError
from probdice.synthesis import degradations, phantoms

Image = NDArray[np.float64]

# These photographs are part of the scikit-image package and need no download.
PHOTOGRAPHS = ("astronaut", "camera", "chelsea", "coffee", "coins", "rocket")
UNIFORM_SHARE = 0.02  # fraction of probability that is spread evenly over all regions


def paper_images(*, size: int = 96, seed: int = 0) -> dict[str, Segmentation]:
    """Create the seven references: four phantoms and three segmented photographs."""
    shape = (size, size)
    synthetic = {
        "ellipses": phantoms.nested_ellipses(shape, seed=seed + 1),
        "Voronoi": phantoms.voronoi(shape, seed=seed),
        "brain": phantoms.brain_section(shape, seed=seed),
        "cells": phantoms.touching_cells(shape, seed=seed),
    }
    photographs = {
        name: random_walker(photograph(name, size=size), 5, seed=seed)
        for name in ("astronaut", "camera", "coffee")
    }
    return synthetic | photographs


def near_and_far(*, seed: int = 0) -> tuple[Segmentation, tuple[Segmentation, Segmentation]]:
    """Create a reference with three regions, a poor prediction and a good prediction."""
    reference = phantoms.nested_ellipses((96, 96), regions=3, seed=seed + 1)
    poor_prediction = degradations.noise(
        degradations.deform(reference, 14, seed=seed + 2), 0.8, seed=seed
    )
    good_prediction = degradations.noise(
        degradations.blur(degradations.deform(reference, 3, seed=seed + 3), 0.8), 0.15, seed=seed
    )
    return reference, (poor_prediction, good_prediction)


def shuffled_pair(*, seed: int = 0) -> tuple[Segmentation, Segmentation]:
    """Create a reference with four regions, and a deformed copy with exchanged labels."""
    reference = phantoms.voronoi((96, 96), regions=4, seed=seed + 3)
    return reference, degradations.permute(
        degradations.deform(reference, 6, seed=seed), 5, seed=seed + 1
    )


def over_segment(reference: Segmentation, *, seed: int = 0) -> Segmentation:
    """Create a prediction with three more regions than the reference, in a different order."""
    split = degradations.split(degradations.deform(reference, 2, seed=seed), 3, seed=seed + 1)
    return degradations.permute(degradations.noise(split, 0.2, seed=seed), 10, seed=seed)


def photograph(name: str, *, size: int = 112) -> Image:
    """Return one of `PHOTOGRAPHS` in colour, scaled so that its longer side has `size` pixels."""
    if name not in PHOTOGRAPHS:
        raise InputError(f"name must be one of {', '.join(PHOTOGRAPHS)}, found {name!r}")
    image = _skimage("util").img_as_float64(getattr(_skimage("data"), name)())
    if image.ndim == 2:
        image = np.repeat(image[:, :, None], 3, axis=2)
    scale = size / max(image.shape[:2])
    shape = tuple(max(round(n * scale), 1) for n in image.shape[:2])
    small = _skimage("transform").resize(image, (*shape, 3), anti_aliasing=True)
    return np.clip(np.asarray(small, np.float64), 0, 1)


def random_walker(image: Image, regions: int = 5, *, seed: int = 0) -> Segmentation:
    """Segment an image with Grady's random walker, seeded in the middle of k-means clusters.

    The random walker assigns probability 1 at its seeds. A small probability is added to all
    regions to keep Aitchison distances finite.
    """
    smooth = _smooth(image, 1.0)
    labels, distances = _clusters(smooth, regions, seed)
    markers = np.zeros(labels.shape, np.int32)
    for k in range(regions):  # seeds: the third of the cluster nearest to its centre
        is_near_centre = distances <= np.quantile(distances[labels == k], 1 / 3)
        markers[is_near_centre & (labels == k)] = k + 1
    probabilities = _skimage("segmentation").random_walker(
        smooth, markers, beta=300, mode="bf", channel_axis=2, return_full_prob=True
    )
    values = np.clip(np.asarray(probabilities, np.float64), 0, None)
    values = values / values.sum(axis=0) * (1 - UNIFORM_SHARE) + UNIFORM_SHARE / regions
    names = tuple(range(1, regions + 1))
    return Segmentation.from_probabilities(values.astype(np.float32), names=names)


def normalised_cuts(image: Image, regions: int = 5, *, seed: int = 0) -> Segmentation:
    """Segment with Shi and Malik's normalised cuts. The number of regions varies."""
    graph = _skimage("graph")
    superpixels = _skimage("segmentation").slic(
        image, n_segments=16 * regions, compactness=12, start_label=0, channel_axis=2
    )
    adjacency = graph.rag_mean_color(_lab(image), superpixels, mode="similarity", sigma=300.0)
    threshold = 0.015 * regions
    return _with_consecutive_labels(
        graph.cut_normalized(superpixels, adjacency, thresh=threshold, rng=seed)
    )


def felzenszwalb(image: Image, regions: int = 5, *, seed: int = 0) -> Segmentation:
    """Segment with the graph-based method of Felzenszwalb and Huttenlocher."""
    pixels = image.shape[0] * image.shape[1]
    labels = _skimage("segmentation").felzenszwalb(
        image, scale=pixels / 40, sigma=1.0, min_size=pixels // (8 * regions), channel_axis=2
    )
    return _with_consecutive_labels(labels)


def watershed(image: Image, regions: int = 5, *, seed: int = 0) -> Segmentation:
    """Segment with a watershed of the gradient, seeded in the 2 × `regions` largest flat areas."""
    from scipy import ndimage

    smooth = _smooth(image, 2.0)
    slope = sum(
        ndimage.gaussian_gradient_magnitude(smooth[:, :, channel], 1.0) for channel in range(3)
    )
    flat, count = ndimage.label(slope < np.quantile(slope, 0.4))
    sizes = np.bincount(flat.ravel(), minlength=count + 1)[1:]
    largest = np.argsort(-sizes, kind="stable")[: 2 * regions] + 1
    markers = np.where(np.isin(flat, largest), flat, 0)
    return _with_consecutive_labels(_skimage("segmentation").watershed(slope, markers))


def k_means(image: Image, regions: int = 5, *, seed: int = 0) -> Segmentation:
    """Segment with k-means clusters of colour and, with less weight, of position."""
    return _with_consecutive_labels(_clusters(_smooth(image, 1.0), regions, seed)[0])


METHODS: dict[str, Callable[..., Segmentation]] = {
    "random walker": random_walker,
    "normalised cuts": normalised_cuts,
    "Felzenszwalb–Huttenlocher": felzenszwalb,
    "watershed": watershed,
    "k-means": k_means,
}  # each method is called with a photograph, a number of regions and a seed


def require_extra() -> None:
    """If scikit-image is missing, raise an error that names the extra."""
    try:
        import_module("skimage")
    except ImportError:
        raise MissingExtraError(
            'photographs require scikit-image: pip install "probdice[paper]"'
        ) from None


def _skimage(module: str) -> Any:
    """Import a module of scikit-image, which is an optional dependency."""
    require_extra()
    return import_module(f"skimage.{module}")


def _smooth(image: Image, sigma: float) -> Image:
    from scipy import ndimage

    return np.asarray(ndimage.gaussian_filter(image, (sigma, sigma, 0), mode="nearest"))


def _lab(image: Image) -> Image:
    return np.asarray(_skimage("color").rgb2lab(image), np.float64)


def _with_consecutive_labels(labels: NDArray[Any]) -> Segmentation:
    _, numbers = np.unique(labels, return_inverse=True)
    return Segmentation.from_labels(numbers.reshape(labels.shape).astype(np.int64) + 1)


def _clusters(image: Image, count: int, seed: int) -> tuple[NDArray[np.int64], Image]:
    """Cluster pixels by colour and position. Return labels and distances to cluster centres."""
    from scipy.cluster.vq import kmeans2

    rows, columns = np.indices(image.shape[:2]) * (25 / max(image.shape[:2]))
    points = np.dstack([_lab(image), rows, columns]).reshape(-1, 5)
    middles, labels = kmeans2(points, count, iter=30, minit="++", rng=seed)
    distances = np.linalg.norm(points - middles[labels], axis=1)
    return labels.reshape(image.shape[:2]), distances.reshape(image.shape[:2])
