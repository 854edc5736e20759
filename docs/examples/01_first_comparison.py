"""
A first comparison
==================

Two segmentations of one image: three wavy bands against four, in another order and with other
numbers. Nothing but the two arrays is given.
"""

import probdice
from probdice.synthesis import deform, permute, split, stripes

reference = stripes((96, 96), regions=3)
prediction = permute(split(deform(reference, 4.0), 1), 3)
result = probdice.compare(reference, prediction)
result

# %%
# The score is the mean over all pixels of the similarity of the two probability vectors. Region 3
# of the prediction is spare: it was split off a band that the reference has as one.
figure = result.plot("overview")
