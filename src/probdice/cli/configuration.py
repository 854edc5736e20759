"""A command from a file: everything its command line has, as TOML, and back.

Keys are the options without their dashes in front; `reference` is the folder of the reference, and
`methods` a table with the folder of every method. Paths are seen from the folder of the file. What
is said on the command line goes before what stands in the file.
"""

import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import typer

from probdice.cli.outputs import write_text

__all__ = ["load_configuration", "save_configuration"]

ARGUMENTS = {"reference": "reference", "predictions": "methods"}
PATHS = (
    *("reference", "methods", "output", "mask", "image"),
    *("names", "reference-names", "prediction-names"),
)
LEFT_OUT = ("config", "save-config", "debug", "help")


def load_configuration(context: typer.Context, path: str | None) -> str | None:
    """Take what the command line does not say from a file."""
    if path is None:
        return None
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise _refused(path, f"cannot be read: {reason}") from None
    parameters = _parameters(context)
    if unknown := [key for key in content if key not in parameters]:
        raise _refused(path, f"has {_listed(unknown)}, expected {_listed(parameters)}")
    folder = Path(path).parent
    context.default_map = {
        parameters[key].name: _value(path, key, parameters[key], value, folder)
        for key, value in content.items()
    }
    return path


def save_configuration(context: typer.Context, path: str, methods: Mapping[str, str]) -> None:
    """Write what was said, on the command line or in a file, to a file."""
    import tomli_w

    folder = Path(path).parent
    content: dict[str, Any] = {}
    for key, parameter in _parameters(context).items():
        source = context.get_parameter_source(parameter.name)
        if key == "methods" or source is None or source.name not in ("COMMANDLINE", "DEFAULT_MAP"):
            continue
        value = context.params[parameter.name]
        if _is_path(key, value):
            value = _seen(value, folder)
        content[key] = list(value) if isinstance(value, tuple) else value
    content["methods"] = {name: _seen(directory, folder) for name, directory in methods.items()}
    write_text(path, tomli_w.dumps(content))


def _parameters(context: typer.Context) -> dict[str, Any]:
    """What the command line has, by the keys of a file."""
    parameters = {}
    for parameter in context.command.params:
        option = max(parameter.opts, key=len).lstrip("-")
        key = ARGUMENTS.get(parameter.name or "", option)
        if key not in LEFT_OUT:
            parameters[key] = parameter
    return parameters


def _value(path: str, key: str, parameter: Any, value: Any, folder: Path) -> Any:
    """A value of the file as the command line would give it."""
    if key == "methods":
        if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
            raise _refused(path, "expected a table of folders, [methods], with one per method")
        return [f"{name}={_from(directory, folder)}" for name, directory in value.items()]
    if key == "pattern" and isinstance(value, dict):
        return [f"{which}:{text}" for which, text in value.items()]
    if getattr(parameter, "is_flag", False):
        if not isinstance(value, bool):
            raise _refused(path, f"{key}: expected true or false, found {value!r}")
        return value
    several = value if isinstance(value, list) else [value]
    if not all(isinstance(one, str | int | float) and not isinstance(one, bool) for one in several):
        raise _refused(path, f"{key}: expected a text or a number, found {value!r}")
    if getattr(parameter, "multiple", False):
        return [str(one) for one in several]
    if isinstance(value, list):
        raise _refused(path, f"{key}: expected one value, found {value!r}")
    return _from(str(value), folder) if _is_path(key, value) else value


def _is_path(key: str, value: Any) -> bool:
    return key in PATHS or (key == "match" and str(value).lower().endswith(".json"))


def _from(path: str, folder: Path) -> str:
    return os.path.normpath(folder / path)


def _seen(path: str, folder: Path) -> str:
    """A path as seen from a folder, where there is a way."""
    try:
        return os.path.relpath(path, folder or ".").replace(os.sep, "/")
    except ValueError:  # on another drive
        return os.path.abspath(path)


def _listed(keys: Iterable[str]) -> str:
    return ", ".join(keys)


def _refused(path: str, reason: str) -> typer.BadParameter:
    return typer.BadParameter(f"{path}: {reason}", param_hint="--config")
