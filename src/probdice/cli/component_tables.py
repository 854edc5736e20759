"""Tables of connected components in the printed summary of an evaluation."""

from collections.abc import Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from probdice.cli.terminal_tables import FittingTable, plain_table
from probdice.text.formatting import decimal

__all__ = ["component_tables"]

MAX_CLASSES = 5  # largest number of classes for which a table is printed


def component_tables(summary: dict[str, Any], out: str) -> list[RenderableType]:
    """Return a heading, explanations, and one table per class for up to `MAX_CLASSES` classes."""
    components = summary["options"]["components"]
    rows = summary["components"]
    unit = next((row["unit"] for row in rows if row.get("unit")), "mm³ or voxels")
    minimum = "no minimum size"
    if components["minimum_size"]:
        minimum = f"minimum size {components['minimum_size']:g} {unit}"
    classes = list(dict.fromkeys(row["class"] for row in rows))
    if len(classes) == 2:  # "all" would repeat the only class
        classes = classes[1:]
    parts: list[RenderableType] = [
        Text("connected components over all cases", style="bold"),
        f"{components['connectivity'] or 'all'} neighbours, {minimum}; a component is found if the "
        f"Jaccard index with its match is at least {summary['others']['component_threshold']:g}",
        "F1 is the recognition quality (RQ), SQ is the segmentation quality, and PQ = SQ × RQ is "
        "the panoptic quality",
    ]
    for label in classes[:MAX_CLASSES]:
        title = "all classes" if label == "all" else f"class {label}"
        parts += [Text(title), _component_table([r for r in rows if r["class"] == label], unit)]
    if len(classes) > MAX_CLASSES:
        parts.append(f"… and {len(classes) - MAX_CLASSES} more classes in {out}/strata.csv")
    return parts


def _component_table(rows: Sequence[dict[str, Any]], unit: str) -> FittingTable:
    """Return a table with rows for both kinds of matching per method and size range."""
    has_strata = len({row["from"] for row in rows}) > 1
    sizes = [f"size, {unit}"] if has_strata else []
    numbers = (">found", ">missed", ">false", ">F1 (RQ)", ">SQ", ">PQ", ">mean Dice")
    table = plain_table("method", *sizes, "matching", *numbers)
    for row in rows:
        upper_text = "and more" if row["to"] is None else f"to {row['to']:g}"
        first_cells = [row["method"], *([f"{row['from']:g} {upper_text}"] if has_strata else [])]
        for matching, ending in (("one-to-one", ""), ("many-to-one", "_many")):
            counts = [str(row[f"{name}{ending}"]) for name in ("found", "missed", "false")]
            qualities = [decimal(row[f"{name}{ending}"]) for name in ("f1", "sq", "pq", "dice")]
            table.add_row(*first_cells, matching, *counts, *qualities)
            first_cells = [""] * len(first_cells)
    return table
