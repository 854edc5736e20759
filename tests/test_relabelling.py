"""Relabelling of the prediction with the labels of the reference."""

from dataclasses import replace

import numpy as np
import pytest

from probdice import Geometry, InputError, Segmentation, compare

REFERENCE = np.array([1, 1, 1, 1, 2, 2, 2, 2])
SPLIT = np.array([7, 7, 5, 5, 5, 9, 9, 9])
SOFT_REFERENCE = np.array([[0.9, 0.7, 0.2, 0.1], [0.1, 0.3, 0.8, 0.9]])
SOFT_SPLIT = np.array([[0.6, 0.5, 0.1, 0.0], [0.3, 0.3, 0.1, 0.1], [0.1, 0.2, 0.8, 0.9]])


def labels(segmentation):
    return np.asarray(segmentation.array).tolist()


def test_groups_take_the_label_of_the_reference():
    assert labels(compare(REFERENCE, SPLIT, merge="both").relabelled()) == [1, 1, 1, 1, 1, 2, 2, 2]


def test_after_merging_the_reference_it_is_that_of_the_matched_region():
    relabelled = compare(SPLIT, REFERENCE, merge="reference").relabelled()
    assert labels(relabelled) == [7, 7, 7, 7, 9, 9, 9, 9]


def test_an_unmatched_label_that_the_reference_uses_gets_a_new_number():
    relabelled = compare([1, 1, 1, 2, 2, 2], [2, 2, 1, 5, 5, 5]).relabelled()
    assert labels(relabelled) == [1, 1, 6, 2, 2, 2]
    assert relabelled.names == {6: "1 (unmatched)"}
    kept = compare([1, 1, 1, 2, 2, 2], [2, 2, 7, 5, 5, 5]).relabelled()
    assert labels(kept) == [1, 1, 7, 2, 2, 2]


def test_probabilities_are_added_up():
    relabelled = compare(SOFT_REFERENCE, SOFT_SPLIT, merge="both").relabelled()
    assert relabelled.regions == (0, 1)
    assert np.asarray(relabelled.array) == pytest.approx(
        SOFT_SPLIT[[0, 2]] + [SOFT_SPLIT[1], np.zeros(4)]
    )
    relabelled = compare(SOFT_REFERENCE, SOFT_SPLIT).relabelled()
    assert relabelled.regions == (0, 1, "1 (unmatched)")


def without_labels(probabilities):
    """Channels without labels and names, such as those of a NIfTI file."""
    return Segmentation.from_probabilities(probabilities, labels=[None] * len(probabilities))


THREE = np.array([[0.1] * 6, [0.8] * 3 + [0.1] * 3, [0.1] * 3 + [0.8] * 3])
TWO = np.array([[0.7] * 3 + [0.2] * 3, [0.3] * 3 + [0.8] * 3])


def test_channels_without_labels_are_numbered_by_their_index():
    reference = without_labels(THREE)
    result = compare(reference, without_labels(TWO))
    # The two channels of the prediction are matched to the last two channels of the reference.
    relabelled = result.relabelled()
    assert relabelled.regions == (1, 2)
    again = compare(reference, relabelled, match="labels")
    assert [(group.reference, group.prediction) for group in again.groups][:2] == [
        ((1,), (1,)),
        ((2,), (2,)),
    ]
    assert again.score == result.score
    assert labels(compare(reference, [0, 0, 0, 1, 1, 1]).relabelled()) == [1, 1, 1, 2, 2, 2]


def test_the_index_of_a_channel_may_be_the_label_of_another_channel():
    reference = Segmentation.from_probabilities(
        THREE[[1, 2]], sums="normalise", labels=[None, 0], names=[None, "a"]
    )
    assert compare(reference, TWO).relabelled().regions == (2, "a")
    assert labels(compare(reference, [3, 3, 3, 5, 5, 5]).relabelled()) == [1, 1, 1, 0, 0, 0]


def test_an_unmatched_channel_without_a_label_may_have_a_label_of_the_reference_as_index():
    # Channels 0 and 1 are matched to 2 and 1, and channel 2 is unmatched.
    reference = [1, 1, 1, 2, 2, 2]
    result = compare(reference, without_labels(THREE[[2, 1, 0]]))
    relabelled = result.relabelled()
    assert relabelled.regions == (1, 2, "2 (unmatched)")
    assert np.array_equal(relabelled.array, THREE[[1, 2, 0]])
    assert compare(reference, relabelled, match="labels").score == result.score


@pytest.mark.parametrize("merge", ["none", "prediction", "reference", "both"])
def test_compared_by_label_the_score_is_the_same(merge):
    rng = np.random.default_rng(3)
    reference, prediction = rng.integers(0, 4, (9, 8)), rng.integers(0, 6, (9, 8))
    result = compare(reference, prediction, merge=merge)
    again = compare(reference, result.relabelled(), match="labels")
    assert again.score == result.score


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
def test_images_are_written_to_given_arrays_in_any_memory_order(soft, order, tmp_path):
    """NIfTI files are stored in Fortran order."""
    labels = np.array([[1, 1, 2], [3, 3, 2], [3, 1, 2], [3, 3, 3]])
    predicted = np.where(labels == 3, 8, labels + 4)  # 5, 6 and 8
    predicted[0] = 6  # 1, 1, 2 in the reference
    image = np.asarray(predicted, order=order)
    if soft:
        image = np.stack([np.asarray(predicted == k, float, order=order) for k in (5, 6, 8)])
        image = np.asarray(image, order=order)
    result = compare(np.asarray(labels, order=order), image)
    target = np.memmap(tmp_path / "map", np.float32, "w+", shape=labels.shape)
    assert result.map(into=target) is target
    assert target.tolist() == [[0, 0, 1], [1, 1, 1], [1, 1, 1], [1, 1, 1]]
    relabelled = result.relabelled(into=lambda shape, dtype: np.zeros(shape, dtype))
    expected = labels.copy()
    expected[0] = 2
    if soft:
        channels = [relabelled.regions.index(label) for label in (1, 2, 3)]
        found = np.asarray(relabelled.array)[channels]
        assert found.tolist() == [(expected == label).tolist() for label in (1, 2, 3)]
    else:
        assert np.asarray(relabelled.array).tolist() == expected.tolist()


@pytest.mark.parametrize(
    "target", [np.zeros((3, 2), np.float32), np.zeros((2, 3), np.uint8), [[0, 0, 0]] * 2]
)
def test_unsuitable_output_arrays_are_rejected(target):
    labels = np.array([[1, 1, 2], [3, 3, 2]])
    with pytest.raises(InputError, match=r"into: expected an array of shape \(2, 3\) that can"):
        compare(labels, labels).map(into=target)
    with pytest.raises(InputError, match="into: expected a function that creates the output array"):
        compare(labels, labels).relabelled(into=target)


def test_names_are_carried_over():
    reference = Segmentation.from_probabilities(
        [[0.9, 0.8, 0.1], [0.1, 0.2, 0.9]], names=[10, "lesion"]
    )
    result = compare(reference, [5, 5, 7])
    assert labels(result.relabelled()) == [10, 10, 0]
    assert compare(reference, result.relabelled(), match="labels").score == result.score
    named = Segmentation.from_labels([3, 3, 4], names={3: "liver"})
    assert compare(named, [1, 1, 2]).relabelled().names == {3: "liver"}


def test_colours_are_those_of_the_reference():
    reference = replace(Segmentation.from_labels([1, 1, 2, 2]), colours={1: "#E69F00"})
    prediction = replace(Segmentation.from_labels([5, 5, 6, 8]), colours={8: "#0072B2"})
    assert compare(reference, prediction).relabelled().colours == {1: "#E69F00", 8: "#0072B2"}
    soft = Segmentation.from_probabilities([[0.0, 0.0, 0.9, 0.6], [1.0, 1.0, 0.1, 0.4]])
    assert compare(reference, soft).relabelled().colours == {0: "#E69F00"}


@pytest.mark.parametrize("label", [2**60 + 1, 5_000_000_001, 2**64 - 1, -5])
def test_large_labels_are_kept(label):
    reference = np.array([label, label, 3], np.uint64 if label > 2**63 else np.int64)
    relabelled = compare(reference, np.array([1, 1, 2], np.uint8)).relabelled()
    assert labels(relabelled) == [label, label, 3]


@pytest.mark.parametrize("limit", [2**63 - 1, 2**63, 2**64 - 1, -(2**63)])
@pytest.mark.parametrize(
    ("reference", "prediction"),
    [
        ("LL3", "112"),
        ("112", "LL3"),
        ("LLL", "122"),
        ("111", "L33"),
        ("LLL", "L33"),
        ("LLL", "NLL"),
        ("1L1", "L11"),
    ],
)
def test_labels_at_the_limits_of_64_bits(limit, reference, prediction):
    near = limit - 1 if limit > 0 else limit + 1

    def side(text):
        values = [{"L": limit, "N": near}.get(letter) or int(letter) for letter in text]
        return np.array(values, np.uint64 if max(values) >= 2**63 else np.int64)

    one, other = side(reference), side(prediction)
    result = compare(one, other)
    relabelled = result.relabelled()
    assert compare(one, relabelled, match="labels").score == result.score
    for group in result.groups:
        if group.reference and group.prediction:
            places = other == group.prediction[0]
            assert set(np.asarray(relabelled.array)[places].tolist()) == {group.reference[0]}
    assert np.unique(relabelled.array).size == np.unique(other).size


def test_labels_that_do_not_fit_in_one_type():
    reference = np.array([2**64 - 1, 2**64 - 1], np.uint64)
    relabelled = compare(reference, np.array([-3, -4])).relabelled()
    assert sorted(labels(relabelled)) == [0, 2**64 - 1]
    assert len(relabelled.names) == 1


def test_the_whole_image_is_relabelled_despite_a_mask():
    geometry = Geometry((4,), np.eye(2))
    reference = Segmentation.from_labels([1, 1, 2, 2], geometry=geometry)
    prediction = Segmentation.from_labels([5, 5, 6, 5], geometry=geometry)
    mask = np.array([1, 1, 1, 0])
    relabelled = compare(reference, prediction, mask=mask).relabelled()
    assert labels(relabelled) == [1, 1, 2, 1]
    assert relabelled.geometry == geometry


def test_a_region_outside_the_mask_is_unmatched():
    reference, prediction = [0, 0, 1, 1, 1, 1], [5, 5, 6, 6, 1, 9]
    relabelled = compare(reference, prediction, mask=[1, 1, 1, 1, 0, 0]).relabelled()
    assert labels(relabelled) == [0, 0, 1, 1, 10, 9]
    assert relabelled.names == {10: "1 (unmatched)", 9: "9 (unmatched)"}


@pytest.mark.parametrize("order", ["C", "F"])
def test_values_outside_the_mask_that_are_not_labels_become_0(order):
    prediction = np.array([[6, 6, np.nan], [5, 5, 6.5]], order=order)
    mask = np.isfinite(prediction) & (prediction != 6.5)
    result = compare(
        [[3, 3, 3], [4, 4, 4]], Segmentation.from_labels(prediction), mask=mask.astype(int)
    )
    assert labels(result.relabelled()) == [[3, 3, 0], [4, 4, 0]]


def test_fortran_order_and_booleans():
    reference = np.asfortranarray(np.arange(12).reshape(3, 4) % 2 * 7)
    relabelled = compare(reference, reference == 0).relabelled()
    assert labels(relabelled) == reference.tolist()
