"""Regions that count: the most probable regions of at least one pixel, and means over regions."""

import json
import math

import numpy as np
import pytest
from oracles import dice_of_counted, likeliest

from probdice import Comparison, InputError, Overlap, Segmentation, compare, overlap

# Three classes; the reference lacks class 2, and the prediction is sure and right everywhere.
LABELS = np.array([0, 0, 0, 1, 1])
RIGHT = np.array([[0.98, 0.98, 0.98, 0.01, 0.01], [0.01] * 3 + [0.98] * 2, [0.01] * 5])


def softmax(seed, regions, pixels, sharpness=3.0):
    logits = np.random.default_rng(seed).normal(size=(regions, pixels)) * sharpness
    p = np.exp(logits - logits.max(axis=0))
    return p / p.sum(axis=0)


def soft_and_soft():
    return overlap(softmax(0, 4, 50), softmax(1, 3, 50))


# Present regions ----------------------------------------------------------------------------------


def test_a_region_counts_if_it_is_the_likeliest_at_one_pixel():
    p = [[0.6, 0.5, 0.4], [0.4, 0.5 - 5e-7, 0.3], [0.0, 5e-7, 0.3], [0, 0, 0]]
    regions = overlap(p, p).reference
    assert regions.likeliest.tolist() == [3, 1, 0, 0]
    assert regions.present.tolist() == [True, True, False, False]


def test_a_probability_more_than_a_millionth_below_the_largest_is_not_the_likeliest():
    p = [[0.5 + 1e-6, 0.5 + 1e-6], [0.5 - 1e-6, 0.5 - 1e-6]]
    assert overlap(p, p).reference.likeliest.tolist() == [2, 0]


def test_regions_of_label_maps_count_if_they_are_not_empty():
    regions = overlap([1, 1, 2], [5, 5, 5]).reference
    assert regions.likeliest is None
    assert regions.present.tolist() == [True, True]


@pytest.mark.parametrize("similarity", ["absolute", "aitchison"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_counts_do_not_depend_on_workers_memory_order_or_blocks(similarity, order, dtype):
    p, q = softmax(2, 5, 9000).reshape(5, 90, 100), softmax(3, 3, 9000).reshape(3, 90, 100)
    p, q = (np.round(side, 2) + 1 for side in (p, q))  # many ties
    p, q = (np.asarray(side / side.sum(axis=0), dtype, order=order) for side in (p, q))
    expected = [likeliest(side.astype("f8").reshape(len(side), -1)) for side in (p, q)]
    assert sum(expected[0]) > 9000
    for workers in (1, 2):
        table = overlap(p, q, similarity=similarity, workers=workers)
        assert [side.likeliest.tolist() for side in (table.reference, table.prediction)] == expected
    parts = [overlap(p[:, k : k + 30], q[:, k : k + 30]) for k in (0, 30, 60)]
    assert sum(parts).reference.likeliest.tolist() == expected[0]


def test_pixels_outside_the_mask_are_not_counted():
    p = np.array([[0.9, 0.9, 0.2], [0.1, 0.1, 0.8]])
    table = overlap(p, p, mask=[1, 1, 0])
    assert table.reference.likeliest.tolist() == [2, 0]
    assert overlap([1, 1, 2], p, mask=[1, 1, 0]).prediction.likeliest.tolist() == [2, 0]


def test_logits_are_counted_as_their_softmax():
    logits = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 5.0], [-40.0, -40.0, -40.0]])
    side = Segmentation.from_logits(logits)
    assert overlap([0, 0, 1], side).prediction.likeliest.tolist() == [2, 2, 0]


def test_counts_add_up_over_images():
    parts = [overlap(LABELS[k : k + 2], RIGHT[:, k : k + 2]) for k in (0, 2)]
    assert sum(parts).prediction.likeliest.tolist() == [3, 1, 0]
    assert overlap(LABELS, RIGHT).prediction.likeliest.tolist() == [3, 2, 0]


# Faint groups -----------------------------------------------------------------------------------


@pytest.mark.parametrize("match", ["labels", "overlap"])
def test_a_faint_class_that_the_reference_lacks_does_not_count(match):
    result = compare(LABELS, RIGHT, match=match, background=0)
    # Σ min(p, q) is 3 × 0.98 and 2 × 0.98; volumes are 3 + 2.96 and 2 + 1.99
    dice = [2 * 2.94 / 5.96, 2 * 1.96 / 3.99]
    assert [group.faint for group in result.groups] == [False, False, True]
    assert [group.dice for group in result.groups] == pytest.approx([*dice, 0])
    assert result.mean_dice == pytest.approx(sum(dice) / 2)
    assert result.lowest_dice == pytest.approx(min(dice))
    assert result.unmatched == {"reference": (), "prediction": ()}
    assert not [note for note in result.notes if note.kind == "unmatched"]
    assert result.score == pytest.approx(0.98)  # faint groups stay in the score
    indices = result.indices()
    assert indices.mean_dice == pytest.approx(sum(dice) / 2)
    assert indices.mean_foreground_dice == pytest.approx(dice[1])
    jaccard = [2.94 / 3.02, 1.96 / 2.03]
    assert indices.mean_iou == pytest.approx(sum(jaccard) / 2)
    assert indices.weighted_iou == pytest.approx(0.6 * jaccard[0] + 0.4 * jaccard[1])


def test_a_faint_class_is_not_a_false_instance():
    detection = compare(LABELS, RIGHT, match="labels", background=0).detection()
    counts = detection.true_positives, detection.false_positives, detection.misses
    assert counts == (1, 0, 0)
    assert detection.instances == {"reference": 1, "prediction": 1}
    assert (detection.f1, detection.f1_area) == pytest.approx((1, 1.96 / 2.03))
    assert detection.to_frame()["outcome"].tolist() == ["found", "faint"]
    assert detection.to_frame("prediction")["faint"].tolist() == [False, True]
    assert detection.splits == ()


def test_a_faint_region_is_not_part_of_a_split():
    detection = compare([0] * 5, RIGHT[:, :5], match="labels").detection()
    assert detection.splits == compare([0] * 5, LABELS).detection().splits


def test_a_class_that_wins_one_pixel_counts_as_false():
    wrong = RIGHT.copy()
    wrong[:, 0] = [0.3, 0.3, 0.4]
    result = compare(LABELS, wrong, match="labels")
    assert not any(group.faint for group in result.groups)
    assert result.lowest_dice == 0
    assert result.unmatched["prediction"] == (2,)


def test_means_over_no_group_are_nan():
    # The only foreground region is faint.
    p = [[0.9, 0.8], [0.1, 0.2]]
    result = compare([0, 0], p, match="labels", background=0)
    assert math.isnan(result.indices().mean_foreground_dice)
    assert result.mean_dice == pytest.approx(2 * 1.7 / 3.7)
    detection = result.detection()
    assert detection.instances == {"reference": 0, "prediction": 0}
    assert math.isnan(detection.f1)


def test_a_group_counts_if_one_of_its_regions_is_present():
    # Class 1 is in the reference and never the likeliest in the prediction.
    result = compare([0, 0, 1], [[0.9, 0.9, 0.6], [0.1, 0.1, 0.4]], match="labels")
    assert [group.faint for group in result.groups] == [False, False]
    assert result.groups[1].dice == pytest.approx(2 * 0.4 / 1.6)
    assert result.lowest_dice == pytest.approx(0.5)


@pytest.mark.parametrize("merge", ["none", "prediction"])
def test_one_hot_probabilities_equal_their_label_map(merge):
    rng = np.random.default_rng(4)
    reference, labels = rng.integers(0, 3, 60), rng.integers(0, 5, 60)
    one_hot = (labels == np.arange(6)[:, None]).astype(float)  # the last channel is unused
    crisp, soft = (
        compare(reference, prediction, merge=merge, background=0)
        for prediction in (labels, one_hot)
    )
    assert soft.foreground_dice == pytest.approx(crisp.foreground_dice, abs=1e-12)
    assert soft.foreground_score == pytest.approx(crisp.foreground_score, abs=1e-12)
    assert soft.foreground_chance == pytest.approx(crisp.foreground_chance, abs=1e-12)
    assert soft.mean_dice == pytest.approx(crisp.mean_dice, abs=1e-12)
    assert soft.lowest_dice == pytest.approx(crisp.lowest_dice, abs=1e-12)
    assert soft.unmatched == crisp.unmatched
    assert [group.faint for group in soft.groups] == [group.faint for group in crisp.groups]
    ours, theirs = (result.indices().to_dict() for result in (soft, crisp))
    for name in ("mean_iou", "weighted_iou", "mean_dice", "mean_foreground_dice", "accuracy"):
        assert ours[name] == pytest.approx(theirs[name], abs=1e-12, nan_ok=True)
    found = [result.detection().to_dict() for result in (soft, crisp)]
    assert found[0] == pytest.approx(found[1], abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("merge", ["none", "both"])
def test_means_agree_with_the_reference_implementation(seed, merge):
    p, q = softmax(seed, 5, 12), softmax(seed + 100, 4, 12)
    result = compare(p, q, merge=merge)
    dice = dice_of_counted(p, q, [(group.reference, group.prediction) for group in result.groups])
    assert result.mean_dice == pytest.approx(sum(dice) / len(dice), abs=1e-12)
    assert result.lowest_dice == pytest.approx(min(dice), abs=1e-12)
    assert sum(not group.faint for group in result.groups) == len(dice)


# Files ------------------------------------------------------------------------------------------


def without_counts(content):
    """The content that an earlier version, without these counts, wrote."""
    for side in ("reference", "prediction"):
        del content[side]["likeliest"]
    return content


def test_an_overlap_of_an_older_version_counts_every_region_and_notes_it(tmp_path):
    table = overlap(LABELS, RIGHT)
    old = Overlap.from_dict(without_counts(table.to_dict()))
    old.save(tmp_path / "old.npz")
    for loaded in (old, Overlap.load(tmp_path / "old.npz"), old + table):
        result = loaded.compare(match="labels")
        assert result.lowest_dice == 0
        assert result.unmatched["prediction"] == (2,)
        (note,) = [note for note in result.notes if note.kind == "faint"]
        assert "The mean and the lowest Dice include all regions" in str(note)


def test_a_saved_overlap_keeps_the_counts(tmp_path):
    for name, table in (("mixed", overlap(LABELS, RIGHT)), ("soft", soft_and_soft())):
        table.save(tmp_path / name)
        loaded = Overlap.load(tmp_path / name)
        assert loaded.prediction.likeliest.tolist() == table.prediction.likeliest.tolist()
        assert loaded.compare().notes == table.compare().notes


@pytest.mark.parametrize("counts", [[3, 2], [3, 2, -1], [6, 0, 0], [0, 0, 0], "no"])
def test_impossible_counts_are_rejected(counts):
    content = overlap(LABELS, RIGHT).to_dict()
    content["prediction"]["likeliest"] = counts
    with pytest.raises(InputError, match=r"not an overlap|must be integers"):
        Overlap.from_dict(content)


def test_json_has_the_means_and_marks_faint_groups():
    result = compare(LABELS, RIGHT, match="labels")
    content = json.loads(result.to_json())
    assert content["mean_dice"] == result.mean_dice
    assert content["lowest_dice"] == result.lowest_dice
    assert [group["faint"] for group in content["groups"]] == [False, False, True]
    again = Comparison.from_json(result.to_json())
    assert again.groups == result.groups
    assert again.to_dict() == result.to_dict()


def test_json_of_an_older_version_is_read_with_a_note():
    content = compare(LABELS, RIGHT, match="labels").to_dict()
    without_counts(content["overlap"])
    del content["mean_dice"], content["lowest_dice"]
    for group in content["groups"]:
        del group["faint"]
    result = Comparison.from_json(json.dumps(content))
    assert not any(group.faint for group in result.groups)
    assert result.lowest_dice == 0
    assert [note.kind for note in result.notes].count("faint") == 1
    again = Comparison.from_dict(result.to_dict())
    assert [note.kind for note in again.notes].count("faint") == 1


def test_json_of_label_maps_of_an_older_version_needs_no_note():
    content = compare([1, 1, 2, 2], [5, 5, 5, 8]).to_dict()
    without_counts(content["overlap"])
    del content["mean_dice"], content["lowest_dice"]
    result = Comparison.from_dict(content)
    assert result.notes == ()
    assert result.mean_dice == pytest.approx((0.8 + 2 / 3) / 2)


def test_tables_mark_faint_groups():
    result = compare(LABELS, RIGHT, match="labels")
    assert result.to_frame()["faint"].tolist() == [False, False, True]
    assert repr(result.groups[2]) == "Group(reference=(), prediction=(2,), dice=0, faint=True)"
