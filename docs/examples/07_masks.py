"""
Masks, and labels to ignore
===========================

A mask says which pixels are compared; nothing is asked of the values outside. A label of the
reference that means *unknown* is ignored. Both change every number, since a large background
flatters all of them.
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
# Outside the mask the map of similarity is NaN.
masked = inside.plot("overview")

# %%
# A band along the boundaries that nobody is sure of, as 255 in the label map:
labels = reference.array.argmax(axis=0)
labels[reference.array.max(axis=0) < 0.7] = 255
unsure = probdice.Segmentation.from_labels(labels, ignore=255)
result = probdice.compare(unsure, prediction)
print(f"{np.mean(labels == 255):.0%} of the pixels ignored: score {result.score:.3f}")
result = probdice.compare(reference.array.argmax(axis=0), prediction)
print(f"none ignored: score {result.score:.3f}")
