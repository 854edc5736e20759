"""One scale for two sides: a label map beside percentages keeps its labels."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace

from probdice.errors import InputError
from probdice.values import FORGIVEN
from probdice.files import read
from probdice.files.lazy import Scaled, blocks
from probdice.segmentation import Segmentation, Sums

__all__ = ["read_scaled"]


def read_scaled(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    scale: float,
    sums: Sums,
    ignore: Iterable[int] | int,
) -> tuple[Segmentation, bool]:
    """Read a segmentation and divide it by `scale` if it needs that; whether it did.

    It does not where it is a label map or its values stay within 1.
    """
    try:
        segmentation = read(path, sums=sums, ignore=ignore)
    except InputError:  # several integers per pixel mean nothing without a scale
        return read(path, scale=scale, sums=sums, ignore=ignore), True
    if segmentation.crisp or not _exceeds_one(segmentation):
        return segmentation, False
    return replace(segmentation, array=Scaled(segmentation.array, 1.0, 0.0, scale)), True


def _exceeds_one(segmentation: Segmentation) -> bool:
    return any(bool((block > 1 + FORGIVEN).any()) for block in blocks(segmentation.array))
