"""Memory, open files and threads over 10,000 comparisons and an evaluation of 10,000 cases.

    python -m benchmarks.long_runs [--comparisons 10000] [--cases 10000] [--json long_runs.json]

One process compares label maps and probabilities from arrays and files, and computes maps,
boundaries, components and JSON. The child process reads some of the files. Then the same process
evaluates a folder. Memory, open files and threads after a tenth of the work are compared with those
at the end. The memory limit of the evaluation includes the stored results of every case.
"""

import argparse
import json
import os
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.io import savemat

from probdice import compare, evaluate, write

SHAPE = (24, 20)
GROWTH = 8 << 20  # bytes by which the memory of a process may grow
PER_CASE = 20_000  # bytes of stored results per case of an evaluation


@dataclass(frozen=True)
class Usage:
    """Memory, open files and threads of the process (Linux)."""

    memory: int  # bytes
    files: int
    threads: int

    @classmethod
    def now(cls) -> "Usage":
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        files, threads = (len(os.listdir(f"/proc/self/{name}")) for name in ("fd", "task"))
        return cls(pages * os.sysconf("SC_PAGE_SIZE"), files, threads)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--comparisons", type=int, default=10_000)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    report = {}
    passed = True
    with tempfile.TemporaryDirectory(prefix="long-") as folder:
        for name, run, count in (
            ("comparisons", compared, options.comparisons),
            ("cases of an evaluation", evaluated, options.cases),
        ):
            early, late, limit = run(Path(folder) / name, count)
            grown = late.memory - early.memory
            passed &= grown <= limit and (early.files, early.threads) == (late.files, late.threads)
            print(
                f"{count} {name}: memory {early.memory / 2**20:.1f} MB after a tenth, "
                f"{late.memory / 2**20:.1f} MB at the end ({grown / 2**20:+.1f} MB, limit "
                f"{limit / 2**20:.1f}); open files {early.files} and {late.files}; threads "
                f"{early.threads} and {late.threads}",
                flush=True,
            )
            report[name] = {"count": count, "early": vars(early), "late": vars(late)}
    if options.json is not None:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    sys.exit(0 if passed else 1)


def compared(folder: Path, count: int) -> tuple[Usage, Usage, int]:
    """Compare arrays and files repeatedly."""
    folder.mkdir()
    random = np.random.default_rng(0)
    labels = [random.integers(0, 4, SHAPE).astype(np.uint8) for _ in range(2)]
    shares = [random.dirichlet(np.ones(3), SHAPE).transpose(2, 0, 1) for _ in range(2)]
    names = [[str(folder / f"{k}{suffix}") for k in "ab"] for suffix in (".nii.gz", ".png", ".mat")]
    for k in range(2):
        write(names[0][k], labels[k])
        write(names[1][k], labels[k])
        savemat(names[2][k], {"labels": labels[k]})
    pairs = [labels, shares, [labels[0], shares[0]], *names]
    early = late = Usage.now()
    for number in range(count):
        result = compare(*pairs[number % len(pairs)], merge="both" if number % 4 == 0 else "none")
        result.to_json()
        if number % 5 == 0:
            result.map()
        if number % 7 == 0:
            result.boundaries(tolerances=[1])
        if number % 11 == 0 and pairs[number % len(pairs)] is labels:
            result.component_scores()
        if number == count // 10:
            early = Usage.now()
    late = Usage.now()
    return early, late, GROWTH


def evaluated(folder: Path, count: int) -> tuple[Usage, Usage, int]:
    """Evaluate a folder of small label maps in this process."""
    random = np.random.default_rng(1)
    for name in ("truth", "method"):
        (folder / name).mkdir(parents=True)
        for k in range(count):
            labels = random.integers(0, 3, (8, 8), dtype=np.uint8)
            np.save(folder / name / f"case{k:05d}", labels)
    seen: list[Usage] = []
    done = 0

    def progress(_: object) -> None:
        nonlocal done
        done += 1
        if done in (count // 10, count):
            seen.append(Usage.now())

    evaluate(
        folder / "truth",
        folder / "method",
        match="labels",
        background=0,
        boundaries=True,
        out=folder / "out",
        workers=1,
        progress=progress,
    )
    early, late = seen
    return early, late, GROWTH + PER_CASE * count


if __name__ == "__main__":
    main()
