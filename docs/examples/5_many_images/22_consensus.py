"""
Consensus of several raters
===========================

Four raters (annotators) segment the same image with different labels; one rater is inaccurate.
``consensus`` finds their common regions and the probability of each region at every pixel.
``agreement`` measures inter-rater agreement.
"""

import probdice
from probdice.synthesis import deform, noise, permute, voronoi

image = voronoi(regions=5, seed=3)
raters = {
    name: permute(deform(noise(image, 0.5, seed=k), strength, seed=k), k, seed=k).array.argmax(
        axis=0
    )
    for k, (name, strength) in enumerate({"anna": 2, "ben": 3, "eva": 2, "max": 10}.items())
}
consensus = probdice.consensus(raters, method="staple")
print(consensus)

# %%
# The probability of every region, and where the raters disagree:
picture = consensus.plot()

# %%
# The matrix shows the score of every pair of raters. The inaccurate rater has the lowest values.
# The last column shows the score of each rater against the mean of the others. A method that is as
# good as a rater reaches a similar score.
agreement = probdice.agreement(raters)
print(agreement)
matrix = agreement.plot()

# %%
# Compare a prediction with the consensus as with any other reference.
prediction = deform(image, 4.0, seed=9)
result = probdice.compare(consensus.segmentation, prediction)
print(f"score {result.score:.3f}, adjusted {result.adjusted_score:.3f}")
