"""
A first comparison
==================

Compare two segmentations of one image. The reference has three regions, which consist of wavy
bands. The prediction has four regions with different labels. `compare` requires only the two
segmentations.
"""

import probdice
from probdice.synthesis import deform, permute, split, stripes

reference = stripes((96, 96), regions=3)
prediction = permute(split(deform(reference, 4.0), 1), 3)
result = probdice.compare(reference, prediction)
result

# %%
# The score is the mean, over all pixels, of the similarity of the two probability vectors. Region 2
# of the prediction is unmatched: regions 2 and 3 together correspond to region 1 of the reference.
figure = result.plot("overview")
