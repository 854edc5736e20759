"""Check derived regions, which are named unions of labels or names."""

from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import Any, TypeAlias

import numpy as np

from probdice.errors import InputError
from probdice.method.region_labels import Label

__all__ = ["Members", "as_derived", "named_members"]

# The labels or names of the members of each derived region.
Members: TypeAlias = Mapping[str, Label | Sequence[Label]]


def named_members(members: Members) -> dict[str, tuple[Label, ...]]:
    """Check the members of derived regions. A single label becomes a tuple of one label."""
    if not isinstance(members, Mapping) or not members:
        raise InputError(
            f"derived regions must be a mapping of names to labels, such as "
            f'{{"whole tumour": (1, 2, 3)}}, found {members!r}'
        )
    members_of: dict[str, tuple[Label, ...]] = {}
    for name, labels in members.items():
        label_tuple: tuple[Any, ...] = (labels,)
        if isinstance(labels, Iterable) and not isinstance(labels, str):
            label_tuple = tuple(labels)
        if not label_tuple or any(
            isinstance(label, bool) or not isinstance(label, int | str | np.integer)
            for label in label_tuple
        ):
            raise InputError(
                f"derived region {name!r} must consist of labels or names of regions, found "
                f"{labels!r}"
            )
        stripped_name = str(name).strip()
        if not stripped_name:
            raise InputError(f"the name of a derived region must not be empty, found {name!r}")
        if stripped_name in members_of:
            raise InputError(f"two derived regions have the name {stripped_name!r}; rename one")
        members_of[stripped_name] = tuple(
            str(label) if isinstance(label, str) else index(label) for label in label_tuple
        )
    return members_of


def as_derived(members: Members | None) -> tuple[tuple[str, tuple[Label, ...]], ...]:
    """Check derived regions, and return pairs of a name and its members."""
    return () if not members else tuple(named_members(members).items())
