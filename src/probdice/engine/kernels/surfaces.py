"""Surfaces of sets of pixels, and exact distances from one surface to another.

An image is an array of codes with three axes; one of two axes is an image of one layer. The set of
a group is where the code is the group's number, and `OUTSIDE` marks pixels that are left out. A
surface is traced in a box of cells; cell i of an axis lies between the pixels i − 1 and i, so that
the surface is closed at the border of the image.

Nearest points are found in the grid of cells itself. A pyramid above it stores for every block of
cells which of its halves, along each axis, have a surface, and a search descends only into blocks
that are closer than the closest point so far.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from probdice.compiler.jit import inlined, inner, kernel
from probdice.engine.kernels.surface_shapes import Shapes

Codes = NDArray[np.signedinteger[Any]]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

OUTSIDE = -2  # the code of a pixel that is left out
SHARE = 1e-9  # by which a share of the weight may fall short of a percentile
REACH = 1e-9  # by which a distance may exceed a tolerance
FIXED = 3  # numbers before those of percentiles and tolerances: hd, assd, masd
FARTHEST = 2.0**62  # cells: more than any image has
DEEPEST = 64  # levels of a pyramid: more than any image has


class Surface(NamedTuple):
    """A traced surface.

    `nodes` has one byte per block, with one bit per half along each axis, of all levels of the
    pyramid: level 1 first. Block (i, j, k) of level n starts at cell (i << shifts[n, 0], …).
    """

    configurations: NDArray[np.uint8]  # of all cells of the box
    cells: Integers  # flat indices of those that have elements
    starts: Integers  # of their elements, and the number of all
    nodes: NDArray[np.uint8]
    offsets: Integers
    counts: Integers  # blocks along each axis, per level
    shifts: Integers


@kernel
def bounds(codes: Codes, first: int, into: Integers) -> None:
    """Widen the boxes of all groups: smallest and largest index along each axis.

    `codes` is a slab of the image that starts at layer `first`.
    """
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            row = codes[i, j]
            k = 0
            while k < row.size:
                code = row[k]
                start = k
                while k < row.size and row[k] == code:
                    k += 1
                if 0 <= code < into.shape[0]:
                    box = into[code]
                    box[0] = min(box[0], first + i)
                    box[1] = min(box[1], j)
                    box[2] = min(box[2], start)
                    box[3] = max(box[3], first + i)
                    box[4] = max(box[4], j)
                    box[5] = max(box[5], k - 1)


@kernel
def trace(codes: Codes, group: int, box: Integers, masked: bool, shapes: Shapes) -> Surface:
    """The surface of one group within a box of cells: its first cell, then the numbers of cells."""
    return _trace(codes, group, box, masked, shapes)


@inner
def _trace(codes: Codes, group: int, box: Integers, masked: bool, shapes: Shapes) -> Surface:
    configurations = np.empty((box[3], box[4], box[5]), np.uint8)
    _configure(codes, group, box, masked, configurations)
    flat = configurations.reshape(-1)
    elements = np.diff(shapes.element_starts)
    found = 0
    for k in range(np.uint64(0), np.uint64(flat.size)):
        found += elements[flat[k]] > 0
    cells = np.empty(found, np.int64)
    starts = np.empty(found + 1, np.int64)
    n = total = 0
    for k in range(flat.size):
        count = elements[flat[k]]
        if count > 0:
            cells[n] = k
            starts[n] = total
            n += 1
            total += count
    starts[n] = total
    counts, shifts = _levels(box, shapes)
    offsets = np.zeros(counts.shape[0] + 1, np.int64)
    for level in range(1, counts.shape[0]):
        offsets[level + 1] = offsets[level] + counts[level].prod()
    nodes = np.zeros(offsets[-1], np.uint8)
    for n in range(found):
        _mark(cells[n], nodes, offsets, counts, shifts)
    return Surface(configurations, cells, starts, nodes, offsets, counts, shifts)


@inner
def _configure(
    codes: Codes, group: int, box: Integers, masked: bool, into: NDArray[np.uint8]
) -> None:
    """The configuration of every cell of a box; 0 where a pixel of the image is left out."""
    depth, height, width = codes.shape
    inside = np.zeros((4, box[5] + 1), np.uint8)
    left_out = np.zeros((4, box[5] + 1), np.uint8)
    first, last = box[2] - 1, box[2] + box[5] - 1  # pixels of a row
    low, high = max(first, 0), min(last, width - 1)
    for i in range(box[3]):
        for j in range(box[4]):
            for corner in range(4):
                x, y = box[0] + i - 1 + corner // 2, box[1] + j - 1 + corner % 2
                bits, out = inside[corner], left_out[corner]
                if 0 <= x < depth and 0 <= y < height:
                    row = codes[x, y]
                    for k in range(low, high + 1):
                        bits[k - first] = row[k] == group
                    if masked:
                        for k in range(low, high + 1):
                            out[k - first] = row[k] == OUTSIDE
                else:
                    bits[:] = 0
                    out[:] = 0
            a, b, c, d = inside
            cells = into[i, j]
            before = a[0] | b[0] << 1 | c[0] << 2 | d[0] << 3
            for k in range(cells.size):
                after = a[k + 1] | b[k + 1] << 1 | c[k + 1] << 2 | d[k + 1] << 3
                cells[k] = before | after << 4
                before = after
            if masked:
                e, f, g, h = left_out
                for k in range(cells.size):
                    if e[k] | f[k] | g[k] | h[k] | e[k + 1] | f[k + 1] | g[k + 1] | h[k + 1]:
                        cells[k] = 0


@inner
def _levels(box: Integers, shapes: Shapes) -> tuple[Integers, Integers]:
    """Blocks along each axis and their sizes in cells, as powers of two, on all levels.

    From level to level only axes are halved along which blocks are short, so that blocks are
    about as long along each axis whatever the spacing.
    """
    counts = np.empty((DEEPEST, 3), np.int64)
    shifts = np.zeros((DEEPEST, 3), np.int64)
    counts[0] = box[3:]
    level = 0
    while counts[level].max() > 1:
        shortest = np.inf
        for axis in range(3):
            if counts[level, axis] > 1:
                length = shapes.heights[axis] * 2.0 ** shifts[level, axis]
                shortest = min(shortest, length)
        for axis in range(3):
            length = shapes.heights[axis] * 2.0 ** shifts[level, axis]
            halved = counts[level, axis] > 1 and length < 1.5 * shortest
            shifts[level + 1, axis] = shifts[level, axis] + halved
            counts[level + 1, axis] = (counts[level, axis] + halved) >> halved
        level += 1
    return counts[: level + 1].copy(), shifts[: level + 1].copy()


@inner
def _mark(
    cell: int,
    nodes: NDArray[np.uint8],
    offsets: Integers,
    counts: Integers,
    shifts: Integers,
) -> None:
    """Mark the blocks of all levels that a cell with a surface lies in."""
    k = cell % counts[0, 2]
    rest = cell // counts[0, 2]
    j = rest % counts[0, 1]
    i = rest // counts[0, 1]
    for level in range(1, counts.shape[0]):
        half = 0
        if shifts[level, 0] > shifts[level - 1, 0]:
            half |= (i & 1) << 2
            i >>= 1
        if shifts[level, 1] > shifts[level - 1, 1]:
            half |= (j & 1) << 1
            j >>= 1
        if shifts[level, 2] > shifts[level - 1, 2]:
            half |= k & 1
            k >>= 1
        node = offsets[level] + (i * counts[level, 1] + j) * counts[level, 2] + k
        known = nodes[node]
        nodes[node] = known | 1 << half
        if known:
            break


@kernel
def distances(
    surface: Surface,
    other: Surface,
    shapes: Shapes,
    first: int,
    last: int,
    into: Floats,
    weights: Floats,
) -> None:
    """Distances from the centroids of the elements of some cells to another surface of the box."""
    _distances(surface, other, shapes, first, last, into, weights)


@inner
def _distances(
    surface: Surface,
    other: Surface,
    shapes: Shapes,
    first: int,
    last: int,
    into: Floats,
    weights: Floats,
) -> None:
    own = surface.configurations.reshape(-1)
    others = other.configurations.reshape(-1)
    depth, height, width = other.configurations.shape
    cells, starts = surface.cells, surface.starts
    heights, neighbours, steps = shapes.heights, shapes.neighbours, shapes.steps
    element_starts, sizes = shapes.element_starts, shapes.sizes
    places, fractions = shapes.places, shapes.fractions
    boxes, facet_starts, frames = shapes.boxes, shapes.facet_starts, shapes.frames
    edge_starts, edges = shapes.edge_starts, shapes.edges
    near = np.empty(neighbours.shape[0], np.int64)
    offsets = np.empty((neighbours.shape[0], 3))
    stack = np.empty((8 * DEEPEST, 4), np.int64)
    bounds = np.empty(8 * DEEPEST)
    extents = _extents(other, shapes)
    seed = -1
    for n in range(first, last):
        cell = cells[n]
        start, stop = element_starts[own[cell]], element_starts[own[cell] + 1]
        place = starts[n] - start
        for e in range(start, stop):
            weights[place + e] = sizes[e]
        if others[cell] == own[cell]:  # the same elements
            for e in range(start, stop):
                into[place + e] = 0.0
            continue
        k = cell % width
        j = cell // width % height
        i = cell // (width * height)
        found = 0
        for m in range(neighbours.shape[0]):
            a, b, c = i + neighbours[m, 0], j + neighbours[m, 1], k + neighbours[m, 2]
            if 0 <= a < depth and 0 <= b < height and 0 <= c < width:
                beside = (a * height + b) * width + c
                if facet_starts[others[beside]] != facet_starts[others[beside] + 1]:
                    near[found] = beside
                    for axis in range(3):
                        offsets[found, axis] = steps[m, axis]
                    found += 1
        for e in range(start, stop):
            x, y, z = places[e, 0], places[e, 1], places[e, 2]
            best = np.inf
            for m in range(found):
                closer = _to_cell(
                    boxes,
                    facet_starts,
                    frames,
                    edge_starts,
                    edges,
                    others[near[m]],
                    x - offsets[m, 0],
                    y - offsets[m, 1],
                    z - offsets[m, 2],
                    best,
                )
                if closer < best:
                    best = closer
                    seed = near[m]
            # The closest point beyond the cells that were searched is at least this far.
            margin = np.inf
            if i > 1:
                margin = min(margin, heights[0] * (1 + fractions[e, 0]))
            if i + 2 < depth:
                margin = min(margin, heights[0] * (2 - fractions[e, 0]))
            if j > 1:
                margin = min(margin, heights[1] * (1 + fractions[e, 1]))
            if j + 2 < height:
                margin = min(margin, heights[1] * (2 - fractions[e, 1]))
            if k > 1:
                margin = min(margin, heights[2] * (1 + fractions[e, 2]))
            if k + 2 < width:
                margin = min(margin, heights[2] * (2 - fractions[e, 2]))
            if best > margin * margin:
                best, seed = _descend(
                    other, others, shapes, extents, (i, j, k), e, best, seed, stack, bounds
                )
            into[place + e] = np.sqrt(best)


@inner
def _extents(surface: Surface, shapes: Shapes) -> Floats:
    """The centre of a block relative to its first pixel, and half its size, per level."""
    extents = np.zeros((surface.shifts.shape[0], 6))
    for level in range(surface.shifts.shape[0]):
        for axis in range(3):
            for step in range(3):
                half = shapes.axes[axis, step] * (1 << surface.shifts[level, step]) / 2
                extents[level, axis] += half
                extents[level, 3 + axis] += abs(half)
    return extents


@inlined
def _to_box(boxes: Floats, box: int, x: float, y: float, z: float) -> float:
    """The squared distance from a point to a box, given by its centre and half its size."""
    a = max(abs(x - boxes[box, 0]) - boxes[box, 3], 0.0)
    b = max(abs(y - boxes[box, 1]) - boxes[box, 4], 0.0)
    c = max(abs(z - boxes[box, 2]) - boxes[box, 5], 0.0)
    return a * a + b * b + c * c


@inlined
def _to_cell(
    boxes: Floats,
    facet_starts: Integers,
    frames: Floats,
    edge_starts: Integers,
    edges: Floats,
    configuration: int,
    x: float,
    y: float,
    z: float,
    best: float,
) -> float:
    """The squared distance from a point to the surface in a cell, or `best` if that is less."""
    if _to_box(boxes, configuration, x, y, z) >= best:
        return best
    for f in range(facet_starts[configuration], facet_starts[configuration + 1]):
        above = frames[f, 6] * x + frames[f, 7] * y + frames[f, 8] * z + frames[f, 11]
        above *= above
        if above >= best:
            continue
        u = frames[f, 0] * x + frames[f, 1] * y + frames[f, 2] * z + frames[f, 9]
        v = frames[f, 3] * x + frames[f, 4] * y + frames[f, 5] * z + frames[f, 10]
        beside = np.inf
        for e in range(edge_starts[f], edge_starts[f + 1]):
            a, b = u - edges[e, 0], v - edges[e, 1]
            out = a * edges[e, 3] - b * edges[e, 2]
            if out >= 0:
                along = a * edges[e, 2] + b * edges[e, 3]
                over = min(along, 0.0) + max(along - edges[e, 4], 0.0)
                beside = min(beside, out * out + over * over)
        if beside == np.inf:  # inside of every edge
            beside = 0.0
        best = min(best, above + beside)
    return best


@inlined
def _descend(
    surface: Surface,
    configurations: NDArray[np.uint8],
    shapes: Shapes,
    extents: Floats,
    cell: tuple[int, int, int],
    element: int,
    best: float,
    seed: int,
    stack: Integers,
    bounds: Floats,
) -> tuple[float, int]:
    """The squared distance from an element of a cell to a surface, and the nearest cell.

    Distances of at least `best` are of no interest. `seed` is a cell that may be near.
    """
    axes, places = shapes.axes, shapes.places
    boxes, facet_starts, frames = shapes.boxes, shapes.facet_starts, shapes.frames
    edge_starts, edges = shapes.edge_starts, shapes.edges
    nodes, offsets = surface.nodes, surface.offsets
    shifts, counts = surface.shifts, surface.counts
    height, width = counts[0, 1], counts[0, 2]
    i, j, k = cell
    x, y, z = places[element, 0], places[element, 1], places[element, 2]
    if seed >= 0:
        c = seed % width - k
        b = seed // width % height - j
        a = seed // (width * height) - i
        dx = x - (axes[0, 0] * a + axes[0, 1] * b + axes[0, 2] * c)
        dy = y - (axes[1, 0] * a + axes[1, 1] * b + axes[1, 2] * c)
        dz = z - (axes[2, 0] * a + axes[2, 1] * b + axes[2, 2] * c)
        best = _to_cell(
            boxes,
            facet_starts,
            frames,
            edge_starts,
            edges,
            configurations[seed],
            dx,
            dy,
            dz,
            best,
        )
    waiting = _enter(surface, shapes, cell, element, best, stack, bounds)
    while waiting > 0:
        waiting -= 1
        if bounds[waiting] >= best:
            continue
        level = stack[waiting, 0]
        p, q, r = stack[waiting, 1], stack[waiting, 2], stack[waiting, 3]
        halves = nodes[offsets[level] + (p * counts[level, 1] + q) * counts[level, 2] + r]
        level -= 1
        da = shifts[level + 1, 0] - shifts[level, 0]
        db = shifts[level + 1, 1] - shifts[level, 1]
        dc = shifts[level + 1, 2] - shifts[level, 2]
        p, q, r = p << da, q << db, r << dc
        # The half of each axis that the point is on, or closer to.
        closest = 0
        if da and i >= (p + 1) << shifts[level, 0]:
            closest |= 4
        if db and j >= (q + 1) << shifts[level, 1]:
            closest |= 2
        if dc and k >= (r + 1) << shifts[level, 2]:
            closest |= 1
        for turn in range(8):
            # What is pushed last is visited first; cells are visited at once.
            half = (turn if level == 0 else 7 - turn) ^ closest
            if not halves >> half & 1:
                continue
            u, v, w = p + (half >> 2), q + (half >> 1 & 1), r + (half & 1)
            a = (u << shifts[level, 0]) - i
            b = (v << shifts[level, 1]) - j
            c = (w << shifts[level, 2]) - k
            dx = x - (axes[0, 0] * a + axes[0, 1] * b + axes[0, 2] * c)
            dy = y - (axes[1, 0] * a + axes[1, 1] * b + axes[1, 2] * c)
            dz = z - (axes[2, 0] * a + axes[2, 1] * b + axes[2, 2] * c)
            if level == 0:
                visited = (u * height + v) * width + w
                closer = _to_cell(
                    boxes,
                    facet_starts,
                    frames,
                    edge_starts,
                    edges,
                    configurations[visited],
                    dx,
                    dy,
                    dz,
                    best,
                )
                if closer < best:
                    best = closer
                    seed = visited
            else:
                bound = _to_box(extents, level, dx, dy, dz)
                if bound < best:
                    stack[waiting, 0] = level
                    stack[waiting, 1] = u
                    stack[waiting, 2] = v
                    stack[waiting, 3] = w
                    bounds[waiting] = bound
                    waiting += 1
    return best, seed


@inlined
def _enter(
    surface: Surface,
    shapes: Shapes,
    cell: tuple[int, int, int],
    element: int,
    best: float,
    stack: Integers,
    bounds: Floats,
) -> int:
    """Put the blocks that hold everything closer than `best` on the stack: eight at most."""
    counts, shifts = surface.counts, surface.shifts
    heights, fractions = shapes.heights, shapes.fractions
    top = counts.shape[0] - 1
    reach = np.sqrt(best)
    level = 1
    while level < top:
        wide = True
        for axis in range(3):
            length = heights[axis] * (1 << shifts[level, axis])
            wide &= counts[level, axis] == 1 or length >= 2 * reach
        if wide:
            break
        level += 1
    p_low, p_high = _between(cell[0], fractions[element, 0], reach / heights[0])
    q_low, q_high = _between(cell[1], fractions[element, 1], reach / heights[1])
    r_low, r_high = _between(cell[2], fractions[element, 2], reach / heights[2])
    p_shift, q_shift, r_shift = shifts[level, 0], shifts[level, 1], shifts[level, 2]
    p_last, q_last, r_last = counts[level, 0] - 1, counts[level, 1] - 1, counts[level, 2] - 1
    waiting = 0
    for p in range(p_low >> p_shift, min(p_high >> p_shift, p_last) + 1):
        for q in range(q_low >> q_shift, min(q_high >> q_shift, q_last) + 1):
            for r in range(r_low >> r_shift, min(r_high >> r_shift, r_last) + 1):
                stack[waiting, 0] = level
                stack[waiting, 1] = p
                stack[waiting, 2] = q
                stack[waiting, 3] = r
                bounds[waiting] = 0.0
                waiting += 1
    return waiting


@inlined
def _between(cell: int, fraction: float, radius: float) -> tuple[int, int]:
    """The first and the last cell of one axis that are within a radius of a point in a cell."""
    place = cell + fraction
    return int(max(place - radius, 0.0)), int(min(place + radius, FARTHEST))


@kernel
def centroids(surface: Surface, shapes: Shapes, box: Integers, into: Floats) -> None:
    """The centroids of all elements, in pixels of the image."""
    height, width = surface.configurations.shape[1:]
    own = surface.configurations.reshape(-1)
    for n in range(surface.cells.size):
        cell = surface.cells[n]
        start = shapes.element_starts[own[cell]]
        place = surface.starts[n]
        for e in range(surface.starts[n + 1] - place):
            centre = shapes.fractions[start + e]
            into[place + e, 0] = box[0] - 1 + cell // (width * height) + centre[0]
            into[place + e, 1] = box[1] - 1 + cell // width % height + centre[1]
            into[place + e, 2] = box[2] - 1 + cell % width + centre[2]


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
    """The numbers of many small groups, each in its own box of cells."""
    for n in range(groups.size):
        one = _trace(reference, groups[n], boxes[n], masked, shapes)
        two = _trace(prediction, groups[n], boxes[n], masked, shapes)
        ones, one_weights = np.empty(one.starts[-1]), np.empty(one.starts[-1])
        twos, two_weights = np.empty(two.starts[-1]), np.empty(two.starts[-1])
        if ones.size and twos.size:
            _distances(one, two, shapes, 0, one.cells.size, ones, one_weights)
            _distances(two, one, shapes, 0, two.cells.size, twos, two_weights)
        _summarise(ones, one_weights, twos, two_weights, percentiles, tolerances, into[n])
