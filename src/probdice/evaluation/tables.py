"""Records as tidy tables: rows, and the same as CSV, Parquet or a frame of pandas."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from io import StringIO
from math import isnan
from typing import TYPE_CHECKING, Any

from probdice.errors import MissingExtraError, Words, in_words
from probdice.evaluation.pairing import Missing
from probdice.evaluation.record import MEASURES, Record
from probdice.files.sources import natural

if TYPE_CHECKING:
    import pandas

__all__ = [
    "CASES",
    "REGIONS",
    "Row",
    "as_csv",
    "as_frame",
    "as_parquet",
    "case_rows",
    "region_rows",
]

Row = Mapping[str, Any]

CASES = (
    *("case", "method", "status", *MEASURES, "chance", "pixels", "reference_regions"),
    *("prediction_regions", "merged", "unmatched_reference", "unmatched_prediction"),
    *("notes", "error"),
)
REGIONS = (
    *("case", "method", "group", "reference", "prediction", "similarity", "dice", "jaccard"),
    *("reference_volume", "prediction_volume"),
)


def case_rows(
    records: Iterable[Record],
    missing: Iterable[Missing],
    methods: Sequence[str],
    words: Words,
) -> list[Row]:
    """One row per case and method, those that failed or have no partner included."""
    rows = [_case_row(record, words) for record in records]
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


def as_csv(rows: Iterable[Row], columns: Sequence[str]) -> bytes:
    """Numbers as Python writes them, which reads back to the same number; NaN as nothing.

    Bytes of a name that are no text are written as escapes, so that the file is text all over.
    """
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(row.get(column, "")) for column in columns])
    return text.getvalue().encode(errors="backslashreplace")


def as_frame(rows: Iterable[Row], columns: Sequence[str]) -> "pandas.DataFrame":
    """The rows as a table of pandas; names that are no text as in CSV."""
    try:
        import pandas
    except ImportError:
        raise MissingExtraError('tables need pandas: pip install "pandas"') from None
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


def _case_row(record: Record, words: Words) -> Row:
    row: dict[str, Any] = {"case": record.case, "method": record.method}
    if record.failure is not None:
        row |= {"status": "failed", "error": in_words(record.failure.message, words)}
    comparison = record.comparison
    if comparison is None:
        return row
    return row | {
        "status": "scored",
        **{str(measure): record.value(measure) for measure in MEASURES},
        "chance": comparison.chance,
        "pixels": comparison.pixels,
        "reference_regions": len(comparison.reference_labels),
        "prediction_regions": len(comparison.prediction_labels),
        "merged": len(comparison.merges),
        "unmatched_reference": len(comparison.unmatched["reference"]),
        "unmatched_prediction": len(comparison.unmatched["prediction"]),
        "notes": " | ".join(in_words(note.message, words) for note in comparison.notes),
        "error": "",
    }


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if isnan(value) else repr(value)
    return str(value)
