"""`RegionDice.update` against what its work would cost by hand.

    python -m benchmarks.training [--json FILE]

Needs the extra `torch`. Turn and turn about; each time is the least of several.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import probdice
from probdice.torch import RegionDice

CLASSES = 27
ROUNDS = 25


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    work: str
    milliseconds: float
    against: str
    against_milliseconds: float
    ratio: float
    goal: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    rows = [logits(soft) for soft in (False, True)]
    rows += [row for dtype in (torch.int64, torch.uint8) for row in labels(dtype)]
    for row in rows:
        print(
            f"{row.work:60} {row.milliseconds:8.2f} ms  {row.ratio:5.2f} × {row.against} "
            f"({row.against_milliseconds:.2f} ms)  {row.goal}"
        )
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")


def regions(*shape: int, seed: int) -> torch.Tensor:
    """Label maps of compact regions, as images have them."""
    noise = torch.rand(shape[0], CLASSES, 8, 8, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.interpolate(noise, shape[1:], mode="bilinear").argmax(1)


def logits(soft: bool) -> Row:
    """One batch of logits of 27 clusters over 128 × 128 pixels, against labels or soft targets."""
    target = regions(8, 128, 128, seed=0)
    clusters = torch.nn.functional.one_hot(regions(8, 128, 128, seed=1), CLASSES).movedim(-1, 1)
    preds = 4 * clusters + torch.randn(clusters.shape, generator=torch.Generator().manual_seed(2))
    prediction = np.ascontiguousarray(preds.softmax(1).movedim(1, 0).numpy())
    reference = prediction if soft else target.numpy()
    if soft:
        target = preds.softmax(1)
    metric = RegionDice(CLASSES, activation="softmax")
    update, softmax, overlap = least(
        lambda: metric.update(preds, target),
        lambda: preds.softmax(1),
        lambda: probdice.overlap(reference, prediction),
    )
    work = f"update, logits (8, 27, 128, 128) against {'soft targets' if soft else 'labels'}"
    return row(work, update, "softmax + overlap", softmax + overlap, "at most 1.5 ×")


def labels(dtype: torch.dtype) -> list[Row]:
    """One batch of label maps of 321 × 481 pixels."""
    target, preds = (regions(8, 321, 481, seed=seed).to(dtype) for seed in (0, 1))
    joint = (target.long() * CLASSES + preds).reshape(-1)
    metric = RegionDice(CLASSES)
    update, by_hand, given = least(
        lambda: metric.update(preds, target),
        lambda: torch.bincount((target.long() * CLASSES + preds).reshape(-1), minlength=729),
        lambda: torch.bincount(joint, minlength=729),
    )
    work = f"update, labels (8, 321, 481), {dtype}"
    return [
        row(work, update, "torch.bincount of the joint index", by_hand, "at most 1.0 ×"),
        row(work, update, "torch.bincount alone, the index given", given, ""),
    ]


def row(work: str, seconds: float, against: str, others: float, goal: str) -> Row:
    return Row(work, seconds * 1e3, against, others * 1e3, seconds / others, goal)


def least(*works: Callable[[], Any]) -> list[float]:
    """The shortest time of each, turn and turn about."""
    best = [float("inf")] * len(works)
    for _ in range(ROUNDS):
        for k, work in enumerate(works):
            start = time.perf_counter()
            work()
            best[k] = min(best[k], time.perf_counter() - start)
    return best


if __name__ == "__main__":
    main()
