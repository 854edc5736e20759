"""Coverage of the 95 % confidence intervals of `evaluation.statistics.summarise`.

Values are drawn from distributions whose means are known, and which resemble the distributions of
segmentation scores. The second table is about subjects with four cases each. It compares intervals
from resampled subjects with intervals from resampled cases, as if cases were independent:

    python benchmarks/intervals.py [--rounds 2000] [--json intervals.json]

With 2,000 rounds, the standard error is about 0.5 percentage points.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from probdice.evaluation.statistics import summarise

SIZES = (6, 10, 20, 30, 50, 100, 200)
CASES_PER_SUBJECT = 4
FAILED = 0.1  # share of failures in the last distribution

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]


def _with_failures(generator: np.random.Generator, count: int) -> NDArray[np.float64]:
    good = generator.beta(30, 3, count)
    return np.where(generator.random(count) < FAILED, generator.beta(1, 9, count), good)


DISTRIBUTIONS: dict[str, tuple[Draw, float]] = {
    "symmetric: normal, 0.8 ± 0.05": (lambda generator, n: generator.normal(0.8, 0.05, n), 0.8),
    "skewed: beta(8, 1), mean 0.89": (lambda generator, n: generator.beta(8, 1, n), 8 / 9),
    "one in ten fails: beta(30, 3) and beta(1, 9)": (
        _with_failures,
        (1 - FAILED) * 30 / 33 + FAILED * 0.1,
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    table = {}
    print(f"{'intervals that contain the mean, cases:':46}" + "".join(f"{n:7}" for n in SIZES))
    for name, (draw, mean) in DISTRIBUTIONS.items():
        table[name] = {n: coverage(draw, mean, n, options.rounds) for n in SIZES}
        print(f"{name:46}" + "".join(f"{share:7.1%}" for share in table[name].values()), flush=True)
    print(f"\n{'four cases per subject, subjects:':46}" + "".join(f"{n:7}" for n in SIZES))
    for name, grouped in (("resampled subjects", True), ("resampled cases", False)):
        table[name] = {n: _clustered_coverage(n, options.rounds, grouped=grouped) for n in SIZES}
        print(f"{name:46}" + "".join(f"{share:7.1%}" for share in table[name].values()), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")


def coverage(draw: Draw, mean: float, count: int, rounds: int) -> float:
    generator = np.random.default_rng(count)
    held = 0
    for _ in range(rounds):
        interval = summarise(draw(generator, count), seed=int(generator.integers(2**31))).interval
        held += interval.low <= mean <= interval.high
    return held / rounds


def _clustered_coverage(subjects: int, rounds: int, *, grouped: bool) -> float:
    """Return the coverage if the values of one subject have a correlation of 0.5."""
    generator = np.random.default_rng(subjects)
    owners = np.repeat(np.arange(subjects), CASES_PER_SUBJECT)
    held = 0
    for _ in range(rounds):
        between = generator.normal(0.8, 0.05, subjects)[owners]
        values = between + generator.normal(0, 0.05, owners.size)
        given = owners.tolist() if grouped else None
        seed = int(generator.integers(2**31))
        interval = summarise(values, subjects=given, seed=seed).interval
        held += interval.low <= 0.8 <= interval.high
    return held / rounds


if __name__ == "__main__":
    main()
