"""A comparison as plain types, and back."""

from contextlib import suppress
from dataclasses import asdict
from math import nan
from typing import Any

import numpy as np

from probdice.chance import Chance
from probdice.comparison import FORMAT, Comparison, Group, Merge
from probdice.errors import InputError, Note, ProbdiceError
from probdice.groups import Groups
from probdice.merging import Join
from probdice.options import Options
from probdice.overlaps import Overlap
from probdice.scoring import Correspondence, NeedsImages
from probdice.sides import SIDES

__all__ = ["comparison_from_dict", "comparison_to_dict"]


def comparison_to_dict(result: Comparison) -> dict[str, Any]:
    """Everything that is known without another pass over the pixels."""
    content: dict[str, Any] = {"format": FORMAT}
    for name in ("score", "matched_score"):
        with suppress(NeedsImages):
            content[name] = getattr(result, name)
    chance = result.__dict__.get("_chance")
    if chance is None:
        with suppress(NeedsImages):
            chance = result._chance_with(None)
    if chance is not None and "score" in content:
        result.__dict__["_chance"] = chance
        content |= {
            "chance": chance.level,
            "chance_error": chance.error,
            "adjusted_score": result.adjusted_score,
        }
    if result.overlap.crisp or "explained" in result.__dict__:
        content["explained"] = dict(result.explained)
    found = result._correspondence
    return content | {
        "groups": [_plain(group) for group in result.groups],
        "merges": [_plain(merge) for merge in result.merges],
        "unmatched": {side: list(result.unmatched[side]) for side in SIDES},
        "empty": {side: list(result.empty[side]) for side in SIDES},
        "notes": [note.to_dict() for note in result.notes],
        "pixels": result.pixels,
        "options": result._options.to_dict(),
        "overlap": result.overlap.to_dict(),
        "correspondence": {
            "matched": _groups_to_dict(found.matched),
            "groups": _groups_to_dict(found.groups),
            "costs": result._costs.tolist(),
            "joins": [asdict(join) for join in found.joins],
        },
    }


def comparison_from_dict(content: Any) -> Comparison:
    """Back from plain types, with everything that was known."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        found = content.get("format") if isinstance(content, dict) else type(content).__name__
        raise InputError(f"expected a comparison of format {FORMAT}, found {found}")
    try:
        result = Comparison(
            Overlap.from_dict(content["overlap"]),
            _correspondence(content["correspondence"]),
            Options.from_dict(content["options"]),
        )
        _check(result)
        known: dict[str, Any] = {
            "groups": tuple(Group(**_frozen(group)) for group in content["groups"]),
            "merges": tuple(Merge(**_frozen(merge)) for merge in content["merges"]),
            "notes": tuple(Note.from_dict(note) for note in content["notes"]),
        }
        for name in ("score", "matched_score"):
            if name in content:
                known[name] = _number(content[name])
        if "chance" in content:
            known["_chance"] = Chance(_number(content["chance"]), _number(content["chance_error"]))
        if "explained" in content:
            known["explained"] = {side: _number(content["explained"][side]) for side in SIDES}
    except ProbdiceError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise InputError(f"holds no whole comparison: {type(error).__name__}: {error}") from None
    result.__dict__.update(known)
    return result


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
        tuple(Join(**(join | {"into": tuple(join["into"])})) for join in content["joins"]),
        np.asarray(content["costs"]),
    )


def _check(result: Comparison) -> None:
    """The regions of the overlap and those of the groups must be the same."""
    found, costs = result._correspondence, result._costs
    for groups in (found.matched, found.groups):
        if groups.reference.shape != (len(result.overlap.reference),) or (
            groups.prediction.shape != (len(result.overlap.prediction),)
        ):
            raise InputError("holds no whole comparison: its groups do not fit its overlap")
    if costs.shape != (found.groups.count,) or costs.dtype.kind not in "if":
        raise InputError("holds no whole comparison: its costs do not fit its groups")


def _plain(value: Group | Merge) -> dict[str, Any]:
    """A group or a merge with lists for tuples."""
    return {
        name: list(item) if isinstance(item, tuple) else item
        for name, item in value.__dict__.items()
    }


def _number(value: Any) -> float:
    return nan if value is None else float(value)


def _frozen(content: dict[str, Any]) -> dict[str, Any]:
    """Lists as tuples and null as NaN, as a Group or a Merge holds them."""
    return {
        key: tuple(value) if isinstance(value, list) else nan if value is None else value
        for key, value in content.items()
    }
