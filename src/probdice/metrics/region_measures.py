"""Measures of one region, for tables and rankings of an evaluation."""

from collections.abc import Iterable, Sequence
from math import nan
from typing import TYPE_CHECKING

from probdice.method.sides import SIDES
from probdice.metrics.boundary_measures import boundary_rows, derived_boundary_rows
from probdice.metrics.registry import REGION_NUMBERS
from probdice.metrics.unions import regions_of_label

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison
    from probdice.comparison.result_groups import Group

__all__ = ["region_labels", "region_mean", "region_value"]


def region_value(comparison: "Comparison", measure: str, region: str) -> float:
    """Return a measure of a derived region, or of the group that contains a region.

    Parameters
    ----------
    comparison : Comparison
        The comparison. If the measure is a boundary distance, the boundaries must have been
        computed.
    measure : str
        A name in `REGION_NUMBERS` or `boundary_names`.
    region : str
        The name of a derived region, or the label or name of a region. The value of a merged region
        is the value of its group.

    Returns
    -------
    float
        The value; NaN if neither side has the region, if its group is faint, or if the measure was
        not computed. If regions are matched by labels or by a given correspondence, a region that
        only the prediction has counts as missing from the reference: its Dice is 0, and its
        distance is infinite or the penalty distance. With any other matching, the value of this
        region is NaN.

    Examples
    --------
    >>> import probdice
    >>> from probdice.metrics.region_measures import region_value
    >>> result = probdice.compare([1, 1, 2, 2], [1, 1, 1, 3], match="labels")
    >>> [region_value(result, "dice", region) for region in "1234"]
    [0.8, 0.0, 0.0, nan]
    """
    derived_regions = comparison.requested_derived()
    names = (
        []
        if derived_regions is None
        else [derived_region.name for derived_region in derived_regions]
    )
    if derived_regions is not None and region in names:
        if derived_regions[region].faint:
            return nan
        if measure in REGION_NUMBERS:
            return REGION_NUMBERS[measure].compute(derived_regions[region])
        return derived_boundary_rows(comparison)[names.index(region)].get(measure, nan)
    group_index = _place(comparison, region)
    if group_index is None or comparison.groups[group_index].faint:
        return nan
    if measure in REGION_NUMBERS:
        return REGION_NUMBERS[measure].compute(comparison.groups[group_index])
    return boundary_rows(comparison)[group_index].get(measure, nan)


def region_mean(groups: Iterable["Group"], measure: str) -> float:
    """Return the mean of one measure in `REGION_NUMBERS` over the groups that are not faint.

    Returns
    -------
    float
        The mean; NaN if all groups are faint.

    Examples
    --------
    >>> import probdice
    >>> from probdice.metrics.region_measures import region_mean
    >>> result = probdice.compare([0, 1, 1, 2], [0, 1, 2, 2], background=0)
    >>> region_mean(result.foreground, "jaccard")  # of the regions 1 and 2
    0.5
    """
    compute = REGION_NUMBERS[measure].compute
    values = [compute(group) for group in groups if not group.faint]
    return sum(values) / len(values) if values else nan


def region_labels(comparisons: Sequence["Comparison"]) -> set[str]:
    """Return the labels of the reference regions and the names of the derived regions of all cases.

    Examples
    --------
    >>> import probdice
    >>> from probdice.metrics.region_measures import region_labels
    >>> sorted(region_labels([probdice.compare([1, 1, 2, 2], [1, 1, 1, 3])]))
    ['1', '2']
    """
    derived_names = {
        name for comparison in comparisons[:1] for name, _ in comparison.options.derived
    }
    return derived_names | {
        str(label) for comparison in comparisons for label in comparison.reference_labels
    }


def _place(comparison: "Comparison", region: str) -> int | None:
    """Return the index of the group that contains a region; None if no group contains it."""
    groups = comparison.correspondence.groups
    for side, regions in zip(SIDES, regions_of_label(comparison, region), strict=True):
        for index in regions:
            return int(groups.group_indices(side)[index])
    return None
