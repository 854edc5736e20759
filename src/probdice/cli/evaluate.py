"""`probdice evaluate`: folders of cases."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from probdice.cli.configuration import load_configuration, save_configuration
from probdice.cli.options import (
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
from probdice.cli.outcome import REFUSED, answering
from probdice.cli.pages import REPORTS, check_reports, write_pages
from probdice.cli.progress import COMPILING

if TYPE_CHECKING:
    from probdice.evaluation import Progress

__all__ = ["evaluate"]

CONSENSUS = "consensus"  # in place of the folder of a reference
FAILED = REFUSED  # some case could not be compared


def evaluate(
    context: typer.Context,
    reference: Annotated[
        str,
        typer.Argument(
            metavar="REFERENCE_DIR",
            show_default=False,
            help="The folder of the reference: a file or a subfolder for every case. With --rater "
            "also the word consensus, for the mean of the raters (./consensus for such a folder).",
        ),
    ],
    predictions: Annotated[
        list[str],
        typer.Argument(
            metavar="PREDICTION_DIR…",
            show_default=False,
            help="A folder for every method, as DIR or name=DIR.",
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--output", "-o",
            metavar="OUT",
            rich_help_panel=OUTPUT,
            help="The folder for the results. The same command continues what is there; another "
            "one replaces its tables.",
        ),
    ],
    rater: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=DIR",
            rich_help_panel=COMPARING,
            help="A folder of one rater's segmentations, of two raters or more: every method is "
            "compared with each rater too, and held to what raters reach among themselves.",
        ),
    ] = None,
    similarity: SimilarityOption = SimilarityName.absolute,
    floor: FloorOption = None,
    match: MatchOption = "overlap",
    merge: MergeOption = MergeName.none,
    correspondence: Annotated[
        CorrespondenceName,
        typer.Option(
            metavar="OF",
            rich_help_panel=COMPARING,
            help="case: regions correspond anew in every case; set: by one correspondence for all "
            "cases of a method, as clusters and classes do.",
        ),
    ] = CorrespondenceName.case,
    ignore: IgnoreOption = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            rich_help_panel=COMPARING,
            help="Cores, by processes and threads together; all by default.",
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            rich_help_panel=COMPARING,
            help="Compare on a cluster of Dask, tcp://host:8786, a case a task; its workers must "
            "see the files under the same paths.",
        ),
    ] = None,
    pattern: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            rich_help_panel=READING,
            help="Where the case stands in the names, such as '{case}_seg.nii.gz'. For one side "
            "or method: reference:PATTERN, prediction:PATTERN, mask:PATTERN, image:PATTERN, "
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
            help="Take nnU-Net's .npz of probabilities, not the label map it lies beside.",
        ),
    ] = False,
    mask: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            rich_help_panel=COMPARING,
            help="A folder with a mask for every case: compare only where it is not 0.",
        ),
    ] = None,
    image: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            rich_help_panel=OUTPUT,
            help="A folder with the images that were segmented, for the pages of cases to show.",
        ),
    ] = None,
    missing: Annotated[
        MissingName,
        typer.Option(
            metavar="RULE",
            rich_help_panel=RANKING,
            help="How a case that a method lacks, or that fails, counts. worst: it ranks last; "
            "zero: it also is 0 in means; exclude: no method is ranked by it.",
        ),
    ] = MissingName.worst,
    rank_by: Annotated[
        MeasureName | None,
        typer.Option(
            metavar="MEASURE",
            show_default=False,
            rich_help_panel=RANKING,
            help="The measure to rank methods by: score (the default), adjusted_score (the default "
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
            help="Recognise finished cases by the content of their files, not by size and time.",
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
            help="Add columns of other fields to cases.csv: Rand, variation of information, "
            "covering, mean IoU and others.",
        ),
    ] = False,
    background: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL",
            rich_help_panel=RANKING,
            help="The label, or its name, that is no foreground (none where there is none): rank "
            "by the mean Dice of the foreground, and add columns of which instances were found.",
        ),
    ] = None,
    parquet: Annotated[
        bool,
        typer.Option(
            "--parquet",
            metavar="",
            rich_help_panel=OUTPUT,
            help="Write the tables as Parquet too.",
        ),
    ] = False,
    reports: Annotated[
        str,
        typer.Option(
            metavar=REPORTS,
            rich_help_panel=OUTPUT,
            help="Which cases get a page of their own, with images, that OUT/report.html links "
            "to: all, the N lowest of every method by what ranks, or none.",
        ),
    ] = "worst:5",
    config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=OUTPUT,
            is_eager=True,
            callback=load_configuration,
            help="A TOML file with all that this command line has; what is said here goes first.",
        ),
    ] = None,
    save_config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", rich_help_panel=OUTPUT, help="Write what was said to such a file."
        ),
    ] = None,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", "-q", metavar="", rich_help_panel=OUTPUT, help="Print failures alone."
        ),
    ] = False,
    debug: DebugOption = False,
) -> None:  # fmt: skip
    """Compare every case of a folder with one method or several, and say what follows.

    Every finished case is kept at once. The exit code is 1 where a case could not be compared.
    At the end OUT/report.html is a page to look at.
    """
    check_reports(reports)
    methods = _methods(predictions)
    raters = _methods(rater or (), "--rater")
    with answering(debug=debug):
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

        with _display(quiet) as (notify, say_compiling):
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
                compiling=say_compiling,
            )
        unprinted = None
        if not quiet:
            from probdice.cli.standings import show_summary

            try:
                show_summary(result.summary, out, None)
            except BrokenPipeError:  # whoever read it has seen enough; the pages are still wanted
                pass
            except FormatError as error:
                unprinted = error
        write_pages(result, reports, workers=workers, quiet=quiet)
        if unprinted is not None:
            raise FormatError(*unprinted.args, f"; all results are in {out}")
    if result.failures:
        raise typer.Exit(FAILED)


def _methods(words: Sequence[str], hint: str = "PREDICTION_DIR") -> dict[str, str]:
    """The folder of every method or rater; its own name where none is given."""
    methods: dict[str, str] = {}
    for word in words:
        name, equals, folder = word.partition("=")
        if not equals or os.path.isdir(word):
            name, folder = os.path.basename(os.path.abspath(word)), word
        if name in methods:
            raise typer.BadParameter(
                f"two are called {name!r}; name them, as in first={folder}",
                param_hint=hint,
            )
        methods[name] = folder
    return methods


def _patterns(words: Sequence[str], methods: dict[str, str]) -> dict[str, str] | None:
    """The pattern of each side or method; a plain one is for both sides."""
    patterns: dict[str, str] = {}
    for word in words:
        which, _, rest = word.partition(":")
        if which in ("reference", "prediction", "mask", "image", *methods):
            patterns[which] = rest
        else:
            patterns = dict.fromkeys(("reference", "prediction", "mask", "image"), word) | patterns
    return patterns or None


@contextmanager
def _display(quiet: bool) -> Iterator[Any]:
    """What to call after every case, and when kernels are compiled.

    A bar on a terminal, and failures as they come.
    """
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar

    from probdice.cli.console import console
    from probdice.cli.standings import Failures
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

    def complain(line: str) -> None:
        with suppress(OSError):  # standard error that cannot be written to stops no run
            bar.console.print(line)

    def notify(progress: "Progress") -> None:
        latest = progress.latest
        if latest is not None and latest.failure is not None:
            message = in_command(latest.failure.message)
            if line := failures.line(latest.case, latest.method, message):
                complain(f"failed: {line}")
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

    def say_compiling() -> None:
        bar.update(task, description=COMPILING)

    with bar:
        try:
            yield notify, say_compiling
        except KeyboardInterrupt:
            complain("interrupted: every finished case is kept; the same command continues")
            raise
        for line in failures.rest():
            complain(f"failed: {line}")
