"""Tables of methods for every measure: places, statistics and differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from probdice.options import SCHEMES
from probdice.report.encoding import shortened
from probdice.report.evaluation_figures import (
    IntervalPlot,
    Stability,
    interval_plot,
    stability_figure,
)
from probdice.report.page_tables import (
    NOTHING,
    Cell,
    Column,
    Table,
    cell_of,
    interval_cell,
    measure_words,
    method_cell,
    place_cell,
    signed,
    text_cell,
)
from probdice.text.formatting import decimal, percent

__all__ = [
    "MeasureBlock",
    "measure_block",
    "places_by_measure",
    "places_by_scheme",
    "ranking_by_all",
]

METHOD = Column("Method", number=False)
STABILITY = Column("Stability", "Share of bootstrap samples in which the method has this place")


@dataclass(frozen=True)
class MeasureBlock:
    """All methods by one measure, best first."""

    key: str
    name: str
    about: str
    plot: IntervalPlot | None
    stability: Stability | None
    methods: Table
    pairs: Table


def measure_block(key: str, summary: dict[str, Any], colours: dict[str, str]) -> MeasureBlock:
    name, about = measure_words(summary, key)
    return MeasureBlock(
        key,
        name,
        about,
        interval_plot(key, name, summary, colours),
        stability_figure(summary["measures"][key]["ranks"], colours),
        _statistics(name, summary["measures"][key], summary, colours),
        _differences(name, summary["measures"][key]["differences"], summary["test"]),
    )


def _statistics(
    name: str, content: dict[str, Any], summary: dict[str, Any], colours: dict[str, str]
) -> Table:
    """Return the place and the statistics of every method."""
    entries = {entry["method"]: entry for entry in content["methods"]}
    counts = {entry["method"]: entry for entry in summary["counts"]}
    differing = any(entry["equal_labels"] is not None for entry in entries.values())
    extreme = "lowest" if content["higher_is_better"] else "highest"
    columns = (
        METHOD,
        Column("Place", SCHEMES[summary["scheme"]].place),
        STABILITY,
        Column("Mean"),
        Column(
            "95 % CI", "Bootstrap interval of the mean, or of the median if a value is infinite"
        ),
        *([Column("Equal labels", "The mean if equal labels are matched")] if differing else []),
        Column("Median"),
        Column("Quartiles", "From the lower to the upper quartile"),
        Column(extreme.capitalize()),
        Column("Cases"),
    )
    rows = []
    for rank in content["ranks"]:
        entry, count = entries[rank["method"]], counts[rank["method"]]
        absent = [f"{count[kind]} {kind}" for kind in ("missing", "failed") if count[kind]]
        cells = (
            method_cell(rank["method"], colours),
            place_cell(rank, details=True),
            cell_of(rank["stability"], lambda share: percent(share, 0)),
            cell_of(entry["mean"]),
            interval_cell(entry["interval"]),
            *([cell_of(entry["equal_labels"])] if differing else []),
            cell_of(entry["median"]),
            _quartiles(entry),
            cell_of(entry[extreme]),
            Cell(entry["n"], f"{entry['n']} of {count['cases']}", ", ".join(absent)),
        )
        rows.append(cells)
    return Table(f"{name} of the methods", columns, tuple(rows))


def _quartiles(entry: dict[str, Any]) -> Cell:
    if entry["lower_quartile"] is None:
        return NOTHING
    low, high = entry["lower_quartile"], entry["upper_quartile"]
    return Cell(low, f"{decimal(low)} to {decimal(high)}")


def _differences(name: str, differences: list[dict[str, Any]], test: str) -> Table:
    """Return the mean difference of every pair of methods, with 95 % CI and corrected p-value.

    If a difference is infinite, the median replaces the mean.
    """
    columns = (
        Column("First", number=False),
        Column("Second", number=False),
        Column("First − second"),
        Column("95 % CI"),
        Column("corrected p", f"{test}, corrected for all pairs"),
        Column("Cases"),
    )
    rows = tuple(
        (
            text_cell(shortened(entry["first"])),
            text_cell(shortened(entry["second"])),
            cell_of(entry["median"] if entry["mean"] is None else entry["mean"], signed),
            interval_cell(entry["interval"], signed),
            Cell(entry["p_corrected"], _probability(entry["p_corrected"]), entry["reason"]),
            Cell(entry["n"], str(entry["n"])),
        )
        for entry in differences
    )
    return Table(f"{name}: differences", columns, rows)


def _probability(p: float | None) -> str:
    return "< 0.0001" if p is not None and p < 0.0001 else decimal(p)


def places_by_measure(summary: dict[str, Any], colours: dict[str, str]) -> Table:
    """Return the place of every method by every measure, sorted by the first measure."""
    places = {
        measure_words(summary, key)[0]: content["ranks"]
        for key, content in summary["measures"].items()
    }
    return _places("Places by measure", places, next(iter(places.values())), colours)


def places_by_scheme(summary: dict[str, Any], colours: dict[str, str]) -> Table:
    """Return the place of every method under every scheme. The winner may depend on the scheme."""
    ranking = summary["ranking"]
    about = _agreement(ranking["scheme_agreement"])
    title = "Places by ranking scheme"
    return _places(title, ranking["schemes"], ranking["ranks"], colours, about)


def _places(
    title: str,
    rankings: dict[str, list[dict[str, Any]]],
    order: list[dict[str, Any]],
    colours: dict[str, str],
    about: str = "",
) -> Table:
    """Return the places of all methods in several rankings, in the order of one ranking."""
    by_method = [{rank["method"]: rank for rank in ranks} for ranks in rankings.values()]
    rows = tuple(
        (method_cell(method, colours), *(place_cell(ranks[method]) for ranks in by_method))
        for method in (rank["method"] for rank in order)
    )
    return Table(title, (METHOD, *map(Column, rankings)), rows, about)


def ranking_by_all(summary: dict[str, Any], colours: dict[str, str]) -> Table:
    """Return the ranking by all ranking measures."""
    *first_titles, last_title = (summary["titles"][key] for key in summary["rank_by"])
    rows = tuple(
        (
            method_cell(rank["method"], colours),
            place_cell(rank, details=True),
            cell_of(rank["stability"], lambda share: percent(share, 0)),
            cell_of(rank["mean_rank"], lambda mean: decimal(mean, 2)),
        )
        for rank in summary["ranking"]["ranks"]
    )
    columns = (METHOD, Column("Place"), STABILITY, Column("Mean rank"))
    about = _agreement(summary["ranking"]["measure_agreement"])
    return Table(f"By {', '.join(first_titles)} and {last_title} together", columns, rows, about)


def _agreement(pairs: list[dict[str, Any]]) -> str:
    """Return Kendall's τ between the rankings as text."""
    texts = [f"{one['first']} and {one['second']}: {decimal(one['tau'], 2)}" for one in pairs]
    return f"Kendall's τ between rankings. {'; '.join(texts)}." if texts else ""
