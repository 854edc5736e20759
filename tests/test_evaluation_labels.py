"""Labels over many cases, computed from stored overlaps."""

from math import isnan

import numpy as np
import pytest

from probdice import Aitchison, Comparison, Segmentation, compare
from probdice.evaluation.exchanged_labels import (
    LabelDifference,
    different_labels,
    equal_labels_value,
    label_difference,
    labels_mean_the_same,
)
from probdice.evaluation.record import Record

TRUTH = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]


def relabelled(*labels: int) -> list[int]:
    """The reference with other labels for its regions 0, 1, 2 and 3."""
    return [labels[k] for k in TRUTH]


def record_of(comparison: Comparison) -> Record:
    return Record("case", "m", comparison, None, 0.0, (), (), (), {})


@pytest.mark.parametrize(
    ("labels", "pairs"),
    [
        ((0, 1, 2, 3), []),
        ((0, 1, 3, 2), [(2, 3), (3, 2)]),
        ((1, 2, 3, 0), [(0, 1), (1, 2), (2, 3), (3, 0)]),
        ((5, 6, 7, 8), [(0, 5), (1, 6), (2, 7), (3, 8)]),
    ],
)
def test_pairs_of_different_labels_are_found(
    labels: tuple[int, ...], pairs: list[tuple[int, int]]
) -> None:
    assert different_labels(compare(TRUTH, relabelled(*labels))) == pairs


def test_a_case_that_lacks_a_label_counts() -> None:
    assert different_labels(compare([0, 0, 1, 1], [0, 0, 2, 2])) == [(1, 2)]


def test_regions_that_are_merged_into_a_pair_do_not_count() -> None:
    truth, split = [1] * 4 + [2] * 4, [2, 2, 2, 9, 1, 1, 1, 1]
    assert different_labels(compare(truth, split, merge="prediction")) == [(1, 2), (2, 1)]
    assert different_labels(compare([1] * 4, [1, 1, 1, 9], merge="prediction")) == []


def test_measures_under_equal_labels_come_from_the_same_overlap() -> None:
    record = record_of(compare(TRUTH, relabelled(0, 1, 3, 2), background=0))
    assert (record.value("score"), equal_labels_value(record, "score")) == (1.0, 0.5)
    assert equal_labels_value(record, "mean_dice") == 0.5  # (1 + 1 + 0 + 0) / 4
    # Without the background: (1 + 0 + 0) / 3.
    assert equal_labels_value(record, "foreground_dice") == pytest.approx(1 / 3)
    assert equal_labels_value(record, "explained_reference") == 1.0


def test_a_case_without_a_label_in_common_is_0_with_equal_labels() -> None:
    assert equal_labels_value(record_of(compare([1, 1, 1], [2, 2, 2])), "score") == 0.0


def test_equal_labels_of_probabilities_under_aitchison_need_the_images() -> None:
    soft = Segmentation.from_probabilities(np.array([[0.9, 0.4], [0.1, 0.6]]))
    result = compare(soft, soft, similarity=Aitchison()).detach()
    assert isnan(equal_labels_value(record_of(result), "score"))


def test_cases_and_pairs_are_counted_the_most_frequent_pair_first() -> None:
    swapped, turned = relabelled(0, 1, 3, 2), relabelled(1, 2, 0, 3)
    cases = [compare(TRUTH, prediction) for prediction in (swapped, turned, swapped, TRUTH)]
    difference = label_difference("m", cases, frozenset(range(4)))
    assert difference == LabelDifference(
        "m", 3, 4, ((2, 3, 2), (3, 2, 2), (0, 1, 1), (1, 2, 1), (2, 0, 1))
    )
    assert str(difference).startswith(
        "different labels are matched in 3 of 4 cases (reference 2 to prediction 3 in 2, "
    )


def test_labels_that_the_reference_lacks_have_another_meaning() -> None:
    cases = [compare(TRUTH, relabelled(1, 0, 4, 5))]
    assert label_difference("m", cases, frozenset(range(4))) is None
    assert label_difference("m", cases, frozenset(range(6))) is not None


def photographs(count: int) -> list[tuple[str, object]]:
    """Images that two people segmented freely, with labels in arbitrary order."""
    generator = np.random.default_rng(0)
    pairs = []
    for k in range(count):
        parts = 3 + k % 7
        truth = np.repeat(np.arange(parts), 5)
        numbers = generator.permutation(parts)
        pairs.append(("other", compare(truth + 1, numbers[truth] + 1)))
    return pairs


def test_labels_of_freely_segmented_images_do_not_mean_the_same() -> None:
    assert not labels_mean_the_same(photographs(40))  # type: ignore[arg-type]


def test_labels_mean_the_same_if_most_cases_have_the_same_labels() -> None:
    generator = np.random.default_rng(0)
    cases = [("m", compare(TRUTH, relabelled(*generator.permutation(4)))) for _ in range(10)]
    assert labels_mean_the_same(cases)


def test_labels_mean_the_same_if_they_are_mostly_matched_to_the_same_label() -> None:
    cases = [("m", compare(TRUTH[: 3 * k], TRUTH[: 3 * k])) for k in (1, 2, 3, 4, 2, 3)]
    assert labels_mean_the_same(cases)


def test_named_labels_and_labels_of_one_case_mean_the_same() -> None:
    named = Segmentation.from_labels(np.array(TRUTH), names={k: "abcd"[k] for k in range(4)})
    assert labels_mean_the_same([("m", compare(named, TRUTH))])
    assert labels_mean_the_same([("m", compare(TRUTH, relabelled(3, 2, 1, 0)))])
    assert labels_mean_the_same([])
