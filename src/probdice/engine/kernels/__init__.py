"""Compiled loops over pixels: contiguous arrays in, sums out. Nothing above is known here."""

from probdice.engine.kernels import (
    absolute,
    aitchison,
    calibration,
    distribution,
    information,
    known,
    labels,
    moments,
)
from probdice.engine.kernels._jit import watch_compiler

__all__ = [
    "absolute",
    "aitchison",
    "calibration",
    "distribution",
    "information",
    "known",
    "labels",
    "moments",
    "watch_compiler",
]
