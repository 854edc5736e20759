"""Time of `evaluate` for 40 cases of 96³ × 4 as .nii.gz, relative to decompression.

    python -m benchmarks.folder [--into PAGE]

The time after the first case is the time of 40 cases minus the time of one case. The time of one
case includes the start-up of the worker process.
"""

import os
import shutil
import tempfile
from pathlib import Path

import nibabel
import numpy as np
from isal import igzip
from scipy.ndimage import gaussian_filter

from benchmarks.table import Row, least, run, times
from probdice.evaluation import evaluate

CASES, SHAPE, REGIONS = 40, (96, 96, 96), 4
ROUNDS = 3


def folder() -> list[Row]:
    """Measure runs with one and two workers. All cases are links to the same two files."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        make(root, CASES)
        _evaluate(root, 2)  # compiles the kernels
        unpacking, first, one, two = least(
            lambda: _unpack(root),
            lambda: _evaluate(root, 1, "one "),
            lambda: _evaluate(root, 1),
            lambda: _evaluate(root, 2),
            rounds=ROUNDS,
        )
    work = f"evaluate, {CASES} cases of 96³ × {REGIONS} as .nii.gz"
    after = f"{work}, one worker, after the first case"
    return [
        times(after, one - first, unpacking, "decompressing the files", "at most 1.2 ×"),
        times(f"{work}, two workers", two, one, "one worker", "at most 0.6 ×"),
    ]


def make(root: Path, cases: int) -> None:
    """Write the files of all cases, which are links to the files of the first case."""
    generator = np.random.default_rng(0)
    for name, sharpness in (("reference", 3.0), ("prediction", 2.5)):
        (root / name).mkdir()
        (root / f"one {name}").mkdir()
        noise = [gaussian_filter(generator.standard_normal(SHAPE), 6) for _ in range(REGIONS)]
        logits = np.stack(noise, axis=-1)
        p = np.exp(sharpness * logits / logits.std())
        p /= p.sum(axis=-1, keepdims=True)
        first = root / name / "case0.nii.gz"
        nibabel.save(nibabel.Nifti1Image(p.astype(np.float32), np.eye(4)), first)
        os.link(first, root / f"one {name}" / first.name)
        for k in range(1, cases):
            os.link(first, root / name / f"case{k}.nii.gz")


def _unpack(root: Path) -> None:
    """Decompress the files of all cases except one with isal, one after the other."""
    for path in sorted(root.glob("reference/*.nii.gz"))[1:]:
        for name in ("reference", "prediction"):
            with igzip.open(root / name / path.name) as stream:
                stream.read()


def _evaluate(root: Path, workers: int, prefix: str = "") -> None:
    reference, prediction = root / f"{prefix}reference", root / f"{prefix}prediction"
    evaluate(reference, {"prediction": prediction}, out=root / "out", workers=workers)
    shutil.rmtree(root / "out")


if __name__ == "__main__":
    run((folder,), __doc__)
