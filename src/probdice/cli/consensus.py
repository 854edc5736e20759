"""`probdice consensus`: fuse the segmentations of several raters."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from probdice.cli.outcome import reporting_errors
from probdice.cli.outputs import check_format, check_outputs, sample_segmentation, write_text
from probdice.cli.parameters import (
    COMPARING,
    OUTPUT,
    DebugOption,
    IgnoreGeometryOption,
    JsonOption,
    MaskOption,
    MaxBytesOption,
    QuietOption,
    ReportOption,
    SumsName,
    ToleranceOption,
    WorkersOption,
    options_of,
)
from probdice.cli.progress import progress
from probdice.cli.rater_inputs import (
    FilesArgument,
    RaterMatchName,
    RaterMatchOption,
    RaterSumsOption,
    panel_of_files,
)
from probdice.cli.streams import print_text

if TYPE_CHECKING:
    from probdice.raters import Consensus

__all__ = ["consensus"]


class MethodName(StrEnum):
    """Methods of fusion."""

    mean = "mean"
    staple = "staple"


def consensus(
    files: FilesArgument,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            rich_help_panel=OUTPUT,
            help="Write the consensus: the probabilities of the common regions.",
        ),
    ] = None,
    method: Annotated[
        MethodName,
        typer.Option(
            metavar="HOW",
            rich_help_panel=COMPARING,
            help="mean of the raters, or staple, which estimates the reliability of each rater.",
        ),
    ] = MethodName.mean,
    match: RaterMatchOption = RaterMatchName.overlap,
    mask: MaskOption = None,
    workers: WorkersOption = None,
    sums: RaterSumsOption = SumsName.error,
    geometry_tolerance: ToleranceOption = None,
    ignore_geometry: IgnoreGeometryOption = False,
    max_bytes: MaxBytesOption = None,
    entropy: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=OUTPUT,
            help="Write an image of disagreement: the entropy of the consensus at every voxel, in "
            "bits.",
        ),
    ] = None,
    report: ReportOption = None,
    json: JsonOption = None,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Fuse segmentations of one image by several raters into one probabilistic segmentation.

    Labels need not agree: by default, regions are matched by overlap, and neither the order of the
    files nor their labels change the result.
    """
    with reporting_errors(debug=debug):
        options = options_of(
            match=match.value,
            sums=[sums.value],
            ignore_geometry=ignore_geometry,
            geometry_tolerance=geometry_tolerance,
            max_bytes=max_bytes,
        )
        inputs = {f"FILES ({file})": file for file in files} | {"--mask": mask}
        check_outputs(
            {"--output": output, "--entropy": entropy, "--report": report, "--json": json},
            images=("--output", "--entropy"),
            inputs=inputs,
        )
        written = []
        with progress(shown=not quiet) as display:
            from probdice.files import write
            from probdice.raters.consensus_result import consensus_of

            display.begin("reading")
            panel = panel_of_files(files, mask=mask, workers=workers, options=options)
            if output is not None:
                image = panel.several.any
                check_format(output, sample_segmentation(image.shape, image.geometry, crisp=False))
            display.begin("comparing")
            result = consensus_of(panel, method.value, None)
            if json is not None or report is not None or not quiet:
                _ = (
                    result.raters,
                    result.agreement,
                )  # computed here, while the progress bar is shown
            if output is not None:
                display.begin("writing")
                write(output, result.segmentation)
                written.append(f"{output}: consensus")
            if entropy is not None:
                display.begin("writing")
                write(entropy, result.entropy(), geometry=result.segmentation.geometry)
                written.append(f"{entropy}: entropy of the consensus")
            if report is not None:
                from probdice.report.rater_pages import write_consensus

                display.begin("writing the report")
                write_consensus(result, report, words="command")
                written.append(f"{report}: report")
            if json is not None and json != "-":
                write_text(json, result.to_json() + "\n")
                written.append(f"{json}: all numbers")
        if json == "-":
            print_text(result.to_json() + "\n")
        elif quiet:
            print_text(f"{result.agreement.mean_score!r}\n")
        else:
            _show(result, written)


def _show(result: "Consensus", written: list[str]) -> None:
    from probdice.cli.display import note_line, show
    from probdice.cli.terminal_tables import plain_table
    from probdice.errors import in_command
    from probdice.text.formatting import decimal

    method = "mean"
    if result.method == "staple":
        method = f"STAPLE, {result.iterations} iterations"
    agreement = result.agreement
    table = plain_table(
        "rater", ">regions", ">score vs the others", ">adjusted", ">expected accuracy"
    )
    for rater, others in zip(result.raters, agreement.others, strict=True):
        table.add_row(
            rater.name,
            str(len(rater.correspondence)),
            decimal(others.score),
            decimal(others.adjusted_score),
            decimal(rater.accuracy),
        )
    count = len(result.segmentation.regions)
    show(
        f"{len(result.names)} raters ({method}): {count} common regions over "
        f"{result.pixels:,} pixels",
        f"mean agreement of two raters: {decimal(agreement.mean_score)} "
        f"(adjusted {decimal(agreement.mean_adjusted_score)})",
        table,
        *(note_line(in_command(note.message)) for note in result.notes),
        *(f"wrote {line}" for line in written),
    )
