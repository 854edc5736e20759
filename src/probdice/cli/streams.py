"""Standard output and standard error, which may be closed, full, or read by nobody."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import UnsupportedOperation

from probdice.text.escaping import visible

__all__ = [
    "is_plain",
    "open_closed_streams",
    "print_message",
    "print_text",
    "printing",
    "silence_output",
    "unwritable",
    "write_output",
]


def open_closed_streams() -> None:
    """Put something in the place of standard streams that were closed before we started.

    Otherwise the next file that is opened gets their number, and what a library prints goes into
    it. Output that cannot be written is to be noticed, so its stand-in is open for reading only;
    messages on standard error are lost.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # the lowest free number is given next, and that is this one
            os.open(os.devnull, os.O_RDWR if number == 2 else os.O_RDONLY)
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


def is_plain() -> bool:
    """Whether the terminal is to get text alone: https://no-color.org, and TERM=dumb."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def print_text(text: str) -> None:
    """Print a text to standard output, without the control codes that it contains."""
    write_output(visible(text))


def print_message(text: str) -> None:
    """Print a line to standard error, without the control codes that it contains."""
    print(visible(text), file=sys.stderr, flush=True)


def write_output(text: str) -> None:
    """Write to standard output as it is and at once; unlike Rich this raises what fails."""
    with printing():
        sys.stdout.write(text)
        sys.stdout.flush()


@contextmanager
def printing() -> Iterator[None]:
    """Do nothing but print: what keeps the text from being written becomes a FormatError.

    A reader that has left is BrokenPipeError as before.
    """
    from probdice.errors import FormatError

    try:
        yield
    except BrokenPipeError:
        silence_output()
        raise
    except OSError as error:
        silence_output()
        raise FormatError(unwritable(error)) from error


def unwritable(error: OSError) -> str:
    """The message for standard output that takes no text."""
    reason = "it is closed" if error.errno == errno.EBADF else error.strerror or str(error)
    return f"standard output cannot be written to: {reason}"


def silence_output() -> None:
    """Let what is still waiting to be printed go nowhere, or Python would try it again at exit."""
    with suppress(OSError, UnsupportedOperation):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
