"""The background: matched with itself, never merged, and left out of numbers of the foreground."""

from math import isnan

import numpy as np
import pytest
from pytest import approx

import probdice
from probdice import Aitchison, InputError, Segmentation, compare

EXACT = {"rel": 1e-12, "abs": 1e-12}

#             0  0  0  0  0  1  1  1  2  2
REFERENCE = [0, 0, 0, 0, 0, 1, 1, 1, 2, 2]
PREDICTION = [0, 0, 0, 0, 7, 7, 7, 0, 8, 7]


def pairs(result):
    return [(group.reference, group.prediction) for group in result.groups]


def one_hot(labels, regions):
    return (np.asarray(labels) == np.arange(regions)[:, None]).astype(float)


# -- numbers by hand -------------------------------------------------------------------------------


def test_numbers_of_the_foreground_by_hand():
    result = compare(REFERENCE, PREDICTION, background=0)
    assert pairs(result) == [((0,), (0,)), ((1,), (7,)), ((2,), (8,))]
    # Dice of 1 ↔ 7: 2·2/(3+4); of 2 ↔ 8: 2·1/(2+1). The background shares 4 pixels.
    assert result.foreground_dice == approx((4 / 7 + 2 / 3) / 2, **EXACT)
    assert result.pooled_dice == approx(2 * 3 / (7 + 3), **EXACT)
    assert result.foreground_score == approx(3 / (10 - 4), **EXACT)
    assert result.mean_dice == approx((4 / 7 + 2 / 3 + 8 / 10) / 3, **EXACT)
    # Foreground regions by descending share: .3 with .4, .2 with .1. The backgrounds: .5 with .5.
    chance = (0.3 * 0.4 + 0.2 * 0.1) / (1 - 0.25)
    assert result.foreground_chance == approx(chance, **EXACT)
    assert result.adjusted_foreground_score == approx((0.5 - chance) / (1 - chance), **EXACT)
    assert result.chance == approx(0.25 + 0.12 + 0.02, **EXACT)
    assert [group.reference for group in result.foreground] == [(1,), (2,)]
    assert result.background == {"reference": 0, "prediction": 0}


def test_chance_of_given_pairs_is_in_closed_form():
    reference, prediction = [0, 0, 0, 1, 1, 2, 2, 2], [0, 0, 1, 1, 2, 2, 2, 2]
    result = compare(reference, prediction, match="labels", background=0)
    expected = (2 / 8 * 2 / 8 + 3 / 8 * 4 / 8) / (1 - 3 / 8 * 2 / 8)
    assert result.foreground_chance == approx(expected, **EXACT)
    paper = compare(reference, prediction, match="paper", background=0)
    assert paper.foreground_chance == approx(expected, **EXACT)


def test_chance_with_merging_does_not_use_the_background():
    result = compare(REFERENCE, [0, 0, 0, 0, 0, 1, 1, 2, 3, 3], background=0, merge="both")
    # Shares .3, .2 of the reference; .2, .2, .1 of the prediction. The third joins the largest, .3.
    expected = (0.3 * 0.2 + 0.2 * 0.2 + 0.1 * 0.3) / (1 - 0.25)
    assert result.foreground_chance == approx(expected, **EXACT)
    assert result.foreground_score == 1


def test_one_foreground_region_has_the_classical_dice_three_times():
    result = compare([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 0], background=0)
    assert result.foreground_dice == result.pooled_dice == approx(2 / 3, **EXACT)
    assert result.groups[1].jaccard == result.foreground_score == approx(2 / 4, **EXACT)


def test_soft_numbers_by_hand():
    p = np.array([[0.9, 0.6, 0.2, 0.1], [0.1, 0.4, 0.8, 0.9]])
    q = np.array([[0.8, 0.5, 0.4, 0.0], [0.2, 0.5, 0.6, 1.0]])
    result = compare(p, q, background=0)
    shared = np.minimum(p, q).sum(axis=1)
    assert result.foreground_dice == approx(2 * shared[1] / (p[1].sum() + q[1].sum()), **EXACT)
    assert result.foreground_score == approx(shared[1] / (4 - shared[0]), **EXACT)
    independent = np.minimum(p[:, :, None], q[:, None, :]).mean(axis=(1, 2))
    assert result.foreground_chance == approx(independent[1] / (1 - independent[0]), abs=1e-9)


@pytest.mark.parametrize("similarity", ["absolute", Aitchison(), Aitchison(0.01)])
def test_one_hot_probabilities_agree_with_their_label_map(similarity):
    reference, prediction = np.array(REFERENCE), np.array([0, 0, 0, 0, 1, 1, 1, 0, 2, 1])
    crisp = compare(reference, prediction, background=0, similarity=similarity)
    with np.errstate(divide="ignore"):
        soft = compare(reference, one_hot(prediction, 3), background=0, similarity=similarity)
    assert soft.foreground_dice == approx(crisp.foreground_dice, **EXACT)
    assert soft.pooled_dice == approx(crisp.pooled_dice, **EXACT)
    assert soft.foreground_score == approx(crisp.foreground_score, **EXACT)
    if similarity == "absolute":
        assert soft.foreground_chance == approx(crisp.foreground_chance, abs=1e-9)


def test_sampled_chance_of_aitchison_is_near_its_expectation():
    rng = np.random.default_rng(1)
    p, q = (rng.dirichlet([6, 1, 1], 4000).T for _ in range(2))
    result = compare(p, q, similarity=Aitchison(1e-3), background=0, match="labels")
    independent = np.array([np.minimum.outer(p[k], q[k]).mean() for k in range(3)])
    expected = independent[1:].sum() / (1 - independent[0])
    assert 0 < result.foreground_chance_error < 0.02
    assert abs(result.foreground_chance - expected) < 4 * result.foreground_chance_error


@pytest.mark.parametrize("soft", [False, True])
def test_independent_maps_have_an_adjusted_foreground_score_near_0(soft):
    rng = np.random.default_rng(7)
    maps = [rng.choice(3, 100_000, p=[0.9, 0.06, 0.04]) for _ in range(2)]
    if soft:
        maps[1] = 0.8 * one_hot(maps[1], 3) + 0.2 / 3
    result = compare(*maps, background=0)
    assert abs(result.adjusted_foreground_score) < 0.01


# -- correspondence --------------------------------------------------------------------------------

SHIFTED = [0, 0, 1, 1, 1, 1, 1, 1]  # the background overlaps 5 most, and the foreground 0
PUSHED = [0, 5, 0, 0, 0, 0, 5, 5]


@pytest.mark.parametrize("match", ["overlap", "paper", {5: 1}])
def test_backgrounds_correspond_under_every_rule(match):
    result = compare(SHIFTED, PUSHED, match=match, background=0)
    assert pairs(result) == [((0,), (0,)), ((1,), (5,))]


def test_the_paper_rule_does_not_count_overlaps_of_the_background():
    reference = np.array([0, 0, 0, 0, 1, 1, 2, 2])
    prediction = np.array([0, 0, 0, 0, 0, 0, 5, 5])
    # The weights of 5 are (2 + 2)/8 with 1 and 0 with 2. The backgrounds share 4 pixels.
    for side in (prediction, (prediction == np.array([[0], [5]])).astype(float)):
        result = compare(reference, side, match="paper", background=0)
        assert [group.reference for group in result.groups] == [(0,), (2,), (1,)]
        assert result.score == 0.75
        # By chance, 5 (share 2/8) is matched with 1 or 2 (2/8), and the background with 6/8 · 4/8.
        assert result.foreground_chance == approx((1 / 16) / (1 - 3 / 8), **EXACT)


def test_a_background_per_side():
    background = {"reference": 0, "prediction": 255}
    prediction = [255, 255, 1, 1, 1, 0]
    for match in ("overlap", "labels", "paper"):
        result = compare([0, 0, 0, 1, 1, 2], prediction, match=match, background=background)
        assert pairs(result)[0] == ((0,), (255,))
    assert result.background == background
    labels = compare([0, 0, 1], [255, 255, 255], match="labels", background=background)
    assert pairs(labels) == [((0,), (255,)), ((1,), ())]


def test_nothing_is_merged_into_the_background_and_it_is_not_merged():
    reference, prediction = [0, 0, 0, 1, 1, 2], [0, 0, 3, 1, 1, 0]
    result = compare(reference, prediction, merge="both", background=0)
    assert pairs(result) == [((0,), (0,)), ((1,), (1,)), ((2,), ()), ((), (3,))]
    assert result.merges == ()
    alone = compare([0, 1, 1, 1], [1, 1, 1, 2], merge="both", background=0)
    assert pairs(alone) == [((1,), (1, 2)), ((0,), ())]
    soft = compare(reference, one_hot(prediction, 4), merge="both", background=0)
    assert pairs(soft) == pairs(result)


def test_soft_regions_are_merged_around_the_background():
    p = np.array([[0.8, 0.7, 0.1, 0.1], [0.1, 0.2, 0.5, 0.4], [0.1, 0.1, 0.4, 0.5]])
    q = np.array([[0.9, 0.8, 0.1, 0.0], [0.1, 0.2, 0.9, 1.0]])
    result = compare(q, p, merge="prediction", background=0)
    assert pairs(result) == [((0,), (0,)), ((1,), (1, 2))]
    shared = np.minimum(p[1:].sum(axis=0), q[1]).sum()
    assert result.pooled_dice == approx(2 * shared / (p[1:].sum() + q[1].sum()), **EXACT)


def test_an_earlier_comparison_with_the_background_is_applied():
    earlier = compare(SHIFTED, PUSHED, background=0)
    result = compare([0, 1, 1, 0], [0, 5, 0, 0], match=earlier, background=0)
    assert pairs(result) == [((0,), (0,)), ((1,), (5,))]
    with pytest.raises(InputError, match="match groups the background with another region"):
        compare(SHIFTED, PUSHED, match=compare(SHIFTED, PUSHED), background=0)


def test_a_mapping_that_pairs_the_background_with_another_region_is_rejected():
    with pytest.raises(InputError, match="match groups the background with another region"):
        compare([0, 0, 1], [0, 5, 5], match={5: 0}, background=0)


# -- absent backgrounds and foregrounds ------------------------------------------------------------


def test_a_background_that_one_side_lacks_is_empty_on_that_side():
    result = compare([0, 1, 1, 1], [5, 5, 5, 5], background=0)
    assert pairs(result) == [((1,), (5,)), ((0,), ())]
    assert result.foreground_dice == approx(6 / 7, **EXACT)
    assert result.foreground_score == 3 / 4
    assert result.foreground_chance == 3 / 4
    assert [note.kind for note in result.notes] == []


def test_a_background_that_both_sides_lack_is_noted():
    result = compare([1, 1, 2, 2], [1, 1, 1, 2], background=0)
    assert result.foreground_dice == result.mean_dice
    assert result.foreground_score == result.score
    (note,) = result.notes
    assert str(note) == (
        "background=0: neither side has this background, so every region is foreground."
    )


def test_without_foreground_numbers_are_nan():
    result = compare([0, 0, 0], [0, 0, 0], background=0)
    for name in ("foreground_dice", "pooled_dice", "foreground_score", "adjusted_foreground_score"):
        assert isnan(getattr(result, name)), name
    assert result.mean_dice == result.score == 1


def test_a_softmax_that_is_right_everywhere_without_foreground_has_no_foreground_numbers():
    softmax = np.array([[0.97] * 6, [0.02] * 6, [0.01] * 6])
    result = compare([0] * 6, softmax, match="labels", background=0)
    for name in ("foreground_dice", "pooled_dice", "foreground_score", "adjusted_foreground_score"):
        assert isnan(getattr(result, name)), name
    wrong = softmax.copy()
    wrong[:, 0] = [0.2, 0.7, 0.1]  # one false pixel
    assert compare([0] * 6, wrong, match="labels", background=0).foreground_dice == 0


def test_numbers_of_the_foreground_need_a_background():
    result = compare([0, 1], [0, 1])
    for name in ("foreground_dice", "pooled_dice", "foreground_score", "adjusted_foreground_score"):
        with pytest.raises(InputError, match=f"{name} requires a background.*background=LABEL"):
            getattr(result, name)
    assert result.background is None


def test_ignored_pixels_and_masks_are_left_out():
    reference = Segmentation.from_labels([0, 0, 1, 1, 9, 9], ignore=9)
    result = compare(reference, [0, 1, 1, 1, 1, 1], background=0)
    assert (result.foreground_dice, result.foreground_score) == (approx(4 / 5), approx(2 / 3))
    masked = compare([0, 0, 1, 1], [0, 1, 1, 1], mask=[0, 0, 1, 1], background=0)
    assert masked.foreground_score == 1


# -- names -----------------------------------------------------------------------------------------


def test_a_name_on_one_side_is_a_number_on_the_other():
    named = Segmentation.from_labels([0, 0, 1, 1], names={0: "air", 1: "bone"})
    assert pairs(compare(named, [0, 1, 1, 1], background="air"))[0] == (("air",), (0,))
    channels = Segmentation.from_probabilities(one_hot([0, 1, 1, 1], 2), names=["air", "bone"])
    assert pairs(compare([0, 0, 1, 1], channels, background={"reference": 0, "prediction": "air"}))[
        0
    ] == ((0,), ("air",))
    assert pairs(compare(named, channels, background=0))[0] == (("air",), ("air",))
    with pytest.raises(InputError, match="the regions of the prediction have names only"):
        compare([0, 0, 1, 1], channels, background=0)
    with pytest.raises(InputError, match="no region is called 'water'"):
        compare(named, channels, background="water")


@pytest.mark.parametrize("background", [True, 1.5, {"reference": 0}, {"left": 0}, [0]])
def test_a_background_is_a_label_a_name_or_one_per_side(background):
    with pytest.raises(InputError, match="background must be a label, a name, or"):
        compare([0, 1], [0, 1], background=background)


# -- forms -----------------------------------------------------------------------------------------


def test_text_and_json_have_the_numbers_of_the_foreground():
    result = compare(REFERENCE, PREDICTION, background=0)
    text = str(result)
    assert text.splitlines()[0].startswith("Comparison (absolute, background=0)")
    assert "foreground Dice 0.6190" in text and "pooled Dice 0.6000" in text
    content = result.to_dict()
    assert content["background"] == {"reference": 0, "prediction": 0}
    assert content["foreground_score"] == 0.5
    again = probdice.Comparison.from_json(result.to_json())
    for name in ("foreground_dice", "pooled_dice", "foreground_score", "adjusted_foreground_score"):
        assert getattr(again, name) == approx(getattr(result, name), **EXACT)
        assert content[name] == getattr(result, name)
    assert again.background == result.background


def test_soft_json_keeps_a_computed_chance():
    p = np.array([[0.9, 0.6, 0.2], [0.1, 0.4, 0.8]])
    result = compare(p, p[:, ::-1], background=0)
    assert "foreground_chance" not in result.to_dict()
    chance = result.foreground_chance
    assert probdice.Comparison.from_json(result.to_json()).foreground_chance == chance


def test_json_of_a_comparison_without_a_background_is_read():
    content = compare(REFERENCE, PREDICTION).to_dict()
    assert "background" not in content and "background" not in content["options"]
    again = probdice.Comparison.from_dict(content)
    assert again.background is None
    with pytest.raises(InputError, match="requires a background"):
        _ = again.foreground_score


def test_a_large_pair_is_noted_unless_it_is_the_background():
    reference, prediction = np.array([0] * 8 + [1, 2]), np.array([0] * 8 + [1, 3])
    (note,) = (n for n in compare(reference, prediction).notes if n.kind == "background")
    assert str(note) == (
        "Region 0 covers 80.0 % of the pixels on both sides. If it is the background, "
        "compute foreground measures with background=0."
    )
    named = compare(reference, prediction, background=0)
    assert "background" not in [one.kind for one in named.notes]


def test_overlaps_add_up_and_store_the_background():
    total = sum(
        probdice.overlap(*sides) for sides in (([0, 0, 1], [0, 0, 1]), ([0, 1, 1], [0, 0, 1]))
    )
    result = total.compare(match="labels", background=0)
    assert result.pooled_dice == approx(2 * 2 / 5, **EXACT)
    assert result.foreground_score == approx(2 / 3, **EXACT)


# -- raters ----------------------------------------------------------------------------------------


def test_raters_share_one_background():
    raters = {"a": [0, 0, 0, 1, 1], "b": [1, 1, 0, 0, 0], "c": [0, 0, 2, 2, 2]}
    consensus = probdice.consensus(raters, background=0)
    correspondence = {rater.name: rater.correspondence for rater in consensus.raters}
    assert {name: labels[0] for name, labels in correspondence.items()} == dict.fromkeys("abc", 0)
    agreement = probdice.agreement(raters, background=0)
    assert agreement.foreground_dice[0, 2] == approx(4 / 5, **EXACT)
    assert agreement.foreground_dice[0, 1] == 0
    assert agreement.to_dict()["mean_foreground_dice"] == agreement.mean_foreground_dice
    assert "foreground: Dice" in repr(agreement)
    assert list(agreement.to_frame().columns)[-1] == "adjusted_foreground_score"
    without = probdice.agreement(raters)
    assert without.foreground_dice is None and isnan(without.mean_foreground_dice)


def test_equal_labels_of_raters_with_a_background():
    agreement = probdice.agreement([[0, 0, 1, 1], [0, 1, 1, 1]], match="labels", background=0)
    assert agreement.foreground_dice[0, 1] == approx(4 / 5, **EXACT)
    with pytest.raises(InputError, match="one label or name for all raters"):
        probdice.agreement([[0, 1], [0, 1]], background={"reference": 0, "prediction": 0})
