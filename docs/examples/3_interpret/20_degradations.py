"""
Scores of degraded segmentations
================================

``probdice.synthesis`` contains phantoms and degradations. Each degradation has a strength; strength
0 changes nothing.
"""

from matplotlib.figure import Figure

import probdice
from probdice import synthesis

reference = synthesis.brain_section()
strengths = (0, 0.5, 1, 1.5, 2, 3, 4)
curves = Figure(figsize=(9, 3.4), layout="constrained")
left, right = curves.subplots(1, 2, sharey=True)
for axes, similarity in ((left, "absolute"), (right, "aitchison")):
    for name in ("blur", "deform", "noise", "grow"):
        degrade = synthesis.DEGRADATIONS[name]
        scores = [
            probdice.compare(reference, degrade(reference, s), similarity=similarity).score
            for s in strengths
        ]
        axes.plot(strengths, scores, marker="o", label=name)
    axes.set(title=similarity, xlabel="strength", ylim=(0, 1.02))
left.legend()

# %%
# The strongest deformation:
figure = probdice.compare(reference, synthesis.deform(reference, 4)).plot("overview")
