"""`probdice evaluate`: score and rank methods over a folder of cases."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from probdice.cli.configuration import load_configuration, save_configuration
from probdice.cli.outcome import ERROR, reporting_errors
from probdice.cli.pages import REPORTS, check_reports, write_pages
from probdice.cli.parameters import (
    ADVANCED_SUFFIX,
    DebugOption,
    argument,
    check_options,
    flag,
    option,
    with_options,
)
from probdice.cli.progress import COMPILING, counting_bar
from probdice.options import EvaluateOptions

if TYPE_CHECKING:
    from probdice.evaluation import Evaluation, Progress

__all__ = ["evaluate"]

CONSENSUS = "consensus"  # given instead of the folder of the references
# The start of a path that may contain "=" (C:\a=b, /a=b, ./a=b), as opposed to NAME=DIR.
PATH = re.compile(r"(?:[A-Za-z]:|\.{1,2})?[/\\]")
FAILED = ERROR  # the exit code if a case failed or, with --strict, is missing


@with_options("evaluate")
def evaluate(
    context: typer.Context,
    reference: Annotated[
        str,
        argument(
            "REFERENCE_DIR",
            "Folder of reference segmentations (ground truth), with one file or subfolder per "
            "case. With --rater, the value 'consensus' selects the mean of the raters. For a "
            "folder named consensus, use ./consensus.",
        ),
    ],
    user_options: dict[str, Any],
    predictions: Annotated[
        list[str] | None,
        argument("PREDICTION_DIR…", "One folder of predictions per method, as DIR or NAME=DIR."),
    ] = None,
    out: Annotated[
        str | None,
        option(
            "Output",
            "OUT",
            "Results folder. The same command continues an interrupted run; a run with other "
            "options replaces the tables.",
            *("--output", "-o"),
        ),
    ] = None,
    rater: Annotated[
        list[str] | None,
        option(
            "Comparison",
            "NAME=DIR",
            "Folder with the segmentations of one rater (annotator). Use this option at least "
            "twice. Every method is then also compared with each rater, and the agreement of "
            "methods with raters is compared with inter-rater agreement.",
        ),
    ] = None,
    reports: Annotated[
        str,
        option(
            "Output",
            REPORTS,
            "Cases for which to write an HTML page with images, linked from OUT/report.html: all "
            "cases, the N worst cases of each method and of all methods together by the first "
            "ranking measure, or none.",
        ),
    ] = "worst:5",
    config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=f"Output{ADVANCED_SUFFIX}",
            is_eager=True,
            callback=load_configuration,
            help="Read options from a TOML file. Command-line options override the file.",
        ),
    ] = None,
    save_config: Annotated[
        str | None,
        option("Output", "FILE", "Write the options to a TOML file.", advanced=True),
    ] = None,
    write_manifest: Annotated[
        str | None,
        option(
            "Output",
            "FILE",
            "Write a manifest (JSON), which lists the requirements that the check command applies "
            "to a submission: cases, grids, labels and kinds (labels or probabilities). Without "
            "PREDICTION_DIR and --output, only write this file.",
        ),
    ] = None,
    strict: Annotated[
        bool,
        flag(
            "Ranking",
            "Exit with code 1 not only for failed cases, but also for missing cases.",
            "--strict",
            advanced=True,
        ),
    ] = False,
    quiet: Annotated[bool, flag("Output", "Print failures only.", "--quiet", "-q")] = False,
    debug: DebugOption = False,
) -> None:
    """Score one or more methods against a folder of reference segmentations and rank them.

    Every finished case is stored immediately. If a case cannot be compared, the other cases are
    still evaluated, and the exit code is 1. OUT/report.html shows the results.
    """
    check_reports(reports)
    methods = _methods(predictions or ())
    raters = _methods(rater or (), "--rater")
    manifest_only = write_manifest is not None and not methods and out is None
    if not manifest_only and (not methods or out is None):
        raise typer.BadParameter(
            "required, unless --write-manifest is used without PREDICTION_DIR and --output",
            param_hint="--output" if methods else "PREDICTION_DIR",
        )
    if reference == CONSENSUS and not raters and not os.path.isdir(CONSENSUS):
        raise typer.BadParameter(
            "consensus requires at least two raters; add --rater NAME=DIR for every rater",
            param_hint="REFERENCE_DIR",
        )
    with reporting_errors(debug=debug):
        user_options["pattern"] = _patterns(user_options.get("pattern", ()), methods | raters)
        options = check_options(EvaluateOptions, user_options)
        if save_config is not None:
            save_configuration(context, save_config, methods)
        if write_manifest is not None:
            _write_manifest(write_manifest, reference, options, quiet)
        if not methods or out is None:
            return
        from probdice.errors import FormatError
        from probdice.evaluation import evaluate_folders
        from probdice.evaluation.tables import ExtraColumns

        with _display(quiet) as (notify, show_compiling):
            result = evaluate_folders(
                None if raters and reference == CONSENSUS else reference,
                methods,
                options,
                raters=raters,
                out=out,
                others=ExtraColumns(
                    options.indices, "background" in user_options, options.background is not None
                ),
                words="command",
                progress=notify,
                compiling=show_compiling,
            )
        print_error = None
        if not quiet:
            from probdice.cli.ranking_output import show_summary

            try:
                show_summary(result.summary, out, file_lines=[f"{out}: {_file_names(result)}"])
            except BrokenPipeError:  # the reader of the pipe closed it; the pages are still written
                pass
            except FormatError as error:
                print_error = error
        write_pages(result, reports, workers=options.workers, quiet=quiet)
        if print_error is not None:
            raise FormatError(*print_error.args, f"; all results are in {out}")
    has_exclusions = result.rater_comparison is not None and result.rater_comparison.excluded_cases
    has_missing = strict and any(counts.missing for counts in result.counts.values())
    if result.failures or has_exclusions or has_missing:
        raise typer.Exit(FAILED)


def _file_names(result: "Evaluation") -> str:
    """Return the names of the main files in the results folder, without the HTML pages."""
    component_files = ("components.csv", "strata.csv") if result.others.components else ()
    tables = ("ranking.csv", "table.md", "table.tex", "cases.csv", "regions.csv", *component_files)
    return ", ".join([*tables, "files.csv", "how.md", "summary.json", "cases.jsonl"])


def _write_manifest(path: str, reference: str, options: EvaluateOptions, quiet: bool) -> None:
    """Write the manifest of the references, and print the accepted kinds and labels."""
    from probdice.cli.outputs import check_outputs
    from probdice.evaluation import Manifest

    if reference == CONSENSUS:
        raise typer.BadParameter(
            "requires a folder of references, found consensus", param_hint="--write-manifest"
        )
    check_outputs({"--write-manifest": path}, inputs={})
    manifest = Manifest.of(reference, options)
    manifest.write(path)
    if not quiet:
        from probdice.cli.display import show
        from probdice.method.region_labels import listed
        from probdice.text.formatting import quantity

        names = {"labels": "label maps", "probabilities": "probabilities"}
        kinds = " and ".join(names[kind] for kind in manifest.kinds)
        labels = listed(manifest.regions.labels, 20)
        rule = (
            "other labels cause errors"
            if manifest.strict_labels
            else "other labels cause warnings; to make them errors, use --match labels"
        )
        cases = quantity(len(manifest.cases), "case")
        show(file_lines=[f"{path}: {cases}, {kinds}, labels {labels} ({rule})"])


def _methods(words: Sequence[str], hint: str = "PREDICTION_DIR") -> dict[str, str]:
    """Return the folder of every method or rater by name. The default name is the folder name."""
    from probdice.evaluation.folders import as_name

    methods: dict[str, str] = {}
    for word in words:
        name, equals, folder = word.partition("=")
        if not equals or os.path.isdir(word) or PATH.match(word):
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
    """Return the patterns by prefix: reference, prediction, mask, image or a name in `methods`.

    `methods` contains the names of methods and raters. A pattern without a prefix applies to all
    folders for which no other pattern is given.
    """
    from probdice.evaluation.folders import as_name

    patterns: dict[str, str] = {}
    known_names = ("reference", "prediction", "mask", "image", *methods)
    for word in words:
        name, _, pattern = word.partition(":")
        name = as_name(name)
        if name in known_names:
            patterns[name] = pattern
        elif pattern and re.fullmatch(r"[\w -]+", name):
            raise typer.BadParameter(
                f"expected one of {', '.join(known_names)} before the colon, found {word!r}",
                param_hint="--pattern",
            )
        else:
            patterns = dict.fromkeys(("reference", "prediction", "mask", "image"), word) | patterns
    return patterns or None


@contextmanager
def _display(quiet: bool) -> Iterator[Any]:
    """Show a progress bar on a terminal, and print the first failures of every kind immediately.

    Yield two functions: one to call after every case, and one to call when the compilation of
    kernels starts.
    """
    from probdice.cli.failure_lines import Failures
    from probdice.errors import in_command

    failures = Failures()
    with counting_bar("comparisons", visible=not quiet) as bar:

        def notify(progress: "Progress") -> None:
            latest = progress.latest
            if latest is not None and latest.failure is not None:
                message = in_command(latest.failure.message)
                if line := failures.line(latest.case, latest.method, message):
                    bar.print(f"failed: {line}")
            compared_count = progress.done - progress.resumed
            failure_text = f", {progress.failed} failed" if progress.failed else ""
            rate = (
                f"{compared_count / bar.elapsed:.1f}/s{failure_text}"
                if compared_count and bar.elapsed
                else ""
            )
            bar.show(progress.done, progress.total, step=progress.stage, rate=rate)

        try:
            yield notify, lambda: bar.rename(COMPILING)
        except KeyboardInterrupt:
            bar.print(
                "interrupted: finished cases are stored; run the same command again to continue"
            )
            raise
        for line in failures.remaining_lines():
            bar.print(f"failed: {line}")
