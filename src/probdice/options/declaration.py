"""How an option is declared: its default, its check, and its form on the command line."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, cast, get_args

__all__ = ["PANELS", "Command", "Declaration", "Panel", "declarations", "option"]

Command = Literal["compare", "evaluate", "agree", "consensus", "info", "check"]
Panel = Literal["Comparison", "Reading", "Metrics", "Ranking", "Output"]

PANELS: tuple[Panel, ...] = get_args(Panel)  # in the order of the help
_KEY = "declaration"  # in the metadata of a dataclass field


@dataclass(frozen=True)
class Declaration:
    """An option of `compare`, `evaluate` and the commands.

    Attributes
    ----------
    check : callable
        Converts a value that a user gave to the internal form, or raises `InputError`.
    help : str
        Help text of the command line and the reference page.
    commands : tuple of str
        The commands that have the option.
    panel : str
        Title of the group of options in the help.
    metavar : str
        Placeholder of the value in the help; empty for a flag.
    kind : {"text", "integer", "number", "flag"}
        Type of the value on the command line.
    choices : tuple of str
        All values, if there are few.
    repeated : bool
        Whether the option can be repeated.
    by_side : str
        How to give a value for one side, for commands that compare a reference with a prediction.
    path : bool
        Whether the value is a path, which a configuration file gives relative to itself.
    """

    check: Callable[[Any], Any]
    help: str
    commands: tuple[Command, ...]
    panel: Panel
    metavar: str = ""
    kind: Literal["text", "integer", "number", "flag"] = "text"
    choices: tuple[str, ...] = ()
    repeated: bool = False
    by_side: str = ""
    path: bool = False

    def help_for(self, command: str) -> str:
        """The help text for one command."""
        sides = self.by_side if command in ("compare", "evaluate") else ""
        return f"{self.help} {sides}".rstrip()


def option(default: Any, declaration: Declaration) -> Any:
    """A field of a dataclass of options."""
    if callable(default):
        return field(default_factory=default, metadata={_KEY: declaration})
    return field(default=default, metadata={_KEY: declaration})


@cache
def declarations(options: Hashable) -> Mapping[str, Declaration]:
    """The declarations of all fields of a dataclass of options, by name."""
    return MappingProxyType({one.name: one.metadata[_KEY] for one in fields(cast(Any, options))})
