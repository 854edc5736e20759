"""Evaluate all methods against one reference.

Options are checked before the run, except labels and regions, which are checked after all cases
have been read.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Literal

from probdice.data.machine import cores
from probdice.errors import InputError, Message, MissingExtraError, Note, Option, Words
from probdice.evaluation.case_files import find_images
from probdice.evaluation.criteria import as_rank_by, check_regions, criterion_of
from probdice.evaluation.external_columns import ExternalColumn, as_external_column
from probdice.evaluation.finishing import (
    Progress,
    correspondences_over_set,
    file_identities,
    finish_requests,
    requests_of,
)
from probdice.evaluation.folders import Folder, Patterns, patterns_of
from probdice.evaluation.journal import locked
from probdice.evaluation.pairing import Job, Missing, omitted_image_channels, pair
from probdice.evaluation.publication_table import check_columns
from probdice.evaluation.rater_comparison import RaterComparison
from probdice.evaluation.record import Record
from probdice.evaluation.result_files import write_results
from probdice.evaluation.results import Evaluation
from probdice.evaluation.running import WorkerPool
from probdice.evaluation.subjects import subjects_of
from probdice.evaluation.tables import ExtraColumns
from probdice.files.inputs import as_surfaces
from probdice.files.sources import natural
from probdice.method.matching import GivenGroups, check_labels
from probdice.method.region_labels import listed
from probdice.method.sides import SIDES
from probdice.metrics.boundary_measures import boundary_names
from probdice.metrics.component_measures import component_classes
from probdice.metrics.registry import MeasureName
from probdice.metrics.unions import check_members
from probdice.options import CompareOptions, EvaluateOptions, StatisticsOptions

__all__ = ["Run", "folder_for_results", "temporary_folder"]

NO_FAILURES: Mapping[str, Note] = MappingProxyType({})


@dataclass(frozen=True)
class _Plan:
    """The jobs and options of a run, checked before the first segmentation is read.

    `missing` lists the cases without a reference or a prediction. Cases in `failures` have no
    consensus to use as reference. They are reported as failed, with the reason. `image_channels`
    lists the files that are not segmentations, see `omitted_image_channels`.
    """

    reference: Folder
    jobs: Sequence[Job]
    missing: tuple[Missing, ...]
    failures: Mapping[str, Note]
    image_channels: dict[str, tuple[str, ...]]
    folders: dict[str, str]
    patterns: Patterns
    statistics: StatisticsOptions
    extra_columns: ExtraColumns
    columns: tuple[ExternalColumn, ...]
    subjects: dict[str, str] | None


@dataclass(frozen=True)
class Run:
    """The options of an evaluation, its worker processes, and the callbacks for its progress.

    `words` selects the spelling of option names in notes and errors. `compiling` is called when the
    compilation of a kernel starts.
    """

    options: EvaluateOptions
    extra_columns: ExtraColumns
    words: Words
    pool: WorkerPool
    progress: Callable[[Progress], None] | None
    compiling: Callable[[], None] | None

    def against(
        self,
        reference: Folder,
        methods: dict[str, str],
        *,
        out: Folder | None,
        pattern: str | Mapping[str, str] | None,
        rater_comparison: RaterComparison | None = None,
        failures: Mapping[str, Note] = NO_FAILURES,
        raters: Collection[str] = (),
    ) -> Evaluation:
        """Evaluate all methods against one reference.

        `raters` lists the methods that are raters. Their files are read like the reference.
        """
        options = self.options
        plan = _plan(reference, methods, options, pattern, self.extra_columns, failures)
        if out is None:
            with temporary_folder() as temporary:
                return self._results(plan, Path(temporary), None, rater_comparison, raters)
        optional_folders = [
            folder for folder in (options.mask, options.image) if folder is not None
        ]
        target = folder_for_results(Path(out), [reference, *methods.values(), *optional_folders])
        with locked(target):
            result = self._results(plan, target, target, rater_comparison, raters)
            write_results(result, target, options)
        return result

    def _results(
        self,
        plan: _Plan,
        folder: Path,
        out: Path | None,
        rater_comparison: RaterComparison | None,
        raters: Collection[str],
    ) -> Evaluation:
        """Compare all cases, store the journal in `folder`, and return the evaluation."""
        options = self.options
        records, groups = self._records(plan, folder, raters)
        _check_records(records, options.comparison, plan.statistics.rank_by)
        classes = component_classes(
            record.comparison for record in records if record.comparison is not None
        )
        return Evaluation(
            records,
            plan.missing,
            os.fspath(plan.reference),
            plan.folders,
            options.comparison,
            plan.statistics,
            words=self.words,
            out=out,
            others=replace(plan.extra_columns, component_classes=classes),
            correspondences=groups,
            subjects=plan.subjects,
            external_columns=plan.columns,
            mask=options.mask,
            image=options.image,
            surface=options.surface,
            patterns=plan.patterns,
            image_channels=plan.image_channels,
            probabilities=options.probabilities,
            rater_comparison=rater_comparison,
            raters=tuple(name for name in plan.folders if name in raters),
        )

    def _records(
        self, plan: _Plan, folder: Path, raters: Collection[str]
    ) -> tuple[tuple[Record, ...], dict[str, GivenGroups]]:
        """Return the records of all jobs, and one correspondence per method if requested."""
        options, comparing = self.options, self.options.comparison
        comparing_method = {
            name: comparing.between_raters() if name in raters else comparing
            for name in plan.folders
        }
        workers = options.workers or cores()
        identities = file_identities(plan.jobs, comparing_method, workers, options.verify)

        def finish(
            stage: Literal["comparisons", "overlaps"], by_method: Mapping[str, CompareOptions]
        ) -> tuple[Record, ...]:
            return finish_requests(
                requests_of(plan.jobs, identities, by_method, folder),
                stage,
                out=folder,
                workers=workers,
                pool=self.pool,
                scheduler=options.scheduler,
                verify=options.verify,
                reference_failures=plan.failures,
                progress=self.progress,
                compiling=self.compiling,
            )

        groups: dict[str, GivenGroups] = {}
        if comparing.correspondence == "set":
            overlaps = {
                name: replace(method_options, match="overlap", merge="none")
                for name, method_options in comparing_method.items()
            }
            records = finish("overlaps", overlaps)
            groups = correspondences_over_set(records, comparing_method)
        by_method = {
            name: method_options.with_groups(groups[name]) if name in groups else method_options
            for name, method_options in comparing_method.items()
        }
        return finish("comparisons", by_method), groups


def _plan(
    reference: Folder,
    methods: dict[str, str],
    options: EvaluateOptions,
    pattern: str | Mapping[str, str] | None,
    extra_columns: ExtraColumns,
    failures: Mapping[str, Note],
) -> _Plan:
    """Find the cases, and reject options that are incompatible with the cases."""
    if options.parquet:
        _check_parquet()
    extra_columns = replace(
        extra_columns,
        distances=boundary_names(options.tolerance) if options.boundaries else (),
        derived_regions=tuple(name for name, _ in options.derived),
        components=options.components is not None,
        component_threshold=options.component_threshold,
        strata=options.strata,
    )
    measures = as_rank_by(options.rank_by) or (_default_measure(options),)
    columns = tuple(as_external_column(column) for column in options.column)
    for measure in measures:
        criterion_of(measure, extra_columns, columns)
    derived_measures = (f"dice:{name}" for name in extra_columns.derived_regions)
    names = (
        *measures,
        *extra_columns.measures,
        *derived_measures,
        *(column.name for column in columns),
    )
    check_columns(options.columns, names)
    patterns = patterns_of(pattern, methods)
    method_folders = {name: Path(folder) for name, folder in methods.items()}
    mask = None if options.mask is None else Path(options.mask)
    jobs, missing, folders = pair(
        Path(reference),
        method_folders,
        patterns=patterns,
        mask=mask,
        probabilities=options.probabilities,
        failed_cases=failures,
    )
    _check_priority(jobs, options)
    cases = [*(job.case for job in jobs), *(entry.case for entry in missing)]
    as_surfaces(options.surface)  # reports unreadable surfaces before the first comparison
    if options.image is not None:
        find_images(Path(options.image), patterns.image, dict.fromkeys(job.case for job in jobs))
    method_in = {Path(folder): name for name, folder in methods.items()}
    method_patterns = {
        name: patterns.methods[name if name in methods else method_in[path]]
        for name, path in folders.items()
    }
    return _Plan(
        reference,
        jobs,
        missing,
        failures,
        omitted_image_channels(Path(reference), method_folders, patterns=patterns, mask=mask),
        {name: os.fspath(path) for name, path in folders.items()},
        replace(patterns, methods=method_patterns),
        replace(options.statistics, rank_by=measures),
        extra_columns,
        tuple(column.read(folders, cases) for column in columns),
        None if options.subjects is None else subjects_of(options.subjects, cases),
    )


def temporary_folder() -> TemporaryDirectory[str]:
    """Return a temporary folder for the journal of a run whose results are not stored."""
    return TemporaryDirectory(prefix="probdice-")


def folder_for_results(out: Path, images: Iterable[Folder]) -> Path:
    """Create the results folder if it does not exist; raise an error if it is an input folder."""
    if any(out.resolve() == Path(folder).resolve() for folder in images):
        raise InputError(f"{out}: is an input folder; use another folder for the results")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InputError(f"{out}: is a file; use a folder for the results") from None
    except OSError as error:
        raise InputError(f"{out}: cannot create the folder: {error.strerror}") from error
    return out


def _default_measure(options: CompareOptions) -> MeasureName:
    if options.background is not None:
        return "foreground_dice"
    return "score" if options.merge == "none" else "adjusted_score"


def _check_priority(jobs: Sequence[Job], options: CompareOptions) -> None:
    """Reject a priority with a region name that no case has.

    This function checks only sides with one file per region, because the names of these regions are
    known before the files are read. `_check_noted_priority` checks regions inside files.
    """
    for side in SIDES:
        regions = sorted({name for job in jobs for name in job.regions.get(side, ())}, key=natural)
        unknown_names = [name for name in options.priority[side] if name not in regions]
        if regions and unknown_names:
            raise InputError(
                Option("priority", ",".join(options.priority[side])),
                f" names {listed(unknown_names)}, but the regions of the {side} are "
                f"{listed(regions, 20)}",
            )


def _check_noted_priority(records: Iterable[Record]) -> None:
    """Reject a priority with a region name that no scored case has."""
    priority_notes: list[dict[Message, Message]] = [  # key: side, option, name
        {
            note.message[:3]: note.message
            for note in record.comparison.notes
            if note.kind == "priority"
        }
        for record in records
        if record.comparison is not None
    ]
    for key, message in priority_notes[0].items() if priority_notes else ():
        if all(key in notes for notes in priority_notes):
            raise InputError(*message, " (in every case)")


def _check_records(
    records: Sequence[Record], options: CompareOptions, measures: tuple[str, ...]
) -> None:
    """Reject options with a label or region that no scored case has."""
    _check_noted_priority(records)
    comparisons = [record.comparison for record in records if record.comparison is not None]
    if not comparisons:
        return
    overlaps = [comparison.overlap for comparison in comparisons]
    check_labels(options.matching, overlaps)
    if options.derived:
        check_members(dict(options.derived), overlaps)
    for label in options.components or ():
        if not any(overlap.side(side).knows(label) for overlap in overlaps for side in SIDES):
            raise InputError(f"components: no case contains the region {label!r}")
    check_regions(measures, comparisons)


def _check_parquet() -> None:
    for module in ("pandas", "pyarrow"):
        if find_spec(module) is None:
            raise MissingExtraError(
                f'Parquet requires {module}, which is not installed: pip install "pandas" "pyarrow"'
            )
