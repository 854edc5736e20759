"""`probdice show`: one case of a finished run."""

from typing import Annotated

import typer

from probdice.cli.outcome import answering
from probdice.cli.parameters import DebugOption
from probdice.cli.streams import print_text

__all__ = ["show"]


def show(
    out: Annotated[
        str,
        typer.Argument(metavar="OUT", show_default=False, help="The folder of the results."),
    ],
    case: Annotated[
        str, typer.Argument(metavar="CASE", show_default=False, help="The name of the case.")
    ],
    method: Annotated[
        str | None,
        typer.Option(metavar="NAME", show_default=False, help="Only this method; else all."),
    ] = None,
    debug: DebugOption = False,
) -> None:
    """Print one case of an evaluation, as compare would."""
    with answering(debug=debug):
        from probdice.cli.display import show_comparison
        from probdice.errors import in_command
        from probdice.evaluation import Evaluation
        from probdice.evaluation.folders import as_name

        result = Evaluation.load(out)
        case, method = as_name(case), None if method is None else as_name(method)
        records = [r for r in result.records if r.case == case and method in (None, r.method)]
        if not records:
            result.comparison(case, method or next(iter(result.methods)))  # which says why
        for record in records:
            title = f"{case}: {record.method}"
            if record.failure is not None:
                print_text(f"{title}\nfailed: {in_command(record.failure.message)}\n")
            elif record.comparison is not None:
                show_comparison(record.comparison, title)
