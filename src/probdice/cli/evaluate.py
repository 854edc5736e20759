"""`probdice evaluate`: score and rank methods over a folder of cases."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from probdice.cli.configuration import load_configuration, save_configuration
from probdice.cli.outcome import ERROR, reporting_errors
from probdice.cli.pages import REPORTS, check_reports, write_pages
from probdice.cli.parameters import (
    COMPARING,
    OUTPUT,
    RANKING,
    READING,
    CorrespondenceName,
    DebugOption,
    FloorOption,
    IgnoreGeometryOption,
    IgnoreOption,
    MatchOption,
    MaxBytesOption,
    MeasureName,
    MergeName,
    MergeOption,
    MissingName,
    NamesOption,
    PredictionNamesOption,
    PriorityOption,
    ReferenceNamesOption,
    ScaleOption,
    SimilarityName,
    SimilarityOption,
    SumsOption,
    ToleranceOption,
    background_of,
    options_of,
)
from probdice.cli.progress import COMPILING

if TYPE_CHECKING:
    from probdice.evaluation import Progress

__all__ = ["evaluate"]

CONSENSUS = "consensus"  # instead of the folder of the reference
FAILED = ERROR  # the exit code if a case could not be compared


def evaluate(
    context: typer.Context,
    reference: Annotated[
        str,
        typer.Argument(
            metavar="REFERENCE_DIR",
            show_default=False,
            help="Folder of reference segmentations (ground truth), with one file or subfolder per "
            "case. With --rater, consensus means the mean of the raters (write ./consensus for a "
            "folder with that name).",
        ),
    ],
    predictions: Annotated[
        list[str],
        typer.Argument(
            metavar="PREDICTION_DIR…",
            show_default=False,
            help="One folder of predictions per method, as DIR or name=DIR.",
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--output", "-o",
            metavar="OUT",
            rich_help_panel=OUTPUT,
            help="Results folder. The same command continues an interrupted run; another command "
            "replaces the tables.",
        ),
    ],
    rater: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=DIR",
            rich_help_panel=COMPARING,
            help="Folder with the segmentations of one rater (annotator). Repeat for two or more "
            "raters: every method is also compared with each rater and with inter-rater "
            "agreement.",
        ),
    ] = None,
    similarity: SimilarityOption = SimilarityName.absolute,
    floor: FloorOption = None,
    match: MatchOption = "overlap",
    merge: MergeOption = MergeName.none,
    correspondence: Annotated[
        CorrespondenceName,
        typer.Option(
            metavar="SCOPE",
            rich_help_panel=COMPARING,
            help="case: match the regions of every case separately; set: match once for all cases "
            "of a method, if labels (classes, clusters) mean the same in every case.",
        ),
    ] = CorrespondenceName.case,
    ignore: IgnoreOption = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            rich_help_panel=COMPARING,
            help="Number of cores for processes and threads together; all by default.",
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            rich_help_panel=COMPARING,
            help="Run on a Dask cluster (tcp://host:8786), with one task per case. The workers "
            "must have the files at the same paths.",
        ),
    ] = None,
    pattern: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            rich_help_panel=READING,
            help="Position of the case name in file names, such as '{case}_seg.nii.gz'. For one "
            "side or method: reference:PATTERN, prediction:PATTERN, mask:PATTERN, image:PATTERN, "
            "name:PATTERN. 'prediction:{case}_{method}.nii.gz' finds methods in one folder. Can be "
            "repeated.",
        ),
    ] = None,
    probabilities: Annotated[
        bool,
        typer.Option(
            "--probabilities",
            metavar="",
            rich_help_panel=READING,
            help="Read the .npz probabilities of nnU-Net instead of its label maps.",
        ),
    ] = False,
    mask: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            rich_help_panel=COMPARING,
            help="Folder with one mask per case. Only voxels where it is not 0 are compared.",
        ),
    ] = None,
    image: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            rich_help_panel=OUTPUT,
            help="Folder with the segmented images, shown on the pages of cases.",
        ),
    ] = None,
    missing: Annotated[
        MissingName,
        typer.Option(
            metavar="RULE",
            rich_help_panel=RANKING,
            help="How missing and failed cases of a method count. worst: they rank last; zero: "
            "they rank last and count as 0 in means; exclude: the ranking excludes these cases for "
            "all methods.",
        ),
    ] = MissingName.worst,
    rank_by: Annotated[
        MeasureName | None,
        typer.Option(
            metavar="MEASURE",
            show_default=False,
            rich_help_panel=RANKING,
            help="Measure that ranks methods: score (the default), adjusted_score (the default "
            "with --merge), foreground_dice (the default with --background), matched_score, "
            "explained_reference, explained_prediction, mean_dice or lowest_dice.",
        ),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            metavar="",
            rich_help_panel=READING,
            help="Identify finished cases by the content of their files, not by size and time.",
        ),
    ] = False,
    sums: SumsOption = None,
    scale: ScaleOption = None,
    names: NamesOption = None,
    reference_names: ReferenceNamesOption = None,
    prediction_names: PredictionNamesOption = None,
    priority: PriorityOption = None,
    geometry_tolerance: ToleranceOption = None,
    ignore_geometry: IgnoreGeometryOption = False,
    max_bytes: MaxBytesOption = None,
    indices: Annotated[
        bool,
        typer.Option(
            "--indices",
            metavar="",
            rich_help_panel=OUTPUT,
            help="Add other indices to cases.csv: Rand, variation of information, covering, mean "
            "IoU and others.",
        ),
    ] = False,
    background: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL",
            rich_help_panel=RANKING,
            help="Label of the background, or its name; none if there is no background. Methods "
            "are ranked by the mean Dice of the foreground, and cases.csv counts detected "
            "instances.",
        ),
    ] = None,
    parquet: Annotated[
        bool,
        typer.Option(
            "--parquet",
            metavar="",
            rich_help_panel=OUTPUT,
            help="Also write the tables as Parquet.",
        ),
    ] = False,
    reports: Annotated[
        str,
        typer.Option(
            metavar=REPORTS,
            rich_help_panel=OUTPUT,
            help="Cases that get a page with images, linked from OUT/report.html: all, the N "
            "lowest cases of every method by the ranking measure, or none.",
        ),
    ] = "worst:5",
    config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=OUTPUT,
            is_eager=True,
            callback=load_configuration,
            help="Read options from a TOML file. Command-line options override it.",
        ),
    ] = None,
    save_config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", rich_help_panel=OUTPUT, help="Write the options to a TOML file."
        ),
    ] = None,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", "-q", metavar="", rich_help_panel=OUTPUT, help="Print failures only."
        ),
    ] = False,
    debug: DebugOption = False,
) -> None:  # fmt: skip
    """Score one or more methods against a folder of reference segmentations and rank them.

    Every finished case is stored immediately. A case that cannot be compared does not stop the
    others; the exit code is then 1. OUT/report.html shows the results.
    """
    check_reports(reports)
    methods = _methods(predictions)
    raters = _methods(rater or (), "--rater")
    with reporting_errors(debug=debug):
        options = options_of(
            similarity=similarity,
            floor=floor,
            match=match,
            merge=merge,
            correspondence=correspondence.value,
            ignore=ignore,
            sums=sums,
            scale=scale,
            names=names,
            reference_names=reference_names,
            prediction_names=prediction_names,
            priority=priority,
            ignore_geometry=ignore_geometry,
            geometry_tolerance=geometry_tolerance,
            max_bytes=max_bytes,
        )
        if save_config is not None:
            save_configuration(context, save_config, methods)
        from probdice.errors import FormatError
        from probdice.evaluation import evaluate_folders
        from probdice.evaluation.tables import Others

        with _display(quiet) as (notify, show_compiling):
            result = evaluate_folders(
                None if raters and reference == CONSENSUS else reference,
                methods,
                options,
                raters=raters,
                out=out,
                pattern=_patterns(pattern or (), methods | raters),
                mask=mask,
                image=image,
                probabilities=probabilities,
                missing=missing.value,
                rank_by=None if rank_by is None else rank_by.value,
                workers=workers,
                scheduler=scheduler,
                verify=verify,
                parquet=parquet,
                others=Others(indices, background is not None, background_of(background)),
                words="command",
                progress=notify,
                compiling=show_compiling,
            )
        print_error = None
        if not quiet:
            from probdice.cli.ranking_output import show_summary

            try:
                show_summary(result.summary, out, None)
            except BrokenPipeError:  # the reader of the pipe closed it; the pages are still written
                pass
            except FormatError as error:
                print_error = error
        write_pages(result, reports, workers=workers, quiet=quiet)
        if print_error is not None:
            raise FormatError(*print_error.args, f"; all results are in {out}")
    if result.failures or (result.yardstick is not None and result.yardstick.left_out):
        raise typer.Exit(FAILED)


def _methods(words: Sequence[str], hint: str = "PREDICTION_DIR") -> dict[str, str]:
    """Return the folder of every method or rater by name, by default the folder name."""
    from probdice.evaluation.folders import as_name

    methods: dict[str, str] = {}
    for word in words:
        name, equals, folder = word.partition("=")
        if not equals or os.path.isdir(word):
            name, folder = os.path.basename(os.path.abspath(word)), word
        name = as_name(name)
        if name in methods:
            raise typer.BadParameter(
                f"two folders have the name {name!r}; use different names, as in first={folder}",
                param_hint=hint,
            )
        methods[name] = folder
    return methods


def _patterns(words: Sequence[str], methods: dict[str, str]) -> dict[str, str] | None:
    """Return the pattern of every side and method; one without a prefix applies to all sides."""
    from probdice.evaluation.folders import as_name

    patterns: dict[str, str] = {}
    for word in words:
        which, _, rest = word.partition(":")
        which = as_name(which)
        if which in ("reference", "prediction", "mask", "image", *methods):
            patterns[which] = rest
        else:
            patterns = dict.fromkeys(("reference", "prediction", "mask", "image"), word) | patterns
    return patterns or None


@contextmanager
def _display(quiet: bool) -> Iterator[Any]:
    """Show a progress bar on a terminal, and print failures when they happen.

    Yields a function to call after every case, and one to call when kernels are compiled.
    """
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar

    from probdice.cli.console import console
    from probdice.cli.ranking_output import Failures
    from probdice.errors import in_command

    failures = Failures()
    bar = Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=console(stderr=True),
        transient=True,
        disable=quiet or not sys.stderr.isatty(),
    )
    task = bar.add_task("comparisons", total=None, rate="")

    def print_line(line: str) -> None:
        with suppress(OSError):  # an unwritable standard error does not stop the run
            bar.console.print(line)

    def notify(progress: "Progress") -> None:
        latest = progress.latest
        if latest is not None and latest.failure is not None:
            message = in_command(latest.failure.message)
            if line := failures.line(latest.case, latest.method, message):
                print_line(f"failed: {line}")
        elapsed = bar.tasks[0].elapsed or 0.0
        done = progress.done - progress.resumed
        failed = f", {progress.failed} failed" if progress.failed else ""
        rate = f"{done / elapsed:.1f}/s{failed}" if done and elapsed else ""
        bar.update(
            task,
            description=progress.doing,
            completed=progress.done,
            total=progress.total,
            rate=rate,
        )

    def show_compiling() -> None:
        bar.update(task, description=COMPILING)

    with bar:
        try:
            yield notify, show_compiling
        except KeyboardInterrupt:
            print_line("interrupted: finished cases are stored; run the same command to continue")
            raise
        for line in failures.rest():
            print_line(f"failed: {line}")
