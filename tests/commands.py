"""Run the command line in this process, which is faster than a process per command."""

import subprocess
from contextlib import chdir, nullcontext
from pathlib import Path

from typer.testing import CliRunner

from probdice.cli.app import app

__all__ = ["probdice"]


def probdice(*words: str | Path, folder: Path | None = None) -> "subprocess.CompletedProcess[str]":
    """Run a command, in a folder if given; raise the exception if the command raises one."""
    with chdir(folder) if folder else nullcontext():
        done = CliRunner().invoke(app, [str(word) for word in words], prog_name="probdice")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)
