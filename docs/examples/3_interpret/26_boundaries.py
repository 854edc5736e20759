"""
Distances between boundaries
============================

The reference is the silhouette of a horse, a sample image of scikit-image. One prediction is
shifted by two pixels, and the other lacks the ends of two legs. The shifted prediction has the
lower Dice, but the better HD95 and surface Dice.
"""

import numpy as np
from skimage import data

import probdice

reference = (~data.horse().astype(bool)).astype("uint8")[::2, ::2]
shifted = np.roll(reference, 2, axis=1)
shortened = reference.copy()
shortened[133:, :110] = 0

results = {}
for name, prediction in (("shifted", shifted), ("legs cut", shortened)):
    result = results[name] = probdice.compare(reference, prediction, match="labels", background=0)
    boundaries = result.boundaries(tolerances=[3])
    hd95, assd, nsd = (boundaries.means[key].mean for key in ("hd95", "assd", "nsd@3"))
    print(
        f"{name:12} Dice {result.foreground_dice:.3f}   HD95 {hd95:5.1f}   ASSD {assd:.2f}   "
        f"surface Dice at 3 pixels {nsd:.3f}"
    )

# %%
# The outlines are coloured by distance:
distances = results["legs cut"].plot("boundaries")

# %%
# The whole outline of the shifted silhouette is within the tolerance:
overview = results["shifted"].plot("overview")
