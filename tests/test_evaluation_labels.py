"""Labels over many cases, computed from stored overlaps."""

from dataclasses import replace
from math import isnan
from pathlib import Path

import numpy as np
import pytest

from probdice import Aitchison, Comparison, Segmentation, compare, evaluate
from probdice.evaluation.exchanged_labels import (
    LabelDifference,
    different_labels,
    label_difference,
    labels_mean_the_same,
    labels_of_references,
    stored_value,
    with_equal_labels,
)
from probdice.evaluation.record import Record
from probdice.options import MissingRule

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
    by_label = with_equal_labels(record)
    assert (record.value("score"), by_label.value("score")) == (1.0, 0.5)
    assert by_label.value("mean_dice") == 0.5  # (1 + 1 + 0 + 0) / 4
    # Without the background: (1 + 0 + 0) / 3.
    assert by_label.value("foreground_dice") == pytest.approx(1 / 3)
    assert by_label.value("explained_reference") == 1.0


def test_a_case_without_a_label_in_common_fails_with_equal_labels() -> None:
    by_label = with_equal_labels(record_of(compare([1, 1, 1], [2, 2, 2])))
    assert by_label.comparison is None
    assert "have no label in common" in by_label.error
    assert isnan(by_label.value("score"))


def test_a_case_that_lacks_the_named_background_is_scored_with_equal_labels() -> None:
    named = Segmentation.from_labels(np.array([0, 1, 2, 2]), names={0: "air", 1: "a", 2: "b"})
    swapped = Segmentation.from_labels(np.array([0, 2, 1, 1]), names={0: "air", 1: "a", 2: "b"})
    with_air = compare(named, swapped, background="air")
    sides = [replace(side, names={1: "a", 2: "b"}) for side in (named, swapped)]
    comparison = replace(compare(*sides), options=with_air.options)
    assert with_equal_labels(record_of(comparison)).value("score") == 0.25


def test_explained_shares_are_kept_with_equal_labels() -> None:
    soft = Segmentation.from_probabilities(np.array([[0.9, 0.4], [0.1, 0.6]]))
    result = compare(soft, soft)
    assert result.explained["reference"] == pytest.approx(1)
    by_label = with_equal_labels(record_of(result.detach()))
    assert by_label.value("explained_reference") == pytest.approx(1)


def saved(folder: Path, cases: list[tuple[list[int], list[int]]]) -> tuple[Path, dict[str, Path]]:
    """Write the references and predictions of several cases, and return their folders."""
    for k, case in enumerate(cases):
        for name, labels in zip(("truth", "m"), case, strict=True):
            (folder / name).mkdir(exist_ok=True)
            np.save(folder / name / f"{k}.npy", np.array(labels))
    return folder / "truth", {"m": folder / "m"}


@pytest.mark.parametrize(("missing", "expected"), [("worst", 0.375), ("zero", 0.25)])
def test_means_with_equal_labels_equal_those_of_a_run_with_match_labels(
    missing: MissingRule, expected: float, tmp_path: Path
) -> None:
    # Scores by label: 0.75, 0 (swapped) and none (no label in common).
    cases = [([1, 1, 1, 2], [1, 1, 2, 2]), ([1, 1, 2, 2], [2, 2, 1, 1]), ([1] * 4, [2] * 4)]
    folders = saved(tmp_path, cases)
    by_overlap = evaluate(*folders, rank_by="score", missing=missing)
    by_label = evaluate(*folders, rank_by="score", missing=missing, match="labels")
    assert by_label.summaries()["m"].mean == expected
    assert by_overlap.equal_labels_means() == {"m": expected}
    assert by_overlap.remarks["m"][1].startswith(
        f"with equal labels, the mean score is {expected:.4f} (1 of 3 cases cannot be compared by "
        f"labels) instead of 0.9167; if equal labels mean"
    )


def test_cases_that_cannot_be_compared_by_labels_have_no_mean(tmp_path: Path) -> None:
    folders = saved(tmp_path, [([1, 1], [2, 2]), ([2, 2], [1, 1])])
    result = evaluate(*folders, rank_by="score")
    assert isnan(result.equal_labels_means()["m"])
    assert result.remarks["m"][1] == (
        "with equal labels, the mean score does not exist (2 of 2 cases cannot be compared by "
        "labels)"
    )


def test_equal_labels_of_probabilities_under_aitchison_need_the_images() -> None:
    soft = Segmentation.from_probabilities(np.array([[0.9, 0.4], [0.1, 0.6]]))
    result = compare(soft, soft, similarity=Aitchison()).detach()
    by_label = with_equal_labels(record_of(result))
    assert by_label.comparison is not None
    assert isnan(stored_value(by_label, "score"))


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


@pytest.mark.parametrize("reference_names", [None, {0: "air", 1: "left", 2: "right"}])
@pytest.mark.parametrize("prediction_names", [None, {0: "air", 1: "left", 2: "right"}])
def test_swapped_labels_are_found_if_one_side_has_no_names(
    reference_names: dict[int, str] | None, prediction_names: dict[int, str] | None
) -> None:
    reference = Segmentation.from_labels([0, 0, 1, 1, 2, 2], names=reference_names)
    prediction = Segmentation.from_labels([0, 0, 2, 2, 1, 1], names=prediction_names)
    cases = [compare(reference, prediction)] * 3
    difference = label_difference("m", cases, labels_of_references(cases))
    first, second = ((names or {1: 1, 2: 2}) for names in (reference_names, prediction_names))
    assert difference is not None
    assert difference.pairs == ((first[1], second[2], 3), (first[2], second[1], 3))
    unchanged = [compare(reference, replace(reference, names=prediction_names or {}))]
    assert label_difference("m", unchanged, labels_of_references(unchanged)) is None


def test_a_region_that_has_another_number_but_the_same_name_is_not_swapped() -> None:
    reference = Segmentation.from_labels([1, 1, 2], names={1: "left", 2: "right"})
    prediction = Segmentation.from_labels([2, 2, 1], names={2: "left", 1: "right"})
    assert different_labels(compare(reference, prediction)) == []


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
