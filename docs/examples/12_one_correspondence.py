"""
One correspondence for a data set
=================================

Clusters of one model mean the same in every image. The overlaps of all images add up, so that
which cluster is which class is found once, on all of them, and every image is scored by that.
"""

import numpy as np

import probdice
from probdice.synthesis import brain_section, deform, split

names = np.array([4, 0, 5, 2, 1, 3])  # what the clusters happen to be called


def case(seed):
    reference = brain_section((64, 64), seed=seed)
    prediction = split(deform(reference, 3.0, seed=seed), 2, region="grey matter", seed=seed)
    return reference.array.argmax(axis=0), names[prediction.array.argmax(axis=0)]


cases = [case(seed) for seed in range(12)]
total = sum(probdice.overlap(*pair) for pair in cases)
learnt = total.compare(merge="prediction")
learnt

# %%
# Every image by that correspondence, and by one of its own:
for reference, prediction in cases[:4]:
    together = probdice.compare(reference, prediction, match=learnt)
    alone = probdice.compare(reference, prediction, merge="prediction")
    print(f"one for all {together.score:.3f}   its own {alone.score:.3f}")

# %%
# The sum is a small table that can be saved and loaded.
figure = learnt.plot("correspondence")
