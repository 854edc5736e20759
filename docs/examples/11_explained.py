"""
What one side explains of the other
===================================

A number that asks for no correspondence: the share of one side's variance that the other
determines. It stays at 1 for the reference when regions are only split, for the prediction when
they are only joined.
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
# It does not see confidence; the score does.
for doubt in (0.0, 0.3, 0.6):
    result = probdice.compare(reference, voronoi(regions=6, doubt=doubt))
    shares = [round(share, 2) for share in result.explained.values()]
    print(f"doubt {doubt}: score {result.score:.2f}, explained {shares}")

# %%
figure = probdice.compare(reference, changes["split and joined"]).plot("overview")
