"""
Clusters of a micrograph
========================

K-means groups the colours of a stained section of the colon, a sample image of scikit-image. Every
pixel gets a probability for each cluster from its distances to the cluster centres. The clusters
have no agreed labels: two runs with three and five clusters number them differently.
"""

from scipy.cluster.vq import kmeans2
from scipy.spatial.distance import cdist
from scipy.special import softmax
from skimage import color, data

import probdice

image = color.rgb2lab(data.immunohistochemistry()[::3, ::3])
colours = image.reshape(-1, 3)


def clusters(count, seed):
    """Return the probabilities of the clusters, with the clusters along the first axis."""
    centres, _ = kmeans2(colours, count, minit="++", rng=seed)
    probabilities = softmax(-cdist(centres, colours) / 3, axis=0)
    return probabilities.reshape(count, *image.shape[:2])


three, five = clusters(3, seed=0), clusters(5, seed=1)
result = probdice.compare(three, five, merge="prediction")
print(result)

# %%
# Corresponding clusters have the same colour. Colours are blended where a pixel is uncertain.
overview = result.plot("overview")
