"""`probdice show`: one case of a finished run."""

from typing import Annotated

import typer

from probdice.cli.options import DebugOption
from probdice.cli.outcome import answering, shown

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
        from probdice.errors import InputError
        from probdice.evaluation import Evaluation

        result = Evaluation.load(out)
        records = [r for r in result.records if r.case == case and method in (None, r.method)]
        if not records:
            result.comparison(case, method or next(iter(result.methods)))
            raise InputError(f"{out}: no case {case!r}")
        for record in records:
            if record.comparison is None:
                shown(f"{case}: {record.method}\nfailed: {record.error}\n")
            else:
                comparison = result.comparison(case, record.method)
                show_comparison(comparison, f"{case}: {record.method}", (), ())
