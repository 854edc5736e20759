"""The options for the statistics and rankings of an evaluation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

from probdice.options.checks import OneOf, texts_in
from probdice.options.declaration import Form, declarations, option
from probdice.options.stored_options import summary_entries, values_from_summary

__all__ = ["SCHEMES", "MissingRule", "Scheme", "StatisticsOptions"]

MissingRule = Literal["worst", "zero", "exclude"]
Scheme = Literal["rank-then-aggregate", "aggregate-then-rank", "test-based"]


@dataclass(frozen=True)
class SchemeWords:
    """The descriptions of a ranking scheme.

    Attributes
    ----------
    help : str
        Description in the help text of ``--scheme``.
    place : str
        How the places of the methods are determined, for HTML pages.
    """

    help: str
    place: str


SCHEMES: dict[Scheme, SchemeWords] = {  # `evaluation.ranking_schemes` orders the methods
    "rank-then-aggregate": SchemeWords(
        "by the mean rank within cases",
        "By the mean rank within cases; tied methods share a place",
    ),
    "aggregate-then-rank": SchemeWords(
        "by the mean, or the median if a value is infinite",
        "By the mean, or the median if a value is infinite",
    ),
    "test-based": SchemeWords(
        "by the share of other methods that each method beats significantly",
        "By the share of other methods that the method beats significantly",
    ),
}
DEFAULT_SCHEME: Scheme = "rank-then-aggregate"


def _scheme_help() -> str:
    default = {DEFAULT_SCHEME: " (the default)"}
    texts = [f"{name}{default.get(name, '')}: {words.help}" for name, words in SCHEMES.items()]
    return f"How methods are ordered. {'; '.join(texts)}."


@dataclass(frozen=True, kw_only=True)
class StatisticsOptions:
    """The options for the statistics and rankings over the cases of an evaluation.

    An `Evaluation` stores one instance, in which `rank_by` contains at least one measure.
    """

    missing: MissingRule = option(
        "worst",
        OneOf("missing", get_args(MissingRule)),
        Form("Ranking", "RULE"),
        "How missing and failed cases of a method count. worst (the default): the method ranks "
        "last for these cases; zero: the method ranks last, and the cases count as 0 in means (as "
        "infinite if lower values are better); exclude: the ranking excludes these cases for all "
        "methods.",
    )
    rank_by: tuple[str, ...] = option(
        (),
        texts_in("rank_by"),
        Form("Ranking", "MEASURE", repeated=True),
        "Measure by which methods are ranked. The default is foreground_dice with --background, "
        "otherwise adjusted_score with --merge, otherwise score. Other values: a measure, a column "
        "of cases.csv, or MEASURE[@TOLERANCE]:REGION, such as dice:2, hd95:tumour or nsd@1:tumour. "
        "Repeat the option to rank by several measures with equal weights.",
    )
    scheme: Scheme = option(
        DEFAULT_SCHEME,
        OneOf("scheme", tuple(SCHEMES)),
        Form("Ranking", "SCHEME", advanced=True),
        _scheme_help(),
    )

    def to_summary(self) -> dict[str, Any]:
        """Return the options as entries of summary.json."""
        return summary_entries(self, declarations(StatisticsOptions))

    @classmethod
    def from_summary(cls, summary: Mapping[str, Any]) -> Self:
        """Restore the options from the content of summary.json."""
        return cls(**values_from_summary(summary, declarations(StatisticsOptions)))
