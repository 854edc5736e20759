"""The segmentations of several raters, their comparisons and their common regions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import chain, combinations
from math import fsum
from os import PathLike
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from probdice.comparison.comparing import compare_images
from probdice.comparison.result import Comparison
from probdice.data.resampling import Interpolation
from probdice.data.segmentation import Segmentation
from probdice.engine.pair import SegmentationPair
from probdice.engine.several import Content, SegmentationSet
from probdice.errors import InputError, Note, ProbdiceError
from probdice.files.inputs import Comparable, as_mask, as_segmentation
from probdice.method.background import named_background
from probdice.method.overlap import Floats, Pairs, Regions
from probdice.method.region_labels import Label, shown_labels
from probdice.method.sides import Both
from probdice.method.similarity import Similarity
from probdice.options import TOLERANCE, CompareOptions, as_workers
from probdice.raters.rater_labels import RaterLabels, RaterMatch
from probdice.raters.region_matching import match_regions, most_frequent_labels

__all__ = ["Common", "Panel", "RaterMatch", "Raters", "by_name", "panel_of"]

Raters = Sequence[Comparable] | Mapping[str, Comparable]

MIN_RATERS = 2
BACKGROUND_INDEX = -1  # index of the common region of the background, before numbering
DIGITS = 9  # decimals of a sum of scores; smaller differences are rounding errors


@dataclass(frozen=True, eq=False)
class Common:
    """The common regions of a set of raters.

    Attributes
    ----------
    names : tuple of str
        The raters, in an order that depends only on their segmentations, not on their names.
    numbers : tuple of dict
        For each rater, a mapping of labels or channels to indices of common regions.
    region_labels : tuple of int or None
        For each common region, a unique integer label, if possible the one that most raters use;
        None if the region has only a name.
    region_names : mapping of int to str
        The names of common regions, by index. Regions without a name are omitted.
    """

    names: tuple[str, ...]
    numbers: tuple[dict[int, int], ...]
    region_labels: tuple[int | None, ...]
    region_names: Mapping[int, str]

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        """The displayed labels of the common regions."""
        return shown_labels(self.region_labels, self.region_names)

    def of(self, name: str) -> dict[int, int]:
        """Return the index of the common region for every region of one rater."""
        return self.numbers[self.names.index(name)]

    @cached_property
    def channels(self) -> tuple[int, ...]:
        """The indices of common regions by integer label, then of those that have only a name."""

        def order(k: int) -> tuple[bool, int, str]:
            number = self.region_labels[k]
            return number is None, number or 0, self.region_names.get(k, "")

        return tuple(sorted(range(len(self.region_labels)), key=order))


@dataclass(frozen=True, eq=False)
class Panel:
    """Raters of one image, with their contents and pairwise comparisons."""

    segmentations: SegmentationSet
    match: RaterMatch
    options: CompareOptions

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields without cached values, for pickling."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the raters, in the given order."""
        return self.segmentations.names

    @cached_property
    def contents(self) -> dict[str, Content]:
        """The region order and the digest of each rater, which are independent of labels."""
        return self.segmentations.contents()

    @cached_property
    def labels(self) -> RaterLabels:
        """The labels by which the regions and the backgrounds of all raters correspond."""
        background = self.options.background
        given_label = None if background is None else background.reference
        return RaterLabels.of(self.segmentations.sides, self.contents, self.match, given_label)

    @cached_property
    def comparisons(self) -> dict[tuple[str, str], Comparison]:
        """The comparison of every pair of raters, in the given order."""
        _ = self.contents  # checks values, with rater names in error messages
        sides = {
            name: self.labels.compared(side) for name, side in self.segmentations.sides.items()
        }
        segmentations = replace(self.segmentations, sides=sides)
        return {
            (first, second): self._compare(segmentations.pair(first, second), first, second)
            for first, second in combinations(self.names, 2)
        }

    def _compare(self, images: SegmentationPair, first: str, second: str) -> Comparison:
        keys = self.labels.background_keys
        try:
            return self.compare(images, keys[first], keys[second])
        except ProbdiceError as error:
            raise error.prefixed(f"{first} (reference) and {second} (prediction): ") from None

    def compare(
        self,
        images: SegmentationPair,
        reference_background: int | None,
        prediction_background: int | None,
    ) -> Comparison:
        """Compare two segmentations, given the label or channel of the background of each side.

        Both sides are raters or means of raters, as returned by `RaterLabels.compared`.
        """
        options = self.options
        if options.background is not None:
            background = Both(
                self.labels.label_of(images.reference, reference_background),
                self.labels.label_of(images.prediction, prediction_background),
            )
            options = replace(options, background=background)
        return compare_images(images, options, of_many=True)

    @property
    def notes(self) -> tuple[Note, ...]:
        """The notes on the images, and a note if no rater has the given background."""
        notes = self.segmentations.notes
        background = self.options.background
        if background is None or any(self.background_key(name) is not None for name in self.names):
            return notes
        text = ": no rater has this background, so every region is foreground."
        return (*notes, Note("background", (named_background(background), text)))

    def score(self, first: str, second: str) -> float:
        """Return the score of two raters."""
        pair = (first, second) if (first, second) in self.comparisons else (second, first)
        return self.comparisons[pair].score

    def regions(self, name: str) -> Regions:
        """Return the regions of a rater."""
        first, second = next(pair for pair in self.comparisons if name in pair)
        overlap = self.comparisons[first, second].overlap
        regions = overlap.reference if name == first else overlap.prediction
        own_regions = self.labels.regions[name]  # the overlap may lack names
        return replace(regions, names=own_regions.names, numbers=own_regions.numbers)

    def rank(self, names: Sequence[str]) -> tuple[str, ...]:
        """Sort raters by agreement with all others, best first, then by the digest of values."""
        scores = {
            name: round(fsum(self.score(name, other) for other in names if other != name), DIGITS)
            for name in names
        }
        return tuple(sorted(names, key=lambda name: (-scores[name], self.contents[name].digest)))

    def common(self, names: Sequence[str]) -> Common:
        """Return the common regions of a subset of the raters."""
        ranked_names = self.rank(names)
        keys = [self._keys(name) for name in ranked_names]
        backgrounds = [self.background_key(name) for name in ranked_names]
        keys = [
            [key for key in rater_keys if key != background]
            for rater_keys, background in zip(keys, backgrounds, strict=True)
        ]
        if self.match == "labels":
            indices = self._match_by_label(ranked_names, keys)
        else:
            indices = match_regions(*self._tables(ranked_names, keys))
        for rater_keys, rater_indices, background in zip(keys, indices, backgrounds, strict=True):
            if background is not None:
                rater_keys.append(background)
                rater_indices.append(BACKGROUND_INDEX)
        order = {number: k for k, number in enumerate(dict.fromkeys(chain(*indices)))}
        numbers = tuple(
            dict(zip(rater_keys, (order[number] for number in rater_indices), strict=True))
            for rater_keys, rater_indices in zip(keys, indices, strict=True)
        )
        labels_and_names = [
            {number: self._label_and_name(name, key) for key, number in rater_numbers.items()}
            for name, rater_numbers in zip(ranked_names, numbers, strict=True)
        ]
        return Common(ranked_names, numbers, *most_frequent_labels(labels_and_names, len(order)))

    @cached_property
    def common_regions(self) -> Common:
        """The common regions of all raters."""
        return self.common(self.names)

    def region_indices(self, name: str, common: Common) -> dict[int, int]:
        """Return the index of the rater's own region for each common region of this rater."""
        regions = self.regions(name)
        return {k: _place_of(regions, key) for key, k in common.of(name).items()}

    def volumes(self, common: Common) -> Floats:
        """Return the volume in pixels of every common region (rows) for every rater (columns)."""
        volumes = np.zeros((len(common.labels), len(self.names)))
        for i, name in enumerate(self.names):
            region_volumes = self.regions(name).volumes
            for k, index in self.region_indices(name, common).items():
                volumes[k, i] = region_volumes[index]
        return volumes

    def present(self, common: Common) -> NDArray[np.bool_]:
        """Return whether every common region (rows) is present in every rater (columns)."""
        present = np.zeros((len(common.labels), len(self.names)), np.bool_)
        for i, name in enumerate(self.names):
            is_present = self.regions(name).present
            for k, index in self.region_indices(name, common).items():
                present[k, i] = is_present[index]
        return present

    def background_key(self, name: str) -> int | None:
        """Return the key of a rater's background region; None if it is absent or empty."""
        key, regions = self.labels.background_keys[name], self.regions(name)
        return None if key is None or not regions.volumes[_place_of(regions, key)] else key

    def background_channel(self, common: Common) -> int | None:
        """Return the index of the background in `Common.channels`; None without a background."""
        number = self.background_number(common)
        return None if number is None else common.channels.index(number)

    def background_number(self, common: Common) -> int | None:
        """Return the index of the background in `Common.labels`; None without a background."""
        for name in common.names:
            key = self.background_key(name)
            if key is not None:
                return common.of(name)[key]
        return None

    def label(self, name: str, key: int) -> Label:
        """Return the label that a rater uses for a region."""
        return self.regions(name).label_of(key)

    def _label_and_name(self, name: str, key: int) -> tuple[int | None, str | None]:
        """Return the integer label and the name of a region."""
        regions = self.regions(name)
        number, region_name = regions.number_of(key), regions.names.get(key)
        # A channel that has neither a label nor a name is labelled by its index.
        return key if number is None and region_name is None else number, region_name

    def _keys(self, name: str) -> list[int]:
        """Return the non-empty regions of a rater, in an order that does not depend on labels."""
        regions = self.regions(name)
        occupied_keys = set(regions.keys[regions.occupied].tolist())
        return [key for key in self.contents[name].keys.tolist() if key in occupied_keys]

    def _match_by_label(
        self, ranked_names: Sequence[str], keys: Sequence[list[int]]
    ) -> list[list[int]]:
        """Match equal names if every rater of the panel has names, else equal integer labels.

        A region without a name gets the name that other raters use for its integer label, if there
        is exactly one such name and the rater has no other region with this name.
        """
        labels_and_names: list[list[tuple[int | None, str | None]]] = []
        for name, rater_keys in zip(ranked_names, keys, strict=True):
            unique = self.regions(name).unique_names if self.labels.by_name else {}
            pairs = [self._label_and_name(name, key) for key in rater_keys]
            labels_and_names.append(
                [(n, region_name if region_name in unique else None) for n, region_name in pairs]
            )
        named_pairs = {
            pair for rater_pairs in labels_and_names for pair in rater_pairs if pair[1] is not None
        }
        number_of: dict[Label, int] = {}
        indices: list[list[int]] = []
        for name, rater_keys, rater_pairs in zip(ranked_names, keys, labels_and_names, strict=True):
            rater_region_names = {region_name for _, region_name in rater_pairs}
            indices.append([])
            for key, (number, region_name) in zip(rater_keys, rater_pairs, strict=True):
                names = (
                    {other for n, other in named_pairs if n == number}
                    if region_name is None
                    else {region_name}
                )
                label: Label | None = number
                if len(names) == 1 and (region_name is not None or not names & rater_region_names):
                    (label,) = names
                if label is None:
                    raise self.labels.without_number(name, self.label(name, key))
                indices[-1].append(number_of.setdefault(label, len(number_of)))
        return indices

    def _tables(
        self, ranked_names: Sequence[str], keys: Sequence[list[int]]
    ) -> tuple[list[NDArray[Any]], dict[tuple[int, int], Pairs]]:
        """Return volumes per rater and overlaps per pair, with regions in the order of `keys`."""
        indices = []
        volumes = []
        for name, rater_keys in zip(ranked_names, keys, strict=True):
            regions = self.regions(name)
            order = np.array([_place_of(regions, key) for key in rater_keys], np.int64)
            index = np.full(len(regions), -1, np.int64)
            index[order] = np.arange(order.size)
            indices.append(index)
            volumes.append(regions.volumes[order])
        tables = {}
        for (first, second), comparison in self.comparisons.items():
            if first in ranked_names and second in ranked_names:
                i, j = ranked_names.index(first), ranked_names.index(second)
                overlapping = comparison.overlap.pairs
                rows, columns = indices[i][overlapping.rows], indices[j][overlapping.columns]
                is_matched = (rows >= 0) & (columns >= 0)  # backgrounds are not matched here
                rows, columns, savings = (
                    rows[is_matched],
                    columns[is_matched],
                    overlapping.savings[is_matched],
                )
                tables[i, j] = Pairs(rows, columns, savings)
                tables[j, i] = Pairs(columns, rows, savings)
        return volumes, tables


def _place_of(regions: Regions, key: int) -> int:
    return int(np.searchsorted(regions.keys, np.array(key, regions.keys.dtype)))


def by_name(raters: Raters) -> dict[str, Comparable]:
    """Return raters by name. Raters passed as a sequence are named "1", "2", and so on."""
    if isinstance(raters, Mapping):
        return {str(name): rater for name, rater in raters.items()}
    if isinstance(raters, str | PathLike | np.ndarray | Segmentation):
        raise InputError(f"raters must be a list or a mapping by name, found {raters!r:.60}")
    return {str(k): rater for k, rater in enumerate(raters, start=1)}


def panel_of(
    raters: Raters,
    *,
    match: RaterMatch,
    similarity: str | Similarity = "absolute",
    mask: Comparable | None,
    workers: int | None,
    background: Label | None = None,
    resample: Interpolation | None = None,
    tolerance: float = TOLERANCE,
) -> Panel:
    """Check the raters and the options, and return a panel of the raters."""
    if not isinstance(match, str) or match not in get_args(RaterMatch):
        raise InputError(f"match must be 'overlap' or 'labels', found {match!r}")
    raters_by_name = by_name(raters)
    if len(raters_by_name) < MIN_RATERS:
        raise InputError(f"raters: expected at least {MIN_RATERS}, found {len(raters_by_name)}")
    sides = {
        name: as_segmentation(rater, f"rater {name}") for name, rater in raters_by_name.items()
    }
    if isinstance(background, Mapping):
        raise InputError(
            f"background must be one label or name for all raters, found {background!r}"
        )
    options = CompareOptions.of(
        similarity=similarity, match=match, background=background, resample=resample
    )
    segmentations = SegmentationSet.of(
        sides,
        mask=as_mask(mask),
        workers=as_workers(workers),
        tolerance=tolerance,
        interpolation=options.resample,
        background=background,
    )
    return Panel(segmentations, match, options)
