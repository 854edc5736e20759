"""Batches, metrics and a network for the tests of torch."""

import torch

from probdice.torch import RegionDice

IMAGES, CLASSES, CLUSTERS, SHAPE = 7, 3, 5, (6, 9)


def made(seed=0):
    """Labels of targets and predictions that somewhat agree, and logits and soft targets."""
    random = torch.Generator().manual_seed(seed)
    target = torch.randint(CLASSES, (IMAGES, *SHAPE), generator=random)
    noise = torch.randint(CLUSTERS, target.shape, generator=random)
    agree = torch.rand(target.shape, generator=random) < 0.6
    preds = torch.where(agree, (target + 2) % CLUSTERS, noise)
    logits = torch.randn(IMAGES, CLUSTERS, *SHAPE, generator=random, dtype=torch.float64)
    logits += 2 * torch.nn.functional.one_hot(preds, CLUSTERS).movedim(-1, 1)
    soft = torch.randn(IMAGES, CLASSES, *SHAPE, generator=random, dtype=torch.float64)
    soft += 2 * torch.nn.functional.one_hot(target, CLASSES).movedim(-1, 1)
    return {"labels": preds, "logits": logits}, {"labels": target, "soft": soft.softmax(1)}


def metric_for(**options):
    return RegionDice(CLASSES, CLUSTERS, activation="softmax", **options)


def fed(metric, preds, target, size=3):
    """The metric after updates with all batches of a given size."""
    for p, t in zip(preds.split(size), target.split(size), strict=True):
        metric.update(p, t)
    return metric


def stripes(count=8, seed=0):
    """Noisy images of three stripes, and their labels."""
    generator = torch.Generator().manual_seed(seed)
    labels = (torch.arange(24) // 8).expand(count, 24, 24)
    images = labels[:, None] / 2 + 0.2 * torch.randn(count, 1, 24, 24, generator=generator)
    return images, labels


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 5, padding=2), torch.nn.ReLU(), torch.nn.Conv2d(8, 3, 1)
    )
