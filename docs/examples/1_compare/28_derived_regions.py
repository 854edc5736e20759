"""
Derived regions, as in BraTS
============================

A tumour has three labels: necrosis (1), oedema (2) and enhancing tumour (3). Challenges score
unions of these labels: the whole tumour, the tumour core and the enhancing tumour.
"""

import numpy as np

import probdice
from probdice.synthesis import deform, nested_ellipses

rings = nested_ellipses((120, 120), regions=4, seed=2)  # background and three rings
to_brats = np.array([0, 2, 3, 1])  # from the outer ring to the centre
reference = to_brats[rings.array.argmax(axis=0)]
prediction = to_brats[deform(rings, 6.0, seed=4).array.argmax(axis=0)]

result = probdice.compare(reference, prediction, match="labels", background=0)
regions = {"whole tumour": (1, 2, 3), "tumour core": (1, 3), "enhancing tumour": 3}
print(result.derived(regions))

# %%
# Boundary distances of the derived regions:
print(result.boundaries(derived=regions))

# %%
overview = result.plot("overview")
