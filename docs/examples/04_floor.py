"""
A floor under small probabilities
=================================

Under the aitchison similarity, a region that one side rules out and the other does not is
infinitely far. Real maps are full of exact zeros: a floor raises them, and the score says
something again. The floor is part of the result: write it down with the score.
"""

from matplotlib.figure import Figure

import probdice
from probdice.synthesis import brain_section, deform

reference = brain_section(doubt=0, softness=1.0)  # 0 far from the boundaries
prediction = deform(reference, 2.0)
strict = probdice.compare(reference, prediction, similarity="aitchison")
print(f"without a floor: {strict.score:.3f}")

# %%
# Black are the pixels that one side rules out and the other does not.
overview = strict.plot("overview")

# %%
# With a floor they are far, and no longer infinitely so:
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
