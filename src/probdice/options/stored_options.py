"""Convert the options of a comparison and those of the statistics to JSON data and back.

Every declared option is stored, except those in `NOT_STORED`. The entry of an option has the name
of the option, and is written only if the value differs from the default. `_ENTRIES` lists the
exceptions. The options of the statistics are entries of summary.json, which are always written.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from probdice.method.matching import GivenGroups, GivenPairs
from probdice.method.sides import SIDES, Both
from probdice.method.similarity import similarity_from_dict
from probdice.options.checks import Names, rule_from_dict
from probdice.options.declaration import Declaration

if TYPE_CHECKING:
    from probdice.options.compare_options import CompareOptions
    from probdice.options.statistics_options import StatisticsOptions

__all__ = [
    "NOT_STORED",
    "stored_options",
    "summary_entries",
    "values_from_dict",
    "values_from_summary",
]

NOT_STORED = ("max_bytes",)  # options that do not change results
# Entries of summary.json that do not have the name of the option.
SUMMARY_KEYS = {"missing": "missing_rule"}  # the entry "missing" lists the missing cases


@dataclass(frozen=True)
class _Entry:
    """An entry of the JSON data.

    Attributes
    ----------
    options : tuple of str
        The options that the entry stores.
    write : callable
        Converts options to the content of the entry.
    read : callable
        Converts the content of the entry to the values of the stored options, by name.
    always : bool
        Whether the entry is always written. Otherwise, the entry is written if the first of
        `options` differs from the default.
    checked : bool
        Whether the values that `read` returns are already checked.
    """

    options: tuple[str, ...]
    write: Callable[["CompareOptions"], Any]
    read: Callable[[Any], Mapping[str, Any]]
    always: bool = False
    checked: bool = False


def stored_options(
    options: "CompareOptions",
    defaults: "CompareOptions",
    option_declarations: Mapping[str, Declaration],
) -> dict[str, Any]:
    """Return the declared options as JSON data."""
    return {
        key: entry.write(options)
        for key, entry in _entries(option_declarations)
        if entry.always or getattr(options, entry.options[0]) != getattr(defaults, entry.options[0])
    }


def values_from_dict(
    content: Mapping[str, Any], option_declarations: Mapping[str, Declaration]
) -> dict[str, Any]:
    """Return the checked values of the options in JSON data, by option name."""
    values: dict[str, Any] = {}
    for key, entry in _entries(option_declarations):
        if entry.always or key in content:
            for name, value in entry.read(content[key]).items():
                values[name] = value if entry.checked else option_declarations[name].check(value)
    return values


def summary_entries(
    statistics: "StatisticsOptions", option_declarations: Mapping[str, Declaration]
) -> dict[str, Any]:
    """Return the declared options of the statistics as entries of summary.json."""
    return {
        SUMMARY_KEYS.get(name, name): _as_json(getattr(statistics, name))
        for name in option_declarations
    }


def values_from_summary(
    summary: Mapping[str, Any], option_declarations: Mapping[str, Declaration]
) -> dict[str, Any]:
    """Return the checked values of the statistics options in summary.json, by option name.

    Options without an entry are omitted. An entry is missing if the summary was written before the
    option was added.
    """
    return {
        name: declaration.check(summary[key])
        for name, declaration in option_declarations.items()
        if (key := SUMMARY_KEYS.get(name, name)) in summary
    }


def _entries(option_declarations: Mapping[str, Declaration]) -> Iterator[tuple[str, _Entry]]:
    """Iterate over the entries of all stored options, in the order of the JSON data."""
    yield from _ENTRIES.items()
    entry_options = {name for entry in _ENTRIES.values() for name in entry.options}
    for name in option_declarations:
        if name not in entry_options and name not in NOT_STORED:
            yield name, _single(name)


def _single(name: str, *, always: bool = False) -> _Entry:
    """Return an entry that stores the value of one option."""
    return _Entry(
        (name,),
        lambda options: _as_json(getattr(options, name)),
        lambda value: {name: value},
        always,
    )


def _as_json(value: Any) -> Any:
    """Convert tuples to lists, and objects that have `to_dict` to dictionaries."""
    if hasattr(value, "to_dict"):
        return {key: _as_json(item) for key, item in value.to_dict().items()}
    return [_as_json(item) for item in value] if isinstance(value, tuple) else value


def _rule(options: "CompareOptions") -> Any:
    rule = options.match
    if isinstance(rule, GivenPairs):
        return {"fixed": _as_json(rule.pairs)}
    return {"given": _as_json(rule.groups)} if isinstance(rule, GivenGroups) else rule


def _names(content: Any) -> Names | None:
    """Restore names from JSON data. A path may be relative to the folder of the JSON file."""
    if content is None or isinstance(content, str):
        return content
    return tuple((label, str(name)) for label, name in content)


# The entries in the order of the JSON data. Entries of other options come after them.
_ENTRIES: dict[str, _Entry] = {
    "similarity": _Entry(
        ("similarity",),
        lambda options: options.similarity.to_dict(),
        lambda content: {"similarity": similarity_from_dict(content)},
        always=True,
    ),
    "match": _Entry(
        ("match",), _rule, lambda content: {"match": rule_from_dict(content)}, always=True
    ),
    "merge": _single("merge", always=True),
    "ignore": _single("ignore", always=True),
    "sums": _single("sums", always=True),
    # "scale" stores a common scale, and "scales" stores the scales of single sides.
    "scale": _Entry(
        ("scale",),
        lambda options: options.common_scale,
        lambda scale: {"scale": scale},
        always=True,
    ),
    "scales": _Entry(
        ("scale",),
        lambda options: {side: options.scale_of(side) for side in SIDES},
        lambda scales: {"scale": scales} if set(scales.values()) != {None} else {},
        always=True,
    ),
    "names": _Entry(
        ("names",),
        lambda options: _as_json(options.names),
        lambda content: {"names": Both(**content).map(_names)},
        always=True,
        checked=True,
    ),
    "priority": _single("priority", always=True),
    "ignore_geometry": _single("ignore_geometry", always=True),
    "tolerance": _Entry(
        ("geometry_tolerance",),
        lambda options: options.geometry_tolerance,
        lambda tolerance: {"geometry_tolerance": tolerance},
        always=True,
    ),
    "nested": _single("nested"),
    "background": _single("background"),
    "resample": _single("resample"),
    "correspondence": _single("correspondence"),
    "boundaries": _Entry(
        ("boundaries", "tolerance", "infinite"),
        lambda options: {"tolerance": list(options.tolerance), "infinite": options.infinite},
        lambda content: {"boundaries": True, **content},
    ),
    "components": _Entry(
        ("components", "connectivity", "minimum_size"),
        lambda options: {
            "labels": list(options.components or ()),
            "connectivity": options.connectivity,
            "minimum_size": options.minimum_size,
        },
        lambda content: {
            "components": content["labels"] or True,
            "connectivity": content["connectivity"],
            "minimum_size": content["minimum_size"],
        },
    ),
    "derived": _Entry(
        ("derived",),
        lambda options: {name: list(members) for name, members in options.derived},
        lambda members: {"derived": members},
    ),
}
