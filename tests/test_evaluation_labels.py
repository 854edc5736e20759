"""What labels say over many cases, read from the overlaps of the scores."""

from math import isnan

import numpy as np
import pytest

from probdice import Aitchison, Segmentation, compare
from probdice.evaluation.labels import (
    Exchange,
    exchanged,
    exchanges,
    labels_mean_the_same,
    labels_score,
    one_label_set,
)

TRUTH = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]


def relabelled(*labels: int) -> list[int]:
    """The reference with other labels for its regions 0, 1, 2 and 3."""
    return [labels[k] for k in TRUTH]


@pytest.mark.parametrize(
    ("labels", "cycles"),
    [
        ((0, 1, 2, 3), []),
        ((0, 1, 3, 2), [(2, 3)]),
        ((1, 0, 3, 2), [(0, 1), (2, 3)]),
        ((1, 2, 3, 0), [(0, 1, 2, 3)]),
        ((1, 2, 3, 4), []),  # shifted: no permutation of the labels of both sides
        ((5, 6, 7, 8), []),
    ],
)
def test_exchanged_labels_are_the_cycles_of_the_correspondence(
    labels: tuple[int, ...], cycles: list[tuple[int, ...]]
) -> None:
    assert exchanged(compare(TRUTH, relabelled(*labels))) == cycles


def test_merged_regions_do_not_hide_an_exchange() -> None:
    truth, split = [1] * 4 + [2] * 4, [2, 2, 2, 9, 1, 1, 1, 1]
    assert exchanged(compare(truth, split, merge="prediction")) == [(1, 2)]


def test_equal_labels_are_scored_from_the_same_overlap() -> None:
    result = compare(TRUTH, relabelled(0, 1, 3, 2))
    assert (result.score, labels_score(result)) == (1.0, 0.5)


def test_a_case_without_a_label_in_common_scores_nothing_by_labels() -> None:
    assert labels_score(compare([1, 1, 1], [2, 2, 2])) == 0.0


def test_equal_labels_of_probabilities_under_aitchison_need_the_images() -> None:
    soft = Segmentation.from_probabilities(np.array([[0.9, 0.4], [0.1, 0.6]]))
    result = compare(soft, soft, similarity=Aitchison()).detach()
    assert isnan(labels_score(result))


def test_exchanges_are_counted_over_cases_those_of_most_first() -> None:
    swapped, turned = relabelled(0, 1, 3, 2), relabelled(1, 2, 0, 3)
    cases = [compare(TRUTH, prediction) for prediction in (swapped, turned, swapped, TRUTH)]
    found = exchanges("m", cases)
    assert found == (Exchange("m", (2, 3), 2, 4), Exchange("m", (0, 1, 2), 1, 4))
    assert str(found[0]) == "labels 2 and 3 are exchanged in 2 of 4 cases"
    assert str(found[1]) == "labels 0, 1 and 2 are exchanged in 1 of 4 cases"


def test_clusters_with_labels_of_their_own_exchange_nothing() -> None:
    cases = [compare(TRUTH, relabelled(1, 0, 4, 5))]
    assert not one_label_set(cases)
    assert exchanges("m", cases) == ()


def photographs(count: int) -> list[tuple[str, object]]:
    """Images that two people divided into as many parts as they liked, numbered as they came."""
    generator = np.random.default_rng(0)
    pairs = []
    for k in range(count):
        parts = 3 + k % 7
        truth = np.repeat(np.arange(parts), 5)
        numbers = generator.permutation(parts)
        pairs.append(("other", compare(truth + 1, numbers[truth] + 1)))
    return pairs


def test_labels_of_photographs_mean_something_else_in_each() -> None:
    assert not labels_mean_the_same(photographs(40))  # type: ignore[arg-type]


def test_labels_mean_the_same_where_the_cases_have_one_set_of_them() -> None:
    generator = np.random.default_rng(0)
    cases = [("m", compare(TRUTH, relabelled(*generator.permutation(4)))) for _ in range(10)]
    assert labels_mean_the_same(cases)


def test_labels_mean_the_same_where_partners_are_mostly_the_same() -> None:
    cases = [("m", compare(TRUTH[: 3 * k], TRUTH[: 3 * k])) for k in (1, 2, 3, 4, 2, 3)]
    assert labels_mean_the_same(cases)


def test_names_mean_the_same_and_one_case_may_mean_anything() -> None:
    named = Segmentation.from_labels(np.array(TRUTH), names={k: "abcd"[k] for k in range(4)})
    assert labels_mean_the_same([("m", compare(named, TRUTH))])
    assert labels_mean_the_same([("m", compare(TRUTH, relabelled(3, 2, 1, 0)))])
    assert labels_mean_the_same([])
