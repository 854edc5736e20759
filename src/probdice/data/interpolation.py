"""Compiled loops that read an image at the pixels of another grid.

A `Grid` is a tuple with six items: the matrix, the offset, the shape of the source, the first pixel
of the source box, the shape of the source box, and the shape of the target box. The target pixel at
`index` in the target box has the position ``matrix @ index + offset``, in source pixels. The field
of view ends half a pixel beyond the outermost pixel centres of the source. Between these centres
and the edge of the field of view, values are constant.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.compiler.jit import inner, kernel

__all__ = ["interpolate_labels", "interpolate_rows", "nearest_indices"]

# Linear interpolation moves a position within this distance of a pixel centre to the centre. A
# position at most this far outside the field of view counts as inside. Some formats store affine
# matrices in float32, whose rounding errors reach 1e-5 pixels in large images.
ROUNDING = 1e-4

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Grid = tuple[Floats, Floats, Integers, Integers, Integers, Integers]


@kernel
def nearest_indices(grid: Grid, into: Integers) -> None:
    """Write the index of the source pixel that is nearest to each target pixel.

    The index refers to the flattened source box, in C order. The index is −1 outside the field of
    view. A position halfway between two pixels is assigned to the pixel with the higher index.
    """
    matrix, offset, sizes, starts, lengths, shape = grid
    axes = shape.size
    index, position = np.zeros(axes, np.int64), np.empty(axes)
    for pixel in range(into.size):
        into[pixel] = -1
        if _locate(matrix, offset, sizes, index, position):
            flat_index = 0
            for axis in range(axes):
                nearest = int(np.floor(position[axis] + 0.5 + ROUNDING))
                nearest = min(max(nearest, 0), sizes[axis] - 1)
                flat_index = flat_index * lengths[axis] + nearest - starts[axis]
            into[pixel] = flat_index
        _advance(index, shape)


@kernel
def interpolate_labels(
    codes: NDArray[np.int32], grid: Grid, outside: int, into: NDArray[Any]
) -> None:
    """Linearly interpolate the indicator image of each label into its row of probabilities.

    `into` must contain zeros. `codes` contains the code of each pixel in the source box, in C
    order. A code is the row of a label, or −1 for an invalid value. All rows of a pixel that
    depends on an invalid value become NaN. A pixel outside the field of view gets probability 1 in
    the row `outside`.
    """
    matrix, offset, sizes, starts, lengths, shape = grid
    axes = shape.size
    index, position = np.zeros(axes, np.int64), np.empty(axes)
    corner_indices, weights = np.empty(1 << axes, np.int64), np.empty(1 << axes)
    for pixel in range(into.shape[1]):
        if _locate(matrix, offset, sizes, index, position):
            count = _corners(position, sizes, starts, lengths, corner_indices, weights)
            for corner in range(count):
                code = codes[corner_indices[corner]]
                if code < 0:
                    into[:, pixel] = np.nan
                else:
                    into[code, pixel] += weights[corner]
        else:
            into[outside, pixel] = 1
        _advance(index, shape)


@kernel
def interpolate_rows(
    rows: NDArray[Any], grid: Grid, outside: int, invalid: NDArray[np.bool_], into: NDArray[Any]
) -> None:
    """Linearly interpolate rows of probabilities.

    A pixel that depends on `invalid` source pixels gets the values of the first of these. A pixel
    outside the field of view gets probability 1 in the row `outside`.
    """
    matrix, offset, sizes, starts, lengths, shape = grid
    axes = shape.size
    index, position = np.zeros(axes, np.int64), np.empty(axes)
    corner_indices, weights = np.empty(1 << axes, np.int64), np.empty(1 << axes)
    for pixel in range(into.shape[1]):
        if _locate(matrix, offset, sizes, index, position):
            count = _corners(position, sizes, starts, lengths, corner_indices, weights)
            for corner in range(count):
                if invalid[corner_indices[corner]]:
                    corner_indices[0], weights[0], count = corner_indices[corner], 1.0, 1
                    break
            for row in range(rows.shape[0]):
                total = 0.0
                for corner in range(count):
                    total += weights[corner] * rows[row, corner_indices[corner]]
                into[row, pixel] = total
        else:
            into[:, pixel] = 0
            into[outside, pixel] = 1
        _advance(index, shape)


@inner
def _advance(index: Integers, shape: Integers) -> None:
    """Change `index` to that of the next pixel in C order."""
    for axis in range(shape.size - 1, -1, -1):
        index[axis] += 1
        if index[axis] < shape[axis]:
            break
        index[axis] = 0


@inner
def _locate(
    matrix: Floats, offset: Floats, sizes: Integers, index: Integers, position: Floats
) -> bool:
    """Compute the position of a pixel. Return whether the position is in the field of view."""
    inside = True
    for axis in range(sizes.size):
        value = offset[axis]
        for k in range(sizes.size):
            value += matrix[axis, k] * index[k]
        position[axis] = value
        inside &= value >= -0.5 - ROUNDING and value <= sizes[axis] - 0.5 + ROUNDING
    return inside


@inner
def _corners(
    position: Floats,
    sizes: Integers,
    starts: Integers,
    lengths: Integers,
    corner_indices: Integers,
    weights: Floats,
) -> int:
    """Write the weights of the source pixels around a position, and their indices in the flat box.

    Return the number of these pixels.
    """
    count = 1
    corner_indices[0], weights[0] = 0, 1.0
    for axis in range(sizes.size):
        value = min(max(position[axis], 0.0), sizes[axis] - 1.0)
        low = int(np.floor(value + ROUNDING))
        share = value - low
        axis_index = low - starts[axis]
        for corner in range(count):
            corner_indices[corner] = corner_indices[corner] * lengths[axis] + axis_index
        if share > ROUNDING:
            for corner in range(count):
                corner_indices[count + corner] = corner_indices[corner] + 1
                weights[count + corner] = weights[corner] * share
                weights[corner] *= 1 - share
            count *= 2
    return count
