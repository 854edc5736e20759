"""The regions of one side of an overlap, with their labels, names and volumes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.errors import InputError
from probdice.method.region_labels import Label, shown_names
from probdice.method.sides import Side

__all__ = ["Floats", "Integers", "Regions", "as_integers", "united_regions"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Regions:
    """The regions of one side.

    Attributes
    ----------
    keys : ndarray of int
        The labels of a label map in ascending order, or the channel indices.
    volumes : ndarray
        Sum of the probabilities of each region; integers for a label map.
    crisp : bool
        Whether the side is a label map.
    names : mapping of int to str
        The names by key. Keys without a name are omitted, and regions may share a name.
    losses : ndarray or None
        Σ (1 − f) of each region against an empty region. It is None for label maps, and if the
        kernels of the similarity omit it because it equals the volume, as for absolute.
    colours : mapping of int to str
        The colours by key, such as "#0072B2". Keys without a colour in the source are omitted.
    likeliest : ndarray of int or None
        Number of pixels at which each region is the most probable, including ties within 1e-6. It
        is None for a label map, where this number equals the volume, and for an overlap that an
        older version saved without these numbers.
    numbers : mapping of int to int
        The labels by channel. Channels without a label are omitted. For a label map, `keys`
        contains the labels, and the mapping is needed only for labels without pixels.
    origins : mapping of int to int or str
        The class of each connected component; empty if the regions are not components.
    """

    keys: NDArray[Any]
    volumes: NDArray[Any]
    crisp: bool
    names: Mapping[int, str] = field(default_factory=dict)
    losses: Floats | None = None
    colours: Mapping[int, str] = field(default_factory=dict)
    likeliest: Integers | None = None
    numbers: Mapping[int, int] = field(default_factory=dict)
    origins: Mapping[int, Label] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.keys)

    def label(self, index: int) -> Label:
        """Return the label of a region: its name, else its number, else its channel index."""
        return self.label_of(int(self.keys[index]))

    def label_of(self, key: int) -> Label:
        """Return the label of the region with this key."""
        return self._shown_names.get(key, self.numbers.get(key, key))

    def number(self, index: int) -> int | None:
        """Return the number of a region, or None.

        The number is the label of the region in a label map, or the label of its channel.
        """
        return self.number_of(int(self.keys[index]))

    def number_of(self, key: int) -> int | None:
        """Return the number of a label or channel, or None."""
        return key if self.crisp else self.numbers.get(key)

    def name(self, index: int) -> str | None:
        """Return the name of a region, or None. Names need not be unique."""
        return self.names.get(int(self.keys[index]))

    @cached_property
    def _shown_names(self) -> Mapping[int, str]:
        return shown_names(self.names, self.number_of)

    def find(self, label: Label) -> int | None:
        """Return the index of the region with this number, name or label, or None."""
        key = self._key_of(label)
        return None if key is None else self._indices.get(key)

    def knows(self, label: Label) -> bool:
        """Return whether a region, possibly without pixels, has this number, name or label."""
        key = self._key_of(label)
        return key is not None and (
            key in self._indices or key in self.names or key in self.numbers
        )

    def counterpart(self, label: Label) -> Label | None:
        """Return the number of a region given by name, or the name of one given by number.

        Return None if the region is unknown or does not have both.
        """
        key = self._key_of(label)
        if key is None:
            return None
        return self.number_of(key) if isinstance(label, str) else self.names.get(key)

    def name_and_number(self, label: Label) -> tuple[str | None, int | None]:
        """Return the name and the number of the region with this number, name or label.

        A channel that has neither a number nor a name is numbered by its index.
        """
        key = self._key_of(label)
        if key is None:
            return None, None
        return self.names.get(key), key if key in self.unlabelled else self.number_of(key)

    def _key_of(self, label: Label) -> int | None:
        text = str(label)
        by_name = self._keys_by_name
        if isinstance(label, str) and text in by_name:
            return by_name[text]
        if text.removeprefix("-").isdecimal():
            number = int(text)
            if self.crisp:
                return number
            if number in self._channels:
                return self._channels[number]
        return by_name.get(text)

    @cached_property
    def _indices(self) -> dict[int, int]:
        return {key: k for k, key in enumerate(self.keys.tolist())}

    @cached_property
    def _channels(self) -> dict[int, int]:
        """Map each number to the index of its channel.

        A channel that has neither a number nor a name is numbered by its index.
        """
        return {**{key: key for key in self.unlabelled}, **{n: k for k, n in self.numbers.items()}}

    @cached_property
    def _keys_by_name(self) -> dict[str, int]:
        displayed_keys = {name: key for key, name in self._shown_names.items()}
        return {**displayed_keys, **self.unique_names}

    @cached_property
    def unique_names(self) -> dict[str, int]:
        """The keys of regions with a unique name, by name."""
        counts = Counter(self.names.values())
        return {name: key for key, name in self.names.items() if counts[name] == 1}

    @cached_property
    def indices_by_name(self) -> dict[str, int]:
        """The indices of regions with a unique name, by name."""
        if not self.names:
            return {}
        keys = as_integers(list(self.unique_names.values()))
        _, indices, name_indices = np.intersect1d(
            self.keys.astype(keys.dtype), keys, return_indices=True
        )
        names = list(self.unique_names)
        return {
            names[k]: int(region_index)
            for k, region_index in zip(name_indices, indices, strict=True)
        }

    @cached_property
    def unlabelled(self) -> tuple[int, ...]:
        """The channels that have neither a number nor a name."""
        if self.crisp:
            return ()
        keys: list[int] = self.keys.tolist()
        return tuple(key for key in keys if key not in self.numbers and key not in self.names)

    def colour(self, index: int) -> str | None:
        """Return the colour that the source defines for a region, or None."""
        return self.colours.get(int(self.keys[index]))

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        """The labels of all regions in `keys`, including empty regions."""
        keys: list[int] = self.keys.tolist()
        if not self.names and (self.crisp or not self.numbers):
            return tuple(keys)
        return tuple(self.label_of(key) for key in keys)

    @cached_property
    def occupied(self) -> Integers:
        """The indices of the non-empty regions."""
        return np.flatnonzero(self.volumes)

    @cached_property
    def occupied_labels(self) -> tuple[Label, ...]:
        """The labels of the non-empty regions."""
        if self.occupied.size == len(self):
            return self.labels
        return tuple(self.labels[k] for k in self.occupied.tolist())

    @cached_property
    def present(self) -> NDArray[np.bool_]:
        """Mask of the regions that are included in means over regions and in counts of regions.

        A region of a label map is included if it is not empty. A region of a probability map is
        included if it is the most probable region of at least one pixel. If `likeliest` is unknown,
        every non-empty region is included.
        """
        occupied = self.volumes > 0
        return np.asarray(occupied if self.likeliest is None else occupied & (self.likeliest > 0))

    @property
    def _named_or_numbered(self) -> list[int]:
        return list(dict.fromkeys((*self.names, *self.numbers)))

    @property
    def empty(self) -> tuple[Label, ...]:
        """The labels of empty regions, including named or numbered labels without pixels."""
        empty = [self.label(k) for k in np.flatnonzero(self.volumes == 0).tolist()]
        if self.names or self.numbers:
            keys = set(self.keys.tolist())
            empty += [self.label_of(key) for key in self._named_or_numbered if key not in keys]
        return tuple(empty)

    def to_dict(self) -> dict[str, Any]:
        """Return the regions as built-in Python types."""
        return {
            "crisp": self.crisp,
            "keys": self.keys.tolist(),
            "volumes": self.volumes.tolist(),
            "names": [[key, name] for key, name in self.names.items()],
            "losses": None if self.losses is None else self.losses.tolist(),
            "colours": [[key, colour] for key, colour in self.colours.items()],
            "likeliest": None if self.likeliest is None else self.likeliest.tolist(),
            "numbers": [[key, number] for key, number in self.numbers.items()],
            "origins": [[key, label] for key, label in self.origins.items()],
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Regions":
        """Restore regions from built-in Python types."""
        crisp = bool(content["crisp"])
        losses, likeliest = content["losses"], content.get("likeliest")
        keys = as_integers(content["keys"])
        names = {index(key): name for key, name in content["names"]}
        if "numbers" in content:
            numbers = {index(key): index(number) for key, number in content["numbers"]}
        else:  # an older version stored either the label or the name of a channel
            bare = () if crisp else keys.tolist()
            labels = {**{key: key for key in bare}, **names}
            numbers = {key: label for key, label in labels.items() if isinstance(label, int)}
            names = {key: label for key, label in names.items() if key not in numbers}
        return cls(
            keys,
            np.asarray(content["volumes"], np.int64 if crisp else np.float64),
            crisp,
            names,
            None if losses is None else np.asarray(losses, np.float64),
            {index(key): colour for key, colour in content.get("colours", ())},
            None if likeliest is None else as_integers(likeliest),
            numbers,
            {index(key): label for key, label in content.get("origins", ())},
        )


def united_regions(parts: Sequence[Regions], side: Side) -> tuple[Regions, list[Integers]]:
    """Combine the regions of one side of several overlaps.

    The second value contains, for each overlap, the index of each of its regions in the result.
    """
    first = parts[0]
    names: dict[int, str] = {}
    colours: dict[int, str] = {}
    numbers: dict[int, int] = {}
    origins: dict[int, Label] = {}
    for regions in parts:
        colours = {**regions.colours, **colours}
        numbers = {**regions.numbers, **numbers}
        origins = {**regions.origins, **origins}
        if regions.crisp != first.crisp:
            raise InputError(
                f"{side}: a label map in one overlap and probabilities in another, so the overlaps "
                f"cannot be added. Use the same kind of segmentation in all overlaps."
            )
        if not first.crisp and (regions.numbers, regions.labels) != (first.numbers, first.labels):
            difference = f"{first.labels} and {regions.labels}"
            if regions.labels == first.labels:
                difference = f"{first.labels} with the labels {first.numbers} and {regions.numbers}"
            raise InputError(
                f"{side}: overlaps of probabilities with different regions cannot be added: found "
                f"{difference}"
            )
        for key, name in regions.names.items():
            if names.setdefault(key, name) != name:
                raise InputError(
                    f"{side}: overlaps with different names for label {key} ({names[key]!r} and "
                    f"{name!r}) cannot be added"
                )
    keys = first.keys
    if any(not np.array_equal(regions.keys, keys) for regions in parts[1:]):
        keys = _union([regions.keys for regions in parts])
    indices = [np.searchsorted(keys, regions.keys) for regions in parts]
    volumes = np.zeros(keys.size, first.volumes.dtype)
    losses = None if first.losses is None else np.zeros(keys.size)
    # If these counts are missing in one overlap, they are also missing in the sum.
    has_likeliest = all(regions.likeliest is not None for regions in parts)
    likeliest = np.zeros(keys.size, np.int64) if has_likeliest else None
    for regions, indices_of_part in zip(parts, indices, strict=True):
        volumes[indices_of_part] += regions.volumes
        if losses is not None and regions.losses is not None:
            losses[indices_of_part] += regions.losses
        if likeliest is not None and regions.likeliest is not None:
            likeliest[indices_of_part] += regions.likeliest
    total = Regions(keys, volumes, first.crisp, names, losses, colours, likeliest, numbers, origins)
    return total, indices


def _union(key_arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return all keys as ascending integers. NumPy would convert mixed integer types to float."""
    if len({keys.dtype for keys in key_arrays}) > 1:
        key_arrays = [as_integers(keys.tolist()) for keys in key_arrays]
        if len({keys.dtype for keys in key_arrays}) > 1:
            if any(keys.size and int(keys[0]) < 0 for keys in key_arrays):
                raise InputError(
                    "overlaps with labels below 0 and labels of at least 2⁶³ cannot be added"
                )
            key_arrays = [keys.astype(np.uint64) for keys in key_arrays]
    return np.unique(np.concatenate(key_arrays))


def as_integers(keys: Any) -> NDArray[Any]:
    """Return labels as int64, or as uint64 if a label is at least 2⁶³."""
    array = np.asarray(keys)
    if array.size == 0:
        return np.zeros(0, np.int64)
    # NumPy converts a list with labels below and above 2⁶³ to floating point.
    if isinstance(keys, list) and all(type(key) is int for key in keys) and max(keys) >= 2**63:
        array = np.array(keys, np.uint64)
    if array.dtype.kind not in "iu":
        raise InputError(f"labels must be integers, found {array.dtype}")
    if array.dtype == np.uint64 and int(array.max()) >= 2**63:
        return array
    return array.astype(np.int64)
