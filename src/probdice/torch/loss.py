"""`RegionDiceLoss`: a Dice loss whose minimum is exactly at the target, even for soft targets."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from probdice.data.segmentation import several_labels
from probdice.errors import InputError
from probdice.method.similarity import Aitchison, Similarity, as_similarity
from probdice.torch.batches import Activation, check_channels, one_of, uncompiled
from probdice.torch.channel_matching import align, target_regions
from probdice.torch.measures import (
    aitchison_similarity,
    dice_loss,
    foreground_loss,
    mean_loss,
    region_sums,
    score_loss,
)
from probdice.torch.targets import average_to, read_target

__all__ = ["RegionDiceLoss", "region_dice_loss"]

SIMILARITIES = "absolute", "aitchison"  # similarities with a loss

LossMeasure = Literal["dice", "score", "foreground"]
ChannelMatch = Literal["labels", "overlap"]
Reduction = Literal["mean", "sum", "none"]


class RegionDiceLoss(nn.Module):
    """A loss that is 1 minus the Dice or 1 minus the score, for labels or probabilities as targets.

    The absolute loss uses ``Σ|p − q|``, so its minimum is exactly where prediction and target are
    equal. (The loss ``1 − 2 Σpq / (Σp + Σq)`` does not have this property: for a target of 0.5, its
    minimum is at a prediction of 1.)

    Parameters
    ----------
    similarity : {"absolute", "aitchison"}, Absolute or Aitchison, optional
        Aitchison compares the centred log-ratios of prediction and target. The log-ratios of the
        prediction are computed from the logits. Aitchison requires ``measure="score"`` and an
        activation. A target of labels also requires a floor: ``Aitchison(floor=1e-3)``. Without a
        floor, the similarity is 0 at pixels where a soft target contains a zero.
    measure : {"dice", "score", "foreground"}, optional
        The measure that is subtracted from 1:

        - ``"dice"``: the mean over regions of ``1 − Σ|p − q| / (Σp + Σq)``. A region that is absent
          from the target contributes its mean predicted probability to the loss, because its Dice
          is 0 for any prediction and has no gradient.
        - ``"score"``: the mean similarity over the pixels.
        - ``"foreground"``: the pooled Dice of all regions except the background. If the target has
          no foreground, the loss is the mean predicted probability of the foreground. Requires
          `background`.
    match : {"labels", "overlap"}, optional
        ``"labels"``: channel k is class k. ``"overlap"``: channels have no fixed classes. They are
        matched one to one to target regions, per image or per batch, so that the total overlap is
        as large as possible. With ``measure="dice"``, an unmatched target region has Dice 0, and an
        unmatched channel contributes its mean probability. With the other measures, every unmatched
        region or channel is compared with an empty region.
    activation : {"softmax", "sigmoid"} or None, optional
        Converts `preds` to probabilities. Use ``"sigmoid"`` for a single foreground channel, and
        None for probabilities.
    batch : bool, optional
        Whether to compute a single loss from sums over the whole batch, instead of one loss per
        image.
    background : int, optional
        A class that the measures ``"dice"`` and ``"foreground"`` exclude. With
        ``match="overlap"``, this class is matched to the channel of the same number. With
        ``measure="score"``, every pixel is included.
    ignore_index : int or iterable of int, optional
        Labels of the target whose pixels are excluded. Soft targets have no labels, so use a mask
        to exclude their pixels.
    class_weights : sequence of float or Tensor, optional
        Weight of every class in the mean over regions. Requires ``measure="dice"`` and
        ``match="labels"``.
    reduction : {"mean", "sum", "none"}, optional
        How the losses of the images are reduced to a single loss. ``"none"`` returns one loss per
        image or, with ``batch=True``, a single loss for the whole batch.

    Notes
    -----
    `forward` accepts `preds` (N, C, …) and a `target` of labels (N, …) or probabilities (N, C, …).
    A single floating-point channel belongs to class 1, and class 0 is its complement. An image
    whose pixels are all excluded has a loss of 0. Sums of float16 and bfloat16 tensors are computed
    in float32. Because a check synchronises with the device, probabilities are checked
    only with ``match="overlap"``, and labels are checked only on the CPU.

    For deep supervision, `preds` is a list of outputs from fine to coarse. The losses of the
    outputs have the weights 1, ½, ¼, …, divided by the sum of the weights. The target is a list of
    the same length, or one tensor. A single tensor is averaged down to the size of each output, so
    labels become probabilities. A coarse pixel is included if any fine pixel inside it is included.

    Examples
    --------
    >>> import torch
    >>> from probdice.torch import RegionDiceLoss
    >>> target = torch.tensor([[[0.5, 0.2], [0.5, 0.8]]])  # one image, two classes, two pixels
    >>> round(RegionDiceLoss()(target.log(), target).item(), 6)
    0.0
    >>> certain = torch.tensor([[[0.0, 0.0], [1.0, 1.0]]])
    >>> loss = RegionDiceLoss(activation=None, reduction="none")
    >>> loss(certain, target)  # (0.7 / 0.7 + 0.7 / 3.3) / 2
    tensor([0.6061])
    """

    class_weights: Tensor | None

    def __init__(
        self,
        *,
        similarity: str | Similarity = "absolute",
        measure: LossMeasure = "dice",
        match: ChannelMatch = "labels",
        activation: Activation = "softmax",
        batch: bool = False,
        background: int | None = None,
        ignore_index: Iterable[int] | int | None = None,
        class_weights: Sequence[float] | Tensor | None = None,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__()
        self.similarity = as_similarity(similarity)
        self.measure = one_of(LossMeasure, measure, "measure")
        self.match = one_of(ChannelMatch, match, "match")
        self.activation = one_of(Activation, activation, "activation")
        self.batch = bool(batch)
        self.background = background
        self.ignored = () if ignore_index is None else several_labels(ignore_index, "ignore_index")
        weights = None if class_weights is None else _as_weights(class_weights, background)
        self.register_buffer("class_weights", weights, persistent=False)
        self.reduction = one_of(Reduction, reduction, "reduction")
        self._check_options()

    def _check_options(self) -> None:
        if self.background is not None and (
            type(self.background) is not int or self.background < 0
        ):
            raise InputError(
                f"background must be a class index (0, 1, …), found {self.background!r}"
            )
        if self.measure == "foreground" and self.background is None:
            raise InputError('measure="foreground" requires a background, such as background=0')
        if self.class_weights is not None and (self.measure, self.match) != ("dice", "labels"):
            raise InputError('class_weights require measure="dice" and match="labels"')
        if self.similarity.name not in SIMILARITIES:
            raise InputError(f"similarity must be absolute or aitchison, found {self.similarity}")
        if not self.similarity.separable:
            if self.measure != "score":
                raise InputError(
                    f'similarity {self.similarity} requires measure="score", found {self.measure!r}'
                )
            if self.activation is None:
                raise InputError(
                    f"similarity {self.similarity} requires logits. For positive probabilities, "
                    f'pass preds.log() with activation="softmax".'
                )

    def extra_repr(self) -> str:
        """Return the options for `repr`."""
        weights = None if self.class_weights is None else self.class_weights.tolist()
        options = {
            "similarity": str(self.similarity),
            "measure": self.measure,
            "match": self.match,
            "activation": self.activation,
            "batch": self.batch,
            "background": self.background,
            "ignore_index": self.ignored or None,
            "class_weights": weights,
            "reduction": self.reduction,
        }
        return ", ".join(f"{name}={value!r}" for name, value in options.items())

    def forward(
        self,
        preds: Tensor | Sequence[Tensor],
        target: Tensor | Sequence[Tensor],
        mask: Tensor | Sequence[Tensor] | None = None,
    ) -> Tensor:
        """Return the loss of a batch.

        Parameters
        ----------
        preds : Tensor or sequence of Tensor
            Logits or probabilities (N, C, …), or a sequence of such outputs from fine to coarse.
        target : Tensor or sequence of Tensor
            Labels (N, …) or probabilities (N, C, …); one tensor per output, or one tensor for all
            outputs.
        mask : Tensor of bool, or sequence of them, optional
            The pixels (N, …) to include. Values elsewhere are ignored.

        Returns
        -------
        Tensor
            A scalar or, with ``reduction="none"``, one loss per image (one element in total with
            ``batch=True``).
        """
        if isinstance(preds, Tensor):
            losses = self._losses(preds, target, mask)
        else:
            losses = self._weighted_losses(preds, target, mask)
        if self.reduction == "none":
            return losses
        return losses.mean() if self.reduction == "mean" else losses.sum()

    def _weighted_losses(self, outputs: Sequence[Tensor], target: Any, mask: Any) -> Tensor:
        """Return the weighted mean loss of all outputs; each weight is half the previous weight."""
        targets = _one_per_output(target, len(outputs), "target")
        masks = _one_per_output(mask, len(outputs), "mask")
        resize = isinstance(target, Tensor)
        weights = [0.5**k / (2 - 0.5 ** (len(outputs) - 1)) for k in range(len(outputs))]
        losses = [
            weight * self._losses(*output, resize=resize)
            for weight, *output in zip(weights, outputs, targets, masks, strict=True)
        ]
        return torch.stack(losses).sum(dim=0)

    def _losses(self, preds: Tensor, target: Any, mask: Any, *, resize: bool = False) -> Tensor:
        """Return one loss per image, or one loss for the batch."""
        z, q, inside = self._read(preds, target, mask, resize)
        unmatched = q[:, :0]
        if self.match == "overlap":
            q, unmatched = self._align_target(z, q, inside, preds.shape[2:])
        pixels = q.new_full((len(q),), q.shape[2])
        if inside is not None:
            pixels = inside.sum(dim=1).to(q.dtype)
        if not self.similarity.separable:
            floor = self.similarity.parameters["floor"]
            f = aitchison_similarity(z, q, unmatched, floor)
            return mean_loss(f, inside, pixels, self.batch)
        p = self._probabilities(z)
        p = p if inside is None else p * inside[:, None]
        sums = region_sums(p, q, unmatched, pixels, self.batch)
        if self.measure == "score":
            return score_loss(sums)
        loss_of_regions = dice_loss if self.measure == "dice" else foreground_loss
        return loss_of_regions(sums, self._region_weights(p))

    def _read(
        self, preds: Tensor, target: Any, mask: Any, resize: bool
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return logits or probabilities, the target, and the mask (None to include all pixels).

        The logits or probabilities have the axes (images, channels, pixels), and the target has the
        axes (images, regions, pixels).
        """
        classes = self._number_of_classes(preds)
        if self.similarity == Aitchison() and not target.is_floating_point():
            raise InputError(
                "target contains labels, so its probabilities are 0 and 1, and the Aitchison "
                "distance is infinite. Use similarity=Aitchison(floor=1e-3)."
            )
        q, inside = read_target(
            target,
            mask,
            axes=preds.dim() - 2,
            regions=classes if self.match == "labels" else None,
            ignored_labels=self.ignored,
            dtype=torch.promote_types(preds.dtype, torch.float32),
        )
        shape = preds.shape[2:]
        if resize and q.shape[2:] != shape:
            q, inside = average_to(q, inside, shape)
        if q.shape[0] != preds.shape[0] or q.shape[2:] != shape:
            raise InputError(
                f"preds has shape {tuple(preds.shape)} but target has shape "
                f"{tuple(target.shape)}: both must cover the same pixels"
            )
        z, q = (values.to(q.dtype).reshape(*values.shape[:2], -1) for values in (preds, q))
        if inside is not None:
            inside = inside.reshape(len(q), -1)
            # Mask before the activation, whose gradient would propagate a NaN.
            z, q = (torch.where(inside[:, None], values, 0) for values in (z, q))
        if z.shape[1] < classes:  # one foreground channel: softmax of (0, z) is sigmoid of z
            z = torch.cat([torch.zeros_like(z) if self.activation else 1 - z, z], dim=1)
        return z, q, inside

    def _probabilities(self, values: Tensor) -> Tensor:
        return values.softmax(dim=1) if self.activation else values

    def _align_target(
        self, z: Tensor, q: Tensor, inside: Tensor | None, shape: Sequence[int]
    ) -> tuple[Tensor, Tensor]:
        """Return the target in the order of the channels, and its unmatched regions."""
        regions = uncompiled(target_regions)(
            self._probabilities(z.detach()),
            q.detach(),
            inside,
            tuple(shape),
            similarity=self.similarity,
            background=self.background,
            batch=self.batch,
        )
        return align(q, regions)

    def _region_weights(self, p: Tensor) -> Tensor:
        """Return the weight of every channel; 0 for the background."""
        weights = torch.ones_like(p[0, :, 0])
        if self.class_weights is not None:
            weights = weights * self.class_weights
        if self.background is not None:
            channels = torch.arange(len(weights), device=weights.device)
            weights = torch.where(channels == self.background, 0, weights)
        return weights

    def _number_of_classes(self, preds: Tensor) -> int:
        """Return the number of classes: the number of channels, or two for a single channel."""
        if not preds.is_floating_point() or preds.dim() < 2:
            raise InputError(
                f"preds must contain floating-point logits or probabilities (N, C, …), found "
                f"{preds.dtype} of shape {tuple(preds.shape)}"
            )
        check_channels(preds.shape[1], self.activation, "preds")
        classes = max(preds.shape[1], 2)
        if self.background is not None and self.background >= classes:
            raise InputError(
                f"background={self.background} is not a class: preds has the classes 0 to "
                f"{classes - 1}"
            )
        if self.class_weights is not None and len(self.class_weights) != classes:
            raise InputError(
                f"class_weights must be {classes} numbers, one per class, found "
                f"{len(self.class_weights)}"
            )
        return classes


def region_dice_loss(
    preds: Tensor | Sequence[Tensor],
    target: Tensor | Sequence[Tensor],
    mask: Tensor | Sequence[Tensor] | None = None,
    *,
    similarity: str | Similarity = "absolute",
    measure: LossMeasure = "dice",
    match: ChannelMatch = "labels",
    activation: Activation = "softmax",
    batch: bool = False,
    background: int | None = None,
    ignore_index: Iterable[int] | int | None = None,
    class_weights: Sequence[float] | Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Compute the loss of `RegionDiceLoss` in one function call.

    Parameters
    ----------
    preds, target, mask
        As in `RegionDiceLoss.forward`.
    similarity, measure, match, activation, batch, background
        As in `RegionDiceLoss`.
    ignore_index, class_weights, reduction
        As in `RegionDiceLoss`.

    Returns
    -------
    Tensor
        As in `RegionDiceLoss.forward`.

    Examples
    --------
    >>> import torch
    >>> from probdice.torch import region_dice_loss
    >>> probabilities = torch.tensor([[[0.5, 0.25], [0.5, 0.75]]])
    >>> region_dice_loss(probabilities, torch.tensor([[0, 1]]), measure="score", activation=None)
    tensor(0.3750)
    """
    loss = RegionDiceLoss(
        similarity=similarity,
        measure=measure,
        match=match,
        activation=activation,
        batch=batch,
        background=background,
        ignore_index=ignore_index,
        class_weights=class_weights,
        reduction=reduction,
    )
    return loss(preds, target, mask)


def _as_weights(weights: Sequence[float] | Tensor, background: int | None) -> Tensor:
    """Check class weights and convert them to a tensor."""
    tensor = torch.as_tensor(weights, dtype=torch.float32).detach().clone()
    foreground_weights = [
        float(weight) for k, weight in enumerate(tensor.tolist()) if k != background
    ]
    if (
        tensor.dim() != 1
        or min(foreground_weights, default=-1) < 0
        or not sum(foreground_weights) > 0
    ):
        raise InputError(
            f"class_weights must be non-negative numbers, and positive for at least one class "
            f"other than the background, found {weights!r}"
        )
    return tensor


def _one_per_output(values: Any, count: int, name: str) -> Sequence[Any]:
    """Return one target or mask for each of several outputs."""
    if values is None or isinstance(values, Tensor):
        return [values] * count
    if len(values) != count:
        raise InputError(
            f"{name} must be one tensor, or {count} tensors for {count} outputs of preds, "
            f"found {len(values)}"
        )
    return values
