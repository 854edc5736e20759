"""
Lesions: one score per component
================================

One label contains several lesions. The largest lesion dominates the Dice of the label. With
connected components, all lesions have equal weight.
"""

import numpy as np

import probdice

rows, columns = np.indices((96, 96))
reference = np.zeros((96, 96), int)
for row, column, radius in [(30, 30, 18), (75, 20, 4), (70, 70, 5), (20, 75, 3)]:
    reference[(rows - row) ** 2 + (columns - column) ** 2 <= radius**2] = 1
prediction = np.where((rows > 60) & (columns < 50), 0, np.roll(reference, 1, axis=0))

result = probdice.compare(reference, prediction, match="labels", background=0)
print(f"Dice of the label: {result.groups[1].dice:.3f}")
scores = result.component_scores()
print(f"mean Dice of its components: {scores.mean_dice:.3f}")
for component in scores.components:
    print(f"{component.reference_volume:6.0f} pixels: Dice {component.dice:.3f}")

# %%
# Compare the components as instances:
both = [
    probdice.Segmentation.from_labels(side).components(background=0)
    for side in (reference, prediction)
]
one_by_one = probdice.compare(*both, background=0)
detection = one_by_one.detection()
print(f"detected {detection.true_positives}, missed {detection.misses}")
figure = one_by_one.plot("overview")
