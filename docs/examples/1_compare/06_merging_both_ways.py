"""
Merge regions of both sides
===========================

A prediction may be over-segmented in one place and under-segmented in another. ``merge="both"``
merges unmatched regions of both sides. The merge with the largest gain comes first, so
the order of labels does not matter.
"""

import numpy as np

import probdice
from probdice.synthesis import stripes

reference = stripes(regions=6, seed=5).array.argmax(axis=0)
prediction = reference.copy()
prediction[prediction == 1] = 0  # joined
prediction[(reference == 4) & (np.indices(reference.shape)[0] > 48)] = 9  # split

for merge in ("none", "prediction", "reference", "both"):
    result = probdice.compare(reference, prediction, merge=merge)
    print(f"{merge:10} score {result.score:.3f}   adjusted {result.adjusted_score:.3f}")

# %%
# Do not report a score with merging alone: a prediction with a single region scores 1 against any
# reference. Its chance level is also 1, so the adjusted score is undefined.
nothing = np.zeros_like(reference)
result_of_nothing = probdice.compare(reference, nothing, merge="both")
print(f"score {result_of_nothing.score}, adjusted {result_of_nothing.adjusted_score:.2f}")

# %%
figure = result.plot("overview")
