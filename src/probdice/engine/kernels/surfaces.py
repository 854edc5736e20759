"""Surfaces of sets of pixels, stored so that nearest points are found quickly.

An image is an array of codes with three axes; one of two axes is an image of one layer. The set of
a group is where the code is the group's number, and `OUTSIDE` marks pixels that are left out. A
surface is traced in a box of cells; cell i of an axis lies between the pixels i − 1 and i, so that
the surface is closed at the border of the image.

Nearest points are found in the grid of cells itself. A pyramid above it stores for every block of
cells which of its halves, along each axis, have a surface, and a search descends only into blocks
that are closer than the closest point so far. A large box is stored in bricks, and bricks without
a surface take no memory.
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
DEEPEST = 64  # levels of a pyramid: more than any image has
BRICK = 2**12  # cells in a brick of a large box


class Surface(NamedTuple):
    """A surface in a box of cells, and its pyramid.

    Level 0 of the pyramid has one byte per cell, its configuration. Every other level has one byte
    per block, with one bit per half along each axis. Block (i, j, k) of level n starts at cell
    (i << shifts[n, 0], …). The blocks of level `brick` are the bricks: each stores all levels up
    to its own, and levels above are stored as they are.
    """

    cells: Integers  # flat indices of the cells that have elements
    codes: NDArray[np.uint8]  # their configurations
    starts: Integers  # of their elements, and the number of all
    counts: Integers  # blocks along each axis, per level
    shifts: Integers
    brick: int
    slots: Integers  # of each brick, the place of its bytes; empty bricks share one place
    bricks: NDArray[np.uint8]
    within: Integers  # where each level starts in a brick, and the bytes of a brick
    nodes: NDArray[np.uint8]  # levels above the bricks
    offsets: Integers  # where each of them starts


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
    return traced(codes, group, box, masked, shapes)


@inner
def traced(codes: Codes, group: int, box: Integers, masked: bool, shapes: Shapes) -> Surface:
    surface = _empty(box, shapes, box[3] * box[4] * box[5], np.empty(0, np.int64))
    flat = surface.bricks[: box[3] * box[4] * box[5]]
    _configure(codes, group, box, masked, flat.reshape((box[3], box[4], box[5])))
    elements = _element_counts(shapes)
    found = 0
    for k in range(np.uint64(0), np.uint64(flat.size)):
        found += elements[flat[k]] > 0
    cells = np.empty(found, np.int64)
    configurations = np.empty(found, np.uint8)
    n = 0
    for k in range(flat.size):
        if elements[flat[k]] > 0:
            cells[n] = k
            configurations[n] = flat[k]
            n += 1
    return _filled(surface, cells, configurations, shapes)


@kernel
def assemble(
    cells: Integers,
    configurations: NDArray[np.uint8],
    sizes: Integers,
    box: Integers,
    shapes: Shapes,
    dense: int,
) -> Surface:
    """The surface of some cells of an image, given by their flat indices in ascending order.

    `sizes` are the numbers of cells of the image along each axis. A box of more than `dense` cells
    is stored in bricks.
    """
    return assembled(cells, configurations, sizes, box, shapes, dense)


@inner
def assembled(
    cells: Integers,
    configurations: NDArray[np.uint8],
    sizes: Integers,
    box: Integers,
    shapes: Shapes,
    dense: int,
) -> Surface:
    moved = np.empty(cells.size, np.int64)
    for n in range(cells.size):
        i, j, k = place_of(cells[n], sizes[1], sizes[2])
        moved[n] = ((i - box[0]) * box[4] + j - box[1]) * box[5] + k - box[2]
    surface = _empty(box, shapes, dense, moved)
    for n in range(moved.size):
        i, j, k = place_of(moved[n], box[4], box[5])
        surface.bricks[_address(surface, 0, i, j, k)] = configurations[n]
    return _filled(surface, moved, configurations, shapes)


@inner
def _element_counts(shapes: Shapes) -> Integers:
    """The number of elements of every configuration. (np.diff takes seconds to compile.)"""
    starts = shapes.element_starts
    counts = np.empty(starts.size - 1, np.int64)
    for k in range(counts.size):
        counts[k] = starts[k + 1] - starts[k]
    return counts


@inlined
def _product(values: Integers) -> int:
    return values[0] * values[1] * values[2]


@inlined
def place_of(cell: int, height: int, width: int) -> tuple[int, int, int]:
    """The three indices of a cell."""
    return cell // (width * height), cell // width % height, cell % width


@inner
def _empty(box: Integers, shapes: Shapes, dense: int, cells: Integers) -> Surface:
    """A surface without elements, with memory for these cells of a box, or for all of them."""
    counts, shifts = _levels(box, shapes)
    top = counts.shape[0] - 1
    brick = top
    if box[3] * box[4] * box[5] > dense:
        brick = 0
        while brick < top and 1 << (shifts[brick, 0] + shifts[brick, 1] + shifts[brick, 2]) < BRICK:
            brick += 1
    within = np.zeros(brick + 2, np.int64)
    for level in range(brick + 1):
        size = 1
        for axis in range(3):
            size *= _span(counts, shifts, brick, level, axis)
        within[level + 1] = within[level] + size
    slots = np.zeros(_product(counts[brick]), np.int64)
    used = 1
    if brick < top:
        for n in range(cells.size):
            i, j, k = place_of(cells[n], box[4], box[5])
            u, v, w = i >> shifts[brick, 0], j >> shifts[brick, 1], k >> shifts[brick, 2]
            slot = (u * counts[brick, 1] + v) * counts[brick, 2] + w
            if slots[slot] == 0:
                slots[slot] = used * within[-1]
                used += 1
    offsets = np.zeros(top + 2, np.int64)
    for level in range(brick + 1, top + 1):
        offsets[level + 1] = offsets[level] + _product(counts[level])
    return Surface(
        np.empty(0, np.int64),
        np.empty(0, np.uint8),
        np.zeros(1, np.int64),
        counts,
        shifts,
        brick,
        slots,
        np.zeros(used * within[-1], np.uint8),
        within,
        np.zeros(offsets[-1], np.uint8),
        offsets,
    )


@inlined
def _span(counts: Integers, shifts: Integers, brick: int, level: int, axis: int) -> int:
    """Blocks of a level along one axis of a brick."""
    if counts[brick, axis] == 1:
        return counts[level, axis]
    return 1 << (shifts[brick, axis] - shifts[level, axis])


@inlined
def _address(surface: Surface, level: int, p: int, q: int, r: int) -> int:
    """Where the bricks store a block of a level up to their own."""
    counts, shifts, brick = surface.counts, surface.shifts, surface.brick
    if surface.slots.size == 1:
        return surface.within[level] + (p * counts[level, 1] + q) * counts[level, 2] + r
    a = shifts[brick, 0] - shifts[level, 0]
    b = shifts[brick, 1] - shifts[level, 1]
    c = shifts[brick, 2] - shifts[level, 2]
    u, v, w = p >> a, q >> b, r >> c
    start = surface.slots[(u * counts[brick, 1] + v) * counts[brick, 2] + w]
    height = _span(counts, shifts, brick, level, 1)
    width = _span(counts, shifts, brick, level, 2)
    inside = ((p - (u << a)) * height + q - (v << b)) * width + r - (w << c)
    return start + surface.within[level] + inside


@inlined
def halves_of(surface: Surface, level: int, p: int, q: int, r: int) -> int:
    """The halves of a block that have a surface, as bits."""
    if level <= surface.brick:
        return surface.bricks[_address(surface, level, p, q, r)]
    counts = surface.counts
    return surface.nodes[surface.offsets[level] + (p * counts[level, 1] + q) * counts[level, 2] + r]


@inner
def _filled(
    surface: Surface, cells: Integers, configurations: NDArray[np.uint8], shapes: Shapes
) -> Surface:
    """The surface with its cells, whose configurations it has, and the levels above them."""
    starts = np.empty(cells.size + 1, np.int64)
    starts[0] = 0
    for n in range(cells.size):
        code = configurations[n]
        elements = shapes.element_starts[code + 1] - shapes.element_starts[code]
        starts[n + 1] = starts[n] + elements
        _mark(surface, cells[n])
    return Surface(
        cells,
        configurations,
        starts,
        surface.counts,
        surface.shifts,
        surface.brick,
        surface.slots,
        surface.bricks,
        surface.within,
        surface.nodes,
        surface.offsets,
    )


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
    while max(counts[level, 0], counts[level, 1], counts[level, 2]) > 1:
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
def _mark(surface: Surface, cell: int) -> None:
    """Mark the blocks of all levels that a cell with a surface lies in."""
    counts, shifts = surface.counts, surface.shifts
    i, j, k = place_of(cell, counts[0, 1], counts[0, 2])
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
        known = halves_of(surface, level, i, j, k)
        if level <= surface.brick:
            surface.bricks[_address(surface, level, i, j, k)] = known | 1 << half
        else:
            node = (i * counts[level, 1] + j) * counts[level, 2] + k
            surface.nodes[surface.offsets[level] + node] = known | 1 << half
        if known:
            break


@kernel
def collect(
    codes: Codes,
    first: Integers,
    sizes: Integers,
    masked: bool,
    shapes: Shapes,
    numbers: NDArray[np.int32],
    cells: Integers,
    configurations: NDArray[np.uint8],
) -> int:
    """The cells with a surface of every group in a part of an image, and how many there are.

    `codes` has one layer more than cells along every axis, and `first` is the first cell of the
    image, which has `sizes` cells. Cells beyond the length of the output are only counted.
    """
    elements = _element_counts(shapes)
    corners = np.empty(8, np.int64)
    found = 0
    for i in range(codes.shape[0] - 1):
        for j in range(codes.shape[1] - 1):
            a, b, c, d = codes[i, j], codes[i, j + 1], codes[i + 1, j], codes[i + 1, j + 1]
            start = ((first[0] + i) * sizes[1] + first[1] + j) * sizes[2] + first[2]
            for k in range(codes.shape[2] - 1):
                code = a[k]
                same = (code == b[k]) & (code == c[k]) & (code == d[k]) & (code == a[k + 1])
                if same & (code == b[k + 1]) & (code == c[k + 1]) & (code == d[k + 1]):
                    continue
                corners[0], corners[1], corners[2], corners[3] = a[k], b[k], c[k], d[k]
                corners[4], corners[5] = a[k + 1], b[k + 1]
                corners[6], corners[7] = c[k + 1], d[k + 1]
                outside = 0
                for m in range(8):
                    outside += corners[m] == OUTSIDE
                if masked and outside:
                    continue
                for corner in range(8):
                    group = corners[corner]
                    configuration = 0
                    for m in range(8):
                        configuration |= (corners[m] == group) << m
                    # Every group once, at its first corner.
                    again = configuration & ((1 << corner) - 1)
                    if group < 0 or again or elements[configuration] == 0:
                        continue
                    if found < cells.size:
                        numbers[found] = group
                        cells[found] = start + k
                        configurations[found] = configuration
                    found += 1
    return found


@kernel
def cell_bounds(
    numbers: NDArray[np.int32], cells: Integers, sizes: Integers, into: Integers
) -> None:
    """Widen the boxes of all groups by their cells: smallest and largest index along each axis."""
    for n in range(cells.size):
        box = into[numbers[n]]
        i, j, k = place_of(cells[n], sizes[1], sizes[2])
        box[0], box[1], box[2] = min(box[0], i), min(box[1], j), min(box[2], k)
        box[3], box[4], box[5] = max(box[3], i), max(box[4], j), max(box[5], k)
