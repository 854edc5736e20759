"""Inter-rater agreement: every pair of raters, and each rater with the mean of the others."""

import json
from dataclasses import dataclass
from functools import cached_property
from math import isnan, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from probdice.comparison.result import Comparison
from probdice.engine.pair import SegmentationPair
from probdice.errors import Note
from probdice.files.atomic_files import null_for_nan
from probdice.method.overlap import Floats
from probdice.method.sides import SIDES, Side
from probdice.raters.fused_array import mean_of
from probdice.raters.panel import Panel
from probdice.raters.region_agreement import COLUMNS, RegionAgreement, regions_of
from probdice.text.csv_tables import as_csv
from probdice.text.formatting import decimal
from probdice.text.table_output import data_frame

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["FORMAT_VERSION", "AgainstOthers", "Agreement"]

FORMAT_VERSION = 1  # of to_dict and to_json
MAX_PRINTED_REGIONS = 20


@dataclass(frozen=True)
class AgainstOthers:
    """The result of comparing one rater with the mean of all other raters.

    Attributes
    ----------
    name : str
    score : float
        The score between the rater and the mean of the other raters.
    adjusted_score : float
        The adjusted score between the rater and the mean of the other raters.
    explained : float
        The share of the rater's variance that the mean of the others explains.
    foreground_dice : float
        The foreground Dice between the rater and the mean of the other raters; NaN if no background
        is given.
    adjusted_foreground_score : float
        The adjusted foreground score; NaN if no background is given.
    """

    name: str
    score: float
    adjusted_score: float
    explained: float
    foreground_dice: float = nan
    adjusted_foreground_score: float = nan


@dataclass(frozen=True, eq=False, repr=False)
class Agreement:
    """Inter-rater agreement, the result of `probdice.agreement`.

    Attributes
    ----------
    names : tuple of str
        The raters, in the given order.
    score : ndarray
        The score of every pair, rater × rater; 1 on the diagonal.
    adjusted_score : ndarray
        The adjusted score of every pair, rater × rater; 1 on the diagonal.
    explained : ndarray
        The share of the variance of the row's rater that the column's rater explains.
    others : tuple of AgainstOthers
        Each rater compared with the mean of all others. A method would reach similar values if it
        agreed with the raters as well as another rater does. With two raters, each is compared with
        the other.
    pixels : int
        The number of compared pixels.
    regions : tuple of RegionAgreement
        Dice and volumes per common region.
    foreground_dice : ndarray or None
        The foreground Dice of every pair, rater × rater; None if no background is given.
    adjusted_foreground_score : ndarray or None
        The adjusted foreground score of every pair; None if no background is given.
    notes : tuple of Note
        Notes on resampled raters, on excluded pixels outside the field of view of a rater, and on a
        background that is absent from all raters.

    Examples
    --------
    >>> import probdice
    >>> agreement = probdice.agreement([[1, 1, 2, 2], [7, 7, 7, 9], [5, 5, 4, 4]])
    >>> agreement.score
    array([[1.  , 0.75, 1.  ],
           [0.75, 1.  , 0.75],
           [1.  , 0.75, 1.  ]])
    >>> agreement.mean_score
    0.8333333333333334
    >>> [round(one.score, 3) for one in agreement.others]
    [0.875, 0.75, 0.875]
    """

    names: tuple[str, ...]
    score: Floats
    adjusted_score: Floats
    explained: Floats
    others: tuple[AgainstOthers, ...]
    pixels: int
    regions: tuple[RegionAgreement, ...] = ()
    foreground_dice: Floats | None = None
    adjusted_foreground_score: Floats | None = None
    notes: tuple[Note, ...] = ()

    @property
    def mean_dice(self) -> float:
        """The mean of `RegionAgreement.mean_dice` over the common regions.

        If only one rater of a pair has a region, the Dice of this region is 0 for this pair. A
        region that is present in no rater is excluded (see `RegionAgreement.faint`).
        """
        dice = [region.mean_dice for region in self.regions if not isnan(region.mean_dice)]
        return float(np.mean(dice)) if dice else nan

    @property
    def mean_score(self) -> float:
        """The mean of the scores of all pairs. NaN values are excluded from all means."""
        return self._mean(self.score)

    @property
    def mean_adjusted_score(self) -> float:
        """The mean of the adjusted scores of all pairs."""
        return self._mean(self.adjusted_score)

    @property
    def mean_explained(self) -> float:
        """The mean of the explained shares of all ordered pairs."""
        return self._mean(self.explained)

    @property
    def mean_foreground_dice(self) -> float:
        """The mean foreground Dice of all pairs; NaN if no background is given."""
        return nan if self.foreground_dice is None else self._mean(self.foreground_dice)

    @property
    def mean_adjusted_foreground_score(self) -> float:
        """The mean adjusted foreground score of all pairs; NaN if no background is given."""
        scores = self.adjusted_foreground_score
        return nan if scores is None else self._mean(scores)

    def _mean(self, matrix: Floats) -> float:
        off_diagonal = matrix[~np.eye(len(self.names), dtype=np.bool_)]
        values = off_diagonal[~np.isnan(off_diagonal)]
        return float(values.mean()) if values.size else nan

    @cached_property
    def worst_first(self) -> tuple[int, ...]:
        """The regions' indices by ascending mean Dice.

        Regions that only one rater has are listed after all other regions, because their Dice is
        always 0, and faint regions are last. Regions of equal Dice are ordered by descending
        volume.
        """

        def key(k: int) -> tuple[bool, bool, float, float]:
            region = self.regions[k]
            dice = 0.0 if region.faint else region.mean_dice  # NaN cannot be sorted
            return region.faint, region.rater_count < 2, dice, -float(region.volumes.sum())

        return tuple(sorted(range(len(self.regions)), key=key))

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The raters' indices in the leaf order of average-linkage clustering.

        Similar raters are adjacent.
        """
        if len(self.names) < 3:
            return tuple(range(len(self.names)))
        from scipy.cluster.hierarchy import leaves_list, linkage
        from scipy.spatial.distance import squareform

        distances = np.clip(1 - (self.score + self.score.T) / 2, 0, None)
        np.fill_diagonal(distances, 0)
        condensed_distances = squareform(distances, checks=False)
        leaves = leaves_list(linkage(condensed_distances, "average", optimal_ordering=True))
        return tuple(int(k) for k in leaves)

    def plot(self) -> "Figure":
        """Draw the matrix of scores, with similar raters adjacent, as a Matplotlib figure.

        Examples
        --------
        >>> import probdice
        >>> figure = probdice.agreement([[1, 1, 2, 2], [7, 7, 7, 9], [5, 5, 4, 4]]).plot()
        >>> len(figure.axes[0].texts)
        9
        """
        from probdice.pictures.rater_plots import draw_agreement

        return draw_agreement(self)

    def to_dict(self) -> dict[str, Any]:
        """Return all results as built-in Python types, with the format version.

        Examples
        --------
        >>> import probdice
        >>> probdice.agreement([[1, 1, 2, 2], [7, 7, 7, 9]]).to_dict()["score"]
        [[1.0, 0.75], [0.75, 1.0]]
        """
        matrices = self._matrices()
        return {
            "format": FORMAT_VERSION,
            "raters": list(self.names),
            "pixels": self.pixels,
            **{name: matrix.tolist() for name, matrix in matrices.items()},
            **{f"mean_{name}": self._mean(matrix) for name, matrix in matrices.items()},
            "others": [
                {name: getattr(rater, name) for name in ("name", *matrices)}
                for rater in self.others
            ],
            "regions": [region.to_dict() for region in self.regions],
            "notes": [str(note) for note in self.notes],
        }

    def _matrices(self) -> dict[str, Floats]:
        """Return the matrices of pairwise measures by name."""
        matrices = {
            "score": self.score,
            "adjusted_score": self.adjusted_score,
            "explained": self.explained,
        }
        if self.foreground_dice is not None and self.adjusted_foreground_score is not None:
            matrices["foreground_dice"] = self.foreground_dice
            matrices["adjusted_foreground_score"] = self.adjusted_foreground_score
        return matrices

    def to_json(self, *, indent: int | None = None) -> str:
        """Return `to_dict` as JSON; NaN becomes null.

        Examples
        --------
        >>> import probdice
        >>> probdice.agreement([[1, 2], [3, 3]]).to_json()[:38]
        '{"format": 1, "raters": ["1", "2"], "p'
        """
        return json.dumps(null_for_nan(self.to_dict()), indent=indent, allow_nan=False)

    def to_frame(self) -> "pandas.DataFrame":
        """Return a pandas data frame with one row per ordered pair of raters.

        Examples
        --------
        >>> import probdice
        >>> probdice.agreement([[1, 1, 2, 2], [7, 7, 7, 9]]).to_frame()["score"].tolist()
        [0.75, 0.75]
        """
        pairs = [(i, j) for i in range(len(self.names)) for j in range(len(self.names)) if i != j]
        matrices = self._matrices().items()
        columns = {name: [matrix[pair] for pair in pairs] for name, matrix in matrices}
        raters = {
            "rater": [self.names[i] for i, _ in pairs],
            "other": [self.names[j] for _, j in pairs],
        }
        return data_frame(raters | columns)

    def region_frame(self) -> "pandas.DataFrame":
        """Return a pandas data frame with one row per common region and pair of raters.

        The columns are region, rater, other, dice, the volumes of both raters in pixels
        (rater_volume, other_volume) and in millilitres (rater_ml, other_ml; NaN if unknown), and
        faint. The last column is true if means exclude the region for this pair of raters.

        Examples
        --------
        >>> import probdice
        >>> agreement = probdice.agreement([[1, 1, 2, 2], [7, 7, 7, 9]])
        >>> agreement.region_frame()[["region", "rater_volume", "other_volume"]].values.tolist()
        [[1.0, 2.0, 3.0], [2.0, 2.0, 1.0]]
        """
        rows = self._region_rows()
        return data_frame({name: [row[name] for row in rows] for name in COLUMNS})

    def to_csv(self) -> str:
        """Return the table of `region_frame` as CSV; NaN becomes an empty cell.

        Examples
        --------
        >>> import probdice
        >>> print(probdice.agreement([[1, 1, 2, 2], [7, 7, 7, 9]]).to_csv())
        region,rater,other,dice,rater_volume,other_volume,rater_ml,other_ml,faint
        1,1,2,0.8,2.0,3.0,,,False
        2,1,2,0.6666666666666666,2.0,1.0,,,False
        <BLANKLINE>
        """
        return as_csv(self._region_rows(), COLUMNS)

    def _region_rows(self) -> list[dict[str, Any]]:
        return [row for region in self.regions for row in region.rows(self.names)]

    def __repr__(self) -> str:
        lines = [
            f"Agreement of {len(self.names)} raters over {self.pixels} pixels",
            f"  mean over all pairs: Dice {decimal(self.mean_dice)}   score "
            f"{decimal(self.mean_score)}   adjusted "
            f"{decimal(self.mean_adjusted_score)}   explained {decimal(self.mean_explained)}",
        ]
        foreground = self.foreground_dice is not None
        if foreground:
            lines.append(
                f"  foreground: Dice {decimal(self.mean_foreground_dice)}   adjusted score "
                f"{decimal(self.mean_adjusted_foreground_score)}"
            )
        lines.append("  each rater vs the mean of the others:")
        width = max(len(name) for name in self.names)
        for rater in self.others:
            line = (
                f"    {rater.name:>{width}}  score {decimal(rater.score)}   adjusted "
                f"{decimal(rater.adjusted_score)}   explained {decimal(rater.explained)}"
            )
            dice = f"   foreground Dice {decimal(rater.foreground_dice)}" if foreground else ""
            lines.append(line + dice)
        lines += self._region_lines()
        return "\n".join(lines + [f"  note: {note}" for note in self.notes])

    def _region_lines(self) -> list[str]:
        if not self.regions:
            return []
        unit = "pixels" if self.regions[0].pixel_volume is None else "mL"
        listed_regions = [self.regions[k] for k in self.worst_first[:MAX_PRINTED_REGIONS]]
        width = max(len(region.shown_label) for region in listed_regions)
        lines = [f"  per region: Dice over all pairs, and the volume of each rater in {unit}:"]
        for region in listed_regions:
            volumes = " / ".join(text.removesuffix(" mL") for text in region.shown_volumes())
            lines.append(
                f"    {region.shown_label:>{width}}  mean {decimal(region.mean_dice)}   lowest "
                f"{decimal(region.lowest_dice)}   volumes {volumes}"
            )
        if len(self.regions) > MAX_PRINTED_REGIONS:
            lines.append(f"    … and {len(self.regions) - MAX_PRINTED_REGIONS} more regions")
        return lines


def agreement_of(panel: Panel) -> Agreement:
    """Compare all pairs of raters, and each rater with the mean of the others."""
    names = panel.names
    comparisons = panel.comparisons  # the first computation, because its errors name the raters
    against_others = tuple(
        AgainstOthers(name, **_numbers(against_mean(panel, name), "prediction")) for name in names
    )
    matrices: dict[str, Floats] = {}
    for (first, second), comparison in comparisons.items():
        i, j = names.index(first), names.index(second)
        for cell, side in (((i, j), SIDES[0]), ((j, i), SIDES[1])):
            for name, value in _numbers(comparison, side).items():
                matrices.setdefault(name, np.eye(len(names)))[cell] = value
    return Agreement(
        names=names,
        others=against_others,
        pixels=comparison.pixels,
        regions=regions_of(panel),
        notes=panel.notes,
        **matrices,
    )


def _numbers(comparison: Comparison, side: Side) -> dict[str, float]:
    """Return the measures of a pair by name. `explained` is the explained share of one side."""
    names: tuple[str, ...] = ("score", "adjusted_score")
    if comparison.background is not None:
        names += ("foreground_dice", "adjusted_foreground_score")
    numbers = {name: getattr(comparison, name) for name in names}
    return {**numbers, "explained": comparison.explained[side]}


def against_mean(panel: Panel, name: str) -> Comparison:
    """Compare a rater (the prediction) with the mean of the others (the reference)."""
    other_names = [rater for rater in panel.names if rater != name]
    segmentations, labels = panel.segmentations, panel.labels
    if len(other_names) == 1:
        (other,) = other_names
        reference, background = segmentations.sides[other], labels.background_keys[other]
    else:
        common = panel.common(other_names)
        reference, background = mean_of(panel, common), panel.background_number(common)
    sides = labels.compared(reference), labels.compared(segmentations.sides[name])
    images = SegmentationPair(*sides, segmentations.mask, segmentations.workers)
    return panel.compare(images, background, labels.background_keys[name])
