"""
Can the probabilities be trusted?
=================================

Of the pixels that a prediction is 80 % sure of, 80 % should be right. Four predictions have the
same most probable labels everywhere and differ in how sure they are.
"""

import probdice
from probdice.synthesis import brain_section, deform

truth = brain_section(softness=0, doubt=0).array.argmax(axis=0)
network = deform(brain_section(softness=2.0), 4.0).array.astype(float)

results = {}
for power in (0.5, 1, 2, 8):
    surer = network**power / (network**power).sum(axis=0)
    result = probdice.compare(
        truth, probdice.Segmentation.from_probabilities(surer), match="labels"
    )
    calibration = results[power] = result.calibration()
    print(
        f"to the power of {power:<3}: score {result.score:.3f}   calibration error "
        f"{calibration.likely.expected_error:.3f}   Brier {calibration.brier.score:.3f}"
    )

# %%
# The score rises as a prediction gets surer of what is mostly right; the calibration error has its
# least value where sureness and truth agree. How sure it is, and how often right, where it is too
# sure:
figure = results[8].plot()
