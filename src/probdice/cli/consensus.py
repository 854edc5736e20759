"""`probdice consensus`: fuse the segmentations of several raters."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from probdice.cli.outcome import reporting_errors
from probdice.cli.outputs import check_format, sample_segmentation
from probdice.cli.parameters import (
    DebugOption,
    JsonOption,
    MaskOption,
    QuietOption,
    ReportOption,
    WorkersOption,
    enumeration,
    flag,
    option,
    with_options,
)
from probdice.cli.progress import progress
from probdice.cli.rater_run import (
    FilesArgument,
    RaterAllOption,
    RaterCsvOption,
    RaterImageOption,
    RaterMatchName,
    RaterMatchOption,
    RaterRun,
    region_table,
)
from probdice.options.consensus_methods import METHODS, Method, as_method, method_help
from probdice.text.formatting import decimal

if TYPE_CHECKING:
    from rich.console import RenderableType

    from probdice.raters import Consensus

    MethodName = Method
else:
    MethodName = enumeration("MethodName", tuple(METHODS))

__all__ = ["consensus"]


@with_options("consensus")
def consensus(
    files: FilesArgument,
    user_options: dict[str, Any],
    output: Annotated[
        str | None,
        option(
            "Output",
            "FILE",
            "Write the consensus: the probabilities of the common regions or, with --labels, a "
            "label map.",
            *("--output", "-o"),
        ),
    ] = None,
    labels: Annotated[
        bool,
        flag(
            "Output",
            "Write the consensus as a label map: the most probable region of every voxel. Ties "
            "are resolved in favour of the smallest label. Requires --output.",
            "--labels",
        ),
    ] = False,
    method: Annotated[
        MethodName,
        option("Comparison", "HOW", method_help()),
    ] = "mean",
    match: RaterMatchOption = RaterMatchName.overlap,
    mask: MaskOption = None,
    workers: WorkersOption = None,
    entropy: Annotated[
        str | None,
        option(
            "Output",
            "FILE",
            "Write an image of disagreement: the entropy of the consensus at every voxel, in bits.",
        ),
    ] = None,
    report: ReportOption = None,
    image: RaterImageOption = None,
    json: JsonOption = None,
    csv: RaterCsvOption = None,
    all_: RaterAllOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Fuse several raters' segmentations of one image into one probabilistic segmentation.

    The files need not use the same labels, because regions are matched by overlap by default. The
    order of the files does not change the result.
    """
    with reporting_errors(debug=debug):
        run = RaterRun(files, mask, image, report, json, csv, quiet)
        if labels and output is None:
            raise typer.BadParameter("requires --output FILE", param_hint="--labels")
        options = run.check(user_options, match, {"--output": output, "--entropy": entropy})
        with progress(visible=not quiet) as display:
            import numpy as np

            from probdice.data.pixel_words import pixel_words
            from probdice.files import write
            from probdice.raters.consensus_result import consensus_of

            display.begin("reading")
            panel, layer = run.read(options, workers)
            any_side = panel.segmentations.first
            if output is not None:
                check_format(
                    output, sample_segmentation(any_side.shape, any_side.geometry, crisp=labels)
                )
            if entropy is not None:
                pixel = np.zeros((1,) * len(any_side.shape), np.float32)
                check_format(entropy, pixel, any_side.geometry)
            display.begin("comparing")
            result = consensus_of(panel, as_method(str(method)), None)
            agreement = result.agreement
            file_lines = []
            display.begin("writing")
            if output is not None:
                write(output, result.label_map() if labels else result.segmentation)
                file_lines.append(f"{output}: consensus{' as a label map' if labels else ''}")
            if entropy is not None:
                write(entropy, result.entropy(), geometry=result.segmentation.geometry)
                file_lines.append(f"{entropy}: entropy of the consensus")
            file_lines += run.write(result, agreement, lambda: result, layer, display)
            pixels = pixel_words(any_side).many
            tables = _parts(result, pixels, all_regions=all_) if run.prints_tables else []
        run.print(result, agreement, tables, file_lines)


def _parts(result: "Consensus", pixels: str, *, all_regions: bool) -> "list[RenderableType]":
    """Return the printed text: means over all pairs, tables of raters and regions, and notes."""
    from probdice.cli.display import note_line
    from probdice.cli.terminal_tables import plain_table
    from probdice.errors import in_command

    agreement = result.agreement
    table = plain_table(
        "rater", ">regions", ">score vs the others", ">adjusted", ">expected accuracy"
    )
    for rater, agreement_with_others in zip(result.raters, agreement.others, strict=True):
        numbers = agreement_with_others.score, agreement_with_others.adjusted_score, rater.accuracy
        table.add_row(rater.name, str(len(rater.correspondence)), *map(decimal, numbers))
    count = len(result.segmentation.regions)
    return [
        f"{len(result.names)} raters ({result.method_text}): {count} common regions over "
        f"{result.pixels:,} {pixels}",
        f"mean of all pairs: Dice {decimal(agreement.mean_dice)}, adjusted score "
        f"{decimal(agreement.mean_adjusted_score)}, explained {decimal(agreement.mean_explained)}, "
        f"score {decimal(agreement.mean_score)}",
        table,
        *region_table(agreement, pixels, all_regions=all_regions),
        *(note_line(in_command(note.message)) for note in result.notes),
    ]
