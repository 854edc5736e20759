"""Expected mutual information of shuffled label maps."""

import numpy as np
from numpy.typing import NDArray

from probdice.compiler.jit import kernel

__all__ = ["expected_information"]

Integers = NDArray[np.int64]
MIN_TERM_RATIO = 1e-20  # terms below this fraction of the largest term do not change a float64 sum


@kernel
def expected_information(
    reference: Integers,
    reference_times: Integers,
    prediction: Integers,
    prediction_times: Integers,
    pixels: int,
) -> float:
    """Return the mean mutual information, in nats, of shuffled label maps with these volumes.

    `reference` and `prediction` contain distinct volumes. `reference_times` and `prediction_times`
    contain the number of regions with each volume. The overlap of two regions has a hypergeometric
    distribution. The probabilities of this distribution are computed from the ratios of successive
    probabilities, starting at the most probable overlap. Therefore, no factorial of the number of
    pixels is required.
    """
    total = 0.0
    for i in range(reference.size):
        a = float(reference[i])
        for j in range(prediction.size):
            b = float(prediction[j])
            least, most = max(0.0, a + b - pixels), min(a, b)
            likeliest = min(max(np.floor((a + 1) * (b + 1) / (pixels + 2)), least), most)
            scale = pixels / (a * b)
            mass, information = 0.0, 0.0
            n, share = likeliest, 1.0
            while n <= most and share > MIN_TERM_RATIO:
                mass += share
                if n > 0:
                    information += share * n * np.log(n * scale)
                share *= (a - n) * (b - n) / ((n + 1) * (pixels - a - b + n + 1))
                n += 1
            n, share = likeliest, 1.0
            while n > least and share > MIN_TERM_RATIO:
                share *= n * (pixels - a - b + n) / ((a - n + 1) * (b - n + 1))
                n -= 1
                mass += share
                if n > 0:
                    information += share * n * np.log(n * scale)
            times = reference_times[i] * prediction_times[j]
            total += times * (information / mass) / pixels
    return total
