"""Detection metrics: instances found, missed, false, split and merged."""

import pickle
from math import isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pytest import approx

from probdice import InputError, compare

EXACT = {"rel": 1e-12, "abs": 1e-12}

maps = hnp.arrays(np.int64, 24, elements=st.integers(0, 5))


def boxes(shape, **labels):
    """A label map of boxes; label 2 is given as b2=(top, bottom, left, right)."""
    image = np.zeros(shape, np.int64)
    for name, (top, bottom, left, right) in labels.items():
        image[top:bottom, left:right] = int(name.removeprefix("b"))
    return image


# Two boxes are shifted, one is cut in two, one is half found, one is missed, and one is false.
REFERENCE = boxes(
    (24, 24), b1=(1, 7, 1, 7), b2=(1, 7, 9, 17), b3=(10, 16, 1, 9), b4=(10, 20, 12, 20),
    b5=(21, 23, 1, 5),
)  # fmt: skip
PREDICTION = boxes(
    (24, 24), b3=(2, 8, 1, 7), b7=(1, 7, 9, 13), b8=(1, 7, 13, 17), b2=(10, 13, 1, 9),
    b9=(11, 21, 12, 20), b4=(21, 23, 14, 20),
)  # fmt: skip


def counts(detection):
    return detection.true_positives, detection.false_positives, detection.misses


# -- against other tools ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("threshold", "expected", "qualities"),
    [
        (0.3, (4, 2, 1), (0.7272727272727273, 0.6331168831168832, 0.46044864226682414)),
        (0.5, (4, 2, 1), (0.7272727272727273, 0.6331168831168832, 0.46044864226682414)),
        (0.6, (2, 4, 3), (0.36363636363636365, 0.7662337662337663, 0.2786304604486423)),
    ],
)
def test_values_of_panoptica(threshold, expected, qualities):
    """panoptica 2.1.7, NaiveThresholdMatching by IOU: tp, fp, fn; rq, sq, pq."""
    detection = compare(REFERENCE, PREDICTION, background=0).detection(threshold=threshold)
    assert counts(detection) == expected
    ours = (
        detection.recognition_quality,
        detection.segmentation_quality,
        detection.panoptic_quality,
    )
    assert ours == approx(qualities, **EXACT)


def test_values_of_panoptica_by_dice():
    """panoptica 2.1.7, NaiveThresholdMatching by DSC at 0.6: sq_dsc, pq_dsc."""
    result = compare(REFERENCE, PREDICTION, background=0)
    detection = result.detection(threshold=0.6, by="dice")
    assert counts(detection) == (4, 2, 1)
    assert detection.segmentation_quality == approx(0.7666666666666666, **EXACT)
    assert detection.panoptic_quality == approx(0.5575757575757575, **EXACT)


def test_values_of_monai_and_torchmetrics():
    """compute_panoptic_quality at 0.5 and panoptic_quality: both require more than 0.5."""
    above = np.nextafter(0.5, 1)
    detection = compare(REFERENCE, PREDICTION, background=0).detection(threshold=above)
    assert detection.panoptic_quality == approx(0.27863043546676636, abs=1e-6)
    assert detection.segmentation_quality == approx(0.7662334442138672, abs=1e-6)
    assert detection.recognition_quality == approx(0.3636362850666046, abs=1e-6)


def test_values_published_in_the_tests_of_monai():
    prediction = [[0, 1, 1, 1], [0, 0, 0, 0], [2, 0, 3, 3], [4, 2, 2, 0]]
    reference = [[1, 1, 2, 1], [0, 0, 0, 0], [1, 3, 0, 0], [4, 3, 3, 3]]
    result = compare(reference, prediction, background=0)
    detection = result.detection(threshold=np.nextafter(0.5, 1))
    assert detection.panoptic_quality == approx(0.25, abs=1e-4)
    detection = result.detection(threshold=0.3)
    assert detection.segmentation_quality == approx(0.6, abs=1e-4)
    assert detection.recognition_quality == approx(0.75, abs=1e-4)


# -- by hand ---------------------------------------------------------------------------------------


def test_precision_recall_and_average_precision_by_hand():
    detection = compare(REFERENCE, PREDICTION, background=0).detection()
    assert detection.instances == {"reference": 5, "prediction": 6}
    assert (detection.precision, detection.recall) == (4 / 6, 4 / 5)
    assert detection.f1 == detection.recognition_quality == 8 / 11
    # Jaccard 5/7, 1/2, 1/2 and 9/11: four are found at 0.5, two up to 0.7, one up to 0.8.
    expected = (4 / 7 + 4 * (2 / 9) + 2 * (1 / 10)) / 10
    assert detection.average_precision == approx(expected, **EXACT)
    # 2 Σ J / (5 + 6), since F1 is linear in what is found
    assert detection.f1_area == approx(2 * (5 / 7 + 1 / 2 + 1 / 2 + 9 / 11) / 11, **EXACT)


def test_the_curve_has_one_row_per_threshold():
    curve = compare(REFERENCE, PREDICTION, background=0).detection().curve([0, 0.5, 0.8, 1])
    assert curve["true_positives"].tolist() == [4, 4, 1, 0]
    assert curve["false_positives"].tolist() == [2, 2, 5, 6]
    assert curve["misses"].tolist() == [1, 1, 4, 5]
    assert curve["average_precision"].tolist() == approx([4 / 7, 4 / 7, 1 / 10, 0])
    assert len(compare([1], [1]).detection().curve()) == 21


def test_the_area_is_that_of_a_fine_curve():
    detection = compare(REFERENCE, PREDICTION, merge="both", background=0).detection()
    middles = (np.arange(20_000) + 0.5) / 20_000
    fine = [detection._counts(threshold) for threshold in middles.tolist()]
    f1 = [2 * found / (2 * found + false + missed) for found, false, missed in fine]
    assert detection.f1_area == approx(np.mean(f1), abs=1e-4)


def test_splits_and_merges_are_listed_by_name():
    detection = compare(REFERENCE, PREDICTION, background=0).detection()
    assert [str(split) for split in detection.splits] == ["reference 2 was split into 2: 7, 8"]
    assert detection.merges == ()
    back = compare(PREDICTION, REFERENCE, background=0).detection()
    assert [str(split) for split in back.merges] == ["prediction 2 merges 2: 7, 8"]
    assert back.splits == ()


def test_a_part_is_more_than_half_inside():
    half = compare([1, 1, 1, 2, 2], [5, 5, 6, 6, 2]).detection()
    assert half.splits == ()  # half of 6 lies in 1, and half does not
    more = compare([1, 1, 1, 1, 2], [5, 5, 6, 6, 6]).detection()
    assert [split.parts for split in more.splits] == [(5, 6)]


def test_the_background_is_neither_split_nor_a_part():
    detection = compare([0, 0, 0, 0, 1, 1], [0, 0, 7, 8, 0, 0], background=0).detection()
    assert detection.splits == detection.merges == ()
    without = compare([0, 0, 0, 0, 1, 1], [0, 0, 7, 8, 0, 0]).detection()
    assert [split.parts for split in without.splits] == [(7, 8)]


# -- one to one and many to one --------------------------------------------------------------------


def test_merged_groups_count_once_and_matched_is_before_merging():
    result = compare(REFERENCE, PREDICTION, merge="prediction", background=0)
    detection = result.detection()
    assert counts(detection) == (4, 1, 1)  # 7 and 8 are one; 4 merged into the background is false
    assert detection.segmentation_quality == approx((5 / 7 + 1 + 1 / 2 + 9 / 11) / 4, **EXACT)
    assert counts(detection.matched) == (4, 2, 1)
    strict = compare(REFERENCE, PREDICTION, background=0).detection()
    assert counts(strict) == counts(strict.matched) == counts(detection.matched)
    assert strict.matched is strict


def test_a_merged_group_below_the_threshold_fails_with_all_its_regions():
    result = compare([1, 1, 1, 1, 0, 0, 0, 0], [5, 6, 0, 0, 6, 6, 0, 0], merge="both", background=0)
    detection = result.detection(threshold=0.9)
    assert detection.true_positives == 0
    assert (detection.false_positives, detection.misses) == (2, 1)


# -- tables ----------------------------------------------------------------------------------------


def test_three_tables():
    detection = compare(REFERENCE, PREDICTION, background=0).detection(threshold=0.6)
    pairs = detection.to_frame()
    assert pairs["reference"].tolist() == [(1,), (2,), (3,), (4,), (5,), (), ()]
    assert pairs["prediction"].tolist() == [(3,), (7,), (2,), (9,), (), (4,), (8,)]
    below = "below threshold"
    expected = ["found", below, below, "found", "missed", "false", "false"]
    assert pairs["outcome"].tolist() == expected
    assert pairs["jaccard"].tolist() == approx([5 / 7, 1 / 2, 1 / 2, 9 / 11, 0, 0, 0])
    assert pairs["prediction_volume"].tolist() == [36, 24, 24, 80, 0, 12, 24]
    regions = detection.to_frame("reference")
    assert regions["label"].tolist() == [1, 2, 3, 4, 5]
    assert regions["found"].tolist() == [True, False, False, True, False]
    assert regions["parts"].tolist() == [(), (7, 8), (), (), ()]
    assert regions["prediction"].tolist() == [(3,), (7,), (2,), (9,), ()]
    regions = detection.to_frame("prediction")
    assert regions["label"].tolist() == [2, 3, 4, 7, 8, 9]
    assert regions["found"].tolist() == [False, True, False, False, False, True]
    assert regions["dice"].tolist()[2] == 0


def test_absent_but_predicted_is_a_false_positive_in_every_table():
    result = compare([0, 0, 1, 1], [0, 2, 1, 1], match="labels", background=0)
    detection = result.detection()
    assert counts(detection) == (1, 1, 0)
    pairs = detection.to_frame()
    assert pairs["outcome"].tolist() == ["found", "false"]
    assert pairs["dice"].tolist() == [1, 0]
    assert detection.to_frame("prediction")["jaccard"].tolist() == [1, 0]
    assert detection.to_frame("reference")["label"].tolist() == [1]


def test_names_are_the_labels_of_the_tables():
    from probdice import Segmentation

    names = {0: "nothing", 1: "liver", 2: "spleen"}
    sides = [Segmentation.from_labels(x, names=names) for x in ([0, 1, 1, 2], [0, 1, 1, 0])]
    detection = compare(*sides, match="labels", background="nothing").detection()
    assert detection.to_frame("reference")["label"].tolist() == ["liver", "spleen"]
    assert detection.misses == 1


def test_a_table_must_be_known():
    with pytest.raises(InputError, match="table must be 'pairs', 'reference' or 'prediction'"):
        compare([1], [1]).detection().to_frame("groups")


# -- probabilities ---------------------------------------------------------------------------------


def test_probabilities_are_detected_by_their_fuzzy_jaccard():
    p = [[0.9, 0.8, 0.1, 0.1], [0.1, 0.2, 0.9, 0.9]]
    result = compare([1, 1, 2, 2], p)
    detection = result.detection(threshold=0.5)
    assert detection._values.tolist() == approx([group.jaccard for group in result.groups])
    assert counts(detection) == (2, 0, 0)


def test_merged_probabilities_take_the_jaccard_of_their_group():
    rng = np.random.default_rng(0)
    p, q = (side / side.sum(axis=0) for side in (rng.random((2, 40)), rng.random((4, 40))))
    result = compare(p, q, merge="both")
    detection = result.detection()
    assert detection._values.tolist() == approx([group.jaccard for group in result.groups], **EXACT)
    assert counts(detection.matched)[1] >= counts(detection)[1]


def test_probabilities_under_aitchison_are_rejected_with_advice():
    p = [[0.9, 0.2], [0.1, 0.8]]
    with pytest.raises(InputError, match='Use similarity="absolute"'):
        compare(p, p, similarity="aitchison").detection()
    assert compare([1, 2], [1, 2], similarity="aitchison").detection().f1 == 1


# -- edges -----------------------------------------------------------------------------------------


def test_without_a_background_every_region_is_an_instance():
    assert compare([0, 1], [0, 1]).detection().true_positives == 2


def test_without_instances_all_ratios_are_nan():
    detection = compare([0, 0], [0, 0], background=0).detection()
    assert counts(detection) == (0, 0, 0)
    assert isnan(detection.f1) and isnan(detection.panoptic_quality) and isnan(detection.f1_area)
    assert detection.to_frame().empty


def test_only_false_positives_have_a_quality_of_0():
    detection = compare([0, 0], [0, 1], background=0).detection()
    assert (detection.precision, detection.f1, detection.panoptic_quality) == (0, 0, 0)
    assert isnan(detection.recall) and isnan(detection.segmentation_quality)
    assert (detection.average_precision, detection.f1_area) == (0, 0)


def test_pairs_without_a_common_pixel_are_not_found_at_threshold_0():
    detection = compare([1, 2, 2], [2, 1, 2], match="labels").detection(threshold=0)
    assert counts(detection) == (1, 1, 1)


@pytest.mark.parametrize("threshold", [-0.1, 1.1, "half", True, float("nan")])
def test_a_threshold_is_a_share(threshold):
    with pytest.raises(InputError, match="threshold must be a number from 0 to 1"):
        compare([1], [1]).detection(threshold=threshold)


def test_by_is_jaccard_or_dice():
    with pytest.raises(InputError, match="by must be 'jaccard' or 'dice', found 'iou'"):
        compare([1], [1]).detection(by="iou")


def test_a_detection_is_printed_and_pickled():
    detection = compare(REFERENCE, PREDICTION, background=0).detection()
    text = repr(detection)
    assert "5 reference and 6 prediction instances" in text
    assert "4 found, 1 missed, 2 false" in text
    assert "1 split: reference 2 was split into 2: 7, 8" in text
    assert pickle.loads(pickle.dumps(detection)).to_dict() == detection.to_dict()
    assert "no background" in repr(compare([1], [1]).detection())


def test_a_hundred_thousand_instances():
    labels = np.repeat(np.arange(100_000, dtype=np.int32), 4)
    moved = np.roll(labels, 1)
    detection = compare(labels, moved, background=0).detection()
    assert detection.true_positives == 99_999
    assert detection.f1_area == approx(0.6, abs=1e-4)
    assert detection.splits == ()


# -- properties ------------------------------------------------------------------------------------


@given(maps, maps)
def test_counts_add_up_and_fall_with_the_threshold(a, b):
    result = compare(a, b, background=0)
    before = None
    for threshold in (0, 0.25, 0.5, 0.75, 1):
        detection = result.detection(threshold=threshold)
        found, false, missed = counts(detection)
        assert found + missed == np.setdiff1d(a, [0]).size
        assert found + false == np.setdiff1d(b, [0]).size
        assert before is None or found <= before
        before = found


@given(maps, maps)
def test_above_one_half_every_matching_has_the_same_pairs(a, b):
    """Kirillov et al.: at most one region of each side can reach more than one half."""
    ious = [
        np.sum((a == i) & (b == j)) / np.sum((a == i) | (b == j))
        for i in np.setdiff1d(a, [0])
        for j in np.setdiff1d(b, [0])
    ]
    above = [iou for iou in ious if iou > 0.5]
    detection = compare(a, b, background=0).detection(threshold=np.nextafter(0.5, 1))
    assert detection.true_positives == len(above)
    if above:
        assert detection.segmentation_quality == approx(np.mean(above), **EXACT)


@given(maps, st.permutations(range(1, 6)))
def test_all_instances_of_a_relabelled_map_are_found(a, order):
    detection = compare(a, np.array([0, *order])[a], background=0).detection(threshold=1)
    assert detection.false_positives == detection.misses == 0
    assert detection.splits == detection.merges == ()


@given(maps, maps)
def test_exchanging_the_sides_exchanges_misses_and_false_positives(a, b):
    above = np.nextafter(0.5, 1)
    there = compare(a, b, background=0).detection(threshold=above)
    back = compare(b, a, background=0).detection(threshold=above)
    assert there.misses == back.false_positives
    assert [split.parts for split in there.splits] == [split.parts for split in back.merges]
