"""The numbers of a comparison that have been computed so far."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

__all__ = ["Numbers"]

T = TypeVar("T")


class Numbers:
    """Derived values by name, each computed once.

    `get` computes a missing value. `known` never computes one. Text, JSON and pages use this
    version of the value.
    """

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self._values: dict[str, Any] = dict(values or {})

    def get(self, name: str, compute: Callable[[], T]) -> T:
        """Return the value of this name. The first call computes it."""
        if name not in self._values:
            self._values[name] = compute()
        value: T = self._values[name]
        return value

    def put(self, name: str, value: Any) -> None:
        """Store a value. It replaces a value that was computed with other options."""
        self._values[name] = value

    def known(self, name: str) -> Any:
        """Return the value of this name, or None if it was not computed."""
        return self._values.get(name)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def copy(self) -> "Numbers":
        """Return an independent copy with the same values."""
        return Numbers(self._values)
