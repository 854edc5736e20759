"""Several segmentations: order of regions, digests, and counts of label combinations."""

import numpy as np
import pytest

from probdice.data.segmentation import Segmentation
from probdice.engine import several as module
from probdice.engine.several import SegmentationSet
from probdice.errors import InputError


def of_labels(*maps, mask=None):
    sides = {str(k): Segmentation.from_labels(labels) for k, labels in enumerate(maps)}
    return SegmentationSet.of(sides, mask=mask)


def test_labels_are_ordered_by_their_first_pixels():
    content = of_labels([5, 5, 2, 9, 2], [0, 0, 0, 0, 1]).contents()["0"]
    assert content.keys.tolist() == [5, 2, 9]


def test_pixels_outside_the_mask_do_not_affect_the_order():
    several = of_labels([5, 5, 2, 9, 2], [0, 0, 0, 0, 1], mask=np.array([0, 0, 0, 1, 1]))
    assert several.contents()["0"].keys.tolist() == [9, 2]


def test_digests_depend_on_the_pattern_and_not_on_the_labels():
    contents = of_labels([1, 1, 2], [7, 7, 3], [1, 2, 2]).contents()
    assert contents["0"].digest == contents["1"].digest != contents["2"].digest


def test_digests_combine_the_parts_of_a_region_in_several_blocks(monkeypatch):
    monkeypatch.setattr("probdice.engine.blocks.BLOCK_BYTES", 1)
    monkeypatch.setattr("probdice.engine.blocks.MIN_BLOCK_PIXELS", 2)
    contents = of_labels([1, 1, 1, 2], [1, 1, 2, 1], [4, 4, 4, 3]).contents()
    assert contents["0"].digest == contents["2"].digest != contents["1"].digest


def test_channels_are_ordered_only_by_their_values():
    rows = np.array([[0.2, 0.5], [0.3, 0.1], [0.5, 0.4]])
    sides = {
        "a": Segmentation.from_probabilities(rows),
        "b": Segmentation.from_probabilities(rows[[2, 0, 1]]),
    }
    contents = SegmentationSet.of(sides).contents()
    a, b = contents["a"], contents["b"]
    assert a.digest == b.digest
    assert rows[a.keys].tolist() == rows[[2, 0, 1]][b.keys].tolist()


def test_combinations_are_counted(monkeypatch):
    monkeypatch.setattr("probdice.engine.blocks.BLOCK_BYTES", 1)
    monkeypatch.setattr("probdice.engine.blocks.MIN_BLOCK_PIXELS", 2)
    several = of_labels([1, 1, 2, 2, 2], [5, 6, 6, 6, 5], [0, 0, 0, 0, 0])
    table = several.combinations([{1: 0, 2: 1}, {5: 0, 6: 1}, {0: 0}])
    assert table.classes.tolist() == [[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0]]
    assert table.counts.tolist() == [1, 1, 1, 2]


def test_too_many_combinations_are_rejected(monkeypatch):
    monkeypatch.setattr(module, "MAX_COMBINATIONS", 2)
    several = of_labels([1, 2, 3], [1, 2, 3])
    with pytest.raises(module.TooLargeError, match="more than 2 combinations"):
        several.combinations([{1: 0, 2: 1, 3: 2}] * 2)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int32, np.float32, np.uint64])
def test_labels_of_any_type_are_read_as_classes(dtype):
    several = of_labels(np.array([[3, 1], [1, 7]], dtype), np.zeros((2, 2), int))
    reader = several.readers([{3: 1, 1: 0}, {0: 0}], 2)[0]
    assert reader.read((slice(0, 2), slice(0, 2))).tolist() == [1, 0, 0, -1]


def test_negative_labels_are_classes_too():
    several = of_labels(np.array([-3, 1, -128], np.int8), [0, 0, 0])
    assert several.readers([{-3: 0, 1: 1}, {0: 0}], 2)[0].read((slice(0, 3),)).tolist() == [
        0,
        1,
        -1,
    ]


def test_boxes_cover_the_image_once(monkeypatch):
    monkeypatch.setattr(module, "BOX_VALUES", 12)
    seen = np.zeros((3, 5, 2), int)
    for box in module.boxes(seen.shape, 3):
        seen[box] += 1
    assert (seen == 1).all()


def test_pixels_with_an_ignored_label_of_any_segmentation_are_left_out():
    sides = {
        "a": Segmentation.from_labels([1, 2, 2, 1], ignore=[1]),
        "b": Segmentation.from_labels([1, 1, 7, 8], ignore=[7, 9]),
        "c": Segmentation.from_labels([5, 5, 5, 5]),
    }
    several = SegmentationSet.of(sides, mask=np.array([1, 1, 1, 0]))
    assert np.asarray(several.mask[...]).tolist() == [False, True, False, False]
    assert np.asarray(several.not_ignored[...]).tolist() == [False, True, False, False]
    assert several.ignored_labels == (1, 7, 9)
    assert not any(side.ignore for side in several.sides.values())
    with pytest.raises(InputError, match=r"every pixel has one of the ignored labels \(1, 7, 9\)"):
        SegmentationSet.of(sides, mask=np.array([1, 0, 1, 1])).contents()
