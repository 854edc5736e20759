"""The overlap of two segmentations: all sums over their pixels.

An overlap holds the volume and the cost of each region alone, and the savings of each pair of
overlapping regions. Overlaps of image blocks, training batches and the images of a data set add
up. Matching, scores, chance and other numbers are computed from the total.
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
    from probdice.options import GivenBackground, Match

__all__ = ["Overlap", "Pairs", "Regions"]

FORMAT = 1  # version of the format of save and to_dict
LARGEST_TABLE = 2**27  # pairs of regions in a table, eight bytes per pair
COMPACT = 2**20  # pairs that are collected before they are added up
MOST_PACKED = 64  # largest compression ratio of keys and names
HEADER = ("crisp", "names", "colours", "numbers", "origins")  # fields of a side in the file header
SLACK = 2**16  # bytes of a stored array in addition to its values

# Exceptions that NumPy, zipfile, zlib and json raise for corrupt files.
CORRUPT_FILE_ERRORS = (
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
        Sum of the probabilities of each region; integers for a label map.
    crisp : bool
        Whether the side is a label map.
    names : mapping of int to str
        The names of keys that have one. Regions may share a name.
    losses : ndarray or None
        Σ (1 − f) of each region against an empty region, if it does not follow from the volumes:
        for probabilities with a similarity that is not separable, such as aitchison.
    colours : mapping of int to str
        The colours, such as "#0072B2", of keys that have one in the source.
    likeliest : ndarray of int or None
        Number of pixels at which each region is the most probable, including ties within 1e-6.
        None for a label map, where it equals the volume, and for an overlap saved by version 0.1.
    numbers : mapping of int to int
        The labels of channels that have one. The keys of a label map are its labels, so for a
        label map this mapping holds labels without pixels only.
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
        """Return the number of a region: its label, or the label of its channel."""
        return self.number_of(int(self.keys[index]))

    def number_of(self, key: int) -> int | None:
        """Return the number of a label or channel, or None."""
        return key if self.crisp else self.numbers.get(key)

    def name(self, index: int) -> str | None:
        """Return the name of a region, which other regions may share, or None."""
        return self.names.get(int(self.keys[index]))

    @cached_property
    def _shown_names(self) -> Mapping[int, str]:
        return shown_names(self.names, self.number_of)

    def find(self, label: Label) -> int | None:
        """Return the index of the region with this number, name or label, or None."""
        key = self._key_of(label)
        return None if key is None else self._places.get(key)

    def knows(self, label: Label) -> bool:
        """Return whether a region has this number, name or label, even if it has no pixels."""
        key = self._key_of(label)
        return key is not None and (key in self._places or key in self.names or key in self.numbers)

    def counterpart(self, label: Label) -> Label | None:
        """Return the number of the region with this name, or the name of that with this number."""
        key = self._key_of(label)
        if key is None:
            return None
        return self.number_of(key) if isinstance(label, str) else self.names.get(key)

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
        """The channel of every number. A channel without number and name has its own index."""
        return {**{key: key for key in self.unlabelled}, **{n: k for k, n in self.numbers.items()}}

    @cached_property
    def _keys_by_name(self) -> dict[str, int]:
        shown = {name: key for key, name in self._shown_names.items()}
        return {**shown, **self.unique_names}

    @cached_property
    def unique_names(self) -> dict[str, int]:
        """The keys of regions with a unique name, by name."""
        counts = Counter(self.names.values())
        return {name: key for key, name in self.names.items() if counts[name] == 1}

    @cached_property
    def places_by_name(self) -> dict[str, int]:
        """The indices of regions with a unique name, by name."""
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
        """Return the colour of a region in its source, or None."""
        return self.colours.get(int(self.keys[index]))

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        """The labels of all regions, including empty ones."""
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
        """Which regions count in means over regions and in counts of regions.

        A region of a label map counts if it is not empty. A region of probabilities counts if it
        is the most probable at one pixel or more. If `likeliest` is unknown, every non-empty region
        counts.
        """
        occupied = self.volumes > 0
        return np.asarray(occupied if self.likeliest is None else occupied & (self.likeliest > 0))

    @property
    def _named_or_numbered(self) -> list[int]:
        return list(dict.fromkeys((*self.names, *self.numbers)))

    @property
    def empty(self) -> tuple[Label, ...]:
        """The labels of empty regions, including names and numbers without a region."""
        empty = [self.label(k) for k in np.flatnonzero(self.volumes == 0).tolist()]
        if self.names or self.numbers:
            known = set(self.keys.tolist())
            empty += [self.label_of(key) for key in self._named_or_numbered if key not in known]
        return tuple(empty)

    def to_dict(self) -> dict[str, Any]:
        """Return the regions as plain types."""
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
        """Restore regions from plain types."""
        crisp = bool(content["crisp"])
        losses, likeliest = content["losses"], content.get("likeliest")
        keys = _integers(content["keys"])
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
            None if likeliest is None else _integers(likeliest),
            numbers,
            {index(key): label for key, label in content.get("origins", ())},
        )


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of overlapping regions: `rows` and `columns` are indices of regions of the two sides.

    `savings` is ½ (cost of both regions alone − cost of the pair), summed over the pixels.
    """

    rows: Integers
    columns: Integers
    savings: NDArray[Any]

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, eq=False, repr=False)
class Overlap:
    """The overlap of every pair of regions of two segmentations, summed over their pixels.

    `probdice.overlap` computes it. Add overlaps of different pixels with ``+`` or ``sum``.

    Attributes
    ----------
    similarity : Similarity
        The similarity of two probability vectors.
    pixels : int
        Number of compared pixels (voxels of a volume).
    reference : Regions
        Labels and volumes of the reference, and the cost of each region alone.
    prediction : Regions
        The same for the prediction.
    meeting : Pairs
        The savings of every pair of overlapping regions. For two label maps, it is the number of
        common pixels.

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
        """Return the regions of one side."""
        return self.reference if side == "reference" else self.prediction

    @property
    def crisp(self) -> bool:
        """Whether both sides are label maps. All sums are then integers."""
        return self.reference.crisp and self.prediction.crisp

    @property
    def separable(self) -> bool:
        """Whether the score follows from the sum of the costs of the groups."""
        return self.crisp or self.similarity.separable

    @property
    def unit(self) -> float:
        """The cost of one pixel in the sums of label maps; below 1 only with a floor."""
        return self.similarity.disagreement if self.crisp else 1.0

    @cached_property
    def alone(self) -> Both[NDArray[Any]]:
        """The cost of every region alone: Σ (1 − f) against an empty region, in units."""
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
        """o_ij of every overlapping pair, in the order of `meeting`."""
        return self.meeting.savings * (self.unit / self.pixels)

    def costs(self, rows: Integers, columns: Integers, savings: NDArray[Any]) -> NDArray[Any]:
        """Return the costs of pairs, in units, never below 0."""
        alone = self.alone
        costs: NDArray[Any] = alone.reference[rows] + alone.prediction[columns] - 2 * savings
        return np.asarray(np.maximum(costs, 0))

    @cached_property
    def weights(self) -> Floats:
        """w_ij = 1 − D of every pair of non-empty regions; read-only."""
        rows, columns = self.reference.occupied, self.prediction.occupied
        if rows.size * columns.size > LARGEST_TABLE:
            raise TooLargeError(
                f"the weights of {rows.size} reference and {columns.size} prediction regions take "
                f"{rows.size * columns.size * 8 / 2**30:.1f} GiB, more than the limit of "
                f"{LARGEST_TABLE * 8 / 2**30:g} GiB. Use overlap.to_frame(), which holds the "
                f"overlapping pairs only."
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

    def compare(
        self,
        *,
        match: "Match" = "overlap",
        merge: "Merging" = "none",
        background: "GivenBackground" = None,
    ) -> "Comparison":
        """Match the regions and, if requested, merge unmatched regions.

        The result has no images. Operations that need the pixels again (the aitchison score of
        probabilities, merging them, their chance, maps) raise an error.

        Parameters
        ----------
        match, merge, background
            As in `probdice.compare`.

        Examples
        --------
        >>> import probdice
        >>> overlap = probdice.overlap([1, 1, 1, 1, 2, 2, 2, 2], [7, 7, 5, 5, 5, 9, 9, 9])
        >>> overlap.compare().score, overlap.compare(merge="prediction").score
        (0.625, 0.875)
        """
        from probdice.comparison.comparing import compare_overlap

        return compare_overlap(self, match=match, merge=merge, background=background)

    def indices(self, *, background: "GivenBackground" = None) -> "Indices":
        """Other metrics: Rand index, variation of information, covering, mean IoU, ….

        Metrics that need a correspondence use the one with the largest overlap. For any other
        correspondence, use ``compare(…).indices()``.

        Parameters
        ----------
        background : int, str or mapping of side to int or str, optional
            As in `probdice.compare`.

        Examples
        --------
        >>> import probdice
        >>> indices = probdice.overlap([1, 1, 2, 2], [5, 5, 5, 8]).indices()
        >>> indices.rand, indices.accuracy
        (0.5, 0.75)
        """
        return self.compare(background=background).indices()

    def to_frame(self) -> "pandas.DataFrame":
        """Return a table with one row per pair of overlapping regions.

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
        """Support ``sum``, which starts with 0."""
        if isinstance(other, int) and other == 0:
            return self
        return NotImplemented

    @classmethod
    def total(cls, overlaps: Iterable["Overlap"]) -> "Overlap":
        """Return the sum of many overlaps, added in their order.

        Examples
        --------
        >>> import probdice
        >>> probdice.Overlap.total([probdice.overlap([1, 2], [5, 5])] * 3).pixels
        6
        """
        pending: list[Overlap] = []
        pairs = compact = 0
        for overlap in overlaps:
            pending.append(overlap)
            pairs += len(overlap.meeting)
            # Adding needs a sort, so wait until there are twice as many pairs as after the last.
            if len(pending) > 1 and pairs > COMPACT + 2 * compact:
                pending = [_added(pending)]
                pairs = compact = len(pending[0].meeting)
        if not pending:
            raise InputError("overlaps is empty: expected at least one overlap")
        return pending[0] if len(pending) == 1 else _added(pending)

    def to_dict(self) -> dict[str, Any]:
        """Return the overlap as plain types, with the version of the format.

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
        """Restore an overlap from the output of `to_dict`.

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
                    f"expected an overlap of format {FORMAT}, found format {content['format']}, "
                    f"which another version of probdice wrote"
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
            raise InputError(f"not an overlap: {type(error).__name__}: {error}") from None
        return overlap

    def _check(self) -> None:
        """Reject values that no pass over pixels can produce."""
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
            raise InputError("not an overlap: its parts are inconsistent")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the overlap to a file, which `load` reads. A failed write leaves no partial file.

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
        """Read an overlap from a file written by `save`.

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
        except CORRUPT_FILE_ERRORS as error:
            raise FormatError(
                f"{name}: not a saved overlap, or corrupt: {type(error).__name__}: {error}"
            ) from None

    def __repr__(self) -> str:
        return (
            f"Overlap ({self.similarity}): {self.reference.occupied.size} reference and "
            f"{self.prediction.occupied.size} prediction regions over {self.pixels} pixels, "
            f"{len(self.meeting)} pairs meet"
        )


def _stored(stream: BinaryIO) -> dict[str, Any]:
    """Return the content of a file written by `save`, for `from_dict`.

    A small file may decompress to huge arrays, so the sizes are checked first. Keys and names are
    all different, so their compression ratio is limited. The number of regions then limits the
    sizes of all other arrays.
    """
    from probdice.files.numpy_files import member

    archive = zipfile.ZipFile(stream)
    members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}

    def array(name: str, most: int) -> NDArray[Any]:
        size = members[name].file_size
        if size > most + SLACK:
            raise FormatError(f"corrupt file: {name} has {size} bytes, expected at most {most}")
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
    """Return the sum of one or more overlaps."""
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
    order = np.argsort(pairs, kind="stable")  # a stable sort is fast on sorted runs
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
    """Unite the regions of one side of several overlaps; return their indices in the union."""
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
                f"{side}: overlaps of probabilities with different regions cannot be added: found "
                f"{first.labels} and {regions.labels}"
            )
        for key, name in regions.names.items():
            if names.setdefault(key, name) != name:
                raise InputError(
                    f"{side}: overlaps with different names for label {key} ({names[key]!r} and "
                    f"{name!r}) cannot be added"
                )
    keys = first.keys
    if any(not np.array_equal(regions.keys, keys) for regions in several[1:]):
        keys = _union([regions.keys for regions in several])
    places = [np.searchsorted(keys, regions.keys) for regions in several]
    volumes = np.zeros(keys.size, first.volumes.dtype)
    losses = None if first.losses is None else np.zeros(keys.size)
    # If one overlap lacks these counts, so does the sum.
    known = all(regions.likeliest is not None for regions in several)
    likeliest = np.zeros(keys.size, np.int64) if known else None
    for regions, place in zip(several, places, strict=True):
        volumes[place] += regions.volumes
        if losses is not None and regions.losses is not None:
            losses[place] += regions.losses
        if likeliest is not None and regions.likeliest is not None:
            likeliest[place] += regions.likeliest
    total = Regions(keys, volumes, first.crisp, names, losses, colours, likeliest, numbers, origins)
    return total, places


def _union(several: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Unite keys as ascending integers; NumPy would convert mixed types to floating point."""
    if len({keys.dtype for keys in several}) > 1:
        several = [_integers(keys.tolist()) for keys in several]
        if len({keys.dtype for keys in several}) > 1:
            if any(keys.size and int(keys[0]) < 0 for keys in several):
                raise InputError(
                    "overlaps with labels below 0 and labels of at least 2⁶³ cannot be added"
                )
            several = [keys.astype(np.uint64) for keys in several]
    return np.unique(np.concatenate(several))


def _integers(keys: Any) -> NDArray[Any]:
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


def _places(count: int, occupied: Integers) -> Integers:
    """Return the position of each region among the non-empty regions, or −1."""
    places = np.full(count, -1, np.int64)
    places[occupied] = np.arange(occupied.size)
    return places


def _as_long(arrays: Sequence[NDArray[Any]]) -> bool:
    """Return whether all arrays are one-dimensional and have the same length."""
    return all(array.shape == (arrays[0].size,) for array in arrays)


def _counts_fit(regions: Regions, pixels: int) -> bool:
    """Return whether the counts in `likeliest` are possible for this number of pixels."""
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
    """Return labels for a table: an array of numbers, or a list of labels if there are names."""
    if not regions.names and (regions.crisp or not regions.numbers):
        return regions.keys[indices]
    labels = regions.labels
    return [labels[k] for k in indices.tolist()]
