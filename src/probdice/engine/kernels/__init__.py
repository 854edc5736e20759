"""Compiled loops over pixels: contiguous arrays in, sums out. Nothing above is known here."""

from probdice.engine.kernels import (
    absolute,
    aitchison,
    distribution,
    information,
    known,
    labels,
    moments,
)

__all__ = ["absolute", "aitchison", "distribution", "information", "known", "labels", "moments"]
