"""Degradations of a segmentation, each with a non-negative strength.

All degradations have the parameters ``(segmentation, strength, *, seed)`` and return a
`Segmentation`. With a strength of 0, the segmentation is returned unchanged. Otherwise, the result
contains probabilities that sum to 1.
"""

from collections.abc import Callable
from math import floor, isfinite
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from probdice.data.segmentation import Segmentation
from probdice.errors import InputError
from probdice.files.inputs import Comparable, as_segmentation
from probdice.method.region_labels import Label

__all__ = [
    "DEGRADATIONS",
    "Degradation",
    "blur",
    "deform",
    "grow",
    "merge",
    "noise",
    "permute",
    "probabilities",
    "shrink",
    "split",
]

Floats = NDArray[Any]  # float32 or float64, as in the segmentation
ValuesAndLabels = tuple[Floats, tuple[Label, ...]]  # probabilities and the labels of their regions

SMOOTHNESS = 1 / 10  # width of the filter of a deformation, as a fraction of the image size
MIN_DIVISOR = np.finfo(np.float32).tiny


class Degradation(Protocol):
    """The signature of every degradation."""

    def __call__(
        self, segmentation: Comparable, strength: float, *, seed: int = 0
    ) -> Segmentation: ...


def blur(segmentation: Comparable, strength: float, *, seed: int = 0) -> Segmentation:
    """Blur the probabilities, so that boundaries become less certain.

    Parameters
    ----------
    segmentation : Segmentation or array_like
        The segmentation to degrade. A label map becomes probabilistic.
    strength : float
        The standard deviation of the Gaussian filter, in pixels. With a strength of 0, the
        segmentation is returned unchanged.
    seed : int, optional
        Seed of the random numbers. The seed has no effect on `blur`, which is not random, but all
        degradations have this parameter.

    Returns
    -------
    Segmentation
        Probabilities of the same regions, which sum to 1 at every pixel.

    Examples
    --------
    >>> from probdice.synthesis import blur
    >>> [round(float(p), 2) for p in blur([0, 0, 0, 1, 1, 1], 1.0).array[1]]
    [0.0, 0.06, 0.3, 0.7, 0.94, 1.0]
    """
    from scipy import ndimage

    def change(values: Floats) -> Floats:
        for channel in values:
            ndimage.gaussian_filter(channel, strength, output=channel, mode="nearest")
        return values

    return _with_values(segmentation, strength, change)


def deform(segmentation: Comparable, strength: float, *, seed: int = 0) -> Segmentation:
    """Displace the pixels by a smooth random field.

    The parameters are those of `blur`, but `strength` is the largest displacement, in pixels. For a
    given seed, `strength` only scales the field.

    Examples
    --------
    >>> from probdice.synthesis import brain_section, deform
    >>> deform(brain_section((32, 32)), 3.0, seed=1)
    Segmentation(regions=('background', 'fluid', 'grey matter', 'white matter'), shape=(32, 32), \
float32)
    """
    from scipy import ndimage

    def change(values: Floats) -> Floats:
        shape = values.shape[1:]
        rng = np.random.default_rng(seed)
        sigmas = [SMOOTHNESS * n for n in shape]
        field = np.stack(
            [ndimage.gaussian_filter(rng.normal(size=shape), sigmas, mode="reflect") for _ in shape]
        )
        field *= strength / max(np.sqrt((field**2).sum(axis=0)).max(), MIN_DIVISOR)
        coordinates = np.indices(shape) + field
        for channel in values:
            channel[...] = ndimage.map_coordinates(channel, coordinates, order=1, mode="nearest")
        return values

    return _with_values(segmentation, strength, change)


def noise(segmentation: Comparable, strength: float, *, seed: int = 0) -> Segmentation:
    """Add noise to log-probabilities, so that values remain probabilities.

    Independent normal noise with standard deviation `strength` is added to the logarithm of every
    probability. Then, the probabilities of each pixel are divided by their sum. This is a
    perturbation in the Aitchison geometry. Probabilities of 0 and 1 remain unchanged. The other
    parameters are those of `blur`.

    Examples
    --------
    >>> from probdice.synthesis import noise
    >>> noise([[0.5, 1.0], [0.5, 0.0]], 1.0).array[:, 1].tolist()
    [1.0, 0.0]
    """

    def change(values: Floats) -> Floats:
        deviates = np.random.default_rng(seed).normal(scale=strength, size=values.shape)
        noisy: Floats = values * np.exp(deviates - deviates.max(axis=0))
        return noisy

    return _with_values(segmentation, strength, change)


def grow(
    segmentation: Comparable, strength: float, *, seed: int = 0, region: Label | None = None
) -> Segmentation:
    """Grow one region by `strength` pixels into its neighbours.

    `region` is the label of the region. The default is the last region. The other parameters are
    those of `blur`.

    Examples
    --------
    >>> from probdice.synthesis import grow
    >>> grow([[1.0, 0.9, 0.2, 0.0], [0.0, 0.1, 0.8, 1.0]], 1).array[0].round(2).tolist()
    [0.9, 0.2, 0.0, 0.0]
    """
    return _resize(segmentation, strength, region, "grey_dilation")


def shrink(
    segmentation: Comparable, strength: float, *, seed: int = 0, region: Label | None = None
) -> Segmentation:
    """Shrink one region by `strength` pixels. The neighbouring regions fill the gap.

    `region` is the label of the region. The default is the last region. The other parameters are
    those of `blur`.

    Examples
    --------
    >>> from probdice.synthesis import shrink
    >>> shrink([[1.0, 0.9, 0.2, 0.0], [0.0, 0.1, 0.8, 1.0]], 1).array[0].round(2).tolist()
    [1.0, 1.0, 0.9, 0.2]
    """
    return _resize(segmentation, strength, region, "grey_erosion")


def split(
    segmentation: Comparable, strength: float, *, seed: int = 0, region: Label | None = None
) -> Segmentation:
    """Split a region along a soft line or plane through its centre, `strength` times.

    Parameters
    ----------
    segmentation, seed
        The same as in `blur`.
    strength : int
        The number of cuts.
    region : int or str, optional
        The region that is cut each time. By default, each cut divides the largest region.

    Returns
    -------
    Segmentation
        Probabilities. Each cut adds one region at the end. If the split region has a name, the
        label of the new region is this name followed by a number. Otherwise, the label is the
        largest integer label plus 1.

    Examples
    --------
    >>> from probdice.synthesis import brain_section, split
    >>> split(brain_section((32, 32)), 1, region="grey matter").regions
    ('background', 'fluid', 'grey matter', 'white matter', 'grey matter 2')
    """

    def once(
        values: Floats, regions: tuple[Label, ...], rng: np.random.Generator
    ) -> ValuesAndLabels:
        volumes = values.reshape(len(values), -1).sum(axis=1, dtype=np.float64)
        index = _index(region, regions, int(np.argmax(volumes)))
        first = _half(values[index], rng)
        values = np.concatenate([values, (values[index] * (1 - first))[None]])
        values[index] *= first
        return values, (*regions, _new_label(regions, regions[index]))

    return _repeat(segmentation, strength, seed, once)


def merge(segmentation: Comparable, strength: float, *, seed: int = 0) -> Segmentation:
    """Merge two random regions, `strength` times. The first region's label is kept.

    If only one region remains, it is not changed. The parameters are those of `split`, without
    `region`.

    Examples
    --------
    >>> from probdice.synthesis import merge
    >>> merge([[0.5, 0.2], [0.3, 0.3], [0.2, 0.5]], 2).array.round(2).tolist()
    [[1.0, 1.0]]
    """

    def once(
        values: Floats, regions: tuple[Label, ...], rng: np.random.Generator
    ) -> ValuesAndLabels:
        if len(regions) == 1:
            return values, regions
        first, second = np.sort(rng.choice(len(regions), 2, replace=False))
        values[first] += values[second]
        return (
            np.delete(values, second, axis=0),
            tuple(label for k, label in enumerate(regions) if k != second),
        )

    return _repeat(segmentation, strength, seed, once)


def permute(segmentation: Comparable, strength: float, *, seed: int = 0) -> Segmentation:
    """Exchange the labels of two random regions, `strength` times.

    The parameters are those of `split`, without `region`.

    Examples
    --------
    >>> from probdice.synthesis import permute
    >>> permute([[0.9, 0.1], [0.1, 0.9]], 1).array.tolist()
    [[0.1, 0.9], [0.9, 0.1]]
    """

    def once(
        values: Floats, regions: tuple[Label, ...], rng: np.random.Generator
    ) -> ValuesAndLabels:
        order = np.arange(len(regions))
        if len(regions) > 1:
            pair = rng.choice(len(regions), 2, replace=False)
            order[pair] = order[pair[::-1]]
        return values[order], regions

    return _repeat(segmentation, strength, seed, once)


DEGRADATIONS: dict[str, Degradation] = {
    "blur": blur,
    "deform": deform,
    "noise": noise,
    "grow": grow,
    "shrink": shrink,
    "split": split,
    "merge": merge,
    "permute": permute,
}
"""All degradations by name."""


def probabilities(segmentation: Comparable) -> ValuesAndLabels:
    """Return the probabilities of a segmentation and the labels of its regions.

    The regions are along the first axis.

    Examples
    --------
    >>> from probdice.synthesis import probabilities
    >>> values, regions = probabilities([7, 5, 5])
    >>> values.tolist(), regions
    ([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]], (5, 7))
    """
    segmentation = as_segmentation(segmentation, "segmentation")
    if segmentation.ignore:
        raise InputError(
            f"segmentation ignores labels {segmentation.ignore}, which have no probability. "
            f"Create the segmentation without ignored labels, and pass a mask to compare instead."
        )
    return segmentation.probabilities(), _regions(segmentation)


def _regions(segmentation: Segmentation) -> tuple[Label, ...]:
    """Return the labels of all regions. The labels of a label map are in ascending order."""
    if not segmentation.crisp:
        return segmentation.regions
    labels = np.asarray(segmentation.array[(slice(None),) * len(segmentation.shape)])
    return tuple(segmentation.label(int(label)) for label in np.unique(labels))


def _with_values(
    segmentation: Comparable, strength: float, change: Callable[[Floats], Floats]
) -> Segmentation:
    """Apply a change to the probabilities, and divide them by their sum."""

    def change_all(values: Floats, regions: tuple[Label, ...]) -> ValuesAndLabels:
        new_values = change(values.astype(np.float64))
        new_values /= new_values.sum(axis=0)
        return new_values.astype(values.dtype), regions

    return _with_regions(segmentation, strength, change_all)


def _repeat(
    segmentation: Comparable,
    strength: float,
    seed: int,
    once: Callable[[Floats, tuple[Label, ...], np.random.Generator], ValuesAndLabels],
) -> Segmentation:
    """Apply a change `strength` times."""
    if strength != np.floor(strength):
        raise InputError(f"strength must be a non-negative integer, found {strength}")

    def change_all(values: Floats, regions: tuple[Label, ...]) -> ValuesAndLabels:
        rng = np.random.default_rng(seed)
        for _ in range(int(strength)):
            values, regions = once(values, regions, rng)
        return values, regions

    return _with_regions(segmentation, strength, change_all)


def _with_regions(
    segmentation: Comparable,
    strength: float,
    change: Callable[[Floats, tuple[Label, ...]], ValuesAndLabels],
) -> Segmentation:
    """Apply a change to the probabilities and regions, unless the strength is 0."""
    if not (isfinite(strength) and strength >= 0):
        raise InputError(f"strength must be a finite non-negative number, found {strength}")
    segmentation = as_segmentation(segmentation, "segmentation")
    if strength == 0:
        return segmentation
    values, regions = change(*probabilities(segmentation))
    return Segmentation.from_probabilities(values, names=regions, geometry=segmentation.geometry)


def _resize(
    segmentation: Comparable, strength: float, region: Label | None, morphology: str
) -> Segmentation:
    from scipy import ndimage

    segmentation = as_segmentation(segmentation, "segmentation")
    regions = _regions(segmentation)
    index = _index(region, regions, len(regions) - 1)
    step = getattr(ndimage, morphology)

    def change(values: Floats) -> Floats:
        before = values[index].copy()
        after, next_after = before, before
        for k in range(floor(strength) + 1):
            # Alternating between a cross and a box makes the change nearly isotropic.
            box = np.ones((3,) * before.ndim, bool)
            footprint = box if k % 2 else ndimage.generate_binary_structure(before.ndim, 1)
            after, next_after = next_after, step(next_after, footprint=footprint, mode="nearest")
        after = after + (strength - floor(strength)) * (next_after - after)
        shares = _shares(np.delete(values, index, axis=0)) * (1 - after)
        return np.insert(shares, index, after, axis=0)

    return _with_values(segmentation, strength, change)


def _shares(other_values: Floats) -> Floats:
    """Return the probabilities of the other regions, divided by their sum.

    Where the sum is 0, the values of the nearest pixel with a positive sum are used. If the sum is
    0 everywhere, all regions get equal shares.
    """
    total = other_values.sum(axis=0)
    if len(other_values) == 0 or not total.any():
        return np.ones_like(other_values) / max(len(other_values), 1)
    if not total.all():
        from scipy import ndimage

        nearest = ndimage.distance_transform_edt(
            total == 0, return_distances=False, return_indices=True
        )
        other_values, total = other_values[(slice(None), *nearest)], total[tuple(nearest)]
    return np.asarray(other_values / total)


def _half(values: Floats, rng: np.random.Generator) -> Floats:
    """Return a soft step from 0 to 1 across a random plane through the centre of a region."""
    coordinates = np.indices(values.shape)
    weight = max(float(values.sum(dtype=np.float64)), float(MIN_DIVISOR))
    middle = [(coordinate * values).sum(dtype=np.float64) / weight for coordinate in coordinates]
    normal = rng.normal(size=values.ndim)
    normal /= np.linalg.norm(normal)
    distance = sum(
        n * (coordinate - m) for n, coordinate, m in zip(normal, coordinates, middle, strict=True)
    )
    return np.asarray(1 / (1 + np.exp(-np.clip(distance, -8, 8))), values.dtype)


def _index(region: Label | None, regions: tuple[Label, ...], default: int) -> int:
    if region is None:
        return default
    if region not in regions:
        raise InputError(f"region must be one of {regions}, found {region!r}")
    return regions.index(region)


def _new_label(regions: tuple[Label, ...], label: Label) -> Label:
    """Return an unused label: the largest number + 1, or the split region's name and a number."""
    if isinstance(label, int):
        return max(other for other in regions if isinstance(other, int)) + 1
    number = 2
    while f"{label} {number}" in regions:
        number += 1
    return f"{label} {number}"
