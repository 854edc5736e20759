"""Read the options of a command from a TOML file, and write options to a TOML file.

Keys are option names without leading dashes. The key `reference` sets the folder of the references,
and `methods` is a table with the folder of every method. Paths are relative to the folder of the
TOML file. Command-line options override the file.
"""

import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import typer

from probdice.cli.outputs import write_text
from probdice.method.sides import SIDES
from probdice.options import EvaluateOptions
from probdice.options.declaration import declarations

__all__ = ["load_configuration", "save_configuration"]

ARGUMENTS = {"reference": "reference", "predictions": "methods"}
PATHS = {
    *("reference", "methods", "output", "rater", "write-manifest"),
    *(name for name, one in declarations(EvaluateOptions).items() if one.form.path),
}
EXCLUDED = ("config", "save-config", "debug", "help")


def load_configuration(context: typer.Context, path: str | None) -> str | None:
    """Use the options in a TOML file as defaults for the command line, and return the path."""
    if path is None:
        return None
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise _config_error(path, f"cannot be read: {reason}") from None
    parameters = _parameters(context)
    if unknown_keys := [key for key in content if key not in parameters]:
        raise _config_error(
            path, f"unknown keys: {', '.join(unknown_keys)}. Known keys: {', '.join(parameters)}"
        )
    folder = Path(path).parent
    context.default_map = {
        parameters[key].name: _value(path, key, parameters[key], value, folder)
        for key, value in content.items()
    }
    return path


def save_configuration(context: typer.Context, path: str, methods: Mapping[str, str]) -> None:
    """Write the options from the command line and from --config to a TOML file."""
    import tomli_w

    folder = Path(path).parent
    content: dict[str, Any] = {}
    for key, parameter in _parameters(context).items():
        source = context.get_parameter_source(parameter.name)
        if key == "methods" or source is None or source.name not in ("COMMANDLINE", "DEFAULT_MAP"):
            continue
        value = context.params[parameter.name]
        values = [
            _with_path(item, lambda path: _relative(path, folder)) if _is_path(key, item) else item
            for item in (value if isinstance(value, list | tuple) else (value,))
        ]
        content[key] = values if isinstance(value, list | tuple) else values[0]
    content["methods"] = {name: _relative(directory, folder) for name, directory in methods.items()}
    write_text(path, tomli_w.dumps(content))


def _parameters(context: typer.Context) -> dict[str, Any]:
    """Return the parameters of the command by their keys in the TOML file."""
    parameters = {}
    for parameter in context.command.params:
        option = max(parameter.opts, key=len).lstrip("-")
        key = ARGUMENTS.get(parameter.name or "", option)
        if key not in EXCLUDED:
            parameters[key] = parameter
    return parameters


def _value(path: str, key: str, parameter: Any, value: Any, folder: Path) -> Any:
    """Check a value from the TOML file, and convert it to command-line form."""
    if key == "methods":
        if not isinstance(value, dict) or not all(isinstance(path, str) for path in value.values()):
            raise _config_error(
                path, f"methods: expected a table with one folder per method, found {value!r}"
            )
        return [f"{name}={_resolve(directory, folder)}" for name, directory in value.items()]
    if isinstance(value, dict) and getattr(parameter, "multiple", False):  # by side or by name
        sign = "=" if key in ("rater", "derived") else ":"
        value = [f"{name}{sign}{_joined(item)}" for name, item in value.items()]
    if getattr(parameter, "is_flag", False):
        if not isinstance(value, bool):
            raise _config_error(path, f"{key}: expected true or false, found {value!r}")
        return value
    values = value if isinstance(value, list) else [value]
    if not all(
        isinstance(item, str | int | float) and not isinstance(item, bool) for item in values
    ):
        raise _config_error(path, f"{key}: expected a string or a number, found {value!r}")
    values = [
        _with_path(str(item), lambda path: _resolve(path, folder)) if _is_path(key, item) else item
        for item in values
    ]
    if getattr(parameter, "multiple", False):
        return [str(item) for item in values]
    if isinstance(value, list):
        raise _config_error(path, f"{key}: expected one value, found {value!r}")
    return values[0]


def _is_path(key: str, value: Any) -> bool:
    if key == "subjects":
        return "{subject}" not in str(value)
    is_json = str(value).lower().endswith(".json")
    return key in PATHS or (key in ("match", "derived") and is_json)


def _joined(value: Any) -> Any:
    """Join a list, such as the labels of a derived region, into one string."""
    return ",".join(map(str, value)) if isinstance(value, list) else value


def _with_path(word: str, convert: Callable[[str], str]) -> str:
    """Apply `convert` to the path in a value such as file, reference:file or name=folder."""
    side, colon, path = word.partition(":")
    if colon and side in SIDES:
        return f"{side}:{convert(path)}"
    name, equals, path = word.partition("=")
    return f"{name}={convert(path)}" if equals else convert(word)


def _resolve(path: str, folder: Path) -> str:
    return os.path.normpath(folder / path)


def _relative(path: str, folder: Path) -> str:
    """Return a path relative to a folder, or the absolute path if it is on another drive."""
    try:
        return os.path.relpath(path, folder or ".").replace(os.sep, "/")
    except ValueError:  # on another drive
        return os.path.abspath(path)


def _config_error(path: str, reason: str) -> typer.BadParameter:
    return typer.BadParameter(f"{path}: {reason}", param_hint="--config")
