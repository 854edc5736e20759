"""Interpret and check batches of images that are given as tensors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Literal, NoReturn, ParamSpec, TypeVar, get_args

import numpy as np
import torch
from torch import Tensor

from probdice.data.value_checks import TOLERANCE, Fault, examine_values
from probdice.errors import InputError

__all__ = [
    "Activation",
    "Batch",
    "as_batch",
    "check_alike",
    "check_channels",
    "check_mask",
    "check_side",
    "compared_pixels",
    "labels_remedy",
    "one_of",
    "reject",
    "reject_ignored_labels",
    "renormalise",
    "uncompiled",
]

Activation = Literal["softmax", "sigmoid", None]  # None: the values are probabilities
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
# Largest deviation of a sum from 1 that is attributed to rounding in bfloat16.
BFLOAT16_TOLERANCE = 2.0**-8


@dataclass(frozen=True, eq=False)
class Batch:
    """Several images of one side.

    Attributes
    ----------
    name : str
        Name of the argument: preds or target.
    values : Tensor
        Labels (images × pixels), or probabilities or logits (images × channels × pixels).
    regions : int
        Number of regions, including empty regions.
    shape : tuple of int
        Shape of one image.
    ignored_labels : tuple of int
        Labels whose pixels are excluded.
    activation : {"softmax", "sigmoid"} or None
        The function that converts logits to probabilities; None for labels and probabilities.
    """

    name: str
    values: Tensor
    regions: int
    shape: tuple[int, ...]
    ignored_labels: tuple[int, ...] = ()
    activation: Activation = None

    @property
    def crisp(self) -> bool:
        """Whether the batch contains label maps."""
        return not self.values.is_floating_point()

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: slice) -> "Batch":
        return replace(self, values=self.values[index])

    def probabilities(self) -> "Batch":
        """Return the batch with one channel of probabilities per region.

        Label maps remain unchanged.
        """
        if self.crisp:
            return self
        values = self.values
        if self.activation == "softmax":
            values = values.softmax(dim=1)
        elif self.activation == "sigmoid":
            values = values.sigmoid()
        if values.shape[1] < self.regions:  # a single foreground channel
            values = torch.cat([1 - values, values], dim=1)
        return replace(self, values=values, activation=None)


def one_of(kind: Any, value: Any, name: str) -> Any:
    """Return the value of an option; raise an error if it is not in the literal type `kind`."""
    if value not in get_args(kind):
        allowed_values = ", ".join(repr(option) for option in get_args(kind))
        raise InputError(f"{name} must be one of {allowed_values}, found {value!r}")
    return value


def as_batch(
    tensor: object,
    name: str,
    regions: int,
    *,
    ignored_labels: tuple[int, ...] = (),
    activation: Activation = None,
) -> Batch:
    """Read integers as labels, and other numbers as probabilities or logits."""
    if not isinstance(tensor, Tensor):
        raise InputError(f"{name} must be a torch.Tensor, found {type(tensor).__name__}")
    values = tensor.detach().as_subclass(Tensor)
    if values.device.type == "mps":  # MPS does not support float64
        values = values.cpu()
    if values.is_complex() or not values.dim():
        raise InputError(
            f"{name} must contain labels (N, …) or probabilities (N, C, …), found "
            f"{values.dtype} of shape {tuple(values.shape)}"
        )
    if not values.is_floating_point():
        if values.dtype != torch.uint8:
            values = values.to(torch.uint8 if values.dtype == torch.bool else torch.int64)
        shape = tuple(values.shape[1:])
        return Batch(name, values.reshape(len(values), prod(shape)), regions, shape, ignored_labels)
    channels = values.shape[1] if values.dim() > 1 else 0
    if channels != regions and not (channels == 1 and regions == 2):
        content = "logits" if activation else "probabilities"
        option = "num_classes" if name == "target" else "num_clusters"
        raise InputError(
            f"{name} must contain {content} of {regions} regions along axis 1, found shape "
            f"{tuple(values.shape)}. Set {option} to the number of channels. For labels, "
            f"use an integer type: {name}.long()."
        )
    check_channels(channels, activation, name)
    reject_ignored_labels(ignored_labels, name)
    is_rounded = values.dtype == torch.bfloat16 and activation is None
    shape = tuple(values.shape[2:])
    values = values.to(torch.promote_types(values.dtype, torch.float32))
    values = values.reshape(len(values), channels, prod(shape))
    if is_rounded and channels == regions:
        values = renormalise(values)
    return Batch(name, values, regions, shape, activation=activation)


def check_channels(channels: int, activation: Activation, name: str) -> None:
    """Reject an activation that does not fit the number of channels."""
    if activation == "sigmoid" and channels != 1:
        raise InputError(
            f'{name} has {channels} channels, but activation="sigmoid" requires a single channel, '
            f'because probabilities must sum to 1. Use activation="softmax".'
        )
    if activation == "softmax" and channels == 1:
        raise InputError(
            f'{name} has a single channel, whose softmax is 1 everywhere. Use activation="sigmoid".'
        )


def reject_ignored_labels(ignored_labels: Sequence[int], name: str) -> None:
    """Reject ignored labels for a tensor of probabilities."""
    if ignored_labels:
        labels = ignored_labels[0] if len(ignored_labels) == 1 else tuple(ignored_labels)
        raise InputError(
            f"ignore_index={labels} selects labels, but {name} contains probabilities. "
            f"Use mask instead of ignore_index."
        )


def check_mask(mask: object, shape: Sequence[int]) -> Tensor:
    """Return the mask; raise an error if the mask is not boolean or has another shape."""
    if not isinstance(mask, Tensor):
        description = type(mask).__name__
    elif mask.dtype != torch.bool or mask.shape != torch.Size(shape):
        description = f"{mask.dtype} of shape {tuple(mask.shape)}"
    else:
        return mask
    raise InputError(
        f"mask must be a boolean tensor of shape {tuple(shape)}, with one value per pixel and no "
        f"channel axis, found {description}"
    )


def renormalise(values: Tensor) -> Tensor:
    """Divide the probabilities of each pixel by their sum if it is 1 within bfloat16 rounding."""
    total = values.sum(dim=1, keepdim=True)
    return torch.where((total - 1).abs() <= BFLOAT16_TOLERANCE, values / total, values)


def check_alike(preds: Batch, target: Batch) -> None:
    """Reject a batch if its two sides differ in shape or device."""
    if (len(preds), preds.shape) != (len(target), target.shape):
        remedy = ""
        for side, other_side in ((preds, target), (target, preds)):
            if side.crisp and side.shape[1:] == other_side.shape:
                remedy = labels_remedy(side.name, side.shape[0], side.regions)
        raise InputError(
            f"preds has {len(preds)} images of shape {preds.shape} but target has {len(target)} "
            f"of shape {target.shape}: both must cover the same pixels{remedy}"
        )
    if preds.values.device != target.values.device:
        raise InputError(
            f"preds is on {preds.values.device}, target is on {target.values.device}. Move both to "
            f"the same device."
        )


def labels_remedy(name: str, channels: int, regions: int | None) -> str:
    """Return a suggested fix for labels that have a channel axis; "" if no fix is known."""
    if channels == 1:
        return f". Remove the channel axis of the labels: {name}.squeeze(1)."
    if channels == regions:
        return f". Convert one-hot integers to labels: {name}.argmax(1)."
    return ""


def uncompiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Return the function, excluded from compilation by torch, which cannot trace Numba kernels."""
    # Check first, because importing the compiler takes seconds.
    return torch.compiler.disable(function) if torch.compiler.is_compiling() else function


# -- values --------------------------------------------------------------------------------------


def compared_pixels(target: Batch, mask: Tensor | None) -> Tensor:
    """Return whether each pixel is inside the mask and not ignored; shape (images, pixels)."""
    values = target.values if target.crisp else target.values[:, 0]
    inside = torch.ones_like(values, dtype=torch.bool)
    if mask is not None:
        inside &= mask.to(values.device)
    for label in target.ignored_labels:
        inside &= values != label
    return inside


def check_side(side: Batch, inside: Tensor) -> None:
    """Reject unknown labels and invalid probabilities at the compared pixels."""
    values = side.values
    if side.crisp:
        is_invalid = (values < 0) | (values >= side.regions)
    else:
        is_invalid = ~((values.sum(dim=1) - 1).abs() <= TOLERANCE) | (values < 0).any(dim=1)
    is_invalid &= inside
    if not bool(is_invalid.any()):
        return
    image, pixel = is_invalid.nonzero()[0].tolist()
    if not side.crisp:
        fault = examine_values(values[image, :, pixel, None].cpu().numpy(), "error")
        if fault is not None:
            reject(side, fault, image, pixel)
        return
    option = "num_classes" if side.name == "target" else "num_clusters"
    ignore = ", or ignore the label with ignore_index" if side.name == "target" else ""
    raise InputError(
        f"{side.name}: label {int(values[image, pixel])} at pixel {_index(side, image, pixel)}, "
        f"but the labels of {side.regions} regions are 0 to {side.regions - 1}. Set {option} to "
        f"the number of regions{ignore}."
    )


def reject(side: Batch, fault: Fault, image: int, pixel: int) -> NoReturn:
    """Raise the error for invalid probabilities at a pixel of an image."""
    problem, remedy = {
        "infinite": (f"found {fault.value:g}", "Values must be finite."),
        "negative": (f"probability {fault.value:g}", 'For logits, use activation="softmax".'),
        "above": (f"probability {fault.value:g}", 'For logits, use activation="softmax".'),
        "sum": (f"probabilities sum to {fault.value:.6g}", "Divide the values by their sum."),
    }[fault.kind]
    if side.name == "target" and "logits" in remedy:
        remedy = "Probabilities must be between 0 and 1."
    raise InputError(f"{side.name}: {problem} at pixel {_index(side, image, pixel)}. {remedy}")


def _index(side: Batch, image: int, pixel: int) -> tuple[int, ...]:
    """Return the index of a pixel in the tensor, without the channel."""
    return (image, *(int(k) for k in np.unravel_index(pixel, side.shape)))
