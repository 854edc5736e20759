"""Batches of images as tensors: interpretation, checks, and sums over pixels.

Compiled kernels read CPU tensors without copying them. On other devices, torch computes the same
sums there, so that only the sums are copied.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Literal, ParamSpec, TypeVar, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from probdice.data.segmentation import Segmentation
from probdice.data.value_checks import TOLERANCE, examine_values
from probdice.errors import InputError
from probdice.method.overlap import Overlap, Pairs, Regions
from probdice.method.region_labels import Label
from probdice.method.similarity import Similarity

__all__ = [
    "Activation",
    "Batch",
    "Sums",
    "as_activation",
    "as_batch",
    "check_alike",
    "check_channels",
    "check_mask",
    "check_values",
    "image_of",
    "overlap_of_sums",
    "renormalised",
    "sums_in_torch",
    "sums_of",
    "uncompiled",
    "within",
]

Activation = Literal["softmax", "sigmoid"]
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
ROUGH = 2.0**-8  # largest deviation from 1 of sums of probabilities in bfloat16


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
        Number of regions, including empty ones.
    shape : tuple of int
        Shape of one image.
    ignored : tuple of int
        Labels whose pixels are left out.
    activation : {"softmax", "sigmoid"} or None
        Converts the values to probabilities.
    selected : Tensor or None
        Positions of the pixels in the original batch if a mask selected them.
    """

    name: str
    values: Tensor
    regions: int
    shape: tuple[int, ...]
    ignored: tuple[int, ...] = ()
    activation: Activation | None = None
    selected: Tensor | None = None

    @property
    def crisp(self) -> bool:
        """Whether these are label maps."""
        return not self.values.is_floating_point()

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: slice) -> "Batch":
        return replace(self, values=self.values[index])

    def probabilities(self) -> "Batch":
        """The batch with one probability per region."""
        if self.crisp:
            return self
        values = self.values
        if self.activation == "softmax":
            values = values.softmax(dim=1)
        elif self.activation == "sigmoid":
            values = values.sigmoid()
        if values.shape[1] < self.regions:  # a single foreground
            values = torch.cat([1 - values, values], dim=1)
        return replace(self, values=values, activation=None)

    def position(self, image: int, pixel: int) -> tuple[int, ...]:
        """The index of a pixel in the original tensor, without the channel."""
        if self.selected is not None:
            image, pixel = divmod(int(self.selected[pixel]), prod(self.shape))
        return (image, *(int(k) for k in np.unravel_index(pixel, self.shape)))


@dataclass(frozen=True, eq=False)
class Sums:
    """The sums that form an overlap.

    Attributes
    ----------
    pixels : Tensor
        Number of pixels.
    reference : Tensor
        Volumes of the reference regions.
    prediction : Tensor
        Volumes of the prediction regions.
    reference_likeliest : Tensor
        Number of pixels at which each reference region is the most probable; for label maps, the
        volumes.
    prediction_likeliest : Tensor
        The same for the prediction regions.
    savings : Tensor
        Savings of every pair of regions.
    """

    pixels: Tensor
    reference: Tensor
    prediction: Tensor
    reference_likeliest: Tensor
    prediction_likeliest: Tensor
    savings: Tensor


# -- interpretation of tensors -------------------------------------------------------------------


def as_activation(activation: object) -> Activation | None:
    """The name of an activation, or None for values that are probabilities."""
    if activation is None or activation in get_args(Activation):
        return activation  # type: ignore[return-value]
    raise InputError(
        f'activation must be "softmax" or "sigmoid" for logits, or None for probabilities, '
        f"found {activation!r}"
    )


def as_batch(
    tensor: object,
    name: str,
    regions: int,
    *,
    ignored: tuple[int, ...] = (),
    activation: Activation | None = None,
) -> Batch:
    """A batch of labels if the tensor holds integers, otherwise of probabilities or logits."""
    if not isinstance(tensor, Tensor):
        raise InputError(f"{name} must be a torch.Tensor, found {type(tensor).__name__}")
    values = tensor.detach().as_subclass(Tensor)
    if values.device.type == "mps":  # MPS does not support float64
        values = values.cpu()
    if values.is_complex() or not values.dim():
        raise InputError(
            f"{name} must hold labels (N, …) or probabilities (N, C, …), found "
            f"{values.dtype} of shape {tuple(values.shape)}"
        )
    if not values.is_floating_point():
        if values.dtype != torch.uint8:
            values = values.to(torch.uint8 if values.dtype == torch.bool else torch.int64)
        shape = tuple(values.shape[1:])
        return Batch(name, values.reshape(len(values), prod(shape)), regions, shape, ignored)
    channels = values.shape[1] if values.dim() > 1 else 0
    if channels != regions and not (channels == 1 and regions == 2):
        content = "logits" if activation else "probabilities"
        raise InputError(
            f"{name} must hold {content} of {regions} regions along axis 1, found shape "
            f"{tuple(values.shape)}. For labels, use an integer type: {name}.long()."
        )
    check_channels(channels, activation, name)
    if ignored:
        raise InputError(
            f"ignore_index={ignored if len(ignored) > 1 else ignored[0]} is a label, but {name} "
            f"holds probabilities. Use a mask instead of ignore_index."
        )
    rough = values.dtype == torch.bfloat16 and activation is None
    shape = tuple(values.shape[2:])
    values = values.to(torch.promote_types(values.dtype, torch.float32))
    values = values.reshape(len(values), channels, prod(shape))
    if rough and channels == regions:
        values = renormalised(values)
    return Batch(name, values, regions, shape, activation=activation)


def check_channels(channels: int, activation: Activation | None, name: str) -> None:
    """Reject an activation that does not fit the number of channels."""
    if activation == "sigmoid" and channels != 1:
        raise InputError(
            f'{name} has {channels} channels, but activation="sigmoid" needs a single channel: '
            f'probabilities of all regions must sum to 1. Use activation="softmax".'
        )
    if activation == "softmax" and channels == 1:
        raise InputError(
            f'{name} has a single channel, whose softmax is 1 everywhere. Use activation="sigmoid".'
        )


def check_mask(mask: object, shape: Sequence[int]) -> Tensor:
    """The mask if it is boolean and has the shape of the batch."""
    if not isinstance(mask, Tensor):
        description = type(mask).__name__
    elif mask.dtype != torch.bool or mask.shape != torch.Size(shape):
        description = f"{mask.dtype} of shape {tuple(mask.shape)}"
    else:
        return mask
    raise InputError(
        f"mask must be a boolean tensor of shape {tuple(shape)}, one value per pixel and no "
        f"channels, found {description}"
    )


def within(mask: Tensor, side: Batch) -> Batch:
    """The pixels where a mask is true, as one image."""
    mask = mask.to(side.values.device).reshape(len(side), -1)
    values = side.values[mask] if side.crisp else side.values.transpose(0, 1)[:, mask]
    return replace(side, values=values[None], selected=mask.flatten().nonzero()[:, 0])


def renormalised(values: Tensor) -> Tensor:
    """Divide probabilities by their sum, if it differs from 1 by bfloat16 rounding only."""
    total = values.sum(dim=1, keepdim=True)
    return torch.where((total - 1).abs() <= ROUGH, values / total, values)


def check_alike(preds: Batch, target: Batch) -> None:
    """Reject a batch whose two sides differ in shape or device."""
    if (len(preds), preds.shape) != (len(target), target.shape):
        remedy = ""
        for side, across in ((preds, target), (target, preds)):
            if side.crisp and side.shape[1:] == across.shape and side.shape[0] == 1:
                remedy = f". Remove the channel axis of the labels: {side.name}.squeeze(1)."
            elif side.crisp and side.shape[1:] == across.shape and side.shape[0] == side.regions:
                remedy = f". Convert one-hot integers to labels: {side.name}.argmax(1)."
        raise InputError(
            f"preds has {len(preds)} images of shape {preds.shape} but target has {len(target)} "
            f"of shape {target.shape}: both must cover the same pixels{remedy}"
        )
    if preds.values.device != target.values.device:
        raise InputError(
            f"preds is on {preds.values.device} and target on {target.values.device}. Move both to "
            f"the same device."
        )


def check_values(preds: Batch, target: Batch) -> bool:
    """Reject invalid labels and probabilities. Return whether any pixel is left to compare."""
    inside = _inside(target)
    for side in (target, preds):
        _check_in_torch(side.probabilities(), inside)
    return bool(inside.any())


def image_of(batch: Batch, names: Sequence[Label] | None) -> Segmentation:
    """A batch of one image as a one-dimensional `Segmentation`."""
    values = batch.values[0].cpu()
    name_of = {k: name for k, name in enumerate(names or ()) if isinstance(name, str)}
    if batch.crisp:
        return Segmentation.from_labels(_array(values), ignore=batch.ignored, names=name_of)
    return replace(_soft_image(batch, values), names=name_of)


def _soft_image(batch: Batch, values: Tensor) -> Segmentation:
    if values.shape[0] < batch.regions:
        values = values.sigmoid() if batch.activation else values
        return Segmentation.from_probabilities(_array(values[0]), axis=None)
    if batch.activation:
        return Segmentation.from_logits(_array(values))
    return Segmentation.from_probabilities(_array(values))


# -- sums ----------------------------------------------------------------------------------------


def sums_of(preds: Batch, target: Batch) -> Sums:
    """Volumes and savings of a batch, computed by the kernels for CPU tensors."""
    if preds.values.device.type != "cpu":
        return sums_in_torch(preds, target)
    if preds.crisp and target.crisp:
        return _counted(preds, target)
    p, q = target.probabilities(), preds.probabilities()
    if not p.crisp and not q.crisp and p.values.dtype != q.values.dtype:
        common = torch.promote_types(p.values.dtype, q.values.dtype)
        p, q = (replace(side, values=side.values.to(common)) for side in (p, q))
    # One thread is enough: the softmax takes most of the time, and torch's threads are still busy.
    arrays = [_array(side.values) for side in (p, q)]
    pixels = 0
    totals: list[NDArray[Any]] = [np.zeros(p.regions), np.zeros(q.regions)]
    totals += [np.zeros(p.regions, np.int64), np.zeros(q.regions, np.int64)]
    totals.append(np.zeros((p.regions, q.regions)))
    for index in range(len(preds)):
        rows = [array[index] for array in arrays]
        inside, sums = (_mixed if p.crisp or q.crisp else _soft)((p, q), rows, index)
        pixels += inside
        for total, part in zip(totals, sums, strict=True):
            total += part
    return Sums(torch.tensor(pixels), *(torch.from_numpy(total) for total in totals))


def uncompiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Exclude a function from compiled graphs, because Numba kernels cannot be traced."""
    # Check first, because importing the compiler takes seconds.
    return torch.compiler.disable(function) if torch.compiler.is_compiling() else function


def overlap_of_sums(
    sums: Sums,
    crisp: tuple[bool, bool],
    labels: tuple[Sequence[Label], Sequence[Label]],
    similarity: Similarity,
) -> Overlap:
    """The overlap of a batch, reference first. Label maps have no empty regions."""
    sides, occupied = [], []
    volumes = sums.reference, sums.prediction
    likeliest = sums.reference_likeliest, sums.prediction_likeliest
    for values, counts, whole, shown in zip(volumes, likeliest, crisp, labels, strict=True):
        array = values.cpu().numpy()
        keys = np.flatnonzero(array) if whole else np.arange(array.size)
        sides.append(
            Regions(
                keys,
                array[keys].astype(np.int64 if whole else np.float64),
                whole,
                {k: label for k, label in enumerate(shown) if isinstance(label, str)},
                likeliest=None if whole else counts.cpu().numpy(),
                numbers={k: k for k in range(array.size)},
            )
        )
        occupied.append(keys)
    savings = sums.savings.cpu().numpy()[np.ix_(*occupied)]
    if all(crisp):
        savings = savings.astype(np.int64)
    rows, columns = savings.nonzero()
    pairs = Pairs(rows, columns, savings[rows, columns])
    return Overlap(similarity, int(sums.pixels), sides[0], sides[1], pairs)


def _counted(preds: Batch, target: Batch) -> Sums:
    """The sums of two batches of label maps."""
    from probdice.engine import kernels

    values = [target.values, preds.values]
    if values[0].dtype != values[1].dtype:
        values = [side.to(torch.int64) for side in values]
    p, q = (_array(side).reshape(-1) for side in values)
    tables = np.zeros((kernels.class_counts.TABLES, target.regions, preds.regions), np.int64)
    unknown = kernels.class_counts.count(p, q, np.array(target.ignored, np.int64), tables)
    if unknown >= 0:
        image, pixel = divmod(int(unknown), max(target.values.shape[1], 1))
        known = 0 <= int(p[unknown]) < target.regions or int(p[unknown]) in target.ignored
        side = preds if known else target
        raise _unknown(side, int(q[unknown] if known else p[unknown]), image, pixel)
    return _from_counts(torch.from_numpy(tables.sum(axis=0)), target.ignored)


def _from_counts(table: Tensor, ignored: Sequence[int]) -> Sums:
    for label in ignored:
        if 0 <= label < len(table):
            table[label] = 0
    rows, columns, real = table.sum(dim=1), table.sum(dim=0), table.to(torch.float64)
    return Sums(table.sum(), real.sum(dim=1), real.sum(dim=0), rows, columns, real)


def _mixed(
    sides: tuple[Batch, Batch], rows: list[NDArray[Any]], index: int
) -> tuple[int, tuple[NDArray[Any], ...]]:
    """Number of pixels and sums of one image: a label map and probabilities, in either order."""
    from probdice.engine import kernels

    crisp = 0 if sides[0].crisp else 1
    labels, soft = rows[crisp], rows[1 - crisp]
    side, across = sides[crisp], sides[1 - crisp]
    codes, inside = np.empty(labels.size, np.int32), np.empty(labels.size, np.int64)
    ignored = np.array(side.ignored, np.int64)
    pixels, unknown = kernels.class_counts.codes(labels, ignored, side.regions, codes, inside)
    if unknown >= 0:
        raise _unknown(side, int(labels[unknown]), index, int(unknown))
    if pixels < labels.size:
        soft = np.take(soft, inside[:pixels], axis=1)
    counts, volumes = np.zeros(side.regions, np.int64), np.zeros(across.regions)
    likeliest = np.zeros(across.regions, np.int64)
    savings = np.zeros((side.regions, across.regions))
    sums = counts, volumes, likeliest, savings
    if not kernels.labels.pairs_absolute(codes[:pixels], soft, 0, *sums):
        _reject(across, soft, index, inside)
    if crisp == 0:
        return pixels, (counts, volumes, counts, likeliest, savings)
    return pixels, (volumes, counts, likeliest, counts, savings.T)


def _soft(
    sides: tuple[Batch, Batch], rows: list[NDArray[Any]], index: int
) -> tuple[int, tuple[NDArray[Any], ...]]:
    """Number of pixels and sums of one image: probabilities on both sides."""
    from probdice.engine import kernels

    p, q = rows
    volumes = np.zeros(len(p)), np.zeros(len(q))
    likeliest = np.zeros(len(p), np.int64), np.zeros(len(q), np.int64)
    sums = *volumes, *likeliest, np.zeros((len(p), len(q)))
    valid = kernels.absolute.pairs(p, 0, q, 0, p.shape[1], *sums)
    for side, values, side_valid in zip(sides, rows, valid, strict=True):
        if not side_valid:
            _reject(side, values, index)
    return p.shape[1], sums


def sums_in_torch(preds: Batch, target: Batch) -> Sums:
    """`sums_of` on the device of the tensors."""
    p, q = target.probabilities(), preds.probabilities()
    inside = _inside(p)
    for side in (p, q):
        _check_in_torch(side, inside)
    if p.crisp and q.crisp:
        joint = (p.values.to(torch.int64) * q.regions + q.values)[inside]
        table = torch.bincount(joint, minlength=p.regions * q.regions)
        return _from_counts(table.reshape(p.regions, q.regions), ())
    if p.crisp:
        q = replace(q, values=torch.where(inside[:, None], q.values, 0))
    savings = _minima(q, p.values).T if q.crisp else _minima(p, q.values)
    volumes = _volumes(p, inside), _volumes(q, inside)
    likeliest = _likeliest(p, inside), _likeliest(q, inside)
    return Sums(inside.sum(), *volumes, *likeliest, savings)


def _inside(target: Batch) -> Tensor:
    """Which pixels are included."""
    values = target.values if target.crisp else target.values[:, 0]
    inside = torch.ones_like(values, dtype=torch.bool)
    for label in target.ignored:
        inside &= values != label
    return inside


def _minima(side: Batch, across: Tensor) -> Tensor:
    """Σ min(p_i, q_j), one region of the first side at a time."""
    rows = []
    for i in range(side.regions):
        row = (side.values == i).to(across.dtype) if side.crisp else side.values[:, i]
        rows.append(torch.minimum(row[:, None], across).sum(dim=(0, 2), dtype=torch.float64))
    return torch.stack(rows)


def _volumes(side: Batch, inside: Tensor) -> Tensor:
    if side.crisp:
        counts = torch.bincount(side.values[inside].to(torch.int64), minlength=side.regions)
        return counts.to(torch.float64)
    return side.values.sum(dim=(0, 2), dtype=torch.float64)


def _likeliest(side: Batch, inside: Tensor) -> Tensor:
    """Number of pixels at which each region is the most probable, as the kernels count it."""
    from probdice.engine.kernels.rows import TIED

    if side.crisp:
        return _volumes(side, inside).to(torch.int64)
    tied = side.values.amax(dim=1, keepdim=True) - side.values <= TIED
    return (tied & inside[:, None]).sum(dim=(0, 2))


# -- invalid values ------------------------------------------------------------------------------


def _check_in_torch(side: Batch, inside: Tensor) -> None:
    values = side.values
    if side.crisp:
        bad = (values < 0) | (values >= side.regions)
    else:
        bad = ~((values.sum(dim=1) - 1).abs() <= TOLERANCE) | (values < 0).any(dim=1)
    bad &= inside
    if not bool(bad.any()):
        return
    image, pixel = (int(place) for place in bad.nonzero()[0])
    if side.crisp:
        raise _unknown(side, int(values[image, pixel]), image, pixel)
    pixels = inside[image].nonzero()[:, 0]
    _reject(side, _array(values[image, :, pixels].cpu()), image, _array(pixels.cpu()))


def _unknown(side: Batch, label: int, image: int, pixel: int) -> InputError:
    """The error for a label outside the regions."""
    option = "num_classes" if side.name == "target" else "num_clusters"
    ignore = ", or ignore the label with ignore_index" if side.name == "target" else ""
    return InputError(
        f"{side.name}: label {label} at pixel {side.position(image, pixel)}, but {side.regions} "
        f"regions have the labels 0 to {side.regions - 1}. Set {option} to the number of "
        f"regions{ignore}."
    )


def _reject(
    side: Batch, rows: NDArray[Any], image: int, inside: NDArray[Any] | None = None
) -> None:
    """Raise an error if the probabilities of an image are invalid."""
    fault = examine_values(rows, "error")
    if fault is None:  # the kernel also reports negative zeros, which are valid
        return
    pixel = fault.first if inside is None else int(inside[fault.first])
    problem, remedy = {
        "infinite": (f"found {fault.value:g}", "Values must be finite."),
        "negative": (f"probability {fault.value:g}", 'For logits, use activation="softmax".'),
        "above": (f"probability {fault.value:g}", 'For logits, use activation="softmax".'),
        "sum": (f"probabilities sum to {fault.value:.6g}", "Divide them by their sum."),
    }[fault.kind]
    if side.name == "target" and "logits" in remedy:
        remedy = "Probabilities must be between 0 and 1."
    raise InputError(f"{side.name}: {problem} at pixel {side.position(image, pixel)}. {remedy}")


def _array(values: Tensor) -> NDArray[Any]:
    """A CPU tensor as an array, copied only if it is not contiguous."""
    array: NDArray[Any] = values.contiguous().numpy()
    return array
