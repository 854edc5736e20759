"""`probdice check`: check a submission against the manifest of a challenge."""

import os
from json import dumps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from probdice.cli.outcome import ERROR, reporting_errors
from probdice.cli.outputs import check_outputs, write_json
from probdice.cli.parameters import (
    DebugOption,
    JsonOption,
    argument,
    check_options,
    option,
    usage_errors,
    with_options,
)
from probdice.cli.progress import progress
from probdice.options import ReadOptions

if TYPE_CHECKING:
    from rich.console import RenderableType

    from probdice.evaluation import SubmissionCheck

__all__ = ["check"]


@with_options("check")
def check(
    submission: Annotated[
        str,
        argument("SUBMISSION_DIR", "Folder of predictions, with one file or subfolder per case."),
    ],
    user_options: dict[str, Any],
    manifest: Annotated[
        str,
        option(
            "Reading", "FILE", "Manifest of the challenge, written by evaluate --write-manifest."
        ),
    ],
    json: JsonOption = None,
    debug: DebugOption = False,
) -> None:
    """Check a submission before it is evaluated: names, cases, grids, labels and values.

    This command requires only the manifest, not the references. The exit code is 0 if the
    submission can be evaluated, 1 if it has errors or cannot be checked, and 2 if the command is
    invalid.
    """
    if not os.path.isdir(submission):
        reason = "is a file, expected a folder" if os.path.exists(submission) else "no such folder"
        raise typer.BadParameter(f"{submission}: {reason}", param_hint="SUBMISSION_DIR")
    with reporting_errors(debug=debug):
        check_outputs({"--json": json}, inputs={"--manifest": manifest})
        from probdice.evaluation import Manifest, check_submission

        with usage_errors("--manifest"):
            manifest_content = Manifest.read(manifest)
        options = check_options(ReadOptions, user_options)
        with progress(visible=json != "-") as bar:

            def report(index: int, total: int) -> None:
                bar.begin(f"case {index + 1} of {total}")

            result = check_submission(
                submission, manifest_content, max_bytes=options.max_bytes, progress=report
            )
        if json is not None:
            write_json(json, dumps(result.to_dict(), indent=2, ensure_ascii=False))
        if json != "-":
            from probdice.cli.display import show

            show(*_lines(result, submission))
    if not result.valid:
        raise typer.Exit(ERROR)


def _lines(result: "SubmissionCheck", submission: str) -> "list[RenderableType]":
    """Return one line per problem (errors first, at most `MAX_ROWS` lines) and a summary line."""
    from probdice.cli.display import MAX_ROWS
    from probdice.text.escaping import printable
    from probdice.text.formatting import quantity

    sorted_problems = sorted(result.problems, key=lambda problem: problem.severity != "error")
    lines: list[RenderableType] = [
        printable(str(problem)) for problem in sorted_problems[:MAX_ROWS]
    ]
    if len(sorted_problems) > MAX_ROWS:
        lines.append(
            f"… and {len(sorted_problems) - MAX_ROWS} more problems; --json writes all problems"
        )
    errors = sum(problem.severity == "error" for problem in sorted_problems)
    counts = [
        f"{result.checked} of {result.expected} cases checked",
        quantity(errors, "error"),
        quantity(len(sorted_problems) - errors, "warning"),
    ]
    verdict = "can be evaluated" if result.valid else "cannot be evaluated"
    lines.append(printable(f"{submission} {verdict}: {', '.join(counts)}"))
    return lines
