"""Options that are declared in `probdice.options` or shared by several commands.

`with_options` adds the declared options to a command. `ReadOptions.of` checks the values of these
options. If `ReadOptions.of` raises an `InputError`, the command reports a usage error.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum, StrEnum
from functools import wraps
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

import typer

from probdice.cli.option_values import PARSERS
from probdice.data.value_checks import Sums
from probdice.method.matching import RULES
from probdice.method.sides import SIDES
from probdice.options import EvaluateOptions, ReadOptions
from probdice.options.declaration import PANELS, TWO_SIDES, Command, Declaration, declarations

if TYPE_CHECKING:
    from probdice.method.similarity import Similarity

__all__ = [
    "ADVANCED_SUFFIX",
    "AllOption",
    "DebugOption",
    "JsonOption",
    "MaskOption",
    "QuietOption",
    "ReportOption",
    "ResultsArgument",
    "WorkersOption",
    "argument",
    "check_options",
    "command_line",
    "enumeration",
    "flag",
    "option",
    "usage_errors",
    "with_options",
]

OptionsType = TypeVar("OptionsType", bound=ReadOptions)

ADVANCED_SUFFIX = " (advanced)"  # ends the title of a panel whose options only --help-all shows


def argument(metavar: str, help: str) -> Any:
    """Return the declaration of a command-line argument for Typer."""
    return typer.Argument(metavar=metavar, help=help)


def option(
    panel: str,
    metavar: str,
    help: str,
    *names: str,
    advanced: bool = False,
    minimum: int | None = None,
    completion: Callable[[], list[str]] | None = None,
) -> Any:
    """Return the declaration of an option for Typer.

    If no names are given, the option is named after the parameter of the function.
    """
    return typer.Option(
        *names,
        metavar=metavar,
        rich_help_panel=panel + ADVANCED_SUFFIX * advanced,
        help=help,
        min=minimum,
        autocompletion=completion,
    )


def flag(panel: str, help: str, *names: str, advanced: bool = False) -> Any:
    """Return the declaration of a flag (an option without a value) for Typer."""
    return option(panel, "", help, *names, advanced=advanced)


ResultsArgument = Annotated[str, argument("OUT", "Results folder written by evaluate.")]
MaskOption = Annotated[
    str | None, option("Comparison", "FILE", "Compare only voxels where this mask is not 0.")
]
WorkersOption = Annotated[
    int | None,
    option("Comparison", "N", "Number of threads; by default, the number of cores.", minimum=1),
]
ReportOption = Annotated[
    str | None, option("Output", "FILE", "Write a report (one HTML file).", "--report")
]
JsonOption = Annotated[
    str | None,
    option(
        "Output", "FILE", "Write the result as JSON. If FILE is -, print only the JSON.", "--json"
    ),
]
QuietOption = Annotated[bool, flag("Output", "Print only the score.", "--quiet", "-q")]
AllOption = Annotated[bool, flag("Output", "Print all groups, not only the worst 20.", "--all")]
DebugOption = Annotated[
    bool, flag("Output", "Print the traceback of an error.", "--debug", advanced=True)
]
FloorOption = Annotated[
    float | None,
    option(
        "Comparison",
        "F",
        "With --similarity aitchison, raise probabilities below F to F. Without a floor, the "
        "distance between 0 and any other probability is infinite.",
        advanced=True,
    ),
]
COMPLETIONS: dict[str, Callable[[], list[str]]] = {
    "match": lambda: list(RULES),
    "sums": lambda: list(get_args(Sums)),
}


def with_options(command: Command) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the declared options of a command to a function.

    The function receives the options given by the user as one argument, `user_options`.
    """
    declared_options = {
        name: declaration
        for name, declaration in declarations(EvaluateOptions).items()
        if command in declaration.form.commands
    }
    option_names = sorted(
        declared_options, key=lambda name: PANELS.index(declared_options[name].form.panel)
    )
    option_parameters = [_parameter(name, declared_options[name], command) for name in option_names]
    if "similarity" in declared_options:
        floor = Parameter("floor", Parameter.KEYWORD_ONLY, default=None, annotation=FloorOption)
        option_parameters.insert(option_names.index("similarity") + 1, floor)

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        parameters: list[Parameter] = []
        for parameter in signature(function, eval_str=True).parameters.values():
            keyword = parameter.replace(kind=Parameter.KEYWORD_ONLY)
            parameters += option_parameters if parameter.name == "user_options" else [keyword]

        @wraps(function)
        def run(**values: Any) -> None:
            options = {
                option_parameter.name: values.pop(option_parameter.name)
                for option_parameter in option_parameters
            }
            user_options = {
                name: value
                for name, value in options.items()
                if value is not None and value is not False and value != []
            }
            if command not in TWO_SIDES:
                _reject_sides(user_options, declared_options)
            function(**values, user_options=user_options)

        # Typer reads the options from these two attributes.
        run.__signature__ = signature(function).replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def _parameter(name: str, declaration: Declaration, command: str) -> Parameter:
    """Return a declared option as a parameter of a function that Typer turns into a command."""
    form = declaration.form
    annotation: Any = enumeration(name, form.choices) if form.choices else form.kind
    if form.repeated or form.by_side:
        annotation = list[annotation]
    typer_option = option(
        form.panel,
        form.metavar,
        declaration.help_for(command),
        f"--{name.replace('_', '-')}",
        advanced=form.advanced,
        completion=COMPLETIONS.get(name),
    )
    is_flag = form.kind is bool
    return Parameter(
        name,
        Parameter.KEYWORD_ONLY,
        default=False if is_flag else None,
        annotation=Annotated[annotation if is_flag else annotation | None, typer_option],
    )


def enumeration(name: str, choices: Sequence[str]) -> Any:
    """Return an enumeration of the choices of an option. Shell completion lists the choices."""
    members: Any = {choice: choice for choice in choices}
    return StrEnum(name, members)


def _reject_sides(
    user_options: Mapping[str, Any], declared_options: Mapping[str, Declaration]
) -> None:
    """Reject values for one side in a command that has no reference and no prediction."""
    for name, value in user_options.items():
        for word in (
            value if name in declared_options and declared_options[name].form.by_side else ()
        ):
            side, colon, _ = word.partition(":")
            if side in SIDES and colon:
                raise typer.BadParameter(
                    f"this command has neither a reference nor a prediction, found {word!r}; use "
                    f"{word.partition(':')[2]}",
                    param_hint=f"--{name}",
                )


def check_options(options: type[OptionsType], user_options: Mapping[str, Any]) -> OptionsType:
    """Convert and check the options given by the user.

    An invalid value raises a usage error. An unreadable --match file raises `FormatError`, like any
    other unreadable file.
    """
    user_options = {
        name: user_value.value if isinstance(user_value, Enum) else user_value
        for name, user_value in user_options.items()
    }
    floor = user_options.pop("floor", None)
    values = {
        name: PARSERS[name](value) if name in PARSERS else value
        for name, value in user_options.items()
    }
    if floor is not None:
        values["similarity"] = _with_floor(values.get("similarity", "absolute"), floor)
    with usage_errors():
        return options.of(**values)


@contextmanager
def usage_errors(option: str | None = None) -> Iterator[None]:
    """Turn an `InputError` into a usage error, which names `option` if it is given."""
    from probdice.errors import InputError

    try:
        yield
    except InputError as error:
        raise typer.BadParameter(error.in_command(), param_hint=option) from None


def _with_floor(similarity: str, floor: float) -> "Similarity":
    """Return the similarity that --similarity and --floor select."""
    from probdice.method.similarity import Aitchison

    if similarity != Aitchison.name:
        raise typer.BadParameter("requires --similarity aitchison", param_hint="--floor")
    with usage_errors("--floor"):
        return Aitchison(floor)


def command_line(context: typer.Context) -> str:
    """Return the command line with long option names, quoted for a shell."""
    import shlex

    words, flags = ["probdice", context.info_name or ""], []
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[parameter.name or ""]
        for item in value if isinstance(value, list | tuple) else (value,):
            text = str(item.value if isinstance(item, Enum) else item)
            if parameter.param_type_name == "argument":
                words.append(text)
            else:
                name = max(parameter.opts, key=len)
                flags += [name] if isinstance(item, bool) else [name, text]
    return shlex.join([*words, *flags])
