"""
An HTML report
==============

``result.report(path)`` writes one HTML file that works without a network connection. It shows
scores, the correspondence, and slices of both sides and of their similarity on the segmented scan,
with the values of each pixel.
"""

import tempfile
from pathlib import Path

import numpy as np

import probdice
from probdice.synthesis import demo_pair

reference, prediction = demo_pair()
result = probdice.compare(reference, prediction, merge="prediction")

# The segmented scan: grey values of the tissues, with noise.
scan = np.tensordot([0.0, 0.3, 0.6, 0.9], reference.array, axes=1)
scan = scan + np.random.default_rng(0).normal(scale=0.05, size=scan.shape)

page = Path(tempfile.mkdtemp()) / "page.html"
result.report(page, title="A brain-like phantom and an over-segmentation of it", image=scan)
print(f"{page.stat().st_size / 1e6:.1f} MB")

# %%
# The following image is a screenshot of a report.
# :doc:`The tutorial on tissue maps </tutorials/tissue-maps>` contains an interactive report.
#
# .. image:: /images/report.png
#    :alt: The report: scores, correspondence, and slices of both sides and of their similarity

# %%
# The same slices as a figure:
figure = result.plot("views")
