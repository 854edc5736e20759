"""`probdice consensus`: fuse the segmentations of several raters."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from probdice.cli.outcome import reporting_errors
from probdice.cli.outputs import check_format, check_outputs, sample_segmentation, write_text
from probdice.cli.parameters import (
    DebugOption,
    JsonOption,
    MaskOption,
    QuietOption,
    ReportOption,
    WorkersOption,
    checked,
    with_options,
)
from probdice.cli.progress import progress
from probdice.cli.rater_inputs import (
    FilesArgument,
    RaterCsvOption,
    RaterImageOption,
    RaterMatchName,
    RaterMatchOption,
    background_image,
    panel_of_files,
    region_table,
)
from probdice.cli.streams import print_text
from probdice.options import CompareOptions
from probdice.text.formatting import decimal

if TYPE_CHECKING:
    from probdice.raters import Consensus

__all__ = ["consensus"]


class MethodName(StrEnum):
    """Methods of fusion."""

    mean = "mean"
    staple = "staple"


@with_options("consensus")
def consensus(
    files: FilesArgument,
    given: dict[str, Any],
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            rich_help_panel="Output",
            help="Write the consensus: the probabilities of the common regions, or with --labels "
            "a label map.",
        ),
    ] = None,
    labels: Annotated[
        bool,
        typer.Option(
            "--labels",
            metavar="",
            rich_help_panel="Output",
            help="Write the consensus as a label map: the most probable region of every voxel. "
            "Ties go to the smallest label. Needs --output.",
        ),
    ] = False,
    method: Annotated[
        MethodName,
        typer.Option(
            metavar="HOW",
            rich_help_panel="Comparison",
            help="mean of the raters, or staple, which estimates the reliability of each rater.",
        ),
    ] = MethodName.mean,
    match: RaterMatchOption = RaterMatchName.overlap,
    mask: MaskOption = None,
    workers: WorkersOption = None,
    entropy: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel="Output",
            help="Write an image of disagreement: the entropy of the consensus at every voxel, in "
            "bits.",
        ),
    ] = None,
    report: ReportOption = None,
    image: RaterImageOption = None,
    json: JsonOption = None,
    csv: RaterCsvOption = None,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Fuse segmentations of one image by several raters into one probabilistic segmentation.

    Labels need not agree: by default, regions are matched by overlap, and neither the order of the
    files nor their labels change the result.
    """
    with reporting_errors(debug=debug):
        options = checked(CompareOptions, given | {"match": match.value})
        if labels and output is None:
            raise typer.BadParameter("needs --output FILE", param_hint="--labels")
        inputs = {f"FILES ({file})": file for file in files} | {"--mask": mask, "--image": image}
        check_outputs(
            {
                "--output": output,
                "--entropy": entropy,
                "--report": report,
                "--json": json,
                "--csv": csv,
            },
            images=("--output", "--entropy"),
            inputs=inputs,
        )
        written = []
        with progress(shown=not quiet) as display:
            from probdice.files import write
            from probdice.raters.consensus_result import consensus_of

            display.begin("reading")
            panel = panel_of_files(files, mask=mask, workers=workers, options=options)
            layer = background_image(panel, options, image, report)
            if output is not None:
                one = panel.several.any
                check_format(output, sample_segmentation(one.shape, one.geometry, crisp=labels))
            display.begin("comparing")
            result = consensus_of(panel, method.value, None)
            if not quiet or any(path is not None for path in (json, report, csv)):
                _ = (
                    result.raters,
                    result.agreement,
                )  # computed here, while the progress bar is shown
            if output is not None:
                display.begin("writing")
                write(output, result.label_map() if labels else result.segmentation)
                written.append(f"{output}: consensus{' as a label map' if labels else ''}")
            if entropy is not None:
                display.begin("writing")
                write(entropy, result.entropy(), geometry=result.segmentation.geometry)
                written.append(f"{entropy}: entropy of the consensus")
            if report is not None:
                from probdice.report.rater_pages import write_consensus

                display.begin("writing the report")
                write_consensus(result, report, words="command", image=layer)
                written.append(f"{report}: report")
            if json is not None and json != "-":
                write_text(json, result.to_json() + "\n")
                written.append(f"{json}: all numbers")
            if csv is not None:
                write_text(csv, result.agreement.to_csv())
                written.append(f"{csv}: one row per region and pair of raters")
        if json == "-":
            print_text(result.to_json() + "\n")
        elif quiet:
            print_text(f"{decimal(result.agreement.mean_score)}\n")
        else:
            _show(result, written)


def _show(result: "Consensus", written: list[str]) -> None:
    from probdice.cli.display import note_line, show
    from probdice.cli.terminal_tables import plain_table
    from probdice.errors import in_command

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
        *region_table(agreement),
        *(note_line(in_command(note.message)) for note in result.notes),
        *(f"wrote {line}" for line in written),
    )
