"""Options of the commands: those of `probdice.options`, and those that only commands have.

This module only parses text. `ReadOptions.of` checks the values, and an `InputError` that it raises
becomes a usage error.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum, StrEnum
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from probdice.method.sides import SIDES, Side
from probdice.options import EvaluateOptions, ReadOptions
from probdice.options.declaration import PANELS, Command, Declaration, declarations

if TYPE_CHECKING:
    from probdice.method.region_labels import Label
    from probdice.method.similarity import Similarity
    from probdice.options import Match

__all__ = [
    "AllOption",
    "CsvOption",
    "DebugOption",
    "JsonOption",
    "MapOption",
    "MaskOption",
    "PredictionArgument",
    "QuietOption",
    "ReferenceArgument",
    "RelabelledOption",
    "ReportOption",
    "SchedulerOption",
    "WorkersOption",
    "checked",
    "command_line",
    "file_of_match",
    "usage_errors",
    "with_options",
]

T = TypeVar("T")
Chosen = TypeVar("Chosen", bound=ReadOptions)

TWO_SIDES = ("compare", "evaluate")  # commands with a reference and a prediction
MATCHING_RULES = ("overlap", "paper", "labels")
VALUES: dict[str, type] = {"text": str, "integer": int, "number": float, "flag": bool}

ReferenceArgument = Annotated[
    str,
    typer.Argument(
        metavar="REFERENCE",
        show_default=False,
        help="Reference segmentation (ground truth): a file; an array in a file (file.h5:/path or "
        "file.npz:key); or one file per region (a.nii.gz,b.nii.gz, 'pve_*.nii.gz' or "
        "csf=pve_0.nii.gz,grey=pve_1.nii.gz).",
    ),
]
PredictionArgument = Annotated[
    str,
    typer.Argument(
        metavar="PREDICTION",
        show_default=False,
        help="Predicted segmentation, in any of the forms of REFERENCE.",
    ),
]
MaskOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel="Comparison",
        help="Compare only voxels where this file is not 0.",
    ),
]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        rich_help_panel="Comparison",
        help="Number of threads; by default, the number of cores.",
    ),
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        metavar="SCHEDULER",
        rich_help_panel="Comparison",
        help="Run on Dask: threads, processes, or the address of a scheduler (tcp://host:8786). "
        "Needs a Zarr store on at least one side.",
    ),
]
MapOption = Annotated[
    str | None,
    typer.Option(
        "--map",
        metavar="FILE",
        rich_help_panel="Output",
        help="Write an image with the similarity at every voxel.",
    ),
]
RelabelledOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel="Output",
        help="Write the prediction with the labels of the reference.",
    ),
]
ReportOption = Annotated[
    str | None,
    typer.Option(
        "--report",
        metavar="FILE",
        rich_help_panel="Output",
        help="Write a report (one HTML file).",
    ),
]
ImageOption = Annotated[
    list[str] | None,
    typer.Option(
        "--image",
        metavar="FILE",
        rich_help_panel="Output",
        help="Background image of the report, such as the scan. Can be repeated.",
    ),
]
SurfaceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--surface",
        metavar="FILE",
        rich_help_panel="Output",
        help="Surface to show values at vertices on in the report, such as lh.inflated or a "
        ".surf.gii file. Repeat for the other hemisphere.",
    ),
]
IndicesOption = Annotated[
    bool,
    typer.Option(
        "--indices",
        metavar="",
        rich_help_panel="Output",
        help="Also print other indices: Rand, variation of information, covering, mean IoU and, "
        "with --background, detected instances.",
    ),
]
CsvOption = Annotated[
    str | None,
    typer.Option(
        "--csv",
        metavar="FILE",
        rich_help_panel="Output",
        help="Write a CSV table with one row per group: labels, Dice, Jaccard, volumes.",
    ),
]
ComponentsOption = Annotated[
    bool,
    typer.Option(
        "--components",
        metavar="",
        rich_help_panel="Comparison",
        help="Compare the connected components of both label maps as separate regions. Needs "
        "--background and the extra 'instances'.",
    ),
]
JsonOption = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="FILE",
        rich_help_panel="Output",
        help="Write the result as JSON. With -, print only the JSON.",
    ),
]
QuietOption = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", metavar="", rich_help_panel="Output", help="Print only the score."
    ),
]
AllOption = Annotated[
    bool,
    typer.Option(
        "--all",
        metavar="",
        rich_help_panel="Output",
        help="Print all groups, not only the worst 20.",
    ),
]
DebugOption = Annotated[
    bool,
    typer.Option(
        "--debug", metavar="", rich_help_panel="Output", help="Print the traceback of an error."
    ),
]
FloorOption = Annotated[
    float | None,
    typer.Option(
        metavar="F",
        rich_help_panel="Comparison",
        help="With aitchison, raise probabilities below F to F. Without a floor, the distance "
        "between 0 and any other probability is infinite.",
    ),
]


def with_options(command: Command) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the declared options of a command to a function.

    The function gets the options that the user gave as one argument, `given`.
    """
    declared = {
        name: declaration
        for name, declaration in declarations(EvaluateOptions).items()
        if command in declaration.commands
    }
    ordered = sorted(declared, key=lambda name: PANELS.index(declared[name].panel))
    added = [_parameter(name, declared[name], command) for name in ordered]
    if "similarity" in declared:
        added.insert(
            ordered.index("similarity") + 1,
            Parameter("floor", Parameter.KEYWORD_ONLY, default=None, annotation=FloorOption),
        )
    names = [parameter.name for parameter in added]

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        parameters: list[Parameter] = []
        for parameter in signature(function, eval_str=True).parameters.values():
            keyword = parameter.replace(kind=Parameter.KEYWORD_ONLY)
            parameters += added if parameter.name == "given" else [keyword]

        @wraps(function)
        def run(**values: Any) -> None:
            given = {name: values.pop(name) for name in names}
            given = {name: value for name, value in given.items() if _is_given(value)}
            if command not in TWO_SIDES:
                _reject_sides(given, declared)
            function(**values, given=given)

        # Typer reads the options from these two attributes.
        run.__signature__ = signature(function).replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def _reject_sides(given: Mapping[str, Any], declared: Mapping[str, Declaration]) -> None:
    """Reject values for one side in a command that has no reference and no prediction."""
    for name, value in given.items():
        for word in value if name in declared and declared[name].by_side else ():
            if word.partition(":")[0] in SIDES:
                raise typer.BadParameter(
                    f"this command has no reference and prediction, found {word!r}; write "
                    f"{word.partition(':')[2]}",
                    param_hint=f"--{name}",
                )


def _is_given(value: Any) -> bool:
    """Whether the user gave an option; a flag and a list have defaults of their own."""
    return value is not None and value is not False and value != []


def _parameter(name: str, declaration: Declaration, command: str) -> Parameter:
    """A declared option as a parameter of a function that Typer turns into a command."""
    annotation: Any = VALUES[declaration.kind]
    if declaration.choices:
        annotation = _enumeration(name, declaration.choices)
    if declaration.repeated:
        annotation = list[annotation]
    shown = typer.Option(
        f"--{name.replace('_', '-')}",
        metavar=declaration.metavar,
        rich_help_panel=declaration.panel,
        help=declaration.help_for(command),
        show_default=False,
        autocompletion=COMPLETIONS.get(name),
    )
    if declaration.kind == "flag":
        return Parameter(
            name, Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, shown]
        )
    return Parameter(
        name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[annotation | None, shown]
    )


def _enumeration(name: str, choices: Sequence[str]) -> Any:
    """The type of an option with a few values, which the help and shell completion list."""
    members: Any = {choice: choice for choice in choices}
    return StrEnum(name, members)


def checked(options: type[Chosen], given: Mapping[str, Any]) -> Chosen:
    """Convert and check the options that the user gave.

    An invalid value raises a usage error. A --match file that cannot be read raises `FormatError`,
    like any other file.
    """
    given = {name: one.value if isinstance(one, Enum) else one for name, one in given.items()}
    floor = given.pop("floor", None)
    values = {name: PARSERS.get(name, _unchanged)(value) for name, value in given.items()}
    if floor is not None or "similarity" in values:
        values["similarity"] = _similarity(values.get("similarity", "absolute"), floor)
    with usage_errors():
        return options.of(**values)


def _unchanged(value: Any) -> Any:
    return value


@contextmanager
def usage_errors(option: str | None = None) -> Iterator[None]:
    """Turn an `InputError` into a usage error of this option."""
    from probdice.errors import InputError

    try:
        yield
    except InputError as error:
        raise typer.BadParameter(error.in_command(), param_hint=option) from None


def _similarity(name: str, floor: float | None) -> "str | Similarity":
    """Convert --similarity and --floor."""
    from probdice.method.similarity import Aitchison

    if floor is None:
        return name
    if name != Aitchison.name:
        raise typer.BadParameter("needs --similarity aitchison", param_hint="--floor")
    with usage_errors("--floor"):
        return Aitchison(floor)


def match_of(word: str) -> "Match":
    """Convert --match: a rule, pairs of labels, or an earlier comparison."""
    if word in MATCHING_RULES:
        return word
    file = file_of_match(word)
    if file is not None:
        return _read_comparison(file)
    pairs: dict[Label, Label] = {}
    for pair in word.split(","):
        prediction, equals, reference = (text.strip() for text in pair.partition("="))
        if not (prediction and equals and reference):
            raise typer.BadParameter(
                "expected overlap, paper, labels, pairs of labels such as 0=csf,1=grey "
                "(prediction=reference), or a .json file that --json wrote for an earlier "
                f"comparison, found {word!r}",
                param_hint="--match",
            )
        if _label(prediction) in pairs:
            raise typer.BadParameter(
                f"prediction label {prediction} occurs twice", param_hint="--match"
            )
        pairs[_label(prediction)] = _label(reference)
    return pairs


def _background(words: Sequence[str]) -> "Label | dict[Side, Label] | None":
    """Convert --background: a label, a name, or none, for both sides or by side."""
    return None if list(words) == ["none"] else _per_side(words, None, _label)


def _derived(words: Sequence[str]) -> "dict[str, tuple[Label, ...]]":
    """Convert --derived: unions of labels, or the path of nnU-Net's dataset.json."""
    from probdice.files.name_tables import read_unions

    unions: dict[str, tuple[Label, ...]] = {}
    for word in words:
        name, equals, members = word.partition("=")
        if not equals and word.lower().endswith(".json"):
            unions |= read_unions(word)
            continue
        labels = [text.strip() for text in members.split(",") if text.strip()]
        if not name.strip() or not labels:
            raise typer.BadParameter(
                f"expected NAME=LABEL,LABEL,… or a .json file, found {word!r}",
                param_hint="--derived",
            )
        unions[name.strip()] = tuple(_label(text) for text in labels)
    return unions


def file_of_match(word: str) -> Path | None:
    """Return the file that --match names, or None for a rule or pairs of labels."""
    if not word.lower().endswith(".json") or ("=" in word and not os.path.exists(word)):
        return None
    return Path(word)


def names_in(word: str) -> Sequence[str]:
    """Split names at commas."""
    return [name.strip() for name in word.split(",") if name.strip()]


def _scale(words: Sequence[str]) -> "float | dict[Side, float] | None":
    """Convert --scale.

    A scale for both sides leaves label maps and values up to 1 unchanged. A scale for one side
    always applies.
    """
    if len({":" in word for word in words}) > 1:
        raise typer.BadParameter(
            "give one number for both sides, or name the side of each number", param_hint="--scale"
        )
    return _per_side(words, "--scale", _number)


def _names(words: Sequence[str]) -> "str | dict[Side, str] | None":
    """Convert --names: the path of a table, which may contain a colon, for both sides or one."""
    return _per_side(words, None, str)


def _per_side(
    words: Sequence[str], option: str | None, parse: Callable[[str], T]
) -> "T | dict[Side, T] | None":
    """Return one value for both sides, or a dictionary of values by side.

    A prefix that names no side is an error of this option, or part of the value without an option.
    """
    both: T | None = None
    sides: dict[Side, T] = {}
    for word in words:
        side, colon, value = word.partition(":")
        if side in SIDES and colon:
            sides[side] = parse(value)
        elif not colon or option is None:
            both = parse(word)
        else:
            raise typer.BadParameter(
                f"expected reference: or prediction: before the value, found {word!r}",
                param_hint=option,
            )
    if both is None or not sides:
        return sides or both
    return {side: sides.get(side, both) for side in SIDES}


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise typer.BadParameter(
            f"expected a positive number, such as 100 or 255, found {word!r}", param_hint="--scale"
        ) from None


def _labels(word: str) -> "list[Label]":
    return [_label(text.strip()) for text in word.split(",")]


def _label(word: str) -> "Label":
    return int(word) if re.fullmatch("-?[0-9]{1,18}", word) else word


def _read_comparison(file: Path) -> "Match":
    """Read a comparison that --json wrote."""
    from probdice.comparison.result import Comparison
    from probdice.errors import FormatError, InputError

    try:
        return Comparison.from_json(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FormatError(f"{file}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise FormatError(f"{file}: cannot be read: {reason}") from error
    except InputError as error:
        raise error.prefixed(f"{file}: not a JSON file written by --json: ") from error


def command_line(context: typer.Context) -> str:
    """Return the command line with long option names, quoted for a shell."""
    import shlex

    words, flags = ["probdice", context.info_name or ""], []
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[parameter.name or ""]
        for one in value if isinstance(value, list | tuple) else (value,):
            text = str(one.value if isinstance(one, Enum) else one)
            if parameter.param_type_name == "argument":
                words.append(text)
            else:
                flag = max(parameter.opts, key=len)
                flags += [flag] if isinstance(one, bool) else [flag, text]
    return shlex.join([*words, *flags])


PARSERS: dict[str, Callable[[Any], Any]] = {  # of options whose text is not yet the value
    "background": _background,
    "components": lambda word: True if word == "all" else _labels(word),
    "derived": _derived,
    "match": match_of,
    "names": _names,
    "nested": lambda words: _per_side(words, "--nested", _labels),
    "priority": lambda words: _per_side(words, "--priority", names_in),
    "scale": _scale,
    "strata": lambda word: word.split(","),
    "sums": lambda words: _per_side(words, "--sums", str),
}
COMPLETIONS: dict[str, Callable[[], list[str]]] = {
    "match": lambda: list(MATCHING_RULES),
    "sums": lambda: ["error", "normalise", "background"],
}
