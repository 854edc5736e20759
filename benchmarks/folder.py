"""`evaluate` on one and two cores, relative to decompression: 40 cases of 96³ × 4 as .nii.gz.

All are measured alternately, including the start-up of the worker processes:

    python benchmarks/folder.py [--rounds 3] [--json folder.json]
"""

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import nibabel
import numpy as np
from isal import igzip
from scipy.ndimage import gaussian_filter

from probdice.evaluation import evaluate

CASES, SHAPE, REGIONS = 40, (96, 96, 96), 4
LIMIT = 0.6  # time of two workers as a share of one
UNPACKING_LIMIT = 1.2  # time of one worker, relative to decompressing all files


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _make(root)
        _seconds(root, 2)  # compiles the kernels
        times: dict[int, list[float]] = {0: [], 1: [], 2: []}  # 0: decompression only
        for _ in range(options.rounds):
            times[0].append(_unpacking(root))
            for workers in (1, 2):
                times[workers].append(_seconds(root, workers))
    goals = f"workers 1 at most {UNPACKING_LIMIT} × decompression, workers 2 at most {LIMIT} × that"
    row: dict[str, object] = {"goal": goals}
    print(f"{CASES} cases of {SHAPE} × {REGIONS} float32, seconds; goal: {goals}")
    for name, choose in (("median", statistics.median), ("least", min)):
        unpacking, one, two = (choose(times[workers]) for workers in (0, 1, 2))
        row[name] = {"unpacking": unpacking, "one": one, "two": two}
        ratios = one / unpacking, two / one
        print(
            f"{name:>6}: decompression {unpacking:6.2f}   workers 1 {one:6.2f} ({ratios[0]:.2f} ×)"
            f"   workers 2 {two:6.2f} ({ratios[1]:.2f} ×)"
        )
    if options.json is not None:
        options.json.write_text(json.dumps(row, indent=2) + "\n", encoding="utf-8")


def _make(root: Path) -> None:
    generator = np.random.default_rng(0)
    for name, sharpness in (("reference", 3.0), ("prediction", 2.5)):
        (root / name).mkdir()
        noise = [gaussian_filter(generator.standard_normal(SHAPE), 6) for _ in range(REGIONS)]
        logits = np.stack(noise, axis=-1)
        p = np.exp(sharpness * logits / logits.std())
        p /= p.sum(axis=-1, keepdims=True)
        first = root / name / "case0.nii.gz"
        nibabel.save(nibabel.Nifti1Image(p.astype(np.float32), np.eye(4)), first)
        for k in range(1, CASES):
            os.link(first, root / name / f"case{k}.nii.gz")


def _unpacking(root: Path) -> float:
    """Decompress all files of both sides with isal, one after the other."""
    start = time.perf_counter()
    for path in root.glob("*/*.nii.gz"):
        with igzip.open(path) as stream:
            stream.read()
    return time.perf_counter() - start


def _seconds(root: Path, workers: int) -> float:
    start = time.perf_counter()
    evaluate(
        root / "reference", {"prediction": root / "prediction"}, out=root / "out", workers=workers
    )
    took = time.perf_counter() - start
    shutil.rmtree(root / "out")
    return took


if __name__ == "__main__":
    main()
