"""
Two atlases of different granularity
====================================

One atlas has four parcels, the other has fourteen, and they share no names. Which fine parcels form
a coarse parcel, and do the boundaries agree?
"""

import probdice
from probdice.synthesis import deform, split, voronoi

coarse = voronoi((120, 120), regions=4, softness=0, doubt=0, seed=8)
fine = split(deform(coarse, 2.5, seed=1), 10, seed=3)
coarse_labels = probdice.Segmentation.from_labels(
    coarse.array.argmax(axis=0), names=["front", "side", "back", "deep"]
)
fine_labels = fine.array.argmax(axis=0) + 100

result = probdice.compare(coarse_labels, fine_labels, merge="prediction")
for group in result.groups:
    print(", ".join(group.reference), "=", *group.prediction, f"  Dice {group.dice:.3f}")

# %%
# Print the share of each atlas that the other explains. The fine atlas determines the coarse one
# almost completely. The coarse atlas does not determine in which fine parcel a pixel lies.
print({side: round(share, 3) for side, share in result.explained.items()})

# %%
figure = result.plot("overview")

# %%
correspondence = result.plot("correspondence")
