"""Write the tables, how.md, summary.json and the pages of an evaluation."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from probdice.comparison.result import Comparison
from probdice.errors import InputError
from probdice.evaluation.case_files import find_images
from probdice.evaluation.folders import Folder
from probdice.evaluation.journal import locked, replace_file
from probdice.evaluation.publication_table import table_md, table_tex
from probdice.evaluation.publishing import files_csv, how_text, ranking_csv
from probdice.evaluation.recompare import compare_again
from probdice.evaluation.summary import as_json, with_relative_paths
from probdice.evaluation.tables import (
    CASES,
    COMPONENTS,
    STRATA,
    Row,
    as_csv,
    as_frame,
    as_parquet,
    case_rows,
    component_rows,
    region_rows,
)
from probdice.options import EvaluateOptions, as_workers

if TYPE_CHECKING:
    import pandas

    from probdice.evaluation.results import Evaluation

__all__ = ["cases_frame", "regions_frame", "write_pages", "write_results"]

PAGE = "report.html"  # in the results folder


def write_results(evaluation: "Evaluation", out: Path, options: EvaluateOptions) -> None:
    """Write all tables, how.md and summary.json. Each file is written completely or not at all.

    Of the options, only `parquet`, `columns` and `booktabs` are used.
    """
    raters = () if evaluation.rater_comparison is None else evaluation.rater_comparison.files
    files = files_csv(evaluation.records, raters, out)
    summary = evaluation.summary
    replace_file(out / "cases.csv", as_csv(_case_rows(evaluation), _case_columns(evaluation)))
    replace_file(
        out / "regions.csv",
        as_csv(region_rows(evaluation.records), evaluation.others.region_columns),
    )
    if evaluation.others.components:
        _write_components(evaluation, out, {})
        replace_file(out / "strata.csv", as_csv(summary["components"], STRATA))
    replace_file(out / "files.csv", files)
    if options.parquet:
        replace_file(out / "cases.parquet", as_parquet(cases_frame(evaluation)))
        replace_file(out / "regions.parquet", as_parquet(regions_frame(evaluation)))
    replace_file(out / "ranking.csv", ranking_csv(summary))
    for name, text in (
        ("table.md", table_md(summary, options)),
        ("table.tex", table_tex(summary, options)),
        ("how.md", how_text(summary, files)),
        ("summary.json", as_json(summary)),  # written last, so it exists only after a finished run
    ):
        # Names that are not valid text contain lone surrogates, which are escaped to keep the JSON
        # valid.
        replace_file(out / name, text.encode(errors="backslashreplace"))


def _write_components(
    evaluation: "Evaluation", out: Path, pages: Mapping[tuple[str, str], str]
) -> None:
    """Write components.csv, with links to the case pages in `pages`."""
    rows = component_rows(evaluation.records, evaluation.others.component_threshold, pages)
    replace_file(out / "components.csv", as_csv(rows, COMPONENTS))


def cases_frame(evaluation: "Evaluation") -> "pandas.DataFrame":
    """Return the content of cases.csv as a pandas data frame."""
    return as_frame(_case_rows(evaluation), _case_columns(evaluation))


def regions_frame(evaluation: "Evaluation") -> "pandas.DataFrame":
    """Return the content of regions.csv as a pandas data frame."""
    return as_frame(region_rows(evaluation.records), evaluation.others.region_columns)


def write_pages(
    evaluation: "Evaluation",
    path: Folder | None,
    *,
    reports: str,
    workers: int | None,
    progress: Callable[[int, int, str], None] | None,
) -> Path:
    """Write the report and pages of cases. See `Evaluation.report`."""
    from probdice.report import write_evaluation

    workers = as_workers(workers)
    lock: AbstractContextManager[None]
    if path is not None:
        page, lock = Path(path), nullcontext()
    elif evaluation.out is not None:
        page, lock = evaluation.out / PAGE, locked(evaluation.out)
    else:
        raise InputError(
            "path=None requires a results folder, but this evaluation has none; pass a file path"
        )

    def again(case: str, method: str) -> Comparison:
        record = evaluation.record(case, method)
        return compare_again(
            record, evaluation.options_of(method), base_folder=page.parent, workers=workers
        )

    images = {}
    if evaluation.image is not None:
        images = find_images(Path(evaluation.image), evaluation.patterns.image, evaluation.cases)
    with lock:
        pages = write_evaluation(
            evaluation,
            page,
            reports=reports,
            again=again,
            images=images,
            surface=evaluation.surface,
            progress=progress,
            words=evaluation.words,
        )
        if path is None and evaluation.others.components:
            _write_components(evaluation, page.parent, pages)
    return page


def _case_rows(evaluation: "Evaluation") -> list[Row]:
    """Return the rows of cases.csv, including the ranking measures and external columns."""
    rows = case_rows(
        evaluation.records,
        evaluation.missing,
        list(evaluation.methods),
        lambda message: with_relative_paths(evaluation, message),
        evaluation.others,
    )
    extra_values = {name: evaluation.values(name) for name in _measure_columns(evaluation)}
    case_indices = {case: k for k, case in enumerate(evaluation.cases)}
    return [
        {
            **row,
            **{
                name: float(values[row["method"]][case_indices[row["case"]]])
                for name, values in extra_values.items()
                if row["case"] in case_indices
            },
        }
        for row in rows
    ]


def _case_columns(evaluation: "Evaluation") -> tuple[str, ...]:
    """Return the columns of cases.csv, with additional columns before the notes."""
    notes_index = CASES.index("notes")
    measure_columns = _measure_columns(evaluation)
    return (
        *CASES[:notes_index],
        *evaluation.others.columns,
        *measure_columns,
        *CASES[notes_index:],
    )


def _measure_columns(evaluation: "Evaluation") -> tuple[str, ...]:
    """Return the measures of the run that are not among the other columns of cases.csv."""
    table_columns = {*CASES, *evaluation.others.columns}
    return tuple(measure for measure in evaluation.measures if measure not in table_columns)
