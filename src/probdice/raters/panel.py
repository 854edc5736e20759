"""Which regions of several raters are the same, whatever the order of raters and labels.

Every rater's regions belong to distinct common regions. What is sought is the largest sum, over all
pairs of raters, of the overlaps of regions that are the same one. It is climbed from the rater who
agrees best with all others: each rater in turn is matched with all the others as they stand, as
often as that gains anything. All of this happens in the tables of overlaps, not in the pixels.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import chain, combinations, count
from math import fsum
from os import PathLike
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from probdice.comparison.comparing import compare_images
from probdice.comparison.result import Comparison
from probdice.data.segmentation import Segmentation
from probdice.engine.several import Content, Several
from probdice.errors import InputError, Option
from probdice.files.inputs import Comparable, as_mask, as_segmentation
from probdice.method.matching import TIE, find_groups
from probdice.method.overlap import Integers, Overlap, Pairs, Regions
from probdice.method.region_labels import Label, shown_labels
from probdice.method.similarity import Absolute, Similarity
from probdice.options import TOLERANCE, Options, as_workers

__all__ = ["Common", "Panel", "RaterMatch", "Raters", "climb", "panel_of"]

Raters = Sequence[Comparable] | Mapping[str, Comparable]
RaterMatch = Literal["overlap", "labels"]

FEWEST = 2
DIGITS = 9  # of a mean score: less is rounding, and no reason to prefer a rater


@dataclass(frozen=True, eq=False)
class Common:
    """The common regions of some raters.

    Attributes
    ----------
    names : tuple of str
        The raters, in an order that depends on what they hold alone.
    numbers : tuple of dict
        For each of them, the number of the common region of every label or channel.
    region_labels : tuple of int or None
        The number of every common region that has one: the label that most raters give it.
    region_names : mapping of int to str
        The name of every common region that has one, by its number among them.
    """

    names: tuple[str, ...]
    numbers: tuple[dict[int, int], ...]
    region_labels: tuple[int | None, ...]
    region_names: Mapping[int, str]

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        """How the common regions are shown."""
        return shown_labels(self.region_labels, self.region_names)

    def of(self, name: str) -> dict[int, int]:
        """The common regions of one rater."""
        return self.numbers[self.names.index(name)]

    @cached_property
    def channels(self) -> tuple[int, ...]:
        """The common regions by number, then those that have only a name, by name."""

        def order(k: int) -> tuple[bool, int, str]:
            number = self.region_labels[k]
            return number is None, number or 0, self.region_names.get(k, "")

        return tuple(sorted(range(len(self.region_labels)), key=order))


@dataclass(frozen=True, eq=False)
class Panel:
    """Raters of one image, what each holds, and how any two compare."""

    several: Several
    match: RaterMatch
    options: Options

    def __getstate__(self) -> dict[str, Any]:
        """Without what is computed again when it is first asked for."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    @property
    def names(self) -> tuple[str, ...]:
        """The raters in the order in which they were given."""
        return self.several.names

    @cached_property
    def contents(self) -> dict[str, Content]:
        """What each holds, whatever its labels."""
        return self.several.contents()

    @cached_property
    def comparisons(self) -> dict[tuple[str, str], Comparison]:
        """Every pair, in the order in which they were given."""
        _ = self.contents  # values are checked there, under the names of the raters
        return {
            pair: compare_images(self.several.pair(*pair), self.options)
            for pair in combinations(self.names, 2)
        }

    def score(self, first: str, second: str) -> float:
        """How two raters agree."""
        pair = (first, second) if (first, second) in self.comparisons else (second, first)
        return self.comparisons[pair].score

    def regions(self, name: str) -> Regions:
        """The regions of a rater."""
        first, second = next(pair for pair in self.comparisons if name in pair)
        overlap = self.comparisons[first, second].overlap
        return overlap.reference if name == first else overlap.prediction

    def ranked(self, names: Sequence[str]) -> tuple[str, ...]:
        """Raters by how well they agree with all others of these, then by what they hold."""
        scores = {
            name: round(fsum(self.score(name, other) for other in names if other != name), DIGITS)
            for name in names
        }
        return tuple(sorted(names, key=lambda name: (-scores[name], self.contents[name].digest)))

    def common(self, names: Sequence[str]) -> Common:
        """The common regions of some of the raters."""
        ranked = self.ranked(names)
        keys = [self._keys(name) for name in ranked]
        if self.match == "labels":
            found = self._by_label(ranked, keys)
        else:
            found = climb(*self._tables(ranked, keys))
        order = {number: k for k, number in enumerate(dict.fromkeys(chain(*found)))}
        numbers = tuple(
            dict(zip(own, (order[number] for number in belongs), strict=True))
            for own, belongs in zip(keys, found, strict=True)
        )
        called = [
            {number: self._called(name, key) for key, number in of.items()}
            for name, of in zip(ranked, numbers, strict=True)
        ]
        return Common(ranked, numbers, *_elected(called, len(order)))

    def label(self, name: str, key: int) -> Label:
        """What a rater calls a region."""
        return self.regions(name).label_of(key)

    def _called(self, name: str, key: int) -> tuple[int | None, str | None]:
        """The number and the name that a rater gives a region; a bare channel is its number."""
        regions = self.regions(name)
        number, called = regions.number_of(key), regions.names.get(key)
        return key if number is None and called is None else number, called

    def _keys(self, name: str) -> list[int]:
        """The regions of a rater that are not empty, by what they hold."""
        regions = self.regions(name)
        occupied = set(regions.keys[regions.occupied].tolist())
        return [key for key in self.contents[name].keys.tolist() if key in occupied]

    def _by_label(self, ranked: Sequence[str], keys: Sequence[list[int]]) -> list[list[int]]:
        """Equal names where every rater has some, else equal numbers, as for two sides.

        A region without a name of its own belongs to the one named region of its number, if there
        is one that its rater lacks.
        """
        by_name = all(self.regions(name).places_by_name for name in ranked)
        called: list[list[tuple[int | None, str | None]]] = []
        for name, own in zip(ranked, keys, strict=True):
            unique = self.regions(name).unique_names if by_name else {}
            pairs = [self._called(name, key) for key in own]
            called.append([(n, text if text in unique else None) for n, text in pairs])
        named = {pair for own_pairs in called for pair in own_pairs if pair[1] is not None}
        number_of: dict[Label, int] = {}
        belongs: list[list[int]] = []
        for own_pairs in called:
            own_names = {text for _, text in own_pairs}
            belongs.append([])
            for number, text in own_pairs:
                names = {other for n, other in named if n == number} if text is None else {text}
                label: Label | None = number
                if len(names) == 1 and (text is not None or not names & own_names):
                    (label,) = names
                if label is None:
                    raise InputError(
                        f"raters: region {text or number!r} has a name and no number, and "
                        f"others have no names, so with ",
                        Option("match", "labels"),
                        " nothing corresponds; use ",
                        Option("match", "overlap"),
                    )
                belongs[-1].append(number_of.setdefault(label, len(number_of)))
        return belongs

    def _tables(
        self, ranked: Sequence[str], keys: Sequence[list[int]]
    ) -> tuple[list[NDArray[Any]], dict[tuple[int, int], Pairs]]:
        """Volumes by rater and overlaps by pair of raters, regions by what they hold."""
        places = []
        volumes = []
        for name, own in zip(ranked, keys, strict=True):
            regions = self.regions(name)
            order = np.array([_place_of(regions, key) for key in own], np.int64)
            place = np.full(len(regions), -1, np.int64)
            place[order] = np.arange(order.size)
            places.append(place)
            volumes.append(regions.volumes[order])
        tables = {}
        for (first, second), comparison in self.comparisons.items():
            if first in ranked and second in ranked:
                i, j = ranked.index(first), ranked.index(second)
                meeting = comparison.overlap.meeting
                rows, columns = places[i][meeting.rows], places[j][meeting.columns]
                tables[i, j] = Pairs(rows, columns, meeting.savings)
                tables[j, i] = Pairs(columns, rows, meeting.savings)
        return volumes, tables


def climb(
    volumes: Sequence[NDArray[Any]], tables: Mapping[tuple[int, int], Pairs]
) -> list[list[int]]:
    """The number of the common region of every region of every rater.

    Each rater is matched with all that were matched before, and then again with all others until
    nothing is gained. Every step raises the sum of all overlaps within common regions, so this
    comes to an end.
    """
    numbers: list[Integers | None] = [None] * len(volumes)
    fresh = 0
    changed = True
    while changed:
        changed = False
        for i in range(len(volumes)):
            others = {j: other for j, other in enumerate(numbers) if j != i and other is not None}
            together = _together(i, others, volumes, tables)
            gained = _matched(together)
            before = numbers[i]
            tie = 0 if together.crisp else TIE * together.pixels
            if before is not None and _worth(together, gained) <= _worth(together, before) + tie:
                continue
            alone = np.flatnonzero(gained < 0)
            gained[alone] = np.arange(fresh, fresh + alone.size)
            fresh += alone.size
            numbers[i] = gained
            changed = True
    return [[] if found is None else found.tolist() for found in numbers]


def _together(
    i: int,
    others: Mapping[int, Integers],
    volumes: Sequence[NDArray[Any]],
    tables: Mapping[tuple[int, int], Pairs],
) -> Overlap:
    """One rater against the common regions of the others: the sum of its overlaps with each.

    As if their images lay side by side, the rater's own repeated beside each.
    """
    own = volumes[i]
    crisp = all(side.dtype.kind == "i" for side in volumes)
    kind = np.int64 if crisp else np.float64
    keys = np.unique(np.concatenate([np.zeros(0, np.int64), *others.values()]))
    common = np.zeros(keys.size, kind)
    cells, savings = [np.zeros(0, np.int64)], [np.zeros(0, kind)]
    for j, numbers in others.items():
        rows = np.searchsorted(keys, numbers)
        np.add.at(common, rows, volumes[j].astype(kind))
        pairs = tables[j, i]
        cells.append(rows[pairs.rows] * own.size + pairs.columns)
        savings.append(pairs.savings.astype(kind))
    met, places = np.unique(np.concatenate(cells), return_inverse=True)
    shared = np.zeros(met.size, kind)
    np.add.at(shared, places, np.concatenate(savings))
    return Overlap(
        Absolute(),
        round(float(own.sum())) * max(len(others), 1),
        Regions(keys, common, crisp),
        Regions(np.arange(own.size), own.astype(kind) * max(len(others), 1), crisp),
        Pairs(*np.divmod(met, max(own.size, 1)), shared),
    )


def _matched(together: Overlap) -> Integers:
    """The common region of every region of a rater, or −1, by the largest total overlap."""
    groups = find_groups(together, "overlap")
    number_of = np.full(groups.count + 1, -1, np.int64)  # the last one is where −1 leads
    paired = (groups.reference >= 0) & (groups.reference < groups.matched)
    number_of[groups.reference[paired]] = together.reference.keys[paired]
    return number_of[groups.prediction]


def _worth(together: Overlap, numbers: Integers) -> float:
    """What a rater shares with the others if its regions have these numbers."""
    meeting = together.meeting
    agreeing = together.reference.keys[meeting.rows] == numbers[meeting.columns]
    return float(meeting.savings[agreeing].sum())


def _elected(
    called: Sequence[Mapping[int, tuple[int | None, str | None]]], regions: int
) -> tuple[tuple[int | None, ...], dict[int, str]]:
    """A number and a name for every common region: those that most raters give it.

    No two regions get the same number, or the same name where they have no number. The order of
    raters does not matter: of equally frequent ones the lowest is taken, and where two regions
    want the same one, the region with more votes gets it.
    """
    votes = [Counter(of[k] for of in called if k in of) for k in range(regions)]
    wishes: Counter[tuple[Label, int]] = Counter()
    for k, vote in enumerate(votes):
        for (number, name), times in vote.items():
            wishes[name or "" if number is None else number, k] += times
    chosen: dict[int, Label] = {}
    taken: set[Label] = set()
    for label, k in sorted(
        wishes, key=lambda wish: (isinstance(wish[0], str), -wishes[wish], wish[0], wish[1])
    ):
        if k not in chosen and label not in taken:
            chosen[k] = label
            taken.add(label)
    free = count(max((label for label, _ in wishes if isinstance(label, int)), default=-1) + 1)
    labels: list[int | None] = []
    names: dict[int, str] = {}
    for k, vote in enumerate(votes):
        label = chosen[k] if k in chosen else next(free)
        labels.append(None if isinstance(label, str) else label)
        named: Counter[str] = Counter()
        for (number, name), times in vote.items():
            if name is not None and label in (number, name):
                named[name] += times
        if named:
            names[k] = min(named, key=lambda name: (-named[name], name))
    return tuple(labels), names


def _place_of(regions: Regions, key: int) -> int:
    return int(np.searchsorted(regions.keys, np.array(key, regions.keys.dtype)))


def panel_of(
    raters: Raters,
    *,
    match: RaterMatch,
    similarity: str | Similarity = "absolute",
    mask: Comparable | None,
    workers: int | None,
    tolerance: float = TOLERANCE,
) -> Panel:
    """Raters as users give them, checked."""
    if not isinstance(match, str) or match not in get_args(RaterMatch):
        raise InputError(f"match must be 'overlap' or 'labels', found {match!r}")
    if isinstance(raters, Mapping):
        named = {str(name): rater for name, rater in raters.items()}
    elif isinstance(raters, str | PathLike | np.ndarray | Segmentation):
        raise InputError(f"raters must be a list or a mapping of names, found {raters!r:.60}")
    else:
        named = {str(k): rater for k, rater in enumerate(raters, start=1)}
    if len(named) < FEWEST:
        raise InputError(f"raters must be at least {FEWEST}, found {len(named)}")
    sides = {name: as_segmentation(rater, f"rater {name}") for name, rater in named.items()}
    several = Several.of(
        sides, mask=as_mask(mask), workers=as_workers(workers), tolerance=tolerance
    )
    return Panel(several, match, Options.of(similarity=similarity, match=match))
