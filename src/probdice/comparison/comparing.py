"""The functions `compare`, `overlap` and `similarity_map`."""

import warnings
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.comparison.notes import infinite_notes
from probdice.comparison.result import Comparison, Numbers
from probdice.data.geometry import Geometry
from probdice.data.resampling import Interpolation
from probdice.data.segmentation import Array, Segmentation
from probdice.engine.pair import SegmentationPair
from probdice.errors import ProbdiceWarning
from probdice.files.inputs import Comparable, as_mask, as_segmentation
from probdice.method.matching import check_labels
from probdice.method.merging import Merging
from probdice.method.overlap import Overlap
from probdice.method.scoring import Correspondence, correspond, group_costs, measure
from probdice.method.similarity import SIMILARITIES, Similarity
from probdice.metrics.unions import check_members
from probdice.options import CompareOptions, GivenBackground, Match, as_workers

__all__ = [
    "checked_options",
    "compare",
    "compare_images",
    "compare_overlap",
    "images_of",
    "overlap",
    "similarity_map",
]

COMPARABLE_TYPES = {str, bool, int, float, type(None)}  # types of options that can be cached


def compare(
    reference: "Comparable",
    prediction: "Comparable",
    *,
    similarity: "str | Similarity" = "absolute",
    match: "Match" = "overlap",
    merge: "Merging" = "none",
    mask: "Comparable | None" = None,
    background: "GivenBackground" = None,
    resample: "Interpolation | None" = None,
    ignore_geometry: bool = False,
    geometry_tolerance: float | None = None,
    workers: int | None = None,
) -> "Comparison":
    """Compare two segmentations of one image.

    Parameters
    ----------
    reference, prediction : Segmentation, array_like, path or image
        An integer array is a label map. A floating-point array holds probabilities with the regions
        along the first axis. Paths, and arrays, tensors or images from other libraries, are also
        accepted. If reading an input requires options, such as ``scale`` or ``names``, call `read`
        first. For logits or another region axis, create a `Segmentation`.
    similarity : {"absolute", "aitchison"} or Similarity, optional
        The function that measures the similarity of two probability vectors.
    match : {"overlap", "paper", "labels"}, mapping or Comparison, optional
        How regions are matched:

        - "overlap": the one-to-one pairs with the largest total overlap;
        - "paper": the paper's minimum-weight matching, which matches every region of the side
          with fewer regions;
        - "labels": regions with equal numbers or, if both sides have names, with equal names; a
          region without a name is then still matched by number;
        - a mapping ``{prediction label: reference label}``: these pairs, and the remaining regions
          by overlap;
        - an earlier `Comparison`: the groups of that comparison.
    merge : {"none", "prediction", "reference", "both"}, optional
        Merge unmatched regions of these sides into matched ones.
    mask : array_like, Segmentation, path or image, optional
        Pixels to compare, as booleans or as integers that are 0 outside the mask. Values outside
        the mask are ignored on both sides.
    background : int, str or mapping of side to int or str, optional
        Label or name of the background. One value applies to both sides; a mapping sets one value
        per side, such as ``{"reference": 0, "prediction": 255}``. The two background regions
        correspond to each other under every matching rule. No region is merged into them, and
        foreground measures exclude them.
    resample : {"linear", "nearest"}, optional
        How to resample a prediction on another grid onto the grid of the reference. If
        both grids lie on the same lattice (equal axes and spacing, offset by whole pixels), the
        prediction is cropped or padded. Otherwise, "linear" interpolates linearly and converts
        labels to probabilities, and "nearest" keeps labels. Pixels outside the field of view of the
        prediction count as background if a background is given, and are excluded otherwise. By
        default, different grids raise an error, unless only the order or the direction of the axes
        differs.
    ignore_geometry : bool, optional
        Ignore image geometry and compare in array order.
    geometry_tolerance : float, optional
        Largest allowed distance between corresponding corners of the two grids, in pixels. The
        default is 0.1.
    workers : int, optional
        Number of threads. The default is the number of cores. The result does not depend on the
        number of threads.

    Returns
    -------
    Comparison
        Scores, correspondence and merges. The similarity map, relabelled images, additional metrics
        and figures are computed on request.

    Examples
    --------
    >>> import probdice
    >>> result = probdice.compare([1, 1, 1, 1, 2, 2, 2, 2], [7, 7, 5, 5, 5, 9, 9, 9])
    >>> result.score
    0.625
    >>> [(group.reference, group.prediction) for group in result.groups]
    [((1,), (7,)), ((2,), (9,)), ((), (5,))]
    >>> result = probdice.compare([0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1], background=0)
    >>> result.foreground_dice, round(result.foreground_score, 4)
    (0.8, 0.6667)
    """
    options = checked_options(
        similarity=similarity,
        match=match,
        merge=merge,
        background=background,
        resample=resample,
        ignore_geometry=ignore_geometry,
        geometry_tolerance=geometry_tolerance,
    )
    images = images_of(
        as_segmentation(reference, "reference"),
        as_segmentation(prediction, "prediction"),
        options,
        mask=None if mask is None else as_mask(mask),
        workers=None if workers is None else as_workers(workers),
    )
    return compare_images(images, options)


def checked_options(**values: Any) -> CompareOptions:
    """Return checked options, from a cache if all values have built-in, immutable types."""
    if COMPARABLE_TYPES.issuperset(map(type, values.values())):
        return _cached_options(SIMILARITIES.get(values["similarity"]), **values)
    return CompareOptions.of(**values)


@lru_cache(typed=True)
def _cached_options(similarity_class: type[Similarity] | None, **values: Any) -> CompareOptions:
    """Return checked options from the cache.

    The class of the similarity is part of the cache key, because a name can be redefined.
    """
    return CompareOptions.of(**values)


def images_of(
    reference: Segmentation,
    prediction: Segmentation,
    options: CompareOptions,
    *,
    mask: Segmentation | Array | None = None,
    workers: int | None = None,
) -> SegmentationPair:
    """Return both sides on one grid, or paired in array order if the geometry is ignored."""
    return SegmentationPair.of(
        reference,
        prediction,
        mask=mask,
        workers=workers,
        tolerance=options.geometry_tolerance,
        interpolation=options.resample,
        background=None if options.background is None else options.background.prediction,
        ignore_geometry=options.ignore_geometry,
    )


def compare_images(
    images: SegmentationPair, options: CompareOptions, *, of_many: bool = False
) -> "Comparison":
    """Compare two segmentations on one grid.

    With `of_many`, the images are one of several cases and may lack labels that the options name.
    """
    table, notes = images.first_pass(options.similarity)
    if not of_many:
        check_labels(options.matching, [table])
        if options.derived:
            check_members(dict(options.derived), [table])
    correspondence = correspond(table, options.matching, images)
    geometry = images.reference.geometry
    volume = None if geometry is None else _pixel_volume(geometry)
    numbers = Numbers() if table.crisp else _soft_numbers(table, correspondence, images)
    axes = len(images.reference.shape)
    result = Comparison(table, correspondence, options, images, volume, axes, notes, numbers)
    if options.similarity.unbounded:
        for note in infinite_notes(result):
            warnings.warn(str(note), ProbdiceWarning, stacklevel=3)
    return result


def _soft_numbers(
    table: Overlap, correspondence: Correspondence, images: SegmentationPair
) -> Numbers:
    """Return the score and the group costs, which may require another pass over the pixels."""
    groups, costs = correspondence.groups, correspondence.costs
    if costs is None:
        costs = group_costs(table, groups, images)
    measurement = measure(table, groups, costs, images)
    return Numbers({"measured": measurement, "score": measurement.score, "costs": costs})


def _pixel_volume(geometry: Geometry) -> float | None:
    """Return the volume of a voxel in mm³, or None if the image is not three-dimensional."""
    if len(geometry.shape) != 3:
        return None
    return float(f"{geometry.pixel_volume:.12g}")  # drops the rounding error of the determinant


def compare_overlap(
    overlap: Overlap, options: CompareOptions, *, of_many: bool = False
) -> "Comparison":
    """Compare two segmentations using only their overlap, without the images.

    With `of_many`, the overlap is that of one of several cases, as in `compare_images`.
    """
    if not of_many:
        check_labels(options.matching, [overlap])
    return Comparison(overlap, correspond(overlap, options.matching, None), options)


def overlap(
    reference: "Comparable",
    prediction: "Comparable",
    *,
    similarity: "str | Similarity" = "absolute",
    mask: "Comparable | None" = None,
    workers: int | None = None,
) -> Overlap:
    """Compute the overlap of two segmentations of one image, in one pass over the pixels.

    Overlaps of several images can be summed. To find one correspondence for a whole data set, use
    ``sum(overlap(r, p) for r, p in images).compare()``.

    Parameters
    ----------
    reference, prediction, similarity, mask, workers
        As for `compare`.

    Returns
    -------
    Overlap

    Examples
    --------
    >>> import probdice
    >>> probdice.overlap([1, 1, 2, 2], [5, 5, 5, 8])
    Overlap (absolute): 2 reference and 2 prediction regions over 4 pixels, 3 overlapping pairs
    """
    options = checked_options(similarity=similarity)
    images = SegmentationPair.of(
        as_segmentation(reference, "reference"),
        as_segmentation(prediction, "prediction"),
        mask=None if mask is None else as_mask(mask),
        workers=None if workers is None else as_workers(workers),
    )
    return images.overlap(options.similarity)


def similarity_map(
    reference: "Comparable",
    prediction: "Comparable",
    *,
    similarity: "str | Similarity" = "absolute",
    mask: "Comparable | None" = None,
) -> NDArray[np.float32]:
    """Return the similarity f at every pixel of two segmentations with the same labels.

    If equal labels do not mean the same region, use ``compare(…).map()``.

    Parameters
    ----------
    reference, prediction, similarity, mask
        As for `compare`.

    Returns
    -------
    ndarray of float32
        Array with the shape of the image; NaN at pixels that are not compared, such as those
        outside the mask. If a side is a Dask array, the result is a Dask array.

    Examples
    --------
    >>> import probdice
    >>> probdice.similarity_map([[0.9, 0.5], [0.1, 0.5]], [[0.8, 0.5], [0.2, 0.5]])
    array([0.9, 1. ], dtype=float32)
    """
    result = compare(reference, prediction, similarity=similarity, match="labels", mask=mask)
    return result.map()
