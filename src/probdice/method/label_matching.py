"""Match regions with equal labels, by name or by number."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from probdice.errors import InputError, Option
from probdice.method.background import BackgroundIndices, background_pair
from probdice.method.overlap import Integers, Overlap, Regions
from probdice.method.region_labels import Label, listed
from probdice.method.regions import as_integers
from probdice.method.sides import SIDES, Both, Side, other

__all__ = ["LabelsBy", "label_pairs", "labels_by", "match_by_label", "region_of_empty_label"]

LabelsBy = Literal["name", "number"]


def match_by_label(overlap: Overlap, background: BackgroundIndices) -> tuple[Integers, Integers]:
    """Match regions with equal names or numbers.

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
    matchable = (overlap.reference.volumes[rows] > 0) & (overlap.prediction.volumes[columns] > 0)
    for indices, region in zip((rows, columns), background, strict=True):
        if region is not None:
            matchable &= indices != region
    return rows[matchable], columns[matchable]


def labels_by(overlap: Overlap) -> LabelsBy:
    """Return whether regions correspond by name or by number.

    Regions correspond by name if both sides have at least one name that identifies a region. A name
    that two regions of a side share identifies neither region.
    """
    has_names = all(regions.indices_by_name for regions in (overlap.reference, overlap.prediction))
    return "name" if has_names else "number"


def label_pairs(overlap: Overlap) -> tuple[Integers, Integers]:
    """Return the pairs of regions with equal labels, including empty regions, sorted by row.

    If regions correspond by name, two regions correspond by number only if neither of them
    corresponds to another region by name and at least one of them has no unique name.
    """
    reference, prediction = overlap.reference, overlap.prediction
    i, j = _equal_numbers(reference, prediction)
    if labels_by(overlap) == "number":
        return i, j
    names = Both(reference.indices_by_name, prediction.indices_by_name)
    common = [name for name in names.reference if name in names.prediction]
    rows, columns = (np.array([side[name] for name in common], np.int64) for side in names)
    is_named = Both(*(np.zeros(len(overlap.side(side)), np.bool_) for side in SIDES))
    is_paired = Both(*(np.zeros(len(overlap.side(side)), np.bool_) for side in SIDES))
    for side, indices, pairs in zip(SIDES, names, (rows, columns), strict=True):
        is_named[side][list(indices.values())] = True
        is_paired[side][pairs] = True
    by_number = ~is_paired.reference[i] & ~is_paired.prediction[j]
    by_number &= ~(is_named.reference[i] & is_named.prediction[j])
    rows, columns = np.concatenate([rows, i[by_number]]), np.concatenate([columns, j[by_number]])
    order = np.argsort(rows)
    return rows[order], columns[order]


def region_of_empty_label(overlap: Overlap, side: Side, label: Label) -> int | None:
    """Return the region of the other side that corresponds to an empty region with this label.

    `side` is the side of the empty region. Return None if no region corresponds to it.

    Labels are compared as in `label_pairs`: if regions correspond by name, two regions with unique
    names do not correspond by number.
    """
    regions, opposite = overlap.side(side), overlap.side(other(side))
    name, number = regions.name_and_number(label)
    is_named = labels_by(overlap) == "name" and name in regions.unique_names
    if is_named and name in opposite.unique_names:
        return opposite.find(name)
    region = None if number is None else opposite.find(number)
    if region is None or (is_named and opposite.name(region) in opposite.unique_names):
        return None
    return region


def _equal_numbers(reference: Regions, prediction: Regions) -> tuple[Integers, Integers]:
    """Return the pairs of regions with equal numbers, sorted by row."""
    (p, i), (q, j) = _numbers(reference), _numbers(prediction)
    if p.dtype != q.dtype:  # NumPy would compare int64 and uint64 as floating-point numbers
        p, q = p.astype(object), q.astype(object)
    if q.size == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    indices = np.minimum(np.searchsorted(q, p), q.size - 1)
    equal = q[indices] == p
    rows, columns = i[equal], j[indices[equal]]
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
    labels = [numbers[key] for key in keys]
    no_type_fits = min(labels, default=0) < 0 and max(labels, default=0) >= 2**63
    values = np.array(labels, object) if no_type_fits else as_integers(labels)
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
    for side, opposite_side in (SIDES, SIDES[::-1]):
        regions, opposite = overlap.side(side), overlap.side(opposite_side)
        if labels_by(overlap) == "name":
            continue
        if regions.names and not opposite.names and not _numbers(regions)[0].size:
            raise InputError(
                f"the {side} has names ({listed(regions.labels)}) but no numbers, and the "
                f"{opposite_side} has numbers ({listed(opposite.labels)}) but no names. For ",
                Option("match", "labels"),
                ", assign names to the numbers with ",
                Option("names", python=f"read(…, names=…) for the {opposite_side}"),
                "; otherwise use ",
                Option("match", "overlap"),
                ".",
            )
        if regions.unlabelled and not opposite.unlabelled:
            numbers = _numbers(regions)[0]
            unknown = ~np.isin(_numbers(opposite)[0], numbers)
            if unknown.any() or (not opposite.crisp and not opposite.numbers):
                subject, known = "the channels", f"0 to {len(regions) - 1}"
                if len(regions.unlabelled) < len(regions):
                    subject, known = "some channels", listed(numbers.tolist())
                raise InputError(
                    f"{subject} of the {side} have no labels, and the labels of the "
                    f"{opposite_side} ({listed(opposite.labels)}) are not all channel numbers "
                    f"({known}). For ",
                    Option("match", "labels"),
                    ", store the labels of the channels in the file, or set them in Python with "
                    "Segmentation.from_probabilities(…, labels=…); otherwise use ",
                    Option("match", "overlap"),
                    ".",
                )


def _common_label(overlap: Overlap) -> bool:
    """Return whether the two sides have a label in common, including labels without pixels."""
    reference, prediction = overlap.reference, overlap.prediction
    by_name = labels_by(overlap) == "name"
    if by_name and reference.unique_names.keys() & prediction.unique_names.keys():
        return True
    unique_keys = reference.unique_names.values(), prediction.unique_names.values()
    p, q = _keys_by_number(reference), _keys_by_number(prediction)
    return any(
        not (by_name and p[number] in unique_keys[0] and q[number] in unique_keys[1])
        for number in p.keys() & q.keys()
    )


def _keys_by_number(regions: Regions) -> dict[int, int]:
    """Map each number to the key (label or channel) of its region, which may have no pixels."""
    keys: list[int] = [*regions.keys.tolist(), *regions.names, *regions.numbers]
    unlabelled = set(regions.unlabelled)
    numbers = ((key if key in unlabelled else regions.number_of(key), key) for key in keys)
    return {number: key for number, key in numbers if number is not None}
