"""Targets of a loss as probabilities, and the pixels that count."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from probdice.errors import InputError
from probdice.torch.batches import check_mask

__all__ = ["averaged", "read_target"]


def read_target(
    target: Tensor,
    mask: Tensor | None,
    *,
    axes: int,
    regions: int | None,
    ignored: Sequence[int],
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor | None]:
    """Probabilities (N, regions, …), and the pixels (N, …) that count, or None for all.

    Parameters
    ----------
    target : Tensor
        Labels (N, …), or probabilities (N, C, …).
    mask : Tensor or None
        The pixels (N, …) that count.
    axes : int
        Number of axes of an image.
    regions : int or None
        Number of classes; None for as many as the target has.
    ignored : sequence of int
        Labels whose pixels are left out.
    dtype : torch.dtype
        Of the probabilities.
    """
    if target.is_floating_point():
        return _read_probabilities(target, mask, axes, regions, ignored, dtype)
    if target.dim() != 1 + axes:
        raise InputError(
            f"target must hold labels of shape (N, …) with {axes} axes after the first, found "
            f"shape {tuple(target.shape)}{_remedy(target, axes, regions)}"
        )
    inside = None if mask is None else check_mask(mask, target.shape)
    for label in ignored:
        kept = target != label
        inside = kept if inside is None else inside & kept
    labels = target.long() if inside is None else torch.where(inside, target, 0).long()
    if regions is None:
        regions = int(labels.max()) + 1
    _check_labels(labels, regions)
    q = torch.zeros(len(labels), regions, *labels.shape[1:], dtype=dtype, device=labels.device)
    return q.scatter_(1, labels[:, None], 1), inside


def averaged(q: Tensor, inside: Tensor | None, size: Sequence[int]) -> tuple[Tensor, Tensor | None]:
    """The mean probabilities over the pixels of a coarser grid, and its pixels that count."""
    if inside is None:
        return interpolate(q, size, mode="area"), None
    counted = interpolate(inside[:, None].to(q.dtype), size, mode="area")
    total = interpolate(torch.where(inside[:, None], q, 0), size, mode="area")
    return torch.where(counted > 0, total / counted, 0), counted[:, 0] > 0


def _read_probabilities(
    target: Tensor,
    mask: Tensor | None,
    axes: int,
    regions: int | None,
    ignored: Sequence[int],
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor | None]:
    channels = target.shape[1] if target.dim() == 2 + axes else 0
    foreground = channels == 1 and (regions is None or regions == 2)
    if channels == 0 or not (foreground or regions is None or regions == channels):
        wanted = "one channel per region" if regions is None else f"{regions} channels"
        raise InputError(
            f"target must hold probabilities (N, C, …) of {wanted}, found shape "
            f"{tuple(target.shape)}; labels must be of an integer type: target.long()"
        )
    if ignored:
        raise InputError(
            f"ignore_index={ignored[0] if len(ignored) == 1 else tuple(ignored)} is a label, and "
            f"target holds probabilities; use a mask"
        )
    target = target.to(dtype)
    q = torch.cat([1 - target, target], dim=1) if foreground else target
    inside = None
    if mask is not None:
        inside = check_mask(mask, (len(target), *target.shape[2:]))
    return q, inside


def _check_labels(labels: Tensor, regions: int) -> None:
    """Reject labels that no channel has; on other devices, torch does when it runs there."""
    if torch.compiler.is_compiling() or labels.device.type != "cpu" or not labels.numel():
        return
    for label in torch.aminmax(labels):
        if not 0 <= int(label) < regions:
            raise InputError(
                f"target: label {int(label)}, where preds has channels for the labels 0 to "
                f"{regions - 1}; leave its pixels out with ignore_index"
            )


def _remedy(target: Tensor, axes: int, regions: int | None) -> str:
    if target.dim() != 2 + axes:
        return ""
    if target.shape[1] == 1:
        return "; remove the channel of the labels: target.squeeze(1)"
    if target.shape[1] == regions:
        return "; convert one-hot values of an integer type: target.argmax(1)"
    return ""
