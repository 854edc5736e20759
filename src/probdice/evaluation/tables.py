"""Records as tables: rows, CSV, Parquet or a pandas data frame."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isnan, nan
from typing import TYPE_CHECKING, Any

from probdice.comparison.result import Comparison
from probdice.errors import InputError, Message, MissingExtraError
from probdice.evaluation.pairing import Missing
from probdice.evaluation.record import Record
from probdice.files.sources import natural
from probdice.method.region_labels import Label
from probdice.metrics.detection import COUNTS
from probdice.metrics.indices import INDICES, foreground_dice
from probdice.metrics.registry import MEASURES, MeasureName
from probdice.text.escaping import csv_text

if TYPE_CHECKING:
    import pandas

__all__ = [
    "CASES",
    "REGIONS",
    "Others",
    "Row",
    "as_csv",
    "as_frame",
    "as_parquet",
    "case_rows",
    "region_rows",
]

Row = Mapping[str, Any]

WITHOUT_BACKGROUND = tuple(measure for measure in MEASURES if measure != "foreground_dice")
CASES = (
    *("case", "method", "status", *WITHOUT_BACKGROUND, "chance", "pixels", "reference_regions"),
    *("prediction_regions", "merged", "unmatched_reference", "unmatched_prediction"),
    *("notes", "error"),
)
REGIONS = (
    *("case", "method", "group", "reference", "prediction", "similarity", "dice", "jaccard"),
    *("reference_volume", "prediction_volume", "reference_ml", "prediction_ml", "faint"),
)


@dataclass(frozen=True)
class Others:
    """Additional columns of the table of cases.

    `instances` adds the numbers of `Comparison.detection`. They exclude `background`; None excludes
    no region.
    """

    indices: bool = False
    instances: bool = False
    background: Label | None = None

    @property
    def measures(self) -> tuple[MeasureName, ...]:
        """The measures of a run; foreground Dice needs a background."""
        return WITHOUT_BACKGROUND if self.background is None else MEASURES

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that the table does not have already."""
        names = (*(INDICES if self.indices else ()), *(COUNTS if self.instances else ()))
        foreground = () if self.background is None else ("foreground_dice",)
        return (*foreground, *(name for name in names if name not in CASES))

    def of(self, comparison: Comparison) -> tuple[Row, Message]:
        """The values for one case, and the reason if some are missing."""
        values: dict[str, float] = {}
        try:
            if self.background is not None:
                values["foreground_dice"] = foreground_dice(comparison, self.background)
            if self.indices:
                values |= comparison.indices(background=self.background).to_dict()
            if self.instances:
                values |= comparison.detection(background=self.background).to_dict()
        except InputError as error:  # applies to this case only; its scores stay valid
            return {name: values.get(name, nan) for name in self.columns}, error.args
        return {name: values[name] for name in self.columns}, ()


def case_rows(
    records: Iterable[Record],
    missing: Iterable[Missing],
    methods: Sequence[str],
    written: Callable[[Message], str],
    others: Others,
) -> list[Row]:
    """One row per case and method, including failed and missing cases."""
    rows = [_case_row(record, written, others) for record in records]
    rows += [
        {"case": one.case, "method": one.method, "status": "missing", "error": f"no {one.side}"}
        for one in missing
    ]
    return sorted(rows, key=lambda row: (natural(row["case"]), methods.index(row["method"])))


def region_rows(records: Iterable[Record]) -> list[Row]:
    """One row per group of every case and method."""
    return [
        {
            **asdict(group),
            "reference_ml": _ml(group.reference_volume, record.comparison.pixel_volume),
            "prediction_ml": _ml(group.prediction_volume, record.comparison.pixel_volume),
            "case": record.case,
            "method": record.method,
            "group": number,
            "reference": ";".join(str(label) for label in group.reference),
            "prediction": ";".join(str(label) for label in group.prediction),
        }
        for record in records
        if record.comparison is not None
        for number, group in enumerate(record.comparison.groups)
    ]


def _ml(pixels: float, pixel_volume: float | None) -> float:
    """The volume in millilitres; NaN if the pixel volume is unknown."""
    return nan if pixel_volume is None else pixels * pixel_volume / 1000


def as_csv(rows: Iterable[Row], columns: Sequence[str]) -> bytes:
    """The rows as CSV. Numbers keep full precision, and NaN is an empty cell.

    Bytes of names that are not valid text are written as escapes. Names that look like formulas are
    escaped as in `probdice.text.escaping.csv_text`.
    """
    cells = [[_cell(row.get(column, "")) for column in columns] for row in rows]
    return csv_text([columns, *cells]).encode(errors="backslashreplace")


def as_frame(rows: Iterable[Row], columns: Sequence[str]) -> "pandas.DataFrame":
    """The rows as a pandas data frame, with names escaped as in CSV."""
    try:
        import pandas
    except ImportError:
        raise MissingExtraError('data frames need pandas: pip install "pandas"') from None
    records = [{key: _as_text(value) for key, value in row.items()} for row in rows]
    frame = pandas.DataFrame(records, columns=list(columns))
    for column in ("notes", "error"):
        if column in frame:
            frame[column] = frame[column].fillna("")
    return frame


def as_parquet(frame: "pandas.DataFrame") -> bytes:
    """The content of a Parquet file."""
    content: bytes = frame.to_parquet(engine="pyarrow", index=False)
    return content


def _as_text(value: Any) -> Any:
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value


def _case_row(record: Record, written: Callable[[Message], str], others: Others) -> Row:
    row: dict[str, Any] = {"case": record.case, "method": record.method}
    if record.failure is not None:
        row |= {"status": "failed", "error": written(record.failure.message)}
    comparison = record.comparison
    if comparison is None:
        return row
    values, reason = others.of(comparison)
    notes = [note.message for note in comparison.notes] + ([reason] if reason else [])
    return row | {
        "status": "scored",
        **{str(measure): record.value(measure) for measure in WITHOUT_BACKGROUND},
        "chance": comparison.chance,
        "pixels": comparison.pixels,
        "reference_regions": comparison.counted("reference"),
        "prediction_regions": comparison.counted("prediction"),
        "merged": len(comparison.merges),
        "unmatched_reference": len(comparison.unmatched["reference"]),
        "unmatched_prediction": len(comparison.unmatched["prediction"]),
        **values,
        "notes": " | ".join(written(note) for note in notes),
        "error": "",
    }


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if isnan(value) else repr(value)
    return str(value)
