"""The connected components of both sides of a comparison, as a table.

A class is a group of corresponding regions. Components are matched within a class, one to one and
many to one (see `metrics.component_matching`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf, nan
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from probdice.data.geometry import Geometry
from probdice.errors import InputError
from probdice.method.given_matching import GivenGroups, GivenPairs
from probdice.method.region_labels import Label, listed
from probdice.method.sides import SIDES, Both, Side
from probdice.metrics.component_matching import SIZE_TOLERANCE, components_of, match_components
from probdice.metrics.components import group_map
from probdice.metrics.connectivity import as_connectivity
from probdice.metrics.group_shares import background_masks
from probdice.metrics.unions import regions_of_label
from probdice.text.formatting import decimal

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison

__all__ = ["ComponentCounts", "ComponentRow", "ComponentTable", "MatchMode", "component_table"]

SHOWN_THRESHOLD = 0.5  # threshold of the Jaccard index in a printed table
MatchMode = Literal["one", "many"]  # one-to-one or many-to-one


@dataclass(frozen=True)
class ComponentRow:
    """One connected component of one side.

    Attributes
    ----------
    side : {"reference", "prediction"}
    label : str
        The class of the component: the reference labels of its group. If the reference lacks the
        class, the prediction labels are used with ``match="labels"``, and the corresponding
        reference labels in `match` are used with given pairs or groups. In all other cases, the
        label consists of the prediction labels and "(prediction)".
    volume : float
        The size of the component, in the unit of the table.
    place : tuple of float
        The centroid of the component, in millimetres if the image has a geometry, else in array
        coordinates.
    voxel : tuple of int
        The array indices of the voxel of the component that is nearest to the centroid.
    parts : int
        The number of parts. A part is a component of the other side that is more than half inside
        this component.
    dice : float
        The Dice coefficient of the component and its one-to-one match; 0 if there is no match.
    jaccard : float
        The Jaccard index of the component and its one-to-one match; 0 if there is no match.
    dice_many : float
        The Dice coefficient with many-to-one matching.
    jaccard_many : float
        The Jaccard index with many-to-one matching.
    """

    side: Side
    label: str
    volume: float
    place: tuple[float, ...]
    voxel: tuple[int, ...]
    parts: int
    dice: float
    jaccard: float
    dice_many: float
    jaccard_many: float

    def address(self, page: str | None) -> str:
        """Return the link to this component on the HTML page of its case; "" if `page` is None."""
        return "" if page is None else f"{page}#at={'.'.join(map(str, self.voxel))}"

    def agreement(self, reading: MatchMode) -> tuple[float, float]:
        """Return the Dice coefficient and the Jaccard index for one way of matching."""
        one = self.dice, self.jaccard
        return one if reading == "one" else (self.dice_many, self.jaccard_many)

    def found(self, threshold: float, reading: MatchMode = "one") -> bool:
        """Return whether the Jaccard index is positive and reaches a threshold."""
        _, jaccard = self.agreement(reading)
        return jaccard >= threshold and jaccard > 0


@dataclass(frozen=True)
class ComponentCounts:
    """Detection of the components of one class, or of all classes together.

    Attributes
    ----------
    found : int
        Number of reference components whose Jaccard index is positive and reaches the threshold.
    missed : int
        Number of other reference components.
    false : int
        Number of prediction components whose Jaccard index is 0 or below the threshold.
    segmentation_quality : float
        The mean Jaccard index of the components found; NaN if no component was found.
    dice : float
        The mean Dice of all reference components; NaN if there are none. Unmatched components
        count as 0.

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


@dataclass(frozen=True, repr=False)
class ComponentTable:
    """The components of one comparison.

    Attributes
    ----------
    unit : {"mm³", "voxels", "pixels"}
        The unit of volumes and of the minimum size. It is mm³ for 3-D images with a geometry.
    connectivity : int
        Number of neighbours of a pixel.
    minimum : float
        The minimum size. Smaller components are removed from both sides.
    left_out : dict of str to int
        Per side, the number of removed components.
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
    >>> table
    Components (2 neighbours): 3 reference and 2 prediction components
      class 1, Jaccard of at least 0.5: 2 found, 1 missed, 0 false, mean Dice 0.6000
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
        self, threshold: float, label: str | None = None, *, reading: MatchMode = "one"
    ) -> ComponentCounts:
        """Count the found, missed and false components of one class, or of all classes."""
        return count_components(self.rows, threshold, label, reading=reading)

    def __repr__(self) -> str:
        minimum = f", at least {self.minimum:g} {self.unit}" if self.minimum else ""
        sides = [f"{sum(row.side == side for row in self.rows)} {side}" for side in SIDES]
        lines = [
            f"Components ({self.connectivity} neighbours{minimum}): {' and '.join(sides)} "
            f"components"
        ]
        for label in self.labels:
            counts = self.counts(SHOWN_THRESHOLD, label)
            lines.append(
                f"class {label}, Jaccard of at least {SHOWN_THRESHOLD:g}: {counts.found} found, "
                f"{counts.missed} missed, {counts.false} false, mean Dice {decimal(counts.dice)}"
            )
        return "\n  ".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return built-in types for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "ComponentTable":
        """Restore a table from the output of `to_dict`."""
        rows = (
            ComponentRow(**{**row, "place": tuple(row["place"]), "voxel": tuple(row["voxel"])})
            for row in content["rows"]
        )
        return cls(**{**content, "rows": tuple(rows)})


def count_components(
    rows: Iterable[ComponentRow],
    threshold: float,
    label: str | None = None,
    *,
    sizes: tuple[float, float] = (0.0, inf),
    reading: MatchMode = "one",
) -> ComponentCounts:
    """Count the found, missed and false components whose size is within a range.

    The range includes its lower limit and excludes its upper limit, within `SIZE_TOLERANCE`.
    """
    low, high = (limit * (1 - SIZE_TOLERANCE) for limit in sizes)
    selected_rows = [row for row in rows if label in (None, row.label) and low <= row.volume < high]
    reference = [row for row in selected_rows if row.side == "reference"]
    prediction = [row for row in selected_rows if row.side == "prediction"]
    dice = [row.agreement(reading)[0] for row in reference]
    found_jaccard = [
        row.agreement(reading)[1] for row in reference if row.found(threshold, reading)
    ]
    return ComponentCounts(
        len(found_jaccard),
        len(reference) - len(found_jaccard),
        sum(not row.found(threshold, reading) for row in prediction),
        sum(found_jaccard) / len(found_jaccard) if found_jaccard else nan,
        sum(dice) / len(dice) if dice else nan,
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
        The classes to include. By default, all classes except the background are included.
    connectivity : {2, 4, 8, 6, 18, 26}, optional
        Number of neighbours of a pixel. By default, diagonal neighbours are included.
    minimum : float, optional
        Minimum component size in mm³ (in pixels for 2-D images and images without geometry).
    """
    images = result.need_images("components")
    for side in SIDES:
        if not images.side(side).crisp:
            raise InputError(
                f"components require label maps, but the {side} contains probabilities"
            )
    axes = len(images.reference.shape)
    number = as_connectivity(connectivity, axes)
    pixel = 1.0 if result.pixel_volume is None else result.pixel_volume
    outside = background_masks(result)
    groups = _selected_groups(result, labels)
    sides = Both(
        *(
            components_of(
                group_map(
                    images, side, result.overlap, result.correspondence.groups, outside[side]
                ),
                groups,
                number,
                minimum / pixel,
            )
            for side in SIDES
        )
    )
    matches = match_components(sides)
    names = [_class_name(result, group) for group in range(len(result.groups))]
    rows = [
        ComponentRow(
            side,
            names[int(sides[side].groups[k])],
            float(sides[side].volumes[k]) * pixel,
            _place(sides[side].centroids[k], images.reference.geometry),
            tuple(sides[side].voxels[k].tolist()),
            int(matches.parts[side][k]),
            *_dice_and_jaccard(matches.one_to_one[side][k]),
            *_dice_and_jaccard(matches.many_to_one[side][k]),
        )
        for side in SIDES
        for k in range(sides[side].volumes.size)
    ]
    without_geometry = "voxels" if axes == 3 else "pixels"
    return ComponentTable(
        without_geometry if result.pixel_volume is None else "mm³",
        number,
        minimum,
        {side: sides[side].small for side in SIDES},
        tuple(rows),
    )


def _dice_and_jaccard(common_and_total: NDArray[np.int64]) -> tuple[float, float]:
    common, total = common_and_total.tolist()
    return (2 * common / total, common / (total - common)) if common else (0.0, 0.0)


def _selected_groups(result: "Comparison", labels: Sequence[Label]) -> NDArray[np.bool_]:
    """Return which groups contain one of these labels; all groups if no labels are given."""
    groups = result.correspondence.groups
    if not labels:
        return np.ones(groups.count, np.bool_)
    is_selected = np.zeros(groups.count, np.bool_)
    for label in labels:
        for side, regions in zip(SIDES, regions_of_label(result, label), strict=True):
            is_selected[groups.group_indices(side)[regions]] = True
    return is_selected


def _class_name(result: "Comparison", group: int) -> str:
    """Return the reference labels of a class, including labels that are absent from this reference.

    If the reference labels are unknown, return the prediction labels and "(prediction)".
    """
    regions, match = result.groups[group], result.options.match
    if regions.reference or match == "labels":
        return listed(regions.reference or regions.prediction, 20)
    if isinstance(match, GivenPairs | GivenGroups):
        prediction, reference = result.overlap.prediction, result.overlap.reference
        spellings = [x for one in regions.prediction for x in (one, prediction.counterpart(one))]
        labels = dict.fromkeys(label for one in spellings for label in match.references(one))
        if labels:
            names = [None if isinstance(one, str) else reference.counterpart(one) for one in labels]
            return listed([name or one for name, one in zip(names, labels, strict=True)], 20)
    return f"{listed(regions.prediction, 20)} (prediction)"


def _place(centroid: NDArray[np.float64], geometry: Geometry | None) -> tuple[float, ...]:
    if geometry is not None:
        centroid = geometry.affine[:-1, :-1] @ centroid + geometry.affine[:-1, -1]
    return tuple(round(float(x), 3) for x in centroid)
