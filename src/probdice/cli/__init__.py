"""The command line: arguments → the rooms of the library → an exit code.

Each command is a function in a module of its own, listed in `COMMANDS`. Such a module imports
Typer and little else at its top, and what it works with where it works, so that `--help` and
completion are quick; its body runs inside `outcome.answering`, which turns errors into exit codes.

Exit codes: 0 done, 1 the input cannot be compared, 2 wrong usage, 130 interrupted.
"""

import gc
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from probdice import __version__
from probdice.cli.compare import compare
from probdice.cli.demo import demo
from probdice.cli.evaluate import evaluate
from probdice.cli.info import info
from probdice.cli.outcome import INTERRUPTED
from probdice.cli.paper import paper
from probdice.cli.rank import rank
from probdice.cli.show import show
from probdice.cli.summarise import summarise

__all__ = ["COMMANDS", "app", "main"]

# In the order of the help; the name of the function is that of the command.
COMMANDS: tuple[Callable[..., Any], ...] = (
    compare,
    evaluate,
    summarise,
    show,
    info,
    demo,
    paper,
    rank,
)

app = typer.Typer(
    name="probdice",
    help="Compare two segmentations of one image, crisp or probabilistic, with any number of "
    "regions and no agreed labels.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in COMMANDS:
    app.command()(command)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"probdice {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Options that come before a command."""


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):  # a terminal without “↔” shows another sign instead
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    # To look for cycles among all that is imported takes a fifth of a second, and as long again
    # on the way out.
    gc.set_threshold(100_000)
    try:
        app(prog_name="probdice")
    except (SystemExit, KeyboardInterrupt) as end:
        # A thread that unpacks a file would hold up an ordinary exit.
        if isinstance(end, KeyboardInterrupt) or end.code == INTERRUPTED:
            os._exit(INTERRUPTED)
        raise
    finally:
        gc.freeze()
