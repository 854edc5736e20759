"""Replace the regions of label maps with connected components, and score components.

`instances_of` and `component_scores` require the whole image in memory. The package
connected-components-3d computes the components.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.data.segmentation import Segmentation
from probdice.data.value_checks import examine_labels
from probdice.engine.decode import Soft
from probdice.engine.pair import SegmentationPair
from probdice.errors import InputError
from probdice.method.groups import Groups, counted_groups
from probdice.method.overlap import Overlap
from probdice.method.region_labels import Label
from probdice.method.scoring import key_lists
from probdice.method.sides import SIDES, Both, Side
from probdice.metrics.connectivity import as_connectivity, connected
from probdice.text.formatting import decimal
from probdice.text.table_output import data_frame

if TYPE_CHECKING:
    import pandas

__all__ = [
    "Component",
    "ComponentScores",
    "Instances",
    "component_scores",
    "group_map",
    "instances_of",
]


@dataclass(frozen=True, eq=False, repr=False)
class Instances(Segmentation):
    """A label map of connected components. `origins` contains the original label of each component.

    Components of two segmentations are matched only within corresponding classes. Classes with the
    same label or name correspond. If no labels or names are equal, classes are matched by total
    overlap.

    Examples
    --------
    >>> from probdice import Segmentation
    >>> instances = Segmentation.from_labels([0, 3, 3, 0, 3]).components(background=0)
    >>> instances.array
    array([0, 1, 1, 0, 2], dtype=uint16)
    >>> dict(instances.origins), dict(instances.names)
    ({1: 3, 2: 3}, {1: '3#1', 2: '3#2'})
    """


def instances_of(
    segmentation: Segmentation, *, background: Label | None, connectivity: int | None
) -> Instances:
    """Return the connected components of every label except the background and ignored labels."""
    if not segmentation.crisp:
        raise InputError(
            "components require a label map, found probabilities. To use the most probable region "
            "of "
            "every pixel, compute the label map first."
        )
    if segmentation.geometry is not None and not segmentation.geometry.on_grid:
        raise InputError(
            "components require an image on a grid, found vertices of a surface, whose neighbours "
            "are not stored in the file"
        )
    connectivity = as_connectivity(connectivity, len(segmentation.shape))
    labels = _labels(segmentation)
    unchanged_labels = list(segmentation.ignore)
    if background is not None:
        unchanged_labels.insert(0, _number(segmentation, background))
    components, origins = _divide(labels, unchanged_labels, connectivity)
    reserved_numbers = [
        label for label in unchanged_labels if 1 <= label <= origins.size + len(unchanged_labels)
    ]
    numbers = np.setdiff1d(np.arange(1, origins.size + len(reserved_numbers) + 1), reserved_numbers)
    if reserved_numbers or any(label != 0 for label in unchanged_labels):
        dtype = (
            np.int64 if all(-(2**63) <= label < 2**63 for label in unchanged_labels) else np.uint64
        )
        components = np.concatenate([[0], numbers[: origins.size]]).astype(dtype)[components]
        for label in unchanged_labels:
            components[labels == label] = label
    sources = [segmentation.label(int(origin)) for origin in origins.tolist()]
    counts: Counter[Label] = Counter()
    names = {label: name for label, name in segmentation.names.items() if label in unchanged_labels}
    for number, source in zip(numbers.tolist(), sources, strict=False):
        counts[source] += 1
        names[number] = f"{source}#{counts[source]}"
    return Instances(
        components,
        crisp=True,
        names=names,
        ignore=segmentation.ignore,
        geometry=segmentation.geometry,
        source=segmentation.source,
        origins=dict(zip(numbers.tolist(), sources, strict=False)),
    )


@dataclass(frozen=True)
class Component:
    """The score of one connected component of the reference.

    Attributes
    ----------
    reference : tuple of int or str
        The reference labels of the group that contains the component.
    prediction : tuple of int or str
        The prediction labels of the group that contains the component.
    number : int
        The index of the component in its group, starting from 1; 0 if the group has no reference
        region.
    reference_volume : float
        Number of pixels in the component.
    prediction_volume : float
        Volume of the group's prediction (a number of pixels or a sum of probabilities), counting
        only the pixels that are nearer to this component than to any other component of the group.
        Distances are measured in pixels.
    dice : float
        Dice coefficient of the component and the prediction, computed from the same pixels.
    jaccard : float
        Jaccard index of the component and the prediction, computed from the same pixels.
    faint : bool
        Whether the foreground regions of the group are faint (`Group.faint`). Means over components
        exclude faint groups.
    """

    reference: tuple[Label, ...]
    prediction: tuple[Label, ...]
    number: int
    reference_volume: float
    prediction_volume: float
    dice: float
    jaccard: float
    faint: bool = False


@dataclass(frozen=True, repr=False)
class ComponentScores:
    """The score of every connected component of the reference.

    A Dice coefficient of all pixels depends mainly on large components. In the mean over
    components, every component has the same weight.

    Attributes
    ----------
    components : tuple of Component
        The components, sorted by group and then by their first pixel. An unmatched prediction
        region has one entry with the number 0 and a Dice coefficient of 0.
    mean_dice : float
        Mean Dice coefficient of the components of groups that are not faint; NaN if there are none.
    mean_jaccard : float
        Mean Jaccard index of these components; NaN if there are none.
    per_group : dict
        Mean Dice coefficient of each group, including faint groups. A key consists of the reference
        labels and the prediction labels of a group: ``((1,), (7,))``. For an unmatched region, the
        labels of the other side are an empty tuple.

    Examples
    --------
    >>> import probdice
    >>> reference, prediction = [1, 1, 1, 1, 0, 0, 0, 1], [1, 1, 1, 1, 0, 0, 0, 0]
    >>> result = probdice.compare(reference, prediction, background=0)
    >>> round(result.groups[1].dice, 4)
    0.8889
    >>> scores = result.component_scores()
    >>> [component.dice for component in scores.components], scores.mean_dice
    ([1.0, 0.0], 0.5)
    >>> scores.per_group
    {((1,), (1,)): 0.5}
    """

    components: tuple[Component, ...]

    @cached_property
    def mean_dice(self) -> float:
        """Mean Dice coefficient of the components of groups that are not faint."""
        return _mean([component.dice for component in self.components if not component.faint])

    @cached_property
    def mean_jaccard(self) -> float:
        """Mean Jaccard index of the components of groups that are not faint."""
        return _mean([component.jaccard for component in self.components if not component.faint])

    @cached_property
    def per_group(self) -> dict[tuple[tuple[Label, ...], tuple[Label, ...]], float]:
        """The mean Dice coefficient of every group, by reference and prediction labels."""
        by_group: dict[tuple[tuple[Label, ...], tuple[Label, ...]], list[float]] = {}
        for component in self.components:
            labels = component.reference, component.prediction
            by_group.setdefault(labels, []).append(component.dice)
        return {labels: _mean(values) for labels, values in by_group.items()}

    def to_frame(self) -> "pandas.DataFrame":
        """Return a table with one row per component.

        Examples
        --------
        >>> import probdice
        >>> result = probdice.compare([1, 1, 0, 1], [1, 1, 0, 0], background=0)
        >>> result.component_scores().to_frame()["dice"].tolist()
        [1.0, 0.0]
        """
        columns = [entry.name for entry in fields(Component)]
        rows = [[getattr(component, name) for name in columns] for component in self.components]
        return data_frame(rows, columns)

    def __repr__(self) -> str:
        return (
            f"ComponentScores: {len(self.components)} components, mean Dice "
            f"{decimal(self.mean_dice)}, mean Jaccard {decimal(self.mean_jaccard)}"
        )


def component_scores(
    overlap: Overlap,
    groups: Groups,
    images: SegmentationPair,
    outside: Both[NDArray[np.bool_]],
    *,
    connectivity: int | None,
) -> ComponentScores:
    """Return the score of every connected component of the reference.

    `outside` marks the background regions, which are excluded.
    """
    if not images.reference.crisp:
        raise InputError(
            "component scores require a reference that is a label map, found probabilities. Only "
            "the prediction may contain probabilities."
        )
    connectivity = as_connectivity(connectivity, len(images.reference.shape))
    group_indices = Both(
        *(np.where(outside[side], -1, groups.group_indices(side)) for side in SIDES)
    )
    reference = group_map(images, "reference", overlap, groups, outside.reference)
    is_soft = not images.prediction.crisp
    prediction = None
    if not is_soft:
        prediction = group_map(images, "prediction", overlap, groups, outside.prediction)
    rows = _rows(images) if is_soft else None
    counted = counted_groups(overlap, groups, outside)
    components: list[Component] = []
    for group, box in enumerate(_boxes(reference, prediction, groups.count)):
        members = Both(*(np.flatnonzero(group_indices[side] == group) for side in SIDES))
        if box is None or not (members.reference.size or members.prediction.size):
            continue
        if rows is not None:
            channels = overlap.prediction.keys[members.prediction]
            probabilities = rows[channels].sum(axis=0, dtype=np.float64)
        else:
            assert prediction is not None
            probabilities = (prediction[box] == group + 1).astype(np.float64)
        labels = Both(
            *(tuple(overlap.side(side).label(k) for k in members[side].tolist()) for side in SIDES)
        )
        scored = _score_group(reference[box] == group + 1, probabilities, labels, connectivity)
        components += [replace(component, faint=not counted[group]) for component in scored]
    return ComponentScores(tuple(components))


def _score_group(
    mask: NDArray[np.bool_],
    probabilities: NDArray[np.float64],
    labels: Both[tuple[Label, ...]],
    connectivity: int,
) -> list[Component]:
    """Score the components of one group, for `mask` and `probabilities` within its box."""
    components, count = connected(mask.astype(np.uint8), connectivity)
    if count == 0:
        total = float(probabilities.sum())
        return [_component(labels, 0, 0.0, total, 0.0)] if total else []
    nearest = np.ones_like(components)
    if count > 1:
        from scipy.ndimage import distance_transform_edt

        indices = distance_transform_edt(~mask, return_distances=False, return_indices=True)
        nearest = components[tuple(indices)]
    volumes = np.bincount(components.ravel(), minlength=count + 1)[1:].astype(np.float64)
    prediction_volumes = np.bincount(nearest.ravel(), probabilities.ravel(), count + 1)[1:]
    common = np.bincount(components.ravel(), probabilities.ravel(), count + 1)[1:]
    rows = zip(volumes.tolist(), prediction_volumes.tolist(), common.tolist(), strict=True)
    return [_component(labels, number, *row) for number, row in enumerate(rows, start=1)]


def _component(
    labels: Both[tuple[Label, ...]],
    number: int,
    volume: float,
    prediction_volume: float,
    common: float,
) -> Component:
    total = volume + prediction_volume
    return Component(
        labels.reference,
        labels.prediction,
        number,
        reference_volume=volume,
        prediction_volume=prediction_volume,
        dice=2 * common / total,
        jaccard=common / (total - common),
    )


# -- pixels --------------------------------------------------------------------------------------


def _labels(segmentation: Segmentation) -> NDArray[Any]:
    """Read a label map into memory as an array of integers in C order."""
    array = np.asarray(segmentation.array[(slice(None),) * len(segmentation.array.shape)])
    if array.dtype.kind == "f":
        segmentation.raise_if_invalid(examine_labels(array.reshape(-1)))
        array = array.astype(np.int64)
    elif array.dtype.kind == "b":
        array = array.view(np.uint8)
    # cc3d does not accept read-only arrays, such as memory maps.
    native = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
    return native if native.flags.writeable else native.copy()


def _divide(
    labels: NDArray[Any], unchanged_labels: Sequence[int], connectivity: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the component number of every pixel, and the label of each component.

    Components are numbered from 1. Labels in `unchanged_labels` are not divided, and their pixels
    have the number 0.
    """
    code_map, distinct_labels = labels, None
    if list(unchanged_labels) != [0]:  # cc3d ignores code 0, so labels are coded from 1
        distinct_labels, codes = np.unique(labels, return_inverse=True)
        code_map = (codes.reshape(labels.shape) + 1).astype(np.uint32)
        code_map[
            np.isin(labels, np.array(unchanged_labels, labels.dtype if unchanged_labels else None))
        ] = 0
    components, count = connected(code_map, connectivity)
    origins = np.zeros(count + 1, code_map.dtype)
    origins[components.reshape(-1)] = code_map.reshape(-1)
    if distinct_labels is None:
        return components, origins[1:]
    return components, distinct_labels[origins[1:].astype(np.int64) - 1]


def group_map(
    images: SegmentationPair,
    side: Side,
    overlap: Overlap,
    groups: Groups,
    outside: NDArray[np.bool_],
) -> NDArray[np.int32]:
    """Return the group number plus 1 at every pixel; 0 for the background and outside the mask."""
    background = set(overlap.side(side).keys[outside].tolist())
    lists = key_lists(overlap, groups)[side]
    foreground_keys = [[key for key in keys if key not in background] for keys in lists]
    return images.group_numbers(side, foreground_keys) + np.int32(1)


def _rows(images: SegmentationPair) -> NDArray[Any]:
    """Return the probabilities of the prediction; 0 outside the mask."""
    blocks = images.blocks
    rows = np.zeros((len(images.prediction.regions), *blocks.shape), blocks.dtype)
    for block in blocks.blocks:
        ready = blocks.decode(block)
        side = ready.sides[SIDES.index("prediction")]
        assert isinstance(side, Soft)
        for row, values in zip(rows, side.values, strict=True):
            row[block.box] = block.shaped(values, ready.inside, 0)
    return blocks.image(rows)


def _boxes(
    reference: NDArray[np.int32], prediction: NDArray[np.int32] | None, count: int
) -> list[tuple[slice, ...] | None]:
    """Return, for every group, a box that contains both sides; None for groups without pixels.

    Probabilities may be positive anywhere, so for a soft prediction every box is the whole image.
    """
    if prediction is None:
        return [tuple(slice(0, size) for size in reference.shape)] * count
    from scipy.ndimage import find_objects

    boxes: list[tuple[slice, ...] | None] = []
    side_boxes = (find_objects(codes, count) for codes in (reference, prediction))
    for group_boxes in zip(*side_boxes, strict=True):
        known_boxes = [box for box in group_boxes if box is not None]
        boxes.append(
            tuple(
                slice(min(part.start for part in parts), max(part.stop for part in parts))
                for parts in zip(*known_boxes, strict=True)
            )
            if known_boxes
            else None
        )
    return boxes


# -- options -------------------------------------------------------------------------------------


def _number(segmentation: Segmentation, background: Label) -> int:
    """Return the label of the background, which is given as a label or a name."""
    if isinstance(background, str):
        for label, name in segmentation.names.items():
            if name == background:
                return label
        raise InputError(f"background {background!r}: no label has this name")
    if isinstance(background, bool) or not isinstance(background, int | np.integer):
        raise InputError(f"background must be a label, a name or None, found {background!r}")
    return int(background)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else nan
