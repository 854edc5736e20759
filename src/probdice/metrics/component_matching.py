"""Divide maps into connected components, and match the components of each class.

One-to-one matching maximises the total overlap of the matched pairs. Every pair with a Jaccard
index above one half is matched.

In many-to-one matching, a component is a *part* of a component of the other side if more than half
of its pixels are inside that component. A component is compared with the union of its parts, and
the Jaccard index with this union also applies to each part. Therefore, a lesion can be found even
if it is predicted in several pieces, or if one predicted component covers several lesions. If the
Jaccard index of the one-to-one match is larger, that index is used. Many-to-one matching therefore
finds at least as many components as one-to-one matching.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probdice.method.assignment import largest_total
from probdice.method.sides import SIDES, Both, other
from probdice.metrics.connectivity import connected

__all__ = ["SIZE_TOLERANCE", "Components", "Matches", "components_of", "match_components"]

# Sizes in mm³ have rounding errors, so a size that is smaller than a limit by this share reaches
# the limit.
SIZE_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Components:
    """The components of one side and their measures.

    `numbers` contains the number of the component (0, 1, …) at every pixel, and −1 outside
    components.
    """

    numbers: NDArray[np.int64]
    groups: NDArray[np.int64]
    volumes: NDArray[np.int64]
    centroids: NDArray[np.float64]
    voxels: NDArray[np.int64]
    small: int


def components_of(
    codes: NDArray[np.int32], groups: NDArray[np.bool_], connectivity: int, minimum: float
) -> Components:
    """Divide a map into components, and remove components of fewer than `minimum` pixels.

    Components that are smaller than `minimum` by less than `SIZE_TOLERANCE` are not removed.

    `codes` contains the group number plus 1 at every pixel, and 0 outside all groups. `groups`
    marks the groups to include.
    """
    codes = np.where(np.concatenate([[False], groups])[codes], codes, 0)
    component_map, count = connected(np.ascontiguousarray(codes, np.uint32), connectivity)
    indices = np.nonzero(component_map)
    numbers = component_map[indices].astype(np.int64)
    volumes = np.bincount(numbers, minlength=count + 1)
    is_large = volumes >= max(minimum * (1 - SIZE_TOLERANCE), 1)
    new_numbers = np.where(is_large, np.cumsum(is_large) - 1, -1)
    group_of = np.zeros(count + 1, np.int64)
    group_of[numbers] = codes[indices].astype(np.int64) - 1
    sums = np.stack([np.bincount(numbers, axis, count + 1) for axis in indices], axis=-1)
    centroids = sums / np.maximum(volumes, 1)[:, None]
    return Components(
        new_numbers[component_map.astype(np.int64)],
        group_of[is_large],
        volumes[is_large],
        centroids[is_large],
        _nearest(numbers, np.stack(indices, axis=-1), centroids)[is_large[1:]],
        count - int(is_large.sum()),
    )


def _nearest(
    numbers: NDArray[np.int64], indices: NDArray[np.int64], centroids: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return, for every component 1, 2, …, the pixel that is nearest to its centroid."""
    squares = ((indices - centroids[numbers]) ** 2).sum(axis=1)
    order = np.lexsort((squares, numbers))
    _, first = np.unique(numbers[order], return_index=True)
    nearest: NDArray[np.int64] = indices[order[first]]
    return nearest


@dataclass(frozen=True, eq=False)
class Matches:
    """Per side and component, the number of parts and the overlap with the matched components.

    A row of `one_to_one` contains the number of pixels that the component and its match share, and
    the sum of their sizes. A row of `many_to_one` contains the same two numbers for the pair with
    the largest Jaccard index among three pairs:

    - the component and its match;
    - the component and the union of its parts;
    - the component that contains it as a part, and the union of that component's parts.

    Both numbers are 0 for an unmatched component.
    """

    parts: Both[NDArray[np.int64]]
    one_to_one: Both[NDArray[np.int64]]
    many_to_one: Both[NDArray[np.int64]]


def match_components(sides: Both[Components]) -> Matches:
    """Match the components of both sides."""
    rows, columns, common = _overlaps(sides)
    indices = Both(rows, columns)
    sizes = sides.map(lambda side: side.volumes.size)
    one_to_one = sizes.map(lambda size: np.zeros((size, 2), np.int64))
    shape = sizes.reference, sizes.prediction
    for k in largest_total(rows, columns, common, shape).tolist() if rows.size else ():
        i, j = rows[k], columns[k]
        total = sides.reference.volumes[i] + sides.prediction.volumes[j]
        one_to_one.reference[i] = one_to_one.prediction[j] = common[k], total
    many_to_one = one_to_one.map(np.copy)
    parts = []
    for side in SIDES:
        volumes = sides[other(side)].volumes
        inside = 2 * common > volumes[indices[other(side)]]
        wholes, own_parts = indices[side][inside], indices[other(side)][inside]
        unions = np.zeros((sizes[side], 2), np.int64)
        unions[:, 1] = sides[side].volumes
        np.add.at(unions, wholes, np.stack([common[inside], volumes[own_parts]], axis=-1))
        parts.append(np.bincount(wholes, minlength=sizes[side]))
        _keep_larger(many_to_one[side], np.arange(sizes[side]), unions)
        _keep_larger(many_to_one[other(side)], own_parts, unions[wholes])
    return Matches(Both(*parts), one_to_one, many_to_one)


def _overlaps(
    sides: Both[Components],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the overlapping pairs of components of the same class, and each pair's overlap."""
    reference, prediction = sides
    in_both = (reference.numbers >= 0) & (prediction.numbers >= 0)
    width = max(prediction.volumes.size, 1)
    keys, common = np.unique(
        reference.numbers[in_both] * width + prediction.numbers[in_both], return_counts=True
    )
    rows, columns = np.divmod(keys, width)
    same_class = reference.groups[rows] == prediction.groups[columns]
    return rows[same_class], columns[same_class], common[same_class].astype(np.int64)


def _keep_larger(
    values: NDArray[np.int64], indices: NDArray[np.int64], candidates: NDArray[np.int64]
) -> None:
    """Replace each row of `values` at `indices` if its candidate has a larger Jaccard index."""
    ratios = [
        common_and_total[:, 0] / np.maximum(common_and_total[:, 1], 1)
        for common_and_total in (values[indices], candidates)
    ]
    # A ratio is half of the Dice coefficient, which increases with the Jaccard index.
    better = ratios[1] > ratios[0]
    values[indices[better]] = candidates[better]
