"""How a command ends: its exit code, and one plain message where it could not do its work."""

import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from probdice.cli import INTERRUPTED, REFUSED
from probdice.cli.streams import is_plain, print_message
from probdice.errors import ProbdiceError, ProbdiceWarning

__all__ = ["INTERRUPTED", "REFUSED", "answering"]


@contextmanager
def answering(*, debug: bool = False) -> Iterator[None]:
    """Run the body of a command; what goes wrong becomes a message and an exit code."""
    with warnings.catch_warnings():
        # What a comparison warns of is among its notes, and those are shown.
        warnings.simplefilter("default" if debug else "ignore")
        warnings.simplefilter("ignore", ProbdiceWarning)
        warnings.showwarning = _show_warning  # restored with the filters
        try:
            yield
        except BrokenPipeError:  # whoever read the output has seen enough
            raise typer.Exit from None
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except (ProbdiceError, OSError, MemoryError) as error:
            _refuse(_message(error), debug)
        except (typer.Exit, typer.BadParameter):
            raise
        except Exception as error:
            _refuse(f"unexpected {type(error).__name__}: {error}; --debug shows where", debug)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: object = None,
    line: str | None = None,
) -> None:
    print_message(warnings.formatwarning(message, category, filename, lineno, line))


def _message(error: Exception) -> str:
    if isinstance(error, ProbdiceError):
        return error.in_command()
    if isinstance(error, MemoryError):
        return "not enough memory"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'the system refuses'}: {error.strerror}"
    return str(error) or type(error).__name__


def _refuse(message: str, debug: bool) -> NoReturn:
    if debug:
        print_message(traceback.format_exc())
    word = "error: "
    typer.echo(word if is_plain() else typer.style(word, fg="red", bold=True), err=True, nl=False)
    print_message(message)
    raise typer.Exit(REFUSED) from None
