"""compare() and overlap(): the only wiring. And what comes out: a value that can show itself."""

import json
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from math import nan
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.atomic_files import null_for_nan
from probdice.chance import Chance, chance_of
from probdice.engine.images import Images
from probdice.errors import InputError, MissingExtraError, Note, ProbdiceWarning
from probdice.explained import explained_by_counts, explained_by_moments
from probdice.geometry import Geometry
from probdice.groups import Groups
from probdice.inputs import Comparable, as_mask, as_segmentation
from probdice.matching import Fixed, Given, LabelsBy, check_fixed, labels_by
from probdice.options import Match, Merging, Options, as_workers
from probdice.overlaps import Overlap
from probdice.relabelling import Target, relabelled
from probdice.scoring import (
    Correspondence,
    Measured,
    NeedsImages,
    correspond,
    group_costs,
    key_lists,
    measure,
)
from probdice.segmentation import Label, Segmentation
from probdice.sides import SIDES, Both, Side, other
from probdice.similarity import Aitchison, Similarity

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from probdice.calibration import Binning, Calibration
    from probdice.components import ComponentScores
    from probdice.detection import Detection, Measure
    from probdice.indices import Indices
    from probdice.pictures import Kind, Palette

__all__ = ["FORMAT", "Comparison", "Group", "Merge", "compare", "overlap", "similarity_map"]

FORMAT = 2  # version of what to_dict and to_json write
SHOWN = 12  # groups in a printed result
THRESHOLDS = tuple(k / 10 for k in range(1, 10))  # of QUBIQ
UNDECIDED = 1e-6  # chance this close to 1 leaves nothing to adjust


def compare(
    reference: "Comparable",
    prediction: "Comparable",
    *,
    similarity: "str | Similarity" = "absolute",
    match: "Match" = "overlap",
    merge: "Merging" = "none",
    mask: "Comparable | None" = None,
    workers: int | None = None,
) -> "Comparison":
    """Compare two segmentations of one image.

    Parameters
    ----------
    reference, prediction : Segmentation, array_like, path or image
        An array of integers is a label map, one of floating numbers holds probabilities with the
        regions along the first axis; arrays, tensors and images of other libraries, and paths,
        are taken as well. Anything else is said with a `Segmentation`, or with `read`.
    similarity : {"absolute", "aitchison"}, Absolute or Aitchison, optional
        How two probability vectors are compared.
    match : {"overlap", "paper", "labels"}, mapping or Comparison, optional
        Which region is which: the one-to-one pairs with the largest total overlap; the paper's
        minimum-weight matching, which pairs every region of the side with fewer; equal labels
        (by name where both sides have names, otherwise by number); a
        mapping ``{prediction label: reference label}`` that fixes the pairs it names and leaves
        the rest to overlap; or the groups of an earlier comparison.
    merge : {"none", "prediction", "reference", "both"}, optional
        The sides whose spare regions may be merged into matched ones.
    mask : array_like, Segmentation, path or image, optional
        Pixels to compare: booleans, or whole numbers of which 0 is outside. Nothing is asked of
        the values outside.
    workers : int, optional
        Threads; as many as there are cores by default. The result does not depend on it.

    Returns
    -------
    Comparison
        Scores, correspondence, merges, and on request the map of similarity and more.

    Examples
    --------
    >>> import probdice
    >>> result = probdice.compare([1, 1, 1, 1, 2, 2, 2, 2], [7, 7, 5, 5, 5, 9, 9, 9])
    >>> result.score
    0.625
    >>> [(group.reference, group.prediction) for group in result.groups]
    [((1,), (7,)), ((2,), (9,)), ((), (5,))]
    """
    options = Options.of(similarity=similarity, match=match, merge=merge)
    images = Images.of(
        as_segmentation(reference, "reference"),
        as_segmentation(prediction, "prediction"),
        mask=as_mask(mask),
        workers=as_workers(workers),
    )
    return compare_images(images, options)


def compare_images(images: Images, options: Options, *, of_many: bool = False) -> "Comparison":
    """Compare two segmentations that were brought to one grid.

    One of many cases may lack labels that a mapping names.
    """
    table = images.overlap(options.similarity)
    if not of_many:
        check_fixed(options.match, [table])
    correspondence = correspond(table, options, images)
    result = Comparison(
        table, correspondence, options, images, _pixel_volume(images.reference.geometry)
    )
    if not table.crisp:
        _ = result.score, result._costs  # while there are images: these may need a pass
    if isinstance(options.similarity, Aitchison):
        from probdice.notes import infinite_notes

        for note in infinite_notes(result):
            warnings.warn(str(note), ProbdiceWarning, stacklevel=3)
    return result


def _pixel_volume(geometry: Geometry | None) -> float | None:
    """In mm³, of a volume whose place is known."""
    if geometry is None or len(geometry.shape) != 3:
        return None
    return float(f"{geometry.pixel_volume:.12g}")  # a determinant ends in rounding errors


def compare_overlap(overlap: Overlap, *, match: Match, merge: Merging) -> "Comparison":
    """Compare by what an overlap holds alone."""
    options = Options.of(similarity=overlap.similarity, match=match, merge=merge)
    check_fixed(options.match, [overlap])
    return Comparison(overlap, correspond(overlap, options, None), options)


def overlap(
    reference: "Comparable",
    prediction: "Comparable",
    *,
    similarity: "str | Similarity" = "absolute",
    mask: "Comparable | None" = None,
    workers: int | None = None,
) -> Overlap:
    """The overlap of two segmentations of one image: one pass over the pixels.

    Overlaps of several images add up, so that one correspondence can be found over a whole data
    set: ``sum(overlap(r, p) for r, p in images).compare()``.

    Parameters
    ----------
    reference, prediction, similarity, mask, workers
        As for `compare`.

    Returns
    -------
    Overlap

    Examples
    --------
    >>> import probdice
    >>> probdice.overlap([1, 1, 2, 2], [5, 5, 5, 8])
    Overlap (absolute): 2 reference and 2 prediction regions over 4 pixels, 3 pairs meet
    """
    options = Options.of(similarity=similarity)
    images = Images.of(
        as_segmentation(reference, "reference"),
        as_segmentation(prediction, "prediction"),
        mask=as_mask(mask),
        workers=as_workers(workers),
    )
    return images.overlap(options.similarity)


def similarity_map(
    reference: "Comparable",
    prediction: "Comparable",
    *,
    similarity: "str | Similarity" = "absolute",
    mask: "Comparable | None" = None,
) -> NDArray[np.float32]:
    """f at every pixel between two segmentations whose labels correspond.

    For regions that are yet to be matched use ``compare(…).map()``.

    Parameters
    ----------
    reference, prediction, similarity, mask
        As for `compare`.

    Returns
    -------
    ndarray of float32
        The shape of the image; NaN outside the mask.

    Examples
    --------
    >>> import probdice
    >>> probdice.similarity_map([[0.9, 0.5], [0.1, 0.5]], [[0.8, 0.5], [0.2, 0.5]])
    array([0.9, 1. ], dtype=float32)
    """
    result = compare(reference, prediction, similarity=similarity, match="labels", mask=mask)
    return result.map()


@dataclass(frozen=True)
class Group:
    """Regions of both sides that correspond, and how well they do.

    Attributes
    ----------
    reference, prediction : tuple of int or str
        Labels of the regions; one of the two is empty for a region without a partner.
    similarity : float
        D between the auxiliary segmentations of the two, by the similarity of the comparison.
    dice, jaccard : float
        Fuzzy Dice coefficient and Jaccard index.
    reference_volume, prediction_volume : float
        Sums of probability, in pixels.

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

    def __repr__(self) -> str:
        return (
            f"Group(reference={self.reference}, prediction={self.prediction}, dice={self.dice:g})"
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
    chance, chance_error, adjusted_score : float
        The score of independent segmentations with the same regions, its standard error (0 where
        it is exact), and (score − chance) / (1 − chance).
    explained : dict
        Per side, the share of its variance that the other side explains.
    groups : tuple of Group
        Corresponding regions, then those without a partner.
    merges : tuple of Merge
        Spare regions that were merged, in order.
    unmatched, empty : dict
        Per side, the labels of regions without a partner, and of those with nothing in Ω.
    notes : tuple of Note
        Sentences worth knowing.
    weights : ndarray
        1 − D of every pair of regions; rows are `reference_labels`, columns `prediction_labels`.
    pixels : int
        How many pixels are compared.
    pixel_volume : float or None
        What one pixel covers in mm³, where the images are three-dimensional and say so.
    similarity, match, merge
        What was asked for.
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
      score 0.8750   adjusted 0.7500 (chance 0.5000)   lowest Dice 0.8571 (2 ↔ 9)
      explained: reference 0.6667, prediction 0.3333
      matched score 0.6250; 1 prediction region merged
      reference  prediction    Dice  similarity
              1        5, 7  0.8889      0.8750
              2           9  0.8571      0.8750
    """

    overlap: Overlap
    _correspondence: Correspondence
    _options: Options
    images: Images | None = None
    pixel_volume: float | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without the images, which may be larger than everything else a million times."""
        _ = self.notes  # some of them are about the images
        return self.__dict__ | {"images": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def detach(self) -> "Comparison":
        """The same without the images: numbers and labels alone.

        Examples
        --------
        >>> import probdice
        >>> probdice.compare([1, 1, 2, 2], [5, 5, 5, 8]).detach().images is None
        True
        """
        result = Comparison(self.overlap, self._correspondence, self._options)
        result.__dict__.update(self.__getstate__())
        return result

    # -- what was asked --------------------------------------------------------------------------

    @property
    def options(self) -> Options:
        """All of it, as one object."""
        return self._options

    @property
    def similarity(self) -> Similarity:
        """How probability vectors were compared."""
        return self._options.similarity

    @property
    def match(self) -> Any:
        """How regions were made to correspond: a word, a mapping, or the groups that were given."""
        rule = self._options.match
        if isinstance(rule, Fixed):
            return dict(rule.pairs)
        return rule.groups if isinstance(rule, Given) else rule

    @cached_property
    def labels_by(self) -> "LabelsBy | None":
        """With ``match="labels"``, whether equal names or equal numbers correspond; else None."""
        return labels_by(self.overlap) if self._options.match == "labels" else None

    @property
    def merge(self) -> Merging:
        """Which side's spare regions might be merged."""
        return self._options.merge

    @property
    def pixels(self) -> int:
        """How many pixels are compared."""
        return self.overlap.pixels

    # -- scores ----------------------------------------------------------------------------------

    @cached_property
    def _measured(self) -> Measured:
        result = self._correspondence
        return measure(self.overlap, result.groups, result.costs, self.images)

    @cached_property
    def score(self) -> float:
        """D after matching and, where allowed, merging."""
        return self._measured.score

    @cached_property
    def matched_score(self) -> float:
        """D after matching alone."""
        result = self._correspondence
        if not result.joins:
            return self.score
        return measure(self.overlap, result.matched, None, self.images).score

    @cached_property
    def _costs(self) -> NDArray[Any]:
        """Σ 1 − f of every group, in units of the overlap."""
        result = self._correspondence
        if result.costs is not None:
            return result.costs
        return group_costs(self.overlap, result.groups, self.images)

    @cached_property
    def _chance(self) -> Chance:
        return self._chance_with(self.images)

    def _chance_with(self, images: Images | None) -> Chance:
        return chance_of(self.overlap, self._options, self._correspondence.matched, images)

    @property
    def chance(self) -> float:
        """The score of the same comparison if the two segmentations were independent."""
        return self._chance.level

    @property
    def chance_error(self) -> float:
        """The standard error of `chance`: 0 where it is exact."""
        return self._chance.error

    @property
    def adjusted_score(self) -> float:
        """(score − chance) / (1 − chance): 1 for identity, about 0 for independent pixels."""
        return _adjusted(self.score, self.chance)

    @cached_property
    def explained(self) -> dict[Side, float]:
        """Per side, the share of its variance that the other side explains."""
        if self.overlap.crisp:
            return explained_by_counts(self.overlap)
        if self.images is None:
            raise NeedsImages(
                "what is explained of probabilities needs the images: compare the segmentations "
                "themselves, or ask for .explained before the images are dropped"
            )
        keys = Both(self.overlap.reference.keys, self.overlap.prediction.keys)
        return explained_by_moments(self.images.moments(keys), self.pixels)

    # -- regions ---------------------------------------------------------------------------------

    @cached_property
    def reference_labels(self) -> tuple[Label, ...]:
        """Labels of the reference's regions that are not empty: the rows of `weights`."""
        return self._occupied("reference")

    @cached_property
    def prediction_labels(self) -> tuple[Label, ...]:
        """Labels of the prediction's regions that are not empty: the columns of `weights`."""
        return self._occupied("prediction")

    def labels(self, side: Side) -> tuple[Label, ...]:
        """Labels of one side's regions that are not empty."""
        return self.reference_labels if side == "reference" else self.prediction_labels

    def _occupied(self, side: Side) -> tuple[Label, ...]:
        regions = self.overlap.side(side)
        if regions.occupied.size == len(regions):
            return regions.labels
        return tuple(regions.labels[k] for k in regions.occupied.tolist())

    @property
    def weights(self) -> NDArray[np.float64]:
        """1 − D of every pair of regions that are not empty; read-only."""
        return self.overlap.weights

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Corresponding regions, then those without a partner."""
        return tuple(_groups(self))

    @cached_property
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
            for join in self._correspondence.joins
        )

    @cached_property
    def unmatched(self) -> dict[Side, tuple[Label, ...]]:
        """Per side, the labels of regions without a partner."""
        groups = self._correspondence.groups
        return {
            side: tuple(self.overlap.side(side).label(k) for k in groups.spare(side).tolist())
            for side in SIDES
        }

    @property
    def empty(self) -> dict[Side, tuple[Label, ...]]:
        """Per side, the labels of regions with nothing in Ω."""
        return {side: self.overlap.side(side).empty for side in SIDES}

    @property
    def lowest(self) -> Group:
        """The matched group with the lowest Dice; any group where none is matched."""
        matched = [group for group in self.groups if group.reference and group.prediction]
        return min(matched or self.groups, key=lambda group: group.dice)

    @cached_property
    def notes(self) -> tuple[Note, ...]:
        """Sentences worth knowing."""
        from probdice.notes import notes_of

        return notes_of(self)

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
        from probdice.indices import indices_of

        return indices_of(self, self._correspondence.groups, background)

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
        from probdice.detection import detection_of

        return detection_of(
            self, self._correspondence, threshold=threshold, background=background, by=by
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
        from probdice.components import component_scores

        return component_scores(
            self.overlap,
            self._correspondence.groups,
            self.need_images("component_scores()"),
            background=background,
            connectivity=connectivity,
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
        The reference may be crisp or soft. `probdice.calibration` names the conventions.

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
        from probdice.calibration import calibration_of

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
        lists = key_lists(self.overlap, self._correspondence.groups)
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
        return relabelled(self.overlap, self._correspondence, images, into)

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
        from probdice.comparison_json import comparison_to_dict

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
        from probdice.comparison_json import comparison_from_dict

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
        from probdice.printing import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from probdice.printing import as_html

        return as_html(self)


def _adjusted(score: float, chance: float) -> float:
    room = 1 - chance
    return (score - chance) / room if room >= UNDECIDED else nan


def _groups(result: Comparison) -> list[Group]:
    """The groups with their labels, Dice and volumes."""
    table, groups = result.overlap, result._correspondence.groups
    similarities = np.clip(1 - result._costs * (table.unit / table.pixels), 0, 1)
    try:
        measured = result._measured.differences
        differences = result._costs if measured is None else measured
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
