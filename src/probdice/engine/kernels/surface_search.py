"""Exact distances from the elements of one surface to another surface.

For every element, the neighbouring cells are searched first. If other cells may contain a closer
point, the pyramid of the other surface is searched. This search visits only blocks that are closer
than the closest point so far.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from probdice.compiler.jit import inlined, inner, kernel
from probdice.engine.kernels.surface_shapes import Shapes
from probdice.engine.kernels.surfaces import MAX_LEVELS, Pyramid, SurfacePart, halves_of, place_of

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Cell = tuple[int, int, int]

CELL_INDEX_LIMIT = 2.0**62  # an index larger than that of any cell


class _Neighbours(NamedTuple):
    """The neighbouring cells that contain elements of the other surface."""

    cells: Integers
    configurations: Bytes
    offsets: Floats  # from the cell to each neighbouring cell


class _Stack(NamedTuple):
    """Blocks of a pyramid that must still be searched."""

    blocks: Integers  # the level and the three indices of each block
    bounds: Floats  # a lower bound of the squared distance from the point to each block


@kernel
def find_distances(
    part: SurfacePart,
    other: Pyramid,
    shapes: Shapes,
    first: int,
    last: int,
    into: Floats,
    weights: Floats,
) -> None:
    """Write the distance from each element's centroid to another surface, and each element's size.

    Both surfaces have the same box. Only the elements in the cells of `part` from `first` up to,
    but not including, `last` are processed.
    """
    most = shapes.neighbours.shape[0]
    near = _Neighbours(np.empty(most, np.int64), np.empty(most, np.uint8), np.empty((most, 3)))
    stack = _Stack(np.empty((8 * MAX_LEVELS, 4), np.int64), np.empty(8 * MAX_LEVELS))
    extents = _extents(other, shapes)
    seed = -1
    for n in range(first, last):
        configuration = part.configurations[n]
        start, stop = shapes.element_starts[configuration], shapes.element_starts[configuration + 1]
        place = part.starts[n] - start
        cell = place_of(part.cells[n], other.counts[0, 1], other.counts[0, 2])
        shared = halves_of(other, 0, cell[0], cell[1], cell[2]) == configuration
        count = 0 if shared else _find_neighbours(other, shapes, cell, near)
        for e in range(start, stop):
            weights[place + e] = shapes.sizes[e]
            best = 0.0 if shared else np.inf
            for m in range(count):
                closer = _to_cell(
                    shapes,
                    near.configurations[m],
                    shapes.centroids[e, 0] - near.offsets[m, 0],
                    shapes.centroids[e, 1] - near.offsets[m, 1],
                    shapes.centroids[e, 2] - near.offsets[m, 2],
                    best,
                )
                if closer < best:
                    best = closer
                    seed = near.cells[m]
            if not shared and best > _reach(other, shapes, cell, e):
                best, seed = _descend(other, shapes, extents, cell, e, best, seed, stack)
            into[place + e] = np.sqrt(best)


@inner
def _extents(pyramid: Pyramid, shapes: Shapes) -> Floats:
    """Return, per level, the centre of a block relative to its first pixel, and half its size."""
    extents = np.zeros((pyramid.shifts.shape[0], 6))
    for level in range(pyramid.shifts.shape[0]):
        for axis in range(3):
            for step in range(3):
                half = shapes.axes[axis, step] * (1 << pyramid.shifts[level, step]) / 2
                extents[level, axis] += half
                extents[level, 3 + axis] += abs(half)
    return extents


@inlined
def _find_neighbours(other: Pyramid, shapes: Shapes, cell: Cell, into: _Neighbours) -> int:
    """Write the neighbouring cells that contain the other surface, and return their number."""
    depth, height, width = other.counts[0, 0], other.counts[0, 1], other.counts[0, 2]
    count = 0
    for m in range(shapes.neighbours.shape[0]):
        i = cell[0] + shapes.neighbours[m, 0]
        j = cell[1] + shapes.neighbours[m, 1]
        k = cell[2] + shapes.neighbours[m, 2]
        if 0 <= i < depth and 0 <= j < height and 0 <= k < width:
            code = halves_of(other, 0, i, j, k)
            if shapes.facet_starts[code] != shapes.facet_starts[code + 1]:
                into.cells[count] = (i * height + j) * width + k
                into.configurations[count] = code
                for axis in range(3):
                    into.offsets[count, axis] = shapes.steps[m, axis]
                count += 1
    return count


@inlined
def _reach(other: Pyramid, shapes: Shapes, cell: Cell, element: int) -> float:
    """Return the squared distance from an element to the region beyond its neighbouring cells."""
    nearest = np.inf
    for axis in range(3):
        fraction, height = shapes.fractions[element, axis], shapes.heights[axis]
        if cell[axis] > 1:
            nearest = min(nearest, height * (1 + fraction))
        if cell[axis] + 2 < other.counts[0, axis]:
            nearest = min(nearest, height * (2 - fraction))
    return nearest * nearest


@inlined
def _to_box(boxes: Floats, box: int, x: float, y: float, z: float) -> float:
    """Return the squared distance from a point to a box with a given centre and half size."""
    a = max(abs(x - boxes[box, 0]) - boxes[box, 3], 0.0)
    b = max(abs(y - boxes[box, 1]) - boxes[box, 4], 0.0)
    c = max(abs(z - boxes[box, 2]) - boxes[box, 5], 0.0)
    return a * a + b * b + c * c


@inlined
def _to_cell(
    shapes: Shapes, configuration: int, x: float, y: float, z: float, best: float
) -> float:
    """Return the squared distance from a point to the surface in a cell, but at most `best`."""
    if _to_box(shapes.boxes, configuration, x, y, z) >= best:
        return best
    frames, edges = shapes.frames, shapes.edges
    for f in range(shapes.facet_starts[configuration], shapes.facet_starts[configuration + 1]):
        above = frames[f, 6] * x + frames[f, 7] * y + frames[f, 8] * z + frames[f, 11]
        above *= above
        if above >= best:
            continue
        u = frames[f, 0] * x + frames[f, 1] * y + frames[f, 2] * z + frames[f, 9]
        v = frames[f, 3] * x + frames[f, 4] * y + frames[f, 5] * z + frames[f, 10]
        beside = np.inf
        for e in range(shapes.edge_starts[f], shapes.edge_starts[f + 1]):
            a, b = u - edges[e, 0], v - edges[e, 1]
            out = a * edges[e, 3] - b * edges[e, 2]
            if out >= 0:
                along = a * edges[e, 2] + b * edges[e, 3]
                over = min(along, 0.0) + max(along - edges[e, 4], 0.0)
                beside = min(beside, out * out + over * over)
        if beside == np.inf:  # the projection of the point is inside the facet
            beside = 0.0
        best = min(best, above + beside)
    return best


@inlined
def _relative(shapes: Shapes, element: int, a: int, b: int, c: int) -> tuple[float, float, float]:
    """Return the centroid of an element relative to a cell that is a, b and c cells away."""
    axes, positions = shapes.axes, shapes.centroids
    return (
        positions[element, 0] - (axes[0, 0] * a + axes[0, 1] * b + axes[0, 2] * c),
        positions[element, 1] - (axes[1, 0] * a + axes[1, 1] * b + axes[1, 2] * c),
        positions[element, 2] - (axes[2, 0] * a + axes[2, 1] * b + axes[2, 2] * c),
    )


@inlined
def _descend(
    other: Pyramid,
    shapes: Shapes,
    extents: Floats,
    cell: Cell,
    element: int,
    best: float,
    seed: int,
    stack: _Stack,
) -> tuple[float, int]:
    """Return the squared distance from an element of a cell to a surface, and the nearest cell.

    Distances of at least `best` are ignored. `seed` is a cell that is probably close to the
    element.
    """
    shifts = other.shifts
    height, width = other.counts[0, 1], other.counts[0, 2]
    if seed >= 0:
        p, q, r = place_of(seed, height, width)
        x, y, z = _relative(shapes, element, p - cell[0], q - cell[1], r - cell[2])
        best = _to_cell(shapes, halves_of(other, 0, p, q, r), x, y, z, best)
    waiting = _enter(other, shapes, cell, element, best, stack)
    while waiting > 0:
        waiting -= 1
        if stack.bounds[waiting] >= best:
            continue
        level = stack.blocks[waiting, 0]
        p, q, r = stack.blocks[waiting, 1], stack.blocks[waiting, 2], stack.blocks[waiting, 3]
        halves = halves_of(other, level, p, q, r)
        level -= 1
        p <<= shifts[level + 1, 0] - shifts[level, 0]
        q <<= shifts[level + 1, 1] - shifts[level, 1]
        r <<= shifts[level + 1, 2] - shifts[level, 2]
        closest = _closest_half(shifts, level, p, q, r, cell)
        for turn in range(8):
            # The block that is pushed last is visited first. Cells are visited immediately.
            half = (turn if level == 0 else 7 - turn) ^ closest
            if not halves >> half & 1:
                continue
            u, v, w = p + (half >> 2), q + (half >> 1 & 1), r + (half & 1)
            x, y, z = _relative(
                shapes,
                element,
                (u << shifts[level, 0]) - cell[0],
                (v << shifts[level, 1]) - cell[1],
                (w << shifts[level, 2]) - cell[2],
            )
            if level == 0:
                closer = _to_cell(shapes, halves_of(other, 0, u, v, w), x, y, z, best)
                if closer < best:
                    best = closer
                    seed = (u * height + v) * width + w
            else:
                bound = _to_box(extents, level, x, y, z)
                if bound < best:
                    waiting = _push(stack, waiting, level, u, v, w, bound)
    return best, seed


@inlined
def _closest_half(shifts: Integers, level: int, p: int, q: int, r: int, cell: Cell) -> int:
    """Return, per axis, the half of a block that contains a cell or is closer to the cell."""
    closest = 0
    if shifts[level + 1, 0] > shifts[level, 0] and cell[0] >= (p + 1) << shifts[level, 0]:
        closest |= 4
    if shifts[level + 1, 1] > shifts[level, 1] and cell[1] >= (q + 1) << shifts[level, 1]:
        closest |= 2
    if shifts[level + 1, 2] > shifts[level, 2] and cell[2] >= (r + 1) << shifts[level, 2]:
        closest |= 1
    return closest


@inlined
def _enter(
    other: Pyramid, shapes: Shapes, cell: Cell, element: int, best: float, stack: _Stack
) -> int:
    """Push blocks that together contain all points closer than √best, and return their number.

    The number is at most eight.
    """
    counts, shifts = other.counts, other.shifts
    heights, fractions = shapes.heights, shapes.fractions
    radius = np.sqrt(best)
    level = 1
    while level < counts.shape[0] - 1:
        wide = True
        for axis in range(3):
            length = heights[axis] * (1 << shifts[level, axis])
            wide &= counts[level, axis] == 1 or length >= 2 * radius
        if wide:
            break
        level += 1
    p_low, p_high = _between(cell[0], fractions[element, 0], radius / heights[0])
    q_low, q_high = _between(cell[1], fractions[element, 1], radius / heights[1])
    r_low, r_high = _between(cell[2], fractions[element, 2], radius / heights[2])
    p_shift, q_shift, r_shift = shifts[level, 0], shifts[level, 1], shifts[level, 2]
    p_last, q_last, r_last = counts[level, 0] - 1, counts[level, 1] - 1, counts[level, 2] - 1
    waiting = 0
    for p in range(p_low >> p_shift, min(p_high >> p_shift, p_last) + 1):
        for q in range(q_low >> q_shift, min(q_high >> q_shift, q_last) + 1):
            for r in range(r_low >> r_shift, min(r_high >> r_shift, r_last) + 1):
                waiting = _push(stack, waiting, level, p, q, r, 0.0)
    return waiting


@inlined
def _between(cell: int, fraction: float, radius: float) -> tuple[int, int]:
    """Return the first and the last cell along an axis that lie within a radius of a point."""
    place = cell + fraction
    return int(max(place - radius, 0.0)), int(min(place + radius, CELL_INDEX_LIMIT))


@inlined
def _push(stack: _Stack, waiting: int, level: int, p: int, q: int, r: int, bound: float) -> int:
    """Add a block to the stack, and return the number of blocks on the stack."""
    block = stack.blocks[waiting]
    block[0], block[1], block[2], block[3] = level, p, q, r
    stack.bounds[waiting] = bound
    return waiting + 1


@kernel
def centroids(part: SurfacePart, shapes: Shapes, box: Integers, into: Floats) -> None:
    """Write the centroids of all elements, in pixel coordinates of the image."""
    for n in range(part.cells.size):
        cell = place_of(part.cells[n], box[4], box[5])
        start = shapes.element_starts[part.configurations[n]]
        place = part.starts[n]
        for e in range(part.starts[n + 1] - place):
            for axis in range(3):
                into[place + e, axis] = (
                    box[axis] - 1 + cell[axis] + shapes.fractions[start + e, axis]
                )
