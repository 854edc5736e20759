"""
Coins in a photograph
=====================

Two programs segment the coins in a sample image of scikit-image. One program uses edges and a
watershed; the other applies a threshold to the grey values. There is no ground truth. The watershed
is taken as the reference, because it outlines every coin.
"""

import numpy as np
from scipy import ndimage
from skimage import data, filters, segmentation

import probdice

image = data.coins()
markers = np.select([image < 30, image > 150], [1, 2], 0)
filled = segmentation.watershed(filters.sobel(image), markers) == 2
watershed, count = ndimage.label(ndimage.binary_fill_holes(filled))
threshold, pieces = ndimage.label(image > filters.threshold_otsu(image))
print(f"{count} regions by watershed, {pieces} by threshold")

result = probdice.compare(watershed, threshold, background=0)
detection = result.detection()
print(f"found {detection.true_positives}, missed {detection.misses}", end=", ")
print(f"false {detection.false_positives}, F1 {detection.f1:.2f}")
print(f"foreground Dice {result.foreground_dice:.3f}, pooled Dice {result.pooled_dice:.3f}")

# %%
# The threshold produces specks of a few pixels, and joins one coin with the bright background in
# the upper left corner. Specks hardly change the pooled Dice, which counts pixels. In the
# foreground Dice, which is a mean over regions, each speck counts as Dice 0.
overview = result.plot("overview")

# %%
# Which number is right depends on the question. To count coins, remove specks first:
volumes = np.bincount(threshold.ravel())
large = np.where(volumes[threshold] >= 50, threshold, 0)
cleaned = probdice.compare(watershed, large, background=0)
print(f"F1 {cleaned.detection().f1:.2f}, foreground Dice {cleaned.foreground_dice:.3f}")
