"""
All kinds of pictures
=====================

``result.plot(kind)`` returns a Matplotlib figure that you can save or edit. These figures show the
comparison of ``probdice demo``: a volume with four regions and a prediction with seven regions.
"""

import probdice
from probdice.synthesis import demo_pair

result = probdice.compare(*demo_pair(), merge="prediction")
overview = result.plot("overview")

# %%
# Three planes:
views = result.plot("views")

# %%
# Corresponding regions:
correspondence = result.plot("correspondence")

# %%
# The Dice of every pair of overlapping regions:
overlap = result.plot("overlap")

# %%
# The similarity per slice, its histogram, and the similarity map:
slices = result.plot("slices")
histogram = result.plot("histogram")
similarity = result.plot("map", place=(32, 36, 30))
