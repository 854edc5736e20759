"""The two sides of a comparison, and pairs of values with one value per side."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

__all__ = ["SIDES", "Both", "Side", "other"]

Side = Literal["reference", "prediction"]
SIDES: tuple[Side, Side] = ("reference", "prediction")

T = TypeVar("T")
U = TypeVar("U")


def other(side: Side) -> Side:
    """Return the other side."""
    return "prediction" if side == "reference" else "reference"


@dataclass(frozen=True)
class Both(Generic[T]):
    """A pair of values, one per side."""

    reference: T
    prediction: T

    def __getitem__(self, side: Side) -> T:
        return self.reference if side == "reference" else self.prediction

    def __iter__(self) -> Iterator[T]:
        return iter((self.reference, self.prediction))

    def map(self, function: Callable[[T], U]) -> "Both[U]":
        """Apply a function to both values."""
        return Both(function(self.reference), function(self.prediction))

    def to_dict(self) -> dict[Side, T]:
        """Return a dict with the sides as keys."""
        return {"reference": self.reference, "prediction": self.prediction}
