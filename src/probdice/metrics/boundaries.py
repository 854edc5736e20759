"""Distances between the outlines of corresponding regions.

Tools that measure distances between voxel centres define the boundary in different ways, so their
results differ. Here, the outline of a region is a surface of triangles (in 2-D, a curve of line
segments) halfway between the pixels inside and outside the region. Distances between outlines are
defined as follows:

- In every cell of 2 × 2 × 2 (in 2-D, 2 × 2) pixels, the surface passes through the midpoints
  between neighbouring pixels of which one is inside the region and the other outside. Pixels that
  touch only diagonally are separate. The surface is closed at the border of the image. A cell that
  contains a pixel outside the mask contains no surface.
- The distance of each triangle or segment (an *element*) is the exact distance from its centroid to
  the nearest point of the other surface. The weight of an element is its area or length.
- Probabilities are thresholded at several levels, not only at one half: at level t, a region
  consists of the pixels whose probability exceeds t. Every measure is the mean over the levels.
  Levels at which the region is empty on both sides are excluded.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from probdice.engine.pair import SegmentationPair
from probdice.errors import InputError
from probdice.method.overlap import Overlap
from probdice.method.pixel_passes import Lists
from probdice.method.sides import SIDES, Both
from probdice.metrics.boundary_result import Boundaries, BoundaryMean, GroupLabels
from probdice.metrics.unions import Union
from probdice.options.checks import as_penalty, numbers_in

if TYPE_CHECKING:
    from probdice.engine.surface_distances import Elements, Outlines

__all__ = ["LEVELS", "Boundaries", "BoundaryMean", "boundaries_of", "union_boundaries"]

LEVELS = tuple(k / 10 for k in range(1, 10))
PERCENTILES = (95.0,)


def boundaries_of(
    images: SegmentationPair,
    regions: Both[Lists],
    *,
    groups: Both[GroupLabels],
    counted: NDArray[np.bool_] | None = None,
    percentiles: Iterable[float] = PERCENTILES,
    tolerances: Iterable[float] = (),
    levels: Iterable[float] = LEVELS,
    infinite: float | None = None,
) -> Boundaries:
    """Measure the distances between the outlines of corresponding regions.

    Parameters
    ----------
    images : SegmentationPair
        The images of a comparison. Distances are in millimetres if the reference has a geometry,
        and in pixels otherwise.
    regions : Both
        Per side and group, a list of the labels (label maps) or channels (probabilities) of the
        regions of the group. Groups may share regions.
    groups : Both
        Per side, the labels of every group.
    counted : ndarray of bool, optional
        The groups that are included in means. By default, all groups are included.
    percentiles : iterable of float, optional
        Percentiles of the Hausdorff distance, above 0 and at most 100.
    tolerances : iterable of float, optional
        Tolerances of the surface Dice, in the unit of the distances. By default, there are no
        tolerances, because no tolerance suits all images.
    levels : iterable of float, optional
        Probability levels, at least 0 and below 1; 0.1, 0.2, …, 0.9 by default. The outlines of
        label maps are the same at every level.
    infinite : float, optional
        A penalty distance that replaces infinite distances.

    Raises
    ------
    InputError
        If the images do not have two or three axes, if an option is out of range, or if `levels` is
        empty and a side contains probabilities.
    """
    shape = images.reference.shape
    if len(shape) not in (2, 3):
        raise InputError(
            f"boundaries require images with two or three axes, found {len(shape)} (shape "
            f"{shape}). "
            "If the arrays have channel or time axes, compare one 2-D or 3-D image at a time."
        )
    options = {
        "percentiles": numbers_in("percentiles", percentiles, "above 0 and at most 100"),
        "tolerances": numbers_in("tolerances", tolerances, "finite and at least 0"),
        "levels": numbers_in("levels", levels, "at least 0 and below 1"),
    }
    infinite = as_penalty(infinite)
    from probdice.engine.surface_distances import Outlines  # loads Numba

    outlines = Outlines(images, regions)
    if outlines.crisp:
        options["levels"] = ()
    elif not options["levels"]:
        raise InputError("levels must contain at least one number for probabilities, found none")
    return Boundaries(
        groups=groups,
        counted=np.ones(len(groups.reference), np.bool_) if counted is None else counted,
        unit="pixels" if images.reference.geometry is None else "mm",
        infinite=infinite,
        **options,
        _values=outlines.numbers(**options),
        _elements=_Elements(outlines),
    )


def union_boundaries(
    images: SegmentationPair,
    unions: Sequence[Union],
    overlap: Overlap,
    *,
    percentiles: Iterable[float] = PERCENTILES,
    tolerances: Iterable[float] = (),
    levels: Iterable[float] = LEVELS,
    infinite: float | None = None,
) -> Boundaries:
    """Measure the distances between the outlines of derived regions, which may share regions.

    Parameters
    ----------
    images : SegmentationPair
        The images of a comparison.
    unions : sequence of Union
        The regions of both sides that form each derived region.
    overlap : Overlap
        The overlap of the comparison. A union in which no region is present is excluded from means.
    percentiles, tolerances, levels, infinite
        As for `boundaries_of`.

    Examples
    --------
    >>> import numpy as np
    >>> import probdice
    >>> from probdice.metrics.boundaries import union_boundaries
    >>> from probdice.metrics.unions import unions_of
    >>> reference, prediction = np.zeros((2, 14, 14), int)
    >>> reference[4:10, 4:7] = 1
    >>> reference[4:10, 7:10] = prediction[4:10, 5:11] = 2
    >>> result = probdice.compare(reference, prediction, match="labels")
    >>> unions = unions_of(result, {"whole": (1, 2)})
    >>> union_boundaries(result.images, unions, result.overlap)["hd"].tolist()
    [1.0]
    """
    names = [(union.name,) for union in unions]
    return boundaries_of(
        images,
        Both(*([union.keys(overlap, side) for union in unions] for side in SIDES)),
        groups=Both(names, names),
        counted=np.array([union.present(overlap) for union in unions]),
        percentiles=percentiles,
        tolerances=tolerances,
        levels=levels,
        infinite=infinite,
    )


@dataclass(frozen=True, eq=False)
class _Elements:
    """A callable that computes the elements of one group whenever it is called.

    Elements are not stored, because those of all groups would need too much memory.
    """

    outlines: "Outlines"

    def __call__(self, group: int, level: float) -> "Both[Elements]":
        elements = self.outlines.elements(group, level)
        geometry = self.outlines.images.reference.geometry
        if geometry is None:
            return elements
        linear, origin = geometry.affine[:-1, :-1], geometry.affine[:-1, -1]
        return elements.map(lambda side: replace(side, points=side.points @ linear.T + origin))
