"""`probdice show`: print one case of an evaluation."""

from typing import Annotated

from probdice.cli.outcome import reporting_errors
from probdice.cli.parameters import AllOption, DebugOption, ResultsArgument, argument, option
from probdice.cli.streams import print_text

__all__ = ["show"]


def show(
    out: ResultsArgument,
    case: Annotated[str, argument("CASE", "Name of the case.")],
    method: Annotated[
        str | None, option("Options", "NAME", "Print only this method; by default, all methods.")
    ] = None,
    all_: AllOption = False,
    debug: DebugOption = False,
) -> None:
    """Print the comparisons of one case of an evaluation, in the same format as compare."""
    with reporting_errors(debug=debug):
        from probdice.cli.display import show_comparison
        from probdice.errors import in_command
        from probdice.evaluation import Evaluation
        from probdice.evaluation.folders import as_name

        result = Evaluation.load(out)
        case, method = as_name(case), None if method is None else as_name(method)
        records = [r for r in result.records if r.case == case and method in (None, r.method)]
        if not records:
            result.comparison(
                case, method or next(iter(result.methods))
            )  # raises an error that explains why there is no record
        for record in records:
            title = f"{case}: {record.method}"
            if record.failure is not None:
                print_text(f"{title}\nfailed: {in_command(record.failure.message)}\n")
            elif record.comparison is not None:
                show_comparison(record.comparison, title, all_groups=all_)
