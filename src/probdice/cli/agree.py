"""`probdice agree`: how several raters agree."""

from typing import TYPE_CHECKING

from probdice.cli.outcome import answering
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

MOST = 12  # raters whose matrix fits a terminal


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
    """Say how several raters of one image agree: every pair, and each with the others.

    What a rater reaches against the mean of the others is what a method may at best be expected to.
    """
    with answering(debug=debug):
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

            display.say("reading")
            panel = panel_of_files(files, mask=mask, workers=workers, options=options)
            display.say("comparing")
            agreement = agreement_of(panel)
            if report is not None:
                from probdice.raters.consensus_result import consensus_of
                from probdice.report.rater_pages import write_consensus

                display.say("page")
                write_consensus(consensus_of(panel, "mean", None), report, words="command")
                written.append(f"the page to {report}")
            if json is not None and json != "-":
                write_text(json, agreement.to_json() + "\n")
                written.append(f"everything as JSON to {json}")
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
    if len(names) <= MOST:
        # Names are too long to stand above columns.
        matrix = plain_table(">", "score", *(f">{k}" for k in range(1, len(names) + 1)))
        for number, i in enumerate(agreement.order, start=1):
            cells = ["–" if i == j else decimal(agreement.score[i, j]) for j in agreement.order]
            matrix.add_row(str(number), names[i], *cells)
        parts.append(matrix)
    others = plain_table("against the others", ">score", ">adjusted", ">explained")
    for one in agreement.others:
        others.add_row(
            one.name, decimal(one.score), decimal(one.adjusted_score), decimal(one.explained)
        )
    show(*parts, others, *(f"wrote {line}" for line in written))  # type: ignore[arg-type]
