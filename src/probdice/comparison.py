"""compare(): the only wiring, from two segmentations to a result."""

import warnings
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from probdice.blocks import Pair, default_workers
from probdice.errors import GeometryError, InputError, ProbdiceWarning
from probdice.result import Comparison, Group, Merge, listed
from probdice.segmentation import (
    Array,
    Geometry,
    Label,
    Segmentation,
    as_array,
    as_segmentation,
)
from probdice.similarity import Aitchison, Similarity, as_similarity
from probdice.solution import SIDES, Grouped, Merging, Problem, Solution
from probdice.tally import Side, other

__all__ = ["aligned", "compare", "similarity_map"]

Comparable = Segmentation | ArrayLike | Array


def compare(
    reference: Comparable,
    prediction: Comparable,
    *,
    similarity: str | Similarity = "absolute",
    match: bool = True,
    merge: Merging = "none",
    mask: ArrayLike | Array | Segmentation | None = None,
    workers: int | None = None,
) -> Comparison:
    """Compare two segmentations of one image.

    Parameters
    ----------
    reference, prediction : Segmentation or array_like
        An array of integers is a label map, one of floating numbers holds probabilities with the
        regions along the first axis. Anything else is said with a `Segmentation`.
    similarity : {"absolute", "aitchison"}, Absolute or Aitchison, optional
        How two probability vectors are compared.
    match : bool, optional
        Whether to find out which region is which. If not, equal labels correspond, and a label
        that one side lacks is an empty region there.
    merge : {"none", "prediction", "reference", "both"}, optional
        The sides whose spare regions, if it has more regions than the other, may be merged into
        matched ones.
    mask : array_like or Segmentation, optional
        Pixels to compare: booleans, or integers of which 0 is outside. Nothing is asked of the
        values outside.
    workers : int, optional
        Threads; as many as there are cores by default. The result does not depend on it.

    Returns
    -------
    Comparison
        Scores, correspondence, merges, and on request the map of similarity and more.

    Examples
    --------
    >>> import probdice
    >>> result = probdice.compare([1, 1, 1, 1, 2, 2, 2, 2], [7, 7, 5, 5, 5, 9, 9, 9])
    >>> result.score
    0.625
    >>> [(group.reference, group.prediction) for group in result.groups]
    [((1,), (7,)), ((2,), (9,)), ((), (5,))]
    """
    measure = as_similarity(similarity)
    if merge not in get_args(Merging):
        raise InputError(
            f"merge must be 'none', 'prediction', 'reference' or 'both', found {merge!r}"
        )
    if not match and merge != "none":
        raise InputError(
            f"merge={merge!r} does not go with match=False: regions are only merged into "
            f"matched ones, so leave one of the two out"
        )
    if workers is not None and (not isinstance(workers, int) or workers < 1):
        raise InputError(f"workers must be a whole number of at least 1, found {workers!r}")
    first, second = _side(reference, "reference"), _side(prediction, "prediction")
    second = aligned(first, second)
    pair = Pair(first, second, _mask(mask, first), workers or default_workers())
    problem = Problem.of(pair, measure, bool(match), merge)
    if not match:
        _check_common_labels(problem)
    return _result(problem, problem.solve())


def similarity_map(
    reference: Comparable,
    prediction: Comparable,
    *,
    similarity: str | Similarity = "absolute",
    mask: ArrayLike | Array | Segmentation | None = None,
) -> NDArray[np.float32]:
    """f at every pixel between two segmentations whose labels correspond.

    For regions that are yet to be matched use ``compare(…).map()``.

    Parameters
    ----------
    reference, prediction, similarity, mask
        As for `compare`.

    Returns
    -------
    ndarray of float32
        The shape of the image; NaN outside the mask.

    Examples
    --------
    >>> import probdice
    >>> probdice.similarity_map([[0.9, 0.5], [0.1, 0.5]], [[0.8, 0.5], [0.2, 0.5]])
    array([0.9, 1. ], dtype=float32)
    """
    return compare(reference, prediction, similarity=similarity, match=False, mask=mask).map()


def _side(value: Comparable, side: Side) -> Segmentation:
    """One side as a Segmentation that may stand there."""
    try:
        segmentation = as_segmentation(value)
    except InputError as error:
        raise type(error)(f"{side}: {error}") from None
    if side == "prediction" and segmentation.ignore:
        raise InputError(
            f"prediction must not ignore labels, found ignore={segmentation.ignore}: it could "
            f"leave out what it finds hard; let the reference ignore them, or pass a mask"
        )
    return segmentation


def aligned(
    reference: Segmentation, prediction: Segmentation, *, tolerance: float = 0.1
) -> Segmentation:
    """The prediction on the reference's grid, to within `tolerance` pixels at every corner."""
    here, there = reference.geometry, prediction.geometry
    if here is not None and there is not None:
        try:
            return prediction.onto(here, tolerance=tolerance)
        except GeometryError as error:
            raise GeometryError(
                f"reference{_file(reference)} and prediction{_file(prediction)} do not lie on the "
                f"same grid: {error}\n{_side_by_side(here, there)}\n"
                f"resample one of them onto the other first"
            ) from None
    for side, known in (("prediction", here), ("reference", there)):
        if known is not None:
            raise GeometryError(
                f"{side} has no geometry but the {other(side)} does, so nothing says that they "  # type: ignore[arg-type]
                f"lie in the same place; give it geometry=…, or compare by array order with "
                f"without_geometry() (--ignore-geometry)"
            )
    if reference.shape != prediction.shape:
        raise InputError(
            f"reference has shape {reference.shape} but prediction has shape {prediction.shape}: "
            f"both must cover the same pixels{_misread(reference, prediction)}"
        )
    return prediction


def _misread(*sides: Segmentation) -> str:
    """A hint where a floating array of one number a pixel was taken for probabilities."""
    for side, across in (sides, sides[::-1]):
        if not side.crisp and tuple(side.array.shape) == across.shape:
            return (
                "; a floating array has its regions along the first axis, so say "
                "Segmentation.from_labels(array) for labels, or "
                "Segmentation.from_probabilities(array, axis=None) for a single foreground"
            )
        if not side.crisp and tuple(side.array.shape[:-1]) == across.shape:
            return (
                "; regions were taken along the first axis and seem to lie along the last, so say "
                "Segmentation.from_probabilities(array, axis=-1), or store them first"
            )
    return ""


def _file(side: Segmentation) -> str:
    return f" ({side.source})" if side.source else ""


def _side_by_side(here: Geometry, there: Geometry) -> str:
    """Both geometries as a table."""
    ours, theirs = here.describe(), there.describe()
    width = max(len(text) for text in (*ours.values(), "reference"))
    rows = [f"{'':>10}  {'reference':<{width}}  prediction"]
    rows += [f"{key:>10}  {ours[key]:<{width}}  {theirs[key]}" for key in ours]
    return "\n".join(rows)


def _mask(mask: Any, reference: Segmentation) -> Array | None:
    """The mask as an array over the reference's grid."""
    if mask is None:
        return None
    if isinstance(mask, Segmentation):
        if not mask.crisp:
            raise InputError("mask must be a label map (0 is outside), found probabilities")
        if (mask.geometry is None) != (reference.geometry is None):
            without = "mask" if mask.geometry is None else "reference"
            raise GeometryError(
                f"{without} has no geometry, so nothing says that the mask lies on the reference; "
                f"pass the mask as an array, or drop all geometry (--ignore-geometry)"
            )
        if mask.geometry is not None and reference.geometry is not None:
            try:
                mask = mask.onto(reference.geometry)
            except GeometryError as error:
                raise GeometryError(
                    f"mask{_file(mask)} does not lie on the reference's grid: {error}"
                ) from None
        mask = mask.array
    else:
        mask = as_array(mask)
        if mask.dtype.kind not in "biu":
            raise InputError(f"mask must hold booleans or integers, found {mask.dtype}")
    if tuple(mask.shape) != reference.shape:
        raise InputError(
            f"mask has shape {tuple(mask.shape)} but the images have shape {reference.shape}"
        )
    found: Array = mask
    return found


def _check_common_labels(problem: Problem) -> None:
    """Some label must be known to both sides, be it an empty region."""
    known = {side: {*problem.regions[side].names, *problem.regions[side].empty} for side in SIDES}
    if not known["reference"] & known["prediction"]:
        ours, theirs = (listed(sorted(known[side], key=str)) for side in SIDES)
        raise InputError(
            f"no label in common, so with match=False nothing corresponds: reference has "
            f"{ours}, prediction has {theirs}; leave out match=False to match regions by overlap"
        )


def _result(problem: Problem, solution: Solution) -> Comparison:
    """The solution in terms of labels."""
    sums, regions = problem.sums, problem.regions
    names = {side: regions[side].names for side in SIDES}
    groups = tuple(_group(problem, group) for group in solution.groups)
    unmatched = {
        side: tuple(
            label
            for group, solved in zip(groups, solution.groups, strict=True)
            if not solved.side(other(side))
            for label in (group.reference if side == "reference" else group.prediction)
        )
        for side in SIDES
    }
    merges = tuple(
        Merge(
            join.side,
            names[join.side][join.region],
            (names[other(join.side)][join.into],),
            join.gain,
        )
        for join in solution.joins
    )
    floor = problem.similarity.floor if isinstance(problem.similarity, Aitchison) else 0.0
    return Comparison(
        score=solution.score,
        matched_score=solution.matched_score,
        groups=groups,
        merges=merges,
        unmatched=unmatched,
        empty={side: regions[side].empty for side in SIDES},
        notes=tuple(_notes(problem, solution, groups, unmatched)),
        weights=sums.weights,
        reference_labels=names["reference"],
        prediction_labels=names["prediction"],
        pixels=sums.pixels,
        similarity=problem.similarity.name,
        floor=floor,
        match=problem.match,
        merge=problem.merge,
        _work=(problem, solution),
    )


def _group(problem: Problem, group: Grouped) -> Group:
    """A group with its labels, Dice and volumes."""
    sums = problem.sums
    labels = {
        side: tuple(problem.regions[side].names[k] for k in group.side(side)) for side in SIDES
    }
    volumes = {side: float(sums.volumes[side][list(group.side(side))].sum()) for side in SIDES}
    total = volumes["reference"] + volumes["prediction"]
    shared = max(total - float(group.difference), 0.0)
    if not (labels["reference"] and labels["prediction"]):
        shared = 0.0
    return Group(
        labels["reference"],
        labels["prediction"],
        similarity=min(max(1 - sums.unit * float(group.loss) / sums.pixels, 0.0), 1.0),
        dice=shared / total,
        jaccard=shared / (total + float(group.difference)),
        reference_volume=volumes["reference"],
        prediction_volume=volumes["prediction"],
    )


def _notes(
    problem: Problem,
    solution: Solution,
    groups: Sequence[Group],
    unmatched: dict[Side, tuple[Label, ...]],
) -> list[str]:
    """What a reader of the score should know."""
    notes = []
    for side in SIDES:
        if spare := unmatched[side]:
            regions = "region has" if len(spare) == 1 else "regions have"
            remedy = f'; merge="{side}" would join each to a matched one' if problem.match else ""
            notes.append(f"{len(spare)} {side} {regions} no partner ({listed(spare)}){remedy}")
    if problem.match:
        crossed = _crossed(problem, groups)
        if crossed:
            labels = "label" if len(crossed) == 1 else "labels"
            notes.append(
                f"{len(crossed)} {labels} of both sides matched to another one "
                f"({listed(crossed)}); match=False compares equal labels"
            )
    share = solution.infinite / problem.sums.pixels
    if share > 0.5:
        text = (
            f"{share:.1%} of the pixels are infinitely far apart, because one side rules out "
            f"what the other holds possible; consider Aitchison(floor=1e-3), "
            f"similarity='absolute', or merge where regions have no partner"
        )
        warnings.warn(text, ProbdiceWarning, stacklevel=4)
        notes.append(text)
    return notes


def _crossed(problem: Problem, groups: Sequence[Group]) -> list[Label]:
    """Labels of both sides that lie in different groups."""
    mine = {label: k for k, group in enumerate(groups) for label in group.reference}
    theirs = {label: k for k, group in enumerate(groups) for label in group.prediction}
    return [
        label
        for label, k in mine.items()
        if label in theirs and theirs[label] != k and groups[k].prediction
    ]
