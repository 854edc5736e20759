"""Derived regions: unions of regions, as used in BraTS and KiTS. Unions may share regions.

A union is compared as a single region. If at least one side is a label map, the overlap of the
union is computed from an overlap table. If both sides contain probabilities, let P and Q be the
sums of the probabilities of the member regions on each side; one pass over the pixels computes
Σ|P − Q| for all unions.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from math import isnan, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from probdice.method.overlap import Floats, Overlap
from probdice.method.pixel_passes import Lists
from probdice.method.region_labels import Label, listed
from probdice.method.sides import SIDES, Both, Side
from probdice.method.similarity import Absolute
from probdice.metrics.unions import Union
from probdice.metrics.volumes import DIFFERENCES, VolumeDifferences, in_millilitres
from probdice.text.formatting import decimal
from probdice.text.table_output import aligned_columns, data_frame

if TYPE_CHECKING:
    import pandas

    from probdice.comparison.result import Comparison

__all__ = ["Derived", "DerivedRegion", "derived_definition", "derived_of"]


@dataclass(frozen=True)
class DerivedRegion(VolumeDifferences):
    """A union of regions and the agreement of both sides on this union.

    Attributes
    ----------
    name : str
    reference : tuple of int or str
        The labels of the reference regions in the union.
    prediction : tuple of int or str
        The labels of the prediction regions in the union.
    dice : float
        Fuzzy Dice coefficient; NaN if the union is empty on both sides, 0 if it is empty on one
        side.
    jaccard : float
        Fuzzy Jaccard index.
    reference_volume : float
        Sum of the probabilities of the reference regions, in pixels.
    prediction_volume : float
        Sum of the probabilities of the prediction regions, in pixels.
    faint : bool
        Whether the union is excluded from means because no member is the most probable region at
        any pixel. A label map has no faint regions.

    Examples
    --------
    >>> import probdice
    >>> result = probdice.compare([0, 1, 2, 2], [0, 0, 1, 2], match="labels")
    >>> result.derived({"whole": (1, 2)})["whole"].dice
    0.8
    """

    name: str
    reference: tuple[Label, ...]
    prediction: tuple[Label, ...]
    dice: float
    jaccard: float
    reference_volume: float
    prediction_volume: float
    faint: bool = False


@dataclass(frozen=True)
class Derived:
    """Derived regions of a comparison, by name.

    Attributes
    ----------
    regions : tuple of DerivedRegion
    pixel_volume : float or None
        Volume of a voxel in mm³, if known.

    Examples
    --------
    >>> import probdice
    >>> result = probdice.compare([0, 1, 2, 2], [0, 0, 1, 2], match="labels")
    >>> derived = result.derived({"whole": (1, 2), "core": 2})
    >>> derived
    Derived regions
       name  reference  prediction    Dice  Jaccard
      whole       1, 2        1, 2  0.8000   0.6667
       core          2           2  0.6667   0.5000
    >>> derived.values()
    {'whole': 0.8, 'core': 0.6666666666666666}
    """

    regions: tuple[DerivedRegion, ...]
    pixel_volume: float | None = None

    def __len__(self) -> int:
        return len(self.regions)

    def __iter__(self) -> Iterator[DerivedRegion]:
        return iter(self.regions)

    def __getitem__(self, name: str) -> DerivedRegion:
        for region in self.regions:
            if region.name == name:
                return region
        raise KeyError(name)

    def values(self, number: str = "dice") -> dict[str, float]:
        """Return one measure of every derived region, by name; NaN for faint regions.

        Parameters
        ----------
        number : str, optional
            Name of the measure, such as "dice", "jaccard", "reference_volume" or
            "volume_difference".

        Examples
        --------
        >>> import probdice
        >>> result = probdice.compare([0, 1, 2, 2], [0, 0, 1, 2], match="labels")
        >>> result.derived({"core": 2}).values("volume_difference")
        {'core': -1.0}
        """
        return {
            region.name: nan if region.faint else getattr(region, number) for region in self.regions
        }

    @property
    def mean_dice(self) -> float:
        """The mean Dice of all derived regions; NaN if there are none.

        Faint regions and regions that are empty on both sides are excluded.
        """
        dice = [value for value in self.values().values() if not isnan(value)]
        return sum(dice) / len(dice) if dice else nan

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return the measures of every region as built-in Python types, by name.

        Examples
        --------
        >>> import probdice
        >>> result = probdice.compare([0, 1, 2, 2], [0, 0, 1, 2], match="labels")
        >>> result.derived({"core": 2}).to_dict()["core"]["prediction"]
        [2]
        """
        return {row["name"]: row | {side: list(row[side]) for side in SIDES} for row in self.rows()}

    @classmethod
    def from_dict(
        cls, content: Mapping[str, Mapping[str, Any]], pixel_volume: float | None
    ) -> "Derived":
        """Restore derived regions from the output of `to_dict`; None becomes NaN.

        Examples
        --------
        >>> import probdice
        >>> derived = probdice.compare([0, 1], [0, 1], match="labels").derived({"one": 1})
        >>> type(derived).from_dict(derived.to_dict(), None) == derived
        True
        """
        return cls(
            tuple(
                DerivedRegion(
                    name,
                    tuple(row["reference"]),
                    tuple(row["prediction"]),
                    **{
                        number: nan if row[number] is None else float(row[number])
                        for number in NUMBERS
                    },
                    faint=bool(row["faint"]),
                )
                for name, row in content.items()
            ),
            pixel_volume,
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per derived region, including volumes in mL if `pixel_volume` is known."""
        rows = []
        for region in self.regions:
            row = {entry.name: getattr(region, entry.name) for entry in fields(region)}
            row |= {name: getattr(region, name) for name in DIFFERENCES}
            if self.pixel_volume is not None:
                row |= {
                    f"{name}_ml": in_millilitres(getattr(region, number), self.pixel_volume)
                    for name, number in VOLUMES.items()
                }
            rows.append(row)
        return rows

    def to_frame(self) -> "pandas.DataFrame":
        """Return the regions as a table with one row per region.

        Examples
        --------
        >>> import probdice
        >>> result = probdice.compare([0, 1, 2, 2], [0, 0, 1, 2], match="labels")
        >>> result.derived({"whole": (1, 2)}).to_frame()["volume_difference"].tolist()
        [-1.0]
        """
        return data_frame(self.rows())

    def __repr__(self) -> str:
        rows = [("name", "reference", "prediction", "Dice", "Jaccard")]
        rows += [
            (
                region.name,
                listed(region.reference),
                listed(region.prediction),
                decimal(region.dice),
                decimal(region.jaccard) + (" faint" if region.faint else ""),
            )
            for region in self.regions
        ]
        return "\n  ".join(["Derived regions", *aligned_columns(rows)])


NUMBERS = ("dice", "jaccard", "reference_volume", "prediction_volume")
VOLUMES = {
    "reference": "reference_volume",
    "prediction": "prediction_volume",
    "difference": "volume_difference",
}


def derived_of(result: "Comparison", unions: Sequence[Union]) -> Derived:
    """Compare unions of regions."""
    overlap = result.overlap
    volumes = Both(
        *(
            np.array([_volume(overlap, union, side) for union in unions], np.float64)
            for side in SIDES
        )
    )
    common = _common(result, unions, volumes)
    total = volumes.reference + volumes.prediction
    with np.errstate(invalid="ignore"):  # the Dice of a union that is empty on both sides is NaN
        dice, jaccard = 2 * common / total, common / (total - common)
    return Derived(
        tuple(
            DerivedRegion(
                union.name,
                union.labels(overlap, "reference"),
                union.labels(overlap, "prediction"),
                float(dice[k]),
                float(jaccard[k]),
                float(volumes.reference[k]),
                float(volumes.prediction[k]),
                faint=bool(total[k] > 0) and not union.present(overlap),
            )
            for k, union in enumerate(unions)
        ),
        result.pixel_volume,
    )


def derived_definition(members: Mapping[str, Sequence[Label]]) -> str:
    """Return the definition of derived regions, for a methods section.

    Examples
    --------
    >>> from probdice.metrics.derived import derived_definition
    >>> derived_definition({"core": (1, 3)}).partition(". ")[0]
    'Derived regions are unions of regions, each compared as a single region: core (1, 3)'
    """
    unions = "; ".join(f"{name} ({listed(labels, 20)})" for name, labels in members.items())
    return (
        f"Derived regions are unions of regions, each compared as a single region: {unions}. "
        f"The probability of a union is the sum over its regions. A union that is empty on both "
        f"sides of a case has no Dice and is excluded from means."
    )


def _volume(overlap: Overlap, union: Union, side: Side) -> float:
    return float(overlap.side(side).volumes[list(union.regions[side])].sum())


def _common(result: "Comparison", unions: Sequence[Union], volumes: Both[Floats]) -> Floats:
    """Return Σ min(P, Q) of every union, in pixels."""
    overlap = result.overlap
    if not (overlap.reference.crisp or overlap.prediction.crisp):
        lists: Both[Lists] = Both(
            *([union.keys(overlap, side) for union in unions] for side in SIDES)
        )
        scores = result.need_images("derived() of probabilities").scores(Absolute(), lists)
        return np.maximum((volumes.reference + volumes.prediction - scores.differences) / 2, 0)
    if not overlap.crisp and overlap.similarity != Absolute():
        overlap = result.need_images("derived() of probabilities").overlap(Absolute())
    return np.array([_from_table(overlap, union) for union in unions], np.float64)


def _from_table(overlap: Overlap, union: Union) -> float:
    """Return Σ min(P, Q) if at least one side is a label map.

    P or Q is then 0 or 1 at every pixel, so the sum over pairs of member regions is exact.
    """
    overlapping = overlap.pairs
    inside = np.isin(overlapping.rows, union.regions.reference) & np.isin(
        overlapping.columns, union.regions.prediction
    )
    return float(overlapping.savings[inside].sum())
