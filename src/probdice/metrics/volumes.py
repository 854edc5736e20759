"""Differences of two volumes, for groups and derived regions."""

from math import nan
from typing import Protocol

__all__ = ["DIFFERENCES", "VolumeDifferences", "in_millilitres"]

DIFFERENCES = ("volume_difference", "relative_volume_difference")  # of `VolumeDifferences`


class _Volumes(Protocol):
    @property
    def reference_volume(self) -> float: ...
    @property
    def prediction_volume(self) -> float: ...


class VolumeDifferences:
    """Mixin that adds the differences between `prediction_volume` and `reference_volume`."""

    @property
    def volume_difference(self: _Volumes) -> float:
        """Volume of the prediction minus volume of the reference, in pixels."""
        return self.prediction_volume - self.reference_volume

    @property
    def relative_volume_difference(self: _Volumes) -> float:
        """The volume difference divided by the reference volume; NaN if the divisor is 0."""
        difference = self.prediction_volume - self.reference_volume
        return difference / self.reference_volume if self.reference_volume else nan


def in_millilitres(pixels: float, pixel_volume: float | None) -> float:
    """Return a volume in millilitres; NaN if the volume of a pixel, in mm³, is unknown."""
    return nan if pixel_volume is None else pixels * pixel_volume / 1000
