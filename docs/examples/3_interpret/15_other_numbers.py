"""
Other metrics
=============

Rand index, variation of information, covering, κ, mean IoU and others are computed from the same
overlap, without another pass over the pixels.
"""

import probdice
from probdice.synthesis import deform, merge, split, voronoi

reference = voronoi(regions=8, seed=1)
prediction = split(merge(deform(reference, 3.0), 1), 2)
labels = [side.array.argmax(axis=0) for side in (reference, prediction)]

result = probdice.compare(*labels)
print(result.indices())

# %%
figure = result.plot("overview")

# %%
# The metrics get worse as the boundaries move:
for strength in (0, 2, 4, 8):
    moved = deform(reference, strength).array.argmax(axis=0)
    indices = probdice.compare(labels[0], moved).indices()
    print(
        f"{strength} pixels: adjusted Rand {indices.adjusted_rand:.3f}, "
        f"variation of information {indices.variation_of_information:.3f} bits, "
        f"mean IoU {indices.mean_iou:.3f}"
    )
