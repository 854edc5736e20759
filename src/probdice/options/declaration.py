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
EITHER_SIDE = "For one side: reference:{0} or prediction:{0}."
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
        Help text on values for one side, in which "{0}" is replaced by `metavar`. If it is not
        empty, the option can be repeated.
    path : bool
        Whether the value is a path. In a configuration file, paths are relative to that file.
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
    path: bool = False
    advanced: bool = False


@dataclass(frozen=True)
class Declaration:
    """An option of `compare`, `evaluate` and the commands.

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
        sides = self.form.by_side if command in TWO_SIDES else ""
        return f"{self.help} {sides.format(self.form.metavar)}".rstrip()


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
    """Declare an option without a value, off by default, for `evaluate` and other commands."""
    form = Form(panel, "", ("evaluate", *commands), bool, advanced=advanced)
    return option(False, bool, form, help)


@cache
def declarations(options: Hashable) -> Mapping[str, Declaration]:
    """Return the declarations of all fields of a dataclass of options, by name."""
    return MappingProxyType(
        {entry.name: entry.metadata[_KEY] for entry in fields(cast(Any, options))}
    )
