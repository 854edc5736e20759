"""
A floor under small probabilities
=================================

With the aitchison similarity, the distance is infinite if a region has probability 0 on only one
side. Real maps contain many exact zeros. A floor raises these zeros, so the distance becomes
finite. Report the floor with the score, because the score depends on it.
"""

from matplotlib.figure import Figure

import probdice
from probdice.synthesis import brain_section, deform

reference = brain_section(doubt=0, softness=1.0)  # 0 far from the boundaries
prediction = deform(reference, 2.0)
strict = probdice.compare(reference, prediction, similarity="aitchison")
print(f"without a floor: {strict.score:.3f}")

# %%
# Pixels are red if a region has probability 0 on only one side.
overview = strict.plot("overview")

# %%
# With a floor, the distance at these pixels is large but finite:
floors = [10**-k for k in range(1, 9)]
scores = [
    probdice.compare(reference, prediction, similarity=probdice.Aitchison(floor=floor)).score
    for floor in floors
]
curve = Figure(figsize=(7, 3.2), layout="constrained")
axes = curve.subplots()
axes.semilogx(floors, scores, marker="o")
axes.axhline(strict.score, linestyle="--", label="no floor")
axes.set(xlabel="floor", ylabel="score", ylim=(0, 1))
axes.legend()
