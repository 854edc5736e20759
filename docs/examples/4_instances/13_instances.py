"""
Instances: found, missed, split and merged
==========================================

Each cell is an instance. The comparison counts detected, missed and false instances.
"""

import numpy as np
from matplotlib.figure import Figure

import probdice
from probdice.synthesis import deform, touching_cells

cells = touching_cells((160, 160), regions=20, seed=2)
annotated = cells.array.argmax(axis=0)
detected = deform(cells, 4.0, seed=3).array.argmax(axis=0)
detected[detected == 6] = 0  # missed
detected[detected == 8] = 9  # may be merged with a neighbour

result = probdice.compare(annotated, detected, background=0)
detection = result.detection()
print(
    f"detected {detection.true_positives}, false {detection.false_positives}, "
    f"missed {detection.misses}"
)
print(
    f"F1 {detection.f1:.3f}, panoptic quality {detection.panoptic_quality:.3f}, "
    f"average precision {detection.average_precision:.3f}"
)

# %%
overview = result.plot("overview")

# %%
# The F1 score depends on the threshold:
thresholds = np.linspace(0.3, 0.95, 14)
values = [result.detection(threshold=t).f1 for t in thresholds]
curve = Figure(figsize=(7, 3), layout="constrained")
axes = curve.subplots()
axes.plot(thresholds, values, marker="o")
axes.set(xlabel="Jaccard threshold for a detected cell", ylabel="F1", ylim=(0, 1.02))
