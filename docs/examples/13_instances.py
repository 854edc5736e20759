"""
Instances: found, missed, split and merged
==========================================

Cells are counted one by one: which were found, and how well.
"""

import numpy as np
from matplotlib.figure import Figure

import probdice
from probdice.synthesis import deform, touching_cells

cells = touching_cells((160, 160), regions=20, seed=2)
by_hand = cells.array.argmax(axis=0)
found = deform(cells, 4.0, seed=3).array.argmax(axis=0)
found[found == 6] = 0  # missed
found[found == 8] = 9  # perhaps merged with a neighbour

result = probdice.compare(by_hand, found)
detection = result.detection(background=0)
print(
    f"found {detection.true_positives}, false {detection.false_positives}, "
    f"missed {detection.misses}"
)
print(
    f"F1 {detection.f1:.3f}, panoptic quality {detection.panoptic_quality:.3f}, "
    f"average precision {detection.average_precision:.3f}"
)

# %%
overview = result.plot("overview")

# %%
# How much depends on the threshold:
thresholds = np.linspace(0.3, 0.95, 14)
values = [result.detection(background=0, threshold=t).f1 for t in thresholds]
curve = Figure(figsize=(7, 3), layout="constrained")
axes = curve.subplots()
axes.plot(thresholds, values, marker="o")
axes.set(xlabel="Jaccard index from which a cell counts as found", ylabel="F1", ylim=(0, 1.02))
