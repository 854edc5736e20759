"""All commands under one name."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from probdice.cli.agree import agree
from probdice.cli.compare import compare
from probdice.cli.consensus import consensus
from probdice.cli.demo import demo
from probdice.cli.evaluate import evaluate
from probdice.cli.info import info
from probdice.cli.paper import paper
from probdice.cli.rank import rank
from probdice.cli.show import show
from probdice.cli.summarise import summarise
from probdice.cli.warm_up import warm_up
from probdice.version import __version__

__all__ = ["COMMANDS", "app"]

# In the order of the help; the name of the function is that of the command.
COMMANDS: tuple[Callable[..., Any], ...] = (
    compare,
    consensus,
    agree,
    evaluate,
    summarise,
    show,
    info,
    demo,
    paper,
    rank,
    warm_up,
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
