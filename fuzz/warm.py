"""Evaluate a small folder when this module is imported, so that forked processes start quickly."""

import os
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path

from fuzz.small_run import arguments, make
from probdice.cli import main
from probdice.evaluation import running

with tempfile.TemporaryDirectory() as name, open(os.devnull, "w") as nowhere:
    make(Path(name), contained=False)
    running.MIN_PARALLEL_BYTES = 2**40
    sys.argv = ["probdice", *arguments(Path(name), "out")]
    with redirect_stdout(nowhere), redirect_stderr(nowhere), suppress(SystemExit):
        main()
