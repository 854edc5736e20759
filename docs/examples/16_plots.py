"""
Every kind of picture
=====================

``result.plot(kind)`` gives a Matplotlib figure to save or to change. Here are those of the
demonstration, a volume of four tissues against seven regions.
"""

import probdice
from probdice.synthesis import demo_pair

result = probdice.compare(*demo_pair(), merge="prediction")
overview = result.plot("overview")

# %%
# Three planes:
views = result.plot("views")

# %%
# Which region is which:
correspondence = result.plot("correspondence")

# %%
# The Dice of every pair of regions that meets:
overlap = result.plot("overlap")

# %%
# The similarity along the slices, over the pixels, and at every pixel:
slices = result.plot("slices")
histogram = result.plot("histogram")
similarity = result.plot("map", place=(32, 36, 30))
