"""Time of `probdice compare`, relative to SimpleITK reading the same two files.

    python -m benchmarks.command [--into PAGE]

Both programs run alternately in new processes, and their times include start-up. The ratio for
.nii.gz files and the time for .nii files are medians of all rounds except the first.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import nibabel
import numpy as np

from benchmarks.table import Row, run

SHAPE, REGIONS = (160, 160, 160), 6
ROUNDS = 7
READ = "import SimpleITK, sys; [SimpleITK.ReadImage(path) for path in sys.argv[1:]]"


def command() -> Iterator[Row]:
    """Compare two images of 160³ × 6 probabilities, compressed and uncompressed."""
    work = "probdice compare, two {} files, 160³ × 6, float32"
    with tempfile.TemporaryDirectory() as folder:
        own, other = _seconds_of(Path(folder), ".nii.gz")
        ratio = statistics.median(a / b for a, b in zip(own, other, strict=True))
        title, seconds = work.format(".nii.gz"), statistics.median(own)
        yield Row(title, ratio, "× SimpleITK reading them", "at most 1.1 ×", seconds)
        own, _ = _seconds_of(Path(folder), ".nii")
        yield Row(work.format(".nii"), statistics.median(own), "s", "at most 1.5 s")


def _seconds_of(folder: Path, suffix: str) -> tuple[list[float], list[float]]:
    """Return the times of `probdice compare` and of SimpleITK in every round."""
    # The folders are separate, because ITK reads x.nii instead of x.nii.gz in the same folder.
    own = folder / suffix.strip(".")
    own.mkdir()
    paths = [str(own / f"{name}{suffix}") for name in ("reference", "prediction")]
    for seed, path in enumerate(paths):
        make(path, seed)
    commands = (
        [str(Path(sys.executable).with_name("probdice")), "compare", *paths],
        [sys.executable, "-c", READ, *paths],
    )
    rounds = [[_seconds(command, folder) for command in commands] for _ in range(ROUNDS + 1)]
    compare, read = zip(*rounds[1:], strict=True)  # the first round fills the caches
    return list(compare), list(read)


def make(path: str, seed: int) -> None:
    """Write smooth regions with noisy probabilities, like the output of a network."""
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
    # An installed package has bytecode files, but a checkout may lack them.
    environment = {key: value for key, value in os.environ.items() if "BYTECODE" not in key}
    environment["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    return time.perf_counter() - start


if __name__ == "__main__":
    run((command,), __doc__)
