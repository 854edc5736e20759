"""`RegionDice.update` and `RegionDiceLoss` compared with the same work in other libraries.

    python -m benchmarks.training [--only updates] [--into PAGE]

The benchmark requires the extra `torch`. The losses also require MONAI and are left out without it.
Functions that are compared run alternately, and each time is the least of several. Peak memory is
measured for one step in a separate process, without the memory of the tensors.
"""

from collections.abc import Iterator
from importlib.util import find_spec
from inspect import signature
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch

import probdice
from benchmarks.table import Row, least, run, times
from probdice.torch import RegionDice

CLASSES = 27
VOLUMES = (2, 4, 96, 96, 96)
LOSS_ROUNDS = 10
ROUNDS = 25


def updates() -> Iterator[Row]:
    """Measure `RegionDice.update` with one batch."""
    for soft in (False, True):
        yield logits(soft)
    for dtype in (torch.int64, torch.uint8):
        yield from labels(dtype)


def losses() -> Iterator[Row]:
    """Measure `RegionDiceLoss` and MONAI's `DiceLoss`."""
    if find_spec("monai"):
        for soft in (True, False):
            yield from steps(soft)


def regions(*shape: int, seed: int) -> torch.Tensor:
    """Return label maps of compact regions, as in images."""
    noise = torch.rand(shape[0], CLASSES, 8, 8, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.interpolate(noise, shape[1:], mode="bilinear").argmax(1)


def logits(soft: bool) -> Row:
    """Measure one batch of logits of 27 clusters, with labels or soft targets."""
    preds, target, metric = logits_and_metric(soft)
    prediction = np.ascontiguousarray(preds.softmax(1).movedim(1, 0).numpy())
    reference = prediction if soft else target.numpy()
    update, softmax, overlap = least(
        lambda: metric.update(preds, target),
        lambda: preds.softmax(1),
        lambda: probdice.overlap(reference, prediction),
        rounds=ROUNDS,
    )
    work = f"RegionDice.update, logits (8, 27, 128, 128), {'soft targets' if soft else 'labels'}"
    return times(work, update, softmax + overlap, "torch softmax + overlap", "at most 1.5 ×")


def logits_and_metric(soft: bool) -> tuple[torch.Tensor, torch.Tensor, RegionDice]:
    """Return one batch of logits and targets, and a metric that computes the softmax."""
    target = regions(8, 128, 128, seed=0)
    clusters = torch.nn.functional.one_hot(regions(8, 128, 128, seed=1), CLASSES).movedim(-1, 1)
    preds = 4 * clusters + torch.randn(clusters.shape, generator=torch.Generator().manual_seed(2))
    return preds, preds.softmax(1) if soft else target, metric_of_logits()


def metric_of_logits() -> RegionDice:
    """Return a metric that computes the softmax. Revision a61bc61 calls this option `logits`."""
    if "activation" in signature(RegionDice).parameters:
        return RegionDice(CLASSES, activation="softmax")
    return RegionDice(CLASSES, logits=True)  # type: ignore[call-arg]


def labels(dtype: torch.dtype) -> Iterator[Row]:
    """Measure a batch of label maps of 321 × 481 pixels, and one of 64 × 64 pixels."""
    target, preds = (regions(8, 321, 481, seed=seed).to(dtype) for seed in (0, 1))
    metric = RegionDice(CLASSES)
    update, count = least(
        lambda: metric.update(preds, target),
        lambda: torch.bincount((target.long() * CLASSES + preds).reshape(-1), minlength=729),
        rounds=ROUNDS,
    )
    name = str(dtype).removeprefix("torch.")
    work = f"RegionDice.update, labels (8, 321, 481), {name}"
    yield times(work, update, count, "torch.bincount of the joint labels", "at most 1 ×")
    small = [side[:1, :64, :64].contiguous() for side in (preds, target)]
    (update,) = least(lambda: metric.update(*small), rounds=20 * ROUNDS)
    yield Row(f"RegionDice.update, labels (1, 64, 64), {name}", update * 1e3, "ms")


def steps(soft: bool) -> Iterator[Row]:
    """Measure a forward and backward pass of logits of four classes over 96³ voxels."""
    logits, target = volumes(soft)
    own, monai = least(
        lambda: step("ours", logits, target),
        lambda: step("monai", logits, target),
        rounds=LOSS_ROUNDS,
    )
    work = f"RegionDiceLoss of {VOLUMES}, {'soft targets' if soft else 'labels'}"
    against = "MONAI DiceLoss(soft_label=True)"
    goal = "at most 1.2 ×" if soft else ""
    yield times(f"{work}, forward and backward", own, monai, against, goal)
    memory = [peak_memory(which, soft) for which in ("ours", "monai")]
    yield Row(f"{work}, peak memory", memory[0] / memory[1], f"× {against}", goal)


def volumes(soft: bool) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(VOLUMES, generator=generator).requires_grad_()
    target = torch.randn(VOLUMES, generator=generator)
    return logits, target.softmax(1) if soft else target.argmax(1)


def step(which: str, logits: torch.Tensor, target: torch.Tensor) -> None:
    """Run one forward and backward pass."""
    from monai.losses import DiceLoss

    from probdice.torch import RegionDiceLoss  # earlier revisions lack this class

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
    """Return the peak memory of a step in MB, without the memory of its tensors."""
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


if __name__ == "__main__":
    run((updates, losses), __doc__)
