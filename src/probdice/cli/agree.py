"""`probdice agree`: inter-rater agreement."""

from typing import TYPE_CHECKING

from probdice.cli.outcome import reporting_errors
from probdice.cli.outputs import check_outputs, write_text
from probdice.cli.parameters import (
    DebugOption,
    FloorOption,
    IgnoreGeometryOption,
    JsonOption,
    MaskOption,
    MaxBytesOption,
    QuietOption,
    ReportOption,
    SimilarityName,
    SimilarityOption,
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
    from probdice.raters import Agreement

__all__ = ["agree"]

MAX_MATRIX = 12  # raters; a larger matrix does not fit a terminal


def agree(
    files: FilesArgument,
    similarity: SimilarityOption = SimilarityName.absolute,
    floor: FloorOption = None,
    match: RaterMatchOption = RaterMatchName.overlap,
    mask: MaskOption = None,
    workers: WorkersOption = None,
    sums: RaterSumsOption = SumsName.error,
    geometry_tolerance: ToleranceOption = None,
    ignore_geometry: IgnoreGeometryOption = False,
    max_bytes: MaxBytesOption = None,
    report: ReportOption = None,
    json: JsonOption = None,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Measure inter-rater agreement on one image: every pair of raters, and each with the others.

    The score of a rater against the mean of the others is the best score to expect from a method.
    """
    with reporting_errors(debug=debug):
        options = options_of(
            similarity=similarity,
            floor=floor,
            match=match.value,
            sums=[sums.value],
            ignore_geometry=ignore_geometry,
            geometry_tolerance=geometry_tolerance,
            max_bytes=max_bytes,
        )
        inputs = {f"FILES ({file})": file for file in files} | {"--mask": mask}
        check_outputs({"--report": report, "--json": json}, inputs=inputs)
        written = []
        with progress(shown=not quiet) as display:
            from probdice.raters.agreements import agreement_of

            display.begin("reading")
            panel = panel_of_files(files, mask=mask, workers=workers, options=options)
            display.begin("comparing")
            agreement = agreement_of(panel)
            if report is not None:
                from probdice.raters.consensus_result import consensus_of
                from probdice.report.rater_pages import write_consensus

                display.begin("writing the report")
                write_consensus(consensus_of(panel, "mean", None), report, words="command")
                written.append(f"{report}: report")
            if json is not None and json != "-":
                write_text(json, agreement.to_json() + "\n")
                written.append(f"{json}: all numbers")
        if json == "-":
            print_text(agreement.to_json() + "\n")
        elif quiet:
            print_text(f"{agreement.mean_score!r}\n")
        else:
            _show(agreement, written)


def _show(agreement: "Agreement", written: list[str]) -> None:
    from probdice.cli.display import show
    from probdice.cli.terminal_tables import plain_table
    from probdice.text.formatting import decimal

    parts: list[object] = [
        f"{len(agreement.names)} raters over {agreement.pixels:,} pixels",
        f"mean of all pairs: score {decimal(agreement.mean_score)}, adjusted "
        f"{decimal(agreement.mean_adjusted_score)}, explained {decimal(agreement.mean_explained)}",
    ]
    names = agreement.names
    if len(names) <= MAX_MATRIX:
        # Columns are numbered because names are too long for headings.
        matrix = plain_table(">", "score", *(f">{k}" for k in range(1, len(names) + 1)))
        for number, i in enumerate(agreement.order, start=1):
            cells = ["–" if i == j else decimal(agreement.score[i, j]) for j in agreement.order]
            matrix.add_row(str(number), names[i], *cells)
        parts.append(matrix)
    others = plain_table("rater vs the others", ">score", ">adjusted", ">explained")
    for rater in agreement.others:
        others.add_row(
            rater.name,
            decimal(rater.score),
            decimal(rater.adjusted_score),
            decimal(rater.explained),
        )
    show(*parts, others, *(f"wrote {line}" for line in written))  # type: ignore[arg-type]
