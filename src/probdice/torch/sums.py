"""Sums over the pixels of a batch, and the overlap computed from these sums.

The engine computes the sums of CPU tensors. Tensors on other devices stay there: torch computes the
same sums on the device, and only the sums are copied to the CPU.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from math import prod

import numpy as np
import torch
from torch import Tensor

from probdice.data.segmentation import Segmentation
from probdice.engine.blocks import Blocks
from probdice.engine.executors import run_pass
from probdice.engine.overlap_pass import CheckedOverlap, labels_overlap, overlap_pass
from probdice.engine.pair import SegmentationPair
from probdice.method.overlap import Overlap, Pairs, Regions
from probdice.method.region_labels import Label
from probdice.method.sides import Both
from probdice.method.similarity import Absolute, Similarity
from probdice.torch.batches import Batch, check_side, compared_pixels, reject

FEW_PIXELS = 2**14  # in the smallest block; one call takes about as long as copying them

__all__ = ["Sums", "images_of", "overlap_of", "sums_in_torch", "sums_of"]


@dataclass(frozen=True, eq=False)
class Sums:
    """The sums from which an overlap is computed.

    Attributes
    ----------
    pixels : Tensor
        Number of pixels.
    reference_volumes : Tensor
        Volumes of the reference regions.
    prediction_volumes : Tensor
        Volumes of the prediction regions.
    reference_likeliest : Tensor
        Number of pixels at which each reference region is the most probable; for label maps, the
        volumes.
    prediction_likeliest : Tensor
        The same counts for the prediction regions.
    savings : Tensor
        Savings (Σ min(p, q)) of every pair of regions.
    """

    pixels: Tensor
    reference_volumes: Tensor
    prediction_volumes: Tensor
    reference_likeliest: Tensor
    prediction_likeliest: Tensor
    savings: Tensor

    @classmethod
    def zeros(cls, regions: tuple[int, int]) -> "Sums":
        """Return sums of 0, to which the sums of batches are added."""
        counts = [torch.zeros(count, dtype=torch.int64) for count in regions]
        volumes = [torch.zeros(count, dtype=torch.float64) for count in regions]
        pixels = torch.zeros((), dtype=torch.int64)
        savings = torch.zeros(regions, dtype=torch.float64)
        return cls(pixels, volumes[0], volumes[1], counts[0], counts[1], savings)

    def by_name(self) -> dict[str, Tensor]:
        """Return the sums in a dictionary whose keys are the names of the attributes."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    def overlap(
        self,
        crisp: tuple[bool, bool],
        labels: tuple[Sequence[Label], Sequence[Label]],
        similarity: Similarity,
    ) -> Overlap:
        """Return the overlap. Empty regions of label maps are omitted.

        In `crisp` and `labels`, the reference comes first.
        """
        sides = []
        volumes = self.reference_volumes, self.prediction_volumes
        likeliest = self.reference_likeliest, self.prediction_likeliest
        for values, counts, is_crisp, side_labels in zip(
            volumes, likeliest, crisp, labels, strict=True
        ):
            array = values.cpu().numpy()
            keys = np.flatnonzero(array) if is_crisp else np.arange(array.size)
            sides.append(
                Regions(
                    keys,
                    array[keys].astype(np.int64 if is_crisp else np.float64),
                    is_crisp,
                    {k: label for k, label in enumerate(side_labels) if isinstance(label, str)},
                    likeliest=None if is_crisp else counts.cpu().numpy(),
                    numbers={k: k for k in range(array.size)},
                )
            )
        savings = self.savings.cpu().numpy()[np.ix_(sides[0].keys, sides[1].keys)]
        if all(crisp):
            savings = savings.astype(np.int64)
        rows, columns = savings.nonzero()
        pairs = Pairs(rows, columns, savings[rows, columns])
        return Overlap(similarity, int(self.pixels), sides[0], sides[1], pairs)


def sums_of(preds: Batch, target: Batch, mask: Tensor | None = None) -> Sums:
    """Return the sums over the pixels of a batch inside the mask.

    The mask has the shape (images, pixels).
    """
    if preds.values.device.type != "cpu":
        return sums_in_torch(preds, target, mask)
    overlap = overlap_of(preds.probabilities(), target.probabilities(), mask, Absolute())
    if overlap is None:
        return Sums.zeros((target.regions, preds.regions))
    volumes, likeliest = [], []
    sides = overlap.reference, overlap.prediction
    for regions, count in zip(sides, (target.regions, preds.regions), strict=True):
        volumes.append(np.zeros(count))
        likeliest.append(np.zeros(count, np.int64))
        is_occupied = regions.volumes > 0  # an ignored label has no pixels; it may be out of range
        keys, pixels = regions.keys[is_occupied], regions.likeliest
        volumes[-1][keys] = regions.volumes[is_occupied]
        likeliest[-1][keys] = (regions.volumes if pixels is None else pixels)[is_occupied]
    savings = np.zeros((target.regions, preds.regions))
    overlapping = overlap.pairs
    savings[sides[0].keys[overlapping.rows], sides[1].keys[overlapping.columns]] = (
        overlapping.savings
    )
    arrays = (*volumes, *likeliest, savings)
    return Sums(torch.tensor(overlap.pixels), *map(torch.from_numpy, arrays))


def overlap_of(
    preds: Batch, target: Batch, mask: Tensor | None, similarity: Similarity
) -> Overlap | None:
    """Return the overlap of a batch, computed by the engine; None if all pixels are excluded."""
    if mask is None and not target.ignored_labels and target.crisp and preds.crisp:
        p, q = (side.values.reshape(-1).numpy() for side in (target, preds))
        if not p.size:
            return None
        result = CheckedOverlap(labels_overlap(Both({}, {}), p, q, similarity))
    else:
        images = images_of(preds, target, mask)
        # The rows of one image are contiguous; a block of several images would be copied.
        block_pixels = max(prod(target.shape), FEW_PIXELS)
        blocks = Blocks(
            images.reference, images.prediction, mask=images.mask, max_pixels=block_pixels
        )
        if not blocks.blocks:
            return None
        result = run_pass(overlap_pass(similarity), blocks, torch.get_num_threads())
        for side, fault in zip((target, preds), result.faults, strict=True):
            if fault is not None:
                reject(side, fault, *blocks.position_of(fault.first))
    overlap = result.overlap
    for side, regions in ((target, overlap.reference), (preds, overlap.prediction)):
        occupied_keys = regions.keys[regions.volumes > 0]
        if occupied_keys.size and not 0 <= occupied_keys[0] <= occupied_keys[-1] < side.regions:
            check_side(side, compared_pixels(target, mask))
    return overlap if overlap.pixels else None


def images_of(
    preds: Batch,
    target: Batch,
    mask: Tensor | None,
    names: tuple[Sequence[Label], Sequence[Label]] = ((), ()),
) -> SegmentationPair:
    """Return both sides of a batch as images whose first axis is the batch axis."""
    reference, prediction = _segmentation(target, names[0]), _segmentation(preds, names[1])
    array = None if mask is None else mask.cpu().numpy()
    return SegmentationPair(reference, prediction, array, torch.get_num_threads())


def _segmentation(batch: Batch, names: Sequence[Label]) -> Segmentation:
    """Return a batch as a segmentation. The engine computes the softmax of logits."""
    name_of = {k: name for k, name in enumerate(names) if isinstance(name, str)}
    has_logits = batch.activation == "softmax"
    array = (batch if has_logits else batch.probabilities()).values.contiguous().cpu().numpy()
    if batch.crisp:
        return Segmentation.from_labels(array, ignore=batch.ignored_labels, names=name_of)
    create = Segmentation.from_logits if has_logits else Segmentation.from_probabilities
    return replace(create(array, axis=1), names=name_of)


def sums_in_torch(preds: Batch, target: Batch, mask: Tensor | None = None) -> Sums:
    """Return the sums of a batch, computed on the device of the tensors."""
    p, q = target.probabilities(), preds.probabilities()
    inside = compared_pixels(p, mask)
    for side in (p, q):
        check_side(side, inside)
    if p.crisp and q.crisp:
        joint = (p.values.to(torch.int64) * q.regions + q.values)[inside]
        table = torch.bincount(joint, minlength=p.regions * q.regions)
        table = table.reshape(p.regions, q.regions)
        rows, columns, real = table.sum(dim=1), table.sum(dim=0), table.to(torch.float64)
        return Sums(table.sum(), real.sum(dim=1), real.sum(dim=0), rows, columns, real)
    p, q = (
        side if side.crisp else replace(side, values=torch.where(inside[:, None], side.values, 0))
        for side in (p, q)
    )
    savings = _minima(q, p.values).T if q.crisp else _minima(p, q.values)
    volumes = _volumes(p, inside), _volumes(q, inside)
    likeliest = _likeliest(p, inside), _likeliest(q, inside)
    return Sums(inside.sum(), *volumes, *likeliest, savings)


def _minima(side: Batch, other_values: Tensor) -> Tensor:
    """Return Σ min(p_i, q_j) of all pairs, computed for one region of `side` at a time."""
    rows = []
    for i in range(side.regions):
        row = (side.values == i).to(other_values.dtype) if side.crisp else side.values[:, i]
        rows.append(torch.minimum(row[:, None], other_values).sum(dim=(0, 2), dtype=torch.float64))
    return torch.stack(rows)


def _volumes(side: Batch, inside: Tensor) -> Tensor:
    if side.crisp:
        counts = torch.bincount(side.values[inside].to(torch.int64), minlength=side.regions)
        return counts.to(torch.float64)
    return side.values.sum(dim=(0, 2), dtype=torch.float64)


def _likeliest(side: Batch, inside: Tensor) -> Tensor:
    """Count the pixels at which each region is the most probable.

    A pixel with a tie is counted for every tied region.
    """
    from probdice.engine.kernels.rows import TIE_TOLERANCE

    if side.crisp:
        return _volumes(side, inside).to(torch.int64)
    is_tied = side.values.amax(dim=1, keepdim=True) - side.values <= TIE_TOLERANCE
    return (is_tied & inside[:, None]).sum(dim=(0, 2))
