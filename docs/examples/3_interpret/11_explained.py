"""
Explained shares
================

The explained share is the share of one side's variance that the other side explains. It does not
require a correspondence. The share of the reference stays 1 if regions are only split; the share of
the prediction stays 1 if regions are only joined.
"""

import probdice
from probdice.synthesis import merge, permute, split, voronoi

reference = voronoi(regions=6, doubt=0)
changes = {
    "the same": reference,
    "renamed": permute(reference, 5),
    "split three times": split(reference, 3),
    "joined three times": merge(reference, 3),
    "split and joined": split(merge(reference, 2), 2),
}
for name, prediction in changes.items():
    result = probdice.compare(reference, prediction)
    of_reference, of_prediction = result.explained.values()
    print(f"{name:20} score {result.score:.2f}   explained {of_reference:.2f}, {of_prediction:.2f}")

# %%
# The explained share does not depend on confidence; the score does.
for doubt in (0.0, 0.3, 0.6):
    result = probdice.compare(reference, voronoi(regions=6, doubt=doubt))
    shares = [round(share, 2) for share in result.explained.values()]
    print(f"doubt {doubt}: score {result.score:.2f}, explained {shares}")

# %%
figure = probdice.compare(reference, changes["split and joined"]).plot("overview")
