"""Match the channels of a prediction to the regions of a target by overlap."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from probdice.method.background import Background
from probdice.method.matching import Matching, find_groups
from probdice.method.overlap import Overlap
from probdice.method.sides import Both
from probdice.method.similarity import Similarity
from probdice.torch.batches import Batch, renormalise
from probdice.torch.sums import overlap_of, sums_of

__all__ = ["align", "target_regions"]


def target_regions(
    p: Tensor,
    q: Tensor,
    inside: Tensor | None,
    shape: tuple[int, ...],
    *,
    similarity: Similarity,
    background: int | None,
    batch: bool,
) -> Tensor:
    """Return the target region of each channel, or −1 for unmatched channels.

    The result has one row per image or, with `batch`, one row for the whole batch.

    Parameters
    ----------
    p, q : Tensor
        Probabilities of the prediction (images, channels, pixels) and of the target (images,
        regions, pixels).
    inside : Tensor or None
        Whether each pixel is included (images, pixels); None to include all.
    shape : tuple of int
        Shape of one image.
    similarity, background, batch
        As in `RegionDiceLoss`. The backgrounds of both sides are matched to each other.
    """
    backgrounds: Background | None = None if background is None else Both(background, background)
    sides = [
        Batch(name, renormalise(values.detach()), values.shape[1], shape)
        for name, values in (("preds", p), ("target", q))
    ]
    parts = [slice(None)] if batch else [slice(k, k + 1) for k in range(len(p))]
    rows = []
    for part in parts:
        preds, target = (side[part] for side in sides)
        overlap = _overlap(preds, target, None if inside is None else inside[part], similarity)
        row = np.full(p.shape[1], -1) if overlap is None else _matches(overlap, backgrounds)
        if background is not None and background < q.shape[1]:
            row[background] = background  # even if it is empty on one side
        rows.append(row)
    return torch.from_numpy(np.stack(rows)).to(p.device)


def align(q: Tensor, regions: Tensor) -> tuple[Tensor, Tensor]:
    """Return the target in the order of the channels, and its unmatched regions.

    The first result is 0 for unmatched channels, and the second result is 0 for matched regions.
    """
    regions = regions.expand(len(q), -1)
    has_region = regions >= 0
    index = regions.clamp(min=0)
    target = q.gather(1, index[:, :, None].expand(-1, -1, q.shape[2])) * has_region[:, :, None]
    # Unmatched channels write to an additional column, which is then removed.
    has_channel = q.new_zeros(len(q), q.shape[1] + 1, dtype=torch.bool)
    has_channel.scatter_(1, torch.where(has_region, index, q.shape[1]), True)
    return target, q * ~has_channel[:, :-1, None]


def _overlap(
    preds: Batch, target: Batch, inside: Tensor | None, similarity: Similarity
) -> Overlap | None:
    """Return the overlap of a batch; None if all pixels are excluded.

    For a separable similarity, the sums over pixels are computed on the device of the tensors.
    """
    if not similarity.separable:
        return overlap_of(preds, target, inside, similarity)
    sums = sums_of(preds, target, inside)
    names = range(target.regions), range(preds.regions)
    return sums.overlap((False, False), names, similarity) if int(sums.pixels) else None


def _matches(overlap: Overlap, background: Background | None) -> NDArray[np.int64]:
    """Return the matched reference region of every prediction region, or −1."""
    groups = find_groups(overlap, Matching(background=background))
    region_of = np.full(groups.count + 1, -1, np.int64)
    region_of[groups.reference] = overlap.reference.keys
    region_of[groups.matched :] = -1
    return region_of[groups.prediction]
