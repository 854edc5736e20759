"""Compare the speed of the working tree with that of an earlier revision.

    python -m benchmarks.paired REVISION [--only soft_pairs …] [--rounds 3]

Both versions run the benchmarks alternately, each in a new process. Without --only, these are the
benchmarks of `benchmarks/speed.py`, except `likeliest`. `--only updates` runs the updates of
`benchmarks/training.py`. The ratio of a row is the shortest time of the working tree, divided by
the shortest time of the revision. Rows without a time, such as memory, are left out.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.speed import BENCHMARKS

ROOT = Path(__file__).parents[1]
UNUSABLE = ("likeliest",)  # imports modules that earlier revisions lack
TRAINING = ("updates",)  # benchmarks of training.py, which require the extra `torch`
IN_SECONDS = {"s": 1.0, "ms": 1e-3}


def main() -> None:
    """Print one line per row: its name, the time of both versions, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [work.__name__ for work in BENCHMARKS if work.__name__ not in UNUSABLE]
    parser.add_argument("revision")
    parser.add_argument(
        "--only", nargs="*", default=names, metavar="NAME", choices=[*names, *TRAINING]
    )
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        extract(options.revision, Path(folder))
        sources = Path(folder) / "src", ROOT / "src"
        shortest: tuple[dict[str, float], ...] = ({}, {})
        for _ in range(options.rounds):
            for source, best in zip(sources, shortest, strict=True):
                for work, seconds in measure(source, options.only, Path(folder)).items():
                    best[work] = min(seconds, best.get(work, seconds))
    print(f"| work | {options.revision} | working tree | ratio |", "|---|---|---|---|", sep="\n")
    before, after = shortest
    for work in (work for work in after if work in before):
        times = f"{before[work] * 1e3:.3g} ms | {after[work] * 1e3:.3g} ms"
        print(f"| {work} | {times} | {after[work] / before[work]:.2f} |")


def extract(revision: str, folder: Path) -> None:
    """Write the sources of a revision into a folder."""
    archive = subprocess.run(
        ["git", "archive", revision, "src"], cwd=ROOT, check=True, stdout=subprocess.PIPE
    )
    subprocess.run(["tar", "x", "-C", str(folder)], input=archive.stdout, check=True)


def measure(source: Path, names: list[str], folder: Path) -> dict[str, float]:
    """Run benchmarks with the given sources, and return the seconds of each row."""
    training = [name for name in names if name in TRAINING]
    passes = [name for name in names if name not in TRAINING]
    rows = []
    for module, chosen in (("speed", passes), ("training", training)):
        if chosen:
            rows += _rows(source, [f"benchmarks.{module}", "--only", *chosen], folder)
    return {
        row["work"]: row["seconds"] or row["value"] * IN_SECONDS[row["unit"]]
        for row in rows
        if row["seconds"] or row["unit"] in IN_SECONDS
    }


def _rows(source: Path, arguments: list[str], folder: Path) -> list[dict[str, Any]]:
    """Run a module of benchmarks with the given sources, and return its rows."""
    file = folder / "rows.json"
    command = [sys.executable, "-m", *arguments, "--json", str(file)]
    environment = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{ROOT}"}
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    rows: list[dict[str, Any]] = json.loads(file.read_text())
    return rows


if __name__ == "__main__":
    main()
