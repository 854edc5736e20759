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
    surface_shapes,
    surfaces,
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
    "surface_shapes",
    "surfaces",
    "watch_compiler",
]
