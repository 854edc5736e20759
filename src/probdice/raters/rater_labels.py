"""The labels by which the regions and the backgrounds of all raters correspond.

A comparison of two raters does not know the other raters. With ``match="labels"``, names are used
only if every rater has names, so the correspondence is chosen here, once for all raters.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from probdice.data.segmentation import Segmentation
from probdice.engine.several import Content
from probdice.errors import InputError, Option
from probdice.method.background import check_background, named_background
from probdice.method.overlap import Regions
from probdice.method.region_labels import Label, free_numbers, listed
from probdice.method.sides import Both

__all__ = ["RaterLabels", "RaterMatch"]

RaterMatch = Literal["overlap", "labels"]


@dataclass(frozen=True, eq=False)
class RaterLabels:
    """The numbers and names of the raters' regions, and the background.

    Attributes
    ----------
    regions : mapping of str to Regions
        The regions of each rater. Their volumes are not known.
    match : {"overlap", "labels"}
        How regions are matched.
    background : int, str or None
        The label or name of the background of all raters.
    """

    regions: Mapping[str, Regions]
    match: RaterMatch
    background: Label | None

    @classmethod
    def of(
        cls,
        sides: Mapping[str, Segmentation],
        contents: Mapping[str, Content],
        match: RaterMatch,
        background: Label | None,
    ) -> "RaterLabels":
        """Collect the labels of all raters. Reject labels that cannot be compared.

        A background name is rejected if no region has it. A rater who has only names is rejected if
        regions correspond by number.
        """
        regions = {name: _regions_of(side, contents[name]) for name, side in sides.items()}
        if background is not None:
            check_background(Both(background, background), regions.values())
        labels = cls(regions, match, background)
        for name, rater_regions in () if labels.uses_names else regions.items():
            if not (rater_regions.crisp or rater_regions.numbers or rater_regions.unlabelled):
                raise labels.without_number(name, rater_regions.label(0))
        return labels

    @cached_property
    def by_name(self) -> bool:
        """Whether equal names correspond, because every rater has names; else equal numbers do.

        This applies only if equal labels correspond.
        """
        return all(regions.indices_by_name for regions in self.regions.values())

    @property
    def uses_names(self) -> bool:
        """Whether the raters are compared with their names."""
        return self.match == "overlap" or self.by_name

    def without_number(self, name: str, label: Label) -> InputError:
        """Return the error for a rater's region that has a name but no number to match it by."""
        reason = "its name is not unique" if self.by_name else "another rater has no names"
        return InputError(
            f"{name}: region {label!r} has a name but no integer label, and {reason}, so this "
            f"region cannot be matched with ",
            Option("match", "labels"),
            "; use ",
            Option("match", "overlap"),
        )

    def compared(self, side: Segmentation) -> Segmentation:
        """Return a rater, or a mean of raters, without its names if equal numbers correspond.

        A channel that has only a name gets an unused number. Otherwise, it would be numbered by its
        index.
        """
        if self.uses_names or not side.names:
            return side
        unused_numbers = self._unused_numbers(side)
        labels = tuple(
            next(unused_numbers) if label is None and channel in side.names else label
            for channel, label in enumerate(side.labels)
        )
        return replace(side, names={}, labels=labels)

    @cached_property
    def background_keys(self) -> dict[str, int | None]:
        """The label or channel of each rater's background; None if the rater does not have it.

        If the background is given by name, raters without names have the background at the number
        of this name in the segmentations of the other raters. If it is given by number, raters who
        have only names have it at the name of this number.
        """
        if self.background is None:
            return dict.fromkeys(self.regions)
        return {name: self._background_key(name, self.background) for name in self.regions}

    def label_of(self, side: Segmentation, key: int | None) -> Label:
        """Return the label of a region of a segmentation that `compared` returned.

        If the key is None, no region has the returned label.
        """
        if key is None:
            unused_number = next(self._unused_numbers(side))
            return str(unused_number) if side.names else unused_number
        number = key if side.crisp else side.labels[key]
        return side.regions[key] if number is None else number

    def _background_key(self, name: str, label: Label) -> int | None:
        regions = self.regions[name]
        own_label = label if regions.knows(label) else self._counterpart(name, label)
        place = None if own_label is None else regions.find(own_label)
        return None if place is None else int(regions.keys[place])

    def _counterpart(self, name: str, label: Label) -> Label | None:
        """Return the number of a name, or the name of a number, in the other raters' regions.

        Return None if names (for a name) or numbers apply to this rater, who lacks such a region.
        """
        regions = self.regions[name]
        if isinstance(label, str):
            kind, other_kind = "name", "number"
            applies = bool(regions.names) and self.uses_names
        else:
            kind, other_kind = "number", "name"
            applies = bool(regions.crisp or regions.numbers or regions.unlabelled)
        if applies:
            return None
        counterparts = {rater_regions.counterpart(label) for rater_regions in self.regions.values()}
        candidates = sorted(str(counterpart) for counterpart in counterparts - {None})
        if len(candidates) == 1:
            return next(counterpart for counterpart in counterparts if counterpart is not None)
        others = f"different {other_kind}s ({listed(candidates)})"
        if not candidates:
            others = f"no {other_kind}s"
        raise InputError(
            named_background(Both(label, label)),
            f": no region of {name} ({listed(regions.labels)}) has this {kind}, and the other "
            f"raters' regions with this {kind} have {others}. Use the {other_kind} of the "
            f"background.",
        )

    def _unused_numbers(self, side: Segmentation) -> Iterator[int]:
        """Return an iterator over numbers that no region of this side or of any rater has."""
        numbers = {
            number
            for regions in self.regions.values()
            for number in (*regions.keys.tolist(), *regions.numbers.values(), *regions.names)
        }
        own_numbers = {label for label in side.labels if label is not None}
        return free_numbers(numbers | own_numbers | set(range(len(side.labels))))


def _regions_of(side: Segmentation, content: Content) -> Regions:
    """Return the regions of a segmentation, without their volumes."""
    numbers = {channel: label for channel, label in enumerate(side.labels) if label is not None}
    keys = np.sort(content.keys)
    return Regions(keys, np.ones(keys.size), side.crisp, side.names, numbers=numbers)
