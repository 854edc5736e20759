"""The sentence about a comparison: its words and their thresholds."""

import numpy as np
import pytest

from probdice import compare, overlap
from probdice.metrics.verdict import (
    lowest_matched,
    name_in_text,
    name_of,
    verdict_of,
    worst_first,
    worst_group,
)


def shifted(size, shift):
    """Two regions of s pixels, with the border moved by d: Dice 2(s−d)/(2s−d) and 2s/(2s+d)."""
    reference = np.repeat([1, 2], size)
    return reference, np.repeat([1, 2], [size - shift, size + shift])


@pytest.mark.parametrize(
    ("shift", "expected"),
    [
        # Dice of 1 and 2: 160/180 and 200/220, mean 0.899; 170/185 and 200/215, mean 0.925.
        (
            15,
            "Very good overlap (mean Dice 0.92); weakest in region 1 (Dice 0.92); "
            "every region matched.",
        ),
        (
            20,
            "Good overlap (mean Dice 0.90); weakest in region 1 (Dice 0.89); every region matched.",
        ),
        # 80/140 and 200/260: mean 0.670.
        (
            60,
            "Moderate overlap (mean Dice 0.67); weakest in region 1 (Dice 0.57); "
            "every region matched.",
        ),
        # 20/110 and 200/290: mean 0.436.
        (
            90,
            "Low overlap (mean Dice 0.44); weakest in region 1 (Dice 0.18); every region matched.",
        ),
    ],
)
def test_words_for_overlap_have_thresholds(shift, expected):
    assert verdict_of(compare(*shifted(100, shift), match="labels")) == expected


def test_with_a_background_the_foreground_counts():
    reference = np.repeat([0, 1], [900, 100])
    prediction = np.repeat([0, 1], [950, 50])  # Dice of 1: 100/150
    result = compare(reference, prediction, background=0)
    assert verdict_of(result).startswith(
        "Moderate overlap (foreground Dice 0.67); weakest in region 1"
    )


def test_a_pair_that_covers_most_of_the_image_is_named():
    reference = np.repeat([0, 1], [900, 100])
    prediction = np.repeat([0, 7], [950, 50])  # Dice: 1800/1850 and 100/150, mean 0.820
    assert verdict_of(compare(reference, prediction)) == (
        "Good overlap (mean Dice 0.82, 0.67 without region 0); weakest in reference 1 ↔ prediction "
        "7 (Dice 0.67); every region matched."
    )
    assert "without" not in verdict_of(compare(reference, prediction, background=0))
    # 85 and 100 of 200 pixels: no pair covers more than half of them.
    assert "without" not in verdict_of(compare(*shifted(100, 15)))


def test_equal_sides_need_no_number():
    assert verdict_of(compare([1, 1, 2], [5, 5, 7])) == "Both sides are equal."
    joined = compare([1] * 6 + [2] * 2 + [3] * 8, [5] * 8 + [6] * 5 + [7] * 3, merge="both")
    assert verdict_of(joined) == "Both sides are equal after merging."


def test_a_single_unmatched_region_is_named():
    reference = np.repeat([1, 2, 3], [100, 100, 4])
    prediction = np.repeat([1, 2], [100, 104])
    # Dice 1, 200/204 and 0: mean 0.660; 200 of 204 pixels agree.
    assert verdict_of(compare(reference, prediction)) == (
        "Moderate overlap (mean Dice 0.66), but most pixels agree (adjusted score 0.96); "
        "reference region 3 unmatched (Dice 0); lowest matched Dice 0.98 in region 2."
    )


def test_finer_and_coarser_predictions_are_recognised():
    coarse, fine = np.repeat(np.arange(4), 40), np.repeat(np.arange(16), 10)
    # Each coarse region has one match of Dice 20/50; 12 regions are unmatched: mean 1.6/16.
    assert verdict_of(compare(coarse, fine)) == (
        "Low overlap (mean Dice 0.10); the prediction splits regions of the reference "
        "(100 % of the reference explained); 12 of 16 prediction regions unmatched (Dice 0), "
        "the largest is prediction region 1; lowest matched Dice 0.40 in region 0."
    )
    assert verdict_of(compare(fine, coarse)) == (
        "Low overlap (mean Dice 0.10); the prediction joins regions of the reference "
        "(100 % of the prediction explained); 12 of 16 reference regions unmatched (Dice 0), "
        "the largest is reference region 1; lowest matched Dice 0.40 in region 0."
    )


def test_the_same_regions_split_differently():
    # 16 blocks of 40 pixels. One side splits 10 pixels off the first eight, the other off the rest.
    reference, prediction = np.repeat([np.arange(16)] * 2, 40, axis=1)
    reference.reshape(16, 40)[:8, :10] += 100
    prediction.reshape(16, 40)[8:, :10] += 100
    # Both: 1 − 8·40·(1 − 0.75² − 0.25²) / (640 − (8·30² + 8·10² + 8·40²)/640) = 1 − 120/607.5.
    # Dice: 16 times 60/70, 16 times 0. Adjusted: (0.75 − 0.0508)/0.9492 = 0.74.
    assert verdict_of(compare(reference, prediction)) == (
        "Low overlap (mean Dice 0.43); the same regions, split differently (80 % of the reference "
        "and 80 % of the prediction explained); 8 of 24 reference and 8 of 24 prediction regions "
        "unmatched (Dice 0), the largest is reference region 100; lowest matched Dice 0.86 in "
        "region 0."
    )


def test_regions_that_all_match_are_not_called_split():
    # Each side explains 100 % of the other, but the prediction is uncertain: Dice 2·6 / (10 + 10).
    reference = np.repeat([0, 1], 10)
    prediction = np.where(reference == np.array([[0], [1]]), 0.6, 0.4)
    assert verdict_of(compare(reference, prediction)) == (
        "Moderate overlap (mean Dice 0.60); weakest in region 0 (Dice 0.60); every region matched."
    )


def test_a_dice_that_needs_images_is_unknown():
    values = np.random.default_rng(0).dirichlet([1, 1, 1], size=50).T
    result = overlap(values, values[::-1], similarity="aitchison").compare()
    assert verdict_of(result) == "The mean Dice is unknown; every region matched."


def test_groups_are_ordered_by_dice_then_size():
    reference = np.repeat([1, 2, 3, 4], [10, 3, 5, 20])
    prediction = np.repeat([1, 4], [18, 20])
    groups = compare(reference, prediction).groups
    assert [name_of(groups[k]) for k in worst_first(groups)] == ["3", "2", "1", "4"]


def test_names_of_groups():
    groups = compare([1, 1, 2, 2, 3], [1, 1, 5, 5, 5]).groups
    assert [name_of(group) for group in groups] == ["1", "2 ↔ 5", "3"]
    named = compare(np.eye(2)[:, [0, 0, 1]], np.eye(2)[:, [0, 1, 1]], match="labels")
    assert [name_in_text(group) for group in groups] == [
        "region 1",
        "reference 2 ↔ prediction 5",
        "reference region 3",
    ]
    assert [name_in_text(group) for group in named.groups] == ["region 0", "region 1"]


def test_unmatched_regions_precede_matched_ones_of_equal_dice():
    reference = np.repeat([1, 2, 3], [10, 8, 2])
    prediction = np.repeat([2, 1], [10, 10])
    groups = compare(reference, prediction, match="labels").groups
    # Labels 1 and 2 share no pixel: 10 and 10, 8 and 10 pixels. 3 is unmatched: 2 pixels.
    assert [name_of(groups[k]) for k in worst_first(groups)] == ["3", "1", "2"]
    assert name_of(worst_group(groups)) == "3"
    assert name_of(lowest_matched(groups)) == "1"


def test_volumes_have_voxels():
    reference = np.repeat([1, 2, 3], [100, 100, 4]).reshape(2, 2, 51)
    prediction = np.repeat([1, 2], [100, 104]).reshape(2, 2, 51)
    assert verdict_of(compare(reference, prediction)).startswith(
        "Moderate overlap (mean Dice 0.66), but most voxels agree"
    )
