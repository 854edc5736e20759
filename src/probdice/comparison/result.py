"""The result of a comparison."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import isnan
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from probdice.comparison.foreground import Foreground, check_named
from probdice.comparison.relabelling import Target, relabelled
from probdice.comparison.result_groups import Group, Merge, groups_of, merges_of
from probdice.data.segmentation import Segmentation
from probdice.engine.pair import SegmentationPair
from probdice.errors import InputError, Note
from probdice.files.atomic_files import null_for_nan
from probdice.method.background import BackgroundIndices, find_background
from probdice.method.chance import Chance, adjusted, chance_of
from probdice.method.explained import explained_by_counts, explained_by_moments
from probdice.method.groups import counted_groups
from probdice.method.label_matching import LabelsBy, labels_by
from probdice.method.matching import GivenGroups, GivenPairs
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
from probdice.method.sides import SIDES, Both, Side
from probdice.method.similarity import Similarity
from probdice.metrics.verdict import words_of
from probdice.options import CompareOptions
from probdice.text.table_output import data_frame

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from probdice.metrics.boundaries import Boundaries
    from probdice.metrics.calibration import Binning, Calibration
    from probdice.metrics.component_table import ComponentTable
    from probdice.metrics.components import ComponentScores
    from probdice.metrics.derived import Derived
    from probdice.metrics.detection import Detection, OverlapMeasure
    from probdice.metrics.indices import Indices
    from probdice.metrics.unions import Members
    from probdice.pictures import Kind, Palette

__all__ = ["FORMAT_VERSION", "Comparison", "Group", "Merge", "Numbers"]

T = TypeVar("T")

FORMAT_VERSION = 3  # of to_dict and to_json
MAX_PRINTED_GROUPS = 12
THRESHOLDS = tuple(k / 10 for k in range(1, 10))  # as in QUBIQ


class Numbers:
    """Computed values by name. Each value is computed once.

    `get` computes a missing value. `known` never computes a value. Text and JSON contain only
    stored values and values that require no further pass over the pixels.
    """

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self._values: dict[str, Any] = dict(values or {})

    def get(self, name: str, compute: Callable[[], T]) -> T:
        """Return the value with this name. Compute it if it is not stored."""
        if name not in self._values:
            self._values[name] = compute()
        value: T = self._values[name]
        return value

    def put(self, name: str, value: Any) -> None:
        """Store a value. Replace an earlier value that was computed with other options."""
        self._values[name] = value

    def known(self, name: str) -> Any:
        """Return the value with this name, or None if the value was not computed."""
        return self._values.get(name)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def copy(self) -> "Numbers":
        """Return an independent copy with the same values."""
        return Numbers(self._values)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """The result of `compare`.

    Attributes are computed when they are accessed. Groups, scores, chance levels and explained
    shares are then stored. If the images are no longer available, an attribute that is not stored
    and requires another pass over the pixels raises an error; the Dice and Jaccard of groups are
    NaN instead.

    Attributes
    ----------
    overlap : Overlap
        The overlap from which the correspondence and most metrics are computed.
    images : SegmentationPair or None
        The compared images; None after `detach`, unpickling, reading from JSON or
        `Overlap.compare`.
    score : float
        D, the mean similarity of the pixels, after matching and merging. It ranges from 0 to 1
        (identical segmentations). For two label maps, it is the pixel accuracy under the
        correspondence: the share of pixels whose two labels correspond. If the Aitchison similarity
        has a floor, the score exceeds this share unless the share is 1, because the similarity of
        all other pixels is then a constant above 0.
    matched_score : float
        The score D after matching, before merging.
    chance : float
        The expected score of independent segmentations with the same region sizes.
    chance_error : float
        The standard error of `chance`; 0 unless `chance` is estimated from sampled pixels.
    adjusted_score : float
        The score adjusted for chance, (score − chance) / (1 − chance); NaN if `chance` is almost
        1.
    mean_dice : float
        Mean Dice of all groups except faint ones (`Group.faint`). An unmatched region of either
        side counts as Dice 0.
    lowest_dice : float
        Lowest Dice of all groups except faint ones.
    background : dict or None
        Per side, the label or name of the background; None if no background was given.
    foreground : tuple of Group
        All groups except the background group.
    foreground_dice : float
        Mean Dice of the foreground groups except faint ones. All foreground measures require a
        background. If all foreground groups are faint, all foreground measures except
        `foreground_chance` and `foreground_chance_error` are NaN.
    pooled_dice : float
        Dice of all foreground groups together, 2 Σ overlap / Σ volumes.
    foreground_score : float
        The ratio Σ overlap of the foreground groups / (pixels − overlap of the background). For
        label maps, this is the share of agreeing pixels among those that are foreground on at
        least one side.
    foreground_chance : float
        The expected foreground score of independent segmentations with the same region sizes.
    adjusted_foreground_score : float
        The foreground score adjusted for chance,
        (foreground_score − foreground_chance) / (1 − foreground_chance).
    explained : dict
        ``explained["reference"]`` (reference explained) is the share of the variance of the
        reference that the prediction explains. This share is 1 if the prediction only subdivides
        reference regions. ``explained["prediction"]`` (prediction explained) is the share of the
        variance of the prediction that the reference explains. This share is 1 if the prediction
        only merges reference regions. A share is NaN if the variance is 0.
    groups : tuple of Group
        Groups of corresponding regions, followed by unmatched regions.
    lowest : Group
        The group with the lowest Dice, excluding faint groups.
    merges : tuple of Merge
        Regions that were merged, in the order of merging.
    unmatched : dict
        Per side, the labels of unmatched regions, except those of faint groups.
    empty : dict
        Per side, the labels of regions that have no compared pixel or, for probabilities, have
        probability 0 at every compared pixel.
    notes : tuple of Note
        Messages about the comparison.
    weights : ndarray
        The weight 1 − D of every pair of non-empty regions, where D is the score of the two
        regions alone. Rows correspond to `reference_labels` and columns to `prediction_labels`.
    pixels : int
        Number of compared pixels (voxels of a volume).
    pixel_volume : float or None
        Volume of a voxel in mm³ if the images are three-dimensional and have a geometry.
    axes : int or None
        Number of axes of the images, if known.
    similarity : Similarity
        The function that measures the similarity of two probability vectors.
    match : str, mapping or groups
        The matching rule, the given pairs, or the given groups.
    merge : str
        The sides whose unmatched regions may be merged.
    labels_by : {"name", "number"} or None
        With ``match="labels"``, whether regions correspond by name or by number.

    Examples
    --------
    >>> import probdice
    >>> result = probdice.compare([1, 1, 1, 1, 2, 2, 2, 2], [7, 7, 5, 5, 5, 9, 9, 9], merge="both")
    >>> result.score, result.matched_score
    (0.875, 0.625)
    >>> print(result)
    Comparison (absolute, merge='both'): 2 reference and 3 prediction regions over 8 pixels
      mean Dice 0.8730   adjusted score 0.7500 (chance 0.5000)
      reference explained 0.6667   prediction explained 0.3333
      lowest Dice 0.8571 (2 ↔ 9)   unmatched regions: 0
      score 0.8750   matched score 0.6250; 1 prediction region merged
      reference  prediction    Dice  similarity
              1        5, 7  0.8889      0.8750
              2           9  0.8571      0.8750
    """

    overlap: Overlap
    correspondence: Correspondence
    options: CompareOptions
    images: SegmentationPair | None = None
    pixel_volume: float | None = None
    axes: int | None = None
    input_notes: tuple[Note, ...] = ()
    numbers: Numbers = field(default_factory=Numbers)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields without the images, which may be much larger than the other fields."""
        return {entry.name: getattr(self.detach(), entry.name) for entry in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)

    def detach(self) -> "Comparison":
        """Return the same comparison without the images.

        Examples
        --------
        >>> import probdice
        >>> probdice.compare([1, 1, 2, 2], [5, 5, 5, 8]).detach().images is None
        True
        """
        from probdice.comparison.requested_metrics import STORED_METRICS

        if self.images is None:
            return self
        numbers = self.numbers.copy()
        numbers.put("notes", self.notes)  # some notes need the images
        for name, metric in STORED_METRICS.items():
            if name in numbers:
                numbers.put(name, metric.detach(numbers.known(name)))
        return replace(self, images=None, numbers=numbers)

    def compute(self, *names: str) -> None:
        """Compute the named attributes now, while the images are available.

        Parameters
        ----------
        *names : str
            Names of attributes, such as "score", "chance", "explained", "groups" or "notes".

        Examples
        --------
        >>> import probdice
        >>> result = probdice.compare([[0.9, 0.2], [0.1, 0.8]], [[0.8, 0.3], [0.2, 0.7]])
        >>> result.compute("chance")
        >>> round(result.detach().chance, 3)
        0.65
        """
        for name in names:
            if not isinstance(getattr(type(self), name, None), property):
                raise InputError(
                    f"names: expected attributes that are computed, such as 'score' or 'chance', "
                    f"found {name!r}"
                )
            getattr(self, name)

    # -- options -----------------------------------------------------------------------------------

    @property
    def similarity(self) -> Similarity:
        """The function that measures the similarity of two probability vectors."""
        return self.options.similarity

    @property
    def match(self) -> Any:
        """The matching rule, the given mapping, or the given groups."""
        rule = self.options.match
        if isinstance(rule, GivenPairs):
            return dict(rule.pairs)
        return rule.groups if isinstance(rule, GivenGroups) else rule

    @property
    def labels_by(self) -> "LabelsBy | None":
        """With ``match="labels"``, whether regions correspond by name or by number; else None."""
        return labels_by(self.overlap) if self.options.match == "labels" else None

    @property
    def merge(self) -> Merging:
        """The sides whose unmatched regions may be merged."""
        return self.options.merge

    @property
    def background(self) -> dict[Side, Label] | None:
        """Per side, the label or name of the background; None if no background was given."""
        background = self.options.background
        return None if background is None else background.to_dict()

    @property
    def pixels(self) -> int:
        """Number of compared pixels."""
        return self.overlap.pixels

    # -- scores ----------------------------------------------------------------------------------

    @property
    def measured(self) -> Measured:
        """The score, and the sums that are computed in the same pass."""
        result = self.correspondence
        return self.numbers.get(
            "measured", lambda: measure(self.overlap, result.groups, result.costs, self.images)
        )

    @property
    def score(self) -> float:
        """D, the mean similarity of the pixels, after matching and merging.

        For two label maps, it is the pixel accuracy under the correspondence: the share of pixels
        whose two labels correspond. If the Aitchison similarity has a floor, the score exceeds this
        share unless the share is 1, because the similarity of all other pixels is then a constant
        above 0.
        """
        return self.numbers.get("score", lambda: self.measured.score)

    @property
    def matched_score(self) -> float:
        """The score D after matching, before merging."""
        return self.numbers.get("matched_score", self._matched_score)

    def _matched_score(self) -> float:
        result = self.correspondence
        if not result.merges:
            return self.score
        return measure(self.overlap, result.matched, None, self.images).score

    @property
    def costs(self) -> NDArray[Any]:
        """The cost Σ (1 − f) of every group, in multiples of `Overlap.unit`."""
        result = self.correspondence
        if result.costs is not None:
            return result.costs
        return self.numbers.get(
            "costs", lambda: group_costs(self.overlap, result.groups, self.images)
        )

    @property
    def chance(self) -> float:
        """The expected score of the same comparison if the segmentations were independent."""
        return self._chance().level

    @property
    def chance_error(self) -> float:
        """The standard error of `chance`; 0 unless `chance` is estimated from sampled pixels."""
        return self._chance().error

    def _chance(self) -> Chance:
        matching, matched = self.options.matching, self.correspondence.matched
        return self.numbers.get(
            "chance", lambda: chance_of(self.overlap, matching, matched, self.images)
        )

    @property
    def adjusted_score(self) -> float:
        """The score adjusted for chance, (score − chance) / (1 − chance).

        It is 1 for identical segmentations, about 0 for independent segmentations, and NaN if
        `chance` is almost 1.
        """
        return adjusted(self.score, self.chance)

    @property
    def explained(self) -> dict[Side, float]:
        """Per side, the share of its variance that the other side explains.

        ``explained["reference"]`` (reference explained) is the share of the variance of the
        reference that the prediction explains. This share is 1 if the prediction only subdivides
        reference regions. ``explained["prediction"]`` (prediction explained) is the share of the
        variance of the prediction that the reference explains. This share is 1 if the prediction
        only merges reference regions. A share is NaN if the variance is 0.
        """
        return self.numbers.get("explained", self._explained)

    def _explained(self) -> dict[Side, float]:
        if self.overlap.crisp:
            return explained_by_counts(self.overlap)
        if self.images is None:
            raise NeedsImages(
                "The explained shares of probabilities require the images. Compare the "
                "segmentations "
                "themselves, or access .explained before .detach()."
            )
        keys = Both(self.overlap.reference.keys, self.overlap.prediction.keys)
        return explained_by_moments(self.images.moments(keys), self.pixels)

    def without_a_pass(self, name: str) -> Any:
        """Return a metric if it does not require another pass over the pixels, else None.

        Parameters
        ----------
        name : str
            Name of the attribute, such as "score", "chance" or "explained".

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

    # -- foreground --------------------------------------------------------------------------------

    @property
    def background_regions(self) -> BackgroundIndices:
        """Per side, the index of the background region, or None."""
        return self.numbers.get(
            "background_regions",
            lambda: find_background(self.overlap, self.options.background),
        )

    @property
    def foreground(self) -> tuple[Group, ...]:
        """All groups except the background group, if a background was given."""
        return Foreground.of(self).groups

    @property
    def foreground_dice(self) -> float:
        """Mean Dice of the foreground groups except faint ones; NaN if all of them are faint."""
        return Foreground.named(self, "foreground_dice").dice

    @property
    def pooled_dice(self) -> float:
        """Dice of all foreground groups together; NaN if all of them are faint.

        The pooled Dice is 2 Σ overlap / Σ volumes over all foreground groups.
        """
        return Foreground.named(self, "pooled_dice").pooled_dice

    @property
    def foreground_score(self) -> float:
        """The ratio Σ overlap of the foreground / (pixels − overlap of the background).

        It is NaN if all foreground groups are faint. For label maps, this is the share of agreeing
        pixels among those that are foreground on at least one side. Overlaps are Σ min(p, q), as in
        Dice, for every similarity.
        """
        return Foreground.named(self, "foreground_score").score

    @property
    def foreground_chance(self) -> float:
        """The expected foreground score if the segmentations were independent."""
        check_named(self, "foreground_chance")
        return self._chance().foreground

    @property
    def foreground_chance_error(self) -> float:
        """Standard error of `foreground_chance`; 0 unless it is estimated from sampled pixels."""
        check_named(self, "foreground_chance_error")
        return self._chance().foreground_error

    @property
    def adjusted_foreground_score(self) -> float:
        """The foreground score adjusted for chance.

        It is (foreground_score − foreground_chance) / (1 − foreground_chance).
        """
        check_named(self, "adjusted_foreground_score")
        return adjusted(self.foreground_score, self.foreground_chance)

    # -- regions ---------------------------------------------------------------------------------

    @property
    def reference_labels(self) -> tuple[Label, ...]:
        """Labels of the non-empty reference regions, which are the rows of `weights`."""
        return self.overlap.reference.occupied_labels

    @property
    def prediction_labels(self) -> tuple[Label, ...]:
        """Labels of the non-empty prediction regions, which are the columns of `weights`."""
        return self.overlap.prediction.occupied_labels

    def labels(self, side: Side) -> tuple[Label, ...]:
        """Return the labels of the non-empty regions of one side."""
        return self.overlap.side(side).occupied_labels

    def region_count(self, side: Side) -> int:
        """Return the number of non-empty regions of one side, except those of faint groups."""
        return sum(len(group.side(side)) for group in self.groups if not group.faint)

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weight 1 − D of every pair of non-empty regions, as a read-only array.

        D is the score of the two regions alone.
        """
        return self.overlap.weights

    @property
    def groups(self) -> tuple[Group, ...]:
        """Groups of corresponding regions, followed by unmatched regions."""
        return self.numbers.get("groups", lambda: groups_of(self))

    @property
    def merges(self) -> tuple[Merge, ...]:
        """Regions that were merged, in the order of merging."""
        return merges_of(self)

    @property
    def unmatched(self) -> dict[Side, tuple[Label, ...]]:
        """Per side, the labels of unmatched regions, except those of faint groups."""
        return self.numbers.get("unmatched", self._unmatched)

    def _unmatched(self) -> dict[Side, tuple[Label, ...]]:
        groups = self.correspondence.groups
        counts = counted_groups(self.overlap, groups)
        return {
            side: tuple(
                self.overlap.side(side).label(k)
                for k in groups.unmatched(side).tolist()
                if counts[groups.group_indices(side)[k]]
            )
            for side in SIDES
        }

    @property
    def empty(self) -> dict[Side, tuple[Label, ...]]:
        """Per side, the labels of the empty regions.

        A region is empty if it has no compared pixel or, for probabilities, if its probability is 0
        at every compared pixel.
        """
        return {side: self.overlap.side(side).empty for side in SIDES}

    @property
    def mean_dice(self) -> float:
        """Mean Dice of all groups except faint ones. An unmatched region counts as 0.

        The mean is NaN if the Dice of a group requires images that are not available.
        """
        dice = [group.dice for group in self.groups if not group.faint]
        return sum(dice) / len(dice)

    @property
    def lowest_dice(self) -> float:
        """Lowest Dice of all groups except faint ones. An unmatched region counts as 0.

        The result is NaN if the Dice of a group requires images that are not available.
        """
        return self.lowest.dice

    @property
    def lowest(self) -> Group:
        """The group with the lowest Dice, excluding faint groups. NaN counts as lowest."""
        return min(
            (group for group in self.groups if not group.faint),
            key=lambda group: -1 if isnan(group.dice) else group.dice,
        )

    @property
    def notes(self) -> tuple[Note, ...]:
        """Messages about the comparison."""
        from probdice.comparison.notes import notes_of, slice_notes

        # Boundaries may be measured after the other notes were stored.
        return (*self.numbers.get("notes", lambda: notes_of(self)), *slice_notes(self))

    # -- other metrics -----------------------------------------------------------------------------

    def indices(self) -> "Indices":
        """Compute the Rand index, variation of information, mean IoU, κ and other indices.

        Examples
        --------
        >>> import probdice
        >>> result = probdice.compare([0, 0, 1, 1], [0, 1, 1, 1], match="labels", background=0)
        >>> indices = result.indices()
        >>> round(indices.mean_dice, 4), indices.mean_foreground_dice
        (0.7333, 0.8)
        """
        from probdice.metrics.indices import indices_of

        return indices_of(self, self.correspondence.groups)

    def detection(self, *, threshold: float = 0.5, by: "OverlapMeasure" = "jaccard") -> "Detection":
        """Compute detection metrics with the regions as instances.

        The background of the comparison and the regions of faint groups are not instances.

        Parameters
        ----------
        threshold : float, optional
            A group is a true positive if its index (see `by`) is positive and at least this value.
        by : {"jaccard", "dice"}, optional
            The index that is compared with the threshold.

        Examples
        --------
        >>> import probdice
        >>> result = probdice.compare([0, 1, 1, 1, 2], [0, 5, 5, 0, 0], background=0)
        >>> detection = result.detection()
        >>> detection.true_positives, detection.false_positives, detection.misses
        (1, 0, 1)
        """
        from probdice.metrics.detection import detection_of

        return detection_of(self, self.correspondence, threshold=threshold, by=by)

    def component_scores(self, *, connectivity: int | None = None) -> "ComponentScores":
        """Score every connected component of the reference, except those of the background.

        A component is compared with the prediction regions of its group. Only the pixels that are
        nearer to this component than to the other components of the group are compared (as in
        CC-Metrics, with distances in pixels). An unmatched prediction region also has an entry in
        the result, with Dice 0. The reference must be a label map. This method requires
        connected-components-3d (extra `instances`) and both images in memory.

        Parameters
        ----------
        connectivity : {2, 4, 8, 6, 18, 26}, optional
            Number of neighbours of a pixel. By default, diagonal neighbours are included.

        Examples
        --------
        >>> import probdice
        >>> result = probdice.compare([1, 1, 1, 0, 0, 1], [1, 1, 1, 0, 0, 0], background=0)
        >>> result.component_scores().mean_dice
        0.5
        """
        from probdice.metrics.components import component_scores
        from probdice.metrics.group_shares import background_masks

        return component_scores(
            self.overlap,
            self.correspondence.groups,
            self.need_images("component_scores()"),
            background_masks(self),
            connectivity=connectivity,
        )

    def boundaries(
        self,
        *,
        tolerances: float | Iterable[float] = (),
        percentiles: float | Iterable[float] = (95,),
        levels: float | Iterable[float] | None = None,
        infinite: float | None = None,
        derived: "Members | None" = None,
    ) -> "Boundaries":
        """Compute the Hausdorff distance, average distance and surface Dice of each group.

        Distances are exact. They are measured between surfaces that lie halfway between voxels, in
        millimetres if the images have a geometry and in pixels otherwise. Probabilities are not
        thresholded at one half: every measure is the mean over several levels. Means over groups
        exclude faint groups and the background, if one is given. This method requires images with
        two or three dimensions. Unless `derived` is given, the distances are stored in the
        comparison and included in its JSON.

        Parameters
        ----------
        tolerances : float or iterable of float, optional
            Tolerances of the surface Dice (``nsd``), in the unit of distances. There is no default
            tolerance.
        percentiles : float or iterable of float, optional
            Percentiles of the distances between surfaces, such as 95 for ``hd95``.
        levels : float or iterable of float, optional
            Levels of probability; 0.1, 0.2, …, 0.9 by default. At each level, the pixels whose
            probability exceeds the level are inside the surface. The surfaces of a label map are
            the same at every level.
        infinite : float, optional
            Penalty distance for regions that are absent from one side; infinity by default.
        derived : mapping of str to label or sequence of labels, optional
            Unions of regions to measure instead of the groups (see `Comparison.derived`).

        Returns
        -------
        Boundaries

        Examples
        --------
        >>> import numpy as np
        >>> import probdice
        >>> reference, prediction = np.zeros((2, 14, 14), int)
        >>> reference[4:10, 4:10] = prediction[4:10, 5:11] = 1
        >>> boundaries = probdice.compare(reference, prediction).boundaries(tolerances=0.5)
        >>> boundaries["hd95"].tolist()
        [1.0, 1.0]
        """
        from probdice.comparison.requested_metrics import measured_boundaries

        return measured_boundaries(
            self,
            tolerances=_several(tolerances),
            percentiles=_several(percentiles),
            levels=None if levels is None else _several(levels),
            infinite=infinite,
            derived=derived,
        )

    def requested_boundaries(self) -> "Boundaries | None":
        """Return the boundary distances that the options of the comparison request, or None."""
        if not self.options.boundaries:
            return None
        return self.boundaries(tolerances=self.options.tolerance, infinite=self.options.infinite)

    def requested_derived(self) -> "Derived | None":
        """Return the derived regions that the options request, or None.

        If the options also request boundaries, the boundary distances of these regions are computed
        and stored. If neither side of this image has a member of a derived region, this member
        counts as empty.
        """
        from probdice.comparison.requested_metrics import requested_derived

        return requested_derived(self) if self.options.derived else None

    def requested_components(self) -> "ComponentTable | None":
        """Return the table of connected components that the options request, or None."""
        from probdice.comparison.requested_metrics import requested_components

        return None if self.options.components is None else requested_components(self)

    def derived(self, regions: "Members") -> "Derived":
        """Compare unions of regions. The unions may overlap each other.

        With ``match="labels"``, members are labels or names of both sides, and a member that only
        one side has is empty on the other side. A name that only one side has selects the region of
        the other side with the same number. Otherwise, members are labels or names of the
        reference, and a union also contains the corresponding prediction regions. A member that
        only the prediction has is then empty. A member that neither side has raises an error.

        Parameters
        ----------
        regions : mapping of str to label or sequence of labels
            The members of each derived region by name, such as ``{"whole tumour": (1, 2, 3)}``.

        Returns
        -------
        Derived
            Dice, Jaccard and volumes of each union.

        Examples
        --------
        >>> import probdice
        >>> result = probdice.compare([0, 1, 2, 3, 3], [0, 0, 2, 1, 3], match="labels")
        >>> derived = result.derived({"whole tumour": (1, 2, 3), "core": (1, 3)})
        >>> round(derived["whole tumour"].dice, 4), derived["core"].dice
        (0.8571, 0.8)
        """
        from probdice.metrics.derived import derived_of
        from probdice.metrics.unions import check_members, unions_of

        check_members(regions, [self.overlap])
        return derived_of(self, unions_of(self, regions))

    def calibration(
        self,
        *,
        bins: int = 15,
        binning: "Binning" = "width",
        thresholds: Iterable[float] = THRESHOLDS,
    ) -> "Calibration":
        """Measure the calibration of the prediction's probabilities.

        One pass over the pixels computes:

        - reliability diagrams of the most probable regions and of every group, with the expected
          and the maximum calibration error,
        - the chance values of these errors: their means for a calibrated predictor with the same
          probabilities,
        - the Brier score of every group and of all groups, and its decomposition,
        - the log loss of all groups,
        - the Dice of every group at several thresholds.

        The reference may be a label map or probabilities. The module `probdice.metrics.calibration`
        describes the conventions.

        Parameters
        ----------
        bins : int, optional
            Number of bins of the reliability diagrams.
        binning : {"width", "mass"}, optional
            "width" creates bins of equal width. "mass" creates bins with equal numbers of pixels,
            as far as ties allow.
        thresholds : iterable of float, optional
            Thresholds that are applied to both sides to compute Dice. The default is 0.1, 0.2, …,
            0.9, as in QUBIQ.

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

    def need_images(self, method: str) -> SegmentationPair:
        """Return the images. If there are none, raise an error that names the given method."""
        if self.images is None:
            raise NeedsImages(
                f"{method} requires the images. This comparison has none: it was detached, "
                f"unpickled, or made from JSON or an overlap. Compare the segmentations again."
            )
        return self.images

    def map(self, *, into: Any = None) -> NDArray[np.float32]:
        """Return the similarity f at every pixel, under the correspondence.

        Pixels that are not compared, such as those outside the mask, are NaN.

        Without `into`, if a side is a Dask array, the map is also a Dask array and is computed
        lazily.

        Parameters
        ----------
        into : array, optional
            Output array with the shape of the image, such as a Zarr array or a memory map. The map
            is written to this array block by block, so that the whole map is never in memory. The
            method then returns `into`.

        Examples
        --------
        >>> import probdice
        >>> probdice.compare([1, 1, 2, 2], [5, 5, 5, 8]).map()
        array([1., 1., 0., 1.], dtype=float32)
        """
        lists = key_lists(self.overlap, self.correspondence.groups)
        return self.need_images("map()").map(self.similarity, lists, into)

    def relabelled(self, *, into: Target | None = None) -> Segmentation:
        """Return the prediction with the labels of the reference.

        The prediction regions of a group get the label of the group's matched reference region. An
        unmatched prediction region keeps its label if the reference does not use that label;
        otherwise it gets a new label. The name of an unmatched region ends in "(unmatched)".

        Pixels outside the mask are relabelled too. A region that lies completely outside the mask
        is unmatched. Values outside the mask that are not labels, such as NaN, become 0, which may
        be the label of a region of the reference.

        Without `into`, if the prediction is a Dask array, the new array is also a Dask array.

        Parameters
        ----------
        into : callable, optional
            Function that creates the output array, which is written block by block. The function
            is called with a shape and a dtype, as in ``lambda shape, dtype: zarr.create_array(…)``.

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
        """Draw a Matplotlib figure without showing or saving it. See `pictures.plot`.

        Parameters
        ----------
        kind : str, optional
            "overview", "regions", "map", "views", "correspondence", "overlap", "slices",
            "histogram" or "boundaries".
        ax : Axes or several, optional
            Axes to draw on, one per panel. By default, a new figure is created.
        figsize : (float, float), optional
            Width and height of the new figure in inches.
        place : sequence of int, optional
            Indices of the voxel through which slices of a volume are taken. By default, slices are
            taken where the two sides differ most or, for "boundaries", at the largest distance.
        palette : {"given", "safe", "rgb"}, optional
            "given" uses the colours of the files and name tables. "safe" uses colours that
            colour-blind readers can distinguish. "rgb" uses red, green and blue for up to three
            groups.

        Examples
        --------
        >>> import probdice
        >>> figure = probdice.compare([[1, 1], [2, 2]], [[5, 5], [5, 8]]).plot("overlap")
        >>> figure.axes[0].images[0].get_array().round(2).tolist()  # Dice of pairs that overlap
        [[0.8, None], [0.4, 0.67]]
        """
        from probdice import pictures

        return pictures.plot(self, kind, ax=ax, figsize=figsize, place=place, palette=palette)

    def report(
        self,
        path: str | PathLike[str],
        *,
        title: str | None = None,
        image: Any = (),
        surface: Any = (),
    ) -> None:
        """Write a self-contained HTML report. See `report.write`.

        Parameters
        ----------
        path : path
            Path of the HTML file.
        title : str, optional
            Title of the page. The default contains the names of the files.
        image : array, path or image, or several, optional
            Image to show under the segmentations, such as the segmented scan.
        surface : path or several, optional
            Surfaces, one per hemisphere, on which to show values at vertices.

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

        report.write(self, path, title=title, image=image, surface=surface)

    # -- storing ---------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as built-in Python types, with the format version.

        Metrics that require another pass over the pixels, such as the chance level of
        probabilities, are included only if they have already been computed.

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
        """Return the output of `to_dict` as JSON. NaN becomes null.

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
        except ValueError:  # some value is NaN
            return json.dumps(null_for_nan(content), indent=indent, allow_nan=False)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Comparison":
        """Restore a comparison, without images, from the output of `to_dict`.

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
        """Restore a comparison, without images, from the output of `to_json`.

        Methods that require the images, such as `map` and `relabelled`, raise an error.

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
        """Return the groups as a table with one row per group. Labels are tuples.

        Volumes and their differences (prediction − reference) are in pixels. If `pixel_volume` is
        known, the `reference_ml`, `prediction_ml` and `difference_ml` columns contain the same
        quantities in millilitres.

        Examples
        --------
        >>> import probdice
        >>> frame = probdice.compare([1, 1, 2, 2], [5, 5, 5, 8]).to_frame()
        >>> frame["dice"].round(3).tolist(), frame["volume_difference"].tolist()
        ([0.8, 0.667], [1.0, -1.0])
        """
        from probdice.comparison.group_rows import group_rows

        return data_frame(group_rows(self))

    def to_csv(self) -> str:
        """Return the groups as CSV, one row per group. Semicolons separate the labels of a side.

        Examples
        --------
        >>> import probdice
        >>> text = probdice.compare([1, 1, 2, 2], [5, 5, 5, 8]).to_csv()
        >>> print(text.splitlines()[0][:35])
        group,reference,prediction,similari
        """
        from probdice.comparison.group_rows import groups_as_csv

        return groups_as_csv(self)

    # -- showing ---------------------------------------------------------------------------------

    def __repr__(self) -> str:
        """Return a one-line summary without computing any metrics. `print` shows the metrics."""
        reference, prediction = (self.overlap.side(side).occupied.size for side in SIDES)
        return (
            f"Comparison({self.similarity}: {reference} reference and {prediction} prediction "
            f"regions over {self.pixels:,} {words_of(self).of(self.pixels)})"
        )

    def __str__(self) -> str:
        from probdice.comparison.text import as_text

        return as_text(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """In IPython, show the same text as `print`."""
        printer.text(str(self))

    def _repr_html_(self) -> str:
        from probdice.comparison.text import as_html

        return as_html(self)


def _several(values: float | Iterable[float]) -> tuple[float, ...]:
    return tuple(values) if isinstance(values, Iterable) else (values,)
