"""Convert a comparison to built-in Python types and back."""

from dataclasses import asdict, fields, replace
from math import inf, isfinite, isnan, nan
from operator import index
from typing import Any

import numpy as np

from probdice.comparison.foreground import FOREGROUND_NUMBERS
from probdice.comparison.notes import faint_notes
from probdice.comparison.requested_metrics import STORED_METRICS
from probdice.comparison.result import FORMAT_VERSION, Comparison, Group, Merge, Numbers
from probdice.errors import InputError, Note, ProbdiceError
from probdice.method.chance import Chance
from probdice.method.groups import Groups, counted_groups
from probdice.method.merging import RegionMerge
from probdice.method.overlap import Overlap
from probdice.method.scoring import Correspondence
from probdice.method.sides import SIDES, other
from probdice.metrics.volumes import DIFFERENCES
from probdice.options import CompareOptions

__all__ = ["comparison_from_dict", "comparison_to_dict"]

NUMBERS = tuple(entry.name for entry in fields(Group) if entry.type is float)


def comparison_to_dict(result: Comparison) -> dict[str, Any]:
    """Return a comparison as a dictionary, without another pass over the pixels."""
    content: dict[str, Any] = {"format": FORMAT_VERSION}
    names = ["score", "matched_score", "explained"]
    if result.without_a_pass("score") is not None:
        names += ["chance", "chance_error", "adjusted_score"]
    if result.background is not None:
        content["background"] = result.background
        names += FOREGROUND_NUMBERS
    for name in names:
        number = result.without_a_pass(name)
        if number is not None:
            content[name] = dict(number) if isinstance(number, dict) else number
    for name in STORED_METRICS:
        metric = result.numbers.known(name)
        if metric is not None:
            content[name] = metric.to_dict()
    correspondence = result.correspondence
    return content | {
        "mean_dice": result.mean_dice,
        "lowest_dice": result.lowest_dice,
        "groups": [
            _as_dict(group) | {name: getattr(group, name) for name in DIFFERENCES}
            for group in result.groups
        ],
        "merges": [_as_dict(merge) for merge in result.merges],
        "unmatched": {side: list(result.unmatched[side]) for side in SIDES},
        "empty": {side: list(result.empty[side]) for side in SIDES},
        "notes": [note.to_dict() for note in result.notes],
        "pixels": result.pixels,
        "pixel_volume": result.pixel_volume,
        "axes": result.axes,
        "options": result.options.to_dict(),
        "labels_by": result.labels_by,
        "overlap": result.overlap.to_dict(),
        "correspondence": {
            "matched": _groups_to_dict(correspondence.matched),
            "groups": _groups_to_dict(correspondence.groups),
            "costs": result.costs.tolist(),
            "merges": [asdict(join) for join in correspondence.merges],
        },
    }


def comparison_from_dict(content: Any) -> Comparison:
    """Restore a comparison, with all metrics that were stored."""
    if not isinstance(content, dict) or content.get("format") != FORMAT_VERSION:
        is_dict = isinstance(content, dict)
        actual = f"format {content.get('format')}" if is_dict else type(content).__name__
        raise InputError(f"expected a comparison of format {FORMAT_VERSION}, found {actual}")
    try:
        comparison = Comparison(
            Overlap.from_dict(content["overlap"]),
            _correspondence(content["correspondence"]),
            CompareOptions.from_dict(content["options"]),
            pixel_volume=_volume(content["pixel_volume"]),
            axes=_axes(content),
        )
        _check(comparison)
        stored_numbers: dict[str, Any] = {
            "groups": _read_groups(comparison, content["groups"]),
            "notes": _read_notes(comparison, content["notes"]),
        }
        for name in ("score", "matched_score"):
            if name in content:
                stored_numbers[name] = _number(content[name])
        if "chance" in content:
            stored_numbers["chance"] = Chance(
                _number(content["chance"]),
                _number(content["chance_error"]),
                _number(content.get("foreground_chance")),
                _number(content.get("foreground_chance_error", 0.0)),
            )
        if "explained" in content:
            stored_numbers["explained"] = {
                side: _number(content["explained"][side]) for side in SIDES
            }
        for name, metric in STORED_METRICS.items():
            if name in content:
                stored_numbers[name] = metric.read(content[name], comparison)
    except ProbdiceError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise InputError(f"not a complete comparison: {type(error).__name__}: {error}") from None
    return replace(comparison, numbers=Numbers(stored_numbers))


def _groups_to_dict(groups: Groups) -> dict[str, Any]:
    return {
        "reference": groups.reference.tolist(),
        "prediction": groups.prediction.tolist(),
        "matched": groups.matched,
    }


def _groups_from_dict(content: dict[str, Any]) -> Groups:
    return Groups(
        np.asarray(content["reference"], np.int64),
        np.asarray(content["prediction"], np.int64),
        int(content["matched"]),
    )


def _correspondence(content: dict[str, Any]) -> Correspondence:
    return Correspondence(
        _groups_from_dict(content["matched"]),
        _groups_from_dict(content["groups"]),
        tuple(
            RegionMerge(
                join["side"],
                index(join["region"]),
                tuple(index(region) for region in join["into"]),
                index(join["group"]),
                _number(join["gain"]),
            )
            for join in content["merges"]
        ),
        np.asarray(content["costs"]),
    )


def _check(result: Comparison) -> None:
    """Check that the overlap, the groups and the merges refer to the same regions."""
    correspondence, overlap = result.correspondence, result.overlap
    fits = True
    costs = result.costs
    for groups in (correspondence.matched, correspondence.groups):
        for side in SIDES:
            numbers = groups.group_indices(side)
            is_consistent = numbers.shape == overlap.side(side).volumes.shape and np.array_equal(
                numbers >= 0, overlap.side(side).volumes > 0
            )
            fits = fits and is_consistent
        fits = fits and 0 <= groups.matched <= groups.count > 0
    fits = fits and costs.shape == (correspondence.groups.count,) and costs.dtype.kind in "if"
    fits = fits and bool(np.all(np.isfinite(costs)))
    for join in correspondence.merges:
        fits = fits and join.side in SIDES
        fits = fits and 0 <= join.region < len(overlap.side(join.side))
        fits = fits and all(0 <= k < len(overlap.side(other(join.side))) for k in join.into)
    if not fits:
        raise InputError("not a complete comparison: the groups do not match the overlap")


def _read_groups(result: Comparison, content: list[dict[str, Any]]) -> tuple[Group, ...]:
    """Restore the groups with their stored metrics, some of which require the images."""
    grouping = result.correspondence.groups
    groups = []
    faint = (~counted_groups(result.overlap, grouping)).tolist()
    for number, group in zip(range(grouping.count), content, strict=True):
        labels = {
            side: tuple(
                result.overlap.side(side).label(k) for k in grouping.regions(side, number).tolist()
            )
            for side in SIDES
        }
        if any(group[side] != list(labels[side]) for side in SIDES):
            raise InputError("not a complete comparison: the groups do not match the overlap")
        numbers = {name: _number(group[name]) for name in NUMBERS}
        groups.append(
            Group(labels["reference"], labels["prediction"], **numbers, faint=faint[number])
        )
    return tuple(groups)


def _read_notes(result: Comparison, content: list[dict[str, Any]]) -> tuple[Note, ...]:
    """Restore the notes, and add a note if the overlap does not record faint regions."""
    notes = tuple(Note.from_dict(note) for note in content)
    note_kinds = {note.kind for note in notes}
    return (*notes, *(note for note in faint_notes(result) if note.kind not in note_kinds))


def _as_dict(value: Group | Merge) -> dict[str, Any]:
    """Return a group or a merge as a dictionary, with lists instead of tuples."""
    values = {entry.name: getattr(value, entry.name) for entry in fields(value)}
    return {name: list(item) if isinstance(item, tuple) else item for name, item in values.items()}


def _axes(content: dict[str, Any]) -> int | None:
    if "axes" not in content:  # an older file, in which only images with three axes have a volume
        return None if content["pixel_volume"] is None else 3
    value: int | None = content["axes"]
    if value is not None and not (isinstance(value, int) and value >= 0):
        raise InputError(
            f"not a complete comparison: axes is {value!r}, expected null or a whole number"
        )
    return value


def _volume(value: Any) -> float | None:
    if value is not None and not (isinstance(value, int | float) and 0 < value < inf):
        raise InputError(
            f"not a complete comparison: pixel_volume is {value!r}, expected null or a number "
            "above 0"
        )
    return value


def _number(value: Any) -> float:
    """Convert a number from JSON to a float. Null becomes NaN, and infinity is an error."""
    if value is None or (isinstance(value, float) and isnan(value)):
        return nan
    if not isinstance(value, int | float) or not isfinite(value):
        raise InputError(f"not a complete comparison: expected a number, found {value!r}")
    return float(value)
