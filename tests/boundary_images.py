"""Two arrays as the images of a comparison, for tests of boundaries."""

import numpy as np

from probdice import Geometry, Segmentation
from probdice.engine.pair import SegmentationPair


def images_of(reference, prediction, affine=None, mask=None, workers=2):
    """Images of label maps or of stacks of probabilities, whose values are not checked."""

    def placed(side):
        crisp = not np.issubdtype(side.dtype, np.floating)
        shape = side.shape if crisp else side.shape[1:]
        make = Segmentation.from_labels if crisp else Segmentation.from_probabilities
        return make(side, geometry=None if affine is None else Geometry(shape, affine))

    return SegmentationPair.of(placed(reference), placed(prediction), mask=mask, workers=workers)
