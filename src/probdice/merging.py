"""Spare regions join the groups of matched ones, the best gain first."""

from collections.abc import Callable
from dataclasses import dataclass
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
    best = gains.max(axis=0)
    joins: list[Joined] = []
    while len(joins) < gains.shape[1]:
        enough = best.max() - tie
        spare = int(np.argmax(best >= enough))
        group = int(np.argmax(gains[:, spare] >= enough))
        joins.append(Joined(spare, group, float(gains[group, spare])))
        gains[:, spare] = best[spare] = -np.inf
        if again is not None and len(joins) < gains.shape[1]:
            left = np.isfinite(best)
            gains[group, left] = again(joins)[left]
            best = gains.max(axis=0)
    return joins
