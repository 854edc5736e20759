"""`probdice agree`: inter-rater agreement."""

from typing import TYPE_CHECKING, Any

from probdice.cli.outcome import reporting_errors
from probdice.cli.parameters import (
    DebugOption,
    JsonOption,
    MaskOption,
    QuietOption,
    ReportOption,
    WorkersOption,
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
from probdice.text.formatting import decimal

if TYPE_CHECKING:
    from rich.console import RenderableType

    from probdice.raters import Agreement

__all__ = ["agree"]

MAX_MATRIX = 12  # raters; larger matrices do not fit on a terminal


@with_options("agree")
def agree(
    files: FilesArgument,
    user_options: dict[str, Any],
    match: RaterMatchOption = RaterMatchName.overlap,
    mask: MaskOption = None,
    workers: WorkersOption = None,
    report: ReportOption = None,
    image: RaterImageOption = None,
    json: JsonOption = None,
    csv: RaterCsvOption = None,
    all_: RaterAllOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Measure the inter-rater agreement of every pair of raters, and of each rater with the others.

    To judge the score of a method, compare it with the scores of the raters, for which every rater
    is compared with the mean of the other raters.
    """
    with reporting_errors(debug=debug):
        run = RaterRun(files, mask, image, report, json, csv, quiet)
        options = run.check(user_options, match, {})
        with progress(visible=not quiet) as display:
            from probdice.data.pixel_words import pixel_words
            from probdice.raters.agreements import agreement_of
            from probdice.raters.consensus_result import consensus_of

            display.begin("reading")
            panel, layer = run.read(options, workers)
            display.begin("comparing")
            agreement = agreement_of(panel)
            file_lines = run.write(
                agreement, agreement, lambda: consensus_of(panel, "mean", None), layer, display
            )
        parts = _parts(agreement, pixel_words(panel.segmentations.first).many, all_regions=all_)
        run.print(agreement, agreement, parts, file_lines)


def _parts(agreement: "Agreement", pixels: str, *, all_regions: bool) -> "list[RenderableType]":
    """Return the printed text: means over all pairs, tables of pairs, raters and regions, notes."""
    from probdice.cli.display import note_line
    from probdice.cli.terminal_tables import plain_table
    from probdice.errors import in_command

    parts: list[RenderableType] = [
        f"{len(agreement.names)} raters over {agreement.pixels:,} {pixels}",
        f"mean of all pairs: Dice {decimal(agreement.mean_dice)}, adjusted score "
        f"{decimal(agreement.mean_adjusted_score)}, explained {decimal(agreement.mean_explained)}, "
        f"score {decimal(agreement.mean_score)}",
    ]
    has_foreground = agreement.foreground_dice is not None
    if has_foreground:
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
    headings = [">foreground Dice"] if has_foreground else []
    rater_table = plain_table(
        "rater vs other raters", ">score", ">adjusted", ">explained", *headings
    )
    for rater in agreement.others:
        numbers = [rater.score, rater.adjusted_score, rater.explained]
        if has_foreground:
            numbers.append(rater.foreground_dice)
        rater_table.add_row(rater.name, *map(decimal, numbers))
    notes = [note_line(in_command(note.message)) for note in agreement.notes]
    return [*parts, rater_table, *region_table(agreement, pixels, all_regions=all_regions), *notes]
