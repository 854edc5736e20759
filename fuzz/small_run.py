"""Run `evaluate` on a small folder in a forked process."""

import os
import resource
import sys
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
from scipy.io import savemat

from probdice.cli import main
from probdice.evaluation import running

MARK = "PROBDICE_FUZZ_KILLS"
CASES = 3
METHODS = ("a", "b")
RATERS = ("first", "second")


def make(folder: Path, *, contained: bool) -> None:
    """Write label maps. With `contained`, one case has a format that the child process reads."""
    generator = np.random.default_rng(0)
    for name in ("truth", *METHODS, *RATERS):
        (folder / name).mkdir(parents=True)
        for k in range(CASES):
            labels = generator.choice(3, p=[0.2, 0.3, 0.5], size=(12, 12)).astype(np.uint8)
            if contained and k == 0:
                savemat(folder / name / f"case{k}.mat", {"labels": labels})
            else:
                np.save(folder / name / f"case{k}", labels)


def arguments(folder: Path, out: str) -> list[str]:
    """Return the arguments of a command with raters, components, boundaries and pages."""
    folders = [str(folder / name) for name in ("truth", *METHODS)]
    raters = [f"--rater={name}={folder / name}" for name in RATERS]
    options = "--match labels --background 0 --components all --boundaries --tolerance 1"
    options += " --reports worst:1 --workers 2"
    return ["evaluate", *folders, *raters, *options.split(), "--output", str(folder / out)]


def evaluate(folder: Path, out: str, several: bool, limit: int | None, output: Connection) -> None:
    """Run the command in a forked process, and send its output to a pipe.

    With `several`, small images are also compared by worker processes. The limit applies to the
    size of every file. The environment variable marks the processes that the run starts.
    """
    os.environ[MARK] = str(folder)
    for stream in (1, 2):
        os.dup2(output.fileno(), stream)
    output.close()
    sys.stdout, sys.stderr = (os.fdopen(k, "w", encoding="utf-8", closefd=False) for k in (1, 2))
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    running.MIN_PARALLEL_BYTES = 0 if several else 2**40
    sys.argv = ["probdice", *arguments(folder, out)]
    main()
