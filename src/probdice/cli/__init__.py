"""The command line: arguments → the rooms of the library → an exit code.

Each command is a function in a module of its own, listed in `app.COMMANDS`. Such a module imports
Typer and little else at its top, and what it works with where it works, so that `--help` and
completion are quick; its body runs inside `outcome.answering`, which turns errors into exit codes.
"""

import gc
import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

from probdice.cli.streams import (
    open_closed_streams,
    print_message,
    silence_output,
    unwritable,
)

__all__ = ["INTERRUPTED", "REFUSED", "main"]

# Exit codes; 0 is success, and 2 is Typer's for wrong usage.
REFUSED = 1  # the input cannot be compared, or the result not be written
INTERRUPTED = 130


def main() -> None:
    """Run the command line."""
    # While modules are imported there is nothing to tidy up, and some of them would turn a
    # KeyboardInterrupt into an error of their own.
    handler = signal.getsignal(signal.SIGINT)
    interruptible = handler is signal.default_int_handler  # not in the background of a script
    if interruptible:
        signal.signal(signal.SIGINT, _leave)
    open_closed_streams()
    for stream in (sys.stdout, sys.stderr):  # a terminal without “↔” shows another sign instead
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    # To look for cycles among all that is imported takes a fifth of a second, and as long again
    # on the way out.
    gc.set_threshold(100_000)
    from probdice.cli.app import app

    try:
        if interruptible:
            signal.signal(signal.SIGINT, handler)
        app(prog_name="probdice")
    except KeyboardInterrupt:
        _leave()
    except SystemExit as end:
        if end.code == INTERRUPTED:
            _leave()
        raise
    except OSError as error:  # of a command's help: commands answer for their own errors
        silence_output()
        with suppress(OSError):
            print_message(f"error: {unwritable(error)}")
        sys.exit(REFUSED)
    finally:
        if interruptible:
            signal.signal(signal.SIGINT, _leave)
        gc.freeze()


def _leave(*_: object) -> NoReturn:
    """End at once: a thread that unpacks a file would hold up an ordinary exit."""
    os._exit(INTERRUPTED)
