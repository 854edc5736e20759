"""Declare options: the default, the check, the form on the command line, and the help text."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, cast, get_args

__all__ = [
    "EITHER_SIDE",
    "PANELS",
    "TWO_SIDES",
    "Command",
    "Declaration",
    "Form",
    "Panel",
    "declarations",
    "flag",
    "option",
]

Command = Literal["compare", "evaluate", "agree", "consensus", "info", "check"]
Panel = Literal["Comparison", "Reading", "Metrics", "Ranking", "Output"]

PANELS: tuple[Panel, ...] = get_args(Panel)  # in the order of the help
TWO_SIDES = ("compare", "evaluate")  # commands with a reference and a prediction
EITHER_SIDE = "To set one side only, use reference:{0} or prediction:{0}."
_KEY = "declaration"  # in the metadata of a dataclass field


@dataclass(frozen=True)
class Form:
    """How an option appears on the command line.

    Attributes
    ----------
    panel : str
        Title of the group of options in the help.
    metavar : str
        Placeholder of the value in the help; empty for a flag.
    commands : tuple of str
        The commands that have the option.
    kind : type
        Type of the value on the command line.
    choices : tuple of str
        The allowed values; empty if any value is allowed.
    repeated : bool
        Whether the option can be repeated.
    by_side : str
        Help text on how to set one side only, in which `metavar` replaces "{0}"; empty if the
        option cannot be set for one side. An option with this text can be repeated.
    without_sides : str
        Help text for commands that have no reference and no prediction; empty if the help text is
        the same for all commands.
    path : bool
        Whether the value is a path. In a configuration file, paths are relative to the folder of
        that file.
    advanced : bool
        Whether only ``--help-all`` shows the option.
    """

    panel: Panel
    metavar: str = ""
    commands: tuple[Command, ...] = ("evaluate",)
    kind: type = str
    choices: tuple[str, ...] = ()
    repeated: bool = False
    by_side: str = ""
    without_sides: str = ""
    path: bool = False
    advanced: bool = False


@dataclass(frozen=True)
class Declaration:
    """The declaration of an option.

    Attributes
    ----------
    check : callable
        Converts a value given by the user to the internal form, or raises `InputError`.
    form : Form
        How the option appears on the command line.
    help : str
        Help text for the command line and the reference page.
    """

    check: Callable[[Any], Any]
    form: Form
    help: str

    def help_for(self, command: str) -> str:
        """Return the help text for one command."""
        if command not in TWO_SIDES:
            return self.form.without_sides or self.help
        return f"{self.help} {self.form.by_side.format(self.form.metavar)}".rstrip()


def option(default: Any, check: Callable[[Any], Any], form: Form, help: str) -> Any:
    """Declare an option as a field of a dataclass.

    If `form` has no choices, the choices of the check are used.
    """
    form = replace(form, choices=form.choices or getattr(check, "choices", ()))
    metadata = {_KEY: Declaration(check, form, help)}
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


def flag(panel: Panel, help: str, *commands: Command, advanced: bool = False) -> Any:
    """Declare a flag, which is off by default, for `evaluate` and the given commands."""
    form = Form(panel, "", ("evaluate", *commands), bool, advanced=advanced)
    return option(False, bool, form, help)


@cache
def declarations(options: Hashable) -> Mapping[str, Declaration]:
    """Return the declarations of all options of a dataclass, by name."""
    return MappingProxyType(
        {entry.name: entry.metadata[_KEY] for entry in fields(cast(Any, options))}
    )
