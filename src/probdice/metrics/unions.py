"""Unions of regions, given by labels or names, that form derived regions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from probdice.errors import InputError, Option
from probdice.method.label_matching import region_of_empty_label
from probdice.method.matching import GivenGroups, GivenPairs
from probdice.method.overlap import Overlap
from probdice.method.region_labels import Label, listed
from probdice.method.sides import SIDES, Both, Side
from probdice.options.derived_regions import Members, named_members

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison

__all__ = ["Members", "Union", "check_members", "regions_of_label", "unions_of"]


@dataclass(frozen=True)
class Union:
    """The regions of both sides that form a derived region.

    Attributes
    ----------
    name : str
    regions : Both of tuple of int
        Per side, the indices of the member regions in the overlap. Empty regions are excluded.
    """

    name: str
    regions: Both[tuple[int, ...]]

    def labels(self, overlap: Overlap, side: Side) -> tuple[Label, ...]:
        """Return the labels of the members of one side."""
        return tuple(overlap.side(side).label(k) for k in self.regions[side])

    def keys(self, overlap: Overlap, side: Side) -> list[int]:
        """Return the labels (label maps) or channels (probabilities) of the members of one side."""
        keys: list[int] = overlap.side(side).keys[list(self.regions[side])].tolist()
        return keys

    def present(self, overlap: Overlap) -> bool:
        """Return whether a member of either side is present (`Regions.present`)."""
        return any(overlap.side(side).present[k] for side in SIDES for k in self.regions[side])


def unions_of(result: "Comparison", members: Members) -> tuple[Union, ...]:
    """Return the regions of both sides that form each union under the correspondence."""
    return tuple(
        Union(name, Both(*(tuple(sorted(side)) for side in _regions(result, name, labels))))
        for name, labels in named_members(members).items()
    )


def check_members(members: Members, overlaps: Sequence[Overlap]) -> None:
    """Reject a member that is not a region of either side in any of these overlaps."""
    for name, labels in named_members(members).items():
        for label in labels:
            if not any(overlap.side(side).knows(label) for overlap in overlaps for side in SIDES):
                where = "neither side has" if len(overlaps) == 1 else "no case has"
                regions = list(
                    dict.fromkeys(
                        x for o in overlaps for side in SIDES for x in o.side(side).labels
                    )
                )
                raise InputError(
                    f"derived region {name!r} contains {label!r}, which {where}. The regions are "
                    f"{listed(regions, 20)}."
                )


def _regions(result: "Comparison", name: str, labels: Sequence[Label]) -> Both[set[int]]:
    """Return the indices of the member regions of each side."""
    overlap, groups = result.overlap, result.correspondence.groups
    regions: Both[set[int]] = Both(set(), set())
    for label in labels:
        for side, labelled in zip(SIDES, regions_of_label(result, label), strict=True):
            regions[side].update(labelled)
    for group in {int(groups.reference[k]) for k in regions.reference}:
        members = set(groups.regions("reference", group).tolist())
        if not members <= regions.reference:
            inside, outside = (
                listed([overlap.reference.label(k) for k in sorted(part)])
                for part in (members & regions.reference, members - regions.reference)
            )
            raise InputError(
                f"derived region {name!r} contains {inside} but not {outside}, and these regions "
                f"are merged into one group. Add the missing regions, or match the regions without "
                f"merging (",
                Option("merge", "none"),
                ").",
            )
        regions.prediction.update(groups.regions("prediction", group).tolist())
    return regions


def regions_of_label(result: "Comparison", label: Label) -> Both[list[int]]:
    """Return the reference region with a label or, if it is empty, the regions that replace it.

    An empty or missing reference region is replaced by the unmatched prediction regions that have
    the same label, or that the given pairs or groups assign to it. With ``match="labels"``, a label
    or name that only the prediction knows selects the prediction region with this label or name,
    and the reference regions that are matched to it. If the prediction region is empty or missing,
    the unmatched reference region that corresponds to it by name or number is selected.
    """
    overlap, groups, match = result.overlap, result.correspondence.groups, result.options.match
    reference, prediction = overlap.reference, overlap.prediction
    region = reference.find(label)
    if region is not None and groups.reference[region] >= 0:
        return Both([region], [])
    missed: list[int | None] = []
    partners: list[int | None] = []
    if match == "labels" and reference.knows(label):
        partners = [region_of_empty_label(overlap, "reference", label)]
    elif match == "labels":
        region = prediction.find(label)
        if region is not None and 0 <= groups.prediction[region] < groups.matched:
            return Both(groups.regions("reference", groups.prediction[region]).tolist(), [region])
        partners = [region]
        missed = [region_of_empty_label(overlap, "prediction", label)]
    elif isinstance(match, GivenPairs | GivenGroups):
        spellings = dict.fromkeys((label, *reference.name_and_number(label)))
        partners = [
            prediction.find(candidate)
            for spelling in spellings
            for candidate in match.partners(spelling)
        ]
    unmatched = Both(*(set(groups.unmatched(side).tolist()) for side in SIDES))
    return Both(
        [
            candidate
            for candidate in missed
            if candidate is not None and candidate in unmatched.reference
        ],
        [
            candidate
            for candidate in partners
            if candidate is not None and candidate in unmatched.prediction
        ],
    )
