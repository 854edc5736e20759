"""Convert the target of a loss to probabilities, and find the included pixels."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from probdice.errors import InputError
from probdice.torch.batches import check_mask, labels_remedy, reject_ignored_labels

__all__ = ["average_to", "read_target"]


def read_target(
    target: Tensor,
    mask: Tensor | None,
    *,
    axes: int,
    regions: int | None,
    ignored_labels: Sequence[int],
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor | None]:
    """Return probabilities (N, regions, …), and the included pixels (N, …) or None to include all.

    Parameters
    ----------
    target : Tensor
        Labels (N, …), or probabilities (N, C, …).
    mask : Tensor or None
        The pixels (N, …) to include.
    axes : int
        Number of axes of an image.
    regions : int or None
        Number of classes; None to read the number from the target.
    ignored_labels : sequence of int
        Labels whose pixels are excluded.
    dtype : torch.dtype
        Type of the probabilities.
    """
    if target.is_floating_point():
        reject_ignored_labels(ignored_labels, "target")
        q = _probabilities(target.to(dtype), axes, regions)
        return q, None if mask is None else check_mask(mask, (len(q), *q.shape[2:]))
    if target.dim() != 1 + axes:
        has_extra_axis = target.dim() == 2 + axes
        remedy = labels_remedy("target", target.shape[1], regions) if has_extra_axis else ""
        raise InputError(
            f"target must contain labels of shape (N, …) with {axes} axes after the first, found "
            f"shape {tuple(target.shape)}{remedy}"
        )
    inside = None if mask is None else check_mask(mask, target.shape)
    for label in ignored_labels:
        is_included = target != label
        inside = is_included if inside is None else inside & is_included
    labels = target.long() if inside is None else torch.where(inside, target, 0).long()
    if regions is None:
        regions = int(labels.max()) + 1
    _check_labels(labels, regions)
    q = torch.zeros(len(labels), regions, *labels.shape[1:], dtype=dtype, device=labels.device)
    return q.scatter_(1, labels[:, None], 1), inside


def average_to(
    q: Tensor, inside: Tensor | None, size: Sequence[int]
) -> tuple[Tensor, Tensor | None]:
    """Return the mean probabilities on a coarser grid, and the included pixels of that grid."""
    if inside is None:
        return interpolate(q, size, mode="area"), None
    included_share = interpolate(inside[:, None].to(q.dtype), size, mode="area")
    total = interpolate(torch.where(inside[:, None], q, 0), size, mode="area")
    return torch.where(included_share > 0, total / included_share, 0), included_share[:, 0] > 0


def _probabilities(target: Tensor, axes: int, regions: int | None) -> Tensor:
    """Check the channels of a soft target. Add a background to a single foreground channel."""
    channels = target.shape[1] if target.dim() == 2 + axes else 0
    foreground = channels == 1 and (regions is None or regions == 2)
    if channels == 0 or not (foreground or regions is None or regions == channels):
        expected = "one channel per region" if regions is None else f"{regions} channels"
        raise InputError(
            f"target must contain probabilities (N, C, …) with {expected}, found shape "
            f"{tuple(target.shape)}. For labels, use an integer type: target.long()."
        )
    return torch.cat([1 - target, target], dim=1) if foreground else target


def _check_labels(labels: Tensor, regions: int) -> None:
    """Reject labels that have no channel. On devices other than the CPU, torch reports them."""
    if torch.compiler.is_compiling() or labels.device.type != "cpu" or not labels.numel():
        return
    for label in torch.aminmax(labels):
        if not 0 <= int(label) < regions:
            raise InputError(
                f"target: found label {int(label)}, expected labels from 0 to {regions - 1}. To "
                f"exclude pixels with this label, use ignore_index."
            )
