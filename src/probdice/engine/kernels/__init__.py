"""Compiled loops over the pixels of contiguous arrays.

Within probdice, kernels import only `probdice.compiler` and each other.
"""

from probdice.compiler.jit import watch_compiler
from probdice.engine.kernels import (
    absolute,
    aitchison,
    distribution,
    forecast,
    information,
    label_rows,
    labels,
    moments,
    surface_search,
    surface_shapes,
    surface_summary,
    surfaces,
)

__all__ = [
    "absolute",
    "aitchison",
    "distribution",
    "forecast",
    "information",
    "label_rows",
    "labels",
    "moments",
    "surface_search",
    "surface_shapes",
    "surface_summary",
    "surfaces",
    "watch_compiler",
]
