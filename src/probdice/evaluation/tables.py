"""Convert records to tables: rows, CSV, Parquet or a pandas data frame."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Any

from probdice.comparison.group_rows import COLUMNS, derived_cells, group_cells
from probdice.comparison.result import Comparison
from probdice.errors import InputError, Message
from probdice.evaluation.pairing import Missing
from probdice.evaluation.record import Record
from probdice.files.sources import natural
from probdice.metrics.boundary_measures import boundary_cells, boundary_columns
from probdice.metrics.component_measures import (
    STRATUM_COLUMNS,
    component_cells,
    component_columns,
)
from probdice.metrics.component_table import ComponentTable
from probdice.metrics.detection import COUNTS
from probdice.metrics.indices import INDICES
from probdice.metrics.region_measures import region_value
from probdice.metrics.registry import MEASURES, REGISTRY, MeasureName
from probdice.text.csv_tables import as_csv as csv_of
from probdice.text.table_output import data_frame

if TYPE_CHECKING:
    import pandas

__all__ = [
    "CASES",
    "COMPONENTS",
    "REGIONS",
    "STRATA",
    "ExtraColumns",
    "Row",
    "as_csv",
    "as_frame",
    "as_parquet",
    "case_rows",
    "component_rows",
    "region_rows",
]

Row = Mapping[str, Any]

FOREGROUND = tuple(measure for measure in MEASURES if REGISTRY[measure].needs_background)
WITHOUT_BACKGROUND = tuple(measure for measure in MEASURES if measure not in FOREGROUND)
CASES = (
    *("case", "method", "status", *WITHOUT_BACKGROUND, "chance", "pixels", "reference_regions"),
    *("prediction_regions", "merged", "unmatched_reference", "unmatched_prediction"),
    *("notes", "error"),
)
COMPONENTS = (
    *("case", "method", "side", "class", "volume", "unit", "x", "y", "z", "i", "j", "k", "found"),
    *("dice", "jaccard", "parts", "found_many", "dice_many", "jaccard_many", "page"),
)
COMPONENT_NUMBERS = ("side", "volume", "parts", "dice", "jaccard", "dice_many", "jaccard_many")
STRATA = ("method", "class", "from", "to", "unit", *STRATUM_COLUMNS)
REGIONS = ("case", "method", *COLUMNS)


@dataclass(frozen=True)
class ExtraColumns:
    """Additional columns of the table of cases.

    `indices` adds the values of `Comparison.indices`, `instances` adds the values of
    `Comparison.detection`, and `foreground` adds the measures that require a background.
    `distances` contains the names of boundary measures, which are also columns of the table of
    regions. `derived_regions` contains the names of derived regions. `components` adds the measures
    of component detection at `component_threshold`, in total and for each of `component_classes`.
    `strata` contains the lower limits of the ranges of component sizes.
    """

    indices: bool = False
    instances: bool = False
    foreground: bool = False
    distances: tuple[str, ...] = ()
    derived_regions: tuple[str, ...] = ()
    components: bool = False
    component_threshold: float = 0.5
    component_classes: tuple[str, ...] = ()
    strata: tuple[float, ...] = ()

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "ExtraColumns":
        """Restore the columns from summary.json."""
        names = ("distances", "derived_regions", "component_classes", "strata")
        tuples = {name: tuple(content[name]) for name in names}
        return cls(**{**content, **tuples})

    @property
    def measures(self) -> tuple[MeasureName, ...]:
        """The measures of the run. If `foreground` is false, foreground measures are omitted."""
        return MEASURES if self.foreground else WITHOUT_BACKGROUND

    @property
    def derived_measures(self) -> tuple[str, ...]:
        """The measures of derived regions: Dice and boundary measures."""
        return tuple(
            f"{number}:{name}"
            for name in self.derived_regions
            for number in ("dice", *self.distances)
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the additional columns."""
        names = (*(INDICES if self.indices else ()), *(COUNTS if self.instances else ()))
        foreground = FOREGROUND if self.foreground else ()
        index_columns = (name for name in names if name not in CASES)
        distances = boundary_columns(self.distances)
        components = component_columns(self.component_classes) if self.components else ()
        return (*foreground, *index_columns, *distances, *self.derived_measures, *components)

    @property
    def region_columns(self) -> tuple[str, ...]:
        """The columns of the table of regions."""
        derived_column = ("derived",) if self.derived_regions else ()
        return (*REGIONS, *derived_column, *self.distances)

    def of(self, comparison: Comparison) -> tuple[Row, Message]:
        """Return the additional values of one case, and the reason if values are missing."""
        values: dict[str, float] = {}
        try:
            values |= boundary_cells(comparison, self.distances)
            for measure in self.derived_measures:
                number, _, name = measure.partition(":")
                values[measure] = region_value(comparison, number, name)
            if self.components:
                values |= component_cells(
                    comparison, self.component_threshold, self.component_classes
                )
            if self.foreground:
                values |= {name: REGISTRY[name].compute(comparison) for name in FOREGROUND}
            if self.indices:
                values |= comparison.indices().to_dict()
            if self.instances:
                values |= comparison.detection().to_dict()
        except InputError as error:  # affects only the additional columns of this case
            return {name: values.get(name, nan) for name in self.columns}, error.args
        return {name: values[name] for name in self.columns}, ()


def case_rows(
    records: Iterable[Record],
    missing: Iterable[Missing],
    methods: Sequence[str],
    message_text: Callable[[Message], str],
    extra_columns: ExtraColumns,
) -> list[Row]:
    """Return one row per case and method, including failed and missing cases."""
    rows = [_case_row(record, message_text, extra_columns) for record in records]
    rows += [
        {
            "case": entry.case,
            "method": entry.method,
            "status": "missing",
            "error": f"no {entry.side}",
        }
        for entry in missing
    ]
    return sorted(rows, key=lambda row: (natural(row["case"]), methods.index(row["method"])))


def region_rows(records: Iterable[Record]) -> list[Row]:
    """Return one row per group and per derived region, for every case and method."""
    return [
        {**row, "case": record.case, "method": record.method}
        for record in records
        if record.comparison is not None
        for row in (*group_cells(record.comparison), *derived_cells(record.comparison))
    ]


def component_rows(
    records: Iterable[Record], threshold: float, pages: Mapping[tuple[str, str], str]
) -> list[Row]:
    """Return one row per connected component of every case and method.

    `pages` contains the addresses of case pages, relative to the table.
    """
    rows: list[Row] = []
    for record in records:
        if record.comparison is None:
            continue
        table: ComponentTable | None = record.comparison.numbers.known("components")
        if table is None:
            continue
        rows += [
            {
                "case": record.case,
                "method": record.method,
                "class": row.label,
                "unit": table.unit,
                **{name: getattr(row, name) for name in COMPONENT_NUMBERS},
                **dict(zip("xyz", row.place, strict=False)),
                **dict(zip("ijk", row.voxel, strict=False)),
                "found": row.found(threshold),
                "found_many": row.found(threshold, "many"),
                "page": row.address(pages.get((record.case, record.method))),
            }
            for row in table.rows
        ]
    return rows


def as_csv(rows: Iterable[Row], columns: Sequence[str]) -> bytes:
    """Return the rows as CSV. Invalid bytes in names are written as escape sequences."""
    return csv_of(rows, columns).encode(errors="backslashreplace")


def as_frame(rows: Iterable[Row], columns: Sequence[str]) -> "pandas.DataFrame":
    """Return the rows as a pandas data frame, with names escaped as in CSV."""
    records = [{key: _as_text(value) for key, value in row.items()} for row in rows]
    frame = data_frame(records, columns)
    for column in ("notes", "error"):
        if column in frame:
            frame[column] = frame[column].fillna("")
    return frame


def as_parquet(frame: "pandas.DataFrame") -> bytes:
    """Return a data frame as the content of a Parquet file."""
    content: bytes = frame.to_parquet(engine="pyarrow", index=False)
    return content


def _as_text(value: Any) -> Any:
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value


def _case_row(
    record: Record, message_text: Callable[[Message], str], extra_columns: ExtraColumns
) -> Row:
    row: dict[str, Any] = {"case": record.case, "method": record.method}
    if record.failure is not None:
        row |= {"status": "failed", "error": message_text(record.failure.message)}
    comparison = record.comparison
    if comparison is None:
        return row
    values, reason = extra_columns.of(comparison)
    notes = [note.message for note in comparison.notes] + ([reason] if reason else [])
    return row | {
        "status": "scored",
        **{str(measure): record.value(measure) for measure in WITHOUT_BACKGROUND},
        "chance": comparison.chance,
        "pixels": comparison.pixels,
        "reference_regions": comparison.region_count("reference"),
        "prediction_regions": comparison.region_count("prediction"),
        "merged": len(comparison.merges),
        "unmatched_reference": len(comparison.unmatched["reference"]),
        "unmatched_prediction": len(comparison.unmatched["prediction"]),
        **values,
        "notes": " | ".join(message_text(note) for note in notes),
        "error": "",
    }
