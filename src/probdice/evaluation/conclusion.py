"""Describe the result of an evaluation in sentences, for the terminal, files and pages."""

from collections.abc import Mapping, Sequence
from typing import Any

from probdice.evaluation.paired_test import ALPHA, least_corrected
from probdice.evaluation.rater_comparison import RaterComparison, Standing
from probdice.metrics.verdict import overlap_in_words
from probdice.text.formatting import decimal, percent

__all__ = ["conclusion", "join_names", "summary_line"]

DIGITS = 3
OVERLAPS = ("foreground_dice", "mean_dice")  # measures of the overlap, the preferred one first


def conclusion(summary: Mapping[str, Any]) -> str:
    """Describe the winner, significant differences from it, and agreement with raters.

    The sentences name the test and the correction that the summary records. They also report
    whether another ranking scheme has a different winner.

    Parameters
    ----------
    summary : mapping
        The content of summary.json.

    Returns
    -------
    str
        One or more sentences; "" if no method has a place in the ranking.
    """
    return " ".join(conclusion_sentences(summary))


def conclusion_sentences(summary: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the sentences of the conclusion, starting with the most important sentence."""
    ranks = [rank for rank in summary["ranking"]["ranks"] if rank["place"] is not None]
    if not ranks:
        return ()
    winners = [rank["method"] for rank in ranks if rank["place"] == 1]
    if len(summary["methods"]) == 1:
        return (
            f"{_quoted(winners[0])}: {_mean(summary, winners[0])}{_overlap(summary, winners)}.",
            *_rater_sentences(summary, winners),
        )
    similar_methods, separation = _separation(summary, winners, [rank["method"] for rank in ranks])
    return (
        _winner_sentence(summary, winners, ranks[0]),
        *separation,
        *_rater_sentences(summary, [*winners, *similar_methods]),
        *_scheme_sentences(summary, winners),
    )


def summary_line(counts: Sequence[Mapping[str, Any]]) -> str:
    """Return the numbers of scored, missing and failed cases of all methods as text.

    Examples
    --------
    >>> from probdice.evaluation.conclusion import summary_line
    >>> summary_line([{"method": "a", "cases": 9, "scored": 6, "missing": 2, "failed": 1}])
    '6 scored, 2 missing, 1 failed'
    """
    totals = {
        word: sum(count[word] for count in counts) for word in ("scored", "missing", "failed")
    }
    return ", ".join(f"{total} {word}" for word, total in totals.items())


def _winner_sentence(
    summary: Mapping[str, Any], winners: Sequence[str], rank: Mapping[str, Any]
) -> str:
    title_list = join_names([summary["titles"][measure] for measure in summary["rank_by"]])
    overlap = _overlap(summary, winners)
    if len(winners) > 1:
        winner_list = join_names(list(map(_quoted, winners)))
        return f"{winner_list} are tied for first by {title_list}{overlap}."
    details = []
    if summary["scheme"] == "rank-then-aggregate" or len(summary["rank_by"]) > 1:
        details.append(f"mean rank {decimal(rank['mean_rank'], 2)}")
    if len(summary["rank_by"]) == 1:
        details.append(_mean(summary, winners[0]))
    if rank["stability"] is not None:
        details.append(f"first in {percent(rank['stability'], 0)} of bootstrap samples")
    return f"{_quoted(winners[0])} is first by {title_list} ({'; '.join(details)}){overlap}."


def _overlap(summary: Mapping[str, Any], winners: Sequence[str]) -> str:
    """Describe the Dice of the winners as in the verdict of a comparison, or return "".

    The foreground Dice is described if the run has a background, and the mean Dice otherwise. If
    several methods are tied for first, the lowest of their Dice values is described.
    """
    measure = next((key for key in OVERLAPS if key in summary["measures"]), None)
    if measure is None:
        return ""
    means = [
        entry["mean"]
        for entry in summary["measures"][measure]["methods"]
        if entry["method"] in winners and entry["mean"] is not None
    ]
    if not means:
        return ""
    text = f", with {overlap_in_words(min(means)).lower()}"
    is_stated = len(winners) == 1 and measure == summary["rank_by"][0]
    return text if is_stated else f"{text} ({summary['titles'][measure]} {_range(means)})"


def _range(means: Sequence[float]) -> str:
    ends = sorted({decimal(min(means), DIGITS), decimal(max(means), DIGITS)})
    return " to ".join(ends)


def _mean(summary: Mapping[str, Any], method: str) -> str:
    """Return the mean of the first ranking measure as text, with its confidence interval.

    If a value is infinite, the median replaces the mean.
    """
    measure = summary["rank_by"][0]
    entry = next(row for row in summary["measures"][measure]["methods"] if row["method"] == method)
    kind = entry["aggregate"]
    interval = entry["interval"]
    text = f"{kind} {summary['titles'][measure]} {decimal(entry[kind], DIGITS)}"
    if interval["kind"] == "withheld":
        return text
    ends = f"{decimal(interval['low'], DIGITS)}–{decimal(interval['high'], DIGITS)}"
    return f"{text}, 95 % CI {ends}"


def _separation(
    summary: Mapping[str, Any], winners: Sequence[str], order: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the methods that do not differ significantly from the winner, and sentences on tests.

    If there are too few cases to test any method, all other methods are returned.
    """
    if len(winners) > 1:
        return [], []
    tests: dict[str, float | None] = {}
    for pair in summary["ranking"]["differences"]:
        names = (pair["first"], pair["second"])
        if winners[0] in names:
            other = names[0] if names[1] == winners[0] else names[1]
            tests[other] = pair["p_corrected"]
    other_methods = [method for method in order if method in tests]
    if not other_methods:
        return [], []
    untested_methods = [method for method in other_methods if tests[method] is None]
    if len(untested_methods) == len(other_methods):
        return other_methods, [
            f"There are too few {_units(summary)} to test whether {_quoted(winners[0])} differs "
            f"from other methods."
        ]
    similar_methods = [
        method for method in other_methods if (p := tests[method]) is not None and p >= ALPHA
    ]
    winner = _quoted(winners[0])
    if similar_methods:
        method_list = join_names(
            [f"{_quoted(method)} (p = {_p_text(tests[method])})" for method in similar_methods]
        )
        sentence = f"{winner} does not differ significantly from {method_list} ({_test(summary)})."
        sentence += _least_p(summary)
    else:
        tested_names = [
            _quoted(method) for method in other_methods if method not in untested_methods
        ]
        are_all = len(tested_names) == len(summary["methods"]) - 1
        method_list = "all other methods" if are_all else join_names(tested_names)
        sentence = f"{winner} differs significantly from {method_list} ({_test(summary)})."
    if not untested_methods:
        return similar_methods, [sentence]
    untested_list = join_names([_quoted(method) for method in untested_methods])
    return similar_methods, [
        sentence,
        f"There are too few {_units(summary)} to test whether {winner} differs from "
        f"{untested_list}.",
    ]


def _least_p(summary: Mapping[str, Any]) -> str:
    """Return a sentence if there are too few cases for any significant difference, else ""."""
    tests = [pair for pair in summary["ranking"]["differences"] if pair["p"] is not None]
    count = max(pair["n"] for pair in tests)
    least = least_corrected(count, len(tests))
    if least < ALPHA:
        return ""
    return (
        f" With {count} {_units(summary)} and {len(tests)} tests, no difference can be significant "
        f"(p is at least {_p_text(least)})."
    )


def _units(summary: Mapping[str, Any]) -> str:
    """Return the word for the independent units of the tests."""
    return "cases" if summary["subjects"] is None else "subjects"


def _test(summary: Mapping[str, Any]) -> str:
    over = " on subject means" if summary["subjects"] is not None else ""
    return f"{summary['test']}{over}, {summary['correction']}, α = {ALPHA:g}"


def _rater_sentences(summary: Mapping[str, Any], methods: Sequence[str]) -> list[str]:
    """Return sentences that compare methods with inter-rater agreement.

    If there are more than two methods and all have the same result, one sentence reports it.
    """
    if summary["rater_comparison"] is None:
        return []
    rater_comparison = RaterComparison.from_dict(summary["rater_comparison"])
    standings = {name: rater_comparison.standing(name) for name in rater_comparison.methods}
    all_results = _by_result(standings, list(summary["methods"]))
    is_one_result = len(all_results) == 1 and len(standings) > 2
    texts = []
    for same_standings in all_results if is_one_result else _by_result(standings, methods):
        first = next(iter(same_standings.values()))
        if first.level is not None and len(same_standings) > 1:
            method_list = join_names(
                [f"{_quoted(method)} ({one.value})" for method, one in same_standings.items()]
            )
            count = len(same_standings)
            subject = f"All {count} methods, {method_list}," if is_one_result else method_list
            texts.append(f"{subject} are {first.result}: {first.baseline}.")
        else:
            verb = ":" if first.level is None else " is"
            texts += [f"{_quoted(method)}{verb} {one}." for method, one in same_standings.items()]
    return texts


def _by_result(
    standings: Mapping[str, Standing], methods: Sequence[str]
) -> list[dict[str, Standing]]:
    """Group methods that have the same result and are compared with the same baseline."""
    groups: dict[tuple[str, str], dict[str, Standing]] = {}
    for method in (method for method in methods if method in standings):
        standing = standings[method]
        groups.setdefault((standing.result, standing.baseline), {})[method] = standing
    return list(groups.values())


def _scheme_sentences(summary: Mapping[str, Any], winners: Sequence[str]) -> list[str]:
    """Return a sentence about the ranking schemes that have a different winner, if there are any.

    A scheme in which all methods are tied for first has no winner.
    """
    other_winners = []
    for scheme, ranks in summary["ranking"]["schemes"].items():
        scheme_winners = [rank["method"] for rank in ranks if rank["place"] == 1]
        if 0 < len(scheme_winners) < len(ranks) and set(scheme_winners) != set(winners):
            winner_list = join_names(list(map(_quoted, scheme_winners)))
            other_winners.append(f"{winner_list} by the scheme {scheme}")
    return (
        [f"The winner depends on the ranking scheme: {'; '.join(other_winners)}."]
        if other_winners
        else []
    )


def join_names(names: Sequence[str]) -> str:
    """Join names with commas and a final "and".

    Examples
    --------
    >>> from probdice.evaluation.conclusion import join_names
    >>> join_names(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _quoted(method: str) -> str:
    """Return the name of a method in quotation marks, because names can be ordinary words."""
    return f"“{method}”"


def _p_text(value: float | None) -> str:
    return "–" if value is None else decimal(value, DIGITS)
