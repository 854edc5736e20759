"""Write to standard output and standard error, which may be closed or full."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import UnsupportedOperation

from probdice.text.escaping import visible

__all__ = [
    "discard_output",
    "is_plain",
    "open_closed_streams",
    "output_error",
    "print_message",
    "print_text",
    "printing",
    "write_output",
]


def open_closed_streams() -> None:
    """Reopen standard streams that were closed before the program started.

    Otherwise, the next file that is opened would get the descriptor of a closed stream, and printed
    text would be written to that file. Standard output is reopened read-only, so that writing to it
    fails and is reported. Messages to a closed standard error are lost.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # os.open returns the lowest free descriptor, which is this one
            os.open(os.devnull, os.O_RDWR if number == 2 else os.O_RDONLY)
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


def is_plain() -> bool:
    """Return whether NO_COLOR (https://no-color.org) or TERM=dumb requests text without colours."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def print_text(text: str) -> None:
    """Print text to standard output, with control codes escaped."""
    write_output(visible(text))


def print_message(text: str) -> None:
    """Print a line to standard error, with control codes escaped."""
    print(visible(text), file=sys.stderr, flush=True)


def write_output(text: str) -> None:
    """Write and flush text to standard output. Unlike Rich, raise an error on failure."""
    with printing():
        sys.stdout.write(text)
        sys.stdout.flush()


@contextmanager
def printing() -> Iterator[None]:
    """Turn any `OSError` except `BrokenPipeError` in the context into a `FormatError`."""
    from probdice.errors import FormatError

    try:
        yield
    except BrokenPipeError:
        discard_output()
        raise
    except OSError as error:
        discard_output()
        raise FormatError(output_error(error)) from error


def output_error(error: OSError) -> str:
    """Return the message for a failure to write to standard output."""
    reason = "it is closed" if error.errno == errno.EBADF else error.strerror or str(error)
    return f"cannot write to standard output: {reason}"


def discard_output() -> None:
    """Discard buffered output, which Python would otherwise try to write again at exit."""
    with suppress(OSError, UnsupportedOperation):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
