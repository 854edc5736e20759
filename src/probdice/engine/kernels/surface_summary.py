"""Numbers of the distances between two surfaces, for one group or for many small groups at once."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from probdice.compiler.jit import inner, kernel
from probdice.engine.kernels.surface_search import distances_to
from probdice.engine.kernels.surface_shapes import Shapes
from probdice.engine.kernels.surfaces import Codes, Surface, assembled, traced

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SHARE = 1e-9  # by which a share of the weight may fall short of a percentile
REACH = 1e-9  # by which a distance may exceed a tolerance
FIXED = 3  # numbers before those of percentiles and tolerances: hd, assd, masd


class Collected(NamedTuple):
    """The cells with a surface of all sets of an image, sorted by set and then by cell."""

    cells: Integers  # flat indices in the image
    configurations: NDArray[np.uint8]
    starts: Integers  # of the cells of each set, and the number of all


@kernel
def summarise(
    reference: Floats,
    reference_weights: Floats,
    prediction: Floats,
    prediction_weights: Floats,
    percentiles: Floats,
    tolerances: Floats,
    into: Floats,
) -> None:
    """The numbers of two sets of distances; the order of the distances is changed."""
    _summarise(
        reference,
        reference_weights,
        prediction,
        prediction_weights,
        percentiles,
        tolerances,
        into,
    )


@inner
def _summarise(
    reference: Floats,
    reference_weights: Floats,
    prediction: Floats,
    prediction_weights: Floats,
    percentiles: Floats,
    tolerances: Floats,
    into: Floats,
) -> None:
    last = FIXED + percentiles.size
    if reference.size == 0 or prediction.size == 0:
        both = reference.size == prediction.size
        into[:last] = np.nan if both else np.inf
        into[last:] = np.nan if both else 0.0
        return
    one = _moments(reference, reference_weights)
    two = _moments(prediction, prediction_weights)
    into[0] = max(one[2], two[2])
    into[1] = (one[1] + two[1]) / (one[0] + two[0])
    into[2] = (one[1] / one[0] + two[1] / two[0]) / 2
    for k in range(tolerances.size):
        limit = tolerances[k] + REACH
        within, beyond = _divided(reference, reference_weights, limit)
        also_within, also_beyond = _divided(prediction, prediction_weights, limit)
        within += also_within
        into[last + k] = within / (within + (beyond + also_beyond))  # exactly 0 and 1 as well
    for k in range(percentiles.size):
        share = percentiles[k] / 100 - SHARE
        into[FIXED + k] = max(
            _percentile(reference, reference_weights, share * one[0]),
            _percentile(prediction, prediction_weights, share * two[0]),
        )


@inner
def _moments(values: Floats, weights: Floats) -> tuple[float, float, float]:
    """All weight, the weighted sum, and the largest value."""
    weight = total = largest = 0.0
    for k in range(values.size):
        weight += weights[k]
        total += weights[k] * values[k]
        largest = max(largest, values[k])
    return weight, total, largest


@inner
def _divided(values: Floats, weights: Floats, limit: float) -> tuple[float, float]:
    """The weight up to a limit, and beyond it."""
    within = beyond = 0.0
    for k in range(values.size):
        if values[k] <= limit:
            within += weights[k]
        else:
            beyond += weights[k]
    return within, beyond


@inner
def _percentile(values: Floats, weights: Floats, target: float) -> float:
    """The smallest value up to which the weight reaches a target, by selection in place."""
    low, high = 0, values.size
    while high - low > 1:
        a, b, c = values[low], values[(low + high) // 2], values[high - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        # Less than the pivot up to `below`, equal up to `k`, unknown up to `above`, then greater.
        below, k, above = low, low, high
        less = equal = 0.0
        while k < above:
            value, weight = values[k], weights[k]
            if value < pivot:
                values[k], values[below] = values[below], value
                weights[k], weights[below] = weights[below], weight
                less += weight
                below += 1
                k += 1
            elif value > pivot:
                above -= 1
                values[k], values[above] = values[above], value
                weights[k], weights[above] = weights[above], weight
            else:
                equal += weight
                k += 1
        if target <= less:
            high = below
        elif target <= less + equal or above == high:
            return pivot
        else:
            target -= less + equal
            low = above
    return values[low]


@kernel
def summarise_groups(
    reference: Codes,
    prediction: Codes,
    groups: Integers,
    boxes: Integers,
    masked: bool,
    shapes: Shapes,
    percentiles: Floats,
    tolerances: Floats,
    into: Floats,
) -> None:
    """The numbers of many small groups of two images, each in its own box of cells."""
    for n in range(groups.size):
        one = traced(reference, groups[n], boxes[n], masked, shapes)
        two = traced(prediction, groups[n], boxes[n], masked, shapes)
        _measure(one, two, shapes, percentiles, tolerances, into[n])


@kernel
def summarise_sets(
    reference: Collected,
    prediction: Collected,
    pairs: Integers,
    boxes: Integers,
    sizes: Integers,
    shapes: Shapes,
    percentiles: Floats,
    tolerances: Floats,
    into: Floats,
) -> None:
    """The numbers of many small pairs of sets, given by their cells, each in its own box."""
    for n in range(pairs.shape[0]):
        dense = boxes[n, 3] * boxes[n, 4] * boxes[n, 5]
        p, q = pairs[n, 0], pairs[n, 1]
        a, b = reference.starts[p], reference.starts[p + 1]
        c, d = prediction.starts[q], prediction.starts[q + 1]
        one = assembled(
            reference.cells[a:b], reference.configurations[a:b], sizes, boxes[n], shapes, dense
        )
        two = assembled(
            prediction.cells[c:d], prediction.configurations[c:d], sizes, boxes[n], shapes, dense
        )
        _measure(one, two, shapes, percentiles, tolerances, into[n])


@inner
def _measure(
    one: Surface,
    two: Surface,
    shapes: Shapes,
    percentiles: Floats,
    tolerances: Floats,
    into: Floats,
) -> None:
    ones, one_weights = np.empty(one.starts[-1]), np.empty(one.starts[-1])
    twos, two_weights = np.empty(two.starts[-1]), np.empty(two.starts[-1])
    if ones.size and twos.size:
        distances_to(one, two, shapes, 0, one.cells.size, ones, one_weights)
        distances_to(two, one, shapes, 0, two.cells.size, twos, two_weights)
    _summarise(ones, one_weights, twos, two_weights, percentiles, tolerances, into)
