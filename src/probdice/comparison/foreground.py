"""Measures of the foreground: all groups of a comparison except the background group."""

from dataclasses import dataclass
from functools import cached_property
from math import nan
from typing import TYPE_CHECKING, Self

import numpy as np

from probdice.comparison.result_groups import Group
from probdice.errors import InputError, Option
from probdice.method.background import background_group, foreground_share
from probdice.metrics.region_measures import region_mean

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison

__all__ = ["FOREGROUND_NUMBERS", "Foreground", "check_named"]

# The attributes of a comparison that are stored as JSON if a background was given.
FOREGROUND_NUMBERS = (
    "foreground_dice",
    "pooled_dice",
    "foreground_score",
    "foreground_chance",
    "foreground_chance_error",
    "adjusted_foreground_score",
)


def check_named(result: "Comparison", number: str) -> None:
    """If the comparison has no background, raise an error that names the requested measure."""
    if result.background is None:
        raise InputError(
            f"{number} requires a background, but this comparison has none. Compare with ",
            Option("background", python="background=LABEL", command="--background LABEL"),
            ".",
        )


@dataclass(frozen=True)
class Foreground:
    """The groups of a comparison and the index of the background group, if there is one."""

    all_groups: tuple[Group, ...]
    background: int | None
    pixels: int

    @classmethod
    def of(cls, result: "Comparison") -> Self:
        """Return the groups of a comparison and the index of the background group, if any."""
        background = background_group(result.correspondence.groups, result.background_regions)
        return cls(result.groups, background, result.pixels)

    @classmethod
    def named(cls, result: "Comparison", number: str) -> Self:
        """Call `of`. If no background was given, raise an error that names the measure."""
        check_named(result, number)
        return cls.of(result)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """All groups except the background group."""
        return tuple(group for k, group in enumerate(self.all_groups) if k != self.background)

    @cached_property
    def counted_groups(self) -> list[Group]:
        """The foreground groups that are not faint."""
        return [group for group in self.groups if not group.faint]

    @property
    def dice(self) -> float:
        """Mean Dice of the foreground groups that are not faint; NaN if all of them are faint."""
        return region_mean(self.groups, "dice")

    @property
    def pooled_dice(self) -> float:
        """Pooled Dice, 2 Σ overlap / Σ volumes over foreground groups; NaN if all are faint."""
        if not self.counted_groups:
            return nan
        volumes = sum(group.total_volume for group in self.groups)
        return 2 * sum(group.common_volume for group in self.groups) / volumes

    @property
    def score(self) -> float:
        """Foreground score: Σ foreground overlap / (pixels − background overlap).

        It is NaN if all foreground groups are faint.
        """
        if not self.counted_groups:
            return nan
        common = np.array([group.common_volume for group in self.all_groups])
        return foreground_share(common, self.background, self.pixels)
