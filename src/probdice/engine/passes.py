"""The definition of a pass: a function that visits each block, and a function that adds results."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Generic, TypeVar, cast

from probdice.engine.blocks import Blocks
from probdice.engine.grids import Block

__all__ = ["Pass", "joint", "summed"]

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Pass(Generic[R]):
    """A computation on every block of an image.

    Attributes
    ----------
    visit : callable
        Function that returns the result of one block. The function may be called in another
        process, more than once per block, and in any order of blocks.
    add : callable
        Function that returns the sum of several results, which are in the order of their blocks.
        The results may be sums that earlier calls returned.
    halo : int
        The width, in pixels, of the margin around a block that `visit` also reads.
    """

    visit: Callable[[Blocks, Block], R]
    add: Callable[[Iterable[R]], R]
    halo: int = 0

    @property
    def name(self) -> str:
        """Name by which a scheduler displays the pass."""
        visit: Any = self.visit
        while hasattr(visit, "func"):
            visit = visit.func
        return str(visit.__name__).strip("_")


def summed(results: Iterable[R]) -> R:
    """Add results with ``+``."""
    result: R = reduce(cast(Any, add), results)
    return result


def joint(results: Iterable[dict[int, T]]) -> dict[int, T]:
    """Return the union of dictionaries with different keys."""
    return {key: value for some in results for key, value in some.items()}
