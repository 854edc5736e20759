"""
One correspondence for a data set
=================================

The clusters of a model have the same meaning in every image. Overlaps of images can be added, so
clusters and classes are matched once, on all images, and every image is scored with that
correspondence.
"""

import numpy as np

import probdice
from probdice.synthesis import brain_section, deform, split

names = np.array([4, 0, 5, 2, 1, 3])  # arbitrary labels of the clusters


def case(seed):
    reference = brain_section((64, 64), seed=seed)
    prediction = split(deform(reference, 3.0, seed=seed), 2, region="grey matter", seed=seed)
    return reference.array.argmax(axis=0), names[prediction.array.argmax(axis=0)]


cases = [case(seed) for seed in range(12)]
total = sum(probdice.overlap(*pair) for pair in cases)
learnt = total.compare(merge="prediction")
learnt

# %%
# Score each image with the common correspondence, and with its own correspondence:
for reference, prediction in cases[:4]:
    together = probdice.compare(reference, prediction, match=learnt)
    alone = probdice.compare(reference, prediction, merge="prediction")
    print(f"common {together.score:.3f}   own {alone.score:.3f}")

# %%
# The sum is a small table. Save it with ``save`` and load it with ``Overlap.load``.
figure = learnt.plot("correspondence")
