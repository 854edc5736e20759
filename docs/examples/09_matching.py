"""
Which region is which
=====================

Four ways to say it: by the largest total overlap, by the paper's rule, by equal labels, or as you
say.
"""

import probdice

reference = [1] * 6 + [2] * 2 + [3] * 8
prediction = [3] * 8 + [2] * 5 + [1] * 3

for match in ("overlap", "paper", "labels", {3: 1}):
    result = probdice.compare(reference, prediction, match=match)
    pairs = [(*group.reference, *group.prediction) for group in result.groups]
    print(f"{match!s:10} score {result.score:.3f}   groups {pairs}")

# %%
# The paper's rule pairs what is left, though it shares no pixel; by equal labels little agrees. A
# comparison says what it noticed:
for note in probdice.compare(reference, prediction, match="paper").notes:
    print(note)

# %%
# The Dice of every pair of regions that meets, in the order of the matching:
from probdice.synthesis import permute, voronoi

cells = voronoi(regions=6)
figure = probdice.compare(cells, permute(cells, 6)).plot("overlap")
