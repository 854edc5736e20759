"""Compute the losses of `RegionDiceLoss` on the device of the tensors."""

from math import log
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = [
    "RegionSums",
    "aitchison_similarity",
    "dice_loss",
    "foreground_loss",
    "mean_loss",
    "region_sums",
    "score_loss",
]


class RegionSums(NamedTuple):
    """Sums over the pixels of every image, or of the whole batch.

    Attributes
    ----------
    difference : Tensor of shape (images, channels)
        Σ|p − q| between every channel of the prediction and the channel's target region.
    prediction : Tensor of shape (images, channels)
        Σp of every channel of the prediction.
    target : Tensor of shape (images, channels)
        Σq of the target region of every channel.
    unmatched : Tensor of shape (images, regions)
        Σq of unmatched target regions; 0 for matched regions.
    pixels : Tensor of shape (images,)
        Number of pixels, but at least 1, so that an image without pixels has a loss of 0.
    """

    difference: Tensor
    prediction: Tensor
    target: Tensor
    unmatched: Tensor
    pixels: Tensor


def region_sums(p: Tensor, q: Tensor, unmatched: Tensor, pixels: Tensor, batch: bool) -> RegionSums:
    """Return the sums over the pixels of each image or, with `batch`, of the whole batch."""
    # vector_norm is not used, because its float32 sums over a volume have errors of 1e-4.
    difference = (p - q).abs().sum(dim=2)
    sums = RegionSums(difference, p.sum(dim=2), q.sum(dim=2), unmatched.sum(dim=2), pixels)
    if batch:
        sums = RegionSums(*(part.sum(dim=0, keepdim=True) for part in sums))
    return sums._replace(pixels=sums.pixels.clamp(min=1))


def score_loss(sums: RegionSums) -> Tensor:
    """Return the mean of ½ Σ|p − q| over the pixels, which equals 1 minus the score."""
    return (sums.difference.sum(dim=1) + sums.unmatched.sum(dim=1)) / (2 * sums.pixels)


def dice_loss(sums: RegionSums, weights: Tensor) -> Tensor:
    """Return the weighted mean of 1 − Dice over the regions, where 1 − Dice = Σ|p − q| / (Σp + Σq).

    A region that is absent from the target contributes its mean predicted probability, because
    its Dice is 0 for any prediction and has no gradient. An unmatched target region contributes 1.
    """
    is_absent = sums.target == 0
    volumes = torch.where(is_absent, sums.pixels[:, None], sums.prediction + sums.target)
    losses = torch.where(is_absent, sums.prediction, sums.difference) / volumes
    unmatched_count = (sums.unmatched > 0).sum(dim=1)
    return ((losses * weights).sum(dim=1) + unmatched_count) / (weights.sum() + unmatched_count)


def foreground_loss(sums: RegionSums, weights: Tensor) -> Tensor:
    """Return 1 minus the pooled Dice of all regions with weight 1. The background has weight 0.

    If the target has no foreground, the loss is the mean predicted probability of the foreground.
    """
    unmatched_volume = sums.unmatched.sum(dim=1)
    prediction = (sums.prediction * weights).sum(dim=1)
    target = (sums.target * weights).sum(dim=1) + unmatched_volume
    difference = (sums.difference * weights).sum(dim=1) + unmatched_volume
    is_absent = target == 0
    volumes = torch.where(is_absent, sums.pixels, prediction + target)
    return torch.where(is_absent, prediction, difference) / volumes


def mean_loss(f: Tensor, inside: Tensor | None, pixels: Tensor, batch: bool) -> Tensor:
    """Return 1 minus the mean of a similarity (images, pixels) over the included pixels."""
    losses = (1 - f if inside is None else torch.where(inside, 1 - f, 0)).sum(dim=1)
    if batch:
        losses, pixels = losses.sum(dim=0, keepdim=True), pixels.sum(dim=0, keepdim=True)
    return losses / pixels.clamp(min=1)


def aitchison_similarity(logits: Tensor, q: Tensor, unmatched: Tensor, floor: float) -> Tensor:
    """Return the similarity f₂ = 1 / (1 + ‖clr(softmax z) − clr(q)‖) at every pixel.

    clr(softmax z) is z − mean z. Target values below the floor are raised to the floor. `unmatched`
    (images, regions, pixels) contains the unmatched target regions, whose prediction is 0, raised
    to the floor. Where the target of an unmatched region is also 0, this region is excluded. If the
    floor is 0, f₂ is 0 at pixels where the target of any channel is 0 or that of any unmatched
    region is positive.
    """
    smallest = floor or torch.finfo(q.dtype).tiny
    if unmatched.shape[1]:
        difference = _difference_with_unmatched(logits, q, unmatched, smallest)
    else:
        difference = logits - q.clamp(min=smallest).log()
        difference = difference - difference.mean(dim=1, keepdim=True)
    square = (difference * difference).sum(dim=1)
    positive = square > 0  # the root has no gradient at 0, where the similarity is largest
    distance = torch.where(positive, torch.where(positive, square, 1).sqrt(), 0)
    similarity = 1 / (1 + distance)
    if floor:
        return similarity
    possible = (q > 0).all(dim=1) & (unmatched == 0).all(dim=1)
    return torch.where(possible, similarity, 0)


def _difference_with_unmatched(
    logits: Tensor, q: Tensor, unmatched: Tensor, smallest: float
) -> Tensor:
    """Return clr(p) − clr(q) at every pixel, for the channels and the unmatched target regions."""
    present = torch.cat([torch.ones_like(q, dtype=torch.bool), unmatched > 0], dim=1)
    log_p = torch.cat([logits.log_softmax(dim=1), torch.full_like(unmatched, log(smallest))], dim=1)
    log_q = torch.cat([q, unmatched], dim=1).clamp(min=smallest).log()
    difference = (log_p - log_q) * present
    mean = difference.sum(dim=1, keepdim=True) / present.sum(dim=1, keepdim=True)
    return (difference - mean) * present
