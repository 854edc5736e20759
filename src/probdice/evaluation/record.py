"""One case of one method, as the journal holds it, and its measures."""

import json
from dataclasses import dataclass
from math import isnan, nan
from typing import Any, Literal

from probdice.errors import InputError
from probdice.result import Comparison

__all__ = ["MEASURES", "Measure", "Record", "comparison_of"]

Measure = Literal["score", "adjusted_score", "matched_score", "mean_dice", "lowest_dice"]
MEASURES: tuple[Measure, ...] = (
    "score",
    "adjusted_score",
    "matched_score",
    "mean_dice",
    "lowest_dice",
)


@dataclass(frozen=True)
class Record:
    """One case of one method.

    Attributes
    ----------
    case, method : str
    comparison : Comparison or None
        The comparison, without the table of weights; None where the case failed.
    error : str
        Why it failed, or "".
    seconds : float
        How long it took.
    reference, prediction : tuple of str
        The full paths of the files of both sides, one per region where there are several; empty
        where an old journal does not say.
    ignored : tuple of int or None
        Which of the labels to be ignored the reference has; None where that is not known.
    """

    case: str
    method: str
    comparison: Comparison | None
    error: str
    seconds: float
    reference: tuple[str, ...] = ()
    prediction: tuple[str, ...] = ()
    ignored: tuple[int, ...] | None = None

    @classmethod
    def from_line(cls, content: dict[str, Any]) -> "Record":
        """From a line of the journal; InputError where its comparison makes no sense."""
        comparison = None
        if "comparison" in content:
            comparison = comparison_of(content["comparison"] | {"weights": []})
        files = content.get("files", {})
        return cls(
            content["case"],
            content["method"],
            comparison,
            content.get("error", ""),
            content["seconds"],
            tuple(files.get("reference", ())),
            tuple(files.get("prediction", ())),
            tuple(content["ignored"]) if "ignored" in content else None,
        )

    def value(self, measure: Measure) -> float:
        """A measure of this case; NaN where it failed.

        "mean_dice" and "lowest_dice" are over all groups, regions without a partner included.
        """
        if self.comparison is None:
            return nan
        if measure == "score":
            return self.comparison.score
        if measure == "adjusted_score":
            return self.comparison.adjusted_score
        if measure == "matched_score":
            return self.comparison.matched_score
        dice = [group.dice for group in self.comparison.groups if not isnan(group.dice)]
        if not dice:
            return nan
        return min(dice) if measure == "lowest_dice" else sum(dice) / len(dice)


def comparison_of(content: dict[str, Any]) -> Comparison:
    """A comparison from a line of the journal."""
    try:
        return Comparison.from_json(json.dumps(content))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"cases.jsonl: a comparison cannot be read: {error}") from error
