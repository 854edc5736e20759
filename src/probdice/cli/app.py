"""The Typer application with all commands."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from probdice.cli.agree import agree
from probdice.cli.check import check
from probdice.cli.compare import compare
from probdice.cli.consensus import consensus
from probdice.cli.demo import demo
from probdice.cli.evaluate import evaluate
from probdice.cli.help import HELP_NAMES, HelpfulCommand, HelpfulGroup
from probdice.cli.info import info
from probdice.cli.paper import paper
from probdice.cli.rank import rank
from probdice.cli.show import show
from probdice.cli.summarise import summarise
from probdice.cli.warm_up import warm_up
from probdice.text.escaping import visible
from probdice.version import __version__

__all__ = ["COMMANDS", "EXAMPLES", "app"]

UsageError: Any = typer.BadParameter.__base__  # from Click, or from the copy of Click in Typer

# Commands in the order of the help. Each command has the name of its function.
COMMANDS: tuple[Callable[..., Any], ...] = (
    compare,
    consensus,
    agree,
    evaluate,
    summarise,
    show,
    check,
    info,
    demo,
    paper,
    rank,
    warm_up,
)

# Shown above the options in the help.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "compare": (
        "probdice compare truth.nii.gz mine.nii.gz",
        "probdice compare truth.nii.gz mine.nii.gz --merge both --report page.html",
        "probdice compare truth.npz:labels 'pve_*.nii.gz' --sums background",
        "probdice compare truth.png mine.png --match labels --json result.json",
    ),
    "consensus": (
        "probdice consensus anna.nii.gz ben.nii.gz --output both.nii.gz",
        "probdice consensus rater_*.nii.gz --method staple --report page.html",
    ),
    "agree": (
        "probdice agree anna.nii.gz ben.nii.gz cleo.nii.gz",
        "probdice agree rater_*.png --report page.html",
    ),
    "evaluate": (
        "probdice evaluate truth/ mine/ --output results",
        "probdice evaluate truth/ first=a/ second=b/ --output results --workers 4",
        "probdice evaluate --config challenge.toml --output results",
        "probdice evaluate truth/ --match labels --write-manifest challenge.json",
    ),
    "summarise": (
        "probdice summarise results",
        "probdice summarise results --measure lowest_dice --reports worst:10",
    ),
    "show": (
        "probdice show results case_07",
        "probdice show results case_07 --method second",
    ),
    "check": (
        "probdice check mine/ --manifest challenge.json",
        "probdice check mine/ --manifest challenge.json --json -",
    ),
    "info": (
        "probdice info mine.nii.gz",
        "probdice info predictions.h5",
        "probdice info 'pve_*.nii.gz' --sums background",
    ),
    "demo": ("probdice demo", "probdice demo --output somewhere"),
    "paper": (
        "probdice paper --output paper",
        "probdice paper --output paper --survey-sheet --people 12",
    ),
    "rank": (
        "probdice rank answers/ scores.csv --column D1",
        "probdice rank answers.csv scores.csv --plot study.png --json -",
    ),
    "warm_up": ("probdice warm-up",),
}


class _Group(HelpfulGroup):
    """A group of commands whose usage errors are printed with control codes escaped."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:  # Typer's no_args_is_help prints nothing
            typer.echo(ctx.get_help(), err=True)
            raise typer.Exit(2)
        with _plain_usage_errors():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        with _plain_usage_errors():
            return super().invoke(ctx)


@contextmanager
def _plain_usage_errors() -> Iterator[None]:
    """Escape control codes in usage errors, and reword the messages of Pydantic."""
    try:
        yield
    except UsageError as error:
        message = error.message.removeprefix("Value error, ")
        message = re.sub(
            "^Input should be (.*?)(?:, unable to parse .*)?$", r"expected \1", message
        )
        error.message = visible(message)
        raise


app = typer.Typer(
    name="probdice",
    cls=_Group,
    help="Compare segmentations, crisp or probabilistic, with any number of regions. The two "
    "sides need not use the same labels.",
    context_settings={"help_option_names": HELP_NAMES},
    pretty_exceptions_enable=False,
)
for command in COMMANDS:
    # Typer starts a new line only after an empty line.
    app.command(cls=HelpfulCommand, epilog="\n\n".join(["Examples:", *EXAMPLES[command.__name__]]))(
        command
    )


def _show_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"probdice {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", callback=_show_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Accept the options that precede the name of the command."""
