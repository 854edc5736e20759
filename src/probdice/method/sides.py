"""The two sides of a comparison, and one of something for each."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

__all__ = ["SIDES", "Both", "Side", "other"]

Side = Literal["reference", "prediction"]
SIDES: tuple[Side, Side] = ("reference", "prediction")

T = TypeVar("T")
U = TypeVar("U")


def other(side: Side) -> Side:
    """The side across."""
    return "prediction" if side == "reference" else "reference"


@dataclass(frozen=True)
class Both(Generic[T]):
    """One of something for each side."""

    reference: T
    prediction: T

    def __getitem__(self, side: Side) -> T:
        return self.reference if side == "reference" else self.prediction

    def __iter__(self) -> Iterator[T]:
        return iter((self.reference, self.prediction))

    def map(self, function: Callable[[T], U]) -> "Both[U]":
        """The same function of both."""
        return Both(function(self.reference), function(self.prediction))

    def to_dict(self) -> dict[Side, T]:
        """As users know it: by the name of the side."""
        return {"reference": self.reference, "prediction": self.prediction}
