"""Compiled loops over pixels: contiguous arrays in, sums out. They know nothing of segmentations."""

from probdice.kernels import absolute, aitchison, labels
from probdice.kernels.rows import TOLERANCE

__all__ = ["TOLERANCE", "absolute", "aitchison", "labels"]
