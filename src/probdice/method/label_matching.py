"""Match regions with equal labels, by name or by number."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from probdice.errors import InputError, Option
from probdice.method.background import Places, background_pair
from probdice.method.overlap import Integers, Overlap, Regions
from probdice.method.region_labels import listed
from probdice.method.sides import SIDES, Both

__all__ = ["LabelsBy", "label_pairs", "labels_by", "match_by_label"]

LabelsBy = Literal["name", "number"]


def match_by_label(overlap: Overlap, background: Places) -> tuple[Integers, Integers]:
    """Match equal names or numbers.

    A label that is absent from one side counts as an empty region of that side.
    """
    _check_labels(overlap)
    rows, columns = label_pairs(overlap)
    in_common = rows.size or background_pair(overlap, background) is not None
    if not in_common and not _common_label(overlap):
        reference, prediction = (listed(overlap.side(side).labels) for side in SIDES)
        raise InputError(
            f"reference ({reference}) and prediction ({prediction}) have no label in common "
            f"(compared by {labels_by(overlap)}), but ",
            Option("match", "labels"),
            " requires one. Use ",
            Option("match", "overlap"),
            ".",
        )
    chosen = (overlap.reference.volumes[rows] > 0) & (overlap.prediction.volumes[columns] > 0)
    for places, region in zip((rows, columns), background, strict=True):
        if region is not None:
            chosen &= places != region
    return rows[chosen], columns[chosen]


def labels_by(overlap: Overlap) -> LabelsBy:
    """Return whether regions correspond by name or by number.

    Regions correspond by name if both sides have at least one name that identifies a region. A name
    that two regions of a side share identifies neither region.
    """
    named = all(regions.places_by_name for regions in (overlap.reference, overlap.prediction))
    return "name" if named else "number"


def label_pairs(overlap: Overlap) -> tuple[Integers, Integers]:
    """Return the pairs of regions with equal labels, including empty regions, sorted by row.

    If regions correspond by name, two regions correspond by number only if at least one of them has
    no unique name.
    """
    reference, prediction = overlap.reference, overlap.prediction
    i, j = _equal_numbers(reference, prediction)
    if labels_by(overlap) == "number":
        return i, j
    names = Both(reference.places_by_name, prediction.places_by_name)
    common = [name for name in names.reference if name in names.prediction]
    rows, columns = (np.array([side[name] for name in common], np.int64) for side in names)
    named = Both(*(np.zeros(len(overlap.side(side)), np.bool_) for side in SIDES))
    paired = Both(*(np.zeros(len(overlap.side(side)), np.bool_) for side in SIDES))
    for side, places, pairs in zip(SIDES, names, (rows, columns), strict=True):
        named[side][list(places.values())] = True
        paired[side][pairs] = True
    by_number = ~paired.reference[i] & ~paired.prediction[j]
    by_number &= ~(named.reference[i] & named.prediction[j])
    rows, columns = np.concatenate([rows, i[by_number]]), np.concatenate([columns, j[by_number]])
    order = np.argsort(rows)
    return rows[order], columns[order]


def _equal_numbers(reference: Regions, prediction: Regions) -> tuple[Integers, Integers]:
    """Return the pairs of regions with equal numbers, sorted by row."""
    (p, i), (q, j) = _numbers(reference), _numbers(prediction)
    if p.dtype != q.dtype:  # NumPy would compare int64 and uint64 as floating-point numbers
        p, i = p[p >= 0].astype(np.uint64), i[p >= 0]
        q, j = q[q >= 0].astype(np.uint64), j[q >= 0]
    if q.size == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    places = np.minimum(np.searchsorted(q, p), q.size - 1)
    equal = q[places] == p
    rows, columns = i[equal], j[places[equal]]
    order = np.argsort(rows, kind="stable")
    return rows[order], columns[order]


def _numbers(regions: Regions) -> tuple[NDArray[Any], Integers]:
    """Return the numbers of the regions in ascending order, and the indices of these regions.

    A channel that has neither a number nor a name is numbered by its index.
    """
    if regions.crisp:
        return regions.keys, np.arange(len(regions))
    numbers = {**{key: key for key in regions.unlabelled}, **regions.numbers}
    keys = [key for key in regions.keys.tolist() if key in numbers]
    values = np.array([numbers[key] for key in keys], np.int64)
    order = np.argsort(values)
    return values[order], np.searchsorted(regions.keys, keys)[order]


def _check_labels(overlap: Overlap) -> None:
    """Reject labels whose correspondence is undefined."""
    if overlap.reference.origins and overlap.prediction.origins:
        raise InputError(
            "the numbers of connected components are arbitrary, so equal numbers do not "
            "correspond. Use ",
            Option("match", "overlap"),
            ".",
        )
    for side, across in (SIDES, SIDES[::-1]):
        own, opposite = overlap.side(side), overlap.side(across)
        if labels_by(overlap) == "name":
            continue
        if own.names and not opposite.names and not _numbers(own)[0].size:
            raise InputError(
                f"the {side} has names ({listed(own.labels)}) but no numbers, and the {across} has "
                f"numbers ({listed(opposite.labels)}) but no names. For ",
                Option("match", "labels"),
                ", assign names to the numbers with ",
                Option("names", python=f"read(…, names=…) for the {across}"),
                "; otherwise use ",
                Option("match", "overlap"),
                ".",
            )
        if own.unlabelled and not opposite.unlabelled:
            numbers = _numbers(own)[0]
            unknown = ~np.isin(_numbers(opposite)[0], numbers)
            if unknown.any() or (not opposite.crisp and not opposite.numbers):
                raise InputError(
                    f"the channels of the {side} have no labels, and the labels of the {across} "
                    f"({listed(opposite.labels)}) are not all channel numbers (0 to {len(own) - 1})"
                    f". For ",
                    Option("match", "labels"),
                    ", store the labels of the channels in the file, or set them in Python with "
                    "Segmentation.from_probabilities(…, labels=…); otherwise use ",
                    Option("match", "overlap"),
                    ".",
                )


def _common_label(overlap: Overlap) -> bool:
    """Return whether the two sides have a label in common, including labels without pixels."""
    own, others = overlap.reference, overlap.prediction
    by_name = labels_by(overlap) == "name"
    if by_name and own.unique_names.keys() & others.unique_names.keys():
        return True
    named = own.unique_names.values(), others.unique_names.values()
    p, q = _known_numbers(own), _known_numbers(others)
    return any(
        not (by_name and p[number] in named[0] and q[number] in named[1])
        for number in p.keys() & q.keys()
    )


def _known_numbers(regions: Regions) -> dict[int, int]:
    """Return the labels or channels by number, including labels without pixels."""
    keys: list[int] = [*regions.keys.tolist(), *regions.names, *regions.numbers]
    unlabelled = set(regions.unlabelled)
    numbers = ((key if key in unlabelled else regions.number_of(key), key) for key in keys)
    return {number: key for number, key in numbers if number is not None}
