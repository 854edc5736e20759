"""Options of compare, evaluate and the commands, checked once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from numbers import Real
from operator import index
from os import PathLike
from os.path import abspath
from typing import Any, Literal, Protocol, SupportsIndex, TypeAlias, TypeVar, cast, get_args

from probdice.data.segmentation import as_sums, several_labels
from probdice.data.value_checks import Sums
from probdice.errors import InputError, Option
from probdice.method.matching import Fixed, Given, Rule
from probdice.method.merging import Merging
from probdice.method.region_labels import Label
from probdice.method.sides import SIDES, Both, Side
from probdice.method.similarity import Absolute, Similarity, as_similarity, similarity_from_dict

__all__ = [
    "Correspondence",
    "GivenNames",
    "Match",
    "Names",
    "Options",
    "Priority",
    "as_names",
    "as_priority",
    "as_scale",
    "as_workers",
    "given_from_list",
]

Correspondence = Literal["case", "set"]


class HasGroups(Protocol):
    """An earlier comparison. Only its groups are used."""

    @property
    def groups(self) -> tuple[Any, ...]: ...


Match: TypeAlias = str | Mapping[Any, Label] | HasGroups

TOLERANCE = 0.1  # largest distance between the corners of two grids, in pixels
T = TypeVar("T")


_UNCHANGED_SUMS: Both[Sums] = Both("error", "error")
_UNSCALED: Both[float | None] = Both(None, None)
_UNNAMED: Both["Names | None"] = Both(None, None)
_UNORDERED: Both[tuple[str, ...]] = Both((), ())

# Checked names are the path of a table, or pairs of a label and its name. Users may give more.
Names: TypeAlias = str | tuple[tuple[Label, str], ...]
GivenNames: TypeAlias = str | PathLike[str] | Mapping[Any, str] | Sequence[str] | None
Priority: TypeAlias = str | Sequence[str]


@dataclass(frozen=True)
class Options:
    """All options that change a result. The images and the mask are not options.

    Attributes
    ----------
    similarity : Similarity
    match : {"overlap", "paper", "labels"}, Fixed or Given
        How regions are matched.
    merge : {"none", "prediction", "reference", "both"}
        The sides whose unmatched regions may be merged.
    ignore : tuple of int
        Labels of the reference whose pixels are excluded.
    sums : Both of {"error", "normalise", "background"}
        How to handle probabilities that do not sum to 1.
    scale : float or None
        The value that means probability 1. Label maps and values up to 1 are not scaled.
    scales : Both of float or None
        The value that means probability 1 on one side, which is always scaled.
    names : Both of path, pairs or None
        The names of labels: the path of a table, or pairs of a label and its name.
    priority : Both of tuple of str
        The regions that get a pixel where masks overlap, in order of priority.
    ignore_geometry : bool
        Whether to ignore image geometry and compare in array order.
    tolerance : float
        The largest distance between the corners of two grids, in pixels.
    correspondence : {"case", "set"}
        Whether regions are matched in every case, or once for all cases of a method.
    max_bytes : int or None
        The largest size of the decompressed values of one file; by default, the memory of the
        machine. It does not change results, so `to_dict` omits it.
    """

    similarity: Similarity = field(default_factory=Absolute)
    match: Rule = "overlap"
    merge: Merging = "none"
    ignore: tuple[int, ...] = ()
    sums: Both[Sums] = _UNCHANGED_SUMS
    scale: float | None = None
    scales: Both[float | None] = _UNSCALED
    names: Both[Names | None] = _UNNAMED
    priority: Both[tuple[str, ...]] = _UNORDERED
    ignore_geometry: bool = False
    tolerance: float = TOLERANCE
    correspondence: Correspondence = "case"
    max_bytes: int | None = None

    @classmethod
    def of(
        cls,
        *,
        similarity: str | Similarity = "absolute",
        match: Match = "overlap",
        merge: Merging = "none",
        ignore: Iterable[int] | int = (),
        sums: Sums | Mapping[Side, Sums] = "error",
        scale: float | Mapping[Side, float] | None = None,
        names: GivenNames | Mapping[Side, GivenNames] = None,
        priority: Priority | Mapping[Side, Priority] = (),
        ignore_geometry: bool = False,
        geometry_tolerance: float | None = None,
        correspondence: Correspondence = "case",
        max_bytes: int | None = None,
    ) -> "Options":
        """Check options and return them in their internal form."""
        rule = as_rule(match)
        merge = as_merging(merge)
        if merge != "none" and (rule == "labels" or isinstance(rule, Given)):
            conflict = (
                Option("match", "labels") if rule == "labels" else "an earlier comparison as match"
            )
            raise InputError(
                Option("merge", merge),
                " cannot be combined with ",
                conflict,
                ": the correspondence is fixed, so no region can be merged. Remove one of the two.",
            )
        if ignore_geometry and geometry_tolerance is not None:
            raise InputError(
                Option("geometry_tolerance", geometry_tolerance),
                " cannot be combined with ",
                Option("ignore_geometry", python="ignore_geometry=True"),
                ": geometry is then not compared. Remove one of the two.",
            )
        by_side = isinstance(scale, Mapping)
        return cls(
            similarity=as_similarity(similarity),
            match=rule,
            merge=merge,
            ignore=several_labels(ignore, "ignore"),
            sums=_UNCHANGED_SUMS if sums == "error" else _sums_per_side(sums),
            scale=None if by_side else as_scale(scale),
            scales=_per_side(scale, "scale", None).map(as_scale) if by_side else _UNSCALED,
            names=_UNNAMED if names is None else _names_per_side(names),
            priority=_UNORDERED if not priority else _priority_per_side(priority),
            ignore_geometry=bool(ignore_geometry),
            tolerance=TOLERANCE if geometry_tolerance is None else as_tolerance(geometry_tolerance),
            correspondence=as_correspondence(correspondence),
            max_bytes=None if max_bytes is None else as_max_bytes(max_bytes),
        )

    def given(self, groups: Given) -> "Options":
        """Return these options with a fixed correspondence."""
        return replace(self, match=groups, merge="none")

    def in_words(self) -> list[str]:
        """Describe the similarity, and the matching if it is not the default."""
        words = [f"{self.similarity} similarity"]
        if isinstance(self.match, Fixed):
            words.append("matched by given pairs of labels")
        elif isinstance(self.match, Given):
            words.append("matched as in an earlier comparison")
        elif self.match == "labels":
            words.append("equal labels matched")
        elif self.match == "paper":
            words.append("matched by the paper's rule")
        if self.correspondence == "set":
            words.append("one correspondence for all cases")
        return words

    def to_dict(self) -> dict[str, Any]:
        """Return the options as JSON data."""
        match: Any = self.match
        if isinstance(match, Fixed):
            match = {"fixed": [list(pair) for pair in match.pairs]}
        elif isinstance(match, Given):
            match = {"given": [[list(labels) for labels in group] for group in match.groups]}
        content = {
            "similarity": self.similarity.to_dict(),
            "match": match,
            "merge": self.merge,
            "ignore": list(self.ignore),
            "sums": self.sums.to_dict(),
            "scale": self.scale,
            "scales": self.scales.to_dict(),
            "names": self.names.to_dict(),
            "priority": {side: list(self.priority[side]) for side in SIDES},
            "ignore_geometry": self.ignore_geometry,
            "tolerance": self.tolerance,
        }
        if self.correspondence != "case":
            content["correspondence"] = self.correspondence
        return content

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Options":
        """Restore options from JSON data."""
        return cls(
            similarity=similarity_from_dict(content["similarity"]),
            match=rule_from_dict(content["match"]),
            merge=as_merging(content["merge"]),
            ignore=several_labels(content["ignore"], "ignore"),
            sums=Both(**content["sums"]).map(as_sums),
            scale=as_scale(content["scale"]),
            scales=Both(**content["scales"]).map(as_scale),
            names=Both(**content["names"]).map(_names_from_json),
            priority=Both(**content["priority"]).map(as_priority),
            ignore_geometry=bool(content["ignore_geometry"]),
            tolerance=as_tolerance(content["tolerance"]),
            correspondence=as_correspondence(content.get("correspondence", "case")),
        )


def as_rule(match: object) -> Rule:
    """Check how regions are matched."""
    if isinstance(match, str) and match in ("overlap", "paper", "labels"):
        return cast(Rule, match)
    if isinstance(match, Fixed | Given):
        return match
    if isinstance(match, Mapping):
        if not match:
            raise InputError(
                "match is an empty mapping: expected {prediction label: reference label}"
            )
        return Fixed(tuple((_label(key), _label(value)) for key, value in match.items()))
    groups = getattr(match, "groups", None)
    if isinstance(groups, tuple):  # an earlier comparison
        return Given(tuple((tuple(group.reference), tuple(group.prediction)) for group in groups))
    hint = ""
    if isinstance(match, bool):
        hint = '; match=True is now match="overlap", and match=False is match="labels"'
    raise InputError(
        f"match must be 'overlap', 'paper', 'labels', a mapping of prediction labels to reference "
        f"labels, or an earlier comparison, found {match!r}{hint}"
    )


def rule_from_dict(content: Any) -> Rule:
    """Restore a matching rule from JSON data."""
    if isinstance(content, str):
        return as_rule(content)
    if "fixed" in content:
        return Fixed(tuple((_label(pair[0]), _label(pair[1])) for pair in content["fixed"]))
    return given_from_list(content["given"])


def given_from_list(groups: Any) -> Given:
    """Restore groups from JSON data."""
    return Given(
        tuple(
            (tuple(_label(x) for x in group[0]), tuple(_label(x) for x in group[1]))
            for group in groups
        )
    )


def as_correspondence(correspondence: object) -> Correspondence:
    """Check the scope of a correspondence."""
    if not isinstance(correspondence, str) or correspondence not in get_args(Correspondence):
        raise InputError(f"correspondence must be 'case' or 'set', found {correspondence!r}")
    return cast(Correspondence, correspondence)


def as_merging(merge: object) -> Merging:
    """Check the sides whose unmatched regions may be merged."""
    if not isinstance(merge, str) or merge not in get_args(Merging):
        raise InputError(
            f"merge must be 'none', 'prediction', 'reference' or 'both', found {merge!r}"
        )
    return cast(Merging, merge)


def as_tolerance(tolerance: object) -> float:
    """Check a geometry tolerance, in pixels."""
    if not (isinstance(tolerance, Real) and isfinite(tolerance) and float(tolerance) >= 0):
        raise InputError(
            f"geometry_tolerance must be a number of pixels of at least 0, found {tolerance!r}"
        )
    return float(tolerance)


def as_scale(scale: object) -> float | None:
    """Check the value that means probability 1."""
    if scale is None:
        return None
    if isinstance(scale, bool) or not isinstance(scale, Real) or not 0 < float(scale) < 2**64:
        raise InputError(f"scale must be a positive number, such as 100 or 255, found {scale!r}")
    return float(scale)


def as_priority(priority: object) -> tuple[str, ...]:
    """Check one or more names of regions."""
    if isinstance(priority, str):
        return (priority,)
    if not isinstance(priority, Iterable) or isinstance(priority, Mapping):
        raise InputError(
            f'priority must be names of regions, such as ("tumour", "kidney"), found {priority!r}'
        )
    names = tuple(str(name) for name in priority)
    if len(set(names)) < len(names):
        raise InputError(f"priority must name every region once, found {names}")
    return names


def as_names(names: object) -> Names | None:
    """Check names: return the absolute path of a table, or pairs of a label and its name."""
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


def as_max_bytes(max_bytes: object) -> int:
    """Check a limit of memory in bytes."""
    number = index(cast(SupportsIndex, max_bytes)) if hasattr(max_bytes, "__index__") else 0
    if isinstance(max_bytes, bool) or number < 1:
        raise InputError(
            f"max_bytes must be a whole number of bytes of at least 1, found {max_bytes!r}"
        )
    return number


def as_workers(workers: object) -> int | None:
    """Check a number of threads or processes; None means the number of cores."""
    if workers is None:
        return None
    try:
        number = index(cast(SupportsIndex, workers))
    except TypeError:
        number = 0
    if isinstance(workers, bool) or number < 1:
        raise InputError(f"workers must be a whole number of at least 1, found {workers!r}")
    return number


def _label(value: object) -> Label:
    try:
        return str(value) if isinstance(value, str) else index(cast(SupportsIndex, value))
    except TypeError:
        raise InputError(
            f"match must map labels (whole numbers or names) to labels, found {value!r}"
        ) from None


def _names_per_side(names: Any) -> Both[Names | None]:
    """Return names by side; a mapping of labels to names applies to both sides."""
    by_side = isinstance(names, Mapping) and names and set(names) <= set(SIDES)
    table: Mapping[Side, Any] = names if by_side else dict.fromkeys(SIDES, names)
    return Both(as_names(table.get("reference")), as_names(table.get("prediction")))


def _names_from_json(content: Any) -> Names | None:
    if content is None or isinstance(content, str):
        return content
    return tuple((label, str(name)) for label, name in content)


def _priority_per_side(priority: Priority | Mapping[Side, Priority]) -> Both[tuple[str, ...]]:
    return _per_side(priority, "priority", ()).map(as_priority)


def _sums_per_side(sums: Sums | Mapping[Side, Sums]) -> Both[Sums]:
    return _per_side(sums, "sums", "error").map(as_sums)


def _per_side(value: T | Mapping[Side, T], name: str, default: T) -> Both[T]:
    """Return values by side, from one value for both or a mapping of sides."""
    if not isinstance(value, Mapping):
        return Both(value, value)
    if not set(value) <= set(SIDES):
        raise InputError(
            f"{name}: expected values for 'reference' and 'prediction', found {list(value)}"
        )
    return Both(value.get("reference", default), value.get("prediction", default))
