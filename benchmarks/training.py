"""`RegionDice.update` and `RegionDiceLoss` compared with the same work in other libraries.

    python -m benchmarks.training [--json FILE]

Needs the extra `torch`; the losses also need MONAI and are left out without it. They are measured
alternately; each time is the least of several. Peak memory is that of one step in a separate
process, without the memory of the tensors.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

import probdice
from probdice.torch import RegionDice, RegionDiceLoss

CLASSES = 27
VOLUMES = (2, 4, 96, 96, 96)
LOSS_ROUNDS = 10
ROUNDS = 25


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    work: str
    value: float
    against: str
    against_value: float
    ratio: float
    goal: str
    unit: str = "ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    rows = [logits(soft) for soft in (False, True)]
    rows += [row for dtype in (torch.int64, torch.uint8) for row in labels(dtype)]
    if find_spec("monai"):
        rows += [row for soft in (True, False) for row in losses(soft)]
    for row in rows:
        print(
            f"{row.work:60} {row.value:8.2f} {row.unit}  {row.ratio:5.2f} × {row.against} "
            f"({row.against_value:.2f} {row.unit})  {row.goal}"
        )
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")


def regions(*shape: int, seed: int) -> torch.Tensor:
    """Label maps of compact regions, as in images."""
    noise = torch.rand(shape[0], CLASSES, 8, 8, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.interpolate(noise, shape[1:], mode="bilinear").argmax(1)


def logits(soft: bool) -> Row:
    """One batch of logits of 27 clusters over 128 × 128 pixels, with labels or soft targets."""
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
    work = f"update, logits (8, 27, 128, 128) with {'soft targets' if soft else 'labels'}"
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
        row(work, update, "torch.bincount with a given index", given, ""),
    ]


def losses(soft: bool) -> list[Row]:
    """A step forward and back from logits of four classes over 96³ voxels."""
    logits, target = volumes(soft)
    ours, monai = least(
        lambda: step("ours", logits, target),
        lambda: step("monai", logits, target),
        rounds=LOSS_ROUNDS,
    )
    work = f"RegionDiceLoss of {VOLUMES}, {'soft targets' if soft else 'labels'}"
    against = "MONAI DiceLoss(soft_label=True)"
    goal = "at most 1.2 ×" if soft else ""
    memory = [peak_memory(which, soft) for which in ("ours", "monai")]
    return [
        row(f"{work}, forward and backward", ours, against, monai, goal),
        Row(
            f"{work}, peak memory", memory[0], against, memory[1], memory[0] / memory[1], goal, "MB"
        ),
    ]


def volumes(soft: bool) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(VOLUMES, generator=generator).requires_grad_()
    target = torch.randn(VOLUMES, generator=generator)
    return logits, target.softmax(1) if soft else target.argmax(1)


def step(which: str, logits: torch.Tensor, target: torch.Tensor) -> None:
    """One forward and backward pass."""
    from monai.losses import DiceLoss

    if which == "ours":
        loss = RegionDiceLoss()(logits, target)
    elif target.is_floating_point():
        loss = DiceLoss(softmax=True, soft_label=True)(logits, target)
    else:
        options = {"softmax": True, "soft_label": True, "to_onehot_y": True}
        loss = DiceLoss(**options)(logits, target[:, None])
    loss.backward()
    logits.grad = None


def peak_memory(which: str, soft: bool) -> float:
    """Megabytes that a step needs in addition to its tensors."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak_memory, (which, soft))


def _peak_memory(which: str, soft: bool) -> float:
    tensors = volumes(soft)
    small = tuple(tensor[:, ..., :8, :8, :8].detach().contiguous() for tensor in tensors)
    step(which, small[0].requires_grad_(), small[1])  # loads libraries
    Path("/proc/self/clear_refs").write_text("5")  # Linux: resets the peak
    before = _peak_in_megabytes()
    step(which, *tensors)
    return _peak_in_megabytes() - before


def _peak_in_megabytes() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def row(work: str, seconds: float, against: str, others: float, goal: str) -> Row:
    return Row(work, seconds * 1e3, against, others * 1e3, seconds / others, goal)


def least(*works: Callable[[], Any], rounds: int = ROUNDS) -> list[float]:
    """The shortest time of each, measured alternately."""
    best = [float("inf")] * len(works)
    for _ in range(rounds):
        for k, work in enumerate(works):
            start = time.perf_counter()
            work()
            best[k] = min(best[k], time.perf_counter() - start)
    return best


if __name__ == "__main__":
    main()
