"""A challenge of 1,000 cases and 4 methods with components and boundaries, killed and resumed.

    python -m benchmarks.challenge [--cases 1000] [--methods 4] [--kills 5] [--json challenge.json]

The first run is undisturbed. Its time and the time to read the two files of every comparison are
measured. The second run writes to another folder. It is killed several times, each time after a
random number of comparisons, and started again. At the end, all result files of both runs must be
equal, byte for byte. The lines of the journals are in the order of completion, so the journals only
need to contain the same cases.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter

from probdice import Geometry, read, write

SHAPE = (24, 24, 16)
SPACING = (1.0, 1.0, 2.5)
OPTIONS = (
    *("--match", "labels", "--background", "0", "--components", "all", "--boundaries"),
    *("--tolerance", "1", "--derived", "all=1,2", "--rank-by", "foreground_dice"),
    *("--rank-by", "components_f1", "--reports", "none", "--quiet"),
)
WAIT = 0.02  # seconds between two checks of the journal


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--methods", type=int, default=4)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    methods = [f"method{k}" for k in range(options.methods)]
    comparisons = options.cases * options.methods
    with tempfile.TemporaryDirectory(prefix="challenge-") as folder:
        root = Path(folder)
        make(root, options.cases, methods, options.seed)
        command = command_for(root, methods)
        begun = time.perf_counter()
        finish([*command, "-o", str(root / "whole")])
        seconds = time.perf_counter() - begun
        reading = reading_time(root, methods)
        kills = disturb([*command, "-o", str(root / "out")], root / "out", comparisons, options)
        differing = differences(root / "whole", root / "out")
    row = {
        "comparisons": comparisons,
        "kills": kills,
        "differing files": differing,
        "milliseconds per comparison": 1000 * seconds / comparisons,
        "milliseconds to read it": 1000 * reading / comparisons,
    }
    print(*(f"{name}: {value}" for name, value in row.items()), sep="\n")
    if options.json is not None:
        options.json.write_text(json.dumps(row, indent=2) + "\n", encoding="utf-8")
    sys.exit(1 if differing else 0)


def command_for(root: Path, methods: list[str]) -> list[str]:
    """Return the command without the output folder."""
    folders = [str(root / name) for name in ("truth", *methods)]
    return [sys.executable, "-m", "probdice", "evaluate", *folders, *OPTIONS]


def make(root: Path, cases: int, methods: list[str], seed: int) -> None:
    """Write label maps with lesions of two classes, for methods with increasing errors."""
    generator = np.random.default_rng(seed)
    geometry = Geometry(SHAPE, np.diag([*SPACING, 1.0]))
    for name in ("truth", *methods):
        (root / name).mkdir(parents=True)
    for case in range(cases):
        truth = gaussian_filter(generator.normal(size=SHAPE), 2)
        for k, name in enumerate(("truth", *methods)):
            noise = gaussian_filter(generator.normal(size=SHAPE), 2)
            values = truth + 0.2 * k * noise
            labels = np.digitize(values, [0.1, 0.16]).astype(np.uint8)
            write(root / name / f"case{case:04d}.nii.gz", labels, geometry)


def finish(command: list[str]) -> None:
    """Run a command to its end."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)


def reading_time(root: Path, methods: list[str]) -> float:
    """Return the time to read all values of both sides of every comparison in one process."""
    begun = time.perf_counter()
    for file in sorted((root / "truth").iterdir()):
        for method in methods:
            for path in (file, root / method / file.name):
                np.asarray(read(path).array[...]).max()
    return time.perf_counter() - begun


def disturb(command: list[str], out: Path, comparisons: int, options: argparse.Namespace) -> int:
    """Kill runs after random numbers of comparisons, finish the run, and count the kills."""
    chance = random.Random(options.seed)
    goals = sorted(chance.sample(range(1, comparisons), options.kills))
    kills = 0
    for goal in goals:
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while run.poll() is None and journal_lines(out) < goal:
            time.sleep(WAIT)
        if run.poll() is None:
            run.kill()
            kills += 1
        run.wait()
    finish(command)
    return kills


def journal_lines(out: Path) -> int:
    """Return the number of complete lines of the journal."""
    journal = out / "cases.jsonl"
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def differences(first: Path, second: Path) -> list[str]:
    """Return the names of result files that differ, and the journal if its cases differ."""
    names = {file.name for folder in (first, second) for file in folder.iterdir()}
    files = sorted(names - {".lock", "cases.jsonl"})
    differing = [name for name in files if contents(first / name) != contents(second / name)]
    journals = [cases_of(folder / "cases.jsonl") for folder in (first, second)]
    return differing + ["cases.jsonl"] * (journals[0] != journals[1])


def contents(file: Path) -> bytes | None:
    return file.read_bytes() if file.exists() else None


def cases_of(journal: Path) -> list[tuple[str, str]]:
    """Return the sorted cases and methods of a journal, with repetitions."""
    lines = map(json.loads, journal.read_text(encoding="utf-8").splitlines())
    return sorted((line["case"], line["method"]) for line in lines)


if __name__ == "__main__":
    main()
