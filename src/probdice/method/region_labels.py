"""Numbers, names and labels of regions.

A region can have a number, a name, both, or neither. Results show the label of a region: its name,
else its number, else the index of its channel. The labels of one side are unique.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from itertools import count
from operator import index
from typing import Any, SupportsIndex, cast

import numpy as np

from probdice.errors import InputError

__all__ = [
    "COLOUR",
    "Label",
    "as_channels",
    "free_numbers",
    "integer_type",
    "listed",
    "shown_labels",
    "shown_names",
    "whole_number",
]

Label = int | str
COLOUR = re.compile("#[0-9A-Fa-f]{6}")


def shown_names(
    names: Mapping[int, str], number_of: Callable[[int], int | None]
) -> Mapping[int, str]:
    """Return the displayed names of regions. Numbers distinguish regions with the same name.

    Parameters
    ----------
    names : mapping of int to str
        The names. Keys are labels (label maps) or channel indices (probabilities).
    number_of : callable
        Returns the number of the region with a given key, or None if it has no number.

    Examples
    --------
    >>> from probdice.method.region_labels import shown_names
    >>> shown_names({1: "kidney", 2: "mass", 3: "mass"}, lambda label: label)
    {1: 'kidney', 2: 'mass (2)', 3: 'mass (3)'}
    """
    if len(set(names.values())) == len(names):
        return names
    counts = Counter(names.values())
    shared_names = {key: name for key, name in names.items() if counts[name] > 1}
    displayed_names = {**names, **_numbered(shared_names, number_of)}
    # A region may be named "mass (2)" in its source.
    if len(set(displayed_names.values())) < len(displayed_names):
        displayed_names = {**names, **_numbered(names, number_of)}
    return displayed_names


def _numbered(names: Mapping[int, str], number_of: Callable[[int], int | None]) -> dict[int, str]:
    return {
        key: f"{name} ({number})"
        for key, name in names.items()
        if (number := number_of(key)) is not None
    }


def shown_labels(labels: Sequence[int | None], names: Mapping[int, str]) -> tuple[Label, ...]:
    """Return the label of each channel: its name, else its number, else its index.

    Examples
    --------
    >>> from probdice.method.region_labels import shown_labels
    >>> shown_labels([0, 17, None], {2: "liver"})
    (0, 17, 'liver')
    """
    displayed_names = shown_names(names, lambda channel: labels[channel])
    return tuple(
        displayed_names.get(k, k if label is None else label) for k, label in enumerate(labels)
    )


def listed(labels: Sequence[Label], max_items: int = 6) -> str:
    """Format the first labels and the number of omitted labels; a dash if `labels` is empty."""
    if not labels:
        return "–"
    suffix = f", … {len(labels) - max_items} more" if len(labels) > max_items else ""
    return ", ".join(str(label) for label in labels[:max_items]) + suffix


def as_channels(
    labels: Sequence[int | None] | None, names: Sequence[Label | None] | None, count: int
) -> tuple[tuple[int | None, ...], dict[int, str]]:
    """Return the number of every channel (None if it has none), and the names by channel.

    If neither labels nor names are given, the numbers are 0, 1, …. Without `labels`, an integer in
    `names` is the number of its channel. With `labels`, an integer in `names` is rejected.
    """
    for argument, values in (("labels", labels), ("names", names)):
        is_list = isinstance(values, Sized) and not isinstance(values, str | Mapping)
        if values is not None and not (is_list and len(values) == count):
            raise InputError(
                f"{argument} must be a list of {count} {argument}, one per region, found {values!r}"
            )
    if labels is None and names is None:
        return tuple(range(count)), {}
    channel_labels = [None] * count if labels is None else labels
    numbers = [None if label is None else whole_number(label, "labels") for label in channel_labels]
    name_of: dict[int, str] = {}
    for k, name in enumerate(() if names is None else names):
        if isinstance(name, str):
            name_of[k] = str(name)
        elif name is not None and labels is None:
            numbers[k] = whole_number(name, "names")
        elif name is not None:
            raise InputError(f"names must be strings if labels are given, found {name!r}")
    return tuple(numbers), name_of


def whole_number(value: object, argument: str) -> int:
    """Return the value as an integer, or raise an error that names the argument."""
    try:
        return index(cast(SupportsIndex, value))
    except TypeError:
        raise InputError(f"{argument}: expected whole numbers, found {value!r}") from None


def free_numbers(used_numbers: set[int]) -> Iterator[int]:
    """Return an iterator over unused numbers.

    The unused numbers are greater than all used numbers, unless 64-bit integers cannot represent
    such large numbers.
    """
    next_number = max(used_numbers, default=-1) + 1
    if next_number + len(used_numbers) < 2**63:
        return count(next_number)
    return (number for number in count() if number not in used_numbers)


def integer_type(dtype: np.dtype[Any], labels: Sequence[int]) -> np.dtype[Any] | None:
    """Return `dtype` or another integer type that can represent the labels; None if none can."""
    lowest_label, highest_label = min(labels, default=0), max(labels, default=0)
    for candidate in (dtype, np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.uint64)):
        if (
            candidate.kind in "iu"
            and np.iinfo(candidate).min <= lowest_label
            and highest_label <= np.iinfo(candidate).max
        ):
            return candidate
    return None
