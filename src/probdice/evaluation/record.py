"""One case of one method, as the journal holds it, and its measures."""

from dataclasses import dataclass
from math import isnan, nan
from typing import Any, Literal, get_args

from probdice.comparison import Comparison
from probdice.errors import InputError, Note

__all__ = ["MEASURES", "Measure", "Record"]

Measure = Literal[
    "score",
    "adjusted_score",
    "matched_score",
    "explained_reference",
    "explained_prediction",
    "mean_dice",
    "lowest_dice",
]
MEASURES: tuple[Measure, ...] = get_args(Measure)


@dataclass(frozen=True)
class Record:
    """One case of one method.

    Attributes
    ----------
    case, method : str
    comparison : Comparison or None
        The comparison, without its images; None where the case failed.
    failure : Note or None
        Why it failed; None where it did not.
    seconds : float
        How long it took.
    reference, prediction : tuple of str
        The full paths of the files of both sides, one per region where there are several.
    """

    case: str
    method: str
    comparison: Comparison | None
    failure: Note | None
    seconds: float
    reference: tuple[str, ...]
    prediction: tuple[str, ...]

    @classmethod
    def from_line(cls, content: dict[str, Any]) -> "Record":
        """From a line of the journal; InputError where what it holds makes no sense."""
        comparison = failure = None
        if "comparison" in content:
            comparison = Comparison.from_dict(content["comparison"])
        else:
            try:
                failure = Note.from_dict(content["failure"])
            except (LookupError, TypeError) as error:
                raise InputError(f"cases.jsonl: a failure cannot be read: {error}") from error
        return cls(
            content["case"],
            content["method"],
            comparison,
            failure,
            content["seconds"],
            tuple(content["files"]["reference"]),
            tuple(content["files"]["prediction"]),
        )

    @property
    def error(self) -> str:
        """Why it failed, in a sentence, or ""."""
        return "" if self.failure is None else str(self.failure)

    def value(self, measure: Measure) -> float:
        """A measure of this case; NaN where it failed.

        "mean_dice" and "lowest_dice" are over all groups, regions without a partner included.
        """
        comparison = self.comparison
        if comparison is None:
            return nan
        if measure == "score":
            return comparison.score
        if measure == "adjusted_score":
            return comparison.adjusted_score
        if measure == "matched_score":
            return comparison.matched_score
        if measure == "explained_reference":
            return comparison.explained["reference"]
        if measure == "explained_prediction":
            return comparison.explained["prediction"]
        dice = [group.dice for group in comparison.groups if not isnan(group.dice)]
        if not dice:
            return nan
        return min(dice) if measure == "lowest_dice" else sum(dice) / len(dice)
