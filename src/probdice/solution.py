"""From two segmentations over Ω to groups and scores: tally, match, merge, score.

Regions that are not empty are known here by their index among such regions of their side.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from probdice.blocks import Groups, Pair
from probdice.errors import TooLargeError
from probdice.matching import by_label, by_weight
from probdice.merging import TIE, Joined, join_spares
from probdice.segmentation import Label, Segmentation
from probdice.similarity import Aitchison, Similarity
from probdice.tally import CrispTally, PairSums, Side, Tally, other

__all__ = ["SIDES", "Grouped", "Join", "Merging", "Problem", "Regions", "Solution"]

Merging = Literal["none", "prediction", "reference", "both"]
SIDES: tuple[Side, Side] = ("reference", "prediction")

SAMPLES = 2**18  # pairs of pixels that chance is estimated from
SAMPLED_VALUES = 2**24  # values of both sides that may be held for it
LARGEST_TABLE = 2**27  # pairs of regions, each a number of eight bytes


@dataclass(frozen=True)
class Join:
    """A spare region that joined the group of region `into` of the other side."""

    side: Side
    region: int
    into: int
    gain: float


@dataclass(frozen=True)
class Grouped:
    """A group: its regions, and what it costs over all pixels.

    `loss` is the sum of 1 − f between its auxiliary segmentations, `difference` that of |p − q|.
    """

    reference: tuple[int, ...]
    prediction: tuple[int, ...]
    loss: float
    difference: float = nan

    def side(self, side: Side) -> tuple[int, ...]:
        """The regions of one side."""
        return self.reference if side == "reference" else self.prediction

    def joined_by(self, side: Side, more: list[int], gains: list[float]) -> "Grouped":
        """The group with more regions on one side."""
        regions = tuple(sorted((*self.side(side), *more)))
        loss = self.loss - sum(gains)
        if side == "reference":
            return replace(self, reference=regions, loss=loss)
        return replace(self, prediction=regions, loss=loss)


@dataclass(frozen=True)
class Solution:
    """Who belongs to whom, and how well it fits."""

    groups: tuple[Grouped, ...]
    joins: tuple[Join, ...]
    score: float
    matched_score: float
    infinite: int


@dataclass(frozen=True)
class Regions:
    """The regions of one side."""

    keys: tuple[int, ...]  # channel or label of those that are not empty
    names: tuple[Label, ...]  # the same as the user knows them
    empty: tuple[Label, ...]


@dataclass(frozen=True, eq=False)
class Problem:
    """Two sides that have been tallied, and the question that is asked of them."""

    pair: Pair
    similarity: Similarity
    match: bool
    merge: Merging
    tally: Tally
    regions: dict[Side, Regions]
    sums: PairSums

    @classmethod
    def of(cls, pair: Pair, similarity: Similarity, match: bool, merge: Merging) -> "Problem":
        """Make the first pass over the pixels."""
        tally = pair.tally(similarity)
        _check_size(tally)
        sums = tally.pairs(similarity)
        kept = {side: np.flatnonzero(sums.volumes[side]) for side in SIDES}
        regions = {
            side: _regions(pair.side(side), tally.labels(side), kept[side]) for side in SIDES
        }
        return cls(pair, similarity, match, merge, tally, regions, sums.restricted(kept))

    def solve(self) -> Solution:
        """Match, merge where asked to, and score."""
        names = self.regions["reference"].names, self.regions["prediction"].names
        found = by_weight(self.sums.table) if self.match else by_label(*names)
        matched = [Grouped((i,), (j,), self.sums.table[i, j]) for i, j in found.pairs]
        alone = [group for side in SIDES for group in self._alone(side, found.spare[side])]
        groups, matched_score, infinite = self._score([*matched, *alone])
        side: Side = "reference" if found.spare["reference"] else "prediction"
        if not found.spare[side] or self.merge not in (side, "both"):
            return Solution(groups, (), matched_score, matched_score, infinite)
        merged, joins = self._merge(matched, side, found.spare[side])
        groups, score, infinite = self._score(merged)
        return Solution(groups, joins, score, matched_score, infinite)

    def keys(self, side: Side, groups: Sequence[Grouped]) -> list[list[int]]:
        """Channels or labels of one side in each group."""
        keys = self.regions[side].keys
        return [[keys[k] for k in group.side(side)] for group in groups]

    def chance(self) -> float:
        """The score of the same question if the two sides were independent."""
        if isinstance(self.tally, CrispTally):
            sums = self.tally.pairs(self.similarity, independent=True)
            kept = {side: np.flatnonzero(sums.volumes[side]) for side in SIDES}
            return replace(self, sums=sums.restricted(kept)).solve().score
        rows = sum(max(len(self.pair.side(side).regions), 1) for side in SIDES)
        count = min(SAMPLES, SAMPLED_VALUES // rows)
        rng = np.random.default_rng(0)
        ranks = {side: np.sort(rng.integers(self.tally.pixels, size=count)) for side in SIDES}
        samples = self.pair.sample(ranks)
        samples["prediction"] = samples["prediction"][..., rng.permutation(count)]
        reference, prediction = (_drawn(self.pair.side(side), samples[side]) for side in SIDES)
        pair = Pair(reference, prediction, mask=None, workers=self.pair.workers)
        return Problem.of(pair, self.similarity, self.match, self.merge).solve().score

    def _alone(self, side: Side, spare: Sequence[int]) -> list[Grouped]:
        """Spare regions as groups of their own, against an empty region."""
        if not spare:
            return []
        if side in self.sums.alone:
            losses = self.sums.alone[side]
        else:
            losses = self.pair.alone(self.similarity, side)[list(self.regions[side].keys)]
        return [
            Grouped((k,), (), losses[k]) if side == "reference" else Grouped((), (k,), losses[k])
            for k in spare
        ]

    def _score(self, groups: Sequence[Grouped]) -> tuple[tuple[Grouped, ...], float, int]:
        """The groups with their differences, the score, and how many pixels are infinitely far."""
        pixels = self.sums.pixels
        if self.sums.separable:
            disagreeing = sum(group.loss for group in groups) / 2
            score = float((pixels - self.sums.unit * disagreeing) / pixels)
            settled = tuple(replace(group, difference=group.loss) for group in groups)
            certain = self.similarity == Aitchison(floor=0)
            return settled, min(max(score, 0.0), 1.0), int(disagreeing) if certain else 0
        assert isinstance(self.similarity, Aitchison)
        keys: dict[Side, Groups] = {side: self.keys(side, groups) for side in SIDES}
        scored = self.pair.score(self.similarity, keys)
        settled = tuple(
            replace(group, difference=float(difference))
            for group, difference in zip(groups, scored.differences, strict=True)
        )
        return settled, max(1 - scored.loss / pixels, 0.0), scored.infinite

    def _merge(
        self, matched: Sequence[Grouped], side: Side, spare: Sequence[int]
    ) -> tuple[list[Grouped], tuple[Join, ...]]:
        """Every spare region of `side` joined to a matched group."""
        across = other(side)
        matched = sorted(matched, key=lambda group: group.side(across))  # ties go to the lower
        targets = [group.side(across)[0] for group in matched]

        def grown(joins: Sequence[Joined]) -> list[Grouped]:
            """The matched groups with the spare regions that have joined them so far."""
            added: list[list[Joined]] = [[] for _ in matched]
            for join in joins:
                added[join.group].append(join)
            return [
                group.joined_by(side, [spare[join.spare] for join in more], [j.gain for j in more])
                for group, more in zip(matched, added, strict=True)
            ]

        def trial(joins: Sequence[Joined], changed: Sequence[int]) -> NDArray[np.float64]:
            """What the changed groups would gain from each spare region that is left."""
            groups = grown(joins)
            left = sorted(set(range(len(spare))) - {join.spare for join in joins})
            keys = self.regions[side].keys
            inside = [[keys[k] for k in groups[g].side(side)] for g in changed]
            others = [
                keys[k]
                for g, group in enumerate(groups)
                if g not in changed
                for k in group.side(side)
            ]
            gains = np.full((len(changed), len(spare)), -np.inf)
            joined = self.pair.joined(
                self.similarity,
                side,
                inside,
                [self.regions[across].keys[targets[g]] for g in changed],
                [keys[spare[u]] for u in left],
                others,
            )
            gains[:, left] = np.array([[groups[g].loss] for g in changed]) - joined
            return gains

        tie = TIE * self.sums.pixels / self.sums.unit
        if side in self.sums.crisp:
            gains = self.sums.gains(side)[np.ix_(spare, targets)].T
            joins = join_spares(gains, tie=tie, again=None)
        else:
            joins = join_spares(
                trial([], range(len(matched))),
                tie=tie,
                again=lambda so_far: trial(so_far, [so_far[-1].group])[0],
            )
        scale = self.sums.unit / self.sums.pixels
        told = tuple(
            Join(side, spare[join.spare], targets[join.group], join.gain * scale) for join in joins
        )
        return grown(joins), told


def _check_size(tally: Tally) -> None:
    rows, columns = (tally.labels(side).size for side in SIDES)
    if rows * columns > LARGEST_TABLE:
        raise TooLargeError(
            f"{rows} reference and {columns} prediction regions make a table of "
            f"{rows * columns * 8 / 2**30:.1f} GiB, more than the "
            f"{LARGEST_TABLE * 8 / 2**30:g} GiB that are tried; compare parts of the image, "
            f"or leave small regions out"
        )


def _regions(side: Segmentation, labels: NDArray[Any], kept: NDArray[np.int64]) -> Regions:
    """Keys and names of the regions that are not empty, and the names of those that are."""
    keys = tuple(int(label) for label in labels)
    present = set(kept.tolist())
    if side.crisp:
        names = tuple(side.label(key) for key in keys)
        seen = set(keys)
        unseen = tuple(name for key, name in side.names.items() if key not in seen)
    else:
        names, unseen = side.regions, ()
    ignored = {side.label(label) for label in side.ignore}
    empty = tuple(name for k, name in enumerate(names) if k not in present)
    return Regions(
        tuple(keys[k] for k in kept),
        tuple(names[k] for k in kept),
        tuple(name for name in (*empty, *unseen) if name not in ignored),
    )


def _drawn(side: Segmentation, sample: NDArray[Any]) -> Segmentation:
    """A side made of pixels that were drawn from it."""
    if side.crisp:
        return Segmentation.from_labels(sample, names=side.names)
    return Segmentation.from_probabilities(sample, names=side.regions)
