"""The methods of an evaluation by every measure: places, statistics and differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from probdice.report.encoding import shortened
from probdice.report.evaluation_cells import (
    Cell,
    absent_cases,
    cell_of,
    interval_cell,
    place_with_interval,
    probability,
    quartile_cell,
    signed,
    words_of,
)
from probdice.report.evaluation_figures import (
    IntervalPlot,
    Stability,
    interval_plot,
    stability_figure,
)
from probdice.text.formatting import decimal, percent

__all__ = [
    "MeasureBlock",
    "PlaceRow",
    "RankingTable",
    "measure_block",
    "places_by_measure",
    "places_by_scheme",
    "ranking_by_all",
]

PLACE = {
    "rank-then-aggregate": "By the mean rank over the cases; equal methods share a place",
    "aggregate-then-rank": "By the mean, or the median if a value is infinite",
    "test-based": "By the number of other methods that this one beats significantly",
}


@dataclass(frozen=True)
class MethodRow:
    """A method by one measure."""

    name: str
    colour: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Pair:
    """Two methods by one measure."""

    first: str
    second: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class MeasureBlock:
    """All methods by one measure, the best first."""

    key: str
    name: str
    about: str
    heads: tuple[tuple[str, str], ...]  # the headings of the cells of a row, each with a remark
    plot: IntervalPlot | None
    methods: tuple[MethodRow, ...]
    pairs: tuple[Pair, ...]
    stability: Stability | None


@dataclass(frozen=True)
class PlaceRow:
    """The places of a method by every measure."""

    name: str
    colour: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class RankingTable:
    """Methods in the order of the ranking."""

    title: str
    about: str
    heads: tuple[str, ...]
    rows: tuple[PlaceRow, ...]


def measure_block(key: str, summary: dict[str, Any], colours: dict[str, str]) -> MeasureBlock:
    name, about = words_of(summary, key)
    content = summary["measures"][key]
    entries = {entry["method"]: entry for entry in content["methods"]}
    counts = {entry["method"]: entry for entry in summary["counts"]}
    differing = any(entry["equal_labels"] is not None for entry in entries.values())
    extreme = "lowest" if content["higher_is_better"] else "highest"
    equal_labels = ("Equal labels", "The mean if equal labels are matched")
    heads = (
        ("Place", PLACE[summary["scheme"]]),
        ("Stability", "Share of bootstrap samples of the cases in which the method has this place"),
        ("Mean", ""),
        ("95 % CI", "Bootstrap confidence interval of the mean, or of the median where infinite"),
        *([equal_labels] if differing else []),
        ("Median", ""),
        ("Quartiles", "From the lower to the upper quartile"),
        (extreme.capitalize(), ""),
        ("Cases", ""),
    )
    rows = []
    for rank in content["ranks"]:
        method = rank["method"]
        entry, count = entries[method], counts[method]
        cells = (
            place_with_interval(rank),
            Cell(rank["kept"], percent(rank["kept"], 0)),
            cell_of(entry["mean"]),
            interval_cell(entry["interval"]),
            *([cell_of(entry["equal_labels"])] if differing else []),
            cell_of(entry["median"]),
            quartile_cell(entry),
            cell_of(entry[extreme]),
            Cell(entry["n"], f"{entry['n']} of {count['cases']}", absent_cases(count)),
        )
        rows.append(MethodRow(shortened(method), colours[method], cells))
    pairs = tuple(
        Pair(
            shortened(entry["first"]),
            shortened(entry["second"]),
            (
                cell_of(entry["median"] if entry["mean"] is None else entry["mean"], signed),
                interval_cell(entry["interval"], signed),
                Cell(entry["p_holm"], probability(entry["p_holm"]), entry["reason"]),
                Cell(entry["n"], str(entry["n"])),
            ),
        )
        for entry in content["differences"]
    )
    stability = stability_figure(content["ranks"], colours)
    plot = interval_plot(key, name, summary, colours)
    return MeasureBlock(key, name, about, heads, plot, tuple(rows), pairs, stability)


def places_by_measure(summary: dict[str, Any], colours: dict[str, str]) -> tuple[PlaceRow, ...]:
    """The place of every method by every measure, the best method first."""
    by_measure = [
        {rank["method"]: rank for rank in content["ranks"]}
        for content in summary["measures"].values()
    ]
    rows = []
    for method in by_measure[0]:
        ranks = [ranks[method] for ranks in by_measure]
        cells = tuple(_place_cell(rank) for rank in ranks)
        rows.append(PlaceRow(shortened(method), colours[method], cells))
    return tuple(rows)


def _place_cell(rank: dict[str, Any]) -> Cell:
    return Cell(
        rank["place"],
        "–" if rank["place"] is None else str(rank["place"]),
        "" if rank["kept"] is None else f"stability {percent(rank['kept'], 0)}",
    )


def ranking_by_all(summary: dict[str, Any], colours: dict[str, str]) -> RankingTable:
    """The ranking by all measures that rank."""
    *others, last = (summary["titles"][key] for key in summary["rank_by"])
    rows = tuple(
        PlaceRow(
            shortened(rank["method"]),
            colours[rank["method"]],
            (
                place_with_interval(rank),
                Cell(rank["kept"], percent(rank["kept"], 0)),
                Cell(rank["mean_rank"], decimal(rank["mean_rank"], 2)),
            ),
        )
        for rank in summary["ranking"]["ranks"]
    )
    about = _agreement(summary["ranking"]["measure_agreement"])
    heads = ("Place", "Stability", "Mean rank")
    title = f"By {', '.join(others)} and {last} together"
    return RankingTable(title, about, heads, rows)


def places_by_scheme(summary: dict[str, Any], colours: dict[str, str]) -> RankingTable:
    """The places by every ranking scheme, which show whether the winner depends on the scheme."""
    schemes = summary["ranking"]["schemes"]
    ranks = {scheme: {rank["method"]: rank for rank in own} for scheme, own in schemes.items()}
    rows = tuple(
        PlaceRow(
            shortened(rank["method"]),
            colours[rank["method"]],
            tuple(_place_cell(own[rank["method"]]) for own in ranks.values()),
        )
        for rank in summary["ranking"]["ranks"]
    )
    about = _agreement(summary["ranking"]["scheme_agreement"])
    return RankingTable("Places by every ranking scheme", about, tuple(schemes), rows)


def _agreement(pairs: list[dict[str, Any]]) -> str:
    """Kendall's τ between rankings."""
    texts = [f"{one['first']} and {one['second']}: {decimal(one['tau'], 2)}" for one in pairs]
    return f"Kendall's τ between rankings. {'; '.join(texts)}." if texts else ""
