"""Inter-rater agreement per region: the Dice of every pair of raters, and the volume per rater."""

from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.method.overlap import Floats
from probdice.method.region_labels import Label
from probdice.method.sides import Both
from probdice.metrics.derived import derived_of
from probdice.metrics.unions import Union
from probdice.metrics.volumes import in_millilitres
from probdice.raters.panel import Panel
from probdice.text.formatting import decimal, millilitres

__all__ = ["COLUMNS", "RegionAgreement", "regions_of"]

COLUMNS = (
    "region", "rater", "other", "dice", "rater_volume", "other_volume", "rater_ml", "other_ml",
    "faint",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class RegionAgreement:
    """The agreement of raters on one common region.

    Attributes
    ----------
    label : int or str
        The name or label that most raters use for the region.
    dice : ndarray
        The fuzzy Dice of every pair, rater × rater. It is 0 if only one of the two raters has the
        region, and NaN if neither has the region. The diagonal is 1 for raters who have the region.
    volumes : ndarray
        The volume of the region per rater, in pixels.
    present : ndarray of bool
        Whether the region is present in each rater: not empty in a label map, and the most probable
        region of at least one pixel in a probability map. Means exclude pairs of raters in which
        the region is present in neither rater.
    pixel_volume : float or None
        The volume of a voxel in mm³, if known.

    Examples
    --------
    >>> import probdice
    >>> region = probdice.agreement([[1, 1, 2, 2], [7, 7, 7, 9]]).regions[0]
    >>> region.label, region.mean_dice, region.volumes.tolist()
    (1, 0.8, [2.0, 3.0])
    """

    label: Label
    dice: Floats
    volumes: Floats
    present: NDArray[np.bool_]
    pixel_volume: float | None = None

    @property
    def rater_count(self) -> int:
        """The number of raters who have the region."""
        return int(np.count_nonzero(self.volumes))

    @property
    def faint(self) -> bool:
        """Whether the region is present in no rater. Means over regions exclude faint regions."""
        return not self.present.any()

    @property
    def counted_pairs(self) -> NDArray[np.bool_]:
        """Whether the region is present in at least one rater of each pair, rater × rater."""
        return np.asarray(self.present[:, None] | self.present)

    @property
    def mean_dice(self) -> float:
        """The mean Dice over all pairs in which the region is present in at least one rater."""
        pairs = self._pairs
        return float(pairs.mean()) if pairs.size else nan

    @property
    def lowest_dice(self) -> float:
        """The lowest Dice over all pairs in which the region is present in at least one rater."""
        pairs = self._pairs
        return float(pairs.min()) if pairs.size else nan

    @property
    def volumes_ml(self) -> Floats:
        """The volume of the region per rater in millilitres; NaN if unknown."""
        return np.array([in_millilitres(volume, self.pixel_volume) for volume in self.volumes])

    @property
    def _pairs(self) -> Floats:
        return np.asarray(self.dice[np.triu(self.counted_pairs, 1)])

    def to_dict(self) -> dict[str, Any]:
        """Return all results as built-in Python types.

        Examples
        --------
        >>> import probdice
        >>> probdice.agreement([[1, 1, 2, 2], [7, 7, 7, 9]]).regions[0].to_dict()["dice"]
        [[1.0, 0.8], [0.8, 1.0]]
        """
        content = {
            "region": self.label,
            "mean_dice": self.mean_dice,
            "lowest_dice": self.lowest_dice,
            "faint": self.faint,
            "dice": self.dice.tolist(),
            "volumes": self.volumes.tolist(),
        }
        if self.pixel_volume is not None:
            content["volumes_ml"] = self.volumes_ml.tolist()
        return content

    def rows(self, names: tuple[str, ...]) -> list[dict[str, Any]]:
        """Return one row per pair of raters, with the columns of `COLUMNS`."""
        first, second = (part.tolist() for part in np.triu_indices(len(names), 1))
        volumes, ml = self.volumes.tolist(), self.volumes_ml.tolist()
        return [
            dict(
                zip(
                    COLUMNS,
                    (self.label, names[i], names[j], float(self.dice[i, j]),
                     volumes[i], volumes[j], ml[i], ml[j], not self.counted_pairs[i, j]),
                    strict=True,
                )
            )
            for i, j in zip(first, second, strict=True)
        ]  # fmt: skip

    @property
    def shown_label(self) -> str:
        """The label, followed by "(faint)" if means over regions exclude the region."""
        return f"{self.label} (faint)" if self.faint else str(self.label)

    def shown_volumes(self) -> list[str]:
        """Return the volume per rater as text, in mL, or in pixels if `pixel_volume` is unknown."""
        if self.pixel_volume is not None:
            return [millilitres(volume, self.pixel_volume) for volume in self.volumes]
        return [f"{volume:,.6g}" for volume in self.volumes]

    def __repr__(self) -> str:
        return (
            f"RegionAgreement({self.label!r}, mean Dice {decimal(self.mean_dice)}, lowest Dice "
            f"{decimal(self.lowest_dice)})"
        )


def regions_of(panel: Panel) -> tuple[RegionAgreement, ...]:
    """Return the agreement on every common region, in the order of `Common.channels`."""
    common, names = panel.common_regions, panel.names
    count = len(common.labels)
    volumes, present = panel.volumes(common), panel.present(common)
    region_indices = {name: panel.region_indices(name, common) for name in names}
    dice = np.full((count, len(names), len(names)), nan)
    for i, name in enumerate(names):
        dice[list(region_indices[name]), i, i] = 1
    for (first, second), comparison in panel.comparisons.items():
        i, j = names.index(first), names.index(second)
        unions = [
            Union(
                str(k),
                Both(*(_one_or_none(region_indices[name].get(k)) for name in (first, second))),
            )
            for k in range(count)
        ]
        dice[:, i, j] = dice[:, j, i] = [
            region.dice for region in derived_of(comparison, unions).regions
        ]
    size = next(iter(panel.comparisons.values())).pixel_volume
    return tuple(
        RegionAgreement(common.labels[k], dice[k], volumes[k], present[k], size)
        for k in common.channels
    )


def _one_or_none(index: int | None) -> tuple[int, ...]:
    return () if index is None else (index,)
