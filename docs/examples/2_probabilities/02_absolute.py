"""
The absolute similarity
=======================

The absolute similarity is one minus half the sum of absolute differences. It is piecewise linear in
the probabilities and requires no special rule for zeros. It is the default.
"""

import numpy as np
from matplotlib.figure import Figure

import probdice

f = probdice.Absolute()
print(f([0.9, 0.1], [0.8, 0.2]))
print(f([0.2, 0.3, 0.5], [0.1, 0.6, 0.3]))

# %%
# With two regions, the similarity falls linearly with the difference, for any value of the
# reference.
p = np.linspace(0, 1, 201)
curves = Figure(figsize=(7, 3.2), layout="constrained")
axes = curves.subplots()
for reference in (0.5, 0.9, 0.99):
    values = f([[reference], [1 - reference]], [p, 1 - p])
    axes.plot(p, values, label=f"reference {reference}")
axes.set(xlabel="prediction of the first region", ylabel="similarity", ylim=(0, 1.02))
axes.legend()
