"""`probdice agree`: inter-rater agreement."""

from typing import TYPE_CHECKING, Any

from probdice.cli.outcome import reporting_errors
from probdice.cli.outputs import check_outputs, write_text
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
    from probdice.raters import Agreement

__all__ = ["agree"]

MAX_MATRIX = 12  # raters; a larger matrix does not fit a terminal


@with_options("agree")
def agree(
    files: FilesArgument,
    given: dict[str, Any],
    match: RaterMatchOption = RaterMatchName.overlap,
    mask: MaskOption = None,
    workers: WorkersOption = None,
    report: ReportOption = None,
    image: RaterImageOption = None,
    json: JsonOption = None,
    csv: RaterCsvOption = None,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Measure inter-rater agreement on one image: every pair of raters, and each with the others.

    The score of a rater against the mean of the others is the best score to expect from a method.
    """
    with reporting_errors(debug=debug):
        options = checked(CompareOptions, given | {"match": match.value})
        inputs = {f"FILES ({file})": file for file in files} | {"--mask": mask, "--image": image}
        check_outputs({"--report": report, "--json": json, "--csv": csv}, inputs=inputs)
        written = []
        with progress(shown=not quiet) as display:
            from probdice.raters.agreements import agreement_of

            display.begin("reading")
            panel = panel_of_files(files, mask=mask, workers=workers, options=options)
            layer = background_image(panel, options, image, report)
            display.begin("comparing")
            agreement = agreement_of(panel)
            if report is not None:
                from probdice.raters.consensus_result import consensus_of
                from probdice.report.rater_pages import write_consensus

                display.begin("writing the report")
                mean = consensus_of(panel, "mean", None)
                write_consensus(mean, report, words="command", image=layer)
                written.append(f"{report}: report")
            if json is not None and json != "-":
                write_text(json, agreement.to_json() + "\n")
                written.append(f"{json}: all numbers")
            if csv is not None:
                write_text(csv, agreement.to_csv())
                written.append(f"{csv}: one row per region and pair of raters")
        if json == "-":
            print_text(agreement.to_json() + "\n")
        elif quiet:
            print_text(f"{decimal(agreement.mean_score)}\n")
        else:
            _show(agreement, written)


def _show(agreement: "Agreement", written: list[str]) -> None:
    from probdice.cli.display import note_line, show
    from probdice.cli.terminal_tables import plain_table
    from probdice.errors import in_command

    parts: list[object] = [
        f"{len(agreement.names)} raters over {agreement.pixels:,} pixels",
        f"mean of all pairs: score {decimal(agreement.mean_score)}, adjusted "
        f"{decimal(agreement.mean_adjusted_score)}, explained {decimal(agreement.mean_explained)}",
    ]
    foreground = agreement.foreground_dice is not None
    if foreground:
        parts.append(
            f"foreground: Dice {decimal(agreement.mean_foreground_dice)}, adjusted score "
            f"{decimal(agreement.mean_adjusted_foreground_score)}"
        )
    names = agreement.names
    if len(names) <= MAX_MATRIX:
        # Columns are numbered because names are too long for headings.
        matrix = plain_table(">", "score", *(f">{k}" for k in range(1, len(names) + 1)))
        for number, i in enumerate(agreement.order, start=1):
            cells = ["–" if i == j else decimal(agreement.score[i, j]) for j in agreement.order]
            matrix.add_row(str(number), names[i], *cells)
        parts.append(matrix)
    headings = [">foreground Dice"] if foreground else []
    others = plain_table("rater vs the others", ">score", ">adjusted", ">explained", *headings)
    for rater in agreement.others:
        numbers = [rater.score, rater.adjusted_score, rater.explained]
        if foreground:
            numbers.append(rater.foreground_dice)
        others.add_row(rater.name, *map(decimal, numbers))
    parts += [others, *region_table(agreement)]
    parts += [note_line(in_command(note.message)) for note in agreement.notes]
    show(*parts, *(f"wrote {line}" for line in written))  # type: ignore[arg-type]
