"""Run `evaluate` on a small folder in a forked process."""

import os
import resource
import sys
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from probdice.cli import main
from probdice.evaluation import running

CASES = 5
METHODS = ("a", "b")


def make(folder: Path) -> None:
    """Write cases as label maps and probabilities, compressed and memory-mapped."""
    generator = np.random.default_rng(0)
    for name in ("truth", *METHODS):
        (folder / name).mkdir(parents=True)
        for k in range(CASES):
            p = generator.dirichlet([1, 2, 3], size=(20, 20)).astype(np.float32)
            if name == "truth" and k % 2:
                np.save(folder / name / f"case{k}", p.argmax(-1).astype(np.uint8))
            else:
                np.save(folder / name / f"case{k}", np.moveaxis(p, -1, 0))


def arguments(folder: Path, out: str) -> list[str]:
    """Arguments of the command, including a page, so that more files are written."""
    names = [str(folder / name) for name in ("truth", *METHODS)]
    return [
        "evaluate",
        *names,
        "--output",
        str(folder / out),
        "--reports",
        "worst:1",
        "--workers",
        "2",
    ]


def evaluate(folder: Path, out: str, several: bool, limit: int | None, output: Connection) -> None:
    """Run the command in a forked process; its output goes to a pipe.

    With `several`, small images are also compared by worker processes. The limit applies to the
    size of every file.
    """
    for stream in (1, 2):
        os.dup2(output.fileno(), stream)
    output.close()
    sys.stdout, sys.stderr = (os.fdopen(k, "w", encoding="utf-8", closefd=False) for k in (1, 2))
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    running.TINY = 0 if several else 2**40
    sys.argv = ["probdice", *arguments(folder, out)]
    main()
