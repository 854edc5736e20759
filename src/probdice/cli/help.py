"""Print the help of a command: usage, examples, and common or all options."""

from typing import Any

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from typer.core import TyperArgument, TyperCommand, TyperGroup

from probdice.cli.parameters import ADVANCED_SUFFIX
from probdice.text.formatting import quantity

__all__ = ["HELP_NAMES", "HelpfulCommand", "HelpfulGroup"]

HELP_ALL_OPTION = "--help-all"
HELP_NAMES = ["-h", "--help", HELP_ALL_OPTION]

MAX_HELP_WIDTH = 100  # characters
EXAMPLES = "Examples:"  # first line of an epilogue with one example per paragraph
SHOW_ALL = "probdice.show_all_options"  # key in the metadata of a context

COMPLETION = ("install_completion", "show_completion")  # options that Typer adds


class HelpfulCommand(TyperCommand):
    """A command whose help contains examples, and the common options or all options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _note_request(ctx, args)
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [
            "[OPTIONS]",
            *(_placeholder(parameter) for parameter in self.params if _is_argument(parameter)),
        ]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(_help_text(self, ctx))


class HelpfulGroup(TyperGroup):
    """A group whose help lists the commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _note_request(ctx, args)
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(_help_text(self, ctx))


def _note_request(ctx: Any, args: list[str]) -> None:
    """Store whether the user gave --help-all, because Click treats --help-all like --help."""
    options = args[: args.index("--")] if "--" in args else args
    if HELP_ALL_OPTION in options:
        ctx.meta[SHOW_ALL] = True


def _help_text(command: TyperCommand | TyperGroup, ctx: Any) -> str:
    console = Console(highlight=False, markup=False)
    console.width = min(console.width, MAX_HELP_WIDTH)
    with console.capture() as capture:
        for part in _parts(command, ctx):
            console.print(part)
    lines = [line.rstrip() for line in capture.get().rstrip().split("\n")]
    return "\n".join(lines) + "\n"


def _parts(command: TyperCommand | TyperGroup, ctx: Any) -> list[RenderableType]:
    parts: list[RenderableType] = [command.get_usage(ctx), ""]
    paragraphs = (command.help or "").split("\n\n")
    parts += [f"{' '.join(paragraph.split())}\n" for paragraph in paragraphs]
    examples = [line for line in (command.epilog or "").split("\n\n") if line and line != EXAMPLES]
    if examples:
        parts += _section("Examples", [(example, "") for example in examples])
    if isinstance(command, TyperGroup):
        commands = {name: command.get_command(ctx, name) for name in command.list_commands(ctx)}
        entries = [
            (name, subcommand.get_short_help_str(200))
            for name, subcommand in commands.items()
            if subcommand
        ]
        parts += _section("Commands", entries)
    params: list[Any] = [
        parameter
        for parameter in command.get_params(ctx)
        if not getattr(parameter, "hidden", False)
    ]
    arguments = [
        (_placeholder(parameter), parameter.help or "")
        for parameter in params
        if _is_argument(parameter)
    ]
    parts += _section("Arguments", arguments)
    show_all = SHOW_ALL in ctx.meta
    options = [parameter for parameter in params if not _is_argument(parameter)]
    printed_options = [
        parameter for parameter in options if show_all or not _is_advanced(parameter)
    ]
    for title in dict.fromkeys(_panel(parameter) for parameter in printed_options):
        entries = [
            entry
            for parameter in printed_options
            if _panel(parameter) == title
            for entry in _entries(parameter)
        ]
        parts += _section(title, entries)
    hidden_count = len(options) - len(printed_options)
    if hidden_count:
        parts.append(f"{HELP_ALL_OPTION} shows {quantity(hidden_count, 'more option')}.")
    return parts


def _section(title: str, entries: list[tuple[str, str]]) -> list[RenderableType]:
    """Return a heading and a table of names and explanations; nothing if there are no entries."""
    if not entries:
        return []
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    for name, explanation in entries:
        table.add_row(Text(name), Text(explanation))
    return [Text(title, style="bold"), Padding(table, (0, 0, 1, 2))]


def _panel(option: Any) -> str:
    """Return the title of the panel that lists an option."""
    return (getattr(option, "rich_help_panel", None) or "Options").removesuffix(ADVANCED_SUFFIX)


def _is_advanced(option: Any) -> bool:
    """Return whether only --help-all shows an option."""
    panel = getattr(option, "rich_help_panel", None) or ""
    return option.name in COMPLETION or panel.endswith(ADVANCED_SUFFIX)


def _is_argument(parameter: Any) -> bool:
    return isinstance(parameter, TyperArgument)


def _placeholder(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    name += "…" if argument.nargs == -1 and not name.endswith("…") else ""
    return name if argument.required else f"[{name}]"


def _entries(option: Any) -> list[tuple[str, str]]:
    """Return the names of an option with the placeholder of the value, and the help text."""
    if HELP_ALL_OPTION in option.opts:
        return [("-h, --help", "Show the common options."), (HELP_ALL_OPTION, "Show all options.")]
    names = ", ".join(sorted(option.opts, key=len))
    value = "" if option.is_flag else (option.metavar or "VALUE")
    return [(f"{names} {value}".rstrip(), option.help or "")]
