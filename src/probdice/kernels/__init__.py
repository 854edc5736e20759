"""Compiled loops over pixels: contiguous arrays in, sums out. Nothing above is known here."""

from probdice.kernels import absolute, aitchison, labels
from probdice.kernels.rows import TOLERANCE

__all__ = ["TOLERANCE", "absolute", "aitchison", "labels"]
