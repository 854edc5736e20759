"""Synthetic segmentations: phantoms, degradations, and a demonstration pair.

All functions are deterministic: equal arguments, including the seed, give equal arrays.

>>> from probdice import synthesis
>>> reference = synthesis.brain_section((48, 48))
>>> prediction = synthesis.noise(synthesis.deform(reference, 2.0), 0.5)
"""

from probdice.synthesis.degradations import (
    DEGRADATIONS,
    blur,
    deform,
    grow,
    merge,
    noise,
    permute,
    probabilities,
    shrink,
    split,
)
from probdice.synthesis.demo_pair import demo_pair
from probdice.synthesis.phantoms import (
    PHANTOMS,
    brain_section,
    nested_ellipses,
    soften,
    stripes,
    touching_cells,
    voronoi,
)

__all__ = [
    "DEGRADATIONS",
    "PHANTOMS",
    "blur",
    "brain_section",
    "deform",
    "demo_pair",
    "grow",
    "merge",
    "nested_ellipses",
    "noise",
    "permute",
    "probabilities",
    "shrink",
    "soften",
    "split",
    "stripes",
    "touching_cells",
    "voronoi",
]
