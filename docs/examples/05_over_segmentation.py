"""
Merging what a prediction split
===============================

The prediction found the right boundaries and some more. After matching alone every piece but one
of each region is left over; ``merge="prediction"`` joins them, and says what each join gained.
"""

import probdice
from probdice.synthesis import deform, split, voronoi

reference = voronoi(regions=4, seed=4)
prediction = split(deform(reference, 2.0), 4, seed=1)

result = probdice.compare(reference, prediction, merge="prediction")
print(f"matched score {result.matched_score:.3f}, score {result.score:.3f}")
for merge in result.merges:
    print(f"prediction {merge.region} joins reference {merge.into}: {merge.gain:+.3f}")

# %%
# Pieces of one region now have its colour.
overview = result.plot("overview")

# %%
# Who belongs to whom: matched pairs in blue, merged regions in green.
correspondence = result.plot("correspondence")

# %%
# Without merging, the explained share of the reference says the same: a prediction that only splits
# determines it nearly wholly.
print({side: round(share, 3) for side, share in result.explained.items()})
