"""The seven images of the table, and other segmentations that the figures show."""

from probdice.paper.photographs import photograph, random_walker
from probdice.segmentation import Segmentation
from probdice.synthesis import (
    blur,
    brain_section,
    deform,
    nested_ellipses,
    noise,
    permute,
    split,
    touching_cells,
    voronoi,
)

__all__ = ["near_and_far", "over_segmented", "paper_images", "shuffled"]


def paper_images(*, size: int = 96, seed: int = 0) -> dict[str, Segmentation]:
    """The seven references of the table: four phantoms, and three photographs by random walker.

    Parameters
    ----------
    size : int, optional
        Pixels along the longer side.
    seed : int, optional
        Of the phantoms and of the walker's seeds.

    Examples
    --------
    >>> from probdice.paper import paper_images
    >>> list(paper_images(size=32))
    ['ellipses', 'Voronoi', 'brain', 'cells', 'astronaut', 'camera', 'coffee']
    """
    shape = (size, size)
    phantoms = {
        "ellipses": nested_ellipses(shape, seed=seed + 1),
        "Voronoi": voronoi(shape, seed=seed),
        "brain": brain_section(shape, seed=seed),
        "cells": touching_cells(shape, seed=seed),
    }
    photographs = {
        name: random_walker(photograph(name, size=size), 5, seed=seed)
        for name in ("astronaut", "camera", "coffee")
    }
    return phantoms | photographs


def near_and_far(*, seed: int = 0) -> tuple[Segmentation, tuple[Segmentation, Segmentation]]:
    """A reference of three regions, a poor prediction and a good one."""
    reference = nested_ellipses((96, 96), regions=3, seed=seed + 1)
    far = noise(deform(reference, 14, seed=seed + 2), 0.8, seed=seed)
    near = noise(blur(deform(reference, 3, seed=seed + 3), 0.8), 0.15, seed=seed)
    return reference, (far, near)


def shuffled(*, seed: int = 0) -> tuple[Segmentation, Segmentation]:
    """A reference of four regions, and the same deformed, with its labels exchanged."""
    reference = voronoi((96, 96), regions=4, seed=seed + 3)
    return reference, permute(deform(reference, 6, seed=seed), 5, seed=seed + 1)


def over_segmented(reference: Segmentation, *, seed: int = 0) -> Segmentation:
    """A prediction with three regions more than the reference, in another order."""
    spoilt = split(deform(reference, 2, seed=seed), 3, seed=seed + 1)
    return permute(noise(spoilt, 0.2, seed=seed), 10, seed=seed)
