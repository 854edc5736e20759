"""Tables of an evaluation page: raters, boundaries, regions, components, and unscored cases."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from probdice.method.region_labels import listed
from probdice.options import CompareOptions
from probdice.options.boundary_distances import is_share
from probdice.report.encoding import shortened
from probdice.report.page_tables import (
    NOTHING,
    Cell,
    Column,
    Table,
    cell_of,
    centre_of,
    interval_cell,
    method_cell,
    shade_of,
    text_cell,
)
from probdice.text.formatting import decimal, quantity

if TYPE_CHECKING:
    from probdice.evaluation.results import Evaluation
    from probdice.evaluation.statistics import Summary
    from probdice.metrics.boundary_result import Boundaries
    from probdice.metrics.component_table import ComponentTable
    from probdice.report.cases import Pages

__all__ = [
    "boundaries_of",
    "boundary_table",
    "component_table",
    "rater_table",
    "region_table",
    "unscored_table",
]

MAX_MESSAGE_LENGTH = 2000  # characters of a message


def rater_table(summary: dict[str, Any]) -> Table | None:
    """Return the agreement of methods and raters with each rater, and inter-rater agreement.

    Return None if the evaluation has no raters.
    """
    content = summary["rater_comparison"]
    if content is None:
        return None
    raters, methods = list(content["raters"]), content["methods"]
    rows = []
    for name, means in sorted(content["means"].items(), key=lambda row: row[0] not in methods):
        cells = [cell_of(means[rater]) if rater in means else NOTHING for rater in raters]
        if name in methods:
            mean, baseline = methods[name], content["baselines"][name]
            cells += [Cell(mean["n"], str(mean["n"])), *_mean_cells(mean), *_mean_cells(baseline)]
        else:
            cells += [NOTHING] * 5
        rows.append((text_cell(shortened(name)), *cells))
    inter_rater = content["inter_rater"]
    count = Cell(inter_rater["n"], str(inter_rater["n"]))
    last = [*[NOTHING] * len(raters), count, NOTHING, NOTHING, *_mean_cells(inter_rater)]
    rows.append((text_cell("inter-rater agreement"), *last))
    centre = inter_rater["aggregate"].capitalize()
    heads = (*map(shortened, raters), "Cases", centre, "95 % CI", "Raters", "95 % CI (raters)")
    columns = (Column("Method or rater", number=False), *map(Column, heads))
    return Table(f"Against each rater, {content['title'].lower()}", columns, tuple(rows))


def boundaries_of(evaluation: Evaluation) -> Boundaries | None:
    """Return the boundaries of the first case that has them, or None if no case has them."""
    stored_boundaries = (
        record.comparison.numbers.known("boundaries")
        for record in evaluation.records
        if record.comparison is not None
    )
    return next((entry for entry in stored_boundaries if entry is not None), None)


def boundary_table(evaluation: Evaluation, colours: dict[str, str]) -> Table | None:
    """Return the median boundary measures of every method, or None if they were not computed."""
    boundaries = boundaries_of(evaluation)
    if boundaries is None:
        return None
    names: tuple[str, ...] = boundaries.names
    summaries = {name: evaluation.summaries(name) for name in names}
    rows = tuple(
        (
            method_cell(method, colours),
            *(_median_cell(summaries[name][method]) for name in names),
        )
        for method in evaluation.methods
    )
    units = ["" if is_share(name) else f", {boundaries.unit}" for name in names]
    heads = (Column(f"{name}{unit}") for name, unit in zip(names, units, strict=True))
    return Table("Boundary distances", (Column("Method", number=False), *heads), rows)


def _median_cell(summary: Summary) -> Cell:
    low, high = summary.lower_quartile, summary.upper_quartile
    about = f"{decimal(low, 2)} to {decimal(high, 2)}, {quantity(summary.n, 'case')}"
    return Cell(summary.median, decimal(summary.median, 2), about)


def _mean_cells(summary: dict[str, Any]) -> list[Cell]:
    return [cell_of(centre_of(summary)[0]), interval_cell(summary["interval"])]


def region_table(summary: dict[str, Any], methods: list[str]) -> Table:
    """Return a table with one row per derived region and per label, and one column per method.

    Derived regions are listed first. Derived regions and labels are each sorted by the lowest mean
    of any method.
    """
    table: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for key in ("derived", "regions"):
        for entry in summary[key]:
            table.setdefault((key, str(entry["label"])), {})[entry["method"]] = entry
    members = dict(CompareOptions.from_dict(summary["options"]).derived)
    rows = []
    for (key, label), by_method in sorted(table.items(), key=_derived_and_worst_first):
        labels = f" ({listed(members[label])})" if key == "derived" else ""
        cells = (_region_cell(by_method.get(method)) for method in methods)
        rows.append((text_cell(shortened(label) + labels), *cells))
    columns = (Column("Label", number=False), *(Column(shortened(method)) for method in methods))
    return Table("Regions", columns, tuple(rows))


def _derived_and_worst_first(
    row: tuple[tuple[str, str], dict[str, dict[str, Any]]],
) -> tuple[bool, float]:
    (key, _), by_method = row
    means = [entry["mean"] for entry in by_method.values() if entry["mean"] is not None]
    return key != "derived", min(means, default=inf)


def _region_cell(entry: dict[str, Any] | None) -> Cell:
    """Return the mean Dice of a region for one method, with its confidence interval."""
    if entry is None or entry["mean"] is None:
        return NOTHING
    interval = interval_cell(entry["interval"])
    about = f"{interval.text}, " if interval.value is not None else ""
    return Cell(
        entry["mean"],
        decimal(entry["mean"]),
        f"{about}{quantity(entry['n'], 'case')}",
        shade=shade_of(entry["mean"]),
    )


def component_table(evaluation: Evaluation, pages: Pages, colours: dict[str, str]) -> Table:
    """Return missed and false components in descending order of size, with links to case pages."""
    threshold = evaluation.others.component_threshold
    rows: list[tuple[float, tuple[Cell, ...]]] = []
    for record in evaluation.records:
        table: ComponentTable | None = (
            None if record.comparison is None else record.comparison.numbers.known("components")
        )
        if table is None:
            continue
        case, page = shortened(record.case, 200), pages.get((record.case, record.method))
        for row in table.rows:
            if row.found(threshold):
                continue
            outcome = "missed" if row.side == "reference" else "false"
            if row.found(threshold, "many"):
                outcome += " (one-to-one only)"
            size = f"{decimal(row.volume, 1).removesuffix('.0')} {table.unit}"
            cells = (
                Cell(case, case, link=row.address(page)),
                method_cell(record.method, colours),
                text_cell(shortened(row.label)),
                text_cell(outcome),
                Cell(row.volume, size),
                text_cell(", ".join(map(str, row.voxel))),
            )
            rows.append((row.volume, cells))
    names = ("Case", "Method", "Class", "Outcome", "Size", "Voxel")
    columns = tuple(Column(name, number=name == "Size") for name in names)
    rows.sort(key=lambda row: -row[0])
    return Table("Missed and false components", columns, tuple(cells for _, cells in rows))


def unscored_table(summary: dict[str, Any]) -> Table:
    """Return the cases without a score, and the reasons."""
    reasons = [
        (entry, shortened(entry["error"], MAX_MESSAGE_LENGTH)) for entry in summary["failures"]
    ]
    reasons += [(entry, f"no {entry['side']}") for entry in summary["missing"]]
    rows = tuple(
        (text_cell(entry["case"]), text_cell(shortened(entry["method"])), text_cell(reason))
        for entry, reason in reasons
    )
    names = ("Case", "Method", "Reason")
    return Table("Cases without a score", tuple(Column(name, number=False) for name in names), rows)
