"""
Matching rules
==============

Regions can be matched by the largest total overlap, by the paper's rule, by equal labels, or by
pairs that you specify.
"""

import probdice

reference = [1] * 6 + [2] * 2 + [3] * 8
prediction = [3] * 8 + [2] * 5 + [1] * 3

for match in ("overlap", "paper", "labels", {3: 1}):
    result = probdice.compare(reference, prediction, match=match)
    pairs = [(*group.reference, *group.prediction) for group in result.groups]
    print(f"{match!s:10} score {result.score:.3f}   groups {pairs}")

# %%
# With equal labels, no pixel agrees. The paper's rule also pairs regions that share no pixel. Notes
# report such pairs, and labels that are matched to a different label:
for note in probdice.compare(reference, prediction, match="paper").notes:
    print(note)

# %%
# The Dice of every pair of overlapping regions, in the order of the groups:
from probdice.synthesis import permute, voronoi

cells = voronoi(regions=6)
figure = probdice.compare(cells, permute(cells, 6)).plot("overlap")
