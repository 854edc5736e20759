"""Check the values of options, and convert them to the internal form."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from numbers import Real
from operator import index
from os import PathLike, fspath
from os.path import abspath
from typing import Any, Protocol, SupportsIndex, TypeAlias, TypeGuard, TypeVar, cast

from probdice.errors import InputError
from probdice.method.background import Background
from probdice.method.matching import RULES, GivenGroups, GivenPairs, Rule
from probdice.method.region_labels import Label, whole_number
from probdice.method.sides import SIDES, Both, Side

__all__ = [
    "TOLERANCE",
    "GivenBackground",
    "GivenNames",
    "Match",
    "Names",
    "OneOf",
    "Priority",
    "Scale",
    "as_background",
    "as_components",
    "as_connected",
    "as_max_bytes",
    "as_names",
    "as_names_by_side",
    "as_nested",
    "as_number",
    "as_penalty",
    "as_priority",
    "as_rule",
    "as_scale",
    "as_scheduler",
    "as_subjects",
    "as_tolerance",
    "as_workers",
    "by_side",
    "files_in",
    "folder_in",
    "given_from_list",
    "number_in",
    "numbers_in",
    "rule_from_dict",
    "texts_in",
]

T = TypeVar("T")

CONNECTIVITIES = (2, 4, 8, 6, 18, 26)  # numbers of neighbours of a pixel in 1-D, 2-D and 3-D
TOLERANCE = 0.1  # largest allowed distance between corresponding corners of two grids, in pixels


class HasGroups(Protocol):
    """An earlier comparison, of which only the groups are used."""

    @property
    def groups(self) -> tuple[Any, ...]: ...


Match: TypeAlias = str | Mapping[Any, Label] | HasGroups
# Checked names are the path of a table, or pairs of a label and a name. Users may give other types.
Names: TypeAlias = str | tuple[tuple[Label, str], ...]
GivenNames: TypeAlias = str | PathLike[str] | Mapping[Any, str] | Sequence[str] | None
Priority: TypeAlias = str | Sequence[str]
GivenBackground: TypeAlias = Label | Mapping[Side, Label] | None
# A common scale applies only to a side with probabilities above 1.5, or with several integers per
# pixel. A scale for one side always applies.
Scale: TypeAlias = float | Both[float | None] | None


@dataclass(frozen=True)
class OneOf:
    """A check that accepts only the listed words."""

    name: str
    choices: tuple[str, ...]

    def __call__(self, value: object) -> Any:
        """Return the word, or raise `InputError` if the word is not listed."""
        if isinstance(value, str) and value in self.choices:
            return value
        *first_choices, last_choice = map(repr, self.choices)
        raise InputError(
            f"{self.name} must be {', '.join(first_choices)} or {last_choice}, found {value!r}"
        )


def by_side(name: str, check: Callable[[object], T], default: Any) -> Callable[[object], Both[T]]:
    """Return a check that accepts one value for both sides, or a mapping of sides to values."""

    def check_sides(value: object) -> Both[T]:
        if isinstance(value, Both):
            return value.map(check)
        if not isinstance(value, Mapping):
            return Both(*[check(value)] * 2)
        if not set(value) <= set(SIDES):
            raise InputError(
                f"{name}: expected a mapping with the keys 'reference' and 'prediction', or one of "
                f"them, found the keys {list(value)}"
            )
        return Both(*(check(value.get(side, default)) for side in SIDES))

    return check_sides


def as_rule(match: object) -> Rule:
    """Check the rule for matching regions, and return it in its internal form."""
    if isinstance(match, GivenPairs | GivenGroups) or (isinstance(match, str) and match in RULES):
        return match
    if isinstance(match, Mapping):
        if not match:
            raise InputError(
                "match is an empty mapping: expected {prediction label: reference label}"
            )
        expected = "match must map labels (whole numbers or names) to labels"
        return GivenPairs(
            tuple((_label(k, expected), _label(v, expected)) for k, v in match.items())
        )
    groups = getattr(match, "groups", None)
    if isinstance(groups, tuple):  # an earlier comparison
        return GivenGroups(
            tuple((tuple(group.reference), tuple(group.prediction)) for group in groups)
        )
    hint = ""
    if isinstance(match, bool):
        hint = '. Use match="overlap" instead of True, and match="labels" instead of False'
    raise InputError(
        f"match must be {', '.join(map(repr, RULES))}, a mapping of prediction labels to reference "
        f"labels, or an earlier comparison, found {match!r}{hint}"
    )


def rule_from_dict(content: Any) -> Rule:
    """Restore a matching rule from JSON data."""
    if isinstance(content, str):
        return as_rule(content)
    if "fixed" in content:
        return GivenPairs(tuple((_label(pair[0]), _label(pair[1])) for pair in content["fixed"]))
    return given_from_list(content["given"])


def given_from_list(groups: Any) -> GivenGroups:
    """Restore groups from JSON data."""
    return GivenGroups(
        tuple(
            (tuple(_label(x) for x in group[0]), tuple(_label(x) for x in group[1]))
            for group in groups
        )
    )


def as_background(background: object) -> Background | None:
    """Check the background: a label or name for both sides, or a mapping with one per side."""
    if background is None:
        return None
    if isinstance(background, Both):
        background = background.to_dict()
    sides = background if isinstance(background, Mapping) else dict.fromkeys(SIDES, background)
    if set(sides) != set(SIDES) or any(
        isinstance(label, bool) or not (isinstance(label, str) or hasattr(label, "__index__"))
        for label in sides.values()
    ):
        raise InputError(
            f'background must be a label, a name, or {{"reference": label, "prediction": label}}, '
            f"found {background!r}"
        )
    return Both(*(_label(sides[side]) for side in SIDES))


def as_tolerance(tolerance: object) -> float:
    """Check a geometry tolerance in pixels. None selects the default."""
    if tolerance is None:
        return TOLERANCE
    if not (_is_number(tolerance) and isfinite(tolerance) and tolerance >= 0):
        raise InputError(
            "geometry_tolerance must be a finite, non-negative number of pixels, found "
            f"{tolerance!r}"
        )
    return float(tolerance)


def as_scale(scale: object) -> Scale:
    """Check the scale (the value that means probability 1), for both sides or per side."""
    if isinstance(scale, Mapping | Both):
        return by_side("scale", as_number, None)(scale)
    return as_number(scale)


def as_number(scale: object) -> float | None:
    """Check a single scale: the value that means probability 1."""
    if scale is None:
        return None
    if not (_is_number(scale) and 0 < scale < 2**64):
        raise InputError(
            f"scale must be a positive number below 2**64, such as 100 or 255, found {scale!r}"
        )
    return float(scale)


_RANGES: dict[str, Callable[[float], bool]] = {
    "above 0 and at most 100": lambda x: 0 < x <= 100,
    "finite and at least 0": lambda x: 0 <= x < inf,
    "at least 0 and below 1": lambda x: 0 <= x < 1,
    "from 0 to 1": lambda x: 0 <= x <= 1,
}


def numbers_in(name: str, values: object, expected: str) -> tuple[float, ...]:
    """Check that one or more numbers are in a range, and return them without duplicates."""
    try:
        candidates = list(cast(Iterable[Any], values))
    except TypeError:  # a single number
        candidates = [values]
    if isinstance(values, str | bytes) or not all(_is_number(value) for value in candidates):
        raise InputError(f"{name}: expected numbers ({expected}), found {values!r}")
    numbers = tuple(dict.fromkeys(map(float, candidates)))
    for number in numbers:
        if not _RANGES[expected](number):
            raise InputError(f"{name} must be {expected}, found {number:g}")
    return numbers


def number_in(name: str, value: object, expected: str) -> float:
    """Check that a number is in a range."""
    (number,) = numbers_in(name, [value], expected)
    return number


def as_penalty(distance: object) -> float | None:
    """Check the distance that replaces infinite distances. None keeps infinite distances."""
    return None if distance is None else number_in("infinite", distance, "finite and at least 0")


def as_priority(priority: object) -> tuple[str, ...]:
    """Check one or more names of regions, and return them as strings."""
    if isinstance(priority, str):
        return (priority,)
    if not isinstance(priority, Iterable) or isinstance(priority, Mapping):
        raise InputError(
            f'priority must be names of regions, such as ("tumour", "kidney"), found {priority!r}'
        )
    names = tuple(str(name) for name in priority)
    if len(set(names)) < len(names):
        raise InputError(f"priority must not repeat a name, found {names}")
    return names


def as_components(labels: object) -> tuple[Label, ...] | None:
    """Check the classes to divide into components, and return None for no class and () for all."""
    if labels is None or labels is False:
        return None
    if labels is True:
        return ()
    label_list = (
        list(labels) if isinstance(labels, Iterable) and not isinstance(labels, str) else [labels]
    )
    if not label_list or not all(
        isinstance(label, str) or hasattr(label, "__index__") for label in label_list
    ):
        raise InputError(
            f"components must be labels or names of regions, or True for all classes, found "
            f"{labels!r}"
        )
    return tuple(dict.fromkeys(_label(label) for label in label_list))


def as_connected(connectivity: object) -> int | None:
    """Check the connectivity, but not whether it suits the number of dimensions of each image."""
    if connectivity is None:
        return None
    if isinstance(connectivity, bool) or connectivity not in CONNECTIVITIES:
        raise InputError(
            "connectivity must be 2 (1-D), 4 or 8 (2-D), or 6, 18 or 26 (3-D), found "
            f"{connectivity!r}"
        )
    return index(cast(SupportsIndex, connectivity))


def as_nested(labels: object) -> tuple[int, ...]:
    """Check the labels of nested channels and return them. The first label is the background."""
    if isinstance(labels, str | Mapping) or not isinstance(labels, Iterable):
        raise InputError(f"nested must be labels, such as (0, 2, 1, 3), found {labels!r}")
    numbers = tuple(whole_number(label, "nested") for label in labels)
    if len(numbers) == 1 or len(set(numbers)) < len(numbers):
        raise InputError(
            f"nested must list the label of the background and the labels of one or more regions, "
            f"each once, such as (0, 2, 1, 3), found {numbers}"
        )
    return numbers


def as_names_by_side(names: object) -> Both[Names | None]:
    """Check the names of each side. A mapping of labels to names applies to both sides."""
    if isinstance(names, Mapping) and names and not set(names) <= set(SIDES):
        return Both(*[as_names(names)] * 2)
    return by_side("names", as_names, None)(names)


def as_names(names: object) -> Names | None:
    """Check names, and return the absolute path of a table, or pairs of a label and a name."""
    if names is None:
        return None
    if isinstance(names, str | PathLike):
        return abspath(names)  # the working directory may change
    if isinstance(names, Mapping):
        return tuple((_label(label), str(name)) for label, name in names.items())
    if isinstance(names, Iterable):
        return tuple(enumerate(str(name) for name in names))
    raise InputError(
        f"names must be a mapping of labels to names, a list of names, or the path of a table, "
        f"found {names!r}"
    )


def as_max_bytes(max_bytes: object) -> int | None:
    """Check a memory limit in bytes."""
    return _count(max_bytes, "max_bytes must be a positive integer")


def as_workers(workers: object) -> int | None:
    """Check a number of threads or processes. None means one per core."""
    return _count(workers, "workers must be a positive integer")


def _count(value: object, expected: str) -> int | None:
    if value is None:
        return None
    try:
        number = index(cast(SupportsIndex, value))
    except TypeError:
        number = 0
    if isinstance(value, bool) or number < 1:
        raise InputError(f"{expected}, found {value!r}")
    return number


def as_scheduler(scheduler: object) -> str | None:
    """Check that the address of a Dask scheduler is a string or None."""
    if scheduler is None or isinstance(scheduler, str):
        return scheduler
    raise InputError(
        f"scheduler must be the address of a Dask scheduler, such as 'tcp://host:8786', found "
        f"{scheduler!r}"
    )


def texts_in(name: str, separator: str = "") -> Callable[[object], tuple[str, ...]]:
    """Return a check that accepts strings or a mapping, and returns distinct strings.

    A string is split at `separator`, unless `separator` is empty. A mapping becomes strings such as
    ``key=value``.
    """

    def check(value: object) -> tuple[str, ...]:
        if value is None:
            return ()
        entries: Any = value
        if isinstance(value, Mapping):
            entries = [f"{key}={fspath(entry)}" for key, entry in value.items()]
        elif isinstance(value, str):
            entries = value.split(separator) if separator else [value]
        if not isinstance(entries, Iterable):
            raise InputError(f"{name} must be one or more strings, found {value!r}")
        return tuple(dict.fromkeys(str(entry).strip() for entry in entries))

    return check


def as_subjects(subjects: object) -> str | dict[str, str] | None:
    """Return a mapping of cases to subjects, or the pattern or table that defines the subjects.

    This function does not check whether the cases exist.
    """
    if isinstance(subjects, Mapping):
        return {str(case): str(subject) for case, subject in subjects.items()}
    if subjects is None or isinstance(subjects, str | PathLike):
        return None if subjects is None else fspath(subjects)
    raise InputError(
        f"subjects must be a pattern of case names, the path of a table, or a mapping of cases to "
        f"subjects, found {subjects!r}"
    )


def files_in(name: str, files: object) -> tuple[str, ...]:
    """Check that a value is the path of a file or several paths, and return them as strings."""
    candidates: list[Any] = (
        list(files) if isinstance(files, Iterable) and not isinstance(files, str) else [files]
    )
    if not all(isinstance(file, str | PathLike) for file in candidates):
        raise InputError(f"{name} must be one or more paths of files, found {files!r}")
    return tuple(map(fspath, candidates))


def folder_in(name: str, folder: object) -> str | None:
    """Check that a value is the path of a folder, and return it as a string. None remains None."""
    if folder is None or isinstance(folder, str | PathLike):
        return None if folder is None else fspath(folder)
    raise InputError(f"{name} must be the path of a folder, found {folder!r}")


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, Real) and not isinstance(value, bool)


def _label(value: object, expected: str = "labels must be whole numbers or names") -> Label:
    try:
        return str(value) if isinstance(value, str) else index(cast(SupportsIndex, value))
    except TypeError:
        raise InputError(f"{expected}, found {value!r}") from None
