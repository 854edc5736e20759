"""Statistics of the distances between two surfaces, for one pair or for many small pairs."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from probdice.compiler.jit import inner, kernel
from probdice.engine.kernels.surface_search import find_distances
from probdice.engine.kernels.surface_shapes import Shapes
from probdice.engine.kernels.surfaces import SetSurface, assemble, differing

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SHARE = 1e-9  # the cumulative weight may fall short of a percentile by this fraction
ROUNDING_TOLERANCE = 1e-9  # a distance may exceed a tolerance by this amount
STATISTICS = 3  # number of measures before the percentiles; their names are in `options`
SHARES = 1  # number of measures per tolerance, after the percentiles


class Collected(NamedTuple):
    """All cells of an image that contain the surface of a set, sorted by set and then by cell."""

    cells: Integers  # flat indices in the image
    configurations: NDArray[np.uint8]
    starts: Integers  # the first cell of each set, and the number of all cells


class Directed(NamedTuple):
    """Distances from one surface to another.

    Elements that both surfaces share are not listed. Only the total weight of these elements is
    stored.
    """

    distances: Floats
    weights: Floats
    shared: float  # the total weight of the shared elements, whose distance is 0
    empty: bool  # whether the surface has no elements


@kernel
def summarise(
    reference: Directed,
    prediction: Directed,
    percentiles: Floats,
    tolerances: Floats,
    into: Floats,
) -> None:
    """Write statistics of the distances in both directions. Distances are reordered in place.

    The order is that of `options.boundary_distances.STATISTICS`, followed by the percentiles and by
    the shares at each tolerance.
    """
    last = STATISTICS + percentiles.size
    if reference.empty or prediction.empty:
        both = reference.empty == prediction.empty
        into[:last] = np.nan if both else np.inf
        into[last:] = np.nan if both else 0.0
        return
    one, two = _moments(reference), _moments(prediction)
    into[0] = max(one[2], two[2])
    into[1] = (one[1] + two[1]) / (one[0] + two[0])
    into[2] = (one[1] / one[0] + two[1] / two[0]) / 2
    for k in range(tolerances.size):
        within, beyond = _divided(reference, tolerances[k] + ROUNDING_TOLERANCE)
        also_within, also_beyond = _divided(prediction, tolerances[k] + ROUNDING_TOLERANCE)
        within += also_within
        into[last + k] = within / (within + (beyond + also_beyond))  # can be exactly 0 or 1
    for k in range(percentiles.size):
        share = percentiles[k] / 100 - SHARE
        into[STATISTICS + k] = max(
            _percentile(reference, share * one[0]), _percentile(prediction, share * two[0])
        )


@inner
def _moments(directed: Directed) -> tuple[float, float, float]:
    """Return the total weight, the weighted sum of distances, and the largest distance."""
    weight, total, largest = directed.shared, 0.0, 0.0
    for k in range(directed.distances.size):
        weight += directed.weights[k]
        total += directed.weights[k] * directed.distances[k]
        largest = max(largest, directed.distances[k])
    return weight, total, largest


@inner
def _divided(directed: Directed, limit: float) -> tuple[float, float]:
    """Return the weight of distances up to a limit, and the weight of larger distances."""
    within, beyond = directed.shared, 0.0
    for k in range(directed.distances.size):
        if directed.distances[k] <= limit:
            within += directed.weights[k]
        else:
            beyond += directed.weights[k]
    return within, beyond


@inner
def _percentile(directed: Directed, target: float) -> float:
    """Return the smallest distance at which the cumulative weight reaches a target."""
    values, weights = directed.distances, directed.weights
    target -= directed.shared
    if target <= 0 or values.size == 0:
        return 0.0
    low, high = 0, values.size
    while high - low > 1:
        a, b, c = values[low], values[(low + high) // 2], values[high - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        # Values before `below` are less than the pivot, values before `k` are equal to it, values
        # from `above` on are greater, and values in between are not yet sorted.
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
    """Write the statistics of many small pairs of sets.

    Each pair is given by the numbers of its two sets and by a box of cells.
    """
    for n in range(pairs.shape[0]):
        dense = boxes[n, 3] * boxes[n, 4] * boxes[n, 5]
        p, q = pairs[n, 0], pairs[n, 1]
        a, b = reference.starts[p], reference.starts[p + 1]
        c, d = prediction.starts[q], prediction.starts[q + 1]
        one = assemble(
            reference.cells[a:b], reference.configurations[a:b], sizes, boxes[n], shapes, dense
        )
        two = assemble(
            prediction.cells[c:d], prediction.configurations[c:d], sizes, boxes[n], shapes, dense
        )
        reference_distances = _directed(one, two, shapes)
        prediction_distances = _directed(two, one, shapes)
        summarise(reference_distances, prediction_distances, percentiles, tolerances, into[n])


@inner
def _directed(surface: SetSurface, other: SetSurface, shapes: Shapes) -> Directed:
    part, shared = differing(surface.part, other.pyramid, shapes)
    distances, weights = np.empty(part.starts[-1]), np.empty(part.starts[-1])
    if other.part.cells.size:
        find_distances(part, other.pyramid, shapes, 0, part.cells.size, distances, weights)
    return Directed(distances, weights, shared, surface.part.cells.size == 0)
