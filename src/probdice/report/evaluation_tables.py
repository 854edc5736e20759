"""Regions, raters, components and cases without a score: tables of the page of an evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from probdice.method.matching import listed
from probdice.options import CompareOptions
from probdice.report.encoding import shortened
from probdice.report.evaluation_cells import Cell, cell_of, centre_of, counted, interval_cell
from probdice.text.formatting import decimal

if TYPE_CHECKING:
    from probdice.evaluation.results import Evaluation
    from probdice.metrics.component_table import ComponentTable
    from probdice.report.cases import Pages

__all__ = [
    "ComponentError",
    "FailedCase",
    "RaterTable",
    "RegionRow",
    "component_errors",
    "rater_table",
    "region_rows",
    "unscored_cases",
]

LONGEST = 2000  # characters of a message


@dataclass(frozen=True)
class RegionRow:
    """A label of the reference or a derived region, and its Dice by every method."""

    label: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class FailedCase:
    """A case without a score, and the reason."""

    case: str
    method: str
    message: str


@dataclass(frozen=True)
class ComponentError:
    """A missed or false component, with the address of the page that opens at it, or ""."""

    case: str
    method: str
    label: str
    outcome: str
    volume: float
    size: str
    place: str
    page: str


@dataclass(frozen=True)
class RaterTable:
    """Agreement of methods and raters with each rater, and inter-rater agreement."""

    measure: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]


def rater_table(summary: dict[str, Any]) -> RaterTable | None:
    """Agreement with each rater; inter-rater agreement is over the cases of the method."""
    content = summary["rater_comparison"]
    if content is None:
        return None
    raters, methods = list(content["raters"]), content["methods"]
    nothing = Cell(None, "–")
    rows = []
    for name, means in sorted(content["means"].items(), key=lambda row: row[0] not in methods):
        cells = [cell_of(means[rater]) if rater in means else nothing for rater in raters]
        if name in methods:
            own, baseline = methods[name], content["baselines"][name]
            cells += [Cell(own["n"], str(own["n"])), *_mean_cells(own), *_mean_cells(baseline)]
        else:
            cells += [nothing] * 5
        rows.append((shortened(name), tuple(cells)))
    among = content["among"]
    blank = [nothing] * len(raters)
    last = (*blank, Cell(among["n"], str(among["n"])), nothing, nothing, *_mean_cells(among))
    rows.append(("inter-rater agreement", last))
    heads = (*map(shortened, raters), "Cases", "Mean", "95 % CI", "Raters", "95 % CI (raters)")
    return RaterTable(content["title"], heads, tuple(rows))


def _mean_cells(summary: dict[str, Any]) -> list[Cell]:
    return [cell_of(centre_of(summary)[0]), interval_cell(summary["interval"])]


def region_rows(summary: dict[str, Any], methods: list[str]) -> tuple[RegionRow, ...]:
    """One row per derived region and label, and one column per method."""
    table: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for key in ("derived", "regions"):
        for entry in summary[key]:
            table.setdefault((key, str(entry["label"])), {})[entry["method"]] = entry
    members = dict(CompareOptions.from_dict(summary["options"]).derived)
    rows = []
    for (key, label), by_method in table.items():
        cells = []
        for method in methods:
            entry = by_method.get(method)
            if entry is None:
                cells.append(Cell(None, "–"))
                continue
            interval = interval_cell(entry["interval"])
            about = f"{interval.text}, " if interval.value is not None else ""
            cells.append(cell_of(entry["mean"], about=f"{about}{counted(entry['n'], 'case')}"))
        labels = f" ({listed(members[label])})" if key == "derived" else ""
        rows.append(RegionRow(shortened(label) + labels, tuple(cells)))
    return tuple(rows)


def component_errors(evaluation: Evaluation, pages: Pages) -> tuple[ComponentError, ...]:
    """The missed and false components, the largest first."""
    threshold = evaluation.others.component_threshold
    errors = []
    for record in evaluation.records:
        table: ComponentTable | None = (
            None if record.comparison is None else record.comparison.numbers.known("components")
        )
        for row in () if table is None else table.rows:
            if table is None or row.found(threshold):
                continue
            outcome = "missed" if row.side == "reference" else "false"
            if row.found(threshold, "many"):
                outcome += " (one-to-one only)"
            unit = "mm³" if table.unit == "mm³" else "voxels"
            errors.append(
                ComponentError(
                    shortened(record.case, 200),
                    shortened(record.method),
                    shortened(row.label),
                    outcome,
                    row.volume,
                    f"{decimal(row.volume, 1).removesuffix('.0')} {unit}",
                    ", ".join(map(str, row.voxel)),
                    row.address(pages.get((record.case, record.method))),
                )
            )
    return tuple(sorted(errors, key=lambda one: -one.volume))


def unscored_cases(summary: dict[str, Any]) -> tuple[FailedCase, ...]:
    failed = [
        FailedCase(one["case"], shortened(one["method"]), shortened(one["error"], LONGEST))
        for one in summary["failures"]
    ]
    missing = [
        FailedCase(one["case"], shortened(one["method"]), f"no {one['side']}")
        for one in summary["missing"]
    ]
    return (*failed, *missing)
