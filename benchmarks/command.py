"""Time of `probdice compare`, relative to SimpleITK reading the same two files.

Both run alternately in new processes, including start-up:

    python benchmarks/command.py [--rounds 5] [--json command.json]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nibabel
import numpy as np

SHAPE, REGIONS = (160, 160, 160), 6
LIMITS = {".nii.gz": "at most 1.1 × SimpleITK", ".nii": "at most 1.5 s"}
READ = "import SimpleITK, sys; [SimpleITK.ReadImage(path) for path in sys.argv[1:]]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [_row(Path(folder), suffix, options.rounds) for suffix in LIMITS]
    print(f"{SHAPE} × {REGIONS} float32, seconds (median of {options.rounds}, least)")
    print(f"{'':8} {'probdice compare':>18} {'SimpleITK reads':>18} {'ratio':>6}  goal")
    for row in rows:
        ours, theirs = (f"{row[who]:.2f} ({row[f'{who}_least']:.2f})" for who in ("ours", "theirs"))
        print(f"{row['suffix']:8} {ours:>18} {theirs:>18} {row['ratio']:6.2f}  {row['goal']}")
    if options.json is not None:
        options.json.write_text(json.dumps({"rows": rows}, indent=2) + "\n", encoding="utf-8")


def _row(folder: Path, suffix: str, rounds: int) -> dict[str, object]:
    # Separate folders, because ITK reads x.nii instead of x.nii.gz in the same folder.
    own = folder / suffix.strip(".")
    own.mkdir()
    paths = [str(own / f"{name}{suffix}") for name in ("reference", "prediction")]
    for seed, path in enumerate(paths):
        _make(path, seed)
    commands = {
        "ours": [str(Path(sys.executable).with_name("probdice")), "compare", *paths],
        "theirs": [sys.executable, "-c", READ, *paths],
    }
    times: dict[str, list[float]] = {who: [] for who in commands}
    for turn in range(rounds + 1):  # the first round fills the caches and does not count
        for who, command in commands.items():
            seconds = _seconds(command, folder)
            if turn:
                times[who].append(seconds)
    ratios = [mine / other for mine, other in zip(*times.values(), strict=True)]
    row: dict[str, object] = {"suffix": suffix, "goal": LIMITS[suffix]}
    for who, seconds in times.items():
        row |= {who: statistics.median(seconds), f"{who}_least": min(seconds)}
    return row | {"ratio": statistics.median(ratios)}


def _make(path: str, seed: int) -> None:
    """Smooth regions with noisy probabilities, like the output of a network."""
    rng = np.random.default_rng(seed)
    axes = np.ogrid[tuple(slice(-1, 1, n * 1j) for n in SHAPE)]
    radius = np.sqrt(sum(axis**2 for axis in axes)).astype(np.float32)
    values = np.empty((*SHAPE, REGIONS), np.float32)
    for k in range(REGIONS):
        noise = rng.standard_normal(SHAPE, np.float32)
        values[..., k] = np.exp(-60 * (radius - k / 3) ** 2 + 0.3 * noise)
    values /= values.sum(axis=-1, keepdims=True)
    nibabel.save(nibabel.Nifti1Image(values, np.diag([1.0, 1.0, 1.0, 1.0])), path)


def _seconds(command: list[str], folder: Path) -> float:
    # Installed packages have bytecode; a checkout may not.
    environment = {key: value for key, value in os.environ.items() if "BYTECODE" not in key}
    environment["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
