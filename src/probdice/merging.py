"""Spare regions join the groups of matched ones, the best gain first."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["TIE", "Joined", "join_spares"]

TIE = 1e-12  # gains in the score that are closer than this are equal

Floats = NDArray[Any]


@dataclass(frozen=True)
class Joined:
    """One step: a spare region joins a group, each by its position, and what that gains."""

    spare: int
    group: int
    gain: float


def join_spares(
    gains: Floats, *, tie: float, again: Callable[[list[Joined]], Floats] | None
) -> list[Joined]:
    """Join every spare region to a group, even at a loss.

    Parameters
    ----------
    gains : ndarray, groups × spare regions
        What each group would gain from each spare region.
    tie : float
        Gains within this are equal: the lower region goes first, into the lower group.
    again : callable or None
        Given the joins so far, the gains of all spare regions into the group that has just
        changed. None where a gain does not depend on what the group holds.
    """
    gains = gains.astype(np.float64)
    if again is None:
        return [_join(gains, spare, enough) for spare, enough in _in_order(gains.max(axis=0), tie)]
    joins: list[Joined] = []
    left = np.ones(gains.shape[1], np.bool_)
    while left.any():
        best = np.where(left, gains.max(axis=0), -np.inf)
        enough = best.max() - tie
        joins.append(_join(gains, int(np.argmax(best >= enough)), enough))
        left[joins[-1].spare] = False
        if left.any():
            gains[joins[-1].group] = again(joins)
    return joins


def _join(gains: Floats, spare: int, enough: float) -> Joined:
    """Join a region to the lowest group that gains enough."""
    group = int(np.argmax(gains[:, spare] >= enough))
    return Joined(spare, group, float(gains[group, spare]))


def _in_order(best: Floats, tie: float) -> Iterator[tuple[int, float]]:
    """Regions by falling gain, the lowest first among those that tie with the best of the rest.

    Each with the gain that is enough to tie.
    """
    falling = np.argsort(-best, kind="stable").tolist()
    taken = [False] * len(falling)
    tied: list[int] = []
    seen = first = 0
    for _ in falling:
        while taken[falling[first]]:
            first += 1
        enough = float(best[falling[first]]) - tie
        while seen < len(falling) and best[falling[seen]] >= enough:
            heappush(tied, falling[seen])
            seen += 1
        spare = heappop(tied)
        taken[spare] = True
        yield spare, enough
