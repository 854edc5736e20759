"""What was asked for, checked before any file is touched."""

import operator
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from probdice.errors import InputError
from probdice.evaluation.environment import own_version
from probdice.segmentation import Sums
from probdice.similarity import Aitchison, Similarity
from probdice.solution import Merging

__all__ = [
    "Folder",
    "Options",
    "Which",
    "methods_of",
    "options_of",
    "patterns_of",
    "whole_number",
    "workers_of",
]

Folder = str | os.PathLike[str]
Which = Literal["reference", "prediction"]
T = TypeVar("T")


@dataclass(frozen=True)
class Options:
    """Everything about a run that changes a score.

    Attributes
    ----------
    similarity, floor, match, merge
        As in `compare`; the floor is 0 for "absolute".
    ignore, reference_sums, prediction_sums
        As in `read`.
    scale, reference_scale, prediction_scale : float or None
        The number that stands for certainty: for the sides that need it, or for one of them
        whatever it holds.
    ignore_geometry : bool
        Whether images are compared by array order, wherever they lie.
    geometry_tolerance : float or None
        In pixels; None for that of `compare`.
    version : str
        That of probdice.
    """

    similarity: str
    floor: float
    match: bool
    merge: Merging
    ignore: tuple[int, ...]
    reference_sums: Sums
    prediction_sums: Sums
    scale: float | None
    reference_scale: float | None
    prediction_scale: float | None
    ignore_geometry: bool
    geometry_tolerance: float | None
    version: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return asdict(self) | {"ignore": list(self.ignore)}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Options":
        """Back from JSON."""
        return cls(**(content | {"ignore": tuple(content["ignore"])}))


def options_of(
    similarity: Similarity,
    match: bool,
    merge: Merging,
    ignore: Iterable[int] | int,
    sums: Sums | Mapping[Which, Sums],
    scale: float | Mapping[Which, float] | None,
    ignore_geometry: bool,
    geometry_tolerance: float | None,
) -> Options:
    """The options, checked before any file is touched."""
    if merge not in get_args(Merging):
        raise InputError(
            f"merge must be 'none', 'prediction', 'reference' or 'both', found {merge!r}"
        )
    if not match and merge != "none":
        raise InputError(
            f"merge={merge!r} does not go with match=False: regions are only merged into "
            f"matched ones, so leave one of the two out"
        )
    if ignore_geometry and geometry_tolerance is not None:
        raise InputError(
            f"geometry_tolerance={geometry_tolerance!r} does not go with ignore_geometry=True: "
            f"there is nothing to tolerate where geometry is ignored, so leave one of the two out"
        )
    by_side: dict[str, Sums] = _per_side(sums, "sums")
    for value in by_side.values():
        if value not in get_args(Sums):
            raise InputError(f"sums must be 'error', 'normalise' or 'background', found {value!r}")
    forced: dict[str, float] = _per_side(scale, "scale") if isinstance(scale, Mapping) else {}
    both = None if isinstance(scale, Mapping) else scale
    for number in (both, *forced.values()):
        if number is not None and not 0 < number < float("inf"):
            raise InputError(f"scale must be a positive number, such as 100, found {number!r}")
    return Options(
        similarity=similarity.name,
        floor=similarity.floor if isinstance(similarity, Aitchison) else 0.0,
        match=match,
        merge=merge,
        ignore=_labels(ignore),
        reference_sums=by_side.get("reference", "error"),
        prediction_sums=by_side.get("prediction", "error"),
        scale=both,
        reference_scale=forced.get("reference"),
        prediction_scale=forced.get("prediction"),
        ignore_geometry=ignore_geometry,
        geometry_tolerance=geometry_tolerance,
        version=own_version(),
    )


def whole_number(value: object, name: str) -> int:
    """A whole number of any kind, such as one of NumPy; a boolean is none."""
    try:
        if not isinstance(value, bool):
            return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        pass
    raise InputError(f"{name}: expected a whole number, found {value!r}")


def workers_of(workers: int | None) -> int | None:
    """The number of cores that was asked for."""
    if workers is None:
        return None
    count = whole_number(workers, "workers")
    if count < 1:
        raise InputError(f"workers must be at least 1, found {count}")
    return count


def methods_of(predictions: Mapping[str, Folder] | Folder) -> dict[str, str]:
    """The folder of every method."""
    if not isinstance(predictions, Mapping):
        folder = Path(predictions)
        predictions = {folder.name or folder.resolve().name: folder}
    if not predictions:
        raise InputError("predictions must name at least one method, found none")
    if "" in predictions:
        raise InputError("predictions must name every method, found an empty name")
    return {str(name): os.fspath(folder) for name, folder in predictions.items()}


def patterns_of(
    pattern: str | Mapping[str, str] | None, methods: Iterable[str]
) -> tuple[str | None, dict[str, str | None]]:
    """The pattern of the reference, and of every method."""
    methods = list(methods)
    if not isinstance(pattern, Mapping):
        return pattern, dict.fromkeys(methods, pattern)
    if unknown := pattern.keys() - {"reference", "prediction", *methods}:
        raise InputError(
            f"pattern: expected 'reference', 'prediction' or a method, found {sorted(unknown)}"
        )
    general = pattern.get("prediction")
    # "reference" is the reference, even where a method is called so too.
    return pattern.get("reference"), {
        name: general if name == "reference" else pattern.get(name, general) for name in methods
    }


def _labels(ignore: Iterable[int] | int) -> tuple[int, ...]:
    """One label or several."""
    several = isinstance(ignore, Iterable) and not isinstance(ignore, str | bytes)
    if several and getattr(ignore, "ndim", 1) == 1:
        return tuple(whole_number(label, "ignore") for label in ignore)  # type: ignore[union-attr]
    return (whole_number(ignore, "ignore"),)


def _per_side(value: T | Mapping[Which, T], name: str) -> dict[str, T]:
    if not isinstance(value, Mapping):
        return {"reference": value, "prediction": value}
    by_side = {str(side): item for side, item in value.items()}
    if not by_side.keys() <= {"reference", "prediction"}:
        raise InputError(
            f"{name}: expected values for 'reference' and 'prediction', found {sorted(by_side)}"
        )
    return by_side
