"""
The aitchison similarity
========================

From the Aitchison distance, which compares ratios: it tells 0.999 from 0.99, where the absolute
similarity sees next to no difference.
"""

import numpy as np
from matplotlib.figure import Figure

import probdice

absolute, aitchison = probdice.Absolute(), probdice.Aitchison()
for sure in (0.99, 0.999, 0.9999):
    p, q = [0.99, 0.01], [sure, 1 - sure]
    print(f"0.99 against {sure}: absolute {absolute(p, q):.4f}, aitchison {aitchison(p, q):.4f}")

# %%
# It falls fastest next to equality, all the more where the reference is nearly certain, and is 0
# where certainty is contradicted.
p = np.linspace(0, 1, 401)
curves = Figure(figsize=(7, 3.2), layout="constrained")
axes = curves.subplots()
for reference in (0.5, 0.9, 0.99):
    values = aitchison([[reference], [1 - reference]], [p, 1 - p])
    axes.plot(p, values, label=f"reference {reference}")
axes.set(xlabel="prediction of the first region", ylabel="similarity", ylim=(0, 1.02))
axes.legend()

# %%
# Between two images: the same regions, blurred by half a pixel. The absolute similarity sees the
# boundaries, the aitchison similarity also the small probabilities elsewhere.
from probdice.synthesis import blur, brain_section

reference = brain_section()
prediction = blur(reference, 1.0)
for similarity in ("absolute", "aitchison"):
    result = probdice.compare(reference, prediction, similarity=similarity)
    print(f"{similarity}: {result.score:.3f}")
overview = result.plot("overview")
