"""
A first comparison
==================

Compare two segmentations of one image. The reference has three wavy bands; the prediction has four,
in a different order and with different labels. `compare` requires only the two arrays.
"""

import probdice
from probdice.synthesis import deform, permute, split, stripes

reference = stripes((96, 96), regions=3)
prediction = permute(split(deform(reference, 4.0), 1), 3)
result = probdice.compare(reference, prediction)
result

# %%
# The score is the mean, over all pixels, of the similarity of the two probability vectors. Region 3
# of the prediction is unmatched: it is part of a band that is one region in the reference.
figure = result.plot("overview")
