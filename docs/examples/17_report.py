"""
A page to look at
=================

``result.report(path)`` writes one HTML file that needs no network: scores, correspondence, slices
of both sides and of their similarity, with a read-out at every pixel.
"""

import tempfile
from pathlib import Path

import probdice
from probdice.synthesis import demo_pair

result = probdice.compare(*demo_pair(), merge="prediction")
page = Path(tempfile.mkdtemp()) / "page.html"
result.report(page, title="A brain-like phantom and an over-segmentation of it")
print(f"{page.stat().st_size / 1e6:.1f} MB")

# %%
# A page like it is shown in :doc:`the first tutorial </tutorials/tissue-maps>`. Its slices look
# like this:
figure = result.plot("views")
