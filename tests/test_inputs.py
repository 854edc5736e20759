"""Whatever people have, as a segmentation."""

import os
from pathlib import Path

import numpy as np
import pytest

from probdice import FormatError, InputError, Segmentation, compare
from probdice.inputs import as_mask, as_segmentation


@pytest.mark.parametrize(
    ("value", "crisp"),
    [
        ([1, 2], True),
        (np.array([True, False]), True),
        (np.array([1, 2], np.uint8), True),
        ([[0.5, 1.0], [0.5, 0.0]], False),
        (np.ones((1, 3), np.float16), False),
    ],
)
def test_integers_are_labels_and_floating_numbers_probabilities(value, crisp):
    assert as_segmentation(value, "reference").crisp == crisp


def test_a_segmentation_is_taken_as_it_is():
    segmentation = Segmentation.from_labels([1, 2])
    assert as_segmentation(segmentation, "reference") is segmentation
    assert as_mask(segmentation) is segmentation
    assert as_mask(None) is None


@pytest.mark.parametrize("kind", [str, Path, os.fspath])
def test_a_path_is_read(tmp_path, kind):
    np.save(tmp_path / "labels.npy", np.array([[1, 1], [2, 3]]))
    path = kind(tmp_path / "labels.npy")
    assert as_segmentation(path, "prediction").source
    assert compare(path, [[1, 1], [2, 3]]).score == 1
    assert compare([[1, 1], [2, 3]], [[1, 1], [2, 3]], mask=path).pixels == 4


def test_errors_name_the_side():
    for side in ("reference", "prediction"):
        with pytest.raises(FormatError, match=f"{side}: missing.npy: no such file"):
            as_segmentation("missing.npy", side)
        with pytest.raises(InputError, match=f"{side}: must hold labels .* found complex128"):
            as_segmentation(np.zeros(3, complex), side)
        with pytest.raises(InputError, match=f"{side}: must be an array of one shape"):
            as_segmentation([[1], [2, 3]], side)
        with pytest.raises(InputError, match=f"{side}: must hold labels .* found object"):
            as_segmentation(None, side)
    with pytest.raises(FormatError, match=r"mask: missing.npy: no such file"):
        as_mask("missing.npy")
    with pytest.raises(InputError, match="mask: must be an array of one shape"):
        as_mask([[1], []])
