"""`probdice consensus`: what several raters agree on."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from probdice.cli.outcome import answering
from probdice.cli.outputs import check_outputs, rehearse, stand_in, write_text
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
    """How raters are fused."""

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
            help="Write the consensus: the probability of every common region.",
        ),
    ] = None,
    method: Annotated[
        MethodName,
        typer.Option(
            metavar="HOW",
            rich_help_panel=COMPARING,
            help="mean of the raters, or staple, which estimates how reliable each rater is.",
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
            help="Write an image of where the raters disagree: the entropy of the consensus, in "
            "bits.",
        ),
    ] = None,
    report: ReportOption = None,
    json: JsonOption = None,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Fuse several raters' segmentations of one image into a probabilistic one.

    Regions need not carry the same labels: which are the same is found out, and neither the order
    of the files nor the labels in them change the result.
    """
    with answering(debug=debug):
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

            display.say("reading")
            panel = panel_of_files(files, mask=mask, workers=workers, options=options)
            if output is not None:
                image = panel.several.any
                rehearse(output, stand_in(image.shape, image.geometry, crisp=False))
            display.say("comparing")
            result = consensus_of(panel, method.value, None)
            if json is not None or report is not None or not quiet:
                _ = result.raters, result.agreement  # while the bar is shown
            if output is not None:
                display.say("writing")
                write(output, result.segmentation)
                written.append(f"the consensus to {output}")
            if entropy is not None:
                display.say("writing")
                write(entropy, result.entropy(), geometry=result.segmentation.geometry)
                written.append(f"where the raters disagree to {entropy}")
            if report is not None:
                from probdice.report.rater_pages import write_consensus

                display.say("page")
                write_consensus(result, report, words="command")
                written.append(f"the page to {report}")
            if json is not None and json != "-":
                write_text(json, result.to_json() + "\n")
                written.append(f"everything as JSON to {json}")
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

    how = "mean"
    if result.method == "staple":
        how = f"STAPLE, {result.iterations} iterations"
    agreement = result.agreement
    table = plain_table("rater", ">regions", ">against the others", ">adjusted", ">expected right")
    for rater, one in zip(result.raters, agreement.others, strict=True):
        table.add_row(
            rater.name,
            str(len(rater.correspondence)),
            decimal(one.score),
            decimal(one.adjusted_score),
            decimal(rater.accuracy),
        )
    count = len(result.segmentation.regions)
    show(
        f"{len(result.names)} raters ({how}): {count} common regions over {result.pixels:,} pixels",
        f"two raters agree to {decimal(agreement.mean_score)} on average "
        f"(adjusted {decimal(agreement.mean_adjusted_score)})",
        table,
        *(note_line(in_command(note.message)) for note in result.notes),
        *(f"wrote {line}" for line in written),
    )
