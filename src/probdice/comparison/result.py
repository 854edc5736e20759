"""The result of a comparison: a value that can be printed, drawn and stored."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from math import isnan, nan
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.comparison.numbers import Numbers
from probdice.comparison.relabelling import Target, relabelled
from probdice.data.segmentation import Segmentation
from probdice.engine.pair import Images
from probdice.errors import InputError, MissingExtraError, Note
from probdice.files.atomic_files import null_for_nan
from probdice.method.chance import Chance, chance_of
from probdice.method.explained import explained_by_counts, explained_by_moments
from probdice.method.groups import Groups, counted
from probdice.method.matching import Fixed, Given, LabelsBy, labels_by
from probdice.method.merging import Merging
from probdice.method.overlap import Overlap
from probdice.method.region_labels import Label
from probdice.method.scoring import (
    Correspondence,
    Measured,
    NeedsImages,
    group_costs,
    key_lists,
    measure,
)
from probdice.method.sides import SIDES, Both, Side, other
from probdice.method.similarity import Similarity
from probdice.options import Options

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from probdice.metrics.boundaries import Boundaries
    from probdice.metrics.calibration import Binning, Calibration
    from probdice.metrics.components import ComponentScores
    from probdice.metrics.detection import Detection, Measure
    from probdice.metrics.indices import Indices
    from probdice.pictures import Kind, Palette

__all__ = ["FORMAT", "Comparison", "Group", "Merge"]

FORMAT = 2  # version of what to_dict and to_json write
SHOWN = 12  # groups in a printed result
THRESHOLDS = tuple(k / 10 for k in range(1, 10))  # of QUBIQ
UNDECIDED = 1e-6  # chance this close to 1 leaves nothing to adjust


@dataclass(frozen=True)
class Group:
    """Regions of both sides that correspond, and how well they do.

    Attributes
    ----------
    reference : tuple of int or str
        Labels of the reference regions; empty for an unmatched prediction region.
    prediction : tuple of int or str
        Labels of the prediction regions; empty for an unmatched reference region.
    similarity : float
        D between the auxiliary segmentations of the two, by the similarity of the comparison.
    dice : float
        Fuzzy Dice coefficient, 2 Σ min(p, q) / (Σ p + Σ q).
    jaccard : float
        Fuzzy Jaccard index, Σ min(p, q) / Σ max(p, q).
    reference_volume : float
        Sum of probability of the reference regions, in pixels.
    prediction_volume : float
        Sum of probability of the prediction regions, in pixels.
    faint : bool
        Whether the group does not count in means over regions and in counts of regions. A group
        of probabilities is faint if none of its regions is the likeliest (within 1e-6) at any
        pixel, and no region of a label map belongs to it.

    Examples
    --------
    >>> import probdice
    >>> probdice.compare([1, 1, 2, 2], [5, 5, 5, 8]).groups[0]
    Group(reference=(1,), prediction=(5,), dice=0.8)
    """

    reference: tuple[Label, ...]
    prediction: tuple[Label, ...]
    similarity: float
    dice: float
    jaccard: float
    reference_volume: float
    prediction_volume: float
    faint: bool = False

    def __repr__(self) -> str:
        faint = ", faint=True" if self.faint else ""
        return (
            f"Group(reference={self.reference}, prediction={self.prediction}, "
            f"dice={self.dice:g}{faint})"
        )

    def side(self, side: Side) -> tuple[Label, ...]:
        """The labels of one side."""
        return self.reference if side == "reference" else self.prediction


@dataclass(frozen=True)
class Merge:
    """A spare region that was merged.

    Attributes
    ----------
    side : {"reference", "prediction"}
        The side it belongs to.
    region : int or str
        Its label.
    into : tuple of int or str
        The labels of the other side whose group it joined.
    gain : float
        How much the similarity of that group rose.

    Examples
    --------
    >>> import probdice
    >>> probdice.compare([1, 1, 1, 1, 2, 2, 2, 2], [7, 7, 5, 5, 5, 9, 9, 9], merge="both").merges
    (Merge(side='prediction', region=5, into=(1,), gain=0.125),)
    """

    side: Side
    region: Label
    into: tuple[Label, ...]
    gain: float


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """What `compare` found.

    Numbers are computed when they are first asked for, and kept. What needs the pixels again is
    refused by name where the images are gone.

    Attributes
    ----------
    overlap : Overlap
        What everything is read from.
    images : Images or None
        What `map`, `relabelled` and `report` read; None after `detach`, from JSON or unpickled.
    score : float
        D after matching and, where allowed, merging: 1 is equal.
    matched_score : float
        D after matching alone.
    chance : float
        The score of independent segmentations with the same region sizes.
    chance_error : float
        The standard error of `chance`; 0 where it is exact.
    adjusted_score : float
        (score − chance) / (1 − chance).
    mean_dice : float
        Mean Dice of the groups that count, an unmatched region of either side counting as 0. Faint
        groups (`Group.faint`) do not count.
    lowest_dice : float
        Lowest Dice of the groups that count.
    explained : dict
        Per side, the share of its variance that the other side explains.
    groups : tuple of Group
        Corresponding regions, then unmatched ones.
    lowest : Group
        The group that counts with the lowest Dice.
    merges : tuple of Merge
        Spare regions that were merged, in order.
    unmatched : dict
        Per side, the labels of unmatched regions that count.
    empty : dict
        Per side, the labels of regions that are zero everywhere in Ω.
    notes : tuple of Note
        Sentences worth knowing.
    weights : ndarray
        1 − D of every pair of regions; rows are `reference_labels`, columns `prediction_labels`.
    pixels : int
        How many pixels are compared.
    pixel_volume : float or None
        What one pixel covers in mm³, where the images are three-dimensional and say so.
    similarity : Absolute or Aitchison
        The similarity that was used.
    match : str, mapping or Comparison
        The matching rule, the given pairs, or the comparison whose groups were used.
    merge : str
        Whose unmatched regions were allowed to merge.
    labels_by : {"name", "number"} or None
        With ``match="labels"``, whether equal names or equal numbers correspond.

    Examples
    --------
    >>> import probdice
    >>> result = probdice.compare([1, 1, 1, 1, 2, 2, 2, 2], [7, 7, 5, 5, 5, 9, 9, 9], merge="both")
    >>> result.score, result.matched_score
    (0.875, 0.625)
    >>> result
    Comparison (absolute, merge='both'): 2 reference and 3 prediction regions over 8 pixels
      mean Dice 0.8730   adjusted score 0.7500 (chance 0.5000)
      explained: reference 0.6667, prediction 0.3333
      lowest Dice 0.8571 (2 ↔ 9)   unmatched regions: 0
      score 0.8750   matched score 0.6250; 1 prediction region merged
      reference  prediction    Dice  similarity
              1        5, 7  0.8889      0.8750
              2           9  0.8571      0.8750
    """

    overlap: Overlap
    correspondence: Correspondence
    options: Options
    images: Images | None = None
    pixel_volume: float | None = None
    input_notes: tuple[Note, ...] = ()
    numbers: Numbers = field(default_factory=Numbers)

    def __getstate__(self) -> dict[str, Any]:
        """Everything without the images, which may be larger than all the rest by far."""
        return {entry.name: getattr(self.detach(), entry.name) for entry in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)

    def detach(self) -> "Comparison":
        """The same without the images: numbers and labels alone.

        Examples
        --------
        >>> import probdice
        >>> probdice.compare([1, 1, 2, 2], [5, 5, 5, 8]).detach().images is None
        True
        """
        if self.images is None:
            return self
        self.compute("notes")  # some of them are about the images
        return replace(self, images=None, numbers=self.numbers.copy())

    def compute(self, *names: str) -> None:
        """Compute these numbers now, while the images are there.

        Parameters
        ----------
        *names : str
            Names of attributes: "score", "chance", "explained", "groups", "notes", ….

        Examples
        --------
        >>> import probdice
        >>> result = probdice.compare([[0.9, 0.2], [0.1, 0.8]], [[0.8, 0.3], [0.2, 0.7]])
        >>> result.compute("chance")
        >>> round(result.detach().chance, 3)
        0.65
        """
        for name in names:
            getattr(self, name)

    # -- options -----------------------------------------------------------------------------------

    @property
    def similarity(self) -> Similarity:
        """How probability vectors were compared."""
        return self.options.similarity

    @property
    def match(self) -> Any:
        """How regions were made to correspond: a word, a mapping, or the groups that were given."""
        rule = self.options.match
        if isinstance(rule, Fixed):
            return dict(rule.pairs)
        return rule.groups if isinstance(rule, Given) else rule

    @property
    def labels_by(self) -> "LabelsBy | None":
        """With ``match="labels"``, whether equal names or equal numbers correspond; else None."""
        return labels_by(self.overlap) if self.options.match == "labels" else None

    @property
    def merge(self) -> Merging:
        """Which side's spare regions might be merged."""
        return self.options.merge

    @property
    def pixels(self) -> int:
        """How many pixels are compared."""
        return self.overlap.pixels

    # -- scores ----------------------------------------------------------------------------------

    @property
    def measured(self) -> Measured:
        """The score with the sums that belong to it."""
        result = self.correspondence
        return self.numbers.get(
            "measured", lambda: measure(self.overlap, result.groups, result.costs, self.images)
        )

    @property
    def score(self) -> float:
        """D after matching and, where allowed, merging."""
        return self.numbers.get("score", lambda: self.measured.score)

    @property
    def matched_score(self) -> float:
        """D after matching alone."""
        return self.numbers.get("matched_score", self._matched_score)

    def _matched_score(self) -> float:
        result = self.correspondence
        if not result.joins:
            return self.score
        return measure(self.overlap, result.matched, None, self.images).score

    @property
    def costs(self) -> NDArray[Any]:
        """Σ 1 − f of every group, in units of the overlap."""
        result = self.correspondence
        if result.costs is not None:
            return result.costs
        return self.numbers.get(
            "costs", lambda: group_costs(self.overlap, result.groups, self.images)
        )

    @property
    def chance(self) -> float:
        """The score of the same comparison if the two segmentations were independent."""
        return self._chance().level

    @property
    def chance_error(self) -> float:
        """The standard error of `chance`: 0 where it is exact."""
        return self._chance().error

    def _chance(self) -> Chance:
        return self.numbers.get("chance", lambda: self._chance_with(self.images))

    def _chance_with(self, images: Images | None) -> Chance:
        options, matched = self.options, self.correspondence.matched
        return chance_of(self.overlap, options.match, options.merge, matched, images)

    @property
    def adjusted_score(self) -> float:
        """(score − chance) / (1 − chance): 1 for identity, about 0 for independent pixels."""
        return _adjusted(self.score, self.chance)

    @property
    def explained(self) -> dict[Side, float]:
        """Per side, the share of its variance that the other side explains."""
        return self.numbers.get("explained", self._explained)

    def _explained(self) -> dict[Side, float]:
        if self.overlap.crisp:
            return explained_by_counts(self.overlap)
        if self.images is None:
            raise NeedsImages(
                "explained of probabilities needs the images: compare the segmentations "
                "themselves, or ask for .explained before the images are dropped"
            )
        keys = Both(self.overlap.reference.keys, self.overlap.prediction.keys)
        return explained_by_moments(self.images.moments(keys), self.pixels)

    def without_a_pass(self, name: str) -> Any:
        """A number if it is known or follows without another pass over the pixels, else None.

        Parameters
        ----------
        name : {"score", "matched_score", "chance", "chance_error", "adjusted_score", "explained"}
            The attribute.

        Examples
        --------
        >>> import probdice
        >>> soft = [[0.9, 0.2], [0.1, 0.8]]
        >>> print(probdice.compare(soft, soft).without_a_pass("chance"))
        None
        >>> probdice.compare([1, 2], [1, 2]).without_a_pass("chance")
        0.5
        """
        table = replace(self, images=None, numbers=self.numbers)
        try:
            return getattr(table, name)
        except NeedsImages:
            return None

    # -- regions ---------------------------------------------------------------------------------

    @property
    def reference_labels(self) -> tuple[Label, ...]:
        """Labels of the reference's regions that are not empty: the rows of `weights`."""
        return self._occupied("reference")

    @property
    def prediction_labels(self) -> tuple[Label, ...]:
        """Labels of the prediction's regions that are not empty: the columns of `weights`."""
        return self._occupied("prediction")

    def labels(self, side: Side) -> tuple[Label, ...]:
        """Labels of one side's regions that are not empty."""
        return self.reference_labels if side == "reference" else self.prediction_labels

    def counted(self, side: Side) -> int:
        """Number of regions of one side that are in groups that count."""
        return sum(len(group.side(side)) for group in self.groups if not group.faint)

    def _occupied(self, side: Side) -> tuple[Label, ...]:
        return self.numbers.get(f"{side}_labels", lambda: self._labels_in_use(side))

    def _labels_in_use(self, side: Side) -> tuple[Label, ...]:
        regions = self.overlap.side(side)
        if regions.occupied.size == len(regions):
            return regions.labels
        return tuple(regions.labels[k] for k in regions.occupied.tolist())

    @property
    def weights(self) -> NDArray[np.float64]:
        """1 − D of every pair of regions that are not empty; read-only."""
        return self.overlap.weights

    @property
    def groups(self) -> tuple[Group, ...]:
        """Corresponding regions, then unmatched ones."""
        return self.numbers.get("groups", lambda: tuple(_groups(self)))

    @property
    def merges(self) -> tuple[Merge, ...]:
        """Spare regions that were merged, in order."""
        labels = {side: self.overlap.side(side).labels for side in SIDES}
        return tuple(
            Merge(
                join.side,
                labels[join.side][join.region],
                tuple(labels[other(join.side)][k] for k in join.into),
                join.gain,
            )
            for join in self.correspondence.joins
        )

    @property
    def unmatched(self) -> dict[Side, tuple[Label, ...]]:
        """Per side, the labels of unmatched regions; those of faint groups do not count."""
        return self.numbers.get("unmatched", self._unmatched)

    def _unmatched(self) -> dict[Side, tuple[Label, ...]]:
        groups = self.correspondence.groups
        counts = counted(self.overlap, groups)
        return {
            side: tuple(
                self.overlap.side(side).label(k)
                for k in groups.spare(side).tolist()
                if counts[groups.numbers(side)[k]]
            )
            for side in SIDES
        }

    @property
    def empty(self) -> dict[Side, tuple[Label, ...]]:
        """Per side, the labels of regions with nothing in Ω."""
        return {side: self.overlap.side(side).empty for side in SIDES}

    @property
    def mean_dice(self) -> float:
        """Mean Dice of the groups that count, an unmatched region counting as 0.

        NaN where the Dice of a group needs the images and they are gone.
        """
        dice = [group.dice for group in self.groups if not group.faint]
        return sum(dice) / len(dice)

    @property
    def lowest_dice(self) -> float:
        """Lowest Dice of the groups that count, 0 where a region is unmatched."""
        return self.lowest.dice

    @property
    def lowest(self) -> Group:
        """The group that counts with the lowest Dice; one of unknown Dice where there is any."""
        return min(
            (group for group in self.groups if not group.faint),
            key=lambda group: -1 if isnan(group.dice) else group.dice,
        )

    @property
    def notes(self) -> tuple[Note, ...]:
        """Sentences worth knowing."""
        from probdice.comparison.notes import notes_of

        return self.numbers.get("notes", lambda: notes_of(self))

    # -- the field's other numbers -----------------------------------------------------------------

    def indices(self, *, background: Label | None = None) -> "Indices":
        """Rand, variation of information, covering, mean IoU, κ and others.

        Parameters
        ----------
        background : int or str, optional
            The label that is no foreground. None by default: nothing is.

        Examples
        --------
        >>> import probdice
        >>> result = probdice.compare([0, 0, 1, 1], [0, 1, 1, 1], match="labels")
        >>> indices = result.indices(background=0)
        >>> round(indices.mean_dice, 4), indices.mean_foreground_dice
        (0.7333, 0.8)
        """
        from probdice.metrics.indices import indices_of

        return indices_of(self, self.correspondence.groups, background)

    def detection(
        self, *, background: Label | None, threshold: float = 0.5, by: "Measure" = "jaccard"
    ) -> "Detection":
        """Which regions were found, missed and false: the groups as instances.

        Parameters
        ----------
        background : int, str or None
            The label, on both sides, that is no instance. It must be said; None where there is
            none.
        threshold : float, optional
            A group is found where its Jaccard index is at least this.
        by : {"jaccard", "dice"}, optional
            What is held against the threshold.

        Examples
        --------
        >>> import probdice
        >>> result = probdice.compare([0, 1, 1, 1, 2], [0, 5, 5, 0, 0])
        >>> detection = result.detection(background=0)
        >>> detection.true_positives, detection.false_positives, detection.misses
        (1, 0, 1)
        """
        from probdice.metrics.detection import detection_of

        return detection_of(
            self, self.correspondence, threshold=threshold, background=background, by=by
        )

    def component_scores(
        self, *, background: Label | None, connectivity: int | None = None
    ) -> "ComponentScores":
        """Every connected component of the reference with a score of its own.

        A component is compared with what the prediction has of its group among the pixels that
        are nearer to it than to the group's other components (as CC-Metrics does, with distances
        in pixels). The reference must be a label map. Needs connected-components-3d (extra
        `instances`) and the whole images in memory.

        Parameters
        ----------
        background : int, str or None
            The label, on both sides, that is left out. It must be said; None where there is none.
        connectivity : {4, 8, 6, 18, 26}, optional
            How many neighbours a pixel has; all of them by default.

        Examples
        --------
        >>> import probdice
        >>> result = probdice.compare([1, 1, 1, 1, 0, 0, 1], [1, 1, 1, 1, 0, 0, 0])
        >>> result.component_scores(background=0).mean_dice
        0.5
        """
        from probdice.metrics.components import component_scores

        return component_scores(
            self.overlap,
            self.correspondence.groups,
            self.need_images("component_scores()"),
            background=background,
            connectivity=connectivity,
        )

    def boundaries(
        self,
        *,
        tolerances: Iterable[float] = (),
        percentiles: Iterable[float] = (95,),
        levels: Iterable[float] | None = None,
        infinite: float | None = None,
    ) -> "Boundaries":
        """Distances between the outlines of the groups: Hausdorff, average and surface Dice.

        Distances are exact, between surfaces halfway between voxels, in millimetres where the
        images have a geometry and in pixels otherwise. Probabilities are not hardened: every
        number is the mean over several levels. Needs images of two or three dimensions, in memory.

        Parameters
        ----------
        tolerances : iterable of float, optional
            Of the surface Dice (``nsd``), in the unit of distances. There is no default tolerance.
        percentiles : iterable of float, optional
            Of the Hausdorff distance, such as 95 for ``hd95``.
        levels : iterable of float, optional
            Of probabilities; 0.1, 0.2, …, 0.9 by default. A label map is the same at every level.
        infinite : float, optional
            A penalty distance for regions that one side lacks. They are infinitely far by default.

        Returns
        -------
        Boundaries

        Examples
        --------
        >>> import numpy as np
        >>> import probdice
        >>> reference, prediction = np.zeros((2, 14, 14), int)
        >>> reference[4:10, 4:10] = prediction[4:10, 5:11] = 1
        >>> boundaries = probdice.compare(reference, prediction).boundaries(tolerances=[0.5])
        >>> boundaries["hd95"].tolist()
        [1.0, 1.0]
        """
        from probdice.engine.group_images import compared_pixels
        from probdice.metrics.boundaries import LEVELS, boundaries_of, group_sets

        images = self.need_images("boundaries()")
        lists = key_lists(self.overlap, self.correspondence.groups)
        return boundaries_of(
            Both(*(group_sets(images, side, lists[side]) for side in SIDES)),
            groups=Both(*([group.side(side) for group in self.groups] for side in SIDES)),
            counted=np.array([not group.faint for group in self.groups]),
            geometry=images.reference.geometry,
            mask=compared_pixels(images),
            percentiles=percentiles,
            tolerances=tolerances,
            levels=LEVELS if levels is None else levels,
            infinite=infinite,
            workers=images.workers,
        )

    def calibration(
        self,
        *,
        bins: int = 15,
        binning: "Binning" = "width",
        thresholds: Iterable[float] = THRESHOLDS,
    ) -> "Calibration":
        """How far the probabilities of the prediction can be trusted, group by group.

        Reliability with expected and maximum calibration error and what chance would show of them,
        the Brier score with its parts, log loss, and Dice at thresholds; one pass over the pixels.
        The reference may be crisp or soft. `probdice.metrics.calibration` names the conventions.

        Parameters
        ----------
        bins : int, optional
            Of the reliability diagrams.
        binning : {"width", "mass"}, optional
            Bins of equal width, or with equally many pixels as far as equal predictions allow.
        thresholds : iterable of float, optional
            At which both sides are cut for Dice; 0.1, 0.2, …, 0.9 by default, as in QUBIQ.

        Examples
        --------
        >>> import probdice
        >>> result = probdice.compare([0, 0, 1, 1], [[0.9, 0.8, 0.6, 0.1], [0.1, 0.2, 0.4, 0.9]])
        >>> calibration = result.calibration(bins=10)
        >>> round(calibration.likely.expected_error, 4), round(calibration.brier.score, 4)
        (0.25, 0.21)
        """
        from probdice.metrics.calibration import calibration_of

        return calibration_of(self, bins=bins, binning=binning, thresholds=thresholds)

    # -- images ----------------------------------------------------------------------------------

    def need_images(self, what: str) -> Images:
        if self.images is None:
            raise NeedsImages(
                f"{what} needs the images, which this comparison does not have: it was detached, "
                f"unpickled, or made from JSON or an overlap"
            )
        return self.images

    def map(self, *, into: Any = None) -> NDArray[np.float32]:
        """f at every pixel after correspondence; NaN outside the mask.

        Where a side is a Dask array, so is the map, and nothing is computed yet.

        Parameters
        ----------
        into : array, optional
            What to write to, block by block, such as a Zarr array or a memory map of the shape of
            the image; it is returned. The map is then never held whole.

        Examples
        --------
        >>> import probdice
        >>> probdice.compare([1, 1, 2, 2], [5, 5, 5, 8]).map()
        array([1., 1., 0., 1.], dtype=float32)
        """
        lists = key_lists(self.overlap, self.correspondence.groups)
        return self.need_images("map()").map(self.similarity, lists, into)

    def relabelled(self, *, into: Target | None = None) -> Segmentation:
        """The prediction with the labels of the reference.

        Every group gets the label of its matched reference region. A prediction region without a
        partner keeps its label if the reference does not use it and else gets a new one; its name
        says "(unmatched)". Where the prediction is a Dask array, so is what is returned.

        Parameters
        ----------
        into : callable, optional
            Makes the array to write to, block by block, of the shape and the type that it is
            called with: ``lambda shape, dtype: zarr.create_array(…)``.

        Examples
        --------
        >>> import probdice
        >>> result = probdice.compare([1, 1, 1, 2, 2], [7, 7, 5, 9, 9], merge="both")
        >>> result.relabelled().array
        array([1, 1, 1, 2, 2])
        """
        images = self.need_images("relabelled()")
        return relabelled(self.overlap, self.correspondence, images, into)

    def plot(
        self,
        kind: "Kind" = "overview",
        *,
        ax: "Axes | Iterable[Axes] | None" = None,
        figsize: tuple[float, float] | None = None,
        place: Sequence[int] | None = None,
        palette: "Palette" = "given",
    ) -> "Figure":
        """A picture as a Matplotlib figure; nothing is shown or saved. See `pictures.plot`.

        Parameters
        ----------
        kind : str, optional
            "overview", "regions", "map", "views", "correspondence", "overlap", "slices" or
            "histogram".
        ax : Axes or several, optional
            Where to draw, as many as the picture has panels; a new figure by default.
        figsize : (float, float), optional
            Width and height of the new figure in inches.
        place : sequence of int, optional
            Index of the pixel through which a volume is cut; where the two differ most by default.
        palette : {"given", "safe", "rgb"}, optional
            Colours as files and tables of names give them, colours for all eyes, or red, green
            and blue for up to three groups.

        Examples
        --------
        >>> import probdice
        >>> figure = probdice.compare([[1, 1], [2, 2]], [[5, 5], [5, 8]]).plot("overlap")
        >>> figure.axes[0].images[0].get_array().round(2).tolist()  # Dice of pairs that meet
        [[0.8, None], [0.4, 0.67]]
        """
        from probdice import pictures

        return pictures.plot(self, kind, ax=ax, figsize=figsize, place=place, palette=palette)

    def report(
        self, path: str | PathLike[str], *, title: str | None = None, image: Any = ()
    ) -> None:
        """Write a page to look at: one HTML file that needs no network. See `report.write`.

        Parameters
        ----------
        path : path
            Where to.
        title : str, optional
            What stands on top; the names of the files by default.
        image : array, path or image, or several, optional
            What to show under the segmentations, such as the scan that they are of.

        Examples
        --------
        >>> import os, tempfile
        >>> import probdice
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = os.path.join(folder, "page.html")
        ...     probdice.compare([[1, 1], [2, 2]], [[5, 5], [5, 8]]).report(page)
        ...     os.path.exists(page)
        True
        """
        from probdice import report

        report.write(self, path, title=title, image=image)

    # -- storing ---------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Everything that is known, as plain types, with the version of the format.

        What needs a pass over the pixels and was never asked for (chance and explained shares of
        probabilities) is left out.

        Examples
        --------
        >>> import probdice
        >>> result = probdice.compare([1, 1, 2, 2], [5, 5, 5, 8])
        >>> result.to_dict()["score"]
        0.75
        """
        from probdice.comparison.json_form import comparison_to_dict

        return comparison_to_dict(self)

    def to_json(self, *, indent: int | None = None) -> str:
        """`to_dict` as JSON; what is not a number becomes null.

        Examples
        --------
        >>> import probdice
        >>> text = probdice.compare([1, 1, 2, 2], [5, 5, 5, 8]).to_json()
        >>> probdice.Comparison.from_json(text).score
        0.75
        """
        content = self.to_dict()
        try:
            return json.dumps(content, indent=indent, allow_nan=False)
        except ValueError:  # there is one that is not a number
            return json.dumps(null_for_nan(content), indent=indent, allow_nan=False)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Comparison":
        """Back from what `to_dict` gave, without images.

        Examples
        --------
        >>> import probdice
        >>> content = probdice.compare([1, 1, 2, 2], [5, 5, 5, 8]).to_dict()
        >>> probdice.Comparison.from_dict(content).groups[1]
        Group(reference=(2,), prediction=(8,), dice=0.666667)
        """
        from probdice.comparison.json_form import comparison_from_dict

        return comparison_from_dict(content)

    @classmethod
    def from_json(cls, text: str) -> "Comparison":
        """Read back what `to_json` wrote. `map` and `relabelled` need the images and are gone.

        Examples
        --------
        >>> import probdice
        >>> text = probdice.compare([1, 1, 2, 2], [5, 5, 5, 8]).to_json()
        >>> probdice.Comparison.from_json(text).groups[1]
        Group(reference=(2,), prediction=(8,), dice=0.666667)
        """
        try:
            content = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise InputError(f"text is not JSON: {error}") from None
        return cls.from_dict(content)

    def to_frame(self) -> "pandas.DataFrame":
        """The groups as a table, one row each; labels are tuples.

        Volumes are in pixels; where `pixel_volume` is known, `reference_ml` and `prediction_ml`
        have them in millilitres.

        Examples
        --------
        >>> import probdice
        >>> frame = probdice.compare([1, 1, 2, 2], [5, 5, 5, 8]).to_frame()
        >>> frame["dice"].round(3).tolist()
        [0.8, 0.667]
        """
        try:
            import pandas
        except ImportError:
            raise MissingExtraError('to_frame needs pandas: pip install "pandas"') from None
        columns = [entry.name for entry in fields(Group)]
        rows = [[getattr(group, name) for name in columns] for group in self.groups]
        frame = pandas.DataFrame(rows, columns=columns)
        if self.pixel_volume is not None:
            for side in SIDES:
                frame[f"{side}_ml"] = frame[f"{side}_volume"] * (self.pixel_volume / 1000)
        return frame

    # -- showing ---------------------------------------------------------------------------------

    def __repr__(self) -> str:
        from probdice.comparison.text import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from probdice.comparison.text import as_html

        return as_html(self)


def _adjusted(score: float, chance: float) -> float:
    room = 1 - chance
    return (score - chance) / room if room >= UNDECIDED else nan


def _groups(result: Comparison) -> list[Group]:
    """The groups with their labels, Dice and volumes."""
    table, groups = result.overlap, result.correspondence.groups
    similarities = np.clip(1 - result.costs * (table.unit / table.pixels), 0, 1)
    try:
        measured = result.measured.differences
        differences = result.costs if measured is None else measured
    except NeedsImages:
        differences = np.full(groups.count, nan)
    volumes = Both(*(_group_volumes(table, groups, side) for side in SIDES))
    total = volumes.reference + volumes.prediction
    shared = np.maximum(total - differences, 0)
    shared[groups.matched :] = 0
    return [
        Group(*entry)
        for entry in zip(
            _group_labels(table, groups, "reference"),
            _group_labels(table, groups, "prediction"),
            similarities.tolist(),
            (shared / total).tolist(),
            (shared / (2 * total - shared)).tolist(),
            volumes.reference.tolist(),
            volumes.prediction.tolist(),
            (~counted(table, groups)).tolist(),
            strict=True,
        )
    ]


def _group_volumes(table: Overlap, groups: Groups, side: Side) -> NDArray[np.float64]:
    numbers, volumes = groups.numbers(side), table.side(side).volumes
    occupied = table.side(side).occupied
    total = np.zeros(groups.count)
    np.add.at(total, numbers[occupied], volumes[occupied])
    return total


def _group_labels(table: Overlap, groups: Groups, side: Side) -> list[tuple[Label, ...]]:
    """The labels of one side in each group."""
    starts, members = (part.tolist() for part in groups.members[side])
    labels = table.side(side).labels
    named = [labels[k] for k in members]
    return [tuple(named[a:b]) for a, b in pairwise(starts)]
