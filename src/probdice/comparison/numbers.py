"""The numbers of a comparison that were computed so far."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

__all__ = ["Numbers"]

T = TypeVar("T")


class Numbers:
    """Derived values by name, each computed once.

    A comparison asks for a value with `get`. Text, JSON and pages ask with `known`, which never
    computes anything.
    """

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self._values: dict[str, Any] = dict(values or {})

    def get(self, name: str, compute: Callable[[], T]) -> T:
        """The value of this name, computed at its first use."""
        if name not in self._values:
            self._values[name] = compute()
        value: T = self._values[name]
        return value

    def known(self, name: str) -> Any:
        """The value of this name, or None if it was not computed."""
        return self._values.get(name)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def copy(self) -> "Numbers":
        """The same values, to which others can be added."""
        return Numbers(self._values)
