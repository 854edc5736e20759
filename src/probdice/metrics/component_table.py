"""Every connected component of both sides of a comparison, matched one to one within its class.

A class is a group of corresponding regions. Within a class, components are matched with the largest
total overlap, which includes every pair with a Jaccard index above one half.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf, nan
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.data.geometry import Geometry
from probdice.errors import InputError
from probdice.method.assignment import largest_total
from probdice.method.matching import listed
from probdice.method.region_labels import Label
from probdice.method.sides import SIDES, Both, Side
from probdice.metrics.components import as_connectivity, connected, group_map
from probdice.metrics.indices import background_masks

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison

__all__ = ["ComponentCounts", "ComponentRow", "ComponentTable", "component_table"]


@dataclass(frozen=True)
class ComponentRow:
    """One connected component of one side.

    Attributes
    ----------
    side : {"reference", "prediction"}
    label : str
        Its class: the label of the reference, or of the prediction if it is unmatched.
    volume : float
        Its size, in the unit of the table.
    place : tuple of float
        Its centroid: millimetres if the image has a geometry, else array indices.
    dice : float
        The Dice coefficient with its partner; 0 if unmatched.
    jaccard : float
        The Jaccard index with its partner; 0 if unmatched.
    """

    side: Side
    label: str
    volume: float
    place: tuple[float, ...]
    dice: float
    jaccard: float

    def found(self, threshold: float) -> bool:
        """Whether the Jaccard index with its partner reaches a threshold."""
        return self.jaccard >= threshold and self.jaccard > 0


@dataclass(frozen=True)
class ComponentCounts:
    """Detection of the components of one class, or of all classes together.

    Attributes
    ----------
    found : int
        Reference components whose partner reaches the threshold.
    missed : int
        Other reference components.
    false : int
        Prediction components without such a partner.
    segmentation_quality : float
        The mean Jaccard index of the components found; NaN if there are none.
    dice : float
        The mean Dice of all reference components; 0 for an unmatched one.

    Examples
    --------
    >>> from probdice.metrics.component_table import ComponentCounts
    >>> counts = ComponentCounts(2, 1, 1, 0.75, 0.6)
    >>> round(counts.f1, 4), round(counts.panoptic_quality, 4)
    (0.6667, 0.5)
    """

    found: int
    missed: int
    false: int
    segmentation_quality: float
    dice: float

    @property
    def f1(self) -> float:
        """2 found / (2 found + missed + false), the recognition quality; NaN without components."""
        total = 2 * self.found + self.missed + self.false
        return 2 * self.found / total if total else nan

    @property
    def panoptic_quality(self) -> float:
        """`f1` × `segmentation_quality`; 0 if there are components but none was found."""
        return self.f1 * self.segmentation_quality if self.found else self.f1


@dataclass(frozen=True)
class ComponentTable:
    """The components of one comparison.

    Attributes
    ----------
    unit : {"mm³", "pixels"}
        The unit of volumes and of the minimum size.
    connectivity : int
        Number of neighbours of a pixel.
    minimum : float
        The smallest size; smaller components of either side are left out.
    left_out : dict of str to int
        Per side, how many components are smaller.
    rows : tuple of ComponentRow

    Examples
    --------
    >>> import probdice
    >>> from probdice.metrics.component_table import component_table
    >>> reference, prediction = [1, 1, 0, 1, 0, 1, 1, 1], [1, 1, 0, 0, 0, 1, 1, 0]
    >>> table = component_table(probdice.compare(reference, prediction, background=0))
    >>> [(row.side, row.volume, round(row.jaccard, 4)) for row in table.rows[:3]]
    [('reference', 2.0, 1.0), ('reference', 1.0, 0.0), ('reference', 3.0, 0.6667)]
    >>> counts = table.counts(0.5)
    >>> counts.found, counts.missed, counts.false
    (2, 1, 0)
    """

    unit: str
    connectivity: int
    minimum: float
    left_out: dict[Side, int] = field(hash=False)
    rows: tuple[ComponentRow, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes, in the order of their first component."""
        return tuple(dict.fromkeys(row.label for row in self.rows))

    def counts(
        self, threshold: float, label: str | None = None, sizes: tuple[float, float] = (0.0, inf)
    ) -> ComponentCounts:
        """Count the components of a class, or of all, with these sizes."""
        return counted(self.rows, threshold, label, sizes)

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "ComponentTable":
        """Restore a table from the output of `to_dict`."""
        rows = (ComponentRow(**{**row, "place": tuple(row["place"])}) for row in content["rows"])
        return cls(**{**content, "rows": tuple(rows)})


def counted(
    rows: Iterable[ComponentRow],
    threshold: float,
    label: str | None = None,
    sizes: tuple[float, float] = (0.0, inf),
) -> ComponentCounts:
    """Count the components of one or more tables, by the size of each component."""
    low, high = sizes
    chosen = [row for row in rows if label in (None, row.label) and low <= row.volume < high]
    reference = [row for row in chosen if row.side == "reference"]
    found = [row.jaccard for row in reference if row.found(threshold)]
    false = [row for row in chosen if row.side == "prediction" and not row.found(threshold)]
    return ComponentCounts(
        len(found),
        len(reference) - len(found),
        len(false),
        sum(found) / len(found) if found else nan,
        sum(row.dice for row in reference) / len(reference) if reference else nan,
    )


def component_table(
    result: "Comparison",
    *,
    labels: Sequence[Label] = (),
    connectivity: int | None = None,
    minimum: float = 0.0,
) -> ComponentTable:
    """Divide both sides into connected components, and match them within every class.

    Parameters
    ----------
    result : Comparison
        A comparison of two label maps, with its images.
    labels : sequence of int or str, optional
        The classes; all except the background by default.
    connectivity : {4, 8, 6, 18, 26}, optional
        Number of neighbours of a pixel; all neighbours by default.
    minimum : float, optional
        The smallest size of a component: mm³ for a volume with a geometry, else pixels.
    """
    images = result.need_images("components")
    for side in SIDES:
        if not images.side(side).crisp:
            raise InputError(f"components need label maps, but the {side} holds probabilities")
    number = as_connectivity(connectivity, len(images.reference.shape))
    unit = 1.0 if result.pixel_volume is None else result.pixel_volume
    outside = background_masks(result)
    groups = _chosen(result, labels)
    sides = Both(
        *(
            _components(
                group_map(
                    images, side, result.overlap, result.correspondence.groups, outside[side]
                ),
                groups,
                number,
                minimum / unit,
            )
            for side in SIDES
        )
    )
    matches = _matched(sides)
    names = [_class_name(result, group) for group in range(len(result.groups))]
    rows = [
        ComponentRow(
            side,
            names[int(sides[side].groups[k])],
            float(sides[side].volumes[k]) * unit,
            _place(sides[side].centroids[k], images.reference.geometry),
            *matches[side][k],
        )
        for side in SIDES
        for k in range(sides[side].volumes.size)
    ]
    return ComponentTable(
        "pixels" if result.pixel_volume is None else "mm³",
        number,
        minimum,
        {side: sides[side].small for side in SIDES},
        tuple(rows),
    )


@dataclass(frozen=True, eq=False)
class _Components:
    """The components of one side: 0, 1, … at their pixels and -1 elsewhere, and their numbers."""

    numbers: NDArray[np.int64]
    groups: NDArray[np.int64]
    volumes: NDArray[np.int64]
    centroids: NDArray[np.float64]
    small: int


def _components(
    codes: NDArray[np.int32], groups: NDArray[np.bool_], connectivity: int, minimum: float
) -> _Components:
    """Divide a map of group numbers plus 1, and leave out small components."""
    codes = np.where(np.concatenate([[False], groups])[codes], codes, 0)
    divided, count = connected(np.ascontiguousarray(codes, np.uint32), connectivity)
    places = np.nonzero(divided)
    numbers = divided[places].astype(np.int64)
    volumes = np.bincount(numbers, minlength=count + 1)
    kept = volumes >= max(minimum, 1)
    new_numbers = np.where(kept, np.cumsum(kept) - 1, -1)
    group_of = np.zeros(count + 1, np.int64)
    group_of[numbers] = codes[places].astype(np.int64) - 1
    sums = [np.bincount(numbers, axis, count + 1)[kept] for axis in places]
    return _Components(
        new_numbers[divided.astype(np.int64)],
        group_of[kept],
        volumes[kept],
        np.stack(sums, axis=-1) / volumes[kept][:, None],
        count - int(kept.sum()),
    )


def _matched(sides: Both[_Components]) -> Both[list[tuple[float, float]]]:
    """Per side and component, its Dice and Jaccard index with its partner; 0 if unmatched."""
    reference, prediction = sides
    both = (reference.numbers >= 0) & (prediction.numbers >= 0)
    shape = reference.volumes.size, prediction.volumes.size
    keys, common = np.unique(
        reference.numbers[both] * max(shape[1], 1) + prediction.numbers[both], return_counts=True
    )
    rows, columns = np.divmod(keys, max(shape[1], 1))
    same = reference.groups[rows] == prediction.groups[columns]
    rows, columns, common = rows[same], columns[same], common[same].astype(np.int64)
    values = Both(*([(0.0, 0.0)] * size for size in shape))
    for k in largest_total(rows, columns, common, shape).tolist() if rows.size else ():
        i, j, shared = int(rows[k]), int(columns[k]), int(common[k])
        total = int(reference.volumes[i] + prediction.volumes[j])
        values.reference[i] = values.prediction[j] = 2 * shared / total, shared / (total - shared)
    return values


def _chosen(result: "Comparison", labels: Sequence[Label]) -> NDArray[np.bool_]:
    """Which groups are classes with these labels; all without labels."""
    groups = result.correspondence.groups
    if not labels:
        return np.ones(groups.count, np.bool_)
    chosen = np.zeros(groups.count, np.bool_)
    sides = SIDES if result.options.match == "labels" else SIDES[:1]
    for side in sides:
        for label in labels:
            place = result.overlap.side(side).find(label)
            if place is not None and groups.numbers(side)[place] >= 0:
                chosen[groups.numbers(side)[place]] = True
    return chosen


def _class_name(result: "Comparison", group: int) -> str:
    regions = result.groups[group]
    if regions.reference or result.options.match == "labels":
        return listed(regions.reference or regions.prediction, 20)
    return f"{listed(regions.prediction, 20)} (prediction)"


def _place(centroid: NDArray[np.float64], geometry: Geometry | None) -> tuple[float, ...]:
    if geometry is not None:
        centroid = geometry.affine[:-1, :-1] @ centroid + geometry.affine[:-1, -1]
    return tuple(round(float(x), 3) for x in centroid)
