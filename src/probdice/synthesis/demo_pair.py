"""A pair of segmentations for demonstrations."""

from dataclasses import replace

import numpy as np

from probdice.data.geometry import Geometry
from probdice.data.segmentation import Segmentation
from probdice.synthesis.degradations import blur, deform, noise, permute, split
from probdice.synthesis.phantoms import brain_section

__all__ = ["demo_pair"]


def demo_pair(
    seed: int = 0, *, shape: tuple[int, int, int] = (64, 72, 60)
) -> tuple[Segmentation, Segmentation]:
    """Create a brain-like reference with four named regions and a prediction with seven regions.

    The prediction is the reference after deformation, blur, splits, permutation and noise. The
    labels of the prediction are arbitrary numbers. Both segmentations have the same grid, with a
    spacing of 2.5 mm by default.

    Parameters
    ----------
    seed : int, optional
        Seed of the random numbers.
    shape : tuple of int, optional
        Shape of the volume.

    Returns
    -------
    reference : Segmentation
        Probabilities in float32, with a geometry.
    prediction : Segmentation
        Probabilities in float32, with the same geometry.

    Examples
    --------
    >>> from probdice.synthesis import demo_pair
    >>> reference, prediction = demo_pair(shape=(16, 18, 15))
    >>> reference.regions
    ('background', 'fluid', 'grey matter', 'white matter')
    >>> prediction.regions
    (11, 12, 13, 14, 15, 16, 17)
    """
    spacing = 160 / shape[0]
    affine = np.diag([spacing, spacing, spacing, 1.0])
    affine[:3, 3] = [-spacing * (n - 1) / 2 for n in shape]
    reference = replace(
        brain_section(shape, softness=0.8, doubt=0.01, seed=seed), geometry=Geometry(shape, affine)
    )
    prediction = deform(reference, 0.04 * shape[0], seed=seed + 1)
    prediction = blur(prediction, 0.6)
    prediction = split(prediction, 2, region="grey matter", seed=seed + 2)
    prediction = split(prediction, 1, region="white matter", seed=seed + 3)
    prediction = permute(prediction, 12, seed=seed + 4)
    prediction = noise(prediction, 0.4, seed=seed + 5)
    numbers = tuple(range(11, 11 + len(prediction.regions)))
    return reference, replace(prediction, labels=numbers, names={})
