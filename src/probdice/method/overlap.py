"""The overlap of two segmentations: everything that adds up over their pixels.

Per region its volume and what it costs alone, per pair of regions that meet what the pair saves.
Blocks of an image, batches of a training loop and the images of a data set all add up to one
`Overlap`; matching, scores, chance and other numbers are read from it.
"""

import json
import math
import os
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from probdice.errors import FormatError, InputError, MissingExtraError, ProbdiceError, TooLargeError
from probdice.method.region_labels import COLOUR, Label, shown_names
from probdice.method.sides import SIDES, Both, Side
from probdice.method.similarity import Similarity, similarity_from_dict

if TYPE_CHECKING:
    import pandas

    from probdice.comparison.result import Comparison
    from probdice.method.merging import Merging
    from probdice.metrics.indices import Indices
    from probdice.options import Match

__all__ = ["Overlap", "Pairs", "Regions"]

FORMAT = 1  # version of what save and to_dict write
LARGEST_TABLE = 2**27  # pairs of regions in a table, each a number of eight bytes
COMPACT = 2**20  # pairs that may wait before they are added up
MOST_PACKED = 64  # bytes of keys and names to which a byte of a file unpacks
HEADER = ("crisp", "names", "colours", "numbers", "origins")  # of a side in a file
SLACK = 2**16  # bytes of an array beside its values

# What a damaged file may lead to in NumPy, zipfile, zlib and json.
DAMAGE = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Regions:
    """The regions of one side.

    Attributes
    ----------
    keys : ndarray of int
        The labels of a label map, ascending, or the numbers of the channels.
    volumes : ndarray
        Sum of the probability of each region: whole numbers for a label map.
    crisp : bool
        Whether they come from a label map.
    names : mapping of int to str
        The name of a key, where it has one; regions may share a name.
    losses : ndarray or None
        Sum of 1 − f of each region against an empty one, where that does not follow from the
        volumes: for probabilities under aitchison.
    colours : mapping of int to str
        The colour of a key, such as "#0072B2", where the source has one.
    likeliest : ndarray of int or None
        Number of pixels at which each region is the likeliest, ties within 1e-6 included. None for
        a label map, where these are the volumes, and for an overlap saved by version 0.1.
    numbers : mapping of int to int
        The label that a channel stands for, where it has one. The keys of a label map are its
        numbers; those that no pixel has may be here.
    origins : mapping of int to int or str
        The class of each connected component; empty where regions are no components.
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
        """How a region is shown: by its name, else by its number, else by its channel."""
        return self.label_of(int(self.keys[index]))

    def label_of(self, key: int) -> Label:
        """How the region of a label or channel is shown."""
        return self._shown_names.get(key, self.numbers.get(key, key))

    def number(self, index: int) -> int | None:
        """The number of a region: its label, or the one that its channel stands for."""
        return self.number_of(int(self.keys[index]))

    def number_of(self, key: int) -> int | None:
        """The number of a label or channel, or None."""
        return key if self.crisp else self.numbers.get(key)

    def name(self, index: int) -> str | None:
        """The name of a region, which others may have as well, or None."""
        return self.names.get(int(self.keys[index]))

    @cached_property
    def _shown_names(self) -> Mapping[int, str]:
        return shown_names(self.names, self.number_of)

    def find(self, label: Label) -> int | None:
        """The region that a user means: by its number, by its name, or as it is shown."""
        key = self._key_of(label)
        return None if key is None else self._places.get(key)

    def knows(self, label: Label) -> bool:
        """Whether a user may mean a region so, be it one that no pixel has."""
        key = self._key_of(label)
        return key is not None and (key in self._places or key in self.names or key in self.numbers)

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
    def _places(self) -> dict[int, int]:
        return {key: k for k, key in enumerate(self.keys.tolist())}

    @cached_property
    def _channels(self) -> dict[int, int]:
        """The channel of every number; a channel without number and name is its own."""
        return {**{key: key for key in self.unlabelled}, **{n: k for k, n in self.numbers.items()}}

    @cached_property
    def _keys_by_name(self) -> dict[str, int]:
        shown = {name: key for key, name in self._shown_names.items()}
        return {**shown, **self.unique_names}

    @cached_property
    def unique_names(self) -> dict[str, int]:
        """The labels or channels whose name no other one has, by name."""
        counts = Counter(self.names.values())
        return {name: key for key, name in self.names.items() if counts[name] == 1}

    @cached_property
    def places_by_name(self) -> dict[str, int]:
        """The regions that their name identifies, by name."""
        if not self.names:
            return {}
        keys = _integers(list(self.unique_names.values()))
        _, places, chosen = np.intersect1d(self.keys.astype(keys.dtype), keys, return_indices=True)
        names = list(self.unique_names)
        return {names[k]: int(place) for k, place in zip(chosen, places, strict=True)}

    @cached_property
    def unlabelled(self) -> tuple[int, ...]:
        """The channels that have neither a number nor a name."""
        if self.crisp:
            return ()
        keys: list[int] = self.keys.tolist()
        return tuple(key for key in keys if key not in self.numbers and key not in self.names)

    def colour(self, index: int) -> str | None:
        """The colour that the source gives a region, or None."""
        return self.colours.get(int(self.keys[index]))

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        """The names or numbers of all regions, the empty ones included."""
        keys: list[int] = self.keys.tolist()
        if not self.names and (self.crisp or not self.numbers):
            return tuple(keys)
        return tuple(self.label_of(key) for key in keys)

    @cached_property
    def occupied(self) -> Integers:
        """The indices of the regions that are not empty."""
        return np.flatnonzero(self.volumes)

    @cached_property
    def present(self) -> NDArray[np.bool_]:
        """Which regions count in means over regions and in counts of regions.

        A region of a label map counts if it is not empty, a region of probabilities if it is the
        likeliest at one pixel or more. Where `likeliest` is not known, every region that is not
        empty counts.
        """
        occupied = self.volumes > 0
        return np.asarray(occupied if self.likeliest is None else occupied & (self.likeliest > 0))

    @property
    def _named_or_numbered(self) -> list[int]:
        return list(dict.fromkeys((*self.names, *self.numbers)))

    @property
    def empty(self) -> tuple[Label, ...]:
        """The labels of empty regions, and of names that no region has."""
        empty = [self.label(k) for k in np.flatnonzero(self.volumes == 0).tolist()]
        if self.names or self.numbers:
            known = set(self.keys.tolist())
            empty += [self.label_of(key) for key in self._named_or_numbered if key not in known]
        return tuple(empty)

    def to_dict(self) -> dict[str, Any]:
        """Plain types."""
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
        """Back from plain types."""
        crisp = bool(content["crisp"])
        losses, likeliest = content["losses"], content.get("likeliest")
        keys = _integers(content["keys"])
        names = {index(key): name for key, name in content["names"]}
        if "numbers" in content:
            numbers = {index(key): index(number) for key, number in content["numbers"]}
        else:  # an older version kept the label or the name of a channel, not both
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
            None if likeliest is None else _integers(likeliest),
            numbers,
            {index(key): label for key, label in content.get("origins", ())},
        )


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs of regions that meet, by row and column: indices of regions of both sides.

    `savings` is ½ (what the regions cost alone − what the pair costs), summed over the pixels.
    """

    rows: Integers
    columns: Integers
    savings: NDArray[Any]

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, eq=False, repr=False)
class Overlap:
    """Where the regions of two segmentations overlap, summed over their pixels.

    `probdice.overlap` makes one. Overlaps of two sets of pixels add up with ``+`` or ``sum``.

    Attributes
    ----------
    similarity : Similarity
        How regions are compared.
    pixels : int
        How many pixels are compared.
    reference : Regions
        Labels and volumes of the reference, and the cost of each region alone.
    prediction : Regions
        The same for the prediction.
    meeting : Pairs
        What every pair of regions that meet saves: pixels in common for two label maps.

    Examples
    --------
    >>> import probdice
    >>> images = [([1, 1, 2], [5, 5, 7]), ([2, 2], [7, 5])]
    >>> total = sum(probdice.overlap(*image) for image in images)
    >>> total
    Overlap (absolute): 2 reference and 2 prediction regions over 5 pixels, 3 pairs meet
    >>> total.compare().score
    0.8
    """

    similarity: Similarity
    pixels: int
    reference: Regions
    prediction: Regions
    meeting: Pairs

    def side(self, side: Side) -> Regions:
        """The regions of one side."""
        return self.reference if side == "reference" else self.prediction

    @property
    def crisp(self) -> bool:
        """Whether both sides are label maps: all sums are then whole numbers of pixels."""
        return self.reference.crisp and self.prediction.crisp

    @property
    def separable(self) -> bool:
        """Whether a score is the sum of what its groups cost."""
        return self.crisp or self.similarity.separable

    @property
    def unit(self) -> float:
        """What one unit of the sums is worth: less than 1 only for label maps under a floor."""
        return self.similarity.disagreement if self.crisp else 1.0

    @cached_property
    def alone(self) -> Both[NDArray[Any]]:
        """What every region costs alone: Σ 1 − f against an empty region, in units."""
        return Both(*(self._alone(self.side(side)) for side in SIDES))

    def _alone(self, regions: Regions) -> NDArray[Any]:
        if regions.losses is not None:
            return regions.losses
        if regions.crisp and not self.crisp:
            costs: NDArray[Any] = regions.volumes * self.similarity.disagreement
            return costs
        return regions.volumes

    @cached_property
    def overlaps(self) -> Floats:
        """o_ij of every pair that meets, in the order of `meeting`."""
        return self.meeting.savings * (self.unit / self.pixels)

    def costs(self, rows: Integers, columns: Integers, savings: NDArray[Any]) -> NDArray[Any]:
        """What pairs cost together, in units, never less than 0."""
        alone = self.alone
        costs: NDArray[Any] = alone.reference[rows] + alone.prediction[columns] - 2 * savings
        return np.asarray(np.maximum(costs, 0))

    @cached_property
    def weights(self) -> Floats:
        """w_ij = 1 − D of every pair of regions that are not empty; read-only."""
        rows, columns = self.reference.occupied, self.prediction.occupied
        if rows.size * columns.size > LARGEST_TABLE:
            raise TooLargeError(
                f"{rows.size} reference and {columns.size} prediction regions make a table of "
                f"weights of {rows.size * columns.size * 8 / 2**30:.1f} GiB, more than the "
                f"{LARGEST_TABLE * 8 / 2**30:g} GiB that are tried; use overlap.to_frame(), which "
                f"has the pairs that meet"
            )
        alone = self.alone
        weights: Floats = np.add.outer(
            alone.reference[rows].astype(np.float64), alone.prediction[columns].astype(np.float64)
        )
        places = Both(
            *(
                _places(len(regions), occupied)
                for regions, occupied in ((self.reference, rows), (self.prediction, columns))
            )
        )
        meeting = self.meeting
        at = places.reference[meeting.rows], places.prediction[meeting.columns]
        weights[at] -= 2 * meeting.savings
        weights *= self.unit / self.pixels
        np.clip(weights, 0, 1, out=weights)
        weights.flags.writeable = False
        return weights

    def compare(self, *, match: "Match" = "overlap", merge: "Merging" = "none") -> "Comparison":
        """Match the regions, and merge what is left over where that is asked for.

        The result has no images: what needs the pixels again (the aitchison score of
        probabilities, merging them, their chance, maps) is refused by name.

        Parameters
        ----------
        match, merge
            As in `probdice.compare`.

        Examples
        --------
        >>> import probdice
        >>> overlap = probdice.overlap([1, 1, 1, 1, 2, 2, 2, 2], [7, 7, 5, 5, 5, 9, 9, 9])
        >>> overlap.compare().score, overlap.compare(merge="prediction").score
        (0.625, 0.875)
        """
        from probdice.comparison.comparing import compare_overlap

        return compare_overlap(self, match=match, merge=merge)

    def indices(self, *, background: Label | None = None) -> "Indices":
        """The field's other numbers: Rand, variation of information, covering, mean IoU, ….

        What needs a correspondence takes the one of largest overlap; ``compare(…).indices()``
        takes any other.

        Parameters
        ----------
        background : int or str, optional
            The label that is no foreground. None by default: nothing is.

        Examples
        --------
        >>> import probdice
        >>> indices = probdice.overlap([1, 1, 2, 2], [5, 5, 5, 8]).indices()
        >>> indices.rand, indices.accuracy
        (0.5, 0.75)
        """
        return self.compare().indices(background=background)

    def to_frame(self) -> "pandas.DataFrame":
        """A table with one row for every pair of regions that meets.

        Examples
        --------
        >>> import probdice
        >>> probdice.overlap([1, 1, 2, 2], [5, 5, 5, 8]).to_frame()
           reference  prediction  overlap  weight
        0          1           5     0.50    0.25
        1          2           5     0.25    0.75
        2          2           8     0.25    0.25
        """
        try:
            import pandas
        except ImportError:
            raise MissingExtraError('to_frame needs pandas: pip install "pandas"') from None
        meeting = self.meeting
        weights = self.costs(meeting.rows, meeting.columns, meeting.savings) * (
            self.unit / self.pixels
        )
        return pandas.DataFrame(
            {
                "reference": _column(self.reference, meeting.rows),
                "prediction": _column(self.prediction, meeting.columns),
                "overlap": self.overlaps,
                "weight": np.minimum(weights, 1),
            }
        )

    def __add__(self, other: object) -> "Overlap":
        if not isinstance(other, Overlap):
            return NotImplemented
        return Overlap.total([self, other])

    def __radd__(self, other: object) -> "Overlap":
        """Of ``sum``, which starts with 0."""
        if isinstance(other, int) and other == 0:
            return self
        return NotImplemented

    @classmethod
    def total(cls, overlaps: Iterable["Overlap"]) -> "Overlap":
        """The sum of many overlaps, added in their order.

        Examples
        --------
        >>> import probdice
        >>> probdice.Overlap.total([probdice.overlap([1, 2], [5, 5])] * 3).pixels
        6
        """
        waiting: list[Overlap] = []
        pairs = compact = 0
        for overlap in overlaps:
            waiting.append(overlap)
            pairs += len(overlap.meeting)
            # Adding up costs a sort, so it waits until there is twice as much as after the last.
            if len(waiting) > 1 and pairs > COMPACT + 2 * compact:
                waiting = [_added(waiting)]
                pairs = compact = len(waiting[0].meeting)
        if not waiting:
            raise InputError("overlaps is empty: expected at least one to add")
        return waiting[0] if len(waiting) == 1 else _added(waiting)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain types, pairs that meet only; with the version of the format.

        Examples
        --------
        >>> import probdice
        >>> probdice.overlap([1, 2, 2], [5, 5, 5]).to_dict()["savings"]
        [1, 2]
        """
        return {
            "format": FORMAT,
            "similarity": self.similarity.to_dict(),
            "pixels": self.pixels,
            "reference": self.reference.to_dict(),
            "prediction": self.prediction.to_dict(),
            "rows": self.meeting.rows.tolist(),
            "columns": self.meeting.columns.tolist(),
            "savings": self.meeting.savings.tolist(),
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Overlap":
        """Back from what `to_dict` gave.

        Examples
        --------
        >>> import probdice
        >>> overlap = probdice.overlap([1, 2, 2], [5, 5, 5])
        >>> probdice.Overlap.from_dict(overlap.to_dict()).pixels
        3
        """
        try:
            if content["format"] != FORMAT:
                raise InputError(
                    f"an overlap of format {content['format']} was written by another version of "
                    f"probdice; expected format {FORMAT}"
                )
            reference = Regions.from_dict(content["reference"])
            prediction = Regions.from_dict(content["prediction"])
            whole = reference.crisp and prediction.crisp
            overlap = cls(
                similarity_from_dict(content["similarity"]),
                index(content["pixels"]),
                reference,
                prediction,
                Pairs(
                    np.asarray(content["rows"], np.int64),
                    np.asarray(content["columns"], np.int64),
                    np.asarray(content["savings"], np.int64 if whole else np.float64),
                ),
            )
            overlap._check()
        except ProbdiceError:
            raise
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise InputError(f"holds no overlap: {type(error).__name__}: {error}") from None
        return overlap

    def _check(self) -> None:
        """Refuse what no pass over pixels could have given."""
        meeting, pixels = self.meeting, self.pixels
        fits = pixels >= 1 and _as_long([meeting.rows, meeting.columns, meeting.savings])
        for regions in (self.reference, self.prediction):
            losses = regions.volumes if regions.losses is None else regions.losses
            fits = fits and len(regions) > 0
            needs_losses = not (self.similarity.separable or regions.crisp)
            fits = fits and needs_losses == (regions.losses is not None)
            fits = fits and _as_long([regions.keys, regions.volumes, losses])
            fits = fits and _counts_fit(regions, pixels)
            fits = fits and all(isinstance(name, str) for name in regions.names.values())
            fits = fits and all(COLOUR.fullmatch(colour) for colour in regions.colours.values())
            fits = fits and bool(np.all(regions.keys[:-1] < regions.keys[1:]))
            fits = fits and bool(np.all(np.isfinite(losses) & np.isfinite(regions.volumes)))
            fits = fits and bool(np.all((losses >= 0) & (regions.volumes >= 0)))
            fits = fits and bool(np.any(regions.volumes > 0))
        fits = fits and bool(np.all(np.isfinite(meeting.savings) & (meeting.savings > 0)))
        fits = fits and _within(meeting.rows, len(self.reference))
        fits = fits and _within(meeting.columns, len(self.prediction))
        if fits:
            pairs = meeting.rows * len(self.prediction) + meeting.columns
            fits = np.unique(pairs).size == pairs.size
        if not fits:
            raise InputError("holds no overlap: its parts do not fit each other")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a file, whole or not at all; `load` reads it back.

        Examples
        --------
        >>> import os, tempfile
        >>> import probdice
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = os.path.join(folder, "overlap.npz")
        ...     probdice.overlap([1, 2, 2], [5, 5, 5]).save(file)
        ...     probdice.Overlap.load(file)
        Overlap (absolute): 2 reference and 1 prediction regions over 3 pixels, 2 pairs meet
        """
        from probdice.files.atomic_files import replacing

        arrays: dict[str, NDArray[Any]] = {
            "rows": self.meeting.rows,
            "columns": self.meeting.columns,
            "savings": self.meeting.savings,
        }
        header: dict[str, Any] = {
            "format": FORMAT,
            "similarity": self.similarity.to_dict(),
            "pixels": self.pixels,
        }
        for side in SIDES:
            content = self.side(side).to_dict()
            regions = self.side(side)
            arrays[f"{side}_keys"], arrays[f"{side}_volumes"] = regions.keys, regions.volumes
            if regions.losses is not None:
                arrays[f"{side}_losses"] = regions.losses
            if regions.likeliest is not None:
                arrays[f"{side}_likeliest"] = regions.likeliest
            header[side] = {key: content[key] for key in HEADER}
        arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
        name = os.fspath(path)
        try:
            with replacing(Path(name)) as partial, partial.open("wb") as stream:
                np.savez_compressed(stream, allow_pickle=False, **arrays)
        except ProbdiceError as error:
            raise error.prefixed(f"{name}: ") from None
        except OSError as error:
            raise FormatError(f"{name}: cannot be written: {error.strerror or error}") from error

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Overlap":
        """Read what `save` wrote.

        Examples
        --------
        >>> import probdice
        >>> try:
        ...     probdice.Overlap.load("missing.npz")
        ... except probdice.FormatError as error:
        ...     print(error)
        missing.npz: cannot be read: No such file or directory
        """
        name = os.fspath(path)
        try:
            with Path(name).open("rb") as stream:
                return cls.from_dict(_stored(stream))
        except OSError as error:
            raise FormatError(f"{name}: cannot be read: {error.strerror or error}") from error
        except ProbdiceError as error:
            raise FormatError(f"{name}: ", *error.args) from None
        except DAMAGE as error:
            raise FormatError(
                f"{name}: is not a saved overlap, or damaged: {type(error).__name__}: {error}"
            ) from None

    def __repr__(self) -> str:
        return (
            f"Overlap ({self.similarity}): {self.reference.occupied.size} reference and "
            f"{self.prediction.occupied.size} prediction regions over {self.pixels} pixels, "
            f"{len(self.meeting)} pairs meet"
        )


def _stored(stream: BinaryIO) -> dict[str, Any]:
    """What `save` wrote, for `from_dict`.

    An array may pack to next to nothing. Keys and names differ, so that each takes some bytes of
    the file; the number of regions then says how long all the others can be.
    """
    from probdice.files.numpy_files import member

    archive = zipfile.ZipFile(stream)
    members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}

    def array(name: str, most: int) -> NDArray[Any]:
        size = members[name].file_size
        if size > most + SLACK:
            raise FormatError(
                f"is damaged: its {name} take {size} bytes, where an overlap has at most {most}"
            )
        return member(archive, members[name].filename, size)

    def packed(name: str) -> int:
        return MOST_PACKED * members[name].compress_size

    plain: dict[str, Any] = dict(json.loads(array("header", packed("header")).tobytes()))
    counts = []
    for side in SIDES:
        keys = array(f"{side}_keys", packed(f"{side}_keys"))
        volumes = array(f"{side}_volumes", 8 * keys.size)
        plain[side] = plain[side] | {"keys": keys, "volumes": volumes}
        for name in ("losses", "likeliest"):
            stored = f"{side}_{name}" in members
            plain[side][name] = array(f"{side}_{name}", 8 * keys.size) if stored else None
        counts.append(keys.size)
    rows = array("rows", 8 * math.prod(counts))
    columns, savings = (array(name, 8 * rows.size) for name in ("columns", "savings"))
    return plain | {"rows": rows, "columns": columns, "savings": savings}


def _added(overlaps: Sequence[Overlap]) -> Overlap:
    """The sum of several overlaps, at least one."""
    first = overlaps[0]
    for overlap in overlaps[1:]:
        if overlap.similarity != first.similarity:
            raise InputError(
                f"overlaps of {first.similarity!r} and of {overlap.similarity!r} cannot be added"
            )
    reference, rows = _united([overlap.reference for overlap in overlaps], "reference")
    prediction, columns = _united([overlap.prediction for overlap in overlaps], "prediction")
    savings = np.concatenate([overlap.meeting.savings for overlap in overlaps])
    pairs = np.concatenate(
        [
            rows[k][overlap.meeting.rows] * len(prediction) + columns[k][overlap.meeting.columns]
            for k, overlap in enumerate(overlaps)
        ]
    )
    order = np.argsort(pairs, kind="stable")  # which takes advantage of parts that are in order
    pairs, savings = pairs[order], savings[order]
    distinct = np.flatnonzero(np.diff(pairs, prepend=-1))
    if pairs.size:
        pairs, savings = pairs[distinct], np.add.reduceat(savings, distinct)
    return Overlap(
        first.similarity,
        sum(overlap.pixels for overlap in overlaps),
        reference,
        prediction,
        Pairs(*np.divmod(pairs, max(len(prediction), 1)), savings),
    )


def _united(several: Sequence[Regions], side: Side) -> tuple[Regions, list[Integers]]:
    """The regions of one side of several overlaps, and where those of each are among them."""
    first = several[0]
    names: dict[int, str] = {}
    colours: dict[int, str] = {}
    numbers: dict[int, int] = {}
    origins: dict[int, Label] = {}
    for regions in several:
        colours = {**regions.colours, **colours}
        numbers = {**regions.numbers, **numbers}
        origins = {**regions.origins, **origins}
        if regions.crisp != first.crisp:
            raise InputError(
                f"{side}: overlaps of a label map and of probabilities cannot be added"
            )
        if not first.crisp and (regions.numbers, regions.labels) != (first.numbers, first.labels):
            raise InputError(
                f"{side}: overlaps of probabilities of other regions cannot be added: found "
                f"{first.labels} and {regions.labels}"
            )
        for key, name in regions.names.items():
            if names.setdefault(key, name) != name:
                raise InputError(
                    f"{side}: label {key} is called {names[key]!r} in one overlap and {name!r} in "
                    f"another, so they cannot be added"
                )
    keys = first.keys
    if any(not np.array_equal(regions.keys, keys) for regions in several[1:]):
        keys = _union([regions.keys for regions in several])
    places = [np.searchsorted(keys, regions.keys) for regions in several]
    volumes = np.zeros(keys.size, first.volumes.dtype)
    losses = None if first.losses is None else np.zeros(keys.size)
    # One overlap without these counts leaves those of the sum unknown.
    counted = all(regions.likeliest is not None for regions in several)
    likeliest = np.zeros(keys.size, np.int64) if counted else None
    for regions, place in zip(several, places, strict=True):
        volumes[place] += regions.volumes
        if losses is not None and regions.losses is not None:
            losses[place] += regions.losses
        if likeliest is not None and regions.likeliest is not None:
            likeliest[place] += regions.likeliest
    total = Regions(keys, volumes, first.crisp, names, losses, colours, likeliest, numbers, origins)
    return total, places


def _union(several: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """All keys, ascending; whole numbers throughout, which NumPy would make floating ones."""
    if len({keys.dtype for keys in several}) > 1:
        several = [_integers(keys.tolist()) for keys in several]
        if len({keys.dtype for keys in several}) > 1:
            if any(keys.size and int(keys[0]) < 0 for keys in several):
                raise InputError("labels below 0 and labels from 2⁶³ on cannot be added")
            several = [keys.astype(np.uint64) for keys in several]
    return np.unique(np.concatenate(several))


def _integers(keys: Any) -> NDArray[Any]:
    """Labels as int64, or as uint64 where they need it."""
    array = np.asarray(keys)
    if array.size == 0:
        return np.zeros(0, np.int64)
    # NumPy makes floating numbers of a list that has labels on either side of 2⁶³.
    if isinstance(keys, list) and all(type(key) is int for key in keys) and max(keys) >= 2**63:
        array = np.array(keys, np.uint64)
    if array.dtype.kind not in "iu":
        raise InputError(f"labels must be whole numbers, found {array.dtype}")
    if array.dtype == np.uint64 and int(array.max()) >= 2**63:
        return array
    return array.astype(np.int64)


def _places(count: int, occupied: Integers) -> Integers:
    """Where each region is among those that are not empty."""
    places = np.full(count, -1, np.int64)
    places[occupied] = np.arange(occupied.size)
    return places


def _as_long(arrays: Sequence[NDArray[Any]]) -> bool:
    """Whether these are rows of equal length."""
    return all(array.shape == (arrays[0].size,) for array in arrays)


def _counts_fit(regions: Regions, pixels: int) -> bool:
    """Whether the pixels at which regions are the likeliest are counts of this many pixels."""
    counts = regions.likeliest
    if counts is None:
        return True
    return (
        not regions.crisp
        and counts.shape == regions.keys.shape
        and bool(np.all((counts >= 0) & (counts <= pixels)) and np.any(regions.present))
    )


def _within(indices: Integers, count: int) -> bool:
    return not indices.size or (int(indices.min()) >= 0 and int(indices.max()) < count)


def _column(regions: Regions, indices: Integers) -> Any:
    """Labels for a table: numbers as an array, names as a list."""
    if not regions.names and (regions.crisp or not regions.numbers):
        return regions.keys[indices]
    labels = regions.labels
    return [labels[k] for k in indices.tolist()]
