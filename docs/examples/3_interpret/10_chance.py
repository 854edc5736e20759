"""
Correct a score for chance
==========================

The score of two independent segmentations depends on the sizes of the regions. The adjusted score
corrects for these sizes: it is 1 for equal segmentations and about 0 for independent pixels.
"""

import numpy as np
from matplotlib.figure import Figure

import probdice

rng = np.random.default_rng(0)
shares = np.linspace(0.5, 0.99, 12)
scores, adjusted, chance = [], [], []
for share in shares:  # two independent label maps
    reference, prediction = rng.random((2, 200, 200)) > share
    result = probdice.compare(reference, prediction)
    scores.append(result.score)
    chance.append(result.chance)
    adjusted.append(result.adjusted_score)

curves = Figure(figsize=(7, 3.2), layout="constrained")
axes = curves.subplots()
axes.plot(shares, scores, marker="o", label="score")
axes.plot(shares, chance, linestyle="--", label="chance")
axes.plot(shares, adjusted, marker="o", label="adjusted score")
axes.set(xlabel="share of the background", ylim=(-0.05, 1.05))
axes.legend()

# %%
# The pixels of unrelated *images* are not independent, because images are smooth. Two unrelated
# patterns still share large areas by chance.
from scipy import ndimage


def pattern():
    values = rng.normal(size=(5, 96, 96))
    return ndimage.gaussian_filter(values, (0, 12, 12)).argmax(axis=0)


unrelated = [probdice.compare(pattern(), pattern()).adjusted_score for _ in range(20)]
print(f"adjusted score of 20 unrelated pairs: {np.mean(unrelated):.2f} ± {np.std(unrelated):.2f}")

# %%
figure = probdice.compare(pattern(), pattern()).plot("overview")
