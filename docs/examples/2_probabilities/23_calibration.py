"""
Calibration of probabilities
============================

Of the pixels with a predicted probability of 80 %, 80 % should be right. The four predictions in
this example have the same most probable label at every pixel, but different probabilities.
"""

import probdice
from probdice.synthesis import brain_section, deform

truth = brain_section(softness=0, doubt=0).array.argmax(axis=0)
network = deform(brain_section(softness=2.0), 4.0).array.astype(float)

results = {}
for power in (0.5, 1, 2, 8):
    sharpened = network**power / (network**power).sum(axis=0)
    result = probdice.compare(
        truth, probdice.Segmentation.from_probabilities(sharpened), match="labels"
    )
    calibration = results[power] = result.calibration()
    print(
        f"to the power of {power:<3}: score {result.score:.3f}   calibration error "
        f"{calibration.likely.expected_error:.3f}   Brier {calibration.brier.score:.3f}"
    )

# %%
# The score rises with the power, because most labels are right and their probabilities rise. The
# calibration error is smallest for the power 2, for which the probabilities are closest to the
# frequencies. The reliability diagram of the overconfident prediction (power 8):
figure = results[8].plot()
