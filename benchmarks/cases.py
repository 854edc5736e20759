"""Overhead of `evaluate` per case, measured on many tiny cases with one worker.

    python benchmarks/cases.py [--cases 2000] [--json cases.json]

Cases are label maps of 32 × 32 pixels with 4 labels as .nii.gz. The time of the whole run is
measured, from finding the files to writing the last table, including the start-up of the worker.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import nibabel
import numpy as np

from probdice.evaluation import evaluate

SIDE, LABELS = 32, 4
LIMIT = 5.0  # milliseconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _make(root, options.cases)
        evaluate(root / "reference", root / "few", missing="exclude")  # compiles the kernels
        start = time.perf_counter()
        evaluate(root / "reference", root / "prediction", out=root / "out", workers=1)
        each = (time.perf_counter() - start) / options.cases * 1000
    print(f"{options.cases} cases of {SIDE} × {SIDE} pixels: {each:.1f} ms each, at most {LIMIT:g}")
    if options.json is not None:
        row = {"milliseconds": each, "goal": f"at most {LIMIT:g}"}
        options.json.write_text(json.dumps(row, indent=2) + "\n", encoding="utf-8")


def _make(root: Path, cases: int) -> None:
    generator = np.random.default_rng(0)
    for name in ("reference", "prediction", "few"):
        (root / name).mkdir()
    for k in range(cases):
        labels = np.repeat(np.arange(LABELS, dtype=np.uint8), SIDE * SIDE // LABELS)
        labels = labels.reshape(SIDE, SIDE, 1)
        wrong = generator.random(labels.shape) < 0.1
        other = np.where(wrong, generator.integers(LABELS, size=labels.shape), labels)
        for name, values in (("reference", labels), ("prediction", other)):
            image = nibabel.Nifti1Image(values.astype(np.uint8), np.eye(4))
            nibabel.save(image, root / name / f"case{k}.nii.gz")
    first = "case0.nii.gz"
    (root / "few" / first).write_bytes((root / "prediction" / first).read_bytes())


if __name__ == "__main__":
    main()
