"""Surfaces of sets of pixels, in a structure in which nearest points can be found quickly.

Images are treated as 3-D, and a 2-D image has one layer. Cell i along an axis is between pixels
i − 1 and i, so that surfaces are closed at the border of the image. `collect` finds the cells of an
image that contain the surface of any set, and `assemble` stores the cells of one set in a box.

Nearest points are found in the grid of cells. For every block of cells, a pyramid of levels stores
which halves of the block, along each axis, contain a surface. A search visits only blocks that are
closer than the closest point so far. A large box is stored in bricks, which are blocks of one
level. Bricks without a surface take no memory.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from probdice.compiler.jit import inlined, inner, kernel
from probdice.engine.kernels.surface_shapes import Shapes

Bytes = NDArray[np.uint8]
Codes = NDArray[np.int32]
Integers = NDArray[np.int64]

NO_SET = -1  # also beyond the border of the image
EXCLUDED_SET = -2
MAX_LEVELS = 64  # of a pyramid
BRICK = 2**12  # number of cells in a brick


class SurfacePart(NamedTuple):
    """The cells of a box that contain the elements of a surface or of a part of a surface."""

    cells: Integers  # flat indices in the box
    configurations: Bytes
    starts: Integers  # the first element of each cell, and the number of all elements


class Pyramid(NamedTuple):
    """All cells of a box, and blocks of these cells.

    Level 0 has one byte per cell, which contains the configuration of the cell. Every other level
    has one byte per block, with one bit for each combination of halves along the axes. Block (i, j,
    k) of level n starts at cell (i << shifts[n, 0], …). The blocks of level `brick` are the bricks.
    Each brick stores all levels up to `brick`. Higher levels are stored without bricks.
    """

    counts: Integers  # number of blocks along each axis, per level
    shifts: Integers
    brick: int
    slots: Integers  # position of the bytes of each brick; empty bricks share one position
    bricks: Bytes
    within: Integers  # the start of each level in a brick, and the number of bytes in a brick
    nodes: Bytes  # bytes of the levels above the bricks
    offsets: Integers  # the start of each of these levels in `nodes`


class SetSurface(NamedTuple):
    """The surface of a set in a box of cells."""

    part: SurfacePart  # the whole surface
    pyramid: Pyramid


@kernel
def collect(
    codes: Codes,
    sets: Codes,
    first: Integers,
    counts: Integers,
    sizes: Integers,
    shapes: Shapes,
    numbers: Codes,
    cells: Integers,
    configurations: Bytes,
) -> int:
    """Write the cells in a box of pixels that contain the surface of any set. Return their number.

    `sets[codes]` is the set number of each pixel. The box has `counts` cells, from cell `first` of
    an image with `sizes` cells. The pixels of the box start with the pixel before the first cell,
    or at the border of the image. Cells that do not fit in the output are only counted.
    """
    starts = shapes.element_starts
    depth, height, width = codes.shape
    i_low, j_low, k_low = -(first[0] == 0), -(first[1] == 0), -(first[2] == 0)
    blank = np.full(width, sets.size - 1, np.int32)
    mixed = np.ones(width, np.bool_)  # whether a cell may have a surface
    corners = np.empty(8, np.int64)
    count = 0
    for i in range(i_low, i_low + counts[0]):
        for j in range(j_low, j_low + counts[1]):
            a = codes[i, j] if i >= 0 and j >= 0 else blank
            b = codes[i, j + 1] if i >= 0 and j + 1 < height else blank
            c = codes[i + 1, j] if i + 1 < depth and j >= 0 else blank
            d = codes[i + 1, j + 1] if i + 1 < depth and j + 1 < height else blank
            differences = 0
            for k in range(width - 1):
                differs = (a[k] != b[k]) | (a[k] != c[k]) | (a[k] != d[k]) | (a[k] != a[k + 1])
                mixed[k] = differs
                differences += differs
            k = width - 1
            mixed[k] = (a[k] != b[k]) | (a[k] != c[k]) | (a[k] != d[k])
            differences += mixed[k]
            place = (first[0] + i - i_low) * sizes[1] + first[1] + j - j_low
            place = place * sizes[2] + first[2] - k_low
            # Without differences, only the cells at the border of the image may have a surface.
            step = 1 if differences or k_low == 0 else width
            for k in range(k_low, k_low + counts[2], step):
                if 0 <= k < width - 1 and not (mixed[k] | mixed[k + 1]):
                    continue
                visited = _fill_corners(a, b, c, d, k, sets, corners)
                for corner in range(8):
                    number = corners[corner]
                    if number < 0 or visited >> corner & 1:
                        continue
                    configuration = 0
                    for m in range(8):
                        configuration |= (corners[m] == number) << m
                    visited |= configuration
                    if starts[configuration] == starts[configuration + 1]:
                        continue
                    if count < cells.size:
                        numbers[count] = number
                        cells[count] = place + k
                        configurations[count] = configuration
                    count += 1
    return count


@inlined
def _fill_corners(
    a: Codes, b: Codes, c: Codes, d: Codes, k: int, sets: Codes, corners: Integers
) -> int:
    """Write the set numbers of a cell's pixels. Return 255 if a pixel is excluded, otherwise 0."""
    corners[:] = NO_SET
    for after in range(2):
        if 0 <= k + after < a.size:
            corners[4 * after] = sets[a[k + after]]
            corners[4 * after + 1] = sets[b[k + after]]
            corners[4 * after + 2] = sets[c[k + after]]
            corners[4 * after + 3] = sets[d[k + after]]
    for corner in range(8):
        if corners[corner] == EXCLUDED_SET:
            return 255
    return 0


@kernel
def bounds(
    numbers: Codes,
    cells: Integers,
    sizes: Integers,
    low: Integers,
    high: Integers,
    counts: Integers,
) -> None:
    """Write, per set, the number of cells and their smallest and largest index along each axis."""
    for n in range(cells.size):
        number = numbers[n]
        place = place_of(cells[n], sizes[1], sizes[2])
        for axis in range(3):
            low[number, axis] = min(low[number, axis], place[axis])
            high[number, axis] = max(high[number, axis], place[axis])
        counts[number] += 1


@kernel
def arrange(
    numbers: Codes,
    cells: Integers,
    configurations: Bytes,
    places: Integers,
    into: Integers,
    configurations_into: Bytes,
) -> None:
    """Sort cells by set in a stable order.

    `places` contains the position of the first cell of each set in the result, and is overwritten.
    """
    for n in range(cells.size):
        place = places[numbers[n]]
        into[place] = cells[n]
        configurations_into[place] = configurations[n]
        places[numbers[n]] = place + 1


@kernel
def assemble(
    cells: Integers,
    configurations: Bytes,
    sizes: Integers,
    box: Integers,
    shapes: Shapes,
    dense: int,
) -> SetSurface:
    """Return the surface in the given cells of an image.

    `cells` contains flat indices in ascending order. `sizes` contains the number of cells in the
    image along each axis. `box` contains the first cell and the number of cells of the box along
    each axis. A box with more than `dense` cells is stored in bricks.
    """
    moved = np.empty(cells.size, np.int64)
    starts = np.zeros(cells.size + 1, np.int64)
    element_starts = shapes.element_starts
    for n in range(cells.size):
        i, j, k = place_of(cells[n], sizes[1], sizes[2])
        moved[n] = ((i - box[0]) * box[4] + j - box[1]) * box[5] + k - box[2]
        code = configurations[n]
        starts[n + 1] = starts[n] + element_starts[code + 1] - element_starts[code]
    pyramid = _unmarked(moved, box, shapes, dense)
    for n in range(moved.size):
        i, j, k = place_of(moved[n], box[4], box[5])
        pyramid.bricks[_address(pyramid, 0, i, j, k)] = configurations[n]
        _mark(pyramid, i, j, k)
    return SetSurface(SurfacePart(moved, configurations, starts), pyramid)


@kernel
def differing(part: SurfacePart, other: Pyramid, shapes: Shapes) -> tuple[SurfacePart, float]:
    """Return the cells whose configuration differs from that of another surface.

    Also return the total size of the elements in the remaining cells, where distances are 0. If two
    surfaces are similar, most cells do not differ.
    """
    differs = np.empty(part.cells.size, np.bool_)
    count, size = 0, 0.0
    for n in range(part.cells.size):
        code = part.configurations[n]
        i, j, k = place_of(part.cells[n], other.counts[0, 1], other.counts[0, 2])
        differs[n] = halves_of(other, 0, i, j, k) != code
        if differs[n]:
            count += 1
        else:
            for e in range(shapes.element_starts[code], shapes.element_starts[code + 1]):
                size += shapes.sizes[e]
    cells, configurations = np.empty(count, np.int64), np.empty(count, np.uint8)
    starts = np.zeros(count + 1, np.int64)
    m = 0
    for n in range(part.cells.size):
        if differs[n]:
            cells[m], configurations[m] = part.cells[n], part.configurations[n]
            starts[m + 1] = starts[m] + part.starts[n + 1] - part.starts[n]
            m += 1
    return SurfacePart(cells, configurations, starts), size


@inlined
def _product(values: Integers) -> int:
    return values[0] * values[1] * values[2]


@inlined
def place_of(cell: int, height: int, width: int) -> tuple[int, int, int]:
    """Return the three indices of a cell."""
    return cell // (width * height), cell // width % height, cell % width


@inner
def _unmarked(cells: Integers, box: Integers, shapes: Shapes, dense: int) -> Pyramid:
    """Return an empty pyramid with memory for the given cells of a box."""
    counts, shifts = _levels(box, shapes)
    top = counts.shape[0] - 1
    brick = top
    if _product(counts[0]) > dense:
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
    bricks, nodes = np.zeros(used * within[-1], np.uint8), np.zeros(offsets[-1], np.uint8)
    return Pyramid(counts, shifts, brick, slots, bricks, within, nodes, offsets)


@inlined
def _span(counts: Integers, shifts: Integers, brick: int, level: int, axis: int) -> int:
    """Return the number of blocks of a level along one axis within a brick."""
    if counts[brick, axis] == 1:
        return counts[level, axis]
    return 1 << (shifts[brick, axis] - shifts[level, axis])


@inlined
def _address(pyramid: Pyramid, level: int, p: int, q: int, r: int) -> int:
    """Return the position of a block in the storage of the bricks."""
    counts, shifts, brick = pyramid.counts, pyramid.shifts, pyramid.brick
    if pyramid.slots.size == 1:
        return pyramid.within[level] + (p * counts[level, 1] + q) * counts[level, 2] + r
    a = shifts[brick, 0] - shifts[level, 0]
    b = shifts[brick, 1] - shifts[level, 1]
    c = shifts[brick, 2] - shifts[level, 2]
    u, v, w = p >> a, q >> b, r >> c
    start = pyramid.slots[(u * counts[brick, 1] + v) * counts[brick, 2] + w]
    height = _span(counts, shifts, brick, level, 1)
    width = _span(counts, shifts, brick, level, 2)
    inside = ((p - (u << a)) * height + q - (v << b)) * width + r - (w << c)
    return start + pyramid.within[level] + inside


@inlined
def halves_of(pyramid: Pyramid, level: int, p: int, q: int, r: int) -> int:
    """Return the halves of a block that contain a surface, as bits.

    At level 0, return the configuration.
    """
    if level <= pyramid.brick:
        return pyramid.bricks[_address(pyramid, level, p, q, r)]
    counts = pyramid.counts
    return pyramid.nodes[pyramid.offsets[level] + (p * counts[level, 1] + q) * counts[level, 2] + r]


@inner
def _levels(box: Integers, shapes: Shapes) -> tuple[Integers, Integers]:
    """Return the number of blocks along each axis and the logarithms of their sizes, per level.

    From level to level, blocks are joined in pairs only along their shorter axes. Therefore, blocks
    have similar lengths along all axes for any spacing.
    """
    counts = np.empty((MAX_LEVELS, 3), np.int64)
    shifts = np.zeros((MAX_LEVELS, 3), np.int64)
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
def _mark(pyramid: Pyramid, i: int, j: int, k: int) -> None:
    """Mark the blocks of all levels that contain a given cell."""
    counts, shifts = pyramid.counts, pyramid.shifts
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
        halves = halves_of(pyramid, level, i, j, k)
        if level <= pyramid.brick:
            pyramid.bricks[_address(pyramid, level, i, j, k)] = halves | 1 << half
        else:
            node = (i * counts[level, 1] + j) * counts[level, 2] + k
            pyramid.nodes[pyramid.offsets[level] + node] = halves | 1 << half
        if halves:
            break
