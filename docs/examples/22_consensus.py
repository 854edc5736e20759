"""
What several raters agree on
============================

Four people outlined the same image, each with numbers of their own; one is careless. ``consensus``
finds the regions they have in common and what is probable of each; ``agreement`` says how well they
agree.
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
# The probability of every region, and where the raters are at odds:
picture = consensus.plot()

# %%
# Who agrees with whom. The careless one stands out, and "each against the mean of the others" is
# what a method as good as a rater may be expected to reach.
agreement = probdice.agreement(raters)
print(agreement)
matrix = agreement.plot()

# %%
# A prediction is then compared with the consensus as with any reference.
prediction = deform(image, 4.0, seed=9)
result = probdice.compare(consensus.segmentation, prediction)
print(f"score {result.score:.3f}, adjusted {result.adjusted_score:.3f}")
