"""The command line.

Each command is a function in its own module, and `app.COMMANDS` lists all commands. At module
level, only Typer and a few light modules are imported. All other imports are inside functions, so
that `--help` and completion are fast. The body of a command runs inside `outcome.reporting_errors`,
which turns errors into messages and exit codes.
"""

import gc
import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

from probdice.cli.streams import (
    discard_output,
    open_closed_streams,
    output_error,
    print_message,
)

__all__ = ["ERROR", "INTERRUPTED", "main"]

# Exit codes. 0 means success; Typer uses 2 for usage errors.
ERROR = 1  # such as an invalid file, a failed case or an output that cannot be written
INTERRUPTED = 130


def main() -> None:
    """Run the command line."""
    # Exit at once if the user interrupts an import: no cleanup is required, and some modules turn a
    # KeyboardInterrupt during their import into another error.
    handler = signal.getsignal(signal.SIGINT)
    interruptible = handler is signal.default_int_handler  # False in a background job of a script
    if interruptible:
        signal.signal(signal.SIGINT, _exit_at_once)
    open_closed_streams()
    for stream in (sys.stdout, sys.stderr):  # print "?" if the encoding lacks a character
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    # Garbage collection of imported modules takes 0.2 s after the import and again at exit.
    gc.set_threshold(100_000)
    from probdice.cli.app import app

    try:
        if interruptible:
            signal.signal(signal.SIGINT, handler)
        app(prog_name="probdice")
    except KeyboardInterrupt:
        _exit_at_once()
    except SystemExit as end:
        if end.code == INTERRUPTED:
            _exit_at_once()
        raise
    except OSError as error:  # raised while printing help; commands handle their own errors
        discard_output()
        with suppress(OSError):
            print_message(f"error: {output_error(error)}")
        sys.exit(ERROR)
    finally:
        if interruptible:
            signal.signal(signal.SIGINT, _exit_at_once)
        gc.freeze()


def _exit_at_once(*_: object) -> NoReturn:
    """Exit without waiting for threads that decompress files."""
    os._exit(INTERRUPTED)
