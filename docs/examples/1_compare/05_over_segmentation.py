"""
Merge an over-segmentation
==========================

The prediction has the right boundaries and some additional ones. Matching alone leaves all pieces
of a region except one unmatched. ``merge="prediction"`` merges these pieces and reports the gain of
each merge.
"""

import probdice
from probdice.synthesis import deform, split, voronoi

reference = voronoi(regions=4, seed=4)
prediction = split(deform(reference, 2.0), 4, seed=1)

result = probdice.compare(reference, prediction, merge="prediction")
print(f"matched score {result.matched_score:.3f}, score {result.score:.3f}")
for merge in result.merges:
    print(f"prediction {merge.region} is merged into reference {merge.into}: {merge.gain:+.3f}")

# %%
# All pieces of a region now have the colour of this region, in different shades.
overview = result.plot("overview")

# %%
# Corresponding regions: matched pairs are blue, and merged regions are green.
correspondence = result.plot("correspondence")

# %%
# The explained share of the reference does not require merging. It is nearly 1 for a prediction
# that only splits regions.
print({side: round(share, 3) for side, share in result.explained.items()})
