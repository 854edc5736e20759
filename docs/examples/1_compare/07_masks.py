"""
Masks, and labels to ignore
===========================

A mask selects the pixels to compare; values outside it are not checked. ``ignore`` leaves out the
pixels of a reference label that means *unknown*. Both options change every number.
Excluding a large background lowers most numbers.
"""

import numpy as np

import probdice
from probdice.synthesis import brain_section, deform

reference = brain_section()
prediction = deform(reference, 3.0)
brain = reference.array[0] < 0.5

everywhere = probdice.compare(reference, prediction)
inside = probdice.compare(reference, prediction, mask=brain)
for name, result in (("everywhere", everywhere), ("inside", inside)):
    print(f"{name:10} score {result.score:.3f}   adjusted {result.adjusted_score:.3f}")

# %%
# Outside the mask, the similarity map is NaN.
masked = inside.plot("overview")

# %%
# Mark an uncertain band along the boundaries with label 255:
labels = reference.array.argmax(axis=0)
labels[reference.array.max(axis=0) < 0.7] = 255
uncertain = probdice.Segmentation.from_labels(labels, ignore=255)
result = probdice.compare(uncertain, prediction)
print(f"{np.mean(labels == 255):.0%} of the pixels ignored: score {result.score:.3f}")
result = probdice.compare(reference.array.argmax(axis=0), prediction)
print(f"none ignored: score {result.score:.3f}")
