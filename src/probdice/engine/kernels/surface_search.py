"""Exact distances from the elements of one surface to another surface.

Every element first searches the cells around its own. The pyramid of the other surface is searched
only where something may be closer, and only in blocks closer than the closest point so far.
"""

import numpy as np
from numpy.typing import NDArray

from probdice.compiler.jit import inlined, inner, kernel
from probdice.engine.kernels.surface_shapes import Shapes
from probdice.engine.kernels.surfaces import DEEPEST, Surface, halves_of, place_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FARTHEST = 2.0**62  # cells: more than any image has


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
    distances_to(surface, other, shapes, first, last, into, weights)


@inner
def distances_to(
    surface: Surface,
    other: Surface,
    shapes: Shapes,
    first: int,
    last: int,
    into: Floats,
    weights: Floats,
) -> None:
    depth, height, width = other.counts[0, 0], other.counts[0, 1], other.counts[0, 2]
    cells, codes, starts = surface.cells, surface.codes, surface.starts
    heights, neighbours, steps = shapes.heights, shapes.neighbours, shapes.steps
    element_starts, sizes = shapes.element_starts, shapes.sizes
    places, fractions = shapes.places, shapes.fractions
    boxes, facet_starts, frames = shapes.boxes, shapes.facet_starts, shapes.frames
    edge_starts, edges = shapes.edge_starts, shapes.edges
    near = np.empty(neighbours.shape[0], np.int64)
    near_codes = np.empty(neighbours.shape[0], np.uint8)
    offsets = np.empty((neighbours.shape[0], 3))
    stack = np.empty((8 * DEEPEST, 4), np.int64)
    bounds = np.empty(8 * DEEPEST)
    extents = _extents(other, shapes)
    seed = -1
    for n in range(first, last):
        own = codes[n]
        start, stop = element_starts[own], element_starts[own + 1]
        place = starts[n] - start
        for e in range(start, stop):
            weights[place + e] = sizes[e]
        i, j, k = place_of(cells[n], height, width)
        if halves_of(other, 0, i, j, k) == own:  # the same elements
            for e in range(start, stop):
                into[place + e] = 0.0
            continue
        found = 0
        for m in range(neighbours.shape[0]):
            a, b, c = i + neighbours[m, 0], j + neighbours[m, 1], k + neighbours[m, 2]
            if 0 <= a < depth and 0 <= b < height and 0 <= c < width:
                beside = halves_of(other, 0, a, b, c)
                if facet_starts[beside] != facet_starts[beside + 1]:
                    near[found] = (a * height + b) * width + c
                    near_codes[found] = beside
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
                    near_codes[m],
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
                    other, shapes, extents, (i, j, k), e, best, seed, stack, bounds
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
    shifts = surface.shifts
    height, width = surface.counts[0, 1], surface.counts[0, 2]
    i, j, k = cell
    x, y, z = places[element, 0], places[element, 1], places[element, 2]
    if seed >= 0:
        u, v, w = place_of(seed, height, width)
        a, b, c = u - i, v - j, w - k
        dx = x - (axes[0, 0] * a + axes[0, 1] * b + axes[0, 2] * c)
        dy = y - (axes[1, 0] * a + axes[1, 1] * b + axes[1, 2] * c)
        dz = z - (axes[2, 0] * a + axes[2, 1] * b + axes[2, 2] * c)
        best = _to_cell(
            boxes,
            facet_starts,
            frames,
            edge_starts,
            edges,
            halves_of(surface, 0, u, v, w),
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
        halves = halves_of(surface, level, p, q, r)
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
                    halves_of(surface, 0, u, v, w),
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
    for n in range(surface.cells.size):
        i, j, k = place_of(surface.cells[n], surface.counts[0, 1], surface.counts[0, 2])
        start = shapes.element_starts[surface.codes[n]]
        place = surface.starts[n]
        for e in range(surface.starts[n + 1] - place):
            centre = shapes.fractions[start + e]
            into[place + e, 0] = box[0] - 1 + i + centre[0]
            into[place + e, 1] = box[1] - 1 + j + centre[1]
            into[place + e, 2] = box[2] - 1 + k + centre[2]
