"""Turn an error of a command into a message and an exit code."""

import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from probdice.cli import ERROR, INTERRUPTED
from probdice.cli.streams import is_plain, print_message
from probdice.errors import EnvironmentWarning, ProbdiceError, ProbdiceWarning

__all__ = ["ERROR", "INTERRUPTED", "reporting_errors"]


@contextmanager
def reporting_errors(*, debug: bool = False) -> Iterator[None]:
    """Run the body of a command. If the body raises an error, print one message and exit."""
    with warnings.catch_warnings():
        # Warnings about results are not shown, because they are also printed as notes.
        warnings.simplefilter("default" if debug else "ignore")
        warnings.simplefilter("ignore", ProbdiceWarning)
        warnings.simplefilter("default", EnvironmentWarning)
        warnings.showwarning = _show_warning  # catch_warnings restores it
        try:
            yield
        except BrokenPipeError:  # the reader of the output closed the pipe
            raise typer.Exit from None
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except (ProbdiceError, OSError, MemoryError) as error:
            _fail(_message(error), debug)
        except (typer.Exit, typer.BadParameter):
            raise
        except Exception as error:
            _fail(
                f"unexpected {type(error).__name__}: {error}. Use --debug to print the traceback.",
                debug,
            )


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: object = None,
    line: str | None = None,
) -> None:
    if issubclass(category, EnvironmentWarning):
        print_message(f"warning: {message}")
    else:
        print_message(warnings.formatwarning(message, category, filename, lineno, line))


def _message(error: Exception) -> str:
    if isinstance(error, ProbdiceError):
        return error.in_command()
    if isinstance(error, MemoryError):
        return "not enough memory"
    if isinstance(error, FileExistsError):  # raised by mkdir
        return f"{error.filename}: is a file, expected a folder"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'system error'}: {error.strerror}"
    return str(error) or type(error).__name__


def _fail(message: str, debug: bool) -> NoReturn:
    if debug:
        print_message(traceback.format_exc())
    prefix = "error: "
    typer.echo(
        prefix if is_plain() else typer.style(prefix, fg="red", bold=True), err=True, nl=False
    )
    print_message(message)
    raise typer.Exit(ERROR) from None
