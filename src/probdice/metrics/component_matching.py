"""Divide maps into connected components, and match the components of each class.

One-to-one matching maximises the total overlap of the matched pairs. Every pair with a Jaccard
index above one half is matched.

In many-to-one matching, a component is a *part* of a component of the other side if more than half
of its pixels are inside that component. A component is compared with the union of its parts, and
the Jaccard index with this union also applies to each part. Therefore, a lesion that is predicted
in several pieces is found, and several lesions that one predicted component covers are also found.
If the Jaccard index of the one-to-one match is larger, that index is used. Many-to-one matching
therefore never finds fewer components.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probdice.method.assignment import largest_total
from probdice.method.sides import SIDES, Both, other
from probdice.metrics.components import connected

__all__ = ["Components", "Matches", "components_of", "match_components"]


@dataclass(frozen=True, eq=False)
class Components:
    """The components of one side and their measures.

    `numbers` is 0, 1, … at the pixels of the components and −1 elsewhere.
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
    """Divide a map into components, and remove small components.

    The map holds group numbers + 1.
    """
    codes = np.where(np.concatenate([[False], groups])[codes], codes, 0)
    divided, count = connected(np.ascontiguousarray(codes, np.uint32), connectivity)
    places = np.nonzero(divided)
    numbers = divided[places].astype(np.int64)
    volumes = np.bincount(numbers, minlength=count + 1)
    kept = volumes >= max(minimum, 1)
    new_numbers = np.where(kept, np.cumsum(kept) - 1, -1)
    group_of = np.zeros(count + 1, np.int64)
    group_of[numbers] = codes[places].astype(np.int64) - 1
    sums = np.stack([np.bincount(numbers, axis, count + 1) for axis in places], axis=-1)
    centroids = sums / np.maximum(volumes, 1)[:, None]
    return Components(
        new_numbers[divided.astype(np.int64)],
        group_of[kept],
        volumes[kept],
        centroids[kept],
        _nearest(numbers, np.stack(places, axis=-1), centroids)[kept[1:]],
        count - int(kept.sum()),
    )


def _nearest(
    numbers: NDArray[np.int64], places: NDArray[np.int64], centroids: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return, for every component 1, 2, …, the pixel that is nearest to the centroid."""
    squares = ((places - centroids[numbers]) ** 2).sum(axis=1)
    order = np.lexsort((squares, numbers))
    _, first = np.unique(numbers[order], return_index=True)
    nearest: NDArray[np.int64] = places[order[first]]
    return nearest


@dataclass(frozen=True, eq=False)
class Matches:
    """Per side and component, the number of parts and the overlap with its matches.

    `one` is for one-to-one matching and `many` for many-to-one matching. Each row contains the
    number of common pixels and the sum of both sizes.
    """

    parts: Both[NDArray[np.int64]]
    one: Both[NDArray[np.int64]]
    many: Both[NDArray[np.int64]]


def match_components(sides: Both[Components]) -> Matches:
    """Match the components of both sides."""
    rows, columns, common = _overlaps(sides)
    places = Both(rows, columns)
    sizes = sides.map(lambda side: side.volumes.size)
    one = sizes.map(lambda size: np.zeros((size, 2), np.int64))
    shape = sizes.reference, sizes.prediction
    for k in largest_total(rows, columns, common, shape).tolist() if rows.size else ():
        i, j = rows[k], columns[k]
        total = sides.reference.volumes[i] + sides.prediction.volumes[j]
        one.reference[i] = one.prediction[j] = common[k], total
    many = one.map(np.copy)
    parts = []
    for side in SIDES:
        volumes = sides[other(side)].volumes
        inside = 2 * common > volumes[places[other(side)]]
        wholes, own_parts = places[side][inside], places[other(side)][inside]
        unions = np.zeros((sizes[side], 2), np.int64)
        unions[:, 1] = sides[side].volumes
        np.add.at(unions, wholes, np.stack([common[inside], volumes[own_parts]], axis=-1))
        parts.append(np.bincount(wholes, minlength=sizes[side]))
        _keep_larger(many[side], np.arange(sizes[side]), unions)
        _keep_larger(many[other(side)], own_parts, unions[wholes])
    return Matches(Both(*parts), one, many)


def _overlaps(
    sides: Both[Components],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the overlapping pairs of components of the same class, and their common pixels."""
    reference, prediction = sides
    both = (reference.numbers >= 0) & (prediction.numbers >= 0)
    width = max(prediction.volumes.size, 1)
    keys, common = np.unique(
        reference.numbers[both] * width + prediction.numbers[both], return_counts=True
    )
    rows, columns = np.divmod(keys, width)
    same = reference.groups[rows] == prediction.groups[columns]
    return rows[same], columns[same], common[same].astype(np.int64)


def _keep_larger(
    values: NDArray[np.int64], places: NDArray[np.int64], candidates: NDArray[np.int64]
) -> None:
    """Replace each row at these positions if its candidate has a larger Jaccard index."""
    ratios = [
        several[:, 0] / np.maximum(several[:, 1], 1) for several in (values[places], candidates)
    ]
    better = ratios[1] > ratios[0]  # half of Dice, which increases with the Jaccard index
    values[places[better]] = candidates[better]
