"""Table rows and CSV for the groups and derived regions of a comparison."""

from dataclasses import fields
from typing import Any

from probdice.comparison.result import Comparison, Group
from probdice.method.sides import SIDES
from probdice.metrics.boundary_measures import boundary_rows, derived_boundary_rows
from probdice.metrics.volumes import DIFFERENCES, in_millilitres
from probdice.text.csv_tables import as_csv

__all__ = ["COLUMNS", "derived_cells", "group_cells", "group_rows", "groups_as_csv"]

MILLILITRES = ("reference_ml", "prediction_ml", "difference_ml")
NUMBERS = tuple(entry.name for entry in fields(Group))
COLUMNS = ("group", *NUMBERS[:-1], *DIFFERENCES, *MILLILITRES, NUMBERS[-1])


def group_rows(result: Comparison) -> list[dict[str, Any]]:
    """Return one row per group. Columns in millilitres exist only if the pixel volume is known."""
    rows = []
    for group in result.groups:
        row = {name: getattr(group, name) for name in (*NUMBERS, *DIFFERENCES)}
        if result.pixel_volume is not None:
            volumes = *(getattr(group, f"{side}_volume") for side in SIDES), group.volume_difference
            row |= {
                name: in_millilitres(pixels, result.pixel_volume)
                for name, pixels in zip(MILLILITRES, volumes, strict=True)
            }
        rows.append(row)
    return rows


def groups_as_csv(result: Comparison) -> str:
    """Return one CSV row per group, with boundary distances if they were computed."""
    distances = dict.fromkeys(name for row in boundary_rows(result) for name in row)
    return as_csv(group_cells(result), (*COLUMNS, *distances))


def group_cells(result: Comparison) -> list[dict[str, Any]]:
    """Return one row per group, with the index of the group and any computed boundary distances.

    The labels of each side are joined into one string.
    """
    return [
        _with_labels_joined(row) | {"group": number} | distances
        for number, (row, distances) in enumerate(
            zip(group_rows(result), boundary_rows(result), strict=True)
        )
    ]


def derived_cells(result: Comparison) -> list[dict[str, Any]]:
    """Return one row per requested derived region, with its name and any boundary distances."""
    derived_regions = result.requested_derived()
    if derived_regions is None:
        return []
    return [
        _with_labels_joined(row) | {"derived": row["name"]} | distances
        for row, distances in zip(
            derived_regions.rows(), derived_boundary_rows(result), strict=True
        )
    ]


def _with_labels_joined(row: dict[str, Any]) -> dict[str, Any]:
    return row | {side: ";".join(map(str, row[side])) for side in SIDES}
