"""
The aitchison similarity
========================

The aitchison similarity is computed from the Aitchison distance, which compares ratios. It
distinguishes 0.999 from 0.99, which are almost equal for the absolute similarity.
"""

import numpy as np
from matplotlib.figure import Figure

import probdice

absolute, aitchison = probdice.Absolute(), probdice.Aitchison()
for sure in (0.99, 0.999, 0.9999):
    p, q = [0.99, 0.01], [sure, 1 - sure]
    print(f"0.99 vs {sure}: absolute {absolute(p, q):.4f}, aitchison {aitchison(p, q):.4f}")

# %%
# The similarity falls fastest where both sides are nearly equal, especially if the reference is
# nearly certain. It is 0 where one side has probability 0 and the other does not.
p = np.linspace(0, 1, 401)
curves = Figure(figsize=(7, 3.2), layout="constrained")
axes = curves.subplots()
for reference in (0.5, 0.9, 0.99):
    values = aitchison([[reference], [1 - reference]], [p, 1 - p])
    axes.plot(p, values, label=f"reference {reference}")
axes.set(xlabel="prediction of the first region", ylabel="similarity", ylim=(0, 1.02))
axes.legend()

# %%
# Compare two images with the same regions; one image is blurred. The blur lowers the absolute
# similarity at the boundaries. The aitchison similarity also reflects changes of small
# probabilities elsewhere.
from probdice.synthesis import blur, brain_section

reference = brain_section()
prediction = blur(reference, 1.0)
for similarity in ("absolute", "aitchison"):
    result = probdice.compare(reference, prediction, similarity=similarity)
    print(f"{similarity}: {result.score:.3f}")
overview = result.plot("overview")
