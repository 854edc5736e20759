"""
A folder of cases, two methods
==============================

``evaluate`` compares every case of every method, and computes means with 95 % confidence intervals,
paired differences and ranks.
"""

import tempfile
from pathlib import Path

from matplotlib.figure import Figure

import probdice
from probdice.synthesis import blur, brain_section, deform

folder = Path(tempfile.mkdtemp())
for name in ("reference", "careful", "hasty"):
    (folder / name).mkdir()
for seed in range(12):
    reference = brain_section((64, 64), seed=seed)
    probdice.write(folder / f"reference/{seed:02}.npz", reference)
    probdice.write(folder / f"careful/{seed:02}.npz", deform(reference, 2.0, seed=seed))
    probdice.write(folder / f"hasty/{seed:02}.npz", blur(deform(reference, 4.0, seed=seed), 1.0))

evaluation = probdice.evaluate(
    folder / "reference", {name: folder / name for name in ("careful", "hasty")}
)
for method, summary in evaluation.summaries("adjusted_score").items():
    print(
        f"{method}: {summary.mean:.3f} over {summary.n} cases, "
        f"95 % CI {summary.interval.low:.3f}–{summary.interval.high:.3f}"
    )
for difference in evaluation.differences("adjusted_score"):
    names = f"{difference.first} − {difference.second}"
    print(f"{names}: {difference.mean:.3f}, p = {difference.p_corrected:.4f}")

# %%
frame = evaluation.cases_frame()
chart = Figure(figsize=(7, 3.2), layout="constrained")
axes = chart.subplots()
for method, rows in frame.groupby("method"):
    axes.plot(rows["case"], rows["adjusted_score"], marker="o", label=method)
axes.set(xlabel="case", ylabel="adjusted score", ylim=(0, 1))
axes.legend()
