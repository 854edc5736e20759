"""Pixels of a comparison to look at: every n-th of a box, read in the slabs of the comparison.

What is held is the chosen pixels alone, whatever the size of the images and wherever they are.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.blocks import Groups, Pair
from probdice.result import Comparison
from probdice.segmentation import Segmentation
from probdice.slabs import Crisp, Slab
from probdice.solution import SIDES
from probdice.tally import Side

__all__ = ["View", "every_nth", "largest", "look", "plane_through", "worst_place"]

CHUNK = 2**16  # pixels whose regions are sorted at once
NEIGHBOURHOOD = 8  # the worst place is that of a box of this part of the image along each axis


@dataclass(frozen=True, eq=False)
class View:
    """Chosen pixels of both sides.

    Attributes
    ----------
    ranges : tuple of range
        The chosen indices along each axis of the image.
    sides : dict of side to ndarray
        Probabilities with the regions along the first axis, or for a label map the index of each
        pixel's region (−1 outside Ω); regions as in the `…_labels` of the comparison.
    f : ndarray of float32
        Similarity after correspondence; NaN outside Ω.
    """

    ranges: tuple[range, ...]
    sides: dict[Side, NDArray[Any]]
    f: NDArray[np.float32]

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Which of the pixels are in Ω."""
        return ~np.isnan(self.f)

    def crisp(self, side: Side) -> bool:
        """Whether a side is a label map."""
        return self.sides[side].dtype.kind == "i"

    def place(self, index: tuple[int, ...]) -> tuple[int, ...]:
        """Index in the image of a chosen pixel."""
        return tuple(chosen[k] for chosen, k in zip(self.ranges, index, strict=True))


def look(comparison: Comparison, ranges: tuple[range, ...]) -> View:
    """The pixels of a comparison at the given indices along each axis.

    Examples
    --------
    >>> import probdice
    >>> from probdice.pictures.views import look
    >>> result = probdice.compare([[1, 1, 1], [2, 2, 2]], [[1, 1, 2], [2, 2, 2]])
    >>> look(result, (range(2), range(0, 3, 2))).f
    array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    problem, solution = comparison._worked("a picture of the pixels")
    reader = problem.pair.reader
    chosen = [ranges[axis] for axis in reader.order]
    shape = tuple(len(indices) for indices in chosen)
    inside = np.zeros(prod(shape), np.bool_)
    keys = {side: list(problem.regions[side].keys) for side in SIDES}
    values: dict[Side, NDArray[Any]] = {
        side: np.full(inside.shape, -1, np.int32)
        if problem.pair.side(side).crisp
        else np.zeros((len(keys[side]), *inside.shape), reader.dtype)
        for side in SIDES
    }
    for slab in reader.slabs:
        here, there = _chosen(slab, reader.shape, chosen)
        if not here.size:
            continue
        portion = reader.read(slab)
        if portion.inside is not None:
            among = np.searchsorted(portion.inside, here)
            among[among == portion.inside.size] = 0
            found = portion.inside[among] == here if portion.inside.size else among < 0
            here, there = among[found], there[found]
        inside[there] = True
        for side, part in zip(SIDES, portion.sides, strict=True):
            if isinstance(part, Crisp):
                index = {key: k for k, key in enumerate(keys[side])}
                codes = [index.get(int(label), -1) for label in part.labels]
                values[side][there] = np.array(codes, np.int32)[part.codes[here]]
            else:
                for row, key in zip(values[side], keys[side], strict=True):
                    row[there] = part.rows[key, part.start + here]
    back = np.argsort(reader.order)
    for side in SIDES:
        values[side] = _image(values[side], shape, back)
    whole = _image(inside, shape, back)
    groups: dict[Side, Groups] = {
        side: [list(group.side(side)) for group in solution.groups] for side in SIDES
    }
    pair = Pair(
        _segmentation(values["reference"]),
        _segmentation(values["prediction"]),
        mask=None if whole.all() else whole,
        workers=problem.pair.workers,
    )
    return View(ranges, values, pair.map(problem.similarity, groups))


def every_nth(
    shape: tuple[int, ...], most: int, box: tuple[range, ...] | None = None
) -> tuple[range, ...]:
    """Indices of at most about `most` pixels, spread evenly: every n-th along the longest axes.

    Examples
    --------
    >>> from probdice.pictures.views import every_nth
    >>> every_nth((512, 512, 30), 2**21)
    (range(0, 512, 2), range(0, 512, 2), range(0, 30))
    """
    found = list(box or (range(n) for n in shape))
    while prod(len(indices) for indices in found) > most:
        axis = max(range(len(found)), key=lambda k: len(found[k]))
        indices = found[axis]
        if len(indices) == 1:
            break
        found[axis] = range(indices.start, indices.stop, indices.step + 1)
    return tuple(found)


def plane_through(place: tuple[int, ...], shape: tuple[int, ...], *axes: int) -> tuple[range, ...]:
    """Indices of the plane along some axes through a pixel."""
    return tuple(
        range(n) if axis in axes else range(place[axis], place[axis] + 1)
        for axis, n in enumerate(shape)
    )


def worst_place(view: View) -> tuple[int, ...]:
    """Index, among the chosen pixels, of the centre of the box where f is lowest.

    A box, since a single pixel of f = 0 is to be found almost anywhere. Where f is 1 all over it
    is the middle.
    """
    from scipy.ndimage import uniform_filter

    loss = np.where(view.inside, 1 - view.f, 0).astype(np.float32)
    if not loss.any() or not loss.ndim:
        return tuple(n // 2 for n in loss.shape)
    sizes = [2 * (n // NEIGHBOURHOOD // 2) + 1 for n in loss.shape]
    smooth = uniform_filter(loss, sizes, mode="constant")
    smooth[~view.inside] = -1
    return tuple(int(k) for k in np.unravel_index(np.argmax(smooth), loss.shape))


def largest(
    view: View, side: Side, most: int
) -> tuple[NDArray[np.int32], NDArray[np.floating[Any]]]:
    """The `most` largest regions of each pixel, as index and probability, largest first.

    Of equal ones the first comes first. A label map has one region a pixel.
    """
    values = view.sides[side]
    if view.crisp(side):
        return values[None], (values[None] >= 0).astype(np.float32)
    rows = values.reshape(values.shape[0], -1)
    most = min(most, rows.shape[0])
    indices = np.empty((most, rows.shape[1]), np.int32)
    kept = np.empty((most, rows.shape[1]), rows.dtype)
    for start in range(0, rows.shape[1], CHUNK):
        part = np.ascontiguousarray(rows[:, start : start + CHUNK].T)
        order = np.argsort(-part, axis=1, kind="stable")[:, :most]
        indices[:, start : start + CHUNK] = order.T
        kept[:, start : start + CHUNK] = np.take_along_axis(part, order, axis=1).T
    shape = (most, *values.shape[1:])
    return indices.reshape(shape), kept.reshape(shape)


def _chosen(
    slab: Slab, shape: tuple[int, ...], chosen: list[range]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which pixels of a slab are chosen, and where each stands among the chosen ones."""
    if not shape:
        return np.zeros(1, np.int64), np.zeros(1, np.int64)
    here, there, sizes = [], [], []
    for part, n, indices in zip(slab.box, shape, chosen, strict=True):
        start, stop, _ = part.indices(n)
        first = -((indices.start - start) // indices.step) if indices.start < start else 0
        last = min(len(indices), -((indices.start - stop) // indices.step))
        places = np.arange(first, max(last, first))
        there.append(places)
        here.append(indices.start + places * indices.step - start)
        sizes.append(stop - start)
    if any(places.size == 0 for places in there):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    counts = tuple(len(indices) for indices in chosen)
    return (
        np.ravel_multi_index(np.ix_(*here), tuple(sizes)).reshape(-1),
        np.ravel_multi_index(np.ix_(*there), counts).reshape(-1),
    )


def _image(flat: NDArray[Any], shape: tuple[int, ...], back: NDArray[np.int64]) -> NDArray[Any]:
    """Values along the last axis, in the order of traversal, as an image."""
    first = flat.ndim - 1
    shaped = flat.reshape((*flat.shape[:-1], *shape))
    return shaped.transpose((*range(first), *(first + back))).copy(order="C")


def _segmentation(values: NDArray[Any]) -> Segmentation:
    if values.dtype.kind == "i":
        return Segmentation.from_labels(values)
    return Segmentation.from_probabilities(values)
